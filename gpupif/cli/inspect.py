"""The command `gpupif inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from . import options
from .option_values import check_goes_with
from .options import ClusterOptions, output_option
from .printing import interruption, say

if TYPE_CHECKING:
    from rich.console import Console

# The file of roles in the commands that are shown, if no file is written.
ROLES_FILE = "roles.toml"


def inspect(
    table: options.Table,
    output: Path | None = output_option(
        None, "Write the proposed roles to this .toml file, to be edited.", "-o", "--output"
    ),
    overwrite: options.Overwrite = False,
    *,
    shared: ClusterOptions,
) -> None:
    """Look at a new TABLE: what its columns hold and look like, which roles they may have, and how to go on."""
    shared.check(table)

    from ..attack.roles import check_roles_output
    from ..inspection.inspect import inspect as look_at
    from ..inspection.inspect import next_commands
    from ..io.base import every_column

    check_goes_with("--output", output, overwrite=overwrite)
    if output is not None:
        check_roles_output(output, overwrite)
    with shared.configured():
        found = shared.find(look_at, table, every_column)
    if output is not None:
        found.write(output, overwrite)
        interruption.left = f"the file of roles is complete: {output}"
    told = {name.replace("_", "-"): value for name, value in vars(shared).items() if name not in ("as_json", "quiet")}
    how = [part for option, value in told.items() if value is not None for part in (f"--{option}", str(value))]
    on_cluster = shared.place.named
    commands = next_commands(str(table), found.roles, str(output or ROLES_FILE), output is not None, how, on_cluster)

    def facts() -> dict[str, Any]:
        files = {"input": str(table)} if output is None else {"input": str(table), "output": str(output)}
        return {**files, **found.to_dict(), "commands": commands}

    def draw(console: Console) -> None:
        found.print(console)
        typer.echo()
        say("To go on:" if output is None else f"Roles written to {output}. Edit it, then:")
        for command in commands:
            say(f"  {command}")

    shared.show(facts, draw)
