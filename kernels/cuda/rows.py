"""Row keys on the device: (words, rows), so that threads side by side read memory side by side."""

from __future__ import annotations

from numba import cuda, uint64


@cuda.jit
def pack_column(codes, shift, words):
    """Put codes into the bits from `shift` on of one word of each row's key."""
    for row in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        words[row] |= uint64(codes[row]) << uint64(shift)


@cuda.jit
def mark_heads(keys, order, masks, heads):
    """heads[i] = 1 where the i-th row in order differs from the one before in any word seen through its mask."""
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        differs = i == 0
        if i > 0:
            for word in range(masks.size):
                changed = (keys[word, order[i]] ^ keys[word, order[i - 1]]) & masks[word]
                differs = differs or changed != uint64(0)
        heads[i] = differs


@cuda.jit
def number_rows(order, heads_before, numbers):
    """numbers[order[i]] = heads_before[i] - 1: the group of each row, heads_before counting heads up to i."""
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        numbers[order[i]] = heads_before[i] - 1
