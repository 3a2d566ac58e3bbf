"""Rounding: numbers are rounded to multiples of a base."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import InputError
from ...utils.validation import brief
from ..field_checks import positive
from ..treatment import Mapper, NumberMap, Tools, TreatedTable
from .new_values import MOST_DIGITS, Numbers, all_numbers, as_decimals, exactly, is_text

# Quotients up to this limit are exact as floats, with some bits to spare for an error of rounding.
EXACT = 2.0**50


@dataclass(frozen=True)
class Round(NumberMap):
    """Round numbers to the nearest multiple of a base; halfway between two multiples, to the even multiple.

    column: name of the column.
    base: number above 0, as it is written: 0.05 is a twentieth. It must be whole for a column of whole numbers. It must
        not have more decimal places than the numbers of a column of decimals.

    Results are exact for whole and decimal numbers, and for texts that are numbers. A float becomes the float nearest
    to the multiple. The column keeps its type; texts get the decimal places of the base. Infinite numbers stay
    infinite, missing values missing, and labels of treatments before stay.

    Raises InputError for a text that is no number, and for a whole number whose multiple does not fit into 64 bits.
    Raises ColumnTypeError for values that are no numbers.
    """

    do: ClassVar[str] = "round"
    base: Annotated[float, positive]

    def check(self) -> None:
        super().check()
        if _places(exactly(self.base)) > MOST_DIGITS:
            raise InputError(
                f"{self.said}: base: expected a number of at most {MOST_DIGITS} decimal places, got {brief(self.base)}."
            )

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        base = exactly(self.base)
        mend = "Take a part of dates (date_part), or recode other values (recode)."

        def mapper(values: pa.Array) -> pa.Array:
            if pa.types.is_null(values.type):
                return values
            exact = all_numbers(self.column, values, mend)
            try:
                if exact.places is None:
                    return pa.array(_rounded_floats(exact.amounts, base)).cast(values.type)
                return self._rounded(exact, base, values.type)
            except (OverflowError, pa.ArrowException):
                raise InputError(
                    f"round: column {self.column!r}: base: {brief(self.base)} rounds a value to a number beyond those "
                    "of the column's type. Take a smaller one."
                ) from None

        return mapper

    def _rounded(self, exact: Numbers, base: Fraction, kind: pa.DataType) -> pa.Array:
        own, shown = exact.places or 0, _places(base)
        if is_text(kind):
            # The units must be small enough for both the numbers and the base to be whole.
            places = max(own, shown)
            more = 10 ** (places - own)
            amounts = exact.amounts if more == 1 else exact.amounts.astype(object) * more
            multiples = as_decimals(_nearest(amounts, int(base * 10**places)), pa.decimal128(38, places))
            return multiples.cast(pa.decimal128(38, shown)).cast(kind)
        units = base * 10**own
        if units.denominator != 1:
            expected = "whole" if pa.types.is_integer(kind) else f"of at most {own} decimal places"
            raise InputError(
                f"round: column {self.column!r}: base: expected a number that is {expected}, as the column's are; got "
                f"{brief(self.base)}."
            )
        multiples = _nearest(exact.amounts, int(units))
        if pa.types.is_integer(kind):
            return pa.array(multiples, kind)
        if len(multiples) and _largest(multiples) >= 10**38:
            raise OverflowError
        kind = pa.decimal128(min(38, kind.precision + 1), kind.scale)
        return as_decimals(multiples, kind)


def _nearest(amounts: npt.NDArray[Any], base: int) -> npt.NDArray[Any]:
    """Return the nearest multiples of `base`, of two the even one; as Python's numbers if 64 bits may not suffice."""
    if amounts.dtype.kind != "O" and base < 2**61 and (not len(amounts) or _largest(amounts) < 2**61):
        amounts = amounts.astype(np.int64)
    else:
        amounts = amounts.astype(object)
    quotient = amounts // base
    twice = 2 * (amounts - quotient * base)
    up = (twice > base) | ((twice == base) & (quotient % 2 == 1))
    multiples: npt.NDArray[Any] = (quotient + up.astype(np.int64)) * base
    return multiples


def _largest(amounts: npt.NDArray[Any]) -> int:
    return max(abs(int(amounts.min())), abs(int(amounts.max())))


def _rounded_floats(amounts: npt.NDArray[np.float64], base: Fraction) -> npt.NDArray[np.float64]:
    with np.errstate(over="ignore", invalid="ignore"):
        quotient = np.rint(amounts * float(base.denominator) / float(base.numerator))
        multiples: npt.NDArray[np.float64] = quotient * float(base.numerator) / float(base.denominator)
    # Numbers are rounded exactly, each by itself, if a product is not exact or the quotient is too large for fractions.
    limit = EXACT / max(float(base.denominator), float(base.numerator), 1.0)
    for place in np.flatnonzero((np.abs(quotient) > limit) & np.isfinite(amounts)):
        multiples[place] = float(round(Fraction(float(amounts[place])) / base) * base)
    # Infinite numbers stay; adding 0.0 turns -0.0 into 0.0.
    return np.where(np.isfinite(amounts), multiples + 0.0, amounts)


def _places(number: Fraction) -> int:
    """Return the number of decimal places of a number; `MOST_DIGITS` + 1 if it has more."""
    return next((n for n in range(MOST_DIGITS + 1) if (number * 10**n).denominator == 1), MOST_DIGITS + 1)
