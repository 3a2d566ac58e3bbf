"""Sums of rows over columns are the sums of fractions, in any order."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupif.utils.exact_sums import sum_rows

# Gains in bits: a prior of 2^-64 gives a gain of 64.
GAINS = st.floats(0, 64).map(lambda gain: gain if gain > 2**-45 else 0.0)
ROWS = st.integers(1, 3).flatmap(lambda rows: st.lists(st.lists(GAINS, min_size=rows, max_size=rows), min_size=1))


def rounded(columns):
    return [float(sum(Fraction(float(gain)) for gain in row)) for row in zip(*columns, strict=True)]


@given(ROWS, st.randoms())
def test_sums_are_rounded_once_in_any_order(columns, draw):
    arrays = [np.array(column) for column in columns]
    assert sum_rows(arrays).tolist() == rounded(columns)
    draw.shuffle(arrays)
    assert sum_rows(arrays).tolist() == rounded(columns)


def test_float32_columns_are_summed_in_float64():
    columns = [np.array([0.1, 0.2], "float32"), np.array([1e-9, 3], "float32")]
    assert sum_rows(columns).tolist() == rounded(columns)
    assert sum_rows(columns).dtype == np.float64
    assert sum_rows([]) is None
    assert columns[0].tolist() == pytest.approx([0.1, 0.2])


def test_infinite_and_unknown_numbers_stay_so_in_sums():
    columns = [np.array([np.inf, np.nan, 1.0]), np.array([1.0, 1.0, np.nan])]
    np.testing.assert_array_equal(sum_rows(columns), [np.inf, np.nan, np.nan])
