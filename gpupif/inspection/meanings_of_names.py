"""What a column may look like by its name: words of it, in English and some other languages, never parts of words."""

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
MODIFIERS, LINKS, BODIES = (frozenset(WORDS["words"][key]) for key in ("modifiers", "links", "bodies"))
# Alone these name a person, behind other words what these are.
NAMED = frozenset(["name", "names"])
GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})


# With one of these a name is of numbers that something has, whatever that is.
NUMBERS = frozenset(["id", "ids", "key", "nbr", "no", "nr", "num", "number", "nummer"])


def words_of(name: Hashable) -> list[str]:
    """The words of a column's name, in lower case, without accents: snake_case and camelCase taken apart."""
    text = unicodedata.normalize("NFKC", str(name)).translate(GERMAN)
    text = unicodedata.normalize("NFKD", text)
    text = "".join(sign for sign in text if not unicodedata.combining(sign))
    text = re.sub("['\N{RIGHT SINGLE QUOTATION MARK}]s\\b", "", text)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    return [word.casefold() for word in re.findall(r"[^\W_]+", text)]


def meaning_of_name(name: Hashable) -> Meaning | None:
    """What a column looks like by its name: by the most words of it that say something; None where none do."""
    words = [word for word in words_of(name) if not word.isdecimal()]
    if words and NAMED.issuperset(words):
        return meanings.NAME
    if words and words[0] in NAMED and words[1] in LINKS:
        # The name of a patient is a patient's name.
        words = [word for word in words[1:] if word not in LINKS] + words[:1]
    words = [word for word in words if word not in NAMED] if _phrase_in(words, 2) is None else words
    found = _phrase_in(words, 2) or _word_in(words)
    if found is not None and found.role == IDENTIFIER and MODIFIERS.intersection(words):
        return next(
            (meaning for word in words if (meaning := _meaning_of((word,))) and meaning.role != IDENTIFIER), None
        )
    return found


def _phrase_in(words: Sequence[str], least: int) -> Meaning | None:
    """By the longest phrase of so many words at least, of several the last."""
    plain = [word for word in words if word not in LINKS]
    for size in range(len(plain), least - 1, -1):
        for start in range(len(plain) - size, -1, -1):
            if meaning := _meaning_of(tuple(plain[start : start + size])):
                return meaning
    return None


def _word_in(words: Sequence[str]) -> Meaning | None:
    """By one word: the last before a link, as the age is of the "age at diagnosis"; that it is a code says least."""
    first = next((place for place, word in enumerate(words) if place and word in LINKS), len(words))
    found = [meaning for word in (*words[:first][::-1], *words[first:]) if (meaning := _meaning_of((word,)))]
    return next((meaning for meaning in found if meaning is not meanings.CODE), found[0] if found else None)


def _meaning_of(words: tuple[str, ...]) -> Meaning | None:
    """By these words, together as they stand or, one, without the digits at its end or the s of a plural."""
    table = _table()
    if words in table or len(words) > 1:
        return table.get(words)
    word = words[0].rstrip("0123456789")
    return table.get((word,)) or (table.get((word[:-1],)) if len(word) > 3 and word.endswith("s") else None)


@cache
def _table() -> Mapping[tuple[str, ...], Meaning]:
    """Looks by words; a phrase also as one word, with links and without."""
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
    """Whether a column's name says that it has the numbers of something, such as of loans."""
    return bool(NUMBERS.intersection(words_of(name)))


def names_a_body(names: Sequence[Hashable]) -> bool:
    """Whether a table has what bodies are measured by, so that a weight may be one of them."""
    return any(BODIES.intersection(words_of(name)) for name in names)
