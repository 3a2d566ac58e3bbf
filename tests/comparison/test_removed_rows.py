"""The plan by which a table was treated, or the record of that, tells which rows it lacks."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.treatment.plan_run import apply_plan
from tests.helpers import naive_comparison as naive
from tests.helpers.dask_frames import cut
from tests.helpers.pieces import write_parts

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
KNOWN = ["age", "sex"]
PLAN = gpupif.Plan(
    [gpupif.treatments.Recode("age", level=1), gpupif.treatments.SuppressRows(k=4, quasi_identifiers=KNOWN)],
    hierarchies={"age": {"widths": [10, 20]}},
)


@pytest.fixture(scope="module")
def before():
    random = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "age": random.integers(20, 60, 50),
            "sex": random.choice(["f", "m", None], 50, p=[0.5, 0.4, 0.1]),
            "pay": random.integers(0, 9, 50),
            "row": range(50),
        }
    )


def found(before, after, plan, **options):
    document = gpupif.compare(before, after, plan, quasi_identifiers=KNOWN, **options).to_dict()
    # Without row_id, the column that names rows is in the table and not compared.
    del document["seconds"], document["not_compared"]
    return document


@pytest.fixture(scope="module")
def treated(before):
    done = gpupif.treat(before, PLAN)
    assert 0 < len(done.table) < len(before)
    return done


@pytest.fixture(scope="module")
def expected(before, treated):
    return found(before, treated.table, PLAN, row_id="row", columns=["age", "sex", "pay"])


def test_columns_that_are_not_given_are_those_of_the_plan(before, treated):
    plan = gpupif.Plan(PLAN.treatments, PLAN.hierarchies, KNOWN, "pay")
    compared = gpupif.compare(before, treated.table, plan)
    assert (compared.quasi_identifiers, compared.sensitive) == (KNOWN, ["pay"])
    assert gpupif.compare(before, treated.table, plan, sensitive="row").quasi_identifiers == ["age", "sex", "pay"]


def test_the_plan_and_its_record_align_rows(before, treated, expected, tmp_path):
    columns = {"columns": ["age", "sex", "pay"]}
    assert found(before, treated.table, PLAN, **columns) == expected
    assert found(before, treated.table, treated.record, **columns) == expected
    treated.record.save(tmp_path / "record.json")
    assert found(before, treated.table, tmp_path / "record.json", **columns) == expected
    with pytest.raises(
        gpupif.InputError, match=r"expected the 50 rows of the table before, got .*that plan, or the record"
    ):
        found(before, treated.table, None, **columns)


def test_the_record_aligns_rows_of_files(before, treated, expected, tmp_path):
    first, second = (write_parts(tmp_path / name, table, [15]) for name, table in (("b", before), ("a", treated.table)))
    with gpupif.config(memory_limit="8GiB"):
        assert found(first, second, PLAN, columns=["age", "sex", "pay"]) == expected


@pytest.mark.slow
@pytest.mark.dask
@pytest.mark.usefixtures("on_cpu")
def test_the_record_aligns_rows_of_dask_frames(before, treated, expected):
    import dask

    with dask.config.set(scheduler="sync"):
        lazy, other = cut(before, [10, 10, 20]), cut(treated.table, [7])
        columns = {"columns": ["age", "sex", "pay"]}
        for first, second in ((lazy, other), (lazy, treated.table), (before, other)):
            assert found(first, second, PLAN, **columns) == expected


def test_random_draws_are_refused_only_if_they_decide_about_rows(before):
    key = bytes(range(32))
    noise = gpupif.treatments.Noise("pay", scale=1.0)
    plan = gpupif.Plan([noise, *PLAN.treatments], PLAN.hierarchies)
    after = gpupif.treat(before, plan, key=key).table
    assert found(before, after, plan)["rows_taken_away"] == len(before) - len(after)
    plan = gpupif.Plan(
        [gpupif.treatments.Pram("sex", invariant=0.8, missing="keep"), *PLAN.treatments], PLAN.hierarchies
    )
    after = gpupif.treat(before, plan, key=key).table
    with pytest.raises(gpupif.InputError, match=r"the random numbers of 'pram' for column 'sex'.*row_id="):
        found(before, after, plan)


def test_another_plan_is_refused(before, treated):
    other = gpupif.Plan([gpupif.treatments.SuppressRows(k=2, quasi_identifiers=KNOWN)])
    with pytest.raises(gpupif.InputError, match="which the plan keeps of the 50 rows of the table before"):
        found(before, treated.table, other)


def test_a_public_record_that_lacks_values_is_refused(before):
    hierarchies = {"sex": {"f": ["*"], "m": ["*"]}}
    plan = gpupif.Plan(
        [gpupif.treatments.Recode("sex", level=1), gpupif.treatments.SuppressRows(k=2, quasi_identifiers=["pay"])],
        hierarchies,
    )
    done = gpupif.treat(before, plan)
    with pytest.raises(gpupif.InputError, match="public record, which lacks lists of values"):
        found(before, done.table, done.record.public())


def test_the_mask_of_kept_rows_follows_the_whole_plan(before):
    from gpupif.frames.open import open_table
    from gpupif.io.base import every_column
    from gpupif.treatment.kept_rows import find_kept_rows
    from gpupif.treatment.memory_table import MemoryTable
    from gpupif.utils.progress import Reporter

    plan = gpupif.Plan(
        [
            gpupif.treatments.Round("pay", base=3),
            gpupif.treatments.Suppress(["sex"], where="csf > 0.4"),
            gpupif.treatments.SuppressRows(where="class_size < 3", quasi_identifiers=["pay", "sex"]),
            *PLAN.treatments,
        ],
        PLAN.hierarchies,
    )
    with Reporter() as report:
        table = MemoryTable(open_table(before, every_column))
        apply_plan(table, plan, None, report)
        assert find_kept_rows(before, plan, report).tolist() == table.kept_rows().tolist()
        assert before["row"][table.kept_rows()].tolist() == gpupif.treat(before, plan).table["row"].tolist()


@pytest.mark.parametrize("remove", [True, False])
def test_information_kept_of_protected_tables_is_a_share(before, remove):
    """A suppressed cell keeps no information, whether its row is removed or stays."""
    plan = gpupif.Plan([gpupif.treatments.SuppressRows(k=3, quasi_identifiers=KNOWN, remove=remove)])
    after = gpupif.treat(before, plan).table
    result = gpupif.compare(before, after, plan, quasi_identifiers=KNOWN)
    # The rows that are left are as they were; all others lose all that they had.
    gone = after[KNOWN].isna().all(axis=1) if not remove else ~before["row"].isin(after["row"])
    for name in KNOWN:
        values = before[name].astype(object).where(before[name].notna(), None).tolist()
        bits = naive.bits_of_cells(values)
        # A value that was missing before is missing after, too, unless its row is removed.
        stays = [not lost or (not remove and value is None) for lost, value in zip(gone, values, strict=True)]
        kept = math.fsum(naive.some(bits, stays)) / math.fsum(bits)
        assert result.columns.loc[name, "information_kept"] == pytest.approx(kept, rel=1e-12)
    assert result.utility.mutual_information_kept == 1.0
    recoded = gpupif.Plan([gpupif.treatments.Recode("age", level=1), *plan.treatments], PLAN.hierarchies)
    result = gpupif.compare(before, gpupif.treat(before, recoded).table, recoded, quasi_identifiers=KNOWN)
    assert 0 < result.columns.loc["age", "information_kept"] < 1
    assert 0 < result.utility.mutual_information_kept < 1


@pytest.mark.parametrize("remove", [True, False])
def test_non_uniform_entropy_loss_is_that_of_arx(remove):
    """ARX adds n H(X | G) of all rows at their level and the entropy of the suppressed rows at that level.

    The value 47 is released nowhere: its group follows from the hierarchy.
    """
    before = pd.DataFrame({"age": [31, 31, 34, 38, 38, 42, 47, 52], "sex": list("ffmfmmff")})
    hierarchy = {"age": {"widths": [10, 50]}}
    plan = gpupif.Plan(
        [
            gpupif.treatments.Recode("age", level=1),
            gpupif.treatments.SuppressRows(k=2, quasi_identifiers=KNOWN, remove=remove),
        ],
        hierarchy,
    )
    after = gpupif.treat(before, plan).table
    result = gpupif.compare(before, after, plan)
    groups = {"age": ["30"] * 5 + ["40", "40", "50"], "sex": list("ffmfmmff")}
    pairs = list(zip(groups["age"], groups["sex"], strict=True))
    suppressed = [pairs.count(pair) < 2 for pair in pairs]
    assert sum(suppressed) == 3
    for name, own in groups.items():
        gone = naive.some(own, suppressed)
        expected = 8 * naive.conditional(before[name].tolist(), own) + 3 * naive.entropy(gone)
        assert result.columns.loc[name, "nonuniform_entropy_loss"] == pytest.approx(expected, rel=1e-12)
    # As if nothing was suppressed: the groups of all rows.
    assert result.utility.discernibility_unsuppressed == sum(pairs.count(pair) for pair in pairs)
    assert result.utility.nonuniform_entropy_loss == math.fsum(result.columns["nonuniform_entropy_loss"])


@pytest.mark.parametrize("values", [254, 255, 256])
def test_columns_with_as_many_values_as_a_byte_are_compared(values):
    """A missing cell has the number after the last value, which may need another byte."""
    before = pd.DataFrame(
        {
            "x": [f"v{number}" for number in range(values)] * 2,
            "y": ["a" if number % 2 else "b" for number in range(values)] * 2,
        }
    )
    after = before.assign(x=before["x"].where(before.index % 5 > 0, None))
    result = gpupif.compare(before, after, linkage=None)
    as_lists = [
        {name: [*table[name].astype(object).where(table[name].notna(), None)] for name in table}
        for table in (before, after)
    ]
    expected = naive.pairs(*as_lists, as_lists[0])
    assert result.pairs["mutual_information_before"][0] == pytest.approx(expected["x", "y"][0])
    assert result.pairs["mutual_information_kept"][0] == 1
