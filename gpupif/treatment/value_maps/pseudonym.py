"""Pseudonyms by a secret key: format-preserving encryption (FF1), a permutation of values, or a keyed hash."""

from __future__ import annotations

import math
import string
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import texts
from ...errors import ColumnTypeError, InputError
from ...utils.validation import brief, whole_number
from ..treatment import Mapper, Tools, TreatedTable, ValueMap
from .new_values import is_numeric, looked_up, unchanged

# The fewest texts of a form for FF1: among fewer, a text can be found by trying (draft SP 800-38G Revision 1).
SMALLEST_DOMAIN = 1_000_000
KINDS = (string.digits, string.ascii_uppercase, string.ascii_lowercase)
PLACE = {sign: (kind, kind.index(sign)) for kind in KINDS for sign in kind}


class FormatPreserving:
    """A cipher that maps digits to digits, A-Z to A-Z and a-z to a-z, and keeps all other signs.

    The form of a text is the kind of each letter and digit, and all other signs. A text without letters is encrypted as
    the string of its digits, by FF1 of radix 10. The letters and digits of another text are read as a number, each a
    digit in the radix of its kind. FF1 encrypts the number among all numbers of this form (`encrypt_int` of libffx, on
    bits, with cycle walking). Both are permutations of the texts of a form.

    secret: 32 bytes. column: name of the column, for errors. Raises InputError if libffx is not installed.
    """

    def __init__(self, secret: bytes, column: Hashable) -> None:
        if find_spec("ffx") is None:
            raise InputError(
                f"pseudonym: column {column!r}: method 'ff1' needs libffx, which is not installed here: pip install "
                "'gpupif[ffx]'. Or take method='hmac'."
            )
        from ffx import FF1

        self._cipher = FF1(secret, radix=10)
        self._column = column

    def encrypt(self, text: str) -> str:
        """Return the pseudonym of a text; raises InputError for a text that FF1 cannot take."""
        kinds = self._kinds(text)
        domain = math.prod(map(len, kinds))
        if domain < SMALLEST_DOMAIN:
            raise InputError(
                f"pseudonym: column {self._column!r}: {brief(text)} is one of {domain:,} texts of its form; FF1 is "
                "safe for a million or more, such as six digits. Take method='hmac' or 'permutation', or pad whole "
                "numbers with length=."
            )
        plain = [sign for sign in text if sign in PLACE]
        if all(kind is string.digits for kind in kinds):
            new: Sequence[str] = self._cipher.encrypt("".join(plain))
        else:
            number = 0
            for kind, sign in zip(kinds, plain, strict=True):
                number = number * len(kind) + PLACE[sign][1]
            number = self._cipher.encrypt_int(number, domain=domain)
            backwards = []
            for kind in reversed(kinds):
                number, place = divmod(number, len(kind))
                backwards.append(kind[place])
            new = backwards[::-1]
        signs = iter(new)
        return "".join(next(signs) if sign in PLACE else sign for sign in text)

    def _kinds(self, text: str) -> list[str]:
        """Return the kind of each digit and letter of a text; raises InputError for other letters and digits."""
        strange = next((sign for sign in text if sign.isalnum() and sign not in PLACE), None)
        if strange is not None:
            raise InputError(
                f"pseudonym: column {self._column!r}: FF1 takes digits 0-9 and letters A-Z, a-z; got {strange!r} in "
                f"{brief(text)}. Take method='hmac'."
            )
        return [PLACE[sign][0] for sign in text if sign in PLACE]


# The default number of hexadecimal digits of a pseudonym: 128 bits, so that two values never share one by chance.
DIGITS = 32
MOST_DIGITS = 64
FEWEST_DIGITS = 8


