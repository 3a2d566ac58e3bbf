"""The versions of each row that are counted side by side: before, at the released detail, and after.

Two more versions, KEPT_BEFORE and KEPT_AFTER, have only the cells that are in both tables: information that is kept is
measured on them. The table of versions has a row for each version of each row. Its columns are the compared columns,
with the values of both tables numbered together, the version, the fate of the row, and for each column with suppressed
cells whether the cell is in both tables. A version that equals another version in every row is left out.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column
from ..engines.base import Counter
from ..marginals.count_statistics import CountSums
from ..marginals.set_counts import Find, SetCounts, SetRequest, Total
from ..rows.keys import code_type
from ..utils.information import LogSum
from .released_values import ReleasedColumn

# Versions of a row; the last two have only the cells that are in both tables.
BEFORE, DETAIL, AFTER, KEPT_BEFORE, KEPT_AFTER = range(5)
# The fate of a row, in the version AFTER: no cell changed, a cell changed, all values became missing.
KEPT, CHANGED, SUPPRESSED = range(3)


class VersionSums(NamedTuple):
    """Sums over the combinations of some columns in one version.

    c is the number of rows of a combination. logs: the sum of c log2 c. classes: the number of combinations. together:
    the sum of c (c - 1). rows: the sum of c. smallest: the least c, None without combinations.
    """

    logs: LogSum = LogSum(0)
    classes: int = 0
    together: int = 0
    rows: int = 0
    smallest: int | None = None

    @classmethod
    def from_counts(cls, counts: npt.NDArray[np.int64]) -> VersionSums:
        """Return the sums over combinations. counts: the rows of each combination."""
        sums = CountSums.from_counts(counts)
        return cls(sums.logs, len(counts), sums.together, int(counts.sum()), sums.lowest or None)

    @classmethod
    def total(cls, parts: Sequence[VersionSums]) -> VersionSums:
        """Return the sums over all partitions of a table."""
        logs, classes, together, rows, smallest = zip(cls(), *parts, strict=True)
        least = min((count for count in smallest if count is not None), default=None)
        return cls(LogSum.total(logs), sum(classes), sum(together), sum(rows), least)

    @property
    def squares(self) -> int:
        """The sum of c^2."""
        return self.together + self.rows


class SetSums(NamedTuple):
    """Sums over the combinations of some columns.

    versions: `VersionSums` of versions; for KEPT_BEFORE and KEPT_AFTER over the rows whose cells are in both tables.
    moved: the sum of |c - c'|, where c rows have a combination in the version DETAIL, and c' rows in AFTER.
    hidden: the rows of AFTER in which all columns are missing, if `versions` leaves them out.
    """

    versions: Sequence[VersionSums]
    moved: int = 0
    hidden: int = 0

    @classmethod
    def total(cls, parts: Sequence[SetSums]) -> SetSums:
        """Return the sums over all partitions of a table. No combination is in two partitions."""
        versions, moved, hidden = zip(*parts, strict=True)
        return cls([VersionSums.total(own) for own in zip(*versions, strict=True)], sum(moved), sum(hidden))


class Versions(NamedTuple):
    """Sums over the versions of a table.

    rows: the rows of the table before.
    columns: sums by column. pairs: sums by pair of columns, in the order of `pairs_of`.
    shared: for the places of a column and of another column, the sums of the first in KEPT_BEFORE and KEPT_AFTER, over
        the rows in which the cells of both columns are in both tables.
    classes: sums of BEFORE, DETAIL and AFTER over the equivalence classes. Hidden rows of AFTER are one class more.
    rows_changed: rows with a changed or suppressed cell. If the table after lacks a row, its cells are suppressed.
    rows_suppressed: rows whose values all became missing.
    """

    rows: int
    columns: Sequence[SetSums]
    pairs: Sequence[SetSums]
    shared: Mapping[tuple[int, int], SetSums]
    classes: SetSums
    rows_changed: int
    rows_suppressed: int

    def kept(self, column: int, other: int, version: int) -> VersionSums:
        """Return the sums of a column in KEPT_BEFORE or KEPT_AFTER, over rows in which both cells are in both tables.

        column, other: places of the two columns.
        """
        shared = self.shared.get((column, other))
        return self.columns[column].versions[version] if shared is None else shared.versions[version - KEPT_BEFORE]


class NumberedRows(NamedTuple):
    """Rows of the joined table.

    before, after: numbers of values, by column. there: the mask of the rows that the table after has.
    """

    before: Sequence[npt.NDArray[Any]]
    after: Sequence[npt.NDArray[Any]]
    there: npt.NDArray[np.bool_]


class VersionLayout(NamedTuple):
    """The columns of the table of versions.

    columns: the compared columns. holes: places of the columns with suppressed cells, in rows that the table after has.
    counted: for each version the version that is counted in its place; another version if both are equal in every row.
    """

    columns: Sequence[ReleasedColumn]
    holes: Sequence[int]
    counted: Sequence[int]

    @classmethod
    def from_columns(cls, columns: Sequence[ReleasedColumn]) -> VersionLayout:
        """Return the layout for the compared columns."""
        holes = [place for place, column in enumerate(columns) if not column.is_lost and column.joint.hidden.any()]
        if all(column.detail_is_before for column in columns):
            counted = [BEFORE, BEFORE, AFTER]
        else:
            same = all(column.detail_is_after for column in columns)
            counted = [BEFORE, AFTER if same else DETAIL, AFTER]
        lacks = bool(holes) or any(column.joint.away.any() for column in columns)
        return cls(columns, holes, [*counted, *((KEPT_BEFORE, KEPT_AFTER) if lacks else (BEFORE, AFTER))])

    @property
    def versions(self) -> list[int]:
        """The versions that the table has."""
        return sorted(set(self.counted))

    @property
    def width(self) -> int:
        """The number of columns of the table of versions."""
        return len(self.columns) + 2 + len(self.holes)

    def numbers(self, codes: Sequence[npt.NDArray[Any]]) -> NumberedRows:
        """Return some rows of the joined table as numbers of values. codes: by column, array (rows)."""
        columns = [*self.columns, *self.columns]
        numbers = [
            *(column.shared.before for column in self.columns),
            *(column.shared.after for column in self.columns),
        ]
        own = [_renumbered(*each) for each in zip(codes[: len(columns)], numbers, columns, strict=True)]
        return NumberedRows(own[: len(self.columns)], own[len(self.columns) :], codes[len(columns)] == 1)

    def rows(self, numbered: NumberedRows, version: int) -> list[npt.NDArray[Any]]:
        """Return the columns of the table of versions for some rows, in one version."""
        before, after, there = numbered
        rows = len(there)
        fate = fates(before, after, self.columns) if version == AFTER else np.full(rows, KEPT, np.uint8)
        seen = np.ones((len(self.holes), rows), np.uint8)
        if version == DETAIL:
            own = [column.detail.astype(codes.dtype)[codes] for column, codes in zip(self.columns, before, strict=True)]
        else:
            own = list(before if version in (BEFORE, KEPT_BEFORE) else after)
        if version >= KEPT_BEFORE:
            gone = [
                ~there | ((new == column.shared.missing) & (old != column.shared.missing) & (not column.is_lost))
                for column, old, new in zip(self.columns, before, after, strict=True)
            ]
            own = [
                _masked(codes.astype(code_type(column.size + 1)), lacks, column.size)
                for column, lacks, codes in zip(self.columns, gone, own, strict=True)
            ]
            seen = np.array([~gone[place] for place in self.holes], np.uint8).reshape(seen.shape)
        return [*own, np.full(rows, version, np.uint8), fate, *seen]


def pairs_of(columns: Sequence[ReleasedColumn]) -> list[tuple[int, int]]:
    """Return all pairs of places of columns that the table after has, in order."""
    return list(combinations([place for place, column in enumerate(columns) if column.kind != "dropped"], 2))


def count_versions(counts: SetCounts, rows: int, layout: VersionLayout, quasi_identifiers: Sequence[int]) -> Versions:
    """Count a table of versions.

    rows: the rows of the table before. quasi_identifiers: their places among the columns.
    """
    columns, holes = layout.columns, layout.holes
    version, fate = len(columns), len(columns) + 1
    pairs = pairs_of(columns)
    sets: list[Sequence[int]] = [[place] for place in range(len(columns))]
    sets += pairs
    requests = [SetRequest([*set_, version], list(set_)) for set_ in sets]
    # `make_sums` recognises the set of the classes by its first column, the version.
    requests.append(SetRequest([version, *quasi_identifiers], list(quasi_identifiers)))
    crossed = [(place, hole) for pair in pairs for place, hole in (pair, pair[::-1]) if hole in holes]
    requests += [SetRequest([place, fate + 1 + holes.index(hole), version]) for place, hole in crossed]
    requests.append(SetRequest([fate]))
    missing = [column.shared.missing for column in columns]
    *by_set, fates = counts.count(requests, partial(make_sums, missing, layout.counted)).found
    sums = [SetSums.total(parts) for parts in by_set]
    rows_of_fate = sum(map(collections.Counter, fates), collections.Counter[int]())
    return Versions(
        rows=rows,
        columns=sums[: len(columns)],
        pairs=sums[len(columns) : len(sets)],
        shared=dict(zip(crossed, sums[len(sets) + 1 :], strict=True)),
        classes=sums[len(sets)],
        rows_changed=rows_of_fate[CHANGED] + rows_of_fate[SUPPRESSED],
        rows_suppressed=rows_of_fate[SUPPRESSED],
    )


def make_sums(missing: Sequence[int], versions: Sequence[int], columns: Sequence[Column], total: Total) -> Find:
    """Return the function that finds the sums of a set of columns in a partition.

    The result depends on the set:

    * the version first, then the quasi-identifiers: `SetSums` of BEFORE, DETAIL and AFTER, with `hidden`
    * the fate alone: a dict of rows by fate
    * a column, whether the cell of another column is in both tables, and the version: `SetSums` of KEPT_BEFORE and
      KEPT_AFTER
    * one or two columns, and the version: `SetSums` of all versions, with `moved`

    missing: by column the number of missing values. versions: see `VersionLayout.counted`.
    """
    numbers = [np.asarray(column.labels) for column in columns]
    version = len(missing)

    def code_of(column: int, number: int) -> int:
        """Return the code of a number of a value, -1 if it does not occur."""
        codes = np.flatnonzero(numbers[column] == number)
        return int(codes[0]) if len(codes) else -1

    def find(set_: Sequence[int], counter: Counter, place: int) -> Any:
        if version not in set_:
            counted = counter.combinations(place)
            return dict(zip(numbers[set_[0]][counted.codes[0]].tolist(), counted.counts.tolist(), strict=True))
        if set_[0] != version:
            counted = counter.combinations(place)
            *codes, version_codes = counted.codes
            there = np.ones(len(version_codes), bool)
            for column, each in zip(set_[:-1], codes, strict=True):
                there &= each != (code_of(column, missing[column] + 1) if column < version else code_of(column, 0))
            which, counts = numbers[version][version_codes][there], counted.counts[there]
            if set_[1] > version:
                kept = (counts[which == versions[own]] for own in (KEPT_BEFORE, KEPT_AFTER))
                return SetSums([VersionSums.from_counts(own) for own in kept])
            return _sums([each[there] for each in codes], which, counts, versions)
        counted = counter.combinations(place, ordered=False)
        of_version = [counted.codes[0] == code for code in (code_of(version, one) for one in range(3))]
        hidden = np.flatnonzero(of_version[AFTER])
        for column, each in zip(set_[1:], counted.codes[1:], strict=True):
            hidden = hidden[each[hidden] == code_of(column, missing[column])]
        shown = [counted.counts[of_version[one]] for one in versions[:KEPT_BEFORE]]
        if len(hidden):
            of_version[AFTER][hidden] = False
            shown[AFTER] = counted.counts[of_version[AFTER]]
        rows = int(counted.counts[hidden].sum())
        return SetSums([VersionSums.from_counts(counts) for counts in shown], hidden=rows)

    return find


def _sums(
    codes: Sequence[npt.NDArray[Any]],
    which: npt.NDArray[Any],
    counts: npt.NDArray[np.int64],
    versions: Sequence[int],
) -> SetSums:
    """Return the sums over combinations.

    codes: by column, array (combinations). The combinations are in order, the version last, so that the versions of a
    combination follow each other. which: the version of each. counts: its rows. versions: as of `make_sums`.
    """
    begins = np.ones(len(which), bool)
    begins[1:] = codes[0][1:] != codes[0][:-1]
    for own in codes[1:]:
        begins[1:] |= own[1:] != own[:-1]
    combination = np.cumsum(begins) - 1
    difference = np.zeros(int(begins.sum()), np.int64)
    by_version = [which == version for version in versions]
    difference[combination[by_version[DETAIL]]] = counts[by_version[DETAIL]]
    difference[combination[by_version[AFTER]]] -= counts[by_version[AFTER]]
    return SetSums([VersionSums.from_counts(counts[own]) for own in by_version], int(np.abs(difference).sum()))


def _renumbered(codes: npt.NDArray[Any], numbers: npt.NDArray[np.int64], column: ReleasedColumn) -> npt.NDArray[Any]:
    """Return the number of the value of each row. numbers: by code, the number of the value."""
    kind = code_type(column.size)
    if len(numbers) == column.size and (numbers == np.arange(len(numbers))).all():
        return codes.astype(kind, copy=False)
    renumbered: npt.NDArray[Any] = numbers.astype(kind)[codes]
    return renumbered


def _masked(codes: npt.NDArray[Any], lacks: npt.NDArray[np.bool_], code: int) -> npt.NDArray[Any]:
    """Set the code of the cells that are not in both tables, in the array `codes` itself; return it."""
    codes[lacks] = code
    return codes


def fates(
    before: Sequence[npt.NDArray[Any]], after: Sequence[npt.NDArray[Any]], columns: Sequence[ReleasedColumn]
) -> npt.NDArray[np.uint8]:
    """Return the fate of each row: KEPT, CHANGED or SUPPRESSED. Dropped columns do not count.

    before, after: numbers of values, by column.
    """
    changed = np.zeros(len(before[0]), bool)
    hidden, shown = np.ones(len(before[0]), bool), np.zeros(len(before[0]), bool)
    for old, new, column in zip(before, after, columns, strict=True):
        if column.kind == "dropped":
            continue
        changed |= old != new
        hidden &= new == column.shared.missing
        shown |= old != column.shared.missing
    fate = np.where(changed, CHANGED, KEPT)
    fate[hidden & shown] = SUPPRESSED
    return fate.astype(np.uint8)
