"""A night in which one file of many changed, beside a full run: `python -m benchmarks.nightly`.

The synthetic census in `--files` files, Parquet and CSV, scored by `gpupif nightly run` with gates and the summary
only, each run in a process of its own: in a state folder that is empty (full), and in one that has the state of the
last night, after one file was replaced by another one of as many rows (night). They run in turns. After each night
nothing else may differ from a full run on the same files: gates, summary and profile of the columns are compared, bit
for bit. Seconds from the start of the process to its end, the most memory of all its processes, the size of the state.
Files that were just written are in the kernel's cache when they are read. Writes benchmarks/results/nightly.json; exit
code 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from gpupif.datasets import census
from gpupif.utils.memory import parse_size

from .surroundings import RESULTS, surroundings
from .watch import folder_bytes, watch

ROOT = Path(__file__).parent.parent
PACKAGES = ("gpupif", "numpy", "numba", "pandas", "pyarrow")
FORMATS = ("parquet", "csv")
FULL, NIGHT = "full run", "one file changed"
# What a night may take of a full run, and of the memory that it was given.
MOST_SHARE, MOST_MEMORY = 0.25, 1.0
# Of an outcome, what has to be the same whether anything was kept or not.
SAME = ("rows", "distinct_rows", "columns", "gates", "summary", "risk")
CONFIGURATION = """
[input]
path = "table/*.{kind}"

[score]
measures = ["cig", "csf", "wcig"]

[run]
device = "cpu"
{memory}
[[gates]]
kind = "pif"
percentile = 95
max = 40

[[gates]]
kind = "mean"
measure = "cig"
column = "age"
max = 10

[[gates]]
kind = "rows"
min = 1

[tell]
json_file = "outcome.json"
"""


def write_file(file: Path, rows: int, seed: int) -> None:
    """Write a file of the census, Parquet or CSV."""
    table = pa.Table.from_pandas(census(rows, seed=seed), preserve_index=False)
    if file.suffix == ".csv":
        arrow_csv.write_csv(table, file)
    else:
        pq.write_table(table, file)


def make_table(folder: Path, kind: str, rows: int, files: int) -> list[Path]:
    """Write the files of a table, with equally many rows each, and one more file to replace one of them."""
    (folder / "table").mkdir(parents=True)
    paths = [folder / "table" / f"part-{number:05}.{kind}" for number in range(files)]
    for seed, path in enumerate([*paths, folder / f"other.{kind}"]):
        write_file(path, rows // files, seed)
    return paths


class Nights:
    """Nightly runs of one table. folder: with the configuration, and the table in it."""

    def __init__(self, folder: Path, kind: str, memory_limit: str | None) -> None:
        self.folder = folder
        self.file = folder / "risk.toml"
        memory = "" if memory_limit is None else f"memory_limit = {json.dumps(memory_limit)}\n"
        self.file.write_text(CONFIGURATION.format(kind=kind, memory=memory))

    def run(self, what: str, state: Path) -> dict[str, Any]:
        """Run gpupif once in a process of its own, and return its figures."""
        # What was written before is not this one's to bring to the disk.
        os.sync()
        # -P: the gpupif that is installed, not the folder of that name in the place where it runs.
        command = [sys.executable, "-P", "-m", "gpupif", "nightly", "run", str(self.file), "--quiet"]
        watched = watch([*command, "--set", f"run.state={state}"], state.parent, self.folder / "log", place=ROOT)
        if watched.status != 0:
            sys.exit(f"{what}: exit code {watched.status}: {watched.errors.strip()}")
        outcome = json.loads((self.folder / "outcome.json").read_text())
        run: dict[str, Any] = {"run": what, "seconds": watched.seconds, "peak_bytes": watched.peak_bytes}
        run |= {"state_bytes": folder_bytes(state), "stages": outcome["seconds"]}
        run |= {"read": len(outcome["changes"]["read"]), "same": {name: outcome[name] for name in SAME}}
        stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in run["stages"].items())
        print(f"{what:18} {run['seconds']:8.2f} s {run['peak_bytes'] / 2**30:6.2f} GiB  {stages}", flush=True)
        return run


def exchange(one: Path, other: Path) -> None:
    """Let two files change places."""
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def measure(folder: Path, kind: str, rows: int, files: int, turns: int, memory_limit: str | None) -> dict[str, Any]:
    """Run full runs and nights in turns on one table, and return their figures."""
    paths = make_table(folder, kind, rows, files)
    nights, states = Nights(folder, kind, memory_limit), folder / "states"
    states.mkdir()
    kept, fresh = states / "kept", states / "fresh"
    runs: dict[str, list[dict[str, Any]]] = {FULL: [nights.run("first run ever", kept)], NIGHT: []}
    same = True
    for turn in range(turns):
        exchange(paths[turn * 37 % files], folder / f"other.{kind}")
        runs[NIGHT].append(nights.run(NIGHT, kept))
        shutil.rmtree(fresh, ignore_errors=True)
        runs[FULL].append(nights.run(FULL, fresh))
        same &= _judged(runs[NIGHT][-1]["same"]) == _judged(runs[FULL][-1]["same"])
    for run in (*runs[FULL], *runs[NIGHT]):
        del run["same"]
    best = {what: min(run["seconds"] for run in several) for what, several in runs.items()}
    return {
        "format": kind,
        "rows": rows,
        "files": files,
        "memory_limit": memory_limit,
        "runs": runs,
        "best": best,
        "first": {what: several[0]["seconds"] for what, several in runs.items()},
        "share": best[NIGHT] / best[FULL],
        "peak_bytes": max(run["peak_bytes"] for several in runs.values() for run in several),
        "same_as_full": same,
        "files_read": [run["read"] for run in runs[NIGHT]],
    }


def _judged(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return an outcome without its comparison to the last one, and without times."""
    gates = [
        {name: fact for name, fact in gate.items() if name not in ("before", "change")} for gate in outcome["gates"]
    ]
    columns = [{name: fact for name, fact in column.items() if name != "new_values"} for column in outcome["columns"]]
    summary = {name: fact for name, fact in outcome["summary"].items() if name != "stages"}
    return outcome | {"gates": gates, "columns": columns, "summary": summary}


