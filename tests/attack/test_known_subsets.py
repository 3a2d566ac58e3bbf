"""Attackers who know any few of the columns: worst and mean over all of them, against the oracle and `score` itself."""

from __future__ import annotations

import doctest
import json
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

import gpupif
import gpupif.results.scores
from gpupif.attack.attackers import AnyKnown, choose_subsets
from gpupif.engines.cpu.any_known import AnyKnownRun
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.errors import InputError
from gpupif.kernels.log_units import LOG_BITS
from gpupif.measures import resolve_measures
from gpupif.rows.threads import Workers
from gpupif.utils.information import log2_of_shares
from tests.helpers import naive_attack
from tests.helpers.gpu.without_gpu import WITHOUT_GPU
from tests.helpers.scores import ALL, INTEGERS
from tests.helpers.tables import SHARED_FIXTURES, SIMULATED, frame_of, tables

pytestmark = pytest.mark.every_engine

LOW = [measure.name for measure in resolve_measures(ALL) if measure.low_is_risky]
FEW = ("cig", "wcig", "csf", "cohort_size", "entropy")


@pytest.fixture
def one_engine(monkeypatch):
    """Return the CPU engine. tests/cuda has the tests with scores on a device."""
    monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda device: CpuEngine())


def census(rows, columns, simulated_columns=4):
    """Return the census, a small one in the simulator."""
    if SIMULATED:
        rows, columns = min(rows, 16), min(columns, simulated_columns)
    return gpupif.datasets.census(rows, columns=columns)


def worst_and_mean(of_subsets, measure):
    """Over a list of lists of scores."""
    table = np.array(of_subsets, float)
    return (table.min(axis=0) if measure in LOW else table.max(axis=0)), table.sum(axis=0) / len(table)


def check(scores, table, subsets, **arguments):
    """Against the oracle; subsets: by scored column."""
    for name, some in subsets.items():
        found = [naive_attack.score(table, columns=[name], known=list(known), **arguments) for known in some]
        for measure in scores.measures:
            worst, mean = worst_and_mean([each[measure][name] for each in found], measure)
            settings = {"rtol": 1e-11, "atol": 1e-12, "err_msg": f"{measure} of {name}"}
            np.testing.assert_allclose(scores[measure][name], worst, **settings)
            np.testing.assert_allclose(scores.mean[measure][name], mean, **settings)
        weights = [naive_attack.column_weights(table, [name], list(known))[name] for known in some]
        assert scores.weights[name] == pytest.approx(min(weights), abs=1e-12)
        assert scores.mean.weights[name] == pytest.approx(sum(weights) / len(weights), abs=1e-12)


@given(table=tables())
@settings(SHARED_FIXTURES, max_examples=2 if SIMULATED else 8)
def test_knowing_no_or_all_other_columns_is_the_usual_attacker(engine, table):
    frame = frame_of(table)
    for known, usual in ((0, []), (len(table) - 1, None)):
        scores, expected = gpupif.score(frame, FEW, known=known), gpupif.score(frame, FEW, known=usual)
        for measure in FEW:
            pd.testing.assert_frame_equal(scores[measure], expected[measure])
            np.testing.assert_array_equal(scores.mean[measure], expected[measure])
        assert scores.weights == scores.mean.weights == expected.weights
        assert (scores.rig() == expected.rig()).all()


@pytest.mark.slow
@pytest.mark.parametrize("known", [2] if SIMULATED else [1, 2, 3])
def test_scores_are_the_worst_and_mean_over_one_attacker_each(engine, known):
    frame = census(120 if WITHOUT_GPU else 400, 6)
    scores = gpupif.score(frame, FEW, known=known)
    against = {
        some: gpupif.score(frame, FEW, columns=[name for name in frame if name not in some], known=list(some))
        for some in combinations(frame.columns, known)
    }
    for name in frame.columns:
        each = [one for some, one in against.items() if name not in some]
        for measure in FEW:
            worst, mean = worst_and_mean([one[measure][name].to_numpy() for one in each], measure)
            np.testing.assert_array_equal(scores[measure][name], worst)
            # Sums run in the order of the sets of all columns, another one than here.
            np.testing.assert_allclose(scores.mean[measure][name], mean, rtol=1e-13)


