"""The installed package with Python's own types, which the vectors do not cover.

In one process, Snowflakes on a built-in clock share a cursor for each node, so each test here that
uses a built-in clock takes its own node from NODES.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import itertools
import pickle
import threading
import uuid
import weakref
from array import array
from collections.abc import Callable, Iterator, Mapping
from ctypes import c_int64, c_uint64
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from types import MappingProxyType
from typing import Any

import numpy as np
import polyflake
import pytest
from polyflake import (
    PRESETS,
    ClockMovedBackwardsError,
    InvalidIdError,
    InvalidNodeError,
    InvalidOptionError,
    Layout,
    PolyflakeError,
    SequenceExhaustedError,
    Snowflake,
    TimeOutOfRangeError,
    format_id,
    parse_id,
)

NODES = itertools.count(100)
T = 1_700_000_000_000
TWITTER = "timestamp:41|datacenter:5|worker:5|sequence:12@1288834974657/1ms"
# A tick holds enough IDs that they never run out, even if the clock is stopped.
ROOMY = Layout("timestamp:30|worker:8|sequence:25@1577203200000/1s")
ALL_64_BITS = Layout("timestamp:48|sequence:16@0/1ms")


def held() -> int:
    """A clock that always returns the same time."""
    return T


def ticking() -> Callable[[], int]:
    """A clock that advances by 1 ms with each reading."""
    return itertools.count(T).__next__


class Seven:
    """An integer but not an int, like NumPy's integers."""

    def __index__(self) -> int:
        return 7


# Nodes and layouts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "node",
    [
        39,
        {"datacenter": 1, "worker": 7},
        {"worker": 7, "datacenter": 1},
        MappingProxyType({"datacenter": 1, "worker": 7}),
        {"datacenter": np.uint8(1), "worker": Seven()},
        np.int64(39),
        np.uint8(39),
    ],
    ids=repr,
)
def test_a_node_is_an_integer_or_a_mapping(node: Any) -> None:
    ids = Snowflake(node=node, clock=held)
    assert ids.node == 39
    assert type(ids.node) is int
    decoded = ids.decode(ids.next_id())
    assert decoded.node == 39
    assert decoded.fields == {"datacenter": 1, "worker": 7}
    assert list(decoded.fields) == ["datacenter", "worker"]


@pytest.mark.parametrize("none", [None, 0, {}], ids=repr)
def test_a_layout_without_node_field_needs_no_node(none: Any) -> None:
    ids = Snowflake(layout="mastodon", node=none, clock=held)
    assert ids.node == 0
    assert ids.decode(ids.next_id()).fields == {}


@pytest.mark.parametrize(
    "layout",
    [
        Layout("twitter"),
        Layout(Layout("twitter")),
        Layout(TWITTER),
        Layout(
            fields={"timestamp": 41, "datacenter": 5, "worker": 5, "sequence": 12},
            epoch_ms=1288834974657,
        ),
        Layout(
            fields=[("timestamp", 41), ("datacenter", 5), ("worker", np.int8(5)), ("sequence", 12)],
            epoch_ms=np.int64(1288834974657),
            tick_ms=1,
        ),
        Layout(
            fields=iter([("timestamp", 41), ("datacenter", 5), ("worker", 5), ("sequence", 12)]),
            epoch_ms=1288834974657,
        ),
    ],
    ids=["preset", "layout", "text", "mapping", "pairs", "iterator"],
)
def test_equal_layouts_are_equal_in_every_form(layout: Layout) -> None:
    assert layout == Layout(TWITTER)
    assert (layout != Layout(TWITTER)) is False
    assert hash(layout) == hash(Layout(TWITTER))
    assert {layout: "found"}[Layout("twitter")] == "found"
    assert str(layout) == TWITTER
    assert repr(layout) == f"Layout('{TWITTER}')"
    assert eval(repr(layout)) == layout
    assert Snowflake(layout=layout, node=1, clock=held).layout == layout
    assert Snowflake(layout=str(layout), node=1, clock=held).layout == layout
    assert Snowflake(node=1, clock=held).layout == layout


@pytest.mark.parametrize("other", [Layout("leaf"), TWITTER, None, 1, ("twitter",)], ids=repr)
def test_what_a_layout_does_not_equal(other: object) -> None:
    assert Layout("twitter") != other
    assert other != Layout("twitter")
    assert (Layout("twitter") == other) is False


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_printed_and_copied(name: str) -> None:
    layout = Layout(name)
    assert Layout(str(layout)) == layout
    assert copy.copy(layout) == layout
    assert copy.deepcopy({"layout": layout}) == {"layout": layout}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(layout, protocol)) == layout


