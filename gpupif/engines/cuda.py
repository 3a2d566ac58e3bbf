"""The CUDA engine: rows sorted into cohorts on the device, scored by Numba CUDA kernels.

A table that fits is there as a whole. Any other stays on the host, which finds distinct rows and cuts them into blocks
that hold every cohort whole (see `partition`), and the devices score one run of blocks after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from .base import EngineResult, Job, Progress
from .cuda_blocks import CudaScorer
from .cuda_library import Library, open_libraries
from .cuda_memory import OVERSIZED_BLOCKS, block_rows_that_fit, table_bytes
from .cuda_table import score_table
from .host_run import score_in_blocks, working_memory
from .run import Run
from .workers import Workers

# Of the device's free memory what is planned with: the rest is for sort buffers and what others take meanwhile.
SHARE = 0.8


class CudaEngine:
    """Scores on GPUs.

    devices: which of those that are visible. libraries: what it works with, one for each stream; default two streams
    for each of the devices.
    """

    device = "cuda"

    def __init__(self, devices: Sequence[int] = (0,), libraries: Sequence[Library] | None = None) -> None:
        self.devices = devices
        self.libraries = libraries

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all targets of the job (see `Engine`). Raises DeviceError where its memory is too small."""
        libraries = self.libraries or open_libraries(self.devices)
        free = min(library.free_bytes() for library in libraries)
        if len(self.devices) == 1 and table_bytes(job) <= SHARE * free:
            try:
                return score_table(job, progress, libraries[0])
            except MemoryError:
                libraries[0].release()
        scorer = CudaScorer(libraries)
        rows = block_rows_that_fit(job, int(SHARE * free) // len(libraries) * len(self.devices))
        with Workers(len(libraries), working_memory(job, len(job.targets))) as workers:
            return score_in_blocks(Run(job, progress, workers, max(1, rows // OVERSIZED_BLOCKS), scorer))
