"""Messages without values of the table: errors of gpupif may quote values, logs and the record may not."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..disclosure.models import MODELS
from ..measures import MEASURES

HIDDEN = "***"
# Texts in quotes, as `repr` writes them.
QUOTED = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")
# The text behind these words is the name of a column, or an example; behind the second ones a list of such.
NAMED_BEFORE = re.compile(r"\b(?:[Cc]olumn |sep=|device=)$")
SEVERAL_BEFORE = re.compile(r"\b(?:[Cc]olumns |such as )$")
MORE_OF_IT = re.compile(r"(?:, | or | and |, or )$")
WORD = re.compile(r"\w+")
# A row of CSV of another length: Arrow quotes all of it, without quotation marks, up to the row's number.
ROW_OF_CSV = re.compile(
    r"(CSV parse error: (?:Row #\d+: )?Expected \d+ columns, got \d+): .*?(, after row [\d,]+)?(\)\.|)$", re.DOTALL
)
# Numbers, except parts of words and names.
NUMBER = re.compile(r"(?<![\w./-])[-+]?(?:\d+(?:,\d{3})*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w]|\.\w)")
# The words around a number that counts something, or is the number of a row, and so is no value.
COUNTED_BEFORE = re.compile(
    r"(?:\b[Rr]ows?|\blines?|\bcolumn|\brun|\bversion|\bat least|\bat most|\bexpected|\bcolumns, got)\s*#?$"
)
COUNTED_AFTER = re.compile(
    r"\s*(?:different|rows?|columns?|files?|classes|cells?|values|bytes|[KMGT]i?B|%|seconds|s\b|more)"
)


def without_values(message: str, known: Collection[str]) -> str:
    """Return a message with all that may be a value of the table hidden.

    Texts in quotes stay if they are among `known` (names of columns, words of the configuration), and numbers if they
    count something or are the number of a row.
    """
    message = ROW_OF_CSV.sub(rf"\1: {HIDDEN}\2\3", message)
    plain: list[str] = []
    place, several = 0, False
    for found in QUOTED.finditer(message):
        before = message[place : found.start()]
        plain.append(_without_numbers(before, known))
        several = bool(SEVERAL_BEFORE.search(before)) or (several and bool(MORE_OF_IT.fullmatch(before)))
        named = several or NAMED_BEFORE.search(before)
        text = found[1] if found[1] is not None else found[2]
        plain.append(found[0] if named or text in known else f"'{HIDDEN}'")
        place = found.end()
    return "".join([*plain, _without_numbers(message[place:], known)])


def words_of(document: Any) -> set[str]:
    """Return the words that messages may quote: all of a configuration, and names that gpupif gives."""
    words = {*MEASURES, *MODELS}
    for text in _texts_in(document):
        words |= {text, *WORD.findall(text)}
    return words


def _texts_in(document: Any) -> Iterator[str]:
    """Yield all texts and numbers of a document, keys and values."""
    if isinstance(document, Mapping):
        yield from document
        document = list(document.values())
    if isinstance(document, list | tuple):
        for one in document:
            yield from _texts_in(one)
    elif document is not None:
        yield str(document)


def _without_numbers(text: str, known: Collection[str]) -> str:
    def hide(found: re.Match[str]) -> str:
        counted = COUNTED_BEFORE.search(text[: found.start()]) or COUNTED_AFTER.match(text[found.end() :])
        return found[0] if counted or found[0] in known else HIDDEN

    return NUMBER.sub(hide, text)
