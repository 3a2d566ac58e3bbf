"""Treatments from files to files: written files, refused arguments, and killed runs."""

from __future__ import annotations

import json
import signal
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import gpupif
from benchmarks.watch import watch
from gpupif.attack.arguments import Arguments
from gpupif.errors import InputError, OutputError
from gpupif.io.checkpoints import Store
from gpupif.io.read import open_source
from gpupif.out_of_core.memory_budget import CHUNK_SHARE, RESERVE, Budget, plan_budget
from gpupif.treatment import file_table
from gpupif.treatment.steps import Chunk
from gpupif.utils.memory import resident_bytes
from gpupif.utils.progress import Reporter
from tests.helpers.dying import die, die_at_each_mark
from tests.helpers.example_plans import KEY, example_table
from tests.helpers.pieces import nothing_left, write_parts
from tests.helpers.treatments import Bins, Drawn, Gone, RareAway, RiskyAway, Shifted
from tests.helpers.ways import plain

TABLE = example_table()
PLAN = [
    Bins("age"),
    RareAway("job", 8),
    Shifted("kept"),
    Drawn("sex"),
    RiskyAway("age", 0.9, rows=True, known=("sex", "job")),
    Drawn("note"),
    Gone(("person",)),
]


@pytest.fixture(scope="module")
def expected():
    return gpupif.treat(TABLE, PLAN)


def assert_same(found, expected):
    assert list(found.columns) == list(expected.columns)
    for name in expected:
        assert plain(found[name]) == plain(expected[name]), name


def read(path):
    if path.is_dir():
        return pa.concat_tables(map(pq.read_table, sorted(path.rglob("*.parquet")))).to_pandas()
    return {".parquet": pd.read_parquet, ".feather": pd.read_feather}[path.suffix](path)


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        pytest.param(f"in{ending}", f"out{other}", marks=() if ending == other else pytest.mark.slow)
        for ending in ("", ".parquet", ".feather")
        for other in ("", ".parquet", ".feather")
    ],
)
def test_tables_are_treated_from_and_to_every_format(tmp_path, expected, kind, output):
    source = tmp_path / kind
    if kind == "in":
        write_parts(source, TABLE, (0, 30, 30, 110))
    elif kind == "in.parquet":
        TABLE.to_parquet(source)
    else:
        feather.write_feather(pa.Table.from_pandas(TABLE), source, chunksize=50)
    done = gpupif.treat_files(source, tmp_path / output, PLAN)
    assert done.table == tmp_path / output
    assert_same(read(tmp_path / output), expected.table)
    assert done.record.treatments == expected.record.treatments
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_untreated_texts_of_csv_are_written_as_they_were_read(tmp_path, output):
    """Check that texts of a CSV file count as values, and that untreated texts are written unchanged."""
    TABLE.to_csv(tmp_path / "in.csv", index=False)
    plan = [*PLAN[:2], Gone(("born",))]
    expected = gpupif.treat(tmp_path / "in.csv", plan).table
    gpupif.treat_files(tmp_path / "in.csv", tmp_path / output, plan)
    assert_same(gpupif.treat(tmp_path / output, []).table, expected)
    assert {"dtype": str(expected["age"].dtype)} == {"dtype": "category"}


@pytest.mark.parametrize("rows", [pytest.param(1, marks=pytest.mark.slow), 7, 50, 1000])
def test_output_files_have_the_rows_that_were_asked_for(tmp_path, expected, rows):
    source = write_parts(tmp_path / "in", TABLE, (30, 110))
    done = gpupif.treat_files(source, tmp_path / "out", PLAN, rows_per_file=rows)
    assert_same(read(tmp_path / "out"), expected.table)
    sizes = [pq.read_metadata(file).num_rows for file in done.files]
    assert all(size == rows for size in sizes[:-1])
    assert 0 < sizes[-1] <= rows


def test_each_input_file_has_an_output_file(tmp_path):
    source = write_parts(tmp_path / "in", TABLE, (30, 110))
    done = gpupif.treat_files(source, tmp_path / "out", PLAN[:2])
    assert [file.name for file in done.files] == ["000.parquet", "001.parquet", "002.parquet"]
    assert [pq.read_metadata(file).num_rows for file in done.files] == [30, 80, 10]


