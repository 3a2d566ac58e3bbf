"""The CUDA engine on this machine's GPU: `python -m benchmarks.gpu`.

CIG and CSF (float64) of 10 columns of codes, made on the device like those of a census, to scores that stay there, or
go to the host where the device has no room for them; from 1 to 300 million rows, by both ways of finding cohorts:

* the first calls in a fresh process, with nothing compiled before and then with what the first process has kept;
* later calls, best and median, as users get them (some memory is kept from call to call) and with all of it given back
  to the driver each time; by stage (events of the device), and beside the time that moving codes and scores once would
  take;
* whether all give the same bits, compared on the device by digests of 64 bits;
* plain cuDF group-bys (over a pool of memory, too), the CPU engine on all cores, and a Parquet file to a Parquet file;
* both engines on hard tables, with all measures: the largest relative difference;
* the tests marked gpu: how many passed, and which did not.

It goes on when one of these fails, and the result says so. All ends within --seconds: what there is no time for, the
largest tables first, is left out, and named under "notes". Writes gpu.json and gpu.svg to benchmarks/results/, gpu.json
after each step. Tests run it on a few rows with what stands in for a GPU (tests/cuda/benchmark.py): such times mean
nothing and are not written.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import gpupif
import gpupif.gpu.status
from gpupif.cli.info import describe
from gpupif.engines.base import Engine, EngineResult, Job
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.engines.cuda.engine import SHARE, CudaEngine
from gpupif.engines.memory import scores_on
from gpupif.gpu.cupy_arrays import CupyLibrary
from gpupif.gpu.open import frame_library, open_libraries
from gpupif.measures import MEASURES as ALL
from gpupif.results.scores import Scores
from gpupif.utils.arrays import on_host as brought
from gpupif.utils.versions import installed_version

from .budget import Budget
from .device_tables import (
    CARDINALITIES,
    MEASURES,
    cudf_group_bys,
    device_job,
    digest,
    hard_tables,
    on_host,
    pooled_cudf,
    write_source,
)
from .draw import draw_scaling
from .gpu_tests import run_tests
from .stages import Stages

# What fresh processes of the benchmark are run by.
COMMAND: Sequence[str] = ("-m", "benchmarks.gpu")
RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parent.parent
COPIED_BYTES = 1 << 30
TOLERANCE = 1e-12
# Below it differences are measured as if it were the value: what is left of sums that cancel has no relative accuracy.
NEAR_ZERO = 1e-2
# Of a cell each code is read once, 1 byte, and each of its scores written once, 8 bytes: no way of scoring moves less.
CELL_BYTES = 1 + 8 * len(MEASURES)
FLOOR = f"rows x {len(CARDINALITIES)} columns x (1 + 8 x {len(MEASURES)}) bytes / bytes a second that a copy moves"
GROUPINGS = ("cudf", "rotation")
PACKAGES = ("gpupif", "cupy", "cudf", "rmm", "numba-cuda", "numba", "numpy")
# Larger tables are for the CUDA engine alone: the host has to have room for the scores, cuDF for its joins.
PEER_ROWS = 100_000_000
FILE_ROWS = 30_000_000
# What it is taken to take to start, to compile all kernels and to score a small table, until that was measured.
FIRST_SECONDS = 90.0
# Tests are stopped when the time is up; in less there is no use in beginning.
LEAST_TEST_SECONDS = 20.0
# For the last results to be written and drawn.
END_SECONDS = 5.0
# Where kernels that were compiled are kept: by gpupif and Numba, CuPy, and the driver.
CACHES = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")
# For an H200: seconds by rows, and how many times as fast as others.
GOALS = {100_000_000: 0.5, 300_000_000: 2.0}
PEER_GOALS = {"cpu": 100, "cudf group-bys": 5}


class Silent:
    """Progress that nobody sees."""

    def advance(self, cells: int) -> None:
        """See `Progress`."""


def is_device(library: CupyLibrary) -> bool:
    """Return whether the library has a GPU, and not NumPy in the place of CuPy."""
    return hasattr(library.xp, "cuda")


class Bench(NamedTuple):
    """The objects that all parts of the benchmark share.

    libraries: the streams of the device. times: runs that are counted, at most. document: what is found. save: keeps
    it. groupings: the ways to group rows that can be measured; without cuDF one.
    """

    libraries: Sequence[CupyLibrary]
    budget: Budget
    times: int
    document: dict[str, Any]
    save: Callable[[], None]
    groupings: Sequence[str] = GROUPINGS

    @property
    def has_cudf(self) -> bool:
        """Return whether cuDF can be used."""
        return "cudf" in self.groupings

    @property
    def library(self) -> CupyLibrary:
        """Return the first stream."""
        return self.libraries[0]

    def synchronize(self) -> None:
        """Wait until the device has done all it was given."""
        if is_device(self.library):
            self.library.xp.cuda.runtime.deviceSynchronize()

    def add(self, **result: Any) -> dict[str, Any]:
        """Keep a result."""
        self.document["results"].append(result)
        self.save()
        return result

    @contextlib.contextmanager
    def going_on(self, what: str) -> Iterator[None]:
        """Run a part of the benchmark; if it fails, note the failure and go on with the other parts."""
        try:
            yield
        except Exception as error:
            note = f"{what}: failed, {type(error).__name__}: {' '.join(str(error).split())}"
            self.budget.notes.append(note)
            print(note, flush=True)
        finally:
            for library in self.libraries:
                library.release()
            self.save()


def timed(bench: Bench, run: Callable[[], Any], stages: Stages | None = None) -> tuple[dict[str, Any], Any]:
    """Time a run once uncounted, then at least once and while there is time; return the seconds and the last result.

    stages: those of the runs that count, on average.
    """
    seconds: list[float] = []
    result: Any = None
    while len(seconds) < 2 or (len(seconds) <= bench.times and seconds[-1] < bench.budget.left):
        if len(seconds) == 1 and stages is not None:
            stages.clear()
        del result
        bench.synchronize()
        started = time.perf_counter()
        result = run()
        bench.synchronize()
        seconds.append(time.perf_counter() - started)
    runs = seconds[1:]
    found = {"uncounted": seconds[0], "runs": runs, "best": min(runs), "seconds": statistics.median(runs)}
    if stages is not None:
        found["stages"] = {stage: spent / len(runs) for stage, spent in stages.seconds().items()}
    return found, result


def of_next(began: float, *timings: dict[str, Any]) -> float:
    """Estimate the least seconds of the same work next time: two best runs a timing, and the rest as before."""
    spent = sum(one["uncounted"] + sum(one["runs"]) for one in timings)
    return float(time.perf_counter() - began - spent + sum(2 * one["best"] for one in timings))


def bandwidth(bench: Bench, size: int) -> float:
    """Measure the bytes a second that a copy on the device moves, read and written."""
    source = bench.library.xp.zeros(size // 8)
    return float(2 * size / timed(bench, source.copy)[0]["best"])


def table_of(bench: Bench, rows: int) -> Job | None:
    """Return a job on the device, its scores there if they fit, else on the host; None and a note if neither."""
    with bench.library.active():
        job = device_job(bench.library, rows)
    memory = int(SHARE * bench.library.free_bytes())
    for there in ("device", "host"):
        job = replace(job, scores_on=there)
        if scores_on(job, memory) is not None:
            return job
    bench.budget.notes.append(f"{rows:,} rows: left out, they do not fit on {bench.library.name} as a whole")
    return None


def first_calls(bench: Bench, rows: int) -> None:
    """Time the first and the second call in fresh processes; only the first process finds no compiled kernels."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **{name: str(Path(folder) / name.lower()) for name in CACHES}}
        for number, grouping in enumerate((bench.groupings[0], *bench.groupings)):
            caches = "filled" if number else "empty"
            what = f"first call, {grouping}, caches {caches}"
            if not bench.budget.fits(what, bench.budget.expected("first call", rows, FIRST_SECONDS)):
                continue
            with bench.going_on(what):
                command = [sys.executable, *COMMAND, "--first-call", grouping, "--rows", str(rows)]
                began = time.perf_counter()
                done = subprocess.run(
                    command,
                    cwd=ROOT,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=max(1.0, bench.budget.left),
                    check=False,
                )
                if done.returncode != 0:
                    raise RuntimeError(done.stderr[-2000:])
                bench.budget.took("first call", rows, time.perf_counter() - began)
                found = json.loads(done.stdout.splitlines()[-1])
                bench.add(engine="cuda, fresh process", rows=rows, grouping=grouping, caches=caches, **found)
                print(f"{rows:>12,} rows, {what}: {found['first_call']:.2f} s", flush=True)


