"""Pseudonyms by a secret key."""

from __future__ import annotations

import datetime
import hmac
import string
from importlib import util

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from ffx import FF1
from hypothesis import given
from hypothesis import strategies as st

from gpupif.errors import ColumnTypeError, InputError
from gpupif.treatment.random.key import Key
from gpupif.treatment.value_maps.pseudonym import FormatPreserving, Pseudonym
from tests.helpers.treated import treated, treated_type, treated_values

KEY, OTHER = Key(bytes(range(32))), Key(bytes(32))
SIGNS = st.sampled_from(string.ascii_letters + string.digits + "-/ .@")
CODES = st.tuples(st.text(SIGNS, max_size=12), st.from_regex(r"[A-Z]{2}[0-9]{6}", fullmatch=True)).map("".join)


def pseudonyms(values, key=KEY, **how):
    return treated_values(values, Pseudonym("x", **how), key=key)


def form(text):
    kinds = ((string.digits, "9"), (string.ascii_uppercase, "A"), (string.ascii_lowercase, "a"))
    return "".join(next((name for kind, name in kinds if sign in kind), sign) for sign in text)


def test_the_cipher_is_that_of_nist():
    """Check sample 1 of FF1 (AES-128, radix 10, no tweak), and that signs between digits stay."""
    key = bytes.fromhex("2B7E151628AED2A6ABF7158809CF4F3C")
    assert FormatPreserving(key, "x").encrypt("0123456789") == "2433477484"
    assert FormatPreserving(key, "x").encrypt("(012) 345-6789") == "(243) 347-7484"


@given(st.lists(CODES, min_size=1, max_size=20))
def test_ff1_keeps_the_form_and_tells_values_apart(values):
    found = pseudonyms(values)
    assert [form(text) for text in found] == [form(text) for text in values]
    assert len(set(found)) == len(set(values))


def test_digits_are_undone_by_libffx_alone():
    plain = ["123-45-6789", "987-65-4321"]
    cipher = FF1(KEY.secret("pseudonym ff1 x"), radix=10)
    found = pseudonyms(plain)
    assert [cipher.decrypt(text.replace("-", "")) for text in found] == [text.replace("-", "") for text in plain]


def test_whole_numbers_are_padded_to_the_requested_length():
    found = pseudonyms([7, 123, 99999999, None], length=8)
    cipher = FF1(KEY.secret("pseudonym ff1 x"), radix=10)
    assert [cipher.decrypt(text) for text in found[:3]] == ["00000007", "00000123", "99999999"]
    assert found[3] is None
    with pytest.raises(InputError, match="whole numbers of at most 6 digits; got 1234567"):
        pseudonyms([1234567], length=6)
    with pytest.raises(InputError, match="got -1"):
        pseudonyms([-1], length=6)
    with pytest.raises(ColumnTypeError, match="expected whole numbers, which length= pads"):
        pseudonyms(["a"], length=6)


@pytest.mark.parametrize(
    ("value", "fragment"),
    [
        ("12345", "'12345' is one of 100,000 texts of its form"),
        ("A1-2", "'A1-2' is one of 2,600 texts of its form"),
        ("", "'' is one of 1 texts of its form"),
        ("Zoë123456", "got 'ë' in 'Zoë123456'. Take method='hmac'"),
    ],
)
def test_texts_that_ff1_cannot_encrypt_are_refused(value, fragment):
    with pytest.raises(InputError) as caught:
        pseudonyms(["A1234567", value])
    assert fragment in str(caught.value)


def test_a_missing_libffx_is_named(monkeypatch):
    found = util.find_spec
    monkeypatch.setattr(
        "gpupif.treatment.value_maps.pseudonym.find_spec", lambda name: None if name == "ffx" else found(name)
    )
    with pytest.raises(InputError, match=r"needs libffx.*pip install 'gpupif\[ffx\]'"):
        pseudonyms(["12345678"])
    assert pseudonyms(["12345678"], method="hmac")


