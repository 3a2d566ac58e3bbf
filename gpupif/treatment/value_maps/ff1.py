"""Texts encrypted to texts of the same form, by FF1 of NIST SP 800-38G (libffx)."""

from __future__ import annotations

import math
import string
from collections.abc import Hashable, Sequence
from importlib.util import find_spec
from typing import Any

from ...errors import InputError
from ...utils.validation import brief

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
        """The text in place of another; raises InputError for one that it cannot take, naming it."""
        return self._changed(text, self._cipher.encrypt, self._cipher.encrypt_int)

    def decrypt(self, text: str) -> str:
        """The text that was encrypted to this one."""
        return self._changed(text, self._cipher.decrypt, self._cipher.decrypt_int)

    def _changed(self, text: str, change_digits: Any, change_number: Any) -> str:
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
            new: Sequence[str] = change_digits("".join(plain))
        else:
            number = 0
            for kind, sign in zip(kinds, plain, strict=True):
                number = number * len(kind) + PLACE[sign][1]
            number = change_number(number, domain=domain)
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