def first_call(grouping: str, rows: int) -> dict[str, float]:
    """Return the seconds of making a table and of scoring it twice, in a process that `first_calls` started."""
    marks = [time.perf_counter()]
    libraries = open_libraries([0])
    with libraries[0].active():
        job = device_job(libraries[0], rows)
    for _ in range(2):
        marks.append(time.perf_counter())
        CudaEngine(libraries=libraries, grouping=grouping).score(job, Silent())
    marks.append(time.perf_counter())
    return dict(zip(("table", "first_call", "second_call"), np.diff(marks).tolist(), strict=True))


def measure_engine(bench: Bench, rows: int, moved: float) -> None:
    """Time later calls of the CUDA engine by grouping, with memory kept and with all given back; digest the scores.

    moved: bytes a second of a copy.
    """
    wanted = []
    for grouping in bench.groupings:
        # The first time this process compiles or loads the kernels too.
        seconds = bench.budget.expected(f"cuda, {grouping}", rows, bench.budget.expected("first call", rows))
        if bench.budget.fits(f"{rows:,} rows, cuda, {grouping}", seconds):
            wanted.append(grouping)
    if not wanted:
        return
    with bench.going_on(f"{rows:,} rows, table"):
        job = table_of(bench, rows)
        if job is None:
            return
        for grouping in wanted:
            with bench.going_on(f"{rows:,} rows, cuda, {grouping}"):
                _measure_grouping(bench, job, grouping, rows * len(CARDINALITIES) * CELL_BYTES / moved)


