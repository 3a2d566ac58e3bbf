"""A run as one JSON document, the tables of the record that hold the documents, and the views that show them as rows.

The files of a table rarely change from night to night, so the record keeps the facts of each file once
(`file_versions`), and for each run the numbers of these facts (`run_files`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Self

from ...io.documents import parse_json
from ...utils.display import json_value
from ..exit_codes import Status
from ..run_outcome import ColumnProfile, GateResult, KeptScores, RunOutcome, Verdict
from ..table.table_changes import InputChanges, InputFile

# The fields of a run that stay when retention removes it.
STAYING = ("number", "status", "started", "finished", "table", "config_digest", "host", "rows")


class RunDocument(NamedTuple):
    """A run as the record holds it.

    facts: the fields of a `RunOutcome`, except its files, as plain values; a removed run has those of `STAYING`, and
    `removed`, the time of its removal. text: the facts as JSON. files: each file of the table as JSON, in order.
    """

    facts: Mapping[str, Any]
    text: str
    files: Sequence[str] = ()

    @classmethod
    def from_outcome(cls, outcome: RunOutcome) -> Self:
        """Return the document of a run."""
        facts = asdict(outcome)
        for gate in facts["gates"]:
            # SQLite's JSON has no NaN and no infinity: they become texts, which `float` reads.
            gate["limits"] = {name: finite_or_text(limit) for name, limit in gate["limits"].items()}
            gate |= {name: finite_or_text(gate[name]) for name in ("value", "before")}
        return cls.from_facts(facts, facts.pop("files"))

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any], files: Sequence[Mapping[str, Any]] = ()) -> Self:
        """Return the document with these plain values."""
        return cls(facts, _json(facts), [_json(file) for file in files])

    @classmethod
    def from_texts(cls, text: str, files: Sequence[str]) -> Self:
        """Return the document that the record holds as these texts. Raises ValueError if they are no JSON."""
        return cls(parse_json(text), text, files)

    @property
    def row(self) -> tuple[Any, ...]:
        """The columns of the table `documents`, except the digest: those to search by, then the text."""
        kept = self.facts.get("kept")
        searched = [self.facts.get(name) for name in ("number", "status", "started", "removed")]
        return (*searched, None if kept is None else kept["path"], self.text)

    @property
    def digest(self) -> str:
        """BLAKE2b of all columns and files, in hexadecimal; it tells whether the run is as it was recorded."""
        return hashlib.blake2b(json.dumps([self.row, *self.files]).encode(), digest_size=32).hexdigest()

    @property
    def gates(self) -> tuple[GateResult, ...]:
        """The gates of the run."""
        return tuple(_gate(gate) for gate in self.facts.get("gates", ()))

    def outcome(self) -> RunOutcome:
        """Return the run; it must not be a removed one."""
        facts = dict(self.facts)
        if facts["changes"] is not None:
            changes = dict(facts["changes"])
            lists = {way: tuple(paths) for way, paths in changes.items() if isinstance(paths, list)}
            facts["changes"] = InputChanges(**changes | lists | {"renamed": tuple(map(tuple, changes["renamed"]))})
        if facts["kept"] is not None:
            files = {name: tuple(file) for name, file in facts["kept"]["files"].items()}
            facts["kept"] = KeptScores(**facts["kept"] | {"files": files})
        facts |= {
            "status": Status(facts["status"]),
            "files": tuple(InputFile(**parse_json(file)) for file in self.files),
            "columns": tuple(ColumnProfile(**column) for column in facts["columns"]),
            "gates": self.gates,
            "seconds": {stage: float(seconds) for stage, seconds in facts["seconds"].items()},
            "notes": tuple(facts["notes"]),
        }
        return RunOutcome(**facts)

    def removed(self, when: str) -> Self:
        """Return what stays of the run when retention removes it. when: the time, in text."""
        return self.from_facts({name: self.facts[name] for name in STAYING} | {"removed": when})


def finite_or_text(number: Any) -> Any:
    """Return a number, or its name if it is not finite."""
    number = number.item() if hasattr(number, "item") else number
    if not isinstance(number, float) or math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else str(number)


def _gate(facts: Mapping[str, Any]) -> GateResult:
    numbers = {name: _number(facts[name]) for name in ("value", "before")}
    limits = {name: _number(limit) for name, limit in facts["limits"].items()}
    return GateResult(**{**facts, **numbers, "limits": limits, "verdict": Verdict(facts["verdict"])})


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


def _json(document: Any) -> str:
    return json.dumps(document, default=json_value)


def _fields(source: str, *names: str, **paths: str) -> str:
    """Return the columns of a view: fields of a JSON text under their own names, or by path under other names."""
    by_name = {name: f"$.{name}" for name in names} | paths
    return ", ".join(f"json_extract({source}, '{path}') AS {name}" for name, path in by_name.items())


# The number of the run, and the place of an entry of a JSON object, which has no number of its own.
_RUN_AND_PLACE = "number AS run, row_number() OVER (PARTITION BY number ORDER BY entry.id) - 1 AS place"
# The views, which show the documents as rows: `run` is the number of the run, `place` the order.
VIEWS = {
    "runs": f"""
        SELECT number, status, started,
            {_fields("document", "finished", identity="$.table")},
            {_fields("document", "config_digest", "host", "device", "rows", "distinct_rows", "peak_bytes")},
            {_fields("document", "compared_with", unchanged="$.changes.unchanged")},
            ifnull(json_extract(document, '$.error'), '') AS error,
            kept_path, {_fields("document", kept_kind="$.kept.kind")},
            {_fields("document", "config", "summary", "risk")},
            removed, digest
        FROM documents""",
    "versions": f"""
        SELECT {_RUN_AND_PLACE}, entry.key AS package, entry.value AS version
        FROM documents, json_each(document, '$.versions') AS entry""",
    "files": f"""
        SELECT run, place, {_fields("file", "path", "size", "mtime_ns", "digest", "rows")}
        FROM run_files JOIN file_versions USING (version)""",
    "changes": """
        SELECT number AS run, row_number() OVER (PARTITION BY number ORDER BY ways.id, entry.id) - 1 AS place,
            ways.key AS kind,
            CASE entry.type WHEN 'array' THEN json_extract(entry.value, '$[0]') ELSE entry.value END AS path,
            CASE entry.type WHEN 'array' THEN json_extract(entry.value, '$[1]') END AS new_path
        FROM documents, json_each(document, '$.changes') AS ways, json_each(document, '$.changes.' || ways.key) AS entry
        WHERE ways.type = 'array'""",
    "columns": f"""
        SELECT number AS run, key AS place,
            {_fields("value", "name", "type", "distinct_values", "missing", "new_values")}
        FROM documents, json_each(document, '$.columns')""",
    "gates": f"""
        SELECT number AS run, key AS place,
            {_fields("entry.value", "name", "kind", "unit", "value", value_before="$.before")},
            {_fields("entry.value", "verdict", "why", column_name="$.column")},
            {_fields("entry.value", "attacker", "definition")}
        FROM documents, json_each(document, '$.gates') AS entry""",
    "limits": """
        SELECT number AS run, row_number() OVER (PARTITION BY number ORDER BY gate.id, entry.id) - 1 AS place,
            gate.key AS gate, entry.key AS name, entry.value AS value
        FROM documents, json_each(document, '$.gates') AS gate, json_each(gate.value, '$.limits') AS entry""",
    "stages": f"""
        SELECT {_RUN_AND_PLACE}, entry.key AS stage, entry.value AS seconds
        FROM documents, json_each(document, '$.seconds') AS entry""",
    "kept_files": f"""
        SELECT {_RUN_AND_PLACE}, entry.key AS name, {_fields("entry.value", size="$[0]", digest="$[1]")}
        FROM documents, json_each(document, '$.kept.files') AS entry""",
    "notes": """
        SELECT number AS run, key AS place, value AS note FROM documents, json_each(document, '$.notes')""",
}
# All statements that make version 2 of the record, see `version_1` for version 1. The columns beside a document repeat
# what the record searches by.
SCHEMA = (
    """CREATE TABLE documents (
        number INTEGER PRIMARY KEY AUTOINCREMENT, status TEXT NOT NULL, started TEXT NOT NULL, removed TEXT,
        kept_path TEXT, document TEXT NOT NULL, digest TEXT
    )""",
    "CREATE TABLE file_versions (version INTEGER PRIMARY KEY, file TEXT NOT NULL UNIQUE)",
    """CREATE TABLE run_files (
        run INTEGER NOT NULL, place INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (run, place)
    ) WITHOUT ROWID""",
    *(f"CREATE VIEW {name} AS {query}" for name, query in VIEWS.items()),
)
