"""gpupif's side of `python -m benchmarks.sdcmicro`, in a process of its own: what sdcMicro's functions return.

`python -m benchmarks.as_sdcmicro JOB.json` prints one line of JSON, the seconds of each run, and writes what it
computed as R does: eight bytes a number, a file for each quantity.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import gpupif

from .sdcmicro_tables import PeerTable

# Sizes of classes that k-anonymity is violated by, and the c of recursive (c,l)-diversity.
SIZES = (2, 3, 5)
RECURSIVE_C = 2.0
# Classes of up to so many rows have their risk exactly in sdcMicro, whatever the method; and those whose exact risk it
# can compute: that overflows at some hundred rows.
FEW_ROWS, MOST_ROWS_EXACT = 2, 50
# Diversity is compared up to this l.
MOST_L = 4
LEAST_RUNS = 3
# The key of random treatments.
KEY = bytes(range(32))

Arrays = dict[str, npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Job:
    """The computation of a job, and how often it is repeated.

    work: a name of WORK. fraction: the sampling fraction of DIS-SUDA. A job is repeated at least three times and for
    `seconds` seconds, or until `most` seconds are over.
    """

    work: str
    table: PeerTable
    out: Path
    threads: int = 1
    seconds: float = 0.0
    most: float = 20.0
    fraction: float = 0.01


def frequencies(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `freqCalc` without weights: the rows that match each row's keys; a missing value matches all."""
    return {"fk": _of_rows(frame, "class_size", job)}


