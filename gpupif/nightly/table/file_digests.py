"""The digests of the files of a table, kept from run to run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ...io.base import Stamp
from ...io.file_errors import denied, disk_errors
from ...io.section_file import DamagedFileError, checked_facts, put_aside, write_sections
from ...rows.threads import Workers
from ..record.state_folder import file_digest

# A file may change twice within the resolution of its time. Its digest is trusted if it was hashed this long after.
SETTLED_NS = 2_000_000_000
FORMAT = 2


class _Seen(NamedTuple):
    """A file when it was last hashed; seen_ns: the time of that, in nanoseconds since 1970.

    ctime_ns: when the system noted its last change, which nobody can put back.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    digest: str
    seen_ns: int

    def is_still(self, stamp: Stamp, ctime_ns: int) -> bool:
        """Return whether a file is still what it was, as far as its size and times tell."""
        settled = self.seen_ns - self.mtime_ns >= SETTLED_NS
        return settled and (self.size, self.mtime_ns, self.ctime_ns) == (stamp.size, stamp.changed, ctime_ns)


def file_digests(file: Path, base: Path, stamps: Mapping[Path, Stamp], say: Callable[[str], None]) -> list[str]:
    """Return the BLAKE2b digest of the content of each file of a table. Files that did not change are not read.

    file: the file of the digests of the last run, with a checksum. If it is damaged it is put aside, if it is of other
    files it is not used: then all files are hashed. base: the folder that contains all files. say: called with a
    sentence if the file is damaged.

    Raises TableReadError for a file that cannot be read, OutputError if the digests cannot be kept.
    """
    known = _load(file, base, say)
    now = time.time_ns()
    names = {path: path.relative_to(base).as_posix() for path in stamps}
    noted = {path: _ctime_ns(path) for path in stamps}
    seen = {path: known[name] for path, name in names.items() if name in known}
    unknown = [path for path in stamps if path not in seen or not seen[path].is_still(stamps[path], noted[path])]
    with Workers() as workers:
        digests = [digest for _, digest in workers.run(file_digest, [(path,) for path in unknown])]
    for path, digest in zip(unknown, digests, strict=True):
        seen[path] = _Seen(stamps[path].size, stamps[path].changed, noted[path], digest, now)
    found = {names[path]: seen[path] for path in stamps}
    if found != known:
        with disk_errors(file), write_sections(file) as writer:
            writer.facts = {"format": FORMAT, "base": str(base.resolve()), "files": found}
    return [seen[path].digest for path in stamps]


def _load(file: Path, base: Path, say: Callable[[str], None]) -> dict[str, _Seen]:
    try:
        document = checked_facts(file)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise denied(file, error) from error
    except DamagedFileError:
        say(f"{put_aside(file)}, and all files are hashed again.")
        return {}
    if (document.get("format"), document.get("base")) != (FORMAT, str(base.resolve())):
        return {}
    return {name: _Seen(*seen) for name, seen in document["files"].items()}


def _ctime_ns(file: Path) -> int:
    try:
        return file.stat().st_ctime_ns
    except OSError as error:
        raise denied(file, error) from error
