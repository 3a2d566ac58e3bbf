"""The verdict of each result: at most three sentences of plain text, with figures from the definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gpupif

pytestmark = pytest.mark.usefixtures("on_cpu")

MARKED = "[red]a\x1b[2J"
SECRET = "secret-value\x1b[2J"
KNOWN = ["sex", "age"]


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(1)
    rows = 80
    return pd.DataFrame(
        {
            "sex": random.choice(["m", "f"], rows),
            "age": random.integers(20, 45, rows),
            MARKED: random.choice([SECRET, "y", "z"], rows, p=[0.1, 0.5, 0.4]),
        }
    )


RESULTS = {
    "scores": lambda table: gpupif.score(table, columns=[MARKED], known=KNOWN),
    "scores of other measures": lambda table: gpupif.score(table, ["unique", "csf"], columns=[MARKED], known=KNOWN),
    "scores without figures": lambda table: gpupif.score(table, ["prior"]),
    "scores to any": lambda table: gpupif.score(table, known=1),
    "scores to several": lambda table: gpupif.score(table, attackers={"one": ["sex"], "two": KNOWN}),
    "risk": lambda table: gpupif.risk(table, KNOWN, MARKED),
    "risk without attributes": lambda table: gpupif.risk(table, KNOWN),
    "global risk": lambda table: gpupif.global_risk(table, KNOWN, sampling_fraction=0.5),
    "special uniques": lambda table: gpupif.suda(table, sampling_fraction=0.5),
    "no special uniques": lambda table: gpupif.suda(pd.concat([table, table])),
    "toxic pairs": gpupif.toxic_pairs,
    "smallest sets": lambda table: gpupif.quasi_identifiers(table, 0.5),
    "no sets": lambda table: gpupif.quasi_identifiers(table[["sex"]], 1.0),
    "inspection": gpupif.inspect,
    "advice": gpupif.advise,
    "protection": lambda table: gpupif.protect(table, "k>=3", quasi_identifiers=KNOWN, suppress=0.1),
    "comparison": lambda table: gpupif.compare(
        table, table.assign(age=table["age"] // 10), quasi_identifiers=KNOWN, sensitive=[MARKED]
    ),
    "record": lambda table: gpupif.treat(table, {"treatment": [{"do": "drop", "columns": ["age"]}]}).record,
}


@pytest.mark.parametrize("case", RESULTS)
def test_a_verdict_is_three_sentences_of_plain_text(table, case):
    result = RESULTS[case](table)
    said = result.verdict()
    assert 1 <= len(said) <= 3
    assert [sentence for sentence in said if not sentence.isprintable() or not sentence.endswith(".")] == []
    hidden = result.verdict(redact=True)
    assert [sentence for sentence in hidden if "secret-value" in sentence] == []
    assert 1 <= len(hidden) <= len(said)
    # What is printed begins with it, whatever the width.
    if not isinstance(result, gpupif.results.Scores | gpupif.results.SpecialUniques):
        assert said[0].split()[-1] in str(result)


def test_figures_of_scores_and_classes(table):
    classes = table.groupby(KNOWN)[MARKED].transform("size")
    alone = f"{100 * (classes == 1).mean():.4g} % of rows"
    scores = gpupif.score(table, ["cig", "unique"], columns=[MARKED], known=KNOWN)
    asked, gains, rows = scores.verdict()
    assert asked == "80 rows x 1 column scored. The attacker knows sex, age."
    assert f"gives away {scores.cig[MARKED].mean():.3g} of " in gains
    assert f"at most {scores.cig[MARKED].max():.3g} bits." in gains
    assert rows.startswith(f"{alone} are alone in their class; ")
    nothing = gpupif.score(table.assign(same="x"), ["cig", "csf", "unique"], columns="same", known=KNOWN).verdict()
    assert nothing[1:] == [
        "What the attacker knows tells nothing of any value: every CIG is 0.",
        f"{alone} are alone in their class.",
    ]
    asked, share, attributes = gpupif.risk(table, KNOWN, MARKED).verdict()
    assert asked == f"The attacker knows sex, age: 80 rows in {table.groupby(KNOWN).ngroups} classes, k = 1."
    assert share.startswith(f"{alone} ({(classes == 1).sum()}) are alone in their class")
    certain = (table.groupby(KNOWN)[MARKED].transform("nunique") == 1).sum()
    assert f"certain for {certain} rows ({100 * certain / len(table):.4g} %)" in attributes


def test_values_are_left_out_on_request():
    # Half of the people have each value, and only one has both of the second.
    values = [("near", "y")] * 20 + [("far", "z")] * 20 + [("near", SECRET)]
    pairs = gpupif.toxic_pairs(pd.DataFrame(values, columns=["home", MARKED]).iloc[[*range(20), *range(20, 41), 40]])
    assert [sentence for sentence in pairs.verdict() if "secret-value" in sentence or "far" in sentence] != []
    assert [s for s in pairs.verdict(redact=True) if any(value in s for value in ("secret", "near", "far", "z,"))] == []
