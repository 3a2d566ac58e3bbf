"""Rows hashed by the frame library and rows sorted, without a GPU: the same bits, whatever the groups' order."""

from __future__ import annotations

import numpy as np
import pytest

import gpupif
from gpupif.datasets import census
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.engines.cuda import grouping as cuda_grouping
from gpupif.engines.cuda.engine import CudaEngine
from gpupif.engines.cuda.grouping import GROUPINGS
from gpupif.engines.cuda.rows import DeviceRows
from gpupif.rows.keys import KeyLayout
from tests.helpers.gpu.on_device import HASHED, assert_same_scores
from tests.helpers.gpu.without_gpu import DeviceLibrary, need_stand_in

need_stand_in()

pytestmark = pytest.mark.gpu


# All kinds of Rényi divergence.
ASKED = [*HASHED, *(f"renyi_{order}" for order in (0, 0.5, 0.999, 2, "inf"))]


class Counting(DeviceLibrary):
    """Counts how often rows were hashed, by a group-by and a join each time, and how often anything was sorted."""

    hashed = sorts = 0

    def group_rows(self, words, counts):
        self.hashed += 1
        return super().group_rows(words, counts)

    def stable_order(self, keys):
        self.sorts += 1
        return super().stable_order(keys)


def score(engine, frame, measures=ASKED, **arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.scoring.score.choose_engine", lambda _: engine)
        return gpupif.score(frame, list(measures), **arguments)


def people():
    """Return a table whose keys are two words, with a column far from the others."""
    return census(60, columns=14).assign(wide=[f"value {row % 37}" for row in range(60)])


def gaps():
    frame = census(20)[["age", "sex", "tenure"]]
    return frame.assign(age=frame["age"].where(np.arange(20) % 3 > 0))


def coarse():
    """Priors so small that logarithms are in coarse units."""
    frame = people()
    values = list(frame["region"].unique())
    return {"region": dict.fromkeys(values, 1 / len(values)) | {values[0]: 1e-300, values[1]: 2 / len(values)}}


# What is asked, and of which table.
WAYS = {
    "all columns": (people, {}),
    "some columns known": (people, {"columns": ["age", "wide"], "known": ["age", "sex", "region"]}),
    "a scored column that is not known": (people, {"columns": ["age"], "known": ["sex", "wide"]}),
    "all but the scored column": (
        lambda: people()[["age", "sex", "wide"]],
        {"columns": ["age"], "known": ["sex", "wide"]},
    ),
    "nothing known": (people, {"columns": ["age", "sex"], "known": []}),
    "any known": (
        people,
        {"columns": ["age", "wide"], "known": gpupif.AnyKnown(2, among=["age", "sex", "tenure", "wide"])},
    ),
    "priors and accuracies": (people, {"priors": coarse(), "accuracies": {"age": 0.8, "region": 0.9, "wide": 0.0}}),
    "weights": (lambda: people().assign(w=np.arange(60) % 4 + 0.5), {"weights": "w", "columns": ["age", "wide"]}),
    "weights of 0": (lambda: people().assign(w=np.arange(60) % 3 / 2), {"weights": "w", "columns": ["age", "wide"]}),
    "a population": (
        lambda: census(60),
        {"population": gpupif.Population(census(90), lacks="count"), "columns": ["age", "sex"]},
    ),
    "wildcards": (gaps, {"missing": "wildcard"}),
    "wildcards that are not known": (gaps, {"missing": "wildcard", "known": ["sex", "tenure"]}),
}


@pytest.mark.parametrize("share", [0, 0.8])
@pytest.mark.parametrize(("table", "arguments"), WAYS.values(), ids=WAYS)
def test_hashing_and_sorting_give_the_same_bits(monkeypatch, table, arguments, share):
    # So that pairs of numbers and codes are grouped as rows are, too.
    monkeypatch.setattr(cuda_grouping, "SLOTS", 1)
    monkeypatch.setattr(cuda_grouping, "SLOTS_PER_ROW", 1)
    libraries = {name: [Counting()] for name in GROUPINGS}
    hashed, again, sorted_ = (
        score(CudaEngine(libraries=libraries[name], share=share, grouping=name), table(), **arguments)
        for name in ("cudf", "cudf", "rotation")
    )
    assert libraries["cudf"][0].hashed > 0
    assert libraries["rotation"][0].hashed == 0
    expected = score(CpuEngine(), table(), **arguments)
    for measure in ASKED:
        assert hashed.array(measure).tobytes() == sorted_.array(measure).tobytes(), measure
        assert hashed.array(measure).tobytes() == again.array(measure).tobytes(), measure
    assert_same_scores(hashed, expected)
    assert hashed.weights == sorted_.weights == again.weights
    assert hashed.distinct_rows == sorted_.distinct_rows == expected.distinct_rows


@pytest.mark.parametrize(
    "measures", [["cig", "csf"], ["wcig", "total_variation", "renyi_2", "distinct_values"]], ids=len
)
@pytest.mark.parametrize("weights", [{}, {"weights": "w"}])
def test_ten_columns_take_eleven_groupings_and_no_sort(measures, weights):
    library, frame = Counting(), census(200, columns=10).assign(w=np.arange(200) % 4 + 0.5)
    columns = list(frame.columns[:10])
    hashed = score(
        CudaEngine(libraries=[library], grouping="cudf"), frame, measures, columns=columns, known=columns, **weights
    )
    assert (library.hashed, library.sorts) == (11, 0)
    assert_same_scores(hashed, score(CpuEngine(), frame, measures, columns=columns, known=columns, **weights))


@pytest.mark.parametrize("way", ["all columns", "all but the scored column", "any known", "wildcards"])
def test_rows_that_cudf_cannot_group_are_sorted(monkeypatch, way):
    """cuDF cannot count so many rows, nor give the values of a cohort in order, which some measures need."""
    table, arguments = WAYS[way]

    def sort(most, measures):
        monkeypatch.setattr(cuda_grouping, "MOST_ROWS", most)
        library = Counting()
        found = score(CudaEngine(libraries=[library], grouping="cudf"), table(), measures, **arguments)
        assert library.hashed == 0
        assert library.sorts > 0
        assert_same_scores(found, score(CpuEngine(), table(), measures, **arguments))

    most = cuda_grouping.MOST_ROWS
    sort(10, ["cig", "csf"])
    sort(most, ["cig", "emd"])
    sort(most, ["cig", "recursive_2"])


def pack(codes, layout):
    keys = np.zeros((layout.words, len(codes)), np.uint64)
    for column, field in layout.fields.items():
        keys[field.word] |= codes[:, column].astype(np.uint64) << np.uint64(field.shift)
    return keys


@pytest.mark.parametrize("name", GROUPINGS)
def test_distinct_rows_and_cohorts_are_those_of_plain_python(name):
    """One column has a single value, one fills a word of its own."""
    sizes = [3, 1, 4, 1 << 62]
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(0, min(size, 5), 80) for size in sizes], axis=1)
    codes[:, 3] *= (1 << 62) // 7
    counts, layout, library = rng.integers(1, 4, 80), KeyLayout.from_cardinalities(sizes), DeviceLibrary()
    assert layout.words == 2
    grouping, columns = GROUPINGS[name], [2, 0, 1]
    rows, number = grouping.collapse(DeviceRows(library, layout, pack(codes, layout), counts), columns)
    expected = {}
    for row, count in zip(map(tuple, codes[:, columns].tolist()), counts.tolist(), strict=True):
        expected[row] = expected.get(row, 0) + count
    values = np.stack([(rows.keys[f.word] >> np.uint64(f.shift)) & np.uint64(f.mask) for f in layout.fields.values()])
    by_column = dict(zip(layout.fields, values.astype(np.int64), strict=True))
    found = list(zip(*(by_column[column].tolist() for column in columns), strict=True))
    assert dict(zip(found, rows.counts.tolist(), strict=True)) == expected
    assert len(found) == len(expected) == rows.rows
    np.testing.assert_array_equal(np.array(found)[number], codes[:, columns])
    assert grouping.serves(rows, columns, columns, [2, 0])
    assert not grouping.serves(rows, [*columns, 3], columns, [2, 0])
    for scored_column, runs in grouping.cohorts(rows, columns, [2, 0]):
        assert sorted(runs.order.tolist()) == list(range(rows.rows))
        assert (runs.order.dtype, runs.run_of.dtype, runs.sizes.dtype) == (np.int32, np.int32, np.int64)
        seen = set()
        for run in range(len(runs.sizes)):
            places = runs.order[runs.run_of == run + 1]
            others = {
                tuple(by_column[column][place] for column in columns if column != scored_column) for place in places
            }
            assert len(others) == 1
            assert not others & seen
            seen |= others
            assert runs.sizes[run] == rows.counts[places].sum()
            if name == "rotation":
                assert places.tolist() == runs.order[runs.starts[run] : runs.starts[run + 1]].tolist()
                assert (np.diff(by_column[scored_column][places]) > 0).all()
        assert (runs.starts is None) == (name == "cudf")


