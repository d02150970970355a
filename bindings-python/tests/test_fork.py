"""After a fork: inherited Snowflakes fail in the child, and the parent continues."""

import multiprocessing
import os
from array import array
from collections.abc import Callable

import pytest
from polyflake import ForkedError, PolyflakeError, Snowflake
from support import in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except PolyflakeError as error:
        return error.name
    return "issued"


def test_the_child_fails_and_the_parent_continues() -> None:
    ids = Snowflake(node=500)
    own_clock = Snowflake(node=500, clock=lambda: 1_700_000_000_000)
    first, own_first = ids.next_id(), own_clock.next_id()
    calls: list[Callable[[], object]] = [
        ids.next_id,
        ids.try_next_id,
        lambda: next(ids),
        lambda: ids.next_ids(10),
        lambda: ids.next_ids(20_000),
        lambda: ids.fill(array("Q", [0])),
        lambda: ids.stats,
        own_clock.next_id,
        lambda: Snowflake(node=500),
        lambda: Snowflake(node=500, layout="leaf"),
    ]
    assert in_child(lambda: [outcome(call) for call in calls]) == ["forked"] * len(calls)
    assert ids.next_id() > first
    assert own_clock.next_id() == own_first + 1


def test_the_child_issues_ids_on_its_own_node() -> None:
    parent = Snowflake(node=501)
    parents = parent.next_ids(1000)
    from_child = in_child(lambda: Snowflake(node=502).next_ids(1000))
    assert isinstance(from_child, list)
    assert len({*parents, *from_child, *parent.next_ids(1000)}) == 3000


def test_decoding_works_in_the_child() -> None:
    ids = Snowflake(node=503)
    id_ = ids.next_id()
    assert in_child(lambda: ids.decode(id_).node) == 503


def test_dropping_an_inherited_snowflake_does_not_affect_the_parent() -> None:
    ids = Snowflake(node=504)
    first = ids.next_id()

    def drop() -> bool:
        nonlocal ids
        del ids
        return True

    assert in_child(drop) is True
    assert ids.next_id() > first


shared = Snowflake(node=505)


def worker(_: int) -> str:
    with pytest.raises(ForkedError) as raised:
        shared.next_id()
    return str(raised.value)


def test_the_error_in_a_forked_worker_says_what_to_do() -> None:
    shared.next_id()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        (message,) = set(pool.map(worker, range(8)))
    assert "fork" in message
