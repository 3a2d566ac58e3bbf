"""The formats of table files that there are; another one is a module such as `csv_files` and a line here."""

from __future__ import annotations

from pathlib import Path

from .base import FileFormat
from .csv_files import CsvFormat
from .feather_files import FeatherFormat
from .parquet_files import ParquetFormat

PARQUET, CSV, FEATHER = ParquetFormat(), CsvFormat(), FeatherFormat()
FORMATS: tuple[FileFormat, ...] = (PARQUET, CSV, FEATHER)
READ_ENDINGS = tuple(ending for one in FORMATS for ending in one.endings)
WRITTEN_ENDINGS = tuple(ending for one in FORMATS for ending in one.written)


def read_format(file: Path) -> FileFormat | None:
    """The format of a file to read, by its name; None where its ending is none of `READ_ENDINGS`."""
    return next((one for one in FORMATS if file.name.lower().endswith(one.endings)), None)


def written_format(output: Path) -> FileFormat:
    """The format that an output is written in, by its name; one without an ending is a folder of Parquet files."""
    return next((one for one in FORMATS if output.name.lower().endswith(one.written)), PARQUET)
