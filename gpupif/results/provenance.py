"""What files of scores say of themselves: what was asked of which table, and what the scores come to.

One JSON document, under `KEY` in the metadata of a Parquet or Feather file: version, what was asked, the input, the
attackers with their weights, the summaries, and the prior tables as far as they are small. The files of a folder have
the first of these, and its last file has all of it: a folder holds nothing but score files, which every reader of
folders takes. What is not known when a file is written (summaries, in Feather in streams and on Dask) is found anew in
the scores.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .._version import __version__
from ..attack.known_subsets import AnyKnown, KnownSubsets, choose_subsets
from ..attack.request import ScoreRequest
from ..errors import InputError, TableReadError
from ..frames.base import Frame
from ..io.base import Stamp
from ..io.documents import parse_json
from ..io.formats import FEATHER, read_format
from ..io.score_files import MARK
from ..measures import as_weighted, find_measure
from .base import AttackerOutcome, RunDescription, ScoresDescription
from .figures import ColumnFacts
from .outputs import MEAN, WORST, ScoredAttacker
from .summary import Summary

KEY = b"gpupif.scores"
# Of the document: another one cannot be read.
FORMAT = 1
# The file with all of it in a folder that an older version wrote.
FOLDER_FILE = "_common_metadata"
# Orders and hierarchies of values that take more are named, and left out.
DISTANCE_BYTES = 1 << 16


def describe_request(
    request: ScoreRequest, source: Mapping[str, Any], population: Mapping[str, Any] | None = None, lacks: str = ""
) -> dict[str, Any]:
    """A request as `RunDescription` has it.

    source, population: where the tables came from, see `describe_files`. lacks: of the population, see `Population`.
    """
    distances = {str(name): _plain(distance) for name, distance in request.distances.items()}
    large = [name for name, distance in distances.items() if len(json.dumps(distance)) > DISTANCE_BYTES]
    return {
        "gpupif": __version__,
        "input": dict(source),
        "population": None if population is None else {**population, "lacks": lacks},
        "measures": [measure.name for measure in request.measures],
        "dtype": request.dtype,
        "attackers": {"" if name is None else name: _knows(one) for name, one in request.by_attacker().items()},
        "weights": None if request.weights is None else str(request.weights),
        "missing": request.missing,
        "accuracies": {str(name): float(accuracy) for name, accuracy in request.accuracies.items()},
        "priors_given": [str(name) for name in request.priors],
        "distances": {name: distance for name, distance in distances.items() if name not in large},
        "distances_left_out": large,
        "used": [str(name) for name in request.used],
    }


def _knows(request: ScoreRequest) -> dict[str, Any]:
    """What one attacker knows; any: how many of these, how many subsets of them (None: all), drawn by which seed."""
    asked = request.any_known
    drawn = None if asked is None else {"known": asked.known, "subsets": asked.subsets, "seed": asked.seed}
    return {"known": [str(name) for name in request.known], "any": drawn}


def _plain(value: Any, text: Callable[[Any], str] = str) -> Any:
    """What JSON has: dictionaries, lists, and texts of all else."""
    if isinstance(value, Mapping):
        return {text(key): _plain(one, text) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return [_plain(one, text) for one in value]
    return text(value)


def digest(given: Any) -> str:
    """A short text that is another one for anything else, of what may be large: dictionaries and lists of any kind."""
    # Types tell apart what reads the same: 1 and "1".
    return hashlib.sha256(json.dumps(_plain(given, repr)).encode()).hexdigest()


def describe_files(path: Path, stamps: Mapping[Path, Stamp]) -> dict[str, Any]:
    """Where a table was read from: what named its files, and what tells these from others that take their place."""
    return {
        "path": str(path.resolve()),
        "files": [
            {"path": str(file.resolve()), "bytes": stamp.size, "changed_ns": stamp.changed}
            for file, stamp in stamps.items()
        ],
    }


def describe_frame(frame: Frame) -> dict[str, Any]:
    """Where a table came from: its files, or, of one that was in memory, how large it is."""
    return describe_files(*frame.origin) if frame.origin else {"rows": frame.rows, "columns": len(frame.names)}


def to_metadata(description: ScoresDescription) -> dict[bytes, bytes]:
    """The document, as the metadata of a file has it."""
    about = description.about
    columns: list[dict[str, Any]] = [{"name": str(name)} for name in about.columns]
    for column, fact in zip(columns, description.facts, strict=False):
        column |= fact._asdict()
    document = {
        "format": FORMAT,
        "rows": description.rows,
        "columns": columns,
        "measures": [measure.name for measure in about.measures],
        "dtype": about.dtype,
        "device": about.device,
        "through_host": about.through_host,
        "request": dict(about.request),
        "attackers": [_attacker_to_json(outcome) for outcome in description.outcomes],
        "priors": dict(description.priors),
        "files": list(description.files),
        "cells": None if description.cells is None else dict(description.cells),
    }
    return {MARK: __version__.encode(), KEY: json.dumps(document).encode()}


def in_one_file(description: ScoresDescription) -> ScoresDescription:
    """As much of a description as each file of a folder has: no summaries, no priors, and no lists of files."""
    request = dict(description.about.request)
    for table in ("input", "population"):
        if request[table] and "files" in request[table]:
            request[table] = {**request[table], "files": len(request[table]["files"])}
    outcomes = [replace(outcome, summaries={}) for outcome in description.outcomes]
    about = replace(description.about, request=request)
    return replace(description, about=about, outcomes=outcomes, priors={}, files=())


def read_text(file: Path) -> bytes | None:
    """What a file says of itself, as `to_metadata` put it there; None where it says nothing.

    Raises pyarrow.ArrowException or OSError for a file that cannot be read.
    """
    if read_format(file) is FEATHER:
        with pa.memory_map(str(file)) as source:
            metadata = pa.ipc.open_file(source).schema.metadata
    else:
        metadata = pq.read_metadata(file).metadata
    return (metadata or {}).get(KEY)


def tells_all(file: Path) -> bool:
    """Return whether a file of a folder says what all its files say together: it names them.

    Raises TableReadError where what it says is damaged.
    """
    return bool((_document(file) or {}).get("files"))


def _document(file: Path) -> dict[str, Any] | None:
    text = read_text(file)
    try:
        document = None if text is None else parse_json(text)
        if isinstance(document, dict | None):
            return document
    except ValueError:
        pass
    raise TableReadError(f"{file}: what it says of its scores is damaged. Score the table again.")


def read_description(file: Path) -> ScoresDescription | None:
    """Return what a file says of itself; None where it says nothing. Raises InputError for what another version says.

    Raises TableReadError where that is damaged.
    """
    document = _document(file)
    if document is None:
        return None
    if document["format"] != FORMAT:
        raise InputError(
            f"{file}: another version of gpupif described its scores, in a way that {__version__} cannot read. Open "
            "them with that version, or score the table again."
        )
    request, names = document["request"], [column["name"] for column in document["columns"]]
    measures = [find_measure(name) for name in document["measures"]]
    about = RunDescription(
        columns=names,
        measures=measures if request["weights"] is None else [as_weighted(measure) for measure in measures],
        dtype=document["dtype"],
        device=document["device"],
        seconds={},
        through_host=document["through_host"],
        request=request,
    )
    return ScoresDescription(
        about,
        [_attacker_from_json(attacker, names, request["used"]) for attacker in document["attackers"]],
        [
            ColumnFacts(*(column[name] for name in ColumnFacts._fields))
            for column in document["columns"]
            if len(column) > 1
        ],
        document["priors"],
        document["rows"],
        document["files"],
        document.get("cells"),
    )


def _attacker_to_json(outcome: AttackerOutcome) -> dict[str, Any]:
    attacker = outcome.attacker
    # Wall times are of a run, not of the scores: the same scores are the same bytes.
    summaries = {fold: {**summary.to_stored(), "stages": {}} for fold, summary in outcome.summaries.items()}
    return {
        "name": attacker.name,
        "known": [str(name) for name in attacker.known],
        "any": None if attacker.subsets is None else attacker.subsets.to_dict(),
        "only": attacker.only,
        "weights": {fold: list(outcome.weights[fold]) for fold in attacker.folds if fold in outcome.weights},
        "distinct_rows": outcome.distinct_rows,
        "summaries": summaries,
    }


def _attacker_from_json(document: Mapping[str, Any], names: Sequence[str], used: Sequence[str]) -> AttackerOutcome:
    known = tuple(document["known"])
    subsets = None if document["any"] is None else _subsets_from_json(document["any"], known, names, used)
    attacker = ScoredAttacker(document["name"], known, subsets, document["only"])
    weights, summaries = document["weights"], document["summaries"]
    made = {fold: Summary.from_dict(summary) for fold, summary in summaries.items()}
    return AttackerOutcome(
        attacker,
        {fold: weights.get(fold, next(iter(weights.values()))) for fold in (WORST, MEAN)} if weights else {},
        document["distinct_rows"],
        summaries={fold: made.get(fold, next(iter(made.values()))) for fold in (WORST, MEAN)} if made else {},
    )


def _subsets_from_json(
    document: Mapping[str, Any], pool: Sequence[str], names: Sequence[str], used: Sequence[str]
) -> KnownSubsets:
    """The subsets anew: a sample of them is the same for the same seed."""
    subsets, seed = (max(document["scored"].values()), document["seed"]) if document["sampled"] else (None, 0)
    scored_columns, places = ([used.index(name) for name in several] for several in (names, pool))
    return choose_subsets(
        AnyKnown(document["known"], among=pool, subsets=subsets, seed=seed), used, scored_columns, places, 1
    )
