"""All ways to tell a run: each file whole or not at all, and none keeps another from being told."""

from __future__ import annotations

import json
import logging
import os
from xml.etree import ElementTree as ET

import pytest

from gpupif.nightly.configuration.secrets import Redaction
from gpupif.nightly.configuration.settings import TellSettings, WebhookSettings
from gpupif.nightly.report import notify as notifying
from gpupif.nightly.report.notify import REPORTS, notify
from tests.helpers.other_user import give_away
from tests.helpers.outcomes import failed_run, good_run

FILES = {"json_file": "run.json", "markdown": "run.md", "junit": "run.xml", "prometheus": "people.prom"}


def told(folder, outcome=None, **settings):
    return notify(
        outcome or failed_run(),
        good_run(),
        TellSettings.model_construct(**settings),
        folder.joinpath,
        Redaction(["s3cret"], show_values=False),
    )


def test_every_setting_has_a_way_to_report():
    assert set(REPORTS) | {"log", "webhooks"} == set(TellSettings.model_fields)


def test_no_report_is_written_if_none_is_configured(tmp_path):
    assert told(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_every_configured_report_is_written(tmp_path):
    assert told(tmp_path, **FILES) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES.values())
    assert json.loads((tmp_path / "run.json").read_text("utf-8"))["status"] == "failed"
    assert ET.parse(tmp_path / "run.xml").getroot().tag == "testsuites"
    assert (tmp_path / "run.md").read_text("utf-8").startswith("## Run 2 of")
    assert 'nightly="people"' in (tmp_path / "people.prom").read_text("utf-8")


def test_new_reports_are_their_owners_alone_and_old_ones_keep_rights(tmp_path):
    shared = tmp_path / "people.prom"
    shared.write_text("old")
    shared.chmod(0o644)
    before = os.umask(0)
    try:
        assert told(tmp_path, **FILES) == []
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"run.json": 0o600, "run.md": 0o600, "run.xml": 0o600, "people.prom": 0o644}
    assert shared.read_text("utf-8") != "old"


def test_no_link_of_another_user_is_followed(tmp_path, monkeypatch):
    (tmp_path / "diary").write_text("dear diary")
    (tmp_path / "run.json").symlink_to(tmp_path / "diary")
    give_away(tmp_path / "run.json", monkeypatch)
    (problem,) = told(tmp_path, json_file="run.json")
    assert problem.startswith("tell.json_file: ")
    assert "run.json is a link that another user made" in problem
    assert (tmp_path / "diary").read_text() == "dear diary"


def test_a_report_that_cannot_be_written_does_not_stop_the_others(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    problems = told(tmp_path, json_file="folder", markdown="none/run.md", junit="pipe", prometheus="people.prom")
    assert [problem.partition(":")[0] for problem in problems] == ["tell.json_file", "tell.markdown", "tell.junit"]
    assert "there is no folder" in problems[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "people.prom", "pipe"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_rights_to_write_is_a_problem(tmp_path):
    tmp_path.chmod(0o500)
    (problem,) = told(tmp_path, json_file="run.json")
    assert "cannot be written to" in problem


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    assert told(tmp_path, json_file="run.json") == []
    old = (tmp_path / "run.json").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpupif.io.write.os.fsync", full)
    (problem,) = told(tmp_path, good_run(), json_file="run.json")
    assert "No space left on device. Free some space" in problem
    assert (tmp_path / "run.json").read_bytes() == old
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_fault_of_one_report_does_not_stop_the_others(tmp_path, monkeypatch, caplog):
    def broken(*_):
        raise KeyError("a value of the table")

    monkeypatch.setattr(notifying.readable_report, "markdown", broken)
    assert told(tmp_path, **FILES) == ["tell.markdown: could not be told (KeyError)."]
    assert len(list(tmp_path.iterdir())) == 3
    assert "a value of the table" not in caplog.text


def test_problems_are_logged_without_secrets(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    # Refused in a configuration.
    webhooks = [WebhookSettings.model_construct(url="ftp://s3cret/")]
    problems = told(tmp_path, json_file="s3cret/run.json", webhooks=webhooks)
    assert len(problems) == 2
    assert "s3cret" not in "".join(problems) + caplog.text
    assert [record.getMessage() for record in caplog.records] == problems
