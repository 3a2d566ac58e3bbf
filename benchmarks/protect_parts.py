"""Run one part of `benchmarks.protect` in its own process: `python -m benchmarks.protect_parts JOB.json`.

Prints one line of JSON: figures, each with what it is of, its value and the goal that it is held to.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pandas as pd
import polars as pl
import pyarrow.parquet as pq

import gpupif
from gpupif.criteria.counted_table import CountedTable
from gpupif.criteria.criterion_set import CriterionSet
from gpupif.datasets import census
from gpupif.engines.choose import choose_engine, requested_device
from gpupif.hierarchies.open import open_hierarchies
from gpupif.protection.column_levels import column_levels
from gpupif.protection.node_checks import NodeChecks

from .protect_tables import ADULT_COLUMNS, GROUPS, SearchTable, adult, census_for_search, hierarchy_lines
from .watch import watch

ROOT = Path(__file__).parent.parent
# What ARX's tests say of adult: k, share of rows that may be suppressed, loss of entropy, levels; and at most so many
# checks, which is the goal (None: none is set).
OPTIMA = (
    (5, 0.0, 407289.5388925293, (1, 2, 1, 1, 3, 2, 2, 1, 1), 350),
    (100, 0.0, 453196.8932458743, (0, 4, 1, 1, 3, 2, 2, 1, 1), None),
    (5, 0.04, 255559.85455731067, (1, 0, 1, 1, 3, 2, 2, 0, 1), 700),
    (100, 0.04, 379417.3460570988, (1, 1, 1, 1, 3, 2, 2, 1, 1), None),
)
# Searches by criteria on classes of adult, with occupation as a sensitive attribute, and what may be suppressed.
CLASS_SEARCHES = (
    ("k>=5",),
    ("k>=3", "distinct_l(occupation)>=2"),
    ("distinct_l(occupation)>=2",),
    ("k>=5", "entropy_l(occupation)>=3"),
    ("k>=5", "recursive_c(occupation, l=3)<=4"),
    ("k>=5", "t(occupation)<=0.3"),
    ("t(occupation)<=0.2",),
    ("k>=5", "basic_beta(occupation)<=2"),
    ("k>=5", "enhanced_beta(occupation)<=2"),
    ("k>=5", "delta(occupation)<=1.5"),
)
CLASS_SHARES = (0.0, 0.02, 0.05)
# Criteria that compare each class with other rows.
COMPARING = ("t(", "beta(", "delta(")
# ARX on some of them, 2 % of the rows suppressible: loss of entropy, levels and suppressed rows.
CLASS_OPTIMA = {
    ("k>=3", "distinct_l(occupation)>=2"): (170763.7641568316, (0, 0, 1, 1, 2, 2, 2, 0), 381),
    ("distinct_l(occupation)>=2",): (151544.8801198397, (0, 0, 1, 1, 1, 2, 2, 0), 508),
    ("k>=5", "entropy_l(occupation)>=3"): (203724.0898270634, (0, 0, 1, 1, 3, 2, 2, 0), 365),
}
WARM_SECONDS = 0.2
# What is timed is run so often at least, unless that takes too many seconds.
LEAST_RUNS, MOST_SECONDS = 3, 15.0
# Nodes whose checks are timed one by one.
NODES = 25
# The folder of the table of the large search.
SEARCH = "search"
# What ARX's tests say of adult without occupation: levels, k of rows that are suppressed as one class, the figure of
# `compare` and its value.
UTILITY_COLUMNS = tuple(name for name in ADULT_COLUMNS if name != "occupation")
AS_IT_IS, TOP = (0, 0, 0, 0, 0, 0, 0, 0), (1, 4, 1, 2, 3, 2, 2, 1)
UTILITY: tuple[tuple[tuple[int, ...], int | None, str, float], ...] = (
    ((1, 1, 1, 1, 3, 2, 2, 1), None, "average_class_size", 1005.4),
    ((1, 2, 1, 1, 3, 2, 2, 1), None, "average_class_size", 1885.125),
    (AS_IT_IS, 5, "average_class_size", 29.113899613899616),
    (AS_IT_IS, 5, "discernibility_unsuppressed", 485_542),
    (AS_IT_IS, 5, "discernibility", 463_536_157),
    ((1, 4, 1, 1, 2, 2, 0, 0), None, "discernibility_unsuppressed", 96_950_278),
    (TOP, None, "nonuniform_entropy_loss", 455884.9365769584),
)
# How far a figure may be from ARX's, relatively: it adds up floats.
AS_ARX = 1e-12


@dataclass(frozen=True)
class Setting:
    """The setting of a part.

    share: of the rows of its tables. seconds: run timed work for at least so long. adult: the adult table. temp: folder
    for files, which has the table of the large search, if that is run.
    """

    share: float
    seconds: float
    adult: SearchTable | None
    temp: Path

    def rows(self, rows: int) -> int:
        """Return this share of `rows`, at least 50."""
        return max(50, int(rows * self.share))


def figure(what: str, value: float, unit: str = "s", most: float | None = None, **more: Any) -> dict[str, Any]:
    """Return a figure as a dictionary; most: the largest value that meets the goal, None if there is no goal."""
    return {"what": what, "value": float(value), "unit": unit, "most": most, **more}


def timed(work: Callable[[], Any], seconds: float, least_runs: int = LEAST_RUNS) -> dict[str, Any]:
    """Time work repeatedly; return the seconds of the first run and of the best, and the number of runs."""
    taken: list[float] = []
    while not taken or (sum(taken) < MOST_SECONDS and (len(taken) < least_runs or sum(taken) < seconds)):
        gc.collect()
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return {"first": taken[0], "best": min(taken), "runs": len(taken)}


def optima(setting: Setting) -> Iterator[dict[str, Any]]:
    """Search for the optima of adult that ARX published; yield the time, the checks, and whether each was found."""
    table = setting.adult
    if table is None:
        return
    frame = table.read()
    found: Any = None
    for k, suppressed, loss, levels, most in OPTIMA:

        def search(k: int = k, suppressed: float = suppressed) -> None:
            nonlocal found
            found = gpupif.protect(frame, [f"k>={k}"], hierarchies=table.hierarchies, suppress=suppressed)

        taken = timed(search, setting.seconds)
        what = f"adult, 9 columns, k = {k}, {suppressed:.0%} of the rows suppressible"
        goal = WARM_SECONDS if k == OPTIMA[0][0] else None
        yield figure(
            what, taken["best"], most=goal, search=[[f"k>={k}"], suppressed, list(frame)], loss=found.loss, **taken
        )
        yield figure(f"checks of it, {what}", found.checks, "checks", most)
        differs = tuple(found.levels.values()) != levels or abs(found.loss - loss) > AS_ARX * loss
        yield figure(f"optimum other than ARX's, {what}", differs or not found.optimal, "", 0, loss=found.loss)


def classes(setting: Setting) -> Iterator[dict[str, Any]]:
    """Search adult by criteria on classes; yield the time, the checks, and whether known optima were found."""
    table = setting.adult
    if table is None:
        return
    hierarchies = {name: table.hierarchies[name] for name in UTILITY_COLUMNS}
    frame = pd.read_csv(table.file, sep=";", dtype=str, keep_default_na=False)[[*UTILITY_COLUMNS, "occupation"]]
    for criteria, share in product(CLASS_SEARCHES, CLASS_SHARES):
        found: Any = None

        def search(reference: str, criteria: tuple[str, ...] = criteria, share: float = share) -> None:
            nonlocal found
            given: dict[str, Any] = {"hierarchies": hierarchies, "sensitive": "occupation", "suppress": share}
            try:
                found = gpupif.protect(frame, criteria, reference=reference, **given)
            except gpupif.errors.UnmetError as unmet:
                # Compared with suppressed rows, too, classes of the treated table may break a limit.
                found = unmet.nearest

        what = f"adult, {' and '.join(criteria)}, {share:.0%} of the rows suppressible"
        if share and any(word in criteria[-1] for word in COMPARING):
            taken = timed(partial(search, "released"), setting.seconds)
            released = f"{what}, classes compared with the rows that are released"
            yield figure(released, taken["best"], loss=found.loss, checks=found.checks, **taken)
            broken = sum(not value.is_met for value in found.risk)
            yield figure(f"limits that the table breaks, {released}", broken, "", 0, suppressed=found.suppressed_rows)
        # As ARX does.
        taken = timed(partial(search, "original"), setting.seconds)
        searched = [list(criteria), share, list(UTILITY_COLUMNS)]
        more = {"checks": found.checks, "searching": found.seconds["search"]}
        yield figure(what, taken["best"], search=searched, loss=found.loss, **taken, **more)
        if share == 0.02 and criteria in CLASS_OPTIMA:
            loss, levels, rows = CLASS_OPTIMA[criteria]
            differs = (tuple(found.levels.values()), found.suppressed_rows) != (levels, rows)
            differs = differs or abs(found.loss - loss) > AS_ARX * loss or not found.optimal
            yield figure(f"optimum other than ARX's, {what}", differs, "", 0, loss=found.loss)


def utility(setting: Setting) -> Iterator[dict[str, Any]]:
    """Compute the utility figures that ARX published for treatments of adult, and yield whether each is the same."""
    table = setting.adult
    if table is None:
        return
    frame = table.read()[list(UTILITY_COLUMNS)]
    hierarchies = {name: table.hierarchies[name] for name in UTILITY_COLUMNS}
    for levels, k, name, expected in UTILITY:
        treatments: list[Any] = [
            gpupif.treatments.Recode(column, level=level)
            for column, level in zip(UTILITY_COLUMNS, levels, strict=True)
            if level
        ]
        if k is not None:
            treatments.append(gpupif.treatments.SuppressRows(k=k, quasi_identifiers=UTILITY_COLUMNS, remove=False))
        plan = gpupif.Plan(treatments, hierarchies=hierarchies)
        found = getattr(gpupif.compare(frame, gpupif.treat(frame, plan).table, plan).utility, name)
        what = f"{name} other than ARX's, adult, 8 columns, {list(levels)}" + ("" if k is None else f", k = {k}")
        yield figure(what, abs(found - expected) > AS_ARX * expected, "", 0, found=found, expected=expected)


def search(setting: Setting) -> Iterator[dict[str, Any]]:
    """Time a search on a table as large as IHIS, for which ARX published a figure."""
    table = SearchTable.from_folder(setting.temp / SEARCH)
    frame = table.read()
    found: Any = None
    what = f"{table.name}, {len(frame):,} rows, k = 5"

    def run() -> None:
        nonlocal found
        found = gpupif.protect(frame, ["k>=5"], hierarchies=table.hierarchies)

    taken = timed(run, setting.seconds)
    levels = list(found.levels.values())
    yield figure(
        what, taken["best"], most=1.5, search=[["k>=5"], 0.0, list(frame)], levels=levels, loss=found.loss, **taken
    )
    yield figure(f"checks of it, {what}", found.checks, "checks")


def checks(setting: Setting) -> Iterator[dict[str, Any]]:
    """Time single checks of nodes that are drawn from a whole lattice, for two criteria."""
    rows = setting.rows(1_000_000)
    counted = CountedTable.from_table(census(rows, columns=8))
    levels = column_levels(counted, open_hierarchies(census_hierarchies(setting.temp, 8)))
    random = Random(0)
    nodes = [tuple(random.randint(0, one.height) for one in levels) for _ in range(NODES)]
    for criterion, most in (("k>=5", 0.02), ("pif95<=3", 0.06)):
        criteria = CriterionSet.from_arguments([criterion], counted.names)
        with NodeChecks(counted, levels, criteria, choose_engine(requested_device())) as one:
            check = one.holds if one.prunes else one.is_met
            taken = [timed(partial(check, node), 0, 1)["first"] for node in nodes]
        what = f"one check of {criterion}, {rows:,} x 8, median of {NODES} nodes"
        yield figure(what, median(taken), most=most, first=taken[0], slowest=max(taken))


def anytime(setting: Setting) -> Iterator[dict[str, Any]]:
    """Search within time limits by a criterion that cannot prune, on a million rows and 10 columns."""
    rows = setting.rows(1_000_000)
    frame, hierarchies = census(rows), census_hierarchies(setting.temp, 10)
    # So that no limit is spent on loading compiled code.
    gpupif.protect(frame.head(2_000), ["pif95<=1000"], hierarchies=hierarchies)
    # Of a share of the rows, which is no measurement, a share of the time.
    for limit in (3, 30) if setting.share == 1 else (1, 3):
        what = f"PIF 95 at most 3, {rows:,} x 10, {limit} s"
        started = time.perf_counter()
        try:
            found = gpupif.protect(frame, ["pif95<=3"], hierarchies=hierarchies, time_limit=limit)
        except gpupif.InputError as error:
            yield figure(f"no plan found, {what}", True, "", 0, said=str(error))
            continue
        yield figure(f"no plan found, {what}", False, "", 0, loss=found.loss, gap=found.gap)
        yield figure(f"seconds with all else, {what}", time.perf_counter() - started)
        yield figure(f"checks, {what}", found.checks, "checks")
        if limit > 3:
            short = 0 if found.optimal else max(0, 500 - found.checks)
            yield figure(f"checks short of 500, {what}", short, "checks", 0)


def advice(setting: Setting) -> Iterator[dict[str, Any]]:
    """Time `advise` on a million rows: it tries each column dropped, and each level up."""
    rows = setting.rows(1_000_000)
    frame, hierarchies = census(rows), census_hierarchies(setting.temp, 10)
    found: Any = None

    def run() -> None:
        nonlocal found
        found = gpupif.advise(frame, hierarchies)

    taken = timed(run, setting.seconds)
    yield figure(f"advise, {rows:,} x 10, {len(found.changes)} changes", taken["best"], most=2.4, **taken)


def census_hierarchies(folder: Path, columns: int) -> dict[str, Path]:
    """Write hierarchies of the census's columns to files, and return these by column."""
    return census_for_search(folder / "hierarchies", 20_000, columns).hierarchies


