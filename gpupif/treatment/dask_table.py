"""A Dask frame after the steps so far: facts about all rows are computed at once, the treated frame stays lazy.

Each partition is treated by a separate task. The task gets the number of the partition's first row, its facts, and the
types that columns have in the whole table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..attack.arguments import Arguments
from ..dask.cluster_progress import compute
from ..dask.dask_graph import Graph
from ..errors import ColumnTypeError, InputError
from ..frames.dask_frame import check_dask_frame
from ..frames.open import open_frame
from ..frames.pandas_frame import other_column
from ..frames.replacement import Replacement
from ..pipeline.task_graph import Result
from ..scoring.score import score_table
from ..utils.progress import Reporter
from ..utils.validation import check_unique
from .dask_partition import (
    DaskFacts,
    PartitionEnds,
    PartitionSteps,
    Place,
    column_of_frame,
    ends_of,
    facts_of_scores,
    first_rows_of,
    joined_by_name,
    on_chunk,
    plain_frame,
    total_ends,
    treated_frame,
)
from .lazy_table import Counted, LazyTable, rows_in, values_in
from .steps import Chunk, RowFacts


class DaskTable(LazyTable):
    """A Dask frame. table: the original frame."""

    def __init__(self, table: Any, report: Reporter) -> None:
        check_dask_frame(table)
        check_unique(list(table.columns))
        super().__init__(list(table.columns))
        self.table = table
        self.index = table._meta.index
        self._report = report
        self._graph = Graph()
        self._partitions = self._graph.take(table)
        self._facts: list[DaskFacts] = []
        graph = self._graph.copy()
        firsts = compute(graph.value(graph.all("counts", graph.each("first", first_rows_of, self._partitions))), report)
        # The rows of each partition, by the number of the steps before that remove rows.
        self._sizes: list[list[int]] = [[rows for rows, _ in firsts]]
        if not sum(self._sizes[0]):
            listed = ", ".join(map(str, table.columns))
            raise InputError(f"table: expected at least one row, got none (columns: {listed}).")
        self._first = open_frame(next(first for rows, first in firsts if rows))
        self._types: dict[Hashable, pa.DataType] = {}

    def type_before(self, name: Hashable) -> pa.DataType:
        return column_of_frame(self._first, name, self._types).labels.type

    @property
    def rows(self) -> int:  # type: ignore[override]
        """The number of rows that are left, in all partitions."""
        return sum(self.sizes(len(self.steps.applied)))

    def expect(self, names: Sequence[Hashable]) -> None:
        """Find the types of columns, see `TreatedTable`.

        The first rows usually show a type. If they have no value in a column, the column's values are counted in all
        partitions.
        """
        for name in dict.fromkeys(names):
            # A column whose values are no categories is refused later, when it is needed.
            with contextlib.suppress(ColumnTypeError):
                self._types[name] = self.type_before(name)
        unknown = [name for name, kind in self._types.items() if pa.types.is_null(kind)]
        self.ask_together(unknown)
        for name in unknown:
            with contextlib.suppress(ColumnTypeError):
                self._types[name] = self.values(name).labels.type

    def sizes(self, level: int) -> list[int]:
        """Return the number of rows of each partition after the first `level` steps."""
        removing = [number for number, (step, _) in enumerate(self.steps.applied[:level], 1) if step.removes_rows]
        for number in removing[len(self._sizes) - 1 :]:
            self._sizes.append(self._compute(f"count-{number}", partial(on_chunk, rows_in), number))
        return self._sizes[len(removing)]

    def each(self, function: Callable[[Chunk], Any], columns: Sequence[Hashable]) -> list[Any]:
        return self._compute("each", partial(on_chunk, function))

    def count(self, names: Sequence[Hashable]) -> Counted:
        graph = self._graph.copy()
        parts = self._tasks(graph, "values", partial(on_chunk, partial(values_in, names, names[0])))
        counted: Counted = compute(graph.value(graph.tree("merge", joined_by_name, parts)), self._report)
        return counted

    def _tasks(self, graph: Graph, stage: str, function: Callable[..., Any], level: int | None = None) -> list[Result]:
        """Add a task for each partition to a graph: function(steps, partition, place).

        level: number of steps that the tasks apply. Default None: all steps so far.
        """
        steps = replace(self.steps, applied=self.steps.applied[:level])
        starts: list[list[int]] = [[] for _ in self._partitions]
        for number in range(len(steps.applied)):
            before = [0, *accumulate(self.sizes(number))]
            for own, start in zip(starts, before, strict=False):
                own.append(start)
        places = [Place(own, {facts.key: facts.parts[i] for facts in self._facts}) for i, own in enumerate(starts)]
        given = graph.given(f"{stage}-steps", PartitionSteps(steps, list(self.table.columns), self._types))
        return graph.each(stage, function, given, self._partitions, places)

    def _compute(self, stage: str, function: Callable[..., Any], level: int | None = None) -> list[Any]:
        graph = self._graph.copy()
        results = self._tasks(graph, stage, function, level)
        return list(compute(graph.value(graph.all(f"all-{stage}", results)), self._report))

    def facts_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> RowFacts:
        edges = np.cumsum(self.sizes(len(self.steps.applied)))[:-1]
        split = {name: np.split(array, edges) for name, array in arrays.items()}
        return self._add_facts([{name: own[i] for name, own in split.items()} for i in range(len(self._partitions))])

    def scores(
        self, arguments: Arguments, make: Callable[[Mapping[str, npt.NDArray[Any]]], Mapping[str, npt.NDArray[Any]]]
    ) -> RowFacts:
        scored = score_table(self.plain(), arguments).frame()
        graph = Graph()
        parts = graph.each("facts", partial(facts_of_scores, make), graph.take(scored))
        return self._add_facts(list(compute(graph.value(graph.all("all-facts", parts)), self._report)))

    def _add_facts(self, parts: Sequence[Mapping[str, npt.NDArray[Any]]]) -> DaskFacts:
        facts = DaskFacts(parts)
        self._facts.append(facts)
        return facts

    def described(self) -> tuple[Mapping[str, Any], int]:
        """Return the description of the original table for the record, and the number of its rows."""
        rows = sum(self.sizes(0))
        return {"rows": rows, "columns": len(self.table.columns), "partitions": self.table.npartitions}, rows

    def plain(self) -> Any:
        """Return the frame after the steps so far, lazy, with changed columns in the plain types of steps."""
        graph = self._graph.copy()
        kinds = dict(self.steps.types)
        partitions = self._tasks(graph, "plain", partial(plain_frame, kinds))
        return graph.frame("plain", partitions, plain_frame(kinds, *self._nothing()), self._divisions())

    def _nothing(self) -> Any:
        """Return the arguments of a task for a partition without rows."""
        steps = PartitionSteps(replace(self.steps, applied=[]), list(self.table.columns), self._types)
        return steps, self.table._meta.iloc[:0], Place([], {})

    def _divisions(self) -> Sequence[Any]:
        return tuple(self.table.divisions)

    def done(self) -> Any:
        """Return the treated frame, lazy. Changes, and the types and categories of its columns, are computed now."""
        touched = {name for step, _ in self.steps.applied for name in step.writes}
        names = [name for name in self.steps.names if name in touched]
        categorical = [name for name, kind in self.table._meta.dtypes.items() if hasattr(kind, "categories")]
        left = [name for name in categorical if name in self.steps.names]
        graph = self._graph.copy()
        ends = self._tasks(graph, "ends", partial(ends_of, names, categorical, left))
        whole: PartitionEnds = compute(graph.value(graph.tree("total", partial(total_ends, names), ends)), self._report)
        for own, counts in zip(self.counts, whole.counts, strict=True):
            own.changed, own.rows_removed = counts.changed, counts.rows_removed
        changed = {name for counts in whole.counts for name, cells in counts.changed.items() if cells.cells}
        replaced = [name for name in names if name in changed or whole.kinds[name][0] != whole.kinds[name][1]]
        columns = {name: _final_type(whole, name, self.table._meta[name]) for name in replaced}
        unchanged = {
            name: pd.CategoricalDtype(every[every.isin(used)], self.table._meta[name].dtype.ordered)
            for name, (every, used) in whole.categories.items()
            if name not in columns
        }
        graph = self._graph.copy()
        partitions = self._tasks(graph, "treated", partial(treated_frame, columns, unchanged))
        meta = treated_frame(columns, unchanged, *self._nothing())
        return graph.frame("treated", partitions, meta, self._divisions())


def _final_type(whole: PartitionEnds, name: Hashable, like: Any) -> Any:
    """Return the type of a changed column in the treated frame: the type of a column with all its values."""
    labels, missing = whole.labels[name], whole.missing[name]
    codes = np.arange(len(labels) + missing).astype(np.int64)
    like = like.to_pandas() if hasattr(like, "to_pandas") else like
    if isinstance(like.dtype, pd.CategoricalDtype) and name in whole.orders:
        like = pd.Series(pd.Categorical([], whole.orders[name], ordered=like.dtype.ordered))
    return pd.Series(other_column(Replacement(codes, labels, whole.kinds[name][0]), like)).dtype
