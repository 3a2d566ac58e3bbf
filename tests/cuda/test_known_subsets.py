"""Attackers who know any few columns, on the CUDA engine without a GPU: tests beside the shared tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gpupif
from gpupif.datasets import census
from gpupif.engines.attacker_scoring import score_sets
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.engines.cuda import any_known as cuda_any_known
from gpupif.engines.cuda import grouping as cuda_grouping
from gpupif.engines.cuda.any_known import AnyKnownJob
from gpupif.engines.cuda.engine import CudaEngine
from gpupif.engines.cuda.grouping import GROUPINGS
from gpupif.engines.memory import score_bytes, table_bytes
from gpupif.errors import DeviceError
from gpupif.rows.keys import KeyLayout
from gpupif.utils.arrays import on_host
from tests.helpers.gpu.measured import Measured
from tests.helpers.gpu.numpy_device import DeviceFrame, OnDevice
from tests.helpers.gpu.scarce import Counted, Total
from tests.helpers.gpu.strict import StrictFrames, StrictLibrary, plain
from tests.helpers.gpu.without_gpu import DeviceLibrary, need_stand_in
from tests.helpers.scores import where_they_lie

need_stand_in()

pytestmark = pytest.mark.gpu
FEW = ["cig", "wcig", "cohort_size"]


def score(engine, frame, known=1, measures=FEW, **arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.scoring.score.choose_engine", lambda _: engine)
        return gpupif.score(frame, measures, known=known, **arguments)


def question(frame, known=1, measures=FEW):
    """Return a job and the sets of columns for an engine."""
    asked = []

    class Spy(CpuEngine):
        def score_sets(self, job, sets, progress, shares=None):
            asked.extend([job, sets])
            return super().score_sets(job, sets, progress, shares)

    scores = score(Spy(), frame, known, measures)
    return *asked, scores


def assert_same(result, expected):
    for measure in expected.measures:
        for found, scores in ((result.worst, expected), (result.mean, expected.mean)):
            np.testing.assert_array_equal(on_host(found[measure]), scores.array(measure))
    assert [weights.min() for weights in result.weights] == list(expected.weights.values())
    assert [weights.mean() for weights in result.weights] == list(expected.mean.weights.values())
    assert result.distinct_rows == expected.distinct_rows


@pytest.fixture
def groups(monkeypatch):
    """Return the number of columns in each turn of scored columns."""
    sizes = []
    real = cuda_any_known._DeviceRun.score

    def spy(self, group):
        sizes.append(len(group))
        real(self, group)

    monkeypatch.setattr(cuda_any_known._DeviceRun, "score", spy)
    return sizes


def plan(job, sets, scored_columns):
    """Return the bytes that a number of scored columns at once need, for a table of distinct rows."""
    return AnyKnownJob(job, sets, Total(), [], GROUPINGS["rotation"], 1, scored_columns).bytes_needed(
        job.rows, scored_columns
    )


@pytest.mark.parametrize("devices", [1, 2])
def test_scored_columns_go_in_groups_that_fit(groups, devices):
    frame = census(15, columns=5)
    job, sets, expected = question(frame)
    memory = plan(job, sets, 2)
    assert memory >= table_bytes(job)
    libraries = [DeviceLibrary(device, memory) for device in range(devices) for _ in range(2)]
    progress = Total()
    result = score_sets(CudaEngine(libraries=libraries, share=1), job, sets, progress)
    assert sorted(groups) == [1, 2, 2]
    assert_same(result, expected)
    assert progress.cells == frame.size * 4


def test_any_memory_and_any_number_of_devices_give_the_same_bits(groups):
    job, sets, _ = question(census(15, columns=4), 2)
    engines = [CudaEngine(), CudaEngine([0, 1, 2, 3, 4, 5]), CudaEngine(share=0)]
    results = [score_sets(engine, job, sets, Total()) for engine in engines]
    assert groups == [4, *[1] * 4, *[1] * 4]
    for one in results:
        for ours, first in ((one.worst, results[0].worst), (one.mean, results[0].mean)):
            assert {name: array.tobytes() for name, array in ours.items()} == {
                name: array.tobytes() for name, array in first.items()
            }
        assert [weights.tolist() for weights in one.weights] == [weights.tolist() for weights in results[0].weights]


class Crowded(DeviceLibrary):
    """A device without room for the accumulators of more than a number of scored columns."""

    def __init__(self, most):
        super().__init__()

        class Arrays:
            def __getattr__(self, name):
                return getattr(np, name)

            def zeros(self, shape, dtype=float):
                if isinstance(shape, tuple) and len(shape) == 3 and shape[0] > most:
                    raise MemoryError
                return np.zeros(shape, dtype)

        self.xp = Arrays()


def test_groups_that_do_not_fit_are_halved(groups):
    frame = census(12, columns=5)
    job, sets, expected = question(frame)
    progress = Total()
    result = score_sets(CudaEngine(libraries=[Crowded(2)]), job, sets, progress)
    # On the device; then from the host's distinct rows.
    assert groups == [5, 5, 2, 2, 1]
    assert_same(result, expected)
    assert progress.cells == frame.size * 4


@pytest.mark.parametrize("share", [0, 1])
def test_a_scored_column_that_does_not_fit_is_one_clear_error(share):
    job, sets, _ = question(census(12, columns=2))
    with pytest.raises(DeviceError, match=r"single column, 12 distinct rows.* about .* GiB.* free.*device='cpu'"):
        score_sets(CudaEngine(libraries=[Crowded(0)], share=share), job, sets, Total())


@pytest.mark.parametrize("share", [0, 1])
@pytest.mark.parametrize("once", [True, False])
def test_memory_may_run_out_at_any_allocation(once, share):
    frame = census(6, columns=2)
    job, sets, expected = question(frame)
    outcomes = []
    for k in range(1, 1000, 13):
        library, progress = DeviceLibrary(), Total()
        library.xp = Counted(k, once)
        try:
            result = score_sets(CudaEngine(libraries=[library], share=share), job, sets, progress)
        except DeviceError as error:
            outcomes.append("error" if "out of memory" in str(error) else str(error))
        else:
            assert_same(result, expected)
            assert progress.cells == frame.size
            outcomes.append("scores")
        if library.xp.calls < k:
            break
    assert len(outcomes) > 4
    assert set(outcomes) == ({"scores"} if once else {"scores", "error"})
    assert outcomes[-1] == "scores"


@pytest.mark.parametrize("columns", [3, 25])
def test_the_planned_memory_covers_the_memory_taken(monkeypatch, columns):
    """The arrays of NumPy have the sizes that CuPy's would have."""
    monkeypatch.setattr(cuda_grouping, "SLOTS", 1)
    monkeypatch.setattr(cuda_grouping, "COUNTERS", 1)
    frame = census(1000, columns=columns)
    job, sets, _ = question(frame, 1, ["cig", "entropy"])
    job = replace(job, scored_columns=[0, 1])
    sets = [replace(one, scored_columns=one.columns) for one in sets if max(one.columns) < 3 and 0 in one.columns][:1]
    # All is compiled before it is measured.
    score_sets(CudaEngine(), job, sets, Total())
    library = Measured()
    with library.measuring():
        score_sets(CudaEngine(libraries=[library]), job, sets, Total())
    words = KeyLayout.from_cardinalities([len(counts) for counts in job.counts]).words
    there = 8 * (words + 2) * job.rows
    assert library.peak - 2 * score_bytes(job) < there + plan(job, sets, 2)


