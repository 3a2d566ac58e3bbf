"""The context of a run from files to files, which all of its steps share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..engines.base import Engine, Job
from ..engines.partition_plan import computed_measure
from ..io.checkpoints import Store
from ..results.score_distribution import ScoreQuestions
from ..utils.progress import Reporter
from .memory_budget import Budget


class RunContext(NamedTuple):
    """Engine, checkpoint store, memory budget and progress reporter that all steps of a run share.

    timed: is called at the end of a stage with its name and when it began. questions: what is asked beside summaries.
    """

    engine: Engine
    store: Store
    budget: Budget
    report: Reporter
    timed: Callable[[str, float], None]
    questions: ScoreQuestions = ScoreQuestions()

    def counted(self, job: Job) -> list[str]:
        """Return the measures of partitions of which it has to be known which scores occur, and how often."""
        asked = {"cig", *self.questions.of_columns}
        return list(dict.fromkeys(computed_measure(measure) for measure in job.measures if measure.name in asked))
