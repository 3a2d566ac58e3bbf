"""The CUDA engine in Numba's simulator: what the shared tests do not reach."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.datasets import census
from gpupif.engines import cuda_scores
from gpupif.engines.cpu import CpuEngine
from gpupif.engines.cuda import CudaEngine
from gpupif.engines.cuda_library import SimulatedLibrary, open_libraries
from gpupif.engines.cuda_memory import table_bytes
from gpupif.errors import DeviceError
from gpupif.measures import MEASURES


class SmallDevice(SimulatedLibrary):
    """A device that runs out of memory where more than so many rows are brought to it."""

    def __init__(self, rows):
        super().__init__()
        self.rows = rows
        self.refused = 0

    def upload(self, array):
        if len(array) > self.rows:
            self.refused += 1
            raise MemoryError
        return super().upload(array)


def score(engine, frame, **arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.scoring.choose_engine", lambda _: engine)
        return gpupif.score(frame, list(MEASURES), **arguments)


def assert_same(scores, expected):
    for measure in MEASURES:
        np.testing.assert_allclose(scores.array(measure), expected.array(measure), rtol=1e-12, atol=1e-14)
    assert scores.weights == pytest.approx(expected.weights, rel=1e-12)
    assert scores.distinct_rows == expected.distinct_rows


def test_the_simulator_stands_in_for_the_device():
    assert isinstance(open_libraries([0, 1])[0], SimulatedLibrary)


@pytest.mark.parametrize("share", [0, 1])
def test_as_the_cpu_and_the_same_bits_again(share):
    frame = census(80)
    scores = score(CudaEngine(share=share), frame)
    assert_same(scores, score(CpuEngine(), frame))
    again = score(CudaEngine(share=share), frame)
    for measure in MEASURES:
        assert scores.array(measure).tobytes() == again.array(measure).tobytes()


@pytest.mark.parametrize("accuracy", [1.0, 0.7])
def test_long_cohorts_are_summed_by_many_threads(monkeypatch, accuracy):
    monkeypatch.setattr(cuda_scores, "LONG", 2)
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"a": random.integers(0, 150, 400), "b": random.integers(0, 2, 400)})
    arguments = {"accuracies": {"a": accuracy}}
    assert_same(score(CudaEngine(), frame, **arguments), score(CpuEngine(), frame, **arguments))


def test_what_runs_out_of_memory_is_halved_and_tried_again():
    frame = census(120)[["sex", "marital_status", "education", "household_size", "tenure"]]
    device = SmallDevice(60)
    scores = score(CudaEngine(libraries=[device], share=1), frame)
    assert device.refused > 0
    assert_same(scores, score(CpuEngine(), frame))


def test_a_block_too_large_for_the_device_is_one_clear_error():
    frame = pd.DataFrame({"a": range(50), "b": [0] * 50})
    with pytest.raises(DeviceError, match=r"out of memory on \d+ rows that .* about .* GiB.*device='cpu'"):
        score(CudaEngine(libraries=[SmallDevice(1)], share=0), frame, columns=["a"], known=["b"])


def test_a_device_that_fails_is_one_clear_error():
    class LostDevice(SimulatedLibrary):
        failures = (ArithmeticError,)

        def launch(self, *_):
            raise ArithmeticError("unspecified\nlaunch failure")

    with pytest.raises(DeviceError, match=r"simulator failed: unspecified launch failure\. .*device='cpu'"):
        score(CudaEngine(libraries=[LostDevice()]), census(10))


@pytest.mark.parametrize("columns", [3, 10, 30])
def test_memory_is_planned_for_what_is_taken(columns):
    """NumPy's arrays are those that CuPy would make; a device's sort needs no more than NumPy's."""
    jobs = []

    class Spy(CudaEngine):
        def score(self, job, progress):
            jobs.append(job)
            tracemalloc.start()
            try:
                return super().score(job, progress)
            finally:
                jobs.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()

    frame = census(3_000, columns=columns)
    score(Spy(), frame, columns=list(frame.columns)[:1])
    job, peak = jobs
    results = sum(job.rows * 8 for _ in job.measures)
    assert peak - results < table_bytes(job)
