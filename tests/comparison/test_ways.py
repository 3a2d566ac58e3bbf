"""A comparison has the same bits wherever either table lies."""

from __future__ import annotations

import tempfile
from pathlib import Path

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
        }
    )
    drawn = np.where(random.random(rows) < 0.7, before["eye"], random.choice(list("abc"), rows))
    after = before.assign(
        age=(before["age"] // 10 * 10).astype(str), eye=drawn, pay=before["pay"] + random.integers(-3, 4, rows)
    )
    after.loc[[3, 7, 8], "sex"] = None
    return before, after


def found(before, after, **options):
    document = gpupif.compare(before, after, **options).to_dict()
    del document["seconds"]
    return document


def shuffled(after):
    return after.drop(index=[1, 2, 30]).sample(frac=1, random_state=0)


PLACES = {"columns": ["age", "sex", "eye", "pay"], "linkage": 15, "seed": 4}
NAMES = {"row_id": "id", "sensitive": "eye"}


def test_files_in_pieces_and_parts(both, tmp_path):
    before, after = both
    with in_parts(3, 150), gpupif.config(memory_limit="8GiB"):
        first = write_parts(tmp_path / "before", before, [10, 20])
        second = write_parts(tmp_path / "after", after, [15])
        third = write_parts(tmp_path / "rest", shuffled(after), [15])
        streamed = found(first, second, **PLACES), found(first, third, **NAMES), found(before, second, **PLACES)
    assert streamed == (found(*both, **PLACES), found(before, shuffled(after), **NAMES), found(*both, **PLACES))
    assert found(first, second, **PLACES) == streamed[0]


@pytest.mark.dask
@pytest.mark.usefixtures("on_cpu")
def test_dask(both):
    import dask

    before, after = both
    with dask.config.set(scheduler="sync"):
        lazy = cut(before, [10, 10, 20]), cut(after, [15, 30])
        expected = found(before, after, **PLACES)
        assert found(*lazy, **PLACES) == expected
        assert found(before, lazy[1], **PLACES) == expected
        assert found(lazy[0], pa.Table.from_pandas(after), **PLACES) == expected
        rest = cut(shuffled(after), [10, 20])
        assert found(lazy[0], rest, **NAMES) == found(before, shuffled(after), **NAMES)
        for wrong, words in (
            (cut(after.iloc[:30], [9]), "expected the 40 rows of the table before, got 30"),
            (cut(after.assign(id=after["id"] + 1), [9]), "after has 1 values that before lacks"),
            (cut(after.assign(id=after["id"] // 2), [9]), "after has 20 different values in 40 rows"),
        ):
            options = PLACES if len(wrong) == 30 else NAMES
            with pytest.raises(gpupif.InputError, match=words):
                gpupif.compare(lazy[0], wrong, **options)


@pytest.mark.dask
@pytest.mark.usefixtures("on_cpu")
def test_dask_and_parquet(both):
    import dask

    before, after = both
    with dask.config.set(scheduler="sync"), tempfile.TemporaryDirectory() as place:
        path = write_parts(Path(place) / "after", after, [15])
        assert found(cut(before, [10]), path, **PLACES) == found(before, after, **PLACES)


def test_kinds_of_frames(both):
    before, after = both
    expected = found(before, after, **PLACES)
    assert found(pl.from_pandas(before), pa.Table.from_pandas(after), **PLACES) == expected
    assert found(before.astype({"sex": "category"}), pl.from_pandas(after), **PLACES) == expected


class Stream:
    """A table that can be read once."""

    def __init__(self, table):
        self._reader = pa.Table.from_pandas(table).to_reader()

    def __arrow_c_stream__(self, requested_schema=None):
        return self._reader.__arrow_c_stream__(requested_schema)


def test_streams_are_read_once(both):
    before, after = both
    assert found(Stream(before), Stream(after), **PLACES) == found(before, after, **PLACES)


def test_threads_and_order_of_rows_change_nothing(both):
    before, after = both
    expected = found(before, after, **PLACES)
    with gpupif.config(threads=1):
        assert found(before, after, **PLACES) == expected
    order = np.random.default_rng(1).permutation(len(before))
    assert found(before.iloc[order], after.iloc[order], **PLACES) == expected
