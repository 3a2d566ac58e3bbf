"""Rows and scores packed into few bits for other workers: they arrive unchanged, whatever they are."""

from __future__ import annotations

import numpy as np
import pytest

from gpupif.pipeline.packed_numbers import WordReader, WordWriter
from gpupif.pipeline.packed_scores import PackedScores, Room, SentScores, pack_scores, unpack_scored_column
from gpupif.pipeline.shuffle_messages import pack, rows_in, rows_to_messages, unpack
from gpupif.rows.keys import KeyLayout
from gpupif.rows.partition import Rows
from gpupif.rows.threads import Workers

pytestmark = pytest.mark.dask

TOP = 2**64 - 1


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([0], 4),
        ([7] * 1000, 4 + 16),
        ([TOP, 0, 1, TOP - 1], 4 + 4),
        ([TOP] * 63 + [0], 4 + 1),
        (range(100), 4 + 11),
        # The usual number apart: one bit for each number, and three bits for each of 2, 3 and 8.
        ([1] * 500 + [2, 3, 8] + [1] * 500, 4 + 16 + 1),
        # Bits that no number has are left out of the second form too.
        ([number << 50 for number in range(64)], 4 + 6),
        # Numbers that fill their words, and one number more.
        ([*range(64)] * 32, 4 + 6 * 32),
        ([*range(64)] * 32 + [5], 4 + 6 * 32 + 1),
    ],
)
def test_numbers_are_packed_in_as_few_bits_as_needed(numbers, words):
    given = np.array(numbers, np.uint64)
    writer = WordWriter()
    writer.put_numbers(given)
    assert writer.size == words
    found = np.empty_like(given)
    WordReader(np.concatenate(writer.arrays)).take_numbers(found)
    assert found.tolist() == given.tolist()


@pytest.mark.parametrize("cardinalities", [[3, 1, 50], [2**20, 2**40, 7, 2**30]], ids=["one word", "several words"])
@pytest.mark.parametrize("counted", [True, False])
def test_rows_arrive_in_their_order(cardinalities, counted):
    source, layout, parts = np.random.default_rng(0), KeyLayout.from_cardinalities(cardinalities), 5
    with Workers(1) as workers:
        keys = layout.pack([source.integers(0, size, 1000) for size in cardinalities], workers)
        counts = source.geometric(0.9, 1000)
        # No row is sent to partition 1.
        to = np.where(source.random(1000) < 0.4, 0, source.integers(2, parts, 1000))
        sent = pack(rows_to_messages(Rows(keys, counts) if counted else Rows(keys), to, parts, 3, 4, workers))
    assert [message.to for message in unpack(sent, 9)] == [9] * 4
    assert sent["_partitions"].tolist() == [0, 2, 3, 4]
    for part in sent["_partitions"]:
        arrived = rows_in(unpack(sent[sent["_partitions"] == part], part), layout.words)
        assert arrived.keys.tolist() == keys[to == part].tolist()
        assert arrived.counts.tolist() == (counts[to == part].tolist() if counted else [])


def scores_of(kind, value, source):
    """Return scores of rows with these values: a few patterns of bits, of type float64 or int64."""
    rows = len(value)
    usual = np.where(source.random(rows) < 0.8, value / 7, source.integers(0, 9, rows) / 3)
    return {
        "usual": usual,
        "all the same": np.full(rows, np.nan),
        "all different": source.random(rows),
        "odd bits": source.choice([0.0, -0.0, np.inf, -np.inf, np.nan], rows),
        "whole": source.integers(-3, 3, rows) * 2**60,
    }[kind]


@pytest.mark.parametrize("rows", [1, 64, 1000])
@pytest.mark.parametrize(
    ("groups", "kinds"),
    [
        ([["a"]], {"a": "usual"}),
        ([["a"], ["b"]], {"a": "usual", "b": "all the same"}),
        ([["a", "b"], ["c", "d"]], {"a": "odd bits", "b": "usual", "c": "whole", "d": "all different"}),
    ],
)
def test_scores_arrive_as_they_are(rows, groups, kinds):
    """Scores from several partitions arrive bit by bit, for columns with few values, one, or more than rows."""
    source, layout = np.random.default_rng(rows), KeyLayout.from_cardinalities([5, 1, 2**30])
    sent, scored_columns = SentScores(groups), [2, 0, 1]
    parts, expected = [], []
    for _ in range(2):
        codes = [source.integers(0, size, rows) for size in (5, 1, 2**30)]
        with Workers(1) as workers:
            keys = layout.pack(codes, workers)
        # The engine returns these rows after other rows.
        values = {
            name: np.array(
                [scores_of(kind, np.append(0, codes[scored_column]), source) for scored_column in scored_columns]
            )
            for name, kind in kinds.items()
        }
        words = pack_scores(sent, layout, keys, scored_columns, values, 1, Room(rows, len(kinds)))
        parts.append(PackedScores(sent, layout, keys, scored_columns, np.concatenate(words)))
        assert parts[-1].complete
        expected.append({name: scores[:, 1:] for name, scores in values.items()})
    for place, scored_column in enumerate(scored_columns):
        for group, found in zip(groups, unpack_scored_column(sent, parts, scored_column), strict=True):
            for name, items in zip(group, found.items, strict=True):
                scores = np.concatenate([one[name][place] for one in expected])
                assert items[found.places].tolist() == scores.view(np.uint64).tolist()


def test_usual_scores_take_a_bit_each():
    """Nearly all of 64,000 rows have the usual scores of their value."""
    source, layout = np.random.default_rng(1), KeyLayout.from_cardinalities([100])
    value = source.integers(0, 100, 64_000)
    scores = value / 3
    scores[::1000] = 17
    with Workers(1) as workers:
        keys = layout.pack([value], workers)
    words = pack_scores(SentScores([["a"]]), layout, keys, [0], {"a": scores[None]}, 0, Room(len(value), 1))
    assert sum(one.size for one in words) < 64_000 / 64 + 100 + 20


@pytest.mark.parametrize("lost", [0, 1, 5])
def test_incomplete_packed_scores_are_recognised(lost):
    layout = KeyLayout.from_cardinalities([4])
    with Workers(1) as workers:
        keys = layout.pack([np.arange(4)], workers)
    sent = SentScores([["a"]])
    words = np.concatenate(pack_scores(sent, layout, keys, [0], {"a": np.arange(4.0)[None]}, 0, Room(4, 1)))
    assert PackedScores(sent, layout, keys, [0], words[lost:]).complete is (lost == 0)
    assert PackedScores(sent, layout, keys[1:], [0], words).complete is False
