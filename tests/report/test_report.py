"""The report: what each result shows, that no text of a table does anything, that values can be hidden, bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError, OutputError
from gpupif.report.page import make_page
from gpupif.report.records import KINDS, document_of, kind_of
from gpupif.results.score_report import score_document
from gpupif.utils.display import as_cell, as_json, as_part
from tests.helpers.reports import Page

ROWS = 120
TABLE = gpupif.datasets.census(ROWS, columns=5, seed=4)
KNOWN = ["age", "sex", "region"]
WORST = "The worst class for k, distinct l and t; of equal ones the first"
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "'\"`&lt;{{7*7}}{% if %}%{z}",
    "\u202e\x07",
]
NIGHT = """
[input]
path = "t.parquet"

[risk]
quasi_identifiers = ["age", "sex"]

[[gates]]
kind = "k"
min = 5
"""


def page_of(*documents, redact=False):
    page = Page(make_page(documents, "people.csv", redact))
    page.check_closed()
    return page


@pytest.fixture
def table(tmp_path, monkeypatch, on_cpu):
    """The name of a file with the table, in the working folder."""
    monkeypatch.chdir(tmp_path)
    TABLE.to_parquet("t.parquet", index=False)
    return "t.parquet"


@pytest.fixture(scope="module")
def protection():
    with gpupif.config(device="cpu"):
        return gpupif.protect(TABLE, require=["k>=3"], quasi_identifiers=KNOWN, suppress=0.1)


def test_scores_show_the_landscape_and_the_riskiest_cells(on_cpu):
    scores = gpupif.score(TABLE)
    page = page_of(score_document(scores))
    summary = scores.summary()
    assert scores.verdict()[1].replace("`", "") in page.words.replace(" ,", ",")
    heat = page.figures[0]["data"][0]
    assert heat["type"] == "heatmap"
    assert heat["x"] == summary.columns.sort_values("fig", ascending=False).index.tolist()
    assert len(heat["y"]) == len(heat["z"]) + 1 == len(heat["customdata"]) + 1
    assert heat["y"][-1] == 100
    assert max(max(row) for row in heat["customdata"]) == pytest.approx(summary.columns["cig_max"].max(), rel=1e-5)
    gains = page.figures[1]
    assert sum(gains["data"][0]["y"]) == ROWS
    assert [line["x0"] for line in gains["layout"]["shapes"]] == list(summary.pif.values())
    first, top = page.record("Riskiest cells"), scores.top(1).iloc[0]
    assert (first["row, from 0"], first["column"], first["value"]) == (
        str(top["row"]),
        top["column"],
        str(top["value"]),
    )
    boxes = next(figure["data"][0] for figure in page.figures if figure["data"][0]["type"] == "box")
    csf = [figure["data"][0] for figure in page.figures if figure["data"][0]["type"] == "box"][1]
    assert boxes["y"] == heat["x"]
    assert csf["median"] == pytest.approx([sorted(scores.csf[name])[(ROWS - 1) // 2] for name in csf["y"]], abs=0.0051)
    assert "exact to 0.01 bits" in page.words
    check_priors_and_posteriors(page)
    assert "No single number" in page.words


@pytest.mark.slow
def test_the_size_of_a_page_does_not_grow_with_rows(run, table):
    """More columns than a figure shows, long names and values, as many bands and cells as a page has at most."""
    wide = pd.concat([gpupif.datasets.census(4000, seed=seed).astype(str) for seed in range(8)], axis=1)
    wide.columns = [f"{'a long name ' * 3}{place}" for place in range(wide.shape[1])]
    sizes = []
    for rows in (1000, 4000):
        wide.head(rows).to_parquet(table, index=False)
        assert run("report", table, "-o", f"{rows}.html", "--no-advice").code == 0
        sizes.append(Path(f"{rows}.html").stat().st_size)
    assert max(sizes) < 6_000_000
    # Bands, and cells to choose from, are at their most.
    assert sizes[1] < sizes[0] + 150_000


def check_priors_and_posteriors(page):
    """Compare the chosen cells with shares of rows of TABLE, each cell's cohort with all of them."""
    (choices,) = [figure["choices"] for figure in page.figures if "choices" in figure]
    records = [
        dict(zip(*lines, strict=True))
        for lines in ((page.tables["Riskiest cells"][0], line) for line in page.tables["Riskiest cells"][1:])
    ]
    assert len(choices) == len(records)
    for choice, cell in zip(choices, records, strict=True):
        name, row = cell["column"], int(cell["row, from 0"])
        others = TABLE.drop(columns=name)
        cohort = TABLE[(others == others.iloc[row]).all(axis=1)][name]
        for trace, of_rows in zip(choice["data"], (TABLE[name], cohort), strict=True):
            *values, rest = trace["y"] if trace["y"][-1] == "all other values" else [*trace["y"], None]
            values[0] = str(TABLE[name].iloc[row])
            shares = of_rows.astype(str).value_counts(normalize=True)
            expected = [shares.get(value, 0.0) for value in values] + [1 - shares.reindex(values).sum()] * (
                rest is not None
            )
            assert trace["x"] == pytest.approx(expected, rel=1e-4, abs=1e-6)


