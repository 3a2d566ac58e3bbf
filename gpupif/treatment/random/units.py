"""Numbers and dates as whole numbers of units or as floats, moved, and made values of their type again."""

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
from ...utils.validation import brief
from ..value_maps.date_part import dates_as_written, may_be_written
from ..value_maps.new_values import all_numbers, is_text
from ..value_maps.new_values import numbers as read_numbers

# Ticks of a day, by unit of time.
DAYS = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
# Texts of dates in ISO form; how they are written is kept.
DATE, TIMES = "%Y-%m-%d", ("%H:%M:%S", "%H:%M")
FORMATS = (DATE, *(DATE + between + time for between in " T" for time in TIMES), "%Y/%m/%d", "%Y%m%d")
MOST = 2**63 - 1
MEND = "Convert them, or leave the column out of this treatment."
# Of dates, 0001-01-01 and 9999-12-31 in days from 1970.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896


@dataclass(frozen=True)
class Units:
    """Values of one column. amounts: of each, float64 or int64; `one` of them is a whole step.

    day: units of a day where values are dates, else 0. digits: decimal places of a decimal number, in units of which
    amounts are, and of texts that are numbers. layout: how texts of dates are written.
    """

    column: Hashable
    kind: pa.DataType
    amounts: npt.NDArray[Any]
    day: int = 0
    digits: int = 0
    layout: str | None = None

    @property
    def one(self) -> int:
        """Units of what values move by: a day, or 1."""
        return self.day or 10**self.digits

    @property
    def places(self) -> int | None:
        """Of texts that are numbers, as how many decimal places `units_of` is to read them; None of all else."""
        return self.digits if is_text(self.kind) and self.layout is None else None

    def moved(self, places: npt.NDArray[Any], by: npt.NDArray[Any]) -> pa.Array:
        """For each place the value there, moved by so many units; raises InputError where there is no such value."""
        amounts = self.amounts[places]
        if amounts.dtype.kind == "f":
            # Adding zero makes -0.0 and 0.0 the one value that they are.
            return pa.array(amounts + by + 0.0).cast(self.kind, safe=False)
        found = amounts + by
        # A sum beyond 64 bits has another sign than both of its terms.
        if (((amounts ^ found) & (by ^ found)) < 0).any():
            raise self.beyond()
        return self._values(found)

    def stepped(self, places: npt.NDArray[Any], steps: npt.NDArray[np.int64]) -> pa.Array:
        """As `moved`, by whole steps: days, or ones."""
        if len(steps) and max(-int(steps.min()), int(steps.max())) > MOST // self.one:
            raise self.beyond()
        return self.moved(places, steps * np.int64(self.one))

    def _values(self, amounts: npt.NDArray[np.int64]) -> pa.Array:
        if self.day and len(amounts):
            days = amounts // self.day
            if days.min() < FIRST_DAY or days.max() > LAST_DAY:
                raise self.beyond()
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
            raise self.beyond() from None

    def beyond(self) -> InputError:
        """What is raised where a value leaves its type."""
        return InputError(
            f"column {self.column!r}: a value is moved beyond what {self.kind} holds. Move values less, or cap the "
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
    """Values as amounts, whatever their type, texts of dates and numbers too; raises ColumnTypeError, or InputError for
    a text that is neither.

    written: how dates are written in texts or whole numbers, where it is not in ISO form. places: where texts of the
    whole column are numbers, as how many decimal places, for those of some of its rows.
    """
    kind = labels.type
    if pa.types.is_null(kind):
        # A column without any value.
        return Units(column, kind, np.empty(0, np.int64))
    if written is not None and may_be_written(kind):
        return _dates_as(column, labels, written)
    if numbers and pa.types.is_integer(kind):
        try:
            return Units(column, kind, labels.cast(pa.int64()).to_numpy())
        except pa.ArrowInvalid:
            raise Units(column, kind, np.empty(0, np.int64)).beyond() from None
    if numbers and pa.types.is_floating(kind):
        return Units(column, kind, labels.cast(pa.float64()).to_numpy())
    if numbers and pa.types.is_decimal(kind):
        amounts = [int(value.scaleb(kind.scale)) for value in labels.to_pylist()]
        return Units(column, kind, np.array(amounts, np.int64), digits=kind.scale)
    if dates and pa.types.is_date(kind):
        return Units(column, kind, labels.cast(pa.date32()).cast(pa.int32()).to_numpy().astype(np.int64), 1)
    if dates and pa.types.is_timestamp(kind):
        return Units(column, kind, labels.cast(pa.int64()).to_numpy(), DAYS[kind.unit])
    if is_text(kind):
        if numbers and (places is not None or not dates or _are_numbers(column, labels)):
            return _numbers_of_text(column, labels, places)
        return _dates_of_text(column, labels)
    expected = " or ".join(["numbers"] * numbers + ["dates"] * dates)
    raise ColumnTypeError(column, str(kind), expected, MEND)


def _are_numbers(column: Hashable, labels: pa.Array) -> bool:
    """Whether texts that may be dates or numbers are these: what may be either is a date."""
    try:
        _dates_of_text(column, labels)
    except InputError:
        return bool(read_numbers(column, labels, MEND).known.any())
    return False


def _numbers_of_text(column: Hashable, labels: pa.Array, places: int | None) -> Units:
    """Texts in units of the last decimal place that any of them is written with."""
    found = all_numbers(column, labels, MEND)
    digits = _written_places(labels) if places is None else places
    of = found.places or 0
    amounts = (
        found.amounts // 10 ** (of - digits) if digits <= of else found.amounts.astype(object) * 10 ** (digits - of)
    )
    try:
        return Units(column, labels.type, amounts.astype(np.int64), digits=digits)
    except OverflowError:
        raise InputError(
            f"column {column!r}: the texts are numbers of up to {digits} decimal places, in which one does not fit "
            "into 64 bits. Round the column first."
        ) from None


def _written_places(labels: pa.Array) -> int:
    """The most decimal places with which any of some texts is written."""
    parts = pc.extract_regex(labels, r"\.?(?P<behind>\d*)(?:[eE](?P<power>[+-]?\d+))?\s*$")
    if not len(labels):
        return 0
    behind = pc.if_else(pc.match_substring(labels, "."), pc.utf8_length(parts.field("behind")), 0)
    power = parts.field("power")
    powers = pc.if_else(pc.equal(power, ""), "0", pc.utf8_ltrim(power, "+")).cast(pa.int64())
    return max(0, int(pc.max(pc.subtract(behind, powers)).as_py()))


def _texts_of_numbers(amounts: npt.NDArray[np.int64], digits: int) -> pa.Array:
    """Whole numbers of units of a decimal place as texts."""
    size = pa.array(np.abs(amounts).astype(np.uint64)).cast(pa.string())
    sign = pa.array(np.where(amounts < 0, "-", ""), pa.string())
    if not digits:
        return pc.binary_join_element_wise(sign, size, "")
    size = pc.utf8_lpad(size, digits + 1, "0")
    whole, behind = pc.utf8_slice_codeunits(size, 0, -digits), pc.utf8_slice_codeunits(size, -digits)
    return pc.binary_join_element_wise(sign, whole, ".", behind, "")


def _dates_as(column: Hashable, labels: pa.Array, written: str) -> Units:
    read = dates_as_written(labels, written)
    if read.null_count:
        value = labels.filter(read.is_null())[0].as_py()
        raise InputError(
            f"column {column!r}: expected dates as {written}, got {brief(value)}. Say by format= how they are written."
        )
    return Units(column, labels.type, read.cast(pa.int64()).to_numpy(), DAYS["s"], layout=written)


def _dates_of_text(column: Hashable, labels: pa.Array) -> Units:
    best: tuple[int, str | None, Any] = (len(labels) + 1, None, None)
    for layout in FORMATS:
        read = pc.strptime(labels, format=layout, unit="s", error_is_null=True)
        # What is read has to be written again as it was: 2020-1-5 and 2020-02-31 are not.
        same = pc.fill_null(pc.equal(pc.strftime(read, layout), labels), False)
        wrong = len(labels) - int(np.count_nonzero(same))
        if not wrong:
            return Units(column, labels.type, read.cast(pa.int64()).to_numpy(), DAYS["s"], layout=layout)
        if wrong < best[0]:
            best = wrong, layout, same
    value = labels.filter(pc.invert(best[2]))[0].as_py()
    raise InputError(
        f"column {column!r}: expected dates, as type or all as one text of ISO form (2020-01-31, 2020-01-31 08:30:00), "
        f"got {brief(value)}. Convert the column to dates."
    )
