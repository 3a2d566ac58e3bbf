"""Dates that are written in a form that somebody says, with the signs of ``strptime``."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.plain_values import texts
from ..errors import InputError
from ..utils.validation import brief


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
