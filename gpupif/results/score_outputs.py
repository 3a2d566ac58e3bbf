"""The outputs of scoring: a score for each attacker, measure and aggregate (worst, mean); scores of several outputs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..attack.attackers import AGGREGATES, KnownSubsets, aggregate_name, aggregate_of
from ..engines.worst_and_mean import mean_of, worst_of
from ..measures import Measure

WORST, MEAN = AGGREGATES


@dataclass(frozen=True)
class ScoredAttacker:
    """An attacker that cells were scored against.

    name: None for a single attacker without a name.
    known: the columns that the attacker knows, or of which it knows any few.
    subsets: the sets of columns of an attacker who knows any few; else None.
    only: "worst" or "mean" if only that score is there; perhaps over several attackers.
    """

    name: str | None
    known: tuple[Hashable, ...]
    subsets: KnownSubsets | None = None
    only: str | None = None

    @property
    def aggregates(self) -> tuple[str, ...]:
        """The aggregates of the scores: worst and mean for any few known columns; else one."""
        return AGGREGATES if self.subsets is not None and self.only is None else (self.only or WORST,)

    def output(self, measure: str, aggregate: str) -> str:
        """Return the output of a measure: the beginning of the names of its columns. aggregate: "worst" or "mean"."""
        aggregates_of = self.only or (None if self.subsets is None else aggregate)
        of_measure = measure if aggregates_of is None else aggregate_name(measure, aggregates_of)
        return f"{self.prefix}{of_measure}"

    @property
    def prefix(self) -> str:
        """The beginning of the names of all outputs against the attacker."""
        return "" if self.name is None else f"{self.name}_"

    def outputs(self, measure: str) -> list[str]:
        """Return all outputs of a measure."""
        return [self.output(measure, aggregate) for aggregate in self.aggregates]

    def named(self, by_aggregate: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return scores by output from scores by aggregate and measure, as engines return them.

        For a list of known columns the word for the aggregate does not matter.
        """
        return {
            self.output(measure, aggregate): scores
            for aggregate, by_measure in by_aggregate.items()
            for measure, scores in by_measure.items()
        }


def for_each_aggregate(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts by "worst" and "mean"; for an attacker with a list of columns (under "") both are the same."""
    return {aggregate: found.get(aggregate, found.get("")) for aggregate in AGGREGATES}


class CellScore(NamedTuple):
    """A score for each cell: the score of an output, or the worst or the mean of the scores of several outputs.

    If a cell's score is unknown (NaN) against some attackers, the others count. dtype: of means.
    """

    measure: Measure
    outputs: tuple[str, ...]
    aggregate: str = WORST
    dtype: str = "float64"

    def compute(self, arrays: Mapping[str, Any]) -> Any:
        """Return the scores from arrays (columns, rows) by output, on the host or a device."""
        of_outputs = [arrays[output] for output in self.outputs]
        if len(of_outputs) == 1:
            return of_outputs[0]
        worst = self.aggregate == WORST
        aggregates_of = np.empty_like(of_outputs[0], None if worst else self.dtype)
        # Column by column, to take little further memory.
        for place, scores in enumerate(aggregates_of):
            each = [array[place] for array in of_outputs]
            scores[:] = worst_of(self.measure, each) if worst else mean_of(each)
        return aggregates_of


def outputs_of(scores: Iterable[CellScore]) -> list[str]:
    """Return the outputs that some scores are made of."""
    return list(dict.fromkeys(output for score in scores for output in score.outputs))


@dataclass(frozen=True)
class ScoreView:
    """The scores of some measures against some attackers.

    dtype: "float64" or "float32". aggregate: "worst" or "mean" for one of the two scores alone.
    """

    measures: Sequence[Measure]
    attackers: tuple[ScoredAttacker, ...]
    dtype: str
    aggregate: str | None = None

    @property
    def side(self) -> str:
        """The aggregate that stands for the scores: the worst, unless the view is of the mean."""
        return self.aggregate or WORST

    @property
    def known(self) -> list[Hashable]:
        """The columns that the attackers know, or of which they know any few."""
        return list(dict.fromkeys(column for attacker in self.attackers for column in attacker.known))

    @property
    def subsets(self) -> KnownSubsets | None:
        """The sets of columns of a single attacker who knows any few columns; else None."""
        return self.attackers[0].subsets if len(self.attackers) == 1 else None

    def score(self, measure: Measure) -> CellScore:
        """Return the score for a measure, over all attackers."""
        outputs = dict.fromkeys(attacker.output(measure.name, self.side) for attacker in self.attackers)
        return CellScore(measure, tuple(outputs), self.side, self.dtype)

    def outputs(self) -> dict[str, CellScore]:
        """Return the scores that are written, by the beginning of the names of their columns."""
        if self.aggregate is not None:
            return {
                self.as_one().output(measure.name, self.aggregate): self.score(measure) for measure in self.measures
            }
        return {
            output: CellScore(measure, (output,))
            for attacker in self.attackers
            for measure in self.measures
            for output in attacker.outputs(measure.name)
        }

    def types(self) -> dict[str, str]:
        """Return the type of the scores of each output."""
        return {
            attacker.output(measure.name, aggregate): (
                aggregate_of(measure, aggregate) if len(attacker.aggregates) > 1 or attacker.only else measure
            ).type_in(self.dtype)
            for attacker in self.attackers
            for measure in self.measures
            for aggregate in attacker.aggregates
        }

    def by_name(self) -> dict[str, CellScore]:
        """Return all scores that have a name: of each measure over all attackers, and those that are written."""
        return {**self.outputs(), **{measure.name: self.score(measure) for measure in self.measures}}

    def as_one(self) -> ScoredAttacker:
        """Return the attackers of a worst or mean score as one."""
        name = self.attackers[0].name if len(self.attackers) == 1 else None
        return ScoredAttacker(name, tuple(self.known), self.subsets, self.aggregate)

    @property
    def default(self) -> Measure:
        """The measure by which cells are risky by default: CIG, or else the first one."""
        return next((measure for measure in self.measures if measure.name == "cig"), self.measures[0])
