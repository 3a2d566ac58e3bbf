"""The population of a table larger than memory: the same bits as in memory for all sizes of chunks and partitions."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.errors import ColumnNotFoundError, ColumnTypeError, InputError, OutputError, TableReadError
from gpupif.measures import MEASURES
from gpupif.out_of_core.table_scoring import TableScoring
from gpupif.pipeline.partition_scoring import PartitionScorer
from tests.helpers.command_line import FRAME, assert_refused
from tests.helpers.dying import die_at_each_mark
from tests.helpers.pieces import assert_same, in_pieces, nothing_left, write_parts
from tests.helpers.populations import POPULATION

ALL = list(MEASURES)
FEW = ["cig", "wcig", "csf", "cohort_size"]
CENSUS = gpupif.datasets.census(500, columns=5)
STRANGERS = gpupif.datasets.census(60, columns=5, seed=9)


def census_files(place, strangers=False):
    """Write a sample of the census and the census, each as a folder of files. strangers: rows only in the sample."""
    sample = CENSUS.sample(200, random_state=2)
    sample = pd.concat([sample, STRANGERS], ignore_index=True) if strangers else sample
    write_parts(place / "people", CENSUS.sample(frac=1, random_state=3), [100, 333])
    return write_parts(place / "in", sample.assign(w=np.arange(len(sample)) % 5 / 4), [50]), place / "people"


@pytest.mark.slow
@pytest.mark.parametrize("partition_rows", [12, 150])
def test_partitions_that_are_cut_again_give_the_same_scores(tmp_path, partition_rows, monkeypatch):
    """The sample and the population have frequent rows, so that a partition has more rows than fit."""
    chance = np.random.default_rng(1)
    frame = CENSUS.copy()
    for name in frame:
        frame[name] = frame[name].where(chance.random(500) < 0.1, frame[name].mode()[0])
    source = write_parts(tmp_path / "in", frame.iloc[:100], [30])
    people = write_parts(tmp_path / "people", frame.iloc[70:200].assign(more=1), [77])
    calls = []
    real = TableScoring._join_slices
    monkeypatch.setattr(TableScoring, "_join_slices", lambda *given: calls.append(1) or real(*given))
    with in_pieces(40, partition_rows):
        scores = gpupif.score_files(source, tmp_path / "out", population=gpupif.Population(people, lacks="count"))
    assert_same(scores, gpupif.score(source, population=gpupif.Population(people, lacks="count")))
    assert calls or partition_rows != 12


@pytest.mark.slow
def test_lacking_rows_are_named_as_in_memory(tmp_path):
    source, people = census_files(tmp_path, strangers=True)
    arguments = {"population": people, "columns": ["age", "sex"]}
    with pytest.raises(InputError) as expected:
        gpupif.score(source, known=["region"], **arguments)
    for pieces in ((30, 20), (7, 90), (1000, 1000)):
        with in_pieces(*pieces), pytest.raises(InputError) as caught:
            gpupif.score_files(source, tmp_path / "out", known=["region"], **arguments)
        assert str(caught.value) == str(expected.value)
    assert nothing_left(tmp_path)


@pytest.mark.slow
def test_attackers_and_weights_with_a_population_have_the_bits_of_memory(tmp_path):
    source, people = census_files(tmp_path, strangers=True)
    attackers = {"neighbour": ["age", "sex"], "nobody": []}
    arguments = {"population": gpupif.Population(people, "count"), "weights": "w", "attackers": attackers}
    arguments |= {"dtype": "float32", "columns": ["age", "marital_status"]}
    with in_pieces(40, 50):
        scores = gpupif.score_files(source, tmp_path / "out", FEW, **arguments)
    expected = gpupif.score(source, FEW, **arguments)
    table = pa.concat_tables(pq.read_table(file, partitioning=None) for file in scores.files)
    assert table.equals(expected.to_arrow())
    assert table.schema.field("nobody_population_size_age").type == pa.int64()
    for name in attackers:
        assert scores.against(name).measures == expected.against(name).measures == (*FEW, "population_size")
        pd.testing.assert_frame_equal(scores.against(name).summary().top, expected.against(name).summary().top)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "feather", "parquet"])
def test_the_population_may_be_a_file_of_any_kind(tmp_path, kind):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    people = tmp_path / f"people.{kind}"
    {"csv": POPULATION.to_csv, "feather": POPULATION.to_feather, "parquet": POPULATION.to_parquet}[kind](
        people, **({"index": False} if kind == "csv" else {})
    )
    with in_pieces(2, 3):
        scores = gpupif.score_files(tmp_path / "t.csv", tmp_path / "out", ALL, population=str(people))
    assert_same(scores, gpupif.score(tmp_path / "t.csv", ALL, population=people))


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.parametrize("moment", ["next", "mark"])
def test_a_run_killed_at_any_mark_resumes_to_the_same_bits(tmp_path, moment):
    source, people = census_files(tmp_path, strangers=True)
    options = ["--population", people, "--population-lacks", "count", "--columns", "age,sex,region", "-q", "--resume"]
    die_at_each_mark(moment, source, "-o", tmp_path / "out", *options, rows=(90, 250))
    assert nothing_left(tmp_path)
    found = pa.concat_tables(pq.read_table(file) for file in sorted((tmp_path / "out").rglob("*.parquet")))
    arguments = {"columns": ["age", "sex", "region"], "population": gpupif.Population(people, "count")}
    expected = gpupif.score(source, ["cig", "csf", "wcig"], **arguments).to_arrow()
    assert found.replace_schema_metadata().equals(expected.replace_schema_metadata())


@pytest.mark.slow
def test_a_run_resumed_with_another_population_is_refused(tmp_path, monkeypatch):
    source, people = census_files(tmp_path)

    def failing(*_):
        raise InputError("stop")

    def again(**other):
        arguments = {"population": people, "resume": True, "weights": "w"} | other
        return gpupif.score_files(source, tmp_path / "out", **arguments)

    with in_pieces(60, 100):
        with monkeypatch.context() as patch:
            patch.setattr("gpupif.out_of_core.scores_writer.ScoreWriter.write", failing)
            with pytest.raises(InputError, match="stop"):
                again()
        with pytest.raises(OutputError, match=r"other population lacks .*error before, count now"):
            again(population=gpupif.Population(people, "count"))
        with pytest.raises(OutputError, match="other files of the population"):
            again(population=None)
        file = people / "001.parquet"
        pq.write_table(pq.read_table(file), file)
        with pytest.raises(OutputError, match=r"other files of the population .*people/001\.parquet"):
            again()
    assert (tmp_path / "in").exists()


@pytest.mark.slow
def test_files_that_change_during_the_run_are_an_error(tmp_path, monkeypatch):
    source, people = census_files(tmp_path)
    real = PartitionScorer.score
    file = people / "000.parquet"

    def changing(*given, **named):
        file.touch()
        return real(*given, **named)

    monkeypatch.setattr(PartitionScorer, "score", changing)
    with in_pieces(60, 100), pytest.raises(TableReadError, match=r"people/000\.parquet: the file changed"):
        gpupif.score_files(source, tmp_path / "out", population=people, weights="w")
    assert nothing_left(tmp_path)


def test_bad_populations_are_refused(tmp_path):
    source, people = census_files(tmp_path)

    def score(population, output=tmp_path / "out", **other):
        return gpupif.score_files(source, output, **{"population": population, "weights": "w"} | other)

    with pytest.raises(InputError, match=r"^population: expected the path .* got DataFrame"):
        score(CENSUS)
    with pytest.raises(TableReadError, match="no such file"):
        score(tmp_path / "nobody.parquet")
    with pytest.raises(ColumnNotFoundError, match="population: no column 'w'"):
        score(people, columns=["age"], known=["w"])
    holes = write_parts(tmp_path / "holes", CENSUS.assign(age=CENSUS["age"].astype("Int8").where(CENSUS.index != 7)))
    with pytest.raises(InputError, match=r"^population: column 'age': missing values, the first in row 7 \(from 0\)"):
        score(holes, missing="error")
    other = write_parts(tmp_path / "texts", CENSUS.astype({"age": str}))
    with pytest.raises(ColumnTypeError, match=r"'age'.*int8 in the table and .*string in the population"):
        score(other)
    with pytest.raises(OutputError, match="the output is inside the input"):
        score(people, output=people / "scores", overwrite=True)
    with pytest.raises(OutputError, match="the output is the input"):
        score(people / "000.parquet", output=people / "000.parquet", overwrite=True)
    clash = write_parts(tmp_path / "clash", CENSUS.assign(population_size_age=1))
    with pytest.raises(OutputError, match="population_size_age"):
        gpupif.score_files(clash, tmp_path / "out", columns=["age"], keep_input=True, population=people)
    assert nothing_left(tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("output", ["out", "out.csv"])
def test_the_command_line_scores_against_a_population(run, folder, output):
    POPULATION.to_parquet(folder / "people.parquet")
    options = ["--population", "people.parquet", "--measures", "cig,csf", "--memory-limit", "16GiB"]
    ended = run("score", "people.csv", "-o", output, "--json", *options)
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)["measures"] == ["cig", "csf", "population_size"]
    expected = gpupif.score(FRAME, ["cig", "csf"], population=POPULATION)
    written = (pd.read_csv if output.endswith(".csv") else pd.read_parquet)(folder / output)
    assert list(written.columns) == [f"{m}_{c}" for m in expected.measures for c in FRAME.columns]
    np.testing.assert_array_equal(written["population_size_sex"], expected.population_size["sex"])
    FRAME.iloc[1:].to_parquet(folder / "few.parquet")
    lacking = ["score", "people.csv", "-o", "other", "--population", "few.parquet"]
    assert_refused(run(*lacking), ["--population", "lacks 1 of", "row 4", "--population-lacks count"])
    assert run(*lacking, "--population-lacks", "count").code == 0
    few = ["score", "people.csv", "-o", "few.parquet", "--population", "few.parquet", "--overwrite"]
    assert_refused(run(*few), ["few.parquet", "the output is the input"])


def test_a_population_that_does_not_fit_is_read_in_streams(tmp_path, monkeypatch, capfd):
    from gpupif.attack.arguments import Arguments
    from gpupif.out_of_core.output_options import OutputOptions
    from gpupif.scoring import files

    real = files.memory_needed
    monkeypatch.setattr(
        files, "memory_needed", lambda source, *given: (1 << 60) * ("people" in str(source.input_files.path))
    )
    source, people = census_files(tmp_path)
    asked = Arguments.from_user("cig", ["age", "sex"], population=people)
    scores = files.score_file(source, asked, OutputOptions.from_arguments(tmp_path / "out.parquet")).scores
    assert "more than 60 % of the memory that is free" in capfd.readouterr().err
    assert_same(scores, gpupif.score(source, "cig", columns=["age", "sex"], population=people))
    assert real(scores_source := files.open_source(source), 2, 2, 1) > real(scores_source, 2, 0, 0)
