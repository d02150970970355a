"""The reference: Polyflake in plain Python integers, written for reading and not for speed.

It shares no code with the core. It makes tests/vectors.json, the file every language runs, and it
is the oracle of the property tests.

    python3 tests/reference.py            write tests/vectors.json
    python3 tests/reference.py --check    exit with 1 when the committed file is another one

Python's integers neither wrap nor overflow, so every bound below is written out where it applies.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).resolve().with_name("vectors.json")

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
    "internal": 99,
}


class Refused(Exception):
    """Every refusal of the reference: one of ERRORS, with what it carries."""

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
        # Only a blocked call may wait and read the clock again; every other refusal is at once.
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
    "js-safe": "timestamp:41|worker:4|sequence:8@1735689600000/1ms",
}

NAME = r"[a-z][a-z0-9_-]*"
NUMBER = r"(?:0|[1-9][0-9]*)"
FIELD = rf"{NAME}:{NUMBER}"
LAYOUT_TEXT = re.compile(rf"({FIELD}(?:\|{FIELD})*)@({NUMBER})/({NUMBER})(ms|s)")
# Above this many digits a number is out of every range; Python would take long over a huge one.
MANY_DIGITS = 24

Node = int | Mapping[str, int] | None


@dataclass(frozen=True)
class Field:
    """One field in its place; `mask` is in place too: `id & mask` picks the field's bits."""

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
        """A preset's name or a layout text. Any of : | @ / makes it a layout text."""
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
        """Refuses what cannot work; a Layout that exists is a valid one."""
        names = [name for name, _ in self.widths]
        node_names = [n for n in names if n not in ("timestamp", "sequence")]
        width = dict(self.widths)
        rules = [
            (all(re.fullmatch(NAME, n) for n in names), "a name is [a-z][a-z0-9_-]*"),
            (all(len(n) <= 24 for n in names), "a name has at most 24 bytes"),
            (len(set(names)) == len(names), "a name stands twice"),
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
            raise Refused("invalid_layout", "the sequence stands above the timestamp")
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
        """All fields from the highest down."""
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
        """The node fields joined from the highest down, wherever they stand in the ID."""
        if not self.node_fields and (node is None or node == {}):
            return 0
        if node is None:
            raise Refused("invalid_node", "a node is required")
        if isinstance(node, int):
            if node not in range(self.nodes):
                raise Refused("invalid_node", f"a node is 0 to {self.nodes - 1}")
            return node
        if set(node) != {field.name for field in self.node_fields}:
            raise Refused("invalid_node", "a map names every node field and no other")
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
        self._refuse_range()
        return self.join(self.tick_at(time_ms, round_up=True), 0, 0)

    def max_id(self, time_ms: int) -> int:
        self._refuse_range()
        return self.join(self.tick_at(time_ms), self.nodes - 1, self.ids_per_tick - 1)

    def _refuse_range(self) -> None:
        if self.has_node_above_time:
            raise Refused("invalid_layout", "a node field above the time: no range is one of time")


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
    # Characters that are also read: a mapping to the one that is written.
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
}


def format_id(id_: int, format_: str) -> str:
    how = _text_format(format_)
    base, digits = len(how.alphabet), ""
    while id_ or not digits:
        id_, digit = divmod(id_, base)
        digits = how.alphabet[digit] + digits
    return digits.rjust(how.longest, how.alphabet[0]) if how.fixed_width else digits


def parse_id(text: str, format_: str) -> int:
    how = _text_format(format_)
    if not text:
        raise Refused("invalid_id", "an empty text")
    value = 0
    for position, character in enumerate(text, start=1):
        character = how.also.get(character, character)
        if character not in how.alphabet:
            raise Refused("invalid_id", "a foreign character", position=position)
        value = value * len(how.alphabet) + how.alphabet.index(character)
        if position > how.longest or value > U64:
            raise Refused("invalid_id", "more than 64 bits", position=position)
    return value


def _text_format(format_: str) -> TextFormat:
    if format_ not in FORMATS:
        raise Refused("invalid_option", f"a format is one of {', '.join(FORMATS)}")
    return FORMATS[format_]


# Options -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    """Checked options; `read` makes them from values as a typed language has them."""

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
            raise Refused("invalid_option", f"no option is called {min(unknown)!r}")
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
    """The option texts of the vectors as values of a typed language."""
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
    """`7` or `datacenter=1,worker=7`."""
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
    """SplitMix64's output function."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & U64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & U64
    return z ^ z >> 31


class ScriptClock:
    """A clock held at a value; with `until`, each reading after the first moves it.

    `stride` and `skip` are for checking that a script does not depend on how often it is read:
    `stride` takes so many moves at once, `skip` makes so many readings before the first.
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
    def stands(self) -> bool:
        """Waiting is of no use any more."""
        return self.value == self.until


class Reference:
    """One caller on one cursor with a clock of its own."""

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
        """One pass of the rule with one reading of the clock."""
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
                    "and the sequence of the tick that was kept has run out",
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
        """Waits as long as the clock moves; one that stands outlasts every `max_wait_ms`."""
        return self._next_id(clock, clock.read())

    def _next_id(self, clock: ScriptClock, clock_ms: int) -> int:
        while True:
            try:
                return self.try_next_id(clock_ms)
            except Refused as refused:
                if not refused.blocked or clock.stands or self.options.max_wait_ms == 0:
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


# The vectors -------------------------------------------------------------------------------------

Case = dict[str, Any]

ABOUT = """\
Test vectors of Polyflake, the same for every language. Made by tests/reference.py, which shares no
code with the core; do not edit this file, change that one. A runner takes every case through the
public API of its language and fails on a section that it does not know.

Numbers. IDs, milliseconds, ticks, masks, counts, node values, sequences and the numbers among the
options are decimal strings, so that every JSON parser keeps them exact; some are negative or above
64 bits, always in cases that must be refused. A runner whose language cannot even express such a
value (a minus sign in an unsigned argument) passes over the case and says how many it passed over.
Numbers of errors, widths, shifts and positions are JSON numbers. Times are Unix milliseconds.

errors: every error there is, with its permanent number and name. Wherever a case says "error", its
name stands there and the number must agree with this table.

layouts: "given" is a preset's name or a layout text. It must give the layout of "text" (canonical,
and "text" itself must parse to an equal layout), with the properties that follow. "fields" are all
fields from the highest down, timestamp and sequence among them; "mask" is in place, that is
(2^bits - 1) << shift.

layouts_refused: "given" must be refused with "error"; "why" is for people.

decode: "id" under "layout" (name or text). "node" is the whole node: the node fields joined from
the highest down. "fields" has the node fields alone. decode_refused: must be refused.

compose: the ID for an instant, a node and a sequence. "node" is the whole node as a string, a map
of node fields to strings, or null for none. compose_refused: must be refused with "error".

bounds: the lowest ID at or after "time_ms" and the highest at or before it. A side that must be
refused is {"error": name} in place of the ID.

texts: an ID and how each format writes it; reading that text gives the ID back. texts_read: further
texts that are read. texts_refused: "position" is that of the first character that refuses, counted
from 1 in characters, and the message holds the words "position N"; null where there is none.

Options, in the sections below. "layout", "sequence_start" and "clock" are texts;
"max_backward_ms", "max_ahead_ms" and "max_wait_ms" are numbers as strings; "node" is the whole
node as a string or a map of node fields to strings. "node_text" stands in place of "node" for
languages whose options are texts (C): give it as the option "node"; others pass over the case or
check that it is refused as a wrong type. "text_only": true marks cases that need options of name
and text too (an option that does not exist, a number that is none). Where "clock" is not given,
the runner gives a clock of its own that returns a fixed time: the built-in clocks share one cursor
in a process, and its bounds.

options: accepted; the Snowflake's "layout" (canonical text) and whole "node" are as given.
options_refused: building the Snowflake must be refused with "error".

scripts: a Snowflake is built with "options" and a clock of the runner's own, then "steps" run in
order on that one Snowflake. "clock" sets what the clock returns, at every reading, until the next
step that has one; a step without it leaves the clock where it is. With "advance" and "until", the
first reading of the step returns "clock" and each later reading is "advance" more than the one
before, but never more than "until", where it stays; the step after such a one always sets the
clock. "call" is next_id, try_next_id or next_ids with "n". Then exactly one of:
  "id": the ID that the call returns;
  "ids": all IDs of next_ids in order;
  "run": for long ones: "count" IDs, each greater than the one before, from "first" to "last";
  "error": the name, and "behind_ms" and "retry_after_ms" where the error carries them.
No outcome depends on how often the clock is read, nor on real time: where a call waits for a clock
that stands, "max_wait_ms" is small and it must give up; where the clock moves, it is large."""

