"""Cells of scores that this process reads: in memory, or in files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..io.write import write_tables
from ..rows.threads import Workers
from .base import CellSource, ScoresDescription
from .cell_layout import CellLayout
from .provenance import to_metadata
from .selection import CellQuery, ScoredRows


@dataclass(eq=False)
class LocalCellSource(CellSource):
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
        self,
        path: str | os.PathLike[str],
        overwrite: bool,
        describe: Callable[[bool], ScoresDescription],
        options: Mapping[str, Any],
    ) -> int:
        return write_cells(self.tables(), path, overwrite, lambda: to_metadata(describe(True)))


def write_cells(
    tables: Iterator[pa.Table],
    path: str | os.PathLike[str],
    overwrite: bool,
    describe: Callable[[], Mapping[bytes, bytes]],
) -> int:
    """Write tables of cells to a file; how many cells there were. See `write_tables`."""
    written: list[int] = []
    write_tables(tables, path, written.append, overwrite, describe)
    return sum(written)