def goals(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Judge the figures: return each goal with its value, the most that it may be, and whether it holds."""
    found: list[tuple[str, float, float]] = []
    for result in results:
        where = f"{result['rows']:,} rows, {result['files']} files of {result['format']}"
        found.append((f"seconds of a night over those of a full run, {where}", result["share"], MOST_SHARE))
        found.append((f"nights that differ from a full run, {where}", not result["same_as_full"], 0))
        found.append((f"files read more than changed, {where}", max(result["files_read"]) - 1, 0))
        if result["memory_limit"] is not None:
            limit = parse_size("--memory-limit", result["memory_limit"])
            found.append((f"peak memory as a share of the limit, {where}", result["peak_bytes"] / limit, MOST_MEMORY))
    return [{"goal": goal, "value": float(value), "most": most, "holds": value <= most} for goal, value, most in found]


def lines(results: list[dict[str, Any]]) -> list[str]:
    """Format the results as a Markdown table."""
    heading = ["format", "rows", "files", "full run, s", "one file changed, s", "share", "most memory, GiB"]
    table = [f"| {' | '.join(heading)} |", "|---|" + "---:|" * (len(heading) - 1)]
    for result in results:
        figures = (result["best"][FULL], result["best"][NIGHT], result["share"], result["peak_bytes"] / 2**30)
        shown = " | ".join(f"{figure:.2f}" for figure in figures)
        table.append(f"| {result['format']} | {result['rows']:,} | {result['files']:,} | {shown} |")
    return table


def main() -> None:
    """Run, check, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e7, help="rows of the table (default: 1e7)")
    parser.add_argument("--files", type=int, default=100, help="that it is in (default: 100)")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS, help="of the files (default: both)")
    parser.add_argument("--turns", type=int, default=3, help="of a night and a full run (default: 3)")
    parser.add_argument("--memory-limit", help="of gpupif, such as 2GiB (default: none)")
    parser.add_argument("--temp", type=Path, help="folder for tables and states")
    parser.add_argument("--out", type=Path, default=RESULTS / "nightly.json", help="file for the results")
    arguments = parser.parse_args()
    # What is started does not outlive a run that is told to end, nor do its files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    results = []
    for kind in arguments.formats:
        with tempfile.TemporaryDirectory(dir=arguments.temp, prefix="gpupif-nightly-") as name:
            given = (int(arguments.rows), arguments.files, arguments.turns, arguments.memory_limit)
            results.append(measure(Path(name), kind, *given))
    document = {**surroundings(PACKAGES), "results": results, "goals": goals(results)}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(document, indent=2) + "\n")
    print("\n" + "\n".join(lines(results)) + "\n")
    for goal in document["goals"]:
        print(
            f"{'' if goal['holds'] else 'MISSED':6} {goal['value']:10.3g}  (at most {goal['most']:.4g})  {goal['goal']}"
        )
    sys.exit(not all(goal["holds"] for goal in document["goals"]))


if __name__ == "__main__":
    main()
