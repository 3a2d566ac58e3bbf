"""What a table lost by its treatment, from counts of its three versions; sums are of whole numbers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpupif.kernels import walks
from gpupif.kernels.log_units import LOG_BITS

from ..attack.distances import make_axis
from ..attack.priors import Prior
from ..encoding.column import Column
from ..engines.axis import Axis
from ..marginals.independence import NEARLY_NONE
from ..utils.display import Record
from ..utils.information import Sizes
from .precision import Levels
from .released import ReleasedColumn
from .versions import AFTER, BEFORE, DETAIL, SetSums, Versions, pairs_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Utility(Record):
    """What a table lost, over all columns; n rows, those that were taken away with all their values missing.

    entropy_lost: the sum over the columns X of H(X) - H(X'), bits a row (negative where noise was added).
    nonuniform_entropy_loss: the sum of n H(X | X'), bits (Gionis & Tassa 2009; ARX's non-uniform entropy).

    classes: equivalence classes, suppressed rows being one; average_class_size: n / classes (ARX's AECS);
    normalized_class_size: that over k (C_avg, LeFevre, DeWitt & Ramakrishnan 2006). discernibility: the sum of the
    squares of the sizes of classes, but n for each suppressed row (DM, Bayardo & Agrawal 2005);
    discernibility_unsuppressed: that sum over the classes of all rows at the released detail, as if none was suppressed
    (DM*, ARX's monotonic variant).

    precision: 1 - the mean over cells of level / height of their hierarchies, suppressed ones at the top (Sweeney
    2002); None without a plan that has hierarchies. mutual_information_kept: the sum of I(X'; Y') over all pairs of
    columns, divided by that of I(X; Y); None where that is 0. total_variation, pair_total_variation: the largest of a
    column, and of a pair. emd: the largest of a column.

    cells, cells_changed, cells_suppressed: of all columns, those dropped too; rows_changed: in which a cell of the
    columns that are left is another; rows_suppressed: without any value left in these, or taken away.
    """

    entropy_lost: float
    nonuniform_entropy_loss: float
    classes: int
    average_class_size: float
    normalized_class_size: float | None
    k: int | None
    discernibility: int
    discernibility_unsuppressed: int
    precision: float | None
    mutual_information_kept: float | None
    total_variation: float
    pair_total_variation: float | None
    emd: float
    cells: int
    cells_changed: int
    cells_suppressed: int
    rows_changed: int
    rows_suppressed: int


class Bits:
    """Entropies, by the sums of c log2 c over counts that make up so many rows."""

    def __init__(self, rows: int) -> None:
        self._whole = Sizes.of(np.array([rows], np.int64)).log_sum().units
        self._rows = rows

    def _bits(self, units: int) -> float:
        return float(units / (self._rows << LOG_BITS))

    def entropy(self, sums: SetSums, version: int) -> float:
        """H(X)."""
        return max(0.0, self._bits(self._whole - sums.versions[version].logs.units))

    def lost(self, sums: SetSums) -> float:
        """H(X) - H(X'), rounded once."""
        return self._bits(self.lost_units(sums))

    def lost_units(self, sums: SetSums) -> int:
        """The same, times the rows, in units of the logarithms."""
        return sums.versions[AFTER].logs.units - sums.versions[BEFORE].logs.units

    def mutual(self, pair: SetSums, first: SetSums, second: SetSums, version: int) -> float:
        """I(X; Y); 0 where it is no more than rounding may make."""
        joint, x, y = (sums.versions[version].logs.units for sums in (pair, first, second))
        bits = self._bits(self._whole + joint - x - y)
        return bits if bits >= NEARLY_NONE else 0.0


def measure_columns(
    versions: Versions, columns: Sequence[ReleasedColumn], levels: Levels, distances: Mapping[Hashable, Any]
) -> pd.DataFrame:
    """One row a column, see `Comparison`."""
    import pandas as pd

    bits, rows = Bits(versions.rows), versions.rows
    records = []
    for column, sums in zip(columns, versions.columns, strict=True):
        given = sums.versions[AFTER].logs.units - column.joint.logs.units
        records.append(
            {
                "values_before": int(np.count_nonzero(column.before[:-1])),
                "values_after": int(np.count_nonzero(column.after[:-1])),
                "entropy_before": bits.entropy(sums, BEFORE),
                "entropy_after": bits.entropy(sums, AFTER),
                "entropy_lost": bits.lost(sums),
                "nonuniform_entropy_loss": max(0, given) / (1 << LOG_BITS),
                "total_variation": sums.moved / (2 * rows),
                "emd": earth_movers_distance(column, rows, distances.get(column.name)),
                "precision": levels.precision(column, rows),
                "cells_changed": column.joint.changed,
                "cells_suppressed": column.joint.suppressed,
                "detail": column.kind,
            }
        )
    index = pd.Index([column.name for column in columns], name="column", tupleize_cols=False)
    return pd.DataFrame(records, index=index)


def measure_pairs(versions: Versions, columns: Sequence[ReleasedColumn]) -> pd.DataFrame:
    """One row a pair of columns, see `Comparison`."""
    import pandas as pd

    bits, records = Bits(versions.rows), []
    for (one, other), sums in zip(pairs_of(len(columns)), versions.pairs, strict=True):
        alone = versions.columns[one], versions.columns[other]
        before, after = (bits.mutual(sums, *alone, version) for version in (BEFORE, AFTER))
        records.append(
            {
                "column_1": columns[one].name,
                "column_2": columns[other].name,
                "mutual_information_before": before,
                "mutual_information_after": after,
                "mutual_information_kept": after / before if before else math.nan,
                "total_variation": sums.moved / (2 * versions.rows),
            }
        )
    names = ["column_1", "column_2", "mutual_information_before", "mutual_information_after"]
    return pd.DataFrame(records, columns=[*names, "mutual_information_kept", "total_variation"])


def measure_all(
    versions: Versions,
    columns: Sequence[ReleasedColumn],
    by_column: pd.DataFrame,
    pairs: pd.DataFrame,
    levels: Levels,
    k: int | None,
) -> Utility:
    """What the table lost over all columns. k: of the target; None: that of the rows that are not suppressed."""
    rows, bits = versions.rows, Bits(versions.rows)
    classes, hidden = versions.classes.versions[AFTER], versions.classes.hidden
    several = classes.classes + (hidden > 0)
    own = k if k is not None else classes.smallest
    size = rows / several
    # Rows that had no values before are a class like others.
    suppressed = hidden * (rows if versions.rows_suppressed else hidden)
    known = math.fsum(pairs["mutual_information_before"])
    return Utility(
        entropy_lost=sum(map(bits.lost_units, versions.columns)) / (rows << LOG_BITS),
        nonuniform_entropy_loss=math.fsum(by_column["nonuniform_entropy_loss"]),
        classes=several,
        average_class_size=size,
        normalized_class_size=None if own is None else size / own,
        k=own,
        discernibility=classes.squares + suppressed,
        discernibility_unsuppressed=versions.classes.versions[DETAIL].squares,
        precision=levels.mean_precision(columns, rows),
        mutual_information_kept=math.fsum(pairs["mutual_information_after"]) / known if known else None,
        total_variation=float(by_column["total_variation"].max()),
        pair_total_variation=float(pairs["total_variation"].max()) if len(pairs) else None,
        emd=float(by_column["emd"].max()),
        cells=rows * len(columns),
        cells_changed=int(by_column["cells_changed"].sum()),
        cells_suppressed=int(by_column["cells_suppressed"].sum()),
        rows_changed=versions.rows_changed,
        rows_suppressed=versions.rows_suppressed,
    )


def earth_movers_distance(column: ReleasedColumn, rows: int, distance: Any) -> float:
    """How far the values of a column were moved, beyond the released detail, as a share of the longest distance.

    The earth mover's distance of the distributions at the released detail, before and after; distance: as of
    `gpupif.score`.
    """
    detail = np.zeros(column.size, np.int64)
    np.add.at(detail, column.detail, column.before)
    moved = detail - column.after
    used = np.flatnonzero((detail > 0) | (column.after > 0))
    known = used[used < column.shared.missing]
    labels = column.shared.labels.take(pa.array(known))
    values = Column(column.name, np.empty(0, np.uint8), detail[used], labels, missing=len(known) < len(used))
    shares = detail[used] / rows
    axis = make_axis(values, Prior(values, shares, np.zeros(len(used), np.int64), LOG_BITS, 0.0, None), distance)
    return _transport(axis, moved[used]) / (rows * axis.longest)


def _transport(axis: Axis, moved: npt.NDArray[np.int64]) -> float:
    """What it takes to move so many rows from value to value."""
    if axis.kind == walks.NOMINAL:
        return int(np.abs(moved).sum()) / 2
    in_order = moved[axis.order]
    if axis.kind == walks.ORDERED:
        return float(int(np.abs(np.cumsum(in_order)).sum()))
    # Each node gives or takes what it has too much or too little of, half a level up.
    nodes = np.zeros(len(axis.masses), np.int64)
    for level in axis.nodes:
        np.add.at(nodes, level, in_order)
    return int(np.abs(nodes).sum()) / 2
