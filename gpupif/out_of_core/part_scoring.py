"""The parts of a partitioned table scored one after the other, by any engine, with the priors of the whole table.

A part too large for memory is collapsed to its distinct rows; one that is still too large is cut again, for half of its
scored columns at a time, and its scores are put together again.
"""

from __future__ import annotations

import contextlib
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels.codes import add_times
from gpupif.kernels.dictionary import count_numbers

from ..attack.weights import Units
from ..engines.base import SILENT, Engine, Job, Progress, select_columns
from ..engines.partition_plan import Pass, WeightSums, part_job, part_measures
from ..engines.shared_scores import take_scored_column
from ..io.ipc_batches import BatchWriter, arrow_type
from ..rows.distinct import DistinctRows, distinct_rows
from ..rows.partition import NO_ROWS, Rows, index_type
from ..rows.threads import Workers
from ..utils.arrays import on_host
from ..utils.information import LogSum, entropy_of_counts
from ..utils.private_folder import fresh_folder
from ..utils.repeated import Repeated, kept_small
from .chunks import Chunks
from .collapse import Packing, TooManyRowsError, collapse, packed_chunks
from .shuffle import HashRange, Partitioned, PartScores, hash_partition

# Distinct values and their multiplicities.
Multiset = tuple[Any, Any]


@dataclass
class PartResult:
    """Results of a part beside its scores.

    sums: for the weights. values: by scored column and measure the distinct scores with multiplicities, for
    percentiles and the like. rows: distinct rows over all columns, where they are known.
    """

    sums: WeightSums = field(default_factory=WeightSums)
    values: dict[tuple[int, str], Multiset] = field(default_factory=dict)
    rows: int | None = None

    def add(self, other: PartResult) -> None:
        """Add the result of another part, for the same scored columns or others."""
        self.sums = WeightSums.total(self.sums, other.sums)
        for key, (values, times) in other.values.items():
            before = self.values.get(key, (values[:0], times[:0]))
            self.values[key] = (np.concatenate([before[0], values]), np.concatenate([before[1], times]))

    def as_json(self) -> dict[str, Any]:
        """All but the values, ready for JSON."""
        listed = {
            what: {scored_column: one.units for scored_column, one in by.items()}
            for what, by in (("cohorts", self.sums.cohorts), ("distinct", self.sums.distinct))
        }
        return {**listed, "rows": self.rows}

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> PartResult:
        """From what `as_json` made."""
        cohorts, distinct = (
            {int(scored_column): LogSum(units) for scored_column, units in by.items()}
            for by in (facts["cohorts"], facts["distinct"])
        )
        return cls(WeightSums(cohorts, distinct), rows=facts["rows"])


def score_columns(job: Job, scored_columns: Sequence[int]) -> dict[str, str]:
    """Columns of a file of scores, and their types in Arrow's words."""
    return {
        f"{scored_column}:{measure.name}": measure.type_in("float64")
        for scored_column in scored_columns
        for measure in part_measures(job)
    }


# A column of scores.
Scores = npt.NDArray[Any] | Repeated
# Opens what scores of a part are written to, which look like these.
OpenWriter = Callable[[Sequence[Scores]], contextlib.AbstractContextManager[Any]]


