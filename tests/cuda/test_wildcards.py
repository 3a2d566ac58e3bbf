"""Missing values that match every value, on the CUDA engine without a GPU: what the shared tests do not reach."""

from __future__ import annotations

import tracemalloc

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.datasets import census
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.engines.cuda import wildcards as cuda_wildcards
from gpupif.engines.cuda.engine import CudaEngine
from gpupif.engines.memory import link_bytes, match_bytes, matching_bytes, score_bytes
from gpupif.errors import DeviceError
from gpupif.kernels.cuda import wildcards as kernels
from gpupif.measures import MEASURES
from tests.helpers.gpu.on_device import assert_same_scores, assert_same_values
from tests.helpers.gpu.scarce import Counted, Total
from tests.helpers.gpu.without_gpu import DeviceLibrary, need_stand_in
from tests.helpers.scores import job_of

need_stand_in()

pytestmark = [pytest.mark.gpu, pytest.mark.simulator]
ALL = [*MEASURES, "renyi_2", "recursive_2"]


KNOWN = {"columns": ["sex"], "known": ["age", "sex", "region"]}


def sparse(rows=14, columns=3):
    frame = census(rows).iloc[:, :columns].astype(object)
    return frame.mask(np.random.default_rng(1).random(frame.shape) < 0.25, None)


