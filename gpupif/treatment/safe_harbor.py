"""Safe Harbor: the treatments that 45 CFR 164.514(b)(2)(i) requires, by the declared content of each column."""

from __future__ import annotations

import datetime
import os
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from ..errors import InputError, did_you_mean
from ..utils.validation import brief, is_whole
from .dropped_columns import DeclaredColumns, Drop
from .treatment import Treatment
from .value_maps.date_part import DatePart
from .value_maps.pooled_values import OLDEST, BottomCode, Cap
from .value_maps.zip3 import Zip3, check_populations

FREE_TEXT = "free_text"


class Kind(NamedTuple):
    """A declared content of a column.

    paragraph: text. Its paragraph in 45 CFR 164.514(b)(2)(i); "" if it is none of the eighteen identifiers.
    holds: text. The content, for the documentation.
    done: text. The treatment: `DROPPED`, `KEPT`, `REFUSED` or words for the documentation.
    """

    paragraph: str
    holds: str
    done: str


DROPPED, KEPT, REFUSED = "dropped", "kept", "refused"
KINDS: Mapping[str, Kind] = {
    "direct": Kind("A, B, D to R", "anything that is to be removed whatever it is", DROPPED),
    "name": Kind("A", "names", DROPPED),
    "geography": Kind("B", "a place smaller than a state: street, city, county, precinct, coordinates", DROPPED),
    "zip": Kind("B", "a postcode", "three digits, `000` where 20,000 people or fewer live"),
    "date": Kind("C", "a date to do with somebody: of birth, admission, discharge, death", "its year; see `year`"),
    "year": Kind("C", "the year of such a date", "years that tell an age over 89 pooled"),
    "age": Kind("C", "an age in years", "ages over 89 pooled"),
    "phone": Kind("D", "telephone numbers", DROPPED),
    "fax": Kind("E", "fax numbers", DROPPED),
    "email": Kind("F", "email addresses", DROPPED),
    "ssn": Kind("G", "social security numbers", DROPPED),
    "medical_record": Kind("H", "medical record numbers", DROPPED),
    "health_plan": Kind("I", "health plan beneficiary numbers", DROPPED),
    "account": Kind("J", "account numbers", DROPPED),
    "license": Kind("K", "certificate and license numbers", DROPPED),
    "vehicle": Kind("L", "vehicle identifiers and serial numbers, license plates", DROPPED),
    "device": Kind("M", "device identifiers and serial numbers", DROPPED),
    "url": Kind("N", "web addresses", DROPPED),
    "ip": Kind("O", "IP addresses", DROPPED),
    "biometric": Kind("P", "biometric identifiers: finger and voice prints", DROPPED),
    "photo": Kind("Q", "photographs of faces, and images like them", DROPPED),
    "identifier": Kind("R", "any other number, characteristic or code of one person", DROPPED),
    FREE_TEXT: Kind("", "text that may say anything", REFUSED),
    "state": Kind("", "a state, or what is larger", KEPT),
    "keep": Kind("", "none of these: sex, a diagnosis, an amount", KEPT),
}


def safe_harbor_treatments(
    columns: Mapping[Hashable, str],
    populations: str | os.PathLike[str] | Mapping[Any, int] | None = None,
    as_of: int | datetime.date | None = None,
    date_format: str | Mapping[Hashable, str] | None = None,
) -> list[Treatment]:
    """Return the treatments of `Plan.safe_harbor`, with the same arguments; raises InputError."""
    declared = _checked(columns)
    year = _year(as_of)
    if any(kind == "zip" for kind in declared.values()):
        check_populations("safe_harbor", populations)
    formats = _formats(declared, date_format)
    treatments: list[Treatment] = [DeclaredColumns(list(declared))]
    dropped = [name for name, kind in declared.items() if KINDS[kind].done == DROPPED]
    if dropped:
        treatments.append(Drop(dropped))
    for name, kind in declared.items():
        if kind == "zip":
            treatments.append(Zip3(name, populations))
        if kind == "age":
            treatments.append(Cap(name))
        if kind == "date":
            treatments.append(DatePart(name, "year", formats.get(name)))
        if kind in ("date", "year"):
            # A person who was born in `year` - 90 or before is over 89 by the end of `year`.
            treatments.append(BottomCode(name, year - OLDEST, f"{year - OLDEST - 1} or before"))
    return treatments


def _checked(columns: Any) -> dict[Hashable, str]:
    if not isinstance(columns, Mapping) or not columns:
        raise InputError(
            "safe_harbor: columns: expected a dictionary with the content of every column, such as "
            f"{{'birth': 'date', 'zip': 'zip'}}; got {brief(columns)}."
        )
    for name, kind in columns.items():
        if kind not in KINDS:
            hint = did_you_mean(str(kind), KINDS)
            raise InputError(
                f"safe_harbor: column {name!r}: expected its content, one of {', '.join(KINDS)}; got {brief(kind)}."
                f"{hint}"
            )
    texts = [name for name, kind in columns.items() if KINDS[kind].done == REFUSED]
    if texts:
        raise InputError(
            f"safe_harbor: column {texts[0]!r}: free text may say anything about anybody, and no treatment finds "
            "all of it. Declare it as 'direct', which drops it, or have people read it."
        )
    return dict(columns)


def _year(as_of: Any) -> int:
    if as_of is None:
        return datetime.date.today().year
    year = as_of.year if isinstance(as_of, datetime.date) else as_of
    if not is_whole(year) or not 1900 <= year <= 9999:
        raise InputError(f"safe_harbor: as_of: expected a year or a date, got {brief(as_of)}.")
    return int(year)


def _formats(declared: Mapping[Hashable, str], given: Any) -> dict[Hashable, str]:
    dates = [name for name, kind in declared.items() if kind == "date"]
    if given is None or isinstance(given, str):
        return dict.fromkeys(dates, given) if given else {}
    if not isinstance(given, Mapping):
        raise InputError(f"safe_harbor: date_format: expected a text such as '%m/%d/%Y', got {brief(given)}.")
    others = [name for name in given if name not in dates]
    if others:
        raise InputError(f"safe_harbor: date_format: column {others[0]!r} is not declared as a date. Leave it out.")
    return dict(given)
