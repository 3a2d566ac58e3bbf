"""The scores of several attackers side by side, as if they were more measures of one."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..writing import attacker_names
from .gather import Gatherer

if TYPE_CHECKING:
    import numpy.typing as npt


class Gatherers:
    """What puts the scores of each attacker together, in order; of one without a name, None."""

    def __init__(self, gatherers: Mapping[str | None, Gatherer]) -> None:
        self._gatherers = gatherers

    def make_folders(self) -> None:
        """Make the places of facts."""
        for gatherer in self._gatherers.values():
            gatherer.folder.mkdir(exist_ok=True)

    def names(self, columns: Sequence[Hashable]) -> list[str]:
        """Names of the score columns."""
        attackers = [name for name in self._gatherers if name is not None]
        first = next(iter(self._gatherers.values()))
        return attacker_names(attackers or None, first.measures, columns, [])

    def nothing(self) -> list[npt.NDArray[Any]]:
        """The score columns, without rows."""
        return [
            column
            for gatherer in self._gatherers.values()
            for kind in gatherer.types.values()
            for column in np.empty((len(gatherer.job.targets), 0), kind)
        ]

    def chunks(
        self, first: int, last: int, sizes: Sequence[int], row: int, threads: int | None
    ) -> Generator[dict[str, npt.NDArray[Any]]]:
        """See `Gatherer`; the arrays of one attacker after those of the other."""
        with contextlib.ExitStack() as closing:
            made = [
                closing.enter_context(contextlib.closing(gatherer.chunks(first, last, sizes, row, threads)))
                for gatherer in self._gatherers.values()
            ]
            for parts in zip(*made, strict=True):
                yield {f"{place}:{name}": array for place, part in enumerate(parts) for name, array in part.items()}
