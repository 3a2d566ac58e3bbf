"""The graph of tasks for Dask; see `gpupif.pipeline.task_graph` for its verbs.

It holds names and functions of tasks, never the data that they work on.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

import dask
from dask._task_spec import Task, TaskRef
from dask.dataframe import from_graph
from dask.dataframe.dask_expr._collection import new_collection
from dask.dataframe.dask_expr._shuffle import Shuffle
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from ..pipeline.shuffle_messages import META, TO
from ..pipeline.task_graph import FAN_IN, Result

if TYPE_CHECKING:
    import dask.dataframe as dd

Key = Any


class Graph:
    """Tasks by key. token: str. The end of all names, which separates this graph from other graphs."""

    def __init__(self) -> None:
        self.token = uuid.uuid4().hex
        self.tasks: dict[Key, Any] = {}

    def copy(self) -> Graph:
        """Return a graph with these tasks; tasks that are added to it get names with another token."""
        graph = Graph()
        graph.tasks.update(self.tasks)
        return graph

    def name(self, stage: str) -> str:
        """Return the name of the tasks of a stage; Dask shows them as `gpupif-<stage>`."""
        return f"gpupif-{stage}-{self.token}"

    def one(self, stage: str, function: Callable[..., Any], *arguments: Any, number: int = 0) -> Result:
        """Add a task; return its result."""
        key = (self.name(stage), number)
        self.tasks[key] = Task(key, function, *arguments)
        return TaskRef(key)

    def given(self, stage: str, value: Any) -> Result:
        """Add a task that returns a value; many tasks share its result, so a large value is sent once."""
        return self.one(stage, _itself, value)

    def all(self, stage: str, results: Sequence[Result]) -> Result:
        """Add a task that returns the list of these results."""
        return self.one(stage, _listed, *results)

    def each(self, stage: str, function: Callable[..., Any], *arguments: Any) -> list[Result]:
        """Add a task for each item of the lists or ranges among the arguments; all tasks get the other arguments."""
        assert len({len(one) for one in arguments if isinstance(one, list | range)}) == 1, stage
        items = [one if isinstance(one, list | range) else repeat(one) for one in arguments]
        return [self.one(stage, function, *own, number=number) for number, own in enumerate(zip(*items, strict=False))]

    def tree(self, stage: str, function: Callable[..., Any], results: Sequence[Result]) -> Result:
        """Return one result of all: function(*results) combines neighbours, level by level."""
        level = 0
        while len(results) > 1 or level == 0:
            groups = [results[start : start + FAN_IN] for start in range(0, len(results), FAN_IN)]
            results = [
                self.one(f"{stage}-{level}", function, *group, number=number) for number, group in enumerate(groups)
            ]
            level += 1
        return results[0]

    def take(self, table: dd.DataFrame) -> list[Result]:
        """Add the tasks of a Dask frame; return its partitions."""
        frame = table.optimize()
        self.tasks.update(frame.__dask_graph__())
        return [TaskRef(key) for key in frame.__dask_keys__()]

    def partitions(self, chunks: int, plan: Result) -> int:
        """Return as many partitions as there are chunks, so that each worker has its share."""
        return chunks

    def shuffle(self, stage: str, messages: Sequence[Result], partitions: int) -> list[Result]:
        """Bring messages to their partitions, by P2P if a client of a cluster exists."""
        frame = self.frame(stage, messages, META, (None,) * (len(messages) + 1))
        return self.take(new_collection(Shuffle(frame.expr, TO, partitions, False, shuffle_method(), None)))

    def frame(self, stage: str, partitions: Sequence[Result], meta: Any, divisions: Sequence[Any]) -> dd.DataFrame:
        """Return the results of some tasks as a Dask frame."""
        name = self.name(stage)
        return from_graph(Marked(self.tasks, name), meta, tuple(divisions), [one.key for one in partitions], name)

    def value(self, result: Result) -> Delayed:
        """Return the result of a task, lazy."""
        layer = f"delayed-{result.key[0]}"
        return Delayed(result.key, HighLevelGraph.from_collections(layer, self.tasks, dependencies=()), layer=layer)


def add_all(*numbers: int) -> int:
    """Return the sum of some numbers, as a task of a tree."""
    return sum(numbers)


def _itself(value: Any) -> Any:
    return value


def _listed(*results: Any) -> list[Any]:
    return list(results)


class Marked(Mapping[Key, Any]):
    """Tasks that Dask identifies by their name alone; else it would hash all data of a table in memory."""

    def __init__(self, tasks: dict[Key, Any], name: str) -> None:
        self._tasks = tasks
        self._name = name

    def __getitem__(self, key: Key) -> Any:
        return self._tasks[key]

    def __iter__(self) -> Any:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def __dask_tokenize__(self) -> Any:
        """Return the name, see the class."""
        return type(self).__name__, self._name


def shuffle_method() -> str:
    """Return the shuffle method that Dask is configured for; by default P2P with a client of a cluster, else tasks."""
    configured = dask.config.get("dataframe.shuffle.method", None)
    if configured:
        return str(configured)
    try:
        from distributed import default_client

        default_client()
    except (ImportError, ValueError):
        return "tasks"
    return "p2p"
