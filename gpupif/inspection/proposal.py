"""The proposed roles of columns, with reasons: from names, from patterns of values, from the number of values."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from ..attack.request import UNIQUE_ROWS, UNIQUE_SHARE
from ..attack.roles import IDENTIFIER, LEFT_OUT, QUASI, SENSITIVE, WEIGHT
from ..utils.display import as_cell
from . import column_meanings as meanings
from .column_facts import DATE, MOMENT, NUMBER, OTHER, WHOLE, ColumnFacts
from .column_meanings import Meaning
from .meanings_of_names import meaning_of_name, names_a_body, names_numbers, words_of
from .value_patterns import STRONG, held_in, shares

# The share of its values that have to fit a meaning: MOST for a pattern that other values may fit too, HALF if the name
# says the meaning or if no other values fit the pattern.
MOST, HALF = 0.9, 0.5
# A name that says an identifier is not believed if the column has at most FEW values, and fewer than the share REPEATED
# of its rows.
FEW, REPEATED = 20, 0.1
# A column of fractions with more distinct values is a measurement, which has to be binned to be of use.
MEASURED = 100
# The least of free text: words and characters of a value, on average, and the share of the rows with distinct values.
WORDS, LENGTH, DIFFERENT = 5, 30, 0.5
# The least share of values with a full stop, if only values say that they are diagnosis codes: other codes have none.
DOTTED = 1 / 3
OLDEST = 89
DATES = (meanings.DATE, meanings.BIRTH_DATE)
# The least whole number that may be a telephone number, a date or the like.
LEAST_CODE = 10**5


@dataclass(frozen=True)
class Proposal:
    """The role that is proposed for a column.

    evidence: the ground of the proposal: "name", "values", "name and values", "distinction" or "nothing else". meaning:
    None if unknown. hipaa: the letter of the kind of identifier; empty for none.
    """

    role: str
    reason: str
    evidence: str
    meaning: Meaning | None = None
    hipaa: str = ""


@dataclass(frozen=True)
class _Evidence:
    """A meaning of a column, and the ground for it.

    share: share of the values that fit; None if only the name says the meaning. named: True if the name says the
    meaning.
    """

    meaning: Meaning
    share: float | None = None
    named: bool = False

    @property
    def evidence(self) -> str:
        """The ground in words."""
        if self.share is None:
            return "name"
        return "name and values" if self.named else "values"


def propose(facts: Mapping[Hashable, ColumnFacts]) -> dict[Hashable, Proposal]:
    """Return the proposals for the columns of a table, in their order."""
    bodies = names_a_body(list(facts))
    proposals = {name: _with_decimal_comma(_propose_alone(name, one, bodies), one) for name, one in facts.items()}
    weights = [name for name, one in proposals.items() if one.role == WEIGHT]
    if len(weights) > 1:
        best = min(weights, key=lambda name: (proposals[name].meaning != meanings.WEIGHTS, _is_numbered(name)))
        for name in weights:
            if name != best:
                reason = f"weights too, and a table is weighed by one column: {best!r} is proposed"
                proposals[name] = replace(proposals[name], role=LEFT_OUT, reason=reason)
    return proposals


def may_name_persons(
    facts: ColumnFacts, proposal: Proposal, by_number: bool = False, by_look_only: bool = False
) -> bool:
    """Return whether a column looks like identifiers or free text.

    by_number: True to include nearly unique numbers without a known meaning. by_look_only: True to leave out columns
    that are only nearly unique.
    """
    if proposal.meaning is not None:
        return proposal.meaning is meanings.FREE_TEXT or proposal.role == IDENTIFIER
    return proposal.role == IDENTIFIER and not by_look_only and (by_number or facts.is_text)


def _is_numbered(name: Hashable) -> bool:
    """Return whether a name ends in a number, as names of replicate weights do."""
    return bool(words := words_of(name)) and words[-1][-1].isdecimal()


def _with_decimal_comma(proposal: Proposal, facts: ColumnFacts) -> Proposal:
    """Return a proposal whose reason says how numbers with a decimal comma, which are texts, are read as numbers."""
    if not facts.has_decimal_comma:
        return proposal
    advice = 'numbers with a decimal comma, which stay text: read them with pandas read_csv(decimal=",")'
    return replace(proposal, reason=f"{proposal.reason}; {advice}")


def _propose_alone(name: Hashable, facts: ColumnFacts, bodies: bool) -> Proposal:
    """Return the proposal for one column. bodies: True if the table has measures of bodies."""
    if facts.type == OTHER:
        reason = (
            "lists, bytes or values of several types, which may hold anything: make plain columns of the needed values"
        )
        return Proposal(LEFT_OUT, reason, "values")
    if facts.cardinality == 1:
        values = "no value in any row" if facts.distinct == 0 else "one value in all rows"
        return Proposal(LEFT_OUT, f"{values}: it distinguishes nobody", "values")
    named = meaning_of_name(name)
    if named is not None and named.role in (QUASI, SENSITIVE) and names_numbers(name) and _is_nearly_unique(facts):
        # "loan number" has the meaning of "loan", money. If each row has its own number, the column is a code.
        named = meanings.CODE
    if named in (meanings.WEIGHTS, meanings.BARE_WEIGHT) and (weights := _propose_weights(named, facts, bodies)):
        return weights
    fitting = shares(facts.sample.texts, named) if _may_fit(facts) else {}
    seen = _find_evidence(named, facts, fitting)
    if _is_free_text(facts) and (seen is None or seen.meaning.role != IDENTIFIER):
        return _propose_free_text(facts)
    proposal = _by_values(facts) if seen is None else _by_meaning(seen, facts)
    others = {
        meaning: share
        for meaning, share in fitting.items()
        if meaning in STRONG and meaning != proposal.meaning and share > 0
    }
    if others:
        listed = ", ".join(f"{_percent(share)} look like {meaning.label}" for meaning, share in others.items())
        proposal = replace(proposal, reason=f"{proposal.reason}; of its values {listed}")
    return proposal


def _may_fit(facts: ColumnFacts) -> bool:
    """Return whether values may fit a pattern. Numbers with a fraction, or of few digits, fit none."""
    if facts.range is not None and (facts.type == NUMBER or max(-facts.range.low, facts.range.high) < LEAST_CODE):
        return False
    return bool(facts.sample.texts)


def _propose_weights(named: Meaning, facts: ColumnFacts, bodies: bool) -> Proposal | None:
    """Return the proposal for a column named as weights; None if it is no weight of rows."""
    numbers = facts.range
    if named == meanings.BARE_WEIGHT and (bodies or numbers is None):
        return None if numbers is None else _by_meaning(_Evidence(meanings.BODY, named=True), facts)
    plain = (
        numbers is not None
        and not facts.has_decimal_comma
        and numbers.low >= 0
        and math.isfinite(numbers.high)
        and numbers.total.units > 0
    )
    if numbers is None or not plain or facts.missing:
        lack = "missing values" if facts.missing else "other values than positive numbers"
        return Proposal(LEFT_OUT, f"its name says weights, but it has {lack}, so it weighs nothing", "name", named)
    total, mean = numbers.total.over(1), numbers.total.over(facts.rows)
    reason = f"its name says weights, and positive numbers, {as_cell(mean)} on average, sum to {as_cell(total)} people"
    if named == meanings.BARE_WEIGHT:
        reason += "; if it is the weight of a body, it is a quasi-identifier"
    return Proposal(WEIGHT, reason, "name and values", named)


def _find_evidence(named: Meaning | None, facts: ColumnFacts, fitting: Mapping[Meaning, float]) -> _Evidence | None:
    """Return the meaning of a column: by patterns that no other values fit, by its name, or by most of its values.

    Return None if nothing says a meaning.
    """
    believed = named is not None and _is_believed(named, facts, fitting)
    strong = {meaning: share for meaning, share in fitting.items() if meaning in STRONG}
    # A name that says an identifier is more exact than a pattern: some device numbers have check digits of cards.
    identifies = named is not None and believed and not named.needs_values and named.role == IDENTIFIER
    if sum(strong.values()) >= HALF and not identifies:
        meaning = max(strong, key=lambda one: strong[one])
        return _Evidence(meaning, strong[meaning], meaning == named)
    if named == meanings.HEALTH and fitting.get(meanings.DIAGNOSIS, 0) >= MOST:
        return _Evidence(meanings.DIAGNOSIS, fitting[meanings.DIAGNOSIS], True)
    if named is not None and believed:
        share = 1.0 if named in DATES and facts.type in (DATE, MOMENT) else fitting.get(named, 0.0)
        return _Evidence(named, share if share >= HALF else None, True)
    weak = {meaning: share for meaning, share in fitting.items() if meaning not in STRONG and share >= MOST}
    if meanings.DIAGNOSIS in weak and sum("." in text for text in facts.sample.texts) < DOTTED * len(
        facts.sample.texts
    ):
        del weak[meanings.DIAGNOSIS]
    if weak:
        meaning = max(weak, key=lambda one: weak[one])
        return _Evidence(meaning, weak[meaning])
    return _Evidence(meanings.DATE, 1.0) if facts.type in (DATE, MOMENT) else None


def _is_believed(named: Meaning, facts: ColumnFacts, fitting: Mapping[Meaning, float]) -> bool:
    """Return whether a column may have the meaning that its name says."""
    if named.needs_values:
        fits = fitting.get(named, 0.0) >= HALF
        return fits or (named == meanings.DATE and facts.type in (DATE, MOMENT))
    if named in (meanings.WEIGHTS, meanings.BARE_WEIGHT):
        return False
    if named.role != IDENTIFIER:
        return True
    if not (facts.is_text or (facts.type == WHOLE and not named.names_text)):
        return False
    repeated = facts.cardinality < REPEATED * facts.rows
    if named == meanings.CODE and repeated:
        return False
    return not (repeated and facts.distinct <= FEW)


def _is_free_text(facts: ColumnFacts) -> bool:
    """Return whether at least half of the rows have distinct texts, of many words on average."""
    texts = facts.sample.texts
    if not facts.is_text or facts.distinct < DIFFERENT * (facts.rows - facts.missing):
        return False
    words = sum(len(text.split()) for text in texts) / len(texts)
    return words >= WORDS and sum(map(len, texts)) / len(texts) >= LENGTH


def _propose_free_text(facts: ColumnFacts) -> Proposal:
    held = held_in(facts.sample.texts)
    reason = "free text, which may name anybody: look through it, or leave it unpublished"
    if held:
        listed = ", ".join(f"{count:,} hold {meaning.label}" for meaning, count in held.items())
        reason += f"; of {len(facts.sample.texts):,} values looked at {listed}"
    return Proposal(LEFT_OUT, reason, "values", meanings.FREE_TEXT)


def _by_meaning(seen: _Evidence, facts: ColumnFacts) -> Proposal:
    """Return the proposal for a column with a known meaning."""
    meaning, looked_at = seen.meaning, len(facts.sample.texts)
    if seen.share is None:
        said = f"its name says {meaning.label}"
    elif not looked_at:
        said = f"its {'name and its ' * seen.named}values are {meaning.label}"
    else:
        some = "values" if looked_at == facts.distinct else f"{looked_at:,} values looked at"
        so = f"{_percent(seen.share)} of the {some}"
        said = f"its name says {meaning.label}, and so do {so}" if seen.named else f"{so} look like {meaning.label}"
    hipaa = meaning.hipaa
    if meaning == meanings.AGE and facts.range is not None and facts.range.high > OLDEST:
        hipaa = "C"
    why = [f"HIPAA ({hipaa})"] if hipaa else []
    if meaning.why:
        why.append(meaning.why)
    elif meaning.role == QUASI:
        why.append("others may know it")
    if meaning == meanings.AGE and hipaa:
        why.append(f"ages above {OLDEST} are to be one group")
    if meaning.role in (QUASI, SENSITIVE) and _is_nearly_unique(facts):
        why.append(f"nearly unique ({_distinction(facts)}): round or bin it first")
    return Proposal(meaning.role, f"{said}: {'; '.join(why)}", seen.evidence, meaning, hipaa)


def _by_values(facts: ColumnFacts) -> Proposal:
    """Return the proposal for a column without a known meaning."""
    if facts.is_running_number:
        assert facts.range is not None
        reason = f"numbers the rows, {facts.range.low:,.0f} to {facts.range.high:,.0f}"
        return Proposal(LEFT_OUT, reason, "values", meanings.ROW_NUMBER)
    if facts.type == NUMBER and (facts.distinct > MEASURED or _is_nearly_unique(facts)):
        reason = f"a measurement ({_distinction(facts)}): bin it, and it may be a quasi-identifier or sensitive"
        return Proposal(LEFT_OUT, reason, "distinction")
    if _is_nearly_unique(facts):
        return Proposal(IDENTIFIER, f"nearly unique ({_distinction(facts)}): it singles people out", "distinction")
    return Proposal(QUASI, f"{_distinction(facts)}, and nothing says that others do not know it", "nothing else")


def _is_nearly_unique(facts: ColumnFacts) -> bool:
    """Return whether a column is nearly unique, as `gpupif.errors.NearlyUniqueWarning` defines it."""
    return facts.rows >= UNIQUE_ROWS and facts.cardinality >= UNIQUE_SHARE * facts.rows


def _distinction(facts: ColumnFacts) -> str:
    """Return the number of distinct values, in words."""
    return f"{facts.cardinality:,} distinct values in {facts.rows:,} rows"


def _percent(share: float) -> str:
    """Return a share in percent, never rounded to none or all."""
    percent = 100 * share
    shown = f"{percent:.0f}"
    if shown == "100" and percent < 100:
        shown = "over 99"
    if shown == "0":
        shown = "under 1"
    return f"{shown} %"
