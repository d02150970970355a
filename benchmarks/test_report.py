"""Tests report.py on invented results, and how the service's benchmark parses client output."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import harness
import pytest
import report
import run


def result(subject: str, median: float, role: str = "peer", **more: Any) -> dict[str, Any]:
    record = {
        "kind": "result",
        "language": "Rust",
        "table": "one thread",
        "subject": subject,
        "version": "1.0.0",
        "role": role,
        "unit": "ns per ID",
        "rounds": [median - 1, median, median, median, median + 2],
        "repeated": None if role == "floor" else 0,
        "ids": None if role == "floor" else 200_000,
        "ahead_ms": None if role == "floor" else 0,
        "reads_clock": role != "floor",
        "note": "",
    }
    return record | more


TARGETS = [
    {"what": "ratio", "at_most": 0.65},
    {"what": "ratio to", "subject": "slow", "at_most": 0.1},
    {"what": "value", "at_most": 20},
    {"what": "over floor", "at_most": 3},
]
DECODE = {
    "table": "decode",
    "unit": report.DECODED,
    **dict.fromkeys(("repeated", "ids", "ahead_ms")),
}
RUN = {
    "kind": "run",
    "date": "2026-01-02",
    "machine": {"CPU": "Intel(R) Xeon(R) CPU @ 2.60GHz"},
    "tools": {"Rust": "rust|c"},
}
RECORDS = [
    RUN,
    result("clock", 10, "floor"),
    result("swap", 2, "floor"),
    result("slow", 80, note="`lock` | waits"),
    result("best", 40),
    result("repeats", 5, repeated=163_804, ids=350_000),
    result("ticker", 4, reads_clock=False, ahead_ms=12),
    result("longer IDs", 3, comparable=False),
    result("unknown", 2, repeated=None, ids=None),
    result("polyflake", 24, "ours", targets=TARGETS, floor=["clock", "swap"]),
    result("polyflake local", 22, "ours", floor=["clock"]),
    result("polyflake other", 23, "ours", floor=["gone"]),
    result("polyflake", 99.6, "ours", table="full load", unit="% of capacity"),
    result("best", 90, table="full load", unit="% of capacity"),
    result("slow", 50, table="full load", unit="% of capacity"),
    result("polyflake", 9, "ours", **DECODE),
    result("best", 6, **DECODE),
    result("ahead", 748, table="full load", unit="% of capacity", ahead_ms=209),
    {
        "kind": "missing",
        "language": "Rust",
        "subject": "gone",
        "version": "0.1.0",
        "why": "no such crate",
    },
    {"kind": "failed", "language": "C", "why": "exit status 1"},
    {"kind": "skipped", "language": "PHP", "why": "there is no PHP here"},
]


def read(*records: dict[str, Any]) -> report.Results:
    return report.results_of(map(report.check_record, records))


@pytest.fixture
def results() -> report.Results:
    return read(*RECORDS)


def rows(results: report.Results, table: str = "one thread") -> list[report.Row]:
    return next(rows for (name, _), rows in results.tables("Rust").items() if name == table)


def test_the_best_peer_reads_a_clock_and_repeats_nothing(results: report.Results) -> None:
    best = report.best_peer(rows(results))
    assert best is not None
    assert best.subject == "best"


def test_if_more_is_better_the_best_has_the_most(results: report.Results) -> None:
    best = report.best_peer(rows(results, "full load"))
    assert best is not None
    assert (best.subject, best.median) == ("best", 90)


def test_a_table_without_such_peers_has_no_best() -> None:
    assert report.best_peer(read(result("repeats", 5, repeated=1)).rows) is None


def test_targets(results: report.Results) -> None:
    verdicts = report.verdicts(results)
    assert [(v.reached, v.seen) for v in verdicts] == [
        (True, "0.60 of best"),
        (False, "0.30"),
        (False, "24.0"),
        (False, "12.0 over 12.0"),
    ]
    assert [v.target for v in verdicts] == [
        "at most 0.65 of the best peer",
        "at most 0.1 of slow",
        "at most 20 ns per ID",
        "at most 3 ns over clock and swap",
    ]


@pytest.mark.parametrize(("seen", "reached"), [(99.5, True), (99.49, False)])
def test_a_target_may_be_a_minimum(seen: float, reached: bool) -> None:
    targets = [{"what": "value", "at_least": 99.5}]
    ours = result("polyflake", seen, "ours", unit="% of capacity", targets=targets)
    assert [v.reached for v in report.verdicts(read(ours))] == [reached]


@pytest.mark.parametrize("what", ["ratio", "ratio to"])
def test_a_target_whose_peer_is_missing_is_not_reached(what: str) -> None:
    target = {"what": what, "subject": "gone", "at_most": 1}
    (verdict,) = report.verdicts(read(result("polyflake", 1, "ours", targets=[target])))
    assert not verdict.reached
    assert verdict.seen in ("gone is missing", "there is no peer")


def test_a_target_whose_floor_is_missing_is_not_reached() -> None:
    target = {"what": "over floor", "at_most": 1}
    ours = result("polyflake", 1, "ours", targets=[target], floor=["clock", "swap"])
    (verdict,) = report.verdicts(read(ours, result("clock", 1, "floor")))
    assert (verdict.reached, verdict.seen) == (False, "the floor is missing")


def test_the_documents_are_what_the_results_say(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    for page in (report.DOCUMENTS / "README.md", report.DOCUMENTS.parent / "SUMMARY.md"):
        copy = folder / "README.md" if page.name == "README.md" else tmp_path / "SUMMARY.md"
        copy.write_text(re.sub(r"(?m)^ *- \[(AMD|Intel).*\n", "", page.read_text()))
    report.write_all(report.RESULTS, folder)

    def files(where: Path) -> dict[str, str]:
        paths = [path for path in where.rglob("*") if path.is_file()]
        return {str(path.relative_to(where)): path.read_text() for path in paths}

    assert files(folder) == files(report.DOCUMENTS)
    assert (tmp_path / "SUMMARY.md").read_text() == (
        report.DOCUMENTS.parent / "SUMMARY.md"
    ).read_text()


def test_every_subject_belongs_to_a_package() -> None:
    every = [
        row for file in report.RESULTS.glob("*.jsonl") for row in report.read_results(file).rows
    ]
    names = {row.language: report.CASES[row.language]["rows"] for row in every}
    assert [r for r in every if r.role != "floor" and r.package not in names[r.language]] == []


CASES_OF_TEST = {
    "rows": ["polyflake", "snow", "snow-x"],
    "floors": [["one*", ["polyflake_version"]], ["batch", ["copy"], "polyflake fill"]],
    "targets": [
        ["*", {"what": "value", "at_most": 1}],
        ["batch", {"what": "ratio", "at_most": 2}, "no"],
    ],
    "notes": {
        "snow": "waits",
        "snow retry()": "retries",
        "batch": "in a loop",
        "copy": "of 8 bytes",
    },
    "no_clock": ["snow-x next"],
    "incomparable": [["one*", "snow-x next"]],
}


@pytest.mark.parametrize(
    ("table", "subject", "facts"),
    [
        ("one ID", "polyflake next", ("ours", "", True, True, ["polyflake_version"], 1)),
        ("batch", "polyflake fill", ("ours", "", True, True, ["copy"], 1)),
        ("batch", "polyflake list", ("ours", "", True, True, [], 1)),
        ("one ID", "polyflake_version", ("floor", "", True, True, None, None)),
        ("batch", "copy", ("floor", "of 8 bytes", True, True, None, None)),
        ("one ID", "snow next", ("peer", "waits", True, True, None, None)),
        ("batch", "snow retry()", ("peer", "retries; in a loop", True, True, None, None)),
        ("one ID", "snow-x next", ("peer", "", False, False, None, None)),
        ("batch", "snow-x next", ("peer", "in a loop", False, True, None, None)),
        ("one ID", "snowball", ("floor", "", True, True, None, None)),
    ],
)
def test_a_line_is_completed_from_the_cases(
    monkeypatch: pytest.MonkeyPatch, table: str, subject: str, facts: tuple[Any, ...]
) -> None:
    monkeypatch.setitem(report.CASES, "Test", CASES_OF_TEST)
    line = {"kind": "result", "language": "Test", "table": table, "subject": subject}
    whole = report.complete(line)
    targets = whole["targets"] and len(whole["targets"]) if "targets" in whole else None
    names = ("role", "note", "reads_clock", "comparable")
    assert (*(whole[name] for name in names), whole.get("floor"), targets) == facts
    assert report.complete(line | {"role": "peer", "unit": "ms"})["role"] == "peer"


@pytest.mark.parametrize(
    ("table", "unit"),
    [
        ("one ID", report.MADE),
        ("decode of 1,000", report.DECODED),
        ("full load, one thread", report.CAPACITY),
    ],
)
def test_the_unit_of_a_table(table: str, unit: str) -> None:
    line = {"kind": "result", "language": "Rust", "table": table, "subject": "polyflake next_id"}
    assert report.complete(line)["unit"] == unit


@pytest.mark.parametrize(
    ("language", "name", "version"),
    [
        ("Rust", "ferroid", r"\d+\.\d+"),
        ("Python", "oneflake", r"\d+\.\d+"),
        ("Node", "@sapphire/snowflake", r"\d+\.\d+"),
        ("Go", "bwmarrin/snowflake", r"v\d+\.\d+"),
        ("Go", "sony/sonyflake/v2", r"v2\.\d+"),
        ("PHP", "godruoyi/php-snowflake", r"\d+\.\d+"),
        ("C", "polyflake", r"\d+\.\d+"),
    ],
)
def test_versions_come_from_lock_files(language: str, name: str, version: str) -> None:
    assert re.match(version, report.pinned(language)[name])


def table_of(results: report.Results, language: str = "Rust") -> list[str]:
    section = report.language_section(results, language, set())
    return [line for line in section if line.startswith("|")]


def test_the_document(results: report.Results) -> None:
    lines = report.document(results, ["intel-xeon/rust.svg"]).splitlines()
    assert lines[0] == "# Benchmarks on Intel Xeon"
    # Ours first, then peers, best first, then our floors.
    assert table_of(results) == [
        "| package | version | one thread, ns | full load, % | decode, ns | note |",
        "| --- | --- | ---: | ---: | ---: | --- |",
        "| **polyflake** | 1.0.0 | 24.0 | 99.60 | 9.00 |  |",
        "| best | 1.0.0 | 40.0 | 90.00 | 6.00 |  |",
        r"| slow | 1.0.0 | 80.0 | 50.00 |  | `lock` \| waits |",
        "| unknown | 1.0.0 | (2.00) |  |  |  |",
        "| longer IDs | 1.0.0 | (3.00) |  |  |  |",
        "| ticker | 1.0.0 | (4.00) |  |  | does not read the clock |",
        "| repeats | 1.0.0 | (5.00) |  |  | repeats IDs |",
        "| ahead | 1.0.0 |  | (748.00) |  |  |",
        "| floor |  | 12.0 |  |  |  |",
    ]
    assert "Not measured: gone 0.1.0: no such crate" in lines
    assert "The program failed: exit status 1" in lines
    assert "Not measured: there is no PHP here" in lines
    assert r"| Rust | rust\|c |" in lines
    assert [line for line in lines if ".svg" in line] == [
        "![Medians of the table below](intel-xeon/rust.svg)"
    ]


def test_a_package_is_shown_at_its_best_and_ours_by_default() -> None:
    rows = [
        result("snowid generate", 9, repeated=3),
        result("snowid try_generate", 12, note="no batch call; retries"),
        result("snowid slow", 15),
        result("polyflake next_id", 8, "ours"),
        result("polyflake LocalSnowflake", 2, "ours"),
    ]
    assert table_of(read(*rows))[2:] == [
        "| **polyflake** | 1.0.0 | 8.00 |  |",
        "| snowid | 1.0.0 | 12.0 | retries |",
    ]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("wait\nerror: no such crate\nbye\n", "error: no such crate"),
        (
            "\nIn Curl.php line 15:\n\n  no route\n\ninstall [--dev] [--] [<packages>]...\n",
            "no route",
        ),
        ("first\nlast\n", "last"),
        ("", ""),
    ],
)
def test_the_problem_of_a_command(said: str, problem: str) -> None:
    assert run.problem_of(said) == problem


def test_a_program_that_is_missing_is_named() -> None:
    with pytest.raises(run.CommandFailed, match=r"^no-such-program is not installed$"):
        run.command("no-such-program")


def other_language(language: str, ours: float, peer: float) -> list[dict[str, Any]]:
    return [
        result(f"polyflake in {language}", ours, "ours", language=language),
        result(f"other in {language}", peer, language=language),
    ]


def test_the_document_begins_with_the_chart_and_the_answer(tmp_path: Path) -> None:
    written = report.write_report(
        read(*RECORDS, *other_language("Go", 50, 45), *other_language("browser", 100, 250)),
        tmp_path,
    )
    lines = written.read_text().splitlines()
    assert lines[2:5] == [
        f"![{report.OVERVIEW}](intel-xeon/overview.svg)",
        "",
        "One ID takes 24.0 ns in Rust, 50.0 ns in Go and 100 ns in a browser. "
        "Among the other generators that read the clock and repeat nothing, the fastest in each "
        "language takes from 0.90 times as long in Go to 2.50 times as long in a browser.",
    ]
    chart = ElementTree.parse(tmp_path / "intel-xeon" / "overview.svg")
    bars = [float(bar.attrib["width"]) for bar in chart.findall(".//{*}rect[@class]")[1:]]
    # All to the same scale.
    longest = report.WIDTH - 2 * report.MARGIN
    figures = (24, 40, 50, 45, 100, 250)
    assert bars == [pytest.approx(longest * figure / 250, abs=0.1) for figure in figures]


def test_the_answer_of_one_language() -> None:
    results = read(RUN, result("polyflake", 20, "ours"), result("other", 50))
    assert report.answer(results) == (
        "One ID takes 20.0 ns in Rust. "
        "Among the other generators that read the clock and repeat nothing, the fastest takes 2.50 "
        "times as long."
    )
    assert report.overview(results) is None
    assert report.answer(read(RUN, result("polyflake", 20, "ours"))) == ""


def test_the_document_ends_with_how_it_was_measured(results: report.Results) -> None:
    text = report.document(results, [])
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[0] == "## Rust"
    assert headings[-1] == "## How it was measured"
    assert "| Date | 2026-01-02 |" in text.partition(headings[-1])[2]
    assert "target" not in text.lower()


def test_targets_that_were_missed_are_on_a_page_of_their_own(tmp_path: Path) -> None:
    report.save([*RECORDS], tmp_path / "data")
    amd = {"machine": {"CPU": "AMD EPYC"}}
    report.save([RUN | amd, result("polyflake", 1, "ours")], tmp_path / "data")
    report.write_all(tmp_path / "data", tmp_path / "pages")
    text = (tmp_path / "pages" / "targets.md").read_text()
    sections = "## AMD EPYC\n\n0 of 0 reached.\n\n## Intel Xeon\n\n1 of 4 reached.\n"
    assert text.startswith(f"{report.TARGETS_PAGE}\n{sections}")
    assert "| Rust | one thread | polyflake | at most 0.1 of slow | 0.30 |\n" in text
    assert "at most 0.65" not in text


def test_large_ratios_have_three_digits() -> None:
    slow = [result(str(median), median) for median in (100, 9_990, 12_345, 1_234_567)]
    rows = read(result("polyflake", 100, "ours"), *slow).rows
    ratios = [report.columns(row, rows)[report.COLUMNS.index("ratio")] for row in rows]
    assert ratios == ["1.00", "1.00", "99.90", "123", "12,346"]


@pytest.mark.parametrize(
    ("machine", "file"),
    [
        ({"CPU": "AMD EPYC"}, "amd-epyc.md"),
        ({"CPU": "Intel(R) Xeon(R) Processor @ 2.60GHz"}, "intel-xeon.md"),
        ({"CPU": "12th Gen Intel(R) Core(TM) i7-1270P"}, "12th-gen-intel-core-i7-1270p.md"),
        ({"Architecture": "aarch64"}, "aarch64.md"),
    ],
)
def test_a_document_is_named_after_its_processor(
    machine: dict[str, str], file: str, tmp_path: Path
) -> None:
    results = read(RUN | {"machine": machine})
    assert report.write_report(results, tmp_path) == tmp_path / file


def test_a_run_replaces_only_the_results_and_charts_of_its_document(tmp_path: Path) -> None:
    folder, data = tmp_path / "benchmarks", tmp_path / "data"
    (folder / "amd-epyc").mkdir(parents=True)
    (folder / "amd-epyc" / "old.svg").touch()
    (data / "x").mkdir(parents=True)
    index, contents = folder / "README.md", tmp_path / "SUMMARY.md"
    index.write_text("## Processors\n\n- [AMD EPYC](amd-epyc.md)\n\n- other\n")
    contents.write_text("- [Benchmarks](benchmarks/README.md)\n- [Probes](probes.md)\n")
    ours = [result("polyflake", 1, "ours"), result("best", 2)]
    report.save([RUN | {"machine": {"CPU": "AMD EPYC"}}, *ours], data)
    first = (data / "amd-epyc.jsonl").read_text()
    for _ in range(2):
        report.save([RUN, *ours], data)
        report.write_all(data, folder)
    assert (data / "amd-epyc.jsonl").read_text() == first
    assert [path.name for path in (folder / "amd-epyc").iterdir()] == ["rust.svg"]
    cpu = "Intel Xeon"
    assert index.read_text() == (
        f"## Processors\n\n- [AMD EPYC](amd-epyc.md)\n- [{cpu}](intel-xeon.md)\n\n- other\n"
    )
    assert contents.read_text() == (
        "- [Benchmarks](benchmarks/README.md)\n  - [AMD EPYC](benchmarks/amd-epyc.md)\n"
        f"  - [{cpu}](benchmarks/intel-xeon.md)\n- [Probes](probes.md)\n"
    )


def test_results_keep_the_versions_of_their_run(tmp_path: Path) -> None:
    line = {
        name: value for name, value in result("ferroid next_id", 5).items() if name != "version"
    }
    report.save([RUN, line], tmp_path)
    saved = json.loads((tmp_path / "intel-xeon.jsonl").read_text().splitlines()[1])
    assert saved["version"] == report.pinned("Rust")["ferroid"]


def test_results_are_saved_without_the_rounds(tmp_path: Path) -> None:
    report.save([RUN, served("polyflake", 5, "ours")], tmp_path)
    saved = report.read_results(tmp_path / "intel-xeon-service.jsonl")
    assert saved == report.results_of([RUN, served("polyflake", 5, "ours")])
    (row,) = saved.rows
    assert (row.median, row.quartiles) == (5, [5, 5])
    assert "rounds" not in (tmp_path / "intel-xeon-service.jsonl").read_text()


def test_the_terminal_shows_what_is_missing_and_not_reached(results: report.Results) -> None:
    text = report.terminal(results)
    assert "missing: Rust, gone 0.1.0: no such crate" in text
    assert "not reached: Rust, one thread, polyflake: at most 0.1 of slow; seen: 0.30" in text
    assert "Rust: one thread, in ns per ID\n" in text
    assert text.endswith("1 of 4 targets reached")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "results"}, "kind is 'results'"),
        ({"role": "theirs"}, "role is not one of ours, peer, floor"),
        ({"unit": "s"}, "unit is not one of"),
        ({"rounds": []}, "rounds has no number"),
        ({"rounds": ["1"]}, "rounds has no number, or other items"),
        ({"repeated": "0"}, "repeated is neither a number nor null"),
        ({"reads_clock": 1}, "reads_clock is not a bool"),
        ({"note": None}, "note is not a str"),
        ({"role": "ours", "floor": "clock"}, "floor is not a list"),
    ],
)
def test_wrong_records_are_errors(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(report.WrongRecord, match=problem):
        report.check_record(result("peer", 1) | change)


def test_a_chart_has_ours_and_the_peers_it_is_compared_with(
    results: report.Results, tmp_path: Path
) -> None:
    report.write_report(results, tmp_path)
    chart = ElementTree.parse(tmp_path / "intel-xeon" / "rust.svg")
    texts = [text.text for text in chart.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == [
        *("Rust, ns per ID: less is better", "one thread"),
        *("polyflake", "24.0", "polyflake local", "22.0", "polyflake other", "23.0"),
        *("best", "40.0", "slow", "80.0"),
        *("decode", "polyflake", "9.00", "best", "6.00"),
    ]
    assert "(intel-xeon/rust.svg)" in (tmp_path / "intel-xeon.md").read_text()


def test_a_bar_far_longer_than_ours_is_cut() -> None:
    rows = [result("polyflake", 1, "ours"), result("best", 2), result("slow", 1000)]
    assert ">1,000 (cut)<" in (report.chart(read(*rows), "Rust") or "")


def test_names_in_a_chart_are_escaped() -> None:
    rows = [result("polyflake", 1, "ours"), result("a<b> & c", 2)]
    assert ">a&lt;b&gt; &amp; c<" in (report.chart(read(*rows), "Rust") or "")


def test_a_language_without_peers_has_no_chart() -> None:
    assert report.chart(read(result("polyflake", 1, "ours")), "Rust") is None


@pytest.mark.parametrize(("language", "words"), [("Counters", "counters"), ("Java", "Java")])
def test_some_have_a_document_of_their_own(tmp_path: Path, language: str, words: str) -> None:
    records = [RUN, result("polyflake next_id", 7, "ours", targets=[], floor=[], language=language)]
    results = read(*records)
    written = report.write_report(results, tmp_path)
    assert written.name == f"intel-xeon-{language.lower()}.md"
    text = written.read_text()
    assert text.startswith(f"# Benchmarks on Intel Xeon: {words}\n")


# The service -------------------------------------------------------------------------------------


def served(subject: str, median: float, role: str = "peer", **more: Any) -> dict[str, Any]:
    record = {
        "language": "Service",
        "table": "RESP, 1 connection",
        "unit": report.SERVED,
        **dict.fromkeys(("repeated", "ids", "ahead_ms")),
    }
    return result(subject, median, role, **record | more)


AS_MANY = [{"what": "ratio to", "subject": "INCR", "at_least": 1}]
PER_CPU = {"unit": report.SERVED_PER_CPU}
SERVED = [
    RUN,
    served("slower", 30_000),
    served("INCR", 40_000),
    served("polyflake", 50_000, "ours", targets=AS_MANY),
    served("polyflake counter", 39_000, "ours", targets=AS_MANY),
    served("polyflake", 19_000, "ours", targets=[{"what": "value", "at_least": 20_000}], **PER_CPU),
    served("INCR", 60_000, **PER_CPU),
]


def test_a_document_of_its_own_begins_with_its_answer(tmp_path: Path) -> None:
    table = {"table": "RESP, 50 connections"}
    ours, peer = served("polyflake", 92_000, "ours", **table), served("INCR", 91_000, **table)
    lines = (
        report.write_report(read(RUN, *SERVED[1:], ours, peer), tmp_path).read_text().splitlines()
    )
    says = report.OWN_OVERVIEW.format("Service")
    assert lines[2:5] == [
        f"![{says}](intel-xeon-service/overview.svg)",
        "",
        "On 50 connections, the service answers 92,000 requests a second over the Redis protocol; "
        "INCR answers 91,000.",
    ]
    chart = (tmp_path / "intel-xeon-service" / "overview.svg").read_text()
    assert "Service, requests per second: more is better" in chart
    assert chart.count('class="title"') == 1
    assert report.answer(read(RUN, *SERVED[1:])) == ""
    assert report.overview(read(RUN, *SERVED[1:])) is None


def test_the_answer_of_counters_says_who_has_no_batch_call() -> None:
    batch = {"language": "Counters", "table": "batch of 1,024"}
    peer = result("CosId", 5, note="Java; no batch call: single calls in a loop", **batch)
    assert report.answer(read(RUN, result("polyflake", 0.5, "ours", **batch), peer)) == (
        "In batches of 1,024, a number takes 0.50 ns; CosId takes 5.00 ns in single calls."
    )


def test_of_requests_the_most_are_the_best() -> None:
    results = read(*SERVED)
    (one, _) = results.tables("Service").values()
    best = report.best_peer(one)
    assert best is not None
    assert best.subject == "INCR"
    assert [row.subject for row in one[2:]] == ["INCR", "slower"]
    assert [(v.seen, v.reached, v.target) for v in report.verdicts(results)] == [
        ("1.25", True, "at least 1 of INCR"),
        ("0.97", False, "at least 1 of INCR"),
        ("19,000", False, "at least 20000 requests per CPU second"),
    ]


def test_the_service_has_a_document_of_its_own(tmp_path: Path) -> None:
    written = report.write_report(read(*SERVED), tmp_path)
    assert written.name == "intel-xeon-service.md"
    lines = written.read_text().splitlines()
    assert lines[0] == "# Benchmarks on Intel Xeon: service"
    header = (
        "| package | version | RESP, 1 connection, a second | RESP, 1 connection, a CPU second |"
    )
    start = lines.index(header)
    assert lines[start + 2 : start + 5] == [
        "| **polyflake** | 1.0.0 | 50,000 | 19,000 |",
        "| **polyflake counter** | 1.0.0 | 39,000 |  |",
        "| INCR | 1.0.0 | 40,000 | 60,000 |",
    ]
    chart = (tmp_path / "intel-xeon-service" / "service.svg").read_text()
    assert "Service, requests per second: more is better" in chart
    assert chart.count(">RESP, 1 connection<") == 1


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(report.__file__).parent / "service" / "bench.py"
    spec = importlib.util.spec_from_file_location("service_bench", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_what_the_clients_print(bench: ModuleType) -> None:
    said = """\
