"""Redacted reports: who knows how frequent the values of each column are finds none of those hidden, and no folder."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.report.page import make_page
from gpupif.report.records import document_of
from gpupif.report.sections import Sections, without_folders
from gpupif.results.score_report import score_document
from gpupif.utils.display import as_cell, as_part
from gpupif.utils.redaction import HIDDEN, as_certain, as_count, as_interval, lower_end
from tests.helpers.nights import CONFIGURATION
from tests.helpers.reports import Page

# Part of all values, and of the folder.
VALUE, FOLDER = "cellzq", "Tellfolder-annauser"
# Fewer candidates than that are a value found.
SEVERAL = 4
PAIRS = "Values that are rarest together"
WORST = "The worst class for k, distinct l and t; of equal ones the first"


def adversarial(seed, rows=60, columns=3):
    """Return a table whose columns have values of different frequencies, so that each frequency names a value."""
    draw = np.random.default_rng(seed)
    sizes = [3, 5, 8, 11, 14, rows - 41]
    names = [f"c{place}" for place in range(columns)]
    values = np.repeat([f"{VALUE}{place}" for place in range(len(sizes))], sizes)
    return pd.DataFrame({name: draw.permutation(values) for name in names})


TABLES = {
    "census": gpupif.datasets.census(400, columns=5, seed=2).astype(str),
    **{f"adversarial {seed}": adversarial(seed) for seed in range(3)},
}


def fits(shown, figure, show=as_cell):
    """Return whether a figure is as it is shown, or what is shown says nothing of it."""
    return shown in (None, HIDDEN, show(figure))


def records(page, caption):
    """Return the lines of a table in a page as dictionaries; none if the page lacks it."""
    headings, *lines = page.tables.get(caption, [[]])
    return [dict(zip(headings, line, strict=True)) for line in lines]


def pairs_that_fit(line, counts, rows):
    """Return the pairs of values that a line may be of: all figures of it together, any number of rows of the pair."""
    found = []
    for (a, of_a), (b, of_b) in product(*(counts[line[key]].items() for key in ("column", "other column"))):
        expected = of_a * of_b / rows
        together = [
            number
            for number in range(1, min(of_a, of_b) + 1)
            if fits(line.get("rows"), number) and fits(line.get("rarity, bits"), math.log2(expected / number))
        ]
        if fits(line.get("rows if independent"), expected) and together:
            found.append((a, b))
    return found


@pytest.mark.parametrize("name", TABLES)
def test_no_pair_of_values_is_found(on_cpu, name):
    table = TABLES[name]
    counts = {column: Counter(table[column]) for column in table}
    pairs = document_of(gpupif.toxic_pairs(table), redact=True)
    found = {}
    for redact in (True, False):
        page = Page(make_page([pairs | {"verdict": []}], "t", redact))
        lines = records(page, PAIRS)
        assert redact or len(lines) == len(pairs["values"])
        found[redact] = [len(pairs_that_fit(line, counts, len(table))) for line in lines]
        everything = [len(counts[line["column"]]) * len(counts[line["other column"]]) for line in lines]
        assert not redact or found[True] == everything
    # The attack works: it finds most pairs by the figures that are hidden.
    assert sum(number < SEVERAL for number in found[False]) > len(found[False]) / 2


@pytest.mark.parametrize("name", TABLES)
def test_no_cell_and_no_combination_is_found(on_cpu, name):
    table = TABLES[name]
    shares = {column: table[column].value_counts(normalize=True) for column in table}
    surprises = {column: -np.log2(own.to_numpy()) for column, own in shares.items()}
    scores = gpupif.score(table)
    found = {}
    for redact in (True, False):
        page = Page(make_page([score_document(scores, redact)], "t", redact))
        # What a cell gives away if its value is certain.
        found[redact] = [
            sum(all(fits(line[f"{kind} CIG, bits"], bits) for kind in ("median", "95 %", "highest")) for bits in own)
            for line in records(page, "Columns")
            for own in [surprises[line["column"]]]
        ]
        assert ("Riskiest cells" in page.tables) is not redact
    assert found[True] == [len(surprises[line["column"]]) for line in records(page, "Columns")]
    assert min(found[False]) <= 1
    # All combinations of values that may give a row as much as a percentile.
    page = Page(make_page([score_document(scores, True)], "t", True))
    sums = np.add.outer(np.add.outer(surprises[table.columns[0]], surprises[table.columns[1]]), 0.0).ravel()
    for column in table.columns[2:]:
        sums = np.add.outer(sums, surprises[column]).ravel()
    for line in records(page, "Percentiles of RIG"):
        if line["figure"] != HIDDEN:
            low, _, high = line["figure"].partition(" to ")
            # None fits if cells are not certain.
            assert not 0 < ((sums >= float(low)) & (sums < float(high))).sum() < SEVERAL, line
    landscape = next(figure["data"][0] for figure in page.figures if figure["data"][0]["type"] == "heatmap")
    assert all(bits is None or bits == int(bits) for row in landscape["z"] for bits in row)
    assert not {"customdata", "bands"} & set(landscape)
    assert "RIG" not in json.dumps(landscape)
    assert {word for band in landscape["text"] for word in band[0].split()} - {"band", "of"} <= {*map(str, range(99))}
    assert not [figure for figure in page.figures if figure["data"][0]["type"] == "box"]


def entropy(*counts):
    """Return the entropy of values that are so frequent."""
    return -sum(own / sum(counts) * math.log2(own / sum(counts)) for own in counts if own)


def test_intervals_of_entropy_and_ranges_of_counts_have_ten_counts_or_more():
    for rows in (20, 21, 37, 60, 99, 100, 128, 200, 1_000, 28_799):
        found = Counter(as_interval(entropy(count, rows - count), rows) for count in range(rows // 2 + 1))
        assert min(found.values()) >= 10, rows
        for count in range(rows + 1):
            bits = entropy(count, rows - count)
            assert lower_end(bits, rows) <= bits + 1e-9
        ranges = Counter(as_count(count, rows) for count in range(rows + 1))
        assert min(ranges.values()) >= 10, rows
    assert as_interval(0.5, 19) == HIDDEN
    assert [as_count(count) for count in (0, 9, 10, 7_362)] == ["fewer than 10"] * 2 + ["10 to 19", "7,300 to 7,399"]
    assert as_count(59, 60) == as_count(60, 60) == "50 or more"
    assert [as_interval(share, 10_000, percent=True) for share in (0.0, 0.05, 1.0)] == ["0 to 5 %"] * 2 + [
        "95 to 100 %"
    ]


def test_the_range_of_certain_rows_leaves_open_which_classes_are_certain():
    draw = np.random.default_rng(7)
    shown = 0
    for _ in range(60):
        sizes = draw.integers(1, draw.integers(2, 7), 11)
        classes = {"rows": sizes.sum(), "classes": 11, "uniques": (sizes == 1).sum(), "largest": sizes.max()}
        ways = {}
        for certain in product((False, True), repeat=int((sizes > 1).sum())):
            rows = classes["uniques"] + sizes[sizes > 1][list(certain)].sum()
            ways.setdefault(as_certain(int(rows), classes), []).append(certain)
        assert all({*each} == {False, True} for of_range in ways.values() for each in zip(*of_range, strict=True))
        shown += len(ways) > 1
    assert shown > 20
    assert as_certain(3, classes | {"classes": None}) == HIDDEN


def everything_shown(known, illness):
    """Return all that redacted reports and verdicts on a table show: text, numbers that are embedded, figures."""
    table = pd.DataFrame({"known": known, "illness": illness}).astype(str)
    coarser = table.assign(known=[str(value // 2) for value in known])
    documents = [
        score_document(gpupif.score(table), True),
        score_document(gpupif.score(table, columns="illness", known=["known"]), True),
        *(
            document_of(result, True)
            for result in (
                gpupif.risk(table, ["known"], "illness"),
                gpupif.compare(table, coarser, quasi_identifiers=["known"], sensitive=["illness"]),
                gpupif.toxic_pairs(table),
                gpupif.suda(table).summary(),
                gpupif.protect(table, ["k>=1", "t<=1"], quasi_identifiers=["known"], sensitive=["illness"]),
            )
        ),
    ]
    return [document["verdict"] for document in documents], [Sections(True).of(own) for own in documents]


def witnesses(known, illness, rows, draw, tries):
    """Return the numbers of ill people among some rows, in tables that show the same; the classes stay as they are."""
    shown = everything_shown(known, illness)
    found = {int((illness[rows] == 1).sum())}
    for wanted in range(len(rows) + 1):
        if wanted in found or abs(wanted - min(found, key=lambda own: abs(own - wanted))) > 12:
            continue
        for number in range(tries):
            other = illness.copy()
            other[rows] = np.where(other[rows] == 1, 0, other[rows])
            # In turn anywhere, and in neighbouring rows, which are of few classes.
            start = draw.integers(0, len(rows) - wanted + 1)
            other[rows[start : start + wanted] if number % 2 else draw.choice(rows, wanted, replace=False)] = 1
            # Another class, or the number of another value, may make up for what changes.
            others = np.delete(np.arange(len(known)), rows)
            if len(others) and number % 3:
                place = np.flatnonzero(known == known[draw.choice(others)])
                other[place] = draw.choice([0, draw.choice(illness)], len(place)) if number % 3 == 1 else 0
            if len(others) and number % 4 > 1:
                more = (illness == 1).sum() - (other == 1).sum()
                pool = others[(other[others] == 1) != (more > 0)]
                other[draw.choice(pool, min(abs(more), len(pool)), replace=False)] = int(more > 0)
            elif number % 4 == 3 and 2 in illness:
                pool = np.flatnonzero(other == 2)
                other[draw.choice(pool, len(pool) // 4, replace=False)] = 0
            if {*other} == {*illness} and everything_shown(known, other) == shown:
                found.add(wanted)
                break
        if len(found) >= SEVERAL:
            break
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 7))])
def test_no_number_of_people_with_a_value_is_found(on_cpu, seed):
    """A reader who knows n and all classes finds neither how many are ill in the table nor in a class."""
    draw = np.random.default_rng(seed)
    number = int(draw.integers(20, 201)) if seed else 60
    known = np.sort(draw.integers(0, max(2, number // 5), number))
    illness = np.zeros(number, int)
    if seed % 3 == 2:
        illness[draw.choice(number, number // 3, replace=False)] = 2
    illness[draw.choice(number, 2 if seed % 2 == 0 else int(draw.integers(2, number // 2)), replace=False)] = 1
    assert len(witnesses(known, illness, np.arange(number), draw, 12)) >= SEVERAL
    sizes = Counter(known.tolist())
    for one in draw.choice([*sizes], 3 if seed else 2, replace=False):
        rows = np.flatnonzero(known == one)
        assert len(witnesses(known, illness, rows, draw, 16)) >= min(SEVERAL - 1, len(rows) + 1), (one, len(rows))


def test_small_tables_have_no_landscape(on_cpu):
    page = Page(make_page([score_document(gpupif.score(adversarial(1).head(15)), True)], "t", True))
    assert not [figure for figure in page.figures if figure["data"][0]["type"] == "heatmap"]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("known", [1, 2])
def test_no_class_is_found(on_cpu, name, known):
    """The second attacker knows the number of rows of each class, too."""
    table = TABLES[name]
    keys, attribute = [*table.columns[:known]], table.columns[-1]
    measured = gpupif.risk(table, keys, attribute)
    sizes = table.groupby(keys, observed=True).size()
    shares = table[attribute].value_counts(normalize=True)
    found, values = {}, {}
    for redact in (True, False):
        page = Page(make_page([document_of(measured, redact)], "t", redact))
        lines = [line for line in records(page, WORST) if line["measure"] != "k"]
        assert bool(lines) is not redact
        found[redact] = [sum(fits(line["rows"], int(size)) for size in sizes) for line in lines]
        (line,) = records(page, "Each figure is that of the worst class")
        # The value that all rows of the worst class have, if they have the same.
        values[redact] = [sum(fits(line["basic beta"], float((1 - own) / own)) for own in shares)]
        values[redact] += [sum(fits(line["delta"], float(-np.log(own))) for own in shares)]
        assert not redact or not records(page, "The worst classes of several rows: their attribute is known")
    assert values[True] == [len(shares)] * 2
    assert min(found[False]) < len(sizes)


@pytest.mark.parametrize("name", TABLES)
def test_no_grouping_is_found(on_cpu, name):
    """What a change costs follows from how frequent the values are that it brings together."""
    table = TABLES[name]
    for columns in (list(table.columns[:1]), list(table.columns)):
        advice = document_of(gpupif.advise(table, quasi_identifiers=columns), redact=True)
        lines = records(Page(make_page([advice], "t", True)), "Changes of single columns")
        assert {line[key] for line in lines for key in line if "given up" in key or "away" in key} == {HIDDEN}
        if len(columns) == 1:
            assert {line[key] for line in lines for key in line if key not in ("column", "change")} == {HIDDEN}
    asked = {"require": ["k>=3"], "quasi_identifiers": list(table.columns[:2]), "suppress": 0.1}
    found = document_of(gpupif.protect(table, **asked), redact=True)
    page = Page(make_page([found], "t", True))
    assert {line["lost, bits"] for line in records(page, "Level of each column in the plan")} == {HIDDEN}
    assert page.figures == []
    assert as_part(found["loss_share"]) not in page.words or found["loss_share"] in (0, 1)


def test_numbers_have_no_more_digits_than_are_shown(on_cpu):
    table = TABLES["census"]
    documents = [score_document(gpupif.score(table), True), document_of(gpupif.toxic_pairs(table), True)]
    page = Page(make_page(documents, "t", True))
    shown = [attributes["data-number"] for _, attributes in page.tags if "data-number" in attributes]
    assert len(shown) > 20
    assert [number for number in shown if len(number.replace(".", "").strip("0")) > 4 and "." in number] == []


def test_figures_of_single_rows_and_counts_are_left_out(on_cpu):
    table = adversarial(4).assign(c0=[f"{VALUE}{place}" for place in range(60)])
    suda = document_of(gpupif.suda(table).summary(), True)
    assert "Rows at the highest risk" not in Page(make_page([suda], "t", True)).tables
    counts = document_of(gpupif.tables(table, ["c1", "c2"], suppress_below=3), True)
    page = Page(make_page([counts], "t", True))
    assert not {"Cells", "Suppressed cells"} & set(page.tables)
    released = {"answers": [{"name": "n", "ask": "counts", "table": [{"c1": "x", "count": 17}]}], "budget": {}}
    assert [one.title for one in Sections(True).of(released)] == ["Answers with noise"]
    findings = {"findings": [{"finding": "value", "by": "a × 10 − b × 1,009", "rows": 1}], "disclosed": 1, "atoms": 2}
    (one,) = Sections(True).of(findings)
    assert [cell.text for cell in one.tables[0].rows[0]] == ["value", HIDDEN, "a × its rows − b × its rows"]


def test_paths_in_commands_become_names():
    command = "gpupif protect '/home/a b/t.csv' --quasi-identifiers a/b,c --require 't(a/b)<=0.2' -o out/p.toml --sep /"
    assert without_folders(command) == (
        "gpupif protect t.csv --quasi-identifiers a/b,c --require 't(a/b)<=0.2' -o p.toml --sep /"
    )


QUERIES = """
[[query]]
kind = "mean"
column = "pay"
name = "all"
[[query]]
kind = "mean"
column = "pay"
name = "others"
where = "not c1 = 'VALUE0'"
"""
ANSWERS = """
[[query]]
ask = "counts"
by = ["c1"]
values = { c1 = ["VALUE0", "VALUE1"] }
epsilon = 0.5
"""


@pytest.mark.slow
def test_no_redacted_report_has_a_folder_or_a_value(run, tmp_path, on_cpu):
    place = tmp_path / FOLDER
    place.mkdir()
    table, plan, ledger = place / "t.csv", place / "plan.toml", place / "ledger.json"
    rows = adversarial(5, columns=4).assign(pay=range(1, 61))
    rows.to_csv(table, index=False)
    roles = {"c0": "quasi-identifier", "c1": "quasi-identifier", "c2": "quasi-identifier", "c3": "sensitive"}
    gpupif.results.Roles(roles | {"pay": "leave out"}).write(place / "roles.toml")
    (place / "q.toml").write_text(QUERIES.replace("VALUE", VALUE))
    (place / "a.toml").write_text(ANSWERS.replace("VALUE", VALUE))
    rows[["c0", "c1"]].rename(columns={"c0": "age", "c1": "illness"}).to_parquet(place / "n.parquet")
    (place / "night.toml").write_text(CONFIGURATION.replace('"table"', '"n.parquet"'))
    (place / "gone").mkdir()
    (place / "gone" / "gone.toml").write_text(CONFIGURATION.replace('"table"', json.dumps(str(place / "gone.parquet"))))
    known, codes = ("--quasi-identifiers", "c0,c1", "--sensitive", "c3"), {0, 3}
    assert run("budget", ledger, "--epsilon", "5", "-q").code == 0
    commands = {
        "report": ("report", table, "--roles", place / "roles.toml", "-o"),
        "again": ("report", place / "scores.parquet", "-o"),
        "score": ("score", table, "-o", place / "scores.parquet", "--report"),
        "risk": ("risk", table, *known, "--report"),
        "protect": ("protect", table, *known, "--require", "k>=2", "--suppress", "0.5", "-o", plan, "--report"),
        "compare": ("compare", table, place / "treated.csv", "--plan", plan, "--report"),
        "tables": ("tables", table, "--by", "c0,c1", "--suppress-below", "3", "-o", place / "c.csv", "--report"),
        "audit": ("audit", place / "q.toml", "--table", table, "--report"),
        "release": (
            "release",
            table,
            "--ledger",
            ledger,
            "--query",
            place / "a.toml",
            "-o",
            place / "a.json",
            "--report",
        ),
        "night": ("nightly", "run", place / "night.toml", "--report"),
        "nights": ("report", place / "night.toml", "-o"),
        "gone": ("nightly", "run", place / "gone" / "gone.toml", "--report"),
        **{f"{name} json": ("report", place / f"{name}.json", "-o") for name in ("suda", "toxic", "advise", "protect")},
    }
    order = ["score", *(name for name in commands if name != "score")]
    documents = {
        "suda": ("suda", table),
        "toxic": ("toxic", table),
        "advise": ("advise", table, *known),
        "protect": ("protect", table, *known, "--require", "k>=2", "--suppress", "0.5", "-o", place / "p2.toml"),
    }
    for name, command in documents.items():
        ended = run(*command, "--json")
        assert ended.code == 0, ended
        (place / f"{name}.json").write_text(ended.out)
    pages = {}
    for name in order:
        if name == "compare":
            assert run("treat", table, "--plan", plan, "-o", place / "treated.csv", "-q").code == 0
        ended = run(*commands[name], place / f"{name}.html", "--redact", "-q")
        assert ended.code in codes or name == "gone", (name, ended)
        if (place / f"{name}.html").exists():
            pages[name] = (place / f"{name}.html").read_text()
    assert set(pages) == set(commands)
    for name, page in pages.items():
        assert [word for word in (VALUE, FOLDER, str(tmp_path), tmp_path.name) if word in page] == [], name
        assert "t.csv" in page or name not in ("report", "protect"), name
