"""Disclosure measures of tables, compared with loops over equivalence classes, on every engine; `gpupif risk`."""

from __future__ import annotations

import doctest
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
import gpupif.disclosure.privacy_models
import gpupif.disclosure.risk
from gpupif.disclosure.assess import assess
from gpupif.disclosure.models import MODELS, resolve_models
from gpupif.disclosure.request import RiskRequest
from gpupif.errors import ColumnNotFoundError, InputError
from tests.helpers.disclosure import check_worst_classes, questions
from tests.helpers.naive_disclosure import classes_of, expected, groups_of, worst_classes_of
from tests.helpers.tables import SHARED_FIXTURES, frame_of

pytestmark = pytest.mark.every_engine


def plain(value):
    """Return a value in a form to compare; None if missing."""
    return None if value is None or value != value else value


@pytest.mark.slow
@given(question=questions(), chosen=st.integers(0, 3))
@SHARED_FIXTURES
def test_measures_are_as_defined(engine, question, chosen):
    table, known, sensitive, distances = question
    frame = frame_of(table)
    sizes = [len(rows) for rows in classes_of(table, known).values()]
    if not sensitive:
        found = gpupif.risk(frame, known)
        assert found.classes == gpupif.models.class_risks(sizes)
        assert (found.worst, len(found.attributes), found.groups) == ({"k": min(sizes)}, 0, [])
        check_worst_classes(found, worst_classes_of(table, known, [], [1] * len(frame), False, {}))
        return
    least = chosen or min(expected(table, known, name, 1)["distinct_l"] for name in sensitive)
    if least > min(max(sizes), *(len(set(table[name])) for name in sensitive)):
        with pytest.raises(InputError, match="l: expected at most"):
            gpupif.risk(frame, known, sensitive, l=least)
        least, chosen = 1, 1
    found = gpupif.risk(frame, known, sensitive, l=chosen or None, distance=distances, groups=5)
    by_attribute = {name: expected(table, known, name, least, distances.get(name)) for name in sensitive}
    for name in sensitive:
        wanted = {**by_attribute[name], "values": len(set(table[name]))}
        for model in (*found.attributes.columns[:-2], "values"):
            assert found.attributes.loc[name, model] == pytest.approx(wanted[model], rel=1e-11, abs=1e-12), model
        whole = [rows for rows in classes_of(table, known).values() if len({table[name][row] for row in rows}) == 1]
        several = [len(rows) for rows in whole if len(rows) > 1]
        assert found.attributes.loc[name, "homogeneous_classes"] == len(several)
        assert found.attributes.loc[name, "certain_rows"] == sum(map(len, whole))
    assert list(found.worst) == list(MODELS)
    for model, worst in found.worst.items():
        wanted = [by_attribute[name][model] for name in sensitive]
        assert worst == pytest.approx((max if MODELS[model].highest else min)(wanted), rel=1e-11, abs=1e-12)
    assert found.classes == gpupif.models.class_risks(sizes)
    assert (found.k, found.l_values, found.rows) == (min(sizes), least, len(frame))
    assert found.device == engine.device
    groups = groups_of(table, known, sensitive)[:5]
    for group, wanted in zip(found.groups, groups, strict=True):
        values = {name: plain(value) for name, value in group.quasi_identifiers.items()}
        came = (values, group.rows, group.attribute, plain(group.value), group.share)
        assert came == wanted[:5]
        assert group.entropy == pytest.approx(wanted[5], abs=1e-12)
    check_worst_classes(found, worst_classes_of(table, known, sensitive, [1] * len(frame), False, distances))


# Tables 3 and 5 of Li, Li & Venkatasubramanian.
PEOPLE = {
    "zip": ["476**"] * 3 + ["4790*"] * 3 + ["476**"] * 3,
    "age": ["2*"] * 3 + [">40"] * 3 + ["3*"] * 3,
    "salary": [3, 4, 5, 6, 11, 8, 7, 9, 10],
    "disease": ["ulcer", "gastritis", "cancer", "gastritis", "flu", "bronchitis", "bronchitis", "pneumonia", "cancer"],
}
CLOSER = {
    "zip": ["4767*"] * 3 + ["4790*"] * 3 + ["4760*"] * 3,
    "salary": [3, 5, 9, 6, 11, 8, 4, 7, 10],
    "disease": ["ulcer", "cancer", "pneumonia", "gastritis", "flu", "bronchitis", "gastritis", "bronchitis", "cancer"],
}


