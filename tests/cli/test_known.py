"""`gpupif score --known`: any few of the columns."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

import gpupif
from gpupif.cli.main import app
from gpupif.cli.messages import as_options
from gpupif.errors import InputError

pytestmark = pytest.mark.every_engine


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_line_scores_any_known_columns(tmp_path):
    frame = gpupif.datasets.census(60, columns=5)
    table, output = tmp_path / "table.parquet", tmp_path / "scores.parquet"
    frame.to_parquet(table)
    result = run("score", table, "-o", output, "--known-any", 2, "--measures", "cig", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["known_any"]["scored"] == dict.fromkeys(frame, 6)
    expected = gpupif.score(frame, ["cig"], known=2)
    written = pd.read_parquet(output)
    for name in frame:
        assert written[f"cig_worst_{name}"].tolist() == expected.cig[name].tolist()
        assert written[f"cig_mean_{name}"].tolist() == expected.mean.cig[name].tolist()
    more = ("--among", "age,sex,region", "--columns", "education", "--subsets", 2, "--seed", 3, "--overwrite")
    result = run("score", table, "-o", output, "--known-any", 2, *more)
    assert result.exit_code == 0, result.output
    assert "2 subsets of 2 columns for each column, drawn of 3 (seed 3)" in result.stdout
    chosen = gpupif.score(
        frame, known=gpupif.AnyKnown(2, among=["age", "sex", "region"], subsets=2, seed=3), columns=["education"]
    )
    assert pd.read_parquet(output)["cig_worst_education"].tolist() == chosen.cig.education.tolist()


def test_a_warning_of_an_attacker_names_the_option():
    frame = gpupif.datasets.census(60, columns=4)
    with pytest.warns(gpupif.errors.NothingKnownWarning) as seen:
        gpupif.score(frame, columns=["age", "sex"], attackers={"n": ["age"]})
    message = as_options(str(seen[0].message), {"--attacker": "NAME=A,B", "--columns": "A,B"})
    assert message.startswith("--attacker: 'n': the attacker knows only 'age'")
    assert message.endswith("Name further columns with --attacker.")


def test_an_attacker_who_knows_any_columns_may_be_one_of_several(tmp_path):
    frame = gpupif.datasets.census(60, columns=4)
    table, output = tmp_path / "table.parquet", tmp_path / "scores.parquet"
    frame.to_parquet(table)
    attackers = ("--attacker", "neighbour=age,sex", "--attacker-any", "anyone=2", "--attacker-any", "pair=1")
    result = run("score", table, "-o", output, *attackers, "--among", "age,sex,region")
    assert result.exit_code == 0, result.output
    among = ["age", "sex", "region"]
    asked = {
        "neighbour": ["age", "sex"],
        "anyone": gpupif.AnyKnown(2, among=among),
        "pair": gpupif.AnyKnown(1, among=among),
    }
    expected = gpupif.score(frame, ["cig", "csf", "wcig"], attackers=asked).to_arrow().to_pandas()
    pd.testing.assert_frame_equal(pd.read_parquet(output), expected, check_exact=True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--known-any", "2", "--known", "age"], "--known-any: goes in place of --known"),
        (["--known-any", "9"], "known: expected at most 3"),
        (["--attacker-any", "a=9"], "attackers: 'a': expected at most 3"),
        (["--attacker", "b=age", "--attacker-any", "a=1", "--among", "x"], "attackers: 'a': among: no column 'x'"),
        (["--attacker-any", "a=two"], "--attacker-any: expected NAME=NUMBER, such as anyone=2; got 'a=two'"),
        (["--attacker-any", "2"], "--attacker-any: expected NAME=NUMBER"),
        (["--attacker-any", "a=1", "--attacker", "a=age"], "--attacker-any: 'a' is named twice"),
        (["--attacker", "a=age", "--subsets", "9"], "--subsets: goes with --known-any or --attacker-any"),
        (["--subsets", "9"], "--subsets: goes with --known-any"),
        (["--known-any", "1", "--subsets", "0"], "subsets: expected a whole number of subsets, 1 or more; got 0"),
        (["--known-any", "1", "--attacker", "a=age"], "attackers: expected attackers= or known="),
    ],
)
def test_bad_options_for_any_known_columns_are_refused(tmp_path, arguments, says):
    gpupif.datasets.census(60, columns=4).to_parquet(tmp_path / "table.parquet")
    result = run("score", tmp_path / "table.parquet", "-o", tmp_path / "scores.parquet", *arguments)
    assert isinstance(result.exception, InputError)
    assert says in str(result.exception)
    assert not (tmp_path / "scores.parquet").exists()
