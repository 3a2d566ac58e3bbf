"""Tables for the benchmark of the CUDA engine: hard ones to compare engines on, large ones made on the device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpupif.datasets import census
from gpupif.engines.base import Job
from gpupif.gpu.cudf_frames import CudfFrames
from gpupif.gpu.cupy_arrays import CupyLibrary
from gpupif.kernels.log_units import LOG_BITS
from gpupif.measures import resolve_measures
from gpupif.utils.information import log2_of_shares

CARDINALITIES = (50, 101, 2, 6, 11, 29, 45, 8, 12, 5)
MEASURES = ("cig", "csf")
# Cells whose bits are mixed at once, and odd numbers that mix them: those of splitmix64.
DIGEST_CELLS = 1 << 26
MIXERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
# Columns of these are text in tables that go from file to file.
TEXT_COLUMNS = 4


def hard_tables(rows: int) -> dict[str, pd.DataFrame]:
    """Make the census, and tables unlike it: skewed, of 60 columns, and of texts with missing values."""
    random = np.random.default_rng(0)
    skewed = census(rows)
    for name in skewed:
        skewed[name] = skewed[name].where(random.random(rows) < 0.1, skewed[name].mode()[0])
    texts = census(rows, columns=5).astype("string").mask(random.random((rows, 5)) < 0.1)
    return {"census": census(rows), "skewed": skewed, "60 columns": census(rows, columns=60), "missing texts": texts}


def mix_bits(xp: Any, bits: Any) -> None:
    """Mix each of some uint64 in place, as splitmix64 does."""
    for mixer in MIXERS[1:]:
        bits ^= bits >> xp.uint64(32)
        bits *= xp.uint64(mixer)
    bits ^= bits >> xp.uint64(32)


def shares(library: CupyLibrary, rows: int, seed: int) -> Any:
    """Return numbers from 0 to below 1 on the device, the same for the same seed.

    CuPy's own random numbers need the library cuRAND, which the light installs lack.
    """
    xp = library.xp
    bits = xp.arange(1, rows + 1, dtype="uint64")
    bits += xp.uint64(seed << 40)
    bits *= xp.uint64(MIXERS[0])
    mix_bits(xp, bits)
    bits >>= xp.uint64(11)
    return bits * 2.0**-53


def device_codes(library: CupyLibrary, rows: int) -> list[Any]:
    """Return columns of codes with the cardinalities and skew of the census, made on the device."""
    codes = []
    group = shares(library, rows, 0) ** 2
    for seed, cardinality in enumerate(CARDINALITIES, 1):
        # Half from what the columns have in common, half each column's own: correlated, and skewed to low codes.
        mixed = 0.5 * group + 0.5 * shares(library, rows, seed) ** 3
        codes.append(library.bring((mixed * cardinality).astype("uint8")))
        del mixed
    return codes


def device_job(library: CupyLibrary, rows: int) -> Job:
    """Make a job for CIG and CSF of `device_codes`, with codes and scores on the device."""
    codes = device_codes(library, rows)
    occurrences = [
        library.to_host(library.xp.bincount(column, minlength=cardinality))
        for column, cardinality in zip(codes, CARDINALITIES, strict=True)
    ]
    counts = [np.maximum(one, 1) for one in occurrences]
    logs = [log2_of_shares(one, rows) for one in counts]
    columns = list(range(len(codes)))
    known = ([one / rows for one in counts], logs, [LOG_BITS] * len(codes), [1.0] * len(codes), columns, columns)
    return Job(codes, occurrences, *known, resolve_measures(MEASURES), "float64", scores_on="device")


def digest(library: CupyLibrary, scores: Any) -> str:
    """Return a digest of 64 bits, the same for the same bits; other scores have it with a chance of 2^-64.

    Found on the device: each value's bits are mixed with its place, and all are added up, in whatever order.
    """
    xp, total = library.xp, 0
    flat = scores.reshape(-1)
    for start in range(0, len(flat), DIGEST_CELLS):
        bits = xp.array(flat[start : start + DIGEST_CELLS]).view("uint64")
        bits ^= xp.arange(start, start + len(bits), dtype="uint64") * xp.uint64(MIXERS[0])
        mix_bits(xp, bits)
        total += int(bits.sum())
    return f"{total % (1 << 64):016x}"


def on_host(job: Job) -> Job:
    """Return the same job with codes and scores on the host."""
    return replace(job.on_host(), scores_on="host")


def write_source(library: CupyLibrary, frames: CudfFrames, rows: int, file: Path) -> Any:
    """Make a frame on the device with some columns of text, write it to a Parquet file, and return it."""
    codes = device_codes(library, rows)
    # cuDF works on a stream of its own.
    library.finish()
    frame = frames.frame({f"c{number}": column for number, column in enumerate(codes)})
    for name in list(frame.columns)[:TEXT_COLUMNS]:
        frame[name] = frame[name].astype("str")
    with file.open("wb") as sink, frames.parquet_writer(sink, {}, "zstd") as write:
        write(frame)
    return frame


@contextlib.contextmanager
def pooled_cudf(device: int) -> Iterator[None]:
    """Give cuDF a pool of memory, as the engine has one; without a pool each array waits for the driver."""
    import rmm

    before = rmm.mr.get_per_device_resource(device)
    rmm.mr.set_per_device_resource(device, rmm.mr.CudaAsyncMemoryResource())
    try:
        yield
    finally:
        # The pool is given back once nothing lies in it any more.
        rmm.mr.set_per_device_resource(device, before)


def cudf_group_bys(library: CupyLibrary, job: Job) -> None:
    """Score with plain cuDF: find distinct rows by a group-by, then group and join back for each column."""
    import cudf

    names = [f"c{column}" for column in job.scored_columns]
    table = cudf.DataFrame(dict(zip(names, job.codes, strict=True)))
    distinct = table.groupby(names, sort=False).size().reset_index(name="c")
    for column, name in enumerate(names):
        others = [other for other in names if other != name]
        logs = library.xp.asarray(job.log2_priors[column] / (1 << LOG_BITS))[distinct[name].values]
        counts = distinct["c"].values
        distinct["t"] = counts * (library.xp.log2(counts) - logs)
        sums = distinct.groupby(others, sort=False)[["c", "t"]].sum().reset_index()
        distinct.drop(columns="t").merge(sums, on=others, how="left")
