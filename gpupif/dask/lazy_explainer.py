"""The cohorts of cells of a Dask frame, as an attacker sees them; workers count them in all partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..encoding.column import Column
from ..measures import Measure
from ..pipeline.chunk_encoding import ChunkIndex
from ..pipeline.table_plan import Plan
from ..pipeline.task_graph import Result
from ..pipeline.task_resources import task_engine, task_workers
from ..results.backing import Explainer
from ..results.cell_explanations import CohortCount, ExplainedCells, weights_of_sets
from ..results.riskiest import RiskyCell
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from .dask_graph import Graph


class TableTasks(NamedTuple):
    """The tasks that explanations begin with.

    graph: Graph. The graph of the tasks.
    plan: result. The plan.
    rows: list of results. The distinct rows of each partition.
    counted: list of results. The same rows with multiplicities, if they have weights and a measure needs both; else
    None.
    indexes: list of results. The `ChunkIndex` of each partition.
    any_known: bool. Whether the attacker knows any few columns.
    """

    graph: Graph
    plan: Result
    rows: list[Result]
    counted: list[Result] | None
    indexes: list[Result]
    any_known: bool


class PickedRow(NamedTuple):
    """A row: its codes in the used columns, and its label."""

    key: list[int]
    label: Any


class LazyExplainer(Explainer):
    """The cohorts of cells, as one attacker sees them.

    table: TableTasks. The tasks that explanations begin with.
    compute: function that returns the result of a task of a graph.
    """

    def __init__(self, table: TableTasks, compute: Callable[[Graph, Result], Any]) -> None:
        self._table = table
        self._compute = compute
        self._rows_by_number: dict[int, PickedRow] = {}

    def labels(self, rows: Sequence[int]) -> list[Any] | None:
        picked = self._pick(rows)
        return [picked[row].label for row in rows]

    def values(self, cells: Sequence[RiskyCell]) -> list[dict[str, Any]]:
        graph = self._table.graph.copy()
        found: list[dict[str, Any]] = self._compute(
            graph, graph.one("describe", ExplainedCells.values, self._asked(graph, cells))
        )
        return found

    def explain(self, cells: Sequence[RiskyCell], by: Measure) -> list[dict[str, Any]]:
        graph, table = self._table.graph.copy(), self._table
        asked = self._asked(graph, cells)
        if table.any_known:
            rows = graph.tree("distinct-rows", _merge_rows, table.rows)
            counted = None
            if table.counted is not None:
                counted = graph.tree("distinct-rows-as-rows", _merge_rows, table.counted)
            last = graph.one("explain", _explain_worst, by, table.plan, asked, rows, counted)
        else:
            counts = graph.each("cohorts-of-cells", _count_cells, table.plan, asked, table.rows)
            total = graph.tree("counted-cells", ExplainedCells.total, counts)
            last = graph.one("explain", ExplainedCells.explain, asked, total)
        found: list[dict[str, Any]] = self._compute(graph, last)
        return found

    def _asked(self, graph: Graph, cells: Sequence[RiskyCell]) -> Result:
        picked = self._pick([cell.row for cell in cells])
        return graph.one("asked", _asked_cells, cells, [picked[cell.row].key for cell in cells], self._table.plan)

    def _pick(self, rows: Sequence[int]) -> dict[int, PickedRow]:
        """Return rows by number; rows that are not known yet are computed."""
        missing = sorted({*rows} - {*self._rows_by_number})
        if missing:
            graph, table = self._table.graph.copy(), self._table
            starts = row_starts(graph, table)
            several = (range(len(table.rows)), table.rows, table.indexes)
            picks = graph.each("pick", partial(_pick, missing), table.plan, starts, *several)
            self._rows_by_number |= self._compute(graph, graph.tree("picked", _merge, picks))
        return self._rows_by_number


def row_starts(graph: Graph, table: TableTasks) -> Result:
    """Add the tasks that find the first row of each partition, and last the number of all rows."""
    return graph.one("starts", _starts, *graph.each("lengths", _length, table.indexes))


def row_labels(index: ChunkIndex) -> pd.Index[Any]:
    """Return the labels of a partition's rows, on the host."""
    labels: pd.Index[Any] = index.labels.to_pandas() if hasattr(index.labels, "to_pandas") else index.labels
    return labels


