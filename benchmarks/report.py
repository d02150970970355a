"""From the suite's results, JSON Lines, makes the document, its charts, and tables for a terminal.

    python benchmarks/report.py RESULTS FOLDER      writes FOLDER/README.md and an SVG a language

benchmarks/README.md tells what the lines hold.
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

HIGHER_IS_BETTER = "% of capacity"
UNITS = ("ns an ID", HIGHER_IS_BETTER, "CPU seconds a second", "ms", "ns a call")
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
    targets: list[Record] = field(default_factory=list)

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
        """Whether ours is compared with it: it reads a clock, and no ID of it came twice."""
        # More than there is room for in a tick can only come of ticks that lie ahead.
        runs_ahead = self.unit == HIGHER_IS_BETTER and self.median > 101
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
        """The rows of each table, by its name and unit: ours, peers from the best on, floors."""
        tables: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            if row.language == language:
                tables.setdefault((row.table, row.unit), []).append(row)
        for (_, unit), rows in tables.items():
            sign = -1 if unit == HIGHER_IS_BETTER else 1
            rows.sort(
                key=lambda row: (ROLES.index(row.role), sign * row.median * (row.role == "peer"))
            )
        return tables


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_record(record: Any) -> Record:
    """Gives the record back, or raises WrongRecord with what is wrong."""

    def need(condition: bool, problem: str) -> None:
        if not condition:
            raise WrongRecord(problem)

    def need_texts(*names: str) -> None:
        for name in names:
            need(isinstance(record.get(name), str), f"{name} is no text")

    need(isinstance(record, dict), "no JSON object")
    kind = record.get("kind")
    if kind == "run":
        need_texts("date")
        for name in ("machine", "tools"):
            need(isinstance(record.get(name), dict), f"{name} is no object")
        return record
    if kind == "missing":
        need_texts("language", "subject", "version", "why")
        return record
    if kind in ("failed", "skipped"):
        need_texts("language", "why")
        return record
    need(
        kind == "result",
        f"kind is {kind!r}, which is none of result, missing, failed, skipped, run",
    )
    need_texts("language", "table", "subject", "version", "note")
    need(record.get("role") in ROLES, f"role is none of {', '.join(ROLES)}")
    need(record.get("unit") in UNITS, f"unit is none of {', '.join(UNITS)}")
    rounds = record.get("rounds")
    need(isinstance(rounds, list) and bool(rounds), "rounds is no list of numbers, or empty")
    need(all(map(is_number, rounds)), "rounds holds what is no number")
    for name in ("repeated", "ids", "ahead_ms"):
        need(
            record.get(name) is None or is_number(record[name]),
            f"{name} is neither number nor null",
        )
    need(isinstance(record.get("reads_clock"), bool), "reads_clock is neither true nor false")
    need(isinstance(record.get("comparable", True), bool), "comparable is neither true nor false")
    targets = record.get("targets", [])
    need(isinstance(targets, list), "targets is no list")
    need(not targets or record["role"] == "ours", "targets stand on what is not ours")
    for target in targets:
        need(isinstance(target, dict), "a target is no object")
        need(target.get("what") in TARGETS, f"a target's what is none of {', '.join(TARGETS)}")
        limits = [target[name] for name in ("at_most", "at_least") if name in target]
        need(len(limits) == 1 and is_number(limits[0]), "a target needs either at_most or at_least")
        for what, name in (("ratio to", "subject"), ("over floor", "floor")):
            if target["what"] == what:
                need(isinstance(target.get(name), str), f"the target {what!r} names no {name}")
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
    """The best of those that read a real clock and repeat nothing."""
    peers = [row for row in rows if row.is_fair_peer]
    if not peers:
        return None
    choose = max if peers[0].unit == HIGHER_IS_BETTER else min
    return choose(peers, key=lambda row: row.median)


def ratio(row: Row, other: Row) -> float | None:
    return row.median / other.median if other.median else None


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
        asked = f"{target['floor']} and {words} {row.unit.split()[0]}"
        floor = subjects.get(target["floor"])
        seen = row.median - floor.median if floor else None
        beside = f" over {figure(floor)}" if floor else "no such floor"
    else:
        named = target.get("subject")
        peer = subjects.get(named) if what == "ratio to" else best_peer(rows)
        asked = f"{words} of {named or 'the best peer'}"
        seen = ratio(row, peer) if peer else None
        beside = f" of {peer.subject}" if peer and not named else ""
        if peer is None:
            beside = f"no figure of {named}" if named else "no peer to compare"
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
    """Three digits that count, or all before the point; percents have two behind it."""
    if unit == HIGHER_IS_BETTER:
        return f"{value:,.2f}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"


def figure(row: Row) -> str:
    return digits(row.median, row.unit)


def plain(text: str) -> str:
    """A text that Markdown shows as it is, in a table too."""
    if "`" not in text:
        # An underscore within a word is none of Markdown's signs.
        text = re.sub(r"[\\*<]|\b_|_\b", lambda sign: "\\" + sign[0], text)
    return text.replace("|", "\\|").replace("\n", " ")


def columns(row: Row, best: Row | None) -> list[str]:
    """Median, quartiles, ratio, repeats, ahead of the clock."""
    low, high = row.quartiles
    if row.role == "floor" or best is None:
        beside = ""
    else:
        value = ratio(row, best)
        beside = "" if value is None else f"{value:.2f}"
        if beside and row.role == "peer" and not row.is_fair_peer:
            beside = f"({beside})"
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
        repeats,
        ahead,
    ]


def markdown_table(
    header: Sequence[str], lines: Iterable[Sequence[str]], numbers: set[int]
) -> list[str]:
    ruler = ["---:" if n in numbers else "---" for n in range(len(header))]
    return ["| " + " | ".join(line) + " |" for line in (header, ruler, *lines)] + [""]


def chart_name(language: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in language.lower()) + ".svg"


INTRODUCTION = """\
# Benchmarks

