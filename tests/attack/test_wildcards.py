"""Missing values as wildcards: their properties, and uses of their scores. `as_defined` is the oracle."""

from __future__ import annotations

import doctest
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import gpupif
from gpupif.cli.main import app
from gpupif.engines import wildcards
from gpupif.engines.cpu import wildcards as cpu_wildcards
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.errors import warn
from tests.helpers import naive_attack
from tests.helpers.scores import ALL, OF_PEOPLE
from tests.helpers.tables import SIMULATED, frame_of
from tests.helpers.weights import of_sizes
from tests.helpers.wildcards import sparse

pytestmark = pytest.mark.every_engine

FEW = settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))


def as_defined(table, **arguments):
    return naive_attack.score(table, missing="wildcard", **arguments)


def assert_scores(found, expected, measures=ALL):
    for measure in measures:
        for name in found.columns:
            scores = found[measure][name].to_numpy(dtype=float)
            np.testing.assert_allclose(
                scores, expected[measure][name], rtol=1e-9, atol=1e-9, err_msg=f"{measure} {name}"
            )


@pytest.mark.slow
@given(table=sparse(), seed=st.integers(0, 99))
@FEW
def test_order_of_rows_does_not_matter(table, seed):
    frame = frame_of(table)
    order = np.random.default_rng(seed).permutation(len(frame))
    scores, permuted = (gpupif.score(one, ALL, missing="wildcard") for one in (frame, frame.iloc[order]))
    for measure in ALL:
        np.testing.assert_array_equal(permuted[measure], scores[measure].iloc[order])
    assert permuted.weights == scores.weights


def sparse_census(rows, share, seed=0):
    frame = gpupif.datasets.census(rows).iloc[:, :5].astype(object)
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < share, None)


def bits(scores):
    return {measure: scores.array(measure).tobytes() for measure in scores.measures}, scores.weights


@pytest.mark.slow
@pytest.mark.parametrize("known", [None, ["age", "sex"]])
def test_wildcard_scores_have_the_same_bits_with_any_threads_and_pieces(monkeypatch, known):
    frame = sparse_census(3_000, 0.1)
    seen = []
    for threads, keys, cells in ((None, None, 1 << 14), (1, 7, 1 << 14), (3, 100, 2), (2, 10**6, 300)):
        monkeypatch.setattr(cpu_wildcards, "BATCH_CELLS", cells)
        if keys is not None:
            monkeypatch.setattr(cpu_wildcards, "MOST_LINKS", 0)
            monkeypatch.setattr(cpu_wildcards, "LEAST_KEYS", keys)
        monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _, t=threads: CpuEngine(t))
        seen.append(bits(gpupif.score(frame, ALL, known=known, accuracies={"age": 0.9}, missing="wildcard")))
    assert all(one == seen[0] for one in seen[1:])


@pytest.mark.usefixtures("on_cpu")
def test_wildcards_change_no_bit_if_no_value_is_missing():
    frame = gpupif.datasets.census(5_000)
    assert bits(gpupif.score(frame, ALL, missing="wildcard")) == bits(gpupif.score(frame, ALL))
    # A scored column whose knowledge and values are whole, beside one with missing values.
    frame["income"] = pd.Series(np.arange(5_000) % 7).where(np.arange(5_000) % 3 > 0)
    asked = {"columns": ["age", "income", "region"], "known": ["age", "sex", "region"]}
    wild, category = (gpupif.score(frame, ALL, missing=word, **asked) for word in ("wildcard", "category"))
    for measure in ALL:
        for place in (0, 2):
            assert wild.array(measure)[place].tobytes() == category.array(measure)[place].tobytes()
    assert wild.weights["age"] == category.weights["age"]
    assert wild.csf["income"].isna().sum() == frame["income"].isna().sum()
    np.testing.assert_array_equal(wild.cohort_size, category.cohort_size)


def test_weight_of_a_partition_is_the_conditional_entropy():
    """Only the scored column has missing values: its cohorts do not overlap, and H(X|known) is that of the other
    rows.
    """
    frame = gpupif.datasets.census(2_000)[["age", "sex", "region"]]
    frame["income"] = pd.Series(np.arange(2_000) % 5).where(np.arange(2_000) % 3 > 0)
    scores = gpupif.score(frame, "wcig", columns=["income"], known=["age", "sex"], missing="wildcard")
    whole = gpupif.score(frame.dropna(), "wcig", columns=["income"], known=["age", "sex"])
    assert scores.weights["income"] == pytest.approx(whole.weights["income"], rel=1e-12)
    rows = frame["income"].notna()
    np.testing.assert_allclose(scores.wcig[rows], whole.wcig, rtol=1e-12)


