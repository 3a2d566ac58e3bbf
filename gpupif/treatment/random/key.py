"""The secret key of what is random in a treatment."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from ...errors import InputError, OutputError, SeedWarning, warn
from ...utils.validation import whole_number
from .draws import Draws

SIZE = 32
# A purpose begins with one of these, so that none of gpupif's own is ever one that a treatment asks for.
RECORD, SECRET, STREAM, SEED = "record", "secret", "stream", "seed"
EXPECTED = f"expected {SIZE} bytes, or {2 * SIZE} hexadecimal digits"
MADE_BY = f"gpupif.treatments.Key.new().save(path), or `head -c {SIZE} /dev/urandom > path`, makes one"


class Key:
    """The 32 secret bytes by which random treatments draw; who has them can undo what they did, nobody else can.

    Made by `new`, `of` or, for tests, `from_seed`. Its text never shows the bytes.
    """

    __slots__ = ("_secret", "is_from_seed")

    def __init__(self, secret: bytes, is_from_seed: bool = False) -> None:
        if len(secret) != SIZE:
            raise _of_another_size(f"{len(secret)} bytes", len(secret) < SIZE)
        self._secret = secret
        self.is_from_seed = is_from_seed

    @classmethod
    def of(cls, key: Key | bytes | str | os.PathLike[str]) -> Key:
        """A key from its bytes, or from a file with them: 32 bytes, or 64 hexadecimal digits.

        Raises InputError where they are more or fewer, or where there is no such file.
        """
        if isinstance(key, Key):
            return key
        if isinstance(key, (bytes, bytearray)):
            return cls(_from_digits(bytes(key)))
        if isinstance(key, (str, os.PathLike)):
            return cls(_from_digits(_read(key)))
        seed = " For tests, write gpupif.treatments.Key.from_seed(number)." if isinstance(key, int) else ""
        raise InputError(
            f"key: {EXPECTED} or the path of a file with them, got a value of type {type(key).__name__}.{seed}"
        )

    @classmethod
    def new(cls) -> Key:
        """A key that nobody can guess, from the random numbers of the system."""
        return cls(secrets.token_bytes(SIZE))

    @classmethod
    def from_seed(cls, seed: int) -> Key:
        """A key made from a number, for tests: whoever tries the numbers finds it. Warns with SeedWarning."""
        whole_number("seed", seed, "", least=0)
        warn(
            "A key made from a seed is found by trying seeds, and what was randomised is undone by it. For data that "
            f"leave your hands take a secret key: {MADE_BY}.",
            SeedWarning,
        )
        return cls(hashlib.sha256(f"gpupif {SEED} {int(seed)}".encode()).digest(), is_from_seed=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a new file, as hexadecimal digits, that only its owner may read.

        Raises OutputError where there is a file already: a key that is lost cannot be made again.
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
        """By which records tell keys apart, as hexadecimal digits; nothing else can be made from it.

        Of a key from a seed it is the word "seed": by a digest seeds could be tried.
        """
        return SEED if self.is_from_seed else self._hash(RECORD).hex()[:SIZE]

    def secret(self, purpose: str) -> bytes:
        """Another key, of 32 bytes, for a purpose: HMAC-SHA256 (RFC 2104) of the purpose."""
        return self._hash(SECRET, purpose)

    def draws(self, number: int, column: Hashable, purpose: str = "") -> Draws:
        """The random numbers of a treatment for a column; others for each place in the plan, column and purpose."""
        stream = self._hash(STREAM, str(number), str(column), purpose)
        return Draws(self._hash(STREAM), stream[:12])

    def _hash(self, *words: str) -> bytes:
        # Words are told apart by their lengths, so that no two lists of them are one message.
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
    """What a file of a key holds, as far as is needed to see that it is too long."""
    try:
        with Path(path).open("rb") as file:
            return file.read(64 * SIZE)
    except OSError as error:
        # Not what came where it may be the key itself: messages are logged.
        start = os.fsencode(path)[:SIZE]
        came = "what came" if len(start) == SIZE and _is_digits(start) else f"{os.fspath(path)!r}"
        wrong = "is a folder" if isinstance(error, IsADirectoryError) else f"cannot be read: {error.strerror}"
        raise InputError(f"key: expected the path of a file with the key, and {came} {wrong}. {MADE_BY}.") from None


def _is_digits(text: bytes) -> bool:
    return len(text) > 0 and all(byte in b"0123456789abcdefABCDEF" for byte in text)


def _from_digits(read: bytes) -> bytes:
    """The bytes of a key, from themselves or from hexadecimal digits, which white space may follow."""
    text = read.strip()
    if not _is_digits(text):
        return read
    if len(text) != 2 * SIZE:
        raise _of_another_size(f"{len(text)} hexadecimal digits", len(text) < 2 * SIZE)
    return bytes.fromhex(text.decode())


def _of_another_size(came: str, short: bool) -> InputError:
    return InputError(f"key: {EXPECTED}, got {came}, which is too {'short' if short else 'long'}. {MADE_BY}.")
