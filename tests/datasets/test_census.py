"""The synthetic census and the tutorial tables: the same everywhere, dependent where they should be."""

from __future__ import annotations

from hashlib import sha256
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from gpupif.datasets import _census_model as model
from gpupif.datasets import census, csf_example, pif_example
from gpupif.datasets import tables as datasets
from gpupif.errors import InputError
from gpupif.utils.config import config

TEN = (
    *("region", "age", "sex", "marital_status", "education"),
    *("occupation", "birthplace", "household_size", "income_band", "tenure"),
)
WORD = (1 << 64) - 1


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """Enough persons to see rare things; with all named columns."""
    return census(200_000, seed=1, columns=22)


def codes_of(table: pd.DataFrame) -> np.ndarray:
    return np.array([c.cat.codes if c.dtype == "category" else c for _, c in table.items()], dtype=np.int8)


def share(condition: pd.Series) -> float:
    return float(condition.mean())


def distinct_share(codes: np.ndarray) -> float:
    key = np.zeros(codes.shape[1], dtype=np.uint64)
    for column in codes:
        key = key * np.uint64(column.max() + 1) + column.astype(np.uint64)  # ten columns stay below 2**64
    return len(np.unique(key)) / len(key)


# The same everywhere


@pytest.mark.parametrize(
    ("columns", "digest"),
    [
        (10, "bf317c25509c82d30f8bd8f71462c47beb871d98de003534c806a5d9430a636a"),
        (200, "aa7a3aef7e607a8195f3a7bae3ce880addbaa1e815ce3de17da3dbd943f292b4"),
    ],
)
def test_codes_are_pinned(columns, digest):
    assert sha256(codes_of(census(1000, seed=0, columns=columns)).tobytes()).hexdigest() == digest


