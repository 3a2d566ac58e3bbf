"""An example of each treatment that there is, on one table, for tests of what all have in common."""

from __future__ import annotations

import numpy as np
import pandas as pd

import gpupif
from gpupif.treatment.plan import TREATMENTS

KEY = bytes(range(32))


def example_table(rows=120, seed=0):
    """Columns of all kinds that treatments are for, with missing values in some."""
    rng = np.random.default_rng(seed)
    born = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20000, rows), "D")
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 96, rows),
            "sex": rng.choice(["f", "m"], rows),
            "job": pd.Categorical(rng.choice(list("abcdefgh"), rows, p=[0.3, 0.25, 0.2, 0.1, 0.08, 0.04, 0.02, 0.01])),
            "income": rng.normal(2500, 700, rows).round(2),
            "born": born,
            "zip": rng.choice(["02139", "02138", "94110", "10001"], rows),
            "person": rng.choice([f"p{number}" for number in range(rows // 3)], rows),
            "ill": rng.choice([True, False], rows, p=[0.2, 0.8]),
            "note": np.where(rng.random(rows) < 0.2, None, rng.choice(["x", "y", "z"], rows)),
            "kept": rng.integers(0, 5, rows).astype("int16"),
        }
    )
    # All rows of a person have the same rent.
    return table.assign(rent=table["person"].str[1:].astype(int) * 7 % 11 * 100)


def _examples():
    """By word, a function that makes treatments; only those whose class there is."""
    known = ["age", "sex", "job"]
    return {
        "drop": lambda kind: [kind(["note", "zip"])],
        "recode": lambda kind: [
            kind("age", edges=[18, 30, 50, 70, 120]),
            kind("job", mapping={"a": "white", "b": "white", "c": "blue"}, unmapped="keep"),
            kind("zip", mapping={"02139": "MA", "02138": "MA"}, unmapped="suppress"),
        ],
        "recode_rows": lambda kind: [
            kind({"kept": [0, 1, 2], "sex": [0, 0, 0]}, k=14),
            kind(
                {"note": [0, 1], "sex": [0, 0]},
                require=["distinct_l(job)>=7", "t<=0.3"],
                sensitive=["job"],
                remove=True,
            ),
        ],
        "cap": lambda kind: [kind("age")],
        "top_code": lambda kind: [kind("income", limit=3000)],
        "bottom_code": lambda kind: [kind("income", limit=2000)],
        "rare": lambda kind: [kind("job", below=6), kind("age", below=2)],
        "date_part": lambda kind: [kind("born", to="quarter")],
        "zip3": lambda kind: [kind("zip", populations={"021": 900_000, "941": 15_000, "100": 20_001})],
        "round": lambda kind: [kind("income", base=100), kind("age", base=5)],
        "pseudonym": lambda kind: [kind("person", method="hmac"), kind("sex", method="permutation")],
        "microaggregate": lambda kind: [kind("income", k=3)],
        "microaggregate_together": lambda kind: [kind(["income", "age"], k=3, within=["sex"])],
        "correlated_noise": lambda kind: [kind(["income", "age"], variance=0.1, rescaled=True)],
        "rank_swap": lambda kind: [kind(["income", "born"], reach=0.1)],
        "shuffle": lambda kind: [kind(["income"], given=["age"])],
        "declared_columns": None,
        "suppress": lambda kind: [
            kind(["job", "age"], where="csf > 0.4", known=known),
            kind(["age", "sex", "job"], k=2),
        ],
        "suppress_rows": lambda kind: [
            kind(k=2, quasi_identifiers=["sex", "job"]),
            kind(where="cig >= 6", columns=["age"]),
        ],
        "randomized_response": lambda kind: [kind("ill", keep=0.5), kind("job", epsilon=1.0, replaced="prior")],
        "pram": lambda kind: [kind("sex", invariant=0.7), kind("note", invariant=0.5, missing="category")],
        "noise": lambda kind: [kind("income", scale=100)],
        "jitter": lambda kind: [kind("age", within=2), kind("born", within=14)],
        "shift_dates": lambda kind: [kind(["born"], person="person", days=30)],
        "swap": lambda kind: [
            kind(["income"], within=["sex"], share=0.4),
            kind(["rent"], within=[], share=0.7, household="person"),
        ],
    }


EXAMPLES = _examples()
HIERARCHIES = {"kept": {"widths": [2]}, "note": {"values": {"x": ["*"], "y": ["*"], "z": ["*"]}}}


def plans():
    """Return plans by name: for each treatment its examples, "all" that may follow each other, and the "rest"."""
    found = {
        do: gpupif.Plan(EXAMPLES[do](kind), HIERARCHIES if do == "recode_rows" else None)
        for do, kind in TREATMENTS.items()
        if EXAMPLES.get(do) is not None
    }
    order = [
        "pram",
        "randomized_response",
        "jitter",
        "swap",
        "noise",
        "correlated_noise",
        "rank_swap",
        "shuffle",
        "shift_dates",
        "suppress",
        "recode",
        "suppress_rows",
        "drop",
    ]
    rest = [do for do in found if do not in order]
    # Once ages are capped they are no numbers.
    rest.sort(key=["cap", "rare"].__contains__)
    found["all"] = _together([one for do in order if do in found for one in found[do].treatments])
    found["rest"] = _together([one for do in rest for one in found[do].treatments], HIERARCHIES)
    found["suppress_rows"] = _together(found["suppress_rows"].treatments)
    return found


def _together(treatments, hierarchies=None):
    """A plan whose later treatments break what earlier ones require."""
    return gpupif.Plan(treatments, hierarchies, criteria={"require": []})


PLANS = plans()
