"""Special uniques against the definition, and against the published example."""

from __future__ import annotations

import doctest
import json
import math

import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
import gpupif.special_uniques.suda
from gpupif import suda
from gpupif.kernels import agreements
from gpupif.rows.distinct import distinct_rows
from gpupif.rows.keys import KeyLayout
from gpupif.rows.partition import Rows
from gpupif.rows.threads import Workers
from gpupif.special_uniques.distinct_rows import DistinctRows
from gpupif.special_uniques.scoring import dis_suda, intrusion, msu_weights
from gpupif.special_uniques.search_by_sets import SearchBySets
from gpupif.special_uniques.search_time_and_memory import SearchMemory
from tests.helpers.kernels import run_in_python
from tests.helpers.naive_suda import EXAMPLE, check, minimal_uniques
from tests.helpers.suda_searches import SEARCHES, searched_by
from tests.helpers.tables import SHARED_FIXTURES, SIMULATED, frame_of, tables

pytestmark = pytest.mark.every_engine

IN_MEMORY = st.sampled_from([name for name in SEARCHES if name != "counted"])


@pytest.mark.slow
@given(table=tables(), data=st.data(), search=IN_MEMORY)
@SHARED_FIXTURES
def test_special_uniques_follow_the_definition(counting_engine, table, data, search):
    max_size = data.draw(st.integers(1, len(table)))
    with searched_by(search):
        check(suda(frame_of(table), max_size, contributions=True), table, max_size)


@pytest.mark.slow
@pytest.mark.parametrize("search", ["pairs", "sets", "sets-grouped"])
def test_many_rows_follow_the_definition(counting_engine, search):
    """There are more rows than a block holds, keys of several words, and repeated rows."""
    random = np.random.default_rng(5)
    rows = 700 if SIMULATED else 9000
    cells = {"a": 3, "b": 4000, "c": 60, "d": 20_000, "e": 9}
    table = {name: random.integers(0, size, rows) for name, size in cells.items()}
    table = {name: np.concatenate([values, values[:50]]).tolist() for name, values in table.items()}
    with searched_by(search):
        check(suda(pd.DataFrame(table), 3, contributions=True), table, 3)


def test_keys_of_several_words_are_searched_right():
    """Seven columns of 16 bits are two words."""
    random = np.random.default_rng(2)
    codes = [random.integers(0, 40_000, 300).astype(np.uint16) for _ in range(7)]
    codes = [np.where(random.random(300) < 0.9, values[0], values) for values in codes]
    with Workers(2) as workers:
        distinct = distinct_rows(Rows(KeyLayout.from_cardinalities([40_000] * 7).pack(codes, workers)), 300, workers)
        rows = DistinctRows.from_keys(distinct.rows.keys, distinct.rows.counts.copy(), [40_000] * 7, workers)
        found = SearchBySets(rows, workers, SearchMemory(2, 0, None)).run([1.0] * 7, False, lambda: None)
    expected = minimal_uniques({place: values.tolist() for place, values in enumerate(codes)}, 7)
    by_row = found.counts[:, distinct.number].T.tolist()
    assert by_row == [[sum(len(each) == size for each in sets) for size in range(1, 8)] for sets in expected]


