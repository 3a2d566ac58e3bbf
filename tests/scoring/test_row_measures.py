"""Measures of rows: the equivalence class over all that the attacker knows, 1 / its size, and whether it is one row."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpupif
from tests.helpers import naive_attack
from tests.helpers.pieces import in_pieces
from tests.helpers.tables import SHARED_FIXTURES, frame_of, tables

pytestmark = pytest.mark.every_engine

OF_ROWS = ["class_size", "reidentification_risk", "unique"]


@pytest.mark.slow
@given(table=tables(), data=st.data())
@SHARED_FIXTURES
def test_measures_of_rows_are_as_counted_by_hand(engine, table, data):
    known = data.draw(st.lists(st.sampled_from(list(table)), unique=True))
    scores = gpupif.score(frame_of(table), ["cohort_size", *OF_ROWS], columns=list(table), known=known)
    sizes = [len(naive_attack.cohort_rows(table, row, known)) for row in range(scores.rows)]
    for name in table:
        assert scores.class_size[name].tolist() == sizes
        assert scores.reidentification_risk[name].tolist() == [1 / size for size in sizes]
        assert scores.unique[name].tolist() == [float(size == 1) for size in sizes]
        if name not in known:
            assert scores.cohort_size[name].tolist() == sizes


@pytest.mark.slow
@given(table=tables(), data=st.data())
@SHARED_FIXTURES
def test_measures_of_all_rows_add_up_to_the_risks_of_the_table(engine, table, data):
    known = data.draw(st.lists(st.sampled_from(list(table)), min_size=1, unique=True))
    frame = frame_of(table)
    scores = gpupif.score(frame, OF_ROWS, columns=known[:1], known=known)
    sizes, risks, unique = (scores.array(name)[0] for name in OF_ROWS)
    classes = gpupif.models.class_risks(list(pd.Series(sizes).groupby(naive_classes(table, known)).first()))
    assert (classes.k, classes.uniques) == (sizes.min(), unique.sum())
    assert risks.sum() == pytest.approx(classes.classes)
    assert risks.mean() == pytest.approx(classes.marketer)
    assert risks.max() == pytest.approx(classes.prosecutor.highest)


def naive_classes(table, known):
    """Return for each row the first row of its class."""
    return [naive_attack.cohort_rows(table, row, known)[0] for row in range(len(next(iter(table.values()))))]


def test_measures_of_rows_have_the_values_of_the_worked_example(engine):
    table = pd.DataFrame({"age": [30, 30, 30, 41], "sex": [*"ffmm"], "job": [*"aabc"]})
    scores = gpupif.score(table, OF_ROWS, columns=["age", "job"], known=["age", "sex"])
    # An attacker who knows age and sex cannot tell the first two rows apart, whichever column is scored.
    for name in ("age", "job"):
        assert scores.class_size[name].tolist() == [2, 2, 1, 1]
        assert scores.reidentification_risk[name].tolist() == [0.5, 0.5, 1.0, 1.0]
        assert scores.unique[name].tolist() == [0.0, 0.0, 1.0, 1.0]
    top = scores.top(1, by="reidentification_risk")
    assert (top["row"][0], top["column"][0], top["unique"][0]) == (2, "age", 1.0)


def test_sampling_weights_count_people_in_place_of_rows(engine):
    table = pd.DataFrame({"sex": [*"ffmmx"], "w": [0.25, 0.5, 3.0, 1.0, 0.0]})
    scores = gpupif.score(table, OF_ROWS, columns=["sex"], known=["sex"], weights="w")
    assert scores.class_size["sex"].tolist() == [0.75, 0.75, 4.0, 4.0, 0.0]
    assert scores.reidentification_risk["sex"].tolist() == [1.0, 1.0, 0.25, 0.25, 0.0]
    assert scores.unique["sex"].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    narrow = gpupif.score(table, OF_ROWS, columns=["sex"], known=["sex"], weights="w", dtype="float32")
    assert [narrow[name]["sex"].dtype for name in OF_ROWS] == [np.float64, np.float32, np.float32]


def test_individual_risk_follows_from_rows_and_people_of_a_class(engine):
    table = pd.DataFrame({"sex": [*"ffmmxyyy"], "w": [10.0, 20.0, 0.0, 4.0, 1e6, 0.0, 0.25, 0.5]})
    scores = gpupif.score(table, ["individual_risk", "class_size"], columns=["sex"], known=["sex"], weights="w")
    # The classes have two rows and 30 people, two rows (one of weight 0) and 4 people, one row and a million people,
    # and three rows and less than one person.
    two, half = 2 / 30, 2 / 4
    both, few = (p / (1 - p) * (1 - p / (1 - p) * math.log(1 / p)) for p in (two, half))
    alone = 1e-6 / (1 - 1e-6) * math.log(1e6)
    expected = [both, both, few, few, alone, 1 / 3, 1 / 3, 1 / 3]
    assert scores.individual_risk["sex"].tolist() == pytest.approx(expected, rel=1e-14)
    narrow = gpupif.score(table, "individual_risk", columns=["sex"], known=["sex"], weights="w", dtype="float32")
    assert narrow.individual_risk["sex"].tolist() == scores.individual_risk["sex"].astype("float32").tolist()
    # If each row is a person, the population has nobody else.
    plain = gpupif.score(table, [*OF_ROWS, "individual_risk"], columns=["sex"], known=["sex"])
    assert plain.individual_risk.equals(plain.reidentification_risk)


def test_a_row_that_lacks_a_value_is_in_several_classes(engine):
    table = pd.DataFrame({"age": [30, 30, None, 41], "sex": ["f", "m", "f", None]})
    scores = gpupif.score(table, OF_ROWS, missing="wildcard")
    assert scores.class_size["age"].tolist() == scores.class_size["sex"].tolist() == [2, 1, 3, 2]
    assert scores.unique["age"].tolist() == [0.0, 1.0, 0.0, 0.0]


def test_a_single_known_column_gives_no_warning(engine):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for known in (["age"], None):
            scores = gpupif.score(pd.DataFrame({"age": [30, 30, 41]}), OF_ROWS, columns=["age"], known=known)
            assert scores.class_size["age"].tolist() == [2, 2, 1]


@pytest.mark.slow
def test_files_scored_in_parts_have_the_bits_of_memory(tmp_path):
    census = gpupif.datasets.census(3000, seed=5)
    known = list(census)[:4]
    census.to_parquet(tmp_path / "in.parquet")
    arguments = {"columns": [known[0], list(census)[5]], "known": known}
    with gpupif.config(device="cpu"):
        expected = gpupif.score(census, OF_ROWS, **arguments)
    with in_pieces(700, 300), gpupif.config(device="cpu"):
        gpupif.score_files(tmp_path / "in.parquet", tmp_path / "out.parquet", OF_ROWS, **arguments)
    written = pl.read_parquet(tmp_path / "out.parquet")
    for measure in OF_ROWS:
        for name in arguments["columns"]:
            assert written[f"{measure}_{name}"].to_list() == expected[measure][name].tolist()
    sizes = census.groupby(known, dropna=False, observed=True)[known[0]].transform("size")
    assert expected.class_size[known[0]].tolist() == sizes.tolist()


on_the_cpu = pytest.mark.usefixtures("on_cpu")


on_the_cpu = pytest.mark.usefixtures("on_cpu")


@pytest.fixture
def on_cpu():
    with gpupif.config(device="cpu"):
        yield


WEIGHTED = pd.DataFrame({"a": [1, 2, 3, 3], "b": [1, 1, 1, 1], "w": [0, 5, 0.5, 2]})
BOTH = {"one": ["a"], "other": ["b"]}


@on_the_cpu
@on_the_cpu
def test_a_class_of_weight_zero_ranks_last_in_memory_and_files(tmp_path):
    arguments = {"columns": ["b"], "known": ["a"], "weights": "w"}
    scores = gpupif.score(WEIGHTED, OF_ROWS, **arguments)
    assert scores.class_size["b"].tolist() == [0, 5, 2.5, 2.5]
    assert scores.top(4)["row"].tolist() == [2, 3, 1, 0]
    WEIGHTED.to_parquet(tmp_path / "in.parquet")
    stored = gpupif.score_files(tmp_path / "in.parquet", tmp_path / "out.parquet", OF_ROWS, **arguments)
    # All rows have the same value, which the summary shows once.
    assert stored.summary().top["row"].tolist() == scores.summary().top["row"].tolist() == [2]


@on_the_cpu
@on_the_cpu
def test_an_attacker_who_finds_nobody_is_not_the_worst():
    arguments = {"columns": ["b"], "attackers": BOTH, "weights": "w"}
    scores = gpupif.score(WEIGHTED, OF_ROWS, **arguments)
    lazy = gpupif.score(dask_frame(WEIGHTED), OF_ROWS, **arguments)
    sizes = [7.5, 5, 2.5, 2.5]
    for measure, expected in zip(OF_ROWS, (sizes, [1 / size for size in sizes], [0.0] * 4), strict=True):
        assert scores.worst[measure]["b"].tolist() == pytest.approx(expected)
        assert lazy.worst[measure].compute()["b"].tolist() == pytest.approx(expected)
    with pytest.raises(gpupif.InputError, match=r"got 'nobody'\. There are 'one', 'other'"):
        scores.against("nobody")


def dask_frame(frame):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)


@on_the_cpu
def test_the_worst_attacker_has_the_highest_individual_risk(tmp_path):
    """An attacker who knows a finds three rows of few people; an attacker who knows b finds two rows of more people."""
    table = pd.DataFrame({"a": [1, 1, 1, 2, 2, 2], "b": [*"xxyyyy"], "c": [*"pqpqpq"], "w": [9.0, 8, 1, 20, 30, 40]})
    table.to_parquet(tmp_path / "in.parquet")
    asked = {"columns": ["c"], "known": gpupif.AnyKnown(1, among=["a", "b"]), "weights": "w"}
    expected = gpupif.score(table, "individual_risk", **asked)
    each = {name: gpupif.score(table, "individual_risk", columns=["c"], known=[name], weights="w") for name in "ab"}
    several = np.stack([each[name].array("individual_risk")[0] for name in "ab"])
    np.testing.assert_array_equal(expected.array("individual_risk")[0], several.max(axis=0))
    best = expected.top(6)
    for known, row in zip(best["known"], best["row"], strict=True):
        assert known == "ab"[several[:, row].argmax()]
    assert set(best["known"]) == {"a", "b"}
    with in_pieces(2, 3):
        stored = gpupif.score_files(tmp_path / "in.parquet", tmp_path / "out.parquet", "individual_risk", **asked)
    lazy = gpupif.score(dask_frame(table), "individual_risk", **asked)
    columns = ["row", "known", "individual_risk"]
    for found in (stored, lazy):
        pd.testing.assert_frame_equal(found.top(6)[columns], best[columns], check_dtype=False, check_exact=True)


@on_the_cpu
@on_the_cpu
def test_an_unknown_score_against_an_attacker_hides_no_other():
    """All rows with the first row's a lack c; the attacker who knows b learns c for certain."""
    table = pd.DataFrame({"a": [1, 2, 2], "b": ["x", "x", "y"], "c": [None, "u", "v"]})
    arguments = {"columns": ["c"], "missing": "wildcard"}
    for attackers in ({"one": ["a"], "other": ["b"]}, {"other": ["b"], "one": ["a"]}):
        memory = gpupif.score(table, "entropy", attackers=attackers, **arguments).worst["entropy"]
        lazy = gpupif.score(dask_frame(table), "entropy", attackers=attackers, **arguments).worst["entropy"].compute()
        np.testing.assert_array_equal(memory["c"], [0.0, 0.0, 0.0])
        np.testing.assert_array_equal(lazy["c"], memory["c"])


