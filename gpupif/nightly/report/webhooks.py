"""The posts of a run to webhooks: each is tried a few times, within a time limit, and none is ever named by its URL."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote
from urllib.request import getproxies, proxy_bypass

from urllib3 import PoolManager, ProxyManager, Timeout, exceptions
from urllib3.util import Retry, parse_url

from ..._version import __version__
from ..comparison.figures import with_figures
from ..configuration.settings import WebhookSettings
from .openlineage_event import event

# Answers after which one tries again, and the longest pause before that, in seconds.
PASSING = frozenset({429, 500, 502, 503, 504})
LONGEST_PAUSE = 30.0
# Loggers of libraries that name the URL they talk to.
TALKATIVE = ("urllib3.connectionpool", "urllib3.connection", "urllib3.util.retry", "urllib3.poolmanager")


def post_all(
    document: Mapping[str, Any], before: Mapping[str, Any] | None, webhooks: Sequence[WebhookSettings]
) -> list[str]:
    """Post a run to all webhooks, and return a sentence for each post that failed.

    before: the document of the last good run before it, None if there is none.
    """
    problems = []
    for place, webhook in enumerate(webhooks):
        if webhook.when == "always" or document["exit_code"]:
            content = with_figures(document, before) if webhook.format == "json" else event(document)
            body = json.dumps(content, allow_nan=False).encode()
            # Every attempt, and the pauses between them, whatever the host does.
            pauses = webhook.retries * min(LONGEST_PAUSE, webhook.timeout)
            problem = _within((1 + webhook.retries) * webhook.timeout + pauses, partial(post, body, webhook))
            problems += [f"tell.webhooks[{place}]: not delivered, {problem}."] if problem else []
    return problems


def post(body: bytes, webhook: WebhookSettings) -> str:
    """Post JSON, again if its webhook allows, and return what is wrong; no text if it was delivered."""
    with _silent_logs():
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
        except exceptions.HTTPError as error:
            return _reason(error, webhook)
        except Exception as error:
            # Texts of errors have the URL, or a header, in them.
            return f"it could not be posted ({type(error).__name__}); look at its url and headers"
    redirect = ", a redirect, which is not followed; give the URL that it leads to"
    return "" if 200 <= answer.status < 300 else f"it answered {answer.status}{redirect * (300 <= answer.status < 400)}"


def _without_credentials(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL without user:password@, which the library would not send, and the header of basic authentication."""
    parts = parse_url(url)
    if not parts.auth:
        return url, {}
    text = base64.b64encode(unquote(parts.auth).encode()).decode()
    return parts._replace(auth=None).url, {"Authorization": f"Basic {text}"}


def _pool(url: str) -> PoolManager:
    """Return connections to a URL, through the proxy that the environment names for it (HTTPS_PROXY, NO_PROXY)."""
    parts = parse_url(url)
    proxy = None if proxy_bypass(parts.host or "") else getproxies().get(parts.scheme or "")
    return PoolManager(cert_reqs="CERT_REQUIRED") if proxy is None else ProxyManager(proxy, cert_reqs="CERT_REQUIRED")


def _retries(webhook: WebhookSettings) -> Any:
    """Return when to try again: after no connection, no answer, or an answer that passes."""
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


def _reason(error: exceptions.HTTPError, webhook: WebhookSettings) -> str:
    """Return why there is no answer, in words of our own: the words of the library name the URL."""
    cause = error.reason if isinstance(error, exceptions.MaxRetryError) and error.reason else error
    reasons = {
        exceptions.SSLError: "its TLS certificate or version is not to be trusted",
        exceptions.ProxyError: "the proxy of the environment could not be reached, or let nothing through",
        exceptions.NewConnectionError: "no connection could be made",
        exceptions.TimeoutError: f"no answer within {webhook.timeout:g} s",
        exceptions.LocationValueError: "its url is none of HTTP",
    }
    return next((reason for kind, reason in reasons.items() if isinstance(cause, kind)), "the connection broke")


def _within(seconds: float, work: Callable[[], str]) -> str:
    """Run `work` in a thread with a total timeout, and return its text.

    The timeouts of a socket cover neither DNS nor a host that sends byte after byte.
    """
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(work()), name="gpupif webhook", daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else f"no answer within {seconds:g} s in all"


@contextlib.contextmanager
def _silent_logs() -> Iterator[None]:
    """Drop the logs of libraries in this thread: they name the URLs."""
    thread = threading.get_ident()

    def is_of_another(record: logging.LogRecord) -> bool:
        return record.thread != thread

    for name in TALKATIVE:
        logging.getLogger(name).addFilter(is_of_another)
    try:
        yield
    finally:
        for name in TALKATIVE:
            logging.getLogger(name).removeFilter(is_of_another)
