"""How rows that agree are found on the device: distinct rows, the cohorts of each scored column, and numbers of
combinations.

"cudf": keys are hashed, by cuDF's group-by and join, which compare whole keys, so that nothing is left to a hash.
"rotation": rows are sorted. What comes out is the same but for the order of distinct rows, of cohorts and of the rows
in them, on which no score depends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gpupif.kernels.cuda import any_known as kernels
from gpupif.kernels.statistics import is_walk

from ...gpu.cupy_arrays import CupyLibrary
from ...measures import wanted_of
from ...rows.keys import Field, KeyLayout
from ..base import Job
from .rows import DeviceRows, Runs, collapse, find_runs, pack_device_keys, place_type, sort_by

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# cuDF counts the rows of a table in 32 bits.
MOST_ROWS = (1 << 31) - 1
# Slots, one for each possible pair of a number and a code, that there may be: always, and for each row. For more, pairs
# are grouped as rows are.
SLOTS, SLOTS_PER_ROW = 1 << 22, 4
# Counters of combinations, in copies where these are few, and copies at most.
COUNTERS, MOST_COPIES = 1 << 16, 1 << 10
# Of so many rows numbers need more than 32 bits.
WIDE_ROWS = 1 << 32


class Grouping(ABC):
    """A way to find rows that agree, known by its name.

    columns: the scored columns, in the order in which they are asked for, and all else.
    """

    name: str

    @abstractmethod
    def collapse(self, rows: DeviceRows, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
        """Distinct rows over these columns, fit for `cohorts`, and for each row which of them it is."""

    @abstractmethod
    def serves(
        self, rows: DeviceRows, collapsed: Sequence[int], columns: Sequence[int], scored_columns: Sequence[int]
    ) -> bool:
        """Whether distinct rows over the columns `collapsed` are fit for the cohorts of these scored columns as they
        are.
        """

    @abstractmethod
    def cohorts(
        self, rows: DeviceRows, columns: Sequence[int], scored_columns: Sequence[int]
    ) -> Iterator[tuple[int, Runs]]:
        """Yield each scored column with its cohorts, for rows that `collapse` made of `columns`.

        Where runs lie side by side, the values of each ascend.
        """


class Rotation(Grouping):
    """Sorts by one column for each scored column.

    Rows sorted by one column after another, stably, are sorted with the first of these columns as the lowest: rows that
    agree on all others are neighbours, the cohorts of that column. Sorting by that column alone makes the next one the
    lowest, and so on round.
    """

    name = "rotation"

    def collapse(self, rows: DeviceRows, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
        return collapse(rows, columns)

    def serves(
        self, rows: DeviceRows, collapsed: Sequence[int], columns: Sequence[int], scored_columns: Sequence[int]
    ) -> bool:
        """See `Grouping`: the scored columns have to be the lowest columns, in their order."""
        return set(collapsed) == set(columns) and list(collapsed[: len(scored_columns)]) == list(scored_columns)

    def cohorts(
        self, rows: DeviceRows, columns: Sequence[int], scored_columns: Sequence[int]
    ) -> Iterator[tuple[int, Runs]]:
        order = rows.library.xp.arange(rows.rows, dtype=place_type(rows.rows))
        for column in columns:
            if column in scored_columns:
                yield column, self._runs(rows, order, _masks(rows, columns, column))
            if column == scored_columns[-1]:
                return
            with rows.library.stage("group"):
                order = sort_by(rows, order, column)

    def _runs(self, rows: DeviceRows, order: Any, masks: npt.NDArray[np.uint64]) -> Runs:
        """As `find_runs`; handed over without a name, so that the caller can free them."""
        with rows.library.stage("group"):
            return find_runs(rows.library, rows.keys, rows.counts, order, masks)


class Hashing(Grouping):
    """Grouping by cuDF, which hashes whole keys: a group-by and a join for distinct rows, and for each scored column.

    Groups come numbered in any order, another one each time, and rows stay where they are: nothing is sorted.
    """

    name = "cudf"

    def collapse(self, rows: DeviceRows, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
        library, layout = rows.library, rows.layout
        groups = library.group_rows(_words(rows, layout.masks(columns)), rows.counts)
        keys = library.xp.zeros((len(rows.keys), len(groups.counts)), "uint64")
        while groups.words:
            # Each as it comes, so that they are never all there twice.
            word, values = groups.words.popitem()
            keys[word] = values
            del values
        return DeviceRows(library, layout, keys, groups.counts), groups.of_row

    def serves(
        self, rows: DeviceRows, collapsed: Sequence[int], columns: Sequence[int], scored_columns: Sequence[int]
    ) -> bool:
        return set(collapsed) == set(columns)

    def cohorts(
        self, rows: DeviceRows, columns: Sequence[int], scored_columns: Sequence[int]
    ) -> Iterator[tuple[int, Runs]]:
        order = rows.library.xp.arange(rows.rows, dtype="int32")
        for scored_column in scored_columns:
            yield scored_column, self._runs(rows, order, _masks(rows, columns, scored_column))

    def _runs(self, rows: DeviceRows, order: Any, masks: npt.NDArray[np.uint64]) -> Runs:
        """Return the groups of rows that agree on what the masks keep; without a name, so that they can be freed."""
        with rows.library.stage("group"):
            _, sizes, run_of = rows.library.group_rows(_words(rows, masks), rows.counts)
            run_of += 1
            return Runs(order, None, run_of, sizes)


def _words(rows: DeviceRows, masks: npt.NDArray[np.uint64]) -> dict[int, Any]:
    """By number those words of the keys of which the masks keep anything, seen through them; the first where none is.

    A word of which they keep all bits that columns have is taken as it stands, without a copy.
    """
    whole = rows.layout.masks(rows.layout.fields).tolist()
    kept = masks.tolist()
    return {
        word: rows.keys[word] if kept[word] == whole[word] else rows.keys[word] & kept[word]
        for word in [word for word, mask in enumerate(kept) if mask] or [0]
    }


def _masks(rows: DeviceRows, columns: Sequence[int], scored_column: int) -> npt.NDArray[np.uint64]:
    return rows.layout.masks([column for column in columns if column != scored_column])


def collapse_table(
    library: CupyLibrary, grouping: Grouping, job: Job, columns: Sequence[int]
) -> tuple[DeviceRows, Any]:
    """`Grouping.collapse` of a job's table, which is brought to the device for it."""
    with library.stage("pack"):
        keys = pack_device_keys(library, dict(enumerate(job.codes)), job.rows, job.layout)
        times = None if job.times is None else library.upload(job.times)
    with library.stage("collapse"):
        return grouping.collapse(DeviceRows(library, job.layout, keys, times), columns)


