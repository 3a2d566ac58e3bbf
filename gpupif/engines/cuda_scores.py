"""Cohorts on the device scored: one target after the other, on rows grouped by `cuda_rows`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpupif.kernels.cuda import cohorts as kernels

from ..keys import Field, KeyLayout
from .base import Job
from .cuda_library import Library
from .cuda_rows import GROUPINGS, DeviceRows, Runs

# Cohorts of more distinct rows than this are summed by a block of threads each.
LONG = 1024


def score_targets(
    library: Library,
    job: Job,
    rows: DeviceRows,
    layout: KeyLayout,
    columns: Sequence[int],
    targets: Sequence[int],
    grouping: str,
) -> Iterator[tuple[int, Any, Any]]:
    """Target, sizes of its cohorts, and scores (measures, rows), wCIG before weighting, of each target in turn.

    rows: distinct over `columns`, sorted as `collapse` does; columns: the targets, then all else the attacker knows.
    grouping: one of `GROUPINGS`.
    """
    for target, runs in GROUPINGS[grouping](library, rows, layout, columns, targets):
        with library.stage("score"):
            scores = _score(library, job, rows, runs, layout.fields[target], target)
        yield target, runs.sizes, scores
        # Before the next ones are made.
        del scores


def _score(library: Library, job: Job, rows: DeviceRows, runs: Runs, field: Field, target: int) -> Any:
    xp = library.xp
    measures = library.bring(np.array([measure.number for measure in job.measures]))
    cohorts = (runs.order, runs.starts, runs.sizes)
    cells = (rows.keys[field.word], rows.counts)
    bits = (field.shift, field.mask)
    known = (library.bring(job.priors[target]), library.bring(job.log2_priors[target]), float(job.accuracies[target]))
    gains = xp.zeros(len(runs.sizes))
    if any(measure.needs_gain for measure in job.measures):
        library.launch(kernels.sum_short, len(gains), cohorts, cells, bits, known, LONG, gains)
        long = xp.flatnonzero(runs.starts[1:] - runs.starts[:-1] > LONG)
        if len(long):
            library.launch_blocks(
                kernels.sum_long, len(long), kernels.THREADS, long, cohorts, cells, bits, known, gains
            )
    scores = xp.empty((len(job.measures), rows.rows))
    library.launch(kernels.score_cells, rows.rows, cohorts, runs.run_of, gains, cells, bits, known, measures, scores)
    return scores
