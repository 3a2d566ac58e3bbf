"""The page of a report: one HTML file that loads nothing, and whose Content-Security-Policy forbids that it does."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from .._version import __version__
from ..errors import InputError
from ..io.write import check_output, write_text
from ..utils.display import as_text
from .records import Document, kind_of
from .sections import Section, Sections, file_name
from .words import words_of

ENDINGS = (".html", ".htm")
# Plotly sets the style of its SVG in the page, and puts heat maps there as images. Nothing else is allowed, no address
# outside and no `eval`; of scripts only those whose hash is named.
POLICY = (
    "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)


def check_report(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Refuse a report that could not be written, before any work is done.

    Raises OutputError if the file exists (without `overwrite`) or has another ending, and as `check_output`; InputError
    if Jinja2 or Plotly is not installed.
    """
    check_output(path, overwrite, endings=ENDINGS)
    _libraries()


def write_report(
    documents: Sequence[Document],
    path: str | os.PathLike[str],
    title: object,
    redact: bool = False,
    overwrite: bool = False,
) -> None:
    """Write a report on results, whole or not at all. Only its owner can read a new file, which may show values.

    documents: of the results, see `records`. title: the table that they are of, or a tuple of words and paths. redact:
    whether values of cells, the figures that tell them, and folders are hidden. Raises what `check_report` does.
    """
    check_report(path, overwrite)
    write_text(make_page(documents, title, redact), path, overwrite, private=True)


def make_page(documents: Sequence[Document], title: object, redact: bool = False) -> str:
    """Return the page of a report, see `write_report`. All text is escaped."""
    environment, plotly = _libraries()
    words = title if isinstance(title, tuple) else (title,)
    make = Sections(redact)
    sections = [section for document in documents if kind_of(document) is not None for section in make.of(document)]
    sections += filter(None, [words_of(sections)])
    data = json.dumps([figure for section in sections for figure in section.figures], allow_nan=False)
    script = _template("page.js")
    scripts = (plotly(), script)
    text: str = environment.get_template("page.html").render(
        title=as_text(" ".join(file_name(word) if redact else str(word) for word in words)),
        version=__version__,
        made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        redacted=redact,
        verdicts=[[as_text(line) for line in document.get("verdict", ())] for document in documents],
        facts=list(dict.fromkeys(fact for document in documents for fact in _facts(document))),
        sections=list(_numbered(sections)),
        policy=POLICY.format(" ".join(map(_hash, scripts))),
        style=_template("page.css"),
        scripts=scripts,
        # Within a script no text may look like its end.
        data=data.replace("<", "\\u003c"),
    )
    return text


def _numbered(sections: Sequence[Section]) -> Iterator[tuple[Section, list[tuple[int, str]]]]:
    """Yield each section, and for its figures the number on the page and what they show."""
    number = 0
    for section in sections:
        yield section, [(number + place, figure["said"]) for place, figure in enumerate(section.figures)]
        number += len(section.figures)


def _facts(document: Document) -> Iterator[str]:
    """Yield what a result is of: where the table came from, and on which device it was measured."""
    source = (document.get("request") or {}).get("input") or {}
    name = document.get("input") if isinstance(document.get("input"), str) else source.get("path")
    if name:
        yield f"Table: {as_text(file_name(name))}"
    if document.get("device"):
        yield f"Device: {as_text(document['device'])}"


@cache
def _template(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text("utf-8")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _libraries() -> tuple[Any, Callable[[], str]]:
    """Return Jinja2's environment, and the function that returns Plotly's script. Raises InputError without them."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise InputError(
            f"report: needs Jinja2 and Plotly, and {error.name} is not installed: pip install 'gpupif[report]'."
        ) from None
    loader = FunctionLoader(_template)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True), get_plotlyjs
