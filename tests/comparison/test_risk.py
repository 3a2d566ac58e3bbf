"""Risk side by side is what `gpupif.score` and `gpupif.risk` say of either table."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import gpupif

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def before():
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": random.integers(20, 60, 60),
            "sex": random.choice(list("fm"), 60),
            "ill": random.choice(["flu", "flu", "hiv", "none"], 60),
        }
    )


def assert_figures(column, table, missing, weights=None):
    """A column of the table of risk is the risk of a table."""
    columns = ["age", "sex", "ill"]
    scores = gpupif.score(table, ["cig", "csf"], columns=columns, known=columns[:2], missing=missing, weights=weights)
    classes = gpupif.risk(table, ["age", "sex"], "ill", missing=missing, weights=weights)
    assert column[["pif50", "pif95", "pif99"]].tolist() == scores.pif([50, 95, 99])
    for measure in ("cig", "csf"):
        found = scores.percentiles(measure, [50, 95, 99, 100]).max()
        assert column[[f"{name}_{measure}" for name in ("p50", "p95", "p99", "max")]].tolist() == found.tolist()
    assert column["k"] == classes.k
    assert column["uniques"] == classes.classes.uniques
    assert column["distinct_l"] == classes.worst["distinct_l"]
    assert column["t"] == classes.worst["t"]
    certain = table.groupby(["age", "sex"], dropna=False)["ill"].transform("nunique", dropna=False) == 1
    if missing == "category" and weights is None:
        assert column["certain_rows(ill)"] == certain.sum()
    assert column["certain_rows(ill)"] == classes.attributes.loc["ill", "certain_rows"]


def test_risk_has_one_reading_without_suppressed_cells(before):
    after = before.assign(age=before["age"] // 10 * 10)
    found = gpupif.compare(before, after, sensitive="ill", linkage=None)
    assert list(found.risk.columns) == ["before", "after_category", "after"]
    assert_figures(found.risk["before"], before, "category")
    assert_figures(found.risk["after"], after, "category")
    assert found.risk.loc["pif95", "after"] < found.risk.loc["pif95", "before"]


def test_suppressed_cells_are_read_both_ways_and_the_worse_is_reported(before):
    after = before.assign(age=before["age"].where(before.index % 4 > 0))
    found = gpupif.compare(before, after, sensitive="ill").risk
    assert_figures(found["after_category"], after, "category")
    assert_figures(found["after_wildcard"], after, "wildcard")
    for figure, row in found.iterrows():
        worse = min if figure in ("k", "distinct_l") else max
        assert row["after"] == worse(row["after_category"], row["after_wildcard"])
    for reading in ("category", "wildcard"):
        alone = gpupif.compare(before, after, sensitive="ill", suppressed=reading).risk
        assert alone["after"].tolist() == found[f"after_{reading}"].tolist()


def test_risk_is_weighted_if_both_tables_have_the_weights(before):
    before = before.assign(people=np.arange(60) % 7 + 0.5)
    after = before.assign(age=before["age"] // 10 * 10)
    found = gpupif.compare(before, after, sensitive="ill", weights="people", linkage=None)
    assert_figures(found.risk["before"], before, "category", "people")
    assert_figures(found.risk["after"], after, "category", "people")
    assert "Risk (scores and shares weighted by people)" in str(found)
    without = gpupif.compare(before, after.drop(columns="people"), sensitive="ill", weights="people", linkage=None)
    assert_figures(without.risk["before"], before.drop(columns="people"), "category")
    assert without.weights is None
    assert "weighted by" not in str(without)


def test_a_constant_table_has_a_whole_verdict():
    table = pd.DataFrame({"a": ["x", "x"]})
    assert gpupif.compare(table, table).verdict()[-1] == "0 of 2 cells changed."


def test_k_is_the_worse_reading_of_suppressed_cells():
    """Two rows agree only because both lack a value, as in issue 225 of sdcMicro."""
    before = pd.DataFrame({"a": list("xxyyz"), "b": [1, 1, 2, 3, 4]})
    after = pd.DataFrame({"a": ["x", "x", "y", "y", None], "b": [1, 1, None, None, None]})
    found = gpupif.compare(before, after).risk
    assert found.loc["k", ["after_category", "after_wildcard"]].tolist() == [1, 3]
    assert found.loc["k", "after"] == 1


def test_percentiles_are_reported_for_each_column(before):
    found = gpupif.compare(before, before.drop(columns="sex"), sensitive="ill").cells
    assert set(found["column"]) == {"age", "sex", "ill"}
    own = found.set_index(["column", "measure", "percentile"])
    scores = gpupif.score(before, ["cig", "csf"], known=["age", "sex"])
    assert own.loc[("age", "cig", 95), "before"] == scores.percentiles("cig", 95).loc["age", 95]
    assert np.isnan(own.loc[("sex", "cig", 95), "after"])


def test_each_number_of_a_column_is_in_one_line_on_a_terminal_of_80_characters(before):
    found = gpupif.compare(before, before.assign(age=before["age"] // 10 * 10))
    out = io.StringIO()
    found.print(Console(file=out, width=80))
    words = out.getvalue().split()
    assert {f"{value:,.4g}" for value in found.columns["entropy_before"]} <= {*words}
    assert {f"{value:,}" for value in found.columns["cells_changed"]} <= {*words}
    assert max(map(len, out.getvalue().splitlines())) <= 80


def test_a_comparison_prints_and_is_given_as_json(before):
    after = before.assign(age=before["age"].where(before.index % 4 > 0)).drop(columns="sex")
    found = gpupif.compare(before, after, sensitive="ill")
    text = str(found)
    for words in (
        "PIF 95, bits",
        "95th percentile of CIG",
        "highest CSF",
        "missing matches all",
        "rows a class, divided by k",
        "dropped",
        "Mutual information of pairs",
        "60 rows",
    ):
        assert words in text
    document = found.to_dict()
    assert document["risk"]["k"]["before"] == 1
    assert document["risk"]["pif95"]["after"] == found.risk.loc["pif95", "after"]
    assert document["utility"]["cells"] == 120
    assert [row["column"] for row in document["columns"]] == ["age", "sex", "ill"]
    assert "NaN" not in found.to_json()
    assert repr(found) == "<Comparison of 60 rows x 3 columns>"


def test_columns_outside_the_attacker_that_single_rows_out_are_named(before):
    table = before.assign(case=[*range(6), *[9] * 54], zip=[*range(5), *[9] * 55])
    for own in (None, "weight"):
        frame = table if own is None else table.assign(weight=np.arange(60) + 0.5)
        found = gpupif.compare(frame, frame, quasi_identifiers=["age", "sex"], sensitive="ill", weights=own)
        assert found.singled_out == ({"case": 6} if own is None else {"case": 6, own: 60})
    assert found.verdict()[1].endswith("; but `weight`, no quasi-identifier, is unique in 60 rows (100 %) after.")
