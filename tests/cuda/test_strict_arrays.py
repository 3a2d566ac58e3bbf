"""The CUDA engine over arrays that refuse what CuPy's refuse: host and device in one expression, silent copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.datasets import census
from gpupif.engines.cuda.engine import CudaEngine
from gpupif.measures import MEASURES
from tests.helpers.gpu.numpy_device import DeviceFrame
from tests.helpers.gpu.on_device import HASHED
from tests.helpers.gpu.strict import Strict, StrictFrames, StrictLibrary, plain, there
from tests.helpers.gpu.without_gpu import need_stand_in

need_stand_in()

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("grouping", ["rotation", "cudf"])
@pytest.mark.parametrize("share", [0, 1])
@pytest.mark.parametrize("known", [None, ["age", "region", "tenure"]])
def test_host_and_device_are_kept_apart(monkeypatch, tmp_path, table, share, grouping, known):
    measures = HASHED if grouping == "cudf" else list(MEASURES)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(census(60), measures, known=known)

    class Engine(CudaEngine):
        frames = StrictFrames()

    engine = Engine(libraries=[StrictLibrary(), StrictLibrary()], share=share, grouping=grouping)
    monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _: engine)
    scores = gpupif.score(table, measures, known=known)
    scores.to_parquet(tmp_path / "scores.parquet")
    assert scores.fig().to_dict() == expected.fig().to_dict()
    assert scores.pif(50) == expected.pif(50)
    assert scores.top(3)["value"].astype(str).tolist() == expected.top(3)["value"].astype(str).tolist()
    assert scores.summary().to_json()
    for measure in measures:
        np.testing.assert_array_equal(plain(scores.array(measure)), expected.array(measure), err_msg=measure)


PEOPLE = {"a": ["age", "region"], "b": []}


@pytest.mark.parametrize("share", [0, 1])
@pytest.mark.parametrize("nobody", [False, True])
def test_host_and_device_stay_apart_with_weights_and_a_population(monkeypatch, tmp_path, table, share, nobody):
    weights = np.arange(60) % 4 / 4 if nobody else np.arange(60) % 4 + 0.1
    frame = census(60).assign(w=weights)
    arguments = {"attackers": PEOPLE, "weights": "w", "columns": ["age", "sex"]}
    arguments |= {"population": gpupif.Population(census(90), lacks="count")}
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame, list(MEASURES), **arguments)

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
        assert type(scores.worst[measure]) is type(scores.against("a")[measure])
        for name in PEOPLE:
            found, wanted = scores.against(name).array(measure), expected.against(name).array(measure)
            np.testing.assert_array_equal(plain(found), wanted, err_msg=measure)
    for name in PEOPLE:
        assert (
            scores.against(name).top(3)["value"].astype(str).tolist()
            == expected.against(name).top(3)["value"].astype(str).tolist()
        )


@pytest.mark.parametrize("table", ["pandas", "cudf"], indirect=True)
@pytest.mark.parametrize("grouping", ["rotation", "cudf"])
@pytest.mark.parametrize("share", [0, 1])
def test_host_and_device_stay_apart_with_wildcards(monkeypatch, table, share, grouping):
    """The last scored column has cohorts of its own."""
    frame = census(12)[["age", "sex", "tenure"]]
    frame["age"] = frame["age"].where(np.arange(12) % 3 > 0)
    arguments = {"missing": "wildcard", "known": ["sex", "tenure"]}
    measures = HASHED if grouping == "cudf" else list(MEASURES)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame, measures, **arguments)

    class Engine(CudaEngine):
        frames = StrictFrames()

    engine = Engine(libraries=[StrictLibrary(), StrictLibrary()], share=share, grouping=grouping)
    monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _: engine)
    scores = gpupif.score(frame if type(table) is pd.DataFrame else DeviceFrame(frame), measures, **arguments)
    for measure in measures:
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
