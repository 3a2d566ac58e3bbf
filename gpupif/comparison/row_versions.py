"""The versions of each row that are counted side by side: as it was, at the released detail, as it is released.

Two more have only the cells that are there in both tables, as they were and as they are released: what information is
kept is measured on these. The table of versions has a row for each version of each row, the values of both tables
numbered together. Behind its columns it has which version a row is, what became of it, and, for each column with
suppressed cells, whether its cell is there. Versions that are the same are there once.
"""

from __future__ import annotations

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

# Versions of a row; of the last two only cells that are there in both tables.
BEFORE, DETAIL, AFTER, KEPT_BEFORE, KEPT_AFTER = range(5)
# What became of a row, of the version AFTER: nothing, a cell is another, all cells are missing that were not.
KEPT, CHANGED, SUPPRESSED = range(3)


class VersionSums(NamedTuple):
    """Sums over the combinations of some columns in one version.

    logs: the sum of c log2 c over the counts c of combinations. classes: how many combinations there are. together:
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
        least = min((one for one in smallest if one is not None), default=None)
        return cls(LogSum.total(logs), sum(classes), sum(together), sum(rows), least)

    @property
    def squares(self) -> int:
        """Return the sum of c^2."""
        return self.together + self.rows


class SetSums(NamedTuple):
    """Sums over the combinations of some columns.

    versions: `VersionSums` by version, of KEPT_BEFORE and KEPT_AFTER those of rows whose cells are all there. moved:
    the sum of |c - c'|, c in the version DETAIL and c' in AFTER.
    """

    versions: Sequence[VersionSums]
    moved: int

    @classmethod
    def total(cls, parts: Sequence[SetSums]) -> SetSums:
        """Return the sums over all partitions of a table. No combination is in two partitions."""
        versions, moved = zip(*parts, strict=True)
        return cls([VersionSums.total(own) for own in zip(*versions, strict=True)], sum(moved))


class ClassSums(NamedTuple):
    """Sums over classes: `VersionSums` of BEFORE, DETAIL and AFTER, of AFTER without hidden rows.

    hidden: rows of AFTER in which all quasi-identifiers are missing, which are one class.
    """

    versions: Sequence[VersionSums]
    hidden: int

    @classmethod
    def total(cls, parts: Sequence[ClassSums]) -> ClassSums:
        """Return the sums over all partitions of a table."""
        versions, hidden = zip(*parts, strict=True)
        return cls([VersionSums.total(own) for own in zip(*versions, strict=True)], sum(hidden))


class Versions(NamedTuple):
    """Sums over the versions of a table.

    rows: the rows of the table before.
    columns: by column. pairs: by pair of columns, in the order of `pairs_of`. classes: of the quasi-identifiers.
    shared: by place of a column and place of another column, sums of the first in KEPT_BEFORE and KEPT_AFTER, over rows
        in which the cells of both are there.
    rows_changed: rows in which a cell is another, or that the table after lacks. rows_suppressed: rows without a value.
    """

    rows: int
    columns: Sequence[SetSums]
    pairs: Sequence[SetSums]
    shared: Mapping[tuple[int, int], Sequence[VersionSums]]
    classes: ClassSums
    rows_changed: int
    rows_suppressed: int

    def kept(self, column: int, other: int, version: int) -> VersionSums:
        """Return the sums of a column in KEPT_BEFORE or KEPT_AFTER, in rows in which the other's cell is there too."""
        found = self.shared.get((column, other))
        return self.columns[column].versions[version] if found is None else found[version - KEPT_BEFORE]


