"""The address of a database, read from a URL, and the secrets in the URL, which no message may show."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from ...errors import InputError, TableReadError

IN_MEMORY = ("", ":memory:")
HIDDEN = "***"
# A secret of fewer characters is hidden only as a whole word: parts of other words may be equal to it.
SHORT = 4
EXPECTED = "expected a URL such as 'duckdb:///people.db' or 'postgresql://user@host/database'"
QUOTE_IT = "Write other than letters and digits of a user and a password in percent-encoding, such as %40 for @."
SCHEME = re.compile(r"[A-Za-z][\w.-]*(\+[\w.+-]+)?")
# Hosts with commas between them, each perhaps with a port; a host may be the folder of a socket in percent-encoding.
HOSTS = re.compile(r"(?:(?:\[[\w:.%]+\]|[\w.%-]*)(?::\d*)?(?:,|$))*")
# The names of options whose values are secrets, and secret options within the value of an option, as ODBC has them.
SECRET_OPTION = re.compile(r"pass|pwd|secret|token|key|credential|auth", re.IGNORECASE)
WITHIN = re.compile(r"(?:password|passwd|pwd|secret|token|key)\s*=\s*(\{[^}]*\}|[^;&\s]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Address:
    """The address of a database.

    scheme: the scheme of the URL, such as "postgresql".
    adapter: the library that SQLAlchemy uses, "psycopg" in "postgresql+psycopg"; empty if the URL names none.
    url: the URL, with user and password in percent-encoding.
    user: the user, without percent-encoding.
    path: the path of the database, without its first slash.
    name: the name of the database in messages, without secrets.
    secrets: the texts that no message may show.
    """

    scheme: str
    adapter: str
    url: str = field(repr=False)
    user: str = field(repr=False)
    path: str
    name: str
    secrets: tuple[str, ...] = field(repr=False)

    def redact(self, text: str) -> str:
        """Return a text with *** in place of each secret, and of the user's name in quotes."""
        for secret in self.secrets:
            pattern = re.escape(secret)
            text = re.sub(pattern if len(secret) >= SHORT else rf"(?<!\w){pattern}(?!\w)", HIDDEN, text)
        return re.sub(rf"(['\"]){re.escape(self.user)}\1", rf"\1{HIDDEN}\1", text) if self.user else text

    def file(self, folder: Path) -> Path | None:
        """Return the absolute path of the file of a database; None for a database in memory.

        folder: the folder for a relative path. Raises TableReadError if there is no such file: some databases would
        make it.
        """
        if self.path in IN_MEMORY:
            return None
        file = folder / unquote(self.path)
        if not file.is_file():
            raise TableReadError(f"{file}: no such file.")
        return file.absolute()


def parse_address(connection: str) -> Address:
    """Return the address of the database that a URL names; raises InputError, without the URL, if it is malformed."""
    scheme, colon, rest = connection.strip().partition("://")
    if not colon or not SCHEME.fullmatch(scheme):
        raise InputError(f"connection: {EXPECTED}, got something that does not begin with a scheme and '://'.")
    place, question, options = rest.partition("?")
    if question and any(not re.fullmatch(r"[\w.-]+=.*", option) for option in options.split("&")):
        raise InputError(f"connection: expected key=value, with & between two, after its question mark. {QUOTE_IT}")
    # The last @ ends the login, since a password may have an @ that is not encoded. A path without a host has no login.
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
    """Return the secrets, each as it is written, decoded, and in percent-encoding.

    The longest comes first: a shorter secret may be a part of it, and would leave the rest visible.
    """
    secrets = {password}
    for option in options.split("&"):
        name, _, value = option.partition("=")
        meant = unquote(value.replace("+", " "))
        secrets |= {value} if SECRET_OPTION.search(name) else set()
        secrets |= {part.strip("{}") for part in WITHIN.findall(meant)}
    secrets |= {unquote(secret) for secret in secrets}
    secrets |= {quote(secret, safe="") for secret in secrets}
    return tuple(sorted(secrets - {""}, key=lambda secret: (-len(secret), secret)))


def read_only_uri(address: Address, folder: Path) -> str:
    """Return the URI by which SQLite opens a file for reading; raises TableReadError if there is no such file."""
    file = address.file(folder)
    return ":memory:" if file is None else f"file:{quote(str(file))}?mode=ro"
