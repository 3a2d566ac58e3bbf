"""Fingerprints: texts that tell tables apart, by which a ledger knows its table."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.column import Column
from ..encoding.plain_values import texts
from ..marginals.set_counts import CountResult
from .queries import NOT_PLAIN, value_texts

# Columns of more distinct values are in older fingerprints by their number only.
MOST_VALUES = 4096


def fingerprints(counted: CountResult) -> list[str]:
    """Return the fingerprint of a table, and the one that older versions of gpupif made.

    Both are digests of the number of rows, the names of columns, and how often each value of each column occurs; the
    older one leaves out the values of columns with more than `MOST_VALUES`. They are the same for a table in memory, in
    files and on Dask, whatever the order of rows and columns.
    """
    facts = [[str(own.name), own.missing_rows, _values_digest(own)] for own in counted.columns]
    return [_digest(counted, sorted(facts)), _digest(counted, _older_facts(counted.columns))]


def _digest(counted: CountResult, facts: Any) -> str:
    return hashlib.sha256(json.dumps([counted.total.rows, facts]).encode()).hexdigest()


def _values_digest(column: Column) -> str:
    """Return a digest of the values of a column and their counts. All is done in Arrow: there may be millions."""
    labels, counts = column.labels, column.counts[: len(column.labels)]
    try:
        found = texts(labels if isinstance(labels, pa.Array) else pa.array(labels)).cast(pa.large_string())
        # CSV files from Python have the truth values so.
        found = pc.if_else(pc.is_in(found, pa.array(["True", "False"], found.type)), pc.utf8_lower(found), found)
    except (*NOT_PLAIN, UnicodeError):
        written = [str(text).encode("utf-8", "surrogatepass") for text in value_texts(column)[: len(labels)]]
        found = pa.array(written, pa.large_binary())
    order = pc.sort_indices(found)
    found, counts = found.take(order), counts[order.to_numpy()]
    # Values of several types may have one text.
    is_first = np.append(True, pc.not_equal(found[1:], found[:-1]))[: len(found)].astype(bool)
    found, sums = found.filter(pa.array(is_first)), np.add.reduceat(counts, np.flatnonzero(is_first))
    lengths = pc.binary_length(found).to_numpy()
    digest = hashlib.sha256(lengths.astype("<i8").tobytes())
    digest.update(sums.astype("<i8").tobytes())
    digest.update(memoryview(found.buffers()[2] or b"")[: int(lengths.sum())])
    return digest.hexdigest()


def _older_facts(columns: Sequence[Column]) -> list[Any]:
    facts = []
    for column in columns:
        values: list[Any] = []
        if column.cardinality <= MOST_VALUES:
            texts = value_texts(column)[: len(column.labels)]
            sums: Counter[str] = Counter()
            for text, number in zip(texts, column.counts[: len(texts)].tolist(), strict=True):
                sums[str(text)] += number
            values = sorted(sums.items())
        facts.append([str(column.name), len(column.labels), column.missing_rows, values])
    return sorted(facts, key=lambda fact: str(fact[0]))
