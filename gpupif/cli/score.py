"""The command `gpupif score`: each parameter of its function is an option, as Typer has it, so there are many."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..errors import InputError
from . import options
from .messages import decimal_comma_hint
from .options import (
    FileRoles,
    as_distances,
    as_names,
    as_population,
    check_table,
    compiling_ahead,
    configured,
    interruption,
    say,
    show,
    show_scores,
)

if TYPE_CHECKING:
    from ..attack.any_known import AnyKnown
    from ..attack.arguments import Arguments, Knowledge
    from ..results.selection import Selection


def score(
    table: options.Table,
    output: Annotated[
        Path | None,
        options.output_option(
            "-o", "--output", help="Scores: .parquet, .csv, .feather, or a folder.", show_default=False
        ),
    ] = None,
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="Columns to score. Default: all.")] = None,
    roles: options.RolesFile = None,
    measures: Annotated[str, typer.Option(metavar="M,M", help="Any that gpupif measures lists.")] = "cig,csf,wcig",
    where: Annotated[
        str | None,
        options.cells_option(metavar="'csf > 0.9'", help="Write only cells where it holds, a row each."),
    ] = None,
    min_cig: Annotated[
        float | None,
        options.cells_option("--min-cig", metavar="BITS", help="Only cells of so much CIG: --where 'cig >= BITS'."),
    ] = None,
    top: Annotated[
        int | None, options.cells_option(metavar="N", help="Write only the N riskiest cells, or the riskiest of those.")
    ] = None,
    by: Annotated[
        str | None,
        options.cells_option(metavar="MEASURE", help="By which --top goes. Default: CIG, or the first scored."),
    ] = None,
    summary_only: Annotated[
        bool,
        options.cells_option(
            "--summary-only", help="Write no scores; --output, if given, is a .json file for the summary."
        ),
    ] = False,
    known: Annotated[
        str | None, options.attack_option(metavar="A,B", help="Columns the attacker knows. Default: all scored ones.")
    ] = None,
    known_any: Annotated[
        int | None,
        options.attack_option(metavar="R", help="In place of --known: any R of the other columns; worst and mean."),
    ] = None,
    among: Annotated[
        str | None,
        options.attack_option(metavar="A,B", help="Columns that --known-any is of. Default: all scored ones."),
    ] = None,
    subsets: Annotated[
        int | None, options.attack_option(metavar="N", help="With --known-any: a sample of N subsets for each column.")
    ] = None,
    seed: Annotated[int, options.attack_option(metavar="S", help="By which --subsets are drawn.")] = 0,
    priors: Annotated[
        Path | None,
        options.attack_option(
            metavar="FILE",
            help='Of scored columns: .json, {"column": {"value": 0.5}}, or a table: column, value, probability.',
        ),
    ] = None,
    accuracies: Annotated[
        Path | None,
        options.attack_option(
            metavar="FILE", help='Of scored columns: .json, {"column": 0.9}, or a table: column, accuracy.'
        ),
    ] = None,
    accuracy: Annotated[
        list[str] | None,
        options.attack_option(
            metavar="COLUMN=0.9",
            help="How far what is concluded about a scored column is trusted, 0 to 1; may be repeated.",
        ),
    ] = None,
    distance: options.Distances = None,
    attacker: Annotated[
        list[str] | None,
        options.attack_option(
            metavar="NAME=A,B", help="One of several attackers, and the columns it knows; may be repeated."
        ),
    ] = None,
    attacker_any: Annotated[
        list[str] | None,
        options.attack_option(metavar="NAME=R", help="Another of them: any R of the other columns, as --known-any."),
    ] = None,
    weights: options.SamplingWeights = None,
    population: Annotated[
        Path | None,
        options.table_option(metavar="TABLE", help="The population that TABLE is a sample of: priors, sizes."),
    ] = None,
    population_lacks: options.PopulationLacks = "error",
    missing: options.MissingOrWildcard = "category",
    device: options.Device = None,
    gpu_grouping: options.GpuGrouping = None,
    dtype: Annotated[str, options.output_option(metavar="float64|float32", help="Type of the scores.")] = "float64",
    sep: options.Sep = None,
    keep_input: Annotated[bool, options.output_option("--keep-input", help="Put the table's columns first.")] = False,
    compression: options.Compression = None,
    overwrite: options.Overwrite = False,
    memory_limit: Annotated[
        str | None, options.place_option(metavar="2GiB", help="Memory to take. Default: 60 % of what is free.")
    ] = None,
    temp: Annotated[
        Path | None,
        options.place_option(
            metavar="FOLDER", help="For temporary files. Default: beside the output, or the system's."
        ),
    ] = None,
    rows_per_file: Annotated[
        int | None,
        options.output_option(metavar="N", help="Score files of N rows. Default: one for each file of the table."),
    ] = None,
    resume: Annotated[
        bool, options.output_option("--resume", help="Go on where a run that was killed stopped.")
    ] = False,
    scheduler: options.Scheduler = None,
    workers: options.WorkerProcesses = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Score every cell of TABLE and write the scores, named MEASURE_COLUMN, in the order of its rows."""
    from ..dask.client import Place
    from ..measures import resolve_measures

    place, names = Place(scheduler, workers), list(dict.fromkeys(as_names(measures) or []))
    check_table(table, sep, place)
    resolve_measures(names)
    scored_columns, their_known, their_among = as_names(columns), as_names(known), as_names(among)
    # What is scored may be known, too.
    from_file = FileRoles(roles, table, sep, [weights])
    scored_columns = from_file.take("columns", scored_columns, lambda columns: columns.scored)
    by_number = known_any is not None or bool(attacker_any)
    if by_number:
        their_among = from_file.known("among", their_among)
    elif not attacker:
        their_known = from_file.known("known", their_known)
    weights = from_file.weights(weights)
    with (
        configured(quiet, device, gpu_grouping, memory_limit, temp, compression),
        compiling_ahead("scores", () if place.named or missing == "wildcard" else names, table, sep),
    ):
        from ..attack.arguments import Arguments
        from ..io.paths import find_input
        from ..io.write import write_text
        from ..out_of_core.options import OutputOptions
        from ..scoring.files import score_file

        asked = Arguments.of(
            names,
            scored_columns,
            **_attack(their_known, known_any, attacker, attacker_any, _AnyOptions(their_among, subsets, seed)),
            priors=_read_priors(priors) if priors else None,
            accuracies=_accuracies(accuracy or (), accuracies),
            distances=as_distances(distance or ()) or None,
            weights=weights,
            population=as_population(population, population_lacks),
            missing=missing,
            dtype=dtype,
        )
        if min_cig is not None and "cig" not in names:
            raise InputError(f"--min-cig: CIG is not scored (scored: {', '.join(names)}). Add it to --measures.")
        selection = _selection(where, min_cig, top, by)
        given = {"keep_input": keep_input, "rows_per_file": rows_per_file, "resume": resume}
        if summary_only:
            asked_cells = {"where": where, "min_cig": min_cig, "top": top, "by": by}
            of_a_cluster = {"scheduler": scheduler, "workers": workers}
            _check_summary(output, overwrite, {**asked_cells, "compression": compression, **given, **of_a_cluster})
            scores, cells = score_file(
                find_input(table, sep), asked, OutputOptions.from_arguments(None, summary_only=True)
            )
            document = {
                "input": str(table),
                **from_file.facts(),
                **scores.summary().to_dict(),
                "request": scores.provenance,
            }
            if output is not None:
                write_text(options.as_document(document), output, overwrite)
        elif output is None:
            raise InputError(
                "output: expected the name of a file or folder for the scores. Name it, or use --summary-only."
            )
        elif place.named:
            from .cluster import score_on_cluster

            elsewhere = {"sep": sep, "memory_limit": memory_limit, "temp": temp, **given}
            facts = score_on_cluster(table, output, place, overwrite, asked, elsewhere, selection)
            interruption.left = f"the scores are complete: {output}"
            show(lambda: {**from_file.facts(), **facts}, lambda _: _print_facts(facts, asked), as_json, quiet)
            from_file.say(as_json, quiet)
            return
        else:
            if resume:
                interruption.left = interruption.RESUMABLE
            how = OutputOptions.from_arguments(output, rows_per_file, resume, overwrite, keep_input, selection)
            scores, cells = score_file(find_input(table, sep), asked, how)
        more: dict[str, Any] = {"input": str(table), **from_file.facts()}
        if output is not None:
            interruption.left = f"the scores are complete: {output}"
            more["output"] = str(output)
        if cells is not None:
            more["cells_written"] = cells
        if scores.spilled_bytes is not None:
            more["spilled_bytes"] = scores.spilled_bytes
        show_scores(scores, as_json, quiet, more)
        from_file.say(as_json, quiet)
        if output is not None and not quiet and not as_json:
            whole = "" if cells is None else "; the summary is of all cells"
            say(f"{_what_is_written(summary_only, cells)} written to {output}{whole}")


