"""Arrays of a launch between guards, so that a kernel cannot read or write beyond them unseen.

Each array that a kernel is given is copied for the launch and copied back after it if it changed, whoever made it: most
are results of NumPy. A copy ends where pages begin that nobody may touch: what reads or writes beyond the end faults,
and `fibers` makes an error of it. Before a copy lie values that show in any result (NaN as floats, huge as integers),
which must be there after the launch. Arrays that overlap stay one piece of memory.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .errors import DeviceCodeError
from .memory import GUARD_BYTES, Memory, give, take

# NaN as floats, huge as integers.
POISON = (0x7FFD_FDFD_FDFD_FDFD).to_bytes(8, "little")
MARGIN = POISON * 512

_c = ctypes.CDLL(None)
_c.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class Piece(NamedTuple):
    """Memory of arrays, from `start` to `stop`, and of its copy."""

    start: int
    stop: int
    writable: bool
    memory: Memory

    @property
    def copy(self) -> int:
        """Where the copy begins."""
        return self.memory.end - (self.stop - self.start)


class Copies:
    """Copies of the arrays among a launch's arguments, while it is entered.

    Raises DeviceCodeError when it is left where what lies before an array, or an array that is to be read only, was
    written to.
    """

    def __init__(self, arguments: Sequence[Any]) -> None:
        self._arguments = arguments
        self._pieces: list[Piece] = []
        self._addresses: dict[int, int] = {}

    def __enter__(self) -> Copies:
        bounds = {id(array): _bounds(array) for _, array in arrays_of(self._arguments)}
        together: list[tuple[int, int, bool]] = []
        for start, stop, writable in sorted(set(bounds.values())):
            if together and start < together[-1][1]:
                first, last, before = together.pop()
                together.append((first, max(stop, last), writable and before))
            else:
                together.append((start, stop, writable))
        for start, stop, writable in together:
            piece = Piece(start, stop, writable, take(stop - start + len(MARGIN)))
            ctypes.memmove(piece.copy - len(MARGIN), MARGIN, len(MARGIN))
            ctypes.memmove(piece.copy, start, stop - start)
            self._pieces.append(piece)
        firsts = [piece.start for piece in self._pieces]
        for array, (start, stop, _) in bounds.items():
            # Of an empty array it matters only that nothing is there.
            piece = self._pieces[bisect_right(firsts, start) - 1]
            self._addresses[array] = piece.copy + start - piece.start if stop > start else piece.memory.end
        return self

    def address(self, array: Any) -> int:
        """Where the copy of an array begins."""
        return self._addresses[id(array)]

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            if kind is None:
                for piece in self._pieces:
                    self._bring_back(piece)
        finally:
            for piece in self._pieces:
                give(piece.memory)

    def _bring_back(self, piece: Piece) -> None:
        if ctypes.string_at(piece.copy - len(MARGIN), len(MARGIN)) != MARGIN:
            raise DeviceCodeError(f"writes before {self._names(piece)}")
        if _c.memcmp(piece.copy, piece.start, piece.stop - piece.start) != 0:
            if not piece.writable:
                raise DeviceCodeError(f"writes to {self._names(piece)}, which may only be read")
            ctypes.memmove(piece.start, piece.copy, piece.stop - piece.start)

    def beside(self, address: int) -> str:
        """Which array an address is beside, and how far from it."""
        for piece in self._pieces:
            if 0 <= address - piece.memory.end < GUARD_BYTES:
                return f"{address - piece.memory.end} bytes beyond the end of {self._names(piece)}"
            if piece.memory.start - GUARD_BYTES <= address < piece.copy:
                return f"{piece.copy - address} bytes before {self._names(piece)}"
        return f"address {address:#x}, which is beside no array"

    def _names(self, piece: Piece) -> str:
        within = [
            f"{name} ({array.dtype}, {array.shape})"
            for name, array in arrays_of(self._arguments)
            if piece.start <= _bounds(array)[0] and _bounds(array)[1] <= piece.stop
        ]
        return " or ".join(within)


def arrays_of(values: Sequence[Any], within: str = "argument") -> Iterator[tuple[str, Any]]:
    """The arrays among arguments and in their tuples, each with its place."""
    names = getattr(values, "_fields", range(len(values)))
    for name, value in zip(names, values, strict=True):
        if isinstance(value, tuple):
            yield from arrays_of(value, f"{within} {name}:")
        elif isinstance(value, np.ndarray):
            yield f"{within} {name}", value


def _bounds(array: Any) -> tuple[int, int, bool]:
    start = array.ctypes.data
    return start, start + array.nbytes, array.flags.writeable
