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


class FileIndex:
    """The digests of files, kept from run to run, so that what did not change need not be read.

    file: the file of the digests, with a checksum. If it is damaged it is put aside, if it is of other files it is not
    used: then all files are hashed. say: called with a sentence if the file is damaged.
    """

    def __init__(self, file: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self._file = file
        self._say = say

    def digests(self, base: Path, stamps: Mapping[Path, Stamp]) -> list[str]:
        """Return the BLAKE2b digest of the content of each file. base: the folder that contains all files.

        Raises TableReadError for a file that cannot be read, OutputError if the digests cannot be kept.
        """
        known = self._load(base)
        now = time.time_ns()
        found: dict[str, _Seen] = {}
        unknown: dict[str, Path] = {}
        noted = {file: _ctime_ns(file) for file in stamps}
        for file, stamp in stamps.items():
            name = file.relative_to(base).as_posix()
            if name in known and known[name].is_still(stamp, noted[file]):
                found[name] = known[name]
            else:
                unknown[name] = file
        with Workers() as workers:
            digests = [digest for _, digest in workers.run(file_digest, [(file,) for file in unknown.values()])]
        for (name, file), digest in zip(unknown.items(), digests, strict=True):
            found[name] = _Seen(stamps[file].size, stamps[file].changed, noted[file], digest, now)
        if found != known:
            self._store(base, found)
        return [found[file.relative_to(base).as_posix()].digest for file in stamps]

    def _load(self, base: Path) -> dict[str, _Seen]:
        try:
            document = checked_facts(self._file)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise denied(self._file, error) from error
        except DamagedFileError:
            self._say(f"{put_aside(self._file)}, and all files are hashed again.")
            return {}
        if (document.get("format"), document.get("base")) != (FORMAT, str(base.resolve())):
            return {}
        return {name: _Seen(*seen) for name, seen in document["files"].items()}

    def _store(self, base: Path, found: Mapping[str, _Seen]) -> None:
        with disk_errors(self._file), write_sections(self._file) as writer:
            writer.facts = {"format": FORMAT, "base": str(base.resolve()), "files": found}


def _ctime_ns(file: Path) -> int:
    try:
        return file.stat().st_ctime_ns
    except OSError as error:
        raise denied(file, error) from error
