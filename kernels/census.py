"""Drawing the columns of a synthetic population: one kernel for every column, the model comes as tables."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.hashing import mix, mix_word
from gpupif.kernels.jit import kernel

LOW_32 = 0xFFFFFFFF


@kernel
def draw_column(codes, column, begin, stop, seed, parents, shifts, keep, other, levels):
    """Draw codes[column, begin:stop] given the codes of the column's parents.

    codes (columns, rows) int8; parents (p,) the rows of codes to look at; shifts (p, 128) what a parent's code adds
    to the position of the row's table; keep and other: alias tables of `levels` cells, one after the other.

    The random word is a function of seed, column and row alone, so ranges may be drawn in any order. Its upper half
    picks a cell, its lower half decides between the cell's own level and the other one: no search, no branch.
    """
    start = mix_word(mix(seed), column)
    for row in range(begin, stop):
        table = uint64(0)
        for p in range(parents.size):
            table += uint64(shifts[p, codes[parents[p], row]])
        word = mix_word(start, row)
        level = ((word >> uint64(32)) * uint64(levels)) >> uint64(32)
        cell = table + level
        codes[column, row] = level if (word & uint64(LOW_32)) < uint64(keep[cell]) else uint64(other[cell])
