"""The public `Budget`: a ledger of all differentially private releases of a table, and what they may spend together.

A ledger is a file of lines in JSON. The first line has the terms, every further line a charge. Each line has the
SHA-256 digest of its content and of the digest before it, which shows damage: a line that was changed, moved or lost
between others. The chain has no key: who may write the ledger can make all of it anew, or cut off its last lines. So
each release names the digest of its line, `head`, to be published; it must be found in the ledger. Lines are only ever
added, under a lock, and are on the disk before anything is answered: a crash spends, and never answers for free. The
first line has a secret salt: whoever reads `head` cannot find the table by trying tables.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import json
import math
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import InputError, OutputError
from ..io.documents import parse_json
from ..io.file_errors import denied, disk_errors
from ..io.write import check_output, write_text
from ..treatment.field_checks import set_checked, whole
from ..utils.display import Displayable, Heading, as_cell, as_json, draw_line, draw_table, draw_verdict, plural
from ..utils.private_folder import open_as_is, read_own, sync
from ..utils.validation import brief, check_path, check_word
from .accounting import ROUNDING, THEOREMS, Composition, Loss, check_delta, check_epsilon, compose

if TYPE_CHECKING:
    from rich.console import Console

FORMAT = 1
NEIGHBOURS = ("add-remove", "replace")
# The most rows that are protected together: sums, in their steps, stay whole numbers of 64 bits.
MOST_ROWS = 2**20
# Seconds that a charge waits for another one, which takes a moment.
LOCK_SECONDS = 5.0


@dataclass(frozen=True)
class Terms:
    """The terms of a ledger, which no charge changes.

    epsilon, delta: float. What all charges together may spend.
    neighbours: "add-remove" or "replace". Two tables are neighbours if one lacks a person of the other, or if a person
        of one is replaced by another person.
    contributions: int. The most rows that one person has in the table.
    group: int. The number of persons that are protected together.
    """

    epsilon: Annotated[float, check_epsilon]
    delta: Annotated[float, check_delta] = 0.0
    neighbours: str = "add-remove"
    contributions: Annotated[int, whole("rows of a person", most=MOST_ROWS)] = 1
    group: Annotated[int, whole("persons", most=MOST_ROWS)] = 1

    def __post_init__(self) -> None:
        check_word("neighbours", self.neighbours, NEIGHBOURS)
        set_checked(self)
        if self.rows > MOST_ROWS:
            raise InputError(
                f"group: expected at most {MOST_ROWS:,} rows together, got {self.rows:,}. Take fewer persons."
            )

    @property
    def rows(self) -> int:
        """The most rows that neighbours take away, or put in."""
        return self.contributions * self.group

    @property
    def replaced(self) -> bool:
        """True if neighbours have equally many rows."""
        return self.neighbours == "replace"


TERMS = [own.name for own in fields(Terms)]


@dataclass(frozen=True)
class Charge:
    """A charge of a ledger.

    number: int, from 1. time: str, UTC. what: list of str, what was asked. losses: list of `Loss`. table: str or None.
    The fingerprint of the table; None for what another program released.
    """

    number: int
    time: str
    what: Sequence[str]
    losses: Sequence[Loss]
    table: str | None


@dataclass(frozen=True)
class LedgerState:
    """The content of a ledger.

    salt: str, secret. Fingerprints of tables are made with it. head: str. The digest of the last line. size: int. The
    bytes of all whole lines.
    """

    terms: Terms
    salt: str = field(repr=False)
    charges: Sequence[Charge]
    head: str
    size: int

    @property
    def losses(self) -> list[Loss]:
        """The losses of all charges."""
        return [loss for charge in self.charges for loss in charge.losses]

    @property
    def table(self) -> str | None:
        """The fingerprint of the table, with the salt; None until a table was charged for.

        The last charge has it: fingerprints of older versions of gpupif are followed by those of newer ones.
        """
        return next((charge.table for charge in reversed(self.charges) if charge.table is not None), None)

    @cached_property
    def spent(self) -> Composition:
        """The epsilon of all charges together, at the ledger's delta."""
        return compose(self.losses, self.terms.delta)

    @property
    def left(self) -> float:
        """The epsilon that is left."""
        return max(0.0, self.terms.epsilon - self.spent.least)

    @property
    def facts(self) -> dict[str, Any]:
        """The terms, what is spent and left of them, and `head`, for JSON. They may be published."""
        return {**asdict(self.terms), "spent": self.spent.least, "left": self.left, "head": self.head}

    @property
    def sentences(self) -> list[str]:
        """Two sentences: the epsilon that is spent and left, and whom answers protect."""
        terms, number = self.terms, len(self.charges)
        hidden = "which values a person has" if terms.replaced else "whether a person is in the table"
        unit = f"{terms.rows:,} {plural(terms.rows, 'row')} together"
        return [
            f"Epsilon {as_cell(self.spent.least)} of {as_cell(terms.epsilon)} is spent, {as_cell(self.left)} is "
            f"left (delta {as_cell(terms.delta)}), by {number:,} {plural(number, 'charge')}.",
            f"Answers hide {hidden} ({terms.neighbours} neighbours, {unit}).",
        ]