def _selection(where: str | None, min_cig: float | None, top: int | None, by: str | None) -> Selection | None:
    """The cells that are asked for in place of all, None for all scores; raises InputError."""
    from ..results.selection import Selection

    selection = Selection.if_any(where, top, by)
    if min_cig is not None:
        if not math.isfinite(min_cig):
            raise InputError(f"--min-cig: expected a number, such as 3; got {min_cig}.")
        least = f"cig >= {min_cig!r}"
        selection = Selection.of(least if where is None else f"({where}) and {least}", top, by)
    return selection


def _check_summary(output: Path | None, overwrite: bool, idle: Mapping[str, Any]) -> None:
    """Refuse what does not go with --summary-only. idle: options that would do nothing, where they are set."""
    from ..io.write import check_output

    for name, value in idle.items():
        if value is not None and value is not False:
            raise InputError(
                f"--{name.replace('_', '-')}: does not go with --summary-only, which writes no scores. Leave one out."
            )
    if output is None and overwrite:
        raise InputError("--overwrite: replaces an output, and none is named. Add --output, or leave it out.")
    if output is not None:
        check_output(output, overwrite, endings=(".json",))


def _what_is_written(summary_only: bool, cells: int | None) -> str:
    """In words."""
    from ..utils.display import plural

    if cells is not None:
        return f"{cells:,} {plural(cells, 'cell')}"
    return "Summary" if summary_only else "Scores"


