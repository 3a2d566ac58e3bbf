"""Tables larger than memory: the same bits as in memory for all sizes of chunks and partitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.errors import InputError
from gpupif.out_of_core.table_scoring import TableScoring
from gpupif.pipeline.fitting_rows import PartitionRows
from gpupif.utils.percentiles import ONCE, percentiles
from tests.helpers.file_formats import ALL, FILES, FRAME
from tests.helpers.pieces import (
    assert_same,
    assert_same_summary,
    census_folder,
    in_pieces,
    nothing_left,
    stored,
    write_parts,
)
from tests.helpers.scores import ALL as EVERY
from tests.helpers.tables import SHARED_FIXTURES, frame_of, jobs

pytestmark = pytest.mark.every_engine


@pytest.fixture
def small():
    with in_pieces(3, 2):
        yield


@pytest.mark.slow
@given(job=jobs(), data=st.data())
@settings(SHARED_FIXTURES, max_examples=15)
def test_scores_have_the_bits_of_memory(job, data, tmp_path_factory):
    table, arguments = job
    frame = frame_of(table)
    folder = tmp_path_factory.mktemp("t")
    rows = len(frame)
    edges = data.draw(st.lists(st.integers(0, rows), max_size=3))
    dtype = data.draw(st.sampled_from(["float64", "float32"]))
    write_parts(folder / "in", frame, edges)
    with in_pieces(data.draw(st.integers(1, rows)), data.draw(st.integers(1, rows + 1))):
        scores = gpupif.score_files(folder / "in", folder / "out", EVERY, dtype=dtype, **arguments)
    expected = gpupif.score(folder / "in", EVERY, dtype=dtype, **arguments)
    assert_same(scores, expected)
    if dtype == "float64":
        assert_same_summary(scores, expected)
    assert nothing_left(folder)


@pytest.fixture(params=FILES.values(), ids=FILES)
def file(request, tmp_path):
    name, write = request.param
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / name)
    return tmp_path / "in" / name


@pytest.mark.slow
def test_every_format_gets_the_scores_of_memory(file, tmp_path, small):
    scores = gpupif.score_files(file, tmp_path / "out", ALL)
    assert_same(scores, gpupif.score(file, ALL))
    assert_same_summary(scores, gpupif.score(file, ALL))


WRITE = {
    "csv": lambda frame, file: frame.to_csv(file, index=False),
    "parquet": lambda frame, file: frame.to_parquet(file, index=False),
    "feather": lambda frame, file: frame.reset_index(drop=True).to_feather(file),
}


@pytest.mark.slow
@pytest.mark.parametrize("ending", WRITE)
def test_files_matched_by_a_pattern_are_one_table(tmp_path, ending, small):
    """Files in folders of any depth are one table, in order of their paths, in memory and beyond."""
    places = {"b/0": (0, 2), "a/x/1": (2, 4), "a/y/z/2": (4, 6), "a/3": (6, 8)}
    for place, (start, stop) in places.items():
        file = tmp_path / "in" / f"{place}.{ending}"
        file.parent.mkdir(parents=True, exist_ok=True)
        WRITE[ending](FRAME.iloc[start:stop], file)
    pattern = tmp_path / "in" / "**" / f"*.{ending}"
    expected = gpupif.score(FRAME.iloc[[6, 7, 2, 3, 4, 5, 0, 1]].reset_index(drop=True), ALL)
    assert gpupif.score(pattern, ALL).array("cig").tobytes() == expected.array("cig").tobytes()
    scores = gpupif.score_files(pattern, tmp_path / "out", ALL)
    assert stored(scores)["csf_a;b"].to_numpy().tobytes() == expected.array("csf")[1].tobytes()
    written = [str(file.relative_to(tmp_path / "out")) for file in scores.files]
    assert written == ["a/3.parquet", "a/x/1.parquet", "a/y/z/2.parquet", "b/0.parquet"]


def test_each_input_file_has_a_score_file_and_all_read_as_one(tmp_path, small):
    source = write_parts(tmp_path / "in", FRAME, [3, 4])
    scores = gpupif.score_files(source, tmp_path / "out")
    assert [file.name for file in scores.files] == ["000.parquet", "001.parquet", "002.parquet"]
    assert [pq.read_metadata(file).num_rows for file in scores.files] == [3, 1, 4]
    expected = gpupif.score(source).to_arrow()
    assert ds.dataset(tmp_path / "out").to_table().equals(stored(scores))
    assert pq.read_table(tmp_path / "out").column_names == expected.column_names
    assert scores.frame().to_arrow().equals(stored(scores))


@pytest.mark.slow
def test_folders_that_hold_columns_are_kept_in_the_output(tmp_path, small):
    for sex in "fm":
        (tmp_path / "in" / f"sex={sex}").mkdir(parents=True)
        FRAME.to_parquet(tmp_path / "in" / f"sex={sex}" / "part.parquet", index=False)
    scores = gpupif.score_files(tmp_path / "in", tmp_path / "out", ALL)
    assert_same(scores, gpupif.score(tmp_path / "in", ALL))
    assert "cig_sex" in stored(scores).column_names
    written = ds.dataset(tmp_path / "out", partitioning="hive").to_table()
    assert written["sex"].to_pylist() == ["f"] * 8 + ["m"] * 8


@pytest.mark.slow
@pytest.mark.parametrize(("each", "sizes"), [(3, [3, 3, 2]), (8, [8]), (100, [8]), (1, [1] * 8)])
def test_score_files_have_the_rows_that_were_asked_for(tmp_path, small, each, sizes):
    source = write_parts(tmp_path / "in", FRAME, [3, 4])
    scores = gpupif.score_files(source, tmp_path / "out", ALL, rows_per_file=each)
    assert [file.name for file in scores.files] == [f"part-{number:05}.parquet" for number in range(len(sizes))]
    assert [pq.read_metadata(file).num_rows for file in scores.files] == sizes
    assert_same(scores, gpupif.score(source, ALL))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["s.parquet", "s.csv", "s.feather"])
def test_scores_are_written_to_a_single_file_of_any_format(tmp_path, small, name):
    source = write_parts(tmp_path / "in", FRAME, [3, 4])
    scores = gpupif.score_files(source, tmp_path / name)
    assert scores.files == [tmp_path / name]
    gpupif.score(source).write(tmp_path / f"other-{name}")
    form = {"csv": "csv", "feather": "ipc"}.get(name.removeprefix("s."), "parquet")
    written, other = (ds.dataset(tmp_path / file, format=form).to_table() for file in (name, f"other-{name}"))
    assert written.equals(other)
    assert scores.frame().to_arrow().equals(gpupif.score(source).to_arrow())


def test_keep_input_writes_the_input_beside_the_scores(tmp_path, small):
    source = write_parts(tmp_path / "in", FRAME, [3, 4])
    scores = gpupif.score_files(source, tmp_path / "out", keep_input=True)
    gpupif.score(source).to_parquet(tmp_path / "other.parquet", keep_input=True)
    other = pq.read_table(tmp_path / "other.parquet")
    assert stored(scores).to_pylist() == other.to_pylist()


@pytest.mark.slow
def test_columns_of_folders_are_not_kept_twice(tmp_path, small):
    gpupif.datasets.census(30).to_parquet(tmp_path / "in", partition_cols=["sex"], index=False)
    scores = gpupif.score_files(tmp_path / "in", tmp_path / "out", "cig", keep_input=True)
    assert "sex" not in pq.read_schema(scores.files[0]).names
    assert gpupif.score(tmp_path / "out", "cig", columns=["sex", "age"]).rows == 30
    single = gpupif.score_files(tmp_path / "in", tmp_path / "out.parquet", "cig", keep_input=True)
    assert "sex" in pq.read_schema(single.files[0]).names


@pytest.mark.slow
def test_files_without_rows_get_empty_score_files(tmp_path, small):
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    source = write_parts(tmp_path / "in", FRAME, [3])
    for name in ("", "000x", "zzz"):
        pq.write_table(table.slice(0, 0), source / f"{name}.parquet")
    (source / ".parquet").rename(source / "0.parquet")
    scores = gpupif.score_files(source, tmp_path / "out", ALL)
    assert [pq.read_metadata(file).num_rows for file in scores.files] == [0, 3, 0, 5, 0]
    assert_same(scores, gpupif.score(source, ALL))


@pytest.mark.slow
def test_the_returned_scores_have_the_figures_of_memory(tmp_path):
    source = census_folder(tmp_path / "in")
    with in_pieces(40, 70), gpupif.config(temp=tmp_path):
        scores = gpupif.score_files(source, tmp_path / "out", EVERY)
    expected = gpupif.score(source, EVERY)
    assert_same(scores, expected)
    assert_same_summary(scores, expected)
    pd.testing.assert_series_equal(scores.fig(), expected.fig(), check_names=False)
    assert scores.pif([0, 12.5, 95]) == expected.pif([0, 12.5, 95])
    assert scores.pif(50) == expected.pif(50)
    assert scores.measures == expected.measures
    assert scores.spilled_bytes > 0
    assert "300 rows x 10 columns" in repr(scores)
    assert isinstance(scores.cig, gpupif.results.StoredFrame)
    pd.testing.assert_frame_equal(scores.cig.to_pandas(), expected.cig)
    assert nothing_left(tmp_path)


@pytest.mark.slow
def test_figures_of_cig_are_refused_if_it_was_not_scored(tmp_path):
    with in_pieces(40, 70):
        scores = gpupif.score_files(census_folder(tmp_path / "in"), tmp_path / "out", ["wcig", "cohort_size"])
    expected = gpupif.score(tmp_path / "in", ["wcig", "cohort_size"])
    assert_same(scores, expected)
    assert_same_summary(scores, expected)
    for ask in (scores.fig, lambda: scores.pif(5)):
        with pytest.raises(InputError, match="'cig' was not scored"):
            ask()


KNOWN = {
    "one combination covers nine tenths": ({}, None),
    "nothing is known": ({"known": []}, None),
    "one column is known": ({"known": ["sex"]}, None),
    "scored columns are not known": ({"known": ["sex", "region"], "columns": ["age", "occupation", "education"]}, None),
    "one scored column": ({"columns": ["age"], "known": ["sex", "education", "region"]}, None),
}


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "_"), KNOWN.values(), ids=KNOWN)
@pytest.mark.parametrize("partition_rows", [2, 20, 90])
def test_parts_too_large_are_collapsed_and_cut_again(tmp_path, arguments, _, partition_rows, monkeypatch):
    frame = gpupif.datasets.census(120, columns=6)
    chance = np.random.default_rng(1)
    for name in frame:
        frame[name] = frame[name].where(chance.random(120) < 0.1, frame[name].mode()[0])
    write_parts(tmp_path / "in", frame, [30])
    calls = []
    for owner, name in ((PartitionRows, "_collapse"), (TableScoring, "_join_slices")):
        real = getattr(owner, name)

        def noted(self, *given, real=real, name=name):
            calls.append(name)
            return real(self, *given)

        monkeypatch.setattr(owner, name, noted)
    with in_pieces(40, partition_rows):
        scores = gpupif.score_files(tmp_path / "in", tmp_path / "out", ALL, **arguments)
    expected = gpupif.score(tmp_path / "in", ALL, **arguments)
    assert_same(scores, expected)
    assert_same_summary(scores, expected)
    if partition_rows == 2:
        assert {"_collapse", "_join_slices"} <= {*calls}


NUMBERS = st.sampled_from([0.0, -0.0, 1e-300, -0.25, 1.0, 1.0000000000000002, 3.5, 1e300]) | st.floats(-64, 64)


@given(
    numbers=st.lists(NUMBERS, min_size=1),
    wanted=st.lists(st.floats(0, 100), min_size=1, max_size=4),
    pieces=st.integers(1, 4),
    few=st.sampled_from([0, 8]),
)
@settings(deadline=None)
def test_percentiles_have_the_values_of_numpy(numbers, wanted, pieces, few):
    expected = np.percentile(numbers, wanted).tolist()
    cut = np.array_split(np.array(numbers), pieces)
    counted = np.unique(numbers, return_counts=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gpupif.utils.percentiles.FEW_PREFIXES", few)
        assert percentiles(lambda: [(part, ONCE) for part in cut], wanted) == expected
        assert percentiles(lambda: [counted], wanted) == expected
