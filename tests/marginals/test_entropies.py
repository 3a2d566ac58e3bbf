"""Entropies compared with their definitions and bounds, and cases in which they must be exactly 0."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpupif
import gpupif.marginals.entropy
from gpupif.information import (
    conditional_entropy,
    dual_total_correlation,
    entropy,
    mutual_information,
    residual_entropy,
    total_correlation,
)
from tests.helpers import naive
from tests.helpers.tables import SHARED_FIXTURES, SIMULATED, frame_of, tables

pytestmark = pytest.mark.every_engine

NEAR = {"abs": 1e-12}


def joint(table, names):
    return naive.entropy([tuple(table[name][row] for name in names) for row in range(len(next(iter(table.values()))))])


def residual(table):
    return sum(joint(table, table) - joint(table, [other for other in table if other != name]) for name in table)


@pytest.mark.slow
@given(table=tables(), data=st.data())
@SHARED_FIXTURES
def test_all_entropies_are_as_defined(counting_engine, table, data):
    frame, names = frame_of(table), list(table)
    some = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    others = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    both = list(dict.fromkeys([*some, *others]))
    assert entropy(frame, some) == pytest.approx(joint(table, some), **NEAR)
    expected = joint(table, both) - joint(table, others)
    assert conditional_entropy(frame, some, others) == pytest.approx(expected, **NEAR)
    shared = joint(table, some) + joint(table, others) - joint(table, both)
    assert mutual_information(frame, some, others) == pytest.approx(shared, **NEAR)
    alone = sum(joint(table, [name]) for name in names)
    assert total_correlation(frame) == pytest.approx(alone - joint(table, names), **NEAR)
    assert residual_entropy(frame) == pytest.approx(residual(table), **NEAR)
    assert dual_total_correlation(frame) == pytest.approx(joint(table, names) - residual(table), **NEAR)


@pytest.mark.slow
@given(table=tables(most_columns=4))
@SHARED_FIXTURES
def test_entropies_keep_their_bounds_and_relations(table):
    frame, names = frame_of(table), list(table)
    whole = entropy(frame)
    assert 0 <= whole <= math.log2(len(frame)) + 1e-12
    assert dual_total_correlation(frame) + residual_entropy(frame) == pytest.approx(whole, **NEAR)
    total, dual = total_correlation(frame), dual_total_correlation(frame)
    # Han (1978): neither correlation is more than m - 1 times the other.
    assert total <= (len(names) - 1) * dual + 1e-12
    assert dual <= (len(names) - 1) * total + 1e-12
    for name in names:
        assert mutual_information(frame, name, name) == pytest.approx(entropy(frame, name), **NEAR)
        assert mutual_information(frame, name, names) <= entropy(frame, name) + 1e-12
    if len(names) == 2:
        assert mutual_information(frame, *names) == pytest.approx(total, **NEAR)
        assert mutual_information(frame, *names) == pytest.approx(dual, **NEAR)


@pytest.mark.slow
@given(table=tables(most_columns=3), times=st.integers(1, 3))
@SHARED_FIXTURES
def test_an_entropy_that_must_be_0_is_exactly_0(table, times):
    """Try constants, columns that follow from others, and independent columns of equally frequent combinations."""
    frame = frame_of(table)
    frame["constant"] = 7
    frame["copy"] = frame[frame.columns[0]].map(lambda value: ("copy of", str(value))).astype(str)
    first = frame.columns[0]
    assert entropy(frame, "constant") == 0
    assert mutual_information(frame, first, "constant") == 0
    assert conditional_entropy(frame, "copy", first) == 0
    assert conditional_entropy(frame, first, [first]) == 0
    assert residual_entropy(frame[[first, "copy", "constant"]]) == 0
    values = [list(dict.fromkeys(column)) for column in (table[name] for name in list(table)[:3])]
    repeated = {f"v{place}": list(column) * (place + 1) for place, column in enumerate(values)}
    grid = np.array(np.meshgrid(*(range(len(column)) for column in repeated.values()))).reshape(len(repeated), -1)
    independent = pd.DataFrame(
        {
            name: [column[row] for row in rows] * times
            for (name, column), rows in zip(repeated.items(), grid, strict=True)
        },
        dtype=object,
    )
    assert total_correlation(independent) == 0
    assert dual_total_correlation(independent) == 0
    assert mutual_information(independent, "v0", list(independent)[1:] or "v0") == (
        0 if len(independent.columns) > 1 else entropy(independent)
    )


def test_nearly_independent_is_not_independent():
    """Change one row in a million: a little information is left."""
    rows = 1_000_000
    frame = pd.DataFrame({"a": np.arange(rows) % 2, "b": (np.arange(rows) // 2) % 2})
    with gpupif.config(device="cpu"):
        assert mutual_information(frame, "a", "b") == 0
    frame.loc[0, "b"] = 1
    with gpupif.config(device="cpu"):
        assert 0 < mutual_information(frame, "a", "b") < 1e-11


@pytest.mark.slow
def test_wide_tables_and_high_cardinalities_are_counted(counting_engine):
    """Count keys of several words, and columns of more values than a table of counters has room for."""
    random = np.random.default_rng(1)
    number, columns = (12, 36) if SIMULATED else (400, 90)
    rows = random.integers(0, 3, (number, columns)) * 1000
    wide = pd.DataFrame(rows[random.integers(0, number // 6, number)]).rename(columns="c{}".format)
    table = {name: wide[name].tolist() for name in wide}
    assert entropy(wide) == pytest.approx(joint(table, list(table)), **NEAR)
    assert residual_entropy(wide) == pytest.approx(residual(table), abs=1e-11)
    assert dual_total_correlation(wide) == pytest.approx(joint(table, list(table)) - residual(table), abs=1e-11)
    many = pd.DataFrame({"a": random.integers(0, 10**6, 10 * number), "b": random.integers(0, 900, 10 * number)})
    table = {name: many[name].tolist() for name in many}
    shared = joint(table, ["a"]) + joint(table, ["b"]) - joint(table, ["a", "b"])
    assert mutual_information(many, "a", "b") == pytest.approx(shared, **NEAR)


def test_every_kind_of_table_has_the_same_entropies(tmp_path):
    frame = pd.DataFrame({"a": ["x", None, "y", "y"], "b": [1, 1, 2, 2], "c": [0.5, 0.5, 0.5, None]})
    expected = naive.entropy(list(zip(["x", None, "y", "y"], [1, 1, 2, 2], strict=True)))
    assert expected == 1.5
    path = tmp_path / "table.parquet"
    frame.to_parquet(path)
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), path, str(path)):
        assert entropy(table, ["a", "b"]) == expected
        assert conditional_entropy(table, "a", ["b"]) == 0.5
        assert conditional_entropy(table, "a", []) == 1.5
    assert entropy(frame.rename(columns={"a": 0, "b": ("t", 1)}), [0, ("t", 1)]) == expected
    named = frame.rename(columns={"b": ("t", 1)})
    assert entropy(named, ("t", 1)) == entropy(named, [("t", 1)]) == 1.0
    # A tuple is a sequence of names if no column has it as a name.
    for table in (frame, pl.from_pandas(frame), pl.from_pandas(frame).lazy(), pa.Table.from_pandas(frame), path):
        assert entropy(table, ("a", "b")) == expected
        assert mutual_information(table, ("a",), ("b",)) == mutual_information(table, "a", "b")


def test_the_order_of_rows_and_columns_does_not_change_a_bit():
    frame = gpupif.datasets.census(200 if SIMULATED else 3000)
    turned = frame.sample(frac=1, random_state=1)[list(frame)[::-1]]
    for function in (entropy, total_correlation, dual_total_correlation, residual_entropy):
        assert function(frame) == function(turned)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda table: entropy(table, "d"), "columns: no column 'd'"),
        (lambda table: entropy(table, []), "columns: expected at least one"),
        (lambda table: mutual_information(table, "a", ["b", "x"]), "a, b: no column 'x'"),
        (lambda table: mutual_information(table, "a", []), "b: expected at least one"),
        (lambda table: entropy(table, ()), "columns: expected at least one"),
        (lambda table: entropy(table, ("a", "x")), "columns: no column 'x'"),
        (lambda table: entropy(table, (["a"],)), "columns: expected a list of column names"),
        (lambda table: entropy(table, missing="drop"), "missing: expected 'category' or 'error'"),
        (lambda table: entropy(table, "a", missing="error"), "column 'a': 1 missing value"),
        (lambda table: entropy(table.head(0)), "at least one row"),
        (lambda table: entropy(table[[]]), "at least one column"),
        (lambda table: entropy(3), "table: expected a pandas"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(gpupif.InputError, match=words):
        call(pd.DataFrame({"a": ["x", None], "b": [1, 2]}))


def test_docstrings_hold():
    tried = doctest.testmod(gpupif.marginals.entropy)
    assert tried.attempted >= 12
    assert tried.failed == 0
