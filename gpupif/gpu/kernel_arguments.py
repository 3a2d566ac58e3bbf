"""The arguments of a kernel launch: their Numba types, and the words that are the kernel's parameters.

Numba lowers each array to its bookkeeping, pointer, shape and strides, each number to itself, and each tuple to its
items. All are parameters of 8 bytes, one after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numba import from_dtype, types

# The Numba type, and the letter of `struct`, for each type of number.
NUMBERS = {int: (types.int64, "q"), float: (types.float64, "d")}
NUMPY_NUMBERS = (np.int64, np.float64)
LEAST_INT, LARGEST_INT = -(1 << 63), (1 << 63) - 1


class Packed(NamedTuple):
    """Arguments of a launch. kinds: all that their types depend on; words: the parameters, whole numbers or floats."""

    kinds: tuple[Any, ...]
    words: list[Any]

    @property
    def signature(self) -> Signature:
        """Return the types and the layout of the parameters, computed once for each kind."""
        return _signature(self.kinds)

    def __bytes__(self) -> bytes:
        return self.signature.layout.pack(*self.words)


class Signature(NamedTuple):
    """types: of the arguments, as numba-cuda types them. layout: of the parameters, 8 bytes each."""

    types: tuple[Any, ...]
    layout: Struct


def device_address(array: Any) -> int:
    """Return the address of a CuPy array on the device. Raise TypeError if the array is not there."""
    try:
        return array.data.ptr  # type: ignore[no-any-return]
    except AttributeError:
        raise _unexpected("an array of the device", f"one of {type(array).__module__}") from None


def types_of(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return the Numba types of a launch's arguments. Raise TypeError as `pack` does."""
    return pack(arguments, address=lambda array: 0).signature.types


def pack(arguments: Sequence[Any], address: Callable[[Any], int] = device_address) -> Packed:
    """Return the kernel's parameters for arguments, and the kind on which their types depend.

    arguments: C-contiguous arrays (anything with dtype, shape, strides and size), whole numbers, floats and (named)
    tuples of them. address: returns the address of an array. Raise TypeError for any other argument.
    """
    kinds: list[Any] = []
    words: list[Any] = []
    _add(arguments, address, kinds, words)
    return Packed(tuple(kinds), words)


def _add(values: Sequence[Any], address: Callable[[Any], int], kinds: list[Any], words: list[Any]) -> None:
    """Add the parameters for values to the earlier parameters. Called for 36 arrays at each launch: speed matters."""
    for value in values:
        kind = type(value)
        if kind in NUMBERS or kind in NUMPY_NUMBERS:
            number = value if kind in NUMBERS else value.item()
            if kind is int and not LEAST_INT <= number <= LARGEST_INT:
                raise _unexpected("a whole number of 64 bits with a sign", number)
            kinds.append(type(number))
            words.append(number)
        elif isinstance(value, tuple):
            kinds += (kind, len(value))
            _add(value, address, kinds, words)
        elif isinstance(value, np.generic) or not hasattr(value, "dtype"):
            raise _unexpected("an array, an int, a float, or a tuple of them", repr(value))
        else:
            dtype, shape = value.dtype, value.shape
            item, strides = dtype.itemsize, value.strides
            expected = (item,) if len(shape) == 1 else _c_strides(shape, item)
            if strides is not None and strides != expected and not _is_contiguous(shape, strides, expected):
                raise _unexpected(
                    "a C-contiguous array", f"shape {shape} and strides {strides}; copy it with ascontiguousarray"
                )
            kinds += (dtype, len(shape))
            # No owner that counts references, and no parent.
            words += (0, 0, value.size, item, address(value), *shape, *expected)


def _unexpected(expected: str, came: object) -> TypeError:
    return TypeError(f"argument of a kernel: expected {expected}, got {came}.")


def _c_strides(shape: Sequence[int], item: int) -> tuple[int, ...]:
    strides = []
    for length in reversed(shape):
        strides.append(item)
        item *= length
    return tuple(reversed(strides))


def _is_contiguous(shape: Sequence[int], strides: Sequence[int], expected: Sequence[int]) -> bool:
    """Return whether strides differ from contiguous strides only in dimensions with one item."""
    return 0 in shape or all(
        length == 1 or stride == wanted for length, stride, wanted in zip(shape, strides, expected, strict=True)
    )


@functools.cache
def _signature(kinds: tuple[Any, ...]) -> Signature:
    letters: list[str] = []
    rest = iter(kinds)
    found = tuple(_type(kind, rest, letters) for kind in rest)
    return Signature(found, Struct("<" + "".join(letters)))


def _type(kind: Any, rest: Iterator[Any], letters: list[str]) -> Any:
    """Return the type of the argument that begins with this kind. Remove its kinds from the rest, add a letter for a
    word.
    """
    if kind in NUMBERS:
        number, letter = NUMBERS[kind]
        letters.append(letter)
        return number
    if isinstance(kind, type):
        return types.BaseTuple.from_types([_type(next(rest), rest, letters) for _ in range(next(rest))], kind)
    dimensions = next(rest)
    letters.append("q" * (5 + 2 * dimensions))
    return types.Array(from_dtype(kind), dimensions, "C")
