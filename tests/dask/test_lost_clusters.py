"""Errors for a client that waits for a cluster: failing tasks, lost schedulers, Ctrl-C."""

from __future__ import annotations

import threading
import time

import pytest

import gpupif
from gpupif.dask import cluster_progress as watch
from tests.helpers.clusters import on_cluster

pytestmark = pytest.mark.dask


class TestAwaitResult:
    @pytest.fixture
    def impatient(self, monkeypatch):
        monkeypatch.setattr(watch, "STILL_SECONDS", 0.5)
        monkeypatch.setattr(watch, "LOOK_SECONDS", 0.1)
        monkeypatch.setattr(watch, "IDLE_CPU", 1e9)

    @pytest.mark.slow
    def test_a_cluster_that_lost_its_workers_is_an_error(self, impatient, threads, folder, tmp_path):
        threads.cluster.scale(0)
        while threads.nthreads():
            time.sleep(0.05)
        with pytest.raises(
            gpupif.errors.DeviceError, match=r"has no workers left: for 0.5 s no task .* Nothing was written"
        ):
            on_cluster(folder, tmp_path / "out", scheduler=threads.scheduler.address)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.slow
    def test_a_task_that_never_ends_is_an_error(self, impatient, threads):
        future = threads.submit(time.sleep, 2)
        with pytest.raises(gpupif.errors.DeviceError, match="has 1 worker and no progress"):
            watch.await_result(threads, future)

    @pytest.mark.slow
    def test_a_slow_task_is_waited_for(self, impatient, threads, monkeypatch):
        monkeypatch.setattr(watch, "IDLE_CPU", -1)
        future = threads.submit(lambda: time.sleep(2.5) or 7)
        while not watch._state(threads)[1] and not future.done():
            time.sleep(0.05)
        assert not future.done()
        assert watch.await_result(threads, future) == 7

    @pytest.mark.slow
    def test_a_lost_scheduler_is_an_error(self, threads):
        future = threads.submit(time.sleep, 1.5)
        threading.Timer(0.2, threads.cluster.close).start()
        with pytest.raises(gpupif.errors.DeviceError, match="the scheduler of the cluster was lost"):
            watch.await_result(threads, future)
