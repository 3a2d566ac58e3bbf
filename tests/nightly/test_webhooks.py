"""Webhooks, against a server on this machine that answers as it is told to."""

from __future__ import annotations

import base64
import json
import logging
import shutil
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gpupif.nightly.comparison.figures import with_figures
from gpupif.nightly.configuration.settings import WebhookSettings
from gpupif.nightly.report import openlineage_event, webhooks
from tests.helpers.outcomes import failed_run, good_run

SECRET = "s3cret"
FAILED, GOOD = failed_run().to_dict(), good_run().to_dict()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Server(ThreadingHTTPServer):
    """Answers each request with the next of its answers, a status and headers, the last of them for ever.

    got: of each request its path, headers and body. slow: seconds before each answer. drips: whether it sends byte
    after byte and never ends.
    """

    daemon_threads = True

    def __init__(self, answers, slow=0.0, drips=False):
        self.answers, self.slow, self.drips, self.got = answers, slow, drips, []
        self.closing = threading.Event()
        super().__init__(("127.0.0.1", 0), Answer)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/hooks/{SECRET}"


class Answer(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        server.got.append((self.path, dict(self.headers), body))
        server.closing.wait(server.slow)
        while server.drips and not server.closing.wait(0.05):
            self.wfile.write(b"H")
        status, headers = server.answers[min(len(server.got), len(server.answers)) - 1]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def serving(*statuses, headers=None, **how):
    server = Server([(status, headers or {}) for status in statuses], **how)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def hook(url, **settings):
    """A webhook as of the configuration, but for what is refused there already."""
    return WebhookSettings.model_construct(url=url, **settings)


def told(url, document=FAILED, **settings):
    return webhooks.post_all(document, GOOD, [hook(url, **settings)])


def test_json_is_posted_with_headers():
    with serving(200) as server:
        assert told(server.url, headers={"Authorization": f"Bearer {SECRET}"}) == []
    ((path, headers, body),) = server.got
    assert path == f"/hooks/{SECRET}"
    assert headers["Content-Type"] == "application/json"
    assert headers["Authorization"] == f"Bearer {SECRET}"
    assert headers["User-Agent"].startswith("gpupif/")
    assert json.loads(body) == with_figures(FAILED, GOOD)


@pytest.mark.parametrize(
    ("credentials", "sent"),
    [("ann:geheim@", "ann:geheim"), ("ann:p%40ss%3A%C3%BC@", "ann:p@ss:ü"), ("token@", "token")],
)
def test_credentials_of_a_url_are_sent(credentials, sent, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    with serving(200) as server:
        url = server.url.replace("://", f"://{credentials}")
        assert told(url) == []
        assert told(url, headers={"authorization": "Bearer own"}) == []
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
        assert told(f"http://{credentials}elsewhere.invalid/hook") == []
    assert [path for path, _, _ in server.got] == [f"/hooks/{SECRET}"] * 2 + ["http://elsewhere.invalid/hook"]
    given = [headers.get("Authorization", headers.get("authorization")) for _, headers, _ in server.got]
    basic = f"Basic {base64.b64encode(sent.encode()).decode()}"
    assert given == [basic, "Bearer own", basic]
    (problem,) = told(f"http://{credentials}127.0.0.1:{server.server_port}/", retries=0)
    for text in (problem, caplog.text):
        assert not [secret for secret in (credentials, sent, basic) if secret in text]


def test_openlineage_is_posted():
    with serving(201) as server:
        assert told(server.url, format="openlineage") == []
    assert json.loads(server.got[0][2]) == openlineage_event.event(FAILED)


def test_a_webhook_for_failed_runs_is_not_called_for_good_ones():
    with serving(200) as server:
        assert told(server.url, GOOD, when="failed") == []
        assert server.got == []
        assert told(server.url, when="failed") == []
        assert told(server.url, GOOD, when="always") == []
    assert len(server.got) == 2


@pytest.mark.parametrize("status", sorted(webhooks.PASSING))
def test_a_temporary_error_is_tried_again(status, monkeypatch):
    monkeypatch.setattr("urllib3.util.retry.time.sleep", lambda seconds: None)
    with serving(status, status, 204) as server:
        assert told(server.url, retries=2) == []
    assert len(server.got) == 3
    assert len({body for _, _, body in server.got}) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 410])
