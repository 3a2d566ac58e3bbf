"""What `Scores` gives: summaries, riskiest cells, priors and weights, output tables."""

from __future__ import annotations

import io
import json
import math
import traceback

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console

import gpupif
from gpupif.errors import InputError, NotScoredError
from tests.helpers import naive, naive_attack

pytestmark = pytest.mark.every_engine

TABLE = {
    "sex": ["f", "m", "m", "f", "m", "f", None, "m"],
    "age": [30, 30, 40, 40, 30, 30, 40, 99],
    "job": ["a", "b", "a", "a", "b", "a", "b", "a"],
}
EXPECTED = naive_attack.score(TABLE)
ALL = ["cig", "wcig", "csf", "posterior", "prior", "cohort_size"]


@pytest.fixture(scope="module")
def scores():
    with gpupif.config(device="cpu"):
        return gpupif.score(pd.DataFrame(TABLE, index=list("pqrstuvw")), ALL)


def rig():
    return np.sum([EXPECTED["cig"][name] for name in TABLE], axis=0)


def test_fig_rig_and_pif_follow_their_definition(scores):
    """Manual section 1.7."""
    assert scores.fig().index.tolist() == list(TABLE)
    np.testing.assert_allclose(scores.fig(), [sum(EXPECTED["cig"][name]) for name in TABLE])
    assert scores.rig().index.tolist() == list("pqrstuvw")
    np.testing.assert_allclose(scores.rig(), rig())
    for n in (0, 33.3, 95, 100):
        assert scores.pif(n) == pytest.approx(np.percentile(rig(), n))
    assert scores.pif([50, 95]) == pytest.approx(np.percentile(rig(), [50, 95]).tolist())


@pytest.mark.parametrize("n", [-1, 100.5, float("nan"), [50, 101], 1j, "a", True, None])
def test_a_pif_outside_0_to_100_is_refused(scores, n):
    with pytest.raises(InputError, match="from 0 to 100"):
        scores.pif(n)


def test_rig_has_the_kind_of_the_table():
    for make, kind in ((pl.DataFrame, pl.Series), (pa.table, pa.DoubleArray)):
        values = gpupif.score(make(TABLE)).rig()
        assert isinstance(values, kind)
        np.testing.assert_allclose(np.asarray(values), rig())


def test_float32_sums_are_taken_in_float64():
    frame = gpupif.datasets.census(2_000)
    wide, narrow = (gpupif.score(frame, dtype=dtype) for dtype in ("float64", "float32"))
    np.testing.assert_allclose(narrow.fig(), wide.fig(), rtol=1e-7)
    assert narrow.rig().dtype == np.float64


@pytest.mark.parametrize("by", ALL)
@pytest.mark.parametrize("n", [1, 3, 5, 24, 100])
def test_top_cells_are_the_riskiest_in_order(scores, by, n):
    sign = 1 if by in ("prior", "cohort_size") else -1
    cells = [
        (sign * EXPECTED[by][name][row], row, column)
        for column, name in enumerate(TABLE)
        for row in range(len(TABLE["sex"]))
    ]
    # Equal up to rounding counts as equal, as it does in the scores themselves.
    cells = sorted((round(value, 9), row, column) for value, row, column in cells)[:n]
    top = scores.top(n, by=by)
    assert top["row"].tolist() == [row for _, row, _ in cells]
    assert top["column"].tolist() == [list(TABLE)[column] for *_, column in cells]
    assert top["index"].tolist() == ["pqrstuvw"[row] for _, row, _ in cells]
    for position, (_, row, column) in enumerate(cells):
        name, cell = list(TABLE)[column], top.iloc[position]
        assert cell["value"] == TABLE[name][row] or (TABLE[name][row] is None and pd.isna(cell["value"]))
        for measure in ALL:
            assert cell[measure] == pytest.approx(EXPECTED[measure][name][row], abs=1e-12)


def test_top_cells_show_posteriors_with_accuracies():
    arguments = {"columns": ["sex"], "known": ["age"], "accuracies": {"sex": 0.5}}
    expected = naive_attack.score(TABLE, **arguments)
    top = gpupif.score(pd.DataFrame(TABLE), "csf", **arguments).top(1)
    row = top["row"].item()
    assert expected["csf"]["sex"][row] == pytest.approx(max(expected["csf"]["sex"]))
    assert top["posterior"].item() == pytest.approx(expected["posterior"]["sex"][row])
    assert top["cohort_size"].item() == expected["cohort_size"]["sex"][row]


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "3", 1j, float("nan")])
def test_top_needs_a_number_of_cells(scores, n):
    with pytest.raises(InputError, match="top: expected a whole number of cells, 1 or more"):
        scores.top(n)


