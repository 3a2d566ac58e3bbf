"""The log of a nightly run: lines on standard error, for people or for programs, without secrets."""

from __future__ import annotations

import json
import logging
import re

from gpupif.nightly import event_log as log


def redact(text):
    return text.replace("s3cret", "***")


def test_the_text_log_has_a_line_for_each_event_without_secrets(capsys):
    with log.logged_to_stderr("text", redact):
        log.say("read", "read 3 of 100 files (300,000 rows)", files=3)
        log.say("not told", "tell.webhooks[0]: s3cret\nforged \x1b[31mline", logging.WARNING)
        log.say("end", "50 % of s3cret", logging.ERROR)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 3
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ info read 3 of 100 files \(300,000 rows\)", lines[0])
    assert lines[1].endswith(r" warning tell.webhooks[0]: ***\nforged \x1b[31mline")
    assert lines[2].endswith(" error 50 % of ***")


def test_a_quiet_log_has_only_warnings_and_errors(capsys):
    with log.logged_to_stderr("text", redact, quiet=True):
        log.say("read", "read it")
        log.say("not told", "s3cret could not be told", logging.WARNING)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("warning *** could not be told")


def test_the_json_log_has_a_document_for_each_event_without_secrets(capsys):
    with log.logged_to_stderr("json", redact):
        log.say("read", "read s3cret\n", files=3, names=["s3cret", 1], share=0.5, last=None, good=True)
        logging.getLogger("gpupif.nightly.other").warning("of another %s", "s3cret")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", first.pop("time"))
    assert first == {
        "level": "info",
        "event": "read",
        "message": "read ***\n",
        "files": 3,
        "names": ["***", 1],
        "share": 0.5,
        "last": None,
        "good": True,
    }
    assert (second["level"], second["event"], second["message"]) == (
        "warning",
        "gpupif.nightly.other",
        "of another ***",
    )


def test_tracebacks_may_quote_values_and_are_left_out(capsys):
    with log.logged_to_stderr("text", redact):
        try:
            raise ValueError("a value of the table")
        except ValueError:
            log.LOG.exception("broken")
    assert capsys.readouterr().err.endswith("Z error broken\n")


def test_the_log_attaches_no_handler_to_a_program_that_uses_gpupif(capsys, caplog):
    before = (list(log.LOG.handlers), log.LOG.level, log.LOG.propagate)
    with log.logged_to_stderr("text", redact):
        pass
    assert (list(log.LOG.handlers), log.LOG.level, log.LOG.propagate) == before
    caplog.set_level(logging.INFO)
    log.say("read", "read it", files=1)
    (record,) = caplog.records
    assert (record.event, record.fields, record.getMessage()) == ("read", {"files": 1}, "read it")
    assert capsys.readouterr().err == ""
