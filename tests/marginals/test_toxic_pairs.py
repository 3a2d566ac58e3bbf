"""Toxic pairs and triples compared with Counters, in memory and in streams, in Python and on the command line."""

from __future__ import annotations

import doctest
import json
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpupif
import gpupif.marginals.toxic_pairs
from gpupif import toxic_pairs
from gpupif.engines.cpu.count_tables import is_dense
from gpupif.marginals import counts_on_disk as counting
from gpupif.out_of_core import memory_budget as budget
from tests.helpers import naive
from tests.helpers.tables import SHARED_FIXTURES, frame_of, tables

pytestmark = pytest.mark.every_engine


def plain(value):
    """Return a value in a form to compare: None if missing, equal numbers as equal."""
    return None if value is None or value != value else getattr(value, "item", lambda: value)()


def expected(table, size):
    """Return the figures of each set of columns, and (rarity, count) of each combination by columns and values."""
    rows = len(next(iter(table.values())))
    figures, values = {}, {}
    for names in combinations(table, size):
        cells = list(zip(*(table[name] for name in names), strict=True))
        counts = Counter(cells)
        alone = [Counter(table[name]) for name in names]
        figures[names] = {
            "joint_entropy": naive.entropy(cells),
            "shared": sum(naive.entropy(table[name]) for name in names) - naive.entropy(cells),
            "unique_rows": sum(count == 1 for count in counts.values()),
            "smallest_cohort": min(counts.values()),
            "combinations": len(counts),
            "distinction": len(counts) / rows,
            "separation": 1 - Fraction(sum(comb(count, 2) for count in counts.values()), max(1, comb(rows, 2))),
        }
        for cell, count in counts.items():
            product = math.prod(counter[value] for counter, value in zip(alone, cell, strict=True))
            values[names, cell] = (math.log2(product / rows**size / (count / rows)), count)
    return figures, values


def check(found, table, size, top):
    rows = len(next(iter(table.values())))
    figures, values = expected(table, size)
    shared = "mutual_information" if size == 2 else "total_correlation"
    places = range(1, size + 1)
    assert len(found.pairs) == len(figures)
    for record in found.pairs.to_dict("records"):
        figure = figures[tuple(record[f"column_{place}"] for place in places)]
        assert record["joint_entropy"] == pytest.approx(figure["joint_entropy"], abs=1e-12)
        assert record[shared] == pytest.approx(figure["shared"], abs=1e-12)
        assert record["unique_share"] == figure["unique_rows"] / rows
        for name in ("unique_rows", "smallest_cohort", "combinations", "distinction"):
            assert record[name] == figure[name]
        assert record["separation"] == float(figure["separation"])
    assert found.pairs["joint_entropy"].is_monotonic_decreasing
    assert len(found.values) == min(top, len(values))
    for record in found.values.to_dict("records"):
        names = tuple(record[f"column_{place}"] for place in places)
        cell = tuple(plain(record[f"value_{place}"]) for place in places)
        rarity, count = values.pop((names, cell))
        assert record["rarity"] == pytest.approx(rarity, abs=1e-12)
        assert record["count"] == count
        assert record["information"] == pytest.approx(-math.log2(count / rows), abs=1e-12)
        assert record["expected"] == pytest.approx(count * 2**rarity)
    assert found.values["rarity"].is_monotonic_decreasing
    if values:
        assert max(rarity for rarity, _ in values.values()) <= found.values["rarity"].iloc[-1] + 1e-12


@pytest.mark.slow
@given(table=tables(), size=st.sampled_from([2, 3]), top=st.sampled_from([1, 3, 1000]))
@SHARED_FIXTURES
def test_pairs_and_triples_are_those_of_counters(counting_engine, table, size, top):
    if len(table) < size:
        with pytest.raises(gpupif.InputError, match=f"at least {size} columns"):
            toxic_pairs(frame_of(table), size)
    else:
        check(toxic_pairs(frame_of(table), size, top=top), table, size, top)


def many_values():
    """Return a table with columns of too many values for counters of their pairs."""
    random = np.random.default_rng(0)
    table = {"a": random.integers(0, 900, 4000), "b": random.integers(0, 800, 4000), "c": random.integers(0, 3, 4000)}
    return {name: values.tolist() for name, values in table.items()}