@pytest.mark.slow
def test_attackers_stand_side_by_side(on_cpu):
    scores = gpupif.score(TABLE, attackers={"neighbour": ["age", "sex"], "<b>anyone": gpupif.AnyKnown(1)})
    page = page_of(score_document(scores))
    assert [row[0] for row in page.tables["Attackers"][1:]] == ["neighbour", "<b>anyone"]
    bars = page.figures[0]["data"]
    assert [trace["name"] for trace in bars] == ["neighbour", "&lt;b&gt;anyone"]
    assert page.figures[1]["data"][0]["type"] == "heatmap"


def test_classes_pairs_and_advice(on_cpu):
    risk = gpupif.risk(TABLE, KNOWN, "education")
    pairs, advice = gpupif.toxic_pairs(TABLE), gpupif.advise(TABLE, columns=KNOWN)
    page = page_of(document_of(risk), document_of(pairs) | {"pairs": as_json(pairs.pairs)}, document_of(advice))
    sizes, matrix = page.figures[0]["data"][0], page.figures[1]["data"][0]
    by_size = TABLE.groupby(KNOWN, observed=True, dropna=False)["age"].transform("size")
    assert sum(sizes["y"]) == ROWS
    assert sizes["y"][0] == (by_size == 1).sum()
    assert [band["rows"] for band in risk.to_dict()["class_sizes"]] == sizes["y"]
    # With weights, rows are people.
    people = gpupif.toxic_pairs(TABLE.assign(w=2.0), columns=KNOWN, weights="w")
    weighed = page_of(document_of(people) | {"pairs": as_json(people.pairs)})
    for made, counted in ((page, "rows"), (weighed, "people")):
        assert f"{counted} if independent" in made.text
    first = pairs.pairs.iloc[0]
    row, column = (matrix["x"].index(first[f"column_{place}"]) for place in (1, 2))
    assert matrix["z"][row][column] == matrix["z"][column][row] == pytest.approx(100 * first["unique_share"])
    assert matrix["z"][row][row] is None
    facts = dict(page.tables["Classes"])
    assert facts["k, rows of the smallest class"] == str(risk.k)
    assert page.record("Each figure is that of the worst class")["t"] == f"{risk.worst['t']:.4g}"
    change = advice.changes.iloc[0]
    assert page.record("Changes of single columns")["column"] == change["column"]


@pytest.mark.parametrize(
    ("size", "band"), [(1, (1, 1)), (4, (4, 4)), (5, (5, 9)), (19, (10, 19)), (20, (20, 49)), (999, (500, 999))]
)
def test_bands_of_class_sizes(size, band):
    from gpupif.disclosure.class_sizes import ClassSizes

    assert [tuple(one) for one in ClassSizes({size: 7 * size}).bands()] == [(*band, 7 * size)]


