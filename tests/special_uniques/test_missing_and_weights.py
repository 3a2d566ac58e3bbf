"""Special uniques of rows that lack values, and of samples with weights, in every way to run."""

from __future__ import annotations

import json

import dask
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif import suda
from tests.helpers.counting_ways import OTHERS, WAYS, in_memory, on_device
from tests.helpers.naive_suda import EXAMPLE, check
from tests.helpers.suda_searches import SEARCHES, searched_by
from tests.helpers.tables import SHARED_FIXTURES, SIMULATED, frame_of
from tests.helpers.wildcards import sparse

pytestmark = pytest.mark.every_engine

LACKING = pytest.mark.parametrize("missing", ["ignore", "wildcard"])


def counted(way, *arguments, search=None, **options):
    """Special uniques in a way to run; of files and Dask frames as if not even the distinct rows had room, or so."""
    search = search or "counted"
    if search == "counted" and way in (in_memory, on_device):
        # The distinct rows of a frame are always in memory.
        search = "sets"
    with searched_by(search):
        return way(suda, *arguments, **options)


def rows_of(*texts):
    """A table from a text for each row, a letter for each column; "-" is missing."""
    columns = {
        f"c{place}": [None if value == "-" else value for value in values]
        for place, values in enumerate(zip(*texts, strict=True))
    }
    return pd.DataFrame(columns, dtype=object)


@pytest.mark.slow
@LACKING
@given(table=sparse(), data=st.data(), search=st.sampled_from([name for name in SEARCHES if name != "counted"]))
@SHARED_FIXTURES
def test_special_uniques_follow_the_definition_with_missing_values(counting_engine, missing, table, data, search):
    max_size = data.draw(st.integers(1, len(table)))
    with searched_by(search):
        check(suda(frame_of(table), max_size, missing=missing, contributions=True), table, max_size, missing)


@pytest.mark.slow
@LACKING
@pytest.mark.parametrize("search", ["pairs", "sets", "sets-grouped"])
def test_many_rows_with_missing_values_follow_the_definition(counting_engine, monkeypatch, missing, search):
    """There are more rows than bits of a word, keys of two words, rows that lack a whole set, and repeated rows."""
    monkeypatch.setattr("gpupif.rows.keys.WORD_BITS", 12)
    monkeypatch.setattr("gpupif.engines.cpu.count_tables.WORD_BITS", 12)
    random = np.random.default_rng(5)
    rows = 150 if SIMULATED else 900
    table = {name: random.integers(0, size, rows) for name, size in (("a", 3), ("b", 500), ("c", 60), ("d", 900))}
    table = {name: np.where(random.random(rows) < 0.02, None, values) for name, values in table.items()}
    table = {name: [*values.tolist(), *values[:50].tolist()] for name, values in table.items()}
    with searched_by(search):
        check(suda(pd.DataFrame(table), 3, contributions=True, missing=missing), table, 3, missing)


@pytest.mark.slow
@LACKING
@pytest.mark.parametrize("way", OTHERS)
@given(table=sparse(most_columns=3), data=st.data())
@settings(SHARED_FIXTURES, max_examples=2 if SIMULATED else 5)
def test_every_way_gives_the_same_special_uniques(missing, way, table, data):
    max_size = data.draw(st.integers(1, len(table)))
    frame = frame_of(table)
    fraction = None if missing == "wildcard" else 0.1
    arguments = {"missing": missing, "contributions": True, "sampling_fraction": fraction}
    wanted = in_memory(suda, frame, max_size, **arguments)
    for search in ("pairs", "counted"):
        assert_same(counted(way, frame, max_size, search=search, **arguments), wanted)
    check(wanted, table, max_size, missing)


