"""Options that messages name: the command that prints the message has them."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import typer.main

import gpupif
from gpupif.cli.main import app
from gpupif.cli.messages import as_options

ROOT = Path(gpupif.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
EVERYWHERE = {"--help", "--version"}
# `info` says what options of other commands do; `messages` words the errors of all.
ABOUT_OTHERS = ("gpupif.cli.info", "gpupif.cli.messages", "gpupif.cli.options", "gpupif.cli.option_values")


@cache
def options_of_commands():
    """Return the options of each command, by its words."""

    def below(command, words):
        commands = getattr(command, "commands", None)
        if commands is None:
            own = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
            return {" ".join(words): own | EVERYWHERE}
        return {name: own for word, one in commands.items() for name, own in below(one, [*words, word]).items()}

    return below(typer.main.get_command(app), [])


@cache
def trees():
    """Return the syntax tree of each module."""
    files = {file.relative_to(ROOT.parent).with_suffix(""): file for file in ROOT.rglob("*.py")}
    return {".".join(path.parts).removesuffix(".__init__"): ast.parse(file.read_text()) for path, file in files.items()}


@cache
def texts(module):
    """Return the texts of a module that may be printed, with {} for what is put into them."""
    return list(_texts(trees()[module]))


def _texts(tree):
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner | docs:
            yield node.value


@cache
def imported(module):
    """Return the modules of gpupif that a module imports, also within functions, but not for types alone."""
    return list(_imported(module, trees()[module]))


def _imported(module, tree):
    package = module if (ROOT.parent / module.replace(".", "/")).is_dir() else module.rpartition(".")[0]
    for_types = {
        id(own)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for own in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and id(node) not in for_types:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (name for own in node.names for name in (f"{base}.{own.name}", base) if name in trees())


@cache
def modules_of(command):
    """Return the modules that a command may run."""
    found, left = set(), [f"gpupif.cli.{command.split()[0].replace('-', '_')}"]
    while left:
        module = left.pop()
        if module not in found:
            found.add(module)
            left += imported(module)
    return found


def test_every_option_that_a_text_names_exists():
    existing = set().union(*options_of_commands().values())
    named = {option for module in trees() for text in texts(module) for option in OPTION.findall(text)}
    assert len(named) > 50
    assert named - existing == set()


def test_options_after_the_name_of_a_command_are_its_own():
    words = "|".join(sorted(options_of_commands(), key=len, reverse=True))
    typed = [
        (command, option)
        for module in trees()
        for text in texts(module)
        for command, rest in re.findall(rf"gpupif ({words})\b((?:(?!gpupif |[.;]\s).)*)", text)
        for option in OPTION.findall(rest)
    ]
    assert len(typed) > 5
    assert [(command, option) for command, option in typed if option not in options_of_commands()[command]] == []


@pytest.mark.parametrize(
    "command", ["protect", "treat", "compare", "score", "risk", "suda", "tables", "audit", "nightly run"]
)
def test_texts_of_modules_of_one_command_name_its_options(command):
    others = {name for name in options_of_commands() if name.split()[0] != command.split()[0]} - {"report"}
    alone = modules_of(command).difference(ABOUT_OTHERS, *map(modules_of, others))
    same = [own for name, own in options_of_commands().items() if name.split()[0] == command.split()[0]]
    wrong = []
    for module in alone:
        for text in texts(module):
            # A text that is an option alone is a part of another command that is made here, and checked there.
            named = set() if OPTION.fullmatch(text) else set(OPTION.findall(text))
            mentioned = [own for name, own in options_of_commands().items() if re.search(rf"\b{name}\b", text)]
            wrong += [(module, option) for option in named if not any(option in own for own in (*same, *mentioned))]
    assert f"gpupif.cli.{command.split()[0]}" in alone
    assert wrong == []


@pytest.mark.parametrize("command", options_of_commands())
def test_advice_in_brackets_is_left_out_by_commands_without_the_option(command):
    options = dict.fromkeys(options_of_commands()[command], "A,B")
    advice = [text for module in trees() for text in texts(module) if re.search(r"\w (?:\w+ )*\(--[\w-]+\)", text)]
    advice = [text for text in advice if not text.startswith("--") and "Raise the limit" not in text]
    assert len(advice) > 8
    for text in advice:
        # Advice may be a part of a sentence that goes on.
        said = as_options(f"Do this, or {text[0].lower()}{text[1:].rstrip('.')}.", options)
        assert set(OPTION.findall(said)) <= set(options), text


def test_a_sentence_stays_whole_without_its_advice():
    said = "Free some space, or choose another place with temp (--temp)."
    assert as_options(said, {"--temp": "FOLDER"}) == "Free some space, or choose another place with --temp."
    assert as_options(said, {}) == "Free some space."
    assert as_options("Start again without resume (--resume).", {}) == "Start again."
    assert (
        as_options("x: goes with method='cell-key'. Add it.", {"--method": "A"})
        == "x: goes with --method cell-key. Add it."
    )
