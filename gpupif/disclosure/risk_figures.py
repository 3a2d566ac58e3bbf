"""The figures that `gpupif.risk` measures, by the path at which its result has them: "population.journalist.highest".

They are read from the fields of the results, so that a new field is a figure. A new figure is safe if it is low, and no
search prunes by it, unless a set below says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

from ..attack.population import Population
from ..errors import InputError
from ..utils.display import Record
from ..utils.validation import brief, share, whole_number
from .attack_game import Game, Payoffs
from .class_risks import ClassRisks
from .estimated_risks import EstimatedRisks
from .households import HouseholdRisks
from .population_risks import PopulationRisks
from .population_uniques import PopulationUniques
from .risk_threshold import RiskThreshold

LIMIT = "max_global_risk"
# By part of the result: its kind, and the argument of `gpupif.risk` without which there is no such part.
PARTS: Mapping[str, tuple[type[Record], str]] = {
    "classes": (ClassRisks, ""),
    "population": (PopulationRisks, "population"),
    "estimated": (EstimatedRisks, "weights"),
    "uniques": (PopulationUniques, "population_size"),
    "households": (HouseholdRisks, "household"),
    "risk_threshold": (RiskThreshold, LIMIT),
    "games.prosecutor": (Payoffs, "game"),
    "games.journalist": (Payoffs, "population"),
}
# Fields that repeat an argument, count the rows or the people, or follow from the amounts of a game alone.
INPUTS = {"rows", "people", "threshold", "wanted_k", "population", "sampling_fraction", "game", "max_global_risk"}
INPUTS |= {"deterring_size", "publishable_size", "households"}
MEASURED = {"households.rows"}
# The last words of figures that are safe if they are high.
SAFE_IF_HIGH = {"k", "k_map", "largest", "average_size", "normalized_average_size", "lowest", "deterred", "publishable"}
SAFE_IF_HIGH |= {"publisher_payout", "best_payout", "deterring_payout"}
# Figures that coarser values never make less safe; see `RiskFigure.only_improves`.
_IMPROVE = {
    "classes": "k largest average_size uniques unique_share classes classes_below rows_below share_below "
    "normalized_average_size marketer prosecutor.highest prosecutor.average prosecutor.at_risk",
    "population": "classes k_map marketer journalist.highest journalist.average journalist.at_risk presence.lowest "
    "presence.highest presence.average presence.classes presence.absent_classes",
    "estimated": "k_map journalist.highest journalist.average journalist.at_risk individual.highest individual.average "
    "individual.at_risk reidentifications",
    "households": "risk.highest risk.average risk.at_risk reidentified rows row_share",
    "uniques": "sample_uniques",
    "risk_threshold": "global_risk",
}
_PAYOFFS = "attacked deterred publishable publisher_payout best_payout deterring_payout adversary_payoff"
_IMPROVE |= {"games.prosecutor": _PAYOFFS, "games.journalist": _PAYOFFS}
ONLY_IMPROVE = frozenset(f"{part}.{name}" for part, names in _IMPROVE.items() for name in names.split())
# The last words of figures that depend on k, and on a threshold of risk.
OF_K = {"classes_below", "rows_below", "share_below", "normalized_average_size"}
OF_THRESHOLD = {"at_risk", "rows_above", "share_above"}
# The figures among `ONLY_IMPROVE` for which rows of weight 0 do not matter: such rows are at no risk.
WITH_ZERO_WEIGHTS = {"estimated.k_map", "estimated.journalist.highest", "estimated.individual.highest"}


@dataclass(frozen=True)
class RiskArguments:
    """The arguments of `gpupif.risk` that its figures need beside columns; raises InputError for a wrong argument.

    population, weights, household, game, sampling_fraction, population_size: see `gpupif.risk`.
    zero_weights: whether a row of the table has weight 0.
    """

    population: Population | None = None
    weights: Any = None
    household: Any = None
    game: Game | None = None
    sampling_fraction: float | None = None
    population_size: int | None = None
    zero_weights: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "population", Population.from_any(self.population))
        if self.game is not None and not isinstance(self.game, Game):
            raise InputError(f"game: expected a gpupif.models.Game, got {brief(self.game)}.")

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments as `gpupif.risk` takes them."""
        return {name: value for name, value in vars(self).items() if name != "zero_weights"}

    @property
    def given(self) -> set[str]:
        """The names of the arguments that are given; either size of a population is "population_size"."""
        names = {name for name, value in self.keywords.items() if value is not None}
        return {"population_size" if name == "sampling_fraction" else name for name in names}

    @property
    def columns(self) -> dict[Any, str]:
        """The columns that are neither known nor scored, with the arguments that name them."""
        columns = {self.weights: "weights", self.household: "household"}
        return {name: argument for name, argument in columns.items() if name is not None}


