"""The population of a sample: rows that it lacks, its kinds of tables, and its sizes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings

import gpupif
from gpupif.errors import ColumnNotFoundError, ColumnTypeError, InputError, TableReadError
from gpupif.measures import MEASURES
from tests.helpers import naive
from tests.helpers.command_line import FRAME, assert_refused
from tests.helpers.naive_attack import rows_of
from tests.helpers.populations import POPULATION, frames_of, samples
from tests.helpers.tables import SHARED_FIXTURES

pytestmark = pytest.mark.every_engine

ALL = list(MEASURES)
FEW = settings(SHARED_FIXTURES, max_examples=10)


@pytest.mark.slow
@given(job=samples())
@FEW
def test_rows_that_the_population_lacks_are_refused_or_counted(engine, job):
    sample, population, arguments = job
    columns = arguments.get("columns", list(sample))
    used = [name for name in sample if name in {*columns, *arguments.get("known", columns)}]
    have = Counter(rows_of(population, used))
    lacking = []
    for row, values in enumerate(rows_of(sample, used)):
        have[values] -= 1
        if have[values] < 0:
            lacking.append(row)
    frame, other = frames_of(sample, population)
    given_to = {"population": other, **arguments}
    if lacking:
        match = (
            rf"lacks {len(lacking)} of the table's {len(sample[used[0]])} rows, the first row {lacking[0]} \(from 0\)"
        )
        with pytest.raises(InputError, match=match):
            gpupif.score(frame, **given_to)
    else:
        scores = gpupif.score(frame, **given_to)
        counted = gpupif.score(frame, **given_to | {"population": gpupif.Population(other, lacks="count")})
        for measure in scores.measures:
            assert scores.array(measure).tobytes() == counted.array(measure).tobytes()


def test_the_table_as_its_own_population_gives_the_same_bits(engine):
    frame = gpupif.datasets.census(300, columns=6)
    plain = gpupif.score(frame, ALL)
    scores = gpupif.score(frame, ALL, population=frame.sample(frac=1, random_state=1))
    for measure in ALL:
        assert scores.array(measure).tobytes() == plain.array(measure).tobytes()
    assert scores.array("population_size").tobytes() == plain.array("cohort_size").tobytes()


def test_a_population_may_have_any_kind_of_table_and_type(tmp_path, engine):
    expected = gpupif.score(FRAME, ALL, population=POPULATION)
    POPULATION.to_parquet(tmp_path / "p.parquet")
    POPULATION.to_csv(tmp_path / "p.csv", index=False)
    other = POPULATION.astype({"age": "int16", "sex": "category", "a=b": "Float32"}).assign(more=1)
    for population in (
        pa.Table.from_pandas(POPULATION),
        pl.from_pandas(POPULATION),
        other[["more", "sex", "a=b", "age"]],
        tmp_path / "p.parquet",
        str(tmp_path / "p.csv"),
    ):
        scores = gpupif.score(FRAME, ALL, population=population)
        for measure in expected.measures:
            np.testing.assert_array_equal(scores.array(measure), expected.array(measure))
    assert expected.priors["sex"] == pytest.approx({"f": 6 / 11, "m": 2 / 11, None: 2 / 11, "x": 1 / 11})
    assert gpupif.score(FRAME, population=POPULATION).summary().columns.loc["sex", "prior_entropy"] == pytest.approx(
        naive.entropy(["f"] * 6 + ["m"] * 2 + [None] * 2 + ["x"])
    )


def test_a_population_serves_attackers_with_weights_and_is_written(tmp_path, engine):
    attackers = {"a": ["age", "sex"], "b": []}
    table = FRAME.assign(w=[1.5, 2, 0, 1, 1])
    scores = gpupif.score(table, ALL, population=POPULATION, attackers=attackers, weights="w")
    for name, known in attackers.items():
        alone = gpupif.score(table, ALL, population=POPULATION, known=known, weights="w")
        for measure in alone.measures:
            assert scores.against(name).array(measure).tobytes() == alone.array(measure).tobytes()
    assert scores.worst["population_size"]["a=b"].tolist() == scores.against("a").population_size["a=b"].tolist()
    alone.to_parquet(tmp_path / "scores.parquet")
    assert "population_size_a=b" in pd.read_parquet(tmp_path / "scores.parquet").columns
    top = scores.against("a").top(3, by="population_size")
    assert top["population_size"].tolist() == sorted(scores.against("a").array("population_size").ravel())[:3]
    few = gpupif.score(table, "cig", population=POPULATION, known=["age", "sex"], weights="w")
    assert "population size" in " ".join(str(few.summary()).split())


BAD = {
    "a column is missing": (
        {"population": FRAME[["age"]]},
        ColumnNotFoundError,
        ["population: no column 'sex', 'a=b' in the population"],
    ),
    "repeated names": ({"population": pd.concat([FRAME, FRAME], axis=1)}, InputError, ["population: expected differ"]),
    "lists": ({"population": FRAME.assign(sex=[["f"]] * 5)}, ColumnTypeError, ["population: column 'sex'"]),
    "missing values": (
        {"population": FRAME.assign(age=[39, None, 40, 41, 39]), "missing": "error", "columns": ["age"]},
        InputError,
        ["population: column 'age': 1 missing value,"],
    ),
    "no rows": ({"population": FRAME.iloc[:0]}, InputError, ["population", "at least one row"]),
    "no table": ({"population": [1]}, InputError, ["population", "pandas", "list"]),
    "no file": ({"population": "nobody.parquet"}, TableReadError, ["nobody.parquet", "no such file"]),
    "other types": (
        {"population": FRAME.assign(age=list("abcde"))},
        ColumnTypeError,
        ["'age'", "int64 in the table and", "string in the population"],
    ),
    "other rows": (
        {"population": FRAME.assign(age=0)},
        InputError,
        ["lacks 5 of the table's 5 rows", "gpupif.Population(table, lacks='count')"],
    ),
    "bytes for text": ({"population": FRAME.assign(sex=[b"f"] * 5)}, ColumnTypeError, ["'sex'", "binary"]),
}


@pytest.mark.parametrize(("arguments", "kind", "fragments"), BAD.values(), ids=BAD)
def test_bad_populations_are_refused(arguments, kind, fragments):
    with pytest.raises(kind) as caught:
        gpupif.score(FRAME, **arguments)
    assert [fragment for fragment in fragments if fragment not in str(caught.value)] == []


def test_a_population_that_is_no_table_is_named_once():
    for find in (lambda: gpupif.score(FRAME, population=5), lambda: gpupif.risk(FRAME, "sex", population=5)):
        with pytest.raises(InputError, match=r"^population: expected a pandas, .* got builtins\.int"):
            find()


def test_an_unknown_word_for_lacks_is_refused():
    with pytest.raises(InputError, match="lacks: expected 'error' or 'count', got 'ignore'"):
        gpupif.Population(FRAME, lacks="ignore")


def test_the_command_line_scores_against_a_population(run, folder):
    POPULATION.to_parquet(folder / "people.parquet")
    ended = run("score", "people.csv", "-o", "scores.parquet", "--population", "people.parquet", "--measures", "cig")
    assert (ended.code, ended.err) == (0, "")
    expected = gpupif.score(FRAME, "cig", population=POPULATION)
    written = pd.read_parquet(folder / "scores.parquet")
    assert list(written.columns) == [f"{m}_{c}" for m in ("cig", "population_size") for c in FRAME.columns]
    np.testing.assert_array_equal(written["population_size_sex"], expected.population_size["sex"])
    FRAME.iloc[1:].to_parquet(folder / "few.parquet")
    lacking = ["score", "people.csv", "-o", "other.parquet", "--population", "few.parquet"]
    assert_refused(run(*lacking), ["--population", "lacks 1 of", "row 4", "--population-lacks count"])
    assert run(*lacking, "--population-lacks", "count").code == 0
    assert_refused(run(*lacking, "--rows-per-file", "3"), ["--rows-per-file", "folder"])
