"""The folder in which compiled kernels are kept between processes, named by the text of all kernels.

The folder does not depend on where the kernels are installed. Kernels that are compiled for a GPU are kept there, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import config
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

KEPT_SECONDS = 60 * 24 * 3600
# Everybody may write to the folder above it, so another user may have made this folder: `_is_ours` checks.
_LAST_RESORT = Path(tempfile.gettempdir()) / f"gpupif-{os.getuid()}"
# Seconds to wait for another process that compiles the same kernel, more than any kernel takes; seconds between looks.
MOST_WAITED, LOOK_EVERY = 60.0, 0.01
DIGEST_BYTES = 32


def _bases() -> Iterator[Path]:
    """Yield the folders in which caches can be kept, the preferred one first."""
    asked = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME")
    if asked:
        yield Path(asked)
    else:
        # A container that runs under a user number without a name has no home folder.
        with contextlib.suppress(RuntimeError):
            yield Path.home() / ".cache"
    yield _LAST_RESORT


def _is_ours(folder: Path) -> bool:
    """Return whether nobody else can write to a folder; the code that is found there is run."""
    status = folder.lstat()
    return folder.is_dir() and not folder.is_symlink() and status.st_uid == os.getuid() and not status.st_mode & 0o022


def _remove_old(parent: Path) -> None:
    """Remove the folders of other versions that nothing was added to for `KEPT_SECONDS`; they can compile again."""
    for folder in parent.iterdir():
        if folder.is_dir() and not folder.is_symlink() and time.time() - folder.lstat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def _cache_folder() -> str:
    """Return the folder for compiled kernels, "" if none can be used.

    The folder's name depends on the compiler and on the text of all kernels together: the compiled code of a kernel
    contains the formulas that it calls in other files.
    """
    folder_here = Path(__file__).parent
    compiled_from = [numba.__version__, llvmlite.__version__, *map(str, sys.version_info)]
    for source in sorted(folder_here.rglob("*.py")):
        compiled_from += [str(source.relative_to(folder_here)), source.read_text(encoding="utf-8")]
    fingerprint = hashlib.sha256("\0".join(compiled_from).encode()).hexdigest()[:16]
    for base in _bases():
        parent = base / "gpupif"
        folder = parent / fingerprint
        try:
            base.mkdir(mode=0o700, parents=True, exist_ok=True)
            if base == _LAST_RESORT and not _is_ours(base):
                continue
            parent.mkdir(mode=0o700, exist_ok=True)
            if not folder.exists() and _is_ours(parent):
                _remove_old(parent)
            folder.mkdir(mode=0o700, exist_ok=True)
            if _is_ours(parent) and _is_ours(folder) and os.access(folder, os.W_OK):
                return str(folder)
        except OSError:
            continue
    return ""


# The folder for the compiled kernels of this text; "" if none can be used.
CACHE_FOLDER = _cache_folder()


class KernelCache:
    """Compiled code of one kernel: one file for each signature and processor, written whole or not at all.

    If several processes need the same code at once, one compiles and the others wait for it. Numba's own cache cannot
    do it: it depends on the path and the time of the source file, two processes that add to its index at once damage
    it, and it imports the whole compiler before it loads anything, which takes a third of a second.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any], folder: str) -> None:
        self.cache_path = folder
        self._options = tuple(sorted(map(str, options.items())))
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        # The locks of the files that this process compiles, by file.
        self._claims: dict[Path, int] = {}

    def has_overload(self, sig: Any, target_context: Any) -> bool:
        """Return whether compiled code is kept for these types of arguments."""
        return self._file(self._key(sig, target_context.codegen())).exists()

    def claims(self, sig: Any, target_context: Any) -> bool:
        """Make other processes wait for this one to compile; return False if another process already compiles."""
        return self._claims_at_once(self._file(self._key(sig, target_context.codegen())))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for these types of arguments; None if this process has to compile it."""
        # The code refers to the runtime, which compiling would initialise, too.
        rtsys.initialize(target_context)
        key = self._key(sig, target_context.codegen())
        file = self._file(key)
        stored = _read(file, key)
        if stored is None:
            self._claim(file)
            stored = _read(file, key)
        if stored is None:
            return None
        self._give_up(file)
        return self.rebuild(target_context, stored)

    def rebuild(self, target_context: Any, stored: tuple[Any, ...]) -> CompileResult:
        """Return the compiled code that was stored."""
        return CompileResult._rebuild(target_context, *stored)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code; if there is no room for it, the next process compiles again."""
        if data.library.has_dynamic_globals:
            raise RuntimeError(f"{self._name}: compiled with addresses of this process, so that it cannot be kept")
        key = self._key(sig, data.codegen)
        file = self._file(key)
        content = dumps((key, data._reduce()))
        write_whole(file, hashlib.sha256(content).digest() + content)
        self._give_up(file)

    def flush(self) -> None:
        """Do nothing: Numba calls it, and nothing is held back."""

    def _key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        """Return all that machine code depends on, except the sources and versions that name the folder."""
        asked = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK)
        return signature, codegen.magic_tuple(), self._options, tuple(map(str, asked))

    def _file(self, key: tuple[Any, ...]) -> Path:
        return Path(self.cache_path) / f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.code"

    def _claim(self, file: Path) -> None:
        """Make other processes wait for this one, or wait for the process that compiles this file already."""
        until = time.monotonic() + MOST_WAITED
        while not self._claims_at_once(file) and time.monotonic() < until:
            time.sleep(LOOK_EVERY)

    def _claims_at_once(self, file: Path) -> bool:
        """Make other processes wait for this one; return False if another process compiles this file already."""
        # If files cannot be locked, each process compiles for itself.
        with contextlib.suppress(OSError):
            if file not in self._claims:
                claim = os.open(_lock_of(file), os.O_RDWR | os.O_CREAT, 0o600)
                try:
                    locked = _locked(claim)
                except OSError:
                    os.close(claim)
                    raise
                if not locked:
                    os.close(claim)
                    return False
                self._claims[file] = claim
        return True

    def _give_up(self, file: Path) -> None:
        claim = self._claims.pop(file, None)
        if claim is not None:
            with contextlib.suppress(OSError):
                os.unlink(_lock_of(file))
            # Closing is not enough: a process that was forked meanwhile has the file open, too.
            fcntl.flock(claim, fcntl.LOCK_UN)
            os.close(claim)


def _read(file: Path, key: tuple[Any, ...]) -> Any:
    """Return the code that `save_overload` wrote for this key; None if there is no file or it is damaged."""
    try:
        stored = file.read_bytes()
    except OSError:
        return None
    digest, content = stored[:DIGEST_BYTES], stored[DIGEST_BYTES:]
    if digest != hashlib.sha256(content).digest():
        return None
    try:
        written_for, result = pickle.loads(content)
    except (ImportError, AttributeError):
        # The code was compiled for the types of a module that another version of gpupif has renamed.
        return None
    return result if written_for == key else None


def write_whole(file: Path, content: bytes) -> None:
    """Write a file for other processes; write none if there is no room for it."""
    with contextlib.suppress(OSError):
        descriptor, written = tempfile.mkstemp(dir=file.parent, prefix=file.name)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
            os.replace(written, file)
        except BaseException:
            os.unlink(written)
            raise


def _lock_of(file: Path) -> Path:
    return file.with_suffix(".lock")


def _locked(descriptor: int) -> bool:
    """Lock a file; return False if another process holds the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
