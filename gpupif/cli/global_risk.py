"""The command `gpupif global-risk`: each parameter of its function is an option, as Typer has it."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..errors import InputError
from . import options
from .option_values import FileRoles, as_names
from .options import ClusterOptions, table_option


def global_risk(
    table: options.Table,
    quasi_identifiers: options.QuasiIdentifiers = None,
    roles: options.RolesFile = None,
    weights: options.SamplingWeights = None,
    sampling_fraction: float | None = table_option(
        "0.01", "Instead of weights: share of the population that TABLE is."
    ),
    interactions: str | None = table_option(
        "two-way|A:B,A:C", "Interactions of the model: of all pairs, or these. Default: none."
    ),
    missing: options.Missing = "category",
    device: options.Device = None,
    *,
    shared: ClusterOptions,
) -> None:
    """Estimate how many unique rows of TABLE are unique in its population, by a log-linear model."""
    shared.check(table)
    known = as_names(quasi_identifiers, "quasi_identifiers")
    if known is None and roles is None:
        raise InputError("quasi_identifiers: expected columns, got none. Name them, or give their --roles.")
    from_file = FileRoles(roles, table, shared.sep, [*(known or ()), weights])
    known = from_file.quasi_identifiers("quasi-identifiers", known) or []
    if sampling_fraction is None:
        weights = from_file.weights(weights)
    with shared.configured(device):
        from ..disclosure.global_risk import global_risk as find_global_risk
        from ..disclosure.request import pick_needed

        find = partial(
            find_global_risk,
            quasi_identifiers=known,
            weights=weights,
            sampling_fraction=sampling_fraction,
            interactions=_interactions(interactions),
            missing=missing,
        )
        found = shared.find(find, table, partial(pick_needed, known, [], weights=weights))
    shared.report(found, from_file, input=table)


def _interactions(text: str | None) -> Any:
    """Return a word as it is, or the interactions that A:B,A:C names."""
    if text is None or ":" not in text:
        return text
    return [pair.split(":") for pair in as_names(text, "interactions") or []]
