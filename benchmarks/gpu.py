"""The CUDA engine on this machine's GPU: `python -m benchmarks.gpu`.

Runs the tests marked gpu, compares the engines on the synthetic census and on hard tables, then times scoring (CIG and
CSF, float64) of codes that are on the device to scores that stay there, beside the CPU engine on all cores and plain
cuDF group-bys, and writes benchmarks/results/<gpu>.json and .svg. With NUMBA_ENABLE_CUDASIM=1 it runs without a GPU, on
a few rows, to check itself: such times mean nothing and are not written.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import gpupif
from gpupif.datasets import census
from gpupif.engines.base import Job
from gpupif.engines.cpu import CpuEngine
from gpupif.engines.cuda import CudaEngine
from gpupif.engines.cuda_library import Library, open_libraries
from gpupif.engines.cuda_simulated import OnDevice, SimulatedLibrary
from gpupif.environment import describe
from gpupif.errors import DeviceError
from gpupif.information import log2_counts
from gpupif.measures import resolve_measures

from .draw import draw_scaling

RESULTS = Path(__file__).parent / "results"
TESTS = Path(__file__).parent.parent / "tests"
CARDINALITIES = (50, 101, 2, 6, 11, 29, 45, 8, 12, 5)
MEASURES = ("cig", "csf")
COPIED_BYTES = 1 << 30
TOLERANCE = 1e-12


class Silent:
    """Progress that nobody sees."""

    def advance(self, cells: int) -> None:
        """See `Progress`."""


def hard_tables(rows: int) -> dict[str, pd.DataFrame]:
    """The census, and tables that are not like it."""
    random = np.random.default_rng(0)
    skewed = census(rows)
    for name in skewed:
        skewed[name] = skewed[name].where(random.random(rows) < 0.1, skewed[name].mode()[0])
    texts = census(rows, columns=5).astype("string").mask(random.random((rows, 5)) < 0.1)
    return {"census": census(rows), "skewed": skewed, "60 columns": census(rows, columns=60), "missing texts": texts}


def compare(libraries: list[Library], rows: int) -> dict[str, float]:
    """Largest difference between the engines by table; stops above the tolerance."""
    found = {}
    for name, table in hard_tables(rows).items():
        scores = []
        for engine in (CpuEngine(), CudaEngine(libraries=libraries), CudaEngine(libraries=libraries)):
            with patch("gpupif.scoring.choose_engine", return_value=engine):
                scores.append(gpupif.score(table, list(MEASURES), progress=False))
        cpu, cuda, again = ([one.array(measure) for measure in MEASURES] for one in scores)
        if any(a.tobytes() != b.tobytes() for a, b in zip(cuda, again, strict=True)):
            sys.exit(f"{name}: two runs of the CUDA engine differ")
        found[name] = max(
            float((np.abs(a - b) / np.maximum(1.0, np.abs(a))).max()) for a, b in zip(cpu, cuda, strict=True)
        )
        if not found[name] <= TOLERANCE:
            sys.exit(f"{name}: the CUDA engine differs from the CPU engine by {found[name]}")
    return found


def device_job(library: Library, rows: int) -> Job:
    """Codes with the cardinalities and skew of the census, made on the device."""
    xp, codes, counts = library.xp, [], []
    xp.random.seed(0)
    group = xp.random.random(rows) ** 2
    for cardinality in CARDINALITIES:
        # Half from what the columns have in common, half each column's own: correlated, and skewed to low codes.
        mixed = 0.5 * group + 0.5 * xp.random.random(rows) ** 3
        column = (mixed * cardinality).astype("uint8")
        counts.append(library.to_host(xp.bincount(column, minlength=cardinality)))
        codes.append(column.view(OnDevice) if isinstance(library, SimulatedLibrary) else column)
        del mixed
    del group
    priors = [np.maximum(one, 1) / rows for one in counts]
    logs = [log2_counts(np.maximum(one, 1)) - np.log2(rows) for one in counts]
    columns = list(range(len(codes)))
    return Job(codes, counts, priors, logs, [1.0] * len(codes), columns, columns, resolve_measures(MEASURES), "float64")


def on_host(library: Library, job: Job) -> Job:
    """The same job for the CPU engine."""
    codes = [np.asarray(library.to_host(column)) for column in job.codes]
    fields = {name: getattr(job, name) for name in Job.__dataclass_fields__}
    return Job(**{**fields, "codes": codes})


def timed(run: Callable[[], Any], synchronize: Callable[[], Any], times: int) -> list[float]:
    """Seconds of each of so many runs after a first one that is not counted."""
    seconds = []
    for _ in range(times + 1):
        synchronize()
        started = time.perf_counter()
        result = run()
        synchronize()
        seconds.append(time.perf_counter() - started)
        del result
    return seconds[1:]


def cudf_group_bys(library: Library, job: Job) -> None:
    """Plain cuDF: distinct rows by a group-by, then a group-by and a join back for each column."""
    import cudf

    names = [f"c{column}" for column in job.targets]
    table = cudf.DataFrame(dict(zip(names, job.codes, strict=True)))
    distinct = table.groupby(names, sort=False).size().reset_index(name="c")
    for column, name in enumerate(names):
        others = [other for other in names if other != name]
        logs = library.xp.asarray(job.log2_priors[column])[distinct[name].values]
        counts = distinct["c"].values
        distinct["t"] = counts * (library.xp.log2(counts) - logs)
        sums = distinct.groupby(others, sort=False)[["c", "t"]].sum().reset_index()
        distinct.drop(columns="t").merge(sums, on=others, how="left")


def bandwidth(library: Library, synchronize: Callable[[], Any], size: int) -> float:
    """Bytes a second that a copy on the device moves, read and written."""
    source = library.xp.zeros(size // 8)
    best = min(timed(source.copy, synchronize, 5))
    return 2 * size / best


def measure(library: Library, sizes: list[int], times: int, simulated: bool) -> list[dict[str, Any]]:
    """Seconds by engine and size."""
    synchronize = (lambda: None) if simulated else library.xp.cuda.runtime.deviceSynchronize
    moved = bandwidth(library, synchronize, 1 << 16 if simulated else COPIED_BYTES)
    results: list[dict[str, Any]] = [{"engine": "copy", "bytes_per_second": moved}]
    for rows in sizes:
        with library.active():
            job = device_job(library, rows)
        contenders: dict[str, Callable[[], Any]] = {
            "cuda": partial(CudaEngine(libraries=[library]).score, job, Silent())
        }
        if rows <= 10_000_000:
            contenders["cpu"] = partial(CpuEngine().score, on_host(library, job), Silent())
        if not simulated and rows <= 100_000_000:
            by_cudf = CudaEngine(libraries=[library], grouping="cudf")
            contenders["cuda, grouped by cuDF"] = partial(by_cudf.score, job, Silent())
            contenders["cudf"] = partial(cudf_group_bys, library, job)
        for engine, run in contenders.items():
            try:
                seconds = timed(run, synchronize, times)
            except (MemoryError, ImportError, DeviceError) as error:
                print(f"{rows:>12,} rows {engine:21} not run: {type(error).__name__}: {error}", flush=True)
                continue
            finally:
                library.release()
            # A key read and two scores written by each cell: no way of scoring moves less.
            floor = rows * len(CARDINALITIES) * (16 + 2 * 32) / moved
            results.append(
                {"engine": engine, "rows": rows, "seconds": statistics.median(seconds), "runs": seconds, "floor": floor}
            )
            print(f"{rows:>12,} rows {engine:21} {results[-1]['seconds']:9.4f} s, floor {floor:.4f} s", flush=True)
    return results


def main() -> None:
    """Test, compare, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[1_000_000, 10_000_000, 100_000_000, 300_000_000], help="sizes"
    )
    parser.add_argument("--compare-rows", type=int, default=200_000, help="rows of the tables that engines agree on")
    parser.add_argument("--times", type=int, default=5, help="runs of which the median is taken")
    parser.add_argument("--no-tests", action="store_true", help="leave out the tests marked gpu")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    arguments = parser.parse_args()
    libraries = open_libraries([0])
    simulated = isinstance(libraries[0], SimulatedLibrary)
    if not arguments.no_tests:
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-m", "gpu", str(TESTS)], check=True)
    differences = compare(libraries, arguments.compare_rows)
    results = measure(libraries[0], arguments.rows, arguments.times, simulated)
    document = {"machine": describe(), "device": libraries[0].name, "differences": differences, "results": results}
    if simulated:
        print("Simulated: nothing is written.")
        return
    name = re.sub(r"[^a-z0-9]+", "-", libraries[0].name.lower())
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")
    draw_scaling(document, arguments.out / f"{name}.svg")


if __name__ == "__main__":
    main()
