"""Runs from files to files that are killed, fail, or find something wrong: what they say, leave, and go on with."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Event

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.cli import main as cli
from gpupif.errors import InputError, OutputError, PriorError, TableReadError
from gpupif.io import checkpoints as store
from gpupif.io.write import write_tables
from gpupif.out_of_core import budget
from gpupif.out_of_core.write import ScoreWriter
from gpupif.utils import memory
from gpupif.utils.signals import SIGNALS
from tests.helpers.command_line import COMMAND, LIMITED, assert_refused, contents, start
from tests.helpers.configured import configured
from tests.helpers.dying import die
from tests.helpers.file_formats import FRAME
from tests.helpers.pieces import assert_same, census_folder, in_pieces, nothing_left, write_parts

MEASURES = ["cig", "csf", "wcig"]


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment_and_resumed(tmp_path, seed):
    """Killed many times, each time at another moment, it ends in the same bits, and leaves nothing else."""
    source = census_folder(tmp_path / "in", rows=150)
    chance = random.Random(seed)
    moments = [chance.randint(1, 60) for _ in range(40)]
    target = tmp_path / ("out" if seed else "out.parquet")
    codes, said = die(signal.SIGKILL, moments, source, "-o", target, "--resume", "-q", "--temp", tmp_path)
    assert codes[-1] == 0, said
    assert codes.count(-9) >= 3
    assert nothing_left(tmp_path)
    files = [target] if target.is_file() else sorted(target.rglob("*"))
    found = pa.concat_tables(pq.read_table(file) for file in files)
    expected = gpupif.score(source, ["cig", "csf", "wcig"]).to_arrow()
    assert found.replace_schema_metadata().equals(expected.replace_schema_metadata())


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    source = census_folder(tmp_path / "in", rows=100)
    codes, _ = die(signal.SIGKILL, [], source, "-o", tmp_path / "first", "-q", rows=(30, 40))
    assert codes == [0]

    def failing(*_):
        raise InputError("stop")

    with in_pieces(30, 40), monkeypatch.context() as patch:
        patch.setattr("gpupif.out_of_core.write.ScoreWriter.write", failing)
        with pytest.raises(InputError, match="stop"):
            gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
    assert not nothing_left(tmp_path)
    with in_pieces(30, 40), monkeypatch.context() as patch:
        patch.setattr("gpupif.out_of_core.steps.encode", failing)
        patch.setattr("gpupif.out_of_core.passes.cut", failing)
        patch.setattr("gpupif.out_of_core.part_scoring.PartScorer.score", failing)
        scores = gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
    assert_same(scores, gpupif.score(source, MEASURES))
    assert nothing_left(tmp_path)


@pytest.mark.parametrize(
    ("number", "moment"),
    [(signal.SIGTERM, 4), (signal.SIGTERM, 40), (signal.SIGTERM, 120), (signal.SIGINT, 60), (signal.SIGHUP, 80)],
)
def test_signals_leave_nothing(tmp_path, number, moment):
    source = census_folder(tmp_path / "in", rows=150)
    codes, said = die(number, [moment], source, "-o", tmp_path / "out", "-q", "--temp", tmp_path, "--overwrite")
    assert codes == [128 + number, 0]
    assert said == "gpupif: interrupted; nothing was written.\n"
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("resume", [False, True])
def test_signals_come_too_late(tmp_path, monkeypatch, resume):
    """When the scores are in place, all that is left to do is done."""
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


def test_signals_after_the_scores_say_that_they_are_there(tmp_path, monkeypatch, capfd):
    source = census_folder(tmp_path / "in", rows=150)
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["gpupif", "score", str(source), "-o", str(out), "--rows-per-file", "50"])
    monkeypatch.setattr("gpupif.cli.score.show_scores", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    handlers = [signal.getsignal(number) for number in SIGNALS]
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
    finally:
        for number, handler in zip(SIGNALS, handlers, strict=True):
            signal.signal(number, handler)
    assert ended.value.code == 128 + signal.SIGTERM
    assert capfd.readouterr().err.endswith(f"gpupif: interrupted; the scores are complete: {out}.\n")


def test_resume_says_whether_it_goes_on(tmp_path, monkeypatch, capfd):
    source = census_folder(tmp_path / "in", rows=100)
    with in_pieces(30, 40), monkeypatch.context() as patch:
        fail(patch, "gpupif.out_of_core.write.write_tables")
        with pytest.raises(InputError, match="went wrong"):
            gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
        assert "there is no run to resume" in capfd.readouterr().err
    with in_pieces(30, 40):
        gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
    assert "going on with a run that was ended" in capfd.readouterr().err


def test_signals_leave_what_resume_can_use(tmp_path):
    source = census_folder(tmp_path / "in", rows=150)
    codes, said = die(signal.SIGTERM, [60], source, "-o", tmp_path / "out", "-q", "--resume")
    assert codes == [128 + signal.SIGTERM, 0]
    assert said == "gpupif: interrupted; what is done is kept, and the same command goes on with it.\n"
    assert nothing_left(tmp_path)


def fail(monkeypatch, name, after=0):
    """Have a function of the run raise an error, at the call after so many."""
    module, _, attribute = name.rpartition(".")
    real = getattr(import_module(module), attribute)
    calls = []

    def failing(*given, **named):
        calls.append(name)
        if len(calls) > after:
            raise InputError("something went wrong")
        return real(*given, **named)

    monkeypatch.setattr(name, failing)


FAILURES = [
    "gpupif.out_of_core.encode.encode_part",
    "gpupif.out_of_core.passes.cut",
    "gpupif.out_of_core.part_scoring.part_job",
    "gpupif.out_of_core.gather.write_batch",
    "gpupif.out_of_core.write.write_tables",
    "gpupif.out_of_core.attack.riskiest_cells",
]


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("name", FAILURES)
def test_failures_leave_only_what_resume_can_use(tmp_path, monkeypatch, name, resume):
    source = census_folder(tmp_path / "in", rows=100)
    (tmp_path / "out").mkdir()
    with in_pieces(30, 40), monkeypatch.context() as patch:
        fail(patch, name, after=0 if name.endswith("riskiest_cells") else 1)
        with pytest.raises(InputError, match="something went wrong"):
            gpupif.score_files(source, tmp_path / "out", MEASURES, resume=resume)
    assert list((tmp_path / "out").iterdir()) == []
    assert nothing_left(tmp_path) is not resume
    with in_pieces(30, 40):
        assert_same(
            gpupif.score_files(source, tmp_path / "out", MEASURES, resume=resume), gpupif.score(source, MEASURES)
        )
    assert nothing_left(tmp_path)


def test_score_files_written_beside_one_that_fails(tmp_path, monkeypatch):
    source = census_folder(tmp_path / "in", rows=120, files=2)
    begun, failed, written = Event(), Event(), []

    def write(parts, file, done, real=write_tables):
        if file.name == "000.parquet":
            assert begun.wait(30)
            try:
                next(iter(parts))
                raise KeyboardInterrupt
            finally:
                failed.set()

        def advance(rows):
            begun.set()
            assert failed.wait(30)
            time.sleep(0.05)
            written.append(rows)
            done(rows)

        real(parts, file, advance)

    monkeypatch.setattr("gpupif.out_of_core.write.write_tables", write)
    with in_pieces(3, 40), pytest.raises(KeyboardInterrupt):
        gpupif.score_files(source, tmp_path / "out", MEASURES)
    # Of 20.
    assert 1 <= len(written) < 10
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def half_done(tmp_path, monkeypatch, **arguments):
    """A folder with a table, and a run from it that failed before the end, to be resumed."""
    source = census_folder(tmp_path / "in", rows=100)
    with in_pieces(30, 40), monkeypatch.context() as patch:
        fail(patch, "gpupif.out_of_core.write.write_tables", after=1)
        with pytest.raises(InputError, match="something went wrong"), gpupif.config(memory_limit="4GiB"):
            configured(gpupif.score_files, source, tmp_path / "out", MEASURES, resume=True, **arguments)
    return source


OTHER = {
    "columns scored": {"columns": ["age", "sex"]},
    "columns known": {"known": ["age", "sex"]},
    "accuracies": {"accuracies": {"age": 0.5}},
    "priors": {"priors": {"sex": {"Female": 0.5, "Male": 0.5}}},
    "dtype": {"dtype": "float32"},
    "measures": {"measures": ["cig", "csf"]},
    "temp": {"temp": "."},
    "missing": {"missing": "error"},
    "rows per file": {"rows_per_file": 7},
    "keep input": {"keep_input": True},
}


@pytest.mark.parametrize(("what", "arguments"), OTHER.items(), ids=OTHER)
def test_resumed_with_other_options(tmp_path, monkeypatch, what, arguments):
    source = half_done(tmp_path, monkeypatch)
    before = contents(tmp_path)
    arguments = {"measures": MEASURES, "memory_limit": "4GiB", **arguments}
    with in_pieces(30, 40), pytest.raises(OutputError, match=f"other {what}.*resume"):
        configured(gpupif.score_files, source, tmp_path / "out", resume=True, **arguments)
    assert contents(tmp_path) == before
    with in_pieces(30, 40), gpupif.config(memory_limit="5GiB"):
        assert gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True).rows == 100


def test_resumed_with_less_memory(tmp_path, monkeypatch):
    source = half_done(tmp_path, monkeypatch)
    with in_pieces(29, 40), pytest.raises(InputError, match="memory_limit: the run to be resumed had more"):
        gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
    with in_pieces(31, 35), gpupif.config(memory_limit="3GiB"):
        scores = gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)
    assert_same(scores, gpupif.score(source, MEASURES))


def test_resumed_with_another_file(tmp_path, monkeypatch):
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


def test_resumed_with_a_damaged_file(tmp_path, monkeypatch):
    source = half_done(tmp_path, monkeypatch)
    (damaged,) = tmp_path.glob(".gpupif-*/encoded/chunk-000003.arrow")
    damaged.write_bytes(damaged.read_bytes()[:20])
    with (
        in_pieces(30, 40),
        pytest.raises(OutputError, match=r"chunk-000003.*damaged.*resume"),
        gpupif.config(memory_limit="4GiB"),
    ):
        gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)


def test_two_runs_to_one_output(tmp_path):
    source = census_folder(tmp_path / "in", rows=100)
    folder = store.work_folder(tmp_path / "out", tmp_path)
    other = store.Store(folder, folder)
    other.open(resume=False, output=tmp_path / "out")
    with pytest.raises(OutputError, match="another run"):
        gpupif.score_files(source, tmp_path / "out")
    other.close(keep=False)
    assert gpupif.score_files(source, tmp_path / "out").rows == 100


def test_overwrite(tmp_path):
    source = census_folder(tmp_path / "in", rows=100)
    scores = gpupif.score_files(source, tmp_path / "out")
    with pytest.raises(OutputError, match=r"out: exists already.*overwrite"):
        gpupif.score_files(source, tmp_path / "out")
    with pytest.raises(
        OutputError, match=r"out: exists already, and no killed run is left to be resumed: it may be fin"
    ):
        gpupif.score_files(source, tmp_path / "out", resume=True)
    again = gpupif.score_files(source, tmp_path / "out", "csf", overwrite=True, rows_per_file=50)
    assert [file.name for file in sorted((tmp_path / "out").iterdir())] == ["part-00000.parquet", "part-00001.parquet"]
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


def touch_after(monkeypatch, name, file):
    """Have a file change when a function of the run is called."""
    module, _, attribute = name.rpartition(".")
    owner = import_module(module)
    real = getattr(owner, attribute)

    def call(*given, **named):
        os.utime(file, (1, 1))
        return real(*given, **named)

    monkeypatch.setattr(owner, attribute, call)


@pytest.mark.parametrize(
    "name",
    ["gpupif.out_of_core.encode.encode_part", "gpupif.out_of_core.passes.cut", "gpupif.out_of_core.write.write_tables"],
)
@pytest.mark.parametrize("keep_input", [False, True])
def test_file_that_changes_under_the_run(tmp_path, monkeypatch, name, keep_input):
    source = census_folder(tmp_path / "in", rows=100)
    touch_after(monkeypatch, name, source / "002.parquet")
    with in_pieces(30, 40), pytest.raises(TableReadError, match=r"002\.parquet: the file changed"):
        gpupif.score_files(source, tmp_path / "out", MEASURES, keep_input=keep_input)
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def replace_part(source, change):
    file = source / "002.parquet"
    table = pq.read_table(file)
    pq.write_table(change(table), file)


def cut_off(source):
    file = source / "002.parquet"
    file.write_bytes(file.read_bytes()[:-7])


def scramble(source):
    """Damage the data, not the footer: only who reads it all sees it."""
    file = source / "002.parquet"
    content = bytearray(file.read_bytes())
    content[40:400] = bytes(360)
    file.write_bytes(content)


BROKEN = {
    "another column": (
        lambda source: replace_part(source, lambda t: t.drop_columns(["sex"]).append_column("age2", t["age"])),
        ["002.parquet", "'sex'", "not there", "000.parquet"],
    ),
    "another type": (
        lambda source: replace_part(source, lambda t: t.set_column(1, "age", t["age"].cast(pa.float64()))),
        ["002.parquet", "'age'", "double", "int8", "000.parquet"],
    ),
    "truncated": (cut_off, ["002.parquet", "could not be read as Parquet", "truncated"]),
    "damaged": (scramble, ["002.parquet", "could not be read as Parquet"]),
    "no Parquet": (lambda source: (source / "002.parquet").write_text("hello"), ["002.parquet", "could not be read"]),
}


@pytest.mark.parametrize(("damage", "fragments"), BROKEN.values(), ids=BROKEN)
def test_broken_file_in_a_folder(tmp_path, damage, fragments):
    source = census_folder(tmp_path / "in", rows=100)
    damage(source)
    with in_pieces(30, 40), pytest.raises(TableReadError) as raised:
        gpupif.score_files(source, tmp_path / "out")
    assert [fragment for fragment in fragments if fragment not in str(raised.value)] == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("names", ["age,height", "age"])
def test_csv_files_with_other_columns(tmp_path, names):
    (tmp_path / "1.csv").write_text("age,sex\n1,f\n")
    (tmp_path / "2.csv").write_text(f"{names}\n{names}\n")
    for read in (gpupif.score, partial(gpupif.score_files, output=tmp_path / "out")):
        with pytest.raises(TableReadError, match=r"2\.csv: column 'sex' is not there, in 1\.csv it is there"):
            read(tmp_path / "*.csv")


ARGUMENTS = {
    "limit": ({"memory_limit": "lots"}, InputError, "memory_limit: expected a size such as '2GiB'.*got 'lots'"),
    "limit of 0": ({"memory_limit": 0}, InputError, "memory_limit.*got 0"),
    "limit too small": (
        {"memory_limit": "10MB"},
        InputError,
        r"memory_limit: expected at least [\d,]+ MiB.*got 10 MiB",
    ),
    "no output": ({"output": None}, InputError, "output: expected the name of a file or folder"),
    "temp": ({"temp": "nowhere"}, OutputError, "temp: nowhere is no folder"),
    "rows per file": (
        {"rows_per_file": 0},
        InputError,
        "rows_per_file: expected a whole number of rows, 1 or more; got 0",
    ),
    "rows per single file": ({"output": "s.csv", "rows_per_file": 5}, InputError, r"rows_per_file: s\.csv is a single"),
    "unknown ending": ({"output": "s.xlsx"}, OutputError, r"s\.xlsx: expected an output name ending in .*\.parquet"),
    "inside the input": ({"output": "in/out"}, OutputError, "in/out: the output is the input in, inside it"),
    "the input": ({"output": "in", "overwrite": True}, OutputError, "in: the output is the input"),
    "around the input": ({"output": ".", "overwrite": True}, OutputError, r"\.: the output is the input in"),
    "no such place": ({"output": "no/out"}, OutputError, "there is no folder no"),
    "a file": ({"output": "file"}, OutputError, "file: is a file; expected a folder"),
    "a folder with other things": ({"output": "full"}, OutputError, "full: exists already"),
    "name of a score twice": ({"columns": ["age"], "known": ["sex"], "keep_input": True}, OutputError, "'cig_age'"),
    "unknown column": ({"columns": ["agee"]}, InputError, "no column 'agee'"),
    "prior": ({"priors": {"sex": {"f": 1.0}}}, PriorError, "'sex'"),
    "missing values": ({"missing": "error"}, InputError, r"column 'sex': missing values, the first in row 70"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("arguments", "error", "says"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_bad_arguments(tmp_path, monkeypatch, arguments, error, says):
    monkeypatch.chdir(tmp_path)
    frame = gpupif.datasets.census(100)[["age", "sex"]].assign(cig_age=1)
    frame.loc[70, "sex"] = None
    write_parts(Path("in"), frame, [50])
    Path("file").write_text("something")
    Path("full").mkdir()
    Path("full/thing").write_text("something")
    before = contents(tmp_path)
    with in_pieces(30, 40), pytest.raises(error, match=says):
        configured(gpupif.score_files, "in", **{"output": "out", **arguments})
    assert contents(tmp_path) == before
    assert nothing_left(tmp_path)


def test_frames_in_memory_have_no_output(tmp_path):
    with pytest.raises(InputError, match=r"^source: expected the path.*got DataFrame"):
        gpupif.score_files(FRAME, tmp_path / "out")


def test_too_little_disk(tmp_path, monkeypatch):
    source = census_folder(tmp_path / "in", rows=100)
    monkeypatch.setattr(budget, "free_disk", lambda folder: 1000)
    with pytest.raises(OutputError, match=r"spill files of 100 rows will need about .* KiB, 1.0 KiB are free"):
        gpupif.score_files(source, tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def test_too_many_values(tmp_path, monkeypatch):
    source = write_parts(tmp_path / "in", pd.DataFrame({"id": [f"id{n}" for n in range(100)], "b": [1, 2] * 50}))
    monkeypatch.setattr(budget, "VALUES_SHARE", 1e-9)
    with pytest.raises(InputError, match=r"column 'id': at least 100 different values.*--memory-limit"):
        gpupif.score_files(source, tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def test_patterns_that_match_nothing_or_several_kinds(tmp_path):
    with pytest.raises(TableReadError, match="matches no file"):
        gpupif.score_files(tmp_path / "*.csv", tmp_path / "out")
    FRAME.to_csv(tmp_path / "a.csv")
    FRAME.to_parquet(tmp_path / "b.parquet")
    with pytest.raises(TableReadError, match=r"files of one kind.*a\.csv is CSV.*b\.parquet is Parquet"):
        gpupif.score_files(tmp_path / "[ab].*", tmp_path / "out")


def test_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    census_folder(tmp_path / "in", rows=100)
    ended = start(
        "score", "in", "-o", "out", "--memory-limit", "2GiB", "--rows-per-file", "60", "--temp", ".", "--json"
    )
    assert (ended.code, ended.err) == (0, "")
    summary = json.loads(ended.out)
    assert summary["rows"] == 100
    assert [path.name for path in sorted(Path("out").iterdir())] == ["part-00000.parquet", "part-00001.parquet"]
    read = pq.read_table("out").replace_schema_metadata()
    assert read.equals(gpupif.score("in", MEASURES).to_arrow())
    assert_refused(start("score", "in", "-o", "out", "--memory-limit", "2GiB"), ["out", "exists", "--overwrite"])
    assert_refused(start("score", "in", "-o", "x", "--memory-limit", "huge"), ["--memory-limit", "'2GiB'"])
    assert_refused(start("score", "in", "-o", "x", "--rows-per-file", "0"), ["--rows-per-file", "1 or more"])
    assert nothing_left(tmp_path)


def test_disk_that_fills_up(tmp_path, monkeypatch):
    """Files of this process may not grow beyond 1 MB."""
    monkeypatch.chdir(tmp_path)
    with gpupif.config(memory_limit="2GiB"):
        gpupif.score_files(census_folder(tmp_path / "in", rows=60_000), "warm", MEASURES)
    shutil.rmtree("warm")
    arguments = ["score", "in", "-o", "out", "--memory-limit", "2GiB"]
    ended = start(*arguments, command=[sys.executable, "-c", LIMITED, *COMMAND])
    assert_refused(ended, ["could not be written", "File too large"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def test_a_table_that_does_not_fit_is_scored_on_disk(tmp_path, monkeypatch, capfd):
    from gpupif.out_of_core.options import make_wish
    from gpupif.scoring import files
    from gpupif.scoring.arguments import Arguments

    source, asked = census_folder(tmp_path / "in", rows=100), Arguments.of(MEASURES)
    small = files.score_file(source, asked, make_wish(tmp_path / "small.parquet"))
    monkeypatch.setattr(files, "memory_needed", lambda *_: 1 << 60)
    large = files.score_file(source, asked, make_wish(tmp_path / "large.parquet"))
    assert "more than 60 % of the memory that is free" in capfd.readouterr().err
    assert type(small).__name__ == "Scores"
    assert_same(large, small)
    assert pq.read_table(tmp_path / "small.parquet").equals(pq.read_table(tmp_path / "large.parquet"))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GiB", 2 << 30),
        ("2gb", 2 * 10**9),
        ("1.5 MiB", 3 << 19),
        ("700", 700),
        (5, 5),
        ("3k", 3000),
        ("1TiB", 1 << 40),
        (np.int64(5), 5),
        (2e9, 2 * 10**9),
        ("9" * 400 + "GB", 2**62),
        (10**400, 2**62),
    ],
)
def test_sizes(text, size):
    assert memory.parse_size("memory_limit", text) == size


@pytest.mark.parametrize("size", ["", "GiB", "-1GB", "1XB", 0, -5, True, 1.5, None, "1e9", 5j, float("inf")])
def test_sizes_that_are_none(size):
    with pytest.raises(InputError, match="memory_limit: expected a size"):
        memory.parse_size("memory_limit", size)


def test_memory_that_a_cgroup_leaves(tmp_path):
    inner = tmp_path / "v2" / "user" / "job"
    inner.mkdir(parents=True)
    for folder, most in ((inner, "max"), (inner.parent, "1000"), (tmp_path / "v2", "5000")):
        (folder / "memory.max").write_text(most)
        (folder / "memory.current").write_text("600\n")
        (folder / "memory.stat").write_text("anon 1\ninactive_file 50\n")
    (tmp_path / "own").write_text("0::/user/job\n")
    assert sorted(memory._cgroup_rooms(tmp_path / "v2", tmp_path / "own")) == [450, 4450]
    old = tmp_path / "v1" / "memory" / "job"
    old.mkdir(parents=True)
    for folder, most in ((old, "2000"), (old.parent, str(1 << 63))):
        (folder / "memory.limit_in_bytes").write_text(most)
        (folder / "memory.usage_in_bytes").write_text("600")
        (folder / "memory.stat").write_text("total_inactive_file 100\n")
    (tmp_path / "own").write_text("4:cpu,memory:/job\n3:pids:/\n")
    assert memory._cgroup_rooms(tmp_path / "v1", tmp_path / "own") == [1500]
    assert memory._cgroup_rooms(tmp_path / "none", tmp_path / "none") == []
    assert 0 < memory.free_bytes() < 1 << 50


def test_resumed_on_another_device(tmp_path, monkeypatch):
    source = half_done(tmp_path, monkeypatch, device="cpu")
    monkeypatch.setattr("gpupif.engines.cpu.engine.CpuEngine.device", "other")
    with (
        in_pieces(30, 40),
        pytest.raises(OutputError, match="other device"),
        gpupif.config(device="cpu", memory_limit="4GiB"),
    ):
        gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)


@pytest.mark.parametrize("more", [{}, {"memory_limit": "2GiB"}])
def test_no_input_file_is_written_over(tmp_path, monkeypatch, more):
    """Whether a pattern, a folder or a link names it."""
    monkeypatch.chdir(tmp_path)
    census_folder(Path("in"), rows=100)
    Path("link.parquet").symlink_to("in/000.parquet")
    Path("links").mkdir()
    Path("links/000.parquet").symlink_to(tmp_path / "in" / "000.parquet")
    before = contents(tmp_path)
    for table in ("in/*.parquet", "links", "link.parquet", "in"):
        with pytest.raises(OutputError, match=r"the output is the input"):
            configured(gpupif.score_files, table, "in/000.parquet", overwrite=True, **more)
    ended = start("score", "in/*.parquet", "-o", "in/000.parquet", "--overwrite")
    assert_refused(ended, ["in/000.parquet", "the output is the input"])
    assert contents(tmp_path) == before


@pytest.mark.parametrize("at_once", [True, False])
def test_scores_are_never_gone_while_others_replace_them(tmp_path, monkeypatch, at_once):
    """The old ones come back where the new ones cannot take their place, also without renameat2."""
    source = census_folder(tmp_path / "in", rows=40)
    gpupif.score_files(source, tmp_path / "out", "csf")
    before = contents(tmp_path / "out")
    if not at_once:
        monkeypatch.setattr(store, "RENAME_EXCHANGE", -1)
        real = Path.rename

        def failing(self, target):
            if self.name == "scores":
                raise KeyboardInterrupt
            return real(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", failing)
            with pytest.raises(KeyboardInterrupt):
                gpupif.score_files(source, tmp_path / "out", MEASURES, overwrite=True)
        assert contents(tmp_path / "out") == before
        assert nothing_left(tmp_path)
    scores = gpupif.score_files(source, tmp_path / "out", MEASURES, overwrite=True)
    assert_same(scores, gpupif.score(source, MEASURES))
    assert nothing_left(tmp_path)


def test_scores_that_a_killed_run_was_about_to_replace_come_back(tmp_path):
    source = census_folder(tmp_path / "in", rows=40)
    gpupif.score_files(source, tmp_path / "out", "csf")
    work = store.work_folder(tmp_path / "out", tmp_path)
    work.mkdir()
    (tmp_path / "out").rename(work / "previous")
    with pytest.raises(InputError, match="priors: column 'sex'"):
        gpupif.score_files(source, tmp_path / "out", MEASURES, priors={"sex": {"x": 1.0}})
    assert len(list((tmp_path / "out").iterdir())) == 4


def test_marks_of_another_run_are_not_taken(tmp_path, monkeypatch):
    """What a run left that was killed while it cleaned up belongs to no run."""
    source = half_done(tmp_path, monkeypatch)
    (work,) = tmp_path.glob(".gpupif-*")
    (work / "begun.json").unlink()
    other = census_folder(tmp_path / "other", rows=60)
    with in_pieces(30, 40):
        scores = gpupif.score_files(other, tmp_path / "out", MEASURES, resume=True)
    assert_same(scores, gpupif.score(other, MEASURES))
    assert source.exists()


def test_what_came_into_being_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    source = census_folder(tmp_path / "in", rows=60)
    target = tmp_path / "out.parquet"

    def failing(*_):
        raise InputError("stop")

    with in_pieces(30, 40), monkeypatch.context() as patch:
        patch.setattr("gpupif.out_of_core.write.ScoreWriter.publish", failing)
        with pytest.raises(InputError, match="stop"):
            gpupif.score_files(source, target, MEASURES, resume=True)
    target.write_text("precious")
    with in_pieces(30, 40), pytest.raises(OutputError, match="exists already"):
        gpupif.score_files(source, target, MEASURES, resume=True)
    assert target.read_text() == "precious"
    target.unlink()
    with in_pieces(30, 40):
        assert_same(gpupif.score_files(source, target, MEASURES, resume=True), gpupif.score(source, MEASURES))


def test_damaged_mark(tmp_path, monkeypatch):
    source = half_done(tmp_path, monkeypatch)
    (mark,) = tmp_path.glob(".gpupif-*/encoded.json")
    mark.write_text("")
    with (
        in_pieces(30, 40),
        pytest.raises(OutputError, match=r"encoded\.json.*damaged"),
        gpupif.config(memory_limit="4GiB"),
    ):
        gpupif.score_files(source, tmp_path / "out", MEASURES, resume=True)


def test_spill_of_a_killed_run_elsewhere_is_removed(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    source = half_done(tmp_path, monkeypatch, temp=tmp_path / "one")
    assert not nothing_left(tmp_path / "one")
    with in_pieces(30, 40), gpupif.config(temp=tmp_path / "two"):
        gpupif.score_files(source, tmp_path / "out", MEASURES)
    assert all(nothing_left(tmp_path / name) for name in ("one", "two", "."))


def test_output_by_a_link(tmp_path):
    source = census_folder(tmp_path / "in", rows=60)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    scores = gpupif.score_files(source, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert len(list((tmp_path / "real").iterdir())) == len(scores.files) == 4


def test_the_current_folder(tmp_path, monkeypatch):
    source = census_folder(tmp_path / "in", rows=60)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    gpupif.score_files(source, ".")
    assert len(list((tmp_path / "here").iterdir())) == 4


def test_input_beside_the_scores_of_files_without_rows(tmp_path):
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
def test_names_of_score_files(tmp_path, names, says):
    (tmp_path / "in").mkdir()
    for name in names:
        FRAME.to_parquet(tmp_path / "in" / name)
    with pytest.raises(OutputError, match=says):
        gpupif.score_files(tmp_path / "in" / "*.p*", tmp_path / "out")
    assert gpupif.score_files(tmp_path / "in" / "*.p*", tmp_path / "out", rows_per_file=9).rows == 16


def test_temp_inside_the_output(tmp_path):
    source = census_folder(tmp_path / "in", rows=60)
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError, match=r"temp: .* is the output"), gpupif.config(temp=tmp_path / "out"):
        gpupif.score_files(source, tmp_path / "out")


def test_output_that_is_no_unicode(tmp_path):
    source = census_folder(tmp_path / "in", rows=60)
    ended = subprocess.run([*COMMAND, "score", source, "-o", os.fsencode(tmp_path) + b"/o\xff", "-q"], check=False)
    assert ended.returncode == 0
    assert len(os.listdir(os.fsencode(tmp_path) + b"/o\xff")) == 4


def test_long_field_of_csv(tmp_path):
    (tmp_path / "1.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "2.csv").write_text(f"a,b\n1,{'x' * 200_000}\n2,y\n")
    assert gpupif.score(tmp_path / "*.csv").rows == 4
    assert gpupif.score(tmp_path / "2.csv").rows == 2
    assert gpupif.score_files(tmp_path / "*.csv", tmp_path / "out").rows == 4


def test_columns_of_csv_files_in_another_order(tmp_path):
    (tmp_path / "1.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "2.csv").write_text("b,a\nx,1\ny,2\n")
    scores = gpupif.score_files(tmp_path / "*.csv", tmp_path / "out", "prior")
    assert_same(scores, gpupif.score(tmp_path / "*.csv", "prior"))
    assert scores.priors["b"] == {"x": 0.5, "y": 0.5}


def test_broken_csv_file(tmp_path):
    (tmp_path / "1.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "2.csv").write_text("a,b\n1,x\n2,y,z\n")
    for read in (gpupif.score, partial(gpupif.score_files, output=tmp_path / "out")):
        with pytest.raises(TableReadError, match=r"2\.csv: could not be read as CSV.*Expected 2 columns, got 3"):
            read(tmp_path / "*.csv")


def test_columns_with_too_many_values_for_the_memory(tmp_path, monkeypatch):
    source = write_parts(tmp_path / "in", pd.DataFrame({f"id{n}": range(100) for n in range(3)}))
    real = budget.plan_budget
    monkeypatch.setattr("gpupif.out_of_core.run.plan_budget", lambda *given: real(*given)._replace(working=1 << 15))
    monkeypatch.setattr(budget, "VALUES_SHARE", 1)
    with pytest.raises(InputError, match=r"memory_limit: the columns have 300 different values"):
        gpupif.score_files(source, tmp_path / "out")


def test_long_texts_make_small_chunks(tmp_path, monkeypatch):
    texts = [f"{n % 7}" * 5000 for n in range(400)]
    source = write_parts(tmp_path / "in", pd.DataFrame({"a": texts, "b": range(400)}), range(0, 400, 50))
    chunks = []
    from gpupif.out_of_core import encode

    real = encode.in_chunks

    def noted(pieces, rows, most):
        for chunk in real(pieces, rows, 200_000):
            chunks.append(chunk.num_rows)
            yield chunk

    monkeypatch.setattr(encode, "in_chunks", noted)
    scores = gpupif.score_files(source, tmp_path / "out", MEASURES)
    assert len(chunks) > 3
    assert_same(scores, gpupif.score(source, MEASURES))
