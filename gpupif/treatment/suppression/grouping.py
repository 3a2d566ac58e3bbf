"""Rows grouped by suppressing cells until no equivalence class has fewer than k rows; rows are packed keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.pack import unpack_column

from ...rows.distinct import Distinct, distinct_rows
from ...rows.keys import KeyLayout, code_type
from ...rows.partition import Rows
from ...rows.threads import Workers


@dataclass(frozen=True)
class ClassCriterion:
    """columns: places, ascending. k: the fewest rows that may be equal on them. text: what was asked for."""

    columns: tuple[int, ...]
    k: int
    text: str = ""

    @classmethod
    def of_any(cls, known: int, among: Sequence[int], k: int, text: str) -> list[ClassCriterion]:
        """For whoever knows any so many columns: one for each set of them."""
        return [cls(columns, k, text) for columns in combinations(sorted(among), known)]


def without_implied(criteria: Sequence[ClassCriterion]) -> list[ClassCriterion]:
    """Those that no other implies: rows that are equal on some columns are equal on any of them."""
    different = list({(one.columns, one.k): one for one in criteria}.values())
    if len(different) > 1_000:
        # Sets of as many columns, mostly.
        return different
    return [
        one
        for one in different
        if not any(other != one and other.k >= one.k and set(one.columns) <= set(other.columns) for other in different)
    ]


Keys = npt.NDArray[np.uint64]


class KeyedRows:
    """Rows of a table by keys of all columns; those of suppressed cells change.

    codes: by column, as `CodedColumn` has them: the missing value is above all others. sizes: how many values each has.
    """

    def __init__(self, codes: Sequence[npt.NDArray[Any]], sizes: Sequence[int], workers: Workers) -> None:
        self.codes, self.sizes, self.workers = codes, sizes, workers
        self.layout = KeyLayout.of([size + 1 for size in sizes])
        self.keys = np.array(self.layout.pack(codes, workers))

    def __len__(self) -> int:
        return len(self.keys)

    def masks(self, columns: Iterable[int]) -> Keys:
        """What keeps these columns of a key."""
        return self.layout.masks(columns)

    def holes(self, columns: Iterable[int]) -> Keys:
        """Keys of rows that lack these columns have these bits there."""
        bits = np.zeros(self.layout.words, np.uint64)
        for column in columns:
            word, shift, mask = self.layout.fields[column]
            bits[word] |= np.uint64((self.sizes[column] & mask) << shift)
        return bits

    def distinct(self, keys: Keys) -> Distinct:
        """The different ones of some keys, in order of first appearance."""
        return distinct_rows(Rows(keys), len(keys), self.workers)

    def class_sizes(self, columns: Iterable[int]) -> npt.NDArray[np.int64]:
        """For each row how many are equal to it on some columns, missing values being values of their own."""
        found = self.distinct(self.keys & self.masks(columns))
        sizes: npt.NDArray[np.int64] = np.asarray(found.rows.counts).astype(np.int64)[found.number]
        return sizes

    def suppress(self, rows: npt.NDArray[np.int64], columns: Iterable[int]) -> None:
        """Suppress these columns of some rows."""
        columns = list(columns)
        self.keys[rows] = (self.keys[rows] & ~self.masks(columns)) | self.holes(columns)

    def codes_of(self, keys: Keys, column: int) -> npt.NDArray[Any]:
        """The codes of a column in some keys."""
        word, shift, mask = self.layout.fields[column]
        found = np.empty(len(keys), code_type(self.sizes[column] + 1))
        unpack_column(keys[:, word], shift, mask, found)
        return found

    def column(self, column: int) -> npt.NDArray[Any]:
        """The codes of a column as they are now."""
        return self.codes_of(self.keys, column)

    def put_back(self, rows: npt.NDArray[np.int64], column: int) -> None:
        """Restore a column of some rows."""
        word, shift, mask = self.layout.fields[column]
        field = np.uint64(mask << shift)
        values = self.codes[column][rows].astype(np.uint64) << np.uint64(shift)
        self.keys[rows, word] = (self.keys[rows, word] & ~field) | values

    def suppressed(self, column: int) -> npt.NDArray[np.bool_]:
        """The rows whose value of a column was there, and is not any more."""
        missing = self.sizes[column]
        return np.asarray((self.column(column) == missing) & (self.codes[column] != missing))


# Sets of columns that are tried: all of so many columns, and of more columns the smallest.
MOST_SETS = 1024

Places = npt.NDArray[np.int64]


class Trial(NamedTuple):
    """Columns to suppress, and how many rows may be suppressed for each row of a class that is too small."""

    cost: float
    share: float
    columns: tuple[int, ...]


class Grouping:
    """Rows grouped on the columns of a criterion. importance: by column, of those that may be suppressed."""

    def __init__(self, rows: KeyedRows, criterion: ClassCriterion, importance: Mapping[int, float]) -> None:
        self._rows, self._k = rows, criterion.k
        self._importance = {column: importance[column] for column in criterion.columns if column in importance}
        self._seen = rows.masks(criterion.columns)
        found = rows.distinct(rows.keys & self._seen)
        self._number = found.number
        self._classes: Keys = np.array(found.rows.keys)
        self._sizes = np.array(found.rows.counts).astype(np.int64)
        self.short: Places = np.flatnonzero(self._sizes[self._number] < self._k)
        self._joined: Keys = np.empty((0, rows.layout.words), np.uint64)
        self._order: Places | None = None

    def run(self) -> None:
        """Suppress cells until no class is too small; there have to be enough rows that agree on all other columns."""
        for trial in self._trials():
            if not len(self.short):
                return
            self._try(trial)
        if len(self.short):
            self._take_whatever()

    def _trials(self) -> Iterator[Trial]:
        """The cheapest first: by what is suppressed for each row of a class that is too small."""
        columns = sorted(self._importance, key=self._urgency)
        shares = [float(1 << power) for power in range((4 * self._k).bit_length())]
        trials = []
        for some in sets_to_try(columns):
            weight = sum(self._importance[column] for column in some)
            trials += [Trial(weight * share, share, some) for share in shares]
        place = {column: number for number, column in enumerate(columns)}
        yield from sorted(trials, key=lambda one: (one.cost, one.share, [place[column] for column in one.columns]))

    def _urgency(self, column: int) -> tuple[float, int]:
        """The lower, the earlier: columns that matter little, and tell many rows apart."""
        word, shift, mask = self._rows.layout.fields[column]
        values = np.unique(self._rows.keys[self.short, word] & np.uint64(mask << shift))
        return self._importance[column] / max(1, len(values).bit_length()), column

    def _holed(self, keys: Keys, columns: Sequence[int]) -> Keys:
        return (keys & ~self._rows.masks(columns)) | (self._rows.holes(columns) & self._seen)

    def _try(self, trial: Trial) -> None:
        """Group what is left by what these columns leave of it, and suppress them where groups are large enough."""
        short, number = self.short, len(self.short)
        keys = self._holed(self._rows.keys[short] & self._seen, trial.columns)
        found = self._rows.distinct(np.concatenate([keys, self._joined]))
        groups = len(found.rows.keys)
        group_of = found.number[:number]
        sizes = np.bincount(group_of, minlength=groups)
        there = np.zeros(groups, bool)
        there[found.number[number:]] = True
        accepted = (sizes >= self._k) | there
        if trial.share > 1:
            asking = np.flatnonzero(~accepted & (sizes > 0) & (sizes * trial.share >= self._k))
            if len(asking):
                accepted[asking[self._give(trial, found.rows.keys[asking], sizes[asking])]] = True
        accepted &= sizes > 0
        chosen = accepted[group_of]
        if chosen.any():
            self._rows.suppress(short[chosen], trial.columns)
            self.short = short[~chosen]
            self._joined = np.concatenate([self._joined, found.rows.keys[accepted & ~there]])

    def _give(self, trial: Trial, groups: Keys, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Suppress rows of larger classes that then agree with groups that lack some; which groups get enough."""
        k, safe = self._k, np.flatnonzero(self._sizes >= self._k)
        if not len(safe):
            return np.zeros(len(groups), bool)
        found = self._rows.distinct(np.concatenate([groups, self._holed(self._classes[safe], trial.columns)]))
        group_of = found.number[len(groups) :]
        asked = np.flatnonzero(group_of < len(groups))
        classes, group_of = safe[asked], group_of[asked]
        spare = self._sizes[classes] - k
        lacking = k - sizes
        by_spare = np.bincount(group_of, weights=spare, minlength=len(groups)) >= lacking
        # Of each group the smallest class, the first of equal ones.
        whole = np.full(len(groups), -1)
        order = np.lexsort((classes, self._sizes[classes], group_of))
        first = order[np.flatnonzero(np.diff(group_of[order], prepend=-1))]
        whole[group_of[first]] = classes[first]
        enough = (whole >= 0) & (sizes + self._sizes[whole] <= trial.share * sizes)
        for group in np.flatnonzero(enough & ~by_spare).tolist():
            self._move(int(whole[group]), int(self._sizes[whole[group]]), trial.columns)
        order = np.argsort(group_of, kind="stable")
        for place in order[(spare[order] > 0) & by_spare[group_of[order]]].tolist():
            group = group_of[place]
            moved = int(min(spare[place], lacking[group]))
            lacking[group] -= moved
            if moved:
                self._move(int(classes[place]), moved, trial.columns)
        given: npt.NDArray[np.bool_] = by_spare | enough
        return given

    def _move(self, one: int, rows: int, columns: Sequence[int]) -> None:
        """Suppress columns of the last so many rows of a class that is left as it was so far."""
        if self._order is None:
            self._order = np.argsort(self._number, kind="stable")
            sizes = np.bincount(self._number, minlength=len(self._sizes))
            self._starts = np.cumsum(sizes) - sizes
        end = self._starts[one] + self._sizes[one]
        self._rows.suppress(self._order[end - rows : end], columns)
        self._sizes[one] -= rows

    def _take_whatever(self) -> None:
        """Where no trial did: suppress all columns, and those of the smallest classes that agree on all others."""
        columns = list(self._importance)
        rows = self._rows
        rows.suppress(self.short, columns)
        kept = rows.keys & self._seen & ~rows.masks(columns)
        others = rows.distinct(kept).number
        found = rows.distinct(rows.keys & self._seen)
        sizes = np.asarray(found.rows.counts).astype(np.int64)
        holed = rows.distinct(np.concatenate([rows.keys & self._seen, self._holed(rows.keys & self._seen, columns)]))
        bare = holed.number[: len(rows)] == holed.number[len(rows) :]
        order = np.argsort(others, kind="stable")
        for group in np.unique(others[self.short]).tolist():
            mine = order[slice(*np.searchsorted(others[order], (group, group + 1)))]
            lacking = self._k - np.count_nonzero(bare[mine])
            classes, first = np.unique(found.number[mine[~bare[mine]]], return_index=True)
            # Those that can spare enough, then the smallest.
            whole = sizes[classes] - lacking < self._k
            for one in classes[np.lexsort((first, sizes[classes], whole))].tolist():
                if lacking <= 0:
                    break
                taken = int(sizes[one]) if sizes[one] - lacking < self._k else lacking
                rows.suppress(mine[found.number[mine] == one][-taken:], columns)
                lacking -= taken
        self.short = self.short[:0]


def sets_to_try(columns: Sequence[int]) -> list[tuple[int, ...]]:
    """The sets of columns to try, of columns in the order in which they are to be suppressed: all of them, or, of many
    columns, the smallest sets, and the first columns with one more or without.
    """
    if 2 ** len(columns) <= MOST_SETS:
        return [some for size in range(1, len(columns) + 1) for some in combinations(columns, size)]
    sets: list[tuple[int, ...]] = []
    size = 1
    while len(sets) + comb(len(columns), size) <= MOST_SETS:
        sets += combinations(columns, size)
        size += 1
    for stop in range(size - 1, len(columns) + 1):
        sets += [tuple(columns[:stop]), *((*columns[:stop], column) for column in columns[stop:])]
    return list(dict.fromkeys(some for some in sets if some))
