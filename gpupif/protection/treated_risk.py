"""The risk of the treated table, measured by `gpupif.risk` and `gpupif.score` as any table's is, not by the search."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..comparison.risk import singled_out
from ..criteria.counted_scores import score_counted
from ..criteria.counted_table import CountedTable
from ..criteria.criterion_set import CriterionSet, CriterionValue
from ..criteria.measured_table import measure_table
from ..criteria.quantities import ModelQuantity
from ..disclosure.risk import risk
from ..engines.base import Engine
from ..engines.choose import choose_engine, requested_device
from ..errors import NearlyUniqueWarning, NothingKnownWarning
from ..io.base import Input
from ..io.temporary_folder import temporary_folder
from ..marginals.request import CountRequest
from ..measures import find_measure
from ..treatment.plan import Plan
from ..treatment.plan_run import Treated
from ..treatment.treat import treat
from ..treatment.treated_check import with_treated_population
from ..utils.config import resources
from .request import figures_of_risk, population_columns


class TreatedRisk(NamedTuple):
    """The risk of a treated table.

    values: of each criterion, in their order. rows: how many rows were taken away or, if single cells were suppressed,
    have such cells. cells: how many cells of the rows that are left were suppressed. smallest_class: the rows of the
    smallest equivalence class over the quasi-identifiers. unique_rows: how many rows are alone in their class.
    certain_rows: see `certain_rows`. singled_out: see `singled_out`.
    """

    values: Sequence[CriterionValue]
    rows: int
    cells: int
    smallest_class: int
    unique_rows: int
    certain_rows: Mapping[Hashable, int]
    singled_out: Mapping[Hashable, int]


def measure_treated(
    table: Any, plan: Plan, criteria: CriterionSet, unchanged: Sequence[Hashable], cells: bool = False
) -> TreatedRisk:
    """Treat a table of any kind by a plan, and measure its criteria.

    unchanged: columns that are no part of the criteria, and that the plan leaves as they are.
    cells: whether the plan suppresses single cells. Missing values are then read in two ways, as a value of their own
    and as any value, and the worse reading counts, unless the criteria are for the second reading alone.
    """
    with contextlib.ExitStack() as opened, warnings.catch_warnings():
        # These warnings were given for the table before.
        warnings.simplefilter("ignore", NearlyUniqueWarning)
        warnings.simplefilter("ignore", NothingKnownWarning)
        treated = _treated(table, plan, opened)
        given = with_treated_population(criteria.given, plan, lambda table, plan: _treated(table, plan, opened).table)
        criteria = replace(criteria, given=given)
        values = measure_table(treated.table, criteria, cells)
        rows, suppressed = treated.record.rows_removed or 0, 0
        if cells:
            last = treated.record.treatments[-1]
            rows, suppressed = int(last.found["rows"]), sum((last.suppressed or {}).values())
        sizes = _smallest_and_unique(treated.table, values, criteria)
        certain = {}
        if criteria.sensitive:
            weights = [] if criteria.given.weights is None else [criteria.given.weights]
            counted = CountedTable.from_table(treated.table, [*criteria.scored, *weights])
            engine, readings = choose_engine(requested_device(counted.cells)), [criteria]
            readings += [criteria.read_as("wildcard")] * cells
            found = [certain_rows(counted, reading, engine) for reading in readings]
            certain = {name: max(own[name] for own in found) for name in criteria.sensitive}
        return TreatedRisk(values, rows, suppressed, *sizes, certain, singled_out(treated.table, unchanged))


def certain_rows(table: CountedTable, criteria: CriterionSet, engine: Engine) -> dict[Hashable, int]:
    """Return by sensitive attribute how many rows are in classes with a single value of it, classes of one row too.

    As in `gpupif.risk`, rows of weight 0 are no members of classes.
    """
    if not criteria.sensitive:
        return {}
    known, sensitive, measure = criteria.quasi_identifiers, criteria.sensitive, find_measure("distinct_values")
    matching = {"missing": criteria.missing, "weights": criteria.given.weights}
    _, scores = score_counted(table, known, sensitive, [measure], {}, engine, **matching)
    of_columns = zip(sensitive, scores[measure.name], strict=True)
    return {name: int(table.multiplicities[np.asarray(own.scores) == 1].sum()) for name, own in of_columns}


def with_population(counted: CountedTable, table: Any, criteria: CriterionSet, missing: str) -> CountedTable:
    """Return a counted table with its population, if criteria are on one.

    `gpupif.risk` first refuses wrong weights and households, and a population that lacks rows of the table.
    """
    measure_table(table, figures_of_risk(criteria))
    people = criteria.given.population
    if people is None:
        return counted
    columns = population_columns(criteria)
    return replace(counted, population=CountedTable.from_table(people.table, columns, "population", missing=missing))


def _smallest_and_unique(table: Any, values: Sequence[CriterionValue], criteria: CriterionSet) -> tuple[int, int]:
    """Return the rows of the smallest class over the quasi-identifiers, and how many rows are alone in their class.

    values: of the criteria in the table. If k is among them, the table is not counted again.
    """
    for criterion, value, *_ in values:
        of_k = isinstance(criterion.quantity, ModelQuantity) and criterion.smallest_class is not None
        if of_k and value is not None and value > 1:
            return int(value), 0
    classes = risk(table, list(criteria.quasi_identifiers), groups=0, missing=criteria.missing).classes
    return classes.k, classes.uniques


def _treated(table: Any, plan: Plan, opened: contextlib.ExitStack) -> Treated:
    """Treat a table. Files that are read in streams are treated to files in a folder that `opened` deletes."""
    if isinstance(table, str | os.PathLike | Input) and CountRequest().in_streams(table):
        from ..treatment.treat_files import treat_files

        folder = opened.enter_context(temporary_folder(resources().temp))
        return treat_files(table, folder / "treated.parquet", plan)
    return treat(table, plan)
