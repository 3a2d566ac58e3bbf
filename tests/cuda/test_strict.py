"""The CUDA engine over arrays that refuse what CuPy's refuse: host and device in one expression, silent copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy_device import DeviceFrame, OnDevice, PandasFrames
from without_gpu import DeviceLibrary

import gpupif
from gpupif.datasets import census
from gpupif.engines.cuda.engine import CudaEngine
from gpupif.measures import MEASURES

pytestmark = pytest.mark.gpu


def is_host(value):
    return isinstance(value, np.ndarray) and not isinstance(value, OnDevice) and value.ndim > 0


def refuse_host(values):
    for value in values:
        if isinstance(value, list | tuple):
            refuse_host(value)
        elif is_host(value):
            raise TypeError(f"an array of the host, {value.dtype} {value.shape}, where the device's are")


def plain(value):
    if hasattr(value, "_fields"):
        return type(value)(*map(plain, value))
    if isinstance(value, list | tuple):
        return type(value)(plain(item) for item in value)
    return value.view(np.ndarray) if isinstance(value, OnDevice) else value


def there(value):
    if isinstance(value, tuple):
        return tuple(there(item) for item in value)
    # A reduction gives an array without dimensions, as CuPy's do, not a number.
    return np.asarray(value).view(Strict) if isinstance(value, np.ndarray | np.generic) else value


class Strict(OnDevice):
    """An array that works with its like only."""

    def __array_ufunc__(self, ufunc, method, *inputs, **named):
        refuse_host(inputs)
        out = named.pop("out", None)
        if out is not None:
            named["out"] = plain(out)
        return there(getattr(ufunc, method)(*plain(inputs), **named))

    def __array_function__(self, function, types, arguments, named):
        refuse_host(arguments)
        refuse_host(named.values())
        named = {name: plain(value) for name, value in named.items()}
        return there(function(*plain(tuple(arguments)), **named))

    def __getitem__(self, index):
        refuse_host([index])
        return there(self.view(np.ndarray)[plain(index)])

    def __setitem__(self, index, value):
        refuse_host([index, value])
        self.view(np.ndarray)[plain(index)] = plain(value)

    def __index__(self):
        raise TypeError("an array of the device is no index")


class StrictArrays:
    """NumPy over such arrays, in the place of CuPy."""

    def __getattr__(self, name):
        function = getattr(np, name)

        def strict(*arguments, **named):
            if name not in ("asarray", "array"):
                refuse_host(arguments)
            return there(function(*plain(arguments), **named))

        return strict


class StrictLibrary(DeviceLibrary):
    xp = StrictArrays()

    def launch(self, kernel, size, *arguments):
        refuse_host(arguments)
        super().launch(kernel, size, *plain(arguments))

    def launch_blocks(self, kernel, blocks, threads, *arguments):
        refuse_host(arguments)
        super().launch_blocks(kernel, blocks, threads, *plain(arguments))

    def stable_order(self, keys):
        return self.xp.argsort(keys, kind="stable")

    def group_rows(self, words, counts):
        refuse_host([*words.values(), counts])
        groups = super().group_rows({word: plain(values) for word, values in words.items()}, plain(counts))
        return groups._replace(
            words={word: there(values) for word, values in groups.words.items()},
            counts=there(groups.counts),
            of_row=there(groups.of_row),
        )

    def empty(self, shape, dtype):
        return super().empty(shape, dtype).view(Strict)

    def start_download(self, array, pinned):
        assert isinstance(array, Strict)
        assert not isinstance(pinned, OnDevice)
        return super().start_download(plain(array), pinned)

    def start_upload(self, pinned, array):
        assert isinstance(array, Strict)
        return super().start_upload(pinned, plain(array))

    def bring(self, array):
        assert isinstance(array, np.ndarray)
        return there(plain(array).copy())


class StrictFrames(PandasFrames):
    xp = StrictArrays()

    def array(self, series):
        return np.asarray(series).view(Strict)

    def full(self, size, value, dtype):
        return there(np.full(size, value, dtype))

    def frame(self, columns, index=None):
        assert all(isinstance(array, Strict) for array in columns.values())
        return super().frame({name: plain(array) for name, array in columns.items()}, index)


@pytest.fixture(params=["pandas", "device", "parquet", "csv"])
def table(request, tmp_path, monkeypatch):
    monkeypatch.setattr("gpupif.frames.base.frame_library", StrictFrames)
    frame = census(60)
    if request.param in ("parquet", "csv"):
        file = tmp_path / f"t.{request.param}"
        {"parquet": frame.to_parquet, "csv": frame.to_csv}[request.param](file, index=False)
        return file
    return frame if request.param == "pandas" else DeviceFrame(frame)


@pytest.mark.parametrize("grouping", ["rotation", "cudf"])
@pytest.mark.parametrize("share", [0, 1])
@pytest.mark.parametrize("known", [None, ["age", "region", "tenure"]])
def test_host_and_device_are_kept_apart(monkeypatch, tmp_path, table, share, grouping, known):
    expected = gpupif.score(census(60), list(MEASURES), device="cpu", known=known)

    class Engine(CudaEngine):
        frames = StrictFrames()

    engine = Engine(libraries=[StrictLibrary(), StrictLibrary()], share=share, grouping=grouping)
    monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _: engine)
    scores = gpupif.score(table, list(MEASURES), known=known)
    scores.to_parquet(tmp_path / "scores.parquet")
    assert scores.fig().to_dict() == expected.fig().to_dict()
    assert scores.pif(50) == expected.pif(50)
    assert scores.top(3)["value"].astype(str).tolist() == expected.top(3)["value"].astype(str).tolist()
    assert scores.summary().to_json()
    for measure in MEASURES:
        np.testing.assert_array_equal(plain(scores.array(measure)), expected.array(measure), err_msg=measure)


PEOPLE = {"a": ["age", "region"], "b": []}


@pytest.mark.parametrize("share", [0, 1])
@pytest.mark.parametrize("nobody", [False, True])
def test_weights_attackers_and_a_population(monkeypatch, tmp_path, table, share, nobody):
    weights = np.arange(60) % 4 / 4 if nobody else np.arange(60) % 4 + 0.1
    frame = census(60).assign(w=weights)
    arguments = {"attackers": PEOPLE, "weights": "w", "columns": ["age", "sex"]}
    arguments |= {"population": census(90), "population_lacks": "count"}
    expected = gpupif.score(frame, list(MEASURES), device="cpu", **arguments)

    class Engine(CudaEngine):
        frames = StrictFrames()

    if isinstance(table, Path):
        {".parquet": frame.to_parquet, ".csv": frame.to_csv}[table.suffix](table, index=False)
    else:
        table = frame if type(table) is pd.DataFrame else DeviceFrame(frame)
    engine = Engine(libraries=[StrictLibrary(), StrictLibrary()], share=share)
    monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _: engine)
    scores = gpupif.score(table, list(MEASURES), **arguments)
    scores.to_parquet(tmp_path / "scores.parquet")
    assert scores.summary().to_json()
    for measure in (*MEASURES, "population_size"):
        assert type(scores.worst(measure)) is type(scores["a"][measure])
        for name in PEOPLE:
            found, wanted = scores[name].array(measure), expected[name].array(measure)
            np.testing.assert_array_equal(plain(found), wanted, err_msg=measure)
    for name in PEOPLE:
        assert scores[name].top(3)["value"].astype(str).tolist() == expected[name].top(3)["value"].astype(str).tolist()


@pytest.mark.parametrize("table", ["pandas", "cudf"], indirect=True)
@pytest.mark.parametrize("share", [0, 1])
def test_missing_values_that_match_every_value(monkeypatch, table, share):
    """The last target has its cohorts to itself."""
    frame = census(12)[["age", "sex", "tenure"]]
    frame["age"] = frame["age"].where(np.arange(12) % 3 > 0)
    arguments = {"missing": "wildcard", "known": ["sex", "tenure"]}
    expected = gpupif.score(frame, list(MEASURES), device="cpu", **arguments)

    class Engine(CudaEngine):
        frames = StrictFrames()

    engine = Engine(libraries=[StrictLibrary(), StrictLibrary()], share=share, grouping="cudf")
    monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _: engine)
    scores = gpupif.score(frame if type(table) is pd.DataFrame else DeviceFrame(frame), list(MEASURES), **arguments)
    for measure in MEASURES:
        np.testing.assert_array_equal(plain(scores.array(measure)), expected.array(measure), err_msg=measure)


def test_the_strict_arrays_are_strict():
    device, host = there(np.arange(3)), np.arange(3)
    for mixed in (
        lambda: device + host,
        lambda: host * device,
        lambda: device[host],
        lambda: np.concatenate([device, host]),
        lambda: StrictLibrary.xp.take(device, host),
        lambda: range(3)[device[0]],
    ):
        with pytest.raises(TypeError):
            mixed()
    with pytest.raises(TypeError):
        device[:] = host
    assert isinstance(device + device, Strict)
    assert isinstance(device.sum(), Strict)
