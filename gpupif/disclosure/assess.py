"""The assessment of a table of any kind: the findings of its equivalence classes, and its classes in a population.

A table in memory is searched as one partition. A table of files, or of Dask, is chunks in a graph of tasks
(`risk_tasks`). Both ways give the same bits.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..attack.population import Population, encode_population, match_population, open_population
from ..attack.weights import TableWeights, Units
from ..encoding.column import Column
from ..engines.base import Engine
from ..engines.choose import choose_engine
from ..frames.dask_frame import check_dask_frame, is_dask, known_orders
from ..frames.open import device_for, open_table
from ..io.base import Source
from ..out_of_core.file_encoding import weigh_chunks
from ..out_of_core.limited_distinct_rows import Packing, TooManyRowsError, collapse
from ..out_of_core.memory_budget import Budget
from ..out_of_core.table_chunks import MemoryChunks, TableChunks
from ..out_of_core.temporary_table import TemporaryTable, in_streams, open_temporary_table
from ..pipeline.local_graph import LocalGraph
from ..rows.threads import Workers
from ..scoring.score import encode_frame
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import check_exist
from .partition_search import Partition, Stopwatch
from .population_risks import MatchedClasses, PresenceRanking
from .request import RiskRequest
from .risk_search import Assessment, RiskSearch, search_partitions
from .risk_tasks import RiskTasks, too_many_to_compare

# The stages of a graph that are shown as progress, and the unit of each.
SHOWN = {"totals": "chunks", "out": "chunks", "findings": "partitions", "findings-again": "partitions"}


def assess(table: Any, request: RiskRequest, population: Population | None = None) -> Assessment:
    """Return the result of a request for a table of any kind.

    population: the population that the table is a part of. Its classes are then in the result. Default: none.

    Raises InputError, TableReadError, OutputError, DeviceError.
    """
    if is_dask(table):
        return _assess_dask(table, request, population)
    device = device_for(table)
    engine = choose_engine(device)
    request = replace(request, device=device._replace(device=engine.device))
    watch = Stopwatch()
    with Reporter() as report, announce_compilation():
        if in_streams(table, request.choose):
            return _assess_files(table, request, engine, report, watch, population)
        with watch("read and encode"):
            frame = open_table(table, request.pick, engine.frames)
            request.pick(frame.names)
            orders = frame.orders()
            with frame.active():
                # The table has no `constant_column`, so only its own columns are encoded.
                score_request = replace(request.score_request(orders), used=request.columns)
                encoded, weighted = encode_frame(frame, score_request, report)
                columns, place = encoded.columns, frame.scores_on
                search = RiskSearch.from_columns(request, columns, frame.rows, orders, weighted, place)
        assessment = search_partitions(search, [Partition.from_table(search.job)], engine, report, watch)
        if population is None:
            return assessment
        with watch("population"):
            known = columns[: len(request.quasi_identifiers)]
            classes = _population_classes(known, population, request, engine, report)
        return replace(assessment, in_population=classes, seconds=watch.seconds)


def _assess_files(
    table: Any, request: RiskRequest, engine: Engine, report: Reporter, watch: Stopwatch, population: Population | None
) -> Assessment:
    """Return the result for the files of a path, within the memory limit.

    The distinct rows are searched at once if they fit into memory. If not, the tasks cut them into partitions.
    """
    with watch("read and encode"):
        opened = open_temporary_table(
            table, request.choose, request.kept_missing, report, copies=2, joined=population is not None
        )
    with contextlib.ExitStack() as files:
        stream = files.enter_context(opened)
        graph = files.enter_context(_local_graph(stream.folder / "graph", stream.budget, report, engine))
        chunks, used = stream.chunks, len(request.columns)
        weighed = None
        if request.weights is not None:
            weighed = weigh_chunks(chunks, request.read.index(request.weights), used)
        weighted = None if weighed is None else weighed[1]
        search = RiskSearch.from_columns(request, chunks.columns[:used], chunks.rows, {}, weighted)
        tasks = RiskTasks.from_chunks(graph, request, request.score_request({}), stream.names, chunks, weighed)
        with watch("collapse"):
            collapsed = _collapse(search, chunks, stream.budget.partition_rows(search.job), weighed, report)
        if collapsed is not None:
            assessment = search_partitions(search, [collapsed], engine, report, watch)
            del collapsed
        else:
            with watch("score"):
                assessment = graph.value(tasks.add_search())
            assessment = replace(assessment, device=engine.device, seconds=watch.seconds)
        if population is None:
            return assessment
        with watch("population"):
            people = files.enter_context(_population_chunks(population, request, report, stream.budget))
            classes: MatchedClasses = graph.value(tasks.add_population(graph.take(people), population.lacks))
        return replace(assessment, in_population=classes, seconds=watch.seconds)


def _collapse(
    search: RiskSearch,
    chunks: TableChunks,
    limit: int,
    weighed: tuple[Units, TableWeights] | None,
    report: Reporter,
) -> Partition | None:
    """Return the distinct rows of a table as one partition; None if they are more than the limit.

    weighed: the sampling weights of the rows, and their sums by value. None without weights.

    Raises InputError for too many rows if missing values match every value: no cut keeps classes whole then.
    """
    columns, request = range(len(search.request.columns)), search.request
    weights = () if weighed is None else (weighed[0], request.read.index(request.weights))
    packing = Packing.for_columns([column.cardinality for column in chunks.columns], columns, *weights)
    report.stage("collapse", chunks.rows, "rows")
    with contextlib.suppress(TooManyRowsError), Workers() as workers:
        rows = collapse(chunks, packing, limit // 2, workers, limit, done=report.advance)
        return Partition.from_keys(search.job, search.job.scored_columns, columns, rows.keys, *rows.sums)
    if search.job.wildcards:
        raise too_many_to_compare(limit, chunks.rows)
    return None


def _assess_dask(table: Any, request: RiskRequest, population: Population | None) -> Assessment:
    """Return the result for a Dask frame. It is computed at once, and only the result comes to the client."""
    from ..dask.cluster_progress import compute
    from ..dask.dask_graph import Graph
    from ..dask.dask_population import open_dask_population, population_chunks

    check_dask_frame(table)
    request.pick(list(table.columns))
    needs_orders = request.distance is None and any(model.cell == "emd" for model in request.models)
    score_request = request.score_request(known_orders(table, request.sensitive if needs_orders else []))
    known = request.quasi_identifiers
    people = None if population is None else open_dask_population(population.table, known)
    graph = Graph()
    tasks = RiskTasks.from_chunks(graph, request, score_request, list(table.columns), table[request.read])
    last = tasks.add_search()
    if population is not None:
        classes = tasks.add_population(population_chunks(graph, people, known), population.lacks)
        last = graph.one("with-classes", _with_classes, last, classes)
    watch = Stopwatch()
    with Reporter() as report, watch("compute"):
        assessment: Assessment = compute(graph.value(last), report)
    return replace(assessment, seconds=watch.seconds)


def _with_classes(assessment: Assessment, classes: MatchedClasses) -> Assessment:
    """Return the result with the classes in the population."""
    return replace(assessment, in_population=classes)


def _population_classes(
    columns: Sequence[Column], population: Population, request: RiskRequest, engine: Engine, report: Reporter
) -> MatchedClasses:
    """Return the classes in the population of a table in memory. columns: the quasi-identifiers of the table.

    Raises InputError if the population lacks rows of the table; TableReadError, OutputError.
    """
    known = request.quasi_identifiers
    if in_streams(population.table, partial(_choose_known, known)):
        with _open_population(population, request, report, None) as people:
            score_request = replace(request.score_request({}), used=known, scored_columns=[], known=known, weights=None)
            with _local_graph(people.folder / "graph", people.budget, report, engine) as graph:
                table = MemoryChunks(columns, people.budget.chunk_rows)
                tasks = RiskTasks.from_chunks(graph, request, score_request, known, table)
                classes: MatchedClasses = graph.value(tasks.add_population(graph.take(people.chunks), population.lacks))
                return classes
    matched = match_population(open_population(population.table, known), columns, request.missing, population.lacks)
    ranking = PresenceRanking.from_columns(request.groups, matched.joined)
    return MatchedClasses.from_matched(matched.joined, ranking, matched.rows, engine)


@contextlib.contextmanager
def _population_chunks(population: Population, request: RiskRequest, report: Reporter, budget: Budget) -> Any:
    """Yield the chunks of a population for a table of files. budget: the memory plan with which the table was read."""
    if isinstance(population.table, str | os.PathLike):
        with _open_population(population, request, report, budget) as stream:
            yield stream.chunks
        return
    frame = open_population(population.table, request.quasi_identifiers)
    with Workers() as workers:
        columns = encode_population(frame, request.quasi_identifiers, request.missing, workers)
    yield MemoryChunks(columns, budget.chunk_rows)


def _open_population(
    population: Population, request: RiskRequest, report: Reporter, budget: Budget | None
) -> TemporaryTable:
    """Return the files of a population, encoded on disk.

    budget: the memory plan with which the table was read. None if the table is in memory.
    """
    choose, missing = partial(_choose_known, request.quasi_identifiers), request.kept_missing
    return open_temporary_table(
        population.table, choose, missing, report, copies=2, joined=True, argument="population", budget=budget
    )


def _choose_known(known: Sequence[Hashable], source: Source) -> list[str]:
    """Return the quasi-identifiers as columns of a population's files. Raises InputError if a column is not there."""
    check_exist("population", known, source.names, "the population")
    return [str(name) for name in known]


def _local_graph(folder: Any, budget: Budget, report: Reporter, engine: Engine) -> LocalGraph:
    """Return a graph that shows its progress, and whose tasks score with an engine."""
    shown = ""

    def done(stage: str) -> None:
        nonlocal shown
        if stage in SHOWN:
            if stage != shown:
                report.stage(stage, None, SHOWN[stage])
                shown = stage
            report.advance()

    return LocalGraph(folder, budget, done, engine=engine)
