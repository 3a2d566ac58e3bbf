"""The record of a run: the treatments of a table and their changes, in full or as a public version."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._version import __version__
from ..errors import InputError, listed, printable
from ..io.documents import read_document
from ..io.write import write_text
from ..utils.display import Displayable, Heading, as_json, as_percent, as_text, draw_table, draw_verdict, plural, quoted
from ..utils.redaction import as_count
from ..utils.versions import installed_version
from .coded_columns import Changes
from .plan import Plan
from .plan_fields import plain_fields
from .steps import Step, StepCounts
from .treatment import Treatment

if TYPE_CHECKING:
    from rich.console import Console

# Packages on whose version the treated values may depend.
PACKAGES = ("numpy", "pandas", "pyarrow")
# Keys of hierarchies that list values. Public records hold words in place of the lists: a digest could be guessed.
LISTS_OF_HIERARCHIES = ("values", "common")
LEFT_OUT = "left out"
# The key of the treatments in a record, and the keys that a treatment has in a record and not in a plan.
TREATMENTS = "treatments"
FOUND = ("columns_dropped", "cells_changed", "cells_suppressed", "rows_removed", "found")


# Said of changed cells if rows were taken away.
OF_ROWS_LEFT = " of the rows that are left"


@dataclass(frozen=True)
class TreatmentRecord:
    """The record of a treatment.

    asked: plain values by key. The treatment as in a plan.
    dropped: names of the columns that were dropped.
    found: plain values by name. Facts from `Step.record`.
    changed: number of cells that this treatment changed, by column, also in rows that a later one removed; None in a
        public record.
    suppressed: number of suppressed cells by column, which count as changed, too; None in a public record.
    rows_removed: number of removed rows; None in a public record.
    revealing: names in `found` that a public record omits.
    value_lists: names in `asked` whose values a public record omits.
    """

    asked: Mapping[str, Any]
    dropped: Sequence[str]
    found: Mapping[str, Any]
    changed: Mapping[str, int] | None = None
    suppressed: Mapping[str, int] | None = None
    rows_removed: int | None = None
    revealing: Sequence[str] = ()
    value_lists: Sequence[str] = ()

    @classmethod
    def from_step(cls, treatment: Treatment, step: Step, counts: StepCounts) -> TreatmentRecord:
        """Return the record of a treatment that was applied to all rows."""
        named = {name: changes for name, changes in counts.changed.items() if name not in counts.dropped}
        return cls(
            {"do": treatment.do, **plain_fields(treatment)},
            [str(name) for name in counts.dropped],
            as_json(step.record),
            *_by_column(named),
            rows_removed=counts.rows_removed,
            revealing=tuple(step.revealing),
            value_lists=tuple(treatment.value_lists),
        )

    def public(self) -> TreatmentRecord:
        """Return the record without revealing counts and lists of values."""
        found = {name: value for name, value in self.found.items() if name not in self.revealing}
        return replace(
            self,
            asked=_without(self.asked, self.value_lists),
            changed=None,
            suppressed=None,
            rows_removed=None,
            found=found,
            revealing=(),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the record ready for JSON, without items that are None or empty."""
        parts = {
            "columns_dropped": list(self.dropped) or None,
            "cells_changed": self.changed,
            "cells_suppressed": self.suppressed,
            "rows_removed": self.rows_removed or None,
            "found": self.found or None,
        }
        said = {name: as_json(value) for name, value in parts.items() if value is not None}
        return {**as_json(self.asked), **said}