def test_the_properties_of_a_layout() -> None:
    layout = Layout("twitter")
    assert (layout.epoch_ms, layout.tick_ms) == (1288834974657, 1)
    assert layout.epoch == datetime(2010, 11, 4, 1, 42, 54, 657000, UTC)
    assert layout.ends_at == datetime(2080, 7, 10, 17, 30, 30, 208000, UTC)
    assert layout.ends_at_ms == 3487858230208
    assert (layout.ids_per_tick, layout.nodes, layout.total_bits) == (4096, 1024, 63)
    assert (layout.timestamp_bits, layout.timestamp_shift) == (41, 22)
    assert (layout.sequence_bits, layout.sequence_shift, layout.node_bits) == (12, 0, 10)
    assert [(field.name, field.bits, field.shift, field.mask) for field in layout.fields] == [
        ("timestamp", 41, 22, (2**41 - 1) << 22),
        ("datacenter", 5, 17, 31 << 17),
        ("worker", 5, 12, 31 << 12),
        ("sequence", 12, 0, 4095),
    ]
    assert layout.fields == Layout(TWITTER).fields
    assert hash(layout.fields[0]) == hash(Layout(TWITTER).fields[0])
    assert layout.fields[1] != layout.fields[2]
    assert repr(layout.fields[0]) == "Field(name='timestamp', bits=41, shift=22)"


