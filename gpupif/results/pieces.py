"""A `ScoreQuery` answered piece by piece of a table in memory, several pieces at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..rows.threads import Workers
from ..utils.arrays import on_host
from ..utils.percentiles import ONCE, count_repeated, percentiles, percentiles_of
from .base import RiskyCell, ScoreQuery
from .figures import SUMMED_ROWS, Figures
from .riskiest import riskiest, riskiest_in

# Rows of a piece at most.
MOST_ROWS = 1 << 20
PIECES_PER_THREAD = 2


class PieceFacts(NamedTuple):
    """What is known of some rows. top: of the riskiest cells. columns: by column the gains, and how often each occurs;
    sums: of the gains of each row.
    """

    figures: Figures
    top: list[RiskyCell]
    columns: list[tuple[Any, Any]]
    sums: Any


def cut(rows: int, threads: int) -> list[tuple[int, int]]:
    """Pieces of a table, (start, stop), some for each thread; sums over them are the same however many there are."""
    fair = -(-rows // (threads * PIECES_PER_THREAD))
    size = min(MOST_ROWS, -(-fair // SUMMED_ROWS) * SUMMED_ROWS)
    return [(start, min(rows, start + size)) for start in range(0, rows, size)]


def look(query: ScoreQuery, columns: Iterable[Mapping[str, Any]], first: int, least: Callable[[], float]) -> PieceFacts:
    """What is asked of the rows from `first` on. columns: of each scored column the scores by output.

    least: so risky at least are cells that matter, as far as is known meanwhile.
    """
    figures: list[Figures] = []
    top: list[RiskyCell] = []
    gains: list[tuple[Any, Any]] = []
    sums: Any = None
    alone = Workers(1)
    for target, column in enumerate(columns):
        arrays = {output: scores[None] for output, scores in column.items()}
        scores = {score: score.of(arrays) for score in query.looked_at}
        figures.append(Figures.of({name: scores[score] for name, score in query.figures.items()}, alone))
        if query.by is not None:
            risky = riskiest_in(query.by.measure, scores[query.by], [], query.top, first, least())
            top = riskiest([*top, *(cell._replace(target=target) for cell in risky)], query.top)
        if query.gains is not None:
            (own,) = scores[query.gains]
            if query.of_columns:
                gains.append(count_repeated(own) if isinstance(own, np.ndarray) else (own, ONCE))
            if query.of_rows:
                sums = own.astype(np.float64) if sums is None else np.add(sums, own, out=sums)
    return PieceFacts(Figures.beside(*figures), top, gains, sums)


def column_percentiles(pieces: Sequence[PieceFacts], column: int, rows: int, wanted: Sequence[float]) -> list[float]:
    """Percentiles of the gains of a column."""
    several = [piece.columns[column] for piece in pieces]
    return _of_a_device(several, wanted) or percentiles(lambda: several, rows, wanted)


def row_percentiles(sums: Sequence[Any], rows: int, wanted: Sequence[float], workers: Workers) -> list[float]:
    """Percentiles of the sums of rows, which are given by piece."""
    several = [(piece, ONCE) for piece in sums]
    on_device = _of_a_device(several, wanted)
    return on_device or percentiles_of([partial(list, [one]) for one in several], rows, wanted, workers.run)


def _of_a_device(several: Sequence[tuple[Any, Any]], wanted: Sequence[float]) -> list[float]:
    """Percentiles of numbers on a device, which are one piece; nothing of others."""
    numbers, _ = several[0]
    if isinstance(numbers, np.ndarray):
        return []
    return [float(number) for number in on_host(np.percentile(numbers, list(wanted)))]
