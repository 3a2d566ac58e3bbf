"""The command line: `gpupif score`, `gpupif demo`, `gpupif info`."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import __version__
from .errors import GpupifError, InputError

if TYPE_CHECKING:
    from .progress import Reporter
    from .result import Scores

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
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


@app.command()
def score(
    table: Annotated[Path, typer.Argument(help="Parquet file or folder, CSV, or Feather.", show_default=False)],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Scores: .parquet, .csv or .feather.", show_default=False),
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
    missing: Annotated[str, typer.Option(metavar="category|error", help="Missing values.")] = "category",
    device: Device = "auto",
    dtype: Annotated[str, typer.Option(metavar="float64|float32", help="Type of the scores.")] = "float64",
    sep: Annotated[
        str | None, typer.Option(metavar="CHARACTER", help="Separator of a CSV file. Default: found by itself.")
    ] = None,
    keep_input: Annotated[bool, typer.Option("--keep-input", help="Put the table's columns first.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an output that exists.")] = False,
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
    from .device import choose_engine
    from .frames import open_file
    from .job import needed_columns
    from .measures import resolve_measures
    from .reading import every_column
    from .scoring import score as score_table
    from .writing import check_output, output_names

    if quiet:
        warnings.simplefilter("ignore")
    if scheduler is not None or workers is not None:
        from .cluster.cli import score_on_cluster

        facts = score_on_cluster(
            table,
            output,
            scheduler=scheduler,
            workers=workers,
            overwrite=overwrite,
            keep_input=keep_input,
            sep=sep,
            measures=[measure.name for measure in resolve_measures(_names(measures) or [])],
            columns=_names(columns),
            known=_names(known),
            priors=_read_priors(priors) if priors else None,
            accuracies=_accuracies(accuracy or ()),
            missing=missing,
            device=device,
            dtype=dtype,
        )
        _show_facts(facts, as_json, quiet)
        return
    check_output(output, overwrite, table)
    engine = choose_engine(device)
    wanted = [measure.name for measure in resolve_measures(_names(measures) or [])]
    prior = _read_priors(priors) if priors else None
    accuracies = _accuracies(accuracy or ())
    targets, attacker = _names(columns), _names(known)
    visible = False if quiet else None
    needed = every_column if keep_input else needed_columns(targets, attacker, prior, accuracies)
    with _stage("read", None, visible):
        source = open_file(table, needed, sep, engine.frames)
    default = [name for name in source.names if name not in source.index_names]
    output_names(wanted, list(dict.fromkeys([*targets] if targets else default)), source.names if keep_input else [])
    scores = score_table(
        source,
        wanted,
        columns=targets,
        known=attacker,
        priors=prior,
        accuracies=accuracies,
        missing=missing,
        device=device,
        dtype=dtype,
        progress=visible,
    )
    started = time.perf_counter()
    with _stage("write", scores.rows, visible) as report:
        scores.write(output, keep_input, overwrite, report.advance)
    scores.seconds["write"] = time.perf_counter() - started
    _show(scores, as_json, quiet, {"input": str(table), "output": str(output)})
    if not quiet and not as_json:
        typer.echo(f"Scores written to {output}")


@contextlib.contextmanager
def _stage(name: str, rows: int | None, visible: bool | None) -> Iterator[Reporter]:
    """Show the progress of a stage."""
    from .progress import Reporter

    with Reporter(visible) as report:
        report.stage(name, rows, "rows")
        yield report


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


def _names(text: str | None) -> list[str] | None:
    """Names separated by commas; one with a comma in it stands in double quotes."""
    import csv
    import io

    if text is None:
        return None
    lines = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True))
    if len(lines) > 1:
        raise InputError(f"columns: expected names separated by commas, got a line break in {text!r}.")
    names = [name.strip() for name in lines[0]] if lines else []
    if "" in names and len(names) > 1:
        raise InputError(f"columns: expected names separated by commas, got a comma too many in {text!r}.")
    return names


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


def _show(scores: Scores, as_json: bool, quiet: bool, more: dict[str, str]) -> None:
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
    """Ctrl-C, under a name that the framework does not catch on its own account."""


def _as_options(message: str) -> str:
    """A message about arguments in the words of the command line: columns= is --columns."""
    import re

    names = "columns|known|priors|measures|missing|dtype|device|sep"
    message = re.sub(r"^accuracies:", "--accuracy:", message)
    message = re.sub(rf"^({names}):", r"--\1:", message)
    message = re.sub(rf"\b({names})=('\W+')", r"--\1 \2", message)
    message = re.sub(rf"\b({names})='(\w+)'", r"--\1 \2", message)
    return re.sub(rf"\b({names})=(?!\w)", r"--\1", message)


def main() -> None:
    """Run the command line; errors that gpupif raises on purpose are one line on standard error, exit code 2."""

    def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"gpupif: warning: {_as_options(str(message))}", file=sys.stderr)

    def interrupt(*_: object) -> None:
        raise _Interrupted

    warnings.showwarning = show_warning
    signal.signal(signal.SIGINT, interrupt)
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
    except _Interrupted:
        print("gpupif: interrupted; nothing was written.", file=sys.stderr)
        raise SystemExit(130) from None
