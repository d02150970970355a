"""The code in README.md and in docs/ runs, and prints what its comments promise.

A comment on the same line as a print statement shows the printed line. If the language needs a
`main`, code without one is wrapped. /var/lib/app stands for a temporary folder, and
redis://redis.internal/0 for a Redis server run by the tests. Code that cannot run here is marked
with the word `not-run` after its language. Shell commands are not run. YAML is checked against the
schemas for Kubernetes and Compose files.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from json import loads
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from pages import GUIDE, README, ROOT, Block, Page, page
from polyflake import Layout

PAGES = [README, *GUIDE]
# These pages show the first ID of node 7 in every language.
FIRST_IDS = [README, page("docs/README.md")]
# tests/probes/test_probes.py runs the program on this page.
RUN_ELSEWHERE = ["docs/probes.md"]
# cli/tests runs the `console` blocks, recipes/test.sh the `ts` blocks, and
# cli/tests/clients/languages.py those in languages that have no package.
NOT_CODE = {"text", "ts", "sh", "console", "toml", "yaml", "json", "ini", "hcl", "dockerfile"} | {
    *("java", "ruby", "elixir", "csharp")
}
# A print statement, followed by its comment.
PRINTS = {
    "python": r"\s*print\(.*\)\s+# (.*)",
    "rust": r"\s*println!\(.*\);\s+// (.*)",
    "c": r"\s*printf\(.*\);\s+/\* (.*) \*/",
    "go": r"\s*fmt\.Println\(.*\)\s+// (.*)",
    "js": r"\s*console\.log\(.*\);\s+// (.*)",
    "php": r"\s*echo .*;\s+// (.*)",
}
STORE = "redis://redis.internal/0"
GO_MODULE = "github.com/polyflake/polyflake/bindings-c/go"


def of(language: str) -> list[Block]:
    return [
        block
        for page in PAGES
        for block in page.blocks
        if block.info == language and str(page) not in RUN_ELSEWHERE
    ]


def examples(language: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", of(language), ids=str)


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def code(block: Block, folder: Path) -> str:
    text = block.text.replace("/var/lib/app", str(folder))
    if STORE not in text:
        return text
    # Each block has its own namespace, so its counters begin at 1.
    return text.replace(STORE, f"{store()}&namespace={block.page.path.stem}.{block.line}")


@cache
def store() -> str:
    """A Redis server for the examples with leases. It stops when the tests end."""
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tempfile.mkdtemp()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", folder]
    process = subprocess.Popen([*command, "--appendonly", "yes"], stdout=subprocess.DEVNULL)

    def end() -> None:
        process.kill()
        process.wait()
        shutil.rmtree(folder)

    atexit.register(end)
    # The address declares the store new, so that no process waits.
    return f"redis://127.0.0.1:{port}/0?init=always"


def check(block: Block, printed: str) -> None:
    """Checks that the program prints what its comments promise, in the same order."""
    promised = [
        match[1]
        for line in block.text.splitlines()
        if (match := re.fullmatch(PRINTS[block.language], line))
    ]
    lines = iter(printed.splitlines())
    assert [line for line in promised if line not in lines] == [], printed
    if not promised and block.page in FIRST_IDS and STORE not in block.text:
        assert Layout("twitter").decode(int(printed.rstrip("n\n"))).node == 7


def needs(command: str) -> None:
    """Skips unless the Makefile has set the C library's prefix and the language is installed."""
    if "PREFIX" not in os.environ or shutil.which(command) is None:
        pytest.skip(f"no {command}, or no C library in $PREFIX")


def make_orders(path: Path) -> list[int]:
    """A table as ShardingSphere would have left it: two nodes, and roughly a row per second."""
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


@examples("python")
def test_python(block: Block, tmp_path: Path) -> None:
    if "orders.db" in block.text:
        make_orders(tmp_path / "orders.db")
    (tmp_path / "example.py").write_text(code(block, tmp_path), encoding="utf-8")
    check(block, run(sys.executable, "example.py", cwd=tmp_path))


@examples("sql")
def test_sql(block: Block, tmp_path: Path) -> None:
    nodes = make_orders(tmp_path / "orders.db")
    db = sqlite3.connect(tmp_path / "orders.db")
    rows = db.execute(block.text).fetchall()
    db.close()
    if "AS node" in block.text:
        assert rows == [(node,) for node in nodes]


@examples("js")
def test_js(block: Block, tmp_path: Path) -> None:
    package = ROOT / "bindings-node"
    if shutil.which("node") is None or not (package / "dist").exists():
        pytest.skip("no node, or bindings-node is not built")
    # This runs in the package's folder, where Node resolves the package by its name.
    check(block, run("node", "--input-type=module", "--eval", code(block, tmp_path), cwd=package))


