"""The table of a run. Only what changed since the last run is read; the table is taken in place of a path."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import pyarrow as pa

from ...errors import InputError
from ...io.base import Input, Pick
from ...io.databases.base import QueryTable
from ...io.databases.open import open_query
from ...io.file_errors import denied, disk_errors
from ...io.formats import FEATHER
from ...io.paths import find_input
from ...io.read import open_source
from ...io.section_file import DamagedFileError, checked_facts
from ...out_of_core.duplicate_rows import DuplicateRows, duplicate_rows
from ...out_of_core.kept_file_store import KeptFileKey, KeptFileStore
from ...out_of_core.kept_source import KeptSource, keep_files, keep_stream
from ...out_of_core.memory_budget import plan_reading
from ...utils.config import resources
from ...utils.progress import Reporter
from ...utils.validation import check_exist
from ..configuration.config import Config
from ..configuration.mistakes import key_of
from ..configuration.settings import Settings, columns_known
from ..run_outcome import ColumnProfile
from .file_digests import file_digests
from .kept_values import KeptValues
from .table_changes import InputFile

# The folder of kept files, the file of digests, and the files of the values of columns by run, in a state folder.
PARTS, FILES, VALUES = "parts", "files.kept", "values-{}.kept"
# The name of a file of scores for a table that came from no file.
STREAM_FILE = Path("query.feather")


class KeptTable(KeptSource):
    """A table whose encoded rows are in kept files of a folder; a context manager.

    `gpupif.score`, `score_files`, `risk`, `inspect` and others take it in place of a path, with the same results. It
    has the columns that were asked for. files: the files of the table. read_files: the files that were read this time.
    notes: a sentence for each thing that was damaged or could not be used. seconds: by stage.

    Nothing that the last good run left is deleted before `forget_unused` is called.
    """

    files: Sequence[InputFile]
    read_files: Sequence[str]
    notes: list[str]
    seconds: dict[str, float]
    _folder: Path
    _store: KeptFileStore
    _keys: Sequence[KeptFileKey]
    # The last good run, where its values were looked for and not found.
    _lost: int | None = None

    @classmethod
    def of_files(
        cls,
        path: str | os.PathLike[str],
        folder: Path,
        columns: Sequence[str] | Pick | None = None,
        *,
        separator: str | None = None,
        report: Reporter | None = None,
    ) -> Self:
        """Return the table that a path names. Only files without a kept file in `folder` are read.

        columns: the needed columns, or a function that picks them from all names; all by default. separator: of CSV;
        found by itself by default.

        Raises InputError, TableReadError, OutputError.
        """
        started = time.perf_counter()
        source = open_source(find_input(path, separator))
        names = _chosen(source.names, columns)
        notes: list[str] = []
        store = KeptFileStore(folder / PARTS, notes.append)
        store.prepare()
        digests = file_digests(folder / FILES, source.input_files.base, source.stamps, notes.append)
        source.check_unchanged(source.input_files.files)
        looked_at = time.perf_counter()
        kept = keep_files(source, names, digests, store, report or Reporter(visible=False))
        read = time.perf_counter()
        if kept.other:
            notes.append(
                f"{folder / PARTS}: state of another version of gpupif, or of other columns or options, is not used: "
                f"{kept.other:,} of {len(source.input_files.files):,} files are read again."
            )
        table = cls(source.input_files, names, source.nothing().schema, kept.files, source)
        paths = [file.relative_to(source.input_files.base).as_posix() for file in source.input_files.files]
        table.files = [
            InputFile(path, stamp.size, stamp.changed, digest, file.rows)
            for path, stamp, digest, file in zip(paths, source.stamps.values(), digests, kept.files, strict=True)
        ]
        table.read_files = [paths[number] for number in kept.read]
        table._complete(folder, store, kept.keys, notes)
        table.seconds = {
            "look at files": looked_at - started,
            "read and encode": read - looked_at,
            "merge": time.perf_counter() - read,
        }
        return table

    @classmethod
    def of_batches(
        cls,
        batches: QueryTable,
        name: str,
        folder: Path,
        columns: Sequence[str] | Pick | None = None,
        *,
        key: str | None = None,
        report: Reporter | None = None,
    ) -> Self:
        """Return a table that is read in streams, once.

        name: its name in messages. key: a text that stays the same as long as the table does, such as a query and the
        value of its watermark: then the table is not read again. Without a key it is kept for this run only.

        Raises InputError, OutputError, and what reading it raises.
        """
        started = time.perf_counter()
        names = _chosen(batches.schema.names, columns)
        notes: list[str] = []
        store = KeptFileStore(folder / PARTS, notes.append)
        store.prepare()
        given = os.urandom(32) if key is None else key.encode()
        content = hashlib.blake2b(given, digest_size=32).hexdigest()
        schema = batches.schema.remove_metadata()
        kept = keep_stream(schema, batches.batches, name, names, content, store, report or Reporter(visible=False))
        read = time.perf_counter()
        table = cls(Input(Path(name), FEATHER, Path(), [STREAM_FILE]), names, schema, kept.files, None)
        table.files = [InputFile(name, 0, 0, content, table.rows)]
        table.read_files = [name] if kept.read else []
        table._complete(folder, store, () if key is None else kept.keys, notes)
        table.seconds = {"read and encode": read - started, "merge": time.perf_counter() - read}
        return table

    def _complete(self, folder: Path, store: KeptFileStore, keys: Sequence[KeptFileKey], notes: list[str]) -> None:
        self._folder, self._store, self._keys, self.notes = folder, store, keys, notes
        try:
            self.merge()
        except BaseException:
            self.close()
            raise

    @property
    def schema(self) -> dict[str, str]:
        """The types of all columns of the table, as its files have them; of CSV, the types that its texts stand for.

        The type of texts that were not read is not known: null.
        """
        types = {field.name: pa.null() if self.typed_by_values else field.type for field in self.full_schema}
        if self.typed_by_values:
            types |= {name: self.column(name).labels.type for name in self.names}
        # A type has one name, however its values are held in memory.
        plain = {name: kind.value_type if pa.types.is_dictionary(kind) else kind for name, kind in types.items()}
        return {name: str(kind).removeprefix("large_").removesuffix("_view") for name, kind in plain.items()}

    def profile(self, good: int | None) -> list[ColumnProfile]:
        """Return the profiles of all columns of the table, with numbers for the columns that were read.

        good: the number of the last good run, whose values are compared with those of the table; None without one.
        """
        before = None if good is None else KeptValues(_values_file(self._folder, good), good, self.notes.append)
        self._lost = good if before is not None and before.are_lost else None
        found = []
        for name, kind in self.schema.items():
            profile = ColumnProfile(name, kind)
            if name in self.names:
                column = self.column(name)
                new = None if before is None else before.count_new(column)
                profile = ColumnProfile(name, kind, len(column.labels), column.missing_rows, new)
            found.append(profile)
        return found

    def duplicate_keys(self, columns: Sequence[str]) -> DuplicateRows:
        """Return rows that have the same values in these columns as another row; missing values are equal.

        Raises ColumnNotFoundError, and InputError for a memory limit that is too low.
        """
        check_exist("row_key", columns, self.names)
        memory = plan_reading(resources().memory, len(columns)).working // 2
        return duplicate_rows(self.chunks(columns), memory)

    def store_values(self, number: int) -> None:
        """Keep the values of the columns as those of a run that may become the last good one."""
        self._store_values(number, number)

    def replace_lost_values(self, number: int) -> None:
        """Keep the values in place of those of the last good run, if `profile` found these lost."""
        if self._lost is not None:
            self._store_values(self._lost, number)

    def _store_values(self, place: int, number: int) -> None:
        KeptValues.store(_values_file(self._folder, place), number, [self.column(name) for name in self.names])

    def forget_unused(self, good: int | None) -> None:
        """Delete kept files and values that neither this run, now on record, nor the last good run `good` uses."""
        self._store.forget_unused(self._keys)
        kept = None if good is None else _values_file(self._folder, good)
        with disk_errors(self._folder):
            for file in self._folder.glob(VALUES.format("*")):
                if file != kept:
                    file.unlink(missing_ok=True)


def verify_state(folder: Path) -> list[str]:
    """Return a sentence for each problem of the state of a table in a folder; nothing is changed."""
    files = dict.fromkeys(sorted(folder.glob(VALUES.format("*"))), "cannot say which values are new.")
    problems = KeptFileStore(folder / PARTS).verify()
    for file, consequence in ({folder / FILES: "hashes all files again."} | files).items():
        try:
            checked_facts(file)
        except FileNotFoundError:
            continue
        except DamagedFileError:
            problems.append(f"{file}: damaged; the next run {consequence}")
        except OSError as error:
            problems.append(str(denied(file, error)))
    return problems


def verify_values(folder: Path, good: int | None) -> list[str]:
    """Return a sentence if the values of the last good run, of this number, are gone."""
    if good is None or _values_file(folder, good).exists():
        return []
    return [f"{_values_file(folder, good)}: gone; the next run cannot say which values are new since run {good}."]


def _values_file(folder: Path, number: int) -> Path:
    return folder / VALUES.format(f"{number:06}")


def _chosen(names: Sequence[str], columns: Sequence[str] | Pick | None) -> list[str]:
    """Return the columns that are asked for, in the order of the table. Raises InputError, ColumnNotFoundError."""
    wanted = columns(names) if callable(columns) else columns
    if wanted is None:
        return list(names)
    check_exist("columns", wanted, names)
    chosen = [name for name in names if name in set(wanted)]
    if not chosen:
        raise InputError("columns: expected at least one column of the table, got none. Name those that are needed.")
    return chosen


def table_identity(config: Config) -> str:
    """Return the identity of the table, without secrets: its path, or the database and the query."""
    given = config.document["input"]
    if config.table is not None:
        # A path from the environment may be secret: the reference is shown.
        return given["path"] if "${" in given["path"] else str(config.table)
    return f"{given['connection']}: {given['query']}"


@contextlib.contextmanager
def opened_table(
    config: Config, state: Path, report: Reporter, released: Sequence[tuple[str, Sequence[str] | None]] = ()
) -> Iterator[KeptTable]:
    """Open the table; only what changed is read. released: see `needed_columns`.

    Raises InputError, TableReadError, OutputError.
    """
    given, columns = config.settings.input, partial(needed_columns, config.settings, released=released)
    if config.table is not None:
        with KeptTable.of_files(config.table, state, columns, separator=given.separator, report=report) as table:
            yield table
        return
    assert given.connection is not None
    assert given.query is not None
    with open_query(given.connection, given.query, given.driver, config.folder) as result:
        mark = None if given.watermark is None else result.watermark(given.watermark)
        key = None if mark is None else f"{result.identity}\n{given.watermark}\n{mark}"
        name = f"query on {config.document['input']['connection']}"
        kept = KeptTable.of_batches(result, name, state, columns, key=key, report=report)
    with kept as table:
        yield table


def needed_columns(
    settings: Settings, names: Sequence[str], released: Sequence[tuple[str, Sequence[str] | None]] = ()
) -> list[str] | None:
    """Return the columns, of `names`, that are scored, known, released, or named by another key; None for all.

    released: the columns that each key of a release needs; None for all. Raises ColumnNotFoundError, with the key of
    the configuration, for one that is not there.
    """
    named = [*_named_columns(settings), *released]
    for key, columns in named:
        check_exist(key, columns or (), names)
    if settings.score.columns is None or None in dict(released).values():
        return None
    wanted = {column for _, columns in named for column in columns or ()}
    return [name for name in names if name in wanted]


def _named_columns(settings: Settings) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the columns that each key of a configuration names."""
    score, risk = settings.score, settings.risk
    yield "input.row_key", settings.input.row_key
    yield "score.columns", score.columns or ()
    yield "score.known", columns_known(score.known)
    for name, known in (score.attackers or {}).items():
        yield key_of(("score", "attackers", name), {}), columns_known(known)
    yield "score.weights", () if score.weights is None else (score.weights,)
    yield "score.distances", list(score.distances)
    yield "risk.quasi_identifiers", risk.quasi_identifiers
    yield "risk.sensitive", risk.sensitive
    yield "risk.household", () if risk.household is None else (risk.household,)
    gates = {"gates": [gate.model_dump() for gate in settings.gates]}
    for number, gate in enumerate(settings.gates):
        yield key_of(("gates", number, "column"), gates), () if gate.column is None else (gate.column,)
