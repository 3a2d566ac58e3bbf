"""Attackers whose cohorts no cut of a table keeps whole, in a run from files to files.

An attacker who knows any few of the columns has cohorts for each set of them; where missing values match every value
cohorts overlap. The table's distinct rows are scored in memory, in one place; what is found of them is spread to all
rows chunk by chunk, for some scored columns after the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..attack.any_known import FOLDS, KnownSubsets, fold_of
from ..attack.weights import Units
from ..engines.attacker_scoring import score_attacker
from ..engines.base import AnyKnownResult, AnyKnownShares, Job
from ..engines.memory import AnyKnownNeeds, collapsing_bytes, share_memory
from ..engines.partition_plan import Pass, WeightSums, cohorts_stay_whole, part_measures
from ..errors import InputError
from ..io.ipc_batches import read_batch, write_batch
from ..rows.partition import index_type
from ..rows.threads import Workers, default_threads
from ..utils.memory import shown
from ..utils.private_folder import private_folder
from .chunks import Chunks
from .collapse import TooManyRowsError
from .distinct import DistinctTable
from .part_scoring import multiset, score_writer
from .passes import PartitionedRun, RunContext, TableRun
from .shuffle import Partitioned

# Distinct rows whose scores are counted at once.
COUNTED_AT_ONCE = 1 << 22


def runs_by_fold(
    context: RunContext,
    prefix: str,
    job: Job,
    chunks: Chunks,
    units: Units | None,
    subsets: KnownSubsets | None,
    asked: int | None = None,
    what: str = "",
) -> dict[str, PartitionedRun]:
    """The run that scores a table against one attacker, by fold: "", or those over subsets of columns."""
    if cohorts_stay_whole(job, subsets is not None):
        return {"": PartitionedRun(context, prefix, job, chunks, units, asked, what)}
    whole = OnePartRun(context, prefix, job, chunks, units, asked, what, subsets)
    return {fold: FoldRun(whole, fold) for fold in ([""] if subsets is None else FOLDS)}


@dataclass(eq=False)
class OnePartRun(TableRun):
    """A table's distinct rows scored, and their scores spread to all rows, on disk.

    subsets: those of columns that the attacker knows, None where it is the job's.
    """

    subsets: KnownSubsets | None = None
    groups: list[list[int]] = field(init=False, default_factory=list)
    distinct_rows: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.table = DistinctTable(
            self.context, self.step("distinct"), self.chunks, self.job.cardinalities, self.units, self.asked
        )
        asks = replace(self.job, distinct=True)
        self._needs = None if self.subsets is None else AnyKnownNeeds.of(asks, self.chunks.rows, self.subsets.sets)

    def score(self) -> list[list[int]]:
        """Find the distinct rows and score them, unless that is done; the scored columns that were scored together."""
        if self.groups:
            return self.groups
        (_, store, _, report, timed, *_) = self.context
        started = time.perf_counter()
        memory, limit = self._limits()
        try:
            rows = self.table.find(limit, self._rows_at_once(memory, limit), self.what)
        except TooManyRowsError:
            raise self._too_many(limit, memory) from None
        timed("collapse", started)
        started = time.perf_counter()
        groups = store.once(self.step("groups"), partial(self._groups, rows, memory))
        self._check_groups(groups, rows, memory)
        report.stage(
            f"score{self.what}",
            rows * sum(self._sets_of(scored_column) for scored_column in self.job.scored_columns),
            "cells",
        )
        for number, group in enumerate(groups):
            step = self.step(f"scored-{number}")
            if store.done(step) is None:
                store.mark(step, self._score_group(group, number, rows, memory))
                pa.default_memory_pool().release_unused()
            else:
                report.advance(rows * sum(self._sets_of(scored_column) for scored_column in group))
        self.groups = groups
        found = [int(store.done(self.step(f"scored-{number}"))["rows"]) for number in range(len(groups))]
        self.distinct_rows = max(found)
        # Until the riskiest cells are described.
        self.table.forget()
        timed("score", started)
        return self.groups

    def weights(self, fold: str) -> dict[int, float]:
        """By scored column the weight; over subsets the lowest of them for the worst, the mean for the mean."""
        store = self.context.store
        each = [store.done(self.step(f"scored-{number}"))["weights"][fold] for number in range(len(self.groups))]
        return {int(scored_column): weight for weights in each for scored_column, weight in weights.items()}

    def weights_of(self, scored_column: int) -> npt.NDArray[np.float64]:
        """The weight of a scored column against each of the subsets."""
        (weights,) = read_batch(self._weights_file(scored_column))
        return weights

    def values_folder(self, fold: str, number: int, scored_column: int, measure: str) -> Path:
        """Folder of the distinct scores of a scored column with their multiplicities, in one or several files."""
        return self.file(f"group-{number}{fold}", f"values-{scored_column}-{measure}")

    def fold_job(self, fold: str) -> Job:
        """The job whose scores are those of a fold."""
        if not fold:
            return self.job
        return replace(self.job, measures=tuple(fold_of(measure, fold) for measure in self.job.measures))

    def _sets_of(self, scored_column: int) -> int:
        """How many subsets a scored column is scored against."""
        return 1 if self.subsets is None else self.subsets.scored[self.subsets.names[scored_column]]

    def _limits(self) -> tuple[int, int]:
        """Bytes that scoring the distinct rows may take, and the largest number of them."""
        job, budget, rows = self.job, self.context.budget, self.chunks.rows
        limit = budget.part_rows(job) if job.wildcards else rows
        if self._needs is None:
            return 0, limit
        memory = budget.any_known_bytes(job, self._needs)
        return memory, min(limit, self._needs.most_rows(memory, rows))

    def _rows_at_once(self, memory: int, limit: int) -> int:
        """Among how many rows distinct ones are looked for."""
        index = np.dtype(index_type(self.chunks.rows + 1)).itemsize
        row = collapsing_bytes(self.table.layout.words, index)
        return limit if self._needs is None else max(1, memory // row)

    def _share(self, rows: int, memory: int, scored_columns: int, kept: int = 0) -> AnyKnownShares | None:
        if self._needs is None:
            return None
        threads = getattr(self.context.engine, "threads", None) or default_threads()
        return share_memory(self._needs, rows, scored_columns, threads, memory, kept)

    def _groups(self, rows: int, memory: int) -> list[list[int]]:
        """Scored columns that are scored at once."""
        scored_columns = self.job.scored_columns
        shares = self._share(rows, memory, len(scored_columns))
        most = len(scored_columns) if shares is None else shares.scored_columns
        return [list(scored_columns[first : first + most]) for first in range(0, len(scored_columns), most)]

    def _check_groups(self, groups: Sequence[Sequence[int]], rows: int, memory: int) -> None:
        """Raise InputError where groups, those of a run that is gone on with, take more than there is."""
        store = self.context.store
        left = [len(group) for number, group in enumerate(groups) if store.done(self.step(f"scored-{number}")) is None]
        if self._needs is None or not left:
            return
        needed = self._needs.least(rows, kept=max(left))
        if needed > memory:
            raise InputError(
                f"memory_limit: the run to be resumed had more, for {max(left)} columns of {rows:,} different rows at "
                f"once; these take {shown(needed)}, and the limit leaves {shown(memory)}. Raise it, or start again "
                "without resume (--resume)."
            )

    def _too_many(self, limit: int, memory: int) -> InputError:
        rows = self.chunks.rows
        if self.subsets is None:
            return InputError(
                "missing: 'wildcard' compares all different rows with each other, and these have to fit into memory: "
                f"they are more than {limit:,} of the {rows:,} rows, for which the memory limit has room. Raise it "
                "(memory_limit), score or know fewer columns, or use missing='category'."
            )
        return InputError(
            "memory_limit: the different rows of the table, of which each has a worst and a mean score over all "
            f"attackers who know any {self.subsets.known} columns, have to fit into memory: they are more than "
            f"{limit:,} of the {rows:,} rows, which take {shown(memory)}, all that the limit leaves. Raise it, score "
            "fewer columns (columns=, among=), bin those with many values, or name the known columns."
        )

    def _score_group(self, group: Sequence[int], number: int, rows: int, memory: int) -> dict[str, Any]:
        """Score some scored columns and write their scores; the facts that are kept as a step."""
        table, sets = self.table, None if self.subsets is None else self.subsets.sets
        shares = self._share(rows, memory, len(group), len(group))
        measures = part_measures(self.job) if sets is None else self.job.measures
        one = replace(
            self.job,
            scored_columns=list(group),
            codes=table.codes,
            times=table.times,
            row_counts=table.row_counts,
            measures=measures,
            dtype="float64",
            distinct=True,
        )
        result = score_attacker(self.context.engine, one, sets, self.context.report, shares)
        for fold, values in result.by_fold().items():
            folder = self.context.store.fresh(self.step(f"group-{number}{fold}"))
            self._spread(fold, values, group, folder)
            counted = self.context.counted(self.fold_job(fold)) if self.asked is None else ()
            with Workers() as workers:
                for measure in counted:
                    for scored_column, scores in zip(group, values[measure], strict=True):
                        self._write_values(self.values_folder(fold, number, scored_column, measure), scores, workers)
        weights = WeightSums.of(result, group, in_one_part=True).weights
        if isinstance(result, AnyKnownResult):
            for scored_column, of_sets in zip(group, result.weights, strict=True):
                write_batch(self._weights_file(scored_column), {"weight": of_sets})
        return {"weights": weights, "rows": result.distinct_rows}

    def _spread(self, fold: str, values: dict[str, Any], group: Sequence[int], folder: Path) -> None:
        """Write scores of distinct rows as those of all rows, chunk by chunk of the table."""
        arrays = [array[place] for place in range(len(group)) for array in values.values()]
        out = Partitioned(folder, [self.table.sizes]).scores(0)
        with (
            score_writer(out, self.fold_job(fold), group, arrays) as writer,
            self.table.numbers() as numbers,
            Workers() as workers,
        ):
            for rows in numbers:
                writer.write(workers.run(lambda array, rows=rows: array[rows], [(array,) for array in arrays]))

    def _write_values(self, folder: Path, scores: npt.NDArray[Any], workers: Workers) -> None:
        """Write which scores occur, and how often, a few rows at a time: all at once take too much."""
        private_folder(folder)
        for start in range(0, len(scores), COUNTED_AT_ONCE):
            some = slice(start, start + COUNTED_AT_ONCE)
            found, times = multiset(scores[some], self.table.occurs[some], workers)
            write_batch(folder / f"{start:012}.arrow", {"value": found, "times": times})

    def _weights_file(self, scored_column: int) -> Path:
        return self.table.file(f"weights-{scored_column}.arrow")


class FoldRun(PartitionedRun):
    """The scores of one fold, gathered as those of any other table: each pass is one part."""

    def __init__(self, whole: OnePartRun, fold: str) -> None:
        rest = (whole.chunks, whole.units, whole.asked)
        super().__init__(whole.context, f"{whole.prefix}{fold}-", whole.fold_job(fold), *rest)
        self.whole = whole
        self.fold = fold

    def score(self) -> WeightSums:
        """Score the table, unless that is done for the other fold."""
        whole, store = self.whole, self.context.store
        groups = whole.score()
        self.passes = [Pass(group, []) for group in groups]
        sizes = list(self.chunks.sizes[: self.asked])
        folders = [store.part(whole.step(f"group-{number}{self.fold}")) for number in range(len(groups))]
        self.cuts = [Partitioned(folder, [sizes]) for folder in folders]
        return WeightSums(weights={self.fold: whole.weights(self.fold)})

    def distinct_rows(self) -> int:
        """Number of distinct rows of the table."""
        return self.whole.distinct_rows

    def values(self, scored_column: int, measure: str) -> list[Path]:
        number = next(number for number, one in enumerate(self.passes) if scored_column in one.scored_columns)
        return sorted(self.whole.values_folder(self.fold, number, scored_column, measure).iterdir())
