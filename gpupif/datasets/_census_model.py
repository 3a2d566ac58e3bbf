"""The model behind gpupif.datasets.census, as data: levels, parents and integer weights of every column.

All proportions are invented. Weights are whole numbers made by whole-number arithmetic, so they are the same on every
platform. A column may depend on columns before it; a parent's levels are first merged into a few groups.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Weights = NDArray[np.int64]


class Given(NamedTuple):
    """A parent: its name and the group of each of its levels."""

    column: str
    groups: tuple[int, ...]


class Column(NamedTuple):
    """A column: weights has one axis per parent (its groups) and the levels last. Numeric levels are a range."""

    name: str
    levels: tuple[str, ...] | range
    given: tuple[Given, ...]
    weights: Weights


def words(text: str) -> tuple[str, ...]:
    """Labels separated by semicolons."""
    return tuple(label.strip() for label in text.split(";"))


def table(text: str) -> Weights:
    """Whole numbers, one row per line; '/' ends a row too."""
    lines = text.strip().replace("/", "\n").splitlines()
    return np.array([[int(cell) for cell in line.split()] for line in lines], dtype=np.int64)


def crossed(first: ArrayLike, *factors: Weights) -> Weights:
    """Weights as a product of one factor (groups, levels) for each parent; the first may be plain (levels)."""
    weights = np.asarray(first, dtype=np.int64)
    for factor in factors:
        weights = weights[..., None, :] * factor
    return weights


@cache
def slope(spread: int) -> tuple[int, ...]:
    """Heights of a binomial bell of variance spread / 2, from its centre outwards. Never nought: odd cases happen."""
    top = comb(2 * spread, spread)
    return tuple(1 + 100_000 * comb(2 * spread, spread + distance) // top for distance in range(spread + 1))


def bells(places: Sequence[int], spread: int, *shifts: Sequence[int]) -> Weights:
    """One bell over the levels' places for each combination of groups; its centre is the sum of the groups' shifts."""
    heights = slope(spread)
    weights = np.empty((*map(len, shifts), len(places)), dtype=np.int64)
    for groups in np.ndindex(*weights.shape[:-1]):
        centre = sum(shift[group] for shift, group in zip(shifts, groups, strict=True))
        weights[groups] = [heights[min(abs(place - centre), spread)] for place in places]
    return weights


def ages(*starts: int) -> Given:
    """Age bands that begin at the given ages, after a first one from 0."""
    return Given("age", tuple(sum(age >= start for start in starts) for age in AGES))


def pyramid(*knots: tuple[int, int]) -> list[int]:
    """Weights of single years, straight lines between (age, weight) knots."""
    weights = []
    for (age, left), (end, right) in pairwise(knots):
        weights += [100 * left + 100 * (right - left) * step // (end - age) for step in range(end - age)]
    return [*weights, 100 * knots[-1][1]]


AGES = range(101)  # 100 stands for 100 and over

REGIONS = words(
    "Capital District; Harbour City; Northbridge; Eastvale; Millhaven; Stonefield; Great Plain; Southport; Kingsmere;"
    "Ironhill; Westmark; Lakeside; Riverton; Fairhaven; Ashford Vale; Oldcastle; Saltcoast; Greenmoor; Highfell;"
    "Brackenridge; Cloverdale; Marshland; Pinewood; Thornbury; Whitecliff; Amber Bay; Copperfield; Deepwater; Elmstead;"
    "Foxhollow; Goldenacre; Hawkstone; Inverbrook; Juniper Hills; Kestrel Down; Longshore; Meadowbank; Nettlecombe;"
    "Orchard County; Peatmoss; Quarrydale; Ravenscar; Sandhaven; Timberline; Upper Dale; Vinelands; Windermoor;"
    "Yarrow Isles; Zephyr Head; Far Islands"
)
METROPOLIS, CITY, COUNTRY, COAST = range(4)
REGION_KIND = Given("region", tuple(map(int, "00111121111212312211212233223222221322222231222333")))
REGION_CLUSTER = Given("region", tuple(place % 6 for place in range(len(REGIONS))))

SEXES = words("Female; Male")
SEX = Given("sex", (0, 1))

MARITAL = words("Never married; Married; Civil partnership; Separated; Divorced; Widowed")
MARITAL_KIND = Given("marital_status", (0, 1, 1, 2, 2, 2))  # single, in a couple, formerly

EDUCATION = words(
    "Below school age; Primary pupil; Secondary pupil; No qualification; Lower secondary; Upper secondary;"
    "Vocational certificate; Short-cycle tertiary; Bachelor's degree; Master's degree; Doctorate"
)
EDUCATION_KIND = Given("education", (0, 0, 0, 1, 1, 2, 3, 3, 4, 5, 5))
SCHOOLING = Given("education", (0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2))  # low, middle, high

# label; weights by EDUCATION_KIND; by age from 0, 16, 18, 25, 35, 55, 65, 75; by sex; pay class; main industry
OCCUPATIONS = [
    ("Not applicable (child)", "1 1 1 1 1 1", "1 0 0 0 0 0 0 0", "1 1", 0, 0),
    ("Student", "900 40 90 25 50 40", "0 200 45 5 1 0 0 0", "10 9", 1, 0),
    ("Looking after home or family", "20 80 50 40 35 25", "0 1 4 10 10 7 3 1", "18 2", 2, 0),
    ("Unemployed", "60 90 55 40 30 25", "0 4 16 11 9 8 0 0", "9 11", 3, 0),
    ("Unable to work", "20 80 40 30 12 8", "0 0 4 6 10 18 2 0", "10 10", 4, 0),
    ("Retired", "1 40 40 40 40 40", "0 0 0 0 0 45 250 250", "10 10", 4, 0),
    ("Chief executives and directors", "0 4 10 12 35 60", "0 0 1 6 12 11 3 1", "6 13", 9, 9),
    ("Managers", "0 10 25 30 60 70", "0 0 3 9 12 10 2 0", "9 11", 8, 6),
    ("Scientists and engineers", "0 1 6 15 70 110", "0 0 5 12 10 8 2 0", "5 15", 8, 9),
    ("Doctors, nurses and therapists", "0 1 6 40 80 95", "0 0 5 11 10 8 2 0", "16 4", 8, 12),
    ("Teachers and lecturers", "0 1 5 10 130 150", "0 0 4 11 11 8 1 0", "15 5", 7, 11),
    ("Legal, social and cultural professions", "0 2 10 12 65 100", "0 0 5 11 10 8 2 1", "12 8", 7, 13),
    ("Software and IT professions", "0 2 18 25 70 80", "0 0 8 14 10 5 1 0", "4 16", 8, 7),
    ("Finance and business professions", "0 4 20 25 85 85", "0 0 5 11 10 8 2 0", "10 10", 8, 8),
    ("Technicians", "1 10 30 60 35 20", "0 1 8 11 10 8 1 0", "4 16", 7, 2),
    ("Nursing and care assistants", "5 50 50 55 20 6", "0 1 9 10 10 9 1 0", "18 3", 5, 12),
    ("Police, fire and armed forces", "0 4 18 18 14 8", "0 0 9 13 10 2 0 0", "4 16", 7, 10),
    ("Office clerks", "40 55 110 90 60 15", "0 4 10 9 10 10 2 0", "15 5", 6, 10),
    ("Shop and sales workers", "120 85 85 60 30 8", "0 30 20 9 8 8 2 0", "13 7", 5, 5),
    ("Cooks, waiters and bar staff", "150 60 45 35 12 4", "0 40 22 10 7 5 1 0", "11 9", 5, 14),
    ("Hairdressers and personal services", "10 25 25 45 8 2", "0 5 12 11 10 7 2 0", "16 4", 5, 13),
    ("Child care workers", "10 25 35 40 15 4", "0 4 12 11 9 8 1 0", "19 1", 5, 11),
    ("Farmers and foresters", "4 30 20 35 8 4", "0 3 5 7 10 12 8 2", "4 16", 6, 1),
    ("Building trades", "6 65 45 80 6 2", "0 5 9 11 10 7 1 0", "1 19", 6, 4),
    ("Metal and electrical trades", "5 50 45 95 8 2", "0 5 10 10 10 9 1 0", "1 19", 7, 2),
    ("Plant and machine operators", "5 75 50 60 6 2", "0 2 7 9 10 10 1 0", "5 15", 6, 2),
    ("Drivers", "2 65 45 45 8 3", "0 0 5 8 10 12 3 0", "2 18", 6, 3),
    ("Cleaners and helpers", "15 95 35 25 6 3", "0 6 6 8 10 11 3 0", "15 5", 4, 13),
    ("Labourers and warehouse workers", "25 85 45 35 7 3", "0 10 13 10 9 8 1 0", "5 15", 5, 3),
]


def by_occupation(part: int) -> Weights:
    """One of the factors of the table above: (groups, occupations)."""
    return table("/".join(str(row[part]) for row in OCCUPATIONS)).T


PAY_CLASS = Given("occupation", tuple(row[4] for row in OCCUPATIONS))
MAIN_INDUSTRY = tuple(row[5] for row in OCCUPATIONS)
EACH_OCCUPATION = Given("occupation", tuple(range(len(OCCUPATIONS))))
UNABLE = Given("occupation", tuple(int(row[0] == "Unable to work") for row in OCCUPATIONS))
WORK_KIND = Given("occupation", tuple(0 if row[5] == 0 else 1 + (row[4] >= 7) for row in OCCUPATIONS))

# area 0 is the country itself, 1 Europe, 2 South Asia, 3 East Asia, 4 Middle East and North Africa, 5 Africa,
# 6 Americas and Oceania; then the language most people from there speak
PLACES = words(
    "Born in the country 0 National; India 2 Hindi; Poland 1 Polish; China 3 Mandarin; Romania 1 Romanian;"
    "Turkey 4 Turkish; Pakistan 2 Punjabi; Nigeria 5 English; Germany 1 German; Philippines 3 Filipino;"
    "Syria 4 Arabic; Ukraine 1 Russian; Morocco 4 Arabic; Brazil 6 Portuguese; Italy 1 Other; Bangladesh 2 Bengali;"
    "Vietnam 3 Vietnamese; Iran 4 Persian; South Africa 5 English; Portugal 1 Portuguese; United States 6 English;"
    "Colombia 6 Spanish; Iraq 4 Arabic; Spain 1 Spanish; Sri Lanka 2 Tamil; Ghana 5 English; France 1 French;"
    "Russia 1 Russian; Somalia 5 Somali; Jamaica 6 English; Lithuania 1 Russian; Afghanistan 4 Persian;"
    "Kenya 5 English; Mexico 6 Spanish; Bulgaria 1 Other; Malaysia 3 Mandarin; Egypt 4 Arabic; Canada 6 English;"
    "Nepal 2 Hindi; Ethiopia 5 Other; Hungary 1 Other; Peru 6 Spanish; Korea 3 Other; Lebanon 4 Arabic;"
    "Oceania 6 English"
)
BIRTHPLACES, AREAS, MOTHER_TONGUES = zip(*(place.rsplit(" ", 2) for place in PLACES), strict=True)
AREA = Given("birthplace", tuple(map(int, AREAS)))
FOREIGN = Given("birthplace", tuple(int(area != "0") for area in AREAS))
LANGUAGES = words(
    "National; Regional; English; Arabic; Polish; Turkish; Hindi; Mandarin; Spanish; Russian; Punjabi; Portuguese;"
    "Romanian; French; German; Bengali; Persian; Vietnamese; Filipino; Tamil; Somali; Other"
)
MOTHER_TONGUE = Given("birthplace", tuple(LANGUAGES.index(language) for language in MOTHER_TONGUES))

HOUSEHOLD_KIND = Given("household_size", (0, 1, 2, 2, 3, 3, 3, 3))
INCOMES = words(
    "No income; Under 5,000; 5,000-9,999; 10,000-14,999; 15,000-19,999; 20,000-29,999; 30,000-39,999; 40,000-49,999;"
    "50,000-69,999; 70,000-99,999; 100,000-149,999; 150,000 and over"
)
INCOME_KIND = Given("income_band", (0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4))
TENURES = words("Owned outright; Owned with a mortgage; Rented privately; Social housing; Rent-free or other")
TENURE = Given("tenure", tuple(range(5)))
DWELLINGS = words(
    "Detached house; Semi-detached house; Terraced house; Low-rise flat; High-rise flat; Mobile or temporary;"
    "Communal establishment"
)
DWELLING_KIND = Given("dwelling_type", (0, 1, 1, 2, 2, 3, 3))
DISABILITY = Given("disability", (0, 1, 2))
HAS_VEHICLE = Given("vehicles", (0, 1, 1, 1, 1, 1))
INDUSTRIES = words(
    "Not in work; Agriculture and forestry; Manufacturing; Transport and storage; Construction; Wholesale and retail;"
    "Real estate and support services; Information and communication; Finance and insurance; Professional services;"
    "Public administration; Education; Health and social work; Arts and other services; Hotels and restaurants;"
    "Energy, water and waste; Mining"
)


def region() -> Column:
    """Regions, a few large and many small."""
    sizes = [1_000_000 // ((place + 4) * (place + 12)) for place in range(len(REGIONS))]
    return Column("region", REGIONS, (), np.array(sizes, dtype=np.int64))


def age() -> Column:
    """Single years, by kind of region."""
    metropolis = (0, 120), (17, 105), (22, 170), (32, 205), (45, 150), (60, 100), (75, 55), (85, 24), (95, 4), (100, 1)
    city = (0, 112), (18, 118), (22, 150), (32, 145), (45, 132), (57, 125), (70, 90), (80, 55), (90, 17), (100, 1)
    country = (0, 105), (16, 118), (22, 95), (32, 115), (45, 138), (57, 155), (70, 118), (80, 70), (90, 22), (100, 1)
    coast = (0, 82), (16, 92), (22, 85), (32, 88), (45, 110), (57, 150), (70, 170), (80, 110), (90, 36), (100, 2)
    kinds = [pyramid(*knots) for knots in (metropolis, city, country, coast)]
    return Column("age", AGES, (REGION_KIND,), np.array(kinds, dtype=np.int64))


def sex() -> Column:
    """Sex, by age: more women the older."""
    weights = table("488 512 / 490 510 / 500 500 / 508 492 / 525 475 / 560 440 / 650 350")
    return Column("sex", SEXES, (ages(15, 30, 50, 65, 75, 85),), weights)


def marital_status() -> Column:
    """Marital status, by sex and age."""
    women = table("""
          1   0  0  0   0   0
        985  12  1  1   1   0
        900  85  6  5   4   0
        660 300 12 14  13   1
        440 490 14 24  30   2
        290 575 13 33  84   5
        190 590 10 38 158  14
        115 605  7 28 200  45
         70 600  5 16 174 135
         55 455  3  8 109 370
         60 215  2  4  59 660
    """)
    men = table("""
          1   0  0  0   0   0
        994   5  1  0   0   0
        950  44  4  1   1   0
        755 220 12  7   6   0
        510 440 15 16  18   1
        335 560 13 27  63   2
        225 605  9 31 125   5
        145 650  6 25 158  16
         85 710  5 16 136  48
         60 705  3  9  88 135
         50 540  2  5  53 350
    """)
    given = SEX, ages(18, 20, 25, 30, 35, 45, 55, 65, 75, 85)
    return Column("marital_status", MARITAL, given, np.stack([women, men]))


def education() -> Column:
    """Highest education, by age and kind of region."""
    by_age = table("""
        1 0   0   0   0   0   0  0   0   0  0
        0 1   0   0   0   0   0  0   0   0  0
        0 0   1   0   0   0   0  0   0   0  0
        0 0 620  40 330  10   0  0   0   0  0
        0 0  90  30 220 560  90 10   0   0  0
        0 0   0  30 130 390 170 70 200  10  0
        0 0   0  40 110 240 190 80 235 100  5
        0 0   0  60 130 230 210 80 185  92 13
        0 0   0 110 180 230 230 70 115  53 12
        0 0   0 220 220 190 220 40  70  32  8
        0 0   0 380 230 140 170 20  40  16  4
    """)
    by_region = table("""
        10 10 10  9  8  9  7  9 14 18 22
        10 10 10  9  9 10  9 10 11 12 14
        10 10 10 11 11 10 12 10  8  7  5
        10 10 10 10 10 11 11 10  9  8  7
    """)
    given = ages(5, 11, 16, 18, 21, 25, 35, 50, 65, 80), REGION_KIND
    return Column("education", EDUCATION, given, crossed(by_age, by_region))


def occupation() -> Column:
    """Occupation, by education, age and sex."""
    labels = tuple(row[0] for row in OCCUPATIONS)
    given = EDUCATION_KIND, ages(16, 18, 25, 35, 55, 65, 75), SEX
    return Column("occupation", labels, given, crossed(*map(by_occupation, (1, 2, 3))))


def birthplace() -> Column:
    """Birthplace, by kind of region, age and neighbourhood."""
    abroad = range(len(BIRTHPLACES) - 1)
    base = [110_000, *(40_000 // ((place + 2) * (place + 6)) for place in abroad)]
    by_region = [[10] + [foreign] * len(abroad) for foreign in (25, 10, 4, 5)]
    by_age = [[10] + [foreign] * len(abroad) for foreign in (3, 8, 14, 9, 6)]
    # people from one place settle near each other
    by_cluster = [[1] + [4 if place % 6 == cluster else 1 for place in abroad] for cluster in range(6)]
    given = REGION_KIND, ages(16, 25, 50, 65), REGION_CLUSTER
    return Column("birthplace", BIRTHPLACES, given, crossed(base, *map(np.array, (by_region, by_age, by_cluster))))


def household_size() -> Column:
    """Household size, by marital status and age."""
    single = table("""
          0  90 230 380 190 70 25 15
        110 190 220 250 130 60 25 15
        290 330 170 120  50 25 10  5
        340 280 180 120  50 18  8  4
        440 310 140  70  25  9  4  2
        600 270  80  30  12  5  2  1
        720 200  50  18   7  3  1  1
    """)
    couple = table("""
          0  90 230 380 190 70 25 15
          0 420 290 170  70 30 12  8
          0 290 290 260 100 35 15 10
          5 160 230 370 160 50 15 10
         10 430 260 200  70 20  6  4
         12 820 110  35  14  5  3  1
         40 860  65  20   8  4  2  1
    """)
    formerly = table("""
          0  90 230 380 190 70 25 15
        220 300 240 130  60 30 12  8
        330 240 210 130  55 20 10  5
        310 250 230 140  45 15  6  4
        470 290 150  60  20  6  3  1
        690 210  65  22   8  3  1  1
        800 140  38  13   5  2  1  1
    """)
    given = MARITAL_KIND, ages(18, 25, 35, 50, 65, 80)
    return Column("household_size", range(1, 9), given, np.stack([single, couple, formerly]))


def income_band() -> Column:
    """Income, by occupation, education and age."""
    # three positions to a band; a child has no income, and some of the others out of work have none
    by_pay = (0, 5, 6, 9, 12, 14, 17, 20, 23, 26)
    weights = bells(range(0, 36, 3), 36, by_pay, (-1, 0, 2), (-3, -1, 1, 0), (-1, 1))
    nothing = [1, 230_000, 190_000, 48_000, 3_500, 800, 400, 300, 200, 300]
    weights[..., 0] = np.reshape(nothing, (-1, 1, 1, 1))
    weights[0, ..., 1:] = 0
    return Column("income_band", INCOMES, (PAY_CLASS, SCHOOLING, ages(25, 35, 55), SEX), weights)


def tenure() -> Column:
    """Tenure, by age, income, household and kind of region."""
    by_age = table("4 14 10 11 6 / 5 8 20 10 12 / 3 13 18 9 8 / 6 18 9 9 6 / 14 11 6 9 6 / 24 2 3 9 8")
    by_income = table("10 10 10 10 10 / 9 4 11 17 14 / 10 9 11 12 9 / 10 14 10 5 7 / 12 18 7 1 5")
    by_household = table("9 6 12 13 12 / 12 10 10 8 9 / 8 14 9 9 8 / 8 11 9 14 9")
    by_region = table("6 9 16 13 10 / 9 10 11 11 10 / 12 11 8 8 11 / 14 9 9 8 10")
    given = ages(18, 25, 35, 50, 65), INCOME_KIND, HOUSEHOLD_KIND, REGION_KIND
    weights = crossed([300, 300, 200, 160, 25], by_age, by_income, by_household, by_region)
    return Column("tenure", TENURES, given, weights)


def industry() -> Column:
    """Industry, by occupation."""
    sizes = (0, 2, 10, 6, 8, 14, 8, 6, 5, 9, 8, 10, 13, 6, 7, 2, 1)
    weights = [
        [size + 150 * (branch == main) if main else int(branch == 0) for branch, size in enumerate(sizes)]
        for main in MAIN_INDUSTRY
    ]
    return Column("industry", INDUSTRIES, (EACH_OCCUPATION,), np.array(weights, dtype=np.int64))


def language() -> Column:
    """First language, by birthplace."""
    usual = [3500, 60] + [200 // (place + 3) for place in range(len(LANGUAGES) - 2)]
    weights = usual + 5000 * np.eye(len(LANGUAGES), dtype=np.int64)
    weights[0, 0] = 20_000  # born in the country
    return Column("language", LANGUAGES, (MOTHER_TONGUE,), weights)


def religion() -> Column:
    """Religion, by area of birth and age."""
    labels = words(
        "No religion; Catholic; Protestant; Orthodox; Muslim; Hindu; Buddhist; Sikh; Jewish; Other religion; Not stated"
    )
    by_area = table("""
        400 240 200   8  50  12   6   6  6 12 60
        280 370  70 190  30   1   2   0  6  8 43
         50  40  20   1 360 330  40 110  0 20 29
        420 150  60   2  40   4 260   0  0 30 34
         90  20  10  60 740   0   1   0 25 14 40
         60 210 280  60 310   6   0   0  2 30 42
        230 380 250   5  10   6   3   0 10 60 46
    """)
    by_age = table("13 9 8 10 11 10 10 10 10 10 11 / 10 10 10 10 10 10 10 10 10 10 10 / 6 13 14 10 7 8 9 8 11 8 9")
    return Column("religion", labels, (AREA, ages(25, 60)), crossed(by_area, by_age))


def dwelling_type() -> Column:
    """Dwelling, by kind of region, tenure and household."""
    by_region = table("6 14 24 34 18 1 2 / 18 26 22 22 8 1 2 / 42 26 14 10 1 3 2 / 36 22 14 18 2 4 3")
    by_tenure = table("16 10 8 5 2 10 0 / 12 14 11 6 3 3 0 / 5 7 10 16 12 9 0 / 1 8 11 18 20 1 0 / 8 6 6 10 4 10 200")
    by_household = table("6 7 9 16 14 14 20 / 11 10 9 11 11 12 1 / 12 13 11 7 8 8 0 / 13 12 13 4 6 8 0")
    weights = crossed(by_region, by_tenure, by_household)
    return Column("dwelling_type", DWELLINGS, (REGION_KIND, TENURE, HOUSEHOLD_KIND), weights)


def bedrooms() -> Column:
    """Bedrooms, by dwelling and household."""
    weights = bells(range(0, 32, 4), 12, (13, 11, 6, 4), (-1, 0, 1, 3))
    return Column("bedrooms", range(8), (DWELLING_KIND, HOUSEHOLD_KIND), weights)


def vehicles() -> Column:
    """Vehicles, by kind of region, income and household."""
    weights = bells(range(0, 24, 4), 20, (0, 3, 6, 5), (1, -2, 0, 2, 4), (-2, 1, 2, 3))
    return Column("vehicles", range(6), (REGION_KIND, INCOME_KIND, HOUSEHOLD_KIND), weights)


def commute_mode() -> Column:
    """Way to work, by occupation, kind of region, age and vehicles."""
    labels = words(
        "Not in work; Works from home; Car driver; Car passenger; Bus; Train or metro; Motorcycle; Bicycle; Walk; Other"
    )
    by_work = table("1 0 0 0 0 0 0 0 0 0 / 0 8 60 6 12 6 2 6 14 1 / 0 32 52 3 6 14 1 6 8 1")
    by_region = table("""
        10 12  4  5 22 45 10 14 12 10
        10 10 10 10 14  8 10 14 12 10
        10  9 14 12  4  3 10  5  8 10
        10 11 13 11  6  4 10  7 11 10
    """)
    by_age = table("10 10 0 30 20 10 5 20 20 10 / 10 10 10 10 10 10 10 10 10 10")
    by_vehicle = table("10 10 1 8 20 14 2 16 16 10 / 10 10 10 10 10 10 10 10 10 10")
    given = WORK_KIND, REGION_KIND, ages(18), HAS_VEHICLE
    return Column("commute_mode", labels, given, crossed(by_work, by_region, by_age, by_vehicle))


def internet() -> Column:
    """Internet at home, by age and income."""
    by_age = table("12 10 9 3 / 11 9 14 3 / 11 11 8 7 / 8 12 6 30 / 4 8 4 100")
    by_income = table("10 10 10 10 / 7 10 14 16 / 9 10 11 11 / 11 10 9 6 / 14 9 7 3")
    given = ages(16, 45, 65, 80), INCOME_KIND
    return Column(
        "internet", words("Fibre; Cable or DSL; Mobile only; None"), given, crossed([45, 35, 14, 6], by_age, by_income)
    )


def disability() -> Column:
    """Disability, by age and whether unable to work."""
    by_age = table("93 4 3 / 91 6 3 / 87 8 5 / 80 12 8 / 68 20 12 / 45 28 27")
    weights = crossed(by_age, table("10 10 10 / 1 10 40"))
    return Column(
        "disability", words("None; Limits a little; Limits a lot"), (ages(16, 35, 50, 65, 80), UNABLE), weights
    )


def health() -> Column:
    """Health, by age and disability."""
    by_age = table("82 15 2 1 1 / 60 31 7 1 1 / 50 36 11 3 1 / 38 39 17 5 1 / 25 40 26 7 2 / 14 36 36 11 3")
    weights = crossed(by_age, table("12 10 5 1 0 / 3 9 20 12 5 / 1 4 15 40 40"))
    return Column(
        "health", words("Very good; Good; Fair; Bad; Very bad"), (ages(16, 35, 50, 65, 80), DISABILITY), weights
    )


def citizenship() -> Column:
    """Citizenship, by area of birth."""
    labels = words(
        "National; National and another; Foreign: Europe; Foreign: Asia; Foreign: Africa;"
        "Foreign: Americas or Oceania; Stateless or unknown"
    )
    weights = table("""
        9600  250   60   40   25   20   5
        2600  900 6400   30   10   40  20
        4600  500   60 4750   10   20  60
        3700  500   60 5650    5   20  65
        4200 1300   80 2700 1400   20 300
        4300  900  120   20 4500   10 150
        3300 1500  150   10   10 4950  80
    """)
    return Column("citizenship", labels, (AREA,), weights)


def year_of_arrival() -> Column:
    """Year of arrival, for those born abroad, by age."""
    # as seen in 2025: nobody arrives before being born
    labels = words(
        "Born in the country; Before 1971; 1971-1980; 1981-1990; 1991-2000; 2001-2010; 2011-2015; 2016-2020;"
        "2021 or later"
    )
    foreign = table("""
        0  0  0  0  0  0  0  0  1
        0  0  0  0  0  0  0  5  6
        0  0  0  0  0  0  4  5  5
        0  0  0  0  0  6  6 10 22
        0  0  0  0  5  9 14 24 34
        0  0  0  6  8 20 24 22 16
        0  0  6  8 20 30 16 10  6
        0 12 16 22 22 16  6  4  2
        0 50 20 12  8  5  2  2  1
    """)
    native = np.zeros_like(foreign)
    native[:, 0] = 1
    given = FOREIGN, ages(5, 10, 15, 25, 35, 45, 55, 75)
    return Column("year_of_arrival", labels, given, np.stack([native, foreign]))


NAMED = (
    *(region, age, sex, marital_status, education, occupation, birthplace, household_size, income_band, tenure),
    *(industry, language, religion, dwelling_type, bedrooms, vehicles, commute_mode, internet, disability, health),
    *(citizenship, year_of_arrival),
)

# Survey items: the answers and the parents take turns; 9 and 10 have no common factor, so 90 items differ in kind.
ANSWERS: tuple[tuple[str, ...] | range, ...] = (
    words("Yes; No"),
    words("Strongly disagree; Disagree; Neither; Agree; Strongly agree"),
    tuple(f"Group {number:02d}" for number in range(1, 25)),
    range(11),  # a rating
    words("Yes; No; Don't know"),
    words("Never; Less than monthly; Monthly; Weekly; Daily; Several times a day"),
    tuple(f"Type {number:02d}" for number in range(1, 13)),
    range(31),  # days in the last month
    tuple(f"Code {number:02d}" for number in range(1, 37)),
)
DRIVERS = (
    *(ages(16, 30, 45, 60, 75), SCHOOLING, REGION_KIND, INCOME_KIND, SEX, WORK_KIND, MARITAL_KIND, AREA),
    *(HOUSEHOLD_KIND, TENURE),
)


def item(number: int) -> Column:
    """The survey item in the given place (from 23 on)."""
    levels, driver = ANSWERS[number % len(ANSWERS)], DRIVERS[number % len(DRIVERS)]
    size, groups = len(levels), range(max(driver.groups) + 1)
    if isinstance(levels, range) or size < 12:  # in an order: people agree more or less, by group
        places = [(2 * level + 1) * 60 // (2 * size) for level in range(size)]
        weights = bells(places, 250, [10 + 13 * number % 40 + 16 * group // len(groups) - 8 for group in groups])
    else:  # in no order: few common levels and many rare ones, each favoured by one group
        common = [20_000 // (1 + (7 * number + 5 * level) % size) + 50 for level in range(size)]
        favour = [[4 if level % len(groups) == group else 1 for level in range(size)] for group in groups]
        weights = crossed(common, np.array(favour, dtype=np.int64))
    return Column(f"item_{number}", levels, (driver,), weights)


@cache
def column(place: int) -> Column:
    """The column in the given place, from 0 on."""
    return NAMED[place]() if place < len(NAMED) else item(place + 1)


def place_of(name: str) -> int:
    """The place of a column that may be a parent; survey items are nobody's parents."""
    return [build.__name__ for build in NAMED].index(name)
