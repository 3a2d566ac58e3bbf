"""Rows on disk or in memory, read chunk by chunk: encoded tables, some of their columns, and partitions."""

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
    """Rows in chunks. sizes: list of int. The number of rows of each chunk."""

    sizes: Sequence[int]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.sizes)

    @abstractmethod
    def codes(self, number: int) -> list[npt.NDArray[Any]]:
        """Return the codes of all columns of a chunk."""

    @abstractmethod
    def close(self) -> None:
        """Close the files."""


class TableChunks(Chunks):
    """A table, or some of its columns, with its rows in order. columns: list of Column, without codes of rows."""

    columns: Sequence[Column]

    @abstractmethod
    def some_codes(self, number: int, places: Sequence[int]) -> list[npt.NDArray[Any]]:
        """Return the codes of some columns of a chunk. places: numbers of the columns."""

    def codes(self, number: int) -> list[npt.NDArray[Any]]:
        return self.some_codes(number, range(len(self.columns)))


class MemoryChunks(TableChunks):
    """A table in memory, in chunks of `chunk_rows` rows. columns: with codes of rows, on the host or a device."""

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
        """Do nothing: there are no files."""


class EncodedChunks(TableChunks):
    """The table that `encode_files` wrote.

    Each chunk has codes of its own, which are translated to the codes of the whole table.
    """

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
    """Some columns of a table in chunks. places: numbers of the columns there."""

    def __init__(self, chunks: TableChunks, places: Sequence[int]) -> None:
        self.sizes = chunks.sizes
        self.columns = [chunks.columns[place] for place in places]
        self._chunks = chunks
        self._places = places

    def some_codes(self, number: int, places: Sequence[int]) -> list[npt.NDArray[Any]]:
        return self._chunks.some_codes(number, [self._places[place] for place in places])

    def close(self) -> None:
        """Do nothing: whoever opened the table closes it."""


class PartitionChunks(Chunks):
    """The rows of one partition, see `marginals.counts_on_disk.hash_partition`."""

    def __init__(self, file: Path, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self._reader = BatchReader(file)

    def codes(self, number: int) -> list[npt.NDArray[Any]]:
        return self._reader.arrays(number)

    def close(self) -> None:
        self._reader.__exit__()
