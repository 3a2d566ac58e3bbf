"""What an attacker sees of cells of a Dask frame: their cohorts counted in all partitions, where these lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..engines.block_scoring import unpack_keys
from ..measures import Measure
from ..results.base import Cell, Explainer
from ..results.riskiest import CohortCount, count_cohort, describe, describe_value
from ..results.worst_attacker import describe_worst, row_with, weights_of_sets
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from .graph import Graph, Key, ref
from .worker import task_engine, task_workers

if TYPE_CHECKING:
    import numpy.typing as npt

    from .partition import PartitionIndex
    from .plan import Plan


class TableKeys(NamedTuple):
    """The tasks that an explanation begins with: the plan, and of each partition its distinct rows and its index."""

    graph: Graph
    plan: Key
    rows: Sequence[Key]
    indexes: Sequence[Key]


class PickedRow(NamedTuple):
    """A row: its codes in the columns that are used, and its label."""

    key: list[int]
    label: Any


class LazyExplainer(Explainer):
    """What one attacker sees of cells; compute: gives the result of a task of a graph."""

    def __init__(self, table: TableKeys, compute: Callable[[Graph, Key], Any]) -> None:
        self._table = table
        self._compute = compute
        self._rows_by_number: dict[int, PickedRow] = {}

    def labels(self, rows: Sequence[int]) -> list[Any] | None:
        """See `Explainer`."""
        picked = self._pick(rows)
        return [picked[row].label for row in rows]

    def values(self, cells: Sequence[Cell]) -> list[dict[str, Any]]:
        """See `Explainer`."""
        return self._describe(cells, _values)

    def explain(self, cells: Sequence[Cell], by: Measure) -> list[dict[str, Any]]:
        """See `Explainer`."""
        return self._describe(cells, partial(_explain, by))

    def _describe(self, cells: Sequence[Cell], describe_cells: Callable[..., Key]) -> list[dict[str, Any]]:
        picked = self._pick([cell.row for cell in cells])
        graph = self._table.graph.copy()
        keys = [picked[cell.row].key for cell in cells]
        found: list[dict[str, Any]] = self._compute(graph, describe_cells(graph, self._table, cells, keys))
        return found

    def _pick(self, rows: Sequence[int]) -> dict[int, PickedRow]:
        """These rows."""
        missing = sorted({*rows} - {*self._rows_by_number})
        if missing:
            graph, table = self._table.graph.copy(), self._table
            plans, indexes = [ref(table.plan)] * len(table.rows), list(map(ref, table.indexes))
            starts = ref(graph.one("starts", _starts, *map(ref, graph.each("lengths", _length, indexes))))
            several = ([starts] * len(indexes), range(len(indexes)), list(map(ref, table.rows)), indexes)
            picks = graph.each("pick", partial(_pick, missing), plans, *several)
            self._rows_by_number |= self._compute(graph, graph.tree("picked", _merge, picks))
        return self._rows_by_number


def _length(index: PartitionIndex) -> int:
    return len(index.number)


def _starts(*lengths: int) -> list[int]:
    return list(accumulate(lengths, initial=0))


def _merge(*parts: dict[int, PickedRow]) -> dict[int, PickedRow]:
    return {row: picked for part in parts for row, picked in part.items()}


def _pick(
    wanted: Sequence[int], plan: Plan, starts: Sequence[int], partition: int, rows: Rows, index: PartitionIndex
) -> dict[int, PickedRow]:
    """Those of some rows of the table that are in a partition."""
    start, stop = starts[partition], starts[partition + 1]
    here = [row for row in wanted if start <= row < stop]
    codes = _codes(plan, rows.keys[[int(index.number[row - start]) for row in here]]) if here else []
    labels = index.labels.to_pandas() if hasattr(index.labels, "to_pandas") else index.labels
    return {
        row: PickedRow([int(column[place]) for column in codes], labels[row - start]) for place, row in enumerate(here)
    }


def _codes(plan: Plan, keys: npt.NDArray[np.uint64]) -> list[npt.NDArray[Any]]:
    """The codes of rows in the columns of the table."""
    codes = unpack_keys(keys, plan.layout)
    return codes if plan.population is None else plan.population.own(codes)


def _values(graph: Graph, table: TableKeys, cells: Sequence[Cell], keys: Sequence[list[int]]) -> Key:
    return graph.one("describe", partial(_describe_values, cells, keys), ref(table.plan))


def _describe_values(cells: Sequence[Cell], keys: Sequence[list[int]], plan: Plan) -> list[dict[str, Any]]:
    found = []
    for cell, key in zip(cells, keys, strict=True):
        position = plan.job.targets[cell.target]
        found.append(describe_value(plan.job, position, plan.columns[position], key[position]))
    return found


def _explain(by: Measure, graph: Graph, table: TableKeys, cells: Sequence[Cell], keys: Sequence[list[int]]) -> Key:
    """The task that explains cells: counts of all partitions, or all distinct rows in one place, are what it takes."""
    plans, rows = [ref(table.plan)] * len(table.rows), list(map(ref, table.rows))
    counts = graph.each("cohorts-of-cells", partial(_count_cells, cells, keys), plans, rows)
    counted = ref(graph.tree("counted-cells", _add_counts, counts))
    whole = ref(graph.tree("distinct-rows", _merge_rows, graph.each("rows-for-cells", _rows_of_any_known, plans, rows)))
    return graph.one("explain", partial(_describe_cells, by, cells, keys), ref(table.plan), counted, whole)


def _count_cells(cells: Sequence[Cell], keys: Sequence[list[int]], plan: Plan, rows: Rows) -> list[CohortCount]:
    """Of a partition the rows in the cohort of each cell."""
    if plan.request.any_known is not None:
        return [CohortCount(0, 0, 0) for _ in cells]
    codes, times = _codes(plan, rows.keys), np.asarray(rows.counts, np.int64)
    targets = [plan.job.targets[cell.target] for cell in cells]
    return [count_cohort(plan.job, codes, times, key, target) for key, target in zip(keys, targets, strict=True)]


def _add_counts(*parts: list[CohortCount]) -> list[CohortCount]:
    return [CohortCount.total(several) for several in zip(*parts, strict=True)]


def _rows_of_any_known(plan: Plan, rows: Rows) -> Rows | None:
    """A partition's distinct rows where the attacker knows any few columns."""
    return rows if plan.request.any_known is not None else None


