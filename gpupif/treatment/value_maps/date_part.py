"""Dates cut to their year, quarter or month, and dates that are written in a given format."""

from __future__ import annotations

import datetime
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import texts
from ...errors import ColumnTypeError, InputError
from ...hierarchies.date_units import moments, unit_names
from ...utils.validation import brief, check_word
from ..treatment import Mapper, Tools, TreatedTable, ValueMap
from .new_values import is_text


def check_format(said: str, written: Any) -> None:
    """Raise InputError for what is neither None nor a form of dates. said: of what."""
    if written is not None and (not isinstance(written, str) or "%" not in written):
        raise InputError(f"{said}: format: expected signs of strptime such as '%m/%d/%Y', got {brief(written)}.")


def may_be_written(kind: pa.DataType) -> bool:
    """Whether values of a type may be dates as a form has them: texts and whole numbers."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind))


def dates_as_written(values: pa.Array, written: str) -> pa.Array:
    """Texts or whole numbers as timestamps in seconds, null for those that are no such dates."""
    said = texts(values)
    found = pc.strptime(said, format=written, unit="s", error_is_null=True)
    # Arrow takes 31 February for a day of March, and more: what does not read back the same is read by Python.
    same = pc.fill_null(pc.equal(pc.strftime(found, format=written), said), False)
    if pc.all(same).as_py() is False:
        strict = pa.array([_strictly(text, written) for text in said.filter(pc.invert(same)).to_pylist()], found.type)
        found = pc.replace_with_mask(found, pc.invert(same), strict)
    return found


def _strictly(text: str, written: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.strptime(text, written).replace(tzinfo=None)
    except ValueError:
        return None


PARTS = ("year", "quarter", "month")
WITHOUT_PLACE = ("error", "suppress")


@dataclass(frozen=True)
class DatePart(ValueMap):
    """Leave of dates and times their year (2001, a whole number), quarter (``2001-Q2``) or month (``2001-05``).

    to: ``"year"``, ``"quarter"`` or ``"month"``; of times with a time zone, by the clock there. Texts are dates as ISO
    8601 has them, 2001-05-17 or 2001-05-17T10:30. format: how else dates are written, in texts or whole numbers, with
    the signs of ``strptime``: ``"%m/%d/%Y"``, ``"%Y%m%d"``. unmapped: ``"error"``, or ``"suppress"``, which makes
    missing values of what is no date.

    Raises InputError for a value that is no date, naming it; ColumnTypeError for a column that has none.
    """

    do: ClassVar[str] = "date_part"
    to: Literal["year", "quarter", "month"]
    format: str | None = None
    unmapped: Literal["error", "suppress"] = "error"

    def check(self) -> None:
        check_word(f"date_part: column {self.column!r}: to", self.to, PARTS)
        check_word(f"date_part: column {self.column!r}: unmapped", self.unmapped, WITHOUT_PLACE)
        check_format(f"date_part: column {self.column!r}", self.format)

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        def mapper(values: pa.Array) -> pa.Array:
            if pa.types.is_null(values.type):
                return values
            found = _dates(self.column, values, self.format)
            if found.null_count and self.unmapped == "error":
                expected = "dates as 2001-05-17" if self.format is None else f"dates as {self.format}"
                strange = values.filter(found.is_null())[0].as_py()
                raise InputError(
                    f"column {self.column!r}: expected {expected}, got {brief(strange)}. "
                    "Say by format= how they are written, or unmapped='suppress'."
                )
            return pc.year(found) if self.to == "year" else unit_names(found, self.to)

        return mapper


def _dates(column: Hashable, values: pa.Array, written: str | None) -> pa.Array:
    """Values as dates or times by the clock there, null for those that are none."""
    kind = values.type
    if written is not None and may_be_written(kind):
        return dates_as_written(values, written)
    if not (is_text(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        hint = (
            "Of years, pool those that tell a high age (bottom_code); of dates written as numbers say how: "
            "format='%Y%m%d'."
        )
        raise ColumnTypeError(column, kind, "dates, times with a date, or texts of these", hint)
    return moments(values.cast(pa.string()) if is_text(kind) else values)
