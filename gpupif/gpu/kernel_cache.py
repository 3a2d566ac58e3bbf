"""The machine code of kernels, stored on disk between processes, beside the code for the CPU (`kernels.jit`)."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gpupif.kernels.cache import CACHE_FOLDER, write_whole

from ..utils.versions import installed_version
from .compile import NUMBA_OPTIONS, NVVM_OPTIONS, CompiledKernel, architecture

# Packages that turn a kernel into machine code. A toolkit outside these packages does not change the key.
COMPILERS = ("numba-cuda", "numba", "llvmlite", "nvidia-nvvm", "nvidia-cuda-nvcc", "nvidia-nvjitlink")
DIGEST_BYTES = 32


class Code(NamedTuple):
    """The name of a kernel in its machine code, and the machine code."""

    name: str
    cubin: bytes


def code_of(kernel: Any, types: Sequence[Any], capability: tuple[int, int], folder: str = CACHE_FOLDER) -> Code:
    """Return a kernel's machine code for arguments of these Numba types: from its file, or compiled and then stored.

    folder: "" to keep nothing. Sources need no look: the folder is one of theirs. Any number of threads and processes
    may ask at once; files are written whole or not at all, and one that is damaged is written anew.
    """
    function = kernel.py_func
    compiled_by = (architecture(capability), NUMBA_OPTIONS, NVVM_OPTIONS, _versions())
    key = repr((function.__module__, function.__qualname__, types, compiled_by))
    file = Path(folder) / f"{function.__name__}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.kernel"
    found = _read(file, key) if folder else None
    if found is None:
        compiled = CompiledKernel(kernel, types, capability)
        found = Code(compiled.name, compiled.cubin())
        if folder:
            _write(file, key, found)
    return found


@functools.cache
def _versions() -> tuple[str | None, ...]:
    return tuple(map(installed_version, COMPILERS))


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + content).digest()


def _read(file: Path, key: str) -> Code | None:
    """Return the code in a file; None if there is no file, or it was not written for this key."""
    try:
        stored = file.read_bytes()
    except OSError:
        return None
    digest, content = stored[:DIGEST_BYTES], stored[DIGEST_BYTES:]
    if digest != _digest(key, content):
        return None
    name, _, cubin = content.partition(b"\0")
    return Code(name.decode(), cubin)


def _write(file: Path, key: str, code: Code) -> None:
    """Keep code for other processes, which have to compile it where there is no room for it."""
    content = code.name.encode() + b"\0" + code.cubin
    write_whole(file, _digest(key, content) + content)
