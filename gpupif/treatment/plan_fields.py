"""The keys of a treatment in a plan: its fields, with types that are checked, as plain values that a plan can hold."""

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

from ..encoding.plain_values import text_of
from ..errors import InputError, did_you_mean
from ..utils.validation import brief, is_hashable, is_number, is_whole
from .treatment import Treatment

# What a plan never has: it is given beside it, so that a plan can be shown.
SECRETS = ("key", "key_file", "password", "secret", "seed")


@cache
def types_of(kind: type[Treatment]) -> Mapping[str, Any]:
    """The type of each field of a treatment."""
    hints = typing.get_type_hints(kind)
    return {one.name: hints[one.name] for one in dataclasses.fields(kind)}


def refuse_secret(said: str, key: Any) -> None:
    """Raise InputError for a key that would give away what a plan was drawn with."""
    if str(key).lower() in SECRETS:
        raise InputError(
            f"{said}: {key!r} is never in a plan, which may be shown to others. Remove it, and give the key beside the "
            "plan: key= or --key-file."
        )


def treatment_from(said: str, kind: type[Treatment], given: Mapping[str, Any], folder: Path | None) -> Treatment:
    """A treatment of some keys; raises InputError for an unknown key, and for one that lacks.

    Its values are not looked at yet. said: what errors call it. folder: relative paths begin at it.
    """
    fields = {one.name: one for one in dataclasses.fields(kind)}
    for key in given:
        refuse_secret(said, key)
        if key not in fields:
            listed = ", ".join(map(repr, fields))
            hint = did_you_mean(str(key), fields)
            raise InputError(f"{said}: there is no key {brief(key)}.{hint} Expected some of {listed}.")
    for name, one in fields.items():
        needed = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        if needed and name not in given:
            raise InputError(f"{said}: expected a key {name!r}, got none. Add it.")
    return kind(**{key: _resolved(value, folder) if key in kind.files else value for key, value in given.items()})


def _resolved(path: Any, folder: Path | None) -> Any:
    """A path with the folder before it where it is relative; what is no path as it is."""
    return path if folder is None or not isinstance(path, str) else str(folder / Path(path).expanduser())


def with_types(said: str, treatment: Treatment) -> Treatment:
    """The treatment with a list of names where one stands alone; raises InputError for a value of another type."""
    alone = {}
    for name, hint in types_of(type(treatment)).items():
        value = getattr(treatment, name)
        if _fits(value, hint):
            continue
        names = isinstance(value, str) or (Hashable in _listed(hint) and not isinstance(value, Iterable))
        if not names or not _fits([value], hint):
            raise InputError(f"{said}: {name}: expected {_in_words(hint)}, got {brief(value)}.")
        alone[name] = [value]
    return dataclasses.replace(treatment, **alone) if alone else treatment


def _listed(hint: Any) -> tuple[Any, ...]:
    """Return what the values are of a list of a type, also one that may be missing; empty where it is no list."""
    several = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return tuple(inner for one in several if typing.get_origin(one) is Sequence for inner in typing.get_args(one))


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, as those of treatments' fields are."""
    if hint is Any or hint is object:
        return True
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
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
    """As `_fits`, of a key: in a document it is text, whatever it stands for."""
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
    """A type as errors say it."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_in_words(one) for one in inner if one is not type(None)))
    if origin is typing.Literal:
        return " or ".join(map(repr, inner))
    if origin is not None:
        if issubclass(origin, os.PathLike):
            return "a path"
        if issubclass(origin, Mapping):
            return "a table of keys and values"
        return f"a list of {_plural(inner[0])}" if inner else "a list"
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)))


def _plural(hint: Any) -> str:
    words = {Hashable: "names of columns", float: "numbers", int: "whole numbers", str: "texts"}
    return words.get(hint, "values")


def plain_fields(treatment: Treatment) -> dict[str, Any]:
    """The keys of a treatment that are not as by default, as text, numbers, lists and dictionaries of such."""
    found = {}
    for one in dataclasses.fields(treatment):
        value = getattr(treatment, one.name)
        default = one.default_factory() if one.default_factory is not dataclasses.MISSING else one.default
        if value is not None and (default is dataclasses.MISSING or plain(value) != plain(default)):
            found[one.name] = plain(value)
    return found


def as_call(treatment: Treatment) -> str:
    """A treatment as it is made in Python, with keys that are not as by default."""
    keys = ", ".join(f"{name}={getattr(treatment, name)!r}" for name in plain_fields(treatment))
    return f"{type(treatment).__name__}({keys})"


def plain(value: Any) -> Any:
    """A value of a plan as its documents have it; others than numbers, text and lists of such by their texts."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else text_of(key): plain(own) for key, own in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    if isinstance(value, Sequence | np.ndarray):
        return [plain(own) for own in value]
    return text_of(value)
