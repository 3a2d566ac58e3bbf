"""Hierarchies of every kind: the groups that their definitions say, whatever type the values have."""

from __future__ import annotations

import datetime
import json
import pickle
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupif.errors import InputError
from gpupif.hierarchies.open import open_hierarchy
from tests.helpers import naive_hierarchies as naive

TREE = {"Berlin": ["DE", "EU"], "Bonn": ["DE", "EU"], "Lyon": ["FR", "EU"], "Osaka": ["JP", "AS"]}
UNITS = ["hour", "day", "month", "quarter", "year", "decade", "century"]
KINDS = {
    "widths": ({"widths": [5, 10, 50], "start": 2}, st.integers(-1000, 1000)),
    "decimal widths": ({"widths": [0.1, 0.5, 2]}, st.floats(-50, 50)),
    "digits": ({"digits": [1, 3, 4], "length": 5}, st.text("0123aé*", max_size=7)),
    "first": ({"first": [4, 3, 1]}, st.text("0123aé*", max_size=7)),
    "dates": ({"dates": UNITS}, st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))),
    "values": (TREE, st.sampled_from(list(TREE))),
    "common": ({"common": ["Lyon", "Bonn", "Berlin"], "keep": [3, 1]}, st.sampled_from([*TREE, "other"])),
}


def hierarchy_of(description):
    return open_hierarchy("x", description)


def groups(description, values, level, kind=None):
    return hierarchy_of(description).groups(pa.array(values, kind), level).to_pylist()


@st.composite
def hierarchies_and_values(draw):
    description, values = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    return hierarchy_of(description), draw(st.lists(values, min_size=1, max_size=30, unique=True))


@given(hierarchies_and_values())
def test_levels_nest_and_end_in_one_group(drawn):
    hierarchy, values = drawn
    levels = [hierarchy.groups(pa.array(values), level).to_pylist() for level in range(1, hierarchy.height + 1)]
    assert set(levels[-1]) == {"*"}
    for below, above in pairwise(levels):
        assert len(set(zip(below, above, strict=True))) == len(set(below))


@given(hierarchies_and_values(), st.data())
def test_the_group_of_a_value_does_not_depend_on_other_values(drawn, data):
    hierarchy, values = drawn
    some = data.draw(st.lists(st.sampled_from(values), min_size=1, unique=True))
    for level in range(1, hierarchy.height + 1):
        group = dict(zip(values, hierarchy.groups(pa.array(values), level).to_pylist(), strict=True))
        assert hierarchy.groups(pa.array(some), level).to_pylist() == [group[value] for value in some]


@given(hierarchies_and_values())
def test_a_hierarchy_is_the_same_after_a_plan_and_a_pickle(drawn):
    hierarchy, _ = drawn
    again = hierarchy_of(hierarchy.to_plan())
    assert again == hierarchy
    assert pickle.loads(pickle.dumps(hierarchy)) == hierarchy
    assert again.to_plan() == hierarchy.to_plan()


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint16(), pa.float32(), pa.float64(), pa.string()])
def test_intervals_of_numbers_of_every_type_are_the_same(kind):
    values = [0, 17, 20, 24, 25, 90, 99]
    wanted = ["[0, 5)", "[15, 20)", "[20, 25)", "[20, 25)", "[25, 30)", "[90, 95)", "[95, 100)"]
    array = pa.array(values).cast(kind)
    assert hierarchy_of({"widths": [5, 10, 20]}).groups(array, 1).to_pylist() == wanted
    assert hierarchy_of({"widths": [5, 10, 20]}).groups(array, 3).to_pylist()[-1] == "[80, 100)"


WIDTHS = [[1], [5, 10, 20], [0.1, 0.5], [0.25, 1.5], ["2.5", "5"], [1e-7], [1e6], [3, 9]]


@given(
    st.lists(st.one_of(st.floats(-1e6, 1e6), st.integers(-(10**6), 10**6).map(lambda n: n / 10)), min_size=1),
    st.sampled_from(WIDTHS),
    st.sampled_from([0, 0.05, -3, 1e5]),
)
@settings(max_examples=80)
def test_intervals_follow_their_definition(numbers, widths, start):
    widths = [Decimal(one) if isinstance(one, str) else one for one in widths]
    hierarchy = hierarchy_of({"widths": widths, "start": start})
    for level, width in enumerate(widths, 1):
        found = hierarchy.groups(pa.array(numbers, pa.float64()), level).to_pylist()
        assert found == [naive.interval(number, width, start) for number in numbers]


