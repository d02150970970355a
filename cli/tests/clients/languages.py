"""The programs from docs/any-language.md, with the addresses of the servers here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[3]
MADE = Path(os.environ["CARGO_TARGET_DIR"], "clients")
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Unreachable(Exception):
    """A language's package registry cannot be reached."""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout


def java(text: str, folder: Path) -> str:
    jars = MADE / "jars"
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    try:
        run("mvn", "-q", "-B", "-f", Path(__file__).with_name("pom.xml"), *copy, cwd=folder)
    except AssertionError as error:
        if "Could not transfer" in str(error):
            raise Unreachable("Maven Central") from None
        raise
    (folder / "FirstIds.java").write_text(text, encoding="utf-8")
    return run("java", "-cp", f"{jars}/*", "FirstIds.java", cwd=folder)


def ruby(text: str, folder: Path) -> str:
    return run("ruby", "-e", text, cwd=folder)


def elixir(text: str, folder: Path) -> str:
    return run("elixir", "-e", text, cwd=folder)


def csharp(text: str, folder: Path) -> str:
    (folder / "ids.cs").write_text(text, encoding="utf-8")
    run("mcs", "-langversion:7", "-r:System.Net.Http.dll", "ids.cs", cwd=folder)
    return run("mono", "ids.exe", cwd=folder)


def rust(text: str, folder: Path) -> str:
    shutil.copy(ROOT / "Cargo.lock", folder)
    (folder / "Cargo.toml").write_text(
        "[package]\nname = 'first-ids'\nversion = '0.0.0'\nedition = '2024'\n\n[workspace]\n\n"
        "[dependencies]\nredis = { version = '1', default-features = false }\n",
        encoding="utf-8",
    )
    (folder / "src").mkdir()
    (folder / "src/main.rs").write_text(text, encoding="utf-8")
    return run("cargo", "run", "-q", cwd=folder)


RUNS: dict[str, Callable[[str, Path], str]] = {
    "java": java,
    "ruby": ruby,
    "elixir": elixir,
    "csharp": csharp,
    "rust": rust,
}


def main() -> None:
    page = (ROOT / "docs/any-language.md").read_text(encoding="utf-8")
    blocks = [(language, text) for language, text in BLOCK.findall(page) if language in RUNS]
    if {language for language, _ in blocks} != RUNS.keys():
        sys.exit(f"docs/any-language.md lacks a language that is run here: {blocks}")
    host, port = os.environ["OPEN"].rsplit(":", 1)
    passed = failed = 0
    for number, (language, text) in enumerate(blocks):
        here = text.replace("127.0.0.1:8080", os.environ["OPEN_HTTP"])
        here = here.replace("6380", port).replace("127.0.0.1", host)
        folder = MADE / f"language-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            first, order, *five = map(int, RUNS[language](here, folder).split())
            assert 2**53 < first < five[0], (first, five)
            assert order > 0
            assert len(five) == 5
            assert five == sorted(set(five))
            passed += 1
        except Unreachable as where:
            print(f"skipped: {language}: {where} cannot be reached")
        except Exception as error:  # do not let one language stop the others
            failed += 1
            print(f"FAILED: {language}: {error}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
