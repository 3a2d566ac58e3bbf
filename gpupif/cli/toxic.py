"""The command `gpupif toxic`: each parameter of its function is an option, as Typer has it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from . import options
from .option_values import FileRoles, as_names, check_goes_with
from .options import ClusterOptions, option, options_of_panel

if TYPE_CHECKING:
    from ..marginals.quasi_identifiers import QuasiIdentifiers
    from ..marginals.toxic_pairs import ToxicPairs

smallest_option = options_of_panel("Smallest sets of columns that tell rows apart")


def toxic(
    table: options.Table,
    size: int | None = option("2|3", "Pairs or triples of columns.", show_default="2"),
    columns: options.Columns = None,
    roles: options.RolesFile = None,
    top: int = option("N", "How many to list, of columns and of values.", default=20),
    weights: options.SamplingWeights = None,
    device: options.Device = None,
    missing: options.Missing = "category",
    alpha: float | None = smallest_option("0.9", "List, in place of pairs, the smallest sets that reach this share."),
    by: str | None = smallest_option(
        "distinction|separation",
        "Share of what: of the rows, which differ from each other, or of the pairs of rows, which differ.",
        show_default="distinction",
    ),
    max_size: int | None = smallest_option("N", "The most columns of a set.", show_default="3"),
    *,
    shared: ClusterOptions,
) -> None:
    """Rank pairs of columns of TABLE by what they tell together, and list the values far rarer than their parts."""
    _check_together(size, weights, alpha, by, max_size)
    shared.check(table)

    from ..marginals.quasi_identifiers import quasi_identifiers
    from ..marginals.request import CountRequest
    from ..marginals.toxic_pairs import toxic_pairs

    given = as_names(columns)
    from_file = FileRoles(roles, table, shared.sep, [*(given or ()), weights])
    # The ratios count rows: the role of weights only says that the column is no quasi-identifier.
    counted = None if alpha is not None else from_file.weights(weights)
    request = CountRequest(from_file.quasi_identifiers("columns", given), counted, missing)
    same: dict[str, Any] = {"columns": request.columns, "top": top, "missing": missing}
    find: Callable[..., ToxicPairs | QuasiIdentifiers]
    if alpha is None:
        find = partial(toxic_pairs, size=2 if size is None else size, weights=request.weights, **same)
    else:
        find = partial(quasi_identifiers, alpha=alpha, by=by or "distinction", max_size=max_size, **same)
    with shared.configured(device):
        found = shared.find(find, table, request.pick)
    shared.report(found, from_file, input=table)


def _check_together(
    size: int | None, weights: str | None, alpha: float | None, by: str | None, max_size: int | None
) -> None:
    """Raise InputError for options that do not go together."""
    check_goes_with("--alpha", alpha, by=by, max_size=max_size)
    if alpha is not None and size is not None:
        raise InputError("--size: goes without --alpha, with which --max-size says how large sets are. Leave it out.")
    if alpha is not None and weights is not None:
        from ..utils.refused_combinations import WEIGHTS_RATIOS

        raise WEIGHTS_RATIOS.refusal()
