"""Tables of files treated and written chunk by chunk, within a memory limit; the values are those of `gpupif.treat`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .._version import __version__
from ..errors import InputError
from ..frames.arrow_frame import kept_metadata, with_values, without_unused
from ..io.base import Source
from ..io.checkpoints import BEGUN, FINISHED, Store, identity, publish, work_folder
from ..io.feather_files import GrowingDictionaries, open_feather
from ..io.file_errors import disk_errors
from ..io.formats import FEATHER, PARQUET, written_format
from ..io.read import open_source
from ..io.row_group import RowGroup
from ..io.score_files import MARK, is_file, score_names
from ..io.write import write_groups
from ..out_of_core.chunk_scores import prefetched
from ..out_of_core.file_encoding import READS_PER_CHUNK
from ..out_of_core.memory_budget import CHUNK_SHARE, Budget, plan_reading
from ..out_of_core.output_options import OutputOptions
from ..out_of_core.scoring_run import FORMAT_OF_FILES, check_place, check_same, published_by
from ..results.provenance import describe_files, digest
from ..utils.arrays import GROUP_ROWS
from ..utils.docs import documented_as
from ..utils.private_folder import private_folder
from ..utils.progress import Reporter, announce_compilation
from ..utils.signals import Shield
from .coded_columns import Changes
from .file_table import FileTable
from .plan import Plan
from .plan_run import Treated, apply_plan, find_key, make_record
from .record import TreatmentsRecord
from .steps import StepCounts
from .treat import treat
from .treated_source import TreatedSource

FOLDER = "scores"
# Of a cell that is written: as it is read, treated, waits for others of its group, and is written; measured.
CELL_BYTES = 320
LEAST_ROWS = 1 << 12


class TreatedWriter:
    """Writes files to a folder of the run, each of which appears whole, and publishes them."""

    def __init__(
        self, source: TreatedSource, options: OutputOptions, store: Store, budget: Budget, report: Reporter
    ) -> None:
        self._source = source
        self._options = options
        self._store = store
        self._budget = budget
        self._report = report
        self._folder = store.folder / FOLDER
        self._names = [name for name in source.names if name not in self._held()]
        kinds = [source.nothing().schema.field(name) for name in self._names]
        self._schema = pa.schema(kinds, _metadata(source, set(source.changed)))

    def _held(self) -> Sequence[str]:
        """What the names of folders hold they hold for treated files too."""
        in_folders = not is_file(self._options.output) and self._options.rows_per_file is None
        return self._source.folder_columns if in_folders else ()

    def write(self, counts: Sequence[StepCounts]) -> int:
        """Write the files that are not there yet, and add up what was done; returns how many rows came in."""
        self._ordered = self._ordered_values()
        self._source.counts, self._source.counted = list(counts), True
        self._source.coded = written_format(self._options.output) is PARQUET
        with disk_errors(self._folder):
            private_folder(self._folder)
        self._report.stage("treat and write", self._source.rows, "rows")
        if is_file(self._options.output):
            self._write(self._folder / self._options.output.name, self._pieces(self._source.found.files))
        elif self._options.rows_per_file is None:
            self._write_each(counts)
        else:
            self._write_equal(self._options.rows_per_file)
        return self._source.starts_after(self._source.found.files[-1])[0]

    def _write_each(self, counts: Sequence[StepCounts]) -> None:
        """A file for each file of the table."""
        names = score_names(self._options.output, self._source.found)
        for number, (name, file) in enumerate(zip(names, self._source.found.files, strict=True)):
            mark, file_to_write = f"file-{number:06}", self._folder / name
            done = self._store.done(mark)
            if done is not None and file_to_write.exists():
                self._source.begin(self._source.next_file(file), done["starts"])
                _set(counts, done["counts"])
                continue
            with disk_errors(file_to_write):
                private_folder(file_to_write.parent)
            self._write(file_to_write, self._pieces([file]))
            self._store.mark(mark, {"starts": self._source.starts_after(file), "counts": _stored(counts)})

    def _write_equal(self, rows: int) -> None:
        """Files of so many rows; how many there will be is known when all are written, and gives them their names."""
        pieces = _Rows(self._pieces(self._source.found.files))
        written: list[Path] = []
        while not written or not pieces.ended:
            file_to_write = self._folder / f"part-{len(written):09}.parquet"
            if file_to_write.exists():
                # Of a run that was killed: what is in it is known.
                self._report.advance(sum(piece.num_rows for piece in pieces.take(rows)))
            else:
                self._write(file_to_write, pieces.take(rows))
            written.append(file_to_write)
        width = max(5, len(str(len(written) - 1)))
        self._final = {
            file_to_write: file_to_write.with_name(f"part-{number:0{width}}.parquet")
            for number, file_to_write in enumerate(written)
        }
        if width < 9:
            for file_to_write, name in self._final.items():
                file_to_write.replace(name)

    def _pieces(self, files: Sequence[Path]) -> Iterator[pa.Table]:
        size = self._budget.values_bytes() // READS_PER_CHUNK
        for file in files:
            yield from self._source.read_file(file, self._names, self._rows(), size)

    def _write(self, file_to_write: Path, pieces: Iterator[pa.Table]) -> None:
        with contextlib.closing(prefetched(self._groups(pieces))) as groups:
            write_groups(groups, file_to_write, self._report.advance, describe=self._describe, private=True)

    def _groups(self, pieces: Iterator[pa.Table]) -> Iterator[list[RowGroup]]:
        """Rows that are written together, put together while those before are written."""
        form = written_format(self._options.output)
        growing = GrowingDictionaries(self._schema) if form is FEATHER else None
        some = False
        for piece in _grouped(pieces, self._rows()):
            some = True
            arrays = [
                self._of_what_occurs(self._fitting(column, field), field.name)
                for column, field in zip(piece.columns, self._schema, strict=True)
            ]
            if growing is not None:
                arrays = growing.grown(pa.Table.from_arrays(arrays, schema=self._schema)).columns
            yield [RowGroup(self._schema, arrays)]
        if not some:
            yield [RowGroup.of(self._schema.empty_table())]

    def _fitting(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        """A column in its type; text for Parquet as a dictionary."""
        coded = pa.types.is_dictionary(column.type) and column.type.value_type == field.type
        return column if column.type == field.type or (coded and self._source.coded) else column.cast(field.type)

    def _of_what_occurs(self, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        """Return a column whose dictionary holds values that occur: of ordered ones all that the files will have."""
        return with_values(column, self._ordered[name]) if name in self._ordered else without_unused(column)

    def _ordered_values(self) -> dict[str, pa.Array]:
        """Return the values of ordered categories, in their order, that occur in the treated table, which is read.

        Readers take the order in which values come in a file for that of the categories.
        """
        kinds = {field.name: field.type for field in self._schema}
        names = [name for name, kind in kinds.items() if pa.types.is_dictionary(kind) and kind.ordered]
        occurs: dict[str, dict[Any, bool]] = {name: {} for name in names}
        for file in self._source.found.files if names else ():
            for piece in self._source.read_file(
                file, names, self._rows(), self._budget.values_bytes() // READS_PER_CHUNK
            ):
                for name in names:
                    for chunk in piece.column(name).chunks:
                        own = occurs[name]
                        own |= dict.fromkeys([one for one in chunk.dictionary.to_pylist() if one not in own], False)
                        own |= dict.fromkeys(chunk.unique().dictionary_decode().drop_null().to_pylist(), True)
        return {
            name: pa.array([value for value, there in occurs[name].items() if there], kinds[name].value_type)
            for name in names
        }

    def _rows(self) -> int:
        """Rows that are written at once."""
        most = int(CHUNK_SHARE * self._budget.working) // (CELL_BYTES * max(1, len(self._names)))
        return min(GROUP_ROWS, max(most, LEAST_ROWS))

    def _describe(self) -> dict[bytes, bytes]:
        return {MARK: __version__.encode()}

    def staged(self) -> Path:
        """The file or folder that is to be published."""
        return self._folder / self._options.output.name if is_file(self._options.output) else self._folder

    def publish(self) -> None:
        """Have what is written appear as a whole where it was asked for."""
        output, staged = self._options.output, self.staged()
        if not (output.exists() and identity(output) == identity(staged)):
            publish(staged, output)


class _Rows:
    """Rows of pieces, so many at a time."""

    def __init__(self, pieces: Iterator[pa.Table]) -> None:
        self._pieces = pieces
        self._waiting: pa.Table | None = None
        self.ended = False
        self._fill()

    def _fill(self) -> None:
        while self._waiting is None and not self.ended:
            piece = next(self._pieces, None)
            if piece is None:
                self.ended = True
            elif piece.num_rows:
                self._waiting = piece

    def take(self, rows: int) -> Iterator[pa.Table]:
        """The next ones."""
        while rows and self._waiting is not None:
            piece = self._waiting
            part = piece.slice(0, rows)
            self._waiting = piece.slice(part.num_rows) if part.num_rows < piece.num_rows else None
            rows -= part.num_rows
            self._fill()
            yield part


def _grouped(pieces: Iterator[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Pieces put together to tables of about so many rows."""
    waiting: list[pa.Table] = []
    size = 0
    for piece in pieces:
        if size and size + piece.num_rows > rows:
            yield _one(waiting)
            waiting, size = [], 0
        waiting.append(piece)
        size += piece.num_rows
    if waiting:
        yield _one(waiting)


