"""The scripts in tests/vectors.json: options, then steps that set the clock and make a call. Each
step includes the reference's outcome.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reference import (
    PRESETS,
    Layout,
    Options,
    Reference,
    Refused,
    ScriptClock,
    mix,
    options_from_texts,
)
from vector_cases import SIDES, TWITTER_EPOCH, Case, T


def one(clock: int | None = None, *, wait: tuple[int, int] | None = None) -> Case:
    """next_id; `wait` is (advance, until)."""
    return _step("next_id", clock, wait)


def try_one(clock: int | None = None) -> Case:
    return _step("try_next_id", clock, None)


def batch(n: int, clock: int | None = None, *, wait: tuple[int, int] | None = None) -> Case:
    return _step("next_ids", clock, wait) | {"n": str(n)}


def _step(call: str, clock: int | None, wait: tuple[int, int] | None) -> Case:
    step: Case = {} if clock is None else {"clock": str(clock)}
    if wait is not None:
        step |= {"advance": str(wait[0]), "until": str(wait[1])}
    return step | {"call": call}


# Small layouts, with ticks that are quickly used up. The epoch of SMALL is 1000, and that of COARSE
# 1005.
SMALL = "timestamp:20|node:4|sequence:2@1000/1ms"
COARSE = "timestamp:20|node:4|sequence:2@1005/10ms"
SLOW = "timestamp:20|node:4|sequence:2@5000/1s"
SHORT = "timestamp:4|node:2|sequence:2@1000/1ms"
SHORT_COARSE = "timestamp:4|node:2|sequence:2@1005/10ms"
ZERO = {"sequence_start": "zero"}
NO_WAIT = {"max_wait_ms": "0"}
SHORT_WAIT = {"max_wait_ms": "5"}
# For calls that succeed as soon as the clock has moved, even on a slow machine.
LONG_WAIT = {"max_wait_ms": "30000"}


def on(layout: str, node: Any = "5", *more: Mapping[str, str], **ms: int) -> Case:
    options: Case = {"layout": layout}
    if node is not None:
        options["node"] = node
    for part in more:
        options |= part
    return options | {f"max_{name}_ms": str(value) for name, value in ms.items()}


# A plausible instant for each preset: within its range, not on a whole second.
PRESET_INSTANTS = dict.fromkeys(PRESETS, T) | {
    "sonyflake2": 1767225600123,
    "pgedge": 1767225600123,
    "js-safe": 1767225600123,
    "baidu": 1484799346999,
}


def script_inputs() -> Iterator[tuple[str, str, Case, list[Case]]]:
    for name, at in PRESET_INSTANTS.items():
        layout = Layout.read(name)
        node = str(mix(len(name)) % layout.nodes) if layout.node_fields else None
        next_tick = at + layout.tick_ms
        yield (
            f"preset-{name}",
            f"a few IDs of {name} with its defaults",
            on(name, node),
            [one(at), one(), try_one(), batch(3), one(next_tick), batch(2, next_tick + 10**6)],
        )
        yield (
            f"preset-{name}-ends",
            f"{name}: its first tick, its last, and just outside",
            on(name, node, ZERO),
            [
                try_one(layout.epoch_ms - 1),
                one(layout.epoch_ms),
                one(layout.ends_at_ms),
                one(layout.ends_at_ms - layout.tick_ms),
                try_one(layout.ends_at_ms + 1),
                one(layout.ends_at_ms),
            ],
        )
    yield (
        "defaults",
        "only the node is given: twitter, spread, 1000 ms back, 0 ms ahead",
        {"node": "378"},
        [one(T), one(), one(T - 1000), try_one(T - 1001), one(T + 1)],
    )
    yield (
        "fresh-tick-zero",
        "each fresh tick starts at 0",
        on("twitter", "378", ZERO),
        [one(T), one(T + 1), one(T + 2), one(T + 1000), one(), one()],
    )
    yield (
        "fresh-tick-spread",
        "tick and node decide where a fresh tick starts, in the first quarter of the sequence",
        on("twitter", "378"),
        [one(T + i) for i in range(8)],
    )
    for node in ("0", "1", "2", "1022", "1023"):
        yield (
            f"spread-node-{node}",
            "the node changes the start",
            on("twitter", node),
            [one(T), one(T + 1), one(T + 2)],
        )
    yield (
        "spread-named",
        "spread, given by name, is the default",
        on("twitter", "378", {"sequence_start": "spread"}),
        [one(T), one(T + 1)],
    )
    yield (
        "node-as-map",
        "a map of fields gives the whole node 378, and the same IDs",
        on("twitter", {"datacenter": "11", "worker": "26"}),
        [one(T), one(T + 1)],
    )
    yield (
        "node-on-every-side",
        "node fields above the time, below it and below the sequence",
        on(SIDES, {"region": "2", "rack": "5", "worker": "19", "slot": "1"}),
        [one(T), batch(4), one(T + 1), one(T)],
    )
    yield (
        "spread-wide-node",
        "only the lowest 16 bits of a node affect the start",
        on("baidu", "4194303"),
        [one(1484799346000), one(1484799347000), one(1484799348000)],
    )
    for node in ("4294967295", "65536", "131072", "65537"):
        yield (
            f"spread-node-of-32-bits-{node}",
            "the node, shifted up by 48, keeps its lowest 16 bits",
            on("timestamp:22|node:32|sequence:10@1656432000000/1s", node),
            [one(T), one(T + 1000), one(T + 2000)],
        )
    yield (
        "spread-wide-tick",
        "ticks of more than 48 bits overlap the node's bits",
        on("timestamp:52|node:8|sequence:4@0/1ms", "255"),
        [one(2**51 + 1), one(2**51 + 2), one(2**52 - 1)],
    )
    for bits in (1, 2, 3, 4):
        step_ticks = [one(T + i) for i in range(4)]
        yield (
            f"spread-sequence-of-{bits}-bits",
            "the start is taken modulo a quarter of the sequence, and at least 1",
            on(f"timestamp:41|node:4|sequence:{bits}@{TWITTER_EPOCH}/1ms", "9"),
            [*step_ticks, batch(2, T + 4), try_one(), *[try_one()] * (2**bits - 2)],
        )
    yield (
        "sequence-of-1-bit",
        "two IDs per tick",
        on(f"timestamp:41|node:4|sequence:1@{TWITTER_EPOCH}/1ms", "9", ZERO, NO_WAIT),
        [one(T), one(), one(), one(T + 1), one(), one(), batch(2, T + 2), batch(3, T + 3)],
    )
    yield (
        "sequence-of-32-bits",
        "the start is anywhere in a quarter of 2^32",
        on("timestamp:32|sequence:32@0/1s", None),
        [one(T), one(), batch(100), one(T + 1000), batch(2, T + 5000)],
    )
    yield (
        "sequence-of-32-bits-zero",
        "timestamp and sequence fill all 64 bits",
        on("timestamp:32|sequence:32@0/1s", None, ZERO),
        [one(T), one(), batch(100), one(4294967295999), one(), try_one(4294967296000)],
    )
    yield (
        "many-in-one-tick",
        "a whole tick from 0, then exhausted",
        on("twitter", "378", ZERO),
        [batch(4096, T), try_one(), try_one(), one(T + 1)],
    )
    yield (
        "many-in-one-tick-spread",
        "the sequence below the start is not used in a fresh tick",
        on("twitter", "378", NO_WAIT),
        [one(T), batch(3000), batch(4096), one(T + 1), batch(4095), one(), batch(2, T + 3)],
    )
    yield (
        "counting-on",
        "after a tick is used up, the next starts at 0 and not at its spread start",
        on("twitter", "378", NO_WAIT),
        [batch(4096, T), one(T + 1), one(), one(T + 2)],
    )
    yield (
        "counting-on-full-load",
        "ticks used up one after the other: all of each is used",
        on(SMALL, "5", NO_WAIT),
        [batch(4, 2000), batch(4, 2001), batch(4, 2002), batch(4, 2003), one(2003), one(2005)],
    )
    yield (
        "counting-on-skipped",
        "a tick used up and one skipped: the next tick is fresh",
        on("tsid", "4", NO_WAIT),
        [batch(4096, T), batch(4096, T + 1), one(T + 1), one(T + 3)],
    )
    yield (
        "exhausted-try",
        "try_next_id says how long it would have taken, and changes nothing",
        on(SMALL, "5", ZERO),
        [batch(4, 2000), try_one(), try_one(), one(2001)],
    )
    yield (
        "exhausted-no-wait",
        "next_id with max_wait_ms 0 is try_next_id",
        on(SMALL, "5", ZERO, NO_WAIT),
        [batch(4, 2000), one(), one(), one(2001)],
    )
    yield (
        "exhausted-clock-stands",
        "next_id waits, but gives up if the clock does not move",
        on(SMALL, "5", ZERO, SHORT_WAIT),
        [batch(4, 2000), one(), one(), one(2001)],
    )
    yield (
        "exhausted-10ms",
        "it waits for the start of the next tick, counted from the epoch",
        on(COARSE, "5", ZERO, SHORT_WAIT),
        [batch(4, 2005), try_one(), try_one(2006), try_one(2014), one(2012), one(2015)],
    )
    yield (
        "exhausted-1s",
        "the same with ticks of one second",
        on(SLOW, "5", ZERO, SHORT_WAIT),
        [batch(4, 65000), try_one(), try_one(65001), try_one(65999), one(65500), one(66000)],
    )
    yield (
        "exhausted-sonyflake",
        "256 IDs in 10 ms",
        on("sonyflake", "4660", ZERO, SHORT_WAIT),
        [batch(256, T), try_one(), batch(2), one(T + 10)],
    )
    yield (
        "wait",
        "next_id waits for the next tick",
        on(SMALL, "5", ZERO, LONG_WAIT),
        [
            batch(4, 2000),
            one(2000, wait=(1, 2001)),
            batch(3, 2001),
            one(2001, wait=(1, 2002)),
            try_one(2002),
        ],
    )
    left = 4096 - mix((T - TWITTER_EPOCH) ^ (378 << 48)) % 1024
    yield (
        "wait-spread",
        "after a wait, the tick starts at 0",
        on("twitter", "378", LONG_WAIT),
        [batch(left, T), one(T, wait=(1, T + 1)), one(T + 1), one(T + 2)],
    )
    yield (
        "wait-10ms",
        "in a tick of 10 ms, with a clock that moves by 3 at each reading",
        on(COARSE, "5", LONG_WAIT),
        [batch(4, 2007), one(2007, wait=(3, 2016)), one(2018), one(2024, wait=(1, 2024))],
    )
    yield (
        "wait-1s",
        "a tick of one second, with the clock near its end",
        on(SLOW, "5", LONG_WAIT),
        [batch(4, 65995), one(65995, wait=(5, 66003)), one(66990), one(66999)],
    )
    yield (
        "wait-1s-jump",
        "the clock jumps to the next second at its second reading",
        on(SLOW, "5", LONG_WAIT),
        [batch(4, 65990), one(65990, wait=(1000, 66500)), try_one(66500)],
    )
    yield (
        "wait-batch",
        "a batch that begins on a used-up tick waits too",
        on(SMALL, "5", LONG_WAIT),
        [batch(4, 2000), batch(4, 2000, wait=(1, 2001)), batch(4, 2001, wait=(1, 2002))],
    )
    yield (
        "wait-batch-10ms",
        "the same with ticks of 10 ms",
        on("sonyflake", "4660", ZERO, LONG_WAIT),
        [batch(256, T), batch(256, T, wait=(2, T + 10)), batch(2, T + 10, wait=(5, T + 22))],
    )
    yield (
        "wait-borrowing",
        "with borrowing, it waits for the tick less max_ahead_ms",
        on(SMALL, "5", LONG_WAIT, ahead=2),
        [batch(12, 2000), try_one(), one(2000, wait=(1, 2001)), batch(3, 2001), try_one()],
    )
    yield (
        "wait-step-back",
        "a tolerated step back, and the sequence runs out: it waits for the tick after",
        on(SMALL, "5", ZERO, LONG_WAIT),
        [batch(3, 2004), one(2001), one(2001, wait=(1, 2005)), one(2005)],
    )
    yield (
        "batch-clock-stands",
        "a batch gives up if the clock does not move; the slots it took are lost, not repeated",
        on(SMALL, "5", ZERO, SHORT_WAIT),
        [batch(6, 2000), try_one(), one(2001), batch(4), one(2002)],
    )
    yield (
        "step-back-within",
        "the clock steps back within the bound: the last tick continues",
        on("twitter", "378", ZERO),
        [one(T), one(T - 1), one(T - 500), one(T - 1000), one(T), one(T + 1)],
    )
    yield (
        "step-back-bound",
        "exactly at the bound and one ms past it",
        on("twitter", "378", ZERO, backward=5),
        [one(T), one(T - 5), try_one(T - 6), one(T - 6), one(T - 5), one(T + 1)],
    )
    yield (
        "step-back-past",
        "past the bound: an immediate error, also from next_id and next_ids; nothing is issued",
        on("twitter", "378", ZERO, backward=5),
        [one(T), one(T - 100), try_one(), batch(3), one(T - 7), one(T), one(T + 1)],
    )
    yield (
        "step-back-hours",
        "a clock set back by hours",
        on("twitter", "378"),
        [one(T), one(T - 7200000), one(T - 3600000), one(T - 1001), one(T - 1000), one(T + 1)],
    )
    yield (
        "step-back-recovery",
        "it recovers once the clock is within the bound again",
        on("twitter", "378"),
        [one(T), try_one(T - 5000), try_one(T - 2000), one(T - 900), batch(2, T), one(T + 7)],
    )
    yield (
        "step-back-past-used-up",
        "past the bound, with the last tick used up: it takes until the tick after",
        on(SMALL, "5", ZERO, SHORT_WAIT, backward=5),
        [batch(4, 2100), try_one(2090), one(2090), try_one(2094), try_one(2095), one(2101)],
    )
    yield (
        "step-back-runs-out",
        "within the bound, until the sequence of the last tick runs out: the clock is the cause",
        on(SMALL, "5", ZERO, SHORT_WAIT),
        [batch(2, 2100), one(2090), one(2091), try_one(2092), one(2092), try_one(2100), one(2101)],
    )
    yield (
        "step-back-runs-out-10ms",
        "the same with ticks of 10 ms",
        on(COARSE, "5", ZERO, SHORT_WAIT, backward=50),
        [
            batch(4, 2105),
            try_one(2104),
            try_one(2100),
            one(2093),
            try_one(2055),
            try_one(2054),
            try_one(2114),
            one(2115),
        ],
    )
    yield (
        "step-back-none",
        "with max_backward_ms 0, every step back of a tick is an error",
        on("twitter", "378", ZERO, backward=0),
        [one(T), one(T - 1), one(T), one(), one(T + 1), try_one(T), one(T + 1)],
    )
    yield (
        "step-back-none-10ms",
        "max_backward_ms 0 and a step back within a tick of 10 ms, which stays the same tick",
        on(COARSE, "5", ZERO, backward=0),
        [one(2014), one(2005), try_one(2004), try_one(1996), one(2014), one(2007)],
    )
    yield (
        "bounds-round",
        "10 ms ticks: 15 ms back is rounded up to 2 ticks, 15 ms ahead down to 1",
        on(COARSE, "5", ZERO, NO_WAIT, backward=15, ahead=15),
        [batch(8, 2105), one(), batch(1, 2095), one(2115), try_one(2080), one(2095), one(2084)],
    )
    yield (
        "bounds-round-back",
        "1 ms back is one tick of 10 ms",
        on(COARSE, "5", ZERO, backward=1),
        [one(2105), one(2104), one(2095), try_one(2094), one(2095), try_one(2104)],
    )
    yield (
        "bounds-round-back-11",
        "11 ms back is two ticks of 10 ms",
        on(COARSE, "5", ZERO, backward=11),
        [one(2105), one(2085), try_one(2084), one(2105)],
    )
    yield (
        "bounds-round-ahead",
        "9 ms ahead is less than a tick of 10 ms",
        on(COARSE, "5", ZERO, NO_WAIT, ahead=9),
        [batch(4, 2105), one(), one(2114), one(2115)],
    )
    yield (
        "bounds-round-1s",
        "the default of 1000 ms back is one tick of one second; so is 1999 ms ahead",
        on(SLOW, "5", ZERO, NO_WAIT, ahead=1999),
        [batch(8, 65000), one(), one(64999), batch(4, 66000), try_one(64000), try_one(63999)],
    )
    yield (
        "bounds-largest",
        "the largest bounds",
        on("twitter", "378", ZERO, backward=2**32 - 1, ahead=2**32 - 1),
        [batch(5000, T), one(T - 2**32), one(T - 2**33), try_one(T - 2**33 - 1), one(T)],
    )
    yield (
        "borrow",
        "up to max_ahead_ms ahead, then exhausted",
        on(SMALL, "5", NO_WAIT, ahead=3),
        [*[batch(4, 2000)] * 4, one(), try_one(), one(2001), batch(3), batch(1), one(2002)],
    )
    yield (
        "borrow-one-by-one",
        "next_id borrows too, and so does try_next_id",
        on(SMALL, "5", ZERO, ahead=1),
        [one(2000), *[one()] * 3, *[try_one()] * 5],
    )
    yield (
        "borrow-spread",
        "only the first tick starts spread; the borrowed ones start at 0",
        on("yitter", "3", NO_WAIT, ahead=2),
        [batch(100, T), one(), batch(200), one(T + 1), one(T + 50)],
    )
    yield (
        "borrow-caught-up",
        "the clock catches up with the borrowed ticks, then passes them",
        on(SMALL, "5", ZERO, NO_WAIT, ahead=5),
        [batch(10, 2000), one(2001), one(2002), one(2003), one(2003), one(2004), one(2009)],
    )
    yield (
        "borrow-10ms",
        "how long to wait, from the middle of a tick",
        on(COARSE, "5", ZERO, NO_WAIT, ahead=20),
        [batch(12, 2108), try_one(), try_one(2114), one(2115), try_one(2109)],
    )
    yield (
        "borrow-step-back",
        "a step back is measured from the cursor less max_ahead_ms",
        on(SMALL, "5", ZERO, NO_WAIT, ahead=3, backward=2),
        [
            batch(14, 2100),
            one(2098),
            try_one(2097),
            one(2098),
            try_one(2098),
            try_one(2097),
            try_one(2100),
            one(2101),
        ],
    )
    yield (
        "borrow-room-on-step-back",
        "nothing borrowed yet: a step back within max_ahead_ms is not a rollback",
        on(SMALL, "5", ZERO, NO_WAIT, ahead=3, backward=0),
        [one(2100), one(2097), try_one(2096), batch(2, 2097), one(2097), one(2098)],
    )
    yield (
        "borrow-rollback-wait",
        "the last tick is used up and the clock is behind it: next_id waits and gives up",
        on(SMALL, "5", ZERO, SHORT_WAIT, ahead=1, backward=10),
        [batch(8, 2100), one(2100), one(2099), try_one(2095), try_one(2089), one(2101)],
    )
    yield (
        "before-the-epoch",
        "no ID before the epoch",
        on("twitter", "378", ZERO),
        [one(TWITTER_EPOCH - 1), try_one(0), batch(2), one(TWITTER_EPOCH), one()],
    )
    yield (
        "before-the-epoch-later",
        "before the epoch is checked before any rollback",
        on(SMALL, "5", ZERO),
        [one(2000), one(999), try_one(0), one(1000), one(2000)],
    )
    yield (
        "negative-clock",
        "a clock before 1970",
        on("mastodon", None, ZERO),
        [one(-1), try_one(-(2**63)), batch(2), one(0), one(1), try_one(-1), one(1)],
    )
    yield (
        "negative-clock-twitter",
        "a clock before 1970 under a later epoch",
        on("twitter", "378", ZERO),
        [one(-1), try_one(-(2**63)), one(T)],
    )
    yield (
        "far-future-clock",
        "the last instant that a clock can return",
        on("twitter", "378", ZERO),
        [one(2**63 - 1), one(T), try_one(2**63 - 1), one(T)],
    )
    yield (
        "last-tick",
        "the last tick and past it",
        on(SHORT, "1", ZERO),
        [
            one(1014),
            one(1015),
            one(1016),
            try_one(1017),
            one(1015),
            one(),
            try_one(5000),
            one(1015),
        ],
    )
    yield (
        "last-tick-used-up",
        "there is no tick after the last: out of range at once, not exhausted",
        on(SHORT, "1", ZERO, LONG_WAIT),
        [batch(4, 1015), one(), try_one(), batch(2), one(1014), try_one(1016)],
    )
    yield (
        "last-tick-batch",
        "a batch past the end fails, and the slots it took are lost",
        on(SHORT, "1", ZERO, LONG_WAIT),
        [batch(5, 1015), try_one(), one(1015)],
    )
    yield (
        "last-tick-10ms",
        "the last tick lasts 10 ms",
        on(SHORT_COARSE, "1", ZERO),
        [one(1155), one(1164), try_one(1165), one(1160), one(1155), try_one(1155)],
    )
    yield (
        "last-tick-borrowing",
        "borrowing ends at the last tick",
        on(SHORT, "1", ZERO, NO_WAIT, ahead=5),
        [batch(12, 1013), one(), one(1014), batch(1, 1015), try_one(1008)],
    )
    yield (
        "last-tick-borrowing-batch",
        "a batch that would borrow past the end",
        on(SHORT, "1", ZERO, NO_WAIT, ahead=50),
        [batch(60, 1000), batch(4), try_one(), try_one(1015)],
    )
    yield (
        "last-tick-rollback",
        "past the bound, from the end of the last tick",
        on(SHORT, "1", ZERO, backward=2),
        [batch(3, 1015), try_one(1012), one(1013), try_one(1012), try_one(1013), one(1015)],
    )
    yield (
        "baidu-ran-out",
        "baidu's 28 bits of seconds end on 2024-11-20",
        on("baidu", "4", ZERO),
        [one(1732109055999), one(1732109056000), try_one(1767225600000), one(1732109055999)],
    )
    yield (
        "sequence-above-node",
        "sonyflake: the sequence is above the machine",
        on("sonyflake", "65535", ZERO, NO_WAIT),
        [one(T), one(), one(), batch(5), one(T + 10), one(T + 9), batch(256), one(T + 20)],
    )
    yield (
        "seata",
        "the worker is above the time",
        on("seata", "1023", ZERO),
        [one(T), one(), batch(4), one(T + 1), one(T), try_one(T - 1000), one(T + 2)],
    )
    yield (
        "no-node-field",
        "a layout without node fields",
        on("timestamp:41|sequence:22@1288834974657/1ms", None),
        [one(T), one(), batch(5), one(T + 1)],
    )
    yield (
        "no-node-field-0",
        "a layout without node fields, and node 0",
        on("mastodon", "0", ZERO),
        [one(T), one(), one(T + 1)],
    )
    yield (
        "64-bits-full",
        "IDs with the top bit set",
        on("timestamp:42|node:10|sequence:12@0/1ms", "1023", ZERO),
        [one(T), one(2**41), one(2**42 - 1), batch(4095), try_one(), try_one(2**42)],
    )
    yield (
        "64-bits-no-node",
        "63 bits of time and one of sequence: the cursor fills 64 bits, and nothing wraps",
        on("timestamp:63|sequence:1@0/1ms", None, ZERO),
        [
            one(2**62),
            one(2**63 - 1),
            one(),
            one(),
            try_one(),
            try_one(2**63 - 2),
            one(2**63 - 1002),
            try_one(1),
        ],
    )
    yield (
        "64-bits-no-node-ahead",
        "borrowing at the end of time",
        on("timestamp:63|sequence:1@0/1ms", None, ZERO, NO_WAIT, ahead=2**32 - 1),
        [batch(4, 2**63 - 2), one(), one(2**63 - 1), try_one(5)],
    )
    yield (
        "53-bits",
        "js-safe: every ID is exact as a JavaScript Number",
        on("js-safe", "15", ZERO, NO_WAIT),
        [one(1767225600123), batch(255), one(), one(1767225600124), one(1735689600000 + 2**41 - 1)],
    )
    yield (
        "slot-0-of-tick-0",
        "the cursor starts at 0, so the first ID of tick 0 has sequence 1",
        on(SMALL, "5", ZERO, NO_WAIT),
        [one(1000), batch(2), one(), one(1001)],
    )
    yield (
        "slot-0-of-tick-0-spread",
        "tick 0 counts on from the cursor, with spread too",
        on("twitter", "378"),
        [one(TWITTER_EPOCH), one(), one(TWITTER_EPOCH + 1)],
    )
    yield (
        "slot-0-of-tick-0-1-bit",
        "tick 0 has one ID left",
        on("timestamp:20|node:4|sequence:1@1000/1ms", "5", ZERO),
        [batch(1, 1000), try_one(), batch(2, 1001)],
    )
    yield (
        "batch-borrowing",
        "a batch over several ticks",
        on("twitter", "378", ZERO, NO_WAIT, ahead=3),
        [batch(10000, T), batch(6384), try_one(), batch(4096, T + 1), batch(1)],
    )
    yield (
        "batch-borrowing-small",
        "the same, with every ID shown",
        on(SMALL, "5", NO_WAIT, ahead=10),
        [batch(11, 2000), batch(2), one(2003), batch(5, 2001), one(2020)],
    )
    yield (
        "batch-fails-part-way",
        "the slots taken are lost: the next IDs come after them",
        on(SMALL, "5", ZERO, NO_WAIT),
        [one(2000), batch(4), try_one(), batch(2, 2001), batch(4), batch(5, 2002), batch(4, 2003)],
    )
    yield (
        "batch-fails-part-way-borrowing",
        "the same with borrowing",
        on(SMALL, "5", ZERO, NO_WAIT, ahead=2),
        [batch(13, 2000), try_one(), one(2001), batch(4), batch(4, 2002)],
    )
    yield (
        "batch-steps-back",
        "a batch on a clock that stepped back within the bound",
        on("twitter", "378", ZERO, NO_WAIT),
        [batch(10, T), batch(10, T - 50), batch(4076), batch(2), batch(2, T + 1)],
    )
    yield (
        "batch-of-one",
        "a batch of one is next_id",
        on("twitter", "378"),
        [batch(1, T), batch(1), batch(1, T + 1)],
    )
    yield (
        "batch-refused",
        "a batch has 1 to 2^24 IDs; one of another size takes none",
        on("twitter", "378", ZERO),
        [one(T), batch(0), batch(-1), batch(2**24 + 1), batch(2**63), batch(2**64), one()],
    )
    yield (
        "gaps",
        "long pauses between calls",
        on("instagram", "5431"),
        [one(T), one(T + 1000), one(T + 86400000), one(T + 31536000000)],
    )
    yield (
        "tick-of-1500ms",
        "a tick that is not a whole second",
        on("timestamp:32|node:8|sequence:16@0/1500ms", "200"),
        [one(T), one(), one(T + 1499), one(T + 1500), one(T), try_one(T - 3000)],
    )
    yield (
        "tick-of-a-minute",
        "max_backward_ms of less than a tick is one tick",
        on("timestamp:32|node:8|sequence:2@0/60s", "200", ZERO),
        [batch(4, 120000), try_one(120001), try_one(60000), try_one(59999), one(180000)],
    )


LONGEST_LIST = 16
LONGEST_REAL_WAIT = 20


def run_step(generator: Reference, step: Case, clock: ScriptClock, **how: bool) -> Case:
    """The outcome of a step's call."""
    try:
        if step["call"] == "next_ids":
            ids = generator.next_ids(int(step["n"]), clock, **how)
            if len(ids) > LONGEST_LIST:
                assert ids == sorted(set(ids))
                return {"run": {"count": str(len(ids)), "first": str(ids[0]), "last": str(ids[-1])}}
            return {"ids": [str(id_) for id_ in ids]}
        if step["call"] == "next_id":
            return {"id": str(generator.next_id(clock))}
        return {"id": str(generator.try_next_id(clock.read()))}
    except Refused as refused:
        if refused.blocked and step["call"] != "try_next_id":
            # The call gives up after max_wait_ms of real time, which must be short.
            assert "until" not in step
            assert generator.options.max_wait_ms <= LONGEST_REAL_WAIT
        carried = {"behind_ms": refused.behind_ms, "retry_after_ms": refused.retry_after_ms}
        return {"error": refused.name} | {k: str(v) for k, v in carried.items() if v is not None}


