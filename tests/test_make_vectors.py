"""tests/vectors.json and tests/public_ids.json are up to date with make_vectors.py."""

from __future__ import annotations

import json
from pathlib import Path

import make_vectors
import pytest
from make_vectors import PUBLIC_IDS, VECTORS
from vector_scripts import READING_MODELS, SMALL, batch, one, run_script, scripts


def test_the_committed_vectors_are_what_the_reference_makes() -> None:
    assert make_vectors.main(["--check"]) == 0


@pytest.mark.parametrize("name", ["VECTORS", "PUBLIC_IDS"])
def test_check_says_so(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for each in ("VECTORS", "PUBLIC_IDS"):
        monkeypatch.setattr(make_vectors, each, tmp_path / each)
    assert make_vectors.main([]) == 0
    monkeypatch.setattr(make_vectors, name, tmp_path / "missing.json")
    assert make_vectors.main(["--check"]) == 1
    assert "is not what make_vectors.py makes" in capsys.readouterr().out
    assert make_vectors.main([]) == 0
    assert make_vectors.main(["--check"]) == 0


@pytest.mark.parametrize("file", [VECTORS, PUBLIC_IDS])
def test_the_file_is_readable_in_a_diff(file: Path) -> None:
    text = file.read_text(encoding="ascii")
    assert len(text) < 400_000
    assert max(len(line) for line in text.splitlines()) < 2000
    assert next(iter(json.loads(text))) == "about"


@pytest.mark.parametrize("file", [VECTORS, PUBLIC_IDS])
def test_no_number_of_64_bits_is_a_json_number(file: Path) -> None:
    def walk(value: object) -> None:
        if isinstance(value, dict):
            for part in value.values():
                walk(part)
        elif isinstance(value, list):
            for part in value:
                walk(part)
        else:
            assert not isinstance(value, float)
            assert not isinstance(value, int) or abs(value) < 100

    walk(json.loads(file.read_text(encoding="ascii")))


def test_scripts_do_not_depend_on_how_often_the_clock_is_read() -> None:
    # The outcome of this script does depend on that: each reading moves the clock into a fresh
    # tick.
    steps = [
        one(1000, wait=(1, 1005)),
        batch(3, 1010, wait=(1, 1020)),
    ]
    options = {"layout": SMALL, "node": "5", "sequence_start": "zero"}
    outcomes = [run_script(options, steps, **model) for model in READING_MODELS]
    assert any(each != outcomes[0] for each in outcomes)
    # scripts() checks each committed script with all reading models, and raises an exception if one
    # differs.
    assert sum(1 for _ in scripts()) > 100
