"""Random layouts, options, clock scripts and strings: the package against tests/reference.py.

POLYFLAKE_PROPERTY_CASES sets how many random scripts generate IDs (2,000 by default); each of the
other properties runs a fraction of that number of cases.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import sys
from array import array
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from polyflake import Layout, PolyflakeError, Snowflake, format_id, parse_id


def load_reference() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "tests" / "reference.py"
    spec = importlib.util.spec_from_file_location("polyflake_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


reference = load_reference()
CASES = int(os.environ.get("POLYFLAKE_PROPERTY_CASES", "2000"))
EARLIEST, LATEST = -(2**63), 2**63 - 1
LARGEST_MS_OPTION = 2**32 - 1


def cases(share: float) -> settings:
    return settings(
        max_examples=max(20, int(CASES * share)),
        deadline=None,
        database=None,
        print_blob=True,
        # Failures are not explained, because that reruns them many times, and the scripts are short
        # enough.
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns or raises, in a form common to both sides."""
    try:
        return call()
    except (PolyflakeError, reference.Refused) as error:
        carried = {}
        if error.name == "clock_moved_backwards":
            carried["behind_ms"] = error.behind_ms
        if error.name in ("clock_moved_backwards", "sequence_exhausted"):
            # The end of the last tick may be one past the largest signed number.
            carried["retry_after_ms"] = min(error.retry_after_ms, LATEST)
        return (error.name, carried)


# Layouts -----------------------------------------------------------------------------------------

NODE_NAMES = [
    "worker",
    "datacenter",
    "a",
    "z9",
    "dc-1_x",
    "abcdefghijklmnopqrstuvwx",
    "timestamps",
    "sequenc",
    "node",
]
small_bits = st.sampled_from([1, 1, 1, 2, 2, 3, 4])
usual_ticks = st.sampled_from([1, 1, 1, 10, 10, 1000, 7, 1500, 60000])


@st.composite
def layout_parts(draw: st.DrawFn) -> tuple[list[tuple[str, int]], int, int]:
    """The parts of a valid layout, of any shape."""
    sequence = draw(small_bits | st.integers(1, 32))
    timestamp = draw(st.integers(1, 64 - sequence) | st.sampled_from([1, 2, 3, 5]))
    timestamp = min(timestamp, 63)
    room = min(32, 64 - sequence - timestamp)
    above: list[tuple[str, int]] = []
    between: list[tuple[str, int]] = []
    below: list[tuple[str, int]] = []
    first_name = draw(st.integers(0, len(NODE_NAMES) - 1))
    for i in range(draw(st.integers(0, 8))):
        if not room:
            break
        bits = min(room, draw(small_bits | st.integers(1, 32)))
        room -= bits
        name = NODE_NAMES[(first_name + i) % len(NODE_NAMES)]
        draw(st.sampled_from([between, below, above])).append((name, bits))
    longest_tick = 2 ** (63 - timestamp)
    tick_ms = min(longest_tick, draw(usual_ticks | st.integers(1, longest_tick)))
    last_epoch = min(LATEST, 2**63 - 2**timestamp * tick_ms)
    epoch_ms = min(
        last_epoch,
        draw(st.sampled_from([0, 1, 1005, 1288834974657, last_epoch]) | st.integers(0, last_epoch)),
    )
    widths = [*above, ("timestamp", timestamp), *between, ("sequence", sequence), *below]
    return widths, epoch_ms, tick_ms


def text_of(widths: list[tuple[str, int]], epoch_ms: int, tick_ms: int) -> str:
    return f"{'|'.join(f'{name}:{bits}' for name, bits in widths)}@{epoch_ms}/{tick_ms}ms"


layouts = layout_parts().map(lambda parts: reference.Layout(tuple(parts[0]), *parts[1:]))
layouts |= st.sampled_from(list(reference.PRESETS)).map(reference.Layout.read)


