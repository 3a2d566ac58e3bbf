"""The command line: all commands, how a command runs, and how its errors and warnings are printed."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import typer

from .._version import __version__
from ..errors import GpupifError, UnmetError, printable
from ..utils.heap import limit_arenas
from ..utils.signals import Interrupted, raise_interruptions
from . import nightly
from .advise import advise
from .audit import audit
from .budget import budget
from .compare import compare
from .demo import demo
from .global_risk import global_risk
from .info import info
from .inspect import inspect
from .measures import measures
from .messages import UNMET, Command, CommandFailedError, UsageError, as_options, say_unmet, typed, usage_error
from .options import Given, with_options
from .printing import interruption
from .protect import protect
from .release import release
from .report import report
from .risk import risk
from .score import score
from .suda import suda
from .tables import tables
from .toxic import toxic
from .treat import treat

app = typer.Typer(
    name="gpupif",
    help="Privacy risk of every cell of a table: what would an attacker who knows everything else learn from it?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# Objects that are made before garbage is collected.
LEAST_OBJECTS = 100_000

FUNCTIONS: tuple[Callable[[Given], None], ...] = (inspect, score, risk, global_risk, toxic, suda, advise)
FUNCTIONS += (protect, treat, compare, tables, audit, release, budget, report, measures, demo, info)
COMMANDS = {function.__name__.replace("_", "-"): function for function in FUNCTIONS}
for name, command in COMMANDS.items():
    app.command(cls=Command)(with_options(name, command))
app.add_typer(nightly.app, rich_help_panel="Every night")
# The commands as they are typed, those of groups too.
NAMES = (*COMMANDS, *nightly.COMMANDS)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"gpupif {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Show the version and exit.", callback=_version, is_eager=True
    ),
) -> None:
    """Privacy risk of every cell of a table."""


def _own_options() -> dict[str, str | None]:
    """Return the options of the command that is typed, such as --columns, and what the help says for their values."""
    command: Any = typer.main.get_command(app)
    for word in sys.argv[1:]:
        below = getattr(command, "commands", {})
        if word not in below:
            break
        command = below[word]
    return {option: parameter.metavar for parameter in command.params for option in parameter.opts}


def main() -> None:
    """Run the command line; errors that gpupif raises on purpose are one line on standard error, exit code 2."""

    def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        typed.warn(printable(str(message)))

    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:
            # The program that started this process closed the stream.
            setattr(sys, stream, open(os.devnull, "w"))  # noqa: SIM115
    # Imports make a million objects, which stay. To collect garbage among them as often as usual takes a tenth of the
    # time of a short command.
    gc.set_threshold(LEAST_OBJECTS)
    limit_arenas()
    warnings.showwarning = show_warning
    interruption.left = interruption.NOTHING
    typed.options = _own_options
    try:
        raise_interruptions()
        code = app(standalone_mode=False)
        if code:
            raise SystemExit(code)
    except UsageError as error:
        print(usage_error(error, NAMES), end="", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except UnmetError as error:
        say_unmet(error)
        raise SystemExit(UNMET) from None
    except GpupifError as error:
        print(f"gpupif: error: {as_options(str(error), _own_options())}", file=sys.stderr)
        raise SystemExit(error.exit_code if isinstance(error, CommandFailedError) else 2) from None
    except OSError as error:
        # For instance, the disk is full on which compiled kernels are kept.
        print(printable(f"gpupif: error: {error}."), file=sys.stderr)
        raise SystemExit(2) from None
    except MemoryError:
        fewer = as_options(" Leave columns out, or score fewer (--columns).", _own_options())
        print(f"gpupif: error: not enough memory for this table.{fewer}", file=sys.stderr)
        raise SystemExit(2) from None
    except Interrupted as signalled:
        print(f"gpupif: interrupted; {printable(interruption.left)}.", file=sys.stderr)
        raise SystemExit(128 + signalled.number) from None
