"""Files that cannot be read as tables are refused, by their name."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpupif.errors import ColumnNotFoundError, InputError, TableReadError
from tests.helpers.bad_input import FEATHER, FRAME, PARQUET, assert_refused

pytestmark = pytest.mark.every_engine


@pytest.mark.parametrize("arguments", [{}, {"columns": ["age"]}, {"columns": ["age", "sex"]}])
@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_duplicate_column_names_in_a_file_are_refused(tmp_path, ending, arguments):
    table = pa.table([[1, 2], [3, 4], [5, 6]], names=["age", "age", "sex"])
    file = tmp_path / f"twice.{ending}"
    if ending == "csv":
        file.write_text("age,age,sex\n1,3,5\n2,4,6\n")
    elif ending == "parquet":
        pq.write_table(table, file)
    else:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    assert_refused(InputError, ["table", "column names", "age", "Rename"], file, **arguments)


@pytest.mark.parametrize("argument", ["columns", "known"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_an_unknown_column_of_a_file_is_refused(tmp_path, ending, argument):
    file = tmp_path / f"table.{ending}"
    write = {"csv": lambda f: FRAME.to_csv(f, index=False), "parquet": FRAME.to_parquet, "feather": FRAME.to_feather}
    write[ending](file)
    arguments = {"columns": ["age"], argument: ["agee"]}
    assert_refused(ColumnNotFoundError, [argument, "no column 'agee'", "'age', 'sex'"], file, **arguments)


LATIN = "name,age\nJürgen,39\nMary,40\n"


BAD_FILES = {
    "unknown ending": ("table.xlsx", b"age\n1\n", ["ending in", ".parquet", ".csv", ".feather"]),
    "empty Parquet": ("t.parquet", b"", ["empty", "Parquet"]),
    "empty CSV": ("t.csv", b"", ["empty", "CSV"]),
    "empty Feather": ("t.feather", b"", ["empty", "Feather"]),
    "blank CSV": ("t.csv", b"\n\n", ["CSV"]),
    "half a Parquet file": ("t.parquet", PARQUET[: len(PARQUET) // 2], ["Parquet", "truncated"]),
    "most of a Parquet file": ("t.parquet", PARQUET[:-8], ["Parquet", "truncated"]),
    "half a Feather file": ("t.feather", FEATHER[: len(FEATHER) // 2], ["Feather", "truncated"]),
    "most of a Feather file": ("t.feather", FEATHER[:-8], ["Feather", "truncated"]),
    "half a gzip file": ("t.csv.gz", gzip.compress(LATIN.encode() * 99)[:60], ["CSV", "truncated"]),
    "CSV named Parquet": ("t.parquet", LATIN.encode(), ["Parquet", "what its name says"]),
    "CSV named Feather": ("t.feather", LATIN.encode(), ["Feather", "what its name says"]),
    "Parquet named CSV": ("t.csv", PARQUET, ["CSV", "begins as Parquet does"]),
    "Parquet named Feather": ("t.arrow", PARQUET, ["Feather", "begins as Parquet does"]),
    "Feather named CSV": ("t.csv", FEATHER, ["CSV", "begins as Feather does"]),
    "Feather named Parquet": ("t.pq", FEATHER, ["Parquet", "begins as Feather does"]),
    "gzip named CSV": ("t.csv", gzip.compress(LATIN.encode()), ["CSV"]),
    "Latin-1 values": ("t.csv", LATIN.encode("latin-1"), ["UTF-8"]),
    "Latin-1 values, far down": ("t.csv", b"name,age\n" + b"Mary,40\n" * 200_000 + b"J\xfcrgen,39\n", ["UTF-8"]),
    "UTF-16": ("t.csv", LATIN.encode("utf-16"), ["CSV"]),
}


@pytest.mark.parametrize(("name", "content", "fragments"), BAD_FILES.values(), ids=BAD_FILES)
def test_files_that_cannot_be_read_are_named(tmp_path, name, content, fragments):
    file = tmp_path / name
    file.write_bytes(content)
    assert_refused(TableReadError, [str(file), *fragments], file)


@pytest.mark.parametrize("columns", [None, ["age"], ["größe"]])
def test_csv_with_names_in_latin_1_is_refused(tmp_path, columns):
    file = tmp_path / "t.csv"
    file.write_bytes("größe,age\n1,2\n".encode("latin-1"))
    assert_refused(TableReadError, [str(file), "UTF-8"], str(file), columns=columns)


@pytest.mark.parametrize("separator", list(",;\t|"))
@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("last", [["4", "5"], ["4", "5", "6", "7"]])
def test_csv_with_rows_of_different_length_is_refused(tmp_path, separator, rows, last):
    file = tmp_path / "t.csv"
    file.write_text("".join(separator.join(row) + "\n" for row in [["a", "b", "c"], *[["1", "2", "3"]] * rows, last]))
    assert_refused(TableReadError, [str(file), "CSV", "3", str(len(last))], file)


@pytest.mark.parametrize("content", ["age,sex\n", "age,sex"])
def test_csv_without_rows_is_refused(tmp_path, content):
    file = tmp_path / "t.csv"
    file.write_text(content)
    assert_refused(TableReadError, [str(file), "at least one row", "age, sex"], file)


def test_a_missing_file_is_named(tmp_path):
    assert_refused(TableReadError, [f"{tmp_path}/t.csv", "no such file", "Check"], tmp_path / "t.csv")


def test_a_folder_without_parquet_files_is_refused(tmp_path):
    assert_refused(TableReadError, [str(tmp_path), "folder", ".parquet", "none"], tmp_path)
    (tmp_path / "t.csv").write_text("a\n1\n")
    assert_refused(TableReadError, [str(tmp_path), "folder", ".parquet", "none"], tmp_path)


@pytest.mark.parametrize("other", [{"age": [1], "zip": [2]}, {"age": [1]}, {"age": ["x"], "sex": ["f"]}])
def test_a_folder_of_files_with_other_columns_is_refused(tmp_path, other):
    pq.write_table(pa.table({"age": [1, 2], "sex": ["f", "m"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table(other), tmp_path / "2.parquet")
    assert_refused(TableReadError, [str(tmp_path)], tmp_path)


@pytest.mark.parametrize("content", [b"", PARQUET[:-8]])
def test_a_folder_with_a_bad_file_is_refused(tmp_path, content):
    (tmp_path / "1.parquet").write_bytes(PARQUET)
    (tmp_path / "2.parquet").write_bytes(content)
    assert_refused(TableReadError, [str(tmp_path), "2.parquet"], tmp_path)
