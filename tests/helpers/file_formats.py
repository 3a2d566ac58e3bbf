"""One table in files of every format."""

from __future__ import annotations

import gzip

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

ALL = ["cig", "wcig", "csf", "posterior", "prior", "cohort_size"]


# Names with every separator in them, text that looks like numbers or separators, and missing values.
FRAME = pd.DataFrame(
    {
        "last, first": ["Kim, A", "Kim, A", 'B "b"', None, "NA", "nan", "Kim, A", "x"],
        "a;b": [1, 2, 1, 1, 2, 1, 2, 3],
        "ta\tb|pipe": [0.5, None, 0.5, -2.5, None, 0.5, 1e300, 0.5],
        "größe": ["1;2", "1|2", "1\t2", "1,2", "ü", "1;2", "1|2", "é"],
        "yes": [True, False, True, True, False, False, True, True],
    }
)


def arrow():
    return pa.Table.from_pandas(FRAME, preserve_index=False)


def csv_bytes(separator=",", encoding="utf-8", newline="\n"):
    return FRAME.to_csv(index=False, sep=separator, lineterminator=newline).encode(encoding)


def write_folder(path):
    """Files of different lengths, written in another order than that of their names, which is that of the rows."""
    path.mkdir()
    for name, start, stop in (("2", 6, 8), ("10", 0, 5), ("11", 5, 6)):
        pq.write_table(arrow().slice(start, stop - start), path / f"part-{name}.parquet")


def write_stream(path):
    with pa.ipc.new_stream(path, arrow().schema) as writer:
        writer.write_table(arrow(), max_chunksize=3)


FILES = {
    "comma": ("t.csv", lambda path: path.write_bytes(csv_bytes())),
    "semicolon": ("t.csv", lambda path: path.write_bytes(csv_bytes(";"))),
    "tab": ("t.tsv", lambda path: path.write_bytes(csv_bytes("\t"))),
    "pipe": ("t.txt", lambda path: path.write_bytes(csv_bytes("|"))),
    "BOM and CRLF": ("t.csv", lambda path: path.write_bytes(csv_bytes(";", "utf-8-sig", "\r\n"))),
    "no newline at the end": ("t.csv", lambda path: path.write_bytes(csv_bytes()[:-1])),
    "gzip": ("t.csv.gz", lambda path: path.write_bytes(gzip.compress(csv_bytes("|")))),
    "Parquet": ("t.parquet", FRAME.to_parquet),
    "Parquet by Polars": ("T.PARQUET", lambda path: pl.from_arrow(arrow()).write_parquet(path, row_group_size=3)),
    "Parquet folder": ("folder", write_folder),
    "Feather": ("t.feather", FRAME.to_feather),
    "Feather by Polars": ("t.ipc", lambda path: pl.from_arrow(arrow()).write_ipc(path)),
    "Arrow stream": ("t.arrow", write_stream),
}
