"""A run as rows of the record's tables, and made of them again.

Each table but `runs` has any number of rows of a run, by `place` in order. Numbers with a point stand in columns
without a type, in which SQLite keeps all their bits; NaN, which it does not have, as its name.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...io.documents import parse_json
from ..outcome import (
    ColumnProfile,
    GateResult,
    InputChanges,
    InputFile,
    KeptScores,
    RunOutcome,
    Status,
    Verdict,
)

# What a row of `runs` has, in order, with types. identity: of the table. unchanged: files that are as they were.
# removed: when retention removed all else of the run. digest: of all rows of it, see `RunRows.digest`.
RUN_COLUMNS = {
    # By AUTOINCREMENT SQLite knows the highest one there ever was.
    "number": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "status": "TEXT NOT NULL",
    "started": "TEXT NOT NULL",
    "finished": "TEXT",
    "identity": "TEXT NOT NULL",
    "config_digest": "TEXT NOT NULL",
    "host": "TEXT NOT NULL",
    "device": "TEXT NOT NULL",
    "rows": "INTEGER",
    "distinct_rows": "INTEGER",
    "peak_bytes": "INTEGER",
    "compared_with": "INTEGER",
    "unchanged": "INTEGER",
    "error": "TEXT NOT NULL",
    "kept_path": "TEXT",
    "kept_kind": "TEXT",
    "config": "TEXT",
    "summary": "TEXT",
    "risk": "TEXT",
    "removed": "TEXT",
}
# What rows of the other tables have behind the run and the place.
PART_COLUMNS = {
    "versions": ("package", "version"),
    "files": ("path", "size", "mtime_ns", "digest", "rows"),
    "changes": ("kind", "path", "new_path"),
    "columns": ("name", "type", "distinct_values", "missing", "new_values"),
    "gates": (
        *("name", "kind", "unit", "value", "value_before", "verdict", "why", "column_name", "attacker", "definition"),
    ),
    "limits": ("gate", "name", "value"),
    "stages": ("stage", "seconds"),
    "kept_files": ("name", "size", "digest"),
    "notes": ("note",),
}
# Those that are views on others; see `SCHEMA`.
VIEWS = ("files",)
# What retention leaves of a run.
LEFT = ("number", "status", "started", "finished", "identity", "config_digest", "host", "rows")

# Of most files nothing changes from night to night: what is said of them is kept once.
_OF_FILES = """
CREATE TABLE file_versions (
    version INTEGER PRIMARY KEY, path, size, mtime_ns, digest, rows, UNIQUE (path, size, mtime_ns, digest, rows)
);
CREATE TABLE run_files (
    run INTEGER NOT NULL, place INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (run, place)
) WITHOUT ROWID;
CREATE VIEW files AS
    SELECT run, place, path, size, mtime_ns, digest, rows FROM run_files JOIN file_versions USING (version);
CREATE TRIGGER insert_file INSTEAD OF INSERT ON files BEGIN
    INSERT OR IGNORE INTO file_versions (path, size, mtime_ns, digest, rows)
        VALUES (NEW.path, NEW.size, NEW.mtime_ns, NEW.digest, NEW.rows);
    INSERT INTO run_files SELECT NEW.run, NEW.place, version FROM file_versions
        WHERE (path, size, mtime_ns, digest, rows) = (NEW.path, NEW.size, NEW.mtime_ns, NEW.digest, NEW.rows);
END;
CREATE TRIGGER delete_file INSTEAD OF DELETE ON files BEGIN
    DELETE FROM run_files WHERE run = OLD.run AND place = OLD.place;
