"""Makes the documents and charts from the results, and prints tables on the terminal.

    python benchmarks/report.py [RESULTS FOLDER]

RESULTS has a JSON Lines file for each document, as described in benchmarks/README.md. The
documents, their charts and targets.md are written to FOLDER; a list of the documents is written to
FOLDER/README.md and FOLDER/../SUMMARY.md, if they exist. The defaults are benchmarks/results and
docs/benchmarks.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

Record = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
RESULTS, DOCUMENTS = ROOT / "benchmarks" / "results", ROOT / "docs" / "benchmarks"
CASES: dict[str, Record] = tomllib.loads((ROOT / "benchmarks" / "cases.toml").read_text("utf-8"))
MADE, DECODED, CALLED = "ns per ID", "ns per decoded ID", "ns per call"
CAPACITY, PROCESSORS, LATE = "% of capacity", "CPU seconds per second", "ms"
SERVED, SERVED_PER_CPU = "requests per second", "requests per CPU second"
HIGHER_IS_BETTER = (CAPACITY, SERVED, SERVED_PER_CPU)
# How a column's header names each unit.
UNITS = {
    **dict.fromkeys((MADE, DECODED, CALLED), "ns"),
    **{CAPACITY: "%", PROCESSORS: "cores", LATE: "ms", SERVED: "a second"},
    SERVED_PER_CPU: "a CPU second",
}
UNIT_OF: dict[str, str] = CASES.pop("units")
ROLES = ("ours", "peer", "floor")


# Reading -----------------------------------------------------------------------------------------


class WrongRecord(ValueError):
    """A line that does not match benchmarks/README.md."""


@dataclass
class Row:
    """A subject in a table."""

    language: str
    table: str
    subject: str
    version: str
    role: str
    unit: str
    median: float
    quartiles: tuple[float, float]
    repeated: int | None = None
    ids: int | None = None
    ahead_ms: float | None = None
    reads_clock: bool = True
    comparable: bool = True
    note: str = ""
    floor: list[str] = field(default_factory=list)
    targets: list[Record] = field(default_factory=list)

    @property
    def package(self) -> str:
        return package(self.language, self.subject) or self.subject

    @property
    def runs_ahead(self) -> bool:
        """More IDs than fit in the elapsed ticks must come from ticks ahead of the clock."""
        return self.unit == CAPACITY and self.median > 101

    @property
    def is_fair_peer(self) -> bool:
        """Whether ours is compared with this row: its IDs, if any, use a clock and never repeat."""
        fair = self.role == "peer" and self.comparable
        if self.unit in (DECODED, CALLED, SERVED, SERVED_PER_CPU):
            return fair
        return fair and self.reads_clock and self.repeated == 0 and not self.runs_ahead

    @property
    def remarks(self) -> list[str]:
        """Why ours is not compared with this row, and its note, unless the table says so."""
        ids = self.role == "peer" and self.unit not in (DECODED, CALLED)
        told = [part for part in self.note.split("; ") if part and "no batch" not in part]
        return [
            *["repeats IDs"] * bool(ids and self.repeated),
            *["does not read the clock"] * (ids and not self.reads_clock),
            *told,
        ]


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


KINDS: dict[str, Record] = {
    "run": {"date": "", "machine": {}, "tools": {}},
    "missing": dict.fromkeys(("language", "subject", "version", "why"), ""),
    "failed": {"language": "", "why": ""},
    "skipped": {"language": "", "why": ""},
    "result": {"language": "", "table": "", "subject": "", "rounds": []},
}
OPTIONAL: Record = {
    **{
        "version": "",
        "role": "",
        "unit": MADE,
        "note": "",
        "reads_clock": True,
        "comparable": True,
    },
    **{"floor": [], "targets": []},
}


@cache
def package(language: str, subject: str) -> str:
    """The longest of the language's names in cases.toml that is a prefix of the subject."""
    names = CASES.get(language, {}).get("rows", [])
    fitting = (name for name in names if re.match(re.escape(name) + r"(?![A-Za-z0-9/-])", subject))
    return max(fitting, key=len, default="")


