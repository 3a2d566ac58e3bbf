"""The separator of a CSV file and the names of its columns, found in its first lines."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import sys
import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ..errors import InputError, TableReadError
from ..utils.validation import check_unique, table_value
from .base import check_alike
from .file_errors import misnamed_file, unreadable

SEPARATORS = ",;\t|"
# Bytes that are read at first, and the number of records that have to agree on the number of fields.
HEAD_BYTES, SNIFFED_RECORDS = 1 << 16, 20
_FIELD_SIZE = threading.Lock()


def check_separator(sep: str) -> None:
    """Raise InputError unless `sep` is a text of one ASCII character that may separate fields."""
    if not isinstance(sep, str) or len(sep) != 1 or not sep.isascii() or sep in '"\r\n\0':
        raise InputError(
            f"sep: expected one ASCII character such as ';', got {sep!r}. For a tab, in bash, write $'\\t'."
        )


class CsvHeader(NamedTuple):
    """The first record of a CSV file.

    separator: the character between fields. names: the names of the columns. size: its bytes, with a byte order mark.
    alone: whether no row follows.
    """

    separator: str
    names: list[str]
    size: int
    alone: bool


def read_header(file: Path, sep: str | None) -> CsvHeader:
    """Return the header of a CSV file. sep: the separator; None: the separator that the first records agree on.

    Raises TableReadError for a file without a header, InputError for names that repeat.
    """
    try:
        head, marked, whole = _read_start(file)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, "CSV", error) from error
    separator = sep if sep is not None else _sniff_separator(head, whole)
    records = _records(head, separator, 2)
    if not records:
        raise TableReadError(f"{file}: could not be read as CSV: it has no line with anything in it.")
    names, lines = records[0]
    candidates = [sign for sign in SEPARATORS if sign in names[0]] if sep is not None and len(names) == 1 else []
    if candidates:
        raise TableReadError(
            f"{file}: separated by {sep!r} it is one column, {table_value(names[0])}. Use "
            f"sep={candidates[0]!r} instead."
        )
    check_unique(names)
    header = "".join(islice(io.StringIO(head, newline=""), lines))
    size = len(codecs.BOM_UTF8) * marked + len(header.encode())
    return CsvHeader(separator, names, size, whole and len(records) == 1)


def read_headers(files: Sequence[Path], sep: str | None) -> list[CsvHeader]:
    """Return the headers of CSV files; raises TableReadError if they differ in a column."""
    headers = {file: read_header(file, sep) for file in files}
    check_alike(files, "CSV", lambda file: dict.fromkeys(headers[file].names, "there"))
    return list(headers.values())


def _read_start(file: Path) -> tuple[str, bool, bool]:
    """Return the first lines of a file, at least two records.

    Returns the text of the lines, whether a byte order mark comes before it, and whether it is the whole file.
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
        if whole or len(_records(head, ",", 3)) == 3:
            return head, start.startswith(codecs.BOM_UTF8), whole
        size *= 8


def _records(text: str, separator: str, most: int) -> list[tuple[list[str], int]]:
    """Return the first `most` records that are not empty, each with the number of lines up to its end."""
    records: list[tuple[list[str], int]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    with any_field_size():
        try:
            for record in filter(None, reader):
                records.append((record, reader.line_num))
                if len(records) == most:
                    break
        except csv.Error:
            # The parser will report the error. Add a record: the record before it is not the last record of the file.
            records.append(([""], reader.line_num))
    return records


def _sniff_separator(head: str, whole: bool) -> str:
    """Return the separator that gives the first records the same number of fields, else the header the most fields."""

    def fields(separator: str) -> tuple[int, int]:
        counts = [len(record) for record, _ in _records(head, separator, SNIFFED_RECORDS + 1)]
        # The text may end in the middle of the last record.
        counts = counts[:SNIFFED_RECORDS] if whole or len(counts) > SNIFFED_RECORDS else counts[:-1]
        header = counts[0] if counts else 0
        return (header if header > 1 and len(set(counts)) == 1 else 0, header)

    return max(SEPARATORS, key=lambda separator: (fields(separator), -SEPARATORS.index(separator)))


@contextlib.contextmanager
def any_field_size() -> Iterator[None]:
    """Have Python's csv module read fields of any size while the block runs; all threads share its limit."""
    with _FIELD_SIZE:
        limit = csv.field_size_limit(sys.maxsize)
        try:
            yield
        finally:
            csv.field_size_limit(limit)


def not_utf8(file: Path) -> TableReadError:
    """Return the error for a file that is not in UTF-8."""
    return misnamed_file(file, "CSV") or TableReadError(
        f"{file}: could not be read as CSV: expected text in UTF-8. Save it as UTF-8, or check that it is what its "
        "name says."
    )
