"""Tables larger than memory, from files to files: `python -m benchmarks.scale`.

`gpupif score TABLE -o SCORES --memory-limit 2GiB` on 1 to 100 million rows of the synthetic census, on two cores:
seconds from the start of the process to its end, the most memory of all its processes (see benchmarks/watch.py), bytes
of temporary files. Beside it, as far as `--beside` rows, the same without a limit, which is done in memory, and DuckDB
with the same limit. They run in turns, twice each, the better time counts; all scores are checked against each other.
gpupif computes CIG, weighted CIG and CSF; DuckDB CIG and CSF only. Files that were just written are in the kernel's
cache when they are read; what was written before is on the disk before a run starts, and what a run writes need not be
when it ends. Writes benchmarks/results/scale.json and scale.svg; exit code 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gpupif.cli.demo import WARM_UP_ROWS
from gpupif.utils.memory import parse_size

from .draw import draw_scale, scale_table
from .scale_tables import COLUMNS, TOLERANCE, check_difference, equal_bits, make_table
from .surroundings import RESULTS, surroundings
from .watch import folder_bytes, watch

ROOT = Path(__file__).parent.parent
LIMITED, MEMORY, DUCKDB = "gpupif", "gpupif in memory", "duckdb"
# Where each writes: a folder has a file of scores for every file of the table.
OUTPUTS = {LIMITED: "limited", MEMORY: "memory.parquet", DUCKDB: "duckdb.parquet"}
PACKAGES = ("gpupif", "numpy", "numba", "pandas", "pyarrow", "duckdb")
DONE = "done"
# What the figures are held to.
MOST_MEMORY, MOST_GROWTH, MOST_RATIO, RATIO_ROWS = 1.15, 1.15, 1.5, 10_000_000
# What is asked, the figure, and what it may be at most: None where it is for comparison.
Goal = tuple[str, float, float | None]


class Options(NamedTuple):
    """The options of the measurement; see `main`."""

    memory_limit: int
    cores: int
    beside: int
    runs: int
    duckdb: bool
    duckdb_seconds: float
    file_rows: int


def command(contender: str, table: Path, output: Path, temporary: Path, options: Options) -> list[str]:
    """Return the command that runs a contender. Without a limit gpupif scores in memory if the table fits."""
    if contender == DUCKDB:
        program = ["-m", "benchmarks.duckdb_files", str(table), str(output), "--temp", str(temporary)]
        return [sys.executable, *program, "--memory-limit", f"{options.memory_limit}B", "--threads", str(options.cores)]
    # -P: the gpupif that is installed, not the folder of that name in the place where it runs.
    score = ["-P", "-m", "gpupif", "score", str(table), "-o", str(output), "--json", "--device", "cpu"]
    limit = ["--memory-limit", f"{options.memory_limit}B", "--temp", str(temporary)] if contender == LIMITED else []
    return [sys.executable, *score, *limit]


def run_once(contender: str, table: Path, folder: Path, options: Options) -> dict[str, Any]:
    """Run a contender once, its scores in `folder` afterwards; if it fails, `state` of the figures says why."""
    output, temporary = folder / OUTPUTS[contender], folder / "temporary"
    remove(output)
    remove(temporary)
    temporary.mkdir()
    # What the run before has left to be written is not this one's.
    os.sync()
    most = options.duckdb_seconds if contender == DUCKDB else math.inf
    environment = {**os.environ, "GPUPIF_NUM_THREADS": str(options.cores)}
    arguments = command(contender, table, output, temporary, options)
    watched = watch(arguments, temporary, folder / "log", most, environment, ROOT)
    run = {
        "state": DONE if watched.status == 0 else _failure(watched.status, watched.errors, most),
        "seconds": watched.seconds,
        "peak_bytes": watched.peak_bytes,
        "temporary_bytes": watched.temporary_bytes,
    }
    if watched.status == 0:
        run["output_bytes"] = folder_bytes(output) if output.is_dir() else output.stat().st_size
        if contender != DUCKDB:
            stages = json.loads(watched.output)["stages"]
            run["stages"] = {stage: figures["seconds"] for stage, figures in stages.items()}
    return run


def _failure(status: int | None, errors: str, most: float) -> str:
    if status is None:
        return f"not finished in {most:,.0f} s"
    if "out of memory" in errors.lower():
        return "out of memory"
    return f"exit code {status}: {errors.strip().splitlines()[-1] if errors.strip() else 'no message'}"


def measure(rows: int, table: Path, folder: Path, options: Options, failed: set[str]) -> list[dict[str, Any]]:
    """Run all contenders on one table, in turns.

    failed: contenders that failed on a smaller table; those that fail on this one are added.
    """
    beside = rows <= options.beside
    contenders = [LIMITED, *([MEMORY] if beside else []), *([DUCKDB] if beside and options.duckdb else [])]
    results: dict[str, dict[str, Any]] = {
        contender: {"contender": contender, "rows": rows, "columns": COLUMNS, "runs": []}
        for contender in contenders
        if contender not in failed
    }
    for number in range(options.runs if beside else 1):
        for contender, result in results.items():
            if contender not in failed:
                run = run_once(contender, table, folder, options)
                result["runs"].append(run)
                print(f"{rows:>12,} {contender:18} {run['seconds']:9.2f} s  {_figures(run)}", flush=True)
                if run["state"] != DONE:
                    failed.add(contender)
        if number == 0:
            compare(results, folder)
    for contender, result in results.items():
        result |= best(result["runs"])
        remove(folder / OUTPUTS[contender])
    return list(results.values())


def _figures(run: dict[str, Any]) -> str:
    if run["state"] != DONE:
        return str(run["state"])
    stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in run.get("stages", {}).items())
    return f"{run['peak_bytes'] / 2**30:.2f} GiB, {run['temporary_bytes'] / 2**30:.2f} GiB on disk  {stages}"


def compare(results: dict[str, dict[str, Any]], folder: Path) -> None:
    """Check all complete scores against those that were made within the limit."""
    done = [contender for contender, result in results.items() if result["runs"][-1]["state"] == DONE]
    if LIMITED not in done:
        return
    ours = folder / OUTPUTS[LIMITED]
    if MEMORY in done:
        results[LIMITED]["same_bits"] = equal_bits(ours, folder / OUTPUTS[MEMORY])
    if DUCKDB in done:
        results[DUCKDB]["difference"] = check_difference(ours, folder / OUTPUTS[DUCKDB])


def best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Choose the fastest of several runs, or the first that failed; add the most memory and disk of any run."""
    wrong = [run for run in runs if run["state"] != DONE]
    chosen = wrong[0] if wrong else min(runs, key=lambda run: float(run["seconds"]))
    return chosen | {name: max(run[name] for run in runs) for name in ("peak_bytes", "temporary_bytes")}


