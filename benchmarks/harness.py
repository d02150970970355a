"""Measures the rows of a program in rounds, and checks their IDs for repeats.

Without arguments, a program prints a line for each row, with its parts separated by tabs: its
table, its subject, and facts such as "version=1.2.3", which are keys of a result. A row whose
rounds produce several figures names a table for each, joined by "|". With the tables and the
subject as arguments, a program reads lines:

    round         it prints the figures of a round, or of several rounds
    ids N FILE    it takes N IDs as fast as possible; prints the size of a block and the number of
                  threads that took an equal share each, or 0 if the row makes no IDs; writes the
                  IDs to FILE in 64 bits each, in native order, with the wall clock in µs after each
                  block; and prints a line. A row under full load is also measured in this way

Each row has its own process, which waits for its turn, so no row affects how another is compiled.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import tempfile
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from report import CASES, ROOT, Record, check_record, complete, package, pinned

# A multiple of every block size, even if two threads share it.
CHECKED = 256_000
WARM_UP = 4
LOAD_MS = 110
LONGEST_ANSWER_S = 300


class NoAnswer(Exception):
    """A process that exited, or was silent for too long."""


def without_paths(text: str) -> str:
    """The text with this machine's folders removed, for a document."""
    for folder, name in ((str(ROOT) + "/", ""), (str(ROOT), "."), (str(Path.home()), "~")):
        text = text.replace(folder, name)
    return text


def problem_of(output: str) -> str:
    """The first line that names an error, or the last line that is not a command's usage."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    lines = [line for line in lines if not re.match(r"[\w:-]+ \[-", line)]
    named = [line for line in lines if re.match(r"(npm )?(error|fatal)\b", line, re.IGNORECASE)]
    return without_paths((named or lines[-1:] or [""])[0])[:300]


@dataclass
class Program:
    """A command, and additions to its environment."""

    command: Sequence[str | Path]
    environment: dict[str, str] = field(default_factory=dict)
    servers: subprocess.Popen[str] | None = None

    def start(self, *arguments: str, **pipes: Any) -> subprocess.Popen[str]:
        words = [*map(str, self.command), *arguments]
        return subprocess.Popen(words, text=True, env=os.environ | self.environment, **pipes)

    def end(self) -> None:
        if self.servers:
            try:
                self.servers.communicate(timeout=60)  # The servers exit when their input ends.
            except subprocess.TimeoutExpired:
                self.servers.kill()
                self.servers.communicate()


class Row:
    def __init__(self, program: Program, tables: str, subject: str, facts: dict[str, str]) -> None:
        self.program, self.facts, self.subject = program, facts, subject
        self.language = facts["language"]
        self.tables = tables.split("|")
        self.rounds: list[list[float]] = [[] for _ in self.tables]
        self.checked: Record = {}
        self.heard = b""
        self.why = ""  # why it has no figures
        named = {"language": self.language, "table": self.tables[0], "subject": subject}
        self.role: str = complete(named)["role"]

    def start(self) -> None:
        self.said = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.said}
        self.process = self.program.start("|".join(self.tables), self.subject, **pipes)

    def ask(self, line: str) -> str:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # The program's output says why.
        return self.line()

    def line(self) -> str:
        output = self.process.stdout
        assert output is not None
        while b"\n" not in self.heard:
            if not select.select([output], [], [], LONGEST_ANSWER_S)[0]:
                raise NoAnswer(f"no answer within {LONGEST_ANSWER_S} s")
            # Not buffered, since select would not see data in a buffer.
            if not (heard := os.read(output.fileno(), 1 << 16)):
                self.process.wait()
                self.said.seek(0)
                why = problem_of(self.said.read())
                raise NoAnswer(why or f"exit status {self.process.returncode}")
            self.heard += heard
        line, _, self.heard = self.heard.partition(b"\n")
        return line.decode()

    def take(self, count: int, *clocks: Callable[[], float]) -> tuple[Any, ...]:
        """IDs with clock readings, the block size, the threads, and how far the clocks moved."""
        with tempfile.NamedTemporaryFile() as file:
            starts = [clock() for clock in clocks]
            block, threads = map(int, self.ask(f"ids {count} {file.name}").split())
            spent = [clock() - start for clock, start in zip(clocks, starts, strict=True)]
            if block > 0:
                self.line()  # The IDs have been written.
            return array("Q", file.read()), block, threads, *spent

    def processor_time(self) -> float:
        """Reads the other process's CPU clock, by its clock ID on Linux."""
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def round(self) -> None:
        if self.tables[0].startswith("full load"):
            capacity = ids_per_ms(self.language, self.subject)
            # A multiple of the block size for each of two threads.
            count = round(LOAD_MS * capacity / 128) * 128
            clocks = (self.processor_time, time.perf_counter)
            words, block, threads, spent, seconds = self.take(count, *clocks)
            _, _, *ms = layout(self.language, self.subject) or (0, 0)
            tick = capacity * (ms[0] if ms else 1) / block
            percent = full_load(words, block, threads, tick) * 100 * block / capacity
            for rounds, figure in zip(self.rounds, (percent, spent / seconds), strict=False):
                rounds.append(figure)
            return
        # A program may answer with more than one round.
        for n, figure in enumerate(self.ask("round").split()):
            self.rounds[n % len(self.tables)].append(float(figure))

    def check(self) -> None:
        words, block, *_ = self.take(CHECKED)
        if block > 0 and self.role != "floor":
            self.checked = repeats(words, block, layout(self.language, self.subject))

    def end(self) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
            self.process.wait(10)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.said.close()

    def attempt(self, step: str) -> None:
        """Only a peer may fail; it is left out from then on."""
        try:
            if not self.why:
                getattr(self, step)()
        except (NoAnswer, ValueError) as why:
            self.why = str(why) or type(why).__name__

    def records(self) -> list[Record]:
        named = {"kind": "result", "subject": self.subject} | self.facts | self.checked
        records = [
            named | {"table": table, "rounds": rounds}
            for table, rounds in zip(self.tables, self.rounds, strict=True)
        ]
        if units := self.facts.get("unit"):
            for record, unit in zip(records, units.split("|"), strict=True):
                record["unit"] = unit
        return [check_record(record) for record in records]


