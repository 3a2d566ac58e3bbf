"""The utility that a table lost by its treatment, from counts of its versions. Sums are whole numbers, so exact."""

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
from ..engines.base import Axis
from ..marginals.count_statistics import NEARLY_NONE, CountSums
from ..utils.display import Record
from .precision import Levels
from .released_values import ReleasedColumn
from .row_versions import AFTER, DETAIL, KEPT_AFTER, KEPT_BEFORE, Versions, VersionSums, pairs_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Utility(Record):
    """The utility that a table of n rows lost, over all columns. Rows that were taken away have all values missing.

    X is a column before, X' the column after, H entropy and I mutual information.

    entropy_lost: float, bits for each row. The sum of H(X) - H(X') over the columns; negative if noise was added. Over
        the cells that are in both tables.
    information_kept: float, 0 to 1. The sum of I(X; X') over the columns, divided by the sum of H(X); None if that is
        0. Over the cells that are in both tables.
    nonuniform_entropy_loss: float, bits. The sum over the columns of n H(X | G) + s H(G in S): G is the value at the
        released detail, S the s cells that were suppressed or taken away. Non-uniform entropy as in ARX (Gionis & Tassa
        2009; Prasser et al. 2014). For a column whose values were drawn anew: (n - s) H(X | X') over the cells that are
        left, plus s H(X in S).
    classes: int. Equivalence classes; all suppressed rows are one class.
    average_class_size: float. n / classes (ARX's AECS).
    normalized_class_size: float. n / classes / k (C_avg, LeFevre, DeWitt & Ramakrishnan 2006); None without k.
    k: int. The divisor of the normalised class size; None if all rows are suppressed and the caller gave none.
    discernibility: int. The sum of the squares of the sizes of classes, and n for each suppressed row (DM, Bayardo &
        Agrawal 2005).
    discernibility_unsuppressed: int. The sum of the squares of the sizes of the classes of all rows at the released
        detail, as if no row was suppressed (DM*, ARX's monotonic variant).
    precision: float, 0 to 1. 1 - the mean of level / height of the hierarchies over the cells; suppressed cells count
        as the top (Sweeney 2002). A quasi-identifier that stayed as it was has level 0, also without a hierarchy.
        None without hierarchies.
    mutual_information_kept: float, 0 to 1. The sum of I(X'; Y') over the pairs of columns that are left and functions
        of their values before, divided by the sum of I(X; Y); each over the rows in which both tables have both cells.
        None if there is no such pair with I(X; Y) above 0.
    total_variation: float, 0 to 1. The largest of a column.
    pair_total_variation: float, 0 to 1. The largest of a pair of columns that are left; None without
        pairs.
    emd: float, 0 to 1. The largest earth mover's distance of a column, as a share of the longest distance.
    cells: int. Cells of the columns that are left.
    cells_changed: int. Cells in the columns that are left whose value changed or became missing.
    cells_suppressed: int. Cells in the columns that are left whose value became missing.
    rows_changed: int. Rows with a cell in the columns that are left whose value changed or became missing.
    rows_suppressed: int. Rows whose values in the columns that are left all became missing, or that were taken away.
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
    """The information of a column in the cells that are in both tables, in units of bits (see `LOG_BITS`).

    before: n H(X). after: n H(X'). mutual: n I(X; X'). rows: n, the number of these cells.
    """

    before: int
    after: int
    mutual: int
    rows: int

    @classmethod
    def from_column(cls, column: ReleasedColumn) -> ColumnInformation:
        """Return the information of a column."""
        before, after = column.kept
        rows = int(before.sum())
        whole, first, second = (CountSums.from_counts(own).logs.units for own in (np.array([rows]), before, after))
        # If all values became missing, they carry no information on the values before.
        joint = first if column.is_lost else column.joint.logs.units
        return cls(whole - first, whole - second, whole + joint - first - second, rows)

    @property
    def kept(self) -> float:
        """The ratio I(X; X') / H(X); NaN if H(X) is 0."""
        return _share(self.mutual / self.unit, self.before / self.unit)

    @property
    def bits(self) -> tuple[float, float, float]:
        """The entropies H(X) and H(X'), and H(X) - H(X'), in bits; each is rounded once."""
        return self.before / self.unit, self.after / self.unit, (self.before - self.after) / self.unit

    @property
    def unit(self) -> int:
        """The divisor that turns units into bits for each row."""
        return int(max(1, self.rows) << LOG_BITS)


def _share(part: float, whole: float) -> float:
    """Return part / whole; NaN if the whole is 0, and 0 if the part is no larger than a rounding error."""
    return math.nan if whole <= 0 else part / whole if part >= NEARLY_NONE else 0.0


def nonuniform_entropy_loss(column: ReleasedColumn) -> float:
    """Return the non-uniform entropy loss of a column in bits, see `Utility`."""
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
    """Return the rows with each value at the released detail. rows: the rows with each value before."""
    at_detail = np.zeros(column.size, np.int64)
    np.add.at(at_detail, column.detail, rows)
    return at_detail


def measure_columns(
    versions: Versions, columns: Sequence[ReleasedColumn], levels: Levels, distances: Mapping[Hashable, Any]
) -> pd.DataFrame:
    """Return the figures of columns: one row for each column, see `Comparison`."""
    import pandas as pd

    rows = versions.rows
    records = []
    for column, sums in zip(columns, versions.columns, strict=True):
        information = ColumnInformation.from_column(column)
        before, after, lost = information.bits
        left = column.kind != "dropped"
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
                "cells_changed": column.joint.changed if left else 0,
                "cells_suppressed": column.joint.suppressed if left else 0,
                "detail": column.kind,
            }
        )
    index = pd.Index([column.name for column in columns], name="column", tupleize_cols=False)
    return pd.DataFrame(records, index=index)