INCR orders: rps=0.0 (overall: nan) avg_msec=nan (overall: nan)\r\r====== INCR orders ======
  50000 requests completed in 0.08 seconds
Summary:
  throughput summary: 609756.06 requests per second
"""
    assert bench.of_redis_benchmark(said) == (50_000, 609_756.06)
    with pytest.raises(bench.Failed, match="does not print"):
        bench.of_redis_benchmark("Error from server: ERR unknown_generator")
    done = {"requests": 3000, "duration_us": 1_500_000, "errors": {"connect": 0, "status": 0}}
    assert bench.of_wrk("Running 2s test\n" + json.dumps(done) + "\n") == (3000, 2000)
    with pytest.raises(bench.Failed, match="'status': 1"):
        bench.of_wrk(json.dumps(done | {"errors": {"connect": 0, "status": 1}}))


# The harness -------------------------------------------------------------------------------------

PROGRAM = r"""
import array, sys
if len(sys.argv) < 3:
    print("one ID\tpolyflake next_id\tversion=2.0")
    print("one ID\tferroid\none ID\tclock\none ID|other\tsnowid x")
    print("full load, one thread\tpolyflake load")
    sys.exit()
for line in sys.stdin:
    if sys.argv[2] == "ferroid":
        sys.exit("error: no time")
    if line.startswith("ids"):
        _, count, file = line.split()
        ids = [n << 22 for n in range(int(count))]
        ids[3] = ids[2]  # once twice, and 3 ms ahead
        words = array.array("Q")
        for n in range(0, len(ids), 2):
            words.extend([*ids[n : n + 2], (1288834974657 - 3 + n) * 1000])
        print("2 1", flush=True)
        with open(file, "wb") as into:
            words.tofile(into)
        print(flush=True)
    else:
        print(7 if sys.argv[2] != "snowid x" else "1 50", flush=True)
