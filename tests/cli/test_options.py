"""Every option of every command against a list: names, value, default, panel and help, in the order of the help."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_args

import typer.main

from gpupif.cli.main import app

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
