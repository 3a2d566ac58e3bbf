"""CIG and CSF of every cell with DuckDB, in one query; from file to file as `python -m benchmarks.duckdb_files`.

The program reads a folder of Parquet or CSV files, writes a file of the same format, and takes as much memory and as
many threads as it is told; what does not fit goes to a folder for temporary files. Text is read as enumerations, which
takes half as long as text does (1 M rows of the synthetic census, 2 cores: 9 s of processor time in place of 19 s); for
that CSV is read into a table once. No value may be missing.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def cig_csf_query(names: Sequence[str], rows: int, source: str) -> str:
    """Return one query: windows over distinct rows, joined back, in the order of the rows.

    source: the table to select from.
    """
    keys = ", ".join(f'"{name}"' for name in names)
    priors = ", ".join(f'sum(c) over (partition by "{name}") / {rows}.0 as p{k}' for k, name in enumerate(names))
    windows, scores, wanted = [], [], []
    for k, name in enumerate(names):
        others = ", ".join(f'"{other}"' for other in names if other != name)
        windows.append(f"w{k} as (partition by {others})" if others else f"w{k} as ()")
        scores.append(
            f"sum(c * (log2(c) - log2(p{k}))) over w{k} / sum(c) over w{k} - log2(sum(c) over w{k}) as cig{k}, "
            f"abs(c / sum(c) over w{k} - p{k}) as csf{k}"
        )
        wanted.append(f'cig{k} as "cig_{name}", csf{k} as "csf_{name}"')
    return f"""
        with numbered as (select *, row_number() over () as i from {source}),
        counted as (select {keys}, count(*)::double as c from {source} group by all),
        terms as (select *, {priors} from counted),
        scores as (select {keys}, {", ".join(scores)} from terms window {", ".join(windows)})
        select {", ".join(wanted)} from numbered join scores using ({keys}) order by i
    """


def score_files(table: Path, output: Path, temporary: Path, memory_limit: str, threads: int) -> None:
    """Score a folder of Parquet files, or of CSV, into such a file, within a memory limit."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"set memory_limit = '{memory_limit}'")
        connection.execute(f"set threads = {threads}")
        connection.execute(f"set temp_directory = '{temporary}'")
        kind = output.suffix[1:]
        files = f"read_{kind}('{table}/*.{kind}')"
        if kind == "csv":
            connection.execute(f"create temporary table people as from {files}")
            files = "people"
        columns = dict(row[:2] for row in connection.execute(f"describe select * from {files}").fetchall())
        source = _with_enumerations(connection, columns, files)
        ((rows,),) = connection.execute(f"select count(*) from {source}").fetchall()
        connection.execute(f"copy ({cig_csf_query(list(columns), rows, source)}) to '{output}' (format {kind})")


def _with_enumerations(connection: Any, columns: Mapping[str, str], source: str) -> str:
    """Create an enumeration of each text column's values; return a subquery of the table with these types.

    columns: name to type.
    """
    selected = []
    for name, kind in columns.items():
        if kind == "VARCHAR":
            connection.execute(f'create type "{name} values" as enum (select distinct "{name}" from {source})')
            selected.append(f'"{name}"::"{name} values" as "{name}"')
        else:
            selected.append(f'"{name}"')
    return f"(select {', '.join(selected)} from {source})"


def main() -> None:
    """Score, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="folder of Parquet or CSV files")
    parser.add_argument("output", type=Path, help="file to write, .parquet or .csv")
    parser.add_argument("--temp", type=Path, required=True, help="folder for temporary files")
    parser.add_argument("--memory-limit", default="2GiB")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    score_files(arguments.table, arguments.output, arguments.temp, arguments.memory_limit, arguments.threads)


if __name__ == "__main__":
    main()