def properties(layout: Any) -> Any:
    """All properties of a layout, from either side."""
    ours = isinstance(layout, reference.Layout)
    return {
        "text": layout.text if ours else str(layout),
        "epoch_ms": layout.epoch_ms,
        "tick_ms": layout.tick_ms,
        "ends_at_ms": layout.ends_at_ms,
        "ids_per_tick": layout.ids_per_tick,
        "nodes": layout.nodes,
        "node_bits": layout.node_bits,
        "total_bits": layout.total_bits,
        "timestamp": (layout.timestamp.bits, layout.timestamp.shift)
        if ours
        else (layout.timestamp_bits, layout.timestamp_shift),
        "sequence": (layout.sequence.bits, layout.sequence.shift)
        if ours
        else (layout.sequence_bits, layout.sequence_shift),
        "fields": [(f.name, f.bits, f.shift, f.mask) for f in layout.fields],
    }


@cases(0.1)
@given(layout_parts())
def test_valid_layouts(parts: tuple[list[tuple[str, int]], int, int]) -> None:
    widths, epoch_ms, tick_ms = parts
    text = text_of(widths, epoch_ms, tick_ms)
    expected = properties(reference.Layout.read(text))
    layout = Layout(text)
    assert properties(layout) == expected
    again = Layout(str(layout))
    assert (again, hash(again)) == (layout, hash(layout))
    assert Layout(fields=widths, epoch_ms=epoch_ms, tick_ms=tick_ms) == layout
    assert Layout(fields=dict(widths), epoch_ms=epoch_ms, tick_ms=tick_ms) == layout


# Nearly valid: each part on its own is valid more often than not.
loose_names = st.sampled_from(["timestamp", "sequence", *NODE_NAMES, "", "Worker", "9a", "w\u00f6"])
loose_widths = st.lists(
    st.tuples(loose_names | st.just("timestamp") | st.just("sequence"), st.integers(0, 40)),
    max_size=11,
)


@cases(0.1)
@given(
    layout_parts(),
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 10), st.integers(0, 70)), min_size=1, max_size=2
    ),
    loose_names,
)
def test_layouts_with_a_part_changed(
    parts: tuple[list[tuple[str, int]], int, int], changes: list[tuple[int, int, int]], name: str
) -> None:
    widths, epoch_ms, tick_ms = parts
    for what, where, number in changes:
        at = where % (len(widths) or 1)
        if what == 0:
            widths.insert(at, (name, number))
        elif what == 1 and widths:
            widths[at] = (widths[at][0], number)
        elif what == 2 and widths:
            widths.append(widths.pop(at))
        elif what == 3 and widths:
            widths.append(widths[at])
        elif what == 4:
            epoch_ms = min(LATEST, epoch_ms + number % 3)
        elif what == 5:
            tick_ms *= number % 3
    text = text_of(widths, epoch_ms, tick_ms)
    expected = outcome(lambda: properties(reference.Layout.read(text)))
    assert outcome(lambda: properties(Layout(text))) == expected
    assert (
        outcome(
            lambda: properties(
                Layout(fields=widths, epoch_ms=epoch_ms, tick_ms=min(LATEST, tick_ms))
            )
        )
        == expected
    )


@cases(0.05)
@given(loose_widths, st.integers(0, 2**65), st.integers(0, 2**65) | st.integers(0, 2000))
def test_loose_layouts(widths: list[tuple[str, int]], epoch_ms: int, tick_ms: int) -> None:
    text = text_of(widths, epoch_ms, tick_ms)
    expected = outcome(lambda: properties(reference.Layout.read(text)))
    assert outcome(lambda: properties(Layout(text))) == expected


def mutated(text: str, edits: list[tuple[int, int, str]]) -> str:
    for what, where, character in edits:
        at = where % (len(text) + 1)
        if what == 0:
            text = text[:at] + character + text[at:]
        elif what == 1:
            text = text[:at] + character + text[at + 1 :]
        elif what == 2:
            text = text[:at] + text[at + 1 :]
        else:
            text = text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]
    return text


def edits(alphabet: str) -> st.SearchStrategy[list[tuple[int, int, str]]]:
    return st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 200), st.sampled_from(alphabet)),
        min_size=1,
        max_size=3,
    )


@cases(0.2)
@given(
    layout_parts().map(lambda parts: text_of(*parts)) | st.sampled_from(list(reference.PRESETS)),
    edits("0123456789:|@/mstaeqw-_ +TZ.\n\u00e9\uff11\U0001f600"),
)
def test_mutated_layout_texts(text: str, changes: list[tuple[int, int, str]]) -> None:
    text = mutated(text, changes)
    expected = outcome(lambda: properties(reference.Layout.read(text)))
    assert outcome(lambda: properties(Layout(text))) == expected


