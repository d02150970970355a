"""The tables and figures in README.md and docs/ match the packages."""

from __future__ import annotations

import builtins
import inspect
import random
import re
import tomllib
from datetime import UTC, datetime, timedelta
from typing import cast

import polyflake
import pytest
from pages import GUIDE, README, ROOT, Page, page
from polyflake import PRESETS, InvalidOptionError, Layout, PolyflakeError, Snowflake, format_id

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PUBLISHED_ID = 1541815603606036480
PAGES = [README, *GUIDE]
MIGRATING = page("docs/migrating.md").text


def code(cell: str) -> str:
    match = re.fullmatch(r"`([^`]+)`", cell)
    assert match is not None, cell
    return match[1]


@pytest.mark.parametrize("on", [README, page("docs/layouts.md")], ids=str)
def test_the_bit_picture(on: Page) -> None:
    layout = Layout("twitter")
    fields = layout.fields
    values = [f"{(PUBLISHED_ID & field.mask) >> field.shift:0{field.bits}b}" for field in fields]
    unused = 64 - layout.total_bits
    assert unused == 1
    picture = next(block.text for block in on.blocks if "bit  63" in block.text).splitlines()
    head, names, bits, values_line = (picture[n] for n in (0, 2, 3, 5))
    assert [part.strip() for part in bits.strip().strip("|").split("|")] == ["0", *values]
    named = [part.strip() for part in names.strip().strip("|").split("|")]
    assert named == ["", *(field.name for field in fields)]
    ends = [end for f in fields for end in (str(f.shift + f.bits - 1), str(f.shift))]
    assert head.split() == ["bit", "63", *ends]
    decoded = layout.decode(PUBLISHED_ID)
    assert str(decoded.ticks) in values_line
    assert f"= {decoded.node} " in values_line
    if on != README:
        assert f"= {decoded.timestamp_ms}, which is 2022-06-28T16:07:40.105Z." in on.text
    assert decoded.time == datetime(2022, 6, 28, 16, 7, 40, 105000, tzinfo=UTC)


# The tables --------------------------------------------------------------------------------------


def test_options() -> None:
    given = {
        code(name): default.strip("`")
        for name, default, _ in page("docs/options.md").table("option", "default").rows
    }
    signature = inspect.signature(Snowflake)
    assert list(given) == list(signature.parameters)
    assert given["node"] == "required"
    with pytest.raises(polyflake.InvalidNodeError):
        Snowflake()

    # With equal limits, Snowflakes share the cursor; different limits are rejected.
    defaults = {name: int(given[name]) for name in ("max_backward_ms", "max_ahead_ms")}
    assert Snowflake(node=1001).layout == Layout(given["layout"])
    names = {name: given[name] for name in ("layout", "clock", "sequence_start")}
    Snowflake(node=1001, **names, **defaults)  # type: ignore[arg-type]
    for name, value in defaults.items():
        with pytest.raises(InvalidOptionError, match=f"with {name} {value}:"):
            Snowflake(node=1001, **{name: value + 1})  # type: ignore[arg-type]

    for start, same in ((given["sequence_start"], True), ("zero", False)):
        one = Snowflake(node=1, clock=lambda: 1767225600000).next_id()
        other = Snowflake(node=1, clock=lambda: 1767225600000, sequence_start=start).next_id()  # type: ignore[arg-type]
        assert (one == other) is same

    assert given["max_wait_ms"] == "a tick + 1000"
    match = re.search(r"The three options in ms accept 0 to (\d+)", page("docs/options.md").text)
    assert match is not None
    largest = int(match[1])
    Snowflake(node=1002, max_wait_ms=largest)
    with pytest.raises(InvalidOptionError):
        Snowflake(node=1002, max_wait_ms=largest + 1)


def camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def test_options_in_each_language() -> None:
    """In Go and Java, vectors set options by name, and pass even if an option lacks a function."""
    names = list(inspect.signature(Snowflake).parameters)
    camel_case = [camel(name)[0].lower() + camel(name)[1:] for name in names]
    header = (ROOT / "bindings-c/include/polyflake.h").read_text(encoding="utf-8")
    of_a_snowflake = header.partition("Options of a Snowflake:")[2].partition("The values in ms")[0]
    assert re.findall(r"^ \* (\w+)", of_a_snowflake, re.MULTILINE) == names

    options = (ROOT / "bindings-c/go/options.go").read_text(encoding="utf-8")
    list_of_set = re.search(r"^// Set sets an option.*?The names are (.*?)\.", options, re.M | re.S)
    assert list_of_set is not None
    assert re.findall(r"\b(?!and\b)\w+", list_of_set[1]) == names
    go = [path.read_text(encoding="utf-8") for path in (ROOT / "bindings-c/go").glob("[a-z]*.go")]
    java = (ROOT / "bindings-c/java/src/main/java/io/polyflake/Snowflake.java").read_text("utf-8")
    for name in names:
        assert any(f'return Set("{name}", ' in text for text in go), name
        assert re.search(rf'(?:\bset|Settings\.\w+)\("{name}", ', java), name

    php = (ROOT / "bindings-c/php/src/Snowflake.php").read_text(encoding="utf-8")
    constructor = php.partition("function __construct(")[2].partition(") {")[0]
    assert sorted(re.findall(r"\$(\w+)", constructor)) == sorted(camel_case)
    typescript = (ROOT / "bindings-node/js/snowflake.ts").read_text(encoding="utf-8")
    properties = typescript.partition("interface SnowflakeOptions {")[2].partition("\n}")[0]
    assert re.findall(r"^  (\w+)\?:", properties, re.MULTILINE) == camel_case


def test_errors() -> None:
    classes = {cls.code: cls for cls in PolyflakeError.__subclasses__()}
    rows = page("docs/errors.md").table("n", "name").rows
    assert [int(row[0]) for row in rows] == sorted(classes)
    for number, name, when, _ in rows:
        assert code(name) == classes[int(number)].name
        assert when
    in_javascript = page("bindings-node/README.md").table("`number`", "`code`").rows
    assert [row[:2] for row in in_javascript] == [
        [str(number), f"`{error.name.upper()}`"] for number, error in sorted(classes.items())
    ]


def test_errors_in_each_language() -> None:
    classes = {cls.code: cls for cls in PolyflakeError.__subclasses__()}
    header = (ROOT / "bindings-c/include/polyflake.h").read_text(encoding="utf-8")
    typescript = (ROOT / "bindings-node/js/errors.ts").read_text(encoding="utf-8")
    go = (ROOT / "bindings-c/go/errors.go").read_text(encoding="utf-8")
    java_package = ROOT / "bindings-c/java/src/main/java/io/polyflake"
    java = (java_package / "PolyflakeException.java").read_text(encoding="utf-8")
    rows = page("docs/errors.md").table("n", "Rust").rows
    assert [int(row[0]) for row in rows] == sorted(classes)
    for number, rust, python, javascript, c, sentinel, php, in_java in rows:
        error = classes[int(number)]
        name = camel(error.name)
        assert code(rust) == name
        match = re.fullmatch(r"`(\w+)` \(`(\w+)`\)", python)
        assert match is not None
        assert getattr(polyflake, match[1]) is error
        assert error.__bases__ == (PolyflakeError, getattr(builtins, match[2]))
        assert code(javascript) == error.name.upper()
        assert f'"{code(javascript)}"' in typescript
        assert re.search(
            rf"#define {code(c)} {number}$|\b{code(c)} = {number},?$", header, re.MULTILINE
        ), c
        assert f"{code(sentinel)} Code = C.{code(c)}" in go
        match = re.fullmatch(r"`(\w+)` \(`(\w+)`\)", php)
        assert match is not None
        php_class = ROOT / f"bindings-c/php/src/Exception/{match[1]}.php"
        assert f"class {match[1]} extends \\{match[2]}" in php_class.read_text(encoding="utf-8")
        assert code(in_java) == f"{name}Exception"
        case = "default" if number == "99" else f"case {number}"
        assert f"{case} -> new {name}Exception(details);" in java


def day(unix_ms: int) -> str:
    try:
        return f"{EPOCH + timedelta(milliseconds=unix_ms):%Y-%m-%d}"
    except OverflowError:
        # The average Gregorian year; a date close to the turn of the year would need more care.
        return f"year {1970 + int(unix_ms / (365.2425 * 86_400_000))}"


