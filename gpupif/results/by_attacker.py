"""Scores against several attackers as a dictionary by attacker, wherever the scores lie."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

One = TypeVar("One", bound=Any)


class ByAttacker(Mapping[str, One]):
    """Scores by attacker, in the order given; what all have in common is that of the first.

    attackers: by name the columns that each knows.
    """

    def __init__(self, scores: Mapping[str, One], attackers: Mapping[str, Sequence[Hashable]]) -> None:
        first = next(iter(scores.values()))
        self.attackers = {name: list(known) for name, known in attackers.items()}
        self.columns: list[Hashable] = first.columns
        self.measures: tuple[str, ...] = first.measures
        self.device: str = first.device
        self._scores = dict(scores)

    def __getitem__(self, attacker: str) -> One:
        if attacker not in self._scores:
            raise KeyError(f"{attacker!r}: expected one of the attackers {', '.join(map(repr, self._scores))}")
        return self._scores[attacker]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)
