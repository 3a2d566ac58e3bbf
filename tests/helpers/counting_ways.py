"""What is counted in every way to run: in memory, of files with next to no memory, on Dask, on a device."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gpupif
from gpupif.gpu.status import cuda_status
from tests.helpers.dask_frames import cut
from tests.helpers.gpu.without_gpu import WITHOUT_GPU
from tests.helpers.pieces import in_parts, write_parts


def in_memory(function: Callable[..., Any], table: pd.DataFrame, *arguments: Any, **options: Any) -> Any:
    """Of a frame, on the host."""
    with gpupif.config(device="cpu"):
        return function(table, *arguments, **options)


def in_files(function: Callable[..., Any], table: pd.DataFrame, *arguments: Any, **options: Any) -> Any:
    """Of Parquet files, read in a few chunks and counted in parts."""
    with (
        tempfile.TemporaryDirectory() as place,
        in_parts(max(3, len(table) // 4), 40 * len(table)),
        gpupif.config(device="cpu", memory_limit="16GiB"),
    ):
        path = write_parts(Path(place) / "in", table, [len(table) // 3, len(table) // 2])
        return function(path, *arguments, **options)


def on_dask(function: Callable[..., Any], table: pd.DataFrame, *arguments: Any, **options: Any) -> Any:
    """Of a Dask frame with an empty partition."""
    import dask

    third = len(table) // 3
    with dask.config.set(scheduler="sync"), gpupif.config(device="cpu"):
        return function(cut(table, [third, third, 2 * third]), *arguments, **options)


def on_device(function: Callable[..., Any], table: pd.DataFrame, *arguments: Any, **options: Any) -> Any:
    """Of a frame, on a GPU or on what stands in for one."""
    with gpupif.config(device="auto" if WITHOUT_GPU else "cuda"):
        return function(table, *arguments, **options)


# Those beside the first, whose bits all others have to give, as parameters of tests. With what stands in for a GPU only
# the device: the others compute on the CPU there too, as without it.
OTHERS = [] if WITHOUT_GPU else [pytest.param(in_files, id="files")]
OTHERS += [] if WITHOUT_GPU else [pytest.param(on_dask, id="dask", marks=pytest.mark.dask)]
if WITHOUT_GPU or cuda_status().usable:
    OTHERS.append(pytest.param(on_device, id="device", marks=pytest.mark.gpu))
WAYS = [pytest.param(in_memory, id="memory"), *OTHERS]
