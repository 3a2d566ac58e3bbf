"""Row keys on the device sorted as a whole, each word in as few bytes as it has."""

from __future__ import annotations

from typing import Any

from ...gpu.base import Library
from ...rows.keys import WORD_BITS, KeyLayout


def lowest_bit(layout: KeyLayout, word: int) -> int:
    """The lowest bit of one word of keys that a column has; the highest where none has any."""
    return min((one.shift for one in layout.fields.values() if one.word == word and one.mask), default=WORD_BITS - 1)


def in_few_bytes(words: Any, bits: int) -> Any:
    """Whole numbers of so many bits in as few bytes as hold them."""
    return words.astype(next(f"uint{width}" for width in (8, 16, 32, 64) if bits <= width))


def narrow_words(words: Any, low: int) -> Any:
    """One word of keys from this bit on, in as few bytes as hold it."""
    return in_few_bytes(words >> low, WORD_BITS - low)


def sort_keys(library: Library, keys: Any, layout: KeyLayout) -> Any:
    """The order that sorts keys (words, rows)."""
    order = None
    for word in reversed(range(layout.words)):
        part = narrow_words(keys[word], lowest_bit(layout, word))
        order = library.stable_order(part) if order is None else order[library.stable_order(part[order])]
    return order
