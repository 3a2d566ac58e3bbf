"""No output of a command is one of its inputs: all commands of the application, and all their paths."""

import os
from inspect import signature
from itertools import combinations
from pathlib import Path

import pytest
import typer

from gpupif.cli import main as cli

# Every parameter of a command that is a path. A new one has to be put here, and into `options.OUTPUTS` if written.
READ = {"table", "before", "after", "source", "population", "roles", "hierarchies", "plan", "priors", "accuracies"}
READ |= {"key", "p_table", "ledger", "budget", "queries", "next", "file"}
WRITTEN, WORKED_IN = {"output", "report", "record", "public_record"}, {"temp"}
# An option whose text may end with a path, and what is before it. What other texts name is no file.
PATH_IN_TEXT = {"distances": "age="}
LINKS = {"same": None, "symbolic link": os.symlink, "hard link": os.link}
NEVER_READ = b"nothing that anybody reads"


def commands(application, built, words=()):
    """Yield the words of each command, and its parameters, each with whether it is a path."""
    for own in application.registered_commands:
        name = own.name or own.callback.__name__.replace("_", "-")
        kinds = {name: str(kind.annotation) for name, kind in signature(own.callback).parameters.items()}
        parameters = built.commands[name].params
        yield (
            (*words, name),
            {
                parameter.name: (parameter, "Path" in kinds[parameter.name] or parameter.name in PATH_IN_TEXT)
                for parameter in parameters
                if parameter.name in kinds
            },
        )
    for group in application.registered_groups:
        inner = group.typer_instance
        yield from commands(inner, built.commands[inner.info.name], (*words, inner.info.name))


ALL = dict(commands(cli.app, typer.main.get_command(cli.app)))


def typed(parameters, files):
    """Return the arguments of a command. files: by parameter; further ones that it needs get files of their own."""
    needed = {name: Path(f"{name}.x") for name, (own, _) in parameters.items() if own.required and name not in files}
    for name, file in (needed | files).items():
        text, option = f"{PATH_IN_TEXT.get(name, '')}{file}", parameters[name][0].opts[-1]
        yield from [option, text] if option.startswith("-") else [text]
    yield from ["--overwrite"] if "overwrite" in parameters else []


@pytest.fixture
def refused(run, tmp_path, monkeypatch):
    """Run a command that has to refuse its files in one line, and leave all of them as they were."""
    monkeypatch.chdir(tmp_path)

    def refuse(words, files, said):
        before = {file: file.read_bytes() for file in Path().iterdir()}
        ended = run(*words, *typed(ALL[words], files))
        assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1), (words, files, ended)
        assert said in ended.err, (words, files, ended)
        assert {file: file.read_bytes() for file in Path().iterdir()} == before

    return refuse


def test_every_path_of_a_command_is_read_or_written_or_worked_in():
    every = [(name, *own) for parameters in ALL.values() for name, own in parameters.items()]
    paths = {name for name, _, is_path in every if is_path}
    assert paths == READ | WRITTEN | WORKED_IN | set(PATH_IN_TEXT)
    assert {name for name, own, _ in every if "FILE" in str(own.metavar)} <= paths
    assert len(ALL) == len(cli.NAMES)


@pytest.mark.parametrize("kind", LINKS)
def test_no_output_is_an_input(refused, kind):
    pairs = 0
    for words, parameters in ALL.items():
        named = [name for name, (_, is_path) in parameters.items() if is_path and name not in WORKED_IN]
        for output in WRITTEN.intersection(named):
            for name in set(named) - WRITTEN:
                # No ending that a command refuses first.
                file = output_file = Path("in.json")
                file.write_bytes(NEVER_READ)
                if LINKS[kind] is not None:
                    LINKS[kind](file, output_file := Path("out.json"))
                refused(words, {name: file, output: output_file}, f"{output_file}: the output is the input in.json")
                for left in {file, output_file}:
                    left.unlink()
                pairs += 1
    assert pairs > 60


@pytest.mark.parametrize("kind", LINKS)
def test_no_output_is_another(refused, kind):
    for words, parameters in ALL.items():
        for one, other in combinations([name for name in sorted(WRITTEN) if name in parameters], 2):
            file = output_file = Path("a.json")
            file.write_bytes(NEVER_READ)
            if LINKS[kind] is not None:
                LINKS[kind](file, output_file := Path("b.json"))
            refused(words, {one: file, other: output_file}, "names the same file as --")
            for left in {file, output_file}:
                left.unlink()
            # A disk may ignore the case of letters, and nobody can ask it about files that are not there.
            refused(words, {one: Path("New.json"), other: Path("new.JSON")}, "names the same file as --")


def test_files_that_a_plan_names_are_inputs(refused):
    for file in ("people.csv", "age.csv", "matrix.csv"):
        Path(file).write_bytes(NEVER_READ)
    Path("plan.toml").write_text(
        '[hierarchies]\nage = "age.csv"\n[[treatment]]\ndo = "pram"\ncolumn = "sex"\nmatrix = "matrix.csv"\n'
    )
    treat = {"table": Path("people.csv"), "plan": Path("plan.toml")}
    for file in ("age.csv", "matrix.csv"):
        refused(("treat",), {**treat, "output": Path(file)}, f"{file}: the output is the input {file}")
    Path("link.html").symlink_to("age.csv")
    protect = {"table": Path("people.csv"), "hierarchies": Path("plan.toml"), "report": Path("link.html")}
    refused(("protect",), protect, "link.html: the output is the input age.csv")


def test_files_of_a_nightly_configuration_are_inputs_of_its_commands(refused):
    for file in ("people.csv", "ledger.json", "risk.json", "secret"):
        Path(file).write_bytes(NEVER_READ)
    Path("risk.toml").write_text(
        'input.path = "people.csv"\ntell.json_file = "risk.json"\n'
        '[release]\nqueries = "q.toml"\nledger = "ledger.json"\nanswers = "answers.json"\nkey = "secret"\n'
    )
    Path("link.html").symlink_to("secret")
    files = {"report": Path("link.html"), "file": Path("risk.toml")}
    refused(("nightly", "run"), files, "risk.toml: --report: link.html: the output is the input")
    refused(("report",), {"source": Path("risk.toml"), "output": Path("link.html")}, "(release.key)")
    Path("told.html").symlink_to("risk.json")
    refused(
        ("nightly", "run"), files | {"report": Path("told.html")}, "--report: names the same file as tell.json_file"
    )
