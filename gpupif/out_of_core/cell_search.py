"""Cells in place of all scores, found in the scores of chunks of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from ..results.cell_selection import CellQuery, ScoredRows
from ..results.cell_table import CellLayout
from ..rows.threads import Workers
from ..utils.progress import Reporter
from .chunks import TableChunks


@dataclass(frozen=True)
class CellSearch:
    """Looks for cells that are asked for. chunks: the table's rows; places: of the scored columns among its columns."""

    query: CellQuery
    chunks: TableChunks
    places: Sequence[int]

    def tables(self, scores: Iterable[Mapping[str, npt.NDArray[Any]]], report: Reporter) -> Iterator[pa.Table]:
        """Tables of the cells. scores: of all chunks, by output."""
        columns = [self.chunks.columns[place] for place in self.places]
        layout = CellLayout.of([column.name for column in columns], self.query.types, columns)
        with Workers() as workers:
            yield from layout.tables(self.query.search(self._pieces(scores, report), workers))

    def _pieces(self, scores: Iterable[Mapping[str, npt.NDArray[Any]]], report: Reporter) -> Iterator[ScoredRows]:
        start = 0
        for number, (size, arrays) in enumerate(zip(self.chunks.sizes, scores, strict=True)):
            codes = self.chunks.some_codes(number, self.places)
            yield from ScoredRows(start, arrays, codes.__getitem__).chunks()
            start += size
            report.advance(size)
