"""The secrets of a configuration: taken from the environment, masked in the configuration, hidden in texts."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

from ...errors import GpupifError

if TYPE_CHECKING:
    from .mistakes import Location

MASK = "***"
# ${NAME}, and $${, which means ${.
REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A text of references alone.
ONLY_REFERENCES = re.compile(r"(?:\$\{[^}]*\})+")
# user:password@ of a URL, up to its last @, and parameters that may hold a password: password=..., token=...
PASSWORD = re.compile(r"(?<=://)([^:@/]*:)(.*)(?=@)", re.DOTALL)
PARAMETER = re.compile(r"(?i)(\b\w*(?:passw(?:or)?d|pwd|token|secret|api_?key|access_?key)\w*\s*=\s*)([^&;\s]+)")
# All behind the host, of an address that is posted to.
BEHIND_HOST = re.compile(r"(?<=://)([^/?#]*[/?#])(.+)", re.DOTALL)
# Headers whose values are no secrets.
PLAIN_HEADERS = ("accept", "content-type", "user-agent")
# The keys that no secret may be in: names of columns, attackers and gates, measures, kept scores.
SHOWN = (
    ("input", "row_key"),
    ("input", "watermark"),
    ("score", "columns"),
    ("score", "measures"),
    ("score", "known"),
    ("score", "attackers"),
    ("score", "weights"),
    ("risk",),
    ("keep",),
    ("gates",),
    ("release", "tables"),
)
# Shorter secrets are hidden only as whole words: else a single letter would be hidden everywhere.
SHORT = 4
# The first signs of a secret, behind the scheme of a URL: a text with them that is cut short gives the secret away.
HEAD = 8


def resolve_references(
    document: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[dict[str, Any], dict[Location, str], dict[Location, list[str]], set[str]]:
    """Put the environment's values in place of ${NAME} in all texts of a document.

    Returns the document with the values; the texts that changed, as they were, by location; sentences without the key
    about what is wrong, by location; and the values.
    """
    before: dict[Location, str] = {}
    wrong: dict[Location, list[str]] = {}
    values: set[str] = set()

    def resolved(value: Any, location: Location) -> Any:
        if isinstance(value, dict):
            return {key: resolved(inner, (*location, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [resolved(inner, (*location, place)) for place, inner in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        is_shown = location[:1] in SHOWN or location[:2] in SHOWN
        said = list(_wrong_references(value, environ, is_shown))
        if said:
            wrong[location] = said
            return value
        before[location] = value
        values.update(environ[found[1]] for found in REFERENCE.finditer(value) if found[1])
        return REFERENCE.sub(lambda found: environ[found[1]] if found[1] else "${", value)

    return resolved(document, ()), before, wrong, values


def _wrong_references(text: str, environ: Mapping[str, str], is_shown: bool) -> Iterator[str]:
    """Yield a sentence for each wrong reference in a text. is_shown: whether reports show the text."""
    for found in REFERENCE.finditer(text):
        name = found[1]
        if name is None:
            continue
        if not found[2] or not VARIABLE.fullmatch(name):
            yield (
                f"expected the name of a variable of the environment, ${{NAME}}; got {found[0]!r}. Write $${{ for the "
                "text ${ itself."
            )
        elif is_shown:
            yield f"expected text without ${{{name}}}: reports have it, and no secrets. Write it out, or use --set."
        elif not environ.get(name):
            came = "it is empty" if name in environ else "it is not set"
            yield f"expected the secret of the variable {name} of the environment, and {came}. Set it."


def masked(document: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Return a checked document, with references as they are written, without written secrets; and these secrets."""
    found: set[str] = set()

    def mask(text: str, pattern: re.Pattern[str]) -> str:
        def hide(part: re.Match[str]) -> str:
            if ONLY_REFERENCES.fullmatch(part[2]):
                return part[0]
            found.add(part[2])
            return f"{part[1]}{MASK}"

        return pattern.sub(hide, text)

    def without_passwords(text: str) -> str:
        return mask(mask(text, PASSWORD), PARAMETER)

    def header(name: str, value: str) -> str:
        if "${" in value or name.lower() in PLAIN_HEADERS:
            return value
        found.add(value)
        return MASK

    given, told = document["input"], document["tell"]
    connection = given["connection"]
    hooks = []
    for hook in told["webhooks"]:
        url = without_passwords(hook["url"])
        headers = {name: header(name, value) for name, value in hook["headers"].items()}
        hooks.append({**hook, "url": url if "${" in url else mask(url, BEHIND_HOST), "headers": headers})
    return {
        **document,
        "input": {**given, "connection": connection and without_passwords(connection)},
        "tell": {**told, "webhooks": hooks},
    }, found


