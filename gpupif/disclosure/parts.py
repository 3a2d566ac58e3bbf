"""The parts of a table of files: distinct rows with counts, few enough to be looked at at once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engines.block_scoring import pack_keys, unpack_keys
from ..engines.part_jobs import part_job
from ..out_of_core.chunks import Chunks
from ..out_of_core.shuffle import Cut, Span, cut
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import Rows, index_type
from ..rows.threads import Workers

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..engines.base import Job
    from ..out_of_core.budget import Budget
    from ..utils.progress import Reporter


class CollapsedChunks(Chunks):
    """The distinct rows of each chunk of a table, in order of first appearance; the last column is how often each
    occurs there.
    """

    def __init__(self, chunks: Chunks, layout: KeyLayout, rows: int, workers: Workers) -> None:
        self.sizes = chunks.sizes
        self._chunks = chunks
        self._layout = layout
        self._type = index_type(rows + 1)
        self._workers = workers

    def codes(self, number: int) -> list[npt.NDArray[Any]]:
        """See `Chunks`."""
        codes = self._chunks.codes(number)
        # A column that takes the place of a sensitive attribute takes no bits.
        codes += [codes[0]] * (len(self._layout.fields) - len(codes))
        found = distinct_rows(Rows(pack_keys(codes, self._layout, self._workers)), self.sizes[number], self._workers)
        return [*unpack_keys(found.rows.keys, self._layout), found.rows.counts.astype(self._type)]

    def close(self) -> None:
        """See `Chunks`: the table is closed by itself."""


class Parts:
    """The parts of an encoded table, as jobs; to be gone through more than once.

    job: for all of it, without codes of rows; the columns known come first. folder: for what is cut. report: hears of
    it; what: the table is, in words, where that has to be said. share: how many of the rows that there is memory for
    are looked at at once, where more than scores is made of them.
    """

    def __init__(
        self,
        job: Job,
        chunks: Chunks,
        budget: Budget,
        folder: Path,
        report: Reporter,
        what: str = "",
        share: float = 1.0,
    ) -> None:
        self._job = job
        self._table = chunks
        self._folder = folder
        self._report = report
        self._what = what
        self._cardinalities = [len(counts) for counts in job.counts]
        self.limit = max(1, int(share * budget.part_rows(job)))
        self._planned = budget.planned_rows(self.limit, chunks.rows, len(job.counts))
        self._type = index_type(chunks.rows + 1)
        with Workers() as workers:
            self._whole, self._cut = self._prepare(workers)

    def __iter__(self) -> Iterator[Job]:
        if self._whole is not None:
            yield self._whole
        if self._cut is not None:
            with Workers() as workers:
                yield from self._pieces(self._cut, self._job.targets, Span(), workers)

    def close(self) -> None:
        """Delete what was cut."""
        if self._cut is not None:
            shutil.rmtree(self._cut.folder)

    def _prepare(self, workers: Workers) -> tuple[Job | None, Cut | None]:
        """The whole table as one part, or where its distinct rows are too many, cut."""
        layout = KeyLayout.of(self._cardinalities)
        collapsed = CollapsedChunks(self._table, layout, self._table.rows, workers)
        self._report.stage(f"collapse{self._what}", self._table.rows, "rows")
        whole = self._collapse(collapsed, self._job.targets, workers, self._report)
        if whole is not None:
            return whole, None
        self._report.stage(f"cut{self._what}", self._table.rows, "rows")
        parts = max(2, -(-self._table.rows // self._planned))
        return None, self._cut_up(collapsed, parts, self._folder, None, workers, self._report)

    def _pieces(self, pieces: Cut, targets: Sequence[int], span: Span, workers: Workers) -> Iterator[Job]:
        """What the parts of a cut are looked at in; span: of what was cut."""
        for part in range(pieces.parts):
            piece = pieces.part(part)
            try:
                if piece.rows:
                    place = Span(span.place * pieces.parts + part, span.of * pieces.parts)
                    yield from self._part(piece, targets, place, pieces.folder / f"{part}", workers)
            finally:
                piece.close()

    def _part(
        self, chunks: Chunks, targets: Sequence[int], span: Span, folder: Path, workers: Workers, tried: bool = False
    ) -> Iterator[Job]:
        """What a part is looked at in. tried: it cannot be cut by the quasi-identifiers any more."""
        job = self._collapse(chunks, targets, workers)
        if job is not None:
            yield job
            return
        if not tried:
            finer = self._cut_up(chunks, -(-2 * chunks.rows // self.limit), folder, span, workers)
            try:
                # Else it is one class, or two that the next cut would not part either.
                if max(map(sum, finer.sizes)) < chunks.rows:
                    yield from self._pieces(finer, targets, span, workers)
                    return
            finally:
                shutil.rmtree(finer.folder)
        if len(targets) == 1:
            # Not many more rows than the attribute has values.
            *_, rows = self._collapsing(chunks, targets, workers)
            yield self._part_job(targets, rows)
            return
        middle = len(targets) // 2
        for half in (targets[:middle], targets[middle:]):
            yield from self._part(chunks, half, span, folder, workers, tried=True)

    def _cut_up(
        self,
        chunks: Chunks,
        parts: int,
        folder: Path,
        span: Span | None,
        workers: Workers,
        report: Reporter | None = None,
    ) -> Cut:
        folder.mkdir(parents=True)
        done = (lambda rows: None) if report is None else report.advance
        return cut(chunks, self._cardinalities, self._job.known, parts, folder, workers, span, done, keep_ids=False)

    def _collapse(
        self, chunks: Chunks, targets: Sequence[int], workers: Workers, report: Reporter | None = None
    ) -> Job | None:
        """The job for a part, None where it has more distinct rows than are looked at at once."""
        for rows in self._collapsing(chunks, targets, workers, report):
            if len(rows.keys) > self.limit:
                return None
        return self._part_job(targets, rows)

    def _collapsing(
        self, chunks: Chunks, targets: Sequence[int], workers: Workers, report: Reporter | None = None
    ) -> Iterator[Rows]:
        """The distinct rows, over the quasi-identifiers and these attributes, of more and more collapsed chunks, at
        last of all; in order of first appearance.
        """
        used = self._used(targets)
        layout = KeyLayout.of([self._cardinalities[column] for column in used])
        seen: list[Rows] = []
        waiting = 0
        for number, size in enumerate(chunks.sizes):
            *codes, times = chunks.codes(number)
            seen.append(Rows(pack_keys([codes[column] for column in used], layout, workers), times))
            waiting += len(times)
            if report is not None:
                report.advance(size)
            # Not each time, for what is merged is merged again.
            if waiting > self.limit // 2 or number == len(chunks.sizes) - 1:
                seen, waiting = [self._merged(seen, workers)], 0
                yield seen[0]

    def _merged(self, several: Sequence[Rows], workers: Workers) -> Rows:
        """Equal rows as one."""
        keys, counts = (np.concatenate([getattr(rows, name) for rows in several]) for name in ("keys", "counts"))
        return distinct_rows(Rows(keys, counts.astype(self._type, copy=False)), self._table.rows, workers).rows

    def _used(self, targets: Sequence[int]) -> list[int]:
        return [*self._job.known, *targets]

    def _part_job(self, targets: Sequence[int], rows: Rows) -> Job:
        """The job for distinct rows over the quasi-identifiers and these attributes."""
        used = self._used(targets)
        layout = KeyLayout.of([self._cardinalities[column] for column in used])
        # Those of other attributes do not matter.
        codes: list[npt.NDArray[Any]] = [np.zeros(len(rows.keys), np.uint8)] * len(self._cardinalities)
        for column, own in zip(used, unpack_keys(rows.keys, layout), strict=True):
            codes[column] = own
        return part_job(self._job, targets, codes, rows.counts.astype(np.int64))
