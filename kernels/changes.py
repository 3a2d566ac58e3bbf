"""Number of rows of a column whose value a treatment changed."""

from __future__ import annotations

from gpupif.kernels.jit import kernel


@kernel
def count_changes(before, after, same, missing_before, missing_after, counts):
    """Add to counts[0] the rows whose value changed, and to counts[1] the rows whose value became missing.

    same[a]: for each code a after the treatment, the code of the same value before it; -1 for a new value.
    """
    changed = 0
    suppressed = 0
    for i in range(before.size):
        old = before[i]
        new = after[i]
        if new == missing_after:
            if old != missing_before:
                changed += 1
                suppressed += 1
        elif same[new] != old:
            changed += 1
    counts[0] += changed
    counts[1] += suppressed
