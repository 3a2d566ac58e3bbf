"""What became of the values of each column: joint counts of its values before and after, and the released detail."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..encoding.column import Column, value_order
from ..encoding.merge import ColumnMerger, ValueCounts, label_array, number_in
from ..engines.counting import Counter
from ..errors import ColumnTypeError
from ..hierarchies.base import Hierarchy
from ..marginals.count_statistics import CountSums
from ..marginals.set_counts import CountResult, Find, SetRequest, Total
from ..utils.information import LogSum

# A function of values is believed where so large a share of the rows has a value that others have too, or where it
# leaves at most so large a share of the values.
BELIEVED = 0.5


class SharedValues(NamedTuple):
    """The values that a column has before and after, numbered together; missing ones have the last number, `missing`.

    labels: values, all different. before, after: by code of either column that number. as_text: whether the types have
    no values in common, so that values are known by their texts.
    """

    labels: pa.Array
    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    as_text: bool = False

    @property
    def missing(self) -> int:
        """The number of missing values."""
        return len(self.labels)

    @classmethod
    def of(cls, before: Column, after: Column) -> SharedValues:
        """Of a column before and after, with or without codes of rows."""
        try:
            return cls._merged([label_array(one) for one in (before, after)])
        except ColumnTypeError:
            return cls._merged([text_labels(one) for one in (before, after)], as_text=True)

    @classmethod
    def _merged(cls, labels: Sequence[pa.Array], as_text: bool = False) -> SharedValues:
        merger = ColumnMerger("")
        numbers = []
        for own in labels:
            numbers += merger.add(ValueCounts(own, np.ones(len(own), np.int64), 0))
        numbers += merger.flush()
        merged = merger.values.labels
        before, after = (np.append(number, len(merged)).astype(np.int64) for number in numbers)
        return cls(merged, before, after, as_text)

    def numbers(self, column: Column) -> npt.NDArray[np.int64]:
        """By code of a column with some of these values their numbers: codes differ where a table is read anew."""
        labels = text_labels(column) if self.as_text else label_array(column)
        known = len(labels) and not pa.types.is_null(labels.type)
        found = number_in(column.name, labels, self.labels) if known else np.empty(0, np.int64)
        return np.append(found, self.missing).astype(np.int64)

    def column(self, name: Hashable) -> Column:
        """The values as a column without rows, whose codes are their numbers."""
        counts = np.zeros(len(self.labels) + 1, np.int64)
        return Column(name, np.empty(0, np.uint8), counts, self.labels, missing=True)


def text_labels(column: Column) -> pa.Array:
    """The labels of a column as texts."""
    return pa.array(column.texts()[:-1], pa.string())


class JointCounts(NamedTuple):
    """Counts of the values of a column before and after together, in rows of some of its values before.

    values: numbers of the values before. released: by value that which most of its rows have after (the lowest of
    several), -1 where none has one. several: how many values have more than one. stays: whether any row stays missing.
    away, hidden: by value, rows that the table after lacks, and other rows whose value is suppressed. logs: sum of
    c log2 c over the joint counts of all other rows. changed: rows whose value is another; suppressed: those whose
    value is missing now.
    """

    values: npt.NDArray[np.int64]
    released: npt.NDArray[np.int64]
    several: int
    stays: bool
    away: npt.NDArray[np.int64]
    hidden: npt.NDArray[np.int64]
    logs: LogSum
    changed: int
    suppressed: int

    @classmethod
    def of(
        cls,
        shared: SharedValues,
        ranks: npt.NDArray[np.int64],
        before: npt.NDArray[np.int64],
        after: npt.NDArray[np.int64],
        there: npt.NDArray[np.bool_],
        counts: npt.NDArray[np.int64],
    ) -> JointCounts:
        """Count pairs of values, and whether the table after has their rows, all different, by how many rows have them.

        ranks: by number of a value, in order.
        """
        missing = shared.missing
        values, place = np.unique(before, return_inverse=True)
        known = after != missing
        order = np.lexsort((ranks[after[known]], -counts[known], before[known]))
        old, new = before[known][order], after[known][order]
        first = np.flatnonzero(np.append(True, old[1:] != old[:-1])) if len(old) else np.empty(0, np.int64)
        released = np.full(len(values), -1, np.int64)
        released[np.searchsorted(values, old[first])] = new[first]
        lost = ~known & (before != missing)
        away, hidden = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
        np.add.at(away, place[~there], counts[~there])
        np.add.at(hidden, place[there & lost], counts[there & lost])
        return cls(
            values,
            released,
            int((np.diff(np.append(first, len(old))) > 1).sum()),
            bool((~known & (before == missing)).any()),
            away,
            hidden,
            CountSums.from_counts(counts[there & ~lost]).logs,
            int(counts[before != after].sum()),
            int(counts[lost].sum()),
        )

    @classmethod
    def total(cls, parts: Sequence[JointCounts]) -> JointCounts:
        """Of several parts of a table, none of which has values of another."""
        values, released, several, stays, away, hidden, logs, changed, suppressed = zip(*parts, strict=True)
        return cls(
            np.concatenate(values),
            np.concatenate(released),
            sum(several),
            any(stays),
            np.concatenate(away),
            np.concatenate(hidden),
            LogSum.total(logs),
            sum(changed),
            sum(suppressed),
        )


class ReleasedColumn(NamedTuple):
    """A column before and after. name: of it. shared: its values. before, after: rows by number of a value.

    detail: by number of a value before, that of the value at the detail of the released table. kind: how that was
    found: "same" (values stand as they are), "mapped" (a function of them was released), "perturbed" (neither),
    "dropped" (nothing was released). joint: see `JointCounts`. is_lost: whether there were values and none is left.
    """

    name: Hashable
    shared: SharedValues
    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    detail: npt.NDArray[np.int64]
    kind: str
    joint: JointCounts
    is_lost: bool

    @property
    def is_function(self) -> bool:
        """Return whether the released value follows from the value, in all rows in which the cell is there after."""
        joint = self.joint
        mixed = joint.stays and bool((joint.released[joint.values == self.shared.missing] >= 0).any())
        return not joint.several and not mixed

    @property
    def gone(self) -> npt.NDArray[np.int64]:
        """Return, by number of a value before, the rows whose cell is not there after: suppressed, or taken away.

        Of a column that is lost, which is empty in all rows, only the rows that were taken away count.
        """
        found = np.zeros(self.size, np.int64)
        found[self.joint.values] = self.joint.away + (0 if self.is_lost else self.joint.hidden)
        return found

    @property
    def kept(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows by number of a value, before and after, of the cells that are there in both tables."""
        gone, after = self.gone, self.after.copy()
        after[self.shared.missing] -= gone.sum()
        return self.before - gone, after

    @property
    def detail_is_before(self) -> bool:
        """Whether values before are at the released detail as they stand."""
        own = np.arange(self.size)
        return bool((self.detail[self.before > 0] == own[self.before > 0]).all())

    @property
    def detail_is_after(self) -> bool:
        """Whether values at the released detail are those that were released, in every row."""
        joint, missing = self.joint, self.shared.missing
        if not self.after[:missing].any():
            return bool((self.detail[self.before > 0] == missing).all())
        if joint.several or joint.suppressed or (joint.stays and missing in joint.values[joint.released >= 0]):
            return False
        there = joint.released >= 0
        return bool((self.detail[joint.values[there]] == joint.released[there]).all())

    @property
    def size(self) -> int:
        """How many numbers of values there are, that of missing ones included."""
        return len(self.shared.labels) + 1


