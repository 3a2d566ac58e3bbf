"""Folders and files that only their owner can read and change, and paths that no other user can lead elsewhere.

All files of gpupif beside its outputs are made here: work folders, temporary folders, the state of nightly runs.

* A folder is made with mode 0700, and a file in it with mode 0600, whatever the umask.
* An existing folder is taken only if it is ours and nobody else can write to it; its rights stay.
* An open folder is reached by its descriptor, so that nobody can put another folder in its place.
* A link of another user is never followed.
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
from .given_files import refuse_named_pipe

OWNER_FOLDER, OWNER_FILE = 0o700, 0o600
# The rights of everybody except the owner: all rights, and the right to write.
OTHERS, OTHERS_WRITE = 0o077, 0o022
# The rights that programs request for new folders and files. The umask removes some of them.
ASKED_FOLDER, ASKED_FILE = 0o777, 0o666
# The name of a file until it is renamed to its final name. A killed run may leave such a file.
BESIDE = ".gpupif-*.tmp"
# The file that marks a folder as made by gpupif.
MARKER = "made-by-gpupif"
# The folder in which Linux shows the open files of a process, by descriptor.
DESCRIPTORS = Path("/proc/self/fd")
# The most links of a path that Linux follows.
MOST_LINKS = 40
# The user whose links everybody follows: the administrator.
ROOT = 0

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_own(status: os.stat_result) -> bool:
    """Return whether a file or folder belongs to the user of this process."""
    return status.st_uid == os.geteuid()


def private_folder(folder: Path, mend: str = "Choose another place.") -> Path:
    """Make a folder that only its owner can enter, with the folders above it, or take an existing folder.

    An existing folder keeps its rights. mend: str. The advice in errors. Raises OutputError for a link, and for a
    folder that another user owns or can write to. Raises OSError if the disk refuses.
    """
    for above in reversed(folder.parents):
        if not above.exists():
            os.close(_open_folder(above, True, mend))
    os.close(_open_folder(folder, True, mend))
    return folder


def fresh_folder(folder: Path) -> Path:
    """Make an empty private folder; an existing folder is deleted first. Raises the errors of `private_folder`."""
    if folder.exists():
        shutil.rmtree(folder)
    return private_folder(folder)


class HeldFolder:
    """A private folder that gpupif made, and whose files it may delete. It is open until `close`.

    place: Path. The path by which users know the folder.
    path: Path. The path of the folder by its descriptor, which only this process can use. It leads to the folder even
        if somebody gives the folder's name to another folder meanwhile.

    The file `MARKER` says that gpupif made the folder. Without it, a user who may rename folders could give the name to
    another folder of ours, and gpupif would delete its files.
    """

    def __init__(self, place: Path, make: bool = True, mend: str = "Choose another place.") -> None:
        """Make or take the folder. make: whether to make a folder that does not exist. mend: the advice in errors.

        Raises the errors of `private_folder`, and OutputError for a folder with files that gpupif did not make.
        """
        self.place = place
        self._number = _open_folder(place, make, mend)
        self.path = DESCRIPTORS / str(self._number)
        try:
            names = sorted(os.listdir(self.path))
            if names and MARKER not in names:
                raise OutputError(
                    f"{place}: expected a folder that gpupif made, got another one, with {names[0]} in it. {mend}"
                )
            _keep_to_owner(self._number, OWNER_FOLDER)
            if not names:
                os.close(open_as_is(self.path / MARKER))
        except BaseException:
            self.close()
            raise

    def has_name(self) -> bool:
        """Return whether the folder still has its name. Another run may have renamed it, or a user replaced it."""
        try:
            return os.path.samestat(os.fstat(self._number), self.place.lstat())
        except FileNotFoundError:
            return False

    def give_up_name(self) -> None:
        """Rename a folder that will be deleted, so that its name is free at once.

        After a kill, `aside` finds the renamed folder.
        """
        other = self.place.with_name(f"{self.place.name}-{secrets.token_hex(8)}")
        with contextlib.suppress(OSError):
            if self.has_name():
                self.place = self.place.rename(other)

    def empty(self) -> None:
        """Delete everything in the folder except the marker; entries that cannot be deleted stay."""
        with contextlib.suppress(OSError):
            for entry in sorted(self.path.iterdir()):
                if entry.name != MARKER:
                    remove(entry)

    def remove(self) -> None:
        """Delete the folder with everything in it; entries that cannot be deleted stay, and the folder with them."""
        self.empty()
        with contextlib.suppress(OSError):
            if os.listdir(self.path) == [MARKER]:
                (self.path / MARKER).unlink()
                self.place.rmdir()

    def close(self) -> None:
        """Close the folder."""
        os.close(self._number)


def aside(place: Path) -> Iterator[Path]:
    """Return the folders that had the name `place` and were renamed to be deleted, see `HeldFolder.give_up_name`."""
    return place.parent.glob(f"{place.name}-*")


def remove(entry: Path) -> None:
    """Delete a file, a link, or a folder with everything in it; an entry that cannot be deleted stays."""
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            entry.unlink()


def _open_folder(folder: Path, make: bool, mend: str) -> int:
    """Open a private folder and return its descriptor. make: whether to make a folder that does not exist."""
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
            # A sticky folder, such as /tmp, is meant for everybody: do not advise to close it.
            sticky = status.st_mode & stat.S_ISVTX
            closed = "" if sticky else f" If it is meant for you alone, run: chmod go-w {shlex.quote(str(place))}"
            raise OutputError(
                f"{place}: expected a folder that nobody else can write to, got one of mode "
                f"{stat.S_IMODE(status.st_mode):o}. {mend}{closed}"
            )
    except BaseException:
        os.close(number)
        raise
    return number


def check_keeps_names(folder: Path, mend: str) -> None:
    """Raise OutputError for a folder in which another user than root could rename files of ours."""
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
    """Give an open file or folder exactly the rights `mode`. Special bits stay, such as the bit of a shared group."""
    before = stat.S_IMODE(os.fstat(number).st_mode)
    if before & 0o777 != mode:
        os.fchmod(number, before & ~0o777 | mode)


def open_private(file: Path, mode: Literal["wb", "ab"] = "wb") -> IO[bytes]:
    """Open a file that only its owner can read, to be written anew ("wb") or continued ("ab"). Raises OSError.

    The file must be in a private folder: another user who can write to the folder could have put the file there.
    """
    flags = os.O_APPEND if mode == "ab" else os.O_TRUNC
    number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, OWNER_FILE)
    _keep_to_owner(number, OWNER_FILE)
    return os.fdopen(number, mode)


def open_as_is(file: Path) -> int:
    """Open a private file, with its content or new, for reading, writing and locking. Return its descriptor.

    Raises OSError.
    """
    number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, OWNER_FILE)
    _keep_to_owner(number, OWNER_FILE)
    return number


def read_own(file: Path) -> bytes:
    """Return the content of a file of ours that nobody else can write to. Raises OSError for any other file or link."""
    refuse_named_pipe(file)
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
    """Write a file that only its owner can read, whole or not at all. It replaces a file with its name.

    durable: whether the content is on the disk before the file gets its name. Default: False. Raises OSError. The file
    must be in a private folder, see `open_private`.
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