def test_t_closeness_has_the_figures_of_its_paper():
    """Compare with the figures in section 5 of the paper."""
    assert gpupif.models.t_closeness(pd.DataFrame(PEOPLE), ["zip", "age"], "salary") == pytest.approx(0.375)
    assert gpupif.models.t_closeness(pd.DataFrame(CLOSER), "zip", "salary") == pytest.approx(0.167, abs=5e-4)


def test_each_measure_has_the_value_of_its_worked_example(engine):
    table = pd.DataFrame({"g": [*"gggghhhh"], "x": [*"aaababcc"]})
    worst = gpupif.risk(table, "g", "x").worst
    assert worst == {name: pytest.approx(model.example, abs=5e-7) for name, model in MODELS.items()}


def test_functions_return_the_values_of_risk(engine):
    frame = pd.DataFrame(PEOPLE)
    known, sensitive = ["zip", "age"], ["salary", "disease"]
    tree = {value: ["lung" if value in ("flu", "bronchitis", "pneumonia") else "belly"] for value in PEOPLE["disease"]}
    found = gpupif.risk(frame, known, sensitive, distance={"disease": tree})
    assert gpupif.models.k_anonymity(frame, known) == found.k == 3
    assert gpupif.models.alpha_k_anonymity(frame, known, sensitive) == (found.worst["alpha"], 3)
    assert gpupif.models.l_diversity(frame, known, sensitive) == found.worst["distinct_l"] == 3
    assert gpupif.models.l_diversity(frame, known, sensitive, "entropy") == found.worst["entropy_l"] == 3.0
    assert (
        gpupif.models.l_diversity(frame, known, sensitive, "recursive") == (found.worst["recursive_c"], 3) == (1.0, 3)
    )
    assert gpupif.models.l_diversity(frame, known, sensitive, "recursive", l=2) == (0.5, 2)
    assert gpupif.models.t_closeness(frame, known, sensitive, {"disease": tree}) == found.worst["t"]
    assert gpupif.models.t_closeness(frame, known, "disease", tree) == found.attributes.loc["disease", "t"]
    assert gpupif.models.t_closeness(frame, known, "disease", "nominal") == gpupif.models.t_closeness(
        frame, known, "disease"
    )
    assert gpupif.models.basic_beta_likeness(frame, known, sensitive) == found.worst["basic_beta"] == 2.0
    assert gpupif.models.enhanced_beta_likeness(frame, known, sensitive) == found.worst["enhanced_beta"] == 2.0
    assert gpupif.models.delta_disclosure(frame, known, sensitive) == found.worst["delta"] == pytest.approx(math.log(3))
    few = gpupif.risk(frame, known, "salary", models=["t", "k"], groups=0)
    assert list(few.attributes.columns) == ["values", "t"]
    assert few.worst == {"t": found.attributes.loc["salary", "t"], "k": 3}
    assert (few.groups, few.l_values) == ([], None)


@pytest.mark.slow
@given(question=questions(), seed=st.integers(0, 99))
@settings(SHARED_FIXTURES, max_examples=10)
def test_measures_keep_their_invariants(question, seed):
    table, known, sensitive, distances = question
    frame = frame_of(table)
    if not sensitive:
        return
    found = gpupif.risk(frame, known, sensitive, distance=distances)
    worst = found.worst
    shuffled = frame.sample(frac=1, random_state=seed)[[*reversed(frame.columns)]]
    again = gpupif.risk(shuffled, known[::-1], sensitive, distance=distances)
    assert again.classes == found.classes
    assert again.worst == pytest.approx(worst, rel=1e-12, abs=1e-12)
    twice = gpupif.risk(pd.concat([frame, frame]), known, sensitive, distance=distances)
    for model, value in worst.items():
        assert twice.worst[model] == pytest.approx(value * 2 if model == "k" else value, abs=1e-12)
    assert 0 <= worst["t"] < 1
    assert 0 < worst["alpha"] <= 1 <= worst["entropy_l"] <= worst["distinct_l"] <= found.classes.largest
    assert worst["delta"] >= math.log1p(worst["basic_beta"]) - 1e-12
    assert worst["enhanced_beta"] in (worst["basic_beta"], math.inf)
    assert 1 / worst["alpha"] <= worst["entropy_l"] + 1e-12
    fewer = gpupif.risk(frame, known[:1], sensitive, distance=distances)
    assert fewer.k >= found.k
    for model in ("alpha", "t", "basic_beta"):
        assert fewer.worst[model] <= worst[model] + 1e-12, model


