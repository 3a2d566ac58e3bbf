"""Criteria read from text."""

from __future__ import annotations

import pandas as pd
import pytest

import gpupif
from gpupif.criteria.criterion import Criterion, read_criteria

TEXTS = {
    "k>=5": True,
    "distinct_l(disease)>=3": True,
    "t<=0.2": True,
    "alpha<=0.5": True,
    "recursive_c(disease, l=3)<=2": True,
    "basic_beta<=1": True,
    "delta<=1": False,
    "unique_rows<=0": True,
    "unique_share<=0.01": True,
    "rows_below_k(5)<=10": True,
    "share_at_risk(0.2)<=0": True,
    "discernibility<=1000": False,
    "pif95<=3": False,
    "pif99.5<=3": False,
    "mean rig<=3": True,
    "max rig<=3": False,
    "max csf<=0.9": False,
    "mean cig(income)<=0.5": True,
    "max cig<=5": True,
    "p99 cig<=8": False,
    "max renyi_2<=3": True,
    "mean renyi_2<=3": False,
    "max total_variation<=0.5": True,
    "min cohort_size>=5": True,
    "known=3: k>=3": True,
    "known=3: mean cig<=3": False,
    "known=age,sex: pif95<=3": False,
    "neighbour: k>=5": True,
    'known="last, first",age: k>=5': True,
    'known=age,"a ""b"": c": mean cig(last, first)<=2': True,
    'known=5" pipe: k>=5': True,
    "games.prosecutor.publisher_payout>=-5": True,
}


@pytest.mark.parametrize(("text", "improves"), TEXTS.items())
def test_criteria_are_read_and_written(text, improves):
    criterion = Criterion.from_text(text)
    assert str(criterion) == text
    assert Criterion.from_text(str(criterion)) == criterion
    assert criterion.quantity.only_improves(isinstance(criterion.known, int)) is improves
    assert criterion.at_most == ("<=" in text)


def test_names_with_commas_colons_and_quotes_are_known_in_quotes():
    assert Criterion.from_text('known="last, first", age: k>=5').known == ("last, first", "age")
    names = ("last, first", 'a "b": c', "age")
    criterion = Criterion(Criterion.from_text("k>=5").quantity, 5.0, names)
    assert Criterion.from_text(str(criterion)) == criterion
    table = pd.DataFrame({"last, first": [*"ab"] * 4, "age": [1, 1, 2, 2] * 2})
    assert gpupif.protect(table, 'known="last, first": k>=5').levels == {"last, first": 1, "age": 0}


def test_different_words_may_mean_the_same_criterion():
    assert Criterion.from_text("uniques <= 0") == Criterion.from_text("unique_rows<=0")
    assert Criterion.from_text("csf≤.9") == Criterion.from_text("max csf<=0.9")
    assert Criterion.from_text("p95 rig<=3") == Criterion.from_text("pif95<=3")
    assert Criterion.from_text("cohort_size >= 5") == Criterion.from_text("min cohort_size>=5")
    assert Criterion.from_text("fig(a:b (c))<=1") == Criterion.from_text("mean cig(a:b (c))<=1")
    assert Criterion.from_text("max csf(first\nsecond)<=1").quantity.column == "first\nsecond"
    assert Criterion.from_text("known=a(b): max csf(c:d)<=1").known == ("a(b)",)
    assert str(Criterion.from_text(" uniques <= 0 ")) == "uniques <= 0"
    assert read_criteria(["k>=5", "k >= 5.0"]) == [Criterion.from_text("k>=5")]


def test_a_criterion_on_an_unknown_value_is_not_met():
    assert Criterion.from_text("k>=5").is_met(5)
    assert not Criterion.from_text("k>=5").is_met(4)
    assert Criterion.from_text("t<=0.2").is_met(0.2)
    assert not Criterion.from_text("t<=0.2").is_met(0.21)
    assert Criterion.from_text("t<=0.2").is_met(0.2 * (1 + 1e-13))
    assert not Criterion.from_text("t<=0.2").is_met(0.2 * (1 + 1e-11))
    assert Criterion.from_text("entropy_l>=2").is_met(2 * (1 - 1e-13))
    assert not Criterion.from_text("entropy_l>=2").is_met(2 * (1 - 1e-11))
    assert not Criterion.from_text("t<=0.2").is_met(None)
    assert not Criterion.from_text("t<=0.2").is_met(float("nan"))


@pytest.mark.parametrize(
    ("text", "k"),
    [("k>=5", 5), ("k>=4.2", 5), ("uniques<=0", 2), ("rows_below_k(7)<=0", 7), ("uniques<=1", None), ("t<=0", None)],
)
def test_the_smallest_class_follows_from_a_criterion(text, k):
    assert Criterion.from_text(text).smallest_class == k
    assert Criterion.from_text(f"nb: {text}").smallest_class is None


BAD = {
    "kk>=5": "'kk' is no figure. Did you mean 'k'",
    "l>=2": "'l' is no figure. Did you mean 'distinct_l'",
    "k<=5": "k is safer if it is higher: write k>=5",
    "pif95>=3": "pif95 is safer if it is lower: write pif95<=3",
    "k>5": "write k>=5",
    "k>=": "expected a number as the limit, got nothing",
    "k>=five": "expected a number as the limit, got 'five'",
    "k>=inf": "expected a number as the limit, got 'inf'",
    "k": "expected a figure, >= or <=, and a number",
    "pif<=3": "expected a percentile after pif, as in pif95",
    "pif101<=3": "expected a percentile from 0 to 100",
    "max k>=3": "k is one number of a table, without max",
    "k(age)>=3": "k is of the whole table: expected no brackets",
    "rows_below_k<=3": "depends on k: expected it in brackets",
    "share_at_risk(2)<=3": "expected a threshold above 0 and up to 1",
    "recursive_c(disease)<=3": r"expected it in brackets, as in recursive_c\(l=3\)",
    "mean csg<=1": "Did you mean 'csf'",
    "known=: k>=5": "expected before the colon what the attacker knows",
    "who=age: k>=5": "expected before the colon what the attacker knows",
    "k>=-3": "every table meets it, for k is 1 and up",
    "max csf<=1.5": "every table meets it, for max csf is 0 to 1",
    "t<=-0.1": "no table meets it, for t is 0 to 1",
    "pif95<=-1": "no table meets it, for pif95 is 0 and up",
    "min class_size>=-1": "every table meets it, for min class_size is 1 and up; with weights 0 and up",
    "population.marketer<=-1": "no table meets it, for population.marketer is 0 and up",
    'known="last, first: k>=5': "expected before the colon what the attacker knows",
    "": "expected limits as text",
}


@pytest.mark.parametrize(("text", "message"), BAD.items())
def test_bad_criteria_are_refused(text, message):
    with pytest.raises(gpupif.InputError, match=message):
        Criterion.from_text(text)
