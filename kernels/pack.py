"""Packed row keys: the codes of several columns in the bits of 64-bit words."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.jit import kernel


@kernel
def pack_column(codes, shift, words):
    """Put the codes of a column into the bits from `shift` on of `words`, one word of each row's key."""
    for row in range(codes.size):
        words[row] |= uint64(codes[row]) << uint64(shift)


@kernel
def unpack_column(words, shift, mask, codes):
    """Set codes[i] to the field of words[i] at the bits that `shift` and `mask` give."""
    for i in range(words.size):
        codes[i] = (words[i] >> uint64(shift)) & uint64(mask)
