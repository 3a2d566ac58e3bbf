"""Cells restored by classes that are counted in place: the same cells as if the whole table were judged each time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.rows.threads import Workers
from gpupif.treatment.suppression import measured_criteria
from gpupif.treatment.suppression.grouping import ClassCriterion, KeyedRows
from gpupif.treatment.suppression.restoring import Restoring
from tests.helpers import naive_suppression as naive
from tests.helpers.suppression_tables import COLUMNS, tuples

CRITERIA = [
    ["k>=2", "distinct_l(ill)>=2"],
    ["distinct_l>=2"],
    ["known=2: distinct_l(ill)>=2", "k>=2"],
    ["known=home,age: distinct_l(job)>=2", "known=1: k>=3"],
    ["entropy_l(ill)>=1.5"],
    ["alpha<=0.7"],
    ["recursive_c(ill, l=2)<=3", "k>=2"],
    ["t(ill)<=0.4", "distinct_l(job)>=2"],
]


def some_table(seed, rows):
    """Return three quasi-identifiers and two sensitive attributes, with missing values in some of the columns."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {name: random.choice(list(values), rows) for name, values in zip(COLUMNS, ("nsew", "123", "fm"), strict=True)}
    )
    table["ill"], table["job"] = random.choice(list("pppqr"), rows), random.choice(list("abc"), rows)
    for place, name in enumerate(("home", "ill", "job")):
        if seed >> place & 1:
            table.loc[random.random(rows) < 0.2, name] = None
    return table


def suppressed(table, criteria, missing):
    """Return which cells are suppressed."""
    treatment = gpupif.treatments.Suppress(COLUMNS, require=criteria, sensitive=["ill", "job"], missing=missing)
    after = gpupif.treat(table, [treatment]).table
    return (after[COLUMNS].isna() & table[COLUMNS].notna()).to_numpy()


class MeasuringAll(Restoring):
    """The restoring that measures all criteria in the whole table for each span of cells."""

    def __init__(self, rows, _, importance, holds):
        super().__init__(rows, [], importance, holds)


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 1, 2, 3, 4, 6, 7))])
@pytest.mark.parametrize("criteria", CRITERIA, ids=str)
def test_the_same_cells_are_restored_as_if_the_whole_table_were_measured(criteria, seed):
    table, missing = some_table(seed, 28), (None, "category", "wildcard")[seed % 3 if seed > 5 else 0]
    found = suppressed(table, criteria, missing)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measured_criteria, "Restoring", MeasuringAll)
        patch.setattr(measured_criteria.MeasuredCriteria, "values_of_classes", lambda *_: ([], False))
        expected = suppressed(table, criteria, missing)
    assert found.any()
    np.testing.assert_array_equal(found, expected)


def test_cells_that_cannot_be_restored_alone_are_restored_together():
    codes = np.array([0, 0, 1, 2, 3, 3], np.uint8)
    with Workers() as workers:
        for by_halves, kept in ((True, [2, 3]), (False, [0, 1, 2, 3])):
            rows = KeyedRows([codes], [4], workers)
            rows.suppress(np.arange(4), [0])
            restoring = Restoring(rows, [ClassCriterion((0,), 2)], {0: 1.0})
            assert (restoring.restore_by_halves() if by_halves else restoring.restore_each()) == 4 - len(kept)
            assert np.flatnonzero(rows.suppressed(0)).tolist() == kept


def meets_k_and_l(rows, k, l_values, reading):
    """Return whether each row agrees with k rows, which have so many different values in the last column."""
    agree = naive.match if reading == "wildcard" else naive.same
    for one in rows:
        values = [other[-1] for other in rows if agree(one, other, range(len(one) - 1))]
        known = set(values) - {None} if reading == "wildcard" else set(values)
        if len(values) < k or (known and len(known) < l_values):
            return False
    return True


@pytest.mark.parametrize("seed", [2, 5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 24))])
def test_k_and_l_hold_afterwards_and_no_cell_can_be_restored(seed):
    table, k, l_values = some_table(seed, 24), 2 + seed % 3, 2 + seed % 2
    criteria = [f"k>={k}", f"distinct_l(ill)>={l_values}"]
    cells, names = suppressed(table, criteria, None), [*COLUMNS, "ill"]
    treated = table.copy()
    treated[COLUMNS] = table[COLUMNS].mask(cells)

    def met(frame):
        return all(meets_k_and_l(tuples(frame, names), k, l_values, own) for own in ("category", "wildcard"))

    assert cells.any()
    assert met(treated)
    for row, column in np.argwhere(cells):
        again = treated.copy()
        again.iloc[row, column] = table.iloc[row, column]
        assert not met(again)
