"""The ledger of a budget: charged before anything is answered, never undone, never silently changed."""

from __future__ import annotations

import doctest
import fcntl
import json
import os
import stat

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif import Budget, InputError
from gpupif.errors import OutputError, TableReadError
from gpupif.release import Loss, answers, ledger
from gpupif.release.queries import Counts

TABLE = pd.DataFrame({"sex": ["f", "m", "f", "f"], "age": [30, 41, 52, 63]})
HALF = [Loss("discrete_laplace", 2.0, epsilon=0.5)]


@pytest.fixture
def budget(tmp_path):
    return Budget(tmp_path / "ledger.json", epsilon=1, delta=1e-6)


def ask(budget, table=TABLE, epsilon=0.5):
    return gpupif.release.counts(table, "sex", budget, epsilon=epsilon, values=["f", "m"])


def test_charges_are_lines_that_are_only_added(budget):
    assert stat.S_IMODE(budget.path.stat().st_mode) == 0o600
    first = budget.path.read_bytes()
    budget.spend("another program", HALF)
    second = budget.path.read_bytes()
    ask(budget)
    third = budget.path.read_bytes()
    assert second.startswith(first)
    assert third.startswith(second)
    assert [json.loads(line).get("what") for line in third.splitlines()] == [
        None,
        ["another program"],
        ["counts by `sex` (given values)"],
    ]
    again = Budget(budget.path)
    assert (len(again.charges), again.terms) == (2, budget.terms)
    with pytest.raises(InputError, match=r"budget: all releases would take epsilon .* of 1 .* Nothing was spent\."):
        again.spend("more", HALF)
    assert budget.path.read_bytes() == third


def test_only_the_ledger_decides_about_a_refusal(budget):
    ask(budget)
    # No table is looked at.
    with pytest.raises(InputError, match=r"^budget: all releases would take"):
        ask(budget, table=object(), epsilon=0.6)
    no_delta = Budget(budget.path.with_name("pure.json"), epsilon=1)
    with pytest.raises(
        InputError, match=r"would take delta 1e-06 of 0\. Ask for what needs no delta, or make a ledger"
    ):
        gpupif.release.counts(object(), "sex", no_delta, epsilon=0.1, delta=1e-6)
    with pytest.raises(InputError, match=r"would take epsilon 1\.0000000001 of 1 .* a smaller epsilon"):
        no_delta.spend("another program", [Loss("laplace", 1 / (1 + 1e-10))])


def test_all_that_a_person_counts_is_in_the_chain(budget):
    """Any byte that changes, and any line that is taken out or moved, is seen."""
    for number in range(3):
        budget.spend(f"release {number}", [Loss("laplace", 10)])
    whole = budget.path.read_bytes()
    lines = whole.splitlines(keepends=True)
    damaged = [whole[:place] + b"~" + whole[place + 1 :] for place in range(0, len(whole) - 1, 37)]
    damaged += [b"".join(lines[:1] + lines[2:]), b"".join([lines[0], lines[2], lines[1], lines[3]]), b"\n", b"{}\n"]
    damaged += [whole + lines[1], whole.replace(b'"scale": 10', b'"scale": 99')]
    for content in damaged:
        budget.path.write_bytes(content)
        with pytest.raises(InputError, match=r"ledger: .* is damaged|ledger: .* without its first line"):
            Budget(budget.path)
        with pytest.raises(InputError):
            budget.spend("more", HALF)
        assert budget.path.read_bytes() == content


def test_the_start_of_a_line_that_a_killed_run_left_is_taken_away(budget):
    before = budget.path.read_bytes()
    budget.path.write_bytes(before + b'{"hash": "12')
    assert len(Budget(budget.path).charges) == 0
    budget.spend("a release", HALF)
    assert budget.path.read_bytes().startswith(before + b'{"hash"')
    assert len(Budget(budget.path).charges) == 1


def test_a_crash_before_the_answer_spends(budget, monkeypatch):
    def crash(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Counts, "answered", crash)
    with pytest.raises(KeyboardInterrupt):
        ask(budget)
    assert len(Budget(budget.path).charges) == 1


@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_nothing_is_answered_if_the_disk_refuses_the_charge(budget, monkeypatch, call):
    before = budget.path.read_bytes()

    def refuse(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Counts, "answered", lambda *arguments: pytest.fail("answered"))
    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        with pytest.raises(OutputError, match="could not be written: No space left"):
            ask(budget)
    assert budget.path.read_bytes() == before


