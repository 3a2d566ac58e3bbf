"""The folder that Dask writes scores to: it appears whole or not at all, and may replace a folder of scores."""

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

# Options of Dask's to_parquet that are refused, and the reasons.
REFUSED = {
    "append": "would mix scores of several tables",
    "partition_on": "would lose the order of the rows",
    "filesystem": "is not needed: name the place as a URL, with storage_options",
}


def check_names_folder(output: str | os.PathLike[str]) -> None:
    """Raise OutputError if the output, a path or a URL, is named like a file: partitions are files of a folder."""
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
    """Compute a frame of scores and write it to a folder, which may replace a folder with scores of gpupif.

    frame: Dask frame. The scores.
    path: path or URL of the folder.
    overwrite: bool. Whether to replace scores that exist.
    options: options of Dask's ``to_parquet``.
    compute: function that computes a lazy value.
    describe: function that returns the description of the folder; called when all files are written.

    Raises OutputError if the folder cannot be written, or holds anything else. Raises InputError for options that make
    this impossible.
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

    # File names sort in the order of the rows.
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
    """Write the description of all score files into the last one. files: file system of fsspec."""
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
    """Raise OutputError if a folder has fewer score files than expected: workers elsewhere wrote to their own disks."""
    found = sum(1 for _ in folder.glob("*.parquet"))
    if found < files:
        raise OutputError(
            f"{real_path(folder).parent.parent}: {files - found} of {files} score files are not there: workers wrote "
            "them where this process does not see them. Choose a place that all of them see under the same path."
        )


def _in_this_process(frame: dd.DataFrame) -> bool:
    """Return whether Dask computes a frame in threads of this process, not in worker processes."""
    from dask import local, threaded
    from dask.base import get_scheduler

    return get_scheduler(collections=[frame]) in (threaded.get, local.get_sync)


@contextlib.contextmanager
def replacing(output: Path, overwrite: bool, in_this_process: bool) -> Iterator[Path]:
    """Yield a staging folder that replaces the output when all is written; delete it after an error.

    The folder is in the working folder that runs without a cluster use too. So a second run to the same output is
    refused, and the next run of either kind deletes the files of a killed run.
    in_this_process: bool. Whether only threads of this process write; other processes find the folder by its path.

    Raises OutputError if other users could change the target of the path.
    """
    work = work_folder(output)
    if not in_this_process:
        check_keeps_names(work.parent, "Workers write by its path. Choose another place.")
    store = Store(work, work)
    try:
        with disk_errors(output):
            store.open(False, output.resolve())
            # A new name for each run: workers of a killed run may still be writing.
            name = secrets.token_hex(8)
            yield (store.folder if in_this_process else work) / name
            check_replaceable(output, overwrite, ": it came into being meanwhile")
            with trusted_place(output) as trusted:
                replace_folder(store.folder / name, trusted)
    finally:
        store.close(False)


def _check_empty(url: str, storage_options: Mapping[str, Any]) -> None:
    """Raise OutputError if a URL has files already: a remote folder cannot be replaced as a whole."""
    from fsspec.core import url_to_fs

    files, place = url_to_fs(url, **storage_options)
    if files.exists(place) and (files.isfile(place) or files.find(place)):
        raise OutputError(
            f"{url}: exists already, and only folders on a disk of this machine are replaced. Remove it first, or "
            "choose another place."
        )