def _line(previous: str, content: Mapping[str, Any]) -> str:
    """Return a line of a ledger. previous: the digest of the line before; "" for the first."""
    text = json.dumps(content, sort_keys=True)
    digest = hashlib.sha256(f"{previous}{text}".encode()).hexdigest()
    return json.dumps({**content, "hash": digest}, sort_keys=True) + "\n"


def parse_ledger(file: Path, content: bytes) -> LedgerState:
    """Return what the content of a ledger says. A last line without an end is a charge that was never answered.

    Raises InputError if any line is damaged. file: the name in errors.
    """
    terms: Terms | None = None
    charges: list[Charge] = []
    head, salt, size = "", "", content.rfind(b"\n") + 1
    for number, line in enumerate(content[:size].split(b"\n")[:-1], 1):
        try:
            given = parse_json(line)
            previous, head = head, given.pop("hash")
            if _line(previous, given).encode() != line + b"\n":
                raise ValueError
            if terms is None:
                if given.pop("gpupif_ledger") != FORMAT:
                    raise ValueError
                given.pop("began")
                salt = str(given.pop("salt"))
                terms = Terms(**given)
            else:
                what, losses = list(map(str, given["what"])), [Loss(**loss) for loss in given["losses"]]
                charges.append(Charge(int(given["number"]), str(given["time"]), what, losses, given["table"]))
        except (InputError, AttributeError, KeyError, TypeError, ValueError):
            raise InputError(
                f"ledger: {file}: line {number} is damaged, or is none of a ledger. Put back a copy of the ledger that "
                "is whole; without one, count the budget as spent."
            ) from None
    if terms is None:
        raise InputError(f"ledger: {file}: expected a ledger of gpupif, got a file without its first line.")
    return LedgerState(terms, salt, charges, head, size)


