"""The disclosure measures of a table: an entry for each, the extreme of a measure of cells.

A new measure is a new entry. The attacker knows the quasi-identifiers, so the cohort of a cell is its equivalence
class. The cells are the cells of a sensitive attribute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from ..engines.base import Axis

# Numbers that differ by this share of them or less differ by rounding.
ROUNDING = 1e-12


def _count(value: float, _: Axis | None) -> int:
    return int(value)


def _plain(value: float, _: Axis | None) -> float:
    return value


def _effective(bits: float, _: Axis | None) -> float:
    """Return how many equally frequent values have this entropy: 3 for log2 3 bits."""
    values = math.exp2(bits)
    return float(round(values)) if abs(values - round(values)) < ROUNDING * values else values


def _scaled(distance: float, axis: Axis | None) -> float:
    """Return a distance as a share of the longest distance between two values."""
    return distance if axis is None else distance / axis.longest


SHARES = "shares are of weights in place of rows; rows of weight 0 are in no class"


@dataclass(frozen=True)
class Model:
    """A disclosure measure of a table.

    name: str. The name in ``models=``, in results of `gpupif.risk` and in their JSON.
    cell: str. The measure of cells of which this is the extreme. If it ends in "_", it is a family that needs an l.
    highest: bool. True for the highest value over the cells, False for the lowest.
    unit: str. The unit of the values.
    range: str. The range of the values.
    meaning: str. The meaning in words.
    source: str. The publication that defines the measure.
    finish: callable. Returns the measure from the extreme and the axis of the attribute's values. Default: the extreme.
    example: float. The value for the example table of `Measure`, with quasi-identifier g (and l = 2). Default NaN.
    weights: str. The meaning for rows with sampling weights.
    wildcards: str. The meaning if missing values match every value, so that classes overlap.
    matching: str. The measure of cells in that case. Default "": `cell`.
    heading: str. The column heading in printed tables. Default "": the name.
    compares: bool. True if classes are compared with the distribution of the table. Default False.
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
    compares: bool = False

    @property
    def of_l(self) -> bool:
        """True for a measure that needs an l."""
        return self.cell.endswith("_")

    def measure(self, l_values: int, matching: bool = False) -> str:
        """Return the measure of cells of which this is the extreme. matching: if missing values match every value."""
        return f"{self.cell}{l_values}" if self.of_l else (matching and self.matching) or self.cell

    def worst(self, values: Iterable[float]) -> float:
        """Return the value of highest risk. values: of several sensitive attributes."""
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
            "alpha of (alpha,k)-anonymity: the highest share of a sensitive value in a class",
            "Wong, Li, Fu & Wang, (alpha, k)-Anonymity (2006), section 2",
            example=0.75,
            wildcards="the highest share of a value in the known values of the rows that match a row",
            # "posterior" is the share of the cell's own value. If classes overlap, perhaps no row whose class this is
            # has the most frequent value of the class. "recursive_1" is the share of that value for every row.
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
            "t-closeness: the longest earth mover's distance between the distributions of sensitive values in a class "
            "and in the table",
            "Li, Li & Venkatasubramanian, t-Closeness (2007), sections 4 and 5",
            _scaled,
            example=0.25,
            wildcards="from the known values of the rows that match a row to all known values",
            compares=True,
        ),
        Model(
            "basic_beta",
            "relative_gain",
            True,
            "ratio",
            "0 and up",
            "basic beta-likeness: the highest relative rise of a sensitive value's frequency in a class",
            "Cao & Karras, Publishing Microdata with a Robust Privacy Guarantee (2012), definition 2",
            example=1.0,
            wildcards="the highest relative rise of a value's frequency in the known values of the rows that match "
            "a row",
            matching="highest_relative_gain",
            heading="beta",
            compares=True,
        ),
        Model(
            "enhanced_beta",
            "enhanced_gain",
            True,
            "ratio",
            "0 and up",
            "enhanced beta-likeness: basic_beta if no rise is above -ln of the value's frequency in the table, else "
            "infinite: no beta holds",
            "Cao & Karras, Publishing Microdata with a Robust Privacy Guarantee (2012), definition 3",
            example=1.0,
            wildcards="of the known values of the rows that match a row",
            matching="highest_enhanced_gain",
            heading="enh. beta",
            compares=True,
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
            compares=True,
        ),
    )
}


def resolve_models(names: str | Iterable[str] | None) -> list[Model]:
    """Return the disclosure measures with these names, each once; None: all measures.

    Raises InputError for an unknown name, and for no name.
    """
    if names is None:
        return list(MODELS.values())
    wanted = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(dict.fromkeys(names))
    unknown = [name for name in wanted if not isinstance(name, str) or name not in MODELS]
    if unknown or not wanted:
        came = ", ".join(map(repr, unknown)) or "none"
        raise InputError(f"models: expected some of {', '.join(MODELS)}; got {came}.")
    return [MODELS[name] for name in wanted]
