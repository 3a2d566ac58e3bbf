"""A table of which only what changed since the last run is read; it stands wherever a path of a table does."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, Self

import pyarrow as pa

from ...errors import InputError
from ...io.base import Input, Pick
from ...io.file_errors import disk_errors
from ...io.formats import FEATHER
from ...io.paths import find_input
from ...io.read import open_source
from ...out_of_core.budget import plan_reading
from ...out_of_core.duplicate_rows import DuplicateRows, duplicate_rows
from ...out_of_core.kept_source import KeptSource, keep_files, keep_stream
from ...out_of_core.part_store import PartKey, PartStore
from ...utils.config import resources
from ...utils.progress import Reporter
from ...utils.validation import check_exist
from ..outcome import ColumnProfile, InputChanges, InputFile
from .input_files import FileIndex, input_changes
from .kept_values import KeptValues

# What lies in the folder of a state: encoded parts, digests of files, and the values of columns, by run.
PARTS, FILES, VALUES = "parts", "files.kept", "values-{}.kept"
# After which a file of scores is called of a table that came from no file.
STREAM_FILE = Path("query.feather")


class Batches(Protocol):
    """A table that is read in streams, such as the result of a query."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""

    def batches(self) -> Iterable[pa.RecordBatch]:
        """Its rows, read when they are asked for."""


class KeptTable(KeptSource):
    """A table whose encoded parts are kept in a folder; a context manager.

    `gpupif.score`, `score_files`, `risk`, `inspect` and all others take it in place of a path, with the same results.
    It has the columns that were asked for. files: that it is made of. read_files: those whose values were read this
    time. notes: what was found damaged, or could not be used, one sentence each. seconds: by stage.

    Until whoever runs calls `forget_unused` nothing that the last good run left is deleted.
    """

    files: Sequence[InputFile]
    read_files: Sequence[str]
    notes: list[str]
    seconds: dict[str, float]
    _folder: Path
    _store: PartStore
    _keys: Sequence[PartKey]
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
        """The table that a path names, of which only files that have no part in `folder` are read.

        columns: that are needed, or what names them, of those that there are; all by default. separator: of CSV; found
        by itself by default.

        Raises InputError, TableReadError, OutputError.
        """
        started = time.perf_counter()
        source = open_source(find_input(path, separator))
        names = _chosen(source.names, columns)
        notes, store = _open_store(folder)
        digests = FileIndex(folder / FILES, notes.append).digests(source.found.base, source.stamps)
        source.check_unchanged(source.found.files)
        looked_at = time.perf_counter()
        kept = keep_files(source, names, digests, store, report or Reporter(visible=False))
        read = time.perf_counter()
        if kept.other:
            notes.append(
                f"{folder / PARTS}: state of another version of gpupif, or of other columns or options, is not used: "
                f"{kept.other:,} of {len(source.found.files):,} files are read again."
            )
        table = cls(source.found, names, source.nothing().schema, kept.parts, source)
        paths = [file.relative_to(source.found.base).as_posix() for file in source.found.files]
        table.files = [
            InputFile(path, stamp.size, stamp.changed, digest, part.rows)
            for path, stamp, digest, part in zip(paths, source.stamps.values(), digests, kept.parts, strict=True)
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
        batches: Batches,
        name: str,
        folder: Path,
        columns: Sequence[str] | Pick | None = None,
        *,
        key: str | None = None,
        report: Reporter | None = None,
    ) -> Self:
        """A table that is read in streams, once.

        name: as messages call it. key: says that the table is still the same, as a query and the value of its watermark
        do: then it is not read again. Without one it is kept for this run only.

        Raises InputError, OutputError, and what reading it raises.
        """
        started = time.perf_counter()
        names = _chosen(batches.schema.names, columns)
        notes, store = _open_store(folder)
        given = os.urandom(32) if key is None else key.encode()
        content = hashlib.blake2b(given, digest_size=32).hexdigest()
        schema = batches.schema.remove_metadata()
        kept = keep_stream(schema, batches.batches, name, names, content, store, report or Reporter(visible=False))
        read = time.perf_counter()
        table = cls(Input(Path(name), FEATHER, Path(), [STREAM_FILE]), names, schema, kept.parts, None)
        table.files = [InputFile(name, 0, 0, content, table.rows)]
        table.read_files = [name] if kept.read else []
        table._complete(folder, store, () if key is None else kept.keys, notes)
        table.seconds = {"read and encode": read - started, "merge": time.perf_counter() - read}
        return table

    def _complete(self, folder: Path, store: PartStore, keys: Sequence[PartKey], notes: list[str]) -> None:
        self._folder, self._store, self._keys, self.notes = folder, store, keys, notes
        try:
            self.merge()
        except BaseException:
            self.close()
            raise

    @property
    def schema(self) -> dict[str, str]:
        """The types of all columns of the table, as its files have them; of CSV, what the texts of its columns are.

        Of texts that were not read that is not known: null.
        """
        types = {field.name: pa.null() if self.typed_by_values else field.type for field in self.full_schema}
        if self.typed_by_values:
            types |= {name: self.column(name).labels.type for name in self.names}
        return {name: _type_name(kind) for name, kind in types.items()}

    def changes(self, before: Sequence[InputFile]) -> InputChanges:
        """How the files differ from those of another run."""
        return input_changes(before, self.files, self.read_files)

    def profile(self, good: int | None) -> list[ColumnProfile]:
        """All columns of the table, those that were read in numbers.

        good: the number of the last good run, whose values are compared with those of the table; None without one.
        """
        before = None if good is None else KeptValues(self._values_of(good), good, self.notes.append)
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
        """Rows that have the same values in these columns as another row; missing values are equal.

        Raises ColumnNotFoundError, and InputError for a memory limit that is too low.
        """
        check_exist("row_key", columns, self.names)
        memory = plan_reading(resources().memory, len(columns)).working // 2
        return duplicate_rows(self.chunks(columns), memory)

    def store_values(self, number: int) -> None:
        """Put the values of the columns on the disk, as those of a run that may become the last good one."""
        self._store_values(number, number)

    def replace_lost_values(self, number: int) -> None:
        """Where `profile` found those of the last good run lost, have later runs compared with this one instead."""
        if self._lost is not None:
            self._store_values(self._lost, number)

    def _store_values(self, place: int, number: int) -> None:
        KeptValues.store(self._values_of(place), number, [self.column(name) for name in self.names])

    def forget_unused(self, good: int | None) -> None:
        """A run is on record: delete what neither it nor the last good run, of this number, has a use for."""
        self._store.forget_unused(self._keys)
        kept = None if good is None else self._values_of(good)
        with disk_errors(self._folder):
            for file in self._folder.glob(VALUES.format("*")):
                if file != kept:
                    file.unlink(missing_ok=True)

    def _values_of(self, number: int) -> Path:
        return _values_file(self._folder, number)


