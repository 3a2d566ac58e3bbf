"""The quantities that a criterion may limit: figures of classes, disclosure measures, figures of scores and of `risk`.

Each quantity says whether coarser values of any column only ever make it safer: a search may prune by such quantities.
Among figures of scores they are the highest divergence of a cohort's distribution from the table's (data processing
inequality), and the mean of a convex divergence (piflib manual, sections 1.4 and 1.7). No
search may prune by percentiles (PIF_95 of a random table rose by 0.22 bits), CSF or mean Rényi divergences.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ..disclosure.class_risks import CLASS_FIGURES, ClassFigure
from ..disclosure.models import MODELS, Model
from ..disclosure.risk_figures import NOTHING_GIVEN, RISK_FIGURES, RiskFigure, find_figure
from ..errors import InputError, did_you_mean
from ..measures import MEASURES, Measure, find_measure, is_measure, suggest_measure
from ..utils.validation import whole_number

# Measures whose highest score never rises when columns are made coarser.
MAXIMUM_FALLS = ("cig", "total_variation", "hellinger", "jensen_shannon")
# Measures whose mean score never rises either: they are convex in the two distributions together (f-divergences).
MEAN_FALLS = ("cig", "total_variation", "jensen_shannon")
# Measures whose score of every row gets safer, and so every figure of their scores.
EACH_IMPROVES = ("cohort_size", "class_size", "reidentification_risk", "individual_risk", "unique")
ALIASES = {"uniques": "unique_rows"}
STATISTICS = ("mean", "max", "min")
# The sum of the gains of a row. It is a measure of rows: a table of scores has no column of it.
ROW_GAIN = "rig"


class Quantity(ABC):
    """A quantity that a criterion limits. column: the text of the name of its column, None for all columns."""

    column: str | None = None

    @property
    @abstractmethod
    def high_is_bad(self) -> bool:
        """True if a criterion is an upper limit of the quantity."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The text of the quantity in a criterion."""

    @abstractmethod
    def only_improves(self, any_known: bool) -> bool:
        """Return whether coarser values of any column never make it less safe.

        any_known: whether the attacker knows any few of the columns.
        """


@dataclass(frozen=True)
class ClassQuantity(Quantity):
    """A figure of the equivalence classes. parameter: the k, or the threshold of risk, that the figure depends on."""

    figure: ClassFigure
    parameter: float | None = None

    @property
    def high_is_bad(self) -> bool:
        return self.figure.high_is_bad

    @property
    def text(self) -> str:
        return self.figure.name + ("" if self.parameter is None else f"({self.parameter:g})")

    @property
    def k(self) -> int:
        """The k that the figure depends on; 5 if it depends on none."""
        return int(self.parameter) if self.parameter is not None and self.figure.depends == ("k",) else 5

    @property
    def threshold(self) -> float | None:
        """The threshold of risk that the figure depends on; None if it depends on none."""
        return None if self.figure.depends == ("k",) else self.parameter

    def only_improves(self, any_known: bool) -> bool:
        return self.figure.only_improves


@dataclass(frozen=True)
class ModelQuantity(Quantity):
    """A disclosure measure: k, or a measure of a sensitive attribute, or of the worst attribute (column None).

    l_values: the l of recursive (c,l)-diversity, 0 for other measures.
    """

    model: Model
    column: str | None = None
    l_values: int = 0

    @property
    def high_is_bad(self) -> bool:
        return self.model.highest

    @property
    def text(self) -> str:
        inside = ", ".join(
            [*([self.column] if self.column else []), *([f"l={self.l_values}"] if self.l_values else [])]
        )
        return self.model.name + (f"({inside})" if inside else "")

    @property
    def sensitive(self) -> bool:
        """True if the measure is of sensitive attributes."""
        return self.model.name != "k"

    def only_improves(self, any_known: bool) -> bool:
        # Delta only compares values that a class has. If one of two classes lacks a value, the share of the value in
        # both classes together may be far from its share in the table.
        return self.model.name != "delta"


