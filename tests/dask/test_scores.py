"""Dask frames without a cluster: lazy, and the same bits as in memory for all partitions."""

from __future__ import annotations

import pickle
from itertools import pairwise

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.attack.arguments import Arguments
from gpupif.encoding.merge import ValueCounts
from gpupif.engines.choose import DeviceRequest
from gpupif.gpu.status import CudaStatus
from gpupif.measures import MEASURES
from gpupif.pipeline import chunk_encoding as chunk_tasks
from gpupif.pipeline import partition_routes as routes
from gpupif.pipeline import table_plan as plan
from gpupif.pipeline.task_resources import task_engine, task_workers, worker_device
from tests.helpers.dask_frames import COLUMNS, assert_same, cut, of_parts
from tests.helpers.tables import SHARED_FIXTURES, frame_of, jobs, tables

pytestmark = [pytest.mark.dask, pytest.mark.usefixtures("dask_in_one_thread")]

# Dask takes a tenth of a second for a graph of any size.
FEW = settings(SHARED_FIXTURES, max_examples=10)


@pytest.mark.slow
@given(job=jobs(), data=st.data())
@FEW
def test_any_partitioning_gives_the_bits_of_the_table_in_memory(job, data):
    table, arguments = job
    frame = frame_of(table)
    edges = data.draw(st.lists(st.integers(0, len(frame)), max_size=4))
    heavy = data.draw(st.sampled_from([0.0, 0.5, 10.0]))
    with pytest.MonkeyPatch.context() as patch:
        # At 0 every bin is cut as fine as possible, down to single scored columns.
        patch.setattr(routes, "HEAVY", heavy)
        scores = gpupif.score(cut(frame, edges), list(MEASURES), **arguments)
        with gpupif.config(device="cpu"):
            expected = gpupif.score(frame, list(MEASURES), **arguments)
        assert_same(scores, expected)
        assert dict(scores.weights) == expected.weights
        assert scores.rows == len(frame)
        assert dict(scores.priors) == dict(expected.priors)


@pytest.mark.slow
@given(table=tables(), dtype=st.sampled_from(["float64", "float32"]), edge=st.integers(0, 24))
@FEW
def test_scores_in_float32_have_the_bits_of_memory(table, dtype, edge):
    frame = frame_of(table)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame, ["wcig", "cohort_size"], dtype=dtype)
    assert_same(gpupif.score(cut(frame, [min(edge, len(frame))]), ["wcig", "cohort_size"], dtype=dtype), expected)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [12, 150])
def test_keys_of_many_words_have_the_bits_of_memory(columns):
    random = np.random.default_rng(columns)
    rows = random.integers(0, 200, (12, columns))[random.integers(0, 12, 60)]
    rows[::2, 3] = random.integers(0, 200, 30)
    frame = pd.DataFrame(rows, columns=[f"c{j}" for j in range(columns)])
    with gpupif.config(device="cpu"):
        assert_same(gpupif.score(cut(frame, [7, 7, 40])), gpupif.score(frame))


