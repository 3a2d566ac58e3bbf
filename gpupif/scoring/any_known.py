"""`score` against any attacker who knows so many columns, in memory: the worst and the mean over all of them."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..attack.known_subsets import AnyKnown, ask_any, subsets_of
from ..attack.request import needed_columns
from ..engines.known_subsets import score_sets
from ..errors import InputError
from ..frames.open import open_table
from ..results.known_subsets import AnyKnownScores
from ..utils.progress import Reporter, announce_compilation
from .in_memory import by_stage, encode_frame

if TYPE_CHECKING:
    from ..engines.base import Engine
    from ..measures import Measure


def refuse_with_any_known(**arguments: Any) -> None:
    """Raise InputError for what does not go with a number of known columns, where it is given."""
    given = next((name for name, value in arguments.items() if value is not None and value is not False), None)
    if given is not None:
        raise InputError(
            f"{given}: does not go with a number of columns that the attacker knows. Leave it out, or name the "
            "columns that are known."
        )


def score_any(
    table: Any,
    measures: tuple[Measure, ...],
    asked: AnyKnown,
    columns: Sequence[Hashable] | None,
    priors: Mapping[Any, Mapping[Any, float]] | None,
    accuracies: Mapping[Any, float] | None,
    distances: Mapping[Any, Any] | None,
    missing: str,
    engine: Engine,
    dtype: str,
    progress: bool | None,
) -> AnyKnownScores:
    """Score a table in memory; see `gpupif.score` with a number for ``known=``."""
    with Reporter(progress) as report, announce_compilation(quiet=progress is False):
        needed = needed_columns(columns, asked.among, priors, accuracies, distances=distances)
        frame = open_table(table, asked.picking(needed), engine.frames)
        question = ask_any(
            *(asked, frame.names, frame.index_names),
            measures=measures,
            columns=columns,
            priors=priors,
            accuracies=accuracies,
            distances=distances,
            missing=missing,
            dtype=dtype,
            orders=frame.orders(),
        )
        opened = time.perf_counter()
        with frame.active():
            encoded, _ = encode_frame(frame, question, report)
            job, prior_of = question.job(encoded.columns, frame.rows, frame.scores_on)
        subsets = subsets_of(question, frame.rows)
        coded = time.perf_counter()
        report.stage("score", frame.rows * sum(subsets.scored.values()), "cells")
        found = score_sets(engine, job, subsets.sets, report)
        done = time.perf_counter()
    seconds = by_stage(frame, coded - opened, done - coded)
    return AnyKnownScores(frame, encoded, job, found, subsets, question.targets, prior_of, engine.device, seconds)
