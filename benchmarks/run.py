"""Measures the cost of an ID, with Polyflake and other packages, in all languages.

    make bench                                        everything, after building it
    python benchmarks/run.py [LANGUAGE ...] [--rounds N]

Each kind of processor has its own document in docs/benchmarks, which a run on that processor
replaces. If languages are named, the document goes to target/benchmarks/partial instead: all the
figures in a document come from the same run. Exits with 1 if a language's program fails. See also
benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any

import harness
from harness import NoAnswer, Program, missing, problem_of, without_paths
from report import (
    CASES,
    DOCUMENTS,
    RESULTS,
    Record,
    pinned,
    results_of,
    save,
    terminal,
    write_all,
)

ROOT = Path(__file__).resolve().parent.parent
SUITE = ROOT / "benchmarks"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
WORK = TARGET / "benchmarks"
# The time limit for a build or an installation.
LONGEST_RUN_S = 1800


class CommandFailed(Exception):
    """A command that exits with a status other than 0; the message is its error."""


class Skipped(Exception):
    """A language missing from this machine; the message says what is missing."""


def say(text: str) -> None:
    print(f"--- {text}", file=sys.stderr, flush=True)


def command(*arguments: str | Path, folder: Path = ROOT, **variables: str) -> str:
    """Runs a command with variables added to the environment, and returns its output."""
    try:
        done = subprocess.run(
            [str(argument) for argument in arguments],
            cwd=folder,
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_RUN_S,
        )
    except FileNotFoundError:
        raise CommandFailed(f"{arguments[0]} is not installed") from None
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise CommandFailed(without_paths(str(problem))) from None
    if done.returncode != 0:
        said = done.stdout + done.stderr
        print(said, file=sys.stderr, end="")
        raise CommandFailed(problem_of(said) or f"exit status {done.returncode}")
    return done.stdout


def need(program: str, package: str) -> None:
    """Installs a Debian package if the program is missing; if that fails, so will the program."""
    if not shutil.which(program):
        subprocess.run([ROOT / "tools" / "need", program, package], stdout=sys.stderr, check=False)


def all_missing(language: str, why: str) -> list[Record]:
    """Every peer pinned in the language's lock file."""
    names = [name for name in CASES[language]["rows"] if not name.lower().startswith("polyflake")]
    return [missing(language, name, why) for name in names if name in pinned(language)]


Prepared = tuple[list[Program], list[Record]]


# Languages ---------------------------------------------------------------------------------------
# Each builds what is measured, and returns the program's command and the missing peers.


def rust() -> Prepared:
    folder, target = SUITE / "rust", WORK / "rust"
    manifest = tomllib.loads((folder / "Cargo.toml").read_text())

    def build(*options: str) -> None:
        cargo = ("cargo", "build", "--release", "--locked", "--quiet", *options)
        command(*cargo, folder=folder, CARGO_TARGET_DIR=str(target))

    def build_with(peers: list[str]) -> None:
        build("--no-default-features", "--features", ",".join(peers))

    records = []
    try:
        build()
    except CommandFailed as problem:
        say(f"Rust: does not build with all peers ({problem}); looking for those that do")
        kept: list[str] = []
        # This fails if ours does not build even without peers.
        build_with(kept)
        for peer in manifest["features"]["default"]:
            try:
                build_with([*kept, peer])
                kept.append(peer)
            except CommandFailed as why:
                records.append(missing("Rust", peer, f"does not build: {why}"))
        build_with(kept)
    return [Program([target / "release" / manifest["package"]["name"]])], records


def c() -> Prepared:
    need("cc", "gcc")
    need("pkg-config", "pkg-config")
    flags = command("pkg-config", "--cflags", "--libs", "polyflake").split()
    program = WORK / "c" / "bench"
    program.parent.mkdir(parents=True, exist_ok=True)
    command("cc", "-O2", "-pthread", SUITE / "c" / "bench.c", "-o", program, *flags)
    return [Program([program])], []


def python() -> Prepared:
    wheels = sorted((ROOT / "dist").glob("polyflake-*.whl"))
    if not wheels:
        raise CommandFailed("there is no wheel in dist: run make packages")
    interpreter = environment(WORK / "python")
    pip(interpreter, "--no-deps", "--force-reinstall", str(wheels[-1]))
    records = []
    for requirement in (SUITE / "python" / "requirements.txt").read_text().split():
        try:
            pip(interpreter, requirement)
        except CommandFailed as problem:
            subject = requirement.partition("==")[0]
            records.append(missing("Python", subject, f"does not install: {problem}"))
    return [Program([interpreter, SUITE / "python" / "bench.py"])], records


