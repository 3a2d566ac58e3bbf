"""Missing values as wildcards in a Dask frame: the bits of the table in memory. Without a cluster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.dask import one_part
from gpupif.dask import routing as routes
from tests.helpers.dask_frames import assert_same, cut
from tests.helpers.scores import ALL
from tests.helpers.tables import SHARED_FIXTURES, frame_of
from tests.helpers.wildcards import questions

pytestmark = [pytest.mark.dask, pytest.mark.usefixtures("dask_in_one_thread")]


@pytest.mark.slow
@given(question=questions(), data=st.data())
@settings(SHARED_FIXTURES, max_examples=20)
def test_any_partitioning_gives_the_bits_of_the_table_in_memory(question, data):
    table, arguments = question
    frame = frame_of(table)
    edges = data.draw(st.lists(st.integers(0, len(frame)), max_size=3))
    arguments |= {"missing": "wildcard", "dtype": data.draw(st.sampled_from(["float64", "float32"]))}
    if data.draw(st.booleans()):
        frame = frame.assign(w=np.arange(len(frame)) % 3 + 0.5)
        arguments["weights"] = "w"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routes, "HEAVY", data.draw(st.sampled_from([0.0, 0.5])))
        scores = gpupif.score(cut(frame, edges), ALL, **arguments)
        expected = gpupif.score(frame, ALL, **arguments)
        assert_same(scores, expected)
        assert dict(scores.weights) == expected.weights
        assert dict(scores.priors) == dict(expected.priors)


def test_attackers(monkeypatch):
    """One who meets missing values, and one who meets none."""
    frame = gpupif.datasets.census(400, columns=4)
    frame["region"] = frame["region"].where(frame.index % 3 > 0)
    arguments = {"missing": "wildcard", "columns": ["age", "sex"]}
    arguments["attackers"] = {"a": ["region"], "b": ["marital_status"]}
    scores = gpupif.score(cut(frame, [100, 250]), **arguments)
    expected = gpupif.score(frame, **arguments)
    for name in ("a", "b"):
        assert_same(scores.against(name), expected.against(name))
    # Who meets no missing values is scored in parts, however large the table is.
    monkeypatch.setattr(one_part, "MOST_BYTES", 1000)
    assert_same(scores.against("b"), expected.against("b"))
    with pytest.raises(gpupif.InputError, match=r"missing: 'wildcard'.*[\d,]+ rows.* take about .* at most"):
        scores.against("a").cig.compute()