def assert_same(found, wanted):
    """The same bits for each row, lazy or not."""
    names = ["score", "msus", "contributions", *(["dis_score"] if wanted.dis is not None else [])]
    with dask.config.set(scheduler="sync"):
        frames = dask.compute(*(getattr(found, name) for name in names))
    for name, frame in zip(names, frames, strict=True):
        assert frame.to_numpy().tobytes() == getattr(wanted, name).to_numpy().tobytes(), name
    for name in ("sizes", "columns"):
        assert getattr(found.summary(), name).equals(getattr(wanted.summary(), name))
    assert (found.unique_rows, found.dis) == (wanted.unique_rows, wanted.dis)


@LACKING
def test_files_whose_codes_fit_give_the_same_bits(tmp_path, missing):
    frame = gpupif.datasets.census(400).mask(np.random.default_rng(1).random((400, 10)) < 0.05)
    frame.to_parquet(tmp_path / "t.parquet")
    wanted = suda(frame, missing=missing, contributions=True)
    with gpupif.config(memory_limit="4GiB"):
        found = suda(tmp_path / "t.parquet", missing=missing, contributions=True)
    assert_same(found, wanted)


# What suda2 of sdcMicro gives for these tables, with a sampling fraction of 0.1.
OF_SDCMICRO = {
    ("bcba", "-aab", "ac--", "abac", "abba", "bcaa", "baaa", "bcbb", "ba-a"): [2, 4, 2, 10, 8, 2, 2, 6, 0],
    ("-aaa", "ab-a", "-cab", "a--a", "bb--", "a-b-", "aabc", "a-ab", "aa-b"): [6, 4, 6, 0, 6, 0, 8, 2, 2],
    ("bcaa", "-caa", "aba-", "a--b", "aaba", "-b-a", "abab", "bbac", "-ba-"): [4, 0, 0, 0, 14, 2, 4, 8, 0],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("texts", "scores"), OF_SDCMICRO.items())
def test_scores_with_missing_values_are_those_of_sdcmicro(way, texts, scores):
    found = counted(way, rows_of(*texts), 4, missing="ignore").score
    with dask.config.set(scheduler="sync"):
        assert dask.compute(found)[0].tolist() == scores


def test_dis_suda_with_missing_values_is_that_of_sdcmicro():
    """sdcMicro counts equal rows, missing values included, as pairs."""
    texts = ["cb--", "bbca", "ab-a", "a-ba", "--cb", "aacc", "c-bc", "bc-a", "cbba", "cb--", "a-ba"]
    found = suda(rows_of(*texts), 4, missing="ignore", sampling_fraction=0.1)
    assert found.score.tolist() == [0, 8, 2, 0, 6, 12, 4, 6, 4, 0, 0]
    of_sdcmicro = [0, 0.28446723, 0.0700473236, 0, 0.219663598, 0.392729991, 0.14752, 0.219663598, 0.14752, 0, 0]
    assert found.dis_score.tolist() == pytest.approx(of_sdcmicro, rel=1e-6)


def test_a_missing_value_matches_as_its_option_says():
    """One row has the only x; other rows have suppressed values in place of an x or of another value."""
    one = rows_of("xa", "yb", "yb", "-c")
    assert suda(one, 2, missing="category").msus["msu_1"].tolist() == [2, 0, 0, 2]
    assert suda(one, 2, missing="ignore").msus["msu_1"].tolist() == [2, 0, 0, 1]
    assert suda(one, 2, missing="wildcard").msus["msu_1"].tolist() == [1, 0, 0, 1]
    # Who lacks everything matches everybody.
    assert suda(rows_of("xa", "yb", "--"), 2, missing="wildcard").score.tolist() == [0, 0, 0]
    assert suda(rows_of("xa", "yb", "--"), 2, missing="ignore").score.tolist() == [2, 2, 0]


@LACKING
def test_options_for_missing_values_do_not_matter_to_complete_tables(missing):
    wanted = suda(EXAMPLE, contributions=True)
    found = suda(EXAMPLE, contributions=True, missing=missing)
    assert found.score.equals(wanted.score)
    assert found.contributions.equals(wanted.contributions)


