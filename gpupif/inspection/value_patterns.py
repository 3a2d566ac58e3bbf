"""Patterns of single values, with their check digits."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from . import column_meanings as meanings
from .column_meanings import Meaning

# Of numbers with a check digit a part is right by chance: so many different ones are needed to tell.
CHECKED = 8
# Longer values are none of these.
LONGEST = 500
VIN_VALUES = {
    **{str(digit): digit for digit in range(10)},
    **dict(zip("ABCDEFGH", range(1, 9), strict=True)),
    **dict(zip("JKLMN", range(1, 6), strict=True)),
    "P": 7,
    "R": 9,
    **dict(zip("STUVWXYZ", range(2, 10), strict=True)),
}
VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
MONTHS = (
    "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|janv|févr|mars|avr|mai|juin|juil|août|mär|okt|dez|ene|abr|ago|dic"
)


class Pattern(NamedTuple):
    """A pattern of values of one meaning.

    fits: returns whether a value fits. strong: whether no other values fit. least: how many different values are
    needed to tell. by_name_only: whether only a column with a name of this meaning is believed to have it.
    """

    meaning: Meaning
    fits: Callable[[str], bool]
    strong: bool = True
    least: int = 1
    by_name_only: bool = False


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda text: compiled.fullmatch(text) is not None


def digits_of(text: str) -> str:
    """The digits of a number written with spaces, hyphens and the like."""
    return re.sub(r"[\s().\-/]", "", text)


def has_luhn_digit(digits: str) -> bool:
    """Return whether the last digit is the check digit of Luhn (ISO/IEC 7812-1)."""
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


def is_card(text: str) -> bool:
    """Return whether it is a payment card number: 13 to 19 digits, a first digit in use, Luhn's check digit."""
    digits = re.sub(r"[ -]", "", text)
    return re.fullmatch(r"[2-6]\d{12,18}", digits) is not None and has_luhn_digit(digits)


def is_iban(text: str) -> bool:
    """Return whether it is an IBAN (ISO 13616): its check digits make it 1 modulo 97."""
    plain = text.replace(" ", "").upper()
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", plain):
        return False
    return int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1


def is_vin(text: str) -> bool:
    """Return whether it is a vehicle identification number with the check digit of 49 CFR 565.15."""
    plain = text.upper()
    if not re.fullmatch(r"[A-HJ-NPR-Z0-9]{8}[0-9X][A-HJ-NPR-Z0-9]{8}", plain):
        return False
    rest = sum(VIN_VALUES[sign] * weight for sign, weight in zip(plain, VIN_WEIGHTS, strict=True)) % 11
    return plain[8] == ("X" if rest == 10 else str(rest))


def is_ssn(text: str) -> bool:
    """Return whether it is a written social security number of the United States, of a range in use."""
    return re.fullmatch(r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}", text) is not None


def is_nine_digits(text: str) -> bool:
    """Return whether it may be such a number, written in any way."""
    return re.fullmatch(r"\d{8,9}|\d{3}[ -]?\d{2}[ -]?\d{4}", text) is not None


def is_ip_address(text: str) -> bool:
    """Return whether it is an address of IP version 4 or 6."""
    if "." not in text and text.count(":") < 2:
        return False
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_phone(text: str) -> bool:
    """Return whether it is a telephone number as people write it: with a +, brackets, a 0 before, or three groups."""
    plain = re.sub(r"\s*(x|ext\.?)\s*\d+$", "", text, flags=re.IGNORECASE)
    if re.fullmatch(r"\+?[\d\s().\-/]+", plain) is None or not 7 <= len(digits_of(plain).lstrip("+")) <= 15:
        return False
    if is_ssn(plain) or is_written_date(plain) or is_ip_address(plain) or is_card(plain) or plain.startswith("978-"):
        return False
    groups = [group for group in re.split(r"[\s().\-/]+", plain.lstrip("+")) if group]
    if plain.startswith(("+", "(")):
        return True
    return len(groups) > 2 or (len(groups) == 2 and plain.startswith("0"))


def is_phone_digits(text: str) -> bool:
    """Return whether it may be a telephone number, written in any way."""
    return re.fullmatch(r"\+?\d{6,15}", digits_of(text)) is not None


def _date_forms() -> list[re.Pattern[str]]:
    day, month = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])"
    year, names = r"(1[5-9]|20|21)\d\d", rf"(?:{MONTHS})\w*\.?"
    time = r"([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*(Z|[AP]M|[+-]\d{2}:?\d{2})?)?"
    forms = (
        rf"{year}([-/.]){month}\2{day}",
        rf"{day}([-/.]){month}\2({year}|\d\d)",
        rf"{month}([-/.]){day}\2({year}|\d\d)",
        rf"{day}\.? {names},? {year}",
        rf"{names} {day},? {year}",
        rf"{day}-{names}-({year}|\d\d)",
    )
    return [re.compile(form + time, re.IGNORECASE) for form in forms]


_DATES = _date_forms()


def is_written_date(text: str) -> bool:
    """Return whether it is a date, with a time perhaps: 2020-01-31, 31.1.2020, 1/31/20, 31 Jan 2020, Jan 31, 2020."""
    return any(form.fullmatch(text) for form in _DATES)


