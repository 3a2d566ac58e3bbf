"""Rows on the device: their keys, and runs of those that agree, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpupif.kernels.cuda import rows as kernels

from ...gpu.cupy_arrays import CupyLibrary
from ...rows.keys import WORD_BITS, Field, KeyLayout
from ...rows.partition import Rows
from ...utils.information import Sizes

# Of up to so many rows their places, and what is numbered by them, take 4 bytes instead of 8. Signed, for kernels
# subtract from them.
NARROW_ROWS = (1 << 31) - 1


@dataclass(frozen=True)
class DeviceRows:
    """Rows on the device of `library`: packed keys (words, rows), of the columns of a layout only, and how often each
    row occurs; None before they are collapsed: once.
    """

    library: CupyLibrary
    layout: KeyLayout
    keys: Any
    counts: Any = None

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.keys.shape[1])


def upload_rows(library: CupyLibrary, rows: Rows, layout: KeyLayout) -> DeviceRows:
    """Rows of the host, of known counts, on the device."""
    keys = library.xp.ascontiguousarray(library.upload(rows.keys).T)
    return DeviceRows(library, layout, keys, library.upload(rows.counts.astype("int64")))


@dataclass(frozen=True)
class Runs:
    """Rows in an order, and the group, called a run, that each of them is of.

    order: row numbers, of the type that starts and run_of then have too. starts: where each run begins in the order,
    and where the last one ends; None where the rows of a run do not lie side by side. run_of: for each place in the
    order the number of its run, from 1. sizes: how many rows of the table each run stands for.
    """

    order: Any
    starts: Any
    run_of: Any
    sizes: Any


def place_type(rows: int) -> str:
    """The type of places among so many rows."""
    return "int32" if rows <= NARROW_ROWS else "int64"


def pack_device_keys(library: CupyLibrary, codes: Mapping[int, Any], rows: int, layout: KeyLayout) -> Any:
    """Packed keys (words, rows) of columns of codes, which are brought to the device one after the other."""
    keys = library.xp.zeros((layout.words, rows), "uint64")
    for column, values in codes.items():
        field = layout.fields[column]
        if field.mask:
            library.launch(kernels.pack_column, rows, library.upload(values), field.shift, keys[field.word])
    return keys


def sort_by(rows: DeviceRows, order: Any, column: int) -> Any:
    """The order of the rows sorted by one column, stably."""
    field = rows.layout.fields[column]
    if not field.mask:
        return order
    return order[rows.library.stable_order(_codes(rows, field, order))]


def _codes(rows: DeviceRows, field: Field, order: Any) -> Any:
    """What one column has, of the rows in order."""
    codes = rows.keys[field.word][order]
    # In place: these are the largest arrays there are while rows are sorted.
    codes >>= field.shift
    codes &= field.mask
    return in_few_bytes(codes, field.mask.bit_length())


def find_runs(library: CupyLibrary, keys: Any, counts: Any, order: Any, masks: Any) -> Runs:
    """Runs of rows in order that agree on all that the masks, one per word, keep of their keys (words, rows).

    counts: how often each row occurs, None for once.
    """
    xp, rows = library.xp, keys.shape[1]
    heads = xp.empty(rows, "int8")
    library.launch(kernels.mark_heads, rows, keys, order, library.bring(masks), heads)
    run_of = xp.cumsum(heads, dtype=order.dtype)
    first = xp.flatnonzero(heads)
    del heads
    starts = xp.empty(len(first) + 1, order.dtype)
    starts[:-1] = first
    starts[-1:] = rows
    del first
    return Runs(order, starts, run_of, _sizes(library, counts, order, starts))


def _sizes(library: CupyLibrary, counts: Any, order: Any, starts: Any) -> Any:
    """How many rows of the table each run stands for."""
    if counts is None:
        return (starts[1:] - starts[:-1]).astype("int64")
    # Whole numbers are exact in any order; a sum over all rows takes as long whatever the runs' lengths.
    sums = library.xp.cumsum(counts[order])
    sizes = sums[starts[1:] - 1]
    del sums
    sizes[1:] -= sizes[:-1].copy()
    return sizes


def collapse(rows: DeviceRows, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
    """Distinct rows over these columns, sorted with the first as the lowest, and for each row which of them it is."""
    library, xp = rows.library, rows.library.xp
    order = xp.arange(rows.rows, dtype=place_type(rows.rows))
    for column in columns:
        order = sort_by(rows, order, column)
    runs = find_runs(library, rows.keys, rows.counts, order, rows.layout.masks(columns))
    numbers = xp.empty(rows.rows, order.dtype)
    library.launch(kernels.number_rows, rows.rows, order, runs.run_of, numbers)
    starts, sizes = runs.starts, runs.sizes
    # What is no longer needed makes room for the next arrays.
    del runs
    first = order[starts[:-1]]
    del order, starts
    return DeviceRows(library, rows.layout, xp.take(rows.keys, first, axis=1), sizes), numbers


def sizes_of(library: CupyLibrary, counts: Any, total: int) -> Sizes:
    """Groups of so many rows of the table's `total` by size.

    Most are of 1 row and left out; the others are sorted, in as few passes as their type has bytes.
    """
    several = counts[counts > 1]
    narrow = several.astype("uint32") if total < 1 << 32 else several
    sizes, times = library.xp.unique(narrow, return_counts=True)
    return Sizes.from_counts(library.to_host(sizes), library.to_host(times))


def lowest_bit(layout: KeyLayout, word: int) -> int:
    """The lowest bit of one word of keys that a column has; the highest where none has any."""
    return min((one.shift for one in layout.fields.values() if one.word == word and one.mask), default=WORD_BITS - 1)


def in_few_bytes(words: Any, bits: int) -> Any:
    """Whole numbers of so many bits in as few bytes as hold them."""
    return words.astype(next(f"uint{width}" for width in (8, 16, 32, 64) if bits <= width))


def narrow_words(words: Any, low: int) -> Any:
    """One word of keys from this bit on, in as few bytes as hold it."""
    return in_few_bytes(words >> low, WORD_BITS - low)


def sort_keys(library: CupyLibrary, keys: Any, layout: KeyLayout) -> Any:
    """The order that sorts keys (words, rows)."""
    order = None
    for word in reversed(range(layout.words)):
        part = narrow_words(keys[word], lowest_bit(layout, word))
        order = library.stable_order(part) if order is None else order[library.stable_order(part[order])]
    return order
