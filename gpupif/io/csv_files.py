"""CSV files, read and written. Fields are texts; a column becomes numbers or dates if all texts read the same back."""

from __future__ import annotations

import csv
import io
import mmap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from ..errors import OutputError, TableReadError
from ..rows.threads import Workers
from .base import Describe, FileFormat, Input, Pick, Source, mark_encoded
from .csv_chunks import TEXT, Fields, is_packed, read_chunks, stream_chunks
from .csv_separator import CsvHeader, any_field_size, not_utf8, read_headers
from .csv_writer import CsvWriter
from .file_errors import unreadable

# Bytes whose quotes are counted at once.
COUNTED_BYTES = 1 << 20
# Types that texts may spell. The first type that fits all texts of a column is taken.
TYPED = (pa.int64(), pa.bool_(), pa.date32(), pa.timestamp("s"), pa.timestamp("us"), pa.float64())
# Tests for types whose values cannot be written to CSV.
UNWRITTEN = (
    pa.types.is_nested,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
)


class CsvFormat(FileFormat):
    """The format CSV."""

    name = "CSV"
    endings = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
    written = (".csv",)
    dataset = "csv"
    as_text = True
    metadata_last = False
    repeated = True

    def read(self, input_files: Input, pick: Pick) -> pa.Table:
        """See `FileFormat`; columns are dictionaries, of numbers or dates if all texts spell them; see `decode`."""
        heads = read_headers(input_files.files, input_files.sep)
        names = heads[0].names
        columns = pick(names)
        wanted = columns or names
        files = zip(input_files.files, heads, strict=True)
        table = pa.concat_tables([_read_texts(file, head, wanted).select(wanted) for file, head in files])
        with Workers() as workers:
            typed = workers.run(_typed, [(column,) for column in table.columns])
        return mark_encoded(pa.table(typed, names=wanted), names)

    def open(self, input_files: Input) -> Source:
        return CsvSource(input_files)

    def writer(self, sink: IO[bytes], file: Path, schema: pa.Schema, describe: Describe) -> Any:
        """See `FileFormat`; raises OutputError for columns whose values cannot be written to CSV."""
        unwritten = {
            kind
            for kind in {*schema.types}
            if any(is_one(kind.value_type if pa.types.is_dictionary(kind) else kind) for is_one in UNWRITTEN)
        }
        for field in schema if unwritten else ():
            if field.type in unwritten:
                raise OutputError(
                    f"{file}: column {field.name!r}, of type {field.type}, has no place in CSV. Choose .parquet, or "
                    "leave it out."
                )
        return CsvWriter(sink, schema)


def parser_options(file: Path, head: CsvHeader, columns: Sequence[str]) -> dict[str, Any]:
    """Return options with which pyarrow parses a CSV file: each field is text, an empty field is missing.

    Raises TableReadError if a quote is not closed: pyarrow would take all text after it for a single field.
    """
    names, quoted = head.names, has_any(file, b'"')
    if quoted:
        check_quotes(file, head.separator)
    return {
        # In a file of one column an empty line is a missing value.
        "parse_options": arrow_csv.ParseOptions(
            delimiter=head.separator, newlines_in_values=quoted, ignore_empty_lines=len(names) > 1
        ),
        "convert_options": arrow_csv.ConvertOptions(
            null_values=[""],
            strings_can_be_null=True,
            column_types=dict.fromkeys(names, TEXT),
            include_columns=list(columns),
        ),
    }


def _read_texts(file: Path, head: CsvHeader, columns: Sequence[str]) -> pa.Table:
    """Return columns of a CSV file, with all fields as text."""
    if head.alone:
        return pa.table({name: pa.array([], TEXT) for name in columns})
    try:
        table = read_chunks(file, _fields(head, columns))
        return _parse(file, parser_options(file, head, columns)) if table is None else table
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, "CSV", error) from error


def _fields(head: CsvHeader, columns: Sequence[str]) -> Fields:
    place_of = {name: place for place, name in enumerate(columns)}
    places = [place_of.get(name, -1) for name in head.names]
    return Fields(head.size, head.separator, columns, places)


def _parse(file: Path, options: dict[str, Any]) -> pa.Table:
    try:
        return arrow_csv.read_csv(str(file), **options)
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise not_utf8(file) from error
        # On one thread the parser knows the number of the line, and its message has the number.
        return arrow_csv.read_csv(str(file), read_options=arrow_csv.ReadOptions(use_threads=False), **options)