@pytest.mark.slow
@given(table=sparse(most_columns=4), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_suppressing_a_value_makes_no_row_riskier_with_wildcards(table, data):
    name, row = data.draw(st.sampled_from(list(table))), data.draw(st.integers(0, len(frame_of(table)) - 1))
    max_size = data.draw(st.integers(1, len(table)))
    unsuppressed = suda(frame_of(table), max_size, missing="wildcard")
    values = table | {name: [None if at == row else value for at, value in enumerate(table[name])]}
    suppressed = suda(frame_of(values), max_size, missing="wildcard")
    assert (suppressed.score <= unsuppressed.score).all()
    before, after = unsuppressed.msus.to_numpy(), suppressed.msus.to_numpy()
    # Sets on which a row is unique are those with an MSU inside.
    others = np.arange(len(before)) != row
    assert not ((after[others, 0] > before[others, 0]).any())
    assert not ((after[others].sum(axis=1) > 0) & (before[others].sum(axis=1) == 0)).any()


@pytest.mark.parametrize("way", WAYS)
def test_weights_give_the_same_dis_suda_in_every_way(way):
    random = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"a": random.integers(0, 4, 90), "b": random.integers(0, 5, 90), "c": random.integers(0, 3, 90)}
    )
    weights = random.integers(4, 60, 90) / 4
    equal = frame.assign(n=1).groupby(list(frame))["n"].transform("sum").to_numpy()
    unique, pairs = (equal == 1).sum(), equal == 2
    assert unique > 5
    assert pairs.sum() > 10
    plain = suda(frame, 3, contributions=True, sampling_fraction=0.5)
    wanted = suda(frame.assign(w=weights), 3, weights="w", contributions=True)
    for search in ("pairs", None):
        found = counted(way, frame.assign(w=weights), 3, weights="w", contributions=True, search=search)
        assert found.columns == ["a", "b", "c"]
        assert found.dis == unique / (unique + (weights[pairs] - 1).sum())
        with dask.config.set(scheduler="sync"):
            score, dis_score = dask.compute(found.score, found.dis_score)
        assert score.to_numpy().tobytes() == plain.score.to_numpy().tobytes()
        assert ((dis_score > 0) == (score > 0)).all()
        assert_same(found, wanted)
    # Beside the key variables, or one of them.
    named = counted(way, frame.assign(w=weights), 2, columns=["a", "w", "b"], weights="w", contributions=True)
    assert named.columns == ["a", "w", "b"]
    assert_same(named, suda(frame.assign(w=weights), 2, columns=["a", "w", "b"], weights="w", contributions=True))


def test_equal_weights_are_a_sampling_fraction():
    found = suda(EXAMPLE.assign(w=50.0), weights="w")
    wanted = suda(EXAMPLE, sampling_fraction=0.02)
    assert found.dis == pytest.approx(wanted.dis, rel=1e-14)
    assert found.dis_score.to_numpy() == pytest.approx(wanted.dis_score.to_numpy(), rel=1e-14)
    # A census: each stands for himself.
    assert suda(EXAMPLE.assign(w=1), weights="w").dis == 1
    same = pd.DataFrame({"a": [1, 1], "b": [2, 2], "w": [3, 4]})
    assert suda(same, 2, weights="w").dis == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"weights": "small"},
            r"weights: not defined for special uniques, where one is below 1: .*column 'small' has 0\.5",
        ),
        ({"weights": "zero"}, r"weights: not defined for special uniques, .* is in no sample \(column 'zero' has 0\)"),
        ({"weights": "w", "sampling_fraction": 0.1}, "weights: not defined for DIS .* beside sampling_fraction="),
        ({"weights": "w", "missing": "wildcard"}, "missing='wildcard': not defined for DIS and DIS-SUDA scores"),
        ({"sampling_fraction": 0.1, "missing": "wildcard"}, "missing='wildcard': not defined for DIS"),
        ({"weights": "none"}, "weights: no column 'none'"),
        ({"missing": "skip"}, "missing: expected"),
    ],
)
def test_every_way_refuses_options_that_are_not_defined(way, options, words):
    frame = pd.DataFrame({"a": [1, 2, 2], "b": [1, 1, None], "w": [1, 2, 3], "small": [1, 0.5, 9], "zero": [0, 5, 5]})
    with pytest.raises(gpupif.InputError, match=words):
        way(suda, frame, 2, columns=["a", "b"], **options)


