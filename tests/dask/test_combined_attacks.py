"""Combined attacks on a Dask frame without a cluster: names and types of scores, absent rows, limits of memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.pipeline import one_partition_memory
from tests.helpers.dask_frames import assert_same, cut
from tests.helpers.scores import ALL

pytestmark = [pytest.mark.dask, pytest.mark.usefixtures("dask_in_one_thread")]

CENSUS = gpupif.datasets.census(40, columns=4)


def sparse(frame, seed):
    """Return the table with missing values in all columns except the last."""
    holes = np.random.default_rng(seed).random(frame.shape) < 0.25
    holes[:, -1] = False
    return frame.mask(holes)


def assert_like_memory(table, people, edges=(), lacks="count", **arguments):
    """Assert that a Dask frame and the table in memory have equal scores; return both, by attacker, with means."""
    lazy = arguments
    if people is not None:
        lazy = arguments | {"population": gpupif.Population(cut(people, [len(people) // 3]), lacks)}
        arguments["population"] = gpupif.Population(people, lacks)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(table, ALL, **arguments)
        scores = gpupif.score(cut(table, edges), ALL, **lazy)
    each = [(scores, expected)]
    if "attackers" in arguments:
        assert scores.attackers == expected.attackers
        each = [(scores.against(name), expected.against(name)) for name in scores.attackers]
    each += [(one.mean, other.mean) for one, other in each if hasattr(one, "mean")]
    for one, other in each:
        assert_same(one.persist(), other)
    return each


@pytest.mark.slow
def test_both_kinds_of_attackers_are_scored_together():
    attackers = {"neighbour": ["sex"], "any two": gpupif.AnyKnown(2, among=list(CENSUS)), "any one": 1}
    population = gpupif.Population(cut(gpupif.datasets.census(30, columns=4, seed=8), [10]), "count")
    asked = {"columns": ["age", "region"], "attackers": attackers, "population": population, "missing": "wildcard"}
    scores = gpupif.score(cut(sparse(CENSUS, 2), [30]), ["cig", "csf"], **asked)
    names = scores.frame().columns.tolist()
    assert names[:4] == ["neighbour_cig_age", "neighbour_cig_region", "neighbour_csf_age", "neighbour_csf_region"]
    assert names[4:6] == ["neighbour_population_size_age", "neighbour_population_size_region"]
    assert [name.removesuffix("_age") for name in names[6:18:2]] == [
        f"any two_{measure}_{aggregate}"
        for measure in ("cig", "csf", "population_size")
        for aggregate in ("worst", "mean")
    ]
    computed = scores.frame().compute()
    assert computed.dtypes.tolist() == scores.frame().dtypes.tolist()
    assert len(names) == computed.shape[1] == 2 * (3 + 6 + 6)


@pytest.mark.parametrize("lacks", ["error", "count"])
def test_values_that_the_population_lacks_are_refused_or_counted(lacks):
    """With wildcards only values can be known to be absent, not rows."""
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
    "any two": ({"known": 2}, "known: any 2 columns: all distinct rows", "name the known columns,"),
    "wildcards": ({"missing": "wildcard"}, "missing: 'wildcard': all distinct rows", "use missing='category',"),
    "both": (
        {"known": 2, "missing": "wildcard"},
        "known: any 2 columns with missing: 'wildcard': all distinct rows",
        "name the known columns and use missing='category',",
    ),
}


@pytest.mark.parametrize("population", [None, CENSUS])
@pytest.mark.parametrize(("arguments", "says", "instead"), CANNOT_BE_CUT.values(), ids=CANNOT_BE_CUT)
def test_rows_that_must_be_in_one_partition_have_a_limit(arguments, says, instead, population, monkeypatch):
    table = sparse(CENSUS, 2)
    people = None if population is None else gpupif.Population(population, "count")
    scores = gpupif.score(cut(table, [20]), population=people, **arguments)
    monkeypatch.setattr(one_partition_memory, "MOST_BYTES", 1 << 10)
    with pytest.raises(gpupif.InputError) as error:
        scores.cig.compute()
    message = str(error.value)
    assert [part for part in (says, instead, "39 rows", "expected at most 1.0 KiB") if part not in message] == []
    assert ("of the population" in message) == (population is not None)


def test_rows_that_can_be_cut_into_partitions_have_no_limit(monkeypatch):
    monkeypatch.setattr(one_partition_memory, "MOST_BYTES", 0)
    people = gpupif.datasets.census(80, columns=4)
    assert_like_memory(CENSUS, people, [20], missing="wildcard")


def test_a_worker_may_fill_half_of_its_memory(monkeypatch):
    assert one_partition_memory.room() == 4 << 30
    monkeypatch.setattr(one_partition_memory, "task_memory", lambda: 1000)
    assert one_partition_memory.room() == 500
