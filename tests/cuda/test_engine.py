"""The CUDA engine without a GPU: tests beside the shared tests."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.datasets import census
from gpupif.engines.base import Job
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.engines.cuda import rows as cuda_rows
from gpupif.engines.cuda.engine import CudaEngine, CudaSteps
from gpupif.errors import DeviceError, InputError
from gpupif.gpu.cupy_arrays import PinnedStaging
from gpupif.gpu.open import STREAMS, open_libraries
from gpupif.measures import MEASURES
from tests.helpers.disclosure import what_is_found
from tests.helpers.gpu.numpy_device import DeviceFrame, OnDevice
from tests.helpers.gpu.on_device import assert_same_scores, assert_same_values
from tests.helpers.gpu.scarce import Counted, Total
from tests.helpers.gpu.without_gpu import DeviceLibrary, need_stand_in
from tests.helpers.pieces import in_pieces, write_parts
from tests.helpers.scores import where_they_lie

need_stand_in()

pytestmark = pytest.mark.gpu


class SmallDevice(DeviceLibrary):
    """A device that runs out of memory if more than a number of rows are uploaded."""

    def __init__(self, rows):
        super().__init__()
        self.rows = rows
        self.refused = 0

    def launch(self, kernel, size, *arguments):
        if size > self.rows:
            self.refused += 1
            raise MemoryError
        super().launch(kernel, size, *arguments)


def score(engine, frame, **arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.scoring.score.choose_engine", lambda _: engine)
        return gpupif.score(frame, list(MEASURES), **arguments)


def assert_same(scores, expected):
    assert_same_scores(scores, expected)
    assert scores.weights == expected.weights
    assert scores.distinct_rows == expected.distinct_rows


def test_every_device_has_a_library_for_each_stream():
    libraries = open_libraries([0, 1])
    assert [library.device for library in libraries] == [0, 1] * STREAMS
    assert all(isinstance(library, DeviceLibrary) for library in libraries)


@pytest.mark.parametrize("share", [0, 1])
def test_scores_are_those_of_the_cpu_and_repeat_to_the_bit(share):
    frame = census(80)
    scores = score(CudaEngine(share=share), frame)
    assert_same(scores, score(CpuEngine(), frame))
    again = score(CudaEngine(share=share), frame)
    for measure in MEASURES:
        assert scores.array(measure).tobytes() == again.array(measure).tobytes()


@pytest.mark.simulator
@pytest.mark.parametrize("narrow_rows", [cuda_rows.NARROW_ROWS, 1])
@pytest.mark.parametrize("accuracy", [1.0, 0.7])
def test_long_cohorts_are_summed_by_many_threads(monkeypatch, accuracy, narrow_rows):
    monkeypatch.setattr(cuda_rows, "NARROW_ROWS", narrow_rows)
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"a": random.integers(0, 150, 400), "b": random.integers(0, 2, 400)})
    arguments = {"accuracies": {"a": accuracy}}
    assert_same(score(CudaEngine(), frame, **arguments), score(CpuEngine(), frame, **arguments))


def test_a_block_that_runs_out_of_memory_is_halved_and_tried_again():
    frame = census(120)[["sex", "marital_status", "education", "household_size", "tenure"]]
    device = SmallDevice(60)
    scores = score(CudaEngine(libraries=[device], share=1), frame)
    assert device.refused > 0
    assert_same(scores, score(CpuEngine(), frame))


def test_a_block_too_large_for_the_device_is_one_clear_error():
    frame = pd.DataFrame({"a": range(50), "b": [0] * 50})
    with pytest.raises(DeviceError, match=r"out of memory on \d+ rows that .* about .* GiB.*device='cpu'"):
        score(CudaEngine(libraries=[SmallDevice(1)], share=0), frame, columns=["a"], known=["b"])


@pytest.mark.parametrize("share", [0, 1])
@pytest.mark.parametrize("once", [True, False])
def test_memory_may_run_out_at_any_allocation(once, share):
    frame = pd.DataFrame({"a": [0, 1, 1, 2, 0, 0], "b": [0, 0, 1, 1, 0, 0]})
    job = {}

    class Spy(CpuEngine):
        def score(self, given, progress):
            job["given"] = given
            return super().score(given, progress)

    expected = score(Spy(), frame)
    outcomes = []
    for k in range(1, 1000):
        library, progress = DeviceLibrary(), Total()
        library.xp = Counted(k, once)
        try:
            result = CudaEngine(libraries=[library], share=share).score(job["given"], progress)
        except DeviceError as error:
            outcomes.append("error" if "out of memory" in str(error) else str(error))
        else:
            for measure in MEASURES:
                assert_same_values(measure, result.values[measure], expected.array(measure))
            assert progress.cells == frame.size
            outcomes.append("scores")
        if library.xp.calls < k:
            break
    assert len(outcomes) > 30
    assert set(outcomes) == ({"scores"} if once else {"scores", "error"})
    assert outcomes[-1] == "scores"


def test_used_up_memory_of_the_host_is_not_taken_for_the_device_s():
    class Host(DeviceLibrary):
        def launch(self, *_):
            np.empty(1 << 62, np.uint8)

    with pytest.raises(MemoryError):
        score(CudaEngine(libraries=[Host()]), census(10))


@given(
    st.integers(0, 40),
    st.sampled_from(["uint8", "int64", "float32", "float64"]),
    st.sampled_from([8, 16, 64]),
)
@settings(max_examples=25, deadline=None)
def test_copies_of_any_size_arrive_whole(size, dtype, buffer_bytes):
    library = DeviceLibrary()
    staging = PinnedStaging(library, buffer_bytes, small_bytes=0)
    array = np.arange(size).astype(dtype)
    there = staging.upload(array)
    assert isinstance(there, OnDevice)
    np.testing.assert_array_equal(there, array)
    out = np.full((size, 3), 7, dtype)
    staging.download(there, out[:, 1])
    np.testing.assert_array_equal(out, np.stack([np.full(size, 7, dtype), array, np.full(size, 7, dtype)], axis=1))
    whole = np.empty((2, size), dtype)
    staging.download(np.stack([array, array]), whole)
    np.testing.assert_array_equal(whole, [array, array])
    staging.release()
    assert staging.upload(array).dtype == array.dtype


def test_a_failing_device_is_one_clear_error():
    class LostDevice(DeviceLibrary):
        failures = (ArithmeticError,)

        def launch(self, *_):
            raise ArithmeticError("unspecified\nlaunch failure")

    with pytest.raises(DeviceError, match=rf"{DeviceLibrary.name} failed: unspecified launch failure\. .*device='cpu'"):
        score(CudaEngine(libraries=[LostDevice()]), census(10))


@pytest.mark.parametrize("measure", ["cig", "cohort_size"])
def test_codes_on_the_device_give_scores_on_the_device(measure):
    job = {}

    class Spy(CpuEngine):
        def score(self, given, progress):
            job["host"] = given
            return super().score(given, progress)

    expected = score(Spy(), census(60)).array(measure)
    fields = {name: getattr(job["host"], name) for name in Job.__dataclass_fields__}
    fields |= {"codes": [codes.view(OnDevice) for codes in job["host"].codes], "scores_on": "device"}
    for engine in (CudaEngine(), CudaEngine([0, 1]), CudaEngine(share=0)):
        result = engine.score(Job(**fields), SimpleNamespace(advance=lambda cells: None))
        assert isinstance(result.values[measure], OnDevice)
        np.testing.assert_array_equal(result.values[measure], expected)


def test_scores_too_large_for_the_device_are_an_error():
    class Full(DeviceLibrary):
        def upload(self, array):
            if array.dtype == np.float64:
                raise MemoryError
            return super().upload(array)

    frame = census(30)
    with pytest.raises(DeviceError, match=r"the scores of 30 rows need .* GiB on .*Bring the table to the host"):
        score(CudaEngine(libraries=[Full()], share=0), DeviceFrame(frame))


def test_any_amount_of_memory_gives_the_same_bits():
    frame = census(150, columns=6)
    engines = [CudaEngine(), CudaEngine([0, 1]), CudaEngine(share=0), CudaEngine(libraries=[SmallDevice(40)])]
    scores = [score(engine, frame, accuracies={"age": 0.9}) for engine in engines]
    for measure in MEASURES:
        assert {one.array(measure).tobytes() for one in scores} == {scores[0].array(measure).tobytes()}
    assert {tuple(one.weights.items()) for one in scores} == {tuple(scores[0].weights.items())}


@pytest.mark.parametrize(("devices", "home"), [([0, 1], 0), ([1, 0], 0), ([0], 0)])
@pytest.mark.parametrize("share", [0, 1])
def test_scores_are_on_the_device_of_the_table(devices, home, share):
    scores = score(CudaEngine(devices, share=share), DeviceFrame(census(20)))
    assert {scores.array(measure).device_number for measure in MEASURES} == {home}
    assert_same(scores, score(CpuEngine(), census(20)))


def test_a_table_on_another_device_than_the_requested_is_refused():
    with pytest.raises(
        InputError, match=r"device 'cuda:1': the table lies on GPU 0\. Use gpupif\.config\(device='cuda:0'\) or 'cuda'"
    ):
        score(CudaEngine([1], device="cuda:1"), DeviceFrame(census(20)))


def test_scores_of_a_file_stay_on_the_host_if_the_device_is_too_small(tmp_path):
    class Full(DeviceLibrary):
        def empty(self, shape, dtype):
            if shape == (10, 60):
                raise MemoryError
            return super().empty(shape, dtype)

    file = tmp_path / "t.parquet"
    census(60).to_parquet(file)
    scores = score(CudaEngine(libraries=[Full()]), file)
    assert not isinstance(where_they_lie(scores, "cig"), OnDevice)
    assert_same(scores, score(CpuEngine(), census(60)))


def test_streams_of_a_device_share_memory_and_release_it_beyond_a_limit():
    class Stream(DeviceLibrary):
        trimmed = most = 0

        def launch(self, kernel, size, *arguments):
            self.most = max(self.most, size)
            super().launch(kernel, size, *arguments)

        def trim(self):
            self.trimmed += 1

        def close(self):
            raise AssertionError("it is not the engine's to close")

    frame = census(200)
    largest = []
    for streams in (1, 2):
        libraries = [Stream(memory=80_000) for _ in range(streams)]
        assert_same(score(CudaEngine(libraries=libraries, share=0.5), frame), score(CpuEngine(), frame))
        assert [library.trimmed for library in libraries] == [1] * streams
        largest.append(max(library.most for library in libraries))
    assert largest[1] < largest[0]


def test_every_stream_works_with_any_number_of_cores(monkeypatch):
    monkeypatch.setenv("GPUPIF_NUM_THREADS", "1")
    waiting, begun = threading.Barrier(2, timeout=20), set()

    class Stream(DeviceLibrary):
        def stable_order(self, keys):
            if self.device not in begun:
                begun.add(self.device)
                with contextlib.suppress(threading.BrokenBarrierError):
                    waiting.wait()
            return super().stable_order(keys)

    engine = CudaEngine([0, 1], libraries=[Stream(0), Stream(1)], share=0)
    frame = census(60)[["sex", "tenure", "age"]]
    assert_same(score(engine, frame), score(CpuEngine(), frame))
    assert not waiting.broken
    assert begun == {0, 1}


@pytest.fixture
def both_scoring(monkeypatch):
    """Make the first call that scores wait for a second one; returns the list of the calls that met another."""

    def patch(seconds):
        barrier, score_cohorts, met = threading.Barrier(2, timeout=seconds), CudaSteps.score_cohorts, []

        def score_together(*arguments, **options):
            with contextlib.suppress(threading.BrokenBarrierError):
                met.append(barrier.wait())
            return score_cohorts(*arguments, **options)

        monkeypatch.setattr(CudaSteps, "score_cohorts", score_together)
        return met

    return patch


@pytest.mark.parametrize(("others", "at_once"), [([0], False), ([1, 0], False), ([1], True)])
def test_one_table_at_a_time_is_scored_on_a_device(monkeypatch, both_scoring, others, at_once):
    frame, engines = census(60), [CudaEngine([0]), CudaEngine(others)]
    expected = score(CpuEngine(), frame)
    met = both_scoring(20 if at_once else 1)
    monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _: engines.pop())
    with ThreadPoolExecutor(2) as threads:
        each = [threads.submit(gpupif.score, frame, list(MEASURES)) for _ in range(2)]
    for scores in each:
        assert_same(scores.result(), expected)
    assert bool(met) == at_once


def test_tasks_of_a_table_beyond_memory_score_on_all_devices(tmp_path, monkeypatch):
    engine, used = CudaEngine([0, 1], [DeviceLibrary(0), DeviceLibrary(1)]), []
    score_cohorts = CudaSteps.score_cohorts

    def record(self, *arguments, **options):
        used.append(self.engine)
        return score_cohorts(self, *arguments, **options)

    monkeypatch.setattr(CudaSteps, "score_cohorts", record)
    monkeypatch.setattr("gpupif.disclosure.assess.choose_engine", lambda _: engine)
    file = tmp_path / "table.parquet"
    census(200).to_parquet(file)
    with in_pieces(50, 40), gpupif.config(memory_limit="64GiB"):
        found = gpupif.risk(file, ["age", "sex"], ["region", "education"])
    assert found.device == "cuda"
    assert used
    assert all(one is engine for one in used)


def test_tasks_of_a_table_beyond_memory_take_turns_on_a_device(tmp_path, monkeypatch, both_scoring):
    """The tasks run in two threads; each plans its scoring with all memory that is free."""
    monkeypatch.setenv("GPUPIF_NUM_THREADS", "2")
    asked = (write_parts(tmp_path / "in", census(200), [90]), ["age", "sex"], ["region"])
    with gpupif.config(device="cpu"):
        expected = what_is_found(gpupif.risk(*asked))
    met = both_scoring(1)
    with in_pieces(50, 40), gpupif.config(device="cuda", memory_limit="64GiB"):
        found = gpupif.risk(*asked)
    assert not met
    assert what_is_found(found) == {**expected, "device": "cuda"}
