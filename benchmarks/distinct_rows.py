"""Rows nearly all of which differ, against any two of ten columns, in files: `python -m benchmarks.distinct_rows`.

No part of a table holds the cohorts of all attackers whole, so its different rows have to fit into the memory limit
together. What that takes is measured on 50 million random rows of ten columns: CIG and CSF, worst and mean, from one
Parquet file to a folder. Writes benchmarks/results/distinct_rows.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gpupif

from .surroundings import RESULTS, surroundings

# Values of each column: 2.1 billion combinations.
VALUES = (*[8] * 9, 16)
AT_ONCE = 1_000_000


def write_table(rows: int, path: Path) -> None:
    """Write a Parquet file of `rows` random rows."""
    random = np.random.default_rng(1)
    schema = pa.schema([(f"c{number}", pa.int8()) for number in range(len(VALUES))])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, AT_ONCE):
            size = min(AT_ONCE, rows - start)
            arrays = [random.integers(0, values, size).astype(np.int8) for values in VALUES]
            writer.write_table(pa.table(arrays, schema=schema))


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--known", type=int, default=2, help="columns that the attackers know")
    parser.add_argument("--memory-limit", default="8GiB")
    parser.add_argument("--temp", type=Path, help="folder for the table and its scores; default: the system's")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for distinct_rows.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.temp) as folder:
        table = Path(folder, "table.parquet")
        write_table(arguments.rows, table)
        started = time.perf_counter()
        with gpupif.config(device="cpu", memory_limit=arguments.memory_limit, progress=False):
            scores = gpupif.score_files(table, Path(folder, "scores"), ["cig", "csf"], known=arguments.known)
        seconds = time.perf_counter() - started
        distinct = scores.distinct_rows
    found = {
        "rows": arguments.rows,
        "different rows": distinct,
        "columns": len(VALUES),
        "known": arguments.known,
        "memory limit": arguments.memory_limit,
        "peak of resident memory, GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "seconds": seconds,
    }
    print(json.dumps(found, indent=2))
    arguments.out.mkdir(parents=True, exist_ok=True)
    document = {**surroundings(("gpupif", "numpy", "numba", "pyarrow")), "results": found}
    (arguments.out / "distinct_rows.json").write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