def _measure_grouping(bench: Bench, job: Job, grouping: str, floor: float) -> None:
    rows, engine, timings = job.rows, CudaEngine(libraries=bench.libraries, grouping=grouping), []
    began = time.perf_counter()
    for pools in ("kept", "given back"):

        def score(gives_back: bool = pools == "given back") -> EngineResult:
            result = engine.score(job, Silent())
            for library in bench.libraries if gives_back else ():
                library.release()
            return result

        with Stages(bench.library) as stages:
            found, result = timed(bench, score, stages)
        timings.append(found)
        with bench.library.active():
            digests = {name: digest(bench.library, values) for name, values in result.values.items()}
        name = f"cuda, {grouping}" + (", memory given back" if pools == "given back" else "")
        facts = {"grouping": grouping, "pools": pools, "scores_on": job.scores_on, "through_host": result.through_host}
        bench.add(
            engine=name, rows=rows, **found, floor=floor, times_floor=found["best"] / floor, **facts, bits=digests
        )
        del result
        parts = ", ".join(f"{stage} {spent:.4f}" for stage, spent in found["stages"].items())
        print(
            f"{rows:>12,} rows {name:28} {found['seconds']:9.4f} s (best {found['best']:.4f}), "
            f"floor {floor:.4f} s  {parts}",
            flush=True,
        )
    bench.budget.took(f"cuda, {grouping}", rows, of_next(began, *timings))


def measure_peer(bench: Bench, rows: int, name: str, moved: float) -> None:
    """Time a peer on the same table: the CPU engine, or plain cuDF group-bys."""
    if rows > PEER_ROWS:
        bench.budget.notes.append(f"{rows:,} rows, {name}: left out, larger than {PEER_ROWS:,} rows")
        return
    # The first time the CPU engine compiles.
    if not bench.budget.fits(f"{rows:,} rows, {name}", bench.budget.expected(name, rows, FIRST_SECONDS)):
        return
    with bench.going_on(f"{rows:,} rows, {name}"):
        began = time.perf_counter()
        with bench.library.active():
            job = device_job(bench.library, rows)
        if name == "cpu":
            found, result = timed(bench, partial(CpuEngine().score, on_host(job), Silent()))
            with bench.library.active():
                bits = {measure: digest(bench.library, values) for measure, values in result.values.items()}
        else:
            with pooled_cudf(bench.library.device):
                found, bits = timed(bench, partial(cudf_group_bys, bench.library, job))[0], {}
        bench.budget.took(name, rows, of_next(began, found))
        floor = rows * len(CARDINALITIES) * CELL_BYTES / moved
        bench.add(engine=name, rows=rows, **found, floor=floor, bits=bits)
        print(f"{rows:>12,} rows {name:28} {found['seconds']:9.4f} s (best {found['best']:.4f})", flush=True)


