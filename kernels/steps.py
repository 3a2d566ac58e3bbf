"""Counts of scores in steps of equal width, by band of rows."""

from __future__ import annotations

import math

from gpupif.kernels.jit import kernel


@kernel
def count_steps(scores, bands, per_unit, counts, highest):
    """Add to counts[b, k] the rows i of band b = bands[i] whose score rounds to k steps, and raise highest[b].

    A unit (a bit) has `per_unit` steps. Half steps are rounded up, and scores below 0 to 0. The last column of `counts`
    is for scores beyond all others, infinity among them. NaN, and rows whose band is below 0, do not count.
    """
    last = counts.shape[1] - 1
    for i in range(scores.size):
        score = scores[i]
        if score != score or bands[i] < 0:
            continue
        if score > highest[bands[i]]:
            highest[bands[i]] = score
        step = math.floor(min(score * per_unit + 0.5, last))
        counts[bands[i], max(step, 0)] += 1
