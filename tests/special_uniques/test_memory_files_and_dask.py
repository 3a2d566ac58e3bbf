"""Special uniques within a memory limit and of files in streams: the same bits; the command `gpupif suda`."""

from __future__ import annotations

import re

import dask
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif import suda
from gpupif.out_of_core import memory_budget as budget
from gpupif.special_uniques.search import count_stream
from gpupif.special_uniques.search_by_sets import SpillingRowSets
from gpupif.special_uniques.search_time_and_memory import bytes_by_sets, share_by_sets
from tests.helpers.dask_frames import cut, of_parts
from tests.helpers.naive_suda import EXAMPLE, check
from tests.helpers.pieces import in_parts, write_parts
from tests.helpers.suda_searches import searched_by
from tests.helpers.tables import SHARED_FIXTURES, frame_of, tables

pytestmark = pytest.mark.every_engine


def assert_same(found, wanted):
    for one, other in ((found.msus, wanted.msus), (found.contributions, wanted.contributions)):
        pd.testing.assert_frame_equal(one, other.reset_index(drop=True), check_exact=True)
    assert found.score.to_numpy().tobytes() == wanted.score.to_numpy().tobytes()
    assert found.dis_score.to_numpy().tobytes() == wanted.dis_score.to_numpy().tobytes()
    assert found.summary().sizes.equals(wanted.summary().sizes)
    assert found.summary().columns.equals(wanted.summary().columns)


