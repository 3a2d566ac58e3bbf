"""The calculator `gpupif.randomized_response`: the numbers of the articles, right where the articles are wrong."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest

import gpupif
from gpupif import InputError, randomized_response
from gpupif.release import randomized_response as calculator


def test_the_story_of_the_coin():
    coin = randomized_response(keep=0.5, prior=0.25, rows=1000)
    assert coin.epsilon == pytest.approx(math.log(3), abs=1e-15)
    assert coin.likelihood_ratio == pytest.approx(3)
    # The loss is +log2(3 / (2p + 1)): one bit for one in four.
    assert (coin.posterior, coin.privacy_loss) == (0.5, 1.0)
    assert coin.posterior_otherwise == pytest.approx(0.25 / (3 - 0.5))
    # 3 : 1 is the likelihood ratio; the odds are 3p / (1 - p).
    assert coin.odds == pytest.approx(3 * 0.25 / 0.75)
    assert coin.most_learnt_prior == pytest.approx((math.sqrt(3) - 1) / 2, abs=1e-15)
    assert round(coin.most_learnt_prior, 3) == 0.366
    assert round(coin.most_learnt_posterior, 3) == 0.634
    assert randomized_response(keep=0.5, recorded=0.4).estimate == pytest.approx(2 * 0.4 - 0.5)


@pytest.mark.parametrize(("keep", "variance"), [(1, 0.00021), (0.5, 0.00096), (0.25, 0.00396), (0.1, 0.02496)])
def test_the_variance_grows_with_one_over_the_square_of_t(keep, variance):
    found = randomized_response(keep=keep, prior=0.3, rows=1000)
    assert round(found.standard_error**2, 5) == variance
    p, t = 0.3, keep
    assert found.standard_error**2 == pytest.approx(p * (1 - p) / 1000 + (1 - t**2) / (4 * 1000 * t**2))
    assert found.estimate == pytest.approx(0.3)


def test_other_numbers_of_values_and_both_ends():
    assert round(randomized_response(keep=0.25).epsilon, 4) == 0.5108
    assert randomized_response(keep=0.5, values=3).epsilon == pytest.approx(math.log(4))
    assert randomized_response(epsilon=0.7).keep == pytest.approx(math.tanh(0.35))
    nothing, all_kept = (randomized_response(keep=keep, prior=0.3) for keep in (0, 1))
    assert (nothing.epsilon, nothing.privacy_loss, nothing.most_learnt, nothing.estimate) == (0, 0, None, None)
    assert (all_kept.epsilon, all_kept.posterior, all_kept.privacy_loss) == (math.inf, 1, -math.log2(0.3))
    assert all_kept.to_dict()["epsilon"] is None
    assert randomized_response(keep=0.5, prior=0).posterior == 0
    assert randomized_response(keep=0.5, prior=1).privacy_loss == 0


@pytest.mark.parametrize(("t", "k"), [(0.5, 2), (0.2, 5), (0.9, 3)])
def test_what_is_learnt_is_as_the_definitions_say(t, k):
    """Against Bayes' rule over the matrix of probabilities, and the best prior of a fine grid."""
    matrix = t * np.eye(k) + (1 - t) / k
    priors = np.linspace(0.0005, 0.9995, 1999)
    posteriors = [matrix[0, 0] * p / (matrix[0, 0] * p + matrix[1, 0] * (1 - p)) for p in priors]
    best = int(np.argmax(posteriors - priors))
    found = randomized_response(keep=t, values=k, prior=priors[100])
    assert found.posterior == pytest.approx(posteriors[100])
    assert found.epsilon == pytest.approx(math.log(matrix.max() / matrix.min()))
    assert found.most_learnt_prior == pytest.approx(priors[best], abs=5e-4)
    assert found.most_learnt == pytest.approx(posteriors[best] - priors[best], abs=1e-6)


def test_it_uses_the_formulas_of_the_treatment():
    import pandas as pd

    table = pd.DataFrame({"drug": ["yes"] * 300 + ["no"] * 700})
    plan = [gpupif.treatments.RandomizedResponse("drug", keep=0.5)]
    with pytest.warns(gpupif.errors.SeedWarning):
        done = gpupif.treat(table, plan, seed=1)
    shares = done.estimates("drug").set_index("value").loc["yes"]
    found = randomized_response(keep=0.5, recorded=(done.table["drug"] == "yes").mean(), rows=1000)
    assert (found.estimate, found.standard_error) == pytest.approx((shares["share"], shares["standard_error"]))


def test_it_prints_and_has_a_verdict():
    found = randomized_response(keep=0.5, prior=0.25, rows=1000)
    assert "from 25 % to 50 %, 1 bit." in " ".join(found.verdict())
    assert "p at which most is learnt" in str(found)
    assert "0.366" in found._repr_html_()
    for recorded, said in ((0.1, True), (0.3, False), (0.9, True)):
        verdict = randomized_response(keep=0.5, recorded=recorded, rows=1000).verdict()
        assert ("outside 0 to 1" in verdict[-1]) == said


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "expected either keep= .* got neither"),
        ({"keep": 0.5, "epsilon": 1}, "got both"),
        ({"keep": 1.5}, "keep: expected a probability from 0 to 1, got 1.5. Divide percentages by 100."),
        ({"epsilon": 50}, "epsilon: expected a number from 0 to 40 .*, got 50"),
        ({"keep": 0.5, "values": 1}, "values: expected a whole number of possible values, 2 or more; got 1"),
        ({"keep": 0.5, "prior": -1}, "prior: expected a probability"),
        ({"keep": 0.5, "rows": 0}, "rows: expected a whole number of records, 1 or more"),
    ],
)
def test_wrong_arguments_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        randomized_response(**given)


def test_the_docstring_holds():
    tried = doctest.testmod(calculator)
    assert (tried.attempted, tried.failed) == (4, 0)
