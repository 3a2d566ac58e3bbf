"""Workers that the command line starts, each with a GPU of its own while there are any; the driver is simulated."""

from __future__ import annotations

import os
import sys
from types import ModuleType

import pytest
from distributed import LocalCluster

import gpupif
from gpupif.dask.cluster_client import cluster, gpus_of_workers
from gpupif.gpu.status import CudaStatus, Gpu

pytestmark = pytest.mark.dask
H200, OLD = Gpu("NVIDIA H200", (9, 0)), Gpu("Tesla V100", (7, 0))


@pytest.fixture
def three_gpus(monkeypatch):
    """Simulate three GPUs, of which the second is too old."""
    monkeypatch.setattr("gpupif.gpu.status.shown_gpus", lambda: CudaStatus([H200, OLD, H200], [0, 2]))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with gpupif.config(device="auto"):
        yield


@pytest.mark.parametrize(
    ("device", "workers", "gpus"),
    [
        ("auto", 1, ["0"]),
        ("auto", 2, ["0", "2"]),
        ("auto", 4, ["0", "2"]),
        ("cuda", 2, ["0", "2"]),
        ("cuda:2", 1, []),
        ("cpu", 8, []),
    ],
)
def test_each_worker_has_a_gpu_of_its_own(three_gpus, device, workers, gpus):
    with gpupif.config(device=device):
        assert gpus_of_workers(workers) == gpus


def test_gpus_are_named_as_the_process_sees_them(three_gpus, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-8932f937,7")
    assert gpus_of_workers(3) == ["5", "7"]


@pytest.mark.parametrize(("device", "workers", "most"), [("cuda", 3, 2), ("cuda:0", 2, 1)])
def test_workers_that_would_share_a_gpu_are_refused(three_gpus, device, workers, most):
    expected = rf"--workers: expected at most {most} with device '{device}', .*; got {workers}\. Start fewer, or use"
    with gpupif.config(device=device), pytest.raises(gpupif.InputError, match=expected), cluster(None, workers):
        pass


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_workers_get_no_gpu_if_none_exists(monkeypatch, device):
    monkeypatch.setattr("gpupif.gpu.status.shown_gpus", lambda: CudaStatus(reason="there is none"))
    with gpupif.config(device=device):
        assert gpus_of_workers(4) == []


def seen(client):
    """Return the GPUs that CUDA may see in each worker, by name of the worker."""
    names = {worker["name"]: address for address, worker in client.scheduler_info(-1)["workers"].items()}
    found = client.run(lambda: os.environ.get("CUDA_VISIBLE_DEVICES"))
    return {name: found[address] for name, address in names.items()}


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.xdist_group("cluster")
def test_workers_see_their_gpu_also_when_they_are_started_again(three_gpus, monkeypatch):
    monkeypatch.setattr("gpupif.dask.cluster_client.find_spec", lambda name: None)
    with cluster(None, 3) as client:
        client.wait_for_workers(3, timeout=60)
        assert seen(client) == {0: "0", 1: "2", 2: ""}
        client.restart()
        client.wait_for_workers(3, timeout=60)
        assert seen(client) == {0: "0", 1: "2", 2: ""}
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


@pytest.mark.parametrize(("workers", "with_it"), [(2, True), (3, False)])
def test_dask_cuda_starts_workers_with_a_gpu_each(three_gpus, monkeypatch, workers, with_it):
    started = []

    class Cluster(LocalCluster):
        def __init__(self, gpus=None, **options):
            started.append((gpus, options.pop("n_workers")))
            super().__init__(n_workers=0, **options)

    module = ModuleType("dask_cuda")
    module.LocalCUDACluster = Cluster
    monkeypatch.setitem(sys.modules, "dask_cuda", module)
    monkeypatch.setattr("gpupif.dask.cluster_client.find_spec", lambda name: object())
    monkeypatch.setattr("distributed.LocalCluster", Cluster)
    with cluster(None, workers):
        pass
    assert started == [(["0", "2"] if with_it else None, workers)]
