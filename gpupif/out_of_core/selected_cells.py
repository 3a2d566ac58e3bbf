"""The search for selected cells in place of all scores: the riskiest cells of a table larger than memory.

`results/riskiest.py` keeps the riskiest cells within bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from ..results.cell_selection import CellQuery, ScoredRows
from ..results.cell_table import CellLayout, LocalCellSource
from ..utils.progress import Reporter
from .table_chunks import TableChunks


def select_cells(
    query: CellQuery,
    chunks: TableChunks,
    places: Sequence[int],
    scores: Iterable[Mapping[str, npt.NDArray[Any]]],
    report: Reporter,
) -> Iterator[pa.Table]:
    """Yield tables of the selected cells, such as the riskiest ones, while chunks of scores are made.

    query: CellQuery. The selection.
    chunks: TableChunks. The rows of the table.
    places: list of int. The numbers of the scored columns in the table.
    scores: the scores of each chunk, by output.
    report: Reporter. It shows the progress.
    """
    columns = [chunks.columns[place] for place in places]
    layout = CellLayout.for_columns([column.name for column in columns], query.types, columns)

    def scored_rows(_: Sequence[str]) -> Iterator[ScoredRows]:
        start = 0
        for number, (size, arrays) in enumerate(zip(chunks.sizes, scores, strict=True)):
            codes = chunks.some_codes(number, places)
            yield ScoredRows(start, arrays, codes.__getitem__)
            start += size
            report.advance(size)

    return LocalCellSource(query, layout, scored_rows).tables()
