"""Dask frames cut into partitions anywhere, and their scores beside those of the table in memory."""

from __future__ import annotations

from itertools import pairwise

import dask
import dask.dataframe as dd
import pandas as pd
import pyarrow as pa


def piece(part):
    return part


def cut(frame, edges):
    """A Dask frame of these rows with partitions between the edges, some perhaps empty, of unknown divisions."""
    parts = [frame.iloc[start:stop] for start, stop in pairwise([0, *sorted(edges), len(frame)])]
    return of_parts(parts)


def of_parts(parts):
    """A Dask frame of these partitions, as they are: Dask would make text of all Python objects."""
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_map(piece, parts, meta=parts[0].iloc[:0], enforce_metadata=False)


def assert_same(scores, expected):
    """The same frames, to the last bit."""
    frames = dask.compute(*(scores[measure] for measure in scores.measures))
    assert scores.measures == expected.measures
    assert scores.columns == expected.columns
    for measure, frame in zip(scores.measures, frames, strict=True):
        wanted = expected[measure]
        pd.testing.assert_index_equal(frame.index, wanted.index)
        pd.testing.assert_index_equal(frame.columns, wanted.columns)
        assert frame.dtypes.tolist() == wanted.dtypes.tolist() == scores[measure].dtypes.tolist()
        assert frame.to_numpy().tobytes() == wanted.to_numpy().tobytes(), measure


COLUMNS = {
    "text of arrow": pd.Series(["b", None, "a", "b", "c", "a"], dtype="string[pyarrow]"),
    "categories": pd.Series(["b", None, "a", "b", "c", "a"], dtype="category"),
    "nullable": pd.Series([2, None, 1, 2, 3, 1], dtype="Int64"),
    "nullable truth": pd.Series([True, None, False, True, True, False], dtype="boolean"),
    "arrow": pd.Series([2, None, 1, 2, 3, 1], dtype=pd.ArrowDtype(pa.int16())),
    "decimal": pd.Series(pd.arrays.ArrowExtensionArray(pa.array([2, None, 1, 2, 3, 1]).cast(pa.decimal128(21, 1)))),
    "zones": pd.Series(pd.to_datetime([2, None, 1, 2, 3, 1], utc=True, unit="D")),
    "spans": pd.Series(pd.to_timedelta([2, None, 1, 2, 3, 1], unit="h")),
    "floats": pd.Series([0.0, None, -0.0, float("nan"), 1.5, 0.0]),
    "objects": pd.Series([2, None, 1, 2, 3, 1], dtype=object),
    "bytes": pd.Series([b"b", None, b"a", b"b", b"c", b"a"], dtype=object),
    "whole column missing": pd.Series([None] * 6, dtype=object),
}
