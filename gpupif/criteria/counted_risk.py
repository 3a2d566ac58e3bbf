"""The risk of a counted table and its population, as `gpupif.risk` finds the risk of any table."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpupif.kernels.codes import add_multiplicities

from ..attack.joined_columns import POPULATION, SAMPLE, JoinedColumns
from ..attack.population import MatchedRows
from ..attack.weights import TableWeights, add_chunk, read_weights
from ..disclosure.models import MODELS, Model
from ..disclosure.partition_search import Partition, Stopwatch
from ..disclosure.population_risks import MatchedClasses, PresenceRanking
from ..disclosure.request import RiskRequest
from ..disclosure.risk import DisclosureRisk
from ..disclosure.risk_figures import RiskArguments
from ..disclosure.risk_search import RiskSearch, search_partitions
from ..engines.base import Engine
from ..errors import NearlyUniqueWarning
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from ..rows.threads import Workers
from ..utils.progress import Reporter
from .counted_table import CountedTable


def counted_risk(
    table: CountedTable,
    known: Sequence[Hashable],
    given: RiskArguments,
    engine: Engine,
    missing: str = "category",
    k: int = 5,
    threshold: float | None = None,
    max_global_risk: float | None = None,
    sensitive: Sequence[Hashable] = (),
    model: Model = MODELS["k"],
    l_values: int | None = None,
    distances: Mapping[Any, Any] | None = None,
) -> DisclosureRisk:
    """Return the risk of a counted table to an attacker who knows some columns.

    given: weights and household are columns of the table; a population is `CountedTable.population`. Surplus rows of
    the table count as rows of the population: `gpupif.risk` refuses them before if they are not to. model: a disclosure
    measure of the sensitive columns. Other parameters: as in `gpupif.risk`. Raises InputError.
    """
    limit = 1 / k if threshold is None else threshold
    request = RiskRequest.from_arguments(
        None,
        list(known),
        list(sensitive) or None,
        [model],
        l_values,
        distances or None,
        given.weights,
        missing,
        threshold=limit,
        household=given.household,
        max_global_risk=max_global_risk,
    )
    columns = [table.columns[table.place(name)] for name in request.columns]
    with Workers() as workers, warnings.catch_warnings():
        # This warning was given for the table before.
        warnings.simplefilter("ignore", NearlyUniqueWarning)
        weighted = None
        if given.weights is not None:
            column = table.columns[table.place(given.weights)]
            units = read_weights(column)
            people = units.multiplicities(column.codes) * table.multiplicities
            counts = {column.name: np.zeros(column.cardinality, np.int64) for column in columns}
            add_chunk(columns, [column.codes for column in columns], people, counts, workers)
            weighted = TableWeights(people, counts, units.total, units.unit)
        search = RiskSearch.from_columns(
            replace(request, may_lack_values=True), columns, table.rows, dict(table.orders), weighted
        )
        job = replace(search.job, multiplicities=table.multiplicities)
        partition = Partition(job, None if weighted is None else weighted.multiplicities).distinct(workers)
        result = search_partitions(search, [partition], engine, Reporter(visible=False), Stopwatch())
        if table.population is not None:
            result = replace(result, in_population=_match(table, table.population, known, missing, engine, workers))
    size = {"sampling_fraction": given.sampling_fraction, "population": given.population_size}
    return DisclosureRisk.from_assessment(result, k, threshold, given.game, size)


def _match(
    table: CountedTable,
    population: CountedTable,
    known: Sequence[Hashable],
    missing: str,
    engine: Engine,
    workers: Workers,
) -> MatchedClasses:
    """Return the classes of a table in its population."""
    both = [[own.columns[own.place(name)] for name in known] for own in (table, population)]
    joined = JoinedColumns.join(both[SAMPLE], both[POPULATION], missing)
    codes = [joined.codes([column.codes for column in both[side]], side) for side in (SAMPLE, POPULATION)]
    keys = joined.layout.pack([np.concatenate(pair) for pair in zip(*codes, strict=True)], workers)
    found = distinct_rows(Rows(keys), len(keys), workers)
    number, edge = np.asarray(found.number), len(table.multiplicities)
    counts = np.zeros((2, len(found.rows.keys)), np.int64)
    add_multiplicities(number[:edge], table.multiplicities, counts[SAMPLE])
    add_multiplicities(number[edge:], population.multiplicities, counts[POPULATION])
    matched = MatchedRows(found.rows.keys, counts[SAMPLE], counts[POPULATION])
    return MatchedClasses.from_matched(joined, PresenceRanking.from_columns(0, joined), matched, engine)
