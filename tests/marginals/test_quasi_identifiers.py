"""Distinction and separation of sets of columns, and the smallest sets that reach an alpha, by their definitions."""

from __future__ import annotations

import doctest
import json
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
import gpupif.marginals.quasi_identifiers
from gpupif import quasi_identifiers, toxic_pairs
from gpupif.marginals.count_statistics import Separation
from tests.helpers.counting_ways import OTHERS, in_memory
from tests.helpers.tables import SHARED_FIXTURES, SIMULATED, frame_of, tables

pytestmark = pytest.mark.every_engine


def cells(table, names):
    return list(zip(*(table[name] for name in names), strict=True))


def distinction(rows):
    """Return the largest share of the rows that can be kept so that no two rows agree."""
    for size in range(len(rows), 0, -1):
        for kept in combinations(rows, size):
            if all(one != other for one, other in combinations(kept, 2)):
                return Fraction(size, len(rows))
    raise AssertionError("one row is always different from all others")


def separation(rows):
    """Return the share of the pairs of rows that differ."""
    differ = [one != other for one, other in combinations(rows, 2)]
    return Fraction(sum(differ), len(differ)) if differ else Fraction(1)


RATIOS = {"distinction": lambda rows: Fraction(len(set(rows)), len(rows)), "separation": separation}


def smallest(table, alpha, by, max_size):
    """Return both ratios of the smallest sets that reach alpha: sets with a subset that reaches alpha are left out."""
    reached = {}
    for size in range(1, max_size + 1):
        for names in combinations(table, size):
            rows = cells(table, names)
            if RATIOS[by](rows) >= alpha and not any(set(one) < set(names) for one in reached):
                reached[names] = {name: float(ratio(rows)) for name, ratio in RATIOS.items()}
    return reached


def as_found(found):
    return {
        tuple(record["columns"]): {name: record[name] for name in RATIOS} for record in found.sets.to_dict("records")
    }


@given(rows=st.lists(st.integers(0, 3), min_size=1, max_size=7))
@settings(deadline=None, max_examples=15)
def test_ratios_are_as_defined(rows):
    found = Separation.from_counts(np.bincount(rows), len(rows))
    assert found.distinction == float(distinction(rows)) == float(RATIOS["distinction"](rows))
    assert found.separation == float(separation(rows))


def test_the_example_of_the_paper_has_its_ratios():
    """Take five people: age has a distinction of 0.6 and a separation of 0.8, sex and state have 0.8 and 0.9."""
    people = pd.DataFrame({"age": [20, 30, 40, 20, 40], "sex": list("fffmm"), "state": ["CA", "CA", "TX", "NY", "CA"]})
    assert as_found(quasi_identifiers(people, 0.6))[("age",)] == {"distinction": 0.6, "separation": 0.8}
    assert as_found(quasi_identifiers(people, 0.9, "separation"))[("sex", "state")] == {
        "distinction": 0.8,
        "separation": 0.9,
    }
    pairs = toxic_pairs(people).pairs.set_index(["column_1", "column_2"])
    assert pairs.loc[("sex", "state"), ["distinction", "separation"]].tolist() == [0.8, 0.9]


@pytest.mark.slow
@given(
    table=tables(most_columns=4),
    alpha=st.sampled_from([0.01, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0]),
    by=st.sampled_from(list(RATIOS)),
    data=st.data(),
)
@settings(SHARED_FIXTURES, max_examples=10 if SIMULATED else 30)
def test_the_smallest_sets_are_those_of_a_full_search(counting_engine, table, alpha, by, data):
    size = data.draw(st.integers(1, len(table)))
    found = quasi_identifiers(frame_of(table), alpha, by, size)
    assert as_found(found) == smallest(table, Fraction(repr(alpha)), by, size)
    assert found.sets["size"].tolist() == [len(names) for names in found.sets["columns"]]
    for _, several in found.sets.groupby("size"):
        assert several[by].is_monotonic_decreasing
    whole = cells(table, table)
    assert (found.distinction, found.separation) == tuple(float(ratio(whole)) for ratio in RATIOS.values())


@pytest.mark.parametrize("by", list(RATIOS))
def test_sets_that_cannot_be_smallest_are_not_counted(by):
    """Skip sets that cannot reach alpha, or contain a set that does; no smallest set is lost."""
    random = np.random.default_rng(4)
    table = {f"c{place}": random.integers(0, 2 + place, 60).tolist() for place in range(9)}
    alpha = {"distinction": 0.8, "separation": 0.98}[by]
    found = quasi_identifiers(pd.DataFrame(table), alpha, by, max_size=5)
    wanted = smallest(table, Fraction(repr(alpha)), by, 5)
    assert as_found(found) == wanted
    assert len({len(names) for names in wanted}) > 1
    assert found.counted < sum(comb(9, size) for size in range(2, 6)) / 2


@pytest.mark.slow
@pytest.mark.parametrize("way", OTHERS)
@given(table=tables(most_columns=4), by=st.sampled_from(list(RATIOS)))
@settings(SHARED_FIXTURES, max_examples=2 if SIMULATED else 4)
def test_every_way_to_run_gives_the_same_sets(way, table, by):
    frame = frame_of(table)
    one, other = (run(quasi_identifiers, frame, 0.5, by, len(table)) for run in (way, in_memory))
    pd.testing.assert_frame_equal(one.sets, other.sets, check_exact=True)
    assert (one.distinction, one.separation, one.counted) == (other.distinction, other.separation, other.counted)


