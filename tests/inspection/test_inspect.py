"""Facts of columns, and the roles that are proposed: by their definitions, and in every way to run."""

from __future__ import annotations

import doctest
import importlib
import math
from collections import Counter
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from dask import dataframe as dd
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.inspection import column_facts, table_facts
from tests.helpers.counting_ways import OTHERS, in_memory

ROWS = 200
RANDOM = np.random.default_rng(7)


def some(values, rows=ROWS):
    """Return `rows` values drawn from `values`, each of them at least once."""
    drawn = [*values, *RANDOM.choice(np.asarray(values, dtype=object), rows - len(values))]
    return list(RANDOM.permutation(np.asarray(drawn, dtype=object)))


# By column: the proposed role, the likely meaning (None: unknown), the evidence, and the values.
COLUMNS = {
    "id": ("identifier", "identifying codes", "name", list(range(1, ROWS + 1))),
    "row": ("leave out", "row numbers", "values", list(range(ROWS))),
    "Patient Name": ("identifier", "names", "name", [f"P. {i % 150}" for i in range(ROWS)]),
    "contact": (
        "identifier",
        "e-mail addresses",
        "values",
        [f"p{i}@example.org" if i % 4 else f"+49 30 {i:06}" for i in range(ROWS)],
    ),
    "email": ("identifier", "e-mail addresses", "name and values", [f"p{i}@example.org" for i in range(ROWS)]),
    "key": ("identifier", "identifying codes", "values", [f"{i:08x}-0000-4000-8000-000000000000" for i in range(ROWS)]),
    "hhid": ("identifier", "household numbers", "name", [i // 3 for i in range(ROWS)]),
    "ref": ("identifier", None, "distinction", [f"A{i}-{i * 7}" for i in range(ROWS)]),
    "age": ("quasi-identifier", "ages", "name", some(range(18, 95))),
    "sex": ("quasi-identifier", "sex or gender", "name", some(["f", "m"])),
    "dob": (
        "quasi-identifier",
        "dates of birth",
        "name and values",
        [date(1950, 1, 1) + timedelta(i * 31) for i in range(ROWS)],
    ),
    "came": ("quasi-identifier", "dates", "values", some(["2020-01-31", "2021-02-01", "2022-12-24"])),
    "zip": ("quasi-identifier", "postcodes", "name", some(["01067", "10115", "80331"])),
    "zone": ("quasi-identifier", "postcodes", "values", some([f"SW{i}A {i}AA" for i in range(1, 10)])),
    "colour": ("quasi-identifier", None, "nothing else", some(["red", "green", "blue"])),
    "religion": ("sensitive", "religion or belief", "name", some(["a", "b", None])),
    "dx": ("sensitive", "diagnosis codes (ICD-10)", "name and values", some([f"E1{i}.{i}" for i in range(9)])),
    "found": ("sensitive", "diagnosis codes (ICD-10)", "values", some([f"E1{i}.{i}" for i in range(9)])),
    "income": ("sensitive", "income and wealth", "name", list(RANDOM.lognormal(10, 1, ROWS))),
    "sample_weight": ("weight", "sampling weights", "name and values", some([1.5, 20.25, 7.0])),
    "sample_weight_1": ("leave out", "sampling weights", "name and values", some([1.5, 20.25, 8.0])),
    "ssn_flag": ("quasi-identifier", None, "nothing else", some([True, False])),
    "phone": ("quasi-identifier", None, "nothing else", some(["Apple", "Nokia"])),
    "device_id": ("quasi-identifier", None, "nothing else", some(["ios", "android", "web"])),
    "betrag": (
        "leave out",
        None,
        "distinction",
        [f"{i % 3}.{i:03},{i % 100:02}".removeprefix("0.") for i in range(100, 300)],
    ),
    "thousands": ("identifier", None, "distinction", [f"{i},{i + 100}" for i in range(1, 201)]),
    "two notations": ("identifier", None, "distinction", [f"{i}{',.'[i % 2]}5" for i in range(ROWS)]),
    "level": ("leave out", None, "distinction", list(RANDOM.normal(size=ROWS))),
    "notes": (
        "leave out",
        "free text",
        "values",
        [f"patient {i} came in the morning, mail p{i}@example.org" for i in range(ROWS)],
    ),
    "source": ("leave out", None, "values", ["survey"] * ROWS),
    "empty": ("leave out", None, "values", [None] * ROWS),
}
TABLE = pd.DataFrame({name: values for name, (*_, values) in COLUMNS.items()})


@pytest.fixture(scope="module")
def found():
    return in_memory(gpupif.inspect, TABLE)


@pytest.mark.parametrize("name", COLUMNS)
def test_each_column_has_its_proposal(found, name):
    row = found.columns.set_index("column").loc[name]
    role, meaning, evidence, _ = COLUMNS[name]
    assert (row["role"], row["looks_like"], row["evidence"]) == (role, meaning, evidence), row["reason"]
    assert found.roles[name] == role


def test_reasons_name_the_ground_of_a_proposal(found):
    reasons = found.columns.set_index("column")["reason"]
    assert "HIPAA (C)" in reasons["age"]
    assert "ages above 89" in reasons["age"]
    assert "75 % of the values look like e-mail addresses" in reasons["contact"]
    assert "100 % of the values" in reasons["email"]
    assert "200 hold e-mail addresses" in reasons["notes"]
    assert "'sample_weight' is proposed" in reasons["sample_weight_1"]
    assert "sum to" in reasons["sample_weight"]
    assert "nearly unique" in reasons["ref"]
    assert "nearly unique" in reasons["income"]
    assert "GDPR article 9" in reasons["religion"]


def naive(values):
    """Return distinct values, values that occur once, entropy and alpha-distinction, by their definitions."""
    known = [value for value in values if value is not None]
    counts = Counter(known)
    missing = len(values) - len(known)
    every = [*counts.values(), *([missing] if missing else [])]
    bits = -math.fsum(count / len(values) * math.log2(count / len(values)) for count in every)
    return {
        "values": len(counts),
        "missing": missing,
        "unique_share": every.count(1) / len(values),
        "alpha_distinction": len(every) / len(values),
        "entropy": bits,
    }


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("patient_id", [*range(7000, 7050), *range(7000, 7050), None], "2 rows a value: k counts rows, not people"),
        ("hhid", [number // 4 for number in range(100)], "4 rows a value: k counts rows, not households"),
        ("patient_id", list(range(7000, 7100)), None),
        ("colour", ["red", "blue"] * 50, None),
    ],
)
def test_a_verdict_says_that_rows_are_not_persons(name, values, said):
    last = gpupif.inspect(pd.DataFrame({name: values})).verdict()[3:]
    assert [line.split(" (see")[0] for line in last] == ([] if said is None else [f"`{name}` has {said}"])


def test_numbers_with_a_decimal_comma_are_numbers(found):
    rows = found.columns.set_index("column")
    assert rows.loc[["betrag", "thousands", "two notations"], "type"].tolist() == ["number", "text", "text"]
    assert rows.loc["betrag", "reason"].startswith("a measurement (200 distinct values in 200 rows): bin it")
    assert rows.loc["betrag", "reason"].endswith('read them with pandas read_csv(decimal=",")')


def test_numbers_are_as_defined(found):
    for row in found.columns.to_dict("records"):
        wanted = naive(COLUMNS[row["column"]][-1])
        assert {key: row[key] for key in wanted} == pytest.approx(wanted, abs=1e-12), row["column"]
        assert row["entropy"] == gpupif.information.entropy(TABLE, row["column"])


def largest_key(values):
    """Return the most rows that can be kept so that a column is a key, by the definition of Motwani and Xu."""
    best = 0
    for kept in range(1 << len(values)):
        rows = [value for place, value in enumerate(values) if kept >> place & 1]
        if len(set(rows)) == len(rows):
            best = max(best, len(rows))
    return best / len(values)


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=8))
@settings(max_examples=10, deadline=None)
def test_alpha_distinction_is_that_of_the_largest_key(values):
    assert gpupif.inspect(pd.DataFrame({"x": values})).columns["alpha_distinction"][0] == largest_key(values)


