"""A Dask frame as treated so far: what has to be known of all rows is computed at once, the treated frame stays lazy.

Each partition is treated by a task of its own. Where it begins in the table, its facts, and the types and categories
that its columns have in the whole table, go with it.
"""

from __future__ import annotations

import contextlib
import time
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
from ..dask.cluster_progress import compute
from ..dask.dask_graph import Graph
from ..encoding.merge import ValueCounts, total_values
from ..errors import ColumnTypeError, InputError
from ..frames.dask_frame import check_dask_frame
from ..frames.open import open_frame
from ..frames.pandas_frame import other_column
from ..frames.replacement import Replacement
from ..pipeline.task_graph import Result
from ..rows.keys import code_type
from ..scoring.score import score_table
from ..utils.progress import Reporter
from ..utils.validation import check_unique
from .coded_columns import CodedColumn, ColumnValues, column_values, in_order
from .dask_partition import (
    DaskFacts,
    PartitionEnds,
    PartitionSteps,
    Place,
    column_of_frame,
    ends_of,
    facts_of_scores,
    first_rows_of,
    kept_in,
    plain_frame,
    rows_in,
    total_ends,
    treated_frame,
    values_in,
)
from .plan_run import Treated, apply_plan, make_record
from .steps import RowFacts, Step, StepCounts, Steps
from .treatment import TreatedTable

if TYPE_CHECKING:
    from .plan import Plan
    from .random.key import Key


