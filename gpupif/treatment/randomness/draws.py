"""Random numbers of the rows of a table, and of the values of a column."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.chacha20 import SCRATCH, draw_numbers, draw_values

from ...rows.keys import code_type
from ...rows.threads import Workers

Numbers = npt.NDArray[np.uint64]


class Entries(NamedTuple):
    """What may be drawn for each state, see `draw_values` of `kernels/chacha20.py`. begins, ends, by state, firsts and
    values, by entry.
    """

    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    firsts: Numbers
    values: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Draws:
    """Numbers of 64 bits, each from 0 to 2^64 - 1 equally often, by a key and a stream of its own.

    The number of a row is made by ChaCha20 (RFC 8439) from its place in the whole table, see `kernels/chacha20.py`;
    that of a value by HMAC-SHA256. secret: the key of both. nonce: of this stream, 12 bytes.
    """

    secret: bytes = field(repr=False)
    nonce: bytes = field(repr=False)

    def of_rows(self, start: int, rows: int) -> Numbers:
        """Those of some rows that follow each other; start: the place of the first in the whole table."""
        out = np.empty(rows, np.uint64)

        def draw(first: int, stop: int) -> None:
            draw_numbers(self._cipher(), start + first, np.empty(SCRATCH, np.uint32), out[first:stop])

        _by_threads(draw, rows)
        return out

    def of_values(self, texts: Iterable[str]) -> Numbers:
        """Those of values, given as text: equal ones have the same."""
        secret, nonce = self.secret, self.nonce
        digests = [hmac.digest(secret, nonce + text.encode("utf-8", "surrogatepass"), "sha256")[:8] for text in texts]
        return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)

    def values_of_rows(
        self, start: int, codes: npt.NDArray[Any], states: npt.NDArray[np.int64], entries: Entries
    ) -> npt.NDArray[Any]:
        """What is drawn in the place of the codes of some rows, by the same numbers as `of_rows`; states: by code."""
        out = np.empty(len(codes), code_type(len(entries.begins)))

        def draw(first: int, stop: int) -> None:
            state = np.empty(SCRATCH, np.uint32)
            draw_values(self._cipher(), start + first, codes[first:stop], states, entries, state, out[first:stop])

        _by_threads(draw, len(codes))
        return out

    def _cipher(self) -> npt.NDArray[np.uint32]:
        return np.frombuffer(self.secret + self.nonce, "<u4").astype(np.uint32)


def _by_threads(draw: Callable[[int, int], None], rows: int) -> None:
    with Workers() as workers:
        workers.run(draw, workers.ranges(rows))


def whole_steps(numbers: Numbers, most: int) -> npt.NDArray[np.int64]:
    """Of each number a whole one from -most to most, all equally often but for 2^-64 times how many they are.

    most: below 2^31.
    """
    sides = np.uint64(2 * most + 1)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    # The upper word of number x sides.
    upper = ((numbers >> half) * sides + (((numbers & low) * sides) >> half)) >> half
    return upper.astype(np.int64) - most
