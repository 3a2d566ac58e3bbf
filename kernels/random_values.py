"""Random values, made from random 64-bit numbers, equal on every processor.

They are variates of continuous distributions, values drawn in the place of others, and columns of a synthetic
population. A variate is the inverse of a distribution function. The code uses additions, multiplications, divisions and
square roots, which every processor rounds alike, and the logarithm of `logarithms.py`.
"""

from __future__ import annotations

import math

from numba import float64, int64, uint64

from gpupif.kernels.hashing import mix, mix_word
from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.logarithms import log2
from gpupif.kernels.whole_sums import power_of_two

NORMAL, LAPLACE, UNIFORM = range(3)
LN2 = math.log(2.0)
# Rational functions for the normal distribution: Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988).
# TOP is a numerator, BOTTOM its denominator, the constant term first.
MIDDLE_TOP = (
    3.3871328727963666080e0,
    1.3314166789178437745e2,
    1.9715909503065514427e3,
    1.3731693765509461125e4,
    4.5921953931549871457e4,
    6.7265770927008700853e4,
    3.3430575583588128105e4,
    2.5090809287301226727e3,
)
MIDDLE_BOTTOM = (
    1.0,
    4.2313330701600911252e1,
    6.8718700749205790830e2,
    5.3941960214247511077e3,
    2.1213794301586595867e4,
    3.9307895800092710610e4,
    2.8729085735721942674e4,
    5.2264952788528545610e3,
)
OUTER_TOP = (
    1.42343711074968357734e0,
    4.63033784615654529590e0,
    5.76949722146069140550e0,
    3.64784832476320460504e0,
    1.27045825245236838258e0,
    2.41780725177450611770e-1,
    2.27238449892691845833e-2,
    7.74545014278341407640e-4,
)
OUTER_BOTTOM = (
    1.0,
    2.05319162663775882187e0,
    1.67638483018380384940e0,
    6.89767334985100004550e-1,
    1.48103976427480074590e-1,
    1.51986665636164571966e-2,
    5.47593808499534494600e-4,
    1.05075007164441684324e-9,
)
FAR_TOP = (
    6.65790464350110377720e0,
    5.46378491116411436990e0,
    1.78482653991729133580e0,
    2.96560571828504891230e-1,
    2.65321895265761230930e-2,
    1.24266094738807843860e-3,
    2.71155556874348757815e-5,
    2.01033439929228813265e-7,
)
FAR_BOTTOM = (
    1.0,
    5.99832206555887937690e-1,
    1.36929880922735805310e-1,
    1.48753612908506148525e-2,
    7.86869131145613259100e-4,
    1.84631831751005468180e-5,
    1.42151175831644588870e-7,
    2.04426310338993978564e-15,
)
MIDDLE = 0.425


@subroutine
def rational(x, top, bottom):
    """Return the quotient of two polynomials of degree 7."""
    above, below = top[7], bottom[7]
    for k in range(6, -1, -1):
        above = above * x + top[k]
        below = below * x + bottom[k]
    return above / below


@subroutine
def middle_of(number, bits):
    """Return the middle of one of 2^bits equal parts of [0, 1]; the upper bits of `number` choose the part."""
    return float64((number >> uint64(64 - bits)) * uint64(2) + uint64(1)) * power_of_two(-bits - 1)


@subroutine
def normal(number):
    """Return a normal variate with mean 0 and standard deviation 1, one of 2^52 equally likely ones."""
    p = middle_of(number, 52)
    q = p - 0.5
    if abs(q) <= MIDDLE:
        return q * rational(MIDDLE * MIDDLE - q * q, MIDDLE_TOP, MIDDLE_BOTTOM)
    # 1 - p is exact, as all p are multiples of one unit.
    r = math.sqrt(-log2(p if q < 0.0 else 1.0 - p) * LN2)
    found = rational(r - 1.6, OUTER_TOP, OUTER_BOTTOM) if r <= 5.0 else rational(r - 5.0, FAR_TOP, FAR_BOTTOM)
    return -found if q < 0.0 else found


@subroutine
def laplace(number):
    """Return a Laplace variate with mean 0 and scale 1, density exp(-|x|) / 2.

    The highest bit of `number` is the sign; the next bits choose one of 2^52 equally likely sizes.
    """
    found = -log2(middle_of(number << uint64(1), 52)) * LN2
    return -found if number >> uint64(63) else found


@subroutine
def uniform(number):
    """Return a uniform variate between -1 and 1, one of 2^52 equally likely ones."""
    return middle_of(number, 52) * 2.0 - 1.0


@kernel
def draw_variates(distribution, numbers, out):
    """Set out[i] to the variate of a distribution, `NORMAL`, `LAPLACE` or `UNIFORM`, for numbers[i]."""
    for i in range(out.size):
        number = uint64(numbers[i])
        if distribution == NORMAL:
            out[i] = normal(number)
        elif distribution == LAPLACE:
            out[i] = laplace(number)
        else:
            out[i] = uniform(number)


# Value of an entry that stands for the state that is there already.
ITSELF = -1


@subroutine
def drawn_entry(number, begin, entries, firsts):
    """Return the last entry whose first number is not above `number`, among `entries` entries from `begin` on."""
    entry = begin
    while entries > 1:
        half = entries >> 1
        # No branch: which way it goes is random.
        entry += half if firsts[entry + half] <= number else int64(0)
        entries -= half
    return entry


@kernel
def draw_values(numbers, codes, states, transitions, out):
    """Set out[i] to the value that is drawn in the place of codes[i] by the random number numbers[i].

    states: by code the state that is drawn for. transitions: (begins, ends, firsts, values). A state is replaced by the
    value of one of its entries begins[.] to ends[.] - 1: the last whose first number is not above that drawn; the first
    of them begins at 0. A value may be `ITSELF`.
    """
    begins, ends, firsts, values = transitions
    for i in range(out.size):
        here = uint64(states[uint64(codes[i])])
        begin = begins[here]
        value = values[drawn_entry(numbers[i], begin, ends[here] - begin, firsts)]
        out[i] = here if value == ITSELF else value


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


@kernel
def swap_ranks(numbers, reach, tree, partners):
    """Swap each rank, from the lowest on, with one of the `reach` next ranks that are not swapped yet.

    numbers: uint64 (ranks,), a random number for each rank. tree: int64 (ranks + 1,), overwritten. partners: int64
    (ranks,). partners[rank] gets the rank with which it is swapped; its own rank if no rank is left within reach.

    The ranks that are not swapped yet are counted by a Fenwick tree.
    """
    ranks = len(numbers)
    top = int64(1)
    while 2 * top <= ranks:
        top *= 2
    for node in range(1, ranks + 1):
        tree[node] = node & -node
    for rank in range(ranks):
        partners[rank] = -1
    for rank in range(ranks):
        if partners[rank] >= 0:
            continue
        # All ranks below this one are swapped: it is the first of those that are left.
        left = int64(0)
        node = min(rank + reach + 1, ranks)
        while node > 0:
            left += tree[node]
            node -= node & -node
        other = rank
        if left > 1:
            # The whole number from 2 to `left` that the upper half of the random number picks.
            wanted = 2 + int64(((numbers[rank] >> uint64(32)) * uint64(left - 1)) >> uint64(32))
            node, step = int64(0), top
            while step > 0:
                if node + step <= ranks and tree[node + step] < wanted:
                    node += step
                    wanted -= tree[node]
                step //= 2
            other = node
        partners[rank] = other
        partners[other] = rank
        for number in range(1 if other == rank else 2):
            node = (other if number else rank) + 1
            while node <= ranks:
                tree[node] -= 1
                node += node & -node
