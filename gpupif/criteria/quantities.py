"""What a criterion may limit: figures of classes, disclosure measures of sensitive attributes, figures of scores.

Whether a quantity only ever gets safer where values of a column are made coarser is said here, quantity by quantity:
that is what a search may prune by. Divergences of a cohort's distribution from the table's do (data processing), the
highest of them and, for those that are convex, their mean (piflib manual, sections 1.4 and 1.7, have what is meant);
percentiles do not: PIF_95 of a random table rose by 0.22 bits, and neither do CSF nor mean Rényi divergences.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

from ..disclosure.class_risks import CLASS_FIGURES, ClassFigure
from ..disclosure.models import MODELS, Model
from ..errors import InputError, did_you_mean
from ..measures import MEASURES, Measure, find_measure, is_measure, suggest_measure
from ..utils.validation import whole_number

# Their highest value never rises where columns are made coarser: what has no such entry here is searched, not pruned.
MAXIMUM_FALLS = ("cig", "total_variation", "hellinger", "jensen_shannon")
# Nor does the mean of those that are convex in the two distributions together (f-divergences).
MEAN_FALLS = ("cig", "total_variation", "jensen_shannon")
# Of each row they only ever get safer, so that every figure of them does.
EACH_IMPROVES = ("cohort_size", "class_size", "reidentification_risk", "individual_risk", "unique")
ALIASES = {"uniques": "unique_rows"}
STATISTICS = ("mean", "max", "min")
# Sum of the gains of a row: a measure of rows, which no file of scores has a column of.
ROW_GAIN = "rig"


class Quantity(ABC):
    """What a criterion limits.

    unit: of its values. high_is_bad: whether a criterion is an upper limit. column: of which column alone it is, if
    any.
    """

    unit: str
    high_is_bad: bool
    column: str | None = None

    @property
    @abstractmethod
    def text(self) -> str:
        """As a criterion has it."""

    @abstractmethod
    def only_improves(self, any_known: bool) -> bool:
        """Whether no coarser values of any column put it at risk; any_known: of who knows any few of the columns."""


@dataclass(frozen=True)
class OfClasses(Quantity):
    """A figure of the equivalence classes; parameter: the k, or the threshold, that it depends on."""

    figure: ClassFigure
    parameter: float | None = None

    @property
    def unit(self) -> str:  # type: ignore[override]
        """See `Quantity`."""
        return self.figure.unit

    @property
    def high_is_bad(self) -> bool:  # type: ignore[override]
        """See `Quantity`."""
        return self.figure.high_is_bad

    @property
    def text(self) -> str:
        return self.figure.name + ("" if self.parameter is None else f"({self.parameter:g})")

    def only_improves(self, any_known: bool) -> bool:
        return self.figure.only_improves


@dataclass(frozen=True)
class OfModel(Quantity):
    """A disclosure measure: k, or of a sensitive attribute, or of the worst of them (column None). l_values: of
    recursive (c,l)-diversity.
    """

    model: Model
    column: str | None = None
    l_values: int = 0

    @property
    def unit(self) -> str:  # type: ignore[override]
        """See `Quantity`."""
        return self.model.unit

    @property
    def high_is_bad(self) -> bool:  # type: ignore[override]
        """See `Quantity`."""
        return self.model.highest

    @property
    def text(self) -> str:
        inside = ", ".join(
            [*([self.column] if self.column else []), *([f"l={self.l_values}"] if self.l_values else [])]
        )
        return self.model.name + (f"({inside})" if inside else "")

    @property
    def sensitive(self) -> bool:
        """Whether it is of sensitive attributes."""
        return self.model.name != "k"

    def only_improves(self, any_known: bool) -> bool:
        # A value that one of two classes lacks may be far from its share of the table in both together.
        return self.model.name != "delta"


@dataclass(frozen=True)
class OfScores(Quantity):
    """A figure of the scores of cells: of a column, or of the worst of them (None); of the row gains where `measure` is
    None. percentile: 0 and 100 are the lowest and the highest; None: the mean.
    """

    measure: Measure | None
    percentile: float | None
    column: str | None = None

    @property
    def unit(self) -> str:  # type: ignore[override]
        """See `Quantity`."""
        return "bits" if self.measure is None else self.measure.unit

    @property
    def high_is_bad(self) -> bool:  # type: ignore[override]
        """See `Quantity`."""
        return self.measure is None or not self.measure.low_is_risky

    @property
    def text(self) -> str:
        if self.measure is None:
            return self._statistic + " rig" if self.percentile in (None, 0, 100) else f"pif{self.percentile:g}"
        return f"{self._statistic} {self.measure.name}" + (f"({self.column})" if self.column else "")

    @property
    def is_of_size(self) -> bool:
        """Whether it follows from how many rows agree, whatever the values of the column."""
        return self.measure is not None and self.measure.is_size

    @property
    def _statistic(self) -> str:
        named = {None: "mean", 0.0: "min", 100.0: "max"}
        return named.get(self.percentile, f"p{self.percentile:g}" if self.percentile is not None else "")

    def only_improves(self, any_known: bool) -> bool:
        if self.measure is None:
            # The worst of several attackers is another one in other rows.
            return self.percentile is None and not any_known
        name = self.measure.name
        if name in EACH_IMPROVES:
            return True
        if self.percentile is None:
            return name in MEAN_FALLS and not any_known
        return self.percentile == 100 and (name in MAXIMUM_FALLS or name.startswith("renyi_"))


def read_quantity(text: str, statistic: str | None, word: str, inside: str | None) -> Quantity:
    """The quantity that a criterion names: a word, a statistic before it and what is in brackets behind it, if any.

    text: the criterion, for messages. Raises InputError.
    """
    name = ALIASES.get(word, word)
    pif = re.fullmatch(r"(?:pif|p(?=\d))_?(\d+(?:\.\d+)?)", name)
    if statistic is None and name in CLASS_FIGURES:
        return _of_classes(text, CLASS_FIGURES[name], inside)
    if statistic is None and name in MODELS:
        return _of_model(text, MODELS[name], inside)
    if pif and statistic is None:
        _refuse_inside(text, word, inside)
        return OfScores(None, _percentile(text, float(pif[1])))
    if name == ROW_GAIN:
        _refuse_inside(text, word, inside)
        return OfScores(None, _place(text, statistic, False))
    if name == "fig":
        statistic, name = statistic or "mean", "cig"
    if not is_measure(name):
        raise InputError(f"criterion {text!r}: {_unknown(word, statistic)}")
    measure = find_measure(name)
    return OfScores(measure, _place(text, statistic, measure.low_is_risky), inside)


def _of_classes(text: str, figure: ClassFigure, inside: str | None) -> OfClasses:
    """A figure of classes with what it depends on."""
    if not figure.depends:
        _refuse_inside(text, figure.name, inside)
        return OfClasses(figure)
    needed = figure.depends[-1]
    example = f"{figure.name}({5 if needed == 'k' else 0.2})"
    try:
        number = float(inside or "")
    except ValueError:
        raise InputError(
            f"criterion {text!r}: {figure.name} depends on {needed}: expected it in brackets, as in {example}."
        ) from None
    if needed == "k":
        return OfClasses(figure, whole_number(f"criterion {text!r}: k", number, "rows"))
    if not 0 < number <= 1:
        raise InputError(
            f"criterion {text!r}: expected a threshold above 0 and up to 1, as in {example}; got {number:g}."
        )
    return OfClasses(figure, number)


def _of_model(text: str, model: Model, inside: str | None) -> OfModel:
    """A disclosure measure with its attribute, and its l."""
    if model.name == "k":
        _refuse_inside(text, "k", inside)
        return OfModel(model)
    column, l_values = inside, 0
    if model.of_l:
        found = re.fullmatch(r"(?:(?P<column>.*\S)\s*,\s*)?l\s*=\s*(?P<number>\d+)", inside or "")
        if found is None:
            raise InputError(
                f"criterion {text!r}: {model.name} depends on l: expected it in brackets, as in {model.name}(l=3) or "
                f"{model.name}(disease, l=3)."
            )
        column, l_values = found["column"], whole_number(f"criterion {text!r}: l", int(found["number"]), "values")
    return OfModel(model, column or None, l_values)


def _refuse_inside(text: str, word: str, inside: str | None) -> None:
    if inside is not None:
        raise InputError(f"criterion {text!r}: {word} is of the whole table: expected no brackets, got ({inside}).")


def _percentile(text: str, number: float) -> float:
    if not 0 <= number <= 100:
        raise InputError(f"criterion {text!r}: expected a percentile from 0 to 100, got {number:g}.")
    return number


def _place(text: str, statistic: str | None, low_is_risky: bool) -> float | None:
    """The percentile that a statistic is, None for the mean; without one the worst value."""
    if statistic is None:
        return 0.0 if low_is_risky else 100.0
    if statistic in STATISTICS:
        return {"mean": None, "max": 100.0, "min": 0.0}[statistic]
    return _percentile(text, float(statistic[1:].lstrip("_")))


def _unknown(word: str, statistic: str | None) -> str:
    """Why a word is none, with what may have been meant."""
    if word == "pif":
        return "expected a percentile behind pif, as in pif95."
    words = [*MEASURES, ROW_GAIN, "fig"]
    if statistic is None:
        words += [*MODELS, *CLASS_FIGURES, *ALIASES, "pif95"]
    elif word in MODELS or word in CLASS_FIGURES or word in ALIASES:
        return f"{word} is one number of a table, without {statistic}: expected {word} alone."
    hint = did_you_mean(word, words) or suggest_measure(word)
    return (
        f"{word!r} is nothing that is measured.{hint} A criterion limits a figure of classes (k, uniques, ...), of "
        "sensitive attributes (distinct_l, t, ...), pif95, or a measure of cells as in 'max csf' and 'mean cig(age)'."
    )
