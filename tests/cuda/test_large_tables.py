"""The CUDA engine on tables that only compiled code is fast enough for, against the CPU engine and in any order."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from tests.helpers.gpu.without_gpu import need_host

need_host()


import gpupif
from gpupif.datasets import census
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.engines.cuda.engine import CudaEngine
from gpupif.measures import MEASURES
from tests.helpers.gpu.host.library import HostLibrary, Shuffled, backward, forward
from tests.helpers.gpu.on_device import HASHED, assert_same_scores

pytestmark = pytest.mark.gpu

# Orders next to 1, where differences between processors weigh most.
ALL = [*MEASURES, *(f"renyi_{order}" for order in (0, 0.5, 0.985, 0.999, 1.001, 1.009, 1.011, 2, 40, "inf"))]
ORDERS = {"forward": forward, "backward": backward, "shuffled": Shuffled(3)}


def score(engine, frame, measures, **arguments):
    with patch("gpupif.scoring.score.choose_engine", return_value=engine), gpupif.config(progress=False):
        return gpupif.score(frame, measures, **arguments)


def on_host(order=forward, **settings):
    """Return an engine of two devices, each with a single stream."""
    return CudaEngine([0, 1], [HostLibrary(device, order=order) for device in (0, 1)], **settings)


def assert_same_bits(found, expected):
    for measure in expected.measures:
        assert found.array(measure).tobytes() == expected.array(measure).tobytes(), measure


def wide_values(rows, columns=4, values=70_000):
    """Return columns with more values than 16 bits have, each at least once."""
    random = np.random.default_rng(5)
    whole = [random.permutation(np.arange(rows) % values) for _ in range(columns)]
    return pd.DataFrame({f"c{number}": column // (1 + 999 * (number % 2)) for number, column in enumerate(whole)})


TABLES = {
    "60 columns": lambda: census(20_000, columns=60),
    "wide values": lambda: wide_values(100_000),
    "long cohorts": lambda: census(60_000)[["age", "occupation", "sex"]],
}


@pytest.mark.parametrize("grouping", ["rotation", "cudf"])
@pytest.mark.parametrize("name", TABLES)
def test_every_order_of_threads_gives_the_scores_of_the_cpu(name, grouping):
    frame = TABLES[name]()
    measures = (
        [measure for measure in ALL if measure in HASHED or measure not in MEASURES] if grouping == "cudf" else ALL
    )
    arguments = {"columns": list(frame.columns)[:6], "accuracies": {frame.columns[0]: 0.9}}
    expected = score(CpuEngine(), frame, measures, **arguments)
    scores = {
        each: score(on_host(order, grouping=grouping), frame, measures, **arguments) for each, order in ORDERS.items()
    }
    assert_same_scores(scores["forward"], expected)
    for each in ("backward", "shuffled"):
        assert_same_bits(scores[each], scores["forward"])


def test_a_large_table_gets_the_scores_of_the_cpu():
    """A table is scored as a whole and in blocks, in several orders of columns."""
    frame = census(250_000)
    measures = ["cig", "csf", "posterior", "entropy", "jensen_shannon", "cohort_size"]
    expected = score(CpuEngine(), frame, measures)
    whole = score(on_host(), frame, measures)
    assert_same_scores(whole, expected)
    assert_same_bits(score(on_host(Shuffled(4), share=0.2), frame, measures), whole)


@pytest.mark.parametrize("known", [1, 2])
def test_any_known_columns_of_many_values_are_scored_as_on_the_cpu(known):
    frame = wide_values(80_000, columns=3)
    measures = ["cig", "wcig", "cohort_size"]
    expected = score(CpuEngine(), frame, measures, known=known)
    forwards, shuffled = (score(on_host(order), frame, measures, known=known) for order in (forward, Shuffled(6)))
    for found, wanted in ((forwards, expected), (forwards.mean, expected.mean)):
        assert_same_scores(found, wanted)
    for found, wanted in ((shuffled, forwards), (shuffled.mean, forwards.mean)):
        assert_same_bits(found, wanted)


def test_weights_wildcards_and_a_population_are_scored_as_on_the_cpu():
    frame = census(30_000)
    random = np.random.default_rng(7)
    names = list(frame.columns)[:5]
    missing = frame[names].mask(random.random((len(frame), 5)) < 0.02)
    asked = {
        "weights": (frame.assign(w=random.integers(0, 4, len(frame)) / 4), {"weights": "w"}),
        "wildcards": (missing, {"missing": "wildcard", "columns": names[:2]}),
        "population": (frame, {"population": gpupif.Population(census(50_000), lacks="count")}),
    }
    for name, (table, arguments) in asked.items():
        expected = score(CpuEngine(), table, ["cig", "csf", "cohort_size", "wcig"], **arguments)
        for order in ORDERS.values():
            found = score(on_host(order), table, ["cig", "csf", "cohort_size", "wcig"], **arguments)
            assert_same_scores(found, expected)
        assert len(expected.measures) >= 4, name
