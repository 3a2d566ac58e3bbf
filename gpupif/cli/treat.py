"""The command `gpupif treat`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import GpupifError, UnmetError
from .messages import UNMET, say_unmet, warnings_held
from .option_values import compare_command
from .options import Given
from .printing import as_document, interruption

if TYPE_CHECKING:
    from ..io.base import Input


def treat(given: Given) -> None:
    """Treat TABLE as a plan says: generalise, suppress, randomise. Rows stay in their order; TABLE stays as it is."""
    from ..io.paths import find_input

    output, plan, roles = given.output, given.plan, given.roles
    found = find_input(given.table, given.sep)
    identifiers = given.file_roles().identifiers()
    replaces = given.overwrite or given.resume
    with warnings_held(), given.configured():
        from ..errors import IdentifierWarning, warn
        from ..io.write import check_output, write_text
        from ..treatment.plan import Plan
        from ..treatment.steps import SAID
        from ..treatment.treat_files import treat_files

        for file in (given.record, given.public_record):
            if file is not None:
                check_output(file, replaces, endings=(".json",))
        asked = Plan.load(plan)
        if not asked.treatments:
            warn(
                f"plan: {plan}: expected treatments, a list [[treatment]], got none: all is written as it is.",
                UserWarning,
            )
        left = [name for name in identifiers if all(name not in one.named() for one in asked.treatments)]
        if left:
            warn(
                f"roles: {roles}: identifiers {', '.join(map(repr, left))} stay in the treated table, for no treatment "
                f"of the plan names them. Add to it: [[treatment]] do = 'drop', columns = {left}.",
                IdentifierWarning,
            )
        if roles is not None:
            _warn_of_index(found, [name for one in asked.treatments for name in one.named()], identifiers)
        if given.resume:
            interruption.left = interruption.RESUMABLE
        try:
            done = treat_files(found, **given.arguments(treat_files, plan=asked))
        except UnmetError as error:
            stays = f" {output} stays as it was." * output.exists()
            stays += " What was treated is kept beside it, for --resume." * given.resume
            unmet = error.about(f"plan: {plan}", "plan: ")
            say_unmet(UnmetError(f"{unmet}{stays} --keep-unmet writes the table all the same."))
            raise typer.Exit(UNMET) from None
        except GpupifError as error:
            if SAID.match(str(error)):
                raise error.about(f"plan: {plan}") from error
            raise
        interruption.left = f"the treated table is complete: {output}"
        if done.record.unmet is not None:
            say_unmet(UnmetError(done.record.unmet).about(f"plan: {plan}", "plan: "))
        written: list[tuple[Path | None, Any]] = [
            (given.record, done.record),
            (given.public_record, done.record.public()),
        ]
        for file, document in written:
            if file is not None:
                write_text(as_document(document.to_dict()) + "\n", file, replaces)
        commands = [compare_command(given.table, output, plan, roles)]
        facts = {
            "input": str(given.table),
            "output": str(output),
            "record": done.record.to_dict(),
            "commands": commands,
        }
        given.show(lambda: facts, done.record.print)
        given.say_commands(f"Treated table written to {output}. To go on:", commands)
        if done.record.unmet is not None:
            raise typer.Exit(UNMET)
        if roles is None and not asked.quasi_identifiers:
            given.say("The plan does not say what is known: give compare --quasi-identifiers and --sensitive.")


def _warn_of_index(found: Input, treated: Sequence[Hashable], identifiers: Sequence[Hashable]) -> None:
    """Warn of an index of the files that looks like identifiers, if neither plan nor roles name it."""
    from ..errors import IdentifierWarning, warn
    from ..frames.open import table_names
    from ..protection.identifiers import like_identifiers

    labels = [name for name in table_names(found)[1] if name not in (*treated, *identifiers)]
    for name, what in like_identifiers(found, labels, labels).items():
        warn(
            f"table: its index {name!r} ({what}) looks like identifiers, and stays in the treated table, for no "
            f"treatment of the plan names it. Add to it: [[treatment]] do = 'drop', columns = [{name!r}].",
            IdentifierWarning,
        )
