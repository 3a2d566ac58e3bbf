"""The CUDA engine: cohorts are found on the device and scored by Numba CUDA kernels.

If the table fits, each device has all of it and scores a share of the scored columns. Otherwise the table stays on the
host, which finds distinct rows and cuts them into blocks that hold cohorts whole. The devices then score runs of
blocks. Against an attacker who knows any few columns (see `any_known`), the distinct rows must fit.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...errors import DeviceError, InputError
from ...gpu.cudf_frames import CudfFrames
from ...gpu.cupy_arrays import CupyLibrary, DeviceMemoryError
from ...gpu.open import frame_library, open_libraries
from ...rows.partition import OVERSIZE
from ...rows.threads import Workers
from ..any_known import needs_whole_engine, score_each_set
from ..attacker_scoring import score_job
from ..base import AnyKnownResult, AnyKnownShares, EngineResult, Job, KnownSubset, Progress
from ..block_scoring import BlockRun, collapse_job, score_in_blocks
from ..memory import (
    block_rows_that_fit,
    matching_bytes,
    row_bytes,
    score_bytes,
    scores_on,
    table_bytes,
    working_memory,
)
from .any_known import AnyKnownJob, ScoredColumnsTooManyError, score_distinct_rows, score_on_devices
from .counting import CudaCounting
from .grouping import Grouping, choose_grouping
from .scorer import BlockTooLargeError, CudaScorer
from .whole_table import score_cohorts, score_table
from .wildcards import KeyTooLargeError, score_matching

# Share of the free memory to use. The rest is for gaps of a pool, code and stacks of kernels, and other processes.
SHARE = 0.9
GIB = 2**30
# Blocks are smaller than the memory by this factor: oversized blocks, which may be scored uncut, fit too.
OVERSIZED_BLOCKS = 2 * OVERSIZE
# Bytes of a row of 10 columns of up to 100 values, in keys of one word, with CIG and CSF, and scores on the host.
TYPICAL_ROW_BYTES = 124
# The lock of each device. A task plans with all memory that is free there, so that only one may score there at a time.
_scoring: dict[int, threading.RLock] = {}


@dataclass(eq=False)
class CudaEngine:
    """The engine on GPUs.

    devices: the numbers of the visible devices to use.
    libraries: the library of each stream. Default: two streams for each device.
    share: the share of the devices' free memory to use. No result depends on it.
    grouping: the name of the method that finds equal rows (see `choose_grouping`). No result depends on it.
    device: the value of `Scores.device`.
    with_frames: whether tables are read and encoded on the device too, which needs cuDF.
    """

    devices: Sequence[int] = (0,)
    libraries: Sequence[CupyLibrary] | None = None
    share: float = SHARE
    grouping: str = "rotation"
    device: str = "cuda"
    with_frames: bool = True
    # A device finds distinct rows for each attacker in less time than their copy to the host takes.
    shares_distinct_rows = False

    @property
    def frames(self) -> CudfFrames | None:
        """The frame library of the first device, or None without cuDF."""
        return frame_library(self.devices[0]) if self.with_frames else None

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all scored columns of the job (see `Engine`), after whatever else scores on the same devices.

        Raise DeviceError if a GPU fails or is too small, InputError for too many patterns of missing values.
        """
        with self._reserved(), self._opened() as libraries:
            job, libraries = self._settled(job, libraries)
            return self._score_job(job, progress, libraries)

    def score_sets(
        self, job: Job, sets: Sequence[KnownSubset], progress: Progress, shares: AnyKnownShares | None = None
    ) -> AnyKnownResult:
        """Score against any attacker, as `score` does. Raises DeviceError if a GPU fails or is too small."""
        with self._reserved(), self._opened() as libraries:
            job, libraries = self._settled(job, libraries)
            if needs_whole_engine(job):
                score = partial(self._score_job, libraries=libraries)
                result = score_each_set(score, job, sets, progress, None, shares)
            else:
                onward = _ResumedProgress(progress)
                streams = _by_device(libraries)
                grouping = choose_grouping(self.grouping, job)
                asked = AnyKnownJob(job, sets, onward, streams, grouping, self.share, len(job.scored_columns))
                result = self._score_sets(asked, onward, libraries)
            worst, mean = (self._brought(scores, job, libraries[0]) for scores in (result.worst, result.mean))
            return replace(result, worst=worst, mean=mean)

    @contextlib.contextmanager
    def counting(self, workers: Workers) -> Iterator[CudaCounting]:
        """Open a maker of counters on a GPU (see `Engine`). Raise DeviceError if it fails or is too small."""
        with self._opened() as libraries:
            yield CudaCounting(libraries, workers, self.share, self.device)

    @contextlib.contextmanager
    def _reserved(self) -> Iterator[None]:
        """Hold the locks of all devices, taken in the order of their numbers: no two calls wait for each other."""
        with contextlib.ExitStack() as held:
            for device in sorted(set(self.devices)):
                held.enter_context(_scoring.setdefault(device, threading.RLock()))
            yield

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Sequence[CupyLibrary]]:
        """Open the libraries of all streams. Raise DeviceError if a GPU fails."""
        try:
            libraries = self.libraries or open_libraries(self.devices)
        except (RuntimeError, ImportError, OSError) as error:
            raise _failed(f"device {self.device!r}", error) from None
        try:
            yield libraries
        except libraries[0].failures as error:
            raise _failed(f"device {self.device!r}: {libraries[0].name}", error) from None
        finally:
            for library in libraries:
                library.trim()
                if self.libraries is None:
                    library.close()

    def _score_job(self, job: Job, progress: Progress, libraries: Sequence[CupyLibrary]) -> EngineResult:
        """Score a job after `_settled`, step by step, with the scores on the device that the job requires."""
        result = score_job(
            job,
            progress,
            partial(self._score_cohorts, libraries=libraries),
            partial(self._score_matching, libraries=libraries),
        )
        return replace(result, values=self._brought(result.values, job, libraries[0]))

    def _score_cohorts(self, job: Job, progress: Progress, libraries: Sequence[CupyLibrary]) -> EngineResult:
        """Score a job without wildcards in which every row counts: as a whole on the devices, or else in blocks."""
        onward, memory, grouping = (
            _ResumedProgress(progress),
            self._memory(libraries),
            choose_grouping(self.grouping, job),
        )
        streams = _by_device(libraries)
        rows = block_rows_that_fit(job, memory // max(map(len, streams)))
        there = scores_on(job, memory)
        ran_out = False
        if there is not None:
            try:
                score = partial(score_cohorts, grouping=grouping)
                return score_table(replace(job, scores_on=there), job.scored_columns, onward, streams, score)
            except DeviceMemoryError:
                ran_out, rows = True, min(rows, job.rows // 2)
                _release(libraries)
        result = self._score_blocks(job.on_host(), onward, libraries, rows, grouping)
        needed = table_bytes(job, there or ("device" if job.scores_on == "device" else "host"))
        return replace(
            result,
            values=self._brought(result.values, job, libraries[0]),
            through_host=f"{result.through_host}: {_why(needed, memory, ran_out)}",
        )

    def _memory(self, libraries: Sequence[CupyLibrary]) -> int:
        """Return the bytes of each device to use."""
        return int(self.share * min(library.free_bytes() for library in libraries))

    def _settled(self, job: Job, libraries: Sequence[CupyLibrary]) -> tuple[Job, Sequence[CupyLibrary]]:
        """Return the job with its codes complete and in the order of axes, and the libraries in the order of their
        use.
        """
        for codes in job.codes:
            libraries[0].settle(codes)
        with libraries[0].active():
            job = job.with_ordered_codes(libraries[0].bring)
        if job.scores_on == "device":
            libraries = _first_on(libraries[0].device_of(job.codes[0]), libraries, self.device)
        return job, libraries

    def _score_sets(
        self, asked: AnyKnownJob, progress: _ResumedProgress, libraries: Sequence[CupyLibrary]
    ) -> AnyKnownResult:
        """Score from tables on the devices if they fit, else from distinct rows that the host finds."""
        job = asked.job
        memory, needed = self._memory(libraries), table_bytes(job)
        fits = needed <= memory
        if fits:
            there = job.scores_on != "host" and needed + 2 * score_bytes(job) <= memory
            with contextlib.suppress(DeviceMemoryError, ScoredColumnsTooManyError):
                return score_on_devices(asked, there)
            _release(libraries)
        why = f"through the host, which found distinct rows: {_why(needed, memory, ran_out=fits)}"
        refused = None
        with Workers() as workers:
            table = collapse_job(job.on_host(), job.total, workers)
            while True:
                progress.restart()
                try:
                    return replace(score_distinct_rows(asked, table, workers), through_host=why)
                except ScoredColumnsTooManyError as error:
                    if refused is not None and error.scored_columns >= refused:
                        raise self._too_many(asked, error) from None
                    refused = error.scored_columns
                    asked = asked._replace(most=max(1, refused // 2))
                _release(libraries)

    def _too_many(self, asked: AnyKnownJob, error: ScoredColumnsTooManyError) -> DeviceError:
        what = f"the worst and mean scores of a single column, {error.rows:,} distinct rows"
        needed = asked.bytes_needed(error.rows, error.scored_columns)
        return self._ran_out(error.library, what, needed, "ask for fewer measures")

    def _score_matching(
        self, job: Job, scored_columns: Sequence[int], progress: Progress, libraries: Sequence[CupyLibrary]
    ) -> EngineResult:
        """Score columns that need matching of missing values, on devices that hold the whole table."""
        onward, memory = _ResumedProgress(progress), self._memory(libraries)
        # Scores of further scored columns are computed elsewhere first and need room as well.
        scores = score_bytes(job) * (1 if len(scored_columns) == len(job.scored_columns) else 2)
        room = memory - matching_bytes(job)
        either = ["device", "host"] if scores <= room else ["host"]
        places, needed = {"either": either}.get(job.scores_on, [job.scores_on]), matching_bytes(job)
        grouping = choose_grouping(self.grouping, job)
        for there in places:
            onward.restart()
            left = max(0, room - (scores if there == "device" else 0))
            score = partial(score_matching, memory=left, scored_columns=len(scored_columns), grouping=grouping)
            try:
                return score_table(replace(job, scores_on=there), scored_columns, onward, _by_device(libraries), score)
            except KeyTooLargeError as key:
                needed = matching_bytes(job) + key.nbytes
            except DeviceMemoryError:
                pass
            _release(libraries)
        smallest = min(libraries, key=lambda library: library.free_bytes())
        what = f"{job.rows:,} rows, which a GPU has to hold as a whole where missing values match every value"
        raise self._ran_out(smallest, what, needed, "score or know fewer columns")

    def _score_blocks(
        self, job: Job, progress: _ResumedProgress, libraries: Sequence[CupyLibrary], rows: int, grouping: Grouping
    ) -> EngineResult:
        refused = None
        while True:
            progress.restart()
            try:
                scorer = CudaScorer(libraries, grouping)
                with Workers(None, working_memory(job, len(job.scored_columns))) as workers:
                    block_rows = max(1, rows // OVERSIZED_BLOCKS)
                    result = score_in_blocks(BlockRun(job, progress, workers, block_rows, scorer))
                parts = "1 part" if scorer.parts == 1 else f"{scorer.parts:,} parts"
                return replace(result, through_host=f"through the host, in {parts}")
            except BlockTooLargeError as block:
                if refused is not None and block.rows >= refused:
                    needed = block.rows * row_bytes(job, multiplicities=True, whole=False, to_host=False)
                    what = f"{block.rows:,} rows that belong together"
                    raise self._ran_out(block.library, what, needed, "score fewer columns") from None
                refused, rows = block.rows, rows // 2

    def _ran_out(self, library: CupyLibrary, what: str, needed: int, instead: str) -> DeviceError:
        """Return an error for lack of memory. needed: bytes. instead: another remedy than to free memory."""
        return DeviceError(
            f"device {self.device!r}: {library.name} ran out of memory on {what}. They need about "
            f"{needed / GIB:.3f} GiB, {library.free_bytes() / GIB:.3f} GiB are free. Free some, {instead}, or use "
            "gpupif.config(device='cpu')."
        )

    def _brought(self, values: dict[str, Any], job: Job, library: CupyLibrary) -> dict[str, Any]:
        """Return the scores, copied to the device if the job requires that."""
        if job.scores_on != "device":
            return values
        try:
            with library.active():
                return {name: library.upload(array) for name, array in values.items()}
        except DeviceMemoryError:
            needed, free = sum(array.nbytes for array in values.values()) / 2**30, library.free_bytes() / 2**30
            raise DeviceError(
                f"device {self.device!r}: the scores of {job.rows:,} rows need {needed:.1f} GiB on {library.name}, "
                f"{free:.1f} GiB are free. Bring the table to the host (as pandas): its scores come there, and it is "
                "scored in parts."
            ) from None


class _ResumedProgress:
    """The progress of a run that may start again. It reports no cell twice."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._furthest = self._now = 0
        self._lock = threading.Lock()

    def restart(self) -> None:
        """Start to count from the first cell again."""
        self._now = 0

    def advance(self, cells: int) -> None:
        with self._lock:
            self._now += cells
            further = self._now - self._furthest
            if further > 0:
                self._furthest = self._now
                self._progress.advance(further)


def whole_tables(device: int) -> str:
    """Return a sentence about the largest table that a GPU can score as a whole now."""
    free = min(library.free_bytes() for library in open_libraries([device]))
    millions = int(SHARE * free) // TYPICAL_ROW_BYTES // 1_000_000
    return (
        f"{free / GIB:.1f} GiB free, for up to about {millions:,} million rows x 10 columns (CIG and CSF) as a whole; "
        "larger tables are scored in parts, through the host's memory"
    )


def _by_device(libraries: Sequence[CupyLibrary]) -> list[list[CupyLibrary]]:
    """Return the libraries of the streams of each device."""
    return [
        [library for library in libraries if library.device == device]
        for device in dict.fromkeys(library.device for library in libraries)
    ]


def _why(needed: int, memory: int, ran_out: bool) -> str:
    """Return the reason why a table is not scored as a whole on the device."""
    taken = f"as a whole it takes about {needed / GIB:.1f} GiB of the GPU's memory"
    return f"{taken}, which ran out" if ran_out else f"{taken}, {memory / GIB:.1f} GiB are planned with"


def _release(libraries: Sequence[CupyLibrary]) -> None:
    for library in libraries:
        library.release()


def _first_on(device: int | None, libraries: Sequence[CupyLibrary], name: str) -> list[CupyLibrary]:
    """Return the libraries, starting with the device that has the table: its scores are to be there too."""
    home = [library for library in libraries if library.device == device]
    if device is not None and not home:
        raise InputError(
            f"device {name!r}: the table lies on GPU {device}. Use gpupif.config(device='cuda:{device}') or 'cuda'."
        )
    return home + [library for library in libraries if library not in home]


def _failed(what: str, error: Exception) -> DeviceError:
    reason = " ".join(str(error).split())
    return DeviceError(f"{what} failed: {reason}. Try again, or use gpupif.config(device='cpu').")
