"""Commands with the options that their section of `option_table` has, and what was given on the command line."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import InputError
from .option_table import Row, rows_of
from .option_values import KINDS, FileRoles, check_goes_with
from .printing import as_document, interruption, say

if TYPE_CHECKING:
    from rich.console import Console

    from ..dask.cluster_client import Place
    from ..io.base import Input, Pick
    from ..utils.display import Displayable

# The parameters of commands that name what is written, and folders of temporary files. All other paths are inputs.
OUTPUTS, WORK_FOLDERS = ("output", "report", "record", "public_record"), ("temp",)


def with_options(name: str, command: Callable[[Given], None]) -> Callable[..., None]:
    """Return a command for Typer, whose parameters are the options of its section of the table. name: as typed."""
    rows = rows_of(name)

    @wraps(command)
    def run(**texts: Any) -> None:
        _check_files(rows, texts)
        command(Given(rows, texts))

    parameters = [_parameter(row) for row in rows]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameter(row: Row) -> Parameter:
    """Return a parameter for Typer: an option or argument stands in place of its default."""
    more: dict[str, Any] = {"metavar": row.metavar, "help": row.help, "rich_help_panel": row.panel}
    if row.typed:
        made = typer.Option(row.default, *row.typed, show_default=row.shown or row.default is not ..., **more)
    else:
        made = typer.Argument(row.default, show_default=False, **more)
    of_text = KINDS[row.kind][0]
    annotation = of_text | None if row.default is None else of_text
    return Parameter(row.name, Parameter.KEYWORD_ONLY, default=made, annotation=annotation)


def _check_files(rows: Sequence[Row], texts: Mapping[str, Any]) -> None:
    """Raise ReplacedInputError if an output of a command is one of its inputs: all paths that are no outputs.

    texts: what was given, by the names of the rows.
    """
    outputs = {row.option: texts[row.name] for row in rows if row.name in OUTPUTS}
    if any(outputs.values()):
        from ..attack.hierarchy_files import names_file
        from ..io.run_files import check_apart

        paths = {row.label: texts[row.name] for row in rows if row.name not in (*OUTPUTS, *WORK_FOLDERS)}
        inputs: dict[str, Any] = {label: path for label, path in paths.items() if isinstance(path, Path)}
        inputs["distance"] = list(filter(names_file, (text.rpartition("=")[2] for text in paths.get("distance") or ())))
        # What a configuration of nightly runs names, its commands check.
        alone = [inputs.pop("file")] if "file" in inputs else []
        check_apart(outputs, inputs, alone)


class Given:
    """Values of a command's options: an attribute for each row, with what its text becomes, see `option_values.KINDS`.

    A command may set an attribute anew, with what a file of roles says. texts: what Typer passed on, by row.
    """

    def __init__(self, rows: Sequence[Row], texts: Mapping[str, Any]) -> None:
        self.texts = texts
        self._rows = {row.name: row for row in rows}

    def __getattr__(self, name: str) -> Any:
        if name not in self._rows:
            raise AttributeError(f"the command has no option {name}")
        become = KINDS[self._rows[name].kind][1]
        value = vars(self)[name] = self.texts[name] if become is None else become(self.texts[name], name, self)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # A misspelt option would else have no effect.
        if name not in ("texts", "_rows") and name not in self._rows:
            raise AttributeError(f"the command has no option {name}")
        vars(self)[name] = value

    def get(self, name: str) -> Any:
        """Return the value of an option; None if the command has no such option."""
        return getattr(self, name) if name in self._rows else None

    def arguments(self, function: Callable[..., Any], **more: Any) -> dict[str, Any]:
        """Return what a function takes of the options, by parameter, without its first parameter.

        more: arguments in place of what options say, and arguments that have no option. A file of roles is left out:
        commands read it themselves, and have what it says among their options.
        """
        names = [name for name in list(signature(function).parameters)[1:] if name in self._rows]
        return {name: getattr(self, name) for name in names if name not in ("roles", *more)} | more

    @property
    def place(self) -> Place:
        """The cluster, or none."""
        from ..dask.cluster_client import Place

        return Place(self.get("scheduler"), self.get("workers"))

    def check(self, table: Path | None = None) -> Input:
        """Return the files of a table. Raises what `find_input` does, before what a command needs is imported."""
        from ..io.paths import find_input

        return find_input(table or self.table, None if self.place.named else self.sep)

    def report_file(self, title: object) -> ReportFile:
        """Return the report that is asked for, or none; raises InputError where it cannot be written."""
        return ReportFile(self.report, self.overwrite, title, bool(self.get("redact")))

    def file_roles(self, *named: Any, table: Path | None = None, among: Iterable[str] | None = None) -> FileRoles:
        """Return the roles of --roles. named: columns, or lists of them, to which options give a role."""
        columns = [name for one in named for name in (one if isinstance(one, list) else [one])]
        return FileRoles(self.get("roles"), table or self.table, self.get("sep"), columns, among)

    @contextlib.contextmanager
    def configured(self) -> Iterator[None]:
        """Run the block with the options of the command; the environment decides about those that are not given."""
        from ..utils.config import config

        names = ("device", "gpu_grouping", "memory_limit", "temp", "compression")
        quiet = self.get("quiet")
        settings = {name: self.get(name) for name in names}
        with warnings.catch_warnings(), config(progress=False if quiet else None, **settings):
            if quiet:
                warnings.simplefilter("ignore")
            yield

    def find(self, function: Callable[..., Any], pick: Pick, **more: Any) -> Any:
        """Return what a function finds in the table, here or on a cluster, see `find_anywhere` and `arguments`."""
        from .cluster import find_anywhere

        find = partial(function, **self.arguments(function, **more))
        here = {name: getattr(self, name) for name in ("sep", "memory_limit", "temp")}
        return find_anywhere(find, self.table, pick, self.place, here)

    def write(self, found: Any, what: str) -> None:
        """Write what was found to the output, if there is one. what: in the sentence about an interruption."""
        if self.output is not None:
            found.write(self.output, self.overwrite)
            interruption.left = f"{what}: {self.output}"

    def show(self, facts: Callable[[], dict[str, Any]], draw: Callable[[Console], None]) -> None:
        """Print what was found as one JSON document, or draw it on a console, or do neither."""
        if self.as_json:
            typer.echo(as_document(facts()))
        elif not self.get("quiet"):
            from ..utils.printed_width import standard_output

            draw(standard_output())

    def show_result(
        self,
        found: Displayable,
        from_file: FileRoles | None = None,
        commands: Sequence[str] = (),
        to: ReportFile | None = None,
        **places: Path | None,
    ) -> None:
        """Print what was found, and what came from a file of roles; write a report, if one is asked for.

        commands: to go on with, for JSON. to: the report. places: of tables and outputs, None for none.
        """
        named: dict[str, Any] = {name: str(place) for name, place in places.items() if place is not None}
        more = {"commands": [*commands]} if commands else {}
        facts = {} if from_file is None else from_file.facts()
        self.show(lambda: {**named, **facts, **verdicts(found), **found.to_dict(), **more}, found.print)
        self.say_roles(from_file)
        if to is not None and to.file is not None:
            from ..report.records import document_of

            to.write([{**named, **document_of(found, to.redact), **more}], self)

    def say(self, line: str) -> None:
        """Print a line for people, beside a result that is drawn."""
        if not (self.as_json or self.get("quiet")):
            say(line)

    def say_commands(self, said: str, commands: Sequence[str]) -> None:
        """Print the commands to go on with, each in a line of its own. said: the line before them."""
        for line in (said, *(f"  {command}" for command in commands)):
            self.say(line)

    def say_roles(self, from_file: FileRoles | None) -> None:
        """Print a sentence on what came from a file of roles, if there is one, as wide as a result that is drawn."""
        if from_file is not None and from_file.file is not None and not (self.as_json or self.quiet):
            from ..utils.display import draw_line
            from ..utils.printed_width import standard_output

            draw_line(standard_output(), from_file.described)

    def check_goes_with(self, needed: str, *names: str) -> None:
        """Raise InputError for options that do nothing without another one. needed, names: parameters."""
        others = {self._rows[name].label: self.texts[name] for name in names}
        check_goes_with(self._rows[needed].option, self.texts[needed], **others)


def verdicts(found: Displayable) -> dict[str, list[str]]:
    """Return the verdict of a result for JSON, and as a redacted report has it."""
    from ..utils.display import REDACTED

    return {"verdict": found.verdict(), REDACTED: found.verdict(redact=True)}


@dataclass(frozen=True)
class ReportFile:
    """The report that a command writes beside its result; checked at once.

    file: None for none. title: see `write_report`. redact: whether values of cells are hidden.
    """

    file: Path | None
    overwrite: bool
    title: object
    redact: bool

    def __post_init__(self) -> None:
        if self.file is None and self.redact:
            raise InputError("redact: goes with --report. Say where to write the report, or leave it out.")
        if self.file is not None:
            from ..report.page import check_report

            check_report(self.file, self.overwrite)

    def write(self, documents: Sequence[Mapping[str, Any]], given: Given) -> None:
        """Write the report, and say so. documents: of results, see `gpupif.report`."""
        from ..report.page import write_report

        if self.file is not None:
            write_report(documents, self.file, self.title, self.redact, self.overwrite)
            given.say(f"Report written to {self.file}; open it in a browser.")


@contextlib.contextmanager
def compiling_ahead(question: str, measures: Sequence[str], given: Given | None = None) -> Iterator[None]:
    """While the block runs, have other processes compile what answers a question on the CPU, if that will be needed.

    question, measures: see `engines.cpu.ahead.NEEDED`; without measures nothing is compiled. given: names the table
    that the question is about; None for a large one. To be entered within `configured`, and before the command imports
    what else it needs. Raises what `choose_engine` and `device_for` do.
    """
    if not measures:
        yield
        return
    from ..engines.choose import choose_engine, requested_device
    from ..engines.cpu import ahead

    def cells() -> int | None:
        from ..frames.open import about_cells

        return None if given is None else about_cells(given.check())

    on_cpu = choose_engine(requested_device(cells)).device == "cpu"
    with ahead.compiling_ahead(question, measures) if on_cpu else contextlib.nullcontext():
        yield
