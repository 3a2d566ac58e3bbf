"""Arguments of runs from files to files, in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.errors import InputError, OutputError, PriorError, TableReadError
from tests.helpers.command_line import assert_refused, contents, start
from tests.helpers.configured import configured
from tests.helpers.file_formats import FRAME
from tests.helpers.pieces import census_folder, in_pieces, nothing_left, write_parts
from tests.helpers.runs_that_fail import MEASURES

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
    "inside the input": ({"output": "in/out"}, OutputError, "in/out: the output is inside the input in"),
    "the input": ({"output": "in", "overwrite": True}, OutputError, "in: the output is the input"),
    "around the input": ({"output": ".", "overwrite": True}, OutputError, r"\.: the output holds the input in"),
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
def test_bad_arguments_are_refused_and_leave_no_files(tmp_path, monkeypatch, arguments, error, says):
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


def test_patterns_that_match_no_file_or_several_kinds_are_refused(tmp_path):
    with pytest.raises(TableReadError, match="matches no file"):
        gpupif.score_files(tmp_path / "*.csv", tmp_path / "out")
    FRAME.to_csv(tmp_path / "a.csv")
    FRAME.to_parquet(tmp_path / "b.parquet")
    with pytest.raises(TableReadError, match=r"files of one kind.*a\.csv is CSV.*b\.parquet is Parquet"):
        gpupif.score_files(tmp_path / "[ab].*", tmp_path / "out")


@pytest.mark.slow
@pytest.mark.subprocess
def test_the_command_line_scores_a_folder_under_a_memory_limit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    census_folder(tmp_path / "in", rows=100)
    ended = start(
        "score", "in", "-o", "out", "--memory-limit", "2GiB", "--rows-per-file", "60", "--temp", ".", "--json"
    )
    assert (ended.code, ended.err) == (0, "")
    summary = json.loads(ended.out)
    assert summary["rows"] == 100
    assert [path.name for path in sorted(Path("out").glob("*.parquet"))] == ["part-00000.parquet", "part-00001.parquet"]
    read = pq.read_table("out").replace_schema_metadata()
    assert read.equals(gpupif.score("in", MEASURES).to_arrow())
    assert_refused(start("score", "in", "-o", "out", "--memory-limit", "2GiB"), ["out", "exists", "--overwrite"])
    assert_refused(start("score", "in", "-o", "x", "--memory-limit", "huge"), ["--memory-limit", "'2GiB'"])
    assert_refused(start("score", "in", "-o", "x", "--rows-per-file", "0"), ["--rows-per-file", "1 or more"])
    assert nothing_left(tmp_path)
