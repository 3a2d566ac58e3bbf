"""Combinations for which measures are not defined are refused, in the words of their table."""

from __future__ import annotations

import pandas as pd
import pytest

import gpupif
from gpupif.cli.option_table import rows_of
from gpupif.cli.options import Given
from gpupif.cli.toxic import toxic
from gpupif.utils import refused_combinations
from tests.helpers.checkout import ROOT

TABLE = pd.DataFrame({"a": [1, 1, 2], "b": [1, None, 2], "people": [1.0, 0.5, 3.0]})
ASKED = {
    refused_combinations.WILDCARD_ENTROPIES: [
        lambda: gpupif.information.entropy(TABLE, missing="wildcard"),
        lambda: gpupif.information.mutual_information(TABLE, "a", "b", missing="wildcard"),
        lambda: gpupif.toxic_pairs(TABLE, missing="wildcard"),
    ],
    refused_combinations.WILDCARD_DIS: [
        lambda: gpupif.suda(TABLE, 2, missing="wildcard", sampling_fraction=0.1),
        lambda: gpupif.suda(TABLE, 2, missing="wildcard", weights="people"),
    ],
    refused_combinations.WILDCARD_GLOBAL_RISK: [
        lambda: gpupif.global_risk(TABLE, ["a", "b"], sampling_fraction=0.5, missing="wildcard")
    ],
    refused_combinations.WEIGHTS_WITHOUT_SAMPLE: [lambda: gpupif.suda(TABLE, 2, weights="people")],
    refused_combinations.WEIGHTS_AND_FRACTION: [lambda: gpupif.suda(TABLE, 2, weights="people", sampling_fraction=0.1)],
    # Two options of the command line that do not go together; the function has no weights.
    refused_combinations.WEIGHTS_RATIOS: [
        lambda: toxic(
            Given(rows_of("toxic"), dict.fromkeys(("size", "by", "max_size")) | {"alpha": 0.9, "weights": "people"})
        )
    ],
}


@pytest.mark.parametrize(
    "one", refused_combinations.REFUSED_COMBINATIONS, ids=lambda one: f"{one.option} of {one.measures}"
)
def test_each_refused_combination_gives_the_documented_sentence(one):
    for ask in ASKED[one]:
        with pytest.raises(gpupif.InputError) as error:
            ask()
        said = str(error.value)
        assert said.startswith(f"{one.option}: not defined for {one.measures}: {one.why}")
        assert said.endswith(f". {one.instead}")
    assert (
        f"| `{one.option}` | {one.measures} | {one.why} |"
        in (ROOT / "docs" / "explanation" / "combinations.md").read_text("utf-8").splitlines()
    )