def same_bits(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return, by rows and measure, whether all CUDA engines gave the same bits, and the CPU engine too."""
    found: dict[str, Any] = {}
    for rows in sorted({one["rows"] for one in results if one.get("bits")}):
        of_rows = [one for one in results if one.get("bits") and one["rows"] == rows]
        for measure in MEASURES:
            cuda = {one["bits"][measure] for one in of_rows if one["engine"] != "cpu"}
            cpu = {one["bits"][measure] for one in of_rows if one["engine"] == "cpu"}
            groupings = sorted({one["grouping"] for one in of_rows if "grouping" in one})
            found[f"{rows:,} rows, {measure}"] = {
                "groupings": groupings,
                "cuda": len(cuda) == 1,
                "cuda and cpu": cuda == cpu if cuda and cpu else None,
            }
    return found


def score_with(engine: Engine, table: Any, measures: Sequence[str]) -> Scores:
    """Score a table with one engine."""
    with patch("gpupif.scoring.score.choose_engine", return_value=engine), gpupif.config(progress=False):
        return gpupif.score(table, list(measures))


def difference(expected: Any, found: Any) -> float:
    """Return the largest relative difference; infinite if a pair that differs has a NaN or an infinity."""
    apart = (expected != found) & ~(np.isnan(expected) & np.isnan(found))
    a, b = expected[apart], found[apart]
    if not np.isfinite([a, b]).all():
        return math.inf
    return float((np.abs(a - b) / np.maximum(NEAR_ZERO, np.abs(a))).max(initial=0.0))


def compare(bench: Bench, rows: int) -> None:
    """Compare the engines on hard tables: the largest relative difference of any measure, and equality of groupings."""
    for name, table in hard_tables(rows).items():
        if not bench.budget.fits(f"engines compared on {name}", bench.budget.expected("compare", rows)):
            continue
        with bench.going_on(f"engines compared on {name}"):
            began = time.perf_counter()
            engines: list[Engine] = [CpuEngine()]
            engines += (
                CudaEngine(libraries=bench.libraries, grouping=one, with_frames=bench.has_cudf)
                for one in bench.groupings
            )
            cpu, *cuda = (
                [brought(scores.array(measure)) for measure in ALL]
                for scores in (score_with(engine, table, list(ALL)) for engine in engines)
            )
            largest = max(difference(a, b) for one in cuda for a, b in zip(cpu, one, strict=True))
            equal = len({tuple(array.tobytes() for array in one) for one in cuda}) == 1
            facts = {"largest_difference": largest, "within_tolerance": largest <= TOLERANCE, "groupings_agree": equal}
            bench.document["differences"][name] = facts
            bench.budget.took("compare", rows, time.perf_counter() - began)
            print(f"{name}: engines differ by {largest:.1e} at most", flush=True)


def file_to_file(bench: Bench, rows: int) -> None:
    """Time, by stage, a frame and a Parquet file with some text columns: score them and write the scores."""
    if not bench.budget.fits(f"{rows:,} rows from file to file", bench.budget.expected("file", rows)):
        return
    engine = CudaEngine(libraries=bench.libraries)
    with bench.going_on(f"{rows:,} rows from file to file"), tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        source, output = Path(folder) / "table.parquet", Path(folder) / "scores.parquet"
        with bench.library.active():
            frame = write_source(bench.library, frame_library(bench.library.device), rows, source)
        stages: dict[str, float] = {}
        for table, before in ((frame, "frame: "), (source, "file: ")):
            # The first run makes everything ready.
            for _ in range(2):
                scores = score_with(engine, table, MEASURES)
                started = time.perf_counter()
                scores.to_parquet(output)
                stages |= {before + stage: spent for stage, spent in scores.seconds.items()}
                stages[before + "write"] = time.perf_counter() - started
        bench.budget.took("file", rows, time.perf_counter() - began)
        bench.add(engine="cuda, to a file", rows_of_file=rows, stages=stages, bytes=output.stat().st_size)
        print(f"{rows:>12,} rows " + ", ".join(f"{stage} {spent:.3f} s" for stage, spent in stages.items()), flush=True)


def against_goals(results: Sequence[dict[str, Any]]) -> list[str]:
    """Compare the goals for an H200 with the times of the faster grouping as users get it, a line each."""
    engines: dict[int, float] = {}
    for one in results:
        if one.get("pools") == "kept":
            engines[one["rows"]] = min(one["seconds"], engines.get(one["rows"], one["seconds"]))
    lines = [f"{rows:,} rows in {goal} s: {engines[rows]:.3f} s" for rows, goal in GOALS.items() if rows in engines]
    for peer, goal in PEER_GOALS.items():
        found = [
            one["seconds"] / engines[one["rows"]] for one in results if one["engine"] == peer and one["rows"] in engines
        ]
        if found:
            lines.append(f"{goal} times {peer}: {', '.join(f'{ratio:.1f}' for ratio in found)} times, by size")
    return lines


def surroundings(library: CupyLibrary) -> dict[str, Any]:
    """Return the hardware, the driver and the versions of packages."""
    found = {"device": library.name, "machine": describe()}
    found["packages"] = {name: installed_version(name) or "not installed" for name in PACKAGES}
    if is_device(library):
        runtime = library.xp.cuda.runtime
        free, total = runtime.memGetInfo()
        found["cuda"] = {"driver": runtime.driverGetVersion(), "runtime": runtime.runtimeGetVersion()}
        found["device_bytes"] = {"free": int(free), "total": int(total)}
        with contextlib.suppress(OSError):
            command = [
                "nvidia-smi",
                "--query-gpu=name,driver_version,memory.total,clocks.max.sm",
                "--format=csv,noheader",
            ]
            found["nvidia-smi"] = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return found


def measure_all(bench: Bench, sizes: Sequence[int], compare_rows: int, tests: bool) -> None:
    """Measure all parts while there is time, first the parts with figures that others need."""
    sizes, document = sorted(sizes), bench.document
    first_calls(bench, sizes[0])
    with bench.library.active():
        moved = bandwidth(bench, COPIED_BYTES if is_device(bench.library) else 1 << 16)
    document["copied_bytes_per_second"] = moved
    print(f"{bench.library.name}: a copy on the device moves {moved / 1e12:.2f} TB/s", flush=True)
    for rows in sizes:
        measure_engine(bench, rows, moved)
    for peer in PEER_GOALS:
        for rows in sizes:
            if peer == "cpu" or (is_device(bench.library) and bench.has_cudf):
                measure_peer(bench, rows, peer, moved)
    document["same_bits"] = same_bits(document["results"])
    for rows in sizes:
        if rows <= FILE_ROWS and bench.has_cudf:
            file_to_file(bench, rows)
    compare(bench, compare_rows)
    if tests and bench.budget.fits("tests marked gpu", LEAST_TEST_SECONDS):
        document["tests"] = run_tests(bench.budget.left - END_SECONDS)
    document["goals"] = against_goals(document["results"])
    bench.save()


def main() -> None:
    """Measure, compare, test, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[1_000_000, 10_000_000, 100_000_000, 300_000_000], help="sizes"
    )
    parser.add_argument("--seconds", type=float, default=540, help="all ends within so many")
    parser.add_argument("--times", type=int, default=5, help="runs that are counted, where there is time for them")
    parser.add_argument("--compare-rows", type=int, default=50_000, help="rows of the tables that engines agree on")
    parser.add_argument("--no-tests", action="store_true", help="leave out the tests marked gpu")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for gpu.json and gpu.svg")
    parser.add_argument("--draw", type=Path, help="draw results that were measured before, and nothing else")
    parser.add_argument(
        "--first-call", choices=GROUPINGS, help="time the first calls in this process, and nothing else"
    )
    arguments = parser.parse_args()
    if arguments.draw:
        draw_scaling(json.loads(arguments.draw.read_text()), arguments.draw.with_suffix(".svg"))
        return
    if not (status := gpupif.gpu.status.cuda_status()).usable:
        sys.exit(f"There is nothing to measure: {status.reason}.")
    if arguments.first_call:
        print(json.dumps(first_call(arguments.first_call, arguments.rows[0])))
        return
    # Before anything is imported that takes time, or compiled.
    budget = Budget(arguments.seconds)
    libraries = open_libraries([0])
    document: dict[str, Any] = {
        **surroundings(libraries[0]),
        "seconds_at_most": arguments.seconds,
        "floor": FLOOR,
        "results": [],
        "differences": {},
        "notes": budget.notes,
    }
    file = arguments.out / "gpu.json"

    def save() -> None:
        # After each step, so that what was measured is kept whatever comes.
        if is_device(libraries[0]):
            arguments.out.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(document, indent=2) + "\n")

    groupings = GROUPINGS[1:] if status.no_cudf else GROUPINGS
    if status.no_cudf:
        budget.notes.append(f"all that needs cuDF: left out, {status.no_cudf}")
    bench = Bench(libraries, budget, arguments.times, document, save, groupings)
    measure_all(bench, arguments.rows, arguments.compare_rows, not arguments.no_tests)
    print(*document["goals"], *budget.notes, sep="\n")
    if "tests" in document:
        print("Tests:", document["tests"])
    if not is_device(libraries[0]):
        print(f"{libraries[0].name} is no GPU: nothing is written.")
        return
    try:
        draw_scaling(document, file.with_suffix(".svg"))
    except ImportError as error:
        # What was measured is kept; a machine with a GPU need not be one to draw on.
        print(f"Not drawn ({error}): python -m benchmarks.gpu --draw {file} does it where matplotlib is.")


if __name__ == "__main__":
    main()