def test_the_summary_has_the_figures_of_the_definition(scores):
    summary = scores.summary()
    assert (summary.rows, summary.distinct_rows, summary.cells, summary.device) == (8, 6, 24, "cpu")
    for name, row in summary.columns.iterrows():
        gains, surprise = np.array(EXPECTED["cig"][name]), np.array(EXPECTED["csf"][name])
        known = [other for other in TABLE if other != name]
        expected = {
            "distinct_values": len(set(TABLE[name])),
            "prior_entropy": naive.entropy(TABLE[name]),
            "cig_mean": gains.mean(),
            "cig_median": np.median(gains),
            "cig_p95": np.percentile(gains, 95),
            "cig_max": gains.max(),
            "fig": gains.sum(),
            "csf_mean": surprise.mean(),
            "csf_max": surprise.max(),
            "weight": naive_attack.column_weights(TABLE, [name], known)[name],
        }
        assert list(row.index) == list(expected)
        assert row.to_dict() == pytest.approx(expected)
    assert summary.pif == pytest.approx({n: np.percentile(rig(), n) for n in (50, 95, 99, 100)})
    document = json.loads(summary.to_json())
    assert document["columns"][0]["column"] == "sex"
    assert document["pif"]["95"] == pytest.approx(np.percentile(rig(), 95))
    assert [cell["row"] for cell in document["top"]] == scores.top(10, each="value")["row"].tolist()
    assert set(document["stages"]) == {"encode", "score"}


def test_the_printed_summary_has_its_figures_and_bars(scores):
    text = str(scores.summary())
    for expected in ("8 rows x 3 columns", "6 distinct rows", "device cpu", "PIF 95", "Riskiest cells", "(missing)"):
        assert expected in text
    bars = {line.split("│")[1].strip(): line.count("█") for line in text.splitlines() if "░" in line}
    means = {name: np.mean(EXPECTED["cig"][name]) for name in TABLE}
    scale = max(*means.values(), *(naive.entropy(values) for values in TABLE.values()))
    assert bars == {name: round(10 * mean / scale) for name, mean in means.items()}


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_number_of_the_summary_is_cut(width):
    table = gpupif.datasets.census(3_000)
    table["a name of considerable length"] = table["region"].cat.codes.astype(float) * 1e5
    summary = gpupif.score(table, ["cig", "csf", "wcig"]).summary()
    out = io.StringIO()
    summary.print(Console(file=out, width=width))
    text = out.getvalue()
    assert "…" not in text
    for fig in summary.columns["fig"]:
        assert f"{fig:,.1f}" in text
    assert max(map(len, text.splitlines())) <= width
    assert "cohort, rows" in text


def test_risks_are_printed_as_risk_prints_them():
    """The same figure has the same unit and digits in both, also where it is small."""
    table = pd.DataFrame({"age": list("aabbbcdddd"), "people": [10_000, 20_000, 15_000] + [25_000] * 7})
    scores = gpupif.score(table, "individual_risk", columns="age", known="age", weights="people")
    found = gpupif.risk(table, "age", weights="people")
    printed, counted = str(scores.summary()), str(found)
    for share in (found.estimated.individual.average, found.estimated.individual.highest):
        assert 0 < share < 0.001
        assert f"{100 * share:.4g} %" in printed
        assert f"{100 * share:.4g} %" in counted
    assert "4 classes with 10 rows" in counted


def test_a_value_is_shown_as_in_the_table():
    table = pd.DataFrame({"income": [133_000.25, 11_000.5] * 30, "sex": ["f", "m"] * 30})
    assert "133000.25" in str(gpupif.score(table).summary())


def test_the_summary_names_columns_that_others_give_away():
    table = pd.DataFrame({"a": [*range(30)] * 2, "b": [*range(30)] * 2, "sex": ["f"] * 30 + ["m"] * 30})
    text = " ".join(str(gpupif.score(table).summary()).split())
    assert "gives away nearly every value of a, b" in text
    nothing = str(gpupif.score(table[["a", "sex"]]).summary())
    assert "tells nothing of any value: every CIG is 0." in nothing
    assert "gives away nearly" not in nothing


def test_a_summary_without_cig_has_no_pif():
    summary = gpupif.score(pd.DataFrame(TABLE), ["csf"]).summary()
    assert list(summary.columns) == ["distinct_values", "prior_entropy", "csf_mean", "csf_max", "weight"]
    assert summary.pif == {}
    assert "mean CSF" in str(summary)


