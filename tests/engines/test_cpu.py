"""Parts of the CPU engine and its surroundings: threads, keys, compilation, two runs at once, the benchmark."""

from __future__ import annotations

import json
import math
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpupif
from gpupif.datasets import census
from gpupif.engines import cohort_scores
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.errors import InputError
from gpupif.kernels import formulas, groups, statistics, whole_sums
from gpupif.kernels.hashing import mix_word
from gpupif.kernels.log_units import LOG_BITS
from gpupif.measures import MEASURES
from gpupif.rows.keys import KeyLayout
from gpupif.rows.partition import Rows, partition_rows, split
from gpupif.rows.threads import Workers, default_threads
from gpupif.utils.information import column_weight
from tests.helpers import naive
from tests.helpers.checkout import ROOT


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
        together = list(pool.map(lambda table: gpupif.score(table).array("cig"), tables * 3))
    for one, alone in zip(together, expected * 3, strict=True):
        np.testing.assert_array_equal(one, alone)


def test_of_several_errors_the_first_task_s_is_raised():
    def fail(number):
        time.sleep(0.02 if number == 0 else 0)
        raise ValueError(str(number))

    with Workers(4) as workers, pytest.raises(ValueError, match=r"^0$"):
        workers.run(fail, [(number,) for number in range(4)])


def group(keys, blocks, hashes, word, keep, room=None):
    """Of each block's rows the first of their group and the groups' sizes, all blocks in the same room."""
    keys, hashes = np.asarray(keys, np.uint64), np.asarray(hashes, np.uint64)
    room = room or groups.Room.of(max(stop - start for start, stop in pairwise(blocks)))
    sizes = np.empty(len(room.heads), np.uint32)
    nothing = np.empty(0, np.uint32)
    result = []
    for start, stop in pairwise(blocks):
        groups.group_rows(groups.block_of((keys, nothing, hashes), start, stop), word, keep, room)
        groups.sum_groups(nothing, stop - start, room.heads, sizes)
        result.append((room.heads[: stop - start].tolist(), sizes[: stop - start].tolist()))
    return result


def naive_groups(keys, blocks, word, keep):
    result = []
    for start, stop in pairwise(blocks):
        names = [
            tuple(int(k) & keep if w == word else int(k) for w, k in enumerate(row))
            for row in keys[start:stop].tolist()
        ]
        first, size = {}, Counter(names)
        heads = [first.setdefault(name, row) for row, name in enumerate(names)]
        result.append((heads, [size[name] if first[name] == row else 0 for row, name in enumerate(names)]))
    return result


@pytest.mark.parametrize("words", [1, 2, 3])
def test_groups_of_blocks_in_the_same_room(words):
    """Many groups with repeats, in blocks that find the room full of what earlier ones left."""
    random = np.random.default_rng(words)
    keys = random.integers(0, 60, (900, words)).astype(np.uint64)
    blocks = [0, 5, 400, 401, 410, 880, 900]
    hashes = np.empty(len(keys), np.uint64)
    groups.full_hashes(keys, np.full(words, ~np.uint64(0)), hashes)
    keep = ~np.uint64(3)
    assert group(keys, blocks, hashes, words - 1, keep) == naive_groups(keys, blocks, words - 1, int(keep))


@pytest.mark.parametrize("words", [1, 2])
def test_groups_that_need_many_rounds_and_a_larger_table(words):
    """A table of two slots to begin with: nearly all rows are left to later rounds."""
    random = np.random.default_rng(words)
    keys = random.integers(0, 40, (700, words)).astype(np.uint64)
    hashes = np.empty(len(keys), np.uint64)
    groups.full_hashes(keys, np.full(words, ~np.uint64(0)), hashes)
    small = groups.Room.of(700)._replace(table=np.empty(2, np.uint32))
    keep = ~np.uint64(0)
    assert group(keys, [0, 700], hashes, 0, keep, small) == naive_groups(keys, [0, 700], 0, int(keep))


def test_rows_with_equal_hashes_are_told_apart_by_their_keys():
    """Forged hashes, by which all rows agree: the masked word and every other word still decide."""
    random = np.random.default_rng(0)
    keys = random.integers(0, 3, (300, 3)).astype(np.uint64)
    word, keep = 1, ~np.uint64(1)
    forged = [(int(mix_word(k, word)) - int(mix_word(k & keep, word))) % 2**64 for k in keys[:, word]]
    assert group(keys, [0, 300], forged, word, keep) == naive_groups(keys, [0, 300], word, int(keep))