@dataclass(eq=False)
class PartScorer:
    """Scores the parts of a table.

    job: of the whole table, without codes. limit: rows of a part that are scored at once. progress: hears of cells.
    units: of the weights, whose codes are the last column of parts. asked: only the rows of so many chunks are scored;
    those after them count in cohorts, and each row that is scored is equal to one of them. most_distinct: different
    scores of a column that are kept beside their numbers: all parts' are in memory when scores are put together.
    counted: measures of which it is found which scores occur, and how often.
    """

    engine: Engine
    job: Job
    limit: int
    progress: Progress
    units: Units | None = None
    asked: int | None = None
    most_distinct: int | None = None
    counted: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.entropies = [entropy_of_counts(counts) for counts in self.job.counts]

    def score(
        self,
        chunks: Chunks,
        one: Pass,
        out: Path,
        folder: Path,
        hashes: HashRange,
        forced: bool = False,
    ) -> PartResult:
        """Write the scores of a part, chunk by chunk, to `out`; return what was found beside the scores.

        folder: for what is cut again. forced: it cannot be cut any more.
        """
        writer = partial(score_writer, out, self.job, one.scored_columns)
        if chunks.rows <= self.limit and self.asked is None:
            return self._score_whole(chunks, one, writer)
        used = sorted({*self.job.known, *one.scored_columns})
        with contextlib.suppress(TooManyRowsError):
            collapsed = self._distinct(chunks, used, math.inf if forced else self.limit)
            return self._score_collapsed(chunks, one, writer, used, collapsed)
        return self._score_cut(chunks, one, writer, folder, hashes)

    def count_distinct(self, chunks: Chunks, folder: Path) -> int:
        """Number of distinct rows of a part over all its columns."""
        everything = range(len(self.job.cardinalities))
        with contextlib.suppress(TooManyRowsError):
            return len(self._distinct(chunks, everything, self.limit))
        parts = -(-2 * chunks.rows // self.limit)
        with Workers() as workers:
            finer = hash_partition(
                chunks, self.job.cardinalities, everything, parts, fresh_folder(folder / "distinct"), workers
            )
        total = 0
        for _, piece, _ in finer.each():
            total += len(self._distinct(piece, everything))
        shutil.rmtree(finer.folder)
        return total

    def _score_whole(self, chunks: Chunks, one: Pass, open_writer: OpenWriter) -> PartResult:
        columns = range(len(self.job.cardinalities))
        codes = chunks.all_codes()
        weights = None if self.units is None else self.units.times(codes.pop())
        result, found = self._run(one, columns, codes, None, weights, self.progress)
        with open_writer(result) as writer:
            start = 0
            for size in chunks.sizes:
                writer.write([values[start : start + size] for values in result])
                start += size
        return found

    def _score_collapsed(
        self, chunks: Chunks, one: Pass, open_writer: OpenWriter, used: Sequence[int], collapsed: DistinctRows
    ) -> PartResult:
        packing = self._packing(used)
        codes = packing.layout.unpack(collapsed.keys)
        times, *weights = collapsed.sums
        result, found = self._run(one, used, codes, times, next(iter(weights), None), SILENT)
        with open_writer(result) as writer, Workers() as workers:
            for piece in packed_chunks(chunks, packing, lambda: self.limit, workers, self.asked):
                both = np.concatenate([collapsed.keys, piece.keys])
                number = distinct_rows(Rows(both), len(both), workers).number[len(collapsed) :]
                start = 0
                for rows in piece.sizes:
                    writer.write([values[number[start : start + rows]] for values in result])
                    start += rows
                    self.progress.advance(rows * len(one.scored_columns))
        return found

    def _score_cut(
        self, chunks: Chunks, one: Pass, open_writer: OpenWriter, folder: Path, hashes: HashRange
    ) -> PartResult:
        found = PartResult()
        parts = -(-2 * chunks.rows // self.limit)
        halves = one.halves(self.job.known, self.entropies)
        with Workers() as workers:
            cuts = []
            for number, half in enumerate(halves):
                finer = half.by == one.by
                whole = hashes if finer else HashRange()
                place = fresh_folder(folder / f"half-{number}")
                cuts.append(hash_partition(chunks, self.job.cardinalities, half.by, parts, place, workers, whole))
        for half, pieces in zip(halves, cuts, strict=True):
            whole = hashes if half.by == one.by else HashRange()
            for part, piece, inner in pieces.each(whole, drop=True):
                # One cohort cannot be cut; it has no more distinct rows than its column has values.
                forced = len(halves) == 1 and piece.rows == chunks.rows
                place = pieces.folder / f"{part}"
                found.add(self.score(piece, half, pieces.scores(part), place, inner, forced))
        self._put_together(chunks, one, halves, cuts, open_writer)
        for pieces in cuts:
            shutil.rmtree(pieces.folder)
        return found

    def _put_together(
        self, chunks: Chunks, one: Pass, halves: Sequence[Pass], cuts: Sequence[Partitioned], open_writer: OpenWriter
    ) -> None:
        """The scores of several cuts of the same rows, each for some of the scored columns, in the order of these
        rows.
        """
        schema = score_columns(self.job, one.scored_columns)
        nothing = [np.empty(0, kind) for kind in schema.values()]
        with open_writer(nothing) as writer, Workers() as workers, contextlib.ExitStack() as files:
            gatherings = [
                files.enter_context(PartScores(pieces, list(score_columns(self.job, half.scored_columns))))
                for half, pieces in zip(halves, cuts, strict=True)
            ]
            for number, size in enumerate(chunks.sizes[: self.asked]):
                arrays = {name: np.empty(size, kind) for name, kind in schema.items()}
                outs = {name: [(array.dtype.type(1), array)] for name, array in arrays.items()}
                for gathering in gatherings:
                    gathering.fill(number, outs, workers)
                writer.write(list(arrays.values()))

    def _run(
        self,
        one: Pass,
        columns: Sequence[int],
        codes: Sequence[npt.NDArray[Any]],
        times: npt.NDArray[np.int64] | None,
        weights: npt.NDArray[np.int64] | None,
        progress: Progress,
    ) -> tuple[list[Scores], PartResult]:
        """Scores of rows over some columns, in the order of `score_columns`, and what was found beside.

        times: how often each row occurs; weights: how many, in units, these rows stand for together, where they have
        weights.
        """
        job = select_columns(
            replace(self.job, codes=[_NO_CODES] * len(self.job.cardinalities), scored_columns=one.scored_columns),
            columns,
        )
        amounts = (times, None) if weights is None else (weights, times)
        job = part_job(job, job.scored_columns, codes, *amounts)
        result = self.engine.score(replace(job, scores_on="either"), progress)
        rows = result.distinct_rows if len(columns) == len(self.job.cardinalities) else None
        found = PartResult(WeightSums.of(result, one.scored_columns, in_one_part=False), rows=rows)

        def keep(place: int) -> list[Scores]:
            taken = take_scored_column(result.values, place, 0, job.rows)
            return [kept_small(on_host(scores), self.most_distinct) for scores in taken.values()]

        with Workers() as workers:
            values = workers.run(keep, [(place,) for place in range(len(one.scored_columns))])
            place_of = {name: place for place, name in enumerate(result.values)}
            for scored_column, several in zip(one.scored_columns, values, strict=True):
                for name in self.counted:
                    found.values[scored_column, name] = multiset(several[place_of[name]], times, workers)
        return [scores for several in values for scores in several], found

    def _distinct(self, chunks: Chunks, used: Sequence[int], limit: float = math.inf) -> DistinctRows:
        """The distinct rows of a part over some columns, see `collapse`; raises TooManyRowsError for over `limit`."""
        with Workers() as workers:
            return collapse(chunks, self._packing(used), self.limit, workers, limit)

    def _packing(self, used: Sequence[int]) -> Packing:
        return Packing.of(self.job.cardinalities, used, self.units)


_NO_CODES: npt.NDArray[np.uint8] = np.empty(0, np.uint8)


def multiset(values: Scores, times: npt.NDArray[np.int64] | None, workers: Workers) -> Multiset:
    """Distinct values, and how many rows of the table have each; times: multiplicities of the rows, None: 1."""
    if isinstance(values, Repeated):
        sums = np.zeros(len(values.distinct), np.int64)
        if times is None:
            count_numbers(values.numbers, sums)
        else:
            add_times(values.numbers, times, sums)
        return values.distinct.astype(np.float64, copy=False), sums
    total = len(values) if times is None else int(times.sum())
    counts = NO_ROWS if times is None else times.astype(index_type(total + 1))
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64)[:, None]
    found = distinct_rows(Rows(bits, counts), total, workers).rows
    return found.keys[:, 0].copy().view(np.float64), found.counts.astype(np.int64)


def score_writer(out: Path, job: Job, scored_columns: Sequence[int], columns: Sequence[Scores]) -> BatchWriter:
    """A file for the scores of a part, which look like these columns."""
    schema = dict(zip(score_columns(job, scored_columns), map(arrow_type, columns), strict=True))
    # What is repeated is small as it is.
    codec = None if all(isinstance(column, Repeated) for column in columns) else "lz4"
    return BatchWriter(out, schema, threads=True, codec=codec)
