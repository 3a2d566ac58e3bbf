"""Scoring on a cluster: worker processes, P2P shuffles, killed workers, the command line."""

from __future__ import annotations

import os
import pickle
import re
import signal
import time
import warnings

import dask.dataframe as dd
import pandas as pd
import pyarrow.parquet as pq
import pytest
from distributed import Client, KilledWorker

import gpupif
from tests.helpers.clusters import PARTITIONS, ROWS, WORKERS
from tests.helpers.dask_frames import assert_same
from tests.helpers.pieces import assert_same_summary

pytestmark = [pytest.mark.dask, pytest.mark.subprocess, pytest.mark.slow, pytest.mark.xdist_group("cluster")]


def test_a_cluster_gives_the_bits_of_the_table_in_memory(client, folder, expected):
    scores = gpupif.score(dd.read_parquet(folder), ["cig", "wcig", "csf"])
    graph = scores.frame().__dask_graph__()
    assert sum("barrier" in str(key) for key in graph) == 2
    kept = scores.persist()
    assert_same(kept, expected)
    assert dict(kept.weights) == expected.weights
    assert_same_summary(kept, expected)


def test_a_table_in_the_memory_of_the_workers_is_scored(client):
    frame = gpupif.datasets.census(900)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame)
    scores = gpupif.score(dd.from_pandas(frame, npartitions=3).persist())
    assert_same(scores, expected)
    assert dict(scores.priors) == dict(expected.priors)


def test_information_and_special_uniques_have_the_bits_of_memory(client):
    """Both are computed at once, and workers send intermediate results to each other."""
    frame = gpupif.datasets.census(900)
    lazy = dd.from_pandas(frame, npartitions=3)
    assert gpupif.information.dual_total_correlation(lazy) == gpupif.information.dual_total_correlation(frame)
    found, expected = gpupif.toxic_pairs(lazy), gpupif.toxic_pairs(frame)
    pd.testing.assert_frame_equal(found.pairs, expected.pairs, check_exact=True)
    pd.testing.assert_frame_equal(found.values, expected.values, check_exact=True)
    special, expected = gpupif.suda(lazy), gpupif.suda(frame)
    pd.testing.assert_frame_equal(special.msus.compute(), expected.msus, check_exact=True)
    assert special.summary().sizes.equals(expected.summary().sizes)


@pytest.fixture
def gathered(monkeypatch):
    """Return the bytes of each result that reaches the client."""
    sizes = []
    original = Client._gather_remote

    async def gather(self, *arguments):
        answer = await original(self, *arguments)
        sizes.append(sum(len(pickle.dumps(value)) for value in answer["data"].values()))
        return answer

    monkeypatch.setattr(Client, "_gather_remote", gather)
    return sizes


def test_no_scores_come_to_the_client(client, folder, tmp_path, gathered):
    gpupif.score(dd.read_parquet(folder)).to_parquet(tmp_path / "scores", write_index=False)
    assert gathered
    # The description of the folder (names, small priors), not one column of scores.
    assert sum(gathered) < 8 * ROWS * PARTITIONS
    assert pq.read_table(tmp_path / "scores").num_rows == ROWS * PARTITIONS


@pytest.mark.parametrize("sensitive", [["education", "occupation"], None])
def test_risk_has_the_numbers_of_memory_and_only_they_reach_the_client(client, folder, gathered, sensitive):
    asked = (["region", "age"], sensitive)
    with gpupif.config(device="cpu"):
        found = gpupif.risk(dd.read_parquet(folder), *asked).to_dict()
    with gpupif.config(device="cpu"):
        expected = gpupif.risk(gpupif.datasets.census(ROWS * PARTITIONS), *asked).to_dict()
    assert {**found, "seconds": 0} == {**expected, "seconds": 0}
    assert gathered
    assert sum(gathered) < 20_000


def test_errors_and_warnings_reach_the_client(client):
    frame = pd.DataFrame({"id": range(100), "b": [0, None] * 50})
    scores = gpupif.score(dd.from_pandas(frame, npartitions=3), missing="error")
    with pytest.raises(gpupif.InputError, match=r"column 'b': 50 missing values, the first in row 1 \(from 0\)"):
        scores.cig.compute()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        gpupif.score(dd.from_pandas(frame, npartitions=3)).cig.compute()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not seen:
            time.sleep(0.05)
    assert [warning.category for warning in seen] == [gpupif.errors.NearlyUniqueWarning]


def finished(prefix, dask_scheduler):
    """Return the number of finished tasks whose names begin with `prefix`."""
    return sum(
        str(key[0] if isinstance(key, tuple) else key).startswith(prefix)
        for key, task in dask_scheduler.tasks.items()
        if task.state == "memory"
    )


def kill_at(client, moment, table):
    """Run with one worker killed when the first task of a stage begins; try again if the run was too fast."""
    for _ in range(5):
        client.wait_for_workers(WORKERS, timeout=60)
        victim = list(client.run(os.getpid).values())[1]
        future = client.compute(gpupif.score(dd.read_parquet(table), ["cig", "wcig"]).frame())
        while not client.run_on_scheduler(finished, moment) and not future.done():
            time.sleep(0.002)
        os.kill(victim, signal.SIGKILL)
        if not future.done():
            return victim, future
    raise AssertionError("all runs were over before a worker could be killed")


@pytest.mark.parametrize("moment", ["shuffle-transfer", "gpupif-score"])
def test_a_killed_worker_changes_no_number(client, large_folder, large_expected, moment):
    """All numbers are right, or Dask gives up with its error; a run that takes longer than a minute fails."""
    victim, future = kill_at(client, moment, large_folder)
    try:
        scores = future.result(timeout=60)
    except KilledWorker:
        return
    except RuntimeError as error:
        assert re.search("P2P|shuffle", str(error))  # noqa: PT017
        return
    assert victim not in client.run(os.getpid).values()
    for measure in ("cig", "wcig"):
        wanted = large_expected[measure]
        found = scores[[f"{measure}_{name}" for name in wanted]]
        assert found.to_numpy().tobytes() == wanted.to_numpy().tobytes()
