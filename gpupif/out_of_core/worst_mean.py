"""The worst and the mean scores over attackers who know any few columns, each put together and summarised as any."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..attack.worst_mean import FOLDS
from ..engines.part_jobs import Pass
from ..results.riskiest import describe
from ..results.worst_attacker import find_worst
from .attack import Attack
from .gather import Cell
from .known_subsets import DISTINCT, AnyKnownScored, fold_job, gains_file
from .part_result import Found
from .passes import Means, Scored
from .shuffle import Cut
from .summary import codes_of_row

if TYPE_CHECKING:
    from ..attack.known_subsets import KnownSubsets
    from ..attack.priors import Prior
    from ..engines.base import Job
    from .chunks import TableChunks


class Fold(Scored):
    """The worst, or the mean, scores of a table: put together as those of any other, each pass being in one part."""

    def __init__(self, whole: AnyKnownScored, what: str) -> None:
        super().__init__(whole.means, f"{what}-", fold_job(whole.job, what), whole.chunks, None)
        self.whole = whole
        self.worst = what == FOLDS[0]

    def score(self) -> Found:
        """Score the table, unless that is done for the other."""
        groups = self.whole.score()
        self.passes = [Pass(group, []) for group in groups]
        self.cuts = [Cut(self.file(f"group-{number}"), [list(self.chunks.sizes)]) for number in range(len(groups))]
        weights = self.whole.weights().items()
        return Found(weights={target: lowest if self.worst else mean for target, (lowest, mean) in weights})

    def distinct_rows(self) -> int:
        """Different rows of the table."""
        return int(self.means.store.done(DISTINCT)["rows"])

    def _gains(self, number: int, part: int, target: int) -> Path:
        return gains_file(self.file(f"group-{number}"), target)


class FoldAttack(Attack):
    """What is done for the worst, or the mean, scores over attackers; see `Attack`."""

    def __init__(self, fold: Fold, chunks: TableChunks, prior_of: Mapping[Hashable, Prior]) -> None:
        super().__init__(fold, chunks, prior_of)
        self.fold = fold

    def _riskiest(self, cells: Sequence[Cell]) -> pd.DataFrame:
        return pd.DataFrame.from_records([self._describe(cell) for cell in cells])

    def _describe(self, cell: Cell) -> dict[str, Any]:
        """As the scores in memory describe a cell."""
        whole, job = self.fold.whole, self.fold.job
        position, key = job.targets[cell.target], codes_of_row(self.chunks, cell.row)
        column, code = self.chunks.columns[position], key[position]
        scores = dict(zip(self._gatherer.measures, cell.scores, strict=True))
        if not self.fold.worst:
            value = column.values([code])[0]
            return {
                "row": cell.row,
                "column": column.name,
                "value": value,
                **scores,
                "prior": float(job.priors[position][code]),
            }
        same = np.ones(len(whole.times), bool)
        for codes, own in zip(whole.codes, key, strict=True):
            same &= codes == own
        table = replace(whole.job, codes=whole.codes, times=whole.times)
        subsets = whole.subsets.places_of(position)
        worst = find_worst(
            table, int(np.argmax(same)), position, subsets, whole.weights_of(position), self._gatherer.by
        )
        found = describe(job, position, column, code, scores, worst.equal, worst.size)
        return {"row": cell.row} | found | {"known": worst.called(whole.subsets.names)}


def any_attacks(
    means: Means, job: Job, chunks: TableChunks, prior_of: Mapping[Hashable, Prior], subsets: KnownSubsets
) -> dict[str | None, Attack]:
    """What is to be done for the worst scores, and for the mean."""
    whole = AnyKnownScored(means, job, chunks, subsets)
    return {what: FoldAttack(Fold(whole, what), chunks, prior_of) for what in FOLDS}