END;
"""
HIGHEST_NUMBER = "SELECT seq FROM sqlite_sequence WHERE name = 'runs'"
SET_HIGHEST_NUMBER = ("DELETE FROM sqlite_sequence", "INSERT INTO sqlite_sequence (name, seq) VALUES ('runs', ?)")
FORGET_FILES = "DELETE FROM file_versions WHERE version NOT IN (SELECT version FROM run_files)"
SCHEMA = "\n".join(
    [
        f"CREATE TABLE runs ({', '.join(f'{name} {kind}' for name, kind in RUN_COLUMNS.items())}, digest TEXT);",
        *(
            f"CREATE TABLE {table} (run INTEGER NOT NULL, place INTEGER NOT NULL, {', '.join(columns)}, "
            "PRIMARY KEY (run, place)) WITHOUT ROWID;"
            for table, columns in PART_COLUMNS.items()
            if table not in VIEWS
        ),
        _OF_FILES,
    ]
)

Row = tuple[Any, ...]


class RunRows(NamedTuple):
    """A run as rows. run: that of `runs`, by column, without the digest. parts: those of the other tables, in order."""

    run: Mapping[str, Any]
    parts: Mapping[str, Sequence[Row]]

    @property
    def digest(self) -> str:
        """By which it is seen whether they are as they were written."""
        run = [self.run[name] for name in RUN_COLUMNS]
        parts = [[list(row) for row in self.parts[table]] for table in PART_COLUMNS]
        text = json.dumps([run, parts], default=bytes.hex)
        return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()

    def removed(self, when: str) -> RunRows:
        """What retention leaves of them."""
        left = {name: self.run[name] if name in LEFT else _NOTHING.get(name) for name in RUN_COLUMNS}
        return RunRows(left | {"removed": when}, dict.fromkeys(PART_COLUMNS, ()))


# Of columns that always have a text.
_NOTHING = {"device": "", "error": ""}


def to_rows(outcome: RunOutcome) -> RunRows:
    """A run as rows."""
    changes, kept = outcome.changes, outcome.kept
    run = {
        "number": outcome.number,
        "status": str(outcome.status),
        "identity": _text(outcome.table),
        "unchanged": None if changes is None else _number(changes.unchanged),
        "kept_path": None if kept is None else _text(kept.path),
        "kept_kind": None if kept is None else _text(kept.kind),
        "config": _json(outcome.config),
        "summary": _json(outcome.summary),
        "risk": _json(outcome.risk),
        "removed": None,
        **{name: _text(getattr(outcome, name)) for name in ("started", "finished", "config_digest", "host", "device")},
        **{name: _number(getattr(outcome, name)) for name in ("rows", "distinct_rows", "peak_bytes", "compared_with")},
        "error": _text(outcome.error),
    }
    limits = [(place, *limit) for place, gate in enumerate(outcome.gates) for limit in gate.limits.items()]
    parts: dict[str, Iterable[Row]] = {
        "versions": outcome.versions.items(),
        "files": [(file.path, file.size, file.mtime_ns, file.digest, file.rows) for file in outcome.files],
        "changes": [] if changes is None else _changes(changes),
        "columns": [
            (column.name, column.type, column.distinct_values, column.missing, column.new_values)
            for column in outcome.columns
        ],
        "gates": [
            (
                *(gate.name, gate.kind, gate.unit, gate.value, gate.before),
                *(str(gate.verdict), gate.why, gate.column, gate.attacker, gate.definition),
            )
            for gate in outcome.gates
        ],
        "limits": limits,
        "stages": outcome.seconds.items(),
        "kept_files": [] if kept is None else [(name, *facts) for name, facts in kept.files.items()],
        "notes": [(note,) for note in outcome.notes],
    }
    return RunRows(run, {table: [tuple(map(_plain, row)) for row in rows] for table, rows in parts.items()})


def from_rows(rows: RunRows) -> RunOutcome:
    """The run that `to_rows` made rows of."""
    run = {name: from_text(value) for name, value in rows.run.items()}
    parts = {table: [tuple(map(from_text, row)) for row in found] for table, found in rows.parts.items()}
    kept = None
    if run["kept_path"] is not None:
        files = {name: (size, digest) for name, size, digest in parts["kept_files"]}
        kept = KeptScores(run["kept_path"], run["kept_kind"], files)
    return RunOutcome(
        number=run["number"],
        status=Status(run["status"]),
        started=run["started"],
        finished=run["finished"],
        table=run["identity"],
        config=parse_json(run["config"]),
        config_digest=run["config_digest"],
        versions=dict(parts["versions"]),
        host=run["host"],
        device=run["device"],
        rows=run["rows"],
        distinct_rows=run["distinct_rows"],
        files=tuple(InputFile(*row) for row in parts["files"]),
        changes=None if run["unchanged"] is None else _from_changes(parts["changes"], run["unchanged"]),
        columns=tuple(ColumnProfile(*row) for row in parts["columns"]),
        gates=gates_of(rows),
        summary=_from_json(run["summary"]),
        risk=_from_json(run["risk"]),
        kept=kept,
        seconds={stage: float(seconds) for stage, seconds in parts["stages"]},
        peak_bytes=run["peak_bytes"],
        compared_with=run["compared_with"],
        notes=tuple(note for (note,) in parts["notes"]),
        error=run["error"],
    )


def gates_of(rows: RunRows) -> tuple[GateResult, ...]:
    """Return the gates of a run."""
    gates, limits = ([tuple(map(from_text, row)) for row in rows.parts[table]] for table in ("gates", "limits"))
    return tuple(_gate(row, place, limits) for place, row in enumerate(gates))


def _gate(row: Row, place: int, limits: Sequence[Row]) -> GateResult:
    name, kind, unit, value, before, verdict, *where = row
    own = {key: _from_number(limit) for gate, key, limit in limits if gate == place}
    return GateResult(name, kind, unit, _from_number(value), _from_number(before), own, Verdict(verdict), *where)


def _changes(changes: InputChanges) -> list[Row]:
    several = {"added": changes.added, "removed": changes.removed, "changed": changes.changed, "read": changes.read}
    single = [(kind, path, None) for kind, paths in several.items() for path in paths]
    return [*single, *(("renamed", *names) for names in changes.renamed)]


def _from_changes(rows: Sequence[Row], unchanged: int) -> InputChanges:
    single = {
        kind: tuple(path for one, path, _ in rows if one == kind) for kind in ("added", "removed", "changed", "read")
    }
    renamed = tuple((path, new) for kind, path, new in rows if kind == "renamed")
    return InputChanges(renamed=renamed, unchanged=unchanged, **single)


def _plain(value: Any) -> Any:
    """A value as SQLite has it."""
    return _text(value) if isinstance(value, str) else _number(value)


def _text(text: str | None) -> str | bytes | None:
    """A text; one that UTF-8 does not hold, such as some names of files, as bytes."""
    if text is None:
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")
    return text


def from_text(value: Any) -> Any:
    """A value of the record, its text as it was before `to_rows`."""
    return value.decode(errors="surrogatepass") if isinstance(value, bytes) else value


def _number(value: Any) -> Any:
    """A number with all its bits; NumPy's as Python's."""
    value = value.item() if hasattr(value, "item") else value
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _from_number(value: Any) -> Any:
    # Text is what stands for NaN.
    return float(value) if isinstance(value, str) else value


def _json(document: Any) -> str | None:
    from ...utils.display import json_value

    return None if document is None else json.dumps(document, default=json_value)


def _from_json(text: str | None) -> Any:
    return None if text is None else parse_json(text)
