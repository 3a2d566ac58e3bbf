"""Group rows by suppressing cells until no equivalence class has fewer than k rows. Rows are packed keys."""

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
    """A criterion on equivalence classes.

    columns: positions of the columns on which the rows of a class agree, ascending.
    k: the fewest rows that a class may have.
    text: the criterion as requested, for messages. Default empty.
    values_of: position of another column. k is then the fewest different values that a class may have there. Default
        None: rows count.
    """

    columns: tuple[int, ...]
    k: int
    text: str = ""
    values_of: int | None = None

    @classmethod
    def for_any_known(cls, known: int, among: Sequence[int], k: int, text: str) -> list[ClassCriterion]:
        """Return a criterion for each set of `known` columns: the attacker may know any of the sets."""
        return [cls(columns, k, text) for columns in combinations(sorted(among), known)]

    @property
    def counted_sets(self) -> list[tuple[int, ...]]:
        """The sets of columns by which rows are counted: with `values_of` first the set with that column."""
        both = [] if self.values_of is None else [tuple(sorted((*self.columns, self.values_of)))]
        return [*both, self.columns]


def without_implied(criteria: Sequence[ClassCriterion]) -> list[ClassCriterion]:
    """Return the criteria that no other criterion implies.

    Rows that are equal on some columns are equal on each subset of the columns. A criterion therefore implies all
    criteria with a subset of its columns and no larger k.
    """
    distinct = list({(own.columns, own.k): own for own in criteria}.values())
    if len(distinct) > 1_000:
        # A thousand criteria are mostly sets of equal size, which do not imply each other: the search would be in vain.
        return distinct
    return [
        own
        for own in distinct
        if not any(other != own and other.k >= own.k and set(own.columns) <= set(other.columns) for other in distinct)
    ]


Keys = npt.NDArray[np.uint64]


class KeyedRows:
    """The rows of a table as keys of all columns. Suppressing a cell changes the key of its row.

    codes: by column, integers (rows,); the code of a missing value is the number of values. Codes never change.
    sizes: number of values by column.
    keys: uint64 (rows, words). The current packed codes of each row.
    """

    def __init__(self, codes: Sequence[npt.NDArray[Any]], sizes: Sequence[int], workers: Workers) -> None:
        self.codes, self.sizes, self.workers = codes, sizes, workers
        self.layout = KeyLayout.from_cardinalities([size + 1 for size in sizes])
        self.keys = np.array(self.layout.pack(codes, workers))

    def __len__(self) -> int:
        return len(self.keys)

    def masks(self, columns: Iterable[int]) -> Keys:
        """Return the bits of some columns in a key: uint64 (words,)."""
        return self.layout.masks(columns)

    def holes(self, columns: Iterable[int]) -> Keys:
        """Return the bits of a key whose values in these columns are missing: uint64 (words,)."""
        bits = np.zeros(self.layout.words, np.uint64)
        for column in columns:
            word, shift, mask = self.layout.fields[column]
            bits[word] |= np.uint64((self.sizes[column] & mask) << shift)
        return bits

    def distinct(self, keys: Keys) -> Distinct:
        """Return the distinct keys in order of first appearance, multiplicities, and the number of each row's key."""
        return distinct_rows(Rows(keys), len(keys), self.workers)

    def class_sizes(self, columns: Iterable[int]) -> npt.NDArray[np.int64]:
        """Return the size of each row's equivalence class: int64 (rows,). A missing value is a value of its own."""
        classes = self.distinct(self.keys & self.masks(columns))
        sizes: npt.NDArray[np.int64] = np.asarray(classes.rows.counts).astype(np.int64)[classes.number]
        return sizes

    def suppress(self, rows: npt.NDArray[np.int64], columns: Iterable[int]) -> None:
        """Suppress some columns of some rows. rows: row numbers."""
        columns = list(columns)
        self.keys[rows] = (self.keys[rows] & ~self.masks(columns)) | self.holes(columns)

    def codes_of(self, keys: Keys, column: int) -> npt.NDArray[Any]:
        """Return the codes of a column in some keys: integers (keys,)."""
        word, shift, mask = self.layout.fields[column]
        codes = np.empty(len(keys), code_type(self.sizes[column] + 1))
        unpack_column(keys[:, word], shift, mask, codes)
        return codes

    def column(self, column: int) -> npt.NDArray[Any]:
        """Return the current codes of a column: integers (rows,)."""
        return self.codes_of(self.keys, column)

    def put_back(self, rows: npt.NDArray[np.int64], column: int) -> None:
        """Restore a column of some rows. rows: row numbers."""
        word, shift, mask = self.layout.fields[column]
        field = np.uint64(mask << shift)
        values = self.codes[column][rows].astype(np.uint64) << np.uint64(shift)
        self.keys[rows, word] = (self.keys[rows, word] & ~field) | values

    def suppressed(self, column: int) -> npt.NDArray[np.bool_]:
        """Return for each row whether its cell in a column is suppressed: booleans (rows,)."""
        missing = self.sizes[column]
        return np.asarray((self.column(column) == missing) & (self.codes[column] != missing))


