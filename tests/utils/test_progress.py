"""The message that kernels are being compiled comes once, says where they are kept, and can be turned off."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import sys

import pytest
from numba.core import event

import gpupif
from gpupif.kernels import cache
from gpupif.utils import progress


@pytest.fixture
def compile_twice(monkeypatch, capsys):
    """Return a function that compiles two things, keeps them in a folder, and returns the messages."""

    def compiled(folder):
        monkeypatch.setattr(progress, "_said", False)
        monkeypatch.setattr(cache, "CACHE_FOLDER", folder)
        with progress.announce_compilation():
            for _ in range(2):
                with event.trigger_event("numba:compile"):
                    pass
        return capsys.readouterr().err

    return compiled


def test_the_message_names_the_folder_of_compiled_kernels(compile_twice):
    said = compile_twice("/home/someone/.cache/gpupif/0123456789abcdef")
    assert said == (
        "gpupif: compiling for this machine, for a few seconds; once for each kind of question, as it is kept in "
        "/home/someone/.cache/gpupif.\n"
    )


def test_the_message_says_if_kernels_cannot_be_kept(compile_twice):
    said = compile_twice("")
    assert "every time, as there is no folder to keep it in: set XDG_CACHE_HOME to one" in said
    assert said.count("\n") == 1


def test_no_message_comes_if_progress_is_off(compile_twice):
    with gpupif.config(progress=False):
        assert compile_twice("") == ""


def lines_of(record):
    """Return what a terminal shows that writes each line once it ends and never goes back to it, as a recorder does."""
    *lines, last = record.replace("\r\n", "\n").split("\n")
    # What is erased (\x1b[2K), or written over from the beginning of the line, is gone.
    shown = [re.split(r"\x1b\[2K", line)[-1].rpartition("\r")[2] for line in [*lines, last]]
    return [re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", line) for line in shown]


@pytest.mark.parametrize("terminal", ["xterm-256color", "dumb"])
@pytest.mark.parametrize("stages", [0, 1, 2])
def test_the_bar_leaves_no_line_in_a_recorded_terminal(monkeypatch, terminal, stages):
    monkeypatch.setenv("TERM", terminal)
    seen, written = pty.openpty()
    with os.fdopen(seen, "rb", 0) as recorder:
        with os.fdopen(written, "w") as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            with progress.Reporter(True) as report:
                for stage in range(stages):
                    report.stage(f"stage {stage}", 10, "rows")
                    report.advance(5)
                    if report._bar is not None:
                        report._bar.refresh()
                    report.say(f"line {stage}")
            stream.write("after\n")
        parts = []
        # Reading raises OSError once nobody can write any more.
        with contextlib.suppress(OSError):
            while part := recorder.read(1 << 16):
                parts.append(part)
        record = b"".join(parts).decode()
    assert ("━" in record) == (terminal != "dumb" and stages > 0)
    assert lines_of(record) == [*(f"gpupif: line {stage}" for stage in range(stages)), "after", ""]


def test_no_stage_counts_more_than_there_is(tmp_path, monkeypatch, on_cpu):
    """Treatments read a table of CSV twice, and show stages of their own."""
    stages, stage_of = [], {}

    def begin(self, name, total, unit):
        stage_of[self] = [name, total, 0]
        stages.append(stage_of[self])

    monkeypatch.setattr(progress.Reporter, "stage", begin)
    monkeypatch.setattr(progress.Reporter, "expect", lambda self, total: stage_of[self].__setitem__(1, total))
    monkeypatch.setattr(
        progress.Reporter, "advance", lambda self, amount=1: stage_of[self].__setitem__(2, stage_of[self][2] + amount)
    )
    gpupif.datasets.census(200)[["age", "sex", "region"]].to_csv(tmp_path / "table.csv", index=False)
    names = (["age", "sex"], ["sex", "region"])
    rows = [gpupif.treatments.SuppressRows(k=2, quasi_identifiers=own) for own in names]
    plan = gpupif.Plan(rows, criteria={"require": []})
    gpupif.treat_files(tmp_path / "table.csv", tmp_path / "treated.csv", plan)
    assert {"treat", "read and encode"} <= {name for name, *_ in stages}
    assert [own for own in stages if own[1] is not None and own[2] > own[1]] == []
