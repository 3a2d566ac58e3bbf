"""Order statistics of more numbers than fit into memory: counted by their bits, 16 at a time."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.jit import kernel

SIGN = 1 << 63
# The bits of inf; what is above, but for the sign, is NaN.
INFINITE = 0x7FF << 52


@kernel
def count_patterns(bits, times, prefix, shift, counts):
    """Add to counts[d] how often numbers occur whose patterns have `prefix` above the 16 bits from `shift` on, and d in
    these; NaN counts nowhere.

    A pattern is the bits of a number in the order of the numbers: those of one from 0 on with the sign set, those of
    another turned over. times: how often each occurs; empty: once.
    """
    for i in range(bits.size):
        own = bits[i]
        if own & uint64(SIGN - 1) > uint64(INFINITE):
            continue
        pattern = ~own if own & uint64(SIGN) else own | uint64(SIGN)
        upper = pattern >> uint64(shift)
        if shift == 48 or (upper >> uint64(16)) == uint64(prefix):
            counts[upper & uint64(0xFFFF)] += times[i] if times.size else 1
