"""The words of a report: what each of those means that a report uses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .sections import OF_ATTRIBUTES, Cell, Section, Table

WORDS = {
    "attacker": "somebody who knows some columns of a person, and wants another one",
    "quasi-identifier": "a column that an attacker may know",
    "class": "equivalence class: the rows that agree on all quasi-identifiers. A row alone in its class is unique",
    "cohort": "for a cell: the rows that agree with it on everything that the attacker knows",
    "prior": "of a value: its share of the whole table; what an attacker believes before",
    "posterior": "of a value: its share of the cohort; what an attacker believes after",
    "CIG": "cell information gain, in bits: how far the posterior of a cell is from the prior. 0 if nothing is learnt; "
    "3 if as much is learnt as by being certain of a value that 1 person in 8 has",
    "CSF": "cell surprise factor, 0 to 1: how far the probability of the cell's own value moves",
    "RIG": "row information gain, in bits: the CIG of a row, added up",
    "FIG": "feature information gain, in bits: the CIG of a column, added up. It grows with the number of rows",
    "PIF": "personal information factor, in bits: PIF 95 is the RIG that 95 % of the rows do not exceed. It is no "
    "probability that somebody is found",
    "entropy": "in bits: how evenly the values of a column are spread. 1 bit is a coin, 10 bits one of 1,024 values",
    "prosecutor": "the chance that an attacker finds a person's row who knows that the person is in the table: "
    "1 / rows of the class",
    "journalist": "the same, of an attacker who does not know who is in the table: 1 / people of the class",
    "marketer": "the share of the rows that an attack on all of them finds",
    "toxic": "of a pair of columns or values: harmless alone, rare together",
}
# The words of the section on disclosure measures.
OF_CLASSES = {
    "k": "rows of the smallest class: each person is hidden among k at least",
    "distinct l, entropy l": "different values of the attribute in a class, counted, or weighed by how evenly they are "
    "spread. 1: the value of everybody in the class is known",
    "c": "recursive (c, l)-diversity: how far the most frequent value of a class outweighs the others",
    "alpha": "the highest share of a value in a class. 1: the value of everybody in it is known",
    "t": "how far the values of a class are from those of the table, 0 to 1. 0: the class tells nothing more",
    "beta": "how much more frequent a value is in a class than in the table, as a share of its frequency in the table",
    "delta": "the largest logarithm of how many times more or less frequent a value is in a class than in the table",
}


def words_of(sections: Sequence[Section]) -> Section | None:
    """Return a section that explains the words that occur in other sections; None if none does."""
    texts = repr([(section.title, section.notes, section.tables) for section in sections])
    words = [(word, meaning) for word, meaning in WORDS.items() if re.search(rf"\b{word}(e?s)?\b", texts)]
    if any(section.title == OF_ATTRIBUTES for section in sections):
        words += OF_CLASSES.items()
    rows = [[Cell(word), Cell(meaning)] for word, meaning in words]
    return (
        Section("What the words mean", tables=[Table("Words of this report", ["word", "meaning"], rows)])
        if rows
        else None
    )
