"""Values drawn in the place of others by random numbers."""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.jit import kernel, subroutine

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
