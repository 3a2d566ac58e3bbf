"""Compilation of the slowest kernels in helper processes, while this process reads the table.

A compiled kernel is stored (`gpupif.kernels.cache`) and not compiled again. If two processes need a kernel, the first
compiles it and the second waits. No result therefore depends on the helpers, not even if they are killed.
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
from gpupif.kernels.cohorts import ScoredValues

from ...measures import deduplicate, resolve_measures, wanted_of
from ...utils.signals import callers
from ..cohort_sizes import CohortSizes
from ..kernel_inputs import kernel_axes
from ..shared_scores import padded

# A kernel, and example arguments of the types to compile it for.
Example = tuple[Any, tuple[Any, ...]]
# Number of processes that compile. Each compiles kernels that no other process has begun, so any number works.
HELPERS = 2

# The program of a helper. It has the module path of this process, not of the current folder. SciPy is hidden: Numba
# imports it if it is installed, which takes time, and no kernel needs it.
_COMMAND = """
import sys
sys.path[:], sys.modules["scipy"] = {path!r}, None
from gpupif.engines.cpu import ahead
ahead.compile_needed({question!r}, {measures!r})
"""


@contextlib.contextmanager
def compiling_ahead(question: str, measures: Sequence[str]) -> Iterator[None]:
    """Start processes that compile the kernels of a question (see `NEEDED`) for these measures, and end them at exit.

    No process is started if the first kernel is already stored, if kernels cannot be stored, or on one core.
    """
    kernel, arguments = NEEDED[question](measures)[0]
    if not CACHE_FOLDER or len(os.sched_getaffinity(0)) == 1 or kernel.is_kept_for(arguments):
        yield
        return
    command = [sys.executable, "-c", _COMMAND.format(path=sys.path, question=question, measures=list(measures))]
    none = subprocess.DEVNULL
    with contextlib.ExitStack() as helpers:
        for _ in range(HELPERS):
            # If no process can be started, this process compiles all kernels itself.
            with contextlib.suppress(OSError):
                helper = helpers.enter_context(subprocess.Popen(command, stdin=none, stdout=none, stderr=none))
                helpers.callback(helper.terminate)
        yield


def compile_needed(question: str, measures: Sequence[str]) -> None:
    """Compile the kernels that answer a question, one after the other, except those that another process compiles.

    SIGTERM ends the process at once, except while it writes a file. An exception would be swallowed, or would leave
    the compiler locked, and the parent process waits for the end of this process.
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
    """Return the kernels that score cells with these measures and copy the scores to the rows of a table."""
    rows, scores, integers = np.zeros(1, np.uint32), np.zeros((1, 1)), np.zeros(1, np.int64)
    nothing = padded([], "float64"), padded([], "int64")
    spreading = (scores, (integers, integers), np.ones(1), (rows, rows, rows), *nothing)
    return [*_scoring(measures), (spread.look_up, (rows, rows, rows)), (spread.spread, spreading)]


def needed_for_risk(measures: Sequence[str]) -> list[Example]:
    """Return the kernels that score cells, find extremes of scores, and count combinations of values."""
    rows, scores = np.zeros(1, np.uint32), np.zeros((1, 1))
    integers, sets = np.zeros(1, np.int64), np.zeros((1, 1), int)
    counting = (np.zeros((1, 1), np.uint16), rows, sets, integers, sets, integers, rows, rows)
    extremes = (spread.find_extremes, (scores, rows, scores))
    return [*_scoring(measures), extremes, (subsets.count_subsets, counting)]


# The slowest kernels to compile for each question, in the order of compilation, with example arguments.
NEEDED: Mapping[str, Callable[[Sequence[str]], list[Example]]] = {
    "scores": needed_for_scores,
    "risk": needed_for_risk,
}


def _scoring(measures: Sequence[str]) -> list[Example]:
    """Return the kernels that score cells, for the usual types; the first kernel needs the others.

    The types are for a table of fewer than 2^32 rows without sampling weights, attackers with accurate knowledge, and
    float64 scores.
    """
    distinct_measures, _ = deduplicate(resolve_measures(measures))
    integers, floats, rows = np.zeros(1, np.int64), np.ones(1), np.zeros(1, np.uint32)
    keys, scores = np.zeros((1, 1), np.uint64), np.zeros((1, 1))
    values = ScoredValues(integers, floats, integers, integers, floats, integers, floats, integers, kernel_axes([None]))
    values, axes, wanted = blocks.only_needed(values, wanted_of(distinct_measures))
    asked, memory = (wanted.measures, wanted.places, wanted.unit), blocks.memory_for(1, rows.dtype, wanted.kinds)
    _, scratch, ordered = memory
    starts, statistic_of, cells = scratch.starts, scratch.statistic_of, scratch.cells
    scored_columns = blocks.ScoredColumns(keys, values, axes, scores, integers, integers)
    distinct, sizes = (keys, rows, keys[0]), tuple(CohortSizes.empty(1, 1, 1))
    out = blocks.BlockScores(np.zeros((1, 1, 1)), np.zeros((1, 1), np.uint32))
    columns, asked_of_blocks = (integers, (0, 1), integers), (scored_columns, wanted, memory, sizes, integers, out)
    whole = (blocks.NO_VALUES, distinct, *columns, *asked_of_blocks)
    statistics = (starts, 1, 0, values, axes, wanted, cells, ordered, statistic_of)
    scored = (starts, scratch.cohort_of, statistic_of, cells)
    measured = (1, 0, values, asked, wanted.orders, scored, scratch.order, rows, scores)
    return [(blocks.score_blocks, whole), (blocks.find_statistics, statistics), (blocks.score_cells, measured)]