@cache
def pinned(language: str) -> dict[str, str]:
    """The versions in the language's lock file, and our own."""
    file = CASES.get(language, {}).get("versions")
    text = (ROOT / "benchmarks" / file).read_text("utf-8") if file else ""
    # Cargo.lock, requirements.txt, package.json or composer.json, and go.mod.
    patterns = (
        r'name = "(.+)"\nversion = "(.+)"',
        r"^(\S+)==(\S+)",
        r'^ +"(.+)": "(\d.*)"',
        r"^\t?(?:require )?(?:github.com/)?(\S+) (v\d\S*)",
    )
    found = (match for each in patterns for match in re.findall(each, text, re.MULTILINE))
    ours = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"][
        "version"
    ]
    names = CASES.get(language, {}).get("rows", [])
    return dict(found) | {name: ours for name in names if name.lower().startswith("polyflake")}


def complete(record: Record) -> Record:
    """The record, plus what cases.toml says about the subject; the record takes precedence."""
    language, table, subject = record["language"], record["table"], record["subject"]
    cases, its_package = CASES.get(language, {}), package(language, subject)
    units = (unit for pattern, unit in UNIT_OF.items() if fnmatchcase(table, pattern))
    unit = record.get("unit") or next(units, MADE)

    def listed_in(key: str) -> list[Any]:
        """The second item of each list for this table; subjects may follow, to restrict it."""
        lists = [each for each in cases.get(key, []) if fnmatchcase(table, each[0])]
        return [given for _, given, *named in lists if not named or subject in named]

    floors = {name for _, its_floors, *_ in cases.get("floors", []) for name in its_floors}
    role = "peer" if its_package and subject not in floors else "floor"
    if role == "peer" and its_package.lower().startswith("polyflake"):
        role = "ours"
    role = record.get("role") or role
    others = [each for each in cases.get("incomparable", []) if fnmatchcase(table, each[0])]
    notes = cases.get("notes", {})
    told = [notes.get(subject)]
    if role == "peer":
        told = [notes.get(subject, notes.get(its_package)), notes.get(table)]
    facts: Record = {
        "role": role,
        "unit": unit,
        "note": "; ".join(filter(None, told)),
        "reads_clock": subject not in cases.get("no_clock", []),
        "comparable": not any(subject in each for each in others),
        "version": "" if role == "floor" else pinned(language).get(its_package, ""),
    }
    if role == "ours":
        facts["floor"] = next(iter(listed_in("floors")), [])
        facts["targets"] = [it for it in listed_in("targets") if it.get("unit", unit) == unit]
    return facts | record


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_record(record: Record) -> Record:
    """Returns the record that a program printed, or raises WrongRecord with the reason."""

    def need(condition: bool, problem: str) -> None:
        if not condition:
            raise WrongRecord(problem)

    need(isinstance(record, dict), "not a JSON object")
    kind = record.get("kind", "")
    need(kind in KINDS, f"kind is {kind!r}, not one of {', '.join(KINDS)}")
    given = OPTIONAL | record if kind == "result" else record
    for name, example in (KINDS[kind] | (OPTIONAL if kind == "result" else {})).items():
        a_type = type(example)
        need(isinstance(given.get(name), a_type), f"{name} is not a {a_type.__name__}")
    if kind != "result":
        return record
    need(given["role"] in ("", *ROLES), f"role is not one of {', '.join(ROLES)}")
    need(given["unit"] in UNITS, f"unit is not one of {', '.join(UNITS)}")
    for name in ("repeated", "ids", "ahead_ms"):
        value = given.get(name)
        need(value is None or is_number(value), f"{name} is neither a number nor null")
    rounds = given["rounds"]
    need(bool(rounds) and all(map(is_number, rounds)), "rounds has no number, or other items")
    return record


def summary(record: Record) -> Record:
    """The record that a program printed, with the median and quartiles in place of the rounds."""
    if "rounds" not in record:
        return record

    def short(value: float) -> float:
        return float(f"{value:.6g}")

    rounds = record["rounds"]
    low, _, high = statistics.quantiles(
        rounds * 2 if len(rounds) == 1 else rounds, n=4, method="inclusive"
    )
    kept = {
        name: value
        for name, value in record.items()
        if value not in (None, [], {}) and name != "rounds"
    }
    kept |= {"median": short(statistics.median(rounds)), "quartiles": [short(low), short(high)]}
    return kept


