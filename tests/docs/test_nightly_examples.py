"""The examples of how a nightly run is started: each is what the program that reads it takes."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml

from gpupif.nightly.configuration.config import load_config
from gpupif.nightly.configuration.settings import TellSettings
from gpupif.nightly.exit_codes import ANOTHER_RUN, EXIT_CODES, Status
from gpupif.nightly.gates.gates import resolve_gates
from tests.helpers.checkout import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "nightly"
RUN = "gpupif nightly run"
COMMAND = "/opt/gpupif/bin/gpupif nightly run"


def text(name):
    return (EXAMPLES / name).read_text("utf-8")


def unit(name):
    """The keys of a unit of systemd, by section; a key that stands several times has its last value."""
    found, section = {}, ""
    for line in text(name).splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[section, key] = value
    return found


def configuration(name):
    secrets = {"RISK_WEBHOOK": "https://example.org/hook", "RISK_DATABASE": "postgresql://example.org/registry"}
    return load_config(EXAMPLES / name, environ=secrets).settings


@pytest.mark.parametrize("name", ["risk.toml", "risk-postgresql.toml"])
def test_configurations_can_be_run(name):
    settings = configuration(name)
    assert resolve_gates(settings)
    assert settings.run.state == "/var/lib/gpupif"


def test_the_service_knows_the_exit_codes():
    service = unit("gpupif-nightly.service")
    assert service["Service", "ExecStart"].startswith(f"{COMMAND} ")
    assert service["Service", "SuccessExitStatus"] == str(ANOTHER_RUN)
    not_again = {int(code) for code in service["Service", "RestartPreventExitStatus"].split()}
    assert not_again == {EXIT_CODES[Status.FAILED], EXIT_CODES[Status.REFUSED]}


def test_the_service_may_write_to_the_configured_folders():
    service = unit("gpupif-nightly.service")
    settings = configuration("risk.toml")
    assert settings.run.state == f"/var/lib/{service['Service', 'StateDirectory']}"
    assert service["Service", "ProtectSystem"] == "strict"
    assert os.path.dirname(settings.tell.prometheus) == service["Service", "ReadWritePaths"].lstrip("-")


@pytest.mark.subprocess
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not here")
def test_systemd_accepts_the_units(tmp_path):
    for name in ("gpupif-nightly.service", "gpupif-nightly.timer"):
        (tmp_path / name).write_text(text(name).replace("/opt/gpupif/bin/gpupif", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", *tmp_path.iterdir()]
    verified = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert verified.returncode == 0, verified.stderr
    assert "gpupif-nightly" not in verified.stderr
    calendar = unit("gpupif-nightly.timer")["Timer", "OnCalendar"]
    assert subprocess.run(["systemd-analyze", "calendar", calendar], capture_output=True, check=False).returncode == 0


def crontab():
    """Assignments, and jobs as (times, command), of a crontab."""
    lines = [line for line in text("crontab").splitlines() if line and not line.startswith("#")]
    assignments = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
    jobs = [line.split(None, 5) for line in lines if not re.match(r"\w+=", line)]
    return assignments, [(job[:5], job[5]) for job in jobs]


@pytest.mark.subprocess
@pytest.mark.parametrize("code", [0, *sorted({*EXIT_CODES.values()} - {0})])
def test_cron_sends_no_mail_if_all_gates_hold(code, tmp_path):
    assignments, ((times, command),) = crontab()
    assert [bool(re.fullmatch(r"\*|\d{1,2}", field)) for field in times] == [True] * 5
    assert "MAILTO" in assignments
    # A line of a crontab ends at a percent sign.
    assert "%" not in command
    stand_in = tmp_path / "gpupif"
    stand_in.write_text(f'#!/bin/sh\necho "$@"\necho of it >&2\nexit {code}\n')
    stand_in.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    ended = subprocess.run(
        ["/bin/sh", "-c", command], env=environment, capture_output=True, encoding="utf-8", check=True
    )
    said = "nightly run /etc/gpupif/risk.toml\nof it\n"
    assert (ended.stdout, ended.stderr) == ("" if code == 0 else said, "")


def test_the_dag_fails_with_a_gate_and_skips_during_another_run():
    tree = ast.parse(text("airflow_dag.py"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert {"DAG", "BashOperator"} <= imported
    calls = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            calls[node.targets[0].id] = {one.arg: one.value for one in node.value.keywords}
    risk = {name: node.value for name, node in calls["risk"].items() if isinstance(node, ast.Constant)}
    assert risk["bash_command"].startswith(f"{COMMAND} ")
    assert risk["skip_on_exit_code"] == ANOTHER_RUN
    assert "retries" not in risk
    (order,) = [node for node in tree.body[-1].body if isinstance(node, ast.Expr)]
    assert isinstance(order.value.op, ast.RShift)
    assert (order.value.left.id, order.value.right.id) == ("risk", "release")


def test_the_github_workflow_shows_failed_runs_too():
    workflow = yaml.safe_load(text("github-actions.yml"))
    # YAML 1.1 reads "on" as true.
    assert workflow[True]["schedule"] == [{"cron": "0 2 * * *"}]
    steps = workflow["jobs"]["risk"]["steps"]
    run, show, keep = steps[1:]
    assert run["run"].startswith(f"{COMMAND} ")
    assert "continue-on-error" not in run
    told = dict(re.findall(r"--set tell\.(\w+)=(\S+)", run["run"]))
    assert set(told) <= set(TellSettings.model_fields)
    assert show["if"] == keep["if"] == "always()"
    assert told["markdown"] in show["run"]
    assert keep["with"]["path"] == told["junit"]


def test_compose_waits_for_the_database():
    services = yaml.safe_load(text("docker-compose.yml"))["services"]
    risk = services["risk"]
    assert " ".join(risk["command"]).startswith(f"{RUN} ")
    assert risk["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert "healthcheck" in services["database"]
    mounted = risk["volumes"][0].split(":")
    assert mounted[1] == risk["command"][-1]
    given = tomllib.loads(text(mounted[0]))
    assert given["input"]["connection"].strip("${}") in risk["environment"]
