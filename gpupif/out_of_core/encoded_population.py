"""The population of a table on disk: matched with the table, and sent to partitions like its rows."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from operator import attrgetter, itemgetter

import numpy as np

from gpupif.kernels.codes import add_multiplicities

from ..attack.joined_columns import POPULATION
from ..attack.request import ScoreRequest
from ..engines.choose import DeviceRequest
from ..io.ipc_batches import BatchWriter, read_batch
from ..pipeline.chunk_encoding import CodedChunk, collapse_chunk, encode_chunk
from ..pipeline.local_graph import LocalGraph
from ..pipeline.population_graph import add_matching_tasks, add_settling_tasks
from ..pipeline.population_matching import find_absent_rows, joined_rows, project_rows
from ..pipeline.table_plan import ChunkTotals, Plan, PopulationPlan, join
from ..rows.partition import Rows
from .run_context import RunContext
from .table_chunks import SomeColumns, TableChunks

# Largest number of rows of a chunk of absent rows.
ABSENT_AT_ONCE = 1 << 18
HERE = DeviceRequest("cpu")


class EncodedPopulation:
    """The encoded population of a table: a source of priors, and of rows that count in cohorts.

    table, population: TableChunks. The first columns are those that the request uses.
    lacks: str. "error" or "count", for rows of the table that the population lacks.

    Raises InputError for such rows, and for columns whose types do not match.
    """

    def __init__(
        self, context: RunContext, request: ScoreRequest, table: TableChunks, population: TableChunks, lacks: str
    ) -> None:
        self.population = population
        self._context = context
        self._request = request = replace(request, weights=None)
        self._table = SomeColumns(table, range(len(request.used)))
        joined = join(request, [], encoded_totals(self._table), encoded_totals(population))
        self._absent = Rows(np.empty((0, joined.columns.layout.words), np.uint64), np.empty(0, np.int64))
        if not any(joined.columns.wildcards):
            started = time.perf_counter()
            context.store.once("lacking", partial(self._find_absent, lacks))
            *words, multiplicities = read_batch(context.store.part("lacking", "rows.arrow"))
            self._absent = Rows(np.stack(words, axis=1), multiplicities)
            context.timed("compare", started)
        counts = [np.zeros_like(own) for own in joined.columns.counts]
        for own, total in zip(joined.columns.layout.unpack(self._absent.keys), counts, strict=True):
            add_multiplicities(own, self._absent.counts, total)
        rows, distinct = int(self._absent.counts.sum()), len(self._absent.keys)
        self.plan: PopulationPlan = joined.with_lacking(rows, distinct, counts, lacks)

    @property
    def senders(self) -> int:
        """The number of chunks that send rows: chunks of the population, and of the rows that it lacks."""
        return len(self.population.sizes) + -(-len(self._absent.keys) // ABSENT_AT_ONCE)

    def rows(self, number: int, plan: Plan) -> Rows:
        """Return the distinct rows of a chunk as keys of joined values, in the columns that a plan uses."""
        whole, place = self.plan, number - len(self.population.sizes)
        if place < 0:
            chunk = CodedChunk(self.population.columns, self.population.codes(number))
            rows = joined_rows(whole, POPULATION, collapse_chunk(chunk, HERE)[0])
        else:
            some = slice(place * ABSENT_AT_ONCE, (place + 1) * ABSENT_AT_ONCE)
            rows = Rows(self._absent.keys[some], self._absent.counts[some])
        return project_rows(whole, plan, rows)

    def close(self) -> None:
        """Close the files."""
        self.population.close()

    def _find_absent(self, lacks: str) -> int:
        """Write the table's rows that the population lacks; return the number of distinct rows.

        lacks: str. "error" raises InputError for the first such row.
        """
        context, request = self._context, self._request
        context.report.stage("compare with the population", None, "chunks")
        folder = context.store.fresh("lacking")
        with LocalGraph(
            context.store.part("compared"), context.budget, lambda stage: context.report.advance()
        ) as graph:
            encoded = graph.each("encode", encode_chunk, request, HERE, graph.take(self._table))
            mine = graph.each("local", itemgetter(0), encoded)
            totals = graph.given("totals", encoded_totals(self._table))
            names = [column.name for column in self._table.columns]
            chunks = graph.take(self.population)
            matching = add_matching_tasks(graph, mine, totals, chunks, request, names, HERE)
            compared = graph.each("compare", find_absent_rows, lacks, matching.joined, matching.matched)
            absent, rows = (graph.each("part", itemgetter(place), compared) for place in (1, 0))
            number = graph.each("number", attrgetter("number"), graph.each("index", itemgetter(1), encoded))
            graph.value(add_settling_tasks(graph, lacks, matching, absent, mine, number))
            found: list[Rows] = graph.value(graph.all("absent", rows))
        keys, multiplicities = (
            np.concatenate([rows.keys for rows in found]),
            np.concatenate([rows.counts for rows in found]),
        )
        types = dict.fromkeys([f"word-{word}" for word in range(keys.shape[1])], "uint64") | {"multiplicity": "int64"}
        with BatchWriter(folder / "rows.arrow", types) as writer:
            writer.write([*keys.T, multiplicities])
        return len(keys)


def encoded_totals(table: TableChunks, device: DeviceRequest = HERE) -> ChunkTotals:
    """Return the totals of an encoded table."""
    columns = list(table.columns)
    return ChunkTotals(table.rows, table.rows, list(columns), [-1] * len(columns), frozenset([device]))
