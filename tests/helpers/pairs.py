"""Combinations of features in which any two settings of two features meet, far fewer than all."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any


def pairwise_settings(features: Mapping[str, Sequence[Any]], tries: int = 30) -> list[dict[str, Any]]:
    """Settings by feature, each pair of them in one at least; the same each time.

    tries: of so many drawn for each, the one is taken in which most pairs meet that have not met yet.
    """
    source = random.Random(0)
    left = {
        ((one, a), (other, b))
        for one, other in combinations(features, 2)
        for a in range(len(features[one]))
        for b in range(len(features[other]))
    }
    chosen = []
    while left:
        # Each holds a pair that is left, so that none is drawn for nothing.
        must = dict(min(left))
        drawn = [{name: source.randrange(len(features[name])) for name in features} | must for _ in range(tries)]
        best = max(drawn, key=lambda places: len(_pairs(places) & left))
        left -= _pairs(best)
        chosen.append({name: features[name][place] for name, place in best.items()})
    return chosen


def _pairs(places: Mapping[str, int]) -> set[Any]:
    return set(combinations(places.items(), 2))
