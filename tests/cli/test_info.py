"""`gpupif info`, `gpupif demo`, `gpupif --version` and `--help`."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

import gpupif
from gpupif.gpu.status import CudaStatus, Gpu
from tests.helpers.command_line import assert_refused

pytestmark = pytest.mark.every_engine


def test_the_demo_scores_a_census_as_text_and_json(run):
    ended = run("demo", "--rows", "1000")
    assert (ended.code, ended.err) == (0, "")
    assert "census of 1,000 people" in ended.out
    assert "1,000 rows x 10 columns scored" in ended.out
    assert "PIF 95: " in ended.out
    assert "gpupif score" in ended.out
    document = json.loads(run("demo", "--rows", "1000", "--json").out)
    expected = json.loads(gpupif.score(gpupif.datasets.census(1_000), ["cig", "csf", "wcig"]).summary().to_json())
    assert [key for key in ("rows", "device", "columns", "pif", "top") if document[key] != expected[key]] == []


def test_info_lists_versions_devices_and_the_engine(run, monkeypatch):
    monkeypatch.setattr("gpupif.cli.info.cuda_status", lambda: CudaStatus([Gpu("Card 1", (7, 0))], reason="too old"))
    facts = json.loads(run("info", "--json").out)
    assert facts["gpupif"] == gpupif.__version__
    assert facts["numpy"] == np.__version__
    assert facts["GPU"] == "Card 1 (compute capability 7.0), too old: at least compute capability 7.5 is needed"
    assert facts["engine"].startswith("cpu")
    assert "too old" in facts["engine"]
    lines = run("info").out.splitlines()
    assert [line.split(maxsplit=1)[0] for line in lines] == list(facts)
    assert all(line.endswith(fact) for line, fact in zip(lines, facts.values(), strict=True))


WITHOUT_CUDF = """
import importlib.metadata, sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cudf", "pylibcudf", "rmm", "dask_cudf"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

version = importlib.metadata.version

def known(name):
    if "cudf" in name:
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)

sys.meta_path.insert(0, Hidden())
importlib.metadata.version = known
"""


@pytest.mark.slow
@pytest.mark.subprocess
def test_info_works_without_cudf(folder):
    script = WITHOUT_CUDF + "from gpupif.cli import main as cli\nsys.argv[1:] = ['info', '--json']\ncli.main()"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    facts = json.loads(ended.stdout)
    expected = "not installed: needed for frames of cuDF, reading files on the GPU, grouping rows there by hashing"
    assert facts["cudf"].startswith(expected)
    assert facts["numba"] == version("numba")


def test_info_says_why_cudf_is_not_used(run, monkeypatch):
    status = CudaStatus([Gpu("Card 1", (9, 0))], [0], no_cudf="cudf 26.6.0 is too old")
    monkeypatch.setattr("gpupif.cli.info.cuda_status", lambda: status)
    monkeypatch.setattr("gpupif.cli.info.installed_version", {"cudf": "26.6.0"}.get)
    monkeypatch.setattr("gpupif.engines.cuda.engine.whole_tables", lambda device: "free")
    facts = json.loads(run("info", "--json").out)
    assert facts["engine"].startswith("cuda (the CPU for tables of fewer than ")
    assert facts["cudf"] == "26.6.0, not used: cudf 26.6.0 is too old"
    assert facts["cupy"] == "not installed: needed for GPUs"


def test_info_says_why_a_gpu_fails(run, monkeypatch):
    gpus = [Gpu("Card 1", (9, 0)), Gpu("Card 2", (9, 0), "cupy 14.2.0 does not work here: driver is old")]
    monkeypatch.setattr("gpupif.cli.info.cuda_status", lambda: CudaStatus(gpus, [0]))
    monkeypatch.setattr("gpupif.engines.cuda.engine.whole_tables", lambda device: "free")
    facts = json.loads(run("info", "--json").out)
    assert facts["GPU"] == (
        "GPU 0: Card 1 (compute capability 9.0); "
        "GPU 1: Card 2 (compute capability 9.0), cupy 14.2.0 does not work here: driver is old"
    )
    assert facts["GPU memory"] == "GPU 0: free"


def test_version_and_help_are_printed(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    ended = run("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"gpupif {gpupif.__version__}\n", "")
    shown = run("--help")
    assert shown.code == 0
    assert [name for name in ("score", "demo", "info", "--version") if name not in shown.out] == []
    # A name in double brackets would be taken for markup.
    assert "a list `query` in .toml" in run("release", "--help").out
    shown = run("score", "--help")
    assert shown.code == 0
    options = "output columns measures known attacker priors accuracies accuracy weights missing device dtype sep"
    options += " gpu-grouping keep-input overwrite json quiet"
    groups = [line.strip("╭─╮ ") for line in shown.out.splitlines() if line.startswith("╭")]
    assert groups[2:4] == ["Output", "Some cells, or a summary, in place of all scores"]
    assert len(groups) == 7
    assert [name for name in options.split() if f"--{name}" not in shown.out] == []


@pytest.mark.parametrize("rows", ["0", "-5"])
def test_a_bad_number_of_rows_for_the_demo_is_refused(run, rows):
    assert_refused(run("demo", "--rows", rows), ["rows", f"got {rows}"])
