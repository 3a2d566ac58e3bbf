"""The population of a Dask frame, without a cluster: the same bits as in memory."""

from __future__ import annotations

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

import gpupif
from gpupif.measures import MEASURES
from tests.helpers.dask_frames import assert_same, cut

pytestmark = [pytest.mark.dask, pytest.mark.usefixtures("dask_in_one_thread")]

ALL = list(MEASURES)
FEW = ["cig", "wcig", "cohort_size"]
CENSUS = gpupif.datasets.census(300, columns=4)
SAMPLE = CENSUS.sample(120, random_state=2).assign(w=np.arange(120) % 5 / 4)
STRANGERS = pd.concat([SAMPLE, gpupif.datasets.census(40, columns=4, seed=9).assign(w=1.5)])


@pytest.mark.slow
@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("lacks", ["error", "count"])
def test_attackers_and_weights_are_scored_as_in_memory(lacks, weights):
    """Rows are matched by all columns that are scored or that any attacker knows."""
    table = SAMPLE if lacks == "error" else STRANGERS
    attackers = {"neighbour": ["age", "sex"], "nobody": []}
    arguments = {"attackers": attackers, "columns": ["age", "region"], "weights": weights, "dtype": "float32"}
    people = gpupif.Population(cut(CENSUS, [100]), lacks)
    scores = gpupif.score(cut(table, [50, 90]), FEW, population=people, **arguments)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(table, FEW, population=gpupif.Population(CENSUS, lacks), **arguments)
    for name in attackers:
        assert_same(scores.against(name), expected.against(name))
        assert scores.against(name).population_size.dtypes.tolist() == [np.int64] * 2
    worst = scores.worst["population_size"].compute()
    pd.testing.assert_frame_equal(worst, expected.worst["population_size"])
    assert list(scores.frame().columns) == expected.to_arrow().column_names[: len(scores.frame().columns)]


@pytest.mark.slow
def test_a_population_may_be_any_kind_of_table(tmp_path):
    with gpupif.config(device="cpu"):
        expected = gpupif.score(SAMPLE, FEW, columns=["age", "sex"], population=CENSUS)
    (tmp_path / "people").mkdir()
    CENSUS.iloc[:100].to_parquet(tmp_path / "people" / "0.parquet")
    CENSUS.iloc[100:].to_parquet(tmp_path / "people" / "1.parquet")
    more = CENSUS.assign(more=1)[["more", "sex", "region", "age"]].astype({"age": "int64", "sex": str})
    with dask.config.set({"dataframe.convert-string": True}):
        texts = dd.from_pandas(more, npartitions=2)
    for people in (CENSUS, more, pl.from_pandas(CENSUS), texts, tmp_path / "people", str(tmp_path / "people")):
        scores = gpupif.score(cut(SAMPLE, [50]), FEW, columns=["age", "sex"], population=people)
        assert_same(scores, expected)


# Rows without any counterpart in the population, or with too few, in this or an earlier partition.
LACKING = {
    "none there": (["a", "c", "b"], [1]),
    "after others": (["a", "b", "a", "a", "b", "a"], [2, 4]),
    "in the middle": (["b", "b", "a", "a", "a", "c"], [1, 1]),
    "several kinds": (["a", "b", "e", "d", "b", "c", "b", "a"], [2, 2, 5, 8]),
}


@pytest.mark.parametrize(("values", "edges"), LACKING.values(), ids=LACKING)
@pytest.mark.parametrize("asks", ["score", "risk"])
def test_an_error_names_the_lacking_row_as_in_memory(asks, values, edges):
    def ask(table, people):
        if asks == "risk":
            return gpupif.risk(table, ["x", "y"], population=people)
        return gpupif.score(table, population=people).population_size.head()

    table = pd.DataFrame({"x": values, "y": [1] * len(values)})
    people = pd.DataFrame({"x": ["a", "b", "a", "b"], "y": [1, 1, 1, 1]})
    with pytest.raises(gpupif.InputError, match="the first row") as expected, gpupif.config(device="cpu"):
        ask(table, people)
    with pytest.raises(gpupif.InputError) as error:
        ask(cut(table, edges), cut(people, [1]))
    assert str(error.value) == str(expected.value)


def test_a_population_takes_one_more_shuffle_for_any_number_of_columns():
    for columns in (2, 30):
        frame = gpupif.datasets.census(40, columns=columns)
        lazy = dd.from_pandas(frame, npartitions=3)
        with dask.config.set({"dataframe.shuffle.method": "p2p"}):
            graph = gpupif.score(lazy, FEW, population=lazy).frame().__dask_graph__()
        assert sum("barrier" in str(key) for key in graph) == 3


