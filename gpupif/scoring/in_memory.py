"""A table in memory scored: its columns as codes, then the engine, once for each attacker."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..attack.population import match_population
from ..attack.request import Question
from ..attack.weights import Weighted, read_weights, weigh
from ..encoding.column import EncodedTable
from ..encoding.encode import encode_table
from ..engines.deduplicated import Collapsed
from ..engines.zero_weights import score_job
from ..errors import Teller
from ..frames.base import Frame
from ..measures import POPULATION_SIZE
from ..results.attackers import AttackerScores
from ..results.scores import Scores
from ..rows.threads import Workers
from ..utils.arrays import on_host
from ..utils.progress import Reporter

if TYPE_CHECKING:
    from ..engines.base import Engine, EngineResult


def score_frame(
    frame: Frame, question: Question, engine: Engine, report: Reporter, population: Frame | None, lacks: str
) -> Scores | AttackerScores:
    """Scores of a table in memory."""
    opened = time.perf_counter()
    with frame.active():
        encoded, weighted = encode_frame(frame, question, report)
    people = None if population is None else match_population(population, encoded.columns, question.missing, lacks)
    coded = time.perf_counter()
    asked = [question] if question.attackers is None else [question.of(name) for name in question.attackers]
    report.stage("score", frame.rows * len(question.targets) * len(asked), "cells")
    tell = Teller()
    collapsed = None
    if len(asked) > 1 and engine.device == "cpu":
        codes, sizes = [column.codes for column in encoded.columns], [len(column.counts) for column in encoded.columns]
        collapsed = Collapsed.of(codes, sizes, None if weighted is None else weighted.times)

    def score_one(one: Question) -> Scores:
        started = time.perf_counter()
        part = EncodedTable([column for column in encoded.columns if column.name in one.used], encoded.rows)
        with frame.active():
            priors = None if people is None else people.priors(part.columns)
            job, prior_of = one.job(part.columns, frame.rows, frame.scores_on, tell, weighted, priors)
        if collapsed is None:
            result = score_job(engine, job, report)
        else:
            result = collapsed.score(engine, job, [question.used.index(name) for name in one.used], report)
        if people is not None:
            sizes = {POPULATION_SIZE.name: people.sizes(one, engine)}
            result = replace(result, values=result.values | sizes)
        if frame.scores_on == "device" and engine.device != "cpu":
            result = _on_device(result, frame)
        seconds = by_stage(frame, coded - opened, time.perf_counter() - started)
        return Scores(frame, part, job, result, one.targets, prior_of, engine.device, seconds)

    scores = [score_one(one) for one in asked]
    if question.attackers is None:
        return scores[0]
    return AttackerScores(dict(zip(question.attackers, scores, strict=True)), question.attackers)


def _on_device(result: EngineResult, frame: Frame) -> EngineResult:
    """The result with all scores on the frame's device: some, of rows that stand for nobody, are made on the host."""
    library = frame.device_frames()
    if library is None:
        return result
    with frame.active():
        values = {
            name: scores if hasattr(scores, "get") else library.xp.asarray(scores)
            for name, scores in result.values.items()
        }
    return replace(result, values=values)


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
