"""Where row keys are made: which bits of which 64-bit word hold a column's code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

WORD_BITS = 64


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


def code_type(cardinality: int) -> type[np.unsignedinteger[Any]]:
    """The narrowest type for so many codes."""
    for kind in (np.uint8, np.uint16, np.uint32):
        if cardinality <= np.iinfo(kind).max + 1:
            return kind
    return np.uint64
