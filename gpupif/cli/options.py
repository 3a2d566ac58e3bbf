"""What several commands of the command line share."""

from __future__ import annotations

import contextlib
import csv
import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._version import __version__
from ..errors import InputError, printable

if TYPE_CHECKING:
    from rich.console import Console

    from ..attack.population import Population
    from ..attack.roles import Roles
    from ..dask.client import Place
    from ..results.scores import Scores

# The groups in which the help lists options, but for those that are asked for first.
attack_option = partial(typer.Option, rich_help_panel="Attackers, and what they know")
table_option = partial(typer.Option, rich_help_panel="Table and population")
game_option = partial(typer.Option, rich_help_panel="Cost and benefit of attacks (any of these has them found)")
cells_option = partial(typer.Option, rich_help_panel="Some cells, or a summary, in place of all scores")
output_option = partial(typer.Option, rich_help_panel="Output")
place_option = partial(typer.Option, rich_help_panel="Where to compute, and within what")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead, and nothing else.")]
Table = Annotated[
    Path,
    typer.Argument(help="Parquet, CSV or Feather file, folder of Parquet, or 'data/**/*.csv'.", show_default=False),
]
RolesFile = Annotated[
    Path | None,
    typer.Option(
        "--roles",
        metavar="FILE.toml",
        help="Roles of the columns, as gpupif inspect writes them, for what no other option says.",
    ),
]
Device = Annotated[str | None, place_option(metavar="auto|cpu|cuda", help="Where to compute.", show_default="auto")]
GpuGrouping = Annotated[
    str | None,
    place_option(
        metavar="auto|cudf|rotation",
        help="How a GPU finds rows that agree: hashed by cuDF (auto: where installed), or sorted (rotation).",
        show_default="auto",
    ),
]
Distances = Annotated[
    list[str] | None,
    attack_option(
        "--distance",
        metavar="C=ordered|nominal|FILE",
        help="How far values are apart (emd, t-closeness). FILE.csv: a hierarchy as ARX keeps them, lines of "
        "value;level1;...;*. FILE.json: a list of values in order, or a hierarchy, "
        '{"value": ["part of", ...]}. May be repeated. Default: numbers and dates are ordered.',
    ),
]
Hierarchies = Annotated[
    Path | None,
    typer.Option(
        "--hierarchies",
        metavar="H.toml",
        help="Hierarchies of the columns: the table 'hierarchies' in a file of TOML, JSON or YAML, such as a plan. For "
        "each column { widths = [5, 10, 20] }, { digits = 3 }, { dates = ['month', 'year'] }, or the path of a .csv "
        "file as ARX keeps them. Those that it lacks are proposed.",
    ),
]
Missing = Annotated[str, table_option(metavar="category|error", help="Missing values: one more value, or refuse.")]
MissingOrWildcard = Annotated[
    str, table_option(metavar="category|error|wildcard", help="Missing values: one more value, refuse, or match any.")
]
SamplingWeights = Annotated[
    str | None,
    table_option("--weights", metavar="COLUMN", help="Column of sampling weights: people that a row stands for."),
]
Sep = Annotated[
    str | None, table_option(metavar="CHARACTER", help="Separator of a CSV file. Default: found by itself.")
]
StreamMemory = Annotated[
    str | None,
    place_option("--memory-limit", metavar="2GiB", help="Memory to take; the table is then read in streams."),
]
StreamTemp = Annotated[
    Path | None, place_option("--temp", metavar="FOLDER", help="For temporary files. Default: the system's.")
]
PopulationLacks = Annotated[
    str, table_option(metavar="error|count", help="Rows that the population lacks: refuse, or count them in it.")
]
Scheduler = Annotated[
    str | None, place_option("--scheduler", metavar="tcp://HOST:8786", help="Compute on the Dask cluster there.")
]
WorkerProcesses = Annotated[
    int | None, place_option("--workers", metavar="N", help="Compute on a Dask cluster of N processes here.")
]
Compression = Annotated[
    str | None,
    output_option(
        metavar="auto|zstd|lz4|snappy|none",
        help="Of what is written; auto is zstd, of Feather lz4, of CSV none.",
        show_default="auto",
    ),
]
Overwrite = Annotated[bool, output_option("--overwrite", help="Replace an output that exists.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


class Interruption:
    """The sentence that is printed if a signal ends the command now; commands change it as they go.

    left: what the command leaves, the second half of the sentence.
    """

    NOTHING = "nothing was written"
    RESUMABLE = "what is done is kept, and the same command goes on with it"
    left = NOTHING


interruption = Interruption()


@contextlib.contextmanager
def configured(
    quiet: bool,
    device: str | None = None,
    gpu_grouping: str | None = None,
    memory_limit: str | None = None,
    temp: Path | None = None,
    compression: str | None = None,
) -> Iterator[None]:
    """The time of a command, in which its options hold; those that are not given are of the environment."""
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
    """While the block runs, have other processes compile what answers a question on the CPU, where that is needed.

    question: see `engines.cpu.ahead.NEEDED`, about these measures of cells; none where that is not what is asked.
    table, sep: of which it is asked; without one it is of a large table. To be entered within `configured`, and before
    the command imports what else it needs. Raises what `choose_engine` and `device_for` do.
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


def show(facts: Callable[[], dict[str, Any]], draw: Callable[[Console], None], as_json: bool, quiet: bool) -> None:
    """What was found: as one JSON document, drawn on a console, or not at all."""
    if as_json:
        typer.echo(as_document(facts()))
    elif not quiet:
        from ..utils.printed_width import standard_output

        draw(standard_output())


def say(line: str) -> None:
    """Print a line of text, none of which acts on a terminal."""
    typer.echo(printable(line))


def as_document(facts: Mapping[str, Any]) -> str:
    """Facts as one JSON document, which says by which version."""
    from ..utils.display import json_text

    return json_text({"gpupif": __version__, **facts})


def show_scores(scores: Scores, as_json: bool, quiet: bool, more: dict[str, Any]) -> None:
    """The summary of scores, and more facts about them."""
    show(lambda: {**more, **scores.summary().to_dict()}, lambda to: scores.summary().print(to), as_json, quiet)


def check_table(table: Path, sep: str | None, place: Place) -> None:
    """Raise what `find_input` does: at once, before what a command needs is imported."""
    from ..io.paths import find_input

    find_input(table, None if place.named else sep)


class FileRoles:
    """What a command takes from a file of roles: for each option that is not given, the columns that have its role.

    Columns that an option names have the role that it gives them. taken: by option what came from the file.
    """

    def __init__(
        self,
        file: Path | None,
        table: Path,
        sep: str | None,
        given: Iterable[str | None] = (),
        among: Sequence[str] | None = None,
    ) -> None:
        """Read the file, if there is one.

        given: all columns to which options give a role. among: the columns that the command looks at, None for all.
        Raises what `read_roles` does, and InputError for roles of another table.
        """
        self.taken: dict[str, list[str]] = {}
        self._file, self._given, self._roles, self._among = file, set(given), None, among
        if file is None:
            return
        from ..attack.roles import read_roles
        from ..io.paths import find_input
        from ..io.read import open_source

        self._roles = read_roles(file)
        source = open_source(find_input(table, sep))
        self._roles.check(source.names, source.index_names)

    def take(self, option: str, given: list[str] | None, role: Callable[[Roles], Sequence[Any]]) -> list[str] | None:
        """The columns of an option; role: which columns it takes from the file."""
        if given is not None or self._roles is None:
            return given
        found = [
            name
            for name in role(self._roles)
            if name not in self._given and (self._among is None or name in self._among)
        ]
        if found:
            self.taken[option] = found
        return found or None

    def known(self, option: str, given: list[str] | None) -> list[str] | None:
        """As `take`, of quasi-identifiers; raises InputError where the file has none, or options take them all."""
        found = self.take(option, given, lambda roles: roles.known())
        if found is None and self._file is not None:
            raise InputError(
                f"roles: {self._file}: expected a quasi-identifier among the columns that the command looks at, to "
                "which no option gives another role; got none. Name others."
            )
        return found

    def warn_of_weights(self) -> None:
        """Warn of sampling weights in the file, for a command that counts each row once."""
        if self._roles is not None:
            self._roles.warn_of_weights()

    def weights(self, given: str | None) -> str | None:
        """The column of weights."""
        found = self.take("weights", None if given is None else [given], lambda roles: roles.having("weight"))
        return None if found is None else found[0]

    def facts(self) -> dict[str, Any]:
        """What came from the file, for JSON; nothing where there is none."""
        return {} if self._file is None else {"roles": {"file": str(self._file), **self.taken}}

    def say(self, as_json: bool, quiet: bool) -> None:
        """Say in a line what came from the file."""
        if self._file is not None and not (as_json or quiet):
            listed = "; ".join(f"--{option} {as_list_text(columns)}" for option, columns in self.taken.items())
            say(f"From {self._file}: {listed or 'nothing, for options say it all'}")


def as_names(text: str | None, argument: str = "columns") -> list[str] | None:
    """Names separated by commas; one with a comma in it stands in double quotes. argument: what errors call it."""
    if text is None:
        return None
    lines = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True))
    if len(lines) > 1:
        raise InputError(f"{argument}: expected names separated by commas, got a line break in {text!r}.")
    names = [name.strip() for name in lines[0]] if lines else []
    if "" in names and len(names) > 1:
        raise InputError(f"{argument}: expected names separated by commas, got a comma too many in {text!r}.")
    return names


def as_list_text(names: Iterable[str]) -> str:
    """Names as `as_names` takes them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def as_population(table: Path | None, lacks: str) -> Population | None:
    """The population as `gpupif.score` takes it; raises InputError for a bad `lacks`, or one without a table."""
    from ..attack.population import Population

    population = Population(table, lacks)
    if table is not None:
        return population
    if lacks != "error":
        raise InputError("--population-lacks: goes with --population. Add that, or leave it out.")
    return None


def as_distances(texts: Iterable[str]) -> dict[str, Any]:
    """COLUMN=WHAT, each, as what `distances=` takes; values in a file are known by their texts."""
    from ..attack.hierarchy_files import names_file, read_distance

    distances: dict[str, Any] = {}
    for text in texts:
        column, equals, what = text.rpartition("=")
        if not equals or not column:
            raise InputError(
                "--distance: expected COLUMN=ordered, COLUMN=nominal, COLUMN=FILE.csv or COLUMN=FILE.json; got "
                f"{text!r}."
            )
        if column in distances:
            raise InputError(f"--distance: column {column!r} is named twice.")
        if what not in ("ordered", "nominal") and not names_file(what):
            raise InputError(
                f"--distance: column {column!r}: expected ordered, nominal, a .csv file with a hierarchy (lines of "
                f"value;level1;...;*), or a .json file with one or with a list of its values in order; got {what!r}."
            )
        distances[column] = read_distance("--distance", what) if names_file(what) else what
    return distances
