"""The command `gpupif score`: each parameter of its function is an option, as Typer has it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import InputError
from . import options
from .option_values import FileRoles, as_attackers, as_distances, as_names, as_numbers, as_population
from .options import (
    ClusterOptions,
    ReportFile,
    attack_option,
    cells_option,
    compiling_ahead,
    option,
    output_option,
    place_option,
    table_option,
)
from .printing import as_document, interruption, say

if TYPE_CHECKING:
    from ..attack.arguments import Arguments
    from ..results.cell_selection import Selection
    from ..results.scores import Scores


@dataclass(frozen=True)
class ScoreOptions(ClusterOptions):
    """The options that score shares with other commands; by default it takes memory and files of its own."""

    memory_limit: options.MemoryLimit = None
    temp: Annotated[
        Path | None, place_option("FOLDER", "For temporary files. Default: beside the output, or the system's.")
    ] = None


def score(
    table: options.Table,
    output: Path | None = output_option(
        None, "Scores: .parquet, .csv, .feather, or a folder.", "-o", "--output", show_default=False
    ),
    columns: str | None = option("A,B", "Columns to score. Default: all."),
    roles: options.RolesFile = None,
    measures: str = option("M,M", "Any that gpupif measures lists.", default="cig,csf,wcig"),
    where: str | None = cells_option("'csf > 0.9'", "Write only cells where it holds, a row each."),
    min_cig: float | None = cells_option("BITS", "Only cells of so much CIG: --where 'cig >= BITS'."),
    top: int | None = cells_option("N", "Write only the N riskiest cells, or the riskiest of those."),
    by: str | None = cells_option("MEASURE", "By which --top goes. Default: CIG, or the first scored."),
    summary_only: bool = cells_option(
        None, "Write no scores; --output, if given, is a .json file for the summary.", "--summary-only", default=False
    ),
    known: str | None = attack_option("A,B", "Columns the attacker knows. Default: all scored ones."),
    known_any: int | None = attack_option("R", "In place of --known: any R of the other columns; worst and mean."),
    among: str | None = attack_option("A,B", "Columns that --known-any is of. Default: all scored ones."),
    subsets: int | None = attack_option("N", "With --known-any: a sample of N subsets for each column."),
    seed: int = attack_option("S", "By which --subsets are drawn.", default=0),
    priors: Path | None = attack_option(
        "FILE", 'Of scored columns: .json, {"column": {"value": 0.5}}, or a table: column, value, probability.'
    ),
    accuracies: Path | None = attack_option(
        "FILE", 'Of scored columns: .json, {"column": 0.9}, or a table: column, accuracy.'
    ),
    accuracy: list[str] | None = attack_option(
        "COLUMN=0.9", "How far what is concluded about a scored column is trusted, 0 to 1; may be repeated."
    ),
    distance: options.Distances = None,
    attacker: list[str] | None = attack_option(
        "NAME=A,B", "One of several attackers, and the columns it knows; may be repeated."
    ),
    attacker_any: options.AnyAttackers = None,
    weights: options.SamplingWeights = None,
    population: Path | None = table_option("TABLE", "The population that TABLE is a sample of: priors, sizes."),
    population_lacks: options.PopulationLacks = "error",
    missing: options.MissingOrWildcard = "category",
    device: options.Device = None,
    gpu_grouping: options.GpuGrouping = None,
    dtype: str = output_option("float64|float32", "Type of the scores.", default="float64"),
    keep_input: bool = output_option(None, "Put the table's columns first.", "--keep-input", default=False),
    compression: options.Compression = None,
    overwrite: options.Overwrite = False,
    report: options.Report = None,
    redact: options.Redact = False,
    rows_per_file: int | None = output_option("N", "Score files of N rows. Default: one for each file of the table."),
    resume: bool = output_option(None, "Go on where a run that was killed stopped.", "--resume", default=False),
    *,
    shared: ScoreOptions,
) -> None:
    """Score every cell of TABLE and write the scores, named MEASURE_COLUMN, in the order of its rows."""
    from ..measures import resolve_measures

    names = list(dict.fromkeys(as_names(measures) or []))
    shared.check(table)
    to = ReportFile(report, overwrite, table, redact)
    resolve_measures(names)
    scored_columns, their_known, their_among = as_names(columns), as_names(known), as_names(among)
    # Scored columns may be known, too.
    from_file = FileRoles(roles, table, shared.sep, [weights])
    scored_columns = from_file.take("columns", scored_columns, "quasi-identifier", "sensitive")
    by_number = known_any is not None or bool(attacker_any)
    if by_number:
        their_among = from_file.quasi_identifiers("among", their_among)
    elif not attacker:
        their_known = from_file.quasi_identifiers("known", their_known)
    weights = from_file.weights(weights)
    with (
        shared.configured(device, gpu_grouping, compression),
        compiling_ahead("scores", () if shared.place.named or missing == "wildcard" else names, table, shared.sep),
    ):
        from ..attack.arguments import Arguments
        from ..io.paths import find_input
        from ..io.write import write_text
        from ..out_of_core.output_options import OutputOptions
        from ..scoring.files import score_file

        asked = Arguments.from_user(
            names,
            scored_columns,
            **_attack(
                their_known, known_any, attacker, attacker_any, {"among": their_among, "subsets": subsets, "seed": seed}
            ),
            priors=_read_priors(priors) if priors else None,
            accuracies=_accuracies(accuracy or (), accuracies),
            distances=as_distances(distance),
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
            of_a_cluster = {"scheduler": shared.scheduler, "workers": shared.workers}
            _check_summary(
                output,
                overwrite and report is None,
                {**asked_cells, "compression": compression, **given, **of_a_cluster},
            )
            scores, cells = score_file(
                find_input(table, shared.sep), asked, OutputOptions.from_arguments(None, summary_only=True)
            )
            document = {
                "input": str(table),
                **from_file.facts(),
                **_told(scores),
                "request": scores.provenance,
            }
            if output is not None:
                write_text(as_document(document), output, overwrite)
        elif output is None:
            raise InputError(
                "output: expected the name of a file or folder for the scores. Name it, or use --summary-only."
            )
        elif shared.place.named:
            from .cluster import score_on_cluster

            elsewhere = {"sep": shared.sep, "memory_limit": shared.memory_limit, "temp": shared.temp, **given}
            facts = score_on_cluster(table, output, shared.place, overwrite, asked, elsewhere, selection)
            interruption.left = f"the scores are complete: {output}"
            shared.show(lambda: {**from_file.facts(), **facts}, lambda _: _print_facts(facts, asked))
            shared.say_roles(from_file)
            if report is not None:
                from ..results.open import open_scores

                to.write([_document(open_scores(output), redact)], shared)
            return
        else:
            if resume:
                interruption.left = interruption.RESUMABLE
            how = OutputOptions.from_arguments(output, rows_per_file, resume, overwrite, keep_input, selection)
            scores, cells = score_file(find_input(table, shared.sep), asked, how)
        more: dict[str, Any] = {"input": str(table), **from_file.facts()}
        if output is not None:
            interruption.left = f"the scores are complete: {output}"
            more["output"] = str(output)
        if cells is not None:
            more["cells_written"] = cells
        if scores.spilled_bytes is not None:
            more["spilled_bytes"] = scores.spilled_bytes
        shared.show(lambda: {**more, **_told(scores)}, lambda console: scores.summary().print(console))
        shared.say_roles(from_file)
        if output is not None:
            whole = "" if cells is None else "; the summary is of all cells"
            shared.say(f"{_what_is_written(summary_only, cells)} written to {output}{whole}")
        if report is not None:
            to.write([{**more, **_document(scores, redact)}], shared)


def _told(scores: Scores) -> dict[str, Any]:
    """Return the summary of scores for JSON, with its verdict."""
    summary = scores.summary()
    return {"verdict": summary.verdict(redact=True), **summary.to_dict()}


def _document(scores: Scores, redact: bool) -> dict[str, Any]:
    from ..results.score_report import score_document

    return score_document(scores, redact)


def _selection(where: str | None, min_cig: float | None, top: int | None, by: str | None) -> Selection | None:
    """Return the cells that are requested in place of all; None for all scores. Raises InputError."""
    from ..results.cell_selection import Selection

    selection = Selection.if_any(where, top, by)
    if min_cig is not None:
        if not math.isfinite(min_cig):
            raise InputError(f"--min-cig: expected a number, such as 3; got {min_cig}.")
        least = f"cig >= {min_cig!r}"
        selection = Selection.from_user(least if where is None else f"({where}) and {least}", top, by)
    return selection


def _check_summary(output: Path | None, overwrite: bool, idle: Mapping[str, Any]) -> None:
    """Raise InputError for what does not go with --summary-only. idle: options that would do nothing."""
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
    """Return in words what was written."""
    from ..utils.display import plural

    if cells is not None:
        return f"{cells:,} {plural(cells, 'cell')}"
    return "Summary" if summary_only else "Scores"


def _attack(
    known: list[str] | None,
    known_any: int | None,
    attacker: Sequence[str] | None,
    attacker_any: Sequence[str] | None,
    of_any: dict[str, Any],
) -> dict[str, Any]:
    """Return `known` and `attackers` of `gpupif.score`. of_any: the options that go with any so many columns."""
    from ..attack.attackers import AnyKnown

    if known_any is None and not attacker_any:
        for option, value in of_any.items():
            # The default seed is 0.
            if value is not None and value != 0:
                raise InputError(
                    f"--{option}: goes with --known-any or --attacker-any. Add one of them, or leave it out."
                )
    if known is not None and known_any is not None:
        raise InputError("--known-any: goes in place of --known. Leave one of them out.")

    def any_known(columns: int) -> AnyKnown:
        return AnyKnown(columns, **of_any)

    return {
        "known": known if known_any is None else any_known(known_any),
        "attackers": as_attackers(attacker, attacker_any, any_known),
    }


def _accuracies(texts: Iterable[str], file: Path | None) -> dict[Hashable, float]:
    """Return accuracies by column, from the file and from texts COLUMN=NUMBER."""
    from ..attack.prior_files import as_accuracies, check_ending

    for text in texts:
        if "=" in text.rpartition("=")[0] and "," in text:
            raise InputError(f"--accuracy: expected one COLUMN=NUMBER, got {text!r}. Give the option once per column.")
    if file is not None:
        check_ending("accuracies", file)
    accuracies: dict[Hashable, float] = dict(as_accuracies(file) or {})
    for column, accuracy in as_numbers("--accuracy", texts, "age=0.9").items():
        if column in accuracies:
            raise InputError(f"--accuracy: column {column!r} is named twice.")
        accuracies[column] = accuracy
    return accuracies


def _read_priors(path: Path) -> Any:
    from ..attack.prior_files import as_priors, check_ending

    check_ending("priors", path)
    return as_priors(path)


def _print_facts(facts: dict[str, Any], asked: Arguments) -> None:
    """Print what a cluster did, without a summary, for which all scores would be read again."""
    from ..attack.attackers import attacker_line
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
