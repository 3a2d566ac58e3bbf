"""Results as documents, as `--json` prints them: the form in which a report takes every result, also from a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._version import __version__
from ..errors import InputError, TableReadError
from ..io.documents import read_document
from ..io.file_errors import denied
from ..utils.display import REDACTED, Displayable
from ..utils.given_files import refuse_named_pipe
from ..utils.validation import brief

Document = Mapping[str, Any]
# The keys by which the document of a result is known, by the kind of the result.
KINDS: Mapping[str, frozenset[str]] = {
    "night": frozenset({"gates", "exit_code", "number"}),
    "history": frozenset({"runs", "folder"}),
    "protection": frozenset({"frontier", "losses", "before", "risk"}),
    "comparison": frozenset({"rows_taken_away", "risk", "utility", "columns"}),
    "treatment": frozenset({"treatments", "versions"}),
    "release": frozenset({"answers", "budget"}),
    "budget": frozenset({"charges", "spent", "neighbours"}),
    "risk": frozenset({"classes", "attributes", "worst"}),
    "pairs": frozenset({"pairs", "values", "pairs_in_all"}),
    "special_uniques": frozenset({"scored_rows", "sizes", "max_size"}),
    "audit": frozenset({"findings", "disclosed", "atoms"}),
    "advice": frozenset({"changes", "criterion", "before"}),
    "count_table": frozenset({"counts", "figure", "method", "primary"}),
    "table_audit": frozenset({"bounds", "computed", "disclosed"}),
    "attackers": frozenset({"attackers", "worst"}),
    "scores": frozenset({"measures", "columns", "pif", "top"}),
}


def document_of(result: Displayable, redact: bool = False) -> dict[str, Any]:
    """Return the document of a result, with its verdict. redact: see `Displayable.verdict`."""
    return {"gpupif": __version__, "verdict": result.verdict(redact), **result.to_dict()}


def kind_of(document: Document) -> str | None:
    """Return the kind of result that a document is of; None for none that a report shows."""
    return next((kind for kind, keys in KINDS.items() if keys <= document.keys()), None)


def read_record(path: str | os.PathLike[str], redact: bool = False) -> dict[str, Any]:
    """Return the document in a JSON file, as `--json`, `--summary-only` and `gpupif treat --record` write it.

    redact: whether its verdict is the redacted one, none if it has none.

    Raises TableReadError if there is no such file, and InputError for JSON that is damaged, is no result that a report
    shows, is a list of results, or is of another version of gpupif.
    """
    if not os.path.exists(path) or os.path.isdir(path):
        raise TableReadError(f"{path}: there is no such file.")
    try:
        refuse_named_pipe(path)
    except OSError as error:
        raise denied(Path(path), error) from None
    with open(path, "rb") as file:
        # A ledger has a document in each line. Its first line says that it is one.
        if b'"gpupif_ledger":' in file.readline(4096):
            raise InputError(f"report: {path}: is a ledger. Report it with: gpupif budget LEDGER --report FILE.html.")
    document = read_document("report", path, "JSON")
    if kind_of(document) is None:
        raise InputError(
            f"report: {path}: expected a result of gpupif in JSON, as --json prints it for score, risk, suda, toxic, "
            "advise, protect, compare, treat, tables, audit, release, budget and nightly; got other JSON."
        )
    versions = document.get("versions")
    version = document.get("gpupif", versions.get("gpupif") if isinstance(versions, dict) else None)
    if version != __version__:
        made_by = "a version that it does not name" if version is None else f"gpupif {brief(version)}"
        raise InputError(
            f"report: {path}: is of {made_by}; this is {__version__}. Report it with that version, or make it again "
            "with this one."
        )
    if redact:
        document["verdict"] = document.get(REDACTED, [])
    verdict, request = document.get("verdict", []), document.get("request") or {}
    source = request.get("input") or {} if isinstance(request, dict) else None
    if not (isinstance(verdict, list) and all(isinstance(line, str) for line in verdict) and isinstance(source, dict)):
        raise InputError(f"report: {path}: its verdict or its request is damaged. Make the record again.")
    return document
