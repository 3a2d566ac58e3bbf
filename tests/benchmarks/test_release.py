"""The benchmark of releases: it runs, and its checks can fail."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.slow


def test_the_benchmark_runs(tmp_path, monkeypatch, capsys):
    from benchmarks import release

    # Speed depends on what else the machine does.
    monkeypatch.setattr(release, "MOST_TIMES", 1e9)
    monkeypatch.setattr(release, "MOST_SECONDS", 1e9)
    monkeypatch.setattr(release, "QUERIES", 50)
    monkeypatch.setattr(release, "SUPPRESSED", [(2_000, ["sex", "education"])])
    # So few draws find too little.
    monkeypatch.setattr(release, "LEAST_SHARE", 0.0)
    arguments = ["--draws", "20000", "--cells", "500", "--rows", "2000", "--out", str(tmp_path / "release.json")]
    monkeypatch.setattr(sys, "argv", ["release", *arguments])
    with pytest.raises(SystemExit) as ended:
        release.main()
    assert ended.value.code == 0, capsys.readouterr().out
    figures = json.loads((tmp_path / "release.json").read_text())["figures"]
    assert {figure["part"] for figure in figures} == {"figures", "audit", "speed", "queries", "suppression"}
    attacks = {figure["what"]: figure["value"] for figure in figures if "epsilon of the attack" in figure["what"]}
    assert attacks["Laplace, epsilon 1: epsilon of the attack, at least"] > 0.7


def test_noise_that_is_too_small_or_of_another_kind_is_found():
    from benchmarks.release import CHANCE, _attacked, distance, laplace_below, least_epsilon
    from gpupif.release.mechanisms import laplace

    noise, rows = laplace(1.5, 1), 40_000
    here, there = (np.array(noise.drawn([value] * rows), float) for value in (0, 1))
    assert 1.0 < least_epsilon(here, there, 0.0) < 1.5
    assert [_attacked("", bound, noise.loss)["holds"] for bound in (0.0, 0.3, 1.4, 1.6)] == [False, False, True, False]
    statistics = [math.sqrt(rows) * distance(here, lambda x, s=s: laplace_below(s, x)) for s in (1 / 1.5, 1.0)]
    assert statistics[0] < math.sqrt(math.log(2 / CHANCE) / 2) < statistics[1]
