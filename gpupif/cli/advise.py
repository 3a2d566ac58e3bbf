"""The command `gpupif advise`: each parameter of its function is an option, as Typer has it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial

from . import options
from .option_values import FileRoles, as_list_text, as_names
from .options import ClusterOptions, RiskOptions, option


def advise(
    table: options.Table,
    hierarchies: options.Hierarchies = None,
    criterion: str = option(
        "pif95|k|'max csf'|...", "What is to be less risky: changes are ranked by it.", default="pif95"
    ),
    columns: str | None = option("A,B", "Columns that are scored and known. Default: all."),
    quasi_identifiers: str | None = option("A,B", "In place of --columns: those that an attacker may know."),
    sensitive: str | None = option("C,D", "With them: columns that are scored, which stay as they are."),
    roles: options.RolesFile = None,
    device: options.Device = None,
    *,
    measured: RiskOptions,
    shared: ClusterOptions,
) -> None:
    """Rank what dropping or coarsening each column of TABLE buys: less risk per bit of information given up."""
    shared.check(table)

    from ..disclosure.risk_figures import RiskArguments
    from ..protection.advise import advise as find_advice
    from ..protection.advise import pick_needed

    every, attributes = as_names(columns), as_names(sensitive, "sensitive")
    known = as_names(quasi_identifiers, "quasi_identifiers")
    beside = RiskArguments(weights=measured.weights, household=measured.household).columns
    from_file = FileRoles(roles, table, shared.sep, [*(known or ()), *(attributes or ()), *beside], every)
    if roles is not None:
        measured = replace(measured, weights=from_file.weights(measured.weights))
        beside = RiskArguments(weights=measured.weights, household=measured.household).columns
        known = from_file.quasi_identifiers("quasi-identifiers", known)
        attributes = from_file.sensitive(attributes)
        # The roles say which of these columns are known.
        every = None
    find = partial(
        find_advice,
        hierarchies=hierarchies,
        criterion=criterion,
        columns=every,
        quasi_identifiers=known,
        sensitive=attributes,
        **measured.given,
    )
    with shared.configured(device):
        found = shared.find(find, table, partial(pick_needed, every, known, attributes, criterion, beside))
    named = None if quasi_identifiers is None and columns is None else as_list_text(map(str, found.columns))
    given = {"--roles": roles, "--quasi-identifiers": named, "--sensitive": sensitive, "--hierarchies": hierarchies}
    texts = [
        text for name, own in (given | {"--sep": shared.sep}).items() if own is not None for text in (name, str(own))
    ]
    protect = ["gpupif", "protect", str(table), *texts, "--require", "k>=5", "--suppress", "0.05", "-o", "plan.toml"]
    commands = [shlex.join(protect)]
    shared.report(found, from_file, commands, input=table)
    shared.say("")
    shared.say_commands("To find all changes that a limit needs, together:", commands)
