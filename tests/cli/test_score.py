"""The command line: what it writes and prints, and that every error is one line, exit code 2, and no file."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess

import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.cli.options import verdicts
from tests.helpers.command_line import COMMAND, CSV, FRAME, PRIORS, assert_refused, assert_written, start
from tests.helpers.configured import configured
from tests.helpers.covering import covering

pytestmark = pytest.mark.every_engine


@pytest.mark.parametrize("output", ["scores.parquet", "scores.csv", "scores.feather"])
def test_the_command_writes_the_scores(run, folder, output):
    ended = run("score", "people.csv", "-o", output)
    assert (ended.code, ended.err) == (0, "")
    assert_written(folder / output, gpupif.score(FRAME, ["cig", "csf", "wcig"]))
    assert f"Scores written to {output}" in ended.out


def test_the_command_prints_the_summary(run):
    lines = run("score", "people.csv", "--output", "scores.parquet").out.splitlines()
    scores = gpupif.score(FRAME)
    assert lines[0] == "5 rows x 3 columns scored. The attacker knows every other scored column."
    size = lines.index(f"5 rows x 3 columns scored, 4 distinct rows, device {scores.device}")
    assert [stage.split()[0] for stage in lines[size + 1].split(", ")] == ["read", "encode", "score", "write"]
    assert lines[size + 1].count(" s (") == lines[size + 1].count(" cells/s)") == 4
    pif = next(line for line in lines if "PIF" in line)
    shown = [f"PIF {n}: {value:.3f}" for n, value in zip((50, 95, 99, 100), scores.pif([50, 95, 99, 100]), strict=True)]
    assert pif == f"Bits that a row gives away, by percentile: {', '.join(shown)}"
    riskiest = lines[lines.index(next(line for line in lines if "Riskiest cells" in line)) :]
    headings = [heading.strip() for heading in riskiest[2].strip("┃").split("┃")]
    keys = (
        "row",
        "column",
        "value",
        "cells with it",
        "CIG, bits",
        "CSF",
        "wCIG, bits",
        "posterior",
        "prior",
        "cohort, rows",
    )
    assert headings == [key for key in keys if key in headings]
    first = scores.top(1, each="value").iloc[0]
    cells = [cell.strip() for cell in riskiest[4].strip("│").split("│")]
    assert cells[:4] == [str(first["row"]), first["column"], str(first["value"]), str(first["cells"])]
    assert cells[headings.index("CIG, bits")] == f"{first['cig']:.4g}"
    for name in FRAME.columns:
        row = next(line for line in lines if line.startswith(f"│ {name} "))
        assert f"{scores.fig()[name]:,.1f}" in row
        assert f"{scores.cig[name].mean():.3f}" in row


OPTIONS = [
    (["--columns", ' "sex", a=b '], {"columns": ["sex", "a=b"]}),
    (["--measures", "posterior,cohort_size"], {"measures": ["posterior", "cohort_size"]}),
    (["--known", "sex"], {"known": ["sex"]}),
    (["--known", ""], {"known": []}),
    (["--accuracy", "age=0.5", "--accuracy", "a=b=0.75"], {"accuracies": {"age": 0.5, "a=b": 0.75}}),
    (["--columns", "age", "--missing", "error"], {"columns": ["age"], "missing": "error"}),
    (["--dtype", "float32"], {"dtype": "float32"}),
    (["--device", "cpu", "--gpu-grouping", "auto"], {"device": "cpu"}),
]


@pytest.mark.parametrize(("options", "arguments"), OPTIONS)
def test_options_are_arguments_of_python_and_json_is_its_summary(run, folder, options, arguments):
    ended = run("score", "people.csv", "-o", "scores.parquet", "--json", *options)
    assert (ended.code, ended.err) == (0, "")
    arguments = {"measures": ["cig", "csf", "wcig"], **arguments}
    assert_written(folder / "scores.parquet", configured(gpupif.score, FRAME, **arguments))
    document = json.loads(ended.out, parse_constant=pytest.fail)
    scores = configured(gpupif.score, "people.csv", **arguments)
    expected = json.loads(scores.summary().to_json())
    stages = document.pop("stages")
    assert list(stages) == ["read", "encode", "score", "write"]
    for stage in stages.values():
        assert stage["cells_per_second"] * stage["seconds"] == pytest.approx(expected["cells"])
    expected.pop("stages")
    beside = {"gpupif": gpupif.__version__, "input": "people.csv", "output": "scores.parquet"}
    assert document == {**beside, **verdicts(scores), **expected}


def test_json_has_null_for_unknown_scores_of_several_attackers(run, folder):
    (folder / "people.csv").write_text("age,sex\n39,\n40,\n")
    options = ["--columns", "sex", "--attacker", "near=age", "--attacker", "far=", "--missing", "wildcard", "--json"]
    ended = run("score", "people.csv", "-o", "scores.parquet", "--measures", "csf", *options)
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out, parse_constant=pytest.fail)
    assert [one["csf_max"] for one in document["attackers"].values()] == [None, None]
    assert document["worst"][0]["csf_max"] is None


@pytest.mark.parametrize(
    ("text", "distance"),
    [
        ('["41", "39", "40"]', [41, 39, 40]),
        ('{"39": ["x"], "40": ["x"], "41": ["y"]}', {39: ["x"], 40: ["x"], 41: ["y"]}),
        ("[41, 39, 40]", [41, 39, 40]),
    ],
)
def test_distances_are_read_from_json_files(run, folder, text, distance):
    (folder / "age.json").write_text(text)
    options = ["--measures", "emd", "--distance", "sex=nominal", "--distance", "age=age.json"]
    ended = run("score", "people.csv", "-o", "scores.parquet", "-q", *options)
    assert (ended.code, ended.err) == (0, "")
    assert_written(folder / "scores.parquet", gpupif.score(FRAME, "emd", distances={"sex": "nominal", "age": distance}))


PRIORS_JSON = [
    '{"age": {"39": 0.5, "40": 0.25, "41": 0.25}, "sex": {"f": 0.5, "m": 0.3, "": 0.2}}',
    '{"age": [[39, 0.5], [40, 0.25], [41, 0.25]], "sex": [["f", 0.5], ["m", 0.3], [null, 0.2]]}',
]


@pytest.mark.parametrize("text", PRIORS_JSON)
def test_priors_are_read_from_a_json_file(run, folder, text):
    (folder / "priors.json").write_text(text)
    ended = run("score", "people.csv", "-o", "scores.csv", "--priors", "priors.json", "--measures", "cig,prior")
    assert ended.code == 0, ended.err
    assert_written(folder / "scores.csv", gpupif.score(FRAME, ["cig", "prior"], priors=PRIORS))


def test_json_priors_fit_values_that_are_no_text(run, folder):
    """Numbers, truth values, dates and a text that could stand for a missing value, beside a missing value."""
    table = "rate,yes,day,note\n1.5,true,2000-01-01,None\n2,false,2000-01-02,\n2,true,2000-01-01,x\n"
    (folder / "t.csv").write_text(table)
    priors = {
        "rate": {"1.5": 0.5, "2": 0.5},
        "yes": {"true": 0.25, "false": 0.75},
        "day": {"2000-01-01": 0.125, "2000-01-02": 0.875},
        "note": {"None": 0.5, "": 0.25, "x": 0.25},
    }
    (folder / "priors.json").write_text(json.dumps(priors))
    ended = run("score", "t.csv", "-o", "scores.csv", "--priors", "priors.json", "--measures", "prior")
    assert ended.code == 0, ended.err
    expected = [[0.5, 0.25, 0.125, 0.5], [0.5, 0.75, 0.875, 0.25], [0.5, 0.25, 0.125, 0.25]]
    assert pd.read_csv("scores.csv", engine="pyarrow").to_numpy().tolist() == expected


def test_the_separator_of_a_file_may_be_given(run, folder):
    (folder / "people.txt").write_text(CSV.replace(",", ":"))
    assert run("score", "people.txt", "-o", "scores.parquet", "--sep", ":", "--quiet").code == 0
    assert_written(folder / "scores.parquet", gpupif.score(FRAME, ["cig", "csf", "wcig"]))


@pytest.mark.parametrize("source", ["people.csv", "people.parquet", "parts"])
@pytest.mark.parametrize("output", ["scores.parquet", "scores.csv", "scores.feather"])
def test_keep_input_writes_the_table_beside_the_scores(run, folder, source, output):
    pq.write_table(pa.Table.from_pandas(FRAME), "people.parquet")
    (folder / "parts").mkdir()
    pq.write_table(pa.Table.from_pandas(FRAME), "parts/1.parquet")
    ended = run("score", source, "-o", output, "--keep-input", "--columns", "sex,a=b", "--known", "a=b")
    assert ended.code == 0, ended.err
    scores = gpupif.score(FRAME, ["cig", "csf", "wcig"], columns=["sex", "a=b"], known=["a=b"])
    assert_written(folder / output, scores, before=FRAME.columns)
    if output == "scores.csv":
        pd.testing.assert_frame_equal(
            pd.read_csv(output, engine="pyarrow")[list(FRAME.columns)], pd.read_csv("people.csv", engine="pyarrow")
        )


@pytest.mark.parametrize(
    ("ending", "limit", "output"),
    covering(2, ["parquet", "feather"], [(), ("--memory-limit", "16GiB")], ["out.parquet", "out.feather", "out"]),
)
def test_the_table_beside_scores_has_the_types_of_its_file(run, folder, ending, limit, output):
    """Text that the file has as large_string was string in the scores of a table that was read as a whole."""
    given = pa.table(
        {
            "large": pa.array(["x", "y", None] * 10, pa.large_string()),
            "text": pa.array(["x", "y", None] * 10),
            "coded": pa.array(["x", "y", None] * 10).dictionary_encode(),
            "date": pa.array(range(30), pa.date32()),
            "when": pa.array(range(30), pa.timestamp("ms", "UTC")),
            "decimal": pa.array(range(30)).cast(pa.decimal128(20, 1)),
            "small": pa.array([1, 2, None] * 10, pa.int8()),
            "single": pa.array([1.5, 2.5, None] * 10, pa.float32()),
        }
    )
    if ending == "parquet":
        pq.write_table(given, "in.parquet")
        expected = pq.read_table("in.parquet")
    else:
        feather.write_feather(given, "in.feather")
        expected = feather.read_table("in.feather")
    ended = run("score", f"in.{ending}", "-o", output, "--keep-input", "--measures", "cig", *limit)
    assert ended.code == 0, ended.err
    found = feather.read_table(output) if output.endswith("feather") else pq.read_table(output)
    assert found.select(expected.column_names).equals(expected)


def test_overwrite_replaces_the_output_and_quiet_prints_nothing(run, folder):
    (folder / "scores.parquet").write_bytes(b"what stood here before")
    ended = run("score", "people.csv", "-o", "scores.parquet", "--overwrite", "-q")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert_written(folder / "scores.parquet", gpupif.score(FRAME, ["cig", "csf", "wcig"]))
    assert sorted(path.name for path in folder.iterdir()) == ["people.csv", "scores.parquet"]


@pytest.mark.filterwarnings("default::gpupif.errors.NearlyUniqueWarning")
def test_a_warning_is_one_line(run, folder):
    (folder / "ids.csv").write_text("id,sex\n" + "".join(f"{number},f\n" for number in range(60)))
    ended = run("score", "ids.csv", "-o", "scores.parquet", "--json")
    assert ended.err.startswith("gpupif: warning: column 'id': 60 distinct values in 60 rows.")
    assert ended.err.count("\n") == 1
    assert json.loads(ended.out)["rows"] == 60


@pytest.mark.slow
@pytest.mark.subprocess
def test_a_process_writes_scores_and_refuses_an_existing_output(folder):
    ended = start("score", "people.csv", "-o", "scores.parquet", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)["rows"] == 5
    assert_written(folder / "scores.parquet", gpupif.score(FRAME, ["cig", "csf", "wcig"]))
    assert_refused(start("score", "people.csv", "-o", "scores.parquet"), ["scores.parquet", "exists", "--overwrite"])


def on_terminal(*arguments):
    """Run the command line with standard error on a terminal: what it shows there, and its standard output."""
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=writer, env=environment) as process:
        os.close(writer)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(reader, 1 << 16):
                shown += part
        os.close(reader)
        out = process.stdout.read()
    assert process.returncode == 0
    return shown, out


@pytest.mark.slow
@pytest.mark.subprocess
def test_the_progress_bar_shows_only_on_a_terminal(folder):
    shown, out = on_terminal("score", "people.csv", "-o", "1.csv", "--json")
    assert [word for word in (b"encode", b"/3", b"columns", b"score", b"/15", b"cells") if word not in shown] == []
    assert json.loads(out)["rows"] == 5
    assert on_terminal("score", "people.csv", "-o", "2.csv", "-q") == (b"", b"")
    ended = start("score", "people.csv", "-o", "3.csv", "-q")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


@pytest.mark.slow
@pytest.mark.subprocess
def test_a_warning_comes_if_one_column_alone_is_scored(folder):
    loud = start("score", "people.csv", "-o", "one.csv", "--columns", "age", "--json")
    assert loud.err.startswith("gpupif: warning: --columns: only 'age'")
    assert "--known" in loud.err
    assert start("score", "people.csv", "-o", "two.csv", "--columns", "age", "--quiet").err == ""
