"""Sampling weights and several attackers on a Dask frame, without a cluster: the same bits as in memory."""

from __future__ import annotations

import dask
import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.measures import MEASURES
from gpupif.pipeline import partition_routes as routes
from tests.helpers.dask_frames import assert_same, cut

pytestmark = [pytest.mark.dask, pytest.mark.usefixtures("dask_in_one_thread")]

ALL = list(MEASURES)
THREE = {"neighbour": ["age", "sex"], "employer": ["region", "age"], "nobody": []}


def test_weights_of_many_rows_have_the_bits_of_memory():
    """Cohorts have rows in several partitions, and weights are no multiples of a power of two."""
    frame = gpupif.datasets.census(3000, columns=5)
    frame["w"] = np.random.default_rng(0).gamma(2, 30, 3000).round(1)
    frame.loc[::50, "w"] = 0
    arguments = {"weights": "w", "known": ["age", "w", "region"], "columns": ["sex", "age"]}
    scores = gpupif.score(cut(frame, [700, 1500]), ALL, dtype="float32", **arguments)
    with gpupif.config(device="cpu"):
        assert_same(scores, gpupif.score(frame, ALL, dtype="float32", **arguments))


@pytest.mark.slow
@pytest.mark.parametrize("heavy", [0.0, 0.5])
def test_rows_of_weight_zero_do_not_change_the_order_of_sums(heavy, monkeypatch):
    random = np.random.default_rng(3)
    frame = pd.DataFrame({"x": random.integers(0, 40, 400), "y": random.integers(0, 3, 400), "z": 1})
    frame["w"] = np.where(random.random(400) < 0.5, 0, random.gamma(2, 9, 400))
    monkeypatch.setattr(routes, "HEAVY", heavy)
    for known in (["y"], ["y", "x"], None):
        arguments = {"known": known, "weights": "w", "accuracies": {"x": 0.7}}
        with gpupif.config(device="cpu"):
            expected = gpupif.score(frame, ALL, **arguments)
        assert_same(gpupif.score(cut(frame, [90, 91, 300]), ALL, **arguments), expected)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [None, "w"])
def test_weighted_scores_against_attackers_are_as_in_memory(tmp_path, weights):
    frame = gpupif.datasets.census(200, columns=4).assign(w=np.arange(200) % 5 / 4)
    lazy = cut(frame, [60, 150])
    arguments = {"attackers": THREE, "weights": weights, "columns": ["age", "marital_status"]}
    scores = gpupif.score(lazy, ["cig", "prior", "cohort_size"], **arguments)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame, ["cig", "prior", "cohort_size"], **arguments)
    assert scores.attackers == tuple(THREE)
    for name in THREE:
        assert_same(scores.against(name), expected.against(name))
    for measure in scores.measures:
        worst = scores.worst[measure].compute()
        pd.testing.assert_frame_equal(worst, expected.worst[measure])
        assert worst.dtypes.tolist() == scores.worst[measure].dtypes.tolist()
    scores.to_parquet(tmp_path / "scores", write_index=False)
    written = pd.read_parquet(tmp_path / "scores")
    assert list(written.columns) == expected.to_arrow().column_names
    np.testing.assert_array_equal(written["neighbour_cig_age"], expected.against("neighbour").cig["age"])
    assert "neighbour, employer, nobody" in repr(scores)


def test_the_table_is_read_once_for_all_attackers():
    calls = []

    def count(number):
        calls.append(number)
        return gpupif.datasets.census(50, seed=number, columns=4)

    import dask.dataframe as dd

    meta = gpupif.datasets.census(1, columns=4).iloc[:0]
    scores = gpupif.score(dd.from_map(count, range(3), meta=meta), "cig", attackers=THREE)
    dask.compute(*(scores.against(name).cig for name in THREE))
    assert sorted(calls) == [0, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        ({"weights": "v"}, ["weights", "no column 'v'"]),
        ({"attackers": {"a": ["agee"]}}, ["attackers: 'a'", "'agee'"]),
        ({"attackers": {}}, ["attackers", "at least one"]),
    ],
)
def test_bad_arguments_are_refused_at_once(arguments, fragments):
    lazy = cut(pd.DataFrame({"age": [1, 2], "w": [-1, 2]}), [1])
    with pytest.raises(gpupif.InputError) as caught:
        gpupif.score(lazy, **arguments)
    assert [fragment for fragment in fragments if fragment not in str(caught.value)] == []


@pytest.mark.parametrize(("weights", "match"), [([-1, 2], "'w': expected .* got -1"), ([0, 0], "all 2 are 0")])
def test_bad_weights_are_refused_when_dask_computes(weights, match):
    scores = gpupif.score(cut(pd.DataFrame({"age": [1, 2], "w": weights}), [1]), weights="w")
    with pytest.raises(gpupif.InputError, match=match):
        scores.cig.compute()
