"""The command `gpupif treat`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import GpupifError, UnmetError
from . import options
from .messages import UNMET, say_unmet, warnings_held
from .option_values import FileRoles, as_population, compare_command
from .options import PrintOptions, configured, option, output_option, place_option, table_option
from .printing import as_document, interruption

if TYPE_CHECKING:
    from ..io.base import Input


def treat(
    table: options.Table,
    plan: Annotated[Path, option("PLAN.toml", "The plan: .toml, .json or .yaml.", show_default=False)],
    output: Annotated[
        Path,
        output_option(
            None, "Treated table: .parquet, .csv, .feather, or a folder.", "-o", "--output", show_default=False
        ),
    ],
    roles: options.RolesFile = None,
    population: Path | None = table_option("FILE", "The population, if the plan has criteria on it: k-map, ..."),
    population_lacks: options.PopulationLacks = "error",
    key_file: Path | None = option("FILE", "The secret key by which random treatments draw: 32 bytes."),
    seed: int | None = option("S", "In place of a key, for tests only: anyone can find it."),
    record: Path | None = output_option("FILE.json", "What was done, with all counts."),
    public_record: Path | None = output_option("FILE.json", "The same without counts that reveal."),
    sep: options.Sep = None,
    compression: options.Compression = None,
    rows_per_file: int | None = output_option("N", "Files of N rows. Default: one for each file of the table."),
    overwrite: options.Overwrite = False,
    keep_unmet: options.KeepUnmet = False,
    resume: bool = output_option(None, "Go on where a run that was killed stopped.", "--resume", default=False),
    device: options.Device = None,
    memory_limit: options.MemoryLimit = None,
    temp: Path | None = place_option("FOLDER", "For temporary files. Default: beside the output."),
    *,
    shared: PrintOptions,
) -> None:
    """Treat TABLE as a plan says: generalise, suppress, randomise. Rows stay in their order; TABLE stays as it is."""
    from ..io.paths import find_input

    found = find_input(table, sep)
    identifiers = FileRoles(roles, table, sep).identifiers()
    with warnings_held(), configured(shared.quiet, device, None, memory_limit, temp, compression):
        from ..errors import IdentifierWarning, warn
        from ..io.write import check_output, write_text
        from ..treatment.plan import Plan
        from ..treatment.steps import SAID
        from ..treatment.treat_files import treat_files

        for file in (record, public_record):
            if file is not None:
                check_output(file, overwrite or resume, endings=(".json",))
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
        if resume:
            interruption.left = interruption.RESUMABLE
        try:
            done = treat_files(
                found,
                output,
                asked,
                key=key_file,
                seed=seed,
                rows_per_file=rows_per_file,
                resume=resume,
                overwrite=overwrite,
                keep_unmet=keep_unmet,
                population=as_population(population, population_lacks),
            )
        except UnmetError as error:
            stays = f" {output} stays as it was." * output.exists()
            stays += " What was treated is kept beside it, for --resume." * resume
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
        written: list[tuple[Path | None, Any]] = [(record, done.record), (public_record, done.record.public())]
        for file, document in written:
            if file is not None:
                write_text(as_document(document.to_dict()) + "\n", file, overwrite or resume)
        commands = [compare_command(table, output, plan, roles)]
        facts = {"input": str(table), "output": str(output), "record": done.record.to_dict(), "commands": commands}
        shared.show(lambda: facts, done.record.print)
        shared.say_commands(f"Treated table written to {output}. To go on:", commands)
        if done.record.unmet is not None:
            raise typer.Exit(UNMET)
        if roles is None and not asked.quasi_identifiers:
            shared.say("The plan does not say what is known: give compare --quasi-identifiers and --sensitive.")


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
