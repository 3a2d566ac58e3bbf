"""What changed from run to run: as a slow comparison of the scores says it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import gpupif
from gpupif.errors import InputError, TableReadError
from gpupif.nightly.comparison.run_diff import diff
from gpupif.nightly.exit_codes import Status
from gpupif.nightly.record.kept_scores import KEY_FILE, SCORE_FILE, KeptFolder
from gpupif.nightly.record.record import Record
from gpupif.nightly.run_outcome import ColumnProfile, GateResult, Verdict
from tests.helpers.nights import runs_in
from tests.helpers.recorded_outcomes import TABLE, kept_scores, outcome, recorded

MEASURES = ["cig", "csf", "unique"]


def census(rows, seed):
    """A table with a key, in an order of its own."""
    frame = gpupif.datasets.census(300)[["age", "sex", "marital_status", "region"]].astype(str)
    frame.insert(0, "id", [f"person {row}" for row in range(300)])
    return frame.sample(rows, random_state=seed).reset_index(drop=True)


def keep(state, tables, kind, where=None, keyed=True, show_values=False, measures=MEASURES, **asked):
    """Runs whose scores are kept; the scores of each."""
    several = []
    with Record.open(state, TABLE) as record:
        for frame in tables:
            scores = gpupif.score(frame, measures, columns=[*frame.columns[1:]], **asked)
            number = record.begin(outcome(Status.RUNNING))
            keys = pa.Table.from_pandas(frame[["id"]], preserve_index=False).to_batches(70) if keyed else None
            facts = kept_scores(state, number, scores, kind, where, keys, show_values=show_values)
            summary = scores.summary().to_dict()
            record.finish(outcome(number=number, kept=facts, rows=len(frame), summary=summary))
            KeptFolder(state, number).publish()
            several.append(scores)
    return several


def in_parts(monkeypatch):
    """Have few rows be many."""
    monkeypatch.setattr("gpupif.nightly.comparison.score_changes.PARTITION_BYTES", 1 << 12)
    monkeypatch.setattr("gpupif.nightly.comparison.score_changes.CHUNK_ROWS", 50)
    monkeypatch.setattr("gpupif.nightly.comparison.score_changes.READ_ROWS", 16)


def slow(tables, several, by, holds=None):
    """Cells of both runs with their scores, and rows that became unique: by merging frames of them."""
    long = []
    for frame, scores in zip(tables, several, strict=True):
        name = frame["id"] if by == "row key" else frame.index
        cig = scores.cig.assign(name=name, row=frame.index).melt(["name", "row"], var_name="column", value_name="cig")
        unique = scores.unique.max(axis=1).eq(1)
        long.append((cig if holds is None else cig[holds(cig["cig"])], set(name[unique])))
    both = long[0][0].merge(long[1][0], on=["name", "column"], suffixes=("_a", "_b"))
    both["rise"] = both["cig_b"] - both["cig_a"]
    place = {column: number for number, column in enumerate(tables[0].columns)}
    both["place"] = both["column"].map(place)
    both = both.sort_values(["rise", "row_b", "place"], ascending=[False, True, True])
    names = tables[1]["id"] if by == "row key" else tables[1].index
    newly = [row for row, name in enumerate(names) if name in long[1][1] - long[0][1]]
    return both, newly


@pytest.mark.sampled(3)
@pytest.mark.parametrize("by", ["row key", "place"])
@pytest.mark.parametrize("parts", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("kind", ["all", "cells"])
def test_the_diff_finds_cells_and_rows_that_became_risky(tmp_path, monkeypatch, kind, parts, by):
    tables = [census(200, 1), census(220, 2)]
    where = None if kind == "all" else "cig > 0.5 or unique >= 1"
    several = keep(tmp_path, tables, kind, where, by == "row key")
    if parts:
        in_parts(monkeypatch)
    compared = diff(runs_in(tmp_path), most=50)
    found = compared.scores
    assert found.by == by
    if kind == "all":
        both, newly = slow(tables, several, by)
        assert (found.compared, found.rose, found.fell) == (
            *(len(both), int((both["rise"] > 0).sum())),
            int((both["rise"] < 0).sum()),
        )
        assert (found.came, found.went) == (220 - len(both) // 4, 200 - len(both) // 4)
        assert compared.missing == []
    else:
        _, newly = slow(tables, several, by)
        frames = [scores.cells(where).to_pandas() for scores in several]
        for frame, table in zip(frames, tables, strict=True):
            frame["name"] = frame["row"].map(table["id"]) if by == "row key" else frame["row"]
        both = frames[0].merge(frames[1], on=["name", "column"], suffixes=("_a", "_b"))
        both["rise"] = both["cig_b"] - both["cig_a"]
        both["place"] = both["column"].map({column: number for number, column in enumerate(tables[0].columns)})
        both = both.sort_values(["rise", "row_b", "place"], ascending=[False, True, True])
        assert (found.compared, found.came, found.went) == (
            *(len(both), len(frames[1]) - len(both)),
            len(frames[0]) - len(both),
        )
        assert 'keep.scores = "all" says how much they rose' in compared.missing[0]
    expected = both[both["rise"] > 0].head(50)
    assert len(expected) == 50
    assert [(cell.row, cell.column) for cell in found.cells] == list(
        expected[["row_b", "column"]].itertuples(index=False, name=None)
    )
    np.testing.assert_array_equal([cell.before for cell in found.cells], expected["cig_a"])
    np.testing.assert_array_equal([cell.after for cell in found.cells], expected["cig_b"])
    assert len(newly) > 0
    assert (found.newly_unique.count, found.newly_unique.rows) == (len(newly), newly[:50])
    assert all(cell.key is None and cell.value is None for cell in found.cells)


def test_values_are_listed_only_if_asked_for(tmp_path):
    tables = [census(200, 1), census(220, 2)]
    keep(tmp_path, tables, "cells", "cig > 0", show_values=True)
    hidden, shown = diff(runs_in(tmp_path)), diff(runs_in(tmp_path), overrides=["run.show_values=true"])
    assert "person" not in str(hidden) + hidden.to_json()
    for cell in shown.scores.cells:
        assert cell.key == {"id": tables[1]["id"][cell.row]}
        assert cell.value == tables[1][cell.column][cell.row]
    assert shown.scores.cells[0].key["id"] in str(shown)
    assert json.loads(shown.to_json()) == shown.to_dict()


def test_the_diff_shows_no_values_that_were_not_kept(tmp_path):
    keep(tmp_path, [census(200, 1), census(220, 2)], "all")
    found = diff(runs_in(tmp_path), overrides=["run.show_values=true"])
    assert all(not cell.key and cell.value is None for cell in found.scores.cells)


def test_the_diff_handles_low_risky_scores_and_several_attackers(tmp_path):
    """The worst of all attackers counts."""
    tables = [census(150, 1), census(150, 2)]
    attackers = {"neighbour": ["age", "sex"], "employer": ["region"]}
    for kind in ("all", "cells"):
        several = keep(tmp_path / kind, tables, kind, measures=["cohort_size"], attackers=attackers)
        compared = diff(runs_in(tmp_path / kind))
        found = compared.scores
        cell = found.cells[0]
        names = [one["id"] for one in tables]
        row_before = names[0][names[0] == names[1][cell.row]].index[0]
        for scores, row, score in ((several[0], row_before, cell.before), (several[1], cell.row, cell.after)):
            assert score == min(scores.against(name).cohort_size[cell.column][row] for name in attackers)
        assert cell.after < cell.before
        assert found.newly_unique is None
        assert compared.missing[0] == 'Which rows became unique takes "unique" in score.measures of both runs.'


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("where", "known"),
    [
        (None, True),
        ("unique >= 1", True),
        ("cig > 9 or (unique > 0.5 and unique < 2)", True),
        ("cig > 0", False),
        ("unique >= 1 and cig > 0", False),
        ("unique > 1", False),
    ],
)
def test_newly_unique_rows_are_known_only_if_all_unique_rows_are_kept(tmp_path, where, known):
    keep(tmp_path, [census(100, 1), census(100, 2)], "cells", where)
    found = diff(runs_in(tmp_path))
    assert (found.scores.newly_unique is not None) == known
    assert any("Which rows became unique takes" in sentence for sentence in found.missing) != known


def test_the_diff_says_why_scores_cannot_be_compared(tmp_path):
    tables = [census(100, 1)]
    recorded(tmp_path, outcome())
    keep(tmp_path, tables, "all")
    keep(tmp_path, tables, "cells", "cig > 1")
    keep(tmp_path, tables, "cells", "cig > 1", keyed=False)
    keep(tmp_path, tables, "cells", "cig > 1", measures=["csf", "cig"])
    (tmp_path / "scores" / "key").unlink()
    keep(tmp_path, tables, "cells", "csf > 0", measures=["csf"])
    keep(tmp_path, tables, "cells", "cig > 1", measures=["cig"])
    said = {
        (1, 2): "run 1 kept no scores. They take keep.scores",
        (2, 3): "Run 2 kept all scores, run 3 cells where cig > 1",
        (3, 4): "Run 4 kept no row key: rows are the same only by input.row_key of both.",
        (3, 6): "Their row keys were made with different secrets",
        (6, 7): "They have no measure in common",
    }
    for runs, text in said.items():
        found = diff(runs_in(tmp_path), *runs)
        assert found.scores is None
        assert text in found.missing[0]
        assert text in " ".join(str(found).split())


def test_runs_are_chosen_by_number_or_by_name(tmp_path):
    states = [Status.PASSED, Status.FAILED, Status.PASSED, Status.KILLED, Status.FAILED, Status.RUNNING]
    recorded(tmp_path, *map(outcome, states))

    def compared(*runs):
        found = diff(runs_in(tmp_path), *runs)
        return found.before.number, found.after.number

    assert compared() == (3, 5)
    assert compared("good") == (3, 5)
    assert compared("good", 2) == (1, 2)
    assert compared("1", "last") == (1, 5)
    assert compared(2) == (2, 5)
    assert compared(5, 1) == (5, 1)
    for runs, said in {
        (4, 5): r"run 4: came to no results \(it is killed\)",
        (9, 5): "run 9: there is none on record",
        (5, 5): "run_a: expected another run than run_b, got run 5 for both",
        ("best", 5): "run: expected a number, 'last' or 'good', got 'best'",
        ("good", 1): "there is no run before run 1 of which all gates hold",
        (None, 1): "there is no run before run 1 that came to results",
    }.items():
        with pytest.raises(InputError, match=said):
            diff(runs_in(tmp_path), *runs)


def test_the_diff_lists_figures_columns_and_gates(tmp_path):
    gate = GateResult("rows", "rows", "rows", 10, None, {"max": 11}, Verdict.PASSED)
    first = outcome(
        rows=10,
        columns=(
            ColumnProfile("age", "int64", 5, 0),
            ColumnProfile("name", "string", 9, 1),
            ColumnProfile("note", "null"),
        ),
        gates=(gate, replace(gate, name="old")),
        summary={
            "pif": {"95": 1.5, "99": 2.0},
            "columns": [{"column": "age", "distinct_values": 6, "fig": 5.0, "cig_mean": 0.5, "cig_max": None}],
        },
        risk={
            "classes": {"k": 3, "uniques": 0, "unique_share": 0.0, "rows_below": 3, "share_below": 0.3},
            "worst": {"t": 0.5},
        },
    )
    second = replace(
        first,
        rows=12,
        config_digest="other",
        # No value was known of a note, and so no type.
        columns=(
            ColumnProfile("age", "double", 6, 0),
            ColumnProfile("zip", "string", 2, 0),
            ColumnProfile("note", "string"),
        ),
        gates=(replace(gate, value=12, verdict=Verdict.FAILED),),
        summary={
            "pif": {"95": 1.75, "99": 2.0},
            "columns": [{"column": "age", "distinct_values": 8, "fig": 9.0, "cig_mean": 0.75, "cig_max": 1.0}],
        },
        risk={**first.risk, "classes": {**first.risk["classes"], "k": 1, "share_below": 0.5}},
    )
    recorded(tmp_path, first, second)
    found = diff(runs_in(tmp_path))
    assert found.config_changed
    assert [(one.name, one.before, one.after) for one in found.schema] == [
        ("age", "int64", "double"),
        ("name", "string", None),
        ("zip", None, "string"),
    ]
    assert [(one.name, one.before, one.after, one.change) for one in found.table] == [
        ("rows", 10, 12, 2),
        ("PIF 95", 1.5, 1.75, 0.25),
        ("k", 3, 1, -2),
        ("share_below", 0.3, 0.5, 0.2),
    ]
    columns = {(one.column, one.name): (one.before, one.after, one.change) for one in found.columns}
    assert columns["age", "cig_mean"] == (0.5, 0.75, 0.25)
    assert columns["age", "cig_max"] == (None, 1.0, None)
    assert columns["name", "missing"] == (1, None, None)
    assert columns["age", "distinct values"] == (5, 6, 1)
    assert not [name for _, name in columns if name == "distinct_values"]
    assert [(one.name, one.before, one.after, one.verdict_before, one.verdict) for one in found.gates] == [
        ("rows", 10, 12, "passed", "failed"),
        ("old", 10, None, "passed", None),
    ]
    assert columns["age", "fig"] == (5.0, 9.0, 4.0)
    shown = str(found)
    assert "fig" not in shown.replace("figure", "").replace("configuration", "")
    for text in ("The configuration changed", "PIF 95, bits", "1.75", "cig mean", "share below k", "double", "failed"):
        assert text in shown
    assert not any(raw in shown for raw in ("share_below", "cig_mean", "share below k, share"))
    assert json.loads(found.to_json()) == found.to_dict()


def test_gates_that_measure_the_same_are_compared(tmp_path):
    def gate(name, definition, value):
        return GateResult(name, "k", "rows", value, None, {}, Verdict.PASSED, definition=definition)

    before = (gate("k", "a", 1), gate("k again", "a", 1), gate("t", "b", 2), gate("rows", "c", 3))
    after = (gate("k again", "a", 4), gate("least class", "a", 4), gate("t", "d", 5))
    recorded(tmp_path, outcome(gates=before), outcome(gates=after))
    assert [(one.name, one.before, one.after) for one in diff(runs_in(tmp_path)).gates] == [
        ("k again", 1, 4),
        ("least class", 1, 4),
        ("t", None, 5),
        ("t", 2, None),
        ("rows", 3, None),
    ]


def test_missing_kept_scores_are_an_error(tmp_path):
    keep(tmp_path, [census(100, 1), census(100, 2)], "all")
    (tmp_path / "scores" / "run-000002").rename(tmp_path / "elsewhere")
    with pytest.raises(TableReadError, match="run 2: its kept scores are gone"):
        diff(runs_in(tmp_path))


def test_damaged_kept_scores_are_an_error(tmp_path):
    keep(tmp_path, [census(100, 1), census(100, 2)], "all")
    for name in (SCORE_FILE, KEY_FILE):
        file = tmp_path / "scores" / "run-000001" / name
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 2])
        with pytest.raises(TableReadError, match="run-000001"):
            diff(runs_in(tmp_path))
        middle = len(content) // 2
        file.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        with pytest.raises(TableReadError, match=f"{name}: is not as it was kept"):
            diff(runs_in(tmp_path))
        file.write_bytes(content)
