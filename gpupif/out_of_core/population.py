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

from ..attack.population import Met, lacking_values, lacks_error, prior_in, sizes_job
from ..attack.weights import Units
from ..encoding.column import Column
from ..engines.base import SILENT, Job
from ..engines.block_scoring import unpack_keys
from ..io.ipc_batches import BatchReader, BatchWriter
from ..rows.keys import code_type
from ..rows.threads import Workers
from .chunks import EncodedChunks
from .joined_rows import NOBODY, SOMEBODY, Added, Joined, Lacking
from .one_part import scored_by_fold
from .part_scoring import PartScorer
from .passes import Means, Scored
from .shuffle import Cut, cut

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..attack.known_subsets import KnownSubsets
    from ..attack.priors import Prior
    from ..attack.request import Question


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
        self._joined = Joined(table, population, len(question.used))
        self.total = population.rows
        both = zip(table.columns, population.columns, strict=False)
        missing = [mine.missing or theirs.missing for mine, theirs in both][: len(question.used)]
        self._wildcards = [one and question.missing == "wildcard" for one in missing]
        if not any(self._wildcards):
            found = self._find_lacking(lacks)
            if found["lacking"]:
                if lacks == "error":
                    raise lacks_error(found["lacking"], table.rows, *found["first"])
                self._add()
        self._shares = [self._counts_of_prior(place, lacks) for place in range(len(question.used))]

    def _find_lacking(self, lacks: str) -> dict[str, Any]:
        """What of the table's rows the population lacks; kept in a file, or, where it is an error, told of."""
        store, budget, report = self.means.store, self.means.budget, self.means.report
        every = range(len(self.question.used))
        both = self._joined.both(every)
        job = sizes_job(self.question, self._joined.counts)
        limit = budget.part_rows(job)
        parts = -(-both.rows // budget.planned_rows(limit, both.rows, len(every)))
        started = time.perf_counter()

        def take_apart() -> Any:
            report.stage("compare with the population", both.rows, "rows")
            with Workers() as workers:
                cardinalities = [len(counts) for counts in job.counts]
                folder = store.fresh("lacking-cut")
                whole = cut(both, cardinalities, every, parts, folder, workers, done=report.advance, keep_ids=False)
                return whole.sizes

        pieces = Cut(store.part("lacking-cut"), store.once("lacking-cut", take_apart))
        found: dict[str, Any] = store.once("lacking", partial(self._compare, pieces, job, limit, lacks))
        store.drop("lacking-cut")
        self.means.timed("compare", started)
        return found

    def _compare(self, pieces: Cut, job: Job, limit: int, lacks: str) -> dict[str, Any]:
        units = Units(np.array([NOBODY, SOMEBODY]), 1.0, self.population.rows)
        every = range(len(job.counts))
        layout = self._joined.layout
        scorer = PartScorer(self.means.engine, job, limit, SILENT, units)
        lacking = Lacking(self._joined, limit)
        added = 0
        schema = {str(place): np.dtype(code_type(len(counts))).name for place, counts in enumerate(job.counts)}
        with BatchWriter(self.means.store.fresh("lacking") / "rows.arrow", schema | {"times": "int64"}) as writer:
            for part in range(pieces.parts):
                chunks = pieces.part(part)
                if chunks.rows:
                    rows, there = scorer.distinct(chunks, every)
                    assert there is not None
                    short = Met(rows.keys, rows.counts - there, there).short()
                    if lacks == "error":
                        lacking.add(short)
                    elif len(short.keys):
                        times = short.sampled - short.there
                        writer.write([*unpack_keys(short.keys, layout), times])
                        added += int(times.sum())
                chunks.close()
        return lacking.found() if lacks == "error" else {"lacking": added}

    def _add(self) -> None:
        """Count the rows that the population lacks as part of it."""
        self._added = Added(BatchReader(self.means.store.part("lacking", "rows.arrow")))
        for number in range(len(self._added.sizes)):
            codes, times = self._added.rows(number)
            self.total += int(times.sum())
            for own, counts in zip(codes, self._joined.counts, strict=True):
                add_times(own, times, counts)

    def _counts_of_prior(self, place: int, lacks: str) -> npt.NDArray[np.int64]:
        """How many rows of the population have each value of a column; see `attack.population.Population`."""
        counts, column = self._joined.counts[place], self.table.columns[place]
        if not any(self._wildcards):
            return counts
        known = slice(-1) if self._wildcards[place] else slice(None)
        sampled = np.zeros_like(counts)
        # The table's values come first in both, missing ones last.
        sampled[: len(column.labels)] = column.counts[: len(column.labels)]
        if column.missing:
            sampled[-1] = column.counts[-1]
        return lacking_values(column.name, self._joined.values[place], counts[known], sampled[known], lacks)

    def priors(self, columns: Sequence[Column]) -> Mapping[Hashable, Prior]:
        """The distribution in the population of some columns of the table."""
        places = [self.question.used.index(column.name) for column in columns]
        return {
            column.name: prior_in(column, self._shares[place], self._joined.values[place])
            for column, place in zip(columns, places, strict=True)
        }

    def sizes(self, one: Question, prefix: str, subsets: KnownSubsets | None) -> dict[str, Scored]:
        """What counts, for one attacker, the population's rows in the cohorts of the table's rows; by fold."""
        places = [self.question.used.index(name) for name in one.used]
        both = self._joined.both(places, self._added)
        wildcards = [number for number, place in enumerate(places) if self._wildcards[place]]
        job = sizes_job(one, [self._joined.counts[place] for place in places], wildcards)
        units = Units(both.counting, 1.0, self.total)
        rest = (units, subsets, len(self.table.sizes), " the population")
        return scored_by_fold(self.means, f"{prefix}population-", job, both, *rest)

    def close(self) -> None:
        """Close its files."""
        self.population.close()
        if self._added is not None:
            self._added.close()
