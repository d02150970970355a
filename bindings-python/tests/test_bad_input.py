"""All bad input raises a Polyflake error or TypeError, and the message says what is valid."""

from __future__ import annotations

import ctypes
import inspect
import re
from array import array
from collections.abc import Callable
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from polyflake import (
    ClockFailedError,
    InvalidIdError,
    InvalidLayoutError,
    InvalidNodeError,
    InvalidOptionError,
    Layout,
    PolyflakeError,
    Snowflake,
    TimeOutOfRangeError,
    UnknownLayoutError,
    format_id,
    parse_id,
)

T = 1_700_000_000_000
MS_OPTIONS = [name for name in inspect.signature(Snowflake).parameters if name.endswith("_ms")]
ENORMOUS = 10**5000  # Python refuses to print this number.
NO_INTEGERS: list[Any] = [
    True,
    False,
    1.0,
    float("nan"),
    "1",
    b"1",
    [1],
    (1,),
    1j,
    Decimal(1),
    Fraction(1),
    np.float64(1),
    np.bool_(True),
    object(),
]
TWITTER = Layout("twitter")


def held() -> int:
    return T


def build(**options: Any) -> Snowflake:
    return Snowflake(**{"node": 1, "clock": held, **options})


def of_type(value: object) -> str:
    return f"{type(value).__name__}-{value}"[:30]


class Unwilling:
    """Claims to be an integer, but then fails."""

    def __index__(self) -> int:
        raise ArithmeticError("not today")


# Integers ----------------------------------------------------------------------------------------

INTEGERS: dict[str, tuple[Callable[[Any], object], type[PolyflakeError]]] = {
    "node": (lambda value: build(node=value), InvalidNodeError),
    "node field": (
        lambda value: build(node={"datacenter": 1, "worker": value}),
        InvalidNodeError,
    ),
    **{
        name: (lambda value, name=name: build(**{name: value}), InvalidOptionError)
        for name in MS_OPTIONS
    },
    "n": (lambda value: build().next_ids(value), InvalidOptionError),
    "Snowflake.decode": (lambda value: build().decode(value), InvalidIdError),
    "Layout.decode": (TWITTER.decode, InvalidIdError),
    "format_id": (format_id, InvalidIdError),
    "min_id": (TWITTER.min_id, TimeOutOfRangeError),
    "max_id": (TWITTER.max_id, TimeOutOfRangeError),
    "compose time": (lambda value: TWITTER.compose(value, 1, 0), TimeOutOfRangeError),
    "compose node": (lambda value: TWITTER.compose(T, value, 0), InvalidNodeError),
    "compose sequence": (lambda value: TWITTER.compose(T, 1, value), InvalidOptionError),
    "width": (
        lambda value: Layout(fields={"timestamp": 41, "sequence": value}, epoch_ms=0),
        InvalidLayoutError,
    ),
    "epoch_ms": (
        lambda value: Layout(fields={"timestamp": 41, "sequence": 12}, epoch_ms=value),
        InvalidLayoutError,
    ),
    "tick_ms": (
        lambda value: Layout(fields={"timestamp": 41, "sequence": 12}, epoch_ms=0, tick_ms=value),
        InvalidLayoutError,
    ),
}


@pytest.mark.parametrize("place", INTEGERS)
@pytest.mark.parametrize("value", NO_INTEGERS, ids=of_type)
def test_a_wrong_type_for_an_integer(place: str, value: Any) -> None:
    with pytest.raises(TypeError, match=re.escape(type(value).__name__)) as caught:
        INTEGERS[place][0](value)
    assert re.search(r" must be an? (int|datetime)\b", str(caught.value))


@pytest.mark.parametrize("place", INTEGERS)
def test_an_integer_whose_index_fails(place: str) -> None:
    with pytest.raises((TypeError, ArithmeticError)):
        INTEGERS[place][0](Unwilling())


