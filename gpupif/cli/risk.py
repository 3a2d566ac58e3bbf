"""The command `gpupif risk`: each parameter of its function is an option, as Typer has it, so there are many."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from . import options
from .options import FileRoles, as_distances, as_names, as_population, check_table, compiling_ahead, configured, show

if TYPE_CHECKING:
    from ..disclosure.attack_game import Game


def risk(
    table: options.Table,
    quasi_identifiers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns that an attacker may know of a person; or give --roles."),
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option(metavar="C,D", help="Sensitive attributes. Default: only sizes of classes.")
    ] = None,
    roles: options.RolesFile = None,
    models: Annotated[
        str | None, typer.Option(metavar="M,M", help="Disclosure measures, see gpupif measures. Default: all.")
    ] = None,
    l: Annotated[  # noqa: E741 (the name that the measure has)
        int | None, typer.Option("--l", metavar="L", help="Of recursive (c,l)-diversity. Default: the distinct l.")
    ] = None,
    distance: options.Distances = None,
    k: Annotated[int, typer.Option("--k", metavar="K", help="Classes of fewer rows are counted apart.")] = 5,
    threshold: Annotated[
        float | None, typer.Option(metavar="0.2", help="A higher risk counts as at risk. Default: 1/k.")
    ] = None,
    groups: Annotated[int, typer.Option(metavar="N", help="How many classes to list of each kind.")] = 10,
    population: Annotated[
        Path | None,
        options.table_option(metavar="FILE", help="The population that TABLE is a part of: journalist risk, presence."),
    ] = None,
    population_lacks: options.PopulationLacks = "error",
    sampling_fraction: Annotated[
        float | None,
        options.table_option(metavar="0.01", help="Share of the population that TABLE is a random sample of."),
    ] = None,
    population_size: Annotated[
        int | None, options.table_option(metavar="N", help="People in that population, instead of --sampling-fraction.")
    ] = None,
    publisher_benefit: Annotated[
        float | None, options.game_option(metavar="1200", help="What each row that is published brings.")
    ] = None,
    publisher_loss: Annotated[
        float | None,
        options.game_option(metavar="300", help="What each person costs the publisher who is re-identified."),
    ] = None,
    adversary_gain: Annotated[
        float | None, options.game_option(metavar="300", help="What each such person brings the adversary.")
    ] = None,
    adversary_cost: Annotated[
        float | None, options.game_option(metavar="4", help="What each attempt costs the adversary.")
    ] = None,
    weights: options.SamplingWeights = None,
    household: Annotated[
        str | None,
        options.table_option(
            metavar="COLUMN", help="Rows of a household have the same value there: risk that one is found."
        ),
    ] = None,
    max_global_risk: Annotated[
        float | None,
        options.table_option(
            metavar="0.01", help="Acceptable re-identifications per row: the risk above which to protect rows."
        ),
    ] = None,
    missing: options.MissingOrWildcard = "category",
    device: options.Device = None,
    gpu_grouping: options.GpuGrouping = None,
    sep: options.Sep = None,
    memory_limit: options.StreamMemory = None,
    temp: options.StreamTemp = None,
    scheduler: options.Scheduler = None,
    workers: options.WorkerProcesses = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say how far TABLE discloses identities and sensitive attributes: k, l, t and more, at once."""
    from ..dask.client import Place

    place = Place(scheduler, workers)
    check_table(table, sep, place)
    known, attributes = as_names(quasi_identifiers, "quasi_identifiers"), as_names(sensitive, "sensitive")
    if known is None and roles is None:
        raise InputError("quasi_identifiers: expected columns, got none. Name them, or give their --roles.")
    from_file = FileRoles(roles, table, sep, [*(known or ()), *(attributes or ()), weights, household])
    known = from_file.known("quasi-identifiers", known) or []
    attributes = from_file.take("sensitive", attributes, lambda columns: columns.sensitive)
    weights = from_file.weights(weights)
    asked = as_names(models, "models")
    on_blocks = not place.named and missing != "wildcard"
    with (
        configured(quiet, device, gpu_grouping, memory_limit, temp),
        compiling_ahead("risk", _cells(asked if attributes else ["k"]) if on_blocks else (), table, sep),
    ):
        from ..disclosure.request import pick_needed
        from ..disclosure.risk import risk as find_risk
        from .cluster import find_anywhere

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
            distance=_distances(distance or (), attributes or ()),
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
        found = find_anywhere(find, table, pick, place, sep, memory_limit, temp)
    show(lambda: {"input": str(table), **from_file.facts(), **found.to_dict()}, found.print, as_json, quiet)
    from_file.say(as_json, quiet)


def _cells(models: list[str] | None) -> list[str]:
    """The measures of cells that these disclosure measures are extremes of; l, where there is one, does not matter."""
    from ..disclosure.models import resolve_models

    return [model.measure(2) for model in resolve_models(models)]


def _game(**amounts: float | None) -> Game | None:
    """The game of these amounts, those that are not given as of `gpupif.Game`; None where none is."""
    from ..disclosure.attack_game import Game

    given = {name: amount for name, amount in amounts.items() if amount is not None}
    return Game(**given) if given else None


def _distances(texts: Iterable[str], attributes: Collection[str]) -> dict[str, Any] | None:
    """As `as_distances`; attributes: the sensitive ones."""
    distances = as_distances(texts)
    for column in distances:
        if column not in attributes:
            raise InputError(f"--distance: column {column!r} is not among the sensitive attributes (--sensitive).")
    return distances or None
