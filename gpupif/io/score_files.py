"""The score files that a run writes: one for each input file, files of a number of rows, or a single file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import OutputError
from .base import Input
from .formats import READ_ENDINGS, WRITTEN_ENDINGS
from .run_files import check_apart
from .write import check_parent, exists_already

# The key in the metadata of every score file of a folder, by which a later run recognises score files.
MARK = b"gpupif"
# Files that Dask may write beside score files.
DASK_INDEX = ("_metadata", "_common_metadata")


class ScoreFile(NamedTuple):
    """A score file. path: within the output. start, stop: the rows of the table that it holds, without `stop`."""

    path: str
    start: int
    stop: int


def is_file(output: Path) -> bool:
    """Return whether an output is a single file; else it is a folder."""
    return output.name.lower().endswith(WRITTEN_ENDINGS) and not output.is_dir()


def check_folder(output: Path, overwrite: bool, input_files: Input, hint: str = "") -> None:
    """Refuse a folder for scores that could not be written, before any work is done.

    hint: half a sentence with the reason why the folder may exist. Raises OutputError if the folder has no parent
    folder, contains the input or is inside it, or exists and is not empty. With `overwrite` it may contain score files
    of gpupif, and nothing else.
    """
    check_apart({"": output}, {"": input_files})
    if output.exists() and not output.is_dir():
        raise OutputError(f"{output}: is a file; expected a folder, or a name ending in {', '.join(WRITTEN_ENDINGS)}.")
    if not output.exists() and output.suffix:
        raise OutputError(
            f"{output}: expected an output name ending in {', '.join(WRITTEN_ENDINGS)}, or one without, for a folder."
        )
    check_replaceable(output, overwrite, hint)


def check_replaceable(output: Path, overwrite: bool, hint: str = "") -> None:
    """Refuse a folder that could not be written, or whose replacement would delete other files than scores of gpupif.

    Raises OutputError as `check_folder`, which also compares the folder with the input.
    """
    target = output.resolve()
    if target.is_mount():
        raise OutputError(f"{output}: is where a disk is mounted, and cannot be made anew. Name a folder in it.")
    check_parent(output, target)
    entries = [entry for entry in output.rglob("*") if not entry.is_dir()] if output.is_dir() else []
    if not entries:
        return
    if not overwrite:
        raise exists_already(output, hint)
    for entry in entries:
        if not is_score_file(entry):
            raise OutputError(
                f"{output}: holds {entry.relative_to(output)}, which is no score file of gpupif, and would be lost. "
                "Choose another folder."
            )


def is_score_file(file: Path) -> bool:
    """Return whether a file in a folder of scores is a score file of gpupif."""
    try:
        return (file.name.endswith(".parquet") or file.name in DASK_INDEX) and MARK in (
            pq.read_metadata(file).metadata or {}
        )
    except (pa.ArrowException, OSError):
        return False


def plan_outputs(
    output: Path, input_files: Input, file_rows: Sequence[int], rows_per_file: int | None
) -> list[ScoreFile]:
    """Return the score files in order of the rows.

    file_rows: the rows of each input file. rows_per_file: the rows of each score file in a folder; None: a score file
    for each input file. Raises OutputError as `score_names`.
    """
    rows = sum(file_rows)
    if is_file(output):
        return [ScoreFile(output.name, 0, rows)]
    if rows_per_file is not None:
        starts = range(0, rows, rows_per_file)
        width = max(5, len(str(len(starts) - 1)))
        return [
            ScoreFile(f"part-{number:0{width}}.parquet", start, min(rows, start + rows_per_file))
            for number, start in enumerate(starts)
        ]
    names = score_names(output, input_files)
    return [
        ScoreFile(name, *edges) for name, edges in zip(names, pairwise(accumulate(file_rows, initial=0)), strict=True)
    ]


def score_names(output: Path, input_files: Input) -> list[str]:
    """Return the path of the score file of each input file, within the output.

    Raises OutputError if two score files would have the same path, or a path that readers of folders skip.
    """
    names = [_name_for(file.relative_to(input_files.base)) for file in input_files.files]
    for name, times in Counter(names).items():
        if times > 1:
            raise OutputError(f"{output}: two input files would have their scores in {name}. Rename one of them.")
        if any(part[0] in "._" for part in Path(name).parts):
            raise OutputError(
                f"{output}: readers of folders pass over names such as {name}. Rename the input file, choose a pattern "
                "without it, or use rows_per_file (--rows-per-file)."
            )
    return names


def _name_for(path: Path) -> str:
    lower = path.name.lower()
    ending = max((ending for ending in READ_ENDINGS if lower.endswith(ending)), key=len)
    return str(path.with_name(path.name[: -len(ending)] + ".parquet"))