def test_keys_of_many_words_are_scored_as_against_one_attacker(engine):
    """20 columns of the census do not fit into one word of 64 bits."""
    frame = census(200, 20, simulated_columns=20)
    names = list(frame)
    columns = names[5:7] if SIMULATED else names
    scores = gpupif.score(frame, FEW, columns, known=AnyKnown(19, among=names))
    expected = gpupif.score(frame, FEW, columns, known=names)
    for measure in FEW:
        pd.testing.assert_frame_equal(scores[measure], expected[measure])
    assert scores.weights == expected.weights


def test_engines_and_their_settings_give_the_same_bits(engine):
    frame = census(300, 7)
    known = 2 if SIMULATED else 3
    usual = CpuEngine()
    scores = gpupif.score(frame, FEW, known=known)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.scoring.score.choose_engine", lambda device: usual)
        patch.setattr("gpupif.engines.cpu.any_known.SLOTS", 1 << 22)
        patch.setattr("gpupif.engines.cpu.any_known.RESULT_BYTES", 1 << 31)
        expected = gpupif.score(frame, FEW, known=known)
    # Cohorts of several values are summed in another order on a GPU.
    exact = {"check_exact": True} if engine.device == "cpu" else {"rtol": 1e-12, "atol": 1e-14}
    for measure in FEW:
        pd.testing.assert_frame_equal(scores[measure], expected[measure], **exact)
        pd.testing.assert_frame_equal(scores.mean[measure], expected.mean[measure], **exact)
    assert scores.weights == expected.weights
    assert scores.mean.weights == expected.mean.weights
    assert scores.distinct_rows == expected.distinct_rows
    assert scores.device == engine.device


def test_numbering_by_slots_and_by_keys_gives_the_same_numbers():
    """The numbers are the same again and again."""
    frame = gpupif.datasets.census(500, columns=5)
    codes = [pd.factorize(frame[name])[0].astype(np.uint32) for name in frame]
    prior = [np.bincount(values) for values in codes]
    job = gpupif.engines.base.Job(
        codes=codes,
        counts=prior,
        priors=[counts / 500 for counts in prior],
        log2_priors=[log2_of_shares(counts, 500) for counts in prior],
        unit_bits=[LOG_BITS] * 5,
        accuracies=[1.0] * 5,
        scored_columns=list(range(5)),
        known=list(range(5)),
        measures=resolve_measures("cig"),
        dtype="float64",
    )
    subsets = choose_subsets(AnyKnown(2), list("abcde"), range(5), range(5), 500)
    found = []
    with Workers(1) as workers:
        for slots in (1 << 22, 60, 0):
            run = AnyKnownRun(job, workers, gpupif.utils.progress.Reporter(False), slots)
            found += [run.score(subsets.sets), run.score(subsets.sets)]
    for other in found[1:]:
        np.testing.assert_array_equal(other.worst["cig"], found[0].worst["cig"])
        np.testing.assert_array_equal(other.mean["cig"], found[0].mean["cig"])


def test_zeros_are_never_below_zero(engine):
    """Measures whose lowest score is the worst are negated before the worst is computed."""
    scores = gpupif.score(pd.DataFrame({"a": [1, 2, 3, 4], "b": [1, 2, 3, 4], "c": [1, 1, 2, 2]}), "entropy", known=1)
    for found in (scores, scores.mean):
        assert (found.entropy["c"] == 0).all()
        assert not np.signbit(found.entropy).any(axis=None)


SOME_COUNT_NOBODY = pd.DataFrame(
    {"a": [*"xyyyz"], "b": [*"pppqr"], "c": [*"12121"], "half": [0.0, 0.25, 0.5, 0.25, 0.0], "w": [0.0, 1, 2, 1, 0]}
)


