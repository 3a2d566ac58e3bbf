"""The public `advise`: what dropping and coarsening each column of a table buys, and what it costs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..attack.arguments import Knowledge
from ..attack.known_subsets import AnyKnown, Known, as_attackers, attacker_line
from ..attack.request import warn_of_unique
from ..attack.roles import classes_by_roles
from ..criteria.counted import CountedTable
from ..criteria.criterion import Criterion
from ..criteria.criterion_set import CriterionSet, named_by_attackers
from ..criteria.quantities import OfClasses, OfModel, OfScores
from ..disclosure.class_risks import CLASS_FIGURES
from ..disclosure.models import MODELS
from ..engines.base import Engine
from ..engines.choose import choose_engine, requested_device
from ..errors import InputError
from ..hierarchies.base import Hierarchy
from ..hierarchies.open import open_hierarchies
from ..hierarchies.proposals import propose_hierarchy
from ..marginals.request import CountRequest
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns, as_columns, check_exist
from .advice import Advice, Change, rank
from .checks import Checks
from .levels import ColumnLevels, levels_of

# What is measured in any case; of the row gains the mean, which makes the FIG of all columns.
MEASURED = {
    "pif95": Criterion(OfScores(None, 95.0), math.inf),
    "fig": Criterion(OfScores(None, None), math.inf),
    "k": Criterion(OfModel(MODELS["k"]), -math.inf),
    "uniques": Criterion(OfClasses(CLASS_FIGURES["unique_rows"]), math.inf),
}


def advise(
    table: Any,
    hierarchies: Any = None,
    criterion: str = "pif95",
    *,
    columns: Columns | None = None,
    quasi_identifiers: Columns | None = None,
    sensitive: Columns | None = None,
    attackers: Mapping[str, Knowledge] | None = None,
    distances: Mapping[Any, Any] | None = None,
    roles: Any = None,
) -> Advice:
    """Rank what dropping each column, or making it coarser, buys: less risk per bit of information given up.

    Each column is dropped, and taken to each level of its hierarchy, one change at a time, and the table measured
    again. A column that is dropped is neither scored nor known. What is given up is the entropy that the column has
    less, H(X) - H(X'), in bits per row.

    Parameters
    ----------
    table:
        As of `gpupif.score`: a pandas, Polars or cuDF DataFrame, a pyarrow Table, the path of a file, a folder or a
        pattern, or a Dask DataFrame, which is computed at once. Its different rows have to fit into half of the memory
        that `gpupif.config` allows. Missing values are a value of their own.
    hierarchies:
        By column its hierarchy, or the path of a file of them, as of `gpupif.protect`. Those that are missing are
        proposed, from the values of the column: numbers in intervals, dates, codes by their first digits, rare values
        pooled. The top level, at which all values are one, is what dropping is, and not tried.
    criterion:
        The figure that is to be less risky, as a criterion of `gpupif.protect` has it, with or without a limit:
        "pif95", "k", "max csf", "mean cig(income)", "distinct_l(disease)", "known=3: k".
    columns:
        The columns to look at, all of which are scored, and known; default all. With `roles`, these say which of the
        columns are known.
    quasi_identifiers:
        In place of `columns`: those that an attacker knows, of whom the criterion says nothing else. Classes (``k``,
        ``uniques``) are over these. They are scored, too.
    sensitive:
        Further columns that are scored, and not known: sensitive attributes. Default none; without `quasi_identifiers`
        all other columns are these.
    attackers:
        By name what each knows, as of `gpupif.score`, also of other columns, for a criterion such as "neighbour:
        pif95".
    distances:
        How far the values of a column are apart, as of `gpupif.score`, for a criterion of t or emd.
    roles:
        Roles of the columns, as of `gpupif.read_roles`, or the path of a file of them, for what no other argument says:
        which are quasi-identifiers and which are sensitive. Every column of the table needs a role.

    Returns
    -------
    Advice
        ``.changes``, a pandas DataFrame with a row for each change, the one that buys most per bit first; ``.before``,
        the figures of the table as it is. Prints as a table; ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        No rows, unknown columns (ColumnNotFoundError), a criterion that is none, or of what is not there, a value
        without a place in its hierarchy, levels that do not nest, too little memory.
    TableReadError
        A file that cannot be read, or changes meanwhile.
    DeviceError
        A GPU that was asked for (`gpupif.config`) and cannot be used, or that fails.

    Warns
    -----
    NearlyUniqueWarning
        A column in which at least 90 % of the rows have different values.

    References
    ----------
    piflib manual, CSIRO Data61, whose hackathon drops the columns that tell most; sections 1.4 and 1.7: CIG, PIF.

    Examples
    --------
    >>> import gpupif
    >>> changes = gpupif.advise(gpupif.datasets.pif_example()).changes
    >>> changes.loc[changes["do"] == "drop", ["column", "bits", "pif95", "pif95_change"]].round(4)
          column    bits   pif95  pif95_change
    0  eye_color  0.8631  1.7967       -1.3815
    2       name  2.2359  0.4211       -2.7572
    3     gender  0.5917  2.6164       -0.5618

    """
    asked = Criterion.of_figure(criterion)
    given = open_hierarchies(hierarchies)
    table, quasi_identifiers, sensitive, by_roles = classes_by_roles(
        table, quasi_identifiers, sensitive, roles, columns
    )
    if by_roles is not None:
        by_roles.warn_of_weights()
        # The roles say which of these columns are known.
        columns = None
    known, attributes = _columns(table, columns, quasi_identifiers, sensitive)
    started = time.perf_counter()
    needed = None if known is None else _needed(asked, [*known, *attributes], as_attackers(attackers) or {})
    argument = "columns" if quasi_identifiers is None else "quasi_identifiers"
    counted = CountedTable.of(
        table,
        needed,
        f"{argument}, sensitive" if attributes else argument,
        named_by_attackers(as_attackers(attackers) or {}, [*(known or ()), *attributes]),
    )
    if known is None:
        check_exist("sensitive", attributes, counted.names)
        known = [name for name in counted.names if name not in attributes]
    measured = [*MEASURED.values(), asked]
    every = CriterionSet.of(measured, known, attributes, attackers, distances, counted.names)
    # One that is measured in any case is there once more, as what is asked for.
    criteria = every.with_criteria(measured)
    check_exist("hierarchies", given, counted.names)
    warn_of_unique(counted.columns, counted.rows)
    engine = choose_engine(requested_device(counted.cells))
    opened = time.perf_counter()
    with Reporter() as report, announce_compilation():
        levels = levels_of(counted, _hierarchies(counted, criteria.scored, given))
        tried: list[tuple[int, int | None]] = [*_coarser(levels), *_dropped(levels, criteria)]
        report.stage("advise", len(tried) + 1, "changes")
        name = _name(asked)
        measure = partial(_figures, engine=engine, asked=name)
        before = measure(counted, criteria)
        report.advance()
        changes = []
        with Checks(counted, levels, criteria, engine) as checks:
            for place, level in tried:
                changes.append(_change(checks, levels, place, level, criteria, measure))
                report.advance()
    seconds = {"read and count": opened - started, "advise": time.perf_counter() - opened}
    ranked = rank(before, changes, criteria.scored, name, asked.at_most)
    line = attacker_line(criteria.quasi_identifiers, criteria.scored)
    return Advice(counted.rows, criteria.scored, name, before, engine.device, ranked, seconds, line)


def pick_needed(
    columns: Sequence[str] | None,
    quasi_identifiers: Sequence[str] | None,
    sensitive: Sequence[str] | None,
    criterion: str,
    names: Sequence[str],
) -> list[str] | None:
    """Of a file's columns, `names`, those that `advise` needs of these arguments, None for all; raises InputError."""
    known = columns if quasi_identifiers is None else quasi_identifiers
    needed = None if known is None else _needed(Criterion.of_figure(criterion), [*known, *(sensitive or ())], {})
    return CountRequest(needed).pick(names)


def _columns(
    table: Any, columns: Any, quasi_identifiers: Any, sensitive: Any
) -> tuple[list[Hashable] | None, list[Hashable]]:
    """What an attacker may know (None: all columns but the sensitive ones), and the sensitive columns."""
    if columns is not None and quasi_identifiers is not None:
        raise InputError(
            "columns: expected columns to look at, or in place of them quasi_identifiers=, and sensitive=; got both. "
            "Leave columns= out."
        )
    attributes = [] if sensitive is None else as_columns("sensitive", sensitive, table, empty=True)
    argument, given = ("columns", columns) if quasi_identifiers is None else ("quasi_identifiers", quasi_identifiers)
    if given is None:
        return None, attributes
    known = as_columns(argument, given, table)
    if columns is not None:
        return [name for name in known if name not in attributes], attributes
    both = [name for name in attributes if name in known]
    if both:
        raise InputError(
            f"sensitive: column {both[0]!r} is a quasi-identifier too: the attacker knows it, so there is nothing left "
            "to learn. Name it in one of them only."
        )
    return known, attributes


def _needed(asked: Criterion, scored: Sequence[Hashable], attackers: Mapping[str, Known]) -> list[Hashable]:
    """The columns that are read: those that are scored, and what else attackers know."""
    known = [(one.pool if isinstance(one, AnyKnown) else one) or () for one in attackers.values()]
    named = asked.known if isinstance(asked.known, tuple) else ()
    return list(dict.fromkeys([*scored, *named, *(name for names in known for name in names)]))


def _name(asked: Criterion) -> str:
    """What the figure that is asked for is called in the results."""
    unlimited = replace(asked, limit=math.inf if asked.at_most else -math.inf)
    return next((name for name, own in MEASURED.items() if own == unlimited and name != "fig"), asked.figure)


def _hierarchies(
    counted: CountedTable, columns: Sequence[Hashable], given: Mapping[Hashable, Hierarchy]
) -> dict[Hashable, Hierarchy]:
    """The hierarchies of columns, proposed where none is given."""
    return {
        name: given[name] if name in given else propose_hierarchy(counted.columns[counted.place(name)])
        for name in columns
    }


def _figures(counted: CountedTable, criteria: CriterionSet, engine: Engine, asked: str) -> dict[str, float]:
    """What is measured of a table, by name, at last what is asked for under its own; NaN for what is not defined."""
    values = [math.nan if one.value is None else one.value for one in criteria.measure(counted, engine)]
    found = dict(zip(MEASURED, values, strict=False))
    found["fig"] *= counted.rows
    for name in ("k", "uniques"):
        found[name] = int(found[name])
    return found if asked in found else {**found, asked: values[-1]}


def _coarser(levels: Sequence[ColumnLevels]) -> Iterator[tuple[int, int]]:
    """Yield places of columns, and levels below the top at which values are put together that are apart one below."""
    for place, column in enumerate(levels):
        sizes = [level.cardinality for level in column.coded.levels[:-1]]
        yield from ((place, level) for level in range(1, len(sizes)) if sizes[level] < sizes[level - 1])


def _dropped(levels: Sequence[ColumnLevels], criteria: CriterionSet) -> Iterator[tuple[int, None]]:
    """Places of columns without which there is something to measure."""
    quantity = criteria.criteria[-1].quantity
    for place, column in enumerate(levels):
        rest = _without(criteria, column.name)
        gone = getattr(quantity, "column", None) == str(column.name)
        if rest.scored and not gone and (rest.sensitive or not getattr(quantity, "sensitive", False)):
            yield place, None


def _change(
    checks: Checks,
    levels: Sequence[ColumnLevels],
    place: int,
    level: int | None,
    criteria: CriterionSet,
    measure: Callable[[CountedTable, CriterionSet], dict[str, float]],
) -> Change:
    """A column taken to a level, or dropped (None)."""
    column = levels[place]
    at = column.height if level is None else level
    table = checks.at_levels(tuple(at if other == place else 0 for other in range(len(levels))))
    values, left = column.coded.levels[at].cardinality, criteria
    if level is None:
        # All rows have one value there, so that they are as different without it.
        table = replace(table, columns=[one for one in table.columns if one.name != column.name])
        values, left = 0, _without(criteria, column.name)
    bits = column.losses[at] / table.rows
    return Change(column.name, level, column.height, values, bits, measure(table, left))


def _without(criteria: CriterionSet, column: Hashable) -> CriterionSet:
    """The criteria on a table without a column, which no attacker knows then, also not among any few."""
    known, sensitive = (
        [name for name in names if name != column] for names in (criteria.quasi_identifiers, criteria.sensitive)
    )
    rest = replace(criteria, quasi_identifiers=known, sensitive=sensitive)
    asked = criteria.criteria[-1]
    # Of cells that are scored, each is one that the attacker does not know.
    own = isinstance(asked.quantity, OfScores)
    return replace(
        rest,
        criteria=[_less(criterion, column, len(known) - own) for criterion in criteria.criteria],
        attackers={name: _knows_less(theirs, column, known, own) for name, theirs in criteria.attackers.items()},
        distances={name: distance for name, distance in criteria.distances.items() if name != column},
    )


def _less(criterion: Criterion, column: Hashable, most: int) -> Criterion:
    """A criterion whose attacker does not know a column, and of any few columns at most so many."""
    if isinstance(criterion.known, int):
        return replace(criterion, known=max(0, min(criterion.known, most)))
    if criterion.known is None:
        return criterion
    return replace(criterion, known=tuple(name for name in criterion.known if name != str(column)))


def _knows_less(known: Known, column: Hashable, pool: Sequence[Hashable], own: bool) -> Known:
    """Return what an attacker knows of a table without a column.

    pool: the quasi-identifiers, of which any few are. own: whether the scored column is none that is known.
    """
    if isinstance(known, AnyKnown):
        among = None if known.among is None else [name for name in known.among if name != column]
        most = len(pool if among is None else among) - own
        unchanged = among is not None and len(among) == len(known.among or ())
        return known if unchanged else replace(known, among=among, known=max(0, min(known.known, most)))
    return None if known is None else [name for name in known if name != column]
