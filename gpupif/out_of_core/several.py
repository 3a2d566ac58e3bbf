"""The scores of several attackers side by side, as if they were more measures of one."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attack.worst_mean import folded_name
from ..io.write import attacker_names, output_names
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
        return attacker_names({name: one.measures for name, one in self._gatherers.items()}, columns, [])

    def nothing(self) -> list[npt.NDArray[Any]]:
        """The score columns, without rows."""
        return [
            np.empty(0, self._gatherers[attacker].types[measure])
            for attacker, measure in self._order()
            for _ in self._gatherers[attacker].job.targets
        ]

    def _order(self) -> list[tuple[str | None, str]]:
        """Attackers and measures in the order of the score columns."""
        return [(name, measure) for name, gatherer in self._gatherers.items() for measure in gatherer.measures]

    def chunks(
        self, first: int, last: int, sizes: Sequence[int], row: int, threads: int | None
    ) -> Generator[dict[str, npt.NDArray[Any]]]:
        """See `Gatherer`; the arrays of all, in the order of the score columns."""
        with contextlib.ExitStack() as closing:
            made = [
                closing.enter_context(contextlib.closing(gatherer.chunks(first, last, sizes, row, threads)))
                for gatherer in self._gatherers.values()
            ]
            for several in zip(*made, strict=True):
                parts = dict(zip(self._gatherers, several, strict=True))
                yield {f"{name}:{measure}": parts[name][measure] for name, measure in self._order()}


class FoldGatherers(Gatherers):
    """What puts together the worst and the mean scores over attackers, measure by measure."""

    def names(self, columns: Sequence[Hashable]) -> list[str]:
        """Names of the score columns, <measure>_worst_<column> and <measure>_mean_<column>."""
        return output_names([folded_name(measure, str(what)) for what, measure in self._order()], columns, [])

    def _order(self) -> list[tuple[str | None, str]]:
        first = next(iter(self._gatherers.values()))
        return [(what, measure) for measure in first.measures for what in self._gatherers]