@pytest.mark.parametrize("place", INTEGERS)
@pytest.mark.parametrize(
    "value",
    [-1, -(2**63), -(2**63) - 1, 2**64, 2**64 + 1, 10**30, -(10**30), ENORMOUS, -ENORMOUS],
    ids=lambda value: f"{'-' if value < 0 else ''}{abs(value).bit_length()}-bits",
)
def test_an_error_for_an_integer_out_of_range_names_it(place: str, value: int) -> None:
    call, error_class = INTEGERS[place]
    with pytest.raises(error_class) as caught:
        call(value)
    shown = str(value) if abs(value) < 10**4000 else f"{value.bit_length()} bits"
    assert shown in str(caught.value)
    assert str(caught.value).startswith(f"{error_class.name}: ")


# These treat None as the default, or are nodes, which other tests cover.
WITH_DEFAULTS = ["node", "compose node", "tick_ms", *MS_OPTIONS]


@pytest.mark.parametrize("place", [place for place in INTEGERS if place not in WITH_DEFAULTS])
def test_none_is_not_an_integer(place: str) -> None:
    with pytest.raises(TypeError):
        INTEGERS[place][0](None)


@pytest.mark.parametrize(
    ("place", "first", "last"),
    [
        ("node", 0, 1023),
        ("node field", 0, 31),
        *((name, 0, 2**32 - 1) for name in MS_OPTIONS),
        ("n", 1, 2**24),
        ("Layout.decode", 0, 2**63 - 1),
        ("format_id", 0, 2**64 - 1),
        ("max_id", 1288834974657, 3487858230208),
        ("compose time", 1288834974657, 3487858230208),
        ("compose node", 0, 1023),
        ("compose sequence", 0, 4095),
        ("width", 1, 23),
    ],
)
def test_the_smallest_and_largest_integers_that_fit(place: str, first: int, last: int) -> None:
    call, error_class = INTEGERS[place]
    for outside in (first - 1, last + 1):
        with pytest.raises(error_class):
            call(outside)
    if place != "n":  # A stopped clock allows fewer than 2^24 IDs.
        call(last)
        call(first)


# Snowflakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (None, "1023.* datacenter, worker"),
        ({}, "datacenter"),
        ({"worker": 1}, "datacenter"),
        ({"datacenter": 1}, "worker"),
        ({"datacenter": 1, "worker": 1, "process": 1}, "process.*datacenter, worker"),
        ({"datacenter": 1, "Worker": 1}, "Worker"),
        ({"datacenter": 1, "worker": 32}, "worker .*32.* 31"),
        ({"datacenter": 1, "worker": 1, "sequence": 1}, "sequence"),
        ({"datacenter": 1, "worker": 1, "": 1}, "datacenter, worker"),
        ({"datacenter": 1, "worker": 1, "w\u00f6rker": 1}, "w\u00f6rker"),
        ({f"field{n}": n for n in range(1000)}, "8"),
        (1024, "1024.* 1023"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_wrong_nodes(node: Any, words: str) -> None:
    with pytest.raises(InvalidNodeError, match=words):
        build(node=node)
    with pytest.raises(InvalidNodeError):
        TWITTER.compose(T, node, 0)


def test_the_node_is_required() -> None:
    with pytest.raises(InvalidNodeError, match="node"):
        Snowflake()
    with pytest.raises(InvalidNodeError, match="machine"):
        Snowflake(layout="sonyflake")


@pytest.mark.parametrize("node", [1, {"worker": 0}, 2**64], ids=str)
def test_a_node_for_a_layout_without_node_fields(node: Any) -> None:
    with pytest.raises(InvalidNodeError):
        build(layout="mastodon", node=node)


@pytest.mark.parametrize("node", [{1: 1}, {None: 1}, {b"worker": 1}], ids=str)
def test_a_field_name_that_is_not_a_str(node: Any) -> None:
    with pytest.raises(TypeError, match="name of a node field must be a str"):
        build(node=node)


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        ((), {"nod": 1}),
        ((), {"worker": 1}),
        ((), {"node": 1, "max_wait": 5}),
        ((), {"node": 1, "state_file": "file"}),
        ((1,), {}),
        (("twitter",), {"node": 1}),
    ],
    ids=str,
)
def test_unknown_arguments(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="argument"):
        Snowflake(*arguments, **keywords)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sequence_start": "Zero"}, "sequence_start.*Zero.*spread"),
        ({"sequence_start": ""}, "spread"),
        ({"clock": "wall"}, "clock.*wall.*steady"),
        ({"clock": ""}, "steady"),
        ({"max_wait_ms": -1}, "max_wait_ms.* -1.* 4294967295"),
    ],
    ids=str,
)
def test_wrong_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidOptionError, match=words):
        build(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"layout": 1},
        {"layout": b"twitter"},
        {"layout": {"timestamp": 41}},
        {"sequence_start": 0},
        {"sequence_start": True},
        {"clock": 5},
        {"clock": T},
        {"clock": datetime(2024, 1, 1)},
    ],
    ids=str,
)
def test_options_of_a_wrong_type(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=type(next(iter(options.values()))).__name__):
        build(**options)


