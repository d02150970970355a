"""README.md: its Python and SQL run, and its tables say what the package does."""

from __future__ import annotations

import builtins
import inspect
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import polyflake
import pytest
from polyflake import PRESETS, InvalidOptionError, Layout, PolyflakeError, Snowflake, format_id

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = README.splitlines()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PUBLISHED_ID = 1541815603606036480


class Block(NamedTuple):
    language: str
    line: int
    text: str


class Table(NamedTuple):
    head: list[str]
    rows: list[list[str]]


def blocks() -> Iterator[Block]:
    fence = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    for match in fence.finditer(README):
        # The number of the line before the first of the block.
        line = README.count("\n", 0, match.start(2))
        yield Block(match[1], line, match[2])


BLOCKS = list(blocks())


def of(language: str) -> list[Any]:
    found = [block for block in BLOCKS if block.language == language]
    return [pytest.param(block, id=f"line-{block.line}") for block in found]


def cells(line: str) -> list[str]:
    parts = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [part.strip().replace("\\|", "|") for part in parts]


def tables() -> Iterator[Table]:
    rule = re.compile(r"^\|(-+\|)+$")
    for n, line in enumerate(LINES):
        if rule.match(line):
            rows = []
            for row in LINES[n + 1 :]:
                if not row.startswith("|"):
                    break
                rows.append(cells(row))
            yield Table(cells(LINES[n - 1]), rows)


def table(first: str, *others: str) -> Table:
    found = [table for table in tables() if table.head[: 1 + len(others)] == [first, *others]]
    assert len(found) == 1, f"{len(found)} tables begin with {first}"
    return found[0]


def code(cell: str) -> str:
    match = re.fullmatch(r"`([^`]+)`", cell)
    assert match is not None, cell
    return match[1]


# The examples ------------------------------------------------------------------------------------


def make_orders(path: Path) -> list[int]:
    """A table as ShardingSphere would have left it: two nodes, a row every second or so."""
    layout = Layout("shardingsphere")
    orders = {}
    created = datetime.now(UTC) - timedelta(days=30)
    for n in range(1500):
        created += timedelta(milliseconds=977)
        orders[layout.compose(created, (3, 4)[n % 2], n % 3)] = created + timedelta(milliseconds=40)
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, created_at TEXT)")
        rows = [(id_, created.isoformat()) for id_, created in orders.items()]
        db.executemany("INSERT INTO orders VALUES (?, ?)", rows)
    db.close()
    return [3, 4]


@pytest.mark.parametrize("block", of("python"))
def test_python(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs by itself, and what follows `print(...)  # ` is what it prints."""
    make_orders(tmp_path / "orders.db")
    monkeypatch.chdir(tmp_path)
    lines = block.text.splitlines()
    promised = {
        n: line.partition("# ")[2]
        for n, line in enumerate(lines, 1)
        if re.match(r"\s*print\(", line) and "# " in line
    }
    printed = {}

    def record(*values: object) -> None:
        printed[sys._getframe(1).f_lineno] = " ".join(map(str, values))

    code = compile("\n" * block.line + block.text, "README.md", "exec")
    exec(code, {"__name__": "__main__", "print": record, "__builtins__": builtins})
    assert {n: printed.get(block.line + n) for n in promised} == promised


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def needs(command: str) -> str:
    """The Makefile gives the library's prefix; without a language, its example is not run."""
    if "PREFIX" not in os.environ or shutil.which(command) is None:
        pytest.skip(f"no {command}, or no C library in $PREFIX")
    return os.environ["PREFIX"]


def is_id_of_node_7(printed: str) -> bool:
    return Layout("twitter").decode(int(printed)).node == 7


@pytest.mark.parametrize("block", of("c"))
def test_c(block: Block, tmp_path: Path) -> None:
    needs("cc")
    (tmp_path / "example.c").write_text(block.text, encoding="utf-8")
    flags = run("pkg-config", "--cflags", "--libs", "polyflake", cwd=tmp_path).split()
    warnings = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    run("cc", *warnings, "example.c", "-o", "example", *flags, cwd=tmp_path)
    assert is_id_of_node_7(run(tmp_path / "example", cwd=tmp_path))


@pytest.mark.parametrize("block", of("go"))
def test_go(block: Block, tmp_path: Path) -> None:
    needs("go")
    version = run("go", "env", "GOVERSION", cwd=tmp_path)
    if (minor := re.match(r"go1\.(\d+)", version)) and int(minor[1]) < 24:
        pytest.skip(f"{version.strip()} is too old")
    module = "github.com/polyflake/polyflake/bindings-c/go"
    (tmp_path / "main.go").write_text(block.text, encoding="utf-8")
    (tmp_path / "go.mod").write_text(
        f"module example\n\ngo 1.24\n\nrequire {module} v0.0.0\n"
        f"replace {module} => {ROOT / 'bindings-c' / 'go'}\n",
        encoding="utf-8",
    )
    assert is_id_of_node_7(run("go", "run", ".", cwd=tmp_path))


@pytest.mark.parametrize("block", of("php"))
def test_php(block: Block, tmp_path: Path) -> None:
    needs("php")
    autoload = f"<?php require {str(ROOT / 'bindings-c/php/autoload.php')!r};\n"
    (tmp_path / "example.php").write_text(autoload + block.text, encoding="utf-8")
    assert is_id_of_node_7(run("php", "example.php", cwd=tmp_path))


@pytest.mark.parametrize("block", of("js"))
def test_js(block: Block) -> None:
    package = ROOT / "bindings-node"
    if shutil.which("node") is None or not (package / "dist").exists():
        pytest.skip("no node, or bindings-node is not built")
    printed = run("node", "--input-type=module", "--eval", block.text, cwd=package)
    assert is_id_of_node_7(printed.rstrip("n\n"))


@pytest.mark.parametrize("block", of("sql"))
def test_sql(block: Block, tmp_path: Path) -> None:
    nodes = make_orders(tmp_path / "orders.db")
    db = sqlite3.connect(tmp_path / "orders.db")
    assert db.execute(block.text).fetchall() == [(node,) for node in nodes]
    db.close()


def test_every_block_is_known() -> None:
    """The core's doctests run the Rust ones, and would take any block without a name for Rust."""
    languages = [block.language for block in BLOCKS]
    assert languages.count("python") >= 7
    assert languages.count("rust") >= 2
    assert languages.count("sql") >= 1
    assert {"c", "go", "js", "php"} <= set(languages)
    assert set(languages) <= {
        "python",
        "rust",
        "c",
        "go",
        "js",
        "php",
        "sql",
        "sh",
        "text",
    }
    assert README.count("```") == 2 * len(BLOCKS)
    outside = re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"^(    |\t)", outside, re.MULTILINE), (
        "an indented block is Rust to rustdoc"
    )


