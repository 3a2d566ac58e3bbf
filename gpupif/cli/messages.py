"""Errors and warnings in the words of the command line: `columns=` is --columns."""

from __future__ import annotations

import contextlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand

from ..errors import GpupifError, printable

# The base of the errors about options and arguments, which the framework names nowhere in public.
UsageError: Any = typer.BadParameter.__mro__[2]

# A number with a comma for a decimal point.
DECIMAL_COMMA = re.compile(r"([+-]?)(\d*),(\d+)")
# Arguments of Python whose options have another name.
OTHER_NAMES = {
    "attackers": "--attacker",
    "distances": "--distance",
    "key": "--key-file",
    "lacks": "--population-lacks",
    "local": "--local-recoding",
}
# The option for the columns that the attacker knows: commands that score cells have the one, others the other.
SAME_MEANING = {"--known": "--quasi-identifiers", "--quasi-identifiers": "--known"}
# Words of Python, as patterns, and what is typed in their place.
TYPED = {
    r"\[\('a', 'b'\)\]": "a:b",
    r"Give them in order, as a list\.": "Give them in order, as a list in a .json file.",
    r"\['([^']*)', '([^']*)'\](?=\. Write a:b)": r"\1:\2",
    r"(--[\w-]+ \w+) or '(\w+)'": r"\1 or \2",
}
# Advice in the end of a sentence, or one of several, that names an option: "or use rows_per_file (--rows-per-file)".
ABSENT = re.compile(r"(?: without|,? or) (?:(?!, or |without )[^.;()])*\((--[\w-]+)\)(?=[.,;]|$)")
# Values that only Python has.
PYTHON = re.compile(r"\b(?:None|True|False|tuples|dictionary)\b|gpupif\.")