# Layouts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("twiter", "twitter"),
        ("Twitter", "twitter"),
        ("", "twitter, discord"),
        ("x" * 100_000, "twitter, discord"),
        ("twitter\0", "twitter"),
    ],
    ids=lambda value: value[:10],
)
def test_unknown_layouts(name: str, words: str) -> None:
    for call in (Layout, lambda layout: build(layout=layout)):
        with pytest.raises(UnknownLayoutError, match=words) as caught:
            call(name)
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"timestamp": 37, "worker": 20, "sequence": 16}, "73 .*9 "),
        ({"worker": 10, "sequence": 12}, "timestamp"),
        ({"timestamp": 41, "worker": 10}, "sequence"),
        ([("timestamp", 41), ("timestamp", 1), ("sequence", 12)], "timestamp"),
        ([("timestamp", 41), ("w", 1), ("w", 2), ("sequence", 12)], "w"),
        ([], "timestamp"),
        ({}, "timestamp"),
        ({"timestamp": 0, "sequence": 12}, "timestamp"),
        ({"sequence": 12, "timestamp": 41}, "timestamp"),
        ({"timestamp": 41, "Worker": 1, "sequence": 12}, "Worker"),
        ({"timestamp": 10, "sequence": 33}, "33"),
        ({"timestamp": 41, **{f"w{n}": 1 for n in range(9)}, "sequence": 12}, "8"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_layouts_that_cannot_work(fields: Any, words: str) -> None:
    with pytest.raises(InvalidLayoutError, match=words):
        Layout(fields=fields, epoch_ms=0)


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"fields": {"timestamp": 41, "sequence": 12}},
        {"epoch_ms": 0},
        {"tick_ms": 1},
        {"fields": 5, "epoch_ms": 0},
        {"fields": [5], "epoch_ms": 0},
        {"fields": ["timestamp:41"], "epoch_ms": 0},
        {"fields": "timestamp:41", "epoch_ms": 0},
        {"fields": [("timestamp", 41, 0)], "epoch_ms": 0},
        {"fields": [(b"timestamp", 41)], "epoch_ms": 0},
        {"fields": {"timestamp": "41", "sequence": 12}, "epoch_ms": 0},
        {"text": "twitter"},
    ],
    ids=str,
)
def test_layout_arguments_of_a_wrong_type(keywords: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Layout(**keywords)


@pytest.mark.parametrize("text", [5, b"twitter", None, ["twitter"], True], ids=str)
def test_layout_texts_of_a_wrong_type(text: Any) -> None:
    with pytest.raises(TypeError):
        Layout(text)


def test_a_layout_is_given_in_one_way() -> None:
    alternatives: list[dict[str, Any]] = [{"epoch_ms": 0}, {"tick_ms": 1}, {"fields": {}}]
    for keywords in alternatives:
        with pytest.raises(TypeError):
            Layout("twitter", **keywords)


@pytest.mark.parametrize("name", ["min_id", "max_id"])
def test_no_bounds_if_a_node_field_is_above_the_timestamp(name: str) -> None:
    with pytest.raises(InvalidLayoutError, match="worker"):
        getattr(Layout("seata"), name)(T)


# Instants ----------------------------------------------------------------------------------------


class NoOffset(tzinfo):
    def utcoffset(self, when: datetime | None) -> None:
        return None

    dst = tzname = utcoffset


@pytest.mark.parametrize("place", ["min_id", "max_id", "compose time"])
@pytest.mark.parametrize(
    "naive", [datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=NoOffset())], ids=["none", "odd"]
)
def test_a_naive_datetime(place: str, naive: datetime) -> None:
    with pytest.raises(InvalidOptionError, match=r"2024-01-01 .* no time zone"):
        INTEGERS[place][0](naive)


