"""Randomised response: draws by the definition, for all chunks; unbiased estimates; invariants."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.errors import InputError
from gpupif.treatment.random.randomized_response import RandomizedResponse
from gpupif.treatment.random.response_formulas import keep_of_epsilon
from tests.helpers.treated_chunks import prepared, treated, values_after

SECRET = bytes(range(100, 132))
KEY = gpupif.treatments.Key.from_any(SECRET)


def people(rows=40_000, missing=0, seed=1):
    drugs = np.random.default_rng(seed).choice(["a", "b", "c", "d"], rows, p=[0.5, 0.3, 0.15, 0.05])
    return pa.table({"drug": pa.array(drugs, mask=np.arange(rows) < missing), "row": np.arange(rows)})


def naive_response(values, domain, drawn, keep):
    """Return the value of each row by its random number: kept below the first threshold, then the domain in order.

    drawn: probability of each replacement, out of 2^64.
    """
    kept = 2**64 - sum(drawn)
    assert kept / 2**64 == pytest.approx(keep, abs=1e-15)
    out = []
    for row, value in enumerate(values):
        number = int(KEY.draws(0, "drug").of_rows(row, 1)[0]) - kept
        place = -1
        while number >= 0:
            place += 1
            number -= drawn[place]
        out.append(value if place < 0 else domain[place])
    return out


def test_every_cell_has_the_value_that_the_definition_draws():
    table = people(1500)
    found = treated(table, RandomizedResponse("drug", keep=0.25), KEY)
    drawn = [math.ceil(Fraction(3, 16) * 2**64)] * 4
    assert found["drug"].to_pylist() == naive_response(table["drug"].to_pylist(), ["a", "b", "c", "d"], drawn, 0.25)
    assert found["row"].to_pylist() == table["row"].to_pylist()


def test_missing_values_are_drawn_as_a_category():
    table = people(1200, missing=300)
    found = treated(table, RandomizedResponse("drug", keep=0.4, missing="category"), KEY)
    drawn = [math.ceil((1 - Fraction(0.4)) / 5 * 2**64)] * 5
    domain = ["a", "b", "c", "d", None]
    assert found["drug"].to_pylist() == naive_response(table["drug"].to_pylist(), domain, drawn, 0.4)


def test_missing_values_are_kept():
    table = people(2000, missing=300)
    found = treated(table, RandomizedResponse("drug", keep=0.1, missing="keep"), KEY)["drug"]
    assert found[:300].null_count == 300
    assert found[300:].null_count == 0
    assert (
        found[300:].to_pylist()
        == treated(people(2000), RandomizedResponse("drug", keep=0.1), KEY)["drug"][300:].to_pylist()
    )


RESPONSES = [
    RandomizedResponse("drug", keep=0.5, missing="category"),
    RandomizedResponse("drug", keep=0.5, missing="keep"),
    RandomizedResponse("drug", epsilon=1.0, replaced="prior", missing="category"),
    RandomizedResponse("drug", keep=0.5, values=["z", "d", "c", "b", "a"], missing="keep"),
]


@pytest.mark.parametrize("response", RESPONSES)
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 3000), max_size=4))
def test_any_cut_of_the_rows_draws_the_same_values(response, cuts):
    table = people(3000, missing=50)
    assert treated(table, response, KEY, cuts)["drug"].to_pylist() == treated(table, response, KEY)["drug"].to_pylist()


@pytest.mark.parametrize("replaced", ["uniform", "prior"])
def test_keeping_all_values_changes_no_cell(replaced):
    table = people(5000, missing=20)
    for missing in ("category", "keep"):
        assert treated(table, RandomizedResponse("drug", 1, None, replaced, missing=missing), KEY).equals(table)


def test_keeping_no_value_draws_uniformly():
    found = values_after(treated(people(), RandomizedResponse("drug", keep=0), KEY), "drug")
    expected = 10_000
    # Chi-square with 3 degrees of freedom: above 21.1 once in 10,000 keys.
    assert sum((count - expected) ** 2 / expected for count in found.counts) < 21.1


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_the_expected_share_of_values_is_kept(keep):
    table, rows = people(), 40_000
    found = treated(table, RandomizedResponse("drug", keep=keep), KEY)
    same = np.mean(found["drug"].to_numpy() == table["drug"].to_numpy())
    expected = keep + (1 - keep) / 4
    assert abs(same - expected) < 5 * math.sqrt(expected * (1 - expected) / rows)


def test_another_key_place_or_column_draws_other_values():
    table, response = people(1000), RandomizedResponse("drug", keep=0)
    found = treated(table, response, KEY)["drug"].to_pylist()
    assert treated(table, response, KEY)["drug"].to_pylist() == found
    for key, number in ((gpupif.treatments.Key.from_any(bytes(32)), 0), (KEY, 1)):
        other = treated(table, response, key, number=number)["drug"].to_pylist()
        # Two draws agree once in four.
        assert abs(np.mean(np.array(other) == np.array(found)) - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 1000)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("keep", [0.25, 0.5])
@pytest.mark.parametrize("replaced", ["uniform", "prior"])
def test_estimates_are_unbiased_and_their_errors_right(keep, replaced):
    """Check over 60 keys that estimates are near the original shares, with errors of the stated size."""
    table, rows = people(2000), 2000
    truth = values_after(table, "drug").counts / rows
    found, said = [], []
    for number in range(60):
        step = prepared(table, RandomizedResponse("drug", keep=keep, replaced=replaced), KEY, number)
        after = treated(table, RandomizedResponse("drug", keep=keep, replaced=replaced), KEY, number=number)
        estimates = step.estimates("drug", values_after(after, "drug"))
        assert estimates["value"].tolist() == ["a", "b", "c", "d"]
        assert estimates["share"].sum() == pytest.approx(1)
        assert estimates["rows"].tolist() == pytest.approx((estimates["share"] * rows).tolist())
        found.append(estimates["share"])
        said.append(estimates["standard_error"])
    mean_error = np.mean(said, axis=0)
    assert (np.abs(np.mean(found, axis=0) - truth) < 5 * mean_error / math.sqrt(60)).all()
    if replaced == "uniform":
        expected = keep * truth + (1 - keep) / 4
        variances = expected * (1 - expected) / (rows * keep * keep)
        assert mean_error == pytest.approx(np.sqrt(variances), rel=0.1)
    # The table is not drawn again: the spread lacks the part of the sample, p(1 - p)/N.
    without = np.sqrt(mean_error**2 - truth * (1 - truth) / rows)
    assert np.std(found, axis=0) == pytest.approx(without, rel=0.4)


def test_estimates_are_right_with_missing_values():
    table = people(20_000, missing=5000)
    for missing, values in (("category", 5), ("keep", 4)):
        step = prepared(table, RandomizedResponse("drug", keep=0.5, missing=missing), KEY)
        after = treated(table, RandomizedResponse("drug", keep=0.5, missing=missing), KEY)
        found = step.estimates("drug", values_after(after, "drug"))
        assert len(found) == values
        assert step.estimates("row", values_after(after, "row")) is None
        truth = values_after(table, "drug")
        rows = truth.counts.sum() + (truth.missing if missing == "category" else 0)
        known = np.append(truth.counts, truth.missing)[:values] / rows
        assert (np.abs(found["share"] - known) < 5 * found["standard_error"]).all()
        assert found["value"].isna().sum() == (missing == "category")


def test_estimates_that_cannot_be_computed_are_refused():
    table = people(100)
    for nothing in (RandomizedResponse("drug", keep=0), RandomizedResponse("drug", epsilon=0)):
        with pytest.raises(InputError, match=r"depend too little .* Keep more"):
            prepared(table, nothing, KEY).estimates("drug", values_after(table, "drug"))
    other = pa.table({"drug": ["a", "other"]})
    with pytest.raises(InputError, match=r"has 'other', which is not among the 4 values"):
        prepared(table, RandomizedResponse("drug", keep=0.5), KEY).estimates("drug", values_after(other, "drug"))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, math.log(3), 5.0, 40.0])
@pytest.mark.parametrize("replaced", ["uniform", "prior"])
def test_epsilon_is_not_above_the_requested_one(epsilon, replaced):
    step = prepared(people(1000), RandomizedResponse("drug", epsilon=epsilon, replaced=replaced), KEY)
    drawn = step.transitions.replaced
    exact = Fraction(2**64 - sum(drawn) + min(drawn), min(drawn))
    assert math.log(exact) <= epsilon + 1e-15
    # At 40 a replacement is drawn about 78 times in 2^64.
    assert math.log(exact) == pytest.approx(epsilon, rel=1e-3 if epsilon == 40 else 1e-12, abs=1e-15)
    assert step.record["epsilon"] == pytest.approx(math.log(exact), abs=1e-15)


def test_epsilon_of_prior_replacement_follows_from_the_rarest_value():
    for response, size in (
        (RandomizedResponse("drug", keep=0.3, replaced="prior"), 4),
        (RandomizedResponse("drug", keep=0.3, replaced="prior", missing="category"), 5),
    ):
        step = prepared(people(1000), response, KEY)
        matrix = step.transitions.matrix()[:4, :4]
        assert len(step.transitions.matrix()) == size
        assert step.record["epsilon"] == pytest.approx(math.log((matrix.max(axis=0) / matrix.min(axis=0)).max()))
    given = RandomizedResponse("drug", keep=0.3, replaced="prior", values=list("abcde"))
    assert prepared(people(1000), given, KEY).record["epsilon"] is None


def test_prior_replacement_keeps_shares_in_expectation():
    table = people(3000, missing=100)
    for missing, size in (("category", 5), ("keep", 4)):
        step = prepared(table, RandomizedResponse("drug", keep=0.3, replaced="prior", missing=missing), KEY)
        found = values_after(table, "drug")
        counts = np.append(found.counts, found.missing)[:size]
        assert counts @ step.transitions.matrix() == pytest.approx(counts)


def test_risk_under_prior_replacement_needs_no_draw():
    """Check the expected posterior: it is the formula of accuracies, and scores with accuracies equal the response."""
    table = gpupif.datasets.census(2000, seed=3)[["sex", "region", "occupation"]]
    keep = 0.4
    step = prepared(
        pa.table({"occupation": table["occupation"].astype(str)}),
        RandomizedResponse("occupation", keep=keep, replaced="prior"),
        KEY,
    )
    scored = gpupif.score(table, columns=["occupation"], known=["sex", "region"], accuracies={"occupation": keep})
    values = sorted(table["occupation"].astype(str).unique())
    prior = table["occupation"].astype(str).value_counts(normalize=True)[values].to_numpy()
    expected = {}
    for cohort, rows in table["occupation"].astype(str).groupby([table["sex"], table["region"]]):
        share = rows.value_counts(normalize=True).reindex(values, fill_value=0).to_numpy()
        posterior = share @ step.transitions.matrix()
        expected[cohort] = float(np.sum(posterior * np.log2(posterior / prior)))
    gains = scored.to_pandas() if hasattr(scored, "to_pandas") else scored.frame()
    names = [name for name in gains.columns if "cig" in name.lower()]
    cohorts = zip(table["sex"], table["region"], strict=True)
    assert gains[names[0]].to_numpy() == pytest.approx([expected[one] for one in cohorts])


@pytest.mark.parametrize("epsilon", [0.01, 0.5108, math.log(3), 3, 20])
def test_posteriors_of_prior_replacement_follow_their_formula(epsilon):
    assert float(keep_of_epsilon(epsilon, Fraction(1, 2))) == pytest.approx(math.tanh(epsilon / 2))
    for values in (2, 3, 100):
        keep = keep_of_epsilon(epsilon, Fraction(1, values))
        # Local differential privacy compares the largest with the smallest probability of a recorded value.
        replaced = (1 - keep) / values
        assert math.log((keep + replaced) / replaced) == pytest.approx(epsilon)
    assert keep_of_epsilon(0, Fraction(1, 2)) == 0


def test_types_of_columns_stay():
    for values in (pa.array([3, 1, 2, 1] * 50), pa.array([True, False] * 100), pa.array([0.5, 2.0] * 100)):
        found = treated(pa.table({"drug": values}), RandomizedResponse("drug", keep=0.5), KEY)["drug"]
        assert found.type == values.type
        assert set(found.to_pylist()) == set(values.to_pylist())
    dates = pa.array(pd.date_range("2020-01-01", periods=4).date.tolist() * 30)
    given = ["2020-01-04", "2020-01-01", "2020-01-02", "2020-01-03", "2021-01-01"]
    found = treated(pa.table({"drug": dates}), RandomizedResponse("drug", keep=0, values=given), KEY)["drug"]
    assert found.type == pa.date32()
    assert sorted(map(str, set(found.to_pylist()))) == sorted(given)


def test_the_record_has_the_values_keep_and_epsilon():
    public = prepared(people(), RandomizedResponse("drug", keep=0.5), KEY)
    assert json.loads(json.dumps(public.record)) == {
        "values": 4,
        "values_from": "the table",
        "keep": 0.5,
        "epsilon": pytest.approx(math.log(5)),
        "replaced_by_each": 0.125,
    }
    assert public.revealing == ()
    prior = prepared(people(), RandomizedResponse("drug", keep=0.5, replaced="prior"), KEY)
    assert set(prior.revealing) == {"keep", "epsilon", "replaced_by_each"} <= set(prior.record)
    assert prepared(people(), RandomizedResponse("drug", keep=1), KEY).record["epsilon"] is None


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (RandomizedResponse("drug"), r"either keep= \(a probability\) or epsilon= \(in nats\), got neither"),
        (RandomizedResponse("drug", 0.5, 1.0), "got both"),
        (RandomizedResponse("drug", -0.1), "keep: expected a probability from 0 to 1, got -0.1"),
        (RandomizedResponse("drug", 50), "got 50. Divide percentages by 100"),
        (RandomizedResponse("drug", math.nan), "got nan"),
        (RandomizedResponse("drug", "half"), "got 'half'"),
        (RandomizedResponse("drug", epsilon=-1), "epsilon: expected a number from 0 to 40 .*, got -1"),
        (RandomizedResponse("drug", epsilon=math.inf), "got inf. For values that all stay, write keep=1"),
        (RandomizedResponse("drug", 0.5, replaced="gauss"), "replaced: expected 'uniform' or 'prior', got 'gauss'"),
        (RandomizedResponse("drug", 0.5, missing="drop"), "missing: expected 'category' or 'keep', got 'drop'"),
        (RandomizedResponse("drug", 0.5, values=[]), "values: expected at least one value"),
        (RandomizedResponse("drug", 0.5, values="abcd", missing="keep"), "is not among the 1 that were given"),
        (RandomizedResponse("drug", 0.5, values=["a", "b"], missing="keep"), "the value 'c' of the table is not among"),
        (RandomizedResponse("drug", 0.5), r"10 missing values, and no rule for them. Say missing='category'"),
        (RandomizedResponse("row", 0.5, values=[*range(100), "x"]), "expected values of type int64"),
        (
            RandomizedResponse("drug", epsilon=1, replaced="prior", values=list("abcde"), missing="keep"),
            "epsilon= needs every value to be drawn sometimes",
        ),
    ],
)
def test_bad_input_is_refused(response, said):
    with pytest.raises(InputError, match=said):
        prepared(people(100, missing=10), response, KEY)


def test_a_missing_key_is_an_error():
    with pytest.raises(InputError, match="key: randomized_response of column 'drug' draws by a secret key, and none"):
        prepared(people(10), RandomizedResponse("drug", keep=0.5), None)
