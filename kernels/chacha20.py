"""Random numbers of ChaCha20 (RFC 8439), several blocks at a time, and values drawn by them.

The number of row r is the r-th of 64 bits in the key stream, low byte first: words 2 (r mod 8) and the one behind of
block r / 8. Blocks are counted in 64 bits: the lower half is the counter of the RFC, the upper one goes into the first
word of the nonce by exclusive or.
"""

from __future__ import annotations

from numba import int64, uint32, uint64

from gpupif.kernels.jit import kernel, subroutine

# "expand 32-byte k".
CONSTANTS = (uint32(0x61707865), uint32(0x3320646E), uint32(0x79622D32), uint32(0x6B206574))
# Blocks that are made at once, side by side: words of one place in all of them lie together, so that the processor
# works on as many as its registers hold.
LANES = 64
# Numbers of a block, and of as many as are made at once.
NUMBERS = 8
TOGETHER = LANES * NUMBERS
# Words of memory to work in.
SCRATCH = 16 * LANES
DOUBLE_ROUNDS = 10
HALF = uint64(32)
LOW_HALF = uint64(0xFFFFFFFF)
# Value of an entry that stands for the state that is there already.
ITSELF = -1


@subroutine
def turn(word, bits):
    """The bits of a word moved to the left, those that leave it coming back at the right."""
    word = uint32(word)
    return uint32(uint32(word << uint32(bits)) | (word >> uint32(32 - bits)))


@subroutine
def quarter_round(a, b, c, d):
    """Of RFC 8439, section 2.1."""
    a = uint32(a + b)
    d = turn(d ^ a, 16)
    c = uint32(c + d)
    b = turn(b ^ c, 12)
    a = uint32(a + b)
    d = turn(d ^ a, 8)
    c = uint32(c + d)
    b = turn(b ^ c, 7)
    return a, b, c, d


@subroutine
def initial_word(place, cipher, block):
    """A word of the state that a block begins with. cipher: eight words of the key, then three of the nonce."""
    if place < 4:
        return CONSTANTS[place]
    if place < 12:
        return cipher[place - 4]
    if place == 12:
        return uint32(block & LOW_HALF)
    if place == 13:
        return uint32(cipher[8] ^ uint32(block >> HALF))
    return cipher[place - 5]


@subroutine
def make_blocks(cipher, block, state):
    """The key stream of `LANES` blocks: word w of the block at place i goes to state[w * LANES + i].

    block: the first, a multiple of `LANES`: so they differ in the word that counts them alone.
    """
    for place in range(16):
        word, step = initial_word(place, cipher, block), uint32(place == 12)
        for lane in range(LANES):
            state[place * LANES + lane] = uint32(word + uint32(lane) * step)
    for _ in range(DOUBLE_ROUNDS):
        for lane in range(LANES):
            x0, x1, x2, x3 = state[lane], state[LANES + lane], state[2 * LANES + lane], state[3 * LANES + lane]
            x4, x5, x6 = state[4 * LANES + lane], state[5 * LANES + lane], state[6 * LANES + lane]
            x7, x8, x9 = state[7 * LANES + lane], state[8 * LANES + lane], state[9 * LANES + lane]
            x10, x11, x12 = state[10 * LANES + lane], state[11 * LANES + lane], state[12 * LANES + lane]
            x13, x14, x15 = state[13 * LANES + lane], state[14 * LANES + lane], state[15 * LANES + lane]
            x0, x4, x8, x12 = quarter_round(x0, x4, x8, x12)
            x1, x5, x9, x13 = quarter_round(x1, x5, x9, x13)
            x2, x6, x10, x14 = quarter_round(x2, x6, x10, x14)
            x3, x7, x11, x15 = quarter_round(x3, x7, x11, x15)
            x0, x5, x10, x15 = quarter_round(x0, x5, x10, x15)
            x1, x6, x11, x12 = quarter_round(x1, x6, x11, x12)
            x2, x7, x8, x13 = quarter_round(x2, x7, x8, x13)
            x3, x4, x9, x14 = quarter_round(x3, x4, x9, x14)
            state[lane], state[LANES + lane], state[2 * LANES + lane], state[3 * LANES + lane] = x0, x1, x2, x3
            state[4 * LANES + lane], state[5 * LANES + lane], state[6 * LANES + lane] = x4, x5, x6
            state[7 * LANES + lane], state[8 * LANES + lane], state[9 * LANES + lane] = x7, x8, x9
            state[10 * LANES + lane], state[11 * LANES + lane], state[12 * LANES + lane] = x10, x11, x12
            state[13 * LANES + lane], state[14 * LANES + lane], state[15 * LANES + lane] = x13, x14, x15
    for place in range(16):
        word, step = initial_word(place, cipher, block), uint32(place == 12)
        for lane in range(LANES):
            state[place * LANES + lane] += uint32(word + uint32(lane) * step)


@subroutine
def number_at(state, place):
    """A number of blocks that were made together."""
    place = uint64(place)
    low = (place & uint64(7)) * uint64(2 * LANES) + (place >> uint64(3))
    return uint64(state[low]) | (uint64(state[low + uint64(LANES)]) << HALF)


@kernel
def draw_numbers(cipher, start, state, out):
    """out[i] = the number of row start + i. cipher: see `initial_word`; state: `SCRATCH` words to work in."""
    done = int64(0)
    while done < out.size:
        row = start + done
        skipped = row % TOGETHER
        make_blocks(cipher, uint64(row - skipped) // uint64(NUMBERS), state)
        some = min(TOGETHER - skipped, out.size - done)
        for i in range(some):
            out[done + i] = number_at(state, skipped + i)
        done += some


@subroutine
def drawn_entry(number, begin, entries, firsts):
    """The last of so many entries, the first of which is at `begin`, whose first number is not above this one."""
    entry = begin
    while entries > 1:
        half = entries >> 1
        # No branch: which way it goes is random.
        entry += half if firsts[entry + half] <= number else int64(0)
        entries -= half
    return entry


@kernel
def draw_values(cipher, start, codes, states, transitions, state, out):
    """out[i] = what is drawn in the place of codes[i], by the number of row start + i.

    states: by code the state that is drawn for. transitions: (begins, ends, firsts, values). A state is replaced by the
    value of one of its entries begins[.] to ends[.] - 1: the last whose first number is not above that drawn; the first
    of them begins at 0. A value may be `ITSELF`.
    """
    begins, ends, firsts, values = transitions
    done = int64(0)
    while done < out.size:
        row = start + done
        skipped = row % TOGETHER
        make_blocks(cipher, uint64(row - skipped) // uint64(NUMBERS), state)
        some = min(TOGETHER - skipped, out.size - done)
        for i in range(some):
            here = uint64(states[uint64(codes[done + i])])
            begin = begins[here]
            value = values[drawn_entry(number_at(state, skipped + i), begin, ends[here] - begin, firsts)]
            out[done + i] = here if value == ITSELF else value
        done += some
