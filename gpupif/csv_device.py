"""CSV files whose fields are split and numbered on the device, where that is sure to be right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from .csv_text import Head, has_any, read_head, typed_texts
from .encode_device import DeviceColumn, Part, number_values
from .errors import DeviceError
from .frames_device import DeviceFile
from .reading import Pick, check_rows, read_table

if TYPE_CHECKING:
    from .engines.cuda_frames import FrameLibrary

# Bytes of a file that are split into fields at once, and how few are tried where memory runs out.
PART_BYTES = 1 << 28
LEAST_BYTES = 1 << 20


class CsvOnDevice(DeviceFile):
    """A CSV file whose fields are split on the device; made by `csv_on_device`."""

    def __init__(
        self, file: Path, pick: Pick, sep: str | None, library: FrameLibrary, parts: dict[str, list[Part]]
    ) -> None:
        super().__init__(file, pick, sep, library)
        self._parts = parts
        self.names = list(parts)
        self.rows = sum(len(part.numbers) for part in next(iter(parts.values())))

    def column(self, position: int) -> Any:
        """See `Frame`."""
        return DeviceColumn(self._library, lambda: self._parts[str(self.names[position])], ascending=False)


def csv_on_device(file: Path, pick: Pick, sep: str | None, library: FrameLibrary) -> CsvOnDevice | None:
    """Read a CSV file on the device, where each of its lines is a row with as many fields as the header.

    None for any other: with quotes, carriage returns, a single column, lines of other lengths, or text that is not
    UTF-8. What such files hold, or what is wrong with them, only the CPU's parser says exactly. Raises DeviceError
    where the device fails.
    """
    if has_any(file, b'"\r\0'):
        return None
    head = read_head(file, sep)
    columns = pick(head.names)
    wanted = head.names if columns is None else columns
    if head.alone or len(head.names) == 1 or not wanted:
        return None
    try:
        with library.active():
            parts = _Splitter(file, head, wanted, library).parts()
    except (MemoryError, RuntimeError) as error:
        # What is wrong with the file the CPU's reader says in the usual words.
        read_table(file, pick, sep)
        reason = "its memory ran out" if library.ran_out(error) else " ".join(str(error).split()).rstrip(".")
        raise DeviceError(f"{file}: the GPU could not read it ({reason}). Use device='cpu'.") from error
    if parts is None or not _type(parts):
        return None
    frame = CsvOnDevice(file, pick, sep, library, parts)
    check_rows(file, frame.rows, wanted)
    return frame


class _Splitter:
    """Splits the lines of a file into fields, so many bytes at once as there is memory for."""

    def __init__(self, file: Path, head: Head, wanted: list[str], library: FrameLibrary) -> None:
        self._file = file
        self._head = head
        self._wanted = wanted
        self._library = library
        self._in_header = True
        self._found: dict[str, list[Part]] = {name: [] for name in wanted}

    def parts(self) -> dict[str, list[Part]] | None:
        """The parts of each column; None where a line has more or fewer fields than the header."""
        starts = range(0, self._file.stat().st_size, PART_BYTES)
        return self._found if all(self._split(start, PART_BYTES) for start in starts) else None

    def _split(self, start: int, size: int) -> bool:
        """Split the lines that begin within these bytes, in halves where memory runs out; whether they are regular."""
        try:
            return self._attempt(start, size)
        except Exception as error:
            if size <= LEAST_BYTES or not self._library.ran_out(error):
                raise
        half = size // 2
        return self._split(start, half) and self._split(start + half, size - half)

    def _attempt(self, start: int, size: int) -> bool:
        names, library = self._head.names, self._library
        lines = library.read_lines(self._file, start, size)
        lines = lines[lines != ""].reset_index(drop=True)
        if len(lines) == 0:
            return True
        # The first line that is not empty is the header.
        rows = lines.iloc[int(self._in_header) :].reset_index(drop=True)
        found = []
        if len(rows):
            fields = rows.str.split(self._head.separator, expand=True, regex=False)
            if len(fields.columns) != len(names) or bool(fields[len(names) - 1].isna().any()):
                return False
            found = [number_values(library, name, fields[names.index(name)]) for name in self._wanted]
        # Not before: what ran out of memory is tried again.
        self._in_header = False
        for name, part in zip(self._wanted, found, strict=bool(found)):
            self._found[name].append(Part(part.numbers, part.labels.cast(pa.large_string())))
        return True


def _type(parts: dict[str, list[Part]]) -> bool:
    """Give texts the values of the type that they have, empty ones none; False where a text is not UTF-8."""
    for name, own in parts.items():
        texts = pa.chunked_array([part.labels for part in own], pa.large_string())
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            return False
        unlike = texts.unique()
        unlike = unlike.filter(pc.not_equal(unlike, ""))
        values = typed_texts(unlike.cast(pa.string()))
        parts[name] = [Part(part.numbers, values.take(pc.index_in(part.labels, value_set=unlike))) for part in own]
    return True
