"""Every case in tests/vectors.json, through the installed package's public API.

The file describes its own format under "about".
"""

from __future__ import annotations

import itertools
import json
import re
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polyflake
import pytest
from polyflake import Layout, PolyflakeError, Snowflake, format_id, parse_id

Case = dict[str, Any]

VECTORS: dict[str, list[Any]] = json.loads(
    (Path(__file__).resolve().parents[2] / "tests" / "vectors.json").read_text(encoding="utf-8")
)
NUMBERS = {error["name"]: error["number"] for error in VECTORS["errors"]}
# Every section that a test below runs, so that a new section in the file does not go unnoticed.
SECTIONS = {"about"}


def cases(section: str) -> pytest.MarkDecorator:
    SECTIONS.add(section)
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(case, id=str(case.get("name", number)))
            for number, case in enumerate(VECTORS[section])
        ],
    )


def error_class(name: str) -> type[PolyflakeError]:
    words = name.split("_")
    return getattr(polyflake, "".join(word.capitalize() for word in words) + "Error")


@contextmanager
def raises(
    name: str, *, behind_ms: str | None = None, retry_after_ms: str | None = None
) -> Iterator[pytest.ExceptionInfo[PolyflakeError]]:
    with pytest.raises(PolyflakeError) as caught:
        yield caught
    error = caught.value
    assert error.name == name
    assert error.code == NUMBERS[name]
    assert type(error) is error_class(name)
    assert str(error)
    if behind_ms is not None:
        assert error.behind_ms == int(behind_ms)
    if retry_after_ms is not None:
        assert error.retry_after_ms == int(retry_after_ms)


def utc(unix_ms: int) -> datetime | None:
    """None past the end of datetime's range."""
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=unix_ms)
    except OverflowError:
        return None


def node_of(value: Any) -> int | dict[str, int] | None:
    if isinstance(value, dict):
        return {field: int(number) for field, number in value.items()}
    return None if value is None else int(value)


def options_of(texts: Case) -> Case:
    """The options' strings as Python values, or unchanged if they are not valid values."""
    values: Case = {}
    for name, text in texts.items():
        if name == "node":
            values[name] = node_of(text)
        elif name == "node_text":
            values["node"] = text
        elif name.endswith("_ms") and re.fullmatch(r"-?[0-9]+", text):
            values[name] = int(text)
        else:
            values[name] = text
    return values


class HeldClock:
    """Returns `value`; each reading after the first in a step advances it, up to `until`."""

    def __init__(self, value: int) -> None:
        self.value = self.until = value
        self.advance = 0
        self.was_read = False

    def set(self, step: Case) -> None:
        self.value = int(step.get("clock", self.value))
        self.advance = int(step.get("advance", 0))
        self.until = int(step.get("until", self.value))
        self.was_read = False

    def __call__(self) -> int:
        if self.was_read:
            self.value = min(self.value + self.advance, self.until)
        self.was_read = True
        return self.value


def test_every_section_is_known() -> None:
    assert set(VECTORS) == SECTIONS
    assert next(iter(VECTORS)) == "about"
    assert all(VECTORS.values())


@cases("errors")
def test_errors(case: Case) -> None:
    assert issubclass(error_class(case["name"]), PolyflakeError)


@cases("layouts")
def test_layouts(case: Case) -> None:
    layout = Layout(case["given"])
    assert str(layout) == case["text"]
    again = Layout(case["text"])
    assert (again, hash(again)) == (layout, hash(layout))
    for name in ("epoch_ms", "tick_ms", "ids_per_tick", "nodes", "ends_at_ms"):
        assert getattr(layout, name) == int(case[name]), name
    for name in (
        "total_bits",
        "timestamp_bits",
        "timestamp_shift",
        "sequence_bits",
        "sequence_shift",
        "node_bits",
    ):
        assert getattr(layout, name) == case[name], name
    assert [(f.name, f.bits, f.shift, f.mask) for f in layout.fields] == [
        (f["name"], f["bits"], f["shift"], int(f["mask"])) for f in case["fields"]
    ]
    assert layout.epoch == utc(int(case["epoch_ms"]))
    assert layout.ends_at == utc(int(case["ends_at_ms"]))
    from_parts = Layout(
        fields=[(f["name"], f["bits"]) for f in case["fields"]],
        epoch_ms=int(case["epoch_ms"]),
        tick_ms=int(case["tick_ms"]),
    )
    assert from_parts == layout


def test_presets_match_the_vectors() -> None:
    names = [c["given"] for c in VECTORS["layouts"] if not set(c["given"]) & set(":|@/")]
    assert sorted(polyflake.PRESETS) == sorted(names)


@cases("layouts_refused")
def test_layouts_refused(case: Case) -> None:
    with raises(case["error"]):
        Layout(case["given"])


