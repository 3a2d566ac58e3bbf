"""Lines of CSV: read to the distinct texts of each column with the number of each field, and written from texts.

Most texts occur many times.
"""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.hashing import spread_word
from gpupif.kernels.intrinsics import copy_bytes, load_word, trailing_zeros
from gpupif.kernels.jit import kernel, subroutine

LINE_FEED, CARRIAGE_RETURN, QUOTE = 10, 13, 34
ONES, HIGH_BITS = 0x0101010101010101, 0x8080808080808080
# `encode_fields` returns it for lines that it cannot read.
ODD = -1


@subroutine
def byte_found(word, wanted):
    """Return a word in which the highest bit marks the first byte that equals the bytes of `wanted`.

    Bytes after the first may be marked wrongly.
    """
    different = word ^ wanted
    return (different - uint64(ONES)) & ~different & uint64(HIGH_BITS)


@subroutine
def mixed(mix, word):
    """Return the hash of a word and of the words before it, whose hash is `mix`."""
    mix = spread_word(mix ^ word)
    return mix ^ (mix >> uint64(32))


@subroutine
def first_bytes(word, size):
    """Return the first `size` bytes of a word, fewer than eight."""
    return word & ((uint64(1) << uint64(8 * size)) - uint64(1))


@subroutine
def hash_text(texts, start, size):
    """Return the hash of a text: of its words of eight bytes, and of the bytes that are left as one more word."""
    mix = uint64(0)
    for k in range(0, size - 7, 8):
        mix = mixed(mix, load_word(texts, start + k))
    left = size & 7
    return mixed(mix, first_bytes(load_word(texts, start + size - left), left))


@subroutine
def same_text(texts, one, other, size):
    """Return whether the `size` bytes from `one` on equal those from `other` on."""
    for k in range(0, size - 7, 8):
        if load_word(texts, one + k) != load_word(texts, other + k):
            return False
    left = size & 7
    end = size - left
    return first_bytes(load_word(texts, one + end) ^ load_word(texts, other + end), left) == uint64(0)


@subroutine
def copy_quoted(texts, free, data, at, stop):
    """Copy a quoted text that begins at `at`, two quotes as one.

    Return the place of the quote that ends it, `stop` if there is none before, and the number of bytes copied.
    """
    size = 0
    while at < stop:
        if data[at] == QUOTE:
            if data[at + 1] != QUOTE:
                break
            at += 1
        texts[free + size] = data[at]
        size += 1
        at += 1
    return at, size


@kernel
def encode_fields(data, stop, separator, wanted, shift, slots, codes, counts, distinct, starts, texts):
    """Encode the lines data[:stop], the last of which ends in a line feed; empty lines are skipped.

    wanted: for each field of a line its column k, -1 for a field that is not read.
    codes: (columns, lines). codes[k, i] gets the number of line i's text among the distinct texts of column k, in order
        of first appearance; -1 for an empty field.
    counts: (2, columns). counts[0, k] gets the number of distinct texts, counts[1, k] the number of empty fields.
    distinct, starts, texts: text j of column k is texts[starts[t] : starts[t + 1]] with t = distinct[k, j].
    slots: (columns, 2^(64 - shift)) zeros, more for each column than it can have distinct texts.
    `data` and `texts` end with STEP spare bytes.

    Return the number of bytes that were read, and the number of lines. Reading stops early when a column has as many
    distinct texts as `distinct` holds. The number of bytes is `ODD` for a line with more or fewer fields than wanted,
    for a quote that does not end, and for a quote that does not end at the end of its field. A carriage return before a
    line feed belongs to the end of the line.
    """
    separators, feeds = uint64(separator) * uint64(ONES), uint64(LINE_FEED) * uint64(ONES)
    quotes, last, most = uint64(QUOTE) * uint64(ONES), slots.shape[1] - 1, distinct.shape[1]
    at, line, made, free, room = 0, 0, 0, 0, True
    starts[0] = 0
    while at < stop and room:
        if data[at] == CARRIAGE_RETURN:
            at += 1
        if data[at] == LINE_FEED:
            at += 1
            continue
        for field in range(wanted.size):
            # Find the end of the field, and the hash of the field.
            quoted = data[at] == QUOTE
            at += quoted
            start, mix, word, ends = at, uint64(0), uint64(0), uint64(0)
            while at < stop:
                word = load_word(data, at)
                ends = byte_found(word, quotes) if quoted else byte_found(word, separators) | byte_found(word, feeds)
                if ends:
                    break
                mix = mixed(mix, word)
                at += 8
            left = int64(trailing_zeros(ends) >> uint64(3))
            at += left
            if at >= stop:
                return ODD, line
            if quoted and data[at + 1] == QUOTE:
                at, size = copy_quoted(texts, free, data, start, stop)
                if at >= stop:
                    return ODD, line
                mix = hash_text(texts, free, size)
            else:
                size = at - start
                copy_bytes(texts, free, data, start, size)
                mix = mixed(mix, first_bytes(word, left))
                if size and not quoted and data[at - 1] == CARRIAGE_RETURN:
                    size -= 1
                    mix = hash_text(texts, free, size)
            if quoted:
                at += 1
                if data[at] == CARRIAGE_RETURN:
                    at += 1
            if data[at] != (separator if field < wanted.size - 1 else LINE_FEED):
                return ODD, line
            at += 1
            k = wanted[field]
            if k < 0:
                continue
            if size == 0:
                codes[k, line] = -1
                counts[1, k] += 1
                continue
            # Find the number of the text in its slot or in one of the next slots; else it is a new text.
            slot = int64(mix >> uint64(shift))
            while True:
                number = int64(slots[k, slot]) - 1
                if number < 0:
                    number = counts[0, k]
                    counts[0, k] += 1
                    room = room and counts[0, k] < most
                    slots[k, slot] = number + 1
                    distinct[k, number] = made
                    free += size
                    made += 1
                    starts[made] = free
                    break
                text = distinct[k, number]
                if starts[text + 1] - starts[text] == size and same_text(texts, starts[text], free, size):
                    break
                slot = (slot + 1) & last
            codes[k, line] = number
        line += 1
    return at, line


@kernel
def put_lines(numbers, starts, texts, own_starts, own_texts, separator, out):
    """Fill `out` with lines and return how many bytes they take.

    numbers: (columns, lines). Line i is made of the texts numbers[0, i], numbers[1, i] and so on.
    starts, texts: text t is texts[starts[t] : starts[t + 1]].
    own_starts, own_texts: more texts in the same form; they are numbered after the last of `texts`.
    separator: the byte between the texts of a line.
    `texts`, `own_texts` and `out` end with STEP spare bytes, which may be read and written.
    """
    at, last, first_own = 0, numbers.shape[0] - 1, starts.size - 1
    for i in range(numbers.shape[1]):
        for k in range(numbers.shape[0]):
            number = numbers[k, i]
            if number < first_own:
                start = starts[number]
                size = starts[number + 1] - start
                copy_bytes(out, at, texts, start, size)
            else:
                start = own_starts[number - first_own]
                size = own_starts[number - first_own + 1] - start
                copy_bytes(out, at, own_texts, start, size)
            at += size
            out[at] = separator if k < last else LINE_FEED
            at += 1
    return at
