"""Hierarchies of numbers: intervals of equal width, wider at each level."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.column import numbers_of
from ..errors import InputError
from ..utils.validation import brief, is_number
from .hierarchy import Hierarchy, everything

# Whole numbers up to EXACT are exact as float64; up to WHOLE they are added in int64 without overflow.
EXACT = 2**53
WHOLE = 2**62


@dataclass(frozen=True)
class Intervals(Hierarchy):
    """Numbers in intervals ``[20, 25)`` with their lower and without their upper edge, wider at each level.

    Numbers and edges are compared as decimals, as they are written: 0.3 is in [0.3, 0.4). The text of a number counts
    as the number. Infinities have no place.

    widths: list of numbers, by level. Each divides the next.
    start: number. An edge of the intervals. Default 0.

    Raises InputError if widths are not positive, do not ascend, or do not divide each other.
    """

    widths: Sequence[float | Decimal]
    start: float | Decimal = 0
    column: Hashable = field(default=None, repr=False, compare=False)

    expected = "a number"

    def __post_init__(self) -> None:
        given = list(self.widths) if isinstance(self.widths, Sequence | np.ndarray) else [None]
        if isinstance(self.widths, str) or not all(_is_finite(width) and width > 0 for width in given):
            raise InputError(
                f"{self.said}: widths: expected a list of positive numbers, such as [5, 10, 20], got "
                f"{brief(self.widths)}."
            )
        if not _is_finite(self.start):
            raise InputError(f"{self.said}: start: expected a number, got {brief(self.start)}.")
        object.__setattr__(self, "widths", tuple(map(_plain, given)))
        object.__setattr__(self, "start", _plain(self.start))
        for level, (width, wider) in enumerate(pairwise(self.widths), 1):
            if wider <= width or _exact(wider) % _exact(width):
                raise InputError(
                    f"{self.said}: widths {width} (level {level}) and {wider} (level {level + 1}) do not nest: "
                    f"expected each to be a multiple of the one before it. Take {_multiple(width, wider)}, say, for "
                    f"{wider}."
                )

    @property
    def height(self) -> int:
        return len(self.widths) + 1

    @cached_property
    def _scale(self) -> int:
        """The power of ten that makes widths and start whole numbers."""
        digits = [-int(Decimal(str(number)).as_tuple().exponent) for number in (*self.widths, self.start)]
        return int(10 ** max(0, *digits))

    def find(self, values: pa.Array, level: int) -> pa.Array:
        if level == self.height:
            return everything(pa.array(np.isfinite(numbers_of(values))))
        width = int(_exact(self.widths[level - 1]) * self._scale)
        first = int(_exact(self.start) * self._scale)
        places, there = self._places(values, first, width)
        if places.dtype == object:
            named = (self._name(first + place * width, width) for place in places)
            return pa.array([name if ok else None for name, ok in zip(named, there, strict=True)], pa.string())
        encoded = pa.array(places, mask=~there).dictionary_encode()
        names = [self._name(first + place * width, width) for place in encoded.dictionary.to_pylist()]
        return pa.array(names, pa.string()).take(encoded.indices)

    def _name(self, low: int, width: int) -> str:
        """Return the name of the interval from `low`. low, width: in units of 1 / scale."""
        return f"[{_written(low, self._scale)}, {_written(low + width, self._scale)})"

    def _places(self, values: pa.Array, first: int, width: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the number of the interval of each value, and whether it has one.

        first, width: the lower edge of interval 0, and the width, in units of 1 / scale.
        """
        if pa.types.is_string(values.type) and pc.all(pc.match_substring_regex(values, r"^[+-]?[0-9]{1,18}$")).as_py():
            values = pc.replace_substring_regex(values, r"^\+", "").cast(pa.int64())
        if pa.types.is_integer(values.type):
            whole = values.to_numpy()
            if max(abs(int(whole.min())), abs(int(whole.max()))) * self._scale + abs(first) < WHOLE and width < WHOLE:
                places = (whole.astype(np.int64) * self._scale - first) // width
                return places, np.ones(len(places), np.bool_)
            return self._exact_places(values, first, width, np.ones(len(values), np.bool_))
        if pa.types.is_floating(values.type) and not pa.types.is_float16(values.type):
            numbers = values.to_numpy()
        else:
            numbers = numbers_of(values)
        there = np.isfinite(numbers)
        known = np.where(there, numbers, numbers.dtype.type(0))
        if pa.types.is_decimal(values.type) or (
            self._scale >= EXACT or float(np.abs(known).max()) * self._scale + abs(first) + width >= EXACT
        ):
            return self._exact_places(values, first, width, there)

        def edge(place: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
            # Both are whole and exact: their quotient is the float that the decimal of the edge is read as.
            return ((first + place * width) / self._scale).astype(known.dtype)

        # Near an edge the quotient may be rounded into the next interval: compare with both edges.
        places = np.floor((known.astype(np.float64) * self._scale - first) / width).astype(np.int64)
        places -= known < edge(places)
        places += known >= edge(places + 1)
        return places, there

    def _exact_places(
        self, values: pa.Array, first: int, width: int, there: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Return the result of `_places`, computed value by value with Python's exact numbers."""
        # A float32 prints with its own digits as a NumPy number, and with the digits of its float64 from `to_pylist`.
        plain = values.to_numpy() if pa.types.is_float32(values.type) else values.to_pylist()
        scaled = (_exact(v) * self._scale - first if ok else 0 for v, ok in zip(plain, there, strict=True))
        return np.array([math.floor(number / width) for number in scaled], object), there

    def to_plan(self) -> Any:
        start = {} if self.start == 0 else {"start": _writable(self.start)}
        return {"widths": list(map(_writable, self.widths)), **start}


def _is_finite(value: Any) -> bool:
    try:
        return (is_number(value) or isinstance(value, Decimal)) and math.isfinite(float(value))
    except OverflowError:
        return False


def _plain(value: Any) -> Any:
    """Return a number of Python; int if it is whole, also for 5.0."""
    exact = _exact(value)
    if exact.denominator == 1:
        return int(exact)
    return value if isinstance(value, Decimal) else float(value)


def _writable(value: Any) -> Any:
    return value if isinstance(value, int) else float(value)


def _exact(value: Any) -> Fraction:
    """Return the exact value of a number as it is written."""
    return Fraction(str(value).strip().lstrip("+"))


def _multiple(width: Any, near: Any) -> Decimal:
    """Return a multiple of a width near a number, at least twice the width."""
    return Decimal(str(width)) * max(2, round(_exact(near) / _exact(width)))


def _written(number: int, scale: int) -> str:
    """Return number / scale as a decimal without needless zeros. scale: a power of ten."""
    if scale == 1 or not number % scale:
        return str(number // scale)
    whole, rest = divmod(abs(number), scale)
    return f"{'-' * (number < 0)}{whole}.{str(rest + scale)[1:].rstrip('0')}"
