"""Any attack on a Dask frame: features in any combination, the bits of the table in memory. Without a cluster."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.dask import one_part
from tests.helpers.dask_frames import assert_same, cut
from tests.helpers.pairs import pairwise_settings
from tests.helpers.scores import ALL

pytestmark = [pytest.mark.dask, pytest.mark.usefixtures("dask_in_one_thread")]

CENSUS = gpupif.datasets.census(40, columns=4)
NAMES = list(CENSUS)
COLUMNS = ["age", "region"]
FEW = gpupif.AnyKnown(2, among=NAMES)
ATTACKERS = {
    "all columns": {},
    "some columns": {"known": ["sex", "age"]},
    "nothing": {"known": []},
    "any one": {"known": 1},
    "any two": {"known": FEW},
    "a sample of any two": {"known": gpupif.AnyKnown(2, among=NAMES, subsets=2, seed=3)},
    "lists": {"attackers": {"neighbour": ["sex", "age"], "nobody": []}},
    "lists and any": {"attackers": {"neighbour": ["sex"], "any two": FEW, "any one": 1}},
}
WEIGHTS = {
    "none": None,
    "positive": np.arange(60) % 4 + 0.5,
    "zeros": np.where(np.arange(60) % 3, np.arange(60) % 5 * 0.25, 0),
}
FEATURES = {
    "attackers": list(ATTACKERS),
    "weights": list(WEIGHTS),
    "population": ["none", "of the table", "of others", "without missing values"],
    "missing": ["category", "wildcard", "in the population alone"],
    "given": [True, False],
    "dtype": ["float64", "float32"],
}


def sparse(frame, seed):
    """The table with holes, but for its last column."""
    holes = np.random.default_rng(seed).random(frame.shape) < 0.25
    holes[:, -1] = False
    return frame.mask(holes)


def question(attackers, weights, population, missing, given, dtype):
    """The table, a population that may lack rows of it, or None, and further arguments of `gpupif.score`."""
    table, people = CENSUS.sample(60, replace=True, random_state=1, ignore_index=True), None
    others = gpupif.datasets.census(30, columns=4, seed=8)
    if missing != "in the population alone":
        table = sparse(table, 2)
    if population == "of the table":
        people = pd.concat([table, sparse(others, 3)], ignore_index=True)
    elif population != "none":
        people = pd.concat([CENSUS[::2], others], ignore_index=True)
        people = people if population == "without missing values" else sparse(people, 3)
    arguments = {**ATTACKERS[attackers], "columns": COLUMNS, "dtype": dtype}
    arguments["missing"] = "category" if missing == "category" else "wildcard"
    if weights != "none":
        table = table.assign(people=WEIGHTS[weights])
        arguments["weights"] = "people"
    if given:
        regions = list(gpupif.datasets.census(70, columns=4)["region"].unique())
        everything = [*regions, *([None] if missing == "category" else [])]
        arguments["priors"] = {"region": {value: 1 / len(everything) for value in everything}}
        arguments["accuracies"] = {"age": 0.75}
    return table, people, arguments


def assert_like_memory(table, people, edges=(), lacks="count", **arguments):
    """The same scores of a Dask frame and of the table in memory; both, by attacker, the means too."""
    lazy = arguments
    if people is not None:
        lazy = arguments | {"population": gpupif.Population(cut(people, [len(people) // 3]), lacks)}
        arguments["population"] = gpupif.Population(people, lacks)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(table, ALL, **arguments)
        scores = gpupif.score(cut(table, edges), ALL, **lazy)
    each = [(scores, expected)]
    if "attackers" in arguments:
        assert list(scores) == list(expected)
        each = [(scores.against(name), expected.against(name)) for name in scores.attackers]
    each += [(one.mean, other.mean) for one, other in each if hasattr(one, "mean")]
    for one, other in each:
        assert_same(one.persist(), other)
    return each


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [pytest.param(one, id="-".join(map(str, one.values()))) for one in pairwise_settings(FEATURES)]
)
def test_the_bits_of_the_table_in_memory(settings):
    table, people, arguments = question(**settings)
    lacks = "error" if settings["population"] == "of the table" else "count"
    for one, other in assert_like_memory(table, people, [20, 20, 45], lacks, **arguments):
        assert dict(one.weights) == other.weights
        assert dict(one.priors) == dict(other.priors)


def test_attackers_of_both_kinds_side_by_side():
    table, people, arguments = question("lists and any", "zeros", "of others", "wildcard", True, "float64")
    population = gpupif.Population(people, "count")
    scores = gpupif.score(cut(table, [30]), ["cig", "csf"], population=population, **arguments)
    names = scores.frame().columns.tolist()
    assert names[:4] == ["neighbour_cig_age", "neighbour_cig_region", "neighbour_csf_age", "neighbour_csf_region"]
    assert names[4:6] == ["neighbour_population_size_age", "neighbour_population_size_region"]
    assert [name.removesuffix("_age") for name in names[6:18:2]] == [
        f"any two_{measure}_{fold}" for measure in ("cig", "csf", "population_size") for fold in ("worst", "mean")
    ]
    computed = scores.frame().compute()
    assert computed.dtypes.tolist() == scores.frame().dtypes.tolist()
    assert len(names) == computed.shape[1] == 2 * (3 + 6 + 6)


@pytest.mark.parametrize("lacks", ["error", "count"])
def test_values_that_the_population_lacks(lacks):
    """Where missing values are wildcards no row can be known to be lacking, but values can."""
    table = pd.DataFrame({"a": ["x", None, "y", "z"], "b": [1, 2, None, 1]})
    people = pd.DataFrame({"a": ["x", "y", None, "x"], "b": [1, 1, 2, 2]})
    if lacks == "count":
        assert_like_memory(table, people, [2], missing="wildcard")
        return
    with pytest.raises(gpupif.InputError, match="population: column 'a' has 'z' nowhere in it") as expected:
        gpupif.score(table, population=people, missing="wildcard")
    with pytest.raises(gpupif.InputError) as error:
        gpupif.score(cut(table, [2]), population=people, missing="wildcard").cig.compute()
    assert str(error.value) == str(expected.value)


CANNOT_BE_CUT = {
    "any two": ({"known": 2}, "known: any 2 columns: all different rows", "name the known columns,"),
    "wildcards": ({"missing": "wildcard"}, "missing: 'wildcard': all different rows", "use missing='category',"),
    "both": (
        {"known": 2, "missing": "wildcard"},
        "known: any 2 columns with missing: 'wildcard': all different rows",
        "name the known columns and use missing='category',",
    ),
}


@pytest.mark.parametrize("population", [None, CENSUS])
@pytest.mark.parametrize(("arguments", "says", "instead"), CANNOT_BE_CUT.values(), ids=CANNOT_BE_CUT)
def test_rows_that_have_to_be_in_one_part_are_limited(arguments, says, instead, population, monkeypatch):
    table = sparse(CENSUS, 2)
    people = None if population is None else gpupif.Population(population, "count")
    scores = gpupif.score(cut(table, [20]), population=people, **arguments)
    monkeypatch.setattr(one_part, "MOST_BYTES", 1 << 10)
    with pytest.raises(gpupif.InputError) as error:
        scores.cig.compute()
    message = str(error.value)
    assert [part for part in (says, instead, "39 rows", "expected at most 1.0 KiB") if part not in message] == []
    assert ("of the population" in message) == (population is not None)


def test_what_can_be_cut_has_no_limit(monkeypatch):
    monkeypatch.setattr(one_part, "MOST_BYTES", 0)
    people = gpupif.datasets.census(80, columns=4)
    assert_like_memory(CENSUS, people, [20], missing="wildcard")


def test_a_worker_may_fill_half_of_its_memory(monkeypatch):
    assert one_part.room() == 4 << 30
    monkeypatch.setattr(one_part, "task_memory", lambda: 1000)
    assert one_part.room() == 500
