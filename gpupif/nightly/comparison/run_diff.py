"""What changed from one run to another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError, TableReadError
from ...utils.display import Displayable, draw_line
from ..outcome import GateResult, InputChanges, RunOutcome, Status
from ..record import kept
from ..record.record import Record
from ..table.input_files import input_changes
from ..table.schema import SchemaChange
from .changes import ColumnChange, ComparedRun, FigureChange, GateChange, ScoreChanges
from .summary_figures import Figure, figures_of_columns, figures_of_table

if TYPE_CHECKING:
    from rich.console import Console


# Of the cells and rows that are listed.
LISTED = 20
LAST, GOOD = "last", "good"
# A figure of the summary that is told of each column that was read.
COUNTED_ALREADY = "distinct_values"
# Runs that came to results.
ENDED = (Status.PASSED, Status.FAILED)


@dataclass(frozen=True)
class RunDiff(Displayable):
    """What changed from one run to another; made by `diff`. Prints as tables.

    inputs: how the files of the table differ. schema: columns that came, went, or changed their type. table: figures of
    the whole table that changed: rows, PIF by attacker, k, unique rows, rows in classes below k, the worst of sensitive
    attributes. columns: figures of columns that changed: distinct values, without
    that one is missing; missing values; risk by attacker. gates: all of
    both runs. scores: rows that became unique, and cells whose risk rose most; None where not both runs kept such.
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
        """All of it as plain numbers, text, lists and dictionaries, ready for JSON."""
        inputs = {kind: files if isinstance(files, int) else [*files] for kind, files in vars(self.inputs).items()}
        inputs["renamed"] = [list(names) for names in self.inputs.renamed]
        return super().to_dict() | {"inputs": inputs}

    def draw(self, console: Console) -> None:
        from . import diff_report as report

        for line in report.headings(self.before, self.after, self.config_changed):
            console.print(line, highlight=False)
        draw_line(console, report.files_line(self.inputs))
        for table in report.tables(self.schema, self.gates, self.table, self.columns):
            console.print(table)
        if self.scores is not None:
            for line in report.score_lines(self.scores):
                console.print(line, highlight=False)
            if self.scores.cells:
                console.print(report.cell_table(self.scores.cells))
        for sentence in self.missing:
            draw_line(console, sentence)


def diff_runs(
    state: Path,
    run_a: int | str | None = None,
    run_b: int | str | None = None,
    *,
    most: int = LISTED,
    temp: Path | None = None,
    show_values: bool = False,
) -> RunDiff:
    """See `gpupif.nightly.diff`; state: the folder of the runs, opened to be read only.

    temp: where temporary files go, if kept scores do not fit into memory; None: the system's place. show_values:
    whether values of cells and of the columns that tell rows apart are listed.
    """
    with Record.open(state) as record, record.snapshot():
        before, after = _chosen(record, run_a, run_b)
        folders = [None if run.kept is None else kept.find(state, run.number) for run in (before, after)]
    scores, missing = _scores(before, after, folders, most, temp, show_values)
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
    """The earlier and the later run."""
    ended = [head["number"] for head in record.heads() if head["status"] in ENDED and head["removed"] is None]
    later = _number(record, ended, LAST if run_b is None else run_b, None)
    past = [number for number in ended if number < later]
    if run_a is None and not past:
        raise InputError(
            f"{record.folder}: there is no run before run {later} that came to results. It takes two to compare."
        )
    earlier = past[-1] if run_a is None else _number(record, ended, run_a, later)
    if earlier == later:
        raise InputError(f"run_a: expected another run than run_b, got run {later} for both.")
    runs = [record.run(number) for number in (earlier, later)]
    for run in runs:
        if run.status not in ENDED:
            raise InputError(f"run {run.number}: came to no results (it is {run.status}). Name another one.")
    return runs[0], runs[1]


def _number(record: Record, ended: Sequence[int], name: int | str, before: int | None) -> int:
    """The number of a run, from its number or name."""
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
    """Figures that differ, in the order of the later run; those that it lacks last."""
    old, new = dict(before), dict(after)
    pairs = [(figure, old.get(figure), new.get(figure)) for figure in dict.fromkeys([*new, *old])]
    return [FigureChange(*figure, a, b, _rise(a, b)) for figure, a, b in pairs if not _same(a, b)]


def _same(a: float | None, b: float | None) -> bool:
    return a == b or (a != a and b != b)


def _rise(a: float | None, b: float | None) -> float | None:
    if a is None or b is None or not (math.isfinite(a) and math.isfinite(b)):
        return None
    return b - a


def _gates(before: RunOutcome, after: RunOutcome) -> list[GateChange]:
    """Gates of both runs, in the order of the later one; those that it lacks last."""
    waiting = list(before.gates)
    past: dict[str, GateResult] = {}
    # What measures the same is the same gate, whatever it is called; of several first the one of the same name.
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
    temp: Path | None,
    show_values: bool,
) -> tuple[ScoreChanges | None, list[str]]:
    """How kept scores differ, or why that cannot be said."""
    lacking = [str(run.number) for run in (before, after) if run.kept is None]
    if lacking:
        return None, [
            f"Newly unique rows, and the cells whose risk rose most: {' and '.join(f'run {one}' for one in lacking)} "
            'kept no scores. They take keep.scores = "all" or "cells".'
        ]
    from .score_changes import Side, compare, why_not

    sides = []
    for run, folder in zip((before, after), folders, strict=True):
        if folder is None:
            raise TableReadError(
                f"run {run.number}: its kept scores are gone. `gpupif nightly verify` says what else is."
            )
        assert run.kept is not None
        for problem in kept.check(folder, run.kept):
            raise TableReadError(problem)
        sides.append(Side(folder, kept.read_manifest(folder)))
    reason = why_not(*sides)
    if reason is not None:
        return None, [f"Newly unique rows, and the cells whose risk rose most: {reason}"]
    return compare(sides[0], sides[1], most, temp, show_values)
