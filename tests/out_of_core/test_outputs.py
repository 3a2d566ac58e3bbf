"""Outputs of scores: earlier scores are replaced as a whole, and no other file is touched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.errors import InputError, OutputError
from gpupif.io import checkpoints as store
from gpupif.utils.private_folder import MARKER
from tests.helpers.command_line import COMMAND, assert_refused, contents, start
from tests.helpers.configured import configured
from tests.helpers.file_formats import FRAME
from tests.helpers.pieces import assert_same, census_folder, in_pieces, nothing_left, write_parts
from tests.helpers.runs_that_fail import MEASURES, half_done


def test_a_second_run_to_the_same_output_is_refused(tmp_path):
    source = census_folder(tmp_path / "in", rows=100)
    folder = store.work_folder(tmp_path / "out", tmp_path)
    other = store.Store(folder, folder)
    other.open(resume=False, output=tmp_path / "out")
    with pytest.raises(OutputError, match="another run"):
        gpupif.score_files(source, tmp_path / "out")
    other.close(keep=False)
    assert gpupif.score_files(source, tmp_path / "out").rows == 100


def test_an_existing_output_is_replaced_only_with_overwrite(tmp_path):
    source = census_folder(tmp_path / "in", rows=100)
    scores = gpupif.score_files(source, tmp_path / "out")
    with pytest.raises(OutputError, match=r"out: exists already.*overwrite"):
        gpupif.score_files(source, tmp_path / "out")
    with pytest.raises(
        OutputError, match=r"out: exists already, and no killed run is left to be resumed: it may be fin"
    ):
        gpupif.score_files(source, tmp_path / "out", resume=True)
    again = gpupif.score_files(source, tmp_path / "out", "csf", overwrite=True, rows_per_file=50)
    written = [file.name for file in sorted((tmp_path / "out").iterdir())]
    assert written == ["part-00000.parquet", "part-00001.parquet"]
    assert again.measures == ("csf",)
    assert scores.files != again.files
    (tmp_path / "out" / "mine.txt").write_text("not to be lost")
    before = contents(tmp_path)
    with pytest.raises(OutputError, match=r"mine\.txt.*no score file of gpupif"):
        gpupif.score_files(source, tmp_path / "out", overwrite=True)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "out" / "mine.txt")
    (tmp_path / "out" / "mine.txt").rename(tmp_path / "out" / "mine.parquet")
    with pytest.raises(OutputError, match=r"mine\.parquet.*no score file of gpupif"):
        gpupif.score_files(source, tmp_path / "out", overwrite=True)
    assert len(contents(tmp_path)) == len(before)


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.parametrize("more", [{}, {"memory_limit": "2GiB"}])
def test_no_input_file_is_written_over(tmp_path, monkeypatch, more):
    """A pattern, a folder or a link may name the input file."""
    monkeypatch.chdir(tmp_path)
    census_folder(Path("in"), rows=100)
    Path("link.parquet").symlink_to("in/000.parquet")
    Path("links").mkdir()
    Path("links/000.parquet").symlink_to(tmp_path / "in" / "000.parquet")
    before = contents(tmp_path)
    for table in ("in/*.parquet", "links", "link.parquet", "in"):
        with pytest.raises(OutputError, match=r"the output is (inside )?the input"):
            configured(gpupif.score_files, table, "in/000.parquet", overwrite=True, **more)
    ended = start("score", "in/*.parquet", "-o", "in/000.parquet", "--overwrite")
    assert_refused(ended, ["in/000.parquet", "the output is the input"])
    assert contents(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [True, False])
def test_scores_are_never_gone_while_others_replace_them(tmp_path, monkeypatch, at_once):
    """The old scores return if the new scores cannot replace them, also without renameat2."""
    source = census_folder(tmp_path / "in", rows=40)
    gpupif.score_files(source, tmp_path / "out", "csf")
    before = contents(tmp_path / "out")
    if not at_once:
        monkeypatch.setattr(store, "RENAME_EXCHANGE", -1)
        real = Path.rename

        def failing(self, scored_column):
            if self.name == "scores":
                raise KeyboardInterrupt
            return real(self, scored_column)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", failing)
            with pytest.raises(KeyboardInterrupt):
                gpupif.score_files(source, tmp_path / "out", MEASURES, overwrite=True)
        assert contents(tmp_path / "out") == before
        assert nothing_left(tmp_path)
    scores = gpupif.score_files(source, tmp_path / "out", MEASURES, overwrite=True)
    assert_same(scores, gpupif.score(source, MEASURES))
    assert nothing_left(tmp_path)


def test_scores_that_a_killed_run_had_moved_are_restored(tmp_path):
    source = census_folder(tmp_path / "in", rows=40)
    gpupif.score_files(source, tmp_path / "out", "csf")
    work = store.work_folder(tmp_path / "out", tmp_path)
    work.mkdir(0o700)
    (work / MARKER).touch()
    (tmp_path / "out").rename(work / "previous")
    with pytest.raises(InputError, match="priors: column 'sex'"):
        gpupif.score_files(source, tmp_path / "out", MEASURES, priors={"sex": {"x": 1.0}})
    assert len(list((tmp_path / "out").iterdir())) == 4


@pytest.mark.slow
def test_marks_of_another_run_are_not_taken(tmp_path, monkeypatch):
    """Files of a run that was killed in its clean-up belong to no later run."""
    source = half_done(tmp_path, monkeypatch)
    (work,) = tmp_path.glob(".gpupif-*")
    (work / "begun.json").unlink()
    other = census_folder(tmp_path / "other", rows=60)
    with in_pieces(30, 40):
        scores = gpupif.score_files(other, tmp_path / "out", MEASURES, resume=True)
    assert_same(scores, gpupif.score(other, MEASURES))
    assert source.exists()


def test_an_output_made_during_the_run_is_not_replaced(tmp_path, monkeypatch):
    source = census_folder(tmp_path / "in", rows=60)
    scores_path = tmp_path / "out.parquet"

    def failing(*_):
        raise InputError("stop")

    with in_pieces(30, 40), monkeypatch.context() as patch:
        patch.setattr("gpupif.out_of_core.scores_writer.ScoreWriter.publish", failing)
        with pytest.raises(InputError, match="stop"):
            gpupif.score_files(source, scores_path, MEASURES, resume=True)
    scores_path.write_text("precious")
    with in_pieces(30, 40), pytest.raises(OutputError, match="exists already"):
        gpupif.score_files(source, scores_path, MEASURES, resume=True)
    assert scores_path.read_text() == "precious"
    scores_path.unlink()
    with in_pieces(30, 40):
        assert_same(gpupif.score_files(source, scores_path, MEASURES, resume=True), gpupif.score(source, MEASURES))


@pytest.mark.slow
def test_spill_of_a_killed_run_elsewhere_is_removed(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    source = half_done(tmp_path, monkeypatch, temp=tmp_path / "one")
    assert not nothing_left(tmp_path / "one")
    with in_pieces(30, 40), gpupif.config(temp=tmp_path / "two"):
        gpupif.score_files(source, tmp_path / "out", MEASURES)
    assert all(nothing_left(tmp_path / name) for name in ("one", "two", "."))


def test_an_output_given_by_a_link_is_written_to_its_folder(tmp_path):
    source = census_folder(tmp_path / "in", rows=60)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    scores = gpupif.score_files(source, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert len(list((tmp_path / "real").glob("*.parquet"))) == len(scores.files) == 4


def test_the_output_may_be_the_current_folder(tmp_path, monkeypatch):
    source = census_folder(tmp_path / "in", rows=60)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    scores = gpupif.score_files(source, ".")
    assert len(list((tmp_path / "here").glob("*.parquet"))) == 4
    # The name was taken: the working folder is the one without a name.
    monkeypatch.chdir(tmp_path)
    again = gpupif.open_scores("here")
    monkeypatch.chdir(tmp_path / "in")
    assert scores.path == again.path == tmp_path / "here"
    assert scores.cig.to_pandas().equals(again.cig.to_pandas())


@pytest.mark.slow
def test_keep_input_works_for_files_without_rows(tmp_path):
    source = write_parts(tmp_path / "in", FRAME, [3])
    pq.write_table(pq.read_table(source / "000.parquet").slice(0, 0), source / "0.parquet")
    with in_pieces(3, 2):
        scores = gpupif.score_files(source, tmp_path / "out", keep_input=True)
    assert len({tuple(pq.read_schema(file).names) for file in scores.files}) == 1
    assert pa.concat_tables(map(pq.read_table, scores.files)).num_rows == 8


@pytest.mark.parametrize(
    ("names", "says"),
    [(["_a.parquet", "b.parquet"], "pass over names such as _a"), (["a.parquet", "a.pq"], "scores in a.parquet")],
)
def test_colliding_names_of_score_files_are_refused(tmp_path, names, says):
    (tmp_path / "in").mkdir()
    for name in names:
        FRAME.to_parquet(tmp_path / "in" / name)
    with pytest.raises(OutputError, match=says):
        gpupif.score_files(tmp_path / "in" / "*.p*", tmp_path / "out")
    assert gpupif.score_files(tmp_path / "in" / "*.p*", tmp_path / "out", rows_per_file=9).rows == 16


def test_a_temporary_folder_that_is_the_output_is_refused(tmp_path):
    source = census_folder(tmp_path / "in", rows=60)
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError, match=r"temp: .* is the output"), gpupif.config(temp=tmp_path / "out"):
        gpupif.score_files(source, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.subprocess
def test_the_output_may_have_a_name_that_is_no_unicode(tmp_path):
    source = census_folder(tmp_path / "in", rows=60)
    ended = subprocess.run([*COMMAND, "score", source, "-o", os.fsencode(tmp_path) + b"/o\xff", "-q"], check=False)
    assert ended.returncode == 0
    assert len(os.listdir(os.fsencode(tmp_path) + b"/o\xff")) == 4
