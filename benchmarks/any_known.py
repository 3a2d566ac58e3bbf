"""All attackers who know three other columns, beside one after the other: `python -m benchmarks.any_known`.

The synthetic census with 20 columns: 969 attackers for each, CIG and CSF of every cell against each of them, worst and
mean. The naive way is one `score` for each of the 1,140 sets of three columns, of the 17 others; it is timed for a few
of these, drawn by a seed, and taken times all. Their scores are checked: none is above the worst, and on the first rows
worst and mean are those of all attackers, one after the other. Writes benchmarks/results/any_known.json.

Seconds on the wall, and of all processors together, which say more on a machine that others work on too.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gpupif
from gpupif.datasets import census

from .surroundings import RESULTS, surroundings

MEASURES = ["cig", "csf"]
# All of these are compared with one attacker after the other.
CHECKED_ROWS, CHECKED_COLUMNS = 2_000, 6


def timed(run: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result of `run`, and the wall-clock and processor seconds that it took."""
    wall, busy = time.perf_counter(), time.process_time()
    result = run()
    return result, time.perf_counter() - wall, time.process_time() - busy


def naive(frame: pd.DataFrame, known: Sequence[str]) -> gpupif.Scores:
    """Score a frame against one attacker."""
    others = [name for name in frame.columns if name not in known]
    with gpupif.config(device="cpu", progress=False):
        return gpupif.score(frame, MEASURES, columns=others, known=list(known))


def any_known(frame: pd.DataFrame, known: int) -> Any:
    """Score a frame against all attackers who know `known` columns."""
    with gpupif.config(device="cpu", progress=False):
        return gpupif.score(frame, MEASURES, known=known)


def check_all(known: int) -> None:
    """Score a small table both ways; stop if worst or mean are not those of one attacker after the other."""
    frame = census(CHECKED_ROWS, columns=CHECKED_COLUMNS)
    found = any_known(frame, known)
    each: dict[tuple[str, str], list[Any]] = {(m, name): [] for m in MEASURES for name in frame.columns}
    for some in combinations(frame.columns, known):
        scores = naive(frame, some)
        for measure, name in each:
            if name in scores.columns:
                each[measure, name].append(scores[measure][name].to_numpy())
    for (measure, name), values in each.items():
        same = np.array_equal(np.max(values, axis=0), found[measure][name])
        if not same or not np.allclose(np.mean(values, axis=0), found.mean[measure][name], rtol=1e-12, atol=1e-13):
            raise SystemExit(f"{measure} of {name} is not that of one attacker after the other")


def measure(rows: int, columns: int, known: int, few: int) -> dict[str, Any]:
    """Time the scores against all attackers at once, and against a few of them one after the other."""
    frame = census(rows, columns=columns)
    scores, wall, busy = timed(partial(any_known, frame, known))
    sets = list(combinations(frame.columns, known))
    singles = []
    for some in random.Random(0).sample(sets, few):
        one, *seconds = timed(partial(naive, frame, some))
        singles.append(seconds)
        for name in MEASURES:
            if (one[name] > scores[name][one.columns]).any(axis=None):
                raise SystemExit(f"{name}: an attacker who knows {some} learns more than the worst")
    return {
        "rows": rows,
        "columns": columns,
        "known": known,
        "attackers of each column": math.comb(columns - 1, known),
        "seconds": wall,
        "processor seconds": busy,
        "cells a second, each attacker counted": rows * columns * math.comb(columns - 1, known) / wall,
        "one attacker, seconds": float(np.median([one for one, _ in singles])),
        "one attacker, processor seconds": float(np.median([one for _, one in singles])),
        "attackers timed": few,
        "all attackers one after the other, seconds, extrapolated": float(np.mean([a for a, _ in singles])) * len(sets),
        "the same, processor seconds": float(np.mean([b for _, b in singles])) * len(sets),
    }


def main() -> None:
    """Run, check, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000], help="of the census")
    parser.add_argument("--columns", type=int, default=20, help="of the census")
    parser.add_argument("--known", type=int, default=3, help="columns that the attackers know")
    parser.add_argument("--few", type=int, default=5, help="attackers to time one after the other")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for any_known.json")
    arguments = parser.parse_args()
    # Compiles, too.
    check_all(arguments.known)
    results = []
    for rows in arguments.rows:
        results.append(measure(rows, arguments.columns, arguments.known, arguments.few))
        print(json.dumps(results[-1], indent=2), flush=True)
    document = {**surroundings(("gpupif", "numpy", "numba", "pandas")), "results": results}
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "any_known.json").write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