def value_maps(setting: Setting) -> Iterator[dict[str, Any]]:
    """Time the replacement of all values in 10 columns of a Polars frame, beside Polars' `replace_strict`."""
    rows = setting.rows(10_000_000)
    frame = pl.from_pandas(census(rows))
    maps = {name: groups_of(frame[name].unique().to_list(), name) for name in frame.columns}
    plan = gpupif.Plan([gpupif.treatments.Recode(name, mapping=groups) for name, groups in maps.items()])
    replace = [
        pl.col(name).replace_strict(list(groups), list(groups.values()), return_dtype=pl.Categorical)
        for name, groups in maps.items()
    ]
    made: dict[str, Any] = {}
    ours = timed(lambda: made.update(ours=gpupif.treat(frame, plan).table), setting.seconds)
    theirs = timed(lambda: made.update(theirs=frame.with_columns(replace)), setting.seconds)
    differs = not all(
        made["ours"][name].cast(pl.String).equals(made["theirs"][name].cast(pl.String)) for name in frame.columns
    )
    what = f"value maps, {rows:,} x 10"
    yield figure(what, ours["best"], most=0.5, **ours)
    yield figure(f"Polars' replace_strict, {what}", theirs["best"], **theirs)
    yield figure(f"share of Polars' time, {what}", ours["best"] / theirs["best"], "", 1 / 3)
    yield figure(f"tables that differ, {what}", differs, "", 0)


