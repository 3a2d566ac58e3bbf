"""Criteria of classes of rows: on some columns every row is one of at least k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

# Sets of columns at most, that any few known columns may be.
MOST_SETS = 100_000


@dataclass(frozen=True)
class ClassCriterion:
    """columns: places, ascending. k: the fewest rows that may be equal on them. text: what was asked for."""

    columns: tuple[int, ...]
    k: int
    text: str = ""

    @classmethod
    def of_any(cls, known: int, among: Sequence[int], k: int, text: str) -> list[ClassCriterion]:
        """For whoever knows any so many columns: one for each set of them."""
        return [cls(columns, k, text) for columns in combinations(sorted(among), known)]


def without_implied(criteria: Sequence[ClassCriterion]) -> list[ClassCriterion]:
    """Those that no other implies: rows that are equal on some columns are equal on any of them."""
    different = list({(one.columns, one.k): one for one in criteria}.values())
    if len(different) > 1_000:
        # Sets of as many columns, mostly.
        return different
    return [
        one
        for one in different
        if not any(other != one and other.k >= one.k and set(one.columns) <= set(other.columns) for other in different)
    ]
