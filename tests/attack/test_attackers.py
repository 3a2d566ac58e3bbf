"""Several attackers at once: each as alone, and the worst of them."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.engines.distinct_table import DistinctTable
from gpupif.errors import ColumnNotFoundError, InputError, NothingKnownWarning, OutputError
from gpupif.measures import MEASURES
from tests.helpers import naive_attack
from tests.helpers.command_line import FRAME, assert_refused
from tests.helpers.configured import configured
from tests.helpers.tables import SHARED_FIXTURES, frame_of, jobs

pytestmark = pytest.mark.every_engine

ALL = list(MEASURES)
THREE = {"neighbour": ["age", "sex"], "employer": ["a=b"], "nobody": []}


def bits(scores):
    return {name: scores.array(name).tobytes() for name in scores.measures}, scores.weights, scores.distinct_rows


@pytest.mark.slow
@given(job=jobs(), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_each_attacker_scores_as_alone_and_the_worst_is_the_highest(engine, job, data):
    table, arguments = job
    arguments.pop("known", None)
    some = st.lists(st.sampled_from(list(table)), unique=True)
    attackers = data.draw(st.dictionaries(st.sampled_from(["a", "b", "a b", "cig"]), some, min_size=1, max_size=3))
    used = {*arguments.get("columns", table), *(name for known in attackers.values() for name in known)}
    given_to = {
        what: {name: value for name, value in arguments.pop(what).items() if name in used}
        for what in ("priors", "accuracies", "distances")
    }
    scores = gpupif.score(frame_of(table), ALL, attackers=attackers, **given_to, **arguments)
    assert scores.attackers == tuple(attackers)
    expected = {}
    for name, known in attackers.items():
        mine = {*arguments.get("columns", table), *known}
        own = {what: {column: x for column, x in by.items() if column in mine} for what, by in given_to.items()}
        assert bits(scores.against(name)) == bits(gpupif.score(frame_of(table), ALL, known=known, **own, **arguments))
        expected[name] = naive_attack.score(table, known=known, **own, **arguments)
    for measure in ALL:
        worst = scores.worst[measure]
        assert list(worst.columns) == scores.columns
        for column in scores.columns:
            cells = zip(*(one[measure][column] for one in expected.values()), strict=True)
            found = [naive_attack.worst_of(measure, cell) for cell in cells]
            np.testing.assert_allclose(worst[column], found, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_repeated_rows_are_collapsed_once_for_all_attackers(monkeypatch, weights, dtype):
    frame = gpupif.datasets.census(3_000, columns=4).assign(w=np.arange(3_000) % 5 / 4)
    attackers = {"a": ["age"], "b": ["sex", "marital_status"], "c": []}
    arguments = {"columns": ["sex", "age"], "weights": weights, "dtype": dtype}
    used = []
    real = DistinctTable.score
    monkeypatch.setattr(DistinctTable, "score", lambda *given: used.append(1) or real(*given))
    scores = configured(gpupif.score, frame, ALL, attackers=attackers, device="cpu", **arguments)
    assert len(used) == 3
    for name, known in attackers.items():
        alone = configured(gpupif.score, frame, ALL, known=known, device="cpu", **arguments)
        assert bits(scores.against(name)) == bits(alone)
        assert scores.against(name).array("cig").dtype == alone.array("cig").dtype
        pd.testing.assert_frame_equal(scores.against(name).top(5), alone.top(5))
    assert len(used) == 3
    with gpupif.config(device="cpu"):
        gpupif.score(frame.assign(age=range(3_000)), "cig", attackers=attackers, columns=["sex", "age"])
    assert len(used) == 3


def test_a_summary_has_the_figures_of_each_attacker(engine):
    scores = gpupif.score(FRAME, attackers=THREE)
    summary = scores.summary()
    for name, known in THREE.items():
        alone = gpupif.score(FRAME, known=known).summary()
        assert summary.summaries[name].pif == alone.pif
        assert summary.attackers.loc[name, "known"] == len(known)
        assert summary.attackers.loc[name, "fig"] == alone.columns["fig"].sum()
        assert summary.attackers.loc[name, "pif_95"] == alone.pif[95]
        assert summary.attackers.loc[name, "csf_max"] == alone.columns["csf_max"].max()
        pd.testing.assert_series_equal(summary.fig.loc[name], alone.columns["fig"], check_names=False)
    for column in FRAME.columns:
        for what in ("mean", "max"):
            values = {name: float(getattr(scores.against(name).cig[column], what)()) for name in THREE}
            row = summary.columns.loc[column]
            assert row[f"cig_{what}"] == pytest.approx(max(values.values()))
            assert values[row[f"worst_by_{what}"]] == pytest.approx(max(values.values()))
    shown = str(summary)
    assert [
        text for text in ("neighbour", "age, sex", "nothing", "Who learns most", "PIF 95") if text not in shown
    ] == []
    for said in (f"{scores.distinct_rows:,} distinct rows", "score ", "cells/s)"):
        assert said in shown
    document = json.loads(summary.to_json(), parse_constant=pytest.fail)
    assert document["attackers"]["employer"]["known"] == ["a=b"]
    assert [row["column"] for row in document["worst"]] == ["age", "sex", "a=b"]


def test_a_summary_shows_only_the_measures_that_were_scored():
    by_csf = gpupif.score(FRAME, "csf", attackers=THREE).summary()
    assert list(by_csf.columns.columns) == ["worst_by_mean", "csf_mean", "worst_by_max", "csf_max"]
    assert by_csf.fig.empty
    neither = gpupif.score(FRAME, "posterior", attackers=THREE).summary()
    assert neither.columns.empty
    assert "neighbour" in str(neither)
    json.loads(neither.to_json())


def test_scores_come_in_the_kind_of_frame_that_was_given():
    for table, kind in ((pl.from_pandas(FRAME), pl.DataFrame), (pa.Table.from_pandas(FRAME), pa.Table)):
        with gpupif.config(device="cpu"):
            assert isinstance(gpupif.score(table, "cig", attackers=THREE).worst["cig"], kind)
    labelled = FRAME.set_index(pd.Index(list("vwxyz"), name="who"))
    worst = gpupif.score(labelled, "cig", attackers=THREE).worst["cig"]
    assert worst.index.equals(labelled.index)
    with pytest.raises(InputError, match="'csf' was not scored"):
        gpupif.score(labelled, "cig", attackers=THREE).worst["csf"]


@pytest.mark.parametrize("keep_input", [False, True])
def test_written_scores_have_columns_for_each_attacker(engine, tmp_path, keep_input):
    table = FRAME.set_index(pd.Index(list("vwxyz"), name="who"))
    scores = gpupif.score(table, ["csf", "cohort_size"], attackers=THREE)
    scores.to_parquet(tmp_path / "scores.parquet", keep_input=keep_input)
    written = pd.read_parquet(tmp_path / "scores.parquet")
    names = [f"{a}_{m}_{c}" for a in THREE for m in ("csf", "cohort_size") for c in FRAME.columns]
    assert list(written.columns) == [*(FRAME.columns if keep_input else []), *names]
    assert written.index.equals(table.index)
    for attacker in THREE:
        for measure in scores.measures:
            for name in FRAME.columns:
                expected = scores.against(attacker)[measure][name]
                np.testing.assert_array_equal(written[f"{attacker}_{measure}_{name}"], expected)
    assert scores.to_arrow().column_names[: len(names)] == names


def test_colliding_names_of_columns_are_refused(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "cig_a": [1, 2]})
    scores = gpupif.score(table, "cig", attackers={"x": [], "x_cig": []})
    with pytest.raises(OutputError, match="x_cig_cig_a"):
        scores.to_parquet(tmp_path / "scores.parquet")


def test_weighted_scores_against_each_attacker_are_as_alone(engine):
    table = FRAME.assign(w=[1.5, 0, 2, 1, 3])
    scores = gpupif.score(table, ALL, attackers=THREE, weights="w")
    for name, known in THREE.items():
        assert bits(scores.against(name)) == bits(gpupif.score(table, ALL, known=known, weights="w"))


BAD = {
    "known beside": ({"attackers": THREE, "known": ["age"]}, InputError, ["attackers", "known=", "both"]),
    "nobody": ({"attackers": {}}, InputError, ["attackers", "at least one", "empty"]),
    "a list": ({"attackers": [["age"]]}, InputError, ["attackers", "dictionary", "list"]),
    "no text": ({"attackers": {1: ["age"]}}, InputError, ["attackers", "text", "1"]),
    "no name": ({"attackers": {" ": ["age"]}}, InputError, ["attackers", "text", "' '"]),
    "a single column": ({"attackers": {"a": "agee"}}, ColumnNotFoundError, ["attackers: 'a': no column 'agee'"]),
    "unknown column": (
        {"attackers": {"a": ["age"], "b": ["agee"]}},
        ColumnNotFoundError,
        ["attackers: 'b'", "'agee'", "Did you mean 'age'"],
    ),
    "a fraction": (
        {"attackers": {"a": 2.5}},
        InputError,
        ["attackers: 'a': expected a list of column names, or how many of them", "got 2.5"],
    ),
    "below 0": ({"attackers": {"a": -1}}, InputError, ["attackers: 'a': expected columns, or how many", "got -1"]),
    "unknown among": (
        {"columns": ["age"], "attackers": {"a": gpupif.AnyKnown(1, among=["agee"])}},
        ColumnNotFoundError,
        ["attackers: 'a': among: no column 'agee'"],
    ),
    "idle prior": (
        {"columns": ["age"], "attackers": {"a": ["age"]}, "priors": {"sex": {"f": 1.0}}},
        InputError,
        ["'sex'", "neither scored nor known"],
    ),
}


@pytest.mark.parametrize(("arguments", "kind", "fragments"), BAD.values(), ids=BAD)
def test_bad_attackers_are_refused(tmp_path, arguments, kind, fragments):
    file = tmp_path / "t.parquet"
    FRAME.to_parquet(file)
    for table in (FRAME, file):
        with pytest.raises(kind) as caught:
            gpupif.score(table, **arguments)
        assert [fragment for fragment in fragments if fragment not in str(caught.value)] == []


def test_a_warning_names_an_attacker_who_knows_only_the_scored_column():
    with pytest.warns(NothingKnownWarning, match="attackers: 'a': the attacker knows only 'age'"):
        gpupif.score(FRAME, attackers={"a": ["age"], "b": ["age", "sex"]})


def test_a_nearly_unique_column_is_warned_of_once():
    table = pd.DataFrame({"id": range(60), "sex": ["f", "m"] * 30})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        gpupif.score(table, attackers={"a": ["id", "sex"], "b": ["id"], "c": []}, columns=["sex"])
    assert len([one for one in told if "'id'" in str(one.message)]) == 1


def test_scores_against_an_attacker_are_found_by_name():
    scores = gpupif.score(FRAME, attackers=THREE)
    assert scores.attackers == tuple(THREE)
    assert scores.against("neighbour").attackers == ("neighbour",)
    assert scores.against("neighbour").known == THREE["neighbour"]
    assert "neighbour, employer, nobody" in repr(scores)
    with pytest.raises(InputError, match="against: expected the name of an attacker, got 'boss'"):
        scores.against("boss")
    with pytest.raises(InputError, match=r"scores\.against\('employer'\)"):
        _ = scores["employer"]
    alone = gpupif.score(FRAME)
    assert alone.attackers == ()
    with pytest.raises(InputError, match="one attacker without a name"):
        alone.against("neighbour")


OPTIONS = ["--attacker", "neighbour=age,sex", "--attacker", 'employer="a=b"', "--attacker", "nobody="]


@pytest.mark.parametrize("output", ["scores.parquet", "scores.csv", "scores.feather"])
def test_the_command_line_writes_scores_against_each_attacker(run, folder, output):
    ended = run("score", "people.csv", "-o", output, "--measures", "cig,cohort_size", *OPTIONS)
    assert (ended.code, ended.err) == (0, "")
    read = {"parquet": pd.read_parquet, "csv": pd.read_csv, "feather": pd.read_feather}[output.partition(".")[2]]
    written, scores = read(folder / output), gpupif.score(FRAME, ["cig", "cohort_size"], attackers=THREE)
    assert list(written.columns) == [f"{a}_{m}_{c}" for a in THREE for m in scores.measures for c in FRAME.columns]
    for name in THREE:
        np.testing.assert_allclose(written[f"{name}_cig_age"], scores.against(name).cig["age"], rtol=1e-15)
    assert "scored against 3 attackers" in ended.out
    assert "Who learns most" in ended.out


def test_json_lists_the_figures_of_each_attacker(run):
    ended = run("score", "people.csv", "-o", "scores.parquet", "--json", *OPTIONS)
    document = json.loads(ended.out, parse_constant=pytest.fail)
    assert list(document["attackers"]) == list(THREE)
    assert document["attackers"]["neighbour"]["pif"]["95"] == gpupif.score(FRAME, known=["age", "sex"]).pif(95)


BAD_OPTIONS = {
    "no columns": (["--attacker", "neighbour"], ["--attacker", "NAME=COLUMN", "'neighbour'"]),
    "no name": (["--attacker", "=age"], ["--attacker", "NAME=COLUMN"]),
    "twice": (["--attacker", "a=age", "--attacker", "a=sex"], ["--attacker", "'a'", "twice"]),
    "known beside": (["--attacker", "a=age", "--known", "sex"], ["--attacker", "--known", "both"]),
    "unknown column": (["--attacker", "a=agee"], ["--attacker", "'a'", "'agee'"]),
}


@pytest.mark.parametrize(("options", "fragments"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options_for_attackers_are_refused(run, folder, options, fragments):
    assert_refused(run("score", "people.csv", "-o", "scores.parquet", *options), fragments)
    assert not (folder / "scores.parquet").exists()
