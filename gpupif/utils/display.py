"""Results as text: tables for people, JSON documents for programs. `printed_width` has the width of tables."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import printable
from .printed_width import TEXT_WIDTH, standard_output

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from .printed_table import PrintedTable

# The key of a verdict without values in the JSON of a result.
REDACTED = "redacted_verdict"


class Record:
    """A result, as a dataclass."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain numbers, text, lists and dictionaries for JSON; None for NaN and infinity."""
        return {name: as_json(value) for name, value in vars(self).items()}


class Displayable(Record, ABC):
    """A result that prints as tables, and that notebooks show as HTML tables."""

    @abstractmethod
    def draw(self, console: Console) -> None:
        """Draw the result on a console of rich."""

    def verdict(self, redact: bool = False) -> list[str]:
        """Return the result in at most three sentences: the request, the attacker, and what the figures say.

        redact: whether values of the table are left out, and figures that tell them; the names of its columns stay.
        Default: False. The sentences are text of one line each, without markup. Names and values in them are
        `printable`.
        """
        return []

    def print(self, console: Console | None = None) -> None:
        """Print the result. console: a console of rich. Default: standard output."""
        self.draw(console or standard_output())

    def to_json(self) -> str:
        """Return the result of `to_dict` as a JSON document."""
        return json_text(self.to_dict())

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        out = StringIO()
        self.draw(Console(file=out, width=TEXT_WIDTH))
        return out.getvalue()

    def _repr_html_(self) -> str:
        """Return the result as HTML tables, as notebooks show it."""
        from .html_output import HtmlConsole

        console = HtmlConsole()
        self.draw(console)
        return console.html()


def json_text(document: Any, infinite: bool = False) -> str:
    """Return a document as JSON in several lines. Characters that `printable` escapes become JSON escapes.

    infinite: whether numbers may be infinite or NaN, which JSON lacks and Python reads. Otherwise such a number raises
    ValueError. Default: False.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=infinite)
    return re.sub(r"[^\n -~]", lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)


def as_json(value: Any) -> Any:
    """Return a value of a `Record` for JSON, see `json_value`.

    A frame becomes a list of its rows, with the index as a column if the index has a name.
    """
    if is_dataclass(value):
        return {name: as_json(own) for name, own in vars(value).items()}
    if isinstance(value, Mapping):
        return {str(key): as_json(own) for key, own in value.items()}
    if isinstance(value, list):
        return [as_json(own) for own in value]
    if hasattr(value, "reset_index"):
        rows = (value if value.index.name is None else value.reset_index()).astype(object)
        return as_json(rows.where(rows.notna(), None).to_dict("records"))
    return json_value(value)


def json_value(value: Any) -> Any:
    """Return a value for JSON: numbers, text, booleans and null as they are, anything else as its text."""
    import numpy as np

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return str(value)


def as_text(value: Any) -> str:
    """Return a name or a value in words, `printable`; "(missing)" for None, NaN and the like."""
    return "(missing)" if value is None or value != value else printable(str(value))


def as_cell(value: Any) -> str:
    """Return a float in four digits or all before the point, a whole number, or any other value by `as_text`."""
    if isinstance(value, float):
        # A sum with 0.0 has no negative zero. 999.96 is rounded to 1,000.
        rounded = float(f"{value:.4g}") + 0.0
        return f"{value:,.0f}" if 1_000 <= abs(rounded) < 1e15 else f"{rounded:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else as_text(value)


def as_found(value: Any) -> str:
    """Return a value of a table so that a reader can look it up in the table: floats with all their digits."""
    return f"{value:.15g}" if isinstance(value, float) and value == value else as_text(value)


def without_sizes(said: str) -> str:
    """Return how a finding of an audit follows from queries, without the numbers of rows of their groups."""
    return re.sub(r" × [\d,]+", " × its rows", said)


def quoted(name: Any) -> str:
    """Return the name of a column in backquotes, for a sentence; a backquote in the name is shown as an apostrophe."""
    name = as_text(name).replace("`", "'")
    return f"`{name}`"


def bits(number: float) -> str:
    """Return a number of bits with its unit, in three digits or all before the point."""
    text = f"{number:,.0f}" if abs(number) >= 100 else f"{number + 0.0:.3g}"
    return f"{text} {'bit' if text == '1' else 'bits'}"


def highest_place(values: Iterable[Any]) -> int:
    """Return the place of the highest of several numbers, the first of equal ones; NaN is lower than all others."""
    numbers = list(values)
    return max(range(len(numbers)), key=lambda place: (numbers[place] == numbers[place], numbers[place], -place))


def plural(number: int, noun: str) -> str:
    """Return a noun in the form that follows a number: "column" after 1, else "columns"."""
    return noun if number == 1 else f"{noun}s"


def duration(seconds: float) -> str:
    """Return a number of seconds in words, rounded."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} seconds"


def as_percent(share: float) -> str:
    """Return a share in percent, in four digits."""
    return f"{100 * share + 0.0:.4g} %"


def as_part(share: float) -> str:
    """Return a share in percent, see `as_percent`; a share below 1 is never shown as 100 %."""
    text = as_percent(share)
    return "> 99.99 %" if share < 1 and text == "100 %" else text


class Heading(NamedTuple):
    """A column of a printed table.

    name: the heading.
    text: whether the column holds words, which are aligned left and may take several lines. Otherwise it holds numbers,
        which are aligned right and never cut. Default: False.
    show: returns a value as text, or as rich's `Text` with colours. Default: `as_cell`.
    optional: whether the column is left out where the console has no room for it. Default: False.
    once: whether numbers that are the same in all rows are said once, below the table. Default: False, but for numbers
        that mean all or nothing, such as 100 %.
    """

    name: str
    text: bool = False
    show: Callable[[Any], str | Text] = as_cell
    optional: bool = False
    once: bool = False


def draw_table(
    title: str, headings: Sequence[Heading], rows: Iterable[Sequence[Any]], show_headings: bool = True, keys: int = 1
) -> PrintedTable:
    """Return a table that fits the console which it is printed on.

    rows: a value for each heading. show_headings: whether headings are printed. keys: how many columns say what a row
    is about: they are repeated if the table is cut.

    All text is made `printable`, and no text is read as rich's markup.
    """
    from rich.text import Text

    from .printed_table import PrintedColumn, PrintedTable

    lines = list(rows)
    columns = []
    for place, heading in enumerate(headings):
        shown = [heading.show(line[place]) for line in lines]
        cells = [Text(printable(cell)) if isinstance(cell, str) else cell for cell in shown]
        columns.append(PrintedColumn(printable(str(heading.name)), cells, *heading[1:2], *heading[3:]))
    return PrintedTable(Text(printable(title), "table.title"), columns, keys, show_headings)


def draw_verdict(result: Displayable, console: Console) -> None:
    """Draw the verdict of a result, each sentence in a line of its own."""
    for sentence in result.verdict():
        draw_line(console, sentence, "bold")


def draw_line(console: Console, text: str, style: str = "") -> None:
    """Draw a sentence. The text is made `printable`, and is not read as rich's markup."""
    from .printed_table import PrintedLine

    console.print(PrintedLine(printable(text), style))
