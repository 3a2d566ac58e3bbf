"""The benchmark of measures: it runs."""

from __future__ import annotations

import json
import sys

import pytest

import gpupif.disclosure.risk
from tests.helpers.checkout import ROOT

pytestmark = pytest.mark.slow


def test_the_benchmark_runs(tmp_path, monkeypatch, capsys):
    """All of it here but one contender, in a process of its own."""
    from benchmarks import engines, measures

    alone = measures.run_alone
    monkeypatch.setattr(measures, "run_alone", lambda *job: (alone if job[0] == "polars" else measures.run)(*job))
    monkeypatch.setattr(measures, "ROUNDS", 1)
    # Those of pairs are tested in test_toxic.py.
    monkeypatch.setattr(engines, "measure_pairs", lambda rows, runs: {"results": [], "goals": {"pairs": rows * runs}})
    arguments = ["--measures", "--rows", "600", "--seconds", "0", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["engines", *arguments])
    monkeypatch.chdir(ROOT)
    engines.main()
    assert "pyCANON is left out" in capsys.readouterr().out
    document = json.loads((tmp_path / "measures.json").read_text())
    frame = gpupif.datasets.census(600)
    known, sensitive = ["region", "age", "sex", "marital_status", "education"], "occupation"
    for result in document["results"][:3]:
        k, distinct, t = result["figures"]
        assert (k, distinct) == (
            gpupif.models.k_anonymity(frame, known),
            gpupif.models.l_diversity(frame, known, sensitive),
        )
        assert t == pytest.approx(gpupif.models.t_closeness(frame, known, sensitive))
    assert len(document["goals"]) == 5
    assert document["goals"]["pairs"] == 600 * engines.PAIR_RUNS
    assert all(goal > 0 for goal in document["goals"].values())
