"""`score` against any attacker who knows so many columns, in memory: the worst and the mean over all of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..attack.known_subsets import subsets_of
from ..engines.known_subsets import score_sets
from ..results.known_subsets import AnyKnownScores
from .in_memory import by_stage, encode_frame, scores_on

if TYPE_CHECKING:
    from ..attack.request import Question
    from ..engines.base import Engine
    from ..frames.base import Frame
    from ..utils.progress import Reporter


def score_any(frame: Frame, question: Question, engine: Engine, report: Reporter) -> AnyKnownScores:
    """Scores of a table in memory; see `gpupif.score` with a number for ``known=``."""
    opened = time.perf_counter()
    with frame.active():
        encoded, _ = encode_frame(frame, question, report)
        job, prior_of = question.job(encoded.columns, frame.rows, scores_on(frame))
    subsets = subsets_of(question, frame.rows)
    coded = time.perf_counter()
    report.stage("score", frame.rows * sum(subsets.scored.values()), "cells")
    found = score_sets(engine, job, subsets.sets, report)
    done = time.perf_counter()
    seconds = by_stage(frame, coded - opened, done - coded)
    return AnyKnownScores(frame, encoded, job, found, subsets, question.targets, prior_of, engine.device, seconds)