# IDs, instants, nodes ----------------------------------------------------------------------------


def instants(layout: Any) -> st.SearchStrategy[int]:
    """Within the layout's range or near its ends, on ticks and between them."""
    near = st.integers(-2 * layout.tick_ms - 2, 2 * layout.tick_ms + 2)
    life = st.integers(layout.epoch_ms, layout.ends_at_ms)
    ends = st.sampled_from([layout.epoch_ms, layout.ends_at_ms])
    anywhere = st.integers(EARLIEST, LATEST)
    raw = life | st.tuples(ends, near).map(sum) | anywhere
    return raw.map(lambda ms: max(EARLIEST, min(LATEST, ms)))


def nodes(layout: Any) -> st.SearchStrategy[Any]:
    """Valid nodes, as integers and as mappings."""
    whole = st.integers(0, layout.nodes - 1) | st.just(layout.nodes - 1)
    if not layout.node_fields:
        return st.sampled_from([None, 0, {}])
    return whole | whole.map(layout.split_node)


def wrong_nodes(layout: Any) -> st.SearchStrategy[Any]:
    def spoil(arguments: tuple[int, int, int]) -> Any:
        whole, what, where = arguments
        node = layout.split_node(whole)
        fields = layout.node_fields
        if not fields:
            return [1, -1, {"worker": 0}, {"": 0}, 2**64][what % 5]
        field = fields[where % len(fields)]
        if what == 0:
            del node[field.name]
        elif what == 1:
            node[field.name] = 2**field.bits + whole
        elif what == 2:
            node[field.name] = -1 - whole
        elif what == 3:
            node[["extra", "timestamp", "sequence", ""][where % 4]] = 0
        else:
            return [layout.nodes + whole, -1 - whole, 2**64 + whole, None, {}][where % 5]
        return node

    return st.tuples(st.integers(0, layout.nodes - 1), st.integers(0, 4), st.integers(0, 19)).map(
        spoil
    )


def utc(unix_ms: int) -> datetime | int:
    """A datetime, if the time is within its range."""
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=unix_ms)
    except OverflowError:
        return unix_ms


def decoded(layout: Any, id_: int) -> Any:
    value = layout.decode(id_)
    return (
        value.timestamp_ms,
        value.ticks,
        value.node,
        dict(value.fields),
        value.sequence,
    )


@cases(0.2)
@given(st.data())
def test_decode_compose_and_bounds(data: st.DataObject) -> None:
    expected = data.draw(layouts)
    layout = Layout(expected.text)
    top = 2**expected.total_bits
    id_ = data.draw(
        st.integers(0, top - 1)
        | st.sampled_from([-1, 0, top - 1, top, 2**63, 2**64 - 1, 2**64])
        | st.integers(-(2**70), 2**70)
    )
    assert outcome(lambda: decoded(layout, id_)) == outcome(lambda: decoded(expected, id_))
    time_ms = data.draw(instants(expected))
    node = data.draw(nodes(expected))
    sequence = data.draw(st.integers(0, expected.ids_per_tick - 1))
    composed = outcome(lambda: expected.compose(time_ms, node, sequence))
    for time in (time_ms, utc(time_ms)):
        assert outcome(lambda time=time: layout.compose(time, node, sequence)) == composed
        for side in ("min_id", "max_id"):
            bound = outcome(lambda side=side: getattr(expected, side)(time_ms))
            assert outcome(lambda s=side, t=time: getattr(layout, s)(t)) == bound
    if isinstance(composed, int):
        whole = expected.whole_node(node)
        assert decoded(layout, composed)[2:] == (whole, expected.split_node(whole), sequence)
        # One mistake at a time, because it is not specified which of two is reported.
        wrong_node = data.draw(wrong_nodes(expected))
        assert outcome(lambda: layout.compose(time_ms, wrong_node, sequence)) == (
            "invalid_node",
            {},
        )
        past = data.draw(st.sampled_from([expected.ids_per_tick, -1, 2**32, 2**64]))
        assert outcome(lambda: layout.compose(time_ms, node, past)) == ("invalid_option", {})