def joint_requests(columns: int) -> list[SetRequest]:
    """Return the sets to count of joined tables: each column before and after, and whether the row is there after."""
    return [SetRequest([place, columns + place, 2 * columns], [place]) for place in range(columns)]


def make_joint(columns: Sequence[Column], total: Total) -> Find:
    """Finds `JointCounts`."""
    known: dict[int, tuple[SharedValues, npt.NDArray[np.int64]]] = {}

    def find(set_: Sequence[int], counter: Counter, place: int) -> JointCounts:
        own, other, flag = set_
        if own not in known:
            shared = SharedValues.of(columns[own], columns[other])
            known[own] = shared, value_order(shared.column(own))
        shared, ranks = known[own]
        found = counter.combinations(place, ordered=False)
        before, after = shared.before[found.codes[0]], shared.after[found.codes[1]]
        there = np.asarray(columns[flag].labels)[found.codes[2]] == 1
        return JointCounts.of(shared, ranks, before, after, there, found.counts)

    return find


def released_columns(
    names: Sequence[Hashable], counted: CountResult, dropped: Collection[Hashable], perturbed: Collection[Hashable]
) -> list[ReleasedColumn]:
    """The columns before and after, from what was found of each. perturbed: columns that are known to be no function
    of what they were.
    """
    found = []
    for place, (name, parts) in enumerate(zip(names, counted.found, strict=True)):
        columns = counted.columns[place], counted.columns[len(names) + place]
        shared = SharedValues.of(*columns)
        before, after = (
            _counts(column, number, len(shared.labels) + 1)
            for column, number in zip(columns, (shared.before, shared.after), strict=True)
        )
        joint = JointCounts.total(parts)
        detail, kind = _detail(shared, before, after, joint, name in perturbed)
        kind = "dropped" if name in dropped else kind
        is_lost = bool(before[:-1].any()) and not after[:-1].any()
        found.append(ReleasedColumn(name, shared, before, after, detail, kind, joint, is_lost))
    return found


