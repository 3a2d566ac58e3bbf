"""What a run found of a table, as gates and the record need it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..outcome import ColumnProfile

if TYPE_CHECKING:
    from ...disclosure.risk import DisclosureRisk
    from ...results.score_distribution import ColumnAnswer, ScoreQuestions
    from ...results.scores import Scores


@dataclass(frozen=True)
class Findings:
    """What was found of a table.

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
        """Names of those that the scores are against; None alone where there is one without a name."""
        return (None,) if self.scores is None or not self.scores.attackers else self.scores.attackers

    def score_answers(self, measure: str, attacker: str | None) -> Mapping[str, ColumnAnswer]:
        """By scored column what gates ask of a measure's scores against an attacker; found once."""
        if (attacker, measure) not in self._answers:
            assert self.questions is not None
            scores = self._against(attacker)
            found = scores.column_answers(measure, self.questions.of_columns[measure])
            self._answers[attacker, measure] = dict(zip(map(str, scores.columns), found, strict=True))
        return self._answers[attacker, measure]

    def pif(self, percentile: float, attacker: str | None) -> float:
        """PIF against an attacker; those that gates ask for are found at once."""
        if attacker not in self._pif:
            assert self.questions is not None
            wanted = self.questions.of_rows
            self._pif[attacker] = dict(zip(wanted, self._against(attacker).pif(wanted), strict=True))
        return self._pif[attacker][percentile]

    def to_record(self, show_values: bool) -> dict[str, dict[str, Any] | None]:
        """`summary` and `risk` of a `RunOutcome`, of the scores and of the classes, each None where there is none.

        show_values: with the riskiest cells and classes, which hold values of the table.
        """
        summary = None if self.scores is None else self.scores.summary().to_dict()
        risk = None if self.risk is None else self.risk.to_dict()
        if not show_values:
            for document in _with_cells(summary):
                del document["top"]
            for key in ("groups", "present"):
                if risk is not None:
                    del risk[key]
        return {"summary": summary, "risk": risk}

    def _against(self, attacker: str | None) -> Scores:
        assert self.scores is not None
        return self.scores if attacker is None else self.scores.against(attacker)


def _with_cells(summary: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The documents in that of a summary which list cells: its own, or those of attackers, and of mean scores."""
    if summary is None:
        return
    for document in summary["attackers"].values() if "attackers" in summary else [summary]:
        yield document
        if "mean" in document:
            yield document["mean"]
