"""The command line: `gpupif score`, `gpupif toxic`, `gpupif demo`, `gpupif info`."""

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
from .cli_options import Json, Quiet, as_names
from .errors import GpupifError, InputError
from .toxic_cli import toxic

if TYPE_CHECKING:
    from .result import Scores
    from .stored import StoredScores

app = typer.Typer(
    name="gpupif",
    help="Privacy risk of every cell of a table: what would an attacker learn from it who knows everything else?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# Enough for every kernel that a larger table needs.
WARM_UP_ROWS = 20_000

Device = Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to compute.")]


@app.command()
def score(
    table: Annotated[
        Path,
        typer.Argument(help="Parquet, CSV or Feather file, folder of Parquet, or 'data/**/*.csv'.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Scores: .parquet, .csv, .feather, or a folder.", show_default=False),
    ],
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="Columns to score. Default: all.")] = None,
    measures: Annotated[
        str, typer.Option(metavar="M,M", help="Any of cig, wcig, csf, posterior, prior, cohort_size.")
    ] = "cig,csf,wcig",
    known: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns the attacker knows. Default: all scored ones.")
    ] = None,
    priors: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help='Priors: {"column": {"value": probability}}.')
    ] = None,
    accuracy: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=0.9", help="How sure the attacker is; may be repeated.")
    ] = None,
    missing: Annotated[
        str,
        typer.Option(metavar="category|error|wildcard", help="Missing values: one more value, refuse, or match any."),
    ] = "category",
    device: Device = "auto",
    dtype: Annotated[str, typer.Option(metavar="float64|float32", help="Type of the scores.")] = "float64",
    sep: Annotated[
        str | None, typer.Option(metavar="CHARACTER", help="Separator of a CSV file. Default: found by itself.")
    ] = None,
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
    question = {
        "columns": as_names(columns),
        "known": as_names(known),
        "priors": _read_priors(priors) if priors else None,
        "accuracies": _accuracies(accuracy or ()),
        "missing": missing,
        "dtype": dtype,
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
        from .cluster.cli import score_on_cluster

        del options["overwrite"]
        place = (scheduler, workers)
        facts = score_on_cluster(table, output, place, overwrite, wanted, device, question, {"sep": sep, **options})
        _show_facts(facts, as_json, quiet)
        return
    visible = False if quiet else None
    scores = score_file(table, output, wanted, question, device, sep, options, visible)
    more: dict[str, Any] = {"input": str(table), "output": str(output)}
    if hasattr(scores, "spilled_bytes"):
        more["spilled_bytes"] = scores.spilled_bytes
    _show(scores, as_json, quiet, more)
    if not quiet and not as_json:
        typer.echo(f"Scores written to {output}")


app.command()(toxic)


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


def _accuracies(texts: Iterable[str]) -> dict[str, float]:
    accuracies: dict[str, float] = {}
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


def _read_priors(path: Path) -> dict[str, Any]:
    import json

    from .priors import priors_from_json

    try:
        return dict(priors_from_json(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise InputError(f"--priors: {path}: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise InputError(f"--priors: {path}: expected text in UTF-8. Save it as UTF-8.") from None
    except json.JSONDecodeError as error:
        shape = '{"column": {"value": probability}}'
        raise InputError(f"--priors: {path}: expected JSON such as {shape}; it is none: {error}.") from None
    except ValueError as error:
        raise InputError(f"--priors: {path}: {error}") from None


def _show(scores: Scores | StoredScores, as_json: bool, quiet: bool, more: dict[str, Any]) -> None:
    import json

    if as_json:
        document = {"gpupif": __version__, **more, **scores.summary().to_dict()}
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    elif not quiet:
        from rich.console import Console

        from .report import print_summary

        console = Console(width=None if sys.stdout.isatty() else 140)
        print_summary(scores.summary(), console)


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


class _Interrupted(BaseException):
    """Ctrl-C or another signal to end, under a name that the framework does not catch on its own account."""


def _as_options(message: str) -> str:
    """A message about arguments in the words of the command line: columns= is --columns."""
    import re

    names = "columns|known|priors|measures|missing|dtype|device|sep|output|memory_limit|temp|rows_per_file|size|top"
    message = re.sub(r"^accuracies:", "--accuracy:", message)
    message = re.sub(rf"^({names}):", r"--\1:", message)
    message = re.sub(rf"\b({names})=('\W+')", r"--\1 \2", message)
    message = re.sub(rf"\b({names})='(\w+)'", r"--\1 \2", message)
    message = re.sub(rf"\b({names})=(?!\w)", r"--\1", message)
    return re.sub(r"--(memory_limit|rows_per_file)", lambda found: found[0].replace("_", "-"), message)


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
        print(f"gpupif: interrupted; {left}.", file=sys.stderr)
        raise SystemExit(128 + signalled.args[0]) from None
