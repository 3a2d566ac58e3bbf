"""Names of columns that have a meaning, and names that have none."""

from __future__ import annotations

import pytest

from gpupif.inspection import column_meanings as meanings
from gpupif.inspection.meanings_of_names import WORDS, meaning_of_name, words_of

SAID = {
    meanings.NAME: "name; NAME; name of patient; NameOfMother; mother's maiden name; "
    "Name_1; first_name; firstName; lastname; Patient Name; Nachname; prénom; nom de famille",
    meanings.ADDRESS: "address; Street; street_address; address1; Straße; Anschrift; calle",
    meanings.POSTCODE: "zip; ZIP5; zipcode; postal-code; PLZ; Code postal; postcode",
    meanings.PLACE: "city; City_Name; county; school_district; Gemeinde; ville; censusTract",
    meanings.COORDINATE: "lat; longitude; geo_location",
    meanings.DATE: "date; visit_date; createdAt; date_of_admission; Datum",
    meanings.BIRTH_DATE: "dob; date_of_birth; DateOfBirth; birthdate; Geburtsdatum; Date de naissance",
    meanings.AGE: "age; Age; ageGroup; age_at_diagnosis; AGEP; Alter; edad",
    meanings.YEAR: "year; birthYear; year_of_arrival; yob; Año",
    meanings.PHONE: "phone; phone_number; phoneNumber; Telefonnummer; mobile; tel",
    meanings.FAX: "fax; fax_number",
    meanings.EMAIL: "email; e-mail; EMail; email_address; user_email",
    meanings.SOCIAL_SECURITY: "ssn; SSN; social_security_number; Sozialversicherungsnummer",
    meanings.MEDICAL_RECORD: "mrn; medical_record_number",
    meanings.HEALTH_PLAN: "insurance_number; policyNumber; beneficiary",
    meanings.ACCOUNT: "account; account_number; accountNo; Kontonummer",
    meanings.LICENCE: "passport; drivers_license; driver's license; license_number",
    meanings.VEHICLE: "vin; license_plate; Kennzeichen",
    meanings.DEVICE: "device_id; imei; serial_number; MACAddress",
    meanings.WEB_ADDRESS: "url; website; profile_url",
    meanings.IP_ADDRESS: "ip; IP; IPAddress; client_ip",
    meanings.BIOMETRIC: "fingerprint; voice_print",
    meanings.PHOTO: "photo; avatar",
    meanings.CODE: "id; ID; uuid; store_id; username; user_name",
    meanings.PERSON_CODE: "patient_id; customerId; customer number; person-id; case_number",
    meanings.HOUSEHOLD: "hhid; household_id; SERIALNO; household; HH; Ménage",
    meanings.WEIGHTS: "fnlwgt; PWGTP; PWGTP80; sample_weight; samplingWeight; person weights; perwt; pondération",
    meanings.BARE_WEIGHT: "weight; Gewicht; poids; peso",
    meanings.SEX: "sex; gender; Geschlecht; sexe",
    meanings.REGION: "region; state; country_name; region_id; Bundesland; ip_country",
    meanings.ORIGIN: "native-country; birthplace; country_of_birth; citizenship; Staatsangehörigkeit",
    meanings.LANGUAGE: "language; mother_tongue",
    meanings.FAMILY: "marital-status; household_size; relationship; number_of_children; Familienstand",
    meanings.EDUCATION: "education; education-num; school_name",
    meanings.WORK: "occupation; workclass; hours-per-week; job_title; Beruf",
    meanings.BODY: "eye_color; height; weight_kg; birth_weight; Größe",
    meanings.ETHNICITY: "ethnicity; ethnic_group",
    meanings.RELIGION: "religion; Konfession",
    meanings.UNION: "union_member; Gewerkschaft",
    meanings.SEX_LIFE: "sexual_orientation",
    meanings.HEALTH: "diagnosis; icd10_code; ICD-9; diag_1; smoker; Krankheit; hiv_status",
    meanings.OFFENCE: "criminal_record; convictions",
    meanings.MONEY: "income; salary-class; capital-gain; income_band; Einkommen; wage",
}
SILENT = """
    filename; file_name; product_name; email_domain; email_opt_in; phone_type; device_type; account_status; has_phone;
    shipment; zipper; stage; page; package; manager; essex; data; total; x; item_23; column; 17; ; _; photo_count; idle;
    vintage; hatch; name_of_product; plate; candidate_list
""".replace("\n", "").split(";")


@pytest.mark.parametrize(
    ("name", "meaning"),
    [pytest.param(name, meaning, id=name) for meaning, names in SAID.items() for name in names.split("; ")],
)
def test_a_name_has_its_meaning(name, meaning):
    assert meaning_of_name(name) == meaning


@pytest.mark.parametrize("name", [name.strip() for name in SILENT])
def test_other_names_have_no_meaning(name):
    assert meaning_of_name(name) is None


@pytest.mark.parametrize("name", [3, None, ("a", "b"), 1.5])
def test_a_name_that_is_no_text_has_no_meaning(name):
    assert meaning_of_name(name) is None


def test_words_are_listed_once_and_in_the_form_of_split_names():
    seen = {}
    for key, phrases in WORDS["meanings"].items():
        assert isinstance(getattr(meanings, key.upper()), meanings.Meaning)
        for phrase in phrases:
            assert words_of(phrase) == phrase.split(), phrase
            assert seen.setdefault(phrase, key) == key, phrase
            assert phrases.count(phrase) == 1, phrase
