"""Text that is printed acts on no terminal, JSON gives it back, and every result prints itself."""

from __future__ import annotations

import json
import pickle
import tomllib
import unicodedata
import warnings
from collections import Counter
from io import StringIO

import pandas as pd
import pytest
from rich.console import Console
from rich.text import Text

import gpupif
from gpupif.errors import NothingKnownWarning, printable, warn
from gpupif.io.documents import toml_key, toml_text
from gpupif.nightly import diff, history, verify
from gpupif.results.printed_summary import HEADS
from gpupif.utils import printed_width, progress
from gpupif.utils.display import Displayable, Heading, as_cell, draw_line, draw_table, json_text
from gpupif.utils.html_output import WIDE, HtmlConsole
from gpupif.utils.printed_width import standard_output
from gpupif.utils.progress import Reporter
from tests.helpers.html_tables import read_html
from tests.helpers.nights import Nights

# Control and format characters, surrogates, private and unassigned ones, separators.
UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
PLACES = (range(0x3000), range(0xD7F0, 0xE010), range(0xFE00, 0x10100), range(0xE0000, 0xE0080), (0x1F600, 0x10FFFF))
SIGNS = [chr(number) for numbers in PLACES for number in numbers]
# Tags, entities, markup of rich, and mathematics of notebooks.
TAGS = "<i>&lt;[b]$x$"
HOSTILE = "a\x1b]0;b\x07\x9b2J\u202e\u2028\n\ud800[red]:smile:"


