"""The kind of the table that `gpupif.treat` returns, and the types of its columns."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gpupif
from gpupif.errors import ColumnTypeError, InputError
from gpupif.gpu.open import frame_library
from gpupif.gpu.status import cuda_status
from tests.helpers.gpu.without_gpu import WITHOUT_GPU
from tests.helpers.treatments import Bins, Drawn, Gone, RareAway, RiskyAway, Shifted
from tests.helpers.ways import plain

VALUES = [1, 1, 1, 2, 3, 3, 3, 3]


def column(dtype):
    return pd.DataFrame({"x": pd.Series(VALUES).astype(dtype)})


# A type, its type after a cell was suppressed, and its type after cells only changed.
KEPT = {
    "int8": "Int8",
    "uint16": "UInt16",
    "int64": "Int64",
    "float32": "float32",
    "float64": "float64",
    "Int16": "Int16",
    "Float32": "Float32",
    "datetime64[us]": "datetime64[us]",
    "timedelta64[ns]": "timedelta64[ns]",
    "str": "str",
    "string": "string",
    "object": "object",
    "category": "category",
    "int32[pyarrow]": "int32[pyarrow]",
    "string[pyarrow]": "string[pyarrow]",
}


@pytest.mark.parametrize("dtype", KEPT)
def test_a_suppressed_cell_does_not_change_the_type(dtype):
    table = column(dtype)
    found = gpupif.treat(table, [RareAway("x", 2)]).table["x"]
    # The name of the type for `str` depends on the version of pandas.
    assert found.dtype == pd.Series([], dtype=KEPT[dtype]).dtype or dtype == "category"
    expected = table["x"].astype(object).where(table.index != 3, None)
    assert plain(found) == plain(expected)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "Int16", "category", "int32[pyarrow]", "object"])
def test_other_values_of_the_same_kind_do_not_change_the_type(dtype):
    found = gpupif.treat(column(dtype), [Shifted("x")]).table["x"]
    assert found.dtype == (dtype if dtype != "category" else found.cat.as_unordered().dtype)
    assert plain(found) == [value + 1 for value in VALUES]


@pytest.mark.parametrize("before", ["polars", "pyarrow"])
def test_decimal_numbers_stay_decimal(before):
    table = pa.table({"x": pa.array([Decimal("1.25"), Decimal("2.10"), None, Decimal("9.99")], pa.decimal128(3, 2))})
    table = pytest.importorskip("polars").from_arrow(table) if before == "polars" else table
    found = gpupif.treat(table, [gpupif.treatments.Round("x", base=0.5)]).table["x"]
    values = found.to_pylist() if before == "pyarrow" else found.to_list()
    assert values == [Decimal(1), Decimal(2), None, Decimal(10)]


@pytest.mark.parametrize("dtype", ["int8", "float64", "Int64", "category", "int32[pyarrow]"])
def test_text_of_anything_else_is_categorical(dtype):
    found = gpupif.treat(column(dtype), [Bins("x", 2)]).table["x"]
    assert isinstance(found.dtype, pd.CategoricalDtype)
    assert list(found.cat.categories) == ["0-1", "2-3"]
    assert found.astype(str).tolist() == [f"{value // 2 * 2}-{value // 2 * 2 + 1}" for value in VALUES]


def test_values_beyond_the_old_type_get_a_wider_type():
    found = gpupif.treat(column("int8"), [Shifted("x", 1000)]).table["x"]
    assert found.dtype == "int64"
    assert found.tolist() == [value + 1000 for value in VALUES]


def test_truth_values_and_times_with_zones_keep_their_types():
    table = pd.DataFrame(
        {
            "truth": [True] * 7 + [False],
            "zone": pd.to_datetime(VALUES, utc=True, unit="D"),
            "missing": [None] * 8,
            "decimal": pd.arrays.ArrowExtensionArray(pa.array([Decimal(value) for value in VALUES])),
        }
    )
    done = gpupif.treat(table, [RareAway(name, 2) for name in table]).table
    assert done["truth"].dtype == "boolean"
    assert plain(done["truth"]) == [True] * 7 + [None]
    assert done["zone"].dtype == table["zone"].dtype
    assert done["zone"].isna().tolist() == [False] * 3 + [True] + [False] * 4
    assert done["decimal"].dtype == table["decimal"].dtype
    pd.testing.assert_series_equal(done["missing"], table["missing"])


def test_ordered_categories_keep_their_order():
    kind = pd.CategoricalDtype(["low", "middle", "high", "unused"], ordered=True)
    table = pd.DataFrame({"x": pd.Series(["high", "low", "high", "low", "middle"], dtype=kind)})
    found = gpupif.treat(table, [RareAway("x", 2)]).table["x"]
    assert found.dtype == pd.CategoricalDtype(["low", "high"], ordered=True)
    kept = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    assert gpupif.treat(table, [RareAway("x", 1)]).table["x"].dtype == kept


def test_names_and_index_may_be_of_any_kind():
    names = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
    table = pd.DataFrame(np.arange(12).reshape(4, 3), columns=names, index=list("wxyz"))
    done = gpupif.treat(table, [Bins(("a", 2)), Gone((("b", 1),))]).table
    pd.testing.assert_index_equal(done.columns, names[:2])
    assert list(done.index) == list("wxyz")
    pd.testing.assert_series_equal(done["a", 1], table["a", 1])
    day = pd.Timestamp("2020-01-01")
    dates = pd.DataFrame({day: [1, 2], 7: [3, 4]})
    assert gpupif.treat(dates, [Shifted(7), Shifted(day)]).table.to_numpy().tolist() == [[2, 4], [3, 5]]


def test_removed_rows_take_their_labels_with_them():
    table = pd.DataFrame({"x": VALUES, "y": pd.Categorical(list("aaabcccc"))}, index=range(100, 108))
    done = gpupif.treat(table, [RiskyAway("x", 2.0, rows=True, known=("y",))])
    assert list(done.table.index) == [100, 101, 102, 104, 105, 106, 107]
    assert list(done.table["y"].cat.categories) == ["a", "c"]
    assert done.record.rows_removed == 1


def test_polars_columns_keep_their_types():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame(
        {
            "whole": pl.Series(VALUES, dtype=pl.Int16),
            "text": list("aaabcccc"),
            "categorical": pl.Series(list("aaabcccc"), dtype=pl.Categorical),
            "enum": pl.Series(list("aaabcccc"), dtype=pl.Enum(list("cbax"))),
            "same": VALUES,
            "date": pl.Series(VALUES).cast(pl.Date),
        }
    )
    names = [name for name in table.columns if name != "same"]
    done = gpupif.treat(table, [RareAway(name, 2) for name in names]).table
    assert isinstance(done, pl.DataFrame)
    kinds = [pl.Int16, pl.String, pl.Enum(["a", "c"]), pl.Enum(["c", "a"]), pl.Int64, pl.Date]
    assert done.dtypes == kinds
    assert done["text"].to_list() == done["categorical"].to_list() == done["enum"].to_list()
    assert done["text"].to_list() == [*list("aaa"), None, *list("cccc")]
    assert done["whole"].to_list() == [1, 1, 1, None, 3, 3, 3, 3]
    assert done["same"].to_list() == VALUES
    assert gpupif.treat(table.lazy(), [Bins("whole", 2)]).table["whole"].dtype == pl.Enum(["0-1", "2-3"])
    rows = gpupif.treat(table, [RiskyAway("whole", 2.0, rows=True, known=("text",))]).table
    assert rows["enum"].dtype == pl.Enum(["c", "a"])
    assert rows["categorical"].dtype == pl.Enum(["a", "c"])


def test_arrow_columns_keep_their_types():
    table = pa.table(
        {
            "whole": pa.array(VALUES, pa.int16()),
            "text": pa.array(list("aaabcccc"), pa.large_string()),
            "coded": pa.array(list("aaabcccc")).dictionary_encode(),
            "same": VALUES,
        }
    )
    done = gpupif.treat(table, [RareAway(name, 2) for name in ("whole", "text", "coded")]).table
    assert isinstance(done, pa.Table)
    assert done.schema.types == [pa.int16(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.int64()]
    assert done["same"].chunk(0).buffers()[1].address == table["same"].chunk(0).buffers()[1].address
    assert done["coded"].chunk(0).dictionary.to_pylist() == ["a", "c"]
    assert done["coded"].to_pylist() == [*list("aaa"), None, *list("cccc")]
    text = gpupif.treat(table, [Bins("whole", 2)]).table["whole"]
    assert text.type == pa.dictionary(pa.int32(), pa.string())


def test_an_index_that_pandas_noted_in_an_arrow_table_comes_back(tmp_path):
    frame = pd.DataFrame({"x": VALUES, "y": list("aaabcccc")}, index=pd.Index(list("stuvwxyz"), name="who"))
    found = gpupif.treat(pa.Table.from_pandas(frame), [Bins("x", 2)]).table.to_pandas()
    assert list(found.index) == list("stuvwxyz")
    frame.to_parquet(tmp_path / "in.parquet")
    for done in (
        gpupif.treat(tmp_path / "in.parquet", [Bins("x", 2)]).table,
        pd.read_parquet(gpupif.treat_files(tmp_path / "in.parquet", tmp_path / "out.parquet", [Bins("x", 2)]).table),
    ):
        assert list(done.index) == list("stuvwxyz")
        assert done.index.name == "who"
        assert list(done.columns) == ["x", "y"]


@pytest.mark.gpu
def test_cudf_frames_stay_cudf_frames():
    if not (WITHOUT_GPU or cuda_status().usable):
        pytest.skip("no GPU, and nothing that stands in for one")
    library = frame_library()
    table = library.frames.DataFrame({"x": VALUES, "y": list("aaabcccc"), "z": VALUES})
    done = gpupif.treat(table, [RareAway("y", 2), Bins("x", 2)]).table
    assert type(done) is type(table)
    assert plain(library.to_pandas(done["y"])) == [*list("aaa"), None, *list("cccc")]
    assert plain(library.to_pandas(done["z"])) == VALUES


def test_tables_that_cannot_be_treated_are_refused():
    with pytest.raises(InputError, match="expected at least one row"):
        gpupif.treat(pd.DataFrame({"x": []}), [Bins("x")])
    with pytest.raises(InputError, match="different column names"):
        gpupif.treat(pd.DataFrame([[1, 2]], columns=["x", "x"]), [Bins("x")])
    with pytest.raises(ColumnTypeError, match=r"treatment 2 \(test_drawn\).*'y'"):
        gpupif.treat(pd.DataFrame({"x": [1], "y": [[1]]}), [Bins("x"), Drawn("y")])
    with pytest.raises(InputError, match="table: expected a pandas"):
        gpupif.treat([1], [Bins("x")])
    # A column of lists that no treatment names is never read.
    table = pd.DataFrame({"x": [1], "y": [[1]]})
    pd.testing.assert_series_equal(gpupif.treat(table, [Bins("x")]).table["y"], table["y"])


def test_intervals_are_refused_where_they_are_treated_and_stay_elsewhere():
    ages = pd.cut([1, 25, 45, 1, 25, 1], [0, 20, 40, 60])
    table = pd.DataFrame({"job": list("aaabbc"), "age": ages})
    found = gpupif.protect(table, "k>=2", quasi_identifiers=["job"], suppress=0.5)
    assert found.suppressed_rows == 1
    rows = gpupif.treat(table, [gpupif.treatments.SuppressRows(k=2, quasi_identifiers=["job"])]).table
    pd.testing.assert_frame_equal(rows, table[:5])
    rows = gpupif.treat(table, [gpupif.treatments.SuppressRows(k=2, quasi_identifiers=["job", "age"])]).table
    assert len(rows) == 0
    message = "column 'age': expected plain values .*, got .*Convert them to text"
    for refused in (
        lambda: gpupif.protect(table, "k>=2", quasi_identifiers=["job", "age"]),
        lambda: gpupif.protect(table, ["k>=2", "t<=0.5"], quasi_identifiers=["job"], sensitive=["age"]),
        lambda: gpupif.treat(table, [gpupif.treatments.Suppress(["job", "age"], k=2)]),
        lambda: gpupif.treat(table, [gpupif.treatments.Rare("age", below=2)]),
    ):
        with pytest.raises(gpupif.errors.ColumnTypeError, match=message):
            refused()
