"""Scoring from files to files if no cut of the table keeps cohorts whole.

An attacker who knows any few columns has cohorts for each set of columns; with wildcards cohorts overlap. Partitions
find the distinct rows of the table. All distinct rows are then loaded into memory and scored there, a group of scored
columns at a time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..engines.base import AnyKnownShares, Job, KnownSubset
from ..engines.memory import AnyKnownNeeds, collapsing_bytes, share_memory
from ..engines.partition_plan import Pass, WeightSums
from ..errors import InputError
from ..io.ipc_batches import BatchReader, BatchWriter, read_batch, write_batch
from ..pipeline.fitting_rows import FittingRows, Span
from ..pipeline.local_graph import LocalGraph
from ..pipeline.partition_routes import hash_routes
from ..pipeline.shuffle_messages import unpack
from ..pipeline.table_plan import Plan
from ..rows.partition import index_type
from ..rows.threads import Workers, default_threads
from ..utils.memory import shown
from .table_scoring import PartitionFacts, StoredCut, TableScoring


@dataclass(eq=False)
class OnePartitionScoring(TableScoring):
    """A table whose distinct rows are scored in memory; their scores are written chunk by chunk."""

    groups: list[list[int]] = field(init=False, default_factory=list)

    def score(self) -> WeightSums:
        """Score the table, unless that is done; return the weights."""
        context, store = self.context, self.context.store
        started = time.perf_counter()
        memory, limit = self._limits()
        at_once = self._rows_at_once(memory, limit)
        rows = self._all_rows
        partitions = store.once(self.step("planned"), lambda: 1 if rows <= at_once else -(-2 * rows // at_once))
        every = list(range(len(self.plan.layout.fields)))
        by = every if partitions > 1 else []
        self.routes = hash_routes(
            [Pass(list(self.plan.job.scored_columns), by)], partitions, len(self.table.sizes), self._senders
        )
        with self._graph() as graph:
            arrived = self._send_all(graph)
            distinct = store.once(
                self.step("distinct"), partial(self._find_distinct, graph, arrived, min(limit, at_once), limit, memory)
            )
            for messages in arrived:
                graph.drop(messages)
        context.timed("collapse", started)
        started = time.perf_counter()
        self.groups = store.once(self.step("groups"), partial(self._groups, distinct, memory))
        self._check_groups(distinct, memory)
        self._empty_folders()
        sets = [sum(map(self._sets_of, group)) for group in self.groups]
        context.report.stage("score", distinct * sum(sets), "cells")
        for number, group in enumerate(self.groups):
            if store.done(self.step(f"scored-{number}")) is not None:
                context.report.advance(distinct * sets[number])
            store.once(self.step(f"scored-{number}"), partial(self._score_group, group, number, memory))
            pa.default_memory_pool().release_unused()
        # Free the distinct rows; they are loaded again to describe the riskiest cells.
        self.__dict__.pop("_distinct", None)
        context.timed("score", started)
        return WeightSums.total(*(self._facts(number).sums for number in range(len(self.groups))))

    def distinct_rows(self) -> int:
        return max(self._facts(number).rows or 0 for number in range(len(self.groups)))

    def cuts(self) -> list[StoredCut]:
        return [StoredCut(0, [self._scores_file(number)], group) for number, group in enumerate(self.groups)]

    def weights_of(self, scored_column: int) -> npt.NDArray[np.float64]:
        """Return the weight of a scored column against each set of known columns."""
        (weights,) = read_batch(self._weights_file(scored_column))
        return weights

    def distinct_job(self) -> Job:
        """Return the job with the codes and counts of all distinct rows of the table."""
        _, rows, occurs, _ = self._by_table(self._distinct)
        codes = self.plan.layout.unpack(rows.keys)
        codes = codes if self.plan.population is None else self.plan.population.own(codes)
        weighted = self.plan.weights is not None
        return replace(self.plan.job, codes=codes, multiplicities=rows.counts, row_counts=occurs if weighted else None)

    @cached_property
    def _distinct(self) -> FittingRows:
        """All distinct rows of the table and its population."""
        words = self.plan.layout.words
        each = [read_batch(file) for file in sorted(self.file("rows").glob("rows-*.arrow"))]
        columns = [np.concatenate(several) for several in zip(*each, strict=True)]
        return FittingRows([], Span(), np.stack(columns[:words], axis=1), columns[words:], collapsed=True)

    @cached_property
    def _needs(self) -> AnyKnownNeeds | None:
        if self.subsets is None:
            return None
        return AnyKnownNeeds.from_job(replace(self.plan.job, distinct=True), self.plan.rows, self.subsets.sets)

    def _sets_of(self, scored_column: int) -> int:
        """Return the number of sets of known columns that a scored column is scored against."""
        return 1 if self.subsets is None else self.subsets.scored[self.subsets.names[scored_column]]

    def _limits(self) -> tuple[int, int]:
        """Return the bytes for scoring distinct rows, and the largest number of distinct rows."""
        job, budget, rows = self.plan.job, self.context.budget, self._all_rows
        limit = budget.partition_rows(job) if self.plan.has_wildcards else rows
        if self._needs is None:
            return 0, limit
        memory = budget.any_known_bytes(job, self._needs)
        return memory, min(limit, self._needs.most_rows(memory, rows))

    def _rows_at_once(self, memory: int, limit: int) -> int:
        """Return the number of rows that are collapsed at once."""
        index = np.dtype(index_type(self._all_rows + 1)).itemsize
        row = collapsing_bytes(self.plan.layout.words, index)
        return max(1, limit if self._needs is None else memory // row)

    def _find_distinct(self, graph: LocalGraph, arrived: Sequence[Any], at_once: int, limit: int, memory: int) -> int:
        """Write the distinct rows, and for each row that a chunk sent the number of its distinct row.

        Returns the number of distinct rows. Raises InputError for more than `limit`.
        """
        self.context.report.stage("collapse", len(arrived), "partitions")
        folder, distinct = self.context.store.fresh(self.step("rows")), 0
        cut = self.routes.cuts[0]
        kind = index_type(self._all_rows + 1)
        for partition, messages in enumerate(arrived):
            with Workers() as workers:
                own, rows = self._partition_rows(unpack(graph.value(messages), partition), cut, at_once, workers)
                if not rows.senders:
                    continue
                every = range(len(self.plan.layout.fields))
                rows = replace(rows, known=every, by=every, bins=rows.bins if cut.by else 1)
                numbers: dict[int, npt.NDArray[Any]] = {}
                for number, fit in enumerate(rows.fitting((), collapse=True)):
                    names = [*(f"word-{word}" for word in range(fit.keys.shape[1])), *map(str, range(len(fit.counts)))]
                    columns = dict(zip(names, [*fit.keys.T, *fit.counts], strict=True))
                    write_batch(folder / f"rows-{partition:05}-{number:05}.arrow", columns)
                    for chunk, (mine, place) in zip(own, rows.located(fit, len(own)), strict=True):
                        some = (place + distinct).astype(kind)
                        if mine is None:
                            numbers[chunk] = some
                        else:
                            numbers.setdefault(chunk, np.empty(len(mine), kind))[mine] = some
                    distinct += len(fit.keys)
                    if distinct > limit:
                        raise self._too_many(limit, memory)
            with BatchWriter(folder / f"numbers-{partition:05}.arrow", {"number": pa.from_numpy_dtype(kind)}) as writer:
                for chunk in range(len(self.table.sizes)):
                    writer.write([numbers.get(chunk, np.empty(0, kind))])
            self.context.report.advance()
        return distinct

    def _share(self, rows: int, memory: int, scored_columns: int, kept: int = 0) -> AnyKnownShares | None:
        if self._needs is None:
            return None
        threads = getattr(self.context.engine, "threads", None) or default_threads()
        return share_memory(self._needs, rows, scored_columns, threads, memory, kept)

    def _groups(self, rows: int, memory: int) -> list[list[int]]:
        """Return the groups of scored columns that are scored at once."""
        scored_columns = list(self.plan.job.scored_columns)
        shares = self._share(rows, memory, len(scored_columns))
        most = len(scored_columns) if shares is None else shares.scored_columns
        return [scored_columns[first : first + most] for first in range(0, len(scored_columns), most)]

    def _check_groups(self, rows: int, memory: int) -> None:
        """Raise InputError if the groups of a resumed run take more memory than there is now."""
        store, groups = self.context.store, enumerate(self.groups)
        left = [len(group) for number, group in groups if store.done(self.step(f"scored-{number}")) is None]
        if self._needs is None or not left:
            return
        needed = self._needs.least(rows, kept=max(left))
        if needed > memory:
            raise InputError(
                f"memory_limit: the run to be resumed had more, for {max(left)} columns of {rows:,} distinct rows at "
                f"once; these take {shown(needed)}, and the limit leaves {shown(memory)}. Raise it, or start again "
                "without resume (--resume)."
            )

    def _too_many(self, limit: int, memory: int) -> InputError:
        rows = self._all_rows
        if self.subsets is None:
            return InputError(
                "missing: 'wildcard' compares all distinct rows with each other, and these have to fit into memory: "
                f"they are more than {limit:,} of the {rows:,} rows, for which the memory limit has room. Raise it "
                "(memory_limit), score or know fewer columns, or use missing='category'."
            )
        return InputError(
            "memory_limit: the distinct rows of the table, of which each has a worst and a mean score over all "
            f"attackers who know any {self.subsets.known} columns, have to fit into memory: they are more than "
            f"{limit:,} of the {rows:,} rows, which take {shown(memory)}, all that the limit leaves. Raise it, score "
            "fewer columns (columns=, among=), bin those with many values, or name the known columns."
        )

    def _score_group(self, group: Sequence[int], number: int, memory: int) -> dict[str, Any]:
        """Score a group of scored columns and write the scores; return the facts that the step keeps."""

        def shares(plan: Plan, job: Job, sets: Sequence[KnownSubset], rows: int, more: int) -> AnyKnownShares | None:
            return self._share(rows + more, memory, len(group), len(group))

        fit = self._distinct._replace(scored_columns=list(group))
        values = self.context.store.fresh(self.step("values"), f"{number:05}")
        scored = self._score_fit(
            fit, self._numbers(), self._scores_file(number), values, "", progress=self.context.report, shares=shares
        )
        for scored_column, weights in zip(group, scored.weights or [], strict=False):
            write_batch(self._weights_file(scored_column), {"weight": weights})
        return PartitionFacts(scored.sums, scored.distinct_rows).to_json()

    def _numbers(self) -> Iterator[npt.NDArray[Any]]:
        """Yield for each chunk of the table the numbers of the distinct rows of the rows that it sent."""
        with contextlib.ExitStack() as opened:
            files = sorted(self.file("rows").glob("numbers-*.arrow"))
            readers = [opened.enter_context(BatchReader(file)) for file in files]
            for chunk in range(len(self.table.sizes)):
                yield np.concatenate([reader.arrays(chunk)[0] for reader in readers])

    def _weights_file(self, scored_column: int) -> Path:
        return self.file("partitions", f"weights-{scored_column}.arrow")
