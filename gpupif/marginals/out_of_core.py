"""Sets of columns of a table on disk, counted chunk by chunk; those of too many combinations in parts.

A part holds whole the combinations of several sets at once, for rows are cut by the hash of what these sets have in
common: all that leave out one column of many are served by two cuts.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.weights import Units
from ..engines.counting import Counter, Counting, CountingEngine
from ..engines.cpu.count_tables import combination_bytes, key_layout
from ..engines.cpu.counting import in_batches
from ..errors import InputError
from ..out_of_core.budget import SPARE_FILES, files_to_open
from ..out_of_core.chunks import Chunks, SomeColumns
from ..out_of_core.encode import weigh_chunks
from ..out_of_core.shuffle import HashRange, hash_partition
from ..out_of_core.temporary_table import TemporaryTable
from ..rows.threads import Workers
from ..utils.information import entropy_of_counts
from ..utils.progress import Reporter
from .request import CountRequest
from .set_counts import CountResult, Find, MakeFind, SetCounts, SetRequest, Total, with_counts

# Of the working memory: what the combinations may take that are counted at once. While they are merged, or looked at,
# they take so many times what they take from chunk to chunk; more where several sets are counted from them.
COUNTS_SHARE, MERGING, SEVERAL = 0.5, 8, 12
# Of a combination that is looked at; of all memory for combinations, what counters may take that are kept meanwhile.
LOOK_BYTES, TABLES_SHARE = 100, 0.5
# Combinations that are counted at once however little memory there is; and how many values the hash of rows has.
LEAST_BYTES, HASHES = 1 << 16, 1 << 32


class _TablePart(NamedTuple):
    """Some rows of the table: those whose hash over the columns `by` is in the span."""

    chunks: Chunks
    by: list[int]
    span: HashRange


class _Weights(NamedTuple):
    """Which column of a chunk's codes says what each row counts, and how."""

    place: int
    units: Units

    def times(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
        """What the rows with these codes, by column, count."""
        return self.units.times(codes[self.place])


class ChunkCounts(SetCounts):
    """A table on disk, which is closed with it. report: hears of rows. engine: counts."""

    def __init__(self, stream: TemporaryTable, request: CountRequest, report: Reporter, engine: CountingEngine) -> None:
        chunks, used = stream.chunks, len(request.chosen(stream.names))
        self.names = stream.names[:used]
        self.device = engine.device
        self._weights, weighted = None, None
        with contextlib.ExitStack() as opened:
            opened.push(stream)
            if request.weights is not None:
                place = list(stream.names).index(request.weights)
                units, weighted = weigh_chunks(chunks, place, used)
                self._weights = _Weights(place, units)
            self._opened = opened.pop_all()
        self._columns = with_counts(chunks.columns[:used], weighted)
        self._total = Total.of(chunks.rows, weighted)
        self._engine = engine
        self._stream = stream
        self._report = report
        self._memory = int(COUNTS_SHARE * stream.budget.working)

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)

    def count(self, sets: Sequence[SetRequest], make: MakeFind) -> CountResult:
        chunks = self._stream.chunks
        with Workers() as workers, self._engine.counting(workers) as counting:
            find = make(self._columns, self._total)
            run = _CountRun(chunks, sets, find, self._memory, self._report, workers, counting, self._weights)
            run.narrow()
            if run.wide:
                run.count_wide(self._stream.folder)
        return CountResult(self._columns, self._total, run.found)


