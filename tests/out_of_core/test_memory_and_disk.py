"""Memory and disk: their limits, the shares that a run takes, and the errors if they are too small."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.attack.arguments import Arguments
from gpupif.errors import InputError, OutputError
from gpupif.io.read import open_source
from gpupif.out_of_core import memory_budget as budget
from gpupif.out_of_core import table_scoring
from gpupif.out_of_core.output_options import OutputOptions
from gpupif.results.cell_selection import Selection
from gpupif.utils import memory
from gpupif.utils.repeated import Repeated
from tests.helpers.pieces import assert_same, census_folder, in_pieces, write_parts
from tests.helpers.runs_that_fail import MEASURES


def test_too_little_disk_is_an_error_before_the_work(tmp_path, monkeypatch):
    source = census_folder(tmp_path / "in", rows=100)
    monkeypatch.setattr(budget, "free_disk", lambda folder: 1000)
    with pytest.raises(OutputError, match=r"spill files of 100 rows will need about .* KiB, 1.0 KiB are free"):
        gpupif.score_files(source, tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def test_the_planned_disk_covers_the_stored_scores(tmp_path):
    """Scores of all cells count if they are stored before some of them are selected."""
    source = census_folder(tmp_path / "in", rows=100)
    several = {"attackers": {"near": ["age"], "far": ["sex"]}}

    def planned(how, population=False, **asked):
        asked |= {"population": source} if population else {}
        table, arguments = open_source(source), Arguments.from_user(MEASURES, **asked)
        options = OutputOptions.from_arguments(None if "summary_only" in how else tmp_path / "out.parquet", **how)
        others = table if population else None
        return budget.check_disk(table, arguments.make_request(table.names), tmp_path, tmp_path, options, others)

    some, none = {"selection": Selection.from_user("wcig > 3")}, {"summary_only": True}
    assert planned(some) == planned(none) == planned({})
    assert planned({}) < planned({}, population=True)
    assert planned({}) < planned({}, **several) < 2 * planned({})


def test_too_many_riskiest_cells_for_the_memory_are_refused(tmp_path, monkeypatch):
    """The riskiest cells are found in memory; a small table has no more of them than its cells."""
    source = census_folder(tmp_path / "in", rows=100)
    assert gpupif.score_files(source, tmp_path / "out.parquet", top=10**12).cells().count() == 1000
    monkeypatch.setattr(budget, "RISKIEST_SHARE", 1e-6)
    with (
        gpupif.config(memory_limit="16GiB"),
        pytest.raises(InputError, match=r"memory_limit: the 500 riskiest cells take about 125\.0 KiB, .*\(top=\)"),
    ):
        gpupif.score_files(source, tmp_path / "more.parquet", top=500)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in", "out.parquet"]


def test_a_column_with_too_many_values_is_refused(tmp_path, monkeypatch):
    source = write_parts(tmp_path / "in", pd.DataFrame({"id": [f"id{n}" for n in range(100)], "b": [1, 2] * 50}))
    monkeypatch.setattr(budget, "VALUES_SHARE", 1e-9)
    with pytest.raises(InputError, match=r"column 'id': at least 100 distinct values.*--memory-limit"):
        gpupif.score_files(source, tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def test_a_table_that_does_not_fit_is_scored_on_disk(tmp_path, monkeypatch, capfd):
    from gpupif.scoring import files

    source, asked = census_folder(tmp_path / "in", rows=100), Arguments.from_user(MEASURES)
    small = files.score_file(source, asked, OutputOptions.from_arguments(tmp_path / "small.parquet")).scores
    monkeypatch.setattr(files, "memory_needed", lambda *_: 1 << 60)
    large = files.score_file(source, asked, OutputOptions.from_arguments(tmp_path / "large.parquet")).scores
    assert "more than 60 % of the memory that is free" in capfd.readouterr().err
    assert type(small).__name__ == "Scores"
    assert_same(large, small)
    assert pq.read_table(tmp_path / "small.parquet").equals(pq.read_table(tmp_path / "large.parquet"))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GiB", 2 << 30),
        ("2gb", 2 * 10**9),
        ("1.5 MiB", 3 << 19),
        ("700", 700),
        (5, 5),
        ("3k", 3000),
        ("1TiB", 1 << 40),
        (np.int64(5), 5),
        (2e9, 2 * 10**9),
        ("9" * 400 + "GB", 2**62),
        (10**400, 2**62),
    ],
)
def test_sizes_are_parsed_with_their_units(text, size):
    assert memory.parse_size("memory_limit", text) == size


@pytest.mark.parametrize("size", ["", "GiB", "-1GB", "1XB", 0, -5, True, 1.5, None, "1e9", 5j, float("inf")])
def test_bad_sizes_are_refused(size):
    with pytest.raises(InputError, match="memory_limit: expected a size"):
        memory.parse_size("memory_limit", size)


def test_the_memory_that_a_cgroup_leaves_is_found(tmp_path):
    inner = tmp_path / "v2" / "user" / "job"
    inner.mkdir(parents=True)
    for folder, most in ((inner, "max"), (inner.parent, "1000"), (tmp_path / "v2", "5000")):
        (folder / "memory.max").write_text(most)
        (folder / "memory.current").write_text("600\n")
        (folder / "memory.stat").write_text("anon 1\ninactive_file 50\n")
    (tmp_path / "own").write_text("0::/user/job\n")
    assert sorted(memory._cgroup_rooms(tmp_path / "v2", tmp_path / "own")) == [450, 4450]
    old = tmp_path / "v1" / "memory" / "job"
    old.mkdir(parents=True)
    for folder, most in ((old, "2000"), (old.parent, str(1 << 63))):
        (folder / "memory.limit_in_bytes").write_text(most)
        (folder / "memory.usage_in_bytes").write_text("600")
        (folder / "memory.stat").write_text("total_inactive_file 100\n")
    (tmp_path / "own").write_text("4:cpu,memory:/job\n3:pids:/\n")
    assert memory._cgroup_rooms(tmp_path / "v1", tmp_path / "own") == [1500]
    assert memory._cgroup_rooms(tmp_path / "none", tmp_path / "none") == []
    assert 0 < memory.free_bytes() < 1 << 50


def test_a_long_csv_field_is_read(tmp_path):
    (tmp_path / "1.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "2.csv").write_text(f"a,b\n1,{'x' * 200_000}\n2,y\n")
    assert gpupif.score(tmp_path / "*.csv").rows == 4
    assert gpupif.score(tmp_path / "2.csv").rows == 2
    assert gpupif.score_files(tmp_path / "*.csv", tmp_path / "out").rows == 4


def test_columns_with_too_many_values_for_the_memory_are_refused(tmp_path, monkeypatch):
    source = write_parts(tmp_path / "in", pd.DataFrame({f"id{n}": range(100) for n in range(3)}))
    real = budget.plan_budget
    monkeypatch.setattr(
        "gpupif.out_of_core.scoring_run.plan_budget", lambda *given: real(*given)._replace(working=1 << 15)
    )
    monkeypatch.setattr(budget, "VALUES_SHARE", 1)
    with pytest.raises(InputError, match=r"memory_limit: the columns have 300 distinct values"):
        gpupif.score_files(source, tmp_path / "out")


def test_long_texts_make_small_chunks(tmp_path, monkeypatch):
    texts = [f"{n % 7}" * 5000 for n in range(400)]
    source = write_parts(tmp_path / "in", pd.DataFrame({"a": texts, "b": range(400)}), range(0, 400, 50))
    chunks = []
    from gpupif.out_of_core import file_encoding as encode

    real = encode.in_chunks

    def noted(pieces, rows, most):
        for chunk in real(pieces, rows, 200_000):
            chunks.append(chunk.num_rows)
            yield chunk

    monkeypatch.setattr(encode, "in_chunks", noted)
    scores = gpupif.score_files(source, tmp_path / "out", MEASURES)
    assert len(chunks) > 3
    assert_same(scores, gpupif.score(source, MEASURES))


def test_a_population_is_read_at_the_same_time():
    """Sizes of cohorts in a population are a second table for each attacker."""
    for attackers, together in ((None, 2), ({"near": ["age"], "far": ["sex"]}, 4)):
        request = Arguments.from_user("cig", attackers=attackers, population="people").make_request(["age", "sex"])
        assert budget.plan_budget(8 << 30, request).together == together


@pytest.mark.parametrize("files", [1, 2])
def test_files_of_all_partitions_can_be_open_together(monkeypatch, files):
    """The files of two passes and of the columns can be open at once, however small partitions are planned."""
    monkeypatch.setattr(budget, "files_to_open", lambda: 1024)
    rows = budget.Budget(1, 1).planned_rows(1, 10**6, 5, files)
    parts = -(-(10**6) // rows)
    assert 1024 - budget.SPARE_FILES - 4 * files < 2 * files * parts + 2 * 5 <= 1024 - budget.SPARE_FILES


@pytest.mark.slow
def test_distinct_scores_of_all_partitions_have_their_share_of_memory(tmp_path, monkeypatch):
    """Distinct scores of all partitions are in memory at once; columns with too many are stored row by row."""
    source = census_folder(tmp_path / "in", rows=3000)
    kept = []
    real = table_scoring.kept_small

    def noted(values, most):
        kept.append(real(values, most))
        return kept[-1]

    monkeypatch.setattr(table_scoring, "kept_small", noted)
    given = budget.Budget(1, 1 << 30, together=2)
    assert 2 * 100 * 8 * given.distinct_scores(100) <= budget.DISTINCT_SCORES_SHARE * (1 << 30)
    monkeypatch.setattr(budget.Budget, "distinct_scores", lambda self, columns: 40)
    with in_pieces(700, 1000):
        scores = gpupif.score_files(source, tmp_path / "out", MEASURES)
    assert_same(scores, gpupif.score(source, MEASURES))
    repeated = [one for one in kept if isinstance(one, Repeated)]
    assert 0 < max(len(one.distinct) for one in repeated) <= 40
    assert max(len(np.unique(one)) for one in kept if not isinstance(one, Repeated)) > 40
