"""Several treatments of one column, of which some put labels in place of numbers."""

from __future__ import annotations

import itertools
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError
from gpupif.treatments import (
    BottomCode,
    Cap,
    CorrelatedNoise,
    DatePart,
    Jitter,
    Microaggregate,
    MicroaggregateTogether,
    Noise,
    Pram,
    RankSwap,
    Rare,
    Recode,
    Round,
    Shuffle,
    Suppress,
    TopCode,
)
from tests.helpers.ways import MEMORY, Pieces, assert_same_treated, plain

WHOLE = [1, 1, 1, 2, 2, 3, 4, 4, 4, 4, 4, 5, 6, 6, None, 7, 8, 8, 8, 9, 9, 10, 12, 12, 12, 12]
FLOATS = [None if value is None else value / 2 + 1e-7 * (value % 2) for value in WHOLE]
COLUMNS = {"whole": pd.array(WHOLE, "Int64"), "float": FLOATS}
WIDTHS = {"widths": [4, 8]}


def is_number(value):
    return value is not None and not isinstance(value, str)


def pool(beyond, label):
    return lambda values, text: ([label if is_number(v) and beyond(v) else v for v in values], isinstance(label, str))


def rounded(base):
    def to_base(v):
        return type(v)(round(Fraction(repr(v)) / base) * base) if is_number(v) else v

    return lambda values, text: ([to_base(v) for v in values], False)


