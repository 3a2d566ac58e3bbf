"""How many rows of a column have another value than before."""

from __future__ import annotations

from gpupif.kernels.jit import kernel


@kernel
def count_changes(before, after, same, missing_before, missing_after, counts):
    """counts[0] += rows whose value changed, counts[1] += those of them that have none any more.

    same[a]: the code before of what is a after, for a below `missing_after`; -1 for a value that was not there.
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
