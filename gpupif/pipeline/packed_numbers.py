"""Numbers written one after the other as 64-bit words, in as few as they need, and read again in the same order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import parcels as kernels
from gpupif.kernels.bits import pack_bits, unpack_bits

WORD_BITS = 64
# What makes arrays: `numpy.empty`, or of a run's working memory.
Empty = Callable[..., npt.NDArray[Any]]


def words_for(bits: int) -> int:
    """Return how many words hold so many bits."""
    return -(-bits // WORD_BITS)


class WordWriter:
    """Words to be read by a `WordReader`. arrays: of them, in order; empty: makes them."""

    def __init__(self, empty: Empty = np.empty) -> None:
        self.arrays: list[npt.NDArray[np.uint64]] = []
        self._empty = empty

    def put(self, *words: int) -> None:
        """Put whole numbers from 0 on, below 2^64."""
        self.arrays.append(np.array(words, np.uint64))

    def put_array(self, words: npt.NDArray[np.uint64]) -> None:
        """Put words as they are."""
        self.arrays.append(words.reshape(-1))

    def put_bits(self, numbers: npt.NDArray[np.unsignedinteger[Any]], shift: int, width: int) -> None:
        """Put numbers of which only so many bits from `shift` on are set."""
        if width:
            words = self._empty(words_for(width * len(numbers)), np.uint64)
            pack_bits(numbers, shift, width, words)
            self.arrays.append(words)

    def put_numbers(self, numbers: npt.NDArray[np.uint64]) -> None:
        """Put one number or more: in as many bits as the widest needs; or, where most of them are the same number, in a
        bit each, and those that differ from it behind.
        """
        # Of this type again, for kernels return whole numbers of Python.
        usual = np.uint64(kernels.find_usual_number(numbers))
        flags, others = self._empty(words_for(len(numbers)), np.uint64), self._empty(len(numbers), np.uint64)
        others = others[: kernels.part_numbers(numbers, usual, flags, others)]
        fields, own = bits_of(numbers), bits_of(others)
        apart = len(numbers) + own[1] * len(others) < fields[1] * len(numbers)
        if apart:
            self.put(len(others), int(usual), *own)
            self.put_array(flags)
            self.put_bits(others, *own)
        else:
            self.put(len(numbers), 0, *fields)
            self.put_bits(numbers, *fields)

    @property
    def size(self) -> int:
        """Return the number of words."""
        return sum(words.size for words in self.arrays)


class WordReader:
    """Reads what a `WordWriter` wrote. empty: makes arrays that are needed on the way."""

    def __init__(self, words: npt.NDArray[np.uint64], empty: Empty = np.empty) -> None:
        self._words = words
        self._place = 0
        self._empty = empty

    def take(self, size: int) -> npt.NDArray[np.uint64]:
        """The next so many words."""
        words = self._words[self._place : self._place + size]
        self._place += size
        return words

    def take_bits(self, shift: int, width: int, numbers: npt.NDArray[np.unsignedinteger[Any]]) -> None:
        """Read what `put_bits` put into `numbers`, of any type that holds them."""
        if width:
            unpack_bits(self.take(words_for(width * len(numbers))), shift, width, numbers)
        else:
            numbers[:] = 0

    def take_numbers(self, numbers: npt.NDArray[np.uint64]) -> None:
        """Read what `put_numbers` put into `numbers`, of which there are as many."""
        size, usual, shift, width = self.take(4).tolist()
        if size == len(numbers):
            self.take_bits(shift, width, numbers)
            return
        flags, others = self.take(words_for(len(numbers))), self._empty(size, np.uint64)
        self.take_bits(shift, width, others)
        kernels.join_numbers(flags, np.uint64(usual), others, numbers)


def bits_of(numbers: npt.NDArray[np.uint64]) -> tuple[int, int]:
    """The lowest bit that is set in any of the numbers, and how many there are from it to the highest."""
    together = int(kernels.any_bits(numbers))
    lowest = (together & -together).bit_length() - 1 if together else 0
    return lowest, (together >> lowest).bit_length()
