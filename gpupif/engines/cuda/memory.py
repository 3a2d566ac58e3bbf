"""How much memory scoring takes on the device, counted array by array: `stages` lists what is there at the same time.

The tests hold each stage to what is measured in it, arrays of CuPy's sort included, which NumPy's has none of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gpupif.kernels.cohorts import Cells
from gpupif.kernels.cuda.cohorts import PARTS
from gpupif.kernels.statistics import is_walk

from ...measures import wanted_of
from ...rows.partition import OVERSIZE
from ...utils.information import SMALL_COUNTS
from ..base import Job
from .rows import place_type
from .scores import looks_ahead

# Row numbers by which rows are looked up: CuPy takes them as they are, NumPy in 8 bytes.
LOOK_UP = {"row numbers, as they are looked up": 8}
# cuDF keeps the hashes of keys of more than 4 words.
CACHED_KEY = 4 * 8
# Where missing values match every value: arrays of 8 bytes a row beside keys, twice each, and measures, four times.
# Then of each asking key and pattern, and of each cell of cohorts made at once.
MATCHING_ARRAYS = 33
LINK_ARRAYS = 6
MATCH_ARRAYS = 24
# Blocks are so much smaller than what fits: oversized ones, which are still scored as they are, fit too.
OVERSIZED_BLOCKS = 2 * OVERSIZE


class RowBytes(NamedTuple):
    """Bytes of one row's part of an array.

    codes: as the caller has them, 0 where that is on the device. key: all words; field: the widest column's values
    while rows are sorted by them. place: a row's number. times: how often it occurs, 0 where none is given. cell: of a
    cohort; sums: of a cohort, and how many cells it has; found: its statistics. scores: of all measures of a scored
    column
    while they are made; kept: where they are kept. projects: whether rows are collapsed once more for some scored
    columns.
    """

    codes: int
    key: int
    field: int
    place: int
    times: int
    cell: int
    sums: int
    found: int
    scores: int
    kept: int
    projects: bool

    @classmethod
    def of(cls, job: Job) -> RowBytes:
        """Of a job's table."""
        widest = max(1, *((len(counts) - 1).bit_length() for counts in job.counts))
        kinds = wanted_of(job.measures, job.unit).kinds
        ahead = any(looks_ahead(kinds, job.accuracies[scored_column]) for scored_column in job.scored_columns)
        return cls(
            codes=max(0 if hasattr(codes, "get") else codes.dtype.itemsize for codes in job.codes),
            key=8 * key_words(job),
            field=next(width for width in (1, 2, 4, 8) if widest <= 8 * width),
            place=np.dtype(place_type(job.rows)).itemsize,
            times=0 if job.times is None else 8,
            cell=sum(array.nbytes for array in Cells.of(1, walks=any(map(is_walk.py_func, kinds)))),
            sums=4 + sum_bytes(len(kinds), ahead),
            found=8 * len(kinds),
            scores=8 * len(job.measures),
            kept=0 if job.extremes_only else cell_bytes(job),
            projects=_projects(job),
        )


class Stage(NamedTuple):
    """What is on the device at the same time at most, in one stage: array to its bytes a row of the table."""

    name: str
    arrays: dict[str, int]

    @property
    def row_bytes(self) -> int:
        """Of all arrays together."""
        return sum(self.arrays.values())


# Of 10 columns of up to 100 values, in a key of one word, with CIG and CSF.
TYPICAL = RowBytes(
    codes=1, key=8, field=1, place=4, times=0, cell=32, sums=28, found=8, scores=16, kept=16, projects=False
)


class GroupingArrays(NamedTuple):
    """What finding equal rows takes beside the rows themselves, one after the other: distinct rows, and cohorts."""

    distinct: Sequence[dict[str, int]]
    cohorts: Sequence[dict[str, int]]


def rotation_arrays(row: RowBytes, counts: int) -> GroupingArrays:
    """By sorting rows by one column after the other; counts: bytes of how often a row occurs."""
    order = {"order": row.place}
    taken = {"values, shifted": 8, **LOOK_UP, "values": row.field}
    sort = [order | taken, order | {"values": row.field} | _sort_buffers(row.field)]
    return GroupingArrays([*sort, _runs(row, counts), _collapsed(row)], [*sort, _runs(row, 8)])


