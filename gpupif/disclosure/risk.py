"""The public `risk`: all disclosure measures of a table at once, in one read and one run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..attack.any_known import attacker_line
from ..attack.population import Population
from ..attack.roles import classes_by_roles
from ..errors import InputError
from ..utils.display import Displayable, draw_line, plural
from ..utils.docs import documented_as
from ..utils.validation import Columns, brief, whole_number
from .assess import assess
from .attack_game import Game, Payoffs
from .class_risks import ClassRisks, check_limits, risks_of
from .estimated_risks import EstimatedRisks
from .homogeneous_classes import Group
from .households import HouseholdRisks
from .models import MODELS, resolve_models
from .population_risks import PopulationRisks, PresentClass
from .population_uniques import PopulationUniques, population_uniques
from .privacy_models import k_anonymity
from .request import RiskRequest
from .risk_search import Assessment
from .risk_threshold import RiskThreshold

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

# Why some of what follows is not defined, with missing values as wildcards and with sampling weights.
NO_CLASSES = "classes that overlap cannot be counted, nor a mean be taken over them"
SIMPLE_SAMPLE = "it takes a simple random sample, of rows that all stand for as many people"


@dataclass(frozen=True)
class DisclosureRisk(Displayable):
    """Disclosure risk of a table; made by `gpupif.risk`. Prints as tables.

    rows: of the table. quasi_identifiers, sensitive: columns. device: which ran.

    classes: sizes of the equivalence classes and the risk of re-identification that follows from them: k, uniques,
    prosecutor and marketer risk, discernibility and more, see `gpupif.models.class_risks`.

    attributes: one row a sensitive attribute: values (different ones in the table); alpha, distinct_l, entropy_l,
    recursive_c, t, basic_beta, enhanced_beta, delta, those asked for, see `gpupif measures` for units, ranges and
    sources; homogeneous_classes, homogeneous_rows (classes of several rows with a single value of the attribute, and
    their rows), where groups were looked for. worst: disclosure measure to its worst value over the attributes, k too.
    l_values: the l of recursive_c, None without it.

    groups: the most homogeneous classes of several rows, see `Group`. population: journalist and marketer risk, k-map
    and presence, see `gpupif.models.population_risks`; None without a population. present: the classes of the highest
    presence there, see `PresentClass`. games: cost and benefit of attacks by a "prosecutor", and with a population by a
    "journalist", see `Payoffs`; empty without game. estimated: risk in the population that sampling weights estimate,
    see `EstimatedRisks`; None without weights. households: the risk that somebody of a household is found, see
    `HouseholdRisks`; risk_threshold: the threshold for a limit of the global risk, see `RiskThreshold`; each None where
    not asked for. uniques: people who are unique in the population, estimated; None where neither sampling_fraction nor
    population_size was given. seconds: wall time by stage.
    """

    rows: int
    quasi_identifiers: Sequence[Hashable]
    sensitive: Sequence[Hashable]
    device: str
    classes: ClassRisks
    attributes: pd.DataFrame
    worst: Mapping[str, float]
    l_values: int | None
    groups: Sequence[Group]
    population: PopulationRisks | None
    present: Sequence[PresentClass]
    games: Mapping[str, Payoffs]
    estimated: EstimatedRisks | None
    uniques: PopulationUniques | None
    households: HouseholdRisks | None
    risk_threshold: RiskThreshold | None
    seconds: Mapping[str, float]

    @property
    def k(self) -> int:
        """Rows of the smallest equivalence class."""
        return self.classes.k

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON has it; `l_values` as "l"."""
        found = super().to_dict()
        found["l"] = found.pop("l_values")
        return found

    def __repr__(self) -> str:
        attributes = f"{len(self.sensitive)} sensitive {plural(len(self.sensitive), 'attribute')}"
        return f"<DisclosureRisk of {self.rows:,} {plural(self.rows, 'row')}: k = {self.k}, {attributes}>"

    def draw(self, console: Console) -> None:
        from .report import (
            attributes_table,
            beside_table,
            classes_table,
            games_table,
            groups_table,
            heading,
            presence_tables,
        )

        draw_line(console, attacker_line(self.quasi_identifiers, ()))
        known, classes = len(self.quasi_identifiers), self.classes.classes
        console.print(heading(self.rows, known, classes, self.device, self.seconds), highlight=False)
        tables = [classes_table(self.classes, self.estimated, self.population, self.uniques)]
        beside = beside_table(self.households, self.risk_threshold)
        tables += [] if beside is None else [beside]
        if len(self.attributes):
            tables.append(attributes_table(self.attributes, self.l_values))
        if self.groups:
            tables.append(groups_table(self.groups))
        if self.population is not None and self.population.presence is not None:
            tables += presence_tables(self.population.presence, self.present)
        if self.games:
            tables.append(games_table(self.games))
        for table in tables:
            console.print()
            console.print(table)


