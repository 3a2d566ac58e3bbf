"""The command `gpupif protect`."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Hashable
from functools import partial
from itertools import chain, count
from pathlib import Path

import typer

from ..errors import InputError, UnmetError
from .messages import UNMET, CommandFailedError, say_unmet, warnings_held
from .option_values import compare_command
from .options import Given
from .printing import interruption

# The file of the secret key in the commands that are shown.
KEY_FILE = "treat.key"


def protect(given: Given) -> None:
    """Find the plan that makes TABLE meet criteria at the least loss: the columns made as coarse as they have to be."""
    given.check()
    output = given.output
    to = given.report_file((given.table, "treated by", output or "a plan"))
    if not given.require:
        raise InputError("--require: expected at least one limit, such as --require 'k>=5'; got none.")
    if output is not None:
        from ..treatment.plan import check_plan_output

        check_plan_output(output, given.overwrite)

    known, attributes = given.quasi_identifiers, given.sensitive
    dropped, pseudonyms, kept = given.identifiers or [], given.pseudonymise or [], given.keep or []
    within = given.strata or []
    from_file = given.file_roles(known, attributes, within, given.weights, given.household)
    given.weights = from_file.weights(given.weights)
    known = from_file.quasi_identifiers("quasi-identifiers", known)
    if known is not None:
        known = [*known, *(name for name in within if name not in known)]
    given.quasi_identifiers = known
    given.sensitive = attributes = from_file.sensitive(attributes)
    both = [name for name in dropped if name in kept]
    if both:
        raise InputError(
            f"--keep: column {both[0]!r} is among --identifiers too, which the plan drops. Name it in one of them only."
        )
    # Columns that options name are identifiers too, but what becomes of them is said by the option.
    dropped += from_file.identifiers([*dropped, *pseudonyms, *kept], [given.weights, given.household])
    given.identifiers = dropped
    with warnings_held(), given.configured():
        from ..disclosure.risk_figures import RiskArguments
        from ..frames.open import table_names
        from ..io.paths import find_input
        from ..protection.identifiers import warn_of_identifiers
        from ..protection.objectives import as_objective
        from ..protection.protect import protect as find_plan
        from ..protection.request import columns_read

        named: dict[Hashable, str] = {
            **dict.fromkeys(dropped, "identifiers"),
            **dict.fromkeys(pseudonyms, "pseudonymise"),
            **dict.fromkeys(kept, "keep"),
        }
        beside = RiskArguments(weights=given.weights, household=given.household).columns
        if given.place.named and known is not None:
            # Workers read no other columns than these.
            files = find_input(given.table, given.sep)
            named_too = {*known, *(attributes or ()), *named, *beside, as_objective(given.objective).column}
            names, labels = table_names(files)
            warn_of_identifiers(files, [name for name in (*names, *labels) if name not in named_too], labels)
        request = given.require, known, attributes or (), given.attackers, named, given.objective
        try:
            found = given.find(find_plan, partial(columns_read, *request, others=beside))
        except KeyboardInterrupt as interrupted:
            raise CommandFailedError(f"interrupted: {interrupted}; nothing was written.", 128 + signal.SIGINT) from None
        except UnmetError as unmet:
            say_unmet(unmet)
            found = unmet.nearest
        is_kept = output is not None and (found.unmet is None or given.keep_unmet)
        if output is not None and is_kept:
            found.plan.save(output, overwrite=given.overwrite)
            interruption.left = f"the plan is complete: {output}"
    # The plan names the strata among the quasi-identifiers.
    commands = (
        []
        if output is None or found.unmet is not None
        else _next_commands(given.table, output, given.roles, not within, bool(pseudonyms), given.sep)
    )
    given.show_result(found, from_file, commands, to, input=given.table, output=output)
    given.say("")
    if found.unmet is not None:
        written = f"The plan that comes nearest, marked as unmet, is written to {output}."
        needed = " ".join([*["-o plan.toml"] * (output is None), *["--keep-unmet"] * (not given.keep_unmet)])
        given.say(written if is_kept else f"No plan is written. To keep the plan that comes nearest, add {needed}.")
        raise typer.Exit(UNMET)
    if output is None:
        given.say("The plan was not kept. To keep it, for gpupif treat, add -o plan.toml.")
    else:
        given.say_commands(f"Plan written to {output}. To go on:", commands)
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
