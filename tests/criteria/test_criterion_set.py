"""What counted rows have of criteria, and which criteria coarser values never hurt."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.criteria.counted_table import CountedTable
from gpupif.criteria.criterion_set import CriterionSet
from gpupif.engines.choose import choose_engine, requested_device
from tests.helpers import naive_protection as naive

pytestmark = pytest.mark.every_engine

KNOWN = ["a", "b", "c"]
IMPROVING = [
    "k>=2",
    "unique_share<=0.1",
    "rows_below_k(4)<=3",
    "average_risk<=0.5",
    "known=2: k>=2",
    "known=1: uniques<=0",
    "known=a: k>=2",
    "distinct_l>=2",
    "entropy_l>=2",
    "recursive_c(l=2)<=3",
    "t<=0.5",
    "alpha<=0.5",
    "basic_beta<=1",
    "enhanced_beta<=1",
    "known=1: t<=0.5",
    "mean cig<=1",
    "max cig<=1",
    "mean rig<=1",
    "max renyi_2<=1",
    "max renyi_inf<=1",
    "max total_variation<=1",
    "mean total_variation<=1",
    "max hellinger<=1",
    "mean jensen_shannon<=1",
    "min cohort_size>=3",
    "mean cohort_size>=3",
    "known=2: max cig<=1",
]


def table_of(rng, rows):
    return pd.DataFrame({name: rng.choice(list("uvwxyz")[: rng.integers(2, 7)], rows) for name in [*KNOWN, "ill"]})


def merged(table, rng):
    """The table with two or more values of a column as one."""
    name = KNOWN[rng.integers(len(KNOWN))]
    values = sorted(set(table[name]))
    group = {value: f"g{rng.integers(max(1, len(values) - 1))}" for value in values}
    return table.assign(**{name: table[name].map(group)})


def measured(table, texts):
    criteria = CriterionSet.from_arguments(texts, KNOWN, ["ill"])
    found = criteria.measure(CountedTable.from_table(table, criteria.columns), choose_engine(requested_device()))
    return criteria, [one.value for one in found]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_coarser_values_never_worsen_criteria_that_only_improve(seed):
    rng = np.random.default_rng(seed)
    table = table_of(rng, int(rng.integers(6, 40)))
    if table["ill"].nunique() < 2:
        return
    criteria, before = measured(table, IMPROVING)
    _, after = measured(merged(table, rng), IMPROVING)
    for criterion, old, new in zip(criteria.criteria, before, after, strict=True):
        assert criteria.only_improves(criterion)
        worse = new - old if criterion.at_most else old - new
        assert not worse > 1e-9, str(criterion)


@pytest.mark.parametrize(("text", "seed"), [("pif95<=1", 409), ("mean renyi_2<=1", 18), ("delta<=1", 545)])
def test_coarser_values_may_worsen_the_other_criteria(text, seed):
    """The specification says so for PIF and mean Rényi; delta does not count values that a class lacks."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(10, 200))
    columns = {}
    for name in [*KNOWN, "ill"]:
        weights = rng.random(5) ** 3 + 0.01
        columns[name] = rng.choice(list("uvwxy"), rows, p=weights / weights.sum())
    table = pd.DataFrame(columns)
    name = KNOWN[rng.integers(3)]
    one, two = rng.choice(sorted(set(table[name])), 2, replace=False)
    criteria, [before] = measured(table, [text])
    _, [after] = measured(table.assign(**{name: table[name].replace({one: two})}), [text])
    assert not criteria.only_improves(criteria.criteria[0])
    assert after > before + 1e-6


def test_coarser_values_may_worsen_surprise():
    """Rows that never have a value are merged with few rows that have it about as often as all rows do."""
    others = [f"v{number}" for number in range(30)]
    rows = [("p", name) for name in others * 3] + [("q", "u")] * 6 + [("q", name) for name in others[:4]]
    rows += [("r", "u")] * 700 + [("r", name) for name in others * 10]
    table = pd.DataFrame(rows, columns=["a", "ill"])
    criteria = CriterionSet.from_arguments("max csf(ill)<=0.5", ["a"], ["ill"])
    engine = choose_engine(requested_device())
    [before] = criteria.measure(CountedTable.from_table(table), engine)
    [after] = criteria.measure(CountedTable.from_table(table.replace({"a": {"p": "q"}})), engine)
    assert not criteria.only_improves(criteria.criteria[0])
    assert before.value < 0.2 < 0.5 < after.value


def test_coarser_values_always_improve_criteria_of_fixed_columns_only():
    criteria = CriterionSet.from_arguments(["nb: mean cig<=1", "any: mean cig<=1"], KNOWN, [], {"nb": ["a"], "any": 1})
    assert [criteria.only_improves(one) for one in criteria.criteria] == [True, False]


VALUES = ["k>=2", "uniques<=3", "distinct_l>=2", "alpha<=0.5", "pif90<=3", "max csf<=0.9", "mean cig(ill)<=1"]


@pytest.mark.parametrize("seed", range(3))
def test_values_of_criteria_follow_their_definition(seed):
    table = table_of(np.random.default_rng(seed), 40)
    _, found = measured(table, [*VALUES, "known=2: k>=2"])
    rows = table.to_dict("records")
    expected = [naive.value(rows, text, KNOWN, ["ill"]) for text in [*VALUES, "known=2: k>=2"]]
    assert found == pytest.approx(expected)


def test_any_kind_of_table_has_the_same_counted_rows(tmp_path):
    import polars as pl
    from dask import dataframe as dd

    table = table_of(np.random.default_rng(0), 50)
    table.loc[3:8, "b"] = None
    table.to_csv(tmp_path / "t.csv", index=False)
    first = sorted_rows(CountedTable.from_table(table))
    for other in (pl.from_pandas(table), dd.from_pandas(table, npartitions=4), tmp_path / "t.csv", table[::-1]):
        assert sorted_rows(CountedTable.from_table(other)) == first
    with gpupif.config(memory_limit="16GiB"):
        assert sorted_rows(CountedTable.from_table(tmp_path / "t.csv")) == first


def sorted_rows(counted):
    codes = np.stack([column.codes.astype(int) for column in counted.columns])
    labels = [[*column.labels.to_pylist(), *([None] * column.missing)] for column in counted.columns]
    assert counted.rows == counted.multiplicities.sum()
    assert counted.is_distinct
    return labels, sorted(zip(map(tuple, codes.T.tolist()), counted.multiplicities.tolist(), strict=True))


def test_counted_rows_can_be_grouped_and_left_out():
    table = pd.DataFrame({"a": ["x", "y", "z", "z"], "b": [1, 1, 2, None]})
    counted = CountedTable.from_table(table)
    kept = counted.kept(counted.columns[0].codes != 2)
    assert kept.rows == 2
    assert kept.columns[0].labels.to_pylist() == ["x", "y"]
    assert kept.columns[1].labels.to_pylist() == [1]
    assert not kept.columns[1].missing


def test_too_little_memory_for_counted_rows_is_an_error(monkeypatch):
    from gpupif.criteria import counted_table

    monkeypatch.setattr(counted_table, "MEMORY_SHARE", 0.0)
    with pytest.raises(gpupif.InputError, match="memory_limit: the distinct rows of the table over these 2 columns"):
        CountedTable.from_table(pd.DataFrame({"a": [1, 2], "b": [1, 2]}))
