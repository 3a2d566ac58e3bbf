"""Patterns of values: examples and counter-examples of each."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from gpupif.inspection import column_meanings as meanings
from gpupif.inspection.value_patterns import (
    LONGEST,
    PATTERNS,
    has_luhn_digit,
    held_in,
    is_card,
    is_iban,
    is_ip_address,
    is_phone,
    is_ssn,
    is_vin,
    is_written_date,
    shares,
)

# By meaning: values that fit its patterns, and values that do not.
EXAMPLES = {
    meanings.EMAIL: ("a.b@example.org; mailto:x@y.de; o'neil+1@mail.co.uk", "a@b; a b@c.de; @example.org; a@b.; x"),
    meanings.PHOTO: ("me.jpg; /photos/17/a b.PNG; https://x.org/i.webp; scan.dcm", "photo; .jpg; a.jpg.txt"),
    meanings.WEB_ADDRESS: ("https://x.org; http://x.org/a?b=c; www.x.org; ftp://a", "x.org; https://; see www.x.org"),
    meanings.IP_ADDRESS: ("10.0.0.1; 255.255.255.255; ::1; 2001:db8::ff00:42:8329", "256.1.1.1; 1.2.3; 12:30; 1:2; 10"),
    meanings.DEVICE: ("00:1a:2b:3c:4d:5e; 00-1A-2B-3C-4D-5E", "00:1a:2b:3c:4d; 00:1a:2b:3c:4d:5g"),
    meanings.SOCIAL_SECURITY: (
        "123-45-6789; 899-99-9999",
        "000-12-3456; 666-12-3456; 900-12-3456; 123-00-1234; 123456789",
    ),
    meanings.IBAN: ("DE89 3704 0044 0532 0130 00; GB82WEST12345698765432", "DE88370400440532013000; DE89; 1234"),
    meanings.CARD: (
        "4111111111111111; 5500 0000 0000 0004; 3782-822463-10005",
        "4111111111111112; 1111111111111117; 42",
    ),
    meanings.VEHICLE: (
        "1M8GDM9AXKP042788; 11111111111111111; 1hgcm82633a004352",
        "1M8GDM9A1KP042788; 1HGCM82633A00435O; x",
    ),
    meanings.CODE: ("123e4567-e89b-12d3-a456-426614174000; d41d8cd98f00b204e9800998ecf8427e", "12345678; abcdef"),
    meanings.PHONE: (
        "+49 30 901820; (555) 123-4567; 555-123-4567; 030/901820; +15551234567; 020 7946 0958; 555.123.4567 ext. 12",
        "123-45-6789; 2020-01-31; 2010-2014; 10000-19999; 5551234567; 1.5; 4111-1111-1111-1111; 10.0.0.1; 12-34; +",
    ),
    meanings.DATE: (
        "2020-01-31; 2020-01-31T10:20:30Z; 31.12.1999; 12/31/99; 1/2/2003; 31 Jan 2020; January 31, 2020; 01-FEB-21",
        "2020-13-01; 31.13.1999; 2020; 20200131; 1.2.3.4; 99/99/99; Jan",
    ),
    meanings.ADDRESS: (
        "12 Main Street; 7b Elm Rd, Springfield; Hauptstraße 5; Musterweg 12a, 10115 Berlin",
        "Main; 12; Weg",
    ),
    meanings.POSTCODE: ("SW1A 1AA; M1 1AE; K1A 0B1; 1012 AB; 12345-6789", "12345; ABC; 1012"),
    meanings.DIAGNOSIS: ("E11.9; I10; S72.001A; C50", "U; 11.9; ABC; E1; E11.99999"),
}


@pytest.mark.parametrize("meaning", EXAMPLES, ids=lambda meaning: meaning.label)
def test_values_fit_their_pattern_alone(meaning):
    fitting, others = (text.split("; ") for text in EXAMPLES[meaning])

    def fits(value):
        return any(
            pattern.fits(value) for pattern in PATTERNS if pattern.meaning == meaning and not pattern.by_name_only
        )

    assert [value for value in fitting if not fits(value)] == []
    assert [value for value in others if fits(value)] == []


def test_every_pattern_has_examples():
    assert {pattern.meaning for pattern in PATTERNS if not pattern.by_name_only} == set(EXAMPLES)


def naive_luhn(digits):
    """Double every second digit from the right and add up all digits, as the standard says."""
    total = 0
    for place, digit in enumerate(digits[::-1]):
        total += sum(map(int, str(int(digit) * 2))) if place % 2 else int(digit)
    return total % 10 == 0


def test_check_digits_find_one_wrong_digit():
    random = np.random.default_rng(5)
    for _ in range(50):
        digits = "4" + "".join(map(str, random.integers(0, 10, 14)))
        right = [digits + last for last in "0123456789" if naive_luhn(digits + last)]
        assert [digits + last for last in "0123456789" if has_luhn_digit(digits + last)] == right
        assert len(right) == 1
        assert is_card(right[0])
        place = int(random.integers(1, 15))
        wrong = right[0][:place] + str((int(right[0][place]) + 1) % 10) + right[0][place + 1 :]
        assert not is_card(wrong)


def test_ibans_with_other_check_digits_are_none():
    assert [f"{n:02}" for n in range(2, 99) if is_iban(f"DE{n:02}370400440532013000")] == ["89"]


def test_vins_with_other_check_digits_are_none():
    assert [sign for sign in "0123456789X" if is_vin(f"1M8GDM9A{sign}KP042788")] == ["X"]


def test_plain_numbers_need_a_name():
    assert shares(["5551234567"], None) == {}
    assert shares(["5551234567"], meanings.PHONE) == {meanings.PHONE: 1.0}
    assert shares(["123456789"], None) == {}
    assert shares(["123456789"], meanings.SOCIAL_SECURITY)[meanings.SOCIAL_SECURITY] == 1.0
    assert shares(["20200131", "2020"], meanings.DATE)[meanings.DATE] == 0.5
    # The check digit of one number in ten is right by chance, so one value is not enough.
    assert shares(["4111111111111111"], None) == {}


def test_values_within_longer_texts_are_counted():
    texts = ["call 555-123-4567 or write to a@b.org", "see https://x.org, born 1999-12-31", "nothing", "1999-12-311"]
    assert held_in(texts) == {meanings.PHONE: 1, meanings.EMAIL: 1, meanings.WEB_ADDRESS: 1, meanings.DATE: 1}


def test_no_pattern_takes_long_over_odd_texts():
    """Check that time does not grow faster than the length of a text: a long text would hang a run."""
    odd = ["1", "a@", "1-", "1 ", "a.", ":", "weg 1,", "(", "a", "http:", "1.1.", "+1 ", "@a."]
    started = time.perf_counter()
    shares([text * (LONGEST // len(text)) for text in odd], meanings.PHONE)
    held_in([text * (10_000 // len(text)) for text in odd])
    assert time.perf_counter() - started < 2


def test_kinds_do_not_overlap():
    """Check that a value of a strong pattern fits no other strong pattern."""
    strong = [pattern for pattern in PATTERNS if pattern.strong]
    for meaning, (fitting, _) in EXAMPLES.items():
        for value in re.split("; ", fitting):
            found = {pattern.meaning for pattern in strong if pattern.fits(value)}
            assert found <= {meaning} or (
                meaning == meanings.PHOTO and found == {meanings.PHOTO, meanings.WEB_ADDRESS}
            ), value


def test_dates_addresses_and_phones_are_apart():
    assert not any(is_phone(value) for value in EXAMPLES[meanings.DATE][0].split("; "))
    assert not any(is_written_date(value) for value in EXAMPLES[meanings.PHONE][0].split("; "))
    assert not any(is_ip_address(value) or is_ssn(value) for value in EXAMPLES[meanings.PHONE][0].split("; "))