def test_the_input_is_never_written_over(tmp_path):
    source = write_parts(tmp_path / "in", TABLE)
    before = (source / "000.parquet").read_bytes()
    for output in (source, source / "000.parquet", source / "more", tmp_path):
        with pytest.raises(OutputError):
            gpupif.treat_files(source, output, PLAN, overwrite=True)
    assert (source / "000.parquet").read_bytes() == before
    assert nothing_left(tmp_path)


def test_an_existing_output_stays_without_overwrite(tmp_path):
    source = write_parts(tmp_path / "in", TABLE)
    (tmp_path / "out.parquet").write_text("mine")
    with pytest.raises(OutputError, match=r"exists already\. Use overwrite=True to replace it"):
        gpupif.treat_files(source, tmp_path / "out.parquet", PLAN)
    with pytest.raises(InputError, match=r"treatment 1 \(test_bins\).*'agee'.*Did you mean 'age'"):
        gpupif.treat_files(source, tmp_path / "out.parquet", [Bins("agee")], overwrite=True)
    assert (tmp_path / "out.parquet").read_text() == "mine"
    gpupif.treat_files(source, tmp_path / "out.parquet", PLAN, overwrite=True)
    assert len(read(tmp_path / "out.parquet"))
    assert nothing_left(tmp_path)


def test_a_folder_of_something_else_is_not_replaced(tmp_path):
    source = write_parts(tmp_path / "in", TABLE)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"thesis\.txt"):
        gpupif.treat_files(source, tmp_path / "out", PLAN, overwrite=True)
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"


def test_a_source_that_is_no_path_is_refused(tmp_path):
    with pytest.raises(InputError, match="source: expected the path"):
        gpupif.treat_files(TABLE, tmp_path / "out", PLAN)


def test_too_little_memory_is_an_error_and_leaves_no_files(tmp_path):
    source = write_parts(tmp_path / "in", TABLE)
    with gpupif.config(memory_limit="10MiB"), pytest.raises(InputError, match="memory_limit"):
        gpupif.treat_files(source, tmp_path / "out", PLAN)
    assert nothing_left(tmp_path)


PLAN_FILE = """
[[treatment]]
do = "recode"
column = "age"
edges = [0, 30, 60, 120]
[[treatment]]
do = "suppress"
columns = ["job"]
where = "csf > 0.3"
known = ["age", "sex"]
[[treatment]]
do = "suppress_rows"
k = 2
quasi_identifiers = ["sex", "job"]
"""


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.parametrize(("kind", "moment"), [("folder", "mark"), ("rows", "next"), ("file", "mark")])
def test_a_run_killed_at_any_mark_resumes_to_the_same_bits(tmp_path, kind, moment):
    """Check that a run which is killed at any step and resumed gives equal bits, and leaves no other files."""
    source = write_parts(tmp_path / "in", TABLE, (20, 50, 90))
    (tmp_path / "plan.toml").write_text(PLAN_FILE)
    expected = gpupif.treat(TABLE, tmp_path / "plan.toml")
    criterion = tmp_path / ("out.parquet" if kind == "file" else "out")
    more = ["--rows-per-file", 30] if kind == "rows" else []
    options = ["-o", criterion, "--plan", tmp_path / "plan.toml", "--record", tmp_path / "record.json", *more]
    die_at_each_mark(moment, source, *options, "--resume", "-q", command="treat")
    assert nothing_left(tmp_path)
    assert_same(read(criterion), expected.table)
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["treatments"] == expected.record.to_dict()["treatments"]


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_files(tmp_path, number):
    source = write_parts(tmp_path / "in", TABLE, (20, 50, 90))
    (tmp_path / "plan.toml").write_text(PLAN_FILE)
    codes, said = die(
        number, [20], source, "-o", tmp_path / "out", "--plan", tmp_path / "plan.toml", "-q", command="treat"
    )
    assert codes == [128 + number, 0]
    assert said == "gpupif: interrupted; nothing was written.\n"
    assert nothing_left(tmp_path)