@dataclass(frozen=True)
class ScoreQuantity(Quantity):
    """A figure of the scores of cells: of a column, or of the worst column (None).

    measure: the measure of the scores; None for row gains, the sums of the CIG of a row. percentile: 0 (the lowest
    score) to 100 (the highest score); None for the mean.
    """

    measure: Measure | None
    percentile: float | None
    column: str | None = None

    @property
    def high_is_bad(self) -> bool:
        return self.measure is None or not self.measure.low_is_risky

    @property
    def text(self) -> str:
        named = {None: "mean", 0.0: "min", 100.0: "max"}
        statistic = named.get(self.percentile) or f"p{self.percentile:g}"
        if self.measure is None:
            return f"{statistic} rig" if self.percentile in named else f"pif{self.percentile:g}"
        return f"{statistic} {self.measure.name}" + (f"({self.column})" if self.column else "")

    @property
    def is_of_size(self) -> bool:
        """True if the figure depends on the sizes of cohorts alone, whatever the values of the column are."""
        return self.measure is not None and self.measure.is_size

    @property
    def is_extreme(self) -> bool:
        """True if the figure is the lowest or the highest score."""
        return self.percentile in (0, 100)

    def only_improves(self, any_known: bool) -> bool:
        if self.measure is None:
            # The worst of several attackers differs from row to row: the mean of the rows need not fall.
            return self.percentile is None and not any_known
        name = self.measure.name
        if name in EACH_IMPROVES:
            return True
        if self.percentile is None:
            return name in MEAN_FALLS and not any_known
        return self.percentile == 100 and (name in MAXIMUM_FALLS or name.startswith("renyi_"))


