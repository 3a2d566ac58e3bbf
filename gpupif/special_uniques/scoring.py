"""The formulas of SUDA: the score of a row from its minimal sample uniques (MSUs), DIS, and the DIS-SUDA score."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def msu_weights(columns: int, max_size: int) -> list[float]:
    """Return the number that an MSU of 1, 2, ..., max_size columns adds to a score. columns: of the table."""
    last = min(max_size, columns - 1)
    return [float(math.prod(columns - i for i in range(size, last + 1))) for size in range(1, max_size + 1)]


def suda_scores(counts: npt.NDArray[np.uint32], weights: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return the SUDA score of each row. counts: MSUs, array (sizes, rows). weights: see `msu_weights`."""
    scores = np.zeros(counts.shape[1])
    for of_size, weight in zip(counts, weights, strict=True):
        scores += weight * of_size
    return scores


def intrusion(unique: int, paired: int, fraction: float) -> float:
    """Return DIS, the probability that a match with a unique row of a sample is right (Skinner and Elliot 2002).

    unique: rows that occur once. paired: rows in pairs of equal rows. fraction: share of the population in the sample.
    """
    wrong = paired * (1 - fraction)
    return unique * fraction / (unique * fraction + wrong) if unique else 0.0


def estimated_intrusion(unique: int, paired: int, people: float) -> float:
    """Return DIS from sampling weights (Skinner and Carter 2003). people: the sum of the weights of the paired rows."""
    return unique / (unique + max(0.0, people - paired)) if unique else 0.0


def dis_suda(scores: npt.NDArray[np.float64], unique: int, dis: float, columns: int) -> npt.NDArray[np.float64]:
    """Return the DIS-SUDA score of each row, 0 if its score is 0.

    scores: SUDA scores. unique: rows that occur once. dis: see `intrusion`. columns: of the table.
    """
    power = 1 + (8 - columns) / 20
    out = np.zeros(len(scores))
    scored = scores > 0
    raised = scores[scored] ** power
    # The sum is over sorted numbers, so that the order of the rows does not matter.
    adjusted = raised * np.sum(1 / np.sort(raised))
    if dis > 0:
        out[scored] = 1 / (1 + (unique / dis - unique) / adjusted)
    return out
