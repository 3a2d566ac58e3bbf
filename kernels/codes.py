"""Values to dense codes: count what occurs, then renumber."""

from __future__ import annotations

from numba import int64

from .jit import kernel


@kernel
def count_values(values, start, stop, low, counts):
    """counts[v - low] += 1 for each value v; integers from `low` on, within len(counts)."""
    for i in range(start, stop):
        counts[int64(values[i]) - low] += 1


@kernel
def recode(values, start, stop, low, new_codes, codes):
    """codes[i] = new_codes[values[i] - low]."""
    for i in range(start, stop):
        codes[i] = new_codes[int64(values[i]) - low]
