"""A `ScoreQuery` on a Dask frame in one graph: answered in each partition, and combined by tree reductions.

Percentiles take four searches of all numbers. Each partition keeps its distinct numbers and their multiplicities until
the last search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..pipeline.chunk_encoding import ChunkIndex
from ..pipeline.table_plan import Plan
from ..pipeline.task_graph import Result
from ..pipeline.task_resources import task_workers
from ..results.backing import QueryResult, ScoreQuery
from ..results.query_search import QuerySearch, with_scores
from ..results.riskiest import RiskyCell, riskiest
from ..results.score_distribution import ColumnQuery, Tally
from ..results.summary_figures import Figures
from ..rows.partition import Rows
from ..utils.percentiles import DIGITS, SHIFTS, DigitCounts, PercentileSearch
from .dask_graph import Graph
from .lazy_explainer import TableTasks, codes_of_rows

# Distinct numbers, or digits, and the multiplicity of each.
Multiplicities = tuple[Any, Any]


class PartialResult(NamedTuple):
    """The answer for neighbouring partitions.

    rows: int. The number of rows.
    figures: Figures. Sums and extremes.
    top: list of RiskyCell. The riskiest cells.
    tallies: list of Tally, in the order of `_of_columns`.
    """

    rows: int
    figures: Figures
    top: list[RiskyCell]
    tallies: list[Tally]


def add_query(
    graph: Graph, query: ScoreQuery, columns: int, partitions: Sequence[list[Result]], table: TableTasks | None
) -> Result:
    """Add the tasks that answer a query on `columns` scored columns; return the answer.

    partitions: for each of `ScoreQuery.outputs`, the partitions of its frame. table: the tasks that know the values of
    rows, if a cell is wanted for each value; else None.
    """
    rows = [None] * 3 if table is None else [table.plan, table.rows, table.indexes]
    both = graph.each("look", _query_partition, query, *rows, *partitions)
    partial_result = graph.tree("looked", partial(_together, query.top), graph.each("found", itemgetter(0), both))
    numbers = graph.each("numbers", itemgetter(1), both)
    searches = graph.one("search", _start, query, columns)
    for number in range(len(SHIFTS) if query.of_columns or query.gains is not None else 0):
        counts = graph.each(f"count-{number}", _count, searches, numbers)
        searches = graph.one(f"narrow-{number}", _narrow, searches, graph.tree(f"counted-{number}", _add, counts))
    return graph.one("find", _finish, query, partial_result, searches)


def scores_in(frame: Any) -> npt.NDArray[Any]:
    """Return the scores (columns, rows) of a partition of pandas or of a GPU, on the host."""
    host = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    array: npt.NDArray[Any] = host.to_numpy().T
    return array


def _query_partition(
    query: ScoreQuery, plan: Plan | None, rows: Rows | None, index: ChunkIndex | None, *frames: Any
) -> tuple[PartialResult, list[Multiplicities]]:
    """Return the answer for a partition, and the numbers from which percentiles are computed.

    plan, rows, index: the values of the rows, see `TableTasks`; None if they are not needed.
    """
    arrays = dict(zip(query.outputs, map(scores_in, frames), strict=True))
    # The search skips columns: later tasks need the numbers counted below.
    search = QuerySearch(replace(query, of_columns={}))
    codes_of = None if plan is None or rows is None or index is None else codes_of_rows(plan, rows, index)
    with task_workers() as workers:
        chunk = search.look_at_chunk(arrays, 0, workers, codes_of)
    figures, top = search.combine([chunk])
    top = with_scores(top, query.shown, lambda rows: {output: array[:, rows] for output, array in arrays.items()})
    numbers = [np.unique(column, return_counts=True) for score in query.of_columns for column in score.compute(arrays)]
    columns, length = next(iter(arrays.values())).shape
    tallies = [Tally.from_numbers(*one, asked) for one, asked in zip(numbers, _of_columns(query, columns), strict=True)]
    if query.gains is not None:
        numbers.append(np.unique(chunk.sums, return_counts=True))
    return PartialResult(length, figures, top, tallies), numbers


def _of_columns(query: ScoreQuery, columns: int) -> list[ColumnQuery]:
    """Return the query on columns for each score and scored column, in order."""
    return [asked for asked in query.of_columns.values() for _ in range(columns)]


def _together(n: int, *partitions: PartialResult) -> PartialResult:
    rows, top = 0, []
    for partition in partitions:
        top += [cell._replace(row=rows + cell.row) for cell in partition.top]
        rows += partition.rows
    tallies = [Tally.total(several) for several in zip(*(own.tallies for own in partitions), strict=True)]
    return PartialResult(rows, Figures.together(*(own.figures for own in partitions)), riskiest(top, n), tallies)


def _start(query: ScoreQuery, columns: int) -> list[PercentileSearch]:
    """Return a percentile search for each score and scored column, and for the rows."""
    several: list[Sequence[float]] = [asked.percentiles for asked in _of_columns(query, columns)]
    if query.gains is not None:
        several.append(query.of_rows)
    return [PercentileSearch.for_percents(percents) for percents in several]


def _count(searches: Sequence[PercentileSearch], numbers: Sequence[Multiplicities]) -> list[dict[int, Multiplicities]]:
    """Return, by search and prefix, the next digits of numbers in a partition, and how often they occur."""
    counted = []
    for search, (values, multiplicities) in zip(searches, numbers, strict=True):
        counts: DigitCounts = {}
        search.count(values, multiplicities, counts)
        counted.append({prefix: _sparse(dense) for prefix, dense in counts.items()})
    return counted


def _add(*partitions: list[dict[int, Multiplicities]]) -> list[dict[int, Multiplicities]]:
    added = []
    for several in zip(*partitions, strict=True):
        added.append({prefix: _sparse(_dense([one[prefix] for one in several])) for prefix in several[0]})
    return added


def _narrow(
    searches: Sequence[PercentileSearch], counts: Sequence[dict[int, Multiplicities]]
) -> list[PercentileSearch]:
    return [
        search.narrowed({prefix: _dense([digits]) for prefix, digits in found.items()})
        for search, found in zip(searches, counts, strict=True)
    ]


def _sparse(dense: npt.NDArray[np.int64]) -> Multiplicities:
    digits = np.flatnonzero(dense)
    return digits.astype(np.uint16), dense[digits]


def _dense(several: Sequence[Multiplicities]) -> npt.NDArray[np.int64]:
    dense = np.zeros(DIGITS, np.int64)
    for digits, multiplicities in several:
        dense[digits] += multiplicities
    return dense


def _finish(query: ScoreQuery, partial_result: PartialResult, searches: Sequence[PercentileSearch]) -> QueryResult:
    percentiles = [search.percentiles() for search in searches]
    of_rows = percentiles.pop() if query.gains is not None else []
    tallies, of_columns = partial_result.tallies, {}
    columns = len(percentiles) // max(1, len(query.of_columns))
    for number, (score, asked) in enumerate(query.of_columns.items()):
        mine = slice(number * columns, (number + 1) * columns)
        both = zip(tallies[mine], percentiles[mine], strict=True)
        of_columns[score] = [tally.answer(asked, shares) for tally, shares in both]
    return QueryResult(partial_result.figures, of_columns, of_rows, partial_result.top)