def test_protection_treatment_and_comparison(protection, on_cpu):
    treated = gpupif.treat(TABLE, protection.plan)
    comparison = gpupif.compare(TABLE, treated.table, protection.plan, quasi_identifiers=KNOWN)
    page = page_of(*map(document_of, (protection, treated.record, comparison)))
    assert page.record("Criteria before and after") == {
        "criterion": "k>=3",
        "before": "1",
        "after": str(protection.smallest_class),
        "met": "yes",
    }
    frontier = page.figures[0]["data"]
    plan = next(trace for trace in frontier if trace["name"] == "the plan")
    assert plan["x"] == [protection.loss]
    assert sum(len(trace["x"]) for trace in frontier) == len(protection.frontier)
    assert page.record("Risk", 0)["before"] == f"{comparison.risk.loc['pif50', 'before']:.4g}"
    assert page.record("Risk", 0)["figure"] == "PIF 50, bits"
    groups = {row[0]: row[2] for row in page.tables["Level of each column in the plan"][1:]}
    assert groups == {str(name): own for name, own in protection.groups.items()}
    linked = gpupif.compare(TABLE, TABLE, quasi_identifiers=KNOWN, linkage="exact")
    caption = "Rows that an attacker who has their values before finds again, as the nearest"
    shown = page_of(document_of(linked)).record(caption)
    assert (shown["attacker has"], shown["share"]) == ("all values", as_part(linked.linkage.share))
    assert len(page.tables["In order"]) == len(treated.record.treatments) + 1


def test_a_result_reads_as_its_json(protection):
    document = json.loads(protection.to_json())
    assert kind_of(document) == "protection"
    assert page_of(document).tables == page_of(document_of(protection)).tables


def test_every_kind_has_sections():
    from gpupif.report.sections import Sections

    assert [kind for kind in KINDS if not hasattr(Sections, f"_{kind}")] == []


def test_answers_and_findings_have_headings_of_their_own():
    from gpupif.report.sections import Sections

    terms = {"epsilon": 1, "delta": 0, "neighbours": "replace", "contributions": 1, "group": 3, "spent": 1, "left": 0}
    answers = [{"name": "n", "ask": "counts", "table": []}, {"name": "m", "ask": "mean", "value": 45.123456789012345}]
    release = {"answers": answers, "budget": terms}
    audit = {"findings": [{"finding": "value", "group": "name = R", "by": "a - b"}], "disclosed": 1, "atoms": 2}
    for redact, value, rows in ((False, "45.12", "name = R"), (True, "hidden", "hidden")):
        [one] = Sections(redact).of(release)
        assert ["persons protected together", "3"] in [[cell.text for cell in row] for row in one.tables[0].rows]
        column = one.tables[1].headings.index("value")
        assert [row[column].text for row in one.tables[1].rows] == ["", value]
        [one] = Sections(redact).of(audit)
        assert one.tables[0].rows[0][one.tables[0].headings.index("rows told apart")].text == rows


def hostile_documents():
    names = dict(zip(TABLE.columns, [*HOSTILE, "plain"], strict=True))
    rows = TABLE.rename(columns=names)
    rows[HOSTILE[0]] = [HOSTILE[row % 4] for row in range(ROWS)]
    with gpupif.config(device="cpu"):
        pairs = gpupif.toxic_pairs(rows)
        risk = gpupif.risk(rows, [HOSTILE[1]], [HOSTILE[0]])
        return [
            score_document(gpupif.score(rows)),
            document_of(risk),
            document_of(pairs),
            document_of(gpupif.advise(rows)),
        ]


