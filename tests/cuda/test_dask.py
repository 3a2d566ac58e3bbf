"""Dask frames whose partitions lie on the device; without a GPU pandas' frames stand for cuDF's."""

from __future__ import annotations

from importlib.util import find_spec

import dask.dataframe as dd
import numpy as np
import pytest

import gpupif
from gpupif.measures import MEASURES
from gpupif.utils.arrays import on_host
from tests.helpers.gpu.on_device import Frames, to_device, to_pandas
from tests.helpers.gpu.without_gpu import WITHOUT_GPU, need, need_frames

need_frames()
# By it Dask knows what to do with frames of cuDF.
need(WITHOUT_GPU or find_spec("dask_cudf") is not None, "dask-cudf")

pytestmark = [pytest.mark.usefixtures("dask_in_one_thread"), pytest.mark.gpu, pytest.mark.dask]


def part(frame):
    return to_device(frame)


def test_partitions_on_the_device_are_scored_there_with_the_same_bits():
    """Scores are frames on the device, with the bits of partitions on the host."""
    frame = gpupif.datasets.census(90).set_index(np.arange(90) * 3)
    parts = [frame.iloc[:30], frame.iloc[30:30], frame.iloc[30:]]
    there = dd.from_map(part, parts, meta=to_device(frame.iloc[:0]), enforce_metadata=False)
    here = dd.from_map(lambda one: one, parts, meta=frame.iloc[:0], enforce_metadata=False)
    with gpupif.config(device="cuda"):
        scores, expected = (gpupif.score(lazy, list(MEASURES)).persist() for lazy in (there, here))
    with gpupif.config(device="cpu"):
        alone = gpupif.score(frame, list(MEASURES))
    for measure in MEASURES:
        found = [scores[measure].partitions[number].compute() for number in range(3)]
        assert all(Frames().holds(one) for one in found)
        several = [to_pandas(one) for one in found]
        wanted = expected[measure].compute()
        values = np.concatenate([on_host(one.to_numpy()) for one in several])
        assert values.tobytes() == wanted.to_numpy().tobytes()
        assert np.concatenate([one.index for one in several]).tolist() == frame.index.tolist()
        np.testing.assert_array_equal(values, alone[measure])


def test_risk_of_partitions_on_the_device_is_that_of_the_cpu():
    frame = gpupif.datasets.census(40)
    parts = [frame.iloc[:15], frame.iloc[15:15], frame.iloc[15:]]
    there = dd.from_map(part, parts, meta=to_device(frame.iloc[:0]), enforce_metadata=False)
    asked = (["sex", "tenure"], "education")
    with gpupif.config(device="cuda"):
        found = gpupif.risk(there, *asked)
    with gpupif.config(device="cpu"):
        alone = gpupif.risk(frame, *asked)
    assert found.device != "cpu"
    assert (found.classes, found.groups) == (alone.classes, alone.groups)
    assert found.worst == alone.worst


def test_auto_takes_the_device_if_it_exists():
    frame = gpupif.datasets.census(40)
    lazy = dd.from_map(lambda one: one, [frame], meta=frame.iloc[:0], enforce_metadata=False)
    scores = gpupif.score(lazy, "cig").cig.compute()
    with gpupif.config(device="cpu"):
        np.testing.assert_array_equal(scores, gpupif.score(frame, "cig").cig)


@pytest.mark.parametrize("missing", ["category", "wildcard"])
def test_workers_with_a_device_score_any_attack_as_the_cpu(missing):
    people = gpupif.datasets.census(40, columns=4)
    people["region"] = people["region"].where(people.index % 4 > 0)
    table = people[::2].assign(people=np.arange(20) % 3)
    asked = {
        "attackers": {"neighbour": ["age"], "any two": gpupif.AnyKnown(2, among=["region", "age", "sex"])},
        "columns": ["sex", "region"],
        "weights": "people",
        "population": people,
        "missing": missing,
    }
    measures = ["cig", "wcig", "cohort_size", "emd"]
    with gpupif.config(device="cuda"):
        scores = gpupif.score(dd.from_pandas(table, npartitions=2, sort=False), measures, **asked).frame().compute()
    with gpupif.config(device="cpu"):
        expected = gpupif.score(table, measures, **asked).to_arrow().to_pandas(ignore_metadata=True)
    assert scores.columns.tolist() == expected.columns.tolist()
    for name in expected:
        assert scores[name].to_numpy().tobytes() == expected[name].to_numpy().tobytes(), name
