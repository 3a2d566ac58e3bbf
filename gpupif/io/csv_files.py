"""CSV: texts first, numbers and dates only where they say the same."""

from __future__ import annotations

import codecs
import csv
import io
import mmap
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from ..errors import InputError, OutputError, TableReadError
from ..rows.threads import Workers
from ..utils.validation import check_unique
from .base import Describe, FileFormat, Input, Source
from .common import Pick, check_alike, mark_encoded, unreadable

SEPARATORS = ",;\t|"
HEAD_BYTES = 1 << 16
SNIFFED_RECORDS = 20
TEXT = pa.dictionary(pa.int32(), pa.string())


class CsvFormat(FileFormat):
    """CSV."""

    name = "CSV"
    endings = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
    written = (".csv",)
    dataset = "csv"
    as_text = True

    def read(self, found: Input, pick: Pick) -> pa.Table:
        """See `FileFormat`; texts of numbers and dates as such, as dictionaries, see `decode`."""
        heads = read_heads(found.files, found.sep)
        names = heads[0].names
        columns = pick(names)
        files = zip(found.files, heads, strict=True)
        table = pa.concat_tables([_read_texts(file, head, columns).select(columns or names) for file, head in files])
        return mark_encoded(pa.table([_typed(column) for column in table.columns], names=table.column_names), names)

    def open(self, found: Input) -> Source:
        return CsvSource(found)

    def writer(self, sink: IO[bytes], file: Path, schema: pa.Schema, describe: Describe) -> Any:
        """See `FileFormat`; raises OutputError for columns that have no place in CSV."""
        for field in schema:
            if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
                raise OutputError(
                    f"{file}: column {field.name!r}, of type {field.type}, has no place in CSV. Choose .parquet, or "
                    "leave it out."
                )
        return CsvWriter(sink, schema)


class CsvWriter:
    """Writes tables of one schema to `sink` as CSV, some rows of them by each thread."""

    def __init__(self, sink: IO[bytes], schema: pa.Schema) -> None:
        self._sink = sink
        sink.write(_as_csv(schema.empty_table(), header=True))

    def __enter__(self) -> CsvWriter:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write_table(self, table: pa.Table) -> None:
        """Write rows."""
        with Workers() as workers:
            tasks = [(table.slice(start, stop - start), False) for start, stop in workers.ranges(len(table))]
            for text in workers.run(_as_csv, tasks):
                self._sink.write(text)


def _as_csv(table: pa.Table, header: bool) -> pa.Buffer:
    out = pa.BufferOutputStream()
    arrow_csv.write_csv(table, out, arrow_csv.WriteOptions(include_header=header))
    return out.getvalue()


def check_separator(sep: str) -> None:
    """Raise InputError where `sep` cannot separate fields."""
    if not isinstance(sep, str) or len(sep) != 1 or not sep.isascii() or sep in '"\r\n\0':
        raise InputError(
            f"sep: expected one ASCII character such as ';', got {sep!r}. For a tab, in bash, write $'\\t'."
        )


class Head(NamedTuple):
    """The beginning of a CSV file: its separator and column names; alone: nothing comes after them."""

    separator: str
    names: list[str]
    alone: bool


def read_head(file: Path, sep: str | None) -> Head:
    """What a CSV file begins with; raises TableReadError where that is no header, InputError for repeated names."""
    try:
        head, whole = _read_start(file)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, "CSV", error) from error
    separator = sep if sep is not None else _sniff_separator(head, whole)
    records = list(islice(_records(head, separator), 2))
    if not records:
        raise TableReadError(f"{file}: could not be read as CSV: it has no line with anything in it.")
    names = records[0]
    others = [other for other in SEPARATORS if other in names[0]] if sep is not None and len(names) == 1 else []
    if others:
        raise TableReadError(
            f"{file}: separated by {sep!r} it is one column, {names[0]!r}. Use sep={others[0]!r} instead."
        )
    check_unique(names)
    return Head(separator, names, whole and len(records) == 1)


def read_heads(files: Sequence[Path], sep: str | None) -> list[Head]:
    """What CSV files begin with; raises TableReadError where they differ in a column."""
    heads = {file: read_head(file, sep) for file in files}
    check_alike(files, lambda file: dict.fromkeys(heads[file].names, "there"))
    return list(heads.values())


def parser_options(file: Path, head: Head, columns: list[str] | None) -> dict[str, Any]:
    """How pyarrow is to parse a CSV file: every field as text, empty ones missing."""
    names = head.names
    return {
        # In a column alone an empty line is a missing value.
        "parse_options": arrow_csv.ParseOptions(
            delimiter=head.separator, newlines_in_values=has_any(file, b'"'), ignore_empty_lines=len(names) > 1
        ),
        "convert_options": arrow_csv.ConvertOptions(
            null_values=[""],
            strings_can_be_null=True,
            column_types=dict.fromkeys(names, TEXT),
            include_columns=names if columns is None else columns,
        ),
    }


def _read_texts(file: Path, head: Head, columns: list[str] | None) -> pa.Table:
    """A CSV file with all fields as text."""
    if head.alone:
        names = head.names if columns is None else columns
        return pa.table({name: pa.array([], TEXT) for name in names})
    try:
        return _parse(file, parser_options(file, head, columns))
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, "CSV", error) from error


