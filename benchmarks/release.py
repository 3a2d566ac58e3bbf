"""Releases, checked from outside: `python -m benchmarks.release`.

Five parts, or some of them (`--only figures audit speed queries suppression`):

* figures: the known answers of composition and of randomised response, to their digits.
* audit: a million draws (`--draws`) of each mechanism against its theory, by Kolmogorov and Smirnov, whose statistic is
  bounded by Dvoretzky, Kiefer, Wolfowitz and Massart also for whole numbers; and an attack that tells two neighbouring
  tables apart. Half of the draws choose the event, the other half bound epsilon from below (Clopper and Pearson, 99.9 %
  each): above the epsilon that is claimed the mechanism would be broken. Below a quarter of it noise would be wasted,
  or the attack would be none.
* speed: microseconds a released cell, beside OpenDP alone, and a whole release of a census.
* queries: seconds of `gpupif.audit` for 10,000 sums over a table (`--rows`) in which nearly every row is alone.
* suppression: seconds of `gpupif.tables` with secondary suppression and its audit, for four tables of a census.

Writes benchmarks/results/release.json; exit code 1 where a figure is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpupif.release import mechanisms
from gpupif.release.accounting import Loss, compose
from gpupif.release.ledger import Budget
from gpupif.release.mechanisms import Noise

from .surroundings import RESULTS, surroundings

PACKAGES = ("gpupif", "opendp", "dp-accounting", "numpy", "scipy", "highspy")
DELTA = 1e-5
# Probability that a right mechanism fails one of the checks.
CHANCE = 1e-6
CONFIDENCE = 0.999
# The share of the epsilon or delta that is claimed which an attack has to find.
LEAST_SHARE = 0.25
# Answers through gpupif may take so much longer than OpenDP alone.
MOST_TIMES = 1.5
# Queries of an audit, and the seconds that it may take.
QUERIES, MOST_SECONDS = 10_000, 10.0
# The columns of the table that queries are asked of, with the number of their values.
CARDINALITIES = {"sex": 2, "decade": 10, "state": 50, "education": 10, "occupation": 100}
# Tables of a census with suppressed cells: rows, and columns.
SUPPRESSED = (
    (20_000, ["region", "sex", "education"]),
    (100_000, ["age", "sex", "education"]),
    (100_000, ["education", "household_size", "marital_status", "sex"]),
    (100_000, ["occupation", "education", "sex", "income_band"]),
)
Figure = dict[str, Any]
Draws = npt.NDArray[np.float64]


def known_figures() -> Iterator[Figure]:
    """Yield the known answers of composition and of randomised response."""
    import gpupif

    def figure(what: str, value: float, expected: float, digits: int = 4) -> Figure:
        return {"what": what, "value": value, "expected": expected, "holds": round(value, digits) == expected}

    gaussian, laplace = (compose([loss] * 100, DELTA) for loss in (Loss("gaussian", 10), Loss("laplace", 10)))
    yield figure("100 Gaussian of sigma 10: conversion of the seed", gaussian.zcdp, 5.2985)
    yield figure("100 Gaussian of sigma 10: Renyi DP", gaussian.rdp or 0, 4.7285)
    yield figure("100 Gaussian of sigma 10: loss distributions", gaussian.pld or 0, 4.3772)
    yield figure("100 Laplace of epsilon 0.1: sum", laplace.sum, 10)
    yield figure("100 Laplace of epsilon 0.1: Renyi DP", laplace.rdp or 0, 4.5327)
    yield figure("100 Laplace of epsilon 0.1: loss distributions", laplace.pld or 0, 4.2203)
    discrete = compose([Loss("discrete_laplace", 10)] * 100, DELTA)
    yield figure("100 discrete Laplace of epsilon 0.1: loss distributions", discrete.pld or 0, 4.3068)
    tens = compose([Loss("pure", 1 / math.log(3))] * 10, DELTA)
    yield figure("10 randomised responses of ln 3: loss distributions", tens.pld or 0, 10.987, 3)
    coin = gpupif.randomized_response(keep=0.5, prior=0.25)
    yield figure("coin: epsilon", coin.epsilon, 1.0986)
    yield figure("coin, p = 1/4: privacy loss, bits", coin.privacy_loss or 0, 1)
    yield figure("coin: p at which most is learnt", coin.most_learnt_prior or 0, 0.366, 3)
    yield figure("coin: posterior there", coin.most_learnt_posterior or 0, 0.634, 3)
    yield figure("t = 1/4: epsilon", gpupif.randomized_response(keep=0.25).epsilon, 0.5108)
    for keep, variance in ((1, 0.00021), (0.5, 0.00096), (0.25, 0.00396), (0.1, 0.02496)):
        found = gpupif.randomized_response(keep=keep, prior=0.3, rows=1000)
        yield figure(f"N = 1000, p = 0.3, t = {keep}: variance", (found.standard_error or 0) ** 2, variance, 5)


def laplace_below(scale: float, places: Draws) -> Draws:
    """Return the distribution function of discrete Laplace noise."""
    tail = np.exp(-np.where(places < 0, -places, places + 1) / scale) / (1 + math.exp(-1 / scale))
    return np.where(places < 0, tail, 1 - tail)


def gaussian_below(scale: float, places: Draws) -> Draws:
    """Return the distribution function of discrete Gaussian noise."""
    most = math.ceil(20 * scale)
    whole = np.arange(-most, most + 1)
    masses = np.exp(-(whole**2) / (2 * scale**2))
    return np.asarray((np.cumsum(masses) / masses.sum())[places.astype(np.int64) + most])


def choice_below(scores: list[int], scale: float) -> Draws:
    """Return the distribution function of permute-and-flip, by all permutations."""
    accepted = [math.exp(-(score - min(scores)) / scale) for score in scores]
    masses = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1 / len(orders)
        for place in order:
            masses[place] += left * accepted[place]
            left *= 1 - accepted[place]
    return np.asarray(np.cumsum(masses))


def distance(draws: Draws, below: Callable[[Draws], Draws]) -> float:
    """Return the Kolmogorov-Smirnov statistic of draws of whole numbers."""
    places, numbers = np.unique(draws, return_counts=True)
    shares = np.cumsum(numbers) / len(draws)
    before = np.abs(np.append(0, shares[:-1]) - below(places - 1))
    return float(max(np.abs(shares - below(places)).max(), before.max()))


def least_epsilon(here: Draws, there: Draws, delta: float) -> float:
    """Return a lower bound of epsilon, by the best event "at most" or "at least" a number. Half of the draws choose."""
    from scipy.stats import beta

    half = len(here) // 2
    edges = np.unique(np.quantile(np.concatenate([here[:half], there[:half]]), np.linspace(0.001, 0.999, 499)))
    bounds = []

    def events(part: slice, edge: float, up: bool) -> tuple[int, int, int]:
        first, second = (draws[part] >= edge if up else draws[part] <= edge for draws in (here, there))
        return int(first.sum()), int(second.sum()), len(first)

    for up in (True, False):
        for turned in (True, False):

            def bound(part: slice, edge: float, up: bool = up, turned: bool = turned) -> float:
                one, other, number = events(part, edge, up)
                one, other = (other, one) if turned else (one, other)
                least = beta.ppf(1 - CONFIDENCE, one, number - one + 1) if one else 0.0
                most = beta.ppf(CONFIDENCE, other + 1, number - other) if other < number else 1.0
                return math.log((least - delta) / most) if least > delta else -math.inf

            best = max(edges, key=lambda edge: bound(slice(0, half), edge))
            bounds.append((bound(slice(0, half), best), bound(slice(half, None), best)))
    # The event that is best on the first half is tried once on the second half.
    return max(0.0, max(bounds)[1])


def audit(draws: int) -> Iterator[Figure]:
    """Yield the audits of each mechanism."""
    limit = math.sqrt(math.log(2 / CHANCE) / 2)
    makers: list[tuple[str, Noise, int, Callable[[float, Draws], Draws]]] = [
        ("Laplace, epsilon 0.1", mechanisms.laplace(0.1, 1), 1, laplace_below),
        ("Laplace, epsilon 1", mechanisms.laplace(1.0, 1), 1, laplace_below),
        ("Laplace, epsilon 1, 3 rows of a person", mechanisms.laplace(1.0, 3), 3, laplace_below),
        ("Laplace of sums, epsilon 1", mechanisms.laplace(1.0, 1 << 30), 1 << 30, laplace_below),
        ("Gaussian, epsilon 1, delta 1e-3", mechanisms.gaussian(1.0, 1e-3, 1), 1, gaussian_below),
    ]
    for name, noise, shift, below in makers:
        here, there = (np.array(noise.drawn([value] * draws), np.float64) for value in (0, shift))
        statistic = math.sqrt(draws) * distance(here, partial(below, noise.loss.scale))
        yield _checked(f"{name}: root n times KS", statistic, limit)
        yield _attacked(name, least_epsilon(here, there, noise.loss.delta), noise.loss)
    # A row is replaced: one cell loses a row, another gains one. The attack adds up what both say.
    replaced = mechanisms.laplace(1.0, 1, 2)
    pairs = [np.array(replaced.drawn([*first] * draws), np.float64) for first in ((1, 0), (0, 1))]
    signs = [np.sign(pair[0::2] - 0.5) - np.sign(pair[1::2] - 0.5) for pair in pairs]
    yield _attacked("Laplace, epsilon 1, a row replaced", least_epsilon(signs[0], signs[1], 0), replaced.loss)
    chosen = mechanisms.choice(1.0, 1)
    near, far = [1, 0, 1], [0, 1, 0]
    here, there = (np.array([chosen.draw(scores) for _ in range(draws // 10)], np.float64) for scores in (near, far))
    theory = choice_below(near, 2.0)
    statistic = math.sqrt(len(here)) * distance(here, lambda places: np.append(0, theory)[places.astype(np.int64) + 1])
    yield _checked("choice, epsilon 1: root n times KS", statistic, limit)
    middle = [np.where(drawn == 1, 1.0, 0.0) for drawn in (here, there)]
    yield _attacked("choice, epsilon 1", least_epsilon(middle[0], middle[1], 0), chosen.loss)
    # A person alone with a value: the value may show with probability delta at most.
    hidden = mechanisms.threshold(1.0, 0.01, 1)
    shown = len(hidden.drawn(dict.fromkeys(range(draws), 1)))
    from scipy.stats import beta

    least = float(beta.ppf(1 - CONFIDENCE, shown, draws - shown + 1)) if shown else 0.0
    what = "threshold, delta 0.01: share of single rows that show, at least"
    yield _checked(what, least, 0.01, LEAST_SHARE * 0.01)


def _checked(what: str, value: float, most: float, least: float = 0.0) -> Figure:
    return {"what": what, "value": value, "most": most, "least": least, "holds": least <= value <= most}


def _attacked(name: str, bound: float, loss: Loss) -> Figure:
    claimed = loss.epsilon or math.inf
    return _checked(f"{name}: epsilon of the attack, at least", bound, claimed, LEAST_SHARE * claimed)


def speed(cells: int, rows: int) -> Iterator[Figure]:
    """Yield microseconds a released cell, beside OpenDP alone, and the seconds of a whole release."""
    import opendp.prelude as opendp

    import gpupif
    from gpupif.release.queries import Counts

    opendp.enable_features("contrib")
    counts = [0] * cells
    for mechanism, make, metric in (
        ("laplace", opendp.m.make_laplace, opendp.l1_distance(T="i64")),
        ("gaussian", opendp.m.make_gaussian, opendp.l2_distance(T="f64")),
    ):
        delta = 1e-6 if mechanism == "gaussian" else None
        query = Counts(by=["a"], values=range(cells), epsilon=0.5, delta=delta, mechanism=mechanism)
        [noise] = query.noises(gpupif.release.ledger.Terms(1.0, 1e-6))
        alone = make(opendp.vector_domain(opendp.atom_domain(T="i64")), metric, scale=noise.loss.scale)
        works = [partial(alone, counts), partial(query.answered, counts, [noise])]
        best = [math.inf, math.inf]
        for _ in range(3):
            for place, work in enumerate(works):
                started = time.perf_counter()
                work()
                best[place] = min(best[place], time.perf_counter() - started)
        yield {
            "what": f"{mechanism}: microseconds a cell ({best[0] / cells * 1e6:.1f} by OpenDP alone)",
            "value": best[1] / cells * 1e6,
            "most": MOST_TIMES * best[0] / cells * 1e6,
            "holds": best[1] <= MOST_TIMES * best[0],
        }
    table = gpupif.datasets.census(rows, seed=1)
    with tempfile.TemporaryDirectory() as folder, gpupif.config(progress=False):
        budget = Budget(Path(folder) / "ledger.json", epsilon=10)
        domain = {name: list(table[name].cat.categories) for name in ("region", "sex", "education")}
        for run in ("first", "second"):
            started = time.perf_counter()
            found = gpupif.release.counts(table, list(domain), budget, epsilon=0.1, values=domain)
            seconds = time.perf_counter() - started
            assert found.table is not None
            what = (
                f"{run} release of {len(found.table):,} counts of {rows:,} rows x {table.shape[1]}, ledger and all: s"
            )
            yield {"what": what, "value": seconds, "holds": None}


def queries(rows: int) -> Iterator[Figure]:
    """Yield the seconds of an audit of sums over different conditions on one to three columns each."""
    import gpupif

    random = np.random.default_rng(1)
    columns = {name: random.integers(0, size, rows) for name, size in CARDINALITIES.items()}
    table = pd.DataFrame(columns | {"salary": random.integers(0, 1000, rows)})
    conditions: dict[str, None] = {}
    while len(conditions) < QUERIES:
        names = sorted(random.choice(list(CARDINALITIES), random.integers(1, 4), replace=False))
        conditions[" and ".join(f"{name} = {random.integers(0, CARDINALITIES[name])}" for name in names)] = None
    asked = [{"name": f"q{n}", "kind": "sum", "column": "salary", "where": own} for n, own in enumerate(conditions)]
    gpupif.audit(asked[:50], table[:1000])
    started = time.perf_counter()
    gpupif.audit(asked, table)
    what = f"audit of {QUERIES:,} queries over {rows:,} rows: s"
    yield _checked(what, time.perf_counter() - started, MOST_SECONDS)


def suppression() -> Iterator[Figure]:
    """Yield the seconds of tables with suppressed cells, and of their audit."""
    import gpupif

    for rows, by in SUPPRESSED:
        table = gpupif.datasets.census(rows, seed=1)
        started = time.perf_counter()
        found = gpupif.tables(table, by, suppress_below=3)
        seconds = time.perf_counter() - started
        more = f"{found.primary:,} suppressed and {found.secondary:,} to protect them"
        what = f"{len(found.counts):,} cells of {len(by)} columns, {more}, audited: s"
        yield {"what": what, "value": seconds, "holds": None}


def line(figure: Figure) -> str:
    """Format a figure as a line."""
    goal = f"(at most {figure['most']:.4g})" if "most" in figure else ""
    goal = f"({figure['least']:.4g} to {figure['most']:.4g})" if figure.get("least") else goal
    goal = f"(expected {figure['expected']:.6g})" if "expected" in figure else goal
    return f"{'MISSED' if figure['holds'] is False else '':6} {figure['value']:10.5g} {goal:22} {figure['what']}"


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("figures", "audit", "speed", "queries", "suppression")
    parser.add_argument(
        "--only", nargs="+", choices=parts, default=parts, metavar="PART", help=f"of {', '.join(parts)}"
    )
    parser.add_argument("--draws", type=int, default=1_000_000, help="of each mechanism (default: 1,000,000)")
    parser.add_argument("--cells", type=int, default=100_000, help="released at once, for speed (default: 100,000)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the tables asked (default: 1,000,000)")
    parser.add_argument("--out", type=Path, default=RESULTS / "release.json", help="file for the results")
    arguments = parser.parse_args()
    makers: dict[str, Callable[[], Iterator[Figure]]] = {
        "figures": known_figures,
        "audit": lambda: audit(arguments.draws),
        "speed": lambda: speed(arguments.cells, arguments.rows),
        "queries": lambda: queries(arguments.rows),
        "suppression": suppression,
    }
    figures = []
    for part in arguments.only:
        for figure in makers[part]():
            figures.append({"part": part, **figure})
            print(line(figure), flush=True)
    document = {**surroundings(PACKAGES), "draws": arguments.draws, "figures": figures}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(document, indent=2) + "\n")
    sys.exit(any(figure["holds"] is False for figure in figures))


if __name__ == "__main__":
    main()