What an ID costs, ours beside other packages (*peers*), and full load: all of one run, in turns,
round by round. Figures of other runs or machines do not compare with these; ratios within a table
do.

- *Median* is that of the rounds; *quartiles* hold the middle half of them.
- *Ratio* is to the table's best peer that reads a real clock and repeats nothing, which has 1.00.
  In parentheses: peers that are not compared, since they repeat IDs, do not read the clock, make
  something else, or under full load run ahead of the clock.
- *Repeats*: how many IDs of a run at full speed had come before. *Ahead*: by how many ms at most
  the time in an ID was past the wall clock's.
- A *floor* is the cheapest thing that any such call must do, measured in the same rounds.
- One at a time, IDs are taken in bursts that the milliseconds have room for, so that nobody waits.
  Twelve sequence bits hold every generator that repeats nothing and does not run ahead to 4,096
  IDs a ms, 244 ns an ID: that is 100 % under full load.

`make bench` repeats all of it. How it measures, and what it needs:
[benchmarks](../../benchmarks/README.md).
"""


def document(results: Results, charts: Iterable[str]) -> str:
    charts = set(charts)
    lines = [INTRODUCTION]
    lines += ["## Machine", ""]
    facts = [("Date", results.run.get("date", ""))]
    facts += [*results.run.get("machine", {}).items(), *results.run.get("tools", {}).items()]
    lines += markdown_table(["", ""], [[name, plain(value)] for name, value in facts], set())

    lines += ["## Targets", ""]
    judged = verdicts(results)
    lines += [f"{sum(v.reached for v in judged)} of {len(judged)} reached.", ""]
    lines += markdown_table(
        ["language", "table", "ours", "target", "seen", "reached"],
        [
            [
                v.row.language,
                plain(v.row.table),
                plain(v.row.subject),
                plain(v.target),
                plain(v.seen),
                "yes" if v.reached else "**no**",
            ]
            for v in judged
        ],
        set(),
    )
    for language in results.languages:
        lines += language_section(results, language, charts)
    return "\n".join(lines).rstrip() + "\n"


def language_section(results: Results, language: str, charts: set[str]) -> list[str]:
    lines = [f"## {language}", ""]
    for record in (*results.failed, *results.skipped):
        if record["language"] == language:
            how = "The program failed" if record["kind"] == "failed" else "Not measured"
            lines += [f"{how}: {plain(record['why'])}", ""]
    if chart_name(language) in charts:
        lines += [f"![medians of the tables below]({chart_name(language)})", ""]
    header = ["subject", "version", "median", "quartiles", "ratio", "repeats", "ahead ms", "note"]
    for (table, unit), rows in results.tables(language).items():
        best = best_peer(rows)
        lines += [f"### {plain(table)}, in {unit}", ""]
        cells = []
        for row in rows:
            subject = plain(row.subject)
            if row.role == "ours":
                subject = f"**{subject}**"
            elif row.role == "floor":
                subject = f"floor: {subject}"
            cells.append([subject, plain(row.version), *columns(row, best), plain(remark(row))])
        lines += markdown_table(header, cells, {2, 3, 4, 5, 6})
    missing = [record for record in results.missing if record["language"] == language]
    if missing:
        lines += ["Missing peers:", ""]
        lines += [f"- {plain(name(record))}: {plain(record['why'])}" for record in missing]
        lines += [""]
    return lines


def name(missing: Record) -> str:
    return f"{missing['subject']} {missing['version']}".strip()


def remark(row: Row) -> str:
    told = [] if row.reads_clock or row.role == "floor" else ["does not read the clock"]
    return "; ".join(told + ([row.note] if row.note else []))


def terminal(results: Results) -> str:
    """The tables for a terminal, without notes."""
    lines = []
    for language in results.languages:
        for (table, unit), rows in results.tables(language).items():
            best = best_peer(rows)
            lines += ["", f"{language}: {table}, in {unit}"]
            header = ["", "median", "quartiles", "ratio", "repeats", "ahead ms"]
            marks = {"ours": "* ", "peer": "  ", "floor": "  floor: "}
            cells = [header] + [
                [marks[row.role] + row.subject, *columns(row, best)] for row in rows
            ]
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

CHARTED = "ns an ID"
MOST_PEERS = 6
WIDTH, MARGIN, LINE, BAR = 400, 12, 30, 9

# Opaque, so that it is readable on any page, and dark where the reader's system is.
STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.page { fill: #ffffff }
.bar { fill: #8c959f }
.title { font-size: 13px; font-weight: bold }
.ours { font-weight: bold; fill: #0969da }
.value { text-anchor: end }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.page { fill: #0d1117 }
.bar { fill: #6e7681 }
.ours { fill: #58a6ff }
}"""