def test_text_of_a_table_does_nothing():
    page = page_of(*hostile_documents())
    # Two scripts run, one is data: none came from the table.
    assert [attributes for attributes, _ in page.scripts] == [{"type": "application/json", "id": "figures"}, {}, {}]
    assert "img" not in {tag for tag, _ in page.tags}
    assert HOSTILE[0] in page.words
    assert HOSTILE[2] in page.words
    assert "\u202e" not in page.text
    assert "\x07" not in page.text
    # Plotly would read tags; what a figure says is set as text.
    figures = [one for figure in page.figures for one in (figure, *figure.get("choices", ()))]
    shown = json.dumps([(figure["data"], figure["layout"]) for figure in figures])
    assert "<img" not in shown
    assert "&lt;img" in shown


def test_values_are_hidden(on_cpu):
    values = {"home": ["Zanzibarsecret", "Mombasasecret"], "job": ["Cobblersecret", "Bakersecret"], "age": [41, 42]}
    rows = pd.DataFrame({name: [own[row % 3 % 2] for row in range(40)] for name, own in values.items()})
    rows = rows.set_index(pd.Index([f"person{row}secret" for row in range(40)]))
    risk = gpupif.risk(rows, ["home", "age"], "job")
    pairs, advice = gpupif.toxic_pairs(rows), gpupif.advise(rows)
    for redact in (False, True):
        documents = [
            score_document(gpupif.score(rows), redact),
            *(document_of(one, redact) for one in (risk, pairs, advice)),
        ]
        text = make_page(documents, "t.csv", redact)
        assert ("secret" in text) is not redact
        assert ("values of cells are hidden" in text) is redact
    # Figures of a cell tell its value to who knows how frequent values are.
    assert "Riskiest cells" not in Page(text).tables
    assert not any("choices" in figure for figure in Page(text).figures)


def test_scores_write_their_report(tmp_path, on_cpu):
    scores = gpupif.score(TABLE)
    place = tmp_path / "r.html"
    scores.report(place)
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.stat().st_size < 6_000_000
    before = place.read_bytes()
    with pytest.raises(OutputError, match="exists already"):
        scores.report(place, overwrite=False)
    with pytest.raises(OutputError, match=r"ending in \.html"):
        scores.report(tmp_path / "r.pdf")
    assert place.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


