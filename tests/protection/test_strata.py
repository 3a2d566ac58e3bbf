"""Criteria within strata: every node of small lattices by definition, the strata being known and never recoded."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError, UnmetError
from tests.helpers.class_criteria import CRITERIA, NAMES, best, example


def strata_of(seed, **more):
    """A table, the arguments of `protect` with column c as strata, and the hierarchies of the other columns."""
    table, hierarchies = example(seed)
    hierarchies.pop("c")
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    return table, {"hierarchies": given, "sensitive": "ill", "strata": "c"} | more, hierarchies


@pytest.mark.sampled(5)
@pytest.mark.parametrize("share", [pytest.param(0.05, marks=pytest.mark.slow), 0.2])
@pytest.mark.parametrize("criteria", CRITERIA, ids=" and ".join)
def test_the_plan_is_the_best_of_all_nodes_within_strata(criteria, share):
    table, arguments, hierarchies = strata_of(1)
    rows = table.to_dict("records")
    most = math.floor(share * len(rows) + 1e-9)
    try:
        (node, suppressed), loss = best(rows, hierarchies, criteria, most)
    except ValueError:
        with pytest.raises(UnmetError):
            gpupif.protect(table, criteria, suppress=share, **arguments)
        return
    found = gpupif.protect(table, criteria, suppress=share, **arguments)
    assert found.levels == {"a": node[0], "b": node[1], "c": 0}
    assert found.heights["c"] == 0
    assert found.loss == pytest.approx(loss, rel=1e-12)
    assert found.suppressed_rows == suppressed
    after = gpupif.treat(table, found.plan).table
    if any(own.startswith("k>=") for own in criteria):
        k = next(int(own[3:]) for own in criteria if own.startswith("k>="))
        assert all(gpupif.risk(stratum, ["a", "b"]).k >= k for _, stratum in after.groupby("c"))


@pytest.mark.parametrize("more", [{}, {"cells": True, "suppress": 0.2}, {"local": True, "suppress": 0.3}])
def test_the_column_of_the_strata_stays_as_it_is(more):
    table, arguments, _ = strata_of(2, **more)
    found = gpupif.protect(table, "k>=3", **arguments)
    assert found.is_met
    assert found.attacker == gpupif.protect(table, "k>=3", sensitive="ill").attacker
    after = gpupif.treat(table.assign(number=range(len(table))), found.plan).table
    assert after["c"].tolist() == table["c"][after["number"]].tolist()
    assert gpupif.risk(after, NAMES, missing="category").k >= 3


def test_strata_are_added_to_the_quasi_identifiers():
    table, arguments, _ = strata_of(2)
    usual = gpupif.protect(table, "k>=3", **arguments)
    named = gpupif.protect(table, "k>=3", quasi_identifiers=["a", "b"], **arguments)
    assert (named.levels, named.loss, named.proposed) == (usual.levels, usual.loss, [])


@pytest.mark.parametrize("objective", ["entropy+suppression", "loss", "precision", "discernibility"])
def test_every_objective_goes_with_strata(objective):
    table, arguments, _ = strata_of(2, objective=objective, suppress=0.1)
    found = gpupif.protect(table, "k>=2", **arguments)
    assert found.is_met
    assert found.levels["c"] == 0


def test_a_stratum_that_is_too_small_is_named():
    table = pd.DataFrame({"age": [1, 2, 3, 4, 5, 6], "town": ["N", "N", "N", "N", "S", "S"], "sex": list("ffffmm")})
    message = (
        "require: no treatment meets the criteria. The stratum of 'town' 'S', 'sex' 'm' has 2 rows, fewer than k=3"
    )
    with pytest.raises(UnmetError, match=message):
        gpupif.protect(table, "k>=3", strata=["town", "sex"])
    found = gpupif.protect(table, "k>=3", strata="town", quasi_identifiers="age", suppress=0.4)
    assert found.suppressed_rows == 2
    table.loc[5, "town"] = None
    with pytest.raises(UnmetError, match=r"The stratum of 'town' (None|nan|'S') has 1 row, fewer than k=3"):
        gpupif.protect(table, "k>=3", strata="town")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strata": "town"}, "strata: no column 'town'"),
        ({"strata": "ill"}, "strata: column 'ill' has another role too"),
        ({"strata": "c", "identifiers": "c"}, "strata: column 'c' has another role too"),
        ({"strata": "c", "require": "known=a,b: k>=2"}, "attacker who need not know column 'c'"),
        ({"strata": "c", "require": "known=2: k>=2"}, "attacker who need not know column 'c'"),
        ({"strata": []}, "strata: expected at least one column, got an empty list"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    table, _ = example(0)
    with pytest.raises(InputError, match=message):
        gpupif.protect(table, **({"require": "k>=2", "sensitive": "ill"} | arguments))


@pytest.mark.slow
@pytest.mark.usefixtures("on_cpu")
def test_every_kind_of_table_gives_the_same_plan(tmp_path):
    from dask import dataframe as dd

    table, arguments, _ = strata_of(2, suppress=0.1)
    table["size"] = np.arange(len(table)) % 3
    table.to_parquet(tmp_path / "table.parquet")
    arguments["quasi_identifiers"] = ["a", "b"]
    kinds = [table, tmp_path / "table.parquet", dd.from_pandas(table, npartitions=3)]
    plans = [gpupif.protect(kind, "distinct_l>=2", **arguments).plan.to_dict() for kind in kinds]
    assert plans[0] == plans[1] == plans[2]