@pytest.mark.parametrize("size", [2, 3])
def test_columns_of_many_values_are_counted(counting_engine, size):
    table = many_values()
    assert not is_dense([900, 800], 4000)
    check(toxic_pairs(pd.DataFrame(table), size, top=50), table, size, 50)


def test_a_toxic_pair_is_found():
    """Find the only person of faith y in country A, among thousands of each."""
    frame = pd.DataFrame({"country": ["A"] * 5000 + ["B"] * 5000, "faith": ["x"] * 5000 + ["y"] * 5000})
    frame.loc[0, "faith"] = "y"
    frame["sex"] = np.tile(["f", "m"], 5000)
    first = toxic_pairs(frame).values.iloc[0]
    assert first[["value_1", "value_2", "count"]].tolist() == ["A", "y", 1]
    assert first["rarity"] == pytest.approx(math.log2(5000 * 5001 / 10_000))


def test_independent_columns_share_exactly_0_bits(counting_engine):
    grid = np.array(np.meshgrid(range(7), range(3), range(5))).reshape(3, -1).T
    frame = pd.DataFrame(np.repeat(grid, 3, axis=0), columns=list("abc"))
    assert (toxic_pairs(frame).pairs["mutual_information"] == 0).all()
    assert (toxic_pairs(frame, 3).pairs["total_correlation"] == 0).all()
    assert toxic_pairs(frame).values["rarity"].tolist() == [0] * 20


def test_kind_of_table_and_order_of_rows_do_not_matter(tmp_path):
    frame = pd.DataFrame({"a": ["x", None, "y", "y"] * 3, "b": [3, 1, 2, 2] * 3, "c": list("qrstuvqrsqrs")})
    frame.to_parquet(tmp_path / "t.parquet")
    turned = frame.iloc[::-1]
    kinds = [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), tmp_path / "t.parquet", turned]
    kinds.append(frame.astype({"a": "category", "c": pd.CategoricalDtype(list("vutsrq"))}))
    documents = []
    for kind in kinds:
        document = toxic_pairs(kind, columns=["c", "a", "b"], top=7).to_dict()
        assert set(document.pop("seconds")) == {"encode", "count"}
        documents.append(json.dumps(document, allow_nan=False))
    assert len(set(documents)) == 1
    assert json.loads(documents[0])["columns"] == ["c", "a", "b"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
@pytest.mark.parametrize("size", [2, 3])
def test_streams_give_the_same_pairs(counting_engine, tmp_path, monkeypatch, ending, size):
    """Read several files in small chunks and batches of one pair: the result is the same to the last bit."""
    monkeypatch.setattr(budget, "MOST_CHUNK", 700)
    table = pd.DataFrame(many_values()).assign(d=lambda frame: (frame["a"] % 7).astype(str).mask(frame["b"] % 5 == 0))
    (tmp_path / "in").mkdir()
    (tmp_path / "temp").mkdir()
    for part, start in enumerate(range(0, 4000, 1500)):
        piece = table.iloc[start : start + 1500].reset_index(drop=True)
        path = tmp_path / "in" / f"part-{part}.{ending}"
        {"parquet": piece.to_parquet, "csv": lambda p, t=piece: t.to_csv(p, index=False), "feather": piece.to_feather}[
            ending
        ](path)
    pattern = tmp_path / "in" / f"*.{ending}"
    wanted = toxic_pairs(table, size, top=30)
    for limit in (None, "16 GiB"):
        with gpupif.config(memory_limit=limit, temp=tmp_path / "temp"):
            found = toxic_pairs(pattern, size, top=30)
        pd.testing.assert_frame_equal(found.pairs, wanted.pairs, check_exact=True)
        pd.testing.assert_frame_equal(found.values, wanted.values, check_exact=True)
        monkeypatch.setattr(counting, "in_batches", lambda sets, *_: [[each] for each in sets])
    assert not list((tmp_path / "temp").iterdir())


def test_a_file_that_does_not_fit_is_read_in_streams(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pd.DataFrame(many_values()).to_parquet(path)
    wanted = toxic_pairs(path)
    monkeypatch.setattr("gpupif.out_of_core.temporary_table.CELL_BYTES", 10**9)
    monkeypatch.setattr("gpupif.marginals.open_counts.MemoryCounts", None)
    found = toxic_pairs(path)
    pd.testing.assert_frame_equal(found.pairs, wanted.pairs, check_exact=True)
    pd.testing.assert_frame_equal(found.values, wanted.values, check_exact=True)


def test_bad_files_are_refused_in_streams(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame(many_values()).to_parquet(path)
    with (
        pytest.raises(gpupif.InputError, match=r"memory_limit: expected at least .* MiB"),
        gpupif.config(memory_limit="10MB"),
    ):
        toxic_pairs(path)
    with pytest.raises(gpupif.errors.ColumnNotFoundError), gpupif.config(memory_limit="1GiB"):
        toxic_pairs(path, columns=["a", "z"])


def test_numbers_of_numpy_are_taken():
    table = pd.DataFrame({"a": ["x", "y", "y"], "b": [1, 2, 1]})
    found = toxic_pairs(table, size=np.int64(2), top=np.int64(1))
    assert (len(found.values), found.size) == (1, 2)
    assert json.loads(found.to_json())["size"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"size": 4}, "size: expected 2"),
        ({"size": True}, "size: expected 2"),
        ({"size": 2j}, "size: expected 2"),
        ({"top": 0}, "top: expected a whole number of pairs of values, 1 or more; got 0"),
        ({"top": True}, "top: expected"),
        ({"top": 1j}, "top: expected"),
        ({"columns": ["a"]}, "at least 2 columns for pairs, got 1 \\('a'\\)"),
        ({"columns": ["a", "z"]}, "columns: no column 'z'"),
        ({"missing": "drop"}, "missing: expected"),
        ({"missing": "error"}, "column 'a': 1 missing value"),
    ],
)
def test_bad_input_is_refused(arguments, words):
    with pytest.raises(gpupif.InputError, match=words):
        toxic_pairs(pd.DataFrame({"a": ["x", None], "b": [1, 2]}), **arguments)


