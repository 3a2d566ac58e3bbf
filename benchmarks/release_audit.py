"""Time of `gpupif.audit`: 10,000 queries over a million rows. Run `python -m benchmarks.release_audit`."""

from __future__ import annotations

import sys
import time

import numpy as np
import pandas as pd

import gpupif

GOAL = 10.0
CARDINALITIES = {"sex": 2, "decade": 10, "state": 50, "education": 10, "occupation": 100}


def make_table(rows: int) -> pd.DataFrame:
    """Return a table of independent uniform columns: nearly every row is alone in its class, the hardest case."""
    random = np.random.default_rng(1)
    columns = {name: random.integers(0, size, rows) for name, size in CARDINALITIES.items()}
    return pd.DataFrame(columns | {"salary": random.integers(0, 1000, rows)})


def make_queries(number: int) -> list[dict[str, str]]:
    """Return sums over different conditions on one to three columns each."""
    random = np.random.default_rng(2)
    conditions: dict[str, None] = {}
    while len(conditions) < number:
        names = sorted(random.choice(list(CARDINALITIES), random.integers(1, 4), replace=False))
        conditions[" and ".join(f"{name} = {random.integers(0, CARDINALITIES[name])}" for name in names)] = None
    return [{"name": f"q{n}", "kind": "sum", "column": "salary", "where": own} for n, own in enumerate(conditions)]


def main(number: int = 10_000, rows: int = 1_000_000) -> None:
    """Print the time of an audit, beside the goal."""
    table, queries = make_table(rows), make_queries(number)
    gpupif.audit(queries[:50], table[:1000])
    started = time.perf_counter()
    found = gpupif.audit(queries, table)
    seconds = time.perf_counter() - started
    print(f"{number:,} queries, {rows:,} rows, {found.atoms:,} groups: {seconds:.1f} s (goal {GOAL:.0f} s)")
    print(found.verdict()[0])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
