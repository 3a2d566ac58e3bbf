"""What cannot be scored is refused: by the right class, with a message that says what, where, and how to mend it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest

import gpupif
from gpupif.errors import ColumnNotFoundError, ColumnTypeError, DeviceError, InputError, PriorError, TableReadError
from gpupif.gpu.status import CudaStatus
from tests.helpers.bad_input import FRAME, assert_refused, warned

pytestmark = pytest.mark.every_engine


class Stream:
    """Only what the Arrow C stream protocol asks for."""

    def __init__(self, table):
        self.__arrow_c_stream__ = table.__arrow_c_stream__


KINDS = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_arrow(pa.Table.from_pandas(frame, preserve_index=False)),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "stream": lambda frame: Stream(pa.Table.from_pandas(frame, preserve_index=False)),
}
of_every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def test_errors_are_also_python_errors_of_their_kind():
    for error in (InputError, ColumnNotFoundError, ColumnTypeError, PriorError, TableReadError):
        assert issubclass(error, ValueError)
    assert issubclass(ColumnTypeError, TypeError)
    assert issubclass(DeviceError, RuntimeError)
    assert not issubclass(DeviceError, ValueError)


@of_every_kind
def test_a_table_without_rows_is_refused(kind):
    empty = FRAME.iloc[:0].astype({"sex": "str"})
    assert_refused(InputError, ["table", "at least one row", "got none", "age, sex"], kind(empty))


@of_every_kind
def test_a_table_without_columns_is_refused(kind):
    assert_refused(InputError, ["table", "at least one column", "got none"], kind(FRAME[[]]))


@pytest.mark.parametrize("arguments", [{}, {"columns": ["age"]}, {"columns": ["sex"]}])
def test_duplicate_column_names_are_refused(arguments):
    table = pa.table([[1, 2], [3, 4], [5, 6]], names=["age", "age", "sex"])
    for twice in (table, table.to_pandas(), Stream(table)):
        assert_refused(InputError, ["table", "column names", "age", "Rename"], twice, **arguments)


@of_every_kind
@pytest.mark.parametrize("argument", ["columns", "known", "priors", "accuracies"])
def test_an_unknown_column_is_refused(kind, argument):
    value = {"priors": {"agee": {1: 1.0}}, "accuracies": {"agee": 1.0}}.get(argument, ["age", "agee"])
    expected = [argument, "no column 'agee'", "'age', 'sex'"]
    assert_refused(ColumnNotFoundError, expected, kind(FRAME), **{argument: value})


def test_message_about_an_unknown_column_of_a_wide_table_stays_readable():
    wide = pa.table({f"column_{number}": [1] for number in range(5_000)})
    with pytest.raises(ColumnNotFoundError, match=r"no column 'column_x'.*'column_0'") as caught:
        gpupif.score(wide, columns=["column_x"])
    assert len(str(caught.value)) < 5_000


@pytest.mark.parametrize("argument", ["columns", "known"])
def test_bad_lists_of_columns_are_refused(argument):
    assert_refused(ColumnNotFoundError, [argument, "no column 'agee'", "Did you mean 'age'"], **{argument: "agee"})
    assert_refused(InputError, [argument, "['age']"], **{argument: [["age"]]})


def test_an_empty_list_of_columns_is_refused():
    assert_refused(InputError, ["columns", "at least one column", "empty list"], columns=[])


@pytest.mark.parametrize("argument", ["priors", "accuracies"])
@pytest.mark.parametrize("value", [["age"], "age", 0.5])
def test_arguments_that_are_no_dictionaries_are_refused(argument, value):
    assert_refused(InputError, [argument, type(value).__name__], **{argument: value})


@pytest.mark.parametrize("argument", ["priors", "accuracies"])
def test_priors_of_columns_neither_scored_nor_known_are_refused(argument):
    value = {"priors": {"f": 0.5, "m": 0.3, None: 0.2}, "accuracies": 0.5}[argument]
    expected = [argument, "'sex'", "neither scored nor known", "columns="]
    assert_refused(InputError, expected, columns=["age"], **{argument: {"sex": value}})


NO_CATEGORIES = {
    "pandas lists": pd.DataFrame({"age": [1, 2], "tags": [["a"], ["b"]]}),
    "pandas dictionaries": pd.DataFrame({"age": [1, 2], "tags": [{"a": 1}, {"a": 2}]}),
    "pandas tuples of lists": pd.DataFrame({"age": [1, 2], "tags": [([1],), ([2],)]}),
    "pandas a list among text": pd.DataFrame({"age": [1, 2], "tags": ["a", ["b"]]}),
    "pandas Arrow lists": pd.DataFrame({"tags": pd.array([["a"]], dtype=pd.ArrowDtype(pa.list_(pa.string())))}),
    "Arrow list": pa.table({"age": [1, 2], "tags": [["a"], ["b"]]}),
    "Arrow struct": pa.table({"age": [1, 2], "tags": [{"a": 1}, {"a": 2}]}),
    "Arrow map": pa.table({"tags": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8()))}),
    "Arrow dictionary": pa.table({"tags": pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array([["a"]]))}),
    "Polars list": pl.DataFrame({"age": [1, 2], "tags": [["a"], ["b"]]}),
    "Polars array": pl.DataFrame({"tags": pl.Series([["a"]], dtype=pl.Array(pl.String, 1))}),
    "Polars struct": pl.DataFrame({"age": [1, 2], "tags": [{"a": 1}, {"a": 2}]}),
    "Polars objects": pl.DataFrame({"tags": pl.Series([["a"], ["a"]], dtype=pl.Object)}),
}


@pytest.mark.parametrize("table", NO_CATEGORIES.values(), ids=NO_CATEGORIES)
def test_values_that_are_no_categories_are_refused(table):
    assert_refused(ColumnTypeError, ["column 'tags'", "expected", "got", "text", "columns="], table)


@pytest.mark.parametrize(
    ("prior", "fragments"),
    [
        ({39: 0.5, 40: 0.5}, ["every value that occurs", "for 41", "Add"]),
        ({39: 0.5, 40: 0.5, 41: 0}, ["above 0", "for 41"]),
        ({39: 0.5, 40: 0.7, 41: -0.2}, ["between 0 and 1", "for 41", "got -0.2"]),
        ({39: 0.5, 40: 0.5, 41: np.complex128(0)}, ["between 0 and 1", "for 41", "0j"]),
        ({39: 0.5, 40: 0.5, 41: False}, ["between 0 and 1", "for 41", "got False"]),
        ({39: 0.5, 40: 0.5, 41: float("nan")}, ["between 0 and 1", "for 41", "got nan"]),
        ({39: 0.5, 40: 0.25, 41: "0.25"}, ["between 0 and 1", "for 41", "got '0.25'"]),
        ({39: 0.5, 40: 0.25, 41: 0.2}, ["sum to 1", "0.95", "Divide"]),
        ({39: 0.5, 40: 0.25, 41: 0.25 + 2e-6}, ["sum to 1", "1.000002"]),
        ({39: 0.5, 40: 0.25, 41: 0.25 - 2e-6}, ["sum to 1", "0.999998"]),
        ({}, ["every value that occurs", "got none"]),
        ([0.5, 0.25, 0.25], ["dictionary", "got list"]),
    ],
)
def test_priors_that_are_no_distribution_are_refused(prior, fragments):
    assert_refused(PriorError, ["priors", "column 'age'", *fragments], priors={"age": prior})


def test_a_prior_without_missing_values_is_refused_if_some_are_missing():
    assert_refused(PriorError, ["column 'sex'", "missing value", "None"], priors={"sex": {"f": 0.5, "m": 0.5}})


@pytest.mark.parametrize("off", [0.0, 1e-7, -1e-7])
def test_priors_may_be_off_by_rounding_and_name_further_values(off):
    prior = {39: 0.5, 40: 0.25, 41: 0.15 + off, 42: 0.1, 43: 0}
    scores = gpupif.score(FRAME, "prior", priors={"age": prior})
    expected = [0.5, 0.5, 0.25, 0.15 + off]
    assert scores.prior["age"].tolist() == pytest.approx([share / (1 + off) for share in expected], rel=1e-14)
    assert math.fsum(scores.priors["age"].values()) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(
    "value", [-0.1, 1.0000001, float("nan"), float("inf"), "high", "0.9", None, [0.9], pd.NA, True, 0.5j]
)
def test_accuracies_outside_0_to_1_are_refused(value):
    expected = ["accuracies", "column 'age'", "from 0 to 1", f"got {value!r}"]
    assert_refused(InputError, expected, accuracies={"age": value})


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int64(1)])
def test_accuracies_from_0_to_1_mix_posterior_and_prior(value):
    posterior = gpupif.score(FRAME, "posterior", accuracies={"sex": value}).posterior
    assert posterior["sex"][2] == pytest.approx(float(value) + (1 - float(value)) * 0.5)


BAD_MEASURES = [("risk", "'risk'"), (["cig", "CSF"], "'CSF'"), ("cig,csf", "'cig,csf'"), ([], "none"), ("", "''"),
                (None, "None"), (5, "5"), ([["cig"]], "['cig']")]  # fmt: skip


@pytest.mark.parametrize(("measures", "got"), BAD_MEASURES)
def test_unknown_measures_are_refused(measures, got):
    expected = ["measures", "cig, wcig, csf, posterior, prior, cohort_size", f"got {got}", "`gpupif measures`"]
    assert_refused(InputError, expected, measures=measures)


@of_every_kind
def test_missing_values_are_refused_if_none_are_allowed(kind):
    expected = ["column 'sex'", "1 missing", "row 3", "missing='category'"]
    assert_refused(InputError, expected, kind(FRAME), missing="error")
    whole = kind(FRAME.fillna({"sex": "m"}))
    assert gpupif.score(whole, missing="error").array("cig").tobytes() == gpupif.score(whole).array("cig").tobytes()


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("missing", ["category", "error"]),
        ("dtype", ["float64", "float32"]),
    ],
)
@pytest.mark.parametrize("word", ["drop", "", None, 5, ["cpu"]])
def test_unknown_words_for_an_argument_are_refused(argument, words, word):
    assert_refused(InputError, [argument, "expected", *words, f"got {word!r}"], **{argument: word})


NO_TABLES = [None, 3, {"age": [1]}, [[1]], np.ones((2, 2)), b"t.csv", pa.array([1]), pa.chunked_array([[1]]),
             pd.Series([1], name="age"), pl.Series([1]), pl.col("age"), pd.DataFrame, iter([])]  # fmt: skip


@pytest.mark.parametrize("table", NO_TABLES, ids=lambda table: type(table).__name__)
def test_values_that_are_no_table_are_refused(table):
    assert_refused(InputError, ["table", "expected", "DataFrame", "got", type(table).__name__], table)


def test_cuda_is_refused_without_a_usable_gpu(monkeypatch):
    monkeypatch.setattr("gpupif.gpu.status.cuda_status", lambda: CudaStatus(reason="the NVIDIA driver shows no GPU"))
    expected = ["device 'cuda'", "the NVIDIA driver shows no GPU", "device='cpu'", "device='auto'"]
    with gpupif.config(device="cuda"):
        assert_refused(DeviceError, expected)


def test_a_hint_names_an_index_without_a_name():
    table = pd.DataFrame({"": range(60), "sex": ["f", "m"] * 30})
    assert "index=False" in warned(table)[0]


@pytest.mark.parametrize(
    ("prior", "hints"),
    [
        ({"F": 0.5, "M": 0.5}, ["'f'", "'F', 'M' occur nowhere"]),
        ({"f": 50, "m": 50}, ["50", "by 100"]),
        (pd.Series([0.5, 0.25, 0.25], ["f", "m", "m"]), ["'m'", "twice"]),
    ],
)
def test_errors_of_a_prior_give_a_hint(prior, hints):
    table = pd.DataFrame({"sex": ["f", "m"] * 3, "age": range(6)})
    assert_refused(PriorError, ["'sex'", *hints], table, priors={"sex": prior})


@pytest.mark.parametrize(("misspelt", "meant"), [("uniqe", "unique"), ("CIG", "cig"), ("class_sizes", "class_size")])
def test_a_misspelt_measure_gets_a_hint(misspelt, meant):
    with pytest.raises(InputError, match=f"got '{misspelt}'. Did you mean '{meant}'?"):
        gpupif.score(pd.DataFrame({"a": [1]}), misspelt)
