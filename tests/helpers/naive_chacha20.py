"""ChaCha20 as RFC 8439 says it, block by block and word by word, and the numbers of rows that gpupif takes from it."""

from __future__ import annotations

import struct

WORD = 2**32


def quarter_round(state: list[int], a: int, b: int, c: int, d: int) -> None:
    """Section 2.1, on four words of the state."""
    for one, two, three, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[one] = (state[one] + state[two]) % WORD
        turned = state[three] ^ state[one]
        state[three] = (turned << bits | turned >> (32 - bits)) % WORD


def block(key: bytes, counter: int, nonce: bytes) -> bytes:
    """Section 2.3: 64 bytes."""
    state = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key), counter]
    state += struct.unpack("<3I", nonce)
    working = list(state)
    for _ in range(10):
        for column in range(4):
            quarter_round(working, column, 4 + column, 8 + column, 12 + column)
        for diagonal in range(4):
            places = (4 + (diagonal + 1) % 4, 8 + (diagonal + 2) % 4, 12 + (diagonal + 3) % 4)
            quarter_round(working, diagonal, *places)
    return struct.pack("<16I", *((one + two) % WORD for one, two in zip(state, working, strict=True)))


def encrypted(key: bytes, counter: int, nonce: bytes, text: bytes) -> bytes:
    """Section 2.4."""
    stream = b"".join(block(key, counter + place, nonce) for place in range(-(-len(text) // 64)))
    return bytes(one ^ two for one, two in zip(text, stream, strict=False))


def number_of_row(key: bytes, nonce: bytes, row: int) -> int:
    """What gpupif draws for a row: the stream in pieces of 8 bytes, its blocks counted in 64 bits."""
    upper, lower = divmod(row // 8, WORD)
    first, *others = struct.unpack("<3I", nonce)
    made = block(key, lower, struct.pack("<3I", first ^ upper, *others))
    return struct.unpack("<8Q", made)[row % 8]
