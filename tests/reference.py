"""The reference: Polyflake in plain Python integers, optimized for readability rather than speed.

It shares no code with the core. make_vectors.py uses it to write tests/vectors.json, which every
language runs, and the property tests compare the package's results with the reference's.

Python's integers do not wrap or overflow, so every bound is explicit.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

U64 = 2**64 - 1
LAST_UNIX_MS = 2**63 - 1
LARGEST_BATCH = 2**24
LARGEST_MS_OPTION = 2**32 - 1

# Errors ------------------------------------------------------------------------------------------

ERRORS = {
    "invalid_layout": 1,
    "unknown_layout": 2,
    "invalid_node": 3,
    "invalid_option": 4,
    "invalid_id": 5,
    "time_out_of_range": 6,
    "clock_moved_backwards": 7,
    "sequence_exhausted": 8,
    "forked": 9,
    "clock_failed": 10,
    "state_file": 11,
    "lease_unavailable": 12,
    "lease_lost": 13,
    "closed": 14,
    "counter_unavailable": 15,
    "internal": 99,
}


class Refused(Exception):
    """Any error from the reference: one of ERRORS, with its values."""

    def __init__(
        self,
        name: str,
        why: str = "",
        *,
        behind_ms: int | None = None,
        retry_after_ms: int | None = None,
        position: int | None = None,
        blocked: bool = False,
    ) -> None:
        super().__init__(f"{name}: {why}")
        self.name = name
        self.number = ERRORS[name]
        self.behind_ms = behind_ms
        self.retry_after_ms = retry_after_ms
        self.position = position
        # Only a blocked call may wait and read the clock again; all other errors are immediate.
        self.blocked = blocked


# Layouts -----------------------------------------------------------------------------------------

PRESETS = {
    "twitter": "timestamp:41|datacenter:5|worker:5|sequence:12@1288834974657/1ms",
    "discord": "timestamp:42|worker:5|process:5|sequence:12@1420070400000/1ms",
    "leaf": "timestamp:41|worker:10|sequence:12@1288834974657/1ms",
    "shardingsphere": "timestamp:41|worker:10|sequence:12@1477929600000/1ms",
    "baidu": "timestamp:28|worker:22|sequence:13@1463673600000/1s",
    "sonyflake": "timestamp:39|sequence:8|machine:16@1409529600000/10ms",
    "sonyflake2": "timestamp:39|sequence:8|machine:16@1735689600000/10ms",
    "easyswoole": "timestamp:41|datacenter:5|worker:5|sequence:12@1508945092000/1ms",
    "instagram": "timestamp:41|shard:13|sequence:10@1314220021721/1ms",
    "mastodon": "timestamp:48|sequence:16@0/1ms",
    "tsid": "timestamp:42|node:10|sequence:12@1577836800000/1ms",
    "yitter": "timestamp:41|worker:6|sequence:6@1582136402000/1ms",
    "cosid": "timestamp:41|machine:10|sequence:12@1577203200000/1ms",
    "cosid-second": "timestamp:31|machine:10|sequence:22@1577203200000/1s",
    "pgedge": "timestamp:41|node:10|sequence:12@1672531200000/1ms",
    "seata": "worker:10|timestamp:41|sequence:12@1588435200000/1ms",
    "business": "timestamp:41|idc:6|business:6|sequence:10@1288834974657/1ms",
    "clickhouse": "timestamp:41|machine:10|sequence:12@0/1ms",
    "js-safe": "timestamp:41|worker:4|sequence:8@1735689600000/1ms",
}

NAME = r"[a-z][a-z0-9_-]*"
NUMBER = r"(?:0|[1-9][0-9]*)"
FIELD = rf"{NAME}:{NUMBER}"
LAYOUT_TEXT = re.compile(rf"({FIELD}(?:\|{FIELD})*)@({NUMBER})/({NUMBER})(ms|s)")
# A number with more digits exceeds every range, and Python is slow with huge numbers.
MANY_DIGITS = 24

Node = int | Mapping[str, int] | None


@dataclass(frozen=True)
class Field:
    """A field and its position in the ID; `id & mask` selects its bits."""

    name: str
    bits: int
    shift: int

    @property
    def mask(self) -> int:
        return (2**self.bits - 1) << self.shift

    @property
    def is_node(self) -> bool:
        return self.name not in ("timestamp", "sequence")


@dataclass(frozen=True)
class Decoded:
    id: int
    timestamp_ms: int
    ticks: int
    node: int
    fields: dict[str, int]
    sequence: int


@dataclass(frozen=True)
class Layout:
    widths: tuple[tuple[str, int], ...]
    epoch_ms: int
    tick_ms: int

    @staticmethod
    def read(given: str) -> Layout:
        """Reads a preset's name or a layout string, which contains any of : | @ /."""
        if any(mark in given for mark in ":|@/"):
            return Layout.parse(given)
        if given not in PRESETS:
            raise Refused("unknown_layout", f"no preset is called {given!r}")
        return Layout.parse(PRESETS[given])

    @staticmethod
    def parse(text: str) -> Layout:
        match = LAYOUT_TEXT.fullmatch(text)
        if match is None:
            raise Refused("invalid_layout", "not FIELD:BITS|...@EPOCH/TICK")
        fields, epoch, tick, unit = match.groups()
        widths = tuple(
            (name, _number(bits)) for name, bits in (f.split(":") for f in fields.split("|"))
        )
        return Layout(widths, _number(epoch), _number(tick) * (1000 if unit == "s" else 1))

    def __post_init__(self) -> None:
        """Checks the layout, so that every Layout is valid."""
        names = [name for name, _ in self.widths]
        node_names = [n for n in names if n not in ("timestamp", "sequence")]
        width = dict(self.widths)
        rules = [
            (all(re.fullmatch(NAME, n) for n in names), "a name is [a-z][a-z0-9_-]*"),
            (all(len(n) <= 24 for n in names), "a name has at most 24 bytes"),
            (len(set(names)) == len(names), "a name occurs twice"),
            ("timestamp" in names, "no timestamp"),
            ("sequence" in names, "no sequence"),
            (len(node_names) <= 8, "more than 8 node fields"),
            (all(1 <= bits <= 64 for _, bits in self.widths), "a width is 1 to 64 bits"),
            (sum(bits for _, bits in self.widths) <= 64, "more than 64 bits"),
            (width.get("sequence", 0) <= 32, "more than 32 bits of sequence"),
            (sum(width[n] for n in node_names) <= 32, "more than 32 bits of node"),
            (self.epoch_ms in range(2**63), "an epoch is 0 to 2^63-1 Unix ms"),
            (self.tick_ms >= 1, "a tick is at least 1 ms"),
        ]
        for holds, why in rules:
            if not holds:
                raise Refused("invalid_layout", why)
        if names.index("timestamp") > names.index("sequence"):
            raise Refused("invalid_layout", "the sequence is above the timestamp")
        if self.ends_at_ms > LAST_UNIX_MS:
            raise Refused("invalid_layout", "its end is past 2^63-1 Unix ms")

    @property
    def text(self) -> str:
        fields = "|".join(f"{name}:{bits}" for name, bits in self.widths)
        whole_seconds, rest = divmod(self.tick_ms, 1000)
        tick = f"{self.tick_ms}ms" if rest else f"{whole_seconds}s"
        return f"{fields}@{self.epoch_ms}/{tick}"

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """All fields, highest first."""
        placed, shift = [], self.total_bits
        for name, bits in self.widths:
            shift -= bits
            placed.append(Field(name, bits, shift))
        return tuple(placed)

    @cached_property
    def node_fields(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.is_node)

    @cached_property
    def timestamp(self) -> Field:
        return next(field for field in self.fields if field.name == "timestamp")

    @cached_property
    def sequence(self) -> Field:
        return next(field for field in self.fields if field.name == "sequence")

    @cached_property
    def total_bits(self) -> int:
        return sum(bits for _, bits in self.widths)

    @cached_property
    def node_bits(self) -> int:
        return sum(field.bits for field in self.node_fields)

    @property
    def nodes(self) -> int:
        return 2**self.node_bits

    @property
    def ids_per_tick(self) -> int:
        return 2**self.sequence.bits

    @cached_property
    def last_tick(self) -> int:
        return 2 ** dict(self.widths)["timestamp"] - 1

    @property
    def ends_at_ms(self) -> int:
        """The last millisecond of the last tick."""
        return self.epoch_ms + (self.last_tick + 1) * self.tick_ms - 1

    @property
    def has_node_above_time(self) -> bool:
        return any(field.shift > self.timestamp.shift for field in self.node_fields)

    def whole_node(self, node: Node) -> int:
        """The node fields combined, highest field first, wherever they are in the ID."""
        if not self.node_fields and (node is None or node == {}):
            return 0
        if node is None:
            raise Refused("invalid_node", "a node is required")
        if isinstance(node, int):
            if node not in range(self.nodes):
                raise Refused("invalid_node", f"a node is 0 to {self.nodes - 1}")
            return node
        if set(node) != {field.name for field in self.node_fields}:
            raise Refused("invalid_node", "a map must have exactly the node fields")
        whole = 0
        for field in self.node_fields:
            if node[field.name] not in range(2**field.bits):
                raise Refused("invalid_node", f"{field.name} is 0 to {2**field.bits - 1}")
            whole = whole << field.bits | node[field.name]
        return whole

    def split_node(self, whole: int) -> dict[str, int]:
        values, below = {}, self.node_bits
        for field in self.node_fields:
            below -= field.bits
            values[field.name] = whole >> below & (2**field.bits - 1)
        return values

    def node_in_place(self, whole: int) -> int:
        values = self.split_node(whole)
        return sum(values[field.name] << field.shift for field in self.node_fields)

    def join(self, tick: int, whole_node: int, sequence: int) -> int:
        return (
            tick << self.timestamp.shift
            | sequence << self.sequence.shift
            | self.node_in_place(whole_node)
        )

    def decode(self, id_: int) -> Decoded:
        if id_ not in range(2**self.total_bits):
            raise Refused("invalid_id", f"an ID of this layout has {self.total_bits} bits")
        value = {field.name: (id_ & field.mask) >> field.shift for field in self.fields}
        nodes = {field.name: value[field.name] for field in self.node_fields}
        ticks = value["timestamp"]
        return Decoded(
            id=id_,
            timestamp_ms=self.epoch_ms + ticks * self.tick_ms,
            ticks=ticks,
            node=self.whole_node(nodes),
            fields=nodes,
            sequence=value["sequence"],
        )

    def tick_at(self, time_ms: int, *, round_up: bool = False) -> int:
        since_epoch = time_ms - self.epoch_ms
        tick = -(-since_epoch // self.tick_ms) if round_up else since_epoch // self.tick_ms
        if since_epoch < 0 or tick > self.last_tick:
            raise Refused("time_out_of_range", f"{self.epoch_ms} to {self.ends_at_ms} Unix ms")
        return tick

    def compose(self, time_ms: int, node: Node, sequence: int) -> int:
        tick = self.tick_at(time_ms)
        whole = self.whole_node(node)
        if sequence not in range(self.ids_per_tick):
            raise Refused("invalid_option", f"a sequence is 0 to {self.ids_per_tick - 1}")
        return self.join(tick, whole, sequence)

    def min_id(self, time_ms: int) -> int:
        self._check_ranges()
        return self.join(self.tick_at(time_ms, round_up=True), 0, 0)

    def max_id(self, time_ms: int) -> int:
        self._check_ranges()
        return self.join(self.tick_at(time_ms), self.nodes - 1, self.ids_per_tick - 1)

    def _check_ranges(self) -> None:
        if self.has_node_above_time:
            raise Refused(
                "invalid_layout",
                "with a node field above the time, a range of time is not a range of IDs",
            )


def _number(digits: str) -> int:
    if len(digits) > MANY_DIGITS:
        raise Refused("invalid_layout", "a number out of range")
    return int(digits)


# Texts -------------------------------------------------------------------------------------------

DIGITS = "0123456789"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LOWER = UPPER.lower()


@dataclass(frozen=True)
class TextFormat:
    alphabet: str
    longest: int
    # Other characters that are accepted, and the ones they stand for.
    also: Mapping[str, str]
    fixed_width: bool = False


FORMATS = {
    "decimal": TextFormat(DIGITS, 20, {}),
    "hex": TextFormat(DIGITS + "abcdef", 16, dict(zip("ABCDEF", "abcdef", strict=True))),
    "base32": TextFormat(
        "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
        13,
        {c.lower(): c for c in UPPER if c not in "ILOU"}
        | dict.fromkeys("IiLl", "1")
        | {
            "O": "0",
            "o": "0",
        },
        fixed_width=True,
    ),
    "base36": TextFormat(DIGITS + LOWER, 13, dict(zip(UPPER, LOWER, strict=True))),
    "base58": TextFormat("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 11, {}),
    "base62": TextFormat(DIGITS + UPPER + LOWER, 11, {}, fixed_width=True),
    # These are not the digits of a single base: see _uuid and _from_uuid.
    "uuid": TextFormat(
        DIGITS + "abcdef", 36, dict(zip("ABCDEF", "abcdef", strict=True)), fixed_width=True
    ),
    # Transcribed from https://github.com/bwmarrin/snowflake/blob/v0.3.0/snowflake.go, which writes
    # no numbers past 2^63.
    "bwmarrin-base32": TextFormat("ybndrfg8ejkmcpqxot1uwisza345h769", 13, {}),
    "bwmarrin-base58": TextFormat(
        "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ", 11, {}
    ),
}


def format_id(id_: int, format_: str) -> str:
    how = _text_format(format_)
    if format_ == "uuid":
        return _uuid(id_)
    base, digits = len(how.alphabet), ""
    while id_ or not digits:
        id_, digit = divmod(id_, base)
        digits = how.alphabet[digit] + digits
    return digits.rjust(how.longest, how.alphabet[0]) if how.fixed_width else digits


def parse_id(text: str, format_: str) -> int:
    how = _text_format(format_)
    if not text:
        raise Refused("invalid_id", "an empty string")
    if format_ == "uuid":
        return _from_uuid(text)
    value = 0
    for position, character in enumerate(text, start=1):
        character = how.also.get(character, character)
        if character not in how.alphabet:
            raise Refused("invalid_id", "not a digit of this format", position=position)
        value = value * len(how.alphabet) + how.alphabet.index(character)
        if position > how.longest or value > U64:
            raise Refused("invalid_id", "more than 64 bits", position=position)
    return value


def _uuid(id_: int) -> str:
    """An ID as a version 8 UUID: in the highest free bits, followed by zeros."""
    custom_a, rest = divmod(id_, 2**16)
    custom_b, rest = divmod(rest, 2**4)
    custom_c = rest << 58
    version, variant = 8, 0b10
    number = custom_a << 80 | version << 76 | custom_b << 64 | variant << 62 | custom_c
    return str(uuid.UUID(int=number))


def _from_uuid(text: str) -> int:
    how = FORMATS["uuid"]
    lower = "".join(how.also.get(character, character) for character in text)
    tail = _uuid(0)
    for position in range(1, len(lower) + 1):
        # Check that some ID's UUID begins with these characters.
        whole = lower[:position] + tail[position:]
        if not re.fullmatch("[0-9a-f-]{36}", whole) or _uuid(_bits_of_uuid(whole)) != whole:
            raise Refused("invalid_id", "no ID's UUID begins so", position=position)
    if len(lower) < how.longest:
        raise Refused("invalid_id", "a UUID has 36 characters")
    return _bits_of_uuid(lower)


def _bits_of_uuid(text: str) -> int:
    """The bits of a UUID that hold the ID."""
    number = int(text.replace("-", ""), 16)
    above_version, above_variant = number >> 80, number >> 64 & 0xFFF
    return (above_version << 16 | above_variant << 4 | number >> 58 & 0xF) & U64


def _text_format(format_: str) -> TextFormat:
    if format_ not in FORMATS:
        raise Refused("invalid_option", f"a format is one of {', '.join(FORMATS)}")
    return FORMATS[format_]


# Options -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    """Valid options; `read` creates them from the values of a typed language."""

    layout: Layout
    node: int
    max_backward_ms: int
    max_ahead_ms: int
    max_wait_ms: int
    sequence_start: str

    @staticmethod
    def read(given: Mapping[str, Any]) -> Options:
        known = {"layout", "node", "sequence_start", "clock", *MS_OPTIONS}
        if unknown := set(given) - known:
            raise Refused("invalid_option", f"there is no option {min(unknown)!r}")
        layout = Layout.read(given.get("layout", "twitter"))
        node = layout.whole_node(given.get("node"))
        defaults = {
            "max_backward_ms": 1000,
            "max_ahead_ms": 0,
            "max_wait_ms": min(layout.tick_ms + 1000, LARGEST_MS_OPTION),
        }
        ms = {name: given.get(name, default) for name, default in defaults.items()}
        for name, value in ms.items():
            if value not in range(LARGEST_MS_OPTION + 1):
                raise Refused("invalid_option", f"{name} is 0 to {LARGEST_MS_OPTION}")
        start = given.get("sequence_start", "spread")
        if start not in ("zero", "spread"):
            raise Refused("invalid_option", "sequence_start is zero or spread")
        if given.get("clock", "system") not in ("system", "steady"):
            raise Refused("invalid_option", "clock is system, steady or the caller's own")
        return Options(layout, node, sequence_start=start, **ms)


MS_OPTIONS = ("max_backward_ms", "max_ahead_ms", "max_wait_ms")


def options_from_texts(texts: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the vectors' option strings into values of a typed language."""
    values: dict[str, Any] = {}
    for name, text in texts.items():
        if name == "node_text":
            values["node"] = parse_node_text(text)
        elif name == "node" and isinstance(text, Mapping):
            values["node"] = {field: int(value) for field, value in text.items()}
        elif name == "node":
            values["node"] = int(text)
        elif name in MS_OPTIONS:
            if not re.fullmatch(r"-?[0-9]+", text):
                raise Refused("invalid_option", f"{name} is a number")
            values[name] = int(text)
        else:
            values[name] = text
    return values


def parse_node_text(text: str) -> Node:
    """Parses a node written as `7` or `datacenter=1,worker=7`."""
    if re.fullmatch(NUMBER, text):
        return int(text)
    node: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(rf"({NAME})=({NUMBER})", part)
        if match is None or match[1] in node:
            raise Refused("invalid_node", "a node is a number, or FIELD=VALUE joined by commas")
        node[match[1]] = int(match[2])
    return node


# Generating --------------------------------------------------------------------------------------


def mix(z: int) -> int:
    """The output function of SplitMix64."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & U64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & U64
    return z ^ z >> 31


class ScriptClock:
    """A clock that stands still, or, with `until`, is moved by each reading after the first.

    `stride` and `skip` serve to check that a script does not depend on how often the clock is
    read: each reading makes `stride` moves at once, and `skip` such steps precede the first
    reading.
    """

    def __init__(
        self, start: int, advance: int = 0, until: int | None = None, stride: int = 1, skip: int = 0
    ) -> None:
        self.until = start if until is None else until
        self.advance = advance * stride
        self.value = min(start + advance * skip, self.until)
        self.was_read = False

    def read(self) -> int:
        if self.was_read:
            self.value = min(self.value + self.advance, self.until)
        self.was_read = True
        return self.value

    @property
    def has_stopped(self) -> bool:
        """True if waiting would not help."""
        return self.value == self.until


class Reference:
    """A single caller of a cursor with its own clock."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.layout = options.layout
        tick_ms = options.layout.tick_ms
        self.ahead = options.max_ahead_ms // tick_ms
        self.back = -(-options.max_backward_ms // tick_ms)
        self.node_bits_in_place = options.layout.node_in_place(options.node)
        # The last slot taken. It starts at 0, so slot 0 of tick 0 is never issued.
        self.cursor = 0

    def sequence_start(self, tick: int) -> int:
        if self.options.sequence_start == "zero":
            return 0
        quarter = max(1, 2**self.layout.sequence.bits // 4)
        return mix(tick ^ (self.options.node << 48 & U64)) % quarter

    def try_next_id(self, clock_ms: int) -> int:
        """Issues the next ID for this clock reading, or raises Refused."""
        layout, ahead = self.layout, self.ahead
        sequence_bits, epoch_ms, tick_ms = layout.sequence.bits, layout.epoch_ms, layout.tick_ms
        now = layout.tick_at(clock_ms)
        last = self.cursor >> sequence_bits
        counting_on = self.cursor + 1
        counting_on_tick = counting_on >> sequence_bits

        def ms_until(tick: int) -> int:
            return epoch_ms + tick * tick_ms - clock_ms

        if last - now - ahead > self.back:
            if counting_on_tick == last:
                earliest = max(0, last - ahead - self.back)
            else:
                earliest = last + 1 - ahead
            raise Refused(
                "clock_moved_backwards",
                "by more than max_backward_ms",
                behind_ms=ms_until(last - ahead),
                retry_after_ms=ms_until(earliest),
            )
        if counting_on_tick >= now:
            candidate, tick = counting_on, counting_on_tick
        else:
            candidate, tick = now << sequence_bits | self.sequence_start(now), now
        if tick > layout.last_tick:
            raise Refused("time_out_of_range", "the last tick is used up")
        if tick > now + ahead and tick != last:
            retry_after_ms = ms_until(tick - ahead)
            if last > now + ahead:
                raise Refused(
                    "clock_moved_backwards",
                    "and the sequence of the last tick has run out",
                    behind_ms=ms_until(last - ahead),
                    retry_after_ms=retry_after_ms,
                    blocked=True,
                )
            raise Refused("sequence_exhausted", retry_after_ms=retry_after_ms, blocked=True)
        self.cursor = candidate
        sequence = candidate & 2**sequence_bits - 1
        return (
            tick << layout.timestamp.shift
            | sequence << layout.sequence.shift
            | self.node_bits_in_place
        )

    def next_id(self, clock: ScriptClock) -> int:
        """Waits while the clock moves; once it stops, fails as if `max_wait_ms` had passed."""
        return self._next_id(clock, clock.read())

    def _next_id(self, clock: ScriptClock, clock_ms: int) -> int:
        while True:
            try:
                return self.try_next_id(clock_ms)
            except Refused as refused:
                if not refused.blocked or clock.has_stopped or self.options.max_wait_ms == 0:
                    raise
            clock_ms = clock.read()

    def next_ids(self, n: int, clock: ScriptClock, *, one_reading_a_run: bool = False) -> list[int]:
        if n not in range(1, LARGEST_BATCH + 1):
            raise Refused("invalid_option", f"n is 1 to {LARGEST_BATCH}")
        ids = []
        for i in range(n):
            clock_ms = clock.value if one_reading_a_run and i else clock.read()
            ids.append(self._next_id(clock, clock_ms))
        return ids