# Figures that divide by the people of all classes.
OF_ALL_PEOPLE = {"population.journalist.average", "population.presence.average"}
NOTHING_GIVEN = RiskArguments()


@dataclass(frozen=True)
class RiskFigure:
    """A figure of the result of `gpupif.risk`. path: its place, such as "population.k_map". part: a key of `PARTS`."""

    path: str
    part: str

    @property
    def high_is_bad(self) -> bool:
        """True if a criterion is an upper limit of the figure."""
        return not SAFE_IF_HIGH.intersection({self.path, self.path.rpartition(".")[2]})

    @property
    def range(self) -> str:
        """The range of the figure in words. Payouts of a publisher may be losses."""
        return "any number" if self.path.endswith("payout") else "0 and up"

    @property
    def needs(self) -> set[str]:
        """The arguments of `RiskArguments` without which the figure is not measured."""
        return {PARTS[self.part][1], "game" * self.part.startswith("games")} - {"", LIMIT}

    def only_improves(self, given: RiskArguments) -> bool:
        """Return whether coarser values of any column never make the figure less safe.

        Coarser values merge classes: a row's class gets more rows f and more people F, and so does what a row matches
        if missing values match every value. So min F rises; 1/f, 1/F, their sums, and the rows above a threshold fall.
        So does journalist.average, max(J / sum F, sum 1/F / n), as each merger lowers J or raises F. But if the
        population lacks rows, F = max(f, F) need not add up, and presence.average need not stay. Payoffs are sums over
        rows of what falls or rises with the class. The presence of a merged class is between those that merge.

        Individual risk is the integral over t from 0 to 1 of (1/t) (1 + F (1-t) / (f t))^-f. It falls in f and in F
        (Benedetti & Franconi 1998), so the risk of each row and household falls. A row of a class of weight 0 is at no
        risk, and gets some with others: means and numbers of rows are then not monotone. Rows with a presence above a
        threshold are not monotone either: 1 of 1 and 4 of 5 people, at 0.82. Nothing is proved of estimated population
        uniques, and of rows above a threshold of global risk.
        """
        if self.path not in ONLY_IMPROVE:
            return False
        if self.path in OF_ALL_PEOPLE and given.population is not None:
            return given.population.lacks == "error"
        of_weights = self.part in ("estimated", "households", "risk_threshold")
        return not (given.zero_weights and of_weights) or self.path in WITH_ZERO_WEIGHTS

    def arguments(self, number: float | None) -> dict[str, Any]:
        """Return the arguments of `gpupif.risk` from the number in brackets. Raises InputError.

        It is a limit of global risk for figures of "risk_threshold". Of other figures, those of `OF_K` depend on k.
        Those of `OF_THRESHOLD` depend on a threshold of risk, which is 1/k for a number k above 1.
        """
        if self.part == "risk_threshold":
            if number is None:
                raise InputError(f"{self.path} depends on {LIMIT}: expected it in brackets, as in {self.path}(0.05).")
            return {LIMIT: share(LIMIT, number)}
        if number is None:
            return {}
        word = self.path.rpartition(".")[2]
        if word not in OF_K | OF_THRESHOLD:
            raise InputError(f"{self.path} depends on no number: expected no brackets, got ({number:g}).")
        if word in OF_K or number > 1:
            return {"k": whole_number("k", number, "rows")}
        return {"threshold": share("threshold", number)}

    def find(self, found: Any) -> float | None:
        """Return the figure from the result of `gpupif.risk`; None if it is not defined."""
        for name in self.path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)
        return None if found is None else float(found)


def _paths(kind: type, path: str) -> Iterator[str]:
    """Yield the paths of the numbers in a result of a kind."""
    for name, hint in get_type_hints(kind).items():
        place = f"{path}.{name}"
        kinds = [one for one in (get_args(hint) if isinstance(hint, UnionType) else [hint]) if one is not NoneType]
        if (name in INPUTS and place not in MEASURED) or len(kinds) > 1:
            continue
        if kinds[0] in (int, float):
            yield place
        elif isinstance(kinds[0], type) and is_dataclass(kinds[0]):
            yield from _paths(kinds[0], place)


RISK_FIGURES: dict[str, RiskFigure] = {
    path: RiskFigure(path, part) for part, (kind, _) in PARTS.items() for path in _paths(kind, part)
}


def find_figure(word: str) -> RiskFigure | None:
    """Return the figure at a path, or at the only path that ends like the word; None if there is none.

    Raises InputError if several paths end so.
    """
    ends = [path for path in RISK_FIGURES if path == word or path.endswith("." + word)]
    if len(ends) > 1:
        raise InputError(f"{word} may be {', '.join(ends[:-1])} or {ends[-1]}: write which one.")
    return RISK_FIGURES[ends[0]] if ends else None
