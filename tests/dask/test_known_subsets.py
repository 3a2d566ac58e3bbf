"""Attackers who know any few columns of a Dask frame, without a cluster: the same bits as in memory."""

from __future__ import annotations

import dask.dataframe as dd
import pandas as pd
import pytest

import gpupif
from gpupif.pipeline import one_partition_memory
from tests.helpers.dask_frames import assert_same, cut

# Dask 2026.8 uses what pandas 3.1 is going to drop.
pytestmark = [
    pytest.mark.dask,
    pytest.mark.usefixtures("dask_in_one_thread"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
]

FEW = ["cig", "wcig", "csf", "cohort_size"]


def assert_both_same(scores, expected):
    assert_same(scores, expected)
    assert_same(scores.mean, expected.mean)
    assert dict(scores.weights) == expected.weights
    assert dict(scores.mean.weights) == expected.mean.weights
    assert scores.subsets.sets == expected.subsets.sets


@pytest.fixture(scope="module")
def frame():
    """Return a frame with repeated rows, some of them in several partitions, and missing values."""
    frame = gpupif.datasets.census(60, columns=5).sample(300, replace=True, random_state=1).reset_index(drop=True)
    frame["region"] = frame["region"].where(frame.index % 7 > 0)
    return frame


@pytest.fixture(scope="module")
def expected(frame):
    return gpupif.score(frame, FEW, known=2)


def test_the_worst_and_the_mean_have_the_bits_of_memory(frame, expected, tmp_path):
    scores = gpupif.score(cut(frame, [90, 90, 200]), FEW, known=2)
    kept = scores.persist()
    assert_both_same(kept, expected)
    assert "any 2 columns known: 6 subsets of 2 columns for each column" in repr(scores)
    assert kept.mean.frame().columns.tolist() == expected.mean.to_arrow().column_names
    pd.testing.assert_series_equal(kept.mean.rig().compute(), expected.mean.rig(), check_names=False)
    assert kept.fig().to_dict() == expected.fig().to_dict()
    kept.to_parquet(tmp_path / "out", write_index=False)
    found = pd.read_parquet(tmp_path / "out")
    pd.testing.assert_frame_equal(found, expected.to_arrow().to_pandas(), check_exact=True)


def test_any_known_takes_no_more_memory_than_a_worker_has(frame, expected, monkeypatch):
    """Scored columns are combined one after the other if there is no room for more."""
    scores = gpupif.score(cut(frame, [150]), FEW, known=2)
    shares, real = [], one_partition_memory.share_memory
    monkeypatch.setattr(
        one_partition_memory, "share_memory", lambda *given, **more: shares.append(real(*given, **more)) or shares[-1]
    )
    pd.testing.assert_frame_equal(scores.cig.compute(), expected.cig, check_exact=True)
    # Room for the distinct rows of both partitions, with one scored column at a time.
    room = 680 << 10
    monkeypatch.setattr(one_partition_memory, "MOST_BYTES", room)
    pd.testing.assert_frame_equal(scores.mean.csf.compute(), expected.mean.csf, check_exact=True)
    assert [share.scored_columns for share in shares] == [5, 1]
    monkeypatch.setattr(one_partition_memory, "MOST_BYTES", room // 10)
    says = r"known: any 2 columns: .* one worker: [\d,]+ rows, .* take about .* at most [\d.]+ KiB"
    with pytest.raises(gpupif.InputError, match=says):
        scores.cig.compute()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"attackers": {"a": ["age"]}}, "attackers: expected attackers= or known="),
        ({"known": 3}, "known: expected at most 2, the number of other columns scored, got 3"),
        ({"known": gpupif.AnyKnown(1, among=["agee"])}, "among: no column 'agee'"),
    ],
)
def test_bad_arguments_are_refused_at_once(arguments, says):
    table = dd.from_pandas(gpupif.datasets.census(50, columns=3), npartitions=2)
    with pytest.raises(gpupif.InputError) as error:
        gpupif.score(table, **{"known": 1, **arguments})
    assert says in str(error.value)


def test_too_many_subsets_are_refused(monkeypatch):
    wide = gpupif.datasets.census(50, columns=40)
    with pytest.raises(gpupif.InputError, match=r"there are [\d,]+ subsets of 8 columns"):
        gpupif.score(cut(wide, [20]), known=8)
    # The number of rows, which limits the subsets, is known when Dask computes.
    scores = gpupif.score(cut(wide[["age", "sex", "region"]], [20]), known=1)
    monkeypatch.setattr("gpupif.attack.attackers.MOST_VISITS", 100)
    with pytest.raises(gpupif.InputError, match="too many to score on 50 rows"):
        scores.cig.compute()
