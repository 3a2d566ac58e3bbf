"""The CUDA engine on this machine's GPU: `python -m benchmarks.gpu`.

Runs the tests marked gpu, compares the engines on the synthetic census and on hard tables, then times scoring (CIG and
CSF, float64) of codes that are on the device to scores that stay there, in all and by stage (events of the device),
beside the CPU engine on all cores and plain cuDF group-bys; and a table from a Parquet file to a Parquet file. Writes
benchmarks/results/<gpu>.json and .svg. Tests run it on a few rows with NumPy in place of CuPy: such times mean nothing
and are not written.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import gpupif
import gpupif.device
from gpupif.engines.base import Engine
from gpupif.engines.base import on_host as brought
from gpupif.engines.cpu import CpuEngine
from gpupif.engines.cuda import CudaEngine
from gpupif.engines.cuda_library import Library, frame_library, open_libraries
from gpupif.environment import describe
from gpupif.errors import DeviceError
from gpupif.measures import MEASURES as ALL
from gpupif.result import Scores

from .device_tables import CARDINALITIES, MEASURES, cudf_group_bys, device_job, hard_tables, on_host, write_source
from .draw import draw_scaling
from .stages import Stages

RESULTS = Path(__file__).parent / "results"
TEST_NAMES = ("cuda", "test_measures.py", "test_row_risks.py", "test_invariants.py")
TESTS = [Path(__file__).parent.parent / "tests" / name for name in TEST_NAMES]
COPIED_BYTES = 1 << 30
TOLERANCE = 1e-12
# Below it differences are measured as if it were the value: what is left of sums that cancel has no relative accuracy.
NEAR_ZERO = 1e-2
# A key read and two scores written by each cell, 32 bytes at a time: no way of scoring moves less.
CELL_BYTES = 16 + 2 * 32
# Tables larger than this are for the GPU alone; the others get fewer runs on those of that size.
PEER_ROWS = 100_000_000
FILE_ROWS = 30_000_000
PEER_TIMES = 2
# For an H200: seconds by rows, and how many times as fast as others.
GOALS = {100_000_000: 0.5, 300_000_000: 2.0}
PEER_GOALS = {"cpu": 100, "cudf": 5}


class Silent:
    """Progress that nobody sees."""

    def advance(self, cells: int) -> None:
        """See `Progress`."""


def is_device(library: Library) -> bool:
    """Whether it has a GPU, and not NumPy in the place of CuPy."""
    return hasattr(library.xp, "cuda")


def score_with(engine: Engine, table: Any, measures: Sequence[str]) -> Scores:
    """Scores of a table by one engine."""
    with patch("gpupif.scoring.choose_engine", return_value=engine):
        return gpupif.score(table, list(measures), progress=False)


def difference(expected: Any, found: Any) -> float:
    """The largest relative difference; not a number where one of two is none, or infinite."""
    with np.errstate(invalid="ignore"):
        relative = np.abs(expected - found) / np.maximum(NEAR_ZERO, np.abs(expected))
    same = (expected == found) | (np.isnan(expected) & np.isnan(found))
    return float(np.where(same, 0, relative).max())


def compare(libraries: list[Library], rows: int) -> dict[str, float]:
    """Largest relative difference between the engines by table; stops above the tolerance."""
    found = {}
    for name, table in hard_tables(rows).items():
        engines = (CpuEngine(), CudaEngine(libraries=libraries), CudaEngine(libraries=libraries))
        scores = [score_with(engine, table, list(ALL)) for engine in engines]
        cpu, cuda, again = ([brought(one.array(measure)) for measure in ALL] for one in scores)
        if any(a.tobytes() != b.tobytes() for a, b in zip(cuda, again, strict=True)):
            sys.exit(f"{name}: two runs of the CUDA engine differ")
        found[name] = float(np.max([difference(a, b) for a, b in zip(cpu, cuda, strict=True)]))
        if not found[name] <= TOLERANCE:
            sys.exit(f"{name}: the CUDA engine differs from the CPU engine by {found[name]}")
        print(f"{name}: engines differ by {found[name]:.1e} at most", flush=True)
    return found


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


def bandwidth(library: Library, synchronize: Callable[[], Any], size: int) -> float:
    """Bytes a second that a copy on the device moves, read and written."""
    source = library.xp.zeros(size // 8)
    best = min(timed(source.copy, synchronize, 5))
    return 2 * size / best


def measure(library: Library, rows: int, times: int, moved: float, synchronize: Callable[[], Any]) -> list[Any]:
    """Seconds by engine for codes on the device; of the CUDA engine also by stage. moved: bytes a second of a copy."""
    with library.active():
        job = device_job(library, rows)
    engine = CudaEngine(libraries=[library])
    contenders: dict[str, tuple[Callable[[], Any], int]] = {"cuda": (partial(engine.score, job, Silent()), times)}
    if rows <= PEER_ROWS:
        contenders["cpu"] = (partial(CpuEngine().score, on_host(job), Silent()), min(times, PEER_TIMES))
        by_cudf = CudaEngine(libraries=[library], grouping="cudf")
        contenders["cuda, grouped by cuDF"] = (partial(by_cudf.score, job, Silent()), min(times, PEER_TIMES))
        if is_device(library):
            contenders["cudf"] = (partial(cudf_group_bys, library, job), min(times, PEER_TIMES))
    results: list[dict[str, Any]] = []
    floor = rows * len(CARDINALITIES) * CELL_BYTES / moved
    for name, (run, runs) in contenders.items():
        with Stages(library) as stages:
            try:
                seconds = timed(run, synchronize, runs)
            except (MemoryError, ImportError, RuntimeError, DeviceError) as error:
                if name == "cuda":
                    raise
                print(f"{rows:>12,} rows {name:21} not run: {type(error).__name__}: {error}", flush=True)
                continue
            finally:
                library.release()
            by_stage = {stage: spent / (runs + 1) for stage, spent in stages.seconds().items()}
        median = statistics.median(seconds)
        results.append(
            {"engine": name, "rows": rows, "seconds": median, "runs": seconds, "floor": floor, "stages": by_stage}
        )
        parts = ", ".join(f"{stage} {spent:.4f}" for stage, spent in by_stage.items())
        ratio = f"{median / results[0]['seconds']:7.1f}x, " if len(results) > 1 else ""
        print(f"{rows:>12,} rows {name:21} {median:9.4f} s, {ratio}floor {floor:.4f} s  {parts}", flush=True)
    return results


def against_goals(results: list[dict[str, Any]]) -> list[str]:
    """What was to be reached on an H200, and what was."""
    seconds = {(one["engine"], one["rows"]): one["seconds"] for one in results if "seconds" in one}
    lines = []
    for rows, goal in GOALS.items():
        if ("cuda", rows) in seconds:
            lines.append(f"{rows:,} rows in {goal} s: {seconds['cuda', rows]:.3f} s")
    for peer, goal in PEER_GOALS.items():
        found = [one / seconds["cuda", rows] for (name, rows), one in seconds.items() if name == peer]
        if found:
            lines.append(f"{goal} times {peer}: {', '.join(f'{ratio:.1f}' for ratio in found)} times, by size")
    return lines


def file_to_file(library: Library, rows: int) -> dict[str, Any]:
    """Seconds by stage of a Parquet file, some of its columns text, scored and its scores written to another."""
    engine = CudaEngine(libraries=[library])
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "table.parquet", Path(folder) / "scores.parquet"
        with library.active():
            frame = write_source(library, frame_library(library.device), rows, source)
        stages: dict[str, float] = {}
        for table, before in ((frame, "frame: "), (source, "file: ")):
            # The first run makes everything ready.
            for _ in range(2):
                scores = score_with(engine, table, MEASURES)
                started = time.perf_counter()
                scores.to_parquet(output)
                stages |= {before + stage: spent for stage, spent in scores.seconds.items()}
                stages[before + "write"] = time.perf_counter() - started
        size = output.stat().st_size
    print(f"{rows:>12,} rows " + ", ".join(f"{stage} {spent:.3f} s" for stage, spent in stages.items()), flush=True)
    return {"engine": "cuda, to a file", "rows_of_file": rows, "stages": stages, "bytes": size}


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
    parser.add_argument("--draw", type=Path, help="draw results that were measured before, and nothing else")
    arguments = parser.parse_args()
    if arguments.draw:
        draw_scaling(json.loads(arguments.draw.read_text()), arguments.draw.with_suffix(".svg"))
        return
    if not (status := gpupif.device.cuda_status()).usable:
        sys.exit(f"There is nothing to measure: {status.reason}.")
    libraries = open_libraries([0])
    library = libraries[0]
    if not arguments.no_tests:
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-m", "gpu", *map(str, TESTS)], check=True)
    differences = compare(libraries, arguments.compare_rows)
    synchronize = library.xp.cuda.runtime.deviceSynchronize if is_device(library) else library.finish
    moved = bandwidth(library, synchronize, COPIED_BYTES if is_device(library) else 1 << 16)
    print(f"{library.name}: a copy on the device moves {moved / 1e12:.2f} TB/s", flush=True)
    results: list[dict[str, Any]] = []
    document = {
        "machine": describe(),
        "device": library.name,
        "copied_bytes_per_second": moved,
        "differences": differences,
        "results": results,
    }
    name = re.sub(r"[^a-z0-9]+", "-", library.name.lower())
    for rows in arguments.rows:
        results += measure(library, rows, arguments.times, moved, synchronize)
        if rows <= FILE_ROWS:
            results.append(file_to_file(library, rows))
        if is_device(library):
            # After each size, so that what was measured is kept whatever comes.
            arguments.out.mkdir(parents=True, exist_ok=True)
            (arguments.out / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")
    print(*against_goals(results), sep="\n")
    if not is_device(library):
        print(f"{library.name} is no GPU: nothing is written.")
        return
    try:
        draw_scaling(document, arguments.out / f"{name}.svg")
    except ImportError as error:
        # What was measured is kept; a machine with a GPU need not be one to draw on.
        print(f"Not drawn ({error}): python -m benchmarks.gpu --draw {name}.json does it where matplotlib is.")


if __name__ == "__main__":
    main()