@given(st.lists(st.decimals(-(10**9), 10**9, places=3), min_size=1), st.sampled_from(WIDTHS[:4]))
def test_intervals_of_decimals_and_their_texts_are_the_same(numbers, widths):
    wanted = [naive.interval(number, widths[0]) for number in numbers]
    assert groups({"widths": widths}, numbers, 1) == wanted
    assert groups({"widths": widths}, [str(number) for number in numbers], 1) == wanted


@pytest.mark.parametrize(
    ("numbers", "kind", "widths"),
    [
        ([0, 2**63 - 1, -(2**63)], pa.int64(), [7]),
        ([0, 2**64 - 1], pa.uint64(), [10**6]),
        ([0.1, 1e18, -1e18, 123456789.3], pa.float64(), [0.1]),
        ([2**60, 5], pa.int64(), [0.01]),
    ],
)
def test_numbers_that_arithmetic_would_round_get_the_right_interval(numbers, kind, widths):
    found = groups({"widths": widths}, numbers, 1, kind)
    assert found == [naive.interval(number, widths[0]) for number in numbers]


def test_edges_are_compared_as_they_are_written():
    assert groups({"widths": [0.1]}, [0.3, 0.7, 0.2999999], 1) == ["[0.3, 0.4)", "[0.7, 0.8)", "[0.2, 0.3)"]
    assert groups({"widths": [0.1]}, np.float32([0.3, 0.7]), 1) == ["[0.3, 0.4)", "[0.7, 0.8)"]


@given(st.lists(st.text("0123456789a ", max_size=8), min_size=1), st.integers(1, 6), st.sampled_from([0, 5]))
def test_masked_codes_follow_their_definition(codes, count, length):
    description = {"digits": [count], **({"length": length} if length else {})}
    assert groups(description, codes, 1) == [naive.masked(code, count, length) for code in codes]


def test_codes_are_cut_after_their_first_characters():
    codes = ["E11", "E11.9", "E11.90", "I10", "I1", ""]
    assert groups({"first": [3, 1]}, codes, 1) == ["E11", "E11", "E11", "I10", "I1", ""]
    assert groups({"first": [3, 1]}, codes, 2) == ["E", "E", "E", "I", "I", ""]
    assert groups({"first": 2}, [12345, 12], 1) == ["12", "12"]
    assert hierarchy_of({"first": 2}) == hierarchy_of({"first": [2, 1]})


def test_codes_that_were_read_as_numbers_are_masked():
    assert groups({"digits": 2, "length": 5}, [1234, 99501], 2) == ["012**", "995**"]
    assert groups({"digits": 2, "length": 5}, ["01234", "99501"], 2) == ["012**", "995**"]
    assert hierarchy_of({"digits": 3}).height == 4


@given(st.lists(st.datetimes(datetime.datetime(1, 1, 1)), min_size=1), st.sampled_from([*UNITS, "week"]))
def test_units_of_time_follow_their_definition(times, unit):
    description = {"dates": [unit]}
    wanted = [naive.unit_of_time(one, unit) for one in times]
    assert groups(description, times, 1, pa.timestamp("us")) == wanted
    assert groups(description, [one.isoformat() for one in times], 1) == wanted
    assert groups(description, [str(one) for one in times], 1) == wanted
    days = [one.date() for one in times]
    wanted = [naive.unit_of_time(one, unit) for one in days]
    assert groups(description, days, 1, pa.date32()) == wanted
    assert groups(description, [one.isoformat() for one in days], 1) == wanted


def test_times_go_by_the_clock_of_their_zone():
    late = pd.Series(pd.to_datetime(["2019-12-31T23:30:00Z"])).dt.tz_convert("Europe/Berlin")
    assert groups({"dates": ["year"]}, late, 1) == ["2020"]
    assert groups({"dates": ["year"]}, ["2020-01-01T00:30:00+01:00"], 1) == ["2020"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([39, 40], ["39", "40"]),
        ([39.0, 40.5], ["39", "40.5"]),
        ([39.0, 40.5], ["39.0", "40.5"]),
        ([datetime.date(2001, 5, 17), datetime.date(2001, 5, 18)], ["2001-05-17", "2001-05-18"]),
        (
            [datetime.datetime(2001, 5, 17), datetime.datetime(2001, 5, 18, 10, 30)],
            ["2001-05-17", "2001-05-18T10:30:00"],
        ),
        ([True, False], ["true", "False"]),
        ([Decimal("1.50"), Decimal("2.00")], ["1.5", "2.00"]),
        (["a", ""], ["a", ""]),
    ],
)
def test_values_are_matched_by_their_texts(values, texts):
    wanted = ["one", "two"]
    assert groups(dict(zip(texts, wanted, strict=True)), values, 1) == wanted
    assert groups(dict(zip(values, wanted, strict=True)), values, 1) == wanted
    assert groups({"common": texts, "keep": 1, "label": "rest"}, values, 1) == [texts[0], "rest"]


