"""ChaCha20: test vectors of RFC 8439, a slow implementation, and equal numbers for all chunks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.treatment.random.draws import Draws
from tests.helpers.naive_chacha20 import block, encrypted, number_of_row, quarter_round

KEY = bytes(range(32))
NONCE = bytes.fromhex("000000090000004a00000000")


def stream(draws: Draws, first: int, blocks: int) -> bytes:
    """Return the bytes of blocks of gpupif's stream."""
    return draws.of_rows(8 * first, 8 * blocks).astype("<u8").tobytes()


def test_the_quarter_round_is_that_of_rfc_8439_section_2_1_1():
    state = [0x11111111, 0x01020304, 0x9B8D6F43, 0x01234567]
    quarter_round(state, 0, 1, 2, 3)
    assert state == [0xEA2A92F4, 0xCB1CF8CE, 0x4581472E, 0x5881C4BB]


def test_the_block_is_that_of_rfc_8439_section_2_3_2():
    known = bytes.fromhex(
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    assert block(KEY, 1, NONCE) == known
    assert stream(Draws(KEY, NONCE), 1, 1) == known


def test_the_encryption_is_that_of_rfc_8439_section_2_4_2():
    text = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        b"sunscreen would be it."
    )
    known = bytes.fromhex(
        "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
        "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
        "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
        "5af90bbf74a35be6b40b8eedf2785e42874d"
    )
    nonce = bytes.fromhex("000000000000004a00000000")
    assert encrypted(KEY, 1, nonce, text) == known
    made = bytes(one ^ two for one, two in zip(text, stream(Draws(KEY, nonce), 1, 2), strict=False))
    assert made == known


@pytest.mark.parametrize(
    ("key", "counter", "nonce", "begins"),
    [
        # RFC 8439, appendix A.1, vectors 1, 2 and 5.
        (bytes(32), 0, bytes(12), "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"),
        (bytes(32), 1, bytes(12), "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"),
        (bytes(32), 0, bytes(11) + b"\x02", "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"),
    ],
)
def test_blocks_are_those_of_rfc_8439_appendix_a_1(key, counter, nonce, begins):
    assert block(key, counter, nonce).hex().startswith(begins)
    assert stream(Draws(key, nonce), counter, 1).hex().startswith(begins)


@settings(max_examples=10, deadline=None)
@given(
    st.binary(min_size=32, max_size=32),
    st.binary(min_size=12, max_size=12),
    st.one_of(st.integers(0, 5000), st.integers(2**35 - 700, 2**35 + 700), st.integers(0, 2**62)),
    st.integers(0, 600),
)
def test_drawn_numbers_follow_their_definition(key, nonce, start, rows):
    found = Draws(key, nonce).of_rows(start, rows)
    asked = sorted({0, 1, rows // 3, rows // 2, rows - 2, rows - 1} & set(range(rows)))
    assert [int(found[place]) for place in asked] == [number_of_row(key, nonce, start + place) for place in asked]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 3000), st.lists(st.integers(0, 1500), max_size=5))
def test_any_cut_of_the_rows_draws_the_same_numbers(start, sizes):
    draws = Draws(KEY, NONCE)
    edges = np.cumsum([start, *sizes]).tolist()
    pieces = [draws.of_rows(first, size) for first, size in zip(edges, sizes, strict=False)]
    assert np.concatenate([*pieces, np.empty(0, np.uint64)]).tolist() == draws.of_rows(start, sum(sizes)).tolist()


def test_any_number_of_threads_draws_the_same_numbers():
    rows = 200_001
    with gpupif.config(threads=1):
        alone = Draws(KEY, NONCE).of_rows(3, rows)
    with gpupif.config(threads=4):
        assert (Draws(KEY, NONCE).of_rows(3, rows) == alone).all()
