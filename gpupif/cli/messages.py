"""What errors and warnings say, in the words of the command line."""

from __future__ import annotations

import re
import sys
from typing import Any

import typer

# What the framework says of options and arguments, whose base it names nowhere in public.
UsageError: Any = typer.BadParameter.__mro__[2]


def usage_error(error: Any) -> str:
    """What is wrong with options or arguments in one line; nothing for no argument at all, which gives the help."""
    message: str = error.format_message().strip()
    if not message:
        return ""
    message = re.sub(r"Input should be a valid integer.*", "expected a whole number", message)
    message = re.sub(r"Input should be a valid number.*", "expected a number, such as 0.2", message)
    context = getattr(error, "ctx", None)
    command = "gpupif" if context is None else context.command_path
    return f"gpupif: error: {message}{'' if message[-1] in '.?' else '.'} `{command} --help` says what there is.\n"


def as_options(message: str) -> str:
    """A message about arguments in the words of the command line: columns= is --columns."""
    message = re.sub(r"^attackers: '([^']*)'", _attacker_option, message)
    message = re.sub(r"^attackers:", "--attacker:", message)
    message = re.sub(r"\battackers=(?!\w)", "--attacker", message)
    message = re.sub(r"^distances:", "--distance:", message)
    message = re.sub(r"^lacks:", "--population-lacks:", message)
    message = re.sub(r"gpupif\.Population\(table, lacks='(\w+)'\)", r"--population-lacks \1", message)
    message = re.sub(r"gpupif\.config\((\w+='[\w:]*')\)", r"\1", message)
    names = (
        "columns|known|priors|accuracies|weights|measures|missing|dtype|device|gpu_grouping|compression|sep|output|"
        "memory_limit|temp|rows_per_file|population_lacks|population_size|population|size|top|quasi_identifiers|"
        "sensitive|models|l|distance|k|threshold|groups|sampling_fraction|household|target_risk|interactions|max_size|contributions|among|subsets|seed|where|by|keep_input"
    )
    if any(argument.startswith("--known-any") for argument in sys.argv):
        message = re.sub(r"^known:", "--known-any:", message)
    message = re.sub(r"^accuracies:(?= column| no column)", "--accuracy:", message)
    message = re.sub(rf"^({names}), ({names}):", r"--\1, --\2:", message)
    message = re.sub(rf"^({names}):", r"--\1:", message)
    message = re.sub(rf"\b({names})=('\W+')", r"--\1 \2", message)
    message = re.sub(r"\b(subsets|seed|max_size)=(\d+)", r"--\1 \2", message)
    message = re.sub(rf"\b({names})='(\w+)'", r"--\1 \2", message)
    message = re.sub(rf"\b({names})=(?!\w)", r"--\1", message)
    return re.sub(rf"--({names})\b", lambda found: found[0].replace("_", "-"), message)


def _attacker_option(found: re.Match[str]) -> str:
    """What names an attacker of whom a message speaks: the option of those who know any few columns, or the other."""
    by_number = re.search(rf"--attacker-any[=\0]\s*{re.escape(found[1])}\s*=", "\0".join(sys.argv))
    return f"--attacker{'-any' if by_number else ''}: {found[1]!r}"