# Strings -----------------------------------------------------------------------------------------

FORMATS = list(reference.FORMATS)
any_id = st.integers(0, 2**64 - 1) | st.integers(0, 64).map(lambda n: 2**n - 1)


def parsed(parse: Callable[[str, str], int], text: str, format_: str) -> Any:
    """The ID, or the name and position of the error."""
    try:
        return parse(text, format_)
    except reference.Refused as error:
        return (error.name, error.position)
    except PolyflakeError as error:
        positions = re.findall(r"\bposition (\d+)\b", str(error))
        return (error.name, int(positions[-1]) if positions else None)


@cases(0.2)
@given(
    any_id,
    st.sampled_from(FORMATS),
    edits("0123456789abfgiloquvzABFGILOQUVZ-+_ .\u00e9\uff11\u212a\U0001f600"),
)
def test_texts(id_: int, format_: str, changes: list[tuple[int, int, str]]) -> None:
    for name in FORMATS:
        text = format_id(id_, name)
        assert text == reference.format_id(id_, name)
        assert parse_id(text, name) == id_
    for text in (
        mutated(reference.format_id(id_, format_), changes),
        mutated(reference.format_id(id_, format_), changes[:1]).swapcase(),
        reference.FORMATS[format_].alphabet[0] * (changes[0][1] % 24)
        + reference.format_id(id_, format_),
    ):
        expected = parsed(reference.parse_id, text, format_)
        assert parsed(parse_id, text, format_) == expected


@cases(0.2)
@given(
    st.text(st.sampled_from("0123456789abcxyzABCXYZiloILOuU-_ \u0661"), max_size=24),
    st.sampled_from(FORMATS),
)
def test_any_text(text: str, format_: str) -> None:
    assert parsed(parse_id, text, format_) == parsed(reference.parse_id, text, format_)


# Options -----------------------------------------------------------------------------------------

MS_OPTIONS = [name for name in inspect.signature(Snowflake).parameters if name.endswith("_ms")]
ms_options = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from([0, 1, 5, 1000, LARGEST_MS_OPTION])
        | st.integers(0, LARGEST_MS_OPTION)
        for name in MS_OPTIONS
    }
    | {"sequence_start": st.sampled_from(["zero", "spread"])},
)
wrong_options = st.tuples(
    st.sampled_from(MS_OPTIONS),
    st.sampled_from([-1, LARGEST_MS_OPTION + 1, -(2**31), 2**63, -(2**63) - 1, 2**64, 2**80]),
) | st.tuples(st.just("sequence_start"), st.sampled_from(["", "ZERO", "random", "0", "spread "]))


@cases(0.1)
@given(st.data())
def test_options(data: st.DataObject) -> None:
    layout = data.draw(layouts)
    node = data.draw(nodes(layout))
    options = data.draw(ms_options) | {"layout": layout.text}
    if node is not None or data.draw(st.booleans()):
        options["node"] = node
    expected = reference.Options.read(options)
    snowflake = Snowflake(**options, clock=lambda: 0)
    assert (snowflake.node, str(snowflake.layout)) == (expected.node, layout.text)
    assert Snowflake(**options | {"layout": Layout(layout.text)}, clock=lambda: 0).node == (
        expected.node
    )
    name, value = data.draw(wrong_options)
    assert outcome(lambda: Snowflake(**options | {name: value}, clock=lambda: 0)) == (
        "invalid_option",
        {},
    )
    wrong_node = data.draw(wrong_nodes(layout))
    assert outcome(lambda: Snowflake(**options | {"node": wrong_node}, clock=lambda: 0)) == (
        "invalid_node",
        {},
    )


# Issuing -----------------------------------------------------------------------------------------


class Clock:
    """Returns `value`, which each step sets."""

    def __init__(self, value: int = 0) -> None:
        self.value = value

    def __call__(self) -> int:
        return self.value


