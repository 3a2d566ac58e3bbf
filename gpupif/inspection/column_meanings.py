"""The meanings that a column may have: identifiers of HIPAA's Safe Harbor, special categories of data, visible traits.

The 18 kinds of identifiers are listed in 45 CFR 164.514(b)(2)(i), (A) to (R). Special categories are listed in article
9 of the GDPR, offences in article 10.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..attack.roles import IDENTIFIER, LEFT_OUT, QUASI, SENSITIVE, WEIGHT


@dataclass(frozen=True)
class Meaning:
    """A meaning that a column may have.

    label: the meaning in words, such as "names". role: the role that it proposes. hipaa: the letter of the kind of
    identifier. why: the reason for the role, for readers. names_text: True if a name alone says this meaning only for a
    column of text. needs_values: True if a name is believed only if values fit too.
    """

    label: str
    role: str
    hipaa: str = ""
    why: str = ""
    names_text: bool = False
    needs_values: bool = False


def _identifier(label: str, hipaa: str, names_text: bool = False, needs_values: bool = False) -> Meaning:
    """Return the meaning of an identifier."""
    return Meaning(label, IDENTIFIER, hipaa, "", names_text, needs_values)


def _sensitive(label: str, why: str = "") -> Meaning:
    """Return the meaning of a sensitive attribute."""
    return Meaning(label, SENSITIVE, "", why)


def _known(label: str, hipaa: str = "", why: str = "") -> Meaning:
    """Return the meaning of a quasi-identifier."""
    return Meaning(label, QUASI, hipaa, why)


NAME = _identifier("names", "A", names_text=True)
ADDRESS = _identifier("street addresses", "B", names_text=True)
POSTCODE = _known("postcodes", "B")
PLACE = _known("places smaller than a state", "B")
COORDINATE = _known("coordinates", "B", "exact ones single out a house: round them")
DATE = Meaning("dates", QUASI, "C", "only the year may be kept", needs_values=True)
BIRTH_DATE = _known("dates of birth", "C")
DATE_PART = _known("parts of dates", "C")
AGE = _known("ages")
PHONE = _identifier("telephone numbers", "D", needs_values=True)
FAX = _identifier("fax numbers", "E", needs_values=True)
EMAIL = _identifier("e-mail addresses", "F", needs_values=True)
SOCIAL_SECURITY = _identifier("social security numbers", "G")
NATIONAL_ID = _identifier("national identity numbers", "R")
MEDICAL_RECORD = _identifier("medical record numbers", "H")
HEALTH_PLAN = _identifier("health plan numbers", "I")
ACCOUNT = _identifier("account numbers", "J")
CARD = _identifier("payment card numbers", "J")
IBAN = _identifier("IBANs", "J")
LICENCE = _identifier("licence or certificate numbers", "K")
VEHICLE = _identifier("vehicle identifiers", "L")
DEVICE = _identifier("device identifiers", "M")
WEB_ADDRESS = _identifier("web addresses", "N", needs_values=True)
IP_ADDRESS = _identifier("IP addresses", "O", needs_values=True)
BIOMETRIC = _identifier("biometric identifiers", "P")
PHOTO = _identifier("photographs", "Q")
CODE = _identifier("identifying codes", "R")
PERSON_CODE = _identifier("numbers of persons", "R")
HOUSEHOLD = Meaning("household numbers", IDENTIFIER, "R", "for the risk of households name it to risk --household")
# Numbers that each stand for one person.
OF_PERSONS = (PERSON_CODE, MEDICAL_RECORD, HEALTH_PLAN, SOCIAL_SECURITY, NATIONAL_ID)

WEIGHTS = Meaning("sampling weights", WEIGHT)
BARE_WEIGHT = Meaning("weights", WEIGHT)
FREE_TEXT = Meaning("free text", LEFT_OUT)
ROW_NUMBER = Meaning("row numbers", LEFT_OUT)

YEAR = _known("years")
SEX = _known("sex or gender")
RACE = _known("race", why="a special category, and visible: sensitive only if nobody can know it")
REGION = _known("states, regions or countries")
ORIGIN = _known("nationality or origin")
LANGUAGE = _known("languages")
FAMILY = _known("family and household")
EDUCATION = _known("education")
WORK = _known("work")
HOUSING = _known("housing and belongings")
BODY = _known("visible traits")

SPECIAL = "a special category, GDPR article 9"
ETHNICITY = _sensitive("ethnic origin", SPECIAL)
RELIGION = _sensitive("religion or belief", SPECIAL)
POLITICS = _sensitive("political opinions", SPECIAL)
UNION = _sensitive("trade union membership", SPECIAL)
SEX_LIFE = _sensitive("sex life or orientation", SPECIAL)
GENETIC = _sensitive("genetic data", SPECIAL)
HEALTH = _sensitive("health", SPECIAL)
DIAGNOSIS = _sensitive("diagnosis codes (ICD-10)", SPECIAL)
OFFENCE = _sensitive("offences", "GDPR article 10")
MONEY = _sensitive("income and wealth", "people keep it to themselves")
RESULT = _sensitive("results and scores", "people keep it to themselves")
