"""The findings of a run: the table measured as a configuration asks, for gates and the record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...attack.arguments import Arguments
from ...attack.attackers import AnyKnown
from ...attack.hierarchy_files import names_file
from ...attack.population import Population
from ...io.read import open_source
from ...out_of_core.output_options import OutputOptions
from ...results.cell_selection import Selection
from ...results.score_distribution import ColumnAnswer, ScoreQuestions
from ..configuration.settings import AnyKnownSettings, Known, ScoreSettings, Settings, columns_known
from ..run_outcome import ColumnProfile

if TYPE_CHECKING:
    from ...disclosure.risk import DisclosureRisk
    from ...results.scores import Scores

# The keys of [risk] whose columns a treatment may drop.
CLASS_COLUMNS = ("quasi_identifiers", "sensitive")
# A function that turns a path of the configuration into one that can be opened.
Resolve = Callable[[str], Path]


@dataclass(frozen=True)
class Findings:
    """The findings of a table.

    rows: of it. columns: all of its columns. scores: against all attackers; None where nothing was scored. risk: None
    without quasi-identifiers. questions: what gates ask of the scores. row_key: columns that tell rows apart.
    """

    rows: int
    columns: Sequence[ColumnProfile] = ()
    scores: Scores | None = None
    risk: DisclosureRisk | None = None
    questions: ScoreQuestions | None = None
    row_key: Sequence[str] = ()
    _answers: dict[tuple[str | None, str], dict[str, ColumnAnswer]] = field(default_factory=dict, repr=False)
    _pif: dict[str | None, dict[float, float]] = field(default_factory=dict, repr=False)

    @property
    def attackers(self) -> Sequence[str | None]:
        """The names of the attackers; None alone if there is one without a name."""
        return (None,) if self.scores is None or not self.scores.attackers else self.scores.attackers

    def score_answers(self, measure: str, attacker: str | None) -> Mapping[str, ColumnAnswer]:
        """Return the answers about a measure's scores against an attacker, by scored column; found once."""
        if (attacker, measure) not in self._answers:
            assert self.questions is not None
            scores = self._against(attacker)
            found = scores.column_answers(measure, self.questions.of_columns[measure])
            self._answers[attacker, measure] = dict(zip(map(str, scores.columns), found, strict=True))
        return self._answers[attacker, measure]

    def pif(self, percentile: float, attacker: str | None) -> float:
        """Return a PIF in bits against an attacker; all PIFs that gates ask for are found at once."""
        if attacker not in self._pif:
            assert self.questions is not None
            wanted = self.questions.of_rows
            self._pif[attacker] = dict(zip(wanted, self._against(attacker).pif(wanted), strict=True))
        return self._pif[attacker][percentile]

    def to_record(self, show_values: bool) -> dict[str, dict[str, Any] | None]:
        """Return `summary` and `risk` of a `RunOutcome`, each None without scores or classes.

        show_values: whether to include the riskiest cells and classes, which hold values of the table.
        """
        summary = None if self.scores is None else self.scores.summary().to_dict()
        risk = None if self.risk is None else self.risk.to_dict()
        if not show_values:
            for document in _with_cells(summary):
                del document["top"]
            for key in ("groups", "present", "worst_classes"):
                if risk is not None:
                    del risk[key]
        return {"summary": summary, "risk": risk}

    def _against(self, attacker: str | None) -> Scores:
        assert self.scores is not None
        return self.scores if attacker is None else self.scores.against(attacker)


