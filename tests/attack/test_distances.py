"""Distances of values: axes of columns, and the earth mover's distance over them."""

from __future__ import annotations

import datetime

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import gpupif
from gpupif.errors import InputError
from tests.helpers import naive, naive_attack
from tests.helpers.scores import assert_scores
from tests.helpers.tables import SHARED_FIXTURES

pytestmark = pytest.mark.every_engine

TREE = {
    "Berlin": ["Germany", "Europe"],
    "Bonn": ["Germany", "Europe"],
    "Paris": ["France", "Europe"],
    "Lyon": ["France", "Europe"],
    "Tokyo": ["Japan", "Asia"],
    "Osaka": ["Japan", "Asia"],
    "Seoul": ["Korea", "Asia"],
}
UNDER_ONE_ROOT = {city: [*path, "World"] for city, path in TREE.items()}


def least_work(posterior, prior, distance):
    """Return the distance by definition: the least work of moving a distribution, by linear programming."""
    values = list(prior)
    moves = [(a, b) for a in values for b in values]
    leaving = [[float(a == value) for a, _ in moves] for value in values]
    arriving = [[float(b == value) for _, b in moves] for value in values]
    masses = [posterior[value] for value in values] + [prior[value] for value in values]
    best = linprog([distance(a, b) for a, b in moves], A_eq=leaving + arriving, b_eq=masses, method="highs")
    assert best.success
    return best.fun


def levels_apart(tree):
    def distance(a, b):
        paths = [(a, *tree[a], "the root"), (b, *tree[b], "the root")]
        return next(level for level, (one, other) in enumerate(zip(*paths, strict=True)) if one == other)

    return distance


DISTANCES = {
    "nominal": ("nominal", lambda a, b: float(a != b)),
    "ordered": (list(TREE), lambda a, b: abs(list(TREE).index(a) - list(TREE).index(b))),
    "tree": (TREE, levels_apart(TREE)),
    "tree with a root": (UNDER_ONE_ROOT, levels_apart(UNDER_ONE_ROOT)),
}


@pytest.mark.parametrize(("kind", "distance"), DISTANCES.values(), ids=DISTANCES)
@given(data=st.data())
@settings(deadline=None, max_examples=10)
def test_the_distance_of_the_oracle_is_the_least_work(kind, distance, data):
    weights = st.lists(st.integers(0, 5), min_size=len(TREE), max_size=len(TREE)).filter(any)
    posterior, prior = (
        {city: weight / sum(drawn) for city, weight in zip(TREE, drawn, strict=True)}
        for drawn in (data.draw(weights), data.draw(weights))
    )
    order = kind
    expected = least_work(posterior, prior, distance)
    assert naive.earth_movers_distance(posterior, prior, order) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "_"), DISTANCES.values(), ids=DISTANCES)
@given(data=st.data())
@SHARED_FIXTURES
def test_emd_of_cities_follows_its_definition(engine, kind, _, data):
    cities = data.draw(st.lists(st.sampled_from(list(TREE)), min_size=1, max_size=25))
    table = {"city": cities, "group": [data.draw(st.integers(0, 2)) for _ in cities]}
    arguments = {"distances": {"city": kind}, "columns": ["city"], "known": ["group"]}
    if data.draw(st.booleans()):
        drawn = data.draw(st.lists(st.integers(1, 9), min_size=len(TREE), max_size=len(TREE)))
        shares = {city: weight / sum(drawn) for city, weight in zip(TREE, drawn, strict=True)}
        arguments["priors"] = {"city": shares}
    arguments["accuracies"] = {"city": data.draw(st.sampled_from([0.0, 0.6, 1.0]))}
    assert_scores(gpupif.score(pd.DataFrame(table), ["emd"], **arguments), naive_attack.score(table, **arguments))


def test_emd_has_the_values_of_the_article():
    """The shares are 0.8 at 1 and 0.05 at 2 to 5; the distance to 0.8 at 2 is 0.75, to 0.8 at 5 is 3 (article 001)."""
    rows = [1] * 16 + [2, 3, 4, 5]
    table = pd.DataFrame({"x": rows})
    for most, expected in ((2, 0.75), (5, 3.0)):
        prior = {value: 0.8 if value == most else 0.05 for value in range(1, 6)}
        assert gpupif.score(table, "emd", known=[], priors={"x": prior}).emd["x"].to_numpy() == pytest.approx(expected)


