"""The description in score files: the request, the table, and the summaries of the scores.

It is one JSON document under `KEY` in the metadata of a Parquet or Feather file: version, request, input, attackers
with their weights, summaries, and small prior tables. In a folder each file has the request, and the last file has all
of it: so a folder holds nothing but score files, which every reader of folders takes. Feather in streams and Dask do
not know the summaries when a file is written; a reader finds them again in the scores.
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
from ..attack.attackers import AnyKnown, KnownSubsets, choose_subsets
from ..attack.request import ScoreRequest
from ..errors import InputError, TableReadError, reason_of
from ..frames.base import Frame
from ..io.base import Stamp
from ..io.documents import parse_json
from ..io.formats import FEATHER, read_format
from ..io.score_files import MARK
from ..measures import as_weighted, find_measure
from .backing import AttackerOutcome, RunDescription, ScoresDescription
from .score_outputs import MEAN, WORST, ScoredAttacker
from .summary import Summary
from .summary_figures import ColumnFacts

KEY = b"gpupif.scores"
# The format of the document; documents in other formats cannot be read.
FORMAT = 1
# The file with the whole description in a folder that an older version wrote.
FOLDER_FILE = "_common_metadata"
# Orders and hierarchies of values that take more bytes are left out; their columns are named.
DISTANCE_BYTES = 1 << 16


def describe_run(
    request: ScoreRequest,
    source: Mapping[str, Any],
    device: str,
    seconds: dict[str, float],
    population: Mapping[str, Any] | None = None,
    lacks: str = "",
    through_host: str = "",
) -> RunDescription:
    """Return the description of a run.

    source, population: where the tables came from, see `describe_files`. lacks: see `Population`. device, seconds,
    through_host: see `RunDescription`.
    """
    distances = {str(name): _plain(distance) for name, distance in request.distances.items()}
    large = [name for name, distance in distances.items() if len(json.dumps(distance)) > DISTANCE_BYTES]
    asked = {
        "gpupif": __version__,
        "input": dict(source),
        "population": None if population is None else {**population, "lacks": lacks},
        "measures": [measure.name for measure in request.measures],
        "dtype": request.dtype,
        "attackers": {"" if name is None else name: _knows(own) for name, own in request.by_attacker().items()},
        "weights": None if request.weights is None else str(request.weights),
        "missing": request.missing,
        "accuracies": {str(name): float(accuracy) for name, accuracy in request.accuracies.items()},
        "priors_given": [str(name) for name in request.priors],
        "distances": {name: distance for name, distance in distances.items() if name not in large},
        "distances_left_out": large,
        "used": [str(name) for name in request.used],
    }
    return RunDescription(
        request.scored_columns, request.cell_measures, request.dtype, device, seconds, through_host, asked
    )


def _knows(request: ScoreRequest) -> dict[str, Any]:
    """Return what one attacker knows, ready for JSON.

    any: for an attacker who knows any few columns, their number, the number of subsets (None for all), and the seed.
    """
    asked = request.any_known
    drawn = None if asked is None else {"known": asked.known, "subsets": asked.subsets, "seed": asked.seed}
    return {"known": [str(name) for name in request.known], "any": drawn}


def _plain(value: Any, text: Callable[[Any], str] = str) -> Any:
    """Return a value ready for JSON: dictionaries, lists, and texts of all else."""
    if isinstance(value, Mapping):
        return {text(key): _plain(one, text) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return [_plain(one, text) for one in value]
    return text(value)


def digest(given: Any) -> str:
    """Return a short text that differs for different values; these may be large dictionaries and lists."""
    # Types tell apart what reads the same: 1 and "1".
    return hashlib.sha256(json.dumps(_plain(given, repr)).encode()).hexdigest()


def describe_files(path: Path, stamps: Mapping[Path, Stamp]) -> dict[str, Any]:
    """Return where a table was read from: its path, and the size and time of change of each file."""
    return {
        "path": str(path.resolve()),
        "files": [
            {"path": str(file.resolve()), "bytes": stamp.size, "changed_ns": stamp.changed}
            for file, stamp in stamps.items()
        ],
    }


def describe_frame(frame: Frame) -> dict[str, Any]:
    """Return where a table came from: its files, or the size of a table that was in memory."""
    return describe_files(*frame.origin) if frame.origin else {"rows": frame.rows, "columns": len(frame.names)}


def to_metadata(description: ScoresDescription) -> dict[bytes, bytes]:
    """Return a description as the metadata of a file."""
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
    """Return the part of a description that each file of a folder has: no summaries, priors, or lists of files."""
    request = dict(description.about.request)
    for table in ("input", "population"):
        if request[table] and "files" in request[table]:
            request[table] = {**request[table], "files": len(request[table]["files"])}
    outcomes = [replace(outcome, summaries={}) for outcome in description.outcomes]
    about = replace(description.about, request=request)
    return replace(description, about=about, outcomes=outcomes, priors={}, files=())


def read_text(file: Path) -> bytes | None:
    """Return the document in a file, as `to_metadata` made it; None if there is none.

    Raises pyarrow.ArrowException or OSError for a file that cannot be read.
    """
    if read_format(file) is FEATHER:
        with pa.memory_map(str(file)) as source:
            metadata = pa.ipc.open_file(source).schema.metadata
    else:
        metadata = pq.read_metadata(file).metadata
    return (metadata or {}).get(KEY)


def tells_all(file: Path) -> bool:
    """Return whether a file describes all scores of its folder: then it names the files of the folder.

    Raises TableReadError if its document is damaged.
    """
    return bool((_document(file) or {}).get("files"))


def _document(file: Path) -> dict[str, Any] | None:
    try:
        text = read_text(file)
    except (pa.ArrowException, OSError) as error:
        raise TableReadError(f"{file}: could not be read as scores: {reason_of(error)}.") from error
    try:
        document = None if text is None else parse_json(text)
        if isinstance(document, dict | None):
            return document
    except ValueError:
        pass
    raise TableReadError(f"{file}: what it says of its scores is damaged. Score the table again.")


def read_description(file: Path) -> ScoresDescription | None:
    """Return the description in a file; None if there is none.

    Raises InputError for a document of another version, and TableReadError for a damaged one.
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
    # Without wall times, which differ between runs, the same scores are the same bytes.
    summaries = {aggregate: {**summary.to_stored(), "stages": {}} for aggregate, summary in outcome.summaries.items()}
    return {
        "name": attacker.name,
        "known": [str(name) for name in attacker.known],
        "any": None if attacker.subsets is None else attacker.subsets.to_dict(),
        "only": attacker.only,
        "weights": {
            aggregate: list(outcome.weights[aggregate])
            for aggregate in attacker.aggregates
            if aggregate in outcome.weights
        },
        "distinct_rows": outcome.distinct_rows,
        "summaries": summaries,
    }


