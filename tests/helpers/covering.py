"""Few combinations of options in which any few options of different kinds occur together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations, product


def covering(
    together: int, *kinds: Sequence[Hashable], chosen: Iterable[tuple[Hashable, ...]] = ()
) -> list[tuple[Hashable, ...]]:
    """Combinations of one option of each kind, such that any so many options of different kinds are in one of them.

    chosen: the first of them. Each next is the first of all combinations that has the most of what none has yet.
    """
    parts = {one: set(combinations(enumerate(one), together)) for one in product(*kinds)}
    found = list(chosen)
    left = set().union(*parts.values()).difference(*(parts[one] for one in found))
    while left:
        found.append(max(parts, key=lambda one: len(parts[one] & left)))
        left -= parts[found[-1]]
    return found
