"""A table of files after the steps so far: steps are applied when rows are read, within the memory limit.

Files after some steps are a `Source`: every function that reads files can read treated files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..attack.arguments import Arguments
from ..encoding.merge import ColumnMerger, ValueCounts
from ..encoding.plain_values import family, plain_labels, plain_type
from ..engines.choose import choose_engine
from ..errors import InputError
from ..frames.arrow_frame import other_column, other_type
from ..frames.open import device_for
from ..frames.replacement import Replacement
from ..io.base import Source
from ..io.checkpoints import Store
from ..io.file_errors import disk_errors
from ..io.parquet_files import READ_BYTES
from ..io.read import in_chunks
from ..out_of_core.chunk_readers import prefetched
from ..out_of_core.file_encoding import rows_read
from ..out_of_core.memory_budget import CHUNK_SHARE, LEAST_CHUNK, READS_PER_CHUNK, Budget
from ..out_of_core.merged_values import MERGING, check_values
from ..out_of_core.output_options import OutputOptions
from ..out_of_core.scoring_run import score_source
from ..rows.threads import Workers
from ..utils.config import resources
from ..utils.memory import give_back_unused, shown
from ..utils.private_folder import open_private, private_folder
from ..utils.progress import Reporter
from .coded_columns import CodedColumn, coded_column, column_values
from .lazy_table import Counted, LazyTable, Steps, values_in
from .steps import Chunk, RowFacts, StepCounts

# The share of the working memory that the codes of all rows may take.
CODES_SHARE = 0.5
# Advice for errors about a treatment that needs too much memory, beside a higher limit.
LESS_AT_ONCE = "let the treatment use fewer columns, or split the plan and treat the output of its first part"
# The most rows for which facts are computed at once, and the bytes of each score then: as read, as array, as fact.
FACT_ROWS, SCORE_BYTES = 1 << 20, 64
# The most rows of a chunk that steps are applied to.
CHUNK_ROWS = 1 << 18


class FileTable(LazyTable):
    """A table of files.

    source: the original files.
    store: temporary files of the run. It knows which of them a killed run has finished.
    budget: sizes in memory that follow from the memory limit.
    all_typed: whether each column of text files gets the type of its values. Default False: only columns that a
        treatment names.
    """

    def __init__(self, source: Source, store: Store, budget: Budget, report: Reporter, all_typed: bool = False) -> None:
        super().__init__(source.names)
        self._source = source
        self._store = store
        self._budget = budget
        self._report = report
        self._all_typed = all_typed
        self._rows = source.rows
        self._facts = 0

    def source(self, plain: bool = False) -> TreatedSource:
        """Return the files after all steps so far. plain: see `TreatedSource`."""
        return TreatedSource(self._source, self.steps, plain)

    def each(self, function: Callable[[Chunk], Any], columns: Sequence[Any]) -> Iterator[Any]:
        source, size = self.source(plain=True), self._budget.values_bytes() // READS_PER_CHUNK
        for file in source.input_files.files:
            for _, chunk in source.treated(file, columns, self._budget.chunk_rows, size):
                yield function(chunk)

    def type_before(self, name: Any) -> pa.DataType:
        return coded_column(name, self._source.nothing().column(name)).labels.type

    def expect(self, names: Sequence[Hashable]) -> None:
        """Find the types of columns of text files: all texts are read now, as only they show a type."""
        if self._source.input_files.format.as_text:
            typed = list(self._source.names if self._all_typed else dict.fromkeys(names))
            for name, counted in (self.count(typed) if typed else {}).items():
                labels = plain_labels(self._source.labels(counted.labels))
                self._values[name] = column_values(labels, counted.counts, counted.missing)
            self._source = TypedSource(self._source, {str(name): own.labels.type for name, own in self._values.items()})

    def count(self, names: Sequence[Hashable]) -> Counted:
        """Return the values of columns, see `LazyTable`. Columns that do not fit into memory are absent.

        Raises InputError if the first column does not fit.
        """
        done, memory = rows_read(self._source, self._report), self._budget.values_bytes()
        schema, mergers = self._source.nothing().schema, {name: ColumnMerger(name) for name in names}

        def add(name: Any, part: ValueCounts) -> None:
            if name not in self.steps.types and schema.field(name).type == pa.uint64():
                # The labels of a chunk have the type int64 if all of them fit.
                part = part._replace(labels=part.labels.cast(pa.uint64()))
            mergers[name].add(part)
            if MERGING * mergers[name].values.labels.nbytes > memory:
                if name == names[0]:
                    check_values(name, mergers[name].values, memory)
                del mergers[name]

        def values(chunk: Chunk) -> Counted:
            done(chunk.rows_before)
            return values_in(list(mergers), names[0], chunk)

        with Workers() as workers:
            for own in self.each(values, names):
                for name in set(mergers) - set(own):
                    del mergers[name]
                workers.run(add, own.items())
                del own
        for merger in mergers.values():
            merger.flush()
        return {name: own.values._replace(labels=plain_labels(own.values.labels)) for name, own in mergers.items()}

    def check_memory(self, names: Sequence[Hashable], code_bytes: int, row_bytes: int) -> None:
        most = self._budget.working if row_bytes else int(CODES_SHARE * self._budget.working)
        needed = self.rows * (code_bytes + row_bytes)
        if needed > most:
            raise InputError(
                f"memory_limit: the treatment needs all rows at once of {', '.join(map(str, names))}: their codes and "
                f"working memory take about {shown(needed)}, and the limit leaves {shown(most)}. Raise the limit "
                f"(--memory-limit), or {LESS_AT_ONCE}."
            )

    def facts_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> RowFacts:
        folder = self._store.fresh(self._next_facts())
        writer = FactsWriter(folder)
        writer.write(arrays)
        return StoredFacts(folder, writer.types)

    def scores(
        self, arguments: Arguments, make: Callable[[Mapping[str, npt.NDArray[Any]]], Mapping[str, npt.NDArray[Any]]]
    ) -> RowFacts:
        name = self._next_facts()

        def find() -> dict[str, str]:
            folder = self._store.fresh(name)
            output = folder / "scores.parquet"
            source = self.source(plain=True)
            score_source(
                source,
                arguments,
                choose_engine(device_for(source, arguments.known_sets)),
                OutputOptions(output, resources().memory),
                self._report,
                mend=LESS_AT_ONCE,
            )
            types = self._write_facts(output, folder, make)
            output.unlink()
            # The next treatment plans with the memory that is left of the limit.
            give_back_unused()
            return types

        return StoredFacts(self._store.part(name), self._store.once(name, find))

    def _write_facts(self, file: Path, folder: Path, make: Callable[..., Mapping[str, Any]]) -> dict[str, str]:
        """Write the facts that `make` computes from a file of scores to a folder; return the NumPy type by name."""
        writer = FactsWriter(folder)
        with pq.ParquetFile(file, buffer_size=READ_BYTES, pre_buffer=False) as scores:
            fits = int(CHUNK_SHARE * self._budget.working) // (SCORE_BYTES * scores.metadata.num_columns)
            for batch in scores.iter_batches(max(LEAST_CHUNK, min(FACT_ROWS, fits))):
                columns = zip(batch.schema.names, batch.columns, strict=True)
                writer.write(make({name: column.to_numpy(zero_copy_only=False) for name, column in columns}))
        return writer.types

    def _next_facts(self) -> str:
        """Return a new name for a folder of facts. A resumed run gives equal names in equal order."""
        self._facts += 1
        return f"facts-{self._facts}"


class StoredFacts(RowFacts):
    """Facts in a folder: a file for each name, with an item for each row. types: NumPy type by name."""

    def __init__(self, folder: Path, types: Mapping[str, str]) -> None:
        self._files = {name: folder / f"{place}.bin" for place, name in enumerate(types)}
        self._types = {name: np.dtype(kind) for name, kind in types.items()}

    def read(self, chunk: Chunk) -> dict[str, npt.NDArray[Any]]:
        return {
            name: np.fromfile(file, self._types[name], chunk.rows, offset=chunk.start * self._types[name].itemsize)
            for name, file in self._files.items()
        }


class FactsWriter:
    """The writer of facts to a folder, chunk by chunk. types: NumPy type by name; empty before the first chunk."""

    def __init__(self, folder: Path) -> None:
        self.types: dict[str, str] = {}
        self._folder = folder
        with disk_errors(folder):
            private_folder(folder)

    def write(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Append the facts of the next rows."""
        if not self.types:
            self.types = {name: np.asarray(array).dtype.str for name, array in arrays.items()}
            for place in range(len(arrays)):
                (self._folder / f"{place}.bin").unlink(missing_ok=True)
        with disk_errors(self._folder):
            for place, (name, kind) in enumerate(self.types.items()):
                with open_private(self._folder / f"{place}.bin", "ab") as file:
                    np.ascontiguousarray(arrays[name], kind).tofile(file)


