"""Numbers written one after the other as 64-bit words, in as few as they need, and read again in the same order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpupif.kernels import parcels as kernels

WORD_BITS = 64


def words_for(bits: int) -> int:
    """How many words hold so many bits."""
    return -(-bits // WORD_BITS)


class WordWriter:
    """Words to be read by a `WordReader`. arrays: of them, in order."""

    def __init__(self) -> None:
        self.arrays: list[npt.NDArray[np.uint64]] = []

    def put(self, *words: int) -> None:
        """Put whole numbers from 0 on, below 2^64."""
        self.arrays.append(np.array(words, np.uint64))

    def put_array(self, words: npt.NDArray[np.uint64]) -> None:
        """Put words as they are."""
        self.arrays.append(words.reshape(-1))

    def put_bits(self, numbers: npt.NDArray[np.unsignedinteger], shift: int, width: int) -> None:
        """Put numbers of which only so many bits from `shift` on are set."""
        if width:
            words = np.empty(words_for(width * len(numbers)), np.uint64)
            kernels.pack_bits(numbers, shift, width, words)
            self.arrays.append(words)

    def put_numbers(self, numbers: npt.NDArray[np.uint64]) -> None:
        """Put one number or more: in as many bits as the widest needs; or, where most of them are the same number, in a
        bit each, and those that differ from it behind.
        """
        usual = kernels.find_usual_number(numbers)
        differ = numbers != usual
        others = numbers[differ]
        fields, own = bits_of(numbers), bits_of(others)
        apart = len(numbers) + own[1] * len(others) < fields[1] * len(numbers)
        self.put(usual, apart, *(own if apart else fields))
        if apart:
            self.put(len(others))
            self.put_bits(differ.view(np.uint8), 0, 1)
        self.put_bits(others if apart else numbers, *(own if apart else fields))

    @property
    def size(self) -> int:
        """How many words there are."""
        return sum(words.size for words in self.arrays)


class WordReader:
    """Reads what a `WordWriter` wrote."""

    def __init__(self, words: npt.NDArray[np.uint64]) -> None:
        self._words = words
        self._place = 0

    def take(self, size: int) -> npt.NDArray[np.uint64]:
        """The next so many words."""
        words = self._words[self._place : self._place + size]
        self._place += size
        return words

    def take_bits(self, shift: int, width: int, numbers: npt.NDArray[np.unsignedinteger]) -> None:
        """Read what `put_bits` put into `numbers`, of any type that holds them."""
        if width:
            kernels.unpack_bits(self.take(words_for(width * len(numbers))), shift, width, numbers)
        else:
            numbers[:] = 0

    def take_numbers(self, size: int) -> npt.NDArray[np.uint64]:
        """What `put_numbers` put."""
        usual, apart, shift, width = self.take(4).tolist()
        numbers = np.empty(self.take(1)[0] if apart else size, np.uint64)
        differ = np.empty(size if apart else 0, np.uint8)
        if apart:
            self.take_bits(0, 1, differ)
        self.take_bits(shift, width, numbers)
        if not apart:
            return numbers
        both = np.full(size, usual, np.uint64)
        both[differ.view(np.bool_)] = numbers
        return both


def bits_of(numbers: npt.NDArray[np.uint64]) -> tuple[int, int]:
    """The lowest bit that is set in any of the numbers, and how many there are from it to the highest."""
    together = int(np.bitwise_or.reduce(numbers, initial=0))
    lowest = (together & -together).bit_length() - 1 if together else 0
    return lowest, (together >> lowest).bit_length()
