"""Every example of README.md and docs/ runs, what it shows is what comes, and every link leads somewhere."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from doctest import ELLIPSIS, Example, OutputChecker
from itertools import groupby
from pathlib import Path
from unittest import SkipTest

import pytest
import sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

import gpupif
from gpupif.cli import main as cli
from tests.helpers.checkout import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
# What a fence may be marked as. A block of text is shown only: what cannot run here, such as on a GPU. The build of the
# site (docs/conf.py) runs cells of notebooks, and reads blocks for Sphinx.
LANGUAGES = {"bash", "console", "python", "text", "toml"}
OF_THE_SITE = {"{code-cell}", "{eval-rst}", "{include}", "{toctree}"}

pytestmark = pytest.mark.subprocess
each_page = pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])


def in_this_process(command: str) -> subprocess.CompletedProcess[str]:
    """Run gpupif with plain arguments in this process; return what it ends with, and all that it says."""
    code: object = 0
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(said), warnings.catch_warnings():
        # Where the tests run as python -m pytest, Click would say that name in place of the command's.
        patch.setattr(sys.modules["__main__"], "__package__", None)
        patch.setattr(sys, "argv", shlex.split(command, comments=True))
        # As in a process of its own, where no test makes errors of warnings.
        warnings.simplefilter("default")
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
    return subprocess.CompletedProcess(command, int(str(code)), said.getvalue())


def is_plain(command: str) -> bool:
    """Return whether a command is gpupif with plain arguments: outside of quotes is nothing that needs a shell."""
    return re.fullmatch(r"gpupif [^|&;<>`$()*?~\n]*", re.sub(r"'[^']*'|\"[^\"$`\\]*\"", "", command)) is not None


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the working folder; return what it ends with, and all that it says.

    gpupif alone runs in this process, all else in bash with this Python's gpupif.
    """
    if is_plain(command):
        return in_this_process(command)
    python = shlex.quote(sys.executable)
    own = f'python() {{ {python} "$@"; }}\ngpupif() {{ python -m gpupif "$@"; }}\n'
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", own + command],
        check=False,
        encoding="utf-8",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def commands_of(block: str) -> Iterator[str]:
    """Yield the commands of a block: each gpupif alone in a line or joined by &&, and other lines together."""
    lines = [re.sub(r"\s+# .*", "", line) for line in block.strip().replace("\\\n", " ").split("\n")]
    joined = [[part.strip() for part in line.split("&&")] for line in lines]
    lines = [
        own
        for line, parts in zip(lines, joined, strict=True)
        for own in (parts if all(map(is_plain, parts)) else [line])
    ]
    for plain, group in groupby(lines, is_plain):
        own = list(group)
        yield from own if plain else ["\n".join(own)]


def run_commands(example: sybil.Example) -> str:
    """A block of bash: it has to end well. What is wrong with it, if anything."""
    for command in commands_of(example.parsed):
        ended = shell(command)
        if ended.returncode:
            return f"$ {command}\nexit code {ended.returncode}\n{ended.stdout}"
    return ""


def run_console(example: sybil.Example) -> str:
    """A block of `$ command` and, below each, what it prints. What is wrong with it, if anything."""
    for block in re.split(r"^\$ ", example.parsed, flags=re.MULTILINE)[1:]:
        command, _, expected = block.partition("\n")
        # Only the first run on a machine says that it compiles.
        [command] = commands_of(command)
        shown = re.sub(r"^gpupif: compiling.*\n", "", shell(command).stdout, flags=re.MULTILINE)
        shown = re.sub(r" +$", "", shown, flags=re.MULTILINE)
        checker = OutputChecker()
        if not checker.check_output(expected, shown, ELLIPSIS):
            return f"$ {command}\n{checker.output_difference(Example(command, expected), shown, ELLIPSIS)}"
    return ""


def read_toml(example: sybil.Example) -> None:
    """A block of TOML: it has to be TOML."""
    tomllib.loads(example.parsed)


EXAMPLES = sybil.Sybil(
    [
        PythonCodeBlockParser(doctest_optionflags=ELLIPSIS),
        CodeBlockParser("bash", run_commands),
        CodeBlockParser("console", run_console),
        CodeBlockParser("toml", read_toml),
        SkipParser(),
    ]
)


@pytest.mark.slow
@each_page
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    """One test a page, in an empty folder: later blocks use the names and files that earlier ones made."""
    monkeypatch.chdir(tmp_path)
    for example in EXAMPLES.parse(page):
        try:
            example.evaluate()
        except SkipTest:
            continue


@each_page
def test_code_blocks_of_a_page_are_of_a_known_kind(page):
    fences = re.findall(r"^\s*```(.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    assert {fence.split(" ")[0] for fence in fences[0::2]} <= LANGUAGES | OF_THE_SITE
    assert set(fences[1::2]) <= {""}


def anchors(page: Path) -> set[str]:
    """What a link can name within a page: its headings, as GitHub spells them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_links_of_a_page_have_a_target(page):
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@each_page
def test_the_extras_that_a_page_names_exist(page):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = re.findall(r"'\.\[([\w,-]+)\]'", page.read_text("utf-8"))
    assert {extra for several in named for extra in several.split(",")} <= set(extras)


@each_page
def test_the_files_that_a_page_names_exist(page):
    named = re.findall(r"`((?:gpupif|kernels|tests|docs|benchmarks)/[\w./-]*)`", page.read_text("utf-8"))
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing


def test_architecture_has_every_part():
    text = (ROOT / "docs" / "developers" / "architecture.md").read_text("utf-8")
    parts = re.findall(r"^\| `gpupif/(\w+)/` \|", text, flags=re.MULTILINE)
    folders = {init.parent.name for init in (ROOT / "gpupif").glob("*/__init__.py")} - {"kernels"}
    assert sorted(parts) == sorted(folders)


def test_the_readme_has_at_most_93_lines():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 93


@pytest.mark.parametrize("module", ["gpupif", "treatments", "models", "information", "results", "errors"])
def test_the_api_pages_have_every_public_name(module):
    """A page names them itself, or has Sphinx list the module's."""
    page = (DOCS / "reference" / "api" / f"{module}.md").read_text("utf-8")
    if f".. automodule:: gpupif.{module}\n   :members:\n" in page:
        return
    named = re.findall(r"^\.\. auto(?:function|class|exception):: (\w+)$", page, flags=re.MULTILINE)
    public = gpupif if module == "gpupif" else gpupif.errors
    names = {name for name in dir(public) if not name.startswith("_") and callable(getattr(public, name))}
    if module == "errors":
        kinds = (gpupif.GpupifError, Warning)
        names = {name for name in names if isinstance(getattr(public, name), type)}
        names = {name for name in names if issubclass(getattr(public, name), kinds)}
    assert sorted(named) == sorted(names - {"GpupifError", "InputError"} if module == "gpupif" else names)