def moved(model: Any, clock_ms: int, how: str, by: int) -> int:
    """The next clock reading. `edge` and `room` are near the points where the outcome changes."""
    layout = model.layout
    last = model.cursor >> layout.sequence.bits
    tick_ms = layout.tick_ms
    life = range(layout.epoch_ms, layout.ends_at_ms + 1)
    if clock_ms not in life:
        # No two steps in a row are outside the layout's range.
        clock_ms = layout.epoch_ms + last * tick_ms
    moved_ms = {
        "held": clock_ms,
        "ms": clock_ms + by,
        "ticks": clock_ms + by * tick_ms,
        "far": clock_ms + by * 977 * tick_ms,
        # Around the earliest time that is not a rollback.
        "edge": layout.epoch_ms + (last - model.ahead - model.back) * tick_ms + by,
        # Around the time when the tick after the cursor's may be taken.
        "room": layout.epoch_ms + (last + 1 - model.ahead) * tick_ms + by,
        # The cursor's own tick.
        "level": layout.epoch_ms + last * tick_ms + by,
        "epoch": layout.epoch_ms + by,
        "end": layout.ends_at_ms + by,
        "extreme": LATEST if by > 0 else EARLIEST,
    }[how]
    if moved_ms not in life and how not in ("epoch", "end", "extreme"):
        # Most of these steps would fail merely because the time is out of range.
        moved_ms = clock_ms + (by if clock_ms + by in life else 0)
    return max(EARLIEST, min(LATEST, moved_ms))


MOVES = [
    *["held"] * 6,
    *["ms"] * 3,
    *["ticks"] * 3,
    *["edge"] * 3,
    *["room"] * 3,
    *["level"] * 2,
    "far",
    "epoch",
    "end",
    "extreme",
]
CALLS = [*["next_id"] * 3, *["try_next_id"] * 3, *["next_ids"] * 4, *["fill"] * 2, "iterate"]
steps = st.lists(
    st.tuples(
        st.sampled_from(MOVES),
        st.integers(-3, 3) | st.integers(-40, 40),
        st.sampled_from(CALLS),
        # A batch size: any number, or one close to the IDs left in the tick; may be invalid.
        st.integers(-1, 12),
        st.sampled_from([0, 0, 0, 1, 1, 2, 3, -1]),
    ),
    min_size=1,
    max_size=14,
)
LARGEST_RANDOM_BATCH = 600


def batch_size(model: Any, n: int, ticks: int) -> int:
    """A number of IDs that often uses up a tick exactly, or almost exactly."""
    if ticks < 0:
        return [0, -1, 2**24 + 1, 2**64][n % 4]
    capacity = model.layout.ids_per_tick
    left = capacity - 1 - model.cursor % capacity
    wanted = n if not ticks else left + (ticks - 1) * capacity + n - 3
    return max(1, wanted if wanted <= LARGEST_RANDOM_BATCH else n)


def both(model: Any, snowflake: Snowflake, clock_ms: int, call: str, n: int) -> Any:
    """Makes the same call on both sides."""
    held = reference.ScriptClock(clock_ms)
    if call == "try_next_id":
        return outcome(lambda: model.try_next_id(clock_ms)), outcome(snowflake.try_next_id)
    if call == "next_id":
        return outcome(lambda: model.next_id(held)), outcome(snowflake.next_id)
    if call == "iterate":
        return outcome(lambda: model.next_id(held)), outcome(lambda: next(snowflake))
    if call == "next_ids":
        expected = outcome(lambda: model.next_ids(n, held))
        return expected, outcome(lambda: snowflake.next_ids(n))
    # An empty buffer takes no IDs; a length cannot be negative.
    n = min(max(0, n), LARGEST_RANDOM_BATCH)
    buffer = array("Q", bytes(8 * n))
    expected = outcome(lambda: model.next_ids(n, held)) if n else []

    def fill() -> list[int]:
        snowflake.fill(buffer)
        return buffer.tolist()

    return expected, outcome(fill)


bounds_in_ms = st.sampled_from([None, 0, 1, 2, 3, 5, 9, 10, 15, 25, 1000, 2000, LARGEST_MS_OPTION])
script_options = st.tuples(
    bounds_in_ms | st.integers(0, 100),
    bounds_in_ms | st.integers(0, 100),
    st.sampled_from(["zero", "spread", None]),
)