def test_top_limits_printed_pairs_and_listed_values():
    """Count pairs that are printed and in JSON; the frame of pairs has all."""
    table = pd.DataFrame({"a": [1, 2, 2], "b": [1, 1, 2], "c": [1, 2, 3], "d": [1, 1, 1]})
    found = toxic_pairs(table, top=2)
    document = found.to_dict()
    assert (len(document["pairs"]), document["pairs_in_all"]) == (2, 6)
    assert (len(document["values"]), document["values_in_all"]) == (2, found.pairs["combinations"].sum())
    assert len(found.pairs) == 6
    text = str(found)
    assert "(the first 2 of 6)" in text
    assert f"(the first 2 of {document['values_in_all']})" in text
    triples = toxic_pairs(table, 3, top=100)
    assert triples.to_dict()["triples_in_all"] == len(triples.to_dict()["triples"]) == 4
    assert "the first" not in str(triples)


def test_rarer_values_of_later_sets_replace_earlier_ones(counting_engine):
    """Keep the rarest of all sets, with ties in order."""
    table = {name: [0] * 6 + [1] * 6 for name in "abc"}
    for name, row in (("a", 0), ("b", 1), ("c", 2)):
        table[name][row] = 1
    for size in (2, 3):
        every = toxic_pairs(pd.DataFrame(table), size, top=100)
        for top in range(1, len(every.values)):
            few = toxic_pairs(pd.DataFrame(table), size, top=top).values
            pd.testing.assert_frame_equal(few, every.values.head(top), check_exact=True)


def test_nearly_unique_columns_are_warned_of():
    frame = pd.DataFrame({"id": range(60), "a": [1, 2] * 30})
    with pytest.warns(gpupif.errors.NearlyUniqueWarning, match="column 'id'"):
        toxic_pairs(frame)


def test_the_result_prints_as_tables():
    found = toxic_pairs(gpupif.datasets.pif_example(), top=2)
    text = str(found)
    for part in ("7 rows x 3 columns: 3 pairs", "gender + name", "name + eye_color", "rarity", "entropy, bits"):
        assert part in text
    assert "(missing)" in str(toxic_pairs(pd.DataFrame({"a": [None, "x"], "b": [1, 2]})))
    assert repr(found) == "<ToxicPairs of 7 rows: 3 pairs of columns>"


def test_the_docstring_holds():
    tried = doctest.testmod(gpupif.marginals.toxic_pairs)
    assert tried.attempted >= 4
    assert tried.failed == 0
