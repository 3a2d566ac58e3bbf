"""How kernels are compiled for the CPU: on first use, without the GIL, kept on disk between runs.

What is compiled for devices is kept in the same folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numba import __version__, config, njit

KEPT_SECONDS = 60 * 24 * 3600
# Where everybody may write, so that somebody else may have made it.
_LAST_RESORT = Path(tempfile.gettempdir()) / f"gpupif-{os.getuid()}"


def _bases() -> Iterator[Path]:
    """Where caches may lie, the best first."""
    asked = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME")
    if asked:
        yield Path(asked)
    else:
        # There may be no home: a container that runs under a number without a name.
        with contextlib.suppress(RuntimeError):
            yield Path.home() / ".cache"
    yield _LAST_RESORT


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can write there: Numba runs what it finds."""
    status = folder.lstat()
    return folder.is_dir() and not folder.is_symlink() and status.st_uid == os.getuid() and not status.st_mode & 0o022


def _remove_old(parent: Path) -> None:
    """Remove what other versions compiled and nothing was added to for long; they would compile it again."""
    for folder in parent.iterdir():
        if folder.is_dir() and not folder.is_symlink() and time.time() - folder.lstat().st_mtime > KEPT_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def _cache_folder() -> str:
    """Folder for compiled kernels, a new one for any other kernel source or Numba; "" where there is none to use.

    Numba itself looks only at the file that a function stands in: a changed formula would leave its callers in other
    files compiled with the old one. And what another version of it compiled it throws away, so that two environments
    in turn would compile each time.
    """
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    compiled_from = [__version__.encode(), *(source.read_bytes() for source in sources)]
    fingerprint = hashlib.sha256(b"".join(compiled_from)).hexdigest()[:16]
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


# For all compiled kernels, of these sources only; "" where there is none to use.
CACHE_FOLDER = _cache_folder()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function for the CPU; a CUDA kernel that calls it compiles it again for the device.

    nogil with plain loops: the engine's threads hand each call a range, so no Numba threading layer is involved and a
    caller's threads (a Dask worker's, say) may score at the same time. error_model="numpy" leaves out the checks for
    division by zero, as a CUDA kernel does.
    """
    before = config.CACHE_DIR
    config.CACHE_DIR = CACHE_FOLDER
    try:
        return njit(cache=bool(CACHE_FOLDER), nogil=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before