def _by_column(changed: Mapping[Hashable, Changes]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the numbers of changed cells by column, and of suppressed ones where there are any."""
    return (
        {str(name): own.cells for name, own in changed.items()},
        {str(name): own.suppressed for name, own in changed.items() if own.suppressed},
    )


def plan_of(given: Any) -> Plan:
    """Return the plan of a record, of the .json file of a record, or of any plan that `gpupif.treat` takes.

    Raises InputError for a public record, and for every error of the plan.
    """
    if isinstance(given, TreatmentsRecord):
        return given.plan()
    if isinstance(given, str | os.PathLike) and Path(given).suffix == ".json":
        document = read_document("plan", Path(given))
        if TREATMENTS in document:
            return _plan(document, f"plan: {given}")
    return Plan.from_any(given)


def _plan(document: Mapping[str, Any], said: str) -> Plan:
    """Return the plan in the document of a record; raises InputError for a public record."""
    treatments = [{key: value for key, value in own.items() if key not in FOUND} for own in document[TREATMENTS]]
    hierarchies = document.get("hierarchies") or {}
    for part in [*treatments, *(own for own in hierarchies.values() if isinstance(own, Mapping))]:
        if LEFT_OUT in part.values():
            raise InputError(
                f"{said}: expected a full record or a plan, got a public record, which lacks lists of values."
            )
    return Plan.from_dict({**document.get("asked", {}), "hierarchies": hierarchies, "treatment": treatments})


def _without(document: Any, names: Sequence[str]) -> Any:
    """Return a document with `LEFT_OUT` in place of the values of some keys. Values that are no mapping stay."""
    if not isinstance(document, Mapping):
        return document
    return {name: LEFT_OUT if name in names else value for name, value in document.items()}


@dataclass(frozen=True)
class TreatmentsRecord(Displayable):
    """The record of a run of `gpupif.treat` or `gpupif.treat_files`; prints as a table.

    treatments: list of `TreatmentRecord`, in the order of the plan.
    hierarchies: hierarchies of the plan by column, as `Plan.to_dict` has them.
    input: description of the original table: its origin and size. None in a public record.
    rows: number of original rows. None in a public record.
    rows_removed: number of original rows that were removed. None in a public record.
    key: digest of the key. Runs with equal digests had the same key; the key cannot be found from it. The word "seed"
        for a key from a seed. None if no treatment was random, and in a public record.
    criteria: what the treated table had to meet, and its values there: dictionaries with "criterion", "value",
        "is_met" and "column", the worst one. Without values in a public record. Empty for a plan without criteria.
    unmet: why the treated table does not meet what was asked, None if it does. Such a table was kept all the same.
    asked: the quasi-identifiers, the sensitive columns and the criteria of the plan, as `Plan.to_dict` has them.
        Without criteria in a public record.
    versions: version by name of package, gpupif and the packages on which treated values may depend.
    seconds: duration by stage, in seconds. None in a public record.
    changed: number of cells by column whose value at the end differs from the original one, in the rows and columns
        that are left, as `gpupif.compare` counts them. A cell that several treatments changed counts once. None in a
        public record.
    suppressed: number of these cells by column that are missing at the end. None in a public record.
    """

    treatments: Sequence[TreatmentRecord]
    hierarchies: Mapping[str, Any]
    input: Mapping[str, Any] | None
    rows: int | None
    rows_removed: int | None
    key: str | None
    versions: Mapping[str, str]
    seconds: Mapping[str, float] | None
    changed: Mapping[str, int] | None = None
    suppressed: Mapping[str, int] | None = None
    criteria: Sequence[Mapping[str, Any]] = ()
    unmet: str | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_run(
        cls,
        treatments: Sequence[TreatmentRecord],
        total: StepCounts,
        hierarchies: Mapping[str, Any],
        source: Mapping[str, Any],
        rows: int,
        key: str | None,
        seconds: Mapping[str, float],
    ) -> TreatmentsRecord:
        """Return the record of a finished run. total: the changes of all treatments together."""
        removed = sum(treated.rows_removed or 0 for treated in treatments)
        versions = {name: installed_version(name) or "" for name in PACKAGES}
        return cls(
            treatments,
            hierarchies,
            source,
            rows,
            removed,
            key,
            {"gpupif": __version__, **versions},
            dict(seconds),
            *_by_column(total.changed),
        )

    def public(self) -> TreatmentsRecord:
        """Return the record that may be published with the treated table, without revealing counts.

        The public record holds the treatments and their probabilities. It omits the numbers of cells and rows, the
        input, the duration, and the digest of the key. It says that mappings and hierarchies list values, but omits the
        values: they may be the values of the table, in the order of their frequency.
        """
        return replace(
            self,
            treatments=[treated.public() for treated in self.treatments],
            hierarchies={name: _without(own, LISTS_OF_HIERARCHIES) for name, own in self.hierarchies.items()},
            input=None,
            rows=None,
            rows_removed=None,
            key=None,
            seconds=None,
            changed=None,
            suppressed=None,
            criteria=[{name: own[name] for name in ("criterion", "is_met")} for own in self.criteria],
            unmet=None,
            asked={name: own for name, own in self.asked.items() if name != "criteria"},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the record ready for JSON. A public record lacks the items that are None."""
        parts = {
            "versions": dict(self.versions),
            "input": self.input,
            "rows": self.rows,
            "rows_removed": self.rows_removed,
            "cells_changed": self.changed,
            "cells_suppressed": self.suppressed,
            "key_digest": self.key,
            "hierarchies": self.hierarchies or None,
            "treatments": [treated.to_dict() for treated in self.treatments],
            "criteria": self.criteria or None,
            "unmet": self.unmet,
            "asked": self.asked or None,
            "seconds": self.seconds,
        }
        return {name: as_json(value) for name, value in parts.items() if value is not None}

    def plan(self) -> Plan:
        """Return the plan of the run; raises InputError for a public record that omits lists of values."""
        treatments = [own.asked for own in self.treatments]
        return _plan({"asked": self.asked, "hierarchies": self.hierarchies, "treatments": treatments}, "record")

    def to_stored(self) -> dict[str, Any]:
        """Return the whole record, ready for JSON, in the form that `from_stored` takes."""
        return as_json({**vars(self), "treatments": [as_json(vars(treated)) for treated in self.treatments]})  # type: ignore[no-any-return]

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> TreatmentsRecord:
        """Return the record from the dictionary of `to_stored`."""
        return cls(**{**stored, "treatments": [TreatmentRecord(**own) for own in stored["treatments"]]})

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write the record to a JSON file, whole or not at all; raises OutputError, also if the file exists."""
        write_text(self.to_json() + "\n", path, overwrite)

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        met = listed([own["criterion"] for own in self.criteria if own["is_met"]], 4, str)
        first = [f"Met by the treated table: {met}"] * bool(met)
        if self.unmet is not None:
            first = ["NOT MET" if redact else f"NOT MET: {self.unmet.partition(': ')[2].removesuffix('.')}"]
        if self.rows and self.rows == self.rows_removed:
            first.append("No row is left")
        number = len(self.treatments)
        kinds = listed(list(dict.fromkeys(str(own.asked["do"]) for own in self.treatments)), 5, as_text)
        said = [f"{number} {plural(number, 'treatment')}{f' ({kinds})' if kinds else ''}"]
        if self.rows is not None:
            said[0] += (
                f" of {self.rows:,} {plural(self.rows, 'row')}, {self.rows_removed or 0:,} of which are taken away"
            )
            if self.changed:
                name = max(self.changed, key=self.changed.__getitem__)
                left, gone = OF_ROWS_LEFT * bool(self.rows_removed), sum((self.suppressed or {}).values())
                # Cells of one column tell how frequent the values are that were changed.
                shown = as_count if redact else "{:,}".format
                hidden = f", {shown(gone)} of them suppressed" * bool(gone)
                cells = f"{shown(sum(self.changed.values()))} cells{left} changed{hidden}"
                said.append(f"{cells}, most in {quoted(name)}: {shown(self.changed[name])}")
        if self.key is not None:
            said.append("Values were drawn at random, with a seed" if self.key == "seed" else "A secret key was used")
        return [printable(f"{own}.") for own in [*first, *said]]

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        console.print()
        words = [Heading("", show=str), *(Heading(name, text=True, show=str) for name in ("treatment", "column"))]
        counts = [Heading(name, show=str) for name in ("cells changed", "share of rows", "suppressed")]
        public = self.rows is None
        console.print(draw_table("Treatments", words if public else [*words, *counts], self._lines(public)))

    def _lines(self, public: bool) -> list[tuple[str, ...]]:
        lines: list[tuple[str, ...]] = []
        for number, treated in enumerate(self.treatments, 1):
            start: tuple[str, ...] = (str(number), str(treated.asked["do"]))
            named = treated.asked.get("columns", treated.asked.get("column", ""))
            columns = ", ".join(map(str, named)) if isinstance(named, list) else str(named)
            if public or not treated.changed:
                gone = f"{treated.rows_removed:,} {plural(treated.rows_removed, 'row')}" if treated.rows_removed else ""
                lines.append((*start, columns) if public else (*start, columns, "", "", gone))
                continue
            for name, cells in treated.changed.items():
                suppressed = (treated.suppressed or {}).get(name, 0)
                share = as_percent(cells / self.rows) if self.rows else ""
                lines.append((*start, name, f"{cells:,}", share, f"{suppressed:,}" if suppressed else ""))
                start = ("", "")
        return lines
