"""Counting on the device: lack of memory, codes that are already there, and arrays as strict as CuPy's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.datasets import census
from gpupif.engines.choose import DeviceRequest, choose_engine
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.engines.cuda.engine import CudaEngine
from gpupif.engines.cuda.rows import pack_device_keys
from gpupif.rows.keys import KeyLayout, code_type
from gpupif.rows.threads import Workers
from tests.helpers.gpu.numpy_device import DeviceFrame, OnDevice
from tests.helpers.gpu.on_device import to_device
from tests.helpers.gpu.strict import StrictFrames, StrictLibrary
from tests.helpers.gpu.without_gpu import DeviceLibrary, need_stand_in
from tests.helpers.suda_searches import searched_by

need_stand_in()

pytestmark = pytest.mark.gpu

SETS = [[0], [2, 0], [1, 2, 3], [], [3], [0, 1, 2, 3, 4]]
CARDINALITIES = [3, 300, 2**20, 2**32 - 1, 1]


class FewBytes(DeviceLibrary):
    """Memory for a number of rows: more rows are uploaded, but not sorted."""

    tried = 0

    def __init__(self, rows, at_all=1 << 40):
        super().__init__(memory=at_all)
        self.rows = rows

    def _sorted(self, size):
        self.tried += size > self.rows
        if size > self.rows:
            raise MemoryError

    def launch(self, kernel, size, *arguments):
        self._sorted(size)
        super().launch(kernel, size, *arguments)


def table(repeated, rows=40):
    random = np.random.default_rng(4)
    codes = [random.integers(0, min(size, 9), rows).astype(code_type(size)) for size in CARDINALITIES]
    return codes, random.integers(0, 5, rows).astype(np.uint32) if repeated else None


def answers(engine, codes, multiplicities, chunks=1):
    with Workers(1) as workers, engine.counting(workers) as counting:
        if chunks == 1:
            each = list(counting.counters(codes, CARDINALITIES, SETS, multiplicities))
        else:
            counter = counting.counter(SETS, CARDINALITIES, len(codes[0]))
            for part in np.array_split(np.arange(len(codes[0])), chunks):
                counter.add(
                    [values[part] for values in codes], None if multiplicities is None else multiplicities[part]
                )
            each = [(counter, place) for place in range(len(SETS))]
        found = []
        for counter, place in each:
            combinations = counter.combinations(place)
            sizes = counter.sizes(place)
            found.append(
                [
                    [(values.dtype, values.tolist()) for values in (*combinations.codes, combinations.counts)],
                    sorted(counter.counts(place).tolist()),
                    [values.tolist() for values in sizes],
                ]
            )
            assert not isinstance(combinations.counts, OnDevice)
    return found


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize(
    "library", [FewBytes(1 << 30), FewBytes(20), FewBytes(1), DeviceLibrary(memory=200), StrictLibrary()]
)
def test_rows_that_do_not_fit_the_device_are_counted_in_parts(library, chunks, repeated):
    codes, multiplicities = table(repeated)
    wanted = answers(CpuEngine(), codes, multiplicities)
    library.tried = 0
    assert answers(CudaEngine(libraries=[library]), codes, multiplicities, chunks) == wanted
    assert not isinstance(library, FewBytes) or (library.tried > 0) == (library.rows < len(codes[0]) // chunks)


@pytest.mark.parametrize("cardinality", [200, 60_000, 2**31, 2**40])
def test_codes_of_every_width_are_packed(cardinality):
    library, layout = DeviceLibrary(), KeyLayout.from_cardinalities([3, cardinality, 2**30])
    codes = [np.arange(50) % size for size in (3, cardinality, 2**30)]
    codes[1][-1] = cardinality - 1
    typed = [values.astype(code_type(size)) for values, size in zip(codes, (3, cardinality, 2**30), strict=True)]
    keys = pack_device_keys(library, dict(enumerate(typed)), 50, layout)
    for column, (word, shift, mask) in layout.fields.items():
        np.testing.assert_array_equal(keys[word] >> np.uint64(shift) & np.uint64(mask), codes[column].astype("uint64"))


def test_a_device_too_small_for_a_row_is_an_error():
    codes, _ = table(False)
    with pytest.raises(gpupif.errors.DeviceError, match=r"ran out of memory on a single row.*device='cpu'"):
        answers(CudaEngine(libraries=[FewBytes(0)]), codes, None)


def test_a_failing_device_is_an_error_with_its_reason(monkeypatch):
    class Broken(DeviceLibrary):
        failures = (ZeroDivisionError,)

        def launch(self, kernel, size, *arguments):
            raise ZeroDivisionError("unspecified launch failure")

    engine = CudaEngine(libraries=[Broken()])
    for chosen in ("gpupif.marginals.open_counts.choose_engine", "gpupif.special_uniques.suda.choose_engine"):
        monkeypatch.setattr(chosen, lambda device: engine)
    for call in (gpupif.information.entropy, gpupif.toxic_pairs, gpupif.suda):
        words = r"device 'cuda'.* failed: unspecified launch failure"
        with pytest.raises(gpupif.errors.DeviceError, match=words), searched_by("sets"):
            call(census(30))


def test_codes_stay_on_the_device(monkeypatch):
    """Codes of a table on the device, and of a file that is read there, stay there."""
    seen = []
    from gpupif.engines.cuda import counting as cuda_counting

    bring = cuda_counting.upload_chunk
    monkeypatch.setattr(
        cuda_counting, "upload_chunk", lambda library, chunk: seen.append(chunk) or bring(library, chunk)
    )
    frame = census(40)
    with gpupif.config(device="cuda"):
        found = gpupif.information.entropy(to_device(frame))
    with gpupif.config(device="cpu"):
        assert gpupif.information.entropy(frame) == found
    assert all(hasattr(codes, "get") for codes in seen[0].codes)


@pytest.mark.parametrize("kind", ["pandas", "device", "parquet", "csv"])
def test_counting_keeps_host_and_device_arrays_apart(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("gpupif.frames.open.frame_library", StrictFrames)
    monkeypatch.setattr("gpupif.engines.cuda.engine.frame_library", lambda device: StrictFrames())
    engine = CudaEngine(libraries=[StrictLibrary()])
    frame = census(60)[["sex", "age", "region", "tenure"]]
    table = frame
    if kind == "device":
        table = DeviceFrame(frame)
    elif kind != "pandas":
        table = tmp_path / f"t.{kind}"
        {"parquet": frame.to_parquet, "csv": frame.to_csv}[kind](table, index=False)
    with gpupif.config(device="cpu"):
        wanted = gpupif.toxic_pairs(frame), gpupif.information.residual_entropy(frame)
        scores = gpupif.suda(frame, 2, contributions=True)
    for chosen in ("gpupif.marginals.open_counts.choose_engine", "gpupif.special_uniques.suda.choose_engine"):
        monkeypatch.setattr(chosen, lambda device: engine)
    found = gpupif.toxic_pairs(table)
    pd.testing.assert_frame_equal(found.pairs, wanted[0].pairs, check_exact=True)
    counts, rarities = (found.values[name].tolist() for name in ("count", "rarity"))
    assert (counts, rarities) == tuple(wanted[0].values[name].tolist() for name in ("count", "rarity"))
    assert gpupif.information.residual_entropy(table) == wanted[1]
    with searched_by("sets"):
        searched = gpupif.suda(table, 2, contributions=True)
    for part in ("sizes", "columns"):
        pd.testing.assert_frame_equal(getattr(searched.summary(), part), getattr(scores.summary(), part))


@pytest.mark.parametrize("rows", [0, 25, 1 << 30])
def test_special_uniques_are_found_though_the_memory_runs_out(monkeypatch, rows):
    frame = census(40)
    arguments = {"max_size": 2, "contributions": True, "sampling_fraction": 0.1}
    with gpupif.config(device="cpu"):
        wanted = gpupif.suda(frame, **arguments)
    engine = CudaEngine(libraries=[FewBytes(rows), FewBytes(rows)])
    monkeypatch.setattr("gpupif.special_uniques.suda.choose_engine", lambda device: engine)
    with searched_by("sets"):
        found = gpupif.suda(frame, **arguments)
    assert found.summary().to_dict() == wanted.summary().to_dict()
    assert found.dis_score.equals(wanted.dis_score)
    assert found.contributions.equals(wanted.contributions)


def test_a_missing_device_is_an_error(monkeypatch):
    monkeypatch.setattr("gpupif.gpu.status.cuda_status", lambda: gpupif.gpu.status.CudaStatus(reason="there is none"))
    assert choose_engine(DeviceRequest("auto")).device == "cpu"
    frame = census(20)
    for call in (gpupif.information.entropy, gpupif.toxic_pairs, gpupif.suda):
        with pytest.raises(gpupif.errors.DeviceError, match="there is none"), gpupif.config(device="cuda"):
            call(frame)
