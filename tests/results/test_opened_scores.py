"""What files of scores say of themselves, and `open_scores`, which opens them again."""

from __future__ import annotations

import datetime
import decimal
import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif import AnyKnown
from gpupif.errors import InputError, TableReadError
from gpupif.io.score_files import MARK
from gpupif.results import packed_priors, provenance
from tests.helpers.pieces import assert_same_summary, in_pieces, write_parts

TABLE = gpupif.datasets.census(60, columns=3).assign(w=np.arange(60) % 3 + 0.5)
ASKED = {
    "weights": "w",
    "known": AnyKnown(1, subsets=1, seed=7),
    "accuracies": {"age": 0.9},
    "priors": {"sex": {"Female": 0.25, "Male": 0.75}},
}


@pytest.fixture
def scores():
    return gpupif.score(TABLE, ["cig", "csf", "cohort_size"], **ASKED)


@pytest.mark.parametrize("ending", ["parquet", "pq", "feather", "arrow"])
def test_scores_written_from_memory_are_opened_again(tmp_path, scores, ending):
    file = tmp_path / f"scores.{ending}"
    scores.write(file)
    again = gpupif.open_scores(file)
    assert again.provenance == scores.provenance
    assert again.provenance["gpupif"] == gpupif.__version__
    assert again.provenance["weights"] == "w"
    assert again.provenance["accuracies"] == {"age": 0.9}
    assert again.provenance["priors_given"] == ["sex"]
    assert again.priors["sex"] == {"Female": 0.25, "Male": 0.75}
    assert again.subsets.sets == scores.subsets.sets
    assert again.subsets.for_column("age") == scores.subsets.for_column("age")
    assert (again.path, again.files, again.spilled_bytes) == (file, [file], None)
    assert [kind.name for kind in again.mean.cohort_size.to_pandas().dtypes] == ["float64"] * 3
    mine, theirs = again.summary(), scores.summary()
    assert mine.to_dict() | {"stages": {}, "mean": {}} == theirs.to_dict() | {"stages": {}, "mean": {}}
    assert str(mine)


def test_opened_scores_name_their_table_and_population(tmp_path):
    source, people = tmp_path / "in.csv", tmp_path / "people.parquet"
    TABLE.to_csv(source, index=False)
    TABLE.to_parquet(people)
    scores = gpupif.score(source, "cig", ["sex"], known=["age"], population=people)
    scores.to_parquet(tmp_path / "scores.parquet")
    said = gpupif.open_scores(tmp_path / "scores.parquet").provenance
    assert said["input"]["path"] == str(source)
    assert said["input"]["files"][0]["bytes"] == source.stat().st_size
    assert (said["population"]["path"], said["population"]["lacks"]) == (str(people), "error")
    assert (said["measures"], said["dtype"]) == (["cig"], "float64")
    assert said["attackers"] == {"": {"known": ["age"], "any": None}}
    in_memory = gpupif.score(TABLE, "cig", ["sex"], known=["age"]).provenance
    assert (in_memory["input"], in_memory["population"]) == ({"rows": 60, "columns": 4}, None)


def test_opened_scores_name_the_distances_of_values(tmp_path):
    """The same scores can be computed a year later; distances too large to be stored are named."""
    distances = {"sex": ["Male", "Female"], "age": np.arange(100)}
    scores = gpupif.score(TABLE, "emd", ["sex", "age"], distances=distances)
    said = scores.provenance
    assert said["distances"] == {"sex": ["Male", "Female"], "age": [str(age) for age in range(100)]}
    assert said["distances_left_out"] == []
    scores.to_parquet(tmp_path / "scores.parquet")
    assert gpupif.open_scores(tmp_path / "scores.parquet").provenance == said
    said = gpupif.score(TABLE, "emd", ["sex", "age"], distances=distances | {"age": np.arange(50_000)}).provenance
    assert (list(said["distances"]), said["distances_left_out"]) == (["sex"], ["age"])


@pytest.mark.dask
@pytest.mark.usefixtures("on_cpu")
def test_scores_of_a_dask_frame_name_their_population(tmp_path):
    import dask.dataframe as dd

    TABLE.to_parquet(tmp_path / "people.parquet")
    lazy = dd.from_pandas(TABLE, npartitions=2)
    for given, said in (
        (tmp_path / "people.parquet", {"path": str(tmp_path / "people.parquet")}),
        (lazy, {"partitions": 2}),
        (TABLE, {"rows": 60, "columns": 4}),
    ):
        population = gpupif.Population(given, lacks="count")
        found = gpupif.score(lazy, "cig", ["sex"], known=["age"], population=population).provenance["population"]
        assert found.items() >= {**said, "lacks": "count"}.items()


