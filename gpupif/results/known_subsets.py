"""What `score` returns for attackers who know any few of the columns."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..attack.worst_mean import FOLDS, folded_name
from ..engines.base import EngineResult
from .scores import Scores

if TYPE_CHECKING:
    import pandas as pd

    from ..attack.known_subsets import KnownSubsets
    from ..attack.priors import Prior
    from ..encoding.column import EncodedTable
    from ..engines.base import AnyResult, Job
    from ..frames.base import Frame
    from .known_subsets_summary import AnyKnownSummary


class AnyKnownScores(Scores):
    """Worst and mean scores over all attackers who know any r columns; made by `gpupif.score` with ``known=r``.

    All that `Scores` has, of each cell's *worst* score over the attackers: the highest, of measures where low is risky
    (``cohort_size``, ``class_size``, ``prior``, ``entropy``, ``distinct_values``) the lowest. ``scores.mean`` has the
    same of each cell's mean score. wCIG is weighted with the weight of each attacker before. The worst of two cells may
    be against different attackers, so that ``fig``, ``rig`` and ``pif`` of the worst, sums, are what no single one need
    reach.

    mean: `Scores` of the means. subsets: `KnownSubsets`, what the attackers know. weights: by column the lowest weight
    (in ``mean`` the mean weight): that against the attackers to whom the column says least that is new.

    Examples
    --------
    Of Bill, row 1, the name gives away the gender, 0.222 bits; who knows his eye colour only learns hardly anything.

    >>> import gpupif
    >>> people = gpupif.datasets.pif_example()
    >>> scores = gpupif.score(people, ["cig", "cohort_size"], known=1)
    >>> scores.cig.round(3).head(2)
       gender   name  eye_color
    0   0.222  1.307      1.807
    1   0.222  0.285      0.485
    >>> scores.mean.cig.round(3).head(2)
       gender   name  eye_color
    0   0.222  0.682      0.908
    1   0.120  0.171      0.247
    >>> scores.subsets
    2 subsets of 1 column for each column
    >>> scores.top(1)[["column", "value", "cig", "known"]].round(3)
          column value    cig known
    0  eye_color  blue  1.807  name

    """

    def __init__(
        self,
        frame: Frame,
        encoded: EncodedTable,
        job: Job,
        found: AnyResult,
        subsets: KnownSubsets,
        columns: Sequence[Hashable],
        priors: Mapping[Hashable, Prior],
        device: str,
        seconds: dict[str, float],
    ) -> None:
        def result(values: dict[str, Any], weights: list[float]) -> EngineResult:
            return EngineResult(values, weights, found.distinct_rows, [], [], {}, found.through_host)

        rest = (columns, priors, device, seconds)
        super().__init__(frame, encoded, job, result(found.worst, [float(w.min()) for w in found.weights]), *rest)
        self.subsets = subsets
        mean = result(found.mean, [float(w.mean()) for w in found.weights])
        self.mean = MeanScores(frame, encoded, job, mean, *rest)
        self._subset_weights = found.weights

    def __repr__(self) -> str:
        return (
            f"<AnyKnownScores of {self.rows:,} rows x {len(self.columns)} columns: {', '.join(self.measures)}; "
            f"any {self.subsets.known} columns known: {self.subsets!r}; device {self.device}>"
        )

    def summary(self) -> AnyKnownSummary:
        """Risk by column and for the whole table, of the worst scores, and of the mean scores under ``.mean``."""
        from .known_subsets_summary import AnyKnownSummary

        return AnyKnownSummary.of(super().summary(), self.mean.summary(), self.subsets)

    def top(self, n: int = 20, by: str | None = None) -> pd.DataFrame:
        """The n riskiest cells by their worst score, as `Scores.top` has them, and which attacker that is.

        known: names of the columns that the attacker knows who is the worst for the cell by this measure, of several
        the first; posterior and cohort_size: against that attacker, even where they were scored; all other scores: the
        worst over all attackers.
        """
        return super().top(n, by)

    def _describe(self, row: int, target: int, by: str) -> dict[str, Any]:
        from .worst_attacker import describe_worst

        return describe_worst(self, row, target, by)

    def _outputs(self) -> dict[str, Any]:
        """Columns <measure>_worst_<column> and <measure>_mean_<column>."""
        return {
            folded_name(measure, what): scores._values[measure]
            for measure in self.measures
            for what, scores in zip(FOLDS, (self, self.mean), strict=True)
        }


class MeanScores(Scores):
    """Mean scores over all attackers, `AnyKnownScores.mean`: all that `Scores` has.

    Outputs have columns <measure>_mean_<column>; `top` says nothing of a posterior and a cohort, for each attacker has
    another one.
    """

    def _describe(self, row: int, target: int, by: str) -> dict[str, Any]:
        from .riskiest import label_of, scores_of

        position = self._job.targets[target]
        column = self._encoded.columns[position]
        code = int(column.codes[row])
        cell = {"column": column.name, "value": column.values([code])[0], **scores_of(self, row, target)}
        priors = self._job.priors[position]
        return label_of(self, row) | cell | {"prior": float(priors[code]) if code < len(priors) else math.nan}

    def _outputs(self) -> dict[str, Any]:
        """Columns <measure>_mean_<column>."""
        return {folded_name(measure, "mean"): values for measure, values in self._values.items()}
