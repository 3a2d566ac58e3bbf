"""Files of hierarchies and orders of values, in CSV as ARX writes hierarchies, or in JSON.

In a hierarchy, the names of the nodes above a value follow the value, from the narrowest to the widest. A file has
texts: each denotes the value that has this text (see `priors.values_by_text`). Hierarchies are checked to be trees.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, reason_of
from ..io.documents import parse_json
from ..utils.given_files import read_file
from ..utils.validation import table_value

ENDINGS = (".csv", ".json")
# Separators of a CSV file. The first that is in the file's first line is used. Names may contain commas.
SEPARATORS = ";\t|,"
# The name of the root, by ARX's convention.
ANYTHING = "*"


class TextOrder(list[Any]):
    """Values in order, from a file, perhaps as the texts of values. file: its path."""

    file: Path | None = None


class TextTree(dict[str, Any]):
    """A hierarchy from a file, whose keys are texts of values. file: its path."""

    file: Path | None = None


def names_file(given: Any) -> bool:
    """Return whether this names a file of a hierarchy or an order: a path object, or text with the ending of such a
    file.
    """
    return isinstance(given, os.PathLike) or (isinstance(given, str) and given.lower().endswith(ENDINGS))


def read_named_files(argument: str, given: Any) -> Any:
    """Return a dictionary with the content of files in place of their names; other arguments unchanged. Raise
    InputError.

    argument: its name in errors.
    """
    if not isinstance(given, Mapping):
        return given
    return {key: read_distance(argument, what) if names_file(what) else what for key, what in given.items()}


def read_distance(argument: str, file: str | os.PathLike[str]) -> TextOrder | TextTree:
    """Return a hierarchy from CSV or JSON, or values in order from JSON. Raise InputError. argument: its name in
    errors.
    """
    path = Path(file)
    what = f"{argument}: {path}"
    if path.suffix.lower() not in ENDINGS:
        raise InputError(
            f"{what}: expected a .csv file with a hierarchy, a line for each value (value;what it is part of;...;*), "
            "or a .json file with that or a list of values in order."
        )
    text = read_text(what, path)
    found = _tree_from_csv(what, text) if path.suffix.lower() == ".csv" else _from_json(what, text)
    found.file = path
    return found


def read_text(what: str, path: Path) -> str:
    """Return the text of a file. what: its name in errors. Raises InputError."""
    try:
        return read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{what}: expected text in UTF-8. Save it as UTF-8.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{what}: {getattr(error, 'strerror', None) or error}.") from None


def _from_json(what: str, text: str) -> TextOrder | TextTree:
    try:
        found = parse_json(text)
    except ValueError as error:
        raise InputError(
            f"{what}: expected JSON, a list of values in order or a hierarchy: {reason_of(error, has_values=False)}."
        ) from None
    if not isinstance(found, list | dict):
        raise InputError(f"{what}: expected a list of values in order, or a hierarchy; got {table_value(found)}.")
    return TextOrder(found) if isinstance(found, list) else TextTree(found)


def _tree_from_csv(what: str, text: str) -> TextTree:
    """Return the hierarchy in a CSV file without header. A line has a value and the names above it, level by level."""
    lines = _lines(what, text)
    if not lines:
        raise InputError(f"{what}: expected a line for each value (value;what it is part of;...;*), got none.")
    first, levels = lines[0][0], len(lines[0][1])
    if levels < 2:
        raise InputError(
            f"{what}: line {first}: expected a value and what it is part of, separated by ';' (or a tab, '|', ','), "
            f"got {table_value(lines[0][1][0])} alone. Add what it is part of, at least '*' for anything."
        )
    rooted = any(fields[-1] == ANYTHING for _, fields in lines)
    tree, found = TextTree(), dict[str, int]()
    for number, (value, *names) in lines:
        where = f"{what}: line {number}"
        if len(names) + 1 != levels:
            raise InputError(
                f"{where}: expected {levels} fields as in line {first}, got {len(names) + 1} ({table_value(value)} and "
                "what it is part of). Repeat a name where a level is missing."
            )
        if "" in names:
            raise InputError(
                f"{where}: expected names of what {table_value(value)} is part of, got an empty one (field "
                f"{names.index('') + 2}). Name it, or leave out a separator at the end of all lines."
            )
        if rooted and names[-1] != ANYTHING:
            raise InputError(
                f"{where}: expected '*' at the end as in other lines, got {table_value(names[-1])}. Add it; a header "
                "is left out."
            )
        if tree.setdefault(value, names) != names:
            raise InputError(
                f"{where}: {table_value(value)} is part of something else than in line {found[value]}. Keep one of the "
                "two."
            )
        found.setdefault(value, number)
    return tree


def _lines(what: str, text: str) -> list[tuple[int, list[str]]]:
    """Return the fields and the number, from 1, of each line that is not empty."""
    separator = next((sign for sign in SEPARATORS if _separates(sign, text)), SEPARATORS[0])
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        return [(reader.line_num, fields) for fields in reader if fields]
    except csv.Error as error:
        raise InputError(
            f"{what}: line {reader.line_num}: expected fields separated by {separator!r}, a quote in quotes written "
            f"twice; {reason_of(error)}."
        ) from None


def _separates(sign: str, text: str) -> bool:
    """Return whether `sign` separates fields in the first line that is not empty."""
    return len(next((fields for fields in csv.reader(StringIO(text, newline=""), delimiter=sign) if fields), "")) > 1


def paths_up(said: str, given: Mapping[Any, Any], where: str = "") -> dict[Any, list[Any]]:
    """Return, for each value, the names of the nodes above it, from the narrowest. A single name needs no list.

    Raise InputError if values have different numbers of names, or a name has several names above it.

    said: the name of the column in errors. where: the source of the hierarchy, for errors.
    """
    paths = {value: names if type(names) is list else _as_list(names) for value, names in given.items()}
    try:
        set(chain.from_iterable(paths.values()))
    except TypeError:
        raise InputError(f"{said}: expected names of what values are part of, got lists in lists.") from None
    depths = {len(path) for path in paths.values()}
    if len(depths) > 1:
        raise InputError(
            f"{said}: the hierarchy{where} is no tree of equal depth: expected as many names for each value, got "
            f"{min(depths)} to {max(depths)}. Repeat a name where a level is missing."
        )
    levels = list(zip(*paths.values(), strict=True))
    for level in range(1, len(levels)):
        pairs = set(zip(levels[level - 1], levels[level], strict=True))
        if len(pairs) > len({child for child, _ in pairs}):
            _refuse_tree(said, where, level, paths)
    return paths


def _as_list(names: Any) -> list[Any]:
    return [names] if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray) else list(names)


def _refuse_tree(said: str, where: str, level: int, paths: Mapping[Any, Sequence[Any]]) -> None:
    """Raise InputError for two values that are one group at a level, from 1, and not at the next."""
    first: dict[Any, Any] = {}
    for value, path in paths.items():
        other = first.setdefault(path[level - 1], value)
        if paths[other][level] != path[level]:
            raise InputError(
                f"{said}: the hierarchy{where} is no tree: {table_value(path[level - 1])} is part of "
                f"{table_value(path[level])} and of {table_value(paths[other][level])}: levels {level} and "
                f"{level + 1} of {table_value(value)} and of {table_value(other)}. "
                "What is one group at a level has to be one at all above; rename one of the two."
            )
