"""What is found of all scores of a Dask frame, in one graph: partition by partition, put together by tree reductions.

Percentiles take four looks at all numbers; each partition keeps those that differ, counted, until the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..results.base import Cell, Found, Wanted
from ..results.figures import Figures
from ..results.riskiest import riskiest, riskiest_in
from ..utils.percentiles import DIGITS, SHIFTS, DigitCounts, PercentileSearch
from .graph import Graph, Key, ref
from .worker import task_workers

if TYPE_CHECKING:
    import numpy.typing as npt

# Numbers, and how often each occurs; digits, and how often each.
Counted = tuple[Any, Any]


class Looked(NamedTuple):
    """What was found of some partitions that follow each other."""

    rows: int
    figures: Figures
    top: list[Cell]


def look(graph: Graph, wanted: Wanted, columns: int, partitions: Sequence[Sequence[Key]]) -> Key:
    """The task that gives what is wanted of so many scored columns.

    partitions: of each of `Wanted.outputs` the keys of its frames.
    """
    frames = [list(map(ref, keys)) for keys in partitions]
    both = list(map(ref, graph.each("look", partial(_look, wanted), *frames)))
    looked = ref(graph.tree("looked", partial(_together, wanted.top), graph.each("found", itemgetter(0), both)))
    numbers = list(map(ref, graph.each("numbers", itemgetter(1), both)))
    searches = ref(graph.one("search", partial(_start, wanted, columns), looked))
    for number in range(len(SHIFTS) if wanted.gains is not None else 0):
        counts = graph.each(f"count-{number}", _count, [searches] * len(numbers), numbers)
        counted = ref(graph.tree(f"counted-{number}", _add, counts))
        searches = ref(graph.one(f"narrow-{number}", _narrow, searches, counted))
    return graph.one("find", partial(_finish, wanted), looked, searches)


def scores_in(frame: Any) -> npt.NDArray[Any]:
    """The scores (columns, rows) of a partition, of pandas or a GPU, on the host."""
    host = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    array: npt.NDArray[Any] = host.to_numpy().T
    return array


def _look(wanted: Wanted, *frames: Any) -> tuple[Looked, list[Counted]]:
    """What is found of a partition, and the numbers of which percentiles are wanted."""
    arrays = dict(zip(wanted.outputs, map(scores_in, frames), strict=True))
    scores = {cells: cells.of(arrays) for cells in wanted.cells}
    with task_workers() as workers:
        figures = Figures.of({name: scores[cells] for name, cells in wanted.figures.items()}, workers)
    top: list[Cell] = []
    if wanted.by is not None:
        top = riskiest_in(wanted.by.measure, scores[wanted.by], [scores[cells] for cells in wanted.shown], wanted.top)
    numbers: list[Counted] = []
    if wanted.gains is not None:
        gains = scores[wanted.gains]
        several = [*(gains if wanted.of_columns else [])]
        several += [gains.sum(axis=0, dtype=np.float64)] if wanted.of_rows else []
        numbers = [np.unique(one, return_counts=True) for one in several]
    return Looked(next(iter(arrays.values())).shape[1], figures, top), numbers


def _together(n: int, *parts: Looked) -> Looked:
    rows, top = 0, []
    for part in parts:
        top += [cell._replace(row=rows + cell.row) for cell in part.top]
        rows += part.rows
    return Looked(rows, Figures.together(*(part.figures for part in parts)), riskiest(top, n))


def _start(wanted: Wanted, columns: int, looked: Looked) -> list[PercentileSearch]:
    """A search for each column, if percentiles of them are wanted, and for the rows."""
    if wanted.gains is None:
        return []
    several: list[Sequence[float]] = []
    if wanted.of_columns:
        several += [wanted.of_columns] * columns
    if wanted.of_rows:
        several.append(wanted.of_rows)
    return [PercentileSearch.of(looked.rows, percents) for percents in several]


def _count(searches: Sequence[PercentileSearch], numbers: Sequence[Counted]) -> list[dict[int, Counted]]:
    """By search and prefix the next digits that occur in a partition, and how often."""
    found = []
    for search, (values, times) in zip(searches, numbers, strict=True):
        counts: DigitCounts = {}
        search.count(values, times, counts)
        found.append({prefix: _sparse(dense) for prefix, dense in counts.items()})
    return found


def _add(*parts: list[dict[int, Counted]]) -> list[dict[int, Counted]]:
    added = []
    for several in zip(*parts, strict=True):
        added.append({prefix: _sparse(_dense([one[prefix] for one in several])) for prefix in several[0]})
    return added


def _narrow(searches: Sequence[PercentileSearch], counts: Sequence[dict[int, Counted]]) -> list[PercentileSearch]:
    return [
        search.narrowed({prefix: _dense([digits]) for prefix, digits in found.items()})
        for search, found in zip(searches, counts, strict=True)
    ]


def _sparse(dense: npt.NDArray[np.int64]) -> Counted:
    digits = np.flatnonzero(dense)
    return digits.astype(np.uint16), dense[digits]


def _dense(several: Sequence[Counted]) -> npt.NDArray[np.int64]:
    dense = np.zeros(DIGITS, np.int64)
    for digits, times in several:
        dense[digits] += times
    return dense


def _finish(wanted: Wanted, looked: Looked, searches: Sequence[PercentileSearch]) -> Found:
    found = [search.found() for search in searches]
    of_rows = found.pop() if found and wanted.of_rows else []
    return Found(looked.figures, found, of_rows, looked.top)
