"""Plans: the treatments of a table in their order, and the hierarchies of its columns; plans are read and written."""

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
from ..io.run_files import check_apart
from ..io.write import check_output, write_text
from ..utils.display import json_text
from ..utils.validation import Columns, as_list, brief, check_path
from .continuous.correlated_noise import CorrelatedNoise
from .continuous.microaggregate_together import MicroaggregateTogether
from .continuous.rank_swap import RankSwap
from .continuous.shuffle import Shuffle
from .dropped_columns import DeclaredColumns, Drop
from .plan_criteria import PlanCriteria
from .plan_fields import as_call, names_in_documents, plain_fields, refuse_secret, treatment_from, with_types
from .random.moved_values import Jitter, Noise, ShiftDates
from .random.pram import Pram
from .random.randomized_response import RandomizedResponse
from .random.swap import Swap
from .safe_harbor import safe_harbor_treatments
from .steps import name_treatment
from .suppression.suppress import Suppress, SuppressRows, check_learnt
from .treatment import Treatment
from .value_maps.date_part import DatePart
from .value_maps.microaggregate import Microaggregate
from .value_maps.pooled_values import BottomCode, Cap, Rare, TopCode
from .value_maps.pseudonym import Pseudonym
from .value_maps.recode import Recode
from .value_maps.recode_rows import RecodeRows
from .value_maps.rounding import Round
from .value_maps.zip3 import Zip3

# All treatments by their word in a plan.
TREATMENTS: Mapping[str, type[Treatment]] = {
    kind.do: kind
    for kind in (
        DeclaredColumns,
        Drop,
        Recode,
        RecodeRows,
        Cap,
        TopCode,
        BottomCode,
        Rare,
        DatePart,
        Zip3,
        Round,
        Pseudonym,
        Microaggregate,
        MicroaggregateTogether,
        Suppress,
        SuppressRows,
        Jitter,
        Noise,
        CorrelatedNoise,
        Pram,
        RandomizedResponse,
        ShiftDates,
        Swap,
        RankSwap,
        Shuffle,
    )
}
# The keys of a plan's document.
HIERARCHIES, TREATMENT, QUASI_IDENTIFIERS, SENSITIVE = "hierarchies", "treatment", "quasi_identifiers", "sensitive"
CRITERIA = "criteria"
KEYS = (QUASI_IDENTIFIERS, SENSITIVE, CRITERIA, HIERARCHIES, TREATMENT)