def same(one, other):
    pd.testing.assert_frame_equal(one.columns, other.columns)
    assert one.roles == other.roles
    assert one.rows == other.rows


@pytest.mark.every_engine
@pytest.mark.parametrize("way", OTHERS)
@pytest.mark.parametrize("parts", [1, 3])
def test_every_way_to_run_gives_the_same_facts(monkeypatch, found, way, parts):
    """Merge values in partitions, too, and have more distinct values than a sample takes."""
    monkeypatch.setattr(table_facts, "MOST_PARTITIONS", parts)
    monkeypatch.setattr(table_facts, "MERGING", 10**9)
    monkeypatch.setattr(column_facts, "SAMPLE_SIZE", 20)
    same(way(gpupif.inspect, TABLE), in_memory(gpupif.inspect, TABLE))


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 3])
def test_types_in_csv_are_those_of_whole_columns(tmp_path, monkeypatch, parts):
    """Take the type of all values of a column, whichever chunk they are in."""
    table = TABLE.assign(
        halves=[f"{i / 2}" for i in range(ROWS)],
        mixed=[str(i) if i % 50 else f"x{i}" for i in range(ROWS)],
        twice=["1", "1.0"] * (ROWS // 2),
        cents=[f"{i}.50" for i in range(ROWS)],
        padded=[f"{i:03}" for i in range(ROWS)],
    )
    file = tmp_path / "table.csv"
    table.to_csv(file, index=False)
    whole = gpupif.inspect(file)
    types = dict(zip(whole.columns["column"], whole.columns["type"], strict=True))
    assert [types[name] for name in ("halves", "mixed", "cents", "padded", "id", "dob")] == [
        *("number", "text", "number", "text", "whole number", "date")
    ]
    assert whole.columns.set_index("column").loc["twice", "values"] == 2
    monkeypatch.setattr(table_facts, "MOST_PARTITIONS", parts)
    monkeypatch.setattr(table_facts, "MERGING", 10**9)
    with gpupif.config(memory_limit="16GiB"):
        same(gpupif.inspect(file), whole)


def test_the_order_of_rows_does_not_matter(found):
    same(gpupif.inspect(TABLE.sample(frac=1, random_state=3)), found)


@pytest.mark.parametrize("kind", ["arrow", "polars"])
def test_other_frames_have_the_same_facts(found, kind):
    table = pa.Table.from_pandas(TABLE, preserve_index=False)
    if kind == "polars":
        polars = pytest.importorskip("polars")
        table = polars.from_arrow(table)
    same(gpupif.inspect(table), found)


def test_values_that_cannot_be_compared_are_left_out(tmp_path):
    frame = pd.DataFrame({"list": [[1], [2]], "mixed": [1, "a"], "name": ["x", "y"]})
    found = gpupif.inspect(frame).columns.set_index("column")
    assert found["type"].to_dict() == {"list": "other", "mixed": "other", "name": "text"}
    assert found["role"].to_dict() == {"list": "leave out", "mixed": "leave out", "name": "identifier"}
    frame[["list", "name"]].to_parquet(tmp_path / "lists.parquet")
    with gpupif.config(memory_limit="16GiB"):
        same(gpupif.inspect(tmp_path / "lists.parquet"), gpupif.inspect(frame[["list", "name"]]))
        assert gpupif.inspect(tmp_path / "lists.parquet", ["list"]).rows == 2


@pytest.mark.parametrize(
    ("values", "role", "words"),
    [
        ([1.5, -1.0, 2.0], "leave out", "other values than positive numbers"),
        ([1.5, None, 2.0], "leave out", "missing values"),
        (["a", "b", "c"], "leave out", "other values than positive numbers"),
        (["1.50", "2.50", "3.00"], "weight", "sum to 7 people"),
        ([0, 0, 1], "weight", "sum to 1 people"),
    ],
)
def test_weights_are_proposed_if_they_can_weigh(values, role, words):
    row = gpupif.inspect(pd.DataFrame({"pweight": values})).columns.iloc[0]
    assert row["role"] == role
    assert words in row["reason"]


def test_the_weight_of_a_body_is_no_sampling_weight():
    frame = pd.DataFrame({"weight": [70.5, 81.0, 66.0], "height": [1.7, 1.8, 1.65]})
    assert dict(gpupif.inspect(frame).roles) == {"weight": "quasi-identifier", "height": "quasi-identifier"}
    found = gpupif.inspect(frame[["weight"]])
    assert found.roles.weight == "weight"
    assert "if it is the weight of a body" in found.columns["reason"][0]


def test_shares_are_never_rounded_to_none_or_all():
    emails = [f"p{i}@example.org" for i in range(999)]
    reason = gpupif.inspect(pd.DataFrame({"x": [*emails, "none"]})).columns["reason"][0]
    assert "over 99 % of the values look like e-mail addresses" in reason
    codes = [f"A{i}" for i in range(999)]
    reason = gpupif.inspect(pd.DataFrame({"x": [*codes, "p@example.org"]})).columns["reason"][0]
    assert "under 1 % look like e-mail addresses" in reason


def test_a_name_of_an_identifier_has_precedence_over_check_digits():
    """Name device numbers, which have the check digits of payment cards."""
    numbers = ["4111111111111111", "5500000000000004", "378282246310005", "6011111111111117", "3530111333300000"]
    numbers += ["5555555555554444", "4012888888881881", "371449635398431"]
    found = gpupif.inspect(pd.DataFrame({"imei": numbers, "x": numbers})).columns
    assert found["looks_like"].tolist() == ["device identifiers", "payment card numbers"]
    assert "100 % look like payment card numbers" in found["reason"][0]


def test_docstrings_hold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for module in ("inspection.inspect", "attack.roles"):
        tried = doctest.testmod(importlib.import_module(f"gpupif.{module}"))
        assert tried.attempted > 1
        assert tried.failed == 0


def test_columns_may_be_named_and_bad_input_is_refused(tmp_path):
    assert list(gpupif.inspect(TABLE, ["sex", "age"]).columns["column"]) == ["sex", "age"]
    for table, words in [
        (TABLE[:0], "at least one row"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "different column names"),
        (pd.DataFrame(index=[1]), "at least one column"),
        (3, "expected a pandas"),
    ]:
        with pytest.raises(gpupif.InputError, match=words):
            gpupif.inspect(table)
    with pytest.raises(gpupif.errors.ColumnNotFoundError, match=r"no column 'sx'.* Did you mean 'sex'"):
        gpupif.inspect(TABLE, ["sx"])
    with pytest.raises(gpupif.errors.TableReadError, match="no such file"):
        gpupif.inspect(tmp_path / "none.csv")


def test_an_inspection_prints_and_is_json(found):
    import json

    document = json.loads(found.to_json())
    assert document["rows"] == ROWS
    assert document["columns"][0]["column"] == "id"
    assert document["roles"]["age"] == "quasi-identifier"
    assert "proposed role" in str(found)
    assert repr(found) == f"<Inspection of {ROWS} rows x {len(COLUMNS)} columns>"
    alike = gpupif.inspect(pd.DataFrame({"sex": [*"mmff"], "home": ["n"] * 4}))
    assert alike.verdict()[-1] == "No row is unique by one column alone."
    rare = gpupif.inspect(pd.DataFrame({"home": [*"n" * 7, "s"]}))
    assert rare.verdict()[-1] == "`home` alone is unique in 1 row (12.5 %)."


def test_tables_fit_a_hundred_characters(found):
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    found.print(Console(file=out, width=100))
    assert max(len(line.rstrip()) for line in out.getvalue().splitlines()) <= 100
    assert "e-mail" in out.getvalue()


def test_numbers_identify_if_each_row_has_its_own():
    """Compare with numbers of schools, which pupils share: those do not identify."""
    every = [f"{place:05}" for place in range(1000)]
    table = pd.DataFrame({"loan_id": every, "prescription_no": every, "state_id": every, "visits": range(1000)})
    table = table.assign(school_id=[f"S{place % 20:03}" for place in range(1000)])
    roles = gpupif.inspect(table).roles
    assert [roles[name] for name in ("loan_id", "prescription_no", "state_id")] == ["identifier"] * 3
    assert roles["school_id"] == "quasi-identifier"


@pytest.mark.usefixtures("on_cpu")
def test_an_index_is_listed_if_it_looks_like_an_identifier(tmp_path):
    """Try each kind of table that has an index: files, Arrow and frames. Other row labels are left out."""
    table = pd.DataFrame({"age": [20, 30, 20, 40]}, pd.Index([f"p{i}@example.org" for i in range(4)], name="who"))
    table.to_parquet(tmp_path / "t.parquet")
    kinds = [table, pa.Table.from_pandas(table), tmp_path / "t.parquet", dd.from_pandas(table, npartitions=2)]
    for kind in kinds:
        found = gpupif.inspect(kind)
        assert {**found.roles} == {"who": "identifier", "age": "quasi-identifier"}
        assert sorted(found.columns["column"]) == ["age", "who"]
        assert list(gpupif.inspect(kind, columns=["who"]).columns["looks_like"]) == ["e-mail addresses"]
        # The proposed roles fit the table.
        assert gpupif.risk(kind, roles=found.roles).k == 1
    for index in (pd.Index([7, 3, 5, 9]), pd.Index([7, 3, 5, 9], name="x"), pd.Index(list("aabb"), name="x")):
        assert list(gpupif.inspect(table.set_index(index)).columns["column"]) == ["age"]
