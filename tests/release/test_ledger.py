"""The ledger of a budget: charged before anything is answered, never undone, never silently changed."""

from __future__ import annotations

import doctest
import fcntl
import hmac
import json
import os
import stat
from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif import Budget, InputError
from gpupif.encoding.column import Column
from gpupif.errors import OutputError, TableReadError
from gpupif.marginals.set_counts import CountResult, Total
from gpupif.release import Loss, answers, ledger
from gpupif.release.fingerprint import fingerprints
from gpupif.release.queries import Counts
from tests.helpers.counting_ways import WAYS

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


def wide(rows=5_000):
    """A table of columns with more values than older fingerprints had."""
    numbers = np.random.default_rng(1).permutation(rows)
    return pd.DataFrame(
        {
            "sex": np.where(numbers % 2, "f", "m"),
            "text": [f"p{number}é" for number in numbers],
            "whole": numbers + 2**53,
            "share": numbers / 8,
            "day": pd.Timestamp("1990-01-01") + pd.to_timedelta(numbers, unit="D"),
            "truth": numbers % 3 == 0,
        }
    )


# The fingerprint of this table in ledgers that were charged before all values counted.
OLDER = "c9941f8ca586439bcf573777e9b9078f097b148ea3a6ef7abe9e648943dd12d4"
OTHER_TABLES = {
    "text": lambda column: column.replace("p7é", "p7e"),
    "whole": lambda column: column.where(column != 2**53 + 7, 2**60),
    "share": lambda column: column.where(column != 4.125, 4.12),
    "day": lambda column: column.where(column != pd.Timestamp("1990-01-09"), pd.Timestamp("2090-01-09")),
}


@pytest.mark.every_engine
@pytest.mark.parametrize("way", WAYS)
def test_a_ledger_knows_its_table_by_all_values_in_every_way_to_run(budget, way):
    table = wide()
    ask(budget, table, epsilon=0.01)
    way(ask_of, table.sample(frac=1, random_state=1)[table.columns[::-1]], budget)
    for name, changed in OTHER_TABLES.items():
        other = table.assign(**{name: changed(table[name])})
        assert other[name].nunique() == table[name].nunique()
        with pytest.raises(InputError, match="belongs to another table"):
            way(ask_of, other, budget)
    assert len(Budget(budget.path).charges) == 2


def ask_of(table, budget):
    return ask(budget, table, epsilon=0.01)


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_a_ledger_knows_its_table_in_every_format(budget, tmp_path, ending):
    table, path = wide(), tmp_path / f"t.{ending}"
    ask(budget, table, epsilon=0.01)
    table.to_csv(path, index=False) if ending == "csv" else getattr(table, f"to_{ending}")(path)
    ask(budget, path, epsilon=0.01)


def test_fingerprints_are_equal_if_values_and_their_counts_are():
    """By brute force, values of several types and texts that run into each other among them."""

    def fingerprint(values):
        counts = Counter(values)
        labels = np.empty(len(counts), object)
        labels[:] = [*counts]
        column = Column("x", np.empty(0, np.uint8), np.array([*counts.values()]), labels, False)
        return fingerprints(CountResult([column], Total(len(values), len(values)), []))[0]

    tables = [
        own
        for among in (["a", "b", "ab", ""], [1, 0.5, "1", "a"])
        for size in range(1, 4)
        for own in combinations_with_replacement(among, size)
    ]
    found: dict[str, set[str]] = {}
    for own in tables:
        found.setdefault(fingerprint(own), set()).add(repr(sorted(map(str, own))))
        assert fingerprint(own) == fingerprint(own[::-1])
    assert all(len(alike) == 1 for alike in found.values())
    assert len(found) == len({repr(sorted(map(str, own))) for own in tables})


def test_a_ledger_of_an_older_version_takes_its_table_once_by_the_older_fingerprint(budget, monkeypatch):
    table = wide()
    with monkeypatch.context() as older:
        older.setattr(answers, "fingerprints", lambda counted: fingerprints(counted)[1:])
        ask(budget, table, epsilon=0.1)
        # The fingerprint as it was.
        assert budget.state.table == hmac.digest(budget.state.salt.encode(), OLDER.encode(), "sha256").hex()
    with pytest.raises(InputError, match="belongs to another table"):
        ask(budget, table.head(4_999), epsilon=0.1)
    ask(budget, table, epsilon=0.1)
    with pytest.raises(InputError, match="belongs to another table"):
        ask(budget, table.assign(text=OTHER_TABLES["text"](table["text"])), epsilon=0.1)
    ask(budget, table, epsilon=0.1)


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
