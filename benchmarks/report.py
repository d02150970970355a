"""Makes a processor's document and charts from the results, and prints tables on the terminal.

    python benchmarks/report.py RESULTS FOLDER      writes FOLDER/<cpu>.md and FOLDER/<cpu>/*.svg

RESULTS are JSON Lines, which benchmarks/README.md describes. The documents of other processors stay
as they are. FOLDER/targets.md gets a section that says which targets the run reached.
FOLDER/README.md and FOLDER/../SUMMARY.md, if they exist, get a list of all documents.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

Record = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
CAPACITY = "% of capacity"
SERVED, SERVED_PER_CPU = "requests per second", "requests per CPU second"
HIGHER_IS_BETTER = (CAPACITY, SERVED, SERVED_PER_CPU)
MADE, DECODED = "ns per ID", "ns per decoded ID"
CALLED = "ns per call"
UNITS = (MADE, DECODED, CALLED, *HIGHER_IS_BETTER, "CPU seconds per second", "ms")
PERCENTILES = ("p50", "p99", "p99.9")
ROLES = ("ours", "peer", "floor")
TARGETS = ("ratio", "ratio to", "value", "over floor")


# Reading -----------------------------------------------------------------------------------------


class WrongRecord(ValueError):
    """A line that is not what benchmarks/README.md describes."""


@dataclass
class Row:
    """A subject in a table."""

    language: str
    table: str
    subject: str
    version: str
    role: str
    unit: str
    rounds: list[float]
    repeated: int | None = None
    ids: int | None = None
    ahead_ms: float | None = None
    reads_clock: bool = True
    comparable: bool = True
    note: str = ""
    floor: list[str] = field(default_factory=list)
    targets: list[Record] = field(default_factory=list)
    percentiles_us: dict[str, list[float]] = field(default_factory=dict)

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def quartiles(self) -> tuple[float, float]:
        if len(self.rounds) == 1:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.rounds, n=4, method="inclusive")
        return low, high

    @property
    def is_fair_peer(self) -> bool:
        """Whether ours is compared with it: one that makes IDs reads a clock and repeats none."""
        if self.unit in (DECODED, CALLED, SERVED, SERVED_PER_CPU):
            return self.role == "peer" and self.comparable
        # More IDs than fit in the ticks that pass must come from ticks ahead of the clock.
        runs_ahead = self.unit == CAPACITY and self.median > 101
        fair = self.comparable and self.reads_clock and self.repeated == 0 and not runs_ahead
        return self.role == "peer" and fair


@dataclass
class Results:
    run: Record = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    missing: list[Record] = field(default_factory=list)
    failed: list[Record] = field(default_factory=list)
    skipped: list[Record] = field(default_factory=list)

    @property
    def languages(self) -> list[str]:
        named = [row.language for row in self.rows]
        named += [record["language"] for record in (*self.missing, *self.failed, *self.skipped)]
        return list(dict.fromkeys(named))

    def tables(self, language: str) -> dict[tuple[str, str], list[Row]]:
        """The rows of each table, by name and unit: ours, then peers, best first, then floors."""
        tables: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            if row.language == language:
                tables.setdefault((row.table, row.unit), []).append(row)
        for (_, unit), rows in tables.items():
            sign = -1 if unit in HIGHER_IS_BETTER else 1
            rows.sort(
                key=lambda row: (ROLES.index(row.role), sign * row.median * (row.role == "peer"))
            )
        return tables


KINDS: dict[str, dict[str, type]] = {
    "run": {"date": str, "machine": dict, "tools": dict},
    "missing": {"language": str, "subject": str, "version": str, "why": str},
    "failed": {"language": str, "why": str},
    "skipped": {"language": str, "why": str},
    "result": {
        **dict.fromkeys(("language", "table", "subject", "version", "role", "unit", "note"), str),
        **dict.fromkeys(("rounds", "floor", "targets"), list),
        "percentiles_us": dict,
        **dict.fromkeys(("reads_clock", "comparable"), bool),
    },
}
DEFAULTS: Record = {"comparable": True, "floor": [], "targets": [], "percentiles_us": {}}


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_record(record: Any) -> Record:
    """Returns the record, or raises WrongRecord with the reason."""

    def need(condition: bool, problem: str) -> None:
        if not condition:
            raise WrongRecord(problem)

    need(isinstance(record, dict), "not a JSON object")
    kind = record.get("kind")
    need(kind in KINDS, f"kind is {kind!r}, not one of {', '.join(KINDS)}")
    for name, its_type in KINDS[kind].items():
        value = record.get(name, DEFAULTS.get(name))
        need(isinstance(value, its_type), f"{name} is not a {its_type.__name__}")
    if kind != "result":
        return record
    for name, values in (("role", ROLES), ("unit", UNITS)):
        need(record[name] in values, f"{name} is not one of {', '.join(values)}")
    for name in ("repeated", "ids", "ahead_ms"):
        value = record.get(name)
        need(value is None or is_number(value), f"{name} is neither a number nor null")
    rounds = record["rounds"]
    need(bool(rounds) and all(map(is_number, rounds)), "rounds has no number, or other items")
    for name, values in record.get("percentiles_us", {}).items():
        need(name in PERCENTILES, f"percentiles_us has {name!r}, not {', '.join(PERCENTILES)}")
        right = isinstance(values, list) and bool(values) and all(map(is_number, values))
        need(right, f"percentiles_us: {name} has no number, or other items")
    floor, targets = record.get("floor", []), record.get("targets", [])
    need(all(isinstance(name, str) for name in floor), "floor has an item that is not a str")
    need(not floor + targets or record["role"] == "ours", "only ours has a floor and targets")
    for target in targets:
        need(isinstance(target, dict), "a target is not an object")
        need(target.get("what") in TARGETS, f"a target's what is not one of {', '.join(TARGETS)}")
        limits = [target[name] for name in ("at_most", "at_least") if name in target]
        need(len(limits) == 1 and is_number(limits[0]), "a target needs either at_most or at_least")
        if target["what"] == "ratio to":
            need(isinstance(target.get("subject"), str), "the target 'ratio to' has no subject")
        if target["what"] == "over floor":
            need(bool(floor), "the target 'over floor' has no floor")
    return record


def read_results(lines: Iterable[str]) -> Results:
    results = Results()
    for number, line in enumerate(lines, 1):
        try:
            record = check_record(json.loads(line))
        except ValueError as problem:
            raise WrongRecord(f"line {number}: {problem}") from None
        if record["kind"] == "run":
            results.run = record
        elif record["kind"] == "result":
            names = Row.__dataclass_fields__
            results.rows.append(Row(**{name: record[name] for name in names if name in record}))
        else:
            getattr(results, record["kind"]).append(record)
    return results


# Comparing ---------------------------------------------------------------------------------------


def best_peer(rows: Sequence[Row]) -> Row | None:
    """The best of the peers that read a real clock and repeat nothing."""
    peers = [row for row in rows if row.is_fair_peer]
    if not peers:
        return None
    choose = max if peers[0].unit in HIGHER_IS_BETTER else min
    return choose(peers, key=lambda row: row.median)


def ratio(row: Row, other: Row) -> float | None:
    return row.median / other.median if other.median else None


def floor_of(row: Row, rows: Sequence[Row]) -> float | None:
    """What its floors take together; None if it has none, or if one of them was not measured."""
    medians = {other.subject: other.median for other in rows if other.role == "floor"}
    if not row.floor or not all(name in medians for name in row.floor):
        return None
    return sum(medians[name] for name in row.floor)


@dataclass
class Verdict:
    row: Row
    target: str
    seen: str
    reached: bool


def judge(row: Row, target: Record, rows: Sequence[Row]) -> Verdict:
    what = target["what"]
    at_most = "at_most" in target
    limit = target["at_most" if at_most else "at_least"]
    words = f"at {'most' if at_most else 'least'} {limit:g}"
    subjects = {other.subject: other for other in rows}
    seen: float | None
    unit = "" if "ratio" in what else row.unit
    if what == "value":
        asked, seen, beside = f"{words} {row.unit}", row.median, ""
    elif what == "over floor":
        asked = f"{words} {row.unit.split()[0]} over {' and '.join(row.floor)}"
        floor = floor_of(row, rows)
        seen = None if floor is None else row.median - floor
        beside = "the floor is missing" if floor is None else f" over {digits(floor)}"
    else:
        named = target.get("subject")
        peer = subjects.get(named) if what == "ratio to" else best_peer(rows)
        asked = f"{words} of {named or 'the best peer'}"
        seen = ratio(row, peer) if peer else None
        beside = f" of {peer.subject}" if peer and not named else ""
        if peer is None:
            beside = f"{named} is missing" if named else "there is no peer"
    if seen is None:
        return Verdict(row, asked, beside, False)
    reached = seen <= limit if at_most else seen >= limit
    return Verdict(row, asked, f"{digits(seen, unit)}{beside}", reached)


def verdicts(results: Results) -> list[Verdict]:
    return [
        judge(row, target, rows)
        for language in results.languages
        for rows in results.tables(language).values()
        for row in rows
        for target in row.targets
    ]


# Writing -----------------------------------------------------------------------------------------


def digits(value: float, unit: str = "") -> str:
    """Three significant digits, or all before the point; percentages have two after it."""
    if unit == CAPACITY:
        return f"{value:,.2f}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"


def figure(row: Row) -> str:
    return digits(row.median, row.unit)


def plain(text: str) -> str:
    """The text escaped for Markdown, also in a table."""
    if "`" not in text:
        # An underscore inside a word has no meaning in Markdown.
        text = re.sub(r"[\\*<]|\b_|_\b", lambda sign: "\\" + sign[0], text)
    return text.replace("|", "\\|").replace("\n", " ")


COLUMNS = ["median", "quartiles", "ratio", "over floor", "repeats", "ahead ms"]
COLUMNS += [f"{name} µs" for name in PERCENTILES]


def columns(row: Row, rows: Sequence[Row]) -> list[str]:
    """The row's text for each of COLUMNS."""
    best = best_peer(rows)
    low, high = row.quartiles
    if row.role == "floor" or best is None:
        beside = ""
    else:
        value = ratio(row, best)
        # What asks a store may take ten thousand times as long as what does not.
        beside = "" if value is None else f"{value:.2f}" if value < 100 else digits(value)
        if beside and row.role == "peer" and not row.is_fair_peer:
            beside = f"({beside})"
    floor = floor_of(row, rows)
    repeats = "" if row.repeated is None or row.ids is None else f"{row.repeated:,} of {row.ids:,}"
    ahead = (
        ""
        if row.ahead_ms is None
        else digits(row.ahead_ms)
        if row.ahead_ms % 1
        else f"{row.ahead_ms:,.0f}"
    )
    return [
        figure(row),
        f"{digits(low, row.unit)} to {digits(high, row.unit)}",
        beside,
        "" if floor is None else digits(row.median - floor),
        repeats,
        ahead,
        *(
            digits(statistics.median(values)) if (values := row.percentiles_us.get(name)) else ""
            for name in PERCENTILES
        ),
    ]


