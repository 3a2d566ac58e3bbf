"""A `ScoreQuery` answered piece by piece of a table in memory, several pieces at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..rows.threads import Workers
from ..utils.arrays import is_on_device
from ..utils.exact_sums import sum_rows
from ..utils.percentiles import ONCE, count_repeated, percentiles_of
from ..utils.repeated import Repeated, find_repeated
from .base import QueryResult, RiskyCell, ScoreQuery
from .distribution import ColumnAnswer, ColumnQuery, answer_column, answer_on_device
from .figures import ColumnFigures, Figures
from .outputs import CellScore
from .riskiest import riskiest, riskiest_in

# Rows of a piece, at least and at most.
LEAST_ROWS, MOST_ROWS = 1 << 16, 1 << 20
PIECES_PER_THREAD = 2
ALL_ROWS = slice(None)


class ScoreColumn:
    """One score for each of some rows, of host or device; how they repeat is found once, when it is asked for."""

    def __init__(self, values: Any) -> None:
        self.values = values

    @cached_property
    def repeated(self) -> Repeated | None:
        """Those that differ, and which of them each row has, where that is worth it."""
        return None if is_on_device(self.values) else find_repeated(self.values)


class ColumnScores:
    """All scores of one column of some rows. values: by output, of host or device."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._made: dict[CellScore, ScoreColumn] = {}

    def of(self, score: CellScore) -> ScoreColumn:
        """One of them, made once."""
        made = self._made.get(score)
        if made is None:
            arrays = {output: self._values[output][None] for output in score.outputs}
            made = self._made[score] = ScoreColumn(score.of(arrays)[0])
        return made


def by_column(arrays: Mapping[str, Any]) -> list[ColumnScores]:
    """The scores of each column, of arrays (columns, rows) by output."""
    columns = range(len(next(iter(arrays.values()))))
    return [ColumnScores({output: array[column] for output, array in arrays.items()}) for column in columns]


class ColumnPiece(NamedTuple):
    """What is known of a column of some rows. top: of its riskiest cells.

    times: by score of which more is asked its numbers, and how often each occurs. gains: those of all rows, until they
    are summed.
    """

    figures: Figures
    top: list[RiskyCell]
    times: Mapping[CellScore, tuple[Any, Any]] = {}
    gains: Any = None


class Piece(NamedTuple):
    """What is known of some rows, by column. sums: of the gains of each row, where they are asked for."""

    columns: list[ColumnPiece]
    sums: Any


def cut(rows: int, threads: int) -> list[tuple[int, int]]:
    """Pieces of a table, (start, stop), some for each thread."""
    fair = -(-rows // (threads * PIECES_PER_THREAD))
    size = min(MOST_ROWS, max(LEAST_ROWS, fair))
    return [(start, min(rows, start + size)) for start in range(0, rows, size)]


class QuerySearch:
    """Looks for what is asked at pieces of a table, in any order and from any thread, and puts together what it saw."""

    def __init__(self, query: ScoreQuery) -> None:
        self.query = query
        # So risky at least are cells that matter, as far as is known meanwhile.
        self._least = -np.inf

    def look(self, scores: ColumnScores, scored_column: int, first: int) -> ColumnPiece:
        """What is asked of one column, of the rows from `first` on."""
        query, top = self.query, list[RiskyCell]()
        times = {score: _how_often(scores.of(score)) for score in query.of_columns}
        figures = Figures(
            {
                measure: [ColumnFigures.of(measure, *times.get(score, (scores.of(score).values, ONCE)))]
                for measure, score in query.figures.items()
            }
        )
        if query.by is not None:
            by = scores.of(query.by).values[None]
            risky = riskiest_in(query.by.measure, by, [], query.top, first, self._least)
            top = [cell._replace(scored_column=scored_column) for cell in risky]
            if query.top and len(top) == query.top:
                self._least = max(self._least, top[-1].risk)
        return ColumnPiece(figures, top, times, None if query.gains is None else scores.of(query.gains).values)

    def seen(self, pieces: Sequence[Piece]) -> tuple[Figures, list[RiskyCell]]:
        """The figures and riskiest cells of pieces in the order of their rows. The cells come without their scores."""
        figures = Figures.together(*(Figures.beside(*(one.figures for one in piece.columns)) for piece in pieces))
        return figures, riskiest(
            (cell for piece in pieces for one in piece.columns for cell in one.top), self.query.top
        )

    def result(self, pieces: Sequence[Piece], workers: Workers) -> QueryResult:
        """What is asked of all rows; pieces: in the order of their rows. The cells come without their scores."""
        query = self.query
        figures, top = self.seen(pieces)
        of_columns = {}
        for score, asked in query.of_columns.items():
            columns = zip(*([one.times[score] for one in piece.columns] for piece in pieces), strict=True)
            of_columns[score] = workers.run(_answer_column, [(own, asked) for own in columns])
        of_rows: list[float] = []
        if query.gains is not None:
            of_rows = _percentiles_of_rows([piece.sums for piece in pieces], query.of_rows, workers)
        return QueryResult(figures, of_columns, of_rows, top)


def sum_gains(columns: Iterable[ColumnPiece], rows: slice = ALL_ROWS) -> Any:
    """The sums of the gains of some rows over all columns, in their order; None where they are not asked for."""
    return sum_rows(column.gains[rows] for column in columns if column.gains is not None)


def _how_often(column: ScoreColumn) -> tuple[Any, npt.NDArray[np.int64]]:
    """Scores, and how often each occurs."""
    return (column.values, ONCE) if column.repeated is None else count_repeated(column.repeated)


def _answer_column(several: Sequence[tuple[Any, Any]], asked: ColumnQuery) -> ColumnAnswer:
    """What is asked of the scores of a column."""
    on_device = _of_a_device(several)
    return answer_column(lambda: several, asked) if on_device is None else answer_on_device(on_device, asked)


def _percentiles_of_rows(sums: Sequence[Any], wanted: Sequence[float], workers: Workers) -> list[float]:
    """Percentiles of the sums of rows, which are given by piece."""
    several = [(piece, ONCE) for piece in sums]
    on_device = _of_a_device(several)
    if on_device is None:
        return percentiles_of([partial(list, [one]) for one in several], wanted, workers.run)
    found = answer_on_device(on_device, ColumnQuery(tuple(wanted))).percentiles
    return [found[percent] for percent in wanted]


def _of_a_device(several: Sequence[tuple[Any, Any]]) -> Any:
    """Numbers on a device, which are one piece; None for others."""
    numbers, _ = several[0]
    return numbers if is_on_device(numbers) else None
