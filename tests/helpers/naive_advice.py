"""The oracle of `advise`: each change made to the table, and what is left of it scored as any other table."""

from __future__ import annotations

from collections import Counter

import gpupif
from tests.helpers.naive import entropy


def figures_of(frame, known, scored):
    """PIF 95, the gains of all cells together, k and uniques; known: that classes are over, where they are there."""
    known, scored = ([name for name in names if name in frame] for names in (known, scored))
    if not scored or not len(frame.columns):
        return {"pif95": 0.0, "fig": 0.0, **classes_of(frame, known)}
    scores = gpupif.score(frame, "cig", scored, known=known)
    gains = scores.cig.to_numpy().sum(axis=1)
    return {"pif95": scores.pif(95), "fig": float(gains.sum()), **classes_of(frame, known)}


def classes_of(frame, known):
    """The smallest class, and the classes of one row."""
    if not known:
        return {"k": len(frame), "uniques": int(len(frame) == 1)}
    sizes = Counter(frame[known].astype(object).where(frame[known].notna(), None).itertuples(index=False, name=None))
    return {"k": min(sizes.values()), "uniques": sum(size == 1 for size in sizes.values())}


def values_of(column):
    """The values of a column, None where there is none."""
    return [None if value != value else value for value in column.astype(object)]


def changes_of(frame, hierarchies, known):
    """By column and level (None: dropped): the table changed, and the entropy that it has less.

    hierarchies: by column, for each level a dictionary from a value to its group.
    """
    found = {}
    for name in known:
        before = entropy(values_of(frame[name]))
        found[name, None] = frame.drop(columns=name), before
        for level, groups in enumerate(hierarchies.get(name, ()), start=1):
            coarse = [None if value is None else groups[value] for value in values_of(frame[name])]
            found[name, level] = frame.assign(**{name: coarse}), before - entropy(coarse)
    return found
