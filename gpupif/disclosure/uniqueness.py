"""Uniqueness before there is data: how many people are alone in their demographic slot, from numbers of categories."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..attack.priors import SUM_TOLERANCE
from ..errors import InputError
from ..utils.display import Record
from ..utils.validation import brief, check_word, is_number, is_whole, whole_number, within

if TYPE_CHECKING:
    Floats = npt.NDArray[np.float64]
    Cells = tuple[Floats, Floats]

# Their probabilities are numbers above 0.
MOST_SLOTS = 10**300


@dataclass(frozen=True)
class Uniqueness(Record):
    """Expected uniqueness of z people spread at random over d demographic slots; made by `uniqueness`.

    population: z. slots: d, those of probability above 0. unique: share of the people who are alone in their slot, in
    [0, 1]. pairs: slots with exactly two people, per person, in [0, 1/2]; in_pairs: share of the people in such slots,
    twice that. These by the Poisson approximation; unique_exact, pairs_exact and in_pairs_exact by the binomial
    distribution. method: "exact" or "lattice"; accuracy: how far from the sums over all slots each may be, at most, 0
    where only by rounding.
    """

    population: int
    slots: int
    unique: float
    pairs: float
    in_pairs: float
    unique_exact: float
    pairs_exact: float
    in_pairs_exact: float
    method: str
    accuracy: float


def uniqueness(
    population: int,
    categories: int | Sequence[int | Sequence[float] | Mapping[Any, float]],
    *,
    method: str = "exact",
) -> Uniqueness:
    """Expected share of people who are unique by some columns, before there is data.

    Parameters
    ----------
    population:
        People z who could be confused with each other, such as the inhabitants of a zip code.
    categories:
        Demographic slots d, all equally likely; or a list with, for each column, its number of equally likely
        categories, or the probabilities of its categories: a list, or a mapping of value to probability. Columns are
        taken to be independent. Probabilities whose sum is within 1e-6 of 1 are made to sum to 1.
    method:
        "exact": each combination of different probabilities is evaluated. "lattice": for columns with too many of
        these; logarithms of probabilities are put on a grid, each between its two neighbours so that the mean stays;
        at most ``accuracy`` off the true value.

    Returns
    -------
    Uniqueness
        With p the probabilities of the d slots: unique is sum p exp(-z p), exact sum p (1 - p)^(z-1); pairs is z/2 sum
        p^2 exp(-z p), exact (z-1)/2 sum p^2 (1 - p)^(z-2). Where all slots are equally likely, with r = z/d: unique is
        exp(-r) and pairs r exp(-r) / 2. No unit; stable for any z and d.

    Raises
    ------
    InputError
        A population or a number of categories below 1, probabilities outside [0, 1] or with another sum than 1, no
        column, more combinations of probabilities than "exact" evaluates.

    Notes
    -----
    Cook writes that r exp(-r) / 2 is the number of slots with two people, which it is per person: in his example 7 % of
    the number of people. As each slot holds two, 14 % of the people are narrowed down to two: `in_pairs`.

    References
    ----------
    John D. Cook, "Simulating identification by zip code, sex, and birthdate" and "Can I have the last four digits of
    your social?". Sweeney 2000, Simple demographics often identify people uniquely.

    Examples
    --------
    A zip code of 9,330 people, known by sex and date of birth within 78 years:

    >>> found = uniqueness(9_330, 2 * 365 * 78)
    >>> round(found.unique, 3), round(found.pairs, 3), round(found.in_pairs, 3)
    (0.849, 0.07, 0.139)
    >>> uniqueness(9_330, [2, 365, 78]) == found
    True

    With two sexes of which one is rarer, and ages that are not equally likely:

    >>> found = uniqueness(100, [{"f": 0.7, "m": 0.3}, 12, [0.5, 0.25, 0.25]])
    >>> found.slots, round(found.unique_exact, 3)
    (72, 0.224)

    """
    people = whole_number("population", population, "people")
    check_word("method", method, ("exact", "lattice"))
    equal, columns = _columns(categories)
    slots = equal * math.prod(len(column) for column in columns)
    values, accuracy = (exactly if method == "exact" else on_lattice)(people, equal, columns)
    unique, pairs, unique_exact, pairs_exact = values
    return Uniqueness(
        population=people,
        slots=slots,
        unique=unique,
        pairs=pairs,
        in_pairs=2 * pairs,
        unique_exact=unique_exact,
        pairs_exact=pairs_exact,
        in_pairs_exact=2 * pairs_exact,
        method=method,
        accuracy=accuracy,
    )


def _columns(categories: Any) -> tuple[int, list[npt.NDArray[np.float64]]]:
    """The number of equally likely combinations, and the probabilities above 0 of each column that has others."""
    if is_whole(categories):
        return whole_number("categories", categories, "categories", most=MOST_SLOTS), []
    if isinstance(categories, str | bytes | Mapping) or not isinstance(categories, Iterable):
        mend = " Write [categories] for a single column." if isinstance(categories, Mapping) else ""
        raise InputError(
            "categories: expected a number of categories, or a list with the number of categories or the probabilities "
            f"of each column; got {brief(categories)}.{mend}"
        )
    given = list(categories)
    if not given:
        raise InputError("categories: expected at least one column, got an empty list.")
    if all(isinstance(one, float | np.floating) and 0 <= one < 1 for one in given):
        raise InputError("categories: expected a list with an entry for each column, got probabilities. Write [[...]].")
    equal, columns = 1, []
    for place, column in enumerate(given):
        name = f"categories[{place}]"
        if isinstance(column, str | bytes) or not isinstance(column, Iterable):
            equal *= whole_number(name, column, "categories", most=MOST_SLOTS)
        else:
            columns.append(_probabilities(name, column))
    if equal * math.prod(map(len, columns)) > MOST_SLOTS:
        raise InputError(f"categories: expected at most {MOST_SLOTS:.0e} slots of all columns together; got more.")
    return equal, columns


def _probabilities(name: str, column: Any) -> npt.NDArray[np.float64]:
    values = list(column.values()) if isinstance(column, Mapping) else list(column)
    for value in values:
        if not within(value, 0, 1 + SUM_TOLERANCE):
            raise InputError(
                f"{name}: expected probabilities between 0 and 1, got {brief(value)}."
                + (" Divide counts by their sum." if is_number(value) and value > 1 else "")
            )
    total = math.fsum(values)
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(
            f"{name}: expected probabilities that sum to 1, they sum to {total:.9g}. Divide each by the sum."
        )
    return np.array([value / total for value in values if value > 0])


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
