"""A table on disk, chunk by chunk of its rows: as it was encoded, or a part of it after a cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column
from ..encoding.merge import recode
from ..io.ipc_batches import BatchReader, read_batch
from ..utils.arrays import on_host


class Chunks(ABC):
    """Rows of a table, in chunks; sizes: rows of each."""

    sizes: Sequence[int]

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(self.sizes)

    @abstractmethod
    def codes(self, number: int) -> list[npt.NDArray[Any]]:
        """The codes of all columns of a chunk."""

    @abstractmethod
    def close(self) -> None:
        """Close its files."""


class TableChunks(Chunks):
    """A table, or some of its columns, in its order of rows; columns: without codes of rows."""

    columns: Sequence[Column]

    @abstractmethod
    def some_codes(self, number: int, places: Sequence[int]) -> list[npt.NDArray[Any]]:
        """The codes of some columns of a chunk, by their places."""

    def codes(self, number: int) -> list[npt.NDArray[Any]]:
        return self.some_codes(number, range(len(self.columns)))


class MemoryChunks(TableChunks):
    """A table in memory, in chunks of so many rows; columns: with codes of rows, on the host or a device."""

    def __init__(self, columns: Sequence[Column], chunk_rows: int) -> None:
        rows = len(columns[0].codes)
        self.columns = columns
        self.sizes = [min(chunk_rows, rows - start) for start in range(0, rows, chunk_rows)]
        self._codes = [on_host(column.codes) for column in columns]
        self._chunk_rows = chunk_rows

    def some_codes(self, number: int, places: Sequence[int]) -> list[npt.NDArray[Any]]:
        start = number * self._chunk_rows
        return [self._codes[place][start : start + self._chunk_rows] for place in places]

    def close(self) -> None:
        """See `Chunks`: there are no files."""


class EncodedChunks(TableChunks):
    """The table as `encode` left it: each chunk with codes of its own, brought to those of the whole table."""

    def __init__(self, folder: Path, sizes: Sequence[int], columns: Sequence[Column], ranks: Sequence[Any]) -> None:
        self.sizes = sizes
        self.columns = columns
        self._folder = folder
        self._ranks = ranks
        self._numbers = [BatchReader(folder / f"numbers-{place}.arrow") for place in range(len(columns))]

    def some_codes(self, number: int, places: Sequence[int]) -> list[npt.NDArray[Any]]:
        read = sorted(set(places))
        own = dict(zip(read, read_batch(self._folder / f"chunk-{number:06}.arrow", read), strict=True))
        numbers = [self._numbers[place].arrays(number)[0] for place in places]
        return [
            recode(own[place], np.append(self._ranks[place][values], len(self._ranks[place])))
            for place, values in zip(places, numbers, strict=True)
        ]

    def close(self) -> None:
        for numbers in self._numbers:
            numbers.__exit__()


class SomeColumns(TableChunks):
    """Some columns of an encoded table, by their places there."""

    def __init__(self, chunks: TableChunks, places: Sequence[int]) -> None:
        self.sizes = chunks.sizes
        self.columns = [chunks.columns[place] for place in places]
        self._chunks = chunks
        self._places = places

    def some_codes(self, number: int, places: Sequence[int]) -> list[npt.NDArray[Any]]:
        return self._chunks.some_codes(number, [self._places[place] for place in places])

    def close(self) -> None:
        """See `Chunks`: the table is closed by itself."""


class PartitionChunks(Chunks):
    """The rows of one part of a cut."""

    def __init__(self, file: Path, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self._reader = BatchReader(file)

    def codes(self, number: int) -> list[npt.NDArray[Any]]:
        return self._reader.arrays(number)

    def close(self) -> None:
        self._reader.__exit__()
