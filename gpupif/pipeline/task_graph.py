"""The verbs of a graph of tasks: a question is asked of a table once, and any graph that has the verbs executes it.

A table is chunks: rows that follow each other. Rows that belong together are brought together in partitions.
`LocalGraph` executes the tasks in this process, with files; `gpupif.dask.dask_graph.Graph` on Dask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

# The number of results that one task of a tree reduction combines.
FAN_IN = 8
# The result of a task that need not have run: an argument of other tasks.
Result = Any


class Graph(Protocol):
    """Tasks, and the results that they have of each other."""

    def take(self, table: Any) -> list[Result]:
        """Return the chunks of a table, in order."""

    def given(self, stage: str, value: Any) -> Result:
        """Return a value as a result: many tasks share it."""

    def one(self, stage: str, function: Callable[..., Any], *arguments: Any) -> Result:
        """Return the result of function(*arguments), which is small enough for memory."""

    def all(self, stage: str, results: Sequence[Result]) -> Result:
        """Return the list of some results as one result."""

    def each(self, stage: str, function: Callable[..., Any], *arguments: Any) -> list[Result]:
        """Return the results of one call for each item of those arguments that are lists or ranges.

        Lists and ranges have the same length; all calls get the other arguments as they are.
        """

    def tree(self, stage: str, function: Callable[..., Any], results: Sequence[Result]) -> Result:
        """Return one result of all: neighbours are combined by function(*results), `FAN_IN` at a time."""

    def partitions(self, chunks: int, plan: Result) -> int:
        """Return how many partitions the rows of so many chunks are to be brought to; plan: a `Plan`, or has a job."""

    def shuffle(self, stage: str, messages: Sequence[Result], partitions: int) -> list[Result]:
        """Bring messages to their partitions, see `messages`; returns the messages of each partition, for `unpack`.

        messages: the frames of messages that each chunk sends.
        """
