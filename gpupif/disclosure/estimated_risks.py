"""Risk in the population that sampling weights estimate, from the rows and the people of each equivalence class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..engines.individual_risk import individual_risk
from ..utils.display import Record
from ..utils.exact_sums import ExactSum
from .class_risks import AttackRisk
from .risk_threshold import KeyedSums

# The number of classes whose risks are computed at once.
BLOCK = 1 << 16


@dataclass(frozen=True)
class EstimatedRisks(Record):
    """The risk of a sample in the population that its sampling weights estimate.

    A class has f rows in the sample and F people in the population, the sum of the weights of its rows.

    rows: int. Rows of the sample.
    people: float. People of the population, the sum of all weights.
    k_map: float. People of the smallest class that has any.
    threshold: float. A risk above the threshold counts as at risk.
    journalist: AttackRisk. The risk 1 / F, at most 1, and 0 if F is 0: `reidentification_risk` of `gpupif.score`.
    individual: AttackRisk. The individual risk of Benedetti & Franconi: `individual_risk` of `gpupif.score`.
    reidentifications: float. The sum of the individual risks of all rows: the expected number of re-identified rows.

    The individual risk is the expected value of 1 / F if F is negative binomial. sdcMicro's indivRisk has the same with
    method "exact". Its default "approx" is p / (f - (1-p)) for f > 2, with p = f / F. "approx" is higher by up to 4.1 %
    for f = 3, 1.3 % for f = 5 and 0.28 % for f = 10.
    """

    rows: int
    people: float
    k_map: float
    threshold: float
    journalist: AttackRisk
    individual: AttackRisk
    reidentifications: float


class RiskSum(NamedTuple):
    """The sums of one risk over some rows.

    highest: the highest risk. at_risk: rows with a risk above the threshold. sum: the exact sum of the risks.
    """

    highest: float = 0.0
    at_risk: int = 0
    sum: ExactSum = ExactSum()

    @classmethod
    def from_risks(cls, risks: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], threshold: float) -> RiskSum:
        """Return the sums over classes. risks: of a row of each class. rows: rows of each class."""
        return cls(float(risks.max()), int(rows[risks > threshold].sum()), ExactSum.from_numbers(risks, rows))

    @classmethod
    def total(cls, parts: Iterable[RiskSum]) -> RiskSum:
        """Return the sums over several partitions."""
        sums = [cls(), *parts]
        highest, at_risk = max(part.highest for part in sums), sum(part.at_risk for part in sums)
        return cls(highest, at_risk, ExactSum.total(part.sum for part in sums))

    def over(self, rows: int) -> AttackRisk:
        """Return the risk of a table of `rows` rows."""
        return AttackRisk(self.highest, self.sum.over(rows), self.at_risk / rows)


class EstimatedSums(NamedTuple):
    """The sums over the estimated classes of a partition. The sums of partitions add up exactly.

    rows: rows of the sample. smallest: people of the smallest class that has any, infinite if none has. rows_of_risk:
    the number of rows by their individual risk; None if not asked for.
    """

    rows: int
    smallest: float
    journalist: RiskSum
    individual: RiskSum
    rows_of_risk: KeyedSums | None = None

    @classmethod
    def from_classes(
        cls,
        sizes: npt.NDArray[np.int64],
        people: npt.NDArray[np.float64],
        rows: npt.NDArray[np.int64],
        threshold: float,
        by_risk: bool = False,
    ) -> EstimatedSums:
        """Return the sums over some classes.

        sizes: rows of each class in the sample.
        people: people of each class in the population.
        rows: number of rows that have this class. It is `sizes`, except if classes overlap.
        threshold: a risk above the threshold counts as at risk.
        by_risk: True if `rows_of_risk` is wanted.
        """
        blocks = []
        for start in range(0, len(sizes), BLOCK):
            block = slice(start, start + BLOCK)
            here, counts = people[block], rows[block]
            naive = np.divide(1.0, here, out=(here > 0).astype(np.float64), where=here > 1)
            individual = individual_risk(sizes[block], here)
            journalist, own = (RiskSum.from_risks(risks, counts, threshold) for risks in (naive, individual))
            smallest = float(here[here > 0].min(initial=np.inf))
            levels = KeyedSums.from_amounts(individual, counts) if by_risk else None
            blocks.append(cls(int(counts.sum()), smallest, journalist, own, levels))
        return cls.total(blocks)

    @classmethod
    def total(cls, parts: Iterable[EstimatedSums]) -> EstimatedSums:
        """Return the sums over several partitions."""
        sums = list(parts)
        levels = [part.rows_of_risk for part in sums if part.rows_of_risk is not None]
        return cls(
            sum(part.rows for part in sums),
            min((part.smallest for part in sums), default=np.inf),
            RiskSum.total(part.journalist for part in sums),
            RiskSum.total(part.individual for part in sums),
            KeyedSums.total(levels) if levels else None,
        )

    def risks(self, people: float, threshold: float) -> EstimatedRisks:
        """Return the risk of all rows. people: of the population."""
        return EstimatedRisks(
            rows=self.rows,
            people=people,
            k_map=self.smallest,
            threshold=threshold,
            journalist=self.journalist.over(self.rows),
            individual=self.individual.over(self.rows),
            reidentifications=self.individual.sum.over(1),
        )
