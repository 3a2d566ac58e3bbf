"""Hashes of packed row keys. A hash only says where to look; equality is always decided on the key words."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.jit import subroutine


@subroutine
def mix(word):
    """Bijective mix of 64 bits (the finaliser of SplitMix64): different words never share a hash."""
    z = uint64(word)
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@subroutine
def spread_word(word):
    """Cheaper bijective mix, whose upper bits are good enough for a small table."""
    return uint64(word) * uint64(0x9E3779B97F4A7C15)


@subroutine
def mix_word(word, position):
    """Hash of one word of a key; the position enters, so equal words in different places differ."""
    return mix(uint64(word) + uint64(position + 1) * uint64(0x9E3779B97F4A7C15))


@subroutine
def hash_row(keys, row, masks):
    """Hash of the masked words of one row: a sum over words, so that one word can be exchanged cheaply."""
    total = uint64(0)
    for word in range(keys.shape[1]):
        total += mix_word(keys[row, word] & masks[word], word)
    return total