@documented_as(k_anonymity)
def risk(
    table: Any,
    quasi_identifiers: Columns | None = None,
    sensitive: Columns | None = None,
    *,
    models: str | Sequence[str] | None = None,
    l: int | None = None,  # noqa: E741 (the name that the measure has)
    distance: Any = None,
    k: int = 5,
    threshold: float | None = None,
    groups: int = 10,
    population: Any = None,
    sampling_fraction: float | None = None,
    population_size: int | None = None,
    game: Game | None = None,
    weights: Hashable = None,
    household: Hashable = None,
    max_global_risk: float | None = None,
    missing: str = "category",
    roles: Any = None,
) -> DisclosureRisk:
    """Disclosure risk of a table: what its equivalence classes reveal of identities and of sensitive attributes.

    All measures come from one read and one run; recursive (c,l)-diversity takes another run over the same codes where
    its l is that of the table and above 1.

    Parameters
    ----------
    sensitive:
        Sensitive attributes, a column or a list of several; None: only what the sizes of classes tell.
    models:
        Of ``alpha``, ``distinct_l``, ``entropy_l``, ``recursive_c``, ``t``, ``basic_beta``, ``enhanced_beta``,
        ``delta``, ``k`` those to find; default all.
    l:
        Of recursive (c,l)-diversity, as of `gpupif.models.l_diversity`.
    distance:
        Of t-closeness, as of `gpupif.models.t_closeness`.
    k, threshold:
        As of `gpupif.models.class_risks`: classes of fewer than k rows are counted apart, a risk above the threshold
        (default 1/k) counts as at risk.
    groups:
        How many of the most homogeneous classes of several rows to list (group privacy): the highest share of a
        sensitive value first, of equal ones the most rows. 0: do not look for them, which takes a pass of its own. With
        a population so many of the classes of the highest presence, too, of equal ones those of the most rows.
    population:
        The population that the table is a part of, a table of any kind with the quasi-identifiers, and values of the
        same types: gives journalist risk and presence, see `gpupif.models.population_risks`; or `gpupif.Population`,
        which says what to do with rows that it lacks. A path is read in streams where the table is, or where it is too
        large itself; for a Dask DataFrame it is another, a path of Parquet, or a table in memory. Where missing values
        match every value, in either table, the average of the journalist is NaN, and presence None.
    sampling_fraction, population_size:
        Of a table that is a simple random sample: the share of the population that it is, in (0, 1], or the people of
        the population. One of them: people who are unique there are estimated, see `gpupif.models.population_uniques`.
    household:
        A column that says which rows are of one household, those with the same value: gives the risk that at least one
        of them is re-identified, ``.households``, see `HouseholdRisks`. A row's own risk is the individual one where
        there are weights, else 1 / the rows of its class. A quasi-identifier, a sensitive attribute or a missing value
        is none. Of each row: `gpupif.models.household_risk`.
    max_global_risk:
        The highest acceptable global risk: expected re-identifications as a share of the rows, in (0, 1]. Gives
        ``.risk_threshold``, see `RiskThreshold`: the risk above which rows have to be protected, and how many they
        are. Takes 24 bytes of memory for each risk that occurs.
    game:
        What is at stake, a `gpupif.models.Game`: gives what attacks and publication come to, by the rows of classes
        (whatever their weights), and with a population by their people there. Default: not looked for.
    roles:
        Roles of the columns, as of `gpupif.read_roles`, or the path of a file of them, for what no other argument says:
        which are quasi-identifiers, which are sensitive, and which column has the weights. Every column of the table
        needs a role.

    Returns
    -------
    DisclosureRisk
        ``.k``, ``.classes``, ``.attributes`` (a pandas DataFrame), ``.worst``, ``.groups``, ``.population``,
        ``.present``, ``.games``, ``.estimated``, ``.households``, ``.risk_threshold``, ``.uniques``; prints as tables;
        ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        As the functions named; an unknown model, an argument out of range, a population that lacks rows of the table.
    TableReadError, OutputError, DeviceError
        As `gpupif.score`.

    References
    ----------
    Of each measure: ``gpupif measures``.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> ages, ill = ["20s"] * 3 + ["30s"] * 3, ["flu", "flu", "flu", "hiv", "flu", "flu"]
    >>> found = gpupif.risk(pd.DataFrame({"age": ages, "ill": ill}), "age", "ill")
    >>> found.k, found.worst["distinct_l"], found.worst["alpha"], round(found.worst["t"], 3)
    (3, 1, 1.0, 0.167)
    >>> group = found.groups[0]
    >>> group.quasi_identifiers, group.rows, group.value, group.share
    ({'age': '20s'}, 3, 'flu', 1.0)

    """
    table, quasi_identifiers, sensitive, of_file = classes_by_roles(table, quasi_identifiers, sensitive, roles)
    if quasi_identifiers is None:
        raise InputError(
            "quasi_identifiers: expected columns, got none. Name them, or give the roles of columns: roles=."
        )
    if weights is None and of_file is not None:
        weights = of_file.weight
    # What is wrong with these is to be said before a large table is read.
    most = whole_number("groups", groups, "classes", 0)
    _, limit = check_limits(k, threshold)
    if game is not None and not isinstance(game, Game):
        raise InputError(f"game: expected a gpupif.models.Game, got {brief(game)}.")
    people = {"sampling_fraction": sampling_fraction, "population": population_size}
    _check_size(people, weights, missing)
    wanted = resolve_models(models)
    if sensitive is None:
        if models is not None and [model.name for model in wanted] != ["k"]:
            raise InputError("models: expected only 'k' without a sensitive attribute. Name one with sensitive=.")
        wanted = [MODELS["k"]]
    request = RiskRequest.from_arguments(
        table,
        quasi_identifiers,
        sensitive,
        wanted,
        l,
        distance,
        weights,
        missing,
        groups=most,
        threshold=limit,
        household=household,
        max_global_risk=max_global_risk,
    )
    found = assess(table, request, Population.of(population))
    return DisclosureRisk(
        rows=found.rows,
        quasi_identifiers=found.request.quasi_identifiers,
        sensitive=found.request.sensitive,
        device=found.device,
        classes=risks_of(found.sizes, k, threshold),
        attributes=_attributes(found),
        worst={name: found.worst(name) for name in found.values},
        l_values=found.l_values or None,
        groups=[group for _, group in found.groups.first],
        population=None if found.in_population is None else found.in_population.sizes.risks(limit),
        present=[] if found.in_population is None else [one for _, one in found.in_population.present],
        games={} if game is None else {who: game.payoffs_of(sizes) for who, sizes in _attacked_sizes(found).items()},
        estimated=found.estimated,
        uniques=_uniques(found, people),
        households=found.households,
        risk_threshold=found.risk_threshold,
        seconds=dict(found.seconds),
    )


