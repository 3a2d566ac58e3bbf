"""Disclosure measures of Dask frames: the numbers of memory, for any partitioning of the table."""

from __future__ import annotations

import pickle
import warnings

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.disclosure.request import NO_ATTRIBUTE
from gpupif.errors import ColumnNotFoundError, InputError, TableReadError
from gpupif.pipeline import partition_routes as routes
from gpupif.utils.progress import Reporter
from tests.helpers.dask_frames import COLUMNS, cut, of_parts
from tests.helpers.disclosure import outcome, questions, what_is_found
from tests.helpers.populations import frames_of, samples
from tests.helpers.tables import SHARED_FIXTURES, frame_of

pytestmark = [pytest.mark.dask, pytest.mark.usefixtures("dask_in_one_thread")]


@pytest.mark.slow
@given(question=questions(), chosen=st.none() | st.integers(1, 2), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_any_partitioning_gives_the_numbers_of_the_table_in_memory(question, chosen, data):
    table, known, sensitive, distances = question
    frame = frame_of(table)
    edges = data.draw(st.lists(st.integers(0, len(frame)), max_size=4))
    options = {
        "l": chosen if sensitive else None,
        "distance": distances or None,
        "groups": data.draw(st.integers(0, 4)),
    }
    asked = (known, sensitive or None)
    with pytest.MonkeyPatch.context() as patch:
        # With HEAVY = 0, every class is cut by attribute.
        patch.setattr(routes, "HEAVY", data.draw(st.sampled_from([0.0, 0.5, 10.0])))
        found = outcome(cut(frame, edges), *asked, device="cpu", **options)
    assert found == outcome(frame, *asked, device="cpu", **options)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("known", [["age", "sex"], ["sex"], ["tenure"]])
@pytest.mark.parametrize("sensitive", [["region", "occupation", "education"], None])
def test_many_partitions_give_the_same_numbers(known, sensitive):
    frame = gpupif.datasets.census(600)
    with gpupif.config(device="cpu"):
        found = gpupif.risk(dd.from_pandas(frame, npartitions=7), known, sensitive)
    with gpupif.config(device="cpu"):
        assert what_is_found(found) == what_is_found(gpupif.risk(frame, known, sensitive))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", COLUMNS)
def test_every_kind_of_column_gives_the_same_numbers(kind):
    values = COLUMNS[kind]
    frame = pd.DataFrame({"q": [1, 1, 1, 2, 2, 2], "s": values})
    for known, sensitive in (("s", "q"), *([("q", "s")] if values.notna().any() else [])):
        lazy = of_parts([frame.iloc[:2], frame.iloc[2:2], frame.iloc[2:]])
        with gpupif.config(device="cpu"):
            found = gpupif.risk(lazy, known, sensitive)
        with gpupif.config(device="cpu"):
            expected = gpupif.risk(frame, known, sensitive)
        # Spans of time have other types in Dask, but equal values.
        assert (found.groups, found.worst_classes) == (expected.groups, expected.worst_classes)
        for one in (found, expected):
            one.groups[:], one.worst_classes[:] = [], []
        assert what_is_found(found) == what_is_found(expected)


@pytest.mark.slow
@given(job=samples(), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_a_population_gives_the_numbers_of_memory(job, data):
    """Compare numbers, and errors about rows that the population lacks, with the run in memory."""
    sample, people, _ = job
    known = data.draw(st.lists(st.sampled_from(list(sample)), min_size=1, unique=True))
    frames = frames_of(sample, people)
    edges = [data.draw(st.lists(st.integers(0, len(frame)), max_size=2)) for frame in frames]
    lacks = data.draw(st.sampled_from(["error", "count"]))
    table, population = map(cut, frames, edges)
    found = outcome(table, known, population=gpupif.Population(population, lacks), device="cpu")
    expected = outcome(frames[0], known, population=gpupif.Population(frames[1], lacks), device="cpu")
    assert found == expected


def test_a_population_may_be_of_another_kind(tmp_path):
    census = gpupif.datasets.census(300, columns=4)
    sample = census.sample(100, random_state=1)
    asked = (["region", "age"], "sex")
    with gpupif.config(device="cpu"):
        expected = gpupif.risk(sample, *asked, population=census).population
    (tmp_path / "people").mkdir()
    census.iloc[:100].to_parquet(tmp_path / "people" / "0.parquet", index=False)
    census.iloc[100:].to_parquet(tmp_path / "people" / "1.parquet", index=False)
    text = census.astype({"age": "int64", "region": str})
    for population in (census, pl.from_pandas(text), cut(text[["region", "sex", "age"]], [7]), tmp_path / "people"):
        with gpupif.config(device="cpu"):
            found = gpupif.risk(dd.from_pandas(sample, npartitions=3), *asked, population=population)
        assert found.population == expected


def test_values_that_the_population_lacks_are_named():
    frame = pd.DataFrame({"age": [1.0, None, 2.0], "sex": list("fmm")})
    population = frame.iloc[[0, 0, 2]]
    with pytest.raises(InputError, match=r"lacks 1 of .* it has 0, the table 1\. Column 'age' has None nowhere in it"):
        gpupif.risk(cut(frame, [1]), ["age", "sex"], population=population)
    with pytest.raises(InputError, match=r"^population: column 'age': 1 missing value, the first in row 2 \(from 0\)"):
        gpupif.risk(cut(frame.dropna(), [1]), ["sex", "age"], population=frame.iloc[[0, 2, 1]], missing="error")
    found = gpupif.risk(cut(frame, [1]), ["age", "sex"], population=gpupif.Population(population, lacks="count"))
    assert found.population == gpupif.models.population_risks([1, 1, 1], [2, 1, 1])


def test_functions_take_dask_frames():
    frame = gpupif.datasets.census(300)
    lazy = dd.from_pandas(frame, npartitions=3)
    assert gpupif.models.k_anonymity(lazy, "tenure") == gpupif.models.k_anonymity(frame, "tenure")
    found = gpupif.risk(lazy, "tenure", sampling_fraction=0.1)
    assert found.uniques == gpupif.models.population_uniques(frame["tenure"].value_counts(), sampling_fraction=0.1)


@pytest.mark.parametrize(
    "function",
    [
        gpupif.models.l_diversity,
        *(
            pytest.param(function, marks=pytest.mark.slow)
            for function in (
                gpupif.models.alpha_k_anonymity,
                gpupif.models.t_closeness,
                gpupif.models.basic_beta_likeness,
                gpupif.models.enhanced_beta_likeness,
                gpupif.models.delta_disclosure,
            )
        ),
    ],
)
def test_functions_of_a_sensitive_column_take_dask_frames(function):
    frame = gpupif.datasets.census(300)
    lazy = dd.from_pandas(frame, npartitions=3)
    assert function(lazy, "tenure", "education") == function(frame, "tenure", "education")


def test_ordered_categories_are_ordered():
    """Compare ordered categories with memory; a given distance has precedence over their order."""
    kind = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    pay = ["low", "low", "high", "low", "mid", "mid", "high", "high"]
    frame = pd.DataFrame({"age": ["20s"] * 4 + ["30s"] * 4, "pay": pd.Series(pay, dtype=kind)})
    asked = ("age", "pay")
    ordered = gpupif.models.t_closeness(frame, *asked, distance=["low", "mid", "high"])
    nominal = gpupif.models.t_closeness(frame, *asked, distance="nominal")
    assert ordered != nominal
    for table in (frame, cut(frame, [3])):
        assert gpupif.models.t_closeness(table, *asked) == ordered
        assert gpupif.models.t_closeness(table, *asked, distance="nominal") == nominal


BAD = [
    (("ag",), {}, ColumnNotFoundError, "quasi_identifiers: no column 'ag'"),
    (("age", "one"), {}, InputError, "sensitive: column 'one': expected at least two different values, got 1 in all"),
    (("age", "ill"), {"distance": "ordered"}, InputError, "^distance: column 'ill': expected numbers"),
    (("age", "ill"), {"missing": "error"}, InputError, r"column 'age': 1 missing value, the first in row 3 \(from 0\)"),
    (("age", "ill"), {"population": pd.DataFrame({"ag": [1]})}, InputError, "population: no column 'age' in the popul"),
    (("age", "ill"), {"population": pd.DataFrame({"age": [1.0]})}, InputError, "lacks 3 .* it has .* Give the popul"),
    (("age", "ill"), {"population": pd.DataFrame({"age": []})}, InputError, "population: expected at least one row"),
    (
        ("age", "ill"),
        {"population": pd.DataFrame({"age": ["x"]})},
        InputError,
        "'age': .* in the table and .* in the pop",
    ),
    (("age", "ill"), {"population": cut(pd.DataFrame({"age": [1]}), [])["age"]}, InputError, "got a Dask Series"),
    (("age", "ill"), {"population": "no.parquet"}, TableReadError, "no.parquet: no such file"),
    (("ill", "one"), {"population": 3}, InputError, "population: expected a pandas"),
]


@pytest.mark.parametrize(("columns", "options", "kind", "message"), BAD)
def test_bad_input_is_refused(columns, options, kind, message):
    frame = pd.DataFrame({"age": [1, 1, 2, None], "ill": list("aaba"), "one": 1})
    with pytest.raises(kind, match=message):
        gpupif.risk(cut(frame, [2]), *columns, **options)


def test_other_bad_tables_are_refused():
    frame = pd.DataFrame({"age": [1, 2]})
    with pytest.raises(InputError, match="expected a Dask DataFrame, got a Dask Series"):
        gpupif.models.k_anonymity(cut(frame, [1])["age"], "age")
    with pytest.raises(InputError, match="expected at least one row, got none"):
        gpupif.models.k_anonymity(cut(frame.head(0), [0]), "age")


def test_nearly_unique_quasi_identifiers_are_warned_of():
    frame = pd.DataFrame({"id": np.arange(60), "ill": [0, 1] * 30})
    with pytest.warns(gpupif.errors.NearlyUniqueWarning, match="quasi_identifiers: column 'id'") as seen:
        assert gpupif.risk(cut(frame, [7, 20]), "id", "ill").k == 1
    assert len(seen) == 1


def test_progress_counts_tasks(monkeypatch):
    stages, done = [], []
    monkeypatch.setattr(Reporter, "stage", lambda self, *stage: self.visible and stages.append(stage))
    monkeypatch.setattr(Reporter, "advance", lambda self, amount=1: self.visible and done.append(amount))
    with gpupif.config(progress=True):
        gpupif.models.k_anonymity(cut(pd.DataFrame({"age": [1, 2]}), [1]), "age")
    assert stages == [("compute", None, "tasks"), ("compute", len(done), "tasks")]
    assert len(done) > 5
    assert set(done) == {1}


def test_the_constant_column_has_the_same_name_in_every_process():
    assert pickle.loads(pickle.dumps(NO_ATTRIBUTE)) is NO_ATTRIBUTE


def test_an_order_that_dask_does_not_know_is_not_used():
    kind = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    frame = pd.DataFrame({"g": [*"aaabbb"], "x": ["low", "middle", "middle", "high", "low", "high"]})
    lazy = dd.from_pandas(frame, npartitions=2)
    lazy["x"] = lazy["x"].astype(pd.CategoricalDtype(ordered=True))
    with pytest.warns(UserWarning, match="column 'x', so that their order is not used"):
        loose = gpupif.models.t_closeness(lazy, "g", "x")
    assert loose == gpupif.models.t_closeness(frame, "g", "x")
    ordered = gpupif.models.t_closeness(frame.astype({"x": kind}), "g", "x")
    assert gpupif.models.t_closeness(lazy, "g", "x", distance=list(kind.categories)) == ordered != loose
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        gpupif.score(lazy, "cig").cig.compute()
        assert gpupif.models.k_anonymity(lazy, "g") == 3
