"""Which files a table is made of, told apart by what is in them; which of them changed since another run."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...io.base import Stamp
from ...io.file_errors import denied, disk_errors
from ...io.section_file import DamagedFileError, checked_facts, put_aside, write_sections
from ...rows.threads import Workers
from ..outcome import InputChanges, InputFile

# A file that changed less than so long before it was looked at may have changed again, and have the same time still.
SETTLED_NS = 2_000_000_000
DIGEST_BYTES = 32
# Bytes that are read and hashed at once.
_STEP = 1 << 20
FORMAT = 2


class _Seen(NamedTuple):
    """A file as it was when it was last hashed, and when that was, in nanoseconds since 1970.

    ctime_ns: when the system noted its last change, which nobody can put back.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    digest: str
    seen_ns: int

    def is_still(self, stamp: Stamp, ctime_ns: int) -> bool:
        """Whether a file is still what it was, as far as its size and times tell."""
        settled = self.seen_ns - self.mtime_ns >= SETTLED_NS
        return settled and (self.size, self.mtime_ns, self.ctime_ns) == (stamp.size, stamp.changed, ctime_ns)


class FileIndex:
    """The digests of files, kept from run to run, so that what did not change need not be read.

    file: where they are kept, with a checksum. What is damaged is put aside, what is of other files is not used: all
    are hashed then. say: is told, in a sentence, what was found damaged.
    """

    def __init__(self, file: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self._file = file
        self._say = say

    def digests(self, base: Path, stamps: Mapping[Path, Stamp]) -> list[str]:
        """The BLAKE2b digest of what is in each file, as it is now; base: the folder that all lie in.

        Raises TableReadError for a file that cannot be read, OutputError where they cannot be kept.
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
            digests = workers.run(_digest, [(file,) for file in unknown.values()])
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

    def verify(self) -> list[str]:
        """What is wrong with what is kept, as a sentence."""
        try:
            checked_facts(self._file)
        except FileNotFoundError:
            return []
        except DamagedFileError:
            return [f"{self._file}: damaged; the next run hashes all files again."]
        except OSError as error:
            return [str(denied(self._file, error))]
        return []


def _ctime_ns(file: Path) -> int:
    try:
        return file.stat().st_ctime_ns
    except OSError as error:
        raise denied(file, error) from error


def _digest(file: Path) -> str:
    found = hashlib.blake2b(digest_size=DIGEST_BYTES)
    try:
        with file.open("rb", buffering=0) as source:
            os.posix_fadvise(source.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
            while content := source.read(_STEP):
                found.update(content)
    except OSError as error:
        raise denied(file, error) from error
    return found.hexdigest()


def input_changes(before: Sequence[InputFile], now: Sequence[InputFile], read: Sequence[str] = ()) -> InputChanges:
    """How the files of a table differ from those of another run; read: those whose values were read this time."""
    old, new = ({file.path: file.digest for file in files} for files in (before, now))
    added, removed = ([path for path in one if path not in other] for one, other in ((new, old), (old, new)))
    gone: dict[str, list[str]] = {}
    for path in removed:
        gone.setdefault(old[path], []).append(path)
    renamed = [(gone[new[path]].pop(0), path) for path in added if gone.get(new[path])]
    moved: set[Any] = {path for pair in renamed for path in pair}
    both = [path for path in new if path in old]
    changed = [path for path in both if new[path] != old[path]]
    return InputChanges(
        added=[path for path in added if path not in moved],
        removed=[path for path in removed if path not in moved],
        changed=changed,
        renamed=renamed,
        unchanged=len(both) - len(changed),
        read=list(read),
    )