class TreatedSource(Source):
    """Files after some steps.

    counts: list of `StepCounts`, see `TreatedTable`. The changes so far, if `counted` is True.
    counted: bool. Whether changes are counted while rows are read. Default False.
    coded: bool. Whether changed text is read as dictionaries, as Parquet encodes it: writing is faster. Default False.
    plain: bool. Whether changed columns are read in the plain types of steps, else in the types of the output.
    """

    def __init__(self, source: Source, steps: Steps, plain: bool = False) -> None:
        super().__init__(source.input_files, steps.names)
        self.stamps = source.stamps
        self.ascending = source.ascending
        self.index_names = [name for name in source.index_names if name in self.names]
        self.folder_columns = [name for name in source.folder_columns if name in self.names]
        self.counts = [StepCounts() for _ in (*steps.applied, None)]
        self.counted = self.coded = False
        self._base = source
        self._steps = steps
        self._plain = plain
        self._loses_rows = any(step.removes_rows for step, _ in steps.applied)
        self._given = source.nothing().schema
        self._schema = pa.schema([self._field(name) for name in self.names])
        # For each file and each step, the number of the file's first row among the rows before that step.
        self._starts = {source.input_files.files[0]: [0] * (len(steps.applied) + 1)}
        self.rows = None if self._loses_rows else source.rows

    def _field(self, name: str) -> pa.Field:
        given = self._given.field(name)
        if name not in self._steps.types:
            # The metadata may describe rows that are removed.
            return given.remove_metadata() if self._loses_rows else given
        labels, values = self._steps.types[name], given.type
        values = values.value_type if pa.types.is_dictionary(values) else values
        return pa.field(name, labels if self._plain else other_type(labels, plain_type(values), given.type))

    def about_rows(self) -> int:
        return self._base.about_rows()

    def nothing(self) -> pa.Table:
        return self._schema.empty_table()

    def as_given(self, chunk: pa.Table) -> pa.Table:
        """Return a chunk with the types of the output, see `Source`: dictionaries become text again."""
        kinds = pa.schema([self._schema.field(name) for name in chunk.column_names])
        return chunk if chunk.schema.equals(kinds) else chunk.cast(kinds)

    def starts_after(self, file: Path) -> list[int]:
        """Return the number of the first row after a file that was read, before each step and after the last."""
        return self._starts[self.next_file(file)]

    def begin(self, file: Path, starts: Sequence[int]) -> None:
        """Set the number of a file's first row, before each step and after the last, see `starts_after`."""
        self._starts[file] = list(starts)

    @property
    def bytes_read(self) -> int:  # type: ignore[override]
        """The bytes read so far."""
        return self._base.bytes_read

    @property
    def changed(self) -> list[str]:
        """The names of original columns that were changed or dropped."""
        return [name for name in self._base.names if name in self._steps.types or name not in self.names]

    def next_file(self, file: Path) -> Path:
        """Return the file after another file; an empty path after the last."""
        files = [*self.input_files.files, Path()]
        return files[files.index(file) + 1]

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        for table, chunk in self.treated(file, columns, rows, size):
            if columns:
                yield pa.Table.from_arrays([self._array(name, table, chunk) for name in columns], names=columns)
            else:
                yield pa.table({"": pa.nulls(chunk.rows)})

    def treated(self, file: Path, columns: Sequence[str], rows: int, size: int) -> Iterator[tuple[pa.Table, Chunk]]:
        """Yield the chunks of a file as they are read, and with the steps that some columns need, see `read`."""
        if file not in self._starts:
            before = self.input_files.files[list(self.input_files.files).index(file) - 1]
            for _ in self.treated(before, [], rows, size):
                pass
        starts = list(self._starts[file])
        needed, read = self._steps.needed(columns, self.counted)
        counts = self.counts if self.counted else None
        # If no column is needed, the first column is read to count the rows.
        names = [name for name in self._base.names if name in read] or self._base.names[:1]
        chunks = in_chunks(self._base.read_file(file, names, rows, size), min(CHUNK_ROWS, rows), max(1, size))
        with contextlib.closing(prefetched(chunks)) as read_ahead:
            for table in read_ahead:
                chunk = Chunk(names, table.num_rows, partial(_column_of, table))
                self._steps.run(chunk, starts, needed, counts)
                yield table, chunk
        self._starts[self.next_file(file)] = starts

    def _array(self, name: str, table: pa.Table, chunk: Chunk) -> Any:
        """Return a column of a treated chunk in its type for readers."""
        kind = self._schema.field(name).type
        if name not in self._steps.types and name not in chunk.replaced:
            return table.column(name) if chunk.kept is None else table.column(name).filter(pa.array(chunk.kept))
        column, given = chunk[name], self._given.field(name).type
        if self._plain and name in self._steps.types:
            labels = column.labels if column.labels.type == kind else plain_labels(column.labels).cast(kind)
            missing = column.codes == len(labels)
            return pa.DictionaryArray.from_arrays(pa.array(column.codes.astype(np.int32), mask=missing), labels)
        values = given.value_type if pa.types.is_dictionary(given) else given
        if self.coded and pa.types.is_string(kind) and family(column.labels.type) == "text":
            given = pa.dictionary(pa.int32(), kind)
        array = other_column(Replacement(column.codes, column.labels, plain_type(values)), given)
        if self.coded and array.type == given:
            return array
        try:
            return array if array.type == kind else array.cast(kind)
        except pa.ArrowException as error:
            raise InputError(
                f"column {name!r}: some of its new values do not fit into its type, {kind} ({error}). Make it a wider "
                "type first."
            ) from error


