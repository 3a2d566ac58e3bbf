"""Where a run keeps what does not fit into memory: Arrow IPC files in a folder of its own, and what is done so far."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import ipc

from ..errors import OutputError

if TYPE_CHECKING:
    import numpy.typing as npt


# Of linkat(2) and renameat2(2).
AT_FDCWD, RENAME_EXCHANGE = -100, 2
# Marks of the first and the last step; and the scores that a run is about to replace.
BEGUN, FINISHED = "begun", "finished"
PREVIOUS = "previous"


def work_folder(output: Path, beside: Path) -> Path:
    """The folder in `beside` in which a run that writes to `output` works: hidden, and found again by the next run."""
    name = hashlib.sha256(os.fsencode(output.resolve())).hexdigest()[:16]
    return beside.resolve() / f".gpupif-{name}"


class Store:
    """Files of a run, and the steps that are done, each with what it found.

    folder: for its finished scores, and the marks of its steps. spill: for all else; it may lie on another disk.
    A step is done when its mark is there, which appears whole: after a kill at any moment, files of steps without a
    mark are written anew.
    """

    def __init__(self, folder: Path, spill: Path) -> None:
        self.folder = folder
        self.spill = spill
        self._lock: Any = None

    def open(self, resume: bool, output: Path, any_mark: bool = False) -> bool:
        """Take the folder, for `resume` with what a killed run left in it, else empty; whether there is something.

        output: where the scores are to go. any_mark: something is also a last mark without a first one. Raises
        OutputError where another run is at work in the folder.
        """
        with disk_errors(self.folder):
            self.folder.mkdir(exist_ok=True)
            self._lock = (self.folder / "lock").open("w")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._lock.close()
                self._lock = None
                raise OutputError(
                    f"{output}: another run that writes it is at work. Wait for it, or choose another output."
                ) from None
            previous = self.folder / PREVIOUS
            if previous.exists() and not output.exists():
                previous.rename(output)
            # Without its first mark, which goes first and comes last, what is there is of no run.
            there = self.done(BEGUN) is not None or (any_mark and self.done(FINISHED) is not None)
            if not (resume and there):
                self._empty()
        return resume and there

    def _empty(self) -> None:
        self._forget_spill()
        (self.folder / f"{BEGUN}.json").unlink(missing_ok=True)
        for entry in self.folder.iterdir():
            if entry.name != "lock":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def _forget_spill(self) -> None:
        """Delete what lies on another disk: of this run, or of one that was killed."""
        begun = self.done(BEGUN) or {}
        for place in (self.spill, Path(begun.get("temp") or self.folder.parent) / self.folder.name):
            if place != self.folder:
                shutil.rmtree(place, ignore_errors=True)

    def close(self, keep: bool) -> None:
        """Give the folder back; without `keep` it is deleted."""
        if self._lock is None:
            return
        if not keep and self.done(FINISHED) is None:
            shutil.rmtree(self.spill, ignore_errors=True)
            with contextlib.suppress(OSError):
                self._empty()
            shutil.rmtree(self.folder, ignore_errors=True)
        elif not keep:
            # What says that all is done goes last: a run that is killed here is finished by the next.
            self._forget_spill()
            last = [self.folder / name for name in (f"{BEGUN}.json", "lock", f"{FINISHED}.json")]
            with contextlib.suppress(OSError):
                for entry in set(self.folder.iterdir()) - set(last):
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
                for file in last:
                    file.unlink()
            shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()
        self._lock = None

    def part(self, *names: str) -> Path:
        """The path of a spill file."""
        return self.spill.joinpath(*names)

    def fresh(self, *names: str) -> Path:
        """An empty folder."""
        folder = self.part(*names)
        with disk_errors(folder):
            if folder.exists():
                shutil.rmtree(folder)
            folder.mkdir(parents=True)
        return folder

    def drop(self, *names: str) -> None:
        """Delete a folder that is not needed any more."""
        shutil.rmtree(self.part(*names), ignore_errors=True)

    def done(self, step: str) -> Any:
        """What a step found, None where it is not done."""
        try:
            return json.loads((self.folder / f"{step}.json").read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise _damaged(self.folder / f"{step}.json") from error

    def mark(self, step: str, facts: Any) -> None:
        """A step is done, and this is what it found."""
        file = self.folder / f"{step}.json"
        with disk_errors(file):
            beside = file.with_suffix(".tmp")
            beside.write_text(json.dumps(facts))
            beside.replace(file)

    def once(self, step: str, find: Callable[[], Any]) -> Any:
        """What a step finds; it is taken only where it is not done."""
        facts = self.done(step)
        if facts is None:
            # As it is read again, so that a run goes on in the same way after a kill.
            self.mark(step, find())
            facts = self.done(step)
        return facts

    def progress(self) -> str:
        """How many steps are done, in words."""
        done = len(list(self.folder.glob("*.json"))) - 1
        return f"{done} of its steps {'is' if done == 1 else 'are'} done" if done else "it had only begun"

    def size(self) -> int:
        """Bytes of all spill files."""
        folders = [entry for entry in self.spill.iterdir() if entry.is_dir() and entry.name != "scores"]
        return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())


class BatchWriter:
    """A file of record batches of the same columns, to be read in any order; a context manager.

    threads: compress several columns at a time.
    """

    def __init__(self, file: Path, schema: Mapping[str, Any], threads: bool = False) -> None:
        self._file = file
        self._schema = pa.schema(list(schema.items()))
        with disk_errors(file):
            self._sink = file.open("wb")
            self._writer = ipc.new_file(self._sink, self._schema, options=_options(threads))

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(self, *error: object) -> None:
        with disk_errors(self._file):
            try:
                if error[0] is None:
                    self._writer.close()
            finally:
                self._sink.close()

    def write(self, arrays: Sequence[Any]) -> None:
        """Add a batch."""
        columns = [
            array if isinstance(array, pa.Array) else pa.array(array, field.type)
            for array, field in zip(arrays, self._schema, strict=True)
        ]
        with disk_errors(self._file):
            self._writer.write_batch(pa.record_batch(columns, schema=self._schema))


class BatchReader:
    """What a `BatchWriter` wrote; places: of the columns to read (None: all), in ascending order."""

    def __init__(self, file: Path, places: Sequence[int] | None = None) -> None:
        self._file = file
        options = ipc.IpcReadOptions(included_fields=None if places is None else sorted(places))
        try:
            self._source = pa.OSFile(str(file))
            self._reader = ipc.open_file(self._source, options=options)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(file) from error

    def __enter__(self) -> BatchReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()

    def __len__(self) -> int:
        return int(self._reader.num_record_batches)

    def arrays(self, number: int) -> list[npt.NDArray[Any]]:
        """The columns of a batch, of numbers."""
        return [column.to_numpy(zero_copy_only=False) for column in self.columns(number)]

    def columns(self, number: int) -> list[pa.Array]:
        """The columns of a batch."""
        try:
            return list(self._reader.get_batch(number).columns)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(self._file) from error


def write_batch(file: Path, arrays: Mapping[str, Any]) -> None:
    """A file of a single batch."""
    columns = {name: array if isinstance(array, pa.Array) else pa.array(array) for name, array in arrays.items()}
    with BatchWriter(file, {name: array.type for name, array in columns.items()}) as writer:
        writer.write(list(columns.values()))


def read_batch(file: Path, places: Sequence[int] | None = None) -> list[npt.NDArray[Any]]:
    """The columns of a file of a single batch, or those at these places, ascending."""
    with BatchReader(file, places) as reader:
        return reader.arrays(0)


def _options(threads: bool) -> Any:
    return ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=threads)


def _damaged(file: Path) -> OutputError:
    return OutputError(f"{file}: a file of the run is damaged or gone. Start again without resume (--resume).")


@contextlib.contextmanager
def disk_errors(file: Path) -> Iterator[None]:
    """Say of what the disk refuses where and how to mend it."""
    try:
        yield
    except OSError as error:
        mend = "Free some space, or choose another place with temp (--temp)." if error.errno == errno.ENOSPC else ""
        raise OutputError(f"{file}: could not be written: {error.strerror or error}. {mend}".rstrip()) from error


def identity(place: Path) -> list[int]:
    """What a file or folder keeps under another name."""
    status = place.stat()
    return [status.st_dev, status.st_ino]


def exchange(staged: Path, output: Path) -> None:
    """Have two folders take each other's name, at once where the file system can do that."""
    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if swap is not None and swap(AT_FDCWD, os.fsencode(staged), AT_FDCWD, os.fsencode(output), RENAME_EXCHANGE) == 0:
        return
    previous = staged.with_name(PREVIOUS)
    output.rename(previous)
    try:
        staged.rename(output)
    except BaseException:
        previous.rename(output)
        raise


def free_disk(folder: Path) -> int:
    """Bytes that can be written to the disk of a folder."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
