"""What names of columns say, and what they do not."""

from __future__ import annotations

import pytest

from gpupif.inspection import looks
from gpupif.inspection.names import WORDS, look_of_name, words_of

SAID = {
    looks.NAME: "name; NAME; name of patient; NameOfMother; mother's maiden name; "
    "Name_1; first_name; firstName; lastname; Patient Name; Nachname; prénom; nom de famille",
    looks.ADDRESS: "address; Street; street_address; address1; Straße; Anschrift; calle",
    looks.POSTCODE: "zip; ZIP5; zipcode; postal-code; PLZ; Code postal; postcode",
    looks.PLACE: "city; City_Name; county; school_district; Gemeinde; ville; censusTract",
    looks.COORDINATE: "lat; longitude; geo_location",
    looks.DATE: "date; visit_date; createdAt; date_of_admission; Datum",
    looks.BIRTH_DATE: "dob; date_of_birth; DateOfBirth; birthdate; Geburtsdatum; Date de naissance",
    looks.AGE: "age; Age; ageGroup; age_at_diagnosis; AGEP; Alter; edad",
    looks.YEAR: "year; birthYear; year_of_arrival; yob; Año",
    looks.PHONE: "phone; phone_number; phoneNumber; Telefonnummer; mobile; tel",
    looks.FAX: "fax; fax_number",
    looks.EMAIL: "email; e-mail; EMail; email_address; user_email",
    looks.SOCIAL_SECURITY: "ssn; SSN; social_security_number; Sozialversicherungsnummer",
    looks.MEDICAL_RECORD: "mrn; medical_record_number",
    looks.HEALTH_PLAN: "insurance_number; policyNumber; beneficiary",
    looks.ACCOUNT: "account; account_number; accountNo; Kontonummer",
    looks.LICENCE: "passport; drivers_license; driver's license; license_number",
    looks.VEHICLE: "vin; license_plate; Kennzeichen",
    looks.DEVICE: "device_id; imei; serial_number; MACAddress",
    looks.WEB_ADDRESS: "url; website; profile_url",
    looks.IP_ADDRESS: "ip; IP; IPAddress; client_ip",
    looks.BIOMETRIC: "fingerprint; voice_print",
    looks.PHOTO: "photo; avatar",
    looks.CODE: "id; ID; uuid; store_id; username; user_name",
    looks.PERSON_CODE: "patient_id; customerId; customer number; person-id; case_number",
    looks.HOUSEHOLD: "hhid; household_id; SERIALNO",
    looks.WEIGHTS: "fnlwgt; PWGTP; PWGTP80; sample_weight; samplingWeight; person weights; perwt; pondération",
    looks.BARE_WEIGHT: "weight; Gewicht; poids; peso",
    looks.SEX: "sex; gender; Geschlecht; sexe",
    looks.REGION: "region; state; country_name; region_id; Bundesland; ip_country",
    looks.ORIGIN: "native-country; birthplace; country_of_birth; citizenship; Staatsangehörigkeit",
    looks.LANGUAGE: "language; mother_tongue",
    looks.FAMILY: "marital-status; household_size; relationship; number_of_children; Familienstand",
    looks.EDUCATION: "education; education-num; school_name",
    looks.WORK: "occupation; workclass; hours-per-week; job_title; Beruf",
    looks.BODY: "eye_color; height; weight_kg; birth_weight; Größe",
    looks.ETHNICITY: "ethnicity; ethnic_group",
    looks.RELIGION: "religion; Konfession",
    looks.UNION: "union_member; Gewerkschaft",
    looks.SEX_LIFE: "sexual_orientation",
    looks.HEALTH: "diagnosis; icd10_code; ICD-9; diag_1; smoker; Krankheit; hiv_status",
    looks.OFFENCE: "criminal_record; convictions",
    looks.MONEY: "income; salary-class; capital-gain; income_band; Einkommen; wage",
}
SILENT = """
    filename; file_name; product_name; email_domain; email_opt_in; phone_type; device_type; account_status; has_phone;
    shipment; zipper; stage; page; package; manager; essex; data; total; x; item_23; column; 17; ; _; photo_count; idle;
    vintage; hatch; name_of_product; plate; candidate_list
""".replace("\n", "").split(";")


@pytest.mark.parametrize(
    ("name", "look"),
    [pytest.param(name, look, id=name) for look, names in SAID.items() for name in names.split("; ")],
)
def test_names(name, look):
    assert look_of_name(name) == look


@pytest.mark.parametrize("name", [name.strip() for name in SILENT])
def test_names_that_say_nothing(name):
    assert look_of_name(name) is None


@pytest.mark.parametrize("name", [3, None, ("a", "b"), 1.5])
def test_names_that_are_no_text(name):
    assert look_of_name(name) is None


def test_words_are_listed_once_and_as_names_are_taken_apart():
    seen = {}
    for key, phrases in WORDS["looks"].items():
        assert isinstance(getattr(looks, key.upper()), looks.Look)
        for phrase in phrases:
            assert words_of(phrase) == phrase.split(), phrase
            assert seen.setdefault(phrase, key) == key, phrase
            assert phrases.count(phrase) == 1, phrase