def environment(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    interpreter = folder / "bin" / "python"
    if not interpreter.exists():
        command(sys.executable, "-m", "venv", folder)
    return interpreter


def pip(interpreter: Path, *arguments: str) -> None:
    command(interpreter, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments)


def node() -> Prepared:
    folder = SUITE / "node"
    if not shutil.which("npm"):
        raise Skipped("npm is not installed")
    need("chromium", "chromium")
    records = []
    try:
        command("npm", "ci", "--no-audit", "--no-fund", folder=folder)
    except CommandFailed as problem:
        records = all_missing("Node", f"npm ci: {problem}")
    return [Program(["node", folder / "bench.js"])], records


def go() -> Prepared:
    if not shutil.which("go"):
        raise Skipped("Go is not installed")
    # An older Go must not fetch a newer one.
    local: dict[str, Any] = {"GOTOOLCHAIN": "local", "CGO_ENABLED": "1"}
    version = command("go", "env", "GOVERSION", **local).strip()
    older = re.match(r"go1\.(\d+)", version)
    if older and int(older[1]) < 24:
        raise Skipped(f"this is {version}, and 1.24 or later is needed")
    # Go's build cache ignores C headers; the checksum makes it rebuild if the header changes.
    header = Path(
        command("pkg-config", "--variable=includedir", "polyflake").strip(), "polyflake.h"
    )
    local["CGO_CFLAGS"] = command("go", "env", "CGO_CFLAGS", **local).strip() + (
        f" -DPOLYFLAKE_HEADER_CHECKSUM={zlib.crc32(header.read_bytes())}"
    )
    program = WORK / "go" / "bench"
    command("go", "build", "-o", program, ".", folder=SUITE / "go", **local)
    return [Program([program])], []


def php() -> Prepared:
    need("php", "php-cli")
    if not shutil.which("php"):
        raise Skipped("PHP is not installed, and could not be installed")
    usable = 'echo PHP_VERSION_ID >= 80100 && class_exists("FFI") ? "yes" : "";'
    if not command("php", "-r", usable).strip():
        raise Skipped("this PHP is older than 8.1 or lacks the extension ffi")
    need("composer", "composer")
    folder = SUITE / "php"
    records = []
    try:
        command("composer", "install", "--no-interaction", folder=folder)
    except CommandFailed as problem:
        records = all_missing("PHP", f"does not install: {problem}")
    return [Program(["php", folder / "bench.php"])], records


def counters() -> Prepared:
    """Counters do not belong to one language: their tables cover Rust, Java and bare stores."""
    need("redis-server", "redis-server")
    need("mariadbd", "mariadb-server")
    need("etcd", "etcd-server")
    need("curl", "curl")  # checks whether etcd is running
    need("openssl", "openssl")  # makes MariaDB's certificates
    if not list(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
        need("postgres", "postgresql")
    target = WORK / "counters"
    command(
        *("cargo", "build", "--release", "--locked", "--quiet"),
        folder=SUITE / "counters",
        CARGO_TARGET_DIR=str(target),
    )
    program = target / "release" / "polyflake-counter-benchmarks"
    why = "not on Maven Central; the table has its server's statements for a segment"
    records = [missing("Counters", name, why) for name in ("tinyid", "Leaf")]
    urls, servers, without = started("Counters", program, "servers")
    records += without
    programs = [Program([program], urls, servers)]
    try:
        need("javac", "default-jdk-headless")
        # Suppress a warning about a log that is not needed.
        options = ("-Dslf4j.internal.verbosity=ERROR", "-cp", java_classes("counters", ""))
        java = ["java", *options, "Bench"]
        programs += [Program(java, urls)] if "REDIS" in urls else []
    except CommandFailed as problem:
        records.append(missing("Counters", "CosId", f"does not build: {problem}"))
    return programs, records


def started(
    language: str, *program: str | Path
) -> tuple[dict[str, str], subprocess.Popen[str], list[Record]]:
    """Starts the program's servers; returns their variables and the missing peers."""
    servers = subprocess.Popen([*program], stdin=PIPE, stdout=PIPE, text=True)
    assert servers.stdout is not None
    found: dict[str, str] = {}
    records: list[Record] = []
    for line in servers.stdout:
        if not (words := line.strip().split("\t"))[0]:
            return found, servers, records
        if words[0] == "missing":
            records.append(missing(language, *words[1:]))
        else:
            found[words[0]] = words[1]
    raise CommandFailed("the servers did not start")


def java_classes(profile: str, home: str, *jars: Path) -> str:
    """The class path for a Java program and the packages that its profile names."""
    need("mvn", "maven")
    work = WORK / "java" / profile
    # Remove the jars of earlier versions.
    shutil.rmtree(work, ignore_errors=True)
    folder, lib, classes = SUITE / "java", work / "lib", work / "classes"
    maven = ("mvn", "-B", "-q", f"-P{profile}", "dependency:copy-dependencies", f"-Dlib={lib}")
    java = {"JAVA_HOME": home} if home else {}
    command(*maven, folder=folder, **java)
    path = ":".join([f"{lib}/*", *map(str, jars)])
    # An annotation processor makes JMH's classes, and newer JDKs must be told to run it.
    javac = (f"{home}/bin/javac", "-proc:full") if home else ("javac",)
    command(*javac, "-d", classes, "-cp", path, *sorted((folder / profile).glob("*.java")))
    return f"{classes}:{path}"


def java() -> Prepared:
    """JMH takes minutes, so Java is measured separately from the other languages."""
    home, built = jdk(), WORK / "java" / "polyflake"
    if not home:
        raise Skipped("there is no JDK 22 or later")
    need("mvn", "maven")
    pom = ROOT / "bindings-c" / "java" / "pom.xml"
    maven = ("mvn", "-B", "-q", "-f", pom, "package", "-Dmaven.test.skip", f"-Dbuilt={built}")
    command(*maven, JAVA_HOME=home)
    version = command(ROOT / "tools" / "metadata", "version").strip()
    classes = java_classes("ids", home, built / f"polyflake-{version}.jar")
    # In UTC, since ShardingSphere's epoch is a local time.
    options = ("--enable-native-access=ALL-UNNAMED", "-Duser.timezone=UTC")
    java = [f"{home}/bin/java", *options, "-cp", classes, "polyflake.benchmarks.Main"]
    return [Program(java)], []


def jdk() -> str:
    """The home of a JDK that the package can use, or an empty string."""
    found = subprocess.run([ROOT / "bindings-c" / "java" / "jdk"], capture_output=True, text=True)
    return found.stdout.strip()


def service() -> Prepared:
    """The service does not belong to one language either: third-party clients measure it."""
    need("redis-server", "redis-server")
    need("redis-benchmark", "redis-tools")
    need("wrk", "wrk")
    cargo = ("cargo", "build", "--locked", "--quiet")
    # In the folder shared by all builds, since this is the program that users get.
    command(*cargo, "--profile", "command", "-p", "polyflake-cli", CARGO_TARGET_DIR=str(TARGET))
    target = WORK / "service"
    command(*cargo, "--release", folder=SUITE / "service", CARGO_TARGET_DIR=str(target))
    constant = target / "release" / "polyflake-service-benchmarks"
    bench: list[str | Path] = [sys.executable, SUITE / "service" / "bench.py"]
    program = TARGET / "command" / "polyflake"
    found, servers, _ = started("Service", *bench, "servers", program, constant)
    return [Program(bench, found, servers)], []


LANGUAGES: dict[str, tuple[str, Callable[[], Prepared]]] = {
    "rust": ("Rust", rust),
    "c": ("C", c),
    "python": ("Python", python),
    "node": ("Node", node),
    "go": ("Go", go),
    "php": ("PHP", php),
    "java": ("Java", java),
    "counters": ("Counters", counters),
    "service": ("Service", service),
}


# Running -----------------------------------------------------------------------------------------


def measure(name: str, prepare: Callable[[], Prepared], rounds: int) -> list[Record]:
    """A language's records; if something fails, one of the records says so."""
    records: list[Record] = []
    try:
        say(f"{name}: building, and installing its peers")
        programs, records = prepare()
        say(f"{name}: measuring")
        try:
            records += harness.measure(name, programs, rounds)
        finally:
            for program in programs:
                program.end()
    except Skipped as why:
        records.append({"kind": "skipped", "language": name, "why": str(why)})
    except (CommandFailed, NoAnswer, OSError) as problem:
        records.append({"kind": "failed", "language": name, "why": without_paths(str(problem))})
    for record in records:
        if record["kind"] in ("skipped", "failed"):
            say(f"{name}: {record['kind']}: {record['why']}")
    return without_doubles(records)


def without_doubles(records: Sequence[Record]) -> list[Record]:
    """A peer that cannot be installed cannot be imported either: the first reason says more."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for record in records:
        if record["kind"] == "missing":
            key = (record["language"], record["subject"].lower())
            if key in seen:
                continue
            seen.add(key)
        kept.append(record)
    return kept


# The machine -------------------------------------------------------------------------------------


def first_match(pattern: str, file: str) -> str:
    try:
        found = re.search(pattern, Path(file).read_text(), re.MULTILINE)
    except OSError:
        return ""
    return found[1].strip().strip('"') if found else ""


def machine() -> dict[str, str]:
    memory = first_match(r"^MemTotal:\s*(\d+)", "/proc/meminfo")
    flags = first_match(r"^flags\s*:(.*)$", "/proc/cpuinfo").split()
    counter = "invariant TSC" if {"constant_tsc", "nonstop_tsc"} <= set(flags) else ""
    facts = {
        "CPU": first_match(r"^model name\s*:(.*)$", "/proc/cpuinfo") or platform.processor(),
        "Architecture": platform.machine(),
        "Processors": str(
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        ),
        "Clock source": ", ".join(
            filter(
                None,
                [
                    first_match(
                        r"(.+)", "/sys/devices/system/clocksource/clocksource0/current_clocksource"
                    ),
                    counter,
                ],
            )
        ),
        "Virtual machine": ("yes" if "hypervisor" in flags else "no") if flags else "",
        "Memory": f"{int(memory) / 2**20:.1f} GiB" if memory else "",
        "System": first_match(r"^PRETTY_NAME=(.*)$", "/etc/os-release") or platform.system(),
        "Kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
    }
    return {name: value for name, value in facts.items() if value}


def tools(languages: Iterable[str]) -> dict[str, str]:
    """The versions of the compilers, interpreters and clients that these languages use."""
    versions = {}
    for language in languages:
        for name, (first, *others) in CASES[language]["tools"].items():
            program = [first.replace("JDK", jdk()), *others]
            if shutil.which(program[0]):
                try:
                    versions[name] = " ".join(command(*program).splitlines()[0].split())
                except (CommandFailed, IndexError) as problem:
                    say(f"{name} does not print its version: {problem}")
    return versions


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Measures Polyflake and other packages in one run."
    )
    parser.add_argument(
        "languages",
        nargs="*",
        metavar="LANGUAGE",
        help=f"one of {', '.join(LANGUAGES)}; all by default",
    )
    parser.add_argument("--rounds", type=int, default=9, help="at least 7; 9 by default")
    given = parser.parse_args()
    unknown = [name for name in given.languages if name not in LANGUAGES]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(LANGUAGES)}")

    if given.rounds < 7:
        parser.error("--rounds must be at least 7")

    runs = [given.languages]
    if not given.languages:
        runs = [
            [key for key in LANGUAGES if not apart(key)],
            *([key] for key in LANGUAGES if apart(key)),
        ]
    failed = [run(keys, given.rounds) for keys in runs]
    return 1 if any(failed) else 0


def apart(key: str) -> bool:
    """Whether the language has its own document."""
    return "apart" in CASES[LANGUAGES[key][0]]


def run(keys: Sequence[str], rounds: int) -> bool:
    """Measures the languages and writes a document; returns whether anything failed."""
    load = f"{os.getloadavg()[0]:.2f} in the minute before"
    records: list[Record] = []
    for key in keys:
        records += measure(*LANGUAGES[key], rounds)
    # Versions are read after measuring: by now, everything that can be installed has been.
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    facts = {
        "machine": machine() | {"Load": load},
        "tools": tools(dict.fromkeys(record["language"] for record in records)),
    }
    records.insert(0, {"kind": "run", "date": date, **facts})
    # All the figures in a document come from the same run.
    together = [key for key in LANGUAGES if not apart(key)]
    whole = sorted(keys) == sorted(together) or (len(keys) == 1 and apart(keys[0]))
    partial = WORK / "partial"
    data, folder = (RESULTS, DOCUMENTS) if whole else (partial / "results", partial)
    results = results_of(records)
    print(terminal(results))
    if results.rows:  # If nothing was measured, keep the document's figures.
        save(records, data)
        write_all(data, folder)
        say(f"results: {without_paths(str(data))}; documents: {without_paths(str(folder))}")
    return bool(results.failed)


if __name__ == "__main__":
    sys.exit(main())
