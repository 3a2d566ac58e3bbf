"""Scores of special uniques from their minimal sample uniques (MSUs)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..errors import InputError


def check_size(columns: int, max_size: int) -> None:
    """Raise InputError for sets of more columns than there are."""
    if max_size > columns:
        raise InputError(
            f"max_size: expected at most {columns}, the number of columns, got {max_size}. Give max_size={columns}."
        )


def msu_weights(columns: int, max_size: int) -> list[float]:
    """What an MSU of 1, 2, ..., max_size of so many columns adds to a score."""
    last = min(max_size, columns - 1)
    return [float(math.prod(columns - i for i in range(size, last + 1))) for size in range(1, max_size + 1)]


def intrusion(unique: int, paired: int, fraction: float) -> float:
    """DIS: the probability that a match with a unique row of a sample is right (Skinner and Elliot 2002)."""
    wrong = paired * (1 - fraction)
    return unique * fraction / (unique * fraction + wrong) if unique else 0.0


def estimated_intrusion(unique: int, paired: int, people: float) -> float:
    """DIS where rows have sampling weights, those in pairs `people` together (Skinner and Carter 2003)."""
    return unique / (unique + max(0.0, people - paired)) if unique else 0.0


def dis_suda(scores: npt.NDArray[np.float64], unique: int, dis: float, columns: int) -> npt.NDArray[np.float64]:
    """DIS-SUDA of scores of rows of a table with so many columns and unique rows; 0 where the score is 0."""
    power = 1 + (8 - columns) / 20
    out = np.zeros(len(scores))
    scored = scores > 0
    raised = scores[scored] ** power
    # Sorted, so that the order of the rows does not matter.
    adjusted = raised * np.sum(1 / np.sort(raised))
    if dis > 0:
        out[scored] = 1 / (1 + (unique / dis - unique) / adjusted)
    return out
