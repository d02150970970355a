"""Runs the duplicate probes on Polyflake in every language, and shows that they can fail."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs/probes.md"
SCALE = 0.05
TEXTBOOK = f"{sys.executable} {HERE / 'adapters/python/textbook_adapter.py'}"


def load_runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("polyflake_probes", HERE / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


run = load_runner()
SITUATIONS = {situation.name: situation for situation in run.SITUATIONS}

# Polyflake ----------------------------------------------------------------------------------------


class Expected(NamedTuple):
    """How many parts took IDs (`None`: all), and how often each error occurred."""

    parts: int | None
    refused: dict[str, int]
    # The number of IDs by which the total may be exceeded: only promises are asserted.
    more: int = 0


ALL = Expected(None, {})
# The parent's IDs; both children failed.
FORKED = Expected(1, {"forked": 2})
# The IDs before the step, plus those from the millisecond for which the last clock reading may be
# kept: 4,096 per ms, and the ms may change once in that time.
STEPPED = Expected(1, {"clock_moved_backwards": 1}, more=2 * 4096)
# Every request failed: 4 workers x 1,000 IDs, 500 per request.
SERVED_NONE = Expected(0, {"forked": 8})

NO_NODE = "processes that have no node of their own need a lease"

SAME_EVERYWHERE: dict[str, Expected | str] = {
    **dict.fromkeys(SITUATIONS, ALL),
    **dict.fromkeys(["fork", "fork-new"], FORKED),
    "rollback-5s": STEPPED,
    "fleet": NO_NODE,
}
EXPECTED = {language: dict(SAME_EVERYWHERE) for language in run.LANGUAGES}
EXPECTED["python"] |= {"prefork-one-node": SERVED_NONE}
# Features missing from a language, in the adapter's words.
NO_SERVER = "has no prefork server"
NO_FORK = "a Go program cannot fork"
NO_JAVA_FORK = "a Java program cannot fork"
NEW_PROGRAM = "Node's fork starts a new program"
NO_THREADS = "a PHP process has one thread"
NO_STATE = "sharing a node needs a state file"
EXPECTED["rust"] |= {"prefork": NO_SERVER, "prefork-one-node": NO_SERVER}
EXPECTED["c"] |= {"prefork": NO_SERVER, "prefork-one-node": NO_SERVER}
EXPECTED["go"] |= dict.fromkeys(["fork", "fork-new", "prefork", "prefork-one-node"], NO_FORK)
EXPECTED["java"] |= dict.fromkeys(["fork", "fork-new", "prefork", "prefork-one-node"], NO_JAVA_FORK)
EXPECTED["node"] |= {"fork": NEW_PROGRAM, "fork-new": NEW_PROGRAM, "prefork-one-node": NO_STATE}
EXPECTED["node"] |= {"threads": "worker threads share no objects"}
EXPECTED["php"] |= {"threads": NO_THREADS, "worker-threads": NO_THREADS}
EXPECTED["php"] |= {"prefork-one-node": NO_STATE}

# With a lease, a child builds its own Snowflake, with its own node.
LEASED = {
    language: {
        situation: ALL
        if expected == NO_NODE or (situation, expected) == ("fork-new", FORKED)
        else expected
        for situation, expected in situations.items()
    }
    for language, situations in EXPECTED.items()
}
LEASED["php"] |= dict.fromkeys(["rollback-5ms", "rollback-5s"], "does not go with a lease")


JDK = Path(__file__).parents[2] / "bindings-c/java/jdk"


def php(code: str) -> bool:
    answer = subprocess.run(["php", "-r", f"exit({code} ? 0 : 1);"], capture_output=True)
    return answer.returncode == 0


def has_php_fpm() -> bool:
    path = f"{Path('/usr/sbin')}:{Path('/usr/local/sbin')}"
    version = subprocess.run(
        ["php", "-r", "echo PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION;"],
        capture_output=True,
        text=True,
    ).stdout
    names = ("php-fpm", f"php-fpm{version}")
    return any(shutil.which(name) or shutil.which(name, path=path) for name in names)


def missing(language: str, situation: str) -> str | None:
    """Returns the tool that is missing here, without asking the adapter."""
    command: str = run.LANGUAGES[language][0]
    if language == "go" and shutil.which("go") is None:
        return "go"
    if language == "java" and subprocess.run(JDK, stdout=subprocess.DEVNULL).returncode != 0:
        return "a JDK of Java 22 or later"
    if language in ("rust", "c", "go", "java") and not Path(command).exists():
        pytest.fail(f"{command} is not there: run tests/probes/build.sh")
    if shutil.which(command) is None:
        return command
    if language == "php" and not php("class_exists('FFI')"):
        return "PHP's extension ffi"
    if situation.startswith("rollback") and run.faketime() is None:
        return "libfaketime"
    if language == "python" and situation.startswith("prefork"):
        return None if importlib.util.find_spec("gunicorn") else "gunicorn"
    if language == "php" and situation.startswith("fork"):
        return None if php("function_exists('pcntl_fork')") else "PHP's extension pcntl"
    if language == "php" and situation == "prefork":
        if not has_php_fpm():
            return "php-fpm"
        return None if shutil.which("cgi-fcgi") else "cgi-fcgi"
    return None


# The initial environment, for programs started by other threads: pytest changes its own for each
# test.
ENVIRONMENT = dict(os.environ)
Outcomes = dict[str, dict[str, Any]]
Running = dict[str, Future[Outcomes]]


def outcomes_of(*arguments: str, environment: dict[str, str] | None = None) -> Outcomes:
    """Runs run.py and returns its JSON, by situation."""
    answer = subprocess.run(
        [sys.executable, HERE / "run.py", "--json", "--timeout", "300", *arguments],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert answer.stdout, answer.stderr
    (outcomes,) = json.loads(answer.stdout).values()
    return {outcome["situation"]: outcome for outcome in outcomes}


# Situations in which processes can safely share a node through a state file.
WITH_STATE = [
    *("fork", "fork-new", "prefork-one-node", "restart", "restart-1ms", "rollback-5s", "fleet"),
]

# Every binding uses the same Rust code for state files and leases, so `make test` tries them in two
# languages, and `make test-release` in all.
WITH_OPTIONS = ["rust", "python"] if os.environ.get("PROFILE") == "dev" else list(run.LANGUAGES)

# More nodes than a fleet has processes at any one time, but fewer than it has in all, so that the
# nodes of killed processes are leased again.
FLEET = "ttl=3s&nodes=0-5&wait=240s"


@contextmanager
def redis(folder: Path) -> Iterator[int]:
    """Starts a server and returns its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--dir", str(folder)]
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), *options], stdout=subprocess.DEVNULL
    )
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.02)
        yield port
    finally:
        server.kill()
        server.wait()