def groups_of(values: list[Any], name: Any) -> dict[Any, str]:
    """Return, by value, its group at the first level of the column's hierarchy."""
    levels = hierarchy_lines(pd.Series(values), GROUPS[str(name)])
    return {value: line[1] for value, line in zip(sorted(values), levels, strict=True)}


def files(setting: Setting) -> Iterator[dict[str, Any]]:
    """Time the treatment of a Parquet file, beside reading it and writing it unchanged with pyarrow."""
    rows = setting.rows(10_000_000)
    frame = census(rows)
    plan = gpupif.Plan(
        [gpupif.treatments.Recode(name, mapping=groups_of(list(frame[name].unique()), name)) for name in frame]
    )
    with tempfile.TemporaryDirectory(dir=setting.temp) as name:
        folder = Path(name)
        frame.to_parquet(folder / "table.parquet", index=False)
        del frame

        def copy() -> None:
            pq.write_table(pq.read_table(folder / "table.parquet"), folder / "copy.parquet", compression="zstd")

        def treat() -> None:
            gpupif.treat_files(folder / "table.parquet", folder / "treated.parquet", plan, overwrite=True)

        plain, treated = timed(copy, setting.seconds), timed(treat, setting.seconds)
    what = f"Parquet file of {rows:,} x 10"
    yield figure(f"read and written, {what}", plain["best"], **plain)
    yield figure(f"treated, {what}", treated["best"], **treated)
    yield figure(f"treated over read and written, {what}", treated["best"] / plain["best"], "", 1.2)


