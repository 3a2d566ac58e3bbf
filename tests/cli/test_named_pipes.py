"""Named pipes in the place of files that commands read: refused, never waited for."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from tests.helpers.command_line import assert_refused, contents, start

PLAN = """hierarchies.age = "{}"
[[treatment]]
do = "recode"
column = "age"
level = 1
"""
PRAM = '[[treatment]]\ndo = "pram"\ncolumn = "sex"\nmatrix = "{}"\n'
ZIP = '[[treatment]]\ndo = "zip3"\ncolumn = "sex"\npopulations = "{}"\n'
# By case: what is typed, the ending of the pipe's name, and the texts of files that name it.
CASES = {
    "table": (["score", "PIPE"], ".csv", {}),
    "parquet": (["inspect", "PIPE"], ".parquet", {}),
    "feather": (["risk", "PIPE"], ".feather", {}),
    "folder": (["score", "folder"], ".parquet", {}),
    "other table": (["compare", "people.csv", "PIPE"], ".csv", {}),
    "population": (["risk", "people.csv", "--quasi-identifiers", "age", "--population", "PIPE"], ".csv", {}),
    "roles": (["score", "people.csv", "--roles", "PIPE"], ".toml", {}),
    "accuracies": (["score", "people.csv", "--accuracies", "PIPE"], ".json", {}),
    "priors": (["score", "people.csv", "--priors", "PIPE"], ".json", {}),
    "distance": (["score", "people.csv", "--measures", "emd", "--distance", "age=PIPE"], ".json", {}),
    "hierarchies": (["protect", "people.csv", "--require", "k>=2", "--hierarchies", "PIPE"], ".toml", {}),
    "plan": (["treat", "people.csv", "--plan", "PIPE", "-o", "out.csv"], ".toml", {}),
    "hierarchy": (["treat", "people.csv", "--plan", "plan.toml", "-o", "o.csv"], ".csv", {"plan.toml": PLAN}),
    "matrix": (["treat", "people.csv", "--plan", "plan.toml", "-o", "o.csv"], ".csv", {"plan.toml": PRAM}),
    "populations": (["treat", "people.csv", "--plan", "plan.toml", "-o", "o.csv"], ".csv", {"plan.toml": ZIP}),
    "key": (
        ["treat", "people.csv", "--plan", "p.json", "--key-file", "PIPE", "-o", "o.csv"],
        ".key",
        {"p.json": '{{"treatment": [{{"do": "jitter", "column": "age", "within": 2}}]}}'},
    ),
    "ledger": (["budget", "PIPE"], ".json", {}),
    "queries": (["release", "people.csv", "--query", "PIPE", "--ledger", "l.json"], ".toml", {"l.json": "{{}}"}),
    "audit": (["audit", "PIPE"], ".toml", {}),
    "p-table": (
        [
            "tables",
            "people.csv",
            "--by",
            "sex",
            "--method",
            "cell-key",
            "--key-file",
            "k",
            "--p-table",
            "PIPE",
        ],
        ".csv",
        {"k": "a" * 64},
    ),
    "configuration": (["nightly", "run", "PIPE"], ".toml", {}),
    "report": (["report", "PIPE", "-o", "r.html"], ".json", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_named_pipe_is_refused_at_once(run, folder, case):
    words, ending, texts = CASES[case]
    (folder / "folder").mkdir()
    pipe = folder / ("folder" if "folder" in words else ".") / f"pipe{ending}"
    os.mkfifo(pipe)
    for name, text in texts.items():
        (folder / name).write_text(text.format(pipe))
        (folder / name).chmod(0o600)
    before = contents(folder)

    def waited(*_):
        raise AssertionError("a named pipe was opened")

    before_alarm = signal.signal(signal.SIGALRM, waited)
    signal.alarm(20)
    try:
        ended = run(*(word.replace("PIPE", str(pipe)) for word in words))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before_alarm)
    assert_refused(ended, ["named pipe"])
    assert contents(folder) == before


def test_pipes_of_the_shell_are_read(folder):
    (folder / "plan.json").write_text('{"treatment": [{"do": "jitter", "column": "age", "within": 2}]}')
    command = f"{sys.executable} -m gpupif treat people.csv --plan plan.json -o out.csv --key-file"
    for typed in (f"head -c 32 people.csv | {command} /dev/stdin", f"{command} <(head -c 32 people.csv) --overwrite"):
        ended = start("-c", typed, command=["bash"])
        assert (ended.code, (folder / "out.csv").exists()) == (0, True), ended.err
