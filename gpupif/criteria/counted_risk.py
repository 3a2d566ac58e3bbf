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
from ..disclosure.models import MODELS
from ..disclosure.partition_search import Partition, Stopwatch
from ..disclosure.population_risks import MatchedClasses, PresenceRanking
from ..disclosure.request import RiskRequest
from ..disclosure.risk import DisclosureRisk
from ..disclosure.risk_figures import RiskArguments
from ..disclosure.risk_search import Assessment, RiskSearch, search_partitions
from ..engines.base import Engine
from ..errors import NearlyUniqueWarning
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from ..rows.threads import Workers
from ..utils.progress import Reporter
from ..utils.validation import check_exist, share
from .counted_table import CountedTable


def arguments_for(given: RiskArguments, table: CountedTable) -> RiskArguments:
    """Return the arguments of `gpupif.risk` for a table whose rows may go: the size of the population stays.

    Raises InputError for a wrong sampling fraction or weight, or a column that is not there.
    """
    for name, argument in given.columns.items():
        check_exist(argument, [name], table.names)
    if given.sampling_fraction is not None and given.population_size is None:
        people = round(table.rows / share("sampling_fraction", given.sampling_fraction))
        given = replace(given, sampling_fraction=None, population_size=people)
    if given.weights is None:
        return given
    return replace(given, zero_weights=not table.units(given.weights).of_code.all())


def counted_risks(
    table: CountedTable,
    known: Sequence[Hashable],
    given: RiskArguments,
    engine: Engine,
    missing: str,
    asked: Sequence[Mapping[str, Any]],
) -> list[DisclosureRisk]:
    """Return the risk of a counted table to an attacker who knows some columns, for each of some limits.

    given: weights and household are columns of the table; a population is `CountedTable.population`. Surplus rows of
    the table count as rows of the population: `gpupif.risk` refuses them before if they are not to. asked: the
    arguments k, threshold and max_global_risk of `gpupif.risk`, if they are not the defaults. The table is searched
    once for all limits on which the search does not depend. Raises InputError.
    """
    people = {"sampling_fraction": given.sampling_fraction, "population": given.population_size}
    by_threshold = given.weights is not None or given.household is not None
    found: dict[Any, Assessment] = {}
    risks = []
    with Workers() as workers, warnings.catch_warnings():
        # This warning was given for the table before.
        warnings.simplefilter("ignore", NearlyUniqueWarning)
        matched = None
        if table.population is not None:
            matched = _match(table, table.population, known, missing, engine, workers)
        for limits in asked:
            k, threshold = limits.get("k", 5), limits.get("threshold")
            limit = (1 / k if threshold is None else threshold) if by_threshold else 1.0
            key = limit, limits.get("max_global_risk")
            if key not in found:
                request = RiskRequest.from_arguments(
                    None,
                    list(known),
                    None,
                    [MODELS["k"]],
                    weights=given.weights,
                    missing=missing,
                    threshold=limit,
                    household=given.household,
                    max_global_risk=limits.get("max_global_risk"),
                )
                found[key] = replace(_search(table, request, engine, workers), in_population=matched)
            risks.append(DisclosureRisk.from_assessment(found[key], k, threshold, given.game, people))
    return risks


def _search(table: CountedTable, request: RiskRequest, engine: Engine, workers: Workers) -> Assessment:
    """Return what a search of the classes of a counted table finds."""
    columns = [table.columns[table.place(name)] for name in request.columns]
    weighted = None if request.weights is None else table.weights(request.weights, columns)
    search = RiskSearch.from_columns(request, columns, table.rows, {}, weighted)
    job = replace(search.job, multiplicities=table.multiplicities)
    partition = Partition(job, None if weighted is None else weighted.multiplicities).distinct(workers)
    return search_partitions(search, [partition], engine, Reporter(visible=False), Stopwatch())


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