"""


def test_the_harness_measures_in_rounds_and_checks_the_ids() -> None:
    program = harness.Program([sys.executable, "-c", PROGRAM])
    records = {
        (record["subject"], record.get("table", "")): record
        for record in harness.measure("Rust", [program], 3)
    }
    checked = {"repeated": 1, "ids": 256_000, "ahead_ms": 4}
    ours = records["polyflake next_id", "one ID"]
    assert ours == ours | checked | {"rounds": [7, 7, 7], "version": "2.0", "kind": "result"}
    assert records["clock", "one ID"].get("ids") is None
    assert records["snowid x", "other"]["rounds"] == [50, 50, 50]
    # Two IDs per block, one block per 2 ms: one ID per ms.
    assert (
        records["polyflake load", "full load, one thread"]["rounds"]
        == [pytest.approx(100 / 4096, rel=1e-3)] * 3
    )
    assert records["ferroid", ""]["why"] == "failed in the table “one ID”: error: no time"


def test_one_of_ours_may_not_fail() -> None:
    program = harness.Program(
        [sys.executable, "-c", PROGRAM.replace('"ferroid":', '"polyflake next_id":')]
    )
    with pytest.raises(harness.NoAnswer, match="polyflake next_id: error: no time"):
        harness.measure("Rust", [program], 1)


def test_a_program_may_answer_with_several_rounds() -> None:
    several = PROGRAM.replace("print(7 if", "print('7 7 8 8 9' if")
    program = harness.Program([sys.executable, "-c", several])
    records = harness.measure("Rust", [program], 7)
    assert len(records[0]["rounds"]) == 10


def test_the_constant_is_built_as_the_service_is() -> None:
    def read_toml(*path: str) -> dict[str, Any]:
        return tomllib.loads(report.ROOT.joinpath(*path).read_text())

    def crates(*path: str) -> set[tuple[str, str]]:
        return {(package["name"], package["version"]) for package in read_toml(*path)["package"]}

    folder = ("benchmarks", "service")
    own = ("polyflake-service-benchmarks", "0.0.0")
    theirs = crates(*folder, "Cargo.lock")
    assert theirs - crates("Cargo.lock") == {own}
    ours = read_toml("Cargo.toml")["profile"]
    constant = read_toml(*folder, "Cargo.toml")["profile"]["release"]
    assert ours["command"]["inherits"] == "release"
    command = ours["release"] | ours["command"]
    standard = {"opt-level": 3, "lto": command["lto"], "codegen-units": command["codegen-units"]}
    assert command["opt-level"] == 3
    assert {"opt-level": 3} | constant == standard
    for name, _ in theirs:
        for profile in ("release", "command"):
            how = ours[profile]["package"].get(name, {})
            assert {key: how[key] for key in how if standard[key] != how[key]} == {}
