"""Lines of a CSV file, made of texts of which most occur many times."""

from __future__ import annotations

from gpupif.kernels.jit import kernel
from gpupif.kernels.words import copy_bytes

LINE_FEED = 10


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
