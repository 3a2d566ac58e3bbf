"""Scores of cohorts on the device, one scored column after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from gpupif.kernels.cohorts import Cells
from gpupif.kernels.cuda import cohorts as kernels
from gpupif.kernels.statistics import is_walk
from gpupif.kernels.whole_sums import rank_of_float

from ...gpu.cupy_arrays import CupyLibrary
from ...measures import wanted_of
from ...rows.keys import Field
from ...utils.information import small_logs
from ..base import Job
from ..kernel_inputs import kernel_values
from ..memory import looks_ahead
from .grouping import Grouping
from .rows import DeviceRows, Runs

if TYPE_CHECKING:
    from gpupif.kernels.cohorts import Values, Wanted

Group = TypeVar("Group", bound=tuple[Any, ...])

# The rank of -inf, below the rank of every other number.
LEAST = rank_of_float.py_func(-math.inf)


class DeviceScoredColumn(NamedTuple):
    """A scored column and the measures, described to kernels, on the device.

    walks: whether any statistic is a walk. ahead: whether any statistic looks ahead, see `looks_ahead`. logs: of small
        counts, see `log2_count`.
    """

    values: Values
    wanted: Wanted
    walks: bool
    ahead: bool
    logs: Any


class ScoredColumnUploader:
    """A maker of descriptions of a job's scored columns. It uploads their common arrays once."""

    def __init__(self, library: CupyLibrary, job: Job) -> None:
        self._library, self._job = library, job
        wanted = wanted_of(job.measures, job.unit)
        self._kinds = wanted.kinds
        self._walks = any(map(is_walk.py_func, self._kinds))
        self._wanted = _brought(library, wanted)
        self._logs = library.bring(small_logs())

    def __call__(self, scored_column: int) -> DeviceScoredColumn:
        """Return the description of a scored column and the job's measures for kernels."""
        values = _brought(self._library, kernel_values(self._job, [scored_column]))
        ahead = looks_ahead(self._kinds, self._job.accuracies[scored_column])
        return DeviceScoredColumn(values, self._wanted, self._walks, ahead, self._logs)


def _brought(library: CupyLibrary, group: Group) -> Group:
    """Return a named tuple of arrays, or of further named tuples, with its arrays uploaded."""
    return type(group)(*(_brought(library, part) if isinstance(part, tuple) else library.bring(part) for part in group))


def score_scored_columns(
    describe: Callable[[int], DeviceScoredColumn],
    rows: DeviceRows,
    columns: Sequence[int],
    scored_columns: Sequence[int],
    grouping: Grouping,
) -> Iterator[tuple[int, Any, Any]]:
    """Yield each scored column, the sizes of its cohorts, and its scores (measures, rows), wCIG before weighting.

    describe: a `ScoredColumnUploader`, perhaps with a cache.
    rows: the distinct rows over `columns`, made by the grouping.
    columns: the scored columns, in this order, and then the other columns that the attacker knows.
    """
    for scored_column, runs in grouping.cohorts(rows, columns, scored_columns):
        with rows.library.stage("score"):
            scores = _score(describe(scored_column), rows, runs, rows.layout.fields[scored_column])
        sizes = runs.sizes
        # Free memory before the scores are copied and the next scores computed.
        del runs
        yield scored_column, sizes, scores
        del sizes, scores


def describe_cohorts(
    library: CupyLibrary, described: DeviceScoredColumn, runs: Runs, words: tuple[Any, Any], field: tuple[int, int]
) -> tuple[Cells, Any]:
    """Return the cells of cohorts, in their order, and the statistics (runs, statistics) of the cohorts.

    words: the word of each row that holds the scored column's value, and the multiplicities. field: shift and mask of
        the value in the word.
    """
    xp, (values, wanted, walks, ahead, logs) = library.xp, described
    size, number, kinds = len(runs.order), len(runs.sizes), len(wanted.kinds)
    cells, members, cohorts = (
        Cells.for_cells(size, xp.empty, walks),
        xp.zeros(number, "int32"),
        (runs.order, runs.sizes),
    )
    library.launch(kernels.describe_cells, size, cohorts, runs.run_of, words, field, logs, values, cells, members)
    found = xp.empty((number, kinds))
    if kinds:
        largest = xp.full((number if ahead else 0, kinds), LEAST, "int64")
        sums = (members, largest, xp.zeros((number, kernels.PARTS * (kinds + ahead)), "int64"))
        if ahead:
            library.launch(kernels.look_ahead, size, runs.run_of, values, wanted, cells, sums)
        library.launch(kernels.add_cells, size, runs.run_of, values, wanted, cells, sums)
        library.launch(kernels.finish_runs, number, runs.sizes, values, wanted, sums, found)
    if walks:
        library.launch(kernels.walk_all, number, (runs.starts, found), values, wanted, cells)
    return cells, found


def _score(described: DeviceScoredColumn, rows: DeviceRows, runs: Runs, field: Field) -> Any:
    library, values, wanted = rows.library, described.values, described.wanted
    words = (rows.keys[field.word], rows.counts)
    cells, found = describe_cohorts(library, described, runs, words, (field.shift, field.mask))
    scores = library.xp.empty((len(wanted.measures), rows.rows))
    cohorts = (runs.order, runs.sizes)
    library.launch(kernels.score_cells, rows.rows, cohorts, runs.run_of, values, wanted, cells, found, scores)
    return scores
