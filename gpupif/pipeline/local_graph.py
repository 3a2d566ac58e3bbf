"""A graph of tasks that threads of this process execute, with shuffled rows in files: no table is too large.

Use it like the Dask graph: add tasks, then ask for a value. Tasks run when a requested value needs them::

    with open_temporary_table(path, choose, missing, report) as table:
        with LocalGraph(table.folder / "graph", table.budget) as graph:
            encoded = graph.each("encode", encode_chunk, request, device, graph.take(table.chunks))
            local = graph.each("local", itemgetter(0), encoded)
            totals, weighing = count_values(graph, request, names, local)
            planned = graph.one("plan", make_plan, request, names, totals, *weighing)
            count = graph.partitions(len(local), planned)
            ...
            arrived = graph.shuffle("out", graph.each("send", send, planned, route, chunks, rows), count)
            found = graph.value(graph.tree("findings", combine, graph.each("find", find, planned, arrived)))

Differences from the Dask graph:

* `take` gets a table that was encoded before, so each value is numbered once. Its chunks are `CodedChunk`s, which
  `encode_chunk` accepts like frames. All columns of the table are known from the start.
* Results of `one` and `tree` stay in memory. A result of `each` is computed by the task that needs it. It stays in
  memory only if several tasks need it and it is small. A large result that must not be computed twice has to be sent
  through `shuffle`, which keeps messages in files.
* The memory limit decides the number of partitions, not the number of chunks: see `partitions`. A task asks
  `fitting_rows` for the rows of its partition. They come within the memory of the task, cut finer if need be.
* `task_resources` tells a task which threads and how much memory it may use.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import pyarrow as pa

from ..engines.base import Engine, Job
from ..io.checkpoints import Store
from ..io.file_errors import damaged, disk_errors
from ..rows.threads import Workers, default_threads
from ..utils.arrays import read_only
from ..utils.private_folder import fresh_folder, open_private, remove
from .chunk_encoding import CodedChunk
from .shuffle_messages import Message, messages_in
from .task_graph import FAN_IN, Result
from .task_resources import TaskResources, within

if TYPE_CHECKING:
    import pandas as pd

# Most tasks that run at once; each has its share of the memory.
MOST_TASKS = 4
# The share of the memory for results of `each` that several tasks use.
KEPT_SHARE = 0.05
# The words before the words of a message in a file: its source, its cut, and the number of its words.
HEAD_WORDS = 3
_UNKNOWN: Any = object()


class Memory(Protocol):
    """The memory that a graph may use."""

    @property
    def working(self) -> int:
        """The bytes for all tasks."""

    def partition_rows(self, job: Job) -> int:
        """Return the number of rows of a partition that can be scored at once."""

    def planned_rows(self, limit: int, rows: int, columns: int) -> int:
        """Return the number of rows to plan a partition with.

        limit: int. The number of rows that can be scored at once.
        rows, columns: int. The size of the table.
        """


class LocalGraph:
    """The graph that runs tasks in this process; a context manager, which deletes the files. See the module.

    folder: Path. The private folder for shuffled rows; the graph makes it.
    memory: Memory. The memory that the graph may use, such as a `Budget`.
    done: function called with the name of the stage when a chunk was sent or a partition was computed.
    store: Store. The checkpoint of a run: shuffles that it keeps are not done again after a kill. Default: none.
    engine: Engine. The engine that tasks score with on GPUs; see `TaskResources`.
    """

    def __init__(
        self,
        folder: Path,
        memory: Memory,
        done: Callable[[str], None] = lambda stage: None,
        store: Store | None = None,
        engine: Engine | None = None,
    ) -> None:
        threads = default_threads()
        self._at_once = min(threads, MOST_TASKS)
        self._folder = fresh_folder(folder)
        self._memory = memory
        self._store = store
        self._done = done
        self._kept = _Kept(int(KEPT_SHARE * memory.working))
        self._workers = Workers(self._at_once)
        share = TaskResources(-(-threads // self._at_once), memory.working // self._at_once, self._rows_at_once, engine)
        # Resources of one task among several, and of a task that runs alone.
        self._shared, self._alone = share, TaskResources(threads, memory.working, memory.partition_rows, engine)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.__exit__(*error)
        remove(self._folder)

    def take(self, table: Any) -> list[Result]:
        """Return the chunks of an encoded table, each a `CodedChunk` that is read when a task needs it.

        table: an object with the `sizes` of its chunks, the `columns` without codes of rows, and `codes` of a chunk.
        """

        def read(number: int) -> CodedChunk:
            return CodedChunk(table.columns, table.codes(number))

        return self.each("chunk", read, range(len(table.sizes)))

    def given(self, stage: str, value: Any) -> Result:
        """See `Graph`."""
        return value

    def one(self, stage: str, function: Callable[..., Any], *arguments: Any) -> Result:
        """See `Graph`."""
        return _Reduced(stage, function, arguments, lambda function, values: function(*values))

    def all(self, stage: str, results: Sequence[Result]) -> Result:
        """See `Graph`."""
        return _Reduced(stage, list, results, lambda function, values: function(values))

    def each(self, stage: str, function: Callable[..., Any], *arguments: Any) -> list[Result]:
        """See `Graph`."""
        (length,) = {len(one) for one in arguments if isinstance(one, list | range)}
        items = [one if isinstance(one, list | range) else repeat(one, length) for one in arguments]
        return [_Call(stage, function, own) for own in zip(*items, strict=True)]

    def tree(self, stage: str, function: Callable[..., Any], results: Sequence[Result]) -> Result:
        """See `Graph`."""
        return _Reduced(stage, function, results, _combined)

    def partitions(self, chunks: int, plan: Result) -> int:
        """Return the number of partitions for the memory limit.

        plan: result. An object with a job and a number of rows.
        """
        planned = self.value(plan)
        if planned.in_one_partition:
            # No cut keeps cohorts whole: one task gets all rows and all memory.
            return 1
        limit, rows = self._rows_at_once(planned.job), int(planned.rows)
        return max(1, -(-rows // self._memory.planned_rows(limit, rows, len(planned.job.counts))))

    def shuffle(self, stage: str, messages: Sequence[Result], partitions: int) -> list[Result]:
        """Bring messages to partitions, see `Graph`; the messages to each partition are one file."""
        folder = self._folder / stage if self._store is None else self._store.part(stage)
        shuffle = _Shuffle(stage, list(messages), folder, partitions)
        return [_Arrival(stage, shuffle, to, shuffle.file(to)) for to in range(partitions)]

    def drop(self, arrived: Result) -> None:
        """Delete the file with the messages of a partition, which no task needs any more."""
        arrived.file.unlink(missing_ok=True)

    def run(self, results: Sequence[Result]) -> None:
        """Run the shuffles and reductions that results need, but not the tasks of the results themselves."""
        for result in results:
            self._prepare(result)

    def value(self, result: Result) -> Any:
        """Run the tasks that a result needs, unless they have run; return the result."""
        self._prepare(result)
        return self._evaluate(result)

    def _rows_at_once(self, job: Job) -> int:
        """Return the number of distinct rows of a partition that one task may hold."""
        return max(1, self._memory.partition_rows(job) // self._at_once)

    def _prepare(self, result: Result) -> None:
        """Run the stages that a result needs, each after the stages that it needs."""
        waiting, seen = [result], set()
        order: list[Any] = []
        # Depth first, without recursion: long chains of stages would exceed Python's recursion limit.
        while waiting:
            node = waiting.pop()
            if isinstance(node, tuple):
                order.append(node[0])
            elif isinstance(node, _Node) and node not in seen and node.value is _UNKNOWN:
                seen.add(node)
                waiting.append((node,))
                waiting.extend(node.needs())
        for node in order:
            if isinstance(node, _Reduced):
                values = self._run_all(node.stage, node.results)
                with within(self._alone):
                    node.value = node.combine(node.function, values)
            elif isinstance(node, _Shuffle):
                send = partial(self._send, node)
                node.value = send() if self._store is None else self._store.once(node.stage, send)

    def _send(self, shuffle: _Shuffle) -> int:
        """Write all messages of a shuffle; return the number of chunks that sent them."""
        fresh_folder(shuffle.folder)
        with disk_errors(shuffle.folder), contextlib.ExitStack() as closing:
            files = [closing.enter_context(open_private(shuffle.file(to))) for to in range(shuffle.partitions)]
            lock = threading.Lock()

            def write(frame: pd.DataFrame) -> None:
                for message in messages_in(frame):
                    with lock:
                        head = np.array([message.source, message.cut, len(message.words)], np.uint64)
                        files[message.to].write(head.tobytes())
                        files[message.to].write(message.words)

            self._run_all(shuffle.stage, shuffle.messages, write)
        return len(shuffle.messages)

    def _run_all(
        self, stage: str, results: Sequence[Result], use: Callable[[Any], Any] = lambda value: value
    ) -> list[Any]:
        """Return use(value) for the values of results; several tasks run at once."""
        values: list[Any] = list(results)
        tasks = [place for place, result in enumerate(results) if isinstance(result, _Node)]
        resources = self._shared if len(tasks) > 1 else self._alone
        places = iter(tasks)

        def take(value: Any) -> None:
            values[next(places)] = value
            self._done(stage)

        def run(result: Result) -> Any:
            with within(resources):
                return use(self._evaluate(result))

        self._workers.run_in_turn(run, take, [(results[place],) for place in tasks])
        return values

    def _evaluate(self, result: Result) -> Any:
        if not isinstance(result, _Node):
            return result
        if result.value is not _UNKNOWN:
            return result.value
        if isinstance(result, _Arrival):
            return result.read()
        assert isinstance(result, _Call)
        value = result.function(*map(self._evaluate, result.arguments))
        if result.users > 1 and self._kept.has_room_for(value):
            result.value = value
        return value


@dataclass(eq=False)
class _Node:
    """The result of a task.

    value: the result, if it is known and kept.
    users: int. The number of tasks that take the result as an argument.
    """

    stage: str

    def __post_init__(self) -> None:
        self.value: Any = _UNKNOWN
        self.users = 0
        for node in self.needs():
            node.users += 1

    def needs(self) -> list[_Node]:
        """Return the results that this result is computed from."""
        raise NotImplementedError


@dataclass(eq=False)
class _Call(_Node):
    """The call of a function for one chunk or partition."""

    function: Callable[..., Any]
    arguments: Sequence[Any]

    def needs(self) -> list[_Node]:
        return [argument for argument in self.arguments if isinstance(argument, _Node)]


@dataclass(eq=False)
class _Reduced(_Node):
    """A result that is computed from several results and stays in memory.

    combine: function that gets `function` and the values of `results`, and returns the result.
    """

    function: Callable[..., Any]
    results: Sequence[Any]
    combine: Callable[[Callable[..., Any], list[Any]], Any]

    def needs(self) -> list[_Node]:
        return [result for result in self.results if isinstance(result, _Node)]


@dataclass(eq=False)
class _Shuffle(_Node):
    """Messages in files: one file for each partition, to which chunks append their messages."""

    messages: list[Any]
    folder: Path
    partitions: int

    def needs(self) -> list[_Node]:
        return [node for node in self.messages if isinstance(node, _Node)]

    def file(self, partition: int) -> Path:
        """Return the file of the messages to a partition."""
        return self.folder / f"{partition:05}.messages"


@dataclass(eq=False)
class _Arrival(_Node):
    """The messages that reached a partition."""

    shuffle: _Shuffle
    partition: int
    file: Path

    def needs(self) -> list[_Node]:
        return [self.shuffle]

    def read(self) -> list[Message]:
        """Return the messages, for `unpack`; raise OutputError if their file is damaged."""
        try:
            words = read_only(np.fromfile(self.file, np.uint64))
        except OSError as error:
            raise damaged(self.file) from error
        messages, start = [], 0
        while start + HEAD_WORDS <= len(words):
            source, cut, size = words[start : start + HEAD_WORDS].tolist()
            start += HEAD_WORDS
            messages.append(Message(self.partition, source, cut, words[start : start + size]))
            start += size
        if start != len(words):
            raise damaged(self.file)
        return messages


class _Kept:
    """The memory for results of `each` that several tasks use."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._lock = threading.Lock()

    def has_room_for(self, value: Any) -> bool:
        """Return whether a value may stay in memory, and count it if so."""
        size = _size_of(value)
        with self._lock:
            if size > self._room:
                return False
            self._room -= size
            return True


def _size_of(value: Any) -> int:
    """Return about how many bytes a result takes."""
    if isinstance(value, np.ndarray | pa.Array | pa.ChunkedArray | pa.Table):
        return int(value.nbytes)
    if isinstance(value, dict):
        return sum(_size_of(key) + _size_of(item) for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return 64 + sum(map(_size_of, value))
    if is_dataclass(value):
        return 64 + sum(_size_of(getattr(value, field.name)) for field in fields(value))
    if hasattr(value, "memory_usage"):
        return int(np.sum(value.memory_usage(deep=True)))
    return 64


def _combined(function: Callable[..., Any], values: list[Any]) -> Any:
    """Combine neighbours level by level, as the trees on Dask do: the results are equal to the last bit."""
    level = 0
    while len(values) > 1 or level == 0:
        values = [function(*values[start : start + FAN_IN]) for start in range(0, len(values), FAN_IN)]
        level += 1
    return values[0]
