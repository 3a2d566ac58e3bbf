"""The search for selected cells in place of all scores: the riskiest cells of a table larger than memory.

`results/riskiest.py` keeps the riskiest cells within bounded memory.
"""

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
from .table_chunks import TableChunks


@dataclass(frozen=True)
class CellSearch:
    """The search for selected cells, such as the riskiest ones, while chunks of scores are made.

    query: CellQuery. The selection.
    chunks: TableChunks. The rows of the table.
    places: list of int. The numbers of the scored columns in the table.
    """

    query: CellQuery
    chunks: TableChunks
    places: Sequence[int]

    def tables(self, scores: Iterable[Mapping[str, npt.NDArray[Any]]], report: Reporter) -> Iterator[pa.Table]:
        """Yield tables of the selected cells. scores: of all chunks, by output."""
        columns = [self.chunks.columns[place] for place in self.places]
        layout = CellLayout.for_columns([column.name for column in columns], self.query.types, columns)
        with Workers() as workers:
            yield from layout.tables(self.query.search(self._pieces(scores, report), workers))

    def _pieces(self, scores: Iterable[Mapping[str, npt.NDArray[Any]]], report: Reporter) -> Iterator[ScoredRows]:
        start = 0
        for number, (size, arrays) in enumerate(zip(self.chunks.sizes, scores, strict=True)):
            codes = self.chunks.some_codes(number, self.places)
            yield from ScoredRows(start, arrays, codes.__getitem__).chunks()
            start += size
            report.advance(size)
