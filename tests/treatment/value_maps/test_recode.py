"""Recoding: values are replaced by groups."""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpupif
from gpupif.errors import ColumnTypeError, InputError
from gpupif.hierarchies.open import open_hierarchies
from gpupif.treatment.plan import Plan
from gpupif.treatment.value_maps.recode import Recode
from tests.helpers.treated import treated, treated_type, treated_values

DAY = datetime.date


def test_a_mapping_matches_values_or_their_texts():
    by_value = Recode("x", mapping={1: "low", 2: "low", 3: "high"})
    by_text = Recode("x", mapping={"1": "low", "2": "low", "3": "high"})
    expected = ["high", "low", None, "low"]
    for how in (by_value, by_text):
        assert treated_values([3, 1, None, 2], how) == expected
        assert treated_values(pd.array([3, 1, None, 2], "Int8"), how) == expected
        assert treated_values(["3", "1", None, "2"], how) == expected
        assert treated(pl.DataFrame({"x": [3, 1, None, 2]}), how)["x"] == expected


def test_a_mapping_may_have_dates_and_booleans():
    dates = [DAY(2020, 1, 31), DAY(2020, 2, 1)]
    for column in (dates, pd.to_datetime(dates)):
        assert treated_values(column, Recode("x", mapping={"2020-01-31": "a", "2020-02-01": "b"})) == ["a", "b"]
        assert treated_values(column, Recode("x", mapping={DAY(2020, 1, 31): "a", DAY(2020, 2, 1): "b"})) == ["a", "b"]
    assert treated_values([True, False], Recode("x", mapping={"true": "yes", False: "no"})) == ["yes", "no"]


def test_the_type_of_a_column_follows_from_its_mapping():
    assert treated_type(np.array([1, 2], np.int16), Recode("x", mapping={1: 10, 2: 20})) == pa.int64()
    assert treated_type([1.5, 2.5], Recode("x", mapping={1.5: 1, 2.5: 2})) == pa.float64()
    assert treated_type([1, 2], Recode("x", mapping={1: 1.5, 2: 2})) == pa.float64()
    assert treated_values([1, 2], Recode("x", mapping={1: 1, 2: "many"})) == ["1", "many"]
    assert treated_values(["a", "b"], Recode("x", mapping={"a": 1, "b": 2})) == [1, 2]


def test_a_mapping_to_none_suppresses_the_value():
    assert treated_values(["a", "b"], Recode("x", mapping={"a": "c", "b": None})) == ["c", None]
    assert treated_values([1, 2], Recode("x", mapping={1: None, 2: None})) == [None, None]


def test_a_value_without_a_place_is_refused_suppressed_or_kept():
    mapping = {"a": "c"}
    with pytest.raises(InputError, match="column 'x': no place in the mapping for 'b'"):
        treated_values(["a", "b"], Recode("x", mapping=mapping))
    assert treated_values(["a", "b"], Recode("x", mapping=mapping, unmapped="suppress")) == ["c", None]
    assert treated_values(["a", "b", None], Recode("x", mapping=mapping, unmapped="keep")) == ["c", "b", None]
    assert treated_values([1, 2], Recode("x", mapping={1: "one"}, unmapped="keep")) == ["one", "2"]
    assert treated_values([1, 2], Recode("x", mapping={1: 7}, unmapped="keep")) == [7, 2]


def test_an_unused_category_needs_no_place_in_a_mapping():
    """Check a label that no row has any more, after rows were removed or cells suppressed."""
    first = Recode("x", mapping={"a": "a", "b": None})
    column = pd.Categorical(["a", "a"], categories=["a", "b"])
    assert treated_values(column, Recode("x", mapping={"a": "c"})) == ["c", "c"]
    assert treated_values(["a", "b"], first, Recode("x", mapping={"a": "c"})) == ["c", None]


def test_bins_go_from_an_edge_up_to_the_next():
    bins = Recode("x", edges=[0, 18, 65, math.inf])
    expected = ["[0, 18)", "[0, 18)", "[18, 65)", "[18, 65)", "[65, inf)", None]
    assert treated_values([0, 17, 18, 64, 65, None], bins) == expected
    assert treated_values(pd.array([0, 17, 18, 64, 65, None], "UInt8"), bins) == expected
    assert treated_values(["0", "17.5", "18", "64.99", "65.0", None], bins) == expected
    assert (
        treated_values([Decimal("0.00"), Decimal("17.99"), Decimal(18), Decimal("64.99"), Decimal(65), None], bins)
        == expected
    )
    named = Recode("x", edges=[0, 18, 65, math.inf], labels=["child", "adult", "old"])
    assert treated_values([1, 20, 70], named) == ["child", "adult", "old"]
    assert treated_values([1, 20, 70], Recode("x", edges=[0, 18, 65, math.inf], labels=[9, 40, 75])) == [9, 40, 75]


