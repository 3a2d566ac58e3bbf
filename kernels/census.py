"""Random columns of a synthetic population: one kernel draws every column; tables describe the model."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.hashing import mix, mix_word
from gpupif.kernels.jit import kernel

LOW_32 = 0xFFFFFFFF


@kernel
def draw_column(codes, column, begin, stop, seed, parents, shifts, keep, other, levels):
    """Draw codes[column, begin:stop] given the codes of the column's parents.

    codes: int8 (columns, rows). parents: (p,) the columns on which this column depends. shifts: (p, 128) the number
    that a parent's code adds to the position of the row's alias table. keep, other: alias tables of `levels` cells
    each, table after table.

    The random word depends on seed, column and row alone, so that ranges of rows can be drawn in any order. Its upper
    half picks a cell. Its lower half decides between the cell's own level and the cell's other level, without a search
    and without a branch.
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
