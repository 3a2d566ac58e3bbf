"""The printed tables of a disclosure risk."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import listed
from ..utils.display import (
    Heading,
    as_cell,
    as_found,
    as_part,
    as_percent,
    as_text,
    draw_table,
    highest_place,
    quoted,
)
from ..utils.redaction import as_certain
from .attack_game import Payoffs
from .class_risks import AttackRisk, ClassRisks
from .estimated_risks import EstimatedRisks
from .homogeneous_classes import Group
from .households import HouseholdRisks
from .models import MODELS
from .population_risks import PopulationRisks, Presence, PresenceBand, PresentClass
from .population_uniques import PopulationUniques
from .risk_threshold import RiskThreshold
from .worst_classes import WorstClass

if TYPE_CHECKING:
    import pandas as pd

    from ..utils.printed_table import PrintedTable

# The headings of columns that are no disclosure measure.
HEADS = {
    "values": "values",
    "certain_rows": "certain rows",
    "alpha": "alpha, 0 to 1",
    "entropy_l": "entropy l, values",
    "distinct_l": "distinct l, values",
    "t": "t, 0 to 1",
    "delta": "delta, nats",
    "recursive_c": "c, ratio",
    "basic_beta": "beta, ratio",
    "enhanced_beta": "enh. beta, ratio",
}

# A class is printed as the worst if no more classes are as bad as it.
FEW = 10


def classes_sentence(classes: ClassRisks, estimated: EstimatedRisks | None) -> str:
    """Return what the class sizes say, in a sentence for the verdict. estimated: None without weights."""
    alone = f"{as_part(classes.unique_share)} of rows ({classes.uniques:,}) are alone in their class"
    few = f"{as_part(classes.share_below)} in classes of fewer than {classes.wanted_k}"
    if estimated is None:
        return f"{alone}, {few}; an attack on all rows finds {as_part(classes.marketer)} of them."
    known, else_ = as_part(classes.marketer), as_part(estimated.reidentifications / estimated.rows)
    attack = (
        f"an attacker who knows who is in the table finds {known} of rows, one who does not {else_} (by the weights)"
    )
    return f"{alone}, {few}; {attack}."


def attributes_sentence(attributes: pd.DataFrame, classes: ClassRisks, weighted: bool, redact: bool) -> str:
    """Return what the classes give away of sensitive attributes, for the verdict; empty without attributes.

    weighted: whether shares are of sampling weights. redact: whether the certain rows are a range of numbers, and the
    highest share is hidden, since few rows make it.
    """
    if redact:
        if "certain_rows" not in attributes:
            return ""
        ranges = {name: as_certain(int(rows), vars(classes)) for name, rows in attributes["certain_rows"].items()}
        said = listed([f"{quoted(name)} {rows}" for name, rows in ranges.items()], 5, str)
        return f"Rows whose class has no other value: {said}."
    if "certain_rows" in attributes and (certain := int(attributes["certain_rows"].max())):
        most = attributes.index[highest_place(attributes["certain_rows"])]
        share = as_part(certain / classes.rows)
        return f"{quoted(most)} is certain for {certain:,} rows ({share}), whose class has no other value of it."
    if "alpha" in attributes:
        most = attributes.index[highest_place(attributes["alpha"])]
        who = "people, by their weights," if weighted else "rows"
        alpha = float(attributes["alpha"].max())
        return f"In some class {as_part(alpha)} of the {who} have the same {quoted(most)}."
    return ""


def facts_table(title: str, facts: Sequence[tuple[str, str]]) -> PrintedTable:
    """Return a table of facts. facts: names and values."""
    return draw_table(title, [Heading("", text=True), Heading("", show=str)], facts, show_headings=False)


def classes_table(
    classes: ClassRisks,
    estimated: EstimatedRisks | None,
    people: PopulationRisks | None,
    uniques: PopulationUniques | None,
) -> PrintedTable:
    """Return the table of class sizes and the risk of re-identification.

    estimated: None without weights. people: None without a population. uniques: None without a size of the population.
    """
    below = f"{classes.rows_below:,} rows"
    shown_size = [] if classes.average_size is None else [("rows a class", f"{classes.average_size:,.2f}")]
    if classes.classes_below is not None:
        below = f"{classes.classes_below:,} {'class' if classes.classes_below == 1 else 'classes'} with {below}"
    facts = [
        ("k, rows of the smallest class", f"{classes.k:,}"),
        ("rows of the largest class", f"{classes.largest:,}"),
        *shown_size,
        ("unique rows", f"{classes.uniques:,} ({as_part(classes.unique_share)})"),
        (f"classes of fewer than {classes.wanted_k} rows", below),
        ("prosecutor risk, highest", as_percent(classes.prosecutor.highest)),
        ("prosecutor average, marketer", as_percent(classes.marketer)),
        (f"rows at risk (above {classes.threshold:.3g})", as_percent(classes.prosecutor.at_risk)),
        ("discernibility", f"{classes.discernibility:,}"),
    ]
    if estimated is not None:
        facts += [
            ("people in the population, estimated", as_cell(estimated.people)),
            ("people of the smallest class there", as_cell(estimated.k_map)),
            *_risk("journalist risk there", estimated.journalist),
            *_risk("individual risk", estimated.individual),
            ("re-identifications expected", as_cell(estimated.reidentifications)),
        ]
    if people is not None:
        facts += [
            ("k-map, people of the smallest class in the population", f"{people.k_map:,}"),
            *_risk("journalist risk", people.journalist),
            ("marketer risk in the population", as_percent(people.marketer)),
            *([] if people.presence is None else _presence(people.presence)),
        ]
    if uniques is not None:
        facts += _population_uniques(uniques)
    return facts_table("Equivalence classes and re-identification", facts)


def _population_uniques(found: PopulationUniques) -> list[tuple[str, str]]:
    """Return the estimate of the uniques in the population, and how many of them the sample should have."""
    name = f"unique in the population of {found.population:,}, estimated ({found.model})"
    if math.isnan(found.uniques):
        return [(name, "no estimate")]
    expected = found.uniques * found.sampling_fraction
    there = f"{expected:,.0f} of the {found.sample_uniques:,} unique rows"
    # A person who is unique in the population is unique in the sample.
    if expected > found.sample_uniques:
        there = f"{expected:,.0f}, but {found.sample_uniques:,} rows are unique: the model does not fit"
    return [(name, f"{found.uniques:,.0f} people"), ("... of whom the table has, expected", there)]


def beside_table(households: HouseholdRisks | None, threshold: RiskThreshold | None) -> PrintedTable | None:
    """Return the table of household risk and of the threshold for a global risk; None if both are None."""
    facts: list[tuple[str, str]] = []
    if households is not None:
        facts += [
            (f"households ({as_text(households.column)})", f"{households.households:,}"),
            *_risk("risk of a household", households.risk),
            (f"households at risk (above {households.threshold:.3g})", as_percent(households.risk.at_risk)),
            ("re-identified households expected", as_cell(households.reidentified)),
            ("rows of these", f"{as_cell(households.rows)} ({as_percent(households.row_share)})"),
        ]
    if threshold is not None:
        facts += [
            ("global risk: re-identifications expected per row", as_percent(threshold.global_risk)),
            (f"threshold for a global risk of {as_percent(threshold.max_global_risk)}", f"{threshold.threshold:.4g}"),
            ("rows above it, to be protected", f"{threshold.rows_above:,} ({as_percent(threshold.share_above)})"),
        ]
    return facts_table("Households and global risk", facts) if facts else None


def _risk(name: str, risk: AttackRisk) -> list[tuple[str, str]]:
    average = [] if math.isnan(risk.average) else [(f"{name}, average", as_percent(risk.average))]
    return [(f"{name}, highest", as_percent(risk.highest)), *average]


def _presence(presence: Presence) -> list[tuple[str, str]]:
    return [
        ("presence of the population's people in the table, lowest", as_percent(presence.lowest)),
        ("presence, highest", as_percent(presence.highest)),
        ("presence, average", as_percent(presence.average)),
        (f"rows of a presence above {presence.threshold:.3g}", as_percent(presence.share_above)),
    ]


# What is high among the measures of sensitive attributes.
HIGH = (
    "Highest risk: alpha or l of 1, where a class has one value. t, beta and delta are 0 if each class is like the "
    "table."
)


def attributes_table(attributes: pd.DataFrame, l_values: int | None) -> PrintedTable:
    """Return the table of the measures of each sensitive attribute."""
    attributes = attributes.drop(columns="homogeneous_classes", errors="ignore")
    of_l = "" if l_values is None else f" (c for l = {l_values})"
    headings = [Heading("attribute", text=True)]
    headings += [Heading(_head(key), show=_number) for key in attributes.columns]
    records = zip(attributes.index, attributes.to_dict("records"), strict=True)
    rows = [(name, *record.values()) for name, record in records]
    return draw_table(f"Sensitive attributes, the worst class of each{of_l}", headings, rows)


def _head(column: str) -> str:
    return HEADS.get(column) or MODELS[column].heading or column


def worst_table(classes: Sequence[WorstClass]) -> PrintedTable | None:
    """Return the table of the worst classes; None if none is worse than all but a few others. k has no attribute."""
    headings = [
        Heading("measure", text=True),
        Heading("attribute", text=True),
        Heading("value", show=as_cell),
        Heading("class", text=True),
        Heading("rows"),
        Heading("equally bad classes"),
    ]
    rows = [
        (
            _head(own.measure),
            "" if own.measure == "k" else own.attribute,
            own.value,
            _values(own.quasi_identifiers),
            own.rows,
            own.classes,
        )
        for own in classes
        if own.classes <= FEW
    ]
    return draw_table("The worst classes", headings, rows) if rows else None


def groups_table(groups: Sequence[Group]) -> PrintedTable:
    """Return the table of the most homogeneous classes."""
    headings = [
        Heading("class", text=True),
        Heading("attribute", text=True),
        Heading("value", text=True, show=as_found),
        Heading("rows"),
        Heading("share", show=as_percent),
        Heading("entropy, bits", show="{:.3f}".format),
    ]
    rows = [
        (_values(group.quasi_identifiers), group.attribute, group.value, group.rows, group.share, group.entropy)
        for group in groups
    ]
    title = "Most homogeneous classes of several rows: their attribute is known without re-identification"
    if any(group.value is None for group in groups):
        title += " (a missing value counts as a value; with --missing wildcard as unknown)"
    return draw_table(title, headings, rows)


def _values(quasi_identifiers: Mapping[Hashable, Any]) -> str:
    return ", ".join(f"{as_text(name)}={as_found(value)}" for name, value in quasi_identifiers.items())


def presence_tables(presence: Presence, classes: Sequence[PresentClass]) -> list[PrintedTable]:
    """Return the table of people by presence, and the table of the classes of highest presence, if there are any."""
    headings = [Heading("presence", text=True), *map(Heading, ("classes", "people", "rows"))]
    bands = [(_band(band), band.classes, band.people, band.rows) for band in presence.histogram if band.classes]
    tables = [draw_table("Presence (delta): probability that a person of a class is in the table", headings, bands)]
    if classes:
        headings = [
            Heading("class", text=True),
            Heading("rows"),
            Heading("people"),
            Heading("presence", show=as_percent),
        ]
        rows = [(_values(entry.quasi_identifiers), entry.rows, entry.people, entry.presence) for entry in classes]
        title = "Classes of the highest presence: their people are the likeliest to be in the table"
        tables.append(draw_table(title, headings, rows))
    return tables


def _band(band: PresenceBand) -> str:
    if band.least == band.most:
        return as_percent(band.least)
    return f"{'' if band.least else 'above '}{as_percent(band.least)} to below {as_percent(band.most)}"


def games_table(games: Mapping[str, Payoffs]) -> PrintedTable:
    """Return the table of cost and benefit of attacks, with a column for each attacker."""
    facts: list[tuple[str, Callable[[Payoffs], int | float | None]]] = [
        ("rows that are attacked, if all are published", lambda found: found.attacked),
        ("rows that are worth publishing", lambda found: found.publishable),
        ("... in classes of at least", lambda found: found.publishable_size),
        ("rows on which an attack costs more than it brings", lambda found: found.deterred),
        ("... in classes of at least", lambda found: found.deterring_size),
        ("publisher's payout, if all are published", lambda found: found.publisher_payout),
        ("... if rows worth publishing are", lambda found: found.best_payout),
        ("... if rows on which an attack costs more are", lambda found: found.deterring_payout),
        ("adversary's payoff, if all are published", lambda found: found.adversary_payoff),
    ]
    game = next(iter(games.values())).game
    headings = [Heading("", text=True), *(Heading(who, show=_amount) for who in games)]
    rows = [(text, *(value(found) for found in games.values())) for text, value in facts]
    stake = (
        f"benefit {_amount(game.publisher_benefit)} a row, loss {_amount(game.publisher_loss)} a person found; gain "
        f"{_amount(game.adversary_gain)}, cost {_amount(game.adversary_cost)} an attempt"
    )
    return draw_table(f"Attacks that pay ({stake})", headings, rows)


def _amount(value: float | None) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.8g}"


def _number(value: Any) -> str:
    return "infinite" if math.isinf(value) else as_cell(value)
