"""Every measure has the scores of the oracle, on every engine."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import gpupif
from gpupif.errors import InputError
from gpupif.measures import MEASURES, resolve_measures
from tests.helpers import naive_attack
from tests.helpers.scores import ALL, INTEGERS, assert_scores
from tests.helpers.tables import SHARED_FIXTURES, SIMULATED, frame_of, jobs

pytestmark = pytest.mark.every_engine


@pytest.mark.slow
@given(job=jobs())
@SHARED_FIXTURES
def test_all_measures_follow_their_definition(engine, job):
    table, arguments = job
    scores = gpupif.score(frame_of(table), ALL, **arguments)
    assert_scores(scores, naive_attack.score(table, **arguments))
    assert scores.columns == arguments.get("columns", list(table))
    weights = naive_attack.column_weights(table, arguments.get("columns"), arguments.get("known"))
    assert scores.weights == pytest.approx(weights, abs=1e-12)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("columns", [12, 40, 150])
def test_keys_of_many_words_are_scored_right(engine, columns):
    """40 columns of 8 bits are 5 words, 150 are 19."""
    random = np.random.default_rng(columns)
    base = random.integers(0, 200, (6, columns))
    rows = base[random.integers(0, 6, 30)]
    # Near duplicates: rows that differ in one column only are cohorts with more than one value.
    for row in range(0, 30, 2):
        rows[row, random.integers(columns)] = random.integers(0, 200)
    table = {f"c{j}": rows[:, j].tolist() for j in range(columns)}
    scored_columns = ["c0", f"c{columns // 2}", f"c{columns - 1}"]
    scores = gpupif.score(pd.DataFrame(table), ALL, columns=scored_columns, known=list(table))
    assert_scores(scores, naive_attack.score(table, columns=scored_columns, known=list(table)))
    # Without names all columns are scored; in the simulator, of many ones, that takes too long.
    some = scored_columns if SIMULATED and columns > 40 else None
    all_columns = gpupif.score(pd.DataFrame(table), ["cig"], columns=some, known=list(table))
    np.testing.assert_array_equal(all_columns.cig[scored_columns], scores.cig)


@pytest.mark.slow
def test_a_column_that_fills_its_field_to_the_last_bit_is_scored_right(engine):
    """A column whose codes fill their field to the last bit sits beside others in the same word."""
    table = {"a": list(range(256)), "b": [row % 2 for row in range(256)], "c": [row // 4 for row in range(256)]}
    scores = gpupif.score(pd.DataFrame(table), ALL)
    assert_scores(scores, naive_attack.score(table))


@pytest.mark.slow
def test_oversized_blocks_are_cut_again(engine):
    """A single combination of the columns of either half covers most of the table."""
    random = np.random.default_rng(5)
    rows = np.where(random.random((400, 6)) < 0.8, 0, random.integers(0, 5, (400, 6)))
    table = {f"c{j}": rows[:, j].tolist() for j in range(6)}
    scores = gpupif.score(pd.DataFrame(table), ALL)
    assert_scores(scores, naive_attack.score(table))


def test_float32_is_the_rounded_float64(engine):
    frame = gpupif.datasets.census(80)
    wide, narrow = (gpupif.score(frame, ALL, dtype=dtype) for dtype in ("float64", "float32"))
    for measure in ALL:
        expected = np.int64 if measure in INTEGERS else np.float32
        assert (narrow[measure].dtypes == expected).all()
        np.testing.assert_array_equal(narrow[measure], wide[measure].astype(expected))


def test_scores_name_the_device_that_ran(engine):
    assert gpupif.score(pd.DataFrame({"a": [1]})).device == engine.device


def test_each_measure_has_the_value_of_its_worked_example(engine):
    table = pd.DataFrame({"g": [*"gggghhhh"], "x": [*"aaababcc"]})
    names = [*MEASURES, "renyi_2", "recursive_2"]
    scores = gpupif.score(table, names, columns=["x"], known=["g"])
    for measure in resolve_measures(names):
        assert scores[measure.name]["x"][0] == pytest.approx(measure.example, abs=5e-7), measure.name


def bounds(text):
    """Return the lowest and highest value of a stated range, whose last part is for weights or wildcards."""
    low = min((float(number) for number in re.findall(r"-?\d+|-inf", text)), default=-math.inf)
    high = re.search(r"to (\d+)", text)
    return low, math.inf if high is None else float(high[1])


@pytest.mark.slow
@pytest.mark.usefixtures("on_cpu")
def test_scores_stay_in_the_stated_range_of_each_measure():
    random = np.random.default_rng(0)
    names = [*MEASURES, "renyi_0", "renyi_0.5", "renyi_2", "renyi_inf", "recursive_1", "recursive_2"]
    stated = {measure.name: measure.range for measure in resolve_measures(names)}
    lowest = {}
    for _ in range(30):
        rows = int(random.integers(2, 9))
        table = pd.DataFrame({name: random.integers(0, 3, rows) for name in "abc"})
        weights = [1, *random.choice([0, 0.25, 3], rows - 1)]
        missing = table.astype(object).mask(random.random(table.shape) < 0.3)
        for kind, scores in (
            ("plain", gpupif.score(table, names)),
            ("weights", gpupif.score(table.assign(w=weights), names, weights="w")),
            ("wildcards", gpupif.score(missing, names, missing="wildcard")),
        ):
            for name, text in stated.items():
                low, high = bounds(text.partition(";")[0] if kind == "plain" else text)
                values = scores.array(name).astype(float)
                known = values[~np.isnan(values)]
                assert ((known >= low) & (known <= high)).all(), (kind, name)
                lowest[kind, name] = min(lowest.get((kind, name), math.inf), known.min(initial=math.inf))
    # The range is no wider than the scores need.
    assert (lowest["plain", "cohort_size"], lowest["plain", "distinct_values"]) == (1, 1)
    assert (lowest["weights", "cohort_size"], lowest["weights", "distinct_values"]) == (0, 0)
    assert lowest["plain", "unique"] == lowest["weights", "unique"] == lowest["weights", "reidentification_risk"] == 0
    assert 0 < lowest["plain", "reidentification_risk"] < 1
    assert (lowest["weights", "pointwise_information"], lowest["wildcards", "distinct_values"]) == (-math.inf, 0)


def test_renyi_divergence_of_any_order_is_right(engine):
    """Orders near 1 lose no digits, high ones do not grow out of the range of numbers; it rises with the order."""
    table = pd.DataFrame({"g": [*"gggghhhh"], "x": [*"aaababcc"]})
    near = [1 - 1e-3, 1 - 1e-9, 1.0, 1 + 1e-14, 1 + 1e-9, 1 + 1e-3]
    orders = [0.0, 1e-9, 0.5, *near, 1.5, 2.0, 2.5, 64.0, 2000.0, 1e300, float("inf")]
    prior = {"a": 1e-200, "b": 0.5, "c": 0.5 - 1e-200}
    for arguments in ({}, {"priors": {"x": prior}}, {"accuracies": {"x": 0.75}}):
        scores = gpupif.score(table, [f"renyi_{o!r}" for o in orders], columns=["x"], known=["g"], **arguments)
        found = [scores.array(name)[0, 0] for name in scores.measures]
        assert np.isfinite(found).all()
        assert (np.diff(found) >= -1e-12 * np.abs(found[1:])).all()
        gain = gpupif.score(table, "cig", columns=["x"], known=["g"], **arguments).array("cig")[0, 0]
        for order, value in zip(orders, found, strict=True):
            if abs(order - 1) < 1e-6:
                assert value == pytest.approx(gain, rel=1e-6)
    assert gpupif.score(table, "renyi_2000", columns=["x"], known=["g"]).array("renyi_2000")[0, 0] == pytest.approx(
        (np.log2(0.75) + 1999 * np.log2(1.5)) / 1999
    )


def test_each_order_of_a_measure_has_one_name():
    assert [measure.name for measure in resolve_measures(["renyi_2.0", "renyi_2", "recursive_3.0"])] == [
        "renyi_2",
        "recursive_3",
    ]
    for name in ("renyi_ 2", "renyi_+2", "renyi_2_0", "renyi_-1", "renyi_nan", "recursive_1.5", "renyi_"):
        with pytest.raises(InputError, match="measures: expected"):
            resolve_measures(name)


def test_no_bound_of_enhanced_beta_allows_a_cohort_of_one_value_in_a_large_table():
    for n in (30_000_001, 300_000_000, 299_999_999):
        table = pd.DataFrame({"k": ["g", "h"], "v": ["a", "b"], "w": [n - 1, 1]})
        scores = gpupif.score(table, "enhanced_gain", columns=["v"], known=["k"], weights="w")
        assert np.isinf(scores.array("enhanced_gain")).all()


def test_few_rows_of_many_columns_are_scored_as_few_columns_are(on_cpu):
    """The values of many columns are scored in one call, and rows are copied without one."""
    draw = np.random.default_rng(3)
    table = pd.DataFrame({f"c{column}": draw.integers(0, 3, 6) for column in range(400)})
    wide = gpupif.score(table, ["cig", "csf", "wcig", "cohort_size"], known=["c0", "c1"])
    names = ["c1", "c57", "c399"]
    narrow = gpupif.score(table, ["cig", "csf", "wcig", "cohort_size"], columns=names, known=["c0", "c1"])
    for measure in narrow.measures:
        pd.testing.assert_frame_equal(wide[measure][names], narrow[measure], check_exact=True)
