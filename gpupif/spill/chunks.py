"""A table on disk, chunk by chunk of its rows: as it was encoded, or a part of it after a cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..columns import Column
from ..merge import recode
from .store import BatchReader, read_batch

if TYPE_CHECKING:
    import numpy.typing as npt


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

    def all_codes(self) -> list[npt.NDArray[Any]]:
        """The codes of all columns of all rows."""
        whole: list[npt.NDArray[Any]] = []
        start = 0
        for number, size in enumerate(self.sizes):
            for place, codes in enumerate(self.codes(number)):
                if number == 0:
                    whole.append(np.empty(self.rows, codes.dtype))
                whole[place][start : start + size] = codes
            start += size
        return whole

    @abstractmethod
    def close(self) -> None:
        """Close its files."""


class EncodedChunks(Chunks):
    """The table as `encode` left it: each chunk with codes of its own, brought to those of the whole table."""

    def __init__(self, folder: Path, sizes: Sequence[int], columns: Sequence[Column], ranks: Sequence[Any]) -> None:
        self.sizes = sizes
        self.columns = columns
        self._folder = folder
        self._ranks = ranks
        self._numbers = [BatchReader(folder / f"numbers-{place}.arrow") for place in range(len(columns))]

    def codes(self, number: int) -> list[npt.NDArray[Any]]:
        """See `Chunks`."""
        own = read_batch(self._folder / f"chunk-{number:06}.arrow")
        return [
            recode(codes, np.append(rank[numbers.arrays(number)[0]], len(rank)))
            for codes, rank, numbers in zip(own, self._ranks, self._numbers, strict=True)
        ]

    def close(self) -> None:
        """See `Chunks`."""
        for numbers in self._numbers:
            numbers.__exit__()


class PartChunks(Chunks):
    """The rows of one part of a cut."""

    def __init__(self, file: Path, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self._reader = BatchReader(file)

    def codes(self, number: int) -> list[npt.NDArray[Any]]:
        """See `Chunks`."""
        return self._reader.arrays(number)

    def close(self) -> None:
        """See `Chunks`."""
        self._reader.__exit__()
