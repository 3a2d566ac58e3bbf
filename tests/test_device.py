"""Which engine is chosen, and exactly why CUDA is not, with a driver that is made up."""

from __future__ import annotations

import ctypes

import pytest

from gpupif import device
from gpupif.device import CudaStatus, Gpu, choose_engine, cuda_status
from gpupif.errors import DeviceError, InputError

H200, OLD = ("NVIDIA H200", (9, 0)), ("Tesla V100", (7, 0))


class Driver:
    """libcuda.so.1 as far as it is asked."""

    def __init__(self, gpus, code=0):
        self.gpus = gpus
        self.code = code

    def cuInit(self, flags):  # noqa: N802
        return self.code

    def cuDeviceGetCount(self, count):  # noqa: N802
        count._obj.value = len(self.gpus)

    def cuDeviceGetName(self, name, size, number):  # noqa: N802
        name.value = self.gpus[number][0].encode()

    def cuDeviceGetAttribute(self, value, attribute, number):  # noqa: N802
        value._obj.value = self.gpus[number][1][{75: 0, 76: 1}[attribute]]


@pytest.fixture
def machine(monkeypatch):
    def set_up(gpus=(), code=0, packages=("cupy", "numba-cuda"), cupy=None, version="14.2.0"):
        monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver(gpus, code))
        monkeypatch.setattr(device, "installed_version", lambda name: version if name in packages else None)
        monkeypatch.setattr(device.importlib, "import_module", lambda name: cupy)

    return set_up


class Cupy:
    """CuPy, which works or fails."""

    def __init__(self, error=None):
        self.error = error

    def arange(self, number):
        if self.error:
            raise RuntimeError(self.error)
        return self

    def sum(self):
        return self

    def item(self):
        return 3


def test_no_driver(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    status = cuda_status()
    assert not status.usable
    assert "no NVIDIA driver" in status.reason


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"code": 100}, "cuInit returned 100"),
        ({}, "shows no GPU"),
        ({"gpus": [H200, OLD]}, "Tesla V100 (compute capability 7.0) is too old: at least compute capability 7.5"),
        ({"gpus": [H200], "packages": ["numba-cuda"]}, "the package cupy is not installed: pip install"),
        ({"gpus": [H200], "packages": ["cupy"]}, "the package numba-cuda is not installed: pip install"),
        ({"gpus": [H200], "version": "14.0.1"}, "CuPy 14.0.1 is too old: at least 14.2 is needed"),
        ({"gpus": [H200], "cupy": Cupy("driver\nis old")}, "CuPy 14.2.0 does not work here: driver is old"),
    ],
)
def test_what_is_missing_is_named(machine, settings, reason):
    machine(**settings)
    status = cuda_status()
    assert not status.usable
    assert reason in status.reason
    with pytest.raises(DeviceError, match=r"device 'cuda' cannot be used here: .*device='cpu'"):
        choose_engine("cuda")


def test_usable_devices(machine):
    machine([H200, H200], cupy=Cupy())
    assert cuda_status() == CudaStatus(True, [Gpu(*H200), Gpu(*H200)], "")
    assert list(choose_engine("cuda").devices) == [0, 1]
    assert list(choose_engine("cuda:1").devices) == [1]
    with pytest.raises(DeviceError, match=r"'cuda:2': expected a number below 2"):
        choose_engine("cuda:2")


@pytest.mark.parametrize("word", ["gpu", "cuda:", "cuda:x", "cpu:0", "auto:1", 3, None, "CUDA"])
def test_words_that_are_no_device(word):
    with pytest.raises(InputError, match=r"device: expected one of auto, cpu, cuda, or cuda:0"):
        choose_engine(word)
