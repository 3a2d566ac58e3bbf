"""Probabilities of combinations of independent columns, and how many people share one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..errors import InputError

if TYPE_CHECKING:
    Floats = npt.NDArray[np.float64]
    Cells = tuple[Floats, Floats]

# Combinations of different probabilities that are evaluated, and how many at a time.
MOST_CELLS = 50_000_000
BLOCK = 500_000
# Steps of the lattice, in natural logarithms of probabilities, and how many it may have.
STEP = 2.0**-14
MOST_STEPS = 2**25
# By FFT its masses are off by rounding.
ROUNDING = 1e-9


def none_of(people: int, probability: Floats) -> Floats:
    """Probability that none of so many people is in a slot: (1 - p)^people, also for a tiny p and a billion people."""
    if people == 0:
        return np.ones_like(probability)
    with np.errstate(divide="ignore"):
        none: Floats = np.exp(people * np.log1p(-probability))
    return none


def shared(people: int, cells: Cells) -> tuple[float, float, float, float]:
    """Unique people and slots of two, per person, in these slots: by the Poisson approximation, and exactly."""
    mass, probability = cells
    unlikely = mass * np.exp(-people * probability)
    exact = mass * none_of(people - 1, probability)
    pairs = mass * probability * none_of(people - 2, probability) if people > 1 else np.zeros(1)
    return (
        float(np.sum(unlikely)),
        float(np.sum(unlikely * probability)) * people / 2,
        float(np.sum(exact)),
        float(np.sum(pairs)) * (people - 1) / 2,
    )


def exactly(people: int, equal: int, columns: Sequence[Floats]) -> tuple[tuple[float, ...], float]:
    """`shared` in all combinations of columns of these probabilities, each `equal` slots; and how far off: 0."""
    several = sorted((_group(column) for column in columns), key=lambda cells: -len(cells[0]))
    number = math.prod(len(mass) for mass, _ in several)
    if number > MOST_CELLS:
        raise InputError(
            f"categories: expected at most {MOST_CELLS:,} combinations of different probabilities for method='exact', "
            f"got {number:,}. Use method='lattice', or give a column whose categories are about equally likely their "
            "number."
        )
    inner: Cells = (np.ones(1), np.array([1 / equal]))
    outer: Cells = (np.ones(1), np.ones(1))
    for cells in several:
        if len(inner[0]) * len(cells[0]) <= BLOCK or len(inner[0]) == 1:
            inner = _combine(inner, cells)
        else:
            outer = _combine(outer, cells)
    parts = [
        [mass * share for share in shared(people, (masses, probability * probabilities))]
        for mass, probability in zip(*outer, strict=True)
        for masses, probabilities in _blocks(inner)
    ]
    return tuple(math.fsum(values) for values in zip(*parts, strict=True)), 0.0


def on_lattice(people: int, equal: int, columns: Sequence[Floats]) -> tuple[tuple[float, ...], float]:
    """`exactly`, with logarithms of probabilities rounded to steps, and how far off it may be.

    A logarithm between two steps is put on both, such that their mean is it. What `shared` adds up then errs, per
    column, by at most the error of linear interpolation: an eighth of a step squared times the second derivative by the
    logarithm, which is at most 3 for (1 - p)^(z-1) and (z-1)/2 p (1 - p)^(z-2) alike, whatever z.
    """
    spread = []
    for column in columns:
        place = -np.log(column) / STEP
        low = np.floor(place).astype(np.int64)
        above = column * (place - low)
        length = int(low.max()) + 2
        spread.append(np.bincount(low, column - above, length) + np.bincount(low + 1, above, length))
    steps = sum(len(one) - 1 for one in spread) + 1
    if steps > MOST_STEPS:
        raise InputError(
            "categories: expected probabilities of combinations above "
            f"exp(-{MOST_STEPS * STEP:.0f}) for method='lattice', got some that are lower. Merge rare categories."
        )
    size = 1 << (steps - 1).bit_length()
    product = np.ones(size // 2 + 1, np.complex128)
    for one in spread:
        product *= np.fft.rfft(one, size)
    mass: Floats = np.maximum(np.fft.irfft(product, size)[:steps], 0.0)
    probability: Floats = np.exp(-STEP * np.arange(steps)) / equal
    return shared(people, (mass, probability)), len(columns) * 3 / 8 * STEP**2 + ROUNDING


def _group(column: Floats) -> Cells:
    probability, times = np.unique(column, return_counts=True)
    return probability * times, probability


def _combine(first: Cells, second: Cells) -> Cells:
    mass, probability = (np.multiply.outer(a, b).ravel() for a, b in zip(first, second, strict=True))
    return mass, probability


def _blocks(cells: Cells) -> Iterator[Cells]:
    for start in range(0, len(cells[0]), BLOCK):
        yield cells[0][start : start + BLOCK], cells[1][start : start + BLOCK]
