"""The limits of a first nightly configuration are those of the page on thresholds."""

from __future__ import annotations

import re

import pytest

import gpupif
from gpupif.criteria.criterion import Criterion
from gpupif.nightly.configuration.first_limits import OFFICE_LIMITS
from tests.helpers.checkout import ROOT

PAGE = (ROOT / "docs" / "how-to" / "thresholds.md").read_text("utf-8")


def rows_under(heading):
    """The cells of the table under a line of headings."""
    table = PAGE.split(heading, 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def test_init_proposes_what_the_page_says(tmp_path):
    rows = rows_under("| who gets the table | start with | whose limit it is |")
    assert [(re.findall("`(.*?)`", start)[0], who.strip("| ")) for who, start, _ in rows] == [
        (office.criterion, office.who) for office in OFFICE_LIMITS
    ]
    for office, row in zip(OFFICE_LIMITS, rows, strict=True):
        said = " ".join(row)
        # Numbers, and names of more than one word or in brackets: whose limit it is.
        names = re.findall(
            r"\b0\.09|\b(?:1\d|20|3)\b|[A-Z]\w+(?: (?:on )?[A-Z]\w+)+|Ontario|World Bank|sdcMicro", office.source
        )
        assert [name for name in names if name not in said] == []
        assert names or ("no office" in said and "No office" in office.source)
    gpupif.datasets.census(500).to_csv(tmp_path / "t.csv", index=False)
    gpupif.nightly.init(tmp_path / "t.csv", tmp_path / "risk.toml")
    settings = gpupif.nightly.load_config(tmp_path / "risk.toml").settings
    assert [{gate.kind: gate.limits} for gate in settings.gates if {"max", "min"} & {*gate.limits}] == [
        {"k": {"min": 11}}
    ]


@pytest.mark.parametrize("row", rows_under("| rule | who, where | here |"), ids=lambda row: row[0][:30])
def test_each_limit_has_a_source_and_criteria_that_can_be_read(row):
    _, source, here = row
    assert re.search(r"\]\(https?://", source) or source.startswith(("the same", "European"))
    for text in re.findall(r"`([^`]*[<>]=[^`]*)`", here):
        assert str(Criterion.from_text(text)) == text
