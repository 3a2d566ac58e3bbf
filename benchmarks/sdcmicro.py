"""gpupif beside sdcMicro: `python -m benchmarks.sdcmicro`, where R has sdcMicro.

Frequency counts, k-anonymity, l-diversity, individual risk, SUDA and local suppression of the tables that sdcMicro
ships and of generated ones, with and without missing values: how far the numbers of the two differ, and how long each
takes. Likewise microaggregation by MDAV, and disclosure risk and information loss of numbers. What masking at random
keeps, and suppression with importance, stand side by side. gpupif may not suppress more cells than sdcMicro. Both read
the same CSV file, in a process of its own each, in turns, with as many threads; what is timed is the call on a table in
memory. Writes sdcmicro.json to benchmarks/results/, and ends with 1 where numbers differ that should not.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from .as_sdcmicro import WORK_ON_NUMBERS, Job, as_text
from .sdcmicro_tables import (
    FREE1_KEYS,
    PeerTable,
    equally_weighted,
    generated_census,
    generated_uniform,
    masked_tables,
    shipped_tables,
    with_missing,
)
from .surroundings import RESULTS, surroundings

SCRIPT = Path(__file__).with_name("sdcmicro.R")
HOW_TO_INSTALL = (
    "docs/explanation/benchmarks.md says how to install both on Debian (Beside sdcMicro); a library of packages "
    "elsewhere is named by the environment variable R_LIBS."
)
# What sdcmicro.R ends with where packages are missing.
PACKAGES_MISSING = 3
# How much higher sdcMicro's individual risk may be by default, where a class has three rows or more.
APPROXIMATION = 0.042
# How far a quantity may differ, relative to its size. gpupif rounds weights to multiples of less than 2^-60 of their
# sum, 4e-11 of the smallest weight of a million; sdcMicro keeps the sampling fraction and DIS in four bytes.
TOLERANCES = {
    "fk": 0.0,
    "Fk": 1e-10,
    "risk_in_small_classes": 1e-10,
    "risk_in_others": APPROXIMATION,
    "exact_risk": 1e-6,
    "household_risk": APPROXIMATION,
    "tau": 1e-6,
    "violations": 0.0,
    "distinct_l": 0.0,
    "entropy_l": 1e-6,
    "recursive_l": 0.0,
    "score": 1e-12,
    "dis_score": 1e-6,
    "contributions": 1e-12,
    "suppressed_cells": 0.0,
    "small_classes": 0.0,
    "means": 1e-10,
    "interval_risk": 0.0,
    "il1s": 1e-12,
    "eigenvalues": 1e-6,
}
# Quantities of which gpupif may have less than sdcMicro: only what it has more differs.
NEVER_MORE = "suppressed_cells"
# Quantities that are reported side by side, and not compared: they are drawn at random, or rest on another objective.
SIDE_BY_SIDE = ("kept", "cells_by_importance")
# Local suppression is compared for these shipped tables; also within strata, for tables whose strata have enough rows.
SUPPRESSED = ("testdata", "testdata2", "francdat")
IN_STRATA = ("testdata", "testdata2")
# Of tables with twins (see `PeerTable.has_twins`) sdcMicro gives what larger sets contribute to one of the two columns.
NOT_OF_TWINS = "contributions"
# Of this work sdcMicro's function does more than what is compared.
NOT_TIMED = (
    *("violations", "exact_individual_risk", "suppression", "suppression_in_strata", "importance"),
    *WORK_ON_NUMBERS,
)
# Seconds after which a job is not run again in its process; after a first run of more than SLOW, in no process.
MOST_SECONDS, ONCE, SLOW = 20.0, 1e-9, 15.0

Arrays = dict[str, npt.NDArray[np.float64]]


class SdcMicroFailedError(RuntimeError):
    """Rscript ended with an error; its message says all that R said."""


@dataclass(frozen=True)
class SdcMicro:
    """An installed sdcMicro: the command that runs it, and the versions of R and of its packages."""

    rscript: str
    versions: Mapping[str, str]

    @classmethod
    def find(cls, rscript: str) -> SdcMicro:
        """Find the sdcMicro of this Rscript; if R or sdcMicro is missing, stop and say how to install it."""
        command = shutil.which(rscript)
        if command is None:
            sys.exit(
                f"benchmarks.sdcmicro: R is missing: {rscript} is no command here (--rscript names another). "
                f"{HOW_TO_INSTALL}"
            )
        done = subprocess.run([command, str(SCRIPT), "work=versions"], capture_output=True, text=True, check=False)
        if done.returncode == PACKAGES_MISSING:
            packages = done.stdout.split()[1:]
            sys.exit(f"benchmarks.sdcmicro: {command} has no package {' and no '.join(packages)}. {HOW_TO_INSTALL}")
        if done.returncode != 0:
            sys.exit(f"benchmarks.sdcmicro: {command} failed:\n{done.stderr}")
        return cls(command, dict(line.split() for line in done.stdout.splitlines()))

    def write_shipped(self, folder: Path) -> dict[str, PeerTable]:
        """Write sdcMicro's own tables to the folder, and return them by name."""
        self._run({"work": "shipped", "out": str(folder)}, None)
        return shipped_tables(folder)

    def run(self, job: Job, limit: float) -> list[float] | None:
        """Run the job in R; return the seconds of each run, None if it has not ended within the limit."""
        table = job.table
        arguments = {
            "work": job.work,
            "table": str(table.file),
            "keys": ",".join(table.keys),
            "out": str(job.out),
            "threads": str(job.threads),
            "seconds": str(job.seconds),
            "most": str(job.most),
            "fraction": str(job.fraction),
        }
        columns = {"weight": table.weight, "household": table.household, "sensitive": table.sensitive}
        arguments |= {name: column for name, column in columns.items() if column is not None}
        try:
            return seconds_of(self._run(arguments, limit))
        except subprocess.TimeoutExpired:
            return None

    def _run(self, arguments: Mapping[str, str], limit: float | None) -> str:
        command = [self.rscript, str(SCRIPT), *(f"{name}={value}" for name, value in arguments.items())]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
        if done.returncode != 0:
            raise SdcMicroFailedError(f"{arguments['work']} of {arguments.get('table')}:\n{done.stderr}")
        return done.stdout


