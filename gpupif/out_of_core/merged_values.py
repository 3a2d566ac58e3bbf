"""The values of a column that was encoded chunk by chunk, merged within a memory limit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from ..encoding.merge import ColumnMerger, ValueCounts
from ..errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Memory for merging labels, in multiples of their size: hash table, copies, numbers.
MERGING = 6


def merge_values(
    name: Hashable,
    parts: Iterable[ValueCounts],
    write: Callable[[npt.NDArray[np.int64]], object],
    memory: int,
) -> ValueCounts:
    """Merge the values that chunks have in a column.

    write: function called for each chunk in turn with the number that each of its values has among the merged values.
    memory: int. The bytes that the merged values may take; InputError if they take more.
    """
    merger = ColumnMerger(name)
    for part in parts:
        for numbers in merger.add(part):
            write(numbers)
        check_values(name, merger.values, memory)
    for numbers in merger.flush():
        write(numbers)
    check_values(name, merger.values, memory)
    return merger.values


def check_values(name: Hashable, values: ValueCounts, memory: int) -> None:
    """Raise InputError for a column with too many values to number them in `memory` bytes."""
    needed = MERGING * values.labels.nbytes
    if needed > memory:
        raise InputError(
            f"column {name!r}: at least {len(values.labels):,} distinct values; to number them takes more than "
            f"{needed / 2**30:.2f} GiB, of the memory limit {memory / 2**30:.2f} GiB are there for it. Leave the "
            "column out (an identifier), bin it (a measurement), round it (a weight), or raise memory_limit "
            "(--memory-limit)."
        )


def missing_error(name: Hashable, row: int) -> InputError:
    """Return the error for missing values in a column without permission for them. row: the first row with one."""
    return InputError(
        f"column {name!r}: missing values, the first in row {row} (from 0); missing='error' expects none. Fill or drop "
        "them, or use missing='category'."
    )