def test_more_groups_in_a_block_than_the_table_starts_with(monkeypatch):
    """70,000 different pairs, each row twice, in one block."""
    monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _: CpuEngine(threads=1, block_rows=10**9))
    half = np.arange(70_000)
    frame = pd.DataFrame({"a": np.tile(half // 300, 2), "b": np.tile(half % 300, 2), "c": np.repeat([0, 1], 70_000)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = gpupif.score(frame, ["cohort_size", "posterior"], columns=["c"], known=["a", "b"])
    assert (scores.cohort_size["c"] == 2).all()
    assert (scores.posterior["c"] == 0.5).all()


def test_weights_with_cohorts_too_large_to_be_counted_by_number():
    """Cohorts of 6,000 and 5,000 rows."""
    table = pd.DataFrame({"a": [0] * 6_000 + [1] * 5_000, "b": [0, 0, 1] * 2_000 + [0, 1] * 2_500})

    def entropy(*shares):
        return -sum(share * math.log2(share) for share in shares)

    ones = (2_000 + 2_500) / 11_000
    given_a = (6_000 * entropy(1 / 3, 2 / 3) + 5_000 * entropy(0.5, 0.5)) / 11_000
    assert gpupif.score(table, "wcig").weights["b"] == pytest.approx(given_a / entropy(ones, 1 - ones), rel=1e-12)


@pytest.mark.parametrize("cache", [1, 1 << 20])
def test_few_targets_at_a_time_give_the_same_bits(monkeypatch, cache):
    frame = census(5_000)
    whole = gpupif.score(frame, list(MEASURES))
    monkeypatch.setattr("gpupif.engines.cpu.scorer.CACHED_BYTES", cache)
    other = gpupif.score(frame, list(MEASURES))
    for measure in MEASURES:
        assert other.array(measure).tobytes() == whole.array(measure).tobytes()


@pytest.mark.parametrize("few", [1, 3, 16])
@pytest.mark.parametrize("shared", [1, 8, 1 << 14])
def test_cohorts_of_one_value_and_any_size(monkeypatch, few, shared):
    monkeypatch.setattr("gpupif.engines.cpu.scorer.FEW", few)
    monkeypatch.setattr("gpupif.engines.cpu.scorer.SHARED_SCORES", shared)
    times = [1, 2, 3, 4, 16, 17, 40]
    table = {"a": np.repeat(np.arange(7), times).tolist(), "b": np.repeat([0, 1, 1, 2, 0, 2, 1], times).tolist()}
    table = {name: [*values, 0] for name, values in table.items()} | {"c": [0] * 83 + [1]}
    scores = gpupif.score(pd.DataFrame(table), ["cig", "cohort_size", "posterior"])
    expected = naive.score(table)
    for measure in scores.measures:
        for name in table:
            np.testing.assert_allclose(scores[measure][name], expected[measure][name], rtol=1e-12, err_msg=measure)


def test_gains_below_zero_by_rounding_are_zero():
    assert statistics.finish_logs(statistics.DIVERGENCE, -1.0, 3, LOG_BITS) == 0.0
    frame = pd.DataFrame({"a": [0, 0, 1] * 7, "b": [0] * 21})
    given = {0: np.nextafter(2 / 3, 1), 1: np.nextafter(1 / 3, 0)}
    assert (gpupif.score(frame, "cig", priors={"a": given}).cig >= 0).all(axis=None)


def test_scores_can_be_pickled():
    for table in (census(100), pl.DataFrame({"a": [1, 2, 2]}), pa.table({"a": [1, 2, 2]})):
        scores = gpupif.score(table)
        again = pickle.loads(pickle.dumps(scores))
        np.testing.assert_array_equal(again.array("cig"), scores.array("cig"))
        assert type(again.csf) is type(table)


CACHE = "from gpupif.kernels import jit; print(jit.CACHE_FOLDER)"


def cache_folder(**environment):
    cleared = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    command = [sys.executable, "-P", "-c", CACHE]
    done = subprocess.run(command, env={**cleared, **environment}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_cache_folder_that_others_can_write_to_is_not_used(tmp_path):
    """Numba runs the code that it finds there."""
    good = cache_folder(XDG_CACHE_HOME=str(tmp_path / "c"), TMPDIR=str(tmp_path))
    assert good.startswith(str(tmp_path / "c"))
    assert Path(good).stat().st_mode & 0o077 == 0
    Path(good).chmod(0o777)
    fallback = cache_folder(XDG_CACHE_HOME=str(tmp_path / "c"), TMPDIR=str(tmp_path))
    assert fallback.startswith(str(tmp_path / f"gpupif-{os.getuid()}"))
    Path(fallback).parent.chmod(0o777)
    assert cache_folder(XDG_CACHE_HOME=str(tmp_path / "c"), TMPDIR=str(tmp_path)) == ""


def test_what_other_versions_compiled_is_removed_after_long(tmp_path):
    parent = tmp_path / "gpupif"
    for name, days in (("old", 100), ("recent", 1)):
        (parent / name).mkdir(parents=True)
        (parent / name / "code").touch()
        os.utime(parent / name, (time.time() - days * 86_400,) * 2)
    parent.chmod(0o700)
    found = Path(cache_folder(XDG_CACHE_HOME=str(tmp_path)))
    assert {path.name for path in parent.iterdir()} == {"recent", found.name}
    assert (parent / "recent" / "code").exists()


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


def test_the_package_works_in_the_folder_of_its_checkout():
    """Where the README leaves its reader after `pip install .`: the folder gpupif there has no kernels inside."""
    code = "import gpupif; print(gpupif.score(gpupif.datasets.pif_example()).pif(100))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(3.3371022654516564)


def test_cheap_to_import_until_something_is_scored():
    modules = "gpupif, gpupif.cli.main, gpupif.datasets"
    code = f"import sys, {modules}; print([m for m in ('numpy', 'numba') if m in sys.modules])"
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
        "1000",
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


def scored(frame, *measures, **settings):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.scoring.score.choose_engine", lambda _: CpuEngine(**settings))
        return gpupif.score(frame, list(measures or MEASURES))


@pytest.mark.parametrize("cache", [1, 1 << 24])
def test_blocks_that_are_cut_again(monkeypatch, cache):
    """A frequent value in each column: blocks too large for two columns, cut by further ones."""
    cut = []
    score_targets = cohort_scores.score_targets

    def spy(run, blocks, *arguments):
        cut.append(len(blocks.children))
        return score_targets(run, blocks, *arguments)

    monkeypatch.setattr(cohort_scores, "score_targets", spy)
    monkeypatch.setattr("gpupif.engines.cpu.scorer.CACHED_BYTES", cache)
    random = np.random.default_rng(0)
    table = pd.DataFrame({name: random.integers(0, 2, 200) * np.arange(200) for name in "abcdef"})
    scores = scored(table, threads=1, block_rows=2)
    assert max(cut) > 0
    columns = {name: table[name].tolist() for name in table}
    for name in table:
        known = [other for other in table if other != name]
        assert scores.weights[name] == pytest.approx(naive.column_weight(columns, name, known), abs=1e-12)
    whole = scored(table, block_rows=10**9)
    for measure in MEASURES:
        assert scores.array(measure).tobytes() == whole.array(measure).tobytes()


def test_columns_of_a_single_value_in_blocks_that_are_cut_again():
    assert [len(half) for half in split([0, 1, 2], [0.0, 0.0, 0.0])] == [2, 1]
    table = pd.DataFrame({"a": range(60), "b": [1] * 60, "c": [2] * 60, "d": [3] * 60})
    scores = scored(table, threads=1, block_rows=1)
    assert (scores.cohort_size[["b", "c", "d"]] == 1).all(axis=None)
    few = gpupif.score(table, list(MEASURES), columns=["b", "c", "d"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.scoring.score.choose_engine", lambda _: CpuEngine(block_rows=1))
        again = gpupif.score(table, list(MEASURES), columns=["b", "c", "d"])
    for measure in MEASURES:
        assert again.array(measure).tobytes() == few.array(measure).tobytes()


@pytest.mark.parametrize("rows", [65_535, 65_536, 65_537])
def test_as_many_blocks_as_numbers_of_16_bits(rows):
    keys = np.arange(rows, dtype=np.uint64).reshape(-1, 1)
    with Workers(2) as workers:
        blocks = partition_rows(Rows(keys), np.array([~np.uint64(0)]), 1, workers)
    assert blocks.offsets[[0, -1]].tolist() == [0, rows]
    assert (np.diff(blocks.offsets) >= 0).all()
    assert np.array_equal(np.sort(blocks.order), np.arange(rows))


def whole(number):
    high, low = whole_sums.wide_of_digits(*whole_sums.digits_of_float(number))
    return high, np.uint64(low)


def test_rounding_does_not_lead_out_of_the_range_of_a_measure():
    assert formulas.surprise(np.nextafter(1.0, 2), 0.0) == 1.0
    assert statistics.absent_mass(1, np.nextafter(1.0, 2), 3, 1.0) == 0.0
    above, below = whole(np.nextafter(1.0, 2)), whole(np.nextafter(1.0, 0))
    assert statistics.finish_terms(statistics.TOTAL_VARIATION, 0.0, 0, *above, 0.0, 1.0) == 1.0
    assert statistics.finish_terms(statistics.HELLINGER, 0.0, 0, *whole(np.nextafter(2.0, 3)), 0.0, 1.0) == 1.0
    assert statistics.finish_terms(statistics.RENYI_ZERO, 0.0, 0, *above, 0.0, 1.0) == 0.0
    assert statistics.finish_terms(statistics.RENYI, 2.0, 0, *below, 0.0, 1.0) == 0.0
    assert column_weight(np.nextafter(1.0, 2), 1.0) == 1.0
    assert column_weight(-1e-12, 1.0) == 0.0
    assert column_weight(5.0, 0.0) == 0.0


def test_keys_chosen_to_share_one_hash():
    """Rows of two words whose hashes are forged alike are told apart after few rounds, not one group a round."""
    keys = np.stack([np.arange(3_000), np.arange(3_000)[::-1]], axis=1).astype(np.uint64)
    word, keep = 0, ~np.uint64(0)
    assert group(keys, [0, 3_000], np.zeros(3_000), word, keep) == naive_groups(keys, [0, 3_000], word, int(keep))


def test_one_measure_does_not_keep_the_others():
    scores = gpupif.score(census(100), list(MEASURES))
    bases = [base for measure in MEASURES if (base := scores.array(measure).base) is not None]
    # Those that are the same for all columns have memory of one column, each its own.
    assert [base.shape for base in bases] == [(100,)] * 3
    assert len({id(base) for base in bases}) == 3
