"""`gpupif suda`."""

from __future__ import annotations

import json

import polars as pl
import pytest

from tests.helpers.naive_suda import EXAMPLE

pytestmark = pytest.mark.every_engine


def test_the_command_finds_special_uniques_as_text_and_json(folder, run):
    EXAMPLE.to_csv(folder / "labour.csv", index=False)
    told = run("suda", "labour.csv", "--sampling-fraction", "0.01", "--device", "cpu")
    assert (told.code, told.err) == (0, "")
    for part in ("4 of 10 rows (40 %)", "4 rows unique on all columns", "Rows at the highest risk", "residence", "DIS"):
        assert part in told.out
    told = run("suda", "labour.csv", "--json", "--top", "2", "--max-size", "2", "--columns", "labour,residence,gender")
    document = json.loads(told.out)
    assert (told.code, document["input"], document["rows"], document["max_size"]) == (0, "labour.csv", 10, 2)
    assert len(document["top"]) == 2
    assert [record["column"] for record in document["columns"]] == ["labour", "residence", "gender"]
    told = run("suda", "labour.csv", "-o", "scores.parquet", "--contributions", "--memory-limit", "4GiB")
    assert (told.code, told.out.splitlines()[-1]) == (0, "Scores written to scores.parquet")
    written = pl.read_parquet(folder / "scores.parquet")
    assert written["suda"].to_list() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    assert "contribution_gender" in written.columns
    told = run("suda", "labour.csv", "-o", "scores.parquet", "-q", "--overwrite")
    assert (told.code, told.out, told.err) == (0, "", "")
    assert "contribution_gender" not in pl.read_parquet(folder / "scores.parquet").columns


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.csv"], "none.csv: no such file"),
        (
            ["people.csv", "--max-size", "9"],
            "--max-size: expected at most 3, the number of columns, got 9. Give --max-size 3.",
        ),
        (["people.csv", "--top", "0"], "--top: expected a whole number of rows"),
        (["people.csv", "--columns", "age,job"], "no column 'job'"),
        (["people.csv", "--missing", "error"], "missing value"),
        (["people.csv", "--device", "gpu"], "--device: expected one of auto, cpu, cuda"),
        (["people.csv", "--memory-limit", "1MB"], "--memory-limit: expected at least"),
        (["people.csv", "--sampling-fraction", "2"], "--sampling-fraction: expected a number above 0"),
        (["people.csv", "-o", "people.csv"], "the output is the input"),
        (["people.csv", "-o", "scores.doc"], "expected an output name ending in"),
        (["people.csv", "--contributions"], "--contributions: goes with --output"),
        (["people.csv", "--overwrite"], "--overwrite: goes with --output"),
        (["people.csv", "--compression", "snappy"], "--compression: goes with --output"),
    ],
)
def test_bad_arguments_are_refused(folder, run, arguments, words):
    told = run("suda", *arguments)
    assert (told.code, told.out) == (2, "")
    assert words in told.err
    assert told.err.startswith("gpupif: error: ")
    assert told.err.count("\n") == 1
