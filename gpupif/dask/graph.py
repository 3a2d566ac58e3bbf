"""A graph of tasks for Dask, built stage by stage; it holds what tasks are called and do, never what they work on."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dask
from dask._task_spec import Task, TaskRef
from dask.dataframe import from_graph
from dask.dataframe.dask_expr._collection import new_collection
from dask.dataframe.dask_expr._shuffle import Shuffle
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from .parcels import META, TO

if TYPE_CHECKING:
    import dask.dataframe as dd

# What one task of a tree reduction takes in.
FAN_IN = 8

Key = Any


def ref(key: Key) -> TaskRef:
    """As an argument of a task: what the task with this key returns."""
    return TaskRef(key)


class Graph:
    """Tasks by key. token: what tells them from those of other graphs."""

    def __init__(self) -> None:
        self.token = uuid.uuid4().hex
        self.tasks: dict[Key, Any] = {}

    def copy(self) -> Graph:
        """A graph with these tasks, to which others come that have names of their own."""
        graph = Graph()
        graph.tasks.update(self.tasks)
        return graph

    def name(self, stage: str) -> str:
        """What the tasks of a stage are called: Dask shows them as `gpupif-<stage>`."""
        return f"gpupif-{stage}-{self.token}"

    def one(self, stage: str, function: Callable[..., Any], *arguments: Any, number: int = 0) -> Key:
        """A task; its key."""
        key = (self.name(stage), number)
        self.tasks[key] = Task(key, function, *arguments)
        return key

    def each(self, stage: str, function: Callable[..., Any], *many: Sequence[Any]) -> list[Key]:
        """A task for each tuple of arguments; their keys."""
        return [
            self.one(stage, function, *arguments, number=number)
            for number, arguments in enumerate(zip(*many, strict=True))
        ]

    def tree(self, stage: str, function: Callable[..., Any], keys: Sequence[Key]) -> Key:
        """One result of all, combined by neighbours: function(*results)."""
        level = 0
        while len(keys) > 1 or level == 0:
            groups = [keys[start : start + FAN_IN] for start in range(0, len(keys), FAN_IN)]
            keys = [
                self.one(f"{stage}-{level}", function, *map(ref, group), number=number)
                for number, group in enumerate(groups)
            ]
            level += 1
        return keys[0]

    def take(self, table: dd.DataFrame) -> list[Key]:
        """The tasks of a Dask frame; the keys of its partitions."""
        frame = table.optimize()
        self.tasks.update(frame.__dask_graph__())
        return list(frame.__dask_keys__())

    def shuffle(self, stage: str, keys: Sequence[Key]) -> list[Key]:
        """Frames of parcels brought to where they go, to as many partitions: by P2P where a cluster is at hand."""
        frame = from_graph(self.marked(stage), META, (None,) * (len(keys) + 1), list(keys), self.name(stage))
        return self.take(new_collection(Shuffle(frame.expr, TO, len(keys), False, shuffle_method(), None)))

    def frame(self, stage: str, keys: Sequence[Key], meta: Any, divisions: Sequence[Any]) -> dd.DataFrame:
        """The results of some tasks as a Dask frame."""
        return from_graph(self.marked(stage), meta, tuple(divisions), list(keys), self.name(stage))

    def value(self, key: Key) -> Delayed:
        """The result of a task, lazy."""
        layer = f"delayed-{key[0]}"
        return Delayed(key, HighLevelGraph.from_collections(layer, self.tasks, dependencies=()), layer=layer)

    def marked(self, stage: str) -> Marked:
        """The tasks so far, with a name that Dask need not make from their contents."""
        return Marked(self.tasks, self.name(stage))


class Marked(Mapping[Key, Any]):
    """Tasks that Dask tells from others by their name alone: it would read all data of a table in memory otherwise."""

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
        """See the class."""
        return type(self).__name__, self._name


def shuffle_method() -> str:
    """What Dask is configured to shuffle by; else P2P where a client of a cluster is at hand, or tasks."""
    configured = dask.config.get("dataframe.shuffle.method", None)
    if configured:
        return str(configured)
    try:
        from distributed import default_client

        default_client()
    except (ImportError, ValueError):
        return "tasks"
    return "p2p"