@pytest.mark.slow
def test_emd_is_right_for_cohorts_of_few_of_many_values(engine):
    """The column has many values, its cohorts have few; the steps between their values are summed at once."""
    random = np.random.default_rng(3)
    table = {
        "age": random.permutation(np.repeat(np.arange(150), 2)).tolist(),
        "g": random.integers(0, 90, 300).tolist(),
    }
    arguments = {"columns": ["age"], "known": ["g"]}
    assert_scores(gpupif.score(pd.DataFrame(table), ["emd"], **arguments), naive_attack.score(table, **arguments))


@pytest.mark.slow
def test_emd_is_right_for_cohorts_of_many_values(engine):
    random = np.random.default_rng(4)
    table = {"age": random.permutation(200).tolist(), "g": random.integers(0, 2, 200).tolist()}
    arguments = {"columns": ["age"], "known": ["g"], "distances": {"age": [*range(100, 200), *range(100)]}}
    assert_scores(gpupif.score(pd.DataFrame(table), ["emd"], **arguments), naive_attack.score(table, **arguments))


def test_the_whole_table_has_distance_zero(engine):
    scores = gpupif.score(gpupif.datasets.census(500), "emd", known=[])
    assert (scores.emd == 0.0).all(axis=None)


DAYS = [datetime.date(2000, 1, day) for day in (9, 1, 9, 4)]
SIZES = ["S", "M", "L"]
ORDERS = {
    "dates": (DAYS, sorted(set(DAYS))),
    "times": (pd.Series(pd.to_datetime(DAYS)), sorted(set(DAYS))),
    "ordered categories": (pd.Categorical(["M", "S", "M", "L"], SIZES, ordered=True), SIZES),
    "categories": (pd.Categorical(["M", "S", "M", "L"], SIZES), "nominal"),
    "text": (["M", "S", "M", "L"], "nominal"),
    "numbers": ([2.5, None, 2.5, -1.0], [-1.0, 2.5, None]),
    "objects": (pd.Series([3, None, 20, 3], dtype=object), [3, 20, None]),
    "booleans": ([True, False, True, None], [False, True, None]),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("values", "order"), ORDERS.values(), ids=ORDERS)
def test_emd_follows_the_natural_order_of_values(engine, values, order):
    frame = pd.DataFrame({"x": values, "row": range(4)})
    plain = [
        None if pd.isna(value) else value.date() if isinstance(value, pd.Timestamp) else value for value in frame.x
    ]
    prior = naive.distribution(plain)
    expected = [naive.earth_movers_distance({**dict.fromkeys(prior, 0.0), value: 1.0}, prior, order) for value in plain]
    tables = [frame, pa.Table.from_pandas(frame)]
    # Dask makes text of objects.
    tables += [] if frame.x.dtype == object else [dd.from_pandas(frame, npartitions=2)]
    if frame.x.dtype == "category" and frame.x.cat.ordered:
        tables.append(pl.DataFrame({"x": frame.x.astype(str), "row": range(4)}, {"x": pl.Enum(SIZES), "row": pl.Int64}))
    else:
        tables.append(pl.from_pandas(frame))
    for table in tables:
        scores = gpupif.score(table, "emd", columns=["x"], known=["row"]).emd["x"]
        found = scores.compute() if hasattr(scores, "compute") else scores
        assert found.to_numpy() == pytest.approx(expected), type(table)


def test_files_keep_no_order_of_categories(tmp_path):
    frame = pd.DataFrame({"x": pd.Categorical(["M", "S", "M", "L"], SIZES, ordered=True), "row": range(4)})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=2)
    arguments = {"columns": ["x"], "known": ["row"]}
    nominal = gpupif.score(frame, "emd", distances={"x": "nominal"}, **arguments)
    ordered = gpupif.score(frame, "emd", **arguments)
    for distances, expected in (({}, nominal), ({"x": SIZES}, ordered)):
        scores = gpupif.score(tmp_path / "t.parquet", "emd", distances=distances, **arguments)
        assert scores.array("emd").tobytes() == expected.array("emd").tobytes()