def layout(language: str, subject: str) -> Sequence[int] | None:
    """How far the time in an ID is shifted, its epoch in Unix ms, and its tick in ms."""
    times = CASES[language].get("times", [])
    found = (time for pattern, *time in times if fnmatchcase(subject, pattern))
    return next(found, None) or None


def ids_per_ms(language: str, subject: str) -> float:
    found = (
        rate
        for pattern, rate in CASES[language].get("capacity", [])
        if fnmatchcase(subject, pattern)
    )
    return next(found, 4096)


def repeats(words: array[int], block: int, times: Sequence[int] | None) -> Record:
    """How many IDs repeated, and by how many ms, at most, an ID was ahead of the wall clock."""
    last, clocks = words[block - 1 :: block + 1], words[block :: block + 1]
    del words[block :: block + 1]
    found: Record = {"repeated": len(words) - len(set(words)), "ids": len(words)}
    if times:
        shift, epoch, *ticks = times
        tick = ticks[0] if ticks else 1
        made = [(id >> shift) * tick + epoch for id in last]
        leads = (ms - now // 1000 for ms, now in zip(made, clocks, strict=True))
        found["ahead_ms"] = max([0, *leads])
    return found


def full_load(words: array[int], block: int, threads: int, tick: float) -> float:
    """Blocks per ms, over whole ticks in which all threads were running, except the first few."""
    clocks = words[block :: block + 1]
    each = len(clocks) // threads
    firsts, lasts = clocks[::each], clocks[each - 1 :: each]
    ordered = sorted(clocks)
    begin = bisect_left(ordered, max(firsts)) + round(3 * tick)
    last = bisect_right(ordered, min(lasts)) - 1
    end = begin + round(int((last - begin) / tick) * tick)
    if not begin < end < len(ordered) or ordered[end] <= ordered[begin]:
        raise NoAnswer("its threads did not run at the same time for long enough")
    return (end - begin) * 1000 / (ordered[end] - ordered[begin])


def take_turns(rows: Sequence[Any], rounds: int, say: str) -> None:
    """Measures each row once per round, in an order that changes from round to round."""
    for n in range(rounds):
        print(f"{say}, round {n + 1} of {rounds}", file=sys.stderr, flush=True)
        first = n % len(rows)
        order = [*rows[first:], *rows[:first]]
        for row in reversed(order) if n % 2 else order:
            if len(row.rounds[0]) <= n:
                row.attempt("round")


def listed(language: str, program: Program) -> list[Row]:
    with program.start(stdout=subprocess.PIPE) as listing:
        assert listing.stdout is not None
        lines = listing.stdout.read().splitlines()
    if listing.returncode != 0:
        raise NoAnswer(f"exit status {listing.returncode}")
    rows = (line.split("\t") for line in lines)
    return [
        Row(
            program, table, subject, {"language": language} | dict(it.split("=", 1) for it in facts)
        )
        for table, subject, *facts in rows
    ]


def measure(language: str, programs: Sequence[Program], rounds: int) -> list[Record]:
    """Measures the rows of each table in turn; raises NoAnswer if one of ours fails."""
    tables: dict[str, list[Row]] = {}
    for row in (row for program in programs for row in listed(language, program)):
        tables.setdefault(row.tables[0], []).append(row)
    records: list[Record] = []
    failed: dict[tuple[str, str], str] = {}
    for table, rows in sorted(tables.items(), key=lambda pair: pair[0].startswith("full load")):
        for row in rows:
            row.attempt("start")
        take_turns(rows, CASES[language].get("warm_up", WARM_UP), f"{language}: {table}, warm-up")
        for row in rows:
            row.rounds = [[] for _ in row.tables]
        take_turns(rows, rounds, f"{language}: {table}")
        for row in rows:
            row.attempt("check")
            row.end()
        for row in rows:
            # A browser may be missing.
            if row.why and (row.role == "peer" or row.language != language):
                name = package(row.language, row.subject) or row.subject
                failed.setdefault((row.language, name), f"failed in the table “{table}”: {row.why}")
            elif row.why:
                raise NoAnswer(f"{row.subject}: {row.why}")
            else:
                records += row.records()
    return records + [missing(*who, why) for who, why in failed.items()]


def missing(language: str, subject: str, why: str) -> Record:
    version = pinned(language).get(subject, "")
    named = {"kind": "missing", "language": language, "subject": subject}
    return named | {"version": version, "why": why}