@pytest.mark.parametrize(("weights", "unit"), [("w", 1.0), ("half", 0.25)])
@pytest.mark.parametrize("measure", ["cohort_size", "class_size"])
def test_a_cohort_of_nobody_is_the_worst_only_if_all_are(engine, measure, weights, unit):
    """Nobody has the first row's a, nor the last row's a and b."""
    asked = {"measures": [measure, "reidentification_risk"], "columns": ["c"], "weights": weights}
    some = gpupif.score(SOME_COUNT_NOBODY, known=AnyKnown(1, among=["a", "b"]), **asked)
    named = gpupif.score(SOME_COUNT_NOBODY, attackers={"a": ["a"], "b": ["b"]}, **asked)
    for scores in (some, named):
        assert scores.worst[measure]["c"].tolist() == [3 * unit, 3 * unit, 3 * unit, unit, 0.0]
        assert scores.mean[measure]["c"].tolist() == [1.5 * unit, 3.5 * unit, 3.5 * unit, 2.5 * unit, 0.0]
    for top, said in ((some.top(5, measure), "known"), (named.top(5, measure), "attacker")):
        assert top.row.tolist() == [3, 0, 1, 2, 4]
        assert top[said].tolist() == ["b", "b", "b", "b", "a"]
        assert top.cohort_size.tolist() == [unit, 3 * unit, 3 * unit, 3 * unit, 0.0]


def test_scores_have_the_types_that_were_asked_for(one_engine):
    frame = gpupif.datasets.census(200, columns=5)
    wide, narrow = (gpupif.score(frame, ALL, known=2, dtype=dtype) for dtype in ("float64", "float32"))
    for measure in ALL:
        assert (narrow[measure].dtypes == (np.int64 if measure in INTEGERS else np.float32)).all()
        np.testing.assert_array_equal(narrow[measure], wide[measure].astype(narrow[measure].dtypes.iloc[0]))
        # A mean of whole numbers is none.
        assert (wide.mean[measure].dtypes == np.float64).all()
        assert (narrow.mean[measure].dtypes == np.float32).all()
    assert (wide.mean.cohort_size >= wide.cohort_size).all(axis=None)
    assert (wide.mean.cig <= wide.cig + 1e-12).all(axis=None)


def test_every_kind_of_table_gets_the_same_scores(one_engine, tmp_path):
    frame = gpupif.datasets.census(300, columns=4)
    frame.to_parquet(tmp_path / "table.parquet")
    expected = gpupif.score(frame, known=2)
    arrow = pa.Table.from_pandas(frame)
    for table in (pl.from_pandas(frame), arrow, tmp_path / "table.parquet"):
        scores = gpupif.score(table, known=2)
        for ours, theirs in ((scores, expected), (scores.mean, expected.mean)):
            np.testing.assert_array_equal(ours.array("cig"), theirs.array("cig"))
    assert isinstance(gpupif.score(arrow, known=2).mean.cig, pa.Table)


def test_priors_and_accuracies_may_come_from_tables(one_engine, tmp_path):
    frame = gpupif.datasets.census(60, columns=3)
    values = frame.sex.unique().tolist()
    priors = {"sex": {value: (place + 1) / 10 for place, value in enumerate(values)} | {"other": 1.0}}
    total = sum(priors["sex"].values())
    priors["sex"] = {value: share / total for value, share in priors["sex"].items()}
    rows = [("sex", value, share) for value, share in priors["sex"].items()]
    pd.DataFrame(rows, columns=["column", "value", "probability"]).to_parquet(tmp_path / "priors.parquet")
    sure = pd.DataFrame({"column": ["sex"], "accuracy": [0.8]})
    expected = gpupif.score(frame, FEW, known=1, priors=priors, accuracies={"sex": 0.8})
    scores = gpupif.score(frame, FEW, known=1, priors=tmp_path / "priors.parquet", accuracies=sure)
    for measure in FEW:
        pd.testing.assert_frame_equal(scores[measure], expected[measure], check_exact=True)
    assert (scores.cig.sex != gpupif.score(frame, FEW, known=1).cig.sex).any()


def test_distances_follow_the_order_of_categories(one_engine):
    """Distances follow the order of the categories, as they do for one attacker."""
    order = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    frame = pd.DataFrame({"a": [0, 0, 1, 1, 2], "level": ["low", "high", "middle", "low", "high"]})
    frame["level"] = frame.level.astype(order)
    pd.testing.assert_frame_equal(gpupif.score(frame, "emd", known=1).emd, gpupif.score(frame, "emd").emd)
    assert not gpupif.score(frame.astype({"level": str}), "emd", known=1).emd.equals(gpupif.score(frame, "emd").emd)


# Samples.


