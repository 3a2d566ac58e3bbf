"""Sums of floats are exact, as sums of fractions are: in any order, from any parts, on host and device."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupif.results.summary_figures import ColumnFigures, Figures
from gpupif.utils.exact_sums import ExactSum
from tests.helpers.gpu.numpy_device import OnDevice

SPECIAL = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 5e-324, -5e-324, 2.2e-308, 1.7e308, 2.0**53 - 1]
NUMBERS = st.sampled_from(SPECIAL) | st.floats() | st.floats(-40, 40)
KINDS = {"float64": NUMBERS, "float32": st.floats(width=32), "int64": st.integers(1 - 2**53, 2**53 - 1)}


def by_definition(numbers, number):
    """Return the sum of the numbers without NaN, divided by a whole number, rounded once."""
    infinite = sum(one for one in numbers if math.isinf(one))
    if infinite != 0:
        return infinite
    exact = sum(map(Fraction, (one for one in numbers if math.isfinite(one))), Fraction()) / number
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def on_device(numbers):
    return np.array(numbers).view(OnDevice)


@pytest.mark.parametrize("device", [np.array, on_device])
def test_sums_beyond_the_largest_float_are_infinite(device):
    largest = float(np.finfo("float64").max)
    assert ExactSum.from_numbers(device([1.7e308, 1.7e308])).over(1) == math.inf
    assert ExactSum.from_numbers(device([-1.7e308] * 3)).over(1) == -math.inf
    assert ExactSum.from_numbers(device([1.7e308, 1.7e308])).mean == 1.7e308
    # A number half a unit in the last place above the largest float is rounded to infinity.
    assert ExactSum.from_numbers(device([largest, 2.0**970])).over(1) == math.inf
    assert ExactSum.from_numbers(device([largest, 2.0**969])).over(1) == largest


@settings(deadline=None)
@given(
    drawn=st.sampled_from(list(KINDS)).flatmap(
        lambda kind: st.tuples(st.just(kind), st.lists(KINDS[kind], min_size=1, max_size=30))
    ),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    number=st.integers(1, 10**10),
    random=st.randoms(),
)
def test_sums_are_exact_in_any_order_and_any_parts(drawn, cuts, number, random):
    kind, several = drawn
    numbers = np.array(several, kind)
    plain = [float(one) for one in numbers]
    shuffled = numbers[random.sample(range(len(numbers)), len(numbers))]
    parts = np.split(shuffled, sorted(min(cut, len(numbers)) for cut in cuts))
    found = [
        ExactSum.from_numbers(numbers),
        ExactSum.total(map(ExactSum.from_numbers, parts)),
        ExactSum.from_numbers(on_device(numbers)),
        ExactSum.total(ExactSum.from_numbers(on_device(part)) for part in parts),
        ExactSum.from_numbers(np.repeat(shuffled, 2)[::2]),
    ]
    # Compare texts: the sum of inf and -inf is NaN, which is not equal to itself.
    assert len({repr(one) for one in found}) == 1
    known = [one for one in plain if one == one]
    assert found[0].terms == len(known)
    assert repr(found[0].over(number)) == repr(float(by_definition(known, number)))
    expected = by_definition(known, len(known)) if known else math.nan
    assert repr(found[0].mean) == repr(float(expected))


@settings(deadline=None)
@given(st.lists(st.tuples(NUMBERS, st.integers(1, 5)), min_size=1, max_size=20))
def test_a_number_with_a_multiplicity_counts_as_repeated(several):
    numbers, times = np.array([one for one, _ in several]), np.array([often for _, often in several], np.int64)
    assert repr(ExactSum.from_numbers(numbers, times)) == repr(ExactSum.from_numbers(np.repeat(numbers, times)))


@pytest.mark.parametrize("number", [1.0 - 2.0**-53, -5e-324, 1.7e308])
def test_the_highest_multiplicity_is_summed_exactly(number):
    """The sums of the halves of mantissas do not overflow for the highest total multiplicity."""
    often = np.array([1 << 35, (1 << 35) - 1, 1], np.int64)
    assert (
        ExactSum.from_numbers(np.full(3, number), often).units == ExactSum.from_numbers(np.array([number])).units << 36
    )


def test_the_sum_of_no_numbers_is_empty():
    for nothing in (np.empty(0), on_device(np.empty(0)), np.array([math.nan]), on_device([math.nan])):
        assert ExactSum.from_numbers(nothing) == ExactSum.total([]) == ExactSum()
    assert math.isnan(ExactSum().mean)
    assert ExactSum().over(1) == 0.0


@settings(deadline=None)
@given(st.lists(st.sampled_from(SPECIAL[:3]) | st.floats(0, 40), min_size=1, max_size=30), st.integers(0, 30))
def test_figures_of_parts_add_up_to_those_of_the_whole(numbers, cut):
    """Figures of parts make the figures of the whole, also after they were stored."""
    scores = np.array(numbers)
    values, times = np.unique(scores, return_counts=True)
    parts = [ColumnFigures.from_scores("class_size", part) for part in (scores[:cut], scores[cut:])]
    stored = [Figures.from_stored(json.loads(json.dumps(Figures({"x": [part]}).to_stored()))) for part in parts]
    expected = ColumnFigures.from_scores("class_size", scores)
    assert ColumnFigures.from_scores("class_size", values, times) == expected
    assert Figures.together(*stored).of_columns["x"] == [expected]
    known = [one for one in numbers if one == one]
    assert expected.highest == max(known, default=-math.inf)
    assert expected.lowest == min((one for one in known if one > 0), default=math.inf)
