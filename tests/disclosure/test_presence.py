"""Presence of the people of a population in a table, compared with fractions of classes that are counted row by row."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.disclosure.population_risks import PresenceBand
from tests.helpers.naive_disclosure import presence_of
from tests.helpers.populations import frames_of, samples
from tests.helpers.tables import SHARED_FIXTURES

SIZES = st.tuples(st.integers(0, 12), st.integers(0, 30)).map(lambda pair: (pair[0], max(1, sum(pair))))


def band_of(delta):
    """Return the band of a presence: exactly 0, tenths, exactly 1."""
    tenth = delta * 10 // 1
    return (delta, delta) if delta in (0, 1) else (tenth / 10, (tenth + 1) / 10)


def check(found, classes, threshold):
    """Check that presence follows from the rows, people and presence of each class."""
    deltas = [delta for _, _, delta in classes]
    rows, people = (sum(one[place] for one in classes) for place in (0, 1))
    assert (found.lowest, found.highest) == (float(min(deltas)), float(max(deltas)))
    assert (found.average, found.people) == (float(Fraction(rows, people)), people)
    assert (found.classes, found.absent_classes) == (len(classes), deltas.count(0))
    above = sum(several for several, _, delta in classes if float(delta) > threshold)
    assert (found.threshold, found.rows_above, found.share_above) == (threshold, above, above / rows)
    for band in found.histogram:
        some = [one for one in classes if tuple(map(float, band_of(one[2]))) == (band.least, band.most)]
        counted = (len(some), sum(one[1] for one in some), sum(one[0] for one in some))
        assert (band.classes, band.people, band.rows) == counted
    assert sum(band.people for band in found.histogram) == people
    assert sum(band.rows for band in found.histogram) == rows


@given(sizes=st.lists(SIZES, min_size=1, max_size=30).filter(lambda sizes: any(rows for rows, _ in sizes)),
       threshold=st.sampled_from([0.05, 0.1, 0.2, 0.5, 1.0]))  # fmt: skip
def test_presence_follows_from_sizes_of_classes(sizes, threshold):
    found = gpupif.models.population_risks(*zip(*sizes, strict=True), threshold=threshold)
    check(found.presence, [(*both, Fraction(*both)) for both in sizes], threshold)
    sampled = [both for both in sizes if both[0]]
    without = gpupif.models.population_risks(*zip(*sampled, strict=True), threshold=threshold)
    # Classes that the sample lacks change presence and nothing else.
    assert {**vars(found), "presence": None} == {**vars(without), "presence": None}


@given(job=samples(), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_presence_of_tables_is_as_defined(job, data):
    sample, people, _ = job
    known = data.draw(st.lists(st.sampled_from(list(sample)), min_size=1, unique=True))
    most = data.draw(st.integers(0, 6))
    frame, others = frames_of(sample, people)
    population = gpupif.Population(others, "count")
    with gpupif.config(device="cpu"):
        found = gpupif.risk(frame, known, population=population, groups=most, threshold=0.4)
    classes = presence_of(sample, people, known)
    check(found.population.presence, [one[1:] for one in classes], 0.4)
    wanted = [one for one in classes if one[1]][:most]
    came = [(tuple(one.quasi_identifiers.values()), one.rows, one.people, one.presence) for one in found.present]
    plain = [(tuple(None if value != value else value for value in values), *sizes) for values, *sizes in came]
    assert plain == [(*one[:3], float(one[3])) for one in wanted]
    assert all(list(one.quasi_identifiers) == known for one in found.present)


# A presence of 0.15, as in Google's documentation: 15 of 100 people are in the table.
CITY = pd.DataFrame({"home": ["a"] * 100 + ["b"] * 2 + ["c"] * 3})
PATIENTS = pd.DataFrame({"home": ["a"] * 15 + ["b"] * 2})


def test_presence_is_that_computed_by_hand():
    found = gpupif.risk(PATIENTS, "home", population=CITY, groups=1)
    presence = found.population.presence
    assert (presence.lowest, presence.highest, presence.average) == (0.0, 1.0, 17 / 105)
    assert [band for band in presence.histogram if band.classes] == [
        PresenceBand(0.0, 0.0, 1, 3, 0),
        PresenceBand(0.1, 0.2, 1, 100, 15),
        PresenceBand(1.0, 1.0, 1, 2, 2),
    ]
    assert (presence.rows_above, presence.share_above) == (2, 2 / 17)
    assert [vars(one) for one in found.present] == [
        {"quasi_identifiers": {"home": "b"}, "rows": 2, "people": 2, "presence": 1.0}
    ]
    for text in ("presence, highest", "10 % to below 20 %", "Classes of the highest presence", "home=b"):
        assert text in str(found)
    assert found.to_dict()["population"]["presence"]["histogram"][1] == {
        "least": 0.0, "most": 0.1, "classes": 0, "people": 0, "rows": 0
    }  # fmt: skip


def test_the_presence_of_each_row_follows_from_its_scores():
    """Divide class sizes of a column that is scored and not known, as the documentation does."""
    table, city = PATIENTS.assign(ill=1), CITY.assign(ill=1)
    scores = gpupif.score(table, "cohort_size", columns=["ill"], known=["home"], population=city)
    presence = scores["cohort_size"]["ill"] / scores.population_size["ill"]
    assert presence.tolist() == [0.15] * 15 + [1.0] * 2


def test_presence_does_not_overflow():
    found = gpupif.models.population_risks([2**60, 1, 0], [2**61, 2**60, 2**60]).presence
    bands = [band for band in found.histogram if band.classes]
    assert [(band.least, band.people, band.rows) for band in bands] == [
        (0.0, 2**60, 0), (0.0, 2**60, 1), (0.5, 2**61, 2**60)
    ]  # fmt: skip


def test_weights_do_not_change_presence_and_overlapping_classes_have_none():
    weighted = gpupif.risk(PATIENTS.assign(w=3.5), "home", population=CITY, weights="w").population
    assert weighted == gpupif.risk(PATIENTS, "home", population=CITY).population
    sparse = pd.concat([PATIENTS, pd.DataFrame({"home": [None]})], ignore_index=True)
    found = gpupif.risk(sparse, "home", population=gpupif.Population(CITY, "count"), missing="wildcard")
    assert (found.population.presence, found.present) == (None, [])
    assert "presence" not in str(found)
    # Without a missing value no classes overlap.
    assert gpupif.risk(PATIENTS, "home", population=CITY, missing="wildcard").population == weighted


@pytest.mark.slow
def test_values_decide_between_very_many_equal_classes():
    """List few of many classes of one row and one person each: the classes with the lowest values come first."""
    city = pd.DataFrame({"number": range(50_000)})
    found = gpupif.risk(city.sample(frac=0.5, random_state=1), "number", population=city, groups=3)
    drawn = sorted(city.sample(frac=0.5, random_state=1)["number"])
    assert [one.quasi_identifiers["number"] for one in found.present] == drawn[:3]