def run_script(given: Case, steps: Iterable[Case], **model: Any) -> list[Case]:
    """Returns each step's outcome; `model` says how a generator reads the clock."""
    generator = Reference(Options.read(options_from_texts(given)))
    one_reading_a_run = model.pop("one_reading_a_run", False)
    held, outcomes = 0, []
    for step in steps:
        held = int(step.get("clock", held))
        clock = ScriptClock(
            held, int(step.get("advance", 0)), int(step.get("until", held)), **model
        )
        how = {"one_reading_a_run": one_reading_a_run} if step["call"] == "next_ids" else {}
        outcomes.append(run_step(generator, step, clock, **how))
    return outcomes


# Ways to read the clock that must not change a script's outcome.
READING_MODELS: list[dict[str, Any]] = [
    {},
    {"one_reading_a_run": True},
    {"stride": 2},
    {"stride": 3, "one_reading_a_run": True},
    {"stride": 10**9},
    {"skip": 1},
    {"skip": 10**9},
]


def scripts() -> Iterator[Case]:
    names = set()
    for name, why, given, steps in script_inputs():
        assert name not in names, name
        names.add(name)
        outcomes = run_script(given, steps)
        for model in READING_MODELS:
            if run_script(given, steps, **model) != outcomes:
                raise AssertionError(f"script {name} depends on how often the clock is read")
        assert "clock" in steps[0], name
        for step, following in itertools.pairwise(steps):
            # Once a clock has moved, its time is undefined.
            assert "until" not in step or "clock" in following, name
        yield {
            "name": name,
            "why": why,
            "options": given,
            "steps": [s | o for s, o in zip(steps, outcomes, strict=True)],
        }
