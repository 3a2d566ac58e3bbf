"""What was done to a table: the record of a run, and what of it may be made public."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._version import __version__
from ..errors import InputError
from ..io.documents import read_document
from ..io.write import write_text
from ..utils.display import Displayable, Heading, as_json, as_percent, draw_table, plural
from ..utils.versions import installed_version
from .plan import Plan
from .plan_fields import plain_fields
from .steps import Step, StepCounts
from .treatment import Treatment

if TYPE_CHECKING:
    from rich.console import Console

# Packages that have a part in what comes out.
PACKAGES = ("numpy", "pandas", "pyarrow")
# Keys of hierarchies that list values. And what public records have in their place: digests could be tried.
LISTS_OF_HIERARCHIES = ("values", "common")
LEFT_OUT = "left out"
# Where a document has what was done, and what it says of each treatment beside what a plan has.
TREATMENTS = "treatments"
FOUND = ("columns_dropped", "cells_changed", "cells_suppressed", "rows_removed", "found")


@dataclass(frozen=True)
class TreatmentRecord:
    """One treatment. asked: as a plan has it. changed, suppressed: cells by column, those suppressed among the changed
    ones; None where the record is public, as `rows_removed`. found: what the treatment says of itself.
    revealing: names of what is found, value_lists: of what was asked, that a public record has not.
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
    def of(cls, treatment: Treatment, step: Step, counts: StepCounts) -> TreatmentRecord:
        """Of a treatment that was applied to all rows."""
        named = {str(name): changes for name, changes in counts.changed.items() if name not in counts.dropped}
        return cls(
            asked={"do": treatment.do, **plain_fields(treatment)},
            dropped=[str(name) for name in counts.dropped],
            found=as_json(step.record()),
            changed={name: changes.cells for name, changes in named.items()},
            suppressed={name: changes.suppressed for name, changes in named.items() if changes.suppressed},
            rows_removed=counts.rows_removed,
            revealing=tuple(step.revealing()),
            value_lists=tuple(treatment.value_lists),
        )

    def public(self) -> TreatmentRecord:
        """Without counts that reveal, and lists of values."""
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
        """Ready for JSON; without what is left out."""
        parts = {
            "columns_dropped": list(self.dropped) or None,
            "cells_changed": self.changed,
            "cells_suppressed": self.suppressed,
            "rows_removed": self.rows_removed or None,
            "found": self.found or None,
        }
        said = {name: as_json(value) for name, value in parts.items() if value is not None}
        return {**as_json(self.asked), **said}


def plan_of(given: Any) -> Plan:
    """Return a plan from what `gpupif.treat` takes as one, or from the record of a treatment, also as a file.

    Raises InputError.
    """
    if isinstance(given, TreatmentsRecord):
        return given.plan()
    if isinstance(given, str | os.PathLike) and Path(given).suffix == ".json":
        document = read_document("plan", Path(given))
        if TREATMENTS in document:
            return _plan(document, f"plan: {given}")
    return Plan.of(given)


def _plan(document: Mapping[str, Any], said: str) -> Plan:
    """Return the plan that a record has."""
    treatments = [{key: value for key, value in one.items() if key not in FOUND} for one in document[TREATMENTS]]
    hierarchies = document.get("hierarchies") or {}
    for one in [*treatments, *(own for own in hierarchies.values() if isinstance(own, Mapping))]:
        if LEFT_OUT in one.values():
            raise InputError(
                f"{said}: it is a public record, which lacks lists of values. Give the record with all counts, or the "
                "plan."
            )
    return Plan.from_dict({"hierarchies": hierarchies, "treatment": treatments})


def _without(document: Any, names: Sequence[str]) -> Any:
    """A document that says of some of its keys that they are there, and not what is."""
    if not isinstance(document, Mapping):
        return document
    return {name: LEFT_OUT if name in names else value for name, value in document.items()}


