"""HTML of results as a notebook reads it: well-formed, with the tags and attributes that gpupif writes, no others."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

TAGS = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "span"}
CELLS = {"th", "td"}


class ReadHtml(HTMLParser):
    """The text of HTML. texts: all of it. tables: the rows of each table, with the text of each cell."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self.tables: list[list[list[str]]] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        assert {name for name, _ in attrs} <= {"style", "class"}
        if tag == "br":
            self.texts.append(" ")
            return
        assert tag in TAGS
        # Each part of a table is where it belongs.
        within = {"caption": "table", "thead": "table", "tbody": "table", "td": "tr", "th": "tr"}
        assert self._open[-1:] == [within[tag]] if tag in within else True
        self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in CELLS:
            self.tables[-1][-1].append("")
        if tag != "span":
            self.texts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if CELLS & {*self._open}:
            self.tables[-1][-1][-1] += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


def read_html(text: str) -> ReadHtml:
    """Return the text of HTML, which has to be well-formed, with as many cells in each row of a table."""
    read = ReadHtml()
    read.feed(text)
    read.close()
    assert read._open == []
    for rows in read.tables:
        assert len({len(row) for row in rows}) <= 1
    return read
