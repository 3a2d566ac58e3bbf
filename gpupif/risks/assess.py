"""A table read, its equivalence classes found and the extremes of measures over them, whatever is asked of them."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gpupif.columns import Column
from gpupif.device import choose_engine
from gpupif.encode import encode_table
from gpupif.engines.workers import Workers
from gpupif.errors import InputError, NearlyUniqueWarning, warn
from gpupif.frames import Frame
from gpupif.job import UNIQUE_ROWS, UNIQUE_SHARE, Question
from gpupif.measures import resolve_measures
from gpupif.opening import open_table
from gpupif.progress import Reporter, announce_compilation

from .asked import Asked
from .models import MODELS

if TYPE_CHECKING:
    import numpy.typing as npt

    from gpupif.engines.base import Engine, EngineResult, Job
    from gpupif.information import Sizes

# Takes the place of a sensitive attribute where there is none: a column with the same value in all rows.
NONE = object()
# The cell measure whose highest is r_1 / (r_1 + ... + r_m), recursive diversity for l = 1.
FIRST_OF_ALL = "posterior"


@dataclass(frozen=True)
class Assessed:
    """What was found.

    columns: those asked for, as codes. sizes: of the equivalence classes, but those of one row. values: by disclosure
    measure and sensitive attribute. l_values: l of recursive (c,l)-diversity, 0 where not asked for.
    """

    asked: Asked
    rows: int
    columns: Sequence[Column]
    sizes: Sizes
    values: Mapping[str, Mapping[Hashable, float]]
    l_values: int
    device: str
    seconds: Mapping[str, float]

    def worst(self, model: str) -> float:
        """The worst value of a disclosure measure, over the attributes."""
        return MODELS[model].worst(self.values[model].values())


def assess(table: Any, asked: Asked) -> Assessed:
    """Find what is asked of a table; raises InputError, TableReadError, DeviceError."""
    engine = choose_engine(asked.device)
    with Reporter(asked.progress) as report, announce_compilation(quiet=asked.progress is False):
        started = time.perf_counter()
        frame = open_table(table, asked.pick, engine.frames, asked.sep)
        asked.check(frame.names)
        with frame.active():
            columns = encode(frame, asked, report)
            _check_columns(columns, frame.rows, asked)
            job = _job(columns, frame, asked)
        coded = time.perf_counter()
        report.stage("score", frame.rows * len(job.targets), "cells")
        result = engine.score(job, report)
        # Without sampling weights they are kept by size.
        sizes = cast("Sizes", result.cohorts[0])
        l_values = _check_l(asked, sizes, result)
        found = dict(result.extremes)
        for name in [model.measure(l_values) for model in asked.models if model.of_l and asked.l_values is None]:
            found[name] = found[FIRST_OF_ALL] if l_values == 1 else _again(engine, job, name, report)
    seconds = {"read and encode": coded - started, "score": time.perf_counter() - coded}
    values = {
        model.name: {
            name: model.finish(float(extremes[int(model.highest)]), job.axes[target] if job.axes is not None else None)
            for name, target, extremes in zip(
                asked.sensitive or [NONE], job.targets, found[model.measure(l_values)], strict=True
            )
        }
        for model in asked.models
    }
    return Assessed(asked, frame.rows, columns, sizes, values, l_values, engine.device, seconds)


def encode(frame: Frame, asked: Asked, report: Reporter) -> list[Column]:
    """The columns that are needed as codes."""
    report.stage("encode", len(asked.columns), "columns")
    arrays = [frame.column(frame.names.index(name)) for name in asked.columns]
    with Workers() as workers:
        return list(encode_table(asked.columns, arrays, frame.rows, asked.missing, workers, report.advance).columns)


def _check_columns(columns: Sequence[Column], rows: int, asked: Asked) -> None:
    """Raise InputError for a sensitive attribute with one value or fewer than l; warn of nearly unique columns."""
    known = len(asked.quasi_identifiers)
    for column in columns[known:]:
        if column.cardinality == 1:
            raise InputError(
                f"sensitive: column {column.name!r}: expected at least two different values, got "
                f"{column.values()[0]!r} in all rows, so there is nothing to learn. Leave it out."
            )
        if asked.l_values is not None and asked.l_values > column.cardinality:
            raise InputError(
                f"l: expected at most {column.cardinality:,}, the different values of column {column.name!r}; "
                f"got {asked.l_values:,}."
            )
    for column in columns[:known]:
        if rows >= UNIQUE_ROWS and column.cardinality >= UNIQUE_SHARE * rows:
            warn(
                f"quasi_identifiers: column {column.name!r}: {column.cardinality:,} different values in {rows:,} rows, "
                "so nearly every class is a single row. Leave it out (an identifier), or bin it (a measurement).",
                NearlyUniqueWarning,
            )


def _job(columns: Sequence[Column], frame: Frame, asked: Asked) -> Job:
    """What an engine is to do: the extremes of the measures, no scores of rows."""
    measures = [model.measure(asked.l_values or 0) for model in asked.models if not model.of_l or asked.l_values]
    if any(model.of_l for model in asked.models) and asked.l_values is None:
        measures += [MODELS["distinct_l"].cell, FIRST_OF_ALL]
    targets = asked.sensitive
    if not targets:
        targets, rows = [NONE], frame.rows
        columns = [*columns, Column(NONE, np.zeros(rows, np.uint8), np.array([rows]), np.zeros(1, np.uint8), False)]
    question = Question(
        targets=targets,
        known=asked.quasi_identifiers,
        used=[column.name for column in columns],
        priors={},
        accuracies={},
        distances=asked.distances(),
        missing=asked.missing,
        measures=resolve_measures(measures),
        dtype="float64",
    )
    place = {"cudf": "device", "file": "either"}.get(frame.kind, "host")
    try:
        job, _ = question.job(columns, frame.rows, place, lambda *_: None)
    except InputError as error:
        raise InputError(str(error).replace("distances:", "distance:", 1)) from None
    return replace(job, extremes_only=True)


def _check_l(asked: Asked, sizes: Sizes, result: EngineResult) -> int:
    """L of recursive (c,l)-diversity, 0 where it is not asked for; raises InputError for one that no class can have."""
    if not any(model.of_l for model in asked.models):
        return 0
    if asked.l_values is None:
        return int(result.extremes[MODELS["distinct_l"].cell][:, 0].min())
    largest = int(sizes.sizes.max()) if len(sizes.sizes) else 1
    if asked.l_values > largest:
        raise InputError(f"l: expected at most {largest:,}, the rows of the largest class; got {asked.l_values:,}.")
    return asked.l_values


def _again(engine: Engine, job: Job, name: str, report: Reporter) -> npt.NDArray[np.float64]:
    """The extremes of a measure that was not known to be needed before."""
    report.stage("score", job.rows * len(job.targets), "cells")
    return engine.score(replace(job, measures=resolve_measures(name), axes=None), report).extremes[name]
