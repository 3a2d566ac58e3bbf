"""Risk of households: that at least one of the rows of a household is re-identified, at table level and of each row."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import individual_risk as kernels
from gpupif.kernels.individual_risk import MOST_UPPER

from ..utils.display import Record
from .classes import AttackRisk
from .keyed_sums import KeyedSums


@dataclass(frozen=True)
class HouseholdRisks(Record):
    """Risk of the households of a table: the rows that have the same value in a column.

    The risk of a household is that at least one of its rows is re-identified, 1 - the product of 1 - r over its rows; r
    is the row's individual risk, without sampling weights 1 / the rows of its class. households: how many. risk: the
    highest, the mean over the households, and the share of them at risk. reidentified: households expected to be found,
    the sum of their risks; rows: of these households, the sum over all rows of the risk of the row's household, and
    row_share the same as a share of all rows (sdcMicro's hier_risk_ER and hier_risk).
    """

    column: Any
    households: int
    threshold: float
    risk: AttackRisk
    reidentified: float
    rows: float
    row_share: float


class HouseholdSums(NamedTuple):
    """What is known of households from some rows: of each the sum of -ln(1 - r), as kernels keep it, by its code."""

    sums: KeyedSums = KeyedSums()

    @classmethod
    def of(
        cls, risks: npt.NDArray[np.float64], times: npt.NDArray[np.int64], households: npt.NDArray[Any]
    ) -> HouseholdSums:
        """Of rows with these risks, each so many times, in the households of these codes."""
        codes, place = np.unique(households, return_inverse=True)
        upper, lower = np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
        kernels.add_safety(risks, times, place.reshape(-1), upper, lower)
        return cls(KeyedSums.of(codes.astype(np.int64), upper, lower))

    @classmethod
    def total(cls, parts: Iterable[HouseholdSums]) -> HouseholdSums:
        """Of several parts together."""
        return cls(KeyedSums.total(part.sums for part in parts))

    def by_code(self) -> npt.NDArray[np.float64]:
        """The risk of each household, in the order of the codes."""
        _, (upper, lower) = self.sums.whole()
        found = np.empty(len(upper))
        kernels.household_risks(np.minimum(upper, MOST_UPPER), lower, found)
        return found

    def risks(self, column: Any, sizes: npt.NDArray[np.int64], threshold: float) -> HouseholdRisks:
        """The risk that follows; sizes: rows by household."""
        each, rows = self.by_code(), int(sizes.sum())
        found, of_rows = math.fsum(each), math.fsum(each * sizes)
        return HouseholdRisks(
            column=column,
            households=len(each),
            threshold=threshold,
            risk=AttackRisk(float(each.max()), found / len(each), float((each > threshold).mean())),
            reidentified=found,
            rows=of_rows,
            row_share=of_rows / rows,
        )
