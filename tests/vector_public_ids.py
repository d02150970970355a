"""The cases in tests/public_ids.json."""

from __future__ import annotations

from collections.abc import Iterator

from reference import U64, mix
from reference_public_ids import ALPHABET, BLOCK_DIGITS, Key, PublicIds, digits_of
from vector_cases import Case, error_of


def key(number: int, seed: int) -> str:
    """Returns a key that is the same in every run."""
    return Key(number, mix(seed).to_bytes(8) + mix(seed + 1).to_bytes(8)).text


ONE = key(0, 1000)
NEW = key(1, 2000)
LAST = key(61, 3000)
LETTER = key(10, 4000)
# A small number, whose digits begin with zeros, and the largest one.
SMALL = Key(7, (1).to_bytes(16)).text
LARGE = Key(42, b"\xff" * 16).text
MOST = [key(number, 5000 + 2 * number) for number in range(16)]
SPREAD = [key(number, 5000 + 2 * number) for number in range(60, -1, -4)]

IDS = [0, 1, 2, 2**32, 1541815603606036480, 1541815603606036481, 2**63 - 1, 2**63, U64 - 1, U64]
PREFIXES = ["", "a", "order", "user", "order2_item", "a2_b_3c", "a23456789012345678901234"]


def public_ids() -> Iterator[Case]:
    cases = [([ONE], "order", id_) for id_ in IDS]
    # Pseudorandom IDs, the same in every run.
    cases += [([ONE], "order", mix(number)) for number in range(30)]
    cases += [([ONE], prefix, id_) for prefix in PREFIXES for id_ in (0, IDS[4], mix(77))]
    for keys in (
        [NEW],
        [NEW, ONE],
        [LAST],
        [LETTER, LAST, ONE],
        [SMALL],
        [LARGE],
        MOST,
        SPREAD,
        [f"{NEW} {ONE}"],
        [f" {NEW},{ONE}\r\n"],
        [f"{NEW}\n{ONE}\n", LAST],
    ):
        cases += [(keys, "order", id_) for id_ in (IDS[4], mix(99), 2**63 - 1)]
    for keys, prefix, id_ in cases:
        ids = PublicIds(keys, prefix)
        assert ids.decode(ids.encode(id_)) == id_
        yield {"keys": keys, "prefix": prefix, "id": str(id_), "text": ids.encode(id_)}


def public_ids_read() -> Iterator[Case]:
    for keys, older in [
        ([NEW, ONE], ONE),
        ([LAST, NEW, ONE], ONE),
        ([LETTER, LAST, ONE], LAST),
        (MOST, MOST[15]),
        (SPREAD, SPREAD[9]),
    ]:
        for prefix, id_ in (("order", IDS[4]), ("", U64)):
            text = PublicIds([older], prefix).encode(id_)
            assert PublicIds(keys, prefix).decode(text) == id_
            yield {"keys": keys, "prefix": prefix, "text": text, "id": str(id_)}


