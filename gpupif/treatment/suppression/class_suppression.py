"""Suppress cells until every equivalence class has at least k rows, and restore cells that need not be suppressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import matching_rows as matching

from ...errors import InputError, UnmetError
from ...rows.keys import code_type
from ...rows.partition import index_type
from ...rows.threads import Workers
from ...utils.display import plural
from .grouping import ClassCriterion, Grouping, KeyedRows, sets_to_try, without_implied
from .restoring import Restoring

# The most columns: each is a bit of a number of 64 bits.
MOST_COLUMNS = 64

Numbers = npt.NDArray[np.int64]


class Index(NamedTuple):
    """An index of rows by value, see `kernels.matching_rows`.

    order: integers (columns, rows). Row numbers, sorted by the value in each column; missing values come last.
    starts: int64 (columns, largest number of values + 2). Position in `order` at which each value begins.
    holes: integers (columns, rows). Numbers of the rows with a missing value in each column, at the beginning.
    lacking: int64 (columns,). The number of rows with a missing value.
    """

    order: npt.NDArray[Any]
    starts: Numbers
    holes: npt.NDArray[Any]
    lacking: Numbers

    @classmethod
    def from_codes(cls, codes: Sequence[npt.NDArray[Any]], sizes: Sequence[int]) -> Index:
        """Return the index of some columns. codes, sizes: see `MatchingRows`."""
        rows = len(codes[0])
        kind = index_type(rows)
        order, holes = np.empty((len(codes), rows), kind), np.empty((len(codes), rows), kind)
        starts, lacking = np.zeros((len(codes), max(sizes) + 2), np.int64), np.zeros(len(codes), np.int64)
        for column, (values, size) in enumerate(zip(codes, sizes, strict=True)):
            order[column] = np.argsort(values, kind="stable")
            ends = np.cumsum(np.bincount(values, minlength=size + 1))
            starts[column, 1 : size + 2] = ends
            lacking[column] = rows - (ends[size - 1] if size else 0)
            holes[column, : lacking[column]] = order[column, rows - lacking[column] :]
        return cls(order, starts, holes, lacking)


class MatchingRows:
    """The rows of a table in which cells are suppressed, and the number of rows that match each row.

    codes: by column, integers (rows,); the code of a missing value is the number of values. sizes: number of values by
    column. importance: number above 0 by position of a column that may be suppressed. Raises InputError for more than
    64 columns.
    """

    def __init__(
        self,
        codes: Sequence[npt.NDArray[Any]],
        sizes: Sequence[int],
        criteria: Sequence[ClassCriterion],
        importance: Mapping[int, float],
        workers: Workers,
    ) -> None:
        if len(codes) > MOST_COLUMNS:
            raise InputError(
                f"require: expected at most {MOST_COLUMNS} columns if missing values match every value, got "
                f"{len(codes)}. Let fewer be known, or leave missing= out."
            )
        self._criteria, self._importance = criteria, importance
        self._before = np.stack([_signed(*column) for column in zip(codes, sizes, strict=True)], axis=1)
        self.codes = self._before.copy()
        self._seen = np.array([_bits(criterion.columns) for criterion in criteria], np.uint64)
        self._limits = np.array([criterion.k for criterion in criteria], np.int64)
        self._found = np.empty(len(self.codes), np.int64)
        self._index = Index.from_codes(codes, sizes)
        rows = KeyedRows(codes, sizes, workers)
        self._counts = np.array([rows.class_sizes(criterion.columns) for criterion in criteria])
        matching.add_matches(self.codes, self._seen, self._index, self._counts, self._found)

    def suppress(self) -> int:
        """Suppress cells until all criteria hold, and return how often all criteria were checked."""
        for number, criterion in enumerate(self._criteria):
            columns = [column for column in criterion.columns if column in self._importance]
            columns.sort(key=lambda column: (self._importance[column], -len(np.unique(self.codes[:, column])), column))
            cost = {tried: sum(self._importance[column] for column in tried) for tried in sets_to_try(columns)}
            for tried in sorted(cost, key=lambda tried: cost[tried]):
                short = np.flatnonzero(self._counts[number] < criterion.k)
                if not len(short):
                    break
                matching.suppress_where(
                    *(short, _bits(tried), number, self._limits, self.codes, self._seen, self._index, self._counts),
                    self._found,
                )
        # Suppressing a cell never reduces the rows that match a row: one check of each criterion is enough.
        return 1

    def short(self) -> list[int]:
        """Return for each criterion the number of rows that match too few rows."""
        return [int(np.count_nonzero(counts < k)) for counts, k in zip(self._counts, self._limits, strict=True)]

    def restore(self) -> int:
        """Restore cells, the most important columns first, until none can be restored; return their number."""
        columns = sorted(self._importance, key=lambda column: (-self._importance[column], column))
        places = [np.flatnonzero(self.suppressed(column)) for column in columns]
        cell_columns = np.repeat(np.array(columns, np.int64), [len(place) for place in places])
        rows = np.concatenate([np.empty(0, np.int64), *places])
        cells = rows, cell_columns, self._before[rows, cell_columns]
        restored = np.zeros(len(rows), bool)
        # One pass is enough: a cell that is needed now is still needed when fewer cells are suppressed.
        return int(
            matching.restore_values(
                *(cells, self._limits, self.codes, self._seen, self._index, self._counts, self._found), restored
            )
        )

    def suppressed(self, column: int) -> npt.NDArray[np.bool_]:
        """Return for each row whether its cell in a column is suppressed: booleans (rows,)."""
        return np.asarray(self.codes[:, column] != self._before[:, column])


def _bits(columns: Sequence[int]) -> np.uint64:
    return np.uint64(sum(1 << column for column in columns))


def _signed(codes: npt.NDArray[Any], size: int) -> npt.NDArray[np.int32]:
    """Return codes with -1 for missing values."""
    signed = codes.astype(np.int32)
    signed[signed == size] = -1
    return signed


# The rounds after which rows of small classes are first suppressed in all columns: this ends an endless exchange.
MOST_ROUNDS = 4


@dataclass(frozen=True)
class Suppressed:
    """The result of a suppression.

    cells: booleans (columns, rows). Whether each cell is suppressed.
    rounds: int. How often all criteria were checked.
    restored: int. The number of cells that were suppressed on the way and restored in the end.
    """

    cells: npt.NDArray[np.bool_]
    rounds: int
    restored: int

    def codes(self, codes: Sequence[npt.NDArray[Any]], sizes: Sequence[int]) -> list[npt.NDArray[Any]]:
        """Return the codes of all columns after suppression. codes: by column. sizes: number of values by column."""
        return [with_missing(*column) for column in zip(codes, self.cells, sizes, strict=True)]


def with_missing(codes: npt.NDArray[Any], cells: npt.NDArray[np.bool_], size: int) -> npt.NDArray[Any]:
    """Return codes of a column with a missing value in some cells. cells: booleans (rows,). size: number of values."""
    changed = codes.astype(np.result_type(codes.dtype, code_type(size + 1)))
    changed[cells] = size
    return changed


def suppress_cells(
    codes: Sequence[npt.NDArray[Any]],
    sizes: Sequence[int],
    criteria: Sequence[ClassCriterion],
    importance: Mapping[int, float],
    names: Sequence[Any] | None = None,
    missing: str = "category",
) -> Suppressed:
    """Suppress cells until all criteria hold. Then restoring any single cell would break a criterion.

    codes: by column, integers (rows,); the code of a missing value is the number of values.
    sizes: number of values by column.
    criteria: criteria on equivalence classes.
    importance: number above 0 by position of a column that may be suppressed. Less important columns are suppressed
        first.
    names: names of columns for messages. Default None: positions.
    missing: "category" if a missing value is a value of its own, "wildcard" if it matches every value. Criteria that
        hold under "category" also hold under "wildcard": equal rows match. Default "category".

    Raises UnmetError for a criterion that cannot be reached.
    """
    needed, names = without_implied(criteria), range(len(codes)) if names is None else names
    with Workers() as workers:
        if missing == "wildcard":
            matching = MatchingRows(codes, sizes, needed, importance, workers)
            rounds = matching.suppress()
            for criterion, short in zip(needed, matching.short(), strict=True):
                _refuse(criterion, short, len(codes[0]), importance, names)
            restored, suppressed = matching.restore(), matching.suppressed
        else:
            rows = KeyedRows(codes, sizes, workers)
            for criterion in needed:
                check_reached(rows, criterion, importance, names)
            rounds, restored, suppressed = (
                make_groups(rows, needed, importance),
                Restoring(rows, needed, importance).restore_each(),
                rows.suppressed,
            )
        cells = np.array([suppressed(column) for column in range(len(codes))])
    return Suppressed(cells, rounds, restored)


def make_groups(rows: KeyedRows, criteria: Sequence[ClassCriterion], importance: Mapping[int, float]) -> int:
    """Group rows until all criteria hold, and return how often all criteria were checked."""
    rounds, short = 0, True
    while short:
        rounds, short = rounds + 1, False
        for criterion in criteria:
            grouping = Grouping(rows, criterion, importance)
            if len(grouping.short):
                short = True
                if rounds > MOST_ROUNDS:
                    # Two criteria may undo each other's groups. Rows without any value are equal for every criterion.
                    rows.suppress(grouping.short, list(importance))
                    grouping = Grouping(rows, criterion, importance)
                grouping.run()
    return rounds


def check_reached(
    rows: KeyedRows, criterion: ClassCriterion, importance: Mapping[int, float], names: Sequence[Any]
) -> None:
    """Raise UnmetError if a criterion cannot hold even if all allowed columns are suppressed in all rows."""
    sizes = rows.class_sizes(column for column in criterion.columns if column not in importance)
    _refuse(criterion, int(np.count_nonzero(sizes < criterion.k)), len(rows), importance, names)


def _refuse(
    criterion: ClassCriterion, short: int, rows: int, importance: Mapping[int, float], names: Sequence[Any]
) -> None:
    """Raise UnmetError if rows stay in classes that are too small. short: their number. rows: all rows."""
    if not short:
        return
    said = criterion.text or f"k>={criterion.k}"
    fixed = [repr(names[column]) for column in criterion.columns if column not in importance]
    if not fixed:
        raise UnmetError(
            f"require: {said!r} cannot be reached: the table has {rows:,} {plural(rows, 'row')}, fewer than "
            f"{criterion.k:,}. Ask for a lower k."
        )
    raise UnmetError(
        f"require: {said!r} cannot be reached: {short:,} {plural(short, 'row')} would be of fewer than "
        f"{criterion.k:,} "
        f"that agree on {', '.join(fixed)}, which may not be suppressed. Add {'it' if len(fixed) == 1 else 'them'} to "
        "columns=, or recode before."
    )
