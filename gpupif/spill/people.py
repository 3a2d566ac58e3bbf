"""The population of a table in files: its rows beside those of the table, in the same codes.

Rows of the table that the population lacks are found first, in parts that hold equal rows together; where these count
as rows of the population, they make further chunks of it.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.kernels.codes import add_times

from ..columns import Column
from ..engines.base import Job
from ..engines.distinct import distinct_rows
from ..engines.host_run import pack_keys, unpack_keys
from ..engines.partition import Rows
from ..engines.workers import Workers
from ..keys import KeyLayout
from ..labels import code_type
from ..population import join_codes, lacks_error, prior_in, sizes_job
from ..weighting import Units
from .chunks import Chunks, EncodedChunks
from .cut import Cut, cut
from .parts import PartScorer, Silent
from .scored import Means, Scored
from .store import BatchReader, BatchWriter

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..job import Question
    from ..priors import Prior

# What rows count for: of the table, and of the population; those added to it may count for more.
NOBODY, SOMEBODY = 0, 1


class Both(Chunks):
    """The rows of a table, then those of its population, then those that this lacks; codes count in joined values.

    The last column tells what a row counts for, by its place in `counting`. places: of the columns. joins: by column,
    for codes of the table and of the population those in the joined values. added: rows and how often each.
    """

    def __init__(
        self,
        table: EncodedChunks,
        population: EncodedChunks,
        places: Sequence[int],
        joins: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
        added: Added | None,
    ) -> None:
        self.sizes = [*table.sizes, *population.sizes, *([] if added is None else added.sizes)]
        self.counting = np.array([NOBODY, SOMEBODY, *([] if added is None else added.times)])
        self._several = (table, population)
        self._places = places
        self._joins = joins
        self._added = added

    def codes(self, number: int) -> list[npt.NDArray[Any]]:
        """See `Chunks`."""
        kind = code_type(len(self.counting))
        for chunks, which in zip(self._several, (NOBODY, SOMEBODY), strict=True):
            if number < len(chunks.sizes):
                own = chunks.some_codes(number, self._places)
                codes = [self._joins[place][which][column] for place, column in zip(self._places, own, strict=True)]
                return [*codes, np.full(chunks.sizes[number], which, kind)]
            number -= len(chunks.sizes)
        assert self._added is not None
        codes, times = self._added.rows(number)
        counted = 2 + np.searchsorted(self._added.times, times)
        return [*(codes[place] for place in self._places), counted.astype(kind)]

    def close(self) -> None:
        """See `Chunks`: the tables are closed by themselves."""


class Added:
    """Rows that the population lacks, in a file. times: the different numbers of times that they are added."""

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader
        several = [self.rows(number)[1] for number in range(len(reader))]
        self.sizes = [len(times) for times in several]
        self.times: list[int] = np.unique(np.concatenate([np.empty(0, np.int64), *several])).tolist()

    def rows(self, number: int) -> tuple[list[npt.NDArray[Any]], npt.NDArray[np.int64]]:
        """The codes of some rows, by column, and how often each is added."""
        *codes, times = self._reader.arrays(number)
        return codes, times

    def close(self) -> None:
        """Close its file."""
        self._reader.__exit__()


class People:
    """The population of a table, encoded: priors from it, and the sizes of cohorts in it.

    table: its first columns are those used by the question, as are the population's. lacks: "error" or "count" for rows
    of the table that the population lacks. Raises InputError for these, and for columns whose types do not match.
    """

    def __init__(
        self, means: Means, question: Question, table: EncodedChunks, population: EncodedChunks, lacks: str
    ) -> None:
        self.means = means
        self.question = question
        self.table = table
        self.population = population
        self._added: Added | None = None
        used = range(len(question.used))
        joined = [join_codes(table.columns[place], population.columns[place]) for place in used]
        self._joins = [
            (mine.astype(code_type(len(values))), theirs.astype(code_type(len(values))))
            for mine, theirs, values in joined
        ]
        self._values = [values for _, _, values in joined]
        self._counts = [np.zeros(len(values), np.int64) for values in self._values]
        for place, counts in zip(used, self._counts, strict=True):
            counts[self._joins[place][SOMEBODY]] = population.columns[place].counts
        self.total = population.rows
        found = self._find_lacking(lacks)
        if found["lacking"]:
            if lacks == "error":
                raise lacks_error(found["lacking"], table.rows, found["row"], found["there"], found["sampled"])
            self._add()

    def _find_lacking(self, lacks: str) -> dict[str, Any]:
        """What of the table's rows the population lacks; kept in a file, or, where it is an error, told of."""
        store, budget, report = self.means.store, self.means.budget, self.means.report
        every = range(len(self.question.used))
        both = self._both(every)
        job = sizes_job(self.question, self._counts)
        limit = budget.part_rows(job)
        parts = -(-both.rows // budget.planned_rows(limit, both.rows, len(every)))
        started = time.perf_counter()

        def take_apart() -> Any:
            report.stage("compare with the population", both.rows, "rows")
            with Workers() as workers:
                cardinalities = [len(counts) for counts in self._counts]
                folder = store.fresh("lacking-cut")
                return cut(both, cardinalities, every, parts, folder, workers, done=report.advance).sizes

        pieces = Cut(store.part("lacking-cut"), store.once("lacking-cut", take_apart))
        found: dict[str, Any] = store.once("lacking", partial(self._compare, pieces, job, limit, lacks))
        store.drop("lacking-cut")
        self.means.timed("compare", started)
        return found

    def _compare(self, pieces: Cut, job: Job, limit: int, lacks: str) -> dict[str, Any]:
        units = Units(np.array([NOBODY, SOMEBODY]), 1.0, self.population.rows)
        every = range(len(job.counts))
        layout = KeyLayout.of([len(counts) for counts in job.counts])
        scorer = PartScorer(self.means.engine, job, limit, Silent(), units)
        found: dict[str, Any] = {"lacking": 0}
        schema = {str(place): _arrow_type(len(counts)) for place, counts in enumerate(job.counts)}
        with BatchWriter(self.means.store.fresh("lacking") / "rows.arrow", schema | {"times": "int64"}) as writer:
            for part in range(pieces.parts):
                chunks = pieces.part(part)
                if chunks.rows:
                    rows, there, _ = scorer.distinct(chunks, every)
                    assert there is not None
                    sampled = rows.counts - there
                    short = np.flatnonzero(sampled > there)
                    if len(short):
                        found["lacking"] += int((sampled - there)[short].sum())
                        if lacks == "error":
                            row, which = self._first(pieces, part, rows.keys, there, layout)
                            if row < found.get("row", self.table.rows):
                                found |= {"row": row, "there": int(there[which]), "sampled": int(sampled[which])}
                        else:
                            codes = unpack_keys(rows.keys[short], layout)
                            writer.write([*codes, (sampled - there)[short]])
                chunks.close()
        return found

    def _first(
        self,
        pieces: Cut,
        part: int,
        keys: npt.NDArray[np.uint64],
        there: npt.NDArray[np.int64],
        layout: KeyLayout,
    ) -> tuple[int, int]:
        """In a part the first row of the table after as many equal ones as the population has, and which it is.

        keys: the distinct rows of the part; there: how often each is in the population.
        """
        chunks = pieces.part(part)
        seen = np.zeros(len(keys), np.int64)
        start = 0
        with Workers() as workers:
            for number, size in enumerate(self.table.sizes):
                *codes, _ = chunks.codes(number)
                both = Rows(np.concatenate([keys, pack_keys(codes, layout, workers)]))
                which = distinct_rows(both, len(both.keys), workers).number[len(keys) :]
                over = np.flatnonzero(seen[which] + _earlier(which) >= there[which])
                if len(over):
                    place = sum(sizes[number] for sizes in pieces.sizes[:part]) + int(over[0])
                    order = pieces.order(number)
                    chunks.close()
                    return start + (place if order is None else int(order[place])), int(which[over[0]])
                seen += np.bincount(which, minlength=len(keys))
                start += size
        raise AssertionError(part)

    def _add(self) -> None:
        """Count the rows that the population lacks as part of it."""
        self._added = Added(BatchReader(self.means.store.part("lacking", "rows.arrow")))
        for number in range(len(self._added.sizes)):
            codes, times = self._added.rows(number)
            self.total += int(times.sum())
            for own, counts in zip(codes, self._counts, strict=True):
                add_times(own, times, counts)

    def _both(self, places: Sequence[int]) -> Both:
        return Both(self.table, self.population, places, self._joins, self._added)

    def priors(self, columns: Sequence[Column]) -> Mapping[Hashable, Prior]:
        """The distribution in the population of some columns of the table."""
        places = [self.question.used.index(column.name) for column in columns]
        return {
            column.name: prior_in(column, self._counts[place], self._values[place], self.total)
            for column, place in zip(columns, places, strict=True)
        }

    def sizes(self, one: Question, prefix: str) -> Scored:
        """What counts, for one attacker, the population's rows in the cohorts of the table's rows."""
        places = [self.question.used.index(name) for name in one.used]
        both = self._both(places)
        job = sizes_job(one, [self._counts[place] for place in places])
        units = Units(both.counting, 1.0, self.total)
        asked = len(self.table.sizes)
        return Scored(self.means, f"{prefix}population-", job, both, units, asked, " the population")

    def close(self) -> None:
        """Close its files."""
        self.population.close()
        if self._added is not None:
            self._added.close()


def _arrow_type(cardinality: int) -> str:
    return np.dtype(code_type(cardinality)).name


def _earlier(which: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """For each item how many equal ones come before it."""
    order = np.argsort(which, kind="stable")
    arranged = which[order]
    begins = np.flatnonzero(np.append(True, arranged[1:] != arranged[:-1]))
    earlier = np.empty(len(which), np.int64)
    earlier[order] = np.arange(len(which)) - np.repeat(begins, np.diff(np.append(begins, len(which))))
    return earlier