INDEXES = {
    "row numbers": (None, 3),
    "known divisions": (pd.Index(np.arange(300) * 2, name="id"), 4),
    "duplicates": (pd.Index(np.arange(300) // 30), 3),
    "dates": (pd.date_range("2001-01-01", periods=300, name="day"), 3),
    "one partition": (None, 1),
    "several levels": (pd.MultiIndex.from_product([range(30), list("abcdefghij")]), 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("index", INDEXES)
def test_index_order_and_divisions_are_kept(index):
    labels, partitions = INDEXES[index]
    frame = gpupif.datasets.census(300)
    frame = frame if labels is None else frame.set_index(labels)
    frame.columns.name = "variable"
    lazy = dd.from_pandas(frame, npartitions=partitions) if partitions else cut(frame, [100])
    scores = gpupif.score(lazy)
    with gpupif.config(device="cpu"):
        assert_same(scores, gpupif.score(frame))
    assert scores.cig.divisions == lazy.divisions
    assert scores.cig.npartitions == lazy.npartitions
    sizes = [len(lazy.partitions[number]) for number in range(lazy.npartitions)]
    assert [len(scores.cig.partitions[number]) for number in range(lazy.npartitions)] == sizes


def test_more_partitions_than_rows_give_the_same_scores():
    frame = gpupif.datasets.pif_example()
    with gpupif.config(device="cpu"):
        assert_same(gpupif.score(cut(frame, [0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 7])), gpupif.score(frame))


@pytest.mark.slow
@pytest.mark.parametrize(("partitions", "method"), [(45, "tasks"), (3, "disk")])
def test_every_shuffle_method_without_a_cluster_gives_the_same_scores(partitions, method):
    """Dask shuffles by tasks (in stages from 33 partitions on) or by disk."""
    frame = gpupif.datasets.census(400)
    with dask.config.set({"dataframe.shuffle.method": method}), gpupif.config(device="cpu"):
        assert_same(gpupif.score(dd.from_pandas(frame, npartitions=partitions)), gpupif.score(frame))


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_any_type_are_scored_as_in_memory(kind):
    frame = pd.DataFrame({"x": COLUMNS[kind], "y": [0, 0, 1, 1, 1, 0]})
    with gpupif.config(device="cpu"):
        assert_same(gpupif.score(cut(frame, [2, 4])), gpupif.score(frame))


def test_categories_may_differ_by_partition_or_be_unknown():
    frame = pd.DataFrame({"x": list("abcabd"), "y": [0, 0, 1, 1, 1, 0]})
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame)
    parts = [frame.iloc[:3].astype({"x": "category"}), frame.iloc[3:].astype({"x": "category"})]
    assert_same(gpupif.score(of_parts(parts)), expected)
    assert_same(gpupif.score(cut(frame, [3]).astype({"x": "category"})), expected)


def test_types_may_differ_by_partition():
    def lazy(*parts):
        frames = [pd.DataFrame({"x": pd.Series(part, dtype=object), "y": range(len(part))}) for part in parts]
        return of_parts(frames), pd.concat(frames)

    for parts in ([1, 2], [2.0, 0.5]), ([0.5, 3.0], [3, 1]), ([None, None], ["a", None]):
        frame, whole = lazy(*parts)
        with gpupif.config(device="cpu"):
            assert_same(gpupif.score(frame), gpupif.score(whole))
    # In memory these are distinct values; a number that became True, text or a rounded float would not be.
    for parts in ([True, False], [5, 0]), (["5"], [5]), ([b"a"], ["a"]), ([2**60 + 1], [0.5]):
        frame, _ = lazy(*parts)
        with pytest.raises(gpupif.errors.ColumnTypeError, match="'x'"):
            gpupif.score(frame).cig.compute()


def test_scores_are_computed_only_when_dask_is_asked():
    def fail(number):
        raise AssertionError("computed")

    lazy = dd.from_map(fail, range(3), meta=gpupif.datasets.census(1).iloc[:0])
    scores = gpupif.score(lazy, list(MEASURES))
    assert "lazy" in repr(scores)
    assert {"cig", "wcig", "persist"} <= set(dir(scores))
    for use in (scores.frame, scores.rig, lambda: scores.worst.cig):
        use()
    with pytest.raises(AssertionError, match="computed"):
        scores.cig.compute()


def make(number, rows):
    return gpupif.datasets.census(rows, seed=number)


def test_the_graph_holds_no_data():
    """A client sends a scheduler equally large graphs for 20,000 rows and for 20 rows."""
    sizes = []
    for rows in (20, 20_000):
        lazy = dd.from_map(make, range(4), rows=rows, meta=make(0, 1).iloc[:0])
        sizes.append(len(pickle.dumps(gpupif.score(lazy).cig.__dask_graph__())))
    assert abs(sizes[0] - sizes[1]) < 200
    assert sizes[1] < 200_000


def test_scoring_takes_two_shuffles_for_any_number_of_columns():
    for columns in (2, 60):
        with dask.config.set({"dataframe.shuffle.method": "p2p"}):
            lazy = dd.from_map(make, range(4), rows=10, meta=make(0, 1).iloc[:0])
            lazy = lazy if columns == 2 else dd.from_pandas(gpupif.datasets.census(40, columns=60), npartitions=4)
            graph = gpupif.score(lazy, list(MEASURES)).frame().__dask_graph__()
        assert sum("barrier" in str(key) for key in graph) == 2


# Dask 2026.8 uses what pandas 3.1 is going to drop.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_scores_can_be_written_by_frame_or_by_measure(tmp_path):
    frame = gpupif.datasets.census(500)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame)
    scores = gpupif.score(dd.from_pandas(frame, npartitions=3))
    scores.to_parquet(tmp_path / "all")
    written = pd.read_parquet(tmp_path / "all")
    assert list(written) == [f"{measure}_{name}" for measure in ("cig", "csf") for name in frame]
    assert written["cig_age"].tolist() == expected.cig["age"].tolist()
    scores.cig.to_parquet(tmp_path / "cig")
    pd.testing.assert_frame_equal(dd.read_parquet(tmp_path / "cig").compute(), expected.cig, check_index_type=False)
    pd.testing.assert_frame_equal(scores.csf.repartition(npartitions=2).compute(), expected.csf)
    pd.testing.assert_frame_equal(scores.csf.repartition(npartitions=7).compute(), expected.csf)
    joined = dd.from_pandas(frame, npartitions=3).assign(risk=scores.cig["age"]).compute()
    assert joined["risk"].tolist() == expected.cig["age"].tolist()
    kept = scores.persist()
    assert_same(kept, expected)
    assert all(len(kept.cig.partitions[number].__dask_graph__()) < 10 for number in range(3))
    assert dict(kept.weights) == expected.weights
    pd.testing.assert_series_equal(kept.rig().compute(), expected.rig(), check_exact=True)
    pd.testing.assert_series_equal(kept.fig(), expected.fig(), check_exact=True)


def test_scores_are_computed_once_for_all_frames():
    calls = []

    def count(number):
        calls.append(number)
        return gpupif.datasets.census(50, seed=number)

    scores = gpupif.score(dd.from_map(count, range(3), meta=make(0, 1).iloc[:0]), list(MEASURES))
    dask.compute(*(scores[measure] for measure in MEASURES))
    assert sorted(calls) == [0, 1, 2]


class TestBadInput:
    """Bad input raises the error of the table in memory: at once if names show it, else when Dask computes."""

    frame = pd.DataFrame({"a": [1, 2, 2, 3], "b": ["x", None, "y", None]})

    @pytest.mark.parametrize(
        ("arguments", "at_once"),
        [
            ({"columns": ["c"]}, True),
            ({"known": ["a", "c"]}, True),
            ({"measures": "gig"}, True),
            ({"dtype": "int8"}, True),
            ({"missing": "no"}, True),
            ({"priors": {"c": {1: 1.0}}}, True),
            ({"missing": "error"}, False),
            ({"priors": {"a": {1: 0.5, 2: 0.5}}}, False),
            ({"priors": {"a": {1: 0.5, 2: 0.2, 3: 0.2}}}, False),
            ({"accuracies": {"a": 1.5}}, False),
        ],
    )
    def test_bad_arguments_are_refused_as_in_memory(self, arguments, at_once):
        with pytest.raises(gpupif.GpupifError) as expected:
            gpupif.score(self.frame, **arguments)
        lazy = cut(self.frame, [1, 3])
        if at_once:
            with pytest.raises(type(expected.value)) as found:
                gpupif.score(lazy, **arguments)
        else:
            scores = gpupif.score(lazy, **arguments)
            with pytest.raises(type(expected.value)) as found:
                scores.cig.compute()
        assert str(found.value) == str(expected.value)

    def test_bad_tables_are_refused(self):
        with pytest.raises(gpupif.InputError, match=r"table: expected at least one row, got none \(columns: a, b\)"):
            gpupif.score(cut(self.frame.iloc[:0], [0])).cig.compute()
        with pytest.raises(gpupif.InputError, match="at least one column"):
            gpupif.score(cut(self.frame[[]], [1]))
        with pytest.raises(gpupif.InputError, match="expected a Dask DataFrame, got a Dask Series"):
            gpupif.score(cut(self.frame, [1])["a"])
        lists = pd.DataFrame({"a": [1, 2], "b": [[1], [2]]})
        with pytest.raises(gpupif.errors.ColumnTypeError, match="'b'"):
            gpupif.score(cut(lists, [1])).cig.compute()

    def test_a_measure_that_was_not_scored_is_refused(self):
        scores = gpupif.score(cut(self.frame, [1]), "csf")
        with pytest.raises(gpupif.InputError, match="'cig' was not scored"):
            _ = scores.cig

    def test_cuda_is_refused_if_no_gpu_is_there(self, monkeypatch):
        monkeypatch.setattr("gpupif.gpu.status.cuda_status", lambda device: CudaStatus(reason="there is no GPU"))
        with (
            pytest.raises(gpupif.errors.DeviceError, match="device 'cuda' cannot be used here: there is no GPU"),
            gpupif.config(device="cuda"),
        ):
            gpupif.score(cut(self.frame, [1])).cig.compute()

    def test_errors_can_be_pickled(self):
        for error in (
            gpupif.errors.ColumnNotFoundError("columns", ["x"], ["y"]),
            gpupif.errors.ColumnTypeError("x", "lists"),
            gpupif.errors.PriorError("no"),
        ):
            again = pickle.loads(pickle.dumps(error))
            assert type(again) is type(error)
            assert str(again) == str(error)

    def test_nearly_unique_columns_are_warned_of_when_dask_computes(self):
        unique = pd.DataFrame({"id": range(60), "b": [0, 1] * 30})
        scores = gpupif.score(cut(unique, [20]))
        with pytest.warns(gpupif.errors.NearlyUniqueWarning, match="'id': 60 distinct values"):
            scores.cig.compute()


CPU = DeviceRequest("cpu")


def plan_of_several_kinds(measures):
    parts = [
        plan.ChunkTotals(
            1, 1, [ValueCounts(pa.array(["a"]), np.array([1]), 0)], [-1], frozenset([DeviceRequest(device)])
        )
        for device in ("cpu", "cuda")
    ]
    request = Arguments.from_user(measures, known=[]).make_request(["a"])
    return plan.make_plan(request, ["a"], plan.add_totals(["a"], *parts), None, None)


@pytest.mark.every_engine
def test_each_worker_scores_on_its_own_kind_of_device():
    mixed = plan_of_several_kinds(["cig", "wcig", "emd", "hellinger", "renyi_2"])
    assert (mixed.device, mixed.devices) == (DeviceRequest("auto"), "cpu and cuda")
    assert task_engine(mixed.device).device.partition(":")[0] == worker_device(DeviceRequest("auto")).device


def test_orders_next_to_1_are_refused_on_workers_of_several_kinds():
    for name in ("renyi_0.995", "renyi_1.0001"):
        with pytest.raises(
            gpupif.errors.DeviceError, match=rf"cpu on some workers and cuda on others\. The last bits of {name}"
        ):
            plan_of_several_kinds(["cig", name])


def test_lost_scores_are_an_error(monkeypatch):
    monkeypatch.setattr("gpupif.pipeline.received_scores.unpack", lambda frame, source: [])
    with pytest.raises(gpupif.GpupifError, match="did not return"):
        gpupif.score(cut(gpupif.datasets.pif_example(), [3])).cig.compute()


def shares(frame, partitions, **arguments):
    """Return the rows that reach each partition, divided by their mean."""
    request = Arguments.from_user("cig", **arguments).make_request(list(frame))
    edges = np.linspace(0, len(frame), partitions + 1).astype(int)
    local = [chunk_tasks.encode_chunk(request, CPU, frame.iloc[a:b])[0] for a, b in pairwise(edges)]
    totals = plan.add_totals(request.used, *map(chunk_tasks.totals, local))
    whole = plan.make_plan(request, list(frame), totals, None, None)
    rows = [chunk_tasks.global_rows(whole, part) for part in local]
    sample = routes.add_samples(*map(routes.sample_rows, rows))
    ways = routes.plan_routes(whole, partitions, partitions, partitions, sample)
    sizes = np.zeros(partitions)
    with task_workers() as workers:
        for part in rows:
            for sent in routes.find_sends(part, whole, ways, workers):
                sizes += np.bincount(sent.dest, minlength=partitions)
    distinct = sum(len(part.keys) for part in rows)
    return sizes / (2 * distinct / partitions), sizes


class TestSkew:
    """No partition gets more than twice an even share of two copies of all distinct rows."""

    random = np.random.default_rng(7)
    codes = np.where(random.random((40_000, 8)) < 0.9, 0, random.integers(1, 1_000, (40_000, 8)))
    skewed = pd.DataFrame(codes).add_prefix("c")

    def test_partitions_stay_even_if_one_value_fills_90_percent(self):
        over, _ = shares(self.skewed, 16)
        assert over.max() < 2

    def test_partitions_are_uneven_if_heavy_bins_are_not_cut(self, monkeypatch):
        monkeypatch.setattr(routes, "HEAVY", 1e9)
        over, _ = shares(self.skewed, 16)
        assert over.max() > 2.5

    def test_partitions_stay_even_with_a_constant_column(self):
        over, _ = shares(gpupif.datasets.census(40_000).assign(always="x"), 8)
        assert over.max() < 2

    def test_an_attacker_who_knows_nothing_needs_few_shuffled_rows(self):
        frame = gpupif.datasets.census(40_000)
        _, sizes = shares(frame, 8, known=[])
        # Each value of each column at most once for each partition.
        assert sizes.sum() <= 8 * frame.nunique().sum()

    def test_partitions_stay_even_if_half_the_rows_share_a_key(self):
        frame = gpupif.datasets.census(40_000)
        key = np.where(self.random.random(40_000) < 0.5, 0, self.random.integers(1, 10_000, 40_000))
        over, _ = shares(frame.assign(key=key), 16)
        assert over.max() < 2


def test_a_task_uses_as_many_threads_as_the_environment_says(monkeypatch):
    monkeypatch.delenv("GPUPIF_NUM_THREADS", raising=False)
    with task_workers() as workers:
        assert workers.threads == 1
    monkeypatch.setenv("GPUPIF_NUM_THREADS", "3")
    with task_workers() as workers:
        assert workers.threads == 3
    frame = gpupif.datasets.census(400)
    with gpupif.config(device="cpu"):
        assert_same(gpupif.score(cut(frame, [150])), gpupif.score(frame))
