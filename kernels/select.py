"""Order statistics of more numbers than fit into memory: bit patterns are counted by 16 bits at a time."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.jit import kernel


@kernel
def count_patterns(patterns, multiplicities, prefix, shift, counts):
    """Add to counts[d] how often patterns occur with digit d and, above the digit, the bits `prefix`.

    The digit of a pattern is its 16 bits from `shift` on. multiplicities: how often each pattern occurs; empty: once.
    """
    for i in range(patterns.size):
        upper = patterns[i] >> uint64(shift)
        if shift == 48 or (upper >> uint64(16)) == uint64(prefix):
            counts[upper & uint64(0xFFFF)] += multiplicities[i] if multiplicities.size else 1