def test_every_kind_of_table_has_the_same_risk(tmp_path):
    frame = pd.DataFrame({**PEOPLE, "age": [None if age == "3*" else age for age in PEOPLE["age"]]})
    frame["lists"] = [[1]] * len(frame)
    arrow = pa.Table.from_pandas(frame)
    pq.write_table(arrow, tmp_path / "people.parquet")
    frame.drop(columns="lists").to_csv(tmp_path / "people.csv", index=False)
    known, sensitive = ["zip", "age"], ["salary", "disease"]
    expected = gpupif.risk(frame, known, sensitive).to_dict()
    for table in (arrow, pl.from_arrow(arrow), tmp_path / "people.parquet", str(tmp_path / "people.csv")):
        found = gpupif.risk(table, known, sensitive).to_dict()
        assert {**found, "seconds": 0} == {**expected, "seconds": 0}
    assert [group["quasi_identifiers"]["age"] for group in expected["groups"]] == ["2*", None, ">40"] * 2


def test_population_uniques_are_in_the_result_and_its_json():
    frame = pd.DataFrame({"age": [1, 1, 2, 3, 4, 5], "ill": list("aababb")})
    found = gpupif.risk(frame, "age", "ill", population_size=60)
    assert found.uniques == gpupif.models.population_uniques([2, 1, 1, 1, 1], population=60)
    assert gpupif.risk(frame, "age", sampling_fraction=0.1).uniques == found.uniques
    document = json.loads(found.to_json(), parse_constant=pytest.fail)
    assert document["uniques"]["population"] == 60
    assert document["worst"]["enhanced_beta"] is None
    assert found.worst["enhanced_beta"] == math.inf
    assert document["classes"]["k"] == 1
    assert document["attributes"][0]["attribute"] == "ill"
    assert repr(found) == "<DisclosureRisk of 6 rows: k = 1, 1 sensitive attribute>"
    for text in ("k, rows of the smallest class", "unique in the population of 60", "infinite", "age=1"):
        assert text in str(found)


@pytest.mark.slow
@given(question=questions(), seed=st.integers(0, 99), extra=st.integers(0, 20))
@settings(SHARED_FIXTURES, max_examples=10)
def test_journalist_risk_is_that_of_loops_over_people(question, seed, extra):
    """Add people with the same values or other values to a table: both together are the population."""
    table, known, _, _ = question
    frame = frame_of(table)
    people = pd.concat([frame, frame.sample(extra, replace=True, random_state=seed)], ignore_index=True)
    found = gpupif.risk(frame.sample(frac=1, random_state=seed), known, population=people[known[::-1]], threshold=0.3)
    rows = {name: [table[name][row] for row in range(len(frame))] for name in known}
    drawn = frame.reset_index().sample(extra, replace=True, random_state=seed)["index"]
    everyone = {name: values + [values[row] for row in drawn] for name, values in rows.items()}
    sample, population = (classes_of(part, known) for part in (rows, everyone))
    sizes = [(len(sample[values]), len(members)) for values, members in population.items()]
    assert found.population == gpupif.models.population_risks(*zip(*sizes, strict=True), threshold=0.3)
    assert "journalist risk" in str(found)


def test_a_population_may_be_of_another_kind_with_the_same_types(tmp_path):
    frame = pd.DataFrame({"age": [1.0, None, 2.0], "sex": list("fmm"), "ill": list("abb")})
    people = pd.DataFrame({"sex": list("fmmxm"), "age": [1, None, 2, 9, 2]})
    expected = gpupif.models.population_risks([1, 1, 1, 0], [1, 1, 2, 1])
    people.to_csv(tmp_path / "people.csv", index=False)
    for population in (people, pl.from_pandas(people), tmp_path / "people.csv"):
        assert gpupif.risk(frame, ["age", "sex"], "ill", population=population).population == expected
    for population, message in (
        (people.head(2), r"population: it lacks 1 of the table's 3 rows, .* Column 'age' has 2.0 nowhere in it"),
        (people.drop(index=1), "population: .* Column 'age' has None nowhere in it"),
        (people.assign(sex=list("fffmm")), r"lacks 1 .* row 1 \(from 0\): of equal ones it has 0, the table 1. Give"),
        (people.assign(age=list("12345")), "population: column 'age': .* double in the table and .*string in the pop"),
        (people[["sex"]], "population: no column 'age' in the population. Columns that exist: 'sex'"),
        (people.set_axis(["age", "age"], axis=1), "population: expected different column names, repeated are age"),
        (people.head(0), "population: expected at least one row"),
        (3, "^population: expected a pandas"),
    ):
        with pytest.raises(InputError, match=message):
            gpupif.risk(frame, ["age", "sex"], "ill", population=population)
    with pytest.raises(InputError, match="population: column 'age': 1 missing value, the first in row 1"):
        gpupif.risk(frame.dropna(), ["age", "sex"], population=people, missing="error")
    with pytest.raises(InputError, match="lacks: expected 'error' or 'count', got 'drop'"):
        gpupif.risk(frame, ["age", "sex"], population=gpupif.Population(people, lacks="drop"))


