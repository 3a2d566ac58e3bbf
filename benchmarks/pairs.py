"""All pairs of columns counted, beside Polars' group-bys, and special uniques: `python -m benchmarks.pairs`, and with
`python -m benchmarks.engines --measures`.

The synthetic census with 10 columns, 45 pairs. Contenders take turns in one process, so that they meet the same
machine; the best run of each counts. The combinations that Polars counts are checked against gpupif's. Writes
benchmarks/results/pairs.json.

gpupif's `toxic_pairs` does more than count: the table is encoded, pairs are ranked and the rarest values found. Polars
has the table encoded already, labels as Enums, and groups eagerly, one pair after the other as a user would, or lazily,
all pairs in one `collect_all`.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import gpupif
from gpupif.datasets import census
from gpupif.engines.cpu.counting import SubsetCounter
from gpupif.marginals.coded_table import code_columns
from gpupif.marginals.request import CountRequest
from gpupif.rows.threads import Workers

from .peers import polars_table
from .surroundings import RESULTS, surroundings

WARM_UP_ROWS = 20_000


def counts_of_pairs(frame: pd.DataFrame) -> list[npt.NDArray[np.int64]]:
    """Count with gpupif, by pair of columns, the rows with each combination; each pair's counts are ascending."""
    with Workers() as workers:
        coded = code_columns(frame, CountRequest(), workers)
        counter = SubsetCounter(_pairs(len(frame.columns)), coded.cardinalities, coded.rows, workers)
        counter.add(coded.codes)
        return [np.sort(counter.combinations(place).counts) for place in range(len(counter.subsets))]


def polars_eager(table: Any) -> list[Any]:
    """Run one group-by after the other."""
    return [table.group_by(table.columns[a], table.columns[b]).len() for a, b in _pairs(table.width)]


def polars_lazy(table: Any) -> list[Any]:
    """Run all group-bys at once."""
    import polars as pl

    lazy = table.lazy()
    return pl.collect_all([lazy.group_by(table.columns[a], table.columns[b]).len() for a, b in _pairs(table.width)])


def _pairs(columns: int) -> list[tuple[int, int]]:
    return list(combinations(range(columns), 2))


def contenders(frame: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return the functions to time, by name."""
    table = polars_table(frame)
    with Workers() as workers:
        coded = code_columns(frame, CountRequest(), workers)

    def count(size: int) -> SubsetCounter:
        with Workers() as workers:
            subsets = list(combinations(range(len(coded.columns)), size))
            counter = SubsetCounter(subsets, coded.cardinalities, coded.rows, workers)
            counter.add(coded.codes)
            return counter

    return {
        "gpupif, pairs counted": lambda: count(2),
        "gpupif, triples counted": lambda: count(3),
        "gpupif.toxic_pairs": lambda: gpupif.toxic_pairs(frame),
        "gpupif.toxic_pairs, triples": lambda: gpupif.toxic_pairs(frame, 3),
        "gpupif.suda, max_size=2": lambda: gpupif.suda(frame, 2),
        "gpupif.suda, max_size=3": lambda: gpupif.suda(frame, 3),
        "Polars, pairs": lambda: polars_eager(table),
        "Polars, pairs, lazy": lambda: polars_lazy(table),
    }


def measure(frame: pd.DataFrame, runs: int) -> dict[str, list[float]]:
    """Time each run of each contender, in turns; stop if gpupif's counts differ from Polars'."""
    for warm in contenders(frame.head(WARM_UP_ROWS)).values():
        warm()
    timed = contenders(frame)
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(runs):
        for name, run in timed.items():
            gc.collect()
            started = time.perf_counter()
            with gpupif.config(progress=False):
                result = run()
            seconds[name].append(time.perf_counter() - started)
            del result
    for ours, theirs in zip(counts_of_pairs(frame), timed["Polars, pairs"](), strict=True):
        if not np.array_equal(ours, np.sort(theirs["len"].to_numpy())):
            raise SystemExit(f"gpupif and Polars count {theirs.columns[:2]} differently")
    return seconds


def goals(best: dict[str, float]) -> dict[str, float]:
    """Compute the figures that have goals."""
    return {
        "times faster than Polars, pairs counted": best["Polars, pairs"] / best["gpupif, pairs counted"],
        "times faster than Polars, lazily, pairs counted": best["Polars, pairs, lazy"] / best["gpupif, pairs counted"],
        "times faster than Polars, toxic_pairs as a whole": best["Polars, pairs"] / best["gpupif.toxic_pairs"],
    }


def measure_pairs(rows: int, runs: int) -> dict[str, Any]:
    """Run, check, print; results and goals."""
    seconds = measure(census(rows), runs)
    best = {name: min(each) for name, each in seconds.items()}
    print(f"census, {rows:,} rows x 10 columns, seconds, best and worst of {runs} runs:")
    for name, each in seconds.items():
        print(f"{name:28} {min(each):9.3f} {max(each):9.3f}")
    found = goals(best)
    for name, value in found.items():
        print(f"{name}: {value:.1f}")
    results = [{"contender": name, "rows": rows, "seconds": best[name], "runs": each} for name, each in seconds.items()]
    return {"results": results, "goals": found}


def main() -> None:
    """Run, check, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the census")
    parser.add_argument("--runs", type=int, default=5, help="of each contender")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for pairs.json")
    arguments = parser.parse_args()
    found = measure_pairs(arguments.rows, arguments.runs)
    document = {**surroundings(("gpupif", "polars", "numpy", "numba", "pandas")), **found}
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "pairs.json").write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