def test_a_locked_ledger_is_waited_for_and_then_refused(budget, monkeypatch):
    monkeypatch.setattr(ledger, "LOCK_SECONDS", 0.05)
    with budget.path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(OutputError, match="the ledger is locked by another release"):
            ask(budget)
    ask(budget)


def test_a_ledger_belongs_to_its_first_table(budget, tmp_path):
    ask(budget, epsilon=0.1)
    TABLE.sample(frac=1, random_state=1)[["age", "sex"]].to_csv(tmp_path / "t.csv", index=False)
    ask(budget, tmp_path / "t.csv", epsilon=0.1)
    before = budget.path.read_bytes()
    for other in (TABLE.head(3), TABLE.assign(age=[30, 41, 52, 64]), TABLE.rename(columns={"age": "years"})):
        with pytest.raises(InputError, match=r"table: the ledger .* belongs to another table.*nothing was spent"):
            ask(budget, other, epsilon=0.1)
    assert budget.path.read_bytes() == before
    # Fingerprints are salted: who reads `head` in a published file cannot try tables until one fits.
    again = Budget(tmp_path / "again.json", epsilon=1)
    ask(again)
    assert again.state.table != Budget(budget.path).state.table
    assert again.state.salt not in json.dumps(again.to_dict())


def test_what_is_left_and_how_it_is_shown(budget):
    assert "by 0 charges" in str(budget)
    budget.spend("a[bold]release", [Loss("laplace", 4)])
    assert (budget.spent.sum, round(budget.left, 2)) == (0.25, 0.75)
    assert "Epsilon 0.25 of 1 is spent" in str(budget)
    assert "a[bold]release" in str(budget)
    document = budget.to_dict()
    assert document["head"] == json.loads(budget.path.read_text().splitlines()[-1])["hash"]
    assert document["charges"][0]["what"] == ["a[bold]release"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "ledger: there is no .*none.json. Make it, with what it may spend: gpupif budget"),
        ({"epsilon": 0}, "epsilon: expected a number above 0 and up to 100, got 0"),
        ({"epsilon": 101}, "epsilon: expected a number above 0"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": 1, "delta": 1}, "delta: expected a number from 0 to below 1, got 1"),
        ({"epsilon": 1, "delta": -0.1}, "delta"),
        ({"epsilon": 1, "neighbours": "bounded"}, "neighbours: expected 'add-remove' or 'replace'"),
        ({"epsilon": 1, "contributions": 0}, "contributions: expected a whole number of rows of a person"),
        ({"epsilon": 1, "group": 1.5}, "group: expected a whole number"),
        ({"epsilon": 1, "group": 2**20, "contributions": 2}, "group: expected at most 1,048,576 rows together"),
    ],
)
def test_wrong_terms_make_no_ledger(tmp_path, given, message):
    with pytest.raises(InputError, match=message):
        Budget(tmp_path / "none.json", **given)
    assert list(tmp_path.iterdir()) == []


def test_the_terms_of_a_ledger_stay(budget, tmp_path):
    assert Budget(budget.path, epsilon=1, delta=1e-6).terms == budget.terms
    numpy = Budget(tmp_path / "numpy.json", epsilon=np.float32(1), contributions=np.int64(2), group=3.0)
    numpy.spend("numbers of NumPy", [Loss("laplace", np.float32(4), np.int64(2))])
    assert (numpy.terms.rows, Budget(numpy.path).spent.sum) == (6, 0.5)
    with pytest.raises(InputError, match=r"epsilon: the ledger .* was made with 1.0, got 2"):
        Budget(budget.path, epsilon=2)
    with pytest.raises(InputError, match=r"losses: expected a list of gpupif\.release\.Loss"):
        budget.spend("more", [0.5])
    with pytest.raises(InputError, match=r"losses: expected a list of gpupif\.release\.Loss, got None"):
        budget.spend("more", None)
    with pytest.raises(OutputError, match="there is no folder"):
        Budget(tmp_path / "none" / "ledger.json", epsilon=1)
    with pytest.raises(InputError, match="ledger: expected the path of a ledger"):
        Budget(3)
    budget.path.chmod(0o666)
    with pytest.raises(TableReadError, match="could not be read"):
        Budget(budget.path)


@pytest.mark.parametrize("module", [answers, ledger])
def test_the_docstrings_hold(module):
    tried = doctest.testmod(module)
    assert tried.attempted >= 6
    assert tried.failed == 0