def test_categories_and_large_texts_have_the_groups_of_texts():
    values = pa.array(list(TREE))
    wanted = [path[0] for path in TREE.values()]
    for array in (values.dictionary_encode(), values.cast(pa.large_string()), values.cast(pa.string_view())):
        assert hierarchy_of(TREE).groups(array, 1).to_pylist() == wanted


@pytest.mark.parametrize(
    ("description", "values", "named"),
    [
        (TREE, ["Berlin", "Rom", "Wien"], "'Rom' and 1 more have no place .* a value that it names .'Berlin', .*, ..."),
        ({"widths": [5]}, ["1", "n/a"], "'n/a' has no place in its hierarchy; expected a number"),
        ({"widths": [5]}, [1.0, np.inf], "inf has no place"),
        ({"widths": [5]}, [True], "True has no place"),
        (
            {"dates": ["year"]},
            ["2001-05-17", "17.5.2001"],
            "'17.5.2001' has no place .* expected a date.* by date_part, ",
        ),
        ({"dates": ["year"]}, ["2001-02-30"], "'2001-02-30' has no place"),
        ({"dates": ["year"]}, [3], "3 has no place"),
        ({"digits": 2}, [1.5], "1.5 has no place .* text or a whole number"),
        ({"first": 2}, [1.5], "1.5 has no place .* text or a whole number"),
    ],
)
def test_values_without_a_place_in_the_hierarchy_are_refused(description, values, named):
    hierarchy = hierarchy_of(description)
    for level in range(1, hierarchy.height + 1):
        with pytest.raises(InputError, match=f"column 'x': {named}"):
            hierarchy.groups(pa.array(values), level)
        placed = hierarchy.groups_or_null(pa.array(values), level).is_valid().to_pylist()
        assert placed.count(False) == (2 if "1 more" in named else 1)


ROOTS = {
    "a root of another name": ({"a": ["x", "All"], "b": ["y", "All"]}, ["x", "All"]),
    "no root": ({"a": ["x"], "b": ["y"]}, ["x", "*"]),
    "the usual root": ({"a": ["x", "*"], "b": ["y", "*"]}, ["x", "*"]),
    "two levels of one group": ({"a": ["x", "All", "*"], "b": ["y", "All", "*"]}, ["x", "All"]),
    "three of them": ({"a": ["All", "all", "*"], "b": ["All", "all", "*"]}, ["All"]),
    "some paths with the usual root": ({"a": ["x", "*"], "b": ["y", "z"]}, ["x", "*", "*"]),
    "one value": ({"a": "All"}, ["All"]),
    "numbers": ({"a": [1, 0], "b": [2, 0]}, ["1", "0"]),
}


@pytest.mark.parametrize(("tree", "path"), ROOTS.values(), ids=ROOTS)
def test_a_level_of_one_group_is_the_top(tree, path, tmp_path):
    lines = "\n".join(
        ";".join(map(str, [value, *([names] if isinstance(names, str) else names)])) for value, names in tree.items()
    )
    (tmp_path / "h.csv").write_text(lines)
    (tmp_path / "h.json").write_text(json.dumps(tree))
    given_ways = [tree, {"values": tree}, tmp_path / "h.json"]
    if len({names[-1] == "*" for names in tree.values()}) == 1:
        # A file of lines of which some end in * lacks it in the others.
        given_ways.append(tmp_path / "h.csv")
    for one in given_ways:
        hierarchy = hierarchy_of(one)
        assert (hierarchy.height, hierarchy.root) == (len(path), path[-1])
        assert [hierarchy.groups(pa.array(["a"]), level)[0].as_py() for level in range(1, len(path) + 1)] == path
        assert hierarchy_of(hierarchy.to_plan()) == hierarchy


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_empty_columns_have_no_groups(kind):
    hierarchy = hierarchy_of(KINDS[kind][0])
    for none in (pa.nulls(0), pa.array([], pa.int64()), pa.array([], pa.string())):
        assert hierarchy.groups(none, 1).to_pylist() == []