def test_a_run_resumed_with_another_plan_or_key_is_refused(tmp_path, monkeypatch):
    source = write_parts(tmp_path / "in", TABLE, (20, 50, 90))

    def fail(*_):
        raise OSError("the disk is gone")

    plan = [Bins("age"), Drawn("sex")]
    with monkeypatch.context() as patch:
        patch.setattr("gpupif.treatment.treat_files.TreatedWriter.publish", fail)
        with pytest.raises(OSError, match="gone"):
            gpupif.treat_files(source, tmp_path / "out", plan, key=KEY, resume=True)
    with pytest.raises(OutputError, match="had another plan"):
        gpupif.treat_files(source, tmp_path / "out", plan[:1], key=KEY, resume=True)
    with pytest.raises(OutputError, match="had another key"):
        gpupif.treat_files(source, tmp_path / "out", plan, key=KEY[::-1], resume=True)
    done = gpupif.treat_files(source, tmp_path / "out", plan, key=KEY, resume=True)
    assert_same(read(tmp_path / "out"), gpupif.treat(TABLE, plan).table)
    assert done.record.treatments == gpupif.treat(TABLE, plan).record.treatments
    assert nothing_left(tmp_path)


def test_a_part_of_a_file_of_text_loses_all_its_rows(tmp_path):
    """Check dates: Arrow cannot make an empty dictionary of dates."""
    table = pd.DataFrame(
        {"sex": ["f"] * 9 + ["m"], "born": pd.date_range("2001-01-01", periods=10).strftime("%Y-%m-%d")}
    )
    (tmp_path / "in").mkdir()
    for number, part in enumerate((table[:9], table[9:])):
        part.to_csv(tmp_path / "in" / f"{number}.csv", index=False)
    plan = [gpupif.treatments.SuppressRows(k=2, quasi_identifiers=["sex"]), gpupif.treatments.Jitter("born", within=2)]
    done = gpupif.treat_files(str(tmp_path / "in" / "*.csv"), tmp_path / "out.parquet", plan, key=bytes(32))
    expected = gpupif.treat(table, plan, key=bytes(32)).table
    assert pd.read_parquet(done.table)["born"].astype(str).tolist() == expected["born"].astype(str).tolist()


@pytest.mark.filterwarnings("ignore::gpupif.errors.SeedWarning")
def test_a_run_resumed_with_other_files_or_seed_is_refused(tmp_path, monkeypatch):
    source = write_parts(tmp_path / "in", TABLE, (20, 50, 90))
    (tmp_path / "people.csv").write_text("zip3,people\n021,900000\n941,15000\n100,20001\n")
    (tmp_path / "sex.csv").write_text("f;person;*\nm;person;*\n")
    plan = gpupif.Plan(
        [
            gpupif.treatments.Zip3("zip", tmp_path / "people.csv"),
            gpupif.treatments.Recode("sex", level=1),
            gpupif.treatments.Noise("income", scale=9),
        ],
        hierarchies={"sex": str(tmp_path / "sex.csv")},
    )

    def fail(*_):
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr("gpupif.treatment.treat_files.TreatedWriter.publish", fail)
        with pytest.raises(OSError, match="gone"):
            gpupif.treat_files(source, tmp_path / "out", plan, seed=1, resume=True)
    with pytest.raises(OutputError, match="had another key"):
        gpupif.treat_files(source, tmp_path / "out", plan, seed=2, resume=True)
    for name in ("people.csv", "sex.csv"):
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text.replace("15000", "25000").replace("person", "people"))
        with pytest.raises(OutputError, match="other files of the plan"):
            gpupif.treat_files(source, tmp_path / "out", plan, seed=1, resume=True)
        (tmp_path / name).write_text(text)
    gpupif.treat_files(source, tmp_path / "out", plan, seed=1, resume=True)
    assert_same(read(tmp_path / "out"), gpupif.treat(TABLE, plan, seed=1).table)