def preset_row(name: str) -> list[str]:
    layout = Layout(name)
    bits = str(layout.total_bits)
    if layout.total_bits == 64:
        half = 1 << (63 - layout.timestamp_shift)
        bits += f" (63 until {day(layout.epoch_ms + half * layout.tick_ms - 1)})"
    seconds, ms = divmod(layout.tick_ms, 1000)
    return [
        f"`{name}`",
        ", ".join(f"{field.name} {field.bits}" for field in layout.fields),
        bits,
        str(layout.epoch_ms),
        f"{ms} ms" if ms else f"{seconds} s",
        day(layout.ends_at_ms),
        f"{layout.nodes:,}",
        f"{layout.ids_per_tick * 1000 // layout.tick_ms:,}",
    ]


def test_presets() -> None:
    assert page("docs/layouts.md").table("preset").rows == [preset_row(name) for name in PRESETS]


def test_text_formats() -> None:
    rows = page("docs/text-formats.md").table("format").rows
    assert [code(row[0]) for row in rows] == [
        "decimal",
        "hex",
        "base32",
        "base36",
        "base58",
        "base62",
        "uuid",
        "bwmarrin-base32",
        "bwmarrin-base58",
    ]
    for name, text, written, _ in rows:
        assert code(text) == format_id(PUBLISHED_ID, code(name))  # type: ignore[arg-type]
        lengths = [len(format_id(id_, code(name))) for id_ in (0, 2**64 - 1)]  # type: ignore[arg-type]
        digits = f"{lengths[0]} to {lengths[1]}" if lengths[0] != lengths[1] else f"{lengths[0]}"
        assert written.startswith(f"{digits} {'characters' if code(name) == 'uuid' else 'digits'}")
        assert ("sorts" in written) is (lengths[0] == lengths[1])


def test_presets_are_named_where_they_are_counted() -> None:
    named = ("Twitter", "Discord", "Sonyflake", "Instagram")
    assert f"({', '.join(named)} and {len(PRESETS) - len(named)} others)" in README.text


def features(crate: str) -> dict[str, list[str]]:
    manifest = tomllib.loads((ROOT / crate / "Cargo.toml").read_text(encoding="utf-8"))
    return cast("dict[str, list[str]]", manifest["features"])


def test_stores() -> None:
    """The crates, tests and pages mention every store."""
    stores = features("coordination")["default"]
    for crate in ("cli", "bindings-c", "bindings-node", "bindings-python"):
        assert features(crate)["default"] == [*stores, "polyflake-coordination/default"]
        for store in stores:
            assert f"polyflake-coordination/{store}" in features(crate)[store]
    servers = sorted({"mysql": "mariadb"}.get(store, store) for store in stores)
    for folder in ("leases", "counters", "histories"):
        tests = (ROOT / f"coordination/tests/{folder}/main.rs").read_text(encoding="utf-8")
        assert sorted(re.findall(r"^    (\w+): crate::", tests, re.MULTILINE)) == servers
    building = page("docs/building.md")
    sizes = building.table("stores", "C library").rows
    assert [row[0] for row in sizes] == ["none", *stores, "all"]
    listed = re.search(r"stores to\s+build with, from (.*?);", building.text, re.DOTALL)
    assert listed is not None
    assert re.findall(r"`(\w+)`", listed[1]) == stores
    addresses = "".join(row[0] for row in page("docs/leases.md").table("address").rows)
    assert [store for store in stores if f"`{store}://" not in addresses] == []


def test_files_and_commands_exist() -> None:
    """Inline code that looks like a file in the repository or a make target."""
    folders = "core|coordination|cli|bindings-[a-z]+|tests|docs|tools|benchmarks|fuzz|demo|recipes"
    makefiles = [ROOT / name for name in ("Makefile", ".ci/long-tests.mk", "packages/packages.mk")]
    rules = "\n".join(path.read_text(encoding="utf-8") for path in makefiles)
    targets = set(" ".join(re.findall(r"^([a-z -]+):", rules, re.MULTILINE)).split())
    paths, commands = set(), set()
    for on in [*PAGES, page("CONTRIBUTING.md")]:
        paths |= {text for text in on.code if re.fullmatch(rf"(?:{folders})/[\w./-]+", text)}
        shell = [block.text for block in on.blocks if block.language == "sh"]
        commands |= {
            name
            for text in on.code
            if text.startswith("make ")
            for name in re.findall(r"make ([a-z-]+)", text)
        }
        commands |= {
            name
            for text in shell
            for name in re.findall(r"^(?:sudo )?make ([a-z-]+)", text, re.MULTILINE)
        }
    assert {"core/tests/guarantees.rs", "core/tests/vectors.rs", "tests/vectors.json"} <= paths
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    assert {"demo", "test", "lint", "fmt", "help", "packages", "bench", "test-docs"} <= commands
    assert sorted(commands - targets) == []
    listed = re.search(r"^TESTS := ((?:.*\\\n)*.*)", rules, re.MULTILINE)
    assert listed is not None
    building = page("docs/building.md").code
    assert [
        name for name in re.findall(r"[\w-]+", listed[1]) if f"make {name}" not in building
    ] == []


