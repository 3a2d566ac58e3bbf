"""Random numbers of the rows of a table, and of the values of a column."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from gpupif.kernels.drawn_values import draw_values

from ...rows.keys import code_type
from ...rows.threads import Workers

Numbers = npt.NDArray[np.uint64]
# Numbers of a block of ChaCha20, and bytes of a number.
BLOCK, NUMBER = 8, 8
# Numbers that are drawn at once: they stay in the cache of a core until they are used.
AT_ONCE = 1 << 16
# Rows whose blocks the counter of the RFC, which has 32 bits, can tell apart.
COUNTED = BLOCK << 32


class Entries(NamedTuple):
    """The values that may be drawn for each state, see `kernels/drawn_values.py`.

    begins, ends: by state, its first entry and the one after its last. firsts, values: by entry.
    """

    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    firsts: Numbers
    values: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Draws:
    """Numbers of 64 bits, each from 0 to 2^64 - 1 equally often, by a key and a stream of its own.

    The number of row r is the r-th of 64 bits in the key stream of ChaCha20 (RFC 8439), low byte first. Blocks are
    counted in 64 bits: the lower half is the counter of the RFC; the upper half goes into the first word of the nonce
    by exclusive or. The number of a value is made by HMAC-SHA256. secret: the key of both. nonce: of this stream, 12
    bytes.
    """

    secret: bytes = field(repr=False)
    nonce: bytes = field(repr=False)

    def of_rows(self, start: int, rows: int) -> Numbers:
        """Return the numbers of rows that follow each other. start: the place of the first in the whole table."""
        out = np.empty(rows, np.uint64)
        _by_threads(lambda first, stop: self._draw(start + first, out[first:stop]), rows)
        return out

    def of_values(self, texts: Iterable[str]) -> Numbers:
        """Return the numbers of values, given as text: equal values have the same number."""
        secret, nonce = self.secret, self.nonce
        digests = [hmac.digest(secret, nonce + text.encode("utf-8", "surrogatepass"), "sha256")[:8] for text in texts]
        return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)

    def values_of_rows(
        self, start: int, codes: npt.NDArray[Any], states: npt.NDArray[np.int64], entries: Entries
    ) -> npt.NDArray[Any]:
        """Return the values drawn in the place of the codes of rows, by the numbers of `of_rows`. states: by code."""
        out = np.empty(len(codes), code_type(len(entries.begins)))

        def draw(first: int, stop: int) -> None:
            numbers = np.empty(min(AT_ONCE, stop - first), np.uint64)
            for begin in range(first, stop, AT_ONCE):
                end = min(begin + AT_ONCE, stop)
                self._draw(start + begin, numbers[: end - begin])
                draw_values(numbers[: end - begin], codes[begin:end], states, tuple(entries), out[begin:end])

        _by_threads(draw, len(codes))
        return out

    def _draw(self, start: int, out: Numbers) -> None:
        """Write the numbers of the rows from `start` on into `out`."""
        while len(out):
            block, skipped = divmod(start, BLOCK)
            rows = min(len(out), COUNTED - start % COUNTED)
            word = int.from_bytes(self.nonce[:4], "little") ^ (block >> 32)
            nonce = (block & 0xFFFFFFFF).to_bytes(4, "little") + word.to_bytes(4, "little") + self.nonce[4:]
            cipher = Cipher(algorithms.ChaCha20(self.secret, nonce), None).encryptor()
            cipher.update(bytes(NUMBER * skipped))
            for begin in range(0, rows, AT_ONCE):
                numbers = out[begin : min(begin + AT_ONCE, rows)]
                cipher.update_into(bytes(numbers.nbytes), numbers.data.cast("B"))
            out, start = out[rows:], start + rows


def _by_threads(draw: Callable[[int, int], None], rows: int) -> None:
    with Workers() as workers:
        workers.run(draw, workers.ranges(rows))


def whole_steps(numbers: Numbers, most: int) -> npt.NDArray[np.int64]:
    """Return for each number a whole one from -most to most, all equally often but for 2^-64 times how many they are.

    most: below 2^31.
    """
    sides = np.uint64(2 * most + 1)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    # The upper word of number x sides.
    upper = ((numbers >> half) * sides + (((numbers & low) * sides) >> half)) >> half
    return upper.astype(np.int64) - most
