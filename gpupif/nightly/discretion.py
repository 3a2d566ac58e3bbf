"""What is said of a table without its values: messages of gpupif may quote them, logs and the record may not."""

from __future__ import annotations

import re
from collections.abc import Collection

HIDDEN = "***"
# Texts in quotes, as `repr` writes them.
QUOTED = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")
# A row of CSV of another length, which Arrow quotes without quotation marks: to the end, but for where it is.
ROW_OF_CSV = re.compile(
    r"(CSV parse error: (?:Row #\d+: )?Expected \d+ columns, got \d+): .*?(, after row [\d,]+)?(\)\.|)$", re.DOTALL
)
# Numbers, but for parts of words and names.
NUMBER = re.compile(r"(?<![\w./-])[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w]|\.\w)")
# What a number counts, or is the number of, that is no value of a table.
COUNTED_BEFORE = re.compile(
    r"(?:\b[Rr]ows?|\blines?|\bcolumn|\brun|\bversion|\bat least|\bat most|\bexpected|\bcolumns, got)\s*#?$"
)
COUNTED_AFTER = re.compile(
    r"\s*(?:different|rows?|columns?|files?|classes|cells?|values|bytes|[KMGT]i?B|%|seconds|s\b|more)"
)


def without_values(message: str, known: Collection[str]) -> str:
    """A message with what may be a value of the table hidden.

    Kept are texts in quotes that are among `known` (names of columns, words of the configuration), and numbers that say
    how many, or which row.
    """
    message = ROW_OF_CSV.sub(rf"\1: {HIDDEN}\2\3", message)
    plain: list[str] = []
    place = 0
    for found in QUOTED.finditer(message):
        plain.append(_without_numbers(message[place : found.start()]))
        text = found[1] if found[1] is not None else found[2]
        plain.append(found[0] if text in known else f"'{HIDDEN}'")
        place = found.end()
    return "".join([*plain, _without_numbers(message[place:])])


def _without_numbers(text: str) -> str:
    def hide(found: re.Match[str]) -> str:
        counted = COUNTED_BEFORE.search(text[: found.start()]) or COUNTED_AFTER.match(text[found.end() :])
        return found[0] if counted else HIDDEN

    return NUMBER.sub(hide, text)