def charted(rows: Sequence[Row]) -> list[Row]:
    """Ours and the best of the peers that ours is compared with."""
    ours = [row for row in rows if row.role == "ours"]
    peers = [row for row in rows if row.is_fair_peer]
    return ours + peers[:MOST_PEERS] if ours and peers else []


def chart(results: Results, language: str) -> str | None:
    """An SVG of medians as bars, narrow enough for a phone: a panel a table."""
    panels = {
        table: rows
        for (table, unit), all_rows in results.tables(language).items()
        if unit == CHARTED and (rows := charted(all_rows))
    }
    if not panels:
        return None
    y = MARGIN + 12
    parts = [f'<text x="{MARGIN}" y="{y}">{escape(language)}, {CHARTED}: less is better</text>']
    for table, rows in panels.items():
        y += 2 * MARGIN
        parts.append(f'<text class="title" x="{MARGIN}" y="{y}">{escape(table)}</text>')
        # One slow package must not make all others look alike.
        compared = [row.median for row in rows if row.role == "ours" or row is best_peer(rows)]
        end = min(max(row.median for row in rows), 3 * max(compared))
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
                f'height="{BAR}"/>'
            )
        y += MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}">',
            f"<title>{escape(language)}: medians of one run</title>",
            f"<style>\n{STYLE}\n</style>",
            '<rect class="page" width="100%" height="100%" rx="6"/>',
            *parts,
            "</svg>\n",
        ]
    )


def write_report(results: Results, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    charts = []
    for language in results.languages:
        if svg := chart(results, language):
            charts.append(chart_name(language))
            (folder / charts[-1]).write_text(svg, encoding="utf-8")
    (folder / "README.md").write_text(document(results, charts), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description="The benchmarks' document and charts, from their results."
    )
    parser.add_argument("results", type=Path, help="JSON Lines, as benchmarks/run.py collects them")
    parser.add_argument("folder", type=Path, help="where README.md and the charts go")
    given = parser.parse_args()
    try:
        with given.results.open(encoding="utf-8") as lines:
            results = read_results(lines)
    except (OSError, WrongRecord) as problem:
        print(f"{given.results}: {problem}", file=sys.stderr)
        return 1
    write_report(results, given.folder)
    print(terminal(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
