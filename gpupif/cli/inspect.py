"""The command `gpupif inspect`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from .options import Given
from .printing import say

if TYPE_CHECKING:
    from rich.console import Console

# The file of roles in the commands that are shown, if no file is written.
ROLES_FILE = "roles.toml"
# The options that the commands that are shown have too.
SAME = ("sep", "memory_limit", "temp", "scheduler", "workers")


def inspect(given: Given) -> None:
    """Look at a new TABLE: what its columns hold and look like, which roles they may have, and how to go on."""
    given.check()

    from ..attack.roles import check_roles_output
    from ..inspection.inspect import inspect as look_at
    from ..inspection.inspect import next_commands
    from ..io.base import every_column

    table, output = str(given.table), given.output
    given.check_goes_with("output", "overwrite")
    if output is not None:
        check_roles_output(output, given.overwrite)
    with given.configured():
        found = given.find(look_at, every_column)
    given.write(found, "the file of roles is complete")
    told = {f"--{name.replace('_', '-')}": given.get(name) for name in SAME}
    how = [word for option, value in told.items() if value is not None for word in (option, str(value))]
    place = str(output or ROLES_FILE)
    commands = next_commands(table, found.roles, place, output is not None, how, given.place.named)

    def facts() -> dict[str, Any]:
        files = {"input": table} | ({} if output is None else {"output": str(output)})
        return {**files, **found.to_dict(), "commands": commands}

    def draw(console: Console) -> None:
        found.print(console)
        typer.echo()
        say("To go on:" if output is None else f"Roles written to {output}. Edit it, then:")
        for command in commands:
            say(f"  {command}")

    given.show(facts, draw)