def _column_of(table: pa.Table, name: Any) -> CodedColumn:
    return coded_column(name, table.column(name))


class TypedSource(Source):
    """A source of text files with other types for some columns. types: Arrow type by column name."""

    def __init__(self, source: Source, types: Mapping[str, pa.DataType]) -> None:
        super().__init__(source.input_files, source.names)
        self.ascending, self.index_names, self.rows = source.ascending, source.index_names, source.rows
        self.folder_columns = source.folder_columns
        self.stamps = source.stamps
        self._source = source
        self._types = types

    def nothing(self) -> pa.Table:
        table = self._source.nothing()
        kinds = [field.with_type(self._types.get(field.name, field.type)) for field in table.schema]
        return pa.schema(kinds).empty_table()

    def as_given(self, chunk: pa.Table) -> pa.Table:
        """Return a chunk with the given types, see `Source`."""
        schema = self.nothing().schema
        return chunk.cast(pa.schema([schema.field(name) for name in chunk.column_names]))

    def about_rows(self) -> int:
        return self._source.about_rows()

    @property
    def bytes_read(self) -> int:  # type: ignore[override]
        """The bytes read so far."""
        return self._source.bytes_read

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        for chunk in self._source._read_file(file, columns, rows, size):
            arrays = [self._typed(name, chunk.column(name)) for name in columns]
            yield pa.table(arrays, names=columns)

    def _typed(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        kind = self._types.get(name)
        if kind is None or not len(column):
            return column if kind is None else pa.chunked_array([], kind)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        arrays = [
            pa.DictionaryArray.from_arrays(array.indices, typed_labels(array.dictionary, kind))
            for array in column.chunks
        ]
        return pa.chunked_array(arrays, pa.dictionary(column.type.index_type, kind))


def typed_labels(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values that texts denote. kind: the type of the values; all texts of the column must fit it.

    Adding 0.0 to floats turns -0.0 into 0.0: both are one value.
    """
    values = texts.cast(kind)
    return pc.add(values, 0.0) if pa.types.is_floating(kind) else values
