"""Tables from files and scores to files; what is written appears whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from .errors import OutputError, TableReadError

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
FEATHER = (".feather", ".arrow", ".ipc")
SEPARATORS = ",;\t|"
# Row groups of this size keep the writer's memory small beside the scores.
ROWS_PER_GROUP = 1 << 20

# From the names that a file has, which columns to read (None: all); may raise.
Pick = Callable[[Sequence[str]], list[str] | None]


def every_column(_: Sequence[str]) -> list[str] | None:
    """The `Pick` that reads all columns."""
    return None


def read_table(path: str | os.PathLike[str], pick: Pick = every_column, sep: str | None = None) -> pa.Table:
    """Read a Parquet file or folder of them, a CSV file or a Feather (Arrow IPC) file.

    sep: separator of a CSV file; by default the one of , ; tab | that its first lines agree on. An empty CSV field
    is a missing value, any other text is taken as it stands.

    Raises TableReadError for a file that is missing, empty, truncated, or not what its name says.
    """
    file = Path(path)
    name = file.name.lower()
    if not file.exists():
        raise TableReadError(f"{file}: no such file or folder. Check the path.")
    read: Callable[[], pa.Table]
    if file.is_dir() or name.endswith(PARQUET):
        kind, read = "Parquet", lambda: _read_parquet(file, pick)
    elif name.endswith(CSV):
        kind, read = "CSV", lambda: _read_csv(file, pick, sep)
    elif name.endswith(FEATHER):
        kind, read = "Feather", lambda: _read_feather(file, pick)
    else:
        endings = ", ".join((*PARQUET, *CSV, *FEATHER))
        raise TableReadError(f"{file}: expected a folder of Parquet files or a file name ending in {endings}.")
    if file.is_file() and file.stat().st_size == 0:
        raise TableReadError(f"{file}: the file is empty (0 bytes). Expected a {kind} file with a table in it.")
    try:
        return read()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise TableReadError(
            f"{file}: could not be read as {kind}; it may be truncated, or not be what its name says. ({reason})"
        ) from error


def _read_parquet(file: Path, pick: Pick) -> pa.Table:
    import pyarrow.parquet as pq

    if file.is_dir() and not any(file.rglob("*.parquet")) and not any(file.rglob("*.pq")):
        raise TableReadError(f"{file}: expected a folder with .parquet files in it, found none.")
    # Hive-style folder names are left alone unless the path is a folder; text comes as dictionaries: already encoded.
    source = pq.ParquetDataset(file)
    text = [
        field.name for field in source.schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    ]
    columns = pick(source.schema.names)
    return pq.read_table(file, columns=columns, read_dictionary=[name for name in text if "." not in name])


def _read_csv(file: Path, pick: Pick, sep: str | None) -> pa.Table:
    from pyarrow import csv as arrow_csv

    with pa.input_stream(str(file)) as stream:
        head = stream.read(1 << 16).decode("utf-8-sig", errors="ignore")
    separator = sep if sep is not None else _sniff_separator(head)
    names = next(csv.reader(head.splitlines(), delimiter=separator), [])
    options = arrow_csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, include_columns=pick(names) or [], auto_dict_encode=False
    )
    try:
        return arrow_csv.read_csv(
            str(file), parse_options=arrow_csv.ParseOptions(delimiter=separator), convert_options=options
        )
    except pa.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise TableReadError(f"{file}: expected text in UTF-8. Save it as UTF-8 and try again.") from error
        raise


def _sniff_separator(head: str) -> str:
    """The separator for which the first lines have the same number of fields, the larger that number the better."""
    lines = head.splitlines()
    lines = lines[: min(len(lines), 20)] if head.endswith("\n") or len(lines) < 2 else lines[:-1][:20]

    def fields(separator: str) -> int:
        counts = {len(row) for row in csv.reader(lines, delimiter=separator) if row}
        return counts.pop() if len(counts) == 1 else 0

    return max(SEPARATORS, key=lambda separator: (fields(separator), -SEPARATORS.index(separator)))


def _read_feather(file: Path, pick: Pick) -> pa.Table:
    from pyarrow import ipc

    with pa.memory_map(str(file)) as source:
        try:
            reader: Any = ipc.open_file(source)
            names = reader.schema.names
            table = reader.read_all()
        except pa.ArrowInvalid:
            # `.arrow` files may hold the stream format.
            source.seek(0)
            reader = ipc.open_stream(source)
            names = reader.schema.names
            table = reader.read_all()
    columns = pick(names)
    return table if columns is None else table.select(columns)


def check_output(path: str | os.PathLike[str], overwrite: bool, source: str | os.PathLike[str] | None = None) -> None:
    """Refuse an output that could not be written, before any work is done.

    Raises OutputError where it exists (without `overwrite`), is a folder, lies in a folder that does not exist or
    cannot be written to, is the input `source` or inside it, or has an ending that names no format.
    """
    file = Path(path)
    if not file.name.lower().endswith((*PARQUET, ".csv", *FEATHER)):
        raise OutputError(f"{file}: expected an output name ending in .parquet, .csv or .feather.")
    if source is not None and Path(source).exists():
        given = Path(source).resolve()
        if file.resolve() == given or given in file.resolve().parents:
            raise OutputError(f"{file}: the output is the input {source}, or inside it. Choose another place for it.")
    if file.is_dir():
        raise OutputError(f"{file}: is a folder; expected the name of a file to write.")
    if not file.parent.is_dir():
        raise OutputError(f"{file}: there is no folder {file.parent}. Make it first, or choose another place.")
    if not os.access(file.parent, os.W_OK):
        raise OutputError(f"{file}: the folder {file.parent} cannot be written to.")
    if file.exists() and not overwrite:
        raise OutputError(f"{file}: exists already. Use overwrite (--overwrite) to replace it, or choose another name.")


def write_table(table: pa.Table, path: str | os.PathLike[str], done: Callable[[int], None] = lambda rows: None) -> None:
    """Write a table as its name's ending says, whole or not at all; `done` hears how many rows went out."""
    file = Path(path)
    name = file.name.lower()
    with _replacing(file) as sink, _writer(sink, name, table.schema) as writer:
        for start in range(0, max(1, table.num_rows), ROWS_PER_GROUP):
            part = table.slice(start, ROWS_PER_GROUP)
            writer.write_table(part)
            done(part.num_rows)


