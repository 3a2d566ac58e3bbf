"""The public `protect`: the least treatment with which a table meets targets."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ..attack.arguments import Knowledge
from ..attack.request import warn_of_unique
from ..engines.choose import choose_engine, requested_device
from ..targets.counted import CountedTable
from ..targets.target import Target
from ..utils.progress import Reporter, announce_compilation, short
from .checks import Checks
from .lattice import size_of
from .levels import levels_of
from .measured_again import measured_again
from .request import ProtectRequest
from .result import Protection, frontier_of
from .search import Search
from .unreachable import refuse_no_plan


def protect(
    table: Any,
    targets: str | Target | Sequence[str | Target],
    *,
    hierarchies: Any = None,
    quasi_identifiers: Any = None,
    sensitive: Any = None,
    attackers: Mapping[str, Knowledge] | None = None,
    distances: Mapping[Any, Any] | None = None,
    weights: Mapping[Hashable, float] | None = None,
    suppress: float = 0.0,
    cells: bool = False,
    time_limit: float | None = 600,
) -> Protection:
    """Find the treatment that costs least of those with which a table meets targets.

    Each quasi-identifier is taken to a level of its hierarchy; every combination of levels is a node of a lattice. What
    a level loses is known before anything is measured: n H(X|X') bits, of n rows, X being the column and X' it at that
    level. The node with the lowest sum, over the columns, that meets all targets is looked for, and the table treated
    as it says and measured again.

    Parameters
    ----------
    table:
        A table of any kind, or a path, as of `gpupif.score`. Its different rows over the columns that are used have to
        fit into half of the memory that `config` allows. Missing values are a value of their own.
    targets:
        Limits on risk, as text: ``"k>=5"``, ``"distinct_l(disease)>=3"``, ``"t<=0.2"``, ``"pif95<=3"``, ``"max
        csf<=0.9"``, ``"mean cig(income)<=0.5"``, ``"p99 cig<=8"``, ``"uniques<=0"``, ``"rows_below_k(5)<=100"``; any
        measure of `gpupif.score`, of `gpupif.risk`, or figure of classes. Before a colon what the attacker knows:
        ``"known=3: k>=3"`` (any three of the columns), ``"known=age,sex: pif95<=3"``, or the name of one of
        `attackers`. Else he knows the quasi-identifiers, and where cells are scored all columns but the scored one.
    hierarchies:
        By column, as of `gpupif.Plan`, or the path of a file of them. Those that are missing are proposed.
    quasi_identifiers:
        Columns that are made coarser; default all that are not sensitive.
    sensitive:
        Columns that stay as they are: what disclosure measures such as ``t`` are of. Cells of both are scored.
    attackers:
        ``{"neighbour": ["age", "sex"], "anyone": 2}``, as of `gpupif.score`.
    distances:
        As of `gpupif.score`, for ``t`` and ``emd``.
    weights:
        ``{column: importance}``, above 0: what a bit of the column is worth; default 1.
    suppress:
        Share of the rows, from 0 to below 1, that may be suppressed: those in classes of fewer than k rows, with a
        target on k. All other targets are then of the rows that are left.
    cells:
        Suppress single cells in place of these rows, as few as make all targets hold, of further rows too where a
        target needs it. Where that would be in more rows than `suppress` allows, these whole rows are suppressed after
        all: ``.rows_with_cells`` is then how many it would have been.
    time_limit:
        Seconds after which no further node is checked (None: no limit): the best one that was found is then the result,
        with how much cheaper another one may be. So it is where the search is broken off (Ctrl-C).

    Returns
    -------
    Protection
        ``.plan``, for `gpupif.treat`; its loss, in bits; ``.risk``, what the treated table has of each target;
        ``.optimal``, ``.gap``, ``.frontier``. The same for every kind of table and number of threads; with a time limit
        that ends the search it depends on how fast that was.

    Raises
    ------
    InputError
        What is no target; a column or an attacker that is not there; hierarchies that do not nest or lack a value; a
        table too large; targets that no node meets: which of them, and what stands in the way.
    TableReadError, OutputError, DeviceError
        As of `gpupif.score`.

    References
    ----------
    Loss: non-uniform entropy, Gionis & Tassa 2009, k-Anonymization with minimal loss of information. Lattice: Samarati
    2001, Protecting respondents' identities in microdata release; Kohlmayer et al. 2012, Flash. Which targets prune:
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
    request = ProtectRequest.of(
        table,
        targets,
        hierarchies=hierarchies,
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        attackers=attackers,
        distances=distances,
        weights=weights,
        suppress=suppress,
        cells=cells,
        time_limit=time_limit,
    )
    counted = CountedTable.of(table, request.columns, "quasi_identifiers", request.named_by)
    asked = request.on(counted)
    levels = levels_of(counted, asked.hierarchies)
    warn_of_unique([one.coded.column for one in levels], counted.rows)
    engine = choose_engine(requested_device(counted.cells))
    seconds = {"read and count": clock() - began}
    costs = [[asked.weight(one.name) * loss for loss in one.losses] for one in levels]
    with Reporter() as report, announce_compilation():
        began = clock()
        report.stage("search", None, "checks")

        def done(left: int, loss: float) -> None:
            report.rename(f"search, {short(left)}left")
            report.advance()

        with Checks(counted, levels, asked.targets, engine, asked.suppression(counted.rows)) as checks:
            search = Search(costs, checks, asked.deadline(), done)
            found = search.run()
            if found.node is None:
                refuse_no_plan(found, search, checks, levels, asked.targets, counted)
            suppressed = checks.suppressed_rows(found.node)
            frontier = frontier_of(checks.values, costs, levels, asked.targets)
        before = asked.targets.measure(counted, engine)
        seconds["search"] = clock() - began
        began = clock()
        chosen = {one.name: level for one, level in zip(levels, found.node, strict=True)}
        cells = asked.cells and bool(suppressed)
        report.stage("measure again", None, "")
        plan = asked.plan(chosen, suppressed, cells)
        after, refused = measured_again(table, plan, asked.targets, cells), None
        if cells and not asked.allows(after.rows, counted.rows):
            plan, refused = asked.plan(chosen, suppressed, cells=False), after.rows
            after = measured_again(table, plan, asked.targets)
        seconds["treat and measure again"] = clock() - began
    most = sum(one[-1] for one in costs)
    return Protection(
        plan=plan,
        rows=counted.rows,
        suppressed_rows=after.rows,
        suppressed_cells=after.cells,
        rows_with_cells=refused,
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
        device=engine.device,
        seconds=seconds,
    )