# One well-known instant, 2022-06-28T16:07:40.105Z, for the presets that live then.
T = 1656432460105
TWITTER_EPOCH = 1288834974657

EDGE_LAYOUTS = [
    # Full words and the very end of time.
    "timestamp:63|sequence:1@0/1ms",
    "timestamp:42|node:10|sequence:12@0/1ms",
    "timestamp:42|sequence:12|node:10@1288834974657/1ms",
    "node:10|timestamp:42|sequence:12@1288834974657/1ms",
    "timestamp:32|sequence:32@0/1s",
    "timestamp:31|node:32|sequence:1@0/1s",
    "timestamp:1|node:31|sequence:32@0/1ms",
    "timestamp:1|sequence:31|node:32@0/1ms",
    "timestamp:62|node:1|sequence:1@4611686018427387904/1ms",
    "timestamp:1|sequence:1@9223372036854775806/1ms",
    "timestamp:1|sequence:1@0/4611686018427387904ms",
    "timestamp:1|sequence:1@0/4611686018427387s",
    "timestamp:1|sequence:1@0/1ms",
    # 53 bits.
    "timestamp:31|node:10|sequence:12@1577203200000/1s",
    "timestamp:41|sequence:12@1735689600000/1ms",
    # Many and long names.
    "timestamp:32|a:1|b:1|c:1|d:1|e:1|f:1|g:1|h:1|sequence:8@0/1ms",
    "a:4|b:4|timestamp:24|c:4|d:4|sequence:8|e:4|f:4|g:4|h:4@0/1s",
    "timestamp:41|abcdefghijklmnopqrstuvwx:10|sequence:12@0/1ms",
    "timestamp:41|dc-1_a:5|z9--__:5|sequence:12@0/1ms",
    "timestamp:41|epoch:5|tick:5|sequence:12@0/1ms",
    # No node field, and node fields on every side.
    "timestamp:41|sequence:22@1288834974657/1ms",
    "region:3|timestamp:41|worker:7|sequence:12@1288834974657/1ms",
    "region:2|timestamp:41|rack:3|sequence:10|worker:5|slot:3@1288834974657/1ms",
    "timestamp:40|node:8|sequence:8@1288834974657/1ms",
    "timestamp:41|worker:6|sequence:6|process:4@1582136402000/1ms",
    "zone:32|timestamp:30|sequence:2@0/1s",
    # Ticks.
    "timestamp:32|node:8|sequence:16@1474300800000/1s",
    "timestamp:29|worker:21|sequence:13@1474300800000/1s",
    "timestamp:29|worker:21|sequence:13@1474300800000/1000ms",
    "timestamp:32|node:8|sequence:16@0/1500ms",
    "timestamp:32|node:8|sequence:16@7/10ms",
    "timestamp:32|node:8|sequence:16@0/60s",
    "timestamp:20|node:8|sequence:16@0/86400000ms",
    "timestamp:40|node:8|sequence:16@0/999ms",
    # A short life.
    "timestamp:4|node:2|sequence:2@1000/1ms",
    "timestamp:4|node:2|sequence:3@1005/10ms",
]


def layouts() -> Iterator[Case]:
    for given in [*PRESETS, *PRESETS.values(), *EDGE_LAYOUTS]:
        layout = Layout.read(given)
        yield {
            "given": given,
            "text": layout.text,
            "epoch_ms": str(layout.epoch_ms),
            "tick_ms": str(layout.tick_ms),
            "total_bits": layout.total_bits,
            "timestamp_bits": layout.timestamp.bits,
            "timestamp_shift": layout.timestamp.shift,
            "sequence_bits": layout.sequence.bits,
            "sequence_shift": layout.sequence.shift,
            "node_bits": layout.node_bits,
            "ids_per_tick": str(layout.ids_per_tick),
            "nodes": str(layout.nodes),
            "ends_at_ms": str(layout.ends_at_ms),
            "fields": [
                {"name": f.name, "bits": f.bits, "shift": f.shift, "mask": str(f.mask)}
                for f in layout.fields
            ],
        }