def cudf_arrays(row: RowBytes, counts: int) -> GroupingArrays:
    """By cuDF's group-by and join, as its sources have it: tables of slots half full, row numbers of 4 bytes.

    What it has added up it has by row of the table first, then by group. counts: as of `rotation_arrays`.
    """
    hashes = 4 if row.key > CACHED_KEY else 0
    slots = {"slots of rows": 2 * 4, "rows by block": 4, "first rows of groups": 4, "hashes": hashes}
    grouped = slots | {"sums by row": counts or 4, "sums": 8, "keys of groups": row.key}
    joined = {"sums": 8, "keys of groups": row.key, "slots of groups": 2 * 8, "pairs": 2 * 4, "groups of rows": 4}
    distinct = {"keys of groups": row.key, "distinct keys": row.key, "sums": 8, "distinct row of each row": 4}
    words = {"order": 4, "words, masked": row.key}
    return GroupingArrays([grouped, joined, distinct], [words | grouped, words | joined])


def _sort_buffers(key: int) -> dict[str, int]:
    """What a stable sort of CuPy by keys of so many bytes takes beside them."""
    return {"sort's keys, twice": 2 * key, "sort's places, twice": 2 * 8}


# By how cohorts are found: see `grouping.GROUPINGS`.
GROUPING_ARRAYS: Mapping[str, Callable[[RowBytes, int], GroupingArrays]] = {
    "rotation": rotation_arrays,
    "cudf": cudf_arrays,
}


def stages(row: RowBytes, grouping: str, to_host: bool) -> list[Stage]:
    """All stages of scoring a table where every row is different, which takes the most.

    grouping: one of `GROUPING_ARRAYS`. to_host: scores of a scored column go to the host while the next ones are made.
    """
    rows = {"keys": row.key, "times": row.times}
    distinct = {"distinct keys": row.key, "counts": 8, "distinct row of each row": row.place}
    found = [Stage("pack", {"codes": row.codes} | rows)]
    found += [Stage("collapse", rows | arrays) for arrays in GROUPING_ARRAYS[grouping](row, row.times).distinct]
    way = {"scores on their way": row.kept} if to_host else {}
    if row.projects:
        masked = {"words, masked": row.key} if grouping == "cudf" else {}
        again = GROUPING_ARRAYS[grouping](row, 8).distinct
        found += [Stage("collapse", distinct | way | masked | _apart(arrays, distinct)) for arrays in again]
        distinct |= {f"{name}, projected": size for name, size in distinct.items()}
        found.append(Stage("collapse", distinct | way | {"projected row of each distinct row": row.place, **LOOK_UP}))
    found += [Stage("group", distinct | way | arrays) for arrays in GROUPING_ARRAYS[grouping](row, 8).cohorts]
    found += [Stage(name, distinct | way | arrays) for name, arrays in _of_scored_column(row, grouping)]
    return found