class _AnyOptions(NamedTuple):
    """What goes with --known-any and --attacker-any."""

    among: list[str] | None
    subsets: int | None
    seed: int

    def known(self, columns: int) -> AnyKnown:
        """Any so many columns."""
        from ..attack.any_known import AnyKnown

        return AnyKnown(columns, among=self.among, subsets=self.subsets, seed=self.seed)

    def refuse(self) -> None:
        """Raise InputError if there is any."""
        given = {"among": self.among, "subsets": self.subsets, "seed": self.seed or None}
        for option, value in given.items():
            if value is not None:
                raise InputError(
                    f"--{option}: goes with --known-any or --attacker-any. Add one of them, or leave it out."
                )


def _attack(
    known: list[str] | None,
    known_any: int | None,
    attacker: Sequence[str] | None,
    attacker_any: Sequence[str] | None,
    of_any: _AnyOptions,
) -> dict[str, Any]:
    """What is known, `known` and `attackers` of `gpupif.score`."""
    if known_any is None and not attacker_any:
        of_any.refuse()
    if known is not None and known_any is not None:
        raise InputError("--known-any: goes in place of --known. Leave one of them out.")
    attackers: dict[str, Knowledge] = {}
    for name, columns in _by_name("attacker", attacker, "COLUMN,COLUMN, such as neighbour=age,sex"):
        _add(attackers, name, as_names(columns) or [])
    expected = "NUMBER, such as anyone=2"
    for name, number in _by_name("attacker-any", attacker_any, expected):
        if not number.strip().isdecimal():
            raise InputError(f"--attacker-any: expected NAME={expected}; got {f'{name}={number}'!r}.")
        _add(attackers, name, of_any.known(int(number)))
    return {
        "known": known if known_any is None else of_any.known(known_any),
        "attackers": attackers or None,
    }


def _by_name(option: str, texts: Sequence[str] | None, expected: str) -> Iterator[tuple[str, str]]:
    """Names of attackers, and what stands behind them."""
    for text in texts or ():
        name, equals, rest = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--{option}: expected NAME={expected}; got {text!r}.")
        yield name.strip(), rest


def _add(attackers: dict[str, Knowledge], name: str, known: Knowledge) -> None:
    if name in attackers:
        raise InputError(f"--attacker: {name!r} is named twice. Give each another name.")
    attackers[name] = known


def _accuracies(texts: Iterable[str], file: Path | None) -> dict[str, float]:
    from ..attack.prior_files import as_accuracies, check_ending

    if file is not None:
        check_ending("accuracies", file)
    accuracies: dict[str, float] = dict(as_accuracies(file) or {})
    for text in texts:
        column, equals, number = text.rpartition("=")
        try:
            value = float(number if equals else "")
        except ValueError:
            hint = decimal_comma_hint(number)
            raise InputError(f"--accuracy: expected COLUMN=NUMBER, such as age=0.9; got {text!r}{hint}.") from None
        if "=" in column and "," in column:
            raise InputError(f"--accuracy: expected one COLUMN=NUMBER, got {text!r}. Give the option once per column.")
        if column in accuracies:
            raise InputError(f"--accuracy: column {column!r} is named twice.")
        accuracies[column] = value
    return accuracies


def _read_priors(path: Path) -> Any:
    from ..attack.prior_files import as_priors, check_ending

    check_ending("priors", path)
    return as_priors(path)


def _print_facts(facts: dict[str, Any], asked: Arguments) -> None:
    """Print what a cluster did: no summary, for which all scores would be read again."""
    from ..attack.any_known import attacker_line
    from ..utils.display import plural

    if asked.attackers is None:
        say(attacker_line(asked.known, facts["columns"]))
    several = facts.get("attackers", []) if "known_any" not in facts else []
    against = f" against {', '.join(several)}" if several else ""
    rows, columns = facts["rows"], len(facts["columns"])
    table = f"{rows:,} {plural(rows, 'row')} x {columns} {plural(columns, 'column')}"
    where = " in ".join(f"{facts[noun + 's']} {plural(facts[noun + 's'], noun)}" for noun in ("worker", "partition"))
    measures = ", ".join(facts["measures"])
    say(f"{table} ({measures}) scored{against} by {where}, in {facts['seconds']:.1f} s")
    if "known_any" in facts:
        say(f"Worst and mean over {facts['attackers']}")
    written = "Scores" if "cells_written" not in facts else _what_is_written(False, facts["cells_written"])
    say(f"{written} written to {facts['output']}, a folder of Parquet files")
