"""The verbs of a graph of tasks: a question is written once with them, and every graph can execute it.

A table is chunks: rows that follow each other. A shuffle brings rows that belong together into partitions. `LocalGraph`
executes the tasks in this process and shuffles in files; `gpupif.dask.dask_graph.Graph` executes them on Dask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

# The number of results that one task of a tree reduction combines.
FAN_IN = 8
# The future result of a task, or a plain value: an argument of other tasks.
Result = Any


class Graph(Protocol):
    """A graph of tasks, which use each other's results."""

    def take(self, table: Any) -> list[Result]:
        """Return the chunks of a table, in order."""

    def given(self, stage: str, value: Any) -> Result:
        """Return a value as a result; many tasks share it."""

    def one(self, stage: str, function: Callable[..., Any], *arguments: Any) -> Result:
        """Return the result of function(*arguments), which is small enough for memory."""

    def all(self, stage: str, results: Sequence[Result]) -> Result:
        """Return some results as one result: their list."""

    def each(self, stage: str, function: Callable[..., Any], *arguments: Any) -> list[Result]:
        """Return one result for each item of the arguments that are lists or ranges.

        Lists and ranges have the same length. All calls get the other arguments unchanged.
        """

    def tree(self, stage: str, function: Callable[..., Any], results: Sequence[Result]) -> Result:
        """Return one result of all: function(*results) combines `FAN_IN` neighbours at a time."""

    def partitions(self, chunks: int, plan: Result) -> int:
        """Return the number of partitions for the rows of `chunks` chunks. plan: a `Plan`, or an object with a job."""

    def shuffle(self, stage: str, messages: Sequence[Result], partitions: int) -> list[Result]:
        """Bring messages to their partitions; return the messages of each partition, for `unpack`.

        messages: list of results. The frame of messages that each chunk sends.
        """
