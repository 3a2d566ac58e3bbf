"""Nightly runs that release: when, what is charged, what a crash costs, and what a custodian is told."""

from __future__ import annotations

import json
import logging
import os
import signal
import sqlite3

import duckdb
import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError, OutputError
from gpupif.nightly import release
from gpupif.nightly.exit_codes import Status
from gpupif.nightly.report.junit_report import text as junit
from gpupif.nightly.table.kept_table import needed_columns
from gpupif.release import answers as answering
from tests.helpers.dying import in_a_copy
from tests.helpers.nights import CONFIGURATION, SECOND, Nights

RELEASE = """
[[gates]]
name = "k of the release"
kind = "k"
min = 4
treated = true

[release]
plan = "plan.toml"
output = "treated.csv"
queries = "q.toml"
ledger = "ledger.json"
answers = "answers.json"
key = "key"

[[release.tables]]
by = ["illness"]
method = "random"
round = 3
output = "counts.csv"

[[release.tables]]
by = ["age"]
value = "person"
dominance = [1, 60]
output = "sums.csv"
"""
PLAN = {"hierarchies": {"age": {"widths": [100]}}, "treatment": [{"do": "recode", "column": "age", "level": 1}]}
QUERIES = """
[[query]]
ask = "counts"
by = ["age"]
values = [30, 40, 50]
epsilon = 0.25

[[query]]
name = "mean age"
ask = "mean"
column = "age"
bounds = [0, 110]
epsilon = 0.25
"""
OUTPUTS = ("treated.csv", "answers.json", "counts.csv", "sums.csv")


@pytest.fixture
def nights(tmp_path):
    """Nights that release by a plan, with epsilon for two charges."""
    (tmp_path / "q.toml").write_text(QUERIES)
    (tmp_path / "key").write_bytes(bytes(32))
    (tmp_path / "key").chmod(0o600)
    gpupif.Plan.from_dict(PLAN).save(tmp_path / "plan.toml")
    gpupif.Budget(tmp_path / "ledger.json", epsilon=1)
    return Nights(tmp_path, RELEASE)


def released(nights):
    """The files of the release, those that are there."""
    return {name: (nights.folder / name).read_bytes() for name in OUTPUTS if (nights.folder / name).exists()}


def charges(nights):
    return gpupif.Budget(nights.folder / "ledger.json").charges


def test_a_night_releases_what_the_commands_would(nights, caplog):
    with caplog.at_level(logging.INFO, "gpupif.nightly"):
        outcome = nights.run()
    assert (outcome.status, outcome.exit_code) == (Status.PASSED, 0), outcome.error
    whole = pd.concat([pd.read_parquet(nights.table / f"{name}.parquet") for name in "ab"], ignore_index=True)
    treated = nights.folder / "expected.csv"
    gpupif.treat_files(nights.table, treated, nights.folder / "plan.toml")
    counts = gpupif.tables(whole, "illness", method="random", round=3, key=nights.folder / "key")
    counts.write(nights.folder / "expected-counts.csv")
    gpupif.tables(whole, "age", value="person", dominance=(1, 60)).write(nights.folder / "expected-sums.csv")
    found = released(nights)
    assert found["treated.csv"] == treated.read_bytes()
    assert found["counts.csv"] == (nights.folder / "expected-counts.csv").read_bytes()
    assert found["sums.csv"] == (nights.folder / "expected-sums.csv").read_bytes()
    [charge] = charges(nights)
    assert sum(loss.epsilon for loss in charge.losses) == 0.5
    answers = json.loads(found["answers.json"])
    assert [answer["name"] for answer in answers["answers"]] == ["counts by `age` (given values)", "mean age"]
    facts = outcome.release
    assert (facts["status"], facts["epsilon"], facts["left"]) == ("published", 0.5, 0.5)
    assert facts["head"] == answers["budget"]["head"]
    assert [gate.value for gate in outcome.gates] == [2, 8]
    assert [file["size"] for file in facts["files"]] == [len(found[name]) for name in OUTPUTS]
    [event] = [record for record in caplog.records if record.event == "release"]
    assert event.getMessage() == "released 4 files: epsilon 0.5 charged, epsilon 0.5 left"
    assert "Released 4 files" in " ".join(outcome.verdict())
    with sqlite3.connect(nights.state / "record.sqlite") as record:
        query = "SELECT json_extract(document, '$.release.left') FROM documents"
        assert record.execute(query).fetchall() == [(0.5,)]
    assert [path.name for path in (nights.state / "release").iterdir()] == [
        f"answers-{charge.what[-1].split()[-1]}.json"
    ]


