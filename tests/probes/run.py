#!/usr/bin/env python3
"""The duplicate probes: situations in which ID generators repeat IDs, for any generator.

    python3 tests/probes/run.py --adapter ./my-adapter
    python3 tests/probes/run.py --language python --only fork --json

An adapter is a command that takes a situation, makes it happen, and prints the IDs; docs/probes.md
explains how to write one. --language uses an adapter from this repository; those for rust, c, go
and java must first be built with tests/probes/build.sh. The exit status is 0 if no ID was repeated,
1 if one was, and 2 if an adapter failed or an argument is wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "probes"

LANGUAGES = {
    "rust": [str(BUILT / "rust")],
    "python": [sys.executable, str(HERE / "adapters/python/polyflake_adapter.py")],
    "node": ["node", str(HERE / "adapters/node/polyflake_adapter.mjs")],
    "c": [str(BUILT / "c")],
    "go": [str(BUILT / "go")],
    "java": [str(BUILT / "java")],
    "php": ["php", str(HERE / "adapters/php/polyflake_adapter.php")],
}

# The exit statuses of an adapter.
DONE, REFUSED, UNSUPPORTED = 0, 3, 4
# Errors unrelated to repeats, because the generator was not even built.
MISUSED = {"invalid_option", "invalid_layout", "unknown_layout", "invalid_node"}

FAKETIME = (
    "/usr/lib/*/faketime/libfaketime.so.1",
    "/usr/lib*/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)


# The number of processes in a fleet that run at the same time.
AT_ONCE = 4
# Fewer IDs would prove little.
FEWEST = 100
# More IDs than fit in two ticks: a generator may cache a clock reading for a millisecond, during
# which the clock may step.
FEWEST_STEPPED = 10_000


class Situation(NamedTuple):
    """A row in the table: what the adapter must do, for a total of `parts` times `n` IDs."""

    name: str
    asked: str
    parts: int
    n: int
    arguments: tuple[str, ...] = ()
    fewest: int = FEWEST

    def scaled(self, scale: float) -> int:
        return max(self.fewest, round(self.n * scale))


SITUATIONS = (
    Situation("threads", "threads", 4, 100_000),
    Situation("worker-threads", "worker-threads", 4, 60_000),
    Situation("fork", "fork", 3, 20_000),
    Situation("fork-new", "fork-new", 3, 20_000),
    Situation("prefork", "prefork", 4, 20_000),
    Situation("prefork-one-node", "prefork-one-node", 4, 20_000),
    Situation("rollback-5ms", "rollback", 2, 20_000, ("behind_ms=5",)),
    Situation("rollback-5s", "rollback", 2, 20_000, ("behind_ms=5000",), FEWEST_STEPPED),
    Situation("exhaustion", "exhaustion", 1, 50_000),
    Situation("restart", "restart", 2, 1_000_000, ("tick_ms=1",)),
    Situation("restart-1ms", "restart", 8, 100, ("tick_ms=1",)),
    Situation("restart-10ms", "restart", 8, 100, ("tick_ms=10",)),
    Situation("restart-1s", "restart", 3, 100, ("tick_ms=1000",)),
    Situation("per-call", "per-call", 1, 50_000),
    Situation("fleet", "fleet", 12, 20_000),
)
NAMES = [situation.name for situation in SITUATIONS]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of one situation."""

    situation: str
    verdict: str  # "no repeats", "REPEATS", "refused", "unsupported" or "FAILED"
    ids: int = 0
    repeats: int = 0
    # How often the generator failed, by error name.
    refused: dict[str, int] = dataclasses.field(default_factory=dict)
    detail: str = ""

    def says(self) -> str:
        if self.verdict == "refused":
            return "safe: failed with " + ", ".join(self.refused)
        if self.detail:
            return f"{self.verdict}: {self.detail}"
        return self.verdict


class Ended(NamedTuple):
    """An adapter process that has exited."""

    status: int
    lines: list[bytes]
    errors: list[str]


class Failure(Exception):
    """An adapter that did not follow docs/probes.md."""


# The adapter's processes --------------------------------------------------------------------------


