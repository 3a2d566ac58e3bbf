"""Values of a column as exact numbers, and the type of a column with new values."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import texts, texts_of
from ...errors import ColumnTypeError, InputError, reason_of
from ...utils.validation import brief, is_number, is_whole
from ..field_checks import is_finite
from ..labels import UnreadableValueError
from ..treatment import Mapper

# The most digits of a text that is a number, before the decimal point, and after it.
MOST_DIGITS = 18
# The most decimal digits that fit into 64 bits.
SHORT = 18


@dataclass(frozen=True)
class Numbers:
    """The numbers of some values.

    amounts: float64, int64, uint64 or Python's whole numbers (values,). Each number is exactly amount / 10**places.
    places: int. Decimal places; None if the amounts are floats, which are the numbers themselves.
    known: booleans (values,). Whether each value is a number; otherwise its amount has no meaning.
    """

    amounts: npt.NDArray[Any]
    places: int | None
    known: npt.NDArray[np.bool_]

    def above(self, limit: Any) -> npt.NDArray[np.bool_]:
        """Return whether each number is known and above a limit: booleans (values,)."""
        bound = float(limit) if self.places is None else self._whole(limit, math.floor)
        return np.asarray(self.amounts > bound, np.bool_) & self.known

    def below(self, limit: Any) -> npt.NDArray[np.bool_]:
        """Return whether each number is known and below a limit: booleans (values,)."""
        bound = float(limit) if self.places is None else self._whole(limit, math.ceil)
        return np.asarray(self.amounts < bound, np.bool_) & self.known

    def bins(self, edges: Sequence[Any]) -> npt.NDArray[np.int64]:
        """Return for each number how many of the ascending edges are at most the number: int64 (values,)."""
        if self.places is None:
            return np.searchsorted(np.array(edges, np.float64), self.amounts, "right")
        # A whole number is at least an edge if it is at least the next whole number above the edge.
        whole = [self._whole(edge, math.ceil) for edge in edges]
        kind = self.amounts.dtype
        if kind.kind != "O":
            low, high = np.iinfo(kind).min, np.iinfo(kind).max
            beyond = sum(edge > high for edge in whole)
            whole = [max(edge, low) for edge in whole[: len(whole) - beyond]]
        return np.searchsorted(np.array(whole, kind), self.amounts, "right")

    def _whole(self, limit: Any, rounded: Callable[[Fraction], int]) -> Any:
        """Return a limit in units of the last place, rounded to a whole number. Infinite limits stay infinite."""
        if isinstance(limit, float) and math.isinf(limit):
            return limit
        return rounded(exactly(limit) * 10 ** (self.places or 0))

    def floats(self) -> npt.NDArray[np.float64]:
        """Return the nearest float of each number: float64 (values,)."""
        if self.places is None:
            return self.amounts.astype(np.float64)
        if self.amounts.dtype == object:
            return np.array([float(Fraction(int(amount), 10**self.places)) for amount in self.amounts], np.float64)
        return self.amounts / 10.0**self.places if self.places <= 22 else self.amounts / float(10**self.places)


def exactly(number: Any) -> Fraction:
    """Return a number as it is written: 0.1 is a tenth, not the float nearest to a tenth."""
    return Fraction(repr(float(number))) if isinstance(number, float) else Fraction(str(number))


def is_numeric(kind: pa.DataType) -> bool:
    """Return whether the values of a type are numbers; texts are not."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return whether the values of a type are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def numbers(column: Hashable, values: pa.Array, mend: str) -> Numbers:
    """Return the numbers of some values, which may be texts; raises ColumnTypeError for another type.

    mend: advice at the end of the error.
    """
    kind = values.type
    if pa.types.is_integer(kind):
        return Numbers(values.to_numpy(zero_copy_only=False), 0, np.ones(len(values), np.bool_))
    if pa.types.is_floating(kind):
        return Numbers(values.cast(pa.float64()).to_numpy(zero_copy_only=False), None, np.ones(len(values), np.bool_))
    if pa.types.is_decimal(kind):
        return Numbers(_amounts_of_decimals(values), kind.scale, np.ones(len(values), np.bool_))
    if is_text(kind):
        return _numbers_of_texts(values)
    raise ColumnTypeError(column, kind, "numbers", mend)


def all_numbers(column: Hashable, values: pa.Array, mend: str) -> Numbers:
    """Return the numbers of some values, see `numbers`; raises InputError for a text that is no number.

    A text of digits with a zero in front, such as 02139, is a code.
    """
    all_known = numbers(column, values, mend)
    if not all_known.known.all():
        value = values[int(np.argmin(all_known.known))].as_py()
        raise UnreadableValueError(column, "numbers", value, mend)
    if is_text(values.type) and len(codes := values.filter(pc.match_substring_regex(values, r"^0\d"))):
        raise InputError(f"column {column!r}: expected numbers, got codes, such as {brief(codes[0].as_py())}. {mend}")
    return all_known


def check_finite(column: Hashable, amounts: npt.NDArray[Any]) -> None:
    """Raise InputError for an infinite number. amounts: numbers of any type."""
    if amounts.dtype.kind == "f" and not np.isfinite(amounts).all():
        raise InputError(f"column {column!r}: expected finite numbers, got infinite ones. Top code them first.")


