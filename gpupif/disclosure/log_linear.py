"""Log-linear models of a contingency table: how many people are expected in each cell."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, warn
from ..utils.validation import brief, check_exist

# Columns whose interaction a term is, by their places; terms of one column are main effects.
Term = tuple[int, ...]
TWO_WAY = "two-way"
# Cells of a table that is fitted as a whole, at most.
MOST_CELLS = 1 << 24
# A fit has settled where no margin has more than this share of the people at a wrong place. Where some cells are 0 in
# the limit it never does: then it ends after so many rounds over the margins, and is good enough up to the other share.
SETTLED, ROUNDS, GOOD_ENOUGH = 1e-10, 500, 1e-4


def resolve_interactions(interactions: Any, names: Sequence[Hashable]) -> list[Term]:
    """The terms of a hierarchical model: the main effects, the interactions, and all that are part of one.

    interactions: None, "two-way", or a list of tuples of names. Raises InputError.
    """
    places = range(len(names))
    if interactions is None:
        asked: list[Term] = []
    elif isinstance(interactions, str):
        if interactions != TWO_WAY:
            raise InputError(
                "interactions: expected 'two-way', a list of tuples of quasi-identifiers, or None for main effects; "
                f"got {interactions!r}."
            )
        asked = list(combinations(places, 2))
    elif isinstance(interactions, Iterable):
        asked = [_term(one, names) for one in interactions]
    else:
        raise InputError(
            "interactions: expected 'two-way', a list of tuples of quasi-identifiers, or None for main effects; got "
            f"{brief(interactions)}."
        )
    parts = {part for term in asked for size in range(2, len(term) + 1) for part in combinations(term, size)}
    return [*((place,) for place in places), *sorted(parts, key=lambda term: (len(term), term))]


def _term(given: Any, names: Sequence[Hashable]) -> Term:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable) or len(set(given := list(given))) < 2:
        raise InputError(
            f"interactions: expected two or more different quasi-identifiers in each, got {brief(given)}. Write "
            "[('a', 'b')]; main effects are always in the model."
        )
    check_exist("interactions", given, names, "the quasi-identifiers")
    return tuple(sorted({names.index(name) for name in given}))


def expected_people(
    codes: npt.NDArray[np.int64], values: Sequence[int], people: npt.NDArray[np.float64], terms: Sequence[Term]
) -> npt.NDArray[Any]:
    """Return how many people a model expects in each of the cells that occur.

    codes: (columns, cells); values: the number of values of each column; people: in each cell.

    Main effects alone have a closed form, the product of the shares of the values; other models are fitted to all cells
    that are possible. Raises InputError for a table with too many cells; warns if a fit does not settle.
    """
    if all(len(term) == 1 for term in terms):
        total = math.fsum(people)
        shares = [np.bincount(own, people, number)[own] / total for own, number in zip(codes, values, strict=True)]
        return np.asarray(total * np.prod(shares, axis=0))
    possible = math.prod(values)
    if possible > MOST_CELLS:
        raise InputError(
            f"quasi_identifiers: a model with interactions is fitted to all cells that are possible, {possible:.3g} "
            f"combinations of values; expected at most {MOST_CELLS:,}. Name fewer quasi-identifiers, bin those with "
            "many values, or leave interactions= out."
        )
    table = np.zeros(tuple(values))
    table[tuple(codes)] = people
    margins = [term for term in terms if not any(set(term) < set(other) for other in terms)]
    return np.asarray(fit_margins(table, margins)[tuple(codes)])


def fit_margins(table: npt.NDArray[np.float64], margins: Sequence[Term]) -> npt.NDArray[np.float64]:
    """The means of Poisson counts, by a log-linear model with these margins, that are the likeliest for a table.

    Iterative proportional fitting: from a table that is everywhere the same, margin by margin made what it is in the
    table given (Deming & Stephan 1940). That needs no design matrix, and margins of 0, whose parameters are infinite,
    come out as they are.
    """
    fitted = np.full(table.shape, table.mean())
    axes = [tuple(axis for axis in range(table.ndim) if axis not in term) for term in margins]
    wanted = [table.sum(axis=others, keepdims=True) for others in axes]
    people, off = float(table.sum()), math.inf
    for _ in range(ROUNDS):
        off = 0.0
        for others, margin in zip(axes, wanted, strict=True):
            found = fitted.sum(axis=others, keepdims=True)
            off = max(off, float(np.abs(found - margin).sum()) / people)
            fitted *= np.divide(margin, found, out=np.zeros_like(margin), where=found > 0)
        if off <= SETTLED:
            break
    if off > GOOD_ENOUGH:
        warn(
            f"interactions: after {ROUNDS:,} rounds the model still has {off:.2g} of the people of a margin at a wrong "
            "place, so that the risk holds to a few digits only. Name fewer interactions, or bin columns with many "
            "values.",
            UserWarning,
        )
    return fitted


def parameters(values: Sequence[int], terms: Sequence[Term]) -> int:
    """How many parameters a model has: the constant, and of each term the products of what values differ by."""
    return 1 + sum(math.prod(values[place] - 1 for place in term) for term in terms)