class Plan:
    """A list of treatments in their order, and hierarchies of the values of columns.

    Parameters
    ----------
    treatments:
        A list of treatments, such as ``gpupif.treatments.Recode("age", level=2)``, in the order of application.
    hierarchies:
        A dictionary with one hierarchy for each column, or the path of a file that `gpupif.read_hierarchies` takes.
        Default None: no hierarchies. The hierarchy of a column is one of:

        * the path of a .csv file in the format of ARX, with lines of ``value;level1;...;*``, or of a .json file;
        * a dictionary by value of the names of its groups, the narrowest group first;
        * a `Hierarchy`;
        * ``{"widths": [5, 10, 20]}`` for numbers, ``{"digits": 3}`` for codes that are masked from the right,
          ``{"first": [3, 1]}`` for codes that are cut after their first characters, ``{"dates": ["month",
          "year"]}``, or ``{"common": ["a", "b", "c"], "keep": [3, 1]}``.
    quasi_identifiers, sensitive:
        The columns that an attacker knows, and the columns that he would learn, as `gpupif.protect` has them.
        `gpupif.compare` takes them from the plan if it is given none. No treatment reads them. Default: none.
    criteria:
        What the treated table must meet: a `gpupif.treatments.PlanCriteria`, or a dictionary of its keys.
        `gpupif.treat` measures the treated table, and refuses it if it breaks one. Default None: what treatments
        require that remove rows or suppress cells (`SuppressRows`, `Suppress`, `RecodeRows`).

    A plan contains no key, and may therefore be shown to others. The key of random treatments is given beside the plan.
    Two plans are equal if their treatments, hierarchies and criteria are.

    Raises
    ------
    InputError
        The plan is wrong for every table: a hierarchy lacks a level, levels do not nest, or a treatment does not
        allow a value.

    Examples
    --------
    >>> import gpupif
    >>> plan = gpupif.Plan([gpupif.treatments.Recode("age", level=2)], hierarchies={"age": {"widths": [5, 10, 20]}})
    >>> plan.save("plan.toml")
    >>> gpupif.Plan.load("plan.toml") == plan
    True

    """

    def __init__(
        self,
        treatments: Sequence[Treatment],
        hierarchies: Any = None,
        quasi_identifiers: Columns = (),
        sensitive: Columns = (),
        criteria: PlanCriteria | Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(treatments, Treatment) or not isinstance(treatments, Sequence) or isinstance(treatments, str):
            raise InputError(f"plan: expected a list of treatments, got {brief(treatments)}.")
        for number, treatment in enumerate(treatments, 1):
            if not isinstance(treatment, Treatment):
                raise InputError(f"plan: treatment {number}: expected a treatment, got {brief(treatment)}.")
        self.hierarchies: Mapping[Hashable, Hierarchy] = open_hierarchies(hierarchies)
        self.treatments: tuple[Treatment, ...] = tuple(map(self._checked, range(1, len(treatments) + 1), treatments))
        self.quasi_identifiers = as_list(f"plan: {QUASI_IDENTIFIERS}", quasi_identifiers)
        self.sensitive = as_list(f"plan: {SENSITIVE}", sensitive)
        self.criteria = self._checked_criteria(criteria)

    def _checked_criteria(self, given: PlanCriteria | Mapping[str, Any] | None) -> PlanCriteria | None:
        """Return criteria with checked types and fields; raises InputError."""
        if given is None:
            return None
        said = f"plan: {CRITERIA}"
        if not isinstance(given, PlanCriteria | Mapping):
            raise InputError(f"{said}: expected a table [{CRITERIA}] of keys, such as require, got {brief(given)}.")
        criteria = treatment_from(said, PlanCriteria, given, None) if isinstance(given, Mapping) else given
        criteria = with_types(said, criteria)
        try:
            criteria.check()
            check_learnt(criteria.require, self.sensitive)
        except InputError as error:
            raise error.about(said, f"{CRITERIA}: ") from None
        if len(criteria.require) and not self.quasi_identifiers:
            raise InputError(f"{said}: expected {QUASI_IDENTIFIERS} of the plan, what the attacker knows; got none.")
        return criteria

    def _checked(self, number: int, given: Treatment) -> Treatment:
        """Return a treatment with checked types and fields; raises InputError. number: its position, from 1."""
        said = _said("plan", number, given.do)
        treatment = with_types(said, given)
        try:
            treatment.check()
            treatment.check_hierarchies(self.hierarchies)
        except InputError as error:
            raise name_treatment(error, said) from None
        return treatment

    @classmethod
    def from_any(cls, given: Any) -> Plan:
        """Return a plan made from `given`; raises InputError.

        given: a plan, the path of a plan, a dictionary that `from_dict` takes, a treatment or a list of treatments.
        """
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
        """Make the plan that removes the identifiers of Safe Harbor of HIPAA, 45 CFR 164.514(b)(2)(i).

        Parameters
        ----------
        columns:
            A dictionary with a word for the content of every column of the table. Columns of ``"name"``, ``"phone"``,
            ``"ssn"``, ... and ``"direct"`` are dropped. Columns of ``"date"``, ``"year"``, ``"age"`` and ``"zip"`` are
            coarsened. Columns of ``"state"`` and ``"keep"`` are not changed. A table with an undeclared column is
            refused. The documentation of value maps lists all words.
        populations:
            Number of people by three-digit postcode area, see `gpupif.treatments.Zip3`. Needed for ``"zip"``.
        as_of:
            The year, or a date in the year, in which the table is handed on. Default: this year. Years of all dates are
            pooled if a person born in the year is over 89 then.
        date_format:
            The format of dates that are texts in another form than 2001-05-17, such as ``"%m/%d/%Y"``. A text for all
            columns of dates, or a dictionary by column. Default None: ISO form.

        Returns
        -------
        Plan
            A plan for paragraph (i) of Safe Harbor. Paragraph (ii) remains, which no program can check: the sender
            must not know that the remaining data could identify a person.

        Raises
        ------
        InputError
            A word is unknown, a column holds free text, or postcodes have no populations.

        """
        return cls(safe_harbor_treatments(columns, populations, as_of, date_format))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan from a .toml, .json, .yaml or .yml file. Relative paths in the file begin at its folder.

        Raises InputError for another kind of file, and for every error in the file. YAML needs PyYAML.
        """
        check_path("plan", path, "a .toml, .json or .yaml file")
        file = Path(path)
        return cls._from(f"plan: {file}", read_document("plan", file), file.parent)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], folder: str | os.PathLike[str] | None = None) -> Plan:
        """Make a plan from the dictionary that `to_dict` returns; raises InputError.

        folder: start of relative paths in the plan. Default None: the current folder.
        """
        return cls._from("plan", given, None if folder is None else Path(folder))

    @classmethod
    def _from(cls, said: str, given: Mapping[str, Any], folder: Path | None) -> Plan:
        for key in given:
            refuse_secret(said, key)
            if key not in KEYS:
                raise InputError(
                    f"{said}: there is no key {key!r} in a plan.{did_you_mean(str(key), KEYS)} Expected a table "
                    f"[{HIERARCHIES}], by column, and a list [[{TREATMENT}]]."
                )
        listed, hierarchies = given.get(TREATMENT, []), given.get(HIERARCHIES, {})
        if not isinstance(listed, list | tuple):
            raise InputError(f"{said}: {TREATMENT}: expected a list, [[{TREATMENT}]], got {brief(listed)}.")
        if not isinstance(hierarchies, Mapping):
            raise InputError(f"{said}: {HIERARCHIES}: expected a table by column, got {brief(hierarchies)}.")
        treatments = [_treatment(said, number, keys, folder) for number, keys in enumerate(listed, 1)]
        try:
            known, learnt = (given.get(key, ()) for key in (QUASI_IDENTIFIERS, SENSITIVE))
            made = cls(treatments, open_hierarchies(hierarchies, folder), known, learnt, given.get(CRITERIA))
        except InputError as error:
            raise InputError(f"{said}: {str(error).removeprefix('plan: ')}") from None
        if TREATMENT not in given:
            came = f"only [{HIERARCHIES}]" if given else "nothing"
            raise InputError(
                f"{said}: expected treatments, a list [[{TREATMENT}]], got {came}. To leave the table "
                f"unchanged, write {TREATMENT} = []."
            )
        return made

    def attacker(self, columns: Any, quasi_identifiers: Any, sensitive: Any) -> tuple[Any, Any]:
        """Return the quasi-identifiers and the sensitive columns for `gpupif.compare`, before roles are asked.

        columns, quasi_identifiers, sensitive: as the user gives them. If all are None, both are those of the plan, None
        for none: the attacker against whom the plan was made.
        """
        if columns is None and quasi_identifiers is None and sensitive is None:
            return self.quasi_identifiers or None, self.sensitive or None
        return quasi_identifiers, sensitive

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as nested dictionaries and lists of texts and numbers, without keys of default value."""
        parts: dict[str, Any] = {
            QUASI_IDENTIFIERS: list(self.quasi_identifiers),
            SENSITIVE: list(self.sensitive),
            CRITERIA: None if self.criteria is None else plain_fields(self.criteria),
            HIERARCHIES: {name: hierarchy.to_plan() for name, hierarchy in self.hierarchies.items()},
        }
        treatments = [{"do": treatment.do, **plain_fields(treatment)} for treatment in self.treatments]
        return {**{key: part for key, part in parts.items() if part}, TREATMENT: treatments}

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write the plan to a .toml, .json, .yaml or .yml file, whole or not at all.

        Paths of files inside the plan's folder are written relative to the folder: plan and files can be moved
        together.

        Raises OutputError if the file exists (without `overwrite`) or cannot be written, and if the name of a column is
        no text. Raises InputError if YAML needs PyYAML.
        """
        check_path("path", path, "a .toml, .json or .yaml file")
        check_apart({"": path}, {"": self.to_dict()})
        kind, file = check_plan_output(path, overwrite), Path(path)
        write_text(_as_text(kind, self._relative_to(file.parent)), file, overwrite)

    def _relative_to(self, folder: Path) -> dict[str, Any]:
        """Return the document of `to_dict`, with relative paths for files inside a folder."""
        parts = [*self.treatments, *([] if self.criteria is None else [self.criteria])]
        for name in [*self.hierarchies, *(name for own in parts for name in names_in_documents(own))]:
            toml_key(name)
        document = self.to_dict()
        hierarchies = document.get(HIERARCHIES, {})
        for name, hierarchy in hierarchies.items():
            if isinstance(hierarchy, str):
                hierarchies[name] = _relative(hierarchy, folder)
        for treatment, plain in zip(self.treatments, document[TREATMENT], strict=True):
            for name in treatment.files:
                if isinstance(plain.get(name), str):
                    plain[name] = _relative(plain[name], folder)
        return document

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        mine, others = ([own.to_dict().get(key) for key in (TREATMENT, CRITERIA)] for own in (self, other))
        return bool(mine == others and self.hierarchies == other.hierarchies)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        listed = "".join(f"\n    {as_call(treatment)}," for treatment in self.treatments)
        treatments = f"[{listed}\n]" if listed else "[]"
        return f"Plan({treatments}{f', hierarchies={self.hierarchies!r}' if self.hierarchies else ''})"


def check_plan_output(path: str | os.PathLike[str], overwrite: bool) -> str:
    """Return the format of a plan's file: "TOML", "JSON" or "YAML". Raises the errors of `Plan.save` for the file."""
    check_output(path, overwrite, endings=tuple(DOCUMENTS))
    return document_kind("plan", Path(path))


def _said(said: str, number: int, do: Any) -> str:
    return f"{said}: treatment {number} ({do})"


def _treatment(said: str, number: int, given: Any, folder: Path | None) -> Treatment:
    """Return a treatment from its keys in a document; raises InputError. number: its position, from 1."""
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


def _relative(path: str, folder: Path) -> str:
    """Return a path relative to a folder if it is inside the folder, else the absolute path."""
    whole = Path(path).expanduser().resolve()
    return str(whole.relative_to(folder.resolve())) if whole.is_relative_to(folder.resolve()) else str(whole)


def _as_text(kind: str, document: Mapping[str, Any]) -> str:
    if kind == "TOML":
        if _has_none(document):
            raise OutputError(
                "plan: expected text and numbers, got None, which TOML cannot hold. Save the plan as .json or .yaml."
            )
        return _as_toml(document)
    if kind == "JSON":
        return json_text(document, infinite=True) + "\n"
    import yaml

    # PyYAML reads unprintable characters differently from how it wrote them, unless they are escaped.
    printable = json.dumps(document, ensure_ascii=False).isprintable()
    return str(yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=printable))