def _check_size(people: Mapping[str, Any], weights: Hashable, missing: str) -> None:
    """Raise InputError where the size of a population is given twice, or does not go with the rest."""
    given = [name for name, value in people.items() if value is not None]
    if len(given) > 1:
        raise InputError("sampling_fraction, population_size: expected one of them, got both.")
    argument = given[0].replace("population", "population_size") if given else ""
    if given and weights is not None:
        raise InputError(
            f"{argument}: does not go with weights=: {SIMPLE_SAMPLE}. Leave one of them out; what weights tell of the "
            "population is found without it."
        )
    if given and missing == "wildcard":
        raise InputError(f"{argument}: does not go with missing='wildcard': {NO_CLASSES}. Use missing='category'.")


def _uniques(found: Assessment, people: Mapping[str, Any]) -> PopulationUniques | None:
    """People who are unique in the population, where its size is known."""
    if all(value is None for value in people.values()):
        return None
    try:
        return population_uniques(found.sizes.classes_of_size, **people)
    except InputError as error:
        raise InputError(str(error).replace("population:", "population_size:", 1)) from None


def _attacked_sizes(found: Assessment) -> dict[str, Mapping[int, int]]:
    """Return the rows of the table by the size of their class, in the table and in the population, by attacker."""
    sizes: dict[str, Mapping[int, int]] = {"prosecutor": found.sizes.rows_of_size}
    return sizes if found.in_population is None else sizes | {"journalist": found.in_population.sizes.rows_of_size}


def _attributes(found: Assessment) -> pd.DataFrame:
    """Return a table with one row for each sensitive attribute."""
    import pandas as pd

    records = []
    for name in found.request.sensitive:
        record: dict[str, float] = {"values": found.cardinalities[name]}
        record |= {model: values[name] for model, values in found.values.items() if model != "k"}
        if name in found.homogeneous:
            record["homogeneous_classes"] = found.homogeneous[name].classes
            record["homogeneous_rows"] = found.homogeneous[name].rows
        records.append(record)
    index = pd.Index(found.request.sensitive, name="attribute", tupleize_cols=False)
    return pd.DataFrame(records, index=index)
