"""From a file to a file of scores, Parquet or CSV: `python -m benchmarks.files`.

CIG and CSF of every cell of the synthetic census: `gpupif score TABLE -o SCORES --measures cig,csf`, and Polars, DuckDB
and pandas doing the same (see `frame_files`, `duckdb_files`), each in a process of its own, in turns; seconds from the
start of the process to its end. The first run of each is told beside its best. `gpupif` compiles nothing in them: a
table is scored before; it runs once more with one thread. Then, in one process, reading alone: the table to codes by
gpupif, and to Arrow by pyarrow; and writing alone: the same scores in memory, by `Scores.write`, with one thread too,
and by Polars. Scores are compared with each other. Writes benchmarks/results/files.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

import gpupif
from gpupif.encoding.encode import encode_table
from gpupif.frames.open import open_file
from gpupif.io.base import every_column
from gpupif.rows.threads import Workers

from .scale_tables import TOLERANCE, check_difference
from .surroundings import RESULTS, surroundings
from .watch import watch

ROOT = Path(__file__).parent.parent
PACKAGES = ("gpupif", "numpy", "numba", "pandas", "pyarrow", "polars", "duckdb")
OURS, ONE_THREAD = "gpupif", "gpupif, 1 thread"
CONTENDERS = (OURS, ONE_THREAD, "polars", "duckdb", "pandas")
FORMATS = ("parquet", "csv")
# CSV of so many rows is read as that of more is.
WARM_UP_ROWS = 100_000


def command(contender: str, table: Path, output: Path, temporary: Path) -> list[str]:
    """Return the command that runs a contender; the table has to be in a folder of its own."""
    if contender in (OURS, ONE_THREAD):
        # -P: the gpupif that is installed, not the folder of that name in the place where it runs.
        score = ["-P", "-m", "gpupif", "score", str(table), "-o", str(output), "--measures", "cig,csf"]
        return [sys.executable, *score, "--json", "--overwrite", "--device", "cpu"]
    if contender == "duckdb":
        program = ["benchmarks.duckdb_files", str(table.parent), str(output), "--temp", str(temporary)]
        most = ["--memory-limit", "64GiB", "--threads", str(len(os.sched_getaffinity(0)))]
        return [sys.executable, "-m", *program, *most]
    return [sys.executable, "-m", "benchmarks.frame_files", contender, str(table), str(output)]


def run_once(contender: str, table: Path, folder: Path, most_seconds: float) -> dict[str, Any]:
    """Run a contender once, and return its figures; its scores are in `folder` afterwards, in the table's format."""
    output = folder / f"{contender}{table.suffix}"
    environment = os.environ | ({"GPUPIF_NUM_THREADS": "1"} if contender == ONE_THREAD else {})
    # What the run before has left to be written is not this one's.
    os.sync()
    asked = command(contender, table, output, folder)
    watched = watch(asked, folder, folder / "log", most_seconds, environment, ROOT)
    if watched.status != 0:
        told = watched.errors.strip().splitlines()
        reason = f"more than {most_seconds:,.0f} s" if watched.status is None else (told or ["no message"])[-1]
        return {"state": reason, "seconds": watched.seconds}
    run = {"state": "done", "seconds": watched.seconds, "peak_bytes": watched.peak_bytes}
    run |= {"output_bytes": output.stat().st_size, "page_faults": watched.page_faults}
    run["processor_seconds"] = watched.processor_seconds
    if contender in (OURS, ONE_THREAD):
        stages = json.loads(watched.output)["stages"]
        run["stages"] = {stage: figures["seconds"] for stage, figures in stages.items()}
    return run


def measure(
    rows: int, table: Path, folder: Path, contenders: list[str], turns: int, most_seconds: float
) -> list[dict[str, Any]]:
    """Run all contenders on one table, in turns; a contender that fails takes no further turn."""
    runs: dict[str, list[dict[str, Any]]] = {contender: [] for contender in contenders}
    for _ in range(turns):
        for contender, before in runs.items():
            if not before or before[-1]["state"] == "done":
                before.append(run_once(contender, table, folder, most_seconds))
                print(f"{rows:>12,} {table.suffix[1:]:8} {contender:17} {_figures(before[-1])}", flush=True)
    results = []
    for contender, several in runs.items():
        done = [run for run in several if run["state"] == "done"]
        result = {"contender": contender, "format": table.suffix[1:], "rows": rows, "runs": several}
        result["state"] = several[-1]["state"]
        if done:
            result |= {"first": done[0]["seconds"], "best": min(run["seconds"] for run in done)}
            ours, theirs = (folder / f"{name}{table.suffix}" for name in (OURS, contender))
            if contender != OURS and ours.exists():
                result["difference"] = check_difference(ours, theirs)
        results.append(result)
    return results


def _make_table(folder: Path, rows: int, kind: str) -> Path:
    place = folder / f"{rows} {kind}"
    place.mkdir()
    table, file = gpupif.datasets.census(rows), place / f"table.{kind}"
    if kind == "csv":
        arrow_csv.write_csv(pa.Table.from_pandas(table, preserve_index=False), file)
    else:
        table.to_parquet(file, index=False)
    return file


def _figures(run: dict[str, Any]) -> str:
    if run["state"] != "done":
        return str(run["state"])
    stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in run.get("stages", {}).items())
    sizes = f"{run['peak_bytes'] / 2**30:.2f} GiB, {run['page_faults']:,} page faults"
    written = f"{run['output_bytes'] / 1e6:,.0f} MB written"
    return f"{run['seconds']:8.2f} s ({run['processor_seconds']:.1f} s of cores)  {sizes}, {written}  {stages}"


