"""Disclosure measures of files beyond memory: the numbers of memory, for any chunks and partitions."""

from __future__ import annotations

import json
from collections import Counter
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.disclosure import assess
from gpupif.errors import ColumnNotFoundError, InputError, OutputError, TableReadError
from gpupif.out_of_core import memory_budget as budget
from gpupif.pipeline.local_graph import LocalGraph
from tests.helpers.configured import configured
from tests.helpers.disclosure import outcome, questions, what_is_found
from tests.helpers.naive_attack import rows_of, with_lacking
from tests.helpers.pieces import in_pieces, write_parts
from tests.helpers.populations import frames_of, samples
from tests.helpers.tables import SHARED_FIXTURES, frame_of

PLENTY = "64GiB"


@pytest.fixture
def small():
    with in_pieces(60, 40):
        yield


@pytest.mark.slow
@given(question=questions(), chosen=st.none() | st.integers(1, 2), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_files_have_the_numbers_of_memory(question, chosen, data, tmp_path_factory):
    table, known, sensitive, distances = question
    frame = frame_of(table)
    place = tmp_path_factory.mktemp("t")
    (place / "temp").mkdir()
    edges = data.draw(st.lists(st.integers(0, len(frame)), max_size=3))
    write_parts(place / "in", frame, edges)
    given_l = chosen if sensitive else None
    options = {"l": given_l, "distance": distances or None, "groups": data.draw(st.integers(0, 4)), "k": 2}
    asked = (place / "in", known, sensitive or None)
    with in_pieces(data.draw(st.integers(1, len(frame))), data.draw(st.integers(1, len(frame) + 1))):
        found = outcome(*asked, memory_limit=PLENTY, temp=place / "temp", **options)
    assert found == outcome(*asked, **options)
    assert list((place / "temp").iterdir()) == []


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    """Return a folder of files with the synthetic census."""
    return write_parts(tmp_path_factory.mktemp("census") / "in", gpupif.datasets.census(400), [90, 90, 300])


@pytest.mark.slow
@pytest.mark.parametrize("rows", [5, 60, 1000])
@pytest.mark.parametrize("known", [["age", "sex"], ["sex"], ["tenure"]])
def test_partitions_of_every_size_give_the_same_numbers(census, known, rows):
    """Cut down to partitions of one class, which is searched attribute by attribute."""
    asked = (census, known, ["region", "occupation", "education"])
    with in_pieces(50, rows), gpupif.config(memory_limit=PLENTY):
        found = gpupif.risk(*asked)
    assert what_is_found(found) == what_is_found(gpupif.risk(*asked))


def test_the_table_is_cut_only_if_it_does_not_fit(census, monkeypatch):
    asked = (census, ["age", "sex"], ["region", "occupation"])
    expected = what_is_found(gpupif.risk(*asked))
    real, planned = LocalGraph.partitions, []

    def partitions(self, chunks, plan):
        planned.append(real(self, chunks, plan))
        return planned[-1]

    monkeypatch.setattr(LocalGraph, "partitions", partitions)
    with gpupif.config(memory_limit=PLENTY):
        assert what_is_found(gpupif.risk(*asked)) == expected
    assert planned == []
    with in_pieces(50, 100), gpupif.config(memory_limit=PLENTY):
        assert what_is_found(gpupif.risk(*asked)) == expected
    assert planned[0] > 1


@pytest.mark.slow
def test_every_format_and_pattern_gives_the_same_numbers(census, tmp_path, small):
    frame = pd.read_parquet(census)
    frame.iloc[:3, 0] = None
    asked = (["age", "sex"], ["region", "occupation"])
    files = {"t.parquet": frame.to_parquet, "t.csv": frame.to_csv, "t.feather": frame.to_feather}
    for name, write in files.items():
        write(tmp_path / name, **({"index": False} if name == "t.csv" else {}))
        with gpupif.config(memory_limit=PLENTY):
            found = gpupif.risk(tmp_path / name, *asked)
        assert what_is_found(found) == what_is_found(gpupif.risk(tmp_path / name, *asked))
    pattern = str(census / "*.parquet")
    with gpupif.config(memory_limit=PLENTY):
        assert what_is_found(gpupif.risk(pattern, *asked)) == what_is_found(gpupif.risk(census, *asked))


@pytest.mark.slow
def test_functions_take_files(census, small):
    known, sensitive = ["age", "sex"], ["region", "occupation"]
    limit = {"memory_limit": PLENTY}
    assert configured(gpupif.models.k_anonymity, census, known, **limit) == gpupif.models.k_anonymity(census, known)
    for function in (
        gpupif.models.alpha_k_anonymity,
        gpupif.models.l_diversity,
        gpupif.models.t_closeness,
        gpupif.models.basic_beta_likeness,
        gpupif.models.enhanced_beta_likeness,
        gpupif.models.delta_disclosure,
    ):
        assert configured(function, census, known, sensitive, **limit) == function(census, known, sensitive)
    known = ["sex"]
    for kind in ("entropy", "recursive"):
        asked = (census, known, sensitive, kind)
        assert configured(gpupif.models.l_diversity, *asked, **limit) == gpupif.models.l_diversity(*asked)
    assert gpupif.models.l_diversity(*asked)[1] > 1


def test_uniques_are_estimated_from_files(census, small):
    asked = (census, ["age", "sex"])
    with gpupif.config(memory_limit=PLENTY):
        found = gpupif.risk(*asked, sampling_fraction=0.1)
    assert found.uniques == gpupif.risk(*asked, sampling_fraction=0.1).uniques
    assert "unique in the population" in str(found)


@pytest.mark.slow
@given(job=samples(), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_a_population_gives_the_numbers_of_memory(job, data, tmp_path_factory):
    """Compare with the run in memory, and with loops over the rows."""
    sample, people, _ = job
    known = data.draw(st.lists(st.sampled_from(list(sample)), min_size=1, unique=True))
    place = tmp_path_factory.mktemp("t")
    (place / "temp").mkdir()
    frames = frames_of(sample, people)
    for name, frame in zip(("in", "people"), frames, strict=True):
        write_parts(place / name, frame, data.draw(st.lists(st.integers(0, len(frame)), max_size=2)))
    lacks = data.draw(st.sampled_from(["error", "count"]))
    asked, options = (place / "in", known), {"population": gpupif.Population(place / "people", lacks)}
    rows = sum(map(len, frames))
    with in_pieces(data.draw(st.integers(1, rows)), data.draw(st.integers(1, rows + 1))):
        found = outcome(*asked, **options, memory_limit=PLENTY, temp=place / "temp")
    assert found == outcome(*asked, **options)
    assert list((place / "temp").iterdir()) == []
    if not isinstance(found, str):
        everyone = Counter(rows_of(with_lacking(sample, people, known), known))
        sampled = Counter(rows_of(sample, known))
        sizes = [(sampled[row], times) for row, times in everyone.items()]
        assert found["population"] == gpupif.models.population_risks(*zip(*sizes, strict=True)).to_dict()


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """Return three folders: rows of the census, other rows, and the census."""
    frame = gpupif.datasets.census(400, columns=4)
    place = tmp_path_factory.mktemp("sampled")
    mixed = pd.concat([frame.sample(120, random_state=1), gpupif.datasets.census(30, columns=4, seed=9)])
    write_parts(place / "mixed", mixed, [70])
    write_parts(place / "in", mixed.iloc[:120], [70])
    return place, write_parts(place / "people", frame, [90, 300])


@pytest.mark.slow
@pytest.mark.parametrize("rows", [5, 60, 1000])
@pytest.mark.parametrize("known", [["age", "sex"], ["sex"]])
def test_a_population_in_partitions_of_every_size_gives_the_same_numbers(sampled, known, rows):
    place, people = sampled
    for table, lacks in (("in", "error"), ("mixed", "count"), ("mixed", "error")):
        options = {"population": gpupif.Population(people, lacks)}
        with in_pieces(50, rows):
            found = outcome(place / table, known, memory_limit=PLENTY, **options)
        assert found == outcome(place / table, known, **options)


@pytest.mark.slow
def test_a_population_may_be_of_another_kind(sampled, tmp_path, small, monkeypatch):
    place, people = sampled
    frame = pd.read_parquet(people)
    expected = gpupif.risk(place / "in", ["age", "sex"], population=frame).population
    text = frame.assign(more=1)[["more", "sex", "region", "age"]].astype({"age": "int64", "sex": str})
    text.to_csv(tmp_path / "people.csv", index=False)
    for population in (frame, text, tmp_path / "people.csv", str(people / "*.parquet")):
        with gpupif.config(memory_limit=PLENTY):
            found = gpupif.risk(place / "in", ["age", "sex"], population=population)
        assert found.population == expected
    # The table is in memory, and the population is too large for it.
    monkeypatch.setattr(assess, "in_streams", lambda table, choose: not isinstance(table, pd.DataFrame))
    for table in (place / "in", pd.read_parquet(place / "in")):
        with mock.patch.object(assess, "LocalGraph", side_effect=LocalGraph) as graphs:
            found = gpupif.risk(table, ["age", "sex"], population=people)
        assert found.population == expected
        assert graphs.call_count == 1


def test_values_that_the_population_lacks_are_named(tmp_path, small):
    """Compare errors with memory: they name the first row and the value that the population lacks."""
    frame = pd.DataFrame({"age": [1.0, None, 2.0, 2.0], "sex": list("fmmm")})
    people = pd.DataFrame({"age": [1.0, None, 2.0, 2.0, 3.0], "sex": list("fmmmx")})
    frame.to_parquet(tmp_path / "in.parquet")
    for other in (people.iloc[:3], people.iloc[1:], people.drop(index=1), people.assign(sex="m"), people.astype(str)):
        other.to_parquet(tmp_path / "people.parquet", index=False)
        asked = (tmp_path / "in.parquet", ["age", "sex"])
        found = outcome(*asked, population=tmp_path / "people.parquet", memory_limit=PLENTY, temp=tmp_path)
        assert found.startswith("population: ")
        assert found == outcome(*asked, population=tmp_path / "people.parquet")
    people.to_parquet(tmp_path / "people.parquet")
    frame.iloc[2:].to_parquet(tmp_path / "in.parquet")
    with (
        pytest.raises(InputError, match=r"^population: column 'age': missing values, the first in row 1 \(from 0\)"),
        gpupif.config(memory_limit=PLENTY, temp=tmp_path),
    ):
        gpupif.risk(*asked, population=tmp_path / "people.parquet", missing="error")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "people.parquet"]


def test_a_file_that_fails_leaves_nothing(census, tmp_path, small):
    broken = tmp_path / "in"
    broken.mkdir()
    (tmp_path / "temp").mkdir()
    for file in sorted(census.iterdir()):
        (broken / file.name).write_bytes(file.read_bytes())
    last = sorted(broken.iterdir())[-1]
    content = bytearray(last.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    last.write_bytes(bytes(content))
    with pytest.raises(TableReadError, match=last.name), gpupif.config(memory_limit=PLENTY, temp=tmp_path / "temp"):
        gpupif.risk(broken, ["age", "sex"], ["region", "occupation"])
    full = mock.patch("gpupif.pipeline.local_graph.open_private", side_effect=OSError(28, "No space left on device"))
    with (
        full,
        pytest.raises(OutputError, match="No space left on device"),
        gpupif.config(memory_limit=PLENTY, temp=tmp_path / "temp"),
    ):
        gpupif.risk(census, ["age", "sex"])
    assert list((tmp_path / "temp").iterdir()) == []


FRAME = pd.DataFrame({"age": [1, 1, 2, None], "sex": list("fmfm"), "ill": list("aaba"), "one": 1})
BAD = [
    (("ag",), {}, ColumnNotFoundError, "quasi_identifiers: no column 'ag'"),
    (("age", "age"), {}, InputError, "sensitive: column 'age' is a quasi-identifier too"),
    (("age", "one"), {}, InputError, "sensitive: column 'one': expected at least two different values, got 1 in all"),
    (("age", "ill"), {"distance": "ordered"}, InputError, "distance: column 'ill': expected numbers"),
    (("age", "ill"), {"l": 3}, InputError, "l: expected at most 2, the different values"),
    ((["age", "sex"], "ill"), {"l": 2}, InputError, "l: expected at most 1, the rows of the largest class; got 2"),
    (("age", "ill"), {"missing": "error"}, InputError, r"column 'age': missing values, the first in row 3 \(from 0\)"),
    (
        ("age", "ill"),
        {"memory_limit": "1MiB"},
        InputError,
        "memory_limit: expected at least [0-9,]+ MiB for this table",
    ),
    (("age", "ill"), {"memory_limit": "much"}, InputError, "memory_limit: expected a size such as '2GiB'"),
    (("age", "ill"), {"temp": "no/such"}, OutputError, "temp: no/such is no folder that can be written to"),
    (("age", "ill"), {"population": 3}, InputError, "population: expected a pandas"),
    (("age", "ill"), {"population": "no.parquet"}, TableReadError, "no.parquet: no such file"),
    (("age", "ill"), {"population": FRAME.drop(columns="age")}, InputError, "population: no column 'age' in the popul"),
    (
        ("age", "ill"),
        {"population": FRAME[1:]},
        InputError,
        r"population: it lacks 1 .* row 1 \(from 0\): of equal ones",
    ),
]


@pytest.mark.parametrize(("columns", "options", "kind", "message"), BAD)
def test_bad_input_is_refused(tmp_path, small, columns, options, kind, message):
    FRAME.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "temp").mkdir()
    with pytest.raises(kind, match=message):
        configured(
            gpupif.risk,
            tmp_path / "t.parquet",
            *columns,
            **{"memory_limit": PLENTY, "temp": tmp_path / "temp", **options},
        )
    assert list((tmp_path / "temp").iterdir()) == []


def test_tables_in_memory_stay_there():
    with gpupif.config(memory_limit="1MiB"):
        assert gpupif.models.k_anonymity(FRAME, "ill") == 1


def test_full_disks_are_refused(census, monkeypatch):
    monkeypatch.setattr(budget, "free_disk", lambda place: 10)
    with (
        pytest.raises(OutputError, match=r"temporary files of 400 rows will need about .*, 0.0 KiB are free"),
        gpupif.config(memory_limit=PLENTY),
    ):
        gpupif.models.k_anonymity(census, "age")


def test_nearly_unique_quasi_identifiers_are_warned_of(tmp_path, small):
    pd.DataFrame({"id": np.arange(60), "ill": [0, 1] * 30}).to_parquet(tmp_path / "t.parquet")
    with (
        pytest.warns(gpupif.errors.NearlyUniqueWarning, match="quasi_identifiers: column 'id'") as seen,
        gpupif.config(memory_limit=PLENTY),
    ):
        assert gpupif.risk(tmp_path / "t.parquet", "id", "ill").k == 1
    assert len(seen) == 1


def test_the_command_takes_files(run, tmp_path, census, small):
    arguments = ("risk", str(census), "--quasi-identifiers", "age,sex", "--sensitive", "region", "--json")
    found = json.loads(run(*arguments, "--memory-limit", PLENTY, "--temp", str(tmp_path)).out)
    expected = json.loads(run(*arguments).out)
    assert {**found, "seconds": 0} == {**expected, "seconds": 0}
    ended = run(*arguments, "--memory-limit", "1MiB")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith("gpupif: error: --memory-limit: expected at least")
