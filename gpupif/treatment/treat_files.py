"""The function `treat_files`: treat tables of files within a memory limit, with the values of `gpupif.treat`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .._version import __version__
from ..attack.population import Population
from ..errors import InputError
from ..frames.arrow_frame import kept_metadata, with_values, without_unused
from ..io.base import Source
from ..io.checkpoints import FINISHED, Store, identity, publish
from ..io.feather_files import GrowingDictionaries, open_feather
from ..io.file_errors import ELSEWHERE, disk_errors
from ..io.formats import FEATHER, PARQUET, written_format
from ..io.read import in_chunks, open_source
from ..io.row_group import RowGroup
from ..io.run_files import check_apart
from ..io.score_files import MARK, is_file, score_names
from ..io.temporary_folder import temporary_folder
from ..io.write import write_groups
from ..out_of_core.chunk_readers import prefetched
from ..out_of_core.memory_budget import CHUNK_SHARE, READS_PER_CHUNK, Budget, plan_reading
from ..out_of_core.output_options import OutputOptions
from ..out_of_core.scoring_run import FORMAT_OF_FILES, check_place, open_run
from ..results.provenance import describe_files, digest
from ..utils.arrays import GROUP_ROWS
from ..utils.docs import documented_as
from ..utils.private_folder import private_folder
from ..utils.progress import Reporter, announce_compilation
from .coded_columns import Changes
from .file_table import FileTable, TreatedSource
from .plan import Plan
from .plan_run import Treated, apply_plan, find_key, make_record
from .random.key import Key
from .record import TreatmentsRecord
from .steps import StepCounts
from .treat import treat
from .treated_check import check_treated, refuse_unmet

FOLDER = "scores"
# Bytes of memory for each cell while it is read, treated, collected for a row group and written. Measured.
CELL_BYTES = 320
LEAST_ROWS = 1 << 12


class TreatedWriter:
    """The writer of a treated table: it writes whole files to the staging folder, and publishes them."""

    def __init__(
        self, source: TreatedSource, options: OutputOptions, store: Store, budget: Budget, report: Reporter
    ) -> None:
        self._source = source
        self._options = options
        self._store = store
        self._budget = budget
        self._report = report
        self._folder = store.folder / FOLDER
        self._names = [name for name in source.names if name not in self._folder_columns()]
        schema = source.nothing().schema
        kinds = [schema.field(name) for name in self._names]
        self._schema = pa.schema(kinds, _metadata(source, set(source.changed)))

    def _folder_columns(self) -> Sequence[str]:
        """Return the columns that the names of output folders hold: files do not repeat them."""
        in_folders = not is_file(self._options.output) and self._options.rows_per_file is None
        return self._source.folder_columns if in_folders else ()

    def write(self, counts: Sequence[StepCounts]) -> int:
        """Write the files that a killed run has not finished, and add changes to `counts`; return the original rows."""
        self._ordered = self._ordered_values()
        self._source.counts, self._source.counted = list(counts), True
        self._source.coded = written_format(self._options.output) is PARQUET
        with disk_errors(self._folder, ELSEWHERE):
            private_folder(self._folder)
        self._report.stage("treat and write", self._source.rows, "rows")
        if is_file(self._options.output):
            self._write(self._folder / self._options.output.name, self._chunks(self._source.input_files.files))
        elif self._options.rows_per_file is None:
            self._write_each(counts)
        else:
            self._write_equal(self._options.rows_per_file)
        return self._source.starts_after(self._source.input_files.files[-1])[0]

    def _write_each(self, counts: Sequence[StepCounts]) -> None:
        """Write a file for each file of the table."""
        names = score_names(self._options.output, self._source.input_files)
        for number, (name, file) in enumerate(zip(names, self._source.input_files.files, strict=True)):
            mark, file_to_write = f"file-{number:06}", self._folder / name
            done = self._store.done(mark)
            if done is not None and file_to_write.exists():
                self._source.begin(self._source.next_file(file), done["starts"])
                _restore_counts(counts, done["counts"])
                continue
            with disk_errors(file_to_write, ELSEWHERE):
                private_folder(file_to_write.parent)
            self._write(file_to_write, self._chunks([file]))
            self._store.mark(mark, {"starts": self._source.starts_after(file), "counts": _counts_to_json(counts)})

    def _write_equal(self, rows: int) -> None:
        """Write files of `rows` rows. Their names depend on the number of files, which is known after the last file."""
        stream = _RowStream(self._chunks(self._source.input_files.files))
        written: list[Path] = []
        while not written or stream.waiting is not None:
            file_to_write = self._folder / f"part-{len(written):09}.parquet"
            if file_to_write.exists():
                # A killed run has written this file. Its rows are read again only to count their changes.
                self._report.advance(sum(chunk.num_rows for chunk in stream.take(rows)))
            else:
                self._write(file_to_write, stream.take(rows))
            written.append(file_to_write)
        width = max(5, len(str(len(written) - 1)))
        if width < 9:
            for number, file in enumerate(written):
                file.replace(file.with_name(f"part-{number:0{width}}.parquet"))

    def _chunks(self, files: Sequence[Path]) -> Iterator[pa.Table]:
        size = self._budget.values_bytes() // READS_PER_CHUNK
        for file in files:
            yield from self._source.read_file(file, self._names, self._rows(), size)

    def _write(self, file_to_write: Path, chunks: Iterator[pa.Table]) -> None:
        with contextlib.closing(prefetched(self._row_groups(chunks))) as groups:
            write_groups(groups, file_to_write, self._report.advance, describe=self._describe, private=True)

    def _row_groups(self, chunks: Iterator[pa.Table]) -> Iterator[list[RowGroup]]:
        """Yield the row groups of a file, at least one. A thread makes each row group while the last is written."""
        form = written_format(self._options.output)
        growing = GrowingDictionaries(self._schema) if form is FEATHER else None
        is_empty = True
        for group in in_chunks(chunks, self._rows(), sys.maxsize):
            is_empty, table = False, group.unify_dictionaries()
            arrays = [
                self._with_used_categories(self._with_type(column, field), field.name)
                for column, field in zip(table.columns, self._schema, strict=True)
            ]
            if growing is not None:
                arrays = growing.grown(pa.Table.from_arrays(arrays, schema=self._schema)).columns
            yield [RowGroup(self._schema, arrays)]
        if is_empty:
            yield [RowGroup.from_table(self._schema.empty_table())]

    def _with_type(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        """Return a column in the type of its field; text for Parquet stays a dictionary."""
        coded = pa.types.is_dictionary(column.type) and column.type.value_type == field.type
        return column if column.type == field.type or (coded and self._source.coded) else column.cast(field.type)

    def _with_used_categories(self, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        """Return a column without unused categories. Ordered categories that occur anywhere in the table stay."""
        return with_values(column, self._ordered[name]) if name in self._ordered else without_unused(column)

    def _ordered_values(self) -> dict[str, pa.Array]:
        """Return the used values of each column of ordered categories, in their order, from a pass over the rows.

        Readers take the order of values in a file for the order of categories: every file must list all of them.
        """
        kinds = {field.name: field.type for field in self._schema}
        names = [name for name, kind in kinds.items() if pa.types.is_dictionary(kind) and kind.ordered]
        occurs: dict[str, dict[Any, bool]] = {name: {} for name in names}
        for file in self._source.input_files.files if names else ():
            size = self._budget.values_bytes() // READS_PER_CHUNK
            for chunk in self._source.read_file(file, names, self._rows(), size):
                for name in names:
                    for array in chunk.column(name).chunks:
                        own = occurs[name]
                        own |= dict.fromkeys(
                            [value for value in array.dictionary.to_pylist() if value not in own], False
                        )
                        own |= dict.fromkeys(array.unique().dictionary_decode().drop_null().to_pylist(), True)
        return {
            name: pa.array([value for value, there in occurs[name].items() if there], kinds[name].value_type)
            for name in names
        }

    def _rows(self) -> int:
        """Return the most rows of a row group, so that its cells fit into their share of memory."""
        most = int(CHUNK_SHARE * self._budget.working) // (CELL_BYTES * max(1, len(self._names)))
        return min(GROUP_ROWS, max(most, LEAST_ROWS))

    def _describe(self) -> dict[bytes, bytes]:
        return {MARK: __version__.encode()}

    def staged(self) -> Path:
        """Return the file or folder that is to get the final name."""
        return self._folder / self._options.output.name if is_file(self._options.output) else self._folder

    def publish(self) -> None:
        """Give the staged file or folder its final name, unless a killed run already did."""
        output, staged = self._options.output, self.staged()
        if not (output.exists() and identity(output) == identity(staged)):
            publish(staged, output)


class _RowStream:
    """The rows of chunks, to be taken in any number. waiting: the next chunk with rows; None if no row is left."""

    def __init__(self, chunks: Iterator[pa.Table]) -> None:
        self._chunks = (chunk for chunk in chunks if chunk.num_rows)
        self.waiting = next(self._chunks, None)

    def take(self, rows: int) -> Iterator[pa.Table]:
        """Yield the next `rows` rows, or all that are left, in chunks."""
        while rows and self.waiting is not None:
            taken, rest = self.waiting.slice(0, rows), self.waiting.slice(rows)
            self.waiting = rest if rest.num_rows else next(self._chunks, None)
            rows -= taken.num_rows
            yield taken


def _metadata(source: Source, changed: set[str]) -> Any:
    """Return the schema metadata that holds for the treated table: pandas' notes on index and unchanged columns."""
    first = source.input_files.files[0]
    if source.input_files.format is PARQUET:
        return kept_metadata(pq.read_schema(first), changed, False)
    if source.input_files.format is FEATHER:
        return kept_metadata(open_feather(first)[0], changed, False)
    return None


