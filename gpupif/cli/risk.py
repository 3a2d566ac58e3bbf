"""The command `gpupif risk`: each parameter of its function is an option, as Typer has it."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from functools import partial
from typing import Any

from ..errors import InputError
from . import options
from .option_values import FileRoles, as_distances, as_names
from .options import ClusterOptions, ReportFile, RiskOptions, compiling_ahead, option, table_option


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
    max_global_risk: float | None = table_option(
        "0.01", "Acceptable re-identifications per row: the risk above which to protect rows."
    ),
    device: options.Device = None,
    gpu_grouping: options.GpuGrouping = None,
    report: options.Report = None,
    redact: options.Redact = False,
    overwrite: options.Overwrite = False,
    *,
    measured: RiskOptions,
    shared: ClusterOptions,
) -> None:
    """Say how far TABLE discloses identities and sensitive attributes: k, l, t and more, at once."""
    shared.check(table)
    to = ReportFile(report, overwrite, table, redact)
    known, attributes = as_names(quasi_identifiers, "quasi_identifiers"), as_names(sensitive, "sensitive")
    if known is None and roles is None:
        raise InputError("quasi_identifiers: expected columns, got none. Name them, or give their --roles.")
    beside = [measured.weights, measured.household]
    from_file = FileRoles(roles, table, shared.sep, [*(known or ()), *(attributes or ()), *beside])
    known = from_file.quasi_identifiers("quasi-identifiers", known) or []
    attributes = from_file.sensitive(attributes)
    weights = from_file.weights(measured.weights)
    asked = as_names(models, "models")
    on_blocks = not shared.place.named and measured.missing != "wildcard"
    with (
        shared.configured(device, gpu_grouping),
        compiling_ahead("risk", _cells(asked if attributes else ["k"]) if on_blocks else (), table, shared.sep),
    ):
        from ..disclosure.request import pick_needed
        from ..disclosure.risk import risk as find_risk

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
            max_global_risk=max_global_risk,
            **{**measured.given, "weights": weights},
        )
        pick = partial(pick_needed, known, attributes or [], weights=weights, household=measured.household)
        found = shared.find(find, table, pick)
    shared.report(found, from_file, to=to, input=table)


def _cells(models: list[str] | None) -> list[str]:
    """Return the measures of cells whose extremes these disclosure measures are, for any l."""
    from ..disclosure.models import resolve_models

    return [model.measure(2) for model in resolve_models(models)]


def _distances(distances: dict[Hashable, Any] | None, attributes: Collection[str]) -> dict[Hashable, Any] | None:
    """Return distances by column; raise InputError for a column that is no sensitive attribute."""
    for column in distances or ():
        if column not in attributes:
            raise InputError(f"--distance: column {column!r} is not among the sensitive attributes (--sensitive).")
    return distances
