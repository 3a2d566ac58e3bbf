"""Tables and sentences that are printed: as wide as a console allows, with no number and no heading broken."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

# Characters beside the text of a column: a space on each side and a line. One more line ends a table.
BESIDE, END = 3, 1
# Words of columns of text are broken if they are longer than this; than the next, where there is no room.
LONGEST_WORDS = (24, 16, 12, 8)
# Cells of a column of numbers that say nothing if all are the same.
ALWAYS = ("1", "1.000", "100 %", "0.000", "0.00 %")
# Spaces before units, and between a word and its number, at which no line ends; the sign that stands for them while
# lines are cut.
BEFORE_UNITS, HELD = (
    re.compile(r"(?<=\d) (?=%|bits?\b|\w?cells/s|[kM] )|(?<=[a-zF=:]) (?=[\d.,]+[;:.]?(?: |$))"),
    "\ue000",
)


@dataclass(frozen=True)
class PrintedColumn:
    """A column of a printed table.

    name: the heading. cells: the texts. text: whether the column holds words, which may take several lines. optional:
    whether the column is left out, with a word, where it has no room. once: see `Heading`.
    """

    name: str
    cells: Sequence[Text]
    text: bool
    optional: bool
    once: bool

    @property
    def whole(self) -> int:
        """The width of the column if nothing takes several lines."""
        return max(cell_len(self.name), *(cell_len(cell.plain) for cell in self.cells), 0)

    def least(self, longest_word: int) -> int:
        """Return the least width of the column: no heading, no number and no short word of a text is broken."""
        name = max(map(cell_len, self.name.split()), default=0)
        cells = [word for cell in self.cells for word in (cell.plain.split() if self.text else [cell.plain])]
        longest = max(map(cell_len, cells), default=0)
        return max(name, min(longest, longest_word) if self.text else longest)

    @property
    def always(self) -> bool:
        """True if all cells say the same, and that is said below the table."""
        texts = {cell.plain for cell in self.cells}
        return not self.text and len(self.cells) > 1 and len(texts) == 1 and (self.once or texts <= {*ALWAYS})


@dataclass(frozen=True)
class PrintedTable:
    """A table that fits the console that it is printed on.

    A table that is too wide is cut into several, each of which begins with the first `keys` columns. Optional columns
    are left out first. A line below says which columns were left out, and which are always 1.
    """

    title: Text
    columns: Sequence[PrintedColumn]
    keys: int
    show_headings: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return self.parts(options.max_width, together=True)

    def parts(self, width: int, together: bool = False) -> Iterator[Text | Table]:
        """Yield the title, tables of rich and notes, for a console of some width.

        together: whether lines in which no cell takes several lines are one row: rich takes long for each row.
        """
        if self.title:
            yield self.title
        room = width - END
        always = [column for column in self.columns[self.keys :] if column.always]
        columns = [column for column in self.columns if column not in always]
        keys, others = columns[: self.keys], columns[self.keys :]
        longest = next(
            (longest for longest in LONGEST_WORDS if all(_least([*keys, own], longest) <= room for own in others)),
            LONGEST_WORDS[-1],
        )
        left_out: list[str] = []
        needed = [column for column in others if not column.optional]
        # Where the table is cut anyway, all columns are shown.
        spared = [column for column in others if column.optional] if _least([*keys, *needed], longest) <= room else []
        for column in reversed(spared):
            if _least([*keys, *others], longest) > room:
                others.remove(column)
                # Without its unit.
                left_out.insert(0, column.name.split(",")[0])
        for part in _parts(keys, others, longest, room):
            yield self._table(part, longest, room, together)
        notes = [f"In every line: {', '.join(f'{own.name} = {own.cells[0].plain}' for own in always)}"] * bool(always)
        notes += [f"left out for want of room: {', '.join(left_out)}"] * bool(left_out)
        if notes:
            yield Text(f"{'; '.join(notes)}.", "dim")

    def _table(self, columns: Sequence[PrintedColumn], longest_word: int, room: int, together: bool) -> Table:
        """Return a table of rich, whose columns are as wide as the room allows."""
        widths = [column.least(longest_word) for column in columns]
        spare = max(room - _least(columns, longest_word), 0)
        # The first columns, and then the column that lacks least, are the first to be whole.
        lacking = [column.whole - width for column, width in zip(columns, widths, strict=True)]
        for place in sorted(range(len(columns)), key=lambda place: (place >= self.keys, lacking[place])):
            more = min(spare, lacking[place])
            widths[place] += more
            spare -= more
        table = Table(header_style="bold", show_header=self.show_headings)
        for column, width in zip(columns, widths, strict=True):
            side: Any = "left" if column.text else "right"
            table.add_column(Text(column.name), justify=side, overflow="fold", width=max(width, 1))
        lines = zip(*(column.cells for column in columns), strict=True)
        for joined, rows in groupby(lines, lambda cells: together and all(map(_fits, cells, widths))):
            for cells in [map(Text("\n", no_wrap=True).join, zip(*rows, strict=True))] if joined else rows:
                table.add_row(*cells)
        return table


def _fits(cell: Text, width: int) -> bool:
    return cell_len(cell.plain) <= width


def _least(columns: Sequence[PrintedColumn], longest_word: int) -> int:
    """Return the least width of columns beside each other."""
    return sum(column.least(longest_word) + BESIDE for column in columns)


def _parts(
    keys: Sequence[PrintedColumn], others: Sequence[PrintedColumn], longest_word: int, room: int
) -> Iterator[Sequence[PrintedColumn]]:
    """Yield the columns of each of the tables that a table is cut into."""
    room -= _least(keys, longest_word)
    while True:
        widths = accumulate(column.least(longest_word) + BESIDE for column in others)
        fitting = max(sum(width <= room for width in widths), 1)
        yield [*keys, *others[:fitting]]
        others = others[fitting:]
        if not others:
            return


@dataclass(frozen=True)
class PrintedLine:
    """A sentence in as many lines as it takes, none of which begins with the unit of a number."""

    text: str
    style: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        held = Text(BEFORE_UNITS.sub(HELD, self.text))
        for line in held.wrap(console, options.max_width):
            yield Text(line.plain.rstrip().replace(HELD, " "), self.style)
