"""A file of sections of bytes that is written once, whole or not at all, and knows by its checksum what was in it.

The sections, one behind the other, then what is said of them as JSON, the length of that, and the BLAKE2b digest of
all before it.
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
# What is said is this long; before the digest.
_LENGTH = struct.Struct("<Q")
# Bytes that are read and hashed at once.
_STEP = 1 << 20
_CODEC = "zstd"


# What the names of damaged files begin with.
DAMAGED = "damaged-"


class DamagedFileError(Exception):
    """A file that is not as it was written, or is none of this kind."""


def put_aside(file: Path) -> str:
    """Give a damaged file a name by which nobody uses it; what there is to say of it, half a sentence.

    Raises OutputError where it cannot have that name.
    """
    with disk_errors(file):
        aside = file.replace(file.with_name(f"{DAMAGED}{file.name}"))
    return f"{file}: damaged; put aside as {aside.name}"


class Section(NamedTuple):
    """Where in a file some bytes are, compressed, and how many they are then."""

    start: int
    stored: int
    size: int


class SectionWriter:
    """Adds sections to a file that is being written."""

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self._hash = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self._end = 0
        self._codec = pa.Codec(_CODEC, compression_level=1)
        self.facts: dict[str, Any] | None = None
        self._write(MAGIC)

    def add(self, content: Any) -> Section:
        """Add the bytes of a buffer or an array; where they are."""
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
        """Write what is said of the sections, `facts`."""
        said = json.dumps(self.facts).encode()
        self._write(said)
        self._write(_LENGTH.pack(len(said)))
        self._sink.write(self._hash.digest())


@contextlib.contextmanager
def write_sections(file: Path) -> Iterator[SectionWriter]:
    """A file of sections, readable by its owner only; whoever writes it sets the writer's `facts`.

    Raises OutputError where the disk does not take it.
    """
    with replacing(file, overwrite=True, private=True) as sink:
        writer = SectionWriter(sink)
        yield writer
        writer.close()


def checked_facts(file: Path) -> dict[str, Any]:
    """What is said of the sections of a file; raises DamagedFileError where a byte of it is another, OSError."""
    with file.open("rb", buffering=0) as source:
        rest = os.fstat(source.fileno()).st_size - DIGEST_BYTES
        if rest < len(MAGIC) + _LENGTH.size:
            raise DamagedFileError
        found = hashlib.blake2b(digest_size=DIGEST_BYTES)
        for start in range(0, rest, _STEP):
            found.update(os.pread(source.fileno(), min(_STEP, rest - start), start))
        if found.digest() != os.pread(source.fileno(), DIGEST_BYTES, rest):
            raise DamagedFileError
        [size] = _LENGTH.unpack(os.pread(source.fileno(), _LENGTH.size, rest - _LENGTH.size))
        said = os.pread(source.fileno(), size, rest - _LENGTH.size - size)
    return parse_json(said)  # type: ignore[no-any-return]


def read_section(file: Path, section: Section) -> pa.Buffer:
    """The bytes of a section; raises DamagedFileError, OSError."""
    with file.open("rb", buffering=0) as source:
        packed = os.pread(source.fileno(), section.stored, section.start)
    try:
        return pa.Codec(_CODEC).decompress(packed, section.size)
    except (pa.ArrowException, OSError) as error:
        raise DamagedFileError from error