def randomized(setting: Setting) -> Iterator[dict[str, Any]]:
    """Time randomized response of ten columns."""
    rows = setting.rows(10_000_000)
    frame = census(rows)
    plan = gpupif.Plan([gpupif.treatments.RandomizedResponse(name, keep=0.5) for name in frame])
    taken = timed(lambda: gpupif.treat(frame, plan, key=bytes(range(32))), setting.seconds)
    yield figure(f"randomized response, {10 * rows:,} cells", taken["best"], most=2.0, **taken)


def comparison(setting: Setting) -> Iterator[dict[str, Any]]:
    """Time the comparison of a table with a treated one, including all pairs of its columns."""
    rows = setting.rows(1_000_000)
    frame = census(rows)
    plan = gpupif.Plan(
        [gpupif.treatments.Recode(name, mapping=groups_of(list(frame[name].unique()), name)) for name in frame]
    )
    treated = gpupif.treat(frame, plan).table
    taken = timed(lambda: gpupif.compare(frame, treated), setting.seconds)
    yield figure(f"compare, {rows:,} x 10, 45 pairs", taken["best"], most=0.5, **taken)


def cells(setting: Setting) -> Iterator[dict[str, Any]]:
    """Suppress cells until no class has fewer than three rows; yield the time, and the rows still lacking."""
    rows = setting.rows(1_000_000)
    frame = census(rows, columns=7)
    plan = gpupif.Plan([gpupif.treatments.Suppress(list(frame), k=3)])
    done: Any = None

    def run() -> None:
        nonlocal done
        done = gpupif.treat(frame, plan)

    taken = timed(run, setting.seconds)
    left = gpupif.risk(done.table, list(frame)).classes.k
    yield figure(f"cells suppressed for k = 3, {rows:,} x 7", taken["best"], most=5.0, **taken)
    yield figure(f"rows that k = 3 lacks, {rows:,} x 7", max(0, 3 - left), "rows", 0)


