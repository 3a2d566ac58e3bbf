"""The command `gpupif risk`: each parameter of its function is an option, as Typer has it."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from . import options
from .option_values import FileRoles, as_distances, as_names, as_population
from .options import ClusterOptions, compiling_ahead, game_option, option, table_option

if TYPE_CHECKING:
    from ..disclosure.attack_game import Game


def risk(
    table: options.Table,
    quasi_identifiers: options.QuasiIdentifiers = None,
    sensitive: str | None = option("C,D", "Sensitive attributes. Default: only sizes of classes."),
    roles: options.RolesFile = None,
    models: str | None = option("M,M", "Disclosure measures, see gpupif measures. Default: all."),
    l: int | None = option("L", "Of recursive (c,l)-diversity. Default: the distinct l.", "--l"),  # noqa: E741
    distance: options.Distances = None,
    k: int = option("K", "Classes of fewer rows are counted apart.", "--k", default=5),
    threshold: float | None = option("0.2", "A higher risk counts as at risk. Default: 1/k."),
    groups: int = option("N", "How many classes to list of each kind.", default=10),
    population: Path | None = table_option(
        "FILE", "The population that TABLE is a part of: journalist risk, presence."
    ),
    population_lacks: options.PopulationLacks = "error",
    sampling_fraction: float | None = table_option("0.01", "Share of the population that TABLE is a random sample of."),
    population_size: int | None = table_option("N", "People in that population, instead of --sampling-fraction."),
    publisher_benefit: float | None = game_option("1200", "What each row that is published brings."),
    publisher_loss: float | None = game_option("300", "What each person costs the publisher who is re-identified."),
    adversary_gain: float | None = game_option("300", "What each such person brings the adversary."),
    adversary_cost: float | None = game_option("4", "What each attempt costs the adversary."),
    weights: options.SamplingWeights = None,
    household: str | None = table_option(
        "COLUMN", "Rows of a household have the same value there: risk that one is found."
    ),
    max_global_risk: float | None = table_option(
        "0.01", "Acceptable re-identifications per row: the risk above which to protect rows."
    ),
    missing: options.MissingOrWildcard = "category",
    device: options.Device = None,
    gpu_grouping: options.GpuGrouping = None,
    *,
    shared: ClusterOptions,
) -> None:
    """Say how far TABLE discloses identities and sensitive attributes: k, l, t and more, at once."""
    shared.check(table)
    known, attributes = as_names(quasi_identifiers, "quasi_identifiers"), as_names(sensitive, "sensitive")
    if known is None and roles is None:
        raise InputError("quasi_identifiers: expected columns, got none. Name them, or give their --roles.")
    from_file = FileRoles(roles, table, shared.sep, [*(known or ()), *(attributes or ()), weights, household])
    known = from_file.quasi_identifiers("quasi-identifiers", known) or []
    attributes = from_file.sensitive(attributes)
    weights = from_file.weights(weights)
    asked = as_names(models, "models")
    on_blocks = not shared.place.named and missing != "wildcard"
    with (
        shared.configured(device, gpu_grouping),
        compiling_ahead("risk", _cells(asked if attributes else ["k"]) if on_blocks else (), table, shared.sep),
    ):
        from ..disclosure.request import pick_needed
        from ..disclosure.risk import risk as find_risk

        game = _game(
            publisher_benefit=publisher_benefit,
            publisher_loss=publisher_loss,
            adversary_gain=adversary_gain,
            adversary_cost=adversary_cost,
        )
        find = partial(
            find_risk,
            quasi_identifiers=known,
            sensitive=attributes,
            models=asked,
            l=l,
            distance=_distances(as_distances(distance), attributes or ()),
            k=k,
            threshold=threshold,
            groups=groups,
            population=as_population(population, population_lacks),
            sampling_fraction=sampling_fraction,
            population_size=population_size,
            game=game,
            weights=weights,
            household=household,
            max_global_risk=max_global_risk,
            missing=missing,
        )
        pick = partial(pick_needed, known, attributes or [], weights=weights, household=household)
        found = shared.find(find, table, pick)
    shared.report(found, from_file, input=table)


def _cells(models: list[str] | None) -> list[str]:
    """Return the measures of cells whose extremes these disclosure measures are, for any l."""
    from ..disclosure.models import resolve_models

    return [model.measure(2) for model in resolve_models(models)]


def _game(**amounts: float | None) -> Game | None:
    """Return the game of some amounts, others being the defaults of `gpupif.models.Game`; None if none is given."""
    from ..disclosure.attack_game import Game

    given = {name: amount for name, amount in amounts.items() if amount is not None}
    return Game(**given) if given else None


def _distances(distances: dict[Hashable, Any] | None, attributes: Collection[str]) -> dict[Hashable, Any] | None:
    """Return distances by column; raise InputError for a column that is no sensitive attribute."""
    for column in distances or ():
        if column not in attributes:
            raise InputError(f"--distance: column {column!r} is not among the sensitive attributes (--sensitive).")
    return distances
