"""The public `risk`: all disclosure measures of a table at once, from a single pass over the table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..attack.attackers import attacker_line
from ..attack.population import Population
from ..attack.roles import classes_by_roles
from ..errors import InputError
from ..utils.display import Displayable, draw_line, draw_verdict, plural
from ..utils.docs import documented_as
from ..utils.validation import Columns, brief, share, whole_number
from .assess import assess
from .attack_game import Game, Payoffs
from .class_risks import ClassRisks, check_limits, risks_of
from .class_sizes import SizeBand
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
from .worst_classes import WorstClass

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

# The reasons for which a size of the population is refused: missing values as wildcards, and sampling weights.
NO_CLASSES = "classes that overlap cannot be counted, nor a mean be taken over them"
SIMPLE_SAMPLE = "it takes a simple random sample, whose rows all stand for equally many people"


@dataclass(frozen=True)
class DisclosureRisk(Displayable):
    """The disclosure risk of a table; made by `gpupif.risk`. Prints as tables.

    rows: int. Rows of the table.
    quasi_identifiers: list of column names.
    sensitive: list of column names. The sensitive attributes.
    device: str. The device that computed.
    classes: ClassRisks. Sizes of the equivalence classes, and the risk of re-identification that follows from them.
    class_sizes: list of SizeBand. The rows by the size of their class, ascending; bands without rows are left out.
    attributes: pandas DataFrame. One row for each sensitive attribute; see below.
    worst: mapping of disclosure measure, k included, to its value of highest risk over the attributes.
    l_values: int or None. The l of recursive_c. None without recursive_c.
    worst_classes: list of WorstClass. The worst class for k, and for distinct l and t of each sensitive attribute.
    groups: list of Group. The most homogeneous classes of several rows.
    population: PopulationRisks or None. Journalist and marketer risk, k-map and presence. None without a population.
    present: list of PresentClass. The classes of the highest presence in the population.
    games: mapping of attacker to Payoffs. "prosecutor", and with a population "journalist". Empty without a game.
    estimated: EstimatedRisks or None. The risk in the population that sampling weights estimate. None without weights.
    uniques: PopulationUniques or None. Estimated uniques in the population. None without its size.
    households: HouseholdRisks or None. The risk that somebody of a household is found. None if not asked for.
    risk_threshold: RiskThreshold or None. The threshold for a limit of the global risk. None if not asked for.
    seconds: mapping of stage to wall time, seconds.

    The columns of `attributes` are: values (different values in the table); each disclosure measure that is asked for
    (alpha, distinct_l, entropy_l, recursive_c, t, basic_beta, enhanced_beta, delta); and, if groups are asked for,
    homogeneous_classes (classes of several rows with a single value of the attribute) and certain_rows (rows whose
    class has a single value, classes of one row too; a value that only rows of weight 0 have is none).
    `gpupif measures` lists units, ranges and sources of the measures.
    """

    rows: int
    quasi_identifiers: Sequence[Hashable]
    sensitive: Sequence[Hashable]
    device: str
    classes: ClassRisks
    class_sizes: Sequence[SizeBand]
    attributes: pd.DataFrame
    worst: Mapping[str, float]
    l_values: int | None
    worst_classes: Sequence[WorstClass]
    groups: Sequence[Group]
    population: PopulationRisks | None
    present: Sequence[PresentClass]
    games: Mapping[str, Payoffs]
    estimated: EstimatedRisks | None
    uniques: PopulationUniques | None
    households: HouseholdRisks | None
    risk_threshold: RiskThreshold | None
    seconds: Mapping[str, float]

    @classmethod
    def from_assessment(
        cls, result: Assessment, k: int, threshold: float | None, game: Game | None, people: Mapping[str, Any]
    ) -> DisclosureRisk:
        """Return the risk that an assessment found.

        people: "sampling_fraction" and "population", the people of the population, at most one of which is not None.
        Other parameters: as in `gpupif.risk`. Raises InputError for a wrong k or size.
        """
        _, limit = check_limits(k, threshold)
        return cls(
            rows=result.rows,
            quasi_identifiers=result.request.quasi_identifiers,
            sensitive=result.request.sensitive,
            device=result.device,
            classes=risks_of(result.sizes, k, threshold),
            class_sizes=result.sizes.bands(),
            attributes=_attributes(result),
            worst={name: result.worst(name) for name in result.values},
            l_values=result.l_values or None,
            worst_classes=result.worst_classes,
            groups=[group for _, group in result.groups.first],
            population=None if result.in_population is None else result.in_population.sizes.risks(limit),
            present=[] if result.in_population is None else [entry for _, entry in result.in_population.present],
            games={}
            if game is None
            else {who: game.payoffs_of(sizes) for who, sizes in _attacked_sizes(result).items()},
            estimated=result.estimated,
            uniques=_uniques(result, people),
            households=result.households,
            risk_threshold=result.risk_threshold,
            seconds=dict(result.seconds),
        )

    @property
    def k(self) -> int:
        """The rows of the smallest equivalence class."""
        return self.classes.k

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary for JSON, with `l_values` as "l"."""
        document = super().to_dict()
        document["l"] = document.pop("l_values")
        document["class_sizes"] = [band._asdict() for band in self.class_sizes]
        return document

    def __repr__(self) -> str:
        attributes = f"{len(self.sensitive)} sensitive {plural(len(self.sensitive), 'attribute')}"
        return f"<DisclosureRisk of {self.rows:,} {plural(self.rows, 'row')}: k = {self.k}, {attributes}>"

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        from .report import attributes_sentence, classes_sentence

        number = self.classes.classes
        classes = "overlapping classes" if number is None else f"{number:,} {'class' if number == 1 else 'classes'}"
        said = attacker_line(self.quasi_identifiers, ()).removesuffix(".")
        rows = f"{said}: {self.rows:,} {plural(self.rows, 'row')} in {classes}, k = {self.k:,}."
        of_attributes = attributes_sentence(self.attributes, self.classes, self.estimated is not None, redact)
        return [rows, classes_sentence(self.classes, self.estimated), *([of_attributes] if of_attributes else [])]

    def draw(self, console: Console) -> None:
        from .report import (
            HIGH,
            attributes_table,
            beside_table,
            classes_table,
            games_table,
            groups_table,
            presence_tables,
            worst_table,
        )

        draw_verdict(self, console)
        if len(self.attributes):
            console.print()
            console.print(attributes_table(self.attributes, self.l_values))
            draw_line(console, HIGH, "dim")
        tables = [
            worst_table(self.worst_classes),
            classes_table(self.classes, self.estimated, self.population, self.uniques),
            beside_table(self.households, self.risk_threshold),
        ]
        if self.groups:
            tables.append(groups_table(self.groups))
        if self.population is not None and self.population.presence is not None:
            tables += presence_tables(self.population.presence, self.present)
        if self.games:
            tables.append(games_table(self.games))
        for table in filter(None, tables):
            console.print()
            console.print(table)
        console.print()
        spent = ", ".join(f"{stage} {took:.2f} s" for stage, took in self.seconds.items())
        draw_line(console, f"Device {self.device}, {spent}")


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
    """Assess the disclosure risk of a table: identities and sensitive attributes that equivalence classes reveal.

    All measures come from one read and one search. recursive (c,l)-diversity takes a second search over the same codes
    if its l is not given and the table's distinct l is above 1.

    Parameters
    ----------
    quasi_identifiers:
        Columns that an attacker may know of a person: a list or tuple of names, or a single name. A tuple that is the
        name of a column is that column. None: the quasi-identifiers among the roles.
    sensitive:
        Sensitive attributes: a column or a list of columns. None (default): the sensitive columns among the roles; if
        there are none, only measures of class sizes.
    models:
        The disclosure measures to find, of ``alpha``, ``distinct_l``, ``entropy_l``, ``recursive_c``, ``t``,
        ``basic_beta``, ``enhanced_beta``, ``delta``, ``k``. Default: all.
    l:
        The l of recursive (c,l)-diversity, as in `gpupif.models.l_diversity`.
    distance:
        The distance between values for t-closeness, as in `gpupif.models.t_closeness`.
    k, threshold:
        As in `gpupif.models.class_risks`: classes of fewer than k rows (default 5) are counted apart, and a risk above
        the threshold (default 1/k) counts as at risk.
    groups:
        How many of the most homogeneous classes of several rows to list (group privacy), default 10. Classes with the
        highest share of a sensitive value come first; see `Group`. 0: do not look for them, nor for the worst classes
        (`WorstClass`), which saves a pass. With a population, also how many classes of the highest presence to list; of
        equal ones, the largest classes.
    population:
        The population that the table is a part of: a table of any kind with the quasi-identifiers, and values of the
        same types. It gives journalist risk and presence, see `gpupif.models.population_risks`. Or a
        `gpupif.Population`, which says how to treat rows that the population lacks. A path is read in streams if the
        table is, or if the population is too large. A Dask DataFrame takes another Dask DataFrame, a path of Parquet,
        or a table in memory. If missing values match every value in either table, the journalist's average is NaN and
        presence None.
    sampling_fraction, population_size:
        For a table that is a simple random sample: the share of the population that is in the table, in (0, 1], or the
        people of the population. Give at most one of the two. Either gives an estimate of the people who are unique in
        the population, see `gpupif.models.population_uniques`.
    household:
        A column whose value is the same in all rows of a household. It gives ``.households``, the risk that at least
        one row of a household is re-identified, see `HouseholdRisks`. A row's own risk is its individual risk, without
        weights 1 / the rows of its class. The column has no missing value, and is neither a quasi-identifier nor a
        sensitive attribute. `gpupif.models.household_risk` has the risk of each row's household.
    max_global_risk:
        The highest acceptable global risk: expected re-identifications as a share of the rows, in (0, 1]. It gives
        ``.risk_threshold``, see `RiskThreshold`: the risk above which rows have to be protected, and the number of
        these rows. It takes 24 bytes of memory for each risk that occurs.
    game:
        The amounts at stake, a `gpupif.models.Game`: gives the payoffs of attacks and of publication. Classes are
        counted by rows (whatever their weights), and with a population also by people. Default: none.
    roles:
        The roles of the columns, as in `gpupif.read_roles`, or the path of a file of roles. Roles decide which columns
        are quasi-identifiers, which are sensitive, and which column has the weights, if no other argument does. Every
        column of the table needs a role.

    Returns
    -------
    DisclosureRisk
        ``.k``, ``.classes``, ``.attributes`` (a pandas DataFrame), ``.worst``, ``.worst_classes``, ``.groups``,
        ``.population``, ``.present``, ``.games``, ``.estimated``, ``.households``, ``.risk_threshold``, ``.uniques``;
        prints as tables; ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        As the functions named; an unknown model, an argument out of range, a population that lacks rows of the table.
    TableReadError, OutputError, DeviceError
        As `gpupif.score`.

    References
    ----------
    ``gpupif measures`` lists the source of each measure.

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
    # Arguments are checked before a large table is read.
    most = whole_number("groups", groups, "classes", 0)
    _, limit = check_limits(k, threshold)
    if game is not None and not isinstance(game, Game):
        raise InputError(f"game: expected a gpupif.models.Game, got {brief(game)}.")
    people = {"sampling_fraction": sampling_fraction, "population": population_size}
    check_size(people, weights, missing)
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
    result = assess(table, request, Population.from_any(population))
    return DisclosureRisk.from_assessment(result, k, threshold, game, people)


def check_size(people: Mapping[str, Any], weights: Hashable, missing: str) -> None:
    """Raise InputError for a wrong sampling fraction, or a size given twice, with weights or with wildcards."""
    given = [name for name, value in people.items() if value is not None]
    if len(given) > 1:
        raise InputError("sampling_fraction, population_size: expected one of them, got both.")
    if people["sampling_fraction"] is not None:
        share("sampling_fraction", people["sampling_fraction"])
    argument = given[0].replace("population", "population_size") if given else ""
    if given and weights is not None:
        raise InputError(
            f"{argument}: does not go with weights=: {SIMPLE_SAMPLE}. Leave one of them out; risk in the "
            "population that weights estimate needs no size."
        )
    if given and missing == "wildcard":
        raise InputError(f"{argument}: does not go with missing='wildcard': {NO_CLASSES}. Use missing='category'.")


def _uniques(result: Assessment, people: Mapping[str, Any]) -> PopulationUniques | None:
    """Return the estimated uniques in the population; None if the population's size is not given."""
    if all(value is None for value in people.values()):
        return None
    try:
        return population_uniques(result.sizes.classes_of_size, **people)
    except InputError as error:
        raise error.about("population_size", "population: ") from None


def _attacked_sizes(result: Assessment) -> dict[str, Mapping[int, int]]:
    """Return the rows of the table by class size, by attacker.

    The prosecutor's sizes are rows in the table, the journalist's are people in the population.
    """
    sizes: dict[str, Mapping[int, int]] = {"prosecutor": result.sizes.rows_of_size}
    return sizes if result.in_population is None else sizes | {"journalist": result.in_population.sizes.rows_of_size}


def _attributes(result: Assessment) -> pd.DataFrame:
    """Return a table with one row for each sensitive attribute; see `DisclosureRisk`."""
    import pandas as pd

    records = []
    for name in result.request.sensitive:
        record: dict[str, float] = {"values": result.cardinalities[name]}
        record |= {model: values[name] for model, values in result.values.items() if model != "k"}
        if name in result.homogeneous:
            record["homogeneous_classes"] = result.homogeneous[name].classes
            record["certain_rows"] = result.homogeneous[name].certain
        records.append(record)
    index = pd.Index(result.request.sensitive, name="attribute", tupleize_cols=False)
    return pd.DataFrame(records, index=index)
