"""A file of compressed sections of bytes. It is written once, whole or not at all, and its checksum detects damage.

Layout: `MAGIC`, the sections one after the other, facts about them as JSON, the length of the JSON, and the BLAKE2b
digest of all bytes before the digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from .documents import parse_json
from .file_errors import disk_errors
from .write import replacing

MAGIC = b"gpupif sections 1\n"
DIGEST_BYTES = 32
# The length of the JSON in bytes, which comes before the digest.
_LENGTH = struct.Struct("<Q")
# Bytes that are read and hashed at once.
_STEP = 1 << 20
_CODEC = "zstd"


# The prefix of the names of damaged files.
DAMAGED = "damaged-"


class DamagedFileError(Exception):
    """A file that changed since it was written, or that is no file of sections."""


def put_aside(file: Path) -> str:
    """Rename a damaged file, so that no run reads it again. Return half a sentence that says so.

    Raises OutputError if the file cannot be renamed.
    """
    with disk_errors(file):
        aside = file.replace(file.with_name(f"{DAMAGED}{file.name}"))
    return f"{file}: damaged; put aside as {aside.name}"


class Section(NamedTuple):
    """The place of a section in its file.

    start: the first byte. stored: the bytes of the section as it is stored. size: its bytes before compression.
    """

    start: int
    stored: int
    size: int


class SectionWriter:
    """A writer that adds sections to a file. facts: the facts about the sections, which the caller sets at the end."""

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self._hash = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self._end = 0
        self._codec = pa.Codec(_CODEC, compression_level=1)
        self.facts: dict[str, Any] | None = None
        self._write(MAGIC)

    def add(self, content: Any) -> Section:
        """Add the bytes of a buffer or an array, and return the place of the new section."""
        plain = pa.py_buffer(content)
        packed = self._codec.compress(plain)
        section = Section(self._end, packed.size, plain.size)
        self._write(packed)
        return section

    def _write(self, content: Any) -> None:
        self._hash.update(content)
        self._sink.write(content)
        self._end += len(content)

    def close(self) -> None:
        """Write the facts about the sections, their length and the digest."""
        facts = json.dumps(self.facts).encode()
        self._write(facts)
        self._write(_LENGTH.pack(len(facts)))
        self._sink.write(self._hash.digest())


@contextlib.contextmanager
def write_sections(file: Path) -> Iterator[SectionWriter]:
    """Open a writer of a file of sections, which only the owner can read. The caller sets the writer's `facts`.

    Raises OutputError if the disk refuses the file.
    """
    with replacing(file, overwrite=True, private=True) as sink:
        writer = SectionWriter(sink)
        yield writer
        writer.close()


def checked_facts(file: Path) -> dict[str, Any]:
    """Return the facts about the sections of a file. Every byte of the file is checked.

    Raises DamagedFileError if a byte changed since the file was written, and OSError.
    """
    with file.open("rb", buffering=0) as source:
        rest = os.fstat(source.fileno()).st_size - DIGEST_BYTES
        if rest < len(MAGIC) + _LENGTH.size:
            raise DamagedFileError
        content = hashlib.blake2b(digest_size=DIGEST_BYTES)
        for start in range(0, rest, _STEP):
            content.update(os.pread(source.fileno(), min(_STEP, rest - start), start))
        if content.digest() != os.pread(source.fileno(), DIGEST_BYTES, rest):
            raise DamagedFileError
        [size] = _LENGTH.unpack(os.pread(source.fileno(), _LENGTH.size, rest - _LENGTH.size))
        facts = os.pread(source.fileno(), size, rest - _LENGTH.size - size)
    return parse_json(facts)  # type: ignore[no-any-return]


def read_section(file: Path, section: Section) -> pa.Buffer:
    """Return the bytes of a section; raises DamagedFileError if they cannot be decompressed, and OSError."""
    with file.open("rb", buffering=0) as source:
        packed = os.pread(source.fileno(), section.stored, section.start)
    try:
        return pa.Codec(_CODEC).decompress(packed, section.size)
    except (pa.ArrowException, OSError) as error:
        raise DamagedFileError from error
