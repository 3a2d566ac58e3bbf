"""The composition of privacy losses: known answers, definitions by brute force, and the bug of dp-accounting."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpupif import InputError
from gpupif.release import Loss
from gpupif.release.accounting import MOST_STEPS, compose

DELTA = 1e-5
# Importing dp-accounting takes seconds.
slow = pytest.mark.slow


@slow
@pytest.mark.parametrize(
    ("loss", "total", "zcdp", "rdp", "pld"),
    [
        (Loss("gaussian", 10), math.inf, 5.2985, 4.7285, 4.3772),
        (Loss("laplace", 10), 10, 5.2985, 4.5327, 4.2203),
        # Noise on whole numbers with sensitivity 1 is as bad as randomised response.
        (Loss("discrete_laplace", 10), 10, 5.2985, 4.6154, 4.3068),
        (Loss("pure", 10), 10, 5.2985, 4.6154, 4.3068),
        (Loss("discrete_gaussian", 10), math.inf, 5.2985, 4.7285, 4.3778),
    ],
)
def test_known_answers_of_100_releases(loss, total, zcdp, rdp, pld):
    found = compose([loss] * 100, DELTA)
    assert (found.sum, round(found.zcdp, 4), round(found.rdp, 4), round(found.pld, 4)) == (total, zcdp, rdp, pld)
    assert found.least == found.pld


@slow
def test_dp_accounting_ignores_the_count_of_randomised_response():
    """If this fails, dp-accounting is mended, and the remark in `compose` may go."""
    from dp_accounting import NeighboringRelation, RandomizedResponseDpEvent
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    accountant.compose(RandomizedResponseDpEvent(noise_parameter=0.5, num_buckets=2), 10)
    assert round(accountant.get_epsilon(DELTA), 4) == 1.0987
    assert round(compose([Loss("pure", 1 / math.log(3))] * 10, DELTA).pld, 3) == 10.987


@slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian", "discrete_laplace", "discrete_gaussian", "pure"])
def test_several_at_once_are_as_many_single_ones(kind):
    delta = 1e-9 * ("gaussian" in kind)
    loss, others = Loss(kind, 6), [Loss(kind, 6, epsilon=1 + number, delta=delta) for number in range(3)]
    single = loss.distribution()
    for _ in range(2):
        single = single.compose(loss.distribution())
    for found in (compose([loss] * 3, DELTA), compose(others, DELTA)):
        assert found.pld == pytest.approx(single.get_epsilon_for_delta(DELTA), rel=1e-6)
    assert compose([Loss(kind, 6, times=3)], DELTA).rdp == pytest.approx(compose([loss] * 3, DELTA).rdp)


@slow
def test_a_coarser_grid_is_never_better_and_a_failure_takes_of_delta():
    fine = compose([Loss("discrete_laplace", 30 * 16, 16)] * 50, DELTA)
    coarse = compose([Loss("discrete_laplace", 30, 1)] * 50, DELTA)
    assert fine.pld < coarse.pld
    assert fine.rdp < coarse.rdp
    failing = compose([Loss("pure", 10, failure=DELTA / 2)] + [Loss("pure", 10)] * 49, DELTA)
    assert failing.pld == pytest.approx(compose([Loss("pure", 10)] * 50, DELTA / 2).pld)


@slow
@pytest.mark.parametrize("loss", [Loss("laplace", 1e-5), Loss("discrete_gaussian", 1e9)])
def test_no_distribution_is_made_that_memory_does_not_hold(loss):
    found = compose([loss, Loss("pure", 10)], DELTA)
    assert (found.pld, math.isfinite(found.rdp)) == (math.inf, True)


def discrete_laplace(scale, places):
    return math.tanh(1 / (2 * scale)) * np.exp(-np.abs(places) / scale)


@pytest.mark.parametrize(("scale", "sensitivity"), [(2.0, 1), (3.0, 2), (5.0, 7)])
def test_renyi_divergences_are_as_defined(scale, sensitivity):
    places = np.arange(-90, 100)
    p, q = discrete_laplace(scale, places), discrete_laplace(scale, places - sensitivity)
    orders = np.array([1.5, 2.0, 8.0])
    wanted = [math.log(np.sum(p**a * q ** (1 - a))) / (a - 1) for a in orders]
    assert Loss("discrete_laplace", scale, sensitivity).renyi(orders) == pytest.approx(wanted)
    if sensitivity == 1:
        assert Loss("pure", scale).renyi(orders) == pytest.approx(wanted)
        x = np.linspace(-80, 81, 2_000_001)
        densities = [np.exp(-np.abs(x - shift) / scale) / (2 * scale) for shift in (0, 1)]
        wanted = [
            math.log(np.sum(densities[0] ** a * densities[1] ** (1 - a)) * (x[1] - x[0])) / (a - 1) for a in orders
        ]
        assert Loss("laplace", scale).renyi(orders) == pytest.approx(wanted, rel=1e-4)


def test_many_steps_stand_for_no_less():
    orders = np.array([1.5, 8.0])
    exact = Loss("discrete_laplace", 500.0, MOST_STEPS).renyi(orders)
    assert (Loss("discrete_laplace", 500.0 * 3, MOST_STEPS * 3).renyi(orders) == exact).all()
    assert (Loss("discrete_laplace", 500.0, MOST_STEPS + 1).renyi(orders) > exact).all()


def test_sums_are_those_of_the_numbers_as_written():
    tenth = Loss("discrete_laplace", 10.0, epsilon=0.1)
    assert compose([tenth] * 10, 0.0).least == 1.0
    assert compose([tenth] * 10, DELTA, enough=1.0).rdp is None
    assert compose([], 0.0).least == 0
    assert compose([Loss("discrete_gaussian", 10, epsilon=1, delta=1e-6)], 0.0).least == math.inf
    assert compose([Loss("discrete_gaussian", 10, epsilon=1, delta=1e-6)], 1e-6, enough=1).sum == 1
    assert compose([Loss("pure", 10, failure=1e-6)], 1e-7).least == math.inf


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("uniform", 1), "kind: expected 'laplace'"),
        (("laplace", 0), "scale: expected a number above 0, got 0"),
        (("laplace", math.nan), "scale"),
        (("discrete_laplace", 1, 1.5), "sensitivity: expected a whole number"),
        (("laplace", 1, 1, 1, 0.5), "epsilon: expected at least 1, which this noise loses; got 0.5"),
        (("pure", 1, 1, 1, None, 1.0), "delta: expected a number from 0 to below 1"),
        # An (epsilon, delta) mechanism would count as (epsilon, 0) by all theorems but the sum.
        (("pure", 1, 1, 1, None, 1e-6), "delta: is of Gaussian noise.*failure="),
        (("gaussian", 10, 1, 1, 0.5, 1e-9), "delta: expected at least 6.85658e-09, its chance to fail"),
        (("gaussian", 1e-300), "scale: expected a millionth of the sensitivity or more"),
    ],
)
def test_wrong_losses_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        Loss(*given)
