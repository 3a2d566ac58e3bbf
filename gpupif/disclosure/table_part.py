"""A table, or a part of it, as counted rows: how often each occurs, and how many people it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpupif.kernels.codes import add_times

from ..engines.base import on_host
from ..engines.block_scoring import pack_keys, unpack_keys
from ..engines.part_jobs import part_job
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import NO_ROWS, Rows, index_type

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..engines.base import Job
    from ..rows.threads import Workers


class CountedRows(NamedTuple):
    """Row keys, how often each occurs (None: once), and the people, in units of weight, that these rows stand for
    together (None without weights).
    """

    keys: npt.NDArray[np.uint64]
    times: npt.NDArray[Any] | None
    people: npt.NDArray[np.int64] | None

    def distinct(self, total: int, workers: Workers) -> CountedRows:
        """Equal rows as one, in order of first appearance; total: rows of the table."""
        kind = index_type(total + 1)
        times = NO_ROWS if self.times is None else self.times.astype(kind, copy=False)
        found = distinct_rows(Rows(self.keys, times), total, workers)
        sums = None
        if self.people is not None:
            sums = np.zeros(len(found.rows.keys), np.int64)
            add_times(found.number, self.people, sums)
        return CountedRows(found.rows.keys, found.rows.counts.astype(kind, copy=False), sums)

    @classmethod
    def total(cls, parts: Sequence[CountedRows]) -> CountedRows:
        """The rows of several parts, one after the other; all have counts."""

        def joined(arrays: Sequence[Any]) -> Any:
            return None if arrays[0] is None else np.concatenate(arrays)

        return cls(*map(joined, zip(*parts, strict=True)))


class TablePart(NamedTuple):
    """Rows of a table in which equivalence classes lie whole; job: with how often each row occurs (None: once)."""

    job: Job
    people: npt.NDArray[np.int64] | None

    @classmethod
    def of(
        cls, job: Job, targets: Sequence[int], columns: Sequence[int], layout: KeyLayout, rows: CountedRows
    ) -> TablePart:
        """Rows over some columns, which the layout has, and some targets of a job for the whole table."""
        # Codes of other columns do not matter.
        codes: list[npt.NDArray[Any]] = [np.zeros(len(rows.keys), np.uint8)] * len(job.counts)
        for column, own in zip(columns, unpack_keys(rows.keys, layout), strict=True):
            codes[column] = own
        times = None if rows.times is None else rows.times.astype(np.int64)
        return cls(part_job(job, targets, codes, times), rows.people)

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
    def somebody(self) -> Job:
        """`weighted`, of the rows that stand for somebody."""
        job = self.weighted
        if self.people is None or self.people.all():
            return job
        some = self.people > 0
        return replace(job, codes=[on_host(codes)[some] for codes in job.codes], times=self.people[some])

    def distinct(self, total: int, workers: Workers) -> TablePart:
        """Equal rows as one; total: rows of the table."""
        job = self.job
        columns = [*job.known, *job.targets]
        layout = KeyLayout.of([len(job.counts[column]) for column in columns])
        keys = pack_keys([on_host(job.codes[column]) for column in columns], layout, workers)
        rows = CountedRows(keys, job.times, self.people).distinct(total, workers)
        return TablePart.of(job, job.targets, columns, layout, rows)
