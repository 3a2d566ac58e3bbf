"""Postcodes of the United States, cut to three digits if enough people live in the area."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import texts
from ...errors import ColumnTypeError, InputError
from ...io.read import read_table
from ...utils.validation import brief, is_whole
from ..field_checks import whole
from ..labels import UnreadableValueError
from ..treatment import Mapper, Tools, TreatedTable, ValueMap
from .new_values import is_text

# An area of three digits needs more people than this: 45 CFR 164.514(b)(2)(i)(B).
LEAST = 20_000
FEW = "000"
# The allowed names of columns in a file of populations, in any case. The first name that exists is taken.
CODES = ("zip3", "zip", "zipcode", "zip_code", "zip5", "zcta", "zcta5", "zcta5ce20", "postcode")
PEOPLE = ("people", "population", "pop")


@dataclass(frozen=True)
class Zip3(ValueMap):
    """Cut postcodes of the United States to three digits, or to ``000`` in an area with at most 20,000 people.

    column: name of the column.
    populations: number of people by three-digit area, or by postcode, whose people are then added up. A dictionary, or
        the path of a file with columns zip3 (or zip, zcta5) and people (or population). It must be given: areas change
        with each census, and Safe Harbor requires the current one.
    least: areas with at most this number of people become ``000``. Default 20,000.
    unmapped: the rule for a value that is no postcode, or in no area of `populations`: ``"error"``, or ``"suppress"``,
        which makes it missing. Default ``"error"``.

    Values are texts of five or nine digits (ZIP+4, with or without a hyphen), or whole numbers. Lost zeros in front are
    restored: one for a text, one or two for a number. Missing values stay missing.

    Raises InputError for absent or wrong populations, for a value that is no postcode, and for an area that is not in
    `populations`; the message names them. Raises ColumnTypeError for other types. Source: 45 CFR 164.514(b)(2)(i)(B).
    """

    do: ClassVar[str] = "zip3"
    value_lists: ClassVar[Sequence[str]] = ("populations",)
    files: ClassVar[Sequence[str]] = ("populations",)
    populations: str | os.PathLike[str] | Mapping[Any, int] | None = None
    least: Annotated[int, whole("people", 0)] = LEAST
    unmapped: Literal["error", "suppress"] = "error"

    def check(self) -> None:
        super().check()
        check_populations(self.said, self.populations)

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        people = people_by_area(f"zip3: column {self.column!r}: populations", self.populations)
        areas = pa.array(people)
        names = pa.array([area if count > self.least else FEW for area, count in people.items()], pa.string())

        def mapper(values: pa.Array) -> pa.Array:
            if pa.types.is_null(values.type):
                return values
            digits = first_three(self.column, values)
            place = pc.index_in(digits, areas, skip_nulls=True)
            if self.unmapped == "error":
                self._check_known(values, digits, place)
            return names.take(place)

        return mapper

    def _check_known(self, values: pa.Array, digits: pa.Array, place: pa.Array) -> None:
        if digits.null_count:
            strange = values.filter(digits.is_null())[0].as_py()
            expected = "postcodes of five digits, or nine (02139, 02139-4307)"
            mend = "Mend them, or make them missing: unmapped = 'suppress'."
            raise UnreadableValueError(self.column, expected, strange, mend)
        if place.null_count:
            lacking = sorted(set(digits.filter(place.is_null()).to_pylist()))
            more = f" and {len(lacking) - 5:,} more" if len(lacking) > 5 else ""
            raise InputError(
                f"zip3: column {self.column!r}: populations: no people for the areas {', '.join(lacking[:5])}{more}, "
                "which the column has. Add them, also areas without people, or say unmapped = 'suppress'."
            )


def check_populations(said: str, populations: Any) -> None:
    """Raise InputError unless populations are a path or a dictionary of people. said: prefix of the error."""
    if populations is None:
        raise InputError(
            f"{said}: populations: expected people by three-digit area, got none: a dictionary, or the path of a file "
            "with columns zip3 and people. Which areas have more than 20,000 people is to be looked up in current data "
            "of the Bureau of the Census."
        )
    if isinstance(populations, Mapping):
        for area, people in populations.items():
            if not is_whole(people) or people < 0:
                raise InputError(
                    f"{said}: populations: expected people of {area!r} as a whole number, got {brief(people)}."
                )


def people_by_area(said: str, populations: Any) -> dict[str, int]:
    """Return the number of people by three-digit area; raises InputError. said: prefix of the error."""
    if isinstance(populations, Mapping):
        codes, counts, digits = [str(code) for code in populations], [*populations.values()], None
    else:
        codes, counts, digits = _read(said, populations)
    if not codes:
        raise InputError(f"{said}: expected people by area, got none.")
    if digits is None:
        digits = 3 if max(map(len, codes)) <= 3 else 5
    people: Counter[str] = Counter()
    for code, count in zip(codes, counts, strict=True):
        padded = code.zfill(digits)
        if len(padded) != digits or not (padded.isascii() and padded.isdigit()):
            raise InputError(f"{said}: expected areas of three digits, or postcodes of five, got {code!r}.")
        if digits == 3 and padded in people:
            raise InputError(f"{said}: the area {padded} is given twice. Keep one.")
        people[padded[:3]] += int(count)
    return dict(people)


def _read(said: str, path: Any) -> tuple[list[str], list[int], int | None]:
    """Return codes and people from a file, and the number of digits that the name of the codes' column implies."""
    table = read_table(path)
    by_lower = {str(name).lower(): str(name) for name in table.column_names}
    code = next((by_lower[name] for name in CODES if name in by_lower), None)
    people = next((by_lower[name] for name in PEOPLE if name in by_lower), None)
    if code is None or people is None:
        raise InputError(
            f"{said}: {path}: expected columns zip3 and people, got {', '.join(map(str, table.column_names))}. Rename "
            "them."
        )
    counts = table.column(people).to_pylist()
    codes = [*texts(table.column(code).combine_chunks()).to_pylist()]
    for place, (area, count) in enumerate(zip(codes, counts, strict=True), 1):
        if area is None or not is_whole(count) or count < 0:
            raise InputError(
                f"{said}: {path}: row {place}: expected an area and its people, a whole number, got {area} and "
                f"{brief(count)}."
            )
    return codes, counts, 3 if code.lower() == "zip3" else 5


def first_three(column: Hashable, values: pa.Array) -> pa.Array:
    """Return the first three digits of postcodes, null for a value that is no postcode."""
    kind = values.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not is_number and not is_text(kind):
        raise ColumnTypeError(column, kind, "postcodes, as texts or whole numbers", "Convert them to text.")
    written = pc.utf8_trim_whitespace(texts(values).cast(pa.string()))
    # The lowest postcodes begin with 005: a number has lost at most two zeros, and has at least three digits.
    least = 3 if is_number else 4
    is_code = pc.match_substring_regex(written, rf"^\d{{{least},5}}(-?\d{{4}})?$")
    digits = pc.replace_substring(written, "-", "")
    short = pc.less_equal(pc.utf8_length(digits), 5)
    padded = pc.if_else(short, pc.utf8_lpad(digits, 5, "0"), pc.utf8_lpad(digits, 9, "0"))
    return pc.if_else(is_code, pc.utf8_slice_codeunits(padded, 0, 3), pa.scalar(None, pa.string()))