def weighted_frequencies(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `freqCalc` with weights: the rows that match each row's keys, and the people they stand for."""
    return {"fk": _of_rows(frame, "class_size", job), "Fk": _of_rows(frame, "class_size", job, weights=True)}


def individual_risk(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `indivRisk` of weighted frequencies, separately for classes of one or two rows and for others."""
    risk, few = _of_rows(frame, "individual_risk", job, weights=True), _of_rows(frame, "class_size", job) <= FEW_ROWS
    return {"risk_in_small_classes": np.where(few, risk, np.nan), "risk_in_others": np.where(few, np.nan, risk)}


def exact_individual_risk(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `indivRisk` with method "exact", except for classes so large that it may overflow."""
    risk = _of_rows(frame, "individual_risk", job, weights=True)
    return {"exact_risk": np.where(_of_rows(frame, "class_size", job) > MOST_ROWS_EXACT, np.nan, risk)}


def household_risk(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `measure_risk` with households: the risk that somebody of a row's household is found."""
    table = job.table
    risk = gpupif.models.household_risk(
        frame, list(table.keys), table.household, weights=table.weight, missing="wildcard"
    )
    return {"household_risk": risk.to_numpy()}


def log_linear_risk(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `modRisk` with all two-way interactions: tau1 and tau2, from its expected rows of each cell."""
    table = job.table
    found = gpupif.global_risk(frame, list(table.keys), weights=table.weight, interactions="two-way")
    return {"tau": np.array([found.tau1, found.tau2])}


def violations(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `kAnon_violations`: the number of rows in classes of fewer than 2, 3 and 5 rows."""
    sizes = _of_rows(frame, "class_size", job)
    return {"violations": np.array([(sizes < size).sum() for size in SIZES], np.float64)}


def l_diversity(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `ldiversity` of each row's class: distinct values, entropy l, highest l of recursive (2, l)-diversity."""
    recursive = [f"recursive_{size}" for size in range(2, MOST_L + 1)]
    sensitive = job.table.sensitive
    scores = gpupif.score(
        frame, ["distinct_values", "entropy", *recursive], columns=[sensitive], known=list(job.table.keys)
    )
    found = {measure: scores[measure][sensitive].to_numpy() for measure in scores.measures}
    highest = 1 + sum((found[measure] < RECURSIVE_C).astype(np.float64) for measure in recursive)
    return {
        "distinct_l": found["distinct_values"].astype(np.float64),
        "entropy_l": np.exp2(found["entropy"]),
        "recursive_l": highest,
    }


def suda(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `suda2`: scores, DIS-SUDA scores and contributions, of sets of all sizes."""
    keys = list(job.table.keys)
    found = gpupif.suda(frame, len(keys), keys, missing="ignore", sampling_fraction=job.fraction, contributions=True)
    return {
        "score": found.score.to_numpy(),
        "dis_score": found.dis_score.to_numpy(),
        "contributions": found.contributions.to_numpy().ravel(),
    }


def suppression(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `localSuppression` for each k: the suppressed cells, and the rows of smaller classes that are left."""
    return _suppressed_for_k(frame, list(job.table.keys), job)


def suppression_in_strata(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `localSuppression` within the values of the last key variable, which stays as it is."""
    return _suppressed_for_k(frame, list(job.table.keys[:-1]), job)


def _suppressed_for_k(frame: pd.DataFrame, columns: list[str], job: Job) -> Arrays:
    """Suppress cells of some columns for each k. A missing value matches every value, as in sdcMicro."""
    keys = list(job.table.keys)
    cells, small = [], []
    for k in SIZES:
        treatment = gpupif.treatments.Suppress(columns, k=k, quasi_identifiers=keys, missing="wildcard")
        table = gpupif.treat(frame[keys], treatment).table
        cells.append(int(table.isna().sum().sum() - frame[keys].isna().sum().sum()))
        small.append(int((_of_rows(table, "class_size", job) < k).sum()))
    return {"suppressed_cells": np.array(cells, np.float64), "small_classes": np.array(small, np.float64)}


def importance(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `localSuppression` with importance for each k: the suppressed cells by key variable.

    The first key variable is the most important one. Each has twice the importance of the next one.
    """
    keys = list(job.table.keys)
    weights: dict[Hashable, float] = {key: 2.0 ** (len(keys) - place) for place, key in enumerate(keys)}
    cells = []
    for k in SIZES:
        treatment = gpupif.treatments.Suppress(
            keys, k=k, quasi_identifiers=keys, missing="wildcard", importance=weights
        )
        table = gpupif.treat(frame[keys], treatment).table
        cells.append((table.isna().sum() - frame[keys].isna().sum()).to_numpy(np.float64))
    return {"cells_by_importance": np.concatenate(cells)}


def microaggregated(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `microaggregation` with method "mdav" and groups of three rows: the numbers, column by column."""
    keys = list(job.table.keys)
    table = gpupif.treat(frame[keys], gpupif.treatments.MicroaggregateTogether(keys, k=3)).table
    return {"means": table.to_numpy(np.float64).T.ravel()}


def continuous(frame: pd.DataFrame, job: Job) -> Arrays:
    """Compute `dRisk`, and `dUtility` with methods "IL1s", as a mean, and "eigen"."""
    found = _continuous(frame, frame[[f"after {key}" for key in job.table.keys]], job)
    return {
        "interval_risk": np.array([found.rows_within_deviations]),
        "il1s": np.array([found.il1s]),
        "eigenvalues": np.array([found.eigenvalues]),
    }


def random_masking(frame: pd.DataFrame, job: Job) -> Arrays:
    """Mask numbers at random as `addNoise(method="correlated")`, `rankSwap` and `shuffle` do.

    The result has for each the largest change of a correlation, the largest relative change of a standard deviation,
    and IL1s.
    """
    keys = list(job.table.keys)
    half = len(keys) // 2
    kept = []
    for treatment in (
        gpupif.treatments.CorrelatedNoise(keys, variance=0.1),
        gpupif.treatments.RankSwap(keys, reach=0.05),
        gpupif.treatments.Shuffle(keys[:half], given=keys[half:]),
    ):
        after = gpupif.treat(frame[keys], treatment, key=KEY).table
        correlations = (after.corr() - frame[keys].corr()).abs().to_numpy().max()
        deviations = (after.std() / frame[keys].std() - 1).abs().max()
        kept += [correlations, deviations, _continuous(frame, after, job).il1s]
    return {"kept": np.array(kept)}


def _continuous(frame: pd.DataFrame, after: pd.DataFrame, job: Job) -> gpupif.results.Continuous:
    """Compare the numbers of a table with masked numbers, without linkage."""
    keys = list(job.table.keys)
    after = after.set_axis(keys, axis=1)
    found = gpupif.compare(frame[keys], after, numbers=keys, quasi_identifiers=keys[:1], linkage=None).continuous
    assert found is not None
    return found


def _of_rows(frame: pd.DataFrame, measure: str, job: Job, *, weights: bool = False) -> npt.NDArray[np.float64]:
    """Score whole rows by one measure; any key variable gives the same scores."""
    keys = list(job.table.keys)
    weight = job.table.weight if weights else None
    scores = gpupif.score(frame, [measure], columns=keys[:1], known=keys, missing="wildcard", weights=weight)
    values: npt.NDArray[np.float64] = scores[measure].to_numpy()[:, 0].astype(np.float64)
    return values


# By the name of the function in sdcmicro.R that computes the same.
WORK: dict[str, Callable[[pd.DataFrame, Job], Arrays]] = {
    "frequencies": frequencies,
    "weighted_frequencies": weighted_frequencies,
    "individual_risk": individual_risk,
    "exact_individual_risk": exact_individual_risk,
    "household_risk": household_risk,
    "log_linear_risk": log_linear_risk,
    "violations": violations,
    "l_diversity": l_diversity,
    "suda": suda,
    "suppression": suppression,
    "suppression_in_strata": suppression_in_strata,
    "importance": importance,
    "microaggregated": microaggregated,
    "continuous": continuous,
    "random_masking": random_masking,
}
# Work whose key variables are numbers.
WORK_ON_NUMBERS = ("microaggregated", "continuous", "random_masking")


def run(job: Job) -> list[float]:
    """Run a job, write its numbers to files, and return the seconds of each run."""
    frame = job.table.read(categories=job.work not in WORK_ON_NUMBERS)
    work = WORK[job.work]
    taken: list[float] = []
    found: Arrays = {}
    with gpupif.config(device="cpu", threads=job.threads, progress=False):
        while sum(taken) < job.most and (len(taken) < LEAST_RUNS or sum(taken) < job.seconds):
            found = {}
            gc.collect()
            started = time.perf_counter()
            found = work(frame, job)
            taken.append(time.perf_counter() - started)
    for name, values in found.items():
        values.tofile(job.out / f"{name}.f64")
    return taken


def as_text(job: Job) -> str:
    """Return a job as JSON."""
    return json.dumps(asdict(job), default=str)


def of_text(text: str) -> Job:
    """Return the job that `as_text` wrote."""
    members: dict[str, Any] = json.loads(text)
    table = members["table"]
    table |= {"file": Path(table["file"]), "keys": tuple(table["keys"])}
    return Job(**members | {"table": PeerTable(**table), "out": Path(members["out"])})


if __name__ == "__main__":
    print(json.dumps({"seconds": run(of_text(Path(sys.argv[1]).read_text()))}))
