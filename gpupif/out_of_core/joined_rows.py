"""A table and its population on disk, joined in the same codes, and the table's rows that the population lacks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..attack.joined_columns import POPULATION, SAMPLE, JoinedColumns
from ..attack.population import MatchedRows, first_absent, number_among
from ..attack.weights import Units
from ..rows.keys import code_type
from ..rows.threads import Workers
from ..utils.private_folder import private_folder
from ..utils.progress import Reporter
from .budget import Budget
from .chunks import Chunks, TableChunks
from .collapse import Packing, TooManyRowsError, collapse
from .shuffle import HashRange, hash_partition

# Of the rows that fit into memory, one in so many may wait to be looked up.
LOOK_UP_SHARE = 16


class JoinedRows(Chunks):
    """The rows of a table, then those of its population; codes are of joined values.

    The last column has the weight of each row, by its place in `weights`. places: of the columns. joins: by column, the
    joined code for each code of the table, and of the population.
    """

    def __init__(
        self,
        table: TableChunks,
        population: TableChunks,
        places: Sequence[int],
        joins: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
    ) -> None:
        self.sizes = [*table.sizes, *population.sizes]
        # A row of the table is asked about only; a row of the population counts once.
        self.weights = np.array([0, 1])
        self._tables = (table, population)
        self._places = places
        self._joins = joins

    def codes(self, number: int) -> list[npt.NDArray[Any]]:
        kind = code_type(len(self.weights))
        for chunks, which in zip(self._tables, (SAMPLE, POPULATION), strict=True):
            if number < len(chunks.sizes):
                own = chunks.some_codes(number, self._places)
                codes = [self._joins[place][which][column] for place, column in zip(self._places, own, strict=True)]
                return [*codes, np.full(chunks.sizes[number], which, kind)]
            number -= len(chunks.sizes)
        raise IndexError(number)

    def close(self) -> None:
        """See `Chunks`: the tables are closed by themselves."""


class JoinedTables:
    """A table and its population, each with the columns used, in the same order, first. columns: these, joined.

    missing: see `gpupif.score`. Raises InputError for columns whose types do not match.
    """

    def __init__(self, table: TableChunks, population: TableChunks, used: int, missing: str) -> None:
        self.table = table
        self._population = population
        self._places = range(used)
        self.columns = JoinedColumns.of(table.columns[:used], population.columns[:used], missing)

    def rows(self) -> JoinedRows:
        """Return the rows of both tables, with all columns used."""
        return JoinedRows(self.table, self._population, self._places, self.columns.joins)

    def matched(self, budget: Budget, limit: int, folder: Path, report: Reporter) -> Iterator[MatchedRows]:
        """The distinct rows of both: at once where they are not more than `limit`, else in parts on disk.

        folder: an empty one, for these. Where missing values match every value there are no parts, so that it raises
        TooManyRowsError.
        """
        rows = self.rows()
        parts = -(-rows.rows // budget.planned_rows(limit, rows.rows, len(self._places)))
        report.stage("compare with the population", rows.rows, "rows")
        with Workers() as workers:
            yield from self._matched(rows, HashRange(), parts, limit, folder, report, workers)

    def _matched(
        self,
        chunks: Chunks,
        hashes: HashRange,
        parts: int,
        limit: int,
        folder: Path,
        report: Reporter,
        workers: Workers,
    ) -> Iterator[MatchedRows]:
        """The distinct rows of chunks with these hashes, in so many parts if need be."""
        in_population = Units(np.array([0, 1]), 1.0, self._population.rows)
        packing = Packing(self._places, self.columns.layout, in_population)
        with contextlib.suppress(TooManyRowsError):
            found = collapse(chunks, packing, limit // 2, workers, limit, len(self.table.sizes), done=report.advance)
            yield MatchedRows(found.keys, *found.sums)
            return
        if any(self.columns.wildcards):
            raise TooManyRowsError
        report.stage("cut with the population", chunks.rows, "rows")
        cardinalities = [len(counts) for counts in self.columns.counts]
        private_folder(folder)
        cut = hash_partition(chunks, cardinalities, self._places, parts, folder, workers, hashes, report.advance)
        report.stage("compare with the population", chunks.rows, "rows")
        for part, piece, span in cut.each(hashes, drop=True):
            finer = -(-2 * piece.rows // limit)
            yield from self._matched(piece, span, finer, limit, folder / f"{part}", Reporter(visible=False), workers)
            report.advance(piece.rows)

    def keys(self, number: int, workers: Workers) -> npt.NDArray[np.uint64]:
        """Row keys of a chunk of the table, over all columns."""
        own = self.table.some_codes(number, self._places)
        return self.columns.layout.pack(self.columns.codes(own, SAMPLE), workers)


class AbsentRows:
    """Collects the rows of a table that its population lacks, part by part, and finds the first of them.

    limit: rows that fit into memory, a part of which is there meanwhile, so that only a share is looked up at once.
    """

    def __init__(self, joined: JoinedTables, limit: int) -> None:
        self._joined = joined
        self._limit = limit // LOOK_UP_SHARE
        self._waiting: list[MatchedRows] = []
        self._rows = 0
        # Where the first one is, how often it is in the population and in the table, and what else is to be said.
        self._first = (joined.table.rows, 0, 0, "")

    def add(self, short: MatchedRows) -> None:
        """Further rows that the population has less often than the table."""
        self._rows += short.absent
        self._waiting.append(short)
        if sum(len(one.keys) for one in self._waiting) > self._limit:
            self._look_up()

    def found(self) -> dict[str, Any]:
        """How many there are ("lacking"); and what `lacks_error` says of the "first": only where there are any."""
        if not self._rows:
            return {"lacking": 0}
        self._look_up()
        return {"lacking": self._rows, "first": self._first}

    def _look_up(self) -> None:
        """Find in the table the first row that comes after as many equal ones as the population has."""
        if not self._waiting:
            return
        short = MatchedRows(*(np.concatenate(several) for several in zip(*self._waiting, strict=True)))
        self._waiting = []
        # Those of other rows never run out.
        room = np.append(short.in_population, self._joined.table.rows)
        start = 0
        with Workers() as workers:
            for number, size in enumerate(self._joined.table.sizes):
                if not len(short.keys) or start >= self._first[0]:
                    return
                which = number_among(short.keys, self._joined.keys(number, workers), workers)
                row = first_absent(which, room)
                if row is not None:
                    if start + row < self._first[0]:
                        self._first = (start + row, *short.about(which[row], self._joined.columns))
                    return
                room -= np.bincount(which, minlength=len(room))
                start += size