class Redaction:
    """The place that all texts of a run go through before they are shown, recorded or sent.

    It puts *** in place of secrets: as they are, quoted as in URLs or code, cut short, and URL parts. In errors it puts
    *** in place of values of the table, too.

    secrets: the values. show_values: whether values of the table may be shown.
    """

    def __init__(self, secrets: Iterable[str], show_values: bool) -> None:
        self._show_values = show_values
        whole = {form for secret in secrets for form in _forms(secret)}
        parts = {form for secret in secrets for part in _parts(secret) for form in _forms(part)} - whole
        patterns = [(form, _exactly(form, len(form) < SHORT)) for form in whole]
        patterns += [(form, _exactly(form, True)) for form in parts]
        longest_first = [pattern for _, pattern in sorted(patterns, key=lambda one: (-len(one[0]), one[0]))]
        cut = [_cut_short(form) for form in sorted(whole, key=lambda form: (-len(form), form)) if len(form) > 2 * HEAD]
        self._pattern = re.compile("|".join([*longest_first, *cut]), re.DOTALL) if patterns else None

    def __call__(self, text: str) -> str:
        """Return a text without the secrets."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def error(self, error: Exception) -> str:
        """Return the message of an error, in one line, without secrets and values. error: of gpupif or the system."""
        text = str(error)
        if isinstance(error, GpupifError) and not self._show_values:
            text = error.text(lambda value: MASK)
        if isinstance(error, OSError) and error.filename:
            text = f"{error.filename}: {error.strerror}."
        return self(" ".join(text.split()))


def _parts(secret: str) -> set[str]:
    """Return the secret parts of an address: user and passwords, and on the web also all behind the host.

    For some web addresses the path is all that lets one in.
    """
    found = {part[2] for part in PARAMETER.finditer(secret)}
    user = re.match(r"\w[\w+.-]*://([^:@/]*)(?::(.*))?@", secret, re.DOTALL)
    if user is not None:
        found |= {user[1], user[2]}
    with contextlib.suppress(ValueError):
        url = urlsplit(secret)
        if url.netloc:
            found |= {url.username, url.password}
        if url.scheme in ("http", "https"):
            found |= {part for part in (f"{url.path}?{url.query}", url.path, url.query) if len(part) > 1}
    return {part for part in found if part}


def _forms(secret: str) -> set[str]:
    """Return the forms that a text may have in others: in URLs, in quotes of Python and JSON, in one line."""
    found = set()
    for text in {secret, unquote(secret)}:
        found |= {
            text,
            quote(text, errors="replace"),
            quote(text, safe="", errors="replace"),
            quote_plus(text, errors="replace"),
            repr(text)[1:-1],
            json.dumps(text)[1:-1],
            json.dumps(text, ensure_ascii=False)[1:-1],
            " ".join(text.split()),
        }
    return found - {""}


def _exactly(form: str, as_word: bool) -> str:
    if not as_word:
        return re.escape(form)
    # Anything may come before a form that begins with no sign of a word, such as the / of a path.
    before = r"(?<!\w)" if re.match(r"\w", form) else ""
    return rf"{before}{re.escape(form)}(?!\w)"


def _cut_short(form: str) -> str:
    """Return a pattern for a text that is cut short, with dots behind it, and begins as the secret does."""
    begin = form.find("://") + len("://") if "://" in form else 0
    head = form[: begin + HEAD]
    return rf"{re.escape(head)}.{{0,{len(form) - len(head)}}}?\.\.\."
