"""Selected cells of a Dask frame: found in each partition; tree reductions find the riskiest cells of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..pipeline.chunk_encoding import ChunkIndex
from ..pipeline.table_plan import Plan
from ..pipeline.task_graph import Result
from ..pipeline.task_resources import task_workers
from ..results.backing import CellSource, ScoresDescription
from ..results.cell_selection import CellQuery, ScoredRows
from ..results.cell_table import CellLayout, check_labels
from ..results.in_memory import index_columns
from ..results.riskiest import CellBatch
from .dask_graph import Graph, add_all
from .lazy_explainer import TableTasks, codes_of_rows, row_labels, row_starts
from .lazy_query import scores_in

if TYPE_CHECKING:
    import dask.dataframe as dd

# The types of these columns, which a partition without values does not show.
TEXTS = {"column": pa.string(), "value": pa.string()}


class LabelledCells(NamedTuple):
    """Cells as a table, and the labels of their rows."""

    cells: pa.Table
    labels: pd.Index[Any]


@dataclass(eq=False)
class DaskCellSource(CellSource):
    """The source of selected cells of a Dask frame; see `CellSource`.

    query: CellQuery. The selection.
    columns_scored: list. The names of the scored columns.
    table: TableTasks. The tasks that know the rows, of the first attacker.
    meta: an empty frame with the types of the table.
    frames: by output. The frames of scores.
    compute: function that returns the result of a task of a graph.
    write_frame: function that writes a frame of cells, and returns the result of a task that it computes with it.
    """

    query: CellQuery
    columns_scored: Sequence[Hashable]
    table: TableTasks
    meta: pd.DataFrame
    frames: Mapping[str, dd.DataFrame]
    compute: Callable[[Graph, Result], Any]
    write_frame: Callable[..., Any]
    writes_folders = True

    def __post_init__(self) -> None:
        check_labels(self.meta.index.names, self.query.types)
        self._layout = CellLayout.for_columns(self.columns_scored, self.query.types, [])
        self.columns = self._layout.names

    def tables(self) -> Iterator[pa.Table]:
        graph, partitions, starts = self._tasks()
        plain = graph.each("row-numbers", _counts_rows, starts, range(len(self.table.indexes)), self.table.indexes)
        both = graph.all("both", [graph.all("cells", partitions), graph.all("plain", plain)])
        found, counted = self.compute(graph, both)
        table = pa.concat_tables(partition.cells for partition in found)
        if not all(counted):
            labels = found[0].labels.append([partition.labels for partition in found[1:]])
            beside = index_columns(labels, each=True)
            for name, column in zip(beside.column_names, beside.columns, strict=True):
                table = table.append_column(name, column)
            table = table.replace_schema_metadata(beside.schema.metadata)
        yield table

    def write(
        self,
        path: str | os.PathLike[str],
        overwrite: bool,
        describe: Callable[[bool], ScoresDescription],
        options: Mapping[str, Any],
    ) -> int:
        """Write the cells to a folder, a file for each partition; the riskiest cells are one file. See `CellSource`."""
        graph, partitions, _ = self._tasks()
        frames = graph.each("frames", _as_frame, partitions)
        meta = _as_frame(LabelledCells(self._layout.schema.empty_table(), self.meta.index[:0]))
        frame = graph.frame("frames", frames, meta, (None,) * (len(frames) + 1))
        count = graph.tree("count", add_all, graph.each("counts", attrgetter("cells.num_rows"), partitions))
        options = {"schema": TEXTS, **options}
        return int(self.write_frame(frame, path, overwrite, options, describe, graph, count))

    def _tasks(self) -> tuple[Graph, list[Result], Result]:
        """Return a graph, its tasks that give `LabelledCells`, and its task that gives the partitions' first rows."""
        graph, table, query = self.table.graph.copy(), self.table, self.query
        partitions = [graph.take(self.frames[output]) for output in query.outputs]
        starts = row_starts(graph, table)
        numbers = range(len(table.rows))
        layout = graph.one("cell-layout", _layout, self.columns_scored, query.types, table.plan)
        cells = graph.each(
            "find-cells", _find, query, table.plan, starts, numbers, table.rows, table.indexes, *partitions
        )
        if query.top is None:
            return graph, graph.each("some-cells", _with_labels, layout, starts, numbers, cells, table.indexes), starts
        top = graph.one("riskiest", CellBatch.by_risk, graph.tree("riskier", partial(_riskiest, query.top), cells))
        labels = graph.each("labels-of-cells", _labels, top, starts, numbers, table.indexes)
        return graph, [graph.one("some-cells", _riskiest_with_labels, layout, top, *labels)], starts


def _layout(columns: Sequence[Hashable], types: Mapping[str, str], plan: Plan) -> CellLayout:
    return CellLayout.for_columns(
        columns, types, [plan.columns[scored_column] for scored_column in plan.job.scored_columns]
    )


def _find(
    query: CellQuery, plan: Plan, starts: Sequence[int], number: int, rows: Any, index: ChunkIndex, *frames: Any
) -> CellBatch:
    """Return the selected cells of a partition."""
    arrays = dict(zip(query.outputs, map(scores_in, frames), strict=True))
    chunks = ScoredRows(starts[number], arrays, codes_of_rows(plan, rows, index)).chunks()
    with task_workers() as workers:
        return CellBatch.together(list(query.search_in_order(chunks, workers)))


def _riskiest(n: int, *partitions: CellBatch) -> CellBatch:
    return CellBatch.together(partitions).riskiest(n)


def _places(starts: Sequence[int], number: int, cells: CellBatch) -> npt.NDArray[Any]:
    """Return the rows of the cells in a partition, counted from the first row of the partition."""
    start, stop = list(pairwise(starts))[number]
    return cells.rows[(cells.rows >= start) & (cells.rows < stop)] - start


def _with_labels(
    layout: CellLayout, starts: Sequence[int], number: int, cells: CellBatch, index: ChunkIndex
) -> LabelledCells:
    return LabelledCells(layout.table(cells), row_labels(index)[_places(starts, number, cells)])


def _labels(cells: CellBatch, starts: Sequence[int], number: int, index: ChunkIndex) -> pd.Index[Any]:
    """Return the labels of the rows with cells in a partition, in order, each row once."""
    return row_labels(index)[np.unique(_places(starts, number, cells))]


def _riskiest_with_labels(layout: CellLayout, cells: CellBatch, *labels: pd.Index[Any]) -> LabelledCells:
    each = labels[0].append(list(labels[1:]))
    return LabelledCells(layout.table(cells), each[np.searchsorted(np.unique(cells.rows), cells.rows)])


def _counts_rows(starts: Sequence[int], number: int, index: ChunkIndex) -> bool:
    """Return whether the labels of a partition are just the numbers of its rows in the table."""
    labels = row_labels(index)
    return labels.name is None and labels.equals(pd.RangeIndex(starts[number], starts[number + 1]))


def _as_frame(partition: LabelledCells) -> pd.DataFrame:
    frame: pd.DataFrame = partition.cells.to_pandas().set_axis(partition.labels)
    return frame
