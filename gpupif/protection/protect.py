"""The public `protect`: the treatment with the least loss with which a table meets criteria."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..attack.arguments import Knowledge, as_attackers
from ..attack.roles import classes_by_roles
from ..criteria.criterion import Criterion, read_criteria
from ..disclosure.attack_game import Game
from ..disclosure.risk_figures import RiskArguments
from ..errors import UnmetError
from ..hierarchies.open import open_hierarchies
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns, as_columns
from .counted_request import CountedRequest
from .identifiers import as_identifiers, identifiers_by_roles
from .measured_plan import measure_plan
from .node_checks import NodeChecks
from .node_search import NodeSearch
from .objectives import as_objective
from .request import ProtectRequest, as_distances, as_importance, as_seconds, as_share_of_rows
from .result import Protection


def protect(
    table: Any,
    require: str | Criterion | Sequence[str | Criterion],
    *,
    hierarchies: Any = None,
    quasi_identifiers: Columns | None = None,
    sensitive: Columns | None = None,
    strata: Columns | None = None,
    identifiers: Columns | None = None,
    pseudonymise: Columns | None = None,
    keep: Columns | None = None,
    attackers: Mapping[str, Knowledge] | None = None,
    distances: Mapping[Any, Any] | None = None,
    importance: Mapping[Hashable, float] | None = None,
    objective: str = "entropy",
    suppress: float = 0.0,
    cells: bool = False,
    local: bool = False,
    time_limit: float | None = 600,
    roles: Any = None,
    population: Any = None,
    weights: Hashable = None,
    household: Hashable = None,
    game: Game | None = None,
    sampling_fraction: float | None = None,
    population_size: int | None = None,
    missing: str = "category",
    reference: str = "released",
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
    strata:
        Columns that the attacker knows, and that stay as they are, such as a region. Classes are counted within strata:
        criteria hold in each stratum. Distributions, as of ``t``, are those of the whole table. Every attacker has to
        know the strata.
    identifiers:
        Columns that name persons, such as ``read_roles(...).identifiers``. The plan drops them, also
        those by which risk is measured, as by `household`. An index of the table is named like a column.
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
        criterion on classes (k, or a disclosure measure such as ``distinct_l`` or ``t``), of any attacker. It needs
        such a criterion. Rows are suppressed attacker by attacker; then the classes of the rows that are left are
        judged again, until no row fails. A node counts if no more rows are suppressed than allowed, and the rows that
        are left meet all criteria. If missing values match every value, the class of a row is all rows that match it.
    cells:
        Suppress single cells instead of these rows, as few as make all criteria hold; if a criterion needs it, also
        cells of further rows. Whole rows are suppressed after all if these cells are in more rows than `suppress`
        allows (``.rows_with_cells``), or if no cells make all criteria hold (``.cells_unreached``). Criteria then hold
        in both readings of missing values, unless `missing` is "wildcard". No criterion may need a population.
    local:
        Local recoding: recode rows further that `suppress` would suppress at the best node, in rounds
        (`gpupif.treatments.RecodeRows`). Each round takes the node at which the rows that are left lose the least bits,
        weighed by importance, rows of classes that break a criterion losing all. The next round is of these rows. Rows
        in such classes at every node are suppressed. The best node itself is found as without `local`. All criteria
        have to be on classes, of any attacker; with missing values that match every value, on k.
        ``.local`` has the rounds and their loss.
    time_limit:
        Seconds after which no further node is checked (None: no limit). The result is then the best plan so far, and
        says how much cheaper another plan could be. The same happens when the user interrupts the search (Ctrl-C). A
        Ctrl-C while the treated table is measured keeps the plan, too; ``.risk`` is then empty. If the rest of the
        search may take long, its time at worst is told.
    roles:
        Roles of the columns, as in `gpupif.read_roles`, or the path of a file of them. Roles say which columns are
        quasi-identifiers, which are sensitive, and which has the weights, if no other argument says so. Every column
        needs a role.
    population, weights, household, game, sampling_fraction, population_size:
        As in `gpupif.risk`, for criteria on the numbers that it gives with them. The population is made coarser as the
        table is, by the same hierarchies. With weights, disclosure measures such as ``t`` and scores of cells
        are of sums of weights, ``k`` still counts rows. A sampling fraction is of the table as it is.
    missing:
        "category": missing values are a value of their own; "wildcard": they match every value, in every criterion;
        "error": they are refused, in the columns that are used.
    reference:
        With suppress: the rows with which ``t``, ``basic_beta``, ``enhanced_beta`` and ``delta`` compare each class.
        "released": the rows that are left. The worse half of the failing classes is suppressed first, then the others
        are judged again. "original": all rows, suppressed rows among them, as in ARX. `Protection.searched` then has
        the values of the search, and the treated table, which is compared with itself, may break a limit.

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
        hierarchy, or a weight is negative.
    UnmetError
        If no node meets the criteria, none was found in time, or the treated table breaks one. The message names the
        criteria and the columns at fault; ``.nearest`` is the Protection that came nearest.
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
    table, quasi_identifiers, sensitive, by_roles = classes_by_roles(table, quasi_identifiers, sensitive, roles)
    if by_roles is not None:
        weights = by_roles.weight if weights is None else weights
        identifiers = identifiers_by_roles(table, identifiers, by_roles, quasi_identifiers, sensitive)
    within = [] if strata is None else as_columns("strata", strata, table)
    request = ProtectRequest(
        criteria=read_criteria(require),
        hierarchies=open_hierarchies(hierarchies),
        quasi_identifiers=None
        if quasi_identifiers is None
        else list(dict.fromkeys([*as_columns("quasi_identifiers", quasi_identifiers, table), *within])),
        sensitive=[] if sensitive is None else as_columns("sensitive", sensitive, table),
        attackers=as_attackers(attackers) or {},
        distances=as_distances(distances),
        importance=as_importance(importance),
        suppress=as_share_of_rows(suppress),
        cells=cells,
        local=local,
        time_limit=as_seconds(time_limit),
        objective=as_objective(objective),
        identifiers=as_identifiers(table, identifiers, pseudonymise, keep),
        given=RiskArguments(population, weights, household, game, sampling_fraction, population_size),
        missing=missing,
        strata=within,
        reference=reference,
    )
    return _find_protection(table, request)


def _find_protection(table: Any, request: ProtectRequest) -> Protection:
    """Search for the best node, treat the table as it says, and measure the table before and after."""
    times = [time.perf_counter()]
    asked = CountedRequest.from_table(table, request)
    times.append(time.perf_counter())
    with Reporter() as report, announce_compilation():
        with NodeChecks(asked.counted, asked.levels, asked.criteria, asked.engine, asked.suppression) as checks:
            found = NodeSearch(asked, report, checks).run()
        times.append(time.perf_counter())
        report.stage("measure again", None, "")
        measured = measure_plan(asked, found, report)
        times.append(time.perf_counter())
    stages = ("read and count", "search", "treat and measure again")
    seconds = {stage: end - start for stage, (start, end) in zip(stages, pairwise(times), strict=True)}
    measured = replace(measured, seconds=seconds)
    if measured.unmet is not None:
        error = UnmetError(measured.unmet)
        error.nearest = measured
        raise error
    return measured
