"""Draw the pictures of README.md and the pages from gpupif's own results: `pip install '.[docs]'`, then run this file.

landscape.png: the information gain of every cell of a synthetic census, before and after the treatment that
`gpupif protect` finds for k >= 5.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

import gpupif

mpl.use("Agg")
from matplotlib import pyplot as plt

IMAGES = Path(__file__).parent
KNOWN = ["age", "sex", "region", "education"]
SENSITIVE = ["occupation", "income_band"]
BANDS = 200


def landscape() -> None:
    """Draw rows sorted by their gain and gathered into bands, columns by FIG; what the attacker learns is in bits."""
    before = gpupif.datasets.census(20_000, seed=1)[[*KNOWN, *SENSITIVE]]
    found = gpupif.protect(before, "k>=5", quasi_identifiers=KNOWN, sensitive=SENSITIVE, suppress=0.02)
    tables = {"as it is": before, "after gpupif protect, k ≥ 5": gpupif.treat(before, found.plan).table}
    gains = {name: gpupif.score(table, "cig").cig for name, table in tables.items()}
    order = gains["as it is"].sum().sort_values(ascending=False).index
    highest = max(float(_bands(gain[order]).max()) for gain in gains.values())
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axis, (name, table) in zip(axes, tables.items(), strict=True):
        gain = gains[name][order]
        picture = axis.imshow(
            _bands(gain),
            aspect="auto",
            interpolation="nearest",
            cmap="viridis",
            vmin=0,
            vmax=highest,
            extent=(0, 6, 100, 0),
        )
        risk = gpupif.risk(table, KNOWN)
        pif = np.percentile(gain.sum(axis=1), 95)
        facts = f"{risk.classes.uniques / len(table):.1%} of rows alone in their class, PIF 95: {pif:.1f} bits"
        axis.set_title(f"{name}\n{facts}", fontsize=9)
        axis.set_xticks(np.arange(len(order)) + 0.5, [str(column).replace("_", "\n") for column in order], fontsize=8)
    axes[0].set_ylabel("rows, riskiest first (%)", fontsize=8)
    figure.colorbar(picture, ax=axes, label="information gain of a cell, bits")
    figure.savefig(IMAGES / "landscape.png", dpi=130, metadata={"Software": None})


def _bands(gain: pd.DataFrame) -> np.ndarray:
    """Return the mean gain of each band of rows and each column."""
    rows = gain.sum(axis=1).sort_values(ascending=False, kind="stable").index
    parts = np.array_split(gain.loc[rows].to_numpy(), BANDS)
    return np.array([part.mean(axis=0) for part in parts])


if __name__ == "__main__":
    landscape()
