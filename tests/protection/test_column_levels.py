"""Columns at each level of their hierarchies, as codes."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupif.encoding.encode import encode_column
from gpupif.errors import ColumnTypeError, InputError
from gpupif.hierarchies.hierarchy import Hierarchy
from gpupif.hierarchies.open import open_hierarchy
from gpupif.protection.column_levels import ColumnLevels
from tests.helpers.naive_hierarchies import level_groups

YEARS = open_hierarchy("x", {"dates": ["year", "decade", "century"]})
FIVES = open_hierarchy("x", {"widths": [5]})
DESCRIPTIONS = [
    {"widths": [2, 4, 100]},
    {"common": [3, 1, 7], "keep": [3, 1]},
    {str(n): [n // 3, "*"] for n in range(12)},
    {str(n): [n // 3, n // 6, "all"] for n in range(12)},
]


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 11)), min_size=1, max_size=40),
    st.sampled_from(DESCRIPTIONS),
    st.booleans(),
)
def test_coded_levels_are_those_of_the_hierarchy(values, description, as_pandas):
    array = pd.Series(values, dtype="Int64") if as_pandas else pa.chunked_array([pa.array(values, pa.int64())])
    column = encode_column("x", array)
    hierarchy = open_hierarchy("x", description)
    coded = ColumnLevels.from_hierarchy(column, hierarchy)
    # The top is the lowest level at which the cells of the table are one group.
    sizes = [len(set(level_groups(hierarchy, values, level))) for level in range(hierarchy.height + 1)]
    assert (coded.name, coded.height, len(coded.levels)) == ("x", sizes.index(1), sizes.index(1) + 1)
    for level in range(coded.height + 1):
        wanted = level_groups(hierarchy, values, level)
        at = coded.levels[level]
        labels = [*at.labels.to_pylist(), None]
        assert [labels[at.codes[code]] for code in column.codes] == wanted
        assert dict(zip(labels, at.counts.tolist(), strict=False)) == Counter(wanted)
        assert at.cardinality == len(set(wanted))
        if level:
            # By name, so that they are the same whatever the order of the rows.
            assert labels[:-1] == sorted(labels[:-1])
    for low, high in combinations_with_replacement(range(coded.height + 1), 2):
        up = coded.upwards(low, high)
        assert len(up) == coded.levels[low].cardinality
        np.testing.assert_array_equal(up[coded.levels[low].codes], coded.levels[high].codes)


def test_a_column_of_missing_values_has_one_level():
    coded = ColumnLevels.from_hierarchy(
        encode_column("x", pd.Series([None, None])), open_hierarchy("x", {"widths": [5]})
    )
    assert [level.counts.tolist() for level in coded.levels] == [[2]]
    assert [level.labels.to_pylist() for level in coded.levels] == [[]]


def test_no_level_is_above_one_group():
    column = encode_column("x", pd.Series([1, 2, 7]))
    assert ColumnLevels.from_hierarchy(column, open_hierarchy("x", {"widths": [5, 10, 20]})).height == 2
    assert ColumnLevels.from_hierarchy(column, FIVES).height == 2
    # Missing values are a group of their own below the top of the hierarchy.
    column = encode_column("x", pd.Series([1, 2, None]))
    assert ColumnLevels.from_hierarchy(column, open_hierarchy("x", {"widths": [5, 10, 20]})).height == 4
    assert ColumnLevels.from_hierarchy(encode_column("x", pd.Series([3, 3])), FIVES).height == 0
    codes = encode_column("x", pd.Series(["12", "13"]))
    assert ColumnLevels.from_hierarchy(codes, open_hierarchy("x", {"digits": 2})).height == 1
    dates = encode_column("x", pd.Series(["2001-05-17", "2004-01-01"]))
    assert ColumnLevels.from_hierarchy(dates, YEARS).height == 2


class Parity(Hierarchy):
    """Even and odd numbers, then the rest of a division by three: no hierarchy."""

    height = 3

    def find(self, values, level):
        return pa.array([str(value % (level + 1) if level < 3 else "*") for value in values.to_pylist()])

    def to_plan(self):
        raise NotImplementedError


def test_levels_of_any_object_are_checked():
    words = "column 'x': its levels do not nest: 2 and 4 are both '0' at level 1, but '2' and '1' at level 2"
    with pytest.raises(InputError, match=words):
        ColumnLevels.from_hierarchy(encode_column("x", pd.Series([2, 3, 4])), Parity())
    assert ColumnLevels.from_hierarchy(encode_column("x", pd.Series([0, 6, 1])), Parity()).height == 3


def test_values_without_a_place_in_the_hierarchy_are_refused():
    column = encode_column("town", pd.Series(["a", "b"]))
    for names in ("x", "*"):
        with pytest.raises(InputError, match="column 'town': 'b' has no place"):
            ColumnLevels.from_hierarchy(column, open_hierarchy("other", {"a": names}))


def test_a_column_with_values_of_several_types_is_refused():
    with pytest.raises(ColumnTypeError, match=r"column 'x': expected plain values .* got values of several types"):
        ColumnLevels.from_hierarchy(
            encode_column("x", pd.Series([1, "a"], dtype=object)), open_hierarchy("x", {"a": "*"})
        )