# Where a test can be located, and how a test function's definition begins.
TESTS = re.compile(
    r"[\w-]+/(?:[\w.-]+/)*"
    r"(?:tests?/(?:[\w.-]+/)*[\w.-]+\.(?:rs|py|js|mjs|c|sh)|src/(?:[\w.-]+/)*\w+\.rs"
    r"|\w+_test\.go|test_\w+\.py|\w+Test\.(?:php|java)|[\w-]+\.test\.[jt]s)"
)
DEFINITIONS = {
    # A macro generates some tests from a list of their names.
    ".rs": r"\b{}\b",
    ".go": r"^func {}\(",
    ".py": r"^\s*(?:async )?def {}\(",
    ".php": r"\bfunction {}\(",
    ".java": r"^ +(?:private static )?void {}\(",
    ".js": r"\b(?:test|it|describe)\([\"'`]{}[\"'`]",
}


def missing_test(text: str) -> str | None:
    """Returns the problem with a string that names a test: `path`, or `path::name`."""
    path, _, name = text.partition("::")
    file = ROOT / path
    if not file.is_file():
        return f"{text}: there is no such file"
    definition = DEFINITIONS.get(file.suffix)
    if not name:
        return None
    if definition is None:
        return f"{text}: nothing here knows how a test of {file.suffix} begins"
    source = file.read_text(encoding="utf-8")
    if re.search(definition.format(re.escape(name)), source, re.MULTILINE) is None:
        return f"{text}: the file has no such test"
    return None


def test_tests_that_pages_name_exist() -> None:
    """Each promise names the tests that would fail if it were broken."""
    named = set()
    for on in PAGES:
        named |= {text for text in on.code if TESTS.fullmatch(text.partition("::")[0])}
    assert len([text for text in named if "::" in text]) >= 100
    wrong = [missing_test(text) for text in sorted(named)]
    assert [what for what in wrong if what is not None] == []


def test_a_test_that_is_not_there_is_noticed() -> None:
    for text in (
        "coordination/tests/counters/every_store.rs",
        "coordination/tests/counters/every_store.rs::a_store_that_forgets",
        "coordination/tests/counters/main.rs::forked_processes_take_their_own",
        "coordination/src/lease/model.rs::without_a_rule_they_do",
        "bindings-c/go/waiting_test.go::TestAContextEndsTheWait",
        "bindings-c/java/src/test/java/io/polyflake/ThreadsTest.java::closeEndsWaits",
        "bindings-c/php/tests/FpmTest.php::testEachWorkerLeasesOneNode",
        "bindings-node/tests/lease.test.js::opens that wait cost no threads",
        "bindings-python/tests/test_awaited.py::test_cancelled_and_closed",
    ):
        path, _, name = text.partition("::")
        assert TESTS.fullmatch(path), path
        assert missing_test(text) is None
        assert missing_test(f"{path}x") is not None
        if name:
            assert missing_test(f"{path}::{name}x") is not None
            assert missing_test(f"{path}::{name[:-1]}") is not None


def test_files_of_the_crates_exist() -> None:
    """The pages say that these files are in core/src or coordination/src."""
    names = {
        name
        for on in (page("docs/design.md"), page("CONTRIBUTING.md"))
        for name in on.code
        if name.endswith(".rs")
    }
    others = ("core/", "coordination/", "cli/", "bindings-", "fuzz/")
    names = {name for name in names if not name.startswith(others)}
    assert {"rule.rs", "cursor.rs", "system/state_file.rs"} <= names
    folders = [ROOT / crate / "src" for crate in ("core", "coordination")]
    missing = [name for name in names if not any((folder / name).exists() for folder in folders)]
    assert sorted(missing) == []


