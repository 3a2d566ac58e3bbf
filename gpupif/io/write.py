"""Scores to files; what is written appears whole or not at all."""

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
from .file_errors import disk_errors
from .formats import WRITTEN_ENDINGS, written_format
from .row_group import RowGroup

# Columns of row groups that each thread encodes of what is written at once.
PER_THREAD = 2
# Rows that a device writes at once.
DEVICE_ROWS = 1 << 24
# So many bytes are written before the system is asked to bring them to the disk.
EARLY_BYTES = 1 << 26
# As <fcntl.h> has it: begin to, and do not wait.
SYNC_FILE_RANGE_WRITE = 2
# The advice for an output whose disk is full.
ELSEWHERE = "choose another place"
_libc = ctypes.CDLL(None)


def output_names(measures: Iterable[str], columns: Sequence[Hashable], others: Sequence[Hashable]) -> list[str]:
    """Names of the score columns, <measure>_<column>; raises OutputError where one would stand twice."""
    names = [f"{measure}_{column}" for measure in measures for column in columns]
    repeated = [name for name, times in Counter([*map(str, others), *names]).items() if times > 1]
    if repeated:
        raise OutputError(f"output: two columns would be called {repeated[0]!r}. Rename the column in the table.")
    return names


def attacker_names(
    outputs: Mapping[str | None, Sequence[str]], columns: Sequence[Hashable], others: Sequence[Hashable]
) -> list[str]:
    """As `output_names`, for each attacker, by name, <attacker>_<measure>_<column>; of one without a name (None) alike.

    outputs: what each cell gets, by attacker.
    """
    prefixes = {attacker: "" if attacker is None else f"{attacker}_" for attacker in outputs}
    several = (prefixes[attacker] + measure for attacker, measures in outputs.items() for measure in measures)
    return output_names(several, columns, others)


def check_output(
    path: str | os.PathLike[str],
    overwrite: bool,
    inputs: Iterable[Path] = (),
    endings: tuple[str, ...] = WRITTEN_ENDINGS,
    hint: str = "",
) -> None:
    """Refuse an output that could not be written, before any work is done.

    Raises OutputError where it exists (without `overwrite`), is a folder, lies in a folder that does not exist or
    cannot be written to, is one of the `inputs` or inside it, or has an ending that names no format; InputError for a
    compression that its format has not. hint: why it may exist.
    """
    file = Path(path)
    if not file.name.lower().endswith(endings):
        raise OutputError(f"{file}: expected an output name ending in {', '.join(endings)}.")
    for source in inputs:
        given = source.resolve()
        if file.resolve() == given or given in file.resolve().parents:
            raise OutputError(f"{file}: the output is the input {source}, or inside it. Choose another place for it.")
    if file.is_dir():
        raise OutputError(f"{file}: is a folder; expected the name of a file to write.")
    check_parent(file, file)
    written_format(file).codec(file)
    if file.exists() and not overwrite:
        raise exists_already(file, hint)


def exists_already(output: Path, hint: str) -> OutputError:
    """The error of an output that is not to be replaced; hint: why it may be there."""
    return OutputError(
        f"{output}: exists already{hint}. Use overwrite (--overwrite) to replace it, or choose another name."
    )


def check_parent(output: Path, target: Path) -> None:
    """Raise OutputError where `target`, the place of `output`, lies in no folder, or in one not to be written to."""
    if not target.parent.is_dir():
        raise OutputError(f"{output}: there is no folder {output.parent}. Make it first, or choose another place.")
    if not os.access(target.parent, os.W_OK):
        raise OutputError(f"{output}: the folder {output.parent} cannot be written to.")
    with disk_errors(output, ELSEWHERE), trusted_place(output):
        pass


def row_groups(rows: int, columns: int) -> list[list[tuple[int, int]]]:
    """Where the row groups of a table of so many rows begin and end, some of them at a time.

    So many are written at once that all threads have work: several of tables of few columns.
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
    """Write the parts of a table, see `write_groups`."""
    write_groups(([RowGroup.of(part)] for part in parts), path, done, overwrite, describe, private)


def write_groups(
    several: Iterable[Sequence[RowGroup]],
    path: str | os.PathLike[str],
    done: Callable[[int], None] = lambda rows: None,
    overwrite: bool = True,
    describe: Callable[[], Mapping[bytes, bytes]] = dict,
    private: bool = False,
) -> None:
    """Write a table as its name's ending says, whole or not at all; `done` hears how many rows went out.

    several: rows, some groups at a time. overwrite: replace a file that is there when all is written; else raise
    OutputError. describe: what goes into the metadata of the file, where its format has such: asked for when all rows
    are written, where the format has `metadata_last`. private: see `replacing`.
    """
    file, form = Path(path), written_format(Path(path))
    try:
        with replacing(file, overwrite, private) as sink, contextlib.ExitStack() as closing:
            writer = None
            for groups in several:
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
    """Write a text to a file, whole or not at all; private: see `replacing`."""
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
    """Write arrays of a device to Parquet from there, whole or not at all; raises DeviceError where it fails.

    metadata: of the file.
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
    """A file whose bytes begin to go to the disk while others are still to come: the end has to wait for few."""

    waiting = 0

    def write(self, data: Any, /) -> int:
        written = super().write(data)
        self.waiting += written
        if self.waiting >= EARLY_BYTES:
            self.waiting = 0
            # Where a file system does not know of it, all is waited for at the end.
            _libc.sync_file_range(self.fileno(), ctypes.c_int64(0), ctypes.c_int64(0), SYNC_FILE_RANGE_WRITE)
        return written


@contextlib.contextmanager
def replacing(path: Path, overwrite: bool, private: bool = False) -> Iterator[IO[bytes]]:
    """Give a file to write that takes its name only when whole: a failed or killed run leaves nothing behind.

    private: bool. Whether its owner alone can read a new file; else it has the rights that new files get there. A file
    of ours that is replaced hands its rights on. Until the file has its name, its owner alone can read it. On Linux it
    has no name until then, so that even SIGKILL leaves none but for a moment; where the file system cannot do that it
    is a hidden file beside its target, removed on failure. Links of another user are not followed.

    Raises OutputError where the file cannot be written, or came into being meanwhile.
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
                    # The descriptor, unused with an absolute path, makes Python call linkat, which follows the link.
                    os.link(f"/proc/self/fd/{number}", beside, src_dir_fd=number, follow_symlinks=True)
            if overwrite:
                os.replace(beside, file)
            else:
                os.link(beside, file)
        except FileExistsError:
            raise OutputError(
                f"{real_path(path)}: came into being meanwhile. Use overwrite (--overwrite) to replace it."
            ) from None
        finally:
            beside.unlink(missing_ok=True)
