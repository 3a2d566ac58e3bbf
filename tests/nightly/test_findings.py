"""A table measured as a configuration asks: the same in memory and on disk, and nothing of its values on record."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.errors import ColumnNotFoundError, InputError
from gpupif.nightly.configuration.settings import Settings
from gpupif.nightly.gates.findings import measure_table, score_arguments
from gpupif.nightly.gates.gates import evaluate, questions_of, resolve_gates
from gpupif.nightly.run_outcome import ColumnProfile
from tests.helpers.pieces import in_pieces, nothing_left, write_parts

ROWS = 80
TABLE = gpupif.datasets.census(ROWS, columns=4, seed=7).assign(people=np.arange(ROWS) % 4 / 2 + 0.5)
TABLE["region"] = "secret-" + TABLE["region"].astype(str)
TABLE.loc[TABLE.index % 7 == 1, "age"] = None
PROFILES = [ColumnProfile(name, str(TABLE[name].dtype), TABLE[name].nunique(), 0) for name in TABLE]
BOTH = {"neighbour": ["age", "sex"], "anyone": {"any": 1, "among": ["age", "sex", "region"]}}
OF_RISK = [
    "population.journalist.average",
    "population.presence.highest",
    "games.journalist.adversary_payoff",
    "households.risk.average",
    "uniques.unique_share",
]
SECTIONS = {
    "both, weights": {"score": {"attackers": BOTH, "weights": "people"}},
    "wildcards": {"score": {"known": ["sex", "age"], "missing": "wildcard"}},
    "figures of risk": {
        "score": {"population": "all.parquet"},
        "risk": {"household": "marital_status", "sampling_fraction": 0.1, "game": {"adversary_cost": 2.0}},
        "gates": [{"kind": kind, "max": 1e9} for kind in OF_RISK],
    },
    "any": {"score": {"known": 2, "population": "all.parquet", "distances": {"age": "ordered"}}},
}
GATES = [
    {"kind": "pif", "percentile": 95},
    {"kind": "pif", "percentile": 12.5},
    {"kind": "percentile", "measure": "csf", "percentile": 33.3},
    {"kind": "mean", "measure": "wcig"},
    {"kind": "max", "measure": "cohort_size", "column": "age"},
    {"kind": "cells_above", "measure": "csf", "above": 0.25},
    {"kind": "rows"},
    {"kind": "share_below_k"},
    {"kind": "t"},
]


def settings_of(options=None, **sections):
    """A configuration with the gates."""
    given = {
        "input": {"path": "in"},
        "score": {"columns": ["region", "age", "sex"], "measures": ["cig", "wcig", "csf", "cohort_size"]},
        "risk": {"quasi_identifiers": ["sex", "age"], "sensitive": ["region"], "l": 1},
        "gates": [gate | {"max": 1e9} for gate in GATES],
    }
    for name, keys in {**(options or {}), **sections}.items():
        given[name] = keys if name == "gates" else given.get(name, {}) | keys
    return Settings.model_validate(given)


def measured(folder, settings, on_disk, scores_to=None):
    """What is found of the table, in memory or in pieces of a few rows."""
    gates = resolve_gates(settings)

    def find():
        return measure_table(
            folder / "in", settings, questions_of(gates), PROFILES, lambda path: folder / path, scores_to
        )

    if not on_disk:
        return find(), gates
    # Rows with wildcards have to be in one place.
    with in_pieces(16, 200 if settings.score.missing == "wildcard" else 25), gpupif.config(memory_limit="8GiB"):
        return find(), gates


@pytest.fixture
def folder(tmp_path):
    write_parts(tmp_path / "in", TABLE, [20, 50])
    TABLE.to_parquet(tmp_path / "all.parquet", index=False)
    return tmp_path


@pytest.mark.sampled(5)
@pytest.mark.parametrize("options", SECTIONS.values(), ids=SECTIONS.keys())
def test_gates_have_the_same_results_in_memory_and_on_disk(folder, options):
    settings, before = settings_of(options), sorted(folder.rglob("*"))
    in_memory, gates = measured(folder, settings, on_disk=False)
    on_disk, _ = measured(folder, settings, on_disk=True)
    assert evaluate(gates, on_disk, None) == evaluate(gates, in_memory, None)
    assert in_memory.rows == on_disk.rows == ROWS
    assert sorted(folder.rglob("*")) == before
    assert nothing_left(folder)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("kept", "on_disk"),
    [({"scores": "cells", "where": "csf > 0.5"}, False), ({"scores": "all"}, True)],
    ids=["cells", "all, on disk"],
)
def test_gates_have_the_same_results_if_scores_are_kept(folder, on_disk, kept):
    settings = settings_of({"keep": kept})
    found, gates = measured(folder, settings, on_disk, folder / "kept.parquet")
    expected, _ = measured(folder, settings_of(), on_disk=False)
    assert evaluate(gates, found, None) == evaluate(gates, expected, None)
    scores = gpupif.open_scores(folder / "kept.parquet")
    if kept["scores"] == "all":
        np.testing.assert_array_equal(scores.array("csf"), expected.scores.array("csf"))
    else:
        assert scores.cells().count() == expected.scores.cells("csf > 0.5").count() > 0


@pytest.mark.parametrize("options", SECTIONS.values(), ids=SECTIONS.keys())
def test_no_value_of_the_table_is_on_record(folder, options):
    found, _ = measured(folder, settings_of(options), on_disk=False)
    record = found.to_record(show_values=False)
    # Shown again is what is plain.
    assert json.loads(json.dumps(record)) == record
    assert "secret" not in json.dumps(record)
    assert record["risk"]["classes"]["rows"] == ROWS
    shown = measured(folder, settings_of(options, run={"show_values": True}), on_disk=False)[0].to_record(True)
    assert "secret" in json.dumps(shown["summary"])
    assert "secret" in json.dumps(shown["risk"]["groups"])
    assert shown["risk"]["worst"] == record["risk"]["worst"]


def test_no_risk_is_assessed_without_quasi_identifiers(folder):
    settings = settings_of(risk={"quasi_identifiers": [], "sensitive": [], "l": None}).model_copy(update={"gates": []})
    found, _ = measured(folder, settings, on_disk=False)
    assert found.to_record(show_values=False)["risk"] is None
    assert found.scores.measures == ("cig", "wcig", "csf", "cohort_size")


def test_scores_are_computed_with_the_configured_arguments(folder):
    hierarchy = folder / "towns.csv"
    hierarchy.write_text("secret-1;a;*\n")
    asked = {
        "columns": ["region"],
        "attackers": {"few": {"any": 1, "among": ["age", "sex"], "subsets": 1, "seed": 3}},
        "priors": "priors.csv",
        "distances": {"age": "ordered", "region": "towns.csv", "marital_status": ["b", "a"]},
    }
    (folder / "priors.csv").write_text("column,value,probability\nregion,secret-1,1\n")
    settings = settings_of(score=asked, risk={"sensitive": ["marital_status"]})
    arguments = score_arguments(settings, list(TABLE), lambda path: Path(folder, path))
    assert arguments.attackers == {"few": gpupif.AnyKnown(1, among=["age", "sex"], subsets=1, seed=3)}
    # The third is of a sensitive column alone.
    assert set(arguments.distances) == {"age", "region"}
    assert arguments.distances["region"].file == hierarchy
    assert arguments.priors == {"region": {"secret-1": 1.0}}


def test_bad_settings_are_refused(folder):
    with pytest.raises(InputError, match="'marital_status' is neither scored nor known"):
        measured(folder, settings_of(score={"distances": {"marital_status": "nominal"}, "known": ["sex"]}), False)
    with pytest.raises(ColumnNotFoundError, match="known: no column 'sexx' in the table"):
        measured(folder, settings_of(score={"known": ["sexx"]}), False)
    with pytest.raises(ColumnNotFoundError, match="quasi_identifiers: no column 'sexx'"):
        measured(folder, settings_of(risk={"quasi_identifiers": ["sexx"]}), False)
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "all.parquet"), TABLE)
