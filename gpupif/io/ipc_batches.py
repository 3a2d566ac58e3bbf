"""Arrow IPC files of batches, which a run writes once and reads in any order."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import ipc

from ..errors import OutputError

if TYPE_CHECKING:
    import numpy.typing as npt


class BatchWriter:
    """A file of record batches of the same columns, to be read in any order; a context manager.

    threads: compress several columns at a time.
    """

    def __init__(self, file: Path, schema: Mapping[str, Any], threads: bool = False) -> None:
        self._file = file
        self._schema = pa.schema(list(schema.items()))
        with disk_errors(file):
            self._sink = file.open("wb")
            self._writer = ipc.new_file(self._sink, self._schema, options=_options(threads))

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(self, *error: object) -> None:
        with disk_errors(self._file):
            try:
                if error[0] is None:
                    self._writer.close()
            finally:
                self._sink.close()

    def write(self, arrays: Sequence[Any]) -> None:
        """Add a batch."""
        columns = [
            array if isinstance(array, pa.Array) else pa.array(array, field.type)
            for array, field in zip(arrays, self._schema, strict=True)
        ]
        with disk_errors(self._file):
            self._writer.write_batch(pa.record_batch(columns, schema=self._schema))


class BatchReader:
    """What a `BatchWriter` wrote; places: of the columns to read (None: all), in ascending order."""

    def __init__(self, file: Path, places: Sequence[int] | None = None) -> None:
        self._file = file
        options = ipc.IpcReadOptions(included_fields=None if places is None else sorted(places))
        try:
            self._source = pa.OSFile(str(file))
            self._reader = ipc.open_file(self._source, options=options)
        except (pa.ArrowException, OSError) as error:
            raise damaged(file) from error

    def __enter__(self) -> BatchReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()

    def __len__(self) -> int:
        return int(self._reader.num_record_batches)

    def arrays(self, number: int) -> list[npt.NDArray[Any]]:
        """The columns of a batch, of numbers."""
        return [column.to_numpy(zero_copy_only=False) for column in self.columns(number)]

    def columns(self, number: int) -> list[pa.Array]:
        """The columns of a batch."""
        try:
            return list(self._reader.get_batch(number).columns)
        except (pa.ArrowException, OSError) as error:
            raise damaged(self._file) from error


def write_batch(file: Path, arrays: Mapping[str, Any]) -> None:
    """A file of a single batch."""
    columns = {name: array if isinstance(array, pa.Array) else pa.array(array) for name, array in arrays.items()}
    with BatchWriter(file, {name: array.type for name, array in columns.items()}) as writer:
        writer.write(list(columns.values()))


def read_batch(file: Path, places: Sequence[int] | None = None) -> list[npt.NDArray[Any]]:
    """The columns of a file of a single batch, or those at these places, ascending."""
    with BatchReader(file, places) as reader:
        return reader.arrays(0)


def _options(threads: bool) -> Any:
    return ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=threads)


def damaged(file: Path) -> OutputError:
    """What to raise for a file of a run that cannot be read again."""
    return OutputError(f"{file}: a file of the run is damaged or gone. Start again without resume (--resume).")


@contextlib.contextmanager
def disk_errors(file: Path) -> Iterator[None]:
    """Say of what the disk refuses where and how to mend it."""
    try:
        yield
    except OSError as error:
        mend = "Free some space, or choose another place with temp (--temp)." if error.errno == errno.ENOSPC else ""
        raise OutputError(f"{file}: could not be written: {error.strerror or error}. {mend}".rstrip()) from error