def measure_reading(rows: int, table: Path, turns: int) -> list[dict[str, Any]]:
    """Time the reading of a table: to codes by gpupif, and to Arrow by all of pyarrow's threads."""

    def encode() -> None:
        frame = open_file(table, every_column)
        columns = [frame.column(place) for place in range(len(frame.names))]
        with Workers() as workers:
            encode_table(frame.names, columns, frame.rows, "category", workers)

    read = partial(arrow_csv.read_csv if table.suffix == ".csv" else pq.read_table, table)
    return _timed(rows, table.suffix[1:], {f"{OURS}, to codes": encode, "pyarrow, to Arrow": read}, turns)


def measure_writing(rows: int, folder: Path, kind: str, turns: int) -> list[dict[str, Any]]:
    """Time the writing of the same scores from memory to a file: by gpupif, also with one thread, and by Polars."""
    import polars as pl

    file = folder / f"written.{kind}"
    with gpupif.config(device="cpu", progress=False):
        scores = gpupif.score(gpupif.datasets.census(rows))
        # A summary, which files have beside the scores, is made once.
        scores.summary()

    def write_alone() -> None:
        with gpupif.config(threads=1):
            scores.write(file)

    table: Any = pl.from_arrow(scores.to_arrow())
    ours = OURS if kind == "csv" else f"{OURS}, zstd"
    ways: dict[str, Callable[[], Any]] = {ours: partial(scores.write, file), f"{ours}, 1 thread": write_alone}
    if kind == "csv":
        ways["polars"] = partial(table.write_csv, file)
    else:
        ways |= {f"polars, {codec}": partial(table.write_parquet, file, compression=codec) for codec in ("lz4", "zstd")}
    return _timed(rows, kind, ways, turns, file)


def _timed(
    rows: int, kind: str, ways: dict[str, Callable[[], Any]], turns: int, file: Path | None = None
) -> list[dict[str, Any]]:
    """Time each way in turns; return its first and best seconds, and the size of the file that it writes."""
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    sizes = {}
    for _ in range(turns):
        for way, run in ways.items():
            os.sync()
            started = time.perf_counter()
            run()
            seconds[way].append(time.perf_counter() - started)
            sizes[way] = {} if file is None else {"output_bytes": file.stat().st_size}
    return [
        {"contender": way, "format": kind, "rows": rows, "first": times[0], "best": min(times), **sizes[way]}
        for way, times in seconds.items()
    ]


def lines(document: dict[str, Any]) -> list[str]:
    """Format the figures as Markdown tables."""
    best = {(one["contender"], one["format"], one["rows"]): one["best"] for one in document["files"] if "best" in one}
    told = ["| rows | | | first | best | times gpupif | peak memory | page faults |", "|---:|---|---|" + "---:|" * 5]
    for one in document["files"]:
        figures = [one["state"]] * 2 + [""] * 3
        if "best" in one:
            ratio = one["best"] / best.get((OURS, one["format"], one["rows"]), one["best"])
            first = one["runs"][0]
            figures = [f"{one['first']:.1f} s", f"{one['best']:.1f} s", f"{ratio:.1f}"]
            figures += [f"{first['peak_bytes'] / 2**30:.1f} GiB", f"{first['page_faults']:,}"]
        told.append(f"| {one['rows']:,} | {one['format']} | {one['contender']} | {' | '.join(figures)} |")
    for what in ("reading", "writing"):
        told += ["", f"| rows | | {what} alone | first | best | written |", "|---:|---|---|---:|---:|---:|"]
        for one in document[what]:
            size = f"{one['output_bytes'] / 1e6:,.0f} MB" if "output_bytes" in one else ""
            seconds = f"{one['first']:.2f} s | {one['best']:.2f} s"
            told.append(f"| {one['rows']:,} | {one['format']} | {one['contender']} | {seconds} | {size} |")
    return told


def main() -> None:
    """Measure, as the arguments say; end with exit code 1 if scores differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 3e6, 1e7], help="sizes of the census")
    parser.add_argument("--formats", nargs="+", default=list(FORMATS), choices=FORMATS, help="of table and scores")
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=CONTENDERS)
    parser.add_argument("--turns", type=int, default=3, help="runs of each")
    parser.add_argument("--most-seconds", type=float, default=600, help="that a run may take")
    parser.add_argument("--temp", type=Path, help="folder for tables and scores, deleted afterwards")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for files.json")
    options = parser.parse_args()
    document: dict[str, Any] = {**surroundings(PACKAGES), "files": [], "reading": [], "writing": []}
    with tempfile.TemporaryDirectory(dir=options.temp, prefix="gpupif-files-") as name:
        for kind in options.formats:
            warm = _make_table(Path(name), WARM_UP_ROWS, kind)
            run_once(OURS, warm, Path(name), options.most_seconds)
        for rows, kind in product(map(int, options.rows), options.formats):
            folder = Path(name) / f"of {rows} {kind}"
            folder.mkdir()
            table = _make_table(folder, rows, kind)
            document["files"] += measure(rows, table, folder, options.contenders, options.turns, options.most_seconds)
            document["reading"] += measure_reading(rows, table, options.turns)
            document["writing"] += measure_writing(rows, folder, kind, options.turns)
            shutil.rmtree(folder)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "files.json").write_text(json.dumps(document, indent=1))
    print("\n".join(lines(document)))
    if any(not one.get("difference", 0.0) <= TOLERANCE for one in document["files"]):
        sys.exit("benchmarks.files: scores differ by more than they may.")


if __name__ == "__main__":
    main()