@cases(1)
@given(
    layouts,
    st.integers(0, 2**32 - 1),
    script_options,
    st.sampled_from(["epoch", "epoch", "end", "middle", "now"]),
    st.integers(0, 30),
    steps,
)
def test_scripts(
    layout: Any,
    node: int,
    bounds: tuple[int | None, int | None, str | None],
    start: str,
    offset: int,
    script: list[tuple[str, int, str, int, int]],
) -> None:
    """No call waits, so the results depend on neither real time nor the number of readings."""
    options: dict[str, Any] = {"layout": layout.text, "max_wait_ms": 0}
    if layout.node_fields:
        options["node"] = node % layout.nodes
    names = ("max_backward_ms", "max_ahead_ms", "sequence_start")
    options |= {k: v for k, v in zip(names, bounds, strict=True) if v is not None}
    model = reference.Reference(reference.Options.read(options))
    clock = Clock()
    snowflake = Snowflake(**options, clock=clock)
    clock.value = {
        "epoch": layout.epoch_ms + offset * layout.tick_ms,
        "end": layout.ends_at_ms - offset * layout.tick_ms,
        "middle": (layout.epoch_ms + layout.ends_at_ms) // 2,
        "now": 1763700000000 + offset,
    }[start]
    log = []
    for how, by, call, n, ticks in script:
        clock.value = moved(model, clock.value, how, by)
        n = batch_size(model, n, ticks)
        expected, given_ = both(model, snowflake, clock.value, call, n)
        log.append((clock.value, call, n))
        assert given_ == expected, (options, log)


class JumpingClock:
    """Returns one value for the first reading and another for every later one."""

    def __init__(self, first: int, later: int) -> None:
        self.first, self.later, self.readings = first, later, 0

    def __call__(self) -> int:
        self.readings += 1
        return self.first if self.readings == 1 else self.later


@settings(cases(0.01), max_examples=min(100, max(20, CASES // 100)))
@given(layouts, script_options, st.integers(0, 8), st.booleans(), st.integers(1, 6))
def test_waiting(
    layout: Any,
    bounds: tuple[int | None, int | None, str | None],
    back_ms: int,
    in_a_batch: bool,
    n: int,
) -> None:
    """A call that must wait returns the slot it was waiting for, once the clock reaches it."""
    if layout.sequence.bits > 9 or layout.tick_ms > 10 or layout.last_tick < 50:
        layout = reference.Layout.read("timestamp:41|node:2|sequence:3@1005/10ms")
    options: dict[str, Any] = {"layout": layout.text, "max_wait_ms": 30000}
    if layout.node_fields:
        options["node"] = layout.nodes - 1
    names = ("max_backward_ms", "max_ahead_ms", "sequence_start")
    options |= {k: v for k, v in zip(names, bounds, strict=True) if v is not None}
    options["max_ahead_ms"] = min(options.get("max_ahead_ms", 0), 3 * layout.tick_ms)
    model = reference.Reference(reference.Options.read(options))
    first_ms = layout.epoch_ms + 20 * layout.tick_ms
    clock = JumpingClock(first_ms, first_ms)
    snowflake = Snowflake(**options, clock=clock)
    while isinstance(expected := outcome(lambda: model.try_next_id(first_ms)), int):
        assert snowflake.try_next_id() == expected
    # The tick is used up, and the clock may also be behind by a small, tolerated amount.
    clock.first = clock.later = first_ms - back_ms
    with pytest.raises(reference.Refused) as caught:
        model.try_next_id(clock.first)
    error = caught.value
    assert outcome(snowflake.try_next_id) == outcome(lambda: model.try_next_id(clock.first))
    if not error.blocked:
        assert outcome(snowflake.next_id) == outcome(lambda: model.try_next_id(clock.first))
        return
    there_ms = clock.first + error.retry_after_ms
    # A millisecond earlier is too early.
    clock.first, clock.later, too_early = there_ms - 1, there_ms - 1, clock.first
    assert outcome(snowflake.try_next_id) == outcome(lambda: model.try_next_id(there_ms - 1))
    clock.first, clock.later, clock.readings = too_early, there_ms, 0
    if in_a_batch:
        n = min(n, layout.ids_per_tick)
        held = reference.ScriptClock(there_ms)
        assert snowflake.next_ids(n) == model.next_ids(n, held)
    else:
        assert snowflake.next_id() == model.try_next_id(there_ms)
