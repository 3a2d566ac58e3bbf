"""Rounding to a base."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupif.errors import ColumnTypeError, InputError
from gpupif.treatment.value_maps.rounding import Round
from tests.helpers.treated import treated_type, treated_values

BASES = st.sampled_from([1, 2, 3, 5, 10, 7.0, 1000])


def nearest(value, base):
    """Return the nearest multiple, of two the even one, by Python's rounding of fractions."""
    return round(Fraction(value) / Fraction(str(base))) * Fraction(str(base))


def test_halfway_goes_to_the_even_multiple():
    assert treated_values([5, 15, 25, -5, -15, None], Round("x", 10)) == [0, 20, 20, 0, -20, None]
    assert treated_values([2.5, 7.5, -2.5], Round("x", 5)) == [0.0, 10.0, 0.0]
    assert treated_values(["2.5", "7.5"], Round("x", 5)) == ["0", "10"]
    assert treated_values([Decimal("0.25"), Decimal("0.75")], Round("x", 0.5)) == [Decimal("0.0"), Decimal("1.0")]


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1), BASES)
def test_whole_numbers_are_rounded_exactly(values, base):
    assert treated_values(values, Round("x", base)) == [nearest(value, base) for value in values]
    assert treated_type(values, Round("x", base)) == pa.int64()


@given(st.lists(st.decimals(-(10**15), 10**15, places=2), min_size=1), st.sampled_from([0.05, 0.25, 1, 3, 10]))
def test_decimal_numbers_are_rounded_exactly(values, base):
    expected = [nearest(value, base) for value in values]
    found = treated_values(values, Round("x", base))
    assert [Fraction(value) for value in found] == expected
    assert [Fraction(text) for text in treated_values([str(value) for value in values], Round("x", base))] == expected


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1),
    st.sampled_from([0.05, 0.1, 0.125, 1, 3, 10, 1e6]),
)
def test_floats_become_the_one_nearest_to_a_multiple(values, base):
    series = pd.Series(values)
    found = treated_values(series, Round("x", base))
    for value, new in zip(values, found, strict=True):
        unit = Fraction(str(base))
        assert new == float(round(Fraction(new) / unit) * unit)
        # A tie of decimals need not be a tie of floats.
        assert abs(Fraction(new) - Fraction(value)) <= unit / 2 + Fraction(math.ulp(value)) + Fraction(math.ulp(new))
    assert treated_values(series, Round("x", base), Round("x", base)) == found


def test_a_base_of_0_05_is_taken_as_a_decimal_number():
    assert treated_values([0.149, 0.99], Round("x", 0.05)) == [0.15, 1.0]
    assert treated_values(["0.149", "12"], Round("x", 0.05)) == ["0.15", "12.00"]
    assert treated_values([1e300, math.inf, -math.inf], Round("x", 0.05)) == [1e300, math.inf, -math.inf]


def test_numbers_of_many_digits_are_rounded_exactly():
    values = [Decimal("12345678901234567890123.45"), Decimal("-0.50")]
    assert treated_values(values, Round("x", 1)) == [Decimal("12345678901234567890123"), Decimal(0)]
    assert treated_values([Decimal("99.99")], Round("x", 1)) == [Decimal(100)]
    assert treated_values(np.array([2**64 - 2, 1], np.uint64), Round("x", 3)) == [2**64 - 1, 0]


@pytest.mark.parametrize(
    ("values", "base", "fragment"),
    [
        ([1], 0, "base: expected a number above 0, got 0"),
        ([1], "5", "base: expected a number, got '5'"),
        ([1], math.inf, "got inf"),
        ([1], 0.5, "base: expected a number that is whole, as the column's are; got 0.5"),
        ([Decimal("0.5")], 0.25, "base: expected a number that is of at most 1 decimal places"),
        (["5", "five"], 5, "column 'x': expected numbers, got 'five'"),
        (["5", "02139"], 5, "column 'x': expected numbers, got codes, such as '02139'"),
        ([2**63 - 1], 10, "rounds a value to a number beyond those of the column"),
    ],
)
def test_bad_values_and_bases_are_refused(values, base, fragment):
    with pytest.raises(InputError) as caught:
        treated_values(values, Round("x", base))
    assert fragment in str(caught.value)


def test_columns_that_are_no_numbers_are_refused():
    with pytest.raises(ColumnTypeError, match="expected numbers, got timestamp"):
        treated_values(pd.to_datetime(["2000-01-01"]), Round("x", 10))