@pytest.mark.slow
def test_a_folder_of_scores_is_opened_again(tmp_path):
    source = write_parts(tmp_path / "in", TABLE, [10, 25])
    with in_pieces(7, 9), gpupif.config(memory_limit="8GiB"):
        scores = gpupif.score_files(source, tmp_path / "out", ["cig", "csf"], ["age", "sex"])
    again = gpupif.open_scores(tmp_path / "out")
    assert again.files == scores.files
    assert_same_summary(again, scores)
    assert [file["path"] for file in again.provenance["input"]["files"]] == sorted(map(str, source.iterdir()))
    assert again.cig.to_pandas().equals(scores.cig.to_pandas())
    assert dict(again.priors) == dict(scores.priors)
    assert gpupif.models.k_anonymity(tmp_path / "out", ["cig_age"]) >= 1


def test_each_file_of_a_folder_is_opened_alone(tmp_path):
    """Each file describes its own rows; facts of the whole folder are left out."""
    write_parts(tmp_path / "in", TABLE, [10, 25])
    with gpupif.config(memory_limit="8GiB"):
        scores = gpupif.score_files(tmp_path / "in", tmp_path / "out", "cig", ["age", "sex"])
    part = gpupif.open_scores(tmp_path / "out" / "001.parquet")
    assert (part.rows, part.distinct_rows) == (15, None)
    assert part.provenance["input"]["files"] == 3
    assert part.weights == scores.weights
    assert part.summary().rows == 15
    assert part.fig().tolist() == pytest.approx(scores.cig.to_pandas().iloc[10:25].sum().tolist())
    with pytest.raises(InputError, match="has none of column 'age'"):
        part.priors["age"]
    last = gpupif.open_scores(tmp_path / "out" / "002.parquet")
    assert (last.rows, last.summary().rows, last.distinct_rows) == (35, 35, None)
    (tmp_path / "out" / "002.parquet").unlink()
    left = gpupif.open_scores(tmp_path / "out")
    assert (left.rows, left.summary().rows) == (25, 25)


def test_every_reader_of_folders_takes_scores(tmp_path):
    """Polars refuses a folder with a file whose name has another ending."""
    write_parts(tmp_path / "in", TABLE, [10, 25])
    with gpupif.config(memory_limit="8GiB"):
        scores = gpupif.score_files(tmp_path / "in", tmp_path / "out", "cig", ["age", "sex"])
    assert [file.name for file in sorted((tmp_path / "out").iterdir())] == [file.name for file in scores.files]
    expected = scores.cig.to_pandas().add_prefix("cig_")
    folder, files = str(tmp_path / "out"), str(tmp_path / "out" / "*.parquet")
    found = {
        "pyarrow": ds.dataset(folder).to_table().to_pandas(),
        "pandas": pd.read_parquet(folder),
        "polars": pl.scan_parquet(folder).collect().to_pandas(),
        "duckdb": duckdb.read_parquet(files).df(),
    }
    for reader, frame in found.items():
        pd.testing.assert_frame_equal(frame, expected, check_exact=True, obj=reader)


def test_a_folder_of_an_older_version_is_opened(tmp_path):
    """Such a folder has its description in `_common_metadata`, and less in its score files."""
    write_parts(tmp_path / "in", TABLE, [10, 25])
    with gpupif.config(memory_limit="8GiB"):
        scores = gpupif.score_files(tmp_path / "in", tmp_path / "out", "cig", ["age", "sex"])
    first, last = (tmp_path / "out" / name for name in ("000.parquet", "002.parquet"))
    said = [{key: pq.read_metadata(file).metadata[key] for key in (MARK, provenance.KEY)} for file in (first, last)]
    table = pq.read_table(last)
    pq.write_metadata(table.schema.with_metadata(said[1]), tmp_path / "out" / "_common_metadata")
    pq.write_table(table.replace_schema_metadata(said[0]), last)
    again = gpupif.open_scores(tmp_path / "out")
    assert again.files == scores.files
    assert_same_summary(again, scores)
    gpupif.score_files(tmp_path / "in", tmp_path / "out", "cig", ["age"], overwrite=True)
    assert not (tmp_path / "out" / "_common_metadata").exists()


@pytest.mark.dask
@pytest.mark.usefixtures("on_cpu")
def test_a_single_part_of_scores_that_dask_wrote_is_refused(tmp_path):
    import dask.dataframe as dd

    gpupif.score(dd.from_pandas(TABLE, npartitions=2), "cig").to_parquet(tmp_path / "out")
    assert gpupif.open_scores(tmp_path / "out").summary().rows == 60
    assert pl.scan_parquet(tmp_path / "out").collect().height == 60
    with pytest.raises(InputError, match=r"part-000000\.parquet: is a part of scores that Dask wrote"):
        gpupif.open_scores(tmp_path / "out" / "part-000000.parquet")
    (tmp_path / "out" / "part-000001.parquet").unlink()
    with pytest.raises(InputError, match="the last one, which describes all scores, is missing"):
        gpupif.open_scores(tmp_path / "out")


