"""The local graph: its verbs, within the memory of a budget, give the results of Dask and of memory."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from operator import itemgetter

import numpy as np
import pytest

import gpupif
from gpupif.attack.arguments import Arguments
from gpupif.disclosure.risk_tasks import RiskTasks
from gpupif.encoding.encode import encode_column
from gpupif.engines.choose import requested_device
from gpupif.marginals.dask import ColumnsRead, add_found, count_partition, plan_table, send_combinations
from gpupif.marginals.set_counts import SetRequest
from gpupif.out_of_core.file_encoding import weigh_chunks
from gpupif.out_of_core.memory_budget import Budget
from gpupif.out_of_core.table_chunks import MemoryChunks
from gpupif.pipeline.chunk_encoding import count_values, encode_chunk
from gpupif.pipeline.fitting_rows import PartitionRows
from gpupif.pipeline.local_graph import LocalGraph
from gpupif.pipeline.shuffle_messages import Message, pack, row_count, rows_in, rows_to_messages, unpack
from gpupif.rows.distinct import distinct_rows
from gpupif.rows.keys import KeyLayout
from gpupif.rows.partition import Rows
from gpupif.rows.threads import Workers

CENSUS = gpupif.datasets.census(3000, columns=6)
BUDGET = Budget(chunk_rows=400, working=1 << 28)


@pytest.fixture
def graph(tmp_path):
    with LocalGraph(tmp_path / "graph", BUDGET) as made:
        yield made
    assert list(tmp_path.iterdir()) == []


def chunks_of(table, rows=400):
    return MemoryChunks([encode_column(name, table[name]) for name in table], rows)


def test_the_verbs_of_a_graph_compute_their_results(graph):
    numbers = graph.each("square", lambda number: number**2, range(20))
    assert graph.value(graph.tree("sum", lambda *some: sum(some), numbers)) == sum(number**2 for number in range(20))
    shared = graph.given("shared", 7)
    assert graph.value(graph.one("added", lambda a, b, c: a + b + c, shared, numbers[2], 1)) == 12
    assert graph.value(graph.all("all", numbers[:3])) == [0, 1, 4]


def test_a_result_is_computed_once_if_it_is_small(graph):
    calls = []
    numbers = graph.each("number", lambda number: calls.append(number) or number, range(5))
    twice = [graph.each("more", lambda number, more: number + more, numbers, more) for more in (1, 2)]
    assert graph.value(graph.all("all", [*twice[0], *twice[1]])) == [1, 2, 3, 4, 5, 2, 3, 4, 5, 6]
    assert sorted(calls) == list(range(5))


def test_the_error_of_the_first_chunk_is_raised(graph):
    def fail(number):
        raise ValueError(str(number))

    with pytest.raises(ValueError, match=r"^0$"):
        graph.value(graph.all("fail", graph.each("fail", fail, range(9))))


def test_messages_reach_their_partitions(graph):
    def send(source):
        words = np.arange(source, dtype=np.uint64)
        return pack([Message(to, source, 0, words) for to in range(3) if (source + to) % 2])

    arrived = graph.shuffle("out", graph.each("send", send, range(5)), 3)
    found = graph.value(graph.all("read", graph.each("unpack", unpack, arrived, range(3))))
    assert [[message.source for message in own] for own in found] == [[1, 3], [0, 2, 4], [1, 3]]
    assert [len(message.words) for message in found[1]] == [0, 2, 4]


@pytest.mark.parametrize("weights", [None, "income_band"])
def test_risk_on_a_local_graph_has_the_bits_of_memory(graph, weights, on_cpu):
    table = CENSUS if weights is None else CENSUS.assign(income_band=np.arange(len(CENSUS)) % 5 + 1)
    known, sensitive = list(table)[:3], [list(table)[3], list(table)[4]]
    expected = gpupif.risk(table, known, sensitive, weights=weights)

    def assess(table, request, population):
        chunks = chunks_of(table[request.read])
        used = len(request.columns)
        weighed = None if weights is None else weigh_chunks(chunks, used, used)
        tasks = RiskTasks.from_chunks(graph, request, request.score_request({}), list(table), chunks, weighed)
        return replace(graph.value(tasks.add_search()), seconds={})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.disclosure.risk.assess", assess)
        found = gpupif.risk(table, known, sensitive, weights=weights)
    assert {**found.to_dict(), "seconds": 0} == {**expected.to_dict(), "seconds": 0}


def test_combinations_on_a_local_graph_are_counted_right(graph, on_cpu):
    names = list(CENSUS)
    sets = (SetRequest([0, 2], [0]), SetRequest([1, 3, 4], [1, 3]))
    read = ColumnsRead(names, names, None, "category")
    device = requested_device()
    encoded = graph.each("encode", encode_chunk, read, device, graph.take(chunks_of(CENSUS)))
    local = graph.each("local", itemgetter(0), encoded)
    totals, weighing = count_values(graph, read, names, local)
    whole = graph.one("whole", plan_table, read, names, totals, *weighing)

    def make(columns, total):
        return lambda columns, counter, place: len(counter.combinations(place, ordered=False).counts)

    partitions = range(3)
    sent = graph.each("send", send_combinations, sets, 3, device, whole, range(len(local)), local)
    found = graph.each("count", count_partition, sets, device, make, whole, partitions, graph.shuffle("out", sent, 3))
    counts = graph.value(graph.tree("found", add_found, found))
    expected = [len(CENSUS.iloc[:, list(one.columns)].drop_duplicates()) for one in sets]
    assert [sum(own) for own in counts] == expected


def test_chunks_and_partitions_follow_the_memory(tmp_path):
    job = (
        Arguments.from_user(measures=["cig"])
        .make_request(list(CENSUS))
        .job(chunks_of(CENSUS).columns, 3000, "host", lambda *_: None, None)[0]
    )

    def partitions(working):
        with LocalGraph(tmp_path / "graph", Budget(400, working)) as graph:
            return graph.partitions(
                8, graph.given("plan", type("Plan", (), {"job": job, "rows": 10**8, "in_one_partition": False}))
            )

    assert partitions(1 << 28) > 2 * partitions(1 << 30) > 1


def message(keys, source, times, workers):
    (sent,) = rows_to_messages(Rows(keys, np.full(len(keys), times)), np.zeros(len(keys)), 1, source, 0, workers)
    (arrived,) = unpack(pack([sent]), 0)
    return arrived


def times_of(rows):
    return dict(zip(map(bytes, rows.keys), rows.counts.tolist(), strict=True))


@pytest.mark.parametrize("alike", [0.0, 0.95])
@pytest.mark.parametrize("limit", [50, 400, 10**6])
def test_partitions_stay_within_their_limit_of_rows(alike, limit):
    draw = np.random.default_rng(5)
    columns = [draw.integers(0, size, 6000).astype(np.uint16) for size in (40, 7, 300, 5)]
    for column in columns[:2]:
        column[: int(alike * 6000)] = 1
    layout = KeyLayout.from_cardinalities([40, 7, 300, 5])
    with Workers(1) as workers:
        keys = layout.pack(columns, workers)
        edges = range(0, 6000, 1000)
        messages = [
            tuple(message(keys[start : start + 1000], start, times, workers) for times in (1, 3)) for start in edges
        ]
        made = PartitionRows(messages, layout, [0, 1], [0, 1], 1, limit, workers)
        seen = {2: [], 3: []}
        for own in made.fitting([2, 3]):
            assert len(own.keys) <= max(limit, 300)
            assert (own.counts[1] == 3 * own.counts[0]).all()
            for scored_column in own.scored_columns:
                mask = layout.masks([0, 1, scored_column])
                seen[scored_column].append(Rows(own.keys & mask, own.counts[0]))
        for scored_column, several in seen.items():
            together = Rows(
                np.concatenate([rows.keys for rows in several]), np.concatenate([rows.counts for rows in several])
            )
            found = distinct_rows(together, 6000, workers).rows
            expected = distinct_rows(Rows(keys & layout.masks([0, 1, scored_column])), 6000, workers).rows
            assert times_of(found) == times_of(expected)
            # No class of the known columns is in two of them.
            known = [set(map(bytes, rows.keys & layout.masks([0, 1]))) for rows in several]
            assert sum(map(len, known)) == len(set.union(*known))
    assert sum(row_count(own[0]) for own in messages) == 6000
    assert len(rows_in([own[0] for own in messages], layout.words).keys) == 6000


@pytest.mark.slow
def test_dask_is_not_imported():
    modules = ("local_graph", "partition_scoring", "received_scores", "population_graph")
    imports = "".join(f"import gpupif.pipeline.{name}; " for name in modules)
    code = f"{imports} import sys; assert not {{'dask', 'distributed'}} & {{*sys.modules}}"
    subprocess.run([sys.executable, "-c", code], check=True)
