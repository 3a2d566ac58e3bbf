"""The secret key of random treatments."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import shlex
import stat
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from ...errors import InputError, OutputError, SeedWarning, warn
from ...utils.given_files import refuse_named_pipe
from ...utils.validation import whole_number
from .draws import Draws

SIZE = 32
# The first word of every hashed message: it keeps internal hashes apart from the secrets of treatments.
RECORD, SECRET, STREAM, SEED = "record", "secret", "stream", "seed"
EXPECTED = f"expected {SIZE} bytes, or {2 * SIZE} hexadecimal digits"
MADE_BY = f"gpupif.treatments.Key.new().save(path), or `head -c {SIZE} /dev/urandom > path`, makes one"


class Key:
    """The 32 secret bytes from which random treatments draw. Only their owner can undo the treatments.

    Keys are made by `new`, `of` or, for tests, `from_seed`. The text of a key (`repr`) never shows the bytes.

    secret: 32 bytes. is_from_seed: whether the key was made from a seed. Default False. Raises InputError for another
    number of bytes.
    """

    __slots__ = ("_secret", "is_from_seed")

    def __init__(self, secret: bytes, is_from_seed: bool = False) -> None:
        if len(secret) != SIZE:
            raise _size_error(f"{len(secret)} bytes", len(secret) < SIZE)
        self._secret = secret
        self.is_from_seed = is_from_seed

    @classmethod
    def from_any(cls, key: Key | bytes | str | os.PathLike[str]) -> Key:
        """Return a key from its bytes, or from the path of a file with the bytes.

        key: 32 bytes, 64 hexadecimal digits as bytes, or the path of a file that holds either; or a `Key`. Raises
        InputError for another number of bytes or digits, and for a file that cannot be read. Warns of a file that
        others can read.
        """
        if isinstance(key, Key):
            return key
        if isinstance(key, (bytes, bytearray)):
            return cls(_from_digits(bytes(key)))
        if isinstance(key, (str, os.PathLike)):
            own = cls(_from_digits(_read(key)))
            _warn_of_readers(Path(key))
            return own
        seed = " For tests, write gpupif.treatments.Key.from_seed(number)." if isinstance(key, int) else ""
        raise InputError(
            f"key: {EXPECTED} or the path of a file with them, got a value of type {type(key).__name__}.{seed}"
        )

    @classmethod
    def new(cls) -> Key:
        """Return a new key from the random numbers of the operating system."""
        return cls(secrets.token_bytes(SIZE))

    @classmethod
    def from_seed(cls, seed: int) -> Key:
        """Return a key that is made from a number, for tests. Anyone who tries numbers finds the key.

        seed: whole number, 0 or more. Raises InputError for another value. Warns with SeedWarning.
        """
        whole_number("seed", seed, "", least=0)
        warn(
            "A key made from a seed is found by trying seeds, and undoes random treatments. For data that you "
            f"hand on, take a secret key: {MADE_BY}.",
            SeedWarning,
        )
        return cls(hashlib.sha256(f"gpupif {SEED} {int(seed)}".encode()).digest(), is_from_seed=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a new file, as hexadecimal digits. Only the owner may read the file.

        Raises OutputError if the file exists, as a lost key cannot be made again, and if it cannot be written.
        """
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise OutputError(f"{path} is there already. Give another path; no key is written over.") from None
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror}.") from None
        with os.fdopen(file, "w") as stream:
            stream.write(self._secret.hex() + "\n")

    @property
    def digest(self) -> str:
        """The text that identifies the key in records: 32 hexadecimal digits, from which the key cannot be found.

        For a key from a seed it is the word "seed": with a digest, anyone could try seeds.
        """
        return SEED if self.is_from_seed else self._hash(RECORD).hex()[:SIZE]

    def secret(self, purpose: str) -> bytes:
        """Return 32 secret bytes for a purpose: HMAC-SHA256 (RFC 2104) of the purpose."""
        return self._hash(SECRET, purpose)

    def draws(self, number: int, column: Hashable, purpose: str = "") -> Draws:
        """Return the random numbers of a treatment for a column.

        number: position of the treatment in the plan, from 0. Different numbers, columns and purposes give independent
        random numbers.
        """
        stream = self._hash(STREAM, str(number), str(column), purpose)
        return Draws(self._hash(STREAM), stream[:12])

    def _hash(self, *words: str) -> bytes:
        # The length before each word makes the messages of two different lists of words different.
        message = b"".join(len(word).to_bytes(8, "little") + word for word in (text.encode() for text in words))
        return hmac.digest(self._secret, b"gpupif" + message, "sha256")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and hmac.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self._hash(RECORD))

    def __repr__(self) -> str:
        return f"Key(digest={self.digest!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Key, (self._secret, self.is_from_seed)


def _read(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a key's file, cut off at a length that is certainly too long; raises InputError."""
    try:
        refuse_named_pipe(path)
        with Path(path).open("rb") as file:
            return file.read(64 * SIZE)
    except OSError as error:
        # The given path may be the key itself: it must not be in the message, which may be logged.
        start = os.fsencode(path)[:SIZE]
        came = "what came" if len(start) == SIZE and _is_digits(start) else f"{os.fspath(path)!r}"
        wrong = "is a folder" if isinstance(error, IsADirectoryError) else f"cannot be read: {error.strerror or error}"
        raise InputError(f"key: expected the path of a file with the key, and {came} {wrong}. {MADE_BY}.") from None


def _is_digits(text: bytes) -> bool:
    return len(text) > 0 and all(byte in b"0123456789abcdefABCDEF" for byte in text)


def _from_digits(read: bytes) -> bytes:
    """Return the bytes of a key from the bytes, or from hexadecimal digits, perhaps with white space around."""
    text = read.strip()
    if not _is_digits(text):
        return read
    if len(text) != 2 * SIZE:
        raise _size_error(f"{len(text)} hexadecimal digits", len(text) < 2 * SIZE)
    return bytes.fromhex(text.decode())


def _size_error(came: str, short: bool) -> InputError:
    return InputError(f"key: {EXPECTED}, got {came}, which is too {'short' if short else 'long'}. {MADE_BY}.")


def _warn_of_readers(file: Path) -> None:
    """Warn if users other than its owner may read the file of a key."""
    with contextlib.suppress(OSError):
        mode = file.stat().st_mode
        if not stat.S_ISDIR(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
            warn(
                f"key: {file} can be read by users other than its owner; a reader can undo random treatments. Change "
                f"its rights: chmod 600 {shlex.quote(str(file))}.",
                UserWarning,
            )