def _counts_to_json(counts: Sequence[StepCounts]) -> list[Any]:
    """Return the changes so far, ready for JSON."""
    return [[{str(name): list(cells) for name, cells in own.changed.items()}, own.rows_removed] for own in counts]


def _restore_counts(counts: Sequence[StepCounts], stored: Sequence[Any]) -> None:
    """Set counts to the changes that `_counts_to_json` returned."""
    for own, (changed, removed) in zip(counts, stored, strict=True):
        own.changed = {name: Changes(*cells) for name, cells in changed.items()}
        own.rows_removed = removed


# The format of temporary files of a run. A version with another format does not resume the run.
FORMAT = 2


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
    keep_unmet: bool = False,
    population: Any = None,
) -> Treated:
    """Treat a table of files of any size by a plan, see `treat`, and write the treated table to files.

    The table is read, treated and written chunk by chunk, within the memory limit of `config`. The output is whole or
    absent. The original files are not changed.

    Parameters
    ----------
    source:
        The path of a file, of a folder of files, or a pattern such as ``data/**/*.csv``. Files are Parquet, Feather, or
        CSV in UTF-8, whose separator is detected.
    output:
        The path of the treated table: a file name ending in .parquet, .csv or .feather, or a folder. A folder gets a
        Parquet file for each file of the table.
    rows_per_file:
        The number of rows of each file in an output folder. Default None: a file for each file of the table.
    resume:
        Whether to continue a killed run; without such a run, begin. A run with ``resume`` that fails can be
        continued, too. Default False.
    overwrite:
        Whether to replace an existing output. Default False.
    keep_unmet:
        Whether to write a treated table that breaks a criterion of the plan. Default False: nothing is written.
    population:
        See `treat`; the path of files.

    Returns
    -------
    Treated
        ``.table`` is the path of the output, ``.files`` are its files, ``.record`` says how many cells each treatment
        changed.

    Raises
    ------
    InputError, TableReadError, UnmetError
        See `treat`. The memory limit is too low.
    OutputError
        The output cannot be written, or a disk has too little space.

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
    check_apart({"": output}, {"source": source, "plan": plan, "key": key})
    plan = Plan.from_any(plan)
    check_apart({"": output}, {"plan": plan.to_dict()})
    secret = find_key(plan, key, seed)
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"source: expected the path of a file, a folder or a pattern such as 'data/*.parquet', got "
            f"{type(source).__name__}. Treat tables in memory with gpupif.treat."
        )
    options = OutputOptions.from_arguments(output, rows_per_file, resume, overwrite)
    with Reporter() as report, announce_compilation():
        people = Population.from_any(population)
        return treat_source(open_source(source), options, plan, secret, report, keep_unmet, people)


def treat_source(
    source: Source,
    options: OutputOptions,
    plan: Plan,
    key: Key | None,
    report: Reporter,
    keep_unmet: bool,
    population: Population | None = None,
) -> Treated:
    """Treat a table of files, see `treat_files`. All arguments are already checked."""
    started = time.perf_counter()
    check_place(source, options)
    with open_run(options, _settings(source, options, plan, key), report) as run:
        if run.finished is not None:
            record = TreatmentsRecord.from_stored(run.finished["record"])
            return Treated(options.output, record, None, [], _files(options.output))
        if run.begun is None:
            run.begin({})
        store = run.store
        budget = plan_reading(options.memory_limit, len(source.names), "take columns out of the table first")
        table = FileTable(source, store, budget, report, all_typed=not written_format(options.output).as_text)
        applied = apply_plan(table, plan, key, report)
        writer = TreatedWriter(table.source(), options, store, budget, report)
        rows = writer.write(table.counts)
        described = describe_files(source.input_files.path, source.stamps)
        left = rows - sum(own.rows_removed for own in table.counts)
        with contextlib.ExitStack() as opened:

            def treat_as(table: Any, plan: Plan) -> Path:
                folder = opened.enter_context(temporary_folder(options.temp))
                copy = OutputOptions.from_arguments(folder / "treated.parquet")
                own = table if table is source else open_source(table)
                return Path(treat_source(own, copy, plan, key, report, True).table)

            checked = check_treated(plan, writer.staged(), left, source, treat_as, population)
        refuse_unmet(plan, checked, keep_unmet)
        record = make_record(plan, applied, table.counts, described, rows, key, started, checked)
        facts = {"identity": identity(writer.staged()), "options": run.settings, "record": record.to_stored()}
        store.mark(FINISHED, facts)
        run.shield.raise_()
        writer.publish()
        return Treated(options.output, record, table, applied, _files(options.output))


def _files(output: Path) -> Sequence[Path]:
    return [output] if is_file(output) else sorted(output.rglob("*.parquet"))


def _digests_of_files(plan: Plan) -> dict[str, str]:
    """Return the digests of the files that a plan names, by path."""
    named = [getattr(treatment, name) for treatment in plan.treatments for name in treatment.files]
    named += [hierarchy.to_plan() for hierarchy in plan.hierarchies.values()]
    paths = [Path(value) for value in named if isinstance(value, str | os.PathLike)]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()}


def _settings(source: Source, options: OutputOptions, plan: Any, key: Any) -> dict[str, Any]:
    """Return the settings by name that a resumed run must repeat. `open_run` names the first that differs."""
    described = describe_files(source.input_files.path, source.stamps)
    return {
        "gpupif": __version__,
        FORMAT_OF_FILES: FORMAT,
        "files": {file["path"]: file for file in described["files"]},
        "plan": digest(plan.to_dict()),
        "files of the plan": digest(_digests_of_files(plan)),
        # The digest in records cannot tell seeds apart.
        "key": None if key is None else digest(key.secret("resume").hex()),
        "temp": None if options.temp is None else str(options.temp.resolve()),
        "rows per file": options.rows_per_file,
    }