def _has_none(value: Any) -> bool:
    if isinstance(value, Mapping | list):
        return any(map(_has_none, value.values() if isinstance(value, Mapping) else value))
    return value is None


def _as_toml(document: Mapping[str, Any]) -> str:
    lines = [toml_comment("A plan of treatments: gpupif treat TABLE --plan this file.")]
    columns = [f"{key} = {toml_value(document[key])}" for key in (QUASI_IDENTIFIERS, SENSITIVE) if key in document]
    lines += ["", toml_comment("For gpupif compare: what an attacker knows, and would learn."), *columns] * bool(
        columns
    )
    if not document[TREATMENT]:
        # `Plan.load` refuses a plan without a list: the author may have forgotten it.
        lines += ["", f"{TREATMENT} = []"]
    if document.get(CRITERIA):
        lines += ["", toml_comment("What the treated table must meet: gpupif treat releases none that does not.")]
        lines += [toml_comment("NOT MET by this plan: see unmet.")] * ("unmet" in document[CRITERIA])
        lines += [f"[{CRITERIA}]"]
        lines += [f"{toml_key(key)} = {toml_value(value)}" for key, value in document[CRITERIA].items()]
    if document.get(HIERARCHIES):
        lines += ["", f"[{HIERARCHIES}]"]
        lines += [f"{toml_key(name)} = {toml_value(hierarchy)}" for name, hierarchy in document[HIERARCHIES].items()]
    for treatment in document[TREATMENT]:
        lines += ["", f"[[{TREATMENT}]]"]
        lines += [f"{toml_key(key)} = {toml_value(value)}" for key, value in treatment.items()]
    return "\n".join(lines) + "\n"
