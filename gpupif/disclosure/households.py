"""The risk of households: that at least one of the rows of a household is re-identified."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import individual_risk as kernels

from ..utils.display import Record
from .class_risks import AttackRisk
from .risk_threshold import KeyedSums


@dataclass(frozen=True)
class HouseholdRisks(Record):
    """The risk of the households of a table: the rows that have the same value in a column.

    The risk of a household is that at least one of its rows is re-identified: 1 - the product of 1 - r over its rows. r
    is the row's individual risk, without sampling weights 1 / the rows of its class.

    column: the name of the column.
    households: int. Households of the table.
    threshold: float. A risk above the threshold counts as at risk.
    risk: AttackRisk. The highest risk, the mean over the households, and the share of the households at risk.
    reidentified: float. The sum of the risks of all households: the expected number of re-identified households.
    rows: float. The sum over all rows of the risk of the row's household: the expected rows of these households.
    row_share: float, in [0, 1]. rows as a share of all rows.

    sdcMicro calls rows hier_risk_ER and row_share hier_risk.
    """

    column: Any
    households: int
    threshold: float
    risk: AttackRisk
    reidentified: float
    rows: float
    row_share: float

    @classmethod
    def from_sums(cls, sums: KeyedSums, column: Any, sizes: npt.NDArray[np.int64], threshold: float) -> HouseholdRisks:
        """Return the risk of households. sums: `sum_households` of all rows.

        column: name of the column. sizes: rows of each household, by code.
        """
        risks, rows = risks_by_code(sums), int(sizes.sum())
        reidentified, of_rows = math.fsum(risks), math.fsum(risks * sizes)
        return cls(
            column=column,
            households=len(risks),
            threshold=threshold,
            risk=AttackRisk(float(risks.max()), reidentified / len(risks), float((risks > threshold).mean())),
            reidentified=reidentified,
            rows=of_rows,
            row_share=of_rows / rows,
        )


def sum_households(
    risks: npt.NDArray[np.float64], multiplicities: npt.NDArray[np.int64], codes: npt.NDArray[Any]
) -> KeyedSums:
    """Return the sum of -ln(1 - risk) over the rows of each household, by code.

    risks, multiplicities, codes: for each distinct row its individual risk, how often it occurs, and its household.
        Sums are whole numbers in two parts, as the kernels add them: the order of the rows does not matter.
    """
    households, place = np.unique(codes, return_inverse=True)
    upper, lower = np.zeros(len(households), np.int64), np.zeros(len(households), np.int64)
    kernels.add_safety(risks, multiplicities, place.reshape(-1), upper, lower)
    return KeyedSums.from_amounts(households.astype(np.int64), upper, lower)


def risks_by_code(sums: KeyedSums) -> npt.NDArray[np.float64]:
    """Return the risk of each household, in the order of the codes."""
    _, (upper, lower) = sums.whole()
    risks = np.empty(len(upper))
    kernels.household_risks(np.minimum(upper, kernels.MOST_UPPER), lower, risks)
    return risks
