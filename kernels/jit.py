"""How kernels are compiled for the CPU: on first use, without the GIL, kept on disk between runs."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit


def _cache_folder() -> str:
    """Folder for compiled kernels, a new one whenever any kernel source differs.

    Numba itself looks only at the file that a function stands in: a changed formula would leave its callers in other
    files compiled with the old one.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    fingerprint = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    asked = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME")
    candidates = [Path(asked)] if asked else [Path("~/.cache").expanduser()]
    for base in (*candidates, Path(tempfile.gettempdir()) / f"gpupif-{os.getuid()}"):
        folder = base / "gpupif" / fingerprint
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return str(folder)
    return ""


_CACHE_FOLDER = _cache_folder()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function for the CPU; a CUDA kernel that calls it compiles it again for the device.

    nogil with plain loops: the engine's threads hand each call a range, so no Numba threading layer is involved and a
    caller's threads (a Dask worker's, say) may score at the same time. error_model="numpy" leaves out the checks for
    division by zero, as a CUDA kernel does.
    """
    before = config.CACHE_DIR
    config.CACHE_DIR = _CACHE_FOLDER
    try:
        return njit(cache=bool(_CACHE_FOLDER), nogil=True, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = before
