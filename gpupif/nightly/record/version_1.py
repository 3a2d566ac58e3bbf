"""Records of version 1, which had a table for each list of a run: read as the documents of today."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from ...io.documents import parse_json
from .run_documents import STAYING, RunDocument, finite_or_text

# The tables beside `runs`, in the order in which their rows went into the digest of a run.
LISTS = ("versions", "files", "changes", "columns", "gates", "limits", "stages", "kept_files", "notes")
# All statements that clear version 1 for the tables and views of today.
CLEAR = (
    "DROP VIEW files",
    *(f"DROP TABLE {table}" for table in ("runs", "file_versions", "run_files", *LISTS) if table != "files"),
)
# The columns of `runs` that are fields of a run, under the same name.
SAME = (
    *("number", "status", "started", "finished", "config_digest", "host", "device"),
    *("rows", "distinct_rows", "peak_bytes", "compared_with", "error"),
)


def read_document(connection: sqlite3.Connection, number: int) -> tuple[RunDocument, bool] | None:
    """Return a run as a document, and whether it is as it was recorded; None if it is not there.

    Raises errors of SQLite, and ValueError, KeyError or TypeError for values that no run has.
    """
    found = list(_rows(connection, "SELECT * FROM runs WHERE number = ?", number))
    if not found:
        return None
    run = found[0]
    digest = run.pop("digest")
    lists = {
        table: list(_rows(connection, f"SELECT * FROM {table} WHERE run = ? ORDER BY place", number)) for table in LISTS
    }
    # The run and the place of a row, its first two columns, were in no digest.
    rows = [[[*row.values()][2:] for row in lists[table]] for table in LISTS]
    text = json.dumps([[*run.values()], rows], default=bytes.hex)
    is_whole = hashlib.blake2b(text.encode(), digest_size=32).hexdigest() == digest
    return _document(_decoded(run), {table: [*map(_decoded, rows)] for table, rows in lists.items()}), is_whole


def _rows(connection: sqlite3.Connection, query: str, number: int) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(query, (number,))
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def _decoded(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose texts are texts: version 1 kept text that UTF-8 does not hold as bytes."""
    return {
        name: value.decode(errors="surrogatepass") if isinstance(value, bytes) else value for name, value in row.items()
    }


def _document(run: dict[str, Any], lists: dict[str, list[dict[str, Any]]]) -> RunDocument:
    facts = {name: run[name] for name in SAME} | {"table": run["identity"]}
    if run["removed"] is not None:
        return RunDocument.from_facts({name: facts[name] for name in STAYING} | {"removed": run["removed"]})
    facts |= {name: None if run[name] is None else parse_json(run[name]) for name in ("config", "summary", "risk")}
    facts |= {
        "versions": {row["package"]: row["version"] for row in lists["versions"]},
        "changes": None,
        "columns": [_without(row, "run", "place") for row in lists["columns"]],
        "gates": [_gate(row, lists["limits"]) for row in lists["gates"]],
        "kept": None,
        "seconds": {row["stage"]: float(row["seconds"]) for row in lists["stages"]},
        "notes": [row["note"] for row in lists["notes"]],
    }
    if run["unchanged"] is not None:
        ways: dict[str, Any] = {way: [] for way in ("added", "removed", "changed", "renamed", "read")}
        for row in lists["changes"]:
            ways[row["kind"]].append([row["path"], row["new_path"]] if row["kind"] == "renamed" else row["path"])
        facts["changes"] = ways | {"unchanged": run["unchanged"]}
    if run["kept_path"] is not None:
        files = {row["name"]: [row["size"], row["digest"]] for row in lists["kept_files"]}
        facts["kept"] = {"path": run["kept_path"], "kind": run["kept_kind"], "files": files}
    return RunDocument.from_facts(facts, [_without(row, "run", "place") for row in lists["files"]])


def _gate(row: dict[str, Any], limits: list[dict[str, Any]]) -> dict[str, Any]:
    gate = _without(row, "run", "place", "value_before", "column_name")
    own = {limit["name"]: finite_or_text(limit["value"]) for limit in limits if limit["gate"] == row["place"]}
    gate |= {"before": row["value_before"], "column": row["column_name"], "limits": own}
    return gate | {name: finite_or_text(gate[name]) for name in ("value", "before")}


def _without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
