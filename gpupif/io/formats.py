"""The list of formats of table files. A new format is a module such as `csv_files` and an entry here."""

from __future__ import annotations

from pathlib import Path

from .base import FileFormat
from .csv_files import CsvFormat
from .feather_files import FeatherFormat
from .parquet_files import ParquetFormat

PARQUET, CSV, FEATHER = ParquetFormat(), CsvFormat(), FeatherFormat()
FORMATS: tuple[FileFormat, ...] = (PARQUET, CSV, FEATHER)
READ_ENDINGS = tuple(ending for file_format in FORMATS for ending in file_format.endings)
WRITTEN_ENDINGS = tuple(ending for file_format in FORMATS for ending in file_format.written)


def read_format(file: Path) -> FileFormat | None:
    """Return the format of a file to read, by the file's name; None if its ending is not in `READ_ENDINGS`."""
    return next((known for known in FORMATS if file.name.lower().endswith(known.endings)), None)


def written_format(output: Path) -> FileFormat:
    """Return the format of an output, by its name. An output without an ending is a folder of Parquet files."""
    return next((known for known in FORMATS if output.name.lower().endswith(known.written)), PARQUET)
