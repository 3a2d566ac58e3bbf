"""The released value of each value of a column: joint counts of values before and after, and the released detail."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..encoding.column import Column, value_order
from ..encoding.merge import ColumnMerger, ValueCounts, label_array, number_in
from ..engines.base import Counter
from ..errors import ColumnTypeError
from ..hierarchies.hierarchy import Hierarchy
from ..marginals.count_statistics import CountSums
from ..marginals.set_counts import CountResult, Find, SetRequest, Total
from ..treatment.value_maps.new_values import is_numeric
from ..utils.information import LogSum

# A function from values to released values is believed if at least this share of the rows has a value that other rows
# have too, or if the number of released values is at most this share of the number of values.
BELIEVED = 0.5


class SharedValues(NamedTuple):
    """The values of a column before and after, numbered together. Missing values have the last number, `missing`.

    labels: the distinct values, in the order of their numbers. before, after: int64 arrays, the number of the value of
    each code of the column before, and after. as_text: whether the texts of values are compared, since the types before
    and after have no common type.
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
    def from_columns(cls, before: Column, after: Column) -> SharedValues:
        """Return the values of a column before and after, numbered together. The columns may lack codes of rows."""
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
        """Return the number of the value of each code of a column, whose codes need not be those of `from_columns`."""
        labels = text_labels(column) if self.as_text else label_array(column)
        known = len(labels) and not pa.types.is_null(labels.type)
        numbers = number_in(column.name, labels, self.labels) if known else np.empty(0, np.int64)
        return np.append(numbers, self.missing).astype(np.int64)

    def column(self, name: Hashable) -> Column:
        """Return the values as a column without rows; the code of a value is its number."""
        counts = np.zeros(len(self.labels) + 1, np.int64)
        return Column(name, np.empty(0, np.uint8), counts, self.labels, missing=True)


def text_labels(column: Column) -> pa.Array:
    """Return the labels of a column as texts."""
    return pa.array(column.texts()[:-1], pa.string())


