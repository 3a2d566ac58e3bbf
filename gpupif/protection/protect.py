"""The public `protect`: the treatment with the least loss with which a table meets criteria."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from ..attack.arguments import Knowledge, as_attackers
from ..attack.attackers import AnyKnown, attacker_line
from ..attack.request import warn_of_unique
from ..attack.roles import classes_by_roles
from ..criteria.class_criteria import ClassCriteria
from ..criteria.counted_table import CountedTable
from ..criteria.criterion import Criterion, read_criteria
from ..criteria.criterion_set import CriterionSet, CriterionValue
from ..criteria.quantities import ScoreQuantity
from ..disclosure.attack_game import Game
from ..disclosure.risk_figures import RiskArguments
from ..engines.choose import choose_engine, requested_device
from ..errors import InputError, UnreachableError
from ..frames.open import table_names
from ..hierarchies.open import open_hierarchies
from ..treatment.plan import Plan
from ..treatment.suppression.suppress import Suppress, SuppressRows
from ..treatment.value_maps.recode import Recode
from ..utils.display import as_cell, plural
from ..utils.progress import Reporter, announce_compilation, short
from ..utils.signals import first_interrupt
from ..utils.validation import Columns, as_columns
from .column_levels import ColumnLevels, column_levels, with_proposed
from .identifiers import as_identifiers, identifier_treatments, identifiers_by_roles, warn_of_identifiers
from .lattice import count_nodes
from .lattice_search import LatticeSearch, SearchResult
from .node_checks import NodeChecks, Suppression
from .objectives import as_objective
from .request import (
    ProtectRequest,
    as_distances,
    as_importance,
    as_seconds,
    as_share_of_rows,
    figures_of_risk,
    population_columns,
)
from .result import Protection, find_frontier
from .treated_risk import TreatedRisk, measure_table, measure_treated

# A criterion that every table meets: its value is how many rows are unique.
UNIQUE_ROWS = Criterion.from_figure("uniques")
# Seconds that a search may take without a word on its time beforehand.
SHORT_SEARCH = 10.0


def protect(
    table: Any,
    require: str | Criterion | Sequence[str | Criterion],
    *,
    hierarchies: Any = None,
    quasi_identifiers: Columns | None = None,
    sensitive: Columns | None = None,
    identifiers: Columns | None = None,
    pseudonymise: Columns | None = None,
    keep: Columns | None = None,
    attackers: Mapping[str, Knowledge] | None = None,
    distances: Mapping[Any, Any] | None = None,
    importance: Mapping[Hashable, float] | None = None,
    objective: str = "entropy",
    suppress: float = 0.0,
    cells: bool = False,
    time_limit: float | None = 600,
    roles: Any = None,
    population: Any = None,
    weights: Hashable = None,
    household: Hashable = None,
    game: Game | None = None,
    sampling_fraction: float | None = None,
    population_size: int | None = None,
    missing: str = "category",
) -> Protection:
    """Find the treatment with the least loss with which a table meets criteria.

    Each quasi-identifier is taken to a level of its hierarchy. Every combination of levels is a node of a lattice. The
    loss of a level is known before anything is measured: n H(X|X') bits for n rows, where X is the column and X' the
    column at that level. The search finds the node with the lowest sum of losses that meets all criteria. The table is
    then treated as that node says, and measured again.

    Parameters
    ----------
    table:
        A table of any kind, or a path, as in `gpupif.score`. Its distinct rows over the columns that are used have to
        fit into half of the memory that `config` allows. Missing values are a value of their own.
    require:
        Criteria, as text: ``"k>=5"``, ``"distinct_l(disease)>=3"``, ``"t<=0.2"``, ``"pif95<=3"``, ``"max csf<=0.9"``,
        ``"mean cig(income)<=0.5"``, ``"p99 cig<=8"``, ``"uniques<=0"``, ``"rows_below_k(5)<=100"``. A criterion limits
        any measure of `gpupif.score`, a figure of equivalence classes, or any number in the result of `gpupif.risk` by
        its path: ``"population.k_map>=5"``, ``"population.journalist.at_risk(0.2)<=0"`` (a threshold, or k if above 1),
        ``"presence.highest<=0.5"`` (the end of a path will do where only one path ends so). Put what the attacker knows
        before a colon: ``"known=3: k>=3"`` (any three of the columns), ``"known=age,sex: pif95<=3"``, or a name in
        `attackers`. Otherwise the attacker knows the quasi-identifiers without the scored column.
    hierarchies:
        Hierarchies by column, as in `gpupif.Plan`, or the path of a file of them. Missing ones are proposed.
    quasi_identifiers:
        Columns that are made coarser, and that the attacker knows. Default: all columns that are neither sensitive nor
        identifiers.
    sensitive:
        Columns that stay as they are, and that the attacker does not know. Disclosure measures such as ``t`` are of
        these columns. Their cells are scored, as the cells of the quasi-identifiers are.
    identifiers:
        Columns that name persons, such as ``read_roles(...).identifiers``. The plan drops them. An index of the table
        is named like a column.
    pseudonymise:
        Columns, among the identifiers or others, that get a pseudonym by a secret key instead of being dropped
        (`gpupif.treatments.Pseudonym`, "hmac"), for tables that are to be linked. Treat the table with ``key=`` then.
    keep:
        Columns, among the identifiers or others, that stay as they are although they name persons or look like it.
    attackers:
        ``{"neighbour": ["age", "sex"], "anyone": 2}``, as in `gpupif.score`.
    distances:
        How far values of sensitive columns are apart, as in `gpupif.score`, for ``t`` and ``emd``.
    importance:
        ``{column: importance}``, above 0: what a bit of the column is worth, or its loss in `objective`. Default 1.
    objective:
        What the search minimises instead of the loss in bits. "entropy": that loss, for which suppressed rows cost
        nothing. "entropy+suppression": they cost the entropy of their recoded values. "loss", "loss_gm": Iyengar's
        loss, 0 to 1, by the arithmetic or geometric mean over the columns. "precision": 1 - Sweeney's precision.
        "height": the sum of the levels. "discernibility" and "average_class_size" of equivalence classes.
        "utility(income)": the share of the information on a column that the quasi-identifiers lose, or with
        "utility(income, classify)" the share of the rows that they predict wrongly. The column must not be a
        quasi-identifier. `importance` weighs the columns where the objective is a sum over columns.
    suppress:
        Share of the rows, from 0 to below 1, that may be suppressed: rows of equivalence classes that break any
        criterion on classes (k, or a disclosure measure such as ``distinct_l`` or ``t``, without an attacker of its
        own). It needs such a criterion. All other criteria then hold for the rows that are left. The search compares
        classes with the whole table, suppressed rows among them, as ARX does (for ``t``, ``basic_beta``,
        ``enhanced_beta`` and ``delta``). `Protection.risk` compares them with the treated table, and may break the
        limit: `Protection.searched` has the values of the search, and the printed result says where both differ.
    cells:
        Suppress single cells instead of these rows, as few as make all criteria hold; if a criterion needs it, also
        cells of further rows. Whole rows are suppressed after all if these cells are in more rows than `suppress`
        allows (``.rows_with_cells``), or if no cells make all criteria hold (``.cells_unreached``).
    time_limit:
        Seconds after which no further node is checked (None: no limit). The result is then the best plan so far, and
        says how much cheaper another plan could be. The same happens when the user interrupts the search (Ctrl-C); a
        second Ctrl-C ends `protect` at once. If the search may take long, its time at worst is told beforehand.
    roles:
        Roles of the columns, as in `gpupif.read_roles`, or the path of a file of them. Roles say which columns are
        quasi-identifiers and which are sensitive, if no other argument says so. Every column needs a role.
    population, weights, household, game, sampling_fraction, population_size:
        As in `gpupif.risk`, for criteria on the numbers that it gives with them. The population is made coarser as the
        table is, by the same hierarchies. With weights, disclosure measures such as ``t`` are of sums of weights, ``k``
        still counts rows, and criteria on cells are refused. A sampling fraction is of the table as it is.
    missing:
        "category": missing values are a value of their own; or "wildcard": they match every value, in every criterion.

    Returns
    -------
    Protection
        ``.plan``, for `gpupif.treat`; its loss, in bits or the unit of the objective; ``.risk``, the value of each
        criterion in the treated table; ``.optimal``, ``.gap``, ``.frontier``. The result is the same for every kind of
        table and number of threads, unless a time limit ends the search.

    Raises
    ------
    InputError
        If a criterion cannot be read, a column or an attacker does not exist, hierarchies do not nest or lack a value,
        or the table is too large. If the population lacks rows of the table or has a value that has no place in a
        hierarchy, or a weight is negative. If no node meets the criteria: the message names them and the columns at
        fault.
    TableReadError, OutputError, DeviceError
        As in `gpupif.score`.
    KeyboardInterrupt
        If Ctrl-C ends the search before it has found a node that meets the criteria.

    Warns
    -----
    IdentifierWarning
        Columns and indexes that look like identifiers, or free text, in the first 10,000 rows, and that no argument
        names. A column without a value in these rows is looked at from its first value on, among 1,000,000 rows.
    NearlyUniqueWarning
        A quasi-identifier in which at least 90 % of the rows have different values.

    References
    ----------
    Loss: non-uniform entropy, Gionis & Tassa 2009, k-Anonymization with minimal loss of information. Lattice: Samarati
    2001, Protecting respondents' identities in microdata release; Kohlmayer et al. 2012, Flash. Which criteria prune:
    coarser values never raise a divergence (data processing inequality), so k, l, t, mean and maximal CIG do;
    percentiles (PIF) and CSF do not.

    Examples
    --------
    >>> import gpupif, pandas
    >>> people = pandas.DataFrame({"age": [23, 24, 26, 37, 38, 31], "sex": list("ffmmfm")})
    >>> found = gpupif.protect(people, "k>=3", hierarchies={"age": {"widths": [10]}})
    >>> found.levels, found.optimal
    ({'age': 1, 'sex': 1}, True)

    """
    clock = time.perf_counter
    began = clock()
    table, quasi_identifiers, sensitive, by_roles = classes_by_roles(table, quasi_identifiers, sensitive, roles)
    if by_roles is not None:
        if weights is None:
            by_roles.warn_of_weights()
        identifiers = identifiers_by_roles(table, identifiers, by_roles, quasi_identifiers, sensitive)
    request = ProtectRequest(
        criteria=read_criteria(require),
        hierarchies=open_hierarchies(hierarchies),
        quasi_identifiers=None
        if quasi_identifiers is None
        else as_columns("quasi_identifiers", quasi_identifiers, table),
        sensitive=[] if sensitive is None else as_columns("sensitive", sensitive, table),
        attackers=as_attackers(attackers) or {},
        distances=as_distances(distances),
        importance=as_importance(importance),
        suppress=as_share_of_rows(suppress),
        cells=cells,
        time_limit=as_seconds(time_limit),
        objective=as_objective(objective),
        identifiers=as_identifiers(table, identifiers, pseudonymise, keep),
        given=RiskArguments(population, weights, household, game, sampling_fraction, population_size),
        missing=missing,
    )
    names, labels = table_names(table)
    counted = CountedTable.from_table(table, request.columns(names, labels), "quasi_identifiers", request.named_by)
    criteria = request.on_table(counted)
    # `gpupif.risk` refuses wrong weights and households, and a population that lacks rows, before the search.
    measure_table(table, figures_of_risk(criteria))
    people = criteria.given.population
    if people is not None:
        columns = population_columns(criteria)
        counted = replace(counted, population=CountedTable.from_table(people.table, columns, "population"))
    used_hierarchies = with_proposed(request.hierarchies, counted, criteria.quasi_identifiers)
    levels = column_levels(counted, used_hierarchies)
    warn_of_unique([column.column for column in levels], counted.rows, argument="identifiers")
    others, coarser = request.not_named(names, labels)
    warn_of_identifiers(table, others, labels, coarser)
    engine = choose_engine(requested_device(counted.cells))
    seconds = {"read and count": clock() - began}
    most_suppressed = math.floor(request.suppress * counted.rows)
    suppression = Suppression(ClassCriteria.from_set(criteria), most_suppressed) if most_suppressed else None
    with Reporter() as report, announce_compilation():
        began = clock()
        before = criteria.measure(counted, engine)
        unique_before = criteria.with_criteria([UNIQUE_ROWS]).measure(counted, engine)[0].value
        report.stage("search", None, "checks")

        def show_check(left: int, loss: float) -> None:
            report.rename(f"search, {short(left)}left")
            report.advance()

        with NodeChecks(counted, levels, criteria, engine, suppression) as checks:
            deadline = math.inf if request.time_limit is None else time.monotonic() + request.time_limit
            minimised = request.objective.kind(
                levels,
                request.importance,
                [used_hierarchies[column.name] for column in levels],
                counted.rows,
                checks,
                suppression is not None,
                next((name for name in counted.names if str(name) == request.objective.column), None),
                request.objective.task,
            )
            nodes = count_nodes([column.height for column in levels])
            if checks.selects:
                began_check = clock()
                criteria.measure(counted, engine)
                _tell_time(report, nodes, clock() - began_check, request.time_limit)
            with first_interrupt() as is_interrupted:
                bounds = minimised.bounds(lambda: is_interrupted() or time.monotonic() >= deadline)
                search = LatticeSearch(
                    bounds.sums,
                    checks.holds if checks.prunes else None,
                    checks.failing,
                    checks.is_met if checks.selects else None,
                    deadline,
                    show_check,
                    minimised.pricing,
                    bounds.floors,
                    is_interrupted,
                )
                best = search.run()
            stopped_by = None
            if not best.complete and search.is_over:
                stopped_by = "Ctrl-C" if is_interrupted() else "time limit"
            if best.node is None and is_interrupted():
                checked = f"{search.checked:,} {plural(search.checked, 'check')}"
                raise KeyboardInterrupt(f"no treatment that meets the criteria was found in {checked}")
            if is_interrupted():
                report.say("interrupted: the best plan so far is kept, and measured. Ctrl-C again ends at once.")
            if best.node is None:
                _refuse_no_plan(best, search, checks, levels, criteria, counted)
            suppressed = checks.suppressed_rows(best.node)
            # After the time limit no node is priced, as none is checked.
            shown = [node for node in checks.values if node in search.prices or not search.is_over]
            losses = {node: minimised.value(search.price(node).cost) for node in shown}
            frontier = find_frontier(checks.values, losses, levels, criteria)
            highest_loss = minimised.value(search.price(tuple(column.height for column in levels)).floor)
        seconds["search"] = clock() - began
        began = clock()
        chosen = {column.name: level for column, level in zip(levels, best.node, strict=True)}
        recoding = [Recode(name, level=level) for name, level in chosen.items() if level]
        recoded = {name: used_hierarchies[name] for name, level in chosen.items() if level}
        report.stage("measure again", None, "")
        after: TreatedRisk | None = None
        rows_with_cells, cells_unreached = None, False
        searched: list[CriterionValue] = []
        if request.cells and suppressed:
            plan = Plan([*recoding, _suppress_cells(request, criteria, counted, recoded)], recoded)
            try:
                after = measure_treated(table, plan, criteria, cells=True)
            except UnreachableError:
                cells_unreached = True
            else:
                if not all(value.is_met for value in after.values):
                    cells_unreached, after = True, None
                elif after.rows > most_suppressed:
                    rows_with_cells, after = after.rows, None
        if after is None:
            rows = [_suppress_rows(request, criteria, counted)] if suppressed else []
            plan = Plan([*recoding, *rows], recoded)
            after = measure_treated(table, plan, criteria)
            if suppressed:
                searched = [checks.values[best.node][own] for own in ClassCriteria.from_set(criteria).criteria]
        seconds["treat and measure again"] = clock() - began
    loss, bound = minimised.value(best.loss), minimised.value(best.bound)
    return Protection(
        plan=Plan([*identifier_treatments(request.identifiers), *plan.treatments], plan.hierarchies),
        rows=counted.rows,
        suppressed_rows=after.rows,
        suppressed_cells=after.cells,
        rows_with_cells=rows_with_cells,
        cells_unreached=cells_unreached,
        levels=chosen,
        heights={column.name: column.height for column in levels},
        losses={column.name: column.losses[chosen[column.name]] for column in levels},
        objective=str(request.objective),
        unit=minimised.unit,
        loss=loss,
        loss_share=loss / highest_loss if highest_loss else 0.0,
        highest_loss=highest_loss,
        risk=after.values,
        before=before,
        smallest_class=after.smallest_class,
        unique_rows=after.unique_rows,
        unique_rows_before=int(unique_before or 0),
        searched=searched,
        checks=search.checked,
        nodes=nodes,
        optimal=best.complete,
        gap=0.0 if best.complete or not loss else (loss - bound) / loss,
        stopped_by=stopped_by,
        frontier=frontier,
        proposed=[name for name in used_hierarchies if name not in request.hierarchies],
        identifiers=request.identifiers,
        device=engine.device,
        seconds=seconds,
        attacker=attacker_line(criteria.quasi_identifiers, criteria.scored),
    )


def _tell_time(report: Reporter, nodes: int, seconds: float, limit: float | None) -> None:
    """Say before a search how long it takes at worst, if that is long.

    seconds: of one check, in which all distinct rows are scored. limit: the time limit in seconds, None for none.
    """
    worst = seconds * nodes
    if worst < SHORT_SEARCH:
        return
    ends = "" if limit is None or limit > worst else f" It ends after {limit:g} s, the time limit, with the best plan."
    report.say(
        f"the search may have to score each of {nodes:,} nodes, in up to {seconds:.2g} s each: {_duration(worst)} at "
        f"worst.{ends} Ctrl-C keeps the best plan so far."
    )


def _duration(seconds: float) -> str:
    """Return a time in its largest unit, such as "2.5 hours"."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _suppress_cells(
    request: ProtectRequest, criteria: CriterionSet, table: CountedTable, recoded: Mapping[Hashable, Any]
) -> Suppress:
    """Return the treatment that suppresses single cells until all criteria hold. recoded: by recoded column."""
    known = list(criteria.quasi_identifiers)
    return Suppress(
        columns=known,
        require=[str(criterion) for criterion in request.criteria],
        quasi_identifiers=known,
        sensitive=list(request.sensitive) or None,
        attackers=request.attackers or None,
        importance=dict(request.importance) or None,
        distances=_distances(request, table, [name for name in criteria.scored if name not in recoded]),
    )