def test_the_substitute_for_cudf_gives_groups_in_any_order():
    words = {0: np.arange(40, dtype=np.uint64) // 2, 3: np.zeros(40, np.uint64)}
    found = [DeviceLibrary().group_rows(words, np.arange(40)) for _ in range(2)]
    assert found[0].words[0].tolist() != found[1].words[0].tolist()
    for groups in found:
        assert groups.of_row.dtype == np.int32
        np.testing.assert_array_equal(groups.words[0][groups.of_row], words[0])
        np.testing.assert_array_equal(groups.words[3], 0)
        np.testing.assert_array_equal(groups.counts, 4 * groups.words[0].astype(np.int64) + 1)


@pytest.mark.parametrize("kind", ["pandas", "parquet", "csv"])
@pytest.mark.parametrize("arguments", [{}, {"attackers": {"a": ["age", "sex"], "b": []}}, {"known": 1}])
def test_tables_are_encoded_on_the_host_without_cudf(monkeypatch, tmp_path, kind, arguments):
    def refused(*_):
        raise AssertionError("frames of the device are asked for")

    frame = census(30)[["age", "sex", "tenure"]]
    table = frame if kind == "pandas" else tmp_path / f"t.{kind}"
    if kind != "pandas":
        {"parquet": frame.to_parquet, "csv": frame.to_csv}[kind](table, index=False)
    expected = score(CpuEngine(), table, **arguments)
    monkeypatch.setattr("gpupif.engines.cuda.engine.frame_library", refused)
    scores = score(CudaEngine(with_frames=False), table, **arguments)
    for name in arguments.get("attackers", [None]):
        found, wanted = (one if name is None else one.against(name) for one in (scores, expected))
        assert_same_scores(found, wanted)