LONG_NAME = "abcdefghijklmnopqrstuvwxy"
REFUSED_LAYOUTS = [
    ("timestamp:37|worker:20|sequence:16@0/1ms", "73 bits are 9 too many"),
    ("timestamp:41|worker:12|sequence:12@0/1ms", "65 bits are one too many"),
    ("timestamp:64|sequence:1@0/1ms", "65 bits"),
    ("timestamp:63|sequence:2@0/1ms", "65 bits"),
    ("timestamp:65|sequence:12@0/1ms", "one field of more than 64 bits"),
    ("worker:10|sequence:12@0/1ms", "no timestamp"),
    ("timestamp:41|worker:10@0/1ms", "no sequence"),
    ("timestamp:41@0/1ms", "no sequence"),
    ("sequence:12@0/1ms", "no timestamp"),
    ("worker:10@0/1ms", "neither timestamp nor sequence"),
    ("timestamp:20|timestamp:21|sequence:12@0/1ms", "two timestamps"),
    ("timestamp:41|sequence:6|sequence:6@0/1ms", "two sequences"),
    ("timestamp:41|worker:5|worker:5|sequence:12@0/1ms", "a node field twice"),
    ("worker:5|timestamp:41|sequence:12|worker:5@0/1ms", "a node field twice, far apart"),
    ("sequence:12|timestamp:41@0/1ms", "the sequence above the timestamp"),
    ("worker:10|sequence:12|timestamp:41@0/1ms", "the sequence above the timestamp"),
    ("sequence:12|worker:10|timestamp:41@0/1ms", "the sequence above the timestamp"),
    ("timestamp:41|a:1|b:1|c:1|d:1|e:1|f:1|g:1|h:1|i:1|sequence:12@0/1ms", "9 node fields"),
    (f"timestamp:41|{LONG_NAME}:10|sequence:12@0/1ms", "a name of 25 bytes"),
    ("timestamp:0|worker:10|sequence:12@0/1ms", "a timestamp of 0 bits"),
    ("timestamp:41|worker:0|sequence:12@0/1ms", "a node field of 0 bits"),
    ("timestamp:41|worker:10|sequence:0@0/1ms", "a sequence of 0 bits"),
    ("timestamp:31|sequence:33@0/1ms", "33 bits of sequence"),
    ("timestamp:30|worker:33|sequence:1@0/1ms", "33 bits of node"),
    ("timestamp:30|a:16|b:17|sequence:1@0/1ms", "33 bits of node in two fields"),
    ("a:17|timestamp:30|sequence:1|b:16@0/1ms", "33 bits of node on two sides"),
    ("timestamp:41|worker:10|sequence:12@0/0ms", "a zero tick"),
    ("timestamp:41|worker:10|sequence:12@0/0s", "a zero tick"),
    ("timestamp:63|sequence:1@1/1ms", "it would end one ms past 2^63-1"),
    ("timestamp:63|sequence:1@0/2ms", "it would end past 2^63-1"),
    ("timestamp:62|sequence:1@4611686018427387905/1ms", "it would end one ms past 2^63-1"),
    ("timestamp:1|sequence:1@9223372036854775807/1ms", "it would end one ms past 2^63-1"),
    ("timestamp:1|sequence:1@0/4611686018427387905ms", "it would end past 2^63-1"),
    ("timestamp:1|sequence:1@0/4611686018427388s", "it would end past 2^63-1"),
    ("timestamp:41|sequence:12@0/18446744073709552s", "the tick in ms is past 2^64"),
    ("timestamp:41|sequence:12@9223372036854775808/1ms", "the epoch is past 2^63-1"),
    ("timestamp:41|sequence:12@18446744073709551616/1ms", "the epoch is 2^64"),
    ("timestamp:41|sequence:12@340282366920938463463374607431768211456/1ms", "2^128"),
    ("timestamp:41|sequence:12@0/18446744073709551617ms", "the tick is 2^64+1"),
    ("timestamp:41|sequence:12@0/340282366920938463463374607431768211457ms", "2^128+1"),
    ("timestamp:297|sequence:12@0/1ms", "the width wraps to 41 in 8 bits"),
    ("timestamp:4294967337|sequence:12@0/1ms", "the width wraps to 41 in 32 bits"),
    ("timestamp:18446744073709551657|sequence:12@0/1ms", "the width wraps to 41 in 64 bits"),
    ("timestamp:41|sequence:268@0/1ms", "the width wraps to 12 in 8 bits"),
    ("timestamp:200|a:100|sequence:20@0/1ms", "the sum wraps to 64 in 8 bits"),
    ("timestamp:041|sequence:12@0/1ms", "a leading zero in a width"),
    ("timestamp:41|sequence:12@00/1ms", "a leading zero in the epoch"),
    ("timestamp:41|sequence:12@01288834974657/1ms", "a leading zero in the epoch"),
    ("timestamp:41|sequence:12@0/01ms", "a leading zero in the tick"),
    ("timestamp:+41|sequence:12@0/1ms", "a sign in a width"),
    ("timestamp:-41|sequence:12@0/1ms", "a sign in a width"),
    ("timestamp:41|sequence:12@+0/1ms", "a sign in the epoch"),
    ("timestamp:41|sequence:12@-1/1ms", "a negative epoch"),
    ("timestamp:41|sequence:12@0/+1ms", "a sign in the tick"),
    ("timestamp:41|sequence:12@0/-1ms", "a negative tick"),
    (" timestamp:41|sequence:12@0/1ms", "a space before"),
    ("timestamp:41|sequence:12@0/1ms ", "a space after"),
    ("timestamp:41|sequence:12@0/1ms\n", "a line feed after"),
    ("timestamp: 41|sequence:12@0/1ms", "a space inside"),
    ("timestamp:41 |sequence:12@0/1ms", "a space inside"),
    ("timestamp:41|sequence:12 @0/1ms", "a space inside"),
    ("timestamp:41|sequence:12@0/1 ms", "a space inside"),
    ("timestamp:41|\tsequence:12@0/1ms", "a tab inside"),
    ("Timestamp:41|sequence:12@0/1ms", "upper case"),
    ("TIMESTAMP:41|SEQUENCE:12@0/1MS", "upper case"),
    ("timestamp:41|Worker:10|sequence:12@0/1ms", "upper case in a node field"),
    ("timestamp:41|sequence:12@0/1MS", "upper case in the unit"),
    ("timestamp:41|sequence:12@0/1S", "upper case in the unit"),
    ("timestamp:41|sequence:12@0/1m", "a unit there is not"),
    ("timestamp:41|sequence:12@0/1us", "a unit there is not"),
    ("timestamp:41|sequence:12@0/1min", "a unit there is not"),
    ("timestamp:41|sequence:12@0/1mss", "a unit with more behind it"),
    ("timestamp:41|sequence:12@0/1sec", "a unit with more behind it"),
    ("timestamp:41|sequence:12@0/1", "no unit"),
    ("timestamp:41|sequence:12@0/ms", "a unit without a number"),
    ("timestamp:41|sequence:12@0/", "no tick"),
    ("timestamp:41|sequence:12@0", "no tick"),
    ("timestamp:41|sequence:12@/1ms", "no epoch"),
    ("timestamp:41|sequence:12@", "neither epoch nor tick"),
    ("timestamp:41|sequence:12/1ms", "no epoch"),
    ("timestamp:41|sequence:12", "neither epoch nor tick"),
    ("timestamp:41|sequence:12/1ms@0", "tick and epoch the wrong way round"),
    ("timestamp:41|sequence:12@0/1ms/1ms", "two ticks"),
    ("timestamp:41|sequence:12@0@0/1ms", "two epochs"),
    ("timestamp:41|sequence:12@0/1ms@0", "an epoch behind the tick"),
    ("timestamp:41|sequence:12@0/1ms|worker:5", "a field behind the tick"),
    ("timestamp:41|sequence:12@0/1ms;", "something behind the tick"),
    ("timestamp:41|sequence:12@0/1.5ms", "a fraction in the tick"),
    ("timestamp:41.0|sequence:12@0/1ms", "a fraction in a width"),
    ("timestamp:41|sequence:12@1e3/1ms", "an exponent"),
    ("timestamp:41|sequence:12@0x0/1ms", "hexadecimal"),
    ("timestamp:4_1|sequence:12@0/1ms", "an underscore in a number"),
    ("|timestamp:41|sequence:12@0/1ms", "an empty field before"),
    ("timestamp:41|sequence:12|@0/1ms", "an empty field after"),
    ("timestamp:41||sequence:12@0/1ms", "an empty field between"),
    ("timestamp:41|worker|sequence:12@0/1ms", "a field without a width"),
    ("timestamp:41|worker:|sequence:12@0/1ms", "a field without a width"),
    ("timestamp:41|:10|sequence:12@0/1ms", "a field without a name"),
    ("timestamp:41|worker:5:5|sequence:12@0/1ms", "a field with two widths"),
    ("timestamp:41|worker=10|sequence:12@0/1ms", "another sign between name and width"),
    ("timestamp:41,sequence:12@0/1ms", "commas between the fields"),
    ("timestamp:41|1worker:10|sequence:12@0/1ms", "a name that starts with a digit"),
    ("timestamp:41|_worker:10|sequence:12@0/1ms", "a name that starts with _"),
    ("timestamp:41|-worker:10|sequence:12@0/1ms", "a name that starts with -"),
    ("timestamp:41|wor.ker:10|sequence:12@0/1ms", "a dot in a name"),
    ("timestamp:41|w\u00f6rker:10|sequence:12@0/1ms", "a name that is not ASCII"),
    ("timestamp:41|\u0443zel:10|sequence:12@0/1ms", "a Cyrillic letter in a name"),
    ("timestamp:\uff14\uff11|sequence:12@0/1ms", "full-width digits"),
    ("timestamp:\u0664\u0661|sequence:12@0/1ms", "Arabic-Indic digits"),
    ("timestamp:41|sequence:12@0/1\uff4ds", "a full-width letter in the unit"),
    ("timestamp:41\uff5csequence:12@0/1ms", "a full-width bar"),
    ("timestamp:41|\U0001f600:10|sequence:12@0/1ms", "a name beyond the basic plane"),
    (":", "signs alone"),
    ("|", "signs alone"),
    ("@", "signs alone"),
    ("/", "signs alone"),
    ("@0/1ms", "no fields"),
    ("twitter@0/1ms", "a preset's name is no field list"),
    ("twitter:41", "a preset's name is no field list"),
    ("twitter/1ms", "a preset's name takes no tick"),
    ("", "an empty text is no preset's name"),
    (" ", "a space is no preset's name"),
    ("Twitter", "upper case"),
    ("TWITTER", "upper case"),
    (" twitter", "a space before"),
    ("twitter ", "a space after"),
    ("twitter\n", "a line feed after"),
    ("twiter", "a near miss"),
    ("twitters", "a near miss"),
    ("snowflake", "no preset of that name"),
    ("sonyflake3", "a near miss"),
    ("sony", "the beginning of a name is no name"),
    ("cosid_second", "a near miss"),
    ("cosid-", "a near miss"),
    ("jssafe", "a near miss"),
    ("js safe", "a near miss"),
    ("timestamp", "a field's name is no preset's name"),
    ("41", "a number is no preset's name"),
    ("\u0442witter", "a Cyrillic letter"),
    ("twitter\u200b", "an invisible character"),
    ("default", "no preset of that name"),
    ("x" * 300, "a long name"),
]