def _amounts_of_decimals(values: pa.Array) -> npt.NDArray[Any]:
    wide = values.cast(pa.decimal128(38, values.type.scale))
    first, last = wide.offset, wide.offset + len(wide)
    words = np.frombuffer(wide.buffers()[1], np.int64).reshape(-1, 2)[first:last]
    if values.type.precision <= SHORT:
        return words[:, 0].copy()
    low, high = words[:, 0].astype(np.uint64).astype(object), words[:, 1].astype(object)
    amounts: npt.NDArray[Any] = high * (1 << 64) + low
    return amounts


def _numbers_of_texts(values: pa.Array) -> Numbers:
    short = pc.match_substring_regex(values, r"^-?\d{1,12}(\.\d{1,6})?$")
    if pc.all(short).as_py() is not False:
        return Numbers(_amounts_of_decimals(values.cast(pa.decimal128(SHORT, 6))), 6, np.ones(len(values), np.bool_))
    read = [_number(text) for text in values.to_pylist()]
    known = np.array([number is not None for number in read], np.bool_)
    amounts: npt.NDArray[Any] = np.array([int((number or 0) * 10**MOST_DIGITS) for number in read], object)
    return Numbers(amounts, MOST_DIGITS, known)


_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?\s*", re.ASCII)


def labels_of(label: Any) -> Sequence[str]:
    """Return the label of pooled values in a list if it is a text, and no number; else an empty list."""
    return [label] if isinstance(label, str) and _number(label) is None else []


def _number(text: str) -> Fraction | None:
    """Return the number of a text, None for a text that is no number or too long."""
    if len(text) > 3 * MOST_DIGITS or not _NUMBER.fullmatch(text):
        return None
    number = Fraction(text)
    fits = abs(number) < 10**MOST_DIGITS and number.denominator <= 10**MOST_DIGITS
    return number if fits and (number * 10**MOST_DIGITS).denominator == 1 else None


def as_decimals(amounts: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Return decimals of a type of 128 bits. amounts: whole numbers in units of the last place."""
    if amounts.dtype.kind == "O":
        low = np.array([int(amount) & (2**64 - 1) for amount in amounts], np.uint64)
        high = np.array([int(amount) >> 64 for amount in amounts], np.int64)
    else:
        low, high = amounts.astype(np.int64).view(np.uint64), amounts.astype(np.int64) >> 63
    words = np.ascontiguousarray(np.column_stack([low.view(np.int64), high]))
    return pa.Array.from_buffers(kind, len(amounts), [None, pa.py_buffer(words)])


# A function of distinct values, none missing. It returns the group of each, null for missing, and whether it has one.
Groups = Callable[[pa.Array], tuple[pa.Array, npt.NDArray[np.bool_]]]


def typed(column: Hashable, new: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return new values of a column as an Arrow array. new: values, None for missing. kind: type of the column before.

    Numbers are floats in a column of floats, else whole numbers if they are whole, else floats. Booleans stay booleans.
    Texts, and values of different kinds, become texts. Raises InputError for a number that whole numbers in 64 bits
    cannot hold, in a column of whole numbers.
    """
    values = [value for value in new if value is not None]
    if not values:
        return pa.nulls(len(new), kind)
    if all(map(is_number, values)):
        if all(map(is_whole, values)) and not pa.types.is_floating(kind):
            whole = [None if value is None else int(value) for value in new]
            for bits in (pa.int64(), pa.uint64()):
                with contextlib.suppress(OverflowError, pa.ArrowInvalid):
                    return pa.array(whole, bits)
            if pa.types.is_integer(kind):
                raise InputError(
                    f"column {column!r}: expected new numbers that fit into 64 bits, as whole numbers of a column do, "
                    f"got {brief(max(values, key=abs))}. Take a smaller one."
                )
        return pa.array([None if value is None else float(value) for value in new], pa.float64())
    if all(isinstance(value, bool) for value in values):
        return pa.array(new)
    written = iter(texts_of(values))
    return pa.array([None if value is None else next(written) for value in new])


def kept(new: pa.Array, placed: npt.NDArray[np.bool_], values: pa.Array) -> pa.Array:
    """Return the new value of each placed value, and the old value of all others.

    new: Arrow array (values,). placed: booleans (values,). The result has the common type of old and new values; floats
    for different types of numbers; texts for other different types.
    """
    if pa.types.is_integer(new.type) and pa.types.is_integer(values.type):
        with contextlib.suppress(pa.ArrowInvalid):
            new = new.cast(values.type)
    if new.type != values.type:
        if is_numeric(new.type) and is_numeric(values.type):
            new, values = new.cast(pa.float64(), safe=False), values.cast(pa.float64(), safe=False)
        else:
            new, values = texts(new), texts(values)
    return pc.if_else(pa.array(placed), new, values)


def checked_texts(said: str, values: Iterable[Any]) -> list[str]:
    """Return the texts of values; raises InputError for one that no column can hold. said: prefix of the error."""
    try:
        return texts_of(values)
    except pa.ArrowException as error:
        raise InputError(f"{said}: expected values of columns: {reason_of(error, has_values=False)}.") from None


def looked_up(old: pa.Array, new: pa.Array) -> Mapper:
    """Return the mapper that replaces each old value by its new value. old, new: Arrow arrays of equal length."""
    return lambda values: new.take(pc.index_in(values, old.cast(values.type)))


def unchanged(values: pa.Array) -> pa.Array:
    """Return values unchanged: the mapper of a column in which no row has a value."""
    return values


def is_plain(value: Any) -> bool:
    """Return whether a value is a text, a finite number or a boolean, which every format of plans can hold."""
    return isinstance(value, str | bool) or is_finite(value)