@pytest.mark.slow
def test_sampled_scores_are_those_of_the_drawn_subsets(one_engine):
    frame = gpupif.datasets.census(40, columns=6)
    table = {name: frame[name].tolist() for name in frame}
    scores, again = (gpupif.score(frame, FEW, known=gpupif.AnyKnown(2, subsets=4, seed=7)) for _ in range(2))
    some = {name: scores.subsets.for_column(name) for name in frame}
    assert {len(each) for each in some.values()} == {4}
    assert scores.subsets.sampled
    check(scores, table, some)
    for measure in FEW:
        pd.testing.assert_frame_equal(scores[measure], again[measure], check_exact=True)
        pd.testing.assert_frame_equal(scores.mean[measure], again.mean[measure], check_exact=True)
    other = gpupif.score(frame, known=gpupif.AnyKnown(2, subsets=4, seed=8))
    assert {name: other.subsets.for_column(name) for name in frame} != some


# Uses of the scores.


@pytest.mark.parametrize("by", ["cig", "wcig", "csf", "cohort_size", "emd"])
def test_top_cells_name_the_columns_of_their_worst_attacker(one_engine, by):
    frame = gpupif.datasets.census(60, columns=5)
    table = {name: frame[name].tolist() for name in frame}
    scores = gpupif.score(frame, ["cig", "wcig", "csf", "emd", "cohort_size"], known=2)
    top = scores.top(12, by)
    values = np.sort(scores.array(by).ravel())
    best = values[:12] if by in LOW else values[::-1][:12]
    assert top[by].tolist() == best.tolist()
    for cell in top.itertuples():
        known = cell.known.split(", ")
        assert tuple(known) in scores.subsets.for_column(cell.column)
        alone = gpupif.score(frame, [by, "posterior", "cohort_size"], columns=[cell.column], known=known)
        assert alone[by][cell.column][cell.row] == pytest.approx(getattr(cell, by), rel=1e-12)
        assert alone.posterior[cell.column][cell.row] == cell.posterior
        assert alone.cohort_size[cell.column][cell.row] == cell.cohort_size
        assert cell.value == table[cell.column][cell.row]


def test_top_cells_of_means_name_no_attacker(one_engine):
    frame = gpupif.datasets.census(60, columns=4)
    scores = gpupif.score(frame, known=2)
    means = scores.mean.top(3)
    assert means.cig.tolist() == np.sort(scores.mean.array("cig").ravel())[::-1][:3].tolist()
    assert list(means.columns) == ["row", "index", "column", "value", "cig", "csf", "prior"]
    nothing = gpupif.score(frame, known=0).top(3)
    assert (nothing.known == "").all()
    assert (nothing.cohort_size == 60).all()


def test_a_summary_has_the_worst_and_the_mean(one_engine):
    frame = gpupif.datasets.census(60, columns=4)
    scores = gpupif.score(frame, ["cig", "csf"], known=gpupif.AnyKnown(2, subsets=2, seed=5))
    summary = scores.summary()
    for name in frame:
        assert summary.columns.loc[name, "cig_max"] == scores.cig[name].max()
        assert summary.mean.columns.loc[name, "cig_max"] == scores.mean.cig[name].max()
        assert summary.columns.loc[name, "weight"] == scores.weights[name]
    document = json.loads(summary.to_json())
    assert document["known_any"] == {
        "known": 2,
        "possible": dict.fromkeys(frame, 3),
        "scored": dict.fromkeys(frame, 2),
        "sampled": True,
        "seed": 5,
    }
    assert document["mean"]["columns"][0]["cig_mean"] == pytest.approx(scores.mean.cig[frame.columns[0]].mean())
    assert "2 subsets of 2 columns for each column, drawn of 3 (seed 5)" in " ".join(str(summary).split())
    assert "The mean over attackers" in " ".join(str(summary).split())
    assert "2 subsets of 2 columns" in repr(scores)