def test_signs_that_cannot_be_seen_are_escaped():
    escaped = {sign for sign in SIGNS if printable(sign) != sign}
    assert escaped == {sign for sign in SIGNS if sign != " " and unicodedata.category(sign) in UNSEEN}
    assert "".join(printable(sign) for sign in "\x1b\n\x9b\u202e\ud800\U000e0041é") == (
        r"\x1b\n\x9b\u202e\ud800\U000e0041é"
    )
    assert printable(printable(HOSTILE)) == printable(HOSTILE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00020331, "0.0002033"),
        (999.44, "999.4"),
        (-1132.0, "-1,132"),
        (26_490.61, "26,491"),
        (2.5e15, "2.5e+15"),
        (7_000_000, "7,000,000"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_in_tables_have_four_digits_or_all_before_the_point(value, text):
    assert as_cell(value) == text


def test_json_gives_every_text_back():
    text = json_text({HOSTILE: SIGNS})
    assert json.loads(text) == {HOSTILE: SIGNS}
    assert [sign for sign in {*text} if not (sign == "\n" or sign.isprintable())] == []
    assert json_text({"é": "日本"}) == '{\n  "é": "日本"\n}'


def test_toml_gives_every_text_back():
    text = "".join(sign for sign in SIGNS if unicodedata.category(sign) != "Cs")
    written = f"{toml_key(text)} = {toml_text(text)}"
    assert tomllib.loads(written) == {text: text}
    assert written.isprintable()


def test_errors_and_warnings_are_escaped():
    error = gpupif.InputError(HOSTILE, "a second line")
    assert str(error) == f"{printable(HOSTILE)}\na second line"
    assert str(error.about("columns")) == f"columns: {error}"
    assert pickle.loads(pickle.dumps(error)).args == error.args
    with pytest.warns(NothingKnownWarning) as caught:
        warn(HOSTILE, NothingKnownWarning)
    assert str(caught[0].message) == printable(HOSTILE)


def test_a_printed_line_has_no_control_signs(capsys):
    draw_line(standard_output(), HOSTILE)
    assert capsys.readouterr().out == f"{printable(HOSTILE)}\n"


def test_texts_of_progress_are_escaped(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_console", lambda: Console(stderr=True, force_interactive=True))
    with Reporter(visible=True) as report:
        report.say(HOSTILE)
        report.stage(HOSTILE, 1, "rows")
        report.rename(f"again {HOSTILE}")
        report._bar.console.print(report._bar.make_tasks_table(report._bar.tasks), width=200)
    Reporter().say(HOSTILE)
    told = capsys.readouterr().err
    assert f"again {printable(HOSTILE)}" in told
    assert told.count(f"gpupif: {printable(HOSTILE)}") == 2
    assert [sign for sign in told if not (sign == "\n" or sign.isprintable())] == []


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a result of every class that prints itself."""
    name = f"{TAGS}{HOSTILE}"[:24]
    table = pd.DataFrame(
        {name: [f"{TAGS}{HOSTILE}"[:24], "b", "b", "b"], "sex": ["f", "f", "m", "m"], "age": [1, 1, 2, 3]}
    )
    nights = Nights(tmp_path_factory.mktemp("nights"))
    budget = gpupif.Budget(tmp_path_factory.mktemp("budget") / "l.json", epsilon=9, delta=0.5)
    released = gpupif.release.answer(table, [{"ask": "counts", "by": [name], "values": [name], "epsilon": 1}], budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nights.run()
        outcome = nights.run()
        return [
            gpupif.score(table).summary(),
            gpupif.score(table, known=1).summary(),
            gpupif.score(table, attackers={"x": ["sex"], "y": [name]}).summary(),
            gpupif.inspect(table),
            gpupif.risk(table, ["sex", name], ["age"]),
            gpupif.global_risk(table, ["sex", name], sampling_fraction=0.5),
            gpupif.quasi_identifiers(table, 0.1),
            gpupif.toxic_pairs(table),
            gpupif.suda(table).summary(),
            gpupif.advise(table),
            gpupif.protect(table, ["k>=2"], suppress=0.5),
            gpupif.compare(table, table, quasi_identifiers=["sex"]),
            (counted := gpupif.tables(table, by=["sex", "age"], suppress_below=2)),
            gpupif.audit_table(counted.counts, ["sex", "age"]),
            gpupif.audit([{"name": name, "where": "age = 3"}], table),
            released,
            released.answers[0],
            budget,
            gpupif.randomized_response(keep=0.5, prior=0.25),
            gpupif.treat(table, [gpupif.treatments.Drop(columns=["age"])]).record,
            outcome,
            history(nights.config),
            diff(nights.config),
            verify(nights.config),
        ]


def kinds(base=Displayable):
    """Return all classes of results that print themselves."""
    return {kind for one in base.__subclasses__() for kind in ({one} | kinds(one))}


def test_every_result_prints_without_control_signs(results, capsys):
    assert {type(one) for one in results} == {kind for kind in kinds() if kind.__module__.startswith("gpupif.")}
    for one in results:
        one.print()
        printed = capsys.readouterr().out
        assert len(printed.splitlines()) > 1
        for text in (printed, str(one), repr(one), one.to_json()):
            assert [sign for sign in text if not (sign == "\n" or sign.isprintable())] == []


def printed_words(one):
    """The words that a result prints on a terminal wide enough for all tables, without the lines of tables."""
    out = StringIO()
    one.draw(Console(file=out, width=WIDE))
    return Counter("".join(" " if 0x2500 <= ord(sign) < 0x2580 else sign for sign in out.getvalue()).split())


def test_a_notebook_shows_every_word_and_number_that_is_printed_and_no_tag_of_a_table(results):
    for one in results:
        read = read_html(one._repr_html_())
        assert read.tables
        assert Counter("".join(read.texts).split()) == printed_words(one)
        assert [sign for sign in "".join(read.texts) if not (sign == "\n" or sign.isprintable())] == []


def test_a_notebook_shows_scores_and_special_uniques_as_their_summary(results):
    table = gpupif.datasets.pif_example()
    for one in (gpupif.score(table), gpupif.suda(table)):
        assert read_html(one._repr_html_()).tables == read_html(one.summary()._repr_html_()).tables


def test_numbers_in_a_notebook_are_those_of_the_result():
    summary = gpupif.score(gpupif.datasets.pif_example()).summary()
    heads, *rows = read_html(summary._repr_html_()).tables[0]
    place = {name: number for number, name in enumerate(heads)}
    assert [row[place["column"]] for row in rows] == list(summary.columns.index)
    for key, shown in (("prior_entropy", "{:.3f}"), ("cig_mean", "{:.3f}"), ("fig", "{:,.1f}")):
        assert [row[place[HEADS[key]]] for row in rows] == [shown.format(value) for value in summary.columns[key]]


def test_text_in_html_keeps_bold_and_lines_and_nothing_else_of_its_style():
    console = HtmlConsole()
    console.print("[bold red]a[/] <b>&amp;", Text("c\n\n[d]", "dim"), highlight=False)
    console.print()
    lines = [f'<div style="white-space:pre-wrap">{line}</div>' for line in (
        '<span style="font-weight:bold">a</span> &lt;b&gt;&amp;amp;',
        '<span style="opacity:0.75">c</span>',
        '<span style="opacity:0.75">[d]</span>',
    )]  # fmt: skip
    assert console.html().splitlines()[1:-1] == lines
    read_html(console.html())


@pytest.mark.parametrize(
    ("columns", "width"), [(None, 140), ("60", 60), ("200", 200), ("0", 140), ("-5", 140), ("x", 140)]
)
def test_tables_in_a_pipe_are_as_wide_as_columns_says(monkeypatch, columns, width):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert printed_width.standard_output().width == width


@pytest.mark.parametrize("width", [30, 45, 60, 120])
def test_lines_drawn_together_look_as_lines_drawn_one_by_one(monkeypatch, width):
    words = ["a", "Straße", "人口 data", "x" * 30, "", "two words here", "[b]m[/]", " lead", "trail "]
    rows = [
        (one, place / 7, words[place - 3], Text.from_markup("[red]██[/][dim]░░[/]")) for place, one in enumerate(words)
    ]
    heads = [Heading("column", True), Heading("x"), Heading("words", True), Heading("bar", True, lambda bar: bar, True)]

    def drawn():
        console = Console(file=StringIO(), width=width, force_terminal=True, color_system="truecolor")
        console.print(draw_table("title", heads, rows))
        return console.file.getvalue()

    together = drawn()
    monkeypatch.setattr("gpupif.utils.printed_table._fits", lambda *_: False)
    assert together == drawn()