class Budget(Displayable):
    """The budget of differentially private releases of a table, kept in a ledger on disk. Prints as tables."""

    def __init__(
        self,
        ledger: str | os.PathLike[str],
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: str | None = None,
        contributions: int | None = None,
        group: int | None = None,
    ) -> None:
        """Open a ledger, or make it if there is none.

        Parameters
        ----------
        ledger:
            The path of the ledger, such as "ledger.json". Only its owner can read and change it. It belongs to the
            first table that it is charged for.
        epsilon:
            What all releases together may spend, in nats: above 0, up to 100. Needed to make a ledger.
        delta:
            The probability with which the promise of epsilon may fail, from 0 to below 1; far below one over the number
            of rows. Default of a new ledger: 0.
        neighbours:
            "add-remove" (default of a new ledger): an answer hides whether a person is in the table. "replace": an
            answer hides which values a person has; noise is larger.
        contributions:
            The most rows that one person has in the table. gpupif does not check it. Default of a new ledger: 1.
        group:
            How many persons are protected together, such as a household. Default of a new ledger: 1.

        Raises
        ------
        InputError
            No ledger and no epsilon, a ledger of other terms, a damaged ledger, an argument out of range.
        TableReadError, OutputError
            The ledger cannot be read, or made.

        Examples
        --------
        >>> import gpupif, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> budget = gpupif.Budget(f"{folder.name}/ledger.json", epsilon=1, delta=1e-6)
        >>> budget.spend("a histogram of another program", [gpupif.release.Loss("laplace", scale=4)])
        >>> budget.spent.sum, round(budget.left, 3)
        (0.25, 0.75)
        >>> folder.cleanup()

        """
        check_path("ledger", ledger, "a ledger")
        self.path = Path(ledger)
        terms = zip(TERMS, (epsilon, delta, neighbours, contributions, group), strict=True)
        given: dict[str, Any] = {name: value for name, value in terms if value is not None}
        if not os.path.lexists(self.path):
            if epsilon is None:
                raise InputError(
                    f"ledger: there is no {self.path}. Make it, with what it may spend: gpupif budget LEDGER --epsilon "
                    "1, or gpupif.Budget(path, epsilon=1)."
                )
            self._make(Terms(**given))
        self.state = self._read()
        for name, value in given.items():
            if value != (own := getattr(self.terms, name)):
                raise InputError(
                    f"{name}: the ledger {self.path} was made with {own!r}, got {brief(value)}. Leave it out: the "
                    "terms of a ledger stay."
                )

    def _make(self, terms: Terms) -> None:
        """Write a new ledger, on the disk before anything is charged to it."""
        check_output(self.path, False, endings=("",))
        first = {"gpupif_ledger": FORMAT, "began": _now(), "salt": secrets.token_hex(32), **asdict(terms)}
        write_text(_line("", first), self.path, False, private=True)
        with disk_errors(self.path):
            sync(self.path.parent)

    def _read(self) -> LedgerState:
        try:
            return parse_ledger(self.path, read_own(self.path))
        except OSError as error:
            raise denied(self.path, error) from None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the lock of the ledger, and yield its descriptor. Raises OutputError if another process holds it."""
        self.state = self._read()
        with disk_errors(self.path):
            number = open_as_is(self.path)
            try:
                until = time.monotonic() + LOCK_SECONDS
                while True:
                    try:
                        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        if time.monotonic() >= until:
                            raise OutputError(
                                f"{self.path}: the ledger is locked by another release. Wait until it ends; nothing "
                                "was spent."
                            ) from None
                        time.sleep(0.02)
                yield number
            finally:
                os.close(number)

    def charge(self, what: Sequence[str], losses: Sequence[Loss], tables: Sequence[str] = ()) -> None:
        """Charge losses to the ledger, on the disk on return; nothing is charged if they do not fit.

        what: what is asked. losses: of all of it. tables: the fingerprint of the table, and those that older versions
        made, which the ledger may have. Default: none, for what another program released. Raises InputError if the
        budget does not suffice, for another table and a damaged ledger, and OutputError if the ledger is locked or
        cannot be written.
        """
        with self._locked() as number:
            content = os.pread(number, os.fstat(number).st_size, 0)
            state = self.state = parse_ledger(self.path, content)
            self._check(state, losses)
            salted = [hmac.new(state.salt.encode(), own.encode(), "sha256").hexdigest() for own in tables]
            if salted and state.table not in (None, *salted):
                raise InputError(
                    f"table: the ledger {self.path} belongs to another table: columns, rows or values differ. Make a "
                    "ledger for each table; nothing was spent."
                )
            charge = Charge(len(state.charges) + 1, _now(), list(what), list(losses), next(iter(salted), None))
            line = _line(state.head, as_json(charge)).encode()
            if len(content) > state.size:
                # A killed run left the start of a line; it gave no answer.
                os.ftruncate(number, state.size)
            try:
                written = os.pwrite(number, line, state.size)
                if written < len(line):
                    raise OSError(None, "the disk is full")
                os.fsync(number)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(number, state.size)
                raise
            self.state = parse_ledger(self.path, content[: state.size] + line)

    def check(self, losses: Sequence[Loss]) -> None:
        """Raise InputError if the budget does not suffice for losses. Only the ledger decides, never a table."""
        self.state = self._read()
        self._check(self.state, losses)

    def _check(self, state: LedgerState, losses: Sequence[Loss]) -> None:
        terms, all_losses = state.terms, [*state.losses, *losses]
        total = compose(all_losses, terms.delta, enough=terms.epsilon).least
        if total <= terms.epsilon * (1 + ROUNDING):
            return
        failures = math.fsum(loss.failure + loss.delta for loss in all_losses)
        if math.isinf(total):
            why = f"delta {failures:.4g} of {terms.delta:.4g}"
            mend = "a smaller delta" if terms.delta else "what needs no delta, or make a ledger with a delta"
        else:
            # In as many digits as show that it is more.
            digits = next(own for own in range(6, 18) if f"{total:.{own}g}" != f"{terms.epsilon:.{own}g}")
            why = f"epsilon {total:.{digits}g} of {terms.epsilon:.{digits}g} (delta {terms.delta:.4g})"
            mend = "less, with a smaller epsilon"
        raise InputError(
            f"budget: all releases would take {why}. Ask for {mend}; gpupif budget shows what is left. Nothing was "
            "spent."
        )

    def spend(self, what: str, losses: Sequence[Loss]) -> None:
        """Charge what another program released of the same table.

        what: in words. losses: a `gpupif.release.Loss` for each release. Raises the errors of `charge`.
        """
        if not isinstance(losses, Sequence) or not all(isinstance(loss, Loss) for loss in losses):
            raise InputError(f"losses: expected a list of gpupif.release.Loss, got {brief(losses)}.")
        self.charge([str(what)], losses)

    @property
    def terms(self) -> Terms:
        """The terms of the ledger: what may be spent, and who is a neighbour of whom."""
        return self.state.terms

    @property
    def charges(self) -> Sequence[Charge]:
        """All charges, as last read."""
        return self.state.charges

    @property
    def spent(self) -> Composition:
        """The epsilon of all charges together, at the ledger's delta, by each theorem."""
        return self.state.spent

    @property
    def left(self) -> float:
        """The epsilon that is left."""
        return self.state.left

    def to_dict(self) -> dict[str, Any]:
        """Return the budget as a dictionary for JSON; None for a theorem that says nothing."""
        charges = [
            {
                "number": charge.number,
                "time": charge.time,
                "what": charge.what,
                "epsilon": math.fsum(loss.epsilon for loss in charge.losses),
                "delta": math.fsum(loss.delta + loss.failure for loss in charge.losses),
            }
            for charge in self.charges
        ]
        spent = {**asdict(self.spent), "least": self.spent.least}
        document = {"ledger": self.path, **asdict(self.terms), "spent": spent, "left": self.left}
        return as_json({**document, "head": self.state.head, "charges": charges})  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<Budget {self.path}: epsilon {self.terms.epsilon:g}, delta {self.terms.delta:g}>"

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        return self.state.sentences

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        console.print()
        document = self.to_dict()
        spent = document["spent"]
        if self.charges:
            lines = [(name, spent[key]) for key, name in THEOREMS.items()]
            headings = [Heading("composition", text=True), Heading("epsilon spent", show=_amount)]
            console.print(draw_table("Spent, by each theorem; the smallest holds", headings, lines))
            console.print()
            charges = [
                (own["number"], "; ".join(own["what"]), own["epsilon"], own["delta"], own["time"])
                for own in document["charges"]
            ]
            headings = [Heading("", show=str), Heading("what", text=True), Heading("epsilon", show=_amount)]
            headings += [Heading("delta"), Heading("time (UTC)", text=True, optional=True)]
            console.print(draw_table("Charges", headings, charges))
        draw_line(console, f"Ledger {self.path}, last line {self.state.head[:16]}", "dim")


def _amount(epsilon: float | None) -> str:
    return "says nothing" if epsilon is None else as_cell(epsilon)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def as_budget(given: Any) -> Budget:
    """Return a budget, or the budget of an existing ledger by its path. Raises InputError, TableReadError."""
    if isinstance(given, Budget):
        return given
    check_path("budget", given, "a ledger, or a gpupif.Budget")
    return Budget(given)