def test_every_rust_block_is_a_program() -> None:
    for block in BLOCKS:
        if block.language == "rust":
            assert "fn main() -> Result<(), polyflake::Error>" in block.text


def test_the_bit_picture() -> None:
    layout = Layout("twitter")
    fields = layout.fields
    values = [f"{(PUBLISHED_ID & field.mask) >> field.shift:0{field.bits}b}" for field in fields]
    unused = 64 - layout.total_bits
    assert unused == 1
    picture = next(block.text for block in BLOCKS if "datacenter" in block.text).splitlines()
    head, names, bits, values_line = (picture[n] for n in (0, 2, 3, 5))
    assert [part.strip() for part in bits.strip().strip("|").split("|")] == ["0", *values]
    named = [part.strip() for part in names.strip().strip("|").split("|")]
    assert named == ["", *(field.name for field in fields)]
    ends = [end for f in fields for end in (str(f.shift + f.bits - 1), str(f.shift))]
    assert head.split() == ["bit", "63", *ends]
    decoded = layout.decode(PUBLISHED_ID)
    assert str(decoded.ticks) in values_line
    assert f"= {decoded.node} " in values_line
    assert f"= {decoded.timestamp_ms}, which is 2022-06-28T16:07:40.105Z." in README
    assert decoded.time == datetime(2022, 6, 28, 16, 7, 40, 105000, tzinfo=UTC)


# The tables --------------------------------------------------------------------------------------


def test_options() -> None:
    given = {code(name): default.strip("`") for name, default, _ in table("option", "default").rows}
    signature = inspect.signature(Snowflake)
    assert list(given) == list(signature.parameters)
    assert given["node"] == "required"
    with pytest.raises(polyflake.InvalidNodeError):
        Snowflake()

    # Equal bounds share the cursor; any other is refused.
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
    match = re.search(r"The three in ms take 0 to (\d+)", README)
    assert match is not None
    largest = int(match[1])
    Snowflake(node=1002, max_wait_ms=largest)
    with pytest.raises(InvalidOptionError):
        Snowflake(node=1002, max_wait_ms=largest + 1)


def test_errors() -> None:
    classes = {cls.code: cls for cls in PolyflakeError.__subclasses__()}
    rows = table("n", "name").rows
    assert [int(row[0]) for row in rows] == sorted(classes)
    for number, name, when, _, python in rows:
        error = classes[int(number)]
        assert code(name) == error.name
        match = re.fullmatch(r"`(\w+)` \(`(\w+)`\)", python)
        assert match is not None
        assert getattr(polyflake, match[1]) is error
        assert error.__bases__ == (PolyflakeError, getattr(builtins, match[2]))
        later = name.strip("`").startswith("lease_")
        assert when.startswith("reserved") is later


