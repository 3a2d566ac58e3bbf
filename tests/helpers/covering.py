"""Few combinations of options in which any few of different kinds occur together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations, product


def covering(together: int, *kinds: Sequence[Hashable]) -> list[tuple[Hashable, ...]]:
    """Combinations of one option of each kind, such that any so many options of different kinds are in one of them.

    Each next is the first of all combinations that has the most of what is not yet in one.
    """

    def parts(combination: tuple[Hashable, ...]) -> set[object]:
        return set(combinations(enumerate(combination), together))

    everything = list(product(*kinds))
    left, chosen = set().union(*map(parts, everything)), []
    while left:
        best = max(everything, key=lambda combination: len(parts(combination) & left))
        chosen.append(best)
        left -= parts(best)
    return chosen