def test_priors_and_weights_follow_their_definition(scores):
    assert scores.priors["sex"] == {"f": 3 / 8, "m": 4 / 8, None: 1 / 8}
    assert dict(scores.priors) == {name: naive.distribution(values) for name, values in TABLE.items()}
    again = gpupif.score(pd.DataFrame(TABLE), ALL, priors=scores.priors)
    for measure in ALL:
        np.testing.assert_allclose(again[measure], scores[measure], rtol=1e-12, atol=1e-14)
    assert list(scores.weights) == list(TABLE)
    given = {"f": 0.25, "m": 0.25, None: 0.25, "x": 0.25}
    own = gpupif.score(pd.DataFrame(TABLE), priors={"sex": given})
    assert own.priors["sex"] == given
    assert own.summary().columns.loc["sex", "prior_entropy"] == 2.0


def test_weighted_cig_is_weight_times_cig(scores):
    for name, weight in scores.weights.items():
        np.testing.assert_array_equal(scores.wcig[name], weight * scores.cig[name])


def test_weight_does_not_depend_on_the_prior_given():
    frame = pd.DataFrame(TABLE)
    assert gpupif.score(frame, priors={"age": {30: 0.1, 40: 0.1, 99: 0.8}}).weights == gpupif.score(frame).weights


def test_measures_are_attributes_and_unknown_names_are_errors(scores):
    assert set(ALL) <= set(dir(scores))
    assert "8 rows x 3 columns" in repr(scores)
    with pytest.raises(AttributeError, match="nothing"):
        _ = scores.nothing
    assert not hasattr(scores, "entropy")
    assert getattr(scores, "entropy", None) is None
    for error in (InputError, AttributeError):
        with pytest.raises(error, match="measures: 'entropy' was not scored"):
            scores.entropy  # noqa: B018
    for ask in (lambda: scores.population_size, lambda: scores["population_size"]):
        with pytest.raises(NotScoredError, match=r"'population_size' was not scored .*score\(table, population=...\)"):
            ask()
    assert not hasattr(scores, "population_size")
    column = scores.columns[0]
    with pytest.raises(InputError, match=f"Scores of one column are scores.{scores.measures[0]}"):
        scores[column]
    with pytest.raises(InputError, match="foo: goes with scores of a Dask frame only, whose persist takes it"):
        scores.persist(foo=1)
    assert scores.persist().cig.equals(scores.cig)
    with pytest.raises(InputError, match="'cig' was not scored"):
        gpupif.score(pd.DataFrame(TABLE), ["csf"]).fig()


@pytest.mark.parametrize(("name", "near"), [("cigg", "cig"), ("CSF", "csf"), ("cohort_sizes", "cohort_size")])
def test_misspelt_measures_get_a_hint(scores, name, near):
    hint = rf"Did you mean '{near}'\?"
    for ask in (lambda: scores[name], lambda: scores.array(name), lambda: scores.top(1, by=name)):
        with pytest.raises(NotScoredError, match=f"There is no such measure. {hint} `gpupif measures`"):
            ask()
    with pytest.raises(AttributeError, match=hint) as caught:
        getattr(scores, name)
    assert "".join(traceback.format_exception(caught.value)).count("Did you mean") == 1
    assert not hasattr(scores, name)
    with pytest.raises(AttributeError, match=r"Did you mean 'summary'\?"):
        _ = scores.sumary


def test_a_single_row_and_column_are_printed_in_the_singular():
    scores = gpupif.score(pd.DataFrame({"sex": ["f"]}), known=[])
    assert str(scores.summary()).startswith(
        "1 row x 1 column scored. The attacker knows nothing.\nWhat the attacker knows tells nothing of any value"
    )
    assert "x 1 column: cig, csf" in repr(scores)


@pytest.mark.parametrize("write", ["to_parquet", "write"])
def test_scores_are_written_to_a_path(scores, write):
    with pytest.raises(InputError, match="path: expected the path of a file or folder to write, got 3"):
        getattr(scores, write)(3)


def test_an_attacker_may_know_no_columns_or_all_others():
    frame = pd.DataFrame(TABLE)
    nothing = gpupif.score(frame, ["cig", "cohort_size", "csf"], known=[])
    assert (nothing.cohort_size == 8).all(axis=None)
    assert (nothing.cig == 0).all(axis=None)
    assert (nothing.csf == 0).all(axis=None)
    assert set(nothing.weights.values()) == {1.0}


def test_cells_per_second_follow_from_the_seconds_of_a_stage(scores):
    stages = scores.summary().to_dict()["stages"]
    for stage in stages.values():
        assert math.isclose(stage["cells_per_second"] * stage["seconds"], 24)
