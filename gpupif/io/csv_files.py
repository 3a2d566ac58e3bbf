"""CSV: texts first, numbers and dates only where they say the same."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import mmap
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from ..errors import InputError, OutputError, TableReadError
from ..rows.threads import Workers
from ..utils.validation import check_unique
from .base import Describe, FileFormat, Input, Pick, Source, check_alike, mark_encoded
from .csv_pieces import TEXT, Fields, is_packed, read_pieces, stream_pieces
from .csv_writer import CsvWriter
from .file_errors import misnamed_file, unreadable
from .row_group import RowGroup

SEPARATORS = ",;\t|"
HEAD_BYTES = 1 << 16
# Bytes whose quotes are counted at once.
COUNTED_BYTES = 1 << 20
SNIFFED_RECORDS = 20
# What texts may be, the first that all of a column are.
TYPED = (pa.int64(), pa.bool_(), pa.date32(), pa.timestamp("s"), pa.timestamp("us"), pa.float64())

_FIELD_SIZE = threading.Lock()
# Kinds of types whose values have no place in CSV.
UNWRITTEN = (
    pa.types.is_nested,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
)


class CsvFormat(FileFormat):
    """CSV."""

    name = "CSV"
    endings = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
    written = (".csv",)
    dataset = "csv"
    as_text = True
    metadata_last = False
    repeated = True

    def read(self, found: Input, pick: Pick) -> pa.Table:
        """See `FileFormat`; texts of numbers and dates as such, as dictionaries, see `decode`."""
        heads = read_heads(found.files, found.sep)
        names = heads[0].names
        columns = pick(names)
        wanted = columns or names
        files = zip(found.files, heads, strict=True)
        table = pa.concat_tables([_read_texts(file, head, wanted).select(wanted) for file, head in files])
        with Workers() as workers:
            typed = workers.run(_typed, [(column,) for column in table.columns])
        return mark_encoded(pa.table(typed, names=wanted), names)

    def open(self, found: Input) -> Source:
        return CsvSource(found)

    def writer(self, sink: IO[bytes], file: Path, schema: pa.Schema, describe: Describe) -> Any:
        """See `FileFormat`; raises OutputError for columns that have no place in CSV."""
        for field in schema:
            values = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            if any(is_one(values) for is_one in UNWRITTEN):
                raise OutputError(
                    f"{file}: column {field.name!r}, of type {field.type}, has no place in CSV. Choose .parquet, or "
                    "leave it out."
                )
        return CsvWriter(sink, schema)

    def write(self, writer: Any, groups: Sequence[RowGroup]) -> None:
        writer.write(groups)


def check_separator(sep: str) -> None:
    """Raise InputError where `sep` cannot separate fields."""
    if not isinstance(sep, str) or len(sep) != 1 or not sep.isascii() or sep in '"\r\n\0':
        raise InputError(
            f"sep: expected one ASCII character such as ';', got {sep!r}. For a tab, in bash, write $'\\t'."
        )


class Head(NamedTuple):
    """The beginning of a CSV file: its separator and column names, in `size` bytes; alone: nothing comes after them."""

    separator: str
    names: list[str]
    size: int
    alone: bool


def read_head(file: Path, sep: str | None) -> Head:
    """What a CSV file begins with; raises TableReadError where that is no header, InputError for repeated names."""
    try:
        head, marked, whole = _read_start(file)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, "CSV", error) from error
    separator = sep if sep is not None else _sniff_separator(head, whole)
    records = list(islice(_records(head, separator), 2))
    if not records:
        raise TableReadError(f"{file}: could not be read as CSV: it has no line with anything in it.")
    names, lines = records[0]
    others = [other for other in SEPARATORS if other in names[0]] if sep is not None and len(names) == 1 else []
    if others:
        raise TableReadError(
            f"{file}: separated by {sep!r} it is one column, {names[0]!r}. Use sep={others[0]!r} instead."
        )
    check_unique(names)
    header = "".join(islice(io.StringIO(head, newline=""), lines))
    size = len(codecs.BOM_UTF8) * marked + len(header.encode())
    return Head(separator, names, size, whole and len(records) == 1)


def read_heads(files: Sequence[Path], sep: str | None) -> list[Head]:
    """What CSV files begin with; raises TableReadError where they differ in a column."""
    heads = {file: read_head(file, sep) for file in files}
    check_alike(files, lambda file: dict.fromkeys(heads[file].names, "there"))
    return list(heads.values())


def parser_options(file: Path, head: Head, columns: Sequence[str]) -> dict[str, Any]:
    """How pyarrow is to parse a CSV file: every field as text, empty ones missing.

    Raises TableReadError where a quote is not closed: pyarrow would take all that comes behind it for one field.
    """
    names, quoted = head.names, has_any(file, b'"')
    if quoted:
        check_quotes(file, head.separator)
    return {
        # In a column alone an empty line is a missing value.
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


def _read_texts(file: Path, head: Head, columns: Sequence[str]) -> pa.Table:
    """Columns of a CSV file, all fields as text."""
    if head.alone:
        return pa.table({name: pa.array([], TEXT) for name in columns})
    try:
        table = read_pieces(file, _fields(head, columns))
        return _parse(file, parser_options(file, head, columns)) if table is None else table
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, "CSV", error) from error


def _fields(head: Head, columns: Sequence[str]) -> Fields:
    places = [columns.index(name) if name in columns else -1 for name in head.names]
    return Fields(head.size, head.separator, columns, places)


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
    return next((values for kind in TYPED if (values := texts_as(kind, texts)) is not None), texts)


def texts_as(kind: pa.DataType, texts: pa.Array) -> pa.Array | None:
    """Different texts as values of a type; None where not all read the same back, and differ."""
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


def _read_start(file: Path) -> tuple[str, bool, bool]:
    """The beginning of a file, long enough for its first records; whether a byte order mark is before it, and whether
    it is the whole file.
    """
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
            return head, start.startswith(codecs.BOM_UTF8), whole
        size *= 8


def _records(head: str, separator: str) -> Iterator[tuple[list[str], int]]:
    """Records with something in them, and how many lines it is to the end of each."""
    limit = csv.field_size_limit(sys.maxsize)
    reader = csv.reader(io.StringIO(head, newline=""), delimiter=separator)
    try:
        yield from ((record, reader.line_num) for record in reader if record)
    except csv.Error:
        # The parser proper will say what is wrong; this record is not the last one.
        yield [""], reader.line_num
    finally:
        csv.field_size_limit(limit)


def _sniff_separator(head: str, whole: bool) -> str:
    """The separator that gives the first records the same number of fields, or else the header the most."""

    def fields(separator: str) -> tuple[int, int]:
        counts = [len(record) for record, _ in islice(_records(head, separator), SNIFFED_RECORDS + 1)]
        # The last record may be cut off.
        counts = counts[:SNIFFED_RECORDS] if whole or len(counts) > SNIFFED_RECORDS else counts[:-1]
        header = counts[0] if counts else 0
        return (header if header > 1 and len(set(counts)) == 1 else 0, header)

    return max(SEPARATORS, key=lambda separator: (fields(separator), -SEPARATORS.index(separator)))


def has_any(file: Path, signs: bytes) -> bool:
    """Whether one of these bytes may be in a file; of a compressed one that is not known.

    Without quotes, which may hold line breaks, the parser is faster.
    """
    if is_packed(file):
        return True
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(bytes([sign])) >= 0 for sign in signs)


def check_quotes(file: Path, separator: str) -> None:
    """Raise TableReadError where a file ends within quotes."""
    with pa.input_stream(str(file)) as stream:
        quotes = sum(chunk.count(b'"') for chunk in iter(lambda: stream.read(COUNTED_BYTES), b""))
    # Quotes in the middle of fields are none, but only an odd number can leave one open.
    if quotes % 2 == 0:
        return
    with pa.input_stream(str(file)) as stream, _any_field_size():
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


@contextlib.contextmanager
def _any_field_size() -> Iterator[None]:
    """Have the csv module of Python read fields of any size; its limit is one for all threads."""
    with _FIELD_SIZE:
        limit = csv.field_size_limit(sys.maxsize)
        try:
            yield
        finally:
            csv.field_size_limit(limit)


def not_utf8(file: Path) -> TableReadError:
    """What to raise for a file that holds other bytes than UTF-8 has."""
    return misnamed_file(file, "CSV") or TableReadError(
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

    def labels_in_parts(self, parts: Callable[[], Iterator[pa.Array]]) -> Iterator[pa.Array]:
        kinds: Sequence[pa.DataType] = TYPED
        for texts in filter(len, parts()):
            kinds = [kind for kind in kinds if texts_as(kind, texts) is not None]
            if not kinds:
                return parts()
        return (texts_as(kinds[0], texts) if len(texts) else texts for texts in parts())

    def part_key(self, merged: pa.Array) -> pa.Array:
        """See `Source`: 1.0 and 1 may be two texts, and one number."""
        return pc.replace_substring_regex(merged, r"\.0$", "")

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
        before, end, rows = self.bytes_read, 0, 0
        for end, piece in stream_pieces(file, _fields(head, columns)):
            self.bytes_read = before + end
            yield piece
            rows += piece.num_rows
        if end < self.stamps[file].size:
            yield from self._read_rest(file, head, columns, before, rows)

    def _read_rest(self, file: Path, head: Head, columns: list[str], before: int, rows: int) -> Iterator[pa.Table]:
        """What comes after so many rows of a file; before: bytes read before it."""
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
            raise pa.ArrowInvalid(f"{error}, after row {done:,}") from error