def measure_pairs(versions: Versions, columns: Sequence[ReleasedColumn]) -> pd.DataFrame:
    """Return the figures of pairs of columns: one row for each pair, see `Comparison`."""
    import pandas as pd

    records = []
    for (one, other), sums in zip(pairs_of(columns), versions.pairs, strict=True):
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
                # Functions of X and Y have no more mutual information than X and Y: more is a rounding error.
                "mutual_information_kept": min(1.0, _share(after, before)) if functions and before else math.nan,
                "total_variation": sums.moved / (2 * versions.rows),
            }
        )
    names = ["column_1", "column_2", "mutual_information_before", "mutual_information_after"]
    return pd.DataFrame(records, columns=[*names, "mutual_information_kept", "total_variation"])


def _mutual(pair: VersionSums, one: VersionSums, other: VersionSums) -> float:
    """Return I(X; Y) in bits; 0 if it is no larger than a rounding error.

    pair, one, other: the sums of the pair and of each of its columns, over the same rows.
    """
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
    """Return the utility that the table lost over all columns.

    k: the divisor of the class size; None for the smallest class of unsuppressed rows.
    """
    rows = versions.rows
    information = [ColumnInformation.from_column(column) for column in columns]
    known = math.fsum(column.bits[0] for column in information)
    mutual = math.fsum(column.mutual / column.unit for column in information)
    functions = pairs[pairs["mutual_information_kept"].notna()]
    classes, hidden = versions.classes.versions[AFTER], versions.classes.hidden
    class_count = classes.classes + (hidden > 0)
    own = k if k is not None else classes.smallest
    size = rows / class_count
    # If no row was suppressed, hidden rows had no values before either: they are a class like any other.
    suppressed = hidden * (rows if versions.rows_suppressed else hidden)
    return Utility(
        entropy_lost=math.fsum(by_column["entropy_lost"]),
        information_kept=_share(mutual, known) if known else None,
        nonuniform_entropy_loss=math.fsum(by_column["nonuniform_entropy_loss"]),
        classes=class_count,
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
        cells=rows * sum(column.kind != "dropped" for column in columns),
        cells_changed=int(by_column["cells_changed"].sum()),
        cells_suppressed=int(by_column["cells_suppressed"].sum()),
        rows_changed=versions.rows_changed,
        rows_suppressed=versions.rows_suppressed,
    )


def _ratio(pairs: pd.DataFrame) -> float | None:
    """Return the sum of the mutual information of pairs after over the sum before; None without pairs."""
    if not len(pairs):
        return None
    before, after = (math.fsum(pairs[f"mutual_information_{when}"]) for when in ("before", "after"))
    # Likewise for each pair: see `measure_pairs`.
    return float(min(1.0, after / before))


def earth_movers_distance(column: ReleasedColumn, rows: int, distance: Any) -> float:
    """Return the earth mover's distance of a column, as a share of the longest distance, 0 to 1.

    The distance is between the distributions before, at the released detail, and after. distance: the distance of
    values, as in `gpupif.score`.
    """
    detail = np.zeros(column.size, np.int64)
    np.add.at(detail, column.detail, column.before)
    moved = detail - column.after
    used = np.flatnonzero((detail > 0) | (column.after > 0))
    known = used[used < column.shared.missing]
    labels = column.shared.labels.take(pa.array(known))
    values = Column(column.name, np.empty(0, np.uint8), detail[used], labels, missing=len(known) < len(used))
    # A share above 0 says that the value occurs, before or after.
    shares = (detail + column.after)[used] / (2 * rows)
    axis = make_axis(values, Prior(values, shares, np.zeros(len(used), np.int64), LOG_BITS, 0.0, None), distance)
    return _transport(axis, moved[used]) / (rows * axis.longest)


def _transport(axis: Axis, moved: npt.NDArray[np.int64]) -> float:
    """Return the sum of the distances over which rows are moved. moved: by value the rows that leave the value."""
    if axis.kind == walks.NOMINAL:
        return int(np.abs(moved).sum()) / 2
    in_order = moved[axis.order]
    if axis.kind == walks.ORDERED:
        return float(int(np.abs(np.cumsum(in_order)).sum()))
    # The surplus or deficit of each node crosses the edge to its parent, which is half a level long.
    nodes = np.zeros(len(axis.masses), np.int64)
    for level in axis.nodes:
        np.add.at(nodes, level, in_order)
    return int(np.abs(nodes).sum()) / 2