def _writer(sink: IO[bytes], name: str, schema: pa.Schema) -> Any:
    if name.endswith(PARQUET):
        import pyarrow.parquet as pq

        return pq.ParquetWriter(sink, schema, compression="zstd", compression_level=1)
    if name.endswith(".csv"):
        from pyarrow import csv as arrow_csv

        return arrow_csv.CSVWriter(sink, schema)
    from pyarrow import ipc

    return ipc.new_file(sink, schema, options=ipc.IpcWriteOptions(compression="lz4"))


@contextlib.contextmanager
def _replacing(file: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes its name only when whole: a failed or killed run leaves nothing behind.

    On Linux the file has no name until then, so that even SIGKILL leaves none; where the file system cannot do that
    it is a hidden file beside its target, removed on failure.
    """
    beside = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    named = False
    try:
        try:
            descriptor = os.open(file.parent, os.O_TMPFILE | os.O_WRONLY, 0o666)
        except OSError:
            named = True
            descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        with os.fdopen(descriptor, "wb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
            if not named:
                # The descriptor, unused with an absolute path, makes Python call linkat, which follows the link.
                os.link(f"/proc/self/fd/{sink.fileno()}", beside, src_dir_fd=sink.fileno(), follow_symlinks=True)
                named = True
        os.replace(beside, file)
    except OSError as error:
        raise OutputError(f"{file}: could not be written: {error.strerror or error}.") from error
    finally:
        if named:
            beside.unlink(missing_ok=True)
