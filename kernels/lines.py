"""Lines of a file of text, put together from texts that come again and again."""

from __future__ import annotations

from gpupif.kernels.jit import kernel
from gpupif.kernels.words import STEP, copy_step

LINE_FEED = 10


@kernel
def put_lines(numbers, starts, texts, separator, out):
    """Fill `out` with the lines texts[numbers[0, i]], texts[numbers[1, i]], ... for each i; how many bytes they take.

    starts: where each text begins, and where the last one ends. separator: the byte between the texts of a line; a line
    feed ends it. Behind all texts there are STEP more bytes, behind all lines as many may be written to.
    """
    at, last = 0, numbers.shape[0] - 1
    for i in range(numbers.shape[1]):
        for k in range(numbers.shape[0]):
            number = numbers[k, i]
            start = starts[number]
            size = starts[number + 1] - start
            copy_step(out, at, texts, start)
            for copied in range(STEP, size, STEP):
                copy_step(out, at + copied, texts, start + copied)
            at += size
            out[at] = separator if k < last else LINE_FEED
            at += 1
    return at
