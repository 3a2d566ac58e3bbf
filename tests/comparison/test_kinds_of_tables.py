"""A comparison has the same bits wherever either table lies."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpupif
from tests.helpers.dask_frames import cut
from tests.helpers.pieces import in_parts, write_parts

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def both():
    random = np.random.default_rng(0)
    rows = 40
    before = pd.DataFrame(
        {
            "age": random.integers(20, 60, rows),
            "sex": random.choice(list("fm"), rows),
            "eye": random.choice(["a", "b", "c", None], rows),
            "pay": random.integers(0, 100, rows),
            "id": np.arange(rows) + 100,
            "height": random.normal(170.0, 8.0, rows).round(1),
            "people": random.integers(0, 9, rows) / 4,
        }
    )
    drawn = np.where(random.random(rows) < 0.7, before["eye"], random.choice(list("abc"), rows))
    after = before.assign(
        age=(before["age"] // 10 * 10).astype(str), eye=drawn, pay=before["pay"] + random.integers(-3, 4, rows)
    )
    after.loc[[3, 7, 8], "sex"] = None
    after["height"] = (before["height"] + random.normal(0.0, 2.0, rows)).where(before["height"] < 180.0)
    return before, after


def found(before, after, **options):
    document = gpupif.compare(before, after, **options).to_dict()
    del document["seconds"]
    return document


def shuffled(after):
    return after.drop(index=[1, 2, 30]).sample(frac=1, random_state=0)


PLACES = {"columns": ["age", "sex", "eye", "pay", "height"], "linkage": 15, "seed": 4, "weights": "people"}
NAMES = {"row_id": "id", "sensitive": "eye", "weights": "people"}


@pytest.fixture(scope="module")
def expected(both):
    """What is found of the two tables, and of the first and some rows of the second in another order."""
    before, after = both
    results = found(before, after, **PLACES), found(before, shuffled(after), **NAMES)
    assert all(result["continuous"]["columns"] == ["pay", "height"] for result in results)
    assert all(result["estimates"][-1]["estimate"].startswith("weighted") for result in results)
    return results


@pytest.mark.slow
def test_files_in_pieces_and_parts_compare_as_frames(both, expected, tmp_path):
    before, after = both
    with in_parts(13, 8000), gpupif.config(memory_limit="8GiB"):
        first = write_parts(tmp_path / "before", before, [10, 20])
        second = write_parts(tmp_path / "after", after, [15])
        third = write_parts(tmp_path / "rest", shuffled(after), [15])
        assert found(first, second, **PLACES) == expected[0]
        assert found(first, third, **NAMES) == expected[1]


@pytest.mark.slow
def test_a_frame_and_a_file_compare_as_frames(both, expected, tmp_path):
    first, second = (write_parts(tmp_path / name, table, [15]) for name, table in zip(("a", "b"), both, strict=True))
    with in_parts(3, 150), gpupif.config(memory_limit="8GiB"):
        assert found(both[0], second, **PLACES) == expected[0]
    assert found(first, second, **PLACES) == expected[0]


@pytest.mark.slow
@pytest.mark.dask
@pytest.mark.usefixtures("dask_in_one_thread", "on_cpu")
def test_dask_frames_compare_as_frames(both, expected):
    before, after = (cut(table, edges) for table, edges in zip(both, ([10, 10], [15]), strict=True))
    assert found(before, after, **PLACES) == expected[0]
    assert found(before, cut(shuffled(both[1]), [10]), **NAMES) == expected[1]


@pytest.mark.slow
@pytest.mark.dask
@pytest.mark.usefixtures("dask_in_one_thread")
def test_a_dask_frame_may_be_compared_with_another_kind_of_table(both, expected, tmp_path):
    before, after = both
    assert found(before, cut(after, [15, 30]), **PLACES) == expected[0]
    lazy = cut(before, [10, 10, 20])
    assert found(lazy, pa.Table.from_pandas(after), **PLACES) == expected[0]
    assert found(lazy, write_parts(tmp_path / "after", after, [15]), **PLACES) == expected[0]


@pytest.mark.slow
@pytest.mark.dask
@pytest.mark.usefixtures("dask_in_one_thread")
def test_dask_tables_that_do_not_fit_each_other_are_refused(both):
    before, after = both
    for wrong, options, words in (
        (after.iloc[:30], PLACES, "expected the 40 rows of the table before, got 30"),
        (after.assign(id=after["id"] + 1), NAMES, "after has 140, which before lacks, in row 39"),
        (after.assign(id=after["id"] // 2), NAMES, "after has 50 in 2 rows"),
    ):
        with pytest.raises(gpupif.InputError, match=words):
            gpupif.compare(cut(before, [10]), cut(wrong, [9]), **options)


@pytest.mark.slow
def test_different_kinds_of_frames_compare_as_pandas_frames(both, expected):
    before, after = both
    assert found(pl.from_pandas(before), pa.Table.from_pandas(after), **PLACES) == expected[0]
    assert found(before.astype({"sex": "category"}), pl.from_pandas(after), **PLACES) == expected[0]


class Stream:
    """A table that can be read once."""

    def __init__(self, table):
        self._reader = pa.Table.from_pandas(table).to_reader()

    def __arrow_c_stream__(self, requested_schema=None):
        return self._reader.__arrow_c_stream__(requested_schema)


def test_streams_are_read_once(both, expected):
    assert found(*map(Stream, both), **PLACES) == expected[0]


@pytest.mark.slow
def test_threads_and_order_of_rows_change_no_figure(both, expected):
    before, after = both
    with gpupif.config(threads=1):
        assert found(before, after, **PLACES) == expected[0]
    order = np.random.default_rng(1).permutation(len(before))
    assert found(before.iloc[order], after.iloc[order], **PLACES) == expected[0]
