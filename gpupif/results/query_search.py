"""Answer a `ScoreQuery` from chunks of rows, which several threads look at in any order.

Each thread looks at one column of one chunk (`QuerySearch.look_at`) and keeps only what the answer needs: sums,
extremes, the riskiest cells, and numbers whose percentiles are requested. `QuerySearch.result` combines these. Sums are
exact, so the answer does not depend on how the rows are cut or on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..rows.threads import Workers
from ..utils.arrays import is_on_device
from ..utils.exact_sums import sum_rows
from ..utils.percentiles import ONCE, count_repeated, percentiles_of
from ..utils.repeated import Repeated, find_repeated
from .backing import QueryResult, ScoreQuery
from .riskiest import RiskyCell, riskiest, riskiest_in_column
from .score_distribution import ColumnAnswer, ColumnQuery, answer_column, answer_on_device
from .score_outputs import CellScore
from .summary_figures import ColumnFigures, Figures

# Fewest and most rows of a chunk. The last chunk of a table may have fewer.
LEAST_ROWS, MOST_ROWS = 1 << 16, 1 << 20
CHUNKS_PER_THREAD = 2
ALL_ROWS = slice(None)
# Repeating numbers of fewer rows are not searched for.
LEAST_REPEATED = 16

# Numbers, and how often each occurs. The second is `ONCE`, an empty array, if each occurs once.
Multiplicities = tuple[Any, npt.NDArray[np.int64]]
# A function that returns the codes of a chunk's values in the scored column at a place.
CodesOf = Callable[[int], npt.NDArray[Any]]


class ScoreColumn:
    """The values of one score in one column of a chunk, on the host or a device."""

    def __init__(self, values: Any) -> None:
        self.values = values

    @cached_property
    def repeated(self) -> Repeated | None:
        """The distinct values and the number of the one that each row has, found on first use.

        None for values on a device, and if too few rows or too many distinct values let this save nothing.
        """
        return None if is_on_device(self.values) or len(self.values) < LEAST_REPEATED else find_repeated(self.values)


class ColumnScores:
    """All scores of one column of a chunk. values: array of each output, on the host or a device."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._made: dict[CellScore, ScoreColumn] = {}

    def column_of(self, score: CellScore) -> ScoreColumn:
        """Return the column of one score, built on first use and cached."""
        column = self._made.get(score)
        if column is None:
            # `CellScore.compute` takes and returns arrays (columns, rows); there is one column here.
            arrays = {output: self._values[output][None] for output in score.outputs}
            column = self._made[score] = ScoreColumn(score.compute(arrays)[0])
        return column


class ChunkColumn(NamedTuple):
    """The facts that a search keeps of one column of one chunk.

    figures: sum, highest and lowest score, by measure.
    top: the riskiest cells, without their scores.
    multiplicities: by score of `ScoreQuery.of_columns`, its numbers and how often each occurs.
    gains: the CIG of every row, for the row sums; None if these are not requested or are already added up.
    """

    figures: Figures
    top: list[RiskyCell]
    multiplicities: Mapping[CellScore, Multiplicities] = {}
    gains: Any = None


class ChunkFacts(NamedTuple):
    """The facts that a search keeps of one chunk.

    columns: one item for each scored column.
    sums: the sum of the gains of each row over all columns; None if not requested.
    """

    columns: list[ChunkColumn]
    sums: Any


