"""Disclosure measures beside Polars and pyCANON, all measures beside CIG and CSF: `benchmarks.engines --measures`.

k, distinct l and t of an occupation behind five quasi-identifiers of the synthetic census, frame in to figures out,
encoding counted; then every measure of cells in one call, and those of rows with them, against CIG and CSF alone. Each
contender in a process of its own, one after another, all figures checked against each other. pyCANON runs in an
interpreter that is named with --pycanon, for it pins old versions of what gpupif needs.

Polars as its best user would write it: distinct rows by count, grouped again; of 1 M rows (2 cores) streaming took
0.84 s, in memory 1.04 s. "packed" has the codes packed by hand into one integer, which gpupif's own idea is: 0.55 s.
"""

from __future__ import annotations

import gc
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from gpupif.datasets import census
from gpupif.measures import MEASURES

from .peers import polars_table

QUASI_IDENTIFIERS = ["region", "age", "sex", "marital_status", "education"]
SENSITIVE = "occupation"
CANON_ROWS = 10_000
LEAST_RUNS, ROUNDS = 3, 3
WARM_UP_ROWS = 2_000
TOLERANCE = 1e-9
CANON = Path(__file__).with_name("pycanon_run.py")
Figures = tuple[int, int, float]


def gpupif_figures(frame: pd.DataFrame) -> Figures:
    """Compute k, l and t in one call of gpupif, on the CPU."""
    import gpupif

    models = ["k", "distinct_l", "t"]
    with gpupif.config(device="cpu", progress=False):
        found = gpupif.risk(frame, QUASI_IDENTIFIERS, SENSITIVE, models=models, groups=0).worst
    return int(found["k"]), int(found["distinct_l"]), found["t"]


def polars_figures(table: Any) -> Figures:
    """Group by all columns, then by the quasi-identifiers, in the streaming engine of Polars."""
    import polars as pl

    cells = table.lazy().group_by([*QUASI_IDENTIFIERS, SENSITIVE]).agg(_c=pl.len().cast(pl.Float64))
    prior = pl.col("_c").sum().over(SENSITIVE) / table.height
    return _of_cells(cells.with_columns(_p=prior).group_by(QUASI_IDENTIFIERS))