def written(value):
    """Return a value of a column of texts."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def rare(below, label):
    def pooled(values, text):
        order = written if text else (lambda v: v)
        counts = Counter(v for v in values if v is not None)
        gone = {v for v in counts if counts[v] < below}
        if gone:
            gone |= {v for v in counts if written(v) == label}
            for v in sorted(counts, key=lambda v: (counts[v], order(v))):
                if sum(counts[own] for own in gone) < below:
                    gone.add(v)
        return [label if v in gone else v for v in values], True

    return pooled


def mapped(mapping):
    return lambda values, text: ([mapping.get(written(v), v) for v in values], True)


def bins(edges, labels):
    def placed(v):
        place = sum(v >= edge for edge in edges) if is_number(v) else 0
        return labels[place - 1] if 0 < place < len(edges) else v

    return lambda values, text: ([placed(v) for v in values], True)


def widths(width):
    def placed(v):
        low = int(v // width * width) if is_number(v) else 0
        return f"[{low}, {low + width})" if is_number(v) else v

    return lambda values, text: ([placed(v) for v in values], True)


def top(values, text):
    return ["*" for _ in values], True


# Treatments of a column, and what each makes of Python's values. `text`: whether the column is of texts.
STEPS = {
    "top": (lambda c: TopCode(c, 4, "5+"), pool(lambda v: v > 4, "5+")),
    "top number": (lambda c: TopCode(c, 3), pool(lambda v: v > 3, 3)),
    "bottom": (lambda c: BottomCode(c, 2, "<2"), pool(lambda v: v < 2, "<2")),
    "cap": (lambda c: Cap(c, over=8), pool(lambda v: v > 8, "90+")),
    "round": (lambda c: Round(c, base=2), rounded(2)),
    "rare": (lambda c: Rare(c, below=3, label="rare"), rare(3, "rare")),
    "map": (
        lambda c: Recode(c, mapping={4: "four", "<2": "low", "1": None}, unmapped="keep"),
        mapped({"4": "four", "<2": "low", "1": None}),
    ),
    "bins": (lambda c: Recode(c, edges=[0, 3, 6], labels=["a", "b"], unmapped="keep"), bins([0, 3, 6], ["a", "b"])),
    "widths": (lambda c: Recode(c, level=1), widths(4)),
    "anything": (lambda c: Recode(c, level=3), top),
}
# Treatments after which no numbers are left, or groups that are no labels.
LAST = ("bins", "widths", "anything")


def orders(length):
    return [own for own in itertools.permutations(STEPS, length) if not set(own[:-1]) & set(LAST)]


def expected_values(values, order):
    text = False
    for name in order:
        values, made = STEPS[name][1](values, text)
        text = text or made
    return [None if v is None else written(v) if text else v for v in values]


def plan_and_table(values, every):
    """Return a plan and a table with a column for each order of treatments, and what is expected of it."""
    names = ["-".join(order) for order in every]
    table = pd.DataFrame(dict.fromkeys(names, values))
    treatments = [STEPS[step][0](name) for name, order in zip(names, every, strict=True) for step in order]
    expected = {name: expected_values(plain(table[name]), order) for name, order in zip(names, every, strict=True)}
    return gpupif.Plan(treatments, dict.fromkeys(names, WIDTHS)), table, expected


@pytest.mark.parametrize("kind", COLUMNS)
def test_pairs_and_some_triples_follow_their_definitions(kind):
    plan, table, expected = plan_and_table(COLUMNS[kind], [*orders(2), *orders(3)[::9]])
    done = MEMORY.treat(table, plan, Pieces(chunk_rows=5)).table
    for name, values in expected.items():
        assert plain(done[name]) == values, name


@pytest.mark.slow
@pytest.mark.parametrize("kind", COLUMNS)
def test_all_triples_follow_their_definitions(kind):
    plan, table, expected = plan_and_table(COLUMNS[kind], orders(3))
    done = MEMORY.treat(table, plan, Pieces(chunk_rows=5)).table
    for name, values in expected.items():
        assert plain(done[name]) == values, name


@pytest.mark.parametrize("kind", COLUMNS)
def test_pairs_are_the_same_in_every_way(way, kind):
    plan, table, _ = plan_and_table(COLUMNS[kind], orders(2))
    found = way.treat(table, plan, Pieces((0.2, 0.2, 0.6), chunk_rows=4, partition_rows=4))
    expected = MEMORY.treat(table, plan)
    assert_same_treated(found, expected)


@pytest.mark.parametrize("ending", ["csv", "feather", "parquet"])
def test_pairs_are_the_same_in_files_of_each_format(tmp_path, ending):
    plan, table, expected = plan_and_table(COLUMNS["whole"], orders(2))
    plan.save(tmp_path / "plan.json")
    write = {"csv": lambda path: table.to_csv(path, index=False), "feather": table.to_feather}
    write.get(ending, table.to_parquet)(tmp_path / f"in.{ending}")
    gpupif.treat_files(tmp_path / f"in.{ending}", tmp_path / f"out.{ending}", tmp_path / "plan.json")
    found = gpupif.treat(tmp_path / f"out.{ending}", []).table
    for name, values in expected.items():
        # Whole numbers with missing ones among them are read as floats.
        assert list(map(written, plain(found[name]))) == list(map(written, values)), name


def test_the_order_of_labels_of_both_ends_does_not_matter():
    table = pd.DataFrame({"a": [Decimal("0.50"), Decimal("7.25"), Decimal("100.00"), None]})
    both = [BottomCode("a", 3, "<3"), TopCode("a", 9, "9+"), Round("a", base=0.5)]
    for order in itertools.permutations(both):
        assert plain(gpupif.treat(table, list(order)).table["a"]) == ["<3", "7", "9+", None]


LABELLED = [TopCode("a", 9, "9+")]


@pytest.mark.parametrize(
    "treatment",
    [
        Microaggregate("a", k=2),
        MicroaggregateTogether(["a", "b"], k=2),
        Noise("a", scale=1),
        CorrelatedNoise(["a", "b"], variance=0.1),
        Jitter("a", within=2),
        RankSwap(["a"], reach=0.5),
        Shuffle(["a"], given=["b"]),
    ],
    ids=lambda treatment: treatment.do,
)
def test_what_needs_numbers_after_labels_names_both_treatments(treatment, tmp_path):
    table = pd.DataFrame({"a": [1, 2, 3, 10, 11, 12], "b": [3.0, 1.0, 4.0, 1.0, 5.0, 9.0]})
    table.to_parquet(tmp_path / "in.parquet")
    wanted = rf"^treatment 2 \({treatment.do}\): column 'a': expected .*, got '9\+'\. It comes from treatment 1 "
    wanted += rf"\(top_code\): put {treatment.do} before that one\.$"
    with pytest.raises(InputError, match=wanted):
        gpupif.treat(table, [*LABELLED, treatment], key=bytes(32))
    with pytest.raises(InputError, match=wanted):
        gpupif.treat_files(tmp_path / "in.parquet", tmp_path / "out.parquet", [*LABELLED, treatment], key=bytes(32))
    assert [file.name for file in tmp_path.iterdir()] == ["in.parquet"]


def test_numbers_after_groups_and_dates_after_labels_name_both_treatments(way):
    table = pd.DataFrame(
        {"a": range(20), "born": pd.to_datetime(["2000-01-31", "2000-02-01"] * 3 + ["2001-05-17"] * 14)}
    )
    for plan, found in (
        ([Recode("a", edges=[0, 50]), TopCode("a", 9)], r"2 \(top_code\): .*'\[0, 50\)'\. It .* 1 \(recode\)"),
        ([Rare("born", below=5), DatePart("born", to="year")], r"2 \(date_part\): .*'other'\. It .* 1 \(rare\)"),
        ([Rare("born", below=5), Cap("born")], r"2 \(cap\): .*'2001-05-17'\. It .* 1 \(rare\)"),
    ):
        with pytest.raises(InputError, match=f"^treatment {found}"):
            way.treat(table, plan, Pieces(chunk_rows=4))


def test_other_treatments_take_labels_as_values():
    table = pd.DataFrame({"a": [1, 2, 3, 10, 11, 12], "sex": list("ffmmff")})
    same = [Pram("a", matrix={value: {value: 1} for value in ("1", "2", "3", "9+")}), Suppress(["a"], k=1)]
    assert plain(gpupif.treat(table, [*LABELLED, *same, BottomCode("a", 2, "<2")], key=bytes(32)).table["a"]) == (
        ["<2", "2", "3", "9+", "9+", "9+"]
    )
    tree = {"values": {1: ["low"], 2: ["low"], 3: ["low"], "9+": ["high"]}}
    plan = gpupif.Plan([*LABELLED, Recode("a", level=1)], {"a": tree})
    assert plain(gpupif.treat(table, plan).table["a"]) == ["low"] * 3 + ["high"] * 3
    del tree["values"]["9+"]
    plan = gpupif.Plan([*LABELLED, Recode("a", level=1)], {"a": tree})
    with pytest.raises(InputError, match=r"^treatment 2 \(recode\): .*'9\+' has no place"):
        gpupif.treat(table, plan)


def test_a_label_that_is_a_number_stays_a_number():
    table = pd.DataFrame({"a": [1, 5, 9]})
    done = gpupif.treat(table, [BottomCode("a", 3, "99"), TopCode("a", 50, "50+")])
    assert plain(done.table["a"]) == ["50+", "5", "9"]


def test_a_column_without_values_is_left(way):
    table = pd.DataFrame({"a": np.full(6, np.nan), "b": range(6)})
    plan = [Rare("a", below=3), TopCode("a", 3, "3+"), BottomCode("a", 1, "<1"), Round("a", base=2)]
    assert plain(way.treat(table, plan, Pieces(chunk_rows=2)).table["a"]) == [None] * 6
