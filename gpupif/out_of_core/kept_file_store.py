"""Kept files: each has the encoded rows of one file or stream, and is kept between runs.

A kept file is found by the content of the original file and the way in which that was read. An original file that
changed, or is read in another way, has another kept file. A kept file is made of sections with a checksum, and appears
whole or not at all.
"""

from __future__ import annotations

import base64
import contextlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

from ..encoding.merge import ValueCounts, encode_part
from ..errors import OutputError
from ..io.file_errors import denied, disk_errors
from ..io.section_file import (
    DAMAGED,
    DamagedFileError,
    Section,
    SectionWriter,
    checked_facts,
    put_aside,
    read_section,
    write_sections,
)
from ..rows.threads import Workers
from ..utils.private_folder import BESIDE, private_folder

# Version of the layout of a kept file.
FORMAT = 1
ENDING = ".part"
# Digits of digests in the names of files; the files themselves contain the whole digests.
CONTENT_DIGITS, RECIPE_DIGITS = 40, 16


class KeptFileKey(NamedTuple):
    """The key of a kept file.

    content: str. The digest of the content that was read.
    recipe: str. The digest of the way in which it was read.
    """

    content: str
    recipe: str

    @property
    def file_name(self) -> str:
        """The name of the kept file."""
        return f"{self.content[:CONTENT_DIGITS]}-{self.recipe[:RECIPE_DIGITS]}{ENDING}"


@dataclass(frozen=True)
class KeptChunk:
    """A chunk of encoded rows, with codes of its own.

    file: Path. The kept file.
    size: int. The number of rows.
    labels: list of int, one for each column. The number of distinct values.
    """

    file: Path
    size: int
    labels: Sequence[int]
    _kinds: Sequence[pa.DataType]
    _codes: Sequence[tuple[Section, str]]
    _values: Sequence[Section]

    def codes(self, place: int) -> npt.NDArray[Any]:
        """Return the codes of a column; missing values have the last code."""
        where, dtype = self._codes[place]
        return np.frombuffer(self._read(where), dtype)

    def values(self, place: int) -> ValueCounts:
        """Return the values of a column by code, with multiplicities; 0 for missing values."""
        batch = ipc.read_record_batch(self._read(self._values[place]), _values_schema(self._kinds[place]))
        return ValueCounts(batch.column(0), batch.column(1).to_numpy(), 0)

    def _read(self, where: Section) -> pa.Buffer:
        try:
            return read_section(self.file, where)
        except (DamagedFileError, OSError) as error:
            raise OutputError(f"{self.file}: the kept file is damaged or gone. Run again.") from error


class KeptFile(NamedTuple):
    """The encoded rows of a file in chunks. missing: list of int, one for each column. The number of missing values."""

    chunks: Sequence[KeptChunk]
    missing: Sequence[int]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(chunk.size for chunk in self.chunks)


def _values_schema(kind: pa.DataType) -> pa.Schema:
    return pa.schema([("label", kind), ("count", pa.int64())])


