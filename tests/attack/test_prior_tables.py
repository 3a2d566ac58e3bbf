"""Priors and accuracies from tables and files: the same as from dictionaries, and one clear error each."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

import gpupif
from gpupif.attack.prior_files import as_accuracies, as_priors
from gpupif.errors import InputError, PriorError, TableReadError
from tests.helpers.command_line import FRAME, PRIORS, assert_refused, assert_written
from tests.helpers.tables import SHARED_FIXTURES, frame_of, tables

pytestmark = pytest.mark.every_engine

AGES = [("age", 39, 0.5), ("age", 40, 0.25), ("age", 41, 0.25)]
SEXES = [("sex", "f", 0.5), ("sex", "m", 0.3), ("sex", None, 0.2)]
TEXTS = [(name, None if value is None else str(value), share) for name, value, share in AGES + SEXES]


def long_form(rows):
    return pd.DataFrame(rows, columns=["column", "value", "probability"])


def write(table, file):
    writers = {
        ".csv": lambda f: table.to_csv(f, index=False),
        ".parquet": table.to_parquet,
        ".feather": table.to_feather,
    }
    writers[file.suffix](file)
    return file


KINDS = {
    "pandas, values of several types": lambda rows: long_form(rows),
    "pandas texts": lambda rows: long_form(TEXTS),
    "Arrow": lambda rows: pa.Table.from_pandas(long_form(TEXTS)),
    "Polars": lambda rows: pl.from_pandas(long_form(TEXTS)),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_of_table_gives_the_priors_of_the_dictionary(engine, kind):
    expected = gpupif.score(FRAME, ["cig", "prior"], priors=PRIORS)
    scores = gpupif.score(FRAME, ["cig", "prior"], priors=kind(AGES + SEXES))
    for measure in ("cig", "prior"):
        np.testing.assert_array_equal(scores[measure], expected[measure])
    assert dict(scores.priors) == dict(expected.priors)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".feather"])
def test_priors_are_read_from_files(tmp_path, ending):
    file = write(long_form(TEXTS), tmp_path / f"priors{ending}")
    for path in (file, str(file)):
        scores = gpupif.score(FRAME, "prior", priors=path)
        pd.testing.assert_frame_equal(scores.prior, gpupif.score(FRAME, "prior", priors=PRIORS).prior)


def test_priors_are_read_from_a_folder_with_their_types(tmp_path):
    folder = tmp_path / "priors"
    folder.mkdir()
    for number, row in enumerate(AGES):
        write(long_form([row]), folder / f"{number}.parquet")
    scores = gpupif.score(FRAME, "prior", priors=folder)
    assert scores.priors["age"] == {39: 0.5, 40: 0.25, 41: 0.25}
    assert scores.prior["age"].tolist() == [0.5, 0.5, 0.25, 0.25, 0.5]


def test_numbers_in_a_csv_of_priors_match_texts_too(tmp_path):
    table = pd.DataFrame({"zip": ["01", "1", "01"], "n": [1, 2, 2]})
    file = tmp_path / "priors.csv"
    file.write_text("column,value,probability,source\nzip,01,0.75,a\nzip,1,.25,b\n")
    assert gpupif.score(table, "prior", priors=file).priors["zip"] == {"01": 0.75, "1": 0.25}


def test_priors_may_be_a_series_for_each_column():
    scores = gpupif.score(FRAME, "prior", priors={"age": pd.Series({39: 0.5, 40: 0.25, 41: 0.25})})
    assert scores.priors["age"] == PRIORS["age"]


@pytest.mark.slow
@given(table=tables())
@SHARED_FIXTURES
def test_priors_of_scores_can_be_given_again_as_a_table(tmp_path_factory, table):
    frame = frame_of(table)
    scores = gpupif.score(frame, ["cig", "prior"])
    file = tmp_path_factory.mktemp("priors") / "priors.parquet"
    scores.priors.to_frame().to_parquet(file)
    again = gpupif.score(frame, ["cig", "prior"], priors=file)
    for name, prior in scores.priors.items():
        assert again.priors[name] == pytest.approx(prior)
    for measure in ("cig", "prior"):
        np.testing.assert_allclose(again[measure], scores[measure], rtol=1e-12, atol=1e-13)


BAD_PRIORS = {
    "a column is missing": (pd.DataFrame({"column": ["age"], "prob": [1.0]}), ["no 'value'", "column, prob"]),
    "no rows": (long_form([]), ["at least one row"]),
    "a value twice": (long_form([*AGES, AGES[0]]), ["'age'", "39", "twice", "row 3"]),
    "a missing value twice": (long_form([*SEXES, SEXES[2]]), ["'sex'", "missing", "twice", "row 3"]),
    "text for a number": (long_form([("age", 39, "high")]), ["'probability'", "row 0", "'high'", "from 0 to 1"]),
    "truth value for a number": (long_form([("age", 39, True)]), ["'probability'", "row 0", "True"]),
    "no probability": (long_form([("age", 39, 1.0), ("age", 40, None)]), ["'probability'", "row 1", "missing"]),
    "negative": (long_form([("age", 39, -0.5)]), ["'probability'", "row 0", "-0.5"]),
    "percent": (long_form([("age", 39, 50.0)]), ["'probability'", "50", "by 100"]),
    "infinite": (long_form([("age", 39, np.inf)]), ["'probability'", "inf"]),
    "no name": (long_form([(None, 39, 1.0)]), ["'column'", "row 0", "name"]),
    "lists": (long_form([("age", [39], 1.0)]), ["'value'", "list"]),
    "no distribution": (long_form(AGES[:2]), ["'age'", "sum to 1"]),
    "another column": (long_form([("agee", 39, 1.0)]), ["no column 'agee'", "Did you mean 'age'"]),
}


@pytest.mark.parametrize(("table", "fragments"), BAD_PRIORS.values(), ids=BAD_PRIORS)
def test_bad_tables_of_priors_are_refused(table, fragments):
    with pytest.raises(InputError) as caught:
        gpupif.score(FRAME, "prior", priors=table)
    assert [fragment for fragment in fragments if fragment not in str(caught.value)] == []


def test_errors_name_the_file(tmp_path):
    file = write(long_form([("age", 39, 2.0)]), tmp_path / "priors.parquet")
    with pytest.raises(PriorError, match=r"priors: .*priors\.parquet: column 'probability', row 0"):
        gpupif.score(FRAME, priors=file)
    file = write(pd.DataFrame({"a": [1], "b": [2]}), tmp_path / "other.csv")
    with pytest.raises(PriorError, match=r"other\.csv: expected columns column, value, probability.*exist: a, b"):
        gpupif.score(FRAME, priors=file)
    with pytest.raises(TableReadError, match=r"nobody\.parquet: no such file"):
        gpupif.score(FRAME, priors=tmp_path / "nobody.parquet")


def test_accuracies_are_read_from_tables(tmp_path):
    table = pd.DataFrame({"column": ["age", "sex"], "accuracy": [0.5, 1]})
    expected = {"age": 0.5, "sex": 1.0}
    file = write(table, tmp_path / "accuracies.csv")
    (tmp_path / "accuracies.json").write_text(json.dumps(expected))
    for given_as in (table, pl.from_pandas(table), file, tmp_path / "accuracies.json"):
        assert as_accuracies(given_as) == expected
        scores = gpupif.score(FRAME, "cig", accuracies=given_as)
        pd.testing.assert_frame_equal(scores.cig, gpupif.score(FRAME, "cig", accuracies=expected).cig)


BAD_ACCURACIES = {
    "twice": ([("age", 0.5), ("age", 1)], ["'age'", "second time", "row 1"]),
    "no name": ([(None, 0.5)], ["'column'", "row 0"]),
    "too high": ([("age", 1.5)], ["'accuracy'", "row 0", "1.5", "from 0 to 1"]),
    "no number": ([("age", "sure")], ["'accuracy'", "'sure'"]),
}


@pytest.mark.parametrize(("rows", "fragments"), BAD_ACCURACIES.values(), ids=BAD_ACCURACIES)
def test_bad_tables_of_accuracies_are_refused(rows, fragments):
    with pytest.raises(InputError) as caught:
        gpupif.score(FRAME, accuracies=pd.DataFrame(rows, columns=["column", "accuracy"]))
    assert [fragment for fragment in ["accuracies", *fragments] if fragment not in str(caught.value)] == []


def test_priors_that_are_no_table_stay_as_they_are():
    for other in (None, {"age": {39: 1.0}}, "age", ["age"], 3):
        assert as_priors(other) is other
        assert as_accuracies(other) is other


@pytest.mark.parametrize("name", ["priors.csv", "priors.parquet", "priors.feather"])
def test_the_command_line_takes_tables_of_priors_and_accuracies(run, folder, name):
    write(long_form(TEXTS), folder / name)
    (folder / "accuracies.csv").write_text("column,accuracy\nsex,0.5\n")
    options = ["--priors", name, "--accuracies", "accuracies.csv", "--accuracy", "age=0.25"]
    ended = run("score", "people.csv", "-o", "scores.csv", "--measures", "cig,prior", *options)
    assert (ended.code, ended.err) == (0, "")
    accuracies = {"sex": 0.5, "age": 0.25}
    assert_written(folder / "scores.csv", gpupif.score(FRAME, ["cig", "prior"], priors=PRIORS, accuracies=accuracies))


BAD_OPTIONS = {
    "no such table": (["--priors", "nobody.parquet"], ["nobody.parquet", "no such file"]),
    "no columns": (["--priors", "people.csv"], ["--priors", "people.csv", "no 'column'", "age, sex, a=b"]),
    "another ending": (["--priors", "priors.xlsx"], ["--priors", "priors.xlsx", ".json, .parquet"]),
    "no accuracies": (["--accuracies", "people.csv"], ["--accuracies", "people.csv", "no 'column'"]),
    "no object": (["--accuracies", "list.json"], ["--accuracies", "list.json", "expected an object"]),
    "in both": (["--accuracies", "a.json", "--accuracy", "age=1"], ["--accuracy", "'age'", "twice"]),
    "no number": (["--accuracies", "a.json"], ["--accuracy", "'age'", "from 0 to 1", "'x'"]),
}


@pytest.mark.parametrize(("options", "fragments"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options_for_priors_are_refused(run, folder, options, fragments):
    (folder / "list.json").write_text("[1]")
    (folder / "a.json").write_text('{"age": "x"}')
    assert_refused(run("score", "people.csv", "-o", "scores.parquet", *options), fragments)
    assert not (folder / "scores.parquet").exists()
