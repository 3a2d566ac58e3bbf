"""Rows on the device: their packed keys, and runs of equal rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpupif.kernels.cuda import rows as kernels

from ...gpu.cupy_arrays import CupyLibrary
from ...rows.keys import WORD_BITS, Field, KeyLayout
from ...rows.partition import Rows
from ...utils.information import Sizes

# Most rows whose places and numbers take 4 bytes instead of 8. Types are signed, because kernels subtract places.
NARROW_ROWS = (1 << 31) - 1


@dataclass(frozen=True)
class DeviceRows:
    """Rows on the device of `library`.

    layout: the layout of the keys. keys: (words, rows) uint64. counts: (rows,) multiplicities; None: 1 each.
    """

    library: CupyLibrary
    layout: KeyLayout
    keys: Any
    counts: Any = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.keys.shape[1])


def upload_rows(library: CupyLibrary, rows: Rows, layout: KeyLayout) -> DeviceRows:
    """Upload rows with known multiplicities from the host."""
    keys = library.xp.ascontiguousarray(library.upload(rows.keys).T)
    return DeviceRows(library, layout, keys, library.upload(rows.counts.astype("int64")))


@dataclass(frozen=True)
class Runs:
    """Rows in an order, divided into runs: sets of rows that agree on some columns, such as cohorts.

    order: (rows,) row numbers. `starts` and `run_of` have the same type.
    starts: (runs + 1,) the first place of each run in the order, and the end. None if the rows of a run are not
        neighbours.
    run_of: (rows,) the number of the run at each place in the order, from 1.
    sizes: (runs,) the number of rows of the table in each run.
    """

    order: Any
    starts: Any
    run_of: Any
    sizes: Any


def place_type(rows: int) -> str:
    """Return the type of row places, for a number of rows."""
    return "int32" if rows <= NARROW_ROWS else "int64"


def pack_device_keys(library: CupyLibrary, codes: Mapping[int, Any], rows: int, layout: KeyLayout) -> Any:
    """Return packed keys (words, rows) of columns of codes, which are uploaded one after the other."""
    keys = library.xp.zeros((layout.words, rows), "uint64")
    for column, values in codes.items():
        field = layout.fields[column]
        if field.mask:
            library.launch(kernels.pack_column, rows, library.upload(values), field.shift, keys[field.word])
    return keys


def sort_by(rows: DeviceRows, order: Any, column: int) -> Any:
    """Return the order of the rows, sorted stably by one column."""
    field = rows.layout.fields[column]
    if not field.mask:
        return order
    return order[rows.library.stable_order(_codes(rows, field, order))]


def _codes(rows: DeviceRows, field: Field, order: Any) -> Any:
    """Return the codes of one column, of the rows in an order."""
    codes = rows.keys[field.word][order]
    # In place, because these arrays are the largest while rows are sorted.
    codes >>= field.shift
    codes &= field.mask
    return in_few_bytes(codes, field.mask.bit_length())


def find_runs(library: CupyLibrary, keys: Any, counts: Any, order: Any, masks: Any) -> Runs:
    """Return the runs of rows that agree on the masked keys. The rows of each run are neighbours in `order`.

    keys: (words, rows). counts: (rows,) multiplicities; None: 1 each. masks: one for each word.
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
    """Return the number of rows of the table in each run."""
    if counts is None:
        return (starts[1:] - starts[:-1]).astype("int64")
    # Integer sums are exact in any order. A cumulative sum takes equal time for runs of any length.
    sums = library.xp.cumsum(counts[order])
    sizes = sums[starts[1:] - 1]
    del sums
    sizes[1:] -= sizes[:-1].copy()
    return sizes


def collapse(rows: DeviceRows, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
    """Return the distinct rows over these columns, sorted with the first as the lowest, and each row's number."""
    library, xp = rows.library, rows.library.xp
    order = xp.arange(rows.rows, dtype=place_type(rows.rows))
    for column in columns:
        order = sort_by(rows, order, column)
    runs = find_runs(library, rows.keys, rows.counts, order, rows.layout.masks(columns))
    numbers = xp.empty(rows.rows, order.dtype)
    library.launch(kernels.number_rows, rows.rows, order, runs.run_of, numbers)
    starts, sizes = runs.starts, runs.sizes
    # Free arrays before the next arrays are allocated.
    del runs
    first = order[starts[:-1]]
    del order, starts
    return DeviceRows(library, rows.layout, xp.take(rows.keys, first, axis=1), sizes), numbers


def sizes_of(library: CupyLibrary, counts: Any, total: int) -> Sizes:
    """Return sets of rows by size. counts: size of each set. total: rows of the table.

    Most sets have 1 row and are left out. Narrow types are sorted in fewer passes.
    """
    several = counts[counts > 1]
    narrow = several.astype("uint32") if total < 1 << 32 else several
    sizes, multiplicities = library.xp.unique(narrow, return_counts=True)
    return Sizes.from_counts(library.to_host(sizes), library.to_host(multiplicities))


def lowest_bit(layout: KeyLayout, word: int) -> int:
    """Return the lowest bit that a column uses in one word of keys; the highest bit if no column uses the word."""
    return min((one.shift for one in layout.fields.values() if one.word == word and one.mask), default=WORD_BITS - 1)


def in_few_bytes(words: Any, bits: int) -> Any:
    """Return whole numbers of `bits` bits in the narrowest type."""
    return words.astype(next(f"uint{width}" for width in (8, 16, 32, 64) if bits <= width))


def narrow_words(words: Any, low: int) -> Any:
    """Return one word of keys without the bits below `low`, in the narrowest type."""
    return in_few_bytes(words >> low, WORD_BITS - low)


def sort_keys(library: CupyLibrary, keys: Any, layout: KeyLayout) -> Any:
    """Return the order that sorts keys (words, rows)."""
    order = None
    for word in reversed(range(layout.words)):
        part = narrow_words(keys[word], lowest_bit(layout, word))
        order = library.stable_order(part) if order is None else order[library.stable_order(part[order])]
    return order
