"""Numbers packed into words of 64 bits: the codes of columns in row keys, and whole numbers of a few bits each.

Parquet files and messages of Dask hold whole numbers of a few bits each.
"""

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


@kernel
def pack_bits(numbers, shift, width, words):
    """Put `width` bits (1 to 64) of each number, from `shift` on, into words, one after the other from the lowest bit.

    No other bits of the numbers are set. words: of 64 bits, as many as are needed.
    """
    held, bits, word = uint64(0), uint64(0), 0
    for i in range(numbers.size):
        number = uint64(numbers[i]) >> uint64(shift)
        held |= number << bits
        bits += uint64(width)
        if bits >= uint64(64):
            words[word] = held
            word += 1
            bits -= uint64(64)
            held = number >> (uint64(width) - bits) if bits else uint64(0)
    if bits:
        words[word] = held


@kernel
def unpack_bits(words, shift, width, numbers):
    """Fill `numbers` with the numbers that `pack_bits` packed into words."""
    mask = ~uint64(0) >> (uint64(64) - uint64(width))
    for i in range(numbers.size):
        bit = uint64(i) * uint64(width)
        word, start = bit >> uint64(6), bit & uint64(63)
        number = words[word] >> start
        if start + uint64(width) > uint64(64):
            number |= words[word + uint64(1)] << (uint64(64) - start)
        numbers[i] = (number & mask) << uint64(shift)
