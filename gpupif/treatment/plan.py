"""Plans: what is done to a table, in which order, and the hierarchies that this needs; read from files and written."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError, OutputError, did_you_mean
from ..hierarchies.hierarchy import Hierarchy
from ..hierarchies.open import open_hierarchies
from ..io.documents import DOCUMENTS, document_kind, read_document, toml_comment, toml_key, toml_value
from ..io.write import check_output, write_text
from ..utils.display import json_text
from ..utils.validation import brief, check_path
from .dropped_columns import DeclaredColumns, Drop
from .plan_fields import as_call, plain_fields, refuse_secret, treatment_from, with_types
from .random.jitter import Jitter
from .random.noise import Noise
from .random.pram import Pram
from .random.randomized_response import RandomizedResponse
from .random.shift_dates import ShiftDates
from .random.swap import Swap
from .safe_harbor import safe_harbor_treatments
from .steps import of_treatment
from .suppression.suppress import Suppress, SuppressRows
from .treatment import Treatment
from .value_maps.date_part import DatePart
from .value_maps.microaggregate import Microaggregate
from .value_maps.pooled_values import BottomCode, Cap, Rare, TopCode
from .value_maps.pseudonym import Pseudonym
from .value_maps.recode import Recode
from .value_maps.rounding import Round
from .value_maps.zip3 import Zip3

# All treatments, by their word in a plan.
TREATMENTS: Mapping[str, type[Treatment]] = {
    kind.do: kind
    for kind in (
        DeclaredColumns,
        Drop,
        Recode,
        Cap,
        TopCode,
        BottomCode,
        Rare,
        DatePart,
        Zip3,
        Round,
        Pseudonym,
        Microaggregate,
        Suppress,
        SuppressRows,
        Jitter,
        Noise,
        Pram,
        RandomizedResponse,
        ShiftDates,
        Swap,
    )
}
# The keys of a plan.
HIERARCHIES, TREATMENT = "hierarchies", "treatment"


class Plan:
    """What is done to a table: treatments, one after the other, and hierarchies of values, by column.

    Parameters
    ----------
    treatments:
        Such as ``gpupif.treatments.Recode("age", level=2)``, in the order in which they are done.
    hierarchies:
        By column the path of a file (.csv as ARX has it, with lines of ``value;level1;...;*``, or .json), a dictionary
        of each value and the names of what it is part of, the narrowest first, a `Hierarchy`, or one of
        ``{"widths": [5, 10, 20]}`` for numbers, ``{"digits": 3}`` for codes that are masked from the right,
        ``{"dates": ["month", "year"]}`` and ``{"common": ["a", "b", "c"], "keep": [3, 1]}``. Or the path of a file of
        such by column, as `gpupif.read_hierarchies` takes it.

    A plan has no key: what is random in it is drawn with the key that goes with it beside the plan, so that a plan may
    be shown. Plans are equal where they do the same.

    Raises
    ------
    InputError
        Anything in it that is wrong whatever the table is: a level that a hierarchy does not have, levels that do not
        nest, a value that a treatment does not take.

    Examples
    --------
    >>> import gpupif
    >>> plan = gpupif.Plan([gpupif.treatments.Recode("age", level=2)], hierarchies={"age": {"widths": [5, 10, 20]}})
    >>> plan.save("plan.toml")
    >>> gpupif.Plan.load("plan.toml") == plan
    True

    """

    def __init__(self, treatments: Sequence[Treatment], hierarchies: Any = None) -> None:
        if isinstance(treatments, Treatment) or not isinstance(treatments, Sequence) or isinstance(treatments, str):
            raise InputError(f"plan: expected a list of treatments, got {brief(treatments)}.")
        for number, one in enumerate(treatments, 1):
            if not isinstance(one, Treatment):
                raise InputError(f"plan: treatment {number}: expected a treatment, got {brief(one)}.")
        self.hierarchies: Mapping[Hashable, Hierarchy] = open_hierarchies(hierarchies)
        self.treatments: tuple[Treatment, ...] = tuple(map(self._checked, range(1, len(treatments) + 1), treatments))

    def _checked(self, number: int, given: Treatment) -> Treatment:
        """The treatment at a place, from 1; raises InputError."""
        said = _said("plan", number, given.do)
        treatment = with_types(said, given)
        try:
            treatment.check()
            treatment.check_hierarchies(self.hierarchies)
        except InputError as error:
            raise of_treatment(error, said) from None
        return treatment

    @classmethod
    def of(cls, given: Any) -> Plan:
        """A plan from a plan, what `load` or `from_dict` takes, or a list of treatments; raises InputError."""
        if isinstance(given, Plan):
            return given
        if isinstance(given, str | os.PathLike):
            return cls.load(given)
        if isinstance(given, Mapping):
            return cls.from_dict(given)
        if isinstance(given, Treatment):
            return cls([given])
        if isinstance(given, Sequence):
            return cls(given)
        raise InputError(f"plan: expected a plan, the path of one, or a dictionary, got {brief(given)}.")

    @classmethod
    def safe_harbor(
        cls,
        columns: Mapping[Hashable, str],
        populations: str | os.PathLike[str] | Mapping[Any, int] | None = None,
        *,
        as_of: int | datetime.date | None = None,
        date_format: str | Mapping[Hashable, str] | None = None,
    ) -> Plan:
        """The plan that takes from a table what Safe Harbor of HIPAA names, 45 CFR 164.514(b)(2)(i).

        Parameters
        ----------
        columns:
            What each column of the table holds, all of them: ``"name"``, ``"phone"``, ``"ssn"``, ... or ``"direct"``,
            which are dropped; ``"date"``, ``"year"``, ``"age"``, ``"zip"``; ``"state"`` and ``"keep"``, which stand. A
            table with a column that is not declared is refused. All words
            are in the documentation of value maps.
        populations:
            People by three-digit postcode area, as `gpupif.treatments.Zip3` has them; needed for ``"zip"``.
        as_of:
            The year, or a date in it, at which the table is handed on; default this year. Years in which somebody was
            born who is over 89 then are pooled, of every date.
        date_format:
            How dates are written that are texts and not as 2001-05-17, such as ``"%m/%d/%Y"``; of all columns of dates
            or by column.

        Returns
        -------
        Plan
            That Safe Harbor is met has another half, which no program sees: that who hands the table on does not know
            how what is left could identify somebody (paragraph ii).

        Raises
        ------
        InputError
            An unknown word, free text, postcodes without populations.

        """
        return cls(safe_harbor_treatments(columns, populations, as_of, date_format))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan from a .toml, .json, .yaml or .yml file; relative paths in it begin at its folder.

        Raises InputError for what is no such file, and for all that is wrong in it. YAML needs PyYAML.
        """
        check_path("plan", path, "a .toml, .json or .yaml file")
        file = Path(path)
        return cls._from(f"plan: {file}", read_document("plan", file), file.parent)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], folder: str | os.PathLike[str] | None = None) -> Plan:
        """A plan from what `to_dict` makes of one; raises InputError. folder: relative paths in it begin at it."""
        return cls._from("plan", given, None if folder is None else Path(folder))

    @classmethod
    def _from(cls, said: str, given: Mapping[str, Any], folder: Path | None) -> Plan:
        for key in given:
            refuse_secret(said, key)
            if key not in (HIERARCHIES, TREATMENT):
                hint = did_you_mean(str(key), (HIERARCHIES, TREATMENT))
                raise InputError(
                    f"{said}: there is no key {key!r} in a plan.{hint} Expected a table [{HIERARCHIES}], by column, "
                    f"and a list [[{TREATMENT}]]."
                )
        listed, hierarchies = given.get(TREATMENT, []), given.get(HIERARCHIES, {})
        if not isinstance(listed, list | tuple):
            raise InputError(f"{said}: {TREATMENT}: expected a list, [[{TREATMENT}]], got {brief(listed)}.")
        if not isinstance(hierarchies, Mapping):
            raise InputError(f"{said}: {HIERARCHIES}: expected a table by column, got {brief(hierarchies)}.")
        treatments = [_treatment(said, number, one, folder) for number, one in enumerate(listed, 1)]
        try:
            made = cls(treatments, open_hierarchies(hierarchies, folder))
        except InputError as error:
            raise InputError(f"{said}: {str(error).removeprefix('plan: ')}") from None
        if TREATMENT not in given:
            came = f"only [{HIERARCHIES}]" if given else "nothing"
            raise InputError(
                f"{said}: expected treatments, a list [[{TREATMENT}]], got {came}. Where the table is to stay as it "
                f"is, say so: {TREATMENT} = []."
            )
        return made

    def to_dict(self) -> dict[str, Any]:
        """The plan as text, numbers, lists and dictionaries of such, with keys that are not as by default."""
        hierarchies = {HIERARCHIES: {name: one.to_plan() for name, one in self.hierarchies.items()}}
        treatments = [{"do": one.do, **plain_fields(one)} for one in self.treatments]
        return {**(hierarchies if self.hierarchies else {}), TREATMENT: treatments}

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write the plan to a .toml, .json, .yaml or .yml file, whole or not at all.

        Paths of files below the plan's folder are written as they are seen from there, so that the two go together.

        Raises OutputError where the file exists (without `overwrite`) or cannot be written, and for names of columns
        that are no text; InputError where YAML needs PyYAML.
        """
        check_path("path", path, "a .toml, .json or .yaml file")
        kind, file = check_plan_output(path, overwrite), Path(path)
        write_text(_as_text(kind, self._seen_from(file.parent)), file, overwrite)

    def _seen_from(self, folder: Path) -> dict[str, Any]:
        """As `to_dict`, with paths that begin at a folder where they lie below it."""
        document = self.to_dict()
        hierarchies = document.get(HIERARCHIES, {})
        for name, one in hierarchies.items():
            toml_key(name)
            if isinstance(one, str):
                hierarchies[name] = _seen(one, folder)
        for treatment, plain in zip(self.treatments, document[TREATMENT], strict=True):
            for name in treatment.files:
                if isinstance(plain.get(name), str):
                    plain[name] = _seen(plain[name], folder)
        return document

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        mine, others = self.to_dict()[TREATMENT], other.to_dict()[TREATMENT]
        return bool(mine == others and self.hierarchies == other.hierarchies)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        listed = "".join(f"\n    {as_call(one)}," for one in self.treatments)
        treatments = f"[{listed}\n]" if listed else "[]"
        return f"Plan({treatments}{f', hierarchies={self.hierarchies!r}' if self.hierarchies else ''})"


def check_plan_output(path: str | os.PathLike[str], overwrite: bool) -> str:
    """What a plan is written as to a file: "TOML", "JSON" or "YAML"; raises what `Plan.save` does of the file."""
    check_output(path, overwrite, endings=tuple(DOCUMENTS))
    return document_kind("plan", Path(path))


def _said(said: str, number: int, do: Any) -> str:
    return f"{said}: treatment {number} ({do})"


def _treatment(said: str, number: int, given: Any, folder: Path | None) -> Treatment:
    """The treatment that stands at a place, from 1."""
    if not isinstance(given, Mapping):
        raise InputError(f"{said}: treatment {number}: expected keys and their values, got {brief(given)}.")
    keys = dict(given)
    do = keys.pop("do", None)
    if not isinstance(do, str) or do not in TREATMENTS:
        listed = ", ".join(map(repr, TREATMENTS))
        came = "none" if do is None else brief(do)
        hint = did_you_mean(do, TREATMENTS) if isinstance(do, str) else ""
        raise InputError(f"{said}: treatment {number}: do: expected one of {listed}; got {came}.{hint}")
    return treatment_from(_said(said, number, do), TREATMENTS[do], keys, folder)


def _seen(path: str, folder: Path) -> str:
    """A path as it is seen from a folder, where it lies below that; else whole."""
    whole = Path(path).expanduser().resolve()
    return str(whole.relative_to(folder.resolve())) if whole.is_relative_to(folder.resolve()) else str(whole)


def _as_text(kind: str, document: Mapping[str, Any]) -> str:
    if kind == "TOML":
        if _has_none(document):
            raise OutputError(
                "plan: expected text and numbers, got None in it, which TOML has not. Save it as .json or .yaml."
            )
        return _as_toml(document)
    if kind == "JSON":
        return json_text(document, infinite=True) + "\n"
    import yaml

    # Of what may not be seen PyYAML reads something else than it wrote, but for its escapes.
    seen = json.dumps(document, ensure_ascii=False).isprintable()
    return str(yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=seen))


def _has_none(value: Any) -> bool:
    if isinstance(value, Mapping | list):
        return any(map(_has_none, value.values() if isinstance(value, Mapping) else value))
    return value is None


def _as_toml(document: Mapping[str, Any]) -> str:
    lines = [toml_comment("A plan of treatments: gpupif treat TABLE --plan this file.")]
    if not document[TREATMENT]:
        # A list that is not there may have been forgotten.
        lines += ["", f"{TREATMENT} = []"]
    if document.get(HIERARCHIES):
        lines += ["", f"[{HIERARCHIES}]"]
        lines += [f"{toml_key(name)} = {toml_value(one)}" for name, one in document[HIERARCHIES].items()]
    for treatment in document[TREATMENT]:
        lines += ["", f"[[{TREATMENT}]]"]
        lines += [f"{toml_key(key)} = {toml_value(value)}" for key, value in treatment.items()]
    return "\n".join(lines) + "\n"
