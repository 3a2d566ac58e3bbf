"""The command `gpupif inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .options import check_table, configured, interruption, say, show

if TYPE_CHECKING:
    from rich.console import Console

# Where nobody says how the file of roles is to be called.
ROLES_FILE = "roles.toml"


def inspect(
    table: options.Table,
    output: Annotated[
        Path | None,
        options.output_option("-o", "--output", help="Write the proposed roles to this .toml file, to be edited."),
    ] = None,
    overwrite: options.Overwrite = False,
    sep: options.Sep = None,
    memory_limit: options.StreamMemory = None,
    temp: options.StreamTemp = None,
    scheduler: options.Scheduler = None,
    workers: options.WorkerProcesses = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Look at a new TABLE: what its columns hold and look like, which roles they may have, and how to go on."""
    from ..dask.client import Place

    place = Place(scheduler, workers)
    check_table(table, sep, place)

    from ..attack.roles import check_roles_output
    from ..errors import InputError
    from ..inspection.inspect import inspect as look_at
    from ..inspection.inspect import next_commands
    from ..io.common import every_column
    from ..io.paths import find_input
    from .cluster import find_anywhere

    if overwrite and output is None:
        raise InputError("--overwrite: goes with --output. Add that, or leave it out.")
    if output is not None:
        check_roles_output(output, overwrite, find_input(table, sep).places)
    with configured(quiet, memory_limit=memory_limit, temp=temp):
        found = find_anywhere(look_at, table, every_column, place, sep, memory_limit, temp)
    if output is not None:
        found.write(output, overwrite)
        interruption.left = f"the file of roles is complete: {output}"
    told = {"sep": sep, "memory-limit": memory_limit, "temp": temp, "scheduler": scheduler, "workers": workers}
    how = [part for option, value in told.items() if value is not None for part in (f"--{option}", str(value))]
    commands = next_commands(str(table), found.roles, str(output or ROLES_FILE), output is not None, how, place.named)

    def facts() -> dict[str, Any]:
        files = {"input": str(table)} if output is None else {"input": str(table), "output": str(output)}
        return {**files, **found.to_dict(), "commands": commands}

    def draw(console: Console) -> None:
        found.print(console)
        typer.echo()
        say("To go on:" if output is None else f"Roles written to {output}. Edit it, then:")
        for command in commands:
            say(f"  {command}")

    show(facts, draw, as_json, quiet)