def test_a_value_in_no_bin_is_refused_suppressed_or_kept():
    with pytest.raises(InputError, match=r"no place in the bins for -1, 10\. Add one"):
        treated_values([-1, 5, 10], Recode("x", edges=[0, 10]))
    assert treated_values([-1, 5, 10], Recode("x", edges=[0, 10], unmapped="suppress")) == [None, "[0, 10)", None]
    assert treated_values(["n/a", "5"], Recode("x", edges=[0, 10], unmapped="keep")) == ["n/a", "[0, 10)"]


def test_edges_are_compared_exactly():
    least = 2**53
    values = [least, least + 1, least + 2]
    assert treated_values(values, Recode("x", edges=[0, least + 1, 2**63], labels=["a", "b"])) == ["a", "b", "b"]
    assert treated_values(
        np.array([2**64 - 1, 0], np.uint64), Recode("x", edges=[0, 2**64 - 1, 2**64], labels=["a", "b"])
    ) == ["b", "a"]
    near = [Decimal("64.99999999999999999999"), Decimal("65.00000000000000000000")]
    assert treated_values(near, Recode("x", edges=[0, 65, 100], labels=["a", "b"])) == ["a", "b"]
    assert treated_values([0.1, 0.3], Recode("x", edges=[0, 0.3, 1], labels=["a", "b"])) == ["a", "b"]
    assert treated_values(["0.1", "0.3"], Recode("x", edges=[0, 0.3, 1], labels=["a", "b"])) == ["a", "b"]


@given(
    st.lists(st.integers(-50, 50), min_size=1),
    st.lists(st.integers(-60, 60), min_size=2, max_size=6, unique=True).map(sorted),
    st.sampled_from(["int8", "int64", "float32", "float64", "str"]),
)
def test_bins_follow_their_definition(values, edges, kind):
    found = treated_values(pd.Series(values).astype(kind), Recode("x", edges=edges, unmapped="suppress"))
    bins = list(pairwise(edges))
    assert found == [next((f"[{a}, {b})" for a, b in bins if a <= value < b), None) for value in values]


def test_bins_may_have_dates_as_edges():
    edges = [DAY(2000, 1, 1), DAY(2010, 1, 1), DAY(2020, 1, 1)]
    values = [DAY(2000, 1, 1), DAY(2009, 12, 31), DAY(2010, 1, 1), None]
    expected = ["[2000-01-01, 2010-01-01)"] * 2 + ["[2010-01-01, 2020-01-01)", None]
    for given_edges in (edges, [str(edge) for edge in edges]):
        for column in (values, pd.to_datetime(values), pd.to_datetime(values).tz_localize("Europe/Berlin")):
            assert treated_values(column, Recode("x", edges=given_edges)) == expected


@pytest.mark.parametrize(
    ("how", "fragment"),
    [
        ({}, "expected one of level, mapping and edges, got none"),
        ({"level": 1, "edges": [0, 1]}, "got level and edges"),
        ({"level": 1}, "column 'x' has no hierarchy"),
        ({"level": -1}, "level: expected a whole number of levels, 0 or more"),
        ({"level": "1"}, "level: expected a whole number, got '1'"),
        ({"mapping": {}}, "expected a dictionary"),
        ({"mapping": ["a"]}, "mapping: expected a table of keys and values"),
        ({"mapping": {"a": ["b"]}}, "expected texts, numbers or booleans as new values, got ['b']"),
        ({"mapping": {1: "a", "1": "b"}}, "'1' is given twice"),
        ({"mapping": {"a": "b"}, "labels": ["c"]}, "labels are of edges"),
        ({"mapping": {"a": "b"}, "unmapped": "drop"}, "expected 'error' or 'suppress' or 'keep', got 'drop'"),
        ({"edges": [1]}, "expected a list of two or more numbers or dates, got [1]"),
        ({"edges": [1, "b"]}, "all of one kind; got 'b'"),
        ({"edges": [1, math.nan]}, "got nan"),
        ({"edges": [1, DAY(2000, 1, 1)]}, "all of one kind"),
        ({"edges": [1, 1]}, "expected them to ascend, got 1 before 1"),
        ({"edges": [0, 1, 2], "labels": ["a"]}, "labels: expected 2, one for each bin"),
        ({"edges": [0, 1, 2], "labels": ["a", "a"]}, "expected different texts or numbers"),
    ],
)
def test_bad_arguments_are_refused(how, fragment):
    with pytest.raises(InputError) as caught:
        treated_values([1, 2], Recode("x", **how))
    assert fragment in str(caught.value)


