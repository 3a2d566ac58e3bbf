"""A run that is killed or stopped at any moment: it can be resumed, and leaves no other files."""

from __future__ import annotations

import os
import signal
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.cli import main as cli
from gpupif.out_of_core.scores_writer import ScoreWriter
from gpupif.utils.signals import SIGNALS
from tests.helpers.dying import die, die_at_each_mark
from tests.helpers.pieces import assert_same, census_folder, nothing_left
from tests.helpers.runs_that_fail import MEASURES


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.parametrize(("output", "moment"), [("out", "next"), ("out.parquet", "mark")])
def test_a_run_killed_at_any_mark_resumes_to_the_same_bits(tmp_path, output, moment):
    """The resumed run leaves no other files."""
    source, scores_path = census_folder(tmp_path / "in", rows=150), tmp_path / output
    die_at_each_mark(moment, source, "-o", scores_path, "--resume", "-q", "--temp", tmp_path)
    assert nothing_left(tmp_path)
    files = [scores_path] if scores_path.is_file() else sorted(scores_path.rglob("*"))
    found = pa.concat_tables(pq.read_table(file) for file in files)
    expected = gpupif.score(source, ["cig", "csf", "wcig"]).to_arrow()
    assert found.replace_schema_metadata().equals(expected.replace_schema_metadata())


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("number", "moment"),
    [(signal.SIGTERM, 4), (signal.SIGTERM, 40), (signal.SIGTERM, 120), (signal.SIGINT, 60), (signal.SIGHUP, 80)],
)
def test_an_interrupted_run_leaves_no_files(tmp_path, number, moment):
    source = census_folder(tmp_path / "in", rows=150)
    codes, said = die(number, [moment], source, "-o", tmp_path / "out", "-q", "--temp", tmp_path, "--overwrite")
    assert codes == [128 + number, 0]
    assert said == "gpupif: interrupted; nothing was written.\n"
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("resume", [False, True])
def test_signals_after_publishing_do_not_stop_the_run(tmp_path, monkeypatch, resume):
    """After its scores are published, the run still cleans up."""
    source = census_folder(tmp_path / "in", rows=150)
    real = ScoreWriter.publish
    before = [signal.getsignal(number) for number in SIGNALS]

    def publish(*given):
        real(*given)
        for number in SIGNALS:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(ScoreWriter, "publish", publish)
    scores = gpupif.score_files(source, tmp_path / "out", MEASURES, resume=resume)
    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert nothing_left(tmp_path)
    assert_same(scores, gpupif.score(source, MEASURES))


def test_a_signal_after_the_scores_says_that_they_are_written(tmp_path, monkeypatch, capfd):
    source = census_folder(tmp_path / "in", rows=150)
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["gpupif", "score", str(source), "-o", str(out), "--rows-per-file", "50"])
    monkeypatch.setattr("gpupif.cli.options.Given.show", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    handlers = [signal.getsignal(number) for number in SIGNALS]
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
    finally:
        signal.alarm(0)
        for number, handler in zip(SIGNALS, handlers, strict=True):
            signal.signal(number, handler)
    assert ended.value.code == 128 + signal.SIGTERM
    assert capfd.readouterr().err.endswith(f"gpupif: interrupted; the scores are complete: {out}.\n")


@pytest.mark.slow
@pytest.mark.subprocess
def test_an_interrupted_run_leaves_files_that_resume_can_use(tmp_path):
    source = census_folder(tmp_path / "in", rows=150)
    codes, said = die(signal.SIGTERM, [60], source, "-o", tmp_path / "out", "-q", "--resume")
    assert codes == [128 + signal.SIGTERM, 0]
    assert said == "gpupif: interrupted; what is done is kept, and the same command goes on with it.\n"
    assert nothing_left(tmp_path)
