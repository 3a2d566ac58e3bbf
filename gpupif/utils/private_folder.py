"""Folders and files that their owner alone can read and change, and paths that no other user leads elsewhere.

All that gpupif writes beside its outputs (work folders, temporary folders, the state of nightly runs) is made here:

* A folder is made with mode 0700, and a file in it with mode 0600, whatever the umask.
* A folder that is there already is taken only where it is ours and nobody else can write to it; its rights stay.
* A folder that is held open is reached by its descriptor, so that nobody can put another one in its place.
* A link that another user made is followed nowhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shlex
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

from ..errors import OutputError

OWNER_FOLDER, OWNER_FILE = 0o700, 0o600
# The rights of all but the owner: to do anything, and to write.
OTHERS, OTHERS_WRITE = 0o077, 0o022
# The rights that programs ask for, of which the umask takes some.
ASKED_FOLDER, ASKED_FILE = 0o777, 0o666
# The name of a file until it has its own; a killed run may leave one.
BESIDE = ".gpupif-*.tmp"
# The file in folders of gpupif's own.
MARKER = "made-by-gpupif"
# The folder in which Linux has the open files of a process, by descriptor.
DESCRIPTORS = Path("/proc/self/fd")
# Linux follows so many links of one path.
MOST_LINKS = 40
# The user whose links everybody follows: the administrator.
ROOT = 0

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_own(status: os.stat_result) -> bool:
    """Return whether a file or folder belongs to the user of this process."""
    return status.st_uid == os.geteuid()


def private_folder(folder: Path, mend: str = "Choose another place.") -> Path:
    """Make a folder that its owner alone can enter, with the folders above it, or take the one that is there.

    The rights of a folder that is there stay as they are. mend: str. What the errors advise. Raises OutputError for a
    link, and for a folder that another user owns or can write to; OSError where the disk refuses.
    """
    for above in reversed(folder.parents):
        if not above.exists():
            os.close(_open_folder(above, True, mend))
    os.close(_open_folder(folder, True, mend))
    return folder


def fresh_folder(folder: Path) -> Path:
    """Make an empty private folder, in place of a folder that is there; raises as `private_folder`."""
    if folder.exists():
        shutil.rmtree(folder)
    return private_folder(folder)


class HeldFolder:
    """A private folder of gpupif's own, which may delete all that is in it; held open until `close`.

    place: Path. The path by which users know the folder. path: Path. The same folder by its descriptor: files below it
    are reached even where somebody gave its name to another folder meanwhile. It holds in this process alone. A file,
    `MARKER`, says that gpupif made the folder: who may rename folders could give its name to another one of ours.
    """

    def __init__(self, place: Path, make: bool = True, mend: str = "Choose another place.") -> None:
        """Make or take the folder; make: whether to make it where there is none.

        Raises as `private_folder`, and OutputError for a folder with files in it that gpupif did not make.
        """
        self.place = place
        self._number = _open_folder(place, make, mend)
        self.path = DESCRIPTORS / str(self._number)
        try:
            found = sorted(os.listdir(self.path))
            if found and MARKER not in found:
                raise OutputError(
                    f"{place}: expected a folder that gpupif made, got another one, with {found[0]} in it. {mend}"
                )
            _keep_to_owner(self._number, OWNER_FOLDER)
            if not found:
                os.close(open_as_is(self.path / MARKER))
        except BaseException:
            self.close()
            raise

    def has_name(self) -> bool:
        """Return whether the folder still has its name: another run may have given it up, or somebody taken it."""
        try:
            return os.path.samestat(os.fstat(self._number), self.place.lstat())
        except FileNotFoundError:
            return False

    def give_up_name(self) -> None:
        """Rename a folder that is to be deleted, so that its name is free at once; `aside` finds what a kill leaves."""
        other = self.place.with_name(f"{self.place.name}-{secrets.token_hex(8)}")
        with contextlib.suppress(OSError):
            if self.has_name():
                self.place = self.place.rename(other)

    def empty(self) -> None:
        """Delete what is in the folder; what cannot be deleted stays."""
        with contextlib.suppress(OSError):
            for entry in sorted(self.path.iterdir()):
                if entry.name != MARKER:
                    remove(entry)

    def remove(self) -> None:
        """Delete all that is in the folder, and the folder; what cannot be deleted stays."""
        self.empty()
        with contextlib.suppress(OSError):
            if os.listdir(self.path) == [MARKER]:
                (self.path / MARKER).unlink()
                self.place.rmdir()

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._number)


def aside(place: Path) -> Iterator[Path]:
    """Return the folders that gave up this name and are not deleted yet."""
    return place.parent.glob(f"{place.name}-*")


def remove(entry: Path) -> None:
    """Delete a file, a link or a folder with all that is in it; what cannot be deleted stays."""
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            entry.unlink()


def _open_folder(folder: Path, make: bool, mend: str) -> int:
    """Return the descriptor of a private folder; make: whether to make it where there is none."""
    made = False
    if make:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(OWNER_FOLDER)
            made = True
    try:
        number = os.open(folder, _FOLDER)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and os.path.lexists(folder):
            kind = "a link" if folder.is_symlink() else "a file"
            raise OutputError(f"{real_path(folder)}: expected a folder, got {kind}. {mend}") from None
        if isinstance(error, PermissionError) and not is_own(folder.lstat()):
            raise _of_another(folder, folder.lstat(), mend) from None
        raise
    try:
        status = os.fstat(number)
        if not is_own(status):
            raise _of_another(folder, status, mend)
        if made:
            _keep_to_owner(number, OWNER_FOLDER)
        elif status.st_mode & OTHERS_WRITE:
            place = real_path(folder)
            # A sticky one is everybody's by purpose.
            sticky = status.st_mode & stat.S_ISVTX
            closed = "" if sticky else f" Where it is meant for you alone, run: chmod go-w {shlex.quote(str(place))}"
            raise OutputError(
                f"{place}: expected a folder that nobody else can write to, got one of mode "
                f"{stat.S_IMODE(status.st_mode):o}. {mend}{closed}"
            )
    except BaseException:
        os.close(number)
        raise
    return number


def check_keeps_names(folder: Path, mend: str) -> None:
    """Raise OutputError for a folder in which another user could rename what is ours; root is trusted."""
    status = folder.stat()
    if not is_own(status) and status.st_uid != ROOT:
        raise _of_another(folder, status, mend)
    if status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
        raise OutputError(
            f"{folder}: expected a folder in which nobody else can rename what is yours, got one of mode "
            f"{stat.S_IMODE(status.st_mode):o}. {mend} Or have its owner run: chmod +t {shlex.quote(str(folder))}"
        )


def _of_another(folder: Path, status: os.stat_result, mend: str) -> OutputError:
    return OutputError(
        f"{real_path(folder)}: expected a folder of yours (user {os.geteuid()}), got one of user {status.st_uid}, who "
        f"could read and change what is written there. {mend}"
    )


def _keep_to_owner(number: int, mode: int) -> None:
    """Give an open file or folder exactly these rights; its special bits stay, as that of a shared group."""
    found = stat.S_IMODE(os.fstat(number).st_mode)
    if found & 0o777 != mode:
        os.fchmod(number, found & ~0o777 | mode)


def open_private(file: Path, mode: Literal["wb", "ab"] = "wb") -> IO[bytes]:
    """Open a file that its owner alone can read, to be written anew ("wb") or further ("ab"). Raises OSError.

    The file must lie in a private folder: who can write to its folder could have put a file there.
    """
    flags = os.O_APPEND if mode == "ab" else os.O_TRUNC
    number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, OWNER_FILE)
    _keep_to_owner(number, OWNER_FILE)
    return os.fdopen(number, mode)


def open_as_is(file: Path) -> int:
    """Return the descriptor of a private file, as it is or new, to be read, written and locked. Raises OSError."""
    number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, OWNER_FILE)
    _keep_to_owner(number, OWNER_FILE)
    return number


def read_own(file: Path) -> bytes:
    """Return what is in a file of ours that nobody else can write to. Raises OSError for anything else, as a link."""
    number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(number)
        if not (is_own(status) and stat.S_ISREG(status.st_mode)) or status.st_mode & OTHERS_WRITE:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(file))
        with open(number, "rb", closefd=False) as source:
            return source.read()
    finally:
        os.close(number)


def write_private(file: Path, content: bytes, durable: bool = False) -> None:
    """Write a file that its owner alone can read, whole or not at all, in place of a file that has its name.

    durable: whether the content is on the disk before the file has its name. Raises OSError. The file must lie in a
    private folder, as with `open_private`.
    """
    beside = hidden_place(file.parent)
    try:
        with open_private(beside) as sink:
            sink.write(content)
            sink.flush()
            if durable:
                os.fsync(sink.fileno())
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


def hidden_place(folder: Path) -> Path:
    """Return a path in a folder for a file until it has its own, by a name that nobody can guess."""
    return folder / BESIDE.replace("*", secrets.token_hex(8))


def new_file(folder: Path, mode: int = OWNER_FILE) -> tuple[int, Path | None]:
    """Open a new file to be written, without a name where the file system can do that. Raises OSError.

    mode: int. Its rights, of which the umask takes some. Returns its descriptor, and its path where it has a name,
    which nobody can guess.
    """
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode), None
    except OSError:
        beside = hidden_place(folder)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(beside, flags, mode), beside


def rights_of(file: Path) -> int | None:
    """Return the rights of a file of ours, which one that replaces it gets; None where there is no such file."""
    with contextlib.suppress(FileNotFoundError):
        status = file.lstat()
        if stat.S_ISREG(status.st_mode) and is_own(status):
            return stat.S_IMODE(status.st_mode)
    return None


def usual_file_mode(folder: Path) -> int:
    """Return the rights that new files get in a folder, by the umask or the folder's own rule. Raises OSError."""
    number, beside = new_file(folder, ASKED_FILE)
    try:
        return stat.S_IMODE(os.fstat(number).st_mode)
    finally:
        os.close(number)
        if beside is not None:
            beside.unlink()


