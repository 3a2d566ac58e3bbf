"""Where a database is, as a URL says it, and what of that URL nobody is to read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from ...errors import InputError, TableReadError

IN_MEMORY = ("", ":memory:")
HIDDEN = "***"
# A secret shorter than this is looked for as a word of its own.
SHORT = 4
EXPECTED = "expected a URL such as 'duckdb:///people.db' or 'postgresql://user@host/database'"
QUOTE_IT = "Write other than letters and digits of a user and a password in percent-encoding, such as %40 for @."
SCHEME = re.compile(r"[A-Za-z][\w.-]*(\+[\w.+-]+)?")
# One host or several, each with a port perhaps; a folder of a socket in percent-encoding.
HOSTS = re.compile(r"(?:(?:\[[\w:.%]+\]|[\w.%-]*)(?::\d*)?(?:,|$))*")
# Names of options whose values are secrets, and such options within values, as of ODBC.
SECRET_OPTION = re.compile(r"pass|pwd|secret|token|key|credential|auth", re.IGNORECASE)
WITHIN = re.compile(r"(?:password|passwd|pwd|secret|token|key)\s*=\s*(\{[^}]*\}|[^;&\s]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Address:
    """A database.

    scheme: of its URL, "postgresql". adapter: what SQLAlchemy is to reach it by, "psycopg" of "postgresql+psycopg";
    empty: none is named. url: with user and password in percent-encoding, whatever they were written in. user: as it
    is. path: of the database, without the slash that begins it. name: of it in messages, without secrets. secrets: what
    is shown to nobody.
    """

    scheme: str
    adapter: str
    url: str = field(repr=False)
    user: str = field(repr=False)
    path: str
    name: str
    secrets: tuple[str, ...] = field(repr=False)

    def redact(self, text: str) -> str:
        """The text with *** in place of what is secret, and of the user where one is named in quotes."""
        for secret in self.secrets:
            pattern = re.escape(secret)
            text = re.sub(pattern if len(secret) >= SHORT else rf"(?<!\w){pattern}(?!\w)", HIDDEN, text)
        return re.sub(rf"(['\"]){re.escape(self.user)}\1", rf"\1{HIDDEN}\1", text) if self.user else text

    def file(self, folder: Path) -> Path | None:
        """The file that the path names, from a folder on where it is relative; None for a database in memory.

        Raises TableReadError where it is not there: some databases would make it.
        """
        if self.path in IN_MEMORY:
            return None
        file = folder / unquote(self.path)
        if not file.is_file():
            raise TableReadError(f"{file}: no such file.")
        return file.absolute()


def parse_address(connection: str) -> Address:
    """The database that a URL names. Raises InputError, without the URL, for one that cannot be understood."""
    scheme, colon, rest = connection.strip().partition("://")
    if not colon or not SCHEME.fullmatch(scheme):
        raise InputError(f"connection: {EXPECTED}, got something that does not begin with a scheme and '://'.")
    place, question, options = rest.partition("?")
    if question and any(not re.fullmatch(r"[\w.-]+=.*", option) for option in options.split("&")):
        raise InputError(f"connection: expected key=value, with & between two, behind its question mark. {QUOTE_IT}")
    # The last @ ends the login: a password may have one that is not encoded; a path alone may have any.
    login, at, place = ("", "", place) if place.startswith("/") else place.rpartition("@")
    host, slash, path = place.partition("/")
    if not HOSTS.fullmatch(host):
        raise InputError(f"connection: expected a host, and a port of digits perhaps, before its path. {QUOTE_IT}")
    user, _, password = login.partition(":")
    if "/" in user:
        raise InputError(f"connection: expected no slash in its user. {QUOTE_IT}")
    base, _, adapter = scheme.lower().partition("+")
    login = _quoted(user) + (f":{_quoted(password)}" if password else "")
    return Address(
        base,
        adapter,
        f"{scheme.lower()}://{login}{at}{host}{slash}{path}{question}{options}",
        unquote(user),
        path,
        _name(base, host, path),
        _secrets(password, options),
    )


def _quoted(part: str) -> str:
    return quote(unquote(part), safe="")


def _name(scheme: str, host: str, path: str) -> str:
    place = "/".join(part for part in (host, path.rstrip("/")) if part)
    return f"database {scheme} at {unquote(place)}" if place else f"database {scheme}"


def _secrets(password: str, options: str) -> tuple[str, ...]:
    """What is secret as it is written, and as it is meant; the longest first, which may hold others."""
    found = {password}
    for option in options.split("&"):
        name, _, value = option.partition("=")
        meant = unquote(value.replace("+", " "))
        found |= {value} if SECRET_OPTION.search(name) else set()
        found |= {part.strip("{}") for part in WITHIN.findall(meant)}
    found |= {unquote(one) for one in found}
    found |= {quote(one, safe="") for one in found}
    return tuple(sorted(found - {""}, key=lambda one: (-len(one), one)))


def read_only_uri(address: Address, folder: Path) -> str:
    """The name that SQLite opens a file by to read it. Raises TableReadError where it is not there."""
    file = address.file(folder)
    return ":memory:" if file is None else f"file:{quote(str(file))}?mode=ro"