def test_a_night_is_charged_once_for_an_input(nights):
    nights.run()
    first = released(nights)
    for name in OUTPUTS:
        (nights.folder / name).unlink()
    again = nights.run()
    assert released(nights) == first
    assert (again.release["status"], again.release["epsilon"], len(charges(nights))) == ("published", 0, 1)
    # Another input is charged to the same ledger, until it is exhausted; the first input is answered as before.
    nights.write("b", {"age": [40] * 4, "illness": ["flu"] * 4, "person": [5, 6, 7, 8]})
    assert nights.run().release["epsilon"] == 0.5
    second = released(nights)
    nights.write("b", {"age": [50] * 4, "illness": ["flu"] * 4, "person": [5, 6, 7, 8]})
    failed = nights.run()
    assert (failed.status, failed.exit_code, failed.release["status"]) == (Status.PASSED, 5, "failed")
    assert failed.release["error"].startswith("release.ledger: all releases would take epsilon 1.5 of 1 ")
    assert (released(nights), len(charges(nights))) == (second, 2)
    # The scores are valid: the next run is compared with them.
    assert nights.run().compared_with == failed.number
    document = failed.to_dict()
    assert 'name="release"' in junit(document)
    assert gpupif.nightly.history(nights.config).runs[-1].why == failed.release["error"]
    assert failed.verdict()[1].startswith("PASSED, BUT NOT RELEASED: ")
    assert "Exit code 5" in failed.verdict()[1]


def test_answers_of_an_earlier_night_go_out_with_what_is_left_today(nights):
    """The tables of three nights are A, B, A."""
    files = [("b", {"age": [40] * 4, "illness": ["flu"] * 4, "person": [5, 6, 7, 8]}), ("b", SECOND)]
    nights.run()
    first = json.loads(released(nights)["answers.json"])
    for name, columns in files:
        nights.write(name, columns)
        outcome = nights.run()
    third, ledger = json.loads(released(nights)["answers.json"]), gpupif.Budget(nights.folder / "ledger.json")
    assert (third["answers"], len(ledger.charges)) == (first["answers"], 2)
    assert (first["budget"]["left"], third["budget"]["left"]) == (0.5, 0)
    for facts in (third["budget"], outcome.release):
        assert (facts["spent"], facts["left"], facts["head"]) == (ledger.spent.least, ledger.left, ledger.state.head)


def test_answers_that_the_state_folder_cannot_keep_are_not_lost(nights, monkeypatch, capsys):
    def full(file, *_, **__):
        raise OutputError(f"{file}: could not be written: No space left on device.")

    monkeypatch.setattr(release, "write_file", full)
    failed = nights.run()
    assert (failed.exit_code, len(charges(nights))) == (5, 1)
    [(name, text)] = released(nights).items()
    assert (name, len(json.loads(text)["answers"])) == ("answers.json", 2)
    assert "The answers were charged, and are in " in failed.release["error"]
    monkeypatch.setattr(release, "write_text", full)
    (nights.folder / "answers.json").unlink()
    failed = nights.run("release.draw_again=1")
    assert (failed.exit_code, len(charges(nights)), released(nights)) == (5, 2, {})
    assert failed.release["error"].endswith("The answers were charged, and are on standard output.")
    assert len(json.loads(capsys.readouterr().out)["answers"]) == 2


@pytest.mark.parametrize("gate", ["gates.0.min=3", "gates.1.min=9"])
def test_a_gate_that_fails_releases_nothing(nights, gate):
    outcome = nights.run(gate)
    assert (outcome.status, outcome.exit_code, outcome.release) == (Status.FAILED, 3, {"status": "held back"})
    assert "Nothing new was released: a gate does not hold." in outcome.verdict()[1]
    assert (released(nights), charges(nights)) == ({}, [])


@pytest.mark.parametrize(
    ("treatment", "status", "error"),
    [
        ({"do": "drop", "columns": ["age"]}, "held back", None),
        ({"do": "drop", "columns": ["ages"]}, "failed", "release.plan: treatment 1 (drop): columns: no column 'ages'"),
    ],
)
def test_a_plan_that_leaves_nothing_to_judge_releases_nothing(nights, treatment, status, error):
    gpupif.Plan.from_dict({"treatment": [treatment]}).save(nights.folder / "other.toml")
    outcome = nights.run("release.plan=other.toml")
    assert (outcome.exit_code, outcome.gates[1].verdict, outcome.release["status"]) == (3, "unknown", status)
    assert error is None or outcome.release["error"].startswith(error)
    assert (released(nights), charges(nights)) == ({}, [])