def floors_named(rows: Sequence[Row]) -> str:
    """Which floor "over floor" is over, and of which rows if they have different ones."""
    over: dict[str, list[str]] = {}
    for row in rows:
        if floor_of(row, rows) is not None:
            over.setdefault(" and ".join(row.floor), []).append(row.subject)
    named = [
        floor + (f" ({', '.join(subjects)})" if len(over) > 1 else "")
        for floor, subjects in over.items()
    ]
    return f"Over floor: over {'; '.join(named)}." if named else ""


def without_empty_columns(header: Sequence[str], lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """The header and the lines, without the columns in which no line has anything."""
    kept = [n for n in range(len(header)) if any(line[n] for line in lines)]
    return [[line[n] for n in kept] for line in (header, *lines)]


def markdown_table(header: Sequence[str], *lines: Sequence[str]) -> list[str]:
    ruler = ["---:" if name in (*COLUMNS, "instructions") else "---" for name in header]
    return ["| " + " | ".join(line) + " |" for line in (header, ruler, *lines)] + [""]


def short_name(name: str) -> str:
    """Without trademarks, a frequency and words that say nothing."""
    name = re.sub(r"\(.*?\)|@.*|\b(CPU|Processor)\b", " ", name)
    return " ".join(name.split())


def file_name(name: str) -> str:
    """In lower case, with hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", short_name(name).lower()).strip("-")


def processor(results: Results) -> str:
    machine = results.run.get("machine", {})
    return machine.get("CPU") or machine.get("Architecture") or "unknown"


# Each gets its own document, with this in the title: JMH takes minutes, and the others belong to no
# language.
OWN_DOCUMENTS = {"Java": "Java", "Counters": "counters", "Service": "service"}


def own_name(results: Results) -> str:
    """What its document is of, if not of languages."""
    named = results.languages
    return OWN_DOCUMENTS.get(named[0], "") if len(named) == 1 else ""


def stem(results: Results) -> str:
    """Of the document and the folder of its charts."""
    return "-".join(filter(None, [file_name(processor(results)), own_name(results).lower()]))


def title(results: Results) -> str:
    return ": ".join(filter(None, [plain(short_name(processor(results))), own_name(results)]))


def instruction_counts() -> list[list[str]]:
    """The core's paths and their instructions per call."""
    lines = (
        (ROOT / "core" / "benches" / "instructions.txt").read_text(encoding="utf-8").splitlines()
    )
    return [line.rsplit(maxsplit=1) for line in lines if line and not line.startswith("#")]


INTRODUCTION = """\
See [how to read the figures](README.md#how-to-read-the-figures), [how they were
measured](#how-it-was-measured) and [other processors](README.md#processors).
"""

MEASURED = """\
## How it was measured

All figures come from one run, in which the subjects took turns. `make bench` repeats the run on
your machine; [how it
measures](https://github.com/polyflake/polyflake/blob/main/benchmarks/README.md#how-it-measures).
"""

INSTRUCTIONS = """\
## Instructions

Instructions per call of the core's paths, of `core/benches/instructions.txt`: they do not depend on
the processor.
"""


# What a table of it needs to be understood, and no other document does.
REMARKS = {
    "Java": """\
JMH gives each subject a JVM for five rounds at a time. With two threads, the figure is half the
mean time of a call. This is too low if a thread had to wait for a processor, so compare such
figures only with each other. The ratio of a decoder that returns less than ours is in parentheses.
""",
    "Service": """\
Server and client share the processors of this machine, so a faster client, or a network, would give
other figures: compare what is in one table. redis-server keeps nothing on a disk here. The time of
a request is what redis-benchmark and wrk measure, and in a pipeline that of all its commands; the
columns have the medians of the rounds.
""",
}


# The first sentences of such a document: which table they are about, and the text.
ANSWERS = {
    "Java": [
        (
            "one ID",
            "An ID takes {ours} ns in Java. {peer}, the fastest peer that reads the clock, takes "
            "{theirs} ns.",
        ),
        (
            "two threads, one generator",
            "With two threads, an ID takes {ours} ns, and {peer} takes {theirs} ns.",
        ),
        (
            "two virtual threads, one generator",
            "With two virtual threads, an ID takes {ours} ns, and {peer} takes {theirs} ns.",
        ),
    ],
    "Counters": [
        (
            "one number, one thread",
            "A number from a counter takes {ours} ns; from {peer}, the fastest other, {theirs} ns.",
        ),
        (
            "batch of 1,024",
            "In batches of 1,024, it takes {ours} ns, and from {peer} {theirs} ns{how}.",
        ),
    ],
    "Service": [
        (
            "RESP, 50 connections",
            "On 50 connections, the service answers {ours} requests a second, and {peer} {theirs}.",
        ),
        (
            "HTTP, one ID, 50 connections",
            "Over HTTP it answers {ours} a second, and the same server with {peer} {theirs}.",
        ),
    ],
}


@dataclass
class Compared:
    """Ours, and the best that it is compared with."""

    language: str
    ours: Row
    peer: Row


def compared(language: str, rows: Sequence[Row]) -> Compared | None:
    ours = next((row for row in rows if row.role == "ours"), None)
    peer = best_peer(rows)
    return Compared(language, ours, peer) if ours and peer else None


def one_id(results: Results) -> list[Compared]:
    """What one ID takes in each language: of the first table that says so."""
    found = []
    for language in results.languages:
        tables = results.tables(language).items()
        made = (compared(language, rows) for (_, unit), rows in tables if unit == MADE)
        if first := next(filter(None, made), None):
            found.append(first)
    return found


def answers(results: Results) -> list[tuple[str, Compared]]:
    """The first sentences of such a document, and what they are about."""
    (language,) = results.languages
    tables = {name: rows for (name, _), rows in results.tables(language).items()}
    pairs = [(text, compared(language, tables.get(table, []))) for table, text in ANSWERS[language]]
    return [(text, pair) for text, pair in pairs if pair]


def listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def within(language: str) -> str:
    return "in a browser" if language == "browser" else f"in {language}"


def answer(results: Results) -> str:
    """The result in a few sentences; empty if nothing is compared."""
    if own_name(results):
        sentences = [
            text.format(
                ours=figure(pair.ours),
                peer=pair.peer.subject,
                theirs=figure(pair.peer),
                how=" in single calls" if "no batch call" in pair.peer.note else "",
            )
            for text, pair in answers(results)
        ]
        return " ".join(sentences)
    pairs = one_id(results)
    if not pairs:
        return ""
    times = [f"{figure(pair.ours)} ns {within(pair.language)}" for pair in pairs]
    longer = sorted((pair.peer.median / pair.ours.median, within(pair.language)) for pair in pairs)
    if len(pairs) == 1:
        other = f"the fastest takes {digits(longer[0][0])} times as long"
    else:
        ends = [f"{digits(ratio)} times as long {where}" for ratio, where in longer]
        other = f"the fastest of the same language takes from {ends[0]} to {ends[-1]}"
    others = "Of the other generators that read the clock and repeat nothing"
    return f"One ID takes {listed(times)}. {others}, {other}."


OVERVIEW = "One ID in each language: Polyflake and the fastest other that is compared with it"
OWN_OVERVIEW = "{}: Polyflake and the best other that is compared with it"


def document(results: Results, charts: Iterable[str]) -> str:
    """The chart and what it says; the figures; the machine, and how it was measured."""
    charts = set(charts)
    lines = [f"# Benchmarks on {title(results)}", ""]
    if (first := chart_name(results, "overview")) in charts:
        says = OWN_OVERVIEW.format(results.languages[0]) if own_name(results) else OVERVIEW
        lines += [f"![{says}]({first})", ""]
    if said := answer(results):
        lines += [plain(said), ""]
    lines += [INTRODUCTION]
    for language in results.languages:
        lines += language_section(results, language, charts)
    if not own_name(results):
        counts = markdown_table(["path", "instructions"], *instruction_counts())
        lines += [INSTRUCTIONS, *counts]
    facts = {"Date": results.run.get("date", "")}
    facts |= results.run.get("machine", {}) | results.run.get("tools", {})
    lines += [MEASURED]
    lines += markdown_table(["", ""], *([name, plain(value)] for name, value in facts.items()))
    return "\n".join(lines).rstrip() + "\n"


TARGETS_PAGE = """\
# Benchmark targets

Each benchmark's program sets targets for its figures, for those who work on Polyflake. This page
shows which of them the last run on each processor reached. To choose a package, read the
[benchmarks](README.md).
"""


def targets_section(results: Results) -> str:
    judged = verdicts(results)
    lines = [f"## {title(results)}", ""]
    lines += [f"{sum(v.reached for v in judged)} of {len(judged)} reached.", ""]
    lines += markdown_table(
        ["language", "table", "ours", "target", "seen", "reached"],
        *(
            [
                v.row.language,
                *map(plain, (v.row.table, v.row.subject, v.target, v.seen)),
                "yes" if v.reached else "**no**",
            ]
            for v in judged
        ),
    )
    return "\n".join(lines).rstrip() + "\n"


def write_targets(results: Results, folder: Path) -> None:
    """Replaces or adds the section of the results' document."""
    page = folder / "targets.md"
    text = page.read_text(encoding="utf-8") if page.exists() else TARGETS_PAGE
    _, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    by_title = {section.partition("\n")[0]: section.rstrip() + "\n" for section in sections}
    own = targets_section(results)
    by_title[own.partition("\n")[0]] = own
    parts = [TARGETS_PAGE, *(by_title[key] for key in sorted(by_title))]
    page.write_text("\n".join(parts), encoding="utf-8")


def headed(language: str) -> str:
    return language[0].upper() + language[1:]


def language_section(results: Results, language: str, charts: set[str]) -> list[str]:
    lines = [f"## {headed(language)}", ""]
    if language in REMARKS:
        lines += [REMARKS[language]]
    for record in (*results.failed, *results.skipped):
        if record["language"] == language:
            how = "The program failed" if record["kind"] == "failed" else "Not measured"
            lines += [f"{how}: {plain(record['why'])}", ""]
    if (chart := chart_name(results, language)) in charts:
        lines += [f"![Medians of the tables below]({chart})", ""]
    for (table, unit), rows in results.tables(language).items():
        lines += [f"### {plain(table)}, in {unit}", ""]
        if named := floors_named(rows):
            lines += [plain(named), ""]
        marks = {"ours": "**{}**", "peer": "{}", "floor": "floor: {}"}
        cells = [
            [
                marks[row.role].format(plain(row.subject)),
                plain(row.version),
                *columns(row, rows),
                plain(remark(row)),
            ]
            for row in rows
        ]
        header = ["subject", "version", *COLUMNS, "note"]
        lines += markdown_table(*without_empty_columns(header, cells))
    missing = [record for record in results.missing if record["language"] == language]
    if missing:
        lines += ["Missing peers:", ""]
        lines += [f"- {plain(name(record))}: {plain(record['why'])}" for record in missing]
        lines += [""]
    return lines


def name(missing: Record) -> str:
    return f"{missing['subject']} {missing['version']}".strip()


def remark(row: Row) -> str:
    told = []
    if row.unit != CALLED and not row.reads_clock and row.role != "floor":
        told = ["does not read the clock"]
    return "; ".join(told + ([row.note] if row.note else []))


def terminal(results: Results) -> str:
    """The tables for a terminal, without notes."""
    lines = []
    for language in results.languages:
        for (table, unit), rows in results.tables(language).items():
            lines += ["", f"{language}: {table}, in {unit}. {floors_named(rows)}".rstrip()]
            marks = {"ours": "* ", "peer": "  ", "floor": "  floor: "}
            cells = [[marks[row.role] + row.subject, *columns(row, rows)] for row in rows]
            cells = without_empty_columns(["", *COLUMNS], cells)
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            for first, *others in cells:
                padded = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
                lines.append("  ".join([first.ljust(widths[0]), *padded]).rstrip())
    lines.append("")
    for record in results.missing:
        lines.append(f"missing: {record['language']}, {name(record)}: {record['why']}")
    for record in (*results.failed, *results.skipped):
        lines.append(f"{record['kind']}: {record['language']}: {record['why']}")
    judged = verdicts(results)
    for v in judged:
        if not v.reached:
            where = f"{v.row.language}, {v.row.table}, {v.row.subject}"
            lines.append(f"not reached: {where}: {v.target}; seen: {v.seen}")
    lines.append(f"{sum(v.reached for v in judged)} of {len(judged)} targets reached")
    return "\n".join(lines)


# Charts ------------------------------------------------------------------------------------------

CHARTED = (MADE, DECODED, SERVED)
MOST_PEERS = 6
WIDTH, MARGIN, LINE, BAR = 400, 12, 30, 9

# Opaque, to be readable on any page, and dark if the reader's system is.
STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1a2230 }
.page { fill: #ffffff }
.bar { fill: #9aa5b4 }
.title { font-size: 13px; font-weight: bold }
.ours { font-weight: bold; fill: #1d5fbf }
.value { text-anchor: end }
@media (prefers-color-scheme: dark) {
text { fill: #e7ecf3 }
.page { fill: #161d26 }
.bar { fill: #66758a }
.ours { fill: #8ab8ff }
}"""


def charted(rows: Sequence[Row]) -> list[Row]:
    """Ours, and the best peers that ours is compared with."""
    ours = [row for row in rows if row.role == "ours"]
    peers = [row for row in rows if row.is_fair_peer]
    return ours + peers[:MOST_PEERS] if ours and peers else []


def heading(row: Row) -> str:
    return f"{SERVED}: more is better" if row.unit == SERVED else f"{MADE}: less is better"


def chart(results: Results, language: str) -> str | None:
    """An SVG with medians as bars, a panel for each table, narrow enough for a phone."""
    panels = {
        table: rows
        for (table, unit), all_rows in results.tables(language).items()
        if unit in CHARTED and (rows := charted(all_rows))
    }
    if not panels:
        return None
    # No language has both kinds.
    return drawn(language, heading(next(iter(panels.values()))[0]), panels)


def overview(results: Results) -> str | None:
    """An SVG of what the answer compares: a panel for each language, all to one scale."""
    if own_name(results):
        pairs = [pair for _, pair in answers(results)]
        if not pairs:
            return None
        panels = {pair.ours.table: [pair.ours, pair.peer] for pair in pairs}
        return drawn(pairs[0].language, heading(pairs[0].ours), panels)
    pairs = one_id(results)
    if len(pairs) < 2:
        return None
    panels = {headed(pair.language): [pair.ours, pair.peer] for pair in pairs}
    end = max(row.median for rows in panels.values() for row in rows)
    return drawn("One ID", heading(pairs[0].ours), panels, end)


def drawn(name: str, says: str, panels: dict[str, list[Row]], scale: float | None = None) -> str:
    """The panels below each other, each to its own scale unless one is given."""
    y = MARGIN + 12
    parts = [f'<text x="{MARGIN}" y="{y}">{escape(name)}, {says}</text>']
    for title, rows in panels.items():
        y += 2 * MARGIN
        parts.append(f'<text class="title" x="{MARGIN}" y="{y}">{escape(title)}</text>')
        # One slow package must not make all others look alike.
        compared = [row.median for row in rows if row.role == "ours" or row is best_peer(rows)]
        end = scale or min(max(row.median for row in rows), 3 * max(compared))
        for row in rows:
            y += LINE
            kind = " ours" if row.role == "ours" else ""
            length = (WIDTH - 2 * MARGIN) * min(row.median / end, 1)
            value = figure(row) + (" (cut)" if row.median > end else "")
            right = WIDTH - MARGIN
            parts.append(
                f'<text class="name{kind}" x="{MARGIN}" y="{y - 8}">{escape(row.subject)}</text>'
                f'<text class="value{kind}" x="{right}" y="{y - 8}">{value}</text>'
                f'<rect class="bar{kind}" x="{MARGIN}" y="{y - 4}" width="{length:.1f}" '
                f'height="{BAR}" rx="2"/>'
            )
        y += MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}">',
            f"<title>{escape(name)}: medians of one run</title>",
            f"<style>\n{STYLE}\n</style>",
            '<rect class="page" width="100%" height="100%" rx="10"/>',
            *parts,
            "</svg>\n",
        ]
    )


def chart_name(results: Results, language: str) -> str:
    return f"{stem(results)}/{file_name(language)}.svg"


def write_report(results: Results, folder: Path) -> Path:
    """Writes the processor's document and charts, and lists it; returns the document."""
    written = folder / f"{stem(results)}.md"
    own = written.with_suffix("")
    own.mkdir(parents=True, exist_ok=True)
    for old in own.glob("*.svg"):
        old.unlink()
    charts = []
    drawings = {language: chart(results, language) for language in results.languages}
    for name, svg in {"overview": overview(results), **drawings}.items():
        if svg:
            charts.append(chart_name(results, name))
            (folder / charts[-1]).write_text(svg, encoding="utf-8")
    written.write_text(document(results, charts), encoding="utf-8")
    write_targets(results, folder)
    list_documents(folder)
    return written


def list_documents(folder: Path) -> None:
    """Lists all documents in the index and in the book's table of contents, if they exist."""
    documents = {}
    for path in folder.glob("*.md"):
        if path.name not in ("README.md", "targets.md"):
            first = path.read_text(encoding="utf-8").partition("\n")[0]
            documents[first.removeprefix("# Benchmarks on ")] = path.name
    for page, before, indent, place in (
        (folder / "README.md", "## Processors\n\n", "", ""),
        (folder.parent / "SUMMARY.md", "(benchmarks/README.md)\n", "  ", "benchmarks/"),
    ):
        if page.exists():
            items = [
                f"{indent}- [{title}]({place}{file})\n" for title, file in sorted(documents.items())
            ]
            start, _, rest = page.read_text(encoding="utf-8").partition(before)
            rest = re.sub(rf"\A(?:{indent}- .*\n)*", "", rest)
            page.write_text("".join([start, before, *items, rest]), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Makes a processor's document and charts from the results."
    )
    parser.add_argument("results", type=Path, help="JSON Lines, as collected by benchmarks/run.py")
    parser.add_argument("folder", type=Path, help="where the document and the charts go")
    given = parser.parse_args()
    try:
        with given.results.open(encoding="utf-8") as lines:
            results = read_results(lines)
    except (OSError, WrongRecord) as problem:
        print(f"{given.results}: {problem}", file=sys.stderr)
        return 1
    print(terminal(results))
    print(f"document: {write_report(results, given.folder)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
