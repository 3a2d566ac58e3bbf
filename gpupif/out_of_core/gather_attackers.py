"""The scores of several attackers gathered side by side, as if they were more measures of one."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .gather import Gatherer


class AttackerGatherers:
    """The gatherers of all attackers, in order, by fold; of one without a name under None."""

    def __init__(self, gatherers: Mapping[str | None, Mapping[str, Gatherer]]) -> None:
        self._gatherers = {(name, fold): one for name, folds in gatherers.items() for fold, one in folds.items()}
        # Attackers, folds and measures in the order of the score columns.
        self._order = [
            (name, fold, measure)
            for name, folds in gatherers.items()
            for measure in next(iter(folds.values())).measures
            for fold in folds
        ]

    def make_folders(self) -> None:
        """Make the places of facts."""
        for gatherer in self._gatherers.values():
            gatherer.folder.mkdir(exist_ok=True)

    def nothing(self) -> list[npt.NDArray[Any]]:
        """The score columns, without rows."""
        return [
            np.empty(0, self._gatherers[name, fold].types[measure])
            for name, fold, measure in self._order
            for _ in self._gatherers[name, fold].job.targets
        ]

    def chunks(self, first: int, last: int, sizes: Sequence[int], row: int) -> Generator[dict[str, npt.NDArray[Any]]]:
        """See `Gatherer`; the arrays of all, in the order of the score columns."""
        with contextlib.ExitStack() as closing:
            made = [
                closing.enter_context(contextlib.closing(gatherer.chunks(first, last, sizes, row)))
                for gatherer in self._gatherers.values()
            ]
            for several in zip(*made, strict=True):
                parts = dict(zip(self._gatherers, several, strict=True))
                yield {f"{name}:{fold}:{measure}": parts[name, fold][measure] for name, fold, measure in self._order}
