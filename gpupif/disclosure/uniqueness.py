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

# The most slots: at equal probabilities, each probability is still a float above 0.
MOST_SLOTS = 10**300


@dataclass(frozen=True)
class Uniqueness(Record):
    """The expected uniqueness of people spread at random over demographic slots; made by `uniqueness`.

    population: int. The people z.
    slots: int. The slots d with a probability above 0.
    unique: float, in [0, 1]. Share of the people who are alone in their slot, by the Poisson approximation.
    pairs: float, in [0, 1/2]. Slots with exactly two people, per person, by the Poisson approximation.
    in_pairs: float, in [0, 1]. Share of the people in slots with exactly two people: 2 * pairs.
    unique_exact: float. unique by the binomial distribution.
    pairs_exact: float. pairs by the binomial distribution.
    in_pairs_exact: float. in_pairs by the binomial distribution.
    method: str. "exact" or "lattice".
    accuracy: float. The most by which a sum over all slots may be wrong. 0 if only rounding is wrong.
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
    """Return the expected share of people who are unique by some columns, before there is data.

    Parameters
    ----------
    population:
        The number of people z who could be confused with each other, such as the inhabitants of a zip code.
    categories:
        The number of demographic slots d, all equally likely. Or a list with an entry for each column: its number of
        equally likely categories, or the probabilities of its categories (a list, or a mapping of value to
        probability). Columns are taken as independent. Probabilities whose sum is within 1e-6 of 1 are scaled to sum to
        1.
    method:
        "exact" (default): each combination of different probabilities is evaluated. "lattice": for columns with too
        many such combinations. It rounds logarithms of probabilities to a grid, so that their mean stays, and is wrong
        by at most ``accuracy``.

    Returns
    -------
    Uniqueness
        With p the probabilities of the d slots: unique is sum p exp(-z p), exact sum p (1 - p)^(z-1); pairs is z/2 sum
        p^2 exp(-z p), exact (z-1)/2 sum p^2 (1 - p)^(z-2). If all slots are equally likely, with r = z/d: unique is
        exp(-r) and pairs r exp(-r) / 2. No unit; stable for any z and d.

    Raises
    ------
    InputError
        A population or a number of categories below 1, probabilities outside [0, 1] or with another sum than 1, no
        column, more combinations of probabilities than "exact" evaluates.

    Notes
    -----
    Cook writes that r exp(-r) / 2 is the number of slots with two people. It is this number per person: in his example
    7 %. As each such slot holds two people, 14 % of the people are narrowed down to two: `in_pairs`.

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

    Two sexes, one of them rarer, and ages that are not equally likely:

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
    """Return the number of equally likely combinations, and the probabilities above 0 of each column that has them.

    Raises InputError.
    """
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
    if all(isinstance(column, float | np.floating) and 0 <= column < 1 for column in given):
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
    """Return the probabilities above 0 of a column, scaled to sum to 1. Raises InputError."""
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


# The most combinations of different probabilities that are evaluated, and how many at once.
MOST_CELLS = 50_000_000
BLOCK = 500_000
# The step of the lattice, in natural logarithms of probabilities, and the most steps.
STEP = 2.0**-14
MOST_STEPS = 2**25
# The highest error of a sum over the lattice that is due to rounding in the FFT.
ROUNDING = 1e-9


def _empty_probability(people: int, probability: Floats) -> Floats:
    """Return the probability (1 - p)^people that nobody is in a slot, also for a tiny p and a billion people."""
    if people == 0:
        return np.ones_like(probability)
    with np.errstate(divide="ignore"):
        empty: Floats = np.exp(people * np.log1p(-probability))
    return empty


def shared(people: int, cells: Cells) -> tuple[float, float, float, float]:
    """Return unique people and slots of two people, per person, by the Poisson approximation and exactly.

    cells: mass and probability of slots, equal ones together: mass is the sum of their probabilities.
    """
    mass, probability = cells
    poisson = mass * np.exp(-people * probability)
    exact = mass * _empty_probability(people - 1, probability)
    pairs = mass * probability * _empty_probability(people - 2, probability) if people > 1 else np.zeros(1)
    return (
        float(np.sum(poisson)),
        float(np.sum(poisson * probability)) * people / 2,
        float(np.sum(exact)),
        float(np.sum(pairs)) * (people - 1) / 2,
    )


def exactly(people: int, equal: int, columns: Sequence[Floats]) -> tuple[tuple[float, ...], float]:
    """Return `shared` over all combinations of the columns, and its highest error, 0.

    equal: the number of equally likely slots into which each combination is split. columns: the probabilities of each
    column. Raises InputError for too many combinations.
    """
    grouped = sorted((_group(column) for column in columns), key=lambda cells: -len(cells[0]))
    number = math.prod(len(mass) for mass, _ in grouped)
    if number > MOST_CELLS:
        raise InputError(
            f"categories: expected at most {MOST_CELLS:,} combinations of different probabilities for method='exact', "
            f"got {number:,}. Use method='lattice', or give a column whose categories are about equally likely their "
            "number."
        )
    inner: Cells = (np.ones(1), np.array([1 / equal]))
    outer: Cells = (np.ones(1), np.ones(1))
    # Only blocks of `inner` are multiplied out with a cell of `outer`, so memory stays small.
    for cells in grouped:
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
    """Return `shared` as `exactly` does, with logarithms of probabilities rounded to steps, and its highest error.

    The mass at a logarithm between two steps is split between both steps, such that its mean stays. A sum of `shared`
    is then wrong, for each column, by at most the error of linear interpolation: an eighth of a step squared times the
    second derivative by the logarithm. That derivative is at most 3 for (1 - p)^(z-1) and (z-1)/2 p (1 - p)^(z-2)
    alike, for any z. Raises InputError for too many steps.
    """
    spread = []
    for column in columns:
        place = -np.log(column) / STEP
        low = np.floor(place).astype(np.int64)
        above = column * (place - low)
        length = int(low.max()) + 2
        spread.append(np.bincount(low, column - above, length) + np.bincount(low + 1, above, length))
    steps = sum(len(masses) - 1 for masses in spread) + 1
    if steps > MOST_STEPS:
        raise InputError(
            "categories: expected probabilities of combinations above "
            f"exp(-{MOST_STEPS * STEP:.0f}) for method='lattice', got some that are lower. Merge rare categories."
        )
    size = 1 << (steps - 1).bit_length()
    product = np.ones(size // 2 + 1, np.complex128)
    # Logarithms of independent columns add up, so their masses are convolved: the transforms are multiplied.
    for masses in spread:
        product *= np.fft.rfft(masses, size)
    mass: Floats = np.maximum(np.fft.irfft(product, size)[:steps], 0.0)
    probability: Floats = np.exp(-STEP * np.arange(steps)) / equal
    return shared(people, (mass, probability)), len(columns) * 3 / 8 * STEP**2 + ROUNDING


def _group(column: Floats) -> Cells:
    """Return mass and probability of the different probabilities of a column."""
    probability, rows = np.unique(column, return_counts=True)
    return probability * rows, probability


def _combine(first: Cells, second: Cells) -> Cells:
    """Return mass and probability of all pairs of cells."""
    mass, probability = (np.multiply.outer(a, b).ravel() for a, b in zip(first, second, strict=True))
    return mass, probability


def _blocks(cells: Cells) -> Iterator[Cells]:
    """Yield cells in blocks."""
    for start in range(0, len(cells[0]), BLOCK):
        yield cells[0][start : start + BLOCK], cells[1][start : start + BLOCK]
