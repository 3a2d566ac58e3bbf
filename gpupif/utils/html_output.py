"""Results as HTML for notebooks: what a result draws for a terminal, as HTML tables and lines of text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from io import StringIO
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..errors import printable
from .printed_table import PrintedLine, PrintedTable

# The width in characters, at which no result splits a table or leaves a column out: in a notebook wide tables scroll.
WIDE = 100_000
# With these classes a notebook reads no text between dollar signs as mathematics.
FRAME = '<div class="gpupif tex2jax_ignore mathjax_ignore" style="overflow-x:auto">\n{}\n</div>'
TABLE = '<table style="margin:0.75em 0">\n{}\n</table>'
CAPTION = '<caption style="caption-side:top;text-align:left;font-weight:bold;color:inherit">{}</caption>'
CELL = '<{0} style="text-align:{1};vertical-align:top;white-space:{2}">{3}</{0}>'
LINE = '<div style="white-space:pre-wrap">{}</div>'
SPAN = '<span style="{}">{}</span>'


class HtmlConsole(Console):
    """A console of rich that keeps as HTML what is printed on it.

    Tables become HTML tables, everything else lines of text. All text is escaped. Bold and dim text stays so. Colours
    are left out, because the background may be light or dark.
    """

    def __init__(self) -> None:
        super().__init__(file=StringIO(), width=WIDE)
        self._parts: list[str] = []

    def print(self, *objects: Any, emoji: bool | None = None, markup: bool | None = None, **_: Any) -> None:
        """Keep tables, texts and rich's markup. Other options than these are on colours, or on the terminal."""
        for printed in objects:
            if isinstance(printed, PrintedTable):
                self._print_table(printed)
            elif isinstance(printed, str):
                self.print(self.render_str(printed, emoji=emoji, markup=markup, highlight=False))
            elif isinstance(printed, PrintedLine):
                self.print(Text(printed.text, printed.style))
            else:
                self._parts += [LINE.format(line) for line in self._lines(printed) if line]

    def html(self) -> str:
        """Return what was printed so far."""
        return FRAME.format("\n".join(self._parts))

    def _lines(self, text: Text) -> list[str]:
        """Return the lines of a text as HTML."""
        lines = text.split("\n", allow_blank=True)
        for line in lines:
            # Rich leaves out the style of the whole text.
            line.stylize_before(text.style)
        return ["".join(map(_styled, line.render(self))) for line in lines]

    def _print_table(self, printed: PrintedTable) -> None:
        """Keep a table, which has room for all its columns, and the notes below it. Its title becomes the caption."""
        parts: list[Any] = list(printed.parts(self.options.max_width))
        title = "".join(self._lines(parts.pop(0))) if printed.title else ""
        for part in parts:
            if isinstance(part, Table):
                self._parts.append(self._table(part, title))
            else:
                self.print(part)

    def _cell(self, tag: str, text: Text, side: str) -> str:
        """Return a cell as HTML. Numbers, which are on the right side, are never broken."""
        space = "nowrap" if (tag, side) == ("td", "right") else "normal"
        return CELL.format(tag, side, space, "<br>".join(self._lines(text)))

    def _table(self, table: Table, title: str) -> str:
        """Return a table of rich as HTML, of which all headings and cells are `Text`."""
        sides = [column.justify for column in table.columns]

        def row(tag: str, texts: Iterable[Any]) -> str:
            return f"<tr>{''.join(self._cell(tag, text, side) for text, side in zip(texts, sides, strict=True))}</tr>"

        parts = [CAPTION.format(title)] if title else []
        if table.show_header:
            parts.append(f"<thead>{row('th', [column.header for column in table.columns])}</thead>")
        rows = zip(*(column.cells for column in table.columns), strict=True)
        return TABLE.format("\n".join([*parts, "<tbody>", *(row("td", texts) for texts in rows), "</tbody>"]))


def _styled(segment: Any) -> str:
    """Return a piece of text of one style as HTML."""
    text, style = escape(printable(segment.text)), segment.style
    looks = ["font-weight:bold"] * bool(style and style.bold) + ["opacity:0.75"] * bool(style and style.dim)
    return SPAN.format(";".join(looks), text) if looks else text