class VersionLayout(NamedTuple):
    """The columns of the table of versions.

    columns: the columns that are compared. holes: places of the columns with suppressed cells in rows that are there
    after. counted: by version the version that is counted for it: another one if both are the same in every row.
    """

    columns: Sequence[ReleasedColumn]
    holes: Sequence[int]
    counted: Sequence[int]

    @classmethod
    def from_columns(cls, columns: Sequence[ReleasedColumn]) -> VersionLayout:
        """Return the layout for columns."""
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
        """Return the versions that the table has."""
        return sorted(set(self.counted))

    @property
    def width(self) -> int:
        """Return how many columns the table of versions has."""
        return len(self.columns) + 2 + len(self.holes)

    def numbers(
        self, codes: Sequence[npt.NDArray[Any]], numbers: Sequence[npt.NDArray[np.int64]]
    ) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
        """Return the numbers of the values before and after of some rows, each by column.

        codes: by column before and then by column after, array (rows). numbers: by the same columns the number of the
        value of each code.
        """
        columns = [*self.columns, *self.columns]
        found = [_renumbered(*own) for own in zip(codes, numbers, columns, strict=True)]
        return found[: len(self.columns)], found[len(self.columns) :]

    def rows(
        self,
        before: Sequence[npt.NDArray[Any]],
        after: Sequence[npt.NDArray[Any]],
        there: npt.NDArray[np.bool_],
        version: int,
    ) -> list[npt.NDArray[Any]]:
        """Return the columns of the table of versions of some rows, in one version.

        before, after: numbers of values by column. there: whether the table after has the row.
        """
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


def pairs_of(columns: int) -> list[tuple[int, int]]:
    """Return all pairs of places of columns, in order."""
    return list(combinations(range(columns), 2))


def count_versions(counts: SetCounts, rows: int, layout: VersionLayout, quasi_identifiers: Sequence[int]) -> Versions:
    """Count a table of versions. rows: of the table. quasi_identifiers: places of columns."""
    columns, holes = layout.columns, layout.holes
    version, fate = len(columns), len(columns) + 1
    sets: list[Sequence[int]] = [[place] for place in range(len(columns))]
    sets += pairs_of(len(columns))
    requests = [SetRequest([*set_, version], list(set_)) for set_ in sets]
    # The version first tells classes from other sets.
    requests.append(SetRequest([version, *quasi_identifiers], list(quasi_identifiers)))
    requests.append(SetRequest([fate]))
    crossed = [(place, hole) for hole in holes for place in range(len(columns)) if place != hole]
    requests += [SetRequest([place, fate + 1 + holes.index(hole), version]) for place, hole in crossed]
    missing = [column.shared.missing for column in columns]
    result = counts.count(requests, partial(make_sums, missing, layout.counted))
    of_sets, (of_classes, fates, *shared) = result.found[: len(sets)], result.found[len(sets) :]
    sums = [SetSums.total(parts) for parts in of_sets]
    of_fate = fate_counts(fates)
    single, pairs, classes = sums[: len(columns)], sums[len(columns) :], ClassSums.total(of_classes)
    totals = [[VersionSums.total(own) for own in zip(*parts, strict=True)] for parts in shared]
    changed = of_fate.get(CHANGED, 0) + of_fate.get(SUPPRESSED, 0)
    return Versions(
        rows, single, pairs, dict(zip(crossed, totals, strict=True)), classes, changed, of_fate.get(SUPPRESSED, 0)
    )