class _CountRun:
    """wide: the sets that are not counted yet. found: by set what was found in each part. weights: of the rows."""

    def __init__(
        self,
        chunks: Any,
        sets: Sequence[SetRequest],
        find: Find,
        memory: int,
        report: Reporter,
        workers: Workers,
        counting: Counting,
        weights: _Weights | None,
    ) -> None:
        self.found: list[list[Any]] = [[] for _ in sets]
        self.wide: list[int] = []
        self._chunks = chunks
        self._sets = sets
        self._find = find
        self._memory = memory
        self._report = report
        self._workers = workers
        self._counting = counting
        self._weights = weights
        self._total = chunks.rows if weights is None else weights.units.total
        self._cardinalities = [column.cardinality for column in chunks.columns]
        self._entropies = [entropy_of_counts(column.counts) for column in chunks.columns]
        self._to_read = 0

    def _passes(self, rows: int) -> None:
        """So many rows more are to be read."""
        self._to_read += rows
        self._report.expect(self._to_read)

    def _add_rows(self, counter: Counter, codes: Sequence[npt.NDArray[Any]]) -> None:
        """Count the rows of a chunk."""
        counter.add(codes, None if self._weights is None else self._weights.times(codes))
        self._report.advance(len(codes[0]))

    def narrow(self) -> None:
        """Count the sets that fit into memory, in as few passes over the table as do."""
        rows = self._chunks.rows
        tables = int(TABLES_SHARE * self._memory)

        def fits(place: int) -> bool:
            cardinalities = [self._cardinalities[column] for column in self._sets[place].columns]
            most = min(math.prod(cardinalities), rows)
            return combination_bytes(cardinalities, rows, self._total) <= tables and LOOK_BYTES * most <= self._memory

        self.wide = [place for place in range(len(self._sets)) if not fits(place)]
        small = [place for place in range(len(self._sets)) if place not in set(self.wide)]
        lists = [self._sets[place].columns for place in small]
        batches = list(in_batches(lists, self._cardinalities, rows, tables, self._total))
        self._report.stage("count", 0, "rows")
        self._passes(len(batches) * rows)
        places = iter(small)
        for batch in batches:
            counter = self._counting.counter(batch, self._cardinalities, rows)
            for number in range(len(self._chunks.sizes)):
                self._add_rows(counter, self._chunks.codes(number))
            for at, place in enumerate(next(places) for _ in batch):
                self._add(place, batch[at], counter, at)

    def _add(self, place: int, columns: Sequence[int], counter: Counter, at: int) -> None:
        self.found[place].append(self._find(columns, counter, at))

    def count_wide(self, folder: Path) -> None:
        """Count the others, in parts."""
        weights = self._weights
        used = sorted({column for place in self.wide for column in self._sets[place].columns})
        used += [] if weights is None or weights.place in used else [weights.place]
        at = {column: place for place, column in enumerate(used)}
        sets = {
            place: SetRequest(*([at[column] for column in columns] for columns in (one.columns, one.by)))
            for place, one in ((place, self._sets[place]) for place in self.wide)
        }
        self._cardinalities, self._entropies = (
            [each[column] for column in used] for each in (self._cardinalities, self._entropies)
        )
        self._weights = None if weights is None else weights._replace(place=at[weights.place])
        self._count_part(_TablePart(SomeColumns(self._chunks, used), [], HashRange()), sets, folder)

    def _count_part(self, part: _TablePart, sets: dict[int, SetRequest], folder: Path) -> None:
        """Count some sets in a part that holds their combinations whole, cut finer where it is too large."""
        if self._count_whole(part, sets):
            return
        places = list(sets)
        by = sorted(set.intersection(*(set(one.by) for one in sets.values())))
        parts = self._parts(part, sets)
        # What all have in common must cut finely enough; where it did not, for it was cut by before, it will not.
        fine = by != part.by and sum(self._entropies[column] for column in by) >= np.log2(parts)
        if len(sets) > 1 and not fine:
            for some in (places[: len(places) // 2], places[len(places) // 2 :]):
                self._count_part(part, {place: sets[place] for place in some}, folder)
            return
        span = part.span if by == part.by else HashRange()
        if parts * span.of >= HASHES:
            raise InputError("memory_limit: too little to count these columns together. Raise it, or name fewer.")
        own = Path(tempfile.mkdtemp(dir=folder))
        self._passes(part.chunks.rows)
        pieces = hash_partition(
            part.chunks, self._cardinalities, by, parts, own, self._workers, span, self._report.advance
        )
        for _, piece, finer in pieces.each(span, drop=True):
            self._count_part(_TablePart(piece, by, finer), sets, folder)
        shutil.rmtree(own)

    def _parts(self, part: _TablePart, sets: dict[int, SetRequest]) -> int:
        """How many parts to cut this one into: so many that each is likely to fit."""
        used = sorted({column for one in sets.values() for column in one.columns})
        row = 8 * key_layout([self._cardinalities[column] for column in used]).words + 4
        needed = (MERGING if len(sets) == 1 else SEVERAL) * row * part.chunks.rows
        most = max(2, files_to_open() - SPARE_FILES - 2 * len(self._cardinalities))
        return min(most, max(2, -(-needed // max(LEAST_BYTES, self._memory))))

    def _count_whole(self, part: _TablePart, sets: dict[int, SetRequest]) -> bool:
        """Whether the part's different rows fit into memory; then its sets are counted."""
        alone = next(iter(sets.values())) if len(sets) == 1 else None
        used = list(alone.columns) if alone else sorted({column for one in sets.values() for column in one.columns})
        share = max(LEAST_BYTES, self._memory // (MERGING if alone else SEVERAL))
        counter = self._counting.counter([used], self._cardinalities, part.chunks.rows, dense=1)
        self._passes(part.chunks.rows)
        for number in range(len(part.chunks.sizes)):
            self._add_rows(counter, part.chunks.codes(number))
            if counter.nbytes() > share:
                self._passes(-sum(part.chunks.sizes[number + 1 :]))
                return False
        if alone:
            [place] = sets
            self._add(place, self._sets[place].columns, counter, 0)
            return True
        rows = counter.combinations(0, ordered=False)
        codes: list[Any] = [rows.counts] * len(self._cardinalities)
        for column, own in zip(used, rows.codes, strict=True):
            codes[column] = own
        del counter
        lists = [one.columns for one in sets.values()]
        each = self._counting.counters(codes, self._cardinalities, lists, rows.counts, differ=True)
        for place, (counted, at) in zip(sets, each, strict=True):
            self._add(place, self._sets[place].columns, counted, at)
        return True
