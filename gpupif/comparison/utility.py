"""What a table lost by its treatment, from counts of its three versions; sums are of whole numbers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpupif.kernels import walks
from gpupif.kernels.log_units import LOG_BITS

from ..attack.distances import make_axis
from ..attack.priors import Prior
from ..encoding.column import Column
from ..engines.axis import Axis
from ..marginals.count_statistics import NEARLY_NONE, CountSums
from ..utils.display import Record
from .precision import Levels
from .released import ReleasedColumn
from .versions import AFTER, DETAIL, KEPT_AFTER, KEPT_BEFORE, Versions, VersionSums, pairs_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Utility(Record):
    """What a table lost, over all columns; n rows, those that were taken away with all their values missing.

    entropy_lost: the sum over the columns X of H(X) - H(X'), bits a row (negative where noise was added).
    information_kept: the sum over the columns of I(X; X'), divided by that of H(X), 0 to 1; None where that is 0. Both
    are of the cells that are there in both tables.

    nonuniform_entropy_loss: bits, the sum over the columns of n H(X | G) + s H(G in S), where G is the value at the
    released detail and S are the s cells that were suppressed or taken away: non-uniform entropy as ARX has it
    (Gionis & Tassa 2009; Prasser et al. 2014). Of a column whose values were drawn anew: of the cells that are left
    H(X | X'), of the others H(X in S), each times how many these are.

    classes: equivalence classes, suppressed rows being one; average_class_size: n / classes (ARX's AECS);
    normalized_class_size: that over k (C_avg, LeFevre, DeWitt & Ramakrishnan 2006). discernibility: the sum of the
    squares of the sizes of classes, but n for each suppressed row (DM, Bayardo & Agrawal 2005);
    discernibility_unsuppressed: that sum over the classes of all rows at the released detail, as if none was suppressed
    (DM*, ARX's monotonic variant).

    precision: 1 - the mean over cells of level / height of their hierarchies, suppressed ones at the top (Sweeney
    2002); None without a plan that has hierarchies. mutual_information_kept: the sum of I(X'; Y') over the pairs of
    columns that are functions of what they were, divided by that of I(X; Y), 0 to 1; each in the rows in which both
    tables have the cells of both columns. None where that is 0, or no pair is such. total_variation,
    pair_total_variation: the largest of a column, and of a pair. emd: the largest of a column.

    cells, cells_changed, cells_suppressed: of all columns, those dropped too; rows_changed: in which a cell of the
    columns that are left is another; rows_suppressed: without any value left in these, or taken away.
    """

    entropy_lost: float
    information_kept: float | None
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


class ColumnInformation(NamedTuple):
    """Information of a column in the cells that are there in both tables, all in units of rows times bits.

    before, after: n H(X) and n H(X'). mutual: n I(X; X').
    """

    before: int
    after: int
    mutual: int
    rows: int

    @classmethod
    def of(cls, column: ReleasedColumn) -> ColumnInformation:
        """Measure a column."""
        before, after = column.kept
        rows = int(before.sum())
        whole, first, second = (CountSums.from_counts(own).logs.units for own in (np.array([rows]), before, after))
        # Where all values became missing, they say nothing of what they were.
        joint = first if column.is_lost else column.joint.logs.units
        return cls(whole - first, whole - second, whole + joint - first - second, rows)

    @property
    def kept(self) -> float:
        """I(X; X') / H(X); NaN where that is 0."""
        return _share(self.mutual / self.unit, self.before / self.unit)

    @property
    def bits(self) -> tuple[float, float, float]:
        """H(X), H(X') and H(X) - H(X'), each rounded once."""
        return self.before / self.unit, self.after / self.unit, (self.before - self.after) / self.unit

    @property
    def unit(self) -> int:
        """Return the number by which units are divided to be bits per row."""
        return int(max(1, self.rows) << LOG_BITS)


def _share(part: float, whole: float) -> float:
    """Return part / whole, NaN where that is 0; a part that is no more than rounding may make is 0."""
    return math.nan if whole <= 0 else part / whole if part >= NEARLY_NONE else 0.0


def nonuniform_entropy_loss(column: ReleasedColumn) -> float:
    """Return the non-uniform entropy loss of a column, in bits, see `Utility`."""
    gone = column.gone
    suppressed = int(gone.sum())
    if column.kind == "perturbed":
        lost = CountSums.from_counts(column.kept[1]).logs.units - column.joint.logs.units
        hidden = gone
    else:
        detail, hidden = (_at_detail(column, rows) for rows in (column.before, gone))
        lost = CountSums.from_counts(detail).logs.units - CountSums.from_counts(column.before).logs.units
    lost += CountSums.from_counts(np.array([suppressed])).logs.units - CountSums.from_counts(hidden).logs.units
    return float(max(0, lost) / (1 << LOG_BITS))


def _at_detail(column: ReleasedColumn, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the rows of values before by number of the value at the released detail."""
    found = np.zeros(column.size, np.int64)
    np.add.at(found, column.detail, rows)
    return found


def measure_columns(
    versions: Versions, columns: Sequence[ReleasedColumn], levels: Levels, distances: Mapping[Hashable, Any]
) -> pd.DataFrame:
    """Return the figures of columns, one row each, see `Comparison`."""
    import pandas as pd

    rows = versions.rows
    records = []
    for column, sums in zip(columns, versions.columns, strict=True):
        information = ColumnInformation.of(column)
        before, after, lost = information.bits
        records.append(
            {
                "values_before": int(np.count_nonzero(column.before[:-1])),
                "values_after": int(np.count_nonzero(column.after[:-1])),
                "entropy_before": before,
                "entropy_after": after,
                "entropy_lost": lost,
                "information_kept": information.kept,
                "nonuniform_entropy_loss": nonuniform_entropy_loss(column),
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
    """Return the figures of pairs of columns, one row each, see `Comparison`."""
    import pandas as pd

    records = []
    for (one, other), sums in zip(pairs_of(len(columns)), versions.pairs, strict=True):
        before, after = (
            _mutual(sums.versions[version], versions.kept(one, other, version), versions.kept(other, one, version))
            for version in (KEPT_BEFORE, KEPT_AFTER)
        )
        functions = columns[one].is_function and columns[other].is_function
        records.append(
            {
                "column_1": columns[one].name,
                "column_2": columns[other].name,
                "mutual_information_before": before,
                "mutual_information_after": after,
                # What was processed tells no more, but for rounding.
                "mutual_information_kept": min(1.0, _share(after, before)) if functions and before else math.nan,
                "total_variation": sums.moved / (2 * versions.rows),
            }
        )
    names = ["column_1", "column_2", "mutual_information_before", "mutual_information_after"]
    return pd.DataFrame(records, columns=[*names, "mutual_information_kept", "total_variation"])


def _mutual(pair: VersionSums, one: VersionSums, other: VersionSums) -> float:
    """Return I(X; Y) in bits, of rows that all three are of; 0 where it is no more than rounding may make."""
    whole = CountSums.from_counts(np.array([pair.rows])).logs.units
    units = whole + pair.logs.units - one.logs.units - other.logs.units
    bits = float(units / (max(1, pair.rows) << LOG_BITS))
    return bits if bits >= NEARLY_NONE else 0.0


def measure_all(
    versions: Versions,
    columns: Sequence[ReleasedColumn],
    by_column: pd.DataFrame,
    pairs: pd.DataFrame,
    levels: Levels,
    k: int | None,
) -> Utility:
    """What the table lost over all columns. k: of the target; None: that of the rows that are not suppressed."""
    rows = versions.rows
    information = [ColumnInformation.of(column) for column in columns]
    known = math.fsum(one.bits[0] for one in information)
    mutual = math.fsum(one.mutual / one.unit for one in information)
    functions = pairs[pairs["mutual_information_kept"].notna()]
    classes, hidden = versions.classes.versions[AFTER], versions.classes.hidden
    several = classes.classes + (hidden > 0)
    own = k if k is not None else classes.smallest
    size = rows / several
    # Rows that had no values before are a class like others.
    suppressed = hidden * (rows if versions.rows_suppressed else hidden)
    return Utility(
        entropy_lost=math.fsum(by_column["entropy_lost"]),
        information_kept=_share(mutual, known) if known else None,
        nonuniform_entropy_loss=math.fsum(by_column["nonuniform_entropy_loss"]),
        classes=several,
        average_class_size=size,
        normalized_class_size=None if own is None else size / own,
        k=own,
        discernibility=classes.squares + suppressed,
        discernibility_unsuppressed=versions.classes.versions[DETAIL].squares,
        precision=levels.mean_precision(columns, rows),
        mutual_information_kept=_ratio(functions),
        total_variation=float(by_column["total_variation"].max()),
        pair_total_variation=float(pairs["total_variation"].max()) if len(pairs) else None,
        emd=float(by_column["emd"].max()),
        cells=rows * len(columns),
        cells_changed=int(by_column["cells_changed"].sum()),
        cells_suppressed=int(by_column["cells_suppressed"].sum()),
        rows_changed=versions.rows_changed,
        rows_suppressed=versions.rows_suppressed,
    )


def _ratio(pairs: pd.DataFrame) -> float | None:
    """Return the mutual information of pairs after over that before; None without any."""
    if not len(pairs):
        return None
    before, after = (math.fsum(pairs[f"mutual_information_{when}"]) for when in ("before", "after"))
    # As of each pair.
    return float(min(1.0, after / before))


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