def _one(pieces: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(pieces).unify_dictionaries()


def _metadata(source: Source, changed: set[str]) -> Any:
    """What files may say of the treated table: what pandas noted of its index, and of columns that did not change."""
    first = source.found.files[0]
    if source.found.format is PARQUET:
        return kept_metadata(pq.read_schema(first), changed, False)
    if source.found.format is FEATHER:
        return kept_metadata(open_feather(first)[0], changed, False)
    return None


def _stored(counts: Sequence[StepCounts]) -> list[Any]:
    """What was done so far, ready for JSON."""
    return [[{str(name): list(found) for name, found in one.changed.items()}, one.rows_removed] for one in counts]


def _set(counts: Sequence[StepCounts], stored: Sequence[Any]) -> None:
    for one, (changed, removed) in zip(counts, stored, strict=True):
        one.changed = {name: Changes(*found) for name, found in changed.items()}
        one.rows_removed = removed


# Of what a run leaves in its folder, which another version may not read as its own.
FORMAT = 1


@documented_as(treat)
def treat_files(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    plan: Any,
    *,
    key: bytes | str | os.PathLike[str] | None = None,
    seed: int | None = None,
    rows_per_file: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> Treated:
    """Treat a table of files of any size, as `treat` does, and write it to files.

    It is read, treated and written piece by piece, within the memory limit that `config` says. What comes out is whole
    or absent, and the files that come in stay as they are.

    Parameters
    ----------
    source:
        The path of a Parquet file or folder of them, CSV (separator found by itself, UTF-8), or Feather, or a pattern
        such as ``data/**/*.csv``.
    output:
        Where the treated table goes: a file name ending in .parquet, .csv or .feather, or a folder, which gets one
        Parquet file for each file of the table.
    rows_per_file:
        Of a folder: files of so many rows instead.
    resume:
        Go on where a run that was killed stopped; where there is none, begin. What is done is kept when such a run
        fails, too.
    overwrite:
        Replace what exists.

    Returns
    -------
    Treated
        ``.table`` is the path of the output, ``.files`` are its files, ``.record`` says what was done.

    Raises
    ------
    InputError, TableReadError
        As `treat`; InputError also for a memory limit that is too low.
    OutputError
        An output that cannot be written where it was asked for; too little space on a disk.

    Examples
    --------
    >>> import tempfile, gpupif
    >>> folder = tempfile.TemporaryDirectory()
    >>> table, output = f"{folder.name}/census.parquet", f"{folder.name}/treated.parquet"
    >>> gpupif.datasets.census(1000).to_parquet(table)
    >>> gpupif.treat_files(table, output, [gpupif.treatments.Drop(["region"])]).record.rows
    1000
    >>> folder.cleanup()

    """
    plan = Plan.of(plan)
    secret = find_key(plan, key, seed)
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"source: expected the path of a file, a folder or a pattern such as 'data/*.parquet', got "
            f"{type(source).__name__}. Treat tables in memory with gpupif.treat."
        )
    options = OutputOptions.from_arguments(output, rows_per_file, resume, overwrite)
    with Reporter() as report, announce_compilation():
        return treat_source(open_source(source), options, plan, secret, report)


def treat_source(source: Source, options: OutputOptions, plan: Any, key: Any, report: Reporter) -> Treated:
    """As `treat_files`, what it was given checked."""
    started = time.perf_counter()
    check_place(source, options)
    output = options.output.resolve()
    work = work_folder(options.output)
    store = Store(work, work if options.temp is None else work_folder(options.output, options.temp))
    keep, shield = False, Shield()
    try:
        settings = _settings(source, options, plan, key)
        finished = published_by(options.output) if options.resume else None
        there = store.open(options.resume, output, finished=finished is not None)
        keep = there
        if there:
            check_same((finished or {}).get("options") or store.done(BEGUN), settings, options.output)
        if there and finished is not None:
            # Killed when all was done but to clean up.
            shield.raise_()
            keep = False
            record = TreatmentsRecord.from_stored(finished["record"])
            return Treated(options.output, record, None, [], _files(options.output))
        if there:
            report.say(f"going on with a run that was ended: {store.progress()}.")
        else:
            if options.resume:
                report.say("there is no run to resume; this one begins anew.")
            store.mark(BEGUN, settings)
            keep = options.resume
        budget = plan_reading(options.memory_limit, len(source.names), "take columns out of the table first")
        table = FileTable(source, store, budget, report, all_typed=not written_as_text(options.output))
        applied = apply_plan(table, plan, key, report)
        writer = TreatedWriter(table.source(), options, store, budget, report)
        rows = writer.write(table.counts)
        described = describe_files(source.found.path, source.stamps)
        record = make_record(plan, applied, table.counts, described, rows, key, started)
        store.mark(FINISHED, {"identity": identity(writer.staged()), "options": settings, "record": record.to_stored()})
        shield.raise_()
        writer.publish()
        keep = False
        return Treated(options.output, record, table, applied, _files(options.output))
    finally:
        with shield:
            store.close(keep)


def written_as_text(output: Path) -> bool:
    """Whether an output has a format of text."""
    return written_format(output).as_text


def _files(output: Path) -> Sequence[Path]:
    return [output] if is_file(output) else sorted(output.rglob("*.parquet"))


def _read_by(plan: Plan) -> dict[str, str]:
    """What the files hold that a plan names, by path."""
    named = [getattr(one, name) for one in plan.treatments for name in one.files]
    named += [one.to_plan() for one in plan.hierarchies.values()]
    paths = [Path(one) for one in named if isinstance(one, str | os.PathLike)]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()}


def _settings(source: Source, options: OutputOptions, plan: Any, key: Any) -> dict[str, Any]:
    """Settings that must be the same when a run is taken up again, by name; the first that is not is named."""
    described = describe_files(source.found.path, source.stamps)
    return {
        "gpupif": __version__,
        FORMAT_OF_FILES: FORMAT,
        "files": {file["path"]: file for file in described["files"]},
        "plan": digest(plan.to_dict()),
        "files of the plan": digest(_read_by(plan)),
        # Not that of records, by which no seeds are told apart.
        "key": None if key is None else digest(key.secret("resume").hex()),
        "temp": None if options.temp is None else str(options.temp.resolve()),
        "rows per file": options.rows_per_file,
    }