def test_how_often_random_nodes_collide() -> None:
    def percent(processes: int, nodes: int) -> float:
        apart = 1.0
        for n in range(processes):
            apart *= 1 - n / nodes
        return 100 * (1 - apart)

    for processes, *cells in page("docs/containers.md").table("processes").rows:
        for nodes, cell in zip((1 << 10, 1 << 16), cells, strict=True):
            assert float(cell.removesuffix(" %")) == pytest.approx(
                percent(int(processes), nodes), abs=0.5
            )


# Migrating ---------------------------------------------------------------------------------------


def layout_texts() -> list[str]:
    inline = (text for on in PAGES for text in on.code if re.match(r"timestamp:\d", text))
    return list(dict.fromkeys(inline))


def test_every_layout_text_parses() -> None:
    texts = layout_texts()
    assert len(texts) >= 6
    for text in texts:
        assert str(Layout(text)) == text


def wider(start: str) -> Layout:
    texts = [text for text in layout_texts() if text.startswith(start)]
    assert len(texts) == 1
    return Layout(texts[0])


def until(layout: Layout) -> int:
    assert layout.ends_at is not None
    return layout.ends_at.year


def test_baidu_has_ended() -> None:
    ended = Layout("baidu").ends_at
    assert ended is not None
    assert f"ran out on {ended:%Y-%m-%d} at {ended:%H:%M:%S} UTC" in MIGRATING
    with pytest.raises(polyflake.TimeOutOfRangeError):
        Snowflake(layout="baidu", node=1).next_id()


def test_baidu_with_one_more_bit_of_time() -> None:
    old, new = Layout("baidu"), wider("timestamp:29|worker:22|")
    assert until(new) == 2033
    for id_ in (0, 2**63 - 1, *(random.getrandbits(63) for _ in range(1000))):
        was, is_ = old.decode(id_), new.decode(id_)
        assert (was.time, was.fields, was.sequence) == (is_.time, is_.fields, is_.sequence)
    assert new.min_id(old.ends_at_ms + 1) == 2**63
    # Without a check, shifting a time past the end overflows a signed 64-bit integer to this value.
    negative = ((2**28 + 5) << 35 | 77 << 13 | 1) - 2**64
    assert -(2**63) <= negative < 0
    decoded = new.decode(negative % 2**64)
    assert (decoded.ticks, decoded.node, decoded.sequence) == (2**28 + 5, 77, 1)


def test_baidu_with_bits_taken_from_the_worker() -> None:
    old, new = Layout("baidu"), wider("timestamp:31|worker:19|")
    assert new.total_bits == 63
    assert until(new) == 2084
    assert new.nodes == 524288
    assert f"below {new.nodes} (2^19)" in MIGRATING
    highest = 40_000
    ahead = random.randrange(highest + 1, new.nodes)
    for _ in range(1000):
        ticks, worker = random.getrandbits(28), random.randrange(highest + 1)
        old_id = ticks << 35 | worker << 13 | random.getrandbits(13)
        assert old.decode(old_id).node == worker
        # The worker's position in the new layout distinguishes the two kinds.
        assert new.decode(old_id).node == worker
        time = new.epoch_ms + random.getrandbits(31) * 1000
        new_id = new.compose(time, ahead, random.getrandbits(13))
        assert new_id < 2**63
        assert (new_id >> 13) & 0x7FFFF == ahead
    # The order is lost: new IDs are interleaved with old ones.
    assert new.max_id(datetime.now(UTC)) < 2**63 - 1


def test_sharding_sphere_in_another_time_zone() -> None:
    china, utc = Layout("shardingsphere"), wider("timestamp:41|worker:10|sequence:12@1477")
    assert utc.epoch == datetime(2016, 11, 1, tzinfo=UTC)
    assert utc.epoch_ms - china.epoch_ms == 8 * 3_600_000


def test_sonyflake_starts() -> None:
    for name, year, month in (("sonyflake", 2014, 9), ("sonyflake2", 2025, 1)):
        assert Layout(name).epoch == datetime(year, month, 1, tzinfo=UTC)
        assert f"since {year}-{month:02}-01" in MIGRATING
    now = datetime.now(UTC)
    assert Layout("sonyflake2").min_id(now) < Layout("sonyflake").min_id(now)


def test_the_layout_for_a_new_system() -> None:
    new = wider("timestamp:41|worker:10|sequence:12@1767")
    assert f"until {until(new)} |" in page("docs/choosing-a-layout.md").text
    assert new.total_bits == 63
