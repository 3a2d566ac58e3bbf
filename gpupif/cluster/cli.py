"""`gpupif score` on a cluster: Parquet in, a folder of Parquet files out, read, scored and written by the workers."""

from __future__ import annotations

import contextlib
import logging
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

from .. import __version__
from ..errors import DeviceError, GpupifError, InputError, OutputError, TableReadError
from ..inputs import Input, find_input
from ..job import needed_columns
from ..measures import resolve_measures
from ..reading import check_rows, every_column, keys_of_files, open_parquet, pandas_index_names, unreadable
from ..spill.outputs import MARK, check_folder, is_file
from ..writing import attacker_names
from .watch import await_result

# A partition is one row group or several, of about so many rows.
PARTITION_ROWS = 1 << 20
CONNECT_SECONDS = 30
# A cluster started here waits for a worker that died to be started again, however long a busy machine takes. Dask's
# default, 15 seconds, strikes it off for good; the run then waits for ever once that was the last one.
PATIENT = {"distributed.deploy.lost-worker-timeout": "1 day"}


class Piece(NamedTuple):
    """Some row groups of a Parquet file, and the values of columns that the names of its folders hold."""

    file: str
    groups: tuple[int, ...]
    keys: tuple[tuple[str, Any], ...]


def score_on_cluster(
    table: Path,
    output: Path,
    place: tuple[str | None, int | None],
    overwrite: bool,
    measures: Sequence[str],
    device: str,
    question: Mapping[str, Any],
    elsewhere: Mapping[str, Any],
) -> dict[str, Any]:
    """Score a Parquet file or folder on the cluster at an address, or on one of so many workers started here.

    place: the address or the number. question: the other arguments of `gpupif.score`. elsewhere: options that only make
    sense without a cluster, refused where they are set.

    Writes a folder of Parquet files, columns <measure>_<column>, rows in order by the files' names, that appears whole
    or not at all. All workers have to see both places under the same paths. Returns facts to be shown.

    Raises what `gpupif.score` does; InputError for what a cluster cannot do; OutputError; DeviceError where the cluster
    cannot be reached or lost its workers.
    """
    if question["missing"] == "wildcard":
        raise InputError(
            "--missing: 'wildcard' scores a table in memory, not on a cluster. Leave out --scheduler and --workers."
        )
    if find_spec("distributed") is None or find_spec("dask") is None:
        raise DeviceError("a cluster needs Dask, which is not installed here: pip install 'gpupif[dask]'.")
    scheduler, workers = place
    if scheduler is not None and workers is not None:
        raise InputError("--workers: expected it or --scheduler, which names a cluster that runs; got both.")
    if workers is not None and workers < 1:
        raise InputError(f"--workers: expected at least 1, got {workers}.")
    for name, value in elsewhere.items():
        if value not in (None, False):
            option = name.replace("_", "-")
            raise InputError(
                f"--{option}: is not for a cluster, which reads Parquet and writes a folder of it. Leave it out."
            )
    measures = [measure.name for measure in resolve_measures(measures)]
    columns, weights, attackers = (question.get(name) for name in ("columns", "weights", "attackers"))
    needed = {name: question.get(name) for name in ("columns", "known", "weights", "attackers")}
    given = find_input(table)
    if is_file(output):
        raise OutputError(f"{output}: a cluster writes a folder of Parquet files. Name one, without an ending.")
    check_folder(output, overwrite, given)
    pieces, rows, schema, index_names = _pieces(given, every_column if columns is None else needed_columns(**needed))
    targets = (
        list(columns) if columns is not None else [name for name in schema.names if name not in (*index_names, weights)]
    )
    attacker_names(None if attackers is None else list(attackers), measures, targets, [])
    started = time.perf_counter()
    with _cluster(scheduler, workers) as cluster, _folder(output, overwrite) as folder:
        from dask.dataframe import from_map

        from ..scoring import score

        meta = _frame(schema.empty_table())
        frame = from_map(_read_piece, pieces, names=list(schema.names), meta=meta, enforce_metadata=False)
        scores: Any = score(frame, measures, device=device, **{**question, "columns": targets})
        options = {"write_index": False, "compression": "zstd", "custom_metadata": {MARK: __version__.encode()}}
        written = scores.to_parquet(folder, **options, compute=False)
        several = len(cluster.nthreads())
        await_result(cluster, cluster.compute(written))
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


def _pieces(given: Input, pick: Any) -> tuple[list[Piece], int, pa.Schema, list[str]]:
    """The partitions of a Parquet file or folder, files in order of their paths; its rows; the columns to be read, and
    which of all columns only label rows.
    """
    if given.kind != "Parquet":
        mend = "Convert it" if given.kind == "CSV" else "Write it as Parquet"
        raise InputError(
            f"table: {given.path}: a cluster reads Parquet files, folders and patterns of them. {mend}, with "
            "pandas.read_csv and to_parquet for instance, or leave out --scheduler and --workers."
        )
    table = given.path
    try:
        found = open_parquet(given, pick)
        keys = keys_of_files(found)
        pieces = []
        rows = 0
        for file in found.files:
            with pq.ParquetFile(file) as opened:
                sizes = [opened.metadata.row_group(group).num_rows for group in range(opened.num_row_groups)]
            rows += sum(sizes)
            pieces += [Piece(str(file.resolve()), groups, tuple(keys[file].items())) for groups in _grouped(sizes)]
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
    import dask
    from distributed import Client, KilledWorker, LocalCluster

    with contextlib.ExitStack() as closing:
        closing.enter_context(dask.config.set(PATIENT))
        try:
            if workers is not None:
                scheduler = closing.enter_context(
                    LocalCluster(
                        n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
                    )
                )
            client = closing.enter_context(Client(scheduler, timeout=CONNECT_SECONDS))
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            if workers is not None:
                raise DeviceError(f"--workers {workers}: they could not be started ({reason}); try again.") from error
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


@contextlib.contextmanager
def _folder(output: Path, overwrite: bool) -> Iterator[Path]:
    """A hidden folder beside the output that takes its name when all is written; removed where something fails."""
    file = output.resolve()
    beside = file.with_name(f".gpupif-{secrets.token_hex(8)}.tmp")
    old = beside.with_suffix(".old")
    try:
        yield beside
        if file.exists() and (overwrite or not any(file.iterdir())):
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
            shutil.rmtree(old, ignore_errors=True)