@given(rows=st.integers(1, 300), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_marks_come_back_from_memory_and_disk(rows, data):
    """Sets hold from one row in a thousand to nearly all rows."""
    room = data.draw(st.sampled_from([0, 40, None]))
    sets = data.draw(st.lists(st.sets(st.integers(0, rows - 1)), max_size=6))
    with SpillingRowSets(room) as marks:
        for name, members in enumerate(sets):
            marks.put(name, as_bits(members, rows))
        assert marks.held <= (room if room is not None else marks.nbytes)
        assert (marks.spilled > 0) == (room is not None and marks.nbytes > marks.held)
        for name, members in enumerate(sets):
            more = data.draw(st.sets(st.integers(0, rows - 1), max_size=3))
            words = as_bits(more, rows)
            marks.add_to(name, words)
            assert words.tobytes() == as_bits(members | more, rows).tobytes()


def as_bits(members, rows):
    words = np.zeros(-(-rows // 64), np.uint64)
    for row in members:
        words[row // 64] |= np.uint64(1 << (row % 64))
    return words


@pytest.mark.slow
@given(table=tables(), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_a_search_without_room_follows_the_definition(table, data):
    """All sets kept between levels are on disk."""
    max_size = data.draw(st.integers(1, len(table)))
    with searched_by("sets-spilled"):
        found = suda(frame_of(table), max_size, contributions=True)
        check(found, table, max_size)
    assert (found.spilled_bytes > 0) == any(found.msus[f"msu_{size}"].any() for size in range(1, max_size))


def test_a_memory_limit_changes_no_result(tmp_path, monkeypatch):
    frame = gpupif.datasets.census(4000)
    arguments = {"max_size": 4, "contributions": True, "sampling_fraction": 0.1}
    wanted = suda(frame, **arguments)
    assert wanted.spilled_bytes == 0
    # As if little more was free than is needed.
    sizes = [frame[name].nunique(dropna=False) for name in frame]
    needed = bytes_by_sets(4000, sizes, 4, True)
    monkeypatch.setattr(
        "gpupif.special_uniques.search_time_and_memory.resident_bytes", lambda: 2**30 - needed - (1 << 18)
    )
    seen = []
    monkeypatch.setattr(
        "gpupif.special_uniques.search.share_by_sets",
        lambda *given: seen.append(share_by_sets(*given)._replace(room=1000)) or seen[-1],
    )
    with gpupif.config(memory_limit="1GiB", temp=tmp_path), searched_by("sets"):
        found = suda(frame, **arguments)
    assert_same(found, wanted)
    assert found.spilled_bytes > 0
    assert seen[0].dense is not None
    assert not list(tmp_path.iterdir())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_read_in_streams_give_the_same_bits(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(budget, "MOST_CHUNK", 300)
    frame = gpupif.datasets.census(1000)
    (tmp_path / "temp").mkdir()
    if ending == "csv":
        path = tmp_path / "t.csv"
        frame.to_csv(path, index=False)
    else:
        path = write_parts(tmp_path / "in", frame, [17, 400])
    wanted = suda(path, contributions=True, sampling_fraction=0.1)
    with gpupif.config(memory_limit="4GiB", temp=tmp_path / "temp"):
        found = suda(path, contributions=True, sampling_fraction=0.1)
    assert_same(found, wanted)
    assert found.top(5).equals(wanted.top(5))
    assert not list((tmp_path / "temp").iterdir())
    monkeypatch.setattr("gpupif.out_of_core.temporary_table.CELL_BYTES", 10**9)
    monkeypatch.setattr("gpupif.special_uniques.suda.code_columns", None)
    assert suda(path).score.equals(wanted.score)
    # Where not even the distinct rows have room, which are many.
    counted = []
    monkeypatch.setattr(
        "gpupif.special_uniques.search.count_stream", lambda *given: counted.append(1) or count_stream(*given)
    )
    monkeypatch.setattr("gpupif.special_uniques.search.MERGING", 10**9)
    with gpupif.config(memory_limit="4GiB"):
        assert_same(suda(path, contributions=True, sampling_fraction=0.1), wanted)
    assert counted == [1]


@pytest.mark.slow
@given(table=tables(), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_files_whose_codes_do_not_fit_are_searched(counting_engine, table, data, tmp_path_factory):
    """Unique combinations are counted on disk, chunk by chunk and in parts, and follow the definition."""
    folder = tmp_path_factory.mktemp("t")
    (folder / "temp").mkdir()
    max_size = data.draw(st.integers(1, len(table)))
    write_parts(folder / "in", frame_of(table), data.draw(st.lists(st.integers(0, 24), max_size=2)))
    with (
        in_parts(5, 10**6 if data.draw(st.booleans()) else 150),
        searched_by("counted"),
        gpupif.config(memory_limit="4GiB", temp=folder / "temp"),
    ):
        found = suda(folder / "in", max_size, contributions=True)
    check(found, table, max_size)
    assert not list((folder / "temp").iterdir())


@pytest.mark.parametrize("words", [1, 2])
def test_codes_that_do_not_fit_give_the_same_bits(counting_engine, tmp_path, monkeypatch, words):
    frame = gpupif.datasets.census(1500)
    if words == 2:
        # Three columns of 22 bits and more make keys of two words.
        numbers = np.random.default_rng(1).permutation(1500)
        frame = pd.DataFrame({name: numbers // size for name, size in (("a", 3), ("b", 2), ("c", 1))})
        monkeypatch.setattr("gpupif.rows.keys.WORD_BITS", 12)
        monkeypatch.setattr("gpupif.engines.cpu.count_tables.WORD_BITS", 12)
        frame["c"] %= 700
    path = write_parts(tmp_path / "in", frame, [17])
    arguments = {"contributions": True, "sampling_fraction": 0.1}
    wanted = suda(path, **arguments)
    with in_parts(400, 10**6), gpupif.config(memory_limit="4GiB"), searched_by("counted"):
        found = suda(path, **arguments)
    assert_same(found, wanted)
    assert found.top(9).equals(wanted.top(9))
    found.write(tmp_path / "scores.parquet")
    assert pd.read_parquet(tmp_path / "scores.parquet")["suda"].equals(wanted.score.rename("suda"))


@pytest.mark.parametrize("limit", [None, "2GiB"])
def test_too_little_memory_is_an_error_before_the_work(monkeypatch, limit):
    """How many sets, how much memory, and what to do."""
    monkeypatch.setattr("gpupif.special_uniques.search_time_and_memory.free_bytes", lambda: 1000)
    monkeypatch.setattr("gpupif.special_uniques.search_time_and_memory.resident_bytes", lambda: 2**31 - 1000)
    for search in ("SearchByPairs", "SearchBySets"):
        monkeypatch.setattr(f"gpupif.special_uniques.search.{search}", None)
    left = "are free" if limit is None else r"are left of 2\.0 GiB"
    words = (
        rf"memory_limit: to search sets of up to 3 of 4 columns in 7 distinct rows takes [\d.]+ KiB, 1\.0 KiB {left}\. "
    )
    with (
        pytest.raises(gpupif.InputError, match=words + r"Name fewer columns with columns=, lower max_size, or raise"),
        gpupif.config(memory_limit=limit),
    ):
        suda(EXAMPLE)
    with pytest.raises(gpupif.InputError, match="leave contributions out"), gpupif.config(memory_limit=limit):
        suda(EXAMPLE, contributions=True)


def test_bad_input_is_refused(tmp_path, monkeypatch):
    path = write_parts(tmp_path / "in", EXAMPLE)
    lazy = cut(EXAMPLE, [3])
    with pytest.raises(gpupif.InputError, match="max_size: expected at most 4"):
        suda(lazy, 5)
    with pytest.raises(gpupif.errors.ColumnNotFoundError):
        suda(lazy, columns=["age"])
    with pytest.raises(gpupif.InputError, match="expected at least one row"):
        suda(of_parts([EXAMPLE[:0]]))
    with (
        pytest.raises(gpupif.InputError, match="memory_limit: expected at least"),
        gpupif.config(memory_limit="1MB"),
    ):
        suda(path)
    with pytest.raises(gpupif.InputError, match="max_size: expected at most 4"), gpupif.config(memory_limit="4GiB"):
        suda(path, 5)
    with pytest.raises(gpupif.errors.ColumnNotFoundError), gpupif.config(memory_limit="4GiB"):
        suda(path, columns=["age"])
    monkeypatch.setattr("gpupif.special_uniques.search.MINIMAL_SHARE", 0)
    words = r"memory_limit: of up to 1 columns there are 4 minimal sample uniques, which take .* KiB; 0.0 KiB are there"
    with pytest.raises(gpupif.InputError, match=words), gpupif.config(memory_limit="4GiB"), searched_by("counted"):
        suda(path)


def test_a_search_that_takes_too_long_is_refused_at_once(monkeypatch):
    """A search of days is refused with a feasible size; a long search says so before it begins."""
    wide = pd.DataFrame({f"c{place}": range(40) for place in range(40)})
    with pytest.raises(gpupif.InputError, match=r"max_size: 40 columns have .* sets of up to 20, .*Give max_size=6 "):
        suda(wide, 20)
    monkeypatch.setattr("gpupif.special_uniques.search_time_and_memory.PAIR", 1e30)
    monkeypatch.setattr("gpupif.special_uniques.search_time_and_memory.COUNTED", 1e10)
    monkeypatch.setattr("gpupif.special_uniques.search_time_and_memory.LONGEST", 0.1)
    monkeypatch.setattr("gpupif.special_uniques.search_time_and_memory.SHORT", 0.05)
    words = r"max_size: to search 7 distinct rows for sets of up to 4 of 4 columns takes about 9 minutes, too long\."
    words += r" Give max_size=1 \(about 2 minutes\), or fewer columns"
    with pytest.raises(gpupif.InputError, match=words), gpupif.config(threads=2, device="cpu"):
        suda(EXAMPLE, 4)


@pytest.mark.parametrize("search", ["pairs", "sets"])
def test_a_long_search_says_how_long_it_takes(monkeypatch, capsys, search):
    monkeypatch.setattr("gpupif.special_uniques.search.WORTH_SAYING", 0)
    with searched_by(search), gpupif.config(progress=None):
        suda(EXAMPLE)
    assert re.search(r"gpupif: the search for special uniques takes about \d+ seconds", capsys.readouterr().err)
    with searched_by(search), gpupif.config(progress=False):
        suda(EXAMPLE)
    assert capsys.readouterr().err == ""


def test_too_little_memory_for_blocks_is_an_error(monkeypatch):
    monkeypatch.setattr("gpupif.special_uniques.search_by_pairs.FIRST_BLOCKS", 1)
    monkeypatch.setattr("gpupif.special_uniques.search_by_pairs.BLOCK_BYTES", 2**60)
    random = np.random.default_rng(1)
    table = pd.DataFrame({f"c{place}": random.integers(0, 2, 30) for place in range(13)})
    with pytest.raises(gpupif.InputError, match="memory_limit: to search sets of 13 columns"), searched_by("pairs"):
        suda(table, 13)


@pytest.mark.dask
def test_a_search_too_large_for_dask_is_refused(monkeypatch):
    """Distinct rows without room leave too many sets to count, or pairs that take too long."""
    random = np.random.default_rng(1)
    table = pd.DataFrame({f"c{place}": random.integers(0, 2, 30) for place in range(26)})
    monkeypatch.setattr("gpupif.special_uniques.dask_search.task_memory", lambda: 1000)
    sets = r"max_size: 26 columns have 67,108,863 sets of up to 26, too many to count .*Give max_size="
    with dask.config.set(scheduler="sync"), pytest.raises(gpupif.InputError, match=sets):
        suda(cut(table, [9]), 26)
    monkeypatch.setattr("gpupif.special_uniques.dask_search.task_memory", lambda: None)
    monkeypatch.setattr("gpupif.special_uniques.search_time_and_memory.LONGEST", 1e-9)
    time = r"max_size: to search 30 distinct rows for sets of up to 26 .*too long"
    with dask.config.set(scheduler="sync"), pytest.raises(gpupif.InputError, match=time):
        suda(cut(table, [9]), 26)


def test_a_full_disk_is_an_error_and_leaves_no_files(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", fail)
    with (
        searched_by("sets-spilled"),
        pytest.raises(gpupif.errors.OutputError, match=r"No space left on device\. Free some space.*temp"),
        gpupif.config(temp=tmp_path),
    ):
        suda(EXAMPLE)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@given(table=tables(most_columns=4), data=st.data())
@settings(SHARED_FIXTURES, max_examples=8)
def test_dask_frames_give_the_same_bits(counting_engine, table, data):
    frame = frame_of(table).set_index(np.arange(len(next(iter(table.values())))) * 7)
    max_size = data.draw(st.integers(1, len(table)))
    edges = data.draw(st.lists(st.integers(0, len(frame)), max_size=4))
    arguments = {"max_size": max_size, "contributions": True, "sampling_fraction": 0.1}
    with dask.config.set(scheduler="sync"):
        lazy = cut(frame, edges)
        with searched_by(data.draw(st.sampled_from(["pairs", "counted"]))):
            found = suda(lazy, **arguments)
        wanted = suda(frame, **arguments)
        frames = (found.score, found.dis_score, found.msus, found.contributions)
        assert {each.npartitions for each in frames} == {lazy.npartitions}
        scores, dis_scores, msus, contributions = dask.compute(*frames)
    pd.testing.assert_series_equal(scores, wanted.score, check_exact=True)
    pd.testing.assert_series_equal(dis_scores, wanted.dis_score, check_exact=True)
    pd.testing.assert_frame_equal(msus, wanted.msus, check_exact=True)
    pd.testing.assert_frame_equal(contributions, wanted.contributions, check_exact=True)
    summary, other = found.summary().to_dict(), wanted.summary().to_dict()
    for record in other["top"]:
        del record["index"]
    assert summary == other
    assert repr(found) == repr(wanted).replace("<SpecialUniques", "<DaskSpecialUniques")


def test_scores_of_dask_frames_are_written(tmp_path):
    arguments = {"max_size": 2, "contributions": True, "sampling_fraction": 0.1}
    with dask.config.set(scheduler="sync"):
        suda(cut(EXAMPLE, [3]), **arguments).write(tmp_path / "found.parquet")
    suda(EXAMPLE, **arguments).write(tmp_path / "wanted.parquet")
    assert pd.read_parquet(tmp_path / "found.parquet").equals(pd.read_parquet(tmp_path / "wanted.parquet"))


READ = {"parquet": pd.read_parquet, "csv": pd.read_csv, "feather": pd.read_feather}


@pytest.mark.parametrize("ending", READ)
def test_scores_are_written_in_the_order_of_rows(tmp_path, monkeypatch, ending):
    monkeypatch.setattr("gpupif.io.write.GROUP_ROWS", 3)
    found = suda(EXAMPLE, sampling_fraction=0.01, contributions=True)
    path = tmp_path / f"scores.{ending}"
    found.write(path)
    written = READ[ending](path)
    names = ["suda", "dis_suda", "msu_1", "msu_2", "msu_3", *(f"contribution_{name}" for name in EXAMPLE)]
    assert list(written) == names
    assert written["suda"].tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    assert written["dis_suda"].to_numpy() == pytest.approx(found.dis_score.to_numpy(), rel=1e-15)
    assert written["msu_2"].tolist() == found.msus["msu_2"].tolist()
    assert written["contribution_labour"].to_numpy() == pytest.approx(found.contributions["labour"].to_numpy())
    with pytest.raises(gpupif.errors.OutputError, match="exists already"):
        found.write(path, overwrite=False)
    with pytest.raises(gpupif.errors.OutputError, match="expected an output name ending in"):
        found.write(tmp_path / "scores.txt.gz")