def goals(results: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Judge the figures: return each goal with its value, the most that it may be, and whether it holds."""
    done = {(result["contender"], result["rows"]): result for result in results if result["state"] == DONE}
    found = [*_completed(results), *_memory_goals(done, limit), *_time_goals(done), *_check_goals(results)]
    return [
        {"goal": goal, "value": float(value), "most": most, "holds": most is None or bool(value <= most)}
        for goal, value, most in found
    ]


def _completed(results: list[dict[str, Any]]) -> Iterator[Goal]:
    failed = sum(result["contender"] != DUCKDB and result["state"] != DONE for result in results)
    yield "runs of gpupif that did not come to their end", failed, 0


def _memory_goals(done: dict[tuple[str, int], dict[str, Any]], limit: int) -> Iterator[Goal]:
    for (contender, rows), result in done.items():
        if contender == LIMITED:
            yield f"peak memory as a share of the limit at {rows:,} rows", result["peak_bytes"] / limit, MOST_MEMORY


def _time_goals(done: dict[tuple[str, int], dict[str, Any]]) -> Iterator[Goal]:
    for (contender, rows), result in done.items():
        smaller = done.get((LIMITED, rows // 10)) if rows % 10 == 0 else None
        if contender == LIMITED and smaller:
            growth = result["seconds"] / smaller["seconds"] / 10
            yield f"seconds at {rows:,} rows over 10 times those at {rows // 10:,}", growth, MOST_GROWTH
        memory = done.get((MEMORY, rows))
        if contender == LIMITED and memory:
            ratio = result["seconds"] / memory["seconds"]
            most = MOST_RATIO if rows == RATIO_ROWS else None
            yield f"seconds within the limit over those in memory at {rows:,} rows", ratio, most


def _check_goals(results: list[dict[str, Any]]) -> Iterator[Goal]:
    for result in results:
        rows = f"at {result['rows']:,} rows"
        if "same_bits" in result:
            yield f"bits differ between within the limit and in memory {rows}", not result["same_bits"], 0
        if "difference" in result:
            yield f"largest difference between DuckDB and gpupif {rows}", result["difference"], TOLERANCE
        if result["contender"] == MEMORY and "cut" in result.get("stages", ()):
            # It did not fit after all, so there is nothing to compare with.
            yield f"the run in memory went by way of the disk {rows}", 1, 0


def warm_up(folder: Path, options: Options) -> None:
    """Score a small table, so that its kernels are compiled; other kernels compile in the first of several runs."""
    table = make_table(WARM_UP_ROWS, folder / "warm-up", folder, WARM_UP_ROWS)
    for contender in (LIMITED, MEMORY):
        run = run_once(contender, table, folder, options)
        if run["state"] != DONE:
            sys.exit(f"{contender} failed on {WARM_UP_ROWS:,} rows: {run['state']}")


def run_all(sizes: list[int], place: Path | None, options: Options) -> list[dict[str, Any]]:
    """Measure every size, from the smallest on; tables and scores are deleted afterwards."""
    results = []
    failed: set[str] = set()
    with tempfile.TemporaryDirectory(dir=place, prefix="gpupif-scale-") as name:
        folder = Path(name)
        warm_up(folder, options)
        for rows in sizes:
            table = make_table(rows, folder / f"table-{rows}", folder, options.file_rows)
            results += measure(rows, table, folder, options, failed)
    return results


def remove(path: Path) -> None:
    """Delete a file or a folder, where it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _number(text: str) -> int:
    """Parse a number of rows such as 1e6."""
    number = float(text)
    if not number.is_integer() or number < 1:
        raise ValueError(text)
    return int(number)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = [1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000]
    parser.add_argument("--rows", type=_number, nargs="+", default=sizes, help="sizes of the census, such as 1e6 3e6")
    parser.add_argument("--memory-limit", default="2GiB", help="of gpupif and of DuckDB (default: 2GiB)")
    parser.add_argument("--cores", type=int, default=2, help="to run on (default: 2)")
    parser.add_argument(
        "--beside", type=_number, default=10**7, help="rows up to which all is run that is compared (default: 1e7)"
    )
    parser.add_argument("--runs", type=int, default=2, help="of each, as far as --beside (default: 2)")
    parser.add_argument("--no-duckdb", action="store_true", help="leave DuckDB out")
    parser.add_argument("--duckdb-seconds", type=float, default=600, help="stop DuckDB after so long (default: 600)")
    parser.add_argument("--file-rows", type=_number, default=5_000_000, help="rows of each file (default: 5e6)")
    parser.add_argument("--temp", type=Path, help="folder for tables, scores and temporary files")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for scale.json and scale.svg")
    parser.add_argument("--no-plot", action="store_true", help="do not draw scale.svg (needs matplotlib)")
    return parser.parse_args()


def main() -> None:
    """Run, check, print, write."""
    arguments = _arguments()
    # What is started does not outlive a run that is told to end, nor do its files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # All that is started from here on has no more cores either.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    limit = parse_size("--memory-limit", arguments.memory_limit)
    fields = vars(arguments) | {"memory_limit": limit, "duckdb": not arguments.no_duckdb}
    options = Options(**{name: fields[name] for name in Options._fields})
    results = run_all(sorted(set(arguments.rows)), arguments.temp, options)
    document = {
        **surroundings(PACKAGES),
        "options": options._asdict(),
        "results": results,
        "goals": goals(results, limit),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "scale.json").write_text(json.dumps(document, indent=2) + "\n")
    if not arguments.no_plot:
        draw_scale(document, arguments.out / "scale.svg")
    print(f"\n{scale_table(document)}\n")
    for goal in document["goals"]:
        most = "for comparison" if goal["most"] is None else f"at most {goal['most']:.4g}"
        print(f"{'' if goal['holds'] else 'MISSED':6} {goal['value']:10.3g}  ({most})  {goal['goal']}")
    sys.exit(not all(goal["holds"] for goal in document["goals"]))


if __name__ == "__main__":
    main()
