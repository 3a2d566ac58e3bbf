"""Keys: reading, digests, and secrets that are never shown."""

from __future__ import annotations

import hashlib
import hmac
import pickle
import stat
import warnings

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError, OutputError, SeedWarning
from gpupif.treatment.random.draws import whole_steps

SECRET = bytes(range(200, 232))
KEY = gpupif.treatments.Key.from_any(SECRET)


@pytest.mark.parametrize("text", [SECRET, SECRET.hex().encode(), SECRET.hex().upper().encode() + b"\n"])
def test_bytes_and_a_file_of_the_bytes_give_the_same_key(tmp_path, text):
    file = tmp_path / "key"
    file.write_bytes(text)
    file.chmod(0o600)
    assert (
        gpupif.treatments.Key.from_any(text)
        == gpupif.treatments.Key.from_any(file)
        == gpupif.treatments.Key.from_any(str(file))
        == gpupif.treatments.Key.from_any(KEY)
        == KEY
    )


@pytest.mark.parametrize(
    ("came", "said"),
    [
        (b"", "0 bytes, which is too short"),
        (b"\x80" * 31, "31 bytes, which is too short"),
        (b"\x80" * 33, "33 bytes, which is too long"),
        # These 32 digits are also 32 bytes, but must count as digits: half a key.
        (b"0123456789abcdef" * 2, "32 hexadecimal digits, which is too short"),
        (b"ab" * 33, "66 hexadecimal digits, which is too long"),
    ],
)
def test_keys_of_another_size_are_refused(tmp_path, came, said):
    file = tmp_path / "key"
    file.write_bytes(came)
    for key in (came, file):
        with pytest.raises(InputError, match=f"key: expected 32 bytes, or 64 hexadecimal digits, got {said}"):
            gpupif.treatments.Key.from_any(key)


def test_files_that_hold_no_key_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"nowhere' cannot be read: No such file.*Key.new\(\).save"):
        gpupif.treatments.Key.from_any(tmp_path / "nowhere")
    table, plan = pd.DataFrame({"x": ["a", "b"]}), [gpupif.treatments.RandomizedResponse("x", keep=0.5)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=r"' is a folder\. gpupif\.treatments\.Key\.new"):
            gpupif.treat(table, plan, key=tmp_path)
    with pytest.raises(InputError, match=r"and 'beef' cannot be read"):
        gpupif.treatments.Key.from_any("beef")
    with pytest.raises(InputError, match=r"type int\. For tests, write gpupif.treatments.Key.from_seed"):
        gpupif.treatments.Key.from_any(7)


def test_a_key_in_the_place_of_a_path_is_not_repeated():
    with pytest.raises(InputError, match="what came cannot be read") as raised:
        gpupif.treatments.Key.from_any(SECRET.hex())
    assert SECRET.hex()[:8] not in str(raised.value)


def test_no_printed_text_shows_the_key():
    draws = KEY.draws(0, "a")
    for shown in (repr(KEY), str(KEY), repr(draws), KEY.digest):
        assert SECRET.hex()[:6] not in shown
        assert repr(SECRET)[2:10] not in shown
    assert KEY.digest != hashlib.sha256(SECRET).hexdigest()[:32]
    assert (
        KEY.digest == gpupif.treatments.Key.from_any(SECRET).digest != gpupif.treatments.Key.from_any(bytes(32)).digest
    )


def test_new_keys_are_saved_for_their_owner_alone(tmp_path):
    key, file = gpupif.treatments.Key.new(), tmp_path / "key"
    key.save(file)
    assert gpupif.treatments.Key.from_any(file) == key != gpupif.treatments.Key.new()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(OutputError, match="is there already"):
        KEY.save(file)
    assert gpupif.treatments.Key.from_any(file) == key


def test_a_seed_gives_a_warning_and_a_digest_without_information():
    with pytest.warns(SeedWarning, match="found by trying seeds"):
        one = gpupif.treatments.Key.from_seed(1)
    with pytest.warns(SeedWarning):
        other = gpupif.treatments.Key.from_seed(2)
    assert one != other
    assert one.digest == other.digest == "seed"
    assert pickle.loads(pickle.dumps(one)).digest == "seed"
    with pytest.raises(InputError, match="seed: expected a whole number"):
        gpupif.treatments.Key.from_seed(1.5)


def test_streams_differ_by_place_column_and_purpose():
    asked = [(0, "a", ""), (1, "a", ""), (0, "b", ""), (0, "a", "x"), (0, "ax", ""), (0, "", "a")]
    streams = [KEY.draws(*one).of_rows(0, 4).tolist() for one in asked]
    assert len(set(map(tuple, streams))) == len(asked)
    assert gpupif.treatments.Key.from_any(bytes(32)).draws(0, "a").of_rows(0, 4).tolist() not in streams
    assert pickle.loads(pickle.dumps(KEY)).draws(0, "a").of_rows(0, 4).tolist() == streams[0]


def test_secrets_are_hmac_of_their_purpose():
    words = [b"secret", b"pseudonym age"]
    message = b"gpupif" + b"".join(len(word).to_bytes(8, "little") + word for word in words)
    assert KEY.secret("pseudonym age") == hmac.new(SECRET, message, hashlib.sha256).digest()
    assert KEY.secret("pseudonym age") != KEY.secret("pseudonym sex")
    assert len(KEY.secret("")) == 32


def test_numbers_of_values_depend_on_key_stream_and_value_alone():
    draws = KEY.draws(3, "person")
    found = draws.of_values(["ann", "bob", "ann", ""])
    assert found.dtype == np.uint64
    assert found[0] == found[2] == draws.of_values(["ann"])[0]
    assert len(set(found.tolist())) == 3
    assert not set(found.tolist()) & set(KEY.draws(4, "person").of_values(["ann", "bob", ""]).tolist())
    assert draws.of_values([]).tolist() == []


@pytest.mark.parametrize("most", [0, 1, 14, 2**31 - 1])
def test_whole_steps_are_the_upper_word_of_a_product(most):
    numbers = np.concatenate([KEY.draws(0, "a").of_rows(0, 500), np.array([0, 2**64 - 1, 2**63], np.uint64)])
    expected = [(int(number) * (2 * most + 1) >> 64) - most for number in numbers]
    assert whole_steps(numbers, most).tolist() == expected
    assert (expected[-3], expected[-2], expected[-1]) == (-most, most, 0)
