"""The scoring of a table on disk against one attacker, by tasks of `gpupif.pipeline`; the checkpoint keeps each step.

Each chunk sends its distinct rows to the partitions that hold their cohorts whole. Each partition is scored, and its
scores are written chunk by chunk, in the order in which the chunk sent its rows. A chunk also writes, for each of its
rows, the place of the row's scores in this order.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import spread
from gpupif.kernels.codes import add_multiplicities

from ..attack.attackers import AGGREGATES, KnownSubsets, aggregate_of
from ..attack.joined_columns import SAMPLE
from ..engines.base import Job
from ..engines.partition_plan import WeightSums, partition_measures, plan_shuffles
from ..engines.shared_scores import take_scored_column
from ..io.ipc_batches import BatchReader, BatchWriter, arrow_type, read_batch, write_batch
from ..measures import POPULATION_SIZE, resolve_measures
from ..pipeline.chunk_encoding import send
from ..pipeline.fitting_rows import FittingRows, PartitionRows, Span
from ..pipeline.local_graph import LocalGraph
from ..pipeline.partition_routes import RoutedPass, Routes, Send, find_sends, hash_routes
from ..pipeline.partition_scoring import PartitionScorer, ScoredRows
from ..pipeline.shuffle_messages import (
    Message,
    blocks_to_messages,
    message_memory,
    only_counts,
    order_by_partition,
    pack,
    row_count,
    unpack,
)
from ..pipeline.table_plan import Plan
from ..pipeline.task_resources import task_workers
from ..rows.distinct import distinct_rows, sum_multiplicities
from ..rows.partition import NO_ROWS, Rows, index_type
from ..rows.threads import Workers
from ..utils.arrays import on_host
from ..utils.information import LogSum
from ..utils.repeated import Repeated, kept_small
from .encoded_population import EncodedPopulation
from .run_context import RunContext
from .table_chunks import TableChunks

# The scores of one column.
Scores = npt.NDArray[Any] | Repeated
# Distinct scores, and the multiplicity of each.
Multiset = tuple[Any, Any]
# Number of distinct rows whose scores are counted at once.
COUNTED_AT_ONCE = 1 << 22


class StoredCut(NamedTuple):
    """The files with the scores of some scored columns.

    number: int. The number of the cut; by it `places_file` has the places of a chunk's rows in these files.
    files: list of Path. One file for each partition with rows, in order.
    scored_columns: list of int. The scored columns in these files.
    """

    number: int
    files: list[Path]
    scored_columns: Sequence[int]


@dataclass
class PartitionFacts:
    """Results of a partition besides its scores.

    sums: WeightSums. The sums from which weights are computed.
    rows: int. The number of distinct rows over all columns; None if it is not known.
    """

    sums: WeightSums = field(default_factory=WeightSums)
    rows: int | None = 0

    def to_json(self) -> dict[str, Any]:
        """Return the facts, ready for JSON."""
        sums = self.sums
        units = [[[column, own.units] for column, own in by.items()] for by in (sums.cohorts, sums.distinct)]
        weights = {aggregate: list(by_column.items()) for aggregate, by_column in sums.weights.items()}
        return {"units": units, "weights": weights, "rows": self.rows}

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> PartitionFacts:
        """Return the facts that `to_json` made."""
        cohorts, distinct = ({column: LogSum(units) for column, units in by} for by in facts["units"])
        weights = {aggregate: dict(by_column) for aggregate, by_column in facts["weights"].items()}
        return cls(WeightSums(cohorts, distinct, weights), facts["rows"])


@dataclass(eq=False)
class TableScoring:
    """The scoring of a table against one attacker.

    context: RunContext. The context of the run.
    prefix: str. The beginning of the names of this attacker's steps.
    plan: Plan. The plan of the attacker's request, without codes of rows.
    table: TableChunks. The columns that the request reads, in order.
    subsets: KnownSubsets. The sets of columns that the attacker may know; None for one list of known columns.
    population: EncodedPopulation. None without population.
    routes: Routes. The partitions of rows; set by `score`.
    """

    context: RunContext
    prefix: str
    plan: Plan
    table: TableChunks
    subsets: KnownSubsets | None
    population: EncodedPopulation | None = None
    routes: Routes = field(init=False)

    @property
    def aggregates(self) -> Sequence[str]:
        """The aggregates: "" alone, or the worst and the mean over sets of known columns."""
        return ("",) if self.subsets is None else AGGREGATES

    def aggregate_job(self, aggregate: str) -> Job:
        """Return the job whose scores are those of an aggregate."""
        job = self.plan.job
        return (
            replace(job, measures=tuple(aggregate_of(measure, aggregate) for measure in job.measures))
            if aggregate
            else job
        )

    def size_type(self, aggregate: str) -> str | None:
        """Return the type of the sizes of cohorts in the population; None without population."""
        if self.plan.population is None:
            return None
        (size,) = resolve_measures("cohort_size")
        return (aggregate_of(size, aggregate) if aggregate else size).type_in(self.plan.job.dtype)

    @cached_property
    def stored(self) -> dict[tuple[str, str], str]:
        """The types of the scores that are written for each scored column, by aggregate and measure."""
        types = {}
        for aggregate in self.aggregates:
            for measure in (
                partition_measures(self.aggregate_job(aggregate))
                if self.subsets is None
                else self.aggregate_job(aggregate).measures
            ):
                types[aggregate, measure.name] = measure.type_in("float64")
            kind = self.size_type(aggregate)
            if kind is not None:
                types[aggregate, POPULATION_SIZE.name] = "float64" if kind == "float32" else kind
        return types

    def step(self, name: str) -> str:
        """Return the name of a step of this attacker."""
        return f"{self.prefix}{name}"

    def file(self, name: str, *names: str) -> Path:
        """Return a file or folder of a step."""
        return self.context.store.part(self.step(name), *names)

    @cached_property
    def weights(self) -> dict[str, list[float]]:
        """The weights of the scored columns, by aggregate; the table is scored for them, unless that is done."""
        return self.score().by_aggregate(self.plan.job, self.plan.total)

    def score(self) -> WeightSums:
        """Score the table, unless that is done; return the sums from which weights are computed."""
        context, plan, rows = self.context, self.plan, self._all_rows
        started = time.perf_counter()
        limit = context.budget.partition_rows(plan.job, plan.population is not None)
        planned = context.store.once(
            self.step("planned"),
            lambda: context.budget.planned_rows(limit, rows, len(plan.job.counts), context.budget.together),
        )
        passes = plan_shuffles(plan.job, rows, planned)
        partitions = 1 if len(passes) == 1 and not passes[0].by else -(-rows // planned)
        self.routes = hash_routes(passes, partitions, len(self.table.sizes), self._senders)
        with self._graph() as graph:
            arrived = self._send_all(graph)
            context.timed("cut", started)
            return self._score_partitions(graph, arrived, limit)

    def values(self, aggregate: str, scored_column: int, measure: str) -> list[Path]:
        """Return the files with the distinct scores of a scored column, and their multiplicities."""
        return sorted(self.file("values").glob(f"*/{scored_column}-{aggregate}-{measure}-*.arrow"))

    def distinct_rows(self) -> int:
        """Return the number of distinct rows of the table."""
        own = range(self.routes.partitions // len(self.routes.cuts))
        return sum(self._facts(partition).rows or 0 for partition in own)

    def cuts(self) -> list[StoredCut]:
        """Return the files of the scores, cut by cut."""
        each = self.routes.partitions // len(self.routes.cuts)
        cuts = []
        for number, cut in enumerate(self.routes.cuts):
            files = [self._scores_file(number * each + partition) for partition in range(each)]
            cuts.append(StoredCut(number, [file for file in files if file.exists()], cut.scored_columns))
        return cuts

    def places_file(self, chunk: int) -> Path:
        """Return the file from which `find_places` finds the places of a chunk's rows among the rows that it sent."""
        return self.file("cut", f"home-{chunk:06}.arrow")

    @property
    def _senders(self) -> int:
        return len(self.table.sizes) + (0 if self.population is None else self.population.senders)

    @property
    def _all_rows(self) -> int:
        """The number of rows of the table and its population."""
        return self.plan.rows + (0 if self.plan.population is None else self.plan.population.total)

    def _graph(self) -> LocalGraph:
        context = self.context
        folder = context.store.part(self.step("graph"))
        return LocalGraph(folder, context.budget, lambda stage: context.report.advance(), context.store)

    def _send_all(self, graph: LocalGraph) -> list[Any]:
        """Run the tasks that send the rows of all chunks; return the messages of each partition, for `unpack`."""
        self.context.report.stage("cut", self._senders, "chunks")
        sent = graph.each("send", self._send, range(self._senders))
        arrived = graph.shuffle(self.step("cut"), sent, self.routes.partitions)
        graph.run(arrived)
        return arrived

    def _send(self, sender: int) -> Any:
        """Return the messages of a chunk of the table or the population; write the places of rows of the table."""
        plan, routes, chunk = self.plan, self.routes, sender - len(self.table.sizes)
        if chunk >= 0:
            assert self.population is not None
            return send(plan, routes, sender, self.population.rows(chunk, plan))
        messages: list[Message] = []
        row_places: dict[str, Any] = {}
        rows, occurs, number = self._rows_of(sender)
        with task_workers(2 * message_memory(rows)) as workers:
            for sent in find_sends(rows, plan, routes, workers):
                blocks = order_by_partition(sent.rows, sent.dest, routes.partitions, workers)
                messages += blocks_to_messages(blocks, sender, sent.cut, workers)
                if plan.weights is not None:
                    counted = only_counts(blocks, sum_multiplicities(sent.place, occurs, len(sent.rows.keys)))
                    messages += blocks_to_messages(counted, sender + routes.senders, sent.cut, workers)
                partitions, repeats = _stored_places(sent, number, routes.cuts[sent.cut])
                row_places[f"{sent.cut}-partition"], row_places[f"{sent.cut}-repeats"] = partitions, repeats
            frame = pack(messages)
        write_batch(self.places_file(sender), row_places)
        return frame

    def _rows_of(self, chunk: int) -> tuple[Rows, npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return the distinct rows of a chunk, the multiplicity of each, and for each row its distinct row."""
        plan, codes = self.plan, self.table.codes(chunk)
        used = codes[: len(plan.request.used)]
        if plan.population is not None:
            used = plan.population.columns.codes(used, SAMPLE)
        with task_workers() as workers:
            distinct = distinct_rows(Rows(plan.layout.pack(used, workers)), len(used[0]), workers)
        keys, occurs = distinct.rows.keys, distinct.rows.counts.astype(np.int64)
        if plan.weights is None:
            return Rows(keys, occurs), occurs, distinct.number
        units = plan.weights.units.multiplicities(codes[plan.request.read.index(plan.request.weights)])
        return Rows(keys, sum_multiplicities(distinct.number, units, len(keys))), occurs, distinct.number

    def _score_partitions(self, graph: LocalGraph, arrived: list[Any], limit: int) -> WeightSums:
        """Score the partitions one after the other; return the sums from which weights are computed.

        limit: int. The number of rows that are scored at once.
        """
        store, started = self.context.store, time.perf_counter()
        self.context.report.stage("score", self.routes.partitions, "partitions")
        self._empty_folders()
        facts = []
        for partition, messages in enumerate(arrived):
            store.once(
                self.step(f"scored-{partition}"), partial(self._score_partition, graph, partition, messages, limit)
            )
            graph.drop(messages)
            facts.append(self._facts(partition))
            self.context.report.advance()
        store.drop(self.step("slices"))
        self.context.timed("score", started)
        return WeightSums.total(*(own.sums for own in facts))

    def _empty_folders(self) -> None:
        """Make empty folders for scores and distinct scores, unless a partition is scored already."""
        store = self.context.store
        if store.done(self.step("scored-0")) is None:
            store.fresh(self.step("partitions"))
            store.fresh(self.step("values"))

    def _facts(self, partition: int) -> PartitionFacts:
        return PartitionFacts.from_json(self.context.store.done(self.step(f"scored-{partition}")))

    def _score_partition(self, graph: LocalGraph, partition: int, messages: Any, limit: int) -> dict[str, Any]:
        routes = self.routes
        cut = routes.cuts[partition // (routes.partitions // len(routes.cuts))]
        facts = PartitionFacts()
        with Workers() as workers:
            own, rows = self._partition_rows(unpack(graph.value(messages), partition), cut, limit, workers)
            if own:
                self._score_rows(partition, own, rows, cut, facts)
        self.context.budget.give_back_unused()
        self.context.timed("score", time.perf_counter())
        return facts.to_json()

    def _partition_rows(
        self, messages: Sequence[Message], cut: RoutedPass, limit: float, workers: Workers
    ) -> tuple[list[int], PartitionRows]:
        """Return the chunks of the table that sent rows, and all rows of a partition; rows of the table come first."""
        routes, plan, by_source = self.routes, self.plan, {message.source: message for message in messages}
        own = [source for source in by_source if source < routes.chunks]
        others = [source for source in by_source if routes.chunks <= source < routes.senders]
        senders: list[tuple[Message | None, ...]] = []
        for source in [*own, *others]:
            mine = source < routes.chunks
            counts = [by_source[source] if mine else None]
            if plan.weights is not None:
                counts.append(by_source[source + routes.senders] if mine else None)
            if plan.population is not None:
                counts.append(None if mine else by_source[source])
            senders.append(tuple(counts))
        return own, PartitionRows(senders, plan.layout, plan.job.known, cut.by, len(cut.places), limit, workers)

    def _score_rows(
        self, partition: int, own: Sequence[int], rows: PartitionRows, cut: RoutedPass, facts: PartitionFacts
    ) -> None:
        """Score the rows of a partition, in as few spans as fit into memory.

        own: list of int. The chunks of the table that sent rows.
        facts: PartitionFacts. They are updated.
        """
        store = self.context.store
        folder = store.fresh(self.step("slices"))
        values = store.fresh(self.step("values"), f"{partition:05}")
        slices: list[tuple[FittingRows, Path]] = []
        columns = len(self.plan.job.cardinalities)
        spans: set[Span] = set()
        for fit in rows.fitting(cut.scored_columns):
            whole = fit.span.of == 1 and len(fit.scored_columns) == len(cut.scored_columns)
            file = self._scores_file(partition) if whole else folder / f"{len(slices):06}.arrow"
            scored = self._score_fit(fit, self._places(fit, rows, own), file, values, f"{len(slices):06}")
            facts.sums = WeightSums.total(facts.sums, scored.sums)
            if len({*self.plan.job.known, *fit.scored_columns}) < columns:
                facts.rows = None
            elif facts.rows is not None and fit.span not in spans:
                facts.rows += scored.distinct_rows
            spans.add(fit.span)
            if not whole:
                slices.append((fit._replace(keys=fit.keys[:0], counts=[]), file))
            del fit, scored
        if slices:
            self._join_slices(partition, own, rows, cut, slices)
        if facts.rows is None and cut.whole:
            everything = replace(
                rows, known=range(columns), by=range(columns), bins=1, senders=rows.senders[: len(own)]
            )
            facts.rows = sum(len(fit.keys) for fit in everything.fitting((), collapse=True))

    def _places(self, fit: FittingRows, rows: PartitionRows, own: Sequence[int]) -> Iterator[Any]:
        """Yield for each chunk of the table the places in `fit` of the rows that it sent. own: chunks with rows."""
        places, sent = rows.located(fit, len(own)), {*own}
        for chunk in range(len(self.table.sizes)):
            yield next(places)[1] if chunk in sent else slice(0)

    def _score_fit(
        self, fit: FittingRows, places: Iterator[Any], file: Path, values: Path, name: str, **scorer: Any
    ) -> ScoredRows:
        """Score rows that fit into memory; write their scores chunk by chunk, and their distinct scores.

        places: for each chunk of the table the places of its rows in `fit`.
        file: Path. The file for the scores.
        values: Path. The folder for the distinct scores.
        name: str. The name of these rows in the partition, for names of files.
        scorer: further arguments of `PartitionScorer`.
        """
        mine, own_rows, occurs, others = self._by_table(fit)
        counted = None if self.plan.weights is None else occurs
        scored_columns = fit.scored_columns
        scored = PartitionScorer(
            self.plan, self.context.engine, scored_columns, own_rows, counted, others, anywhere=True, **scorer
        ).score()
        number = None if mine is None else np.cumsum(mine) - 1
        with Workers() as workers:
            columns = self._columns(scored, len(scored_columns), workers)
            with self._writer(file, scored_columns, columns) as writer:
                for place in places:
                    some = place if number is None else number[place]
                    writer.write(workers.run(lambda column, some=some: column[some], [(own,) for own in columns]))
            self._write_values(values, name, scored_columns, columns, occurs, workers)
        # Drop the scores, so that their memory is free.
        return scored._replace(values={})

    def _by_table(self, fit: FittingRows) -> tuple[npt.NDArray[np.bool_] | None, Rows, npt.NDArray[np.int64], Rows]:
        """Return which rows are the table's (None: all), its rows, their multiplicities, and the population's rows."""
        occurs = fit.counts[0] if self.plan.weights is None else fit.counts[1]
        if self.plan.population is None:
            return None, Rows(fit.keys, fit.counts[0]), occurs, Rows(fit.keys[:0], fit.counts[0][:0])
        mine, theirs = occurs > 0, fit.counts[-1] > 0
        others = Rows(fit.keys[theirs], fit.counts[-1][theirs])
        return mine, Rows(fit.keys[mine], fit.counts[0][mine]), occurs[mine], others

    def _columns(self, scored: ScoredRows, scored_columns: int, workers: Workers) -> list[Scores]:
        """Return the scores to write, one scored column after the other."""
        most = self.context.budget.distinct_scores(
            self.routes.partitions // len(self.routes.cuts) * len(self.plan.job.scored_columns) * len(self.stored)
        )
        given = {name: scored.values[name] for name in self.stored}

        def keep(place: int) -> list[Scores]:
            rows = next(iter(given.values())).shape[1]
            taken = take_scored_column(given, place, 0, rows)  # type: ignore[arg-type]
            return [
                kept_small(on_host(taken[name]).astype(kind, copy=False), most)  # type: ignore[index]
                for name, kind in self.stored.items()
            ]

        found: list[list[Scores]] = workers.run(keep, [(place,) for place in range(scored_columns)])
        return [scores for several in found for scores in several]

    def _write_values(
        self,
        folder: Path,
        name: str,
        scored_columns: Sequence[int],
        columns: Sequence[Scores],
        occurs: npt.NDArray[np.int64],
        workers: Workers,
    ) -> None:
        """Write the distinct scores and how often each occurs, of a few rows at a time to save memory."""
        names = list(self.stored)
        for aggregate in self.aggregates:
            for measure in self.context.counted(self.aggregate_job(aggregate)):
                for slot, scored_column in enumerate(scored_columns):
                    scores = columns[slot * len(names) + names.index((aggregate, measure))]
                    for start in range(0, len(scores), COUNTED_AT_ONCE):
                        some = slice(start, start + COUNTED_AT_ONCE)
                        distinct, multiplicities = multiset(scores[some], occurs[some], workers)
                        file = folder / f"{scored_column}-{aggregate}-{measure}-{name}-{start:012}.arrow"
                        write_batch(file, {"value": distinct, "multiplicity": multiplicities})

    def _join_slices(
        self,
        partition: int,
        own: Sequence[int],
        rows: PartitionRows,
        cut: RoutedPass,
        slices: Sequence[tuple[FittingRows, Path]],
    ) -> None:
        """Write the scores of a partition from the files of its spans and halves, and delete these files."""
        kinds = list(self.stored.values()) * len(cut.scored_columns)
        names = self.score_names(cut.scored_columns)
        sent = {chunk: place for place, chunk in enumerate(own)}
        readers = [(fit, self.score_names(fit.scored_columns), BatchReader(file)) for fit, file in slices]
        nothing = [np.empty(0, kind) for kind in kinds]
        with self._writer(self._scores_file(partition), cut.scored_columns, nothing) as writer:
            for chunk in range(len(self.table.sizes)):
                size = _rows_sent(rows, sent[chunk]) if chunk in sent else 0
                arrays = {name: np.empty(size, kind) for name, kind in zip(names, kinds, strict=True)}
                for fit, own_names, reader in readers if size else []:
                    there = slice(None) if fit.span.of == 1 else rows.in_span(sent[chunk], fit.span)
                    for name, scores in zip(own_names, reader.arrays(chunk), strict=True):
                        arrays[name][there] = scores
                writer.write(list(arrays.values()))
        for *_, reader in readers:
            reader.__exit__()
        self.context.store.drop(self.step("slices"))

    def score_names(self, scored_columns: Sequence[int]) -> list[str]:
        """Return the names of the columns of a file of scores."""
        return [
            score_name(scored_column, aggregate, name)
            for scored_column in scored_columns
            for aggregate, name in self.stored
        ]

    def _writer(self, file: Path, scored_columns: Sequence[int], columns: Sequence[Scores]) -> BatchWriter:
        """Return a writer for columns of scores with the types of `columns`."""
        schema = dict(zip(self.score_names(scored_columns), map(arrow_type, columns), strict=True))
        # Numbers of repeated scores are small without compression; zstd would take a tenth of the time of the run.
        codec = None if all(isinstance(column, Repeated) for column in columns) else "lz4"
        return BatchWriter(file, schema, threads=True, codec=codec)

    def _scores_file(self, partition: int) -> Path:
        return self.file("partitions", f"{partition:05}.arrow")


def score_name(scored_column: int, aggregate: str, measure: str) -> str:
    """Return the name of a column in a file of scores."""
    return f"{scored_column}:{aggregate}:{measure}"


def _stored_places(sent: Send, number: npt.NDArray[Any], cut: RoutedPass) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return two columns that take little room on disk, and from which `find_places` finds the places of rows.

    number: array, one for each row of a chunk. The number of the distinct row. cut: RoutedPass. The cut of the send.
    """
    rows = sent.place[number]
    # Sent rows are in order of first appearance: where a higher number appears, a row is the first of its sent row.
    first = np.append(True, np.diff(np.maximum.accumulate(rows)) > 0)
    partitions = (sent.dest - cut.places[0]).astype(np.uint8 if len(cut.places) <= 1 << 8 else np.uint32)
    return partitions[rows], np.where(first, 0, rows + 1).astype(rows.dtype)


def find_places(partitions: npt.NDArray[Any], repeats: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """Return for each row of a chunk its place among the rows that the chunk sent, in order of partition.

    partitions: array, one for each row. The partition to which the row was sent.
    repeats: array, one for each row. 0 if it is the first row that is equal to its sent row; else the number of that
    sent row, plus 1.
    """
    first = repeats == 0
    order = np.argsort(partitions[first], kind="stable")
    places = np.empty(len(order), np.uint32)
    places[order] = np.arange(len(order))
    return places[np.where(first, np.cumsum(first) - 1, repeats.astype(np.int64) - 1)]


def _rows_sent(rows: PartitionRows, sender: int) -> int:
    message = rows.senders[sender][0]
    assert message is not None
    return row_count(message)


def multiset(values: Scores, multiplicities: npt.NDArray[np.int64] | None, workers: Workers) -> Multiset:
    """Return the distinct values, and how many rows of the table have each.

    multiplicities: array, one for each value. The multiplicity of its distinct row; None for 1.
    """
    if isinstance(values, Repeated):
        sums = np.zeros(len(values.distinct), np.int64)
        if multiplicities is None:
            add_multiplicities(values.numbers, np.empty(0, np.int64), sums)
        else:
            add_multiplicities(values.numbers, multiplicities, sums)
        return values.distinct.astype(np.float64, copy=False), sums
    total = len(values) if multiplicities is None else int(multiplicities.sum())
    counts = NO_ROWS if multiplicities is None else multiplicities.astype(index_type(total + 1))
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64)[:, None]
    found = distinct_rows(Rows(bits, counts), total, workers).rows
    return found.keys[:, 0].copy().view(np.float64), found.counts.astype(np.int64)


class StoredScores(contextlib.ExitStack):
    """The reader of all scores of a run, chunk by chunk of the table; a context manager."""

    def __init__(self, scoring: TableScoring) -> None:
        super().__init__()
        self._scoring = scoring
        self._cuts = [(cut, [self.enter_context(BatchReader(file)) for file in cut.files]) for cut in scoring.cuts()]

    def fill(self, chunk: int, outs: Mapping[str, list[tuple[Any, npt.NDArray[Any]]]], workers: Workers) -> None:
        """Fill arrays with the scores of a chunk.

        outs: by `score_name` a list of (factor, array). Each array gets the scores times its factor.
        """
        by_cut = read_batch(self._scoring.places_file(chunk))
        for cut, readers in self._cuts:
            names = self._scoring.score_names(cut.scored_columns)
            by_reader = [reader.repeated(chunk) for reader in readers]
            places, size = find_places(*by_cut[2 * cut.number :][:2]), sum(len(arrays[0]) for arrays in by_reader)

            def fill(place: int, name: str, by_reader: Any = by_reader, places: Any = places, size: int = size) -> None:
                values, start = np.empty(size, by_reader[0][place].dtype), 0
                for arrays in by_reader:
                    scores = arrays[place]
                    own = values[start : start + len(scores)]
                    if isinstance(scores, Repeated):
                        np.take(scores.distinct, scores.numbers, out=own, mode="clip")
                    else:
                        own[:] = scores
                    start += len(scores)
                # Look up the scores once, in an array of the caller if one needs them unchanged.
                plain = [out for factor, out in outs[name] if factor == 1 and out.dtype == values.dtype]
                whole = plain[0] if plain else np.empty(len(places), values.dtype)
                spread.look_up(values, places, whole)
                for factor, out in outs[name]:
                    if out is not whole:
                        np.multiply(whole, factor, out=out, casting="same_kind")

            workers.run(fill, [(place, name) for place, name in enumerate(names) if name in outs])
