"""The methods that find equal rows on the device: distinct rows, cohorts, and numbers of combinations.

"cudf" uses cuDF's group-by and join, which compare whole keys after hashing them. "rotation" sorts rows. The results
differ only in the order of distinct rows, of cohorts, and of rows in a cohort, on which no score depends.
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
# Most slots, one for each possible pair of a number and a code: always, and for each row. If more are possible, pairs
# are numbered as rows are.
SLOTS, SLOTS_PER_ROW = 1 << 22, 4
# Number of counters of combinations, in several copies if there are few combinations; most copies.
COUNTERS, MOST_COPIES = 1 << 16, 1 << 10
# Number of rows from which row numbers need more than 32 bits.
WIDE_ROWS = 1 << 32


class Grouping(ABC):
    """A method that finds equal rows, with its name.

    columns: the scored columns, in the order of their use, and then the other columns.
    """

    name: str

    @abstractmethod
    def collapse(self, rows: DeviceRows, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
        """Return the distinct rows over these columns, for use by `cohorts`, and the number of each row."""

    @abstractmethod
    def serves(
        self, rows: DeviceRows, collapsed: Sequence[int], columns: Sequence[int], scored_columns: Sequence[int]
    ) -> bool:
        """Return whether distinct rows over the columns `collapsed` can be used for the cohorts of these scored
        columns.
        """

    @abstractmethod
    def cohorts(
        self, rows: DeviceRows, columns: Sequence[int], scored_columns: Sequence[int]
    ) -> Iterator[tuple[int, Runs]]:
        """Yield each scored column with its cohorts, for rows that `collapse` made of `columns`.

        Where runs lie side by side, the values of each ascend.
        """


class Rotation(Grouping):
    """The method that sorts: by one further column for each scored column.

    A stable sort by one column after another makes the first of these columns the lowest. Rows that agree on all other
    columns are then neighbours: they are the cohorts of the first column. One more sort by that column makes it the
    highest and the next column the lowest, and so on in a cycle.
    """

    name = "rotation"

    def collapse(self, rows: DeviceRows, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
        return collapse(rows, columns)

    def serves(
        self, rows: DeviceRows, collapsed: Sequence[int], columns: Sequence[int], scored_columns: Sequence[int]
    ) -> bool:
        """Return whether the scored columns are the lowest columns, in their order (see `Grouping`)."""
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
        """Return the runs of equal rows. The result gets no name here, so that the caller can free its parts."""
        with rows.library.stage("group"):
            return find_runs(rows.library, rows.keys, rows.counts, order, masks)


class Hashing(Grouping):
    """The method of cuDF, which hashes whole keys: a group-by and a join for distinct rows, and for each scored column.

    Nothing is sorted: rows keep their order. The order of the cohorts differs from call to call.
    """

    name = "cudf"

    def collapse(self, rows: DeviceRows, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
        library, layout = rows.library, rows.layout
        groups = library.group_rows(_words(rows, layout.masks(columns)), rows.counts)
        keys = library.xp.zeros((len(rows.keys), len(groups.counts)), "uint64")
        while groups.words:
            # Each word is removed as soon as it is copied, to save memory.
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
        """Return the cohorts of rows that agree on the masked keys. They get no name: the caller can free them."""
        with rows.library.stage("group"):
            _, sizes, run_of = rows.library.group_rows(_words(rows, masks), rows.counts)
            run_of += 1
            return Runs(order, None, run_of, sizes)


def _words(rows: DeviceRows, masks: npt.NDArray[np.uint64]) -> dict[int, Any]:
    """Return the masked words of the keys that the masks keep anything of, by word; the first word if they keep
    nothing.

    A word of which all bits are kept is returned without a copy.
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
    """Upload a job's table, and return its distinct rows and the number of each row, as `Grouping.collapse`."""
    with library.stage("pack"):
        keys = pack_device_keys(library, dict(enumerate(job.codes)), job.rows, job.layout)
        multiplicities = None if job.multiplicities is None else library.upload(job.multiplicities)
    with library.stage("collapse"):
        return grouping.collapse(DeviceRows(library, job.layout, keys, multiplicities), columns)


ROTATION = Rotation()
# The methods by name.
GROUPINGS: dict[str, Grouping] = {grouping.name: grouping for grouping in (ROTATION, Hashing())}


def choose_grouping(name: str, job: Job) -> Grouping:
    """Return the grouping of this name, or the rotation if cuDF's grouping cannot serve the job.

    cuDF cannot count more than `MOST_ROWS` rows, and gives no order of values in a cohort, which a walk (`is_walk`)
    needs.
    """
    walks = any(map(is_walk.py_func, wanted_of(job.measures, job.unit).kinds))
    return ROTATION if walks or job.rows > MOST_ROWS else GROUPINGS[name]


def numbering_bytes(rows: int, columns: int) -> int:
    """Return the bytes to number rows by sets of columns. rows: their number. columns: the most columns of a set."""
    return 4 * rows * (columns + 1) + 5 * max(SLOTS, SLOTS_PER_ROW * rows) + 8 * COUNTERS


class RowNumbers(NamedTuple):
    """The number of each row's combination of values of some columns, and how many combinations there are.

    With the rotation, numbers have the order of the codes, with the first column as the highest.
    """

    of_row: Any
    combinations: int


class RowNumberer:
    """A numbering of distinct rows by sets of columns. Neighbouring sets share the numbers of their common first
    columns.

    cardinalities: the number of values of every column.
    """

    def __init__(self, rows: DeviceRows, cardinalities: Sequence[int], grouping: Grouping) -> None:
        self._rows, self._cardinalities, self._grouping = rows, cardinalities, grouping
        self._slots = max(SLOTS, SLOTS_PER_ROW * rows.rows)
        self._path: list[tuple[int, RowNumbers]] = []
        self._start = RowNumbers(rows.library.xp.zeros(rows.rows, "uint32" if rows.rows < WIDE_ROWS else "int64"), 1)

    def over(self, columns: Sequence[int]) -> RowNumbers:
        """Return the rows numbered by these columns."""
        path = self._path
        same = 0
        while same < min(len(path), len(columns)) and path[same][0] == columns[same]:
            same += 1
        del path[same:]
        for column in columns[same:]:
            path.append((column, self._add(path[-1][1] if path else self._start, column)))
        return path[-1][1]

    def combinations(self, numbered: RowNumbers, columns: Sequence[int]) -> DeviceRows:
        """Return the combinations of these columns as rows. numbered: the rows numbered by the same columns."""
        rows, library, xp = self._rows, self._rows.library, self._rows.library.xp
        first = xp.empty(numbered.combinations, "int64")
        copies = max(1, min(MOST_COPIES, COUNTERS // numbered.combinations))
        counts = xp.zeros((copies, numbered.combinations), "int64")
        library.launch(kernels.count_combinations, rows.rows, numbered.of_row, rows.counts, first, counts)
        layout, words, masks = rows.layout.project(columns)
        keys = [rows.keys[word][first] & mask for word, mask in zip(words, masks.tolist(), strict=True)]
        return DeviceRows(library, layout, xp.stack(keys), counts.sum(axis=0))

    def _add(self, before: RowNumbers, column: int) -> RowNumbers:
        """Return the rows numbered by one more column."""
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
