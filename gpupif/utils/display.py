"""What is found as text: tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

# Columns of a text that is for no terminal, and of a standard output that is none.
WIDTH, WIDE = 120, 140


class Record:
    """What is found, as a dataclass."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, text, lists and dictionaries, ready for JSON; None for what is not finite."""
        return {name: as_json(value) for name, value in vars(self).items()}


class Displayable(Record, ABC):
    """Something that prints as tables."""

    @abstractmethod
    def draw(self, console: Console) -> None:
        """Draw it on a console of rich."""

    def print(self, console: Console | None = None) -> None:
        """Print it. console: of rich, to draw it on; default: standard output."""
        self.draw(console or standard_output())

    def to_json(self) -> str:
        """`to_dict` as one JSON document."""
        return json_text(self.to_dict())

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        out = StringIO()
        self.draw(Console(file=out, width=WIDTH))
        return out.getvalue()


def standard_output() -> Console:
    """Return a console of rich on standard output: as wide as the terminal, or else wide enough for most tables."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDE)


def json_text(document: Any, infinite: bool = False) -> str:
    """Return a document as JSON in several lines, in which what `printable` escapes is a JSON escape.

    infinite: whether numbers may be infinite or NaN, which JSON lacks and Python reads. Else raises ValueError.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=infinite)
    return re.sub(r"[^\n -~]", lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)


def as_json(value: Any) -> Any:
    """What is in a `Record` as JSON has it: a frame by its rows, with an index that has a name; see `json_value`."""
    if is_dataclass(value):
        return {name: as_json(own) for name, own in vars(value).items()}
    if isinstance(value, Mapping):
        return {str(key): as_json(own) for key, own in value.items()}
    if isinstance(value, list):
        return [as_json(own) for own in value]
    if hasattr(value, "reset_index"):
        return as_json((value if value.index.name is None else value.reset_index()).to_dict("records"))
    return json_value(value)


def json_value(value: Any) -> Any:
    """A value as JSON has it: numbers, text, booleans and null as they are, anything else as its text."""
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
    """A number in four digits, a whole one with all of them, or `as_text`."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else as_text(value)


def as_found(value: Any) -> str:
    """A value of a table as one can look it up there: floats with all their digits."""
    return f"{value:.15g}" if isinstance(value, float) and value == value else as_text(value)


def plural(number: int, noun: str) -> str:
    """A noun as it stands behind a number: "column" behind 1, else "columns"."""
    return noun if number == 1 else f"{noun}s"


def as_percent(share: float) -> str:
    """A share in percent, four digits."""
    return f"{100 * share:.4g} %"


def as_part(share: float) -> str:
    """As `as_percent`, but what is no more than nearly all is not said to be 100 %."""
    text = as_percent(share)
    return "> 99.99 %" if share < 1 and text == "100 %" else text


class Heading(NamedTuple):
    """A column of a printed table.

    text: it holds words, on the left and in as many lines as they take; else numbers, on the right, never cut in two.
    folds: numbers, too, may take several lines. show: a value as text (or as rich's `Text`, with colours).
    """

    name: str
    text: bool = False
    folds: bool = False
    show: Callable[[Any], str | Text] = as_cell


def draw_table(
    title: str, headings: Sequence[Heading], rows: Iterable[Sequence[Any]], show_headings: bool = True
) -> Table:
    """Return a table of rich's with these rows, a value for each heading.

    All text is shown `printable`, and none is read as rich's markup.
    """
    from rich.table import Table
    from rich.text import Text

    titled = Text(printable(title), "table.title")
    table = Table(title=titled, title_justify="left", header_style="bold", show_header=show_headings)
    for heading in headings:
        whole = not (heading.text or heading.folds)
        name = Text(printable(str(heading.name)))
        table.add_column(name, justify="left" if heading.text else "right", overflow="fold", no_wrap=whole)
    for row in rows:
        shown = [heading.show(value) for heading, value in zip(headings, row, strict=True)]
        table.add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in shown))
    return table


def draw_line(console: Console, text: str, style: str = "") -> None:
    """Draw a line of text: all of it `printable`, none of it read as rich's markup."""
    from rich.text import Text

    console.print(Text(printable(text), style), highlight=False)


def fits(table: Table, console: Console) -> bool:
    """Whether a console is wide enough for a table with each of its cells in one line."""
    return console.measure(table, options=console.options.update(width=10_000)).maximum <= console.width
