"""Top and bottom coding, and ages over 89."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupif.errors import ColumnTypeError, InputError
from gpupif.treatment.value_maps.pooled_values import BottomCode, Cap, TopCode
from tests.helpers.treated import treated_type, treated_values

NUMBERS = st.lists(st.one_of(st.none(), st.integers(-200, 200)), min_size=1)


def test_ages_over_89_are_one_category():
    assert treated_values([0, 89, 90, 104, None], Cap("x")) == ["0", "89", "90+", "90+", None]
    assert treated_values(["7", "90", "90+"], Cap("x")) == ["7", "90+", "90+"]
    assert treated_values([89.0, 89.5, 90.0], Cap("x")) == ["89", "90+", "90+"]
    assert treated_values([Decimal("89.00"), Decimal("89.01")], Cap("x")) == ["89", "90+"]
    assert treated_values([70, 80, 90], Cap("x", over=79, label="80 or more")) == ["70", "80 or more", "80 or more"]


def test_a_number_as_label_leaves_numbers():
    assert treated_values([1, 95, None], Cap("x", label=90)) == [1, 90, None]
    assert treated_type([1, 95], Cap("x", label=90)) == pa.int64()


def test_values_beyond_the_limit_become_the_limit():
    assert treated_values([1, 5, 9], TopCode("x", limit=5)) == [1, 5, 5]
    assert treated_values([1, 5, 9], BottomCode("x", limit=5)) == [5, 5, 9]
    assert treated_type([1, 9], TopCode("x", limit=5)) == pa.int64()
    assert treated_values([1.5, math.inf], TopCode("x", limit=5)) == [1.5, 5.0]
    assert treated_values([1, 9], TopCode("x", limit=5, label=7.5)) == [1.0, 7.5]
    assert treated_values([1, 9], BottomCode("x", limit=5, label="<5")) == ["<5", "9"]
    assert treated_values(["1", "9", "5.5"], TopCode("x", limit=5)) == ["1", "5", "5"]


def test_limits_are_compared_exactly():
    assert treated_values([2**53, 2**53 + 1], TopCode("x", limit=2**53)) == [2**53, 2**53]
    least = Decimal("5.00000000000000000001")
    assert treated_values([Decimal(5), least], TopCode("x", limit=5, label="more")) == ["5", "more"]
    assert treated_values([1, 2], TopCode("x", limit=1.5)) == [1.0, 1.5]
    assert treated_values(["0.1", "0.10000000000000001"], TopCode("x", limit=0.1, label="+")) == ["0.1", "+"]


@given(NUMBERS, st.integers(-200, 200), st.sampled_from([None, "beyond", 3]))
def test_pooling_follows_its_definition_and_is_idempotent(values, limit, label):
    series = pd.array(values, "Int64")
    for pool, beyond in ((TopCode, lambda v: v > limit), (BottomCode, lambda v: v < limit)):
        treatment = pool("x", limit=limit, label=label)
        text = str if isinstance(label, str) else int
        new = limit if label is None else label
        expected = [None if v is None else new if beyond(v) else text(v) for v in values]
        assert treated_values(series, treatment) == (expected if any(v is not None for v in values) else values)
        if label is None or isinstance(label, str):
            assert treated_values(series, treatment, treatment) == treated_values(series, treatment)


@pytest.mark.parametrize(
    ("values", "treatment", "fragment"),
    [
        (["1", "n/a"], Cap("x"), "expected numbers, got 'n/a'. Recode other values first"),
        ([1], Cap("x", over="89"), "over: expected a number, got '89'"),
        ([1], TopCode("x", limit=math.nan), "limit: expected a number, got nan"),
        ([1], TopCode("x", limit=3, label=["a"]), "label: expected a number or text, got ['a']"),
    ],
)
def test_bad_values_and_limits_are_refused(values, treatment, fragment):
    with pytest.raises(InputError) as caught:
        treated_values(values, treatment)
    assert fragment in str(caught.value)


def test_dates_of_birth_are_no_ages():
    for values in ([datetime.date(1930, 1, 1)], pd.to_datetime(["1930-01-01"])):
        with pytest.raises(ColumnTypeError, match=r"column 'x': expected numbers, .*Take a part of dates first"):
            treated_values(values, Cap("x"))
    with pytest.raises(ColumnTypeError, match="got bool"):
        treated_values(np.array([True]), Cap("x"))