def test_cohort_sizes_are_right_with_many_patterns_and_wide_keys():
    """Cohorts with keys of two words, joined in pieces, have the sizes that a plain comparison of rows gives."""
    random = np.random.default_rng(5)
    codes = np.column_stack([random.integers(0, high, 700) for high in (2, 3, 2, 4, 2)]).astype(float)
    codes[random.random(codes.shape) < 0.3] = np.nan
    wide = [f"w{place}" for place in range(6)]
    frame = pd.DataFrame(codes, columns=list("abcde"))
    for name in wide:
        # 2,500 values need 12 bits each.
        frame[name] = np.concatenate([[0.0] * 700])
    filler = pd.DataFrame({name: np.arange(2_500.0) for name in [*"abcde", *wide]}) + 10
    frame = pd.concat([frame, filler], ignore_index=True)
    frame["target"] = np.arange(len(frame)) % 3
    known = [*"abcde", *wide]
    found = gpupif.score(frame, ["cohort_size", "posterior"], columns=["target"], known=known, missing="wildcard")
    table = frame[known].to_numpy()[:700]
    match = ((table[:, None] == table[None]) | np.isnan(table[:, None]) | np.isnan(table[None])).all(axis=2)
    scored_column = np.arange(700) % 3
    size, same = match.sum(axis=1), (match & (scored_column[:, None] == scored_column[None])).sum(axis=1)
    np.testing.assert_array_equal(found.cohort_size["target"][:700], size)
    np.testing.assert_array_equal(found.posterior["target"][:700], same / size)
    assert (found.cohort_size["target"][700:] == 1).all()


def test_cohort_sizes_are_right_with_over_64_patterns_of_missing_values(engine):
    """There is a row for each column that lacks it. Such rows agree on all columns that both have."""
    frame = pd.DataFrame(np.where(np.eye(66, dtype=bool), np.nan, 1.0), columns=[f"c{place}" for place in range(66)])
    # In the simulator each pattern takes a while: four rows that lack a column each, one of them beyond the 64th.
    frame = frame.iloc[[0, 1, 2, 65]].reset_index(drop=True) if SIMULATED else frame
    frame.loc[0, "c65"] = 2.0
    frame["target"] = 1
    sizes = gpupif.score(frame, "cohort_size", columns=["target"], known=list(frame)[:66], missing="wildcard")
    # The first row has another c65: it matches itself and the row that lacks c65, which matches all.
    expected = [2, *[len(frame) - 1] * (len(frame) - 2), len(frame)]
    assert sizes.cohort_size["target"].tolist() == expected


def test_cohort_sizes_are_the_frequencies_of_sdcmicro(engine):
    """The table that sdcMicro's tests/testthat/test_freqCalc.R gives for "method 1", its own: frequencies 3 3 3 3 5."""
    table = pd.DataFrame(
        {"region": ["A"] * 5, "status": ["single", "married", "married", "single", None], "agegroup": ["5"] * 5}
    )
    table["target"] = list("vwxyz")
    asked = {"columns": ["target"], "known": ["region", "status", "agegroup"]}
    assert gpupif.score(table, "cohort_size", missing="wildcard", **asked).cohort_size["target"].tolist() == [
        3,
        3,
        3,
        3,
        5,
    ]
    table.loc[4, "status"] = "widow"
    assert gpupif.score(table, "cohort_size", missing="wildcard", **asked).cohort_size["target"].tolist() == [
        2,
        2,
        2,
        2,
        1,
    ]


def test_the_example_of_the_docstring_is_right():
    import gpupif.scoring.score

    runner = doctest.DocTestRunner()
    (test,) = (test for test in doctest.DocTestFinder().find(gpupif.scoring.score.score, "score") if test.examples)
    test.globs["score"] = gpupif.score
    assert runner.run(test).failed == 0


def test_every_kind_of_frame_gets_the_same_wildcard_scores():
    import polars as pl

    frame = sparse_census(500, 0.2).apply(lambda column: column.astype("string"))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    seen = [bits(gpupif.score(kind, missing="wildcard")) for kind in (frame, table, pl.from_arrow(table))]
    assert all(one == seen[0] for one in seen[1:])
    narrow, wide = (gpupif.score(frame, missing="wildcard", dtype=dtype) for dtype in ("float32", "float64"))
    np.testing.assert_array_equal(narrow.array("csf"), wide.array("csf").astype(np.float32))


@pytest.mark.slow
def test_distances_count_only_between_known_values(engine):
    table = {"grade": ["low", None, "high", "middle", "low", None], "town": ["a", "a", None, "b", "b", None]}
    tree = {"low": ["bad"], "middle": ["good"], "high": ["good"]}
    for distance in (["low", "middle", "high"], ["high", "low", "middle", None], tree):
        distances = {"grade": distance}
        found = gpupif.score(frame_of(table), "emd", missing="wildcard", distances=distances)
        assert_scores(found, as_defined(table, distances=distances), ["emd"])


