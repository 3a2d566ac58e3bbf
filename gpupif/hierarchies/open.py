"""Hierarchies from the arguments of functions: from a file, a description, a dictionary of values, or an object."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..attack.hierarchy_files import TextTree, names_file, read_distance
from ..errors import InputError, did_you_mean
from ..io.documents import read_document
from ..utils.validation import brief
from .codes import FirstCharacters, MaskedCodes
from .common_values import CommonValues
from .date_units import DateUnits
from .hierarchy import Hierarchy
from .intervals import Intervals
from .value_tree import ValueTree

# The kinds of hierarchies, by the key that a description must have.
KINDS: Mapping[str, type[Hierarchy]] = {
    "widths": Intervals,
    "digits": MaskedCodes,
    "first": FirstCharacters,
    "dates": DateUnits,
    "common": CommonValues,
    "values": ValueTree,
}
# Searches compare levels as fields of 16 bits, of which the highest number means that values are in no common group.
MOST_LEVELS = (1 << 15) - 2
FORMS = (
    "{ widths = [5, 10, 20] }, { digits = 3 }, { first = [3, 1] }, { dates = ['month', 'year'] }, "
    "{ common = [...], keep = [10, 5] }, { value = ['narrow', 'wide'], ... }, or the path of a .csv "
    "file (value;level1;...;*) or a .json file"
)


def open_hierarchies(given: Any, folder: Path | None = None) -> dict[Hashable, Hierarchy]:
    """Return hierarchies by column. Raises InputError.

    given: for each column an argument of `open_hierarchy`; or the path of a file, see `read_hierarchies`; None for no
    hierarchies. folder: the folder at which relative paths begin.
    """
    if given is None:
        return {}
    if isinstance(given, str | os.PathLike):
        return read_hierarchies(given)
    if not isinstance(given, Mapping):
        raise InputError(
            f"hierarchies: expected a dictionary by column, or the path of a .toml file, got {brief(given)}."
        )
    return {column: open_hierarchy(column, own, folder) for column, own in given.items()}


def read_hierarchies(path: str | os.PathLike[str]) -> dict[Hashable, Hierarchy]:
    """Read hierarchies of columns from a file.

    Parameters
    ----------
    path:
        A .toml, .json, .yaml or .yml file: a plan, or a file with a table ``[hierarchies]`` and nothing else. The table
        has for each column a hierarchy as `Plan` takes it. Relative paths begin at the folder of the file.

    Returns
    -------
    dict[Hashable, Hierarchy]
        The hierarchies by column, in the order of the file.

    Raises
    ------
    InputError
        If there is no such file, it has another format or no table, or a hierarchy in it is wrong: the message names
        the column.

    Examples
    --------
    >>> import gpupif, pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "H.toml")
    >>> _ = file.write_text("hierarchies.age = { widths = [5, 10, 20] }")
    >>> gpupif.read_hierarchies(file)["age"].height
    4
    >>> folder.cleanup()

    """
    file = Path(path)
    document = read_document("hierarchies", file)
    table = document.get("hierarchies")
    if not isinstance(table, Mapping):
        raise InputError(
            f"hierarchies: {file}: expected a table [hierarchies], by column, got none. A line in it: age = "
            "{ widths = [5, 10, 20] }."
        )
    others = [key for key in document if key not in ("hierarchies", "treatment")]
    if others:
        raise InputError(
            f"hierarchies: {file}: expected nothing beside [hierarchies], got {others[0]!r}. Move it there, or remove "
            "it."
        )
    return open_hierarchies(table, file.parent)


def open_hierarchy(column: Hashable, given: Any, folder: Path | None = None) -> Hierarchy:
    """Return the hierarchy of a column. Raises InputError, also for more than `MOST_LEVELS` levels.

    given: the path of a file (a .csv file of ARX, or .json), a description such as ``{"widths": [5, 10, 20]}``, a
    dictionary that gives for each value the names of its groups, or a `Hierarchy`. folder: the folder at which relative
    paths begin.
    """
    said = f"hierarchies: column {column!r}"
    hierarchy = _open(column, said, given, folder)
    if hierarchy.height > MOST_LEVELS:
        raise InputError(f"{said}: expected at most {MOST_LEVELS:,} levels, got {hierarchy.height:,}. Leave some out.")
    return hierarchy


def _open(column: Hashable, said: str, given: Any, folder: Path | None) -> Hierarchy:
    if isinstance(given, Hierarchy):
        return given.for_column(column)
    if names_file(given):
        path = Path(given).expanduser()
        return _from_file(column, said, path if folder is None else folder / path)
    if not isinstance(given, Mapping):
        raise InputError(f"{said}: expected {FORMS}; got {brief(given)}.")
    if isinstance(given, TextTree):
        return ValueTree(given, given.file, column)
    word = next((word for word in KINDS if word in given), None)
    if word is None:
        _refuse_near_words(said, given)
        return ValueTree(given, None, column)
    return _described(column, said, KINDS[word], given)


def _from_file(column: Hashable, said: str, path: Path) -> Hierarchy:
    tree = read_distance(said, path)
    if not isinstance(tree, TextTree):
        raise InputError(
            f"{said}: {path}: expected a hierarchy, each value with the names of its groups, got a list of values in "
            "order."
        )
    return ValueTree(tree, path, column)


def _described(column: Hashable, said: str, kind: type[Hierarchy], given: Mapping[Any, Any]) -> Hierarchy:
    keys = [own.name for own in fields(kind) if own.name not in ("column", "file")]  # type: ignore[arg-type]
    for key in given:
        if key not in keys:
            listed = ", ".join(map(repr, keys))
            raise InputError(
                f"{said}: no key {key!r} beside {keys[0]!r}; expected some of {listed}.{did_you_mean(str(key), keys)} "
                f"For values that are called {keys[0]!r} and {key!r} write {{ values = {{ ... }} }}."
            )
    make: Callable[..., Hierarchy] = kind
    return make(**given, column=column)


def _refuse_near_words(said: str, given: Mapping[Any, Any]) -> None:
    """Raise InputError if a dictionary of values has one key only, which is like a word of `KINDS`: it is misspelt."""
    if len(given) == 1 and (hint := did_you_mean(str(next(iter(given))), KINDS)):
        raise InputError(
            f"{said}: expected {FORMS}; got {brief(next(iter(given)))} alone.{hint} For a value of that name "
            "write { values = { ... } }."
        )
