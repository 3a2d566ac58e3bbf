"""Which files a path names: one file, a folder of Parquet files, or a pattern such as data/**/*.parquet."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError, TableReadError

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
FEATHER = (".feather", ".arrow", ".ipc")
KINDS = {"Parquet": PARQUET, "CSV": CSV, "Feather": FEATHER}


class Input(NamedTuple):
    """What a path names.

    path: as it was given. kind: "Parquet", "CSV" or "Feather". base: the folder that the files lie in, in folders of
    it perhaps; files: in order of their paths, which is that of the table's rows.
    """

    path: Path
    kind: str
    base: Path
    files: Sequence[Path]

    @property
    def places(self) -> Sequence[Path]:
        """What nothing may be written over, or into."""
        return [*self.files, self.path] if self.path.is_dir() else self.files

    @property
    def several(self) -> bool:
        """Whether it is a folder or a pattern, so that there may be any number of files."""
        return self.path != self.files[0]


def find_input(path: Path, sep: str | None = None) -> Input:
    """The files that a path names.

    Raises TableReadError where there are none, they are empty, of a kind that is not known, or of several kinds, or
    where a folder among theirs cannot be read, and InputError where `sep` is no separator or the files are not CSV.
    """
    try:
        return _find_input(path, sep)
    except OSError as error:
        raise denied(Path(error.filename or path), error) from error


def denied(place: Path, error: OSError) -> TableReadError:
    """What to raise for a file or folder that the system does not let us read."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    mend = " Check its rights, and those of its folders." if isinstance(error, PermissionError) else ""
    return TableReadError(f"{place}: could not be read: {reason}.{mend}")


def _find_input(path: Path, sep: str | None) -> Input:
    from .csv_files import check_separator

    if path.is_dir():
        found = Input(path, "Parquet", path, _parquet_files(path))
    elif path.exists():
        found = Input(path, _kind(path), path.parent, [path])
    elif glob.has_magic(str(path)):
        found = _matching(path)
    else:
        raise TableReadError(f"{path}: no such file or folder. Check the path.")
    if sep is not None:
        check_separator(sep)
        if found.kind != "CSV":
            raise InputError(f"sep: {path} is no CSV file, so it has no separator. Leave sep out.")
    if not path.is_dir():
        for file in found.files:
            if file.stat().st_size == 0:
                raise TableReadError(
                    f"{file}: the file is empty (0 bytes). Expected a {found.kind} file with a table in it."
                )
    return found


def _kind(file: Path) -> str:
    for kind, endings in KINDS.items():
        if file.name.lower().endswith(endings):
            return kind
    known = ", ".join(ending for endings in KINDS.values() for ending in endings)
    raise TableReadError(
        f"{file}: expected a folder of Parquet files or a file name ending in {known}. Save anything else, "
        "such as a spreadsheet, as CSV."
    )


def _parquet_files(folder: Path) -> list[Path]:
    """The Parquet files in a folder and those in it, but for hidden ones and such as _SUCCESS."""
    listed = []
    for place, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if name[0] not in "._"]
        listed += [Path(place, name) for name in names if name[0] not in "._"]
    endings = tuple(ending for several in KINDS.values() for ending in several)
    known = [file for file in sorted(listed) if file.name.lower().endswith(endings)]
    if not any(_kind(file) == "Parquet" for file in known):
        raise TableReadError(
            f"{folder}: expected a folder with .parquet files in it, found none. For others give a pattern, "
            f"such as '{folder}/*.csv'."
        )
    _check_one_kind(folder, known, f"Choose a pattern that matches only one of them, such as '{folder}/**/*.parquet'.")
    return known


def _refuse(error: OSError) -> None:
    raise error


def _check_one_kind(path: Path, files: Sequence[Path], mend: str) -> str:
    """The kind of all these files; TableReadError where there are several."""
    kind = _kind(files[0])
    other = next((file for file in files if _kind(file) != kind), None)
    if other is not None:
        raise TableReadError(
            f"{path}: expected files of one kind, {files[0].name} is {kind} and {other.name} is {_kind(other)}. {mend}"
        )
    return kind


def _matching(pattern: Path) -> Input:
    """The files that a pattern matches; as in a shell, * and ** match no hidden names."""
    first = next(place for place, part in enumerate(pattern.parts) if glob.has_magic(part))
    base = Path(*pattern.parts[:first])
    _check_folders(pattern)
    files = sorted(file for file in map(Path, glob.glob(str(pattern), recursive=True)) if file.is_file())
    if not files:
        raise TableReadError(f"{pattern}: matches no file. Check the pattern, and that the shell did not expand it.")
    kind = _check_one_kind(pattern, files, "Choose a pattern that matches only one of them.")
    return Input(pattern, kind, base, files)


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
