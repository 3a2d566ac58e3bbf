"""Cohorts on the device scored: one target after the other, on rows grouped by `rows`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from gpupif.kernels.cohorts import Cells
from gpupif.kernels.cuda import cohorts as kernels
from gpupif.kernels.statistics import is_walk

from ...gpu.base import Library
from ...measures import wanted_of
from ...rows.keys import Field
from ...utils.information import small_logs
from ..base import Job
from ..kernel_inputs import kernel_values
from .grouping import Grouping
from .rows import DeviceRows, Runs

if TYPE_CHECKING:
    from gpupif.kernels.cohorts import Values, Wanted

Group = TypeVar("Group", bound=tuple[Any, ...])

# Cohorts of more distinct rows than this are summed by a block of threads each.
LONG = 1024


class DeviceTarget(NamedTuple):
    """A target and the measures as kernels know them, on the device.

    walks: whether any statistic is a walk. logs: of small counts, see `log2_count`.
    """

    values: Values
    wanted: Wanted
    walks: bool
    logs: Any


class TargetUploader:
    """Describes the targets of a job, one at a time; brings what they have in common to the device once."""

    def __init__(self, library: Library, job: Job) -> None:
        self._library, self._job = library, job
        wanted = wanted_of(job.measures, job.unit)
        self._walks = any(is_walk.py_func(kind) for kind in wanted.kinds)
        self._wanted = _brought(library, wanted)
        self._logs = library.bring(small_logs())

    def __call__(self, target: int) -> DeviceTarget:
        """What the kernels have to know of a target and the job's measures."""
        values = _brought(self._library, kernel_values(self._job, [target]))
        return DeviceTarget(values, self._wanted, self._walks, self._logs)


def _brought(library: Library, group: Group) -> Group:
    """A named tuple of arrays, and of other such tuples, with its arrays on the device."""
    return type(group)(*(_brought(library, part) if isinstance(part, tuple) else library.bring(part) for part in group))


def score_targets(
    describe: Callable[[int], DeviceTarget],
    rows: DeviceRows,
    columns: Sequence[int],
    targets: Sequence[int],
    grouping: Grouping,
) -> Iterator[tuple[int, Any, Any]]:
    """Target, sizes of its cohorts, and scores (measures, rows), wCIG before weighting, of each target in turn.

    describe: a `TargetUploader`, or what remembers what it says. rows: distinct over `columns`, as the grouping made
    them; columns: the targets, in this order, and all else the attacker knows.
    """
    for target, runs in grouping.cohorts(rows, columns, targets):
        with rows.library.stage("score"):
            scores = _score(describe(target), rows, runs, rows.layout.fields[target])
        sizes = runs.sizes
        # Before what is found is spread, and before the next ones are made.
        del runs
        yield target, sizes, scores
        del sizes, scores


def describe_cohorts(
    library: Library, described: DeviceTarget, runs: Runs, words: tuple[Any, Any], field: tuple[int, int]
) -> tuple[Cells, Any]:
    """The cells of cohorts in order, and (runs, statistics) their statistics.

    words: by row the word that holds the value of the target, where `field` (shift, mask) says; and the row's count.
    """
    xp, (values, wanted, walks, logs) = library.xp, described
    cells = Cells.of(len(runs.order), xp.empty)
    cohorts = (runs.order, runs.starts, runs.sizes)
    library.launch(kernels.describe_cells, len(runs.order), cohorts, runs.run_of, words, field, logs, values, cells)
    found = xp.empty((len(runs.sizes), len(wanted.kinds)))
    if len(wanted.kinds):
        library.launch(kernels.sum_short, len(found), (runs.starts, found), LONG, values, wanted, cells)
        long = xp.flatnonzero(runs.starts[1:] - runs.starts[:-1] > LONG)
        if len(long):
            library.launch_blocks(
                kernels.sum_long,
                len(long),
                kernels.THREADS,
                long,
                (runs.starts, runs.sizes, found),
                values,
                wanted,
                cells,
            )
    if walks:
        library.launch(kernels.walk_all, len(found), (runs.starts, found), values, wanted, cells)
    return cells, found


def _score(described: DeviceTarget, rows: DeviceRows, runs: Runs, field: Field) -> Any:
    library, values, wanted = rows.library, described.values, described.wanted
    words = (rows.keys[field.word], rows.counts)
    cells, found = describe_cohorts(library, described, runs, words, (field.shift, field.mask))
    scores = library.xp.empty((len(wanted.measures), rows.rows))
    cohorts = (runs.order, runs.starts, runs.sizes)
    library.launch(kernels.score_cells, rows.rows, cohorts, runs.run_of, values, wanted, cells, found, scores)
    return scores
