"""The public `global_risk`: the risk that sample uniques are unique in the population, by a log-linear model."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.attackers import attacker_line
from ..encoding.column import Column, amounts
from ..engines.base import Counter
from ..errors import InputError, warn
from ..marginals.open_counts import open_counts
from ..marginals.request import CountRequest
from ..marginals.set_counts import SetRequest, Total
from ..utils.display import Displayable, as_cell, as_part, as_percent, draw_verdict, plural
from ..utils.docs import documented_as
from ..utils.progress import Reporter, announce_compilation
from ..utils.refused_combinations import WILDCARD_GLOBAL_RISK
from ..utils.validation import Columns, as_columns, brief, check_exist, share, table_value
from .privacy_models import k_anonymity
from .report import facts_table

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class GlobalRisk(Displayable):
    """The risk of the sample uniques of a table in its population; made by `gpupif.global_risk`. Prints as a table.

    A cell is a combination of values of the quasi-identifiers. A sample unique is a cell of one row.

    rows: int. Rows of the sample.
    people: float. Estimated people of the population, the sum of the sampling weights.
    quasi_identifiers: list of column names.
    interactions: list of lists of column names. The interactions in the model.
    parameters: int. Parameters of the model.
    cells: int. All possible cells.
    occupied: int. Cells that occur in the sample.
    uniques: int. Sample uniques.
    tau1: float, from 0 to uniques. Expected number of sample uniques that are unique in the population.
    tau2: float, from 0 to uniques. Expected number of sample uniques that a match with the population finds rightly.
    tau1_share: float, in [0, 1]. tau1 / uniques. NaN without sample uniques.
    tau2_share: float, in [0, 1]. tau2 / uniques. NaN without sample uniques.
    device: str. The device that counted.
    """

    rows: int
    people: float
    quasi_identifiers: Sequence[Hashable]
    interactions: Sequence[Sequence[Hashable]]
    parameters: int
    cells: int
    occupied: int
    uniques: int
    tau1: float
    tau2: float
    tau1_share: float
    tau2_share: float
    device: str

    def __repr__(self) -> str:
        return (
            f"<GlobalRisk of {self.rows:,} {plural(self.rows, 'row')}: tau1 = {self.tau1:.4g}, tau2 = {self.tau2:.4g}>"
        )

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        share_of_rows = as_part(self.uniques / self.rows)
        said = attacker_line(self.quasi_identifiers, ()).removesuffix(".")
        return [
            f"{said}, and looks for the {self.uniques:,} of {self.rows:,} rows ({share_of_rows}) that are unique.",
            f"By the model {_with_share(self.tau1, self.tau1_share)} of these are unique in the population, too.",
            f"A match with the population is expected to be right for {_with_share(self.tau2, self.tau2_share)}.",
        ]

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        console.print()
        among = ", ".join(" x ".join(map(str, term)) for term in self.interactions)
        facts = [
            ("rows", f"{self.rows:,}"),
            ("people in the population, estimated", as_cell(self.people)),
            ("model", f"main effects{' and ' + among if among else ''} ({self.parameters:,} parameters)"),
            ("cells, and those that occur", f"{self.cells:,}, {self.occupied:,}"),
            ("unique rows", f"{self.uniques:,} ({as_percent(self.uniques / self.rows)})"),
            ("of these unique in the population (tau1)", _with_share(self.tau1, self.tau1_share)),
            ("of these matched rightly (tau2)", _with_share(self.tau2, self.tau2_share)),
        ]
        console.print(facts_table("Global risk by a log-linear model", facts))


def _with_share(rows: float, share: float) -> str:
    """Return a number of rows and its share of the unique rows; the number alone without unique rows."""
    return as_cell(rows) if math.isnan(share) else f"{as_cell(rows)} ({as_percent(share)})"


@documented_as(k_anonymity)
def global_risk(
    table: Any,
    quasi_identifiers: Columns,
    *,
    weights: Hashable = None,
    sampling_fraction: float | None = None,
    interactions: str | Sequence[Sequence[Hashable]] | None = None,
    missing: str = "category",
) -> GlobalRisk:
    """Estimate the risk of a sample in its population by a Poisson log-linear model (Skinner and Shlomo).

    A cell is a combination of values of the quasi-identifiers, with F people in the population. F is taken as a Poisson
    number, whose mean lambda follows from a log-linear model. Each of these people is in the sample with a probability
    pi. If the cell has a single row in the sample, then F - 1 is Poisson with mean m = (1 - pi) lambda. Such a row is
    unique in the population with probability e^-m. A match with one of the F people is right with probability
    (1 - e^-m) / m. tau1 and tau2 are the sums of these two probabilities over all cells with a single row.

    The means lambda are fitted by maximum likelihood to the people that the rows stand for, cell by cell. If weights
    differ, this is pseudo maximum likelihood. Cells without a row count too. pi is 1 / the weight of the row.

    Parameters
    ----------
    table:
        As in `gpupif.score`. A Dask DataFrame is computed at once. Files that do not fit into memory are read in
        streams. The cells that occur have to fit into memory; with interactions all possible cells.
    weights:
        A column with the sampling weight of each row, 1 or more: the number of people that the row stands for. Default:
        none; then `sampling_fraction` is needed.
    sampling_fraction:
        The share of the population that is in the table, a simple random sample, in (0, 1]. Instead of weights.
    interactions:
        None (default): main effects only, as if the columns were independent in the population; in closed form, for any
        number of cells. "two-way": the interactions of all pairs of quasi-identifiers. Or a list of tuples of their
        names, one for each interaction; the interactions among some of its columns are in the model too. A model with
        interactions is fitted to all possible cells, 2^24 at most. Too simple a model mostly overstates the risk, too
        complex a model understates it.
    missing:
        "category" (default): missing values are one value of their own; "error": refuse them.

    Returns
    -------
    GlobalRisk
        ``.tau1`` and ``.tau2`` (rows, from 0 to ``.uniques``), ``.tau1_share``, ``.tau2_share``, and the facts of the
        model; prints as a table; ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        No rows, no such column, neither weights nor a sampling fraction or both, a weight below 1, a bad interaction,
        too many cells for a model with interactions.
    TableReadError, OutputError, DeviceError
        As `gpupif.score`.

    Warns
    -----
    UserWarning
        A fit that is still inexact after 500 rounds.

    References
    ----------
    Skinner & Shlomo 2008, Assessing identification risk in survey microdata using log-linear models; Skinner & Holmes
    1998, Estimating the re-identification risk per record in microdata. sdcMicro's modRisk differs: its lambda is the
    expected rows of the sample, and it divides by the number of cells that occur.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"sex": [*"ffffmmm"], "job": [*"aaabbbc"]})
    >>> found = gpupif.global_risk(people, ["sex", "job"], sampling_fraction=0.5)
    >>> found.uniques, round(found.tau1, 3), round(found.tau2, 3)
    (2, 0.832, 1.292)

    """
    known = as_columns("quasi_identifiers", quasi_identifiers, table)
    if missing == "wildcard":
        raise WILDCARD_GLOBAL_RISK.refusal()
    if (weights is None) == (sampling_fraction is None):
        came = "neither" if weights is None else "both"
        raise InputError(
            f"weights, sampling_fraction: expected one of them, got {came}. Give the share of the population that is "
            "in the sample, or the weights that say it."
        )
    if weights is not None and weights in known:
        raise InputError(f"weights: column {weights!r} is a quasi-identifier too. Name it in one of them only.")
    fraction = 1.0 if sampling_fraction is None else share("sampling_fraction", sampling_fraction)
    terms = resolve_interactions(interactions, known)
    cells = count_cells(table, known, weights, missing)
    people = cells.people / fraction
    alone = cells.rows == 1
    missed = (expected_people(cells.codes, cells.values, people, terms) * (1 - cells.rows / people))[alone]
    uniques = int(alone.sum())
    tau1 = math.fsum(np.exp(-missed))
    tau2 = math.fsum(np.divide(-np.expm1(-missed), missed, out=np.ones(uniques), where=missed > 0))
    return GlobalRisk(
        rows=int(cells.rows.sum()),
        people=math.fsum(people),
        quasi_identifiers=known,
        interactions=[[known[place] for place in term] for term in terms if len(term) > 1],
        parameters=parameters(cells.values, terms),
        cells=math.prod(cells.values),
        occupied=len(cells.rows),
        uniques=uniques,
        tau1=tau1,
        tau2=tau2,
        tau1_share=tau1 / uniques if uniques else math.nan,
        tau2_share=tau2 / uniques if uniques else math.nan,
        device=cells.device,
    )


class CellCounts(NamedTuple):
    """The cells of a contingency table that occur: combinations of values of the quasi-identifiers.

    values: the number of values of each quasi-identifier. codes: (quasi-identifiers, cells), cells in ascending order.
    rows: rows of the sample in each cell. people: the sum of their sampling weights; without weights the rows. device:
    the device that counted.
    """

    values: Sequence[int]
    codes: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    people: npt.NDArray[np.float64]
    device: str


def count_cells(table: Any, known: Sequence[Hashable], weights: Hashable, missing: str) -> CellCounts:
    """Return the cells of a table of any kind. Raises InputError, TableReadError, OutputError, DeviceError."""
    columns = [*known, *([] if weights is None else [weights])]
    request = CountRequest(columns, missing=missing, argument="quasi_identifiers")
    places = list(range(len(columns)))
    asked = SetRequest(places, places[: len(known)])
    with Reporter() as report, announce_compilation(), open_counts(table, request, report) as counts:
        result = counts.count([asked], partial(_FindCells, len(known)))
        device = counts.device
    if weights is not None:
        _check_weights(result.columns[-1])
    codes, rows, people = (np.concatenate(arrays, axis=-1) for arrays in zip(*result.found[0], strict=True))
    order = np.lexsort(codes[::-1])
    values = [column.cardinality for column in result.columns[: len(known)]]
    return CellCounts(values, codes[:, order], rows[order], people[order], device)


class _FindCells:
    """The function that returns the cells of a partition. known_count: the number of quasi-identifiers.

    With weights, the combinations that it reads have the weight as their last value.
    """

    def __init__(self, known_count: int, columns: Sequence[Column], total: Total) -> None:
        self._known_count = known_count
        self._weights = amounts(columns[-1]) if len(columns) > known_count else None

    def __call__(self, columns: Sequence[int], counter: Counter, place: int) -> tuple[npt.NDArray[Any], ...]:
        combinations = counter.combinations(place)
        codes = np.stack([own.astype(np.int64) for own in combinations.codes[: self._known_count]])
        if self._weights is None or not len(combinations.counts):
            return codes, combinations.counts, combinations.counts.astype(np.float64)
        first = np.flatnonzero(np.append(True, (codes[:, 1:] != codes[:, :-1]).any(axis=0)))
        # Codes of weights depend on the way to read the table; weights in ascending order give the same sum always.
        weights = self._weights[combinations.codes[-1]]
        cell = np.cumsum(np.isin(np.arange(len(weights)), first)) - 1
        order = np.lexsort((weights, cell))
        people = np.add.reduceat((combinations.counts * weights)[order], first)
        return codes[:, first], np.add.reduceat(combinations.counts, first), people


def _check_weights(column: Column) -> None:
    """Raise InputError for a weight that is not a number of 1 or more."""
    weights = amounts(column)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~((weights >= 1) & (weights < np.inf)))
    if len(wrong):
        (value,) = column.values([int(wrong[0])])
        came = "a missing value" if value is None else table_value(value)
        raise InputError(
            f"weights: column {column.name!r}: expected numbers of 1 or more, the people of the population that each "
            f"row stands for; got {came}. Correct such weights, or drop the rows: a row of weight 0 is in no sample."
        )


# A term of the model: places of the columns that interact. A term of one column is a main effect.
Term = tuple[int, ...]
TWO_WAY = "two-way"
# The most cells of a table that is fitted as a whole.
MOST_CELLS = 1 << 24
# A fit has settled if each margin has at most the share SETTLED of the people at a wrong place. A fit with cells that
# tend to 0 never settles: it ends after ROUNDS rounds over the margins, and is good enough up to the share GOOD_ENOUGH.
SETTLED, ROUNDS, GOOD_ENOUGH = 1e-10, 500, 1e-4


def resolve_interactions(interactions: Any, names: Sequence[Hashable]) -> list[Term]:
    """Return the terms of a hierarchical model: main effects, interactions, and the interactions among their columns.

    interactions: None, "two-way", or a list of tuples of names. names: the quasi-identifiers. Raises InputError.
    """
    places = range(len(names))
    if interactions is None:
        asked: list[Term] = []
    elif isinstance(interactions, str) and interactions == TWO_WAY:
        asked = list(combinations(places, 2))
    elif isinstance(interactions, Iterable) and not isinstance(interactions, str):
        asked = [_term(interaction, names) for interaction in interactions]
    else:
        raise InputError(
            "interactions: expected 'two-way', a list of tuples of quasi-identifiers, or None for main effects; got "
            f"{brief(interactions)}."
        )
    parts = {part for term in asked for size in range(2, len(term) + 1) for part in combinations(term, size)}
    return [*((place,) for place in places), *sorted(parts, key=lambda term: (len(term), term))]


def _term(given: Any, names: Sequence[Hashable]) -> Term:
    """Return the places of the columns of one interaction, ascending. Raises InputError."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable) or len(set(given := list(given))) < 2:
        raise InputError(
            f"interactions: expected two or more different quasi-identifiers in each, got {brief(given)}. Write "
            "[('a', 'b')]; main effects are always in the model."
        )
    check_exist("interactions", given, names, "the quasi-identifiers")
    return tuple(sorted({names.index(name) for name in given}))


