"""Public IDs: every case in tests/public_ids.json, and input that is only possible in Python.

The file describes its own format under "about".
"""

from __future__ import annotations

import copy
import json
import pickle
import threading
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import polyflake
import pytest
from polyflake import InvalidIdError, InvalidOptionError, PolyflakeError, PublicIds

Case = dict[str, Any]

VECTORS: dict[str, list[Any]] = json.loads(
    (Path(__file__).resolve().parents[2] / "tests" / "public_ids.json").read_text(encoding="utf-8")
)
SECTIONS = {"about"}
KEYS = ["pfk_10kvEGTqNtUTXFUlMnM4wIa", "pfk_03KxYVLQeEpWyLpNnYpNeDo"]
ID = 1541815603606036480
TEXT = "order_15ShV20Bxc6UJvKSQbDvo0J"


def cases(section: str) -> pytest.MarkDecorator:
    SECTIONS.add(section)
    return pytest.mark.parametrize("case", VECTORS[section])


def opened(case: Case) -> PublicIds:
    return PublicIds(case["keys"], case["prefix"])


def orders() -> PublicIds:
    return PublicIds(KEYS, "order")


def refusal(name: str) -> type[PolyflakeError]:
    return {"invalid_id": InvalidIdError, "invalid_option": InvalidOptionError}[name]


@cases("public_ids")
def test_encoded(case: Case) -> None:
    ids = opened(case)
    assert ids.encode(int(case["id"])) == case["text"]
    assert ids.decode(case["text"]) == int(case["id"])


@cases("public_ids_read")
def test_read(case: Case) -> None:
    ids = opened(case)
    assert ids.decode(case["text"]) == int(case["id"])
    assert ids.encode(int(case["id"])) != case["text"]


@cases("public_ids_refused")
def test_refused(case: Case) -> None:
    with pytest.raises(refusal(case["error"])) as caught:
        opened(case).decode(case["text"])
    if case["position"] is None:
        assert "position" not in str(caught.value)
    else:
        assert f"position {case['position']} " in str(caught.value)


@cases("public_keys_refused")
def test_keys_refused(case: Case) -> None:
    with pytest.raises(refusal(case["error"])) as caught:
        opened(case)
    for key in [*case["keys"], *([case["prefix"]] if len(case["prefix"]) == 27 else [])]:
        digits = key[5:]
        for part in (digits[at : at + 4] for at in range(len(digits) - 3)):
            assert not part.isalnum() or part not in str(caught.value)


def test_every_section_is_run() -> None:
    assert set(VECTORS) == SECTIONS


def test_keys_come_as_one_text_or_several() -> None:
    for keys in [
        "\n".join(KEYS),
        ",".join(KEYS),
        KEYS,
        tuple(KEYS),
        iter(KEYS),
        dict.fromkeys(KEYS),
    ]:
        ids = PublicIds(keys, "order")
        assert (ids.encode(ID), ids.prefix, ids.key_numbers) == (TEXT, "order", (1, 0))
    assert PublicIds(keys=KEYS, prefix="").prefix == ""


def test_columns() -> None:
    ids = orders()
    numbers = [0, ID, 2**64 - 1]
    texts = [ids.encode(number) for number in numbers]
    assert ids.encode_all(numbers) == texts
    assert ids.encode_all(array("Q", numbers)) == texts
    assert ids.encode_all(np.array(numbers, dtype=np.uint64)) == texts
    assert ids.encode_all(iter(numbers)) == texts
    assert ids.decode_all(texts) == numbers
    assert ids.decode_all(tuple(texts)) == numbers
    assert ids.encode_all([]) == []
    assert ids.decode_all([]) == []
    with pytest.raises(InvalidIdError):
        ids.decode_all([TEXT, TEXT[:-1] + "K"])
    with pytest.raises(InvalidIdError):
        ids.encode_all([ID, -1])


def test_numbers_of_more_than_64_bits() -> None:
    for number in [-1, 2**64, 10**5000]:
        with pytest.raises(InvalidIdError):
            orders().encode(number)


def test_wrong_types() -> None:
    ids: Any = orders()
    public: Any = PublicIds
    wrong: list[tuple[Any, str]] = [
        (lambda: ids.encode("1"), "id must be an int, not str"),
        (lambda: ids.encode(1.0), "id must be an int, not float"),
        (lambda: ids.encode(True), "id must be an int, not bool"),
        (lambda: ids.decode(TEXT.encode()), "text must be a str, not bytes"),
        (lambda: ids.decode(None), "text must be a str, not NoneType"),
        (lambda: ids.encode_all("12"), "ids must be an iterable of int, not str"),
        (lambda: ids.decode_all(TEXT), "texts must be an iterable of str, not str"),
        (
            lambda: public(KEYS[0].encode(), "order"),
            "keys must be an iterable of str, not bytes",
        ),
        (lambda: public([1], "order"), "a key must be a str, not int"),
        (lambda: public(KEYS, None), "prefix must be a str, not NoneType"),
        (lambda: public.generate_key("1"), "number must be an int, not str"),
    ]
    for call, message in wrong:
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == message


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(InvalidIdError):
        orders().decode(TEXT[:-1] + "\ud800")
    with pytest.raises(InvalidOptionError):
        PublicIds(KEYS[0][:-1] + "\ud800", "order")


def test_keys_are_made() -> None:
    made = {PublicIds.generate_key() for _ in range(100)}
    assert len(made) == 100
    assert all(PublicIds(key, "").key_numbers == (0,) for key in made)
    assert PublicIds(PublicIds.generate_key(61), "").key_numbers == (61,)
    for number in [-1, 62]:
        with pytest.raises(InvalidOptionError):
            PublicIds.generate_key(number)


def test_keys_stay_where_they_are() -> None:
    ids = orders()
    assert repr(ids) == str(ids) == "PublicIds(prefix='order', key_numbers=(1, 0))"
    with pytest.raises(TypeError, match="cannot be pickled, since it has keys"):
        pickle.dumps(ids)
    # A copied settings object or serializer uses the same keys, in the same memory.
    assert copy.copy(ids) is ids
    assert copy.deepcopy({"orders": ids})["orders"] is ids


def test_keys_have_an_order() -> None:
    keys = ["pfk_10kvEGTqNtUTXFUlMnM4wIa", "pfk_03KxYVLQeEpWyLpNnYpNeDo"]
    for given in (tuple(keys), iter(keys), dict.fromkeys(keys)):
        assert PublicIds(given, "order").key_numbers == (1, 0)
    for unordered in (set(keys), frozenset(keys)):
        with pytest.raises(TypeError, match="an iterable of str that has an order, not"):
            PublicIds(unordered, "order")


def test_threads_share_it() -> None:
    ids = orders()
    failed: list[object] = []

    def work(first: int) -> None:
        numbers = range(first, first + 2_000)
        if [ids.decode(ids.encode(number)) for number in numbers] != list(numbers):
            failed.append(first)

    threads = [threading.Thread(target=work, args=(first * 2_000,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_it_is_public() -> None:
    assert "PublicIds" in polyflake.__all__