def test_suppressed_values_are_learnt_from_the_rest_of_the_cohort(engine):
    """If a cohort has one value, it is learnt also of a person whose value was suppressed."""
    table = pd.DataFrame({"town": ["a", "a", "a", "b", "b", None], "ill": ["yes", "yes", None, "no", "yes", None]})
    scores = gpupif.score(table, ["cig", "csf"], columns=["ill"], known=["town"], missing="wildcard")
    assert scores.cig["ill"][2] == scores.cig["ill"][0] == pytest.approx(-math.log2(3 / 4))
    assert scores.csf["ill"].isna().tolist() == [False, False, True, False, False, True]
    assert scores.priors["ill"] == {"yes": 3 / 4, "no": 1 / 4}
    assert scores.cig["ill"][5] == 0.0


def test_top_cells_and_summary_follow_the_definition_with_wildcards(engine):
    table = {"a": ["x", None, "x", "y", None], "b": [1, 1, None, 2, None], "c": ["p", "q", None, None, None]}
    scores = gpupif.score(frame_of(table), ["cig", "csf"], missing="wildcard", priors={"b": {1: 0.25, 2: 0.75}})
    oracle = as_defined(table, priors={"b": {1: 0.25, 2: 0.75}})
    for by in ("cig", "csf"):
        top = scores.top(15, by=by)
        assert len(top) == (15 if by == "cig" else 8)
        for cell in top.to_dict("records"):
            for measure in ("cig", "csf", "posterior", "prior", "cohort_size"):
                expected = oracle[measure][cell["column"]][cell["row"]]
                assert cell[measure] == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)
    summary = scores.summary()
    assert summary.columns["csf_mean"]["c"] == pytest.approx(np.nanmean(oracle["csf"]["c"]))
    assert summary.columns["distinct_values"].to_dict() == {"a": 2, "b": 2, "c": 2}
    assert json.loads(summary.to_json())["columns"][0]["column"] == "a"
    assert "Riskiest" in str(summary)
    assert scores.rig().notna().all()


@pytest.mark.slow
@given(table=sparse(most_rows=8), data=st.data())
@settings(FEW, max_examples=2 if SIMULATED else 10)
def test_whole_weights_count_as_repeated_rows_with_wildcards(engine, table, data):
    frame = frame_of(table)
    weights = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(frame), max_size=len(frame))))
    rows = frame.index.repeat(weights)
    repeated = gpupif.score(frame.loc[rows].reset_index(drop=True), ALL, missing="wildcard")
    scores = gpupif.score(frame.assign(people=weights), ALL, missing="wildcard", weights="people")
    first = np.cumsum(weights) - weights
    for measure in OF_PEOPLE:
        np.testing.assert_array_equal(scores.array(measure), repeated.array(measure)[:, first])
    assert scores.weights == repeated.weights
    halves = gpupif.score(frame.assign(people=weights / 2), ALL, missing="wildcard", weights="people")
    sizes = of_sizes(scores, 1 / 2)
    for measure in OF_PEOPLE:
        expected = sizes.get(measure, scores.array(measure))
        np.testing.assert_allclose(halves.array(measure), expected, rtol=1e-12, atol=1e-12)


def test_weights_that_are_far_apart_are_summed_exactly_with_wildcards(engine):
    table = {"a": ["x", None, "x", "y"], "b": [1, 1, None, 2]}
    frame = frame_of(table).assign(people=[2.0**40, 2.0**-20, 3.0, 1.5])
    scores = gpupif.score(
        frame, ["cig", "csf", "posterior", "prior", "cohort_size"], missing="wildcard", weights="people"
    )
    # Of b = 1: the first, the second, and the third, whose b is not known.
    assert scores.cohort_size["a"].tolist() == [
        2.0**40 + 2.0**-20 + 3.0,
        2.0**40 + 2.0**-20 + 3.0,
        2.0**40 + 2.0**-20 + 4.5,
        4.5,
    ]
    assert scores.posterior["a"][3] == 1.5 / 4.5
    assert scores.prior["b"].tolist()[0] == (2.0**40 + 2.0**-20) / (2.0**40 + 2.0**-20 + 1.5)
    top = scores.top(8)
    assert len(top) == 8
    for cell in top.to_dict("records"):
        row, name = cell["row"], cell["column"]
        for measure in ("posterior", "prior", "cohort_size"):
            assert cell[measure] == pytest.approx(scores[measure][name][row], rel=1e-15, nan_ok=True)