def expected_people(
    codes: npt.NDArray[np.int64], values: Sequence[int], people: npt.NDArray[np.float64], terms: Sequence[Term]
) -> npt.NDArray[Any]:
    """Return how many people a model expects in each of the cells that occur.

    codes: (columns, cells). values: the number of values of each column. people: people in each cell.

    Main effects alone have a closed form: the product of the shares of the values. A model with interactions is fitted
    to all possible cells. Raises InputError for a table with too many cells; warns if a fit does not settle.
    """
    if all(len(term) == 1 for term in terms):
        total = math.fsum(people)
        shares = [np.bincount(own, people, number)[own] / total for own, number in zip(codes, values, strict=True)]
        return np.asarray(total * np.prod(shares, axis=0))
    possible = math.prod(values)
    if possible > MOST_CELLS:
        raise InputError(
            f"quasi_identifiers: a model with interactions is fitted to all possible cells, {possible:.3g} "
            f"combinations of values; expected at most {MOST_CELLS:,}. Name fewer quasi-identifiers, bin columns with "
            "many values, or leave interactions= out."
        )
    table = np.zeros(tuple(values))
    table[tuple(codes)] = people
    margins = [term for term in terms if not any(set(term) < set(other) for other in terms)]
    return np.asarray(fit_margins(table, margins)[tuple(codes)])