def _merge_rows(*parts: Rows | None) -> Rows | None:
    several = [part for part in parts if part is not None and len(part.keys)]
    if not several:
        return None
    keys = np.concatenate([part.keys for part in several])
    counts = np.concatenate([np.asarray(part.counts, np.int64) for part in several])
    with task_workers() as workers:
        return distinct_rows(Rows(keys, counts), int(counts.sum()), workers).rows


def _describe_cells(
    by: Measure,
    cells: Sequence[Cell],
    keys: Sequence[list[int]],
    plan: Plan,
    counts: list[CohortCount],
    whole: Rows | None,
) -> list[dict[str, Any]]:
    """What an attacker sees of cells; whole: all distinct rows, where the attacker knows any few columns."""
    if whole is None:
        return [
            describe(plan.job, position, plan.columns[position], key[position], count)
            for position, key, count in zip(
                (plan.job.targets[cell.target] for cell in cells), keys, counts, strict=True
            )
        ]
    subsets = plan.request.subsets(plan.rows)
    assert subsets is not None
    table = replace(plan.job, codes=_codes(plan, whole.keys), times=np.asarray(whole.counts, np.int64))
    found = []
    for cell, key in zip(cells, keys, strict=True):
        position = plan.job.targets[cell.target]
        weights = np.ones(0)
        if by.weighted:
            weights = weights_of_sets(task_engine(plan.device), table, position, subsets)
        row = row_with(table.codes, key)
        found.append(describe_worst(table, plan.columns[position], row, position, subsets, weights, by))
    return found
