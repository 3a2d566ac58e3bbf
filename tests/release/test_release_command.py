"""The command `gpupif release`: answers that are paid for are never lost, whatever of the output fails."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

import gpupif
from gpupif.errors import OutputError
from tests.helpers.command_line import COMMAND

QUERY = '[[query]]\nask = "counts"\nby = "sex"\nvalues = {}\nepsilon = 0.5\n'
COMMON = ["release", "people.csv", "--ledger", "l.json", "--query", "q.toml"]


class Full(io.StringIO):
    """A standard output whose disk is full."""

    def write(self, _):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def ledger(folder):
    """A ledger for a charge, and a query of two counts."""
    (folder / "q.toml").write_text(QUERY.format(["f", "m"]))
    return gpupif.Budget(folder / "l.json", epsilon=50)


@pytest.fixture
def breaks(monkeypatch):
    """Have the disk be full for files whose names have an ending, and standard output as well."""

    def break_them(endings):
        for place in ("gpupif.io.write", "gpupif.report.page"):
            write = import_module(place).write_text

            def full(text, path, *arguments, write=write, **options):
                if str(path).endswith(endings):
                    raise OutputError(f"{path}: could not be written: No space left on device.")
                write(text, path, *arguments, **options)

            monkeypatch.setattr(f"{place}.write_text", full)
        if "stdout" in endings:
            monkeypatch.setattr(sys, "stdout", Full())

    return break_them


def document_in(text):
    """The only JSON document in a text."""
    return json.loads(text[text.index("{\n") : text.rindex("\n}") + 2])


@pytest.mark.parametrize(
    ("options", "broken", "place"),
    [
        ("-q -o a.json", (".json",), "out"),
        ("-o a.json --report r.html", (".json", ".html"), "out"),
        ("-o a.json", (".json", "stdout"), "err"),
        ("-o a.json", ("stdout",), "a.json"),
        ("-q -o a.json --report r.html", (".html",), "a.json"),
        ("--json --report r.html", (".html",), "out"),
        ("--json", ("stdout",), "err"),
        ("", ("stdout",), "err"),
    ],
)
def test_paid_answers_are_kept_where_an_output_fails(ledger, run, breaks, options, broken, place):
    breaks(broken)
    told = run(*COMMON, *options.split())
    assert told.code == 2
    assert told.err.count("gpupif: error: ") == 1
    text = ledger.path.with_name(place).read_text() if place == "a.json" else getattr(told, place)
    [answer] = document_in(text)["answers"]
    assert [row["sex"] for row in answer["table"]] == ["f", "m"]
    assert document_in(text)["budget"]["head"] == gpupif.Budget(ledger.path).state.head != ledger.state.head
    named = {"out": "standard output instead", "err": "standard error instead"}
    assert (named.get(place, "instead") in told.err) == ("-o" in options and ".json" in broken)


def test_answers_are_printed_before_a_report_that_fails_and_in_full(ledger, run, breaks, folder):
    (folder / "q.toml").write_text(QUERY.format([f"v{number}" for number in range(50)]))
    breaks((".html",))
    told = run(*COMMON, "--report", "r.html")
    assert told.code == 2
    assert len(document_in(told.out)["answers"][0]["table"]) == 50
    assert "(the first 40 of 50)" in told.out


def test_answers_that_would_go_nowhere_are_refused_before_they_are_paid(ledger, run):
    told = run(*COMMON, "-q")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("gpupif: error: --quiet: the answers would be lost. Give --output")
    assert gpupif.Budget(ledger.path).charges == []


def test_a_charge_needs_all_that_its_answer_needs(ledger, monkeypatch):
    """What is left is said beside the answers, by another package than the one that draws."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "dp_accounting" else find_spec(name))
    with pytest.raises(gpupif.InputError, match="needs dp-accounting, which is not installed here"):
        gpupif.release.answer("people.csv", "q.toml", ledger)
    assert ledger.state.losses == []


@pytest.mark.slow
def test_answers_that_nobody_reads_are_on_standard_error(ledger, folder):
    with subprocess.Popen([*COMMAND, *COMMON], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as release:
        release.stdout.close()
        assert len(document_in(release.stderr.read())["answers"]) == 1
    assert release.returncode != 0
