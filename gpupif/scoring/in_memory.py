"""The scoring of a table in memory: columns are encoded once, then the engine scores them for each attacker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..attack.population import match_population
from ..attack.request import ScoreRequest
from ..attack.weights import TableWeights, weigh_table
from ..encoding.column import EncodedTable
from ..encoding.encode import encode_table
from ..engines.attacker_scoring import score_attacker
from ..engines.base import AnyKnownResult, Engine
from ..engines.distinct_table import DistinctTable
from ..errors import WarnOnce
from ..frames.base import Frame
from ..measures import POPULATION_SIZE
from ..results.backing import AttackerOutcome, RunDescription
from ..results.in_memory import MemoryBacking, TableExplainer
from ..results.provenance import describe_frame, describe_request
from ..results.score_outputs import ScoredAttacker, of_each_fold
from ..results.scores import Scores
from ..rows.threads import Workers
from ..utils.progress import Reporter

if TYPE_CHECKING:
    import numpy.typing as npt


def score_frame(
    frame: Frame, request: ScoreRequest, engine: Engine, report: Reporter, population: Frame | None, lacks: str
) -> Scores:
    """Return the scores of a table in memory.

    population: the table of the population, if any. lacks: what to do with rows that it lacks, see `Population`.
    """
    opened = time.perf_counter()
    with frame.active():
        encoded, weighted = encode_frame(frame, request, report)
    people = None if population is None else match_population(population, encoded.columns, request.missing, lacks)
    coded = time.perf_counter()
    requests = request.by_attacker()
    subsets = {name: own_request.subsets(frame.rows) for name, own_request in requests.items()}
    cells = sum(len(request.scored_columns) if own is None else sum(own.scored.values()) for own in subsets.values())
    report.stage("score", frame.rows * cells, "cells")
    on_warning, through_host = WarnOnce(), ""
    distinct = None
    if len(requests) > 1 and engine.shares_distinct_rows:
        codes, sizes = [column.codes for column in encoded.columns], [len(column.counts) for column in encoded.columns]
        distinct = DistinctTable.from_codes(codes, sizes, None if weighted is None else weighted.times)
    values: dict[str, Any] = {}
    outcomes: list[AttackerOutcome] = []
    for name, own_request in requests.items():
        used = [column for column in encoded.columns if column.name in own_request.used]
        with frame.active():
            priors = None if people is None else people.priors(used)
            job, prior_of = own_request.job(used, frame.rows, frame.scores_on, on_warning, weighted, priors)
        attacker = ScoredAttacker(name, tuple(own_request.known), subsets[name])
        sets = None if attacker.subsets is None else attacker.subsets.sets
        if distinct is None:
            result = score_attacker(engine, job, sets, report)
        else:
            places = [request.used.index(name) for name in own_request.used]
            result = distinct.score(engine, job, places, sets, report)
        if people is not None:
            for fold, rows in people.sizes(own_request, attacker.subsets, engine).items():
                typed = rows.astype(job.dtype, copy=False) if rows.dtype.kind == "f" else rows
                result.by_fold()[fold][POPULATION_SIZE.name] = _beside_scores(typed, frame, engine)
        weights = result.weights if isinstance(result, AnyKnownResult) else ()
        explainer = TableExplainer(frame, used, job, attacker, weights)
        outcomes.append(
            AttackerOutcome(attacker, of_each_fold(result.weights_by_fold()), result.distinct_rows, explainer)
        )
        values |= attacker.named(result.by_fold())
        through_host = through_host or result.through_host
    about = RunDescription(
        columns=request.scored_columns,
        measures=request.cell_measures,
        dtype=request.dtype,
        device=engine.device,
        seconds=by_stage(frame, coded - opened, time.perf_counter() - coded),
        through_host=through_host,
        request=describe_request(
            request, describe_frame(frame), None if population is None else describe_frame(population), lacks
        ),
    )
    return Scores(MemoryBacking(frame, about, outcomes, values, prior_of))


def _beside_scores(sizes: npt.NDArray[Any], frame: Frame, engine: Engine) -> Any:
    """Return sizes that were counted on the host, on the frame's device if the scores are there."""
    library = frame.device_frames() if frame.scores_on == "device" and engine.device != "cpu" else None
    if library is None:
        return sizes
    with frame.active():
        return library.xp.asarray(sizes)


def by_stage(frame: Frame, encode: float, score: float) -> dict[str, float]:
    """Return the seconds of each stage. Reading and encoding are a single stage for a frame that `reads_late`."""
    if not frame.from_file:
        return {"encode": encode, "score": score}
    if frame.reads_late:
        return {"read and encode": frame.opened_in + encode, "score": score}
    return {"read": frame.opened_in, "encode": encode, "score": score}


def encode_frame(frame: Frame, request: ScoreRequest, report: Reporter) -> tuple[EncodedTable, TableWeights | None]:
    """Return the scored and the known columns as codes, and the sampling weights; None without weights."""
    report.stage("encode", len(request.read), "columns")
    arrays = [frame.column(frame.names.index(name)) for name in request.read]
    with Workers() as workers:
        encoded = encode_table(request.read, arrays, frame.rows, request.missing, workers, report.advance)
        if request.weights is None:
            return encoded, None
        column = encoded.columns[request.read.index(request.weights)]
        used = encoded.columns[: len(request.used)]
        return EncodedTable(used, frame.rows), weigh_table(used, column, workers)