REFUSED = {
    "csv": ("scores.csv", InputError, "CSV does not keep what scores are of"),
    "other": ("other.parquet", InputError, r"other\.parquet: expected scores that gpupif wrote"),
    "folder": ("others", InputError, "others: expected scores that gpupif wrote"),
    "nothing": ("none.parquet", TableReadError, "there is no such file or folder"),
    "damaged": ("damaged.parquet", TableReadError, r"damaged\.parquet: could not be read as scores"),
    "summary": ("summary.json", InputError, r"summary\.json: a summary in JSON .* holds no scores"),
}


@pytest.mark.parametrize(("name", "error", "said"), REFUSED.values(), ids=REFUSED)
def test_files_that_hold_no_scores_are_refused(tmp_path, name, error, said):
    gpupif.score(TABLE, "cig").write(tmp_path / "scores.csv")
    TABLE.to_parquet(tmp_path / "other.parquet")
    write_parts(tmp_path / "others", TABLE)
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1")
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(error, match=said):
        gpupif.open_scores(tmp_path / name)


def test_scores_with_another_format_of_their_description_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "FORMAT", 0)
    gpupif.score(TABLE, "cig").to_parquet(tmp_path / "scores.parquet")
    monkeypatch.undo()
    with pytest.raises(InputError, match="another version of gpupif described its scores"):
        gpupif.open_scores(tmp_path / "scores.parquet")


VALUES = {
    "text": ["a", "b", None, "a"],
    "numbers": [1.5, -0.0, None, 1.5],
    "whole": [2**60, -1, 3, 3],
    "truth": [True, False, None, True],
    "days": [datetime.date(2001, 1, 2), None, datetime.date(1800, 1, 1), datetime.date(2001, 1, 2)],
    "times": [
        datetime.datetime(2001, 1, 2, 3, 4, 5),
        None,
        datetime.datetime(1969, 1, 2),
        datetime.datetime(1969, 1, 2),
    ],
    "exact": [decimal.Decimal("1.10"), decimal.Decimal("2.00"), None, decimal.Decimal("1.10")],
}


@pytest.mark.parametrize("name", VALUES)
def test_priors_keep_their_types(tmp_path, name):
    table = pa.table({"x": VALUES[name], "y": [1, 2, 1, 2]})
    scores = gpupif.score(table, "cig")
    scores.to_parquet(tmp_path / "scores.parquet")
    again = gpupif.open_scores(tmp_path / "scores.parquet")
    assert dict(again.priors) == dict(scores.priors)
    assert again.priors.to_frame().equals(scores.priors.to_frame())


def test_large_priors_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(packed_priors, "PRIOR_BYTES", 2_000)
    table = pd.DataFrame({"many": [*range(300)] * 2, "few": [0, 1, 2] * 200, "mixed": ["a", 1, 2.5] * 200})
    gpupif.score(table.astype({"mixed": object}), "cig").to_parquet(tmp_path / "scores.parquet")
    priors = gpupif.open_scores(tmp_path / "scores.parquet").priors
    assert priors["few"] == {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}
    for name in ("many", "mixed"):
        with pytest.raises(
            InputError, match=rf"has none of column '{name}': kept are those that take up to 2,000 bytes"
        ):
            priors[name]
    assert (
        len(json.loads(pq.read_metadata(tmp_path / "scores.parquet").metadata[provenance.KEY])["priors"]["few"]) < 2_000
    )


