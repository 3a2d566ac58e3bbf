"""Row keys: the codes of several columns packed into 64-bit words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import pack

from .threads import Workers

WORD_BITS = 64
# Number of rows whose keys are packed column by column: keys of few words stay in the second-level cache.
PACKED_ROWS = 1 << 16


class Field(NamedTuple):
    """The bits of one column: the number of the word, the lowest bit, and the mask of the column's width before
    shifting.
    """

    word: int
    shift: int
    mask: int


@dataclass(frozen=True)
class KeyLayout:
    """The bit fields of the columns of a table in row keys of `words` 64-bit words.

    A field never crosses a word boundary, so one mask on one word clears a column. A column with a single value has no
    bits.
    """

    fields: dict[int, Field]
    words: int

    @classmethod
    def from_cardinalities(cls, cardinalities: Sequence[int]) -> KeyLayout:
        """Return a layout for columns with these numbers of values: widest first, each in the first word with room."""
        widths = [(cardinality - 1).bit_length() for cardinality in cardinalities]
        used, full = [0], 0
        fields = {}
        for column in sorted(range(len(widths)), key=lambda column: -widths[column]):
            width = widths[column]
            if width == 0:
                fields[column] = Field(0, 0, 0)
                continue
            while full < len(used) and used[full] == WORD_BITS:
                full += 1
            word = next((w for w in range(full, len(used)) if used[w] + width <= WORD_BITS), len(used))
            if word == len(used):
                used.append(0)
            fields[column] = Field(word, used[word], (1 << width) - 1)
            used[word] += width
        return cls(fields, len(used))

    def masks(self, columns: Iterable[int]) -> npt.NDArray[np.uint64]:
        """Return masks, one for each word, that keep the fields of these columns."""
        masks = [0] * self.words
        for column in columns:
            field = self.fields[column]
            masks[field.word] |= field.mask << field.shift
        return np.array(masks, dtype=np.uint64)

    def project(self, columns: Sequence[int]) -> tuple[KeyLayout, list[int], npt.NDArray[np.uint64]]:
        """Return the layout of keys of these columns only, the words of this layout that they need, and their masks."""
        needed = sorted({self.fields[column].word for column in columns}) or [0]
        new_word = {word: position for position, word in enumerate(needed)}
        fields = {column: self.fields[column]._replace(word=new_word[self.fields[column].word]) for column in columns}
        return KeyLayout(fields, len(needed)), needed, self.masks(columns)[needed]

    def pack(self, codes: Sequence[npt.NDArray[Any]], workers: Workers) -> npt.NDArray[np.uint64]:
        """Return row keys (rows, words) of columns of codes."""
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

    def unpack(self, keys: npt.NDArray[np.uint64], first: int = 0) -> list[npt.NDArray[Any]]:
        """Return the codes of each column, from column `first` on, from row keys (rows, words)."""
        codes = []
        for column in range(first, len(self.fields)):
            word, shift, mask = self.fields[column]
            codes.append(np.empty(len(keys), code_type(mask + 1)))
            pack.unpack_column(keys[:, word], shift, mask, codes[-1])
        return codes


def code_type(cardinality: int) -> type[np.unsignedinteger[Any]]:
    """Return the narrowest type for codes below `cardinality`."""
    for kind in (np.uint8, np.uint16, np.uint32):
        if cardinality <= np.iinfo(kind).max + 1:
            return kind
    return np.uint64
