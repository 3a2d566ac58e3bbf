"""Whole numbers packed into 64-bit words, with as few bits as they need, and read again in the same order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import messages as kernels
from gpupif.kernels.pack import pack_bits, unpack_bits

WORD_BITS = 64
# A function that allocates arrays: `numpy.empty`, or one that takes a run's working memory.
Empty = Callable[..., npt.NDArray[Any]]


def words_for(bits: int) -> int:
    """Return the number of words that hold this number of bits."""
    return -(-bits // WORD_BITS)


class WordWriter:
    """The writer of words for a `WordReader`.

    arrays: list of arrays of uint64. The words so far, in order.
    empty: function that allocates arrays.
    """

    def __init__(self, empty: Empty = np.empty) -> None:
        self.arrays: list[npt.NDArray[np.uint64]] = []
        self._empty = empty

    def put(self, *words: int) -> None:
        """Write whole numbers from 0 to 2^64 - 1, one word each."""
        self.arrays.append(np.array(words, np.uint64))

    def put_array(self, words: npt.NDArray[np.uint64]) -> None:
        """Write words unchanged."""
        self.arrays.append(words.reshape(-1))

    def put_bits(self, numbers: npt.NDArray[np.unsignedinteger[Any]], shift: int, width: int) -> None:
        """Write `width` bits of each number, from bit `shift` on; all other bits of the numbers must be 0."""
        if width:
            words = self._empty(words_for(width * len(numbers)), np.uint64)
            pack_bits(numbers, shift, width, words)
            self.arrays.append(words)

    def put_numbers(self, numbers: npt.NDArray[np.uint64]) -> None:
        """Write one or more numbers in the shorter of two forms.

        The first form gives each number as many bits as the widest number needs. The second form suits numbers of which
        most are equal: one bit says whether a number is the usual one, and the other numbers follow.
        """
        # The kernel returns a Python int; `part_numbers` is compiled for uint64.
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
        """The number of words written so far."""
        return sum(words.size for words in self.arrays)


class WordReader:
    """The reader of the words that a `WordWriter` wrote. empty: function that allocates temporary arrays."""

    def __init__(self, words: npt.NDArray[np.uint64], empty: Empty = np.empty) -> None:
        self._words = words
        self._place = 0
        self._empty = empty

    def take(self, size: int) -> npt.NDArray[np.uint64]:
        """Return the next `size` words."""
        words = self._words[self._place : self._place + size]
        self._place += size
        return words

    def take_bits(self, shift: int, width: int, numbers: npt.NDArray[np.unsignedinteger[Any]]) -> None:
        """Read the numbers that `put_bits` wrote into `numbers`, an array of any type that holds them."""
        if width:
            unpack_bits(self.take(words_for(width * len(numbers))), shift, width, numbers)
        else:
            numbers[:] = 0

    def take_numbers(self, numbers: npt.NDArray[np.uint64]) -> None:
        """Read the numbers that `put_numbers` wrote into `numbers`, an array of the same length."""
        size, usual, shift, width = self.take(4).tolist()
        if size == len(numbers):
            self.take_bits(shift, width, numbers)
            return
        flags, others = self.take(words_for(len(numbers))), self._empty(size, np.uint64)
        self.take_bits(shift, width, others)
        kernels.join_numbers(flags, np.uint64(usual), others, numbers)


def bits_of(numbers: npt.NDArray[np.uint64]) -> tuple[int, int]:
    """Return the lowest bit that is set in any number, and the number of bits from there to the highest one."""
    together = int(kernels.any_bits(numbers))
    lowest = (together & -together).bit_length() - 1 if together else 0
    return lowest, (together >> lowest).bit_length()