class Process:
    """A running adapter, with its output going to files in its folder."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: dict[str, str],
        stdin: int = subprocess.DEVNULL,
        keeps: Sequence[int] = (),
    ) -> None:
        self.output, self.errors = folder / "output", folder / "errors"
        with self.output.open("ab") as output, self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=output,
                stderr=errors,
                env=environment,
                pass_fds=keeps,
                # A process group, so that the processes it starts can be killed with it.
                start_new_session=True,
            )

    def is_ready(self) -> bool:
        """Whether it has printed `ready`, or has exited."""
        return self.process.poll() is not None or self.output.stat().st_size >= len("ready\n")

    def end(self, deadline: float) -> Ended:
        try:
            status = self.process.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Failure("it did not end in time (--timeout)") from None
        return self.ended(status)

    def ended(self, status: int) -> Ended:
        errors = self.errors.read_text(encoding="utf-8", errors="replace").splitlines()
        return Ended(status, self.output.read_bytes().split(), errors)

    def kill(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.process.wait()


def run_once(
    command: Sequence[str], folder: Path, environment: dict[str, str], limit: float
) -> list[Ended]:
    process = Process(command, folder, environment)
    try:
        return [process.end(time.monotonic() + limit)]
    finally:
        process.kill()


def run_in_turn(
    command: Sequence[str], folder: Path, environment: dict[str, str], limit: float, turns: int
) -> list[Ended]:
    """Starts all processes, each of which takes its IDs as soon as the previous one is done.

    Each process's standard input is a pipe, whose other end is held only by the previous process.
    When that process closes its end or exits, it is done. This program is not involved, so the next
    process continues within a millisecond.
    """
    deadline = time.monotonic() + limit
    processes: list[Process] = []
    first_gate: BinaryIO | None = None
    try:
        stdin, gate = os.pipe()
        first_gate = os.fdopen(gate, "wb")
        for turn in range(turns):
            own = folder / str(turn)
            own.mkdir()
            next_stdin, gate = os.pipe()
            processes.append(Process([*command, f"gate={gate}"], own, environment, stdin, [gate]))
            os.close(stdin)
            os.close(gate)
            stdin = next_stdin
        os.close(stdin)
        while not all(process.is_ready() for process in processes):
            if time.monotonic() > deadline:
                raise Failure("it did not print `ready` in time (--timeout)")
            time.sleep(0.01)
        first_gate.close()
        ended = [process.end(deadline) for process in processes]
    finally:
        if first_gate is not None:
            first_gate.close()
        for process in processes:
            process.kill()
    for one in ended:
        if one.lines[:1] == [b"ready"]:
            del one.lines[0]
        elif one.status in (DONE, REFUSED):
            raise Failure("it did not print `ready` before its IDs")
    return ended


def run_fleet(
    command: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    limit: float,
    parts: int,
    n: int,
) -> list[Ended]:
    """Keeps `AT_ONCE` processes running until `parts` of them have been started.

    Each is killed (kill -9) as soon as it has printed its IDs, and a new one takes its place.
    """
    deadline = time.monotonic() + limit
    running: list[Process] = []
    ended: list[Ended] = []
    stdin, held = os.pipe()  # each reads from it, and so blocks until it is killed
    try:
        while len(ended) < parts:
            while len(running) < min(AT_ONCE, parts - len(ended)):
                own = folder / str(len(ended) + len(running))
                own.mkdir()
                running.append(Process(command, own, environment, stdin))
            for process in list(running):
                if process.output.read_bytes().count(b"\n") >= n:
                    process.kill()
                    ended.append(process.ended(DONE))
                    running.remove(process)
                elif process.process.poll() is not None:
                    ended.append(process.end(deadline))
                    running.remove(process)
            if time.monotonic() > deadline:
                raise Failure("it did not print its IDs in time (--timeout)")
            time.sleep(0.005)
    finally:
        for process in running:
            process.kill()
        os.close(stdin)
        os.close(held)
    return ended


def faketime() -> str | None:
    """The library that steps a program's clock, if it is installed."""
    given = os.environ.get("PROBE_FAKETIME")
    found = [str(path) for pattern in FAKETIME for path in Path("/").glob(pattern.lstrip("/"))]
    return given or next(iter(found), None)