@on_the_cpu
@on_the_cpu
@pytest.mark.parametrize("arguments", [{}, {"weights": "w"}, {"missing": "wildcard"}], ids=["plain", "weights", "wild"])
def test_summaries_of_row_measures_are_the_same_in_memory_and_files(tmp_path, arguments):
    table = pd.DataFrame({"a": [1, 1, 2, 3], "b": [*"xxyy"], "w": [0.5, 1.5, 4.0, 0.0]})
    table.to_parquet(tmp_path / "in.parquet")
    arguments = {"columns": ["a", "b"], "known": ["a", "b"], **arguments}
    memory = gpupif.score(tmp_path / "in.parquet", OF_ROWS, **arguments).summary()
    files = gpupif.score_files(tmp_path / "in.parquet", tmp_path / "out.parquet", OF_ROWS, **arguments).summary()
    weighted = "weights" in arguments
    expected = {
        "reidentification_risk_mean": (0.5 + 0.5 + 0.25 + 0) / 4 if weighted else 0.75,
        "reidentification_risk_max": 0.5 if weighted else 1.0,
        "unique_mean": 0.0 if weighted else 0.5,
        "class_size_min": 2.0 if weighted else 1.0,
    }
    for found in (memory, files):
        for key, value in expected.items():
            assert found.columns[key].tolist() == [value, value]
        text = str(found)
        assert all(head in text for head in ("mean risk", "unique rows"))
        assert "Weight near 0" not in text