def test_a_layout_that_outlives_datetime() -> None:
    layout = Layout("mastodon")
    assert layout.epoch == datetime(1970, 1, 1, tzinfo=UTC)
    assert layout.ends_at is None
    assert layout.ends_at_ms == 2**48 - 1
    last = layout.decode(2**64 - 1)
    assert (last.time, last.timestamp_ms) == (None, 2**48 - 1)
    assert repr(last) == f"Decoded(id={2**64 - 1}, time=None, sequence=65535)"
    year_9999 = 253402300799999
    assert layout.decode(layout.min_id(year_9999)).time == datetime(
        9999, 12, 31, 23, 59, 59, 999000, UTC
    )
    assert layout.decode(layout.min_id(year_9999 + 1)).time is None


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Layout("twitter"), "epoch_ms"),
        (Layout("twitter"), "other"),
        (Layout("twitter").fields[0], "bits"),
        (Layout("twitter").decode(1), "id"),
        (Layout("twitter").decode_all(array("Q")), "ids"),
        (Snowflake(node=1, clock=held), "node"),
        (Snowflake(node=1, clock=held).stats, "waits"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_values_are_immutable(value: object, name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(value, name, 5)


def test_none_means_the_default() -> None:
    node = next(NODES)
    ids = Snowflake(
        layout=None,
        node=node,
        max_backward_ms=None,
        max_ahead_ms=None,
        max_wait_ms=None,
        sequence_start=None,
        clock=None,
    )
    assert repr(ids) == f"Snowflake(layout='{TWITTER}', node={node})"
    assert increasing([Snowflake(node=node).next_id(), ids.next_id()])
    layout = Layout("leaf")
    parts = {"timestamp": 41, "worker": 10, "sequence": 12}
    assert Layout(None, fields=parts, epoch_ms=layout.epoch_ms, tick_ms=None) == layout


# Decoding ----------------------------------------------------------------------------------------


def test_decoded() -> None:
    layout = Layout("discord")
    decoded = layout.decode(175928847299117063)
    assert decoded.id == 175928847299117063
    assert decoded.layout == layout
    assert decoded.time == datetime(2016, 4, 30, 11, 18, 25, 796000, UTC)
    assert decoded.time is not None
    assert decoded.time.tzinfo is UTC
    assert decoded.timestamp_ms == 1462015105796
    assert decoded.ticks == 1462015105796 - 1420070400000
    assert decoded.fields == {"worker": 1, "process": 0}
    assert (decoded.node, decoded.sequence) == (32, 7)
    assert repr(decoded) == (
        "Decoded(id=175928847299117063, time=2016-04-30T11:18:25.796000+00:00, "
        "worker=1, process=0, sequence=7)"
    )


def test_times_of_days_in_all_years() -> None:
    for day in range(date(1970, 1, 1).toordinal(), date.max.toordinal() + 1, 127):
        midnight = datetime.fromordinal(day).replace(tzinfo=UTC)
        for after in (timedelta(), timedelta(milliseconds=1), timedelta(days=1, milliseconds=-1)):
            time = ALL_64_BITS.decode(ALL_64_BITS.min_id(midnight + after)).time
            assert time == midnight + after
            assert time.tzinfo is UTC
            assert pickle.loads(pickle.dumps(time)) == time


def test_decoded_is_a_value() -> None:
    layout = Layout("discord")
    decoded = layout.decode(175928847299117063)
    same = Snowflake(layout=layout, node=3, clock=held).decode(np.uint64(175928847299117063))
    assert decoded == same
    assert hash(decoded) == hash(same)
    assert decoded != layout.decode(175928847299117064)
    assert decoded != Layout("twitter").decode(175928847299117063)
    assert decoded != 175928847299117063
    assert copy.copy(decoded) == decoded
    assert copy.deepcopy([decoded]) == [decoded]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(decoded, protocol))
        assert (again, again.layout, repr(again)) == (decoded, layout, repr(decoded))


def ids_of(layout: Layout, count: int) -> list[int]:
    """IDs that use all the bits of a layout."""
    return [
        (number * 0x9E3779B97F4A7C15) >> 3 & 2**layout.total_bits - 1 for number in range(count)
    ]


@pytest.mark.parametrize("preset", PRESETS)
def test_decode_all_gives_what_decode_gives(preset: str) -> None:
    layout = Layout(preset)
    ids = ids_of(layout, 100)
    each = [layout.decode(id) for id in ids]
    columns = layout.decode_all(array("Q", ids))
    assert len(columns) == len(ids)
    assert columns.layout is layout
    assert columns.ids.tolist() == ids
    assert columns.timestamps_ms.tolist() == [decoded.timestamp_ms for decoded in each]
    assert columns.ticks.tolist() == [decoded.ticks for decoded in each]
    assert columns.nodes.tolist() == [decoded.node for decoded in each]
    assert columns.sequences.tolist() == [decoded.sequence for decoded in each]
    rows = zip(*columns.fields.values(), strict=True) if columns.fields else [()] * len(ids)
    fields = [dict(zip(columns.fields, row, strict=True)) for row in rows]
    assert fields == [decoded.fields for decoded in each]


def test_numpy_takes_columns_without_copying() -> None:
    columns = Layout("discord").decode_all(np.array([175928847299117063] * 3, np.int64))
    assert np.asarray(columns.ids).dtype == np.uint64
    for column in (
        columns.timestamps_ms,
        columns.ticks,
        columns.nodes,
        columns.sequences,
        *columns.fields.values(),
    ):
        taken = np.asarray(column)
        assert taken.dtype == np.int64
        assert np.shares_memory(taken, np.asarray(column))
        assert column.readonly
    times = np.asarray(columns.timestamps_ms).view("datetime64[ms]")
    assert times[2] == np.datetime64("2016-04-30T11:18:25.796")
    assert columns.timestamps_ms is columns.timestamps_ms
    assert columns.fields["worker"] is columns.fields["worker"]


def test_the_fields_of_decoded_ids_are_a_copy() -> None:
    columns = Layout("discord").decode_all(array("Q", [175928847299117063]))
    columns.fields.clear()
    assert list(columns.fields) == ["worker", "process"]


def test_a_decoded_buffer_is_released_and_may_change() -> None:
    layout = Layout("discord")
    buffer = array("Q", [175928847299117063])
    columns = layout.decode_all(buffer)
    buffer.append(1)
    buffer[0] = 2
    assert columns.sequences.tolist() == [7]
    with pytest.raises(InvalidIdError):
        Layout("js-safe").decode_all(array("Q", [2**63]))
    buffer.append(1)


def test_decoded_ids_are_a_value() -> None:
    layout = Layout("discord")
    columns = layout.decode_all(array("Q", [1, 175928847299117063]))
    assert columns.ids.tolist() == [1, 175928847299117063]
    same = layout.decode_all(np.array([1, 175928847299117063], np.int64))
    assert columns == same
    assert hash(columns) == hash(same)
    assert columns != layout.decode_all(array("Q", [1, 2]))
    assert columns != Layout("twitter").decode_all(array("Q", [1, 175928847299117063]))
    assert repr(columns) == f"DecodedAll(2 IDs, layout='{layout}')"
    assert copy.deepcopy([columns]) == [columns]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(columns, protocol)) == columns


def test_the_fields_of_a_decoded_id_are_a_copy() -> None:
    decoded = Layout("discord").decode(175928847299117063)
    decoded.fields["worker"] = 9
    assert decoded.fields == {"worker": 1, "process": 0}


@pytest.mark.parametrize(
    "attempt",
    [copy.copy, copy.deepcopy, *(lambda ids, p=p: pickle.dumps(ids, p) for p in range(6))],
    ids=["copy", "deepcopy", *(f"pickle-{protocol}" for protocol in range(6))],
)
@pytest.mark.parametrize("clock", [held, "system"])
def test_a_snowflake_cannot_be_copied(attempt: Callable[[Snowflake], object], clock: Any) -> None:
    ids = Snowflake(node=next(NODES), clock=clock)
    with pytest.raises(TypeError, match=r"cannot be pickled .* repeat IDs"):
        attempt(ids)
    assert ids.next_id() < ids.next_id()