def test_a_hierarchy_of_one_column_may_serve_another():
    hierarchy = hierarchy_of(TREE)
    assert hierarchy.for_column("town") == hierarchy
    with pytest.raises(InputError, match="column 'town': 'Rom'"):
        hierarchy.for_column("town").groups(pa.array(["Rom"]), 1)
    with pytest.raises(InputError, match="column 'x': 'Rom'"):
        hierarchy.groups(pa.array(["Rom"]), 1)


BAD = {
    "widths that do not nest": ({"widths": [5, 12]}, r"widths 5 \(level 1\) and 12 \(level 2\) do not nest.*Take 10"),
    "decimals that do not nest": ({"widths": [0.1, 0.25]}, r"0.1 \(level 1\) and 0.25 .*Take 0.2, say, for 0.25"),
    "widths that shrink": ({"widths": [10, 5]}, "do not nest: .*Take 20, say, for 5"),
    "a width that is none": ({"widths": [5, 0]}, "expected a list of positive numbers"),
    "a width that is text": ({"widths": ["5"]}, "expected a list of positive numbers"),
    "a width alone": ({"widths": 5}, r"expected a list of positive numbers, such as \[5, 10, 20\], got 5"),
    "a start that is none": ({"widths": [5], "start": "x"}, "start: expected a number, got 'x'"),
    "digits that do not ascend": ({"digits": [2, 2]}, "digits: expected how many"),
    "first characters that do not descend": (
        {"first": [1, 3]},
        r"first: expected .* such as \[3, 1\], up to 1,000; got",
    ),
    "no first characters": ({"first": 0}, "first: expected how many"),
    "first characters as text": ({"first": "3"}, "first: expected how many"),
    "too many levels": (
        {"values": {own: [own] * 32_766 for own in "ab"}},
        "expected at most 32,766 levels, got 32,767",
    ),
    "more digits than fit into memory": ({"digits": 10**9}, r"digits: expected .* up to 1,000; got 1000000000"),
    "a mask that is too long": ({"digits": [10**9]}, r"digits: expected .* up to 1,000; got"),
    "a length that is too large": ({"digits": 2, "length": 10**9}, "length: expected a whole number of digits"),
    "a width beyond floats": ({"widths": [10**400]}, "widths: expected a list of positive numbers"),
    "no digits": ({"digits": 0}, "digits: expected how many"),
    "a length that is none": ({"digits": 2, "length": 0}, "length: expected a whole number"),
    "a unit that is none": ({"dates": ["month", "yaer"]}, "got 'yaer'. Did you mean 'year'?"),
    "units that do not nest": ({"dates": ["year", "month"]}, r"'year' \(level 1\) and 'month' \(level 2\) do not nest"),
    "weeks in months": ({"dates": ["week", "month"]}, "do not nest: .*months and years cut"),
    "more than there are": ({"common": ["a"], "keep": [2]}, "how many of the 1 common values are kept"),
    "keeping more above": ({"common": ["a", "b"], "keep": [1, 2]}, "fewer at each level"),
    "common twice": ({"common": ["a", "a"]}, "'a' is there twice"),
    "a misspelt word": ({"width": [5]}, "'width' alone. Did you mean 'widths'?"),
    "a key that is none": ({"widths": [5], "strat": 3}, "no key 'strat' beside 'widths'.*Did you mean 'start'?"),
    "levels that do not nest": (
        {"a": ["x", "y"], "c": ["w", "y"], "b": ["x", "z"]},
        "'x' is part of 'z' and of 'y': levels 1 and 2 of 'b' and of 'a'",
    ),
    "unequal depths": ({"a": ["x"], "b": ["x", "y"]}, "as many names for each value, got 1 to 2"),
    "two of one text": ({1: "a", "1": "b"}, "1 and '1' have one text, '1'"),
    "no name": ({"a": [None]}, "expected text, numbers, dates and the like, got None"),
    "nothing": ({}, "expected a dictionary of values"),
    "missing values alone": ({None: ["x"]}, "expected a dictionary of values"),
    "a list": ([5, 10], r"expected \{ widths"),
    "another file": ("ages.txt", r"expected \{ widths .*\.csv"),
    "no file": ("no.csv", "no.csv: No such file"),
}


@pytest.mark.parametrize(("given_", "words"), BAD.values(), ids=BAD)
def test_bad_descriptions_of_hierarchies_are_refused(given_, words):
    with pytest.raises(InputError, match=words) as caught:
        hierarchy_of(given_)
    assert str(caught.value).startswith("hierarchies: column 'x'")


def test_values_may_have_the_names_of_keys():
    assert groups({"values": {"widths": ["w"], "start": ["s"]}}, ["widths", "start"], 1) == ["w", "s"]
