"""Numbers and dates as amounts of units: amounts are moved, and converted back to the column's type."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import ColumnTypeError, InputError
from ..labels import UnreadableValueError
from ..value_maps.date_part import dates_as_written, may_be_written
from ..value_maps.new_values import all_numbers, is_text
from ..value_maps.new_values import numbers as read_numbers

# The number of ticks of a day, by unit of time.
DAYS = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
# The formats of texts that are dates in ISO form. Moved dates keep their format.
DATE, TIMES = "%Y-%m-%d", ("%H:%M:%S", "%H:%M")
FORMATS = (DATE, *(DATE + between + time for between in " T" for time in TIMES), "%Y/%m/%d", "%Y%m%d")
MOST = 2**63 - 1
MEND = "Convert them, or leave the column out of this treatment."
# The dates 0001-01-01 and 9999-12-31, in days from 1970-01-01.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896


@dataclass(frozen=True)
class Units:
    """The values of a column as amounts.

    column: name of the column, for errors.
    kind: Arrow type of the values.
    amounts: float64 or int64 (values,). The amount of each value, in units of the type: ticks of dates and times, last
        decimal places of decimal numbers and texts, ones of other numbers.
    day: int. The number of units in a day if the values are dates. Default 0: numbers.
    digits: int. Decimal places of decimal numbers, and of texts that are numbers. Default 0.
    layout: format of texts that are dates. Default None.
    """

    column: Hashable
    kind: pa.DataType
    amounts: npt.NDArray[Any]
    day: int = 0
    digits: int = 0
    layout: str | None = None

    @property
    def step(self) -> int:
        """The number of units in a whole step: a day, or 1."""
        return self.day or 10**self.digits

    @property
    def places(self) -> int | None:
        """The decimal places of texts that are numbers, for `units_of` on a chunk; None for other values."""
        return self.digits if is_text(self.kind) and self.layout is None else None

    def moved(self, places: npt.NDArray[Any], by: npt.NDArray[Any]) -> pa.Array:
        """Return values moved by units: Arrow array (rows,). places: position of each row's value. by: units (rows,).

        Raises InputError for a result that the type cannot hold.
        """
        amounts = self.amounts[places]
        if amounts.dtype.kind == "f":
            # Adding 0.0 turns -0.0 into 0.0: both are one value.
            return pa.array(amounts + by + 0.0).cast(self.kind, safe=False)
        sums = amounts + by
        # The sign of a sum beyond 64 bits differs from the signs of both terms.
        if (((amounts ^ sums) & (by ^ sums)) < 0).any():
            raise self.range_error()
        return self._values(sums)

    def stepped(self, places: npt.NDArray[Any], steps: npt.NDArray[np.int64]) -> pa.Array:
        """Return values moved by whole steps, days or ones, see `moved`."""
        if len(steps) and max(-int(steps.min()), int(steps.max())) > MOST // self.step:
            raise self.range_error()
        return self.moved(places, steps * np.int64(self.step))

    def _values(self, amounts: npt.NDArray[np.int64]) -> pa.Array:
        if self.day and len(amounts):
            days = amounts // self.day
            if days.min() < FIRST_DAY or days.max() > LAST_DAY:
                raise self.range_error()
        if pa.types.is_null(self.kind):
            return pa.nulls(len(amounts))
        try:
            if self.layout is not None:
                return pc.strftime(pa.array(amounts, pa.timestamp("s")), self.layout).cast(self.kind)
            if is_text(self.kind):
                return _texts_of_numbers(amounts, self.digits).cast(self.kind)
            if pa.types.is_decimal(self.kind):
                numbers, codes = np.unique(amounts, return_inverse=True)
                made = pa.array([Decimal(number).scaleb(-self.digits) for number in numbers.tolist()], self.kind)
                return made.take(pa.array(codes))
            if pa.types.is_date(self.kind):
                return pa.array(amounts.astype(np.int32), pa.int32()).cast(pa.date32()).cast(self.kind)
            return pa.array(amounts).cast(self.kind)
        except pa.ArrowInvalid:
            raise self.range_error() from None

    def range_error(self) -> InputError:
        """Return the error for a moved value that the type cannot hold."""
        return InputError(
            f"column {self.column!r}: a moved value does not fit into {self.kind}. Move values less, or cap the "
            "largest first."
        )


def units_of(
    column: Hashable,
    labels: pa.Array,
    dates: bool,
    numbers: bool,
    written: str | None = None,
    places: int | None = None,
) -> Units:
    """Return the values of a column as amounts.

    labels: Arrow array. Distinct values, none missing; texts may be dates or numbers.
    dates, numbers: whether dates, and whether numbers, are allowed.
    written: format of dates that are texts or whole numbers. Default None: ISO form.
    places: `Units.places` of the whole column, if the labels are of a chunk: all chunks then have equal units. Default
        None: found from the labels.

    Raises ColumnTypeError for another type, and InputError for a text that is neither date nor number.
    """
    kind = labels.type
    if pa.types.is_null(kind):
        return Units(column, kind, np.empty(0, np.int64))
    if written is not None and may_be_written(kind):
        return _dates_as(column, labels, written)
    if numbers and pa.types.is_integer(kind):
        try:
            return Units(column, kind, labels.cast(pa.int64()).to_numpy())
        except pa.ArrowInvalid:
            raise Units(column, kind, np.empty(0, np.int64)).range_error() from None
    if numbers and pa.types.is_floating(kind):
        return Units(column, kind, labels.cast(pa.float64()).to_numpy())
    if numbers and pa.types.is_decimal(kind):
        amounts = [int(value.scaleb(kind.scale)) for value in labels.to_pylist()]
        try:
            return Units(column, kind, np.array(amounts, np.int64), digits=kind.scale)
        except OverflowError:
            raise Units(column, kind, np.empty(0, np.int64)).range_error() from None
    if dates and pa.types.is_date(kind):
        return Units(column, kind, labels.cast(pa.date32()).cast(pa.int32()).to_numpy().astype(np.int64), 1)
    if dates and pa.types.is_timestamp(kind):
        return Units(column, kind, labels.cast(pa.int64()).to_numpy(), DAYS[kind.unit])
    if is_text(kind):
        if numbers and (places is not None or not dates or _are_numbers(column, labels)):
            return _numbers_of_text(column, labels, places)
        return _dates_of_text(column, labels, numbers)
    expected = " or ".join(["numbers"] * numbers + ["dates"] * dates)
    raise ColumnTypeError(column, str(kind), expected, MEND)


def _are_numbers(column: Hashable, labels: pa.Array) -> bool:
    """Return whether texts are numbers rather than dates. Texts that may be both, such as 20200131, are dates."""
    try:
        _dates_of_text(column, labels)
    except InputError:
        return bool(read_numbers(column, labels, MEND).known.any())
    return False


def _numbers_of_text(column: Hashable, labels: pa.Array, places: int | None) -> Units:
    """Return texts as amounts of their last decimal place: the most decimal places that any text has, or `places`."""
    exact = all_numbers(column, labels, MEND)
    digits = _written_places(labels) if places is None else places
    own = exact.places or 0
    amounts = (
        exact.amounts // 10 ** (own - digits) if digits <= own else exact.amounts.astype(object) * 10 ** (digits - own)
    )
    try:
        return Units(column, labels.type, amounts.astype(np.int64), digits=digits)
    except OverflowError:
        raise InputError(
            f"column {column!r}: the texts are numbers of up to {digits} decimal places, in which one does not fit "
            "into 64 bits. Round the column first."
        ) from None


def _written_places(labels: pa.Array) -> int:
    """Return the largest number of decimal places of any text."""
    parts = pc.extract_regex(labels, r"\.?(?P<decimals>\d*)(?:[eE](?P<power>[+-]?\d+))?\s*$")
    if not len(labels):
        return 0
    decimals = pc.if_else(pc.match_substring(labels, "."), pc.utf8_length(parts.field("decimals")), 0)
    power = parts.field("power")
    powers = pc.if_else(pc.equal(power, ""), "0", pc.utf8_ltrim(power, "+")).cast(pa.int64())
    return max(0, int(pc.max(pc.subtract(decimals, powers)).as_py()))


def _texts_of_numbers(amounts: npt.NDArray[np.int64], digits: int) -> pa.Array:
    """Return whole numbers in units of a decimal place as texts. digits: the number of decimal places."""
    size = pa.array(np.abs(amounts).astype(np.uint64)).cast(pa.string())
    sign = pa.array(np.where(amounts < 0, "-", ""), pa.string())
    if not digits:
        return pc.binary_join_element_wise(sign, size, "")
    size = pc.utf8_lpad(size, digits + 1, "0")
    whole, decimals = pc.utf8_slice_codeunits(size, 0, -digits), pc.utf8_slice_codeunits(size, -digits)
    return pc.binary_join_element_wise(sign, whole, ".", decimals, "")


def _dates_as(column: Hashable, labels: pa.Array, written: str) -> Units:
    read = dates_as_written(labels, written)
    if read.null_count:
        value = labels.filter(read.is_null())[0].as_py()
        raise UnreadableValueError(column, f"dates as {written}", value, "Say by format how they are written.")
    return Units(column, labels.type, read.cast(pa.int64()).to_numpy(), DAYS["s"], layout=written)


def _dates_of_text(column: Hashable, labels: pa.Array, or_numbers: bool = False) -> Units:
    """Return texts as dates. or_numbers: whether numbers are expected too, in the error about other texts."""
    best: tuple[int, str | None, Any] = (len(labels) + 1, None, None)
    for layout in FORMATS:
        read = pc.strptime(labels, format=layout, unit="s", error_is_null=True)
        # Only texts that are written again unchanged count as dates: 2020-1-5 and 2020-02-31 are not.
        same = pc.fill_null(pc.equal(pc.strftime(read, layout), labels), False)
        wrong = len(labels) - int(np.count_nonzero(same))
        if not wrong:
            return Units(column, labels.type, read.cast(pa.int64()).to_numpy(), DAYS["s"], layout=layout)
        if wrong < best[0]:
            best = wrong, layout, same
    value = labels.filter(pc.invert(best[2]))[0].as_py()
    expected, mend = ("numbers, or dates", MEND) if or_numbers else ("dates,", "Convert the column to dates.")
    form = " as type or all as one text of ISO form (2020-01-31, 2020-01-31 08:30:00)"
    raise UnreadableValueError(column, expected + form, value, mend)
