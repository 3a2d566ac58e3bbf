"""What is known of randomised responses: known answers, those of the sources where these are right."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from gpupif.treatment.random.randomized_response import (
    epsilon_of_keep,
    estimated_share,
    keep_of_epsilon,
    posteriors,
    privacy_loss,
    variance_of_estimate,
)

SHARES = [0.05, 0.25, (math.sqrt(3) - 1) / 2, 0.5, 0.9]


@pytest.mark.parametrize("p", SHARES)
@pytest.mark.parametrize("t", [0.1, 0.25, 0.5, 1.0])
def test_the_posterior_of_a_recorded_one_follows_its_formula(p, t):
    found = posteriors([1 - p, p], t)
    assert found[1, 1] == pytest.approx((t + 1) * p / (2 * t * p - t + 1))
    assert found.sum(axis=1) == pytest.approx([1, 1])


@pytest.mark.parametrize("p", SHARES)
def test_the_coin_of_the_story_has_odds_of_three_to_one(p):
    found = posteriors([1 - p, p], 0.5)
    assert found[1, 1] == pytest.approx(3 * p / (2 * p + 1))
    assert found[0, 1] == pytest.approx(p / (3 - 2 * p))
    # Odds are 3p/(1 - p); a source calls 3:1 odds, which is the likelihood ratio.
    assert found[1, 1] / found[1, 0] == pytest.approx(3 * p / (1 - p))


def test_most_is_learnt_at_a_prior_of_0_366():
    p = np.linspace(0, 1, 100_001)
    gain = 3 * p / (2 * p + 1) - p
    best = (math.sqrt(3) - 1) / 2
    assert p[np.argmax(gain)] == pytest.approx(best, abs=1e-5)
    assert best == pytest.approx(0.366, abs=5e-4)
    assert posteriors([1 - best, best], 0.5)[1, 1] == pytest.approx(0.634, abs=5e-4)


@pytest.mark.parametrize("p", SHARES)
def test_privacy_loss_is_the_gain_of_the_posterior_in_bits(p):
    assert privacy_loss(p, 0) == 0
    assert privacy_loss(p, 1) == pytest.approx(-math.log2(p))
    for t in (0.1, 0.5, 0.9):
        assert privacy_loss(p, t) == pytest.approx(math.log2((t + 1) / (2 * t * p - t + 1)))
        # It is what the posterior gains on the prior.
        assert privacy_loss(p, t) == pytest.approx(math.log2(posteriors([1 - p, p], t)[1, 1] / p))
    assert privacy_loss(p, 0.4, 5) == pytest.approx(math.log2((0.4 + 0.12) / (0.4 * p + 0.12)))


def test_the_loss_of_a_coin_is_positive():
    """The source (seed 0:89, 2:25) has the sign wrong: it is + log2(3/(2p + 1))."""
    assert privacy_loss(0.25, 0.5) == 1
    assert privacy_loss(0.366, 0.5) == pytest.approx(math.log2(3 / (2 * 0.366 + 1)))


@pytest.mark.parametrize(
    ("t", "variance", "digits"), [(1, 0.00021, 5), (0.5, 0.00096, 5), (0.25, 0.00396, 5), (0.1, 0.02496, 5)]
)
def test_the_variance_of_the_estimate_follows_its_formula(t, variance, digits):
    """The source (seed 0:99, 2:35) has another; that of q = tp + (1 - t)/2 is right, so intervals go with 1/t."""
    assert round(variance_of_estimate(0.3, t, 1000), digits) == variance
    q = t * 0.3 + (1 - t) / 2
    assert variance_of_estimate(0.3, t, 1000) == pytest.approx(q * (1 - q) / (1000 * t * t))
    assert variance_of_estimate(0.3, t, 1000) == pytest.approx((1 / (4 * t * t) - (0.3 - 0.5) ** 2) / 1000)
    assert variance_of_estimate(0.3, t, 1000) == pytest.approx(0.3 * 0.7 / 1000 + (1 - t * t) / (4 * 1000 * t * t))


def test_the_estimated_share_inverts_the_response():
    assert estimated_share(0.6, 0.5) == pytest.approx(2 * 0.6 - 0.5)
    for t in (0.1, 0.5, 1):
        for p in SHARES:
            assert estimated_share(t * p + (1 - t) / 4, t, 4) == pytest.approx(p)


@pytest.mark.parametrize(
    ("t", "k", "epsilon"),
    [(0.5, 2, math.log(3)), (0.25, 2, 0.5108), (0.5, 3, math.log(4)), (0, 5, 0), (1, 2, math.inf)],
)
def test_epsilon_follows_the_definition_of_local_differential_privacy(t, k, epsilon):
    assert epsilon_of_keep(t, Fraction(1, k)) == pytest.approx(epsilon, abs=5e-5)
    # By the definition of local differential privacy.
    matrix = t * np.eye(k) + (1 - t) / k
    if t < 1:
        assert epsilon_of_keep(t, Fraction(1, k)) == pytest.approx(math.log(matrix.max() / matrix.min()))


@pytest.mark.parametrize("epsilon", [0.01, 0.5108, math.log(3), 3, 20])
def test_the_kept_share_follows_from_epsilon(epsilon):
    assert float(keep_of_epsilon(epsilon, Fraction(1, 2))) == pytest.approx(math.tanh(epsilon / 2))
    for k in (2, 3, 100):
        assert epsilon_of_keep(keep_of_epsilon(epsilon, Fraction(1, k)), Fraction(1, k)) == pytest.approx(epsilon)
    assert keep_of_epsilon(0, Fraction(1, 2)) == 0
