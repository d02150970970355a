"""The reference for public IDs, which uses OpenSSL's AES through pyca/cryptography.

It shares no code with the core, which uses a different implementation of AES. The cases are in
vector_public_ids.py.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES128
from cryptography.hazmat.primitives.ciphers.modes import ECB
from cryptography.hazmat.primitives.cmac import CMAC
from reference import FORMATS, U64, Refused

ALPHABET = FORMATS["base62"].alphabet
PREFIX = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
LONGEST_PREFIX = 24
MOST_KEYS = 16
BLOCK_DIGITS = 22


def digits_of(number: int) -> str:
    digits = ""
    for _ in range(BLOCK_DIGITS):
        number, digit = divmod(number, 62)
        digits = ALPHABET[digit] + digits
    return digits


def number_of(digits: str) -> int:
    number = 0
    for digit in digits:
        number = number * 62 + ALPHABET.index(digit)
    return number


def is_prefix(text: str) -> bool:
    return len(text) <= LONGEST_PREFIX and PREFIX.fullmatch(text) is not None


@dataclass(frozen=True)
class Key:
    number: int
    secret: bytes

    @classmethod
    def read(cls, text: str) -> Key:
        match = re.fullmatch(r"pfk_([0-9A-Za-z])([0-9A-Za-z]{22})", text)
        if match is None:
            raise Refused("invalid_option", "no key")
        value = number_of(match[2])
        if value not in range(1, 2**128):
            raise Refused("invalid_option", "more than 128 bits, or all of them 0")
        return cls(ALPHABET.index(match[1]), value.to_bytes(16))

    @property
    def text(self) -> str:
        return f"pfk_{ALPHABET[self.number]}{digits_of(int.from_bytes(self.secret))}"

    def mac(self, message: str) -> bytes:
        mac = CMAC(AES128(self.secret))
        mac.update(message.encode("ascii"))
        return mac.finalize()

    @property
    def cipher(self) -> Cipher[ECB]:
        return Cipher(AES128(self.mac("polyflake public id encryption")), ECB())

    def tag(self, prefix: str) -> bytes:
        return self.mac("polyflake public id tag " + prefix)[:8]


def split_keys(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from re.findall(r"[^\s,]+", text)


class PublicIds:
    def __init__(self, keys: Sequence[str], prefix: str) -> None:
        self.keys = [Key.read(text) for text in split_keys(keys)]
        if not 1 <= len(self.keys) <= MOST_KEYS:
            raise Refused("invalid_option", "no key, or too many")
        for values in ({key.number for key in self.keys}, {key.secret for key in self.keys}):
            if len(values) < len(self.keys):
                raise Refused("invalid_option", "two keys alike")
        if (prefix and not is_prefix(prefix)) or prefix == "pfk" or "pfk_" in prefix:
            raise Refused("invalid_option", "no prefix")
        self.prefix = prefix
        self.start = f"{prefix}_" if prefix else ""

    def encode(self, id_: int) -> str:
        if id_ not in range(U64 + 1):
            raise Refused("invalid_id", "not 64 bits")
        key = self.keys[0]
        block = id_.to_bytes(8) + key.tag(self.prefix)
        value = int.from_bytes(key.cipher.encryptor().update(block))
        return self.start + ALPHABET[key.number] + digits_of(value)

    def decode(self, text: str) -> int:
        given, separator, _ = text.rpartition("_")
        if separator and is_prefix(given) and given != self.prefix:
            raise Refused("invalid_id", "another prefix")
        if not text.startswith(self.start):
            raise Refused("invalid_id", "another prefix")
        digits = text.removeprefix(self.start)
        for position, character in enumerate(digits, start=1 + len(self.start)):
            if character not in ALPHABET:
                raise Refused("invalid_id", "no base62 digit", position=position)
        if len(digits) != 1 + BLOCK_DIGITS:
            raise Refused("invalid_id", "too few digits, or too many")
        keys = {ALPHABET[key.number]: key for key in self.keys}
        if digits[0] not in keys:
            raise Refused("invalid_id", "a key that is not there")
        key, value = keys[digits[0]], number_of(digits[1:])
        if value >= 2**128:
            raise Refused("invalid_id", "more than 128 bits")
        block = key.cipher.decryptor().update(value.to_bytes(16))
        if not hmac.compare_digest(block[8:], key.tag(self.prefix)):
            raise Refused("invalid_id", "no ID of this prefix under these keys")
        return int.from_bytes(block[:8])
