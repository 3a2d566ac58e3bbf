"""Local recoding: rows of small classes are recoded to coarser levels."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError

HIERARCHIES = {"age": {"widths": [10, 50]}, "pay": {"widths": [2]}}


def at_level(value, widths, level):
    """The name of the group of a number, or of a missing value, at a level; the top is above all widths."""
    if level == len(widths) + 1:
        return "*"
    if value is None:
        return None
    if not level:
        return str(value)
    width = widths[level - 1]
    return f"[{value // width * width}, {value // width * width + width})"


def recoded_slowly(rows, levels, k):
    """Recode rows node by node, each class counted by itself. rows: lists of an age and a pay."""
    found = [None] * len(rows)
    left = list(range(len(rows)))
    for node in range(len(levels["age"])):
        names = {
            row: (
                at_level(rows[row][0], [10, 50], levels["age"][node]),
                at_level(rows[row][1], [2], levels["pay"][node]),
            )
            for row in left
        }
        sizes = Counter(names.values())
        for row in left:
            found[row] = names[row]
        left = [row for row in left if sizes[names[row]] < k]
    return found, len(left)


@pytest.mark.parametrize("seed", range(6))
def test_each_row_is_recoded_at_the_first_node_with_a_large_class(seed):
    random = np.random.default_rng(seed)
    rows = [
        [None if random.random() < 0.1 else int(random.integers(60)), int(random.integers(6))]
        for _ in range(int(random.integers(1, 80)))
    ]
    levels = {"age": [0, 1, 2, 3], "pay": [0, 1, int(random.integers(3)), 1]}
    k = int(random.integers(1, 6))
    table = pd.DataFrame({"age": pd.array([row[0] for row in rows], "Int64"), "pay": [row[1] for row in rows]})
    done = gpupif.treat(table, gpupif.Plan([gpupif.treatments.RecodeRows(levels, k=k)], HIERARCHIES))
    expected, small = recoded_slowly(rows, levels, k)
    came = done.table[["age", "pay"]].astype(object)
    assert list(came.where(came.notna(), None).itertuples(index=False, name=None)) == expected
    found = done.record.to_dict()["treatments"][0]["found"]
    assert found["rows_of_failing_classes"] == small
    assert sum(found["rows_by_node"]) == len(rows) - small


def test_columns_at_level_0_throughout_keep_their_type():
    table = pd.DataFrame({"age": [1, 1, 2], "pay": [3, 3, 3]})
    done = gpupif.treat(
        table, gpupif.Plan([gpupif.treatments.RecodeRows({"age": [0, 1], "pay": [0, 0]}, k=2)], HIERARCHIES)
    )
    assert done.table["pay"].dtype == table["pay"].dtype
    assert done.table["age"].tolist() == ["1", "1", "[0, 10)"]


def test_a_column_without_values_stays_missing_below_its_top():
    table = pd.DataFrame({"age": [None, None], "pay": [1, 2]})
    plan = gpupif.Plan([gpupif.treatments.RecodeRows({"age": [0, 1], "pay": [0, 0]}, k=2)], HIERARCHIES)
    assert gpupif.treat(table, plan).table["age"].isna().all()
    plan = gpupif.Plan([gpupif.treatments.RecodeRows({"age": [0, 3], "pay": [0, 2]}, k=2)], HIERARCHIES)
    assert gpupif.treat(table, plan).table["age"].tolist() == ["*", "*"]


def test_the_plan_says_it(tmp_path):
    plan = gpupif.Plan([gpupif.treatments.RecodeRows({"age": [0, 1], "pay": [0, 0]}, k=2)], HIERARCHIES)
    plan.save(tmp_path / "plan.toml")
    assert gpupif.Plan.load(tmp_path / "plan.toml") == plan


@pytest.mark.parametrize(
    ("levels", "k", "message"),
    [
        ({}, 2, "levels: expected a list of levels by column"),
        ({"age": []}, 2, "levels: expected a list of levels by column"),
        ({"age": 1}, 2, "levels: expected a table of keys and values that are lists of whole numbers, got"),
        ({"age": [0, 1], "pay": [0]}, 2, "column 'pay' has 1 levels, and column 'age' has 2"),
        ({"age": [0, 7]}, 2, "level: expected a whole number from 0 to 3, the top of the hierarchy of 'age'"),
        ({"town": [0, 1]}, 2, "column 'town' has no hierarchy"),
        ({"age": [0, 1]}, 0, "k: expected a whole number of rows, 1 or more"),
        ({"age": [0, 1]}, None, "expected one of k or require, got none"),
    ],
)
def test_bad_input_is_refused(levels, k, message):
    with pytest.raises(InputError, match=message):
        gpupif.Plan([gpupif.treatments.RecodeRows(levels, k=k)], HIERARCHIES)


def test_a_criterion_that_is_not_on_classes_is_refused():
    with pytest.raises(InputError, match="criterion 'pif95<=3' is not on each equivalence class"):
        gpupif.Plan([gpupif.treatments.RecodeRows({"age": [0, 1]}, require="pif95<=3")], HIERARCHIES)
    with pytest.raises(InputError, match="sensitive goes with require, and not with k"):
        gpupif.Plan([gpupif.treatments.RecodeRows({"age": [0, 1]}, k=2, sensitive=["pay"])], HIERARCHIES)


def test_a_column_that_the_table_lacks_is_refused():
    with pytest.raises(InputError, match="no column 'town'"):
        gpupif.treat(pd.DataFrame({"age": [1]}), gpupif.Plan([gpupif.treatments.RecodeRows({"town": [0]}, k=1)]))