def seconds_of(output: str) -> list[float]:
    """Parse the seconds of each run from the last line that sdcmicro.R printed."""
    name, *seconds = output.splitlines()[-1].split()
    if name != "seconds" or not seconds:
        raise SdcMicroFailedError(f"expected the seconds of each run in the last line, got:\n{output}")
    return [float(each) for each in seconds]


def run_gpupif(job: Job, limit: float) -> list[float] | None:
    """Run the job with gpupif in a process of its own; return the seconds of each run, None if it takes too long."""
    file = job.out.with_suffix(".json")
    file.write_text(as_text(job))
    command = [sys.executable, "-m", "benchmarks.as_sdcmicro", str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        sys.exit(f"benchmarks.sdcmicro: gpupif failed at {job.work} of {job.table.name}:\n{done.stderr}")
    seconds: list[float] = json.loads(done.stdout.splitlines()[-1])["seconds"]
    return seconds


def largest_difference(ours: npt.NDArray[np.float64], theirs: npt.NDArray[np.float64]) -> float:
    """Return the largest difference relative to the larger of two numbers; infinite if their shapes differ."""
    if ours.shape != theirs.shape:
        return np.inf
    both_none = np.isnan(ours) & np.isnan(theirs)
    size = np.maximum(np.abs(ours), np.abs(theirs))
    difference = np.divide(np.abs(ours - theirs), size, out=np.zeros(len(size)), where=(size != 0) & ~both_none)
    return float(np.where(np.isnan(difference), np.inf, difference).max(initial=0.0))


def compare(job: Job, sdcmicro: SdcMicro, folder: Path, rounds: int, limit: float) -> dict[str, Any]:
    """Run both sides of a job in turns; return the seconds of the first and the best run, and the differences."""
    sides = {"sdcMicro": sdcmicro.run, "gpupif": run_gpupif}
    jobs = {side: replace(job, out=folder / side) for side in sides}
    for own in jobs.values():
        shutil.rmtree(own.out, ignore_errors=True)
        own.out.mkdir()
    taken: dict[str, list[list[float]]] = {side: [] for side in sides}
    for _ in range(1 if job.work in NOT_TIMED else rounds):
        found = {side: run(jobs[side], limit) for side, run in sides.items()}
        for side, seconds in found.items():
            taken[side] += [seconds] if seconds else []
        if any(seconds is None or seconds[0] > SLOW for seconds in found.values()):
            break
    result = {"work": job.work, "table": job.table.name, "rows": job.table.rows, "keys": len(job.table.keys)}
    result |= {side: _seconds(runs) if runs else {"longer_than": limit} for side, runs in taken.items()}
    return result | _compared(result, jobs) if all(taken.values()) else result


def _compared(result: Mapping[str, Any], jobs: Mapping[str, Job]) -> dict[str, Any]:
    """Compute the ratios of a result's seconds, and how far the numbers of the two jobs differ, by quantity."""
    theirs, ours = jobs["sdcMicro"], jobs["gpupif"]
    found: dict[str, Any] = {}
    if theirs.work not in NOT_TIMED:
        found["ratio_first"] = result["sdcMicro"]["first"] / result["gpupif"]["first"]
        found["ratio"] = result["sdcMicro"]["best"] / result["gpupif"]["best"]
    files = {file.stem: file for file in sorted(theirs.out.glob("*.f64"))}
    if NEVER_MORE in files:
        counts = {side: np.fromfile(job.out / files[NEVER_MORE].name) for side, job in jobs.items()}
        found[NEVER_MORE] = {side: own.astype(int).tolist() for side, own in counts.items()}
    for name in SIDE_BY_SIDE:
        if name in files:
            file = files.pop(name)
            found[name] = {side: np.fromfile(job.out / file.name).tolist() for side, job in jobs.items()}
    if NOT_OF_TWINS in files and theirs.table.has_twins():
        del files[NOT_OF_TWINS]
        found["twins"] = True
    found["differences"] = {}
    for name, file in files.items():
        own, peer = np.fromfile(ours.out / file.name), np.fromfile(file)
        expected = np.minimum(own, peer) if name == NEVER_MORE else peer
        found["differences"][name] = largest_difference(own, expected)
    return found


def _seconds(rounds: Sequence[Sequence[float]]) -> dict[str, Any]:
    return {
        "first": min(runs[0] for runs in rounds),
        "best": min(chain.from_iterable(rounds)),
        "median": median(chain.from_iterable(rounds)),
        "runs": sum(map(len, rounds)),
    }


def plan(shipped: Mapping[str, PeerTable], folder: Path, quick: bool) -> Iterator[tuple[str, PeerTable]]:
    """Yield each work with a table to do it on; tables are generated one after the other."""
    for table in shipped.values():
        yield from _all_work(table)
        lacking = with_missing(table, folder, 0.03)
        yield "frequencies", lacking
        yield "suda", lacking
    for table in masked_tables(folder):
        yield "microaggregated", table
        yield "continuous", table
        yield "random_masking", table
    sizes = [10_000] if quick else [100_000, 1_000_000]
    for rows in sizes:
        census = generated_census(folder, rows, 8)
        yield "frequencies", census
        yield "weighted_frequencies", census
        yield "individual_risk", census
        yield "l_diversity", replace(census.with_keys(census.keys[:5]), sensitive=census.keys[5])
        for columns in (5, 7, 8):
            yield "suda", census.with_keys(census.keys[:columns], f"census, {columns} columns")
    yield "weighted_frequencies", with_missing(generated_census(folder, min(20_000, *sizes), 8), folder, 0.01)
    yield "log_linear_risk", equally_weighted(generated_census(folder, min(sizes), 8), folder)
    yield from (("suda", table) for table in many_columns(shipped["free1"], folder, quick))


def _all_work(table: PeerTable) -> Iterator[tuple[str, PeerTable]]:
    yield "frequencies", table
    yield "violations", table
    yield "suda", table
    if table.name in SUPPRESSED:
        yield "suppression", table
        yield "importance", table
    if table.name in IN_STRATA:
        yield "suppression_in_strata", table
    if table.weight is not None:
        yield "weighted_frequencies", table
        yield "individual_risk", table
        yield "exact_individual_risk", table
    if table.household is not None:
        yield "household_risk", table
    if table.sensitive is not None:
        yield "l_diversity", table


def many_columns(free1: PeerTable, folder: Path, quick: bool) -> Iterator[PeerTable]:
    """Yield tables of many columns, for the search of uniques of all sizes."""
    for columns in (10, 12) if quick else (10, 12, 14):
        table = free1.with_keys(FREE1_KEYS[:columns], f"free1, {columns} columns")
        yield table
        yield with_missing(table, folder, 0.03)
    yield generated_uniform(folder, 4_000, 12)
    if not quick:
        for columns in (13, 16):
            table = generated_census(folder, 30_000, columns)
            yield table
            yield with_missing(table, folder, 0.03)
        yield generated_census(folder, 30_000, 20)


def too_different(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Describe the quantities that differ by more than they should."""
    return [
        f"{name} of {result['table']} ({result['work']}): {difference:.1e}, expected at most {TOLERANCES[name]:g}"
        for result in results
        for name, difference in result.get("differences", {}).items()
        if not difference <= TOLERANCES[name]
    ]


def print_result(result: Mapping[str, Any]) -> None:
    """Print what was computed of which table, seconds of the first run and the best, their ratio, the differences."""
    sides = [result["sdcMicro"], result["gpupif"]]
    seconds = [
        f"over {side['longer_than']:8.0f} s" if "longer_than" in side else f"{side['first']:7.3f} {side['best']:7.3f}"
        for side in sides
    ]
    times = f"{result['ratio']:6.1f} times" if "ratio" in result else " " * 12
    if NEVER_MORE in result:
        cells = result[NEVER_MORE]
        times = f"cells {cells['sdcMicro']} {cells['gpupif']}"
    differs = f"differ by {max(result['differences'].values()):.0e}" if result.get("differences") else ""
    print(
        f"{result['work']:21} {result['rows']:>9,} x {result['keys']:<2} {result['table']:38} "
        f"{seconds[0]}   {seconds[1]} {times}   {differs}",
        flush=True,
    )


def largest_differences(results: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the largest difference of each quantity over all tables."""
    found: dict[str, float] = {}
    for result in results:
        for name, difference in result.get("differences", {}).items():
            found[name] = max(found.get(name, 0.0), difference)
    return found


def main() -> None:
    """Find sdcMicro, run, compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rscript", default="Rscript", help="the command Rscript of an R that has sdcMicro")
    parser.add_argument("--quick", action="store_true", help="small tables only: a few minutes")
    parser.add_argument("--work", nargs="+", help="do this work alone; other results of sdcmicro.json stay as they are")
    parser.add_argument("--threads", type=int, default=1, help="threads of both")
    parser.add_argument("--seconds", type=float, default=1.0, help="run each job at least so long, in each round")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each side a job, in turns")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a side is given up on a job")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for sdcmicro.json")
    arguments = parser.parse_args()
    sdcmicro = SdcMicro.find(arguments.rscript)
    results = []
    written = arguments.out / "sdcmicro.json"
    if arguments.work and written.exists():
        kept = json.loads(written.read_text())["results"]
        results = [result for result in kept if result["work"] not in arguments.work]
    print("Seconds of the first run and the best one, of sdcMicro, then of gpupif.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for work, table in plan(sdcmicro.write_shipped(folder), folder, arguments.quick):
            if arguments.work and work not in arguments.work:
                continue
            most = ONCE if work in NOT_TIMED else MOST_SECONDS
            job = Job(work, table, folder, arguments.threads, arguments.seconds, most)
            results.append(compare(job, sdcmicro, folder, arguments.rounds, arguments.limit))
            print_result(results[-1])
    document = {
        **surroundings(("gpupif", "pandas", "numpy", "numba")),
        "sdcMicro": dict(sdcmicro.versions),
        "threads": arguments.threads,
        "largest_differences": largest_differences(results),
        "results": results,
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    written.write_text(json.dumps(document, indent=2) + "\n")
    for quantity, difference in largest_differences(results).items():
        print(f"{difference:10.1e}  the largest relative difference of {quantity}")
    wrong = too_different(results)
    if wrong:
        sys.exit("benchmarks.sdcmicro: numbers differ that should not:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
