"""`gpupif score` on a cluster: Parquet in, a folder of Parquet files out, read, scored and written by the workers."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import DeviceError, GpupifError, InputError, OutputError, TableReadError
from ..job import needed_columns
from ..reading import (
    CSV,
    PARQUET,
    check_rows,
    every_column,
    keys_of_files,
    kind_of_file,
    open_parquet,
    pandas_index_names,
    unreadable,
)
from ..writing import output_names

# A partition is one row group or several, of about so many rows.
PARTITION_ROWS = 1 << 20
CONNECT_SECONDS = 30


class Piece(NamedTuple):
    """Some row groups of a Parquet file, and the values of columns that the names of its folders hold."""

    file: str
    groups: tuple[int, ...]
    keys: tuple[tuple[str, Any], ...]


def score_on_cluster(
    table: Path,
    output: Path,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    keep_input: bool = False,
    sep: str | None = None,
    measures: Sequence[str],
    columns: Sequence[str] | None,
    known: Sequence[str] | None,
    priors: Mapping[str, Any] | None,
    accuracies: Mapping[str, float] | None,
    missing: str,
    device: str,
    dtype: str,
) -> dict[str, Any]:
    """Score a Parquet file or folder on the cluster at `scheduler`, or on one of so many `workers` started here.

    Writes a folder of Parquet files, columns <measure>_<column>, rows in order by the files' names, that appears whole
    or not at all. All workers have to see both places under the same paths. Returns facts to be shown.

    Raises what `gpupif.score` does; InputError for what a cluster cannot do; OutputError; DeviceError where the cluster
    cannot be reached or lost its workers.
    """
    if find_spec("distributed") is None or find_spec("dask") is None:
        raise DeviceError("a cluster needs Dask, which is not installed here: pip install 'gpupif[dask]'.")
    if scheduler is not None and workers is not None:
        raise InputError(
            "--workers: expected either --scheduler (a cluster that runs) or --workers (start one), got both."
        )
    if workers is not None and workers < 1:
        raise InputError(f"--workers: expected at least 1, got {workers}.")
    if sep is not None:
        raise InputError("sep: a cluster reads Parquet, which has no separator. Leave it out.")
    if keep_input:
        raise InputError("--keep-input: a cluster writes scores alone, in the order of the table. Leave it out.")
    _check_folder(output, overwrite, table)
    pieces, rows, schema, index_names = _pieces(
        table, every_column if columns is None else needed_columns(columns, known)
    )
    targets = list(columns) if columns is not None else [name for name in schema.names if name not in index_names]
    output_names(measures, targets, [])
    started = time.perf_counter()
    with _cluster(scheduler, workers) as cluster, _folder(output, overwrite) as folder:
        from dask.dataframe import from_map

        from ..scoring import score

        meta = _frame(schema.empty_table())
        frame = from_map(_read_piece, pieces, names=list(schema.names), meta=meta, enforce_metadata=False)
        scores: Any = score(
            frame,
            measures,
            columns=targets,
            known=known,
            priors=priors,
            accuracies=accuracies,
            missing=missing,
            device=device,
            dtype=dtype,
        )
        scores.to_parquet(folder, write_index=False, compression="zstd", write_metadata_file=False)
        several = len(cluster.scheduler_info()["workers"])
    return {
        "input": str(table),
        "output": str(output),
        "rows": rows,
        "columns": targets,
        "measures": list(measures),
        "workers": several,
        "partitions": len(pieces),
        "seconds": time.perf_counter() - started,
    }


def _pieces(table: Path, pick: Any) -> tuple[list[Piece], int, pa.Schema, list[str]]:
    """The partitions of a Parquet file or folder, files in order of their paths; its rows; the columns to be read, and
    which of all columns only label rows.
    """
    if kind_of_file(table, None) != "Parquet":
        mend = "Convert it" if table.name.lower().endswith(CSV) else "Write it as Parquet"
        raise InputError(
            f"table: {table}: a cluster reads {' and '.join(PARQUET)} files and folders of them. {mend}, with "
            "pandas.read_csv and to_parquet for instance, or leave out --scheduler and --workers."
        )
    try:
        found = open_parquet(table.resolve(), pick)
        keys = keys_of_files(found)
        pieces = []
        rows = 0
        for file in found.files:
            with pq.ParquetFile(file) as opened:
                sizes = [opened.metadata.row_group(group).num_rows for group in range(opened.num_row_groups)]
            rows += sum(sizes)
            pieces += [Piece(str(file), groups, tuple(keys[file].items())) for groups in _grouped(sizes)]
    except (pa.ArrowException, OSError) as error:
        raise unreadable(table, "Parquet", error) from error
    check_rows(table, rows, found.schema.names)
    names = found.schema.names if found.columns is None else found.columns
    schema = pa.schema([found.schema.field(name) for name in names])
    return pieces, rows, schema, pandas_index_names(found.schema)


def _grouped(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Row groups that make one partition each, from how many rows they have."""
    group: list[int] = []
    rows = 0
    for number, size in enumerate(sizes):
        if group and rows + size > PARTITION_ROWS:
            yield tuple(group)
            group, rows = [], 0
        group.append(number)
        rows += size
    if group:
        yield tuple(group)


