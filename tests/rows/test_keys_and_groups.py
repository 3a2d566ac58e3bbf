"""Keys of rows, and rows grouped by them."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.kernels import equal_rows, hashing
from gpupif.rows.keys import KeyLayout
from tests.helpers.kernels import from_python

find_equal_rows, sum_equal_rows = map(from_python, (equal_rows.find_equal_rows, equal_rows.sum_equal_rows))
mix_word = from_python(hashing.mix_word)


@pytest.mark.parametrize(
    "cardinalities", [[1], [2] * 64, [2] * 65, [2**40, 2**24, 2], [2**64], [1, 1, 3], [300, 1, 2**33, 7, 2**31]]
)
def test_fields_hold_every_code_and_do_not_overlap(cardinalities):
    layout = KeyLayout.from_cardinalities(cardinalities)
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


def group(keys, blocks, hashes, word, keep, memory=None):
    """Return the first row of each set of equal rows, and their sizes, by block, with one working memory for all
    blocks.
    """
    keys, hashes = np.asarray(keys, np.uint64), np.asarray(hashes, np.uint64)
    memory = memory or equal_rows.EqualRowsMemory.for_rows(max(stop - start for start, stop in pairwise(blocks)))
    sizes = np.empty(len(memory.heads), np.uint32)
    nothing = np.empty(0, np.uint32)
    result = []
    for start, stop in pairwise(blocks):
        find_equal_rows(keys[start:stop], hashes[start:stop], word, keep, memory)
        sum_equal_rows(nothing, stop - start, memory.heads, sizes)
        result.append((memory.heads[: stop - start].tolist(), sizes[: stop - start].tolist()))
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


@pytest.mark.slow
@pytest.mark.parametrize("words", [1, 2, 3])
def test_groups_of_blocks_in_reused_room_are_right(words):
    """Blocks with many repeated groups find the memory full of leftovers of earlier blocks."""
    random = np.random.default_rng(words)
    keys = random.integers(0, 60, (900, words)).astype(np.uint64)
    blocks = [0, 5, 400, 401, 410, 880, 900]
    hashes = np.empty(len(keys), np.uint64)
    equal_rows.full_hashes(keys, np.full(words, ~np.uint64(0)), hashes)
    keep = ~np.uint64(3)
    assert group(keys, blocks, hashes, words - 1, keep) == naive_groups(keys, blocks, words - 1, int(keep))


@pytest.mark.parametrize("words", [1, 2])
def test_groups_that_need_many_rounds_are_right(words):
    """All keys or hashes share the first slot, so nearly all rows are left to later rounds."""
    random = np.random.default_rng(words)
    keys = random.integers(0, 40, (250, words)).astype(np.uint64)
    _, number = np.unique(keys, axis=0, return_inverse=True)
    # What `spread_word` makes so small a number of that its upper bits, which say the slot, are 0.
    forged = number.ravel().astype(np.uint64) * np.uint64(pow(0x9E3779B97F4A7C15, -1, 2**64))
    keys = forged[:, None] if words == 1 else keys
    keep = ~np.uint64(0)
    assert group(keys, [0, 250], forged, 0, keep) == naive_groups(keys, [0, 250], 0, int(keep))


@pytest.mark.slow
def test_rows_with_equal_hashes_are_told_apart_by_their_keys():
    """Forged hashes, by which all rows agree: the masked word and every other word still decide."""
    random = np.random.default_rng(0)
    keys = random.integers(0, 3, (120, 3)).astype(np.uint64)
    word, keep = 1, ~np.uint64(1)
    forged = [(int(mix_word(k, word)) - int(mix_word(k & keep, word))) % 2**64 for k in keys[:, word]]
    assert group(keys, [0, 120], forged, word, keep) == naive_groups(keys, [0, 120], word, int(keep))


def test_a_block_may_have_more_groups_than_its_table_starts_with(monkeypatch):
    """One block has 70,000 different pairs, each twice."""
    monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _: CpuEngine(threads=1, block_rows=10**9))
    half = np.arange(70_000)
    frame = pd.DataFrame({"a": np.tile(half // 300, 2), "b": np.tile(half % 300, 2), "c": np.repeat([0, 1], 70_000)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = gpupif.score(frame, ["cohort_size", "posterior"], columns=["c"], known=["a", "b"])
    assert (scores.cohort_size["c"] == 2).all()
    assert (scores.posterior["c"] == 0.5).all()


def test_keys_that_share_a_hash_are_told_apart_in_few_rounds():
    """Rows of two words have the same forged hash; a round tells apart more than one group."""
    keys = np.stack([np.arange(3_000), np.arange(3_000)[::-1]], axis=1).astype(np.uint64)
    word, keep = 0, ~np.uint64(0)
    assert group(keys, [0, 3_000], np.zeros(3_000), word, keep) == naive_groups(keys, [0, 3_000], word, int(keep))