def _apart(arrays: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    """Arrays by names that those of others do not have, to be counted beside them."""
    return {f"{name}, new" if name in others else name: size for name, size in arrays.items()}


def _runs(row: RowBytes, counts: int) -> dict[str, int]:
    """Runs of rows as they are found; counts: bytes of how often a row occurs."""
    runs = {"order": row.place, "run of each row": row.place, "starts": row.place}
    if counts:
        return runs | {"sums": 8, "sizes": 8, "ends of runs": row.place, **LOOK_UP}
    return runs | {"sizes": 8, "sizes as places": row.place}


def _collapsed(row: RowBytes) -> dict[str, int]:
    """What `collapse` makes, at its end."""
    rows = {"distinct keys": row.key, "sizes": 8}
    return rows | {"distinct row of each row": row.place, "first rows": row.place, **LOOK_UP}


def _of_scored_column(row: RowBytes, grouping: str) -> list[tuple[str, dict[str, int]]]:
    """Return name and arrays of what is done for one scored column, beside distinct rows."""
    order, scores = {"order": row.place}, {"scores": row.scores}
    runs = {"run of each row": row.place, "sizes": 8} | ({"starts": row.place} if grouping == "rotation" else {})
    cells = order | runs | {"cells": row.cell, "found": row.found}
    # Of rows that occur once each, sums of several are half as many at most.
    distinct_sizes = {"of several rows": 1 + 8, "sorted": 3 * 8, "different ones": 4 * 8}
    made = {"one measure": 8, "weighted": 8, **LOOK_UP}
    return [
        ("score", cells | {"sums": row.sums}),
        ("score", cells | scores),
        ("weigh", order | {"sizes": 8} | scores | (distinct_sizes if row.times else {"of several rows": 1 + 24})),
        ("spread", order | scores | {"scores of all rows": row.kept} | made),
    ]


def _most(found: Sequence[Stage]) -> int:
    return max(stage.row_bytes for stage in found)


def key_words(job: Job) -> int:
    """Words of the row keys."""
    return job.layout.words


def _projects(job: Job) -> bool:
    """Whether some scored columns are scored against other columns than those that rows are collapsed over."""
    inside = [column for column in job.scored_columns if column in job.known]
    return len(inside) < len(job.scored_columns) or {*inside, *job.known} != {*range(len(job.codes))}


def row_bytes(job: Job, grouping: str) -> int:
    """Bytes a row of a block: distinct rows brought from the host, collapsed, and scored for one scored column."""
    row = RowBytes.of(job)._replace(codes=0, times=8, projects=False)
    return max(_most(stages(row, grouping, to_host=False)), 2 * row.key + row.times)


def table_bytes(job: Job, grouping: str, to_host: bool = True) -> int:
    """Bytes for scoring the whole table on the device, priors included, without the scores of all scored columns.

    to_host: whether these go to the host.
    """
    return job.rows * _most(stages(RowBytes.of(job), grouping, to_host)) + fixed_bytes(all_values(job))


def fixed_bytes(values: int) -> int:
    """Bytes of what does not grow with rows: priors of so many values, their logarithms, and those of small counts."""
    return 16 * values + 8 * SMALL_COUNTS


def all_values(job: Job) -> int:
    """How many values all columns have."""
    return sum(map(len, job.counts))


def scores_on(job: Job, memory: int, grouping: str) -> str | None:
    """Where the scores of a table are to lie that is scored as a whole in so many bytes; None: it does not fit."""
    if job.scores_on != "host" and whole_bytes(job, "device", grouping) <= memory:
        return "device"
    return "host" if job.scores_on != "device" and whole_bytes(job, "host", grouping) <= memory else None


def whole_bytes(job: Job, there: str, grouping: str) -> int:
    """Bytes for scoring the whole table on the device, with the scores of all scored columns on the "device" or
    "host".
    """
    if there == "host":
        return table_bytes(job, grouping)
    return table_bytes(job, grouping, to_host=False) + score_bytes(job)


def typical_rows_that_fit(memory: int) -> int:
    """Rows of 10 columns of up to 100 values that are scored as a whole in so many bytes: CIG and CSF, to the host."""
    return memory // _most(stages(TYPICAL, "rotation", to_host=True))


def matching_bytes(job: Job) -> int:
    """Bytes for scoring where missing values match every value, without those of batches and the scores of scored
    columns.
    """
    row = 8 * (4 * key_words(job) + MATCHING_ARRAYS + 4 * len(job.measures))
    return job.rows * row + fixed_bytes(all_values(job))


def sum_bytes(statistics: int, ahead: bool) -> int:
    """Return the bytes of the sums of a cohort, for so many statistics; ahead: see `looks_ahead`."""
    return 8 * (int(PARTS) * (statistics + ahead) + statistics * ahead)


def link_bytes(patterns: int) -> int:
    """Bytes for finding what a key matches in so many patterns."""
    return 8 * LINK_ARRAYS * patterns


def match_bytes(measures: int) -> int:
    """Return the bytes for a cell of a cohort of its own."""
    return 8 * (MATCH_ARRAYS + measures) + sum_bytes(measures, ahead=True)


def cell_bytes(job: Job) -> int:
    """Bytes of the scores of a cell."""
    return sum(np.dtype(measure.type_in(job.dtype)).itemsize for measure in job.measures)


def score_bytes(job: Job) -> int:
    """Bytes of the scores of all scored columns."""
    return 0 if job.extremes_only else cell_bytes(job) * job.rows * len(job.scored_columns)


def accumulator_bytes(job: Job, rows: int) -> int:
    """Bytes of the worst scores and the sums of a scored column over many attackers, for so many distinct rows."""
    return 2 * 8 * rows * len(job.measures)


def block_rows_that_fit(job: Job, memory: int, grouping: str) -> int:
    """Distinct rows that can be scored at once in so many bytes."""
    values = max(map(len, job.counts))
    return max(1, (memory - fixed_bytes(values)) // row_bytes(job, grouping))
