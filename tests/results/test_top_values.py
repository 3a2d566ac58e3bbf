"""`Scores.top(each="value")` and the riskiest cells of summaries, from the definition, for tables of every kind."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

import gpupif
from gpupif.errors import InputError
from gpupif.results.riskiest import riskiest_in_column
from gpupif.results.summary import TOP_CELLS

pytestmark = pytest.mark.usefixtures("on_cpu")


def people(seed, rows=400):
    """A table with many ties: few values, some of them missing."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": random.choice(["m", "f"], rows),
            "age": random.integers(0, 30, rows),
            "town": random.choice(["a", "b", "c", None], rows, p=[0.6, 0.3, 0.05, 0.05]),
            "job": random.choice(list("uvwxyz"), rows),
        }
    )


def riskiest_values(table, scores, n, columns, lowest=False):
    """(row, column, cells, score) of the riskiest cell of each value, each value looked at for itself."""
    found = []
    for place, column in enumerate(columns):
        for value in table[column].unique():
            has = (table[column].isna() if pd.isna(value) else table[column] == value).to_numpy()
            own = scores[column].to_numpy()
            score = own[has].min() if lowest else own[has].max()
            row = int(np.flatnonzero(has & (own == score))[0])
            found.append(((score if lowest else -score), row, place, (row, column, int(has.sum()), score)))
    return [facts for *_, facts in sorted(found, key=lambda one: one[:3])[:n]]


def facts(top, by="cig"):
    return list(zip(top["row"], top["column"], top["cells"], top[by], strict=True))


@pytest.mark.parametrize("n", [1, 5, 1000])
@pytest.mark.parametrize("seed", [1, 2])
def test_each_value_has_one_line(seed, n):
    table = people(seed)
    scores = gpupif.score(table, ["cig", "cohort_size"])
    assert facts(scores.top(n, each="value")) == riskiest_values(table, scores.cig, n, table.columns)
    lowest = riskiest_values(table, scores.cohort_size, n, table.columns, lowest=True)
    assert facts(scores.top(n, "cohort_size", each="value"), "cohort_size") == lowest


def test_values_are_the_same_of_every_kind_of_table(tmp_path):
    table = people(3)
    expected = riskiest_values(table, gpupif.score(table).cig, TOP_CELLS, table.columns)
    table.to_parquet(tmp_path / "people.parquet")
    in_files = gpupif.score_files(tmp_path / "people.parquet", tmp_path / "scores.parquet")
    lazy = gpupif.score(dd.from_pandas(table, npartitions=3))
    for scores in (gpupif.score(pl.from_pandas(table)), in_files, lazy):
        assert facts(scores.top(TOP_CELLS, each="value")) == expected
        assert facts(scores.summary().top) == expected
    gpupif.score(table).to_parquet(tmp_path / "written.parquet")
    opened = [gpupif.open_scores(tmp_path / name) for name in ("scores.parquet", "written.parquet")]
    assert [facts(scores.summary().top) for scores in opened] == [expected] * 2
    with pytest.raises(InputError, match=r"each: 'value' takes the values of the table"):
        opened[0].top(1, each="value")


def test_a_column_that_the_attacker_knows_is_not_among_the_riskiest():
    table = people(4)
    scores = gpupif.score(table, columns=["town", "job", "age"], known=["age", "sex"])
    assert facts(scores.summary().top) == riskiest_values(table, scores.cig, TOP_CELLS, ["town", "job"])
    known = gpupif.score(table, columns=["age", "sex"], known=["age", "sex"])
    assert {*known.summary().top["column"]} == {"age", "sex"}


def test_each_cell_and_other_words():
    scores = gpupif.score(people(5))
    assert "cells" not in scores.top(2)
    with pytest.raises(InputError, match="each: expected"):
        scores.top(2, each="row")


def test_cells_below_the_bound_do_not_count():
    measure = next(one for one in gpupif.score(people(6, 50))._backing.about.measures if one.name == "cig")
    scores, codes = np.array([1.0, np.nan, 3.0, 3.0, 2.0, 3.0]), np.array([0, 0, 1, 1, 2, 3])
    kept = riskiest_in_column(measure, scores, 2, 0, 10, 0.0, codes)
    assert [(cell.risk, cell.row, cell.code) for cell in kept] == [(3.0, 12, 1), (3.0, 15, 3)]
    kept = riskiest_in_column(measure, scores, 9, 0, 10, 2.0, codes)
    assert [(cell.risk, cell.row, cell.code) for cell in kept] == [(3.0, 12, 1), (3.0, 15, 3), (2.0, 14, 2)]


@pytest.mark.parametrize("accuracy", [0.0, 0.5, 1.0])
def test_the_values_of_an_explained_cell_come_by_posterior(accuracy):
    table = pd.DataFrame({"sex": list("ffffffmmmmmm"), "town": [*"aaabbcdddddd"]})
    priors = {"town": {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}}
    scores = gpupif.score(table, columns="town", known="sex", priors=priors, accuracies={"town": accuracy})
    for cell in scores._top(len(table), None, "cell", spread=True).to_dict("records"):
        cohort = table.town[table.sex == table.sex[cell["row"]]]
        expected = {
            town: accuracy * (cohort == town).mean() + (1 - accuracy) * prior for town, prior in priors["town"].items()
        }
        own, *others = cell["spread"]
        assert own["value"] == cell["value"]
        order = sorted({*expected} - {cell["value"]}, key=lambda town: (-expected[town], -priors["town"][town], town))
        assert [one["value"] for one in others] == order
        assert {one["value"]: one["posterior"] for one in cell["spread"]} == pytest.approx(expected)
