"""Messages without values of the table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupif.nightly.hidden_values import without_values, words_of

KNOWN = {"age", "person's town", "a b"}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("column 'age': expected a number, got 'shingles'.", "column 'age': expected a number, got '***'."),
        ("column 'age': negative, -17.25 in row 3.", "column 'age': negative, *** in row 3."),
        ('column "person\'s town": got "O\'Hara".', "column \"person's town\": got '***'."),
        ("in row 12 of 1,000 rows, got 1e-3", "in row 12 of 1,000 rows, got ***"),
        ("at least 12,000 distinct values; 3.5 GiB", "at least 12,000 distinct values; 3.5 GiB"),
        ("/data/2026/part-7.parquet: no such file", "/data/2026/part-7.parquet: no such file"),
        (
            "a.csv: no CSV (CSV parse error: Expected 2 columns, got 3: Ann,flu (x)., 7, after row 1,200).",
            "a.csv: no CSV (CSV parse error: Expected 2 columns, got 3: ***, after row 1,200).",
        ),
        (
            "CSV parse error: Row #3: Expected 2 columns, got 1: O'Hara, after row 5). Ann",
            "CSV parse error: Row #3: Expected 2 columns, got 1: ***",
        ),
        ("int64, float32 and 2.5", "int64, float32 and ***"),
        ("column 'town' is not there; columns 'x' and 'y' are", "column 'town' is not there; columns 'x' and 'y' are"),
        ("give a pattern, such as 'a/*.csv' or 'b', got 'c'", "give a pattern, such as 'a/*.csv' or 'b', got '***'"),
        ("column 'x', 'flu' of it", "column 'x', '***' of it"),
    ],
)
def test_quoted_values_of_a_message_are_hidden(message, shown):
    assert without_values(message, KNOWN) == shown


@given(st.text(min_size=3).filter(lambda text: text not in KNOWN and not set(text) & set("*\\") and text.strip("'\"")))
def test_unknown_quoted_texts_are_hidden(text):
    assert text not in without_values(f"got {text!r} there", KNOWN) or text in "got '***' there"


def test_words_of_a_configuration_may_be_shown():
    words = words_of({"keep": {"where": "foo >= 3"}, "known": [2, "a b"], "none": None})
    assert {"keep", "where", "foo >= 3", "foo", "2", "a b", "cig", "k"} <= words
    assert without_values("where: got 'foo'; known: got 2, and 7", words) == "where: got 'foo'; known: got 2, and ***"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_given_numbers_are_hidden(number):
    assert without_values(f"expected a weight, got {number!r}.", KNOWN) == "expected a weight, got ***."
