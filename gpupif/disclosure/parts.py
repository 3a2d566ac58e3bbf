"""The parts of a table of files: distinct rows with counts, few enough to be looked at at once."""

from __future__ import annotations

import contextlib
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..attack.weights import Units
from ..engines.base import Job
from ..errors import InputError
from ..out_of_core.budget import Budget
from ..out_of_core.chunks import Chunks
from ..out_of_core.collapse import Packing, TooManyRowsError, collapse
from ..out_of_core.shuffle import HashRange, Partitioned, hash_partition
from ..rows.threads import Workers
from ..utils.private_folder import private_folder
from ..utils.progress import Reporter
from .table_part import TablePart


class Parts:
    """The parts of an encoded table; to be gone through more than once.

    job: for all of it, without codes of rows; the columns known come first. folder: for what is cut. report: hears of
    it. weights: their units, and the place of the chunks' column that holds them, where rows have weights.

    Raises InputError where missing values match every value and the distinct rows, which are one part then, are too
    many.
    """

    def __init__(
        self,
        job: Job,
        chunks: Chunks,
        budget: Budget,
        folder: Path,
        report: Reporter,
        weights: tuple[Units, int] | None = None,
    ) -> None:
        self._job = job
        self._table = chunks
        self._weights = weights or ()
        self._folder = folder
        self._report = report
        self._limit = budget.part_rows(job)
        self._planned = budget.planned_rows(self._limit, chunks.rows, len(job.counts))
        with Workers() as workers:
            self._whole, self._cut = self._prepare(workers)

    def __iter__(self) -> Iterator[TablePart]:
        if self._whole is not None:
            yield self._whole
        if self._cut is not None:
            with Workers() as workers:
                yield from self._pieces(self._cut, self._job.scored_columns, HashRange(), workers)

    def close(self) -> None:
        """Delete what was cut."""
        if self._cut is not None:
            shutil.rmtree(self._cut.folder)

    def _prepare(self, workers: Workers) -> tuple[TablePart | None, Partitioned | None]:
        """The whole table as one part, or where its distinct rows are too many, cut."""
        self._report.stage("collapse", self._table.rows, "rows")
        with contextlib.suppress(TooManyRowsError):
            return self._collapse(
                self._table, self._job.scored_columns, self._limit, workers, self._report.advance
            ), None
        if self._job.wildcards:
            raise too_many_to_compare(self._limit, self._table.rows)
        self._report.stage("cut", self._table.rows, "rows")
        parts = max(2, -(-self._table.rows // self._planned))
        return None, self._cut_up(self._table, parts, self._folder, None, workers, self._report.advance)

    def _pieces(
        self, pieces: Partitioned, scored_columns: Sequence[int], span: HashRange, workers: Workers
    ) -> Iterator[TablePart]:
        """What the parts of a cut are looked at in; span: of what was cut."""
        for part, piece, place in pieces.each(span):
            yield from self._part(piece, scored_columns, place, pieces.folder / f"{part}", workers)

    def _part(
        self,
        chunks: Chunks,
        scored_columns: Sequence[int],
        span: HashRange,
        folder: Path,
        workers: Workers,
        tried: bool = False,
    ) -> Iterator[TablePart]:
        """What a part is looked at in. tried: it cannot be cut by the quasi-identifiers any more."""
        # One attribute of one class has not many more rows than it has values.
        limit = math.inf if tried and len(scored_columns) == 1 else self._limit
        with contextlib.suppress(TooManyRowsError):
            yield self._collapse(chunks, scored_columns, limit, workers)
            return
        if not tried:
            finer = self._cut_up(chunks, -(-2 * chunks.rows // self._limit), folder, span, workers)
            try:
                # Else it is one class, or two that the next cut would not part either.
                if max(map(sum, finer.sizes)) < chunks.rows:
                    yield from self._pieces(finer, scored_columns, span, workers)
                    return
            finally:
                shutil.rmtree(finer.folder)
        middle = len(scored_columns) // 2
        for half in filter(len, (scored_columns[:middle], scored_columns[middle:])):
            yield from self._part(chunks, half, span, folder, workers, tried=True)

    def _cut_up(
        self,
        chunks: Chunks,
        parts: int,
        folder: Path,
        span: HashRange | None,
        workers: Workers,
        done: Callable[[int], None] = lambda rows: None,
    ) -> Partitioned:
        private_folder(folder)
        return hash_partition(chunks, self._job.cardinalities, self._job.known, parts, folder, workers, span, done)

    def _collapse(
        self,
        chunks: Chunks,
        scored_columns: Sequence[int],
        limit: float,
        workers: Workers,
        done: Callable[[int], None] = lambda rows: None,
    ) -> TablePart:
        """A part with some of the scored columns; raises TooManyRowsError where it has more than `limit` distinct
        rows.
        """
        used = [*self._job.known, *scored_columns]
        packing = Packing.of(self._job.cardinalities, used, *self._weights)
        rows = collapse(chunks, packing, self._limit // 2, workers, limit, done=done)
        return TablePart.of(self._job, scored_columns, used, rows.keys, *rows.sums)


def too_many_to_compare(limit: int, rows: int) -> InputError:
    """The error of more than `limit` distinct rows in a table of so many, where missing values match every value."""
    return InputError(
        f"missing: 'wildcard' compares all different rows with each other, and these have to fit into memory: they are "
        f"more than {limit:,} of the {rows:,} rows, for which the memory limit has room. Raise it (memory_limit), name "
        "fewer quasi-identifiers or sensitive attributes, or use missing='category'."
    )
