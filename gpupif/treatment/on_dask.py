"""A Dask frame as treated so far: what has to be known of all rows is computed at once, the treated frame stays lazy.

Each partition is treated by a task of its own. Where it begins in the table, its facts, and the types and categories
that its columns have in the whole table, go with it.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..attack.arguments import Arguments
from ..dask.graph import Graph
from ..dask.watch import compute
from ..encoding.merge import ValueCounts, total_values
from ..errors import ColumnTypeError, InputError
from ..frames.dask_frame import check_dask_frame
from ..frames.open import open_frame
from ..frames.pandas_columns import other_column
from ..frames.replacement import Replacement
from ..pipeline.graph import Result
from ..rows.keys import code_type
from ..scoring.score import score_table
from ..utils.progress import Reporter
from ..utils.validation import check_unique
from .base import ColumnValues, PieceColumn, RowFacts, Step, ValueMapStep
from .columns import column_values, in_order
from .mapped_values import mapped_values
from .partition import (
    GivenFacts,
    PartitionEnds,
    PartitionPiece,
    Treating,
    ends_of,
    facts_of_scores,
    kept_in,
    plain_frame,
    sample_of,
    total_ends,
    treated_frame,
    values_in,
)
from .record import StepCounts
from .run import TreatableTable, apply_plan, make_record
from .steps import PieceColumns, Steps
from .treated import Treated

if TYPE_CHECKING:
    from .plan import Plan
    from .randomness.key import Key


class DaskFacts(RowFacts):
    """Facts by partition. To tasks only its key goes; those of their partition go with it."""

    def __init__(self, parts: Sequence[Mapping[str, npt.NDArray[Any]]]) -> None:
        self.key = uuid.uuid4().hex
        self.parts = parts
        self.names = list(parts[0]) if parts else []

    def __reduce__(self) -> Any:
        return _facts_in_task, (self.key, list(self.names))


def _facts_in_task(key: str, names: Sequence[str]) -> DaskFacts:
    facts = DaskFacts([])
    facts.key, facts.names = key, names
    return facts


class DaskTable(TreatableTable):
    """A Dask frame."""

    def __init__(self, table: Any, report: Reporter) -> None:
        check_dask_frame(table)
        check_unique(list(table.columns))
        self.counts: list[StepCounts] = []
        self.table = table
        self.index = table._meta.index
        self._report = report
        self._graph = Graph()
        self._partitions = self._graph.take(table)
        self._facts: list[DaskFacts] = []
        self._values: dict[Hashable, ColumnValues] = {}
        self._expected: list[Hashable] = []
        graph = self._graph.copy()
        found = compute(graph.value(graph.all("counts", graph.each("sample", sample_of, self._partitions))), report)
        # Before each step, the rows of each partition; None where they have to be counted.
        self._sizes: list[list[int] | None] = [[rows for rows, _ in found]]
        if not sum(self._sizes[0] or []):
            listed = ", ".join(map(str, table.columns))
            raise InputError(f"table: expected at least one row, got none (columns: {listed}).")
        frame = open_frame(next(sample for rows, sample in found if rows))
        self._kinds: dict[Hashable, pa.DataType] = {}
        sample = PieceColumns(lambda name: frame.column(frame.names.index(name)), self._kinds)
        self._steps = Steps(list(table.columns), sample, frame.rows)

    @property
    def names(self) -> Sequence[Hashable]:  # type: ignore[override]
        """The columns that there are still."""
        return self._steps.names

    @property
    def rows(self) -> int:  # type: ignore[override]
        """Rows as treated so far, of all partitions."""
        return sum(self.sizes(len(self._steps.uses)))

    def expect(self, names: Sequence[Hashable]) -> None:
        """See `TreatableTable`: which types their values have.

        A column without a value in a partition tells none there: what the first rows do not tell all are asked.
        """
        for name in dict.fromkeys(names):
            # What cannot be compared is refused when it is asked for.
            with contextlib.suppress(ColumnTypeError):
                self._kinds[name] = self._steps.sample.before(name).labels.type
        unknown = [name for name, kind in self._kinds.items() if pa.types.is_null(kind)]
        self.ask_together(unknown)
        for name in unknown:
            with contextlib.suppress(ColumnTypeError):
                self._kinds[name] = self.values(name).labels.type

    def ask_together(self, names: Sequence[Hashable]) -> None:
        self._expected = list(dict.fromkeys(names))

    def sizes(self, level: int) -> list[int]:
        """The rows of each partition before a step."""
        found = self._sizes[level]
        if found is None:
            if self._steps.uses[level - 1].removes:
                found = self._compute(f"count-{level}", lambda *given: given[0].rows(*given[1:]), level)
            else:
                found = self.sizes(level - 1)
            self._sizes[level] = found
        return found

    def apply(self, step: Step, names: Sequence[Hashable] = (), said: str = "") -> None:
        use = self._steps.add(step, names, partial(PartitionPiece, given=self._of_first()), said)
        self._sizes.append(None)
        self.counts.append(StepCounts())
        if use.removes:
            self._values = {}
        for name in use.changes:
            values = self._values.pop(name, None)
            if values is not None and isinstance(step, ValueMapStep):
                self._values[name] = mapped_values(step, values)

    def _of_first(self) -> GivenFacts:
        """The facts of the rows that the sample is of, and those behind them."""
        return GivenFacts({one.key: _joined(one.parts) for one in self._facts})

    def each(self, graph: Graph, stage: str, function: Callable[..., Any], level: int | None = None) -> list[Result]:
        """A task for each partition: function(treating, partition, starts, facts). level: so many steps are done."""
        level = len(self._steps.uses) if level is None else level
        starts: list[list[int]] = [[] for _ in self._partitions]
        for number in range(level):
            before = [0, *accumulate(self.sizes(number))]
            for own, start in zip(starts, before, strict=False):
                own.append(start)
        given = [GivenFacts({one.key: one.parts[place] for one in self._facts}) for place in range(len(starts))]
        treating = Treating(self._steps.uses[:level], list(self.table.columns), list(self._steps.names), self._kinds)
        shared = graph.given(f"{stage}-steps", treating)
        starting = [_Starts(own) for own in starts]
        return graph.each(stage, function, shared, self._partitions, starting, given)

    def _compute(self, stage: str, function: Callable[..., Any], level: int | None = None) -> list[Any]:
        graph = self._graph.copy()
        results = self.each(graph, stage, function, level)
        return list(compute(graph.value(graph.all(f"all-{stage}", results)), self._report))

    def values(self, name: Hashable) -> ColumnValues:
        if name not in self._values:
            others = [one for one in self._expected if one in self._steps.names and one not in self._values]
            names = list(dict.fromkeys([name, *others]))
            graph = self._graph.copy()
            parts = self.each(graph, "values", partial(values_in, names, name))
            whole = graph.tree("merge", partial(_total, names), parts)
            found: Sequence[ValueCounts | None] = compute(graph.value(whole), self._report)
            for one, own in zip(names, found, strict=True):
                if own is not None:
                    values = column_values(*own)
                    self._values[one] = replace(values, labels=self._steps.typed(one, values.labels))
        return self._values[name]

    def codes(self, names: Sequence[Hashable], row_bytes: int = 0) -> list[PieceColumn]:
        labels = [self.values(name).labels for name in names]
        parts = self._compute("codes", partial(_codes_in, list(names), labels))
        kinds = [code_type(len(own) + 1) for own in labels]
        return [
            PieceColumn(np.concatenate([part[place].astype(kind, copy=False) for part in parts]), own)
            for place, (own, kind) in enumerate(zip(labels, kinds, strict=True))
        ]

    def facts_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> RowFacts:
        edges = np.cumsum(self.sizes(len(self._steps.uses)))[:-1]
        cut = {name: np.split(array, edges) for name, array in arrays.items()}
        return self._kept([{name: own[place] for name, own in cut.items()} for place in range(len(self._partitions))])

    def scores(
        self, arguments: Arguments, make: Callable[[Mapping[str, npt.NDArray[Any]]], Mapping[str, npt.NDArray[Any]]]
    ) -> RowFacts:
        scored = score_table(self.plain(), arguments).frame()
        graph = Graph()
        parts = graph.each("facts", partial(facts_of_scores, make), graph.take(scored))
        return self._kept(list(compute(graph.value(graph.all("all-facts", parts)), self._report)))

    def _kept(self, parts: Sequence[Mapping[str, npt.NDArray[Any]]]) -> DaskFacts:
        facts = DaskFacts(parts)
        self._facts.append(facts)
        return facts

    def kept_rows(self) -> npt.NDArray[np.bool_]:
        """Return by row of the frame whether it is still there."""
        return np.concatenate(self._compute("kept", kept_in))

    def plain(self) -> Any:
        """The frame as it is now, values as steps see them."""
        graph = self._graph.copy()
        kinds = dict(self._steps.types)
        partitions = self.each(graph, "plain", partial(plain_frame, kinds))
        return graph.frame("plain", partitions, plain_frame(kinds, *self._nothing()), self._divisions())

    def _nothing(self) -> Any:
        """What makes a frame without rows."""
        treating = Treating([], list(self.table.columns), list(self._steps.names), self._kinds)
        return treating, self.table._meta.iloc[:0], _Starts([]), GivenFacts({})

    def _divisions(self) -> Sequence[Any]:
        return tuple(self.table.divisions)

    def done(self) -> Any:
        """The treated frame, lazy; what was done is counted now, and of which types and categories its columns are."""
        touched = frozenset[Hashable]().union(*(use.changes for use in self._steps.uses))
        names = [name for name in self._steps.names if name in touched]
        categorical = [name for name, kind in self.table._meta.dtypes.items() if hasattr(kind, "categories")]
        left = [name for name in categorical if name in self._steps.names]
        graph = self._graph.copy()
        ends = self.each(graph, "ends", partial(ends_of, names, categorical, left))
        whole: PartitionEnds = compute(graph.value(graph.tree("total", partial(total_ends, names), ends)), self._report)
        for own, use, found in zip(self.counts, self._steps.uses, whole.counts, strict=True):
            own.changed, own.rows_removed, own.dropped = found.changed, found.rows_removed, list(use.dropped)
        changed = {name for one in whole.counts for name, cells in one.changed.items() if cells.cells}
        made = {name for name in names if name in changed or whole.kinds[name][0] != whole.kinds[name][1]}
        columns = {name: _final(whole, name, self.table._meta[name]) for name in names if name in made}
        left_alone = {
            name: pd.CategoricalDtype(every[every.isin(used)], self.table._meta[name].dtype.ordered)
            for name, (every, used) in whole.categories.items()
            if name not in columns
        }
        graph = self._graph.copy()
        partitions = self.each(graph, "treated", partial(treated_frame, columns, left_alone))
        meta = treated_frame(columns, left_alone, *self._nothing())
        return graph.frame("treated", partitions, meta, self._divisions())


class _Starts(list[int]):
    """Starts of a partition; no list of tasks, for Dask."""


def _joined(parts: Sequence[Mapping[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}


def _total(names: Sequence[Hashable], *parts: Sequence[ValueCounts | None]) -> list[ValueCounts | None]:
    """The values of columns in partitions that follow each other; of one that cannot be counted none."""
    found: list[ValueCounts | None] = []
    for place, name in enumerate(names):
        own = [part[place] for part in parts]
        found.append(None if any(one is None for one in own) else total_values(name, [one for one in own if one]))
    return found


def _codes_in(names: Sequence[Hashable], labels: Sequence[pa.Array], *given: Any) -> list[npt.NDArray[Any]]:
    now = given[0].run(*given[1:]).columns
    return [in_order(now.find(name), own).codes for name, own in zip(names, labels, strict=True)]


def _final(whole: PartitionEnds, name: Hashable, like: Any) -> Any:
    """The type that a column has in the treated frame: that of a column with all its values."""
    labels, missing = whole.labels[name], whole.missing[name]
    codes = np.arange(len(labels) + missing).astype(np.int64)
    like = like.to_pandas() if hasattr(like, "to_pandas") else like
    if isinstance(like.dtype, pd.CategoricalDtype) and name in whole.orders:
        like = pd.Series(pd.Categorical([], whole.orders[name], ordered=like.dtype.ordered))
    return pd.Series(other_column(Replacement(codes, labels, whole.kinds[name][0]), like)).dtype


def treat_dask(table: Any, plan: Plan, key: Key | None) -> Treated:
    """As `gpupif.treat`, of a Dask frame, and with a plan and key that are checked."""
    started = time.perf_counter()
    with Reporter() as report:
        working = DaskTable(table, report)
        applied = apply_plan(working, plan, key, report)
        treated = working.done()
    rows = sum(working.sizes(0))
    source = {"rows": rows, "columns": len(table.columns), "partitions": table.npartitions}
    return Treated(treated, make_record(plan, applied, working.counts, source, rows, key, started), working, applied)