@pytest.fixture(scope="session")
def all_ours(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The outcomes for each language: without options, with a state file, with leases in SQLite,
    and for fleets with leases in SQLite and in Redis. They run in parallel, since rollbacks and
    fleets spend most of their time sleeping.
    """
    scale = ["--scale", str(SCALE)]
    state = ["--option", "state={folder}/state", *(f"--only={name}" for name in WITH_STATE)]
    languages = [name for name, command in run.LANGUAGES.items() if shutil.which(command[0])]
    others = [f"--only={name}" for name in SITUATIONS if name != "fleet"]

    def lease(address: str) -> list[str]:
        return ["--option", f"lease={address}"]

    with ExitStack() as stack:
        options = {
            "bare": [],
            "state": state,
            "lease": [*lease("sqlite://{folder}/leases"), *others],
            "sqlite": [*lease("sqlite://{folder}/leases?" + FLEET), "--only=fleet"],
        }
        if shutil.which("redis-server"):
            port = stack.enter_context(redis(tmp_path_factory.mktemp("redis")))
            address = f"redis://127.0.0.1:{port}/0?init=always&{FLEET}&namespace={{language}}"
            options["redis"] = ["--only=fleet", *lease(address)]
        pool = stack.enter_context(ThreadPoolExecutor(6))

        def start(name: str, options: list[str]) -> Future[Outcomes]:
            given = [option.replace("{language}", name) for option in options]
            arguments = ["--language", name, *scale, *given]
            return pool.submit(outcomes_of, *arguments, environment=ENVIRONMENT)

        yield {
            kind: {
                name: start(name, given)
                for name in languages
                if kind == "bare" or name in WITH_OPTIONS
            }
            for kind, given in options.items()
        }


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("language", run.LANGUAGES)
def test_ours(language: str, situation: str, all_ours: dict[str, Running]) -> None:
    if tool := missing(language, situation):
        pytest.skip(f"needs {tool}")
    check(all_ours["bare"][language].result()[situation], EXPECTED[language][situation])


def check(outcome: dict[str, Any], expected: Expected | str) -> None:
    if isinstance(expected, str):
        assert outcome["verdict"] == "unsupported", outcome
        assert expected in outcome["detail"]
        return
    asked = SITUATIONS[outcome["situation"]]
    fewest = (asked.parts if expected.parts is None else expected.parts) * asked.scaled(SCALE)
    verdict = "refused" if expected.refused else "no repeats"
    assert outcome["verdict"] == verdict, (outcome["verdict"], outcome["detail"])
    assert outcome["repeats"] == 0
    assert outcome["refused"] == expected.refused
    assert fewest <= outcome["ids"] <= fewest + expected.more


@pytest.mark.parametrize("situation", WITH_STATE)
@pytest.mark.parametrize("language", WITH_OPTIONS)
def test_ours_with_a_state_file(
    language: str, situation: str, all_ours: dict[str, Running]
) -> None:
    if tool := missing(language, situation):
        pytest.skip(f"needs {tool}")
    expected = EXPECTED[language][situation]
    if not isinstance(expected, str) or expected in (NO_STATE, NO_NODE):
        expected = STEPPED if situation == "rollback-5s" else ALL
    check(all_ours["state"][language].result()[situation], expected)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("language", WITH_OPTIONS)
def test_ours_with_a_lease(language: str, situation: str, all_ours: dict[str, Running]) -> None:
    if tool := missing(language, situation):
        pytest.skip(f"needs {tool}")
    kind = "sqlite" if situation == "fleet" else "lease"
    check(all_ours[kind][language].result()[situation], LEASED[language][situation])


@pytest.mark.parametrize("language", WITH_OPTIONS)
def test_a_fleet_with_leases_in_redis(language: str, all_ours: dict[str, Running]) -> None:
    if tool := missing(language, "fleet"):
        pytest.skip(f"needs {tool}")
    if "redis" not in all_ours:
        pytest.skip("needs redis-server")
    check(all_ours["redis"][language].result()["fleet"], ALL)


def test_a_fleet_on_one_node_repeats() -> None:
    """Without leases, all processes have node 7. Retries, as in the textbook's test."""
    options = ["--option", "node=7", "--option", "layout=cosid-second"]
    for _ in range(100):
        arguments = ("--language", "python", "--only", "fleet", *options)
        outcome = outcomes_of(*arguments, "--scale", str(SCALE))["fleet"]
        assert outcome["verdict"] in ("REPEATS", "no repeats"), outcome["detail"]
        if outcome["verdict"] == "REPEATS":
            return
    pytest.fail("100 runs without a repeat")


# The probes can fail ------------------------------------------------------------------------------


# The option that makes the textbook repeat IDs in a situation. The default is a tick so long that
# the whole situation fits in it, so that processes share it no matter how busy the machine is.
REPEATED = dict.fromkeys(SITUATIONS, "tick_ms=3600000") | {
    "threads": "pause=1",
    "exhaustion": "wrap=1",
    "restart": "borrow=1",
    # The step goes back to an earlier tick.
    "rollback-5s": "tick_ms=1000",
    "rollback-5ms": "tick_ms=1",
}


@pytest.mark.parametrize(("situation", "option"), REPEATED.items())
def test_the_textbook_repeats(situation: str, option: str) -> None:
    """Covers every situation. Retries, because a tick may end or a process may sleep in between."""
    if tool := missing("python", situation):
        pytest.skip(f"needs {tool}")
    for _ in range(100):
        only = ["--only", situation, "--scale", "0.2"]
        (outcome,) = outcomes_of("--adapter", TEXTBOOK, *only, "--option", option).values()
        assert outcome["verdict"] in ("REPEATS", "no repeats"), outcome["detail"]
        if outcome["verdict"] == "REPEATS":
            assert outcome["repeats"] > 0
            return
    pytest.fail("100 runs without a repeat")


# The runner ---------------------------------------------------------------------------------------

Adapter = Callable[[str], str]


@pytest.fixture
def adapter(tmp_path: Path) -> Adapter:
    """Makes an adapter from a few lines of Python."""

    def make(code: str) -> str:
        path = tmp_path / "adapter.py"
        path.write_text(f"import os, sys, time\nn = 50_000\n{code}\n")
        return f"{sys.executable} {path}"

    return make


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print(*range(n), sep='\\n')", "no repeats"),
        ("print(*range(n - 1), 3, sep='\\n')", "REPEATS"),
        ("print(*range(n - 1), sep='\\n')", "FAILED: it printed 49,999 IDs of 50,000"),
        ("print(*range(n + 1), sep='\\n')", "FAILED: it printed 50,001 IDs of 50,000"),
        ("print('warning')", "FAILED: it printed 'warning', which is not a decimal ID"),
        ("print('needs luck', file=sys.stderr); sys.exit(4)", "unsupported: needs luck"),
        ("print(1); sys.exit('refused: clock')", "FAILED: exit status 1: refused: clock"),
        ("print(1); print('refused: clock', file=sys.stderr)", "FAILED: exit status 3 and lines"),
        ("print(1); sys.exit(3)", "FAILED: exit status 3 and lines"),
        (
            "print(1); print('refused: clock', file=sys.stderr); sys.exit(3)",
            "safe: failed with clock",
        ),
        (
            "print(1, 1, sep='\\n'); print('refused: clock', file=sys.stderr); sys.exit(3)",
            "REPEATS",
        ),
        (
            "print('refused: invalid_option', file=sys.stderr); sys.exit(3)",
            "FAILED: the generator cannot be built: invalid_option",
        ),
        ("os.kill(os.getpid(), 9)", "FAILED: exit status -9: it printed no error"),
    ],
)
def test_the_verdict_on_what_an_adapter_prints(
    adapter: Adapter, code: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run.main(["--adapter", adapter(code), "--only", "exhaustion"])
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("exhaustion ")
    assert says in line
    assert status == (1 if "REPEATS" in says else 2 if "FAILED" in says else 0)


def test_an_adapter_that_does_not_end(adapter: Adapter, capsys: pytest.CaptureFixture[str]) -> None:
    command = adapter("time.sleep(600)")
    assert run.main(["--adapter", command, "--only", "exhaustion", "--timeout", "0.5"]) == 2
    assert "it did not end in time" in capsys.readouterr().out
    assert run.main(["--adapter", command, "--only", "restart-1s", "--timeout", "0.5"]) == 2
    assert "it did not print `ready` in time" in capsys.readouterr().out


def test_a_restart_begins_when_the_previous_process_is_done(
    adapter: Adapter, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each process appends to a file after the previous one has done so."""
    code = """
folder = sys.argv[-2].removeprefix("state=")
print("ready", flush=True)
sys.stdin.read()
path = folder + "/turns"
turn = len(open(path).read()) if os.path.exists(path) else 0
time.sleep(0.05)
open(path, "a").write("x")
print(*range(100 * turn, 100 * turn + 100), sep="\\n")
"""
    arguments = ["--adapter", adapter(code), "--option", "state={folder}"]
    assert run.main([*arguments, "--only", "restart-10ms"]) == 0
    assert "800" in capsys.readouterr().out
    assert run.main(["--adapter", adapter("print(1)"), "--only", "restart-10ms"]) == 2
    assert "it did not print `ready` before its IDs" in capsys.readouterr().out


def test_arguments(adapter: Adapter, capsys: pytest.CaptureFixture[str]) -> None:
    code = """
if sys.argv[1:] != ["exhaustion", "n=50000", "parts=1", "clock=steady"]: sys.exit(repr(sys.argv))
print(*range(n), sep="\\n")
"""
    command = adapter(code)
    only = ["--only", "exhaustion"]
    assert run.main(["--adapter", command, *only, "--option", "clock=steady"]) == 0
    capsys.readouterr()
    for wrong, says in (
        ([], "give --adapter COMMAND or --language NAME"),
        (["--adapter", "./no-such-adapter"], "there is no command ./no-such-adapter"),
        (["--adapter", ""], "there is no command"),
        (["--adapter", command, "--option", "clock"], "it takes NAME=VALUE"),
        (["--adapter", command, "--only", "luck"], "invalid choice: 'luck'"),
    ):
        with pytest.raises(SystemExit) as refused:
            run.main(wrong)
        assert refused.value.code == 2
        assert says in capsys.readouterr().err


# docs/probes.md -----------------------------------------------------------------------------------

PAGE = DOCS.read_text(encoding="utf-8")


MY_IDS = """
import itertools, os
class Generator:
    def next_id(self, ids=itertools.count()): return os.getpid() << 32 | next(ids)
"""


def test_the_example_in_the_docs_runs(tmp_path: Path) -> None:
    """The first Python program in docs/probes.md, an adapter for a generator in any language."""
    (program,) = re.findall(r"```python\n(#!.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "my-adapter"
    path.write_text(program)
    (tmp_path / "my_ids.py").write_text(MY_IDS)
    outcomes = outcomes_of("--adapter", f"{sys.executable} {path}", "--scale", "0.01")
    ran = {name for name, outcome in outcomes.items() if outcome["verdict"] == "no repeats"}
    assert ran == {"threads", "worker-threads", "fork", "exhaustion", "per-call"} | {
        name for name in SITUATIONS if name.startswith("restart")
    }
    others = {outcome["verdict"] for name, outcome in outcomes.items() if name not in ran}
    assert others == {"unsupported"}


def test_the_short_example_in_the_docs_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The adapter for a generator that can be called from Python, and how it steps the clock."""
    program, step = re.findall(r"```python not-run\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "my_adapter.py"
    path.write_text(program)
    (tmp_path / "my_ids.py").write_text(MY_IDS)
    monkeypatch.setenv("PYTHONPATH", str(HERE / "adapters/python"))
    command = f"{sys.executable} {path}"
    for situation in ("threads", "fork", "per-call"):
        outcomes = outcomes_of("--adapter", command, "--scale", "0.01", "--only", situation)
        assert outcomes[situation]["verdict"] == "no repeats", outcomes[situation]["detail"]
    clock = tmp_path / "clock"
    clock.write_text("+0\n", encoding="utf-8")
    monkeypatch.setenv("FAKETIME_TIMESTAMP_FILE", str(clock))
    exec(step, {"os": os, "given": {"behind_ms": 5000}})
    assert clock.read_text() == "-5.0\n"


def test_the_docs_name_every_situation_and_status() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)`", PAGE, re.MULTILINE)
    assert [row for row in rows if row in SITUATIONS] == 2 * list(SITUATIONS)
    for status in (run.DONE, run.REFUSED, run.UNSUPPORTED):
        assert f"| {status} |" in PAGE


def test_help() -> None:
    help_text = io.StringIO()
    with redirect_stdout(help_text), pytest.raises(SystemExit):
        run.main(["--help"])
    assert all(name in help_text.getvalue() for name in SITUATIONS)
