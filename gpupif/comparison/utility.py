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
from ..utils.information import entropy_of_counts
from .precision import Levels
from .released_values import ReleasedColumn
from .row_versions import AFTER, DETAIL, KEPT_AFTER, KEPT_BEFORE, Versions, VersionSums, pairs_of

if TYPE_CHECKING:
    import pandas as pd

# The figures of lost information; their sum is 1 - information_kept.
LOST = ("information_lost_coarser", "information_lost_suppressed", "information_lost_changed")


@dataclass(frozen=True)
class Utility(Record):
    """The utility that a table of n rows lost, over all columns. Rows that were taken away count as suppressed.

    X is a column before, X' the column after, H entropy and I mutual information.

    entropy_lost: float, bits for each row. The sum of H(X) - H(X') over the columns. Each is the entropy of a table by
        itself, as `gpupif.score` finds it: missing values are a value. Negative if noise or missing values were added.
    information_kept: float, 0 to 1. The share of the bits of the cells before that the cells after have; None if there
        were none. A cell has -log2 p bits, where p is the share of its value before; the cells of a column have
        n H(X). A cell released at a coarser detail keeps -log2 of the share of all values of that detail. A suppressed
        cell keeps nothing, and so does a number that became another number, unless several values became that number.
        Other values that were drawn anew keep what they say of the values before on average, by I(X; X').
    information_lost_coarser: float, 0 to 1. The share that coarser values lose, of all rows, as if none was suppressed:
        what `gpupif.protect` calls lost for the objective "entropy". In a column that a plan recodes row by row: the
        share that the cells that are left lose, each at its own level; the others lose all as suppressed ones.
    information_lost_suppressed: float, 0 to 1. The share that suppressed cells and rows lose at the released detail.
    information_lost_changed: float, 0 to 1. The share that other values lose. Kept and lost shares add up to 1.
    nonuniform_entropy_loss: float, bits. The sum over the columns of n H(X | G) + s H(G in S): G is the value at the
        released detail, S the s cells that were suppressed or taken away. Non-uniform entropy as in ARX (Gionis & Tassa
        2009; Prasser et al. 2014). For a column whose values were drawn anew, or recoded row by row:
        (n - s) H(X | X') over the cells that are left, plus s H(X in S).
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
    cells: int. Cells of the columns and rows that are left.
    cells_changed: int. Those of these cells whose value changed or became missing, as the record of `gpupif.treat`
        counts them.
    cells_suppressed: int. Those of these cells whose value became missing.
    rows_changed: int. Rows with a cell in the columns that are left whose value changed or became missing.
    rows_suppressed: int. Rows whose values in the columns that are left all became missing, or that were taken away.
    """

    entropy_lost: float
    information_kept: float | None
    information_lost_coarser: float | None
    information_lost_suppressed: float | None
    information_lost_changed: float | None
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
    """The information of a column before, and what the table after lost of it: bits over all rows, see `Utility`.

    before: n H(X). coarser, suppressed, changed: the three parts that were lost.
    """

    before: float
    coarser: float
    suppressed: float
    changed: float

    @classmethod
    def from_column(cls, column: ReleasedColumn) -> ColumnInformation:
        """Return the information of a column."""
        rows = int(column.before.sum())
        whole, own = (CountSums.from_counts(counts).logs.units for counts in (np.array([rows]), column.before))
        at_detail, coarser, changed = column.before_at_detail, 0.0, 0.0
        sizes = at_detail[column.detail]
        if column.groups is not None:
            # Each cell that is left has the detail of its own level. The others have none, and lose all that they said.
            sizes, (kept, released) = column.before, column.kept
            coarser = max(0.0, _surprise(sizes, kept, rows) - _surprise(column.groups, released, rows))
        elif column.is_drawn_anew:
            # Values that are no numbers keep what they say of the values before, on average.
            sizes = column.before
            changed = _bits(CountSums.from_counts(column.kept[1]).logs.units - column.joint.logs.units)
        else:
            coarser = _bits(CountSums.from_counts(at_detail).logs.units - own)
            changed = _surprise(sizes, column.replaced, rows)
        return cls(_bits(whole - own), coarser, _surprise(sizes, column.gone, rows), changed)


def _bits(units: int) -> float:
    """Return units as bits."""
    return float(max(0, units) / (1 << LOG_BITS))


