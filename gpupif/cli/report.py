"""The command `gpupif report`: a table, its scores, or the record of another command, as one HTML file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import InputError, listed
from .options import Given, ReportFile
from .printing import interruption

# What files of scores may end in, beside folders.
SCORES = (".parquet", ".pq", ".feather")
# Tables of more rows are not measured for advice unless it is asked for: with 3 million rows it takes 24 s of CPU time.
MOST_ADVISED = 1_000_000
# The k of the command that a report shows where classes are smaller.
PROTECTED = 5


def report(given: Given) -> None:
    """Show risk for those who decide: one HTML file with figures and tables, which loads nothing else.

    A weight column of --roles weights scores, shares and pairs, as --weights does elsewhere.
    """
    source, output = given.source, given.output
    to = ReportFile(output, given.overwrite, source.name or source, given.redact)
    known, attributes = given.quasi_identifiers, given.sensitive
    is_table = source.suffix.lower() not in (".json", ".toml") and not _holds_scores(source)
    if source.suffix.lower() == ".toml" and source.is_file():
        _check_configuration(source, output)
    named = {name: given.texts[name] for name in ("quasi_identifiers", "sensitive", "roles")}
    for name, value in named.items():
        if value is not None and not is_table:
            raise InputError(f"{name}: goes with a table, and {source} is none. Leave it out.")
    if source.is_dir() and not any(source.rglob("*.parquet")):
        raise InputError(
            f"report: {source}: expected a folder of .parquet files, of a table or of scores that gpupif wrote; this "
            f"folder has none. For other files give a pattern, such as '{source}/*.csv'."
        )
    with given.configured():
        if is_table:
            given.check(source)
            from_file = given.file_roles(known, attributes, table=source)
            known = from_file.quasi_identifiers("quasi-identifiers", known)
            attributes, weights = from_file.sensitive(attributes), from_file.weights(None)
            documents = _of_table(source, known, attributes, weights, given)
            if documents[1]["classes"]["k"] < PROTECTED:
                if given.roles is None and known is None:
                    named["quasi_identifiers"] = ",".join(documents[1]["quasi_identifiers"])
                documents.append(_next_step(source, named | {"sep": given.sep}, given.redact))
        else:
            documents = _of_record(source, given.redact)
        to.write(documents, given)
    given.show(lambda: {"input": str(source), "output": str(output)}, lambda _: None)
    interruption.left = f"the report is complete: {output}"


def _check_configuration(file: Path, output: Path) -> None:
    """Raise InputError for a plan or roles: the only TOML that a report is of is the configuration of nightly runs.

    Raises ReplacedInputError for a report in place of a file of these runs.
    """
    from ..io.documents import read_document

    document = read_document("report", file, "TOML")
    for key, kind in (("treatment", "a plan"), ("roles", "a file of roles"), ("hierarchies", "a file of hierarchies")):
        if key in document:
            raise InputError(
                f"report: {file}: is {kind}; a report is of a table, of scores, of a result in JSON, or of the "
                "configuration of nightly runs. Name the table: gpupif report TABLE -o report.html."
            )
    from ..io.run_files import check_apart
    from ..nightly.configuration.config import path_from
    from ..nightly.configuration.run_files import inputs_of

    check_apart({"--output": output}, inputs_of(document, partial(path_from, file.absolute().parent)))


def _of_record(source: Path, redact: bool) -> list[dict[str, Any]]:
    """Return the documents of what is no table: a result in JSON, nightly runs, scores."""
    if source.suffix.lower() == ".json":
        from ..report.records import read_record

        return [read_record(source, redact)]
    if source.suffix.lower() == ".toml":
        from .nightly import nightly_documents

        return nightly_documents(source, redact=redact)
    from ..results.open import open_scores
    from ..results.score_report import score_document

    return [score_document(open_scores(source), redact)]


def _of_table(
    table: Path,
    known: list[str] | None,
    attributes: list[str] | None,
    weights: str | None,
    given: Given,
) -> list[dict[str, Any]]:
    """Return the documents of a table: its scores, classes and pairs of columns, and which changes would help.

    known: the columns that the attacker knows; by default all but the sensitive attributes. Raises InputError for
    scores in CSV.
    """
    from ..attack.arguments import Arguments
    from ..disclosure.risk import risk
    from ..frames.open import table_names
    from ..io.paths import find_input
    from ..io.temporary_folder import temporary_folder
    from ..marginals.toxic_pairs import toxic_pairs
    from ..measures import MEASURES
    from ..protection.advise import advise
    from ..report.records import document_of
    from ..results.score_report import score_document
    from ..scoring.files import score_for_now
    from ..utils.display import as_json, quoted
    from ..utils.validation import check_exist

    files = find_input(table, given.sep)
    names = table_names(files)[0]
    of_measures = tuple(f"{measure}_" for measure in MEASURES)
    if table.suffix.lower() == ".csv" and all(str(name).startswith(of_measures) for name in names):
        raise InputError(
            f"report: {table}: expected a table, or scores in Parquet or Feather; got scores in CSV, which lack what a "
            "report says of the run. Score the table to another file: -o scores.parquet."
        )
    check_exist("quasi_identifiers", known or (), names)
    check_exist("sensitive", attributes or (), names)
    if known is None:
        known = [str(name) for name in names if name not in (attributes or ())]
    columns = [*known, *(attributes or ())]
    with temporary_folder(given.temp) as folder:
        arguments = Arguments.from_user(["cig", "csf"], columns, known=known, weights=weights)
        scored = score_for_now(files, arguments, folder)
        scores = score_document(scored, given.redact)
    measured = risk(files, known, attributes, weights=weights)
    classes = document_of(measured, given.redact)
    # One verdict: first whom the attacker finds, then what the attacker learns.
    _, *gains = scores["verdict"]
    others = [str(name) for name in names if name not in (*columns, weights)]
    gains += [f"Not measured, though in the table: {listed(others, 20, quoted)}."] * bool(others)
    documents = [{"input": str(table), **scores, "verdict": classes["verdict"]}, classes | {"verdict": gains}]
    if len(known) > 1:
        pairs = toxic_pairs(files, columns=known, weights=weights)
        documents.append(document_of(pairs, given.redact) | {"pairs": as_json(pairs.pairs), "verdict": []})
    if given.advice is None and scores["rows"] > MOST_ADVISED:
        given.say(f"What to do next is left out, for the table has {scores['rows']:,} rows: --advice finds it.")
    if given.advice or (given.advice is None and scores["rows"] <= MOST_ADVISED):
        found = advise(files, quasi_identifiers=known, sensitive=attributes, weights=weights)
        documents.append(document_of(found, given.redact) | {"verdict": []})
    return documents


def _next_step(table: Path, given: Mapping[str, Any], redact: bool) -> dict[str, Any]:
    """Return a document that only says which command protects a table. given: options that name the attacker.

    redact: whether folders are left out.
    """
    from ..report.sections import without_folders

    options = {f"--{name.replace('_', '-')}": str(value) for name, value in given.items() if value is not None}
    named = [part for option in options.items() for part in option]
    command = ["gpupif", "protect", str(table), *named, "--require", f"k>={PROTECTED}", "--suppress", "0.05"]
    said = shlex.join([*command, "-o", "plan.toml"])
    said = without_folders(said) if redact else said
    return {"verdict": [f"To protect it, perhaps with other limits: `{said}`"]}


def _holds_scores(place: Path) -> bool:
    """Return whether a file or folder says that it holds scores of gpupif; reading tells what is wrong with others."""
    import pyarrow as pa

    from ..results.provenance import read_text

    files = sorted(place.rglob("*.parquet")) if place.is_dir() else [place]
    try:
        return any(read_text(file) is not None for file in files[:1] if file.suffix.lower() in SCORES)
    except (pa.ArrowException, OSError):
        return False
