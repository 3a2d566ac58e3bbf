"""The riskiest cells of a table: found column by column, or kept as cells come by that memory need not hold at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..measures import Measure, as_risk
from ..utils.arrays import is_on_device, on_host

# The highest of so many values is found first.
BLOCK = 1 << 10


class RiskyCell(NamedTuple):
    """A cell, how risky it is, and some of its scores.

    row: its place in the table. scored_column: its place among the scored columns. code: of its value, if the cell
    stands for all cells with this value; else -1. spread: whether to explain also all other values of its column.
    """

    risk: float
    row: int
    scored_column: int
    scores: list[Any]
    code: int = -1
    spread: bool = False


def riskiest(cells: Iterable[RiskyCell], n: int) -> list[RiskyCell]:
    """Return the n riskiest cells, the riskiest first; ties go to the earlier row, then the earlier column.

    Of cells that stand for all cells with one value of a column, only the first is returned.
    """
    values: set[tuple[int, int]] = set()
    kept: list[RiskyCell] = []
    for cell in sorted(cells, key=lambda cell: (-cell.risk, cell.row, cell.scored_column)):
        value = (cell.scored_column, cell.code)
        if len(kept) < n and value not in values:
            kept.append(cell)
            values |= {value} if cell.code >= 0 else set()
    return kept


def riskiest_in_column(
    measure: Measure,
    scores: npt.NDArray[Any],
    n: int,
    scored_column: int,
    first: int,
    least: float,
    codes: npt.NDArray[Any] | None = None,
) -> list[RiskyCell]:
    """Return the cells of one column of a chunk that may be among the n riskiest of the table, without their scores.

    measure, scores: by which cells are risky, (rows,); cells without a score (NaN) are not. scored_column: place of the
    column among the scored ones. first: number of the chunk's first row in the table. least: n cells of the table are
    known to be at least this risky. codes: of the values of all rows, if one cell is wanted for each value; else None.
    """
    scored = None
    if scores.dtype.kind == "f" and not (known := scores == scores).all():
        scored = np.flatnonzero(known)
        scores = scores[scored]
    if not len(scores):
        return []
    risks = as_risk(measure, scores)
    if risks.max() < least:
        return []
    if codes is not None:
        if is_on_device(codes) != is_on_device(risks):
            codes, risks, scored = on_host(codes), on_host(risks), on_host(scored)
        # `scored` has the places of the cells that are left.
        risky = np.flatnonzero(risks >= least)
        scored, risks = risky if scored is None else scored[risky], risks[risky]
        return _riskiest_of_values(risks, codes[scored], scored, n, scored_column, first)
    cells = [
        RiskyCell(risk, first + (place if scored is None else int(scored[place])), scored_column, [])
        for risk, place in highest(risks, n)
        if risk >= least
    ]
    return riskiest(cells, n)


def _riskiest_of_values(
    risks: npt.NDArray[Any], codes: npt.NDArray[Any], places: npt.NDArray[Any], n: int, scored_column: int, first: int
) -> list[RiskyCell]:
    """Return the riskiest cell of each of the n riskiest values of a column, see `riskiest_in_column`.

    risks, codes, places: of some cells; places are numbers of rows of the chunk.
    """
    kept: list[RiskyCell] = []
    while len(risks) and len(kept) < n:
        # The first of these cells with a value is the riskiest of all with that value.
        found = highest(risks, n)
        chosen = np.array([place for _, place in found], like=places)
        rows, values = on_host(places[chosen]), codes[chosen]
        cells = zip(found, rows.tolist(), on_host(values).tolist(), strict=True)
        kept += riskiest((RiskyCell(risk, first + row, scored_column, [], code) for (risk, _), row, code in cells), n)
        if len(found) == len(risks):
            break
        left = np.flatnonzero(~np.isin(codes, values))
        risks, codes, places = risks[left], codes[left], places[left]
    return riskiest(kept, n)


def highest(column: npt.NDArray[Any], n: int) -> list[tuple[float, int]]:
    """Return (value, row) of the n highest values; of equal values the first rows."""
    n = min(n, len(column))
    least = _nth_highest(column, n)
    above = np.flatnonzero(column > least)
    equal = np.flatnonzero(column == least)[: n - len(above)]
    rows = np.concatenate([above, equal])
    return list(zip(column[rows].astype(float).tolist(), rows.tolist(), strict=True))


def _nth_highest(column: npt.NDArray[Any], n: int) -> Any:
    """Return the lowest of the n highest values."""
    whole = len(column) // BLOCK * BLOCK
    if whole > n * BLOCK:
        # The highest values of n blocks are n values that are at least this high. Few values are higher.
        of_blocks = column[:whole].reshape(-1, BLOCK).max(axis=1)
        least = np.partition(of_blocks, len(of_blocks) - n)[len(of_blocks) - n]
        column = column[column > least]
        if len(column) < n:
            return least
    return np.partition(column, len(column) - n)[len(column) - n]


def cell_records(
    cells: Sequence[RiskyCell],
    columns: Sequence[Hashable],
    measures: Sequence[str],
    seen: Sequence[Mapping[str, Any]],
    labels: Sequence[Any] | None = None,
) -> pd.DataFrame:
    """Return the frame of `Scores.top`.

    measures: names of the scores that each cell begins with. seen: what an attacker sees of each cell. labels: the
    table's labels of the cells' rows.
    """
    records = []
    for number, (cell, facts) in enumerate(zip(cells, seen, strict=True)):
        place: dict[str, Any] = {"row": cell.row} | ({} if labels is None else {"index": labels[number]})
        place["column"] = columns[cell.scored_column]
        facts = {name: fact for name, fact in facts.items() if name != "cells" or cell.code >= 0}
        value = {name: facts[name] for name in ("value", "cells") if name in facts}
        # A cell may have more scores than there are measures: its scores against each attacker, to find the worst.
        records.append(place | value | dict(zip(measures, cell.scores, strict=False)) | facts)
    return pd.DataFrame.from_records(records)


class CellBatch(NamedTuple):
    """Some cells, in the order of rows and then columns, or of risk; an item of each array is of one cell.

    scored_columns: places among the scored columns.
    codes: of the cells' values; None if the table is not at hand.
    risks: how risky the cells are; None if the riskiest are not requested.
    scores: an array for each column of scores.
    """

    rows: npt.NDArray[np.int64]
    scored_columns: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64] | None
    risks: npt.NDArray[Any] | None
    scores: list[npt.NDArray[Any]]

    def take(self, places: npt.NDArray[np.intp] | slice) -> CellBatch:
        """Return the cells at some places of the batch."""
        codes, risks = (None if array is None else array[places] for array in (self.codes, self.risks))
        scores = [array[places] for array in self.scores]
        return CellBatch(self.rows[places], self.scored_columns[places], codes, risks, scores)

    @classmethod
    def together(cls, batches: Sequence[CellBatch]) -> CellBatch:
        """Return the cells of several batches as one. batches: of chunks that follow each other in the table."""
        if len(batches) == 1:
            return batches[0]
        rows, scored_columns, codes, risks, scores = zip(*batches, strict=True)
        return cls(
            np.concatenate(rows),
            np.concatenate(scored_columns),
            None if codes[0] is None else np.concatenate(codes),
            None if risks[0] is None else np.concatenate(risks),
            [np.concatenate(arrays) for arrays in zip(*scores, strict=True)],
        )

    def riskiest(self, n: int) -> CellBatch:
        """Return the n riskiest cells, in the order of the table; of equally risky cells the first."""
        risks = self.risks
        assert risks is not None
        if len(risks) <= n:
            return self
        least = np.partition(risks, len(risks) - n)[len(risks) - n]
        kept = risks > least
        kept[np.flatnonzero(risks == least)[: n - np.count_nonzero(kept)]] = True
        return self.take(np.flatnonzero(kept))

    def by_risk(self) -> CellBatch:
        """Return the cells with the riskiest first; equally risky cells stay in their order."""
        assert self.risks is not None
        # The lowest whole number has no negative, but an inverse of its bits.
        return self.take(np.argsort(~self.risks if self.risks.dtype.kind == "i" else -self.risks, kind="stable"))


class Riskiest:
    """The n riskiest of cells that come in the order of the table. No more than about twice as many are held at once.

    least: the risk that further cells have to exceed; None until n cells came.
    """

    def __init__(self, n: int) -> None:
        self.least: Any = None
        self._n = n
        self._waiting: list[CellBatch] = []

    def add(self, cells: CellBatch) -> None:
        """Add cells, which come after all added before; forget cells that can no longer be among the riskiest."""
        self._waiting.append(cells)
        if sum(len(batch.rows) for batch in self._waiting) >= 2 * self._n:
            kept = self.found()
            assert kept.risks is not None
            self._waiting, self.least = [kept], kept.risks.min()

    def found(self) -> CellBatch:
        """Return the riskiest cells so far, in the order of the table."""
        return CellBatch.together(self._waiting).riskiest(self._n)