def is_date_digits(text: str) -> bool:
    """Return whether it may be a date, written in any way: also 20200131."""
    return is_written_date(text) or _EIGHT_DIGITS(text)


_EIGHT_DIGITS = _matches(r"(1[89]|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
_FILE = r"\.(jpe?g|png|gif|bmp|tiff?|heic|webp|dcm)"

# In this order; of those that fit as many values the first.
PATTERNS: Sequence[Pattern] = (
    Pattern(meanings.EMAIL, _matches(r"(mailto:)?[^@\s<>]+@[^@\s<>.]+(\.[^@\s<>.]+)+")),
    Pattern(meanings.PHOTO, _matches(rf"\S.*{_FILE}|data:image/.*")),
    Pattern(meanings.WEB_ADDRESS, _matches(r"((https?|ftp)://|www\.)\S+")),
    Pattern(meanings.IP_ADDRESS, is_ip_address),
    Pattern(meanings.DEVICE, _matches(r"[0-9a-f]{2}([:-][0-9a-f]{2}){5}")),
    Pattern(meanings.SOCIAL_SECURITY, is_ssn),
    Pattern(meanings.IBAN, is_iban),
    Pattern(meanings.CARD, is_card, least=CHECKED),
    Pattern(meanings.VEHICLE, is_vin, least=CHECKED),
    Pattern(meanings.CODE, _matches(r"\{?[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\}?")),
    Pattern(meanings.CODE, _matches(r"(?=.*[a-f])(?=.*\d)([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})")),
    Pattern(meanings.PHONE, is_phone, strong=False),
    Pattern(meanings.DATE, is_written_date, strong=False),
    Pattern(
        meanings.ADDRESS,
        _matches(
            r"\d+\w?,? +.*\b(street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|way|square|rue)\b.*"
            r"|.*(straße|strasse|str\.|weg|platz|allee|gasse) ?\d+ ?\w?(,.*)?|(rue|avenue|calle|via|plaza) .*\d.*"
        ),
        strong=False,
    ),
    Pattern(
        meanings.POSTCODE,
        # United Kingdom, Canada, the Netherlands, United States with four more digits.
        _matches(r"[a-z]{1,2}\d[a-z\d]? ?\d[a-z]{2}|[a-z]\d[a-z] ?\d[a-z]\d|[1-9]\d{3} ?[a-z]{2}|\d{5}-\d{4}"),
        strong=False,
        least=CHECKED,
    ),
    Pattern(
        meanings.DIAGNOSIS,
        _matches(r"[A-TV-Z]\d[0-9AB]\.[0-9A-TV-Z]{1,4}|[A-TV-Z]\d[0-9AB]"),
        strong=False,
        least=CHECKED,
    ),
    # What only a name tells from other numbers.
    Pattern(meanings.PHONE, is_phone_digits, strong=False, by_name_only=True),
    Pattern(meanings.FAX, is_phone_digits, strong=False, by_name_only=True),
    Pattern(meanings.DATE, is_date_digits, strong=False, by_name_only=True),
    Pattern(meanings.SOCIAL_SECURITY, is_nine_digits, strong=False, by_name_only=True),
)


def shares(texts: Sequence[str], meaning: Meaning | None) -> Mapping[Meaning, float]:
    """Return the share of values that fit, by meaning, if any fits; meaning: of the column's name.

    Where there are too few different values to tell, a pattern is not looked at, unless the name says the same.
    """
    found: dict[Meaning, float] = {}
    plain = [text.strip() if len(text) <= LONGEST else "" for text in texts]
    for pattern in PATTERNS:
        named = pattern.meaning == meaning
        if (pattern.by_name_only or len(plain) < pattern.least) and not named:
            continue
        share = sum(map(pattern.fits, plain)) / len(plain)
        if share > found.get(pattern.meaning, 0.0):
            found[pattern.meaning] = share
    return found


STRONG = frozenset(pattern.meaning for pattern in PATTERNS if pattern.strong)

# What a longer text may hold: each is looked for anywhere in it.
HELD: Mapping[Meaning, re.Pattern[str]] = {
    meanings.EMAIL: re.compile(r"[^@\s<>]{1,64}@[^@\s<>.]{1,63}\.[^@\s<>.]"),
    meanings.WEB_ADDRESS: re.compile(r"(https?://|www\.)\S+"),
    meanings.SOCIAL_SECURITY: re.compile(r"(?<!\d)(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?!\d)"),
    meanings.PHONE: re.compile(r"\+\d[\d\s().\-/]{6,16}\d|\(\d{3}\) ?\d{3}-\d{4}|(?<!\d)\d{3}-\d{3}-\d{4}(?!\d)"),
    meanings.DATE: re.compile(r"(?<!\d)((1[89]|20)\d\d-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./](1[89]|20)\d\d)(?!\d)"),
}


def held_in(texts: Sequence[str]) -> Mapping[Meaning, int]:
    """Return in how many texts values of each meaning occur; meanings that no text has are left out."""
    found = {meaning: sum(pattern.search(text) is not None for text in texts) for meaning, pattern in HELD.items()}
    return {meaning: count for meaning, count in found.items() if count}