@pytest.mark.parametrize("place", ["min_id", "max_id", "compose time"])
@pytest.mark.parametrize(
    "time",
    [date(2024, 1, 1), "2024-01-01T00:00:00Z", 1.7e12, None, np.datetime64("2024-01-01"), b"", ()],
    ids=of_type,
)
def test_a_wrong_type_for_a_time(place: str, time: Any) -> None:
    with pytest.raises(TypeError, match="a datetime with a time zone, or an int of Unix ms"):
        INTEGERS[place][0](time)


@pytest.mark.parametrize("place", ["min_id", "max_id", "compose time"])
@pytest.mark.parametrize(
    "time", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)], ids=str
)
def test_times_outside_the_layout(place: str, time: datetime) -> None:
    with pytest.raises(TimeOutOfRangeError, match=r"1288834974657 .*3487858230208"):
        INTEGERS[place][0](time)


# IDs and strings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [2**63, 2**64 - 1, 2**64, -1])
def test_an_id_outside_its_layout(id: int) -> None:
    for decode in (TWITTER.decode, build().decode):
        with pytest.raises(InvalidIdError, match=f"{id} .*63 bits"):
            decode(id)


@pytest.mark.parametrize(
    ("text", "format", "position"),
    [
        ("12x4", "decimal", 3),
        ("-1", "decimal", 1),
        ("+1", "decimal", 1),
        (" 1", "decimal", 1),
        ("1\n", "decimal", 2),
        ("1_000", "decimal", 2),
        ("1.0", "decimal", 2),
        ("\uff11", "decimal", 1),
        ("1\u0660", "decimal", 2),
        ("\u00e9\u00e91", "decimal", 1),
        ("1\U0001f600", "decimal", 2),
        ("1\0", "decimal", 2),
        ("18446744073709551616", "decimal", 20),
        ("000000000000000000000", "decimal", 21),
        ("1" * 1_000_000, "decimal", 21),
        ("9" * 1_000_000, "decimal", 20),
        ("0x1f", "hex", 2),
        ("10000000000000000", "hex", 17),
        ("U1226N0640J7Q", "base32", 1),
        ("G000000000000", "base32", 13),
        ("3w5e11264sgsg", "base36", 13),
        ("10l", "base58", 2),
        ("jpXCZedGfVR", "base58", 11),
        ("LygHa16AHYG", "base62", 11),
        ("a-", "base62", 2),
        ("b49dgrs9wghoO", "bwmarrin-base32", 13),
        ("oyyyyyyyyyyyy", "bwmarrin-base32", 13),
        ("10l", "bwmarrin-base58", 2),
        ("JPwcyDCgEuq", "bwmarrin-base58", 11),
        ("919108f7-52d1-4320-9bac-f847db4148a8", "uuid", 15),
        ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "uuid", 15),
        ("1565a11f-6217-8a00-c000-000000000000", "uuid", 20),
        ("2489e9ad-2ee2-8e00-8ec9-32d5f69181c0", "uuid", 21),
        ("1565a11f62178a008000000000000000", "uuid", 9),
        ("1565a11f-6217-8a00-8000-0000000000000", "uuid", 37),
        ("12\ud800", "decimal", 3),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_texts_that_are_not_ids(text: str, format: Any, position: int) -> None:
    with pytest.raises(InvalidIdError, match=rf"position {position}\b"):
        parse_id(text, format)


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
def test_an_empty_text(format: Any) -> None:
    with pytest.raises(InvalidIdError, match="empty"):
        parse_id("", format)


@pytest.mark.parametrize("format", ["base64", "", "Decimal", "HEX"])
def test_unknown_formats(format: Any) -> None:
    for call in (lambda: format_id(1, format), lambda: parse_id("1", format)):
        with pytest.raises(InvalidOptionError, match="decimal, hex, base32"):
            call()


@pytest.mark.parametrize("value", [1, 1.0, None, b"1", bytearray(b"1"), ["1"]], ids=of_type)
def test_texts_and_formats_of_a_wrong_type(value: Any) -> None:
    with pytest.raises(TypeError, match="text must be a str, not "):
        parse_id(value)
    if value is None:
        assert (parse_id("1", value), format_id(1, value)) == (1, "1")
        return
    for call in (lambda: parse_id("1", value), lambda: format_id(1, value)):
        with pytest.raises(TypeError, match="format must be a str, not "):
            call()


def test_lone_surrogates() -> None:
    with pytest.raises(UnknownLayoutError):
        Layout("tw\ud800")
    with pytest.raises(InvalidNodeError, match="field"):
        Snowflake(node={"datacenter": 1, "w\ud800": 1})
    for option in ("clock", "sequence_start"):
        with pytest.raises(InvalidOptionError, match=option):
            Snowflake(node=1, **{option: "\ud800"})  # type: ignore[arg-type]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, ValueError])
def test_exceptions_of_index_pass_through(raised: type[BaseException]) -> None:
    class Raises:
        def __index__(self) -> int:
            raise raised

    for call in (Layout("twitter").decode, Layout("twitter").min_id, lambda it: Snowflake(node=it)):
        with pytest.raises(raised):
            call(Raises())


def test_a_lower_bound_past_the_last_tick() -> None:
    layout = Layout("cosid-second")
    with pytest.raises(TimeOutOfRangeError, match="time_out_of_range"):
        layout.min_id(layout.ends_at_ms)


# Buffers -----------------------------------------------------------------------------------------


def read_only() -> np.ndarray[Any, Any]:
    zeros = np.zeros(4, np.uint64)
    zeros.flags.writeable = False
    return zeros


class PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


MEMORY = ctypes.create_string_buffer(32)


def of_item_size(size: int) -> memoryview:
    """A buffer whose exporter, an extension, declares items of format Q but of a different size."""
    exported = PyBuffer(ctypes.addressof(MEMORY), None, 32, size, 0, 1, b"Q")
    view = ctypes.pythonapi.PyMemoryView_FromBuffer
    view.restype = ctypes.py_object
    made = view(ctypes.byref(exported))
    assert isinstance(made, memoryview)
    return made


@pytest.mark.parametrize(
    ("buffer", "words"),
    [
        (bytes(32), "8-byte integers"),
        (bytearray(32), "format B"),
        (memoryview(bytes(32)).cast("Q"), "read-only"),
        (memoryview(array("Q", [0] * 4)).toreadonly(), "read-only"),
        (read_only(), "read-only"),
        (array("d", [0.0] * 4), "format d"),
        (array("f", [0.0] * 4), "format f"),
        (array("I", [0] * 4), "format I"),
        (array("i", [0] * 4), "format i"),
        (np.zeros(4, np.uint32), "format I"),
        (np.zeros(4, np.float64), "format d"),
        (np.zeros(4, np.complex64), "format Zf"),
        (np.zeros(4, bool), "format"),
        (np.zeros(4, [("id", "u8")]), "format"),
        (np.zeros(8, np.uint64)[::2], "contiguous"),
        (np.zeros(4, np.uint64)[::-1], "contiguous"),
        (np.zeros((2, 2), np.uint64, order="F"), "contiguous"),
        (memoryview(array("Q", [0] * 8))[::2], "contiguous"),
        (np.zeros(4, ">u8"), "byte order"),
        (np.zeros(4, ">i8"), "byte order"),
        ((ctypes.c_uint64.__ctype_be__ * 4)(), "byte order"),
        ((ctypes.c_uint32 * 4)(), "format <I"),
        ((ctypes.c_double * 4)(), "format <d"),
        ((ctypes.c_void_p * 4)(), "format"),
        (ctypes.c_uint64(), "no dimension"),
        (np.zeros((), np.uint64), "no dimension"),
        (memoryview(bytearray(8)).cast("Q", ()), "no dimension"),
        (of_item_size(1), "items of 1 bytes"),
        (of_item_size(4), "items of 4 bytes"),
        (of_item_size(16), "items of 16 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_buffers_that_do_not_fit(buffer: Any, words: str) -> None:
    ids = build()
    before = ids.next_id()
    content = memoryview(buffer).tobytes()
    with pytest.raises((TypeError, BufferError), match=words):
        ids.fill(buffer)
    assert memoryview(buffer).tobytes() == content
    assert ids.next_id() == before + 1


@pytest.mark.parametrize("value", [None, 5, [0, 0], "12345678", object()], ids=of_type)
def test_values_that_are_not_buffers(value: Any) -> None:
    with pytest.raises(TypeError):
        build().fill(value)
    with pytest.raises(TypeError):
        Layout("twitter").decode_all(value)


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (bytes(32), "8-byte integers (format Q or q); this one has format B"),
        (array("d", [0.0] * 4), "this one has format d"),
        (np.zeros(4, np.uint32), "this one has format I"),
        (np.zeros(4, ">u8"), "this one has the other byte order"),
        (np.zeros(4, ">i8"), "this one has the other byte order"),
        (np.zeros(8, np.uint64)[::2], "this one is not contiguous"),
        (memoryview(array("Q", [0] * 8))[::-1], "this one is not contiguous"),
        (ctypes.c_uint64(), "this one has no dimension"),
        (of_item_size(1), "this one has items of 1 byte"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_buffers_that_decode_all_does_not_take(buffer: Any, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        Layout("twitter").decode_all(buffer)


@pytest.mark.parametrize(
    ("layout", "buffer", "wrong"),
    [
        ("js-safe", array("Q", [1, 2**53, 2**63]), 2**53),
        ("js-safe", array("Q", [1, 2**64 - 1, 2**53]), 2**64 - 1),
        ("js-safe", array("q", [1, 2**53, -1]), 2**53),
        ("js-safe", array("q", [1, -1, 2**53]), -1),
        ("twitter", np.array([1, -(2**63)], np.int64), -(2**63)),
        ("mastodon", np.array([2**63 - 1, -2, -1], np.int64), -2),
    ],
)
def test_the_first_id_that_does_not_fit(layout: str, buffer: Any, wrong: int) -> None:
    with pytest.raises(InvalidIdError) as of_one:
        Layout(layout).decode(wrong)
    with pytest.raises(InvalidIdError) as of_all:
        Layout(layout).decode_all(buffer)
    assert str(of_all.value) == str(of_one.value)


@pytest.mark.parametrize("buffer", [array("q", [0]), np.zeros(1, np.int64)], ids=["array", "numpy"])
def test_signed_integers_are_too_small_for_64_bits(buffer: Any) -> None:
    ids = Snowflake(layout="timestamp:48|sequence:16@0/1ms", clock=held)
    with pytest.raises(TypeError, match="signed"):
        ids.fill(buffer)
    assert buffer[0] == 0


# Clocks ------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Snowflake], object]] = {
    "next_id": lambda ids: ids.next_id(),
    "try_next_id": lambda ids: ids.try_next_id(),
    "next": next,
    "next_ids": lambda ids: ids.next_ids(10),
    "next_ids-large": lambda ids: ids.next_ids(100_000),
    "fill": lambda ids: ids.fill(array("Q", bytes(80))),
    "fill-large": lambda ids: ids.fill(array("Q", bytes(800_000))),
    "fill-unaligned": lambda ids: ids.fill(memoryview(bytearray(801))[1:].cast("Q")),
    "stats": lambda ids: ids.stats,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "reading",
    [None, float("nan"), 1.7e12, float("inf"), True, "1700000000000", 10**30, -(10**30), [T]],
    ids=of_type,
)
def test_a_clock_that_returns_an_invalid_time(reading: Any, call: str) -> None:
    ids = build(clock=lambda: reading)
    with pytest.raises(ClockFailedError, match="Unix ms") as caught:
        CALLS[call](ids)
    wrong = OverflowError if type(reading) is int else TypeError
    assert isinstance(caught.value.__cause__, wrong)
    assert repr(reading) in str(caught.value)


@pytest.mark.parametrize("call", [call for call in CALLS if call != "stats"])
@pytest.mark.parametrize("reading", [-1, 0, 1288834974656, 3487858230209, -(2**63), 2**63 - 1])
def test_a_clock_outside_the_layout(reading: int, call: str) -> None:
    with pytest.raises(TimeOutOfRangeError, match=f"{reading} "):
        CALLS[call](build(clock=lambda: reading))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", [ValueError("no sync"), KeyError("x"), StopIteration()], ids=repr)
def test_a_clock_that_raises(error: Exception, call: str) -> None:
    def clock() -> int:
        raise error

    with pytest.raises(ClockFailedError) as caught:
        CALLS[call](build(clock=clock))
    assert caught.value.__cause__ is error
    assert type(error).__name__ in str(caught.value)
    assert error.__traceback__ is not None


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_exceptions_that_end_a_program_pass_through_the_clock(
    error: type[BaseException], call: str
) -> None:
    def clock() -> int:
        raise error(3)

    with pytest.raises(error) as caught:
        CALLS[call](build(clock=clock))
    assert type(caught.value) is error
    assert caught.value.args == (3,)


def test_a_clock_that_takes_arguments() -> None:
    ids = build(clock=lambda now: now)
    with pytest.raises(ClockFailedError) as caught:
        ids.next_id()
    assert isinstance(caught.value.__cause__, TypeError)


def test_a_clock_that_calls_its_own_snowflake_forever() -> None:
    def clock() -> int:
        return ids.next_id()

    ids = build(clock=clock)
    with pytest.raises(ClockFailedError, match="RecursionError"):
        ids.next_id()


def test_a_clock_that_recovers() -> None:
    readings: list[Any] = [T, None, T - 5000, T, ValueError]
    ids = build(clock=lambda: readings[0])
    first = ids.next_id()
    readings.pop(0)
    with pytest.raises(ClockFailedError):
        ids.next_id()
    readings.pop(0)
    with pytest.raises(PolyflakeError, match="clock_moved_backwards"):
        ids.next_id()
    readings.pop(0)
    assert ids.next_id() == first + 1


def test_a_failure_is_not_confused_with_another_clocks() -> None:
    """The cause is the failing clock's own exception, even if another clock's was swallowed."""

    def inner() -> int:
        raise ValueError("inner")

    def outer() -> int:
        with pytest.raises(ClockFailedError, match="inner"):
            build(clock=inner).next_id()
        raise LookupError("outer")

    with pytest.raises(ClockFailedError, match="outer") as caught:
        build(clock=outer).next_id()
    assert isinstance(caught.value.__cause__, LookupError)
