"""A table, or a part of it, as counted rows: how often each occurs, and how many people it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..engines.base import Job
from ..engines.partition_plan import part_job
from ..rows.distinct import DistinctRows
from ..rows.keys import KeyLayout
from ..rows.threads import Workers
from ..utils.arrays import on_host


class TablePart(NamedTuple):
    """Rows of a table in which equivalence classes lie whole; job: with how often each row occurs (None: once)."""

    job: Job
    people: npt.NDArray[np.int64] | None

    @classmethod
    def of(
        cls,
        job: Job,
        scored_columns: Sequence[int],
        columns: Sequence[int],
        keys: npt.NDArray[np.uint64],
        times: npt.NDArray[np.int64],
        people: npt.NDArray[np.int64] | None = None,
    ) -> TablePart:
        """Rows, by keys over some columns, for some scored columns of a job for the whole table."""
        # Codes of other columns do not matter.
        codes: list[npt.NDArray[Any]] = [np.zeros(len(keys), np.uint8)] * len(job.counts)
        for column, own in zip(columns, layout_of(job, columns).unpack(keys), strict=True):
            codes[column] = own
        return cls(part_job(job, scored_columns, codes, times), people)

    @classmethod
    def whole(cls, job: Job) -> TablePart:
        """All rows of a table; job: for it, counting people where they have weights."""
        return cls(job if job.unit is None else replace(job, times=None), job.times)

    @property
    def times(self) -> npt.NDArray[np.int64]:
        """How often each row occurs."""
        return np.ones(self.job.rows, np.int64) if self.job.times is None else self.job.times

    @property
    def weighted(self) -> Job:
        """The job with rows counted by the people that they stand for, where they have weights."""
        return self.job if self.people is None else replace(self.job, times=self.people)

    @property
    def without_zero_weights(self) -> Job:
        """`weighted`, without rows of weight 0."""
        job = self.weighted
        if self.people is None or self.people.all():
            return job
        some = self.people > 0
        return replace(job, codes=[on_host(codes)[some] for codes in job.codes], times=self.people[some])

    def distinct(self, workers: Workers) -> TablePart:
        """Equal rows as one."""
        job = self.job
        columns = [*job.known, *job.scored_columns]
        layout = layout_of(job, columns)
        amounts = [self.times, *([] if self.people is None else [self.people])]
        rows = DistinctRows(layout.words, len(amounts), workers)
        rows.add(layout.pack([on_host(job.codes[column]) for column in columns], workers), *amounts)
        return TablePart.of(job, job.scored_columns, columns, rows.keys, *rows.sums)


def layout_of(job: Job, columns: Sequence[int]) -> KeyLayout:
    """How rows over some columns lie in keys."""
    return KeyLayout.of([len(job.counts[column]) for column in columns])