class DaskTable(TreatedTable):
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
        self._expected: list[Hashable] = []
        graph = self._graph.copy()
        found = compute(graph.value(graph.all("counts", graph.each("first", first_rows_of, self._partitions))), report)
        # Before each step, the rows of each partition; None where they have to be counted.
        self._sizes: list[list[int] | None] = [[rows for rows, _ in found]]
        if not sum(self._sizes[0] or []):
            listed = ", ".join(map(str, table.columns))
            raise InputError(f"table: expected at least one row, got none (columns: {listed}).")
        self._first = open_frame(next(first for rows, first in found if rows))
        self._types: dict[Hashable, pa.DataType] = {}
        self._steps = Steps(list(table.columns), self._type_of)

    def _type_of(self, name: Hashable) -> pa.DataType:
        """Return the type of the values of a column as it came."""
        return column_of_frame(self._first, name, self._types).labels.type

    @property
    def names(self) -> Sequence[Hashable]:  # type: ignore[override]
        """The columns that there are still."""
        return self._steps.names

    @property
    def rows(self) -> int:  # type: ignore[override]
        """Rows as treated so far, of all partitions."""
        return sum(self.sizes(len(self._steps.applied)))

    def expect(self, names: Sequence[Hashable]) -> None:
        """Find of which types the values of columns are.

        A column without a value in a partition tells none there: what the first rows do not tell all are asked.
        """
        for name in dict.fromkeys(names):
            # What cannot be compared is refused when it is asked for.
            with contextlib.suppress(ColumnTypeError):
                self._types[name] = self._type_of(name)
        unknown = [name for name, kind in self._types.items() if pa.types.is_null(kind)]
        self.ask_together(unknown)
        for name in unknown:
            with contextlib.suppress(ColumnTypeError):
                self._types[name] = self.values(name).labels.type

    def ask_together(self, names: Sequence[Hashable]) -> None:
        self._expected = list(dict.fromkeys(names))

    def sizes(self, level: int) -> list[int]:
        """The rows of each partition before a step."""
        found = self._sizes[level]
        if found is None:
            if self._steps.applied[level - 1][0].removes_rows:
                found = self._compute(f"count-{level}", rows_in, level)
            else:
                found = self.sizes(level - 1)
            self._sizes[level] = found
        return found

    def apply(self, step: Step, said: str = "") -> None:
        self._steps.add(step, said)
        self._sizes.append(None)
        self.counts.append(StepCounts(dropped=step.drops))

    def each(self, graph: Graph, stage: str, function: Callable[..., Any], level: int | None = None) -> list[Result]:
        """A task for each partition: function(steps, partition, place). level: so many steps are done."""
        level = len(self._steps.applied) if level is None else level
        starts: list[list[int]] = [[] for _ in self._partitions]
        for number in range(level):
            before = [0, *accumulate(self.sizes(number))]
            for own, start in zip(starts, before, strict=False):
                own.append(start)
        places = [Place(own, {one.key: one.parts[number] for one in self._facts}) for number, own in enumerate(starts)]
        steps = PartitionSteps(
            self._steps.applied[:level], list(self.table.columns), list(self._steps.names), self._types
        )
        return graph.each(stage, function, graph.given(f"{stage}-steps", steps), self._partitions, places)

    def _compute(self, stage: str, function: Callable[..., Any], level: int | None = None) -> list[Any]:
        graph = self._graph.copy()
        results = self.each(graph, stage, function, level)
        return list(compute(graph.value(graph.all(f"all-{stage}", results)), self._report))

    def values(self, name: Hashable) -> ColumnValues:
        if name not in self._steps.values:
            others = [one for one in self._expected if one in self._steps.names and one not in self._steps.values]
            names = list(dict.fromkeys([name, *others]))
            graph = self._graph.copy()
            parts = self.each(graph, "values", partial(values_in, names, name))
            whole = graph.tree("merge", partial(_total, names), parts)
            found: Sequence[ValueCounts | None] = compute(graph.value(whole), self._report)
            for one, own in zip(names, found, strict=True):
                if own is not None:
                    values = column_values(*own)
                    self._steps.values[one] = replace(values, labels=self._steps.typed(one, values.labels))
        return self._steps.values[name]

    def codes(self, names: Sequence[Hashable], row_bytes: int = 0) -> list[CodedColumn]:
        labels = [self.values(name).labels for name in names]
        parts = self._compute("codes", partial(_codes_in, list(names), labels))
        kinds = [code_type(len(own) + 1) for own in labels]
        return [
            CodedColumn(np.concatenate([part[place].astype(kind, copy=False) for part in parts]), own)
            for place, (own, kind) in enumerate(zip(labels, kinds, strict=True))
        ]

    def facts_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> RowFacts:
        edges = np.cumsum(self.sizes(len(self._steps.applied)))[:-1]
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
        steps = PartitionSteps([], list(self.table.columns), list(self._steps.names), self._types)
        return steps, self.table._meta.iloc[:0], Place([], {})

    def _divisions(self) -> Sequence[Any]:
        return tuple(self.table.divisions)

    def done(self) -> Any:
        """The treated frame, lazy; what was done is counted now, and of which types and categories its columns are."""
        touched = {name for step, _ in self._steps.applied for name in step.writes}
        names = [name for name in self._steps.names if name in touched]
        categorical = [name for name, kind in self.table._meta.dtypes.items() if hasattr(kind, "categories")]
        left = [name for name in categorical if name in self._steps.names]
        graph = self._graph.copy()
        ends = self.each(graph, "ends", partial(ends_of, names, categorical, left))
        whole: PartitionEnds = compute(graph.value(graph.tree("total", partial(total_ends, names), ends)), self._report)
        for own, found in zip(self.counts, whole.counts, strict=True):
            own.changed, own.rows_removed = found.changed, found.rows_removed
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


def _total(names: Sequence[Hashable], *parts: Sequence[ValueCounts | None]) -> list[ValueCounts | None]:
    """The values of columns in partitions that follow each other; of one that cannot be counted none."""
    found: list[ValueCounts | None] = []
    for place, name in enumerate(names):
        own = [part[place] for part in parts]
        found.append(None if any(one is None for one in own) else total_values(name, [one for one in own if one]))
    return found


def _codes_in(names: Sequence[Hashable], labels: Sequence[pa.Array], *given: Any) -> list[npt.NDArray[Any]]:
    chunk = given[0].run(*given[1:]).chunk
    return [in_order(chunk[name], own).codes for name, own in zip(names, labels, strict=True)]


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