def mix(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & WORD
    return word ^ (word >> 31)


def mix_word(word: int, position: int) -> int:
    return mix(word + (position + 1) * 0x9E3779B97F4A7C15 & WORD)


def test_each_code_follows_from_seed_row_and_column():
    """The kernel against its definition in Python's unbounded whole numbers, up to the largest seed."""
    seed, rows = WORD, 40
    codes = datasets._codes(rows, seed, 24)
    for place in range(len(codes)):
        tables = datasets._tables(place)
        for row in range(rows):
            word = mix_word(mix_word(mix(seed), place), row)
            cell = level = (word >> 32) * tables.levels >> 32
            for parent, shift in zip(tables.parents, tables.shifts, strict=True):
                cell += int(shift[codes[parent, row]])
            expected = level if word & 0xFFFFFFFF < tables.keep[cell] else tables.other[cell]
            assert codes[place, row] == expected


def test_fewer_rows_or_columns_are_the_beginning_of_a_larger_table():
    large = census(100_000, seed=5, columns=24)
    assert census(1000, seed=5, columns=24).equals(large.head(1000))
    assert census(100_000, seed=5).equals(large[list(TEN)])


def test_threads_and_chunks_do_not_matter(monkeypatch):
    with config(threads=1):
        one = datasets._codes(70_000, 3, 12)
    np.testing.assert_array_equal(one, datasets._codes(70_000, 3, 12))
    monkeypatch.setattr(datasets, "CHUNK", 999)
    with config(threads=5):
        np.testing.assert_array_equal(one, datasets._codes(70_000, 3, 12))


def test_different_seeds_give_unrelated_tables():
    first, second = codes_of(census(20_000, seed=0)), codes_of(census(20_000, seed=1))
    assert (first[0] != second[0]).mean() > 0.8
    assert not (first == second).all(axis=1).any()
    # as unrelated as two persons of one table: regions agree as often as chance has it
    sizes = np.bincount(first[0]) / first.shape[1]
    assert (first[0] == second[0]).mean() == pytest.approx((sizes**2).sum(), abs=0.01)


def test_numpy_integers_are_accepted():
    assert census(np.int32(5), seed=np.uint64(9), columns=np.int8(3)).equals(census(5, 9, 3))


# Columns


@pytest.mark.parametrize("columns", [1, 10, 60])
def test_the_table_has_the_requested_number_of_columns(columns):
    table = census(50, columns=columns)
    assert table.shape == (50, columns)
    assert tuple(table.columns[:10]) == TEN[:columns]
    assert list(table.columns[22:]) == [f"item_{number}" for number in range(23, columns + 1)]
    assert table.columns.is_unique


def test_categories_are_fixed_and_codes_small():
    few, many = census(1, seed=2, columns=200), census(2000, seed=3, columns=200)
    for name in few:
        assert few[name].dtype == many[name].dtype
        if few[name].dtype == "category":
            assert few[name].cat.codes.dtype == np.int8
            assert all(isinstance(label, str) and label.strip() == label != "" for label in few[name].cat.categories)
        else:
            assert few[name].dtype == np.int8
    sizes = {name: len(few[name].cat.categories) for name in TEN if few[name].dtype == "category"}
    assert (sizes["region"], sizes["birthplace"], sizes["income_band"], sizes["tenure"]) == (50, 45, 12, 5)


def test_every_table_of_the_model_can_be_drawn_from():
    for place in range(datasets.MOST_COLUMNS):
        column = model.column(place)
        groups = tuple(max(given.groups) + 1 for given in column.given)
        assert column.weights.shape == (*groups, len(column.levels)), column.name
        assert column.weights.min() >= 0
        assert column.weights.sum(axis=-1).min() > 0, column.name
        assert 2 <= len(column.levels) <= 127
        for given in column.given:
            parent = model.place_of(given.column)
            assert parent < place
            assert len(given.groups) == len(model.column(parent).levels)


@pytest.mark.parametrize(
    "weights", [[7], [0, 3], [1, 2, 0, 1000, 5], [4, 4, 4], [1, 1, 5, 5], [3, 7, 11, 13, 17], [10**12, 1]]
)
def test_alias_table_has_the_weights(weights):
    keep, other = datasets._alias(weights)
    mass = [0] * len(weights)
    for level, (kept, instead) in enumerate(zip(keep, other, strict=True)):
        mass[level] += kept
        mass[instead] += 2**32 - kept
    for weight, got in zip(weights, mass, strict=True):
        assert abs(got - 2**32 * len(weights) * weight / sum(weights)) <= len(weights) + 1
        assert weight or not got


# What a statistician would look at


def test_children_have_no_work_income_or_marriage(people):
    children = people[people.age < 16]
    assert len(children) > 20_000
    assert (children.marital_status == "Never married").all()
    assert (children.occupation == "Not applicable (child)").all()
    assert (children.income_band == "No income").all()
    assert (children.industry == "Not in work").all()
    assert (children.commute_mode == "Not in work").all()
    assert (children.household_size >= 2).all()
    assert not people.occupation[people.age >= 16].eq("Not applicable (child)").any()
    assert set(people.education[people.age < 5]) == {"Below school age"}
    assert people.age[people.education == "Doctorate"].min() == 25


def test_arrival_is_after_birth_and_only_abroad(people):
    assert ((people.year_of_arrival == "Born in the country") == (people.birthplace == "Born in the country")).all()
    for period, youngest in (("Before 1971", 55), ("1981-1990", 35), ("2001-2010", 15), ("2016-2020", 5)):
        assert people.age[people.year_of_arrival == period].min() == youngest


def test_occupations_and_tenure_differ_by_age(people):
    old, adult = people[people.age >= 75], people[people.age.between(30, 50)]
    assert share(old.occupation == "Retired") > 0.9
    assert share(adult.occupation == "Retired") == 0
    assert share(old.marital_status == "Widowed") > 10 * share(adult.marital_status == "Widowed")
    assert share(old.tenure == "Owned outright") > 2 * share(adult.tenure == "Owned outright")
    assert share(old.household_size == 1) > 2 * share(adult.household_size == 1)
    assert share(old.health.isin(["Bad", "Very bad"])) > 2 * share(adult.health.isin(["Bad", "Very bad"]))


def test_occupations_and_marital_status_differ_by_sex(people):
    women, men = people[people.sex == "Female"], people[people.sex == "Male"]
    assert 0.49 < len(women) / len(people) < 0.53
    assert share(women.marital_status == "Widowed") > 1.5 * share(men.marital_status == "Widowed")
    assert share(men.occupation == "Building trades") > 5 * share(women.occupation == "Building trades")
    assert men.income_band.cat.codes.mean() > women.income_band.cat.codes.mean() + 0.3


def test_education_pays_and_region_matters(people):
    adult = people[people.age.between(30, 60)]
    degree = adult[adult.education == "Master's degree"]
    none = adult[adult.education == "No qualification"]
    assert degree.income_band.cat.codes.mean() > none.income_band.cat.codes.mean() + 1.5
    abroad = people.birthplace != "Born in the country"
    assert share(abroad[people.region == "Capital District"]) > 2 * share(abroad[people.region == "Great Plain"])
    assert share(people.language[people.birthplace == "Poland"] == "Polish") > 0.4


def test_margins_are_skewed(people):
    for name, low, high in (("region", 0.12, 0.2), ("birthplace", 0.78, 0.9), ("language", 0.8, 0.93)):
        shares = people[name].value_counts(normalize=True)
        assert low < shares.iloc[0] < high, name
        assert shares.iloc[-1] < shares.iloc[0] / 20, name
    decades = np.histogram(people.age, bins=[0, 20, 40, 60, 80, 101])[0] / len(people)
    assert (decades[:3] > 0.2).all()
    assert 0.1 < decades[3] < 0.25
    assert 0.02 < decades[4] < 0.08
    assert people.household_size.between(1, 8).all()
    assert people.household_size.mode()[0] == 2


@pytest.mark.slow
def test_items_depend_on_their_parent():
    table = census(50_000, columns=60)
    for place in range(22, 60):
        given = model.column(place).given[0]
        parent, answer = codes_of(table)[model.place_of(given.column)], codes_of(table)[place]
        counts = np.zeros((max(given.groups) + 1, answer.max() + 1))
        np.add.at(counts, (np.array(given.groups)[parent - (given.column == "household_size")], answer), 1)
        expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
        freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
        assert ((counts - expected) ** 2 / np.maximum(expected, 1e-9)).sum() > 10 * freedom, f"item_{place + 1}"
        assert answer.max() < len(model.column(place).levels)


def test_many_rows_are_unique_but_columns_depend():
    codes = codes_of(census(200_000))
    own = distinct_share(codes)
    apart = distinct_share(np.array([np.roll(column, 1000 * place) for place, column in enumerate(codes)]))
    assert 0.8 < own < 0.95
    assert apart > own + 0.03


# Bad input


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"rows": 0}, "rows: expected a whole number from 1 to 1000000000000, got 0; give the number of persons"),
        ({"rows": -3}, "got -3"),
        ({"rows": 10.0}, "rows: expected a whole number from 1 to 1000000000000, got 10.0 (float)"),
        ({"rows": True}, "got True (bool)"),
        ({"rows": np.True_}, "rows: expected a whole number"),
        ({"rows": "many"}, "got 'many' (str)"),
        ({"rows": None}, "got None (NoneType)"),
        ({"rows": 1, "seed": -1}, f"seed: expected a whole number from 0 to {WORD}, got -1; give another seed"),
        ({"rows": 1, "seed": 2**64}, f"got {2**64}"),
        ({"rows": 1, "seed": 0.5}, "seed: expected"),
        ({"rows": 1, "seed": False}, "got False (bool)"),
        ({"rows": 1, "columns": 0}, "columns: expected a whole number from 1 to 200, got 0; give the number"),
        ({"rows": 1, "columns": 201}, "got 201"),
        ({"rows": 1, "columns": [1]}, "got [1] (list)"),
    ],
)
def test_bad_arguments_of_the_census_are_refused(arguments, line):
    with pytest.raises(InputError) as caught:
        census(**arguments)
    assert line in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


# The rest


def test_the_example_tables_are_those_of_the_manual():
    pif = pif_example()
    assert pif.shape == (7, 3)
    assert list(pif.iloc[0]) == ["male", "Anton", "blue"]
    assert list(pif.iloc[6]) == ["female", "Charlie", "green"]
    assert list(pif.name) == ["Anton", "Bill", "Charlie", "Don", "Emil", "Emil", "Charlie"]
    assert "".join(color[0] for color in pif.eye_color) == "bgggbgg"
    csf = csf_example()
    assert list(csf.columns) == ["A", "B"]
    assert [a + b for a, b in csf.itertuples(index=False)] == ["ag", "ah", "ai", "bg", "bg", "ch", "ch", "ch", "ci"]


def test_importing_is_cheap():
    roots = {value.__name__.split(".")[0] for value in vars(datasets).values() if isinstance(value, ModuleType)}
    assert not roots & {"numpy", "pandas", "numba"}
