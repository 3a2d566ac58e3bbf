"""Parts of the CPU engine and its surroundings: threads, keys, compilation, two runs at once, the benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import gpupif
from gpupif.datasets import census
from gpupif.engines.workers import Workers, default_threads
from gpupif.errors import InputError
from gpupif.keys import KeyLayout

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_workers_keep_the_order_of_the_tasks(threads):
    seen = set()

    def square(number):
        seen.add(threading.get_ident())
        return number * number

    with Workers(threads) as workers:
        assert workers.run(square, [(number,) for number in range(100)]) == [n * n for n in range(100)]
        assert workers.run(square, []) == []
    assert 1 <= len(seen) <= threads


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_a_task_is_raised_and_ends_the_rest(threads):
    done = []

    def fail_at_3(number):
        if number == 3:
            raise IndexError("third")
        done.append(number)

    with Workers(threads) as workers:
        with pytest.raises(IndexError, match="third"):
            workers.run(fail_at_3, [(number,) for number in range(10_000)])
        assert workers.run(abs, [(-1,)]) == [1]
    if threads == 1:
        assert done == [0, 1, 2]


def test_ranges_cover_all_rows_once():
    with Workers(3) as workers:
        for size in (0, 1, 16_384, 100_000, 10_000_001):
            ranges = workers.ranges(size)
            assert [row for edges in ranges for row in edges][1:-1:2] == [start for start, _ in ranges[1:]]
            assert (ranges[0][0], ranges[-1][1]) == (0, size)


@pytest.mark.parametrize("text", ["0", "two", "-1", ""])
def test_number_of_threads_that_is_none(monkeypatch, text):
    monkeypatch.setenv("GPUPIF_NUM_THREADS", text)
    with pytest.raises(InputError, match="GPUPIF_NUM_THREADS"):
        default_threads()
    monkeypatch.setenv("GPUPIF_NUM_THREADS", "7")
    assert default_threads() == 7


@pytest.mark.parametrize(
    "cardinalities", [[1], [2] * 64, [2] * 65, [2**40, 2**24, 2], [2**64], [1, 1, 3], [300, 1, 2**33, 7, 2**31]]
)
def test_fields_hold_every_code_and_do_not_overlap(cardinalities):
    layout = KeyLayout.of(cardinalities)
    used = [0] * layout.words
    for column, cardinality in enumerate(cardinalities):
        word, shift, mask = layout.fields[column]
        assert mask >= cardinality - 1
        assert mask << shift < 2**64
        assert used[word] & (mask << shift) == 0
        used[word] |= mask << shift
        assert layout.masks([column]).tolist()[word] == mask << shift
    everything = layout.masks(range(len(cardinalities)))
    assert everything.tolist() == used


def test_two_runs_at_the_same_time():
    """As in the threads of a Dask worker."""
    tables = [census(20_000, seed=seed) for seed in range(4)]
    expected = [gpupif.score(table).array("cig") for table in tables]
    with ThreadPoolExecutor(4) as pool:
        for together in pool.map(lambda table: gpupif.score(table).array("cig"), tables * 3):
            assert any(np.array_equal(together, alone) for alone in expected)
        results = list(pool.map(lambda table: gpupif.score(table).array("cig"), tables))
    for together, alone in zip(results, expected, strict=True):
        np.testing.assert_array_equal(together, alone)


def test_the_first_run_on_a_machine_says_that_it_compiles_and_the_next_does_not(tmp_path):
    table = tmp_path / "table.csv"
    census(100, columns=3).to_csv(table, index=False)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    code = f"import gpupif; gpupif.score({str(table)!r})"
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        said.append(done.stderr.count("compiling"))
    assert said == [1, 0]


def test_cheap_to_import_until_something_is_scored():
    code = "import sys, gpupif, gpupif.cli, gpupif.datasets; print([m for m in ('numpy', 'numba') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_benchmark_runs_and_its_contenders_agree(tmp_path):
    command = [
        sys.executable,
        "-m",
        "benchmarks.engines",
        "--rows",
        "1000",
        "--small",
        "200",
        "--no-plot",
        "--seconds",
        "0",
    ]
    command += ["--contenders", "gpupif", "pandas", "polars", "duckdb", "packed", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "engines.json").read_text())
    assert {result["contender"] for result in document["results"]} == {"gpupif", "pandas", "polars", "duckdb", "packed"}
    assert 0 < document["largest_difference"] < 1e-9
    assert "times faster" in done.stdout
