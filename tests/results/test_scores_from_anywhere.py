"""`Scores` are the same class, and say the same, wherever they lie: in memory, in files, opened again, on Dask."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import cycle, product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpupif
from gpupif import AnyKnown
from gpupif.measures import as_risk, find_measure
from gpupif.results.in_memory import MemoryBacking
from tests.helpers.covering import covering
from tests.helpers.pieces import assert_same_summaries, in_pieces, write_parts

# On Dask "auto" takes a GPU however small the table.
pytestmark = pytest.mark.usefixtures("on_cpu")

TABLE = gpupif.datasets.census(40, columns=4, seed=3).sample(90, replace=True, random_state=4).reset_index(drop=True)
TABLE = TABLE.assign(people=np.arange(90) % 4 / 2 + 0.5)
TABLE.loc[TABLE.index % 9 == 2, "age"] = None
COLUMNS = ["region", "age", "sex"]
MEASURES = ["cig", "csf", "wcig", "cohort_size", "class_size", "unique"]
BOTH = {"neighbour": ["age", "sex"], "anyone": AnyKnown(1, among=["age", "sex", "region", "marital_status"])}
ASKED = {
    "one": {},
    "any two": {"known": 2},
    "both": {"attackers": BOTH},
    "weights": {"weights": "people"},
    "both, weights": {"attackers": BOTH, "weights": "people"},
    "wildcards": {"missing": "wildcard", "attackers": BOTH},
}
# What takes several attackers, subsets and weights at once, in a folder and on Dask, is for every change; the others
# are slow tests.
QUICK = "both, weights"
PLACES = [
    "files",
    *(pytest.param(place, marks=pytest.mark.slow) for place in ("one file", "csv", "opened")),
    pytest.param("dask", marks=pytest.mark.dask),
]
# The questions asked at each place: what takes attackers and weights at once has each of them. The last three places
# differ from a folder only in how tables are read or scores written.
ASKED_AT = {
    "files": ["one", "any two", QUICK, "wildcards"],
    "dask": ["one", "any two", QUICK, "wildcards"],
    "opened": ["any two", QUICK],
    "one file": ["wildcards"],
    "csv": ["both"],
}
# Of scores that were opened again, whose table is not at hand.
CONTEXT = ["value", "posterior", "prior", "known"]


def in_memory(**asked):
    return gpupif.score(TABLE, MEASURES, COLUMNS, **asked)


@cache
def expected_of(name):
    """Return the scores in memory for a question, by its name."""
    return in_memory(**ASKED[name])


def elsewhere(place, tmp_path, **asked):
    """The same scores in another place."""
    if place == "dask":
        import dask.dataframe as dd

        with gpupif.config(device="cpu"):
            return gpupif.score(dd.from_pandas(TABLE, npartitions=3), MEASURES, COLUMNS, **asked).persist()
    source, output = tmp_path / "in", tmp_path / {"one file": "out.parquet"}.get(place, "out")
    if place == "csv":
        source = tmp_path / "in.csv"
        TABLE.to_csv(source, index=False)
    else:
        write_parts(source, TABLE, [20, 70])
    # Rows with wildcards, and any few columns, have to be in one place.
    with in_pieces(30, 200 if "missing" in asked else 40), gpupif.config(memory_limit="8GiB"):
        scores = gpupif.score_files(source, output, MEASURES, COLUMNS, **asked)
    return gpupif.open_scores(output) if place == "opened" else scores


def as_pandas(frame):
    """A frame of any place, of pandas, without its index."""
    for convert in ("compute", "to_pandas"):
        frame = getattr(frame, convert)() if hasattr(frame, convert) else frame
    return frame.reset_index(drop=True)


def marks_of(name, place="files"):
    """Return the marks of a question. All its tests run in one process, which scores once for all of them."""
    marks = [pytest.mark.xdist_group(f"scores of {name}"), *([pytest.mark.dask] if place == "dask" else [])]
    return marks if name == QUICK and place in ("files", "dask") else [*marks, pytest.mark.slow]


each_question = pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in ASKED])


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((name, place), id=f"{name}-{place}", marks=marks_of(name, place))
        for place, names in ASKED_AT.items()
        for name in names
    ],
)
def found(request, tmp_path_factory):
    name, place = request.param
    found = elsewhere(place, tmp_path_factory.mktemp("scores"), **ASKED[name])
    found.name, found.place = name, place
    return found


@pytest.fixture(scope="module")
def expected(found):
    return expected_of(found.name)


def views(scores):
    """Scores, and all that one can look at them as."""
    each = {"": scores, "worst": scores.worst, "mean": scores.mean}
    for name in scores.attackers:
        one = scores.against(name)
        each |= {name: one, f"{name} worst": one.worst, f"{name} mean": one.mean}
    return each


def pairs(found, expected):
    mine, theirs = views(found), views(expected)
    assert mine.keys() == theirs.keys()
    return [(mine[name], theirs[name]) for name in mine]


def test_scores_from_anywhere_have_the_same_facts(found, expected):
    for mine, theirs in pairs(found, expected):
        assert type(mine) is type(theirs) is gpupif.Scores
        assert (mine.rows, mine.columns, mine.measures) == (theirs.rows, theirs.columns, theirs.measures)
        assert (mine.attackers, mine.known, mine.weights) == (theirs.attackers, theirs.known, theirs.weights)
        assert mine.distinct_rows == theirs.distinct_rows
        assert dict(mine.priors) == dict(theirs.priors)
        assert repr(mine.subsets) == repr(theirs.subsets)


@pytest.mark.slow
def test_scores_from_anywhere_have_the_same_frames(found, expected):
    for mine, theirs in pairs(found, expected):
        for measure in MEASURES:
            frame = as_pandas(mine[measure])
            pd.testing.assert_frame_equal(frame, theirs[measure], check_exact=True)
            assert np.array_equal(mine.array(measure), theirs.array(measure), equal_nan=True)
        assert list(as_pandas(mine.frame()).columns) == list(theirs.frame().columns)
        pd.testing.assert_frame_equal(as_pandas(mine.frame()), theirs.frame(), check_exact=True)
        assert mine.to_arrow().to_pandas().equals(theirs.to_arrow().to_pandas())


def test_scores_from_anywhere_have_the_same_sums_and_percentiles(found, expected):
    for mine, theirs in pairs(found, expected):
        pd.testing.assert_series_equal(mine.fig(), theirs.fig(), check_exact=True)
        assert mine.pif([0, 12.5, 50, 100]) == theirs.pif([0, 12.5, 50, 100])
        assert mine.pif(99) == theirs.pif(99)
        gains = as_pandas(mine.rig())
        gains = gains["rig"] if isinstance(gains, pd.DataFrame) else gains
        pd.testing.assert_series_equal(gains, theirs.rig(), check_exact=True)


@pytest.mark.slow
def test_numbers_of_columns_are_the_same_to_the_last_bit(found, expected):
    """Any partition of the rows gives the same bits; unknown scores do not count."""
    for measure, (mine, theirs) in zip(cycle(["wcig", "csf"]), pairs(found, expected), strict=False):
        one, other = mine.percentiles(measure, [0, 12.5, 95]), theirs.percentiles(measure, [0, 12.5, 95])
        pd.testing.assert_frame_equal(one, other, check_exact=True)
        pd.testing.assert_series_equal(mine.means(measure), theirs.means(measure), check_exact=True)
        pd.testing.assert_series_equal(mine.count_above(measure, 0.5), theirs.count_above(measure, 0.5))
        scores = theirs.array(measure).astype(float)
        np.testing.assert_allclose(other.T, np.nanpercentile(scores, [0, 12.5, 95], axis=1), rtol=1e-12)
        np.testing.assert_allclose(theirs.means(measure), np.nanmean(scores, axis=1), rtol=1e-12)
        assert theirs.count_above(measure, 0.5).tolist() == (scores > 0.5).sum(axis=1).tolist()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("by", [None, "cohort_size"])
def test_scores_from_anywhere_have_the_same_riskiest_cells(found, expected, by):
    for mine, theirs in pairs(found, expected):
        wanted = theirs.top(7, by).drop(columns="index")
        top = mine.top(7, by).drop(columns="index", errors="ignore")
        if found.place == "opened":
            # A cohort's size is then that of the worst score, not of the worst attacker.
            wanted = wanted.drop(columns=[*CONTEXT, "cohort_size"], errors="ignore")
            top = top.drop(columns="cohort_size")
        pd.testing.assert_frame_equal(top, wanted)


def test_scores_from_anywhere_have_the_same_summaries(found, expected):
    for mine, theirs in pairs(found, expected):
        one, other = mine.summary(), theirs.summary()
        assert type(one) is type(other)
        if isinstance(other, gpupif.results.AttackerSummary):
            pd.testing.assert_frame_equal(one.attackers, other.attackers, check_exact=True)
            pd.testing.assert_frame_equal(one.columns, other.columns, check_exact=True)
            continue
        # What was opened again has the riskiest cells of the run, but those over several attackers without context.
        shared = one.top.columns.intersection(other.top.columns).drop("index", errors="ignore")
        if found.place == "opened" and "value" not in shared:
            # Without values each cell is shown, also cells with equal values.
            shared = shared.drop("cohort_size")
            other = replace(other, top=theirs.top(len(one.top)))
        else:
            assert {"value", "prior"} <= set(shared)
        assert_same_summaries(*(replace(summary, top=summary.top[shared]) for summary in (one, other)))


@each_question
def test_each_of_several_attackers_counts_once_in_worst_and_mean(name):
    """Each attacker counts with its own worst and mean."""
    expected = expected_of(name)
    if not expected.attackers:
        return
    each = [expected.against(name) for name in expected.attackers]
    for measure in MEASURES:
        kind = find_measure(measure)
        of_each = np.stack([one.worst.array(measure) for one in each])
        risks = np.stack([as_risk(kind, array.astype(float)) for array in of_each])
        worst = np.take_along_axis(of_each, np.argmax(risks, axis=0)[None], 0)[0]
        np.testing.assert_array_equal(expected.worst.array(measure), worst)
        np.testing.assert_array_equal(expected.array(measure), worst)
        mean = sum(one.mean.array(measure).astype(float) for one in each) / len(each)
        np.testing.assert_allclose(expected.mean.array(measure), mean, rtol=1e-15)
    worst_weights = np.array([list(one.weights.values()) for one in each]).min(axis=0)
    assert list(expected.weights.values()) == worst_weights.tolist()


@pytest.fixture
def aggregated_alike():
    """A table in which who knows one column alone may know of nobody, or of no value, and what to ask of it."""
    frame = TABLE.assign(people=TABLE.index % 4 / 2)
    frame["age"] = frame["age"].fillna(40)
    # By age alone nothing is known of the region of some, by sex of nobody's.
    frame.loc[frame["age"] % 5 == 0, "region"] = None
    frame.loc[frame["age"] % 5 == 1, "people"] = 0
    return frame, {"measures": list(gpupif.measures.MEASURES), "columns": ["region"], "missing": "wildcard"}


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "weights"), [("float64", None), ("float32", "people")])
@pytest.mark.parametrize("place", ["memory", "files", pytest.param("dask", marks=pytest.mark.dask)])
def test_attackers_by_name_and_any_known_are_combined_alike(place, dtype, weights, aggregated_alike, tmp_path):
    """An attacker with an unknown score, or whose cohort has no people, hides no score of another attacker."""
    frame, asked = aggregated_alike
    asked |= {"dtype": dtype, "weights": weights}

    def score(name, **attackers):
        if place == "files":
            write_parts(tmp_path / name, frame, [20, 70])
            with gpupif.config(memory_limit="8GiB"):
                return gpupif.score_files(tmp_path / name, tmp_path / f"{name} scores", **asked, **attackers)
        if place == "dask":
            import dask.dataframe as dd

            return gpupif.score(dd.from_pandas(frame, npartitions=2), **asked, **attackers).persist()
        return gpupif.score(frame, **asked, **attackers)

    named = score("named", attackers={"age": ["age"], "sex": ["sex"]})
    some = score("some", known=AnyKnown(1, among=["age", "sex"]))
    unknown = nobody = 0
    for measure in named.measures:
        each = [named.against(name).array(measure).astype(float) for name in ("age", "sex")]
        unknown += int((np.isnan(each[0]) != np.isnan(each[1])).sum())
        if find_measure(measure).is_size and find_measure(measure).low_is_risky:
            nobody += int(((each[0] == 0) != (each[1] == 0)).sum())
        for mine, theirs in ((named.worst, some.worst), (named.mean, some.mean)):
            np.testing.assert_allclose(mine.array(measure), theirs.array(measure), rtol=1e-6, err_msg=measure)
        assert named.mean.array(measure).dtype == dtype
    assert unknown
    assert bool(nobody) == (weights is not None)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("by", ["cig", "cohort_size", "class_size", "entropy", "prior"])
def test_the_worst_attacker_is_the_same_by_name_and_of_any_known(by, aggregated_alike):
    frame, asked = aggregated_alike
    asked |= {"weights": "people"}
    named = gpupif.score(frame, attackers={"age": ["age"], "sex": ["sex"]}, **asked).top(90, by)
    some = gpupif.score(frame, known=AnyKnown(1, among=["age", "sex"]), **asked).top(90, by)
    assert named.row.tolist() == some.row.tolist()
    assert named.attacker.tolist() == some.known.tolist()
    # Of equal ones the first.
    assert set(named.attacker) == ({"age"} if by == "prior" else {"age", "sex"})


@each_question
def test_the_worst_attacker_of_a_cell_is_named(name):
    expected = expected_of(name)
    if not expected.attackers:
        return
    for cell in expected.top(12).itertuples():
        own = {name: expected.against(name).cig.loc[cell.row, cell.column] for name in expected.attackers}
        assert own[cell.attacker] == cell.cig == max(own.values())


ATTACKERS = {
    "one": {"known": ["sex"]},
    "any": {"known": AnyKnown(1, among=["sex", "age"])},
    "several": {"attackers": {"one": ["sex"], "none": []}},
    "both": {"attackers": BOTH},
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("name", "place", "measures"),
    covering(2, [*ATTACKERS], ["memory", "files", "opened"], [("cig", "csf"), ("csf", "entropy")]),
)
def test_a_column_without_any_value_has_valid_json(name, place, measures, tmp_path):
    attackers, measures = ATTACKERS[name], list(measures)
    frame = TABLE.assign(region=pd.Series([None] * len(TABLE), dtype=object))
    if place == "memory":
        scores = gpupif.score(frame, measures, ["region"], missing="wildcard", **attackers)
    else:
        write_parts(tmp_path / "in", frame, [20, 70])
        with gpupif.config(memory_limit="8GiB"):
            asked = {"columns": ["region"], "missing": "wildcard", **attackers}
            scores = gpupif.score_files(tmp_path / "in", tmp_path / "out", measures, **asked)
        scores = gpupif.open_scores(tmp_path / "out") if place == "opened" else scores
    document = json.loads(scores.summary().to_json(), parse_constant=pytest.fail)
    each = list(document["attackers"].values()) if "attackers" in document else [document]
    assert len(each) == max(1, len(scores.attackers))
    for one in each:
        assert (one["columns"][0]["column"], one["columns"][0]["csf_max"]) == ("region", None)
    if "attackers" in document:
        assert [one["csf_mean"] for one in each] == [None, None]
        score = 0.0 if "cig" in measures else None
        first, by = scores.attackers[0], measures[0]
        worst = {"worst_by_mean": first, f"{by}_mean": score, "worst_by_max": first, f"{by}_max": score}
        assert document["worst"] == [{"column": "region", **worst}]
    assert "region" in str(scores.summary())


@pytest.mark.slow
def test_a_lazy_frame_reads_its_scores_when_asked(tmp_path):
    frame = elsewhere("files", tmp_path).cig
    expected = in_memory().cig
    assert frame.columns == COLUMNS
    pd.testing.assert_frame_equal(frame.head(30), expected.head(30))
    assert frame.head(2).shape == (2, 3)
    assert frame.head(1_000).shape == (90, 3)
    assert frame.to_polars().equals(pl.DataFrame(expected))
    assert pl.DataFrame(frame).equals(pl.DataFrame(expected))
    assert sum(batch.num_rows for batch in frame.to_batches()) == 90
    assert pa.table(frame).equals(frame.to_arrow())
    assert "region double" in repr(frame)
    assert gpupif.models.k_anonymity(frame, ["age", "sex"]) == gpupif.models.k_anonymity(expected, ["age", "sex"])


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("asked", [ASKED["one"], ASKED["both"]], ids=["one", "both"])
def test_scores_from_anywhere_can_be_written_again(place, asked, tmp_path):
    found = elsewhere(place, tmp_path, **asked)
    output = tmp_path / ("again" if place == "dask" else "again.parquet")
    found.to_parquet(output)
    again, expected = gpupif.open_scores(output), in_memory(**asked)
    assert again.weights == expected.weights
    assert again.pif(50) == expected.pif(50)
    pd.testing.assert_frame_equal(again.cig.to_pandas(), expected.cig, check_exact=True)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
@pytest.mark.parametrize("asked", ["both, weights", "any two"])
def test_summaries_are_found_while_scores_are_written(asked, ending, tmp_path, monkeypatch):
    monkeypatch.setattr("gpupif.io.write.GROUP_ROWS", 32)
    monkeypatch.setattr("gpupif.results.query_search.MOST_ROWS", 1 << 5)
    asked = ASKED[asked]
    expected, scores = in_memory(**asked), in_memory(**asked)
    looked, find = [], MemoryBacking.find
    monkeypatch.setattr(MemoryBacking, "find", lambda self, query: looked.append(query) or find(self, query))
    scores.write(tmp_path / f"scores.{ending}")
    before = len(looked)
    scores.summary()
    views = [(name, aggregate) for name, aggregates in enumerate(scores._summarised()) for aggregate in aggregates]
    # Feather begins with what it says of its scores, and CSV says nothing.
    assert before == (len(views) if ending == "feather" else 0)
    assert len(looked) == (0 if ending == "parquet" else len(views))
    several = [scores, *([gpupif.open_scores(tmp_path / "scores.parquet")] if ending == "parquet" else [])]
    for found, (name, aggregate) in product(several, views):
        mine, theirs = (one._summarised()[name][aggregate].summary() for one in (found, expected))
        assert_same_summaries(mine, theirs)


def test_the_input_is_kept_beside_scores_of_files(tmp_path):
    write_parts(tmp_path / "in", TABLE, [50])
    with gpupif.config(memory_limit="8GiB"):
        found = gpupif.score_files(tmp_path / "in", tmp_path / "out", "cig", COLUMNS, keep_input=True)
        alone = gpupif.score_files(tmp_path / "in", tmp_path / "alone", "cig", COLUMNS)
    expected = gpupif.score(TABLE, "cig", COLUMNS).to_arrow(keep_input=True)
    assert found.to_arrow(keep_input=True).to_pandas().equals(expected.to_pandas())
    assert found.to_arrow().column_names == [f"cig_{name}" for name in COLUMNS]
    found.to_parquet(tmp_path / "again.parquet", keep_input=True)
    assert gpupif.open_scores(tmp_path / "again.parquet").to_arrow(keep_input=True).num_columns == 8
    with pytest.raises(gpupif.InputError, match=r"keep_input: .* holds scores alone"):
        alone.to_arrow(keep_input=True)


@pytest.mark.dask
def test_the_input_is_kept_beside_scores_of_dask(tmp_path):
    import dask.dataframe as dd

    scores = gpupif.score(dd.from_pandas(TABLE, npartitions=2), "cig", COLUMNS)
    expected = gpupif.score(TABLE, "cig", COLUMNS).to_arrow(keep_input=True).to_pandas()
    pd.testing.assert_frame_equal(scores.to_arrow(keep_input=True).to_pandas(), expected, check_dtype=False)
    scores.to_parquet(tmp_path / "out", keep_input=True, write_index=False)
    assert list(pd.read_parquet(tmp_path / "out")) == list(expected)


@pytest.mark.slow
def test_top_cells_are_refused_if_the_table_changed_since(tmp_path):
    found = elsewhere("files", tmp_path)
    found.top(3)
    (tmp_path / "in" / "001.parquet").write_bytes((tmp_path / "in" / "000.parquet").read_bytes())
    with pytest.raises(gpupif.errors.TableReadError, match="the file changed"):
        found.top(3)


def test_options_of_dask_are_refused_without_dask(tmp_path):
    with pytest.raises(gpupif.InputError, match="write_index: goes with scores of a Dask frame only"):
        in_memory().to_parquet(tmp_path / "scores.parquet", write_index=False)
    assert not list(tmp_path.iterdir())
