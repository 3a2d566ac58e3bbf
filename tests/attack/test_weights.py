"""Sampling weights against the oracle, and their properties on every engine."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.attack.weights import read_weights
from gpupif.encoding.column import Column
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.errors import InputError
from gpupif.measures import MEASURES
from tests.helpers import naive_attack
from tests.helpers.command_line import FRAME, assert_refused, assert_written
from tests.helpers.scores import assert_scores
from tests.helpers.tables import SHARED_FIXTURES, frame_of, jobs, tables
from tests.helpers.weights import of_sizes, some_weights

pytestmark = pytest.mark.every_engine

ALL = list(MEASURES)
OF_PEOPLE = [measure for measure in ALL if measure != "individual_risk"]
# Counts of rows, and of people where rows have weights.
SIZES = ("cohort_size", "class_size")
FEW = settings(SHARED_FIXTURES, max_examples=10)


def with_weights(frame, weights):
    return frame.assign(**{"people of": weights})


def score(table, weights, measures=ALL, **arguments):
    return gpupif.score(with_weights(frame_of(table), weights), measures, weights="people of", **arguments)


def as_defined(table, weights, **arguments):
    return naive_attack.score(table | {"people of": weights}, weights="people of", **arguments)


def bits(scores):
    return {name: scores.array(name).tobytes() for name in scores.measures if name not in SIZES}, scores.weights


@pytest.mark.slow
@given(job=jobs())
@FEW
def test_weights_of_1_give_the_bits_of_unweighted_scores(engine, job):
    table, arguments = job
    plain = gpupif.score(frame_of(table), ALL, **arguments)
    ones = score(table, [1] * plain.rows, **arguments)
    assert bits(ones) == bits(plain)
    for name in SIZES:
        np.testing.assert_array_equal(ones.array(name), plain.array(name))
        assert plain.array(name).dtype == np.int64
    assert ones.distinct_rows == plain.distinct_rows


@pytest.mark.slow
@given(table=tables(), weight=st.floats(1e-6, 1e6))
@FEW
def test_equal_weights_multiply_sizes_only(engine, table, weight):
    plain = gpupif.score(frame_of(table), ALL)
    same = score(table, [weight] * plain.rows)
    sizes = of_sizes(plain, weight)
    for measure in OF_PEOPLE:
        expected = sizes.get(measure, plain.array(measure))
        np.testing.assert_allclose(same.array(measure), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@given(table=tables(), data=st.data())
@FEW
def test_whole_weights_count_as_repeated_rows(engine, table, data):
    frame = frame_of(table)
    weights = np.array(some_weights(data.draw, len(frame), ["whole"]))
    repeated = gpupif.score(frame.loc[frame.index.repeat(weights)].reset_index(drop=True), ALL)
    scores = score(table, weights)
    first = np.cumsum(weights) - weights
    for measure in OF_PEOPLE:
        np.testing.assert_array_equal(scores.array(measure), repeated.array(measure)[:, first])
    assert scores.weights == repeated.weights
    assert scores.distinct_rows == repeated.distinct_rows


@pytest.mark.slow
@given(table=tables(), data=st.data())
@FEW
def test_rows_of_weight_zero_change_no_score_of_other_rows(engine, table, data):
    frame = frame_of(table)
    weights = np.array(some_weights(data.draw, len(frame), ["whole, nobody", "any, nobody"]))
    scores = score(table, weights)
    rest = gpupif.score(with_weights(frame, weights)[weights > 0].reset_index(drop=True), ALL, weights="people of")
    for measure in OF_PEOPLE:
        np.testing.assert_array_equal(scores.array(measure)[:, weights > 0], rest.array(measure))
    assert scores.weights == rest.weights


@pytest.mark.slow
@given(table=tables(), data=st.data(), seed=st.integers(0, 99))
@FEW
def test_order_of_rows_does_not_matter(engine, table, data, seed):
    frame = frame_of(table)
    frame = with_weights(frame, some_weights(data.draw, len(frame)))
    order = np.random.default_rng(seed).permutation(len(frame))
    scores, permuted = (gpupif.score(f, ALL, weights="people of") for f in (frame, frame.iloc[order]))
    for measure in ("prior", "posterior", "csf", "cohort_size"):
        np.testing.assert_array_equal(permuted.array(measure), scores.array(measure)[:, order])
    for measure in ("cig", "wcig"):
        np.testing.assert_allclose(permuted[measure], scores[measure].iloc[order], rtol=1e-12, atol=1e-13)


@pytest.mark.slow
@given(table=tables(), data=st.data())
@FEW
def test_weighted_shares_are_correctly_rounded_sums(engine, table, data):
    """Priors and sizes are correctly rounded sums, except for weights below 2^-60 of all."""
    weights = some_weights(data.draw, len(next(iter(table.values()))))
    scores = score(table, weights, ["prior", "cohort_size"])
    expected = as_defined(table, weights)
    total = math.fsum(weights)
    for name in table:
        np.testing.assert_allclose(scores.prior[name], expected["prior"][name], rtol=1e-14, atol=1e-16)
        np.testing.assert_allclose(
            scores.cohort_size[name], expected["cohort_size"][name], rtol=1e-14, atol=total * len(weights) * 2.0**-60
        )


@pytest.mark.slow
def test_weighted_scores_have_the_same_bits_with_any_threads_and_blocks(monkeypatch):
    frame = gpupif.datasets.census(20_000)
    frame = frame.assign(w=np.random.default_rng(0).gamma(2, 100, len(frame)).round(3))
    frame.loc[::97, "w"] = 0.0
    seen = []
    for threads, block_rows in ((None, 4096), (1, 4096), (5, 3), (3, 10**9)):
        monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _, t=threads, b=block_rows: CpuEngine(t, b))
        seen.append(
            bits(gpupif.score(frame, ["cig", "wcig", "posterior"], weights="w", known=["age", "sex", "region"]))
        )
    assert all(one == seen[0] for one in seen[1:])


@pytest.mark.slow
def test_weights_near_2_to_the_61_lose_no_cohorts(engine):
    """Totals near 2^61 neither take memory by their size nor lose cohorts."""
    random = np.random.default_rng(1)
    table = {f"c{j}": random.integers(0, 3, 150).tolist() for j in range(4)}
    weights = (random.random(150) * 4e9).tolist()
    scores = score(table, weights)
    assert_scores(scores, as_defined(table, weights))


def test_weighted_scores_are_as_counted_by_hand():
    """Three people in the cohort "f": 1 is 39, 2 are 40. The row of weight 0 adds nobody; of "x" there is nobody."""
    table = pd.DataFrame({"sex": list("ffffmx"), "age": [39, 40, 39, 50, 39, 39], "w": [1, 2, 0, 0, 3, 0]})
    scores = gpupif.score(table, ALL, columns=["age"], known=["sex"], weights="w")
    assert scores.prior["age"].tolist() == [4 / 6, 2 / 6, 4 / 6, 0, 4 / 6, 4 / 6]
    assert scores.posterior["age"].tolist() == [1 / 3, 2 / 3, 1 / 3, 0, 1, 4 / 6]
    assert scores.cohort_size["age"].tolist() == [3, 3, 3, 3, 3, 0]
    assert scores.csf["age"].tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 1 / 3, 0])
    gain = 1 / 3 * math.log2(1 / 2) + 2 / 3 * math.log2(2)
    assert scores.cig["age"].tolist() == pytest.approx([gain] * 4 + [math.log2(3 / 2), 0])
    top = scores.top(6, by="cohort_size")
    # A cohort of nobody is no risk.
    assert top["row"].tolist() == [0, 1, 2, 3, 4, 5]
    assert top["cohort_size"].tolist() == [3.0, 3.0, 3.0, 3.0, 3.0, 0.0]
    assert top["posterior"].tolist() == pytest.approx([1 / 3, 2 / 3, 1 / 3, 0, 1, 4 / 6])
    assert scores.rows == 6
    assert scores.fig()["age"] == pytest.approx(4 * gain + math.log2(3 / 2))


def test_the_column_of_weights_is_scored_or_known_only_if_named():
    table = FRAME.assign(w=[1, 2, 2, 1, 4])
    assert gpupif.score(table, "cig", weights="w").columns == ["age", "sex", "a=b"]
    named = gpupif.score(table, "cig", columns=["age"], known=["sex", "w"], weights="w")
    values = {"age": table["age"].tolist(), "sex": ["f", "m", "f", None, "f"], "w": table["w"].tolist()}
    expected = naive_attack.score(values, weights="w", columns=["age"], known=["sex", "w"])
    assert_scores(named, expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda w: pd.Series(w, dtype="Float64"),
        lambda w: pd.Series([Decimal(str(x)) for x in w], dtype=object),
        lambda w: pd.Series([str(x) for x in w]),
        lambda w: pd.Series(w, dtype="float32"),
        lambda w: pd.Series(w).astype("category"),
    ],
)
def test_weights_may_have_any_type_of_number(make):
    weights = [1.5, 2.0, 0.25, 1.5, 3.0]
    expected = gpupif.score(FRAME.assign(w=weights), ALL, weights="w")
    assert bits(gpupif.score(FRAME.assign(w=make(weights)), ALL, weights="w")) == bits(expected)
    for kind in (pa.Table.from_pandas(FRAME.assign(w=weights)), pl.from_pandas(FRAME.assign(w=weights))):
        assert bits(gpupif.score(kind, ALL, weights="w")) == bits(expected)


def test_given_priors_replace_weighted_ones(engine):
    priors = {"age": {39: 0.5, 40: 0.25, 41: 0.25}}
    weights = [3, 1, 1, 1, 0]
    scores = gpupif.score(FRAME.assign(w=weights), "prior", weights="w", priors=priors)
    assert scores.priors["age"] == priors["age"]
    assert scores.prior["age"].tolist() == [0.5, 0.5, 0.25, 0.25, 0.5]


BAD = {
    "no such column": ("v", None, ["weights", "no column 'v'", "'w'"]),
    "no name": (["w"], None, ["weights", "expected the name of a column", "list"]),
    "negative": ("w", [1, -2, 1, 1, 1], ["weights", "'w'", "row 1", "-2", "0 or more"]),
    "missing": ("w", [1, 1, None, 1, 1], ["weights", "'w'", "row 2", "missing"]),
    "infinite": ("w", [1, 1, 1, np.inf, 1], ["weights", "'w'", "row 3", "inf"]),
    "text": ("w", ["1", "2", "many", "x", "3"], ["weights", "'w'", "row 2", "'many'"]),
    "text alone": (
        "w",
        list("ffmmm"),
        ["weights", "'w'", "none of its values is a number", "Name a column of numbers"],
    ),
    "truth values": ("w", [True] * 5, ["weights", "'w'", "none of its values is a number, True for one"]),
    "nobody": ("w", [0] * 5, ["weights", "'w'", "more than 0", "all 5 are 0"]),
    "dates": ("w", pd.date_range("2000", periods=5), ["weights", "'w'", "none of its values is a number, 2000-01-01"]),
}


@pytest.mark.parametrize(("name", "weights", "fragments"), BAD.values(), ids=BAD)
def test_bad_weights_are_refused(engine, name, weights, fragments):
    table = FRAME.assign(w=[1] * 5 if weights is None else weights)
    with pytest.raises(InputError) as caught:
        gpupif.score(table, weights=name)
    assert [fragment for fragment in fragments if fragment not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("weights", "unit"),
    [([3, 5], 1.0), ([0.5, 2], 0.5), ([0.75, 12], 0.25), ([2.0**40, 2.0**-10], 2.0**-10), ([8, 16], 1.0)],
)
def test_the_unit_of_weights_makes_them_whole_numbers(weights, unit):
    column = Column("w", np.array([0, 1]), np.array([1, 1]), np.array(weights), False)
    units = read_weights(column, lambda code: code)
    assert units.unit == unit
    assert (units.of_code * unit).tolist() == weights


@given(weights=st.lists(st.floats(0, allow_infinity=False), min_size=1, max_size=9, unique=True))
def test_units_add_up_to_the_sum(weights):
    if not any(weights):
        weights = [*weights, 1.0]
    column = Column("w", None, np.full(len(weights), 7), np.array(weights), False)
    total = 7 * sum(map(Decimal, weights))
    try:
        units = read_weights(column, lambda code: code)
    except InputError:
        # A single unit would be nothing beside the other weights.
        assert total / Decimal(min(weight for weight in weights if weight > 0)) > 2**60
        return
    assert 0 < units.total < 2**62
    assert abs(Decimal(units.unit) * units.total - total) <= total * 7 * len(weights) / 2**60


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_command_line_scores_with_weights(run, folder, ending):
    table = FRAME.assign(w=[1.5, 2.25, 0.0, 1.5, 7.1])
    table.to_csv(folder / "t.csv", index=False)
    table.to_parquet(folder / "t.parquet")
    ended = run("score", f"t.{ending}", "-o", "scores.parquet", "--weights", "w", "--measures", "cig,cohort_size")
    assert (ended.code, ended.err) == (0, "")
    assert_written(folder / "scores.parquet", gpupif.score(table, ["cig", "cohort_size"], weights="w"))
    assert_refused(run("score", f"t.{ending}", "-o", "s.csv", "--weights", "v"), ["--weights", "no column 'v'"])
    assert_refused(
        run("score", f"t.{ending}", "-o", "s.csv", "--weights", "sex"),
        ["--weights", "'sex'", "none of its values", "'f'"],
    )


def test_weights_too_far_apart_are_refused():
    table = pd.DataFrame({"k": ["g", "h"], "w": [2.0**62, 1.0]})
    with pytest.raises(InputError, match=r"weights: column 'w'.*2\^60 times"):
        gpupif.score(table, columns=["k"], known=[], weights="w")