def layouts_refused() -> Iterator[Case]:
    for given, why in REFUSED_LAYOUTS:
        yield {"given": given, "error": refusal(Layout.read, given).name, "why": why}


PUBLISHED = [
    ("twitter", 1541815603606036480),
    ("discord", 175928847299117063),
    ("shardingsphere", 725026630224842752),
    ("tsid", 38358284406638839),
    ("timestamp:29|worker:21|sequence:13@1474300800000/1s", 180363646902239241),
]
# The layouts that decode, compose and bounds go through.
SHAPES = [
    *PRESETS,
    "timestamp:63|sequence:1@0/1ms",
    "timestamp:42|node:10|sequence:12@0/1ms",
    "timestamp:32|sequence:32@0/1s",
    "timestamp:31|node:32|sequence:1@0/1s",
    "timestamp:32|a:1|b:1|c:1|d:1|e:1|f:1|g:1|h:1|sequence:8@0/1ms",
    "region:2|timestamp:41|rack:3|sequence:10|worker:5|slot:3@1288834974657/1ms",
    "timestamp:32|node:8|sequence:16@7/10ms",
    "timestamp:32|node:8|sequence:16@0/1500ms",
    "timestamp:4|node:2|sequence:2@1000/1ms",
]


def decode() -> Iterator[Case]:
    cases = list(PUBLISHED)
    for number, given in enumerate(SHAPES):
        layout = Layout.read(given)
        ones = 2**layout.total_bits - 1
        cases += [(given, 0), (given, ones), (given, ones // 3), (given, ones - ones // 3)]
        cases += [(given, field.mask) for field in layout.fields[:3]]
        # Numbers without a pattern, and the same in every run.
        cases += [(given, mix(1000 * number + i) & ones) for i in (1, 2, 3)]
    for given, id_ in cases:
        decoded = Layout.read(given).decode(id_)
        yield {
            "layout": given,
            "id": str(id_),
            "timestamp_ms": str(decoded.timestamp_ms),
            "ticks": str(decoded.ticks),
            "node": str(decoded.node),
            "fields": strings(decoded.fields),
            "sequence": str(decoded.sequence),
        }


def decode_refused() -> Iterator[Case]:
    for given in SHAPES:
        layout = Layout.read(given)
        for id_ in sorted({2**layout.total_bits, U64, 2**64, 2**64 + 1, 2**70, -1}):
            if id_ not in range(2**layout.total_bits):
                error = refusal(layout.decode, id_).name
                yield {"layout": given, "id": str(id_), "error": error}


def instants(layout: Layout) -> dict[str, int]:
    middle = (layout.last_tick + 1) // 2
    return {
        "first": layout.epoch_ms,
        "in the first tick": layout.epoch_ms + layout.tick_ms - 1,
        "middle": layout.epoch_ms + middle * layout.tick_ms,
        "just after": layout.epoch_ms + middle * layout.tick_ms + min(1, layout.tick_ms - 1),
        "just before": layout.epoch_ms + middle * layout.tick_ms - 1,
        "last tick": layout.epoch_ms + layout.last_tick * layout.tick_ms,
        "last": layout.ends_at_ms,
    }


def compose() -> Iterator[Case]:
    cases: list[tuple[str, int, Any, int]] = []
    for number, given in enumerate(SHAPES):
        layout = Layout.read(given)
        at = instants(layout)
        top_node, top_sequence = layout.nodes - 1, layout.ids_per_tick - 1
        some_node = mix(number) % layout.nodes
        some_sequence = mix(number + 100) % layout.ids_per_tick
        cases += [
            (given, at["first"], 0, 0),
            (given, at["in the first tick"], 0, min(1, top_sequence)),
            (given, at["middle"], some_node, some_sequence),
            (given, at["just after"], layout.split_node(some_node), some_sequence),
            (given, at["just before"], layout.split_node(top_node), 0),
            (given, at["last tick"], 0, top_sequence),
            (given, at["last"], top_node, top_sequence),
        ]
    cases += [
        ("twitter", T, 378, 0),
        ("twitter", T, {"datacenter": 11, "worker": 26}, 0),
        ("twitter", T, {"worker": 26, "datacenter": 11}, 4095),
        ("mastodon", T, None, 65535),
        ("mastodon", T, 0, 1),
        ("mastodon", T, {}, 1),
        ("discord", 1462015105796, {"worker": 1, "process": 0}, 7),
        ("baidu", 1484799346000, 4, 9),
        ("baidu", 1484799346999, 4, 9),
        ("sonyflake", T, 65535, 255),
    ]
    for given, time_ms, node, sequence in cases:
        yield {
            "layout": given,
            "time_ms": str(time_ms),
            "node": strings(node),
            "sequence": str(sequence),
            "id": str(Layout.read(given).compose(time_ms, node, sequence)),
        }


def compose_refused() -> Iterator[Case]:
    cases: list[tuple[str, int, Any, int]] = []
    for given in SHAPES:
        layout = Layout.read(given)
        node = 0 if layout.node_fields else None
        cases += [(given, layout.epoch_ms - 1, node, 0), (given, layout.ends_at_ms + 1, node, 0)]
        cases += [(given, layout.ends_at_ms, node, layout.ids_per_tick)]
        cases += [(given, layout.ends_at_ms, layout.nodes, 0)]
    cases += [
        ("twitter", 0, 1, 0),
        ("twitter", -1, 1, 0),
        ("mastodon", -(2**63), None, 0),
        ("twitter", 2**63 - 1, 1, 0),
        ("baidu", 1732109056000, 0, 0),
        ("twitter", T, None, 0),
        ("twitter", T, -1, 0),
        ("twitter", T, 1024, 0),
        ("twitter", T, 2**32, 0),
        ("twitter", T, 2**64, 0),
        ("twitter", T, {}, 0),
        ("twitter", T, {"datacenter": 1}, 0),
        ("twitter", T, {"worker": 1}, 0),
        ("twitter", T, {"datacenter": 1, "worker": 1, "process": 1}, 0),
        ("twitter", T, {"datacenter": 1, "process": 1}, 0),
        ("twitter", T, {"datacenter": 1, "Worker": 1}, 0),
        ("twitter", T, {"datacenter": 1, "worker": 32}, 0),
        ("twitter", T, {"datacenter": 32, "worker": 1}, 0),
        ("twitter", T, {"datacenter": -1, "worker": 1}, 0),
        ("twitter", T, {"datacenter": 1, "worker": 2**64}, 0),
        ("twitter", T, {"datacenter": 1, "worker": 1, "sequence": 1}, 0),
        ("twitter", T, {"timestamp": 1, "datacenter": 1, "worker": 1}, 0),
        ("mastodon", T, 1, 0),
        ("mastodon", T, {"worker": 0}, 0),
        ("twitter", T, 1, 4096),
        ("twitter", T, 1, -1),
        ("twitter", T, 1, 2**32),
        ("twitter", T, 1, 2**64),
    ]
    for given, time_ms, node, sequence in cases:
        yield {
            "layout": given,
            "time_ms": str(time_ms),
            "node": strings(node),
            "sequence": str(sequence),
            "error": refusal(Layout.read(given).compose, time_ms, node, sequence).name,
        }


def bounds() -> Iterator[Case]:
    def side(call: Any, time_ms: int) -> Any:
        try:
            return str(call(time_ms))
        except Refused as refused:
            return {"error": refused.name}

    for given in SHAPES:
        layout = Layout.read(given)
        times = [*instants(layout).values(), layout.epoch_ms - 1, layout.ends_at_ms + 1, T, -1]
        for time_ms in sorted(set(times)):
            yield {
                "layout": given,
                "time_ms": str(time_ms),
                "min_id": side(layout.min_id, time_ms),
                "max_id": side(layout.max_id, time_ms),
            }


def texts() -> Iterator[Case]:
    ids = [id_ for _, id_ in PUBLISHED]
    ids += [0, 1, 9, 10, 15, 16, 31, 32, 35, 36, 57, 58, 61, 62, 255, 4095, 65535, 10**6]
    ids += [2**31 - 1, 2**32 - 1, 2**32, 2**53 - 1, 2**53, 2**62, 2**63 - 1, 2**63]
    ids += [U64 - 1, U64, U64 // 3, mix(1), mix(2), mix(3)]
    # The longest number of each width in each base, and the one after it.
    for how in FORMATS.values():
        top = len(how.alphabet) ** (how.longest - 1)
        ids += [top - 1, top]
    for id_ in dict.fromkeys(ids):
        yield {"id": str(id_)} | {name: format_id(id_, name) for name in FORMATS}


TEXTS_READ = [
    ("decimal", "00000000000000000000"),
    ("decimal", "007"),
    ("decimal", "00000000000000000001"),
    ("decimal", "09223372036854775808"),
    ("hex", "FFFFFFFFFFFFFFFF"),
    ("hex", "ffffFFFFffffFFFF"),
    ("hex", "00000000000000aB"),
    ("hex", "0"),
    ("hex", "DeadBeef"),
    ("base32", "01226n0640j7q"),
    ("base32", "01226N0640J7q"),
    ("base32", "1226N0640J7Q"),
    ("base32", "0"),
    ("base32", "o"),
    ("base32", "O"),
    ("base32", "i"),
    ("base32", "I"),
    ("base32", "l"),
    ("base32", "L"),
    ("base32", "OiIlLo"),
    ("base32", "abcdefghjkmn"),
    ("base32", "pqrstvwxyz"),
    ("base32", "fzzzzzzzzzzzz"),
    ("base32", "FZZZZZZZZZZZZ"),
    ("base36", "ZZZ"),
    ("base36", "zZz"),
    ("base36", "0000000000zzz"),
    ("base36", "3W5E11264SGSF"),
    ("base36", "3w5e11264sgsf"),
    ("base58", "1"),
    ("base58", "11111111111"),
    ("base58", "1111111111z"),
    ("base58", "jpXCZedGfVQ"),
    ("base62", "0"),
    ("base62", "z"),
    ("base62", "Z"),
    ("base62", "0z"),
    ("base62", "LygHa16AHYF"),
]


def texts_read() -> Iterator[Case]:
    for format_, text in TEXTS_READ:
        yield {"format": format_, "text": text, "id": str(parse_id(text, format_))}


TEXTS_REFUSED = [
    *((name, "") for name in FORMATS),
    *((name, text) for name in FORMATS for text in (" ", "-1", "+1", " 1", "1 ", "1\n", "1-1")),
    *(
        (name, text)
        for name in FORMATS
        for text in ("1.0", "1_0", "\uff11", "1\u0661", "1\U0001f600")
    ),
    *((name, how.alphabet[0] * (how.longest + 1)) for name, how in FORMATS.items()),
    *((name, how.alphabet[-1] * how.longest) for name, how in FORMATS.items() if name != "hex"),
    *((name, format_id(U64, name) + how.alphabet[0]) for name, how in FORMATS.items()),
    # One more than the largest.
    ("decimal", "18446744073709551616"),
    ("hex", "10000000000000000"),
    ("base32", "G000000000000"),
    ("base36", "3w5e11264sgsg"),
    ("base58", "jpXCZedGfVR"),
    ("base62", "LygHa16AHYG"),
    # Two faults: the first from the left counts.
    ("decimal", "1844674407370955161x"),
    ("decimal", "99999999999999999999x"),
    ("decimal", "0000000000000000000000x"),
    ("decimal", "12x45y"),
    ("decimal", "1e5"),
    ("decimal", "0x10"),
    ("decimal", "12,345"),
    ("decimal", "abc"),
    ("hex", "0x1f"),
    ("hex", "fg"),
    ("hex", "ffffffffffffffffg"),
    ("hex", "ffffffffffffffff0"),
    ("base32", "01226N0640J7U"),
    ("base32", "01226N0640J7u"),
    ("base32", "01226-N0640J7Q"),
    ("base32", "ZZZZZZZZZZZZZ"),
    ("base32", "01226N0640J7Q0"),
    ("base32", "*"),
    ("base36", "zzz\u212a"),
    ("base36", "\u0131"),
    ("base36", "zzzzzzzzzzzzz"),
    ("base58", "0"),
    ("base58", "1O"),
    ("base58", "1I"),
    ("base58", "1l"),
    ("base58", "11111111110"),
    ("base58", "111111111111"),
    ("base62", "000000000-0"),
    ("base62", "LygHa16AHYz"),
    ("base62", "M0000000000"),
    ("base62", "\u00e9"),
    # Formats there are not.
    ("base64", "1"),
    ("base16", "1"),
    ("", "1"),
    ("Hex", "1"),
    ("HEX", "1"),
    ("base32 ", "1"),
]


def texts_refused() -> Iterator[Case]:
    for format_, text in TEXTS_REFUSED:
        refused = refusal(parse_id, text, format_)
        yield {
            "format": format_,
            "text": text,
            "error": refused.name,
            "position": refused.position,
        }


SIDES = "region:2|timestamp:41|rack:3|sequence:10|worker:5|slot:3@1288834974657/1ms"
TEXT_ONLY = {"text_only": True}
OPTIONS = [
    {"node": "0"},
    {"node": "7"},
    {"node": "1023"},
    {"node": {"datacenter": "1", "worker": "7"}},
    {"node": {"worker": "7", "datacenter": "1"}},
    {"node": {"datacenter": "31", "worker": "31"}},
    {"node": {"datacenter": "0", "worker": "0"}},
    {"node_text": "7"},
    {"node_text": "1023"},
    {"node_text": "datacenter=1,worker=7"},
    {"node_text": "worker=7,datacenter=1"},
    {"layout": "leaf", "node": {"worker": "1023"}},
    {"layout": "leaf", "node_text": "worker=1023"},
    {"layout": "discord", "node": {"worker": "1", "process": "2"}},
    {"layout": "mastodon"},
    {"layout": "mastodon", "node": "0"},
    {"layout": "mastodon", "node": {}},
    {"layout": "mastodon", "node_text": "0"},
    {"layout": SIDES, "node": "8191"},
    {"layout": SIDES, "node": {"region": "2", "rack": "5", "worker": "19", "slot": "1"}},
    {"layout": SIDES, "node_text": "slot=1,worker=19,rack=5,region=2"},
    {"layout": "timestamp:31|node:32|sequence:1@0/1s", "node": "4294967295"},
    {"layout": "timestamp:32|sequence:32@0/1000ms"},
    {"layout": "timestamp:29|worker:21|sequence:13@1474300800000/1000ms", "node": "4"},
    {"node": "7", "max_backward_ms": "0"},
    {"node": "7", "max_backward_ms": "4294967295"},
    {"node": "7", "max_ahead_ms": "0"},
    {"node": "7", "max_ahead_ms": "4294967295"},
    {"node": "7", "max_wait_ms": "0"},
    {"node": "7", "max_wait_ms": "4294967295"},
    {"node": "7", "sequence_start": "zero"},
    {"node": "7", "sequence_start": "spread"},
    {"node": "7", "clock": "system"},
    {"node": "7", "clock": "steady"},
    *({"layout": name, "node": "1"} for name in PRESETS if name != "mastodon"),
    {
        "layout": "sonyflake",
        "node": {"machine": "65535"},
        "max_backward_ms": "15",
        "max_ahead_ms": "15",
        "max_wait_ms": "25",
        "sequence_start": "zero",
    },
]
REFUSED_OPTIONS = [
    {},
    {"node": "-1"},
    {"node": "1024"},
    {"node": "4294967296"},
    {"node": "4294967303"},
    {"node": "18446744073709551616"},
    {"node": "18446744073709551623"},
    {"node": {}},
    {"node": {"datacenter": "1"}},
    {"node": {"worker": "7"}},
    {"node": {"datacenter": "1", "worker": "32"}},
    {"node": {"datacenter": "32", "worker": "7"}},
    {"node": {"datacenter": "-1", "worker": "7"}},
    {"node": {"datacenter": "1", "worker": "18446744073709551616"}},
    {"node": {"datacenter": "1", "worker": "7", "process": "0"}},
    {"node": {"datacenter": "1", "machine": "7"}},
    {"node": {"datacenter": "1", "Worker": "7"}},
    {"node": {"datacenter": "1", "worker": "7", "sequence": "0"}},
    {"node": {"datacenter": "1", "worker": "7", "": "0"}},
    {"layout": "leaf"},
    {"layout": "leaf", "node": "1024"},
    {"layout": "leaf", "node": {"datacenter": "1", "worker": "7"}},
    {"layout": "js-safe", "node": "16"},
    {"layout": "mastodon", "node": "1"},
    {"layout": "mastodon", "node": {"worker": "0"}},
    {"layout": "timestamp:31|node:32|sequence:1@0/1s", "node": "4294967296"},
    {"node_text": ""},
    {"node_text": "seven"},
    {"node_text": "-1"},
    {"node_text": "1.5"},
    {"node_text": "1024"},
    {"node_text": "18446744073709551623"},
    {"node_text": "datacenter=1"},
    {"node_text": "datacenter=1,worker=32"},
    {"node_text": "datacenter=1,worker=7,process=0"},
    {"node_text": "datacenter=1,worker=7,worker=7"},
    {"node_text": "datacenter=1,worker=7,"},
    {"node_text": ",datacenter=1,worker=7"},
    {"node_text": "datacenter=1,,worker=7"},
    {"node_text": "datacenter=1;worker=7"},
    {"node_text": "datacenter:1,worker:7"},
    {"node_text": "datacenter=,worker=7"},
    {"node_text": "datacenter,worker=7"},
    {"node_text": "=1,worker=7"},
    {"node_text": "datacenter=1,worker=-7"},
    {"node_text": "datacenter=1,worker=x"},
    {"node_text": "1,7"},
    *({"node": "7", name: "-1"} for name in MS_OPTIONS),
    *({"node": "7", name: "4294967296"} for name in MS_OPTIONS),
    *({"node": "7", name: "18446744073709551616"} for name in MS_OPTIONS),
    *({"node": "7", name: text} | TEXT_ONLY for name in MS_OPTIONS for text in ("", "x", "1.5")),
    *({"node": "7", name: "10ms"} | TEXT_ONLY for name in MS_OPTIONS),
    {"node": "7", "sequence_start": "random"},
    {"node": "7", "sequence_start": ""},
    {"node": "7", "sequence_start": "Zero"},
    {"node": "7", "sequence_start": "0"},
    {"node": "7", "clock": "sundial"},
    {"node": "7", "clock": ""},
    {"node": "7", "clock": "System"},
    {"node": "7", "layout": ""},
    {"node": "7", "layout": "twiter"},
    {"node": "7", "layout": "Twitter"},
    {"node": "7", "layout": "timestamp:37|worker:20|sequence:16@0/1ms"},
    {"node": "7", "layout": "timestamp:41|worker:10|sequence:12"},
    {"node": "7", "max_lag_ms": "1"} | TEXT_ONLY,
    {"node": "7", "Layout": "twitter"} | TEXT_ONLY,
    {"node": "7", "maxWaitMs": "1"} | TEXT_ONLY,
    {"node": "7", "": "1"} | TEXT_ONLY,
]


def _without_mark(options: Case) -> tuple[Case, Case]:
    mark = {"text_only": True} if "text_only" in options else {}
    return {k: v for k, v in options.items() if k != "text_only"}, mark


def options() -> Iterator[Case]:
    for given in OPTIONS:
        read = Options.read(options_from_texts(given))
        yield {"options": given, "node": str(read.node), "layout": read.layout.text}


def options_refused() -> Iterator[Case]:
    for marked in REFUSED_OPTIONS:
        given, mark = _without_mark(marked)
        refused = refusal(lambda given=given: Options.read(options_from_texts(given)))
        yield {"options": given, "error": refused.name} | mark


# Scripts -----------------------------------------------------------------------------------------


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


# Small layouts, so that a tick is soon used up. The epoch of SMALL is 1000, that of COARSE 1005.
SMALL = "timestamp:20|node:4|sequence:2@1000/1ms"
COARSE = "timestamp:20|node:4|sequence:2@1005/10ms"
SLOW = "timestamp:20|node:4|sequence:2@5000/1s"
SHORT = "timestamp:4|node:2|sequence:2@1000/1ms"
SHORT_COARSE = "timestamp:4|node:2|sequence:2@1005/10ms"
ZERO = {"sequence_start": "zero"}
NO_WAIT = {"max_wait_ms": "0"}
SHORT_WAIT = {"max_wait_ms": "5"}
# For calls that succeed as soon as the clock has moved, however slow the machine.
LONG_WAIT = {"max_wait_ms": "30000"}


def on(layout: str, node: Any = "5", *more: Mapping[str, str], **ms: int) -> Case:
    options: Case = {"layout": layout}
    if node is not None:
        options["node"] = node
    for part in more:
        options |= part
    return options | {f"max_{name}_ms": str(value) for name, value in ms.items()}


# A plausible instant for each preset: inside its life, not on a tick of a second.
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
            f"a few IDs of {name} as it comes",
            on(name, node),
            [one(at), one(), try_one(), batch(3), one(next_tick), batch(2, next_tick + 10**6)],
        )
        yield (
            f"preset-{name}-ends",
            f"{name}: its first tick, its last, and either side",
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
        "no option but the node: twitter, spread, 1000 ms back, nothing ahead",
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
        "each fresh tick starts where its tick and node say, in the first quarter of the sequence",
        on("twitter", "378"),
        [one(T + i) for i in range(8)],
    )
    for node in ("0", "1", "2", "1022", "1023"):
        yield (
            f"spread-node-{node}",
            "the node moves the start",
            on("twitter", node),
            [one(T), one(T + 1), one(T + 2)],
        )
    yield (
        "spread-named",
        "spread by its name is the default",
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
        "of a node of more than 16 bits, the lowest 16 count in the start",
        on("baidu", "4194303"),
        [one(1484799346000), one(1484799347000), one(1484799348000)],
    )
    for node in ("4294967295", "65536", "131072", "65537"):
        yield (
            f"spread-node-of-32-bits-{node}",
            "node shifted up by 48 keeps its lowest 16 bits",
            on("timestamp:22|node:32|sequence:10@1656432000000/1s", node),
            [one(T), one(T + 1000), one(T + 2000)],
        )
    yield (
        "spread-wide-tick",
        "ticks of more than 48 bits meet the node's bits",
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
        "two IDs a tick",
        on(f"timestamp:41|node:4|sequence:1@{TWITTER_EPOCH}/1ms", "9", ZERO, NO_WAIT),
        [one(T), one(), one(), one(T + 1), one(), one(), batch(2, T + 2), batch(3, T + 3)],
    )
    yield (
        "sequence-of-32-bits",
        "the start lies anywhere in a quarter of 2^32",
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
        "a whole tick from 0 on, then nothing",
        on("twitter", "378", ZERO),
        [batch(4096, T), try_one(), try_one(), one(T + 1)],
    )
    yield (
        "many-in-one-tick-spread",
        "what lies below the start is not used in a fresh tick",
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
        "tick after tick used up: all of each is used",
        on(SMALL, "5", NO_WAIT),
        [batch(4, 2000), batch(4, 2001), batch(4, 2002), batch(4, 2003), one(2003), one(2005)],
    )
    yield (
        "counting-on-skipped",
        "a tick used up and one passed over: the tick after is a fresh one",
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
        "next_id waits, but gives up where the clock stands still",
        on(SMALL, "5", ZERO, SHORT_WAIT),
        [batch(4, 2000), one(), one(), one(2001)],
    )
    yield (
        "exhausted-10ms",
        "the wait is to the start of the next tick, counted from the epoch",
        on(COARSE, "5", ZERO, SHORT_WAIT),
        [batch(4, 2005), try_one(), try_one(2006), try_one(2014), one(2012), one(2015)],
    )
    yield (
        "exhausted-1s",
        "the same with ticks of a second",
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
        "what follows a wait counts on from 0",
        on("twitter", "378", LONG_WAIT),
        [batch(left, T), one(T, wait=(1, T + 1)), one(T + 1), one(T + 2)],
    )
    yield (
        "wait-10ms",
        "within a tick of 10 ms, the clock moving by 3 at a reading",
        on(COARSE, "5", LONG_WAIT),
        [batch(4, 2007), one(2007, wait=(3, 2016)), one(2018), one(2024, wait=(1, 2024))],
    )
    yield (
        "wait-1s",
        "a tick of a second, the clock near its end",
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
        "with borrowing, the wait is for the tick less max_ahead_ms",
        on(SMALL, "5", LONG_WAIT, ahead=2),
        [batch(12, 2000), try_one(), one(2000, wait=(1, 2001)), batch(3, 2001), try_one()],
    )
    yield (
        "wait-step-back",
        "a tolerated step back, and its sequence runs out: the wait is for the tick after it",
        on(SMALL, "5", ZERO, LONG_WAIT),
        [batch(3, 2004), one(2001), one(2001, wait=(1, 2005)), one(2005)],
    )
    yield (
        "batch-clock-stands",
        "a batch gives up where the clock stands; what it had taken is lost, never repeated",
        on(SMALL, "5", ZERO, SHORT_WAIT),
        [batch(6, 2000), try_one(), one(2001), batch(4), one(2002)],
    )
    yield (
        "step-back-within",
        "the clock steps back within the bound: the last tick goes on",
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
        "past the bound: refused at once, also by next_id and next_ids, and nothing is issued",
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
        "it recovers by itself when the clock has caught up to within the bound",
        on("twitter", "378"),
        [one(T), try_one(T - 5000), try_one(T - 2000), one(T - 900), batch(2, T), one(T + 7)],
    )
    yield (
        "step-back-past-used-up",
        "past the bound with the last tick used up: it takes until the tick after",
        on(SMALL, "5", ZERO, SHORT_WAIT, backward=5),
        [batch(4, 2100), try_one(2090), one(2090), try_one(2094), try_one(2095), one(2101)],
    )
    yield (
        "step-back-runs-out",
        "within the bound, until the sequence of the kept tick runs out: the clock is the cause",
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
        "max_backward_ms 0 refuses every step back of a tick",
        on("twitter", "378", ZERO, backward=0),
        [one(T), one(T - 1), one(T), one(), one(T + 1), try_one(T), one(T + 1)],
    )
    yield (
        "step-back-none-10ms",
        "max_backward_ms 0 and a step back inside a tick of 10 ms: the tick is the same",
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
        "1 ms back is one tick of 10 ms, and no more",
        on(COARSE, "5", ZERO, backward=1),
        [one(2105), one(2104), one(2095), try_one(2094), one(2095), try_one(2104)],
    )
    yield (
        "bounds-round-back-11",
        "11 ms back are two ticks of 10 ms",
        on(COARSE, "5", ZERO, backward=11),
        [one(2105), one(2085), try_one(2084), one(2105)],
    )
    yield (
        "bounds-round-ahead",
        "9 ms ahead are no tick of 10 ms",
        on(COARSE, "5", ZERO, NO_WAIT, ahead=9),
        [batch(4, 2105), one(), one(2114), one(2115)],
    )
    yield (
        "bounds-round-1s",
        "the default of 1000 ms back is one tick of a second; 1999 ms ahead is one too",
        on(SLOW, "5", ZERO, NO_WAIT, ahead=1999),
        [batch(8, 65000), one(), one(64999), batch(4, 66000), try_one(64000), try_one(63999)],
    )
    yield (
        "bounds-largest",
        "the largest bounds there are",
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
        "next_id borrows too, and from try_next_id as well",
        on(SMALL, "5", ZERO, ahead=1),
        [one(2000), *[one()] * 3, *[try_one()] * 5],
    )
    yield (
        "borrow-spread",
        "only the first tick starts spread, the borrowed ones at 0",
        on("yitter", "3", NO_WAIT, ahead=2),
        [batch(100, T), one(), batch(200), one(T + 1), one(T + 50)],
    )
    yield (
        "borrow-caught-up",
        "the clock catches up with what was borrowed, then passes it",
        on(SMALL, "5", ZERO, NO_WAIT, ahead=5),
        [batch(10, 2000), one(2001), one(2002), one(2003), one(2003), one(2004), one(2009)],
    )
    yield (
        "borrow-10ms",
        "the wait is told from the middle of a tick",
        on(COARSE, "5", ZERO, NO_WAIT, ahead=20),
        [batch(12, 2108), try_one(), try_one(2114), one(2115), try_one(2109)],
    )
    yield (
        "borrow-step-back",
        "a step back is counted from the cursor less what may be borrowed",
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
        "nothing borrowed yet: a step back within max_ahead_ms is no rollback",
        on(SMALL, "5", ZERO, NO_WAIT, ahead=3, backward=0),
        [one(2100), one(2097), try_one(2096), batch(2, 2097), one(2097), one(2098)],
    )
    yield (
        "borrow-rollback-wait",
        "the kept tick is used up and the clock behind: next_id waits and gives up",
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
        "before the epoch comes before every rollback",
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
        "the last instant a clock can tell",
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
        "no tick comes after the last: not exhausted but out of range, and at once",
        on(SHORT, "1", ZERO, LONG_WAIT),
        [batch(4, 1015), one(), try_one(), batch(2), one(1014), try_one(1016)],
    )
    yield (
        "last-tick-batch",
        "a batch over the end is refused, and what it had taken is lost",
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
        "past the bound from the end of the last tick",
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
        "sonyflake: the sequence stands above the machine",
        on("sonyflake", "65535", ZERO, NO_WAIT),
        [one(T), one(), one(), batch(5), one(T + 10), one(T + 9), batch(256), one(T + 20)],
    )
    yield (
        "seata",
        "the worker stands above the time",
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
        "and the node 0 given for it",
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
        "63 bits of time and one of sequence: the cursor fills its word, and nothing wraps",
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
        "tick 0 counts on from the cursor, spread or not",
        on("twitter", "378"),
        [one(TWITTER_EPOCH), one(), one(TWITTER_EPOCH + 1)],
    )
    yield (
        "slot-0-of-tick-0-1-bit",
        "one ID is left of tick 0",
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
        "the same, every ID shown",
        on(SMALL, "5", NO_WAIT, ahead=10),
        [batch(11, 2000), batch(2), one(2003), batch(5, 2001), one(2020)],
    )
    yield (
        "batch-fails-part-way",
        "the slots taken are lost: what follows lies behind them",
        on(SMALL, "5", ZERO, NO_WAIT),
        [one(2000), batch(4), try_one(), batch(2, 2001), batch(4), batch(5, 2002), batch(4, 2003)],
    )
    yield (
        "batch-fails-part-way-borrowing",
        "and with borrowing",
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
        "a batch has 1 to 2^24 IDs, and a refused one takes none",
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
        "a tick that is no whole second",
        on("timestamp:32|node:8|sequence:16@0/1500ms", "200"),
        [one(T), one(), one(T + 1499), one(T + 1500), one(T), try_one(T - 3000)],
    )
    yield (
        "tick-of-a-minute",
        "max_backward_ms less than a tick is one tick",
        on("timestamp:32|node:8|sequence:2@0/60s", "200", ZERO),
        [batch(4, 120000), try_one(120001), try_one(60000), try_one(59999), one(180000)],
    )


LONGEST_LIST = 16
LONGEST_REAL_WAIT = 20


def run_step(generator: Reference, step: Case, clock: ScriptClock, **how: bool) -> Case:
    """What the call of a step gives."""
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
            # It gives up after max_wait_ms of real time: on a clock that stands, and soon.
            assert "until" not in step
            assert generator.options.max_wait_ms <= LONGEST_REAL_WAIT
        carried = {"behind_ms": refused.behind_ms, "retry_after_ms": refused.retry_after_ms}
        return {"error": refused.name} | {k: str(v) for k, v in carried.items() if v is not None}


def run_script(given: Case, steps: Iterable[Case], **model: Any) -> list[Case]:
    """The outcome of each step; `model` is how a generator reads the clock."""
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


# Ways to read the clock that a script must not tell apart.
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
            # Where a clock that moves has come to is not told.
            assert "until" not in step or "clock" in following, name
        yield {
            "name": name,
            "why": why,
            "options": given,
            "steps": [s | o for s, o in zip(steps, outcomes, strict=True)],
        }


# Writing -----------------------------------------------------------------------------------------


def refusal(call: Any, *arguments: Any) -> Refused:
    try:
        result = call(*arguments)
    except Refused as refused:
        return refused
    raise AssertionError(f"{arguments!r} should be refused and gave {result!r}")


def strings(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: str(number) for name, number in value.items()}
    return None if value is None else str(value)


def vectors() -> dict[str, list[Any]]:
    return {
        "about": ABOUT.splitlines(),
        "errors": [{"number": number, "name": name} for name, number in ERRORS.items()],
        "layouts": list(layouts()),
        "layouts_refused": list(layouts_refused()),
        "decode": list(decode()),
        "decode_refused": list(decode_refused()),
        "compose": list(compose()),
        "compose_refused": list(compose_refused()),
        "bounds": list(bounds()),
        "texts": list(texts()),
        "texts_read": list(texts_read()),
        "texts_refused": list(texts_refused()),
        "options": list(options()),
        "options_refused": list(options_refused()),
        "scripts": list(scripts()),
    }


def vectors_text() -> str:
    """JSON with one case, or one step of a script, on a line."""

    def line(case: Any) -> str:
        if isinstance(case, dict) and "steps" in case:
            steps = ",\n".join(f"   {json.dumps(step)}" for step in case["steps"])
            head = json.dumps({k: v for k, v in case.items() if k != "steps"})
            return f'{head[:-1]}, "steps": [\n{steps}\n  ]}}'
        return json.dumps(case)

    sections = [
        f" {json.dumps(name)}: [\n" + ",\n".join(f"  {line(case)}" for case in cases) + "\n ]"
        for name, cases in vectors().items()
    ]
    return "{\n" + ",\n".join(sections) + "\n}\n"


def main(arguments: list[str]) -> int:
    text = vectors_text()
    if arguments == ["--check"]:
        committed = VECTORS.read_text(encoding="ascii") if VECTORS.exists() else ""
        if committed != text:
            print(f"{VECTORS.name} is not what reference.py makes: run it to write the file")
            return 1
        print(f"{VECTORS.name} is what reference.py makes")
        return 0
    if arguments:
        print(__doc__)
        return 2
    VECTORS.write_text(text, encoding="ascii", newline="\n")
    counts = ", ".join(f"{len(cases)} {name}" for name, cases in json.loads(text).items())
    print(f"{VECTORS.name}: {len(text)} bytes: {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
