"""The commands `gpupif nightly ...`: risk recomputed every night."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .options import complete, configured, show

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    name="nightly",
    help="Risk of a table recomputed every night: gates answered by exit code, and a record of all runs.",
    no_args_is_help=True,
)

Output = Annotated[
    Path, options.output_option("-o", "--output", metavar="FILE.toml", help="Write the configuration to this file.")
]


def init(
    table: options.Table,
    output: Output = Path("risk.toml"),
    overwrite: options.Overwrite = False,
    sep: options.Sep = None,
    memory_limit: options.StreamMemory = None,
    temp: options.StreamTemp = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Look at TABLE and write a first configuration, commented, to be edited."""
    from ..io.paths import find_input
    from ..nightly.new_config import init as write_config

    with configured(quiet, memory_limit=memory_limit, temp=temp):
        seen = write_config(find_input(table, sep), output, overwrite)
    complete.append(output)

    def facts() -> dict[str, Any]:
        return {"input": str(table), "output": str(output), **seen.to_dict()}

    def draw(console: Console) -> None:
        seen.print(console)
        typer.echo(f"\nConfiguration written to {output}. Check what it says, above all its gates.")

    show(facts, draw, as_json, quiet)


FUNCTIONS = (init,)
COMMANDS = {f"{app.info.name} {function.__name__}": function for function in FUNCTIONS}
for command in FUNCTIONS:
    app.command()(command)
