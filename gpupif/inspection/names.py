"""What a column may look like by its name: words of it, in English and some other languages, never parts of words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Mapping, Sequence
from functools import cache

from . import looks
from .looks import IDENTIFIER, Look

# By look the words, or words that follow each other (written as one, too), that say so; accents are left out.
PHRASES: Mapping[Look, str] = {
    looks.NAME: """
        first name, last name, middle name, given name, family name, full name, maiden name, nick name, fore name,
        sur name, birth name, patient name, customer name, client name, person name, employee name, student name,
        member name, contact name, applicant name, respondent name, participant name, guest name, user full name,
        mother name, father name, spouse name, child name, doctor name, physician name, fname, lname, initials,
        vorname, nachname, familienname, geburtsname, nom, prenom, nom famille, nombre, apellido, cognome, nome
    """,
    looks.ADDRESS: """
        address, addr, street, street address, home address, mailing address, postal address, address line, residence
        address, house number, strasse, hausnummer, anschrift, adresse, rue, calle, direccion, domicilio
    """,
    looks.POSTCODE: "zip, zip code, zcta, postcode, post code, postal code, postal, plz, postleitzahl, code postal, "
    "codigo postal",
    looks.PLACE: """
        city, town, village, county, district, sub district, municipality, parish, ward, precinct, borough, suburb,
        neighborhood, neighbourhood, census tract, tract, block group, census block, puma, lsoa, msoa, nuts3, fips,
        locality, place, place of residence, residence, hometown, stadt, ort, wohnort, gemeinde, landkreis, kreis,
        bezirk, ville, commune, departement, canton, ciudad, municipio, provincia, barrio, comune
    """,
    looks.COORDINATE: "latitude, longitude, lat, lon, lng, geo location, geolocation, gps, coordinate, easting, "
    "northing, geohash, breitengrad, laengengrad, latitud, longitud",
    looks.DATE: "date, datum, fecha, timestamp, date time, day, created at, updated at, admitted, discharged, "
    "admission, discharge, visit date, death date, date of death, dod, jour",
    looks.BIRTH_DATE: "dob, date of birth, birth date, birthday, birth day, bdate, geburtsdatum, date naissance, "
    "fecha nacimiento, data nascita, birth time",
    looks.AGE: "age, agep, age group, age band, age class, age range, alter, altersgruppe, edad",
    looks.YEAR: "year, yr, birth year, year of birth, yob, geburtsjahr, jahr, annee, ano, annee naissance, year of "
    "arrival",
    looks.DATE_PART: "month, quarter, week, weekday, birth month, month of birth, geburtsmonat, monat, mois, mes",
    looks.PHONE: """
        phone, telephone, tel, mobile, cell phone, cell, landline, phone number, telephone number, mobile number,
        contact number, telefon, telefonnummer, handy, handynummer, mobilnummer, rufnummer, portable, telefono, movil
    """,
    looks.FAX: "fax, fax number, telefax, faxnummer, facsimile",
    looks.EMAIL: "email, e mail, mail, email address, mail address, correo, courriel",
    looks.SOCIAL_SECURITY: "ssn, social security, social security number, social insurance number, sozialversicherung, "
    "sozialversicherungsnummer, ahv, numero securite sociale, nss",
    looks.NATIONAL_ID: "national id, national identifier, nino, national insurance number, nhs number, personal number, "
    "personnummer, cpr number, cpf, dni, curp, codice fiscale, bsn, pesel, aadhaar, tax id, tax number, "
    "steuernummer, steuer id, identity card, id card, personalausweis",
    looks.MEDICAL_RECORD: "mrn, medical record, medical record number, chart number, health record number, ehr id, "
    "hospital number, krankenaktennummer, numero dossier medical",
    looks.HEALTH_PLAN: """
        health plan, health plan number, beneficiary, beneficiary number, insurance number, insurance id, policy
        number, policy id, subscriber, subscriber number, member number, medicare number, medicaid number, hicn, mbi,
        versichertennummer, versicherungsnummer, krankenversichertennummer
    """,
    looks.ACCOUNT: "account, account number, account no, acct, bank account, kontonummer, konto, numero compte, "
    "numero cuenta, routing number, sort code, bic, swift, wallet, wallet address",
    looks.CARD: "card number, credit card, credit card number, debit card, ccn, kreditkarte, kreditkartennummer",
    looks.IBAN: "iban",
    looks.LICENCE: """
        license number, licence number, license no, licence no, driver license, drivers license, driver licence, driving
        licence, certificate number, passport, passport number, passport no, npi, dea number, permit number,
        fuehrerschein, reisepass, passnummer, permis, pasaporte
    """,
    looks.VEHICLE: "vin, vehicle id, vehicle identification number, license plate, licence plate, number plate, plate "
    "number, registration plate, kennzeichen, fahrgestellnummer, immatriculation, matricula",
    looks.DEVICE: "device, device id, device number, serial number, serial no, imei, imsi, meid, udid, mac address, "
    "advertising id, idfa, gaid, seriennummer, implant serial, hostname, host name",
    looks.WEB_ADDRESS: "url, uri, website, web site, web address, homepage, link, profile url, webseite",
    looks.IP_ADDRESS: "ip, ip address, ipv4, ipv6, ip addr, client ip, remote addr",
    looks.BIOMETRIC: "biometric, fingerprint, finger print, voice print, voiceprint, iris, retina, face id, face "
    "embedding, palm print, fingerabdruck, empreinte, huella",
    looks.PHOTO: "photo, photograph, picture, portrait, face image, selfie, avatar, foto, lichtbild, image",
    looks.CODE: "id, identifier, uuid, guid, username, user name, login, handle, token, cookie, session, session id, hash, "
    "barcode, tracking number, order number, invoice number, ticket number, kennung, identifiant, twitter, "
    "facebook, instagram, linkedin, primary key, unique key, signature",
    looks.PERSON_CODE: """
        patient id, patient number, person id, person number, customer id, customer number, client id, client number,
        user id, member id, employee id, employee number, staff id, student id, student number, pupil id, subject id,
        participant id, respondent id, case id, case number, individual id, applicant id, contact id, pid, uid,
        personalnummer, kundennummer, patientennummer, matrikelnummer, numero patient, numero client
    """,
    looks.HOUSEHOLD: "household id, household number, household no, hh id, hhid, hhno, hhnum, hh number, hidp, family id, "
    "famid, family number, serialno, dwelling id, dwelling number, haushaltsnummer, haushalt id, numero menage",
    looks.WEIGHTS: """
        wgt, wght, sample weight, sampling weight, survey weight, person weight, household weight, pweight, fweight,
        design weight, post weight, final weight, weights, fnlwgt, perwt, hhwt, wtfinl, pwgtp, wgtp, asecwt, wtsupp,
        pspwght, pspweight, dweight, anweight, ponderation, ponderacion, hochrechnungsfaktor, gewichtung,
        gewichtungsfaktor, expansion factor, factor expansion, replicate weight, repwt, repwtp
    """,
    looks.BARE_WEIGHT: "weight, gewicht, poids, peso, wt, pond",
    looks.SEX: "sex, gender, geschlecht, sexe, genre, sexo, genero, sesso, male, female",
    looks.RACE: "race, race group, skin color, skin colour, hautfarbe, color of skin",
    looks.REGION: "state, region, province, country, division, continent, federal state, bundesland, land, staat, pays, "
    "estado, pais, nuts1, nuts2, stadtstaat, country of residence, statefip, gebiet",
    looks.ORIGIN: """
        nationality, citizenship, citizen, native country, country of birth, birth country, birth place, place of
        birth, birthplace, pob, native, immigrant, migration, migration background, foreign born, ancestry,
        staatsangehoerigkeit, nationalitaet, geburtsort, geburtsland, herkunft, nationalite, pays naissance, lieu
        naissance, nacionalidad, lugar nacimiento, pais nacimiento
    """,
    looks.LANGUAGE: "language, mother tongue, native language, sprache, muttersprache, langue, idioma, lingua",
    looks.FAMILY: """
        marital status, marital, marstat, married, civil status, relationship, relate, family status, family type,
        household size, hh size, household type, family size, children, child, number of children, num children, kids,
        dependents, spouse, parent, siblings, twins, familienstand, haushaltsgroesse, kinder, etat civil, situation
        familiale, enfants, estado civil, hijos
    """,
    looks.EDUCATION: "education, educ, education num, education level, degree, schooling, school, qualification, schl, "
    "university, college, grade level, bildung, schulabschluss, ausbildung, diplome, niveau etudes, educacion, estudios",
    looks.WORK: """
        occupation, job, job title, profession, work class, work, employment, employment status, employer, company,
        industry, sector, position, department, military, veteran, army, hours per week, hours worked, commute mode,
        labor force, labour force, retired, unemployed, empstat, beruf, berufsgruppe, arbeitgeber, erwerbsstatus,
        branche, metier, emploi, profession csp, ocupacion, trabajo, empleo
    """,
    looks.HOUSING: "tenure, dwelling type, dwelling, house type, rooms, bedrooms, car, cars, vehicle, vehicles, internet, "
    "pet, pets, home owner, wohnform, logement, vivienda",
    looks.BODY: "height, eye color, eye colour, eyes, hair color, hair colour, hair, bmi, body weight, weight kg, weight lb, "
    "weight lbs, weight pounds, weight g, birth weight, shoe size, stature, koerpergroesse, groesse, augenfarbe, haarfarbe, "
    "koerpergewicht, gewicht kg, geburtsgewicht, taille, poids kg, estatura, peso kg, tattoo, scar, glasses",
    looks.ETHNICITY: "ethnicity, ethnic, ethnic group, ethnic origin, hispanic, hispanic origin, latino, tribe, caste, "
    "indigenous, ethnie, etnia, ethnische herkunft",
    looks.RELIGION: "religion, religious, faith, belief, denomination, church, confession, konfession, glaube, religiosity, "
    "croyance",
    looks.POLITICS: "political, political party, politics, vote, voted, votes, political opinion, political view, "
    "ideology, partei, parti, partido, wahl",
    looks.UNION: "trade union, labor union, labour union, union, union member, union membership, gewerkschaft, syndicat, "
    "sindicato",
    looks.SEX_LIFE: "sexual orientation, sexuality, sexual, sex life, lgbt, lgbtq, sexuelle orientierung, "
    "orientation sexuelle, orientacion sexual, transgender",
    looks.GENETIC: "genetic, gene, genes, genome, genotype, dna, snp, allele, mutation, blood type, blood group, "
    "blutgruppe",
    looks.HEALTH: """
        diagnosis, diag, dx, disease, illness, condition, symptom, symptoms, health, health status, disability, disabled,
        treatment, therapy, medication, medicine, drug, drugs, prescription, procedure, surgery, hiv, aids, cancer,
        tumor, tumour, diabetes, diabetic, cholesterol, blood pressure, heart disease, smoker, smoking, alcohol,
        pregnant, pregnancy, vaccination, vaccinated, mental health, depression, allergy, allergies, icd, icd code,
        icd9, icd10, icd 9, icd 10, drg, lab result, test result, hospital, ward type, cause of death, impairment,
        diagnose, krankheit, erkrankung, gesundheit, behinderung, medikament, behandlung, maladie, sante, handicap,
        traitement, medicament, enfermedad, salud, diagnostico, discapacidad, tratamiento, medicamento
    """,
    looks.OFFENCE: "crime, crimes, criminal, criminal record, offence, offense, conviction, convicted, arrest, arrested, "
    "prison, jail, sentence, felony, straftat, vorstrafe, delit, delito",
    looks.MONEY: """
        income, salary, salary class, wage, wages, earnings, pay, bonus, pension, benefit, benefits, welfare, wealth,
        assets, savings, debt, debts, loan, loan amount, credit, credit score, credit amount, balance, capital gain,
        capital loss, tax, taxes, rent, mortgage, expenditure, spending, turnover, net worth, poverty,
        pincp, hincp, inctot, gehalt, einkommen, lohn, verdienst, vermoegen, schulden, miete, steuer, revenu, salaire,
        dette, loyer, ingreso, ingresos, renta, salario, deuda, sueldo, reddito, stipendio
    """,
    looks.RESULT: "score, mark, marks, grade, grades, gpa, exam result, iq, rating, performance, satisfaction, opinion, "
    "attitude, note abitur, zensur",
}
# Words that make of what identifies a person something else: whether there is one, of which kind, from where.
MODIFIERS = frozenset(
    """
    type kind status flag category class count counts has have is was opt optin optout consent provider domain length
    format valid verified preferred source method model brand anzahl typ size product species file item event change
    quality score rate ratio year issued expiry
    """.split()
)
# Alone these name a person, behind other words what these are.
NAMED = frozenset("name names".split())
# Words between others: what stands before the first is what the column holds.
LINKS = frozenset("of the at in on by for from to with de du des la le les d l el del den der di da della von und and".split())
# What is measured of bodies beside their weight.
BODY_WORDS = frozenset("height bmi body koerper groesse taille stature".split())
GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})


def words_of(name: Hashable) -> list[str]:
    """The words of a column's name, in lower case, without accents: snake_case, camelCase and digits apart."""
    text = unicodedata.normalize("NFKC", str(name)).translate(GERMAN)
    text = unicodedata.normalize("NFKD", text)
    text = "".join(sign for sign in text if not unicodedata.combining(sign))
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    return [word.casefold() for word in re.findall(r"[^\W_]+", text)]


