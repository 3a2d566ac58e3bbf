"""Rows on the device: their keys, and runs of those that agree, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpupif.kernels.cuda import rows as kernels

from ..information import Sizes
from ..keys import KeyLayout
from .cuda_library import Library
from .cuda_sorting import in_few_bytes


@dataclass(frozen=True)
class DeviceRows:
    """Rows on the device: packed keys (words, rows), of the columns of a layout only, and how often each row occurs."""

    keys: Any
    counts: Any

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.counts)


@dataclass(frozen=True)
class Runs:
    """Rows in order and where groups of them begin.

    order: row numbers. starts: places in order, one more than there are runs. run_of: for each place the number of its
    run, from 1. sizes: how many rows of the table each run stands for.
    """

    order: Any
    starts: Any
    run_of: Any
    sizes: Any


def pack_keys(library: Library, codes: Mapping[int, Any], rows: int, layout: KeyLayout) -> Any:
    """Packed keys (words, rows) of columns of codes, which are brought to the device one after the other."""
    keys = library.xp.zeros((layout.words, rows), "uint64")
    for column, values in codes.items():
        field = layout.fields[column]
        if field.mask:
            library.launch(kernels.pack_column, rows, library.upload(values), field.shift, keys[field.word])
    return keys


def sort_by(library: Library, rows: DeviceRows, layout: KeyLayout, order: Any, column: int) -> Any:
    """The order of the rows sorted by one column, stably."""
    field = layout.fields[column]
    if not field.mask:
        return order
    codes = (rows.keys[field.word][order] >> field.shift) & field.mask
    return order[library.stable_order(in_few_bytes(codes, field.mask.bit_length()))]


def find_runs(library: Library, rows: DeviceRows, order: Any, masks: Any) -> Runs:
    """Runs of rows in order that agree on all that the masks, one per word, keep of their keys."""
    xp = library.xp
    heads = xp.empty(rows.rows, "int64")
    library.launch(kernels.mark_heads, rows.rows, rows.keys, order, library.bring(masks), heads)
    starts = xp.append(xp.flatnonzero(heads), rows.rows)
    # Whole numbers are exact in any order; a sum over all rows takes as long whatever the runs' lengths.
    sizes = xp.cumsum(rows.counts[order])[starts[1:] - 1]
    sizes[1:] -= sizes[:-1].copy()
    return Runs(order, starts, xp.cumsum(heads), sizes)


def collapse(library: Library, rows: DeviceRows, layout: KeyLayout, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
    """Distinct rows over these columns, sorted with the first as the lowest, and for each row which of them it is."""
    xp = library.xp
    order = xp.arange(rows.rows)
    for column in columns:
        order = sort_by(library, rows, layout, order, column)
    runs = find_runs(library, rows, order, layout.masks(columns))
    numbers = xp.empty(rows.rows, "int64")
    library.launch(kernels.number_rows, rows.rows, order, runs.run_of, numbers)
    return DeviceRows(xp.take(rows.keys, order[runs.starts[:-1]], axis=1), runs.sizes), numbers


def sizes_of(library: Library, counts: Any, total: int) -> Sizes:
    """Groups of so many rows of the table's `total` by size.

    Most are of 1 row and left out; the others are sorted, in as few passes as their type has bytes.
    """
    several = counts[counts > 1]
    narrow = several.astype("uint32") if total < 1 << 32 else several
    sizes, times = library.xp.unique(narrow, return_counts=True)
    return Sizes.of(library.to_host(sizes), library.to_host(times))