@examples("php")
def test_php(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("php")
    monkeypatch.setenv("HOST_NUMBER", "7")
    autoload = f"<?php require {str(ROOT / 'bindings-c/php/autoload.php')!r};\n"
    (tmp_path / "example.php").write_text(autoload + code(block, tmp_path), encoding="utf-8")
    check(block, run("php", "example.php", cwd=tmp_path))


@examples("c")
def test_c(block: Block, tmp_path: Path) -> None:
    needs("cc")
    text = code(block, tmp_path)
    if "int main(" not in text:
        head = "#include <inttypes.h>\n#include <polyflake.h>\n#include <stdio.h>\n"
        text = f"{head}int main(void) {{\n{text}return 0;\n}}\n"
    (tmp_path / "example.c").write_text(text, encoding="utf-8")
    flags = run("pkg-config", "--cflags", "--libs", "polyflake", cwd=tmp_path).split()
    warnings = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    run("cc", *warnings, "example.c", "-o", "example", *flags, cwd=tmp_path)
    check(block, run(tmp_path / "example", cwd=tmp_path))


def name(block: Block) -> str:
    return re.sub(r"\W", "_", str(block)).lower()


@pytest.fixture(scope="session")
def go_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All Go examples in one module, so that they are built together."""
    needs("go")
    folder = tmp_path_factory.mktemp("go")
    version = run("go", "env", "GOVERSION", cwd=folder)
    if (minor := re.match(r"go1\.(\d+)", version)) and int(minor[1]) < 24:
        pytest.skip(f"{version.strip()} is too old")
    (folder / "go.mod").write_text(
        f"module example\n\ngo 1.24\n\nrequire {GO_MODULE} v0.0.0\n"
        f"replace {GO_MODULE} => {ROOT / 'bindings-c/go'}\n",
        encoding="utf-8",
    )
    for block in of("go"):
        text = code(block, folder)
        if "package main" not in text:
            head = f'package main\nimport (\n"fmt"\n"log"\npolyflake "{GO_MODULE}"\n)\n'
            text = f"{head}var _, _ = fmt.Println, log.Fatal\nfunc main() {{\n{text}}}\n"
        (folder / name(block)).mkdir()
        (folder / name(block) / "main.go").write_text(text, encoding="utf-8")
    (folder / "bin").mkdir()
    run("go", "build", "-o", "bin/", "./...", cwd=folder)
    return folder


@examples("go")
def test_go(block: Block, go_programs: Path, tmp_path: Path) -> None:
    check(block, run(go_programs / "bin" / name(block), cwd=tmp_path))


@pytest.fixture(scope="session")
def rust_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All Rust examples in one crate, with the versions that Cargo.lock pins."""
    folder = tmp_path_factory.mktemp("rust")
    shutil.copy(ROOT / "Cargo.lock", folder)
    (folder / "Cargo.toml").write_text(
        "[package]\nname = 'docs-examples'\nversion = '0.0.0'\nedition = '2024'\n\n"
        "[workspace]\n\n[profile.dev]\ndebug = false\n"
        "[profile.dev.package.postgres-protocol]\nopt-level = 3\n"
        "[profile.dev.package.sha2]\nopt-level = 3\n\n[dependencies]\n"
        # With this crate, cargo selects the workspace's features, and reuses the store clients.
        f"polyflake-test-support = {{ path = '{ROOT / 'coordination/test-support'}' }}\n"
        f"polyflake = {{ path = '{ROOT / 'core'}', features = ['public-ids', 'serde'] }}\n"
        f"polyflake-coordination = {{ path = '{ROOT / 'coordination'}' }}\n"
        "serde = { version = '1', features = ['derive'] }\nserde_json = '1'\n",
        encoding="utf-8",
    )
    programs = folder / "src/bin"
    programs.mkdir(parents=True)
    for block in of("rust"):
        text = code(block, folder)
        if "fn main(" not in text:
            text = f"fn main() -> Result<(), Box<dyn std::error::Error>> {{\n{text}Ok(())\n}}\n"
        (programs / f"{name(block)}.rs").write_text(text, encoding="utf-8")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    # Without the workspace's SQLite flags, this build and the next one would compile SQLite again.
    config = ROOT / ".cargo/config.toml"
    run("cargo", "build", "-q", "--bins", "--target-dir", target, "--config", config, cwd=folder)
    return target / "debug"


@examples("rust")
def test_rust(block: Block, rust_programs: Path, tmp_path: Path) -> None:
    check(block, run(rust_programs / name(block), cwd=tmp_path))


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_block_is_known(page: Page) -> None:
    """Blocks need a language: rustdoc, which also runs README.md, treats any others as Rust."""
    for block in page.blocks:
        words = block.info.split()
        assert words, f"{block} does not say its language"
        assert words[0] in NOT_CODE | PRINTS.keys() | {"sql"}, (
            f"{block}: nothing here runs {words[0]}"
        )
        assert words[1:] in ([], ["not-run"]), str(block)
        if words[0] == "toml":
            tomllib.loads(block.text)
        if words[0] == "json":
            loads(block.text)
    assert not page.has_indented_code, "it would not be run"


@examples("yaml")
def test_yaml(block: Block) -> None:
    check_yaml(block.text)
    with pytest.raises(jsonschema.ValidationError, match="imag"):
        check_yaml(block.text.replace("image:", "imag:"))


def check_yaml(text: str) -> None:
    for document in yaml.safe_load_all(text):
        if "kind" in document:
            version = kubernetes_validate.latest_version()
            kubernetes_validate.validate(document, version, strict=True)
        else:
            jsonschema.validate(document, compose_schema())


@cache
def compose_schema() -> Any:
    vendored = files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    return loads(vendored.read_text(encoding="utf-8"))


def test_there_are_examples_in_every_language() -> None:
    for language in [*PRINTS, "sql"]:
        assert of(language), language
    assert {block.language for block in README.blocks} >= PRINTS.keys()


def test_the_readme_is_short() -> None:
    assert len(README.text.splitlines()) <= 200
