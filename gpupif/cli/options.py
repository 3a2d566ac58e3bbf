"""Options that several commands share: each is declared once, alone or in a group; and what the groups do."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer

from ..errors import InputError
from .printing import as_document, say

if TYPE_CHECKING:
    from rich.console import Console

    from ..dask.cluster_client import Place
    from ..io.base import Input, Pick
    from ..utils.display import Displayable
    from .option_values import FileRoles

Found = TypeVar("Found")


def options_of_panel(title: str | None = None) -> Callable[..., Any]:
    """Return a function that makes options, which the help lists in a panel with this title; None for the first."""

    def option(metavar: str | None, text: str, *names: str, default: Any = None, **more: Any) -> Any:
        """Return an option, which stands in place of the default of a parameter, or in its type.

        metavar, text: of its help. names: if not made from the parameter. more: see typer.
        """
        return typer.Option(default, *names, metavar=metavar, help=text, rich_help_panel=title, **more)

    return option


option = options_of_panel()
attack_option = options_of_panel("Attackers, and what they know")
table_option = options_of_panel("Table and population")
game_option = options_of_panel("Cost and benefit of attacks (any of these has them found)")
cells_option = options_of_panel("Some cells, or a summary, in place of all scores")
output_option = options_of_panel("Output")
place_option = options_of_panel("Where to compute, and within what")

# The parameters of commands that name what is written, and folders of temporary files. All other paths are inputs.
OUTPUTS, WORK_FOLDERS = ("output", "report", "record", "public_record"), ("temp",)

Json = Annotated[bool, option(None, "Print one JSON document instead, and nothing else.", "--json")]
Table = Annotated[
    Path,
    typer.Argument(help="Parquet, CSV or Feather file, folder of Parquet, or 'data/**/*.csv'.", show_default=False),
]
RolesFile = Annotated[
    Path | None,
    option(
        "FILE.toml", "Roles of the columns, as gpupif inspect writes them, for what no other option says.", "--roles"
    ),
]
Device = Annotated[str | None, place_option("auto|cpu|cuda", "Where to compute.", show_default="auto")]
GpuGrouping = Annotated[
    str | None,
    place_option(
        "auto|cudf|rotation",
        "How a GPU finds rows that agree: hashed by cuDF (auto: where installed), or sorted (rotation).",
        show_default="auto",
    ),
]
Distances = Annotated[
    list[str] | None,
    attack_option(
        "C=ordered|nominal|FILE",
        "How far values are apart (emd, t-closeness). FILE.csv: a hierarchy as ARX keeps them, lines of "
        "value;level1;...;*. FILE.json: a list of values in order, or a hierarchy, "
        '{"value": ["part of", ...]}. May be repeated. Default: numbers and dates are ordered.',
        "--distance",
    ),
]
Hierarchies = Annotated[
    Path | None,
    option(
        "H.toml",
        "Hierarchies of the columns: the table 'hierarchies' in a file of TOML, JSON or YAML, such as a plan. For "
        "each column { widths = [5, 10, 20] }, { digits = 3 }, { first = [3, 1] }, { dates = ['month', 'year'] }, or "
        "the path of a .csv file as ARX keeps them. Those that it lacks are proposed.",
        "--hierarchies",
    ),
]
Missing = Annotated[str, table_option("category|error", "Missing values: one more value, or refuse.")]
MissingOrWildcard = Annotated[
    str, table_option("category|error|wildcard", "Missing values: one more value, refuse, or match any.")
]
SamplingWeights = Annotated[
    str | None,
    table_option("COLUMN", "Column of sampling weights: people that a row stands for.", "--weights"),
]
Sep = Annotated[str | None, table_option("CHARACTER", "Separator of a CSV file. Default: found by itself.")]
# Of commands that write a table.
MemoryLimit = Annotated[str | None, place_option("2GiB", "Memory to take. Default: 60 % of what is free.")]
PopulationLacks = Annotated[
    str, table_option("error|count", "Rows that the population lacks: refuse, or count them in it.")
]
Compression = Annotated[
    str | None,
    output_option(
        "auto|zstd|lz4|snappy|none",
        "Of what is written; auto is zstd, of Feather lz4, of CSV none.",
        show_default="auto",
    ),
]
Overwrite = Annotated[bool, output_option(None, "Replace an output that exists.", "--overwrite")]
KeepUnmet = Annotated[
    bool,
    output_option(None, "Write also what does not meet its criteria; the exit code is 3 all the same.", "--keep-unmet"),
]
Report = Annotated[
    Path | None,
    output_option("FILE.html", "Write a report with figures too, for a browser: see gpupif report.", "--report"),
]
Redact = Annotated[
    bool, option(None, "Hide values, figures that tell them, and folders, in the report file alone.", "--redact")
]
Quiet = Annotated[bool, option(None, "Print nothing but errors.", "--quiet", "-q")]
Columns = Annotated[str | None, option("A,B", "Columns that are looked at. Default: all.")]
QuasiIdentifiers = Annotated[
    str | None, option("A,B", "Columns that an attacker may know of a person; or give --roles.")
]
AnyAttackers = Annotated[
    list[str] | None,
    attack_option("NAME=R", "Another of them: any R of the other columns.", "--attacker-any"),
]


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer in which the fields of option groups stand in place of the groups.

    A group is a parameter whose type is a dataclass: each field, with its type and default, becomes an option.
    """
    types = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in types.items() if is_dataclass(kind)}
    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        if parameter.name in groups:
            group = groups[parameter.name]
            of_group = get_type_hints(group, include_extras=True)
            parameters += [_parameter(field.name, of_group[field.name], field.default) for field in fields(group)]
        else:
            parameters.append(_parameter(parameter.name, types[parameter.name], parameter.default))

    @wraps(command)
    def run(**given: Any) -> None:
        _check_files(given)
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _check_files(given: Mapping[str, Any]) -> None:
    """Raise ReplacedInputError if an output of a command is one of its inputs: all paths that are no outputs.

    given: the values of all parameters of the command.
    """
    outputs = {f"--{name.replace('_', '-')}": given.get(name) for name in OUTPUTS}
    if any(outputs.values()):
        from ..attack.hierarchy_files import names_file
        from ..io.run_files import check_apart

        paths = {name: value for name, value in given.items() if isinstance(value, Path)}
        inputs = {name: path for name, path in paths.items() if name not in (*OUTPUTS, *WORK_FOLDERS)}
        distances = list(filter(names_file, (text.rpartition("=")[2] for text in given.get("distance") or ())))
        # What a configuration of nightly runs names, its commands check.
        alone = [inputs.pop("file")] if "file" in inputs else []
        check_apart(outputs, inputs | {"distance": distances}, alone)


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    """Return a parameter of a command for Typer. An option in its type takes the place of its default."""
    if get_origin(annotation) is Annotated:
        annotation, option = get_args(annotation)
        option = copy(option)
        option.default = ... if default is Parameter.empty else default
        default = option
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