@pytest.mark.parametrize("missing", ["jinja2", "plotly.offline"])
def test_without_the_extra_it_says_how_to_install(tmp_path, monkeypatch, on_cpu, missing):
    scores = gpupif.score(TABLE)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=r"not installed: pip install 'gpupif\[report\]'"):
        scores.report(tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_a_table_is_scored_and_measured(run, table):
    ended = run("report", table, "-o", "r.html", "--sensitive", "education", "--redact")
    assert (ended.code, ended.out) == (0, "Report written to r.html; open it in a browser.\n")
    page = Page.read("r.html")
    page.check_closed()
    headings = ["Risk landscape", "Class sizes", "k, l, t and their worst class", "Toxic pairs", "What to do next"]
    headings += ["What the words mean"]
    assert {"CIG", "PIF", "class", "k", "t"} <= {word for word, _ in page.tables["Words of this report"]}
    assert [heading for heading in headings if heading not in page.words] == []
    assert "Table: t.parquet" in page.words
    assert WORST not in page.tables
    assert run("report", table, "-o", "s.html", "--sensitive", "education", "-q", "--no-advice").code == 0
    assert "columns that the attacker does not know are listed: education." in Page.read("s.html").words
    known = [name for name in TABLE.columns if name != "education"]
    worst = gpupif.risk(TABLE, known, "education").worst_classes
    for line, own in zip(Page.read("s.html").tables[WORST][1:], worst, strict=True):
        values = ", ".join(f"{name} = {value}" for name, value in own.quasi_identifiers.items())
        figures = [as_cell(own.value), values, as_cell(own.rows), as_cell(own.classes)]
        assert line == [own.measure.replace("_", " "), own.attribute or "", *figures]


@pytest.mark.slow
def test_columns_that_are_not_measured_are_named(run, table):
    TABLE.to_parquet(table, index=False)
    assert run("report", table, "-o", "r.html", "--quasi-identifiers", "sex,region", "--no-advice").code == 0
    others = ", ".join(f"<code>{name}</code>" for name in TABLE.columns if name not in ("sex", "region"))
    assert f"Not measured, though in the table: {others}." in Page.read("r.html").text


def test_weights_of_roles_are_used(run, table):
    known = ["sex", "region"]
    rows = TABLE.groupby(known, observed=True)["age"].transform("size")
    # The more rows a class has, the fewer people it stands for.
    weighted = TABLE.assign(people=10 / rows**2)
    weighted.to_parquet(table, index=False)
    roles = dict.fromkeys(known, "quasi-identifier") | {"people": "weight"}
    roles |= {name: "sensitive" for name in TABLE.columns if name not in known}
    gpupif.results.Roles(roles).write("roles.toml")
    assert run("report", table, "-o", "r.html", "--roles", "roles.toml", "--no-advice").code == 0
    fig = gpupif.score(weighted, "cig", roles="roles.toml").fig()
    page = Page.read("r.html")
    sensitive = [name for name in TABLE.columns if name not in known]
    worst = gpupif.risk(weighted, known, sensitive, weights="people").worst_classes
    shown = page.tables[WORST][1:]
    assert [line[2] for line in shown] == [as_cell(own.value) for own in worst]
    shown = page.tables["Columns"]
    column, bits = (shown[0].index(name) for name in ("column", "FIG, bits"))
    assert {row[column]: row[bits] for row in shown[1:]} == {name: as_cell(own) for name, own in fig.items()}


@pytest.mark.slow
@pytest.mark.parametrize("limit", [(), ("--memory-limit", "16GiB")])
def test_scores_in_files_show_the_same(run, table, limit):
    assert run("score", table, "-o", "s.parquet", "--report", "scored.html", *limit).code == 0
    assert run("report", "s.parquet", "-o", "opened.html").code == 0
    scored, opened = map(Page.read, ("scored.html", "opened.html"))
    assert scored.figures[0] == opened.figures[0]
    assert scored.tables["Columns"] == opened.tables["Columns"]
    assert run("report", table, "-o", "table.html", "--no-advice", *limit).code == 0
    assert Page.read("table.html").figures[0] == opened.figures[0]


@pytest.mark.slow
def test_results_of_commands_are_reported(run, table):
    classes = ("risk", table, "--quasi-identifiers", "age,sex")
    assert run(*classes, "--report", "risk.html").code == 0
    Path("risk.json").write_text(run(*classes, "--json").out)
    assert run("report", "risk.json", "-o", "record.html", "--redact").code == 0
    direct, record = map(Page.read, ("risk.html", "record.html"))
    Path("suda.json").write_text(run("suda", table, "--json").out)
    assert run("report", "suda.json", "-o", "suda.html").code == 0
    singled_out = gpupif.suda(table).summary()
    suda = Page.read("suda.html")
    assert [row[0] for row in suda.tables["Columns"][1:]] == list(singled_out.columns.index)
    assert f"singles out {singled_out.scored_rows:,} of " in suda.words
    assert direct.tables["Classes"] == record.tables["Classes"]
    assert "in 1 class" in record.words or "classes, k = " in record.words
    protect = (
        "protect",
        table,
        "--require",
        "k>=3",
        "--quasi-identifiers",
        "age,sex",
        "--suppress",
        "0.5",
        "-o",
        "p.toml",
    )
    assert run(*protect, "--report", "protect.html").code == 0
    assert run("treat", table, "--plan", "p.toml", "-o", "treated.parquet").code == 0
    compare = ("compare", table, "treated.parquet", "--plan", "p.toml", "--report", "compare.html")
    assert run(*compare).code == 0
    assert run(*compare[:-1], "hidden.html", "--redact").code == 0
    assert "values of cells are hidden" in Page.read("hidden.html").words
    refused = run("compare", table, "treated.parquet", "--redact")
    assert (refused.code, "--redact: goes with --report" in refused.err) == (2, True)
    again = run(*compare)
    assert (again.code, "compare.html: exists already. Use --overwrite" in again.err) == (2, True)
    assert run(*compare, "--overwrite", "-q").code == 0


@pytest.mark.slow
def test_nights_are_reported(run, table):
    Path("night.toml").write_text(NIGHT)
    assert run("nightly", "run", "night.toml", "--report", "night.html", "-q").code == 3
    assert run("nightly", "run", "night.toml", "-q").code == 3
    assert run("report", "night.toml", "-o", "later.html").code == 0
    night, later = map(Page.read, ("night.html", "later.html"))
    assert night.record("Gates")["verdict"] == "failed"
    assert len(later.tables["Runs"]) == len(night.tables["Runs"]) + 1 == 3
    assert "FAILED" in later.words


VERSION = gpupif.__version__
BAD = {
    "no result": ('{"a": 1}', "treat, tables, audit, release, budget and nightly; got other JSON"),
    "no JSON": ("{", "expected JSON, got what is none"),
    "another version": (
        '{"gpupif": "0.0.1", "measures": [], "columns": [], "pif": {}, "top": []}',
        "is of gpupif '0.0.1'",
    ),
    "no version": ('{"measures": [], "columns": [], "pif": {}, "top": []}', "a version that it does not name"),
    "damaged": (f'{{"gpupif": "{VERSION}", "measures": [], "columns": 5, "pif": {{}}, "top": []}}', "is damaged"),
    "a damaged verdict": (
        f'{{"gpupif": "{VERSION}", "verdict": 5, "measures": [], "columns": [], "pif": {{}}, "top": []}}',
        "its verdict or its request is damaged",
    ),
    "a list": ("[1]", "expected keys and their values"),
    "a ledger": ('{"began": "", "gpupif_ledger": 1}\n{"number": 1}\n', "gpupif budget LEDGER --report"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_record_is_one_clear_error(run, table, case):
    text, said = BAD[case]
    Path("bad.json").write_text(text)
    ended = run("report", "bad.json", "-o", "r.html")
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert said in ended.err
    assert not Path("r.html").exists()


def test_bad_scores_and_options_are_one_clear_error(run, table, tmp_path):
    assert run("score", table, "-o", "s", "--rows-per-file", "50").code == 0
    assert run("score", table, "-o", "s.csv").code == 0
    parts = sorted((tmp_path / "s").iterdir())
    parts[0].rename(tmp_path / "away.parquet")
    Path("plan.toml").write_text("quasi_identifiers = ['age']\n[[treatment]]\ndo = 'drop'\ncolumns = ['age']\n")
    Path("empty").mkdir()
    for arguments, said in {
        ("s",): "could not be read",
        ("s", "--sensitive", "age"): "goes with a table",
        ("s.csv",): "got scores in CSV",
        ("away.parquet",): "expected the scores of all rows",
        ("none.json",): "there is no such file",
        ("none.toml",): "none.toml",
        ("plan.toml",): "plan.toml: is a plan; a report is of a table",
        ("empty",): "expected a folder of .parquet files",
        (table, "--known", "age"): "knows is --quasi-identifiers here",
    }.items():
        ended = run("report", *arguments, "-o", "r.html")
        assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
        assert said in ended.err
    parts[-1].write_bytes(b"PAR1 damaged PAR1")
    ended = run("report", "s", "-o", "r.html")
    assert f"{parts[-1].name}: could not be read" in ended.err
    (tmp_path / "s" / parts[0].name).write_bytes(b"PAR1 damaged PAR1")
    ended = run("report", "s", "-o", "r.html")
    assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
    assert not (tmp_path / "r.html").exists()
