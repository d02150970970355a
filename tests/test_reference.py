"""Checks the reference against numbers worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import RFC_4122, UUID

import pytest
import reference

Layout, Refused = reference.Layout, reference.Refused


def unix_ms(text: str) -> int:
    since = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86400 + since.seconds) * 1000 + since.microseconds // 1000


# Layouts and decoding ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "id_", "time", "fields", "node", "sequence"),
    [
        (
            "twitter",
            1541815603606036480,
            "2022-06-28T16:07:40.105+00:00",
            {"datacenter": 11, "worker": 26},
            378,  # 11 * 32 + 26
            0,
        ),
        (
            "discord",
            175928847299117063,
            "2016-04-30T11:18:25.796+00:00",
            {"worker": 1, "process": 0},
            32,
            7,
        ),
        (
            "shardingsphere",
            725026630224842752,
            "2022-04-24T08:36:58.989+00:00",
            {"worker": 1},
            1,
            0,
        ),
        # https://clickhouse.com/docs/sql-reference/functions/uuid-functions#generatesnowflakeid
        (
            "clickhouse",
            7199081390080409600,
            "2024-05-22T16:19:15.859+00:00",
            {"machine": 484},
            484,
            0,
        ),
        (
            "timestamp:29|worker:21|sequence:13@1474300800000/1s",
            180363646902239241,
            "2017-01-19T04:15:46+00:00",
            {"worker": 4},
            4,
            9,
        ),
    ],
)
def test_published_ids(
    layout: str, id_: int, time: str, fields: dict[str, int], node: int, sequence: int
) -> None:
    decoded = Layout.read(layout).decode(id_)
    assert decoded.timestamp_ms == unix_ms(time)
    assert (decoded.fields, decoded.node, decoded.sequence) == (fields, node, sequence)
    for whole_or_map in (node, fields):
        assert Layout.read(layout).compose(unix_ms(time), whole_or_map, sequence) == id_


def test_published_tsid() -> None:
    decoded = Layout.read("tsid").decode(38358284406638839)
    assert (decoded.ticks, decoded.node, decoded.sequence) == (9145327665, 4, 2295)
    assert reference.format_id(38358284406638839, "base32") == "01226N0640J7Q"
    assert reference.parse_id("01226n064oj7q", "base32") == 38358284406638839


def test_known_ends() -> None:
    # 2^28 seconds is 268,435,456 seconds; baidu began on 2016-05-20 and ran out on 2024-11-20.
    baidu = Layout.read("baidu")
    assert baidu.ends_at_ms == 1463673600000 + 268435456 * 1000 - 1
    assert datetime.fromtimestamp(baidu.ends_at_ms // 1000, UTC).date().isoformat() == "2024-11-20"
    # mastodon ends in the year 10889, long after Python's datetime does.
    years = Layout.read("mastodon").ends_at_ms / (365.2425 * 86400 * 1000)
    assert int(1970 + years) == 10889
    # js-safe has 53 bits.
    assert Layout.read("js-safe").total_bits == 53


def test_the_presets_are_those_of_the_contract() -> None:
    names = [
        "twitter",
        "discord",
        "leaf",
        "shardingsphere",
        "baidu",
        "sonyflake",
        "sonyflake2",
        "easyswoole",
        "instagram",
        "mastodon",
        "tsid",
        "yitter",
        "cosid",
        "cosid-second",
        "pgedge",
        "seata",
        "business",
        "clickhouse",
        "js-safe",
    ]
    assert list(reference.PRESETS) == names
    for name, text in reference.PRESETS.items():
        assert Layout.read(name).text == text


def test_fields_in_place() -> None:
    # The worker is the lowest 16 bits, the sequence the 8 bits above, the time the 39 bits above
    # those.
    fields = [(f.name, f.bits, f.shift, f.mask) for f in Layout.read("sonyflake").fields]
    assert fields == [
        ("timestamp", 39, 24, 0x7FFFFFFFFF000000),
        ("sequence", 8, 16, 0x0000000000FF0000),
        ("machine", 16, 0, 0x000000000000FFFF),
    ]


def test_the_node_is_joined_from_wherever_its_fields_are() -> None:
    layout = Layout.read("region:2|timestamp:3|rack:3|sequence:2|worker:2@0/1ms")
    # region 10, rack 011, worker 01: 1001101 in binary.
    node = {"region": 2, "rack": 3, "worker": 1}
    assert layout.whole_node(node) == 0b1001101
    # region 10, timestamp 101, rack 011, sequence 11, worker 01.
    assert layout.compose(5, node, 3) == 0b10_101_011_11_01
    assert layout.decode(0b10_101_011_11_01).node == 0b1001101


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("timestamp:37|worker:20|sequence:16@0/1ms", "invalid_layout"),
        ("timestamp:63|sequence:1@0/1ms", None),
        ("timestamp:63|sequence:1@1/1ms", "invalid_layout"),
        ("sequence:12|timestamp:41@0/1ms", "invalid_layout"),
        ("twiter", "unknown_layout"),
        ("", "unknown_layout"),
    ],
)
def test_invalid_layouts(given: str, error: str | None) -> None:
    if error is None:
        assert Layout.read(given).ends_at_ms == 2**63 - 1
        return
    with pytest.raises(Refused) as caught:
        Layout.read(given)
    assert caught.value.name == error


def test_min_id_and_max_id_round_inwards() -> None:
    # 10 ms ticks from 1409529600000: tick 1 is ...010 to ...019.
    layout = Layout.read("sonyflake")
    assert layout.min_id(1409529600001) == 1 << 24
    assert layout.min_id(1409529600010) == 1 << 24
    assert layout.min_id(1409529600011) == 2 << 24
    assert layout.max_id(1409529600009) == (1 << 24) - 1
    assert layout.max_id(1409529600010) == (2 << 24) - 1


# Texts -------------------------------------------------------------------------------------------


def test_the_largest_id_in_every_format() -> None:
    largest = {
        "decimal": "18446744073709551615",
        "hex": "ffffffffffffffff",
        "base32": "FZZZZZZZZZZZZ",
        "base36": "3w5e11264sgsf",
        "base58": "jpXCZedGfVQ",
        "base62": "LygHa16AHYF",
        "uuid": "ffffffff-ffff-8fff-bc00-000000000000",
        "bwmarrin-base32": "x999999999999",
        "bwmarrin-base58": "JPwcyDCgEup",
    }
    assert {name: reference.format_id(2**64 - 1, name) for name in largest} == largest


@pytest.mark.parametrize(
    ("id_", "base32", "base58"),
    [
        # Written by github.com/bwmarrin/snowflake v0.3.0.
        (0, "y", "1"),
        (31, "9", "x"),
        (57, "b3", "Z"),
        (1023, "99", "iD"),
        (1024, "byy", "iE"),
        (3363, "djd", "ZZ"),
        (3364, "djr", "211"),
        (175928847299117063, "rhegmmyoryy8", "pFLuuKMHer"),
        (1541815603606036480, "bk3pbd7tbxeyy", "4zzv4rZaYpj"),
        (2124685436520722960, "b49dgrs9wghoo", "5W3VRzXSrFo"),
        (6264500133488248714, "fp593ia99ethk", "fxpinMzsuDY"),
        (9223372036854775807, "8999999999999", "npL6MjP8Qfc"),
    ],
)
def test_texts_of_bwmarrins_snowflake(id_: int, base32: str, base58: str) -> None:
    for format_, text in (("bwmarrin-base32", base32), ("bwmarrin-base58", base58)):
        assert reference.format_id(id_, format_) == text
        assert reference.parse_id(text, format_) == id_


@pytest.mark.parametrize(
    ("format_", "text", "position"),
    [
        ("decimal", "18446744073709551616", 20),
        ("decimal", "12x45", 3),
        ("hex", "ffffffffffffffff0", 17),
        ("base32", "G000000000000", 13),
        ("base58", "10", 2),
        ("decimal", "", None),
        ("uuid", "919108f7-52d1-4320-9bac-f847db4148a8", 15),
        ("uuid", "ffffffff-ffff-8fff-fc00-000000000000", 20),
        ("uuid", "ffffffff-ffff-8fff-bd00-000000000000", 21),
        ("uuid", "ffffffff-ffff-8fff-bc00-000000000001", 36),
        ("uuid", "ffffffff-ffff-8fff-bc00-0000000000000", 37),
        ("uuid", "ffffffff-ffff-8fff-bc00-00000000000", None),
        ("bwmarrin-base32", "b49dgrs9wghoO", 13),
        ("bwmarrin-base58", "10", 2),
    ],
)
def test_invalid_texts(format_: str, text: str, position: int | None) -> None:
    with pytest.raises(Refused) as caught:
        reference.parse_id(text, format_)
    assert (caught.value.name, caught.value.position) == ("invalid_id", position)


def test_a_uuid_is_of_version_8_and_sorts_as_its_id() -> None:
    ids = sorted(
        {0, *(2**bit for bit in range(64)), *(2**bit - 1 for bit in range(65))}
        | {reference.mix(i) for i in range(1000)}
    )
    made = [UUID(reference.format_id(id_, "uuid")) for id_ in ids]
    assert {(each.version, each.variant) for each in made} == {(8, RFC_4122)}
    assert made == sorted(made, key=lambda each: each.bytes) == sorted(made, key=str)
    assert [reference.parse_id(str(each).upper(), "uuid") for each in made] == ids


# Generating --------------------------------------------------------------------------------------


def generator(**options: object) -> object:
    return reference.Reference(reference.Options.read(options))


def outcome(snowflake: object, clock_ms: int) -> object:
    try:
        return snowflake.try_next_id(clock_ms)  # type: ignore[attr-defined]
    except Refused as refused:
        carried = (refused.behind_ms, refused.retry_after_ms)
        return (refused.name, *(ms for ms in carried if ms is not None))


def test_mix_is_the_output_function_of_splitmix64() -> None:
    # The first published outputs of SplitMix64 from seed 0; its state grows by this constant.
    gamma = 0x9E3779B97F4A7C15
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [reference.mix(i * gamma % 2**64) for i in (1, 2, 3)] == published
    # The same, from seed 1234567.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [reference.mix((1234567 + i * gamma) % 2**64) for i in (1, 2, 3)] == published


def test_spread_by_hand() -> None:
    # Ticks and nodes chosen so that tick ^ node << 48 is the constant above, whose mix is known and
    # ends in 0xDAF.
    gamma = 0x9E3779B97F4A7C15
    narrow = generator(layout="timestamp:48|node:12|sequence:4@0/1ms", node=0xE37)
    # A quarter of 16 is 4; 0xDAF % 4 is 3.
    assert narrow.sequence_start(gamma ^ 0xE37 << 48) == 3  # type: ignore[attr-defined]
    # mix(0) is 0.
    assert narrow.sequence_start(0xE37 << 48) == 0  # type: ignore[attr-defined]
    # Only the lowest 16 bits of a node count: 0x19E37 << 48 equals 0x9E37 << 48, which combined
    # with the constant's lowest 48 bits as the tick yields the constant again. A quarter of 4096 is
    # 1024.
    wide = generator(layout="timestamp:30|node:20|sequence:12@0/1s", node=0x19E37)
    assert wide.sequence_start(0x79B97F4A7C15) == 0x1AF  # type: ignore[attr-defined]


# timestamp:20|node:4|sequence:2, node 5: an ID is tick * 64 + 5 * 4 + sequence.
SMALL = "timestamp:20|node:4|sequence:2@1000/1ms"


def small(tick: int, sequence: int) -> int:
    return tick * 64 + 20 + sequence


def test_a_tick_used_up_then_the_next() -> None:
    snowflake = generator(layout=SMALL, node=5)
    assert [outcome(snowflake, 1007) for _ in range(5)] == [
        small(7, 0),
        small(7, 1),
        small(7, 2),
        small(7, 3),
        ("sequence_exhausted", 1),
    ]
    assert outcome(snowflake, 1008) == small(8, 0)
    assert outcome(snowflake, 1010) == small(10, 0)


def test_slot_0_of_tick_0_is_never_issued() -> None:
    snowflake = generator(layout=SMALL, node=5)
    assert [outcome(snowflake, 1000) for _ in range(4)] == [
        small(0, 1),
        small(0, 2),
        small(0, 3),
        ("sequence_exhausted", 1),
    ]


def test_a_step_back_keeps_the_tick_until_it_is_used_up() -> None:
    snowflake = generator(layout=SMALL, node=5, max_backward_ms=4)
    assert outcome(snowflake, 1010) == small(10, 0)
    assert outcome(snowflake, 1006) == small(10, 1)
    # 5 ms behind is one ms too many; 1 ms later, it is only 4.
    assert outcome(snowflake, 1005) == ("clock_moved_backwards", 5, 1)
    assert outcome(snowflake, 1006) == small(10, 2)
    assert outcome(snowflake, 1009) == small(10, 3)
    # Tick 10 is used up: the call must wait for 1011, 2 ms after 1009; the clock is 1 ms behind.
    assert outcome(snowflake, 1009) == ("clock_moved_backwards", 1, 2)
    # Past the bound, the wait also lasts until 1011, since waiting for 1006 would not help.
    assert outcome(snowflake, 1003) == ("clock_moved_backwards", 7, 8)
    # Once the clock has reached the tick, it is no longer the cause.
    assert outcome(snowflake, 1010) == ("sequence_exhausted", 1)
    assert outcome(snowflake, 1011) == small(11, 0)


def test_borrowing_and_a_step_back() -> None:
    snowflake = generator(layout=SMALL, node=5, max_ahead_ms=2, max_backward_ms=1)
    taken = [outcome(snowflake, 1010) for _ in range(12)]
    assert taken == [small(10 + i // 4, i % 4) for i in range(12)]
    # Tick 13 may be borrowed from 1011.
    assert outcome(snowflake, 1010) == ("sequence_exhausted", 1)
    # The cursor's tick is 12, which less 2 ahead is 10, so 1009 is 1 behind and tolerated, but used
    # up; 1008 is 2 behind.
    assert outcome(snowflake, 1009) == ("clock_moved_backwards", 1, 2)
    assert outcome(snowflake, 1008) == ("clock_moved_backwards", 2, 3)
    assert outcome(snowflake, 1011) == small(13, 0)
    assert outcome(snowflake, 1009) == ("clock_moved_backwards", 2, 1)
    assert outcome(snowflake, 1010) == small(13, 1)
    # The clock overtakes the borrowed ticks, so there is a fresh tick.
    assert outcome(snowflake, 1020) == small(20, 0)


def test_bounds_that_are_not_whole_ticks() -> None:
    # Ticks of 10 ms from 1005 on: 15 ms back is 2 ticks, 15 ms ahead is 1.
    snowflake = generator(
        layout="timestamp:20|node:4|sequence:1@1005/10ms",
        node=5,
        max_backward_ms=15,
        max_ahead_ms=15,
    )
    # The sequence has 1 bit: an ID is tick * 32 + 5 * 2 + sequence. 1059 is in tick 5.
    assert [outcome(snowflake, 1059) for _ in range(4)] == [170, 171, 202, 203]
    # Tick 7 may be borrowed from the start of tick 6, which is 1065.
    assert outcome(snowflake, 1059) == ("sequence_exhausted", 6)
    assert outcome(snowflake, 1065) == 234
    # The cursor's tick is 7, which less 1 ahead is 6, and less 2 back is 4: it continues at 1045.
    assert outcome(snowflake, 1044) == ("clock_moved_backwards", 21, 1)
    assert outcome(snowflake, 1045) == 235


def test_the_ends() -> None:
    # The time has 4 bits: ticks 0 to 15, from 1000 to 1015. An ID is tick * 16 + 1 * 4 + sequence.
    snowflake = generator(layout="timestamp:4|node:2|sequence:2@1000/1ms", node=1)
    assert outcome(snowflake, 999) == ("time_out_of_range",)
    assert outcome(snowflake, -1) == ("time_out_of_range",)
    assert outcome(snowflake, 1016) == ("time_out_of_range",)
    assert [outcome(snowflake, 1015) for _ in range(5)] == [
        244,
        245,
        246,
        247,
        ("time_out_of_range",),
    ]
    # The epoch is checked before a rollback.
    assert outcome(snowflake, 999) == ("time_out_of_range",)


def test_all_64_bits_without_wrapping() -> None:
    snowflake = generator(layout="timestamp:63|sequence:1@0/1ms")
    assert outcome(snowflake, 2**63 - 1) == 2**64 - 2
    assert outcome(snowflake, 2**63 - 1) == 2**64 - 1
    assert outcome(snowflake, 2**63 - 1) == ("time_out_of_range",)


def test_a_batch_that_fails_part_way_loses_what_it_took() -> None:
    snowflake = generator(layout=SMALL, node=5, max_wait_ms=0)
    with pytest.raises(Refused) as caught:
        snowflake.next_ids(5, reference.ScriptClock(1007))  # type: ignore[attr-defined]
    assert (caught.value.name, caught.value.retry_after_ms) == ("sequence_exhausted", 1)
    assert outcome(snowflake, 1008) == small(8, 0)


def test_a_wait_reads_the_clock_until_it_has_moved() -> None:
    snowflake = generator(layout=SMALL, node=5)
    for _ in range(4):
        outcome(snowflake, 1007)
    clock = reference.ScriptClock(1005, advance=1, until=1008)
    assert snowflake.next_id(clock) == small(8, 0)  # type: ignore[attr-defined]
    assert clock.value == 1008


def test_option_texts() -> None:
    assert reference.parse_node_text("7") == 7
    assert reference.parse_node_text("datacenter=1,worker=7") == {"datacenter": 1, "worker": 7}
    with pytest.raises(Refused) as caught:
        reference.parse_node_text("worker=7,worker=7")
    assert (caught.value.name, caught.value.number) == ("invalid_node", 3)
