"""Runs from files to files in pieces of a few rows, and what they must give."""

from __future__ import annotations

import contextlib
from itertools import pairwise

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.marginals import counts_on_disk as counting
from gpupif.out_of_core import memory_budget as budget
from gpupif.results.scores import Scores


@contextlib.contextmanager
def in_pieces(chunk_rows=3, partition_rows=2):
    """Chunks and parts of so few rows, whatever memory there is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "LEAST_CHUNK", 1)
        patch.setattr(budget, "LEAST_PARTITION", 1)
        patch.setattr(budget, "MOST_CHUNK", chunk_rows)
        patch.setattr(budget, "SLACK", 1)
        patch.setattr(budget.Budget, "partition_rows", lambda self, job, has_population=False: partition_rows)
        # No power of two, unlike the real ones.
        real = budget.plan_budget
        patch.setattr(
            "gpupif.out_of_core.scoring_run.plan_budget", lambda *given: real(*given)._replace(chunk_rows=chunk_rows)
        )
        yield


def write_parts(folder, frame, edges=()):
    """The frame as a folder of Parquet files that begin at these rows."""
    folder.mkdir()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    edges = sorted({0, *edges, len(frame)})
    for number, (start, stop) in enumerate(pairwise(edges)):
        pq.write_table(
            table.slice(start, stop - start), folder / f"{number:03}.parquet", row_group_size=max(5, len(frame) // 10)
        )
    return folder


def stored(scores):
    """All scores, as one table, of the files that were written."""
    assert isinstance(scores, Scores)
    return pa.concat_tables(pq.read_table(file, partitioning=None) for file in scores.files)


def assert_same(scores, expected):
    """Scores in files are, to the last bit, those in memory."""
    table, other = stored(scores), expected.to_arrow()
    assert table.column_names == [name for name in other.column_names if name != "__index_level_0__"]
    for name in table.column_names:
        assert table[name].type == other[name].type
        assert table[name].to_numpy().tobytes() == other[name].to_numpy().tobytes(), name
    assert scores.weights == expected.weights
    assert scores.rows == expected.rows
    assert scores.distinct_rows == expected.distinct_rows
    assert dict(scores.priors) == dict(expected.priors)


def assert_same_summary(scores, expected):
    """What is said of scores in files is what is said of those in memory."""
    assert_same_summaries(scores.summary(), expected.summary())


def assert_same_summaries(mine, theirs):
    """To the last bit."""
    pd.testing.assert_frame_equal(mine.columns, theirs.columns, check_exact=True)
    assert mine.pif == theirs.pif
    pd.testing.assert_frame_equal(mine.top, theirs.top, check_exact=True)


def nothing_left(folder):
    """What is in a folder beside the names that do not begin with a dot; a run leaves nothing of its own."""
    return [entry.name for entry in folder.iterdir() if entry.name.startswith(".")] == []


def census_folder(folder, rows=300, files=4):
    """The synthetic census in a folder of files."""
    return write_parts(folder, gpupif.datasets.census(rows), range(0, rows, -(-rows // files)))


@contextlib.contextmanager
def in_parts(chunk_rows=3, least=150):
    """Chunks of so few rows, and no memory for more combinations than a few bytes hold."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "MOST_CHUNK", chunk_rows)
        patch.setattr(counting, "COUNTS_SHARE", 0)
        patch.setattr(counting, "LEAST_BYTES", least)
        yield
