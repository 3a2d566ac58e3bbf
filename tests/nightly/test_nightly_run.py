"""Nightly runs from configuration to outcome: what they come to, and what they refuse."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from contextlib import ExitStack, suppress

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.errors import AnotherRunError, InputError, OutputError
from gpupif.nightly import nightly_run
from gpupif.nightly.exit_codes import Status
from gpupif.nightly.record.record import Record
from gpupif.nightly.record.state_folder import run_lock
from gpupif.nightly.record.verification import verify
from gpupif.nightly.report import run_text
from gpupif.nightly.run_outcome import Verdict
from tests.helpers.nights import CONFIGURATION, FIRST, SECOND, Nights, runs_in
from tests.helpers.other_user import give_away


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


def whole_table():
    return pd.concat([pd.DataFrame(FIRST), pd.DataFrame(SECOND)])


def test_a_first_run_has_the_figures_of_score_and_risk(nights):
    outcome = nights.run()
    assert (outcome.number, outcome.status, outcome.exit_code) == (1, Status.PASSED, 0)
    table = whole_table()
    scores = gpupif.score(table, columns=["age", "illness"])
    risk = gpupif.risk(table, ["age"], ["illness"])
    assert outcome.rows == 8
    assert outcome.summary["pif"] == {str(share): value for share, value in scores.summary().pif.items()}
    figures = {column.pop("column"): column for column in [dict(one) for one in outcome.summary["columns"]]}
    for column, row in scores.summary().columns.iterrows():
        assert figures[column] == pytest.approx(dict(row), abs=0, rel=0)
    assert outcome.risk["classes"]["k"] == risk.k == 2
    (gate,) = outcome.gates
    assert (gate.value, gate.before, gate.verdict) == (2, None, Verdict.PASSED)
    assert [file.path for file in outcome.files] == outcome.changes.added == ["a.parquet", "b.parquet"]
    assert {column.name: column.missing for column in outcome.columns} == {"age": 0, "illness": 1, "person": None}
    with Record.open(nights.state) as record:
        assert record.last_good().summary == outcome.summary


def test_only_changed_files_are_read_and_compared_with_the_last_good_run(nights):
    nights.run()
    nights.write("b", {**SECOND, "age": [40, 50, 50, 99], "illness": ["flu", "cold", "cold", "new"]})
    outcome = nights.run()
    assert outcome.compared_with == 1
    assert outcome.changes.read == outcome.changes.changed == ["b.parquet"]
    (gate,) = outcome.gates
    assert (gate.value, gate.before, gate.change) == (1, 2, -1)
    assert {column.name: column.new_values for column in outcome.columns} == {"age": 1, "illness": 1, "person": None}


@pytest.mark.parametrize(
    ("gate", "said"), [('kind="k", max_fall=1', True), ('kind="k", min=1', True), ('kind="k", min=2', False)]
)
def test_a_note_says_if_no_gate_limits_a_risk(nights, gate, said):
    outcome = nights.run(f'gates=[{{{gate}}}, {{kind="rows", max=9}}]')
    assert outcome.status is Status.PASSED
    assert [note.startswith("No gate limits a risk itself") for note in outcome.notes] == [True] * said


def test_a_first_run_with_only_limits_on_change_passes(nights):
    gates = 'gates=[{kind="k", max_fall=1}, {kind="new_values", max=0}]'
    first = nights.run(gates)
    assert (first.status, first.exit_code) == (Status.PASSED, 0)
    assert {gate.verdict for gate in first.gates} == {Verdict.NOT_APPLIED}
    with Record.open(nights.state) as record:
        assert list(record.last_good().gates) == list(first.gates)
    second = nights.run(gates)
    assert second.compared_with == 1
    assert {gate.verdict for gate in second.gates} == {Verdict.PASSED}
    runs = gpupif.nightly.history(nights.config).runs
    assert [(run.gates_passed, run.gates_failed, run.gates_with_limit_not_applied) for run in runs] == [
        (0, 0, 2),
        (2, 0, 0),
    ]


def test_a_first_run_names_limits_on_change_that_were_not_applied(nights):
    gates = 'gates=[{kind="k", min=1, max_fall=1, max_rise=9}, {kind="rows", max=9}]'
    nights.run(gates)
    nights.run(gates)
    with Record.open(nights.state) as record:
        found = [[(gate.verdict, gate.not_applied) for gate in record.run(number).gates] for number in (1, 2)]
        assert run_text.closing(record.run(1).to_dict()).endswith(
            "run to compare with: max_rise and max_fall of k. Exit code 0."
        )
    passed = (Verdict.PASSED, [])
    assert found == [[(Verdict.PASSED, ["max_rise", "max_fall"]), passed], [passed, passed]]
    runs = gpupif.nightly.history(nights.config).runs
    assert [(run.gates_passed, run.gates_failed, run.gates_with_limit_not_applied) for run in runs] == [
        (2, 0, 1),
        (2, 0, 0),
    ]


def test_a_run_with_a_failed_gate_is_no_good_run(nights):
    nights.run()
    failed = nights.run("gates.0.min=3")
    assert (failed.status, failed.exit_code) == (Status.FAILED, 3)
    assert nights.run().compared_with == 1


@pytest.mark.parametrize("keep", ["all", "cells"])
def test_scores_are_kept(tmp_path, keep):
    where = '\nwhere = "cig >= 0.5"' if keep == "cells" else ""
    nights = Nights(tmp_path, f'\n[keep]\nscores = "{keep}"{where}\n')
    outcome = nights.run()
    folder = nights.state / outcome.kept.path
    scores = gpupif.open_scores(folder / "scores.parquet")
    expected = gpupif.score(whole_table(), columns=["age", "illness"])
    if keep == "all":
        np.testing.assert_array_equal(scores.cig.to_pandas(), expected.cig)
    else:
        found = scores.cells().to_pandas()
        assert list(found["cig"]) == list(expected.cells("cig >= 0.5").to_pandas()["cig"])
        assert len(found)


def test_files_are_readable_by_their_owner_only(tmp_path):
    more = '\n[keep]\nscores = "all"\n[tell]\njson_file = "risk.json"\nprometheus = "risk.prom"\n'
    nights = Nights(tmp_path, more)
    before = os.umask(0)
    try:
        nights.run()
    finally:
        os.umask(before)
    made = [nights.state, *nights.state.rglob("*"), tmp_path / "risk.json", tmp_path / "risk.prom"]
    assert len(made) > 10
    wider = [path for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert wider == []


def refused(nights, *overrides):
    """What a run that is on record says that it was refused for; the last good one stays."""
    good = nights.run()
    return good, lambda: _refused(nights, good, overrides)


def _refused(nights, good, overrides):
    outcome = nights.run(*overrides)
    assert (outcome.status, outcome.exit_code) == (Status.REFUSED, 2)
    with Record.open(nights.state) as record:
        assert record.last_good().number == good.number
        assert record.run(outcome.number).error == outcome.error
    return outcome.error


def test_a_changed_schema_is_refused_unless_accepted(nights):
    _, run = refused(nights)
    nights.write("a", {"age": ["x"] * 4, "illness": FIRST["illness"], "home": ["here"] * 4})
    nights.write("b", {"age": ["x"] * 4, "illness": SECOND["illness"], "home": ["here"] * 4})
    error = run()
    assert "since run 1: new 'home'; gone 'person'; 'age' was int64, is " in error
    assert 'on_schema_change = "accept"' in error
    accepted = nights.run("input.on_schema_change=accept")
    assert accepted.status is Status.PASSED
    assert any("since run 1: new 'home'" in note for note in accepted.notes)
    assert nights.run().status is Status.PASSED


def test_a_row_key_with_duplicates_is_refused(nights):
    _, run = refused(nights, 'input.row_key=["person"]')
    nights.write("b", {**SECOND, "person": [5, 6, 7, 2]})
    error = run()
    assert "input.row_key: 'person': expected another value in each row, but 2 rows have that of another" in error
    assert "row 1 and row 7" in error


def test_an_input_without_files_or_rows_is_refused(nights):
    _, run = refused(nights)
    for file in nights.table.iterdir():
        file.unlink()
    assert "table" in run()
    nights.write("a", {name: [] for name in FIRST})
    assert "expected at least one row" in run()


def test_a_gate_on_a_missing_column_is_refused(nights):
    _, run = refused(nights, 'gates=[{kind="missing_share", column="aeg", max=1}]')
    error = run()
    assert error.startswith("gates[0].column (gate 'missing share of aeg'): no column 'aeg' in the table. Did you mean")
    assert "Did you mean 'age'?" in error


def test_values_are_on_record_only_if_show_values_is_set(tmp_path):
    nights = Nights(tmp_path, configuration=CONFIGURATION.replace("[risk]", 'weights = "person"\n\n[risk]'))
    nights.write("a", {**FIRST, "person": [1.0, 2.0, 3.0, 4.0]})
    nights.write("b", {**SECOND, "person": [5, 6, -17.25, 8]})
    outcome = nights.run()
    assert outcome.status is Status.REFUSED
    assert "17.25" not in outcome.error
    assert "person" in outcome.error
    assert b"17.25" not in (nights.state / "record.sqlite").read_bytes()
    assert "17.25" in nights.run("run.show_values=true").error


def test_no_value_is_on_record(tmp_path):
    nights = Nights(tmp_path)
    nights.write("a", {**FIRST, "illness": ["shingles", "shingles", "flu", "flu"]})
    nights.run()
    assert b"shingles" not in (nights.state / "record.sqlite").read_bytes()
    nights.run("run.show_values=true")
    assert b"shingles" in (nights.state / "record.sqlite").read_bytes()


def test_values_of_a_csv_row_that_is_too_long_are_not_on_record(tmp_path):
    nights = Nights(tmp_path)
    pd.DataFrame(FIRST).to_csv(nights.table / "a.csv", index=False)
    with (nights.table / "a.csv").open("a") as file:
        file.write("30,shingles,9,O'Hara\n")
    outcome = nights.run("input.path=table/*.csv")
    assert outcome.status is Status.REFUSED
    assert "Expected 3 columns, got 4: ***" in outcome.error
    assert b"shingles" not in (nights.state / "record.sqlite").read_bytes()


def test_csv_columns_read_for_the_first_time_are_no_schema_change(tmp_path):
    nights = Nights(tmp_path)
    pd.DataFrame(FIRST).to_csv(nights.table / "a.csv", index=False)
    path = "input.path=table/*.csv"
    assert nights.run(path).status is Status.PASSED
    assert nights.run(path, "score.columns=['age', 'illness', 'person']").status is Status.PASSED
    pd.DataFrame({**FIRST, "person": list("abcd")}).to_csv(nights.table / "a.csv", index=False)
    assert nights.run(path).status is Status.PASSED
    pd.DataFrame({**FIRST, "age": list("abcd")}).to_csv(nights.table / "a.csv", index=False)
    assert "'age' was int64, is string" in nights.run(path).error


def test_runs_without_gates_keep_only_the_last_state(tmp_path):
    nights = Nights(tmp_path, configuration=CONFIGURATION.partition("[[gates]]")[0])
    for night in range(3):
        nights.write("a", {**FIRST, "age": [30, 30, 40, night]})
        assert nights.run().status is Status.PASSED
    assert len(list((nights.state / "parts").iterdir())) == 2
    assert [file.name for file in nights.state.glob("values-*")] == ["values-000003.kept"]


def test_a_state_of_another_table_is_left_alone(nights, tmp_path):
    nights.run()
    (tmp_path / "other").mkdir()
    pd.DataFrame(FIRST).to_parquet(tmp_path / "other" / "a.parquet")

    def content():
        return {path: path.read_bytes() for path in nights.state.rglob("*") if path.is_file()}

    before = content()
    with pytest.raises(InputError, match=r"run\.state: .* is the state of another table: .*table.*other"):
        nights.run("input.path=other")
    assert content() == before


def test_a_state_in_the_folder_of_the_table_is_refused(nights):
    with pytest.raises(InputError, match=r"run\.state: .*table/state lies in the folder of the table"):
        nights.run("run.state=table/state")
    assert not (nights.table / "state").exists()


def test_a_state_in_which_the_pattern_would_find_files_is_refused(nights):
    with pytest.raises(InputError, match=r"run\.state: .* lies in the folder of the table, .*\*\*/\*\.parquet"):
        nights.run("input.path=**/*.parquet")
    with pytest.raises(InputError, match=r"run\.state: .* lies in the folder of the table, .*\*/\*/\*/\*\.parquet"):
        nights.run("input.path=*/*/*/*.parquet")
    with pytest.raises(InputError, match=r"run\.state: .* lies in the folder of the table, .*\*/\*"):
        nights.run("input.path=*/*")
    assert nights.run("input.path=table/**/*.parquet").status is Status.PASSED


def test_a_state_beside_the_files_of_a_pattern_is_no_part_of_the_table(nights):
    # As with a pattern `*.parquet` in the folder of the configuration, and the default state.
    beside = ["input.path=table/*.parquet", "run.state=table/state", 'keep.scores="all"']
    first, second = nights.run(*beside), nights.run(*beside)
    assert (first.status, second.status) == (Status.PASSED, Status.PASSED)
    assert [file.path for file in second.files] == ["a.parquet", "b.parquet"]


@pytest.mark.parametrize("file", ["risk.toml", "table/a.parquet", "table/new.md", "gpupif-nightly/record.sqlite"])
def test_a_report_that_would_replace_an_input_is_refused(nights, file):
    before = (nights.table / "a.parquet").read_bytes()
    with pytest.raises(InputError, match=r"risk\.toml: tell\.markdown: .*: the output is (inside )?the input"):
        nights.run(f"tell.markdown={file}")
    with pytest.raises(InputError, match=r"tell\.json_file: .*a\.parquet: the output is the input .*\(input\.path\)"):
        nights.run("input.path=table/*.parquet", "tell.json_file=table/a.parquet")
    with pytest.raises(InputError, match=r"tell\.json_file: table/c\.parquet would be of the table"):
        nights.run("input.path=table/*.parquet", "tell.json_file=table/c.parquet")
    assert (nights.table / "a.parquet").read_bytes() == before


# A gate that limits a risk, which no note has to say.
LIMITED = 'gates=[{kind="unique_rows", max=8}]'


@pytest.mark.parametrize("remove", [lambda file: file.unlink(), lambda file: file.write_bytes(b"")])
def test_a_note_says_that_the_record_is_gone(nights, remove):
    assert not nights.run(LIMITED).notes
    remove(nights.state / "record.sqlite")
    (note,) = nights.run(LIMITED).notes
    assert "record.sqlite: has no run, while the state is of some" in note
    assert not nights.run(LIMITED).notes


def test_a_note_says_that_kept_values_are_damaged(nights):
    nights.run()
    (nights.state / "values-000001.kept").write_bytes(b"")
    outcome = nights.run(LIMITED)
    assert outcome.status is Status.PASSED
    (note,) = outcome.notes
    assert "values-000001.kept: damaged; put aside as damaged-values-000001.kept" in note
    assert {column.new_values for column in outcome.columns} == {None}
    assert {column.new_values for column in nights.run().columns} == {0, None}


def test_a_gate_on_new_values_recovers_from_their_loss(nights):
    gate = 'gates=[{kind="new_values",column="age",max=0}, {kind="unique_rows",max=8}]'
    assert nights.run(gate).status is Status.PASSED
    kept = nights.state / "values-000001.kept"
    kept.unlink()
    nights.write("b", {**SECOND, "age": [40, 50, 50, 99]})
    lost = nights.run(gate)
    # What cannot be said fails, once.
    assert (lost.status, lost.gates[0].verdict) == (Status.FAILED, Verdict.UNKNOWN)
    assert lost.notes == [
        f"{kept}: the values of run 1 are gone. Which values are new is not known in this run; the next ones are "
        "compared with it."
    ]
    nights.write("b", {**SECOND, "age": [40, 50, 98, 99]})
    new = nights.run(gate)
    assert (new.status, new.gates[0].value) == (Status.FAILED, 1)
    assert new.notes == ["New values are those that run 2 did not have: what run 1 had was lost."]
    # A run that fails is none to compare with.
    assert nights.run(gate).gates[0].value == 1
    nights.write("b", SECOND)
    good = nights.run(gate)
    assert (good.status, good.gates[0].value, good.notes) == (Status.PASSED, 0, new.notes)
    assert [file.name for file in nights.state.glob("values-*")] == ["values-000005.kept"]
    assert nights.run(gate).notes == []


def test_folders_above_the_state_are_its_owners_alone(nights, tmp_path):
    mask = os.umask(0)
    try:
        nights.run("run.state=above/it/state")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "above").stat().st_mode) == 0o700


def rights(folder):
    status = folder.lstat()
    return status.st_uid, stat.S_IMODE(status.st_mode)


def test_an_existing_state_folder_keeps_its_rights(nights):
    nights.state.mkdir()
    nights.state.chmod(0o755)
    assert nights.run().status is Status.PASSED
    assert rights(nights.state)[1] == 0o755
    wider = [path for path in nights.state.rglob("*") if rights(path)[1] & 0o077]
    assert wider == []
    assert verify(runs_in(nights.state)).problems == []


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777, 0o2770], ids="{:o}".format)
def test_a_state_that_others_can_write_to_is_refused(nights, mode):
    """Such as /tmp, where a run must change nothing."""
    nights.state.mkdir()
    nights.state.chmod(mode)
    before = rights(nights.state)
    expected = rf"risk\.toml: run\.state: .*nobody else can write to, got one of mode {mode:o}\. Choose another place\."
    with pytest.raises(InputError, match=expected) as said:
        nights.run()
    assert ("chmod" in str(said.value)) == (mode != 0o1777)
    assert "\n" not in str(said.value)
    assert rights(nights.state) == before
    assert list(nights.state.iterdir()) == []


@pytest.mark.parametrize("planted", ["state", "parts", "temporary", "scores"])
def test_a_folder_of_the_state_that_another_user_planted_is_refused(nights, monkeypatch, planted):
    place = nights.state if planted == "state" else nights.state / planted
    nights.state.mkdir(0o700)
    place.mkdir(0o755, exist_ok=True)
    give_away(place, monkeypatch)
    before = rights(place)
    try:
        said = nights.run("keep.scores=all").error
    except (InputError, OutputError) as error:
        said = str(error)
    assert "expected a folder of yours" in said
    assert "\n" not in said
    assert rights(place) == before
    assert list(place.iterdir()) == []


def test_a_link_to_the_state_is_followed_unless_another_user_made_it(nights, tmp_path, monkeypatch):
    """Own links lead to the state, as systemd's do; links of another user are refused."""
    (tmp_path / "disk").mkdir(0o700)
    nights.state.symlink_to(tmp_path / "disk")
    assert nights.run().status is Status.PASSED
    assert (tmp_path / "disk" / "record.sqlite").exists()
    before = sorted((tmp_path / "disk").rglob("*"))
    give_away(nights.state, monkeypatch)
    with pytest.raises(InputError, match="gpupif-nightly is a link that another user made"):
        nights.run()
    assert sorted((tmp_path / "disk").rglob("*")) == before


