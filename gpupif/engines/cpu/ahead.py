"""The kernels that take longest to compile, compiled by other processes while this one reads the table.

What is kept already (`gpupif.kernels.cache`) is not compiled again, and of two processes that need the same kernel one
compiles it and the other waits for that. So nothing depends on the others, on how far they come or whether they live.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np

from gpupif.kernels import blocks, spread, subsets
from gpupif.kernels.cache import CACHE_FOLDER, write_whole
from gpupif.kernels.cohorts import Values

from ...measures import deduplicate, resolve_measures, wanted_of
from ...utils.signals import callers
from ..cohort_sizes import CohortSizes
from ..kernel_inputs import kernel_axes
from ..shared_scores import padded

# A kernel, and arguments of some types, which hold nothing.
Example = tuple[Any, tuple[Any, ...]]
# Other processes that compile. Each takes what no other has begun, so that any number of them would do.
HELPERS = 2

# Run with the modules of the process that starts it, and not with those of a folder in which that runs. But for SciPy:
# Numba imports it where it is installed, and no kernel needs it.
_COMMAND = """
import sys
sys.path[:], sys.modules["scipy"] = {path!r}, None
from gpupif.engines.cpu import ahead
ahead.compile_needed({question!r}, {measures!r})
"""


@contextlib.contextmanager
def compiling_ahead(question: str, measures: Sequence[str]) -> Iterator[None]:
    """Have other processes compile what answers a question (see `NEEDED`) about these measures of cells.

    Where the first of it is kept they would be of no use, as where nothing can be, or on one core: there are none then.
    They end with the block.
    """
    kernel, arguments = NEEDED[question](measures)[0]
    if not CACHE_FOLDER or len(os.sched_getaffinity(0)) == 1 or kernel.is_kept_for(arguments):
        yield
        return
    command = [sys.executable, "-c", _COMMAND.format(path=sys.path, question=question, measures=list(measures))]
    none = subprocess.DEVNULL
    with contextlib.ExitStack() as helpers:
        for _ in range(HELPERS):
            # Where no further process may be started, this one does without.
            with contextlib.suppress(OSError):
                helper = helpers.enter_context(subprocess.Popen(command, stdin=none, stdout=none, stderr=none))
                helpers.callback(helper.terminate)
        yield


def compile_needed(question: str, measures: Sequence[str]) -> None:
    """Compile the kernels that answer a question, one after the other, except those that another process compiles.

    SIGTERM ends the process at once, except while it writes a file. An exception would be swallowed or would leave
    the compiler's lock taken, and whoever started this process waits for its end.
    """

    def end(number: int, frame: FrameType | None) -> None:
        if any(caller.f_code is write_whole.__code__ for caller in callers(frame)):
            ending.append(number)
        else:
            os._exit(128 + number)

    ending: list[int] = []
    signal.signal(signal.SIGTERM, end)
    for kernel, arguments in NEEDED[question](measures):
        kernel.compile_unless_claimed(arguments)
        if ending:
            break


def needed_for_scores(measures: Sequence[str]) -> list[Example]:
    """What scores cells with these measures, and brings the scores to the rows of a table."""
    rows, scores, integers = np.zeros(1, np.uint32), np.zeros((1, 1)), np.zeros(1, np.int64)
    nothing = padded([], "float64"), padded([], "int64")
    spreading = (scores, (integers, integers), np.ones(1), (rows, rows, rows), *nothing)
    return [*_scoring(measures), (spread.look_up, (rows, rows, rows)), (spread.spread, spreading)]


def needed_for_risk(measures: Sequence[str]) -> list[Example]:
    """What scores cells with these measures and finds the extremes of the scores, and the most homogeneous classes."""
    rows, scores, integers, sets = (
        np.zeros(1, np.uint32),
        np.zeros((1, 1)),
        np.zeros(1, np.int64),
        np.zeros((1, 1), int),
    )
    counting = (np.zeros((1, 1), np.uint16), rows, sets, integers, sets, integers, rows, rows)
    extremes = (spread.find_extremes, (scores, rows, scores))
    return [*_scoring(measures), extremes, (subsets.count_subsets, counting)]


# By the question that a command asks: the kernels that take longest to compile of those that answer it, in the order in
# which they are to be begun, and arguments of the right types for them.
NEEDED: Mapping[str, Callable[[Sequence[str]], list[Example]]] = {
    "scores": needed_for_scores,
    "risk": needed_for_risk,
}


def _scoring(measures: Sequence[str]) -> list[Example]:
    """What scores cells: of a table of fewer than 2^32 rows without sampling weights, for attackers whose knowledge is
    accurate, with scores of 64 bits. The first waits for the others.
    """
    different, _ = deduplicate(resolve_measures(measures))
    integers, floats, rows = np.zeros(1, np.int64), np.ones(1), np.zeros(1, np.uint32)
    keys, scores = np.zeros((1, 1), np.uint64), np.zeros((1, 1))
    values = Values(integers, floats, integers, integers, floats, integers, floats, integers, kernel_axes([None]))
    values, axes, wanted = blocks.only_needed(values, wanted_of(different))
    asked, memory = (wanted.measures, wanted.places, wanted.unit), blocks.memory_for(1, rows.dtype, wanted.kinds)
    _, scratch, ordered = memory
    starts, found, cells = scratch.starts, scratch.found, scratch.cells
    scored_columns = blocks.ScoredColumns(keys, values, axes, scores, integers, integers)
    distinct, sizes = (keys, rows, keys[0]), tuple(CohortSizes.of(1, 1, 1))
    out = blocks.Out(np.zeros((1, 1, 1)), np.zeros((1, 1), np.uint32))
    whole = (
        blocks.NO_VALUES,
        distinct,
        integers,
        (0, 1),
        integers,
        scored_columns,
        wanted,
        memory,
        sizes,
        integers,
        out,
    )
    statistics = (starts, 1, 0, values, axes, wanted, cells, ordered, found)
    measured = (1, 0, values, asked, wanted.orders, (starts, scratch.runs, found, cells), scratch.order, rows, scores)
    return [(blocks.score_blocks, whole), (blocks.find_statistics, statistics), (blocks.score_cells, measured)]