def fit_margins(table: npt.NDArray[np.float64], margins: Sequence[Term]) -> npt.NDArray[np.float64]:
    """Return the likeliest means of Poisson counts by a log-linear model with these margins.

    table: one axis for each column, the people in each cell. margins: terms whose sums the means have to keep.

    Iterative proportional fitting (Deming & Stephan 1940): start with equal means, and scale them to one margin after
    the other. This needs no design matrix, and fits margins of 0, whose parameters are infinite. Warns if the fit does
    not settle.
    """
    fitted = np.full(table.shape, table.mean())
    axes = [tuple(axis for axis in range(table.ndim) if axis not in term) for term in margins]
    wanted = [table.sum(axis=summed_axes, keepdims=True) for summed_axes in axes]
    people, off = float(table.sum()), math.inf
    for _ in range(ROUNDS):
        off = 0.0
        for summed_axes, margin in zip(axes, wanted, strict=True):
            fitted_margin = fitted.sum(axis=summed_axes, keepdims=True)
            off = max(off, float(np.abs(fitted_margin - margin).sum()) / people)
            fitted *= np.divide(margin, fitted_margin, out=np.zeros_like(margin), where=fitted_margin > 0)
        if off <= SETTLED:
            break
    if off > GOOD_ENOUGH:
        warn(
            f"interactions: after {ROUNDS:,} rounds the model still has {off:.2g} of the people of a margin at a wrong "
            "place, so that the risk holds to a few digits only. Name fewer interactions, or bin columns with many "
            "values.",
            UserWarning,
        )
    return fitted


def parameters(values: Sequence[int], terms: Sequence[Term]) -> int:
    """Return the number of parameters of a model: 1, and for each term the product of values - 1."""
    return 1 + sum(math.prod(values[place] - 1 for place in term) for term in terms)
