"""How long the ways to search for special uniques take, and which is the fastest.

The figures are of one core of a server of 2023. They choose among ways that find the same, and say about how long it
takes, which may be three times as long elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gpupif.kernels import agreements

from ..engines.cpu.count_tables import DENSE
from ..errors import InputError
from ..rows.threads import default_threads

# Nanoseconds: of a pair of rows, and of each of its columns; of a set of a row's rarer columns, with all of the others.
PAIR, PAIR_COLUMN, BLOCK = 2.0, 0.06, 450.0
# Of a set of columns; and of each row of it with a counter for each combination of values, or else, or if it lies on
# disk.
SET, COUNTED, GROUPED, ON_DISK = 1e5, 4.0, 30.0, 60.0
# So many times as fast is a GPU taken to count: an estimate, not measured.
GPU = 10
# Sets that are searched one by one at most. Hours: that a search may take, and that the size of sets is to be lowered
# to where it would take longer.
MOST_SETS, LONGEST, SHORT = 10**7, 48, 1


def count_sets(columns: int, size: int) -> int:
    """Sets of up to `size` of so many columns."""
    return sum(math.comb(columns, k) for k in range(1, size + 1))


def by_pairs(rows: int, unique: int, columns: int) -> float:
    """Seconds to compare so many unique ones of all distinct rows with all."""
    blocks: float = 2.0 ** max(0, columns - agreements.LOW)
    return unique * (rows * (PAIR + PAIR_COLUMN * columns) + blocks * BLOCK) * 1e-9


def by_sets(rows: int, cardinalities: Sequence[int], size: int) -> float:
    """Seconds to search distinct rows set by set of columns, each as if its columns had the usual number of values."""
    usual = math.exp(sum(map(math.log, cardinalities)) / len(cardinalities))
    sizes = range(1, size + 1)
    row = {k: COUNTED if k * math.log(usual) <= math.log(DENSE) else GROUPED for k in sizes}
    return sum(math.comb(len(cardinalities), k) * (SET + rows * row[k]) for k in sizes) * 1e-9


def ways(rows: int, unique: int, cardinalities: Sequence[int], size: int, gpu: bool) -> dict[str, float]:
    """Seconds that each way takes that there is, the fastest first."""
    columns, found = len(cardinalities), {}
    if columns <= agreements.MOST_COLUMNS:
        found["pairs"] = by_pairs(rows, unique, columns)
    if count_sets(columns, size) <= MOST_SETS:
        found["sets"] = by_sets(rows, cardinalities, size) / (GPU if gpu else 1)
    return dict(sorted(found.items(), key=lambda way: way[1]))


def check_sets(columns: int, size: int) -> None:
    """Raise InputError for more sets of columns than there is any way to search."""
    if columns > agreements.MOST_COLUMNS and count_sets(columns, size) > MOST_SETS:
        most = max(k for k in range(1, size) if count_sets(columns, k) <= MOST_SETS)
        raise InputError(
            f"max_size: {columns} columns have {count_sets(columns, size):,} sets of up to {size}, too many to search "
            f"in a table of more than {agreements.MOST_COLUMNS} columns. Give max_size={most} "
            f"({count_sets(columns, most):,} sets), or fewer columns."
        )


def check_counting(columns: int, size: int) -> None:
    """Raise InputError for more sets of columns than can be counted one by one."""
    if count_sets(columns, size) > MOST_SETS:
        most = max((k for k in range(1, size) if count_sets(columns, k) <= MOST_SETS), default=0)
        mend = (
            f"Give max_size={most} ({count_sets(columns, most):,} sets), or fewer columns"
            if most
            else "Name fewer columns"
        )
        raise InputError(
            f"max_size: {columns} columns have {count_sets(columns, size):,} sets of up to {size}, too many to count "
            f"where distinct rows do not fit into memory. {mend}, or give more memory."
        )


def on_disk(rows: int, columns: int, size: int) -> float:
    """Seconds to count on disk all sets of up to `size` columns."""
    return rows * count_sets(columns, size) * ON_DISK * 1e-9


def check_time(rows: int, columns: int, seconds: Mapping[int, float]) -> None:
    """Raise InputError where a search takes too long; seconds: of one core, by the largest size of sets."""
    size = max(seconds)
    hours = {largest: taken / 3600 / default_threads() for largest, taken in seconds.items()}
    if hours[size] <= LONGEST:
        return
    short = max((largest for largest in hours if hours[largest] <= SHORT), default=0)
    mend = f"Give max_size={short} (about {duration(hours[short] * 3600)})" if short else "Name fewer columns"
    raise InputError(
        f"max_size: to search {rows:,} distinct rows for sets of up to {size} of {columns} columns takes about "
        f"{duration(hours[size] * 3600)}, too long. {mend}{', or fewer columns' if short else ''}."
    )


def duration(seconds: float) -> str:
    """About how long that is, in words."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} seconds"