def test_a_pseudonym_is_the_hmac_of_the_text_of_the_value():
    expected = [hmac.new(KEY.secret("pseudonym hmac x"), text, "sha256").hexdigest() for text in (b"Ann", b"90")]
    assert pseudonyms(["Ann", "90", None], method="hmac", length=64) == [*expected, None]
    assert pseudonyms(["Ann", "90"], method="hmac") == [text[:32] for text in expected]
    for column in ([90], [90.0], pd.array([90], "UInt8")):
        assert pseudonyms(column, method="hmac", length=12) == [expected[1][:12]]


def test_two_values_with_one_pseudonym_are_an_error():
    with pytest.raises(InputError, match=r"length: 8 digits give two of 300,000 values the same pseudonym"):
        pseudonyms(np.arange(300_000), method="hmac", length=8)


@given(st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1))
def test_a_permutation_has_the_same_values(values):
    found = pseudonyms(pd.array(values, "Int64"), method="permutation")
    of_value = dict(zip(values, found, strict=True))
    assert [of_value[value] for value in values] == found
    assert of_value.get(None) is None
    assert set(found) == set(values)


@pytest.mark.slow
def test_a_permutation_is_drawn_from_all():
    """Check over many keys that all six orders are equally frequent, to four standard deviations; types stay."""
    counts = {}
    for number in range(600):
        found = tuple(pseudonyms([1, 2, 3], key=Key(number.to_bytes(32, "big")), method="permutation"))
        counts[found] = counts.get(found, 0) + 1
    assert len(counts) == 6
    assert max(abs(count - 100) for count in counts.values()) < 4 * (600 * 5 / 36) ** 0.5
    assert treated_type([1, 2], Pseudonym("x", method="permutation"), key=KEY) == pa.int64()


@pytest.mark.parametrize("method", ["ff1", "permutation", "hmac"])
def test_pseudonyms_depend_on_key_and_name_not_on_the_kind_of_table(method):
    values = [f"{number:08}" for number in range(50)]
    table = {"x": values, "y": values}
    both = [Pseudonym("x", method), Pseudonym("y", method)]
    found = treated(table, *both, key=KEY)
    for frame in (pl.DataFrame(table), pa.table(table), pd.DataFrame(table).astype("category")):
        assert treated(frame, *both, key=KEY) == found
    assert found["x"] != found["y"]
    assert treated(table, *both, key=OTHER)["x"] != found["x"]
    one_name = [Pseudonym(column, method, name="person") for column in "xy"]
    together = treated(table, *one_name, key=KEY)
    assert together["x"] == together["y"]


def test_dates_have_texts_of_their_own():
    days = [datetime.date(2000, 1, 1), datetime.date(2000, 1, 2)]
    assert pseudonyms(days, method="hmac") == pseudonyms(pd.to_datetime(days), method="hmac")


@pytest.mark.parametrize(
    ("how", "fragment"),
    [
        ({"method": "md5"}, "method: expected 'ff1' or 'permutation' or 'hmac', got 'md5'"),
        ({"method": "hmac", "length": 4}, "length: expected a whole number of digits, 8 or more"),
        ({"method": "hmac", "length": 65}, "length: expected at most 64 digits"),
        ({"method": "permutation", "length": 8}, "Leave it out"),
        ({"length": 5}, "6 or more; got 5"),
    ],
)
def test_bad_arguments_are_refused(how, fragment):
    with pytest.raises(InputError) as caught:
        pseudonyms(["12345678"], **how)
    assert fragment in str(caught.value)


@pytest.mark.parametrize("method", ["ff1", "permutation", "hmac"])
def test_pseudonyms_need_a_key(method):
    with pytest.raises(InputError, match=r"made by a secret key, and there is none. Give one beside the plan: key="):
        pseudonyms(["12345678"], key=None, method=method)


@pytest.mark.parametrize("method", ["ff1", "permutation", "hmac"])
def test_a_column_without_values_stays_as_it_is(method):
    assert pseudonyms([None, None], method=method) == [None, None]