@on_the_cpu
@on_the_cpu
def test_a_run_of_other_temporary_files_is_not_resumed(tmp_path, monkeypatch):
    from gpupif.out_of_core import scores_writer as write
    from gpupif.out_of_core import scoring_run as run

    WEIGHTED.to_parquet(tmp_path / "in.parquet")
    arguments = {"columns": ["b"], "known": ["a"], "resume": True}

    def end(*_):
        raise RuntimeError("ended here")

    with monkeypatch.context() as broken:
        broken.setattr(write.ScoreWriter, "write", end)
        with pytest.raises(RuntimeError, match="ended here"):
            gpupif.score_files(tmp_path / "in.parquet", tmp_path / "out.parquet", OF_ROWS, **arguments)
    monkeypatch.setattr(run, "FORMAT", run.FORMAT + 1)
    with pytest.raises(
        gpupif.errors.OutputError, match=r"begun by another version of gpupif .format of temporary files"
    ):
        gpupif.score_files(tmp_path / "in.parquet", tmp_path / "out.parquet", OF_ROWS, **arguments)


def test_row_measures_share_memory_over_all_known_columns():
    with gpupif.config(device="cpu"):
        scores = gpupif.score(gpupif.datasets.census(500), ["cig", *OF_ROWS])
    for name in OF_ROWS:
        values = scores.array(name)
        assert values.shape == (10, 500)
        assert np.shares_memory(values[0], values[9])
        assert not values.flags.writeable
    assert not np.shares_memory(scores.array("cig")[0], scores.array("cig")[9])
    assert scores.measures == ("cig", *OF_ROWS)
