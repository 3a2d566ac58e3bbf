"""Disclosure measures beside pyCANON's, in an environment of its own: pip install '.[peers]' pytest hypothesis.

Where pyCANON departs from the papers, both what it gives and what is right are asserted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif

anonymity = pytest.importorskip("pycanon.anonymity")
metrics = pytest.importorskip("pycanon.metrics")
pytestmark = pytest.mark.filterwarnings("ignore")
FEW = settings(deadline=None, max_examples=15)
VALUES = {"number": st.integers(-3, 5), "text": st.sampled_from(["flu", "hiv", "asthma", "x"]), "wide": st.integers()}


@st.composite
def questions(draw):
    """Draw a table with one to three quasi-identifiers and one or two sensitive attributes of several values."""
    rows = draw(st.integers(2, 30))

    def column(kind):
        few = draw(st.lists(VALUES[kind], min_size=1, max_size=5))
        return draw(st.lists(st.sampled_from(few), min_size=rows, max_size=rows))

    known = {f"q{place}": column(draw(st.sampled_from(["number", "text"]))) for place in range(draw(st.integers(1, 3)))}
    found = {f"s{place}": column(draw(st.sampled_from(["number", "text"]))) for place in range(draw(st.integers(1, 2)))}
    for values in found.values():
        values[:2] = [values[0], "flu" if isinstance(values[0], str) and values[0] != "flu" else "hiv"]
        if not isinstance(values[0], str):
            values[1] = values[0] + 1
    return pd.DataFrame({**known, **found}), list(known), list(found)


def asked(frame, known, sensitive, every):
    """Return for each sensitive attribute the quasi-identifiers. Unless `every`, add the others (gen=False)."""
    return [(name, known if every else known + [other for other in sensitive if other != name]) for name in sensitive]


def worst(measure, frame, known, sensitive, every, pick=max, **options):
    return pick(measure(frame, columns, name, **options) for name, columns in asked(frame, known, sensitive, every))


def counts_of(frame, columns, name):
    """Return the rows by value, for each class."""
    counts = defaultdict(Counter)
    for key, value in zip(frame[columns].itertuples(index=False), frame[name], strict=True):
        counts[key][value] += 1
    return list(counts.values())


def test_every_measure_of_pycanon_is_compared():
    """List the measures of pyCANON: this file has a test of each."""
    covered = {
        "k_anonymity",
        "alpha_k_anonymity",
        "l_diversity",
        "t_closeness",
        "basic_beta_likeness",
        "delta_disclosure",
        "entropy_l_diversity",
        "recursive_c_l_diversity",
        "enhanced_beta_likeness",
    }
    assert set(anonymity.__all__) == covered
    # The last two are no disclosure measures: frequencies of a column, and loss for a classifier.
    sizes = {"sizes_ec", "average_ecsize", "discernability_metric", "average_rir", "max_rir", "sa_entropy"}
    assert set(metrics.__all__) == sizes | {"stats_quasi_ident", "classification_metric"}


@given(question=questions(), every=st.booleans())
@FEW
def test_most_measures_agree_with_pycanon(question, every):
    frame, known, sensitive = question
    assert gpupif.models.k_anonymity(frame, known) == anonymity.k_anonymity(frame, known)
    alpha, k = anonymity.alpha_k_anonymity(frame, known, sensitive, gen=every)
    found = [
        gpupif.models.alpha_k_anonymity(frame, columns, name) for name, columns in asked(frame, known, sensitive, every)
    ]
    assert max(one.alpha for one in found) == pytest.approx(alpha, rel=1e-12)
    assert gpupif.models.k_anonymity(frame, known) == k
    assert worst(gpupif.models.l_diversity, frame, known, sensitive, every, min) == anonymity.l_diversity(
        frame, known, sensitive, gen=every
    )
    for name in ("t_closeness", "basic_beta_likeness", "delta_disclosure"):
        theirs = getattr(anonymity, name)(frame, known, sensitive, gen=every)
        ours = worst(getattr(gpupif.models, name), frame, known, sensitive, every)
        assert ours == pytest.approx(theirs, rel=1e-11, abs=1e-12), name


@given(question=questions(), every=st.booleans())
@FEW
def test_pycanon_truncates_entropy_l(question, every):
    """PyCANON makes l a whole number, at times one too low: of 3 even values it may find e^H just below 3."""
    frame, known, sensitive = question
    theirs = anonymity.entropy_l_diversity(frame, known, sensitive, gen=every)
    ours = worst(gpupif.models.l_diversity, frame, known, sensitive, every, min, kind="entropy")
    assert theirs in (math.floor(ours), math.floor(ours - 1e-9))
    entropies = []
    for name, columns in asked(frame, known, sensitive, every):
        for counts in counts_of(frame, columns, name):
            shares = [count / counts.total() for count in counts.values()]
            entropies.append(-sum(share * math.log(share) for share in shares))
    assert ours == pytest.approx(math.exp(min(entropies)), rel=1e-11)


@given(question=questions(), every=st.booleans())
@FEW
def test_pycanon_takes_the_rarest_value_first_in_recursive_c(question, every):
    """The paper has r_1 as the most frequent value; pyCANON sorts ascending and rounds c up to a whole number."""
    frame, known, sensitive = question
    least = gpupif.models.l_diversity(frame, known, sensitive)
    classes = [
        sorted(counts.values())
        for name, columns in asked(frame, known, sensitive, every)
        for counts in counts_of(frame, columns, name)
    ]
    if least > 1 and any(len(rising) < least for rising in classes):
        # If the other attributes are known too, classes may have fewer values than its l, which is found without them.
        with pytest.raises(OverflowError):
            anonymity.recursive_c_l_diversity(frame, known, sensitive, gen=every)
    else:
        theirs, of_l = anonymity.recursive_c_l_diversity(frame, known, sensitive, gen=every)
        assert of_l == least
        rarest_first = max(math.floor(rising[0] / sum(rising[least - 1 :]) + 1) for rising in classes)
        assert math.isnan(theirs) if least == 1 else theirs == rarest_first
    found = [
        gpupif.models.l_diversity(frame, columns, name, "recursive", l=least)
        for name, columns in asked(frame, known, sensitive, True)
    ]
    assert {one.l for one in found} == {least}
    falling = [sorted(c.values(), reverse=True) for name in sensitive for c in counts_of(frame, known, name)]
    right = max(counts[0] / sum(counts[least - 1 :]) for counts in falling)
    assert max(one.c for one in found) == pytest.approx(right, rel=1e-12)
    assert gpupif.models.l_diversity(frame, known, sensitive, "recursive") == (max(one.c for one in found), least)


def test_recursive_c_differs_from_pycanon_in_an_example():
    """Counts 5, 2, 1 and l = 2: r_1 = 5 < c (2 + 1), so c is above 5/3; pyCANON has 1 / (2 + 5), so 1."""
    frame = pd.DataFrame({"q": [0] * 8, "s": list("aaaaabbc")})
    other = pd.concat([frame, pd.DataFrame({"q": [1] * 2, "s": list("ab")})], ignore_index=True)
    assert anonymity.recursive_c_l_diversity(other, ["q"], ["s"]) == (2, 2)
    assert gpupif.models.l_diversity(other, ["q"], "s", "recursive") == (5 / 3, 2)


@given(question=questions(), every=st.booleans())
@FEW
def test_pycanon_has_one_bound_for_all_values_in_enhanced_beta(question, every):
    """The paper bounds the rise of each value by min(beta, -ln p) of its own; pyCANON takes the highest of them."""
    frame, known, sensitive = question
    theirs, right = [], []
    for name, columns in asked(frame, known, sensitive, every):
        prior = frame[name].value_counts(normalize=True)
        gains = [
            (count / counts.total() / prior[value] - 1, -math.log(prior[value]))
            for counts in counts_of(frame, columns, name)
            for value, count in counts.items()
        ]
        highest = max(gain for gain, _ in gains)
        theirs.append(min(highest, max(-np.log(prior))))
        right.append(highest if all(gain <= bound + 1e-12 for gain, bound in gains) else math.inf)
    assert anonymity.enhanced_beta_likeness(frame, known, sensitive, gen=every) == pytest.approx(max(theirs))
    ours = worst(gpupif.models.enhanced_beta_likeness, frame, known, sensitive, every)
    assert ours == pytest.approx(max(right), rel=1e-11, abs=1e-12)


@given(question=questions())
@FEW
def test_metrics_of_class_sizes_agree_with_pycanon(question):
    frame, known, sensitive = question
    found = gpupif.risk(frame, known)
    classes = gpupif.models.class_risks(frame.groupby(known).size(), k=found.k)
    theirs = metrics.sizes_ec(frame, known)
    assert (classes.classes, classes.k, classes.largest) == (theirs["n_ec"], theirs["min_ec"], theirs["max_ec"])
    assert classes.average_size == pytest.approx(theirs["mean_ec"])
    assert classes.normalized_average_size == pytest.approx(metrics.average_ecsize(frame, frame, known))
    assert found.classes.discernibility == metrics.discernability_metric(frame, frame, known)
    assert found.classes.prosecutor.highest == pytest.approx(metrics.max_rir(frame, known))
    assert gpupif.information.entropy(frame, sensitive[:1]) * math.log(2) == pytest.approx(
        metrics.sa_entropy(frame, sensitive[0])
    )
    # Its average risk is over classes, so that a class of one row weighs as much as one of thousands: El Emam's is
    # over rows.
    sizes = frame.groupby(known).size()
    assert metrics.average_rir(frame, known) == pytest.approx((1 / sizes).mean())
    assert found.classes.prosecutor.average == pytest.approx((sizes * (1 / sizes)).sum() / len(frame))