def results_of(records: Iterable[Record]) -> Results:
    results = Results()
    names = [each.name for each in fields(Row)]
    for record in records:
        if record["kind"] == "run":
            results.run = record
        elif record["kind"] == "result":
            whole = complete(summary(record))
            results.rows.append(Row(**{name: whole[name] for name in names if name in whole}))
        else:
            getattr(results, record["kind"]).append(record)
    return results


def read_results(file: Path) -> Results:
    with file.open(encoding="utf-8") as lines:
        return results_of(map(json.loads, lines))


# Comparing ---------------------------------------------------------------------------------------


def best_peer(rows: Sequence[Row]) -> Row | None:
    """The best peer that reads a real clock and repeats no IDs."""
    peers = [row for row in rows if row.is_fair_peer]
    if not peers:
        return None
    choose = max if peers[0].unit in HIGHER_IS_BETTER else min
    return choose(peers, key=lambda row: row.median)


def ratio(row: Row, other: Row) -> float | None:
    return row.median / other.median if other.median else None


def floor_of(row: Row, rows: Sequence[Row]) -> float | None:
    """The sum of the row's floors, or None if it has none or if one was not measured."""
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
    named: str = target.get("subject", "")
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
    """Three significant digits, or all before the decimal point; percentages have two after it."""
    if unit == CAPACITY:
        return f"{value:,.2f}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"


def figure(row: Row) -> str:
    return digits(row.median, row.unit)


def plain(text: str) -> str:
    """The text escaped for Markdown, even inside a table."""
    if "`" not in text:
        # An underscore inside a word has no meaning in Markdown.
        text = re.sub(r"[\\*<]|\b_|_\b", lambda sign: "\\" + sign[0], text)
    return text.replace("|", "\\|").replace("\n", " ")


COLUMNS = ["median", "quartiles", "ratio", "over floor", "repeats", "ahead ms"]


def columns(row: Row, rows: Sequence[Row]) -> list[str]:
    """The row's text for each of COLUMNS."""
    best = best_peer(rows)
    low, high = row.quartiles
    if row.role == "floor" or best is None:
        beside = ""
    else:
        value = ratio(row, best)
        # A call that queries a store may take ten thousand times as long as one that does not.
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
    ]