def give_usual_rights(entry: Path) -> None:
    """Give a private file, or a folder with all that is in it, the rights that new ones get beside it. Raises OSError.

    Folders get theirs from the bottom up, so that nobody enters one that is not done.
    """
    file_mode = usual_file_mode(entry.parent)
    if not entry.is_dir():
        entry.chmod(file_mode)
        return
    like = hidden_place(entry.parent)
    like.mkdir(ASKED_FOLDER)
    try:
        folder_mode = stat.S_IMODE(like.stat().st_mode)
    finally:
        like.rmdir()
    for folder, _, names in os.walk(entry, topdown=False):
        for name in names:
            Path(folder, name).chmod(file_mode)
        Path(folder).chmod(folder_mode)


@contextlib.contextmanager
def trusted_place(path: Path) -> Iterator[Path]:
    """Hold the folder of a path open, and give the path by that folder's descriptor, with all links followed.

    A file that is written there lies where the path led, even where somebody changes a folder of the path meanwhile.
    Raises OutputError where a link on the way is another user's (root's are followed), OSError where there is no such
    folder.
    """
    number, names = _walk(path)
    try:
        if len(names) > 1:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        yield DESCRIPTORS / str(number) / names[0]
    finally:
        os.close(number)


def followed(path: Path) -> Path:
    """Return an absolute path with all its links followed, of which parts may be missing; raises as `trusted_place`."""
    number, names = _walk(path)
    try:
        return real_path(DESCRIPTORS / str(number)).joinpath(*names)
    finally:
        os.close(number)