def with_groups(column: ReleasedColumn, hierarchy: Hierarchy, level: int) -> ReleasedColumn:
    """Return the column with values that were released nowhere brought to the detail of their groups at a level.

    Nothing changes where what was released does not follow from the groups.
    """
    there = np.flatnonzero(column.before[: column.shared.missing] > 0)
    released = np.full(column.size, -1, np.int64)
    released[column.joint.values] = column.joint.released
    left = there[released[there] < 0]
    if column.kind != "mapped" or column.is_lost or not len(left):
        return column
    groups = hierarchy.groups_or_null(column.shared.labels.take(pa.array(there)), level).to_pylist()
    found: dict[str, int] = {}
    for number, group in zip(there.tolist(), groups, strict=True):
        if released[number] >= 0 and found.setdefault(group, int(released[number])) != released[number]:
            return column
    detail = column.detail.copy()
    for number, group in zip(there.tolist(), groups, strict=True):
        if released[number] < 0 and group is not None:
            # Where none of its values was released, the first of them stands for a group.
            detail[number] = found.setdefault(group, number)
    return column._replace(detail=detail)


def _counts(column: Column, number: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """How many rows of a column have each of so many values; number: of each of its codes that of the value."""
    counts = np.zeros(size, np.int64)
    np.add.at(counts, number[: column.cardinality], column.counts)
    return counts


def _detail(
    shared: SharedValues,
    before: npt.NDArray[np.int64],
    after: npt.NDArray[np.int64],
    joint: JointCounts,
    perturbed: bool,
) -> tuple[npt.NDArray[np.int64], str]:
    """Of each value before the value at the released detail, and the kind (see `ReleasedColumn`)."""
    missing = shared.missing
    own = np.arange(missing + 1)
    if not after[:missing].any():
        return np.full(missing + 1, missing), "mapped" if before[:missing].any() else "same"
    detail = own.copy()
    there = joint.released >= 0
    detail[joint.values[there]] = joint.released[there]
    if joint.stays:
        detail[missing] = missing
    function = not joint.several and not perturbed and _believed(before[:missing], after[:missing])
    if not function:
        if _is_number(shared.labels.type):
            detail = own
        else:
            kept = np.append(after[:missing] > 0, after[missing] > 0)
            detail[kept] = own[kept]
    same = bool((detail[before > 0] == own[before > 0]).all())
    if function:
        return detail, "same" if same else "mapped"
    # What was changed in so many rows, but for suppressed ones, is no function.
    return detail, "same" if same and joint.changed == joint.suppressed else "perturbed"


def _believed(before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]) -> bool:
    """Whether a function from values with these counts to others tells more than that most of them are unique."""
    repeated = before[before > 1].sum()
    fewer = np.count_nonzero(after) <= BELIEVED * np.count_nonzero(before)
    return bool(fewer or repeated >= BELIEVED * before.sum())


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
