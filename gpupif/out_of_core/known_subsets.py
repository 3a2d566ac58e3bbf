"""Attackers who know any few columns, in a run from files to files: the table's different rows scored in memory.

Each set of columns has cohorts of its own, so no cut of the table keeps all of them whole. The different rows have to
fit into memory; what is found of them is spread to all rows chunk by chunk, for some targets after the others.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..attack.worst_mean import FOLDS, fold_of
from ..engines.block_scoring import pack_keys, unpack_keys
from ..engines.known_subsets import score_sets
from ..engines.known_subsets_memory import AT_ONCE, AnyNeeds, share_out
from ..errors import InputError
from ..io.ipc_batches import BatchReader, BatchWriter, read_batch, write_batch
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import Rows, index_type
from ..rows.threads import Workers, default_threads
from ..utils.memory import shown
from .part_scoring import multiset, score_writer
from .passes import Means
from .shuffle import Cut

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..attack.known_subsets import KnownSubsets
    from ..engines.base import Job
    from ..engines.known_subsets import AnyResult
    from .chunks import TableChunks

DISTINCT = "distinct"


class AnyKnownScored:
    """A table's different rows, and their scores spread to all rows, on disk; its steps are kept in the store.

    job: without codes of rows. chunks: the columns that are used.
    """

    def __init__(self, means: Means, job: Job, chunks: TableChunks, subsets: KnownSubsets) -> None:
        self.means = means
        self.job = job
        self.chunks = chunks
        self.subsets = subsets
        self.layout = KeyLayout.of([len(counts) for counts in job.counts])
        self.groups: list[list[int]] = []
        self._needs = AnyNeeds.of(job, chunks.rows, subsets.sets)

    def file(self, *names: str) -> Path:
        """A file or folder of a step."""
        return self.means.store.part(*names)

    def score(self) -> list[list[int]]:
        """Find the different rows and score them, unless that is done; the targets that were scored together."""
        if self.groups:
            return self.groups
        job, (_, store, budget, report, timed) = self.job, self.means
        started = time.perf_counter()
        memory = budget.any_known_bytes(job, self._needs)
        found = store.once(DISTINCT, partial(self._collapse, memory))
        timed("collapse", started)
        started = time.perf_counter()
        threads = getattr(self.means.engine, "threads", None) or default_threads()
        share = partial(share_out, self._needs, found["rows"])
        most = share(len(job.targets), threads, memory).targets
        groups = store.once(
            "groups", lambda: [job.targets[first : first + most] for first in range(0, len(job.targets), most)]
        )
        left = [len(group) for number, group in enumerate(groups) if store.done(f"scored-{number}") is None]
        needed = self._needs.least(found["rows"], kept=max(left, default=0))
        if left and needed > memory:
            # The groups are those of the run that is gone on with.
            raise InputError(
                f"memory_limit: the run to be resumed had more, for {max(left)} columns of {found['rows']:,} different "
                f"rows at once; these take {shown(needed)}, and the limit leaves {shown(memory)}. Raise it, or start "
                "again without resume (--resume)."
            )
        scored = {target: self.subsets.scored[name] for target, name in zip(job.targets, self.names, strict=True)}
        report.stage("score", found["rows"] * sum(scored.values()), "cells")
        for number, group in enumerate(groups):
            step = f"scored-{number}"
            if store.done(step) is None:
                shares = share(len(group), threads, memory, kept=len(group))
                one = replace(job, targets=group, codes=self.codes, times=self.times, dtype="float64")
                result = score_sets(self.means.engine, one, self.subsets.sets, report, shares)
                store.mark(step, self._spread(result, group, number))
                pa.default_memory_pool().release_unused()
            else:
                report.advance(found["rows"] * sum(scored[target] for target in group))
        self.groups = groups
        # Until the riskiest cells are described.
        for name in ("codes", "times"):
            self.__dict__.pop(name, None)
        timed("score", started)
        return self.groups

    @property
    def names(self) -> list[Hashable]:
        """Of the targets."""
        return [self.chunks.columns[target].name for target in self.job.targets]

    def weights(self) -> dict[int, tuple[float, float]]:
        """By target the lowest and the mean weight over its attackers."""
        store = self.means.store
        each = [store.done(f"scored-{number}")["weights"] for number in range(len(self.groups))]
        found = {int(target): (low, mean) for weights in each for target, (low, mean) in weights.items()}
        return {target: found[target] for target in self.job.targets}

    def weights_of(self, target: int) -> npt.NDArray[np.float64]:
        """The weight of a target against each of its attackers."""
        (weights,) = read_batch(self._weights_file(target))
        return weights

    @cached_property
    def codes(self) -> list[npt.NDArray[Any]]:
        """Of the different rows, in order of first appearance."""
        keys = read_batch(self.file(DISTINCT, "keys.arrow"))
        return unpack_keys(np.stack(keys, axis=1), self.layout)

    @cached_property
    def times(self) -> npt.NDArray[np.int64]:
        """How often each of them occurs."""
        (counts,) = read_batch(self.file(DISTINCT, "counts.arrow"))
        return counts

    def _collapse(self, memory: int) -> dict[str, int]:
        """Write the different rows, how often each occurs, and which of them each row of the table is."""
        chunks, (_, store, _, report, _) = self.chunks, self.means
        limit = self._needs.most_rows(memory, chunks.rows)
        report.stage("collapse", chunks.rows, "rows")
        store.fresh(DISTINCT)
        kind = np.dtype(index_type(chunks.rows))
        table = Rows(np.empty((0, self.layout.words), np.uint64), np.empty(0, np.int64))
        numbers = {"number": pa.from_numpy_dtype(kind)}
        with Workers() as workers, BatchWriter(self._numbers, numbers) as writer:
            for keys, sizes in self._keys(int(AT_ONCE * limit), workers):
                before = len(table.keys)
                counts = np.concatenate([table.counts, np.ones(len(keys), np.int64)])
                found = distinct_rows(Rows(np.concatenate([table.keys, keys]), counts), chunks.rows, workers)
                table = Rows(found.rows.keys, found.rows.counts.astype(np.int64))
                if len(table.keys) > limit:
                    raise self._too_many(limit, memory)
                # Those that were there before come first, in their order, so a number never changes.
                for start, size in zip(np.cumsum([before, *sizes]).tolist(), sizes, strict=False):
                    writer.write([found.number[start : start + size].astype(kind)])
                    report.advance(size)
        write_batch(self.file(DISTINCT, "keys.arrow"), {str(word): keys for word, keys in enumerate(table.keys.T)})
        write_batch(self.file(DISTINCT, "counts.arrow"), {"times": table.counts})
        return {"rows": len(table.keys)}

    def _too_many(self, limit: int, memory: int) -> InputError:
        return InputError(
            f"memory_limit: the different rows of the table, of which each has a worst and a mean score over all "
            f"attackers who know any {self.subsets.known} columns, have to fit into memory: they are more than "
            f"{limit:,} of the {self.chunks.rows:,} rows, which take {shown(memory)}, all that the limit leaves. "
            "Raise it, score fewer columns (columns=, among=), bin those with many values, or name the known columns."
        )

    def _keys(self, most: int, workers: Workers) -> Iterator[tuple[npt.NDArray[np.uint64], list[int]]]:
        """Packed keys of all rows, so many chunks at once as have at most `most` rows, and their sizes."""
        waiting: list[npt.NDArray[np.uint64]] = []
        sizes: list[int] = []
        for number, size in enumerate(self.chunks.sizes):
            if waiting and sum(sizes) + size > most:
                yield np.concatenate(waiting), sizes
                waiting, sizes = [], []
            waiting.append(pack_keys(self.chunks.codes(number), self.layout, workers))
            sizes.append(size)
        yield np.concatenate(waiting), sizes

    def _spread(self, result: AnyResult, group: Sequence[int], number: int) -> dict[str, Any]:
        """Write what was found of some targets, chunk by chunk of the table; what is kept of it as a step."""
        store, sizes = self.means.store, list(self.chunks.sizes)
        for what, values in zip(FOLDS, (result.worst, result.mean), strict=True):
            folder = store.fresh(f"{what}-group-{number}")
            arrays = [array[place] for place in range(len(group)) for array in values.values()]
            out = Cut(folder, [sizes]).scores(0)
            with score_writer(out, fold_job(self.job, what), group) as writer, BatchReader(self._numbers) as numbers:
                for chunk in range(len(sizes)):
                    (rows,) = numbers.arrays(chunk)
                    writer.write([array[rows] for array in arrays])
            if "cig" in values:
                with Workers() as workers:
                    for target, gains in zip(group, values["cig"], strict=True):
                        found, times = multiset(gains, self.times, workers)
                        write_batch(gains_file(folder, target), {"gain": found, "times": times})
        for target, weights in zip(group, result.weights, strict=True):
            write_batch(self._weights_file(target), {"weight": weights})
        means = [(float(weights.min()), float(weights.mean())) for weights in result.weights]
        return {"weights": dict(zip(group, means, strict=True))}

    @property
    def _numbers(self) -> Path:
        return self.file(DISTINCT, "numbers.arrow")

    def _weights_file(self, target: int) -> Path:
        return self.file(DISTINCT, f"weights-{target}.arrow")


def gains_file(folder: Path, target: int) -> Path:
    """Where the CIG of a target that occur are kept."""
    return folder / f"gains-{target}.arrow"


def fold_job(job: Job, what: str) -> Job:
    """The job whose scores are the worst, or the mean."""
    return replace(job, measures=tuple(fold_of(measure, what) for measure in job.measures))
