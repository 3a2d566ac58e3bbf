"""Reports of a run, sent in each way that the configuration asks for: files, and posts to webhooks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import GpupifError, OutputError
from ...io.write import check_parent, write_text
from ...utils.display import json_text
from .. import event_log
from ..comparison.figures import with_figures
from ..configuration.secrets import Redaction
from ..configuration.settings import TellSettings
from ..run_outcome import RunOutcome
from . import junit_report, prometheus_metrics, readable_report, webhooks

Document = Mapping[str, Any]
# The text of each report that goes to a file, by the key of `TellSettings` that has its path, made of the documents of
# the run and of the last good run before it, and of the path. A new report is a key there, and an entry here.
REPORTS: Mapping[str, Callable[[Document, Document | None, Path], str]] = {
    "json_file": lambda document, before, file: f"{json_text(with_figures(document, before))}\n",
    "markdown": lambda document, before, file: readable_report.markdown(document, before),
    "junit": lambda document, before, file: junit_report.text(document),
    "prometheus": prometheus_metrics.text,
}


def notify(
    outcome: RunOutcome,
    before: RunOutcome | None,
    settings: TellSettings,
    resolve: Callable[[str], Path],
    redact: Redaction,
) -> list[str]:
    """Write and post all reports of a run, and return a sentence for each that failed; the sentences are logged too.

    before: the last good run before it. resolve: turns a path of the configuration into a file. redact: makes errors
    fit to be shown.
    """
    document, past = outcome.to_dict(), None if before is None else before.to_dict()

    def write(key: str, file: Path) -> None:
        if file.exists() and not file.is_file():
            raise OutputError(f"{file}: expected the name of a file, got what is none.")
        check_parent(file, file)
        write_text(REPORTS[key](document, past, file), file, overwrite=True, private=True)

    def problems() -> Iterator[str]:
        for key in (*REPORTS, "webhooks"):
            given = getattr(settings, key)
            try:
                if key == "webhooks":
                    yield from webhooks.post_all(document, past, given)
                elif given is not None:
                    write(key, resolve(given))
            except (GpupifError, OSError) as error:
                yield f"tell.{key}: {redact.error(error)}"
            except Exception as error:
                # A fault of this package; the other reports still have to go out.
                yield f"tell.{key}: could not be told ({type(error).__name__})."

    failed = list(problems())
    for problem in failed:
        event_log.say("not told", problem, logging.WARNING)
    return failed
