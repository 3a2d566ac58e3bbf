"""Arrow IPC files of a run: the run writes batches of columns once, and reads them in any order."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import ipc

from ..errors import OutputError
from ..utils.private_folder import open_private, real_path
from ..utils.repeated import Repeated
from .file_errors import MORE_OPEN, TOO_MANY_OPEN, damaged, disk_errors

if TYPE_CHECKING:
    import numpy.typing as npt


class BatchWriter:
    """A writer of a file of record batches that all have the same columns; a context manager.

    Only the owner can read the file. It must be in a private folder, see `open_private`.

    schema: the Arrow type of each column, by name. threads: whether several columns are compressed at a time. codec:
    the codec of the batches, "zstd", "lz4" or None. Default: "zstd".
    """

    def __init__(
        self, file: Path, schema: Mapping[str, Any], threads: bool = False, codec: str | None = "zstd"
    ) -> None:
        self._file = file
        self._schema = pa.schema(list(schema.items()))
        self._distinct: dict[int, pa.Array] = {}
        level = 1 if codec == "zstd" else None
        compression = None if codec is None else pa.Codec(codec, compression_level=level)
        with disk_errors(file):
            self._sink = open_private(file)
            options = ipc.IpcWriteOptions(compression=compression, use_threads=threads)
            self._writer = ipc.new_file(self._sink, self._schema, options=options)

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
        """Write a batch. arrays: one array of Arrow or NumPy, or `Repeated`, for each column.

        A column that is `Repeated` in one batch is `Repeated` in all batches, with the same distinct numbers.
        """
        columns = [self._column(array, field.type) for array, field in zip(arrays, self._schema, strict=True)]
        with disk_errors(self._file):
            self._writer.write_batch(pa.record_batch(columns, schema=self._schema))

    def _column(self, array: Any, kind: pa.DataType) -> pa.Array:
        if isinstance(array, pa.Array):
            return array
        if not isinstance(array, Repeated):
            return pa.array(array, kind)
        # Arrow writes the dictionary once if all batches have the same object.
        if id(array.distinct) not in self._distinct:
            self._distinct[id(array.distinct)] = pa.array(array.distinct)
        return pa.DictionaryArray.from_arrays(pa.array(array.numbers), self._distinct[id(array.distinct)], safe=False)


class BatchReader:
    """A reader of the file of a `BatchWriter`; a context manager.

    places: indices of the columns to read. Default: all. Batches have these columns in ascending order of index.
    Raises OutputError for a damaged file.
    """

    def __init__(self, file: Path, places: Sequence[int] | None = None) -> None:
        self._file = file
        options = ipc.IpcReadOptions(included_fields=None if places is None else sorted(places))
        try:
            self._source = pa.OSFile(str(file))
            self._reader = ipc.open_file(self._source, options=options)
        except (pa.ArrowException, OSError) as error:
            raise _unread(file, error) from error

    def __enter__(self) -> BatchReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()

    def __len__(self) -> int:
        return int(self._reader.num_record_batches)

    def arrays(self, number: int) -> list[npt.NDArray[Any]]:
        """Return the columns of the batch `number` as arrays of NumPy."""
        return [column.to_numpy(zero_copy_only=False) for column in self.columns(number)]

    def repeated(self, number: int) -> list[npt.NDArray[Any] | Repeated]:
        """Return the columns of the batch `number`: `Repeated` for a column that was written as such, else an array."""
        return [
            Repeated(column.dictionary.to_numpy(), column.indices.to_numpy())
            if pa.types.is_dictionary(column.type)
            else column.to_numpy(zero_copy_only=False)
            for column in self.columns(number)
        ]

    def columns(self, number: int) -> list[pa.Array]:
        """Return the columns of the batch `number` as arrays of Arrow."""
        try:
            return list(self._reader.get_batch(number).columns)
        except (pa.ArrowException, OSError) as error:
            raise _unread(self._file, error) from error


def write_batch(file: Path, arrays: Mapping[str, Any]) -> None:
    """Write a file of a single batch. arrays: by column name."""
    columns = {name: array if isinstance(array, pa.Array) else pa.array(array) for name, array in arrays.items()}
    with BatchWriter(file, {name: array.type for name, array in columns.items()}) as writer:
        writer.write(list(columns.values()))


def read_batch(file: Path, places: Sequence[int] | None = None) -> list[npt.NDArray[Any]]:
    """Return the columns of a file of a single batch. places: indices of the columns to read. Default: all."""
    with BatchReader(file, places) as reader:
        return reader.arrays(0)


def arrow_type(column: Any) -> pa.DataType:
    """Return the Arrow type of a column that is an array of NumPy or `Repeated`."""
    if not isinstance(column, Repeated):
        return pa.from_numpy_dtype(column.dtype)
    return pa.dictionary(*(pa.from_numpy_dtype(array.dtype) for array in (column.numbers, column.distinct)))


def _unread(file: Path, error: Exception) -> OutputError:
    """Return the error for a file of a run whose reading raised `error`."""
    number = getattr(error, "errno", None)
    if number in TOO_MANY_OPEN:
        return OutputError(f"{real_path(file)}: could not be read: {os.strerror(number)}. {MORE_OPEN}")
    return damaged(file)