@dataclass(frozen=True)
class TreatmentsRecord(Displayable):
    """What `gpupif.treat` did to a table; prints as a table.

    treatments: one after the other. hierarchies: of the plan, as it has them. input: where the table came from, and how
    large it was. rows: that came in; rows_removed: of them those taken away. key: its digest, by which it can be told
    whether another run had the same; the key itself is written nowhere. seconds: by stage.
    """

    treatments: Sequence[TreatmentRecord]
    hierarchies: Mapping[str, Any]
    input: Mapping[str, Any] | None
    rows: int | None
    rows_removed: int | None
    key: str | None
    versions: Mapping[str, str]
    seconds: Mapping[str, float] | None

    @classmethod
    def of(
        cls,
        treatments: Sequence[TreatmentRecord],
        hierarchies: Mapping[str, Any],
        source: Mapping[str, Any],
        rows: int,
        key: str | None,
        seconds: Mapping[str, float],
    ) -> TreatmentsRecord:
        """Of a run that has ended."""
        removed = sum(one.rows_removed or 0 for one in treatments)
        versions = {name: installed_version(name) or "" for name in PACKAGES}
        return cls(
            treatments, hierarchies, source, rows, removed, key, {"gpupif": __version__, **versions}, dict(seconds)
        )

    def public(self) -> TreatmentsRecord:
        """The record that may go with the treated table: without counts that reveal.

        It says what was done and with what probabilities, and leaves out how many cells and rows it was done to, of
        which table, how long it took, and the hash of the key. Of mappings and of hierarchies that list values it says
        that there were such, for they may be of the table, in the order of how often they occur.
        """
        return replace(
            self,
            treatments=[one.public() for one in self.treatments],
            hierarchies={name: _without(one, LISTS_OF_HIERARCHIES) for name, one in self.hierarchies.items()},
            input=None,
            rows=None,
            rows_removed=None,
            key=None,
            seconds=None,
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON; without what a public record leaves out."""
        parts = {
            "versions": dict(self.versions),
            "input": self.input,
            "rows": self.rows,
            "rows_removed": self.rows_removed,
            "key_digest": self.key,
            "hierarchies": self.hierarchies or None,
            "treatments": [one.to_dict() for one in self.treatments],
            "seconds": self.seconds,
        }
        return {name: as_json(value) for name, value in parts.items() if value is not None}

    def plan(self) -> Plan:
        """Return the plan by which the table was treated; raises InputError for a public record, which lacks values."""
        return _plan({"hierarchies": self.hierarchies, "treatments": [one.asked for one in self.treatments]}, "record")

    def to_stored(self) -> dict[str, Any]:
        """All of it, as `from_stored` takes it."""
        return as_json({**vars(self), "treatments": [as_json(vars(one)) for one in self.treatments]})  # type: ignore[no-any-return]

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> TreatmentsRecord:
        """The record that was stored."""
        return cls(**{**stored, "treatments": [TreatmentRecord(**one) for one in stored["treatments"]]})

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write it to a JSON file, whole or not at all; raises OutputError."""
        write_text(self.to_json() + "\n", path, overwrite)

    def draw(self, console: Console) -> None:
        if self.rows is not None:
            removed = f", [bold]{self.rows_removed:,}[/] removed" if self.rows_removed else ""
            console.print(f"[bold]{self.rows:,}[/] {plural(self.rows, 'row')} treated{removed}")
        words = [Heading("", show=str), *(Heading(name, text=True, show=str) for name in ("treatment", "column"))]
        counts = [Heading("cells changed", show=str), Heading("of rows", show=str), Heading("suppressed", show=str)]
        public = self.rows is None
        console.print(draw_table("Treatments", words if public else [*words, *counts], self._lines(public)))

    def _lines(self, public: bool) -> list[tuple[str, ...]]:
        lines: list[tuple[str, ...]] = []
        for number, one in enumerate(self.treatments, 1):
            start: tuple[str, ...] = (str(number), str(one.asked["do"]))
            named = one.asked.get("columns", one.asked.get("column", ""))
            columns = ", ".join(map(str, named)) if isinstance(named, list) else str(named)
            if public or not one.changed:
                gone = f"{one.rows_removed:,} {plural(one.rows_removed, 'row')}" if one.rows_removed else ""
                lines.append((*start, columns) if public else (*start, columns, "", "", gone))
                continue
            for name, cells in one.changed.items():
                suppressed = (one.suppressed or {}).get(name, 0)
                share = as_percent(cells / self.rows) if self.rows else ""
                lines.append((*start, name, f"{cells:,}", share, f"{suppressed:,}" if suppressed else ""))
                start = ("", "")
        return lines