# Time --------------------------------------------------------------------------------------------

INSTANT = datetime(2024, 2, 29, 12, 30, 15, 250000, UTC)
INSTANT_MS = 1709209815250


class DaylightSaving(tzinfo):
    """Clocks go back from +2 to +1 at 01:00 UTC; `fold` marks the repeat of that hour."""

    def utcoffset(self, when: datetime | None) -> timedelta:
        assert when is not None
        return timedelta(hours=1 if when.fold else 2)

    def dst(self, when: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, when: datetime | None) -> str:
        return "summer"


@pytest.mark.parametrize(
    "time",
    [
        INSTANT,
        INSTANT_MS,
        np.int64(INSTANT_MS),
        INSTANT.astimezone(timezone(timedelta(hours=5, minutes=45))),
        INSTANT.astimezone(timezone(timedelta(hours=-12))),
        INSTANT.astimezone(timezone(timedelta(seconds=1, microseconds=1))),
        datetime(2024, 2, 29, 14, 30, 15, 250000, DaylightSaving()),
        datetime(2024, 2, 29, 13, 30, 15, 250000, DaylightSaving(), fold=1),
    ],
    ids=str,
)
def test_an_instant_is_the_same_in_every_zone(time: Any) -> None:
    layout = Layout("twitter")
    assert layout.min_id(time) == (INSTANT_MS - layout.epoch_ms) << 22
    assert layout.max_id(time) == (INSTANT_MS - layout.epoch_ms) << 22 | (2**22 - 1)
    id = layout.compose(time, {"datacenter": 3, "worker": 4}, 5)
    assert id == (INSTANT_MS - layout.epoch_ms) << 22 | 3 << 17 | 4 << 12 | 5
    assert layout.decode(id).time == INSTANT


@pytest.mark.parametrize("layout", [Layout("twitter"), Layout("sonyflake"), ROOMY], ids=str)
@pytest.mark.parametrize("us", [-1, 1, 500, 999])
def test_microseconds_are_rounded_into_the_range(layout: Layout, us: int) -> None:
    """A tick's IDs represent its first instant, so a range that begins later excludes them."""
    assert layout.epoch is not None
    start = layout.epoch + timedelta(days=1)
    time = start + timedelta(microseconds=us)
    tick = timedelta(milliseconds=layout.tick_ms)
    before, after = (start - tick, start) if us < 0 else (start, start + tick)
    assert layout.min_id(time) == layout.min_id(after)
    assert layout.max_id(time) == layout.max_id(before)
    assert layout.decode(layout.compose(time, 0, 0)).time == before


def test_the_first_and_the_last_instant() -> None:
    layout = Layout("twitter")
    assert layout.epoch is not None
    assert layout.ends_at is not None
    us = timedelta(microseconds=1)
    assert layout.min_id(layout.epoch) == 0
    assert layout.max_id(layout.ends_at + 999 * us) == 2**63 - 1
    for call in (layout.min_id, layout.max_id, lambda time: layout.compose(time, 0, 0)):
        with pytest.raises(TimeOutOfRangeError):
            call(layout.epoch - us)
        with pytest.raises(TimeOutOfRangeError):
            call(layout.ends_at + 1000 * us)
    with pytest.raises(TimeOutOfRangeError):
        layout.min_id(layout.ends_at + us)


# Issuing -----------------------------------------------------------------------------------------


def increasing(ids: Any) -> bool:
    values = np.asarray(ids, dtype=np.uint64)
    return bool((values[1:] > values[:-1]).all())


def test_every_call_continues_after_the_last_id() -> None:
    ids = Snowflake(node=5, clock=held)
    buffer = array("Q", [0]) * 3
    issued = [ids.next_id(), ids.try_next_id(), next(ids), *ids.next_ids(3)]
    ids.fill(buffer)
    issued += buffer
    issued += itertools.islice(ids, 3)
    first = ids.decode(issued[0]).sequence
    assert [ids.decode(id).sequence for id in issued] == list(range(first, first + 12))
    assert {type(id) for id in issued} == {int}
    assert {(ids.decode(id).timestamp_ms, ids.decode(id).node) for id in issued} == {(T, 5)}


def test_a_snowflake_is_an_iterator() -> None:
    ids = Snowflake(node=5, clock=ticking())
    assert isinstance(ids, Iterator)
    assert iter(ids) is ids
    rows = dict(zip("abc", ids, strict=False))
    assert list(rows) == ["a", "b", "c"]
    assert increasing(list(rows.values()))


def test_the_ids_of_the_wall_clock_tell_the_time() -> None:
    ids = Snowflake(node=next(NODES))
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    decoded = ids.decode(ids.next_id())
    after = datetime.now(UTC)
    assert decoded.time is not None
    assert before <= decoded.time <= after


