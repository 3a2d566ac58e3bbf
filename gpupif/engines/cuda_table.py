"""A table scored on devices that hold all of it: each scores its share of the targets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .base import EngineResult, Job, Progress
from .cuda_library import Library
from .cuda_outbox import Outbox
from .cuda_rows import DeviceRows, collapse, pack_keys, sizes_of
from .cuda_scores import describe_target, score_targets
from .run import Results
from .workers import Workers


def score_table(job: Job, progress: Progress, streams: Sequence[Sequence[Library]], grouping: str) -> EngineResult:
    """Score all targets of the job; the scores lie on the host, or on the first device, as the job wants.

    streams: the libraries of each device. grouping: one of `GROUPINGS`. Raises DeviceMemoryError.
    """
    home = streams[0][0]
    with home.active():
        results = Results(job, home.empty if job.scores_on == "device" else np.empty)

    def score(device: Sequence[Library], targets: Sequence[int]) -> int:
        with device[0].active(), Outbox(device, home) as outbox:
            return _TableRun(job, targets, results, progress, device[0], outbox, grouping).score()

    tasks = [(device, job.targets[first :: len(streams)]) for first, device in enumerate(streams)]
    with Workers(len(streams)) as workers:
        distinct = workers.run(score, [task for task in tasks if task[1]])
    return results.finished(distinct[0])


class _TableRun:
    """What the steps of one run on one device share."""

    def __init__(
        self,
        job: Job,
        targets: Sequence[int],
        results: Results,
        progress: Progress,
        library: Library,
        outbox: Outbox,
        grouping: str,
    ) -> None:
        self.job = job
        self.targets = targets
        self.results = results
        self.progress = progress
        self.library = library
        self.outbox = outbox
        self.grouping = grouping

    def score(self) -> int:
        """Score the targets among the known on one round of sorts, each of the others on one; returns distinct rows."""
        job, library, layout = self.job, self.library, self.results.layout
        inside = [column for column in self.targets if column in job.known]
        first = [*inside, *(column for column in range(len(job.codes)) if column not in inside)]
        with library.stage("group"):
            keys = pack_keys(library, dict(enumerate(job.codes)), job.rows, layout)
            counts = library.xp.ones(job.rows, "int64") if job.times is None else library.upload(job.times)
            table = DeviceRows(keys, counts)
            distinct, number = collapse(library, table, layout, first)
            del keys, counts, table
        for targets in (inside, *([column] for column in self.targets if column not in job.known)):
            if targets:
                self._score_projection(distinct, number, targets, first)
        self.outbox.empty()
        return distinct.rows

    def _score_projection(
        self, distinct: DeviceRows, number: Any, targets: Sequence[int], sorted_by: Sequence[int]
    ) -> None:
        """Score targets against the known columns; `distinct` are rows over the columns `sorted_by`, in that order."""
        library, job, results = self.library, self.job, self.results
        columns = [*targets, *(column for column in job.known if column not in targets)]
        if set(columns) != set(sorted_by) or list(targets) != list(sorted_by[: len(targets)]):
            with library.stage("group"):
                distinct, narrow = collapse(library, distinct, results.layout, columns)
                number = narrow[number]
        joint = sizes_of(library, distinct.counts, results.total)
        layout = results.layout
        describe = partial(describe_target, library, job)
        for target, sizes, scores in score_targets(
            library, describe, distinct, layout, columns, targets, self.grouping
        ):
            results.weigh(target, sizes_of(library, sizes, results.total), joint)
            if job.extremes_only:
                low, high = (library.to_host(found) for found in (scores.min(axis=1), scores.max(axis=1)))
                results.add_extremes(target, low, high)
                self.progress.advance(job.rows)
                continue
            place = job.targets.index(target)
            outs = [values[place] for values in results.values]
            with library.stage("write"):
                of_rows = [
                    (factor * values)[number].astype(out.dtype, copy=False)
                    for factor, values, out in zip(results.factors(target), scores, outs, strict=True)
                ]
                self.outbox.put(of_rows, outs)
            # Before the next ones are made.
            del scores, of_rows
            self.progress.advance(job.rows)