def sync(file: Path) -> None:
    """Flush a file to the disk."""
    number = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, as far as its file system can."""
    with contextlib.suppress(OSError):
        sync(folder)


def hidden_place(folder: Path) -> Path:
    """Return a path in a folder, for a file until it gets its final name. Nobody can guess the path."""
    return folder / BESIDE.replace("*", secrets.token_hex(8))


def new_file(folder: Path, mode: int = OWNER_FILE) -> tuple[int, Path | None]:
    """Open a new file for writing, without a name if the file system can do that. Raises OSError.

    mode: int. The requested rights; the umask removes some of them. Returns the descriptor and the path. The path is
    None for a file without a name; nobody can guess another path.
    """
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode), None
    except OSError:
        beside = hidden_place(folder)
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(beside, flags, mode), beside


def rights_of(file: Path) -> int | None:
    """Return the rights of a file of ours, for the file that replaces it; None if there is no such file."""
    with contextlib.suppress(FileNotFoundError):
        status = file.lstat()
        if stat.S_ISREG(status.st_mode) and is_own(status):
            return stat.S_IMODE(status.st_mode)
    return None


def usual_file_mode(folder: Path) -> int:
    """Return the rights that new files get in a folder, by the umask or the folder's own rules. Raises OSError."""
    number, beside = new_file(folder, ASKED_FILE)
    try:
        return stat.S_IMODE(os.fstat(number).st_mode)
    finally:
        os.close(number)
        if beside is not None:
            beside.unlink()