class JointCounts(NamedTuple):
    """Joint counts of the values of a column before and after, for some of its values before.

    values: int64 array. The numbers of the values before.
    released: int64 array. For each value the number of the value that most of its rows have after (the first in order
        of equally frequent ones); -1 if no row has a value after.
    several: int. The number of values with more than one value after.
    stays: bool. Whether any missing value stays missing.
    away: int64 array. For each value the rows that the table after lacks.
    hidden: int64 array. For each value the rows that the table after has, but whose value is suppressed.
    moved: int64 array. For each value the rows that have another value after, also if it was missing before.
    logs: the sum of c log2 c over the joint counts c of all rows that the table after has and that are not suppressed.
    suppressed: int. Rows whose value became missing, and rows with a value that the table after lacks.
    """

    values: npt.NDArray[np.int64]
    released: npt.NDArray[np.int64]
    several: int
    stays: bool
    away: npt.NDArray[np.int64]
    hidden: npt.NDArray[np.int64]
    moved: npt.NDArray[np.int64]
    logs: LogSum
    suppressed: int

    @classmethod
    def from_pairs(
        cls,
        shared: SharedValues,
        ranks: npt.NDArray[np.int64],
        before: npt.NDArray[np.int64],
        after: npt.NDArray[np.int64],
        there: npt.NDArray[np.bool_],
        counts: npt.NDArray[np.int64],
    ) -> JointCounts:
        """Return the joint counts of distinct pairs of values.

        ranks: the rank of each number of a value, in the order of the values. before, after: numbers of values, array
        (pairs). there: array (pairs), whether the table after has the rows of the pair. counts: rows of each pair.
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
        away, hidden, moved = np.zeros((3, len(values)), np.int64)
        for rows, some in ((away, ~there), (hidden, there & lost), (moved, there & known & (before != after))):
            np.add.at(rows, place[some], counts[some])
        return cls(
            values,
            released,
            int((np.diff(np.append(first, len(old))) > 1).sum()),
            bool((~known & (before == missing)).any()),
            away,
            hidden,
            moved,
            CountSums.from_counts(counts[there & ~lost]).logs,
            int(counts[lost].sum()),
        )

    @property
    def changed(self) -> int:
        """The rows that both tables have whose value changed or became missing."""
        return int(self.moved.sum() + self.hidden.sum())

    def is_function(self, missing: int) -> bool:
        """Return whether each value has one value after, in all rows whose cell is not suppressed.

        missing: the number of the missing value, which must not stay in some rows and change in others.
        """
        changes = missing in self.values[self.released >= 0]
        return not self.several and not (self.stays and changes)

    @classmethod
    def total(cls, parts: Sequence[JointCounts]) -> JointCounts:
        """Return the counts over all partitions of a table. No value before is in two partitions."""
        values, released, several, stays, away, hidden, moved, logs, suppressed = zip(*parts, strict=True)
        return cls(
            np.concatenate(values),
            np.concatenate(released),
            sum(several),
            any(stays),
            np.concatenate(away),
            np.concatenate(hidden),
            np.concatenate(moved),
            LogSum.total(logs),
            sum(suppressed),
        )


class ReleasedColumn(NamedTuple):
    """A column before and after.

    name: the name of the column.
    shared: the values before and after, numbered together.
    before: int64 array (numbers). Rows before with each value.
    after: int64 array (numbers). Rows after with each value.
    detail: int64 array (numbers). For each value before the number of the value at the released detail.
    kind: how the detail was found: "same" (values did not change), "mapped" (a function of the value was released),
        "levels" (no function, but the plan recodes rows with equal values to several levels, and the released values
        are those groups), "perturbed" (no function), "dropped" (the table after lacks the column).
    joint: the joint counts of values before and after.
    is_lost: whether the column had values before, and has none after.
    groups: int64 array (numbers), for the kind "levels", else None. Rows before that may be released as each value, at
        any of the levels.
    """

    name: Hashable
    shared: SharedValues
    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    detail: npt.NDArray[np.int64]
    kind: str
    joint: JointCounts
    is_lost: bool
    groups: npt.NDArray[np.int64] | None = None

    @property
    def is_function(self) -> bool:
        """True if the released value is a function of the value, over all rows whose cell is not suppressed."""
        return self.joint.is_function(self.shared.missing)

    @property
    def gone(self) -> npt.NDArray[np.int64]:
        """The rows whose cell is suppressed or that the table after lacks, by number of the value before.

        If the column is lost, only rows that the table after lacks count.
        """
        rows = np.zeros(self.size, np.int64)
        rows[self.joint.values] = self.joint.away + (0 if self.is_lost else self.joint.hidden)
        return rows

    @property
    def kept(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The rows with each value, before and after, of the cells that are in both tables."""
        gone, after = self.gone, self.after.copy()
        after[self.shared.missing] -= gone.sum()
        return self.before - gone, after

    @property
    def is_drawn_anew(self) -> bool:
        """True if values that are no numbers were released by no function, or were drawn anew."""
        return self.kind == "perturbed" and not is_numeric(self.shared.labels.type)

    @property
    def before_at_detail(self) -> npt.NDArray[np.int64]:
        """The rows before with each value at the released detail."""
        return self.at_detail(self.before)

    def at_detail(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the rows with each value at the released detail. rows: the rows with each value before."""
        found = np.zeros(self.size, np.int64)
        np.add.at(found, self.detail, rows)
        return found

    @property
    def replaced(self) -> npt.NDArray[np.int64]:
        """The rows in which a number became another number and not a coarser one, by number of the value before.

        A number is coarser if several values became it, wherever they occur.
        """
        rows = np.zeros(self.size, np.int64)
        if not is_numeric(self.shared.labels.type):
            return rows
        rows[self.joint.values] = self.joint.moved
        if self.kind != "perturbed":
            several = self.at_detail((self.before > 0).astype(np.int64)) > 1
            rows[several[self.detail]] = 0
        return rows

    @property
    def detail_is_before(self) -> bool:
        """True if values before are at the released detail already."""
        own = np.arange(self.size)
        return bool((self.detail[self.before > 0] == own[self.before > 0]).all())

    @property
    def detail_is_after(self) -> bool:
        """True if the value at the released detail is the released value in every row."""
        joint, missing = self.joint, self.shared.missing
        if not self.after[:missing].any():
            return bool((self.detail[self.before > 0] == missing).all())
        if joint.suppressed or not joint.is_function(missing):
            return False
        there = joint.released >= 0
        return bool((self.detail[joint.values[there]] == joint.released[there]).all())

    @property
    def size(self) -> int:
        """The number of distinct values, including missing."""
        return len(self.shared.labels) + 1


def joint_requests(columns: int) -> list[SetRequest]:
    """Return the sets to count in a joined table: each column before and after, and whether the row is there after."""
    return [SetRequest([place, columns + place, 2 * columns], [place]) for place in range(columns)]


def make_joint(columns: Sequence[Column], total: Total) -> Find:
    """Return the function that finds the `JointCounts` of a column in a partition."""
    known: dict[int, tuple[SharedValues, npt.NDArray[np.int64]]] = {}

    def find(set_: Sequence[int], counter: Counter, place: int) -> JointCounts:
        own, other, flag = set_
        if own not in known:
            shared = SharedValues.from_columns(columns[own], columns[other])
            known[own] = shared, value_order(shared.column(own))
        shared, ranks = known[own]
        counted = counter.combinations(place, ordered=False)
        before, after = shared.before[counted.codes[0]], shared.after[counted.codes[1]]
        there = np.asarray(columns[flag].labels)[counted.codes[2]] == 1
        return JointCounts.from_pairs(shared, ranks, before, after, there, counted.counts)

    return find


def released_columns(
    names: Sequence[Hashable], counted: CountResult, dropped: Collection[Hashable], perturbed: Collection[Hashable]
) -> list[ReleasedColumn]:
    """Return the columns before and after.

    counted: for each column its `JointCounts`, by partition. dropped: columns that the table after lacks. perturbed:
    columns whose values the plan draws anew, so that no function of the values was released.
    """
    released = []
    for place, (name, parts) in enumerate(zip(names, counted.found, strict=True)):
        columns = counted.columns[place], counted.columns[len(names) + place]
        shared = SharedValues.from_columns(*columns)
        before, after = (
            _counts(column, number, len(shared.labels) + 1)
            for column, number in zip(columns, (shared.before, shared.after), strict=True)
        )
        joint = JointCounts.total(parts)
        detail, kind = _detail(shared, before, after, joint, name in perturbed)
        kind = "dropped" if name in dropped else kind
        is_lost = bool(before[:-1].any()) and not after[:-1].any()
        released.append(ReleasedColumn(name, shared, before, after, detail, kind, joint, is_lost))
    return released


def with_groups(column: ReleasedColumn, hierarchy: Hierarchy, level: int) -> ReleasedColumn:
    """Return the column with the released detail also of values that were never released: from their groups at a level.

    The column is returned unchanged if the released value does not follow from the group.
    """
    there = np.flatnonzero(column.before[: column.shared.missing] > 0)
    released = np.full(column.size, -1, np.int64)
    released[column.joint.values] = column.joint.released
    left = there[released[there] < 0]
    if column.kind != "mapped" or column.is_lost or not len(left):
        return column
    groups = hierarchy.groups_or_null(column.shared.labels.take(pa.array(there)), level).to_pylist()
    value_of_group: dict[str, int] = {}
    for number, group in zip(there.tolist(), groups, strict=True):
        if released[number] >= 0 and value_of_group.setdefault(group, int(released[number])) != released[number]:
            return column
    detail = column.detail.copy()
    for number, group in zip(there.tolist(), groups, strict=True):
        if released[number] < 0 and group is not None:
            # If no value of a group was released, its first value represents the group.
            detail[number] = value_of_group.setdefault(group, number)
    return column._replace(detail=detail)


def with_levels(column: ReleasedColumn, hierarchy: Hierarchy, levels: Collection[int]) -> ReleasedColumn:
    """Return a perturbed column as the kind "levels", if its values are released at these levels of a hierarchy.

    The column is returned unchanged if a value is released that is no group of it, or most often as such a value.
    """
    missing = column.shared.missing
    number_of = {str(label): number for number, label in enumerate(column.shared.labels.to_pylist())}
    there = np.flatnonzero(column.before[:missing] > 0)
    values = column.shared.labels.take(pa.array(there))
    # Each value and each number that it may be released as: levels may have groups of the same name.
    pairs = {(missing, number_of.get(hierarchy.root, missing) if hierarchy.height in levels else missing)}
    pairs |= {(missing, missing)}
    for level in levels:
        groups = (hierarchy.groups_or_null(values, level) if level else values).to_pylist()
        pairs |= {(own, number_of.get(str(group), -1)) for own, group in zip(there.tolist(), groups, strict=True)}
    sizes = np.zeros(column.size, np.int64)
    for own, group in pairs:
        if group >= 0:
            sizes[group] += column.before[own]
    released = zip(column.joint.values.tolist(), column.joint.released.tolist(), strict=True)
    fits = sizes[:missing][column.after[:missing] > 0].all() and all(pair in pairs or pair[1] < 0 for pair in released)
    return column._replace(kind="levels", groups=sizes) if fits else column


def _counts(column: Column, number: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """Return how many rows of a column have each value. number: the number of the value of each code."""
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
    """Return `detail` and `kind` of a `ReleasedColumn`. perturbed: whether the plan draws the values anew."""
    missing = shared.missing
    own = np.arange(missing + 1)
    if not after[:missing].any():
        return np.full(missing + 1, missing), "mapped" if before[:missing].any() else "same"
    detail = own.copy()
    there = joint.released >= 0
    detail[joint.values[there]] = joint.released[there]
    if joint.stays:
        detail[missing] = missing
    function = joint.is_function(missing) and not perturbed and _believed(before[:missing], after[:missing])
    if not function:
        if is_numeric(shared.labels.type):
            detail = own
        else:
            kept = np.append(after[:missing] > 0, after[missing] > 0)
            detail[kept] = own[kept]
    same = bool((detail[before > 0] == own[before > 0]).all())
    if function:
        return detail, "same" if same else "mapped"
    # Without a believed function the column can be "same" too: if nothing changed except suppressed values.
    return detail, "same" if same and not joint.moved.any() else "perturbed"


def _believed(before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]) -> bool:
    """Return whether a function from values to released values is believed, see BELIEVED.

    If most values are unique, any change of values looks like a function. before, after: rows with each value.
    """
    repeated = before[before > 1].sum()
    fewer = np.count_nonzero(after) <= BELIEVED * np.count_nonzero(before)
    return bool(fewer or repeated >= BELIEVED * before.sum())
