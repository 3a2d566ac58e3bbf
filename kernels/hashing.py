"""Hashes of packed row keys. A hash only says at which slot to look; key words decide whether rows are equal."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.jit import subroutine


@subroutine
def mix(word):
    """Return a bijective mix of 64 bits (the finaliser of SplitMix64): different words never share a hash."""
    z = uint64(word)
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@subroutine
def spread_word(word):
    """Return a cheaper bijective mix, whose upper bits are good enough for a small table."""
    return uint64(word) * uint64(0x9E3779B97F4A7C15)


@subroutine
def mix_word(word, position):
    """Return the hash of one word of a key; it depends on the word's position, so equal words elsewhere differ."""
    return mix(uint64(word) + uint64(position + 1) * uint64(0x9E3779B97F4A7C15))


@subroutine
def hash_row(keys, row, masks):
    """Return the hash of the masked words of one row: a sum over words, so that one word can be exchanged cheaply."""
    total = uint64(0)
    for word in range(keys.shape[1]):
        total += mix_word(keys[row, word] & masks[word], word)
    return total
