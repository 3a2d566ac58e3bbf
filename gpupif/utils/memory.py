"""Memory: how much a run may take, how much it has, and sizes as people write them."""

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

# Of the memory that is free, what a run takes that was given no limit.
SHARE = 0.6
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_size(argument: str, size: Any) -> int:
    """Bytes of a size such as 2147483648, "2GiB", "500 MB"; raises InputError."""
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
    """A size as people read it."""
    for limit, unit in ((2**30, "GiB"), (2**20, "MiB")):
        if size >= limit:
            return f"{size / limit:.1f} {unit}"
    return f"{size / 2**10:.1f} KiB"


def resident_bytes() -> int:
    """Memory that this process has now."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def give_back_unused() -> None:
    """Give the system back what Arrow and the C library keep for later: `resident_bytes` counts that as taken."""
    pa.default_memory_pool().release_unused()
    # Other libraries than glibc have no such function.
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def free_bytes() -> int:
    """Memory that this process can still take: what the machine has available, or less where a cgroup limits it."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    return min([available, *_cgroup_rooms()])


def default_limit() -> int:
    """What a run may take that was given no limit: 60 % of what is free, and what the process has already."""
    return resident_bytes() + int(SHARE * free_bytes())


def _cgroup_rooms(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> list[int]:
    """What each cgroup that the process is in, of version 1 or 2, leaves it; files cached by the kernel are free."""
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
        # A container often sees its own group as the root.
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
    # Version 1 says "no limit" by a number beyond any memory.
    if most == "max" or int(most) >= 1 << 60:
        return []
    return [max(0, int(most) - used + int(facts.get(cached, 0)))]