# The most sets of columns that are tried. If a table has more sets, the smallest are tried first.
MOST_SETS = 1024

Places = npt.NDArray[np.int64]


class Trial(NamedTuple):
    """An attempt to group rows.

    cost: the largest importance that may be suppressed for each row of a small class. share: the most rows that may be
    suppressed for each row of a small class. columns: positions of the columns to suppress.
    """

    cost: float
    share: float
    columns: tuple[int, ...]


class Grouping:
    """The grouping of rows for a criterion: rows of small classes are suppressed until they are equal to enough rows.

    importance: number above 0 by position of a column that may be suppressed. short: numbers of the rows whose class is
    too small.
    """

    def __init__(self, rows: KeyedRows, criterion: ClassCriterion, importance: Mapping[int, float]) -> None:
        self._rows, self._k = rows, criterion.k
        self._importance = {column: importance[column] for column in criterion.columns if column in importance}
        self._seen = rows.masks(criterion.columns)
        classes = rows.distinct(rows.keys & self._seen)
        self._number = classes.number
        self._classes: Keys = np.array(classes.rows.keys)
        self._sizes = np.array(classes.rows.counts).astype(np.int64)
        self.short: Places = np.flatnonzero(self._sizes[self._number] < self._k)
        self._joined: Keys = np.empty((0, rows.layout.words), np.uint64)
        self._order: Places | None = None

    def run(self) -> None:
        """Suppress cells until no class is too small. `check_reached` must have passed for the criterion."""
        for trial in self._trials():
            if not len(self.short):
                return
            self._try(trial)
        if len(self.short):
            self._suppress_rest()

    def _trials(self) -> Iterator[Trial]:
        """Yield all trials, the cheapest first."""
        columns = sorted(self._importance, key=self._urgency)
        shares = [float(1 << power) for power in range((4 * self._k).bit_length())]
        trials = []
        for tried in sets_to_try(columns):
            importance = sum(self._importance[column] for column in tried)
            trials += [Trial(importance * share, share, tried) for share in shares]
        place = {column: number for number, column in enumerate(columns)}
        yield from sorted(trials, key=lambda own: (own.cost, own.share, [place[column] for column in own.columns]))

    def _urgency(self, column: int) -> tuple[float, int]:
        """Return the sort key of a column: columns of low importance that tell many rows apart come first."""
        word, shift, mask = self._rows.layout.fields[column]
        values = np.unique(self._rows.keys[self.short, word] & np.uint64(mask << shift))
        return self._importance[column] / max(1, len(values).bit_length()), column

    def _holed(self, keys: Keys, columns: Sequence[int]) -> Keys:
        return (keys & ~self._rows.masks(columns)) | (self._rows.holes(columns) & self._seen)

    def _try(self, trial: Trial) -> None:
        """Suppress the trial's columns in rows of small classes that then form large enough groups."""
        short, number = self.short, len(self.short)
        keys = self._holed(self._rows.keys[short] & self._seen, trial.columns)
        grouped = self._rows.distinct(np.concatenate([keys, self._joined]))
        groups = len(grouped.rows.keys)
        group_of = grouped.number[:number]
        sizes = np.bincount(group_of, minlength=groups)
        # Earlier trials made these groups, which are large enough already.
        there = np.zeros(groups, bool)
        there[grouped.number[number:]] = True
        accepted = (sizes >= self._k) | there
        if trial.share > 1:
            asking = np.flatnonzero(~accepted & (sizes > 0) & (sizes * trial.share >= self._k))
            if len(asking):
                accepted[asking[self._fill_groups(trial, grouped.rows.keys[asking], sizes[asking])]] = True
        accepted &= sizes > 0
        chosen = accepted[group_of]
        if chosen.any():
            self._rows.suppress(short[chosen], trial.columns)
            self.short = short[~chosen]
            self._joined = np.concatenate([self._joined, grouped.rows.keys[accepted & ~there]])

    def _fill_groups(self, trial: Trial, groups: Keys, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Suppress rows of large classes, to join groups that are too small; return whether each group gets enough.

        groups: keys of the groups. sizes: int64 (groups,). Rows of each group, below k.
        """
        k, safe = self._k, np.flatnonzero(self._sizes >= self._k)
        if not len(safe):
            return np.zeros(len(groups), bool)
        merged = self._rows.distinct(np.concatenate([groups, self._holed(self._classes[safe], trial.columns)]))
        group_of = merged.number[len(groups) :]
        asked = np.flatnonzero(group_of < len(groups))
        classes, group_of = safe[asked], group_of[asked]
        spare = self._sizes[classes] - k
        lacking = k - sizes
        by_spare = np.bincount(group_of, weights=spare, minlength=len(groups)) >= lacking
        # For each group, the smallest class that can join it as a whole; the first of classes of equal size.
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
        filled: npt.NDArray[np.bool_] = by_spare | enough
        return filled

    def _move(self, number: int, rows: int, columns: Sequence[int]) -> None:
        """Suppress columns of the last rows of a class. number: of the class. rows: how many of its rows."""
        if self._order is None:
            self._order = np.argsort(self._number, kind="stable")
            sizes = np.bincount(self._number, minlength=len(self._sizes))
            self._starts = np.cumsum(sizes) - sizes
        end = self._starts[number] + self._sizes[number]
        self._rows.suppress(self._order[end - rows : end], columns)
        self._sizes[number] -= rows

    def _suppress_rest(self) -> None:
        """Suppress all columns of the rows that no trial has grouped, and of rows that fill up their group.

        The other rows agree with the group on the columns that may not be suppressed. They come from classes that can
        spare them, else from the smallest classes, which are then suppressed as a whole.
        """
        columns = list(self._importance)
        rows = self._rows
        rows.suppress(self.short, columns)
        kept = rows.keys & self._seen & ~rows.masks(columns)
        fixed = rows.distinct(kept).number
        present = rows.distinct(rows.keys & self._seen)
        sizes = np.asarray(present.rows.counts).astype(np.int64)
        holed = rows.distinct(np.concatenate([rows.keys & self._seen, self._holed(rows.keys & self._seen, columns)]))
        bare = holed.number[: len(rows)] == holed.number[len(rows) :]
        order = np.argsort(fixed, kind="stable")
        for group in np.unique(fixed[self.short]).tolist():
            mine = order[slice(*np.searchsorted(fixed[order], (group, group + 1)))]
            lacking = self._k - np.count_nonzero(bare[mine])
            classes, first = np.unique(present.number[mine[~bare[mine]]], return_index=True)
            # Classes that can spare enough rows come first, then the smallest classes.
            whole = sizes[classes] - lacking < self._k
            for number in classes[np.lexsort((first, sizes[classes], whole))].tolist():
                if lacking <= 0:
                    break
                taken = int(sizes[number]) if sizes[number] - lacking < self._k else lacking
                rows.suppress(mine[present.number[mine] == number][-taken:], columns)
                lacking -= taken
        self.short = self.short[:0]


def sets_to_try(columns: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the sets of columns to try.

    columns: positions, in the order in which columns should be suppressed. If there are too many sets, only the
    smallest are returned, and sets of the first columns, alone or with another column.
    """
    if 2 ** len(columns) <= MOST_SETS:
        return [chosen for size in range(1, len(columns) + 1) for chosen in combinations(columns, size)]
    sets: list[tuple[int, ...]] = []
    size = 1
    while len(sets) + comb(len(columns), size) <= MOST_SETS:
        sets += combinations(columns, size)
        size += 1
    for stop in range(size - 1, len(columns) + 1):
        sets += [tuple(columns[:stop]), *((*columns[:stop], column) for column in columns[stop:])]
    return list(dict.fromkeys(filter(None, sets)))
