"""Runs from files to files that are killed or fail: their messages, their files, and their resumption."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import gpupif
from gpupif.errors import InputError, OutputError
from tests.helpers.command_line import contents
from tests.helpers.configured import configured
from tests.helpers.dying import die
from tests.helpers.pieces import assert_same, assert_same_summary, census_folder, in_pieces, nothing_left
from tests.helpers.runs_that_fail import MEASURES, fail, half_done


@pytest.mark.slow
@pytest.mark.subprocess
def test_a_resumed_run_repeats_no_finished_step(tmp_path, monkeypatch):
    source = census_folder(tmp_path / "in", rows=100)
    codes, _ = die(signal.SIGKILL, [], source, "-o", tmp_path / "first", "-q", rows=(30, 40))
    assert codes == [0]

    def failing(*_):
        raise InputError("stop")

    with in_pieces(30, 40), monkeypatch.context() as patch:
        patch.setattr("gpupif.out_of_core.scores_writer.ScoreWriter.write", failing)
        with pytest.raises(InputError, match="stop"):
            gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
    assert not nothing_left(tmp_path)
    with in_pieces(30, 40), monkeypatch.context() as patch:
        patch.setattr("gpupif.out_of_core.run_steps.encode_files", failing)
        patch.setattr("gpupif.out_of_core.table_scoring.find_sends", failing)
        patch.setattr("gpupif.pipeline.partition_scoring.PartitionScorer.score", failing)
        scores = gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
    assert_same(scores, gpupif.score(source, MEASURES))
    assert nothing_left(tmp_path)


def test_a_message_says_whether_a_run_is_resumed(tmp_path, monkeypatch, capfd):
    source = census_folder(tmp_path / "in", rows=100)
    with in_pieces(30, 40), monkeypatch.context() as patch:
        fail(patch, "gpupif.out_of_core.scores_writer.write_groups")
        with pytest.raises(InputError, match="went wrong"):
            gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
        assert "there is no run to resume" in capfd.readouterr().err
    with in_pieces(30, 40):
        gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
    assert "going on with a run that was ended" in capfd.readouterr().err


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("known", "by"), [(None, None), (None, "wcig"), (1, None)], ids=["top", "weighted", "any"])
def test_a_resumed_run_selects_cells_from_the_stored_scores(tmp_path, monkeypatch, known, by):
    """The stored scores survive a kill; a selection of other cells is another run."""
    source, output = census_folder(tmp_path / "in", rows=100), tmp_path / "out.parquet"
    asked = {"measures": MEASURES, "known": known, "resume": True, "top": 20, "by": by}
    with in_pieces(30, 40), monkeypatch.context() as patch:
        fail(patch, "gpupif.out_of_core.scores_writer.write_tables")
        with pytest.raises(InputError, match="went wrong"):
            gpupif.score_files(source, output, **asked)
    with in_pieces(30, 40), pytest.raises(OutputError, match="other cells"):
        gpupif.score_files(source, output, **asked | {"top": 21})
    with in_pieces(30, 40), monkeypatch.context() as patch:
        fail(patch, "gpupif.out_of_core.table_scoring.find_sends")
        fail(patch, "gpupif.pipeline.partition_scoring.partition_job")
        found = gpupif.score_files(source, output, **asked)
    expected = gpupif.score(source, MEASURES, known=known)
    assert found.cells().to_arrow().equals(expected.cells(top=20, by=by).to_arrow())
    assert_same_summary(found, expected)
    assert nothing_left(tmp_path)


OTHER = {
    "columns scored": {"columns": ["age", "sex"]},
    "columns known": {"known": ["age", "sex"]},
    "subsets of known columns": {"known": 2},
    "accuracies": {"accuracies": {"age": 0.5}},
    "priors": {"priors": {"sex": {"Female": 0.5, "Male": 0.5}}},
    "dtype": {"dtype": "float32"},
    "measures": {"measures": ["cig", "csf"]},
    "temp": {"temp": "."},
    "missing": {"missing": "error"},
    "rows per file": {"rows_per_file": 7},
    "keep input": {"keep_input": True},
}


@pytest.mark.slow
@pytest.mark.parametrize(("what", "arguments"), OTHER.items(), ids=OTHER)
def test_a_run_resumed_with_other_options_is_refused(tmp_path, monkeypatch, what, arguments):
    source = half_done(tmp_path, monkeypatch)
    before = contents(tmp_path)
    arguments = {"measures": MEASURES, "memory_limit": "4GiB", **arguments}
    with in_pieces(30, 40), pytest.raises(OutputError, match=f"other {what}.*resume"):
        configured(gpupif.score_files, source, tmp_path / "out", resume=True, **arguments)
    assert contents(tmp_path) == before
    with in_pieces(30, 40), gpupif.config(memory_limit="5GiB"):
        assert gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True).rows == 100


def test_a_run_resumed_with_another_order_of_values_is_refused(tmp_path, monkeypatch):
    """The text of an array of more than a thousand values does not show all of them."""
    source = census_folder(tmp_path / "in", rows=100)
    order = np.arange(2_000)
    other = np.concatenate([order[:500], order[500:1_500][::-1], order[1_500:]])
    assert repr(order) == repr(other)
    asked = {"measures": ["emd"], "resume": True}
    with in_pieces(30, 40), monkeypatch.context() as patch:
        fail(patch, "gpupif.out_of_core.scores_writer.write_groups")
        with pytest.raises(InputError, match="went wrong"):
            gpupif.score_files(source, tmp_path / "out", distances={"age": order}, **asked)
    with in_pieces(30, 40), pytest.raises(OutputError, match=r"other distances.*resume"):
        gpupif.score_files(source, tmp_path / "out", distances={"age": other}, **asked)
    with in_pieces(30, 40):
        scores = gpupif.score_files(source, tmp_path / "out", distances={"age": list(order)}, **asked)
    assert_same(scores, gpupif.score(source, "emd", distances={"age": order}))


@pytest.mark.slow
def test_a_run_resumed_with_less_memory_is_refused(tmp_path, monkeypatch):
    source = half_done(tmp_path, monkeypatch)
    with in_pieces(29, 40), pytest.raises(InputError, match="memory_limit: the run to be resumed had more"):
        gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
    with in_pieces(31, 35), gpupif.config(memory_limit="3GiB"):
        scores = gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
    assert_same(scores, gpupif.score(source, MEASURES))


@pytest.mark.slow
def test_a_run_resumed_with_another_file_is_refused(tmp_path, monkeypatch):
    source = half_done(tmp_path, monkeypatch)
    os.utime(source / "001.parquet", (1, 1))
    with (
        in_pieces(30, 40),
        pytest.raises(OutputError, match=r"other files.*start again"),
        gpupif.config(memory_limit="4GiB"),
    ):
        gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
    with in_pieces(30, 40):
        gpupif.score_files(source, tmp_path / "out", MEASURES)
    assert nothing_left(tmp_path)


def test_a_run_resumed_with_a_damaged_file_is_refused(tmp_path, monkeypatch):
    source = half_done(tmp_path, monkeypatch)
    (damaged,) = tmp_path.glob(".gpupif-*/encoded/chunk-000003.arrow")
    damaged.write_bytes(damaged.read_bytes()[:20])
    with (
        in_pieces(30, 40),
        pytest.raises(OutputError, match=r"chunk-000003.*damaged.*resume"),
        gpupif.config(memory_limit="4GiB"),
    ):
        gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)


def test_a_run_resumed_on_another_device_is_refused(tmp_path, monkeypatch):
    source = half_done(tmp_path, monkeypatch, device="cpu")
    monkeypatch.setattr("gpupif.engines.cpu.engine.CpuEngine.device", "other")
    with (
        in_pieces(30, 40),
        pytest.raises(OutputError, match="other device"),
        gpupif.config(device="cpu", memory_limit="4GiB"),
    ):
        gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)


def test_a_damaged_mark_is_an_error(tmp_path, monkeypatch):
    source = half_done(tmp_path, monkeypatch)
    (mark,) = tmp_path.glob(".gpupif-*/encoded.json")
    mark.write_text("")
    with (
        in_pieces(30, 40),
        pytest.raises(OutputError, match=r"encoded\.json.*damaged"),
        gpupif.config(memory_limit="4GiB"),
    ):
        gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