def _attacker_from_json(document: Mapping[str, Any], names: Sequence[str], used: Sequence[str]) -> AttackerOutcome:
    known = tuple(document["known"])
    subsets = None if document["any"] is None else _subsets_from_json(document["any"], known, names, used)
    attacker = ScoredAttacker(document["name"], known, subsets, document["only"])
    weights, summaries = document["weights"], document["summaries"]
    made = {aggregate: Summary.from_dict(summary) for aggregate, summary in summaries.items()}
    return AttackerOutcome(
        attacker,
        {aggregate: weights.get(aggregate, next(iter(weights.values()))) for aggregate in (WORST, MEAN)}
        if weights
        else {},
        document["distinct_rows"],
        summaries={aggregate: made.get(aggregate, next(iter(made.values()))) for aggregate in (WORST, MEAN)}
        if made
        else {},
    )


def _subsets_from_json(
    document: Mapping[str, Any], pool: Sequence[str], names: Sequence[str], used: Sequence[str]
) -> KnownSubsets:
    """Return the subsets, chosen again: a sample is the same for the same seed."""
    subsets, seed = (max(document["scored"].values()), document["seed"]) if document["sampled"] else (None, 0)
    scored_columns, places = ([used.index(name) for name in several] for several in (names, pool))
    return choose_subsets(
        AnyKnown(document["known"], among=pool, subsets=subsets, seed=seed), used, scored_columns, places, 1
    )
