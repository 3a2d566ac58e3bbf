"""The work folder of a run: files of data that do not fit into memory, and a mark for each step that is done."""

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
from .file_errors import ELSEWHERE, damaged, disk_errors

# Constants of linkat(2) and renameat2(2).
AT_FDCWD, RENAME_EXCHANGE = -100, 2
# Names of the marks of the first and the last step, and of the scores that a run is about to replace.
BEGUN, FINISHED = "begun", "finished"
PREVIOUS = "previous"
# Attempts to take a folder. An attempt fails if another run gives up the folder's name meanwhile.
MOST_TRIES = 100
# The advice in errors about a work folder that cannot be taken.
MEND_OUTPUT = "Move it away, or choose another output."
MEND_TEMP = "Move it away, or choose another place with temp (--temp)."


def work_folder(output: Path, beside: Path | None = None) -> Path:
    """Return the work folder of a run that writes to `output`. It is hidden, and the next run finds it again.

    beside: Path. The folder that contains the work folder. Default: the folder of the output. Raises OutputError if a
    link of another user leads to the output.
    """
    with disk_errors(output, ELSEWHERE):
        place = followed(output)
    name = hashlib.sha256(os.fsencode(place)).hexdigest()[:16]
    return (place.parent if beside is None else beside.resolve()) / f".gpupif-{name}"


def last_mark(place: Path) -> Path:
    """Return the path of the last mark of a run while its work folder is deleted.

    The mark says that the run is finished, so it is deleted after everything else.
    """
    return place.with_name(f"{place.name}.json")


def read_last_mark(place: Path) -> Any:
    """Return the last mark of a killed run, or None if there is no such mark. place: the work folder of the run.

    Raises OutputError for a folder that another user could have written to: a planted file is no mark.
    """
    content = b""
    with contextlib.suppress(OSError):
        content = read_own(last_mark(place))
    with contextlib.suppress(OSError):
        held = HeldFolder(place, make=False, mend=MEND_OUTPUT)
        try:
            content = read_own(held.path / f"{FINISHED}.json")
        finally:
            held.close()
    try:
        return parse_json(content)
    except ValueError:
        return None


class Store:
    """The files of a run and the marks of its finished steps.

    place: Path. The folder for the finished scores and for the marks of the steps.
    spill_place: Path. The folder for all other files; it may be on another disk.
    folder: Path. The open folder `place`, as a path by descriptor: nobody can exchange it, see `HeldFolder`.
    spill: Path. The open folder `spill_place`, as a path by descriptor.

    A step is done if its mark exists. A mark appears whole. After a kill at any moment, the next run writes the files
    of all steps without a mark again.
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
        """Take the folders. Return whether the run resumes a killed run, whose files are then still in the folders.

        resume: whether to keep the files of a killed run; else the folders are emptied. output: the path of the scores.
        finished: whether the last mark of a run was found. Raises OutputError if another run works in the folder, or if
        another user can write to it.
        """
        with disk_errors(self.place, ELSEWHERE):
            held = self._lock_folder(output)
            self.folder = held.path
            previous = self.folder / PREVIOUS
            if previous.exists() and not output.exists():
                with trusted_place(output) as target:
                    previous.rename(target)
            # The first mark is deleted before all other files: without it, the files are incomplete.
            resumed = resume and (finished or self.done(BEGUN) is not None)
            if not resumed:
                self._remove_left()
                remove(self.folder / f"{BEGUN}.json")
                held.empty()
                self._forget_last_mark()
        with disk_errors(self.spill_place):
            if self.spill_place != self.place:
                self._held_spill = HeldFolder(self.spill_place, mend=MEND_TEMP)
            self.spill = (self._held_spill or held).path
        return resumed

    def _lock_folder(self, output: Path) -> HeldFolder:
        """Open the folder and lock it. Try again if another run renamed the folder meanwhile, to delete it."""
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
        """Delete the folders that this run or a killed run has in other places. Folders of other users stay."""
        begun = self.done(BEGUN) or {}
        elsewhere = {self.spill_place, Path(begun.get("temp") or self.place.parent) / self.place.name} - {self.place}
        for place in (*elsewhere, *aside(self.place)):
            with contextlib.suppress(OSError, OutputError):
                held = HeldFolder(place, make=False)
                held.remove()
                held.close()

    def close(self, keep: bool) -> None:
        """Close the folders, and delete them unless `keep` is set."""
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
        """Close the folders, and the lock after them."""
        if self._held_spill is not None:
            self._held_spill.close()
        if self._held is not None:
            self._held.close()
        if self._lock is not None:
            os.close(self._lock)
        self._held = self._held_spill = self._lock = None

    def part(self, *names: str) -> Path:
        """Return the path of a spill file."""
        return self.spill.joinpath(*names)

    def fresh(self, *names: str) -> Path:
        """Make an empty folder among the spill files, and return its path."""
        folder = self.part(*names)
        with disk_errors(folder):
            return fresh_folder(folder)

    def drop(self, *names: str) -> None:
        """Delete a folder of spill files that is no longer needed."""
        shutil.rmtree(self.part(*names), ignore_errors=True)

    def done(self, step: str) -> Any:
        """Return the facts that a step left in its mark, or None if the step is not done."""
        try:
            return parse_json((self.folder / f"{step}.json").read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise damaged(self.folder / f"{step}.json") from error

    def mark(self, step: str, facts: Any) -> None:
        """Mark a step as done, with the facts that later steps need of it."""
        file = self.folder / f"{step}.json"
        with disk_errors(file, ELSEWHERE):
            write_private(file, json.dumps(facts).encode())

    def once(self, step: str, find: Callable[[], Any]) -> Any:
        """Return the facts of a step; `find` finds them if the step is not done yet."""
        facts = self.done(step)
        if facts is None:
            # The facts are read back from the mark: a run that was not killed gets the JSON types of a resumed run.
            self.mark(step, find())
            facts = self.done(step)
        return facts

    def progress(self) -> str:
        """Return the number of finished steps in words, as the end of a sentence about a run."""
        done = len(list(self.folder.glob("*.json"))) - 1
        return f"{done} of its steps {'is' if done == 1 else 'are'} done" if done else "it had only begun"

    def size(self) -> int:
        """Return the bytes of all spill files."""
        folders = [entry for entry in self.spill.iterdir() if entry.is_dir() and entry.name != "scores"]
        return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())


def identity(place: Path) -> list[int]:
    """Return the device and the inode of a file or folder, which stay the same if it is renamed."""
    status = place.stat()
    return [status.st_dev, status.st_ino]


def publish(staged: Path, output: Path) -> None:
    """Rename a finished file or folder to its final name `output`, in place of the file or folder with that name.

    A file that replaces a file of ours gets the rights of that file. Any other output gets the rights of a new file or
    folder in that place. Raises OutputError if renaming fails, or if a link of another user leads to `output`.
    """
    with disk_errors(output, ELSEWHERE), trusted_place(output) as target:
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
    """Rename a folder to `output`; a folder with that name is replaced in one step."""
    if output.exists() and any(output.iterdir()):
        exchange(staged, output)
    else:
        staged.rename(output)


def exchange(staged: Path, output: Path) -> None:
    """Exchange the names of two folders, in one step if the file system can do that.

    Otherwise the old folder is named `PREVIOUS` for a moment. After a kill at that moment `Store.open` renames it back.
    """
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
    """Return the bytes that can still be written to the disk of a folder."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
