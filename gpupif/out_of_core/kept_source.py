"""A table whose encoded rows are kept: only files without a kept file are read, and all values are merged once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from gpupif.kernels import codes as kernels

from .._version import __version__
from ..encoding.column import Column
from ..encoding.merge import ValueCounts, final_order, merged_column, recode
from ..errors import TableReadError
from ..frames.file_frame import EncodedSource
from ..io.base import Input, Source, decode
from ..io.file_errors import disk_errors
from ..io.read import in_chunks, read_table
from ..io.temporary_folder import temporary_folder
from ..rows.keys import code_type
from ..rows.partition import index_type
from ..rows.threads import Workers
from ..utils.arrays import read_only
from ..utils.config import resources
from ..utils.private_folder import open_private
from ..utils.progress import Reporter
from .kept_file_store import FORMAT, KeptChunk, KeptFile, KeptFileKey, KeptFileStore
from .memory_budget import READS_PER_CHUNK, plan_reading
from .merged_values import check_values, merge_values, missing_error
from .table_chunks import TableChunks

if TYPE_CHECKING:
    import numpy.typing as npt

# Largest chunk of a kept file: it fits into any memory in which a table can be scored.
CHUNK_ROWS = 1 << 17


class KeptFiles(NamedTuple):
    """The kept files of a table.

    files: list of KeptFile. One for each file of the table.
    keys: list of KeptFileKey. The key of each file.
    read: list of int. The numbers of the files that were read because they had no kept file.
    other: int. The number of these with a kept file that was read in another way or by another version.
    """

    files: Sequence[KeptFile]
    keys: Sequence[KeptFileKey]
    read: Sequence[int]
    other: int


def keep_files(
    source: Source, names: Sequence[str], contents: Sequence[str], store: KeptFileStore, report: Reporter
) -> KeptFiles:
    """Return the kept files of a table; files without one, or with a damaged one, are read and encoded.

    contents: list of str. The digest of each file.

    Raises InputError, TableReadError, OutputError.
    """
    # Folder names may hold values of columns, so the folder is a part of the recipe.
    places = [
        file.relative_to(source.input_files.base).parent.as_posix() if source.folder_columns else ""
        for file in source.input_files.files
    ]
    schema, read_by = source.nothing().schema, [source.input_files.format.name, source.input_files.sep]
    recipes = {place: _recipe(schema, names, [*read_by, place]) for place in set(places)}
    keys = [KeptFileKey(content, recipes[place]) for content, place in zip(contents, places, strict=True)]
    distinct = list(dict.fromkeys(keys))
    with Workers() as workers:
        report.stage("open kept files", len(distinct), "files")
        kept = dict(zip(distinct, workers.run(store.find, [(key,) for key in distinct]), strict=True))
        wanting = {key: file for key, file in zip(keys, source.input_files.files, strict=True) if kept[key] is None}
        budget = plan_reading(resources().memory, len(names))
        rows = min(CHUNK_ROWS, budget.chunk_rows)
        at_once = max(1, min(workers.threads, len(wanting), budget.chunk_rows // rows))
        memory = budget.values_bytes() // at_once
        report.stage("read and encode", len(wanting), "files")

        def read(key: KeptFileKey, file: Path, helpers: Workers | None) -> KeptFile:
            tables = source.read_file(file, names, rows, memory // READS_PER_CHUNK)
            written = store.write(key, in_chunks(tables, rows, memory), names, helpers)
            report.advance()
            return written

        if at_once > 1:
            with Workers(at_once) as readers:
                made = readers.run(read, [(key, file, None) for key, file in wanting.items()])
        else:
            made = [read(key, file, workers) for key, file in wanting.items()]
    kept |= dict(zip(wanting, made, strict=True))
    files = [file for key in keys if (file := kept[key]) is not None]
    read_files = [number for number, key in enumerate(keys) if key in wanting]
    return KeptFiles(files, keys, read_files, sum(map(store.has_other, wanting)))


def keep_stream(
    schema: pa.Schema,
    batches: Callable[[], Iterable[pa.RecordBatch]],
    origin: str,
    names: Sequence[str],
    content: str,
    store: KeptFileStore,
    report: Reporter,
) -> KeptFiles:
    """Return the kept file of a table that comes in batches; the batches are read if the content has none.

    origin: str. The source of the batches.
    content: str. The digest of the content.

    Raises InputError, OutputError, and the errors of `batches`.
    """
    key = KeptFileKey(content, _recipe(schema, names, [origin]))
    kept = store.find(key)
    if kept is not None:
        return KeptFiles([kept], [key], [], 0)
    budget = plan_reading(resources().memory, len(names))
    rows, memory = min(CHUNK_ROWS, budget.chunk_rows), budget.values_bytes()
    report.stage("read and encode", None, "rows")

    def tables() -> Iterator[pa.Table]:
        for batch in batches():
            yield pa.Table.from_batches([batch]).select(names)
            report.advance(batch.num_rows)

    with Workers() as workers:
        kept = store.write(key, in_chunks(tables(), rows, memory), names, workers)
    return KeptFiles([kept], [key], [0], int(store.has_other(key)))


def _recipe(schema: pa.Schema, names: Sequence[str], read_by: Sequence[str | None]) -> str:
    """Return a digest of everything besides the content that codes depend on."""
    columns = [[name, str(schema.field(name).type)] for name in names]
    document = json.dumps([FORMAT, __version__, pa.__version__, list(read_by), columns])
    return hashlib.blake2b(document.encode(), digest_size=32).hexdigest()


class KeptSource(EncodedSource):
    """A table of kept files, to be used in place of a path; a context manager, which deletes temporary files.

    input_files: Input. The original files.
    names: list of str. The columns of the table.
    schema: the types of all columns in the original files.
    files: list of KeptFile. The kept files.
    live: Source. The original files; None if the rows came in batches.
    """

    def __init__(
        self,
        input_files: Input,
        names: Sequence[str],
        schema: pa.Schema,
        files: Sequence[KeptFile],
        live: Source | None,
    ) -> None:
        self.input_files = input_files
        self.names = list(names)
        self.stamps = {} if live is None else live.stamps
        self.bytes = sum(stamp.size for stamp in self.stamps.values())
        self.rows: int = sum(file.rows for file in files)
        self.ascending = True if live is None else live.ascending
        self.index_names = [] if live is None else [name for name in live.index_names if name in self.names]
        self.folder_columns = [] if live is None else live.folder_columns
        self.full_schema = schema
        self._files = files
        self._chunks = [chunk for file in files for chunk in file.chunks]
        self._live = live
        self._opened = contextlib.ExitStack()
        self._in_memory: dict[str, Column] = {}
        if not self.rows:
            listed = ", ".join(self.names)
            raise TableReadError(f"{input_files.path}: expected at least one row, got none (columns: {listed}).")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete temporary files, and free the codes that are in memory."""
        self._in_memory.clear()
        self.__dict__.pop("_merged", None)
        self._opened.close()

    @property
    def typed_by_values(self) -> bool:
        """True if the type of a column is known only from all of its values, as in text."""
        return self._live is not None and self._live.input_files.format.as_text

    def merge(self) -> None:
        """Merge the values of all kept files now; else they are merged on first use.

        Raises InputError if the values do not fit into memory, or if a column has incompatible types in two files.
        """
        _ = self._merged

    def about_rows(self) -> int:
        """Return the number of rows, which is exact here."""
        return self.rows

    def check_unchanged(self, files: Any) -> None:
        """Raise an error if a file has changed, see `Source`; rows from batches have no files."""
        super().check_unchanged(file for file in files if file in self.stamps)

    def nothing(self) -> pa.Table:
        return pa.schema([self.full_schema.field(name) for name in self.names]).empty_table()

    def as_given(self, chunk: pa.Table) -> pa.Table:
        return chunk if self._live is None else self._live.as_given(chunk)

    def labels(self, merged: pa.Array) -> pa.Array:
        return merged if self._live is None else self._live.labels(merged)

    def labels_in_parts(self, parts: Callable[[], Iterator[pa.Array]]) -> Iterator[pa.Array]:
        return parts() if self._live is None else self._live.labels_in_parts(parts)

    def part_key(self, merged: pa.Array) -> pa.Array:
        return merged if self._live is None else self._live.part_key(merged)

    def read_file(self, file: Path, columns: Sequence[str], rows: int, size: int) -> Iterator[pa.Table]:
        """Yield the rows of a file, see `Source`; the file is read again."""
        if self._live is not None:
            yield from self._live.read_file(file, columns, rows, size)
            return
        places = [self.names.index(name) for name in columns]
        for chunk in self._chunks:
            values = pa.table({self.names[place]: _values(chunk, place) for place in places})
            for start in range(0, chunk.size, rows):
                yield values.slice(start, rows)

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        return self.read_file(file, columns, rows, size)

    def table(self, names: Sequence[str]) -> pa.Table:
        if self._live is not None:
            return decode(read_table(self.input_files, lambda _: list(names)))
        return pa.concat_tables(table for _, table in self.read(names, CHUNK_ROWS, 0))

    def column(self, name: str) -> Column:
        """Return a column without the codes of rows: its values and their multiplicities."""
        return self._merged.columns[self.names.index(name)]

    def encoded(self, names: Sequence[str]) -> list[Column]:
        """Return columns with codes, see `EncodedSource`; codes stay in memory until the table is closed."""
        wanted = [name for name in names if name not in self._in_memory]
        if wanted:
            places = [self.names.index(name) for name in wanted]
            columns = [self._merged.columns[place] for place in places]
            codes = [np.empty(self.rows, code_type(column.cardinality)) for column in columns]
            starts = np.cumsum([0, *(chunk.size for chunk in self._chunks)]).tolist()

            def fill(number: int, start: int, stop: int) -> None:
                for place, out in zip(places, codes, strict=True):
                    own = read_only(self._chunks[number].codes(place))
                    kernels.recode(own, 0, self._merged.new_codes(number, place), out[start:stop])

            with Workers() as workers:
                workers.run(fill, [(number, *edges) for number, edges in enumerate(pairwise(starts))])
            for name, column, own in zip(wanted, columns, codes, strict=True):
                self._in_memory[name] = Column(name, own, column.counts, column.labels, column.missing)
        return [self._in_memory[name] for name in names]

    def facts(
        self, names: Sequence[Any], missing: str, chunk_rows: int, memory: int, done: Callable[[int], None]
    ) -> dict[str, Any]:
        """Return the facts that `chunks` needs, see `encode_files`."""
        places = [self.names.index(name) for name in names]
        for name, place in zip(names, places, strict=True):
            column = self._merged.columns[place]
            check_values(name, ValueCounts(pa.array(column.labels), column.counts, 0), memory)
            if missing == "error" and column.missing:
                raise missing_error(name, self._first_missing(place))
        done(self.rows)
        return {
            "sizes": [stop - start for _, start, stop in _ranges(self._chunks, chunk_rows)],
            "file_rows": [file.rows for file in self._files],
            "missing": [self._merged.columns[place].missing_rows for place in places],
            "chunk rows": chunk_rows,
        }

    def chunks(self, names: Sequence[Any], facts: Mapping[str, Any] | None = None) -> KeptChunks:
        """Return some columns chunk by chunk. facts: the result of `facts`."""
        rows = CHUNK_ROWS if facts is None else facts["chunk rows"]
        places = [self.names.index(name) for name in names]
        return KeptChunks(self._chunks, self._merged, places, rows)

    def _first_missing(self, place: int) -> int:
        """Return the first row with a missing value in a column that has one."""
        start = 0
        for chunk in self._chunks:
            rows = np.flatnonzero(chunk.codes(place) == chunk.labels[place])
            if len(rows):
                return start + int(rows[0])
            start += chunk.size
        raise AssertionError(place)

    @cached_property
    def _merged(self) -> MergedColumns:
        folder = self._opened.enter_context(temporary_folder(resources().temp))
        memory = plan_reading(resources().memory, len(self.names)).values_bytes()
        with Workers() as workers, disk_errors(folder):
            tasks = [(name, place, memory, folder) for place, name in enumerate(self.names)]
            return MergedColumns(*zip(*workers.run(self._merge, tasks), strict=True))

    def _merge(
        self, name: str, place: int, memory: int, folder: Path
    ) -> tuple[Column, npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Merge a column of all kept files; return its items of `MergedColumns`."""
        kind = np.dtype(index_type(self.rows))
        ends = np.cumsum([0, *(chunk.labels[place] for chunk in self._chunks)])
        file = folder / f"numbers-{place}"
        with open_private(file) as sink:
            each = (chunk.values(place) for chunk in self._chunks)
            values = merge_values(name, each, lambda numbers: sink.write(numbers.astype(kind).tobytes()), memory)
        numbers = np.memmap(file, kind, "r") if os.path.getsize(file) else np.empty(0, kind)
        values = values._replace(missing=sum(file.missing[place] for file in self._files))
        labels = self.labels(values.labels)
        rank = final_order(labels, self.ascending)
        return merged_column(name, values, rank, labels), rank, numbers, ends


class MergedColumns(NamedTuple):
    """The merged values of the columns of all kept files.

    columns: list of Column, without codes of rows.
    ranks: list of arrays, one for each column. The code of each merged value.
    numbers: list of arrays, one for each column. The number of each chunk's values among the merged values, chunk by
    chunk.
    starts: list of arrays, one for each column. The place in `numbers` at which each chunk begins.
    """

    columns: Sequence[Column]
    ranks: Sequence[npt.NDArray[np.int64]]
    numbers: Sequence[npt.NDArray[Any]]
    starts: Sequence[npt.NDArray[np.int64]]

    def new_codes(self, chunk: int, place: int) -> npt.NDArray[np.int64]:
        """Return the code in the whole table of each value of a chunk's column; the code of missing values is last."""
        own = slice(self.starts[place][chunk], self.starts[place][chunk + 1])
        rank = self.ranks[place]
        return np.append(rank[self.numbers[place][own]], len(rank))


class KeptChunks(TableChunks):
    """Columns of a kept table in chunks of at most `rows` rows, with the codes of the whole table."""

    def __init__(self, chunks: Sequence[KeptChunk], merged: MergedColumns, places: Sequence[int], rows: int) -> None:
        self._ranges = list(_ranges(chunks, rows))
        self.sizes = [stop - start for _, start, stop in self._ranges]
        self.columns = [merged.columns[place] for place in places]
        self._chunks = chunks
        self._merged = merged
        self._places = places

    def some_codes(self, number: int, places: Sequence[int]) -> list[npt.NDArray[Any]]:
        whole, start, stop = self._ranges[number]
        chunk = self._chunks[whole]
        own = [self._places[place] for place in places]
        return [recode(chunk.codes(place)[start:stop], self._merged.new_codes(whole, place)) for place in own]

    def close(self) -> None:
        """Do nothing: the files belong to the table."""


def _ranges(chunks: Sequence[KeptChunk], rows: int) -> Iterator[tuple[int, int, int]]:
    """Yield slices of at most `rows` rows: number of the chunk, first row, and last row plus 1."""
    for number, chunk in enumerate(chunks):
        for start in range(0, chunk.size, rows):
            yield number, start, min(start + rows, chunk.size)


def _values(chunk: KeptChunk, place: int) -> pa.Array:
    """Return the values of a chunk's column."""
    codes, labels = chunk.codes(place), chunk.values(place).labels
    missing = codes == len(labels)
    numbers = pa.array(codes.astype(np.int64), mask=missing)
    return pa.DictionaryArray.from_arrays(numbers, labels).dictionary_decode()
