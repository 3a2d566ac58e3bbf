"""The public `protect`: the least treatment with which a table meets criteria."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ..attack.any_known import attacker_line
from ..attack.arguments import Knowledge
from ..attack.request import warn_of_unique
from ..attack.roles import classes_by_roles
from ..criteria.counted import CountedTable
from ..criteria.criterion import Criterion
from ..engines.choose import choose_engine, requested_device
from ..errors import UnreachableError
from ..frames.open import table_names
from ..treatment.plan import Plan
from ..utils.progress import Reporter, announce_compilation, short
from ..utils.validation import Columns
from .checks import Checks
from .identifiers import identifiers_by_roles, treatments_of, warn_of_identifiers
from .lattice import size_of
from .levels import levels_of
from .measured_again import Measured, measured_again
from .request import ProtectRequest
from .result import Protection, frontier_of
from .search import Search
from .unreachable import refuse_no_plan


def protect(
    table: Any,
    criteria: str | Criterion | Sequence[str | Criterion],
    *,
    hierarchies: Any = None,
    quasi_identifiers: Columns | None = None,
    sensitive: Columns | None = None,
    identifiers: Columns | None = None,
    pseudonymise: Columns | None = None,
    keep: Columns | None = None,
    attackers: Mapping[str, Knowledge] | None = None,
    distances: Mapping[Any, Any] | None = None,
    weights: Mapping[Hashable, float] | None = None,
    suppress: float = 0.0,
    cells: bool = False,
    time_limit: float | None = 600,
    roles: Any = None,
) -> Protection:
    """Find the treatment that costs least of those with which a table meets criteria.

    Each quasi-identifier is taken to a level of its hierarchy; every combination of levels is a node of a lattice. What
    a level loses is known before anything is measured: n H(X|X') bits, of n rows, X being the column and X' it at that
    level. The node with the lowest sum, over the columns, that meets all criteria is looked for, and the table treated
    as it says and measured again.

    Parameters
    ----------
    table:
        A table of any kind, or a path, as of `gpupif.score`. Its different rows over the columns that are used have to
        fit into half of the memory that `config` allows. Missing values are a value of their own.
    criteria:
        Limits on risk, as text: ``"k>=5"``, ``"distinct_l(disease)>=3"``, ``"t<=0.2"``, ``"pif95<=3"``, ``"max
        csf<=0.9"``, ``"mean cig(income)<=0.5"``, ``"p99 cig<=8"``, ``"uniques<=0"``, ``"rows_below_k(5)<=100"``; any
        measure of `gpupif.score`, of `gpupif.risk`, or figure of classes. Before a colon what the attacker knows:
        ``"known=3: k>=3"`` (any three of the columns), ``"known=age,sex: pif95<=3"``, or the name of one of
        `attackers`. Else the attacker knows the quasi-identifiers, but not the column that is scored.
    hierarchies:
        By column, as of `gpupif.Plan`, or the path of a file of them. Those that are missing are proposed.
    quasi_identifiers:
        Columns that are made coarser, and that the attacker knows; default all that are neither sensitive nor
        identifiers.
    sensitive:
        Columns that stay as they are, and that the attacker does not know: what disclosure measures such as ``t`` are
        of. Cells of both are scored.
    identifiers:
        Columns that name persons, such as ``read_roles(...).identifiers``. The plan drops them. An index of the table
        is named as a column is.
    pseudonymise:
        Columns, among the identifiers or others, that get a pseudonym by a secret key in place of being dropped
        (`gpupif.treatments.Pseudonym`, "hmac"), for tables that are to be linked: treat the table with ``key=``.
    keep:
        Columns, among the identifiers or others, that stay as they are although they name persons or look like it.
    attackers:
        ``{"neighbour": ["age", "sex"], "anyone": 2}``, as of `gpupif.score`.
    distances:
        As of `gpupif.score`, for ``t`` and ``emd``.
    weights:
        ``{column: importance}``, above 0: what a bit of the column is worth; default 1.
    suppress:
        Share of the rows, from 0 to below 1, that may be suppressed: those in classes of fewer than k rows, with a
        criterion on k. All other criteria are then of the rows that are left.
    cells:
        Suppress single cells in place of these rows, as few as make all criteria hold, of further rows too where a
        criterion needs it. Whole rows are suppressed after all if these cells would be in more rows than `suppress`
        allows (``.rows_with_cells`` of them), or if no cells make all criteria hold (``.cells_unreached``).
    time_limit:
        Seconds after which no further node is checked (None: no limit): the best one that was found is then the result,
        with how much cheaper another one may be. So it is where the search is broken off (Ctrl-C).
    roles:
        Roles of the columns, as of `gpupif.read_roles`, or the path of a file of them, for what no other argument says:
        which are quasi-identifiers and which are sensitive. Every column of the table needs a role.

    Returns
    -------
    Protection
        ``.plan``, for `gpupif.treat`; its loss, in bits; ``.risk``, what the treated table has of each criterion;
        ``.optimal``, ``.gap``, ``.frontier``. The same for every kind of table and number of threads; with a time limit
        that ends the search it depends on how fast that was.

    Raises
    ------
    InputError
        What is no criterion; a column or an attacker that is not there; hierarchies that do not nest or lack a value; a
        table too large; criteria that no node meets: which of them, and what stands in the way.
    TableReadError, OutputError, DeviceError
        As of `gpupif.score`.

    Warns
    -----
    IdentifierWarning
        Columns that look like identifiers, or free text, in the first 10,000 rows, and that no argument names; indexes
        likewise. A column without a value in these rows is looked at from its first value on, among 1,000,000 rows.
    NearlyUniqueWarning
        A quasi-identifier in which at least 90 % of the rows have different values.

    References
    ----------
    Loss: non-uniform entropy, Gionis & Tassa 2009, k-Anonymization with minimal loss of information. Lattice: Samarati
    2001, Protecting respondents' identities in microdata release; Kohlmayer et al. 2012, Flash. Which criteria prune:
    coarser values never raise a divergence (data processing), so k, l, t, mean and maximal CIG do; percentiles
    (PIF) and CSF do not.

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
        by_roles.warn_of_weights()
        identifiers = identifiers_by_roles(table, identifiers, by_roles, quasi_identifiers, sensitive)
    request = ProtectRequest.of(
        table,
        criteria,
        hierarchies=hierarchies,
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        attackers=attackers,
        distances=distances,
        weights=weights,
        suppress=suppress,
        cells=cells,
        time_limit=time_limit,
        identifiers=identifiers,
        pseudonymise=pseudonymise,
        keep=keep,
    )
    names, labels = table_names(table)
    counted = CountedTable.of(table, request.columns(names, labels), "quasi_identifiers", request.named_by)
    asked = request.on(counted)
    levels = levels_of(counted, asked.hierarchies)
    warn_of_unique([one.coded.column for one in levels], counted.rows)
    others, coarser = request.not_named(names, labels)
    warn_of_identifiers(table, others, labels, coarser)
    engine = choose_engine(requested_device(counted.cells))
    seconds = {"read and count": clock() - began}
    costs = [[asked.weight(one.name) * loss for loss in one.losses] for one in levels]
    with Reporter() as report, announce_compilation():
        began = clock()
        report.stage("search", None, "checks")

        def done(left: int, loss: float) -> None:
            report.rename(f"search, {short(left)}left")
            report.advance()

        with Checks(counted, levels, asked.criteria, engine, asked.suppression(counted.rows)) as checks:
            search = Search(costs, checks, asked.deadline(), done)
            found = search.run()
            if found.node is None:
                refuse_no_plan(found, search, checks, levels, asked.criteria, counted)
            suppressed = checks.suppressed_rows(found.node)
            frontier = frontier_of(checks.values, costs, levels, asked.criteria)
        before = asked.criteria.measure(counted, engine)
        seconds["search"] = clock() - began
        began = clock()
        chosen = {one.name: level for one, level in zip(levels, found.node, strict=True)}
        cells = asked.cells and bool(suppressed)
        report.stage("measure again", None, "")
        by_cells: Measured | None = None
        rows_with_cells: int | None = None
        if cells:
            plan = asked.plan(chosen, suppressed, cells=True)
            try:
                found_by_cells = measured_again(table, plan, asked.criteria, cells=True)
            except UnreachableError:
                pass
            else:
                if asked.allows(found_by_cells.rows, counted.rows):
                    by_cells = found_by_cells
                else:
                    rows_with_cells = found_by_cells.rows
        if by_cells is None:
            plan = asked.plan(chosen, suppressed, cells=False)
        after = by_cells or measured_again(table, plan, asked.criteria)
        seconds["treat and measure again"] = clock() - began
    most = sum(one[-1] for one in costs)
    return Protection(
        plan=Plan([*treatments_of(request.identifiers), *plan.treatments], plan.hierarchies),
        rows=counted.rows,
        suppressed_rows=after.rows,
        suppressed_cells=after.cells,
        rows_with_cells=rows_with_cells,
        cells_unreached=cells and by_cells is None and rows_with_cells is None,
        levels=chosen,
        heights={one.name: one.height for one in levels},
        losses={one.name: one.losses[level] for one, level in zip(levels, found.node, strict=True)},
        loss=found.loss,
        loss_share=found.loss / most if most else 0.0,
        risk=after.values,
        before=before,
        checks=search.checked,
        nodes=size_of([one.height for one in levels]),
        optimal=found.complete,
        gap=0.0 if found.complete or not found.loss else (found.loss - found.bound) / found.loss,
        frontier=frontier,
        proposed=asked.proposed,
        identifiers=request.identifiers,
        device=engine.device,
        seconds=seconds,
        attacker=attacker_line(asked.criteria.quasi_identifiers, asked.criteria.scored),
    )
