"""Model of gpupif.datasets.census, read from census.toml: the levels, parents and weights of every column.

A column can depend on columns before it, its parents. The levels of a parent are first merged into a few groups.
Weights are whole numbers that are computed from whole numbers, so they are equal on every platform.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..io.documents import parse_toml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Weights = NDArray[np.int64]


class Given(NamedTuple):
    """A parent of a column: the parent's name, and the group of each of its levels."""

    column: str
    groups: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of groups."""
        return max(self.groups) + 1


class Column(NamedTuple):
    """A column of the census.

    levels: labels, or a range of numbers. given: the parents. weights: an axis for the groups of each parent, and a
    last axis for the levels.
    """

    name: str
    levels: tuple[str, ...] | range
    given: tuple[Given, ...]
    weights: Weights


@cache
def document() -> dict[str, Any]:
    """Return the content of census.toml, with columns by name."""
    found = parse_toml(files(__package__).joinpath("census.toml").read_text("utf-8"))
    return {**found, "columns": {said["name"]: said for said in found["columns"]}}


@cache
def lines_of(name: str) -> list[tuple[str, list[list[int]]]]:
    """Return the lines of a column's `levels`: for each level its label and its lists of numbers."""
    levels = document()["columns"][name]["levels"]
    lines = [line.split("|") for line in levels.splitlines()] if isinstance(levels, str) else []
    return [(label.strip(), [[int(number) for number in part.split()] for part in parts]) for label, *parts in lines]


def levels_of(said: Any) -> tuple[str, ...] | range:
    """Return the levels as labels; if all are numbers, as the range from the first to the last."""
    numbers = all(isinstance(level, int) or level.isdecimal() for level in said)
    return range(int(said[0]), int(said[-1]) + 1) if numbers else tuple(said)


def given(said: str) -> Given:
    """Return a parent, read from its text.

    The text is the name of a column ("sex"), a column and one of its groupings ("region.kind"), or the column of ages
    and the ages at which groups after the first begin ("age 15 65").
    """
    path, *starts = said.split()
    name, _, group = path.partition(".")
    if not group:
        places = range(len(named(name).levels))
        return Given(name, tuple(sum(age >= int(start) for start in starts) if starts else age for age in places))
    place = document()["columns"][name]["groups"].index(group)
    return Given(name, tuple(parts[-1][place] for _, parts in lines_of(name)))


def crossed(first: ArrayLike, *factors: ArrayLike) -> Weights:
    """Return the product of a factor (groups, levels) for each parent; the first factor can be plain (levels)."""
    weights = np.asarray(first, np.int64)
    for factor in factors:
        weights = weights[..., None, :] * np.asarray(factor, np.int64)
    return weights


@cache
def slope(spread: int) -> tuple[int, ...]:
    """Return the heights of a binomial bell of variance spread / 2, from its centre outwards; none is 0."""
    top = comb(2 * spread, spread)
    return tuple(1 + 100_000 * comb(2 * spread, spread + distance) // top for distance in range(spread + 1))


def bells(places: Sequence[int], spread: int, *shifts: Sequence[int]) -> Weights:
    """Return a bell over the levels' places for each combination of groups; its centre is the sum of their shifts."""
    heights = slope(spread)
    weights = np.empty((*map(len, shifts), len(places)), np.int64)
    for groups in np.ndindex(*weights.shape[:-1]):
        centre = sum(shift[group] for shift, group in zip(shifts, groups, strict=True))
        weights[groups] = [heights[min(abs(place - centre), spread)] for place in places]
    return weights


def pyramid(knots: Sequence[tuple[int, int]]) -> list[int]:
    """Return the weights of single years: straight lines between (age, weight) knots."""
    weights = []
    for (age, left), (end, right) in pairwise(knots):
        weights += [100 * left + 100 * (right - left) * step // (end - age) for step in range(end - age)]
    return [*weights, 100 * knots[-1][1]]


@cache
def named(name: str) -> Column:
    """Return a column that census.toml describes by name."""
    said, lines = document()["columns"][name], lines_of(name)
    levels = levels_of([label for label, _ in lines] or said["levels"])
    parents = tuple(map(given, said.get("given", ())))
    if "pyramid" in said:
        weights = np.array([pyramid(knots) for knots in said["pyramid"]], np.int64)
    elif "bells" in said:
        steps, spread, shifts = (said["bells"][key] for key in ("steps", "spread", "shifts"))
        weights = bells(range(0, len(levels) * steps, steps), spread, *shifts)
    else:
        parts = [parts[:-1] if "groups" in said else parts for _, parts in lines]
        weights = crossed(*(np.transpose(part) for part in zip(*parts, strict=True)))
    weights = weights.reshape(*(parent.size for parent in parents), len(levels))
    if "none" in said:
        weights[..., 0] = np.reshape(said["none"], (-1, *[1] * (len(parents) - 1)))
        weights[0, ..., 1:] = 0
    return Column(name, levels, parents, weights)


def item(number: int) -> Column:
    """Return the survey item with a number, from 23 on."""
    answers, parents = document()["items"]["answers"], document()["items"]["given"]
    levels, driver = levels_of(answers[number % len(answers)]), given(parents[number % len(parents)])
    size, groups = len(levels), range(driver.size)
    if isinstance(levels, range) or size < 12:  # ordered levels: people agree more or less, by group
        places = [(2 * level + 1) * 60 // (2 * size) for level in range(size)]
        weights = bells(places, 250, [10 + 13 * number % 40 + 16 * group // len(groups) - 8 for group in groups])
    else:  # unordered levels: few are common and many rare, and one group favours each
        common = [20_000 // (1 + (7 * number + 5 * level) % size) + 50 for level in range(size)]
        weights = crossed(
            common, [[4 if level % len(groups) == group else 1 for level in range(size)] for group in groups]
        )
    return Column(f"item_{number}", levels, (driver,), weights)


@cache
def column(place: int) -> Column:
    """Return the column at a place, from 0 on."""
    names = list(document()["columns"])
    return named(names[place]) if place < len(names) else item(place + 1)


def place_of(name: str) -> int:
    """Return the place of a column that can be a parent; survey items cannot."""
    return list(document()["columns"]).index(name)
