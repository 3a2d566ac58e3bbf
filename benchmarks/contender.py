"""Run one contender in a process of its own: `python -m benchmarks.contender JOB.json` prints one line of JSON."""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpupif.datasets import census

from .peers import PEERS, as_arrays

# Rows whose scores are compared between contenders; the sums of all rows are compared too.
SAMPLE = 100_000
WARM_UP_ROWS = 2_000
# A contender runs until it has had so many runs and as many seconds as the job says, or far too many seconds.
LEAST_RUNS, MOST_SECONDS = 3, 15.0


def make_table(kind: str, rows: int) -> pd.DataFrame:
    """Make a table: "census", "census60" (60 columns), or "census90" (one value covers 90 % of each column)."""
    frame = census(rows, columns=60 if kind == "census60" else 10)
    if kind == "census90":
        random = np.random.default_rng(0)
        for name in frame:
            frame[name] = frame[name].where(random.random(rows) < 0.1, frame[name].mode()[0])
    return frame


def gpupif_scores(frame: pd.DataFrame) -> Any:
    """Compute CIG and CSF with gpupif, and make the frames, so that making them is timed."""
    import gpupif

    with gpupif.config(device="cpu", progress=False):
        scores = gpupif.score(frame)
    return scores.cig, scores.csf


CONTENDERS: dict[str, tuple[Callable[[pd.DataFrame], Any], Callable[[Any], Any]]] = {
    "gpupif": (lambda frame: frame, gpupif_scores),
    **PEERS,
}


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Time a contender, frame in to scores out: its first run on the table in a new process, in which a small table
    was scored before, and the best of several; its memory; a check.
    """
    name, frame = job["contender"], make_table(job["table"], job["rows"])
    columns = list(frame.columns)
    prepare, score = CONTENDERS[name]
    score(prepare(frame.head(WARM_UP_ROWS)))
    table = prepare(frame)
    table_bytes = int(frame.memory_usage(deep=True).sum())
    before = _peak_memory()
    seconds: list[float] = []
    faults: list[int] = []
    result: Any = None
    while sum(seconds) < MOST_SECONDS and (len(seconds) < LEAST_RUNS or sum(seconds) < job["seconds"]):
        del result
        gc.collect()
        touched, started = _page_faults(), time.perf_counter()
        result = score(table)
        seconds.append(time.perf_counter() - started)
        faults.append(_page_faults() - touched)
    peak = _peak_memory()
    if name == "gpupif":
        scores = {"cig": result[0].to_numpy(), "csf": result[1].to_numpy()}
    else:
        scores = as_arrays(result, columns)
    rows = np.linspace(0, len(frame) - 1, min(SAMPLE, len(frame))).astype(np.int64)
    check = np.concatenate([np.concatenate([scores[m][rows], scores[m].sum(axis=0)[None]]) for m in ("cig", "csf")])
    np.save(job["check"], check)
    return {
        "contender": name,
        "table": job["table"],
        "rows": len(frame),
        "columns": len(columns),
        "first": seconds[0],
        "seconds": min(seconds),
        "runs": seconds,
        "page_faults": faults,
        "peak_bytes": peak,
        "peak_bytes_before": before,
        "table_bytes": table_bytes,
        "score_bytes": int(sum(scores[measure].nbytes for measure in ("cig", "csf"))),
    }


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _page_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


if __name__ == "__main__":
    print(json.dumps(run(json.loads(Path(sys.argv[1]).read_text()))))