def _typed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column of texts with the values that the texts spell, see `typed_texts`."""
    column = column.unify_dictionaries()
    if column.num_chunks == 0:
        return column
    values = typed_texts(column.chunk(0).dictionary)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(chunk.indices, values) for chunk in column.chunks])


def typed_texts(texts: pa.Array) -> pa.Array:
    """Return distinct texts as integers, numbers, booleans, dates or times, if all read the same back; else as texts.

    "007", "1.50" and "-0" make their column stay text.
    """
    return next((values for kind in TYPED if (values := texts_as(kind, texts)) is not None), texts)


def texts_as(kind: pa.DataType, texts: pa.Array) -> pa.Array | None:
    """Return distinct texts as values of a type.

    None if a text is no value of the type or does not read the same back, or if two texts are one value.
    """
    try:
        values = texts.cast(kind)
    except pa.ArrowInvalid:
        return None
    back = values.cast(pa.string())
    same = pc.equal(back, texts)
    if pa.types.is_floating(kind):
        # -0.0 and 0.0 are one number, so they may not be two texts.
        values = pc.add(values, 0.0)
        same = pc.or_(same, pc.equal(pc.binary_join_element_wise(back, ".0", ""), texts))
    return values if len(texts) and pc.all(same).as_py() and len(values.unique()) == len(values) else None


def has_any(file: Path, signs: bytes) -> bool:
    """Return whether one of these bytes may be in a file; True for a compressed file.

    Arrow parses faster if there are no quotes: a line break within quotes ends no line.
    """
    if is_packed(file):
        return True
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(bytes([sign])) >= 0 for sign in signs)


def check_quotes(file: Path, separator: str) -> None:
    """Raise TableReadError if a file ends within quotes."""
    with pa.input_stream(str(file)) as stream:
        quotes = sum(chunk.count(b'"') for chunk in iter(lambda: stream.read(COUNTED_BYTES), b""))
    # A quote in the middle of a field opens nothing, but only an odd number of quotes can leave one open.
    if quotes % 2 == 0:
        return
    with pa.input_stream(str(file)) as stream, any_field_size():
        lines = csv.reader(io.TextIOWrapper(stream, "utf-8", "replace", newline=""), delimiter=separator, strict=True)
        last = 0
        try:
            for _ in lines:
                last = lines.line_num
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise TableReadError(
                    f"{file}: could not be read as CSV: a quote is opened in or behind line {last + 1}, and not closed "
                    "before the end of the file. Close it, or write a quote that belongs to a value twice, in quotes."
                ) from error


class CsvSource(Source):
    """CSV files; all fields are read as text."""

    ascending = False

    def __init__(self, input_files: Input) -> None:
        heads = read_headers(input_files.files, input_files.sep)
        self._heads = dict(zip(input_files.files, heads, strict=True))
        super().__init__(input_files, heads[0].names)

    def labels(self, merged: pa.Array) -> pa.Array:
        return merged if pa.types.is_null(merged.type) else typed_texts(merged)

    def labels_in_parts(self, parts: Callable[[], Iterator[pa.Array]]) -> Iterator[pa.Array]:
        kinds: Sequence[pa.DataType] = TYPED
        for texts in filter(len, parts()):
            kinds = [kind for kind in kinds if texts_as(kind, texts) is not None]
            if not kinds:
                return parts()
        return (texts_as(kinds[0], texts) if len(texts) else texts for texts in parts())

    def part_key(self, merged: pa.Array) -> pa.Array:
        """See `Source`. The texts 1.0 and 1 may be one number, so both have the key 1."""
        return pc.replace_substring_regex(merged, r"\.0$", "")

    def as_given(self, chunk: pa.Table) -> pa.Table:
        """See `Source`. Columns are text: the type of a column follows only from all its values."""
        return chunk.cast(pa.schema([(name, pa.string()) for name in chunk.column_names]))

    def _unreadable(self, file: Path, error: Exception, where: str = "") -> TableReadError:
        return not_utf8(file) if "UTF8" in str(error) else super()._unreadable(file, error, where)

    def nothing(self) -> pa.Table:
        return pa.schema([(name, pa.string()) for name in self.names]).empty_table()

    def _read_file(self, file: Path, columns: list[str], rows: int, size: int) -> Iterator[pa.Table]:
        head = self._heads[file]
        if head.alone:
            yield pa.table({name: pa.array([], TEXT) for name in columns})
            return
        before, end, rows = self.bytes_read, 0, 0
        for end, chunk in stream_chunks(file, _fields(head, columns)):
            self.bytes_read = before + end
            yield chunk
            rows += chunk.num_rows
        if end < self.stamps[file].size:
            yield from self._read_rest(file, head, columns, before, rows)

    def _read_rest(self, file: Path, head: CsvHeader, columns: list[str], before: int, rows: int) -> Iterator[pa.Table]:
        """Yield the rows after the first `rows` rows of a file. before: the bytes of the files that were read before.

        Raises TableReadError with the number of the row that cannot be read.
        """
        done = 0
        try:
            with pa.OSFile(str(file)) as raw:
                stream = pa.CompressedInputStream(raw, "gzip") if is_packed(file) else raw
                with arrow_csv.open_csv(stream, **parser_options(file, head, columns)) as opened:
                    for batch in opened:
                        self.bytes_read = max(self.bytes_read, before + raw.tell())
                        yield pa.Table.from_batches([batch.slice(min(batch.num_rows, max(0, rows - done)))])
                        done += batch.num_rows
        except pa.ArrowInvalid as error:
            self.check_unchanged([file])
            raise self._unreadable(file, error, f", after row {done:,}") from error
