"""Cells that are asked for in place of all scores: those that the oracle says, in every way to run."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import gpupif
from gpupif import AnyKnown, InputError
from tests.helpers.attacks import frames_of
from tests.helpers.command_line import contents
from tests.helpers.naive_cells import asked_cells
from tests.helpers.pieces import assert_same_summaries, in_pieces, write_parts
from tests.helpers.tables import frame_of
from tests.helpers.ways import MEMORY, without_index

MEASURES = ["csf", "cig", "cohort_size", "wcig"]


class Asked(NamedTuple):
    """Cells that are asked for, and what that means: of the scores of a cell by name, as files have them."""

    asked: dict
    holds: object = None
    risk: object = None

    @property
    def meant(self):
        return {"holds": self.holds, "top": self.asked.get("top"), "risk": self.risk}


# Rows that repeat, cohorts of one and of many, values that are missing.
PEOPLE = {
    "sex": [*"ffmm", None, *"mffmfm", None],
    "age": [30, 30, 40, 40, 30, 40, 50, 30, 40, 50, 30, 40],
    "town": ["A", "B", "A", "A", "B", "B", None, "A", "A", "B", "A", "B"],
    "job": [*"abaabbcabcab"],
    "people": [1, 0, 2, 0, 1, 3, 0, 1, 2, 0, 4, 1],
}
NAMES = ["sex", "age", "town", "job"]
ONE = {"columns": NAMES}
NAMED = {
    "columns": ["job", "town"],
    "attackers": {"friend": ["sex", "job"], "anybody": AnyKnown(1, among=["sex", "age", "town"])},
    "weights": "people",
    "population": {name: PEOPLE[name] * 2 for name in NAMES},
}
SAMPLED = {"columns": NAMES, "population": {name: PEOPLE[name] * 2 for name in NAMES}}
ANY_SAMPLED = SAMPLED | {"columns": ["job", "town"], "known": AnyKnown(1), "weights": "people"}
ANY_TWO = {"columns": NAMES, "known": 2, "weights": "people", "missing": "wildcard"}
SUPPRESSED = {"columns": ["job", "town", "sex"], "known": ["sex", "age", "town"], "missing": "wildcard"}


def worst(cell, measure, aggregate=max):
    """Over the two attackers of `NAMED`, of whom one has a worst score of his own."""
    return aggregate(cell[f"friend_{measure}"], cell[f"anybody_{measure}_worst"])


CASES = {
    "above": (ONE, Asked({"where": "cig >= 1.25"}, lambda cell: cell["cig"] >= 1.25)),
    "both": (
        ONE,
        Asked(
            {"where": "csf > .2 and (wcig < 0.4 OR cohort_size<=1)"},
            lambda cell: cell["csf"] > 0.2 and (cell["wcig"] < 0.4 or cell["cohort_size"] <= 1),
        ),
    ),
    "none": (ONE, Asked({"where": "cig > 1e3"}, lambda cell: False)),
    "all": (ONE, Asked({"where": "cig >= 0"}, lambda cell: True)),
    # Sizes repeat, and so do weighted scores; the lowest size is the riskiest.
    "top by size": (ONE, Asked({"top": 9, "by": "cohort_size"}, None, lambda cell: -cell["cohort_size"])),
    "top by weighted": (ONE, Asked({"top": 9, "by": "wcig"}, None, lambda cell: cell["wcig"])),
    "top above": (
        ONE,
        Asked({"where": "csf < 0.5", "top": 11}, lambda cell: cell["csf"] < 0.5, lambda cell: cell["cig"]),
    ),
    "more than there are": (ONE, Asked({"top": 10**6}, None, lambda cell: cell["cig"])),
    "several": (
        NAMED,
        Asked(
            {"where": "cig > 0.5 and population_size <= 3 and anybody_cig_mean < 2", "top": 8, "by": "csf"},
            lambda cell: (
                worst(cell, "cig") > 0.5 and worst(cell, "population_size", min) <= 3 and cell["anybody_cig_mean"] < 2
            ),
            lambda cell: worst(cell, "csf"),
        ),
    ),
    "sampled": (
        SAMPLED,
        Asked({"where": "cig > 0.5", "top": 9, "by": "csf"}, lambda cell: cell["cig"] > 0.5, lambda cell: cell["csf"]),
    ),
    "any, sampled": (ANY_SAMPLED, Asked({"where": "wcig_mean > 0.1"}, lambda cell: cell["wcig_mean"] > 0.1)),
    "any two": (
        ANY_TWO,
        Asked({"where": "csf_mean > 0.1"}, lambda cell: cell["csf_mean"] > 0.1),
    ),
    "unknown": (
        SUPPRESSED,
        Asked({"where": "csf < 1 or csf >= 1"}, lambda cell: not np.isnan(cell["csf"])),
    ),
}
QUICK = ["both", "top by size", "several", "any, sampled"]


def found_in(way, options, asked, dtype="float64"):
    table, options = frames_of(PEOPLE, options)
    return way.score(table, MEASURES, dtype=dtype, cells=asked.asked, **options)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float64") for name in CASES), *((name, "float32") for name in QUICK)]
)
def test_selected_cells_follow_their_definition(name, dtype):
    given, asked = CASES[name]
    table, options = frames_of(PEOPLE, given)
    scores = MEMORY.score(table, MEASURES, dtype=dtype, **options).frame
    expected = asked_cells(table, given["columns"], scores, **asked.meant)
    found = found_in(MEMORY, given, asked, dtype)
    pd.testing.assert_frame_equal(found, expected, check_exact=True, check_dtype=len(expected) > 0)
    assert (len(found) == 0) == (name == "none")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(pytest.param(name, "float64", marks=() if name in QUICK else pytest.mark.slow) for name in CASES),
        *(pytest.param(name, "float32", marks=pytest.mark.slow) for name in QUICK),
    ],
)
def test_every_way_selects_the_same_cells(way, name, dtype):
    given, asked = CASES[name]
    found = found_in(way, given, asked, dtype)
    pd.testing.assert_frame_equal(found, found_in(MEMORY, given, asked, dtype), check_exact=True)


def test_ties_are_ordered_by_row_and_column(way):
    """All cells have the same risk, over many chunks and partitions."""
    table = frame_of({name: list("ab" * 20) for name in "yxz"})
    found = way.score(table, "cig", known=["x"], cells={"top": 7})
    every = MEMORY.score(table, "cig", known=["x"], cells={"where": "cig >= 0"})
    expected = every.sort_values("cig", ascending=False, kind="stable").head(7).reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected)


TABLE = gpupif.datasets.census(60, columns=4, seed=3).sample(200, replace=True, random_state=4).reset_index(drop=True)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_parts(tmp_path_factory.mktemp("cells") / "in", TABLE, [20, 70])


@pytest.mark.parametrize(
    ("limit", "ending"),
    [
        *((None, ending) for ending in ("parquet", "csv", "feather")),
        ("8GiB", "parquet"),
        *(pytest.param("8GiB", ending, marks=pytest.mark.slow) for ending in ("csv", "feather")),
    ],
)
def test_a_file_of_cells_is_the_same_in_memory_and_beyond(run, folder, source, ending, limit):
    """The file describes its scores and is opened again."""
    options = ["--where", "csf > 0.2", "--min-cig", "1", "--top", "25", "--by", "csf"]
    with in_pieces(50, 70):
        ended = run("score", source, "-o", f"cells.{ending}", *options, *(["--memory-limit", limit] if limit else []))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[-1] == f"25 cells written to cells.{ending}; the summary is of all cells"
    expected = gpupif.score(TABLE, ["cig", "csf", "wcig"]).cells("csf > 0.2 and cig >= 1", top=25, by="csf")
    if ending == "csv":
        texts = csv.ConvertOptions(column_types={"value": pa.string()})
        assert csv.read_csv(folder / "cells.csv", convert_options=texts).equals(expected.to_arrow())
        return
    opened = gpupif.open_scores(folder / f"cells.{ending}")
    assert opened.cells().to_arrow().equals(expected.to_arrow())
    assert opened.cells().count() == 25
    assert opened.measures == ("cig", "csf", "wcig")
    assert opened.provenance["input"]["path"] == str(source)
    for ask in (lambda: opened.cig, lambda: opened.cells("cig > 2"), opened.frame, lambda: opened.top(3)):
        with pytest.raises(
            InputError, match=r"holds the 25 riskiest cells by csf where \(csf > 0\.2\) and cig >= 1\.0"
        ):
            ask()
    if ending == "parquet":
        assert_same_summaries(opened.summary(), summary_of(opened.summary()))
        opened.cells().write(folder / "again.parquet")
        assert gpupif.open_scores(folder / "again.parquet").cells().to_arrow().equals(expected.to_arrow())


def summary_of(like):
    """That of the table in memory, with the riskiest cells as files have them."""
    summary = without_index(gpupif.score(TABLE, ["cig", "csf", "wcig"]).summary())
    return replace(summary, top=summary.top.assign(value=like.top["value"]))


def test_a_frame_keeps_its_labels(tmp_path):
    table = TABLE.set_index(pd.Index([f"p{number}" for number in range(len(TABLE))], name="person"))
    cells = gpupif.score(table).cells(top=5)
    cells.write(tmp_path / "cells.parquet")
    found = pd.read_parquet(tmp_path / "cells.parquet")
    assert found.index.name == "person"
    assert found.index.tolist() == [f"p{row}" for row in found["row"]]
    top = gpupif.score(table).top(5)
    assert found["cig"].tolist() == top["cig"].tolist()
    assert found["row"].tolist() == top["row"].tolist()
    with pytest.raises(gpupif.errors.OutputError, match="two columns would be called 'row'"):
        gpupif.score(table.rename_axis("row")).cells(top=5)
    # Numbers in steps, which pandas stores as where they begin and end: not those of the cells.
    some = gpupif.score(TABLE.iloc[100:]).cells(top=100).to_pandas()
    assert some.index.tolist() == (100 + some["row"]).tolist()


def test_cells_of_worst_mean_and_one_attacker_match_the_frames():
    scores = gpupif.score(TABLE, "cig", attackers={"near": ["sex", "age"], "any": 1})
    for view in (scores.worst, scores.mean, scores.against("near"), scores.against("any").mean):
        frame = view.frame()
        cells = view.cells("cig > 1").to_pandas()
        names = cells.columns[3:].tolist()
        assert [f"{name}_{column}" for name in names for column in view.columns] == frame.columns.tolist()
        for cell in cells.to_dict("records"):
            for name in names:
                assert cell[name] == frame.loc[cell["row"], f"{name}_{cell['column']}"]
        assert len(cells) == int((view.cig > 1).sum().sum())


def test_summary_only_writes_no_scores(run, folder, source):
    """The summary is that of all scores, in memory and beyond it."""
    before = contents(folder)
    for options in ([], ["--memory-limit", "8GiB"]):
        with in_pieces(50, 70):
            ended = run("score", source, "--summary-only", "--json", *options)
        assert (ended.code, ended.err, contents(folder)) == (0, "", before)
        document = json.loads(ended.out)
        assert "output" not in document
        assert [column["cig_max"] for column in document["columns"]] == gpupif.score(TABLE).summary().columns[
            "cig_max"
        ].tolist()
    assert run("score", source, "--summary-only", "-o", "summary.json", "-q").code == 0
    written = json.loads((folder / "summary.json").read_text())
    assert written["pif"] == document["pif"]
    assert written["request"]["measures"] == ["cig", "csf", "wcig"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"measures": ["wcig", "cohort_size"]},
        {"attackers": {"near": ["sex", "age"], "any": AnyKnown(1)}},
        {"known": 1, "measures": ["csf"]},
        pytest.param(
            {"attackers": {"near": ["sex", "age"], "any": AnyKnown(1)}, "population": TABLE}, marks=pytest.mark.slow
        ),
    ],
    ids=["one", "weighted", "several", "any", "population"],
)
def test_a_summary_without_scores_is_that_of_all_scores(source, asked):
    of_files = asked | ({"population": source} if "population" in asked else {})
    with in_pieces(50, 70), gpupif.config(memory_limit="8GiB"):
        found = gpupif.score_files(source, summary_only=True, **of_files)
    expected = gpupif.score(TABLE, **asked)
    for name in found.attackers or [None]:
        mine, theirs = (one if name is None else one.against(name) for one in (found, expected))
        assert_same_summaries(mine.summary(), without_index(theirs.summary()))
    assert found.weights == expected.weights
    assert (found.path, found.files) == (None, [])
    with pytest.raises(InputError, match="not kept, only what they come to"):
        found.array(found.measures[0])


CONDITIONS = {
    "": "ends there",
    "cig": "> >= < <= behind 'cig'",
    "cig >": "a number behind cig >",
    "cig = 3": "got '= 3' at character 5.* There is no '=='",
    "cig != 3": "no '!=': give the lowest and the highest",
    "not cig > 3": "the name of a measure.* got 'not cig > 3' at character 1.* There is no 'not': turn",
    "csf > 1 and NOT cig > 3": "There is no 'not'",
    "cig > 0,5": "got ',5' at character 8.* decimal point: 0.5",
    "cig > 1 & csf > 0": "joined by 'and' and 'or'",
    "cig > x": "got 'x' at character 7",
    "cig > 1 cig > 2": "'and', 'or', or the end",
    "(cig > 1": r"expected '\)'",
    "cig > 1)": r"got '\)' at character 8",
    "cig > 1 and": "the name of a measure",
    "or > 1": "the name of a measure",
    "3 < cig": "the name of a measure first",
    "cig > 1 > 0.5": "'and', 'or', or the end",
    "cig > 1_0": "got '1_0'",
    "cig > 1e999": "got '1e999'",
    "cig > nan": "got 'nan'",
    "cig <= 1and csf > 0": "got '1and csf > 0'",
    "__import__('os')": "character 12",
    "(" * 200 + "cig > 1" + ")" * 200: "at most 100 brackets",
    "entropy > 1": "'entropy' is not scored .*measures=",
    "cgi > 1": "Did you mean 'cig'",
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_bad_texts_of_conditions_are_refused(text):
    with pytest.raises(InputError, match=f"^where: .*{CONDITIONS[text]}"):
        gpupif.score(TABLE[:9]).cells(text)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_conditions_select_the_cells_that_meet_them(dtype):
    measures = ["renyi_0.5", "cig"]
    scores = gpupif.score(TABLE, measures, attackers={"my friend": ["sex"], "or": ["age"]}, dtype=dtype)
    # One that neither knows.
    frame, column = scores.frame(), "region"

    def rows(text):
        cells = scores.cells(text).to_pandas()
        return cells["row"][cells["column"] == column].tolist()

    near, other = frame[f"my friend_renyi_0.5_{column}"], frame[f"or_cig_{column}"]
    both = [row for row in range(len(TABLE)) if near[row] > 0.5 or (other[row] <= 3 and other[row] > -1e-3)]
    assert rows('"my friend_renyi_0.5">.5 or or_cig<=3 and or_cig>-1e-3') == both
    assert rows('("my friend_renyi_0.5" > +5E-1 OR (or_cig <= 3. AND or_cig > -.001))') == both
    assert 0 < len(both) < len(TABLE)
    values = np.unique(other)
    assert len(values) > 5
    for low, high in pairwise(values[:5]):
        assert rows(f"or_cig > {float(low)!r}") == [row for row in range(len(TABLE)) if other[row] >= high]
    # Numbers are not rounded to scores of float32: one just above a score is above it.
    above = float(np.nextafter(np.float64(values[1]), np.inf))
    assert rows(f"or_cig >= {above!r}") == [row for row in range(len(TABLE)) if other[row] > values[1]]


BAD = {
    ("--where", "cig >"): "--where: expected a number behind cig >",
    ("--where", "cig) or (csf > 1", "--min-cig", "1"): "--where: expected",
    ("--where", "emd > 1"): "--where: 'emd' is not scored",
    ("--min-cig", "nan"): "--min-cig: expected a number",
    ("--min-cig", "1", "--measures", "csf"): "--min-cig: CIG is not scored (scored: csf)",
    ("--top", "0"): "--top: expected a whole number of cells, 1 or more; got 0",
    ("--by", "cig"): "--by: goes with --top",
    ("--top", "3", "--by", "prior"): "--by: 'prior' is not scored",
    ("--top", "3", "--keep-input"): "--keep-input: goes with the scores of all cells",
    ("--top", "3", "--summary-only"): "--top: does not go with --summary-only",
    ("--min-cig", "0", "--summary-only"): "--min-cig: does not go with --summary-only",
    ("--rows-per-file", "0", "--summary-only"): "--rows-per-file: does not go with --summary-only",
    ("--summary-only",): "expected an output name ending in .json",
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("options", BAD, ids=" ".join)
@pytest.mark.parametrize("limit", [[], ["--memory-limit", "8GiB"]], ids=["memory", "files"])
def test_bad_conditions_are_refused(run, folder, options, limit):
    before = contents(folder)
    ended = run("score", "people.csv", "-o", "cells.parquet", *options, *limit)
    assert (ended.code, ended.out) == (2, "")
    assert BAD[options] in ended.err
    assert ended.err.count("\n") == 1
    assert contents(folder) == before


def test_bad_outputs_for_cells_are_refused(run, folder):
    for options, said in (
        (["-o", "cells", "--top", "3"], "cells (--where, --top) are written to one file"),
        (["--top", "3"], "--output: expected the name of a file or folder"),
        (["--summary-only", "--overwrite"], "--overwrite: replaces an output, and none is named"),
    ):
        ended = run("score", "people.csv", *options)
        assert (ended.code, said in ended.err) == (2, True), ended.err
    assert run("score", "people.csv", "-o", "cells.parquet", "--top", "3", "-q").code == 0
    kept = (folder / "cells.parquet").read_bytes()
    assert "exists already" in run("score", "people.csv", "-o", "cells.parquet", "--top", "2").err
    assert (folder / "cells.parquet").read_bytes() == kept
    assert run("score", "people.csv", "-o", "cells.parquet", "--top", "2", "--overwrite", "-q").code == 0
    assert pq.read_metadata(folder / "cells.parquet").num_rows == 2


@pytest.mark.dask
@pytest.mark.usefixtures("dask_in_one_thread", "on_cpu")
@pytest.mark.parametrize(
    "asked", [{"where": "cig > 2"}, {"top": 7}, {"where": "cig > 1e3"}], ids=["where", "top", "none"]
)
def test_dask_writes_a_folder_of_cells(tmp_path, asked):
    import dask.dataframe as dd

    table = TABLE.set_index(pd.Index([f"p{number}" for number in range(len(TABLE))], name="person"))
    scores = gpupif.score(dd.from_pandas(table, npartitions=3, sort=False), known=1)
    expected = gpupif.score(table, known=1).cells(**asked).to_pandas()
    assert scores.cells(**asked).write(tmp_path / "cells") == len(expected)
    opened = gpupif.open_scores(tmp_path / "cells")
    pd.testing.assert_frame_equal(opened.cells().to_pandas(), expected, check_exact=True, check_column_type=False)
    pd.testing.assert_frame_equal(scores.cells(**asked).to_pandas(), expected, check_exact=True)
    assert opened.cells().count() == len(expected)
    assert opened.weights == scores.weights
    scores.cells(top=1).write(tmp_path / "cells", write_index=False)
    assert pd.read_parquet(tmp_path / "cells").columns[:3].tolist() == ["row", "column", "value"]
    with pytest.raises(gpupif.errors.OutputError, match="exists already"):
        scores.cells(top=1).write(tmp_path / "cells", overwrite=False)
    renamed = gpupif.score(dd.from_pandas(table.rename_axis("cig_mean"), npartitions=3, sort=False), known=1)
    with pytest.raises(gpupif.errors.OutputError, match="two columns would be called 'cig_mean'"):
        renamed.cells(top=1)
    with pytest.raises(InputError, match="write_index: goes with scores of a Dask frame only"):
        gpupif.score(table).cells().write(tmp_path / "cells.parquet", write_index=False)


@pytest.mark.dask
@pytest.mark.usefixtures("dask_in_one_thread", "on_cpu")
def test_cells_of_a_dask_frame_keep_their_labels():
    """Each cell has its label, also if only the first batches are read."""
    import dask.dataframe as dd

    frame = dd.from_pandas(TABLE.iloc[100:], npartitions=3, sort=False)
    assert gpupif.score(frame, columns=["age"]).cells().head(3).index.tolist() == [100, 101, 102]


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_durations_have_the_text_of_pandas_in_every_library(unit):
    numbers = [0, 1, -1, 86_399, 90_061, -86_401, {"s": 9, "us": 1_500_000, "ns": 1_000_000_001}[unit]]
    table = pd.DataFrame({"a": np.array(numbers, f"timedelta64[{unit}]"), "b": list("xyxyxyx")})
    expected = [str(value) for value in table["a"]]
    given = {
        "pandas": table,
        "arrow": pa.Table.from_pandas(table),
        "arrow in pandas": table.convert_dtypes(dtype_backend="pyarrow"),
    }
    for kind, frame in given.items():
        assert gpupif.score(frame, "cig", columns=["a"]).cells().to_pandas()["value"].tolist() == expected, kind


def test_a_missing_polars_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    cells = gpupif.score(pd.DataFrame({"a": list("xxy")}), "cig").cells()
    with pytest.raises(InputError, match=r"to_polars: .* not installed: pip install 'gpupif\[polars\]'"):
        cells.to_polars()


def test_the_number_of_first_rows_must_be_whole():
    cells = gpupif.score(pd.DataFrame({"a": list("xxy")}), "cig").cells()
    assert len(cells.head(0)) == 0
    assert len(cells.head(2)) == 2
    with pytest.raises(gpupif.InputError, match="n: expected a whole number of rows, 0 or more; got -2"):
        cells.head(-2)
