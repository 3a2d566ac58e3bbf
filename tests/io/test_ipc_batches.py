"""Batches that a run keeps on disk: what is read is what was written, columns that repeat as such."""

from __future__ import annotations

import resource
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpupif.errors import OutputError
from gpupif.io.ipc_batches import BatchReader, BatchWriter, arrow_type, write_batch
from gpupif.utils.repeated import Repeated, find_repeated, kept_small

ODD = [0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1.5]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(ODD), min_size=1, max_size=60), st.lists(st.integers(0, 60), max_size=3))
def test_a_repeating_column_comes_back_from_any_batches(tmp_path_factory, values, edges):
    column = np.array(values)
    kept = kept_small(np.tile(column, 8))[: len(column)]
    cuts = [0, *sorted(min(edge, len(column)) for edge in edges), len(column)]
    file = tmp_path_factory.mktemp("batches") / "x.arrow"
    with BatchWriter(file, {"a": arrow_type(kept), "b": arrow_type(column)}, codec=None) as writer:
        for start, stop in pairwise(cuts):
            writer.write([kept[start:stop], column[start:stop]])
    with BatchReader(file) as reader:
        assert len(reader) == len(cuts) - 1
        for number, (start, stop) in enumerate(pairwise(cuts)):
            some, plain = reader.repeated(number)
            assert isinstance(some, Repeated)
            assert np.asarray(some).tobytes() == plain.tobytes() == column[start:stop].tobytes()


@pytest.mark.parametrize(("different", "kind"), [(3, np.uint16), (1 << 16, np.uint16), ((1 << 16) + 1, np.uint32)])
def test_numbers_take_as_few_bytes_as_they_need(different, kind):
    column = np.concatenate([np.arange(different, dtype=float), np.zeros(4 * different)])
    kept = kept_small(column)
    assert kept.numbers.dtype == kind
    assert np.asarray(kept).tobytes() == column.tobytes()
    assert np.asarray(kept, np.float32).tobytes() == column.astype(np.float32).tobytes()
    assert len(kept[::3]) == len(column[::3])


def test_a_column_that_does_not_repeat_stays_as_it_is():
    column = np.arange(10.0)
    assert kept_small(column) is column
    assert find_repeated(column[:0]) is None


def test_too_many_open_files_are_not_reported_as_damage(tmp_path):
    file = tmp_path / "x.arrow"
    write_batch(file, {"a": np.arange(3)})
    most, limit = resource.getrlimit(resource.RLIMIT_NOFILE), resource.setrlimit
    for use in (BatchReader, lambda file: BatchWriter(file, {"a": "int64"})):
        try:
            # Leave room only for standard input, output and errors.
            limit(resource.RLIMIT_NOFILE, (3, most[1]))
            with pytest.raises(OutputError, match=r"x\.arrow: could not be .*Too many open files.*ulimit -n"):
                use(file)
        finally:
            limit(resource.RLIMIT_NOFILE, most)
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(OutputError, match=r"x\.arrow: .* is damaged or gone"):
        BatchReader(file)