def _suppress_rows(request: ProtectRequest, criteria: CriterionSet, table: CountedTable) -> SuppressRows:
    """Return the treatment that suppresses the rows of classes that break a criterion on classes."""
    known, own = list(criteria.quasi_identifiers), ClassCriteria.from_set(criteria)
    if not own.models:
        return SuppressRows(k=own.k, quasi_identifiers=known)
    return SuppressRows(
        require=[str(criterion) for criterion in own.criteria],
        quasi_identifiers=known,
        sensitive=own.columns,
        distances=_distances(request, table, own.columns),
    )


def _distances(request: ProtectRequest, table: CountedTable, columns: Sequence[Hashable]) -> dict[Hashable, Any] | None:
    """Return how far values of some columns are apart, as given or by the order of their categories; None for none."""
    distances = {**{name: list(order) for name, order in table.orders.items()}, **request.distances}
    return {name: distances[name] for name in columns if name in distances} or None


def _refuse_no_plan(
    best: SearchResult,
    search: LatticeSearch,
    checks: NodeChecks,
    levels: Sequence[ColumnLevels],
    criteria: CriterionSet,
    table: CountedTable,
) -> NoReturn:
    """Raise UnreachableError if no node meets the criteria, and InputError if the search ended before it was sure."""
    top = tuple(column.height for column in levels)
    failing = [value for value in checks.values_of_all_rows(top) if not value.is_met]
    listed = " ".join(_why_not_met(value, criteria, table) for value in failing)
    checked = f"{search.checked:,} {plural(search.checked, 'check')}"
    if not best.complete:
        said = f"no treatment was found that meets the criteria, in {checked}."
        advice = (
            f"time_limit: {said} Raise it, or relax a criterion."
            if search.is_over
            else f"require: {said} There are too many nodes to look at all. Relax a criterion, or give fewer levels in "
            "hierarchies=."
        )
        raise InputError(f"{advice} {listed}".rstrip())
    if not failing:
        listed = f"Together they are not met at any node, in {checked}."
    raise UnreachableError(f"require: no treatment meets the criteria. {listed}")