def test_a_treated_table_that_breaks_its_plan_is_not_released(nights):
    """The treated table has classes of 8 rows. The gates hold, so that nothing else holds the release back."""
    plan = {**PLAN, "quasi_identifiers": ["age"], "criteria": {"require": ["k>=9"]}}
    gpupif.Plan.from_dict(plan).save(nights.folder / "other.toml")
    outcome = nights.run("release.plan=other.toml", "gates.1.min=8")
    assert [gate.verdict for gate in outcome.gates] == ["passed", "passed"]
    assert (outcome.status, outcome.exit_code, outcome.release["status"]) == (Status.FAILED, 3, "not met")
    assert "release.plan: the treated table does not meet the criteria: 'k>=9' is 8" in outcome.release["error"]
    assert "FAILED: the treated table breaks its plan" in outcome.verdict()[1]
    assert "nothing new was released" in outcome.verdict()[1].lower()
    assert 'errors="1"' in junit(outcome.to_dict())
    assert (released(nights), charges(nights)) == ({}, [])


@pytest.mark.slow
def test_lost_answers_are_not_drawn_for_free(nights, monkeypatch):
    """A crash between the charge and the answers, and a ledger that was put back."""
    before = (nights.folder / "ledger.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(answering, "_answer", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            nights.run()
    lost = nights.run()
    assert (lost.exit_code, len(charges(nights)), released(nights)) == (5, 1, {})
    assert lost.release["error"].startswith("release.ledger: charge 1 of ")
    assert "--set release.draw_again=1" in lost.release["error"]
    assert nights.run("release.draw_again=2").exit_code == 5
    assert nights.run("release.draw_again=1").release["epsilon"] == 0.5
    # The number names that charge alone.
    assert nights.run("release.draw_again=1").release["epsilon"] == 0
    assert len(charges(nights)) == 2
    (nights.folder / "ledger.json").write_bytes(before)
    put_back = nights.run()
    assert "lacks the charge" in put_back.release["error"]
    assert (put_back.exit_code, charges(nights)) == (5, [])


def test_answers_that_could_not_be_published_are_published_by_the_next_run(nights, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(release, "write_text", full)
        assert nights.run().exit_code == 5
    assert nights.run().release["epsilon"] == 0
    assert (len(charges(nights)), set(released(nights))) == (1, set(OUTPUTS))


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment", ["before the charge", "after the charge", "before the answers are kept", "published"]
)
def test_a_night_killed_while_it_releases_is_never_charged_twice_by_itself(nights, monkeypatch, moment):
    """The charge is on the disk before anything is drawn; what is kept is published by the next run."""
    place, name = {
        "before the charge": (answering.Budget, "charge"),
        "after the charge": (answering, "_answer"),
        "before the answers are kept": (release, "write_file"),
        "published": (release, "file_digest"),
    }[moment]

    def kill(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    def run():
        setattr(place, name, kill)
        nights.run()

    assert in_a_copy(run) == -signal.SIGKILL
    left = released(nights)
    charged = len(charges(nights))
    assert charged == (moment != "before the charge")
    outcome = nights.run()
    assert len(charges(nights)) == 1
    if moment in ("after the charge", "before the answers are kept"):
        assert (outcome.exit_code, left, released(nights)) == (5, {}, {})
        assert "a crash lost them" in outcome.release["error"]
    else:
        assert outcome.exit_code == 0
        assert set(released(nights)) == set(OUTPUTS)
        assert left in ({}, released(nights))


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("release.plan=none.toml", "release.plan: .*none.toml: could not be read"),
        ("release.queries=plan.toml", "release.queries: .*plan.toml: expected queries"),
        ("release.ledger=none.json", "release.ledger: there is no .*none.json. gpupif budget .* makes one"),
        ("release.ledger=q.toml", "release.ledger: .*q.toml: line 1 is damaged"),
        ("release.key=none", "release.key: .*none"),
        ("release.answers=a.txt", "release.answers: .*expected an output name ending in .json"),
        ("release.answers=ledger.json", "release.answers: .*ledger.json: the output is the input"),
        ("release.output=table/c.parquet", "release.output: .*c.parquet: the output is inside the input .*table"),
        ("release.output=counts.csv", r"release.tables\[0\].output: names the same file as release.output"),
        ("release.output=none/a.csv", "release.output: .*there is no folder"),
        ("release.tables.0.rounds=3", r"release.tables\[0\].rounds: expected a key"),
        ("release.tables.0.by=[]", r"release.tables\[0\].by: expected at least one column"),
        ("gates.0.treated=true", None),
        ('gates.1={kind="rows", min=1, treated=true}', "gates.1..treated .*: expected it of classes alone"),
    ],
)
def test_a_wrong_release_is_one_line_before_anything_is_read(nights, override, error):
    if error is None:
        assert nights.run(override).gates[0].value == 8
        return
    with pytest.raises(InputError, match=error) as raised:
        nights.run(override)
    assert len(raised.value.args) == 1 or len(str(raised.value).splitlines()) == 1
    assert not nights.state.exists()


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ('[release]\noutput = "a.csv"', "release.plan: expected it beside plan"),
        ('[release]\nqueries = "q.toml"', "release.ledger: expected it beside queries"),
        ('[[release.tables]]\nby = ["age"]\nround = 3\nmethod = "random"\noutput = "c.csv"', "release.key: expected"),
        ('[[gates]]\nkind = "k"\nmin = 1\ntreated = true', "treated .*: expected it with release.plan"),
        ("[release]\ndraw_again = 1", "release.draw_again: expected it with queries only"),
    ],
)
def test_keys_that_lack_others_are_refused(tmp_path, more, error):
    nights = Nights(tmp_path, more)
    with pytest.raises(InputError, match=error):
        nights.run()


