"""Every kind of frame and type of column has equal scores, in a frame of the kind of the table."""

from __future__ import annotations

import contextlib
import datetime
import decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpupif
from tests.helpers import naive_attack

pytestmark = pytest.mark.every_engine

TABLE = {
    "city": ["Rome", "Oslo", None, "Rome", "Oslo", "Rome", None, "Rome"],
    "age": [30, 40, 30, 30, 40, 30, 30, 41],
    "score": [0.5, None, 1.5, 0.5, 0.5, 0.5, 1.5, 0.5],
}
EXPECTED = naive_attack.score(TABLE)


def assert_expected(scores):
    for measure in scores.measures:
        for name, values in EXPECTED[measure].items():
            np.testing.assert_allclose(np.asarray(scores[measure][name]), values, atol=1e-12, err_msg=name)


class Exporter:
    """A frame of an unknown kind that exports Arrow data."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


KINDS = {
    "pandas": (pd.DataFrame, pd.DataFrame),
    "polars": (pl.DataFrame, pl.DataFrame),
    "polars lazy": (pl.LazyFrame, pl.DataFrame),
    "pyarrow": (pa.table, pa.Table),
    "pyarrow batch": (pa.RecordBatch.from_pydict, pa.Table),
    "arrow stream": (lambda table: Exporter(pa.table(table)), pa.Table),
}


@pytest.mark.parametrize("kind", KINDS)
def test_scores_come_in_the_kind_of_frame_that_was_given(kind):
    make, result = KINDS[kind]
    scores = gpupif.score(make(TABLE))
    assert_expected(scores)
    assert type(scores.cig) is result
    assert list(getattr(scores.csf, "column_names", scores.csf.columns)) == list(TABLE)


def test_a_duckdb_relation_is_scored():
    assert_expected(gpupif.score(duckdb.from_arrow(pa.table(TABLE))))


def test_a_stream_that_breaks_off_is_an_error():
    broken = duckdb.sql("SELECT CASE WHEN i < 300000 THEN i ELSE error('the end') END AS a FROM range(400000) t(i)")
    with pytest.raises(gpupif.InputError, match=r"table: its stream of Arrow data broke off: .*the end.* Make it anew"):
        gpupif.score(broken)


def test_chunks_with_different_dictionaries_are_scored_as_one_table():
    first, second = (pa.table({k: v[part] for k, v in TABLE.items()}) for part in (slice(3), slice(3, None)))
    encode = [part.set_column(0, "city", part["city"].dictionary_encode()) for part in (first, second)]
    assert_expected(gpupif.score(pa.concat_tables(encode)))
    assert_expected(gpupif.score(pa.concat_tables([first, second])))


CITY = [
    pd.Series(TABLE["city"], dtype=object),
    pd.Series(TABLE["city"]),
    pd.Series(TABLE["city"], dtype="string[python]"),
    pd.Series(TABLE["city"], dtype="string[pyarrow]"),
    pd.Series(TABLE["city"], dtype=pd.ArrowDtype(pa.large_string())),
    pd.Series(TABLE["city"], dtype="category"),
    pd.Series(pd.Categorical(TABLE["city"], categories=["unused", "Oslo", "Rome", "neither"], ordered=True)),
    pd.Series([None if v is None else v.encode() for v in TABLE["city"]], dtype=pd.ArrowDtype(pa.binary())),
    pd.Series(["Rome", "Oslo", np.nan, "Rome", "Oslo", "Rome", pd.NA, "Rome"], dtype=object),
]
AGE = [
    *(pd.Series(TABLE["age"], dtype=kind) for kind in ("int8", "uint8", "int64", "uint64", "float32", "Int32", object)),
    pd.Series(TABLE["age"], dtype=pd.ArrowDtype(pa.int16())),
    pd.Series(TABLE["age"], dtype="Float64"),
    pd.Series(TABLE["age"], dtype="category"),
    pd.Series(TABLE["age"]) * 10**16,
    pd.Series(TABLE["age"], dtype="uint64") + np.uint64(2**63),
    pd.to_datetime(pd.Series(TABLE["age"]), unit="D"),
    pd.to_datetime(pd.Series(TABLE["age"]), unit="D", utc=True),
    pd.to_timedelta(pd.Series(TABLE["age"]), unit="s"),
    pd.Series(pd.PeriodIndex.from_ordinals(TABLE["age"], freq="M")),
    pd.Series(pd.arrays.IntervalArray.from_breaks(range(43)).take(TABLE["age"])),
    pd.Series([datetime.date(2000, 1, age % 30 + 1) for age in TABLE["age"]]),
    pd.Series([decimal.Decimal(age) for age in TABLE["age"]]),
    pd.Series(pd.arrays.SparseArray(TABLE["age"])),
    pd.Series([(age, "pair") for age in TABLE["age"]]),
]
SCORE = [
    pd.Series(TABLE["score"], dtype=kind) for kind in ("float64", "float32", "float16", "Float64", object, "category")
] + [
    pd.Series(TABLE["score"], dtype=pd.ArrowDtype(pa.float64())),
    pd.Series(pd.to_datetime([None if v is None else f"2000-01-0{int(v * 2)}" for v in TABLE["score"]])),
    pd.Series([None if v is None else v > 1 for v in TABLE["score"]], dtype="boolean"),
    pd.Series([None if v is None else v > 1 for v in TABLE["score"]], dtype=object),
    pd.Series([None if v is None else str(v) for v in TABLE["score"]]),
    pd.Series([pd.NaT if v is None else pd.Timedelta(v, "D") for v in TABLE["score"]]),
    pd.Series(pd.array([np.nan if v is None else v for v in TABLE["score"]], dtype=pd.ArrowDtype(pa.float32()))),
]
CASES = [(name, series) for name, many in (("city", CITY), ("age", AGE), ("score", SCORE)) for series in many]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "series"), CASES, ids=[f"{name}-{s.dtype}" for name, s in CASES])
def test_every_pandas_type_gives_the_same_scores(name, series):
    frame = pd.DataFrame(TABLE).astype({"age": "int64"})
    frame[name] = series
    assert_expected(gpupif.score(frame))
    as_arrow = gpupif.score(frame[[name]])
    assert as_arrow.summary().columns["distinct_values"].item() == len(set(TABLE[name]))


ARROW_TYPES = [
    pa.string_view(),
    pa.large_string(),
    pa.binary(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.uint32(), pa.large_string()),
]


@pytest.mark.parametrize("kind", ARROW_TYPES, ids=str)
def test_every_text_type_of_arrow_gives_the_same_scores(kind):
    table = pa.table(TABLE).set_column(0, "city", pa.chunked_array([pa.array(TABLE["city"]).cast(kind)]))
    assert_expected(gpupif.score(table))


def test_dictionaries_may_have_equal_unused_and_null_values():
    city = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3, 1, 0, None, 3], pa.int8()), pa.array(["Rome", "Oslo", None, "Rome", "unused"])
    )
    assert_expected(gpupif.score(pa.table({**TABLE, "city": city})))


def test_zeros_are_one_value_and_missing_ones_are_one_value():
    frame = pd.DataFrame({"zero": [0.0, -0.0, np.nan, np.nan], "b": [1, 1, 1, 1]})
    assert gpupif.score(frame, ["prior"]).prior["zero"].tolist() == [0.5] * 4
    arrow = pa.table({"zero": pa.array([0.0, -0.0, float("nan"), None]), "b": [1, 1, 1, 1]})
    assert gpupif.score(arrow, ["prior"]).prior["zero"].to_pylist() == [0.5] * 4
    mixed = pd.DataFrame({"m": pd.Series([None, np.nan, pd.NA, pd.NaT], dtype=object)})
    assert gpupif.score(mixed, ["prior", "csf"]).prior["m"].tolist() == [1.0] * 4


def test_columns_without_any_value_score_zero():
    frame = pd.DataFrame({"nothing": [None, None, None], "a": [1, 1, 2]})
    text = pa.nulls(3, pa.dictionary(pa.int8(), pa.string()))
    arrow = [pa.table({"nothing": nothing, "a": [1, 1, 2]}) for nothing in (pa.nulls(3), text, pa.nulls(3, pa.int8()))]
    for table in (frame, pl.from_pandas(frame), *arrow):
        scores = gpupif.score(table)
        assert np.asarray(scores.cig["nothing"]).tolist() == [0.0] * 3
        assert scores.priors["nothing"] == {None: 1.0}


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(["p", "q", "q", "q", "r", "s", "t", "t"], name="person"),
        pd.MultiIndex.from_product([[1, 2], list("abcd")], names=["k", None]),
        pd.RangeIndex(8, 0, -1),
        pd.date_range("2020", periods=8),
    ],
    ids=["duplicates", "multi", "descending", "dates"],
)
def test_index_is_kept(index):
    frame = pd.DataFrame(TABLE, index=index)
    scores = gpupif.score(frame)
    assert_expected(scores)
    pd.testing.assert_index_equal(scores.cig.index, index)
    pd.testing.assert_index_equal(scores.rig().index, index)
    assert scores.top(1)["index"].iloc[0] == index[scores.top(1)["row"].iloc[0]]


def test_column_names_may_be_no_text():
    frame = pd.DataFrame(TABLE).set_axis([0, ("a", 1), None], axis=1)
    scores = gpupif.score(frame, columns=[("a", 1), 0], known=[0, None])
    assert list(scores.cig.columns) == [("a", 1), 0]
    levels = pd.DataFrame(TABLE).set_axis(pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]), axis=1)
    scores = gpupif.score(levels)
    pd.testing.assert_index_equal(scores.cig.columns, levels.columns)
    assert len(scores.summary().columns) == 3


def test_neither_the_table_nor_the_scores_are_changed():
    frame = pd.DataFrame(TABLE)
    before = frame.copy(deep=True)
    scores = gpupif.score(frame)
    pd.testing.assert_frame_equal(frame, before)
    kept = scores.array("cig").copy()
    mine = scores.cig
    # pandas 3 copies on write; pandas 2 refuses, as the arrays are read-only.
    with contextlib.suppress(ValueError):
        mine.iloc[0, 0] = -1.0
        assert mine.iloc[0, 0] == -1.0
    np.testing.assert_array_equal(scores.array("cig"), kept)
    np.testing.assert_array_equal(scores.cig, kept.T)


@pytest.mark.parametrize("kind", ["category", "int8"])
def test_changing_the_table_later_does_not_reach_the_scores(kind):
    frame = pd.DataFrame({"a": [0, 1, 2, 2], "b": [0, 0, 1, 1]}).astype(kind)
    scores = gpupif.score(frame)
    before = scores.top(8)
    frame.loc[0, "a"] = 2
    frame.loc[3, "b"] = 0
    pd.testing.assert_frame_equal(scores.top(8), before)


def test_columns_of_70_000_distinct_values_are_scored():
    """A column has 70,000 distinct values (codes beyond 16 bits), beside a column of two values, and alone."""
    size = 70_000
    frame = pd.DataFrame(
        {"id": np.arange(size)[::-1], "half": np.arange(size) % 2, "text": np.arange(size).astype(str)}
    )
    scores = gpupif.score(frame[["id", "half"]], ["cig", "csf", "cohort_size"])
    np.testing.assert_allclose(scores.cig["half"], 1.0)
    np.testing.assert_allclose(scores.cig["id"], np.log2(size) - np.log2(size / 2))
    assert (scores.cohort_size["id"] == size // 2).all()
    for name in ("id", "text"):
        alone = gpupif.score(frame[[name]], ["cig", "posterior", "cohort_size"])
        assert (alone.cig[name] == 0).all()
        assert (alone.cohort_size[name] == size).all()
        assert (alone.posterior[name] == 1 / size).all()
    assert gpupif.score(frame[["half"]]).cig["half"].eq(0).all()


def test_dictionaries_may_differ_by_chunk():
    """The chunks have more labels together than their index type can number, a null, and another order."""
    first = pa.array([f"v{n}" for n in range(100)]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
    second = pa.array([f"v{n}" for n in range(150, 50, -1)]).dictionary_encode()
    second = second.cast(pa.dictionary(pa.int8(), pa.string()))
    third = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array([None, "v0"]))
    column = pa.chunked_array([first, second, third])
    texts = [*(f"v{n}" for n in range(100)), *(f"v{n}" for n in range(150, 50, -1)), None, "v0", None]
    prior = gpupif.score(pa.table({"a": column, "b": [0] * 203}), "prior").prior["a"].to_pylist()
    assert prior == [texts.count(text) / 203 for text in texts]


@pytest.mark.parametrize("kind", [">i2", ">i8", ">u4", ">f4", ">f8", ">M8[s]", "longdouble"])
def test_numbers_may_have_another_byte_order_or_width(kind):
    values = np.array([0, 1, 1, 256]).astype(kind)
    scores = gpupif.score(pd.DataFrame({"a": values, "b": [0, 1, 1, 0]}), ["cig", "prior"])
    assert scores.prior["a"].tolist() == [0.25, 0.5, 0.5, 0.25]


def test_text_that_is_no_unicode_is_scored():
    frame = pd.DataFrame({"a": pd.Series(["\ud800", "b", "b"], dtype="string[python]")})
    assert gpupif.score(frame, "prior").prior["a"].tolist() == [1 / 3, 2 / 3, 2 / 3]


def test_a_column_may_be_named_nan():
    frame = pd.DataFrame([[1, 2], [1, 3]], columns=[float("nan"), "b"])
    assert gpupif.score(frame).cig.shape == (2, 2)
