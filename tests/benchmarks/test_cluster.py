"""The benchmark of clusters: it runs."""

from __future__ import annotations

import json
import sys

import pytest

from tests.helpers.checkout import ROOT

pytestmark = [pytest.mark.dask, pytest.mark.subprocess]


@pytest.mark.slow
def test_the_benchmark_runs(tmp_path, monkeypatch):
    """Small: its figures mean nothing, but that the scores agree does."""
    from benchmarks import cluster

    def run_job(job):
        """In a process of its own only where there are workers."""
        return in_process(job) if job["workers"] else cluster.run_in_memory(job)

    in_process = cluster.run_job
    monkeypatch.setattr(cluster, "run_job", run_job)
    arguments = ["--rows", "4000", "--partition-rows", "1000", "--workers", "1", "--runs", "1", "--no-plot"]
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["cluster", *arguments, "--out", str(tmp_path)])
    cluster.main()
    document = json.loads((tmp_path / "cluster.json").read_text())
    assert document["same_bits"]
    *_, on_workers = document["results"]
    assert [(result["workers"], result["threads"]) for result in document["results"]] == [(0, None), (0, 1), (1, 1)]
    # What tasks returned went through the shuffles, each message with a few words of its own.
    sent = on_workers["sent_bytes"]
    assert 0 < min(sent.values()) < sum(sent.values()) < 1.1 * on_workers["shuffled_bytes"]
    assert sum(on_workers["seconds_of_a_worker"].values()) == pytest.approx(on_workers["seconds"])
