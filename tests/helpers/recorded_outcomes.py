"""Runs of nightly as they go into the record, one by hand and any that Hypothesis draws, and kept scores of runs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from gpupif.nightly.exit_codes import Status
from gpupif.nightly.record.kept_scores import SCORE_FILE, KeptFolder, seal
from gpupif.nightly.record.record import Record
from gpupif.nightly.run_outcome import ColumnProfile, GateResult, KeptScores, RunOutcome, Verdict
from gpupif.nightly.table.table_changes import InputChanges, InputFile

TABLE = "people/*.parquet"
STARTED = "2026-03-01T02:00:00.000+00:00"


def outcome(status=Status.PASSED, started=STARTED, **facts):
    """A run, short."""
    given = {
        "number": 0,
        "finished": None if status is Status.RUNNING else started,
        "table": TABLE,
        "config": {"input": {"path": "people/*.parquet"}},
        "config_digest": "c0ffee",
    }
    return RunOutcome(**{**given, "status": status, "started": started, **facts})


def recorded(state, *outcomes):
    """Put runs into the record of a state folder; as they stand there."""
    with Record.open(state, outcomes[0].table) as record:
        found = []
        for one in outcomes:
            number = record.begin(replace(one, status=Status.RUNNING))
            running = replace(one, number=number)
            found.append(running if one.status is Status.RUNNING else record.finish(running))
    return found


def kept_scores(state, number, scores, kind, where=None, keys=None, **options):
    """Write the kept scores of a run to its staging folder, and return what the record holds of them; see `seal`."""
    folder = KeptFolder(state, number)
    folder.create()
    (scores if kind == "all" else scores.cells(where)).write(folder.staging / SCORE_FILE)
    return seal(folder, kind, where, keys, **options)


texts = st.text(st.characters() | st.sampled_from("\0\ud800\udcff é"), max_size=8)
# The record searches by these, so that they have to be text that UTF-8 holds.
times = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
wholes = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=True, allow_infinity=True)
documents = st.dictionaries(
    texts,
    st.recursive(st.none() | st.booleans() | wholes | floats | texts, lambda of: st.lists(of, max_size=3)),
    max_size=3,
)


def several(of):
    """A few of these, as outcomes have them."""
    return st.lists(of, max_size=3).map(tuple)


files = st.builds(InputFile, texts, wholes, wholes, texts, wholes)
changes = st.builds(
    InputChanges,
    **dict.fromkeys(("added", "removed", "changed", "read"), several(texts)),
    renamed=several(st.tuples(texts, texts)),
    unchanged=wholes,
)
columns = st.builds(ColumnProfile, texts, texts, wholes, wholes, st.none() | wholes)
numbers = st.none() | wholes | floats
gates = st.builds(
    GateResult,
    *(texts, texts, texts, numbers, numbers),
    st.dictionaries(texts, wholes | floats, max_size=3),
    st.sampled_from(Verdict),
    *(texts, st.none() | texts, st.none() | texts, texts),
)
any_kept_scores = st.builds(KeptScores, times, texts, st.dictionaries(texts, st.tuples(wholes, texts), max_size=3))
outcomes = st.builds(
    RunOutcome,
    number=st.integers(1, 2**40),
    status=st.sampled_from(Status),
    started=times,
    finished=st.none() | texts,
    table=texts,
    config=documents,
    config_digest=texts,
    versions=st.dictionaries(texts, texts, max_size=3),
    host=texts,
    device=texts,
    rows=st.none() | wholes,
    distinct_rows=st.none() | wholes,
    files=several(files),
    changes=st.none() | changes,
    columns=several(columns),
    gates=several(gates),
    summary=st.none() | documents,
    risk=st.none() | documents,
    kept=st.none() | any_kept_scores,
    seconds=st.dictionaries(texts, floats, max_size=3),
    peak_bytes=st.none() | wholes,
    compared_with=st.none() | wholes,
    notes=several(texts),
    error=texts,
)
