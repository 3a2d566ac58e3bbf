"""The commands `gpupif nightly ...`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

import gpupif
from gpupif.cli.main import COMMANDS, NAMES
from gpupif.cli.messages import as_options
from gpupif.nightly.configuration.config import load_config
from gpupif.nightly.exit_codes import Status
from gpupif.nightly.record.record import Record
from tests.helpers.command_line import assert_refused


def test_help_lists_the_nightly_commands(run):
    told = run("nightly", "--help")
    assert told.code == 0
    assert "init" in told.out
    shown = run("nightly")
    assert (shown.code, shown.err) == (2, "")
    assert "Usage:" in shown.out
    assert set(COMMANDS) < set(NAMES)
    for name in NAMES:
        told = run(*name.split(), "--help")
        assert (told.code, f"gpupif {name}" in told.out) == (0, True)


def test_a_configuration_is_written_and_can_be_read(run, folder):
    told = run("nightly", "init", "people.csv")
    assert (told.code, told.err) == (0, "")
    assert "\nConfiguration written to risk.toml. Check what it says, above all its gates, then:\n" in told.out
    # The table has classes of fewer rows than offices allow: the first line says so, and so does the run.
    assert told.out.startswith("Fails tonight: k 1 row (at least 11), for a table that anybody gets.\n")
    assert run(*told.out.splitlines()[-1].split()[1:], "-q").code == 3
    config = load_config("risk.toml")
    assert config.table == folder / "people.csv"
    found = json.loads(run("nightly", "init", "people.csv", "-o", "other.toml", "--sep", ",", "--json").out)
    assert (found["input"], found["output"], found["rows"]) == ("people.csv", "other.toml", 5)
    assert found["commands"] == ["gpupif nightly run other.toml"]
    assert (found["tonight"], found["gates"][0]["limits_risk"]) == (told.out.splitlines()[:1], True)
    assert found["roles"] == gpupif.inspect("people.csv").to_dict()["roles"]
    assert load_config("other.toml").settings.input.separator == ","
    gpupif.inspect("people.csv").write("roles.toml")
    told = run("nightly", "init", "people.csv", "-o", "other.toml", "--overwrite", "--roles", "roles.toml")
    assert told.out.partition("\n\n")[2].startswith("Configuration written to other.toml.")
    assert load_config("other.toml").settings.score == config.settings.score
    arguments = ["nightly", "init", "people.csv", "--overwrite", "-q", "--memory-limit", "16GiB"]
    assert (run(*arguments).out, load_config("risk.toml").digest) == ("", config.digest)


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["init"], ["Missing argument", "gpupif nightly init --help` says what there is."]),
        (["init", "-o"], ["Option '-o' requires an argument. `gpupif nightly init --help` says what there is."]),
        (["init", "people.csv", "--outptu", "a"], ["No such option: --outptu", "gpupif nightly init --help`"]),
        (["intt"], ["No such command 'intt'.", "gpupif nightly --help`"]),
        (["init", "none.csv"], ["none.csv: no such file"]),
        (["init", "people.csv", "-o", "risk.json"], ["risk.json: expected an output name ending in .toml"]),
        (["init", "people.csv", "-o", "there.toml"], ["there.toml: exists already", "--overwrite"]),
        (["init", "people.csv", "--sep", "ab"], ["--sep", "'ab'"]),
        (["init", "people.csv", "--memory-limit", "1MB"], ["--memory-limit: expected at least"]),
    ],
)
def test_a_configuration_that_cannot_be_written_is_refused(run, folder, arguments, fragments):
    (folder / "there.toml").touch()
    assert_refused(run("nightly", *arguments), fragments)
    assert {file.name for file in folder.iterdir()} == {"people.csv", "there.toml"}


@pytest.mark.parametrize("place", ["gpupif.nightly.nightly_run.notify", "gpupif.cli.options.Given.show"])
def test_a_signal_after_a_run_says_that_it_is_on_record(run, folder, monkeypatch, place):
    run("nightly", "init", "people.csv", "-q")
    monkeypatch.setattr(place, lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
    ended = run("nightly", "run", "risk.toml", "-q")
    assert ended.code == 128 + signal.SIGTERM
    assert ended.err.splitlines()[-1].startswith("gpupif: interrupted; run 1 is on record: ")
    with Record.open(folder / "gpupif-nightly") as record:
        assert record.run(1).status in (Status.PASSED, Status.FAILED)
        assert f"on record: {record.run(1).status}." in ended.err


def test_a_signal_before_a_run_is_on_record_leaves_the_last_good_state(run, folder, monkeypatch):
    run("nightly", "init", "people.csv", "-q")
    monkeypatch.setattr(
        "gpupif.nightly.nightly_run.measure_table", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM)
    )
    ended = run("nightly", "run", "risk.toml", "-q")
    assert ended.code == 128 + signal.SIGTERM
    assert ended.err.splitlines()[-1] == "gpupif: interrupted; the last good state is as it was."
    with Record.open(folder / "gpupif-nightly") as record:
        assert record.run(1).status is Status.KILLED


def test_a_missing_package_of_the_nightly_run_is_named(run, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("gpupif.nightly")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = ["need prometheus-client, pydantic, urllib3", "pip install 'gpupif[nightly]'"]
    assert_refused(run("nightly", "init", "people.csv"), said)


OPTIONS = dict.fromkeys(["--columns", "--device", "--k", "--top"])


def test_keys_of_a_configuration_are_no_options():
    for message in (
        "risk.toml: run.device='gpu' is none",
        "--set score.columns=[1]: no",
        "gates.0.k=3, tell.top=('a')",
    ):
        assert as_options(message, OPTIONS) == message
    assert as_options("Leave it out, or columns='a'", OPTIONS) == "Leave it out, or --columns a"


@pytest.mark.subprocess
def test_other_commands_import_no_package_of_the_nightly_run():
    code = "import sys, gpupif.cli.main; print([name for name in ('pydantic', 'urllib3') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
