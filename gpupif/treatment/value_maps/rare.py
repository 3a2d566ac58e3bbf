"""Rare values pooled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import text_of, texts
from ...utils.validation import whole_number
from ..base import ColumnValues, Mapper, Tools, ValueMap, WorkingTable
from .extremes import check_label
from .new_values import kept, typed

OTHER = "other"


@dataclass(frozen=True)
class Rare(ValueMap):
    """Pool values that are in few rows.

    below: values in fewer rows are pooled. label: what stands for them, a text or a number; a number leaves a column of
    numbers one.

    Where the pooled values together, and those that were the label before, are in fewer rows than `below` still, the
    next rarest are pooled with them until they are not (of equally rare ones the first in ascending order): a group
    that is rare itself would hide nothing. So every value that there is then, the label too, is in at least `below`
    rows, or it is the only one. Missing values stay missing, however few they are, and count for nothing.
    """

    do: ClassVar[str] = "rare"
    below: int
    label: float | str = OTHER

    def check(self) -> None:
        whole_number(f"rare: column {self.column!r}: below", self.below, "rows")
        check_label(self.do, self.column, self.label)

    def mapper(self, table: WorkingTable, tools: Tools) -> Mapper:
        values = table.values(self.column)
        pool = values.labels.filter(pa.array(pooled_values(values, int(self.below), self.label)))

        def mapper(values: pa.Array) -> pa.Array:
            new = typed([self.label], values.type).take(pa.array(np.zeros(len(values), np.int64)))
            return kept(new, np.asarray(pc.is_in(values, pool)), values)

        return mapper


def pooled_values(values: ColumnValues, below: int, label: float | str) -> npt.NDArray[np.bool_]:
    """Which values are to be pooled, see `Rare`."""
    counts = values.counts
    pooled = counts < below
    if not pooled.any():
        return pooled
    pooled |= np.asarray(pc.equal(texts(values.labels), text_of(label)))
    others = np.flatnonzero(~pooled)
    rarest = others[np.argsort(counts[others], kind="stable")]
    together = np.cumsum(np.append(counts[pooled].sum(), counts[rarest]))
    pooled[rarest[: np.searchsorted(together, below)]] = True
    return pooled
