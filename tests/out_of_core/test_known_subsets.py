"""Attackers who know any few columns, beyond memory: the same bits as in memory, if the distinct rows fit."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.attack.joined_columns import counting_job
from gpupif.engines.base import KnownSubset
from gpupif.engines.memory import AnyKnownNeeds, share_memory
from gpupif.errors import InputError, OutputError
from gpupif.out_of_core import memory_budget as budget
from gpupif.pipeline import partition_scoring
from tests.helpers.command_line import assert_refused
from tests.helpers.dying import die_at_each_mark
from tests.helpers.pieces import assert_same_summary, in_pieces, nothing_left, stored, write_parts
from tests.helpers.scores import ALL, job_of
from tests.helpers.tables import SHARED_FIXTURES, frame_of, jobs

FEW = ["cig", "wcig", "csf", "cohort_size"]


@contextlib.contextmanager
def room_for(distinct, chunk_rows=3):
    """Give runs chunks of `chunk_rows` rows, and memory for `distinct` distinct rows.

    One scored column at a time is then scored.
    """
    with in_pieces(chunk_rows), pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget.Budget, "any_known_bytes", lambda self, job, needs: needs.least(distinct))
        yield


def assert_same(scores, expected):
    """Scores in files are, to the last bit, those in memory."""
    table, other = stored(scores), expected.to_arrow()
    assert table.column_names == other.column_names
    for name in table.column_names:
        assert table[name].type == other[name].type
        assert table[name].to_numpy().tobytes() == other[name].to_numpy().tobytes(), name
    assert repr(scores.subsets) == repr(expected.subsets)
    assert scores.subsets.sets == expected.subsets.sets
    for mine, theirs in ((scores, expected), (scores.mean, expected.mean)):
        assert mine.weights == theirs.weights
        assert (mine.rows, mine.distinct_rows) == (theirs.rows, theirs.distinct_rows)
        assert dict(mine.priors) == dict(theirs.priors)


@pytest.mark.slow
@given(job=jobs(), data=st.data())
@settings(SHARED_FIXTURES, max_examples=12)
def test_scores_have_the_bits_of_memory(job, data, tmp_path_factory):
    table, arguments = job
    frame = frame_of(table)
    rows, place = len(frame), tmp_path_factory.mktemp("t")
    source = write_parts(place / "in", frame, data.draw(st.lists(st.integers(0, rows), max_size=2)))
    scored_columns, among = arguments.get("columns", list(table)), arguments.pop("known", None)
    pool = scored_columns if among is None else among
    known = data.draw(st.integers(0, min(len(pool) - (name in pool) for name in scored_columns)))
    used = {*scored_columns, *(pool if known else [])}
    for word, given_ in arguments.items():
        if isinstance(given_, dict):
            arguments[word] = {name: value for name, value in given_.items() if name in used}
    subsets = data.draw(st.sampled_from([None, 1, 2]))
    arguments["known"] = gpupif.AnyKnown(known, among=among, subsets=subsets, seed=3)
    arguments["dtype"] = data.draw(st.sampled_from(["float64", "float32"]))
    with room_for(data.draw(st.sampled_from([rows, 9 * rows])), data.draw(st.integers(1, rows))):
        scores = gpupif.score_files(source, place / "out", ALL, **arguments)
    expected = gpupif.score(source, ALL, **arguments)
    assert_same(scores, expected)
    if arguments["dtype"] == "float64":
        assert_same_summary(scores, expected)
        assert_same_summary(scores.mean, expected.mean)
    assert nothing_left(place)


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    """A folder of a census of rows that repeat, with missing values."""
    frame = gpupif.datasets.census(40, columns=5).sample(300, replace=True, random_state=1).reset_index(drop=True)
    frame["region"] = frame["region"].where(frame.index % 7 > 0)
    return write_parts(tmp_path_factory.mktemp("census") / "in", frame, [100, 100, 130])


@pytest.fixture(scope="module")
def expected(census):
    return gpupif.score(census, FEW, known=2)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [5, 1])
def test_repeated_rows_need_not_fit_into_memory(census, expected, tmp_path, groups, monkeypatch):
    """Columns are scored one by one or all at once, read in chunks, and written in files of other sizes."""
    calls = []
    real = partition_scoring.score_attacker
    monkeypatch.setattr(
        partition_scoring, "score_attacker", lambda *given: calls.append(given[1].scored_columns) or real(*given)
    )
    distinct = expected.distinct_rows
    assert distinct < 100
    with room_for(distinct if groups == 5 else 20 * distinct, 30):
        scores = gpupif.score_files(census, tmp_path / "out", FEW, known=2, rows_per_file=70, keep_input=True)
    assert len(calls) == groups
    found = stored(scores)
    everything = expected.to_arrow().column_names
    assert found.select(everything).to_pandas().equals(expected.to_arrow().to_pandas())
    assert found.column_names == [*pq.read_table(census).column_names, *everything]
    assert len(scores.files) == 5
    assert scores.spilled_bytes > 0
    assert_same_summary(scores, expected)
    assert_same_summary(scores.mean, expected.mean)
    for mine, theirs in ((scores, expected), (scores.mean, expected.mean)):
        assert mine.pif([12, 95]) == theirs.pif([12, 95])
        assert mine.fig().to_dict() == theirs.fig().to_dict()
    summary = scores.summary().to_dict()
    assert summary["known_any"] == expected.summary().to_dict()["known_any"]
    assert summary["mean"]["measures"] == FEW
    assert "6 subsets of 2 columns for each column" in str(scores.summary())
    assert "any 2 columns known" in repr(scores)
    assert scores.subsets.for_column("age") == expected.subsets.for_column("age")
    assert nothing_left(tmp_path)


def test_a_real_memory_limit_gives_the_same_scores(census, expected, tmp_path):
    with gpupif.config(memory_limit="8GiB"):
        scores = gpupif.score_files(census, tmp_path / "out.parquet", FEW, known=2)
    assert_same(scores, expected)


def test_more_distinct_rows_than_fit_are_refused(census, expected, tmp_path):
    limit = expected.distinct_rows - 1
    says = (
        rf"memory_limit: .* any 2 columns, .* more than {limit:,} of the 300 rows, which take [\d.]+ KiB, .* Raise it"
    )
    with room_for(limit, 30), pytest.raises(InputError, match=says):
        gpupif.score_files(census, tmp_path / "out", FEW, known=2)
    assert nothing_left(tmp_path)
    with pytest.raises(InputError, match="memory_limit: expected at least"), gpupif.config(memory_limit="50MiB"):
        gpupif.score_files(census, tmp_path / "out", FEW, known=2)


@pytest.mark.parametrize("by", ["wcig", "cohort_size", "entropy"])
def test_the_riskiest_cells_by_any_measure_are_those_of_memory(census, tmp_path, by):
    with room_for(400, 50):
        scores = gpupif.score_files(census, tmp_path / "out", [by], known=gpupif.AnyKnown(2, subsets=3, seed=2))
    expected = gpupif.score(census, [by], known=gpupif.AnyKnown(2, subsets=3, seed=2))
    pd.testing.assert_frame_equal(scores.summary().top, expected.summary().top)
    pd.testing.assert_frame_equal(scores.mean.summary().top, expected.mean.summary().top)


@pytest.mark.slow
def test_a_resumed_run_repeats_no_finished_step(census, expected, tmp_path, monkeypatch):
    def failing(*_):
        raise InputError("stop")

    scores_path = tmp_path / "out"
    with room_for(expected.distinct_rows, 30), monkeypatch.context() as patch:
        patch.setattr("gpupif.out_of_core.scores_writer.ScoreWriter.write", failing)
        with pytest.raises(InputError, match="stop"):
            gpupif.score_files(census, scores_path, FEW, known=2, resume=True)
    others = (
        1,
        *(gpupif.AnyKnown(2, **one) for one in ({"subsets": 2}, {"seed": 5}, {"among": ["age", "sex", "region"]})),
    )
    for other in others:
        with room_for(400, 30), pytest.raises(OutputError, match="the run to be resumed had other"):
            gpupif.score_files(census, scores_path, FEW, known=other, resume=True)
    with room_for(expected.distinct_rows, 30), monkeypatch.context() as patch:
        patch.setattr("gpupif.out_of_core.run_steps.encode_files", failing)
        patch.setattr("gpupif.pipeline.partition_scoring.score_attacker", failing)
        patch.setattr("gpupif.rows.distinct.distinct_rows", failing)
        scores = gpupif.score_files(census, scores_path, FEW, known=2, resume=True)
    assert_same(scores, expected)
    assert nothing_left(tmp_path)


def test_a_run_resumed_with_less_memory_is_refused(census, expected, tmp_path, monkeypatch):
    def failing(*_):
        raise InputError("stop")

    scores_path = tmp_path / "out"
    with room_for(20 * expected.distinct_rows, 30), monkeypatch.context() as patch:
        patch.setattr("gpupif.pipeline.partition_scoring.score_attacker", failing)
        with pytest.raises(InputError, match="stop"):
            gpupif.score_files(census, scores_path, FEW, known=2, resume=True)
    says = r"memory_limit: the run to be resumed had more, for 5 columns of \d+ distinct rows"
    with room_for(expected.distinct_rows, 30), pytest.raises(InputError, match=says):
        gpupif.score_files(census, scores_path, FEW, known=2, resume=True)
    with room_for(20 * expected.distinct_rows, 30):
        assert_same(gpupif.score_files(census, scores_path, FEW, known=2, resume=True), expected)


@pytest.mark.slow
def test_a_run_killed_after_its_last_step_is_finished_by_resume(census, expected, tmp_path, monkeypatch):
    """The last mark holds the result of a run that only has to clean up."""
    scores_path = tmp_path / "out"
    with room_for(400, 30), monkeypatch.context() as patch:
        patch.setattr("gpupif.io.checkpoints.Store.close", lambda self, keep: self._let_go())
        gpupif.score_files(census, scores_path, FEW, known=2, resume=True)
    scores = gpupif.score_files(census, scores_path, FEW, known=2, resume=True)
    assert scores.weights == expected.weights
    assert scores.mean.weights == expected.mean.weights
    assert scores.subsets.sets == expected.subsets.sets
    assert scores.mean.pif(33) == expected.mean.pif(33)
    assert nothing_left(tmp_path)


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.parametrize("moment", ["next", "mark"])
def test_a_run_killed_at_any_mark_resumes_to_the_same_bits(census, expected, tmp_path, moment):
    scores_path = tmp_path / "out.parquet"
    given_ = ("-o", scores_path, "--known-any", 2, "--measures", ",".join(FEW), "--resume", "-q", "--temp", tmp_path)
    die_at_each_mark(moment, census, *given_, rows=(90, 400))
    wanted = expected.to_arrow().replace_schema_metadata()
    assert pq.read_table(scores_path).replace_schema_metadata().equals(wanted)
    assert nothing_left(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"known": 5}, "known: expected at most 4, the number of other columns scored, got 5"),
        ({"known": gpupif.AnyKnown(1, among=["agee"])}, "among: no column 'agee'"),
        ({"known": gpupif.AnyKnown(1, among=["age"])}, "got a column beside which none is named in among="),
        ({"known": 2.0}, "known: expected a list of column names, or how many of them"),
    ],
)
def test_arguments_that_any_known_does_not_allow_are_refused(census, tmp_path, arguments, says):
    with pytest.raises(InputError) as error:
        gpupif.score_files(census, tmp_path / "out", FEW, **{"known": 1, **arguments})
    assert says in str(error.value)
    assert nothing_left(tmp_path)


def test_colliding_names_of_columns_are_refused(tmp_path):
    frame = gpupif.datasets.census(20, columns=3).assign(cig_mean_age=1)
    source = write_parts(tmp_path / "in", frame)
    with pytest.raises(OutputError, match="two columns would be called 'cig_mean_age'"):
        gpupif.score_files(source, tmp_path / "out", known=1, columns=["age", "sex"], keep_input=True)


@pytest.mark.slow
def test_the_command_line_scores_any_known_columns_beyond_memory(run, folder):
    ended = run("score", "people.csv", "-o", "out", "--known-any", "1", "--memory-limit", "16GiB", "--json")
    assert (ended.code, ended.err) == (0, "")
    expected = gpupif.score("people.csv", ["cig", "csf", "wcig"], known=1)
    written = pq.read_table(folder / "out").to_pandas()
    pd.testing.assert_frame_equal(written, expected.to_arrow().to_pandas(), check_exact=True)
    document = json.loads(ended.out)
    assert document["known_any"]["known"] == 1
    assert document["spilled_bytes"] > 0
    assert {column["column"] for column in document["mean"]["columns"]} == set(expected.columns)
    assert (
        "The mean over attackers"
        in run("score", "people.csv", "-o", "shown", "--known-any", "1", "--memory-limit", "16GiB").out
    )
    limited = ("--known-any", "1", "--memory-limit", "1MiB")
    assert_refused(run("score", "people.csv", "-o", "x", *limited), ["--memory-limit: expected at least"])
    assert_refused(run("score", "people.csv", "-o", "x", "--known-any", "99"), ["--known-any: expected at most"])


# The shares of memory.


@given(
    distinct=st.integers(1, 10**7),
    scored_columns=st.integers(1, 60),
    combinations=st.integers(1, 10**9),
    widest=st.integers(1, 6),
    threads=st.integers(1, 32),
    more=st.floats(1, 1000),
)
@settings(max_examples=25, deadline=None)
def test_shares_of_memory_stay_within_the_memory(distinct, scored_columns, combinations, widest, threads, more):
    needs = AnyKnownNeeds(30, 400, 32, 64, 20, 150, 4, (300, 100), 32, combinations, widest)
    memory = int(more * needs.least(distinct))
    shares = share_memory(needs, distinct, scored_columns, threads, memory)
    assert 1 <= shares.scored_columns <= scored_columns
    assert 1 <= shares.threads <= threads
    together, there = min(shares.scored_columns, widest), min(distinct, combinations)
    by_keys = 150 * distinct if shares.slots < combinations else 0
    taken = distinct * (30 + (32 + 64) * shares.scored_columns) + shares.batch
    taken += shares.threads * (distinct * 20 + by_keys + there * (300 + 100 * together) + 8 * shares.slots)
    assert taken <= memory
    assert shares.batch >= distinct * 4 + there * 32 * together
    assert needs.most_rows(memory, 10**9) >= distinct
    assert needs.most_rows(needs.least(distinct) - 1, 10**9) < distinct
    assert needs.most_rows(memory, distinct) == distinct


def test_the_memory_needed_grows_with_measures_and_columns():
    frame = gpupif.datasets.census(50, columns=4)
    few, many = (
        AnyKnownNeeds.from_job(job_of(scores), 50, scores.subsets.sets)
        for scores in (gpupif.score(frame, FEW, known=1), gpupif.score(frame, ALL, known=2))
    )
    sizes = sorted(frame.nunique())
    assert (few.combinations, many.combinations) == (sizes[-1] * sizes[-2], sizes[-1] * sizes[-2] * sizes[-3])
    assert (few.widest, many.widest) == (2, 3)
    assert few.least(10**6) < many.least(10**6)
    few = few._replace(collapsing=0)
    assert few.least(10**6, kept=4) - few.least(10**6) == 3 * 16 * len(FEW) * 10**6


@pytest.mark.parametrize(("values", "nbytes"), [(256, 1), (257, 2), (65_536, 2), (65_537, 4)])
def test_the_planned_memory_of_codes_follows_their_type(values, nbytes):
    def job(several):
        return counting_job([np.ones(several, np.int64)] * 2, [0], [1], [])

    fixed = [AnyKnownNeeds.from_job(job(several), 1000, [KnownSubset((0, 1), (0,))]).fixed for several in (2, values)]
    # Scores of two columns, as the engine returns them and as the run stores them.
    assert fixed[1] - fixed[0] == 2 * 2 * (nbytes - 1)