def criteria(setting: Setting) -> Iterator[dict[str, Any]]:
    """Suppress single cells by k and l: time `protect` and `treat`; yield what the treated tables lack."""
    known = ["region", "age", "sex", "marital_status", "education"]
    for size, others, most in ((11_757, [], 3.0), (100_000, ["birthplace"], None), (1_000_000, ["birthplace"], None)):
        rows, names = setting.rows(size), [*known, *others]
        frame = census(rows)[[*names, "occupation"]]
        done: dict[str, Any] = {}

        def protect(frame: pd.DataFrame = frame, names: list[str] = names, done: dict[str, Any] = done) -> None:
            done["plan"] = gpupif.protect(
                frame,
                ["k>=5", "distinct_l>=2"],
                quasi_identifiers=names,
                sensitive=["occupation"],
                suppress=0.1,
                cells=True,
            )

        def treat(frame: pd.DataFrame = frame, done: dict[str, Any] = done) -> None:
            done["table"] = gpupif.treat(frame, done["plan"].plan).table

        what = f"cells suppressed for k = 5 and l = 2, {rows:,} x {len(names) + 1}"
        for name, work in (("protect", protect), ("treat", treat)):
            taken = timed(work, setting.seconds)
            yield figure(f"{name}, {what}", taken["best"], most=most, **taken)
        yield figure(f"suppressed cells, {what}", done["plan"].suppressed_cells, "cells")
        found = done["table"].groupby(names, dropna=False, observed=True)["occupation"].agg(["size", "nunique"]).min()
        yield figure(
            f"rows and values that are lacking, {what}", max(5 - found["size"], 2 - found["nunique"], 0), "", 0
        )


def large(setting: Setting) -> Iterator[dict[str, Any]]:
    """Treat a table larger than memory by the command line, within 2 GiB."""
    rows = setting.rows(100_000_000)
    piece = min(rows, 10_000_000)
    with tempfile.TemporaryDirectory(dir=setting.temp) as name:
        folder = Path(name)
        (folder / "table").mkdir()
        for number in range(rows // piece):
            census(piece, seed=number).to_parquet(folder / "table" / f"part-{number:03}.parquet", index=False)
        frame = census(20_000)
        gpupif.Plan(
            [
                gpupif.treatments.Recode(column, mapping=groups_of(list(frame[column].cat.categories), column))
                for column in frame
                if hasattr(frame[column], "cat")
            ]
        ).save(folder / "plan.toml")
        command = [sys.executable, "-P", "-m", "gpupif", "treat", str(folder / "table"), "--plan"]
        command += [str(folder / "plan.toml"), "-o", str(folder / "treated"), "--memory-limit", "2GiB", "--quiet"]
        os.sync()
        watched = watch([*command, "--temp", str(folder)], folder, folder / "log", place=ROOT)
        if watched.status != 0:
            sys.exit(f"exit code {watched.status}: {watched.errors.strip()}")
    yield figure(f"files of {rows:,} x 10 treated within 2 GiB", watched.seconds)
    yield figure(f"most memory, files of {rows:,} x 10", watched.peak_bytes / 2**30, "GiB", 2.0)


PARTS: Mapping[str, Callable[[Setting], Iterator[dict[str, Any]]]] = {
    "optima": optima,
    "classes": classes,
    "utility": utility,
    "search": search,
    "checks": checks,
    "anytime": anytime,
    "advice": advice,
    "value_maps": value_maps,
    "files": files,
    "randomized": randomized,
    "comparison": comparison,
    "cells": cells,
    "criteria": criteria,
    "large": large,
}


def run(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run a part, and return its figures."""
    temp = Path(job["temp"])
    folder = None if job["adult"] is None else adult(Path(job["adult"]))
    setting = Setting(job["share"], job["seconds"], folder, temp)
    with gpupif.config(device="cpu", progress=False):
        return list(PARTS[job["part"]](setting))


if __name__ == "__main__":
    print(json.dumps(run(json.loads(Path(sys.argv[1]).read_text()))))
