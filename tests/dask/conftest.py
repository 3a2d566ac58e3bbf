"""Clusters and tables that the tests of Dask share."""

from __future__ import annotations

import contextlib
import logging

import dask
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import gpupif
from gpupif.dask import cluster_client as connect
from tests.helpers.clusters import PARTITIONS, ROWS, WORKERS
from tests.helpers.gpu.without_gpu import on_gpu


@pytest.fixture(autouse=True)
def _device(request):
    """Set the device to the CPU for tests without the mark of GPUs: "auto" on Dask takes a GPU for any table."""
    with contextlib.nullcontext() if on_gpu(request.node) else gpupif.config(device="cpu"):
        yield


@pytest.fixture(scope="session")
def cluster():
    """Yield the cluster for all tests of one xdist_group; its nannies replace dead workers."""
    silent = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with dask.config.set(connect.PATIENT):
        started = LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, **silent)
    with started:
        yield started


@pytest.fixture(scope="module")
def running(cluster):
    """Make a client the default of a module's tests; afterwards Dask computes in this process again."""
    with dask.config.set(connect.PATIENT), Client(cluster) as client:
        yield client


@pytest.fixture
def client(running):
    """Return the client when all its workers are there, else fail the test."""
    running.wait_for_workers(WORKERS, timeout=60)
    return running


@pytest.fixture
def threads():
    """Yield a cluster in this process, with one worker."""
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a census as Parquet files, one file for each partition."""
    folder = tmp_path_factory.mktemp("census")
    frame = gpupif.datasets.census(ROWS * PARTITIONS)
    for number in range(PARTITIONS):
        frame.iloc[number * ROWS : (number + 1) * ROWS].to_parquet(folder / f"{number:02}.parquet")
    return folder


@pytest.fixture(scope="module")
def expected():
    with gpupif.config(device="cpu"):
        return gpupif.score(gpupif.datasets.census(ROWS * PARTITIONS), ["cig", "wcig", "csf"])


@pytest.fixture(scope="module")
def large_folder(tmp_path_factory):
    """Write a table that takes long enough to kill a worker meanwhile."""
    folder = tmp_path_factory.mktemp("large")
    for number in range(12):
        gpupif.datasets.census(12_000, seed=number).to_parquet(folder / f"{number:02}.parquet")
    return folder


@pytest.fixture(scope="module")
def large_expected(large_folder):
    with gpupif.config(device="cpu"):
        return gpupif.score(pd.read_parquet(large_folder), ["cig", "wcig"])
