"""The CUDA engine: rows sorted into cohorts on the device, scored by Numba CUDA kernels.

A table that fits is there as a whole. Any other stays on the host, which finds distinct rows and cuts them into blocks
that hold every cohort whole (see `partition`), and the devices score one run of blocks after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import DeviceError
from .base import EngineResult, Job, Progress
from .cuda_blocks import BlockTooLargeError, CudaScorer
from .cuda_library import Library, open_libraries
from .cuda_memory import OVERSIZED_BLOCKS, block_rows_that_fit, row_bytes, table_bytes
from .cuda_table import score_table
from .host_run import score_in_blocks, working_memory
from .run import Run
from .workers import Workers

# The rest of the free memory is for what others take meanwhile, and for gaps between arrays.
SHARE = 0.8


class CudaEngine:
    """Scores on GPUs.

    devices: which of those that are visible. libraries: what it works with, one for each stream; default two streams
    for each of the devices. share: of the devices' free memory what is planned with; no result depends on it.
    grouping: how cohorts are found, "rotation" or, to compare with, "cudf".
    """

    device = "cuda"

    def __init__(
        self,
        devices: Sequence[int] = (0,),
        libraries: Sequence[Library] | None = None,
        share: float = SHARE,
        grouping: str = "rotation",
    ) -> None:
        self.devices = devices
        self.libraries = libraries
        self.share = share
        self.grouping = grouping

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all targets of the job (see `Engine`). Raises DeviceError where a GPU fails or is too small."""
        libraries = self.libraries or open_libraries(self.devices)
        try:
            return self._score(job, progress, libraries)
        except libraries[0].failures as error:
            raise DeviceError(
                f"device 'cuda': {libraries[0].name} failed: {' '.join(str(error).split())}. Try again, or use "
                "device='cpu'."
            ) from None
        finally:
            for library in libraries:
                library.release()

    def _score(self, job: Job, progress: Progress, libraries: Sequence[Library]) -> EngineResult:
        free = min(library.free_bytes() for library in libraries)
        rows = block_rows_that_fit(job, int(self.share * free) // len(libraries) * len(self.devices))
        on_device = libraries[0].is_there(job.codes[0])
        if on_device or (len(self.devices) == 1 and table_bytes(job) <= self.share * free):
            try:
                return score_table(job, progress, libraries[0], self.grouping)
            except MemoryError:
                libraries[0].release()
                if on_device:
                    raise _table_too_large(job, libraries[0], free) from None
                rows = min(rows, job.rows // 2)
        refused = None
        while True:
            try:
                with Workers(None, working_memory(job, len(job.targets))) as workers:
                    run = Run(
                        job, progress, workers, max(1, rows // OVERSIZED_BLOCKS), CudaScorer(libraries, self.grouping)
                    )
                    return score_in_blocks(run)
            except BlockTooLargeError as block:
                if refused is not None and block.rows >= refused:
                    raise _too_small(job, block) from None
                refused, rows = block.rows, rows // 2


def _too_small(job: Job, block: BlockTooLargeError) -> DeviceError:
    needed, free = block.rows * row_bytes(job) / 2**30, block.library.free_bytes() / 2**30
    return DeviceError(
        f"device 'cuda': {block.library.name} ran out of memory on {block.rows:,} rows that belong together. They need "
        f"about {needed:.3f} GiB, {free:.3f} GiB are free. Free some, score fewer columns, or use device='cpu'."
    )


def _table_too_large(job: Job, library: Library, free: int) -> DeviceError:
    needed = table_bytes(job, results=True) / 2**30
    return DeviceError(
        f"device 'cuda': {library.name} ran out of memory: {job.rows:,} rows and their scores need about {needed:.1f} "
        f"GiB, {free / 2**30:.1f} GiB are free. Bring the table to the host (as pandas), and it is scored in parts."
    )
