"""The command `gpupif score`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .option_values import as_attackers
from .options import Given, compiling_ahead, verdicts
from .printing import as_document, interruption, say

if TYPE_CHECKING:
    from ..attack.arguments import Arguments
    from ..results.cell_selection import Selection
    from ..results.scores import Scores


# Options that make no sense with --summary-only, and on a cluster.
OF_FILES = ("keep_input", "rows_per_file", "resume")
IDLE = ("where", "min_cig", "top", "by", "compression", *OF_FILES, "scheduler", "workers")
ELSEWHERE = ("sep", "memory_limit", "temp", *OF_FILES)


def score(given: Given) -> None:
    """Score every cell of TABLE and write the scores, named MEASURE_COLUMN, in the order of its rows."""
    from ..measures import resolve_measures

    table, output = given.table, given.output
    given.measures = names = list(dict.fromkeys(given.measures or []))
    given.check()
    to = given.report_file(table)
    resolve_measures(names)
    # Scored columns may be known, too.
    from_file = given.file_roles(given.weights)
    given.columns = from_file.take("columns", given.columns, "quasi-identifier", "sensitive")
    known, among = given.known, given.among
    if given.known_any is not None or given.attacker_any:
        among = from_file.quasi_identifiers("among", among)
    elif not given.attackers:
        known = from_file.quasi_identifiers("known", known)
    given.weights = from_file.weights(given.weights)
    on_blocks = not given.place.named and given.missing != "wildcard"
    with given.configured(), compiling_ahead("scores", names if on_blocks else (), given):
        from ..attack.arguments import Arguments
        from ..io.paths import find_input
        from ..io.write import write_text
        from ..out_of_core.output_options import OutputOptions
        from ..scoring.files import score_file

        attack = _attack(given, known, {"among": among, "subsets": given.subsets, "seed": given.seed})
        asked = Arguments.from_user(names, **given.arguments(Arguments.from_user, **attack))
        if given.min_cig is not None and "cig" not in names:
            raise InputError(f"--min-cig: CIG is not scored (scored: {', '.join(names)}). Add it to --measures.")
        selection = _selection(given)
        if given.summary_only:
            _check_summary(given)
            how = OutputOptions.from_arguments(None, summary_only=True)
            scores, cells = score_file(find_input(table, given.sep), asked, how)
            document = {"input": str(table), **from_file.facts(), **_told(scores), "request": scores.provenance}
            if output is not None:
                write_text(as_document(document), output, given.overwrite)
        elif output is None:
            raise InputError(
                "output: expected the name of a file or folder for the scores. Name it, or use --summary-only."
            )
        elif given.place.named:
            from .cluster import score_on_cluster

            elsewhere = {name: given.get(name) for name in ELSEWHERE}
            facts = score_on_cluster(table, output, given.place, given.overwrite, asked, elsewhere, selection)
            interruption.left = f"the scores are complete: {output}"
            given.show(lambda: {**from_file.facts(), **facts}, lambda _: _print_facts(facts, asked))
            given.say_roles(from_file)
            if given.report is not None:
                from ..results.open import open_scores

                to.write([_document(open_scores(output), given.redact)], given)
            return
        else:
            if given.resume:
                interruption.left = interruption.RESUMABLE
            how = OutputOptions.from_arguments(
                output, **given.arguments(OutputOptions.from_arguments, selection=selection)
            )
            scores, cells = score_file(find_input(table, given.sep), asked, how)
        more: dict[str, Any] = {"input": str(table), **from_file.facts()}
        if output is not None:
            interruption.left = f"the scores are complete: {output}"
            more["output"] = str(output)
        if cells is not None:
            more["cells_written"] = cells
        if scores.spilled_bytes is not None:
            more["spilled_bytes"] = scores.spilled_bytes
        given.show(lambda: {**more, **_told(scores)}, lambda console: scores.summary().print(console))
        given.say_roles(from_file)
        if output is not None:
            whole = "" if cells is None else "; the summary is of all cells"
            given.say(f"{_what_is_written(given.summary_only, cells)} written to {output}{whole}")
        if given.report is not None:
            to.write([{**more, **_document(scores, given.redact)}], given)


def _told(scores: Scores) -> dict[str, Any]:
    """Return the summary of scores for JSON, with its verdict."""
    summary = scores.summary()
    return {**verdicts(summary), **summary.to_dict()}


def _document(scores: Scores, redact: bool) -> dict[str, Any]:
    from ..results.score_report import score_document

    return score_document(scores, redact)


def _selection(given: Given) -> Selection | None:
    """Return the cells that are requested in place of all; None for all scores. Raises InputError."""
    from ..results.cell_selection import Selection

    where, least = given.where, given.min_cig
    selection = Selection.if_any(where, given.top, given.by)
    if least is not None:
        if not math.isfinite(least):
            raise InputError(f"--min-cig: expected a number, such as 3; got {least}.")
        high = f"cig >= {least!r}"
        selection = Selection.from_user(high if where is None else f"({where}) and {high}", given.top, given.by)
    return selection


def _check_summary(given: Given) -> None:
    """Raise InputError for what does not go with --summary-only."""
    from ..io.write import check_output

    for name in IDLE:
        value = getattr(given, name)
        # 0 equals False, but is a value.
        if value is not None and value is not False:
            raise InputError(
                f"--{name.replace('_', '-')}: does not go with --summary-only, which writes no scores. Leave one out."
            )
    if given.output is not None:
        check_output(given.output, given.overwrite, endings=(".json",))
    elif given.overwrite and given.report is None:
        raise InputError("--overwrite: replaces an output, and none is named. Add --output, or leave it out.")


def _what_is_written(summary_only: bool, cells: int | None) -> str:
    """Return in words what was written."""
    from ..utils.display import plural

    if cells is not None:
        return f"{cells:,} {plural(cells, 'cell')}"
    return "Summary" if summary_only else "Scores"


def _attack(given: Given, known: list[str] | None, of_any: dict[str, Any]) -> dict[str, Any]:
    """Return `known` and `attackers` of `gpupif.score`. of_any: the options that go with any so many columns."""
    from ..attack.attackers import AnyKnown

    if given.known_any is None and not given.attacker_any:
        for option, value in of_any.items():
            # The default seed is 0.
            if value is not None and value != 0:
                raise InputError(
                    f"--{option}: goes with --known-any or --attacker-any. Add one of them, or leave it out."
                )
    if known is not None and given.known_any is not None:
        raise InputError("--known-any: goes in place of --known. Leave one of them out.")

    def any_known(columns: int) -> AnyKnown:
        return AnyKnown(columns, **of_any)

    return {
        "known": known if given.known_any is None else any_known(given.known_any),
        "attackers": as_attackers(given.attackers, given.attacker_any, any_known),
    }


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