@pytest.mark.slow
@given(rows=st.integers(1, 12), columns=st.integers(1, 6), low=st.sampled_from([0, 1, 3]), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_blocks_of_few_columns_are_searched_right(rows, columns, low, data):
    """Blocks are made small, so that there are many of them, with growing room."""
    cells = st.lists(st.integers(0, 2), min_size=rows, max_size=rows)
    table = {place: data.draw(cells) for place in range(columns)}
    largest = data.draw(st.integers(1, columns))
    with pytest.MonkeyPatch.context() as patch, searched_by("pairs"), gpupif.config(threads=1):
        patch.setattr("gpupif.special_uniques.search_by_pairs.FIRST_BLOCKS", 1)
        run_in_python(patch, agreements, LOW=low)
        # Products that do not fit are meant to lose their upper bits.
        with np.errstate(over="ignore"):
            found = suda(pd.DataFrame(table), largest, contributions=True)
    check(found, table, largest)


@pytest.mark.slow
def test_many_columns_give_the_special_uniques_of_counting():
    """There are more columns than bits of a block."""
    random = np.random.default_rng(4)
    frame = pd.DataFrame({f"c{place}": random.integers(0, 2 + place % 3, 60) for place in range(13)})
    for missing, table in (("category", frame), ("wildcard", frame.mask(random.random(frame.shape) < 0.1))):
        with searched_by("pairs"):
            found = suda(table, 4, contributions=True, missing=missing)
        with searched_by("sets"):
            wanted = suda(table, 4, contributions=True, missing=missing)
        assert found.msus.to_numpy().any(axis=0)[2:].all()
        assert found.msus.equals(wanted.msus)
        assert found.contributions.equals(wanted.contributions)
        assert found.summary().columns.equals(wanted.summary().columns)


def test_the_published_example_has_its_published_scores(counting_engine):
    """The table with which the International Household Survey Network's guide to sdcMicro explains the scores."""
    found = suda(EXAMPLE, 3, sampling_fraction=0.01)
    assert found.score.tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    assert found.msus.loc[4].tolist() == [1, 3, 0]
    assert found.unique_rows == 4
    assert found.dis == pytest.approx(0.04 / (0.04 + 6 * 0.99))
    # All sets of any size: (m - k)!, as sdcMicro has it.
    assert suda(EXAMPLE, 4).score.tolist() == found.score.tolist()
    # The guide's DIS-SUDA scores are those of sdcMicro's older scores: 7/4, 1/2 and 1/4 for 1, 2 and 3 columns of 4.
    older = np.array([1.75, 3.25, 1.75, 2.75])
    assert dis_suda(older, 4, found.dis, 4).round(4).tolist() == [0.0051, 0.0107, 0.0051, 0.0088]
    assert ((found.dis_score > 0) == (found.score > 0)).all()
    assert found.dis_score[4] > found.dis_score[7] > found.dis_score[2] > 0


def test_weights_of_msus_follow_their_formula():
    assert msu_weights(10, 3) == [9 * 8 * 7, 8 * 7, 7]
    assert msu_weights(4, 4) == [*msu_weights(4, 3), 1] == [6, 2, 1, 1]
    assert msu_weights(1, 1) == [1]
    for columns in range(2, 9):
        assert msu_weights(columns, columns) == [math.factorial(columns - size) for size in range(1, columns + 1)]


def test_dis_is_right_at_both_ends():
    assert intrusion(0, 10, 0.5) == 0
    assert intrusion(5, 0, 0.1) == 1
    assert suda(EXAMPLE, sampling_fraction=1).dis_score.isin([0, 1]).all()
    same = pd.DataFrame({"a": [1, 1, 1], "b": [2, 2, 2]})
    assert suda(same, 2, sampling_fraction=0.1).dis_score.tolist() == [0, 0, 0]
    assert suda(same, 2).summary().to_dict()["top"] == []


def test_the_default_size_is_3_columns_or_all_of_fewer(tmp_path):
    EXAMPLE.to_parquet(tmp_path / "t.parquet")
    two = list(EXAMPLE)[:2]
    for columns, size in ((two, 2), (two[:1], 1), (None, 3)):
        wanted = suda(EXAMPLE, size, columns).score.tolist()
        for table in (EXAMPLE, tmp_path / "t.parquet", dask.dataframe.from_pandas(EXAMPLE, 2)):
            found = suda(table, columns=columns)
            assert found.max_size == size
            assert list(found.score) == wanted
    # Counted in streams.
    with gpupif.config(memory_limit="16GiB"):
        assert suda(tmp_path / "t.parquet", columns=two).score.tolist() == suda(EXAMPLE, 2, two).score.tolist()


def test_every_kind_of_table_gives_the_same_scores(tmp_path):
    frame = EXAMPLE.set_index(np.arange(10) * 7)
    path = tmp_path / "t.parquet"
    EXAMPLE.to_parquet(path)
    wanted = [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    results = {
        pd.Series: suda(frame, contributions=True),
        pl.Series: suda(pl.from_pandas(EXAMPLE), contributions=True),
        pa.Array: suda(pa.Table.from_pandas(EXAMPLE), contributions=True),
    }
    for kind, found in results.items():
        assert isinstance(found.score, kind)
        assert found.score.tolist() == wanted if kind is not pl.Series else found.score.to_list() == wanted
        assert type(found.msus) is type(found.contributions)
        assert list(getattr(found.contributions, "column_names", found.contributions.columns)) == list(EXAMPLE)
    assert results[pd.Series].msus.index.equals(frame.index)
    assert results[pd.Series].top(2)["index"].tolist() == [28, 49]
    from_file = suda(path, 2, ["labour", "residence"])
    assert isinstance(from_file.msus, pd.DataFrame)
    assert from_file.columns == ["labour", "residence"]


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    frame = gpupif.datasets.census(80 if SIMULATED else 3000)
    seen = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("GPUPIF_NUM_THREADS", threads)
        found = suda(frame, 3, contributions=True, sampling_fraction=0.05)
        seen.append((found.score.to_numpy().tobytes(), found.dis_score.to_numpy().tobytes(), found.summary().to_json()))
        seen[-1] += (found.contributions.to_numpy().tobytes(), found.msus.to_numpy().tobytes())
    assert all(each == seen[0] for each in seen)


def test_columns_have_their_shares_of_all_scores():
    """An MSU counts for each of its columns, in the sum of all scores once: shares are those that sdcMicro has."""
    summary = suda(pd.DataFrame({"a": [2, 1, 1], "b": [0, 3, 0], "c": [0, 6, 0]})).summary()
    # Of 8: a has 2 and, with b and with c, 1 each; b has 2, and 1 with a.
    assert summary.columns["contribution"].tolist() == [0.5, 0.375, 0.375]
    printed = str(summary)
    assert "Share of all scores from MSUs with a column" in " ".join(printed.split())
    assert "37.5 %" in printed
    assert "An MSU counts for each of its columns: shares add up to more than 100 %." in printed


def test_the_summary_prints_and_is_given_as_json():
    summary = suda(EXAMPLE, sampling_fraction=0.01).summary()
    text = str(summary)
    verdict = ("4 of 10 rows (40 %)", "4 rows unique on all columns", "(DIS)")
    for part in (*verdict, "residence", "MSUs", "Rows at the highest risk"):
        assert part in text
    document = json.loads(summary.to_json())
    assert document["sizes"][0] == {"size": 1, "msus": 4, "rows": 4, "smallest": 4}
    assert document["top"][0]["row"] == 4
    assert repr(suda(EXAMPLE)) == "<SpecialUniques of 10 rows x 4 columns, sets of up to 3: 4 rows with a score>"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_size": 5}, r"max_size: expected at most 4, the number of columns, got 5"),
        ({"max_size": 0}, "max_size: expected a whole number"),
        ({"max_size": True}, "max_size: expected a whole number"),
        ({"sampling_fraction": 0}, "sampling_fraction: expected a number above 0"),
        ({"sampling_fraction": 1.5}, "sampling_fraction: expected a number above 0"),
        ({"columns": ["gender", "age"]}, "no column 'age'"),
        ({"columns": ["gender", "gender"]}, "columns: column 'gender' is named twice. Name it once."),
        ({"missing": "no"}, "missing: expected"),
    ],
)
def test_bad_input_is_refused(arguments, words):
    with pytest.raises(gpupif.InputError, match=words):
        suda(EXAMPLE, **arguments)


def test_too_many_sets_are_refused_with_their_number():
    wide = pd.DataFrame(np.zeros((2, 60), int), columns=[f"c{place}" for place in range(60)])
    total = sum(math.comb(60, size) for size in range(1, 9))
    with pytest.raises(gpupif.InputError, match=f"60 columns have {total:,} sets of up to 8.*max_size=5"):
        suda(wide, 8)


def test_results_that_were_not_asked_for_are_refused():
    found = suda(EXAMPLE)
    with pytest.raises(gpupif.InputError, match="contributions=True"):
        _ = found.contributions
    with pytest.raises(gpupif.InputError, match="sampling_fraction"):
        _ = found.dis_score
    with pytest.raises(gpupif.InputError, match="top: expected"):
        found.top(0)


def test_the_examples_of_the_docstring_are_right():
    tried = doctest.testmod(gpupif.special_uniques.suda)
    assert tried.attempted >= 4
    assert tried.failed == 0
