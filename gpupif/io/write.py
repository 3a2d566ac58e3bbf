"""The writing of scores to files. A file appears whole or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from ..errors import DeviceError, OutputError, reason_of
from ..gpu.cudf_frames import CudfFrames
from ..rows.threads import default_threads
from ..utils.arrays import GROUP_ROWS
from ..utils.private_folder import hidden_place, new_file, real_path, rights_of, trusted_place, usual_file_mode
from .file_errors import ELSEWHERE, disk_errors
from .formats import WRITTEN_ENDINGS, written_format
from .row_group import RowGroup
from .run_files import check_apart

# Columns of row groups that each thread gets of the rows that are written at once.
PER_THREAD = 2
# Rows that a device writes at once, at most.
DEVICE_ROWS = 1 << 24
# Bytes that are written before the system is asked to begin bringing them to the disk.
EARLY_BYTES = 1 << 26
# The flag of <fcntl.h>: begin to write, and do not wait.
SYNC_FILE_RANGE_WRITE = 2
_libc = ctypes.CDLL(None)


def output_names(measures: Iterable[str], columns: Sequence[Hashable], other_columns: Sequence[Hashable]) -> list[str]:
    """Return the names of the score columns, <measure>_<column>; raises OutputError if a name would occur twice.

    other_columns: the names of the other columns of the output.
    """
    names = [f"{measure}_{column}" for measure in measures for column in columns]
    repeated = [name for name, times in Counter([*map(str, other_columns), *names]).items() if times > 1]
    if repeated:
        raise OutputError(f"output: two columns would be called {repeated[0]!r}. Rename the column in the table.")
    return names


def attacker_names(
    outputs: Mapping[str | None, Sequence[str]], columns: Sequence[Hashable], other_columns: Sequence[Hashable]
) -> list[str]:
    """Return the names of the score columns of all attackers; raises OutputError if a name would occur twice.

    A name is <attacker>_<measure>_<column>, or <measure>_<column> for an attacker without a name (None). outputs: the
    scores of each cell, such as "cig" or "csf_worst", by the name of the attacker. other_columns: see `output_names`.
    """
    prefixes = {attacker: "" if attacker is None else f"{attacker}_" for attacker in outputs}
    prefixed = (prefixes[attacker] + measure for attacker, measures in outputs.items() for measure in measures)
    return output_names(prefixed, columns, other_columns)


def check_output(
    path: str | os.PathLike[str],
    overwrite: bool,
    inputs: Sequence[Any] = (),
    endings: tuple[str, ...] = WRITTEN_ENDINGS,
    hint: str = "",
) -> None:
    """Refuse an output that could not be written, before any work is done.

    path: the output. overwrite: whether the output may exist. inputs: inputs that the output must not replace, see
    `check_apart`. endings: the allowed endings of its name. hint: half a sentence with the reason why the output may
    exist.

    Raises OutputError if the output exists (without `overwrite`), is a folder, is an input or part of one, or has
    another ending. Raises OutputError if its parent folder does not exist or cannot be written to. Raises InputError
    for a compression that its format lacks.
    """
    file = Path(path)
    if not file.name.lower().endswith(endings):
        raise OutputError(f"{file}: expected an output name ending in {', '.join(endings)}.")
    check_apart({"": file}, {"": [*inputs]})
    if file.is_dir():
        raise OutputError(f"{file}: is a folder; expected the name of a file to write.")
    check_parent(file, file)
    written_format(file).codec(file)
    if file.exists() and not overwrite:
        raise exists_already(file, hint)


def exists_already(output: Path, hint: str) -> OutputError:
    """Return the error for an output that exists and must not be replaced. hint: see `check_output`."""
    return OutputError(f"{output}: exists already{hint}. Use overwrite=True to replace it, or choose another name.")


def check_parent(output: Path, target: Path) -> None:
    """Raise OutputError if the parent folder of an output does not exist or cannot be written to.

    output: the path as messages show it. target: the path whose parent folder is checked.
    """
    if not target.parent.is_dir():
        raise OutputError(f"{output}: there is no folder {output.parent}. Make it first, or choose another place.")
    if not os.access(target.parent, os.W_OK):
        raise OutputError(f"{output}: the folder {output.parent} cannot be written to.")
    with disk_errors(output, ELSEWHERE), trusted_place(output):
        pass


def row_groups(rows: int, columns: int) -> list[list[tuple[int, int]]]:
    """Return the rows (start, stop) of the row groups of a table, in lists of row groups that are written at once.

    A list has enough row groups for all threads to have work: several row groups if the table has few columns.
    """
    edges = [(start, min(rows, start + GROUP_ROWS)) for start in range(0, rows, GROUP_ROWS)]
    at_once = -(-default_threads() * PER_THREAD // columns)
    return [edges[first : first + at_once] for first in range(0, len(edges), at_once)]


def write_tables(
    parts: Iterable[pa.Table],
    path: str | os.PathLike[str],
    done: Callable[[int], None] = lambda rows: None,
    overwrite: bool = True,
    describe: Callable[[], Mapping[bytes, bytes]] = dict,
    private: bool = False,
) -> None:
    """Write a table that comes in parts, see `write_groups`."""
    write_groups(([RowGroup.from_table(part)] for part in parts), path, done, overwrite, describe, private)


def write_groups(
    row_groups: Iterable[Sequence[RowGroup]],
    path: str | os.PathLike[str],
    done: Callable[[int], None] = lambda rows: None,
    overwrite: bool = True,
    describe: Callable[[], Mapping[bytes, bytes]] = dict,
    private: bool = False,
) -> None:
    """Write a table in the format that the ending of the file's name says, whole or not at all.

    row_groups: the rows, as lists of row groups that are written at once.
    path: the file.
    done: called with the number of rows that were written. Default: nothing is called.
    overwrite: whether to replace a file that exists, after all rows are written; else OutputError. Default: True.
    describe: returns the metadata of the file, if its format has metadata. For a format with `metadata_last` it is
        called after all rows are written. Default: no metadata.
    private: see `replacing`. Default: False.
    """
    file, form = Path(path), written_format(Path(path))
    try:
        with replacing(file, overwrite, private) as sink, contextlib.ExitStack() as closing:
            writer = None
            for groups in row_groups:
                writer = writer or closing.enter_context(form.writer(sink, file, groups[0].schema, describe))
                form.write(writer, groups)
                done(sum(map(len, groups)))
            if writer is not None:
                form.finish(writer, describe)
    except pa.ArrowException as error:
        raise OutputError(
            f"{real_path(file)}: the table cannot be written in this format ({reason_of(error)}). Choose .parquet, or "
            "leave out the columns concerned."
        ) from error


def write_text(text: str, path: str | os.PathLike[str], overwrite: bool, private: bool = False) -> None:
    """Write a text to a file, whole or not at all. private: see `replacing`."""
    with replacing(Path(path), overwrite, private) as sink:
        sink.write(text.encode())


def write_device_columns(
    library: CudfFrames,
    columns: Mapping[str, Any],
    rows: int,
    path: str | os.PathLike[str],
    done: Callable[[int], None] = lambda rows: None,
    overwrite: bool = True,
    metadata: Mapping[bytes, bytes] | None = None,
) -> None:
    """Write arrays of a device to a Parquet file, without a copy on the host, whole or not at all.

    columns: an array of `rows` values for each column, by name. done, overwrite: see `write_groups`. metadata: the
    metadata of the file. Default: none. Raises DeviceError if the device fails, and OutputError.
    """
    file = Path(path)
    try:
        with (
            library.active(),
            replacing(file, overwrite) as sink,
            library.parquet_writer(sink, metadata or {}, written_format(file).codec(file)) as write,
        ):
            for start in range(0, rows, DEVICE_ROWS):
                stop = min(rows, start + DEVICE_ROWS)
                write(library.frame({name: array[start:stop] for name, array in columns.items()}))
                done(stop - start)
    except (MemoryError, RuntimeError) as error:
        reason = reason_of(error) or "out of memory"
        raise DeviceError(f"{file}: the GPU could not write it ({reason}). Nothing was written; try again.") from error


class _EarlyFile(io.FileIO):
    """A file whose bytes are sent to the disk while it is written, so that little is left to wait for at the end."""

    waiting = 0

    def write(self, data: Any, /) -> int:
        written = super().write(data)
        self.waiting += written
        if self.waiting >= EARLY_BYTES:
            self.waiting = 0
            # A file system without this call ignores it: then all bytes are waited for at the end.
            _libc.sync_file_range(self.fileno(), ctypes.c_int64(0), ctypes.c_int64(0), SYNC_FILE_RANGE_WRITE)
        return written


@contextlib.contextmanager
def replacing(path: Path, overwrite: bool, private: bool = False) -> Iterator[IO[bytes]]:
    """Yield a new file that gets its name after it is written whole: a failed or killed run leaves no partial file.

    private: bool. Whether only the owner can read the file. Default: False, the file gets the rights of new files in
    its folder. If it replaces a file of ours, it gets the rights of the old file in either case. Until the file has its
    name, only the owner can read it.

    On Linux the file has no name at first, so that SIGKILL leaves a file only in the moment of naming. If the file
    system lacks files without a name, it is a hidden file in the same folder, deleted on failure. Links of another user
    are not followed.

    Raises OutputError if the file cannot be written, or, without `overwrite`, if a file with its name appeared
    meanwhile.
    """
    with disk_errors(path, ELSEWHERE), trusted_place(path) as file:
        kept = rights_of(file)
        number, named = new_file(file.parent)
        beside = named or hidden_place(file.parent)
        try:
            with io.BufferedWriter(_EarlyFile(number, "wb")) as sink:
                yield sink
                sink.flush()
                if kept is not None or not private:
                    os.fchmod(number, usual_file_mode(file.parent) if kept is None else kept)
                os.fsync(sink.fileno())
                if named is None:
                    # Python calls linkat, which follows the link, only with a descriptor. The path is absolute, so that
                    # linkat ignores the descriptor.
                    os.link(f"/proc/self/fd/{number}", beside, src_dir_fd=number, follow_symlinks=True)
            if overwrite:
                os.replace(beside, file)
            else:
                os.link(beside, file)
        except FileExistsError:
            raise OutputError(
                f"{real_path(path)}: came into being meanwhile. Use overwrite=True to replace it."
            ) from None
        finally:
            beside.unlink(missing_ok=True)
