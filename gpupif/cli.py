"""The command line: `gpupif score`, `risk`, `toxic`, `suda`, `measures`, `demo`, `info`."""

from __future__ import annotations

import signal
import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import __version__
from .cli_options import Device, Distances, Json, PopulationLacks, Quiet, Sep, Table, as_distances, as_names, show
from .errors import GpupifError, InputError
from .measures_cli import measures as list_measures
from .risk_cli import risk
from .suda_cli import suda
from .toxic_cli import toxic

if TYPE_CHECKING:
    from .attackers import AttackerScores
    from .result import Scores
    from .stored import StoredAttackerScores, StoredScores

app = typer.Typer(
    name="gpupif",
    help="Privacy risk of every cell of a table: what would an attacker learn from it who knows everything else?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# Enough for every kernel that a larger table needs.
WARM_UP_ROWS = 20_000


@app.command()
def score(
    table: Table,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Scores: .parquet, .csv, .feather, or a folder.", show_default=False),
    ],
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="Columns to score. Default: all.")] = None,
    measures: Annotated[str, typer.Option(metavar="M,M", help="Any that gpupif measures lists.")] = "cig,csf,wcig",
    known: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns the attacker knows. Default: all scored ones.")
    ] = None,
    known_any: Annotated[
        int | None, typer.Option(metavar="R", help="In place of --known: any R of the other columns; worst and mean.")
    ] = None,
    among: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns that --known-any is of. Default: all scored ones.")
    ] = None,
    subsets: Annotated[
        int | None, typer.Option(metavar="N", help="With --known-any: a sample of N subsets for each column.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="By which --subsets are drawn.")] = 0,
    priors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='Priors: .json, {"column": {"value": probability}}, or a table: column, value, probability.',
        ),
    ] = None,
    accuracies: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='Accuracies: .json, {"column": 0.9}, or a table: column, accuracy.'),
    ] = None,
    accuracy: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=0.9", help="How sure the attacker is; may be repeated.")
    ] = None,
    distance: Distances = None,
    attacker: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=A,B", help="One of several attackers, and the columns it knows; may be repeated."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of sampling weights: people that a row stands for.")
    ] = None,
    population: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="The population that TABLE is a sample of: priors, sizes.")
    ] = None,
    population_lacks: PopulationLacks = "error",
    missing: Annotated[
        str,
        typer.Option(metavar="category|error|wildcard", help="Missing values: one more value, refuse, or match any."),
    ] = "category",
    device: Device = "auto",
    dtype: Annotated[str, typer.Option(metavar="float64|float32", help="Type of the scores.")] = "float64",
    sep: Sep = None,
    keep_input: Annotated[bool, typer.Option("--keep-input", help="Put the table's columns first.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an output that exists.")] = False,
    memory_limit: Annotated[
        str | None, typer.Option(metavar="2GiB", help="Memory to take. Default: 60 % of what is free.")
    ] = None,
    temp: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="For temporary files. Default: beside the output.")
    ] = None,
    rows_per_file: Annotated[
        int | None, typer.Option(metavar="N", help="Score files of N rows. Default: one for each file of the table.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a run that was killed stopped.")] = False,
    scheduler: Annotated[
        str | None, typer.Option(metavar="tcp://HOST:8786", help="Score on the Dask cluster there.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Score on a Dask cluster of N processes here.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score every cell of TABLE and write the scores, named MEASURE_COLUMN, in the order of its rows."""
    from .files import score_file

    if quiet:
        warnings.simplefilter("ignore")
    question: dict[str, Any] = {
        "columns": as_names(columns),
        **_known(known, known_any, among, subsets, seed),
        "priors": _read_priors(priors) if priors else None,
        "accuracies": _accuracies(accuracy or (), accuracies),
        "distances": as_distances(distance or ()) or None,
        "missing": missing,
        "dtype": dtype,
        "weights": weights,
        "attackers": _attackers(attacker),
        "population": population,
        "population_lacks": population_lacks,
    }
    options = {
        "memory_limit": memory_limit,
        "temp": temp,
        "rows_per_file": rows_per_file,
        "resume": resume,
        "overwrite": overwrite,
        "keep_input": keep_input,
    }
    wanted = list(dict.fromkeys(as_names(measures) or []))
    if scheduler is not None or workers is not None:
        place = (scheduler, workers)
        _score_on_cluster(table, output, place, wanted, device, question, {"sep": sep, **options}, as_json, quiet)
        return
    visible = False if quiet else None
    scores = score_file(table, output, wanted, question, device, sep, options, visible)
    _complete.append(output)
    more: dict[str, Any] = {"input": str(table), "output": str(output)}
    if hasattr(scores, "spilled_bytes"):
        more["spilled_bytes"] = scores.spilled_bytes
    _show(scores, as_json, quiet, more)
    if not quiet and not as_json:
        typer.echo(f"Scores written to {output}")


def _known(
    known: str | None, known_any: int | None, among: str | None, subsets: int | None, seed: int
) -> dict[str, Any]:
    """What the attacker knows, as arguments of `score`."""
    if known_any is None:
        given = {"among": among, "subsets": subsets, "seed": seed or None}
        alone = next((option for option, value in given.items() if value is not None), None)
        if alone is not None:
            raise InputError(f"--{alone}: goes with --known-any. Add that, or leave it out.")
        return {"known": as_names(known)}
    if known is not None:
        raise InputError("--known-any: goes in place of --known. Leave one of them out.")
    return {"known": known_any, "among": as_names(among), "subsets": subsets, "seed": seed}


def _score_on_cluster(
    table: Path,
    output: Path,
    place: tuple[str | None, int | None],
    wanted: list[str],
    device: str,
    question: dict[str, Any],
    options: dict[str, Any],
    as_json: bool,
    quiet: bool,
) -> None:
    """Score on the Dask cluster at `place`: its scheduler, or so many workers here."""
    from .cluster.cli import score_on_cluster

    overwrite = options.pop("overwrite")
    visible = False if quiet else None
    facts = score_on_cluster(table, output, place, overwrite, wanted, device, question, options, visible)
    _complete.append(output)
    _show_facts(facts, as_json, quiet)


app.command()(risk)
app.command()(toxic)
app.command()(suda)
app.command("measures")(list_measures)


@app.command()
def demo(
    rows: Annotated[int, typer.Option(help="People in the synthetic census.")] = 1_000_000,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Score a synthetic census: see what gpupif says, and how fast."""
    from .datasets import census
    from .progress import announce_compilation
    from .scoring import score as score_table

    measures = ("cig", "csf", "wcig")
    with announce_compilation():
        # A first run compiles; what is shown is the speed from then on.
        score_table(census(WARM_UP_ROWS), measures, device=device)
    started = time.perf_counter()
    table = census(rows)
    made = time.perf_counter() - started
    scores = score_table(table, measures, device=device)
    if not as_json:
        typer.echo(f"A synthetic census of {rows:,} people, made in {made:.1f} s; no real person is in it.\n")
    _show(scores, as_json, False, {})
    if not as_json:
        typer.echo("\nNext, your own table:   gpupif score TABLE.parquet -o SCORES.parquet   (CSV and Feather too)")
        typer.echo("From Python:            import gpupif; scores = gpupif.score(frame); scores.cig; scores.top(20)")
        typer.echo("More:                   gpupif score --help, gpupif info")


@app.command()
def info(as_json: Json = False) -> None:
    """Show versions, CPU and GPU: which engine runs, and where that is not CUDA, exactly why not."""
    import json

    from .environment import describe

    facts = describe()
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    width = max(map(len, facts))
    for name, fact in facts.items():
        typer.echo(f"{name:{width}}  {fact}")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"gpupif {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Privacy risk of every cell of a table."""


def _attackers(texts: Iterable[str] | None) -> dict[str, list[str]] | None:
    """What each attacker knows, from NAME=A,B."""
    if not texts:
        return None
    attackers: dict[str, list[str]] = {}
    for text in texts:
        name, equals, columns = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(f"--attacker: expected NAME=COLUMN,COLUMN, such as neighbour=age,sex; got {text!r}.")
        if name in attackers:
            raise InputError(f"--attacker: {name!r} is named twice. Give each another name.")
        attackers[name] = as_names(columns) or []
    return attackers


def _accuracies(texts: Iterable[str], file: Path | None) -> dict[str, float]:
    from .prior_tables import as_accuracies, check_ending

    if file is not None:
        check_ending("accuracies", file)
    accuracies: dict[str, float] = dict(as_accuracies(file) or {})
    for text in texts:
        column, equals, number = text.rpartition("=")
        try:
            value = float(number if equals else "")
        except ValueError:
            raise InputError(f"--accuracy: expected COLUMN=NUMBER, such as age=0.9; got {text!r}.") from None
        if "=" in column and "," in column:
            raise InputError(f"--accuracy: expected one COLUMN=NUMBER, got {text!r}. Give the option once per column.")
        if column in accuracies:
            raise InputError(f"--accuracy: column {column!r} is named twice.")
        accuracies[column] = value
    return accuracies


def _read_priors(path: Path) -> Any:
    from .prior_tables import as_priors, check_ending

    check_ending("priors", path)
    return as_priors(path)


def _show(
    scores: Scores | StoredScores | AttackerScores | StoredAttackerScores,
    as_json: bool,
    quiet: bool,
    more: dict[str, Any],
) -> None:
    show(lambda: {**more, **scores.summary().to_dict()}, lambda to: scores.summary().print(to), as_json, quiet)


def _show_facts(facts: dict[str, Any], as_json: bool, quiet: bool) -> None:
    """What a cluster did: it has no summary, which needs all rows in one place."""
    import json

    if as_json:
        typer.echo(json.dumps({"gpupif": __version__, **facts}, indent=2, ensure_ascii=False))
    elif not quiet:
        typer.echo(
            f"{facts['rows']:,} rows x {len(facts['columns'])} columns ({', '.join(facts['measures'])}) scored by "
            f"{facts['workers']} workers in {facts['partitions']} partitions, in {facts['seconds']:.1f} s"
        )
        typer.echo(f"Scores written to {facts['output']}, a folder of Parquet files")


# The scores that are in place already, where a signal comes afterwards.
_complete: list[Path] = []


class _Interrupted(BaseException):
    """Ctrl-C or another signal to end, under a name that the framework does not catch on its own account."""


def _as_options(message: str) -> str:
    """A message about arguments in the words of the command line: columns= is --columns."""
    import re

    message = re.sub(r"^attackers:", "--attacker:", message)
    message = re.sub(r"^distances:", "--distance:", message)
    names = (
        "columns|known|priors|accuracies|weights|measures|missing|dtype|device|sep|output|memory_limit|temp|"
        "rows_per_file|population_lacks|population_size|population|size|top|quasi_identifiers|sensitive|models|l|distance|"
        "k|threshold|groups|sampling_fraction|max_size|contributions|among|subsets|seed"
    )
    if any(argument.startswith("--known-any") for argument in sys.argv):
        message = re.sub(r"^known:", "--known-any:", message)
    message = re.sub(r"^accuracies:(?= column| no column)", "--accuracy:", message)
    message = re.sub(rf"^({names}), ({names}):", r"--\1, --\2:", message)
    message = re.sub(rf"^({names}):", r"--\1:", message)
    message = re.sub(rf"\b({names})=('\W+')", r"--\1 \2", message)
    message = re.sub(r"\b(subsets|seed|max_size)=(\d+)", r"--\1 \2", message)
    message = re.sub(rf"\b({names})='(\w+)'", r"--\1 \2", message)
    message = re.sub(rf"\b({names})=(?!\w)", r"--\1", message)
    return re.sub(rf"--({names})\b", lambda found: found[0].replace("_", "-"), message)


def main() -> None:
    """Run the command line; errors that gpupif raises on purpose are one line on standard error, exit code 2."""

    def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"gpupif: warning: {_as_options(str(message))}", file=sys.stderr)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, _: object) -> None:
        # What the first one began, cleaning up, no further one is to stop.
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise _Interrupted(number)

    warnings.showwarning = show_warning
    _complete.clear()
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        app()
    except GpupifError as error:
        print(f"gpupif: error: {_as_options(str(error))}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        # A full disk, say, on which compiled kernels are to be kept.
        print(f"gpupif: error: {error}.", file=sys.stderr)
        raise SystemExit(2) from None
    except MemoryError:
        print("gpupif: error: not enough memory for this table. Score fewer columns (--columns).", file=sys.stderr)
        raise SystemExit(2) from None
    except _Interrupted as signalled:
        kept = "--resume" in sys.argv
        left = "what is done is kept, and the same command goes on with it" if kept else "nothing was written"
        if _complete:
            left = f"the scores are complete: {_complete[0]}"
        print(f"gpupif: interrupted; {left}.", file=sys.stderr)
        raise SystemExit(128 + signalled.args[0]) from None