def _why_not_met(value: CriterionValue, criteria: CriterionSet, table: CountedTable) -> str:
    """Return why a criterion is not met with all columns at their top, in a sentence."""
    criterion = value.criterion
    known = criteria.known(criterion)
    names: Sequence[Hashable] = list(known.pool or ()) if isinstance(known, AnyKnown) else known
    fixed = [name for name in names if name not in criteria.quasi_identifiers and name != value.column]
    came = "not defined" if value.value is None else as_cell(value.value)
    said = f"{str(criterion)!r} is not even met with each quasi-identifier at its top level: it is {came}"
    of_values = not (isinstance(criterion.quantity, ScoreQuantity) and criterion.quantity.is_of_size)
    if of_values and value.column is not None and value.column not in criteria.quasi_identifiers:
        return (
            f"{said} in column {value.column!r}. The column is sensitive and stays as it is, with "
            f"{_distribution(value.column, table)}. Relax the criterion, or make the column coarser before."
        )
    if fixed:
        return (
            f"{said}. The attacker knows column {', '.join(map(repr, fixed))}, which the plan does not change. Name it "
            "in quasi_identifiers=, or relax the criterion."
        )
    return f"{said}. The table has {table.rows:,} {plural(table.rows, 'row')}. Relax the criterion."


def _distribution(name: Hashable, table: CountedTable) -> str:
    """Return how many values a column has, and how common the most common one is, in words."""
    column = table.columns[table.place(name)]
    most = int(column.counts.argmax())
    share = int(column.counts[most]) / table.rows
    value = column.values([most])[0]
    shown = "missing values" if value is None else repr(value)
    values = f"{column.cardinality:,} different {plural(column.cardinality, 'value')}"
    return f"{values}, {shown} in {100 * share:.3g} % of the rows"
