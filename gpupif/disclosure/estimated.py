"""Risk in the population that sampling weights estimate: of classes by their rows and by the people of these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..engines.individual_risk import individual_risk
from ..utils.display import Record
from ..utils.exact_sums import ExactSum
from .classes import AttackRisk
from .risk_threshold import RiskLevels

# Classes that are looked at at a time.
BLOCK = 1 << 16


@dataclass(frozen=True)
class EstimatedRisks(Record):
    """Risk of a sample in the population that its sampling weights estimate.

    rows: of the sample; people: of the population, the sum of the weights. k_map: people of the smallest class there,
    of those that have any. threshold: a risk above it counts as at risk. Of a row whose class has f rows with weights
    that sum to F: journalist: 1 / F, at most 1, and 0 where F is 0, as `reidentification_risk` of `gpupif.score`;
    individual: Benedetti & Franconi's, the expected value of 1 / F where F is negative binomial, as `individual_risk`
    there and as sdcMicro's indivRisk (method "exact"; its default "approx" has p / (f - (1-p)) for f > 2, p = f / F,
    which is higher by up to 4.1 % for f = 3, 1.3 % for f = 5 and 0.28 % for f = 10).
    reidentifications: the individual risks of all rows together, the expected number of rows that are re-identified.
    """

    rows: int
    people: float
    k_map: float
    threshold: float
    journalist: AttackRisk
    individual: AttackRisk
    reidentifications: float


class RiskSum(NamedTuple):
    """One risk of some rows: the highest, how many rows are above the threshold, and the exact sum."""

    highest: float = 0.0
    at_risk: int = 0
    sum: ExactSum = ExactSum()

    @classmethod
    def of(cls, risks: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], threshold: float) -> RiskSum:
        """Of classes with these risks and so many rows."""
        return cls(float(risks.max()), int(rows[risks > threshold].sum()), ExactSum.of(risks, rows))

    @classmethod
    def total(cls, parts: Iterable[RiskSum]) -> RiskSum:
        """Of several parts together."""
        several = [cls(), *parts]
        highest, at_risk = max(part.highest for part in several), sum(part.at_risk for part in several)
        return cls(highest, at_risk, ExactSum.total(part.sum for part in several))

    def over(self, rows: int) -> AttackRisk:
        """As a share of all rows."""
        return AttackRisk(self.highest, self.sum.over(rows), self.at_risk / rows)


class EstimatedSums(NamedTuple):
    """What is known of the estimated classes of a part of a table; several are put together exactly.

    smallest: people of the smallest class that has any, infinite where none has. levels: which individual risks occur,
    where that is asked for.
    """

    rows: int
    smallest: float
    journalist: RiskSum
    individual: RiskSum
    levels: RiskLevels | None = None

    @classmethod
    def of(
        cls,
        sizes: npt.NDArray[np.int64],
        people: npt.NDArray[np.float64],
        rows: npt.NDArray[np.int64],
        threshold: float,
        by_level: bool = False,
    ) -> EstimatedSums:
        """Of classes of so many rows in the sample and people in the population; rows: how many have such a class.

        by_level: whether it is asked for which risks occur.
        """
        blocks = [slice(start, start + BLOCK) for start in range(0, len(sizes), BLOCK)]
        parts = (cls._of_block(sizes[block], people[block], rows[block], threshold, by_level) for block in blocks)
        return cls.total(parts)

    @classmethod
    def _of_block(
        cls,
        sizes: npt.NDArray[np.int64],
        people: npt.NDArray[np.float64],
        rows: npt.NDArray[np.int64],
        threshold: float,
        by_level: bool,
    ) -> EstimatedSums:
        naive = np.divide(1.0, people, out=(people > 0).astype(np.float64), where=people > 1)
        smallest = float(people[people > 0].min(initial=np.inf))
        individual = individual_risk(sizes, people)
        journalist, own = (RiskSum.of(each, rows, threshold) for each in (naive, individual))
        return cls(int(rows.sum()), smallest, journalist, own, RiskLevels.of(individual, rows) if by_level else None)

    @classmethod
    def total(cls, parts: Iterable[EstimatedSums]) -> EstimatedSums:
        """Of several parts together."""
        several = list(parts)
        levels = [part.levels for part in several if part.levels is not None]
        return cls(
            sum(part.rows for part in several),
            min((part.smallest for part in several), default=np.inf),
            RiskSum.total(part.journalist for part in several),
            RiskSum.total(part.individual for part in several),
            RiskLevels.total(levels) if levels else None,
        )

    def risks(self, people: float, threshold: float) -> EstimatedRisks:
        """The risk that follows; people: of the population."""
        return EstimatedRisks(
            rows=self.rows,
            people=people,
            k_map=self.smallest,
            threshold=threshold,
            journalist=self.journalist.over(self.rows),
            individual=self.individual.over(self.rows),
            reidentifications=self.individual.sum.over(1),
        )
