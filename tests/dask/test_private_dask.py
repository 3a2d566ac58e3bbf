"""Behaviour of the private modules of Dask that gpupif/dask/dask_graph.py uses: a Dask that changes it fails here."""

from __future__ import annotations

import operator

import dask
import numpy as np
import pytest

from gpupif.dask.dask_graph import Graph
from gpupif.pipeline.shuffle_messages import Message, pack, unpack

pytestmark = pytest.mark.dask

ADAPT = f"Dask {dask.__version__} changed what gpupif/dask/dask_graph.py builds on: adapt that, then this test."


def test_tasks_of_dask_name_their_dependencies():
    from dask._task_spec import Task, TaskRef

    task = Task("sum", operator.add, 1, TaskRef("one"))
    assert task.dependencies == {"one"}, ADAPT
    assert task({"one": 2}) == 3, ADAPT


def test_a_shuffle_of_dask_has_the_expected_parameters():
    from dask.dataframe.dask_expr._shuffle import Shuffle

    # Arguments without names.
    expected = ["frame", "partitioning_index", "npartitions_out", "ignore_index", "method", "options"]
    assert Shuffle._parameters[: len(expected)] == expected, ADAPT
    assert all(name in Shuffle._defaults for name in Shuffle._parameters[len(expected) :]), ADAPT


@pytest.mark.parametrize("method", ["tasks", "disk"])
def test_messages_arrive_in_the_partition_that_they_name(method, dask_in_one_thread):
    """The column of partitions is not hashed, and the number of partitions stays."""
    graph, parts = Graph(), range(3)
    sent = [
        graph.one("sent", pack, [Message(to, one, 0, np.full(one + 1, to, np.uint64)) for to in parts], number=one)
        for one in parts
    ]
    with dask.config.set({"dataframe.shuffle.method": method}):
        arrived = graph.shuffle("out", sent, len(sent))
    assert len(arrived) == len(parts), ADAPT
    for to, frame in enumerate(arrived):
        found = graph.value(graph.one("arrived", unpack, frame, to, number=to)).compute()
        assert [(one.to, one.source, one.words.tolist()) for one in found] == [
            (to, source, [to] * (source + 1)) for source in parts
        ], ADAPT


def test_peer_to_peer_shuffles_have_one_barrier():
    graph = Graph()
    sent = [graph.one("sent", pack, [], number=number) for number in range(3)]
    with dask.config.set({"dataframe.shuffle.method": "p2p"}):
        graph.shuffle("out", sent, len(sent))
    assert sum("barrier" in str(key) for key in graph.tasks) == 1, ADAPT


def test_a_worker_says_how_much_memory_it_has(threads):
    from gpupif.pipeline import one_partition_memory

    (limit,) = (worker["memory_limit"] for worker in threads.scheduler_info()["workers"].values())
    assert threads.submit(one_partition_memory.room, pure=False).result() == limit // 2, ADAPT
