"""The disclosure measures of a table: one entry each, the extreme of a measure of its cells. A new one is a new entry.

The attacker knows the quasi-identifiers, so that the cohorts are the equivalence classes; the cells are those of a
sensitive attribute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from ..engines.base import Axis

# What is so little off a whole number is off it by rounding.
WHOLE = 1e-12


def _count(value: float, _: Axis | None) -> int:
    return int(value)


def _plain(value: float, _: Axis | None) -> float:
    return value


def _effective(bits: float, _: Axis | None) -> float:
    """Return how many equally frequent values have this entropy: 3 for log2 3."""
    values = math.exp2(bits)
    return float(round(values)) if abs(values - round(values)) < WHOLE * values else values


def _scaled(distance: float, axis: Axis | None) -> float:
    """A distance as a share of the longest."""
    return distance if axis is None else distance / axis.longest


SHARES = "shares are of weights in place of rows; rows of weight 0 are in no class"


@dataclass(frozen=True)
class Model:
    """A disclosure measure of a table.

    name: as in `models=`, in what `gpupif.risk` gives and in its JSON. cell: the measure of a cell that it is an
    extreme of; where that ends in _, of the family, with l behind it. highest: the highest, else the lowest. unit,
    range: of its values; meaning; source: where it is defined. finish: makes it of that extreme and of where the values
    of the attribute lie. example: its value for the table of `Measure`, g being the quasi-identifier (l: 2).
    weights: what it is of rows with sampling weights. wildcards: what it is where missing values match every value, so
    that classes overlap; matching: the measure of a cell then, where it is another one. heading: of its column where
    results are printed, where that is not its name.
    """

    name: str
    cell: str
    highest: bool
    unit: str
    range: str
    meaning: str
    source: str
    finish: Callable[[float, Axis | None], float] = _plain
    example: float = math.nan
    weights: str = SHARES
    wildcards: str = ""
    matching: str = ""
    heading: str = ""

    @property
    def of_l(self) -> bool:
        """True for a measure that needs an l."""
        return self.cell.endswith("_")

    def measure(self, l_values: int, matching: bool = False) -> str:
        """The measure of a cell that it is the extreme of; matching: where missing values match every value."""
        return f"{self.cell}{l_values}" if self.of_l else (matching and self.matching) or self.cell

    def worst(self, values: Iterable[float]) -> float:
        """The one that tells most, of several attributes."""
        return max(values) if self.highest else min(values)


L_DIVERSITY = "Machanavajjhala et al., l-Diversity (2007), section {}"

MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model(
            "k",
            "cohort_size",
            False,
            "rows",
            "1 and up",
            "k-anonymity: rows of the smallest equivalence class",
            "Sweeney, k-Anonymity (2002)",
            _count,
            example=4,
            weights="counts rows, whatever their weights",
            wildcards="the fewest rows that match a row",
        ),
        Model(
            "alpha",
            "posterior",
            True,
            "share",
            "above 0 to 1",
            "alpha of (alpha,k)-anonymity: the highest share that a sensitive value has of a class",
            "Wong, Li, Fu & Wang, (alpha, k)-Anonymity (2006), section 2",
            example=0.75,
            wildcards="the highest share of a value in the known values of the rows that match a row",
            # Of the cell's own value, which in a class that overlaps others need not be the most frequent one.
            matching="recursive_1",
        ),
        Model(
            "distinct_l",
            "distinct_values",
            False,
            "values",
            "1 and up",
            "distinct l-diversity: the fewest different sensitive values of a class",
            L_DIVERSITY.format("4"),
            _count,
            example=2,
            weights="values that a row of a weight above 0 has",
            wildcards="the fewest different known values of the rows that match a row, if they have one",
            heading="distinct l",
        ),
        Model(
            "entropy_l",
            "entropy",
            False,
            "values",
            "1 and up",
            "entropy l-diversity: l such that the lowest entropy of the sensitive values of a class is log l",
            L_DIVERSITY.format("4.1"),
            _effective,
            example=1.754765,
            wildcards="of the known values of the rows that match a row",
            heading="entropy l",
        ),
        Model(
            "recursive_c",
            "recursive_",
            True,
            "ratio",
            "above 0",
            "recursive (c,l)-diversity: the highest r_1 / (r_l + ... + r_m) of a class, its counts by value, the "
            "highest first; it holds for any greater c",
            L_DIVERSITY.format("4.2"),
            example=3.0,
            weights="counts by value are sums of weights",
            wildcards="of the known values of the rows that match a row",
            heading="c",
        ),
        Model(
            "t",
            "emd",
            True,
            "share of the longest distance",
            "0 to 1",
            "t-closeness: the farthest that the sensitive values of a class are from those of the table, by the earth "
            "mover's distance",
            "Li, Li & Venkatasubramanian, t-Closeness (2007), sections 4 and 5",
            _scaled,
            example=0.25,
            wildcards="from the known values of the rows that match a row to all known values",
        ),
        Model(
            "basic_beta",
            "relative_gain",
            True,
            "share",
            "0 and up",
            "basic beta-likeness: by what share of itself the frequency of a sensitive value rises at most in a class",
            "Cao & Karras, Publishing Microdata with a Robust Privacy Guarantee (2012), definition 2",
            example=1.0,
            wildcards="by what share of itself the frequency of a value rises at most in the known "
            "values of the rows that match a row",
            matching="highest_relative_gain",
            heading="beta",
        ),
        Model(
            "enhanced_beta",
            "enhanced_gain",
            True,
            "share",
            "0 and up",
            "enhanced beta-likeness: basic_beta where no rise is above -ln of the value's frequency in the table, else "
            "infinite: no beta holds",
            "Cao & Karras, Publishing Microdata with a Robust Privacy Guarantee (2012), definition 3",
            example=1.0,
            wildcards="of the known values of the rows that match a row",
            matching="highest_enhanced_gain",
            heading="enh. beta",
        ),
        Model(
            "delta",
            "log_ratio",
            True,
            "nats",
            "0 and up",
            "delta-disclosure: the highest |ln(p / q)| of a sensitive value's frequency in a class and in the table, "
            "of values that the class has; it holds for any greater delta",
            "Brickell & Shmatikov, The Cost of Privacy (2008), section 4",
            example=0.693147,
            wildcards="of the known values of the rows that match a row",
            matching="highest_log_ratio",
        ),
    )
}


def resolve_models(names: str | Iterable[str] | None) -> list[Model]:
    """The disclosure measures of these names, each once; None: all.

    Raises InputError for a name that is none.
    """
    if names is None:
        return list(MODELS.values())
    wanted = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(dict.fromkeys(names))
    unknown = [name for name in wanted if not isinstance(name, str) or name not in MODELS]
    if unknown or not wanted:
        came = ", ".join(map(repr, unknown)) or "none"
        raise InputError(f"models: expected some of {', '.join(MODELS)}; got {came}.")
    return [MODELS[name] for name in wanted]
