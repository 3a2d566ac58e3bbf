"""The command line: what it writes and prints, and that every error is one line, exit code 2, and no file."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.gpu.status import CudaStatus, Gpu
from tests.helpers.command_line import (
    COMMAND,
    CSV,
    FRAME,
    LIMITED,
    PRIORS,
    assert_refused,
    assert_written,
    contents,
    start,
    without_compilation,
)


@pytest.mark.parametrize("output", ["scores.parquet", "scores.csv", "scores.feather"])
def test_score(run, folder, output):
    ended = run("score", "people.csv", "-o", output)
    assert (ended.code, ended.err) == (0, "")
    assert_written(folder / output, gpupif.score(FRAME, ["cig", "csf", "wcig"]))
    assert f"Scores written to {output}" in ended.out


def test_summary(run):
    lines = run("score", "people.csv", "--output", "scores.parquet").out.splitlines()
    scores = gpupif.score(FRAME)
    assert lines[0] == f"5 rows x 3 columns scored, 4 distinct rows, device {scores.device}"
    assert [stage.split()[0] for stage in lines[1].split(", ")] == ["read", "encode", "score", "write"]
    assert lines[1].count(" s (") == lines[1].count(" cells/s)") == 4
    pif = next(line for line in lines if "PIF" in line)
    shown = [f"PIF {n}: {value:.3f}" for n, value in zip((50, 95, 99, 100), scores.pif([50, 95, 99, 100]), strict=True)]
    assert pif.split("   ")[1:] == shown
    riskiest = lines[lines.index(next(line for line in lines if "Riskiest cells" in line)) :]
    for key in ("row", "column", "value", "cig", "csf", "posterior", "prior", "cohort_size"):
        assert key in riskiest[2].split(" ")
    first = scores.top(1).iloc[0]
    cells = [cell.strip() for cell in riskiest[4].strip("│").split("│")]
    assert cells[:4] == [str(first["row"]), first["column"], str(first["value"]), f"{first['cig']:.4g}"]
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
    (["--device", "cpu", "--gpu-grouping", "auto"], {}),
]


@pytest.mark.parametrize(("options", "arguments"), OPTIONS)
def test_options_and_json(run, folder, options, arguments):
    ended = run("score", "people.csv", "-o", "scores.parquet", "--json", *options)
    assert (ended.code, ended.err) == (0, "")
    arguments = {"measures": ["cig", "csf", "wcig"], **arguments}
    assert_written(folder / "scores.parquet", gpupif.score(FRAME, **arguments))
    document = json.loads(ended.out, parse_constant=pytest.fail)
    scores = gpupif.score("people.csv", **arguments)
    expected = json.loads(scores.summary().to_json())
    stages = document.pop("stages")
    assert list(stages) == ["read", "encode", "score", "write"]
    for stage in stages.values():
        assert stage["cells_per_second"] * stage["seconds"] == pytest.approx(expected["cells"])
    expected.pop("stages")
    assert document == {"gpupif": gpupif.__version__, "input": "people.csv", "output": "scores.parquet", **expected}


@pytest.mark.parametrize(
    ("text", "distance"),
    [
        ('["41", "39", "40"]', [41, 39, 40]),
        ('{"39": ["x"], "40": ["x"], "41": ["y"]}', {39: ["x"], 40: ["x"], 41: ["y"]}),
        ("[41, 39, 40]", [41, 39, 40]),
    ],
)
def test_distances(run, folder, text, distance):
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
def test_priors(run, folder, text):
    (folder / "priors.json").write_text(text)
    ended = run("score", "people.csv", "-o", "scores.csv", "--priors", "priors.json", "--measures", "cig,prior")
    assert ended.code == 0, ended.err
    assert_written(folder / "scores.csv", gpupif.score(FRAME, ["cig", "prior"], priors=PRIORS))


def test_priors_of_values_that_are_no_text(run, folder):
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


def test_separator(run, folder):
    (folder / "people.txt").write_text(CSV.replace(",", ":"))
    assert run("score", "people.txt", "-o", "scores.parquet", "--sep", ":", "--quiet").code == 0
    assert_written(folder / "scores.parquet", gpupif.score(FRAME, ["cig", "csf", "wcig"]))


@pytest.mark.parametrize("source", ["people.csv", "people.parquet", "parts"])
@pytest.mark.parametrize("output", ["scores.parquet", "scores.csv", "scores.feather"])
def test_keep_input(run, folder, source, output):
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


def test_overwrite_and_quiet(run, folder):
    (folder / "scores.parquet").write_bytes(b"what stood here before")
    ended = run("score", "people.csv", "-o", "scores.parquet", "--overwrite", "-q")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert_written(folder / "scores.parquet", gpupif.score(FRAME, ["cig", "csf", "wcig"]))
    assert sorted(path.name for path in folder.iterdir()) == ["people.csv", "scores.parquet"]


@pytest.mark.filterwarnings("default::gpupif.NearlyUniqueWarning")
def test_warning_is_one_line(run, folder):
    (folder / "ids.csv").write_text("id,sex\n" + "".join(f"{number},f\n" for number in range(60)))
    ended = run("score", "ids.csv", "-o", "scores.parquet", "--json")
    assert ended.err.startswith("gpupif: warning: column 'id': 60 different values in 60 rows.")
    assert ended.err.count("\n") == 1
    assert json.loads(ended.out)["rows"] == 60


def test_demo(run):
    ended = run("demo", "--rows", "1000")
    assert (ended.code, ended.err) == (0, "")
    assert "census of 1,000 people" in ended.out
    assert "1,000 rows x 10 columns scored" in ended.out
    assert "PIF 95: " in ended.out
    assert "gpupif score" in ended.out
    document = json.loads(run("demo", "--rows", "1000", "--json").out)
    expected = json.loads(gpupif.score(gpupif.datasets.census(1_000), ["cig", "csf", "wcig"]).summary().to_json())
    assert [key for key in ("rows", "device", "columns", "pif", "top") if document[key] != expected[key]] == []


def test_info(run, monkeypatch):
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

pytestmark = pytest.mark.every_engine

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


def test_info_without_cudf(folder):
    script = WITHOUT_CUDF + "from gpupif.cli import main as cli\nsys.argv[1:] = ['info', '--json']\ncli.main()"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    facts = json.loads(ended.stdout)
    expected = "not installed: needed for frames of cuDF, reading files on the GPU, grouping rows there by hashing"
    assert facts["cudf"].startswith(expected)
    assert facts["numba"] == version("numba")


def test_info_of_a_gpu_without_cudf(run, monkeypatch):
    status = CudaStatus([Gpu("Card 1", (9, 0))], [0], no_cudf="cudf 26.6.0 is too old")
    monkeypatch.setattr("gpupif.cli.info.cuda_status", lambda: status)
    monkeypatch.setattr("gpupif.cli.info.installed_version", {"cudf": "26.6.0"}.get)
    monkeypatch.setattr("gpupif.engines.cuda.engine.whole_tables", lambda device: "free")
    facts = json.loads(run("info", "--json").out)
    assert facts["engine"] == "cuda"
    assert facts["cudf"] == "26.6.0, not used: cudf 26.6.0 is too old"
    assert facts["cupy"] == "not installed: needed for GPUs"


GROUPED = pytest.mark.parametrize(
    "command", ["score people.csv -o s.csv", "risk people.csv --quasi-identifiers age", "demo"]
)


@GROUPED
def test_a_way_of_gpus_without_a_gpu(run, folder, monkeypatch, command):
    monkeypatch.setattr("gpupif.gpu.status.cuda_status", lambda: CudaStatus(reason="there is none"))
    ended = run(*command.split(), "--gpu-grouping", "rotation")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.endswith(
        "gpupif: error: --gpu-grouping rotation is a way of GPUs, and none can be used here: there is none. Use "
        "--gpu-grouping auto, or leave it out.\n"
    )
    assert not (folder / "s.csv").exists()


@GROUPED
def test_hashing_without_cudf(run, folder, monkeypatch, command):
    status = CudaStatus([Gpu("Card 1", (9, 0))], [0], no_cudf="the package cudf is not installed: pip install it")
    monkeypatch.setattr("gpupif.gpu.status.cuda_status", lambda: status)
    ended = run(*command.split(), "--gpu-grouping", "cudf")
    assert (ended.code, ended.out) == (2, "")
    assert without_compilation(ended.err) == (
        "gpupif: error: --gpu-grouping cudf cannot be used here: the package cudf is not installed: pip install it. "
        "Use --gpu-grouping rotation or --gpu-grouping auto.\n"
    )
    assert list(folder.iterdir()) == [folder / "people.csv"]


def test_version_and_help(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    ended = run("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"gpupif {gpupif.__version__}\n", "")
    shown = run("--help")
    assert shown.code == 0
    assert [name for name in ("score", "demo", "info", "--version") if name not in shown.out] == []
    shown = run("score", "--help")
    assert shown.code == 0
    options = "output columns measures known attacker priors accuracies accuracy weights missing device dtype sep"
    options += " gpu-grouping keep-input overwrite json quiet"
    assert [name for name in options.split() if f"--{name}" not in shown.out] == []


# Without -o, the output is scores.parquet.
BAD = {
    "no order": (
        ["people.csv", "--measures", "emd", "--distance", "sex=ordered"],
        ["--distance: column 'sex'", "order"],
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
def test_bad_input(run, folder, monkeypatch, arguments, fragments):
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
def test_bad_priors(run, folder, text, fragments):
    (folder / "priors.json").write_text(text)
    ended = run("score", "people.csv", "-o", "scores.parquet", "--priors", "priors.json")
    assert_refused(ended, ["priors", *fragments])
    assert not (folder / "scores.parquet").exists()


def test_priors_that_are_not_utf8(run, folder):
    (folder / "priors.json").write_bytes('{"ü": 1}'.encode("latin-1"))
    ended = run("score", "people.csv", "-o", "scores.parquet", "--priors", "priors.json")
    assert_refused(ended, ["priors.json", "UTF-8"])


@pytest.mark.parametrize("rows", ["0", "-5"])
def test_bad_demo(run, rows):
    assert_refused(run("demo", "--rows", rows), ["rows", f"got {rows}"])


def test_process(folder):
    ended = start("score", "people.csv", "-o", "scores.parquet", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)["rows"] == 5
    assert_written(folder / "scores.parquet", gpupif.score(FRAME, ["cig", "csf", "wcig"]))
    assert_refused(start("score", "people.csv", "-o", "scores.parquet"), ["scores.parquet", "exists", "--overwrite"])


def test_full_disk(folder):
    """Files of this process may not grow beyond 1 MB: the write fails in the middle, the old output stays."""
    gpupif.datasets.census(20_000).to_csv("census.csv", index=False)
    gpupif.score("census.csv", ["cig", "csf", "wcig"])
    (folder / "scores.csv").write_text("what stood here before")
    before = contents(folder)
    arguments = ["score", "census.csv", "-o", "scores.csv", "--overwrite"]
    ended = start(*arguments, command=[sys.executable, "-c", LIMITED, *COMMAND])
    assert_refused(ended, ["scores.csv", "could not be written", "File too large"])
    assert contents(folder) == before


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


def test_progress_bar_only_on_a_terminal(folder):
    shown, out = on_terminal("score", "people.csv", "-o", "1.csv", "--json")
    assert [word for word in (b"encode", b"/3", b"columns", b"score", b"/15", b"cells") if word not in shown] == []
    assert json.loads(out)["rows"] == 5
    assert on_terminal("score", "people.csv", "-o", "2.csv", "-q") == (b"", b"")
    ended = start("score", "people.csv", "-o", "3.csv", "-q")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_warning_where_one_column_alone_is_scored(folder):
    loud = start("score", "people.csv", "-o", "one.csv", "--columns", "age", "--json")
    assert loud.err.startswith("gpupif: warning: --columns: only 'age'")
    assert "--known" in loud.err
    assert start("score", "people.csv", "-o", "two.csv", "--columns", "age", "--quiet").err == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["score", "people.csv"], "Missing option '-o' / '--output'. `gpupif score --help`"),
        (["score", "people.csv", "-o", "x.parquet", "--knwon", "a"], "No such option: --knwon"),
        (["score", "people.csv", "-o", "x.parquet", "--known-any", "two"], "'--known-any': expected a whole number."),
        (["scores"], "No such command 'scores'."),
    ],
)
def test_wrong_options_are_one_line(run, arguments, said):
    assert_refused(run(*arguments), [said, "--help` says what there is."])