def cut_rows(rows: int, threads: int) -> list[tuple[int, int]]:
    """Cut the rows of a table into chunks (start, stop): a few for each thread, within the limits on their size."""
    even_share = -(-rows // (threads * CHUNKS_PER_THREAD))
    size = min(MOST_ROWS, max(LEAST_ROWS, even_share))
    return [(start, min(rows, start + size)) for start in range(0, rows, size)]


class QuerySearch:
    """The search for the answer to one query.

    It looks at chunks in any order and from any thread, and combines the facts that it kept of them.
    """

    def __init__(self, query: ScoreQuery) -> None:
        self.query = query
        self._places = frozenset(query.of_places or ())
        # Some column of some chunk has `query.top` cells that are at least this risky, so no cell below it is among the
        # riskiest of the table. Threads may overwrite each other's bound: a lower one is right too, and only keeps more
        # cells.
        self._least_risk = -np.inf

    def look_at(
        self, scores: ColumnScores, scored_column: int, first: int, codes_of: CodesOf | None = None
    ) -> ChunkColumn:
        """Return what the query needs of one column of one chunk.

        scored_column: place of the column among the scored ones. first: number of the chunk's first row in the table.
        codes_of: returns the codes of the chunk's values by that place, if a cell is wanted for each value.
        """
        query, top = self.query, list[RiskyCell]()
        multiplicities = {score: _count(scores.column_of(score)) for score in query.of_columns}
        # Numbers that were counted above are summed from their counts, which is faster than row by row.
        figures = Figures(
            {
                measure: [
                    ColumnFigures.from_scores(
                        measure, *multiplicities.get(score, (scores.column_of(score).values, ONCE))
                    )
                ]
                for measure, score in query.figures.items()
            }
        )
        if query.by is not None and (query.of_places is None or scored_column in self._places):
            by = scores.column_of(query.by).values
            codes = codes_of(scored_column) if codes_of is not None and query.each_value else None
            top = riskiest_in_column(query.by.measure, by, query.top, scored_column, first, self._least_risk, codes)
            if query.top and len(top) == query.top:
                self._least_risk = max(self._least_risk, top[-1].risk)
        return ChunkColumn(
            figures, top, multiplicities, None if query.gains is None else scores.column_of(query.gains).values
        )

    def look_at_chunk(
        self, arrays: Mapping[str, Any], first: int, workers: Workers, codes_of: CodesOf | None = None
    ) -> ChunkFacts:
        """Return the facts that the query needs of one chunk.

        arrays: scores (columns, rows) of each output. first, codes_of: see `look_at`.
        """

        def look_at(scored_column: int) -> ChunkColumn:
            scores = ColumnScores({output: array[scored_column] for output, array in arrays.items()})
            return self.look_at(scores, scored_column, first, codes_of)

        columns = workers.run(look_at, [(number,) for number in range(len(next(iter(arrays.values()))))])
        return ChunkFacts([column._replace(gains=None) for column in columns], sum_gains(columns))

    def combine(self, chunks: Sequence[ChunkFacts]) -> tuple[Figures, list[RiskyCell]]:
        """Return the figures and the riskiest cells of some chunks, in the order of their rows.

        The cells come without their scores.
        """
        figures = Figures.together(*(Figures.beside(*(column.figures for column in chunk.columns)) for chunk in chunks))
        cells = (cell for chunk in chunks for column in chunk.columns for cell in column.top)
        return figures, riskiest(cells, self.query.top)

    def result(self, chunks: Sequence[ChunkFacts], workers: Workers) -> QueryResult:
        """Return the answer to the query. chunks: all chunks of the table, in the order of their rows.

        The riskiest cells come without their scores.
        """
        query = self.query
        figures, top = self.combine(chunks)
        of_columns = {}
        for score, column_query in query.of_columns.items():
            # One item for each column: its numbers, chunk by chunk.
            columns = zip(
                *([column.multiplicities[score] for column in chunk.columns] for chunk in chunks), strict=True
            )
            of_columns[score] = workers.run(_answer_column, [(numbers, column_query) for numbers in columns])
        of_rows: list[float] = []
        if query.gains is not None:
            of_rows = _percentiles_of_rows([chunk.sums for chunk in chunks], query.of_rows, workers)
        return QueryResult(figures, of_columns, of_rows, top)


def with_scores(
    cells: Sequence[RiskyCell], shown: Sequence[CellScore], scores_of: Callable[[list[int]], Mapping[str, Any]]
) -> list[RiskyCell]:
    """Return cells with their scores.

    shown: the scores that the cells get. scores_of: returns the scores of some rows, (columns, rows) by output.
    """
    if not cells:
        return []
    rows = sorted({cell.row for cell in cells})
    arrays = scores_of(rows)
    scores, place_of = [score.compute(arrays) for score in shown], {row: place for place, row in enumerate(rows)}
    return [
        cell._replace(scores=[array[cell.scored_column, place_of[cell.row]].item() for array in scores])
        for cell in cells
    ]


def sum_gains(columns: Iterable[ChunkColumn], rows: slice = ALL_ROWS) -> Any:
    """Return the sum of the gains of each row over all columns; None if the query does not ask for it."""
    return sum_rows(column.gains[rows] for column in columns if column.gains is not None)


def _count(column: ScoreColumn) -> Multiplicities:
    """Return the numbers of a column and how often each occurs; if few numbers repeat, return all of them uncounted."""
    return (column.values, ONCE) if column.repeated is None else count_repeated(column.repeated)


def _answer_column(chunks: Sequence[Multiplicities], query: ColumnQuery) -> ColumnAnswer:
    """Answer a query on one column from its numbers, chunk by chunk."""
    on_device = _device_numbers(chunks)
    return answer_column(lambda: chunks, query) if on_device is None else answer_on_device(on_device, query)


def _percentiles_of_rows(sums: Sequence[Any], wanted: Sequence[float], workers: Workers) -> list[float]:
    """Return percentiles of the row sums of all chunks. wanted: from 0 to 100."""
    chunks = [(chunk_sums, ONCE) for chunk_sums in sums]
    on_device = _device_numbers(chunks)
    if on_device is None:
        return percentiles_of([partial(list, [chunk]) for chunk in chunks], wanted, workers.run)
    found = answer_on_device(on_device, ColumnQuery(tuple(wanted))).percentiles
    return [found[percent] for percent in wanted]


def _device_numbers(chunks: Sequence[Multiplicities]) -> Any:
    """Return the numbers if they are on a device, else None. A table on a device is a single chunk."""
    numbers, _ = chunks[0]
    return numbers if is_on_device(numbers) else None
