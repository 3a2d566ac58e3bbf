"""The kernels that take longest to compile, compiled by other processes while this one reads the table.

What is kept already (`gpupif.kernels.cache`) is not compiled again, and of two processes that need the same kernel one
compiles it and the other waits for that. So nothing depends on the others, on how far they come or whether they live.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpupif.kernels import blocks, spread
from gpupif.kernels.cache import CACHE_FOLDER
from gpupif.kernels.cohorts import Values

from ...measures import deduplicate, resolve_measures, wanted_of
from ..cohort_sizes import CohortSizes
from ..kernel_inputs import kernel_axes
from ..shared_scores import padded

# A kernel, and arguments of some types.
Example = tuple[Any, tuple[Any, ...]]

# Run with the modules of the process that starts it, and not with those of a folder in which that runs. But for SciPy:
# Numba imports it where it is installed, and no kernel needs it.
_COMMAND = """
import sys
sys.path[:], sys.modules["scipy"] = {path!r}, None
from gpupif.engines.cpu import ahead
ahead.compile_half({asked})
"""


@contextlib.contextmanager
def compiling_ahead(measures: Sequence[str], extremes_only: bool = False) -> Iterator[None]:
    """Have two other processes compile what scores cells with these measures, where that is to be done.

    extremes_only: as in `Job`. On one core, or where nothing can be kept, they would be of no use, and there are none.
    They end with the block.
    """
    if not CACHE_FOLDER or len(os.sched_getaffinity(0)) == 1 or _all_kept(measures):
        yield
        return
    none = subprocess.DEVNULL
    with contextlib.ExitStack() as helpers:
        for half in (0, 1):
            asked = f"{list(measures)!r}, {extremes_only!r}, {half}"
            command = [sys.executable, "-c", _COMMAND.format(path=sys.path, asked=asked)]
            # Where no further process may be started, this one does without.
            with contextlib.suppress(OSError):
                helper = helpers.enter_context(subprocess.Popen(command, stdin=none, stdout=none, stderr=none))
                helpers.callback(helper.terminate)
        yield


def compile_half(measures: Sequence[str], extremes_only: bool, half: int) -> None:
    """Compile one half of what scores cells with these measures, in the order in which it is needed."""
    for kernel, arguments in halves(measures, extremes_only)[half]:
        kernel.compile_for(arguments)


def halves(measures: Sequence[str], extremes_only: bool) -> tuple[list[Example], list[Example]]:
    """Kernels that score cells with these measures, and arguments of the right types for them, which hold nothing.

    As for a table of fewer than 2^32 rows without sampling weights, attackers whose knowledge is accurate, and scores
    of 64 bits. `score_blocks` is one half; of the other it waits for `find_statistics` and `score_cells`.
    """
    different, _ = deduplicate(resolve_measures(measures))
    integers, floats, rows = np.zeros(1, np.int64), np.ones(1), np.zeros(1, np.uint32)
    keys, scores = np.zeros((1, 1), np.uint64), np.zeros((1, 1))
    values = Values(integers, floats, integers, integers, floats, integers, floats, integers, kernel_axes([None]))
    values, axes, wanted = blocks.only_needed(values, wanted_of(different))
    asked, memory = (wanted.measures, wanted.places, wanted.unit), blocks.memory_for(1, rows.dtype, wanted.kinds)
    _, scratch, ordered = memory
    starts, found, cells = scratch.starts, scratch.found, scratch.cells
    targets = blocks.Targets(keys, values, axes, scores, integers, integers)
    distinct, sizes = (keys, rows, keys[0]), tuple(CohortSizes.of(1, 1, 1))
    out = blocks.Out(np.zeros((1, 1, 1)), np.zeros((1, 1), np.uint32))
    whole = (distinct, integers, (0, 1), integers, targets, wanted, memory, sizes, integers, out)
    statistics = (starts, 1, 0, values, axes, wanted, cells, ordered, found)
    measured = (1, 0, values, asked, wanted.orders, (starts, scratch.runs, found, cells), scratch.order, rows, scores)
    nothing = padded([], "float64"), padded([], "int64")
    spreading = (scores, (integers, integers), floats, (rows, rows, rows), *nothing)
    others: list[Example] = [(spread.look_up, (rows, rows, rows)), (spread.spread, spreading)]
    if extremes_only:
        others = [(spread.find_extremes, (scores, rows, scores))]
    first: list[Example] = [(blocks.find_statistics, statistics), (blocks.score_cells, measured)]
    return [(blocks.score_blocks, whole)], first + others


def _all_kept(measures: Sequence[str]) -> bool:
    [(kernel, arguments)] = halves(measures, extremes_only=True)[0]
    return kernel.is_kept_for(arguments)  # type: ignore[no-any-return]