def _length(index: ChunkIndex) -> int:
    return len(index.number)


def _starts(*lengths: int) -> list[int]:
    return list(accumulate(lengths, initial=0))


def _merge(*partitions: dict[int, PickedRow]) -> dict[int, PickedRow]:
    return {row: picked for partition in partitions for row, picked in partition.items()}


def _pick(
    wanted: Sequence[int], plan: Plan, starts: Sequence[int], partition: int, rows: Rows, index: ChunkIndex
) -> dict[int, PickedRow]:
    """Return the wanted rows of the table that are in a partition."""
    start, stop = starts[partition], starts[partition + 1]
    here = [row for row in wanted if start <= row < stop]
    codes = row_codes(plan, rows.keys[[int(index.number[row - start]) for row in here]]) if here else []
    labels = row_labels(index)
    return {
        row: PickedRow([int(column[place]) for column in codes], labels[row - start]) for place, row in enumerate(here)
    }


def row_codes(plan: Plan, keys: npt.NDArray[np.uint64]) -> list[npt.NDArray[Any]]:
    """Return the codes of rows in the columns of the table."""
    codes = plan.layout.unpack(keys)
    return codes if plan.population is None else plan.population.own(codes)


def codes_of_rows(plan: Plan, rows: Rows, index: ChunkIndex) -> Callable[[int], npt.NDArray[Any]]:
    """Return a function that returns the codes of a partition's rows in the scored column at a place."""
    codes = row_codes(plan, rows.keys)

    def codes_of(scored_column: int) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = codes[plan.job.scored_columns[scored_column]][index.number]
        return found

    return codes_of


def _asked_cells(cells: Sequence[RiskyCell], keys: Sequence[list[int]], plan: Plan) -> ExplainedCells:
    return ExplainedCells(plan.job, [_with_missing(column, plan.rows) for column in plan.columns], cells, keys)


def _with_missing(column: Column, rows: int) -> Column:
    """Return a column of a plan with the count of its missing values, which it lacks if these match every value."""
    left = rows - int(column.counts.sum())
    if column.missing or not left:
        return column
    return replace(column, counts=np.append(column.counts, left), missing=True)


def _count_cells(plan: Plan, asked: ExplainedCells, rows: Rows) -> list[CohortCount]:
    """Count the rows of a partition in the cohort of each cell."""
    return asked.count(row_codes(plan, rows.keys), np.asarray(rows.counts, np.int64))


def _merge_rows(*partitions: Rows) -> Rows:
    """Return the distinct rows of several partitions."""
    several = [partition for partition in partitions if len(partition.keys)]
    if len(several) < 2:
        return next(iter(several), partitions[0])
    keys = np.concatenate([partition.keys for partition in several])
    counts = np.concatenate([np.asarray(partition.counts, np.int64) for partition in several])
    with task_workers() as workers:
        return distinct_rows(Rows(keys, counts), int(counts.sum()), workers).rows


def _explain_worst(
    by: Measure, plan: Plan, asked: ExplainedCells, rows: Rows, counted: Rows | None
) -> list[dict[str, Any]]:
    """Return the cohorts of cells for an attacker who knows any few columns.

    rows: Rows. All distinct rows.
    counted: Rows. The same rows with multiplicities; None if no measure needs them.
    """
    subsets = plan.request.subsets(plan.rows)
    assert subsets is not None
    multiplicities, row_counts = (None if one is None else np.asarray(one.counts, np.int64) for one in (rows, counted))
    job = replace(plan.job, codes=row_codes(plan, rows.keys), multiplicities=multiplicities, row_counts=row_counts)
    return asked.explain_worst(job, subsets, partial(weights_of_sets, task_engine(plan.device), subsets), by)
