"""Numbers rounded to multiples of a base."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import InputError
from ...utils.validation import brief
from ..treatment import Mapper, Tools, TreatedTable, ValueMap
from .new_values import Numbers, all_numbers, as_decimals, exactly, is_finite, is_text

# Whole numbers up to it are exact as floats, with room for an error of rounding.
EXACT = 2.0**50


@dataclass(frozen=True)
class Round(ValueMap):
    """Round numbers to the nearest multiple of a base; one halfway between two to the even multiple.

    base: a positive number, as it is written: 0.05 is a twentieth. Of a column of whole numbers it has to be whole, of
    decimal numbers it may have no more places than they have.

    Exact for whole and decimal numbers, and for texts that are numbers; floats become the float that is nearest to the
    multiple. The column keeps its type; texts get as many places as the base has. Infinite numbers stay.

    Raises InputError for a text that is no number, naming it, and for a whole number whose multiple does not fit into
    64 bits; ColumnTypeError for values that are no numbers.
    """

    do: ClassVar[str] = "round"
    base: float

    def check(self) -> None:
        if not is_finite(self.base) or not self.base > 0:
            raise InputError(f"round: column {self.column!r}: base: expected a number above 0, got {brief(self.base)}.")

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        base = exactly(self.base)
        mend = "Of dates take a part (date_part), of other values groups (recode)."

        def mapper(values: pa.Array) -> pa.Array:
            if pa.types.is_null(values.type):
                return values
            found = all_numbers(self.column, values, mend)
            if found.places is None:
                return pa.array(_rounded_floats(found.amounts, base)).cast(values.type)
            return self._rounded(found, base, values.type)

        return mapper

    def _rounded(self, found: Numbers, base: Fraction, kind: pa.DataType) -> pa.Array:
        if is_text(kind):
            # In units of a place that the base has too.
            places, shown = max(found.places or 0, _places(base)), _places(base)
            more = 10 ** (places - (found.places or 0))
            amounts = found.amounts if more == 1 else found.amounts.astype(object) * more
            multiples = as_decimals(_nearest(amounts, int(base * 10**places)), pa.decimal128(38, places))
            return multiples.cast(pa.decimal128(38, shown)).cast(kind)
        units = base * 10 ** (found.places or 0)
        if units.denominator != 1:
            of = "whole" if pa.types.is_integer(kind) else f"of at most {found.places} decimal places"
            raise InputError(
                f"round: column {self.column!r}: base: expected a number that is {of}, as the column's are; got "
                f"{brief(self.base)}."
            )
        multiples = _nearest(found.amounts, int(units))
        if pa.types.is_integer(kind):
            return self._whole(multiples, kind)
        kind = pa.decimal128(min(38, kind.precision + 1), kind.scale)
        return as_decimals(multiples, kind)

    def _whole(self, multiples: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
        try:
            return pa.array(multiples, kind)
        except (OverflowError, pa.ArrowException):
            raise InputError(
                f"round: column {self.column!r}: base: {brief(self.base)} rounds a value to a number beyond 64 bits. "
                "Take a smaller one."
            ) from None


def _nearest(amounts: npt.NDArray[Any], base: int) -> npt.NDArray[Any]:
    """The nearest multiples of whole numbers, of two the even one; Python's numbers where 64 bits might not do."""
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
        found: npt.NDArray[np.float64] = quotient * float(base.numerator) / float(base.denominator)
    # Where a product is not exact, and of numbers so large that the quotient has no fraction, one by one.
    limit = EXACT / max(float(base.denominator), float(base.numerator), 1.0)
    for place in np.flatnonzero((np.abs(quotient) > limit) & np.isfinite(amounts)):
        found[place] = float(round(Fraction(float(amounts[place])) / base) * base)
    # Infinite numbers, and no -0.0.
    return np.where(np.isfinite(amounts), found + 0.0, amounts)


def _places(number: Fraction) -> int:
    """How many decimal places a number has."""
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    return places
