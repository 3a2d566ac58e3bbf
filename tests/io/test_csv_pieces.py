"""Large CSV files, read piece by piece, hold what Arrow finds in them, whatever stands in them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.errors import TableReadError
from gpupif.io import csv_files, csv_pieces
from gpupif.io.common import every_column
from gpupif.io.read import read_table


@pytest.fixture(autouse=True, scope="module")
def small_pieces():
    """Pieces of a few lines, and few texts at a time."""
    with pytest.MonkeyPatch.context() as patched:
        for name, size in {"SMALLEST": 0, "PIECE": 64, "LONGEST": 40, "FEW_TEXTS": 2, "MOST_TEXTS": 4}.items():
            patched.setattr(csv_pieces, name, size)
        yield


def read_both(path, pick=every_column):
    """The table, or the message of the error: as files are read, and as Arrow alone reads them; and in how many pieces."""
    pieces = []

    def read_pieces(*arguments):
        pieces.append(csv_pieces.read_pieces(*arguments))
        return pieces[-1]

    found = []
    for read in (read_pieces, lambda *_: None):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(csv_files, "read_pieces", read)
            try:
                found.append(read_table(path, pick))
            except TableReadError as error:
                found.append(str(error))
    (table,) = pieces or [None]
    return *found, 0 if table is None else table.column(0).num_chunks


def assert_same(one, other):
    if isinstance(other, str):
        assert one == other
        return
    assert one.schema == other.schema
    for left, right in zip(one.columns, other.columns, strict=True):
        assert left.combine_chunks().equals(right.combine_chunks())


# What a field may be, as it stands in the file: most of it plain, some of it odd.
PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='",\r\n'), max_size=20)
NUMBERS = st.integers(-5, 500).map(str)
QUOTED = st.text(st.sampled_from('abcdefgh é,"\n\r '), max_size=24).map(lambda text: '"' + text.replace('"', '""') + '"')
ODD = st.sampled_from(['a"b', '"a"b', '"', "a\rb", '""""', '""', "\t", "x" * 50, "\0", '"\r\n"'])
FIELDS = st.one_of(NUMBERS, NUMBERS, PLAIN, QUOTED)


@settings(max_examples=300, deadline=None)
@given(
    lines=st.lists(st.lists(FIELDS, min_size=3, max_size=3).map(",".join), max_size=40),
    odd=st.lists(st.tuples(st.integers(0, 60), st.one_of(ODD.map(lambda field: f"1,{field},2"), PLAIN, st.just(""))), max_size=1),
    end=st.sampled_from(["\n", "\n", "\r\n", "\r"]),
    last=st.sampled_from(["", "\n", "\n\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
    columns=st.sampled_from([None, ["b"], ["c", "a"]]),
)
@example(lines=['1,"x","y ""z"""'] * 9, odd=[], end="\n", last="\n", mark="", columns=None)
def test_any_file(tmp_path_factory, lines, odd, end, last, mark, columns):
    for place, line in odd:
        lines.insert(place, line)
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes((mark + end.join(['a,"b",c', *lines]) + last).encode())
    found, expected, _ = read_both(path, lambda _: columns)
    assert_same(found, expected)
