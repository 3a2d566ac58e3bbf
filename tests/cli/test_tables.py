"""`gpupif tables`."""

from __future__ import annotations

import json
from stat import S_IMODE

import pytest


def test_the_command_writes_and_reports_a_table(folder, run):
    (folder / "k").write_bytes(bytes(range(32)))
    (folder / "k").chmod(0o600)
    how = ("tables", "people.csv", "--by", "sex", "--round", "3", "--method", "random", "--key-file", "k")
    told = run(*how, "-o", "counts.csv", "--suppress-below", "2", "--report", "r.html")
    assert (told.code, told.err) == (0, "")
    assert "rounded to base 3" in told.out
    assert "Published table" in (folder / "r.html").read_text()
    assert S_IMODE((folder / "counts.csv").stat().st_mode) == 0o600
    lines = (folder / "counts.csv").read_text().splitlines()
    document = json.loads(run(*how, "--suppress-below", "2", "--json", "--report", "p.html", "--redact").out)
    # A redacted report does not say what narrows the true figures down.
    full, redacted = ((folder / name).read_text() for name in ("r.html", "p.html"))
    for words in ("cells suppressed by the rules", "mean change of a figure", f"{document['rows']} rows"):
        assert (words in full, words in redacted) == (True, False)
    assert lines[0] == '"sex","count"'
    assert len(lines) == 1 + len(document["counts"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--by", "nobody"], "--by: no column 'nobody'"),
        (["--by", "sex", "--round", "1"], "--round: expected"),
        (["--by", "sex", "--dominance", "2"], "--dominance: expected N,K"),
        (["--by", "sex", "--method", "cell-key"], "--key-file: method"),
        (["--by", "sex", "--suppress-below", "0"], "--suppress-below: expected"),
    ],
)
def test_bad_arguments_are_refused_and_nothing_is_written(folder, run, arguments, words):
    told = run("tables", "people.csv", *arguments, "-o", "counts.csv")
    assert (told.code, told.out) == (2, "")
    assert words in told.err
    assert told.err.count("\n") == 1
    assert not (folder / "counts.csv").exists()
