"""The values of a column that was encoded in parts, merged within the memory that they may take."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from ..encoding.merge import ColumnMerger, ValueCounts
from ..errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# What the labels of a column take while they are merged, in multiples of their own size: hash table, copies, numbers.
MERGING = 6


def merge_values(
    name: Hashable,
    parts: Iterable[ValueCounts],
    write: Callable[[npt.NDArray[np.int64]], object],
    memory: int,
) -> ValueCounts:
    """Merge the values of a column's parts; write: gets, for each part in turn, the number of each of its values.

    Raises InputError where they take more memory than `memory` bytes.
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
    """Raise InputError for a column with too many values."""
    needed = MERGING * values.labels.nbytes
    if needed > memory:
        raise InputError(
            f"column {name!r}: at least {len(values.labels):,} different values; to number them takes more than "
            f"{needed / 2**30:.2f} GiB, of the memory limit {memory / 2**30:.2f} GiB are there for it. Leave the "
            "column out (an identifier), bin it (a measurement), round it (a weight), or raise memory_limit "
            "(--memory-limit)."
        )


def missing_error(name: Hashable, row: int) -> InputError:
    """Return the error of missing values where none may be; the first of them is in this row."""
    return InputError(
        f"column {name!r}: missing values, the first in row {row} (from 0); missing='error' expects none. Fill or drop "
        "them, or use missing='category'."
    )