def verify_state(folder: Path) -> list[str]:
    """What is wrong with the state of a table in a folder, a sentence each; nothing is changed."""
    values = [problem for file in sorted(folder.glob(VALUES.format("*"))) for problem in KeptValues.verify(file)]
    return [*PartStore(folder / PARTS).verify(), *FileIndex(folder / FILES).verify(), *values]


def verify_values(folder: Path, good: int | None) -> list[str]:
    """Whether the values of the last good run, of this number, are gone, as a sentence."""
    if good is None or _values_file(folder, good).exists():
        return []
    return [f"{_values_file(folder, good)}: gone; the next run cannot say which values are new since run {good}."]


def _values_file(folder: Path, number: int) -> Path:
    return folder / VALUES.format(f"{number:06}")


def _open_store(folder: Path) -> tuple[list[str], PartStore]:
    notes: list[str] = []
    store = PartStore(folder / PARTS, notes.append)
    store.prepare()
    return notes, store


def _type_name(kind: pa.DataType) -> str:
    """What a type is called; how values of it lie in memory makes no other one of it."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return str(plain).removeprefix("large_").removesuffix("_view")


def _chosen(names: Sequence[str], columns: Sequence[str] | Pick | None) -> list[str]:
    """The columns that are asked for, in the order of the table; raises ColumnNotFoundError, InputError for none."""
    wanted = columns(names) if callable(columns) else columns
    if wanted is None:
        return list(names)
    check_exist("columns", wanted, names)
    chosen = [name for name in names if name in set(wanted)]
    if not chosen:
        raise InputError("columns: expected at least one column of the table, got none. Name those that are needed.")
    return chosen
