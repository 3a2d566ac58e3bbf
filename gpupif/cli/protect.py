"""The command `gpupif protect`: each parameter of its function is an option, as Typer has it."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path

import typer

from ..errors import InputError, UnmetError
from . import options
from .messages import UNMET, CommandFailedError, say_unmet, warnings_held
from .option_values import (
    FileRoles,
    as_attackers,
    as_distances,
    as_names,
    as_numbers,
    compare_command,
)
from .options import ClusterOptions, ReportFile, RiskOptions, attack_option, option
from .printing import interruption

# The file of the secret key in the commands that are shown.
KEY_FILE = "treat.key"


def protect(
    table: options.Table,
    require: list[str] | None = option(
        "CRITERION",
        "A limit on risk: 'k>=5', 't(ill)<=0.2', 'pif95<=3', 'max csf<=0.9', 'known=3: k>=3', ... May be repeated.",
    ),
    hierarchies: options.Hierarchies = None,
    output: Path | None = option("plan.toml", "Where the plan goes, for gpupif treat.", "--output", "-o"),
    quasi_identifiers: str | None = option(
        "A,B", "Columns that are made coarser. Default: all that are not sensitive."
    ),
    sensitive: str | None = option("C,D", "What an attacker would learn, for distinct_l, t, ...: stays as it is."),
    strata: str | None = option("G", "Columns that the attacker knows and that stay: criteria hold in each stratum."),
    identifiers: str | None = option("E,F", "Columns that name persons: the plan drops them."),
    pseudonymise: str | None = option(
        "E", "Columns that get pseudonyms in place of being dropped; treat needs --key-file."
    ),
    keep: str | None = option("F", "Columns that stay although they name persons, or look like it."),
    roles: options.RolesFile = None,
    objective: str = option(
        "OBJECTIVE",
        "What is minimised: entropy (bits lost), entropy+suppression, loss, loss_gm, discernibility, "
        "average_class_size, precision, height, 'utility(COLUMN)' or 'utility(COLUMN, classify)'.",
        default="entropy",
    ),
    suppress: float = option(
        "0.04",
        "Share of the rows that may be suppressed: in classes, of any attacker, that break a criterion.",
        default=0.0,
    ),
    cells: bool = option(
        None,
        "With --suppress: single cells, as few as it takes. If they are in too many rows, whole rows.",
        "--cells",
        default=False,
    ),
    local: bool = option(
        None,
        "With --suppress: rows are recoded further, in rounds, before they are suppressed.",
        "--local-recoding",
        default=False,
    ),
    importance: list[str] | None = option("COLUMN=2", "What a bit of a column is worth. Default: 1. May be repeated."),
    reference: str = option(
        "released|original",
        "With --suppress: the rows with which t, beta and delta compare classes: those that are left, or all (ARX).",
        default="released",
    ),
    time_limit: float = option(
        "SECONDS", "Ends the search with the best plan so far; inf for no limit.", default=600.0
    ),
    attacker: list[str] | None = attack_option(
        "NAME=A,B", "An attacker, and the columns it knows, for criteria 'NAME: ...'; may be repeated."
    ),
    attacker_any: options.AnyAttackers = None,
    distance: options.Distances = None,
    device: options.Device = None,
    gpu_grouping: options.GpuGrouping = None,
    overwrite: options.Overwrite = False,
    keep_unmet: options.KeepUnmet = False,
    report: options.Report = None,
    redact: options.Redact = False,
    *,
    measured: RiskOptions,
    shared: ClusterOptions,
) -> None:
    """Find the plan that makes TABLE meet criteria at the least loss: the columns made as coarse as they have to be."""
    shared.check(table)
    to = ReportFile(report, overwrite, (table, "treated by", output or "a plan"), redact)
    if not require:
        raise InputError("--require: expected at least one limit, such as --require 'k>=5'; got none.")
    if output is not None:
        from ..treatment.plan import check_plan_output

        check_plan_output(output, overwrite)

    known, attributes = as_names(quasi_identifiers, "quasi_identifiers"), as_names(sensitive, "sensitive")
    dropped, pseudonyms, kept = (
        as_names(text, argument) or []
        for argument, text in (("identifiers", identifiers), ("pseudonymise", pseudonymise), ("keep", keep))
    )
    within = as_names(strata, "strata") or []
    named_here = [*(known or ()), *(attributes or ()), *within, measured.weights, measured.household]
    from_file = FileRoles(roles, table, shared.sep, named_here)
    measured = replace(measured, weights=from_file.weights(measured.weights))
    known = from_file.quasi_identifiers("quasi-identifiers", known)
    if known is not None:
        known = [*known, *(name for name in within if name not in known)]
    attributes = from_file.sensitive(attributes)
    both = [name for name in dropped if name in kept]
    if both:
        raise InputError(
            f"--keep: column {both[0]!r} is among --identifiers too, which the plan drops. Name it in one of them only."
        )
    # Columns that options name are identifiers too, but what becomes of them is said by the option.
    dropped += from_file.identifiers([*dropped, *pseudonyms, *kept], [measured.weights, measured.household])
    with warnings_held(), shared.configured(device, gpu_grouping):
        from ..disclosure.risk_figures import RiskArguments
        from ..frames.open import table_names
        from ..io.paths import find_input
        from ..protection.identifiers import warn_of_identifiers
        from ..protection.objectives import as_objective
        from ..protection.protect import protect as find_plan
        from ..protection.request import columns_read

        attackers = as_attackers(attacker, attacker_any, int)
        find = partial(
            find_plan,
            require=require,
            hierarchies=hierarchies,
            quasi_identifiers=known,
            sensitive=attributes,
            strata=within or None,
            identifiers=dropped,
            pseudonymise=pseudonyms,
            keep=kept,
            attackers=attackers,
            distances=as_distances(distance),
            importance=as_numbers("--importance", importance or (), "age=2") or None,
            objective=objective,
            suppress=suppress,
            cells=cells,
            local=local,
            time_limit=None if time_limit == float("inf") else time_limit,
            reference=reference,
            **measured.given,
        )
        named: dict[Hashable, str] = {
            **dict.fromkeys(dropped, "identifiers"),
            **dict.fromkeys(pseudonyms, "pseudonymise"),
            **dict.fromkeys(kept, "keep"),
        }
        beside = RiskArguments(weights=measured.weights, household=measured.household).columns
        if shared.place.named and known is not None:
            # Workers read no other columns than these.
            files = find_input(table, shared.sep)
            named_too = {*known, *(attributes or ()), *named, *beside, as_objective(objective).column}
            names, labels = table_names(files)
            warn_of_identifiers(files, [name for name in (*names, *labels) if name not in named_too], labels)
        pick = partial(columns_read, require, known, attributes or (), attackers, named, objective, others=beside)
        try:
            found = shared.find(find, table, pick)
        except KeyboardInterrupt as interrupted:
            raise CommandFailedError(f"interrupted: {interrupted}; nothing was written.", 128 + signal.SIGINT) from None
        except UnmetError as unmet:
            say_unmet(unmet)
            found = unmet.nearest
        is_kept = output is not None and (found.unmet is None or keep_unmet)
        if output is not None and is_kept:
            found.plan.save(output, overwrite=overwrite)
            interruption.left = f"the plan is complete: {output}"
    # The plan names the strata among the quasi-identifiers.
    commands = (
        []
        if output is None or found.unmet is not None
        else _next_commands(table, output, roles, not within, bool(pseudonyms), shared.sep)
    )
    shared.report(found, from_file, commands, to, input=table, output=output)
    shared.say("")
    if found.unmet is not None:
        written = f"The plan that comes nearest, marked as unmet, is written to {output}."
        needed = " ".join([*["-o plan.toml"] * (output is None), *["--keep-unmet"] * (not keep_unmet)])
        shared.say(written if is_kept else f"No plan is written. To keep the plan that comes nearest, add {needed}.")
        raise typer.Exit(UNMET)
    if output is None:
        shared.say("The plan was not kept. To keep it, for gpupif treat, add -o plan.toml.")
    else:
        shared.say_commands(f"Plan written to {output}. To go on:", commands)
    if found.stopped_by == "Ctrl-C" or not found.risk:
        raise typer.Exit(128 + signal.SIGINT)


def _next_commands(
    table: Path, plan: Path, roles: Path | None, by_roles: bool, with_key: bool, sep: str | None
) -> list[str]:
    """Return the commands that treat the table by the plan, and compare it with the treated table.

    by_roles: whether the roles say what the attacker knows, not the plan. with_key: whether the plan needs a key.
    """
    treated = Path("treated")
    if table.stem and "*" not in str(table):
        written = table.suffix in ("", ".csv", ".feather", ".parquet")
        treated = Path(f"{table.stem}_treated{table.suffix if written else '.parquet'}")
    numbers = (treated.with_stem(f"{treated.stem}_{number}") for number in count(2))
    # The name of an output that does not exist yet, so that the command works.
    treated = next(place for place in chain([treated], numbers) if not place.exists())
    given = {"--roles": roles, "--key-file": KEY_FILE if with_key else None, "--sep": sep}
    options = [text for option, value in given.items() if value is not None for text in (option, str(value))]
    treat = shlex.join(["gpupif", "treat", str(table), "--plan", str(plan), *options, "-o", str(treated)])
    # A treated table has commas between its values, so compare has to find the separator of each table by itself.
    compare = compare_command(table, treated, plan, roles if by_roles else None)
    if with_key and not Path(KEY_FILE).exists():
        return [f"python -c \"import gpupif; gpupif.treatments.Key.new().save('{KEY_FILE}')\"", treat, compare]
    return [treat, compare]
