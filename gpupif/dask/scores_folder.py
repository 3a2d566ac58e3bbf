"""The folder that Dask writes scores to: it appears whole or not at all, in place of scores that are there."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, OutputError
from ..io.checkpoints import Store, replace_folder, work_folder
from ..io.file_errors import disk_errors
from ..io.parquet_writer import say_in_file
from ..io.score_files import check_replaceable, is_file
from ..io.temporary_folder import temporary_folder
from ..results.backing import ScoresDescription
from ..results.provenance import to_metadata
from ..utils.config import resources
from ..utils.private_folder import check_keeps_names, real_path, trusted_place

if TYPE_CHECKING:
    import dask.dataframe as dd

# What Dask's to_parquet takes and this one does not, and why.
REFUSED = {
    "append": "would mix scores of several tables",
    "partition_on": "would lose the order of the rows",
    "filesystem": "is not needed: name the place as a URL, with storage_options",
}


def check_names_folder(output: str | os.PathLike[str]) -> None:
    """Raise OutputError where the output, a path or a URL, is named as a file: partitions are files of a folder."""
    if is_file(Path(output)):
        raise OutputError(f"{os.fspath(output)}: Dask writes a folder of Parquet files. Name one, without an ending.")


def write_scores(
    frame: dd.DataFrame,
    path: str | os.PathLike[str],
    overwrite: bool,
    options: Mapping[str, Any],
    compute: Callable[[Any], Any],
    describe: Callable[[], ScoresDescription],
) -> None:
    """Compute a frame of scores and write it to a folder, which takes the place of one with scores of gpupif.

    options: of Dask's ``to_parquet``. compute: computes what is lazy. describe: what the folder is to say of itself,
    asked for when all is written. Raises OutputError where the folder cannot be written, or holds anything else;
    InputError for options that make this impossible.
    """
    check_names_folder(path)
    for option, reason in REFUSED.items():
        if options.get(option) not in (None, False):
            raise InputError(f"{option}: {reason}. Leave it out.")
    if not options.get("compute", True):
        raise InputError(
            "compute: scores replace a folder when all of them are written, which cannot be left for later. Leave it "
            "out, or have Dask write to an empty folder: scores.frame().to_parquet(folder, compute=False)."
        )
    from fsspec.core import split_protocol, url_to_fs

    # Named in order of the rows.
    given = {"name_function": "part-{:06d}.parquet".format, **options, "compute": False}
    protocol, place = split_protocol(os.fspath(path))
    if protocol not in (None, "file", "local"):
        storage = options.get("storage_options") or {}
        _check_empty(os.fspath(path), storage)
        compute(frame.to_parquet(os.fspath(path), **given))
        files, folder = url_to_fs(os.fspath(path), **storage)
        _describe_folder(files, folder, describe)
        return
    output = Path(place).expanduser()
    if output.exists() and not output.is_dir():
        raise OutputError(f"{output}: is a file; Dask writes a folder of files. Choose another name.")
    check_replaceable(output, overwrite)
    with replacing(output, overwrite, _in_this_process(frame)) as staged:
        compute(frame.to_parquet(str(staged), **given))
        check_written(staged, frame.npartitions)
        local, folder = url_to_fs(str(staged))
        _describe_folder(local, folder, describe)


def _describe_folder(files: Any, folder: str, describe: Callable[[], ScoresDescription]) -> None:
    """Have the last score file of a folder say what all of them say together. files: of fsspec."""
    from fsspec.implementations.local import LocalFileSystem

    names = sorted(name for name in files.find(folder) if name.endswith(".parquet"))
    said = to_metadata(replace(describe(), files=[os.path.relpath(name, folder) for name in names]))
    if isinstance(files, LocalFileSystem):
        say_in_file(Path(names[-1]), said)
        return
    with temporary_folder(resources().temp) as place:
        last = place / "last.parquet"
        files.get_file(names[-1], str(last))
        say_in_file(last, said)
        files.put_file(str(last), names[-1])


def check_written(folder: Path, files: int) -> None:
    """Raise OutputError where a folder has not so many score files: workers elsewhere wrote to disks of their own."""
    found = sum(1 for _ in folder.glob("*.parquet"))
    if found < files:
        raise OutputError(
            f"{real_path(folder).parent.parent}: {files - found} of {files} score files are not there: workers wrote "
            "them where this process does not see them. Choose a place that all of them see under the same path."
        )


def _in_this_process(frame: dd.DataFrame) -> bool:
    """Return whether Dask computes a frame by threads of this process, not by workers of their own."""
    from dask import local, threaded
    from dask.base import get_scheduler

    return get_scheduler(collections=[frame]) in (threaded.get, local.get_sync)


@contextlib.contextmanager
def replacing(output: Path, overwrite: bool, in_this_process: bool) -> Iterator[Path]:
    """Give a place for a folder that takes the output's place when all is written; removed where something fails.

    It lies where runs without a cluster work, so that of two runs to one output the second is refused, and what a
    killed one left is removed by the next, whichever kind they are. in_this_process: bool. Whether all that write are
    threads of this process; others go by the path. Raises OutputError where others could change where that leads.
    """
    work = work_folder(output)
    if not in_this_process:
        check_keeps_names(work.parent, "Workers write by its path. Choose another place.")
    store = Store(work, work)
    try:
        with disk_errors(output):
            store.open(False, output.resolve())
            # Another name each time: workers of a run that was killed may still be writing.
            name = secrets.token_hex(8)
            yield (store.folder if in_this_process else work) / name
            check_replaceable(output, overwrite, ": it came into being meanwhile")
            with trusted_place(output) as scored_column:
                replace_folder(store.folder / name, scored_column)
    finally:
        store.close(False)


def _check_empty(url: str, storage_options: Mapping[str, Any]) -> None:
    """Raise OutputError where something is at a URL: what is there could not be replaced as a whole."""
    from fsspec.core import url_to_fs

    files, place = url_to_fs(url, **storage_options)
    if files.exists(place) and (files.isfile(place) or files.find(place)):
        raise OutputError(
            f"{url}: exists already, and only folders on a disk of this machine are replaced. Remove it first, or "
            "choose another place."
        )
