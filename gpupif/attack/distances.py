"""The distances between values of a column, for the earth mover's distance."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from gpupif.kernels import walks

from ..encoding.column import Column
from ..engines.base import NOTHING, Axis
from ..errors import InputError, marked
from ..utils.validation import table_value
from .hierarchy_files import TextOrder, TextTree, paths_up
from .priors import Prior, plain_value, values_by_text


class CategoryOrder(list[Any]):
    """The values of ordered categories, which nobody gave as an argument."""


# Python values that have an order.
KINDS = (int, float, Decimal, datetime.date, datetime.time, datetime.timedelta)


def make_axis(column: Column, prior: Prior, distance: Any) -> Axis:
    """Return the axis of a column.

    distance: "nominal", "ordered", a sequence of values in order, or a hierarchy, a mapping of each value to the
    names of what it belongs to, from the narrowest to the widest; None: "ordered" for numbers, dates, times and
    booleans, else "nominal". Missing values come last in an order, unless that names None. A value whose prior
    probability is 0 stands for nobody: it adds no step to an order.

    Raise InputError if a value is missing from the order or the hierarchy, or the hierarchy is no tree.
    """
    name, values = column.name, column.values()
    own = set(values)
    extra = {value: share for value, share in (prior.given or {}).items() if value not in own}
    if isinstance(distance, np.ndarray | pd.Index):
        distance = distance.tolist()
    file = None
    if isinstance(distance, TextOrder | TextTree):
        file, distance = distance.file, _of_values(name, distance, [*values, *extra])
    # A column that has only missing values takes its type from the other values of its prior.
    known = [value for value in extra if value is not None]
    natural = has_order(column) or (not len(column.labels) and bool(known) and all(isinstance(v, KINDS) for v in known))
    if distance is None:
        distance = "ordered" if natural else "nominal"
    if distance == "nominal":
        return _nominal(prior)
    if distance == "ordered":
        if not natural:
            raise InputError(
                f"distances: column {name!r}: expected numbers, dates, times or booleans for 'ordered'; its values "
                "have no order. Give them in order, as a list."
            )
        return _ordered(name, prior, values, extra, _key)
    if isinstance(distance, Mapping):
        return _tree(name, prior, values, extra, distance, "" if file is None else f" in {file}")
    if isinstance(distance, str) or not isinstance(distance, Sequence):
        raise InputError(
            f"distances: column {name!r}: expected 'nominal', 'ordered', a list of its values in order, the dictionary "
            f"of a hierarchy, or a .csv or .json file of either, got {distance!r:.60}."
        )
    listed = [plain_value(value) for value in distance]
    if not all(isinstance(value, Hashable) for value in listed):
        raise InputError(f"distances: column {name!r}: expected a list of its values in order, got lists in it.")
    order = {value: place for place, value in enumerate(listed)}
    if isinstance(distance, CategoryOrder) and any(value not in order for value in extra if value is not None):
        strange = next(value for value in extra if value is not None and value not in order)
        raise InputError(
            f"column {name!r}: its ordered categories lack {table_value(strange)}, which the prior or the population "
            "has. Give all values in order with distances=."
        )
    lacking = [value for value in (*values, *extra) if value not in order and value is not None]
    if lacking or len(order) < len(distance):
        what = f"{table_value(lacking[0])} is not in it" if lacking else "a value stands there twice"
        raise InputError(f"distances: column {name!r}: expected all its values in order, each once; {what}.")
    return _ordered(name, prior, values, extra, lambda value: order.get(value, len(order)))


def _of_values(name: Hashable, given: TextOrder | TextTree, values: Sequence[Any]) -> list[Any] | dict[Any, Any]:
    """Return a distance from a file with values of the column in place of their texts. Other texts stay."""
    of_text = values_by_text(values)
    plain = {key: of_text.get(key, key) if isinstance(key, str) else key for key in given}
    if isinstance(given, TextOrder):
        return [plain[key] for key in given]
    tree, texts = dict[Any, Any](), dict[Any, str]()
    for text, names in given.items():
        if tree.setdefault(plain[text], names) != names:
            raise InputError(
                f"distances: column {name!r}: {'' if given.file is None else f'{given.file}: '}{table_value(text)} and "
                f"{table_value(texts[plain[text]])} are one value there, and part of something else each. Keep one."
            )
        texts.setdefault(plain[text], text)
    return tree


def has_order(column: Column) -> bool:
    """Return whether a column has values, and these have an order of their own."""
    labels = column.labels
    if not len(labels):
        return False
    if isinstance(labels, pa.Array | pa.ChunkedArray):
        kinds = pa.types
        return any(
            test(labels.type)
            for test in (kinds.is_integer, kinds.is_floating, kinds.is_decimal, kinds.is_temporal, kinds.is_boolean)
        )
    kind = pd.api.types.infer_dtype(labels, skipna=True) if labels.dtype == object else ""
    return labels.dtype.kind in "iufbmM" or kind in ("integer", "floating", "mixed-integer-float", "boolean", "date")


def _key(value: Any) -> Any:
    """Return the sort key of a value. A text is the key of its number, as in priors from JSON. Raise ValueError."""
    key = float(value) if isinstance(value, str) else value
    if key != key:
        raise ValueError(f"{value!r} is no number")
    return key


def _nominal(prior: Prior) -> Axis:
    count = len(prior.probabilities)
    nodes = np.empty((0, count), np.int64)
    return Axis(walks.NOMINAL, np.arange(count), np.arange(count), NOTHING, nodes, prior.probabilities, 1)


def _ordered(name: Hashable, prior: Prior, values: list[Any], extra: Mapping[Any, float], key: Any) -> Axis:
    """Return the axis of values that occur, and of others of the prior, in the order of a key."""
    count = len(values)
    everything = [*values, *extra]

    def place_of(i: int) -> tuple[bool, Any]:
        value = everything[i]
        return value is None and key is _key, 0 if value is None and key is _key else key(value)

    try:
        places = sorted(range(len(everything)), key=place_of)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"distances: column {name!r}: its values, and those of its prior, cannot be compared "
            f"({marked(str(error))}). Give them in order, as a list."
        ) from None
    shares = np.concatenate([prior.probabilities, np.array(list(extra.values()), np.float64)])[places]
    there = shares > 0
    in_order = np.array(places)
    occurs = in_order < count
    rank = np.empty(count, np.int64)
    rank[in_order[occurs]] = np.arange(count)
    # A value that nobody has is in no cohort; its place, that of the value before it, is not used.
    place = np.maximum(np.cumsum(there) - 1, 0)[occurs]
    nodes = np.empty((0, count), np.int64)
    return Axis(walks.ORDERED, rank, place, shares[there], nodes, NOTHING, max(1, int(there.sum()) - 1))


def _tree(
    name: Hashable,
    prior: Prior,
    values: list[Any],
    extra: Mapping[Any, float],
    given: Mapping[Any, Any],
    where: str,
) -> Axis:
    """Return the axis of a hierarchy. If it has several widest names, a root is added. where: its source."""
    everything = [*values, *extra]
    given = {plain_value(value): names for value, names in given.items()}
    lacking = [value for value in everything if value not in given]
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        lacked = (
            table_value(lacking[0]) if lacking[0] is not None else "missing values (None; in a file NULL, or nothing)"
        )
        raise InputError(
            f"distances: column {name!r}: the hierarchy{where} lacks {lacked}{more}. Add "
            f"{'each' if more else 'it'} and what it is part of."
        )
    paths = paths_up(f"distances: column {name!r}", given, where)
    depth = len(next(iter(paths.values()), ()))
    top = {path[-1] for path in paths.values()} if depth else set(paths)
    below = depth + 1 - (len(top) == 1 and depth > 0)
    # Numbered as the hierarchy has them, whatever the order of the column's codes.
    full = {value: [value, *path][:below] for value, path in paths.items()}
    number = [_numbers(path[level] for path in full.values()) for level in range(below)]
    numbers = [np.array([of[full[value][level]] for value in everything]) for level, of in enumerate(number)]
    order = np.lexsort(numbers)
    shares = np.concatenate([prior.probabilities, np.array(list(extra.values()), np.float64)])
    first = np.cumsum([0, *(len(of) for of in number)])
    masses = np.concatenate([np.bincount(level, shares, len(of)) for level, of in zip(numbers, number, strict=True)])
    count = len(values)
    present = order[order < count]
    rank = np.empty(count, np.int64)
    rank[present] = np.arange(count)
    nodes = np.array([level[present] + start for level, start in zip(numbers, first[:-1], strict=True)])
    return Axis(walks.TREE, rank, np.arange(count), NOTHING, nodes, masses, len(numbers))


def _numbers(names: Iterable[Any]) -> dict[Any, int]:
    """Names to numbers, in order of first appearance."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