@pytest.mark.parametrize("clock", ["system", "steady"])
def test_the_builtin_clocks(clock: Any) -> None:
    ids = Snowflake(node=next(NODES), clock=clock)
    batch = ids.next_ids(20_000)
    assert len(batch) == 20_000
    assert increasing(batch)


def bytes_with_an_offset(count: int) -> memoryview:
    """A view of 8-byte integers that is not aligned to 8 bytes."""
    return memoryview(bytearray(8 * count + 1))[1:].cast("Q")


BUFFERS: Mapping[str, Callable[[int], Any]] = {
    "array-Q": lambda count: array("Q", bytes(8 * count)),
    "array-q": lambda count: array("q", bytes(8 * count)),
    "array-L": lambda count: array("L", bytes(8 * count)),
    "array-l": lambda count: array("l", bytes(8 * count)),
    "memoryview": lambda count: memoryview(bytearray(8 * count)).cast("Q"),
    "memoryview-signed": lambda count: memoryview(bytearray(8 * count)).cast("q"),
    "memoryview-unaligned": bytes_with_an_offset,
    "uint64": lambda count: np.zeros(count, np.uint64),
    "int64": lambda count: np.zeros(count, np.int64),
    "little-endian": lambda count: np.zeros(count, "<u8"),
    "slice": lambda count: np.zeros(count + 7, np.uint64)[5:-2],
    "two-dimensional": lambda count: np.zeros((1, count), np.uint64),
    "unaligned": lambda count: np.zeros(8 * count + 1, np.uint8)[1:].view(np.uint64),
    # ctypes buffers report no strides, which means they are contiguous.
    "ctypes": lambda count: (c_uint64 * count)(),
    "ctypes-signed": lambda count: (c_int64 * count)(),
    "ctypes-two-dimensional": lambda count: (c_uint64 * count * 1)(),
    "ctypes-unaligned": lambda count: (c_uint64 * count).from_buffer(bytearray(8 * count + 1), 1),
}
if array("L").itemsize != 8:
    BUFFERS = {kind: BUFFERS[kind] for kind in BUFFERS if kind not in ("array-L", "array-l")}


# Below and above the sizes at which fill starts releasing the GIL and copying in several parts.
@pytest.mark.parametrize("count", [1, 3, 511, 512, 513, 16_383, 16_384, 16_385, 100_000])
@pytest.mark.parametrize("kind", BUFFERS)
def test_fill(kind: str, count: int) -> None:
    ids = Snowflake(layout=ROOMY, node=9, clock=held, sequence_start="zero")
    buffer = BUFFERS[kind](count)
    first = ids.next_id()
    assert ids.fill(buffer) is None  # type: ignore[func-returns-value]
    filled = np.asarray(buffer).reshape(-1)
    step = 1 << ROOMY.sequence_shift
    assert len(filled) == count
    assert (filled == first + step * np.arange(1, count + 1, dtype=filled.dtype)).all()
    assert ids.next_id() == first + step * (count + 1)


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
@pytest.mark.parametrize("kind", BUFFERS)
def test_decode_all_takes_what_fill_takes(kind: str, count: int) -> None:
    buffer = BUFFERS[kind](count)
    Snowflake(layout=ROOMY, node=9, clock=held).fill(buffer)
    ids = np.asarray(buffer).reshape(-1).tolist()
    columns = ROOMY.decode_all(buffer)
    assert columns.ids.tolist() == ids
    assert columns.nodes.tolist() == [9] * count
    assert columns.sequences.tolist() == [ROOMY.decode(id).sequence for id in ids]
    assert ROOMY.decode_all(memoryview(buffer).toreadonly()) == columns
    assert len(np.asarray(columns.ticks)) == count


def test_fill_writes_nothing_else() -> None:
    whole = bytearray(b"\xa5" * 64)
    part = memoryview(whole)[17:33].cast("Q")
    Snowflake(node=9, clock=held).fill(part)
    assert whole[:17] == b"\xa5" * 17
    assert whole[33:] == b"\xa5" * 31
    assert part[1] == part[0] + 1


@pytest.mark.parametrize("kind", BUFFERS)
def test_an_empty_buffer_takes_no_ids(kind: str) -> None:
    ids = Snowflake(node=9, clock=held)
    before = ids.next_id()
    ids.fill(BUFFERS[kind](0))
    assert ids.next_id() == before + 1


