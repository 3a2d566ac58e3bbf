"""Few combinations of options in which any two of different kinds occur together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations, product


def every_pair(*kinds: Sequence[Hashable]) -> list[tuple[Hashable, ...]]:
    """Combinations of one option of each kind, such that each pair of options of two kinds is in one of them.

    Each next is the first of all combinations that has the most pairs which none before it has.
    """

    def pairs(combination: tuple[Hashable, ...]) -> set[object]:
        return set(combinations(enumerate(combination), 2))

    everything = list(product(*kinds))
    left, chosen = set().union(*map(pairs, everything)), []
    while left:
        best = max(everything, key=lambda combination: len(pairs(combination) & left))
        chosen.append(best)
        left -= pairs(best)
    return chosen