def day(unix_ms: int) -> str:
    try:
        return f"{EPOCH + timedelta(milliseconds=unix_ms):%Y-%m-%d}"
    except OverflowError:
        # The average Gregorian year; a date near a new year would need more care.
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
    assert table("preset").rows == [preset_row(name) for name in PRESETS]


def test_text_formats() -> None:
    rows = table("format").rows
    assert [code(row[0]) for row in rows] == [
        "decimal",
        "hex",
        "base32",
        "base36",
        "base58",
        "base62",
    ]
    for name, text, written, _ in rows:
        assert code(text) == format_id(PUBLISHED_ID, code(name))  # type: ignore[arg-type]
        lengths = [len(format_id(id_, code(name))) for id_ in (0, 2**64 - 1)]  # type: ignore[arg-type]
        digits = f"{lengths[0]} to {lengths[1]}" if lengths[0] != lengths[1] else f"{lengths[0]}"
        assert written.startswith(f"{digits} digits")
        assert ("sorts" in written) is (lengths[0] == lengths[1])


def test_files_and_commands_exist() -> None:
    paths = set(re.findall(r"`((?:core|bindings-[a-z]+|tests)/[\w./-]+)`", README))
    assert {"core/tests/guarantees.rs", "core/tests/vectors.rs", "tests/vectors.json"} <= paths
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)`", README))
    assert {"demo", "test", "lint", "fmt", "help", "packages", "bench"} <= named <= targets


# Migrating ---------------------------------------------------------------------------------------


def layout_texts() -> list[str]:
    inline = re.findall(r"`(timestamp:[^`\s]+)`", README)
    return list(dict.fromkeys(text.replace("\\|", "|") for text in inline))


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
    assert f"ran out on {ended:%Y-%m-%d} at {ended:%H:%M:%S} UTC" in README
    with pytest.raises(polyflake.TimeOutOfRangeError):
        Snowflake(layout="baidu", node=1).next_id()


def test_baidu_with_one_more_bit_of_time() -> None:
    old, new = Layout("baidu"), wider("timestamp:29|worker:22|")
    assert until(new) == 2033
    for id_ in (0, 2**63 - 1, *(random.getrandbits(63) for _ in range(1000))):
        was, is_ = old.decode(id_), new.decode(id_)
        assert (was.time, was.fields, was.sequence) == (is_.time, is_.fields, is_.sequence)
    assert new.min_id(old.ends_at_ms + 1) == 2**63
    # What a shift of a second past the end, unchecked, makes of a signed 64-bit integer.
    negative = ((2**28 + 5) << 35 | 77 << 13 | 1) - 2**64
    assert -(2**63) <= negative < 0
    decoded = new.decode(negative % 2**64)
    assert (decoded.ticks, decoded.node, decoded.sequence) == (2**28 + 5, 77, 1)


def test_baidu_with_bits_taken_from_the_worker() -> None:
    old, new = Layout("baidu"), wider("timestamp:31|worker:19|")
    assert new.total_bits == 63
    assert until(new) == 2084
    assert new.nodes == 524288
    assert f"below {new.nodes} (2^19)" in README
    highest = 40_000
    ahead = random.randrange(highest + 1, new.nodes)
    for _ in range(1000):
        ticks, worker = random.getrandbits(28), random.randrange(highest + 1)
        old_id = ticks << 35 | worker << 13 | random.getrandbits(13)
        assert old.decode(old_id).node == worker
        # The worker's place in the new layout tells both kinds apart.
        assert new.decode(old_id).node == worker
        time = new.epoch_ms + random.getrandbits(31) * 1000
        new_id = new.compose(time, ahead, random.getrandbits(13))
        assert new_id < 2**63
        assert (new_id >> 13) & 0x7FFFF == ahead
    # Order is lost: the new ones lie among the old.
    assert new.max_id(datetime.now(UTC)) < 2**63 - 1


def test_sharding_sphere_in_another_time_zone() -> None:
    china, utc = Layout("shardingsphere"), wider("timestamp:41|worker:10|sequence:12@1477")
    assert utc.epoch == datetime(2016, 11, 1, tzinfo=UTC)
    assert utc.epoch_ms - china.epoch_ms == 8 * 3_600_000


def test_sonyflake_starts() -> None:
    for name, year, month in (("sonyflake", 2014, 9), ("sonyflake2", 2025, 1)):
        assert Layout(name).epoch == datetime(year, month, 1, tzinfo=UTC)
        assert f"since {year}-{month:02}-01" in README
    now = datetime.now(UTC)
    assert Layout("sonyflake2").min_id(now) < Layout("sonyflake").min_id(now)


def test_the_layout_for_a_new_system() -> None:
    new = wider("timestamp:41|worker:10|sequence:12@1767")
    assert f"It lasts until {until(new)}." in README
    assert new.total_bits == 63
