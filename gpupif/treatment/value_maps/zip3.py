"""Postcodes of the United States cut to three digits, where enough people live."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import texts
from ...errors import ColumnTypeError, InputError
from ...io.read import read_table
from ...utils.validation import brief, check_word, is_whole, whole_number
from ..treatment import Mapper, Tools, TreatedTable, ValueMap
from .date_part import WITHOUT_PLACE
from .new_values import is_text

# People that must be more than this in a three-digit area: 45 CFR 164.514(b)(2)(i)(B).
LEAST = 20_000
FEW = "000"
# Names of columns of a file of populations, without regard to case; the first that there is.
CODES = ("zip3", "zip", "zipcode", "zip_code", "zip5", "zcta", "zcta5", "zcta5ce20", "postcode")
PEOPLE = ("people", "population", "pop")


@dataclass(frozen=True)
class Zip3(ValueMap):
    """Leave of postcodes of the United States the first three digits, ``000`` where at most 20,000 people live.

    populations: people by three-digit area, or by postcode, which are added up: a dictionary, or the path of a file
    with columns zip3 (or zip, zcta5) and people (or population). There is none to begin with: areas and people change
    with each census, and Safe Harbor asks for the current one. least: areas with so many people or fewer become
    ``000``. unmapped: ``"error"``, or ``"suppress"``, which makes missing values of what is no postcode or in no area
    that `populations` has.

    Values are texts of five digits, or of nine (ZIP+4, with a hyphen or without), or whole numbers. Zeros in front that
    were lost are given back: one to a text, one or two to a number.

    Raises InputError for populations that lack or are none, for a value that is no postcode and for one of an area
    without people in `populations`, naming them; ColumnTypeError for other types. (45 CFR 164.514(b)(2)(i)(B).)
    """

    do: ClassVar[str] = "zip3"
    value_lists: ClassVar[Sequence[str]] = ("populations",)
    files: ClassVar[Sequence[str]] = ("populations",)
    populations: str | os.PathLike[str] | Mapping[Any, int] | None = None
    least: int = LEAST
    unmapped: Literal["error", "suppress"] = "error"

    def check(self) -> None:
        check_populations(f"zip3: column {self.column!r}", self.populations)
        whole_number(f"zip3: column {self.column!r}: least", self.least, "people", least=0)
        check_word(f"zip3: column {self.column!r}: unmapped", self.unmapped, WITHOUT_PLACE)

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
            raise InputError(
                f"column {self.column!r}: expected postcodes of five digits, or nine (02139, 02139-4307), got "
                f"{brief(strange)}. Mend them, or make missing values of such: unmapped='suppress'."
            )
        if place.null_count:
            lacking = sorted(set(digits.filter(place.is_null()).to_pylist()))
            more = f" and {len(lacking) - 5:,} more" if len(lacking) > 5 else ""
            raise InputError(
                f"zip3: column {self.column!r}: populations: no people for the areas {', '.join(lacking[:5])}{more}, "
                "which the column has. Add them, with 0 people where there are none, or say unmapped='suppress'."
            )


def check_populations(said: str, populations: Any) -> None:
    """Raise InputError where populations are not given, or neither a path nor a dictionary of people. said: of what."""
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
    elif not isinstance(populations, str | os.PathLike):
        raise InputError(f"{said}: populations: expected a dictionary or the path of a file, got {brief(populations)}.")


def people_by_area(said: str, populations: Any) -> dict[str, int]:
    """People by three digits; raises InputError. said: what errors call the populations."""
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
            raise InputError(f"{said}: the area {padded} stands there twice. Keep one.")
        people[padded[:3]] += int(count)
    return dict(people)


def _read(said: str, path: Any) -> tuple[list[str], list[int], int | None]:
    """Codes and people of a file, and how many digits codes have where the name of their column says so."""
    table = read_table(path)
    found = {str(name).lower(): str(name) for name in table.column_names}
    code = next((found[name] for name in CODES if name in found), None)
    people = next((found[name] for name in PEOPLE if name in found), None)
    if code is None or people is None:
        raise InputError(
            f"{said}: {path}: expected columns zip3 and people, got {', '.join(map(str, table.column_names))}. Rename "
            "them."
        )
    counts = table.column(people).to_pylist()
    codes = [*texts(table.column(code).combine_chunks()).to_pylist()]
    for place, (one, count) in enumerate(zip(codes, counts, strict=True), 1):
        if one is None or not is_whole(count) or count < 0:
            raise InputError(
                f"{said}: {path}: row {place}: expected an area and its people, a whole number, got {one} and "
                f"{brief(count)}."
            )
    return codes, counts, 3 if code.lower() == "zip3" else 5


def first_three(column: Hashable, values: pa.Array) -> pa.Array:
    """The first three digits of postcodes, null for what is none."""
    kind = values.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not is_number and not is_text(kind):
        raise ColumnTypeError(column, kind, "postcodes, as texts or whole numbers", "Convert them to text.")
    written = pc.utf8_trim_whitespace(texts(values).cast(pa.string()))
    # What has lost zeros in front has three digits at least: they begin with 005.
    least = 3 if is_number else 4
    is_code = pc.match_substring_regex(written, rf"^\d{{{least},5}}(-?\d{{4}})?$")
    digits = pc.replace_substring(written, "-", "")
    short = pc.less_equal(pc.utf8_length(digits), 5)
    padded = pc.if_else(short, pc.utf8_lpad(digits, 5, "0"), pc.utf8_lpad(digits, 9, "0"))
    return pc.if_else(is_code, pc.utf8_slice_codeunits(padded, 0, 3), pa.scalar(None, pa.string()))
