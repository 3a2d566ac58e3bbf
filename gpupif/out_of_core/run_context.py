"""The context that all steps of a run from files to files share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ..engines.base import Engine, Job
from ..engines.partition_plan import computed_measure
from ..io.checkpoints import Store
from ..results.score_distribution import ScoreQuestions
from ..utils.progress import Reporter
from .memory_budget import Budget


@dataclass(eq=False)
class RunContext:
    """The context of a run.

    engine: Engine. The engine that scores.
    store: Store. The checkpoint.
    budget: Budget. The memory of the run.
    report: Reporter. It shows the progress.
    questions: ScoreQuestions. The questions about scores besides the summary.
    seconds: dict. The wall time of each stage.
    spilled: int. The most bytes that spill files took at the end of a stage.
    """

    engine: Engine
    store: Store
    budget: Budget
    report: Reporter
    questions: ScoreQuestions
    seconds: dict[str, float] = field(default_factory=dict)
    spilled: int = 0

    def timed(self, stage: str, started: float) -> None:
        """Add the time since `started` to the time of a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
        self.spilled = max(self.spilled, self.store.size())

    def counted(self, job: Job) -> list[str]:
        """Return the measures whose distinct scores in each partition have to be counted."""
        asked = {"cig", *self.questions.of_columns}
        return list(dict.fromkeys(computed_measure(measure) for measure in job.measures if measure.name in asked))
