"""Every error of the command line is one line, exit code 2, and no file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.cli import main as cli
from gpupif.gpu.status import CudaStatus, Gpu
from tests.helpers.command_line import (
    COMMAND,
    CSV,
    FRAME,
    LIMITED,
    assert_refused,
    contents,
    start,
    without_compilation,
)

pytestmark = pytest.mark.every_engine

GROUPED = pytest.mark.parametrize(
    "command", ["score people.csv -o s.csv", "risk people.csv --quasi-identifiers age", "demo"]
)


@GROUPED
def test_a_grouping_of_gpus_is_refused_without_a_gpu(run, folder, monkeypatch, command):
    monkeypatch.setattr("gpupif.gpu.status.cuda_status", lambda: CudaStatus(reason="there is none"))
    ended = run(*command.split(), "--gpu-grouping", "rotation")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.endswith(
        "gpupif: error: --gpu-grouping rotation needs a GPU, and no GPU can be used here: there is none. Use "
        "--gpu-grouping auto, or leave it out.\n"
    )
    assert not (folder / "s.csv").exists()


@GROUPED
def test_hashing_is_refused_without_cudf(run, folder, monkeypatch, command):
    status = CudaStatus([Gpu("Card 1", (9, 0))], [0], no_cudf="the package cudf is not installed: pip install it")
    monkeypatch.setattr("gpupif.gpu.status.cuda_status", lambda: status)
    ended = run(*command.split(), "--gpu-grouping", "cudf")
    assert (ended.code, ended.out) == (2, "")
    assert without_compilation(ended.err) == (
        "gpupif: error: --gpu-grouping cudf cannot be used here: the package cudf is not installed: pip install it. "
        "Use --gpu-grouping rotation or --gpu-grouping auto.\n"
    )
    assert list(folder.iterdir()) == [folder / "people.csv"]


# Without -o, the output is scores.parquet.
BAD = {
    "no order": (
        ["people.csv", "--measures", "emd", "--distance", "sex=ordered"],
        ["--distance: column 'sex'", "order"],
    ),
    "no distance": (
        ["people.csv", "--measures", "emd", "--distance", "sex=foo"],
        ["--distance: column 'sex': expected ordered, nominal, a .csv file with a hierarchy", "got 'foo'"],
    ),
    "weights in words": (["people.csv", "--weights", "sex"], ["--weights: column 'sex'", "Name a column of numbers"]),
    "lacking rows of no population": (
        ["people.csv", "--population-lacks", "count"],
        ["--population-lacks: goes with --population"],
    ),
    "any attacker who knows too many": (
        ["people.csv", "--attacker", "a=sex", "--attacker-any", "n=3"],
        ["--attacker-any: 'n': expected at most 2", "with --among"],
    ),
    "an attacker beside any": (
        ["people.csv", "--attacker-any=n=1", "--attacker", "b=agee"],
        ["--attacker: 'b': no column 'agee'"],
    ),
    "unknown column": (["people.csv", "--columns", "agee"], ["'agee'", "'age', 'sex', 'a=b'"]),
    "no column": (["people.csv", "--columns", ""], ["columns", "at least one"]),
    "line break in columns": (["people.csv", "--columns", "age\nsex"], ["columns"]),
    "missing file": (["nobody.csv"], ["nobody.csv", "no such file"]),
    "file of another kind": (["csv.parquet"], ["csv.parquet", "Parquet"]),
    "rows of different length": (["ragged.csv"], ["ragged.csv", "Expected 2 columns, got 3"]),
    "Latin-1": (["latin.csv"], ["latin.csv", "UTF-8"]),
    "output exists": (["people.csv", "-o", "old.csv"], ["old.csv", "exists", "--overwrite"]),
    "output in a missing folder": (["people.csv", "-o", "no/scores.csv"], ["no/scores.csv", "no folder no"]),
    "output is the input": (["people.csv", "-o", "people.csv", "--overwrite"], ["people.csv", "is the input"]),
    "output is a link to the input": (["people.csv", "-o", "link.csv", "--overwrite"], ["link.csv", "is the input"]),
    "output inside the input": (["parts", "-o", "parts/scores.parquet"], ["parts/scores.parquet", "inside"]),
    "output with another ending": (
        ["people.csv", "-o", "scores.xlsx"],
        ["scores.xlsx", ".parquet", ".csv", ".feather"],
    ),
    "names collide": (["collide.csv", "--keep-input"], ["'cig_age'", "Rename"]),
    "accuracy without number": (["people.csv", "--accuracy", "age"], ["--accuracy", "COLUMN=NUMBER", "'age'"]),
    "accuracy too high": (["people.csv", "--accuracy", "age=2"], ["'age'", "from 0 to 1", "2.0"]),
    "accuracy of nobody": (["people.csv", "--accuracy", "agee=1"], ["accurac", "'agee'", "'age', 'sex'"]),
    "no priors file": (["people.csv", "--priors", "nobody.json"], ["--priors", "nobody.json", "No such file"]),
    "no GPU": (["people.csv", "--device", "cuda"], ["'cuda'", "no GPU here", "cpu"]),
    "unknown device": (["people.csv", "--device", "tpu"], ["device", "auto, cpu, cuda", "'tpu'"]),
    "unknown grouping": (
        ["people.csv", "--gpu-grouping", "rotate"],
        ["--gpu-grouping: expected one of auto, cudf, rotation; got 'rotate'.", "Did you mean 'rotation'?"],
    ),
    "grouping without a GPU": (
        ["people.csv", "--device", "cpu", "--gpu-grouping", "cudf"],
        ["--gpu-grouping: 'cudf' is a way of GPUs, and --device cpu was asked for"],
    ),
    "missing values": (["people.csv", "--missing", "error"], ["'sex'", "1 missing", "row 3"]),
    "unknown dtype": (["people.csv", "--dtype", "int8"], ["dtype", "'int8'", "'float32'"]),
    "unknown measure": (["people.csv", "--measures", "cig,risk"], ["measures", "'risk'", "cohort_size"]),
    "no measure": (["people.csv", "--measures", ""], ["measures", "cohort_size"]),
    "separator too long": (["people.csv", "--sep", "ab"], ["--sep", "one", "character", "'ab'"]),
    "separator \\t in letters": (["people.csv", "--sep", "\\t"], ["--sep", "one", "character", "$'\\t'"]),
    "separator that is not there": (["people.csv", "--sep", ";"], ["people.csv", "one column", "--sep ','"]),
    "accuracy twice": (["people.csv", "--accuracy", "age=1", "--accuracy", "age=0"], ["--accuracy", "'age'", "twice"]),
    "accuracies in one": (["people.csv", "--accuracy", "age=1,sex=0.5"], ["--accuracy", "once per column"]),
    "comma too many": (["people.csv", "--columns", "age,"], ["--columns", "comma too many"]),
    "spreadsheet": (["people.xlsx"], ["people.xlsx", "as CSV"]),
    "empty separator": (["people.csv", "--sep", ""], ["--sep", "one", "character", "''"]),
    "separator é": (["people.csv", "--sep", "é"], ["--sep", "character", "'é'"]),
    "separator quote": (["people.csv", "--sep", '"'], ["--sep", "character"]),
}


@pytest.mark.parametrize(("arguments", "fragments"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_one_line(run, folder, monkeypatch, arguments, fragments):
    monkeypatch.setattr("gpupif.gpu.status.cuda_status", lambda: CudaStatus(reason="no GPU here"))
    (folder / "csv.parquet").write_text(CSV)
    (folder / "ragged.csv").write_text("age,sex\n1,f\n2,m,3\n")
    (folder / "people.xlsx").write_bytes(b"PK")
    (folder / "latin.csv").write_bytes("age,name\n1,Jürgen\n".encode("latin-1"))
    (folder / "collide.csv").write_text("age,cig_age\n1,2\n")
    (folder / "old.csv").write_text("what stood here before")
    (folder / "link.csv").symlink_to("people.csv")
    (folder / "parts").mkdir()
    pq.write_table(pa.Table.from_pandas(FRAME), "parts/1.parquet")
    before = contents(folder)
    output = [] if "-o" in arguments else ["-o", "scores.parquet"]
    assert_refused(run("score", *arguments, *output), fragments)
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ('{"age": ', ["line 1 column 9"]),
        ('{"age": 3}', ["'age'", "expected an object or a list"]),
        ('{"age": [[39, 0.5, 1]]}', ["'age'", "expected an object or a list"]),
        ('{"age": [[[39], 0.5]]}', ["'age'", "[39]"]),
        ('{"age": [[{"a": 1}, 0.5]]}', ["'age'"]),
        ('{"age": {"39": "0.5", "40": 0.25, "41": 0.25}}', ["'age'", "between 0 and 1", "'0.5'"]),
        ('{"age": {"39": NaN, "40": 0.25, "41": 0.25}}', ["'age'", "between 0 and 1", "nan"]),
        ('{"age": {"39": 0.5, "40": 0.25, "41": 0.2}}', ["'age'", "sum to 1", "0.95"]),
        ('{"age": {"39": 0.2, "39": 0.5, "40": 0.5}}', ["'39'", "twice"]),
        ('{"agee": {"39": 1.0}}', ["'agee'", "'age', 'sex', 'a=b'"]),
    ],
)
def test_bad_priors_are_refused(run, folder, text, fragments):
    (folder / "priors.json").write_text(text)
    ended = run("score", "people.csv", "-o", "scores.parquet", "--priors", "priors.json")
    assert_refused(ended, ["priors", *fragments])
    assert not (folder / "scores.parquet").exists()


def test_priors_that_are_not_utf8_are_refused(run, folder):
    (folder / "priors.json").write_bytes('{"ü": 1}'.encode("latin-1"))
    ended = run("score", "people.csv", "-o", "scores.parquet", "--priors", "priors.json")
    assert_refused(ended, ["priors.json", "UTF-8"])


@pytest.mark.slow
@pytest.mark.subprocess
def test_a_full_disk_leaves_the_old_output(folder):
    """Files of this process may not grow beyond 1 MB: the write fails in the middle, the old output stays."""
    gpupif.datasets.census(20_000).to_csv("census.csv", index=False)
    gpupif.score("census.csv", ["cig", "csf", "wcig"])
    (folder / "scores.csv").write_text("what stood here before")
    before = contents(folder)
    arguments = ["score", "census.csv", "-o", "scores.csv", "--overwrite"]
    ended = start(*arguments, command=[sys.executable, "-c", LIMITED, *COMMAND])
    assert_refused(ended, ["scores.csv", "could not be written", "File too large"])
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["score", "people.csv", "-o", "x.parquet", "--knwon", "a"], "No such option: --knwon"),
        (["score", "people.csv", "-o", "x.parquet", "--known-any", "two"], "'--known-any': expected a whole number."),
        (["scores"], "No such command 'scores'."),
        (["score", "people.csv", "--min-cig", "6,5"], "such as 0.2. A number has a decimal point: 6.5, not 6,5. `"),
        (["risk", "people.csv", "--threshold=-,5"], "such as 0.2. A number has a decimal point: -0.5, not -,5. `"),
        (["score", "people.csv", "-o"], "Option '-o' requires an argument. `gpupif score --help`"),
        (["suda", "people.csv", "--columns"], "Option '--columns' requires an argument. `gpupif suda --help`"),
    ],
)
def test_wrong_options_give_an_error_of_one_line(run, arguments, said):
    assert_refused(run(*arguments), [said, "--help` says what there is."])


PYTHON = r"\b(None|True|False|tuples|dictionary|max_size|memory_limit)\b|gpupif\.|empty list|census\(|\b\w+=(?!\w+')"
WRONG_VALUES = {
    "demo --rows 0": "--rows: expected a whole number from 1 to 1000000000000, got 0; give the number of persons",
    "suda people.csv --max-size 9": "--max-size: expected at most 3, the number of columns, got 9. Give --max-size 3.",
    "toxic people.csv --alpha 1 --max-size 9": "Give --max-size 3.",
    "toxic people.csv --columns=": "--columns: expected at least one column, got none.",
    "score people.csv -o s.csv --columns=": "--columns: expected at least one column to score, got none.",
    "score people.csv -o s.csv --where csf>1 --rows-per-file 9": "--rows-per-file: goes with the scores of all cells",
    "score people.csv -o s --where csf>1 --rows-per-file 9": "--rows-per-file: goes with the scores of all cells",
    "score people.csv -o s.csv --memory-limit 700": "got 700. A number without a unit counts bytes: write 700MiB",
    "risk people.csv --quasi-identifiers age --models t": "Name one with --sensitive.",
    "suda people.csv --missing wildcard --sampling-fraction 0.1": (
        "Leave --sampling-fraction and --weights out, or use --missing ignore or category."
    ),
    "risk people.csv --quasi-identifiers age --sampling-fraction 5": "error: --sampling-fraction: expected a number",
    "global-risk people.csv --quasi-identifiers age,sex --sampling-fraction 0.1 --interactions sex:sex": (
        "--interactions: expected two or more different quasi-identifiers in each, got sex:sex. Write a:b; main effects"
    ),
    "score people.csv -o s.csv --measures emd --distance sex=ordered": "Give them in order, as a list in a .json file.",
    "global-risk people.csv --quasi-identifiers age,sex --sampling-fraction 0.1 --interactions all": (
        "--interactions: expected two-way|A:B,A:C; got 'all'."
    ),
    "compare people.csv people.csv --linkage all": "--linkage: expected auto|exact|none|ROWS; got 'all'.",
    "protect people.csv --require k>=2 --time-limit -1": "--time-limit: expected seconds above 0; got -1.0.",
    "protect people.csv --require k>2": "--require 'k>2': k is safer if it is higher: write k>=2.",
    "advise people.csv --criterion k>2": "--criterion 'k>2': k is safer if it is higher: write k>=2.",
}


@pytest.mark.parametrize(("command", "said"), WRONG_VALUES.items())
def test_an_error_names_the_option_and_no_argument_of_python(run, command, said):
    ended = run(*command.split())
    assert_refused(ended, [said])
    assert not re.search(PYTHON, ended.err)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("score people.csv -o s.csv --columns", "--columns"),
        ("score people.csv -o s.csv --known", "--known"),
        ("score people.csv -o s.csv --known-any 1 --among", "--among"),
        ("risk people.csv --quasi-identifiers", "--quasi-identifiers"),
        ("risk people.csv --quasi-identifiers sex --sensitive", "--sensitive"),
        ("protect people.csv --require k>=2 --quasi-identifiers", "--quasi-identifiers"),
        ("advise people.csv --columns", "--columns"),
        ("toxic people.csv --columns", "--columns"),
        ("suda people.csv --columns", "--columns"),
    ],
)
def test_a_column_that_is_named_twice_is_refused(run, command, option):
    assert_refused(run(*command.split(), "age,age"), [f"{option}: column 'age' is named twice. Name it once."])


def test_an_accuracy_with_a_decimal_comma_is_refused(run, folder):
    ended = run("score", "people.csv", "-o", "s.csv", "--accuracy", "age=0,5")
    assert_refused(ended, ["got 'age=0,5'. A number has a decimal point: 0.5, not 0,5."])


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_closed_stream_does_not_stop_the_command(run, monkeypatch, stream):
    """Python has None in place of a closed stream."""
    monkeypatch.setattr(sys, "argv", ["gpupif", "score", "people.csv", "-o", "scores.parquet"])
    monkeypatch.setattr(sys, stream, None)
    cli.main()
    assert Path("scores.parquet").exists()
    getattr(sys, stream).close()


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["score", "people.csv", "-o", "a.csv", "--columns", "age", "--columns=sex"], "--columns"),
        (
            ["protect", "people.csv", "--require", "k>=2", "--identifiers", "age", "--identifiers", "sex"],
            "--identifiers",
        ),
        (["nightly", "init", "people.csv", "-o", "a.toml", "--output", "b.toml"], "-o"),
    ],
)
def test_an_option_that_is_given_twice_is_refused(run, arguments, option):
    """The last value alone would count, so that a column named before it would be let out."""
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert option in ended.err
    assert "expected once, got 2 times, of which only the last would count. Give it once" in ended.err
    assert ended.err.count("\n") == 1


def test_options_that_may_be_repeated_and_flags_are_not_refused(run):
    options = ["--require", "k>=1", "--require", "uniques<=5", "-q", "-q"]
    assert run("protect", "people.csv", "--quasi-identifiers", "age", *options).code == 0


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("protect ids.csv --require k>=1", "--identifiers"),
        ("advise ids.csv", "--columns"),
        ("advise ids.csv --quasi-identifiers id,b", "--quasi-identifiers"),
        ("compare ids.csv ids.csv", "--columns"),
    ],
)
def test_one_warning_names_the_option_that_excludes_a_column(run, folder, command, option):
    rows = "".join(f"{row},{row % 3}\n" for row in range(60))
    (folder / "ids.csv").write_text(f"id,b\n{rows}")
    ended = run(*command.split())
    assert ended.code == 0, ended.err
    assert ended.err.count("distinct values in 60 rows") == 1
    assert f"Exclude it with {option} (an identifier)" in ended.err
    assert "different values" not in ended.err
