"""Parts of dates: year, quarter or month. Functions for dates in a given format."""

from __future__ import annotations

import datetime
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import texts
from ...errors import ColumnTypeError
from ...hierarchies.date_units import moments, unit_names
from ..field_checks import date_format
from ..labels import UnreadableValueError
from ..treatment import Mapper, Tools, TreatedTable, ValueMap
from .new_values import is_text


def may_be_written(kind: pa.DataType) -> bool:
    """Return whether values of a type may be dates in a given format: texts and whole numbers may."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind))


def dates_as_written(values: pa.Array, written: str) -> pa.Array:
    """Return texts or whole numbers as timestamps in seconds, null for values that are no dates in the format.

    written: the format, with the signs of ``strptime``.
    """
    words = texts(values)
    times = pc.strptime(words, format=written, unit="s", error_is_null=True)
    # Arrow is lenient, it reads 31 February as a day of March: texts that are not written back unchanged go to Python.
    same = pc.fill_null(pc.equal(pc.strftime(times, format=written), words), False)
    if pc.all(same).as_py() is False:
        strict = pa.array([_strictly(text, written) for text in words.filter(pc.invert(same)).to_pylist()], times.type)
        times = pc.replace_with_mask(times, pc.invert(same), strict)
    return times


def _strictly(text: str, written: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.strptime(text, written).replace(tzinfo=None)
    except ValueError:
        return None


@dataclass(frozen=True)
class DatePart(ValueMap):
    """Replace dates and times by their year (2001, a whole number), quarter (``2001-Q2``) or month (``2001-05``).

    column: name of the column.
    to: ``"year"``, ``"quarter"`` or ``"month"``. Times with a time zone count by the clock of the zone.
    format: format of dates that are texts or whole numbers, with the signs of ``strptime``: ``"%m/%d/%Y"``,
        ``"%Y%m%d"``. Default None: texts are dates in ISO form, 2001-05-17 or 2001-05-17T10:30.
    unmapped: the rule for a value that is no date: ``"error"``, or ``"suppress"``, which makes it missing. Default
        ``"error"``.

    Missing values stay missing. Raises InputError for a value that is no date; the message names the value. Raises
    ColumnTypeError for a column of another type.
    """

    do: ClassVar[str] = "date_part"
    to: Literal["year", "quarter", "month"]
    format: Annotated[str | None, date_format] = None
    unmapped: Literal["error", "suppress"] = "error"

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        def mapper(values: pa.Array) -> pa.Array:
            if pa.types.is_null(values.type):
                return values
            dates = _dates(self.column, values, self.format)
            if dates.null_count and self.unmapped == "error":
                expected = "dates as 2001-05-17" if self.format is None else f"dates as {self.format}"
                strange = values.filter(dates.is_null())[0].as_py()
                mend = "Say by format how they are written, or unmapped = 'suppress'."
                raise UnreadableValueError(self.column, expected, strange, mend)
            return pc.year(dates) if self.to == "year" else unit_names(dates, self.to)

        return mapper


def _dates(column: Hashable, values: pa.Array, written: str | None) -> pa.Array:
    """Return values as dates, or as times by the clock of their zone; null for values that are no dates."""
    kind = values.type
    if written is not None and may_be_written(kind):
        return dates_as_written(values, written)
    if not (is_text(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        hint = (
            "Pool years that tell a high age (bottom_code). For dates that are written as numbers, give their "
            "format: format = '%Y%m%d'."
        )
        raise ColumnTypeError(column, kind, "dates, times with a date, or texts of these", hint)
    return moments(values.cast(pa.string()) if is_text(kind) else values)