def make_sums(missing: Sequence[int], versions: Sequence[int], columns: Sequence[Column], total: Total) -> Find:
    """Return the function that finds the sums of a set of columns in a partition.

    It finds `ClassSums` if the set begins with the version, rows by fate if it has no version, and `SetSums` otherwise.
    For a column and whether another one's cell is there, it finds `VersionSums` of KEPT_BEFORE and KEPT_AFTER. missing:
    by column the number of missing values. versions: see `VersionLayout.counted`.
    """
    numbers = [np.asarray(column.labels) for column in columns]
    version = len(missing)

    def code_of(column: int, number: int) -> int:
        """Return the code of a number of a value, -1 if it does not occur."""
        found = np.flatnonzero(numbers[column] == number)
        return int(found[0]) if len(found) else -1

    def find(set_: Sequence[int], counter: Counter, place: int) -> Any:
        if version not in set_:
            found = counter.combinations(place)
            return dict(zip(numbers[set_[0]][found.codes[0]].tolist(), found.counts.tolist(), strict=True))
        if set_[0] != version:
            found = counter.combinations(place)
            *codes, of = found.codes
            there = np.ones(len(of), bool)
            for column, each in zip(set_[:-1], codes, strict=True):
                there &= each != (code_of(column, missing[column] + 1) if column < version else code_of(column, 0))
            of, counts, codes = numbers[version][of][there], found.counts[there], [each[there] for each in codes]
            if set_[1] > version:
                return [VersionSums.from_counts(counts[of == versions[one]]) for one in (KEPT_BEFORE, KEPT_AFTER)]
            return _sums(codes, of, counts, versions)
        found = counter.combinations(place, ordered=False)
        of_version = [found.codes[0] == code for code in (code_of(version, one) for one in range(3))]
        hidden = np.flatnonzero(of_version[AFTER])
        for column, each in zip(set_[1:], found.codes[1:], strict=True):
            hidden = hidden[each[hidden] == code_of(column, missing[column])]
        shown = [found.counts[of_version[one]] for one in versions[:KEPT_BEFORE]]
        if len(hidden):
            of_version[AFTER][hidden] = False
            shown[AFTER] = found.counts[of_version[AFTER]]
        return ClassSums([VersionSums.from_counts(counts) for counts in shown], int(found.counts[hidden].sum()))

    return find


def _sums(
    codes: Sequence[npt.NDArray[Any]],
    which: npt.NDArray[Any],
    counts: npt.NDArray[np.int64],
    versions: Sequence[int],
) -> SetSums:
    """Return the sums over combinations in order, the version last, so that those of one lie together."""
    begins = np.ones(len(which), bool)
    begins[1:] = codes[0][1:] != codes[0][:-1]
    for own in codes[1:]:
        begins[1:] |= own[1:] != own[:-1]
    group = np.cumsum(begins) - 1
    difference = np.zeros(int(begins.sum()), np.int64)
    by_version = [which == one for one in versions]
    difference[group[by_version[DETAIL]]] = counts[by_version[DETAIL]]
    difference[group[by_version[AFTER]]] -= counts[by_version[AFTER]]
    return SetSums([VersionSums.from_counts(counts[own]) for own in by_version], int(np.abs(difference).sum()))


def _renumbered(codes: npt.NDArray[Any], numbers: npt.NDArray[np.int64], column: ReleasedColumn) -> npt.NDArray[Any]:
    """Return the number of the value of each row. numbers: by code."""
    kind = code_type(column.size)
    if len(numbers) == column.size and (numbers == np.arange(len(numbers))).all():
        return codes.astype(kind, copy=False)
    found: npt.NDArray[Any] = numbers.astype(kind)[codes]
    return found


def _masked(codes: npt.NDArray[Any], lacks: npt.NDArray[np.bool_], code: int) -> npt.NDArray[Any]:
    """Return codes with that of cells that are not there in their place; codes: a copy, which is changed."""
    codes[lacks] = code
    return codes


def fate_counts(parts: Sequence[dict[int, int]]) -> dict[int, int]:
    """Return how many rows have each fate. parts: by partition, rows by fate."""
    found: dict[int, int] = {}
    for part in parts:
        for fate, rows in part.items():
            found[fate] = found.get(fate, 0) + rows
    return found


def fates(
    before: Sequence[npt.NDArray[Any]], after: Sequence[npt.NDArray[Any]], columns: Sequence[ReleasedColumn]
) -> npt.NDArray[np.uint8]:
    """Return what became of each row: KEPT, CHANGED or SUPPRESSED. Dropped columns do not count.

    before, after: by column the numbers of the values of the rows.
    """
    changed = np.zeros(len(before[0]), bool)
    hidden, shown = np.ones(len(before[0]), bool), np.zeros(len(before[0]), bool)
    for old, new, column in zip(before, after, columns, strict=True):
        if column.kind == "dropped":
            continue
        changed |= old != new
        hidden &= new == column.shared.missing
        shown |= old != column.shared.missing
    found = np.where(changed, CHANGED, KEPT)
    found[hidden & shown] = SUPPRESSED
    return found.astype(np.uint8)