def test_suppression_plans_its_memory(tmp_path):
    rows = 300_000
    pd.DataFrame({"a": [1, 2, 3] * (rows // 3), "b": [1, 2] * (rows // 2)}).to_parquet(tmp_path / "in.parquet")
    plan = [gpupif.treatments.Suppress(["a", "b"], k=3)]
    with (
        gpupif.config(memory_limit=resident_bytes() + RESERVE + 80 * rows // 2),
        pytest.raises(
            InputError,
            match="memory_limit: the treatment needs all rows at once of a, b: their codes and working",
        ),
    ):
        gpupif.treat_files(tmp_path / "in.parquet", tmp_path / "out.parquet", plan)
    assert nothing_left(tmp_path)
    assert not (tmp_path / "out.parquet").exists()


def test_row_groups_of_the_output_fit_into_the_memory_limit(tmp_path):
    pd.DataFrame({"a": range(200_000)}).to_parquet(tmp_path / "in.parquet", row_group_size=5_000)
    with gpupif.config(memory_limit=resident_bytes() + RESERVE + (8 << 20)):
        gpupif.treat_files(tmp_path / "in.parquet", tmp_path / "out.parquet", [gpupif.treatments.Cap("a")])
    written = pq.ParquetFile(tmp_path / "out.parquet").metadata
    assert max(written.row_group(place).num_rows for place in range(written.num_row_groups)) <= (8 << 20) * 0.35 / 320
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 200_000


def test_scores_for_a_condition_are_read_in_chunks_within_the_limit(tmp_path, monkeypatch):
    """Check a limit of 500 MB: the scores of a million rows at once take half as much again."""
    source = tmp_path / "in.parquet"
    TABLE.to_parquet(source)
    store = Store(tmp_path / "work", tmp_path / "work")
    store.open(False, tmp_path / "out")
    columns = ["age", "sex"]
    monkeypatch.setattr(file_table, "LEAST_CHUNK", 1)
    budget = Budget(1 << 14, int(17 * file_table.SCORE_BYTES * len(columns) / CHUNK_SHARE) + 1)
    table = file_table.FileTable(open_source(source), store, budget, Reporter())
    read = []

    def make(scores):
        read.append(len(scores["cig_age"]))
        return {"0": scores["cig_age"]}

    facts = table.scores(Arguments.from_user("cig", columns), make)
    assert sum(read) == len(TABLE)
    assert max(read) == 17
    expected = gpupif.score(TABLE, "cig", columns).cig["age"]
    assert facts.read(Chunk([], len(TABLE), TABLE.get))["0"].tolist() == expected.tolist()
    store.close(False)


def test_a_treatment_that_lacks_memory_is_named_with_advice(tmp_path, monkeypatch):
    """Check the advice if scoring lacks memory: it is about the plan, which chooses the scores."""
    source = tmp_path / "in.parquet"
    TABLE.to_parquet(source)
    plan = [gpupif.treatments.SuppressRows(where="csf > 1", known=["sex"])]
    monkeypatch.setattr(
        "gpupif.out_of_core.scoring_run.plan_budget", lambda limit, *given: plan_budget(1 << 20, *given)
    )
    with pytest.raises(InputError, match="memory_limit") as caught:
        gpupif.treat_files(source, tmp_path / "out.parquet", plan)
    assert "treatment 1 (suppress_rows)" in str(caught.value)
    assert "score fewer columns" not in str(caught.value)
    assert "or split the plan and treat the output of its first part" in str(caught.value)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.slow
@pytest.mark.subprocess
def test_the_memory_limit_holds_for_treatments_that_score(tmp_path):
    gpupif.datasets.census(1_500_000).to_parquet(tmp_path / "in.parquet")
    scored = '[[treatment]]\ndo = "suppress_rows"\nwhere = "csf > 12"\nknown = ["region", "sex"]\n'
    (tmp_path / "plan.toml").write_text(2 * scored)
    arguments = ["--plan", tmp_path / "plan.toml", "-o", tmp_path / "out.parquet", "--memory-limit", "500MB", "-q"]
    command = [sys.executable, "-m", "gpupif", "treat", tmp_path / "in.parquet", *arguments]
    seen = watch([*map(str, command)], tmp_path, tmp_path / "log")
    assert (seen.status, seen.errors) == (0, "")
    assert seen.peak_bytes < 500_000_000