def test_combinations_matched_by_missing_values_need_memory_too(tmp_path, monkeypatch):
    rows_of("xa", "yb", "-c").to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr("gpupif.special_uniques.search.MINIMAL_SHARE", 0)
    words = "3 minimal sample uniques and combinations that missing values match"
    with pytest.raises(gpupif.InputError, match=words), gpupif.config(memory_limit="4GiB"), searched_by("counted"):
        suda(tmp_path / "t.parquet", 2, missing="wildcard")


def test_the_command_finds_special_uniques_with_weights_and_missing_values(folder, run):
    frame = rows_of("bcba", "-aab", "ac--", "abac", "abba", "bcaa", "baaa", "bcbb", "ba-a").assign(w=4.5)
    frame.to_csv(folder / "t.csv", index=False)
    told = run("suda", "t.csv", "--weights", "w", "--missing", "ignore", "--max-size", "4", "--json", "--top", "2")
    document = json.loads(told.out)
    assert (told.code, [record["suda"] for record in document["top"]]) == (0, [10, 8])
    assert document["dis"] == 1
    told = run("suda", "t.csv", "--columns", "c0,c1,c2,c3", "--missing", "wildcard", "-o", "s.parquet", "-q")
    assert (told.code, told.out, told.err) == (0, "", "")
    found = suda(frame, 3, columns=["c0", "c1", "c2", "c3"], missing="wildcard")
    assert pd.read_parquet(folder / "s.parquet")["suda"].tolist() == found.score.tolist()
    told = run("suda", "t.csv", "--sampling-fraction", "0.1", "--missing", "wildcard")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("gpupif: error: --missing wildcard: not defined for DIS and DIS-SUDA scores")


def test_the_summary_counts_rows_told_apart_by_missing_values(folder, run):
    rows_of("xa", "xb", "-b").to_csv(folder / "t.csv", index=False)
    told = run("suda", "t.csv", "--missing", "wildcard")
    assert "singles out 1 of 3 rows (33.33 %)" in told.out
    assert "3 rows unique on all columns with missing values as one value more." in told.out
    assert "3 rows unique on all columns." in run("suda", "t.csv").out


def test_weights_of_a_file_of_roles_are_left_out_with_wildcards(folder, run):
    rows_of("xa", "xb", "-b").assign(w=[2, 3, 4]).to_csv(folder / "t.csv", index=False)
    (folder / "r.toml").write_text('[roles]\nc0 = "quasi-identifier"\nc1 = "quasi-identifier"\nw = "weight"\n')
    told = run("suda", "t.csv", "--roles", "r.toml", "--missing", "wildcard", "--json")
    document = json.loads(told.out)
    assert (told.code, document["dis"], document["missing"]) == (0, None, "wildcard")
    assert json.loads(run("suda", "t.csv", "--roles", "r.toml", "--json").out)["dis"] is not None


@pytest.mark.parametrize("way", WAYS)
def test_combinations_are_counted_if_only_the_rows_fit(monkeypatch, way):
    frame = gpupif.datasets.census(60)[["sex", "region", "education"]]
    monkeypatch.setattr("gpupif.special_uniques.search.fits", lambda *_: False)
    assert_same(way(suda, frame, 3, contributions=True), suda(frame, 3, contributions=True))
