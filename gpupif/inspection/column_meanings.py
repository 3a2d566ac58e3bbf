"""Meanings that a column may have: identifiers of HIPAA's Safe Harbor, special categories of data, visible traits.

The 18 kinds of identifiers are those of 45 CFR 164.514(b)(2)(i), (A) to (R). Special categories are those of the GDPR,
article 9, and the offences of article 10.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..attack.roles import IDENTIFIER, LEFT_OUT, QUASI, SENSITIVE, WEIGHT


@dataclass(frozen=True)
class Meaning:
    """A meaning that a column may have.

    what: in words, such as "names". role: the role that it proposes. hipaa: the letter of the kind of identifier.
    why: the reason for the role, as a reader sees it. names_text: a name alone tells this meaning only of text.
    needs_values: a name is believed only if values agree, or no value can tell.
    """

    what: str
    role: str
    hipaa: str = ""
    why: str = ""
    names_text: bool = False
    needs_values: bool = False


def _identifier(what: str, hipaa: str, names_text: bool = False, needs_values: bool = False) -> Meaning:
    return Meaning(what, IDENTIFIER, hipaa, "", names_text, needs_values)


def _sensitive(what: str, why: str = "") -> Meaning:
    return Meaning(what, SENSITIVE, "", why)


def _known(what: str, hipaa: str = "", why: str = "") -> Meaning:
    return Meaning(what, QUASI, hipaa, why)


NAME = _identifier("names", "A", names_text=True)
ADDRESS = _identifier("street addresses", "B", names_text=True)
POSTCODE = _known("postcodes", "B")
PLACE = _known("places smaller than a state", "B")
COORDINATE = _known("coordinates", "B", "exact ones single out a house: round them")
DATE = Meaning("dates", QUASI, "C", "all of a date but its year counts", needs_values=True)
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

WEIGHTS = Meaning("sampling weights", WEIGHT)
BARE_WEIGHT = Meaning("weights", WEIGHT)
FREE_TEXT = Meaning("free text", LEFT_OUT)
ROW_NUMBER = Meaning("row numbers", LEFT_OUT)

YEAR = _known("years")
SEX = _known("sex or gender")
RACE = _known("race", why="a special category, and visible: sensitive only where nobody can know it")
REGION = _known("states, regions or countries")
ORIGIN = _known("nationality or origin")
LANGUAGE = _known("languages")
FAMILY = _known("family and household")
EDUCATION = _known("education")
WORK = _known("work")
HOUSING = _known("housing and belongings")
BODY = _known("what a body looks like")

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
MONEY = _sensitive("income and wealth", "what people keep to themselves")
RESULT = _sensitive("results and scores", "what people keep to themselves")
