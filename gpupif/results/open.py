"""The public `open_scores`: scores opened again from the files that they were written to."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from ..errors import InputError, TableReadError, reason_of
from ..io.base import stamps_of
from ..io.formats import CSV, written_format
from ..utils.validation import check_path
from .cell_file import CellFileBacking
from .in_files import FileBacking, StoredBacking
from .provenance import FOLDER_FILE, read_description, read_text, tells_all
from .scores import Scores

# A URL, which pathlib would take for a path.
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def open_scores(path: str | os.PathLike[str]) -> Scores:
    """Open scores that were written to files, with the description in these files.

    Parameters
    ----------
    path:
        The output of `gpupif.score_files` or `Scores.to_parquet`: a Parquet or Feather file, or a folder of Parquet
        files. Scores are read on request only.

    Returns
    -------
    Scores
        The scores as they were written; names of columns are text. ``summary()`` is the summary of the run, without
        times of stages. Only small prior tables are there: the files keep those of fewest values, up to 1 MiB.
        ``scores.provenance`` has the request and the table. `Scores.top` leaves out what takes the table itself.

    Raises
    ------
    InputError
        `path` is no path; the file was not written by gpupif; it is CSV, which has no description; or it is one file of
        a folder that Dask wrote.
    TableReadError
        There is no such file, or it cannot be read.

    """
    check_path("path", path, "a file or folder of scores")
    if URL.match(os.fspath(path)):
        raise InputError(
            f"path: expected the path of a file or folder, got the URL {os.fspath(path)}. Copy what is there to a disk "
            "first."
        )
    place = Path(path)
    try:
        return Scores(_open(place))
    except (pa.ArrowException, OSError) as error:
        raise TableReadError(f"{place}: could not be read as scores: {reason_of(error)}.") from error


def _file_that_tells(place: Path, files: Sequence[Path]) -> Path:
    """Return the file of a folder whose description says most about all scores.

    It is the file that was written last; `FOLDER_FILE` in folders of older versions; any file if these are missing.
    Raises InputError for files of several runs.
    """
    # The file written last is nearly always the last by name, too.
    tells = next((file for file in reversed(files) if tells_all(file)), place / FOLDER_FILE)
    if tells.exists():
        return tells
    _check_of_one_run(place, files)
    return files[0]


def _check_of_one_run(place: Path, files: Sequence[Path]) -> None:
    """Raise InputError if the files of a folder, none of which describes all scores, have different descriptions."""
    for file in files[1:]:
        if read_text(file) != read_text(files[0]):
            raise InputError(
                f"{place}: expected the files of one run, got those of several: {files[0].relative_to(place)} and "
                f"{file.relative_to(place)} say different things of themselves. Open each of them."
            )


def _open(place: Path) -> StoredBacking:
    if written_format(place) is CSV and not place.is_dir():
        raise InputError(
            f"{place}: CSV does not keep what scores are of. Open scores in Parquet or Feather, or read the file as a "
            "table."
        )
    if not place.exists():
        raise TableReadError(f"{place}: there is no such file or folder.")
    if place.is_file() and place.suffix.lower() == ".json":
        raise InputError(
            f"{place}: a summary in JSON (--summary-only, --json) holds no scores. Read it as JSON, or open the file "
            "or folder that the scores were written to."
        )
    files = sorted(place.rglob("*.parquet")) if place.is_dir() else [place]
    told = _file_that_tells(place, files) if place.is_dir() and files else place
    description = read_description(told) if told.is_file() else None
    if description is None:
        raise InputError(
            f"{place}: expected scores that gpupif wrote, which say what they are of; got "
            f"{'a file' if place.is_file() else 'a folder'} that does not. Score the table again."
        )
    if not description.facts or not all(outcome.weights for outcome in description.outcomes):
        if place.is_dir():
            raise InputError(
                f"{place}: expected all files of scores that Dask wrote; the last one, which describes all scores, is "
                "missing. Put it back, or score the table again."
            )
        raise InputError(f"{place}: is a part of scores that Dask wrote. Open the folder that it lies in.")
    if description.files and place.is_dir():
        files = [place / name for name in description.files]
    # Stamps come before reading, so that a file that is replaced meanwhile is noticed.
    stamps = stamps_of(file.absolute() for file in files)
    if description.cells is not None:
        return CellFileBacking(place.absolute(), stamps, description, description.rows)
    rows = ds.dataset([str(file) for file in files], format=written_format(files[0]).dataset).count_rows()
    if rows != description.rows:
        # Some files are missing: the facts about all rows do not hold.
        outcomes = [replace(outcome, summaries={}, distinct_rows=None) for outcome in description.outcomes]
        description = replace(description, outcomes=outcomes)
    return FileBacking(place.absolute(), stamps, description, rows)
