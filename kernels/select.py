"""Order statistics of more numbers than fit into memory: counted by the bits of their patterns, 16 at a time."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.jit import kernel


@kernel
def count_patterns(patterns, times, prefix, shift, counts):
    """Add to counts[d] how often patterns occur that have `prefix` above the 16 bits from `shift` on, and d in these.

    times: how often each occurs; empty: once.
    """
    for i in range(patterns.size):
        upper = patterns[i] >> uint64(shift)
        if shift == 48 or (upper >> uint64(16)) == uint64(prefix):
            counts[upper & uint64(0xFFFF)] += times[i] if times.size else 1