ROTATION = Rotation()
# By name.
GROUPINGS: dict[str, Grouping] = {grouping.name: grouping for grouping in (ROTATION, Hashing())}


def choose_grouping(name: str, job: Job) -> Grouping:
    """Return the grouping of this name, or the one that sorts where cuDF's is of no use for the job.

    That is where the job has more rows than cuDF counts, or a statistic needs a cohort's values in order (`is_walk`).
    """
    walks = any(map(is_walk.py_func, wanted_of(job.measures, job.unit).kinds))
    return ROTATION if walks or job.rows > MOST_ROWS else GROUPINGS[name]


def numbering_bytes(rows: int, columns: int) -> int:
    """Bytes that numbering so many rows by sets of so many columns takes."""
    return 4 * rows * (columns + 1) + 5 * max(SLOTS, SLOTS_PER_ROW * rows) + 8 * COUNTERS


class RowNumbers(NamedTuple):
    """The number of each row by its codes of some columns; how many there are.

    Where rows are found by sorting, numbers are in the order of the codes, the first column the highest.
    """

    of_row: Any
    combinations: int


class RowNumberer:
    """Numbers of distinct rows, those over the columns that neighbouring sets begin with made once.

    cardinalities: of all columns.
    """

    def __init__(self, rows: DeviceRows, cardinalities: Sequence[int], grouping: Grouping) -> None:
        self._rows, self._cardinalities, self._grouping = rows, cardinalities, grouping
        self._slots = max(SLOTS, SLOTS_PER_ROW * rows.rows)
        self._path: list[tuple[int, RowNumbers]] = []
        self._start = RowNumbers(rows.library.xp.zeros(rows.rows, "uint32" if rows.rows < WIDE_ROWS else "int64"), 1)

    def over(self, columns: Sequence[int]) -> RowNumbers:
        """Rows numbered by these columns."""
        path = self._path
        same = 0
        while same < min(len(path), len(columns)) and path[same][0] == columns[same]:
            same += 1
        del path[same:]
        for column in columns[same:]:
            path.append((column, self._add(path[-1][1] if path else self._start, column)))
        return path[-1][1]

    def combinations(self, numbered: RowNumbers, columns: Sequence[int]) -> DeviceRows:
        """The combinations of these columns, by which rows are numbered, as rows of their own."""
        rows, library, xp = self._rows, self._rows.library, self._rows.library.xp
        first = xp.empty(numbered.combinations, "int64")
        copies = max(1, min(MOST_COPIES, COUNTERS // numbered.combinations))
        counts = xp.zeros((copies, numbered.combinations), "int64")
        library.launch(kernels.count_combinations, rows.rows, numbered.of_row, rows.counts, first, counts)
        layout, words, masks = rows.layout.project(columns)
        keys = [rows.keys[word][first] & mask for word, mask in zip(words, masks.tolist(), strict=True)]
        return DeviceRows(library, layout, xp.stack(keys), counts.sum(axis=0))

    def _add(self, before: RowNumbers, column: int) -> RowNumbers:
        """Rows numbered by one more column."""
        rows, library, xp, radix = self._rows, self._rows.library, self._rows.library.xp, self._cardinalities[column]
        if radix == 1 or before.combinations == rows.rows:
            return before
        word, shift, mask = rows.layout.fields[column]
        pairs = (before.of_row, rows.keys[word], (shift, mask), radix)
        possible = before.combinations * radix
        if possible > self._slots:
            places = xp.empty((1, rows.rows), "uint64")
            library.launch(kernels.place_pairs, rows.rows, *pairs, places[0])
            whole = KeyLayout({0: Field(0, 0, (1 << (possible - 1).bit_length()) - 1)}, 1)
            found, number = self._grouping.collapse(DeviceRows(library, whole, places, rows.counts), [0])
            return RowNumbers(number.astype(before.of_row.dtype), found.rows)
        slots = xp.zeros(possible, "uint8")
        library.launch(kernels.mark_pairs, rows.rows, *pairs, slots)
        marked = xp.cumsum(slots, dtype=before.of_row.dtype)
        number = xp.empty_like(before.of_row)
        library.launch(kernels.number_pairs, rows.rows, *pairs, marked, number)
        return RowNumbers(number, int(marked[-1]))
