"""Nightly runs on the result of a query: read only where the watermark or the database is another."""

from __future__ import annotations

import contextlib
import json
import sqlite3

import pandas as pd

import gpupif
from gpupif.nightly import nightly_run
from gpupif.nightly.configuration.config import load_config
from gpupif.nightly.exit_codes import Status

CONFIGURATION = """
[input]
connection = "${RISK_DATABASE}"
query = "SELECT age, illness, changed FROM people ORDER BY person"
watermark = "changed"

[score]
columns = ["age", "illness"]
"""
ROWS = [(1, 30, "flu", 1), (2, 30, "cold", 1), (3, 41, "flu", 2), (4, None, "flu", 2)]


def database(file, rows):
    """A new SQLite database, and its URL."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE people (person, age, illness, changed)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    return f"sqlite:///{file.name}"


def change(file, statement):
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()


def test_rows_are_read_if_the_watermark_or_the_database_changed(tmp_path):
    file = tmp_path / "risk.toml"
    file.write_text(CONFIGURATION)
    url = database(tmp_path / "people.db", ROWS)
    another = database(tmp_path / "others.db", [*ROWS, (5, 60, "cold", 2)])

    def night(url):
        return nightly_run.run(load_config(file, environ={"RISK_DATABASE": url}))

    first, second = night(url), night(url)
    assert (first.status, first.rows, len(first.changes.read)) == (Status.PASSED, 4, 1)
    assert (second.rows, second.changes.read, second.summary["columns"]) == (4, [], first.summary["columns"])
    # What the watermark does not tell of is not seen.
    change(tmp_path / "people.db", "DELETE FROM people WHERE person = 2")
    assert night(url).rows == 4
    change(tmp_path / "people.db", "UPDATE people SET changed = 3 WHERE person = 1")
    third = night(url)
    assert (third.rows, len(third.changes.read)) == (3, 1)
    table = pd.DataFrame([row[1:3] for row in ROWS if row[0] != 2], columns=["age", "illness"])
    assert third.summary["columns"] == gpupif.score(table).summary().to_dict()["columns"]
    assert night(another).rows == 5


def test_rows_are_read_if_the_watermark_has_no_value(tmp_path):
    file, people = tmp_path / "risk.toml", tmp_path / "people.db"
    file.write_text(CONFIGURATION)
    config = load_config(file, environ={"RISK_DATABASE": database(people, ROWS)})
    change(people, "UPDATE people SET changed = NULL")
    assert nightly_run.run(config).rows == 4
    change(people, "DELETE FROM people WHERE person = 2")
    assert nightly_run.run(config).rows == 3


def test_an_unreachable_database_breaks_the_run(tmp_path):
    file = tmp_path / "risk.toml"
    file.write_text(CONFIGURATION)
    environ = {"RISK_DATABASE": "postgresql://custodian:secret@127.0.0.1:1/people"}
    broken = nightly_run.run(load_config(file, environ=environ))
    assert (broken.status, broken.exit_code) == (Status.BROKEN, 1)
    assert "could not connect" in broken.error
    assert "127.0.0.1:1" in broken.error
    assert "secret" not in json.dumps(broken.to_dict(), default=str)


def test_a_failing_query_is_refused(tmp_path):
    file, people = tmp_path / "risk.toml", tmp_path / "people.db"
    file.write_text(CONFIGURATION.replace("FROM people", "FROM nobody"))
    environ = {"RISK_DATABASE": database(people, ROWS)}
    refused = nightly_run.run(load_config(file, environ=environ))
    assert (refused.status, refused.exit_code) == (Status.REFUSED, 2)
    assert refused.error.endswith("could not be read: ***.")
    shown = nightly_run.run(load_config(file, ["run.show_values=true"], environ))
    assert "no such table: nobody" in shown.error