class KeptFileStore:
    """A folder of kept files, readable by its owner only; one run uses it at a time.

    say: function called with a sentence for each damaged file. Default: does nothing.
    """

    def __init__(self, folder: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self.folder = folder
        self._say = say
        # The names of the files that existed at first, by digest of their content.
        self._there: dict[str, set[str]] = {}

    def prepare(self) -> None:
        """Make the folder, and delete the unfinished files of a killed run."""
        with disk_errors(self.folder):
            private_folder(self.folder)
            for left in self.folder.glob(BESIDE):
                left.unlink(missing_ok=True)
            self._there = defaultdict(set)
            for file in self.folder.glob(f"*{ENDING}"):
                self._there[file.name.partition("-")[0]].add(file.name)

    def find(self, key: KeptFileKey) -> KeptFile | None:
        """Return the kept file with a key after a check of all its bytes; None if there is none, or it is damaged.

        A damaged file is renamed. Raises TableReadError if it may not be read, OutputError if it cannot be renamed.
        """
        file = self.folder / key.file_name
        try:
            facts = checked_facts(file)
        except FileNotFoundError:
            return None
        except DamagedFileError:
            facts = {}
        except OSError as error:
            raise denied(file, error) from error
        if facts.get("key") != list(key):
            self._say(f"{put_aside(file)}, and made again.")
            return None
        return _opened(file, facts)

    def has_other(self, key: KeptFileKey) -> bool:
        """Return whether there was a kept file of the same content, read in another way or by another version."""
        return bool(self._there.get(key.content[:CONTENT_DIGITS], set()) - {key.file_name})

    def write(
        self, key: KeptFileKey, chunks: Iterable[pa.Table], names: Sequence[str], workers: Workers | None = None
    ) -> KeptFile:
        """Encode chunks of rows as the kept file with a key. workers: threads, one for each column; None: this thread.

        Raises ColumnTypeError, OutputError, and the errors of `chunks`.
        """
        file = self.folder / key.file_name
        with write_sections(file) as writer:
            facts = writer.facts = _write_chunks(writer, chunks, names, workers) | {"key": list(key)}
        return _opened(file, facts)

    def forget_unused(self, keys: Collection[KeptFileKey]) -> None:
        """Delete all kept files except those with these keys, and their damaged copies, which stay for inspection."""
        used = {key.file_name for key in keys}
        with disk_errors(self.folder):
            for file in self.folder.glob(f"*{ENDING}"):
                if file.name.removeprefix(DAMAGED) not in used:
                    file.unlink(missing_ok=True)

    def verify(self) -> list[str]:
        """Return a sentence for each problem of a kept file; nothing is changed."""

        def check(file: Path) -> list[str]:
            with contextlib.suppress(FileNotFoundError):
                try:
                    key = KeptFileKey(*checked_facts(file)["key"])
                    return (
                        [] if key.file_name == file.name else [f"{file}: this is another kept file, {key.file_name}."]
                    )
                except DamagedFileError:
                    return [f"{file}: damaged; the next run makes it again."]
                except PermissionError as error:
                    return [str(denied(file, error))]
            return []

        files = [file for file in sorted(self.folder.glob(f"*{ENDING}")) if not file.name.startswith(DAMAGED)]
        with Workers() as workers:
            return [problem for problems in workers.run(check, [(file,) for file in files]) for problem in problems]


def _write_chunks(
    writer: SectionWriter, chunks: Iterable[pa.Table], names: Sequence[str], workers: Workers | None
) -> dict[str, Any]:
    """Write the codes and values of chunks to a file; return the facts to store with them."""
    sizes: list[int] = []
    codes: list[list[list[Any]]] = []
    values: list[list[list[int]]] = []
    missing, kinds = [0] * len(names), [pa.null()] * len(names)
    for chunk in (own for own in chunks if own.num_rows):
        tasks = [(name, chunk.column(name)) for name in names]
        parts = [encode_part(*task) for task in tasks] if workers is None else workers.run(encode_part, tasks)
        kinds = [part.values.labels.type for part in parts]
        codes.append([[*writer.add(part.codes), part.codes.dtype.str] for part in parts])
        values.append([])
        for place, part in enumerate(parts):
            labels = part.values.labels
            batch = pa.record_batch([labels, pa.array(part.values.counts)], schema=_values_schema(labels.type))
            values[-1].append([*writer.add(batch.serialize()), len(labels)])
            missing[place] += part.values.missing
        sizes.append(chunk.num_rows)
    schema = pa.schema([(str(place), kind) for place, kind in enumerate(kinds)]).serialize().to_pybytes()
    return {
        "sizes": sizes,
        "missing": missing,
        "kinds": base64.b64encode(schema).decode(),
        "codes": codes,
        "values": values,
    }


def _opened(file: Path, facts: dict[str, Any]) -> KeptFile:
    """Return the kept file with these facts."""
    kinds = ipc.read_schema(pa.py_buffer(base64.b64decode(facts["kinds"]))).types
    chunks = [
        KeptChunk(
            file,
            size,
            [count for *_, count in values],
            kinds,
            [(Section(*where), dtype) for *where, dtype in codes],
            [Section(*where) for *where, _ in values],
        )
        for size, codes, values in zip(facts["sizes"], facts["codes"], facts["values"], strict=True)
    ]
    return KeptFile(chunks, facts["missing"])