def test_written_scores_have_the_worst_and_the_mean(one_engine, tmp_path):
    frame = gpupif.datasets.census(60, columns=3)
    scores = gpupif.score(frame, ["cig", "cohort_size"], known=1)
    scores.to_parquet(tmp_path / "scores.parquet", keep_input=True)
    written = pd.read_parquet(tmp_path / "scores.parquet")
    names = [f"{m}_{what}_{c}" for m in ("cig", "cohort_size") for what in ("worst", "mean") for c in frame]
    assert list(written.columns) == [*frame.columns, *names]
    for name in frame:
        assert written[f"cig_worst_{name}"].tolist() == scores.cig[name].tolist()
        assert written[f"cohort_size_mean_{name}"].tolist() == scores.mean.cohort_size[name].tolist()
    assert scores.mean.to_arrow().column_names == [f"{m}_mean_{c}" for m in ("cig", "cohort_size") for c in frame]


def test_the_examples_of_docstrings_are_right():
    tried = doctest.testmod(gpupif.results.scores)
    assert tried.attempted >= 4
    assert tried.failed == 0


# Bad input.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"known": 4}, "known: expected at most 3, the number of other columns scored, got 4"),
        ({"known": -1}, "known: expected columns, or how many of them, 0 or more; got -1"),
        ({"known": AnyKnown(3, among=["age", "sex"])}, "at most 1, the number of other columns named in among="),
        (
            {"known": 20, "columns": ["age"]},
            "other columns of which the attacker knows any 20, got a column beside which none is scored. Name",
        ),
        (
            {"known": AnyKnown(1, among=["age"]), "columns": ["age", "sex"]},
            "any 1, got a column beside which none is named in among=. Name columns that the attacker may",
        ),
        ({"known": AnyKnown(1, among=["agee"])}, "among: no column 'agee' in the table. Did you mean 'age'"),
        ({"known": 1, "columns": ["x"]}, "columns: no column 'x'"),
        ({"known": 10**5000}, "known: expected columns, or how many of them, 0 or more; got a number of thousands"),
        (
            {"known": True},
            "known: expected a list of column names, or how many of them as a whole number, 2 say; got True",
        ),
        (
            {"known": 2.0},
            "known: expected a list of column names, or how many of them as a whole number, 2 say; got 2.0",
        ),
        ({"known": 1, "attackers": {"a": ["age"]}}, "attackers: expected attackers= or known="),
        (
            {"attackers": {"a": ["age"], "b": 4}},
            "attackers: 'b': expected at most 3, the number of other columns scored, got 4",
        ),
        ({"known": 1, "priors": {"age": {1: 1.0}}, "columns": ["sex", "region"]}, "neither scored nor known"),
    ],
)
def test_bad_input_is_refused(arguments, says):
    with pytest.raises(InputError) as error:
        gpupif.score(gpupif.datasets.census(50, columns=4), **arguments)
    assert says in str(error.value)


def test_columns_of_among_are_read_from_a_file(tmp_path):
    gpupif.datasets.census(50, columns=4).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(InputError, match="among: no column 'agee'"):
        gpupif.score(tmp_path / "table.parquet", known=gpupif.AnyKnown(1, among=["agee"]), columns=["sex"])
    scores = gpupif.score(
        tmp_path / "table.parquet", known=gpupif.AnyKnown(1, among=["age", "region"]), columns=["sex"]
    )
    assert scores.subsets.for_column("sex") == [("region",), ("age",)]
    nothing = gpupif.score(tmp_path / "table.parquet", known=gpupif.AnyKnown(0, among=["age"]), columns=["sex"])
    assert nothing.subsets.for_column("sex") == [()]


def test_a_table_without_rows_is_refused():
    with pytest.raises(InputError, match="at least one row"):
        gpupif.score(pd.DataFrame({"a": [], "b": []}), known=1)


# The command line.


def test_any_known_keeps_the_columns_that_it_was_made_with():
    names = ["age", "sex"]
    known = AnyKnown(1, among=names)
    names.append("region")
    assert known.among == ("age", "sex")
    assert hash(known) == hash(AnyKnown(1, among=("age", "sex")))
    assert len({known, AnyKnown(1, among=["age", "sex"]), AnyKnown(1)}) == 2


def test_a_single_subset_is_printed_in_the_singular():
    table = gpupif.datasets.census(50, columns=3)
    scores = gpupif.score(table, "cig", ["age"], known=AnyKnown(1, among=["sex"]))
    assert repr(scores.subsets) == "1 subset of 1 column for each column"
    assert "; any 1 column known: 1 subset of 1 column for each column; " in repr(scores)
