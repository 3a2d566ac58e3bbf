"""The differences between two runs, `gpupif.nightly.diff`: out of the record and kept scores, drawn as tables."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, TableReadError
from ...utils.display import Displayable, Heading, as_text, draw_line, draw_table, plural
from ..configuration.config import Config, RunsPlace, find_runs
from ..exit_codes import ENDED
from ..record.kept_scores import KeptFolder, check, read_manifest
from ..record.record import Record
from ..run_outcome import GateResult, RunOutcome
from ..table.table_changes import InputChanges, SchemaChange, input_changes
from .figures import Figure, figures_of_columns, figures_of_table, shown_name
from .score_changes import CellChange, ScoreChanges, Side, compare, why_not

if TYPE_CHECKING:
    from rich.console import Console

    from ...utils.printed_table import PrintedTable

# The number of cells and rows that are listed.
LISTED = 20
# The number of files of each kind, and of figures of columns, that are printed.
LISTED_FILES, LISTED_FIGURES = 5, 20
LAST, GOOD = "last", "good"
# A figure of the summary that the profile of a column has, too.
COUNTED_ALREADY = "distinct_values"


@dataclass(frozen=True)
class ComparedRun:
    """A run that is compared."""

    number: int
    started: str
    status: str
    rows: int | None


@dataclass(frozen=True)
class FigureChange:
    """A number that changed. change: None where one of them is not known, or not finite."""

    name: str
    unit: str
    attacker: str | None
    column: str | None
    before: float | None
    after: float | None
    change: float | None


@dataclass(frozen=True)
class ColumnChange:
    """A column that came (before: None), went (after: None), or changed its type."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class GateChange:
    """A gate of either run, under its later name; value and verdict None in a run that did not measure it."""

    name: str
    unit: str
    before: float | None
    after: float | None
    verdict_before: str | None
    verdict: str | None


