"""Tables in files have the scores of tables in memory. Written scores read back, and appear whole or not at all."""

from __future__ import annotations

import datetime

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.attack.arguments import Arguments
from gpupif.errors import TableReadError
from gpupif.io.read import read_table
from tests.helpers.file_formats import ALL, FILES, FRAME, csv_bytes

pytestmark = pytest.mark.every_engine


@pytest.fixture(params=FILES.values(), ids=FILES)
def file(request, tmp_path):
    name, write = request.param
    write(tmp_path / name)
    return tmp_path / name


def assert_same_scores(scores, expected):
    assert scores.columns == expected.columns
    for measure in expected.measures:
        assert scores.array(measure).tobytes() == expected.array(measure).tobytes()


def test_every_format_scores_as_the_pandas_frame(file):
    scores = gpupif.score(file, ALL)
    assert_same_scores(scores, gpupif.score(FRAME, ALL))
    assert isinstance(scores.cig, pd.DataFrame)
    pd.testing.assert_frame_equal(scores.cig, gpupif.score(FRAME).cig)
    assert_same_scores(gpupif.score(str(file), ALL), scores)
    assert list(scores.seconds) in (["read", "encode", "score"], ["read and encode", "score"])


def test_only_needed_columns_are_read(file):
    arguments = {"columns": ["größe", "a;b"], "known": ["yes"]}
    assert read_table(file, Arguments.from_user(ALL, **arguments).needed).column_names == ["a;b", "größe", "yes"]
    assert read_table(file).column_names == list(FRAME.columns)
    assert_same_scores(gpupif.score(file, ALL, **arguments), gpupif.score(FRAME, ALL, **arguments))


def test_an_index_stored_by_pandas_is_no_column(tmp_path):
    frame = FRAME.set_axis(range(8, 0, -1)).iloc[[0, 1, 2, 4, 3, 5, 6, 7]]
    frame.to_parquet(tmp_path / "t.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "t.parquet").names
    assert_same_scores(gpupif.score(tmp_path / "t.parquet", ALL), gpupif.score(frame, ALL))


@pytest.mark.parametrize("separator", [*",;\t|", ":", " "])
def test_the_given_separator_is_used(tmp_path, separator):
    file = tmp_path / "t.csv"
    file.write_bytes(csv_bytes(separator))
    table = read_table(file, sep=separator)
    assert table.column_names == list(FRAME.columns)
    assert table["größe"].to_pylist() == FRAME["größe"].tolist()
    assert read_table(file, Arguments.from_user(ALL, ["a;b"]).needed, separator).column_names == ["a;b"]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize(("quoted", "other"), [("1,5", "2"), ("1;5", "x y"), ("a,b;c|d", "")])
def test_the_separator_is_found_for_any_values(tmp_path, separator, quoted, other):
    file = tmp_path / "t.csv"
    rows = [["name", "value"], [f'"{quoted}"', other or "3"], [f'"{quoted}{quoted}"', other]]
    file.write_text("\n".join(separator.join(row) for row in rows))
    table = read_table(file)
    assert table.column_names == ["name", "value"]
    assert table["name"].to_pylist() == [quoted, quoted * 2]


def test_csv_files_may_have_one_column_and_missing_fields(tmp_path):
    (tmp_path / "one.csv").write_text('age\n39\n""\n40\n')
    assert read_table(tmp_path / "one.csv").to_pydict() == {"age": [39, None, 40]}
    (tmp_path / "missing.csv").write_text("a;b;c\n;;1\nNA;null;\nx;;2\n")
    expected = {"a": [None, "NA", "x"], "b": [None, "null", None], "c": [1, None, 2]}
    assert read_table(tmp_path / "missing.csv").to_pydict() == expected


def test_long_csv_files_with_line_breaks_in_values_are_read(tmp_path):
    names = [f"name {number % 7}\nsecond, line" for number in range(100_000)]
    pd.DataFrame({"name": names, "age": 39}).to_csv(tmp_path / "t.csv", index=False)
    assert read_table(tmp_path / "t.csv")["name"].to_pylist() == names


def test_csv_files_may_have_line_breaks_in_names_and_a_long_head(tmp_path):
    wide = pd.DataFrame({f"question {number} of the census,\nas asked": [number, 1] for number in range(3_000)})
    wide.to_csv(tmp_path / "t.csv", index=False)
    names = wide.columns[[0, -1]]
    assert_same_scores(gpupif.score(tmp_path / "t.csv", columns=names), gpupif.score(wide[names]))


def test_csv_texts_become_numbers_only_if_they_are_written_the_same(tmp_path):
    texts = {
        "zip": ["01234", "1234", "1234"],
        "price": ["1.50", "2.00", "2.00"],
        "zero": ["-0", "0", "0"],
        "long": ["12345678901234567891", "12345678901234567892", "1"],
        "mixed": ["1", "1.0", "1"],
        "whole": ["1", "-2", "1"],
        "number": ["1.5", "2.0", "2.0"],
        "day": ["2020-01-31", "1999-12-31", "1999-12-31"],
        "yes": ["true", "false", "false"],
    }
    file = tmp_path / "t.csv"
    pd.DataFrame(texts).to_csv(file, index=False)
    values = gpupif.score(file).priors
    for name in ("zip", "price", "zero", "long", "mixed"):
        assert list(values[name]) == list(dict.fromkeys(texts[name])), name
    assert list(values["whole"]) == [1, -2]
    assert list(values["number"]) == [1.5, 2.0]
    assert list(values["day"]) == [datetime.date(2020, 1, 31), datetime.date(1999, 12, 31)]
    assert list(values["yes"]) == [True, False]


def test_csv_of_one_column_keeps_its_empty_lines(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a\nx\n\nx\n")
    assert gpupif.score(file, "prior").prior["a"].tolist() == [2 / 3, 1 / 3, 2 / 3]


@pytest.mark.parametrize("values", [["F", "M", "F"], [1, 12, 1], ["F", None, "ü b"]])
def test_columns_held_by_names_of_folders_are_read(tmp_path, values):
    frame = pd.DataFrame({"age": [1, 2, 1, 2, 2, 3], "town": list("xyxyxx"), "sex": values * 2})
    frame.to_parquet(tmp_path / "t", partition_cols=["sex"])
    (tmp_path / "region=1").mkdir()
    folder = (tmp_path / "t").rename(tmp_path / "region=1" / "t")
    scores, expected = gpupif.score(folder, ALL), gpupif.score(frame, ALL)
    assert scores.columns == ["age", "town", "sex"]
    assert {*scores.priors["sex"]} == {*values}
    assert scores.fig().to_dict() == pytest.approx(expected.fig().to_dict(), rel=1e-12)
    assert sorted(scores.rig()) == pytest.approx(sorted(expected.rig()), rel=1e-12)
    assert gpupif.score(folder, columns=["age"], known=["sex"]).columns == ["age"]


def test_a_column_both_in_files_and_in_names_of_folders_is_refused(tmp_path):
    (tmp_path / "sex=F").mkdir()
    pq.write_table(pa.table({"age": [1, 2], "sex": ["f", "m"]}), tmp_path / "sex=F" / "a.parquet")
    with pytest.raises(TableReadError, match=r"names of its folders hold column 'sex', and so do its files"):
        gpupif.score(tmp_path)
