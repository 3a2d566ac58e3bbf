"""gpupif beside piflib, pandas, Polars and DuckDB: `python -m benchmarks.engines`.

CIG and CSF of every cell of the synthetic census, float64, frame in to scores out, encoding counted; each contender in
a process of its own, one after another, all results checked against each other. Writes benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from gpupif.datasets import census

from .draw import draw_times, print_results
from .measures import measure
from .pairs import measure_pairs
from .surroundings import RESULTS, surroundings

PEERS = ("pandas", "polars", "duckdb")
TOLERANCE = 1e-9
GIB = 2**30
# Of each contender in counting pairs.
PAIR_RUNS = 3


def plan(sizes: list[int], small: int, contenders: list[str]) -> list[dict[str, Any]]:
    """List the jobs: every contender on every size, piflib on the small one, and gpupif on the harder tables."""
    jobs = [
        {"contender": contender, "table": "census", "rows": rows}
        for rows in sorted({small, *sizes})
        for contender in contenders
        if contender != "piflib" or rows <= small
    ]
    middle = min(sizes)
    return jobs + [{"contender": "gpupif", "table": table, "rows": middle} for table in ("census60", "census90")]


def run_job(job: dict[str, Any], folder: Path, seconds: float) -> dict[str, Any]:
    """Run one job for at least so many seconds in a process of its own; its check is in `folder` afterwards."""
    file = folder / "job.json"
    check = folder / f"{job['table']}-{job['rows']}-{job['contender']}.npy"
    file.write_text(json.dumps({"check": str(check), "seconds": seconds, **job}))
    command = [sys.executable, "-m", "benchmarks.contender", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{job['contender']} failed on {job['rows']:,} rows of {job['table']}:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(results: list[dict[str, Any]], folder: Path) -> float:
    """Return the largest difference, relative beyond 1, between gpupif and a peer; stop above the tolerance."""
    largest = 0.0
    for result in results:
        pattern = f"{result['table']}-{result['rows']}"
        if result["contender"] == "gpupif" or not (folder / f"{pattern}-gpupif.npy").exists():
            continue
        ours, theirs = (np.load(folder / f"{pattern}-{name}.npy") for name in ("gpupif", result["contender"]))
        difference = float((np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))).max())
        if not difference <= TOLERANCE:
            sys.exit(f"{result['contender']} differs from gpupif by {difference} on {pattern}")
        largest = max(largest, difference)
    return largest


def first_runs(folder: Path) -> dict[str, float]:
    """Time the command line on 30,000 rows of CSV: the first run ever on a machine, the next, help, and the import."""
    table = folder / "table.csv"
    census(30_000, columns=9).to_csv(table, index=False)
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    program = "from gpupif.cli.main import main; main()"
    seconds = {}
    for name, arguments in {
        "first": ["score", str(table), "-o", str(folder / "s.parquet")],
        "next": ["score", str(table), "-o", str(folder / "s.parquet"), "--overwrite"],
        "help": ["--help"],
        "import": None,
    }.items():
        command = [sys.executable, "-P", "-c", *(["import gpupif"] if arguments is None else [program, *arguments])]
        started = time.perf_counter()
        subprocess.run(command, env=environment, capture_output=True, check=True)
        seconds[name] = time.perf_counter() - started
    return seconds


def goals(results: list[dict[str, Any]], first: dict[str, float]) -> dict[str, float]:
    """Compute the figures that have goals (see docs/explanation/benchmarks.md, How fast)."""
    seconds = {(r["contender"], r["table"], r["rows"]): r["seconds"] for r in results}
    figures: dict[str, float] = {}
    for (contender, table, rows), own in seconds.items():
        rivals = [seconds[peer, table, rows] for peer in PEERS if (peer, table, rows) in seconds]
        if contender == "packed":
            figures[f"times faster than keys packed by hand in Polars at {rows:,} rows"] = (
                own / seconds["gpupif", table, rows]
            )
        if contender == "gpupif" and rivals:
            figures[f"times faster than the fastest of pandas, Polars, DuckDB at {rows:,} rows"] = min(rivals) / own
        if contender == "piflib":
            figures[f"times faster than piflib at {rows:,} rows"] = own / seconds["gpupif", table, rows]
    ours = {
        rows: own for (contender, table, rows), own in seconds.items() if (contender, table) == ("gpupif", "census")
    }
    sizes = sorted(ours)
    if len(sizes) > 1:
        figures[f"cost of {sizes[-1]:,} rows over {sizes[-2]:,}"] = ours[sizes[-1]] / ours[sizes[-2]]
    for result in results:
        base = ours.get(result["rows"])
        if result["table"] == "census60" and base:
            figures["cost of a cell of 60 columns over one of 10"] = result["seconds"] / base / 6
        if result["table"] == "census90" and base:
            figures["cost with one value covering 90 % of each column over the usual"] = result["seconds"] / base
        if result["contender"] == "gpupif" and result["rows"] == sizes[-1] and result["table"] == "census":
            extra = result["peak_bytes"] - result["table_bytes"] - result["score_bytes"]
            figures[f"GiB at most beside table and scores at {sizes[-1]:,} rows"] = extra / GIB
    return figures | {f"seconds, {name}": value for name, value in first.items()}


def main() -> None:
    """Run, check, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000], help="sizes of the census")
    parser.add_argument("--small", type=int, default=100_000, help="the size that piflib can take")
    parser.add_argument("--contenders", nargs="+", default=["gpupif", *PEERS, "packed", "piflib"])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for engines.json and engines.svg")
    parser.add_argument("--seconds", type=float, default=3.0, help="run each contender at least so long")
    parser.add_argument("--no-plot", action="store_true", help="do not draw engines.svg (needs matplotlib)")
    parser.add_argument("--measures", action="store_true", help="instead: disclosure measures, and all of cells")
    parser.add_argument("--pycanon", metavar="PYTHON", help="with --measures: an interpreter that has pyCANON")
    arguments = parser.parse_args()
    if arguments.measures:
        rows = min(arguments.rows)
        found = measure(rows, arguments.small, arguments.seconds, arguments.pycanon)
        pairs = measure_pairs(rows, PAIR_RUNS)
        document = {
            **surroundings(("gpupif", "pandas", "polars", "numpy", "numba", "pyarrow")),
            "results": found["results"] + pairs["results"],
            "goals": found["goals"] | pairs["goals"],
        }
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "measures.json").write_text(json.dumps(document, indent=2) + "\n")
        return
    jobs = plan(arguments.rows, arguments.small, arguments.contenders)
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for job in jobs:
            results.append(run_job(job, folder, arguments.seconds))
            print(
                f"{job['table']:9} {job['rows']:>12,} {job['contender']:8} {results[-1]['seconds']:9.3f} s", flush=True
            )
        difference = compare(results, folder)
        first = first_runs(folder)
    document = {
        **surroundings(("gpupif", "pandas", "polars", "duckdb", "numpy", "numba", "pyarrow")),
        "largest_difference": difference,
        "results": results,
        "goals": goals(results, first),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "engines.json").write_text(json.dumps(document, indent=2) + "\n")
    if not arguments.no_plot:
        draw_times(document, arguments.out / "engines.svg")
    print_results(document)


if __name__ == "__main__":
    main()