@dataclass(frozen=True)
class RunDiff(Displayable):
    """The differences between two runs, made by `diff`. Prints as tables.

    inputs: how the files of the table differ. schema: columns that came, went, or changed their type. table: figures of
    the whole table that changed: rows, PIF by attacker, k, unique rows, rows in classes below k, the worst of sensitive
    attributes. columns: figures of columns that changed: distinct values, a missing value not counted; missing values;
    risk by attacker. gates: all of both runs. scores: rows that became unique, and cells whose risk rose most; None
    unless both runs kept scores.
    missing: what cannot be said, and which setting it takes, one sentence each.
    """

    before: ComparedRun
    after: ComparedRun
    config_changed: bool
    inputs: InputChanges
    schema: Sequence[ColumnChange]
    table: Sequence[FigureChange]
    columns: Sequence[FigureChange]
    gates: Sequence[GateChange]
    scores: ScoreChanges | None
    missing: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the differences as plain numbers, text, lists and dictionaries, ready for JSON."""
        inputs = {kind: files if isinstance(files, int) else [*files] for kind, files in vars(self.inputs).items()}
        inputs["renamed"] = [list(names) for names in self.inputs.renamed]
        return super().to_dict() | {"inputs": inputs}

    def draw(self, console: Console) -> None:
        before, after = self.before, self.after
        compared = (
            f"Run [bold]{before.number}[/] ({before.started}, {before.status}) to run [bold]{after.number}[/] "
            f"({after.started}, {after.status})"
        )
        console.print(compared, highlight=False)
        if self.config_changed:
            console.print("[yellow]The configuration changed in between.[/]", highlight=False)
        draw_line(console, _files_line(self.inputs))
        for table in self._tables():
            console.print(table)
        if self.scores is not None:
            for line in _score_lines(self.scores):
                console.print(line, highlight=False)
            if self.scores.cells:
                console.print(_cell_table(self.scores.cells))
        for sentence in self.missing:
            draw_line(console, sentence)

    def _tables(self) -> Iterator[PrintedTable]:
        """Yield the tables of all that changed, except the scores."""
        if self.schema:
            headings = [Heading(name, text=True, show=_or_none) for name in ("column", "type before", "type after")]
            types = [(column.name, column.before, column.after) for column in self.schema]
            yield draw_table("Columns that came, went, or changed their type", headings, types)
        if self.gates:
            headings = [Heading("gate", text=True), Heading("before", show=_number), Heading("after", show=_number)]
            headings += [Heading("unit", text=True)]
            headings += [Heading(name, text=True, show=_or_none) for name in ("verdict before", "verdict")]
            rows = [
                (gate.name, gate.before, gate.after, gate.unit, gate.verdict_before, gate.verdict)
                for gate in self.gates
            ]
            yield draw_table("Gates", headings, rows)
        if self.table:
            yield _figure_table("The table: what changed", self.table, with_column=False)
        if self.columns:
            # FIG grows with the number of rows. The mean CIG, which is FIG per row, is a figure of its own.
            per_row = [figure for figure in self.columns if figure.name != "fig"]
            first = sorted(per_row, key=lambda figure: -abs(figure.change or 0))[:LISTED_FIGURES]
            left = len(self.columns) - len(first)
            more = f"; {left} more {plural(left, 'figure')} in JSON" if left else ""
            yield _figure_table(f"Columns: what changed most{more}", first, with_column=True)


def diff(
    config: str | os.PathLike[str] | Config,
    run_a: int | str | None = None,
    run_b: int | str | None = None,
    *,
    most: int = LISTED,
    overrides: Sequence[str] = (),
) -> RunDiff:
    """Return what changed from one run to another: columns, gates, classes, rows, and the cells whose risk rose most.

    Rows and cells are found in the scores that both runs kept (``keep.scores``). Values of the table are listed where
    ``run.show_values`` is set.

    Parameters
    ----------
    config, overrides:
        As of `gpupif.nightly.run`; only its table [run] is read.
    run_a, run_b:
        The earlier and the later run: numbers, "last" (of those that came to results) or "good" (the last of which all
        gates hold, before the later one). Default: the two last that came to results. With one of them that is
        compared with the last.
    most:
        How many cells and rows are listed.

    Returns
    -------
    RunDiff
        ``.inputs`` (files), ``.schema``, ``.table`` and ``.columns`` (figures that changed, each with its unit),
        ``.gates``, ``.scores`` (newly unique rows and the cells whose risk rose most, in units of the measure; None
        where that cannot be said), ``.missing`` (why, and which setting it takes). Prints as tables; ``.to_dict()``,
        ``.to_json()``.

    Raises
    ------
    InputError
        A configuration that is wrong; a run that never was, was removed, or came to no results; fewer than two runs.
    TableReadError
        A record, or kept scores, that are damaged.
    OutputError
        No room for temporary files.

    """
    place = find_runs(config, overrides)
    with Record.open(place.state) as record, record.snapshot():
        before, after = _chosen(record, run_a, run_b)
        folders = [None if run.kept is None else KeptFolder(place.state, run.number).find() for run in (before, after)]
    scores, missing = _scores(before, after, folders, most, place)
    return RunDiff(
        _compared(before),
        _compared(after),
        before.config_digest != after.config_digest,
        input_changes(before.files, after.files),
        _schema(before, after),
        _changed(_figures(before), _figures(after)),
        _changed(_column_figures(before), _column_figures(after)),
        _gates(before, after),
        scores,
        missing,
    )


def _compared(run: RunOutcome) -> ComparedRun:
    return ComparedRun(run.number, run.started, str(run.status), run.rows)


def _chosen(record: Record, run_a: int | str | None, run_b: int | str | None) -> tuple[RunOutcome, RunOutcome]:
    """Return the earlier and the later run."""
    ended = [head["number"] for head in record.heads() if head["status"] in ENDED and head["removed"] is None]
    later = _run_number(record, ended, LAST if run_b is None else run_b, None)
    past = [number for number in ended if number < later]
    if run_a is None and not past:
        raise InputError(
            f"{record.folder}: there is no run before run {later} that came to results. It takes two to compare."
        )
    earlier = past[-1] if run_a is None else _run_number(record, ended, run_a, later)
    if earlier == later:
        raise InputError(f"run_a: expected another run than run_b, got run {later} for both.")
    runs = [record.run(number) for number in (earlier, later)]
    for run in runs:
        if run.status not in ENDED:
            raise InputError(f"run {run.number}: came to no results (it is {run.status}). Name another one.")
    return runs[0], runs[1]


def _run_number(record: Record, ended: Sequence[int], name: int | str, before: int | None) -> int:
    """Return the number of a run, from its number or name."""
    if name == LAST:
        if not ended:
            raise InputError(f"{record.folder}: no run has come to results yet.")
        return ended[-1]
    if name == GOOD:
        good = record.last_good(before)
        if good is None:
            earlier = "" if before is None else f" before run {before}"
            raise InputError(f"{record.folder}: there is no run{earlier} of which all gates hold.")
        return good.number
    try:
        return int(name)
    except ValueError:
        raise InputError(f"run: expected a number, {LAST!r} or {GOOD!r}, got {name!r}.") from None


def _schema(before: RunOutcome, after: RunOutcome) -> list[ColumnChange]:
    then, now = ({column.name: column.type for column in run.columns} for run in (before, after))
    change = SchemaChange.between(then, now)
    changed = {*change.came, *change.went, *change.changed}
    return [ColumnChange(name, then.get(name), now.get(name)) for name in {**then, **now} if name in changed]


def _figures(run: RunOutcome) -> Iterator[tuple[Figure, float | None]]:
    yield Figure("rows", "rows"), run.rows
    yield Figure("distinct rows", "rows"), run.distinct_rows
    yield from figures_of_table(run.summary, run.risk)


def _column_figures(run: RunOutcome) -> Iterator[tuple[Figure, float | None]]:
    for column in run.columns:
        yield Figure("distinct values", "values", None, column.name), column.distinct_values
        yield Figure("missing", "rows", None, column.name), column.missing
    # The summary counts missing values as one more.
    yield from ((figure, value) for figure, value in figures_of_columns(run.summary) if figure.name != COUNTED_ALREADY)


def _changed(
    before: Iterable[tuple[Figure, float | None]], after: Iterable[tuple[Figure, float | None]]
) -> list[FigureChange]:
    """Return the figures that differ, in the order of the later run; figures that it lacks come last."""
    old, new = dict(before), dict(after)
    changes = []
    for figure in dict.fromkeys([*new, *old]):
        a, b = old.get(figure), new.get(figure)
        # NaN is the same as NaN.
        if a != b and (a == a or b == b):
            change = None
            if a is not None and b is not None and math.isfinite(a) and math.isfinite(b):
                change = b - a
            changes.append(FigureChange(*figure, a, b, change))
    return changes


def _gates(before: RunOutcome, after: RunOutcome) -> list[GateChange]:
    """Return the gates of both runs, in the order of the later run; gates that it lacks come last."""
    waiting = list(before.gates)
    past: dict[str, GateResult] = {}
    # Gates that measure the same are the same gate, whatever their names; if several do, the name decides.
    for named in (True, False):
        for gate in after.gates:
            same = [
                one for one in waiting if one.definition == gate.definition and (one.name == gate.name or not named)
            ]
            if gate.name not in past and same and (named or gate.definition):
                past[gate.name] = same[0]
                waiting.remove(same[0])
    return [
        *(_gate(past.get(gate.name), gate) for gate in after.gates),
        *(_gate(gate, None) for gate in waiting),
    ]


def _gate(before: GateResult | None, after: GateResult | None) -> GateChange:
    one = after or before
    assert one is not None
    return GateChange(
        one.name,
        one.unit,
        None if before is None else before.value,
        None if after is None else after.value,
        None if before is None else str(before.verdict),
        None if after is None else str(after.verdict),
    )


def _scores(
    before: RunOutcome,
    after: RunOutcome,
    folders: Sequence[Path | None],
    most: int,
    place: RunsPlace,
) -> tuple[ScoreChanges | None, list[str]]:
    """Return how kept scores differ; None if that cannot be said, and the reasons."""
    lacking = [str(run.number) for run in (before, after) if run.kept is None]
    if lacking:
        return None, [
            f"Newly unique rows, and the cells whose risk rose most: {' and '.join(f'run {one}' for one in lacking)} "
            'kept no scores. They take keep.scores = "all" or "cells".'
        ]
    sides = []
    for run, folder in zip((before, after), folders, strict=True):
        if folder is None:
            raise TableReadError(
                f"run {run.number}: its kept scores are gone. `gpupif nightly verify` says what else is."
            )
        assert run.kept is not None
        for problem in check(folder, run.kept):
            raise TableReadError(problem)
        sides.append(Side(folder, read_manifest(folder)))
    reason = why_not(*sides)
    if reason is not None:
        return None, [f"Newly unique rows, and the cells whose risk rose most: {reason}"]
    return compare(sides[0], sides[1], most, place.temp, place.show_values)


def _files_line(inputs: InputChanges) -> str:
    """Return how the files differ, in a line."""
    several = {
        "added": inputs.added,
        "removed": inputs.removed,
        "changed": inputs.changed,
        "renamed": [f"{old} to {new}" for old, new in inputs.renamed],
    }
    changes = []
    for kind, paths in several.items():
        more = [f"{len(paths) - LISTED_FILES} more"] if len(paths) > LISTED_FILES else []
        changes += [f"{len(paths)} {kind} ({', '.join([*paths[:LISTED_FILES], *more])})"] if paths else []
    return f"Files: {', '.join([*changes, f'{inputs.unchanged} unchanged'])}"


def _with_unit(name: str, unit: str) -> str:
    """Return the name of a figure with its unit, unless the name says it."""
    return f"{name}, {unit}" if unit and unit not in name.split() else name


def _figure_table(title: str, figures: Sequence[FigureChange], with_column: bool) -> PrintedTable:
    attackers = any(figure.attacker is not None for figure in figures)
    headings = [Heading("column", text=True)] if with_column else []
    headings += [Heading("figure", text=True)]
    headings += [Heading("attacker", text=True, show=_or_none)] if attackers else []
    headings += [Heading(name, show=_number) for name in ("before", "after", "change")]
    rows = [
        (
            *((figure.column,) if with_column else ()),
            _with_unit(shown_name(figure.name), figure.unit),
            *((figure.attacker,) if attackers else ()),
            *(figure.before, figure.after, figure.change),
        )
        for figure in figures
    ]
    return draw_table(title, headings, rows)


def _score_lines(scores: ScoreChanges) -> list[str]:
    """Return the rows that became unique, and how many cells rose, in rich's markup."""
    lines = []
    unique = scores.newly_unique
    if unique is not None:
        listed = ", ".join(map(str, unique.rows))
        places = f": {listed}{', ...' if unique.count > len(unique.rows) else ''} (from 0)" if unique.rows else ""
        lines.append(f"Newly unique rows: [bold]{unique.count:,}[/]{places}")
    compared = f"{scores.compared:,} cells compared by {scores.by}"
    return [*lines, f"{compared}: {scores.rose:,} rose, {scores.fell:,} fell ({scores.measure})"]


def _cell_table(cells: Sequence[CellChange]) -> PrintedTable:
    """Return a table of the cells whose risk rose most."""
    keys = list(dict.fromkeys(name for cell in cells for name in cell.key or {}))
    values = any(cell.value is not None for cell in cells)
    headings = [
        Heading("row"),
        *(Heading(name, text=True, show=as_text) for name in keys),
        Heading("column", text=True),
    ]
    headings += [Heading("value", text=True, show=as_text)] if values else []
    headings += [Heading(name) for name in ("before", "after", "rise")]
    rows = [
        (
            cell.row,
            *((cell.key or {}).get(name) for name in keys),
            cell.column,
            *((cell.value,) if values else ()),
            *(cell.before, cell.after, abs(cell.after - cell.before)),
        )
        for cell in cells
    ]
    return draw_table("Cells whose risk rose most", headings, rows)


def _number(value: Any) -> str:
    """Return a number as text; empty if it is not known."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _or_none(value: Any) -> str:
    return "" if value is None else str(value)