def test_a_report_that_could_not_be_delivered_is_on_record(nights):
    outcome = nights.run(LIMITED, "tell.markdown=nowhere/risk.md")
    assert outcome.status is Status.PASSED
    (note,) = outcome.notes
    assert "nowhere" in note
    with Record.open(nights.state) as record:
        assert list(record.run(1).notes) == [note]


def test_reading_past_runs_needs_no_secret(tmp_path, monkeypatch):
    nights = Nights(tmp_path, '\n[[tell.webhooks]]\nurl = "${WEBHOOK_OF_TEST}"\nwhen = "failed"\n')
    monkeypatch.setenv("WEBHOOK_OF_TEST", "http://127.0.0.1:9/hook")
    nights.run()
    nights.run()
    monkeypatch.delenv("WEBHOOK_OF_TEST")
    with pytest.raises(InputError, match="the variable WEBHOOK_OF_TEST"):
        nights.run()
    assert [run.status for run in gpupif.nightly.history(nights.config).runs] == ["passed", "passed"]
    assert gpupif.nightly.diff(nights.config).after.number == 2
    assert gpupif.nightly.verify(nights.config).problems == []
    with pytest.raises(InputError, match="elsewhere: no run is on record there"):
        gpupif.nightly.verify(nights.config, overrides=["run.state=elsewhere"])


