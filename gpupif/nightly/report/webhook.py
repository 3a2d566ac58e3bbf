"""A run posted to webhooks: each is tried a few times, within a time limit, and none is ever named by its URL."""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ..._version import __version__
from ..configuration.settings import TellSettings, WebhookSettings
from .json_document import document
from .openlineage import event
from .telling import Telling

if TYPE_CHECKING:
    from urllib3 import PoolManager
    from urllib3.exceptions import HTTPError

FORMATS: dict[str, Callable[[Telling], dict[str, Any]]] = {"json": document, "openlineage": event}
# Answers after which one tries again, and the longest pause before that, in seconds.
PASSING = frozenset({429, 500, 502, 503, 504})
LONGEST_PAUSE = 30.0
# Libraries that say in their logs to which URL they talk.
TALKATIVE = ("urllib3.connectionpool", "urllib3.connection", "urllib3.util.retry", "urllib3.poolmanager")


def tell(telling: Telling, settings: TellSettings) -> list[str]:
    """Post a run to all webhooks; what kept any of them from it, one sentence each."""
    problems = []
    for place, webhook in enumerate(settings.webhooks):
        if webhook.when == "always" or telling.document["status"] != "passed":
            body = json.dumps(FORMATS[webhook.format](telling), allow_nan=False).encode()
            problem = _within(seconds_at_most(webhook), partial(post, body, webhook))
            problems += [f"tell.webhooks[{place}]: not delivered, {problem}."] if problem else []
    return problems


def seconds_at_most(webhook: WebhookSettings) -> float:
    """So long a webhook may take in all, whatever its host does: every attempt, and the pauses between them."""
    return (1 + webhook.retries) * webhook.timeout + webhook.retries * min(LONGEST_PAUSE, webhook.timeout)


def post(body: bytes, webhook: WebhookSettings) -> str:
    """Post JSON once, or as often as its webhook allows; what is wrong, or nothing."""
    from urllib3 import Timeout
    from urllib3.exceptions import HTTPError

    with _SilentLogs():
        try:
            url, credentials = _without_credentials(webhook.url)
            headers = {"Content-Type": "application/json", "User-Agent": f"gpupif/{__version__}"}
            if not any(name.lower() == "authorization" for name in webhook.headers):
                headers |= credentials
            # A redirect is no delivery: what is in the headers is for the host that was named, and for no other.
            with _pool(url) as pool:
                answer = pool.request(
                    "POST",
                    url,
                    body=body,
                    headers={**headers, **webhook.headers},
                    redirect=False,
                    retries=_retries(webhook),
                    timeout=Timeout(total=webhook.timeout),
                    preload_content=False,
                )
                answer.close()
        except HTTPError as error:
            return _reason(error, webhook)
        except Exception as error:
            # Texts of errors have the URL, or a header, in them.
            return f"it could not be posted ({type(error).__name__}); look at its url and headers"
    return "" if 200 <= answer.status < 300 else _refusal(answer.status)


def _without_credentials(url: str) -> tuple[str, dict[str, str]]:
    """A URL without user:password@, which the library would not send, and the header of basic authentication."""
    from urllib3.util import parse_url

    parts = parse_url(url)
    if not parts.auth:
        return url, {}
    text = base64.b64encode(unquote(parts.auth).encode()).decode()
    return parts._replace(auth=None).url, {"Authorization": f"Basic {text}"}


def _pool(url: str) -> PoolManager:
    """Connections to a URL, by way of the proxy that the environment names for it (HTTPS_PROXY, NO_PROXY)."""
    from urllib.request import getproxies, proxy_bypass

    from urllib3 import PoolManager, ProxyManager
    from urllib3.util import parse_url

    parts = parse_url(url)
    proxy = None if proxy_bypass(parts.host or "") else getproxies().get(parts.scheme or "")
    return PoolManager(cert_reqs="CERT_REQUIRED") if proxy is None else ProxyManager(proxy, cert_reqs="CERT_REQUIRED")


def _retries(webhook: WebhookSettings) -> Any:
    """When to try again: after no connection, no answer, or an answer that passes."""
    from urllib3.util import Retry

    longest = min(LONGEST_PAUSE, webhook.timeout)

    class Retries(Retry):
        def get_retry_after(self, response: Any) -> float | None:
            asked = super().get_retry_after(response)
            return None if asked is None else min(asked, longest)

    return Retries(
        total=webhook.retries,
        redirect=0,
        allowed_methods=None,
        status_forcelist=PASSING,
        backoff_factor=0.5,
        backoff_max=longest,
        raise_on_redirect=False,
        raise_on_status=False,
    )


def _reason(error: HTTPError, webhook: WebhookSettings) -> str:
    """Why there is no answer, in words of our own: those of the library name the URL."""
    from urllib3 import exceptions

    cause = error.reason if isinstance(error, exceptions.MaxRetryError) and error.reason else error
    if isinstance(cause, exceptions.SSLError):
        return "its TLS certificate or version is not to be trusted"
    if isinstance(cause, exceptions.ProxyError):
        return "the proxy of the environment could not be reached, or let nothing through"
    if isinstance(cause, exceptions.NewConnectionError):
        return "no connection could be made"
    if isinstance(cause, exceptions.TimeoutError):
        return f"no answer within {webhook.timeout:g} s"
    if isinstance(cause, exceptions.LocationValueError):
        return "its url is none of HTTP"
    return "the connection broke"


def _refusal(status: int) -> str:
    if 300 <= status < 400:
        return f"it answered {status}, a redirect, which is not followed; give the URL that it leads to"
    return f"it answered {status}"


def _within(seconds: float, work: Callable[[], str]) -> str:
    """What some work says, if it does so within a time: a name server or a host that sends byte after byte, for ever,
    is waited for by no timeout of a socket.
    """
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(work()), name="gpupif webhook", daemon=True)
    thread.start()
    thread.join(seconds)
    return said[0] if said else f"no answer within {seconds:g} s in all"


class _SilentLogs:
    """Drops what libraries log in this thread of the URLs that they talk to. A context manager."""

    def __enter__(self) -> None:
        thread = threading.get_ident()
        self._filter = lambda record: record.thread != thread
        for name in TALKATIVE:
            logging.getLogger(name).addFilter(self._filter)

    def __exit__(self, *_: object) -> None:
        for name in TALKATIVE:
            logging.getLogger(name).removeFilter(self._filter)
