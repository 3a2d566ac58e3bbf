"""Codes of columns to packed row keys."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.jit import kernel


@kernel
def pack_column(codes, shift, words):
    """Put codes into the bits from `shift` on of `words`, one word of each key."""
    for row in range(codes.size):
        words[row] |= uint64(codes[row]) << uint64(shift)


@kernel
def unpack_column(words, shift, mask, codes):
    """codes[i] = the field of words[i] that `shift` and `mask` say."""
    for i in range(words.size):
        codes[i] = (words[i] >> uint64(shift)) & uint64(mask)