def score(engine, frame, measures=ALL, **arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.scoring.score.choose_engine", lambda _: engine)
        return gpupif.score(frame, measures, missing="wildcard", **arguments)


def bits(scores):
    return [scores.array(measure).tobytes() for measure in scores.measures], list(scores.weights.values())


def assert_same(scores, expected):
    assert_same_scores(scores, expected)
    assert scores.weights == expected.weights
    assert scores.distinct_rows == expected.distinct_rows


@pytest.fixture
def job():
    """The job of a small table, and its scores on the CPU."""
    jobs = []

    class Spy(CpuEngine):
        def score(self, given, progress):
            jobs.append(given)
            return super().score(given, progress)

    frame = pd.DataFrame({"a": [0, 1, 1, None, 0], "b": [0, None, 1, 1, 0]})
    return score(Spy(), frame), jobs[0]


def test_any_number_of_keys_at_once_gives_the_same_bits(monkeypatch):
    frame, arguments = sparse(9), KNOWN | {"accuracies": {"sex": 0.7}}
    engines = [CudaEngine(), CudaEngine(share=0)]
    # Beside the table there is room for some of the cells, and for some of the links.
    jobs = []
    monkeypatch.setattr(cuda_wildcards._Scorer, "score", _seen(cuda_wildcards._Scorer.score, jobs))
    scores = [score(engine, frame, **arguments) for engine in engines]
    assert_same(scores[0], score(CpuEngine(), frame, **arguments))
    monkeypatch.setattr(cuda_wildcards, "match_bytes", lambda measures: jobs[0] // 2 // 20)
    scores.append(score(CudaEngine(), frame, **arguments))
    assert all(bits(one) == bits(scores[0]) for one in scores[1:])


def _seen(real, seen):
    def score(scorer, pattern):
        seen.append(scorer._memory)
        return real(scorer, pattern)

    return score


def test_missing_values_in_either_word_of_a_key_match():
    """Six rows agree except for missing values in two columns, one in each word, and one other value."""
    rows = np.arange(15)
    frame = pd.DataFrame({f"w{place}": np.where(rows < 6, 0.0, rows) for place in range(17)})
    frame.loc[0, "w0"] = frame.loc[1, "w16"] = None
    frame.loc[2, "w16"] = 7.0
    arguments = {"columns": ["target"], "known": list(frame)}
    scores = score(CudaEngine(), frame.assign(target=rows % 2), **arguments)
    assert job_of(scores).layout.words == 2
    assert scores.cohort_size["target"].tolist() == [5, 6, 2, 5, 5, 5, *[1] * 9]
    assert_same(scores, score(CpuEngine(), frame.assign(target=rows % 2), **arguments))


class SmallCohorts(DeviceLibrary):
    """A device that has no room for cohorts of more than so many cells, made at once."""

    def __init__(self, cells):
        super().__init__()
        self.cells = cells
        self.refused = 0

    def launch(self, kernel, size, *arguments):
        if kernel is kernels.list_cells and size > self.cells:
            self.refused += 1
            raise MemoryError
        super().launch(kernel, size, *arguments)


def test_work_that_runs_out_of_memory_is_repeated_with_fewer_keys():
    frame = sparse(14)
    expected = score(CpuEngine(), frame, **KNOWN)
    most = int(expected.cohort_size.to_numpy().max())
    device = SmallCohorts(most)
    scores = score(CudaEngine(libraries=[device]), frame, **KNOWN)
    assert device.refused > 1
    assert_same(scores, expected)
    with pytest.raises(DeviceError, match=r"ran out of memory on 14 rows, which .* about [\d.]+ GiB, .*device='cpu'"):
        score(CudaEngine(libraries=[SmallCohorts(2)]), frame, **KNOWN)


@pytest.mark.parametrize("once", [True, False])
def test_memory_may_run_out_at_any_allocation(job, once):
    expected, given = job
    outcomes = set()
    for k in (1, 20, 60, 90, *range(120, 400, 37), 10**6):
        library, progress = DeviceLibrary(), Total()
        library.xp = Counted(k, once)
        try:
            result = CudaEngine(libraries=[library]).score(given, progress)
        except DeviceError as error:
            outcomes.add(str(error).split(",")[0])
        else:
            for measure in ALL:
                assert_same_values(measure, result.values[measure], expected.array(measure))
            assert progress.cells == 10
            outcomes.add("scores")
    assert outcomes == {"scores", f"device 'cuda': {DeviceLibrary.name} ran out of memory on 5 rows"}


def test_the_planned_memory_covers_the_memory_taken():
    """The arrays of NumPy have the sizes that CuPy's would have; all matches of a pattern are made at once."""
    peaks = []

    class Spy(CudaEngine):
        def score(self, job, progress):
            tracemalloc.start()
            try:
                return super().score(job, progress)
            finally:
                peaks.extend([job, tracemalloc.get_traced_memory()[1]])
                tracemalloc.stop()

    frame = pd.DataFrame({"a": np.arange(1_000), "b": np.arange(1_000.0) // 4})
    frame.loc[0, "b"] = None
    asked = {"measures": ["cig", "posterior"], "columns": ["a"], "known": ["b"]}
    # All is compiled before it is measured.
    for rows in (8, 1_000, 1_000):
        score(Spy(), frame.iloc[:rows], **asked)
    job, peak = peaks[-2:]
    # Of 250 keys each matches its 4 rows and the one that matches all.
    assert peak - score_bytes(job) < matching_bytes(job) + link_bytes(2) * 250 + match_bytes(2) * 250 * 5


def test_files_and_dask_frames_are_scored_on_the_device(tmp_path):
    frame = sparse(7, columns=2)
    frame.to_parquet(tmp_path / "t.parquet")
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame, missing="wildcard")
    scores = gpupif.score(tmp_path / "t.parquet", missing="wildcard")
    assert scores.device == "cuda"
    assert_same(scores, expected)
    written = gpupif.score_files(tmp_path / "t.parquet", tmp_path / "s.parquet", missing="wildcard")
    assert written.device == "cuda"
    found = pd.read_parquet(tmp_path / "s.parquet")
    assert found.to_numpy().tobytes() == scores.to_arrow().to_pandas().to_numpy().tobytes()
    with dask.config.set(scheduler="sync"):
        with gpupif.config(device="cuda"):
            lazy = gpupif.score(dd.from_pandas(frame, npartitions=2), missing="wildcard")
        np.testing.assert_array_equal(lazy.cig.compute().to_numpy(), scores.cig.to_numpy())