def _read_piece(piece: Piece, names: Sequence[str]) -> pd.DataFrame:
    """A partition, by Arrow's types: none of them changes where values are missing."""
    own = [name for name in names if name not in dict(piece.keys)]
    try:
        with pq.ParquetFile(piece.file) as opened:
            read = opened.read_row_groups(list(piece.groups), columns=own)
            read = read.select(own)
    except (pa.ArrowException, OSError) as error:
        raise TableReadError(str(unreadable(Path(piece.file), "Parquet", error))) from None
    for name, value in piece.keys:
        if name in names:
            read = read.append_column(name, pa.array([value] * read.num_rows))
    return _frame(read.select(list(names)))


def _frame(table: pa.Table) -> pd.DataFrame:
    return table.replace_schema_metadata(None).to_pandas(types_mapper=pd.ArrowDtype)  # type: ignore[no-any-return]


@contextlib.contextmanager
def _cluster(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """A client of the cluster; what goes wrong with the cluster itself is one DeviceError."""
    from distributed import Client, KilledWorker, LocalCluster

    with contextlib.ExitStack() as closing:
        try:
            if workers is not None:
                scheduler = closing.enter_context(
                    LocalCluster(
                        n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
                    )
                )
            client = closing.enter_context(Client(scheduler, timeout=CONNECT_SECONDS))
        except (OSError, TimeoutError, ValueError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise DeviceError(f"--scheduler {scheduler}: no cluster can be reached there ({reason}).") from error
        try:
            yield client
        except KilledWorker as error:
            raise DeviceError(
                "the cluster lost too many of its workers, perhaps for want of memory. Nothing was written. Give each "
                "more memory, or write the table in smaller row groups."
            ) from error
        except RuntimeError as error:
            if isinstance(error, GpupifError):
                raise
            reason = " ".join(str(error).split()).rstrip(".")
            raise DeviceError(f"the cluster failed ({reason}). Nothing was written; try again.") from error


def _check_folder(output: Path, overwrite: bool, table: Path) -> None:
    """Refuse an output folder that could not be written, before any work is done."""
    file = output.resolve()
    given = table.resolve()
    if file == given or given in file.parents or file in given.parents:
        raise OutputError(f"{output}: the output is the input {table}, or one lies in the other. Choose another place.")
    if not file.parent.is_dir():
        raise OutputError(f"{output}: there is no folder {file.parent}. Make it first, or choose another place for it.")
    if not os.access(file.parent, os.W_OK):
        raise OutputError(f"{output}: the folder {file.parent} cannot be written to.")
    if output.exists() and not overwrite:
        raise OutputError(f"{output}: exists already. Use --overwrite to replace it, or choose another name.")
    if output.is_dir() and any(not part.name.lower().endswith(PARQUET) for part in output.iterdir()):
        raise OutputError(
            f"{output}: is a folder with more than Parquet files in it, so it is not replaced. Choose another."
        )


@contextlib.contextmanager
def _folder(output: Path, overwrite: bool) -> Iterator[Path]:
    """A hidden folder beside the output that takes its name when all is written; removed where something fails."""
    file = output.resolve()
    beside = file.with_name(f".gpupif-{secrets.token_hex(8)}.tmp")
    old = beside.with_suffix(".old")
    try:
        yield beside
        if overwrite and file.exists():
            file.rename(old)
        elif file.exists():
            raise OutputError(f"{output}: came into being meanwhile. Use --overwrite to replace it.")
        beside.rename(file)
    except OSError as error:
        if old.exists() and not file.exists():
            old.rename(file)
        raise OutputError(f"{output}: could not be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        if file.exists():
            shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