@pytest.mark.parametrize("count", [4096, 4097])
def test_a_filled_buffer_is_released(count: int) -> None:
    """The buffer is released even after an exception: the array can be resized again."""
    ids = Snowflake(node=9, clock=held, sequence_start="zero", max_wait_ms=0)
    buffer = array("Q", bytes(8 * count))
    if count > 4096:
        with pytest.raises(SequenceExhaustedError):
            ids.fill(buffer)
    else:
        ids.fill(buffer)
    buffer.append(1)
    assert len(buffer) == count + 1


@pytest.mark.parametrize("count", [5_000, 50_000])
@pytest.mark.parametrize("kind", ["array-Q", "memoryview-unaligned"])
def test_an_exception_part_way_loses_ids_but_repeats_none(kind: str, count: int) -> None:
    now = [T]
    ids = Snowflake(node=9, clock=lambda: now[0], sequence_start="zero", max_wait_ms=0)
    buffer = BUFFERS[kind](count)
    with pytest.raises(SequenceExhaustedError):
        ids.fill(buffer)
    lost = {id for id in buffer if id}
    assert len(lost) > 3000
    now[0] += 1
    with pytest.raises(SequenceExhaustedError):
        ids.next_ids(count)
    now[0] += 1
    issued = ids.next_ids(4096)
    assert lost.isdisjoint(issued)
    assert ids.decode(min(issued)).timestamp_ms == now[0]


def test_ids_of_64_bits() -> None:
    last = 2**48 - 1
    ids = Snowflake(layout=ALL_64_BITS, clock=lambda: last)
    buffer = array("Q", [0]) * 2
    ids.fill(buffer)
    assert min(buffer) > 2**63
    assert ids.next_id() == buffer[-1] + 1
    assert ids.decode(buffer[0]).timestamp_ms == last


@pytest.mark.parametrize("n", [1, 4096, 16_383, 16_384, 16_385, 300_000, np.int64(3), Seven()])
def test_next_ids(n: Any) -> None:
    ids = Snowflake(layout=ROOMY, node=9, clock=held)
    batch = ids.next_ids(n)
    assert type(batch) is list
    assert len(batch) == int(np.int64(n.__index__()))
    assert increasing(batch)


def test_the_largest_batch() -> None:
    buffer: Any = np.zeros(2**24, np.uint64)
    ids = Snowflake(layout=ROOMY, node=9, clock=held, sequence_start="zero")
    ids.fill(buffer)
    batch = ids.next_ids(2**24)
    assert len(batch) == 2**24
    assert increasing(buffer)
    assert buffer[-1] < batch[0] < batch[-1]
    assert (batch[-1] - batch[0]) >> ROOMY.sequence_shift == 2**24 - 1


def test_stats() -> None:
    now = [T]
    ids = Snowflake(node=5, clock=lambda: now[0], max_ahead_ms=2, sequence_start="zero")
    stats = ids.stats
    assert (stats.waits, stats.rollbacks, stats.lead_ms, stats.last_issued_ms) == (0, 0, 0, None)
    assert repr(stats) == (
        "Stats(waits=0, rollbacks=0, lead_ms=0, last_issued_ms=None, lease_losses=0)"
    )
    assert stats == ids.stats

    ids.next_ids(2 * 4096 + 1)
    assert (ids.stats.lead_ms, ids.stats.last_issued_ms) == (2, T + 2)
    assert stats != ids.stats
    ids.next_ids(4095)
    with pytest.raises(SequenceExhaustedError):
        ids.try_next_id()
    assert (ids.stats.waits, ids.stats.rollbacks) == (1, 0)
    now[0] = T - 5000
    with pytest.raises(ClockMovedBackwardsError):
        ids.try_next_id()
    assert (ids.stats.rollbacks, ids.stats.lead_ms) == (1, 5002)


# Threads and shared cursors ----------------------------------------------------------------------


