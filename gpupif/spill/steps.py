"""The steps of a run from files to files: each is taken once, however often the run is killed and taken up again."""

from __future__ import annotations

import shutil
import stat
import time
from collections.abc import Hashable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .. import __version__
from ..engines.base import Engine, Job
from ..engines.passes import Pass, plan_shuffles, weight_of
from ..engines.workers import Workers
from ..information import Sizes
from ..job import Question
from ..priors import Prior
from ..progress import Reporter
from ..sources import Source
from ..stored import StoredScores
from ..summary import Summary
from ..writing import output_names, write_tables
from .budget import SLACK, Budget
from .chunks import EncodedChunks
from .cut import Cut, Span, cut
from .encode import encode, open_encoded
from .gather import Facts, Gatherer, Rows, ahead
from .outputs import MARK, Piece, is_file, plan_outputs
from .parts import Found, PartScorer
from .store import Store, disk_errors, write_batch
from .summarise import riskiest_cells, row_gain_percentiles, summary_columns

if TYPE_CHECKING:
    import pandas as pd
from .wish import Wish


class Steps:
    """One run, all of whose steps are kept in `store`."""

    def __init__(
        self, source: Source, question: Question, engine: Engine, wish: Wish, store: Store, report: Reporter
    ) -> None:
        self.source = source
        self.question = question
        self.engine = engine
        self.wish = wish
        self.store = store
        self.report = report
        self.budget = Budget(*store.done("begun")["budget"])
        self.seconds: dict[str, float] = {}
        self.spilled = 0

    def scores(self) -> StoredScores:
        """Take all steps that are not done."""
        started = time.perf_counter()
        encoded = self.store.once("encoded", self._encode)
        chunks = open_encoded(self.store.part("encoded"), self.question.used, encoded, self.source)
        try:
            self.seconds["read and encode"] = time.perf_counter() - started
            job, prior_of = self.question.job(chunks.columns, chunks.rows)
            passes, cuts = self._score(job, chunks)
            weights = [self._weight(job, chunks.rows, target, passes, cuts) for target in job.targets]
            gatherer = Gatherer(job, passes, cuts, weights, self.store.part("facts"))
            outputs = plan_outputs(self.wish.output, self.source.found, encoded["file_rows"], self.wish.rows_per_file)
            if not self.store.done("finished"):
                self._write(gatherer, chunks, outputs)
            summary = self._summary(gatherer, chunks, prior_of, passes, cuts)
        finally:
            chunks.close()
        self.store.mark("finished", True)
        self._publish(outputs)
        single = is_file(self.wish.output)
        files = [self.wish.output if single else self.wish.output / piece.path for piece in outputs]
        return StoredScores(self.wish.output, files, self.question.targets, summary, prior_of, self.spilled)

    def _timed(self, stage: str, started: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
        self.spilled = max(self.spilled, self.store.size())

    def _encode(self) -> dict[str, Any]:
        self.report.stage("read and encode", self.source.rows, "rows")
        folder = self.store.fresh("encoded")
        memory = self.budget.values_bytes()
        used, missing = self.question.used, self.question.missing
        return encode(self.source, used, missing, self.budget.chunk_rows, folder, memory, self.report.advance)

    def _score(self, job: Job, chunks: EncodedChunks) -> tuple[list[Pass], list[Cut]]:
        """Cut the table and score its parts, once for each pass."""
        limit = self.budget.part_rows(job)
        passes = plan_shuffles(job, chunks.rows, int(SLACK * limit))
        cuts = []
        for number, one in enumerate(passes):
            of = f" {number + 1} of {len(passes)}" if len(passes) > 1 else ""
            parts = 1 if len(passes) == 1 and not one.by else -(-chunks.rows // int(max(1, SLACK * limit)))
            started = time.perf_counter()
            sizes = self.store.once(f"cut-{number}", partial(self._cut, job, chunks, one, number, parts, of))
            pieces = Cut(self.store.part(f"pass-{number}"), sizes)
            self._timed("cut", started)
            started = time.perf_counter()
            self.report.stage(f"score{of}", chunks.rows * len(one.targets), "cells")
            scorer = PartScorer(self.engine, job, limit)
            for part in range(pieces.parts):
                self.store.once(f"scored-{number}-{part}", partial(self._score_part, scorer, pieces, part, one, number))
                pieces.drop_part(part)
                self.report.advance(sum(sizes[part]) * len(one.targets))
            self._timed("score", started)
            cuts.append(pieces)
        return passes, cuts

    def _cut(self, job: Job, chunks: EncodedChunks, one: Pass, number: int, parts: int, of: str) -> Any:
        self.report.stage(f"cut{of}", chunks.rows, "rows")
        cardinalities = [len(counts) for counts in job.counts]
        folder = self.store.fresh(f"pass-{number}")
        with Workers() as workers:
            return cut(chunks, cardinalities, one.by, parts, folder, workers, done=self.report.advance).sizes

    def _score_part(self, scorer: PartScorer, pieces: Cut, part: int, one: Pass, number: int) -> dict[str, Any]:
        chunks = pieces.part(part)
        inner = self.store.fresh(f"pass-{number}", "inner")
        span = Span(part, pieces.parts)
        found = scorer.score(chunks, one, pieces.scores(part), inner, span) if chunks.rows else Found(rows=0)
        facts: dict[str, Any] = {
            "cohorts": {target: _listed(sizes) for target, sizes in found.cohorts.items()},
            "distinct": {target: _listed(sizes) for target, sizes in found.distinct.items()},
        }
        if number == 0:
            facts["rows"] = scorer.count_distinct(chunks, inner) if found.rows is None else found.rows
        for target, (gains, times) in found.gains.items():
            write_batch(self._gains(number, part, target), {"gain": gains, "times": times})
        chunks.close()
        self.store.drop(f"pass-{number}", "inner")
        pa.default_memory_pool().release_unused()
        self.spilled = max(self.spilled, self.store.size())
        return facts

    def _gains(self, number: int, part: int, target: int) -> Path:
        return self.store.part(f"pass-{number}", f"gains-{part:05}-{target}.arrow")

    def _found(self, passes: list[Pass], cuts: list[Cut], target: int, what: str) -> Iterator[Sizes]:
        """Sizes of cohorts, or of distinct rows, in all parts that the target was scored in."""
        number = next(number for number, one in enumerate(passes) if target in one.targets)
        for part in range(cuts[number].parts):
            sizes = self.store.done(f"scored-{number}-{part}")[what].get(str(target))
            if sizes is not None:
                yield Sizes(*(np.array(values, np.int64) for values in sizes))

    def _weight(self, job: Job, rows: int, target: int, passes: list[Pass], cuts: list[Cut]) -> float:
        cohorts, distinct = (self._found(passes, cuts, target, what) for what in ("cohorts", "distinct"))
        return weight_of(job, rows, target, cohorts, distinct)

    def _write(self, gatherer: Gatherer, chunks: EncodedChunks, outputs: list[Piece]) -> None:
        """Write the score files that are not there yet."""
        started = time.perf_counter()
        folder = self.store.folder / "scores"
        with disk_errors(folder):
            folder.mkdir(exist_ok=True)
            gatherer.folder.mkdir(exist_ok=True)
        left = [piece for piece in outputs if not (folder / piece.path).exists()]
        self.report.stage("write", chunks.rows, "rows")
        if left:
            size = chunks.sizes[0]
            first = min(left[0].start // size, len(chunks.sizes) - 1)
            self.report.advance(left[0].start)
            rows = Rows(ahead(gatherer.chunks(first, chunks.sizes)), first * size)
            given = _Input(self.source, self.budget.chunk_rows) if self.wish.keep_input else None
            for piece in left:
                file = folder / piece.path
                with disk_errors(file):
                    file.parent.mkdir(parents=True, exist_ok=True)
                write_tables(self._tables(gatherer, rows, piece, given), file, self.report.advance)
        self._timed("write", started)

    def _tables(self, gatherer: Gatherer, rows: Rows, piece: Piece, given: _Input | None) -> Iterator[pa.Table]:
        """The rows of a score file, piece by piece."""
        job = gatherer.job
        names = output_names([measure.name for measure in job.measures], self.question.targets, [])
        if piece.start == piece.stop:
            kinds = [
                pa.from_numpy_dtype("int64" if m.integer else job.dtype) for m in job.measures for _ in job.targets
            ]
            yield self._marked(pa.schema(list(zip(names, kinds, strict=True))).empty_table())
        start = piece.start
        for arrays in rows.between(piece.start, piece.stop):
            columns = [pa.array(column) for array in arrays.values() for column in array]
            table = pa.table(columns, names=names)
            if given is not None:
                beside = given.rows(start, table.num_rows)
                table = pa.table([*beside.columns, *columns], names=[*beside.column_names, *names])
            start += table.num_rows
            yield self._marked(table)

    def _marked(self, table: pa.Table) -> pa.Table:
        if is_file(self.wish.output):
            return table
        return table.replace_schema_metadata({**(table.schema.metadata or {}), MARK: __version__.encode()})

    def _summary(
        self,
        gatherer: Gatherer,
        chunks: EncodedChunks,
        prior_of: Mapping[Hashable, Prior],
        passes: list[Pass],
        cuts: list[Cut],
    ) -> Summary:
        started = time.perf_counter()
        self.report.stage("summarise", None, "")
        facts = [Facts.read(gatherer.facts(number)) for number in range(len(chunks.sizes))]

        def gains(target: int) -> list[Path]:
            number = next(number for number, one in enumerate(passes) if target in one.targets)
            files = [self._gains(number, part, target) for part in range(cuts[number].parts)]
            return [file for file in files if file.exists()]

        job = gatherer.job
        columns: pd.DataFrame = summary_columns(job, prior_of, chunks, facts, gatherer.weights, gains)
        pif = row_gain_percentiles(gatherer, chunks)
        top = riskiest_cells(job, chunks, facts[-1].top)
        distinct = sum(self.store.done(f"scored-0-{part}")["rows"] for part in range(cuts[0].parts))
        self._timed("summarise", started)
        measures = tuple(measure.name for measure in job.measures)
        return Summary(chunks.rows, distinct, self.engine.device, measures, dict(self.seconds), columns, pif, top)

    def _publish(self, outputs: list[Piece]) -> None:
        """Have the scores appear, as a whole, where they were asked for."""
        self.source.check_unchanged(self.source.found.files)
        output, folder = self.wish.output, self.store.folder / "scores"
        with disk_errors(output):
            if not folder.exists():
                return
            if is_file(output):
                done = folder / outputs[0].path
                if done.exists():
                    if output.exists():
                        done.chmod(stat.S_IMODE(output.stat().st_mode))
                    done.replace(output)
                return
            if output.exists():
                old = self.store.folder / "old"
                output.rename(old)
                folder.rename(output)
                shutil.rmtree(old)
            else:
                folder.rename(output)


class _Input:
    """The table's own rows, read again in order, to stand beside the scores."""

    def __init__(self, source: Source, chunk_rows: int) -> None:
        self._source = source
        self._pieces = (piece for _, piece in source.read(source.names, chunk_rows))
        self._start = self._stop = 0
        self._piece: Any = None

    def rows(self, start: int, size: int) -> pa.Table:
        """So many rows from `start` on."""
        found = []
        while size:
            while start >= self._stop:
                self._piece = next(self._pieces)
                self._start, self._stop = self._stop, self._stop + self._piece.num_rows
            taken = min(size, self._stop - start)
            found.append(self._source.as_given(self._piece.slice(start - self._start, taken)))
            start, size = start + taken, size - taken
        return pa.concat_tables(found)


def _listed(sizes: Sizes) -> list[list[int]]:
    return [sizes.sizes.tolist(), sizes.times.tolist()]
