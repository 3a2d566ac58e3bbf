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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import OutputError
from ..utils.private_folder import (
    MARKER,
    HeldFolder,
    aside,
    followed,
    fresh_folder,
    give_usual_rights,
    open_as_is,
    read_own,
    remove,
    rights_of,
    trusted_place,
    write_private,
)
from .documents import parse_json
from .file_errors import damaged, disk_errors

# Of linkat(2) and renameat2(2).
AT_FDCWD, RENAME_EXCHANGE = -100, 2
# Marks of the first and the last step; and the scores that a run is about to replace.
BEGUN, FINISHED = "begun", "finished"
PREVIOUS = "previous"
# A folder is taken again so often where other runs give up its name.
MOST_TRIES = 100
# How to mend a work folder that cannot be taken.
MEND_OUTPUT = "Move it away, or choose another output."
MEND_TEMP = "Move it away, or choose another place with temp (--temp)."


def work_folder(output: Path, beside: Path | None = None) -> Path:
    """Return the folder in which a run that writes to `output` works: hidden, and found again by the next run.

    beside: Path. The folder that it lies in; None: the folder of the output. Raises OutputError for an output that a
    link of another user leads to.
    """
    with disk_errors(output):
        place = followed(output)
    name = hashlib.sha256(os.fsencode(place)).hexdigest()[:16]
    return (place.parent if beside is None else beside.resolve()) / f".gpupif-{name}"


def last_mark(place: Path) -> Path:
    """Return where the last mark of a run is while its work folder is deleted: what says that all is done goes last."""
    return place.with_name(f"{place.name}.json")


def read_last_mark(place: Path) -> Any:
    """Return the last mark of a run that was killed, None where there is none; place: its work folder.

    Raises OutputError for a folder that anybody else could have written to; a planted file is no mark.
    """
    found = b""
    with contextlib.suppress(OSError):
        found = read_own(last_mark(place))
    with contextlib.suppress(OSError):
        held = HeldFolder(place, make=False, mend=MEND_OUTPUT)
        try:
            found = read_own(held.path / f"{FINISHED}.json")
        finally:
            held.close()
    try:
        return parse_json(found)
    except ValueError:
        return None


class Store:
    """Files of a run, and the steps that are done, each with what it found.

    place: Path. The folder for its finished scores, and the marks of its steps. spill_place: Path. The folder for all
    else; it may lie on another disk. folder, spill: Path. The same two once they are open: by descriptors, so that
    they stay those of the run (see `HeldFolder`). A step is done when its mark is there, which appears whole: after a
    kill at any moment, files of steps without a mark are written anew.
    """

    folder: Path
    spill: Path

    def __init__(self, place: Path, spill_place: Path) -> None:
        self.place = place
        self.spill_place = spill_place
        self._held: HeldFolder | None = None
        self._held_spill: HeldFolder | None = None
        self._lock: int | None = None

    def open(self, resume: bool, output: Path, finished: bool = False) -> bool:
        """Take the folders, for `resume` with what a killed run left in them, else empty; whether there is something.

        output: where the scores are to go. finished: whether the last mark of a run was found. Raises OutputError where
        another run is at work in the folder, or where anybody else can write to it.
        """
        with disk_errors(self.place):
            held = self._lock_folder(output)
            self.folder = held.path
            previous = self.folder / PREVIOUS
            if previous.exists() and not output.exists():
                with trusted_place(output) as target:
                    previous.rename(target)
            # Without its first mark, which goes first, what is there is of no run.
            there = finished or self.done(BEGUN) is not None
            if not (resume and there):
                self._remove_left()
                remove(self.folder / f"{BEGUN}.json")
                held.empty()
                self._forget_last_mark()
        with disk_errors(self.spill_place):
            if self.spill_place != self.place:
                self._held_spill = HeldFolder(self.spill_place, mend=MEND_TEMP)
            self.spill = (self._held_spill or held).path
        return resume and there

    def _lock_folder(self, output: Path) -> HeldFolder:
        """Open the folder and lock it, anew where another run gave up its name meanwhile, to delete it."""
        for _ in range(MOST_TRIES):
            try:
                self._held = held = HeldFolder(self.place, mend=MEND_OUTPUT)
                self._lock = open_as_is(held.path / MARKER)
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if held.has_name():
                    return held
            except FileNotFoundError:
                pass
            except BlockingIOError:
                if held.has_name():
                    self._let_go()
                    raise OutputError(
                        f"{output}: another run that writes it is at work. Wait for it, or choose another output."
                    ) from None
            self._let_go()
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.place))

    def _remove_left(self) -> None:
        """Delete what lies elsewhere, of this run or of one that was killed; what is not ours stays."""
        begun = self.done(BEGUN) or {}
        elsewhere = {self.spill_place, Path(begun.get("temp") or self.place.parent) / self.place.name} - {self.place}
        for place in (*elsewhere, *aside(self.place)):
            with contextlib.suppress(OSError, OutputError):
                held = HeldFolder(place, make=False)
                held.remove()
                held.close()

    def close(self, keep: bool) -> None:
        """Give the folders back; without `keep` they are deleted."""
        if self._held is not None and self._lock is not None and not keep:
            self._remove_left()
            with contextlib.suppress(OSError):
                (self.folder / f"{FINISHED}.json").rename(last_mark(self.place))
            self._held.give_up_name()
            self._held.remove()
            self._forget_last_mark()
        self._let_go()

    def _forget_last_mark(self) -> None:
        with contextlib.suppress(OSError):
            last_mark(self.place).unlink()

    def _let_go(self) -> None:
        """Close what is open; the lock last."""
        if self._held_spill is not None:
            self._held_spill.close()
        if self._held is not None:
            self._held.close()
        if self._lock is not None:
            os.close(self._lock)
        self._held = self._held_spill = self._lock = None

    def part(self, *names: str) -> Path:
        """The path of a spill file."""
        return self.spill.joinpath(*names)

    def fresh(self, *names: str) -> Path:
        """Make an empty folder."""
        folder = self.part(*names)
        with disk_errors(folder):
            return fresh_folder(folder)

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
            write_private(file, json.dumps(facts).encode())

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


def publish(staged: Path, output: Path) -> None:
    """Have a file or folder that a run wrote appear as a whole where it was asked for, in place of what is there.

    It gets the rights that new ones get there, a file those of a file of ours that it replaces. Raises OutputError
    where it cannot have its place, or where a link of another user leads there.
    """
    with disk_errors(output), trusted_place(output) as target:
        if staged.is_dir():
            give_usual_rights(staged)
            replace_folder(staged, target)
            return
        kept = rights_of(target)
        if kept is None:
            give_usual_rights(staged)
        else:
            staged.chmod(kept)
        staged.replace(target)


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
