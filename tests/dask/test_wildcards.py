"""Missing values as wildcards in a Dask frame, without a cluster: the same bits as in memory."""

from __future__ import annotations

import pytest

import gpupif
from gpupif.pipeline import one_partition_memory
from tests.helpers.dask_frames import assert_same, cut

pytestmark = [pytest.mark.dask, pytest.mark.usefixtures("dask_in_one_thread")]


def test_attackers_with_and_without_missing_values_score_as_in_memory(monkeypatch):
    frame = gpupif.datasets.census(400, columns=4)
    frame["region"] = frame["region"].where(frame.index % 3 > 0)
    arguments = {"missing": "wildcard", "columns": ["age", "sex"]}
    arguments["attackers"] = {"a": ["region"], "b": ["marital_status"]}
    scores = gpupif.score(cut(frame, [100, 250]), **arguments)
    expected = gpupif.score(frame, **arguments)
    for name in ("a", "b"):
        assert_same(scores.against(name), expected.against(name))
    # An attacker who knows no column with missing values is scored in partitions, however large the table is.
    monkeypatch.setattr(one_partition_memory, "MOST_BYTES", 1000)
    assert_same(scores.against("b"), expected.against("b"))
    with pytest.raises(gpupif.InputError, match=r"missing: 'wildcard'.*[\d,]+ rows.* take about .* at most"):
        scores.against("a").cig.compute()
