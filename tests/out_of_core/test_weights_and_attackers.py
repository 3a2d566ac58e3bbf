"""Sampling weights and several attackers for tables larger than memory: the same bits as in memory."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.errors import InputError, OutputError
from gpupif.measures import MEASURES
from gpupif.out_of_core.table_scoring import TableScoring
from gpupif.pipeline.fitting_rows import PartitionRows
from gpupif.pipeline.partition_scoring import PartitionScorer
from tests.helpers.command_line import FRAME, assert_refused
from tests.helpers.pieces import assert_same, assert_same_summary, census_folder, in_pieces, nothing_left, write_parts

ALL = list(MEASURES)
# Scores of numbers and of counts, with and without shares of values.
FEW = ["cig", "csf", "wcig", "emd", "cohort_size"]
THREE = {"neighbour": ["age", "sex"], "employer": ["region", "age"], "nobody": []}


@pytest.mark.slow
@pytest.mark.parametrize("partition_rows", [2, 20, 90])
def test_weights_of_collapsed_and_recut_parts_give_the_same_scores(tmp_path, partition_rows, monkeypatch):
    frame = gpupif.datasets.census(120, columns=6)
    chance = np.random.default_rng(1)
    for name in frame:
        frame[name] = frame[name].where(chance.random(120) < 0.1, frame[name].mode()[0])
    frame["w"] = chance.integers(0, 4, 120) * 0.7
    write_parts(tmp_path / "in", frame, [30])
    calls = []
    for owner, name in ((PartitionRows, "_collapse"), (TableScoring, "_join_slices")):
        real = getattr(owner, name)

        def noted(self, *given, real=real, name=name):
            calls.append(name)
            return real(self, *given)

        monkeypatch.setattr(owner, name, noted)
    with in_pieces(40, partition_rows):
        scores = gpupif.score_files(tmp_path / "in", tmp_path / "out", ALL, weights="w")
    expected = gpupif.score(tmp_path / "in", ALL, weights="w")
    assert_same(scores, expected)
    assert_same_summary(scores, expected)
    if partition_rows == 2:
        assert {"_collapse", "_join_slices"} <= {*calls}


@pytest.mark.slow
@pytest.mark.parametrize(("weights", "columns"), [(None, None), ("w", ["occupation", "age"])])
def test_scores_against_each_attacker_are_as_alone(tmp_path, weights, columns):
    source = write_parts(
        tmp_path / "in", gpupif.datasets.census(100, columns=6).assign(w=np.arange(100) % 5 / 4), [30, 70]
    )
    arguments = {"columns": columns, "weights": weights, "attackers": THREE}
    if columns is None and weights is None:
        source = census_folder(tmp_path / "other", 100)
    with in_pieces(40, 50):
        scores = gpupif.score_files(source, tmp_path / "out", ALL, **arguments)
        alone = {
            name: gpupif.score_files(
                source, tmp_path / f"alone-{name}", ALL, columns=columns, known=known, weights=weights
            )
            for name, known in THREE.items()
        }
    expected = gpupif.score(source, ALL, **arguments)
    table = pa.concat_tables(pq.read_table(file, partitioning=None) for file in scores.files)
    other = expected.to_arrow()
    assert table.column_names == other.column_names
    for name in table.column_names:
        assert table[name].to_numpy().tobytes() == other[name].to_numpy().tobytes(), name
    assert scores.attackers == tuple(THREE)
    for name in THREE:
        assert scores.against(name).weights == expected.against(name).weights == alone[name].weights
        assert scores.against(name).distinct_rows == expected.against(name).distinct_rows == alone[name].distinct_rows
        assert_same_summary(scores.against(name), expected.against(name))
        assert scores.against(name).pif([10, 95]) == expected.against(name).pif([10, 95])
        assert dict(scores.against(name).priors) == dict(expected.against(name).priors)
    mine, theirs = scores.summary(), expected.summary()
    pd.testing.assert_frame_equal(mine.attackers, theirs.attackers)
    pd.testing.assert_frame_equal(mine.columns, theirs.columns)
    assert scores.frame().to_arrow().num_rows == 100
    assert nothing_left(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("partition_rows", [30, 150, 400])
def test_rows_of_weight_zero_do_not_change_the_order_of_sums(tmp_path, partition_rows):
    """Some values appear first in rows of weight zero; sums in another order would differ."""
    random = np.random.default_rng(3)
    frame = pd.DataFrame({"x": random.integers(0, 40, 400), "y": random.integers(0, 3, 400), "z": 1})
    frame["w"] = np.where(random.random(400) < 0.5, 0, random.gamma(2, 9, 400))
    source = write_parts(tmp_path / "in", frame, [130])
    for known in (["y"], ["y", "x"], None):
        with in_pieces(50, partition_rows):
            scores = gpupif.score_files(
                source, tmp_path / f"out-{known}", ALL, known=known, weights="w", accuracies={"x": 0.7}
            )
        assert_same(scores, gpupif.score(source, ALL, known=known, weights="w", accuracies={"x": 0.7}))


class KilledError(BaseException):
    pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "after"),
    [
        ("gpupif.out_of_core.table_scoring.find_sends", 2),
        ("gpupif.pipeline.partition_scoring.PartitionScorer.score", 0),
        ("write", 2),
    ],
)
def test_a_failed_run_with_attackers_resumes(tmp_path, monkeypatch, step, after):
    source = write_parts(
        tmp_path / "in", gpupif.datasets.census(200, columns=6).assign(w=np.arange(200) % 5 / 4), [30, 70]
    )
    arguments = {"weights": "w", "attackers": THREE, "resume": True}
    step = "gpupif.out_of_core.scores_writer.write_groups" if step == "write" else step
    calls = []
    with in_pieces(40, 50), monkeypatch.context() as patch:
        module, _, name = step.rpartition(".")
        owner = PartitionScorer if module.endswith("PartitionScorer") else __import__(module, fromlist=[name])
        real = getattr(owner, name)

        def failing(*given, **more):
            calls.append(1)
            if len(calls) > after:
                raise KilledError
            return real(*given, **more)

        patch.setattr(owner, name, failing)
        with pytest.raises(KilledError):
            gpupif.score_files(source, tmp_path / "out", FEW, **arguments)
    with in_pieces(40, 50):
        with pytest.raises(OutputError, match="other attackers"):
            gpupif.score_files(source, tmp_path / "out", FEW, **{**arguments, "attackers": {"x": ["age"]}})
        with pytest.raises(OutputError, match="other weights"):
            gpupif.score_files(source, tmp_path / "out", FEW, attackers=THREE, columns=None, resume=True)
        scores = gpupif.score_files(source, tmp_path / "out", FEW, **arguments)
    expected = gpupif.score(source, FEW, weights="w", attackers=THREE).to_arrow()
    table = pa.concat_tables(pq.read_table(file, partitioning=None) for file in scores.files)
    pd.testing.assert_frame_equal(table.to_pandas(), expected.to_pandas(), check_exact=True)
    assert nothing_left(tmp_path)


def test_bad_weights_are_refused(tmp_path):
    frame = gpupif.datasets.census(100).assign(w=np.where(np.arange(100) == 57, -1.5, 1.0), v=0.0)
    source = write_parts(tmp_path / "in", frame, [30])
    with in_pieces(20, 50):
        with pytest.raises(InputError, match=r"weights: column 'w', row 57 \(from 0\): expected .* got -1\.5"):
            gpupif.score_files(source, tmp_path / "out", weights="w")
        with pytest.raises(InputError, match="all 100 are 0"):
            gpupif.score_files(source, tmp_path / "out", weights="v")
        with pytest.raises(InputError, match="no column 'x'"):
            gpupif.score_files(source, tmp_path / "out", weights="x")
        clash = write_parts(tmp_path / "clash", frame.assign(x_cig_age=1), [])
        with pytest.raises(OutputError, match="cig_age"):
            gpupif.score_files(clash, tmp_path / "out", "cig", columns=["age"], keep_input=True, attackers={"x": []})
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("output", ["out", "out.csv"])
def test_the_command_line_scores_attackers_with_weights(run, folder, output):
    FRAME.assign(w=["1.50", "2", "0", "1", "3.25"]).to_csv(folder / "t.csv", index=False)
    options = ["--attacker", "neighbour=age,sex", "--attacker", "nobody=", "--weights", "w", "--rows-per-file", "2"]
    options = options[:-2] if output.endswith(".csv") else options
    ended = run("score", "t.csv", "-o", output, "--memory-limit", "16GiB", "--json", *options)
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out, parse_constant=pytest.fail)
    assert list(document["attackers"]) == ["neighbour", "nobody"]
    expected = gpupif.score(
        "t.csv", ["cig", "csf", "wcig"], attackers={"neighbour": ["age", "sex"], "nobody": []}, weights="w"
    )
    read = pd.read_csv if output.endswith(".csv") else pd.read_parquet
    written = read(folder / output)
    assert list(written.columns) == expected.to_arrow().column_names
    np.testing.assert_allclose(written["neighbour_cig_sex"], expected.against("neighbour").cig["sex"], rtol=1e-14)
    assert_refused(run("score", "t.csv", "-o", "new", "--attacker", "a=agee", "--resume"), ["--attacker", "'agee'"])