@cases("decode")
def test_decode(case: Case) -> None:
    layout = Layout(case["layout"])
    decoded = layout.decode(int(case["id"]))
    assert decoded.id == int(case["id"])
    assert decoded.timestamp_ms == int(case["timestamp_ms"])
    assert decoded.time == utc(int(case["timestamp_ms"]))
    assert decoded.ticks == int(case["ticks"])
    assert decoded.node == int(case["node"])
    assert dict(decoded.fields) == node_of(case["fields"])
    assert decoded.sequence == int(case["sequence"])
    assert decoded.layout == layout
    columns = layout.decode_all(array("Q", [0, decoded.id]))
    assert columns.ids.tolist() == [0, decoded.id]
    assert columns.timestamps_ms.tolist() == [layout.epoch_ms, decoded.timestamp_ms]
    assert columns.ticks.tolist() == [0, decoded.ticks]
    assert columns.nodes.tolist() == [0, decoded.node]
    assert list(columns.fields) == list(decoded.fields)
    assert {name: column[1] for name, column in columns.fields.items()} == decoded.fields
    assert columns.sequences.tolist() == [0, decoded.sequence]


@cases("decode_refused")
def test_decode_refused(case: Case) -> None:
    layout = Layout(case["layout"])
    with raises(case["error"]) as raised:
        layout.decode(int(case["id"]))
    if -(2**63) <= int(case["id"]) < 2**64:
        kind = "q" if int(case["id"]) < 0 else "Q"
        with raises(case["error"]) as raised_for_all:
            layout.decode_all(array(kind, [0, int(case["id"]), 2**63 - 1]))
        assert str(raised_for_all.value) == str(raised.value)


@cases("compose")
def test_compose(case: Case) -> None:
    layout, node, sequence = Layout(case["layout"]), node_of(case["node"]), int(case["sequence"])
    time_ms = int(case["time_ms"])
    assert layout.compose(time_ms, node, sequence) == int(case["id"])
    time = utc(time_ms)
    if time is not None:
        assert layout.compose(time, node, sequence) == int(case["id"])


@cases("compose_refused")
def test_compose_refused(case: Case) -> None:
    layout = Layout(case["layout"])
    with raises(case["error"]):
        layout.compose(int(case["time_ms"]), node_of(case["node"]), int(case["sequence"]))


@cases("bounds")
@pytest.mark.parametrize("side", ["min_id", "max_id"])
def test_bounds(case: Case, side: str) -> None:
    call = getattr(Layout(case["layout"]), side)
    time_ms = int(case["time_ms"])
    for time in (time_ms, utc(time_ms)):
        if time is None:
            continue
        if isinstance(case[side], str):
            assert call(time) == int(case[side])
        else:
            with raises(case[side]["error"]):
                call(time)


@cases("texts")
def test_texts(case: Case) -> None:
    id_ = int(case["id"])
    for format_, text in case.items():
        if format_ != "id":
            assert format_id(id_, format_) == text
            assert parse_id(text, format_) == id_


@cases("texts_read")
def test_texts_read(case: Case) -> None:
    assert parse_id(case["text"], case["format"]) == int(case["id"])


@cases("texts_refused")
def test_texts_refused(case: Case) -> None:
    with raises(case["error"]) as caught:
        parse_id(case["text"], case["format"])
    positions = re.findall(r"\bposition (\d+)\b", str(caught.value))
    if case["position"] is None:
        assert positions == []
    else:
        assert str(case["position"]) in positions


def build(texts: Case) -> Snowflake:
    """Uses a custom clock unless the options name one, because built-in clocks share cursors."""
    options = options_of(texts)
    options.setdefault("clock", HeldClock(1656432460105))
    return Snowflake(**options)


@cases("options")
def test_options(case: Case) -> None:
    if "node_text" in case["options"]:
        # In Python, nodes are integers or mappings; a string is the wrong type.
        with pytest.raises(TypeError):
            build(case["options"])
        return
    snowflake = build(case["options"])
    assert snowflake.node == int(case["node"])
    assert str(snowflake.layout) == case["layout"]


@cases("options_refused")
def test_options_refused(case: Case) -> None:
    if "node_text" in case["options"] or case.get("text_only"):
        # A string is the wrong type for a number, and an unknown name is not a keyword argument.
        with pytest.raises(TypeError):
            build(case["options"])
        return
    with raises(case["error"]):
        build(case["options"])


@cases("scripts")
def test_scripts(case: Case) -> None:
    clock = HeldClock(int(case["steps"][0]["clock"]))
    snowflake = Snowflake(**options_of(case["options"]), clock=clock)
    for number, step in enumerate(case["steps"]):
        clock.set(step)
        try:
            run_step(snowflake, step)
        except (AssertionError, PolyflakeError, pytest.fail.Exception) as error:
            error.add_note(f"script {case['name']}, step {number}: {step}")
            raise


def run_step(snowflake: Snowflake, step: Case) -> None:
    def call() -> int | list[int]:
        if step["call"] == "next_ids":
            return snowflake.next_ids(int(step["n"]))
        return {"next_id": snowflake.next_id, "try_next_id": snowflake.try_next_id}[step["call"]]()

    if "error" in step:
        with raises(
            step["error"],
            behind_ms=step.get("behind_ms"),
            retry_after_ms=step.get("retry_after_ms"),
        ):
            call()
    elif "id" in step:
        assert call() == int(step["id"])
    elif "ids" in step:
        assert call() == [int(id_) for id_ in step["ids"]]
    else:
        ids = call()
        assert isinstance(ids, list)
        run = {name: int(value) for name, value in step["run"].items()}
        assert (len(ids), ids[0], ids[-1]) == (run["count"], run["first"], run["last"])
        assert all(before < after for before, after in itertools.pairwise(ids))
