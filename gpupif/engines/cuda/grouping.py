"""How rows that agree are found on the device: distinct rows, and the cohorts of each target.

"cudf": keys are hashed, by cuDF's group-by and join, which compare whole keys, so that nothing is left to a hash.
"rotation": rows are sorted. What comes out is the same but for the order of distinct rows and of cohorts, on which no
score depends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...gpu.base import Library
from ..base import Job
from .rows import DeviceRows, Runs, collapse, find_runs, pack_device_keys, place_type, sort_by
from .sorting import in_few_bytes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# cuDF counts the rows of a table in 32 bits.
MOST_ROWS = (1 << 31) - 1


class Grouping(ABC):
    """A way to find rows that agree, known by its name.

    columns: the targets, in the order in which they are asked for, and all else.
    """

    name: str

    @abstractmethod
    def collapse(self, rows: DeviceRows, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
        """Distinct rows over these columns, fit for `cohorts`, and for each row which of them it is."""

    @abstractmethod
    def serves(
        self, rows: DeviceRows, collapsed: Sequence[int], columns: Sequence[int], targets: Sequence[int]
    ) -> bool:
        """Whether distinct rows over the columns `collapsed` are fit for the cohorts of these targets as they are."""

    @abstractmethod
    def cohorts(self, rows: DeviceRows, columns: Sequence[int], targets: Sequence[int]) -> Iterator[tuple[int, Runs]]:
        """Each target with its cohorts, for rows that `collapse` made of `columns`; the values of a run ascend."""


class Rotation(Grouping):
    """Sorts by one column for each target.

    Rows sorted by one column after another, stably, are sorted with the first of these columns as the lowest: rows that
    agree on all others are neighbours, the cohorts of that column. Sorting by that column alone makes the next one the
    lowest, and so on round.
    """

    name = "rotation"

    def collapse(self, rows: DeviceRows, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
        return collapse(rows, columns)

    def serves(
        self, rows: DeviceRows, collapsed: Sequence[int], columns: Sequence[int], targets: Sequence[int]
    ) -> bool:
        """See `Grouping`: the targets have to be the lowest columns, in their order."""
        return set(collapsed) == set(columns) and list(collapsed[: len(targets)]) == list(targets)

    def cohorts(self, rows: DeviceRows, columns: Sequence[int], targets: Sequence[int]) -> Iterator[tuple[int, Runs]]:
        order = rows.library.xp.arange(rows.rows, dtype=place_type(rows.rows))
        for column in columns:
            if column in targets:
                yield column, self._runs(rows, order, _masks(rows, columns, column))
            if column == targets[-1]:
                return
            with rows.library.stage("group"):
                order = sort_by(rows, order, column)

    def _runs(self, rows: DeviceRows, order: Any, masks: npt.NDArray[np.uint64]) -> Runs:
        """As `find_runs`; handed over without a name, so that the caller can free them."""
        with rows.library.stage("group"):
            return find_runs(rows.library, rows.keys, rows.counts, order, masks)


class Hashing(Grouping):
    """Has cuDF hash whole keys; more rows than it can count are sorted.

    Groups come numbered in any order, another one each time. Kernels read a cohort's rows from one place on, so rows
    are then put in order by their value and their group's number: that orders small numbers, and finds no groups.
    """

    name = "cudf"
    _larger = Rotation()

    def collapse(self, rows: DeviceRows, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
        if rows.rows > MOST_ROWS:
            return self._larger.collapse(rows, columns)
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
        self, rows: DeviceRows, collapsed: Sequence[int], columns: Sequence[int], targets: Sequence[int]
    ) -> bool:
        if rows.rows > MOST_ROWS:
            return self._larger.serves(rows, collapsed, columns, targets)
        return set(collapsed) == set(columns)

    def cohorts(self, rows: DeviceRows, columns: Sequence[int], targets: Sequence[int]) -> Iterator[tuple[int, Runs]]:
        if rows.rows > MOST_ROWS:
            yield from self._larger.cohorts(rows, columns, targets)
            return
        for target in targets:
            yield target, self._runs(rows, columns, target)

    def _runs(self, rows: DeviceRows, columns: Sequence[int], target: int) -> Runs:
        """The cohorts of a target, one after the other."""
        library, xp, place = rows.library, rows.library.xp, place_type(rows.rows)
        with library.stage("group"):
            _, sizes, of_row = library.group_rows(_words(rows, _masks(rows, columns, target)), rows.counts)
            order = sort_by(rows, xp.arange(rows.rows, dtype=place), target)
            order = order[library.stable_order(in_few_bytes(of_row, len(sizes).bit_length())[order])]
            run_of = of_row[order].astype(place)
            del of_row
            heads = xp.ones(rows.rows, "bool")
            heads[1:] = run_of[1:] != run_of[:-1]
            run_of += 1
            starts = xp.empty(len(sizes) + 1, place)
            starts[:-1] = xp.flatnonzero(heads)
            starts[-1:] = rows.rows
            return Runs(order, starts, run_of, sizes)


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


def _masks(rows: DeviceRows, columns: Sequence[int], target: int) -> npt.NDArray[np.uint64]:
    return rows.layout.masks([column for column in columns if column != target])


def collapse_table(library: Library, grouping: Grouping, job: Job, columns: Sequence[int]) -> tuple[DeviceRows, Any]:
    """`Grouping.collapse` of a job's table, which is brought to the device for it."""
    with library.stage("pack"):
        keys = pack_device_keys(library, dict(enumerate(job.codes)), job.rows, job.layout)
        times = None if job.times is None else library.upload(job.times)
    with library.stage("collapse"):
        return grouping.collapse(DeviceRows(library, job.layout, keys, times), columns)


# By name.
GROUPINGS: dict[str, Grouping] = {grouping.name: grouping for grouping in (Rotation(), Hashing())}
