"""`gpupif treat`."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

import gpupif
from tests.helpers.command_line import assert_refused

PLAN = """
[[treatment]]
do = "recode"
column = "age"
edges = [0, 40, 120]
[[treatment]]
do = "drop"
columns = ["a=b"]
"""


@pytest.fixture
def plan(folder):
    (folder / "plan.toml").write_text(PLAN)
    return folder / "plan.toml"


def test_a_table_is_treated(run, folder, plan):
    ended = run(
        "treat", "people.csv", "--plan", "plan.toml", "-o", "out.csv", "--record", "r.json", "--public-record", "p.json"
    )
    assert ended.code == 0, ended.err
    assert "Treated table written to out.csv" in ended.out
    assert ended.out.endswith("give compare --quasi-identifiers and --sensitive.\n")
    assert "recode" in ended.out
    found = pd.read_csv("out.csv")
    assert list(found.columns) == ["age", "sex"]
    assert (
        found["age"].astype(str).tolist() == gpupif.treat("people.csv", "plan.toml").table["age"].astype(str).tolist()
    )
    record = json.loads((folder / "r.json").read_text())
    assert record["rows"] == 5
    assert record["treatments"][0]["cells_changed"] == {"age": 5}
    assert "rows" not in json.loads((folder / "p.json").read_text())


@pytest.mark.parametrize(
    "plan",
    [
        '[[treatment]]\ndo = "recode"\ncolumn = "age"\nlevel = 1',
        '[hierarchies]\nagee = { widths = [5] }\n[[treatment]]\ndo = "drop"\ncolumns = ["sex"]',
        '[[treatment]]\ndo = "suppress_rows"\nk = 5\nquasi_identifiers = ["sexx"]',
    ],
)
def test_an_error_advises_only_options_of_its_command(run, folder, plan):
    (folder / "plan.toml").write_text(plan)
    ended = run("treat", "people.csv", "--plan", "plan.toml", "-o", "out.csv")
    assert_refused(ended, ["no "])
    assert set(re.findall(r"--[a-z-]+", ended.err)) <= {"--plan"}
    assert_refused(run("advise", "people.csv", "--columns", "agee"), ["--columns: no column 'agee'"])


def test_json_has_the_output_and_the_record(run, plan):
    ended = run("treat", "people.csv", "--plan", "plan.toml", "-o", "out.parquet", "--json")
    document = json.loads(ended.out)
    assert document["output"] == "out.parquet"
    assert document["record"]["rows"] == 5


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["--plan", "plan.toml", "-o", "people.csv", "--overwrite"], ["people.csv", "the output is the input"]),
        (["--plan", "plan.toml", "-o", "there.csv"], ["there.csv: exists already", "--overwrite"]),
        (["--plan", "none.toml", "-o", "out.csv"], ["plan: none.toml", "No such file"]),
        (["--plan", "bad.toml", "-o", "out.csv"], ["bad.toml", "recode", "Did you mean"]),
        (
            ["--plan", "names.toml", "-o", "out.csv"],
            ["--plan: names.toml: treatment 1 (drop): columns: no column 'agee'", "Did you mean 'age'?"],
        ),
        (
            ["--plan", "rows.toml", "-o", "out.csv"],
            ["--plan: rows.toml: treatment 1 (suppress_rows): quasi_identifiers: no column 'agee'"],
        ),
        (["--plan", "draws.toml", "-o", "out.csv"], ["--key-file: the plan", "and give it as --key-file."]),
        (
            ["--plan", "draws.toml", "-o", "out.csv", "--key-file", "plan.toml", "--seed", "1"],
            ["--key-file, --seed: both determine the random numbers. Leave --seed out; it is for tests."],
        ),
        (["--plan", "plan.toml", "-o", "out.csv", "--record", "out.csv"], ["--record: names the same file"]),
        (
            ["--plan", "plan.toml", "-o", "out.csv", "--record", "plan.toml"],
            ["--record: plan.toml: the output is the input"],
        ),
        (["--plan", "plan.toml", "-o", "out.csv", "--record", "there.csv"], ["there.csv", ".json"]),
        (["--plan", "plan.toml", "-o", "out.csv", "--key-file", "none"], ["--key-file:", "none"]),
        (["--plan", "plan.toml", "-o", "out.csv", "--rows-per-file", "3"], ["--rows-per-file", "out.csv"]),
        (["-o", "out.csv"], ["--plan"]),
    ],
)
def test_bad_input_is_refused_and_changes_no_file(run, folder, plan, arguments, fragments):
    (folder / "there.csv").write_text("mine")
    (folder / "bad.toml").write_text(PLAN.replace("recode", "recod"))
    (folder / "names.toml").write_text('[[treatment]]\ndo = "drop"\ncolumns = ["agee"]\n')
    rows = '[[treatment]]\ndo = "suppress_rows"\nk = 6\nquasi_identifiers = ["age"]\n'
    (folder / "rows.toml").write_text(rows.replace('"age"', '"sex", "agee"'))
    (folder / "draws.toml").write_text('[[treatment]]\ndo = "pram"\ncolumn = "sex"\ninvariant = 0.8\n')
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    ended = run("treat", "people.csv", *arguments)
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    for fragment in fragments:
        assert fragment in ended.err
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.filterwarnings("default")
def test_a_plan_without_treatments_gives_a_warning(run, folder):
    (folder / "nothing.toml").write_text("treatment = []\n[hierarchies]\nage = { widths = [5, 10] }\n")
    ended = run("treat", "people.csv", "--plan", "nothing.toml", "-o", "out.csv")
    assert ended.code == 0, ended.err
    assert "plan: nothing.toml: expected treatments" in ended.err
