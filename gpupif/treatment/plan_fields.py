"""The keys of a treatment in a plan: checks of their types, and their conversion from and to plain values."""

from __future__ import annotations

import collections.abc
import dataclasses
import os
import types
import typing
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..attack.attackers import AnyKnown
from ..encoding.plain_values import text_of
from ..errors import InputError
from ..utils.validation import brief, is_hashable, is_number, is_whole
from .field_checks import check_keys
from .treatment import PlanPart

Part = typing.TypeVar("Part", bound=PlanPart)
# Keys that a plan must not have: plans may be shown to others, so the secret is given beside the plan.
SECRETS = ("key", "key_file", "password", "secret", "seed")


@cache
def types_of(kind: Any) -> Mapping[str, Any]:
    """Return the type of each field of a class of treatments, by name."""
    hints = typing.get_type_hints(kind)
    return {own.name: hints[own.name] for own in dataclasses.fields(kind)}


def refuse_secret(said: str, key: Any) -> None:
    """Raise InputError for a key of a plan that would hold a secret. said: prefix of the error."""
    if str(key).lower() in SECRETS:
        raise InputError(
            f"{said}: {key!r} is never in a plan, which may be shown to others. Remove it, and give the key beside the "
            "plan: key=."
        )


def treatment_from(said: str, kind: type[Part], given: Mapping[str, Any], folder: Path | None) -> Part:
    """Return the treatment with some keys. Its values are not checked yet.

    said: prefix of errors. folder: start of relative paths; None leaves paths unchanged. Raises InputError for an
    unknown key, and for a missing key.
    """
    for key in given:
        refuse_secret(said, key)
    check_keys(said, kind, given)
    return kind(**{key: _resolved(value, folder) if key in kind.files else value for key, value in given.items()})


def _resolved(path: Any, folder: Path | None) -> Any:
    """Return a relative path joined to a folder. Absolute paths, and values that are no text, stay unchanged."""
    return path if folder is None or not isinstance(path, str) else str(folder / Path(path).expanduser())


def with_types(said: str, treatment: Part) -> Part:
    """Return the treatment with lists of columns that have each name once, also for a single name.

    said: prefix of errors. Raises InputError for a value of another type.
    """
    wrapped = {}
    for name, hint in types_of(type(treatment)).items():
        value = getattr(treatment, name)
        if _fits(value, hint):
            if value is not None and Hashable in _item_types(hint):
                wrapped[name] = list(dict.fromkeys(value))
            continue
        may_be_item = isinstance(value, str) or (Hashable in _item_types(hint) and not isinstance(value, Iterable))
        if not may_be_item or not _fits([value], hint):
            column = getattr(treatment, "column", None)
            where = "" if column is None or name == "column" else f"column {column!r}: "
            raise InputError(f"{said}: {where}{name}: expected {_in_words(hint)}, got {brief(value)}.")
        wrapped[name] = [value]
    return dataclasses.replace(treatment, **wrapped) if wrapped else treatment


def _item_types(hint: Any) -> tuple[Any, ...]:
    """Return the types of the items of a list type, also of an optional list; empty if the type is no list."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return tuple(item for own in options if typing.get_origin(own) is Sequence for item in typing.get_args(own))


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of the type of a treatment's field."""
    if hint is Any or hint is object:
        return True
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in inner)
    if origin is typing.Literal:
        return isinstance(value, str | int) and value in inner
    if origin is not None:
        if issubclass(origin, Mapping):
            return isinstance(value, Mapping) and (
                not inner or all(_fits_key(key, inner[0]) and _fits(own, inner[1]) for key, own in value.items())
            )
        if issubclass(origin, collections.abc.Iterable):
            listed = isinstance(value, Sequence | np.ndarray | set | frozenset) and not isinstance(value, str | bytes)
            return listed and (not inner or all(_fits(own, inner[0]) for own in value))
        return isinstance(value, origin)
    if hint is float:
        return is_number(value)
    if hint is int:
        return is_whole(value)
    if hint is Hashable:
        return value is not None and is_hashable(value)
    return hint is not None and isinstance(value, hint)


def _fits_key(key: Any, hint: Any) -> bool:
    """Return whether the key of a dictionary is of a type, see `_fits`. Documents hold every key as text."""
    return isinstance(key, str) or _fits(key, hint)


_WORDS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    Hashable: "the name of a column",
    type(None): "nothing",
    Path: "a path",
    os.PathLike: "a path",
}


def _in_words(hint: Any) -> str:
    """Return the words for a type in errors."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_in_words(option) for option in inner if option is not type(None)))
    if origin is typing.Literal:
        return " or ".join(map(repr, inner))
    if origin is not None:
        if issubclass(origin, os.PathLike):
            return "a path"
        if issubclass(origin, Mapping):
            words = _plural(inner[1]) if inner else "values"
            return "a table of keys and values" + (f" that are {words}" if words != "values" else "")
        return f"a list of {_plural(inner[0])}" if inner else "a list"
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)))


def _plural(hint: Any) -> str:
    if typing.get_origin(hint) is Sequence:
        return f"lists of {_plural(typing.get_args(hint)[0])}"
    words = {Hashable: "names of columns", float: "numbers", int: "whole numbers", str: "texts"}
    return words.get(hint, "values")


def plain_fields(treatment: PlanPart) -> dict[str, Any]:
    """Return the plain values of a treatment's keys, see `plain`, except keys that are None or have their default."""
    values = {}
    for own in dataclasses.fields(treatment):
        value = getattr(treatment, own.name)
        default = own.default_factory() if own.default_factory is not dataclasses.MISSING else own.default
        if value is not None and (default is dataclasses.MISSING or plain(value) != plain(default)):
            values[own.name] = plain(value)
    return values


def names_in_documents(treatment: PlanPart) -> list[Hashable]:
    """Return the column names that have to be text in a document: keys of dictionaries by column, and tuples."""
    names: list[Hashable] = [name for name in treatment.named() if isinstance(name, tuple)]
    for field, hint in types_of(type(treatment)).items():
        if any(typing.get_args(own)[:1] == (Hashable,) for own in (hint, *typing.get_args(hint))):
            value = getattr(treatment, field)
            names += value if isinstance(value, Mapping) else []
    return names


def as_call(treatment: PlanPart) -> str:
    """Return the Python call that makes a treatment, without keys that have their default."""
    keys = ", ".join(f"{name}={getattr(treatment, name)!r}" for name in plain_fields(treatment))
    return f"{type(treatment).__name__}({keys})"


def plain(value: Any) -> Any:
    """Return a value of a plan as nested lists and dictionaries of numbers and text; other values become text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, AnyKnown):
        given = {own.name: getattr(value, own.name) for own in dataclasses.fields(value)}
        given = {name: own for name, own in given.items() if own is not None and (name != "seed" or value.subsets)}
        return plain(given) if len(given) > 1 else value.known
    if isinstance(value, Mapping):
        # Arrow has no text for a tuple, which may be the name of a column.
        return {str(key) if isinstance(key, str | tuple) else text_of(key): plain(own) for key, own in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    if isinstance(value, Sequence | np.ndarray):
        return [plain(own) for own in value]
    return text_of(value)
