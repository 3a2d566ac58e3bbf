"""The population of a table in files: its priors, and the sizes of cohorts in it.

Rows of the table that the population lacks are found first, in parts that hold equal rows together; where these count
as rows of the population, they make further chunks of it.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels.codes import add_times

from ..attack.any_known import KnownSubsets
from ..attack.population import lacks_error
from ..attack.priors import Prior
from ..attack.request import ScoreRequest
from ..attack.weights import Units
from ..encoding.column import Column
from ..engines.base import Job
from ..io.ipc_batches import BatchReader, BatchWriter
from ..rows.keys import code_type
from .chunks import TableChunks
from .joined_rows import AbsentRows, ExtraRows, JoinedTables
from .one_part import runs_by_fold
from .passes import PartitionedRun, RunContext


class EncodedPopulation:
    """The population of a table, encoded: priors from it, and the sizes of cohorts in it.

    table: its first columns are those used by the request, as are the population's. lacks: "error" or "count" for rows
    of the table that the population lacks. Raises InputError for these, and for columns whose types do not match.
    """

    def __init__(
        self, context: RunContext, request: ScoreRequest, table: TableChunks, population: TableChunks, lacks: str
    ) -> None:
        self.context = context
        self.request = request
        self.table = table
        self.population = population
        self._extra: ExtraRows | None = None
        self._joined = JoinedTables(table, population, len(request.used), request.missing)
        columns = self._joined.columns
        self.total, counts = population.rows, columns.counts
        if not any(columns.wildcards):
            found = self._find_lacking(lacks)
            if found["lacking"]:
                if lacks == "error":
                    raise lacks_error(found["lacking"], table.rows, *found["first"])
                self._extra = ExtraRows(BatchReader(context.store.part("lacking", "rows.arrow")))
                counts = self._add_extra(self._extra)
        self._columns = columns.settled(counts, lacks)

    def _find_lacking(self, lacks: str) -> dict[str, Any]:
        """Find the table's rows that the population lacks: kept in a file, or, where that is an error, the first of
        them.
        """
        store, budget = self.context.store, self.context.budget
        started = time.perf_counter()
        job = self._joined.columns.sizes_job(self.request)
        found: dict[str, Any] = store.once("lacking", partial(self._compare, job, budget.part_rows(job), lacks))
        store.drop("lacking-cut")
        self.context.timed("compare", started)
        return found

    def _compare(self, job: Job, limit: int, lacks: str) -> dict[str, Any]:
        _, store, budget, report, *_ = self.context
        lacking = AbsentRows(self._joined, limit)
        added = 0
        schema = {str(place): np.dtype(code_type(len(counts))).name for place, counts in enumerate(job.counts)}
        with BatchWriter(store.fresh("lacking") / "rows.arrow", schema | {"times": "int64"}) as writer:
            for matched in self._joined.matched(budget, limit, store.fresh("lacking-cut"), report):
                short = matched.lacking()
                if lacks == "error":
                    lacking.add(short)
                elif len(short.keys):
                    times = short.sampled - short.in_population
                    writer.write([*self._joined.columns.layout.unpack(short.keys), times])
                    added += int(times.sum())
        return lacking.found() if lacks == "error" else {"lacking": added}

    def _add_extra(self, extra: ExtraRows) -> list[npt.NDArray[np.int64]]:
        """Count the rows that the population lacks as part of it; how many rows then have each value, by column."""
        added = [own.copy() for own in self._joined.columns.counts]
        for number in range(len(extra.sizes)):
            codes, times = extra.rows(number)
            self.total += int(times.sum())
            for own, counts in zip(codes, added, strict=True):
                add_times(own, times, counts)
        return added

    def priors(self, columns: Sequence[Column]) -> Mapping[Hashable, Prior]:
        """The distribution in the population of some columns of the table."""
        return self._columns.some([column.name for column in columns]).priors()

    def sizes(self, one: ScoreRequest, prefix: str, subsets: KnownSubsets | None) -> dict[str, PartitionedRun]:
        """Runs that count the population's rows in the cohorts of the table's rows, for one attacker; by fold."""
        places = [self.request.used.index(name) for name in one.used]
        rows = self._joined.rows(places, self._extra)
        job = self._columns.some(one.used).sizes_job(one)
        units = Units(rows.weights, 1.0, self.total)
        rest = (units, subsets, len(self.table.sizes), " the population")
        return runs_by_fold(self.context, f"{prefix}population-", job, rows, *rest)

    def close(self) -> None:
        """Close its files."""
        self.population.close()
        if self._extra is not None:
            self._extra.close()