def _walk(path: Path) -> tuple[int, list[str]]:
    """Open the last folder above a path that is there; returns its descriptor, and the names below it.

    Each name is looked up in the open folder before it, so that what was checked is what is used.
    """
    start, parts = (Path("/"), path.parts[1:]) if path.is_absolute() else (Path("."), path.parts)
    if path.parts[: len(DESCRIPTORS.parts)] == DESCRIPTORS.parts and len(path.parts) > len(DESCRIPTORS.parts):
        # A folder that is held open, whose path may be another one's by now.
        start, parts = DESCRIPTORS / path.parts[4], path.parts[5:]
    number = os.open(start, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    names, links = [*reversed(parts or ("."))], 0
    try:
        while True:
            name = names.pop()
            try:
                found = os.open(name, _LOOK, dir_fd=number)
            except (FileNotFoundError, NotADirectoryError):
                return number, [name, *reversed(names)]
            status = os.fstat(found)
            if not stat.S_ISLNK(status.st_mode):
                if names:
                    number = _instead(number, found)
                    continue
                folder = real_path(DESCRIPTORS / str(found))
                os.close(found)
                if name not in (".", "..") or folder == Path("/"):
                    return number, [name]
                # A folder that has its name elsewhere.
                os.close(number)
                return _walk(folder)
            try:
                target = os.readlink("", dir_fd=found)
            finally:
                os.close(found)
            if not is_own(status) and status.st_uid != ROOT:
                link = real_path(DESCRIPTORS / str(number)) / name
                raise OutputError(
                    f"{real_path(path)}: {link} is a link that another user made (user {status.st_uid}), to {target}. "
                    "Remove it, or name the place itself."
                )
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            if os.path.isabs(target):
                number = _instead(number, os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
            names += reversed([part for part in target.split("/") if part] or ["."])
    except BaseException:
        os.close(number)
        raise


def _instead(number: int, other: int) -> int:
    os.close(number)
    return other


def real_path(place: Path) -> Path:
    """Return the path by which users know a file in a folder that is held open; any other path as it is."""
    parts, depth = place.parts, len(DESCRIPTORS.parts)
    if parts[:depth] != DESCRIPTORS.parts or len(parts) == depth:
        return place
    try:
        return Path(os.readlink(Path(*parts[: depth + 1])), *parts[depth + 1 :])
    except OSError:
        return place
