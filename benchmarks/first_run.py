"""The first command on a machine, which compiles, and the next: `python -m benchmarks.first_run`.

Each command of `gpupif` is run on the synthetic census with an empty folder for compiled kernels, and then again:
seconds from the start of the process to its end, and seconds of all processors. Beside them what every command takes to
start (`gpupif --version`, and a table that is missing), and Polars, DuckDB and pandas computing CIG and CSF from the
same file to a file (see `files`), which compile nothing. Writes benchmarks/results/first_run.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gpupif

from .files import OURS, ROOT
from .files import command as files_command
from .surroundings import RESULTS, surroundings
from .watch import watch

PACKAGES = ("gpupif", "numpy", "numba", "llvmlite", "pandas", "pyarrow", "polars", "duckdb")
PEERS = ("polars", "duckdb", "pandas")
QUASI_IDENTIFIERS, SENSITIVE = "age,sex,region", "income_band"


def commands(table: Path, folder: Path) -> dict[str, list[str]]:
    """Return the commands to run, by name: those of gpupif and those of its peers."""
    ours = {
        "version": ["--version"],
        "missing table": ["score", str(folder / "missing.parquet"), "-o", str(folder / "none.parquet")],
        "score": ["score", str(table), "-o", str(folder / "scores.parquet"), "--overwrite", "--device", "cpu"],
        "risk": ["risk", str(table), "--quasi-identifiers", QUASI_IDENTIFIERS, "--sensitive", SENSITIVE],
        "suda": ["suda", str(table)],
        "toxic": ["toxic", str(table)],
        "demo": ["demo", "--rows", "100000"],
    }
    # -P: the gpupif that is installed, not the folder of that name in the place where it runs.
    found = {f"{OURS} {name}": [sys.executable, "-P", "-m", "gpupif", *arguments] for name, arguments in ours.items()}
    return found | {peer: files_command(peer, table, folder / f"{peer}.parquet", folder) for peer in PEERS}


def run_once(command: list[str], folder: Path, cache: Path) -> dict[str, float]:
    """Run a command once; return its seconds on the clock and of all processors. Raise RuntimeError if it fails."""
    environment: Mapping[str, str] = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment = {name: value for name, value in environment.items() if name != "NUMBA_CACHE_DIR"}
    os.sync()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    watched = watch(command, folder, folder / "log", environment=environment, place=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if watched.status and "missing.parquet: no such file" not in watched.errors:
        raise RuntimeError(f"{' '.join(command)}: {watched.errors}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": watched.seconds, "processor_seconds": used}


def measure(rows: int, folder: Path, turns: int) -> list[dict[str, Any]]:
    """Time each command: the best of its first runs, each with an empty cache, and the best of the next runs."""
    table_folder, cache = folder / "table", folder / "cache"
    table_folder.mkdir()
    gpupif.datasets.census(rows).to_parquet(table_folder / "table.parquet", index=False)
    results = []
    for name, command in commands(table_folder / "table.parquet", folder).items():
        first, after = [], []
        for _ in range(turns):
            shutil.rmtree(cache, ignore_errors=True)
            first.append(run_once(command, folder, cache))
            after += [run_once(command, folder, cache) for _ in range(2)]
        result: dict[str, Any] = {"command": name, "rows": rows}
        for when, runs in (("first", first), ("next", after)):
            result[when] = {figure: min(run[figure] for run in runs) for figure in runs[0]}
        results.append(result)
        print(lines([result])[-1], flush=True)
    return results


def lines(results: list[dict[str, Any]]) -> list[str]:
    """Format the figures as a Markdown table."""
    told = ["| command | first | next | ratio | processors, first | next |", "|---|---:|---:|---:|---:|---:|"]
    for one in results:
        first, after = one["first"], one["next"]
        ratio = first["seconds"] / after["seconds"]
        figures = [f"{first['seconds']:.2f} s", f"{after['seconds']:.2f} s", f"{ratio:.1f}"]
        figures += [f"{run['processor_seconds']:.2f} s" for run in (first, after)]
        told.append(f"| {one['command']} | {' | '.join(figures)} |")
    return told


def main() -> None:
    """Measure, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e5, help="size of the census")
    parser.add_argument("--turns", type=int, default=3, help="first runs of each, and twice as many next ones")
    parser.add_argument("--temp", type=Path, help="folder for tables and results, deleted afterwards")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for first_run.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.temp, prefix="gpupif-first-run-") as name:
        results = measure(int(options.rows), Path(name), options.turns)
    options.out.mkdir(parents=True, exist_ok=True)
    document = {**surroundings(PACKAGES), "cores": len(os.sched_getaffinity(0)), "runs": results}
    (options.out / "first_run.json").write_text(json.dumps(document, indent=1))
    print("\n" + "\n".join(lines(results)))


if __name__ == "__main__":
    main()