def _parse(file: Path, options: dict[str, Any]) -> pa.Table:
    try:
        return arrow_csv.read_csv(str(file), **options)
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise not_utf8(file) from error
        # On one thread the parser knows the number of the line and says it.
        return arrow_csv.read_csv(str(file), read_options=arrow_csv.ReadOptions(use_threads=False), **options)


def _typed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary column of texts with the values that `typed_texts` finds."""
    column = column.unify_dictionaries()
    if column.num_chunks == 0:
        return column
    values = typed_texts(column.chunk(0).dictionary)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(chunk.indices, values) for chunk in column.chunks])


def typed_texts(texts: pa.Array) -> pa.Array:
    """Different texts as integers, numbers, booleans, dates or times, if all read the same back.

    "007", "1.50" and "-0" make their column stay text.
    """
    for kind in (pa.int64(), pa.bool_(), pa.date32(), pa.timestamp("s"), pa.timestamp("us"), pa.float64()):
        try:
            values = texts.cast(kind)
        except pa.ArrowInvalid:
            continue
        back = values.cast(pa.string())
        same = pc.equal(back, texts)
        if pa.types.is_floating(kind):
            # -0.0 and 0.0 are one number, so they may not be two texts.
            values = pc.add(values, 0.0)
            same = pc.or_(same, pc.equal(pc.binary_join_element_wise(back, ".0", ""), texts))
        if len(texts) and pc.all(same).as_py() and len(values.unique()) == len(values):
            return values
    return texts


def _read_start(file: Path) -> tuple[str, bool]:
    """The beginning of a file, long enough for its first records, and whether it is the whole file."""
    size = HEAD_BYTES
    while True:
        with pa.input_stream(str(file)) as stream:
            start = stream.read(size)
        whole = len(start) < size
        try:
            head = codecs.getincrementaldecoder("utf-8-sig")().decode(start)
        except UnicodeDecodeError as error:
            raise not_utf8(file) from error
        # A line break in quotes does not end the header, so two records tell that it is complete.
        if whole or len(list(islice(_records(head, ","), 3))) == 3:
            return head, whole
        size *= 8


def _records(head: str, separator: str) -> Iterator[list[str]]:
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield from (record for record in csv.reader(io.StringIO(head, newline=""), delimiter=separator) if record)
    except csv.Error:
        # The parser proper will say what is wrong; this record is not the last one.
        yield [""]
    finally:
        csv.field_size_limit(limit)


def _sniff_separator(head: str, whole: bool) -> str:
    """The separator that gives the first records the same number of fields, or else the header the most."""

    def fields(separator: str) -> tuple[int, int]:
        counts = [len(record) for record in islice(_records(head, separator), SNIFFED_RECORDS + 1)]
        # The last record may be cut off.
        counts = counts[:SNIFFED_RECORDS] if whole or len(counts) > SNIFFED_RECORDS else counts[:-1]
        header = counts[0] if counts else 0
        return (header if header > 1 and len(set(counts)) == 1 else 0, header)

    return max(SEPARATORS, key=lambda separator: (fields(separator), -SEPARATORS.index(separator)))


def has_any(file: Path, signs: bytes) -> bool:
    """Whether one of these bytes may be in a file; of a compressed one that is not known.

    Without quotes, which may hold line breaks, the parser is faster.
    """
    if file.name.lower().endswith(".gz"):
        return True
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(bytes([sign])) >= 0 for sign in signs)


def not_utf8(file: Path) -> TableReadError:
    """What to raise for a file that holds other bytes than UTF-8 has."""
    return TableReadError(
        f"{file}: could not be read as CSV: expected text in UTF-8. Save it as UTF-8, or check that it is what its "
        "name says."
    )


class CsvSource(Source):
    """CSV files; all fields are read as text."""

    ascending = False

    def __init__(self, found: Input) -> None:
        heads = read_heads(found.files, found.sep)
        self._heads = dict(zip(found.files, heads, strict=True))
        super().__init__(found, heads[0].names)

    def labels(self, merged: pa.Array) -> pa.Array:
        return merged if pa.types.is_null(merged.type) else typed_texts(merged)

    def as_given(self, piece: pa.Table) -> pa.Table:
        """See `Source`; as text, for what a column's type is only all of its values say."""
        return piece.cast(pa.schema([(name, pa.string()) for name in piece.column_names]))

    def _unreadable(self, file: Path, error: Exception) -> TableReadError:
        return not_utf8(file) if "UTF8" in str(error) else super()._unreadable(file, error)

    def nothing(self) -> pa.Table:
        return pa.schema([(name, pa.string()) for name in self.names]).empty_table()

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        head = self._heads[file]
        if head.alone:
            yield pa.table({name: pa.array([], TEXT) for name in columns})
            return
        done = 0
        before = self.bytes_read
        try:
            with pa.OSFile(str(file)) as raw:
                stream = pa.CompressedInputStream(raw, "gzip") if file.name.lower().endswith(".gz") else raw
                with arrow_csv.open_csv(stream, **parser_options(file, head, columns)) as opened:
                    for batch in opened:
                        self.bytes_read = before + raw.tell()
                        yield pa.Table.from_batches([batch])
                        done += batch.num_rows
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"{error}, after row {done:,}") from error
