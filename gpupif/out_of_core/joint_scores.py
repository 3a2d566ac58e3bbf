"""The scores against all attackers, chunk by chunk in the order of the table."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..results.score_outputs import ScoredAttacker
from .attacker_run import AttackerRun


class JointScores:
    """The scores against all attackers, in order, chunk by chunk.

    runs: for each attacker the runs, by aggregate.
    """

    def __init__(self, runs: Sequence[tuple[ScoredAttacker, Mapping[str, AttackerRun]]]) -> None:
        self._runs = {(one.name, aggregate): each for one, aggregates in runs for aggregate, each in aggregates.items()}
        # The attacker, aggregate and measure of each output, in the order of the score columns.
        self._order = {
            attacker.output(measure, aggregate): (attacker.name, aggregate, measure)
            for attacker, aggregates in runs
            for measure in next(iter(aggregates.values())).measures
            for aggregate in aggregates
        }

    def multiples(self) -> dict[str, tuple[str, Sequence[float]]]:
        """Return, by output, the output and the factors that give it; see `AttackerRun.multiple`."""
        outputs = {of: output for output, of in self._order.items()}
        found: dict[str, tuple[str, Sequence[float]]] = {}
        for output, (name, aggregate, measure) in self._order.items():
            multiple = self._runs[name, aggregate].multiple(measure)
            if multiple is not None:
                found[output] = outputs[name, aggregate, multiple[0]], multiple[1]
        return found

    def make_folders(self) -> None:
        """Make the folders for facts."""
        for run in self._runs.values():
            run.make_folder()

    def nothing(self) -> list[npt.NDArray[Any]]:
        """Return the score columns, without rows."""
        return [
            np.empty(0, self._runs[name, aggregate].types[measure])
            for name, aggregate, measure in self._order.values()
            for _ in self._runs[name, aggregate].job.scored_columns
        ]

    def chunks(self, first: int, last: int, row: int) -> Generator[dict[str, npt.NDArray[Any]]]:
        """Yield the scores of chunks by output, in the order of the score columns; see `AttackerRun.chunk_scores`."""
        with contextlib.ExitStack() as closing:
            made = [
                closing.enter_context(contextlib.closing(run.chunk_scores(first, last, row)))
                for run in self._runs.values()
            ]
            for several in zip(*made, strict=True):
                parts = dict(zip(self._runs, several, strict=True))
                yield {
                    output: parts[name, aggregate][measure]
                    for output, (name, aggregate, measure) in self._order.items()
                }
