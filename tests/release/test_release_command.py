"""The command `gpupif release`: paid answers are never lost, and numbers that no float holds are refused."""

from __future__ import annotations

import errno
import io
import json
import math
import subprocess
import sys
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec

import pandas as pd
import pytest

import gpupif
from gpupif.errors import OutputError
from tests.helpers.command_line import COMMAND, assert_refused

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
    if "stdout" in broken and ".json" not in broken:
        kept = "in a.json" if place == "a.json" else "above, on standard error"
        assert told.err.endswith(f"The answers were charged, and are {kept}.\n")
    named = {"out": "standard output instead", "err": "standard error instead"}
    assert (named.get(place, "instead") in told.err) == ("-o" in options and ".json" in broken)


def test_a_file_of_answers_is_named(ledger, run):
    assert run(*COMMON, "-o", "a.json").out.endswith("Answers written to a.json.\n")
    assert run(*COMMON, "-o", "b.json", "-q").out == ""


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


HUGE = "1" + "0" * 400
BEYOND = [HUGE, f"-{HUGE}", "1e400", "nan"]


@pytest.mark.parametrize(
    "command",
    [
        "budget new.json --epsilon {}",
        "budget new.json --epsilon 1 --delta={}",
        "budget new.json --epsilon 1 --contributions={}",
        "budget new.json --epsilon 1 --group={}",
        "tables people.csv --by sex --round={}",
        "tables people.csv --by sex --suppress-below={}",
        "tables people.csv --by sex --suppress-below 3 --width={}",
        "tables people.csv --by sex --value age --dominance {},50",
        "tables people.csv --by sex --value age --dominance 1,{}",
        "tables people.csv --by sex --value age --p-percent={}",
        "audit a.json --table people.csv --k={}",
        "audit a.json --table people.csv --most={}",
        "audit a.json --table people.csv --overlap={}",
        "audit a.json --table people.csv --top={}",
        "audit a.json --table people.csv --bound age={}:",
        "audit a.json --table people.csv --bound age=:{}",
        "audit a.json --table people.csv --bound age=0:99 --width={}",
    ],
)
def test_numbers_that_no_float_holds_are_one_line(ledger, run, folder, command):
    (folder / "a.json").write_text('{"query": [{"name": "a", "kind": "mean", "column": "age"}]}')
    for number in BEYOND:
        assert_refused(run(*command.format(number).split()), [])
    assert not (folder / "new.json").exists()


@pytest.mark.parametrize(
    "query",
    [
        '"ask": "mean", "column": "age", "epsilon": 1, "bounds": [0, #]',
        '"ask": "mean", "column": "age", "epsilon": 1, "bounds": [#, 9]',
        '"ask": "mean", "column": "age", "epsilon": #, "bounds": [0, 9]',
        '"ask": "quantile", "column": "age", "epsilon": 1, "q": #, "bounds": [0, 9]',
        '"ask": "quantile", "column": "age", "epsilon": 1, "q": 0.5, "candidates": [0, #]',
        '"ask": "histogram", "column": "age", "epsilon": 1, "bins": [0, 1, #]',
        '"ask": "counts", "by": "sex", "epsilon": 1, "delta": #',
    ],
)
def test_numbers_of_a_query_that_no_float_holds_are_one_line_and_spend_nothing(ledger, run, folder, query):
    for number in (HUGE, f"-{HUGE}", "1e400", "NaN"):
        (folder / "q.json").write_text('{"query": [{' + query.replace("#", number) + "}]}")
        assert_refused(run("release", "people.csv", "--ledger", "l.json", "--query", "q.json"), ["query 1: ", "got "])
    assert gpupif.Budget(ledger.path).charges == []


@pytest.mark.parametrize(
    "number",
    [10**400, -(10**400), 10**5000, Fraction(10**400), Fraction(1, 10**400), math.inf, math.nan],
    ids=["huge", "-huge", "many digits", "huge fraction", "small fraction", "inf", "nan"],
)
def test_arguments_that_no_float_holds_are_one_line(ledger, number):
    table = pd.DataFrame({"sex": ["f", "m"], "sum": [1.0, 2.0]})
    mean = [{"name": "a", "kind": "mean", "column": "sum"}]
    for call in (
        lambda: gpupif.release.Loss("laplace", scale=number),
        lambda: gpupif.release.Loss("gaussian", 1.0, sensitivity=number),
        lambda: gpupif.release.Loss("laplace", 1.0, failure=number),
        lambda: gpupif.release.mean(table, "sum", ledger, bounds=(-number, number), epsilon=1),
        lambda: gpupif.release.counts(table, "sex", ledger, delta=number, epsilon=1),
        lambda: gpupif.audit(mean, table, bounds={"sum": (number, number)}),
        lambda: gpupif.audit(mean, table, bounds={"sum": (0, 9)}, width=number),
        lambda: gpupif.audit_table(table, slack=number, total=None),
        lambda: gpupif.randomized_response(keep=0.5, prior=number),
    ):
        with pytest.raises(gpupif.InputError) as refused:
            call()
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 400
    assert ledger.state.losses == []


def test_sums_that_no_float_holds_are_one_line():
    table = pd.DataFrame({"sex": ["f", "f", "m"], "sum": [1e308] * 3})
    for argument in ("value", "weights"):
        with pytest.raises(gpupif.InputError, match=f"{argument}: column 'sum': expected numbers whose sum a float"):
            gpupif.tables(table, "sex", **{argument: "sum"})