def give_usual_rights(entry: Path) -> None:
    """Give a private file, or a folder with everything in it, the rights of new files and folders in its place.

    Folders get their rights from the bottom up, so that nobody enters an unfinished folder. Raises OSError.
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
    """Open the folder of a path, and yield the path by the folder's descriptor, with all links followed.

    A file that is written there is in the folder to which the path led, even if somebody changes a folder of the path
    meanwhile. Raises OutputError for a link of another user, except root, and for a device or a pipe, which would be
    replaced by a file; OSError if the folder does not exist.
    """
    number, names = _walk(path)
    try:
        if len(names) > 1:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        place = DESCRIPTORS / str(number) / names[0]
        if os.path.lexists(place) and not (place.is_file() or place.is_dir()):
            raise OutputError(f"{path}: is a device or a pipe; expected the name of a file. Choose another name.")
        yield place
    finally:
        os.close(number)


def followed(path: Path) -> Path:
    """Return an absolute path with all its links followed; its last parts need not exist.

    Raises OutputError for a link of another user, except root.
    """
    number, names = _walk(path)
    try:
        return real_path(DESCRIPTORS / str(number)).joinpath(*names)
    finally:
        os.close(number)


def _walk(path: Path) -> tuple[int, list[str]]:
    """Open the last existing folder of a path. Return its descriptor, and the names below it.

    Each name is looked up in the open folder before it, so that the folder that was checked is the folder that is used.
    A folder is closed after the next one has taken its place: an interruption in between must not close it twice.
    """
    start, parts = (Path("/"), path.parts[1:]) if path.is_absolute() else (Path("."), path.parts)
    if path.parts[: len(DESCRIPTORS.parts)] == DESCRIPTORS.parts and len(path.parts) > len(DESCRIPTORS.parts):
        # The path begins with a descriptor. Begin at it: another folder may have the folder's path by now.
        start, parts = DESCRIPTORS / path.parts[4], path.parts[5:]
    number = os.open(start, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    names, links = [*reversed(parts or ("."))], 0
    try:
        while True:
            name = names.pop()
            try:
                entry = os.open(name, _LOOK, dir_fd=number)
            except (FileNotFoundError, NotADirectoryError):
                return number, [name, *reversed(names)]
            status = os.fstat(entry)
            if not stat.S_ISLNK(status.st_mode):
                if names:
                    number, above = entry, number
                    os.close(above)
                    continue
                folder = real_path(DESCRIPTORS / str(entry))
                os.close(entry)
                if name not in (".", "..") or folder == Path("/"):
                    return number, [name]
                # The name is "." or "..": the folder has its own name in another folder.
                target = str(folder)
            else:
                try:
                    target = os.readlink("", dir_fd=entry)
                finally:
                    os.close(entry)
                if not is_own(status) and status.st_uid != ROOT:
                    link = real_path(DESCRIPTORS / str(number)) / name
                    raise OutputError(
                        f"{real_path(path)}: {link} is a link that another user made (user {status.st_uid}), to "
                        f"{target}. Remove it, or name the place itself."
                    )
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            if os.path.isabs(target):
                number, above = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC), number
                os.close(above)
            names += reversed([part for part in target.split("/") if part] or ["."])
    except BaseException:
        os.close(number)
        raise


def real_path(place: Path) -> Path:
    """Return the path by which users know a file whose path begins with a descriptor; any other path as it is."""
    parts, depth = place.parts, len(DESCRIPTORS.parts)
    if parts[:depth] != DESCRIPTORS.parts or len(parts) == depth:
        return place
    try:
        return Path(os.readlink(Path(*parts[: depth + 1])), *parts[depth + 1 :])
    except OSError:
        return place