def test_alpha_is_the_decimal_number_that_is_written():
    """Compare in whole numbers: 9 of 10 rows reach 0.9, though no float is nine tenths."""
    table = pd.DataFrame({"a": [*range(9), 8], "b": 1})
    assert quasi_identifiers(table, 0.9).sets["columns"].tolist() == [["a"]]
    assert not len(quasi_identifiers(table, 0.9000000000000001).sets)


def test_a_result_without_sets_says_why():
    table = pd.DataFrame({"a": [1, 1, 2, 2] * 2, "b": [1, 2, 1, 2] * 2, "c": [1, 1, 1, 2] * 2})
    found = quasi_identifiers(table, 0.9)
    assert (len(found.sets), found.counted, found.distinction) == (0, 1, 0.5)
    assert "Not even all columns reach it" in str(found)
    found = quasi_identifiers(table, 0.5, max_size=1)
    assert "Only sets of more columns reach it" in str(found)
    assert found.to_dict()["sets"] == []


def test_any_column_distinguishes_a_single_row():
    found = quasi_identifiers(pd.DataFrame({"a": [1], "b": [None]}), 1, "separation")
    assert as_found(found) == {(name,): {"distinction": 1.0, "separation": 1.0} for name in "ab"}


def test_only_the_first_sets_are_printed_and_written():
    table = pd.DataFrame({name: range(3) for name in "abcd"})
    found = quasi_identifiers(table, 1, top=2)
    assert len(found.sets) == 4
    assert "(the first 2 of 4)" in str(found)
    document = json.loads(found.to_json())
    assert (len(document["sets"]), document["sets_in_all"]) == (2, 4)
    assert document["sets"][0] == {"columns": ["a"], "size": 1, "distinction": 1.0, "separation": 1.0}
    assert repr(found) == "<QuasiIdentifiers of 3 rows: 4 of at most 3 columns>"


def test_weighted_rows_have_no_ratios():
    table = pd.DataFrame({"a": [1, 2], "b": [1, 1], "w": [2.0, 3.0]})
    assert not {"distinction", "separation"} & set(toxic_pairs(table, weights="w").pairs)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"alpha": 0}, "alpha: expected a number above 0 and up to 1, got 0"),
        ({"alpha": 90}, "alpha: .*got 90. Divide percentages by 100"),
        ({"by": "both"}, "by: expected 'distinction' or 'separation', got 'both'"),
        ({"max_size": 0}, "max_size: expected a whole number of columns, 1 or more; got 0"),
        ({"max_size": 3}, "max_size: expected at most 2, the number of columns, got 3"),
        ({"top": 0}, "top: expected a whole number of sets of columns"),
        ({"columns": ["z"]}, "columns: no column 'z'"),
        ({"missing": "wildcard"}, "missing='wildcard': not defined for entropies, toxic pairs and quasi-identifiers"),
        ({"missing": "error"}, "column 'a': 1 missing value"),
    ],
)
def test_bad_input_is_refused(arguments, words):
    with pytest.raises(gpupif.InputError, match=words):
        quasi_identifiers(pd.DataFrame({"a": ["x", None], "b": [1, 2]}), **arguments)


def test_too_many_sets_are_refused_before_any_is_counted():
    table = pd.DataFrame({f"c{place}": [1, 2] for place in range(60)})
    words = (
        r"max_size: there are 5,985,197 sets of at most 5 of 60 columns, expected at most 1,000,000\. Give max_size=4"
    )
    with pytest.raises(gpupif.InputError, match=words):
        quasi_identifiers(table, max_size=5)


def test_the_command_prints_the_sets(folder, run):
    told = run("toxic", "people.csv", "--alpha", "0.8", "--max-size", "2", "--json")
    document = json.loads(told.out)
    assert (told.code, document["input"], document["by"], document["max_size"]) == (0, "people.csv", "distinction", 2)
    assert document["sets"][0]["columns"] == ["age", "sex"]
    told = run("toxic", "people.csv", "--alpha", "0.8", "--by", "separation", "--top", "1")
    assert (told.code, "with a separation of 0.8 or more" in told.out) == (0, True)
    for arguments, words in (
        (["--by", "separation"], "--by: goes with --alpha"),
        (["--alpha", "0.9", "--size", "2"], "--size: goes without --alpha"),
        (["--alpha", "0.9", "--weights", "age"], "--weights: not defined for distinction and separation"),
        (["--alpha", "2"], "--alpha: expected a number above 0 and up to 1, got 2"),
        (["--alpha", "1", "--max-size", "9"], "--max-size: expected at most 3"),
    ):
        told = run("toxic", "people.csv", *arguments)
        assert (told.code, told.out) == (2, "")
        assert words in told.err


def test_the_docstring_holds():
    tried = doctest.testmod(gpupif.marginals.quasi_identifiers)
    assert tried.attempted >= 4
    assert tried.failed == 0
