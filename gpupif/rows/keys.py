"""Where row keys are made: which bits of which 64-bit word hold a column's code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import pack

from .threads import Workers

WORD_BITS = 64
# Keys that one column after the other is put into: those of few words stay in the second-level cache.
PACKED_ROWS = 1 << 16


class Field(NamedTuple):
    """The bits of one column: word number, lowest bit, and the mask of its width before shifting."""

    word: int
    shift: int
    mask: int


@dataclass(frozen=True)
class KeyLayout:
    """Bit fields of the columns of a table in row keys of `words` 64-bit words.

    A field never crosses a word boundary, so clearing a column is one mask on one word. A column with a single value
    has no bits.
    """

    fields: dict[int, Field]
    words: int

    @classmethod
    def of(cls, cardinalities: Sequence[int]) -> KeyLayout:
        """Place columns with these numbers of distinct values, widest first, each in the first word with room."""
        widths = [(cardinality - 1).bit_length() for cardinality in cardinalities]
        used = [0]
        fields = {}
        for column in sorted(range(len(widths)), key=lambda column: -widths[column]):
            width = widths[column]
            if width == 0:
                fields[column] = Field(0, 0, 0)
                continue
            word = next((w for w, bits in enumerate(used) if bits + width <= WORD_BITS), len(used))
            if word == len(used):
                used.append(0)
            fields[column] = Field(word, used[word], (1 << width) - 1)
            used[word] += width
        return cls(fields, len(used))

    def masks(self, columns: Iterable[int]) -> npt.NDArray[np.uint64]:
        """One mask per word that keeps the fields of these columns."""
        masks = [0] * self.words
        for column in columns:
            field = self.fields[column]
            masks[field.word] |= field.mask << field.shift
        return np.array(masks, dtype=np.uint64)

    def project(self, columns: Sequence[int]) -> tuple[KeyLayout, list[int], npt.NDArray[np.uint64]]:
        """Layout of keys that keep only these columns, the words of this layout it needs, and their masks."""
        needed = sorted({self.fields[column].word for column in columns}) or [0]
        new_word = {word: position for position, word in enumerate(needed)}
        fields = {column: self.fields[column]._replace(word=new_word[self.fields[column].word]) for column in columns}
        return KeyLayout(fields, len(needed)), needed, self.masks(columns)[needed]

    def pack(self, codes: Sequence[npt.NDArray[Any]], workers: Workers) -> npt.NDArray[np.uint64]:
        """Row keys (rows, words) of columns of codes."""
        rows = len(codes[0])
        keys = workers.empty((rows, self.words), np.uint64)

        def pack_range(first: int, last: int) -> None:
            for start in range(first, last, PACKED_ROWS):
                stop = min(start + PACKED_ROWS, last)
                keys[start:stop] = 0
                for column, values in enumerate(codes):
                    field = self.fields[column]
                    if field.mask:
                        pack.pack_column(values[start:stop], field.shift, keys[start:stop, field.word])

        workers.run(pack_range, workers.ranges(rows))
        return keys

    def unpack(self, keys: npt.NDArray[np.uint64]) -> list[npt.NDArray[Any]]:
        """The codes of each column, from row keys (rows, words)."""
        codes = []
        for column in range(len(self.fields)):
            word, shift, mask = self.fields[column]
            codes.append(np.empty(len(keys), code_type(mask + 1)))
            pack.unpack_column(keys[:, word], shift, mask, codes[-1])
        return codes


def code_type(cardinality: int) -> type[np.unsignedinteger[Any]]:
    """The narrowest type for so many codes."""
    for kind in (np.uint8, np.uint16, np.uint32):
        if cardinality <= np.iinfo(kind).max + 1:
            return kind
    return np.uint64
