"""Rows of classes that break any criterion on classes are suppressed: every node of small lattices by definition."""

from __future__ import annotations

import io
import math

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import gpupif
from tests.helpers import naive_protection as naive
from tests.helpers.class_criteria import CRITERIA, best, example, is_broken


@pytest.mark.parametrize("share", [0.0, 0.03, 0.1])
@pytest.mark.parametrize("criteria", CRITERIA, ids=" and ".join)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_the_plan_is_the_best_of_all_nodes(criteria, share, seed):
    table, hierarchies = example(seed)
    rows = table.to_dict("records")
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    found = gpupif.protect(table, criteria, hierarchies=given, sensitive="ill", suppress=share)
    (node, suppressed), loss = best(rows, hierarchies, criteria, math.floor(share * len(rows) + 1e-9))
    assert tuple(found.levels.values()) == node
    assert found.loss == pytest.approx(loss, rel=1e-12)
    assert found.suppressed_rows == suppressed
    assert found.optimal
    assert all(value.is_met for value in found.searched)


@pytest.mark.usefixtures("on_cpu")
def test_rows_of_broken_classes_are_suppressed_in_every_kind_of_table(tmp_path):
    from dask import dataframe as dd

    table, _ = example(3, 200)
    table["pay"] = np.random.default_rng(3).integers(1, 6, len(table))
    whole = table.to_dict("records")
    criteria = ["k>=2", "distinct_l(ill)>=2", "t(pay)<=0.3", "delta(ill)<=1.5"]
    treatment = gpupif.treatments.SuppressRows(require=criteria, quasi_identifiers=["b", "c"], sensitive=["ill", "pay"])
    plan = gpupif.Plan([treatment])
    plan.save(tmp_path / "plan.toml")
    kept = []
    for own in naive.classes(whole, ["b", "c"]).values():
        pay = [sum(row["pay"] <= step for row in own) / len(own) for step in range(1, 5)]
        prior = [sum(row["pay"] <= step for row in whole) / len(whole) for step in range(1, 5)]
        distance = sum(abs(x - y) for x, y in zip(pay, prior, strict=True)) / 4
        broken = any(
            is_broken(own, whole, criterion.replace("(ill)", "")) for criterion in criteria if "pay" not in criterion
        )
        kept += [] if broken or distance > 0.3 else own
    expected = sorted(map(tuple, pd.DataFrame(kept, columns=list(table)).to_numpy().tolist()))
    assert 0 < len(expected) < len(table)
    table.to_parquet(tmp_path / "t.parquet")
    frames = [
        gpupif.treat(table, plan).table,
        gpupif.treat(dd.from_pandas(table, npartitions=3), plan).table.compute(),
    ]
    gpupif.treat_files(tmp_path / "t.parquet", tmp_path / "out.parquet", tmp_path / "plan.toml")
    frames.append(pd.read_parquet(tmp_path / "out.parquet"))
    for frame in frames:
        assert sorted(map(tuple, frame.to_numpy().tolist())) == expected


def test_the_result_says_where_the_treated_table_differs_from_the_search():
    table = pd.DataFrame({"a": list("xxxxyyyyzz"), "S": list("pqpqpqpqrr")})
    hierarchies = {"a": {"values": dict.fromkeys("xyz", "*")}}
    found = gpupif.protect(table, "t(S)<=0.2", hierarchies=hierarchies, sensitive="S", suppress=0.2)
    assert (found.levels, found.suppressed_rows) == ({"a": 0}, 2)
    assert found.searched[0].value == pytest.approx(0.2)
    assert found.risk[0].value == 0
    said = " ".join(str(found).split())
    assert "0.2 if classes are compared with all rows" in said
    assert "0 in the treated table alone, which meets it too" in said
    assert found.to_dict()["searched"][0]["is_met"]


def test_the_result_says_so_if_the_treated_table_breaks_a_criterion():
    """The class z holds the table near both other classes: without z one of them is far from the rest."""
    values = "p" * 8 + "q" * 2 + "p" * 8 + "q" * 32 + "p" * 18
    table = pd.DataFrame({"a": list("x" * 10 + "y" * 40 + "z" * 18), "S": list(values)})
    hierarchies = {"a": {"values": dict.fromkeys("xyz", "*")}}
    found = gpupif.protect(table, "t(S)<=0.35", hierarchies=hierarchies, sensitive="S", suppress=0.3)
    assert (found.levels, found.suppressed_rows) == ({"a": 0}, 18)
    assert found.searched[0].value == pytest.approx(0.3)
    assert found.risk[0].value == pytest.approx(0.48)
    assert (found.searched[0].is_met, found.is_met) == (True, False)
    assert "0.48 in the treated table alone, which does NOT meet it" in " ".join(str(found).split())


def test_a_criterion_against_an_attacker_of_its_own_needs_one_on_classes():
    table, _ = example(0)
    for criterion in ("known=2: k>=3", "max csf<=0.9", "uniques<=3"):
        with pytest.raises(gpupif.InputError, match=r"^suppress: expected with a criterion on each equivalence class"):
            gpupif.protect(table, criterion, sensitive="ill", suppress=0.1)
        with pytest.raises(gpupif.InputError, match="is not on each equivalence class"):
            gpupif.Plan([gpupif.treatments.SuppressRows(require=criterion, quasi_identifiers=["a"])])


@pytest.mark.parametrize("criteria", [["k>=3"], ["t<=0.45", "k>=2"], ["entropy_l>=1.9"]], ids=" and ".join)
def test_the_frontier_has_the_rows_that_its_nodes_suppress(criteria):
    table, hierarchies = example(0)
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    found = gpupif.protect(table, criteria, hierarchies=given, sensitive="ill", suppress=0.1)
    rows = table.to_dict("records")
    assert len(found.frontier) > 1
    for node in found.frontier:
        expected = suppressed_rows(rows, hierarchies, tuple(node.levels.values()), criteria)
        assert node.suppressed_rows == expected
        assert node.is_met == (expected <= 7)
        assert not node.is_met or node.loss >= found.loss
    assert found.levels in [node.levels for node in found.frontier]


def test_the_frontier_fits_the_width_of_the_terminal():
    table, hierarchies = example(1)
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    criteria = ["k>=3", "entropy_l(ill)>=2", "max csf(ill)<=0.9"]
    found = gpupif.protect(table, criteria, hierarchies=given, sensitive="ill", suppress=0.1)
    plan = f"levels {','.join(map(str, found.levels.values()))}"
    for width in (60, 80, 100, 200):
        out = io.StringIO()
        found.print(Console(file=out, width=width))
        lines = out.getvalue().split("Loss against risk")[1].splitlines()
        assert max(map(len, lines)) <= width
        assert any("suppressed rows" in line for line in lines)
        shown = [line for line in lines if line.startswith(("plan", "│ plan"))]
        assert len(shown) == 1
        assert plan in shown[0] or shown[0].split("│")[-2].strip() == plan.removeprefix("levels ")
        for node in found.frontier:
            assert f"{100 * node.loss / found.highest_loss:.4g} %" in out.getvalue()
