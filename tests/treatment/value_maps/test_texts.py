"""Values as texts, by which plans know them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupif.encoding.plain_values import text_of, texts, texts_of

MOMENT = datetime.datetime(2020, 1, 31, 8)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(5, 2)])
def test_a_number_has_the_same_text_in_every_type(kind):
    assert texts(pa.array([7, 0, None], pa.int8()).cast(kind)).to_pylist() == ["7", "0", None]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_time_has_the_same_text_in_every_unit(unit):
    values = [MOMENT, datetime.datetime(2020, 1, 31), None]
    assert texts(pa.array(values, pa.timestamp(unit))).to_pylist() == ["2020-01-31 08:00:00", "2020-01-31", None]
    zoned = pa.array([MOMENT], pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit, "Europe/Berlin"))
    assert texts(zoned).to_pylist() == ["2020-01-31 09:00:00+0100"]


@given(st.lists(st.floats(allow_nan=False), unique=True))
def test_different_floats_have_different_texts(values):
    values = list({value + 0.0 for value in values})
    found = texts(pa.array(values, pa.float64())).to_pylist()
    assert len(set(found)) == len(values)
    assert [float(text) for text in found] == values


def test_values_of_several_types_have_their_texts():
    mixed = [1, "1", 1.5, Decimal("2.50"), True, datetime.date(2020, 1, 31), b"\x01"]
    expected = ["1", "1", "1.5", "2.5", "true", "2020-01-31", "01"]
    assert texts_of(mixed) == expected
    assert [text_of(value) for value in mixed] == expected
    assert texts_of([2, 1]) == ["2", "1"]
    assert texts_of([]) == []
