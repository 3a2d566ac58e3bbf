"""Means and sums of summaries are those of the scores, exactly, wherever these lie and however a table is cut."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import gpupif
from gpupif.results.summary_figures import ROW_MEASURES, SUMMARISED
from tests.helpers.pieces import assert_same_summaries, in_pieces, write_parts
from tests.helpers.ways import MEMORY, Pieces

TABLE = gpupif.datasets.census(150, columns=5, seed=3)
TABLE.loc[TABLE.index % 9 == 4, "age"] = None


@pytest.mark.every_engine
@pytest.mark.parametrize("missing", ["category", pytest.param("wildcard", marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("piece_rows", [7, 1 << 20])
def test_means_and_sums_are_rounded_once(engine, missing, dtype, piece_rows, monkeypatch):
    monkeypatch.setattr("gpupif.results.query_search.MOST_ROWS", piece_rows)
    scores = gpupif.score(TABLE, SUMMARISED, dtype=dtype, missing=missing)
    columns = scores.summary().columns
    for measure in SUMMARISED:
        for name, found in zip(columns.index, np.asarray(scores.array(measure), float), strict=True):
            known = [Fraction(score) for score in found.tolist() if score == score]
            if "mean" in ROW_MEASURES.get(measure, ["mean"]):
                number = len(known) if measure == "csf" else len(TABLE)
                assert columns.loc[name, f"{measure}_mean"] == float(sum(known) / number), (measure, name)
            if measure == "cig":
                assert columns.loc[name, "fig"] == scores.fig()[name] == float(sum(known))


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(Pieces((0.5,), 150, 150), id="large", marks=pytest.mark.slow),
        pytest.param(Pieces((0.1, 0.35, 0.35, 0.9), 11, 40), id="small"),
    ],
)
def test_any_cut_of_a_table_gives_the_same_summary(way, pieces):
    found = way.score(TABLE, SUMMARISED, pieces)
    expected = MEMORY.score(TABLE, SUMMARISED)
    assert_same_summaries(found.summaries["", ""], expected.summaries["", ""])


@pytest.mark.parametrize(("chunk_rows", "partition_rows"), [(150, 150), (11, 40)])
def test_a_summary_without_kept_scores_is_exact(tmp_path, chunk_rows, partition_rows):
    folder = write_parts(tmp_path / "in", TABLE, [20, 90])
    with in_pieces(chunk_rows, partition_rows), gpupif.config(memory_limit="8GiB"):
        found = gpupif.score_files(folder, None, SUMMARISED, summary_only=True).summary()
    assert found.columns.equals(gpupif.score(TABLE, SUMMARISED).summary().columns)
