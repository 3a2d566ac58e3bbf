"""The context that all steps of a run from files to files share."""

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
    """The context of a run.

    engine: Engine. The engine that scores.
    store: Store. The checkpoint.
    budget: Budget. The memory of the run.
    report: Reporter. It shows the progress.
    timed: function called at the end of a stage with its name and the time at which it began.
    questions: ScoreQuestions. The questions about scores besides the summary.
    """

    engine: Engine
    store: Store
    budget: Budget
    report: Reporter
    timed: Callable[[str, float], None]
    questions: ScoreQuestions = ScoreQuestions()

    def counted(self, job: Job) -> list[str]:
        """Return the measures whose distinct scores in each partition have to be counted."""
        asked = {"cig", *self.questions.of_columns}
        return list(dict.fromkeys(computed_measure(measure) for measure in job.measures if measure.name in asked))
