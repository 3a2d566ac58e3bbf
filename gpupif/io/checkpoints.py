"""Where a run keeps what does not fit into memory: Arrow IPC files in a folder of its own, and what is done so far."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import OutputError
from .documents import parse_json
from .ipc_batches import damaged, disk_errors

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
            return parse_json((self.folder / f"{step}.json").read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise damaged(self.folder / f"{step}.json") from error

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


def identity(place: Path) -> list[int]:
    """What a file or folder keeps under another name."""
    status = place.stat()
    return [status.st_dev, status.st_ino]


def replace_folder(staged: Path, output: Path) -> None:
    """Have a folder take the place of another one, or of nothing, as a whole."""
    if output.exists() and any(output.iterdir()):
        exchange(staged, output)
    else:
        staged.rename(output)


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