def environment_for(situation: Situation, folder: Path) -> dict[str, str]:
    environment = dict(os.environ)
    library = faketime()
    if situation.asked == "rollback" and library is not None:
        clock = folder / "clock"
        clock.write_text("+0\n")
        environment |= {
            "LD_PRELOAD": library,
            "FAKETIME_TIMESTAMP_FILE": str(clock),
            "FAKETIME_NO_CACHE": "1",
            # The monotonic clock continues, as when a machine's clock is set.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
    return environment


# What they printed --------------------------------------------------------------------------------


def numbers(lines: Sequence[bytes]) -> Iterator[int]:
    for line in lines:
        try:
            yield int(line)
        except ValueError:
            text = line.decode(errors="replace")
            raise Failure(f"it printed {text!r}, which is not a decimal ID") from None


def judge(situation: Situation, n: int, ended: Sequence[Ended]) -> Outcome:
    errors = [line for one in ended for line in one.errors if line.strip()]
    last = errors[-1] if errors else "it printed no error"
    statuses = {one.status for one in ended}
    if UNSUPPORTED in statuses:
        return Outcome(situation.name, "unsupported", detail=last)
    if bad := statuses - {DONE, REFUSED}:
        raise Failure(f"exit status {bad.pop()}: {last}")
    ids = [id_ for one in ended for id_ in numbers(one.lines)]
    repeats = len(ids) - len(set(ids))
    mark = "refused: "
    refused = dict(Counter(line[len(mark) :] for line in errors if line.startswith(mark)))
    if (REFUSED in statuses) != bool(refused):
        raise Failure(f"exit status {REFUSED} and lines `{mark}NAME` on stderr go together: {last}")
    if misused := MISUSED.intersection(refused):
        raise Failure(f"the generator cannot be built: {misused.pop()}")
    if repeats:
        return Outcome(situation.name, "REPEATS", len(ids), repeats, refused)
    if refused:
        return Outcome(situation.name, "refused", len(ids), 0, refused)
    if len(ids) != situation.parts * n:
        raise Failure(
            f"it printed {len(ids):,} IDs of {situation.parts * n:,} and reported no error"
        )
    return Outcome(situation.name, "no repeats", len(ids))


def probe(
    command: Sequence[str], situation: Situation, scale: float, options: Sequence[str], limit: float
) -> Outcome:
    n = situation.scaled(scale)
    with tempfile.TemporaryDirectory(prefix="probe-") as name:
        folder = Path(name)
        asked = [situation.asked, f"n={n}", f"parts={situation.parts}", *situation.arguments]
        given = [option.replace("{folder}", name) for option in options]
        environment = environment_for(situation, folder)
        try:
            whole = [*command, *asked, *given]
            if situation.asked == "restart":
                ended = run_in_turn(whole, folder, environment, limit, situation.parts)
            elif situation.asked == "fleet":
                ended = run_fleet(whole, folder, environment, limit, situation.parts, n)
            else:
                ended = run_once(whole, folder, environment, limit)
            return judge(situation, n, ended)
        except Failure as failure:
            return Outcome(situation.name, "FAILED", detail=str(failure))
        except OSError as error:
            return Outcome(situation.name, "FAILED", detail=f"{command[0]}: {error.strerror}")


# The command line ---------------------------------------------------------------------------------


def row(cells: Sequence[str]) -> str:
    return f"{cells[0]:<18}{cells[1]:>11}{cells[2]:>11}  {cells[3]}"


def print_table(name: str, outcomes: Iterator[Outcome]) -> list[Outcome]:
    print(f"\n{name}\n{row(['situation', 'IDs', 'repeats', 'outcome'])}", flush=True)
    shown = []
    for outcome in outcomes:
        counted = outcome.verdict not in ("unsupported", "FAILED")
        counts = [f"{outcome.ids:,}", f"{outcome.repeats:,}"] if counted else ["-", "-"]
        print(row([outcome.situation, *counts, outcome.says()]), flush=True)
        shown.append(outcome)
    return shown


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--adapter",
        action="append",
        default=[],
        metavar="COMMAND",
        help="may be given several times",
    )
    parser.add_argument(
        "--language", action="append", default=[], choices=LANGUAGES, help="likewise"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=NAMES,
        metavar="SITUATION",
        help=", ".join(NAMES),
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the generator, passed on to the adapter; {folder} in it is replaced by a"
        " new folder for each situation",
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="multiplies the number of IDs in each situation (default: 1)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="for each situation (default: 120)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the outcomes as JSON instead of a table"
    )
    given = parser.parse_args(argv)
    if not given.adapter and not given.language:
        parser.error("give --adapter COMMAND or --language NAME")
    for option in given.option:
        if "=" not in option:
            parser.error(f"--option {option}: it takes NAME=VALUE")
    given.commands = {name: LANGUAGES[name] for name in given.language}
    given.commands |= {adapter: shlex.split(adapter) for adapter in given.adapter}
    for name, command in given.commands.items():
        if not command or shutil.which(command[0]) is None:
            parser.error(f"{name}: there is no command {command[0] if command else ''}")
    return given


def main(argv: Sequence[str] | None = None) -> int:
    given = arguments(argv)
    chosen = [one for one in SITUATIONS if not given.only or one.name in given.only]
    outcomes: dict[str, list[Outcome]] = {}
    for name, command in given.commands.items():
        running = (probe(command, one, given.scale, given.option, given.timeout) for one in chosen)
        outcomes[name] = list(running) if given.json else print_table(name, running)
    if given.json:
        found = {name: [dataclasses.asdict(one) for one in ones] for name, ones in outcomes.items()}
        print(json.dumps(found, indent=2))
    verdicts = {outcome.verdict for ones in outcomes.values() for outcome in ones}
    if "REPEATS" in verdicts:
        return 1
    return 2 if "FAILED" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
