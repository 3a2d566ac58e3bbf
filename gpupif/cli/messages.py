"""What errors and warnings say, in the words of the command line."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import typer
from typer.core import TyperCommand

from ..errors import printable

# What the framework says of options and arguments, whose base it names nowhere in public.
UsageError: Any = typer.BadParameter.__mro__[2]


# A number as other languages write it.
DECIMAL_COMMA = re.compile(r"([+-]?)(\d*),(\d+)")


class Command(TyperCommand):
    """A command that refuses an option that is given twice: only the last value would count, without a word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left, as click does; raise BadParameter for an option given twice."""
        order: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
        for option, times in Counter(order).items():
            if times > 1 and not (getattr(option, "multiple", True) or getattr(option, "is_flag", False)):
                raise typer.BadParameter(
                    f"expected once, got {times} times, of which only the last would count. Give it once, with commas "
                    "between several names",
                    ctx,
                    option,
                )
        left: list[str] = super().parse_args(ctx, args)
        return left


def usage_error(error: Any, commands: Collection[str] = ()) -> str:
    """What is wrong with options or arguments in one line; nothing for no argument at all, which gives the help.

    commands: the names of all, for an error that does not say in which it is.
    """
    message: str = error.format_message().strip()
    if not message:
        return ""
    message = re.sub(r"Input should be a valid integer.*", "expected a whole number", message)
    message = re.sub(r"Input should be a valid number.*", "expected a number, such as 0.2", message)
    message += decimal_comma_hint(_given(getattr(getattr(error, "param", None), "opts", ())))
    context = getattr(error, "ctx", None)
    if context is None:
        typed = [name for name in commands if sys.argv[1:][: len(name.split())] == name.split()]
        command = " ".join(["gpupif", *typed[:1]])
    else:
        command = context.command_path
    stop = "" if message[-1] in ".?" else "."
    return f"{printable(f'gpupif: error: {message}{stop} `{command} --help` says what there is.')}\n"


def decimal_comma_hint(text: str) -> str:
    """What to write in place of a number with a decimal comma, as a sentence behind another; no text for any other."""
    found = DECIMAL_COMMA.fullmatch(text.strip())
    if found is None:
        return ""
    sign, digits, fraction = found.groups()
    return f". A number has a decimal point: {sign}{digits or 0}.{fraction}, not {found[0]}"


def _given(options: Sequence[str]) -> str:
    """What came on the command line for an option of these names; no text where it did not."""
    for place, word in enumerate(sys.argv):
        option, equals, value = word.partition("=")
        if option in options:
            return value if equals else "".join(sys.argv[place + 1 : place + 2])
    return ""


def as_options(message: str, options: Collection[str] | None = None) -> str:
    """Return a message about arguments in the words of the command line: columns= is --columns.

    options: those of the command, such as --columns, for arguments that are none of its options stay as they are. None:
    all arguments are options.
    """
    message = re.sub(r"^attackers: '([^']*)'", _attacker_option, message)
    message = re.sub(r"^attackers:", "--attacker:", message)
    message = re.sub(r"\battackers=(?!\w)", "--attacker", message)
    message = re.sub(r"^distances:", "--distance:", message)
    message = re.sub(r"^key:", "--key-file:", message)
    message = re.sub(r"^key, seed:", "--key-file, --seed:", message)
    message = re.sub(r"^lacks:", "--population-lacks:", message)
    message = re.sub(r"gpupif\.Population\(table, lacks='(\w+)'\)", r"--population-lacks \1", message)
    message = re.sub(r"gpupif\.config\((\w+='[\w:]*')\)", r"\1", message)
    names = (
        "columns|known|priors|accuracies|weights|measures|missing|dtype|device|gpu_grouping|compression|sep|output|"
        "memory_limit|temp|rows_per_file|population_lacks|population_size|population|size|top|quasi_identifiers|"
        "sensitive|models|l|distance|k|threshold|groups|sampling_fraction|household|max_global_risk|interactions|max_size|contributions|among|subsets|seed|where|by|keep_input|"
        "alpha|publisher_benefit|publisher_loss|adversary_gain|adversary_cost|roles|row_id|suppressed|linkage|hierarchies|"
        "criterion|suppress|cells|time_limit|identifiers|pseudonymise|keep"
    )
    if options is not None:
        own = [name for name in names.split("|") if f"--{name.replace('_', '-')}" in options]
        # A pattern that matches nothing where there are none.
        names = "|".join(own) or "(?!)"
    if any(argument.startswith("--known-any") for argument in sys.argv):
        message = re.sub(r"^known:", "--known-any:", message)
    if sys.argv[1:2] == ["protect"]:
        message = re.sub(r"^importance:(?= column)", "--weight:", message)
        message = re.sub(r"^(criteria|require):", "--require:", message)
    message = re.sub(r"^accuracies:(?= column| no column)", "--accuracy:", message)
    message = re.sub(rf"^({names}), ({names}):", r"--\1, --\2:", message)
    message = re.sub(rf"^({names}):", r"--\1:", message)
    # But for keys of a configuration, such as run.device=cpu.
    names = rf"(?<!\.)(?:{names})"
    message = re.sub(rf"\b({names})=('\W+')", r"--\1 \2", message)
    message = re.sub(r"\b(subsets|seed|max_size)=(\d+)", r"--\1 \2", message)
    message = re.sub(rf"\b({names})='(\w+)'", r"--\1 \2", message)
    message = re.sub(rf"\b({names})=(?!\w)", r"--\1", message)
    return re.sub(rf"--({names})\b", lambda found: found[0].replace("_", "-"), message)


def _attacker_option(found: re.Match[str]) -> str:
    """What names an attacker of whom a message speaks: the option of those who know any few columns, or the other."""
    by_number = re.search(rf"--attacker-any[=\0]\s*{re.escape(found[1])}\s*=", "\0".join(sys.argv))
    return f"--attacker{'-any' if by_number else ''}: {found[1]!r}"
