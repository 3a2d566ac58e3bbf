"""Codes of columns to packed row keys."""

from __future__ import annotations

from numba import uint64

from .jit import kernel


@kernel
def pack_column(codes, start, stop, word, shift, keys):
    """Put `codes[start:stop]` into the bit field at (`word`, `shift`) of the same rows of `keys` (rows, words)."""
    for row in range(start, stop):
        keys[row, word] |= uint64(codes[row]) << uint64(shift)


@kernel
def unpack_field(keys, start, stop, word, shift, mask, codes):
    """Read the bit field at (`word`, `shift`), `mask` unshifted, of rows start to stop into `codes`."""
    for row in range(start, stop):
        codes[row] = (keys[row, word] >> uint64(shift)) & uint64(mask)