@pytest.mark.parametrize("slots", [1, cuda_grouping.SLOTS])
def test_numbers_of_rows_may_need_64_bits(monkeypatch, slots):
    monkeypatch.setattr(cuda_grouping, "SLOTS", slots)
    monkeypatch.setattr(cuda_grouping, "SLOTS_PER_ROW", 1)
    job, sets, _ = question(census(50, columns=5), 2)
    narrow = score_sets(CudaEngine(), job, sets, Total())
    monkeypatch.setattr(cuda_grouping, "WIDE_ROWS", 1)
    wide = score_sets(CudaEngine(), job, sets, Total())
    for ours, theirs in ((wide.worst, narrow.worst), (wide.mean, narrow.mean)):
        assert {name: scores.tobytes() for name, scores in ours.items()} == {
            name: scores.tobytes() for name, scores in theirs.items()
        }


@pytest.mark.parametrize("share", [0, 1])
def test_multiplicities_count_as_rows(share):
    job, sets, _ = question(census(30, columns=3)[["sex"]].assign(a=np.arange(30) % 2, b=np.arange(30) % 3 > 0))
    together = np.stack(job.codes)
    rows, first, multiplicities = np.unique(together, axis=1, return_index=True, return_counts=True)
    few = replace(job, codes=list(rows), multiplicities=multiplicities)
    whole, part = (score_sets(CudaEngine(share=share), one, sets, Total()) for one in (job, few))
    assert part.distinct_rows == len(multiplicities) < 30
    for ours, theirs in ((part.worst, whole.worst), (part.mean, whole.mean)):
        for measure in FEW:
            np.testing.assert_array_equal(ours[measure], theirs[measure][:, first])
    assert [weights.tolist() for weights in part.weights] == [weights.tolist() for weights in whole.weights]


@pytest.mark.parametrize("share", [0, 1])
def test_host_and_device_are_kept_apart(monkeypatch, tmp_path, table, share):
    frame = census(60)
    columns, known = ["sex", "tenure", "region"], gpupif.AnyKnown(2, subsets=1, seed=3)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame, FEW, columns, known=known)

    class Engine(CudaEngine):
        frames = StrictFrames()

    scores = score(Engine(libraries=[StrictLibrary(), StrictLibrary()], share=share), table, known, columns=columns)
    scores.to_parquet(tmp_path / "scores.parquet")
    # Those of a file stay on the device, where they fit, until they are looked at.
    there = isinstance(table, DeviceFrame) or (isinstance(table, Path) and share == 1)
    assert isinstance(where_they_lie(scores, "cig"), OnDevice) == there
    assert scores.device == "cuda"
    assert scores.summary().to_json()
    cells = ["row", "column", "cohort_size", "known"]
    assert scores.top(3)[cells].to_dict() == expected.top(3)[cells].to_dict()
    assert scores.mean.top(3)["row"].tolist() == expected.mean.top(3)["row"].tolist()
    for measure in FEW:
        for ours, theirs in ((scores, expected), (scores.mean, expected.mean)):
            np.testing.assert_array_equal(plain(ours.array(measure)), theirs.array(measure))


@pytest.mark.parametrize("engine", [CudaEngine(), CudaEngine([0, 1]), CudaEngine(share=0)])
def test_scores_are_on_the_device_of_the_table(engine):
    scores = score(engine, DeviceFrame(census(15, columns=3)))
    for measure in FEW:
        assert scores.array(measure).device_number == scores.mean.array(measure).device_number == 0
        assert isinstance(scores[measure], DeviceFrame)


def test_scores_too_large_for_the_device_are_an_error():
    class Full(DeviceLibrary):
        def upload(self, array):
            if array.dtype == np.float64:
                raise MemoryError
            return super().upload(array)

    with pytest.raises(DeviceError, match=r"the scores of 15 rows need .* GiB on .*Bring the table to the host"):
        score(CudaEngine(libraries=[Full()], share=0), DeviceFrame(census(15, columns=3)))
