"""The search for the files that a path names: a file, a folder of Parquet files, or a pattern such as data/*.csv."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError, TableReadError
from ..utils.given_files import refuse_named_pipe
from .base import FileFormat, Input, Source
from .csv_separator import check_separator
from .file_errors import denied
from .formats import CSV, PARQUET, READ_ENDINGS, read_format


def find_input(path: str | os.PathLike[str], sep: str | None = None) -> Input:
    """Return the files that a path names.

    path: a path, or an `Input` or a `Source`, whose files are returned. sep: the separator of CSV. Default: the
    separator that the first lines agree on.

    Raises TableReadError if there is no file, if a file is empty or of an unknown format, or if files have several
    formats. Raises it for a folder that cannot be read, too. Raises InputError if `sep` is no separator, or if the
    files are not CSV.
    """
    if isinstance(path, Source):
        return path.input_files
    try:
        return path if isinstance(path, Input) else _find_input(Path(path), sep)
    except OSError as error:
        raise denied(Path(error.filename or path), error) from error


def _find_input(path: Path, sep: str | None) -> Input:
    if path.is_dir():
        named = Input(path, PARQUET, path, _parquet_files(path))
    elif path.exists():
        named = Input(path, _format_of(path), path.parent, [path])
    elif glob.has_magic(str(path)):
        named = _matching(path)
    else:
        raise TableReadError(f"{path}: no such file or folder. Check the path.")
    if sep is not None:
        check_separator(sep)
        if named.format is not CSV:
            raise InputError(f"sep: {path} is no CSV file, so it has no separator. Leave sep out.")
        named = named._replace(sep=sep)
    for file in named.files:
        try:
            refuse_named_pipe(file)
        except OSError as error:
            raise denied(file, error) from None
    if not path.is_dir():
        for file in named.files:
            if file.stat().st_size == 0:
                raise TableReadError(
                    f"{file}: the file is empty (0 bytes). Expected a {named.format.name} file with a table in it."
                )
    return named


def _format_of(file: Path) -> FileFormat:
    file_format = read_format(file)
    if file_format is None:
        raise TableReadError(
            f"{file}: expected a folder of Parquet files or a file name ending in {', '.join(READ_ENDINGS)}. Save "
            "anything else, such as a spreadsheet, as CSV."
        )
    return file_format


def _parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files in a folder and in all folders below it.

    Files and folders whose name begins with a full stop or an underscore are left out, such as _SUCCESS.
    """
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
    """Return the format that all files have; raises TableReadError, with the advice `mend`, for several formats."""
    first = _format_of(files[0])
    other = next((file for file in files if _format_of(file) is not first), None)
    if other is not None:
        raise TableReadError(
            f"{path}: expected files of one kind, {files[0].name} is {first.name} and {other.name} is "
            f"{_format_of(other).name}. {mend}"
        )
    return first


def _matching(pattern: Path) -> Input:
    """Return the files that a pattern matches. As in a shell, * and ** match no hidden names."""
    first = next(place for place, part in enumerate(pattern.parts) if glob.has_magic(part))
    base = Path(*pattern.parts[:first])
    _check_folders(pattern)
    files = sorted(file for file in map(Path, glob.glob(str(pattern), recursive=True)) if file.is_file())
    if not files:
        raise TableReadError(f"{pattern}: matches no file. Check the pattern, and that the shell did not expand it.")
    file_format = _check_one_format(pattern, files, "Choose a pattern that matches only one of them.")
    return Input(pattern, file_format, base, files)


def _check_folders(pattern: Path) -> None:
    """Raise OSError if a folder that a pattern searches cannot be read: `glob` leaves such a folder out silently."""
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
