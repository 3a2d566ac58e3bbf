"""Which files a path names: one file, a folder of Parquet files, or a pattern such as data/**/*.parquet."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError, TableReadError
from .base import FileFormat, Input, Source
from .csv_separator import check_separator
from .file_errors import denied
from .formats import CSV, PARQUET, READ_ENDINGS, read_format


def find_input(path: str | os.PathLike[str], sep: str | None = None) -> Input:
    """The files that a path names; sep: the separator of CSV (None: found by itself). Found files are as they were.

    Raises TableReadError where there are none, they are empty, of a kind that is not known, or of several kinds, or
    where a folder among theirs cannot be read, and InputError where `sep` is no separator or the files are not CSV.
    """
    if isinstance(path, Source):
        return path.found
    try:
        return path if isinstance(path, Input) else _find_input(Path(path), sep)
    except OSError as error:
        raise denied(Path(error.filename or path), error) from error


def _find_input(path: Path, sep: str | None) -> Input:
    if path.is_dir():
        found = Input(path, PARQUET, path, _parquet_files(path))
    elif path.exists():
        found = Input(path, _format_of(path), path.parent, [path])
    elif glob.has_magic(str(path)):
        found = _matching(path)
    else:
        raise TableReadError(f"{path}: no such file or folder. Check the path.")
    if sep is not None:
        check_separator(sep)
        if found.format is not CSV:
            raise InputError(f"sep: {path} is no CSV file, so it has no separator. Leave sep out.")
        found = found._replace(sep=sep)
    if not path.is_dir():
        for file in found.files:
            if file.stat().st_size == 0:
                raise TableReadError(
                    f"{file}: the file is empty (0 bytes). Expected a {found.format.name} file with a table in it."
                )
    return found


def _format_of(file: Path) -> FileFormat:
    found = read_format(file)
    if found is None:
        raise TableReadError(
            f"{file}: expected a folder of Parquet files or a file name ending in {', '.join(READ_ENDINGS)}. Save "
            "anything else, such as a spreadsheet, as CSV."
        )
    return found


def _parquet_files(folder: Path) -> list[Path]:
    """The Parquet files in a folder and those in it, but for hidden ones and such as _SUCCESS."""
    listed = []
    for place, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if name[0] not in "._"]
        listed += [Path(place, name) for name in names if name[0] not in "._"]
    known = [file for file in sorted(listed) if read_format(file) is not None]
    if not any(read_format(file) is PARQUET for file in known):
        raise TableReadError(
            f"{folder}: expected a folder with .parquet files in it, found none. For others give a pattern, "
            f"such as '{folder}/*.csv'."
        )
    _check_one_format(
        folder, known, f"Choose a pattern that matches only one of them, such as '{folder}/**/*.parquet'."
    )
    return known


def _refuse(error: OSError) -> None:
    raise error


def _check_one_format(path: Path, files: Sequence[Path], mend: str) -> FileFormat:
    """The format of all these files; TableReadError where there are several."""
    found = _format_of(files[0])
    other = next((file for file in files if _format_of(file) is not found), None)
    if other is not None:
        raise TableReadError(
            f"{path}: expected files of one kind, {files[0].name} is {found.name} and {other.name} is "
            f"{_format_of(other).name}. {mend}"
        )
    return found


def _matching(pattern: Path) -> Input:
    """The files that a pattern matches; as in a shell, * and ** match no hidden names."""
    first = next(place for place, part in enumerate(pattern.parts) if glob.has_magic(part))
    base = Path(*pattern.parts[:first])
    _check_folders(pattern)
    files = sorted(file for file in map(Path, glob.glob(str(pattern), recursive=True)) if file.is_file())
    if not files:
        raise TableReadError(f"{pattern}: matches no file. Check the pattern, and that the shell did not expand it.")
    found = _check_one_format(pattern, files, "Choose a pattern that matches only one of them.")
    return Input(pattern, found, base, files)


def _check_folders(pattern: Path) -> None:
    """Raise OSError for a folder among those that a pattern looks into which cannot be read: `glob` leaves it out."""
    parts = pattern.parts
    looked_into = {
        Path(folder)
        for place, part in enumerate(parts)
        if glob.has_magic(part)
        for end in {place, place + (part == "**")}
        for folder in glob.glob(str(Path(*parts[:end])), recursive=True)
    }
    for folder in sorted(looked_into):
        if folder.is_dir():
            with os.scandir(folder):
                pass