def in_threads(count: int, work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def check_unique(issued: list[array[int]], layout: Layout) -> None:
    """Checks that no ID repeats, each thread's IDs increase, and no tick exceeds its capacity."""
    assert all(increasing(ids) for ids in issued)
    everything = np.concatenate([np.asarray(ids, dtype=np.uint64) for ids in issued])
    assert len(np.unique(everything)) == len(everything)
    ticks = everything >> np.uint64(layout.timestamp_shift)
    _, in_tick = np.unique(ticks, return_counts=True)
    assert in_tick.max() <= layout.ids_per_tick


def patient(ids: Snowflake) -> Iterator[int]:
    """Retries if a thread on a busy machine was not scheduled for longer than max_wait_ms."""
    while True:
        try:
            yield ids.next_id()
        except SequenceExhaustedError:
            continue


def test_eight_threads_and_two_million_ids_on_one_snowflake() -> None:
    ids = Snowflake(node=next(NODES))
    issued = [array("Q") for _ in range(8)]
    in_threads(8, lambda n: issued[n].extend(itertools.islice(patient(ids), 250_000)))
    assert sum(map(len, issued)) == 2_000_000
    check_unique(issued, ids.layout)


def test_threads_that_fill_without_the_gil() -> None:
    ids = Snowflake(layout=ROOMY, node=1, clock=held)
    issued = [array("Q", bytes(8 * 100_000)) for _ in range(8)]
    in_threads(8, lambda n: ids.fill(issued[n]))
    check_unique(issued, ids.layout)


@pytest.mark.parametrize(
    "others",
    [
        ["twitter"] * 4,
        ["twitter", "leaf", TWITTER, Layout("leaf")],
        ["twitter", "twitter", "leaf", "leaf"],
    ],
    ids=["same", "same-bits", "mixed"],
)
def test_snowflakes_of_one_node_share_a_cursor(others: list[Any]) -> None:
    node = next(NODES)
    clocks: list[Any] = ["system", "steady"] * 2
    snowflakes = [
        Snowflake(layout=layout, node=node, clock=clock)
        for layout, clock in zip(others, clocks, strict=True)
    ]
    in_turn = [next(ids) for ids in itertools.islice(itertools.cycle(snowflakes), 10_000)]
    assert increasing(in_turn)
    issued = [array("Q") for _ in snowflakes]
    in_threads(4, lambda n: issued[n].extend(itertools.islice(patient(snowflakes[n]), 50_000)))
    check_unique(issued, snowflakes[0].layout)
    assert len({ids.stats.last_issued_ms for ids in snowflakes}) == 1


def test_a_snowflake_for_each_call() -> None:
    node = next(NODES)
    assert increasing([Snowflake(node=node).next_id() for _ in range(10_000)])


@pytest.mark.parametrize("bound", ["max_ahead_ms", "max_backward_ms"])
def test_other_bounds_on_a_shared_cursor_are_an_error(bound: str) -> None:
    node = next(NODES)
    Snowflake(node=node)
    with pytest.raises(InvalidOptionError, match=bound):
        Snowflake(node=node, **{bound: 5})  # type: ignore[arg-type]
    Snowflake(node=node, max_wait_ms=3, sequence_start="zero")


def test_snowflakes_on_custom_clocks_share_nothing() -> None:
    first, second = (Snowflake(node=5, clock=held) for _ in range(2))
    assert first.next_ids(10) == second.next_ids(10)


def test_the_clock_may_use_another_snowflake() -> None:
    inner = Snowflake(layout="leaf", node=5, clock=ticking())
    outer = Snowflake(node=6, clock=lambda: inner.decode(inner.next_id()).timestamp_ms)
    issued = [outer.next_id(), *outer.next_ids(5), next(outer)]
    assert increasing(issued)
    assert outer.decode(issued[0]).timestamp_ms == T
    assert inner.stats.last_issued_ms is not None
    assert inner.stats.last_issued_ms > T


def test_the_clock_may_use_its_own_snowflake() -> None:
    issued: list[int] = []

    def clock() -> int:
        if not issued:
            issued.append(0)
            issued[0] = ids.next_id()
        return T

    ids = Snowflake(node=5, clock=clock)
    issued.append(ids.next_id())
    issued.append(ids.next_id())
    assert increasing(issued)


def test_a_cycle_through_the_clock_is_collected() -> None:
    class Owner:
        def __init__(self) -> None:
            self.ids = Snowflake(node=5, clock=self.now)

        def now(self) -> int:
            return T

    owner = Owner()
    owner.ids.next_id()
    alive = weakref.ref(owner)
    gc.collect()
    assert alive() is owner
    del owner
    gc.collect()
    assert alive() is None


# Strings and errors ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "format",
    [
        "decimal",
        "hex",
        "base32",
        "base36",
        "base58",
        "base62",
        "uuid",
        "bwmarrin-base32",
        "bwmarrin-base58",
    ],
)
@pytest.mark.parametrize("id", [0, 1, 38358284406638839, np.uint64(2**63), 2**64 - 1], ids=str)
def test_texts_round_trip(id: Any, format: Any) -> None:
    text = format_id(id, format)
    again = parse_id(text, format)
    assert again == int(id)
    assert type(again) is int


def test_texts() -> None:
    assert format_id(38358284406638839, "base32") == "01226N0640J7Q"
    assert format_id(38358284406638839) == "38358284406638839"
    assert format_id(id=255, format="hex") == "ff"
    assert parse_id("o1226n064oj7q", "base32") == 38358284406638839
    assert parse_id(text="FF", format="hex") == 255