def test_both_tables_are_read_once():
    calls = []

    def count(number, of):
        calls.append((of, number))
        return gpupif.datasets.census(50, seed=number, columns=4)

    meta = gpupif.datasets.census(1, columns=4).iloc[:0]
    table, people = (dd.from_map(count, range(2), of=of, meta=meta) for of in ("table", "people"))
    attackers = {"neighbour": ["age"], "nobody": []}
    scores = gpupif.score(table, "cig", population=people, attackers=attackers)
    dask.compute(*(scores.against(name)[measure] for name in attackers for measure in scores.measures))
    assert sorted(calls) == [(of, number) for of in ("people", "table") for number in (0, 1)]


def test_the_first_lacking_row_is_named_among_equal_rows():
    table = pd.DataFrame({"age": ["old"] * 4, "people": [1.0, 0.0, 0.0, 2.0]})
    with pytest.raises(gpupif.InputError, match=r"lacks 2 of the table's 4 rows, the first row 2 \(from 0\)"):
        gpupif.score(cut(table, []), "cig", population=cut(table[["age"]].head(2), []), weights="people").cig.compute()


def test_memory_and_dask_name_the_same_lacking_value():
    table, people = pd.DataFrame({"member": [None, True, False]}), pd.DataFrame({"member": [None]})
    for move in (lambda frame: frame, lambda frame: cut(frame, [])):
        with pytest.raises(gpupif.InputError, match="column 'member' has False nowhere in it, which is in 1 of"):
            dask.compute(gpupif.score(move(table), "cig", population=move(people), missing="wildcard").cig)


BAD = {
    "no column": (CENSUS[["age"]], {}, ["population", "no column 'region'"]),
    "no table": ([1], {}, ["population", "list"]),
    "a series": (cut(CENSUS, [])["age"], {}, ["population", "Dask DataFrame", "Series"]),
    "no file": ("nobody.parquet", {}, ["nobody.parquet", "no such file"]),
}


@pytest.mark.parametrize(("people", "arguments", "fragments"), BAD.values(), ids=BAD)
def test_bad_populations_are_refused_at_once(people, arguments, fragments):
    with pytest.raises(gpupif.GpupifError) as caught:
        gpupif.score(cut(SAMPLE.drop(columns="w"), [50]), population=people, **arguments)
    assert [fragment for fragment in fragments if fragment not in str(caught.value)] == []


def test_a_population_in_files_without_a_column_is_refused(tmp_path):
    CENSUS.drop(columns="region").to_parquet(tmp_path / "people.parquet")
    with pytest.raises(
        gpupif.InputError, match=r"population: no column 'region' in the population.*'age', 'sex', "
    ) as caught:
        gpupif.score(cut(SAMPLE[["age", "region"]], [50]), population=tmp_path / "people.parquet")
    assert all(repr(name) in str(caught.value) for name in CENSUS.columns if name != "region")


def test_a_population_that_is_no_parquet_is_refused(tmp_path):
    CENSUS.to_csv(tmp_path / "people.csv")
    with pytest.raises(gpupif.InputError, match=r"population: .*people\.csv: a cluster reads Parquet"):
        gpupif.score(cut(SAMPLE, [50]), population=tmp_path / "people.csv")


@pytest.mark.parametrize(
    ("people", "match"),
    [
        (CENSUS.iloc[:0], "population: expected at least one row"),
        (CENSUS.assign(age=CENSUS["age"].where(CENSUS.index != 7)), "^population: column 'age': 1 missing value, .* 7"),
        (CENSUS.astype({"age": str}), "'age'.* in the table and .*string in the population"),
        (CENSUS.iloc[:20], r"population: it lacks \d+ of the table's 120 rows, the first row \d+ \(from 0\): of equal"),
    ],
)
def test_bad_populations_are_refused_when_dask_computes(people, match):
    scores = gpupif.score(cut(SAMPLE, [50]), population=cut(people, []), weights="w", missing="error")
    with pytest.raises(gpupif.InputError, match=match):
        scores.population_size.compute()


@pytest.mark.parametrize("use", [gpupif.score, gpupif.risk])
def test_a_dask_population_is_refused_for_another_kind_of_table(use):
    asked = {"quasi_identifiers": ["age"]} if use is gpupif.risk else {}
    with pytest.raises(gpupif.InputError, match="population: a Dask DataFrame goes with a table that is one"):
        use(SAMPLE[["age", "region"]], population=cut(CENSUS, [50]), **asked)
