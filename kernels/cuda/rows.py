"""Row keys on the device: (words, rows), so that neighbouring threads read neighbouring memory."""

from __future__ import annotations

from numba import cuda, uint64


@cuda.jit
def pack_column(codes, shift, words):
    """Put the codes of a column into the bits from `shift` on of one word of each row's key."""
    for row in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        words[row] |= uint64(codes[row]) << uint64(shift)


@cuda.jit
def mark_heads(keys, order, masks, heads):
    """Set heads[i] to whether the i-th row in order differs from the row before it in any bit of the masks."""
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        differs = i == 0
        if i > 0:
            for word in range(masks.size):
                changed = (keys[word, order[i]] ^ keys[word, order[i - 1]]) & masks[word]
                differs = differs or changed != uint64(0)
        heads[i] = differs


@cuda.jit
def number_rows(order, heads_before, numbers):
    """Set numbers[order[i]] to the group of the row. heads_before[i]: the number of heads up to the i-th row."""
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        numbers[order[i]] = heads_before[i] - 1