@dataclass(frozen=True)
class RiskOptions:
    """The options for figures of `gpupif risk` that need more than columns of the table."""

    population: Annotated[
        Path | None,
        table_option("FILE", "The population that TABLE is a part of: journalist risk, k-map, presence."),
    ] = None
    population_lacks: PopulationLacks = "error"
    sampling_fraction: Annotated[
        float | None, table_option("0.01", "Share of the population that TABLE is a random sample of.")
    ] = None
    population_size: Annotated[
        int | None, table_option("N", "People in that population, instead of --sampling-fraction.")
    ] = None
    publisher_benefit: Annotated[float | None, game_option("1200", "What each row that is published brings.")] = None
    publisher_loss: Annotated[
        float | None, game_option("300", "What each person costs the publisher who is re-identified.")
    ] = None
    adversary_gain: Annotated[float | None, game_option("300", "What each such person brings the adversary.")] = None
    adversary_cost: Annotated[float | None, game_option("4", "What each attempt costs the adversary.")] = None
    weights: SamplingWeights = None
    household: Annotated[
        str | None,
        table_option("COLUMN", "Rows of a household have the same value there: risk that one is found."),
    ] = None
    missing: MissingOrWildcard = "category"

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of `gpupif.risk` that the options make. Raises InputError."""
        from ..disclosure.attack_game import Game
        from .option_values import as_population

        amounts = {
            name: amount
            for name, amount in vars(self).items()
            if name.startswith(("publisher_", "adversary_")) and amount is not None
        }
        names = ("sampling_fraction", "population_size", "weights", "household", "missing")
        return {
            **{name: getattr(self, name) for name in names},
            "population": as_population(self.population, self.population_lacks),
            # Amounts that are not given are the defaults of `gpupif.models.Game`.
            "game": Game(**amounts) if amounts else None,
        }


@dataclass(frozen=True)
class PrintOptions:
    """The options that say what a command prints."""

    as_json: Json = False
    quiet: Quiet = False

    def show(self, facts: Callable[[], dict[str, Any]], draw: Callable[[Console], None]) -> None:
        """Print what was found as one JSON document, or draw it on a console, or do neither."""
        if self.as_json:
            typer.echo(as_document(facts()))
        elif not self.quiet:
            from ..utils.printed_width import standard_output

            draw(standard_output())

    def say(self, line: str) -> None:
        """Print a line for people, beside a result that is drawn."""
        if not (self.as_json or self.quiet):
            say(line)

    def say_commands(self, said: str, commands: Sequence[str]) -> None:
        """Print the commands to go on with, each in a line of its own. said: the line before them."""
        for line in (said, *(f"  {command}" for command in commands)):
            self.say(line)


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

    def write(self, documents: Sequence[Mapping[str, Any]], shared: PrintOptions) -> None:
        """Write the report, and say so. documents: of results, see `gpupif.report`."""
        from ..report.page import write_report

        if self.file is not None:
            write_report(documents, self.file, self.title, self.redact, self.overwrite)
            shared.say(f"Report written to {self.file}; open it in a browser.")


@dataclass(frozen=True)
class ReadOptions(PrintOptions):
    """The options of a command that reads a table here, perhaps in streams."""

    sep: Sep = None
    memory_limit: Annotated[str | None, place_option("2GiB", "Memory to take; the table is then read in streams.")] = (
        None
    )
    temp: Annotated[Path | None, place_option("FOLDER", "For temporary files. Default: the system's.")] = None

    def check(self, table: Path) -> Input:
        """Return the files of a table. Raises what `find_input` does, before what a command needs is imported."""
        from ..io.paths import find_input

        return find_input(table, self.sep)

    @contextlib.contextmanager
    def configured(
        self, device: str | None = None, gpu_grouping: str | None = None, compression: str | None = None
    ) -> Iterator[None]:
        """Run the block with the options of the command; the environment decides about those that are not given."""
        with configured(self.quiet, device, gpu_grouping, self.memory_limit, self.temp, compression):
            yield

    def report(
        self,
        found: Displayable,
        from_file: FileRoles,
        commands: Sequence[str] = (),
        to: ReportFile | None = None,
        **places: Path | None,
    ) -> None:
        """Print what was found, and what came from a file of roles; write a report, if one is asked for.

        commands: to go on with, for JSON. to: the report. places: of tables and outputs, None for none.
        """
        named: dict[str, Any] = {name: str(place) for name, place in places.items() if place is not None}
        more = {"commands": [*commands]} if commands else {}
        verdict = {"verdict": found.verdict(redact=True)}
        self.show(lambda: {**named, **from_file.facts(), **verdict, **found.to_dict(), **more}, found.print)
        self.say_roles(from_file)
        if to is not None and to.file is not None:
            from ..report.records import document_of

            to.write([{**named, **document_of(found, to.redact), **more}], self)

    def say_roles(self, from_file: FileRoles) -> None:
        """Print a sentence on what came from a file of roles, if there is one, as wide as a result that is drawn."""
        if from_file.file is not None and not (self.as_json or self.quiet):
            from ..utils.display import draw_line
            from ..utils.printed_width import standard_output

            draw_line(standard_output(), from_file.described)


@dataclass(frozen=True)
class ClusterOptions(ReadOptions):
    """The options of a command that reads a table here or on a Dask cluster."""

    scheduler: Annotated[str | None, place_option("tcp://HOST:8786", "Compute on the Dask cluster there.")] = None
    workers: Annotated[int | None, place_option("N", "Compute on a Dask cluster of N processes here.")] = None

    @property
    def place(self) -> Place:
        """The cluster, or none."""
        from ..dask.cluster_client import Place

        return Place(self.scheduler, self.workers)

    def check(self, table: Path) -> Input:
        from ..io.paths import find_input

        return find_input(table, None if self.place.named else self.sep)

    def find(self, find: Callable[..., Found], table: Path, pick: Pick) -> Found:
        """Return what a function finds in a table, here or on a cluster, see `find_anywhere`."""
        from .cluster import find_anywhere

        return find_anywhere(find, table, pick, self.place, self.sep, self.memory_limit, self.temp)


@contextlib.contextmanager
def configured(
    quiet: bool,
    device: str | None = None,
    gpu_grouping: str | None = None,
    memory_limit: str | None = None,
    temp: Path | None = None,
    compression: str | None = None,
) -> Iterator[None]:
    """Run the block with options of a command; the environment decides about those that are not given."""
    from ..utils.config import config

    with (
        warnings.catch_warnings(),
        config(
            device=device,
            gpu_grouping=gpu_grouping,
            memory_limit=memory_limit,
            temp=temp,
            progress=False if quiet else None,
            compression=compression,
        ),
    ):
        if quiet:
            warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def compiling_ahead(
    question: str, measures: Sequence[str], table: Path | None = None, sep: str | None = None
) -> Iterator[None]:
    """While the block runs, have other processes compile what answers a question on the CPU, if that will be needed.

    question, measures: see `engines.cpu.ahead.NEEDED`; without measures nothing is compiled. table, sep: the table that
    the question is about; None for a large one. To be entered within `configured`, and before the command imports what
    else it needs. Raises what `choose_engine` and `device_for` do.
    """
    if not measures:
        yield
        return
    from ..engines.choose import choose_engine, requested_device
    from ..engines.cpu import ahead

    def cells() -> int | None:
        from ..frames.open import about_cells
        from ..io.paths import find_input

        return None if table is None else about_cells(find_input(table, sep))

    on_cpu = choose_engine(requested_device(cells)).device == "cpu"
    with ahead.compiling_ahead(question, measures) if on_cpu else contextlib.nullcontext():
        yield
