"""Failing steps, full disks, changed or damaged files: one error, and the steps that a resumed run uses."""

from __future__ import annotations

import os
import shutil
import sys
from functools import partial
from importlib import import_module

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.errors import InputError, TableReadError
from tests.helpers.command_line import COMMAND, LIMITED, assert_refused, start
from tests.helpers.pieces import assert_same, census_folder, in_pieces, nothing_left
from tests.helpers.runs_that_fail import MEASURES, fail

FAILURES = [
    "gpupif.out_of_core.file_encoding.encode_part",
    "gpupif.out_of_core.table_scoring.find_sends",
    "gpupif.pipeline.partition_scoring.partition_job",
    "gpupif.out_of_core.attacker_run.write_batch",
    "gpupif.out_of_core.scores_writer.write_groups",
    "gpupif.out_of_core.attacker_run._codes_of_row",
]


@pytest.mark.slow
@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_run_leaves_only_files_that_resume_can_use(tmp_path, monkeypatch, name, resume):
    source = census_folder(tmp_path / "in", rows=100)
    (tmp_path / "out").mkdir()
    with in_pieces(30, 40), monkeypatch.context() as patch:
        fail(patch, name, after=0 if name.endswith("codes_of_row") else 1)
        with pytest.raises(InputError, match="something went wrong"):
            gpupif.score_files(source, tmp_path / "out", MEASURES, resume=resume)
    assert list((tmp_path / "out").iterdir()) == []
    assert nothing_left(tmp_path) is not resume
    with in_pieces(30, 40):
        assert_same(
            gpupif.score_files(source, tmp_path / "out", MEASURES, resume=resume), gpupif.score(source, MEASURES)
        )
    assert nothing_left(tmp_path)


def touch_after(monkeypatch, name, file):
    """Have a file change when a function of the run is called."""
    module, _, attribute = name.rpartition(".")
    owner = import_module(module)
    real = getattr(owner, attribute)

    def call(*given, **named):
        os.utime(file, (1, 1))
        return real(*given, **named)

    monkeypatch.setattr(owner, attribute, call)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "gpupif.out_of_core.file_encoding.encode_part",
        "gpupif.out_of_core.table_scoring.find_sends",
        "gpupif.out_of_core.scores_writer.write_groups",
    ],
)
@pytest.mark.parametrize("keep_input", [False, True])
def test_a_file_that_changes_during_the_run_is_an_error(tmp_path, monkeypatch, name, keep_input):
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
def test_a_broken_file_in_a_folder_is_named(tmp_path, damage, fragments):
    source = census_folder(tmp_path / "in", rows=100)
    damage(source)
    with in_pieces(30, 40), pytest.raises(TableReadError) as raised:
        gpupif.score_files(source, tmp_path / "out")
    assert [fragment for fragment in fragments if fragment not in str(raised.value)] == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("names", ["age,height", "age"])
def test_csv_files_with_other_columns_are_refused(tmp_path, names):
    (tmp_path / "1.csv").write_text("age,sex\n1,f\n")
    (tmp_path / "2.csv").write_text(f"{names}\n{names}\n")
    for read in (gpupif.score, partial(gpupif.score_files, output=tmp_path / "out")):
        with pytest.raises(TableReadError, match=r"2\.csv: column 'sex' is not there, in 1\.csv it is there"):
            read(tmp_path / "*.csv")


@pytest.mark.slow
@pytest.mark.subprocess
def test_a_disk_that_fills_up_is_an_error_and_leaves_no_files(tmp_path, monkeypatch):
    """Files of this process may not grow beyond 1 MB."""
    monkeypatch.chdir(tmp_path)
    with gpupif.config(memory_limit="16GiB"):
        gpupif.score_files(census_folder(tmp_path / "in", rows=200_000), "warm", MEASURES)
    shutil.rmtree("warm")
    arguments = ["score", "in", "-o", "out", "--memory-limit", "2GiB"]
    ended = start(*arguments, command=[sys.executable, "-c", LIMITED, *COMMAND])
    assert_refused(ended, ["could not be written", "File too large"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def test_csv_files_may_have_their_columns_in_another_order(tmp_path):
    (tmp_path / "1.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "2.csv").write_text("b,a\nx,1\ny,2\n")
    scores = gpupif.score_files(tmp_path / "*.csv", tmp_path / "out", "prior")
    assert_same(scores, gpupif.score(tmp_path / "*.csv", "prior"))
    assert scores.priors["b"] == {"x": 0.5, "y": 0.5}


def test_a_broken_csv_file_is_named(tmp_path):
    (tmp_path / "1.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "2.csv").write_text("a,b\n1,x\n2,y,z\n")
    for read in (gpupif.score, partial(gpupif.score_files, output=tmp_path / "out")):
        with pytest.raises(TableReadError, match=r"2\.csv: could not be read as CSV.*Expected 2 columns, got 3"):
            read(tmp_path / "*.csv")
