"""How well sets of columns tell rows apart: distinction and separation (Motwani and Xu 2007), in whole numbers.

Of one column that is encoded: ``Separation.of_counts(column.counts, rows).distinction``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .count_sums import CountSums


class Separation(NamedTuple):
    """What a set of columns makes of the rows of a table.

    rows: of the table, one at least. classes: of rows that agree on the set. together: over all rows, the other rows of
    their classes: each pair of rows that agree counts twice.
    """

    rows: int
    classes: int
    together: int

    @classmethod
    def of_counts(cls, counts: npt.NDArray[np.integer], rows: int) -> Separation:
        """By the rows of each class; those of 0 rows are none."""
        return cls(rows, int(np.count_nonzero(counts)), CountSums.of(counts).together)

    @classmethod
    def total(cls, parts: Iterable[Separation]) -> Separation:
        """Of several parts of a table, one at least, none of which has rows of another's classes; rows: of all."""
        several = list(parts)
        return cls(several[0].rows, sum(one.classes for one in several), sum(one.together for one in several))

    @property
    def pairs(self) -> int:
        """Ordered pairs of different rows of the table."""
        return self.rows * (self.rows - 1)

    @property
    def distinction(self) -> float:
        """The most rows among which no two agree, as a share of all: classes / rows."""
        return self.classes / self.rows

    @property
    def separation(self) -> float:
        """The share of the pairs of rows that differ on the set; 1.0 of a single row, which has none to agree with."""
        return (self.pairs - self.together) / self.pairs if self.pairs else 1.0