@pytest.mark.slow
def test_each_of_several_attackers_scores_as_alone_with_wildcards():
    attackers = {"some": ["age", "sex"], "one": ["region"], "nothing": []}
    for frame in (sparse_census(300, 0.2), pd.concat([sparse_census(40, 0.2)] * 5, ignore_index=True)):
        asked = {"columns": ["age", "education"], "missing": "wildcard"}
        for weights in (None, "people"):
            weighted = frame.assign(people=np.arange(len(frame)) % 3 + 0.5)
            scores = gpupif.score(weighted, ALL, attackers=attackers, weights=weights, **asked)
            for name, known in attackers.items():
                alone = gpupif.score(weighted, ALL, known=known, weights=weights, **asked)
                assert bits(scores.against(name)) == bits(alone)
                pd.testing.assert_frame_equal(scores.against(name).top(5), alone.top(5))
    table = {name: frame[name].tolist() for name in frame}
    alone = gpupif.score(frame, ALL, attackers=attackers, **asked)
    for name, known in attackers.items():
        assert_scores(alone.against(name), as_defined(table, columns=asked["columns"], known=known))


def test_a_column_without_any_value_is_scored_with_wildcards(engine):
    table = {"a": ["x", "y", "x"], "b": [None] * 3}
    scores = gpupif.score(frame_of(table), ALL, missing="wildcard")
    assert_scores(scores, as_defined(table))
    assert scores.priors["b"] == {}
    assert scores.weights["b"] == 0.0
    assert scores.top(9, by="csf")["column"].tolist() == ["a"] * 3
    assert math.isnan(scores.summary().columns["csf_max"]["b"])
    nothing = gpupif.score(frame_of({"b": [None] * 3}), "csf", missing="wildcard")
    assert nothing.csf["b"].isna().all()
    assert len(nothing.top()) == 0


FRAME = pd.DataFrame({"a": ["x", None, "y"], "b": [1.0, 2.0, None]})
REFUSED = {
    "prior": ({"priors": {"a": {"x": 0.5, "y": 0.25, None: 0.25}}}, "column 'a': expected no probability for missing"),
    "word": ({"missing": "any"}, "missing: expected 'category' or 'error' or 'wildcard'"),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED)
def test_arguments_that_wildcards_do_not_allow_are_refused(arguments, said):
    with pytest.raises(gpupif.InputError, match=said):
        gpupif.score(FRAME.assign(w=[1, 0, 2]), **({"missing": "wildcard", "columns": ["a", "b"]} | arguments))


def test_too_many_patterns_of_missing_values_are_refused(engine, monkeypatch):
    monkeypatch.setattr(wildcards, "MOST_STEPS", 100)
    with pytest.raises(gpupif.InputError, match=r"each of 3 patterns of missing values in 2 known columns.*known="):
        gpupif.score(FRAME, missing="wildcard")


def test_a_row_with_a_multiplicity_counts_as_several_rows(engine):
    from gpupif.attack.arguments import Arguments
    from gpupif.encoding.encode import encode_table
    from gpupif.rows.threads import Workers
    from gpupif.utils.progress import Reporter

    rows = 8 if SIMULATED else 60
    once = sparse_census(60, 0.3).iloc[:rows, : 3 if SIMULATED else 5]
    multiplicities = np.arange(rows) % 3 + 1
    jobs = []
    for frame in (once, once.loc[once.index.repeat(multiplicities)]):
        request = Arguments.from_user(["cig", "wcig", "cohort_size"], missing="wildcard").make_request(list(frame))
        with Workers() as workers:
            encoded = encode_table(
                request.used, [frame[name] for name in request.used], len(frame), "wildcard", workers
            )
        jobs.append(request.job(encoded.columns, len(frame), "host", warn, None)[0])
    short, long = jobs
    first = np.cumsum([0, *multiplicities[:-1]])
    job = replace(long, codes=[codes[first] for codes in long.codes], multiplicities=multiplicities)
    many, few = (engine.score(one, Reporter(False)) for one in (long, job))
    for measure, values in few.values.items():
        np.testing.assert_array_equal(values, many.values[measure][:, first])
    assert few.weights == many.weights
    assert len(short.codes[0]) == len(job.codes[0])


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_the_command_line_scores_with_wildcards(tmp_path):
    path, out = tmp_path / "people.csv", tmp_path / "scores.parquet"
    path.write_text("a,b\nx,1\n,1\ny,2\nx,\n")
    result = run("score", path, "-o", out, "--missing", "wildcard", "--measures", "cohort_size,csf", "--json")
    assert result.exit_code == 0, result.output
    expected = gpupif.score(path, ["cohort_size", "csf"], missing="wildcard")
    found = pd.read_parquet(out)
    np.testing.assert_array_equal(found["cohort_size_b"], expected.cohort_size["b"])
    np.testing.assert_array_equal(found["csf_a"], expected.csf["a"])
