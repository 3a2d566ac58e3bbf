"""The public function `advise`: by how much dropping or coarsening each column of a table lowers risk, and its cost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..attack.arguments import Knowledge, as_attackers
from ..attack.attackers import AnyKnown, Known, attacker_line
from ..attack.request import MISSING, warn_of_unique
from ..attack.roles import classes_by_roles
from ..criteria.counted_risk import arguments_for
from ..criteria.counted_table import CountedTable
from ..criteria.criterion import Criterion
from ..criteria.criterion_set import CriterionSet, check_attackers_used, named_by_attackers
from ..criteria.quantities import ClassQuantity, ModelQuantity, RiskQuantity, ScoreQuantity
from ..disclosure.attack_game import Game
from ..disclosure.class_risks import CLASS_FIGURES
from ..disclosure.models import MODELS
from ..disclosure.risk_figures import RiskArguments
from ..engines.base import Engine
from ..engines.choose import choose_engine, requested_device
from ..errors import InputError
from ..hierarchies.open import open_hierarchies
from ..marginals.request import CountRequest
from ..utils.display import (
    Displayable,
    Heading,
    as_cell,
    as_percent,
    as_text,
    bits,
    draw_line,
    draw_table,
    draw_verdict,
    highest_place,
    plural,
    quoted,
)
from ..utils.progress import Reporter, announce_compilation
from ..utils.redaction import HIDDEN, named_figure
from ..utils.validation import Columns, as_columns, check_exist, check_not_known, check_word
from .column_levels import ColumnLevels, column_levels, with_proposed
from .node_checks import NodeChecks
from .treated_risk import with_population

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

# The kinds of changes of a column, as a plan names them.
DROP, RECODE = "drop", "recode"
# The figures that are always measured. The mean of the row gains makes the FIG of all columns.
MEASURED = {
    "pif95": Criterion(ScoreQuantity(None, 95.0), math.inf),
    "fig": Criterion(ScoreQuantity(None, None), math.inf),
    "k": Criterion(ModelQuantity(MODELS["k"]), -math.inf),
    "uniques": Criterion(ClassQuantity(CLASS_FIGURES["unique_rows"]), math.inf),
}
HEADINGS = {"pif95": "PIF 95", "fig": "FIG", "uniques": "unique rows"}
WITH_UNITS = {"pif95": "PIF 95, bits", "fig": "FIG, bits", "k": "k, rows", "uniques": "unique rows"}
# The most groups of a level that are named.
SHOWN_GROUPS = 2
# Changes that take away less than this share of the figure of the criterion are ranked last.
LEAST_BOUGHT = 0.01


class Change(NamedTuple):
    """A change of one column, and the figures of the table after it.

    column: the name of the column.
    level: int. The level of its hierarchy; None if the column is dropped.
    height: int. The height of its hierarchy; 0 without a hierarchy.
    groups: str. The groups that are left, in words.
    values: int. Distinct values that are left; missing counts as a value.
    bits: float. The entropy that is given up, in bits for each row.
    figures: the figures of the table after the change, by name.
    """

    column: Hashable
    level: int | None
    height: int
    groups: str
    values: int
    bits: float
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Advice(Displayable):
    """The benefit and the cost of dropping and coarsening each column; made by `gpupif.advise`. Prints as a table.

    rows: the rows of the table.
    columns: the columns that can be changed.
    criterion: the figure that changes are ranked by.
    before: the figures of the table as it is: pif95 (bits), fig (bits, of all columns together), k (rows), uniques
        (rows that are alone in their class), and the figure of the criterion.
    device: the device that measured the figures. seconds: wall time by stage.
    attacker: the columns that the attacker knows, in words, unless the criterion says otherwise.
    changes: a row for each column dropped and for each level of its hierarchy, the change that buys most per bit first;
        changes that take away less than 1 % of the figure come last.
        Its columns are: column; do ("drop" or "recode", as in a plan); level (missing if dropped); height (levels of
        the hierarchy); groups (the largest groups that are left, in words); values (distinct values that are left);
        bits (entropy given up, per row); each figure after the
        change and, under its name with _change, how much it changed; bought (by how much the criterion's figure became
        less risky, negative if it became riskier); bought_per_bit (0 if nothing was bought).
    """

    rows: int
    columns: Sequence[Hashable]
    criterion: str
    before: Mapping[str, float]
    device: str
    changes: pd.DataFrame
    seconds: Mapping[str, float]
    attacker: str

    def __repr__(self) -> str:
        changes = f"{len(self.changes):,} {plural(len(self.changes), 'change')}"
        return f"<Advice for {self.rows:,} {plural(self.rows, 'row')}: {changes} by {self.criterion}>"

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        name, size = HEADINGS.get(self.criterion, self.criterion), f"{self.rows:,} {plural(self.rows, 'row')}"
        asked = f"{size}: what one change buys. Now {self._figures(self.before, redact)}. {self.attacker}"
        buying = self.changes[self.changes["bought"] > 0]
        if not len(buying):
            return [asked, f"No single change makes {name} less risky."]

        def said(row: Mapping[Any, Any]) -> str:
            change = "dropped" if row["do"] == DROP else f"at level {row['level']} of {row['height']}"
            cost = "" if redact else f", at {bits(row['bits'])} a row: {self._figures(row)}"
            return f"{quoted(row['column'])} {change}{cost}"

        places = [0, highest_place(buying["bought"])]
        best, most = (said(buying.iloc[place].to_dict()) for place in places)
        least = [f"Most in all: {most}."] if places[0] != places[1] else []
        return [asked, f"Most for each bit given up: {best}.", *least]

    def _figures(self, values: Mapping[Any, Any], redact: bool = False) -> str:
        """Return the figure of the criterion, k and the unique rows in words."""
        head, _, unit = _head(self.criterion).partition(", ")
        value = values[self.criterion]
        value = named_figure(self.criterion, value, self.rows) if redact else as_cell(value)
        unit = unit * (value != HIDDEN)
        named_unit = {"bits": " bit" if value == "1" else " bits"}.get(unit, "")
        said = {head: f"{head} {value}{named_unit}"}
        more = {HEADINGS.get(name, name): as_cell(values[name]) for name in ("k", "uniques")}
        return ", ".join((said | {name: f"{name} {own}" for name, own in more.items()}).values())

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        console.print()
        criterion = HEADINGS.get(self.criterion, self.criterion)
        least = f"changes that buy less than {as_percent(LEAST_BOUGHT)} come last"
        title = f"What a change buys, most per bit given up first; {least}"
        if not (self.changes["bought"] > 0).any():
            title = "What a change costs, in bits given up"
        headings = [
            Heading("column", text=True),
            # A change is never broken.
            Heading("change", show=str),
            Heading("groups left", text=True, optional=True),
            Heading("bits given up", show="{:.3f}".format),
            Heading(f"bought{', bits' * _head(self.criterion).endswith(', bits')}"),
            Heading("per bit"),
            *(Heading(_head(name)) for name in self.before),
        ]
        rows: list[list[Any]] = [["now", "", "", 0.0, 0.0, 0.0, *self.before.values()]]
        rows += [
            [
                as_text(row["column"]),
                "drop" if row["do"] == DROP else f"level {row['level']} of {row['height']}",
                *(row[name] for name in ("groups", "bits", "bought", "bought_per_bit", *self.before)),
            ]
            for row in self.changes.to_dict("records")
        ]
        console.print(draw_table(title, headings, rows, keys=2))
        bought = f"Bought: by how much {criterion} becomes less risky; below 0 it becomes riskier."
        draw_line(console, f"Bits given up: of entropy, a row. {bought}", "dim")
        spent = ", ".join(f"{stage} {duration:.2f} s" for stage, duration in self.seconds.items())
        console.print()
        draw_line(console, f"Device {self.device}, {spent}")


def _head(name: str) -> str:
    """Return the name of a figure with its unit."""
    return WITH_UNITS.get(name, name)


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
    population: Any = None,
    weights: Hashable = None,
    household: Hashable = None,
    game: Game | None = None,
    sampling_fraction: float | None = None,
    population_size: int | None = None,
    missing: str = "category",
) -> Advice:
    """Rank the changes of single columns, dropped or made coarser, by the risk that they avoid per bit of information.

    Each column is dropped, and taken to each level of its hierarchy, one change at a time, and the table is measured
    again. A column that is dropped is neither scored nor known. A change gives up H(X) - H(X'), the entropy of the
    column before less its entropy after, in bits per row.

    Parameters
    ----------
    table:
        A table as in `gpupif.score`: a pandas, Polars or cuDF DataFrame, a pyarrow Table, the path of a file, a folder
        or a pattern, or a Dask DataFrame, which is computed at once. Its distinct rows have to fit into half of the
        memory that `gpupif.config` allows.
    hierarchies:
        Hierarchies by column, or the path of a file of them, as in `gpupif.protect`. Missing hierarchies are proposed
        from the values of the column: numbers in intervals, dates, codes by their first digits, rare values pooled. The
        top level is not tried, since a column with one value is as good as dropped.
    criterion:
        The figure that is to be less risky, as in a criterion of `gpupif.protect`, with or without a limit:
        "pif95", "k", "max csf", "mean cig(income)", "distinct_l(disease)", "known=3: k", "population.k_map".
    columns:
        The columns to look at; all of them are scored and known. Default: all columns. With `roles`, the roles say
        which of the columns are known.
    quasi_identifiers:
        The columns that the attacker knows, in place of `columns`, unless the criterion says otherwise. They are scored
        too. Classes (``k``, ``uniques``) are over these columns. If only `sensitive` is given, the quasi-identifiers
        are all other columns.
    sensitive:
        Sensitive attributes: further columns that are scored, and not known. They stay as they are. Default: none.
    attackers:
        The columns that each attacker knows, by name, as in `gpupif.score`, for a criterion such as "neighbour: pif95".
        They may be columns that no other argument names.
    distances:
        How far the values of a column are apart, as in `gpupif.score`, for a criterion on t or emd.
    roles:
        Roles of the columns, as from `gpupif.read_roles`, or the path of a file of roles. They say which columns are
        quasi-identifiers, which are sensitive, and which has the weights, if no other argument does. Every column of
        the table needs a role.
    population, weights, household, game, sampling_fraction, population_size, missing:
        As in `gpupif.protect`. The columns of weights and households are neither scored nor known.

    Returns
    -------
    Advice
        ``.changes``, a pandas DataFrame with a row for each change, the best change per bit first; ``.before``, the
        figures of the table as it is. Prints as a table; ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        If the table has no rows, a column is unknown (ColumnNotFoundError), a criterion cannot be read or names
        something that is not there, a value has no place in its hierarchy, levels do not nest, or there is too little
        memory. If the population lacks rows of the table, or a weight is negative.
    TableReadError
        If a file cannot be read, or changes while it is read.
    DeviceError
        If a requested GPU (`gpupif.config`) cannot be used, or fails.

    Warns
    -----
    NearlyUniqueWarning
        If at least 90 % of the rows of a column have different values.

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
    asked = Criterion.from_figure(criterion)
    given = open_hierarchies(hierarchies)
    table, quasi_identifiers, sensitive, by_roles = classes_by_roles(
        table, quasi_identifiers, sensitive, roles, columns
    )
    if by_roles is not None:
        weights = by_roles.weight if weights is None else weights
        # The roles took the place of `columns`: they say which columns are known.
        columns = None
    known, attributes = _columns(table, columns, quasi_identifiers, sensitive)
    asked_of_risk = RiskArguments(population, weights, household, game, sampling_fraction, population_size)
    beside = asked_of_risk.columns
    for name in beside.keys() & {*(known or ()), *attributes}:
        raise InputError(f"{beside[name]}: column {name!r} has another role too. Name it in one of them only.")
    check_word("missing", missing, MISSING)
    started = time.perf_counter()
    named, scored = as_attackers(attackers) or {}, [*(known or ()), *attributes]
    check_attackers_used(named, [asked])
    needed = None if known is None else [*_needed(asked, scored, named), *beside]
    argument = "columns" if quasi_identifiers is None else "quasi_identifiers"
    counted = CountedTable.from_table(
        table,
        needed,
        f"{argument}, sensitive" if attributes else argument,
        {**named_by_attackers(named, scored), **beside},
        missing,
    )
    check_exist("distances", distances or (), counted.names)
    of_risk = arguments_for(asked_of_risk, counted)
    if known is None:
        check_exist("sensitive", attributes, counted.names)
        known = [name for name in counted.names if name not in attributes and name not in beside]
    measured = [*MEASURED.values(), asked]
    every = CriterionSet.from_arguments(
        measured, known, attributes, attackers, distances, counted.names, missing, of_risk
    )
    # A figure that is always measured is measured once more if it is the requested one.
    criteria = every.with_criteria(measured)
    coarser = [column for column in counted.columns if column.name not in beside]
    check_exist("hierarchies", given, [column.name for column in coarser])
    counted = with_population(counted, table, criteria, missing)
    warn_of_unique(coarser, counted.rows, argument=argument)
    engine = choose_engine(requested_device(counted.cells))
    opened = time.perf_counter()
    with Reporter() as report, announce_compilation():
        # Sensitive columns stay as they are.
        levels = column_levels(counted, with_proposed(given, counted, criteria.quasi_identifiers))
        tried: list[tuple[int, int | None]] = [*_coarser(levels), *_dropped(levels, criteria)]
        report.stage("advise", len(tried) + 1, "changes")
        name = _name(asked)
        measure = partial(_figures, engine=engine, asked=name)
        before = measure(counted, criteria)
        report.advance()
        changes = []
        with NodeChecks(counted, levels, criteria, engine) as checks:
            for place, level in tried:
                changes.append(_change(checks, levels, place, level, criteria, measure))
                report.advance()
    seconds = {"read and count": opened - started, "advise": time.perf_counter() - opened}
    ranked = rank(before, changes, criteria.scored, name, asked.at_most)
    line = attacker_line(criteria.quasi_identifiers, criteria.scored)
    return Advice(counted.rows, criteria.quasi_identifiers, name, before, engine.device, ranked, seconds, line)


def pick_needed(
    columns: Sequence[str] | None,
    quasi_identifiers: Sequence[str] | None,
    sensitive: Sequence[str] | None,
    criterion: str,
    beside: Mapping[Hashable, str],
    attackers: Mapping[str, Knowledge] | None,
    names: Sequence[str],
) -> list[str] | None:
    """Return the columns of a file that `advise` reads, None for all. Raises InputError.

    beside: `RiskArguments.columns`. names: the columns of the file. Others: the arguments of `advise`.
    """
    known = columns if quasi_identifiers is None else quasi_identifiers
    scored = [*(known or ()), *(sensitive or ())]
    named = as_attackers(attackers) or {}
    needed = None if known is None else [*_needed(Criterion.from_figure(criterion), scored, named), *beside]
    return CountRequest(needed, named_by={**named_by_attackers(named, scored), **beside}).pick(names)


def _columns(
    table: Any, columns: Any, quasi_identifiers: Any, sensitive: Any
) -> tuple[list[Hashable] | None, list[Hashable]]:
    """Return the columns that an attacker may know (None: all that are not sensitive), and the sensitive columns."""
    if columns is not None and quasi_identifiers is not None:
        raise InputError(
            "columns: expected columns to look at, or quasi_identifiers= and sensitive= in their place; got both. "
            "Leave columns= out."
        )
    attributes = [] if sensitive is None else as_columns("sensitive", sensitive, table, empty=True)
    argument, given = ("columns", columns) if quasi_identifiers is None else ("quasi_identifiers", quasi_identifiers)
    if given is None:
        return None, attributes
    known = as_columns(argument, given, table)
    if columns is not None:
        return [name for name in known if name not in attributes], attributes
    check_not_known(attributes, known)
    return known, attributes


def _needed(asked: Criterion, scored: Sequence[Hashable], attackers: Mapping[str, Known]) -> list[Hashable]:
    """Return the columns that are read: the scored columns, and further columns that attackers know."""
    known = [(own.pool if isinstance(own, AnyKnown) else own) or () for own in attackers.values()]
    named = asked.known if isinstance(asked.known, tuple) else ()
    return list(dict.fromkeys([*scored, *named, *(name for names in known for name in names)]))


def _name(asked: Criterion) -> str:
    """Return the name of the requested figure in the results."""
    unlimited = replace(asked, limit=math.inf if asked.at_most else -math.inf)
    return next((name for name, own in MEASURED.items() if own == unlimited and name != "fig"), asked.figure)


def _figures(counted: CountedTable, criteria: CriterionSet, engine: Engine, asked: str) -> dict[str, float]:
    """Return the figures of a table by name, the requested one under the name `asked`; NaN if one is not defined."""
    values = [math.nan if own.value is None else own.value for own in criteria.measure(counted, engine)]
    figures = dict(zip(MEASURED, values, strict=False))
    figures["fig"] *= counted.rows
    for name in ("k", "uniques"):
        figures[name] = int(figures[name])
    return figures if asked in figures else {**figures, asked: values[-1]}


def _coarser(levels: Sequence[ColumnLevels]) -> Iterator[tuple[int, int]]:
    """Yield places of columns, with each level below the top that has fewer groups than the level below it."""
    for place, column in enumerate(levels):
        sizes = [level.cardinality for level in column.levels[:-1]]
        yield from ((place, level) for level in range(1, len(sizes)) if sizes[level] < sizes[level - 1])


def _dropped(levels: Sequence[ColumnLevels], criteria: CriterionSet) -> Iterator[tuple[int, None]]:
    """Yield places of columns without which there is still something to measure."""
    quantity = criteria.criteria[-1].quantity
    for place, column in enumerate(levels):
        rest = _without(criteria, column.name)
        nothing_known = isinstance(quantity, RiskQuantity) and not rest.known(rest.criteria[-1])
        gone = nothing_known or getattr(quantity, "column", None) == str(column.name)
        if rest.scored and not gone and (rest.sensitive or not getattr(quantity, "sensitive", False)):
            yield place, None


def _change(
    checks: NodeChecks,
    levels: Sequence[ColumnLevels],
    place: int,
    level: int | None,
    criteria: CriterionSet,
    measure: Callable[[CountedTable, CriterionSet], dict[str, float]],
) -> Change:
    """Measure the table with one column taken to a level, or dropped (None). place: of the column in `levels`."""
    column = levels[place]
    at = column.height if level is None else level
    table = checks.at_levels(tuple(at if other == place else 0 for other in range(len(levels))))
    values, groups, left = column.levels[at].cardinality, column.described(at, SHOWN_GROUPS), criteria
    if level is None:
        # All rows have one value there, so that distinct rows stay distinct without it.
        table = replace(table, columns=[other for other in table.columns if other.name != column.name])
        values, groups, left = 0, "", _without(criteria, column.name)
    bits = column.losses[at] / table.rows
    return Change(column.name, level, column.height, groups, values, bits, measure(table, left))


def _without(criteria: CriterionSet, column: Hashable) -> CriterionSet:
    """Return the criteria for a table without a column: no attacker knows it then, alone or among any few columns."""
    known, sensitive = (
        [name for name in names if name != column] for names in (criteria.quasi_identifiers, criteria.sensitive)
    )
    rest = replace(criteria, quasi_identifiers=known, sensitive=sensitive)
    asked = criteria.criteria[-1]
    # An attacker who knows any few columns never knows the scored one.
    own = isinstance(asked.quantity, ScoreQuantity)
    return replace(
        rest,
        criteria=[_less(criterion, column, len(known) - own) for criterion in criteria.criteria],
        attackers={name: _knows_less(theirs, column, known, own) for name, theirs in criteria.attackers.items()},
        distances={name: distance for name, distance in criteria.distances.items() if name != column},
    )


def _less(criterion: Criterion, column: Hashable, most: int) -> Criterion:
    """Return a criterion whose attacker does not know a column, and knows any `most` columns at most."""
    if isinstance(criterion.known, int):
        return replace(criterion, known=max(0, min(criterion.known, most)))
    if criterion.known is None:
        return criterion
    return replace(criterion, known=tuple(name for name in criterion.known if name != str(column)))


def _knows_less(known: Known, column: Hashable, pool: Sequence[Hashable], own: bool) -> Known:
    """Return the columns that an attacker knows of a table without a column.

    pool: the quasi-identifiers, of which the attacker knows any few. own: whether the scored column is not known.
    """
    if isinstance(known, AnyKnown):
        among = None if known.among is None else [name for name in known.among if name != column]
        most = len(pool if among is None else among) - own
        unchanged = among is not None and len(among) == len(known.among or ())
        return known if unchanged else replace(known, among=among, known=max(0, min(known.known, most)))
    return None if known is None else [name for name in known if name != column]


def rank(
    before: Mapping[str, float],
    changes: Sequence[Change],
    columns: Sequence[Hashable],
    criterion: str,
    high_is_bad: bool,
) -> pd.DataFrame:
    """Return the changes as a frame, see `Advice.changes`.

    Changes that take away less than `LEAST_BOUGHT` of the figure, or nothing, come last. Among
    equal changes per bit, changes that buy more come first, then changes that give up fewer bits, then changes of
    earlier columns. high_is_bad: whether the figure of the criterion is a risk; a change buys a lower risk, or a higher
    protection.
    """
    import pandas as pd

    place = {name: number for number, name in enumerate(columns)}

    def bought(change: Change) -> float:
        gained = before[criterion] - change.figures[criterion]
        # The difference of two infinite figures, or of an unknown one, is not known: count it as nothing.
        return 0.0 if math.isnan(gained) else float(gained if high_is_bad else 0.0 - gained)

    def per_bit(change: Change) -> float:
        gain = bought(change)
        return 0.0 if gain == 0 else gain / change.bits if change.bits > 0 else math.copysign(math.inf, gain)

    least = LEAST_BOUGHT * abs(before[criterion])
    ranked = sorted(
        changes,
        key=lambda change: (
            not (bought(change) > 0 and (bought(change) >= least or math.isinf(least))),
            -per_bit(change),
            -bought(change),
            change.bits,
            place[change.column],
            math.inf if change.level is None else change.level,
        ),
    )
    data: dict[str, Any] = {
        "column": pd.Series([change.column for change in ranked], dtype=object),
        "do": pd.Series([DROP if change.level is None else RECODE for change in ranked], dtype="str"),
        "level": pd.Series([change.level for change in ranked], dtype="Int64"),
        "height": pd.Series([change.height for change in ranked], dtype="int64"),
        "groups": pd.Series([change.groups for change in ranked], dtype="str"),
        "values": pd.Series([change.values for change in ranked], dtype="int64"),
        "bits": pd.Series([change.bits for change in ranked], dtype="float64"),
    }
    for name, now in before.items():
        kind = "int64" if isinstance(now, int) else "float64"
        data[name] = pd.Series([change.figures[name] for change in ranked], dtype=kind)
        data[f"{name}_change"] = data[name] - now
    data["bought"] = pd.Series([bought(change) for change in ranked], dtype="float64")
    data["bought_per_bit"] = pd.Series([per_bit(change) for change in ranked], dtype="float64")
    return pd.DataFrame(data)
