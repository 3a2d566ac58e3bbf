"""Entropies and toxic pairs of files and Dask frames: the bits of memory, however small the memory is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif import toxic_pairs
from gpupif.engines.cpu import count_tables as subset_tables
from gpupif.marginals import counts_on_disk as counting
from tests.helpers.configured import configured
from tests.helpers.dask_frames import cut, of_parts
from tests.helpers.pieces import in_parts, write_parts
from tests.helpers.tables import SHARED_FIXTURES, SIMULATED, frame_of, tables

pytestmark = [pytest.mark.every_engine, pytest.mark.usefixtures("dask_in_one_thread")]

FEW = settings(SHARED_FIXTURES, max_examples=2 if SIMULATED else 6)


def measures(table, names):
    """Return every measure: of a pair of sets of columns, or of all columns."""
    one, other = names[: len(names) // 2 + 1], names[len(names) // 2 :]
    return {
        "entropy": gpupif.information.entropy(table, names[0]),
        "joint entropy": gpupif.information.entropy(table, names[::-1]),
        "conditional entropy": gpupif.information.conditional_entropy(table, one, other),
        "on nothing": gpupif.information.conditional_entropy(table, one, []),
        "mutual information": gpupif.information.mutual_information(table, one, other),
        "total correlation": gpupif.information.total_correlation(table),
        "dual total correlation": gpupif.information.dual_total_correlation(table),
        "residual entropy": gpupif.information.residual_entropy(table),
    }


def assert_same_pairs(found, wanted):
    for one, other in ((found.pairs, wanted.pairs), (found.values, wanted.values)):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert (found.rows, found.columns) == (wanted.rows, wanted.columns)


@pytest.mark.slow
@given(table=tables(most_columns=4), data=st.data())
@FEW
def test_files_in_partitions_have_the_bits_of_memory(counting_engine, table, data, tmp_path_factory):
    frame, names = frame_of(table), list(table)
    folder = tmp_path_factory.mktemp("t")
    (folder / "temp").mkdir()
    write_parts(folder / "in", frame, data.draw(st.lists(st.integers(0, len(frame)), max_size=3)))
    how = {"memory_limit": "16GiB", "temp": folder / "temp"}
    with in_parts(data.draw(st.integers(1, len(frame)))):
        assert configured(measures, folder / "in", names, **how) == measures(frame, names)
        if len(names) > 1:
            size = data.draw(st.integers(2, min(3, len(names))))
            found = configured(toxic_pairs, folder / "in", size, top=4, **how)
            assert_same_pairs(found, toxic_pairs(folder / "in", size, top=4))
    assert not list((folder / "temp").iterdir())


@given(table=tables(most_columns=4), data=st.data())
@FEW
def test_dask_frames_have_the_bits_of_memory(counting_engine, table, data):
    frame, names = frame_of(table), list(table)
    lazy = cut(frame, data.draw(st.lists(st.integers(0, len(frame)), max_size=4)))
    which = data.draw(st.sampled_from(["entropy", "mutual information", "dual total correlation", "toxic"]))
    if which == "entropy":
        assert gpupif.information.entropy(lazy, names[::-1]) == gpupif.information.entropy(frame, names)
        assert gpupif.information.conditional_entropy(lazy, names[0], []) == gpupif.information.entropy(frame, names[0])
    elif which == "mutual information":
        assert gpupif.information.mutual_information(
            lazy, names[:2], names[1:] or names
        ) == gpupif.information.mutual_information(frame, names[:2], names[1:] or names)
    elif which == "dual total correlation":
        assert gpupif.information.dual_total_correlation(lazy) == gpupif.information.dual_total_correlation(frame)
        assert gpupif.information.residual_entropy(lazy) == gpupif.information.residual_entropy(frame)
    elif len(names) > 1:
        assert_same_pairs(toxic_pairs(lazy, top=5), toxic_pairs(frame, top=5))


def grid(*sizes, times=1):
    """Return columns that are independent of each other: all combinations are equally frequent."""
    cells = np.array(np.meshgrid(*map(range, sizes))).reshape(len(sizes), -1).T
    return pd.DataFrame(np.repeat(cells, times, axis=0), columns=list("abcdef")[: len(sizes)])


@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True])
def test_only_exact_independence_gives_0(tmp_path, broken):
    """Check that whole numbers decide whether information is exactly 0."""
    frame = grid(7, 5, 3, times=1 if SIMULATED else 12)
    if broken:
        frame.loc[len(frame)] = [0, 0, 0]
    path = write_parts(tmp_path / "in", frame, [50])
    lazy = cut(frame, [10, 10, 1000])

    def informations(table):
        pairs = toxic_pairs(table).pairs["mutual_information"].tolist()
        triples = toxic_pairs(table, 3).pairs["total_correlation"].tolist()
        return [
            gpupif.information.mutual_information(table, ["a", "b"], "c"),
            gpupif.information.mutual_information(table, "c", ["b", "a"]),
            gpupif.information.total_correlation(table),
            gpupif.information.dual_total_correlation(table),
            *pairs,
            *triples,
        ]

    wanted = informations(frame)
    assert all((value > 0) == broken for value in wanted)
    with in_parts(500, 1000):
        assert configured(informations, path, memory_limit="16GiB") == wanted
    assert informations(lazy) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("least", [3000, 10**6])
def test_sets_of_many_combinations_are_cut_finer(tmp_path, monkeypatch, least):
    """Cut sets of several words by their common columns, one with a value too frequent to be cut by."""
    random = np.random.default_rng(3)
    rows = 1000
    sizes = {"a": 2000, "b": 70_000, "c": 70_000, "d": 70_000, "e": 70_000, "f": 3}
    frame = pd.DataFrame({name: random.integers(0, size, rows) for name, size in sizes.items()})
    frame.loc[: rows // 2, ["a", "b"]] = 0
    frame = pd.concat([frame, frame[:300]], ignore_index=True)
    with gpupif.config(device="cpu"):
        wanted, pairs = measures(frame, list(frame)), toxic_pairs(frame)
    path = write_parts(tmp_path / "in", frame, [100])
    with in_parts(500, least), gpupif.config(memory_limit="16GiB", device="cpu"):
        assert measures(path, list(frame)) == wanted
        assert_same_pairs(toxic_pairs(path), pairs)
    monkeypatch.setattr(subset_tables, "DENSE", 1)
    lazy = cut(frame, [500, 501, 900])
    with gpupif.config(device="cpu"):
        assert gpupif.information.residual_entropy(lazy) == wanted["residual entropy"]
        assert_same_pairs(toxic_pairs(lazy), pairs)


def test_sets_with_and_without_room_in_memory_are_counted_together(tmp_path, monkeypatch):
    """Only the last pair is counted in partitions, which hold only its columns."""
    random = np.random.default_rng(3)
    frame = pd.DataFrame({name: random.integers(0, size, 3000) for name, size in (("a", 2), ("b", 500), ("c", 400))})
    path = write_parts(tmp_path / "in", frame, [900])
    wanted = toxic_pairs(frame)
    monkeypatch.setattr("gpupif.marginals.counts_on_disk.SEARCH_BYTES", 3 * 10**6)
    with gpupif.config(memory_limit="16GiB", device="cpu"):
        found = toxic_pairs(path)
    assert_same_pairs(found, wanted)


def test_a_csv_file_that_does_not_fit_is_read_in_streams(tmp_path, monkeypatch):
    frame = gpupif.datasets.census(60 if SIMULATED else 500).astype(str)
    frame.to_csv(tmp_path / "t.csv", index=False)
    wanted = gpupif.information.residual_entropy(frame)
    assert gpupif.information.residual_entropy(tmp_path / "t.csv") == wanted
    monkeypatch.setattr("gpupif.out_of_core.temporary_table.CELL_BYTES", 10**9)
    monkeypatch.setattr("gpupif.marginals.open_counts.MemoryCounts", None)
    assert gpupif.information.residual_entropy(tmp_path / "t.csv") == wanted


def test_bad_input_is_refused_in_the_same_words_everywhere(tmp_path):
    frame = pd.DataFrame({"a": ["x", None, "y"], "b": [1, 2, 3]})
    path = write_parts(tmp_path / "in", frame)
    lazy = cut(frame, [1])
    kinds = [(frame, {}), (lazy, {}), (path, {"memory_limit": "16GiB"})]
    cases = [
        ({"columns": "z"}, "columns: no column 'z'"),
        ({"columns": []}, "columns: expected at least one column"),
        ({"missing": "no"}, "missing: expected"),
        ({"missing": "error"}, "column 'a': .*missing value.*the first in row 1"),
    ]
    for table, how in kinds:
        for arguments, words in cases:
            with pytest.raises(gpupif.InputError, match=words):
                configured(gpupif.information.entropy, table, **arguments, **how)
        with pytest.raises(gpupif.InputError, match="a, b: no column 'z'"):
            configured(gpupif.information.mutual_information, table, "a", "z", **how)
        with pytest.raises(gpupif.InputError, match="at least 3 columns for triples"):
            configured(toxic_pairs, table, 3, **how)
    with pytest.raises(gpupif.InputError, match="expected at least one row"):
        gpupif.information.entropy(of_parts([frame[:0]]))
    with pytest.raises(gpupif.InputError, match="expected a Dask DataFrame, got a Dask Series"):
        gpupif.information.entropy(lazy["a"])
    with gpupif.config(memory_limit="1MB"):
        # Tables in memory stay there, and workers of Dask have limits of their own.
        assert gpupif.information.entropy(lazy, "b") == gpupif.information.entropy(frame, "b")
    with (
        pytest.raises(gpupif.InputError, match="memory_limit: expected at least"),
        gpupif.config(memory_limit="1MB"),
    ):
        gpupif.information.entropy(path)


def test_no_temporary_files_stay_after_a_failure(tmp_path, monkeypatch):
    path = write_parts(tmp_path / "in", grid(20, 20, 20), [5])
    (tmp_path / "temp").mkdir()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(counting, "hash_partition", fail)
    with (
        in_parts(3000),
        pytest.raises(gpupif.errors.OutputError, match=r"No space left.*temp \(--temp\)"),
        gpupif.config(memory_limit="4GiB", temp=tmp_path / "temp"),
    ):
        gpupif.information.entropy(path)
    assert not list((tmp_path / "temp").iterdir())


def test_a_cut_finer_than_hashes_is_refused(tmp_path, monkeypatch):
    path = write_parts(tmp_path / "in", grid(9, 9, 9))
    monkeypatch.setattr(counting, "HASHES", 16)
    with (
        in_parts(100, 1),
        pytest.raises(gpupif.InputError, match="memory_limit: too little to count"),
        gpupif.config(memory_limit="16GiB"),
    ):
        gpupif.information.entropy(path)
