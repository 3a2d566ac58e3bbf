"""A command run in a process of its own, its time, its memory and its temporary files watched from outside.

Memory is the resident set (RSS) of the command and of all that it starts, added up, pages of libraries and of mapped
files among it; pages that two processes share count twice, so it is never too little. The proportional set (PSS) would
count them once, but the kernel walks all page tables for it and holds up the process meanwhile. The kernel's own high
water mark of each process is read too, so nothing is missed between two looks at a single process. What the kernel
caches of files is no memory of a process, and is not counted.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

MEMORY_SECONDS = 0.02
# Looking through all processes and files takes longer, and less happens to them.
FOLDER_SECONDS = 0.2


class Watched(NamedTuple):
    """A command that has ended.

    temporary_bytes: of the files in the folder that was watched, at most. status: None where it was stopped because it
    took too long. processor_seconds: of all cores, in the program and in the kernel; page_faults: how often memory was
    touched that was not there yet; of the process, and of those that it started and waited for.
    """

    seconds: float
    peak_bytes: int
    temporary_bytes: int
    status: int | None
    output: str
    errors: str
    processor_seconds: float
    page_faults: int


def watch(
    command: Sequence[str],
    temporary: Path,
    log: Path,
    most_seconds: float = math.inf,
    environment: Mapping[str, str] | None = None,
    place: Path | None = None,
) -> Watched:
    """Run a command to its end, or for so long at most.

    temporary: the folder to watch. log: its output goes to files of this name. place: the folder to run it in.
    """
    out, err = log.with_suffix(".out"), log.with_suffix(".err")
    with out.open("w") as stdout, err.open("w") as stderr:
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        # A session of its own, by which all that it starts is found.
        process = subprocess.Popen(
            command, stdout=stdout, stderr=stderr, env=environment, cwd=place, start_new_session=True
        )
        gauge = Gauge(process.pid, temporary)
        try:
            while not _ended(process) and time.perf_counter() - started < most_seconds:
                gauge.look()
            seconds = time.perf_counter() - started
            status = process.poll()
        finally:
            _stop(process)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    faults = after.ru_minflt - before.ru_minflt
    texts = out.read_text(), err.read_text()
    return Watched(seconds, gauge.peak_bytes, gauge.temporary_bytes, status, *texts, processor, faults)


class Gauge:
    """The most memory that the processes of a session have had, and the most bytes that a folder has held."""

    def __init__(self, session: int, folder: Path) -> None:
        self.peak_bytes = 0
        self.temporary_bytes = 0
        self._session = session
        self._folder = folder
        self._members: list[int] = []
        self._next = 0.0

    def look(self) -> None:
        """Look once."""
        if time.perf_counter() >= self._next:
            self._members = members(self._session)
            self.temporary_bytes = max(self.temporary_bytes, folder_bytes(self._folder))
            self._next = time.perf_counter() + FOLDER_SECONDS
        memories = [memory(process) for process in self._members]
        self.peak_bytes = max([self.peak_bytes, sum(now for now, _ in memories), *(most for _, most in memories)])


def members(session: int) -> list[int]:
    """Return the processes of a session."""
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            # The name of a program stands in brackets and may hold anything; the session is the fourth field after it.
            if (
                entry.isdecimal()
                and int(Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[3]) == session
            ):
                found.append(int(entry))
    return found


def memory(process: int) -> tuple[int, int]:
    """Return the resident bytes of a process, now and at most so far; zeros if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    facts = dict(line.split(":", 1) for line in lines)
    now, most = (int(facts.get(name, "0").split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


def folder_bytes(folder: Path) -> int:
    """Add up the bytes of all files in a folder; files may come and go meanwhile."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(where, name), follow_symlinks=False).st_size
    return total


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(MEMORY_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started, if it still runs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
