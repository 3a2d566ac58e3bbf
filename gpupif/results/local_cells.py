"""Cells of scores that this process reads: in memory, or in files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..io.write import write_tables
from ..rows.threads import Workers
from .base import CellSource, ScoresDescription
from .cell_layout import CellLayout
from .provenance import to_metadata
from .selection import CellQuery, ScoredRows


@dataclass(eq=False)
class LocalCells(CellSource):
    """See `CellSource`. rows: gives the scores of some outputs, rows in order."""

    query: CellQuery
    layout: CellLayout
    rows: Callable[[Sequence[str]], Iterator[ScoredRows]]

    def __post_init__(self) -> None:
        self.columns = self.layout.names

    def tables(self) -> Iterator[pa.Table]:
        pieces = (piece for rows in self.rows(self.query.outputs) for piece in rows.pieces())
        with Workers() as workers:
            yield from self.layout.tables(self.query.search(pieces, workers))

    def write(
        self, path: str | os.PathLike[str], overwrite: bool, describe: Callable[[bool], ScoresDescription]
    ) -> int:
        written = 0

        def done(cells: int) -> None:
            nonlocal written
            written += cells

        write_tables(self.tables(), path, done, overwrite, lambda: to_metadata(describe(True)))
        return written
