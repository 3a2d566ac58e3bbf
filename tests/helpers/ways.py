"""The ways to run one question: in memory, from files to files, on Dask, on a device. All give the same bits.

What a new feature has to do in every way is one test with the fixture `way` (tests/conftest.py):

    def test_sizes(way):
        found = way.score(table, "class_size", known=["age"])
        assert_same_frames(found, MEMORY.score(table, "class_size", known=["age"]))
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.gpu.status import cuda_status
from tests.helpers.gpu.without_gpu import WITHOUT_GPU
from tests.helpers.pieces import in_pieces, write_parts

# Small enough that a table of a few rows is read in several chunks and cut into several parts.
CHUNK_ROWS, PART_ROWS = 7, 5


@dataclass(frozen=True)
class Way:
    """A way to run. name: as tests say it. run: scores a pandas frame, with the arguments of `gpupif.score`."""

    name: str
    run: Callable[..., pd.DataFrame]

    def score(self, table: pd.DataFrame, measures: Any = ("cig", "csf"), **options: Any) -> pd.DataFrame:
        """All scores in one frame in memory, columns named <measure>_<column> as files have them, rows in order.

        options: further arguments of `gpupif.score`; a population is a pandas frame too, and goes the same way as the
        table. Raises what `gpupif.score` raises, wherever in the run that is.
        """
        return self.run(table, measures, **options)


def in_memory(table: pd.DataFrame, measures: Any, device: str = "cpu", **options: Any) -> pd.DataFrame:
    """Scored where it lies."""
    with gpupif.config(device=device):
        return gpupif.score(table, measures, **options).to_arrow().to_pandas(ignore_metadata=True)


def in_files(table: pd.DataFrame, measures: Any, **options: Any) -> pd.DataFrame:
    """Written to Parquet files, scored with next to no memory to a folder, and read from there."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_parts(folder / "in", table, [len(table) // 3, len(table) // 2])
        if "population" in options:
            people = options["population"]
            options["population"] = write_parts(folder / "people", people, [len(people) // 4])
        # Rows that match many others have to fit into memory in one place.
        part_rows = len(table) if options.get("missing") == "wildcard" else PART_ROWS
        with in_pieces(CHUNK_ROWS, part_rows), gpupif.config(device="cpu"):
            scores = gpupif.score_files(folder / "in", folder / "out", measures, **options)
        return pa.concat_tables(map(pq.read_table, scores.files)).to_pandas(ignore_metadata=True)


def on_dask(table: pd.DataFrame, measures: Any, **options: Any) -> pd.DataFrame:
    """Cut into partitions, one of them empty, scored and brought together."""
    import dask

    from tests.helpers.dask_frames import cut

    if "population" in options:
        people = options["population"]
        options["population"] = cut(people, [len(people) // 4])
    third = len(table) // 3
    with dask.config.set(scheduler="sync"):
        with gpupif.config(device="cpu"):
            scores = gpupif.score(cut(table, [third, third, 2 * third]), measures, **options)
        return scores.frame().compute().reset_index(drop=True)


def on_device(table: pd.DataFrame, measures: Any, **options: Any) -> pd.DataFrame:
    """Scored by the CUDA engine: on a GPU, or on what stands in for one."""
    return in_memory(table, measures, device="auto" if WITHOUT_GPU else "cuda", **options)


MEMORY = Way("memory", in_memory)
FILES = Way("files", in_files)
DASK = Way("dask", on_dask)
DEVICE = Way("device", on_device)
# Those beside the first, whose bits all others have to give, as parameters of tests.
OTHERS = [pytest.param(FILES, id=FILES.name), pytest.param(DASK, id=DASK.name, marks=pytest.mark.dask)]
if WITHOUT_GPU or cuda_status().usable:
    OTHERS.append(pytest.param(DEVICE, id=DEVICE.name, marks=pytest.mark.gpu))


def assert_same_frames(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """The same columns, types and bits."""
    assert list(found.columns) == list(expected.columns)
    assert found.dtypes.tolist() == expected.dtypes.tolist()
    for name in expected:
        assert found[name].to_numpy().tobytes() == expected[name].to_numpy().tobytes(), name