def test_uuids_are_of_version_8_and_sort_as_the_ids_do() -> None:
    ids = [0, 1, 15, 16, 2**16 - 1, 2**16, 38358284406638839, 2**63, 2**64 - 1]
    made = [uuid.UUID(format_id(id, "uuid")) for id in ids]
    assert {(each.version, each.variant) for each in made} == {(8, uuid.RFC_4122)}
    assert made == sorted(made) == sorted(made, key=str)
    assert [parse_id(str(each), "uuid") for each in made] == ids
    with pytest.raises(
        InvalidIdError, match="`4` at position 15 is not the version of an ID's UUID"
    ):
        parse_id(str(uuid.uuid4()), "uuid")


ERRORS: list[tuple[int, str, str, type[Exception]]] = [
    (1, "invalid_layout", "InvalidLayoutError", ValueError),
    (2, "unknown_layout", "UnknownLayoutError", ValueError),
    (3, "invalid_node", "InvalidNodeError", ValueError),
    (4, "invalid_option", "InvalidOptionError", ValueError),
    (5, "invalid_id", "InvalidIdError", ValueError),
    (6, "time_out_of_range", "TimeOutOfRangeError", OverflowError),
    (7, "clock_moved_backwards", "ClockMovedBackwardsError", RuntimeError),
    (8, "sequence_exhausted", "SequenceExhaustedError", RuntimeError),
    (9, "forked", "ForkedError", RuntimeError),
    (10, "clock_failed", "ClockFailedError", RuntimeError),
    (11, "state_file", "StateFileError", OSError),
    (12, "lease_unavailable", "LeaseUnavailableError", OSError),
    (13, "lease_lost", "LeaseLostError", RuntimeError),
    (14, "closed", "ClosedError", RuntimeError),
    (15, "counter_unavailable", "CounterUnavailableError", OSError),
    (99, "internal", "InternalError", RuntimeError),
]


@pytest.mark.parametrize(("code", "name", "class_name", "base"), ERRORS)
def test_the_class_of_an_error(
    code: int, name: str, class_name: str, base: type[Exception]
) -> None:
    error_class: type[PolyflakeError] = getattr(polyflake, class_name)
    assert class_name in polyflake.__all__
    assert (error_class.code, error_class.name) == (code, name)
    assert issubclass(error_class, PolyflakeError)
    # So that tracebacks show the name under which programs import it.
    assert error_class.__module__ == "polyflake"
    assert issubclass(error_class, base)
    error = error_class("what was wrong")
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is error_class
        assert (again.code, again.name, str(again)) == (code, name, "what was wrong")


def test_there_are_no_other_errors() -> None:
    found = {error.__name__ for error in PolyflakeError.__subclasses__()}
    assert found == {class_name for _, _, class_name, _ in ERRORS}


def raised(call: Callable[[], object], error_class: type[PolyflakeError]) -> Any:
    with pytest.raises(error_class) as caught:
        call()
    return caught.value


def test_exhaustion_says_how_long() -> None:
    layout = "timestamp:39|machine:16|sequence:8@1409529600000/10ms"
    ids = Snowflake(layout=layout, node=1, clock=lambda: 1_409_529_600_003, sequence_start="zero")
    ids.next_ids(255)  # The first slot of the first tick is never issued.
    error = raised(ids.try_next_id, SequenceExhaustedError)
    assert error.retry_after_ms == 7
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (again.retry_after_ms, str(again)) == (7, str(error))


def test_a_step_back_says_by_how_much() -> None:
    now = [T]
    ids = Snowflake(node=1, clock=lambda: now[0], max_backward_ms=100)
    ids.next_id()
    now[0] = T - 101
    error = raised(ids.next_id, ClockMovedBackwardsError)
    assert (error.behind_ms, error.retry_after_ms) == (101, 1)
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (again.behind_ms, again.retry_after_ms, str(again)) == (101, 1, str(error))
    now[0] += error.retry_after_ms
    assert ids.decode(ids.next_id()).timestamp_ms == T


def test_everything_public_is_documented() -> None:
    assert polyflake.__doc__
    for name in polyflake.__all__:
        value = getattr(polyflake, name)
        if callable(value):
            assert value.__doc__, name
            for member in set(vars(value)) if isinstance(value, type) else ():
                if not member.startswith("_") and not isinstance(vars(value)[member], int | str):
                    assert getattr(value, member).__doc__, f"{name}.{member}"


def test_the_host_may_give_the_node() -> None:
    """Not every host provides a node; the core's tests cover the values that hosts provide."""
    for node in ("ordinal", {"datacenter": 1, "worker": "ordinal"}, "ip"):
        with contextlib.suppress(InvalidNodeError):
            # On a built-in clock, this process would keep the node, which a later test may lease.
            assert 0 <= Snowflake(node=node, clock=held).node < 1024  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="node must be an int"):
        Snowflake(node="ordinals")  # type: ignore[arg-type]