def without_empty_columns(header: Sequence[str], lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """The header and the lines, without the columns that are empty in every line."""
    kept = [n for n in range(len(header)) if any(line[n] for line in lines)]
    return [[line[n] for n in kept] for line in (header, *lines)]


def markdown_table(header: Sequence[str], *lines: Sequence[str]) -> list[str]:
    texts = ("", "package", "version", "note", "language", "table", "ours", "target", "measured")
    ruler = ["---" if name in texts else "---:" for name in header]
    return ["| " + " | ".join(line) + " |" for line in (header, ruler, *lines)] + [""]


def short_name(name: str) -> str:
    """The name without its trademarks, frequency and filler words."""
    name = re.sub(r"\(.*?\)|@.*|\b(CPU|Processor)\b", " ", name)
    return " ".join(name.split())


def file_name(name: str) -> str:
    """The name in lower case, with hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", short_name(name).lower()).strip("-")


def processor(results: Results) -> str:
    machine = results.run.get("machine", {})
    return machine.get("CPU") or machine.get("Architecture") or "unknown"


def own_name(results: Results) -> str:
    """What the document covers, if it is not about languages."""
    named = results.languages
    return CASES.get(named[0], {}).get("apart", "") if len(named) == 1 else ""


def stem(results: Results) -> str:
    """The file name of the document, and the name of its chart folder."""
    return "-".join(filter(None, [file_name(processor(results)), own_name(results).lower()]))


def title(results: Results) -> str:
    return ": ".join(filter(None, [plain(short_name(processor(results))), own_name(results)]))


INTRODUCTION = """\
Each figure is a median. Compare ratios within a column only: see [how to read the
figures](README.md#how-to-read-the-figures).
"""

MEASURED = """\
## How it was measured

All figures come from one run, in which the subjects took turns. `make bench` repeats the run on
your machine. The quartiles and repeats of every call are in
[{file}](https://github.com/polyflake/polyflake/blob/main/benchmarks/results/{file}); this is [how
the benchmarks measure](https://github.com/polyflake/polyflake/blob/main/benchmarks/README.md#how-it-measures).
"""


@dataclass
class Compared:
    """Our row, and the best peer, with which it is compared."""

    language: str
    ours: Row
    peer: Row


def compared(language: str, rows: Sequence[Row]) -> Compared | None:
    ours = next((row for row in rows if row.role == "ours"), None)
    peer = best_peer(rows)
    return Compared(language, ours, peer) if ours and peer else None


def one_id(results: Results) -> list[Compared]:
    """The time for one ID in each language, from the first table that has it."""
    found = []
    for language in results.languages:
        tables = results.tables(language).items()
        made = (compared(language, rows) for (_, unit), rows in tables if unit == MADE)
        if first := next(filter(None, made), None):
            found.append(first)
    return found


def answers(results: Results) -> list[tuple[str, Compared]]:
    """The opening sentences of a language's own document, and the rows they are about."""
    (language,) = results.languages
    tables = {
        name: rows
        for (name, unit), rows in results.tables(language).items()
        if unit != SERVED_PER_CPU
    }
    told = CASES[language]["answers"]
    pairs = [(text, compared(language, tables.get(table, []))) for table, text in told]
    return [(text, pair) for text, pair in pairs if pair]


def listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def within(language: str) -> str:
    return "in a browser" if language == "browser" else f"in {language}"


def answer(results: Results) -> str:
    """The result in a few sentences, or empty if nothing is compared."""
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
        other = f"the fastest in each language takes from {ends[0]} to {ends[-1]}"
    others = "Among the other generators that read the clock and repeat nothing"
    return f"One ID takes {listed(times)}. {others}, {other}."


OVERVIEW = "One ID in each language: Polyflake and the fastest peer"
OWN_OVERVIEW = "{}: Polyflake and the best peer"


def document(results: Results, charts: Iterable[str]) -> str:
    """The chart and a summary, the figures, the machine, and how the figures were measured."""
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
    facts = {"Date": results.run.get("date", "")}
    facts |= results.run.get("machine", {}) | results.run.get("tools", {})
    lines += [MEASURED.format(file=f"{stem(results)}.jsonl")]
    lines += markdown_table(["", ""], *([name, plain(value)] for name, value in facts.items()))
    return "\n".join(lines).rstrip() + "\n"


def headed(language: str) -> str:
    return language[0].upper() + language[1:]


def language_section(results: Results, language: str, charts: set[str]) -> list[str]:
    lines = [f"## {headed(language)}", ""]
    for record in (*results.failed, *results.skipped):
        if record["language"] == language:
            how = "The program failed" if record["kind"] == "failed" else "Not measured"
            lines += [f"{how}: {plain(record['why'])}", ""]
    if (chart := chart_name(results, language)) in charts:
        lines += [f"![Medians of the table below]({chart})", ""]
    tables = results.tables(language)
    if tables:
        header = [
            "package",
            "version",
            *(f"{plain(name)}, {UNITS[unit]}" for name, unit in tables),
            "note",
        ]
        lines += markdown_table(*without_empty_columns(header, packages(list(tables.values()))))
    for record in results.missing:
        if record["language"] == language:
            lines += [f"Not measured: {plain(name(record))}: {plain(record['why'])}", ""]
    return lines


def packages(tables: list[list[Row]]) -> list[list[str]]:
    """A line for each package, with its figure in each table, and one for our floors."""
    # Polyflake's first row uses the defaults. A peer's line shows its fastest call, if possible one
    # that is compared.
    found: dict[str, dict[int, Row]] = {}
    for at, rows in enumerate(tables):
        for row in sorted(rows, key=lambda row: row.role == "peer" and not row.is_fair_peer):
            if row.role != "floor":
                found.setdefault(row.package, {}).setdefault(at, row)
    lines = []
    for package, shown in sorted(
        found.items(), key=lambda pair: next(iter(pair[1].values())).role != "ours"
    ):
        rows = list(shown.values())
        cells = [cell(shown[at]) if at in shown else "" for at in range(len(tables))]
        remarks = dict.fromkeys(remark for row in rows for remark in row.remarks)
        ours = rows[0].role == "ours"
        named = f"**{plain(package)}**" if ours else plain(package)
        lines.append(
            [named, plain(rows[0].version), *cells, "" if ours else plain("; ".join(remarks))]
        )
    floors = [floor_of(rows[0], rows) for rows in tables]
    lines.append(["floor", "", *("" if floor is None else digits(floor) for floor in floors), ""])
    return lines if any(floors) else lines[:-1]


def cell(row: Row) -> str:
    return f"({figure(row)})" if row.role == "peer" and not row.is_fair_peer else figure(row)


def name(missing: Record) -> str:
    return f"{missing['subject']} {missing['version']}".strip()


TARGETS_PAGE = """\
# Benchmark targets

`benchmarks/cases.toml` sets targets for the figures, for people who work on Polyflake. This page
lists the targets that the last run on each processor missed. To choose a package, read the
[benchmarks](README.md).
"""


def targets_section(results: Results) -> str:
    judged = verdicts(results)
    lines = [f"## {title(results)}", ""]
    lines += [f"{sum(v.reached for v in judged)} of {len(judged)} reached.", ""]
    missed = [
        [v.row.language, *map(plain, (v.row.table, v.row.subject, v.target, v.seen))]
        for v in judged
        if not v.reached
    ]
    if missed:
        lines += markdown_table(["language", "table", "ours", "target", "measured"], *missed)
    return "\n".join(lines).rstrip() + "\n"


def terminal(results: Results) -> str:
    """The tables for a terminal, without notes."""
    lines = []
    for language in results.languages:
        for (table, unit), rows in results.tables(language).items():
            lines += ["", f"{language}: {table}, in {unit}"]
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

# Opaque, so that it is readable on any page, and dark if the reader's system is in dark mode.
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
    """Our rows, and the best peers that they are compared with."""
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
    # No language has both kinds of table.
    return drawn(language, heading(next(iter(panels.values()))[0]), panels)


def overview(results: Results) -> str | None:
    """An SVG of the comparisons in the answer: a panel for each language, all to the same scale."""
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
    """The panels one below the other, each to its own scale unless one is given."""
    y = MARGIN + 12
    parts = [f'<text x="{MARGIN}" y="{y}">{escape(name)}, {says}</text>']
    for title, rows in panels.items():
        y += 2 * MARGIN
        parts.append(f'<text class="title" x="{MARGIN}" y="{y}">{escape(title)}</text>')
        # One slow package must not make all the others look alike.
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
    """Writes a document and its charts, and returns the document's path."""
    written = folder / f"{stem(results)}.md"
    own = written.with_suffix("")
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    charts = []
    drawings = {language: chart(results, language) for language in results.languages}
    for name, svg in {"overview": overview(results), **drawings}.items():
        if svg:
            charts.append(chart_name(results, name))
            (folder / charts[-1]).write_text(svg, encoding="utf-8")
    written.write_text(document(results, charts), encoding="utf-8")
    return written


def write_all(data: Path, folder: Path) -> None:
    """Writes all documents and the targets, and lists them in the index and the book's contents."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = {}
    for results in map(read_results, data.glob("*.jsonl")):
        listed[title(results)] = (write_report(results, folder).name, targets_section(results))
    parts = [TARGETS_PAGE, *(section for _, (_, section) in sorted(listed.items()))]
    (folder / "targets.md").write_text("\n".join(parts), encoding="utf-8")
    for page, before, indent, place in (
        (folder / "README.md", "## Processors\n\n", "", ""),
        (folder.parent / "SUMMARY.md", "(benchmarks/README.md)\n", "  ", "benchmarks/"),
    ):
        if page.exists():
            items = [
                f"{indent}- [{name}]({place}{file})\n" for name, (file, _) in sorted(listed.items())
            ]
            start, _, rest = page.read_text(encoding="utf-8").partition(before)
            rest = re.sub(rf"\A(?:{indent}- .*\n)*", "", rest)
            page.write_text("".join([start, before, *items, rest]), encoding="utf-8")


def save(records: Sequence[Record], data: Path) -> Results:
    """Writes a run's results to the file of its document, and returns them."""
    results = results_of(records)
    data.mkdir(parents=True, exist_ok=True)
    lines = []
    for record in records:
        # The pinned version may change before the next run.
        pin = {"version": complete(record)["version"]} if record["kind"] == "result" else {}
        lines.append(json.dumps(summary(record) | pin, ensure_ascii=False) + "\n")
    (data / f"{stem(results)}.jsonl").write_text("".join(lines), encoding="utf-8")
    return results


if __name__ == "__main__":
    write_all(*(map(Path, sys.argv[1:]) if len(sys.argv) == 3 else (RESULTS, DOCUMENTS)))
