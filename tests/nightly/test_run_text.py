"""What is told of a run in words: the same on the terminal and in Markdown."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console

from gpupif.disclosure.models import MODELS
from gpupif.errors import printable
from gpupif.measures import MEASURES
from gpupif.nightly.exit_codes import EXIT_CODES, Status
from gpupif.nightly.report import readable_report, run_text
from gpupif.nightly.run_outcome import ColumnProfile, GateResult, Verdict
from gpupif.nightly.table.table_changes import InputChanges
from tests.helpers.outcomes import AWKWARD, failed_run, good_run, refused_run


def drawn(outcome, before=None, width=200):
    out = io.StringIO()
    readable_report.draw(outcome.to_dict(), before and before.to_dict(), Console(file=out, width=width))
    return out.getvalue()


def as_markdown(outcome, before=None):
    return readable_report.markdown(outcome.to_dict(), before and before.to_dict())


def test_an_outcome_prints_as_text_and_json():
    printed = str(failed_run())
    assert "4.75 bits" in printed
    assert "Exit code 3: the release must wait." in " ".join(printed.split())
    assert json.loads(failed_run().to_json())["gates"][0]["change"] == 0.75


@pytest.mark.parametrize("draw", [drawn, as_markdown])
def test_the_text_of_a_run_has_its_gates_and_changes(draw):
    said = draw(failed_run(), good_run())
    gate = next(line for line in said.splitlines() if "PIF 95" in line and "at most" in line)
    assert ["4.75 bits" in gate, "at most 4.5" in gate, "+0.75 bits" in gate, "4.75 is above 4.5" in gate] == [True] * 4
    assert "Since run 1, the last good one" in said
    assert "columns removed: 1 (town)" in said
    assert "columns of another type: 1 (age int64 -" in said
    assert "files unchanged: 2" in said
    assert re.search(r"rows\W+1,000 rows\W+1,200 rows\W+200 rows", said)
    # What is the same is not among what changed.
    assert "PIF 100" not in said
    assert "the state of another version was not used" in said


@pytest.mark.parametrize("draw", [drawn, as_markdown])
def test_a_first_run_has_nothing_to_compare_with(draw):
    said = draw(good_run(changes=InputChanges(added=["one.parquet"], read=["one.parquet"])))
    assert "No good run before it to compare with" in said
    assert "added" not in said


@pytest.mark.parametrize("draw", [drawn, as_markdown])
def test_names_with_control_signs_are_escaped(draw):
    said = draw(failed_run(), good_run())
    assert all(own.isprintable() or own == "\n" for own in said)
    assert said.encode()
    assert r"x1b" in said


def test_markdown_tables_keep_their_cells():
    said = as_markdown(failed_run(), good_run())
    lines = [line for line in said.splitlines() if line.startswith("|")]
    assert len(lines) == 5 + 6
    cells = [len(re.findall(r"(?<!\\)\|", line)) - 1 for line in lines]
    assert cells == [7] * 5 + [4] * 6
    assert "<i>" not in said
    assert not re.search(r"(?<!\\)`", said)


@pytest.mark.parametrize("status", Status)
def test_the_last_line_has_the_verdict_and_the_exit_code(status):
    outcome = refused_run(status=status, gates=failed_run().gates)
    said = run_text.closing(outcome.to_dict())
    assert said.startswith(status.value.upper())
    assert f"Exit code {EXIT_CODES.get(status, 1)}" in said
    assert printable(said) in drawn(outcome)


def test_a_failed_run_names_its_gates():
    assert "2 of 3 gates do not hold: PIF 95, a|b" in run_text.closing(failed_run().to_dict())
    assert "1 of 1 gate does not hold: PIF 95." in run_text.closing(failed_run(gates=failed_run().gates[:1]).to_dict())


BOTH_WAYS = {"max": 10.0, "max_rise": 1.0, "max_fall": 1.0}


def gate(name, verdict=Verdict.PASSED, kind="rows", limits=None, value=9.0, before=None, treated=False):
    unit = {"rows": "rows", "pif": "bits"}.get(kind, "share")
    return GateResult(name, kind, unit, value, before, limits or {"max": 10.0}, verdict, treated=treated)


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        ([gate("a"), gate("b")], "all 2 gates hold; none limits a risk"),
        ([gate("a")], "the gate holds; none limits a risk"),
        # A limit on its change is none on a risk itself.
        (
            [gate("a"), gate("p", kind="pif", limits={"max_rise": 1.0}, before=9.0)],
            "all 2 gates hold; none limits a risk; measured, but not limited: p 9 bits",
        ),
        (
            [
                gate("p", kind="pif"),
                gate("u", Verdict.NOT_APPLIED, kind="unique_share", limits={"max_rise": 1.0}, value=0.999934),
            ],
            "1 of 2 gates holds; within the limits on risk: p 9 bits (at most 10); measured, but not limited: "
            "u 0.999934 (99.99 %); not applied, for want of a run to compare with: max_rise of u",
        ),
        ([gate("a"), gate("p", kind="pif")], "all 2 gates hold; within the limits on risk: p 9 bits (at most 10)"),
        (
            [gate("p", kind="pif"), gate("a", Verdict.NOT_APPLIED)],
            "1 of 2 gates holds; within the limits on risk: p 9 bits (at most 10); "
            "not applied, for want of a run to compare with: max of a",
        ),
        (
            [gate("a", Verdict.NOT_APPLIED)],
            "the gate had nothing to compare with; none limits a risk; "
            "not applied, for want of a run to compare with: max of a",
        ),
        (
            [gate("a", Verdict.NOT_APPLIED), gate("b", Verdict.NOT_APPLIED)],
            "2 gates had nothing to compare with; none limits a risk; "
            "not applied, for want of a run to compare with: max of a, max of b",
        ),
        # Figures of the input are not those of the table that is released.
        (
            [
                gate("p", kind="pif"),
                gate("q", kind="pif", limits={"max_rise": 1.0}, before=9.0),
                gate("t", kind="unique_share", value=0.5, treated=True),
            ],
            "all 3 gates hold; within the limits on risk, before treatment: p 9 bits (at most 10); within the limits "
            "on risk, after treatment: t 0.5 (50 %) (at most 10); measured before treatment, but not limited: q 9 bits",
        ),
        # A limit on change beside one that was applied.
        (
            [gate("p", kind="pif", limits={"max": 10.0, "max_rise": 1.0}), gate("a", limits=BOTH_WAYS)],
            "all 2 gates hold; within the limits on risk: p 9 bits (at most 10); "
            "not applied, for want of a run to compare with: max_rise of p, max_rise and max_fall of a",
        ),
    ],
)
def test_the_last_line_of_a_passed_run_says_which_gates_were_tested(gates, said):
    but = ", BUT NO GATE LIMITS A RISK" * ("none limits a risk" in said)
    assert run_text.closing(good_run(gates=gates).to_dict()) == f"PASSED{but}: {said}. Exit code 0."


def test_figures_of_the_input_are_before_treatment_if_a_treated_table_is_released():
    for key, when in (("release.output", " before treatment"), ("release.answers", "")):
        release = {"status": "published", "files": [{"key": key, "size": 1, "digest": ""}]}
        run = good_run(gates=[gate("p", kind="pif", limits={"max_rise": 1.0}, before=9.0)], release=release)
        said = f"PASSED, BUT NO GATE LIMITS A RISK: the gate holds; none limits a risk; measured{when}, but not limited"
        assert run_text.closing(run.to_dict()).startswith(f"{said}: p 9 bits.")


def test_what_may_be_above_1_is_no_share():
    for one in (*MODELS.values(), *MEASURES.values()):
        assert one.unit != run_text.SHARE or one.range.endswith(" to 1"), one.name
    assert run_text.amount(3.82146, MODELS["basic_beta"].unit) == "3.82146"


def test_the_last_line_of_a_failed_run_names_limits_not_applied():
    gates = [gate("a", Verdict.FAILED), gate("b", limits=BOTH_WAYS), gate("c", Verdict.UNKNOWN, limits=BOTH_WAYS)]
    assert run_text.closing(failed_run(gates=gates).to_dict()) == (
        "FAILED: 2 of 3 gates do not hold: a, c; not applied, for want of a run to compare with: max_rise and max_fall "
        "of b. Exit code 3: the release must wait."
    )


@pytest.mark.parametrize("draw", [drawn, as_markdown])
def test_the_first_line_has_the_attacker_as_a_sentence(draw):
    knows = "The attacker knows all other columns"
    for summary in ({"attacker": knows}, {"attacker": f"{knows}."}):
        assert draw(good_run(summary=summary)).splitlines()[0].endswith(f" UTC. {knows}.")


def test_a_refused_run_has_no_tables():
    said = drawn(refused_run(), good_run())
    assert "no file matches" in said
    assert "rows" not in said


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (None, "rows", "unknown"),
        (1.0, "rows", "1 row"),
        (1.0, "classes", "1 class"),
        (12_345_678.0, "rows", "12,345,678 rows"),
        (0.25, "share", "0.25 (25 %)"),
        (1.0, "probability", "1"),
        (4.123456789, "bits", "4.12346 bits"),
        (float("inf"), "", "infinite"),
        (-2.0, "bits", "-2 bits"),
    ],
)
def test_amounts_are_written_with_their_unit(value, unit, expected):
    assert run_text.amount(value, unit) == expected


def test_the_last_line_of_a_run_without_gates_says_so():
    assert run_text.closing(good_run(gates=[]).to_dict()) == (
        "PASSED, BUT NO GATE LIMITS A RISK: there are no gates, so nothing was judged. Exit code 0."
    )


def test_a_column_without_values_has_no_type_to_change():
    before, now = (good_run(columns=[ColumnProfile("note", kind)]).to_dict() for kind in ("null", "string"))
    assert run_text.column_changes(now, before) == []


def test_an_unknown_gate_says_where_and_why():
    gate = GateResult("t", "t", "", None, None, {}, Verdict.UNKNOWN, "no classes", "town", "neighbour")
    document = good_run(gates=[gate]).to_dict()
    headings, (line,) = run_text.gates_table(document)
    assert dict(zip(headings, line, strict=True)) == {
        "gate": "t",
        "value": "unknown",
        "limits": "",
        "change": "",
        "where": "column town, attacker neighbour",
        "verdict": "unknown: no classes",
    }
    assert "where" not in run_text.gates_table(good_run().to_dict())[0]


def test_a_narrow_terminal_still_has_all_numbers():
    said = re.sub(r"\s", "", drawn(failed_run(), good_run(), width=60))
    assert "4.75bits" in said
    assert re.sub(r"\s", "", printable(AWKWARD))[:6] in said
