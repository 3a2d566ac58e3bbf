"""Every option of every command against a list: names, value, default, panel and help, in the order of the help."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import get_args

import typer.main

import gpupif
from gpupif.cli.main import NAMES, app
from gpupif.cli.option_table import parameters, rows_of, sections

# Parameters of public functions that have no option of their name, and why.
NO_OPTION = {
    "inspect columns": "all columns get a role",
    "score source": "the argument TABLE",
    "risk distance": "--distance, as of the functions that call it distances",
    "treat source": "the argument TABLE",
    "compare hierarchies": "the plan has them",
    "nightly init path": "--output",
}
NO_OPTION |= {f"nightly {name} config": "the argument FILE" for name in ("run", "history", "diff", "verify")}
# Public functions that no command calls, and why.
NO_COMMAND = {
    "score": "score_files",
    "treat": "treat_files",
    "open_scores": "report reads them",
    "read_roles": "--roles",
    "read_hierarchies": "--hierarchies",
    "config": "its settings are options",
    "set_config": "as config",
    "audit_table": "only in Python",
    "randomized_response": "only in Python",
}
LIST = Path(__file__).with_name("options.txt")


def commands(command, name=""):
    """Commands below a command, by the words that are typed."""
    below = getattr(command, "commands", None)
    if below is None:
        return {name: command}
    return {
        typed: one for word, more in below.items() for typed, one in commands(more, f"{name} {word}".strip()).items()
    }


def described(parameter, annotation):
    """One line about an option or argument: all that the help shows of it, its type, and whether it is repeated."""
    kinds = [kind for kind in get_args(annotation) or [annotation] if kind is not type(None)]
    is_option = parameter.param_type_name == "option"
    facts = {
        "names": " ".join([*parameter.opts, *parameter.secondary_opts]) if is_option else parameter.name.upper(),
        "metavar": parameter.metavar or "",
        "type": getattr(kinds[0], "__name__", str(kinds[0])) + " repeated" * parameter.multiple,
        "default": "required" if parameter.required else repr(parameter.default),
        "shown": f"shown {parameter.show_default}" if isinstance(parameter.show_default, str) else "",
        "panel": parameter.rich_help_panel or "",
        "help": parameter.help,
    }
    return " | ".join(facts.values())


def test_options_are_those_of_the_list():
    """Change the list by hand, with the table of options: what is in both is meant."""
    found = []
    for name, command in commands(typer.main.get_command(app)).items():
        found.append(f"gpupif {name}: {command.help.splitlines()[0]}")
        annotations = inspect.signature(command.callback).parameters
        found += [described(parameter, annotations[parameter.name].annotation) for parameter in command.params]
    assert found == LIST.read_text().splitlines()


def functions_of(name):
    """Public functions that a command calls, by where they are."""
    if name.startswith("nightly "):
        return {name: getattr(gpupif.nightly, name.split()[1])}
    paths = [path.rpartition(".") for path in sections()[name][0]]
    return {f"{module}.{own}": getattr(importlib.import_module(f"gpupif.{module}"), own) for module, _, own in paths}


def test_every_parameter_of_a_public_function_has_an_option():
    called = {name: functions_of(name) for name in NAMES}
    lacking = {
        f"{name} {parameter}"
        for name, functions in called.items()
        for function in functions.values()
        for parameter in inspect.signature(function).parameters
        if parameter not in {row.name for row in rows_of(name)}
    }
    assert lacking == set(NO_OPTION)
    every = [getattr(gpupif, name) for name in gpupif.__all__]
    every = {function for function in every if inspect.isroutine(function)}
    of_commands = {function for functions in called.values() for function in functions.values()}
    assert {function.__name__ for function in every - of_commands} == set(NO_COMMAND)


def test_signatures_are_read_as_python_has_them():
    paths = [path for name in NAMES for path in sections()[name][0]]
    assert len(paths) > 12
    for path in paths:
        (function,) = [own for name in NAMES for place, own in functions_of(name).items() if place == path]
        found = inspect.signature(function).parameters
        plain = {name: own.default if own.default is not own.empty else None for name, own in found.items()}
        assert {name: default for name, (_, default) in parameters(path).items()} == plain
        kinds = {name: str(own.annotation).removesuffix(" | None") for name, own in found.items()}
        for name, (kind, _) in parameters(path).items():
            assert kind == {"int": "int", "float": "float", "bool": "flag"}.get(kinds[name], "text")
