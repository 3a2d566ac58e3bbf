"""Meanings of columns by the words of their names, in English and some other languages; never by parts of words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from ..attack.roles import IDENTIFIER
from ..io.documents import parse_toml
from . import column_meanings as meanings
from .column_meanings import Meaning

WORDS = parse_toml(files(__package__).joinpath("name_words.toml").read_text("utf-8"))
MODIFIERS, LINKS, HOUSEHOLDS, BODIES = (
    frozenset(WORDS["words"][key]) for key in ("modifiers", "links", "households", "bodies")
)
# Words that name a person if they are the whole name. After other words they add nothing: "town name" is a town.
NAMED = frozenset(["name", "names"])
GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})


# Words that say that a column has the numbers of something, such as of loans.
NUMBERS = frozenset(["id", "ids", "key", "nbr", "no", "nr", "num", "number", "nummer"])


def words_of(name: Hashable) -> list[str]:
    """Return the words of a column's name, in lower case, without accents; snake_case and camelCase are split."""
    text = unicodedata.normalize("NFKC", str(name)).translate(GERMAN)
    text = unicodedata.normalize("NFKD", text)
    text = "".join(sign for sign in text if not unicodedata.combining(sign))
    text = re.sub("['\N{RIGHT SINGLE QUOTATION MARK}]s\\b", "", text)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    return [word.casefold() for word in re.findall(r"[^\W_]+", text)]


def meaning_of_name(name: Hashable) -> Meaning | None:
    """Return the meaning of a column's name; None if its words have none.

    The longest phrase with a meaning counts, then single words.
    """
    words = [word for word in words_of(name) if not word.isdecimal()]
    if words and NAMED.issuperset(words):
        return meanings.NAME
    if len(words) == 1 and words[0] in HOUSEHOLDS:
        return meanings.HOUSEHOLD
    if words and words[0] in NAMED and words[1] in LINKS:
        # "name of patient" is read as "patient name".
        words = [word for word in words[1:] if word not in LINKS] + words[:1]
    words = [word for word in words if word not in NAMED] if _phrase_in(words, 2) is None else words
    best = _phrase_in(words, 2) or _word_in(words)
    if best is not None and best.role == IDENTIFIER and MODIFIERS.intersection(words):
        return next(
            (meaning for word in words if (meaning := _meaning_of((word,))) and meaning.role != IDENTIFIER), None
        )
    return best


def _phrase_in(words: Sequence[str], least: int) -> Meaning | None:
    """Return the meaning of the longest phrase of at least `least` words; of several such phrases, of the last."""
    plain = [word for word in words if word not in LINKS]
    for size in range(len(plain), least - 1, -1):
        for start in range(len(plain) - size, -1, -1):
            if meaning := _meaning_of(tuple(plain[start : start + size])):
                return meaning
    return None


def _word_in(words: Sequence[str]) -> Meaning | None:
    """Return the meaning of one word: the last before a link ("age" of "age at diagnosis"). `CODE` comes last."""
    first = next((place for place, word in enumerate(words) if place and word in LINKS), len(words))
    choices = [meaning for word in (*words[:first][::-1], *words[first:]) if (meaning := _meaning_of((word,)))]
    return next((meaning for meaning in choices if meaning is not meanings.CODE), choices[0] if choices else None)


def _meaning_of(words: tuple[str, ...]) -> Meaning | None:
    """Return the meaning of these words together. A single word also counts without final digits or a plural s."""
    table = _table()
    if words in table or len(words) > 1:
        return table.get(words)
    word = words[0].rstrip("0123456789")
    return table.get((word,)) or (table.get((word[:-1],)) if len(word) > 3 and word.endswith("s") else None)


@cache
def _table() -> Mapping[tuple[str, ...], Meaning]:
    """Return meanings by words. A phrase is also there as one word, with links and without."""
    table: dict[tuple[str, ...], Meaning] = {}
    for key, phrases in WORDS["meanings"].items():
        meaning = getattr(meanings, key.upper())
        for phrase in phrases:
            words = phrase.split()
            plain = tuple(word for word in words if word not in LINKS)
            for form in (plain, ("".join(words),), ("".join(plain),)):
                table.setdefault(form, meaning)
    return table


def names_numbers(name: Hashable) -> bool:
    """Return whether a column's name says that it has the numbers of something, such as of loans."""
    return bool(NUMBERS.intersection(words_of(name)))


def names_a_body(names: Sequence[Hashable]) -> bool:
    """Return whether a table has measures of bodies, so that a column "weight" may be the weight of a body."""
    return any(BODIES.intersection(words_of(name)) for name in names)