def packed_figures(table: Any) -> Figures:
    """Compute the figures of `polars_figures` from codes that are packed by hand into one integer."""
    import polars as pl

    names = [*QUASI_IDENTIFIERS, SENSITIVE]
    codes = {
        name: (column.to_physical() if column.dtype == pl.Enum else column.rank("dense") - 1).cast(pl.Int64)
        for name, column in zip(names, table.select(names).get_columns(), strict=True)
    }
    cardinalities = [int(codes[name].max()) + 1 for name in names]
    scales = [math.prod(cardinalities[place + 1 :]) for place in range(len(names))]
    key = pl.sum_horizontal(pl.col(name) * scale for name, scale in zip(names, scales, strict=True))
    cells = pl.DataFrame(codes).select(_k=key).lazy().group_by("_k").agg(_c=pl.len().cast(pl.Float64))
    prior = pl.col("_c").sum().over(pl.col("_k") % cardinalities[-1]) / table.height
    return _of_cells(cells.with_columns(_p=prior, _g=pl.col("_k") // cardinalities[-1]).group_by("_g"))


def _of_cells(classes: Any) -> Figures:
    """Compute k, l and t of cells grouped into classes; in t, absent values add 1 less the priors of present ones."""
    import polars as pl

    count, prior = pl.col("_c"), pl.col("_p")
    moved = ((count / count.sum() - prior).abs() - prior).sum()
    found = classes.agg(_k=count.sum(), _l=pl.len(), _t=moved)
    least = found.select(pl.col("_k").min(), pl.col("_l").min(), (pl.col("_t").max() + 1) / 2)
    k, distinct, t = least.collect(engine="streaming").row(0)
    return int(k), int(distinct), float(t)


def score_cells(measures: list[str]) -> Callable[[pd.DataFrame], Any]:
    """Return a function that scores all cells of a frame by these measures, on the CPU."""

    def run(frame: pd.DataFrame) -> Any:
        import gpupif

        with gpupif.config(device="cpu", progress=False):
            return gpupif.score(frame, measures)

    return run


def _as_it_is(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


# Class size, re-identification risk and uniqueness are of whole rows.
OF_CELLS = [name for name, measure in MEASURES.items() if not measure.is_row_measure]
# Name to: how the table gets into the library (not timed), and what is timed.
CONTENDERS: dict[str, tuple[Callable[[pd.DataFrame], Any], Callable[[Any], Any]]] = {
    "gpupif": (_as_it_is, gpupif_figures),
    "polars": (polars_table, polars_figures),
    "packed": (polars_table, packed_figures),
    "two measures": (_as_it_is, score_cells(["cig", "csf"])),
    "all measures": (_as_it_is, score_cells(OF_CELLS)),
    "with those of rows": (_as_it_is, score_cells(list(MEASURES))),
}


def run(name: str, rows: int, seconds: float) -> dict[str, Any]:
    """Time a contender for at least so many seconds: the best of the runs after a warm-up."""
    frame = census(rows)
    prepare, work = CONTENDERS[name]
    work(prepare(frame.head(WARM_UP_ROWS)))
    table = prepare(frame)
    times: list[float] = []
    while len(times) < LEAST_RUNS or sum(times) < seconds:
        result = None
        gc.collect()
        started = time.perf_counter()
        result = work(table)
        times.append(time.perf_counter() - started)
    figures = result if isinstance(result, tuple) else None
    return {"contender": name, "rows": rows, "seconds": min(times), "figures": figures}


def run_alone(name: str, rows: int, seconds: float) -> dict[str, Any]:
    """Call `run` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.measures", name, str(rows), str(seconds)]
    return _result(name, subprocess.run(command, capture_output=True, text=True, check=False))


def run_pycanon(interpreter: str, rows: int) -> dict[str, Any]:
    """Time pyCANON once, in its own interpreter, on a table from a CSV file."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        census(rows)[[*QUASI_IDENTIFIERS, SENSITIVE]].to_csv(table, index=False)
        command = [interpreter, str(CANON), str(table), SENSITIVE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {"contender": "pycanon", "rows": rows, **_result("pycanon", done)}


def _result(name: str, done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    if done.returncode != 0:
        sys.exit(f"{name} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def check(results: list[dict[str, Any]]) -> None:
    """Stop if contenders differ in k, l or t of the same table."""
    ours = {one["rows"]: one["figures"] for one in results if one["contender"] == "gpupif"}
    for one in results:
        if one["figures"] is not None and not all(
            math.isclose(a, b, rel_tol=TOLERANCE) for a, b in zip(one["figures"], ours[one["rows"]], strict=True)
        ):
            sys.exit(f"{one['contender']} differs from gpupif: {one['figures']}, {ours[one['rows']]}")


def goals(results: list[dict[str, Any]]) -> dict[str, float]:
    """Compute the figures that have goals."""
    seconds = {(one["contender"], one["rows"]): one["seconds"] for one in results}
    figures = {
        f"k, l and t: times faster than {name} at {rows:,} rows": taken / seconds["gpupif", rows]
        for (name, rows), taken in seconds.items()
        if name in ("polars", "packed", "pycanon")
    }
    for (name, rows), taken in seconds.items():
        if name == "all measures":
            what = f"cost of {len(OF_CELLS)} measures of cells"
        elif name == "with those of rows":
            what = f"cost of these and {len(MEASURES) - len(OF_CELLS)} of rows"
        else:
            continue
        figures[f"{what} over CIG and CSF at {rows:,} rows"] = taken / seconds["two measures", rows]
    return figures


def measure(rows: int, small: int, seconds: float, pycanon: str | None) -> dict[str, Any]:
    """Run all, print as they come, check; results and goals. small: the most rows for pyCANON."""
    jobs = [(name, rows) for name in CONTENDERS]
    few = min(small, CANON_ROWS, rows)
    if pycanon is not None and few < rows:
        jobs.append(("gpupif", few))
    # In turns, so that a machine that is slow for a while is slow for all of them.
    rounds = [[run_alone(name, number, seconds / ROUNDS) for name, number in jobs] for _ in range(ROUNDS)]
    results = [min(several, key=lambda one: one["seconds"]) for several in zip(*rounds, strict=True)]
    for one in results:
        _show(one)
    if pycanon is None:
        print("pyCANON is left out: name an interpreter that has it with --pycanon (pip install 'gpupif[peers]').")
    else:
        results.append(run_pycanon(pycanon, few))
        _show(results[-1])
    check(results)
    found = goals(results)
    for name, value in found.items():
        print(f"{name}: {value:.2f}")
    return {"results": results, "goals": found}


def _show(result: dict[str, Any]) -> None:
    print(f"{result['rows']:>12,} {result['contender']:12} {result['seconds']:9.3f} s", flush=True)


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