@pytest.mark.parametrize(
    ("queries", "tables", "code", "error"),
    [
        ("by = ['ages']", "", 2, "release.queries: query 1: by: no column 'ages' in the table. Did you mean 'age'?"),
        ("", "release.tables.0.by=['ill']", 2, "release.tables[0].by: no column 'ill'"),
        ("", "release.tables.0.width=1", 5, "release.tables[0].width: goes with suppress_below"),
        ("column = 'illness'", "", 5, "release.queries: column 'illness'"),
    ],
)
def test_what_does_not_suit_the_table_spends_nothing(nights, queries, tables, code, error):
    text = QUERIES.replace('by = ["age"]', queries) if "by" in queries else QUERIES
    text = text.replace('column = "age"', queries) if "column" in queries else text
    (nights.folder / "q.toml").write_text(text)
    outcome = nights.run(*([tables] if tables else []))
    said = outcome.error or outcome.release["error"]
    assert (outcome.exit_code, said[: len(error)]) == (code, error)
    assert (charges(nights), released(nights)) == ([], {})


def test_answers_to_a_database_are_charged_once_for_a_watermark(nights):
    nights.run()
    counts = released(nights)["counts.csv"]
    whole = pd.concat([pd.read_parquet(nights.table / f"{name}.parquet") for name in "ab"])
    with duckdb.connect(str(nights.folder / "people.db")) as database:
        database.register("whole", whole)
        database.execute("CREATE TABLE people AS SELECT *, 1 AS version FROM whole")
    query = 'connection = "duckdb:///people.db"\nquery = "SELECT * FROM people"'
    more = RELEASE[RELEASE.index("[release]") :].replace("ledger.json", "other.json")
    nights.config.write_text(CONFIGURATION.replace('path = "table"', query) + more)
    gpupif.Budget(nights.folder / "other.json", epsilon=1)
    with pytest.raises(InputError, match=r"release: a plan treats files"):
        nights.run("run.state=other")
    nights.config.write_text(nights.config.read_text().replace('plan = "plan.toml"\noutput = "treated.csv"\n', ""))
    with pytest.raises(InputError, match=r"release: queries on a database need input.watermark"):
        nights.run("run.state=other")
    found = [nights.run("run.state=other", "input.watermark=version") for _ in range(2)]
    assert [outcome.release["epsilon"] for outcome in found] == [0.5, 0]
    assert released(nights)["counts.csv"] == counts


def test_all_columns_are_read_if_the_release_needs_them(nights):
    settings = gpupif.nightly.load_config(nights.config).settings
    names = ["age", "illness", "person"]
    assert needed_columns(settings, names) == ["age", "illness"]
    assert needed_columns(settings, names, [("release.queries", ["person"])]) == names
    assert needed_columns(settings, names, [("release.plan", None)]) is None