@dataclass(frozen=True)
class Pseudonym(ValueMap):
    """Replace each value by a pseudonym from the secret key; equal values get equal, different values different ones.

    column: name of the column.
    method: ``"ff1"``, ``"permutation"`` or ``"hmac"``. Default ``"ff1"``.

        * ``"ff1"`` encrypts digits to digits, and letters of A-Z and a-z to such letters. All other signs stay (FF1 of
          NIST SP 800-38G; needs `gpupif[ffx]`; 0.1 to 0.2 ms for each distinct value). The form of a value must have at
          least a million texts, such as six digits.
        * ``"permutation"`` permutes the distinct values of the column, which keeps its type. It suits few values.
        * ``"hmac"`` computes hexadecimal digits from any value (HMAC-SHA256 of its text).
    length: with ``"hmac"``, the number of digits, from 8 to 64. Default 32. With ``"ff1"``, the number of digits to
        which whole numbers are padded with zeros first, 6 or more. Default None: no padding.
    name: columns of equal name get equal pseudonyms for equal values, also in other tables with the same key. A
        permutation also needs equal sets of values. Default None: the name of the column.

    Pseudonyms are texts, except with a permutation. Missing values stay missing. Pseudonyms do not hide how often a
    value occurs, nor which cells are equal: an attacker who knows this of a person can find the person. The owner of
    the key can undo ``"ff1"``, and test values with ``"hmac"``. Safe Harbor is not met by pseudonyms, as it requires
    that identifiers are removed.

    Raises InputError without a key, for a value that FF1 cannot take, and if two values would share a short pseudonym.
    """

    do: ClassVar[str] = "pseudonym"
    is_random: ClassVar[bool] = True
    method: Literal["ff1", "permutation", "hmac"] = "ff1"
    length: int | None = None
    name: str | None = None

    def check(self) -> None:
        if self.length is None:
            return
        if self.method == "permutation":
            raise InputError(f"{self.said}: length: a permutation keeps the length of values. Leave it out.")
        whole_number(f"{self.said}: length", self.length, "digits", least=FEWEST_DIGITS if self.method == "hmac" else 6)
        if self.method == "hmac" and self.length > MOST_DIGITS:
            raise InputError(f"{self.said}: length: expected at most {MOST_DIGITS} digits, the length of HMAC-SHA256.")

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        if tools.key is None:
            raise InputError(
                f"pseudonym: column {self.column!r}: pseudonyms are made by a secret key, and there is none. Give one "
                "beside the plan: key=."
            )
        name = str(self.column) if self.name is None else self.name
        secret = tools.key.secret(f"pseudonym {self.method} {name}")
        values = table.values(self.column).labels
        return looked_up(values, self._pseudonyms(values, secret)) if len(values) else unchanged

    def _pseudonyms(self, values: pa.Array, secret: bytes) -> pa.Array:
        """Return the pseudonyms of distinct values. values: ascending, none missing."""
        if self.method == "permutation":
            # The rank of a value's hash among all hashes is the rank of its pseudonym: a permutation as if drawn.
            order = np.argsort(np.frombuffer(b"".join(hashed(secret, values)), ">u8")[::4], kind="stable")
            return values.take(pa.array(np.argsort(order)))
        if self.method == "hmac":
            return self._hashes(values, secret)
        cipher = FormatPreserving(secret, self.column)
        written = texts(values) if self.length is None else self._padded(values, int(self.length))
        return pa.array(map(cipher.encrypt, written.to_pylist()), pa.string())

    def _padded(self, values: pa.Array, length: int) -> pa.Array:
        if not is_numeric(values.type):
            expected = "whole numbers, which length= pads with zeros"
            raise ColumnTypeError(self.column, values.type, expected, "Leave length out.")
        written = texts(values)
        fits = pc.match_substring_regex(written, rf"^\d{{1,{length}}}$")
        if pc.all(fits).as_py() is False:
            strange = values.filter(pc.invert(fits))[0].as_py()
            raise InputError(
                f"pseudonym: column {self.column!r}: length: expected whole numbers of at most {length} digits; "
                f"got {strange}. Raise it, or take method='hmac'."
            )
        return pc.utf8_lpad(written, length, "0")

    def _hashes(self, values: pa.Array, secret: bytes) -> pa.Array:
        length = DIGITS if self.length is None else int(self.length)
        new = [digest.hex()[:length] for digest in hashed(secret, values)]
        if len(set(new)) < len(new):
            raise InputError(
                f"pseudonym: column {self.column!r}: length: {length} digits give two of {len(values):,} values the "
                f"same pseudonym. Take more, {DIGITS} say."
            )
        return pa.array(new, pa.string())


def hashed(secret: bytes, values: pa.Array) -> list[bytes]:
    """Return HMAC-SHA256 (RFC 2104) of the text of each value. secret: at most 64 bytes."""
    # The key is hashed once for all values: this takes a third of the time of `hmac.digest`.
    inner, outer = (sha256(bytes(byte ^ mask for byte in secret.ljust(64, b"\0"))) for mask in (0x36, 0x5C))
    digests = []
    for text in texts(values).to_pylist():
        within, around = inner.copy(), outer.copy()
        within.update(text.encode())
        around.update(within.digest())
        digests.append(around.digest())
    return digests
