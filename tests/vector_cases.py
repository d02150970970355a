"""The cases in tests/vectors.json except the scripts: layouts, IDs, times, strings and options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reference import (
    FORMATS,
    MS_OPTIONS,
    PRESETS,
    U64,
    Layout,
    Options,
    Refused,
    format_id,
    mix,
    options_from_texts,
    parse_id,
)

Case = dict[str, Any]


def error_of(call: Any, *arguments: Any) -> Refused:
    try:
        result = call(*arguments)
    except Refused as refused:
        return refused
    raise AssertionError(f"{arguments!r} should fail and gave {result!r}")


def strings(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: str(number) for name, number in value.items()}
    return None if value is None else str(value)


# Layouts and IDs ---------------------------------------------------------------------------------

# A well-known instant, 2022-06-28T16:07:40.105Z, for the presets whose range includes it.
T = 1656432460105
TWITTER_EPOCH = 1288834974657

EDGE_LAYOUTS = [
    # All 64 bits, and the very end of time.
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
    # Many names, and long ones.
    "timestamp:32|a:1|b:1|c:1|d:1|e:1|f:1|g:1|h:1|sequence:8@0/1ms",
    "a:4|b:4|timestamp:24|c:4|d:4|sequence:8|e:4|f:4|g:4|h:4@0/1s",
    "timestamp:41|abcdefghijklmnopqrstuvwx:10|sequence:12@0/1ms",
    "timestamp:41|dc-1_a:5|z9--__:5|sequence:12@0/1ms",
    "timestamp:41|epoch:5|tick:5|sequence:12@0/1ms",
    # No node fields, and node fields on every side.
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
    # Layouts that end soon.
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
    ("timestamp:41|sequence:12@0/1m", "an unknown unit"),
    ("timestamp:41|sequence:12@0/1us", "an unknown unit"),
    ("timestamp:41|sequence:12@0/1min", "an unknown unit"),
    ("timestamp:41|sequence:12@0/1mss", "something after the unit"),
    ("timestamp:41|sequence:12@0/1sec", "something after the unit"),
    ("timestamp:41|sequence:12@0/1", "no unit"),
    ("timestamp:41|sequence:12@0/ms", "a unit without a number"),
    ("timestamp:41|sequence:12@0/", "no tick"),
    ("timestamp:41|sequence:12@0", "no tick"),
    ("timestamp:41|sequence:12@/1ms", "no epoch"),
    ("timestamp:41|sequence:12@", "neither epoch nor tick"),
    ("timestamp:41|sequence:12/1ms", "no epoch"),
    ("timestamp:41|sequence:12", "neither epoch nor tick"),
    ("timestamp:41|sequence:12/1ms@0", "tick and epoch in the wrong order"),
    ("timestamp:41|sequence:12@0/1ms/1ms", "two ticks"),
    ("timestamp:41|sequence:12@0@0/1ms", "two epochs"),
    ("timestamp:41|sequence:12@0/1ms@0", "an epoch after the tick"),
    ("timestamp:41|sequence:12@0/1ms|worker:5", "a field after the tick"),
    ("timestamp:41|sequence:12@0/1ms;", "something after the tick"),
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
    ("timestamp:41|worker=10|sequence:12@0/1ms", "a wrong character between name and width"),
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
    ("timestamp:41|\U0001f600:10|sequence:12@0/1ms", "a name outside the basic multilingual plane"),
    (":", "only punctuation"),
    ("|", "only punctuation"),
    ("@", "only punctuation"),
    ("/", "only punctuation"),
    ("@0/1ms", "no fields"),
    ("twitter@0/1ms", "a preset's name is not a list of fields"),
    ("twitter:41", "a preset's name is not a list of fields"),
    ("twitter/1ms", "a preset's name with a tick"),
    ("", "an empty string"),
    (" ", "a space"),
    ("Twitter", "upper case"),
    ("TWITTER", "upper case"),
    (" twitter", "a space before"),
    ("twitter ", "a space after"),
    ("twitter\n", "a line feed after"),
    ("twiter", "a near miss"),
    ("twitters", "a near miss"),
    ("snowflake", "no preset has that name"),
    ("sonyflake3", "a near miss"),
    ("sony", "only the beginning of a name"),
    ("cosid_second", "a near miss"),
    ("cosid-", "a near miss"),
    ("jssafe", "a near miss"),
    ("js safe", "a near miss"),
    ("timestamp", "the name of a field"),
    ("41", "a number"),
    ("\u0442witter", "a Cyrillic letter"),
    ("twitter\u200b", "an invisible character"),
    ("default", "no preset has that name"),
    ("x" * 300, "a long name"),
]


def layouts_refused() -> Iterator[Case]:
    for given, why in REFUSED_LAYOUTS:
        yield {"given": given, "error": error_of(Layout.read, given).name, "why": why}


PUBLISHED = [
    ("twitter", 1541815603606036480),
    ("discord", 175928847299117063),
    ("shardingsphere", 725026630224842752),
    ("tsid", 38358284406638839),
    ("timestamp:29|worker:21|sequence:13@1474300800000/1s", 180363646902239241),
]
# The layouts used for decode, compose and bounds.
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
        # Pseudorandom numbers, the same in every run.
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
                error = error_of(layout.decode, id_).name
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
            "error": error_of(Layout.read(given).compose, time_ms, node, sequence).name,
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
    # The longest number of each width in each base, and the next number.
    for how in FORMATS.values():
        top = len(how.alphabet) ** (how.longest - 1)
        ids += [id_ for id_ in (top - 1, top) if id_ <= U64]
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
    # As written by SQL Server and others.
    ("uuid", "FFFFFFFF-FFFF-8FFF-BC00-000000000000"),
    ("uuid", "ffffffff-FFFF-8fFf-Bc00-000000000000"),
    ("uuid", "0123ABCD-EF01-8234-A800-000000000000"),
    # As github.com/bwmarrin/snowflake writes 2124685436520722960. Other alphabets also read these
    # strings, as different IDs.
    ("bwmarrin-base32", "b49dgrs9wghoo"),
    ("base32", "b49dgrs9wghoo"),
    ("bwmarrin-base58", "5W3VRzXSrFo"),
    ("base58", "5W3VRzXSrFo"),
    ("base62", "5W3VRzXSrFo"),
    ("bwmarrin-base32", "yyyyyyyyyyyyy"),
    ("bwmarrin-base32", "yyyyyyyyyyyyb"),
    ("bwmarrin-base32", "x999999999999"),
    ("bwmarrin-base58", "11111111111"),
    ("bwmarrin-base58", "1111111111Z"),
    ("bwmarrin-base58", "JPwcyDCgEup"),
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
    # Two mistakes: the leftmost one is reported.
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
    ("bwmarrin-base32", "oyyyyyyyyyyyy"),
    ("bwmarrin-base58", "JPwcyDCgEuq"),
    # The original reads these characters as 0.
    ("bwmarrin-base32", "B49dgrs9wghoo"),
    ("bwmarrin-base32", "b49dgrs9wghoO"),
    ("bwmarrin-base32", "b0"),
    ("bwmarrin-base32", "b2"),
    ("bwmarrin-base32", "bl"),
    ("bwmarrin-base32", "bv"),
    ("bwmarrin-base32", "yyyyyyyyyyyyyb"),
    ("bwmarrin-base58", "1l"),
    ("bwmarrin-base58", "10"),
    ("bwmarrin-base58", "1O"),
    ("bwmarrin-base58", "1I"),
    ("bwmarrin-base58", "1\u00e9"),
    # Too short.
    ("uuid", "1565a11f"),
    ("uuid", "1565a11f-6217-8a00-8000-00000000000"),
    # Too long.
    ("uuid", "1565a11f-6217-8a00-8000-0000000000000"),
    ("uuid", "1565a11f-6217-8a00-8000-000000000000-"),
    ("uuid", "1565a11f-6217-8a00-8000-000000000000\n"),
    # Misplaced or missing hyphens, and other characters around UUIDs.
    ("uuid", "1565a11f62178a008000000000000000"),
    ("uuid", "1565a11f6-217-8a00-8000-000000000000"),
    ("uuid", "1565a11-f6217-8a00-8000-000000000000"),
    ("uuid", "1565a11f-62178-a00-8000-000000000000"),
    ("uuid", "1565a11f-6217-8a008-000-000000000000"),
    ("uuid", "1565a11f-6217-8a00-80000-00000000000"),
    ("uuid", "1565a11f\u20106217-8a00-8000-000000000000"),
    ("uuid", "{1565a11f-6217-8a00-8000-000000000000}"),
    ("uuid", "urn:uuid:1565a11f-6217-8a00-8000-000000000000"),
    ("uuid", "1541815603606036480"),
    # Not version 8: the examples in RFC 9562, and the nil and max UUIDs.
    ("uuid", "c232ab00-9414-11ec-b3c8-9f6bdeced846"),
    ("uuid", "5df41881-3aed-3515-88a7-2f4a814cf09e"),
    ("uuid", "919108f7-52d1-4320-9bac-f847db4148a8"),
    ("uuid", "2ed6657d-e927-568b-95e1-2665a8aea6a2"),
    ("uuid", "1ec9414c-232a-6b00-b3c8-9f6bdeced846"),
    ("uuid", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"),
    ("uuid", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"),
    ("uuid", "00000000-0000-0000-0000-000000000000"),
    ("uuid", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    # Version 8, but from other generators: the examples in RFC 9562.
    ("uuid", "2489e9ad-2ee2-8e00-8ec9-32d5f69181c0"),
    ("uuid", "5c146b14-3c52-8afd-938a-375d0df1fbf6"),
    # A different variant.
    ("uuid", "1565a11f-6217-8a00-0000-000000000000"),
    ("uuid", "1565a11f-6217-8a00-7000-000000000000"),
    ("uuid", "1565a11f-6217-8a00-c000-000000000000"),
    ("uuid", "1565a11f-6217-8a00-F000-000000000000"),
    # Non-zero bits after the ID.
    ("uuid", "1565a11f-6217-8a00-8100-000000000000"),
    ("uuid", "1565a11f-6217-8a00-8d00-000000000000"),
    ("uuid", "1565a11f-6217-8a00-8010-000000000000"),
    ("uuid", "1565a11f-6217-8a00-8001-000000000000"),
    ("uuid", "1565a11f-6217-8a00-8000-100000000000"),
    ("uuid", "1565a11f-6217-8a00-8000-000000000001"),
    ("uuid", "1565a11f-6217-8a00-8000-00000000000A"),
    # Letters that are not digits.
    ("uuid", "g565a11f-6217-8a00-8000-000000000000"),
    ("uuid", "1565a11f-6217-8a00-8000-00000000000o"),
    ("uuid", "\uff11565a11f-6217-8a00-8000-000000000000"),
    # Two mistakes.
    ("uuid", "1565a11f-6217-7a00-c000-000000000001"),
    # Formats that do not exist.
    ("base64", "1"),
    ("base16", "1"),
    ("", "1"),
    ("Hex", "1"),
    ("HEX", "1"),
    ("UUID", "00000000-0000-8000-8000-000000000001"),
    ("base32 ", "1"),
]


def texts_refused() -> Iterator[Case]:
    for format_, text in TEXTS_REFUSED:
        error = error_of(parse_id, text, format_)
        yield {
            "format": format_,
            "text": text,
            "error": error.name,
            "position": error.position,
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
        error = error_of(lambda given=given: Options.read(options_from_texts(given)))
        yield {"options": given, "error": error.name} | mark