def test_a_permanent_error_is_not_tried_again(status):
    with serving(status) as server:
        assert told(server.url) == [f"tell.webhooks[0]: not delivered, it answered {status}."]
    assert len(server.got) == 1


def test_attempts_end_after_the_configured_retries(monkeypatch):
    monkeypatch.setattr("urllib3.util.retry.time.sleep", lambda seconds: None)
    with serving(503) as server:
        assert told(server.url, retries=2) == ["tell.webhooks[0]: not delivered, it answered 503."]
    assert len(server.got) == 3


@pytest.mark.parametrize(("asked", "waited"), [("2", 2.0), ("86400", 10.0)])
def test_retry_after_is_waited_for_within_a_limit(asked, waited, monkeypatch):
    pauses = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", pauses.append)
    with serving(429, 200, headers={"Retry-After": asked}) as server:
        assert told(server.url) == []
    assert pauses == [waited]


def test_redirects_are_not_followed():
    with serving(200) as other:
        with serving(307, headers={"Location": other.url}) as server:
            (problem,) = told(server.url, headers={"Authorization": SECRET})
        assert "307, a redirect, which is not followed" in problem
        assert other.got == []


def test_a_slow_answer_is_not_waited_for():
    with serving(200, slow=30) as server:
        start = time.monotonic()
        assert told(server.url, timeout=0.1, retries=1) == ["tell.webhooks[0]: not delivered, no answer within 0.1 s."]
        assert time.monotonic() - start < 5
    assert len(server.got) == 2


def test_an_answer_that_never_ends_is_not_waited_for():
    """Each byte of it comes in time, so that no socket ever times out."""
    with serving(200, drips=True) as server:
        start = time.monotonic()
        (problem,) = told(server.url, timeout=0.3, retries=0)
        assert problem == "tell.webhooks[0]: not delivered, no answer within 0.3 s in all."
        assert time.monotonic() - start < 5


def unused_port():
    with serving(200) as server:
        return server.server_port


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:{port}/" + SECRET, "no connection could be made"),
        ("http://nowhere.invalid/" + SECRET, "no connection could be made"),
        ("ftp://127.0.0.1/" + SECRET, "its url is none of HTTP"),
        ("http://[" + SECRET, "its url is none of HTTP"),
    ],
)
def test_a_webhook_that_cannot_be_reached_is_named_with_its_reason(url, reason):
    problem = told(url.format(port=unused_port()), retries=0)
    assert problem == [f"tell.webhooks[0]: not delivered, {reason}."]


def test_a_header_with_a_line_break_is_a_problem():
    with serving(200) as server:
        (problem,) = told(server.url, headers={"Authorization": f"{SECRET}\nX: y"})
    assert "it could not be posted (ValueError); look at its url and headers" in problem
    assert server.got == []


def test_the_proxy_of_the_environment_is_taken(monkeypatch):
    with serving(200) as server:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
        assert told("http://elsewhere.invalid/hook") == []
    assert server.got[0][0] == "http://elsewhere.invalid/hook"
    (problem,) = told("http://elsewhere.invalid/hook", retries=0)
    assert "the proxy of the environment could not be reached" in problem
    with serving(200) as server:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert told(server.url) == []


def test_no_url_is_logged(caplog, monkeypatch):
    monkeypatch.setattr("urllib3.util.retry.time.sleep", lambda seconds: None)
    caplog.set_level(logging.DEBUG)
    with serving(503, 200) as server:
        assert told(server.url) == []
    told(server.url, retries=1)
    assert SECRET not in caplog.text
    assert str(server.server_port) not in caplog.text


def test_a_failing_webhook_does_not_stop_the_others():
    with serving(200) as server:
        several = [hook("ftp://nowhere"), hook(server.url)]
        problems = webhooks.post_all(FAILED, GOOD, several)
    assert [problem.partition(":")[0] for problem in problems] == ["tell.webhooks[0]"]
    assert len(server.got) == 1


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl, which makes the certificate, is not here")
@pytest.mark.subprocess
def test_a_self_signed_certificate_is_not_trusted(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", *curve, *name, "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving(200) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None
        (problem,) = told(server.url.replace("http:", "https:"), retries=0)
    assert problem == "tell.webhooks[0]: not delivered, its TLS certificate or version is not to be trusted."
    assert server.got == []
