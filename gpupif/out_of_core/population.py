"""The population of a table in files: its priors, and the sizes of cohorts in it.

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

from ..attack.population import MatchedRows, lacking_values, lacks_error, prior_in, sizes_job
from ..attack.weights import Units
from ..encoding.column import Column
from ..engines.base import SILENT, Job
from ..engines.block_scoring import unpack_keys
from ..io.ipc_batches import BatchReader, BatchWriter
from ..rows.keys import code_type
from ..rows.threads import Workers
from .chunks import EncodedChunks
from .joined_rows import POPULATION, SAMPLE, AbsentRows, ExtraRows, JoinedValues
from .one_part import runs_by_fold
from .part_scoring import PartScorer
from .passes import PartitionedRun, RunContext
from .shuffle import Partitioned, hash_partition

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..attack.known_subsets import KnownSubsets
    from ..attack.priors import Prior
    from ..attack.request import ScoreRequest


class EncodedPopulation:
    """The population of a table, encoded: priors from it, and the sizes of cohorts in it.

    table: its first columns are those used by the request, as are the population's. lacks: "error" or "count" for rows
    of the table that the population lacks. Raises InputError for these, and for columns whose types do not match.
    """

    def __init__(
        self, context: RunContext, request: ScoreRequest, table: EncodedChunks, population: EncodedChunks, lacks: str
    ) -> None:
        self.context = context
        self.request = request
        self.table = table
        self.population = population
        self._extra: ExtraRows | None = None
        self._joined = JoinedValues(table, population, len(request.used))
        self.total = population.rows
        both = zip(table.columns, population.columns, strict=False)
        missing = [mine.missing or theirs.missing for mine, theirs in both][: len(request.used)]
        self._wildcards = [one and request.missing == "wildcard" for one in missing]
        if not any(self._wildcards):
            found = self._find_lacking(lacks)
            if found["lacking"]:
                if lacks == "error":
                    raise lacks_error(found["lacking"], table.rows, *found["first"])
                self._add_extra()
        self._shares = [self._counts_of_prior(place, lacks) for place in range(len(request.used))]

    def _find_lacking(self, lacks: str) -> dict[str, Any]:
        """Find the table's rows that the population lacks: kept in a file, or, where that is an error, the first of
        them.
        """
        store, budget, report = self.context.store, self.context.budget, self.context.report
        every = range(len(self.request.used))
        rows = self._joined.rows(every)
        job = sizes_job(self.request, self._joined.counts)
        limit = budget.part_rows(job)
        parts = -(-rows.rows // budget.planned_rows(limit, rows.rows, len(every)))
        started = time.perf_counter()

        def partition() -> Any:
            report.stage("compare with the population", rows.rows, "rows")
            with Workers() as workers:
                cardinalities = [len(counts) for counts in job.counts]
                folder = store.fresh("lacking-cut")
                whole = hash_partition(
                    rows, cardinalities, every, parts, folder, workers, done=report.advance, keep_ids=False
                )
                return whole.sizes

        pieces = Partitioned(store.part("lacking-cut"), store.once("lacking-cut", partition))
        found: dict[str, Any] = store.once("lacking", partial(self._compare, pieces, job, limit, lacks))
        store.drop("lacking-cut")
        self.context.timed("compare", started)
        return found

    def _compare(self, pieces: Partitioned, job: Job, limit: int, lacks: str) -> dict[str, Any]:
        units = Units(np.array([SAMPLE, POPULATION]), 1.0, self.population.rows)
        every = range(len(job.counts))
        layout = self._joined.layout
        scorer = PartScorer(self.context.engine, job, limit, SILENT, units)
        lacking = AbsentRows(self._joined, limit)
        added = 0
        schema = {str(place): np.dtype(code_type(len(counts))).name for place, counts in enumerate(job.counts)}
        with BatchWriter(self.context.store.fresh("lacking") / "rows.arrow", schema | {"times": "int64"}) as writer:
            for _, chunks, _ in pieces.each():
                rows, in_population = scorer.distinct(chunks, every)
                assert in_population is not None
                short = MatchedRows(rows.keys, rows.counts - in_population, in_population).lacking()
                if lacks == "error":
                    lacking.add(short)
                elif len(short.keys):
                    times = short.sampled - short.in_population
                    writer.write([*unpack_keys(short.keys, layout), times])
                    added += int(times.sum())
        return lacking.found() if lacks == "error" else {"lacking": added}

    def _add_extra(self) -> None:
        """Count the rows that the population lacks as part of it."""
        self._extra = ExtraRows(BatchReader(self.context.store.part("lacking", "rows.arrow")))
        for number in range(len(self._extra.sizes)):
            codes, times = self._extra.rows(number)
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
        places = [self.request.used.index(column.name) for column in columns]
        return {
            column.name: prior_in(column, self._shares[place], self._joined.values[place])
            for column, place in zip(columns, places, strict=True)
        }

    def sizes(self, one: ScoreRequest, prefix: str, subsets: KnownSubsets | None) -> dict[str, PartitionedRun]:
        """Runs that count the population's rows in the cohorts of the table's rows, for one attacker; by fold."""
        places = [self.request.used.index(name) for name in one.used]
        rows = self._joined.rows(places, self._extra)
        wildcards = [number for number, place in enumerate(places) if self._wildcards[place]]
        job = sizes_job(one, [self._joined.counts[place] for place in places], wildcards)
        units = Units(rows.weights, 1.0, self.total)
        rest = (units, subsets, len(self.table.sizes), " the population")
        return runs_by_fold(self.context, f"{prefix}population-", job, rows, *rest)

    def close(self) -> None:
        """Close its files."""
        self.population.close()
        if self._extra is not None:
            self._extra.close()
