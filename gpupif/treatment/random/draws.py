"""Random numbers of 64 bits, made from a secret, for the rows of a table or for the values of a column."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from gpupif.kernels.random_values import draw_values

from ...rows.keys import code_type
from ...rows.threads import Workers

Numbers = npt.NDArray[np.uint64]
# The number of random numbers in a block of ChaCha20, and the bytes of a random number.
BLOCK, NUMBER = 8, 8
# The numbers that are drawn at once: few enough to stay in the cache of a core until they are used.
AT_ONCE = 1 << 16
# The number of rows after which the block counter of the RFC, which has 32 bits, starts again at 0.
COUNTED = BLOCK << 32


class Entries(NamedTuple):
    """The values that may be drawn for each state, see `kernels/random_values.py`.

    begins, ends: int64 (states,). A state has the entries begins[state] to ends[state] - 1.
    firsts: uint64 (entries,). The lowest random number for which the entry is drawn; the highest is before the next.
    values: int64 (entries,). The drawn value, or `ITSELF` for the state that is there already.
    """

    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    firsts: Numbers
    values: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Draws:
    """A stream of random numbers, uniform from 0 to 2^64 - 1, from a secret and a nonce.

    The number of row r is the r-th word of 64 bits in the key stream of ChaCha20 (RFC 8439), low byte first. The blocks
    of the stream are counted in 64 bits. The lower half of the count is the counter of the RFC. The upper half is
    combined with the first word of the nonce by exclusive or. The number of a value is the first 8 bytes of
    HMAC-SHA256 of the nonce and the value's text.

    secret: bytes. The key of ChaCha20 and HMAC. nonce: 12 bytes, different for each stream.
    """

    secret: bytes = field(repr=False)
    nonce: bytes = field(repr=False)

    def of_rows(self, start: int, rows: int) -> Numbers:
        """Return the random numbers of consecutive rows: uint64 (rows,). start: number of the first of them."""
        out = np.empty(rows, np.uint64)
        _by_threads(lambda first, stop: self._draw(start + first, out[first:stop]), rows)
        return out

    def of_values(self, texts: Iterable[str]) -> Numbers:
        """Return the random numbers of values, given as text: uint64 (values,). Equal values have equal numbers."""
        secret, nonce = self.secret, self.nonce
        digests = [hmac.digest(secret, nonce + text.encode("utf-8", "surrogatepass"), "sha256")[:8] for text in texts]
        return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)

    def values_of_rows(
        self, start: int, codes: npt.NDArray[Any], states: npt.NDArray[np.int64], entries: Entries
    ) -> npt.NDArray[Any]:
        """Return the drawn values that replace the codes of rows, by the numbers of `of_rows`: integers (rows,).

        start: number of the first row in the table. codes: integers (rows,). states: state of each code.
        """
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
        """Write the random numbers of the rows from `start` on to `out`."""
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
    """Return a whole number from -most to most for each random number: int64 (numbers,).

    All 2 most + 1 results are equally likely, up to a relative error of (2 most + 1) / 2^64. most: below 2^31.
    """
    sides = np.uint64(2 * most + 1)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    # The upper 64 bits of the product number x sides, which has 128 bits: a whole number below `sides`.
    upper = ((numbers >> half) * sides + (((numbers & low) * sides) >> half)) >> half
    return upper.astype(np.int64) - most
