"""The benchmark beside sdcMicro: what of it does not need R."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks import sdcmicro
from benchmarks.as_sdcmicro import WORK, WORK_ON_NUMBERS, Job, as_text, of_text, run
from benchmarks.sdcmicro import SdcMicro, SdcMicroFailedError, largest_difference, seconds_of, too_different
from benchmarks.sdcmicro_tables import PeerTable, generated_census, masked_tables, with_missing
from tests.helpers import naive_continuous
from tests.helpers.naive_suda import minimal_uniques, score_of


@pytest.fixture
def table(tmp_path) -> PeerTable:
    """Six people, one of whom lacks a value; two columns whose first values the same rows have."""
    rows = ["f,n,a,2,1,x", "f,n,b,2,1,y", "m,s,a,3,2,x", "m,s,,3,2,x", "m,s,b,1.5,3,y", "m,t,b,1.5,3,x"]
    file = tmp_path / "table.csv"
    file.write_text("\n".join(["sex,home,job,weight,house,ill", *rows]) + "\n")
    return PeerTable("six", file, 6, ("sex", "home", "job"), "weight", "house", "ill")


def write_rscript(tmp_path, *lines):
    """A command that stands for Rscript; $1 is the script, then come its arguments."""
    command = tmp_path / "Rscript"
    command.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    command.chmod(0o755)
    return str(command)


def test_a_missing_r_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sdcmicro", "--rscript", str(tmp_path / "none"), "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        sdcmicro.main()
    assert str(ended.value).startswith(f"benchmarks.sdcmicro: R is missing: {tmp_path / 'none'} is no command here")
    assert "docs/explanation/benchmarks.md" in str(ended.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.subprocess
def test_missing_packages_of_r_are_said(tmp_path):
    missing = r"Rscript has no package sdcMicro and no data.table\. docs/explanation/benchmarks.md"
    with pytest.raises(SystemExit, match=missing):
        SdcMicro.find(write_rscript(tmp_path, "echo missing sdcMicro data.table", "exit 3"))
    with pytest.raises(SystemExit, match="failed:\nno such library"):
        SdcMicro.find(write_rscript(tmp_path, "echo no such library >&2", "exit 1"))
    found = SdcMicro.find(write_rscript(tmp_path, "echo R 4.2.2", "echo sdcMicro 5.8.1"))
    assert found.versions == {"R": "4.2.2", "sdcMicro": "5.8.1"}


@pytest.mark.slow
@pytest.mark.subprocess
def test_gpupif_and_sdcmicro_are_asked_the_same_and_compared(tmp_path, table, monkeypatch, capsys):
    """R gets the same job as gpupif, and the two arrays are compared."""
    monkeypatch.setattr(sdcmicro, "run_gpupif", lambda job, limit: run(job))
    frequencies = tmp_path / "wanted"
    np.array([1.0, 1.0, 2.0, 3.0, 2.0, 1.0]).tofile(frequencies)
    lines = [f'echo "$@" >> {tmp_path}/asked', f"cp {frequencies} {tmp_path}/sdcMicro/fk.f64", "echo seconds 0.5 0.25"]
    peer = SdcMicro(write_rscript(tmp_path, *lines), {})
    result = sdcmicro.compare(Job("frequencies", table, tmp_path), peer, tmp_path, rounds=2, limit=60)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 2
    assert f"work=frequencies table={table.file} keys=sex,home,job out={tmp_path}/sdcMicro threads=1" in asked[0]
    assert asked[0].endswith("weight=weight household=house sensitive=ill")
    assert result["sdcMicro"] == {"first": 0.5, "best": 0.25, "median": 0.375, "runs": 4}
    assert result["differences"] == {"fk": 0.0}
    assert result["ratio"] == 0.25 / result["gpupif"]["best"]
    sdcmicro.print_result(result)
    assert "frequencies" in capsys.readouterr().out


@pytest.mark.subprocess
def test_a_slow_sdcmicro_is_stopped_and_a_failing_one_is_an_error(tmp_path, table):
    slow = SdcMicro(write_rscript(tmp_path, "exec sleep 60"), {})
    assert slow.run(Job("suda", table, tmp_path), 0.2) is None
    broken = SdcMicro(write_rscript(tmp_path, "echo it broke >&2", "exit 1"), {})
    with pytest.raises(SdcMicroFailedError, match=r"suda of .*table\.csv:\nit broke"):
        broken.run(Job("suda", table, tmp_path), 60)
    assert seconds_of("Warning\nseconds 1.5 0.25\n") == [1.5, 0.25]
    with pytest.raises(SdcMicroFailedError, match="in the last line, got:\nnothing"):
        seconds_of("nothing")


def test_the_largest_difference_counts_unknown_numbers():
    numbers = np.array([0.0, 1.0, np.nan, -4.0])
    assert largest_difference(numbers, numbers) == 0
    assert largest_difference(numbers, np.array([0.0, 2.0, np.nan, -4.0])) == 0.5
    assert largest_difference(numbers, np.array([0.0, 1.0, 1.0, -4.0])) == np.inf
    assert largest_difference(numbers, numbers[:2]) == np.inf
    results = [{"table": "t", "work": "suda", "differences": {"score": 0.0, "dis_score": 1e-7}}, {"table": "slow"}]
    assert too_different(results) == []
    results[0]["differences"]["score"] = np.nan
    assert too_different(results) == ["score of t (suda): nan, expected at most 1e-12"]


@pytest.mark.slow
def test_gpupif_computes_the_numbers_counted_by_hand(tmp_path, table):
    """Special uniques are checked against the oracle."""
    found = {}
    # No job has five rows, so that no class of five rows can be within a job.
    for work in WORK.keys() - {"suppression_in_strata", *WORK_ON_NUMBERS}:
        assert len(run(Job(work, table, tmp_path, fraction=0.1))) == 3
        found |= {file.stem: np.fromfile(file) for file in tmp_path.glob("*.f64")}
    assert found["fk"].tolist() == [1, 1, 2, 3, 2, 1]
    assert found["Fk"].tolist() == [2, 2, 6, 7.5, 4.5, 1.5]
    assert found["risk_in_small_classes"][:2].tolist() == pytest.approx([math.log(2)] * 2)
    assert np.isnan(found["risk_in_others"]).tolist() == [size <= 2 for size in found["fk"]]
    assert np.nanmax(found["exact_risk"]) < np.nanmax(found["household_risk"])
    assert found["violations"].tolist() == [3, 5, 6]
    frame = {name: [None if value == "" else value for value in column] for name, column in cells(table).items()}
    sets = minimal_uniques(frame, 3, "ignore")
    assert found["score"].tolist() == [score_of(each, 3, 3) for each in sets]
    assert found["contributions"].reshape(6, 3)[0].tolist() == [0.5, 0.5, 1.0]
    assert found["small_classes"].tolist() == [0, 0, 0]
    # No two rows have the same key, so that every class has one value.
    assert found["distinct_l"].tolist() == [1] * 6
    assert found["entropy_l"].tolist() == [1] * 6
    assert found["recursive_l"].tolist() == [1] * 6


@pytest.mark.slow
def test_gpupif_computes_what_is_defined_of_numbers(tmp_path):
    random = np.random.default_rng(2)
    for name in ("CASCrefmicrodata", "Tarragona"):
        names = ["AGI", "EMCONTRB", "FEDTAX", "INTVAL", "ERNVAL"]
        names += ["FIXED.ASSETS", "CURRENT.ASSETS", "TREASURY", "SALES", "NET.PROFIT"]
        pd.DataFrame(random.normal(size=(30, 10)), columns=names).to_csv(tmp_path / f"{name}.csv", index=False)
    table = masked_tables(tmp_path)[0]
    for work in WORK_ON_NUMBERS:
        run(Job(work, table, tmp_path))
    found = {file.stem: np.fromfile(file) for file in tmp_path.glob("*.f64")}
    frame = pd.read_csv(table.file)
    before, after = ({name: frame[prefix + name].tolist() for name in table.keys} for prefix in ("", "after "))
    assert found["il1s"][0] == pytest.approx(naive_continuous.il1s(before, after)[1])
    within = naive_continuous.within_deviations(before, after, 0.05)
    assert found["interval_risk"][0] == naive_continuous.shares(within)[1]
    assert found["eigenvalues"][0] == pytest.approx(naive_continuous.eigenvalues(before, after))
    means = found["means"].reshape(len(table.keys), -1)
    assert means.mean(axis=1) == pytest.approx([np.mean(before[name]) for name in table.keys])
    assert len(np.unique(means[0])) == 10
    assert (found["kept"].reshape(3, 3)[:, 2] > 0).all()


@pytest.mark.slow
def test_no_class_spans_strata_and_strata_stay(tmp_path):
    census = generated_census(tmp_path, 300, 4)
    census = census.with_keys([*(name for name in census.keys if name != "sex"), "sex"])
    found = {}
    for work in ("suppression", "suppression_in_strata"):
        run(Job(work, census, tmp_path))
        assert np.fromfile(tmp_path / "small_classes.f64").tolist() == [0, 0, 0]
        found[work] = np.fromfile(tmp_path / "suppressed_cells.f64")
    assert (found["suppression"] > 0).all()
    assert (found["suppression_in_strata"][:-1] < found["suppression_in_strata"][1:]).all()


def test_only_more_suppressed_cells_than_in_sdcmicro_differ(tmp_path, table):
    jobs = {side: Job("suppression", table, tmp_path / side) for side in ("sdcMicro", "gpupif")}
    differences = []
    for ours in ([4.0, 7.0], [4.0, 10.0]):
        for side, cells in (("sdcMicro", [4.0, 9.0]), ("gpupif", ours)):
            jobs[side].out.mkdir(exist_ok=True)
            np.array(cells).tofile(jobs[side].out / "suppressed_cells.f64")
        result = sdcmicro._compared({}, jobs)
        assert result["suppressed_cells"] == {"sdcMicro": [4, 9], "gpupif": ours}
        differences.append(result["differences"]["suppressed_cells"])
    assert differences == [0.0, 0.1]


def cells(table):
    """The key variables of a table as texts, by column."""
    return pd.read_csv(table.file, dtype=str, keep_default_na=False)[list(table.keys)].to_dict("list")


def test_tables_of_the_benchmark_say_what_they_have(tmp_path, table):
    assert table.has_twins()
    assert not table.with_keys(["sex", "job"]).has_twins()
    assert table.with_keys(["sex", "ill"]).sensitive is None
    job = Job("suda", table, tmp_path, 2, 0.5)
    assert of_text(as_text(job)) == job
    census = generated_census(tmp_path, 300, 4)
    assert census.read().columns.tolist() == [*census.keys, "weight"]
    assert (census.read()["weight"] >= 1).all()
    lacking = with_missing(replace(census, keys=census.keys[:2]), tmp_path, 0.9)
    frame = lacking.read()
    assert frame[list(lacking.keys)].isna().any(axis=1).mean() > 0.8
    assert not frame[list(lacking.keys)].isna().all(axis=1).any()
    assert frame[["sex", "marital_status", "weight"]].notna().all(axis=None)
