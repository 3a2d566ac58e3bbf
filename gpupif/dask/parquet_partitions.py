"""Parquet files as Dask frames: workers read partitions of one or more row groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputError, TableReadError
from ..io.base import Input, Pick, check_rows, pandas_index_names
from ..io.file_errors import unreadable
from ..io.formats import CSV, PARQUET
from ..io.parquet_files import keys_of_files, open_parquet

if TYPE_CHECKING:
    import dask.dataframe as dd

# About the most rows of a partition of several row groups.
PARTITION_ROWS = 1 << 20


class FileRowGroups(NamedTuple):
    """Some row groups of a Parquet file, and the values of columns that its folders' names hold."""

    file: str
    groups: tuple[int, ...]
    keys: tuple[tuple[str, Any], ...]


class Files(NamedTuple):
    """Parquet files that workers read.

    frame: Dask frame. The wanted columns.
    rows, partitions: int. The numbers of rows and partitions.
    names: list of str. The wanted columns.
    index_names: list of str. The columns of the files that only label rows.
    """

    frame: dd.DataFrame
    rows: int
    partitions: int
    names: list[str]
    index_names: list[str]


def read_files(argument: str, given: Input, pick: Pick) -> Files:
    """Return the files of a table, in order of their paths; row groups make partitions.

    argument: str. The name of the argument with the path, for messages.

    Raises InputError for files that are not Parquet, and TableReadError.
    """
    from dask.dataframe import from_map

    if given.format is not PARQUET:
        mend = "Convert it" if given.format is CSV else "Write it as Parquet"
        raise InputError(
            f"{argument}: {given.path}: a cluster reads Parquet files, folders and patterns of them. {mend}, with "
            "pandas.read_csv and to_parquet for instance, or leave out --scheduler and --workers."
        )
    table = given.path
    try:
        source = open_parquet(given, pick)
        keys = keys_of_files(source)
        partitions = []
        rows = 0
        for file in source.files:
            with pq.ParquetFile(file) as opened:
                sizes = [opened.metadata.row_group(group).num_rows for group in range(opened.num_row_groups)]
            rows += sum(sizes)
            partitions += [
                FileRowGroups(str(file.resolve()), groups, tuple(keys[file].items())) for groups in _grouped(sizes)
            ]
    except (pa.ArrowException, OSError) as error:
        raise unreadable(table, "Parquet", error) from error
    check_rows(table, rows, source.schema.names)
    names = source.schema.names if source.columns is None else source.columns
    schema = pa.schema([source.schema.field(name) for name in names])
    meta = _frame(schema.empty_table())
    kinds = {} if source.keys is None else {field.name: field.type for field in source.keys.schema}
    frame: Any = from_map(
        _read_partition, partitions, names=list(schema.names), kinds=kinds, meta=meta, enforce_metadata=False
    )
    return Files(frame, rows, len(partitions), list(schema.names), pandas_index_names(source.schema))


def _grouped(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the row groups of each partition. sizes: number of rows of each row group."""
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


def _read_partition(partition: FileRowGroups, names: Sequence[str], kinds: Mapping[str, pa.DataType]) -> pd.DataFrame:
    """Return a partition with Arrow's types, which missing values do not change.

    kinds: by name the types of columns that folders' names hold.
    """
    own = [name for name in names if name not in dict(partition.keys)]
    try:
        with pq.ParquetFile(partition.file) as opened:
            read = opened.read_row_groups(list(partition.groups), columns=own)
            read = read.select(own)
    except (pa.ArrowException, OSError) as error:
        raise TableReadError(str(unreadable(Path(partition.file), "Parquet", error))) from None
    for name, value in partition.keys:
        if name in names:
            read = read.append_column(name, pa.repeat(pa.scalar(value, kinds[name]), read.num_rows))
    return _frame(read.select(list(names)))


def _frame(table: pa.Table) -> pd.DataFrame:
    return table.replace_schema_metadata(None).to_pandas(types_mapper=pd.ArrowDtype)  # type: ignore[no-any-return]
