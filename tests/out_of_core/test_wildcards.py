"""Missing values as wildcards beyond memory: the same bits as in memory, if the distinct rows fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.errors import InputError
from tests.helpers.command_line import assert_refused
from tests.helpers.pieces import assert_same, assert_same_summary, in_pieces, nothing_left, write_parts
from tests.helpers.scores import ALL


def with_gaps(rows):
    """Return a census with repeated rows and some missing values."""
    frame = gpupif.datasets.census(30, columns=4).sample(rows, replace=True, random_state=1).reset_index(drop=True)
    chance = np.random.default_rng(2)
    return frame.apply(lambda column: column.where(chance.random(rows) < 0.85))


@pytest.mark.slow
@pytest.mark.parametrize("weights", [None, "w"])
def test_repeated_rows_need_not_fit_into_memory(tmp_path, weights, monkeypatch):
    frame = with_gaps(400)
    different = len(frame.drop_duplicates())
    source = write_parts(tmp_path / "in", frame.assign(w=1 + frame.index % 4 / 4), [130])
    arguments = {"missing": "wildcard", "weights": weights, "known": ["age", "sex", "region"]}
    arguments["columns"] = ["age", "sex", "region", "marital_status"]
    monkeypatch.setattr("gpupif.out_of_core.table_scoring.TableScoring._score_partition", None)
    with in_pieces(60, different):
        scores = gpupif.score_files(source, tmp_path / "out", ALL, attackers=None, **arguments)
    expected = gpupif.score(source, ALL, **arguments)
    assert_same(scores, expected)
    assert_same_summary(scores, expected)
    with in_pieces(60, different - 1), pytest.raises(InputError, match=rf"more than {different - 1:,} of the 400 rows"):
        gpupif.score_files(source, tmp_path / "other", ALL, **arguments)
    assert nothing_left(tmp_path)


def test_an_attacker_who_meets_no_missing_value_is_scored_in_partitions(tmp_path):
    """An attacker who knows no column with missing values is scored in several partitions."""
    frame = gpupif.datasets.census(200, columns=4)
    frame["region"] = frame["region"].where(frame.index % 3 > 0)
    source = write_parts(tmp_path / "in", frame, [70])
    attackers = {"a": ["marital_status", "age"], "b": ["region"]}
    arguments = {"missing": "wildcard", "columns": ["sex"], "attackers": attackers}
    different = len(frame[["sex", "region"]].drop_duplicates())
    assert different < 100
    with in_pieces(50, different):
        scores = gpupif.score_files(source, tmp_path / "out", ["cig", "csf"], **arguments)
    expected = gpupif.score(source, ["cig", "csf"], **arguments)
    found = pd.concat([pd.read_parquet(file) for file in scores.files])
    assert found.to_numpy().tobytes() == expected.to_arrow().to_pandas().to_numpy().tobytes()


def test_the_command_line_scores_with_wildcards(run, folder):
    ended = run("score", "people.csv", "-o", "out", "--missing", "wildcard", "--memory-limit", "16GiB", "--json")
    assert (ended.code, ended.err) == (0, "")
    expected = gpupif.score("people.csv", ["cig", "csf", "wcig"], missing="wildcard").to_arrow().to_pandas()
    pd.testing.assert_frame_equal(pq.read_table(folder / "out").to_pandas(), expected, check_exact=True)
    assert_refused(run("score", "people.csv", "-o", "x", "--missing", "wild"), ["--missing", "'wildcard'"])
