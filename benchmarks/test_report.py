"""report.py, on invented results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import report


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
    return report.read_results(json.dumps(record) for record in records)


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


def test_the_document(results: report.Results) -> None:
    lines = report.document(results, ["intel-xeon/rust.svg"]).splitlines()
    assert lines[0] == "# Benchmarks on Intel(R) Xeon(R) CPU @ 2.60GHz"
    table = [line for line in lines if line.count("|") >= 9 and "1.0.0" in line]
    names = [line.split("|")[1].strip() for line in table]
    # Ours first, then peers, best first, then floors.
    peers = ["unknown", "longer IDs", "ticker", "repeats", "best", "slow"]
    ours = [f"**polyflake{which}**" for which in ("", " local", " other")]
    assert names[:11] == [*ours, *peers, "floor: clock", "floor: swap"]
    assert (
        "| **polyflake** | 1.0.0 | 24.0 | 24.0 to 24.0 | 0.60 | 12.0 | 0 of 200,000 | 0 |  |"
    ) in lines
    assert (
        "| repeats | 1.0.0 | 5.00 | 5.00 to 5.00 | (0.12) |  | 163,804 of 350,000 | 0 |  |"
    ) in lines
    assert "Over floor: over clock and swap (polyflake); clock (polyflake local)." in lines
    assert any("| 12 | does not read the clock |" in line for line in table)
    assert any(r"`lock` \| waits" in line for line in table)
    assert "1 of 4 reached." in lines
    assert "- gone 0.1.0: no such crate" in lines
    assert "The program failed: exit status 1" in lines
    assert "Not measured: there is no PHP here" in lines
    assert r"| Rust | rust\|c |" in lines
    assert [line for line in lines if ".svg" in line] == [
        "![Medians of the tables below](intel-xeon/rust.svg)"
    ]


def test_large_ratios_have_three_digits() -> None:
    slow = [result(str(median), median) for median in (100, 9_990, 12_345, 1_234_567)]
    rows = read(result("polyflake", 100, "ours"), *slow).rows
    ratios = [report.columns(row, rows)[report.COLUMNS.index("ratio")] for row in rows]
    assert ratios == ["1.00", "1.00", "99.90", "123", "12,346"]


def test_counters_are_a_section_whose_numbers_have_no_time() -> None:
    counted = {"language": "Counters", "ahead_ms": None}
    lines = report.document(
        read(RUN, result("polyflake", 4, "ours", **counted), result("INCR", 8_000, **counted)), []
    ).splitlines()
    start = lines.index("## Counters")
    assert lines[start + 4 : start + 8] == [
        "| subject | version | median | quartiles | ratio | repeats |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        "| **polyflake** | 1.0.0 | 4.00 | 4.00 to 4.00 | 0.00 | 0 of 200,000 |",
        "| INCR | 1.0.0 | 8,000 | 8,000 to 8,000 | 1.00 | 0 of 200,000 |",
    ]


def test_a_table_of_decoding_has_no_columns_of_repeats(results: report.Results) -> None:
    lines = report.document(results, []).splitlines()
    start = lines.index("### decode, in ns per decoded ID")
    assert lines[start + 2 : start + 6] == [
        "| subject | version | median | quartiles | ratio |",
        "| --- | --- | ---: | ---: | ---: |",
        "| **polyflake** | 1.0.0 | 9.00 | 9.00 to 9.00 | 1.50 |",
        "| best | 1.0.0 | 6.00 | 6.00 to 6.00 | 1.00 |",
    ]


def test_the_document_has_the_counts_of_instructions(results: report.Results) -> None:
    lines = report.document(results, []).splitlines()
    assert any(line.startswith("| next_id, system clock | ") for line in lines)


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


def test_a_run_replaces_only_the_files_of_its_processor(
    results: report.Results, tmp_path: Path
) -> None:
    folder = tmp_path / "benchmarks"
    for processor in ("amd-epyc", "intel-xeon"):
        (folder / processor).mkdir(parents=True)
        (folder / processor / "old.svg").touch()
    amd = folder / "amd-epyc.md"
    amd.write_text("# Benchmarks on AMD EPYC\n")
    index, contents = folder / "README.md", tmp_path / "SUMMARY.md"
    index.write_text("## Processors\n\n- [AMD EPYC](amd-epyc.md)\n\n- other\n")
    contents.write_text("- [Benchmarks](benchmarks/README.md)\n- [Probes](probes.md)\n")
    for _ in range(2):
        report.write_report(results, folder)
    assert amd.read_text() == "# Benchmarks on AMD EPYC\n"
    assert [path.name for path in (folder / "amd-epyc").iterdir()] == ["old.svg"]
    assert [path.name for path in (folder / "intel-xeon").iterdir()] == ["rust.svg"]
    cpu = results.run["machine"]["CPU"]
    assert index.read_text() == (
        f"## Processors\n\n- [AMD EPYC](amd-epyc.md)\n- [{cpu}](intel-xeon.md)\n\n- other\n"
    )
    assert contents.read_text() == (
        "- [Benchmarks](benchmarks/README.md)\n  - [AMD EPYC](benchmarks/amd-epyc.md)\n"
        f"  - [{cpu}](benchmarks/intel-xeon.md)\n- [Probes](probes.md)\n"
    )


def test_the_terminal_shows_what_is_missing_and_not_reached(results: report.Results) -> None:
    text = report.terminal(results)
    assert "missing: Rust, gone 0.1.0: no such crate" in text
    assert "not reached: Rust, one thread, polyflake: at most 0.1 of slow; seen: 0.30" in text
    assert "Rust: one thread, in ns per ID. Over floor: over clock and swap (polyflake);" in text
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
        ({"targets": [{"what": "value", "at_most": 1}]}, "only ours has a floor"),
        ({"floor": ["clock"]}, "only ours has a floor and targets"),
        ({"role": "ours", "floor": "clock"}, "floor is not a list"),
        ({"role": "ours", "floor": [1]}, "floor has an item that is not a str"),
        ({"role": "ours", "targets": [{"what": "over floor", "at_most": 1}]}, "has no floor"),
        ({"role": "ours", "targets": [{"what": "value"}]}, "needs either at_most or at_least"),
        ({"role": "ours", "targets": [{"what": "ratio to", "at_most": 1}]}, "has no subject"),
    ],
)
def test_wrong_records_are_errors(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(report.WrongRecord, match=f"line 2: .*{problem}"):
        read(RUN, result("peer", 1) | change)


def test_a_line_that_is_not_json_is_an_error() -> None:
    with pytest.raises(report.WrongRecord, match="line 1: Expecting"):
        report.read_results(["round 1 of 9"])


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


def test_counters_have_a_document_of_their_own(tmp_path: Path) -> None:
    records = [
        RUN,
        result("polyflake next_id", 7, "ours", targets=[], floor=[], language="Counters"),
    ]
    results = report.read_results(map(json.dumps, records))
    written = report.write_report(results, tmp_path)
    assert written.name == "intel-xeon-counters.md"
    text = written.read_text()
    assert text.startswith("# Benchmarks on Intel(R) Xeon(R) CPU @ 2.60GHz: counters\n")
    assert "## Instructions" not in text
