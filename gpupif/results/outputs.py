"""What cells were scored for: the outputs of each attacker, and scores made of several of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..attack.any_known import FOLDS, KnownSubsets, fold_of, folded_name
from ..engines.worst_and_mean import mean_of, worst_of
from ..measures import Measure

WORST, MEAN = FOLDS


@dataclass(frozen=True)
class ScoredAttacker:
    """An attacker that cells were scored against.

    name: None where there is one without a name. known: the columns that the attacker knows, or of which it knows any
    few: then `subsets` says which. only: "worst" or "mean" where no more than that is there, of several attackers too.
    """

    name: str | None
    known: tuple[Hashable, ...]
    subsets: KnownSubsets | None = None
    only: str | None = None

    @property
    def folds(self) -> tuple[str, ...]:
        """Both where cells have a worst and a mean score, else the one under which the scores go."""
        return FOLDS if self.subsets is not None and self.only is None else (self.only or WORST,)

    def output(self, measure: str, fold: str) -> str:
        """What the names of the output columns of a measure begin with; fold: "worst" or "mean", of any few columns."""
        folded = self.only or (None if self.subsets is None else fold)
        of_measure = measure if folded is None else folded_name(measure, folded)
        return f"{self.prefix}{of_measure}"

    @property
    def prefix(self) -> str:
        """What all names of outputs against the attacker begin with."""
        return "" if self.name is None else f"{self.name}_"

    def outputs(self, measure: str) -> list[str]:
        """Those of all that was scored of a measure, in the order of the columns."""
        return [self.output(measure, fold) for fold in self.folds]

    def named(self, by_fold: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Scores by output, of those by fold (of a list of columns any word) and measure, as engines give them back."""
        return {
            self.output(measure, fold): scores
            for fold, several in by_fold.items()
            for measure, scores in several.items()
        }


def of_each_fold(found: Mapping[str, Any]) -> dict[str, Any]:
    """What was found, for the worst and for the mean; of an attacker with a list of columns (under "") the same."""
    return {fold: found.get(fold, found.get("")) for fold in FOLDS}


class CellScore(NamedTuple):
    """One score for each cell: that of an output, or the worst, or the mean, of the scores of several.

    Of a cell whose score is unknown (NaN) against some attackers, those against the others count. dtype: of means.
    """

    measure: Measure
    outputs: tuple[str, ...]
    fold: str = WORST
    dtype: str = "float64"

    def of(self, arrays: Mapping[str, Any]) -> Any:
        """The scores, from arrays (columns, rows) by output, of host or device."""
        several = [arrays[output] for output in self.outputs]
        if len(several) == 1:
            return several[0]
        worst = self.fold == WORST
        folded = np.empty_like(several[0], None if worst else self.dtype)
        # Column by column, so that little memory is taken beside.
        for place, scores in enumerate(folded):
            each = [array[place] for array in several]
            scores[:] = worst_of(self.measure, each) if worst else mean_of(each)
        return folded


def outputs_of(several: Iterable[CellScore]) -> list[str]:
    """The outputs that hold the scores of these cells."""
    return list(dict.fromkeys(output for score in several for output in score.outputs))


@dataclass(frozen=True)
class ScoreView:
    """Scores of some measures against some attackers; fold: "worst" or "mean" where they are one of the two alone.

    dtype: "float64" or "float32".
    """

    measures: Sequence[Measure]
    attackers: tuple[ScoredAttacker, ...]
    dtype: str
    fold: str | None = None

    @property
    def side(self) -> str:
        """The side of attackers who know any few columns that is looked at."""
        return self.fold or WORST

    @property
    def known(self) -> list[Hashable]:
        """The columns that the attackers know, or of which they know any few."""
        return list(dict.fromkeys(column for attacker in self.attackers for column in attacker.known))

    @property
    def subsets(self) -> KnownSubsets | None:
        """Of a single attacker who knows any few columns."""
        return self.attackers[0].subsets if len(self.attackers) == 1 else None

    def score(self, measure: Measure) -> CellScore:
        """The scores of a measure: over all attackers."""
        outputs = dict.fromkeys(attacker.output(measure.name, self.side) for attacker in self.attackers)
        return CellScore(measure, tuple(outputs), self.side, self.dtype)

    def outputs(self) -> dict[str, CellScore]:
        """What is written, by what the names of its columns begin with."""
        if self.fold is not None:
            return {self.as_one().output(measure.name, self.fold): self.score(measure) for measure in self.measures}
        return {
            output: CellScore(measure, (output,))
            for attacker in self.attackers
            for measure in self.measures
            for output in attacker.outputs(measure.name)
        }

    def types(self) -> dict[str, str]:
        """The types of the scores of each output."""
        return {
            attacker.output(measure.name, fold): (
                fold_of(measure, fold) if len(attacker.folds) > 1 or attacker.only else measure
            ).type_in(self.dtype)
            for attacker in self.attackers
            for measure in self.measures
            for fold in attacker.folds
        }

    def by_name(self) -> dict[str, CellScore]:
        """All scores that have a name: measures, over all attackers, and what is written."""
        return {**self.outputs(), **{measure.name: self.score(measure) for measure in self.measures}}

    def as_one(self) -> ScoredAttacker:
        """The attackers of a worst or mean score as one."""
        name = self.attackers[0].name if len(self.attackers) == 1 else None
        return ScoredAttacker(name, tuple(self.known), self.subsets, self.fold)

    @property
    def default(self) -> Measure:
        """By which cells are risky if nothing else is said: CIG, or else the first measure."""
        return next((measure for measure in self.measures if measure.name == "cig"), self.measures[0])