def test_bins_that_do_not_fit_the_column_are_refused():
    with pytest.raises(ColumnTypeError, match="column 'x': expected numbers, got bool"):
        treated_values([True], Recode("x", edges=[0, 1]))
    with pytest.raises(InputError, match="expected edges that are dates"):
        treated_values([DAY(2000, 1, 1)], Recode("x", edges=[0, 1]))
    with pytest.raises(ColumnTypeError, match="expected dates, as the edges are, got int64"):
        treated_values([1], Recode("x", edges=["2000-01-01", "2001-01-01"]))


def test_values_become_their_groups_at_a_level():
    hierarchies = open_hierarchies({"x": {"widths": [5, 10]}})
    values = [3, 7, 12, None]
    assert treated_values(values, Recode("x", level=1), hierarchies=hierarchies) == [
        "[0, 5)",
        "[5, 10)",
        "[10, 15)",
        None,
    ]
    assert treated_values(values, Recode("x", level=2), hierarchies=hierarchies) == [
        "[0, 10)",
        "[0, 10)",
        "[10, 20)",
        None,
    ]
    assert treated_values(values, Recode("x", level=0), hierarchies=hierarchies) == values


def test_all_cells_are_alike_at_the_top():
    hierarchies = open_hierarchies({"x": {"widths": [5]}})
    for values in ([3, 7, None], [3, 4], [None, None]):
        found = treated_values(pd.array(values, "Int64"), Recode("x", level=2), hierarchies=hierarchies)
        assert found == ["*"] * len(values)
    assert treated_values(["3", "x"], Recode("x", level=2, unmapped="suppress"), hierarchies=hierarchies) == ["*", None]


def test_the_top_has_the_name_that_its_hierarchy_gives():
    hierarchies = open_hierarchies({"x": {"a": ["A", "All"], "b": ["B", "All"]}})
    values = ["a", "b", None]
    assert treated_values(values, Recode("x", level=1), hierarchies=hierarchies) == ["A", "B", None]
    assert treated_values(values, Recode("x", level=2), hierarchies=hierarchies) == ["All"] * 3
    with pytest.raises(InputError, match="from 0 to 2"):
        Plan([Recode("x", level=3)], hierarchies=hierarchies)


def test_a_value_without_a_group_is_refused_suppressed_or_kept():
    hierarchies = open_hierarchies({"x": {"a": ["A", "*"], "b": ["A", "*"], "z": ["Z", "*"]}})
    values = ["a", "c", "b", None]
    with pytest.raises(InputError, match=r"column 'x': 'c' has no place in its hierarchy.*unmapped = 'suppress'"):
        treated_values(values, Recode("x", level=1), hierarchies=hierarchies)
    suppressed = Recode("x", level=1, unmapped="suppress")
    assert treated_values(values, suppressed, hierarchies=hierarchies) == ["A", None, "A", None]
    kept = Recode("x", level=1, unmapped="keep")
    assert treated_values(values, kept, hierarchies=hierarchies) == ["A", "c", "A", None]


def test_a_plan_with_a_missing_level_is_refused():
    with pytest.raises(InputError, match="from 0 to 2"):
        Plan([Recode("x", level=3)], hierarchies={"x": {"widths": [5]}})
    with pytest.raises(InputError, match="column 'x' has no hierarchy"):
        Plan([Recode("x", level=1)])


@pytest.mark.parametrize("by", [{"mapping": {"a": "A"}}, {"edges": [0, 2]}, {"level": 1}], ids=str)
def test_advice_on_values_without_a_group_is_what_a_plan_takes(by):
    hierarchies = {"x": {"values": {"a": ["A"], "1": ["A"]}}} if "level" in by else None
    table = pd.DataFrame({"x": [1, 7]} if "edges" in by else {"x": ["a", "c"]})
    with pytest.raises(InputError) as refused:
        gpupif.treat(table, Plan([Recode("x", **by)], hierarchies))
    advised = re.findall("'(suppress|keep)'", re.search("unmapped = .*", str(refused.value))[0])
    assert advised == ["suppress", "keep"]
    for word in advised:
        document = tomllib.loads(f"do = 'recode'\ncolumn = 'x'\nunmapped = '{word}'\n")
        plan = Plan.from_dict(
            {"treatment": [{**document, **by}], **({"hierarchies": hierarchies} if hierarchies else {})}
        )
        assert len(gpupif.treat(table, plan).table) == 2