def test_a_second_run_is_refused_while_one_is_running(nights):
    nights.run()
    with run_lock(nights.state), pytest.raises(AnotherRunError, match=f"another run is on, process {os.getpid()}"):
        nights.run()


def test_a_state_that_cannot_be_written_to_is_an_error(nights, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        nights.run("run.state=file/state")


def test_a_run_that_is_interrupted_is_on_record(nights, monkeypatch):
    nights.run()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(nightly_run, "measure_table", interrupt)
    with pytest.raises(KeyboardInterrupt):
        nights.run()
    with Record.open(nights.state) as record:
        assert record.run(2).status is Status.KILLED
        assert record.last_good().number == 1


def test_a_fault_of_the_machine_breaks_the_run(nights, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(nightly_run, "measure_table", full)
    outcome = nights.run()
    assert (outcome.status, outcome.exit_code) == (Status.BROKEN, 1)
    assert "No space left on device" in outcome.error


KEEP = '\n[keep]\nscores = "all"\n'


def staged(nights):
    """Folders of scores that no run on record has."""
    return [folder.name for folder in (nights.state / "scores").iterdir() if folder.name.startswith(".")]


@pytest.mark.parametrize(
    ("error", "status"),
    [(InputError("no"), "refused"), (OSError(28, "full"), "broken"), (KeyError(), "broken"), (KeyboardInterrupt(), "")],
)
def test_a_run_without_results_leaves_no_scores(tmp_path, monkeypatch, error, status):
    nights = Nights(tmp_path, KEEP)

    def fail(*_):
        assert staged(nights) == [".staged-run-000001"]
        raise error

    # When the scores are on the disk.
    monkeypatch.setattr(nightly_run.KeptTable, "store_values", fail)
    with suppress(KeyError, KeyboardInterrupt):
        assert nights.run().kept is None
    with Record.open(nights.state) as record:
        assert record.run(1).status == (status or Status.KILLED)
        assert record.run(1).kept is None
    assert staged(nights) == []
    assert not (nights.state / "scores" / "run-000001").exists()


@pytest.mark.slow
@pytest.mark.parametrize("failures", [1, 2, 9])
def test_a_run_that_a_full_disk_keeps_off_the_record_is_broken(tmp_path, monkeypatch, failures):
    """The run is reported as broken, not as killed, even if no outcome can be put on record."""
    nights = Nights(tmp_path, f'{KEEP}\n[tell]\njson_file = "risk.json"\n')
    good = nights.run()
    real, attempts = Record._put, []

    def put(record, outcome):
        attempts.append(outcome)
        # But for the first, when it begins.
        if 1 < len(attempts) <= 1 + failures:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorname = "SQLITE_FULL"
            raise error
        real(record, outcome)

    monkeypatch.setattr(Record, "_put", put)
    outcome = nights.run("tell.markdown=nowhere/risk.md")
    monkeypatch.undo()
    assert attempts[1].status is Status.PASSED
    assert attempts[1].kept is not None
    assert "nowhere" in outcome.notes[-1]
    assert (outcome.number, outcome.status, outcome.exit_code, outcome.kept) == (2, Status.BROKEN, 1, None)
    assert "the record could not be written: the disk is full" in outcome.error
    told = json.loads((tmp_path / "risk.json").read_text())
    assert (told["number"], told["status"], told["error"]) == (2, "broken", outcome.error)
    assert staged(nights) == []
    with Record.open(nights.state) as record:
        assert record.run(2).status is (Status.BROKEN if failures == 1 else Status.RUNNING)
        assert record.last_good().number == good.number
    assert nights.run().compared_with == good.number


def test_a_failed_clean_up_is_noted_and_the_run_counts(nights, monkeypatch):
    def refuse(*_):
        raise OSError(30, "Read-only file system", "old")

    monkeypatch.setattr(nightly_run, "remove_expired", refuse)
    outcome = nights.run(LIMITED)
    assert outcome.status is Status.PASSED
    (note,) = outcome.notes
    assert "could not be removed: old: Read-only file system." in note
    with Record.open(nights.state) as record:
        assert list(record.run(1).notes) == [note]


def test_overrides_are_refused_for_a_loaded_configuration(nights):
    from gpupif.nightly.configuration.config import load_config

    with ExitStack(), pytest.raises(InputError, match="overrides: expected none"):
        nightly_run.run(load_config(nights.config), overrides=["run.device=cpu"])