def test_the_same_scores_are_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        gpupif.score(TABLE, "cig").to_parquet(tmp_path / f"{name}.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_infinite_and_unknown_scores_come_back(tmp_path):
    """JSON lacks such numbers; the summary has them again."""
    table = pd.DataFrame({"a": ["x", "x", "y", None], "b": [1, 1, 2, 2]})
    scores = gpupif.score(table, ["log_ratio", "csf"], missing="wildcard")
    scores.to_parquet(tmp_path / "scores.parquet")
    again = gpupif.open_scores(tmp_path / "scores.parquet")
    assert_same_summary(again, scores)
    assert np.isinf(again.array("log_ratio")).any() == np.isinf(scores.array("log_ratio")).any()


def take_its_place(file):
    gpupif.score(TABLE, "cig", known=["age"]).to_parquet(file)


GONE = {
    "another": take_its_place,
    "damaged": lambda file: file.write_bytes(b"PAR1"),
    "none": lambda file: file.unlink(),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("change", GONE.values(), ids=GONE)
def test_scores_are_refused_if_their_file_was_replaced(tmp_path, change, opened):
    source, file = tmp_path / "in.parquet", tmp_path / "out.parquet"
    TABLE.to_parquet(source)
    with gpupif.config(memory_limit="8GiB"):
        scores = gpupif.score_files(source, file, "cig")
    if opened:
        scores = gpupif.open_scores(file)
    fig = scores.fig().tolist()
    change(file)
    for read in (
        scores.cig.to_pandas,
        scores.cig.head,
        scores.rig().to_arrow,
        scores.top,
        lambda: scores.array("cig"),
        lambda: scores.to_arrow(keep_input=True),
    ):
        with pytest.raises(TableReadError, match=r"out\.parquet: the scores changed since they were written or opened"):
            read()
    # It is kept beside the files.
    assert scores.fig().tolist() == fig


def test_scores_replaced_while_they_are_read_are_an_error(tmp_path):
    file = tmp_path / "out.parquet"
    gpupif.score(TABLE, "cig").to_parquet(file)
    batches = gpupif.open_scores(file).cig.to_batches()
    next(batches)
    take_its_place(file)
    with pytest.raises(TableReadError, match="the scores changed"):
        next(batches)


def test_scores_may_be_written_over_their_own_file(tmp_path):
    file = tmp_path / "out.parquet"
    gpupif.score(TABLE, "cig", known=1).to_parquet(file)
    scores = gpupif.open_scores(file)
    scores.mean.to_parquet(file)
    with pytest.raises(TableReadError, match="the scores changed"):
        scores.worst.cig.head()
    assert gpupif.open_scores(file).cig.to_pandas().equals(gpupif.score(TABLE, "cig", known=1).mean.cig)


def test_a_damaged_file_of_scores_is_an_error_when_read(tmp_path):
    """The end of the file is whole, so that it opens; its scores are damaged."""
    file = tmp_path / "out.parquet"
    gpupif.score(TABLE, "cig").to_parquet(file)
    content = file.read_bytes()
    file.write_bytes(content[:4] + bytes(16) + content[20:])
    scores = gpupif.open_scores(file)
    with pytest.raises(TableReadError, match=r"out\.parquet: the scores could not be read"):
        scores.cig.to_pandas()


def test_a_folder_that_lacks_a_file_is_an_error(tmp_path):
    write_parts(tmp_path / "in", TABLE, [10, 25])
    with gpupif.config(memory_limit="8GiB"):
        gpupif.score_files(tmp_path / "in", tmp_path / "out", "cig")
    (tmp_path / "out" / "001.parquet").unlink()
    with pytest.raises(TableReadError, match=r"001\.parquet: could not be read: No such file or directory"):
        gpupif.open_scores(tmp_path / "out")


@pytest.mark.parametrize("limit", [None, "8GiB"])
def test_scores_never_overwrite_their_table_or_population(tmp_path, limit):
    source, people, output = (tmp_path / f"{name}.parquet" for name in ("in", "people", "out"))
    parts = write_parts(tmp_path / "parts", TABLE, [20])
    TABLE.to_parquet(source)
    TABLE.to_parquet(people)
    asked = {"columns": ["sex"], "known": ["age"], "population": people}
    with gpupif.config(memory_limit=limit):
        found = [gpupif.score(table, "cig", **asked) for table in (source, parts)]
        found += [gpupif.score_files(source, output, "cig", **asked)]
    for scores in (*found, gpupif.open_scores(output)):
        table = parts if scores is found[1] else source
        inputs = [*parts.iterdir()] if table is parts else [source]
        for place in (*inputs, people, *([parts / "new.parquet"] if table is parts else [])):
            before = place.read_bytes() if place.exists() else None
            for write in (scores.to_parquet, scores.write):
                with pytest.raises(gpupif.errors.OutputError, match=r"the output is (inside )?the input"):
                    write(place)
            assert (place.read_bytes() if place.exists() else None) == before
    scores.to_parquet(tmp_path / "other.parquet")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (3, "path: expected the path of a file or folder of scores, got 3"),
        ("s3://bucket/x", "path: expected the path of a file or folder, got the URL s3://bucket/x"),
        ("file:///x.parquet", "got the URL file:///x.parquet"),
    ],
)
def test_a_value_that_is_no_path_is_refused(path, said):
    with pytest.raises(InputError, match=said):
        gpupif.open_scores(path)


def test_a_folder_with_files_of_several_runs_is_refused(tmp_path):
    for seed, name in enumerate(("a", "b")):
        gpupif.score(gpupif.datasets.census(20, columns=3, seed=seed), "cig").to_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match=r"expected the files of one run.*a\.parquet and b\.parquet say different"):
        gpupif.open_scores(tmp_path)
    (tmp_path / "b.parquet").unlink()
    assert gpupif.open_scores(tmp_path).rows == 20
