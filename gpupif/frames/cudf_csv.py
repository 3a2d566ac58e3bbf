"""CSV files whose fields are split and numbered on the device, where that is sure to be right."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.device import DeviceColumn, DevicePart, in_halves, number_values
from ..errors import DeviceError, reason_of
from ..gpu.cudf_frames import CudfFrames
from ..io.base import Input
from ..io.common import Pick, check_rows
from ..io.csv_files import Head, has_any, read_head, typed_texts
from ..io.read import read_table
from .cudf_frame import DeviceFile

# Bytes of a file that are split into fields at once, and how few are tried where memory runs out.
PART_BYTES = 1 << 28
LEAST_BYTES = 1 << 20


class CsvOnDevice(DeviceFile):
    """A CSV file whose fields are split on the device; made by `csv_on_device`."""

    def __init__(self, found: Input, pick: Pick, library: CudfFrames, parts: dict[str, list[DevicePart]]) -> None:
        super().__init__(found, pick, library)
        self._parts = parts
        self.names = list(parts)
        self.rows = sum(len(part.numbers) for part in next(iter(parts.values())))

    def column(self, position: int) -> Any:
        """See `Frame`; can be asked for once, so that its memory is free when it is encoded."""
        parts = self._parts.pop(str(self.names[position]))
        return DeviceColumn(self._library, lambda: parts, ascending=False)


def csv_on_device(found: Input, pick: Pick, library: CudfFrames) -> CsvOnDevice | None:
    """Read a CSV file on the device, where each of its lines is a row with as many fields as the header.

    None for any other: with quotes, carriage returns, a byte order mark, a single column, lines of other lengths, or
    text that is not UTF-8. What such files hold, or what is wrong with them, only the CPU's parser says exactly.
    Raises DeviceError where the device fails.
    """
    file = found.path
    head = read_head(file, found.sep)
    if has_any(file, b'"\r\0') or _marked(file):
        return None
    columns = pick(head.names)
    wanted = head.names if columns is None else columns
    if head.alone or len(head.names) == 1 or not wanted:
        return None
    try:
        with library.active():
            parts = _split(file, head, wanted, library)
    except _IrregularError:
        return None
    except (MemoryError, RuntimeError) as error:
        # What is wrong with the file the CPU's reader says in the usual words.
        read_table(found, pick)
        reason = reason_of(error)
        if library.ran_out(error):
            reason = f"its memory ran out, {library.free_bytes() / 2**30:.3f} GiB are free"
        raise DeviceError(f"{file}: the GPU could not read it ({reason}). Use gpupif.config(device='cpu').") from error
    if not _type(parts):
        return None
    frame = CsvOnDevice(found, pick, library, parts)
    check_rows(file, frame.rows, wanted)
    return frame


def _marked(file: Path) -> bool:
    """Whether a file begins with the byte order mark of UTF-8."""
    with file.open("rb") as opened:
        return opened.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8


class _IrregularError(Exception):
    """A line has more or fewer fields than the header."""


def _split(file: Path, head: Head, wanted: list[str], library: CudfFrames) -> dict[str, list[DevicePart]]:
    """The parts of each column; raises _IrregularError."""
    found: list[list[DevicePart]] = []

    def split(start: int, stop: int) -> list[list[DevicePart]]:
        lines = library.read_lines(file, start, stop - start)
        lines = lines[lines != ""].reset_index(drop=True)
        # The first line of all that is not empty is the header.
        rows = lines.iloc[int(start <= header < stop) :].reset_index(drop=True)
        if len(rows) == 0:
            return []
        fields = rows.str.split(head.separator, expand=True, regex=False)
        if len(fields.columns) != len(head.names) or bool(fields[len(head.names) - 1].isna().any()):
            raise _IrregularError
        parts = [number_values(library, name, fields[head.names.index(name)]) for name in wanted]
        return [[DevicePart(part.numbers, part.labels.cast(pa.large_string())) for part in parts]]

    header = _header_start(file)
    size = file.stat().st_size
    for start in range(0, size, PART_BYTES):
        found += in_halves(library, split, start, min(size, start + PART_BYTES), LEAST_BYTES)
    return {name: [parts[place] for parts in found] for place, name in enumerate(wanted)}


def _header_start(file: Path) -> int:
    """Where the first line begins that is not empty."""
    with file.open("rb") as opened:
        place = 0
        for line in opened:
            if line != b"\n":
                break
            place += 1
    return place


def _type(parts: dict[str, list[DevicePart]]) -> bool:
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
        parts[name] = [
            DevicePart(part.numbers, values.take(pc.index_in(part.labels, value_set=unlike))) for part in own
        ]
    return True