def _with_cells(summary: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """Yield the documents within a summary that list cells: itself or those of attackers, and those of mean scores."""
    if summary is None:
        return
    for document in summary["attackers"].values() if "attackers" in summary else [summary]:
        yield document
        if "mean" in document:
            yield document["mean"]


def measure_table(
    table: Any,
    settings: Settings,
    questions: ScoreQuestions,
    columns: Sequence[ColumnProfile],
    resolve: Resolve,
    scores_to: str | os.PathLike[str] | None = None,
) -> Findings:
    """Score a table and look at its equivalence classes, and return the findings; within the limits of `gpupif.config`.

    The table is scored in memory if it fits, else on disk. Its classes are looked at if there are quasi-identifiers.

    table: a path, or an object that `gpupif.score_files` takes in place of one. questions: of the gates; they are
    answered while the scores are made. columns: all columns of the table. scores_to: the file of scores, if any are
    kept. Raises as `gpupif.score_files` and `gpupif.risk`.
    """
    from ...scoring.files import score_file

    keep = settings.keep
    if keep.scores == "none":
        options = OutputOptions.from_arguments(None, summary_only=True)
    else:
        selection = Selection.from_user(keep.where) if keep.scores == "cells" else None
        options = OutputOptions.from_arguments(scores_to, selection=selection)
    arguments = score_arguments(settings, [column.name for column in columns], resolve)
    scores = score_file(table, arguments, replace(options, questions=questions)).scores
    risk = _risk(table, settings, resolve)
    return Findings(scores.rows, columns, scores, risk, questions, settings.input.row_key)


def measure_treated(table: Path, settings: Settings, resolve: Resolve) -> Findings | None:
    """Return the classes of a treated table, over the quasi-identifiers that are left in it; None if none is left."""
    names = open_source(table).names
    left = {key: [name for name in getattr(settings.risk, key) if name in names] for key in CLASS_COLUMNS}
    if not left["quasi_identifiers"]:
        return None
    risk = _risk(table, settings.model_copy(update={"risk": settings.risk.model_copy(update=left)}), resolve)
    return Findings(0 if risk is None else risk.rows, risk=risk)


def score_arguments(settings: Settings, names: Sequence[str], resolve: Resolve) -> Arguments:
    """Return what is asked of the scores of a table with columns `names`. Raises InputError."""
    score = settings.score
    attackers = [score.known] if score.attackers is None else list(score.attackers.values())
    known = {column for attacker in attackers for column in columns_known(attacker)}
    used = (known | set(names if score.columns is None else score.columns)) - {score.weights}
    # The distances of columns that are only sensitive are for the classes.
    apart = [column for column in score.distances if column in used or column not in settings.risk.sensitive]
    return Arguments.from_user(
        score.measures,
        score.columns,
        known=_known(score.known),
        attackers=None
        if score.attackers is None
        else {name: _known(attacker) for name, attacker in score.attackers.items()},
        priors=_file(score.priors, resolve),
        accuracies=_file(score.accuracies, resolve),
        distances=_distances(score, apart, resolve),
        weights=score.weights,
        population=population_of(score, resolve),
        missing=score.missing,
        dtype=score.dtype,
    )


def _risk(table: Any, settings: Settings, resolve: Resolve) -> DisclosureRisk | None:
    from ...disclosure.attack_game import Game
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
        # The riskiest classes hold values of the table, and take a pass of their own.
        groups=10 if settings.run.show_values else 0,
        population=population_of(score, resolve),
        sampling_fraction=asked.sampling_fraction,
        population_size=asked.population_size,
        game=None if asked.game is None else Game(**asked.game.model_dump()),
        weights=score.weights,
        household=asked.household,
        max_global_risk=asked.max_global_risk,
        missing=score.missing,
    )


def _known(known: Known | None) -> Any:
    """Return the known columns of an attacker as `gpupif.score` takes them."""
    if not isinstance(known, AnyKnownSettings):
        return known
    return AnyKnown(known.any, among=known.among, subsets=known.subsets, seed=known.seed or 0)


def _distances(score: ScoreSettings, columns: Sequence[str], resolve: Resolve) -> Mapping[str, Any] | None:
    """Return the distances of some columns, which are the same for scores and classes; None without any."""
    found = {
        column: str(resolve(what)) if isinstance(what, str) and names_file(what) else what
        for column, what in score.distances.items()
        if column in columns
    }
    return found or None


def _file(path: str | None, resolve: Resolve) -> str | None:
    return None if path is None else str(resolve(path))


def population_of(score: ScoreSettings, resolve: Resolve) -> Population | None:
    """Return the population of a configuration, None without one."""
    path = _file(score.population, resolve)
    return None if path is None else Population(path, score.population_lacks)
