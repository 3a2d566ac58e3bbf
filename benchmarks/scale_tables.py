"""The tables of `python -m benchmarks.scale`, made piece by piece, and the scores in files compared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from gpupif.datasets import census

COLUMNS = 10
# Scores of DuckDB against ours: relative beyond 1.
TOLERANCE = 1e-9


def make_table(rows: int, folder: Path, pieces: Path, file_rows: int) -> Path:
    """Write the synthetic census as a folder of Parquet files of `file_rows` rows each; the last has the rest.

    Every file is drawn with a seed of its own, so that no more than one is in memory. pieces: the folder in which files
    are kept, of which several tables are made.
    """
    folder.mkdir()
    for number, start in enumerate(range(0, rows, file_rows)):
        piece = _piece(number, min(file_rows, rows - start), pieces)
        os.link(piece, folder / f"part-{number:05}.parquet")
    return folder


def _piece(seed: int, rows: int, pieces: Path) -> Path:
    """Return a file of `rows` persons, and write it first if it is missing; labels are dictionaries."""
    file = pieces / f"{seed}-{rows}.parquet"
    if not file.exists():
        frame = census(rows, seed=seed, columns=COLUMNS)
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), file)
    return file


def equal_bits(one: Path, other: Path) -> bool:
    """Return whether two outputs, files or folders, have the same scores bit for bit, in the same order."""
    left, right = _dataset(one), _dataset(other)
    names = left.schema.names
    return names == right.schema.names and all(
        np.array_equal(_values(left, name).view(np.int64), _values(right, name).view(np.int64)) for name in names
    )


def check_difference(ours: Path, theirs: Path) -> float:
    """Return the largest difference of the common scores, relative beyond 1; infinite if numbers of rows differ.

    NaN where either has one.
    """
    left, right = _dataset(ours), _dataset(theirs)
    largest = 0.0
    for name in right.schema.names:
        own, other = _values(left, name), _values(right, name)
        if len(own) != len(other):
            return float("inf")
        difference = (np.abs(own - other) / np.maximum(1.0, np.abs(other))).max(initial=0.0)
        largest = float(np.maximum(largest, difference))
    return largest


def _dataset(path: Path) -> Any:
    files = sorted(str(file) for file in path.glob("*.parquet")) if path.is_dir() else str(path)
    return ds.dataset(files, format="csv" if path.suffix == ".csv" else "parquet")


def _values(dataset: Any, name: str) -> npt.NDArray[np.float64]:
    """Read one column; all columns together may not fit into memory."""
    values: npt.NDArray[np.float64] = dataset.to_table(columns=[name]).column(0).to_numpy()
    return values
