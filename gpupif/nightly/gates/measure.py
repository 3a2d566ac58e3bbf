"""A table measured as a configuration asks: scored, and its equivalence classes looked at."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..configuration.settings import AnyKnownSettings, Known, ScoreSettings, Settings
from ..outcome import ColumnProfile
from .findings import Findings
from .gates import Gate, questions_of

if TYPE_CHECKING:
    from ...attack.arguments import Arguments
    from ...disclosure.risk import DisclosureRisk
    from ...out_of_core.options import OutputOptions

# Makes of a path of the configuration one that can be opened.
Resolve = Callable[[str], Path]


def measure_table(
    table: Any,
    settings: Settings,
    gates: Sequence[Gate],
    columns: Sequence[ColumnProfile],
    resolve: Resolve,
    scores_to: str | os.PathLike[str] | None = None,
) -> Findings:
    """What is found of a table, as the gates and the record need it; within what `gpupif.config` says.

    The table is scored, in memory where it fits, else on disk, and its classes are looked at where there are
    quasi-identifiers. All that gates ask of the scores is found while they are made.

    table: a path, or what `gpupif.score_files` takes in place of one. columns: of it, all. scores_to: the file or
    folder of scores where any are kept. Raises what `gpupif.score_files` and `gpupif.risk` raise.
    """
    from ...scoring.files import score_file

    arguments = score_arguments(settings, [column.name for column in columns], resolve)
    options = _output_options(settings, gates, scores_to)
    scores = score_file(table, arguments, options).scores
    risk = _risk(table, settings, resolve)
    return Findings(scores.rows, columns, scores, risk, options.questions, settings.input.row_key)


def score_arguments(settings: Settings, names: Sequence[str], resolve: Resolve) -> Arguments:
    """What is asked of the scores of a table with columns `names`; raises InputError."""
    from ...attack.arguments import Arguments

    score, used = settings.score, _used(settings.score, names)
    # Those of columns that are sensitive alone are for the classes.
    apart = [column for column in score.distances if column in used or column not in settings.risk.sensitive]
    return Arguments.of(
        score.measures,
        score.columns,
        known=_known(score.known),
        attackers=None if score.attackers is None else {name: _known(one) for name, one in score.attackers.items()},
        priors=_file(score.priors, resolve),
        accuracies=_file(score.accuracies, resolve),
        distances=_distances(score, apart, resolve),
        weights=score.weights,
        population=_population(score, resolve),
        missing=score.missing,
        dtype=score.dtype,
    )


def _output_options(
    settings: Settings, gates: Sequence[Gate], scores_to: str | os.PathLike[str] | None
) -> OutputOptions:
    from ...out_of_core.options import OutputOptions
    from ...results.selection import Selection

    kept, questions = settings.keep, questions_of(gates)
    if kept.scores == "none":
        options = OutputOptions.from_arguments(None, summary_only=True)
    else:
        selection = Selection.of(kept.where) if kept.scores == "cells" else None
        options = OutputOptions.from_arguments(scores_to, selection=selection)
    return replace(options, questions=questions)


def _risk(table: Any, settings: Settings, resolve: Resolve) -> DisclosureRisk | None:
    from ...disclosure.risk import risk

    asked, score = settings.risk, settings.score
    if not asked.quasi_identifiers:
        return None
    return risk(
        table,
        asked.quasi_identifiers,
        asked.sensitive or None,
        l=asked.l,
        distance=_distances(score, asked.sensitive, resolve),
        k=asked.k,
        threshold=asked.threshold,
        # They hold values of the table, and take a pass of their own.
        groups=10 if settings.run.show_values else 0,
        population=_population(score, resolve),
        weights=score.weights,
        missing=score.missing,
    )


def _known(known: Known | None) -> Any:
    """What an attacker knows, as `gpupif.score` takes it."""
    from ...attack.any_known import AnyKnown

    if not isinstance(known, AnyKnownSettings):
        return known
    return AnyKnown(known.any, among=known.among, subsets=known.subsets, seed=known.seed or 0)


def _used(score: ScoreSettings, names: Sequence[str]) -> list[str]:
    """The columns that are scored or known."""
    several = [score.known] if score.attackers is None else list(score.attackers.values())
    used = list(names if score.columns is None else score.columns)
    for known in several:
        used += (known.among if isinstance(known, AnyKnownSettings) else known if isinstance(known, list) else []) or []
    return [name for name in dict.fromkeys(used) if name != score.weights]


def _distances(score: ScoreSettings, columns: Sequence[str], resolve: Resolve) -> Mapping[str, Any] | None:
    """The distances of some columns, which are the same for scores and classes."""
    from ...attack.hierarchy_files import names_file

    found = {
        column: str(resolve(what)) if isinstance(what, str) and names_file(what) else what
        for column, what in score.distances.items()
        if column in columns
    }
    return found or None


def _file(path: str | None, resolve: Resolve) -> str | None:
    return None if path is None else str(resolve(path))


def _population(score: ScoreSettings, resolve: Resolve) -> Any:
    from ...attack.population import Population

    path = _file(score.population, resolve)
    return None if path is None else Population(path, score.population_lacks)