class CommandFailedError(GpupifError):
    """An error that ends a command with another exit code than 2."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


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


# The exit code of a limit that is not met.
UNMET = 3


class Typed:
    """The command that is typed. options: returns its options, see `as_options`; `main` sets it.

    held: the warnings that are printed later, None if they are printed at once.
    """

    options: Callable[[], Mapping[str, str | None]] = staticmethod(dict)
    held: list[str] | None = None

    def say(self, what: str, message: str) -> None:
        """Print a message on standard error. what: a word before it."""
        print(f"gpupif: {what}: {as_options(message, self.options())}", file=sys.stderr, flush=True)

    def warn(self, message: str) -> None:
        """Print a warning, or hold it."""
        self.say("warning", message) if self.held is None else self.held.append(message)

    def let_go(self) -> None:
        """Print the warnings that were held."""
        held, self.held = self.held or [], None
        for message in held:
            self.warn(message)


typed = Typed()


@contextlib.contextmanager
def warnings_held() -> Iterator[None]:
    """Hold warnings while the block runs: if a limit is not met, `say_unmet` says that before all else."""
    typed.held = []
    try:
        yield
    finally:
        typed.let_go()


def say_unmet(error: GpupifError) -> None:
    """Say on standard error, also with --quiet, which limit is not met; then print the warnings that were held."""
    typed.say("NOT MET", str(error))
    typed.let_go()


def usage_error(error: Any, commands: Collection[str] = ()) -> str:
    """Return in one line what is wrong with options or arguments; empty for no argument at all, which gives the help.

    commands: the names of all, for an error that does not name its command.
    """
    message: str = error.format_message().strip()
    if not message:
        return ""
    context = getattr(error, "ctx", None)
    asked: str = getattr(error, "option_name", "")
    meant = SAME_MEANING.get(asked)
    if context is not None and any(meant in param.opts for param in context.command.params):
        message = f"No such option: {asked}. The option for the columns that the attacker knows is {meant} here"
    message = re.sub(r"Input should be a valid integer.*", "expected a whole number", message)
    message = re.sub(r"Input should be a valid number.*", "expected a number, such as 0.2", message)
    message += decimal_comma_hint(_given(getattr(getattr(error, "param", None), "opts", ())))
    if context is None:
        typed = [name for name in commands if sys.argv[1:][: len(name.split())] == name.split()]
        command = " ".join(["gpupif", *typed[:1]])
    else:
        command = context.command_path
    stop = "" if message[-1] in ".?" else "."
    return f"{printable(f'gpupif: error: {message}{stop} `{command} --help` says what there is.')}\n"


def decimal_comma_hint(text: str) -> str:
    """Return what to write in place of a number with a decimal comma, as a further sentence; empty for other texts."""
    found = DECIMAL_COMMA.fullmatch(text.strip())
    if found is None:
        return ""
    sign, digits, fraction = found.groups()
    return f". A number has a decimal point: {sign}{digits or 0}.{fraction}, not {found[0]}"


def _given(options: Sequence[str]) -> str:
    """Return the value on the command line of an option with these names; empty if it is not there."""
    for place, word in enumerate(sys.argv):
        option, equals, value = word.partition("=")
        if option in options:
            return value if equals else "".join(sys.argv[place + 1 : place + 2])
    return ""


def as_options(message: str, options: Mapping[str, str | None]) -> str:
    """Return a message about arguments of Python in the words of the command line.

    options: the options of the command, such as --columns, and what the help says for their values, such as A,B.
    Arguments that are none of these options stay as they are.
    """
    option_of = {option.removeprefix("--").replace("-", "_"): option for option in options if option.startswith("--")}
    option_of |= {argument: option for argument, option in OTHER_NAMES.items() if option in options}
    message = re.sub(r"^criterion (?=')", lambda found: f"{_criterion_option(options)} ", message)
    subject, colon, rest = message.partition(":")
    arguments = subject.split(", ")
    if colon and all(argument in option_of for argument in arguments):
        subject = ", ".join(_subject(argument, option_of[argument], rest) for argument in arguments)
        rest = _as_typed(rest, options.get(subject))
    message = f"{subject}{colon}{rest}"
    message = re.sub(r"gpupif\.Population\(table, lacks='(\w+)'\)", r"--population-lacks \1", message)
    message = re.sub(r"gpupif\.config\((\w+=(?:'[\w:]*')?)\)", r"\1", message)
    # Keys of a configuration, such as run.device=cpu, are no arguments, nor are fields behind the name of a treatment.
    argument = rf"(?<![\w.'\"/-])(?<!\): )({'|'.join(option_of) or '(?!)'})"
    value = r"=(?:'([\w-]+)'|('\W+')|(\d[\d.]*\d|\d)|True|(?!\w))"
    message = re.sub(argument + value, lambda found: _with_value(option_of, found), message)
    message = re.sub(argument + r" \((--[\w-]+)\)", r"\2", message)
    message = ABSENT.sub(lambda found: found[0] if found[1] in options else "", message)
    for python, typed in TYPED.items():
        message = re.sub(python, typed, message)
    # A word with an underscore is an argument, where other words may be English.
    return re.sub(
        argument + r"(?![\w='\"(])", lambda found: option_of[found[1]] if "_" in found[1] else found[1], message
    )


def _criterion_option(options: Collection[str]) -> str:
    """Return the option whose text is a criterion; the word itself for a command that reads criteria from a file."""
    return next((option for option in ("--require", "--criterion") if option in options), "criterion")


def _as_typed(rest: str, metavar: str | None) -> str:
    """Return the rest of an error, in which the expected value is one that can be typed, and not a value of Python.

    metavar: what the help says for the value of the option; None for an option without a value.
    """
    rest = re.sub(r"got an empty (?:list|dictionary)\.", "got none.", rest)
    expected = re.match(r"(.*?\bexpected )(.*?)([,;] got .*)", rest)
    if expected is None or not PYTHON.search(expected[2]):
        return rest
    # A bar stands between all that may be typed.
    typed = metavar if metavar and "|" in metavar else re.sub(r",? or None\b[^,;]*", "", expected[2])
    return f"{expected[1]}{typed}{expected[3]}"


def _subject(argument: str, option: str, rest: str) -> str:
    """Return the option that an error is about. rest: the rest of the message."""
    given = " ".join(sys.argv)
    if argument == "known" and "--known-any" in given:
        return "--known-any"
    if argument == "accuracies" and rest.startswith((" column", " no column")):
        return "--accuracy"
    name = re.match(r" '([^']*)'", rest)
    if argument == "attackers" and name and re.search(rf"--attacker-any[= ]\s*{re.escape(name[1])}\s*=", given):
        return "--attacker-any"
    return option


def _with_value(option_of: dict[str, str], found: re.Match[str]) -> str:
    """Return an argument and its value as an option and its value."""
    value = found[2] or found[3] or found[4]
    return f"{option_of[found[1]]} {value}" if value else option_of[found[1]]