BAD = {
    "order of text": ("ordered", "have no order"),
    "value not in the order": (["Berlin", "Bonn"], "'Paris' is not in it"),
    "value twice": ([*TREE, "Bonn"], "twice"),
    "hierarchy that lacks a value": ({"Berlin": ["Germany"], "Bonn": ["Germany"]}, "lacks 'Paris'"),
    "no tree": ({**TREE, "Bonn": ["Germany", "Asia"]}, "no tree: 'Germany' is part of 'Asia' and of 'Europe'"),
    "levels": ({**TREE, "Bonn": ["Germany"]}, "no tree of equal depth"),
    "another word": ("euclidean", "expected 'nominal'"),
    "number": (3, "expected 'nominal'"),
}


@pytest.mark.parametrize(("distance", "says"), BAD.values(), ids=BAD)
def test_bad_distances_are_refused(distance, says):
    table = pd.DataFrame({"city": ["Berlin", "Bonn", "Paris"], "x": [1, 2, 3]})
    # Also where no measure asks how far values are apart, or the column is only known.
    for measure, columns in (("emd", ["city", "x"]), ("cig", ["city", "x"]), ("emd", ["x"])):
        with pytest.raises(InputError, match=says) as caught:
            gpupif.score(table, measure, columns=columns, known=["city", "x"], distances={"city": distance})
        assert "'city'" in str(caught.value)


@pytest.mark.parametrize("measure", ["emd", "cig"])
def test_distances_for_no_column_of_the_table_are_refused(tmp_path, measure):
    frame = pd.DataFrame({"city": ["Berlin", "Bonn", "Paris"], "x": [1, 2, 3]})
    frame.to_parquet(tmp_path / "t.parquet")
    for table in (frame, tmp_path / "t.parquet"):
        for distances, says in (
            ({"town": "nominal"}, "distances: no column 'town'"),
            ("nominal", "distances: expected a dictionary by column name, got str"),
        ):
            with pytest.raises(InputError, match=says):
                gpupif.score(table, measure, distances=distances)
        with pytest.raises(InputError, match="distances: column 'x' is neither scored nor known"):
            gpupif.score(table, measure, columns=["city"], known=[], distances={"x": "nominal"})
    with pytest.raises(InputError, match="distances: column 'city': expected 'nominal'"):
        gpupif.score_files(tmp_path / "t.parquet", tmp_path / "out.parquet", measure, distances={"city": 3})


def test_priors_of_values_without_a_place_in_the_order_are_refused():
    table = pd.DataFrame({"age": [1, 2], "size": pd.Categorical(["S", "L"], ["S", "L"], ordered=True)})
    for column, prior in (("age", {1: 0.5, 2: 0.3, "old": 0.2}), ("size", {"S": 0.5, "L": 0.3, "XL": 0.2})):
        with pytest.raises(InputError, match=f"{column}.*in order"):
            gpupif.score(table, "emd", priors={column: prior})


def test_an_order_may_be_a_list_an_array_or_an_index():
    table = pd.DataFrame({"k": [1, 1, 2], "d": ["a", "b", None]})
    expected = gpupif.score(table, "emd", columns=["d"], known=["k"], distances={"d": ["a", None, "b"]}).array("emd")
    for order in (["a", np.nan, "b"], np.array(["a", None, "b"], object), pd.Index(["a", None, "b"])):
        found = gpupif.score(table, "emd", columns=["d"], known=["k"], distances={"d": order}).array("emd")
        assert found.tobytes() == expected.tobytes()
    tree = {"a": ["x"], np.nan: ["x"], "b": ["y"]}
    assert gpupif.score(table, "emd", columns=["d"], known=["k"], distances={"d": tree}).array("emd").shape == (1, 3)
    for wrong in ([["a"], ["b"]], {"a": [["x"]], "b": ["y"], None: ["y"]}):
        with pytest.raises(InputError, match=r"'d'.*lists in"):
            gpupif.score(table, "emd", columns=["d"], known=["k"], distances={"d": wrong})


def test_a_population_with_a_further_ordered_category_is_refused():
    kinds = [pd.CategoricalDtype([*SIZES, *more], ordered=True) for more in ([], ["XL"])]
    sample, population = (pd.DataFrame({"s": pd.Series([*"SML"], dtype=kind), "g": 1}) for kind in kinds)
    population = pd.concat([population, pd.DataFrame({"s": pd.Series(["XL"], dtype=kinds[1]), "g": 1})])
    with pytest.raises(InputError, match=r"'s'.*ordered categories lack 'XL'.*distances="):
        gpupif.score(sample, "emd", columns=["s"], known=["g"], population=population)