def _surprise(sizes: npt.NDArray[np.int64], some: npt.NDArray[np.int64], rows: int) -> float:
    """Return the sum of -log2 p over some cells, where p is the share of the rows that have a cell's value or group.

    sizes: by number of a value, the rows that have it, or its group. some: the cells, by number. rows: all rows.
    """
    there = np.flatnonzero(some)
    pairs = zip(some[there].tolist(), sizes[there].tolist(), strict=True)
    return math.fsum(cells * math.log2(rows / size) for cells, size in pairs)


def information_shares(columns: Sequence[ColumnInformation]) -> dict[str, float]:
    """Return the shares of the information of columns that are kept and lost, by name of a figure; NaN for none."""
    before, *lost = (math.fsum(parts) for parts in zip(*columns, strict=True))
    if not before:
        return dict.fromkeys(("information_kept", *LOST), math.nan)
    shares = [part / before for part in lost]
    return {"information_kept": max(0.0, 1 - math.fsum(shares)), **dict(zip(LOST, shares, strict=True))}


def _share(part: float, whole: float) -> float:
    """Return part / whole; NaN if the whole is 0, and 0 if the part is no larger than a rounding error."""
    return math.nan if whole <= 0 else part / whole if part >= NEARLY_NONE else 0.0


def nonuniform_entropy_loss(column: ReleasedColumn) -> float:
    """Return the non-uniform entropy loss of a column in bits, see `Utility`."""
    gone = column.gone
    suppressed = int(gone.sum())
    if column.kind in ("perturbed", "levels"):
        lost = CountSums.from_counts(column.kept[1]).logs.units - column.joint.logs.units
        hidden = gone
    else:
        detail, hidden = column.before_at_detail, column.at_detail(gone)
        lost = CountSums.from_counts(detail).logs.units - CountSums.from_counts(column.before).logs.units
    lost += CountSums.from_counts(np.array([suppressed])).logs.units - CountSums.from_counts(hidden).logs.units
    return float(max(0, lost) / (1 << LOG_BITS))


def measure_columns(
    versions: Versions, columns: Sequence[ReleasedColumn], levels: Levels, distances: Mapping[Hashable, Any]
) -> pd.DataFrame:
    """Return the figures of columns: one row for each column, see `Comparison`."""
    import pandas as pd

    rows = versions.rows
    records = []
    for column, sums in zip(columns, versions.columns, strict=True):
        information = ColumnInformation.from_column(column)
        # As `gpupif.score` finds them in each table: missing values are a value, rows taken away are in no table.
        of_table = column.after.copy()
        of_table[column.shared.missing] -= column.joint.away.sum()
        before, after = (entropy_of_counts(counts) for counts in (column.before, of_table))
        left = column.kind != "dropped"
        records.append(
            {
                "values_before": int(np.count_nonzero(column.before[:-1])),
                "values_after": int(np.count_nonzero(column.after[:-1])),
                "entropy_before": before,
                "entropy_after": after,
                "entropy_lost": before - after,
                **information_shares([information]),
                "nonuniform_entropy_loss": nonuniform_entropy_loss(column),
                "total_variation": sums.moved / (2 * rows),
                "emd": earth_movers_distance(column, rows, distances.get(column.name)),
                "precision": levels.precision(column, rows),
                "cells_changed": column.joint.changed if left else 0,
                "cells_suppressed": int(column.joint.hidden.sum()) if left else 0,
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
    lacking: int,
) -> Utility:
    """Return the utility that the table lost over all columns.

    k: the divisor of the class size; None for the smallest class of unsuppressed rows. lacking: the rows that the table
    after lacks.
    """
    rows = versions.rows
    information = [ColumnInformation.from_column(column) for column in columns]
    functions = pairs[pairs["mutual_information_kept"].notna()]
    classes, hidden = versions.classes.versions[AFTER], versions.classes.hidden
    class_count = classes.classes + (hidden > 0)
    own = k if k is not None else classes.smallest
    size = rows / class_count
    # If no row was suppressed, hidden rows had no values before either: they are a class like any other.
    suppressed = hidden * (rows if versions.rows_suppressed else hidden)
    return Utility(
        entropy_lost=math.fsum(by_column["entropy_lost"]),
        **{name: None if share != share else share for name, share in information_shares(information).items()},
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
        cells=(rows - lacking) * sum(column.kind != "dropped" for column in columns),
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
    detail = column.before_at_detail
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