def public_ids_refused() -> Iterator[Case]:
    keys = [NEW, ONE]
    ids = PublicIds(keys, "order")
    good = ids.encode(IDS[4])
    start, digits = good[:7], good[7:]
    cases = [
        (keys, "order", text, why)
        for text, why in [
            ("", "an empty string"),
            ("order", "only the prefix, without _"),
            ("order_", "only the prefix"),
            ("order_1", "only the prefix and the key's number"),
            (good[6:], "no prefix"),
            (f"_{good[6:]}", "an empty prefix"),
            (good.replace("order", "user"), "another prefix"),
            (good.replace("order", "orders"), "a longer prefix"),
            (good.replace("order", "orde"), "a shorter prefix"),
            (good.replace("order", "ORDER"), "a prefix in upper case"),
            (good.replace("order", "order_order"), "the prefix twice"),
            (good.replace("_", "__"), "two _"),
            (good.replace("_", "-"), "a hyphen after the prefix"),
            (good.replace("order", "\u043erder"), "a Cyrillic letter in the prefix"),
            (f" {good}", "a space before"),
            (f"{good} ", "a space after"),
            (f"{good}\n", "a line feed after"),
            (f"{good}\u200b", "an invisible character after"),
            (good[:-1], "a digit too few"),
            (f"{good}0", "a digit too many"),
            (f"{start}0{digits}", "a zero before the digits"),
            (f"{good}{good}", "two texts"),
            (good + "0" * 300, "a long text"),
            (good.upper().replace("ORDER", "order"), "in upper case"),
            (good.lower(), "in lower case"),
            (start + digits[::-1], "the digits backwards"),
            (f"{good[:10]}-{good[11:]}", "a hyphen among the digits"),
            (f"{good[:10]}_{good[11:]}", "a _ among the digits"),
            (f"{good[:10]}+{good[11:]}", "a plus among the digits"),
            (f"{good[:10]}/{good[11:]}", "a digit of base64"),
            (f"{good[:10]}@{good[11:]}", "the character below A"),
            (f"{good[:10]}[{good[11:]}", "the character above Z"),
            (f"{good[:10]}`{good[11:]}", "the character below a"),
            (f"{good[:10]}{{{good[11:]}", "the character above z"),
            (f"{good[:10]}\u0430{good[11:]}", "a Cyrillic letter among the digits"),
            (f"{good[:10]}\uff15{good[11:]}", "a full-width digit"),
            (f"{good[:10]}\U0001f600{good[11:]}", "a character of two UTF-16 units"),
            (f"{good[:-1]}\u00e9", "a letter that is not ASCII, last"),
            (f"order_\u00e9{digits}", "a letter that is not ASCII, for the key's number"),
            (f"order_2{digits}", "a key that is not there"),
            (f"order_z{digits}", "a key that is not there, the last"),
            (f"order_0{digits}", "the number of the other key"),
            (start + digits_of(0), "zeros"),
            (start + digits_of(2**128 - 1), "2^128-1"),
            (f"{start}7n42DGM5Tflk9n8mt7Fhc8", "2^128"),
            (f"{start}7o00000000000000000000", "more than 2^128 by a digit"),
            (start + "z" * BLOCK_DIGITS, "the highest number of 22 digits"),
            (start + digits_of(IDS[4]), "the ID itself as digits"),
            (str(IDS[4]), "the ID itself"),
            (NEW, "a key"),
        ]
    ]
    # Each digit replaced by the next one in the alphabet.
    for at in range(len(digits)):
        digit = ALPHABET[(ALPHABET.index(digits[at]) + 1) % 62]
        text = f"{start}{digits[:at]}{digit}{digits[at + 1 :]}"
        cases.append((keys, "order", text, f"digit {at + 1} changed"))
    cases += [
        (keys, "", good, "a prefix where none is"),
        (keys, "", f"_{good[6:]}", "a _ where no prefix is"),
        (keys, "", good[6:], "the digits of a text with a prefix"),
        (keys, "order", "order_" + PublicIds(keys, "").encode(7), "those of a text without"),
        (keys, "order_item", good, "a prefix of more words"),
        ([key(1, 6000)], "order", good, "another key of this number"),
        ([ONE], "order", good, "a key that is not there any more"),
    ]
    for given_keys, prefix, text, why in cases:
        refused = error_of(PublicIds(given_keys, prefix).decode, text)
        yield {
            "keys": given_keys,
            "prefix": prefix,
            "text": text,
            "error": refused.name,
            "position": refused.position,
            "why": why,
        }


def public_keys_refused() -> Iterator[Case]:
    cases = [
        (keys, "order", why)
        for keys, why in [
            ([], "no key"),
            ([""], "an empty string"),
            ([" ,\n"], "a text without a key"),
            ([*MOST, LAST], "17 keys"),
            ([" ".join([*MOST, LAST])], "17 keys in one text"),
            ([ONE, NEW, ONE], "a key twice"),
            ([ONE, key(0, 7000)], "two keys with one number"),
            ([ONE, f"pfk_1{ONE[5:]}"], "two numbers with one key"),
            ([f"pfk_0{digits_of(0)}"], "a key of zeros"),
            ([f"pfk_0{digits_of(2**128 - 1)[:-1]}8"], "more than 128 bits"),
            (["pfk_0" + "z" * BLOCK_DIGITS], "the highest number of 22 digits"),
            ([ONE, ONE[:-1]], "a digit too few"),
            ([f"{ONE}0"], "a digit too many"),
            ([ONE[4:]], "no pfk_"),
            ([ONE.replace("pfk", "PFK")], "PFK_"),
            ([ONE.replace("_", "-")], "a hyphen after pfk"),
            (["pfk_"], "only pfk_"),
            (["pfk"], "only pfk"),
            ([f"{ONE[:-1]}-"], "a hyphen among the digits"),
            ([f"{ONE[:4]}_{ONE[5:]}"], "no number"),
            ([f"{ONE[:-1]}\u00e9"], "a letter that is not ASCII"),
            ([f"{ONE};{NEW}"], "a semicolon between keys"),
            ([PublicIds([ONE], "order").encode(7)], "a public ID"),
            (["00112233445566778899aabbccddeeff"], "a key in hexadecimal"),
        ]
    ]
    cases += [
        ([ONE], prefix, why)
        for prefix, why in [
            ("Order", "upper case"),
            ("ORDER", "upper case"),
            ("1order", "a digit first"),
            ("_", "only a _"),
            ("_order", "a _ first"),
            ("order_", "a _ last"),
            ("order__item", "two _"),
            ("order-item", "a hyphen"),
            ("order item", "a space"),
            ("order\n", "a line feed after"),
            (" ", "a space"),
            ("\u00f6rder", "a letter that is not ASCII"),
            ("a234567890123456789012345", "25 characters"),
            ("a" * 300, "a long prefix"),
            ("pfk", "what keys begin with"),
            ("pfk_order", "what keys begin with"),
            (NEW, "a key"),
        ]
    ]
    for keys, prefix, why in cases:
        error = error_of(PublicIds, keys, prefix).name
        yield {"keys": keys, "prefix": prefix, "error": error, "why": why}
