"""The memory that a run may take, the memory that it has, and sizes as people write them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import InputError
from .validation import MOST, brief, is_whole

# The share of the free memory that a run without a limit may take.
SHARE = 0.6
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_size(argument: str, size: Any) -> int:
    """Return the bytes of a size such as 2147483648, "2GiB" or "500 MB"; raises InputError for another text."""
    if is_whole(size) and size > 0:
        return min(int(size), MOST)
    match = (
        re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", size, re.IGNORECASE) if isinstance(size, str) else None
    )
    parsed = min(int(Decimal(match[1]) * UNITS[(match[2] or "").lower()]), MOST) if match else 0
    if parsed <= 0:
        raise InputError(
            f"{argument}: expected a size such as '2GiB' or '500MB', or a number of bytes, got {brief(size)}."
        )
    return parsed


def shown(size: float) -> str:
    """Return a number of bytes as people read it, such as "1.5 GiB"."""
    for limit, unit in ((2**30, "GiB"), (2**20, "MiB")):
        if size >= limit:
            return f"{size / limit:.1f} {unit}"
    return f"{size / 2**10:.1f} KiB"


def resident_bytes() -> int:
    """Return the bytes of memory that this process has now."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def give_back_unused() -> None:
    """Return unused memory of Arrow and of the C library to the system: `resident_bytes` counts it as taken."""
    pa.default_memory_pool().release_unused()
    # Libraries other than glibc lack this function.
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def free_bytes() -> int:
    """Return the bytes that this process can still take: the available memory, or less if a cgroup limits it."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    return min([available, *_cgroup_rooms()])


def default_limit() -> int:
    """Return the bytes that a run without a limit may take: the memory of the process, and 60 % of the free memory."""
    return resident_bytes() + int(SHARE * free_bytes())


def _cgroup_rooms(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> list[int]:
    """Return the bytes that each cgroup of the process leaves to it, in version 1 or 2 of cgroups.

    Files that the kernel caches count as free. root, own: the paths of the kernel's files; tests give others.
    """
    rooms = []
    try:
        groups = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return []
    for _, controllers, path in groups:
        if controllers == "":
            base, limit, usage, cached = root, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            base, limit, usage = root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            cached = "total_inactive_file"
        else:
            continue
        folder = base / path.strip("/")
        # A container often sees its own cgroup as the root.
        for group in [folder, *folder.parents] if folder.is_dir() else [base]:
            rooms += _room(group, limit, usage, cached)
            if group == base:
                break
    return rooms


def _room(group: Path, limit: str, usage: str, cached: str) -> list[int]:
    try:
        most, used = (group / limit).read_text().strip(), int((group / usage).read_text())
        facts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return []
    # In version 1, a number beyond any memory means "no limit".
    if most == "max" or int(most) >= 1 << 60:
        return []
    return [max(0, int(most) - used + int(facts.get(cached, 0)))]
