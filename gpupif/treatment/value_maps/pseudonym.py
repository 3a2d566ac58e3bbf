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
from ...utils.validation import brief, check_word, whole_number
from ..treatment import Mapper, Tools, TreatedTable, ValueMap
from .new_values import is_numeric, looked_up, unchanged

# Of fewer texts, draft SP 800-38G Revision 1 says, one can be found by trying.
SMALLEST_DOMAIN = 1_000_000
KINDS = (string.digits, string.ascii_uppercase, string.ascii_lowercase)
PLACE = {sign: (kind, kind.index(sign)) for kind in KINDS for sign in kind}


class FormatPreserving:
    """A cipher that gives digits for digits, A-Z for A-Z, a-z for a-z, and leaves other signs at their places.

    A text of digits and signs between them is encrypted as the string of its digits, by FF1 of radix 10. Any other is
    the number that its digits and letters are, each counted in its own kind, encrypted by FF1 among all such numbers
    (`encrypt_int` of libffx: bits, with cycle walking). Both are permutations of the texts of one form.
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
        """Return the text in place of another; raises InputError for a text that FF1 cannot take, naming it."""
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
        """The kinds of the digits and letters of a text, in their order."""
        strange = next((sign for sign in text if sign.isalnum() and sign not in PLACE), None)
        if strange is not None:
            raise InputError(
                f"pseudonym: column {self._column!r}: FF1 takes digits 0-9 and letters A-Z, a-z; got {strange!r} in "
                f"{brief(text)}. Take method='hmac'."
            )
        return [PLACE[sign][0] for sign in text if sign in PLACE]


METHODS = ("ff1", "permutation", "hmac")
# Hexadecimal digits of a pseudonym: 128 bits, which no two values of any table have by chance.
DIGITS = 32
MOST_DIGITS = 64
FEWEST_DIGITS = 8


@dataclass(frozen=True)
class Pseudonym(ValueMap):
    """Put a pseudonym in the place of each value, by the secret key: equal values get equal ones, different different.

    method: ``"ff1"`` encrypts digits to digits and letters of A-Z, a-z to such letters, and leaves all other signs at
    their places (FF1 of NIST SP 800-38G; needs `gpupif[ffx]`; 0.1 to 0.2 ms for each different value). A value has to
    be one of at least a million of its form, six digits say. ``"permutation"`` gives the values of the column to each
    other, so that it has the same ones as before and keeps its type: for few of them. ``"hmac"`` makes `length`
    hexadecimal digits of anything (HMAC-SHA256 of its text).

    length: of ``"hmac"`` 8 to 64 digits, default 32; of ``"ff1"``, and of whole numbers only, the digits that they are
    padded to with zeros first. name: columns of one name have the same pseudonyms for the same values, those of other
    tables too where the key is the same (of a permutation, where the values are); default the column's.

    Pseudonyms are texts, except those of a permutation. How often each value occurs, and which cells are alike, is as
    plain as before: who knows that of somebody finds them. Whoever has the key can undo ``"ff1"``, and try values with
    ``"hmac"``. It is no treatment by Safe Harbor, which wants identifiers removed.

    Raises InputError where there is no key, for a value that FF1 cannot take, and where two values would have the same
    pseudonym, being as short as they are.
    """

    do: ClassVar[str] = "pseudonym"
    is_random: ClassVar[bool] = True
    method: Literal["ff1", "permutation", "hmac"] = "ff1"
    length: int | None = None
    name: str | None = None

    def check(self) -> None:
        said = f"pseudonym: column {self.column!r}"
        check_word(f"{said}: method", self.method, METHODS)
        if self.length is None:
            return
        if self.method == "permutation":
            raise InputError(f"{said}: length: values of a permutation are as long as they were. Leave it out.")
        whole_number(f"{said}: length", self.length, "digits", least=FEWEST_DIGITS if self.method == "hmac" else 6)
        if self.method == "hmac" and self.length > MOST_DIGITS:
            raise InputError(f"{said}: length: expected at most {MOST_DIGITS} digits, which HMAC-SHA256 has.")

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        if tools.key is None:
            raise InputError(
                f"pseudonym: column {self.column!r}: pseudonyms are made by a secret key, and there is none. Give one "
                "beside the plan: key= or --key-file."
            )
        name = str(self.column) if self.name is None else self.name
        secret = tools.key.secret(f"pseudonym {self.method} {name}")
        values = table.values(self.column).labels
        return looked_up(values, self._pseudonyms(values, secret)) if len(values) else unchanged

    def _pseudonyms(self, values: pa.Array, secret: bytes) -> pa.Array:
        """Those of different values, in ascending order."""
        if self.method == "permutation":
            # The value that has the place of its hash among the hashes, which is as good as drawn.
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
    """HMAC-SHA256 (RFC 2104) of the text of each value, by a key of at most 64 bytes."""
    # The key is hashed once: that takes a third of the time of `hmac.digest`.
    inner, outer = (sha256(bytes(byte ^ mask for byte in secret.ljust(64, b"\0"))) for mask in (0x36, 0x5C))
    found = []
    for text in texts(values).to_pylist():
        within, around = inner.copy(), outer.copy()
        within.update(text.encode())
        around.update(within.digest())
        found.append(around.digest())
    return found
