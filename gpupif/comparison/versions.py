"""The three versions of each row that are counted side by side: as it was, at the released detail, as it is released.

The table of versions has a row for each version of each row, the values of both tables numbered together, and behind
its columns two more: which version a row is, and what became of it. Versions that are the same are there once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column
from ..engines.counting import Counter
from ..marginals.base import Find, SetCounts, SetRequest, Total
from ..marginals.count_sums import CountSums
from ..utils.information import LogSum
from .released import ReleasedColumn

# Versions of a row.
BEFORE, DETAIL, AFTER = range(3)
# What became of a row, of the version AFTER: nothing, a cell is another, all cells are missing that were not.
KEPT, CHANGED, SUPPRESSED = range(3)


class VersionSums(NamedTuple):
    """Of some columns, in one version: sum of c log2 c over the counts c of their combinations; how many there are; the
    sum of c (c - 1); all rows; the rows of the smallest combination, None where there is none.
    """

    logs: LogSum = LogSum(0)
    classes: int = 0
    together: int = 0
    rows: int = 0
    smallest: int | None = None

    @classmethod
    def of(cls, counts: npt.NDArray[np.int64]) -> VersionSums:
        """From the count of each combination."""
        sums = CountSums.of(counts)
        return cls(sums.logs, len(counts), sums.together, int(counts.sum()), sums.lowest or None)

    @classmethod
    def total(cls, parts: Sequence[VersionSums]) -> VersionSums:
        """Of several parts of a table."""
        logs, classes, together, rows, smallest = zip(cls(), *parts, strict=True)
        least = min((one for one in smallest if one is not None), default=None)
        return cls(LogSum.total(logs), sum(classes), sum(together), sum(rows), least)

    @property
    def squares(self) -> int:
        """The sum of c^2."""
        return self.together + self.rows


class SetSums(NamedTuple):
    """Of some columns: `VersionSums` by version; moved: the sum of |c - c'| over their combinations, c in the version
    DETAIL and c' in AFTER.
    """

    versions: Sequence[VersionSums]
    moved: int

    @classmethod
    def total(cls, parts: Sequence[SetSums]) -> SetSums:
        """Of several parts of a table, none of which has combinations of another."""
        versions, moved = zip(*parts, strict=True)
        return cls([VersionSums.total(own) for own in zip(*versions, strict=True)], sum(moved))


class ClassSums(NamedTuple):
    """Of the quasi-identifiers `VersionSums` by version, of AFTER without hidden rows; hidden: rows of AFTER in which
    all of them are missing, which are one class.
    """

    versions: Sequence[VersionSums]
    hidden: int

    @classmethod
    def total(cls, parts: Sequence[ClassSums]) -> ClassSums:
        """As of `SetSums`."""
        versions, hidden = zip(*parts, strict=True)
        return cls([VersionSums.total(own) for own in zip(*versions, strict=True)], sum(hidden))


class Versions(NamedTuple):
    """What is counted of the three versions of a table with these columns, of so many rows each.

    columns: `SetSums` of each; pairs: of each pair, in order; classes: of the quasi-identifiers. rows_changed: in which
    a cell is another (or the row is lacking); rows_suppressed: with no value left.
    """

    rows: int
    columns: Sequence[SetSums]
    pairs: Sequence[SetSums]
    classes: ClassSums
    rows_changed: int
    rows_suppressed: int


def counted_as(columns: Sequence[ReleasedColumn]) -> tuple[int, int, int]:
    """By version that which is counted for it: another one where the two are the same in every row."""
    if all(column.detail_is_before for column in columns):
        return BEFORE, BEFORE, AFTER
    return (BEFORE, AFTER, AFTER) if all(column.detail_is_after for column in columns) else (BEFORE, DETAIL, AFTER)


def pairs_of(columns: int) -> list[tuple[int, int]]:
    """All pairs of places of columns."""
    return list(combinations(range(columns), 2))


def count_versions(
    counts: SetCounts, rows: int, columns: Sequence[ReleasedColumn], quasi_identifiers: Sequence[int]
) -> Versions:
    """Count a table of versions. rows: of the table. quasi_identifiers: places of columns."""
    version, fate = len(columns), len(columns) + 1
    sets: list[Sequence[int]] = [[place] for place in range(len(columns))]
    sets += pairs_of(len(columns))
    requests = [SetRequest([*set_, version], list(set_)) for set_ in sets]
    # The version first tells classes from other sets.
    requests.append(SetRequest([version, *quasi_identifiers], list(quasi_identifiers)))
    missing = [column.shared.missing for column in columns]
    result = counts.count([*requests, SetRequest([fate])], partial(make_sums, missing, counted_as(columns)))
    *found, of_classes, fates = result.found
    sums = [SetSums.total(parts) for parts in found]
    of_fate = fate_counts(fates)
    single, pairs, classes = sums[: len(columns)], sums[len(columns) :], ClassSums.total(of_classes)
    changed = of_fate.get(CHANGED, 0) + of_fate.get(SUPPRESSED, 0)
    return Versions(rows, single, pairs, classes, changed, of_fate.get(SUPPRESSED, 0))


def make_sums(missing: Sequence[int], versions: tuple[int, int, int], columns: Sequence[Column], total: Total) -> Find:
    """Finds `SetSums`, `ClassSums` where the version comes first, and of the fates of rows how many have each.

    missing: by column the number of missing values. versions: see `counted_as`.
    """
    numbers = [np.asarray(column.labels) for column in columns]
    version = len(missing)

    def code_of(column: int, number: int) -> int:
        """The code of a number of a value; -1 where it does not occur."""
        found = np.flatnonzero(numbers[column] == number)
        return int(found[0]) if len(found) else -1

    def find(set_: Sequence[int], counter: Counter, place: int) -> Any:
        if version not in set_:
            found = counter.combinations(place)
            return dict(zip(numbers[set_[0]][found.codes[0]].tolist(), found.counts.tolist(), strict=True))
        if set_[0] != version:
            found = counter.combinations(place)
            *codes, of = found.codes
            return _sums(codes, numbers[version][of], found.counts, versions)
        found = counter.combinations(place, ordered=False)
        of_version = [found.codes[0] == code for code in (code_of(version, one) for one in range(3))]
        hidden = np.flatnonzero(of_version[AFTER])
        for column, each in zip(set_[1:], found.codes[1:], strict=True):
            hidden = hidden[each[hidden] == code_of(column, missing[column])]
        shown = [found.counts[of_version[one]] for one in versions]
        if len(hidden):
            of_version[AFTER][hidden] = False
            shown[AFTER] = found.counts[of_version[AFTER]]
        return ClassSums([VersionSums.of(counts) for counts in shown], int(found.counts[hidden].sum()))

    return find


def _sums(
    codes: Sequence[npt.NDArray[Any]],
    which: npt.NDArray[Any],
    counts: npt.NDArray[np.int64],
    versions: tuple[int, int, int],
) -> SetSums:
    """Of combinations in order, the version last, so that those of one lie together."""
    begins = np.ones(len(which), bool)
    begins[1:] = codes[0][1:] != codes[0][:-1]
    for own in codes[1:]:
        begins[1:] |= own[1:] != own[:-1]
    group = np.cumsum(begins) - 1
    difference = np.zeros(int(begins.sum()), np.int64)
    by_version = [which == one for one in versions]
    difference[group[by_version[DETAIL]]] = counts[by_version[DETAIL]]
    difference[group[by_version[AFTER]]] -= counts[by_version[AFTER]]
    return SetSums([VersionSums.of(counts[own]) for own in by_version], int(np.abs(difference).sum()))


def fate_counts(parts: Sequence[dict[int, int]]) -> dict[int, int]:
    """How many rows have each fate."""
    found: dict[int, int] = {}
    for part in parts:
        for fate, rows in part.items():
            found[fate] = found.get(fate, 0) + rows
    return found


def fates(
    before: Sequence[npt.NDArray[Any]], after: Sequence[npt.NDArray[Any]], columns: Sequence[ReleasedColumn]
) -> npt.NDArray[np.uint8]:
    """What became of some rows, by the numbers of the values of each column; dropped columns do not count."""
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


def versions_of(
    before: Sequence[npt.NDArray[Any]],
    after: Sequence[npt.NDArray[Any]],
    columns: Sequence[ReleasedColumn],
    version: int,
) -> list[npt.NDArray[Any]]:
    """The columns of the table of versions of some rows, in one version, by the numbers of their values."""
    rows = len(before[0])
    fate = fates(before, after, columns) if version == AFTER else np.full(rows, KEPT, np.uint8)
    if version == DETAIL:
        own = [column.detail.astype(codes.dtype)[codes] for column, codes in zip(columns, before, strict=True)]
    else:
        own = list(after if version == AFTER else before)
    return [*own, np.full(rows, version, np.uint8), fate]
