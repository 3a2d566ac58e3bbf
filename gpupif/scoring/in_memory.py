"""A table in memory scored: its columns as codes, then the engine, once for each attacker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attack.population import match_population
from ..attack.request import Question
from ..attack.weights import Weighted, read_weights, weigh
from ..encoding.column import EncodedTable
from ..encoding.encode import encode_table
from ..engines.base import AnyResult
from ..engines.deduplicated import Collapsed
from ..engines.known_subsets import score_attacker
from ..errors import WarnOnce
from ..frames.base import Frame
from ..measures import POPULATION_SIZE
from ..results.attackers import AttackerScores
from ..results.known_subsets import AnyKnownScores
from ..results.scores import Scores
from ..rows.threads import Workers
from ..utils.arrays import on_host
from ..utils.progress import Reporter

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..attack.known_subsets import KnownSubsets
    from ..engines.base import Engine


def score_frame(
    frame: Frame, question: Question, engine: Engine, report: Reporter, population: Frame | None, lacks: str
) -> Scores | AttackerScores:
    """Scores of a table in memory."""
    opened = time.perf_counter()
    with frame.active():
        encoded, weighted = encode_frame(frame, question, report)
    people = None if population is None else match_population(population, encoded.columns, question.missing, lacks)
    coded = time.perf_counter()
    asked = question.each()
    subsets = {name: one.subsets(frame.rows) for name, one in asked.items()}
    cells = sum(len(question.targets) if one is None else sum(one.scored.values()) for one in subsets.values())
    report.stage("score", frame.rows * cells, "cells")
    on_warning = WarnOnce()
    collapsed = None
    if len(asked) > 1 and engine.device == "cpu":
        codes, sizes = [column.codes for column in encoded.columns], [len(column.counts) for column in encoded.columns]
        collapsed = Collapsed.of(codes, sizes, None if weighted is None else weighted.times)

    def score_one(one: Question, subsets: KnownSubsets | None) -> Scores:
        started = time.perf_counter()
        part = EncodedTable([column for column in encoded.columns if column.name in one.used], encoded.rows)
        with frame.active():
            priors = None if people is None else people.priors(part.columns)
            job, prior_of = one.job(part.columns, frame.rows, frame.scores_on, on_warning, weighted, priors)
        sets = None if subsets is None else subsets.sets
        if collapsed is None:
            result = score_attacker(engine, job, sets, report)
        else:
            result = collapsed.score(engine, job, [question.used.index(name) for name in one.used], sets, report)
        if people is not None:
            for fold, sizes in people.sizes(one, subsets, engine).items():
                kept = sizes.astype(job.dtype, copy=False) if sizes.dtype.kind == "f" else sizes
                result.by_fold()[fold][POPULATION_SIZE.name] = _where_scores_lie(kept, frame, engine)
        seconds = by_stage(frame, coded - opened, time.perf_counter() - started)
        rest = (one.targets, prior_of, engine.device, seconds)
        if isinstance(result, AnyResult):
            assert subsets is not None
            return AnyKnownScores(frame, part, job, result, subsets, *rest)
        return Scores(frame, part, job, result, *rest)

    scores = {name: score_one(one, subsets[name]) for name, one in asked.items()}
    if question.attackers is None:
        return scores[None]
    known = {name: one.known for name, one in question.attackers.items()}
    return AttackerScores({str(name): one for name, one in scores.items()}, known)


def _where_scores_lie(sizes: npt.NDArray[Any], frame: Frame, engine: Engine) -> Any:
    """Sizes that were counted on the host, on the frame's device where scores lie there."""
    library = frame.device_frames() if frame.scores_on == "device" and engine.device != "cpu" else None
    if library is None:
        return sizes
    with frame.active():
        return library.xp.asarray(sizes)


def by_stage(frame: Frame, encode: float, score: float) -> dict[str, float]:
    """Seconds by stage; of a file that is read where it is encoded, for both together."""
    if not frame.from_file:
        return {"encode": encode, "score": score}
    if frame.reads_late:
        return {"read and encode": frame.opened_in + encode, "score": score}
    return {"read": frame.opened_in, "encode": encode, "score": score}


def encode_frame(frame: Frame, question: Question, report: Reporter) -> tuple[EncodedTable, Weighted | None]:
    """The columns that are scored or known as codes, and how many people each row stands for."""
    report.stage("encode", len(question.read), "columns")
    arrays = [frame.column(frame.names.index(name)) for name in question.read]
    with Workers() as workers:
        encoded = encode_table(question.read, arrays, frame.rows, question.missing, workers, report.advance)
        if question.weights is None:
            return encoded, None
        column = encoded.columns[question.read.index(question.weights)]
        used = encoded.columns[: len(question.used)]
        codes = on_host(column.codes)
        units = read_weights(column, lambda code: int(np.argmax(codes == code)))
        return EncodedTable(used, frame.rows), weigh(used, codes, units, workers)