@dataclass(frozen=True)
class RiskQuantity(Quantity):
    """A figure of the result of `gpupif.risk`.

    number: the k, the threshold of risk or the limit of global risk that the figure depends on; None for the defaults
    of `gpupif.risk`.
    """

    figure: RiskFigure
    number: float | None = None

    @property
    def high_is_bad(self) -> bool:
        return self.figure.high_is_bad

    @property
    def text(self) -> str:
        return self.figure.path + ("" if self.number is None else f"({self.number:g})")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `gpupif.risk` on which the figure depends."""
        return self.figure.arguments(self.number)

    def only_improves(self, any_known: bool) -> bool:
        return self.figure.only_improves(NOTHING_GIVEN)


def range_of(quantity: Quantity) -> tuple[str, float, float]:
    """Return the range of the values of a quantity in words such as "0 to 1", and its lowest and highest value."""
    if isinstance(quantity, ClassQuantity | RiskQuantity):
        words = quantity.figure.range
    elif isinstance(quantity, ModelQuantity):
        words = quantity.model.range
    else:
        assert isinstance(quantity, ScoreQuantity)
        words = "0 and up" if quantity.measure is None else quantity.measure.range
    return range_of_words(words)


def range_of_words(words: str) -> tuple[str, float, float]:
    """Return a range in words such as "0 to 1", and its lowest and highest value."""
    if words.startswith("any number"):
        return words, -math.inf, math.inf
    numbers = list(map(float, re.findall(r"-?\d+", words)))
    return words, min(numbers), max(numbers) if len(numbers) > 1 and "up" not in words else math.inf


def read_quantity(text: str, statistic: str | None, word: str, inside: str | None) -> Quantity:
    """Return the quantity that a criterion names. Raises InputError.

    text: the criterion, for messages. statistic: the word before the name, such as "max". word: the name. inside: the
    text in brackets after the name.
    """
    name = ALIASES.get(word, word)
    pif = re.fullmatch(r"(?:pif|p(?=\d))_?(\d+(?:\.\d+)?)", name)
    if statistic is None and name in CLASS_FIGURES:
        return _class_quantity(text, CLASS_FIGURES[name], inside)
    if statistic is None and name in MODELS:
        return _model_quantity(text, MODELS[name], inside)
    if pif and statistic is None:
        _refuse_inside(text, word, inside)
        return ScoreQuantity(None, _percentile(text, float(pif[1])))
    if name == ROW_GAIN:
        _refuse_inside(text, word, inside)
        return ScoreQuantity(None, _percentile_of(text, statistic, False))
    if name == "fig":
        statistic, name = statistic or "mean", "cig"
    if not is_measure(name):
        figure = _risk_quantity(text, word, inside) if statistic is None else None
        if figure is not None:
            return figure
        raise InputError(f"criterion {text!r}: {_unknown(word, statistic)}")
    measure = find_measure(name)
    return ScoreQuantity(measure, _percentile_of(text, statistic, measure.low_is_risky), inside)


def _class_quantity(text: str, figure: ClassFigure, inside: str | None) -> ClassQuantity:
    """Return a figure of classes with the number in brackets that it depends on."""
    if not figure.depends:
        _refuse_inside(text, figure.name, inside)
        return ClassQuantity(figure)
    needed = figure.depends[-1]
    example = f"{figure.name}({5 if needed == 'k' else 0.2})"
    try:
        number = float(inside or "")
    except ValueError:
        raise InputError(
            f"criterion {text!r}: {figure.name} depends on {needed}: expected it in brackets, as in {example}."
        ) from None
    if needed == "k":
        return ClassQuantity(figure, whole_number(f"criterion {text!r}: k", number, "rows"))
    if not 0 < number <= 1:
        raise InputError(
            f"criterion {text!r}: expected a threshold above 0 and up to 1, as in {example}; got {number:g}."
        )
    return ClassQuantity(figure, number)


def _risk_quantity(text: str, word: str, inside: str | None) -> RiskQuantity | None:
    """Return a figure of the result of `gpupif.risk` with the number in brackets; None if no figure has this name."""
    try:
        figure = find_figure(word)
        if figure is None:
            return None
        quantity = RiskQuantity(figure, None if inside is None else float(inside))
        # Raises InputError for a number that the figure does not take.
        quantity.arguments  # noqa: B018
    except InputError as error:
        raise InputError(f"criterion {text!r}: {error}") from None
    except ValueError:
        raise InputError(f"criterion {text!r}: expected a number in brackets after {word}, got ({inside}).") from None
    return quantity


def _model_quantity(text: str, model: Model, inside: str | None) -> ModelQuantity:
    """Return a disclosure measure with the attribute and the l in brackets."""
    if model.name == "k":
        _refuse_inside(text, "k", inside)
        return ModelQuantity(model)
    column, l_values = inside, 0
    if model.of_l:
        match = re.fullmatch(r"(?:(?P<column>.*\S)\s*,\s*)?l\s*=\s*(?P<number>\d+)", inside or "")
        if match is None:
            raise InputError(
                f"criterion {text!r}: {model.name} depends on l: expected it in brackets, as in {model.name}(l=3) or "
                f"{model.name}(disease, l=3)."
            )
        column, l_values = match["column"], whole_number(f"criterion {text!r}: l", int(match["number"]), "values")
    return ModelQuantity(model, column or None, l_values)


def _refuse_inside(text: str, word: str, inside: str | None) -> None:
    if inside is not None:
        raise InputError(f"criterion {text!r}: {word} is of the whole table: expected no brackets, got ({inside}).")


def _percentile(text: str, number: float) -> float:
    if not 0 <= number <= 100:
        raise InputError(f"criterion {text!r}: expected a percentile from 0 to 100, got {number:g}.")
    return number


def _percentile_of(text: str, statistic: str | None, low_is_risky: bool) -> float | None:
    """Return the percentile that a statistic names, None for the mean; the worst score without a statistic."""
    if statistic is None:
        return 0.0 if low_is_risky else 100.0
    if statistic in STATISTICS:
        return {"mean": None, "max": 100.0, "min": 0.0}[statistic]
    return _percentile(text, float(statistic[1:].lstrip("_")))


def _unknown(word: str, statistic: str | None) -> str:
    """Return why a word names no quantity, with the word that may have been meant."""
    if word == "pif":
        return "expected a percentile after pif, as in pif95."
    words = [*MEASURES, ROW_GAIN, "fig"]
    if statistic is None:
        words += [*MODELS, *CLASS_FIGURES, *ALIASES, *RISK_FIGURES, "pif95"]
    elif word in MODELS or word in CLASS_FIGURES or word in ALIASES:
        return f"{word} is one number of a table, without {statistic}: expected {word} alone."
    hint = did_you_mean(word, words) or suggest_measure(word)
    return (
        f"{word!r} is no figure.{hint} A criterion limits a figure of classes (k, uniques, ...), of "
        "sensitive attributes (distinct_l, t, ...), pif95, a measure of cells as in 'max csf' and 'mean cig(age)', or "
        "a number in the result of gpupif.risk, as population.k_map."
    )
