"""The command line, run in this process or in one of its own, and what it must leave and say."""

from __future__ import annotations

import signal
import subprocess
import sys
import warnings
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import typer.main

import gpupif
from gpupif.cli import main as cli
from gpupif.utils.signals import SIGNALS

COMMAND = [sys.executable, "-m", "gpupif"]
if not Path(gpupif.__file__).with_name("__main__.py").exists():
    COMMAND = [str(Path(sys.executable).with_name("gpupif"))]


CSV = "age,sex,a=b\n39,f,1.5\n39,m,2.5\n40,f,\n41,,1.5\n39,f,1.5\n"
FRAME = pd.DataFrame(
    {"age": [39, 39, 40, 41, 39], "sex": ["f", "m", "f", None, "f"], "a=b": [1.5, 2.5, None, 1.5, 1.5]}
)
PRIORS = {"age": {39: 0.5, 40: 0.25, 41: 0.25}, "sex": {"f": 0.5, "m": 0.3, None: 0.2}}


def without_compilation(text):
    """Standard error without the word that kernels are being compiled, which only the first run ever says."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("gpupif: compiling"))


@pytest.fixture(scope="session", autouse=True)
def commands_built_once():
    """The parser of all commands, which a process builds once, is built once for all tests of a process too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True)
def signals():
    """What the command line does about signals ends with the test that runs it in this process."""
    before, hook = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}, sys.unraisablehook
    yield
    sys.unraisablehook = hook
    signal.alarm(0)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with a table in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(CSV)
    return tmp_path


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Run the command line in this process."""

    # Where the tests run as python -m pytest, Click would say that name in place of the command's.
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)

    def run_here(*arguments):
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        monkeypatch.setattr(sys, "argv", ["gpupif", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code
        shown = capsys.readouterr()
        return SimpleNamespace(code=code or 0, out=shown.out, err=without_compilation(shown.err))

    return run_here


def start(*arguments, command=COMMAND):
    """Run the command line as a process of its own."""
    ended = subprocess.run([*command, *arguments], check=False, text=True, capture_output=True)
    return SimpleNamespace(code=ended.returncode, out=ended.stdout, err=without_compilation(ended.stderr))


def assert_written(path, scores, before=()):
    read = {".parquet": pd.read_parquet, ".csv": partial(pd.read_csv, engine="pyarrow"), ".feather": pd.read_feather}
    written = read[path.suffix](path)
    expected = {f"{measure}_{name}": scores[measure][name] for measure in scores.measures for name in scores.columns}
    assert list(written.columns) == [*before, *expected]
    for name, values in expected.items():
        np.testing.assert_array_equal(written[name].astype(values.dtype), values)


def assert_refused(ended, fragments):
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("gpupif: error: ")
    assert ended.err.count("\n") == 1
    assert [fragment for fragment in fragments if fragment not in ended.err] == []


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
os.execv(sys.argv[1], sys.argv[1:])
"""
