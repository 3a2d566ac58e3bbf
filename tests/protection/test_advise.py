"""`advise` beside an oracle that makes each change to the table and scores what is left, in every way to run."""

from __future__ import annotations

import doctest
import json
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
import gpupif.protection.advise
from gpupif import advise
from gpupif.errors import ColumnNotFoundError, InputError, NearlyUniqueWarning
from tests.helpers import naive_advice
from tests.helpers.counting_ways import OTHERS, in_memory
from tests.helpers.tables import SHARED_FIXTURES

pytestmark = pytest.mark.every_engine

FEW = settings(SHARED_FIXTURES, max_examples=10)
CLOSE = {"rel": 1e-12, "abs": 1e-12}
FIGURES = ("pif95", "fig", "k", "uniques")
# Of every column: values by pairs, then all but the first pair.
LETTERS = "abcdef"
GROUPS = [
    {letter: ["ab", "cd", "ef"][place // 2] for place, letter in enumerate(LETTERS)},
    {letter: "ab" if place < 2 else "others" for place, letter in enumerate(LETTERS)},
]
TREE = {letter: [level[letter] for level in GROUPS] for letter in LETTERS}


def by_change(found):
    """The rows of the frame by column and level, None for one that is dropped."""
    return {
        (row["column"], None if row["do"] == "drop" else int(row["level"])): row
        for row in found.changes.to_dict("records")
    }


def test_advice_for_the_table_of_the_manual_has_its_figures():
    """Manual, section 1: without names PIF 95 falls to a seventh, for 2.2359 bits."""
    found = advise(gpupif.datasets.pif_example())
    assert found.before["pif95"] == pytest.approx(3.1783, abs=5e-5)
    assert found.before["fig"] == pytest.approx(2.1426 + 5.6538 + 4.0386, abs=5e-4)
    assert (found.before["k"], found.before["uniques"]) == (1, 7)
    name = by_change(found)["name", None]
    assert name["pif95"] == pytest.approx(0.4211, abs=5e-5)
    assert name["bits"] == pytest.approx(2.2359, abs=5e-5)
    assert name["pif95_change"] == name["pif95"] - found.before["pif95"] == -name["bought"]
    assert (name["k"], name["uniques"], name["uniques_change"], name["values"]) == (1, 1, -6, 0)
    assert name["bought_per_bit"] == pytest.approx((3.1783 - 0.4211) / 2.2359, abs=1e-4)


def test_the_examples_of_the_docstring_are_right():
    assert doctest.testmod(gpupif.protection.advise).failed == 0


@st.composite
def frames(draw):
    """Tables of two to four columns, some values missing."""
    values = st.sampled_from([*LETTERS, None])
    columns = draw(st.integers(2, 4))
    rows = draw(st.lists(st.tuples(*[values] * columns), min_size=1, max_size=12))
    return pd.DataFrame(rows, columns=list("ABCD")[:columns], dtype=object)


@pytest.mark.slow
@given(frames(), st.booleans())
@FEW
def test_each_change_has_the_figures_of_the_oracle(frame, with_attribute):
    known = list(frame)[:-1] if with_attribute else list(frame)
    sensitive = list(frame)[-1:] if with_attribute else []
    tree = dict.fromkeys(frame, GROUPS)
    found = advise(frame, dict.fromkeys(frame, TREE), quasi_identifiers=known, sensitive=sensitive)
    before = naive_advice.figures_of(frame, known, [*known, *sensitive])
    assert found.before == pytest.approx(before, **CLOSE)
    changes = by_change(found)
    # The sensitive column stays as it is.
    expected = naive_advice.changes_of(frame, tree, known)
    for change, (changed, bits) in expected.items():
        # Levels at which nothing more is put together are left out, and those that are the same as dropping.
        if change not in changes:
            assert change[1] is not None
            level = expected[change[0], change[1] - 1] if change[1] > 1 else (frame, 0.0)
            dropped = expected[change[0], None]
            assert any(bits == pytest.approx(other[1], **CLOSE) for other in (level, dropped))
            continue
        row = changes.pop(change)
        figures = naive_advice.figures_of(changed, known, [*known, *sensitive])
        assert {name: row[name] for name in FIGURES} == pytest.approx(figures, **CLOSE)
        assert row["bits"] == pytest.approx(bits, **CLOSE)
        assert row["bought"] == pytest.approx(before["pif95"] - figures["pif95"], **CLOSE)
        left = naive_advice.values_of(changed[change[0]]) if change[0] in changed else []
        assert row["values"] == len(set(left))
    assert not changes


@pytest.mark.slow
@given(frames(), st.sampled_from(["pif95", "k", "max csf", "uniques", "mean cig"]))
@FEW
def test_changes_are_ordered_by_what_a_bit_buys(frame, criterion):
    """The change that buys most per bit comes first, and no change buys risk for zero bits."""
    found = advise(frame, dict.fromkeys(frame, TREE), criterion)
    changes, sign = found.changes, -1 if criterion == "k" else 1
    least = 0.01 * abs(found.before[found.criterion])
    worth = (changes["bought"] > 0) & (changes["bought"] >= least)
    assert worth.is_monotonic_decreasing
    for some in (changes[worth], changes[~worth]):
        assert (np.diff(some["bought_per_bit"]) <= 0).all()
    assert (changes["bits"] >= 0).all()
    assert changes["bought"].tolist() == (sign * (found.before[found.criterion] - changes[found.criterion])).tolist()
    for _, row in changes.iterrows():
        assert row["bought_per_bit"] == pytest.approx(row["bought"] / row["bits"] if row["bought"] else 0.0, **CLOSE)
    if criterion in ("k", "uniques"):
        # Classes only ever grow together.
        assert (changes["bought"] >= 0).all()


def people():
    """A table with numbers, a date, missing values and a nearly constant column."""
    table = gpupif.datasets.census(60, seed=3, columns=4)
    table["region"] = table["region"].astype(str)
    table["sex"] = table["sex"].astype(object).where(np.arange(60) % 9 > 0, None)
    table["born"] = pd.date_range("1950-01-01", periods=60, freq="211D")
    return table


@pytest.mark.parametrize("way", OTHERS)
def test_every_way_gives_the_same_bits(way):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NearlyUniqueWarning)
        for options in ({}, {"criterion": "max csf", "quasi_identifiers": ["age", "sex"], "sensitive": ["region"]}):
            expected = in_memory(advise, people(), **options)
            found = way(advise, people(), **options)
            assert found.before == expected.before
            pd.testing.assert_frame_equal(found.changes, expected.changes, check_exact=True)


@pytest.mark.slow
def test_every_kind_of_frame_gets_the_same_advice(tmp_path):
    table = people().drop(columns="born")
    table.to_parquet(tmp_path / "t.parquet")
    table.to_csv(tmp_path / "t.csv", index=False)
    expected = advise(table).changes
    for other in (pl.from_pandas(table), pa.Table.from_pandas(table), tmp_path / "t.parquet", tmp_path / "t.csv"):
        pd.testing.assert_frame_equal(advise(other).changes, expected, check_exact=True)


def test_a_criterion_that_should_rise_is_improved_by_a_rise():
    """A higher k is less risky."""
    table = pd.DataFrame({"a": list("ccccdddd") * 2, "b": list("eeffeefg") + ["a"] * 8})
    found = advise(table, {"b": TREE | {"g": ["ef", "others"]}, "a": TREE}, "k>=2")
    assert (found.criterion, found.before["k"]) == ("k", 1)
    first = found.changes.iloc[0]
    # Dropping the column makes classes of eight, but gives up more per row that is bought.
    assert (first["column"], first["level"], first["k"], first["bought"]) == ("b", 1, 4, 3)
    assert by_change(found)["b", None]["bought"] == 7
    assert by_change(found)["a", None]["k"] == 1


def test_a_level_equal_to_dropping_is_not_tried():
    table = pd.DataFrame({"a": list("aabbccdd"), "b": [1, 2, 3, 4] * 2})
    found = advise(table, {"a": TREE, "b": {"widths": [10, 20]}})
    assert set(by_change(found)) == {("a", None), ("a", 1), ("b", None)}


def test_the_text_says_if_no_change_lowers_the_risk(capsys):
    table = pd.DataFrame({"a": list("aabb"), "b": list("cdcd"), "c": list("eeee")})
    found = advise(table, criterion="max csf")
    assert (found.changes["bought"] == 0).all()
    assert (found.changes["bought_per_bit"] == 0).all()
    # What gives up least comes first then.
    assert found.changes["bits"].is_monotonic_increasing
    assert "No single change makes max csf less risky.\n" in str(found)
    assert "What a change costs, in bits given up\n" in str(found)
    assert "most per bit" not in str(found)


def test_a_level_equal_to_dropping_in_the_table_is_not_listed():
    table = pd.DataFrame({"a": list("aabbcc"), "b": list("cdcdcd")})
    found = advise(table, {"a": {"values": {"a": ["ab", "all", "*"], "b": ["ab", "all", "*"], "c": ["c", "all", "*"]}}})
    assert set(by_change(found)) == {("a", 1), ("a", None), ("b", None)}


def test_the_column_of_a_criterion_is_not_dropped():
    table = pd.DataFrame({"a": list("aabb"), "b": list("cdcd"), "ill": list("efff")})
    found = advise(table, {}, "mean cig(ill)")
    assert ("ill", None) not in by_change(found)
    assert ("a", None) in by_change(found)
    found = advise(table, {}, "t", quasi_identifiers=["a", "b"], sensitive=["ill"])
    assert ("ill", None) not in by_change(found)
    assert found.before["t"] == 0.75
    assert advise(table[["a"]], {}).changes["do"].ne("drop").all()


def test_changes_are_advised_against_any_known_columns():
    """If a column is dropped, the attackers know as many columns as are left."""
    table = pd.DataFrame({"a": list("aabbb"), "b": list("cdcdd"), "c": list("eefff")})
    found = by_change(advise(table, {}, "known=2: max csf"))
    assert found["a", None]["known=2: max csf"] == gpupif.score(table[["b", "c"]], "csf", known=1).csf.max(axis=None)
    found = by_change(advise(table, {}, "known=a,b: k"))
    assert found["a", None]["known=a,b: k"] == gpupif.models.k_anonymity(table, ["b"])
    found = by_change(advise(table, {}, "anyone: max csf", attackers={"anyone": 2}))
    assert found["c", None]["anyone: max csf"] == gpupif.score(table[["a", "b"]], "csf", known=1).csf.max(axis=None)
    found = by_change(advise(table, {}, "neighbour: pif95", attackers={"neighbour": ["a", "b"]}))
    expected = gpupif.score(table[["b", "c"]], "cig", known=["b"]).pif(95)
    assert found["a", None]["neighbour: pif95"] == expected


def test_changes_are_advised_against_attackers_who_know_further_columns():
    """A known column that is no quasi-identifier is not changed."""
    table = pd.DataFrame({"a": list("aabbb"), "b": list("cdcdd"), "zip": list("eefff")})
    expected = {column: gpupif.score(table, "cig", [column], known=["zip"]).fig() for column in "ab"}
    for criterion, attackers in (("known=zip: mean cig", None), ("seller: mean cig", {"seller": ["zip"]})):
        found = advise(table, {}, criterion, quasi_identifiers=["a", "b"], attackers=attackers)
        assert found.columns == ["a", "b"]
        assert by_change(found)["a", None][criterion] == pytest.approx(expected["b"]["b"] / 5, **CLOSE)
        assert by_change(found)["a", None]["k"] == 2
    with pytest.raises(ColumnNotFoundError, match="zap"):
        advise(table, {}, "known=zap: k", quasi_identifiers=["a"])


def test_missing_hierarchies_are_proposed():
    found = advise(people(), columns=["age", "region"])
    assert {"age", "region"} == set(found.changes.loc[found.changes["do"] == "recode", "column"])


def test_the_result_is_given_as_json_and_text(tmp_path):
    found = advise(gpupif.datasets.pif_example())
    document = json.loads(found.to_json())
    assert document == found.to_dict()
    assert (document["rows"], document["criterion"], document["columns"]) == (
        7,
        "pif95",
        ["gender", "name", "eye_color"],
    )
    drop = next(row for row in document["changes"] if row["do"] == "drop")
    assert drop["level"] is None
    assert "PIF 95" in str(found)
    assert repr(found).startswith("<Advice for 7 rows: ")
    assert set(found.seconds) == {"read and count", "advise"}


def test_the_remaining_columns_become_quasi_identifiers():
    table = gpupif.datasets.pif_example()
    few = advise(table, columns=["gender", "name"])
    assert few.columns == ["gender", "name"]
    assert few.before["pif95"] == gpupif.score(table[["gender", "name"]], "cig").pif(95)
    # Without quasi-identifiers all others are these.
    rest = advise(table, sensitive="name")
    assert rest.before == advise(table, quasi_identifiers=["gender", "eye_color"], sensitive=["name"]).before
    assert rest.before["k"] == gpupif.models.k_anonymity(table, ["gender", "eye_color"])


def test_a_warning_names_nearly_unique_columns():
    table = pd.DataFrame({"id": np.arange(60), "b": np.arange(60) % 3})
    with pytest.warns(NearlyUniqueWarning, match="'id'"):
        found = advise(table)
    assert math.isfinite(found.changes["bits"].sum())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"criterion": "pif"}, "expected a percentile after pif"),
        ({"criterion": "max cfs"}, "Did you mean 'csf'"),
        ({"criterion": "k<=3"}, "write k>=3"),
        ({"criterion": 3}, "expected limits as text"),
        ({"criterion": "t"}, "name one with sensitive="),
        ({"criterion": "known=5: k"}, "expected at most 3"),
        ({"criterion": "neighbour: k"}, "no attacker 'neighbour'"),
        ({"columns": ["name"], "quasi_identifiers": ["gender"]}, "columns: expected columns to look at"),
        ({"quasi_identifiers": ["name"], "sensitive": ["name"]}, "sensitive: column 'name' is a quasi-identifier too"),
        ({"hierarchies": {"name": {"Anton": ["a"]}}}, "no place in its hierarchy"),
        ({"hierarchies": {"age": {"widths": [5]}}}, "no column 'age'"),
    ],
)
def test_bad_input_is_refused(options, words):
    with pytest.raises(InputError) as raised:
        advise(gpupif.datasets.pif_example(), **options)
    assert words in str(raised.value)


@pytest.mark.parametrize("argument", ["columns", "quasi_identifiers", "sensitive"])
def test_unknown_columns_are_refused(argument):
    with pytest.raises(ColumnNotFoundError, match=f"^{argument}: no column 'nam'"):
        advise(gpupif.datasets.pif_example(), **{argument: ["nam"]})


@pytest.mark.parametrize("columns", [{}, {"quasi_identifiers": ["gender"]}])
def test_errors_say_which_attacker_knows_a_column_that_is_not_there(columns):
    with pytest.raises(ColumnNotFoundError, match=r"^attackers: 'boss': no column 'nam' in"):
        advise(gpupif.datasets.pif_example(), {}, "boss: pif95", attackers={"boss": ["gender", "nam"]}, **columns)
