"""Swapping: every class keeps its values, no row gets its own values, and rows alone are counted."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.errors import InputError
from gpupif.treatment.random import swap
from gpupif.treatment.random.swap import Swap, class_numbers
from tests.helpers.treated_chunks import prepared, treated

KEY = gpupif.treatments.Key.from_any(bytes(range(90, 122)))


def people(rows=3000, towns=20):
    random = np.random.default_rng(5)
    return pa.table(
        {
            "town": pa.array(random.integers(0, towns, rows), mask=random.random(rows) < 0.05),
            "sex": random.choice(["f", "m"], rows),
            "row": np.arange(rows),
            "job": pa.array(random.integers(0, 50, rows).astype(str), mask=random.random(rows) < 0.1),
        }
    )


def by_class(table, names):
    """Count how often each combination occurs in each class."""
    rows = table.to_pylist()
    return Counter((row["town"], row["sex"], *(row[name] for name in names)) for row in rows)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 120), st.integers(1, 9), st.floats(0.01, 1), st.lists(st.integers(0, 120), max_size=3))
def test_classes_keep_their_values(rows, towns, share, cuts):
    table = people(rows, towns)
    treatment = Swap(["row", "job"], ["town", "sex"], share)
    found = treated(table, treatment, KEY, cuts)
    assert by_class(found, ["row", "job"]) == by_class(table, ["row", "job"])
    assert found["town"].to_pylist() == table["town"].to_pylist()
    assert found.to_pylist() == treated(table, treatment, KEY).to_pylist()
    counted = prepared(table, treatment, KEY).record
    moved = sum(one != other for one, other in zip(found["row"].to_pylist(), table["row"].to_pylist(), strict=True))
    assert counted["rows_swapped"] == moved
    if share == 1:
        assert counted["rows_swapped"] + counted["rows_alone_in_their_class"] == rows


def naive_swap(table, share):
    """Return swapped rows by the definition: rows that take part form a circle by their second number."""
    rows = table.num_rows
    takes, order = (KEY.draws(0, ("row",), purpose).of_rows(0, rows) for purpose in ("takes part", "order"))
    classes = {}
    for row, facts in enumerate(table.to_pylist()):
        if takes[row] < share * 2**64:
            classes.setdefault((facts["town"], facts["sex"]), []).append(row)
    found, alone = list(range(rows)), 0
    for members in classes.values():
        circle = sorted(members, key=lambda row: int(order[row]))
        alone += len(circle) == 1
        for place, row in enumerate(circle):
            found[row] = circle[place - 1]
    return found, alone


@pytest.mark.parametrize("share", [0.1, 0.5, 1])
def test_swapped_rows_follow_the_definition(share):
    table = people(800, 60)
    found, alone = naive_swap(table, share)
    assert treated(table, Swap(["row"], ["town", "sex"], share), KEY)["row"].to_pylist() == found
    assert prepared(table, Swap(["row"], ["town", "sex"], share), KEY).record["rows_alone_in_their_class"] == alone
    assert alone or share == 1


def test_a_full_swap_gives_every_row_another_value():
    table = people()
    found = treated(table, Swap(["row"], ["town", "sex"], 1), KEY)
    assert not (found["row"].to_numpy() == table["row"].to_numpy()).any()


def test_about_the_requested_share_of_rows_is_swapped():
    found = prepared(people(20_000, 3), Swap(["row"], ["town"], 0.3), KEY).record["rows_swapped"]
    assert abs(found - 6000) < 5 * math.sqrt(20_000 * 0.3 * 0.7)


def test_all_rows_are_one_class_without_columns_of_classes():
    table = people(500)
    found = treated(table, Swap(["row"], [], 1), KEY)["row"].to_pylist()
    assert sorted(found) == list(range(500))
    assert found != list(range(500))


def test_a_table_without_rows_stays_empty():
    assert treated(people(0), Swap(["row"], ["sex"], 1), KEY).num_rows == 0


def test_classes_of_many_columns_are_told_apart():
    """Check columns with more than 2^62 combinations of codes."""
    random = np.random.default_rng(6)
    columns = [random.integers(0, 3, 400) for _ in range(8)]
    found = class_numbers([(codes, 2**20) for codes in columns], 400)
    rows = list(zip(*columns, strict=True))
    pairs = set(zip(rows, found.tolist(), strict=True))
    assert len(pairs) == len(set(rows)) == len(set(found.tolist()))


def homes(households=300):
    """Return a table of persons in households: all of a household have its town and its rooms."""
    random = np.random.default_rng(8)
    home = np.repeat(np.arange(households), random.integers(1, 5, households))
    own = {"rooms": random.integers(1, 9, households)[home], "town": random.integers(0, 6, households)[home]}
    return pa.table({"home": home, **own, "age": random.integers(0, 90, len(home))}).take(random.permutation(len(home)))


def test_whole_households_of_equal_size_swap_their_values():
    table, plan = homes(), Swap(["town"], ["rooms"], 1, "home")
    found, rows = treated(table, plan, KEY, [50, 51]), table.to_pylist()
    size = Counter(table["home"].to_pylist())
    order = KEY.draws(0, ("town",), "order").of_rows(0, len(rows))
    classes, town = {}, {}
    for row, own in enumerate(rows):
        if own["home"] not in town:
            town[own["home"]] = own["town"]
            classes.setdefault((own["rooms"], size[own["home"]]), []).append((int(order[row]), own["home"]))
    after, alone = dict(town), 0
    for members in classes.values():
        circle = [home for _, home in sorted(members)]
        alone += len(circle) == 1
        for place, home in enumerate(circle):
            after[home] = town[circle[place - 1]]
    assert found["town"].to_pylist() == [after[own["home"]] for own in rows]
    record = prepared(table, plan, KEY).record
    assert record == {"households_swapped": 300 - alone, "households_alone_in_their_class": alone}
    assert Counter(found["town"].to_pylist()) == Counter(table["town"].to_pylist())


@pytest.mark.parametrize(
    ("columns", "treatment", "said"),
    [
        ({"h": [1, None], "a": [1, 2]}, Swap(["a"], [], 1, "h"), "expected a household in each row, got 1 rows"),
        ({"h": [1, 1], "a": [1, 2]}, Swap(["a"], [], 1, "h"), "column 'a': expected one value in all rows of a house"),
        ({"h": [1, 1], "a": [1, 2]}, Swap(["a"], [], 1, "a"), "household: 'a' is in columns or in within"),
        ({"h": [1, 1], "a": [1, 2]}, Swap(["a"], [], 1, "x"), "household: no column 'x'"),
    ],
)
def test_wrong_households_are_refused(columns, treatment, said):
    with pytest.raises(InputError, match=said):
        prepared(pa.table(columns), treatment, KEY)


def test_a_table_that_does_not_fit_the_memory_is_refused():
    with gpupif.config(memory_limit="1 MB"), pytest.raises(InputError, match=r"swap: 30,000 rows need 2.* of memory"):
        prepared(people(30_000), Swap(["row"], ["town"], 1), KEY)
    assert swap.ROW_BYTES * 30_000 > 10**6


@pytest.mark.parametrize(
    ("treatment", "said"),
    [
        (Swap([], ["town"], 0.5), "columns: expected at least one column"),
        (Swap(["row", "sex"], ["town", "sex"], 0.5), "column 'sex' is in columns and in within"),
        (Swap(["row"], ["town"], 0), "share: expected a number above 0 and up to 1, got 0"),
        (Swap(["row"], ["town"], 30), "got 30. Divide percentages by 100"),
        (Swap(["row"], 5, 0.5), "within: no column 5"),
    ],
)
def test_bad_input_is_refused(treatment, said):
    with pytest.raises(InputError, match=said):
        prepared(people(50), treatment, KEY)


def test_a_missing_key_is_refused_and_the_public_record_reveals_little():
    with pytest.raises(InputError, match="key: swap of column"):
        prepared(people(50), Swap(["row"], ["town"], 1), None)
    step = prepared(people(50), Swap(["row"], ["town"], 1), KEY)
    assert set(step.revealing) <= set(step.record)