def test_rows_that_a_population_lacks_may_be_counted():
    frame = pd.DataFrame({"age": [1, 1, 2, 3], "sex": list("ffmm")})
    people = pd.DataFrame({"age": [1, 2, 2, 9], "sex": list("fmmm")})
    found = gpupif.risk(frame, ["age", "sex"], population=gpupif.Population(people, lacks="count"))
    # One more person of 1 f, and 3 m, are added to the people of the population.
    assert found.population == gpupif.models.population_risks([2, 1, 1, 0], [2, 2, 1, 1])


def test_a_tuple_is_a_name_if_a_column_has_it():
    frame = pd.DataFrame({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2], "ill": list("xyxy")})
    assert gpupif.models.k_anonymity(frame, ("a", "b")) == gpupif.models.k_anonymity(frame, ["a", "b"]) == 1
    named = frame.set_axis([("a", "b"), "b", "ill"], axis=1)
    assert gpupif.models.k_anonymity(named, ("a", "b")) == gpupif.models.k_anonymity(named, [("a", "b")]) == 2
    assert list(gpupif.risk(named, "b", (("a", "b"), "ill")).worst) == list(MODELS)
    several = frame.set_axis(pd.MultiIndex.from_tuples([("a", "b"), ("a", "c"), ("d", "")]), axis=1)
    assert gpupif.models.k_anonymity(several, ("a", "b")) == 2
    with pytest.raises(ColumnNotFoundError, match="no column 'a' in the table"):
        gpupif.models.k_anonymity(several, ("a",))


def test_missing_values_are_one_value_or_refused():
    frame = pd.DataFrame({"age": [1.0, None, None], "ill": ["a", None, "b"]})
    assert gpupif.models.k_anonymity(frame, "age") == 1
    assert gpupif.models.l_diversity(frame, ["age"], "ill") == 1
    with pytest.raises(InputError, match="column 'age': 2 missing values"):
        gpupif.risk(frame, "age", "ill", missing="error")


def test_nearly_unique_quasi_identifiers_are_named():
    frame = pd.DataFrame({"id": range(60), "pay": range(60)})
    with pytest.warns(gpupif.errors.NearlyUniqueWarning, match="quasi_identifiers: column 'id'") as caught:
        gpupif.risk(frame, "id", "pay")
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(("heading", "printed"), [("", "gain"), ("inf. gain", "inf. gain")])
def test_a_new_measure_needs_only_an_entry(monkeypatch, heading, printed):
    """Add a disclosure measure that only its entry knows."""
    gain = MODELS["alpha"].__class__(
        "gain",
        "cig",
        True,
        "bits",
        "0 and up",
        "highest information gain",
        "piflib manual, section 1.4",
        heading=heading,
    )
    monkeypatch.setitem(MODELS, "gain", gain)
    frame = pd.DataFrame(PEOPLE)
    found = assess(frame, RiskRequest.from_arguments(frame, "age", "disease", resolve_models(["gain"])))
    highest = gpupif.score(frame, "cig", columns=["disease"], known=["age"]).cig.to_numpy().max()
    assert found.worst("gain") == highest
    risk = gpupif.risk(frame, "age", "disease", models=["gain"], groups=0)
    assert risk.attributes.loc["disease", "gain"] == risk.worst["gain"] == json.loads(risk.to_json())["worst"]["gain"]
    heads = next(line for line in str(risk).splitlines() if "values" in line)
    assert [head.strip() for head in heads.strip("┃").split("┃")] == ["attribute", "values", printed]


@pytest.mark.parametrize("module", [gpupif.disclosure.privacy_models, gpupif.disclosure.risk])
def test_docstrings_hold(module):
    found = doctest.testmod(module)
    assert (found.failed, found.attempted > 0) == (0, True)


def test_many_classes_and_values_are_counted():
    """More classes than a dense table of counts holds, and rows enough for blocks of several tasks."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{place}": random.integers(0, 40, 30_000) for place in range(3)})
    frame["s"] = random.integers(0, 9, len(frame)) ** 2
    found = gpupif.risk(frame, ["c0", "c1", "c2"], "s", groups=3)
    shares = frame.groupby(["c0", "c1", "c2"])["s"].agg(["size", "nunique"])
    assert (found.k, found.classes.classes) == (shares["size"].min(), len(shares))
    whole = shares[(shares["size"] > 1) & (shares["nunique"] == 1)]
    assert found.attributes.loc["s", "homogeneous_classes"] == len(whole)
    assert found.groups[0].rows == whole["size"].max()