def look_of_name(name: Hashable) -> Look | None:
    """What a column looks like by its name: by the most words of it that say something; None where none do."""
    words = [word for word in words_of(name) if not word.isdecimal()]
    if words and NAMED.issuperset(words):
        return looks.NAME
    words = [word for word in words if word not in NAMED] if _phrase_in(words, 2) is None else words
    found = _phrase_in(words, 2) or _word_in(words)
    if found is not None and found.role == IDENTIFIER and MODIFIERS.intersection(words):
        return next((look for word in words if (look := _look_of((word,))) and look.role != IDENTIFIER), None)
    return found


def _phrase_in(words: Sequence[str], least: int) -> Look | None:
    """By the longest phrase of so many words at least, of several the last."""
    plain = [word for word in words if word not in LINKS]
    for size in range(len(plain), least - 1, -1):
        for start in range(len(plain) - size, -1, -1):
            if look := _look_of(tuple(plain[start : start + size])):
                return look
    return None


def _word_in(words: Sequence[str]) -> Look | None:
    """By one word: the last before a link, as the age is of the "age at diagnosis"; that it is a code says least."""
    first = next((place for place, word in enumerate(words) if place and word in LINKS), len(words))
    found = [look for word in (*words[:first][::-1], *words[first:]) if (look := _look_of((word,)))]
    return next((look for look in found if look is not looks.CODE), found[0] if found else None)


def _look_of(words: tuple[str, ...]) -> Look | None:
    """By these words, together as they stand or, one, without the digits at its end or the s of a plural."""
    table = _table()
    if words in table or len(words) > 1:
        return table.get(words)
    word = words[0].rstrip("0123456789")
    return table.get((word,)) or (table.get((word[:-1],)) if len(word) > 3 and word.endswith("s") else None)


@cache
def _table() -> Mapping[tuple[str, ...], Look]:
    """Looks by words; a phrase also as one word, with links and without."""
    table: dict[tuple[str, ...], Look] = {}
    for look, text in PHRASES.items():
        for phrase in text.split(","):
            words = words_of(phrase)
            plain = tuple(word for word in words if word not in LINKS)
            for form in (plain, ("".join(words),), ("".join(plain),)):
                table.setdefault(form, look)
    return table


def names_a_body(names: Sequence[Hashable]) -> bool:
    """Whether a table has what bodies are measured by, so that a weight may be one of them."""
    return any(BODY_WORDS.intersection(words_of(name)) for name in names)
